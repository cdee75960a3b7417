//! Events are triggers of a leading source, and the data of others belong to them by time or count.

use std::sync::Arc;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, LinkNews, LinkOrder, Note, PeerState};
use dataflow::message::{Command, DataRequest, EventInfo, LinkTrigger, Message};
use dataflow::readout::fragment::{FragmentHead, status};
use dataflow::readout::ros::{
    Framing, LinkParameters, LinksParameters, ReadOut, Ros, RosParameters, TimedHead, TimedParameters,
};
use dataflow::readout::rule::{Axis, Rule};
use dataflow::readout::watch::{Finding, Watched};
use dataflow::report::RosCounters;
use timing::Interval;

use crate::pass::pass;

const LEVEL1: NodeId = NodeId(1);
const DFM: NodeId = NodeId(3);
const SFI: NodeId = NodeId(4);
const LEADER: u16 = 0;
const DEVICE: u16 = 1;
const WAIT: Duration = Duration::from_millis(5);

#[test]
fn the_read_out_system_of_the_leader_tells_when_its_triggers_were() {
    let mut ros = Driver::running(by_time());
    let sent = [(7, 1000), (9, 2000), (10, 1 << 60), (11, 3000)].map(|(event, begin)| lead(event, begin));
    let wild = Interval::default();
    let at = |begin| Interval::new(begin, begin + 10);
    assert_eq!(ros.told(sent), [(7, at(1000)), (9, at(2000)), (10, wild), (11, at(3000))]);
}

#[test]
fn an_event_has_the_data_around_its_time_and_data_may_have_several() {
    let mut ros = Driver::running(by_time());
    ros.pass([data(1, 2), data(905, 906), data(1009, 1050), data(1029, 1030), data(1061, 1062)]);
    ros.pass([accept(&[(7, 1000), (9, 1020)]), link(DEVICE, LinkNews::Passed(1080))]);
    assert_eq!(ros.fragments([7, 9]), [Some([3, 0]); 2], "from 100 before to 50 behind");
    ros.pass([clear(1, &[7])]);
    assert_eq!(ros.books(), [5, 1, 1, 3], "the first belongs to none, the second one only to the first event");
    ros.pass([clear(2, &[9])]);
    ros.pass([accept(&[(12, 5000)])]);
    assert_eq!(ros.books(), [5, 4, 1, 0], "no later event reaches back so far");
}

#[test]
fn an_event_waits_until_the_source_has_passed_its_end() {
    let mut ros = Driver::running(by_time());
    ros.pass([data(990, 991), accept(&[(7, 1000)])]);
    assert_eq!(ros.fragments([7]), [None]);
    let passed = |time| link(DEVICE, LinkNews::Passed(time));
    assert_eq!(ros.replies([passed(1059)]), []);
    assert_eq!(ros.replies([passed(1060)]), [(7, vec![])]);
    ros.pass([accept(&[(8, 3000)])]);
    ros.pass([passed(4000)]);
    assert_eq!(ros.fragments([8]), [Some([0, 0])], "empty, and not missing");
}

#[test]
fn an_event_that_has_waited_for_long_is_made_of_what_is_there_and_marked() {
    let mut ros = Driver::running(by_time());
    ros.pass([data(990, 991), accept(&[(7, 1000)])]);
    ros.now = ros.ros.next_deadline().unwrap();
    ros.pass([Input::Deadline]);
    assert_eq!(ros.fragments([7]), [Some([1, status::TIMEOUT])]);
    ros.pass([accept(&[(9, 9000)])]);
    ros.pass([data(992, 993), data(1070, 1071)]);
    let c = ros.counters();
    assert_eq!((c.dropped_old, c.never_triggered), (1, 1), "the one is late, and the other had no event");
}

