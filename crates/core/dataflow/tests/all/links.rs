//! Links whose sources send by themselves: what a read-out system and level 1 make of what comes, whenever it comes.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, LinkNews, LinkOrder, Outbox, PeerState};
use dataflow::level1::led::Led;
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Level1Parameters, TriggerInput};
use dataflow::message::{BusyCause, Command, DataRequest, EventInfo, LinkTrigger, Message};
use dataflow::readout::fragment::FragmentHead;
use dataflow::readout::ros::{LinkParameters, LinksParameters, ReadOut, Ros, RosParameters};
use dataflow::report::{Counters, LinkReport, LinkState, RosCounters};
use timing::Interval;

use crate::level1;
use crate::pass::{accept as accepting, pass};

const LEVEL1: NodeId = NodeId(1);
const DFM: NodeId = NodeId(3);
const SFI: NodeId = NodeId(4);
const GRACE: Duration = Duration::from_millis(5);
const LEADER: u16 = 0;
const OTHER: u16 = 1;

#[test]
fn the_leading_source_begins_when_level_1_says_so_and_the_others_with_the_run() {
    let mut ros = Driver::new();
    let up = |rob| link(rob, LinkNews::Up);
    assert_eq!(ros.pass([up(OTHER)]), []);
    let told = ros.pass([up(LEADER)]);
    assert_eq!(told, [to_level1(Message::Busy { cause: BusyCause::Source, on: false })], "all have come");
    let started = |rob| Action::Link { rob, order: LinkOrder::Start };
    assert_eq!(ros.pass([Input::Command(Command::Start)]), [started(OTHER)]);
    assert_eq!(ros.pass([says(LEVEL1, Message::Lead(true))]), [started(LEADER)]);
}

#[test]
fn a_source_that_comes_and_goes_makes_few_words_of_it() {
    let mut ros = Driver::new();
    let busy = |on| to_level1(Message::Busy { cause: BusyCause::Source, on });
    let [up, down] = [|| link(OTHER, LinkNews::Up), || link(OTHER, LinkNews::Down)];
    assert_eq!(ros.pass([link(LEADER, LinkNews::Up), up()]), [busy(false)]);
    assert_eq!(ros.pass([down()]), [busy(true)]);
    for _ in 0..100 {
        assert_eq!(ros.pass([up()]), []);
        assert_eq!(ros.pass([down()]), []);
    }
    assert_eq!(ros.pass([up()]), []);
    ros.now = ros.now + GRACE;
    assert_eq!(ros.pass([Input::Deadline]), [busy(false)]);
    assert_eq!(ros.pass([down(), up()]), [busy(true)], "it may be told that again");
}

#[test]
fn fragments_of_the_leading_source_are_triggers_as_many_as_the_window_holds() {
    let mut ros = Driver::running();
    let told = ros.pass([fragment(LEADER, 10), fragment(LEADER, 13), fragment(LEADER, 12), fragment(LEADER, 20)]);
    assert_eq!(triggers(&told), [(vec![10, 13, 20], false)], "in one message; one that goes back is none");
    assert_eq!(triggers(&ros.pass([fragment(LEADER, 21), fragment(LEADER, 22)])), [(vec![21], false)]);
    assert_eq!(triggers(&ros.pass([accept(&[10])])), [(vec![22], false)]);
    let over = ros.pass([link(LEADER, LinkNews::Ended { sent: 6 })]);
    assert_eq!(triggers(&over), [(vec![], true)]);
    assert_eq!(ros.of(LEADER).counters.dropped_old, 1);
}

#[test]
fn a_fragment_that_came_before_its_trigger_answers_at_once_and_one_that_was_skipped_is_lost() {
    let mut ros = Driver::running();
    ros.pass([fragment(LEADER, 1), fragment(LEADER, 2), fragment(OTHER, 1), fragment(OTHER, 3), accept(&[1, 2])]);
    assert_eq!(replies(&ros.pass([request(1), request(2)])), [(1, vec![]), (2, vec![(OTHER, true)])]);
    ros.pass([clear(1, 3, &[1, 2], false)]);
    let c = ros.of(OTHER).counters;
    assert_eq!([c.cleared, c.absent, c.resident, c.fragments_in], [1, 1, 1, 2]);
}

