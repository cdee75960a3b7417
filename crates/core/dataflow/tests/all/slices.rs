//! Events that are slices of time: what a read-out system makes of chunks, and when level 1 issues a slice.

use std::sync::Arc;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, LinkNews, LinkOrder, Outbox, PeerState};
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Level1Parameters, TriggerInput};
use dataflow::message::{BusyCause, Command, DataRequest, EventInfo, Message};
use dataflow::readout::fragment::status;
use dataflow::readout::ros::{
    Framing, LinkParameters, LinksParameters, ReadOut, Ros, RosParameters, TimedHead, TimedParameters,
};
use dataflow::report::{Counters, Level1Counters, LinkState, RosCounters};
use timing::Interval;
use timing::rule::Rule;
use timing::sliced::Sliced;
use timing::slices::{PASSED_AHEAD_MAX as FAR, Passed, Slices};

use crate::pass::spread;
use crate::{level1, pass};

const LEVEL1: NodeId = NodeId(1);
const ROS: [NodeId; 2] = [NodeId(2), NodeId(5)];
const DFM: NodeId = NodeId(3);
const SFI: NodeId = NodeId(4);
const GRACE: Duration = Duration::from_millis(5);
/// Of a slice.
const LENGTH: u64 = 100;

#[test]
fn a_chunk_is_in_every_slice_that_it_meets_and_counted_once() {
    let mut ros =
        Driver::running(TimedParameters { rule: Rule { before: 10, after: 10, ..Rule::default() }, chunks_max: 9 });
    ros.pass([chunk(0, 10, 20), chunk(0, 95, 105), chunk(0, 150, 160), chunk(0, 500, 501)]);
    ros.pass([passed(1, 500), accept(&[0, 1, 2])]);
    assert_eq!(
        ros.fragments(0),
        [(0, [2, 0]), (1, [2, 0]), (2, [0, 0])],
        "the second one is in both, the last in none"
    );
    ros.pass([clear(1, 1, &[0])]);
    assert_eq!(ros.books(0), [4, 1, 0, 0, 3], "the second one is still in slice 1");
    ros.pass([clear(2, 3, &[1, 2])]);
    assert_eq!(ros.books(0), [4, 3, 0, 0, 1]);
}

#[test]
fn empty_differs_from_missing() {
    let mut ros = Driver::running(timed());
    ros.pass([chunk(0, 10, 20), passed(0, 300), passed(1, 0), passed(1, 150), accept(&[0])]);
    assert_eq!(ros.fragments(1), [(0, [0, 0])], "it lives, and has nothing");
    ros.pass([link(1, LinkNews::Down)]);
    ros.now = ros.now + GRACE;
    ros.pass([Input::Deadline, accept(&[1])]);
    assert_eq!(ros.reply(1), vec![1], "it is gone");
    assert_eq!(ros.reply(0), vec![]);
}

#[test]
fn a_slice_of_the_time_before_a_source_has_begun_or_while_it_was_gone_is_marked() {
    let mut ros = Driver::running(timed());
    ros.pass([passed(0, 0), passed(0, 2000), passed(1, 110), accept(&[0, 1])]);
    assert_eq!(ros.fragments(1), [(0, [0, status::TIMEOUT]), (1, [0, status::TIMEOUT])], "the second is not passed");
    ros.pass([passed(1, 250), clear(1, 2, &[0, 1]), accept(&[2])]);
    ros.pass([clear(2, 3, &[2]), passed(1, 320), link(1, LinkNews::Down), link(1, LinkNews::Up)]);
    ros.pass([chunk(1, 450, 460), passed(1, 1000), accept(&[3, 4, 5])]);
    assert_eq!(ros.fragments(1), [(3, [0, status::TIMEOUT]), (4, [1, status::TIMEOUT]), (5, [0, 0])]);
}

#[test]
fn a_slice_that_ends_by_grace_says_who_had_not_passed_it() {
    let mut ros = Driver::running(timed());
    ros.pass([chunk(0, 10, 20), chunk(0, 150, 160), accept(&[0])]);
    assert_eq!(ros.fragments(0), [(0, [1, 0])]);
    assert_eq!(ros.fragments(1), [(0, [0, status::TIMEOUT])]);
    ros.pass([chunk(1, 20, 30), chunk(1, 90, 110)]);
    assert_eq!(ros.books(1), [2, 0, 1, 0, 1], "one is late, and the other may get into slice 1");
    assert_eq!(ros.counters(1).late_in_part, 1);
}