#[test]
fn what_is_lost_is_missing_and_an_event_without_a_time_as_well() {
    let mut ros = Driver::running(by_time());
    ros.pass([data(990, 991), says(LEVEL1, accepting(&[(6, None), (7, Some(1000))])), link(DEVICE, LinkNews::Down)]);
    assert_eq!(ros.ask(6), [(6, vec![(DEVICE, true)])]);
    ros.now = ros.now + WAIT;
    ros.pass([Input::Deadline, accept(&[(8, 2000)])]);
    assert_eq!(ros.fragments([7]), [Some([1, status::TIMEOUT])]);
    assert_eq!(ros.ask(8), [(8, vec![(DEVICE, true)])]);
}

#[test]
fn a_part_of_the_data_is_none_where_all_are_demanded() {
    let mut ros = Driver::with(LinkParameters { timed: Some(by_time()), whole: true, ..LinkParameters::default() });
    ros.pass([data(990, 991), accept(&[(7, 1000)])]);
    ros.now = ros.now + WAIT;
    ros.pass([Input::Deadline]);
    assert_eq!(ros.ask(7), [(7, vec![(DEVICE, true)])]);
    assert_eq!(ros.counters().unpassed, 1);
}

#[test]
fn an_event_waits_for_the_time_of_a_source_as_long_as_that_is_there() {
    let device = LinkParameters { timed: Some(by_time()), awaited: true, ..LinkParameters::default() };
    let mut ros = Driver::with(device);
    ros.pass([data(990, 991), accept(&[(7, 1000)])]);
    ros.now = ros.now + WAIT * 10;
    ros.pass([Input::Deadline]);
    assert_eq!(ros.fragments([7]), [None]);
    ros.pass([link(DEVICE, LinkNews::Passed(5000))]);
    assert_eq!(ros.fragments([7]), [Some([1, 0])]);
}

#[test]
fn exclusive_frames_belong_to_an_event_only_as_a_whole() {
    let rule = Rule { exclusive: true, ..by_time().rule };
    let mut ros = Driver::running(TimedParameters { rule, ..by_time() });
    ros.pass([data(890, 910), data(900, 1060), data(1050, 1070), data(1060, 1061), accept(&[(7, 1000)])]);
    assert_eq!(ros.fragments([7]), [Some([1, 0])]);
}

#[test]
fn by_count_the_nth_fragment_is_of_the_nth_trigger_whatever_its_number() {
    let rule = Rule { axis: Axis::Count, offset: -1, ..Rule::default() };
    let mut ros = Driver::running(TimedParameters { rule, chunks_max: 1 });
    let count = |count| data(count, count + 1);
    ros.pass([count(1), count(2), count(4)]);
    ros.pass([accept(&[(70, 1000), (90, 2000), (91, 3000), (95, 4000)])]);
    assert_eq!(ros.fragments([70, 90, 95]), [Some([1, 0]); 3]);
    assert_eq!(ros.ask(91), [(91, vec![(DEVICE, true)])], "it has counted on without it");
    ros.pass([clear(1, &[70, 90, 91, 95])]);
    assert_eq!((ros.books(), ros.counters().absent), ([3, 2, 0, 1], 1));
}

#[test]
fn a_device_that_is_full_goes_on_when_a_trigger_says_what_nobody_needs() {
    let mut ros = Driver::running(by_time());
    let order = |order| Action::Link { rob: DEVICE, order };
    let off = ros.pass((0..5).map(|at| data(at * 100, at * 100 + 10)));
    assert_eq!(off, [order(LinkOrder::Off)]);
    let on = ros.pass([accept(&[(1, 5000)])]);
    assert!(on.contains(&order(LinkOrder::On)), "{on:?}");
}

/// The link stayed off, and the event waited for what was behind that, with room for it.
#[test]
fn a_device_that_is_off_goes_on_when_an_event_waits_for_it_and_there_is_room() {
    let rule = Rule { axis: Axis::Count, ..Rule::default() };
    let mut ros = Driver::running(TimedParameters { rule, chunks_max: 1 });
    let order = |order| Action::Link { rob: DEVICE, order };
    let at = |ordinal| {
        let event = EventInfo { event: EventId(ordinal), ordinal, ..EventInfo::default() };
        says(LEVEL1, Message::L1Accept { events: vec![event], times: Vec::new() })
    };
    ros.pass((0..5).map(at));
    let off = ros.pass((0..5).map(|count| data(count, count + 1)));
    assert_eq!(off, [order(LinkOrder::Off)]);
    assert_eq!(ros.pass([clear(1, &[0])]), [], "nothing waits for the device");
    assert_eq!(ros.pass([at(5)]), [order(LinkOrder::On)]);
}