#[test]
fn a_fragment_that_comes_behind_its_trigger_answers_who_waits() {
    let mut ros = Driver::running();
    ros.pass([fragment(LEADER, 1), fragment(LEADER, 2), accept(&[1, 2])]);
    assert_eq!(replies(&ros.pass([request(1), request(2)])), []);
    assert_eq!(replies(&ros.pass([fragment(OTHER, 1)])), [(1, vec![])]);
    assert_eq!(replies(&ros.pass([link(OTHER, LinkNews::Idle(EventId(3)))])), [(2, vec![(OTHER, true)])]);
}

#[test]
fn what_a_source_has_still_to_send_is_waited_for_when_the_front_of_the_crate_has_returned() {
    let mut ros = Driver::running();
    ros.pass([fragment(LEADER, 1), fragment(LEADER, 2), fragment(OTHER, 1), accept(&[1])]);
    ros.pass([Input::Peer { node: LEVEL1, state: PeerState::Up(Incarnation(1)) }]);
    ros.pass([says(LEVEL1, Message::IssuedUpTo(EventId(2)))]);
    assert_eq!(replies(&ros.pass([request(2)])), []);
    assert_eq!(replies(&ros.pass([fragment(OTHER, 2)])), [(2, vec![])]);
}

#[test]
fn a_source_without_order_may_send_an_older_event_until_the_time_out() {
    let mut ros = Driver::with(LinkParameters { unordered: true, ..LinkParameters::default() });
    ros.pass([fragment(LEADER, 1), fragment(LEADER, 2), fragment(OTHER, 2), accept(&[1, 2])]);
    assert_eq!(replies(&ros.pass([request(1)])), []);
    assert_eq!(replies(&ros.pass([fragment(OTHER, 1)])), [(1, vec![])]);
}

#[test]
fn a_fragment_that_comes_when_its_event_was_answered_without_it_is_late_and_in_no_event() {
    let mut ros = Driver::with(LinkParameters { unordered: true, ..LinkParameters::default() });
    let triggers = [1, 2, 3].map(|event| fragment(LEADER, event));
    ros.pass(triggers.into_iter().chain([accept(&[1, 2, 3])]));
    assert_eq!(replies(&ros.pass([request(1), request(2), request(3)])), []);
    ros.now = ros.now + Duration::from_secs(1);
    assert_eq!(replies(&ros.pass([Input::Deadline])).len(), 3, "without it, at the time-out");
    ros.pass([1, 2, 3].map(|event| fragment(OTHER, event)));
    assert_eq!(replies(&ros.pass([request(2)])), [(2, vec![])], "whoever asks again has it");
    ros.pass([clear(1, 3, &[1, 2], false)]);
    let books = |ros: &Driver| {
        let c = ros.of(OTHER).counters;
        [c.fragments_in, c.cleared, c.dropped_cleared, c.absent, c.garbage_collected]
    };
    assert_eq!(books(&ros), [3, 1, 1, 1, 0]);
    ros.pass([clear(2, 4, &[], false)]);
    assert_eq!(books(&ros), [3, 1, 2, 1, 0], "the clear of 3 is lost");
    assert_eq!(ros.of(LEADER).counters.cleared, 2);
}

#[test]
fn events_of_no_trigger_are_removed_and_counted_when_older_ones_are_not_valid_any_more() {
    let mut ros = Driver::running();
    let sent = [1, 2, 3, 4, 5].map(|event| fragment(OTHER, event));
    ros.pass(sent.into_iter().chain([fragment(LEADER, 1), fragment(LEADER, 4), accept(&[1, 4])]));
    ros.pass([clear(1, 4, &[1], false)]);
    let c = ros.of(OTHER).counters;
    assert_eq!([c.cleared, c.never_triggered, c.resident, c.garbage_collected], [1, 2, 2, 0], "5 may come");
    ros.pass([clear(2, 5, &[4], true), Input::Command(Command::Drain)]);
    ros.pass([link(OTHER, LinkNews::Ended { sent: 5 }), link(LEADER, LinkNews::Ended { sent: 2 })]);
    assert!(ros.ros.is_drained());
    let c = ros.of(OTHER).counters;
    assert_eq!([c.cleared, c.never_triggered, c.resident, c.announced], [2, 2, 1, 5]);
}