#[test]
fn what_comes_behind_the_last_slice_of_a_run_is_not_late() {
    let mut ros = Driver::running(timed());
    ros.pass([chunk(0, 10, 20), passed(0, 200), passed(1, 200), accept(&[0])]);
    let events = vec![EventId(0)].into();
    let last = Message::Clear { sequence: 1, oldest_valid: EventId(1), last: true, events };
    ros.pass([Input::Command(Command::Drain), says(DFM, last)]);
    ros.pass([chunk(0, 210, 220), chunk(0, 30, 40)]);
    assert_eq!(ros.books(0), [3, 1, 1, 1, 0], "one has no slice, and one came too late for its own");
}

#[test]
fn chunks_of_slices_that_are_left_out_are_counted_as_such() {
    let mut ros = Driver::running(timed());
    ros.pass([chunk(0, 10, 20), chunk(0, 90, 110), chunk(0, 150, 160), chunk(0, 210, 220)]);
    ros.pass([says(LEVEL1, Message::IssuedUpTo(EventId(0)))]);
    assert_eq!(ros.books(0), [4, 0, 0, 1, 3]);
    ros.pass([accept(&[2])]);
    assert_eq!(ros.books(0), [4, 0, 0, 3, 1], "an accept says the same of what is below it");
}

#[test]
fn more_chunks_than_a_slice_takes_are_cut_off_and_the_slice_is_marked() {
    let mut ros = Driver::running(TimedParameters { chunks_max: 2, ..timed() });
    ros.pass([chunk(0, 10, 20), chunk(0, 30, 40), chunk(0, 50, 60), chunk(0, 100, 101), accept(&[0])]);
    assert_eq!(ros.fragments(0), [(0, [2, status::TRUNCATED])]);
    assert_eq!(ros.books(0), [4, 0, 0, 1, 3]);
}

#[test]
fn an_offset_moves_the_times_of_a_source() {
    let mut ros = Driver::running(TimedParameters { rule: Rule { offset: -100, ..Rule::default() }, ..timed() });
    ros.pass([chunk(0, 110, 120), passed(0, 205), accept(&[0])]);
    assert_eq!(ros.fragments(0), [(0, [1, 0])]);
}

#[test]
fn level_1_is_told_how_far_all_and_the_first_have_come_once_per_slice() {
    let mut ros = Driver::running(timed());
    let told = |first, all, any, last| vec![Passed { first, all, any, last }];
    assert_eq!(ros.told([chunk(0, 710, 720), chunk(0, 930, 940)]), told(7, 0, 9, false));
    assert_eq!(ros.told([chunk(0, 931, 941), chunk(1, 690, 699)]), told(7, 6, 9, false));
    assert_eq!(ros.told([chunk(1, 695, 699)]), []);
    assert_eq!(ros.told([passed(1, 1000)]), told(7, 9, 10, false));
    assert_eq!(ros.told([chunk(0, 10_000_000, 10_000_001)]), told(7, 10, 7 + FAR, false), "not further");
    assert_eq!(ros.told([accept(&[7])]), told(7, 10, 8 + FAR, false));
    let ends = [0, 1].map(|rob| link(rob, LinkNews::Ended { sent: 3 }));
    assert_eq!(ros.told(ends), told(7, 8 + FAR, 8 + FAR, false));
    assert_eq!(ros.told([accept(&[99_999])]), told(7, 100_001, 100_001, true));
}

#[test]
fn one_word_of_how_far_sources_have_come_is_on_its_way() {
    let mut ros = Driver::running(timed());
    let (told, taken) = (|any| vec![Passed { first: 7, all: 0, any, last: false }], says(LEVEL1, Message::PassedTaken));
    assert_eq!(told_of(ros.pass([chunk(0, 710, 720)])), told(7));
    assert_eq!(told_of(ros.pass([chunk(0, 810, 820), chunk(0, 910, 920)])), []);
    assert_eq!(told_of(ros.pass([chunk(0, 1010, 1020)])), []);
    assert_eq!(told_of(ros.pass([taken.clone()])), told(10), "and that in one");
    assert_eq!(told_of(ros.pass([taken])), []);
    assert_eq!(told_of(ros.pass([passed(0, 1100)])), told(11));
}