/// Data of events that were cleared without them filled the link. So the data of later events could not come.
#[test]
fn data_of_events_that_were_cleared_without_them_leave_room_for_those_of_an_event_that_waits() {
    let rule = Rule { axis: Axis::Count, ..Rule::default() };
    for clears_first in [true, false] {
        let mut ros = Driver::running(TimedParameters { rule, chunks_max: 1 });
        let info = |ordinal| EventInfo { event: EventId(ordinal), ordinal, ..EventInfo::default() };
        ros.pass([says(LEVEL1, Message::L1Accept { events: (0..8).map(info).collect(), times: Vec::new() })]);
        let cleared = clear(1, &[0, 1, 2, 3, 4, 5]);
        let came = (0..5).map(|count| data(count, count + 1));
        let both = if clears_first {
            ros.pass(core::iter::once(cleared).chain(came))
        } else {
            ros.pass(came.chain([cleared]))
        };
        let mut orders = both.iter().filter(|action| matches!(action, Action::Link { .. }));
        let is_off = orders.next_back() == Some(&Action::Link { rob: DEVICE, order: LinkOrder::Off });
        assert!(!is_off, "clears first: {clears_first}: {both:?}");
        ros.pass((5..9).map(|count| data(count, count + 1)));
        assert_eq!(ros.fragments([6, 7]), [Some([1, 0]); 2]);
    }
}

/// Such an event was taken for one of which the device had nothing.
#[test]
fn an_event_of_the_time_that_its_source_was_gone_is_marked() {
    let mut ros = Driver::running(by_time());
    ros.pass([data(990, 991), link(DEVICE, LinkNews::Down), link(DEVICE, LinkNews::Up)]);
    ros.pass([accept(&[(7, 3000), (8, 6000)]), data(5800, 5801), data(5990, 5991), data(9000, 9001)]);
    assert_eq!(ros.fragments([7, 8]), [Some([0, status::TIMEOUT]), Some([1, 0])]);
}

/// Nothing is made for it in this life, and a builder waited for that as long as the source was there.
#[test]
fn an_event_before_this_life_is_not_awaited() {
    let rule = Rule { axis: Axis::Count, ..Rule::default() };
    let timed = Some(TimedParameters { rule, chunks_max: 1 });
    let mut ros = Driver::with(LinkParameters { timed, awaited: true, ..LinkParameters::default() });
    ros.pass([data(9, 10), says(LEVEL1, Message::IssuedUpTo(EventId(7)))]);
    assert_eq!(ros.ask(7), [(7, vec![(DEVICE, true)])]);
}

#[test]
fn a_wild_time_of_a_source_belongs_to_nothing() {
    let mut ros = Driver::running(by_time());
    ros.pass([data(10, 20), accept(&[(1, 1000)]), data(1 << 60, 1 << 61), link(DEVICE, LinkNews::Passed(1 << 60))]);
    assert_eq!(ros.fragments([1]), [None]);
    assert_eq!(ros.counters().dropped_unplaced, 1);
}

#[test]
fn events_follow_a_clock_that_says_times_alone() {
    let watched = Watched::Times { window: 100, in_step: false };
    let mut ros = Driver::with(LinkParameters { timed: Some(by_time()), watched, ..LinkParameters::default() });
    let mut sequence = 0;
    for event in 1..=200 {
        let begin = 100_000 * event + event * event * 7919 % 50_000;
        ros.pass([data(begin + 7_000_000, begin + 7_000_001), accept(&[(event, begin)])]);
        if event > 2 {
            sequence += 1;
            let of = event - 2;
            let expected = if of < 40 { None } else { Some([1, 0]) };
            assert!(of < 80 && of > 30 || ros.fragments([of]) == [expected], "event {of}");
            ros.pass([clear_from(sequence, of)]);
        }
    }
    assert_eq!(ros.ros.report(ros.now).links[usize::from(DEVICE)].clock.unwrap().offset_ns, 7_000_000);
}