#[test]
fn a_full_link_is_turned_off_alone_and_on_again() {
    let mut ros = Driver::running();
    let order = |rob, order| Action::Link { rob, order };
    let ahead: Vec<_> = (1..=5).map(|event| fragment(OTHER, event)).collect();
    assert_eq!(ros.pass(ahead), [order(OTHER, LinkOrder::Off)]);
    ros.pass((1..=3).map(|event| fragment(LEADER, event)).chain([accept(&[1, 2, 3])]));
    assert_eq!(ros.pass([clear(1, 4, &[1, 2, 3], false)]).last(), Some(&order(OTHER, LinkOrder::On)));
}

/// Between the limits it would wait for clears, and its fragment would be too late for the event.
#[test]
fn a_link_that_is_off_is_turned_on_for_a_trigger_that_it_lacks_as_soon_as_there_is_room() {
    let mut ros = Driver::running();
    let on = Action::Link { rob: OTHER, order: LinkOrder::On };
    ros.pass((1..=5).map(|event| fragment(OTHER, event)));
    assert!(!ros.pass([accept(&[1, 2, 3, 4, 5])]).contains(&on), "it has sent them all");
    assert!(!ros.pass([accept(&[6])]).contains(&on), "it has no room");
    assert!(!ros.pass([fragment(LEADER, 1), request(1)]).contains(&on));
    assert!(ros.pass([clear(1, 2, &[1], false)]).contains(&on), "above the lower limit");
}

/// The hand-shake of a EUDET TLU: the next trigger comes when this one is issued and every device has been read out.
#[test]
fn one_by_one_a_trigger_waits_for_level_1_and_for_all_that_follow() {
    let one_by_one = LinkParameters { one_by_one: true, ..LinkParameters::default() };
    let on = Action::Link { rob: LEADER, order: LinkOrder::On };
    let mut ros = Driver::between(LinkParameters { leads: true, ..one_by_one }, one_by_one);
    assert!(!ros.pass([fragment(LEADER, 1)]).contains(&on));
    assert!(!ros.pass([accept(&[1])]).contains(&on), "the other source has not sent its fragment");
    assert!(ros.pass([fragment(OTHER, 1)]).contains(&on));
    assert!(!ros.pass([fragment(OTHER, 2), fragment(LEADER, 2)]).contains(&on), "it is not issued");
    assert!(ros.pass([accept(&[2])]).contains(&on));
    assert!(ros.pass([fragment(LEADER, 2)]).contains(&on), "what is no trigger is not waited for");
    ros.pass([fragment(LEADER, 3), accept(&[3])]);
    assert!(ros.pass([link(OTHER, LinkNews::Down)]).contains(&on), "nor is a source that is away");
    ros.pass([link(OTHER, LinkNews::Up), fragment(LEADER, 4), accept(&[4])]);
    assert!(ros.pass([link(OTHER, LinkNews::Idle(EventId(5)))]).contains(&on), "nor one that has gone past it");
}

/// Else the leader would wait for ever for a fragment that went with the former life.
#[test]
fn a_device_that_may_have_answered_the_former_life_is_waited_for_until_the_event_is_cleared() {
    let one_by_one = LinkParameters { one_by_one: true, ..LinkParameters::default() };
    let leader = LinkParameters { leads: true, ..one_by_one };
    let on = Action::Link { rob: LEADER, order: LinkOrder::On };
    for late in [false, true] {
        let mut ros = Driver::in_life(leader, one_by_one, late).started();
        if late {
            ros.pass([says(LEVEL1, Message::IssuedUpTo(EventId(0)))]);
        }
        assert!(!ros.pass([fragment(LEADER, 1), accept(&[1])]).contains(&on));
        assert_eq!(ros.pass([clear(1, 1, &[1], false)]).contains(&on), late);
        assert!(ros.pass([fragment(OTHER, 2), fragment(LEADER, 2), accept(&[2])]).contains(&on));
        assert!(!ros.pass([fragment(LEADER, 3), accept(&[3])]).contains(&on));
        assert!(!ros.pass([clear(2, 3, &[3], false)]).contains(&on), "it answers this life");
    }
}