/// A level 1 that has died answers nothing.
#[test]
fn a_new_life_of_level_1_is_told_what_was_on_its_way_to_the_former() {
    let mut ros = Driver::running(timed());
    assert_eq!(told_of(ros.pass([chunk(0, 710, 720)])).len(), 1);
    assert_eq!(told_of(ros.pass([chunk(0, 910, 920)])), [], "it has not answered");
    let told = vec![Passed { first: 7, all: 0, any: 9, last: false }];
    let states = [PeerState::Down, PeerState::Up(Incarnation(1))];
    assert_eq!(told_of(ros.pass(states.map(|state| Input::Peer { node: LEVEL1, state }))), told);
    assert_eq!(told_of(ros.pass([chunk(0, 1010, 1020)])), [], "one word is on its way again");
}

/// Level 1 waits for room, and at the end of a run nothing else may make a word.
#[test]
fn a_drain_says_that_there_is_room_while_a_word_is_on_its_way() {
    let mut ros = Driver::running(timed());
    let full = ros.pass((0..5).map(|at| chunk(0, at * 100, at * 100 + 10)));
    assert_eq!((full.iter().find_map(busy_of), told_of(full).len()), (Some(true), 1));
    let room = ros.pass([says(LEVEL1, Message::IssuedUpTo(EventId(4)))]);
    assert_eq!(room.iter().find_map(busy_of), None, "that waits for the answer");
    let drain = ros.pass([Input::Command(Command::Drain)]);
    assert_eq!(drain.iter().filter_map(busy_of).collect::<Vec<_>>(), [false]);
}

/// Level 1 is owed a word with the room that it hears of, and gets it though the room is gone.
#[test]
fn a_link_that_is_full_again_in_the_pass_in_which_it_got_room_says_so_with_one_word() {
    let mut ros = Driver::running(timed());
    ros.pass((0..5).map(|at| chunk(0, at * 100, at * 100 + 10)));
    assert_eq!(ros.told([says(LEVEL1, Message::PassedTaken)]), []);
    let full_again = (2..6).map(|at| chunk(0, 400 + at * 10, 410 + at * 10));
    let actions = ros.pass([says(LEVEL1, Message::IssuedUpTo(EventId(3)))].into_iter().chain(full_again));
    assert_eq!(actions.iter().filter_map(busy_of).collect::<Vec<_>>(), [false, true]);
    assert_eq!(told_of(actions), [Passed { first: 0, all: 0, any: 5, last: false }], "that is not new");
    let more = ros.pass([says(LEVEL1, Message::IssuedUpTo(EventId(9)))]);
    assert_eq!(more.iter().find_map(busy_of), None, "one at a time");
}

/// Slices that are left out make room as often as sources send, however long level 1 is in hearing of it.
#[test]
fn that_a_link_has_room_again_is_said_once_until_level_1_answers() {
    let mut ros = Driver::running(timed());
    let mut busy = Vec::new();
    for round in 1..9 {
        let full = (0..5).map(|at| chunk(0, round * 1000 + at * 100, round * 1000 + at * 100 + 10));
        busy.extend(ros.pass(full).iter().filter_map(busy_of));
        let left_out = says(LEVEL1, Message::IssuedUpTo(EventId(round * 10 + 5)));
        let answer = (round == 4).then(|| says(LEVEL1, Message::PassedTaken));
        busy.extend(ros.pass([left_out].into_iter().chain(answer)).iter().filter_map(busy_of));
    }
    assert_eq!(busy, [true, false, true]);
}