#[test]
fn a_count_that_slips_is_noted_with_the_link() {
    let rule = Rule { axis: Axis::Count, ..Rule::default() };
    let timed = Some(TimedParameters { rule, chunks_max: 1 });
    let device = LinkParameters { timed, watched: Watched::Counts, ..LinkParameters::default() };
    let mut ros = Driver::with(device);
    let mut notes = Vec::new();
    for ordinal in 0..300 {
        let begin = 100_000 * ordinal + ordinal * ordinal * 7919 % 50_000;
        let bulk = Bulk::Modelled { len_bytes: 100, seed: 0 };
        let (time, count) = (Interval::new(begin, begin), ordinal - u64::from(ordinal > 150));
        let chunk = link(DEVICE, LinkNews::Chunk { time, count, status: 0, bulk });
        let Input::Message { message: Message::L1Accept { events, times }, from } = accept(&[(ordinal * 2, begin)])
        else {
            unreachable!("an accept")
        };
        let events = events.into_iter().map(|event| EventInfo { ordinal, ..event }).collect();
        let actions =
            ros.pass([chunk, says(from, Message::L1Accept { events, times }), clear_from(ordinal + 1, ordinal * 2)]);
        notes.extend(actions.into_iter().filter(|action| matches!(action, Action::Note(_))));
    }
    let [Action::Note(Note::Source { rob: 1, finding: Finding::Slip(slip) })] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!((slip.since, slip.by), (150, 1));
}

/// Two links of six pages each; the first leads.
struct Driver {
    ros: Ros,
    now: Time,
    sequence: u32,
}

impl Driver {
    fn running(timed: TimedParameters) -> Self {
        Self::with(LinkParameters { timed: Some(timed), ..LinkParameters::default() })
    }