#[test]
fn a_source_that_is_lost_is_done_without_after_a_grace_and_goes_on_when_it_returns() {
    let mut ros = Driver::running();
    ros.pass([fragment(LEADER, 1), fragment(LEADER, 2), accept(&[1, 2]), link(OTHER, LinkNews::Down)]);
    assert_eq!(replies(&ros.pass([request(1)])), []);
    assert_eq!(ros.of(OTHER).state, LinkState::Down);
    ros.now = ros.ros.next_deadline().unwrap();
    ros.now = ros.now.max(Time::ZERO + GRACE);
    assert_eq!(replies(&ros.pass([Input::Deadline])), [(1, vec![(OTHER, true)])]);
    assert_eq!(ros.of(OTHER).state, LinkState::Lost);
    let started = Action::Link { rob: OTHER, order: LinkOrder::Start };
    assert_eq!(ros.pass([link(OTHER, LinkNews::Up)]), [started]);
    assert_eq!(replies(&ros.pass([request(2)])), []);
    assert_eq!(replies(&ros.pass([fragment(OTHER, 2)])), [(2, vec![])]);
    assert_eq!(ros.of(OTHER).counters.sources_lost, 1);
}

#[test]
fn a_leading_source_that_is_lost_ends_the_triggers() {
    let mut ros = Driver::running();
    ros.pass([fragment(LEADER, 1), link(LEADER, LinkNews::Down)]);
    ros.now = Time::ZERO + GRACE;
    assert_eq!(triggers(&ros.pass([Input::Deadline])), [(vec![], true)]);
}

#[test]
fn a_source_that_does_not_stop_is_not_waited_for() {
    let mut ros = Driver::running();
    let stops = ros.pass([says(LEVEL1, Message::Lead(false))]);
    assert_eq!(stops, [Action::Link { rob: LEADER, order: LinkOrder::Stop }]);
    assert_eq!(triggers(&ros.pass([fragment(LEADER, 1)])), [(vec![1], false)], "what it had still to send");
    ros.now = Time::ZERO + GRACE;
    assert_eq!(triggers(&ros.pass([Input::Deadline])), [(vec![], true)]);
    ros.pass([accept(&[1]), clear(1, 2, &[1], true), Input::Command(Command::Drain)]);
    assert!(!ros.ros.is_drained());
    ros.now = ros.now + GRACE;
    ros.pass([Input::Deadline]);
    assert!(ros.ros.is_drained());
}

#[test]
fn a_wild_number_is_refused_and_makes_no_other_late() {
    let mut ros = Driver::running();
    ros.pass([fragment(OTHER, 1), fragment(OTHER, 1 << 40), fragment(LEADER, 1), fragment(LEADER, 2), accept(&[1, 2])]);
    assert_eq!(replies(&ros.pass([request(2)])), []);
    assert_eq!(replies(&ros.pass([fragment(OTHER, 2)])), [(2, vec![])]);
    assert_eq!(ros.of(OTHER).counters.dropped_unplaced, 1);
}

#[test]
fn an_event_is_complete_without_a_source_that_is_tolerated() {
    let mut ros = Driver::with(LinkParameters { tolerated: true, ..LinkParameters::default() });
    ros.pass([fragment(LEADER, 1), fragment(OTHER, 2), accept(&[1])]);
    assert_eq!(replies(&ros.pass([request(1)])), [(1, vec![])]);
    ros.pass([clear(1, 2, &[1], false)]);
    assert_eq!(ros.of(OTHER).counters.absent, 1, "and yet it is counted");
}

#[test]
fn an_event_waits_for_a_source_as_long_as_that_is_there() {
    let mut ros = Driver::with(LinkParameters { awaited: true, ..LinkParameters::default() });
    ros.pass([fragment(LEADER, 1), fragment(LEADER, 2), accept(&[1, 2]), request(1), request(2)]);
    for _ in 0..5 {
        ros.now = ros.ros.next_deadline().unwrap().max(ros.now + Duration::from_secs(1));
        assert_eq!(replies(&ros.pass([Input::Deadline])), []);
        assert_eq!(replies(&ros.pass([request(2)])), [], "asked once more");
    }
    assert_eq!(replies(&ros.pass([fragment(OTHER, 1)])), [(1, vec![])]);
    assert_eq!(replies(&ros.pass([link(OTHER, LinkNews::Down)])), []);
    ros.now = ros.now + GRACE;
    assert_eq!(replies(&ros.pass([Input::Deadline])), [(2, vec![(OTHER, true)])], "once, however often it was asked");
}