/// Else level 1 would issue a window more than there are pages for, in the moment in which it hears of the first alone.
#[test]
fn that_a_link_is_full_is_said_before_that_slices_are_taken() {
    let mut ros = Driver::running(timed());
    ros.pass([passed(0, 900), passed(1, 900)]);
    let told = ros.pass([accept(&[0, 1, 2, 3, 4])]);
    let place = |is: fn(&Message) -> bool| {
        told.iter()
            .position(|action| matches!(action, Action::Send { message, .. } if is(message)))
            .expect("it is told")
    };
    let full = place(|message| matches!(message, Message::Busy { on: true, .. }));
    assert!(full < place(|message| matches!(message, Message::Taken(_))), "{told:?}");
}

#[test]
fn level_1_answers_each_word_of_how_far_sources_have_come() {
    let mut level1 = Metronome::running(100);
    let passed = Message::Passed(Passed { first: 7, all: 9, any: 9, last: false });
    let answers = level1.input(says(ROS[1], passed));
    let taken = |to| Action::Send { to, message: Message::PassedTaken };
    assert_eq!(ROS.map(|ros| answers.iter().filter(|answer| **answer == taken(ros)).count()), [0, 1]);
}

#[test]
fn a_time_far_from_all_others_is_none() {
    let mut ros = Driver::running(timed());
    ros.pass([chunk(0, 10, 20), passed(0, 100), accept(&[0])]);
    ros.pass([chunk(0, 1 << 60, 1 << 61), passed(0, 1 << 60), chunk(0, u64::MAX, 0), chunk(0, 120, 130)]);
    assert_eq!((ros.counters(0).dropped_unplaced, ros.counters(0).resident), (2, 2));
}

#[test]
fn a_full_link_tells_level_1_to_leave_out_slices() {
    let mut ros = Driver::running(timed());
    let busy = |on| Action::Send { to: LEVEL1, message: Message::Busy { cause: BusyCause::Pages, on } };
    let off = ros.pass((0..5).map(|at| chunk(0, at * 100, at * 100 + 10)));
    assert!(off.contains(&busy(true)) && off.contains(&Action::Link { rob: 0, order: LinkOrder::Off }), "{off:?}");
    let on = ros.pass([says(LEVEL1, Message::PassedTaken), says(LEVEL1, Message::IssuedUpTo(EventId(2)))]);
    assert!(on.contains(&busy(false)) && on.contains(&Action::Link { rob: 0, order: LinkOrder::On }), "{on:?}");
}

/// Else there would be no page for the next one, and that would be missing.
#[test]
fn slices_without_chunks_fill_a_link_too() {
    let mut ros = Driver::running(timed());
    ros.pass([passed(0, 900), passed(1, 900)]);
    let off = ros.pass([accept(&[0, 1, 2, 3, 4])]);
    let busy = Action::Send { to: LEVEL1, message: Message::Busy { cause: BusyCause::Pages, on: true } };
    assert!(off.contains(&busy) && off.contains(&Action::Link { rob: 0, order: LinkOrder::Off }), "{off:?}");
}

/// Nothing that is issued would make room: grace has to begin, though nobody can pass the slice.
#[test]
fn a_link_that_is_full_before_the_first_slice_is_whole_lets_grace_end_it() {
    let mut ros = Driver::running(timed());
    let told = |any| vec![Passed { first: 7, all: 0, any, last: false }];
    assert_eq!(ros.told((0..4).map(|at| chunk(0, 710 + at, 720 + at))), told(7));
    assert_eq!(ros.told([chunk(0, 730, 840)]), told(8), "it is off, and all that it has is of slice 7");
    ros.pass([accept(&[7]), chunk(0, 810, 820)]);
    assert_eq!(ros.told([chunk(0, 820, 830)]), [], "slice 7 will be cleared, which makes room");
    assert_eq!(ros.told([clear(1, 8, &[7])]), told(9), "that was not enough, and nothing else will");
}

/// Another source begins later, so no slice has the chunks that fill the link.
#[test]
fn a_link_that_is_full_of_what_is_older_than_the_first_slice_lets_grace_end_that() {
    let mut ros = Driver::running(timed());
    ros.told((0..5).map(|at| chunk(0, 710 + at, 720 + at)));
    let told = ros.told([chunk(1, 1010, 1020)]);
    assert_eq!(told, [Passed { first: 10, all: 7, any: 11, last: false }]);
    let on = ros.pass([says(LEVEL1, Message::IssuedUpTo(EventId(10)))]);
    assert!(on.contains(&Action::Link { rob: 0, order: LinkOrder::On }), "{on:?}");
    assert_eq!((ros.books(0), ros.books(1)), ([5, 0, 0, 5, 0], [1, 0, 0, 1, 0]));
}