    fn with(device: LinkParameters) -> Self {
        let leader = LinkParameters { leads: true, ..LinkParameters::default() };
        let ros = Ros::new(RosParameters {
            robs: vec![u32::from(LEADER), u32::from(DEVICE)],
            pages_per_rob: 6,
            busy_above: 4,
            busy_below: 3,
            request_timeout: Duration::from_secs(1),
            group_bytes_max: 10_000,
            read_out: ReadOut::Pushed,
            links: LinksParameters {
                each: vec![leader, device],
                grace: WAIT,
                wait: WAIT,
                by_triggers: true,
                framing: Some(Arc::new(Heads)),
                ..LinksParameters::default()
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
        driver.pass([link(LEADER, LinkNews::Up), link(DEVICE, LinkNews::Up), Input::Command(Command::Start)]);
        driver
    }

    fn pass(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Action> {
        let is_window = |action: &Action| matches!(action, Action::Send { message: Message::Taken(_), .. });
        pass(&mut self.ros, self.now, inputs).into_iter().filter(|action| !is_window(action)).collect()
    }

    fn told(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<(u64, Interval)> {
        let triggers = |action| match action {
            Action::Send { message: Message::LinkTriggers { triggers, .. }, .. } => triggers,
            _ => Vec::new(),
        };
        let told = self.pass(inputs).into_iter().flat_map(triggers);
        told.map(|LinkTrigger { event, time, .. }| (event.0, time)).collect()
    }

    /// Events that are answered, with the links that are missing, and whether these are lost.
    fn replies(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<(u64, Vec<(u16, bool)>)> {
        let all = self.pass(inputs).into_iter().flat_map(|action| match action {
            Action::Send { message: Message::EventReply { replies, .. }, .. } => replies,
            _ => Vec::new(),
        });
        let missing = |rob: u32, lost| (rob as u16, lost);
        all.map(|reply| (reply.event.0, reply.missing.iter().map(|m| missing(m.rob, m.lost)).collect())).collect()
    }

    fn ask(&mut self, event: u64) -> Vec<(u64, Vec<(u16, bool)>)> {
        let request = self.request(event);
        self.replies([request])
    }

    fn request(&mut self, event: u64) -> Input {
        self.sequence += 1;
        let info = EventInfo { event: EventId(event), ..EventInfo::default() };
        let robs = vec![u32::from(DEVICE)];
        let requests = vec![DataRequest { event: info, attempt: 1, request: self.sequence, robs }];
        says(SFI, Message::EventRequest { requests: requests.into() })
    }

    /// Of each event the chunks of the device, and the status of its fragment; nothing of what is not answered.
    fn fragments<const N: usize>(&mut self, events: [u64; N]) -> [Option<[u32; 2]>; N] {
        events.map(|event| {
            let request = self.request(event);
            let bulk = |action| match action {
                Action::Send {
                    message: Message::EventReply { bulk: Bulk::Modelled { len_bytes, seed }, .. }, ..
                } => Some([len_bytes - 1, seed]),
                _ => None,
            };
            self.pass([request]).into_iter().find_map(bulk)
        })
    }

    fn counters(&self) -> RosCounters {
        self.ros.report(self.now).links[usize::from(DEVICE)].counters
    }

    /// What came of the device, was in events that were cleared, belonged to none, and is there.
    fn books(&self) -> [u64; 4] {
        let c = self.counters();
        [c.fragments_in, c.cleared, c.never_triggered, c.resident]
    }
}

/// As many bytes as there are chunks, and one; the status for the content.
#[derive(Debug)]
struct Heads;

impl Framing for Heads {
    fn frame(&self, head: &TimedHead, _: Bulk) -> Bulk {
        Bulk::Modelled { len_bytes: head.chunks + 1, seed: head.status }
    }
}

fn by_time() -> TimedParameters {
    TimedParameters { rule: Rule { before: 100, after: 50, ..Rule::default() }, chunks_max: 9 }
}

fn says(from: NodeId, message: Message) -> Input {
    Input::Message { from, message }
}

fn link(rob: u16, news: LinkNews) -> Input {
    Input::Link { rob, news }
}

fn lead(event: u64, begin: u64) -> Input {
    let head = FragmentHead { event: EventId(event), status: 0, len_bytes: 100 };
    let (time, bulk) = (Interval::new(begin, begin + 10), Bulk::Modelled { len_bytes: 100, seed: 0 });
    link(LEADER, LinkNews::Fragment { head, trigger_type: 0, time, bulk })
}

fn data(begin: u64, end: u64) -> Input {
    let bulk = Bulk::Modelled { len_bytes: 100, seed: 0 };
    link(DEVICE, LinkNews::Chunk { time: Interval::new(begin, end), count: begin, status: 0, bulk })
}

/// Events with the begins of their times, the ordinals from 0 on with each message.
fn accept(events: &[(u64, u64)]) -> Input {
    says(LEVEL1, accepting(&events.iter().map(|(event, begin)| (*event, Some(*begin))).collect::<Vec<_>>()))
}

fn accepting(events: &[(u64, Option<u64>)]) -> Message {
    let info = |(ordinal, event)| EventInfo { event: EventId(event), ordinal, ..EventInfo::default() };
    let time = |begin: Option<u64>| begin.map_or(Interval::default(), |begin| Interval::new(begin, begin + 10));
    Message::L1Accept {
        events: (0..).zip(events.iter().map(|event| event.0)).map(info).collect(),
        times: events.iter().map(|event| time(event.1)).collect(),
    }
}

/// The oldest valid event is cleared.
fn clear_from(sequence: u64, event: u64) -> Input {
    let events = vec![EventId(event)];
    says(DFM, Message::Clear { sequence, oldest_valid: EventId(event), last: false, events: events.into() })
}

fn clear(sequence: u64, events: &[u64]) -> Input {
    let events: Vec<EventId> = events.iter().map(|event| EventId(*event)).collect();
    says(DFM, Message::Clear { sequence, oldest_valid: EventId(0), last: false, events: events.into() })
}