#[test]
fn level_1_gives_events_the_numbers_of_the_leading_source_and_waits_for_its_end() {
    let mut level1 = LedLevel1::new();
    assert_eq!(level1.input(Input::Command(Command::Start)), [], "the sources have not come");
    let ready = Message::Busy { cause: BusyCause::Source, on: false };
    assert_eq!(level1.input(says(SFI, ready)), [to_ros(Message::Lead(true))]);
    assert_eq!(level1.issued(&[7, 9], false), [(7, 0), (9, 1)]);
    assert_eq!(level1.input(Input::Command(Command::Drain)), [to_ros(Message::Lead(false))]);
    assert!(!level1.level1.is_drained(), "more may be on its way");
    assert_eq!(level1.issued(&[9, 12], true), [(12, 2)], "what a former life has told is none");
    assert!(level1.level1.is_drained());
}

#[test]
fn a_pause_does_not_stop_the_leading_source_and_its_loss_ends_the_run() {
    let mut level1 = LedLevel1::new();
    level1.input(Input::Command(Command::Start));
    level1.input(says(SFI, Message::Busy { cause: BusyCause::Source, on: false }));
    assert_eq!(level1.input(Input::Command(Command::Pause)), []);
    assert_eq!(level1.issued(&[1], false), []);
    assert_eq!(level1.infos(Input::Command(Command::Resume)), [(1, 0)]);
    let gone = level1.input(Input::Peer { node: SFI, state: PeerState::Gone });
    assert!(gone.contains(&Action::Send { to: NodeId(0), message: Message::Exhausted }), "{gone:?}");
}

struct Driver {
    ros: Ros,
    now: Time,
}

impl Driver {
    /// Two links with six pages each; the first leads.
    fn new() -> Self {
        Self::unconnected(LinkParameters { leads: true, ..LinkParameters::default() }, LinkParameters::default())
    }

    fn running() -> Self {
        Self::with(LinkParameters::default())
    }

    fn with(other: LinkParameters) -> Self {
        Self::between(LinkParameters { leads: true, ..LinkParameters::default() }, other)
    }

    fn between(leader: LinkParameters, other: LinkParameters) -> Self {
        Self::unconnected(leader, other).started()
    }

    fn started(mut self) -> Self {
        let up = |rob| link(rob, LinkNews::Up);
        self.pass([up(LEADER), up(OTHER), Input::Command(Command::Start), says(LEVEL1, Message::Lead(true))]);
        self
    }

    fn unconnected(leader: LinkParameters, other: LinkParameters) -> Self {
        Self::in_life(leader, other, false)
    }

    /// In a life that begins with the run, or within it.
    fn in_life(leader: LinkParameters, other: LinkParameters, late: bool) -> Self {
        let ros = Ros::new(RosParameters {
            robs: vec![u32::from(LEADER), u32::from(OTHER)],
            pages_per_rob: 6,
            busy_above: 4,
            busy_below: 3,
            request_timeout: Duration::from_secs(1),
            group_bytes_max: 10_000,
            read_out: ReadOut::Pushed,
            links: LinksParameters { each: vec![leader, other], grace: GRACE, ..LinksParameters::default() },
            push: None,
            level1: Some(LEVEL1),
            in_flight: 4,
            dfm: DFM,
            sampling: None,
            late,
        });
        let mut driver = Self { ros, now: Time::ZERO };
        driver.pass([LEVEL1, DFM, SFI].map(|node| Input::Peer { node, state: PeerState::Up(Incarnation(0)) }));
        driver
    }

    /// What one pass makes of its inputs. That level 1 may send more goes without saying here.
    fn pass(&mut self, inputs: impl IntoIterator<Item = Input>) -> Vec<Action> {
        let is_window = |action: &Action| matches!(action, Action::Send { message: Message::Taken(_), .. });
        pass(&mut self.ros, self.now, inputs).into_iter().filter(|action| !is_window(action)).collect()
    }

    fn of(&self, rob: u16) -> LinkReport {
        let report = self.ros.report(self.now);
        let sum = report.links.iter().map(|link| link.counters).fold(RosCounters::default(), RosCounters::plus);
        let all = RosCounters::from_values(&report.counters);
        assert_eq!((sum.fragments_in, sum.absent), (all.fragments_in, all.absent), "links are the whole");
        report.links[usize::from(rob)]
    }
}