/// A new life of the DFM does not clear what its former life had to.
#[test]
fn a_link_that_is_full_of_slices_that_nobody_clears_lets_grace_end_the_next_one() {
    let mut ros = Driver::running(timed());
    ros.told((0..4).map(|at| chunk(0, 710 + at, 720 + at)).chain([chunk(0, 730, 840)]));
    ros.told([accept(&[7]), chunk(0, 810, 820), chunk(0, 820, 830)]);
    let told = ros.told([clear(1, 8, &[])]);
    assert_eq!(told, [Passed { first: 7, all: 0, any: 9, last: false }], "slice 7 is garbage");
}

#[test]
fn level_1_issues_a_slice_when_all_have_passed_it_and_ends_with_the_sources() {
    let mut level1 = Metronome::running(100);
    assert_eq!(level1.tell(0, 7, 9, 9), []);
    assert_eq!(level1.tell(1, 8, 8, 8), [], "the other has begun with 8");
    assert_eq!(level1.tell(1, 8, 30, 30), [8]);
    let stops = level1.input(Input::Command(Command::Drain));
    let stop = |to| Action::Send { to, message: Message::Lead(false) };
    assert!(ROS.iter().all(|ros| stops.contains(&stop(*ros))), "{stops:?}");
    assert!(!level1.level1.is_drained());
    assert_eq!(level1.last(0, 10), Vec::from_iter(9..30), "the other has more");
    assert!(!level1.level1.is_drained(), "and may have more");
    assert_eq!(level1.last(1, 30), []);
    assert!(level1.level1.is_drained());
    assert_eq!((level1.counters().issued, level1.counters().vetoed), (22, 0));
}

#[test]
fn a_slice_is_issued_a_grace_behind_the_first_source() {
    let mut level1 = Metronome::running(100);
    level1.tell(0, 0, 0, 0);
    assert_eq!(level1.tell(1, 0, 3, 3), []);
    level1.now = level1.now + GRACE;
    assert_eq!(level1.level1.next_deadline(), Some(level1.now));
    assert_eq!(level1.issued(Input::Deadline), [0], "and the next one when it is its time");
}

#[test]
fn slices_that_nobody_has_room_for_are_left_out_as_dead_time() {
    let mut level1 = Metronome::running(2);
    level1.tell(0, 0, 9, 9);
    assert_eq!(level1.tell(1, 0, 4, 4), [0, 1], "the window");
    assert_eq!(level1.issued(Input::Deadline), [], "the others may wait");
    level1.input(says(ROS[0], Message::Busy { cause: BusyCause::Pages, on: true }));
    assert_eq!((level1.counters().vetoed, level1.counters().vetoed_busy), (2, 2), "not while pages are missing");
    for ros in ROS {
        level1.input(says(ros, Message::Taken(2)));
    }
    level1.input(says(DFM, Message::Taken(2)));
    level1.input(says(ROS[0], Message::Busy { cause: BusyCause::Pages, on: false }));
    assert_eq!(level1.tell(1, 0, 6, 6), [4, 5], "the same are left out for all");
    assert_eq!(level1.tell(1, 0, 9, 9), []);
    level1.now = level1.now + GRACE * 3;
    level1.issued(Input::Deadline);
    assert_eq!(level1.counters().vetoed, 5, "nor do they wait for ever");
    let c = level1.counters();
    assert_eq!((c.issued, c.offered), (4, 9));
}

/// A read-out system says no more before: else level 1 would go through the slices of an outage more slowly than time goes on.
#[test]
fn a_window_of_slices_that_are_left_out_is_told_at_once() {
    let mut level1 = Metronome::running(2);
    level1.input(says(ROS[0], Message::Busy { cause: BusyCause::Pages, on: true }));
    level1.tell(0, 0, 9, 9);
    let passed = |all| says(ROS[1], Message::Passed(Passed { first: 0, all, any: all, last: false }));
    let told = |last: u64| ROS.map(|to| Action::Send { to, message: Message::IssuedUpTo(EventId(last)) });
    let is_told = |actions: &[Action], last| told(last).iter().all(|action| actions.contains(action));
    let actions = level1.input(passed(1));
    assert!(!is_told(&actions, 0), "one may wait for the next: {actions:?}");
    let actions = level1.input(passed(4));
    assert!(is_told(&actions, 3), "{actions:?}");
}

/// Else a wrong number kept level 1 in one call for ever, without a sign of life.
#[test]
fn a_word_of_more_slices_than_there_can_be_keeps_level_1_in_no_call() {
    let mut level1 = Metronome::running(100);
    level1.tell(0, 0, 1, 1);
    assert_eq!(level1.tell(1, 0, 1, 1), [0]);
    level1.input(Input::Command(Command::Pause));
    level1.tell(0, 0, u64::MAX, u64::MAX);
    let told = |actions: Vec<Action>| {
        let last = |action| {
            if let Action::Send { to, message: Message::IssuedUpTo(last) } = action { Some((to, last)) } else { None }
        };
        actions.into_iter().filter_map(last).filter(|(to, _)| *to == ROS[0]).map(|(_, last)| last.0).collect::<Vec<_>>()
    };
    let word = Message::Passed(Passed { first: 0, all: u64::MAX, any: u64::MAX, last: false });
    let mut lasts = told(level1.input(says(ROS[1], word)));
    for _ in 0..2 {
        assert!(level1.level1.next_deadline().is_some_and(|due| due <= level1.now), "it goes on at once");
        lasts.extend(told(level1.input(Input::Deadline)));
    }
    assert_eq!(lasts, [1, 2, 3].map(|calls| calls << 12));
    level1.tell(1, 0, 1, 1);
    let more = (0..100).flat_map(|_| told(level1.input(Input::Deadline))).max();
    assert_eq!(more, Some(FAR), "the next word is believed");
    assert_eq!(level1.level1.next_deadline(), None);
    assert_eq!(level1.counters().vetoed, 0, "it is paused");
}

/// It has not heard that its sources are to stop, and the run would wait for them for ever.
#[test]
fn a_read_out_system_that_returns_at_the_end_is_told_to_stop_its_sources() {
    let mut level1 = Metronome::running(100);
    level1.tell(0, 0, 3, 3);
    level1.input(Input::Peer { node: ROS[0], state: PeerState::Down });
    level1.input(Input::Command(Command::Drain));
    let told = level1.input(Input::Peer { node: ROS[0], state: PeerState::Up(Incarnation(1)) });
    assert!(told.contains(&Action::Send { to: ROS[0], message: Message::Lead(false) }), "{told:?}");
}

/// Its sources may be full of older ones, and level 1 waited for what they would never say.
#[test]
fn a_read_out_system_that_returns_is_told_of_slices_that_were_left_out() {
    let mut level1 = Metronome::running(100);
    level1.input(says(ROS[0], Message::Busy { cause: BusyCause::Pages, on: true }));
    level1.tell(0, 0, 9, 9);
    level1.tell(1, 0, 9, 9);
    level1.input(Input::Peer { node: ROS[1], state: PeerState::Down });
    let told = level1.input(Input::Peer { node: ROS[1], state: PeerState::Up(Incarnation(1)) });
    assert_eq!((level1.counters().issued, level1.counters().vetoed), (0, 9));
    assert!(told.contains(&Action::Send { to: ROS[1], message: Message::IssuedUpTo(EventId(8)) }), "{told:?}");
}

/// Else it would ask to be called at once, again and again.
#[test]
fn a_level_1_that_drains_asks_for_no_look_at_slices_that_are_left() {
    let mut level1 = Metronome::running(2);
    level1.tell(0, 0, 9, 9);
    assert_eq!(level1.tell(1, 0, 4, 4), [0, 1], "there is no room for two more");
    level1.input(Input::Command(Command::Abandon));
    level1.now = level1.now + GRACE * 3;
    level1.input(Input::Deadline);
    assert_eq!(level1.level1.next_deadline(), None);
}