struct LedLevel1 {
    level1: Level1,
}

impl LedLevel1 {
    /// Behind the read-out system with the leading source; a DFM decides.
    fn new() -> Self {
        let parameters = Level1Parameters {
            readout: vec![SFI],
            deciders: vec![DFM],
            in_flight: 100,
            ..level1::parameters(Spacing::Unlimited, None)
        };
        let mut level1 = Self { level1: Level1::new(parameters, TriggerInput::Link(Led::by(SFI))) };
        for node in [SFI, DFM] {
            level1.input(Input::Peer { node, state: PeerState::Up(Incarnation(0)) });
        }
        level1
    }

    fn input(&mut self, input: Input) -> Vec<Action> {
        let mut out = Outbox::new();
        self.level1.handle(Time::from_ns(1000), input, &mut out);
        self.level1.check();
        let all = out.drain();
        all.filter(|action| !matches!(action, Action::Send { message: Message::IssuedUpTo(_) | Message::NoMore, .. }))
            .collect()
    }

    /// Numbers and ordinals of what is issued.
    fn infos(&mut self, input: Input) -> Vec<(u64, u64)> {
        let info = |action: Action| match action {
            Action::Send { to: SFI, message: Message::L1Accept { events, .. } } => events,
            _ => Vec::new(),
        };
        let events = self.input(input).into_iter().flat_map(info);
        events.map(|event| (event.event.0, event.ordinal)).collect()
    }

    fn issued(&mut self, numbers: &[u64], last: bool) -> Vec<(u64, u64)> {
        let trigger = |&event: &u64| LinkTrigger { event: EventId(event), trigger_type: 0, time: Interval::default() };
        self.infos(says(SFI, Message::LinkTriggers { triggers: numbers.iter().map(trigger).collect(), last }))
    }
}

fn triggers(actions: &[Action]) -> Vec<(Vec<u64>, bool)> {
    let told = |action: &Action| match action {
        Action::Send { to: LEVEL1, message: Message::LinkTriggers { triggers, last } } => {
            Some((triggers.iter().map(|trigger| trigger.event.0).collect(), *last))
        }
        _ => None,
    };
    actions.iter().filter_map(told).collect()
}

/// Events that were answered, each with the links that are missing, and whether these are lost.
fn replies(actions: &[Action]) -> Vec<(u64, Vec<(u16, bool)>)> {
    let all = actions.iter().flat_map(|action| match action {
        Action::Send { message: Message::EventReply { replies, .. }, .. } => replies.clone(),
        _ => Vec::new(),
    });
    let missing = |rob: u32, lost| (rob as u16, lost);
    all.map(|reply| (reply.event.0, reply.missing.iter().map(|m| missing(m.rob, m.lost)).collect())).collect()
}

fn to_level1(message: Message) -> Action {
    Action::Send { to: LEVEL1, message }
}

fn to_ros(message: Message) -> Action {
    Action::Send { to: SFI, message }
}

fn says(from: NodeId, message: Message) -> Input {
    Input::Message { from, message }
}

fn link(rob: u16, news: LinkNews) -> Input {
    Input::Link { rob, news }
}

fn fragment(rob: u16, event: u64) -> Input {
    let head = FragmentHead { event: EventId(event), status: 0, len_bytes: 100 };
    let (time, bulk) = (Interval::default(), Bulk::Modelled { len_bytes: 100, seed: 0 });
    link(rob, LinkNews::Fragment { head, trigger_type: 0, time, bulk })
}

fn accept(events: &[u64]) -> Input {
    let info = |&event: &u64| EventInfo { event: EventId(event), ..EventInfo::default() };
    says(LEVEL1, accepting(events.iter().map(info).collect()))
}

fn request(event: u64) -> Input {
    let event = EventInfo { event: EventId(event), ..EventInfo::default() };
    let requests = vec![DataRequest { event, attempt: 1, request: 1, robs: Vec::new() }];
    says(SFI, Message::EventRequest { requests: requests.into() })
}

fn clear(sequence: u64, oldest_valid: u64, events: &[u64], last: bool) -> Input {
    let events: Vec<EventId> = events.iter().map(|event| EventId(*event)).collect();
    says(DFM, Message::Clear { sequence, oldest_valid: EventId(oldest_valid), last, events: events.into() })
}