/// A read-out system with two links of six pages each.
struct Driver {
    ros: Ros,
    now: Time,
    sequence: u32,
}

impl Driver {
    fn running(timed: TimedParameters) -> Self {
        let each = LinkParameters { timed: Some(timed), ..LinkParameters::default() };
        let ros = Ros::new(RosParameters {
            robs: vec![0, 1],
            pages_per_rob: 6,
            busy_above: 4,
            busy_below: 3,
            request_timeout: Duration::from_secs(1),
            group_bytes_max: 10_000,
            read_out: ReadOut::Pushed,
            links: LinksParameters {
                each: vec![each; 2],
                grace: GRACE,
                slice: Some(Slices { length: LENGTH, window: LENGTH, before: 0, after: 0, apart: 10 }),
                wait: Duration::ZERO,
                by_triggers: false,
                framing: Some(Arc::new(Heads)),
            },
            push: None,
            level1: Some(LEVEL1),
            in_flight: 4,
            dfm: DFM,
            sampling: None,
            late: false,
        });
        let mut driver = Self { ros, now: Time::ZERO, sequence: 0 };
        driver.pass([LEVEL1, DFM, SFI].map(|node| Input::Peer { node, state: PeerState::Up(Incarnation(0)) }));
        driver.pass([link(0, LinkNews::Up), link(1, LinkNews::Up), Input::Command(Command::Start)]);
        driver
    }

    fn pass(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Action> {
        let mut out = Outbox::new();
        for input in inputs {
            self.ros.handle(self.now, input, &mut out);
            self.ros.check();
        }
        self.ros.flush(self.now, &mut out);
        out.drain().collect()
    }

    fn told(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Passed> {
        let told = told_of(self.pass(inputs));
        let more = told_of(self.pass(told.iter().map(|_| says(LEVEL1, Message::PassedTaken))));
        assert_eq!(more, [], "all was told at once");
        told
    }

    /// The ROBs without data of an event.
    fn reply(&mut self, event: u64) -> Vec<u32> {
        self.request(event, Vec::new()).map(|(missing, _)| missing).unwrap()
    }

    /// Slices that a link has a fragment of, with their chunks and their status.
    fn fragments(&mut self, rob: u32) -> Vec<(u64, [u32; 2])> {
        let newest = 9;
        let of = |event| Some((event, self.request(event, vec![rob])?.1?));
        (0..newest).filter_map(of).collect()
    }

    fn request(&mut self, event: u64, robs: Vec<u32>) -> Option<(Vec<u32>, Option<[u32; 2]>)> {
        self.sequence += 1;
        let info = EventInfo { event: EventId(event), ..EventInfo::default() };
        let requests = vec![DataRequest { event: info, attempt: 1, request: self.sequence, robs }];
        let actions = self.pass([says(SFI, Message::EventRequest { requests: requests.into() })]);
        let reply = actions.into_iter().find_map(|action| match action {
            Action::Send { message: Message::EventReply { replies, bulk, .. }, .. } => Some((replies, bulk)),
            _ => None,
        });
        let (replies, bulk) = reply?;
        let missing: Vec<u32> = replies[0].missing.iter().map(|missing| missing.rob).collect();
        let head = match bulk {
            Bulk::Modelled { len_bytes, seed } if len_bytes > 0 => Some([len_bytes - 1, seed]),
            _ => None,
        };
        Some((missing, head))
    }

    fn counters(&self, rob: usize) -> RosCounters {
        self.ros.report(self.now).links[rob].counters
    }

    /// Chunks that came, were in slices that were cleared, were late, or in slices that were left out, and those that are there.
    fn books(&self, rob: usize) -> [u64; 5] {
        let c = self.counters(rob);
        assert_eq!(self.ros.report(self.now).links[rob].state, LinkState::Up);
        [c.fragments_in, c.cleared, c.dropped_old, c.never_triggered, c.resident]
    }
}

/// As many bytes as there are chunks, and one; the status for the content.
#[derive(Debug)]
struct Heads;

impl Framing for Heads {
    fn frame(&self, head: &TimedHead, chunks: Bulk) -> Bulk {
        assert_eq!(chunks.len(), head.chunks as usize * CHUNK_BYTES as usize);
        Bulk::Modelled { len_bytes: head.chunks + 1, seed: head.status }
    }
}

/// Level 1 before two read-out systems.
struct Metronome {
    level1: Level1,
    now: Time,
}

impl Metronome {
    fn running(in_flight: u64) -> Self {
        let parameters = Level1Parameters {
            readout: ROS.to_vec(),
            deciders: vec![DFM],
            in_flight,
            ..level1::parameters(Spacing::Unlimited, None)
        };
        let slices = Sliced::of(Duration::from_millis(1), GRACE, ROS.to_vec());
        let level1 = Level1::new(parameters, TriggerInput::Time(slices));
        let mut driver = Self { level1, now: Time::from_ns(1000) };
        for node in [ROS[0], ROS[1], DFM] {
            driver.input(Input::Peer { node, state: PeerState::Up(Incarnation(0)) });
        }
        for ros in ROS {
            driver.input(says(ros, Message::Busy { cause: BusyCause::Source, on: false }));
        }
        driver.input(Input::Command(Command::Start));
        driver
    }

    fn input(&mut self, input: Input) -> Vec<Action> {
        let mut out = Outbox::new();
        self.level1.handle(self.now, input, &mut out);
        self.level1.check();
        spread(&mut out)
    }

    /// The slices that are issued, which is said to all alike.
    fn issued(&mut self, input: Input) -> Vec<u64> {
        let actions = self.input(input);
        let to = |node| {
            let said = actions.iter().filter_map(move |action| match action {
                Action::Send { to, message: Message::L1Accept { events, .. } } if *to == node => Some(events),
                _ => None,
            });
            said.flatten().map(|event| event.event.0).collect::<Vec<_>>()
        };
        assert_eq!(to(ROS[0]), to(ROS[1]));
        to(ROS[0])
    }

    fn tell(&mut self, ros: usize, first: u64, all: u64, any: u64) -> Vec<u64> {
        self.issued(says(ROS[ros], Message::Passed(Passed { first, all, any, last: false })))
    }

    fn last(&mut self, ros: usize, end: u64) -> Vec<u64> {
        self.issued(says(ROS[ros], Message::Passed(Passed { first: 7, all: end, any: end, last: true })))
    }

    fn counters(&self) -> Level1Counters {
        Level1Counters::from_values(&self.level1.report(self.now).counters)
    }
}

fn busy_of(action: &Action) -> Option<bool> {
    if let Action::Send { message: Message::Busy { on, .. }, .. } = action { Some(*on) } else { None }
}

fn told_of(actions: Vec<Action>) -> Vec<Passed> {
    let said = |action| {
        if let Action::Send { message: Message::Passed(passed), .. } = action { Some(passed) } else { None }
    };
    actions.into_iter().filter_map(said).collect()
}

fn timed() -> TimedParameters {
    TimedParameters { chunks_max: 9, ..TimedParameters::default() }
}

fn says(from: NodeId, message: Message) -> Input {
    Input::Message { from, message }
}

fn link(rob: u16, news: LinkNews) -> Input {
    Input::Link { rob, news }
}

fn chunk(rob: u16, begin: u64, end: u64) -> Input {
    let bulk = Bulk::Modelled { len_bytes: CHUNK_BYTES, seed: 0 };
    let time = if begin == u64::MAX { Interval::default() } else { Interval::new(begin, end) };
    link(rob, LinkNews::Chunk { time, count: 0, status: 0, bulk })
}

fn passed(rob: u16, time: u64) -> Input {
    link(rob, LinkNews::Passed(time))
}

fn accept(events: &[u64]) -> Input {
    let info = |&event: &u64| EventInfo { event: EventId(event), ..EventInfo::default() };
    says(LEVEL1, pass::accept(events.iter().map(info).collect()))
}

fn clear(sequence: u64, oldest_valid: u64, events: &[u64]) -> Input {
    let events: Vec<EventId> = events.iter().map(|event| EventId(*event)).collect();
    says(DFM, Message::Clear { sequence, oldest_valid: EventId(oldest_valid), last: false, events: events.into() })
}

const CHUNK_BYTES: u32 = 100;
