//! Supervisors and processing units by themselves.

use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox, Outcome, PeerState, Selection, Steered, Ticket, Work};
use dataflow::level2::l2pu::{L2pu, L2puParameters, sink_accepts};
use dataflow::level2::l2sv::{L2puAssignment, L2sv, L2svParameters};
use dataflow::level2::overrides::{Override, Overrides};
use dataflow::message::{Chains, Command, EventInfo, Grounds, Message, MissedClears, Missing, Settlement};
use dataflow::report::{Counters, L2puCounters, L2svCounters};

const LEVEL1: NodeId = NodeId(1);
const L2PU: NodeId = NodeId(3);
const DFM: NodeId = NodeId(4);
const ROS: NodeId = NodeId(5);

fn parameters(dfm: Option<NodeId>) -> L2svParameters {
    L2svParameters {
        level1: LEVEL1,
        l2pus: vec![L2PU],
        share: 10,
        dfm,
        supervisors: 1,
        overrides: Overrides::default(),
        assignment: L2puAssignment::RoundRobin,
        events_in_system: 4,
        timeout: Duration::from_secs(1),
        forced_limit: 1.0,
        group: 2,
        group_age: Duration::from_millis(2),
        in_flight: 10,
        returns: false,
        seed: 1,
    }
}

/// A supervisor whose one L2PU recommends what the test says.
struct Driver {
    l2sv: L2sv,
    now: Time,
}

impl Driver {
    fn new(parameters: L2svParameters) -> Self {
        let mut driver = Self { l2sv: L2sv::new(parameters), now: Time::ZERO };
        for node in [LEVEL1, L2PU, DFM, ROS] {
            driver.input(Input::Peer { node, state: PeerState::Up(Incarnation(0)) });
        }
        driver.input(Input::Command(Command::Start));
        driver
    }

    fn input(&mut self, input: Input) -> Vec<Action> {
        let mut out = Outbox::new();
        self.l2sv.handle(self.now, input, &mut out);
        self.l2sv.check();
        out.drain().collect()
    }

    fn at_ms(&mut self, ms: u64) {
        self.now = Time::from_ns(ms * 1_000_000);
        self.input(Input::Deadline);
    }

    fn event(&mut self, event: u64, items: u32) -> Vec<Action> {
        let event = EventInfo { event: EventId(event), items, ..EventInfo::default() };
        self.input(Input::Message { from: LEVEL1, message: Message::L1Result { event, rois: Vec::new() } })
    }

    fn recommend(&mut self, event: u64, accept: bool) -> Vec<Action> {
        let message = Message::L2Decision {
            event: EventId(event),
            attempt: 1,
            accept,
            lacks_data: false,
            has_result: accept,
            builder: None,
        };
        self.input(Input::Message { from: L2PU, message })
    }

    fn counters(&self) -> L2svCounters {
        L2svCounters::from_values(&self.l2sv.report(self.now).counters)
    }
}

fn clears(actions: &[Action]) -> Vec<(u64, EventId, bool, Vec<u64>)> {
    let of = |action: &Action| match action {
        Action::MulticastToReadout(Message::Clear { sequence, oldest_valid, last, events }) => {
            Some((*sequence, *oldest_valid, *last, events.iter().map(|event| event.0).collect()))
        }
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

#[test]
fn a_veto_is_stronger_than_an_accept_and_a_flag_for_all_than_both() {
    let masks = Overrides { all: Override::None, force_accept_items: 0b011, veto_items: 0b110 };
    let decisions = [0b000, 0b001, 0b010, 0b100].map(|items| [false, true].map(|accept| masks.decide(items, accept)));
    assert_eq!(decisions, [[false, true], [true, true], [false, false], [false, false]]);
    assert!(Overrides { all: Override::ForceAccept, ..masks }.decide(0b110, false));
    assert!(!Overrides { all: Override::ForceReject, ..masks }.decide(0b001, true));
}

#[test]
fn flags_override_recommendations_and_are_counted() {
    let overrides = Overrides { all: Override::None, force_accept_items: 0b01, veto_items: 0b10 };
    let mut driver = Driver::new(L2svParameters { overrides, group: 4, ..parameters(Some(DFM)) });
    (0..4).for_each(|event| _ = driver.event(event, event as u32));
    let mut actions = Vec::new();
    for (event, accept) in [(0, false), (1, false), (2, true), (3, false)] {
        actions.extend(driver.recommend(event, accept));
    }
    let decisions: Vec<(bool, bool)> = actions
        .iter()
        .find_map(|action| match action {
            Action::Send { to: DFM, message: Message::Decisions { decisions, .. } } => Some(decisions),
            _ => None,
        })
        .expect("a group of decisions")
        .iter()
        .map(|decision| (decision.accept, decision.has_result))
        .collect();
    assert_eq!(decisions, [(false, false), (true, false), (false, false), (false, false)]);
    let L2svCounters { accepted, rejected, overridden, .. } = driver.counters();
    assert_eq!((accepted, rejected, overridden), (1, 3, 2));
}

#[test]
fn level_1_hears_nothing_of_groups_without_decisions() {
    let mut driver = Driver::new(L2svParameters { returns: true, ..parameters(Some(DFM)) });
    let resume = Message::Resume { rejected: 0, accepted: 0, forced: 0, incomplete: 0, uncleared: Vec::new() };
    driver.input(Input::Message { from: LEVEL1, message: resume });
    let settled = |actions: Vec<Action>| {
        let of = |action| match action {
            Action::Send { to: LEVEL1, message: Message::Settled { decided, .. } } => Some(decided.len()),
            _ => None,
        };
        actions.into_iter().filter_map(of).collect::<Vec<_>>()
    };
    let groups = |actions: &[Action]| {
        let of = |action: &Action| match action {
            Action::Send { to: DFM, message: Message::Decisions { sequence, decisions, .. } } => {
                Some((*sequence, decisions.len()))
            }
            _ => None,
        };
        actions.iter().filter_map(of).collect::<Vec<_>>()
    };
    let taken = |driver: &mut Driver, up_to| {
        let message = Message::DecisionsTaken { up_to, oldest_unfinished: EventId(0) };
        settled(driver.input(Input::Message { from: DFM, message }))
    };
    driver.event(0, 0);
    driver.event(1, 0);
    driver.recommend(0, true);
    assert_eq!(groups(&driver.recommend(1, false)), [(1, 2)]);
    // How far level 2 has come is told to the DFM also where there is nothing else.
    driver.now = Time::from_ns(200_000_000);
    assert_eq!(groups(&driver.input(Input::Deadline)), [(2, 0)]);
    assert_eq!((taken(&mut driver, 1), taken(&mut driver, 2)), (vec![2], vec![]));
}

#[test]
fn without_a_dfm_every_decided_event_is_cleared() {
    let mut driver = Driver::new(parameters(None));
    (10..13).for_each(|event| _ = driver.event(event, 0));
    assert_eq!(clears(&driver.recommend(11, true)), []);
    assert_eq!(clears(&driver.recommend(12, false)), [(1, EventId(10), false, vec![11, 12])]);
    driver.recommend(10, false);
    driver.now = Time::from_ns(2_000_000);
    assert_eq!(clears(&driver.input(Input::Deadline)), [(2, EventId(13), false, vec![10])], "after its age");
    driver.now = Time::from_ns(200_000_000);
    assert_eq!(clears(&driver.input(Input::Deadline)), [(3, EventId(13), false, vec![])], "so that a loss is noticed");
    let asked =
        driver.input(Input::Message { from: ROS, message: Message::ClearAsk(MissedClears { first: 1, bits: 1 }) });
    let events = vec![EventId(11), EventId(12)].into();
    let message = Message::Clear { sequence: 1, oldest_valid: EventId(10), last: false, events };
    assert_eq!(asked, [Action::Send { to: ROS, message }]);
    assert_eq!(driver.counters().clears_repeated, 1);
}

#[test]
fn without_a_dfm_a_run_ends_with_the_last_clear() {
    let mut driver = Driver::new(parameters(None));
    driver.event(0, 0);
    driver.recommend(0, true);
    driver.input(Input::Command(Command::Drain));
    assert!(!driver.l2sv.is_drained(), "level 1 may still send");
    let actions = driver.input(Input::Message { from: LEVEL1, message: Message::NoMore });
    assert_eq!(clears(&actions).last(), Some(&(3, EventId(u64::MAX), true, vec![])));
    assert!(driver.l2sv.is_drained());
}

#[test]
fn without_a_dfm_busy_ends_with_the_decisions() {
    let mut driver = Driver::new(parameters(None));
    let busy = |actions: Vec<Action>| {
        let of = |action: &Action| match action {
            Action::Send { to: LEVEL1, message: Message::Busy { on, .. } } => Some(*on),
            _ => None,
        };
        actions.iter().find_map(of)
    };
    let raised: Vec<Option<bool>> = (0..4).map(|event| busy(driver.event(event, 0))).collect();
    assert_eq!(raised, [None, None, None, Some(true)]);
    assert_eq!(busy(driver.recommend(2, false)), Some(false));
}

#[test]
#[should_panic(expected = "one supervisor at most clears without a DFM")]
fn several_supervisors_need_a_dfm() {
    L2sv::new(L2svParameters { supervisors: 2, ..parameters(None) });
}

/// A supervisor that may force nothing, in a stop, with two events that are overdue after a second.
fn overdue() -> Driver {
    let mut driver = Driver::new(L2svParameters { forced_limit: 0.0, ..parameters(Some(DFM)) });
    (0..2).for_each(|event| _ = driver.event(event, 0));
    driver.at_ms(1000);
    driver.input(Input::Command(Command::Drain));
    driver.input(Input::Message { from: LEVEL1, message: Message::NoMore });
    assert_eq!(driver.counters().forced, 0, "a stop by itself forces nothing");
    driver
}

#[test]
fn in_a_stop_an_overdue_event_waits_for_an_l2pu_that_still_decides() {
    let mut driver = overdue();
    driver.at_ms(1500);
    driver.recommend(1, false);
    driver.at_ms(2000);
    assert_eq!(driver.counters().forced, 0, "the L2PU has decided since");
    driver.recommend(0, false);
    let L2svCounters { forced, rejected, .. } = driver.counters();
    assert_eq!((forced, rejected), (0, 2));
}

#[test]
fn in_a_stop_a_silent_l2pu_is_waited_for_no_longer_than_another_time_out() {
    let mut driver = overdue();
    driver.at_ms(1999);
    assert_eq!(driver.counters().forced, 0);
    driver.at_ms(2000);
    assert_eq!(driver.counters().forced, 2);
}

#[test]
fn in_a_stop_a_lost_l2pu_is_not_waited_for() {
    let mut driver = overdue();
    driver.input(Input::Peer { node: L2PU, state: PeerState::Gone });
    assert_eq!(driver.counters().forced, 2);
}

#[test]
fn an_accepted_event_without_a_result_or_that_is_vetoed_leaves_the_pros_alone() {
    let pros = NodeId(9);
    let mut l2pu = L2pu::new(L2puParameters { pros: Some(pros), ..that_vetoes() });
    let mut handle = |input| actions_of(&mut l2pu, input);
    handle(Input::Peer { node: pros, state: PeerState::Up(Incarnation(0)) });
    for (event, items, len_bytes) in [(0, 0, 0), (1, VETOED, 8), (2, 0, 8)] {
        let event = EventInfo { event: EventId(event), items, ..EventInfo::default() };
        let assign = Message::Assign { event, attempt: 1, rois: Vec::new() };
        let ticket = steering_of(&handle(Input::Message { from: L2PU, message: assign }));
        let result = Bulk::Modelled { len_bytes, seed: 0 };
        let selection =
            Selection { accept: true, result, chains: Chains::default(), payload_bytes: 0, lacks_data: false };
        let actions = handle(Input::Done { ticket, outcome: Outcome::Steered(Steered::Decide(selection)) });
        let is_decision = |action: &Action| match action {
            Action::Send { message: Message::L2Decision { accept: true, has_result: false, .. }, .. } => true,
            Action::Send { to, message: Message::L2Result { .. } } => {
                assert_eq!(*to, pros);
                false
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(actions.iter().map(is_decision).collect::<Vec<_>>(), [len_bytes == 0 || items == VETOED]);
    }
}

/// Missing at the first step already, or damaged: whatever the algorithm makes of the rest.
#[test]
fn a_rejection_that_lacks_data_is_none() {
    let ros = NodeId(8);
    for (missing, damaged, accept) in [(1, false, false), (0, true, false), (0, false, false), (1, false, true)] {
        let mut l2pu = L2pu::new(L2puParameters { ros_of_rob: vec![(5, ros)], ..that_vetoes() });
        let mut handle = |input| actions_of(&mut l2pu, input);
        let steered = |ticket, steered| Input::Done { ticket, outcome: Outcome::Steered(steered) };
        let event = EventInfo { event: EventId(3), ..EventInfo::default() };
        let assign = Message::Assign { event, attempt: 1, rois: Vec::new() };
        let mut step = steering_of(&handle(Input::Message { from: L2PU, message: assign }));
        for missing in [missing, 0] {
            let asked = handle(steered(step, Steered::Ask(vec![5])));
            let Some(Action::Send { message: Message::RoiRequest { event, request, .. }, .. }) = asked.first() else {
                panic!("{asked:?}")
            };
            let missing = vec![Missing { rob: 5, lost: true }; missing];
            let reply = Message::RoiReply { event: *event, request: *request, missing, bulk: Bulk::empty() };
            step = steering_of(&handle(Input::Message { from: ros, message: reply }));
        }
        let (result, chains) = (Bulk::empty(), Chains::default());
        let selection = Selection { accept, result, chains, payload_bytes: 0, lacks_data: damaged };
        let decided = handle(steered(step, Steered::Decide(selection)));
        let lacks = missing > 0 || damaged;
        let is_right = |action: &Action| match action {
            Action::Send { message: Message::L2Decision { accept: decided, lacks_data, .. }, .. } => {
                (*decided, *lacks_data) == (accept || lacks, lacks)
            }
            _ => false,
        };
        assert!(decided.iter().any(is_right), "{missing} missing, damaged: {damaged}, {accept}: {decided:?}");
    }
}

#[test]
fn an_event_accepted_without_all_data_is_marked_and_counted() {
    let overrides = Overrides { all: Override::None, force_accept_items: 0, veto_items: 0b10 };
    let mut driver = Driver::new(L2svParameters { overrides, group: 3, ..parameters(Some(DFM)) });
    (0..3).for_each(|event| _ = driver.event(event, event as u32));
    let mut actions = Vec::new();
    for (event, lacks_data) in [(0, true), (1, false), (2, true)] {
        let (event, has_result, builder) = (EventId(event), false, None);
        let message = Message::L2Decision { event, attempt: 1, accept: true, lacks_data, has_result, builder };
        actions.extend(driver.input(Input::Message { from: L2PU, message }));
    }
    let decided = actions.iter().find_map(|action| match action {
        Action::Send { to: DFM, message: Message::Decisions { decisions, .. } } => Some(decisions),
        _ => None,
    });
    let decided = decided.expect("a group").iter().map(|d| (d.accept, d.event.grounds)).collect::<Vec<_>>();
    assert_eq!(decided, [(true, Grounds::PartOfData), (true, Grounds::Data), (false, Grounds::Data)]);
    let L2svCounters { accepted, rejected, incomplete, forced, .. } = driver.counters();
    assert_eq!((accepted, rejected, incomplete, forced), (2, 1, 1, 0), "a veto asks for no data");
}

#[test]
fn data_of_an_event_that_is_vetoed_go_to_no_builder() {
    let (ros, sfi) = (NodeId(8), NodeId(9));
    for items in [0, VETOED] {
        let mut l2pu = L2pu::new(L2puParameters { ros_of_rob: vec![(5, ros)], builder: Some(sfi), ..that_vetoes() });
        let mut handle = |input| actions_of(&mut l2pu, input);
        let steered = |ticket, steered| Input::Done { ticket, outcome: Outcome::Steered(steered) };
        handle(Input::Peer { node: sfi, state: PeerState::Up(Incarnation(0)) });
        let event = EventInfo { event: EventId(3), items, ..EventInfo::default() };
        let assign = Message::Assign { event, attempt: 1, rois: Vec::new() };
        let first_step = steering_of(&handle(Input::Message { from: L2PU, message: assign }));
        let asked = handle(steered(first_step, Steered::Ask(vec![5])));
        let Some(Action::Send { message: Message::RoiRequest { event, request, .. }, .. }) = asked.first() else {
            panic!("{asked:?}")
        };
        let bulk = Bulk::Modelled { len_bytes: 64, seed: 0 };
        let reply = Message::RoiReply { event: *event, request: *request, missing: Vec::new(), bulk };
        let second_step = steering_of(&handle(Input::Message { from: ros, message: reply }));
        let selection = Selection {
            accept: true,
            result: Bulk::default(),
            chains: Chains::default(),
            payload_bytes: 0,
            lacks_data: false,
        };
        let actions = handle(steered(second_step, Steered::Decide(selection)));
        let is_for_builder = |action: &Action| match action {
            Action::Send { to, message: Message::Collected { .. } } => *to == sfi,
            Action::Send { message: Message::L2Decision { accept: true, builder, .. }, .. } => {
                assert_eq!(*builder, Some(sfi).filter(|_| items == 0));
                false
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(actions.iter().any(is_for_builder), items == 0);
    }
}

/// A unit of one worker that knows what is vetoed.
fn that_vetoes() -> L2puParameters {
    L2puParameters {
        workers: 1,
        ros_of_rob: Vec::new(),
        pros: None,
        overrides: Overrides { veto_items: VETOED, ..Overrides::default() },
        sink: None,
        builder: None,
        request_timeout: Duration::from_millis(10),
        retries: 0,
    }
}

fn actions_of(l2pu: &mut L2pu, input: Input) -> Vec<Action> {
    let mut out = Outbox::new();
    l2pu.handle(Time::ZERO, input, &mut out);
    l2pu.check();
    out.drain().collect()
}

/// The steering that has begun.
fn steering_of(actions: &[Action]) -> Ticket {
    match actions.last() {
        Some(Action::Start { ticket, work: Work::Steer(_) }) => *ticket,
        other => panic!("{other:?}"),
    }
}

/// Every step would wait for its time-out and all tries.
#[test]
fn a_read_out_system_that_is_gone_is_not_asked() {
    let mut l2pu = L2pu::new(L2puParameters { ros_of_rob: vec![(7, ROS)], ..that_vetoes() });
    actions_of(&mut l2pu, Input::Peer { node: ROS, state: PeerState::Gone });
    let event = EventInfo { event: EventId(1), ..EventInfo::default() };
    let message = Message::Assign { event, attempt: 1, rois: Vec::new() };
    let ticket = steering_of(&actions_of(&mut l2pu, Input::Message { from: NodeId(2), message }));
    let asks = Input::Done { ticket, outcome: Outcome::Steered(Steered::Ask(vec![7])) };
    let actions = actions_of(&mut l2pu, asks);
    let [Action::Start { work: Work::Steer(next), .. }] = &actions[..] else { panic!("{actions:?}") };
    assert_eq!((next.step, next.missing), (1, 1), "the next step begins at once, without the data");
}

/// A decision that was for a former life gave the next one a worker that was not free.
#[test]
fn what_a_former_life_of_a_supervisor_has_assigned_is_decided_for_nobody() {
    const L2SV: NodeId = NodeId(2);
    let mut l2pu = L2pu::new(that_vetoes());
    let assign = |event, attempt| {
        let event = EventInfo { event: EventId(event), ..EventInfo::default() };
        Input::Message { from: L2SV, message: Message::Assign { event, attempt, rois: Vec::new() } }
    };
    let former = steering_of(&actions_of(&mut l2pu, assign(1, 7)));
    actions_of(&mut l2pu, assign(2, 1));
    actions_of(&mut l2pu, Input::Peer { node: L2SV, state: PeerState::Up(Incarnation(1)) });
    actions_of(&mut l2pu, assign(3, 1));
    let decides = |ticket| {
        let (result, chains) = (Bulk::empty(), Chains::default());
        let selection = Selection { accept: true, result, chains, payload_bytes: 0, lacks_data: false };
        Input::Done { ticket, outcome: Outcome::Steered(Steered::Decide(selection)) }
    };
    let actions = actions_of(&mut l2pu, decides(former));
    assert!(!actions.iter().any(|action| matches!(action, Action::Send { .. })), "{actions:?}");
    let actions = actions_of(&mut l2pu, decides(steering_of(&actions)));
    assert!(matches!(actions[..], [Action::Send { to: L2SV, message: Message::L2Decision { event: EventId(3), .. } }]));
}

#[test]
fn a_unit_is_drained_once_it_has_decided() {
    let mut l2pu = L2pu::new(that_vetoes());
    assert!(!l2pu.is_drained(), "it was not told to be");
    let event = EventInfo { event: EventId(1), ..EventInfo::default() };
    let message = Message::Assign { event, attempt: 1, rois: Vec::new() };
    let ticket = steering_of(&actions_of(&mut l2pu, Input::Message { from: NodeId(2), message }));
    actions_of(&mut l2pu, Input::Command(Command::Drain));
    assert!(!l2pu.is_drained(), "it has an event");
    let (result, chains) = (Bulk::empty(), Chains::default());
    let selection = Selection { accept: false, result, chains, payload_bytes: 0, lacks_data: false };
    actions_of(&mut l2pu, Input::Done { ticket, outcome: Outcome::Steered(Steered::Decide(selection)) });
    assert!(l2pu.is_drained());
}

#[test]
fn bytes_of_regions_of_interest_are_summed() {
    let mut l2pu = L2pu::new(L2puParameters { ros_of_rob: vec![(7, ROS)], ..that_vetoes() });
    actions_of(&mut l2pu, Input::Peer { node: ROS, state: PeerState::Up(Incarnation(0)) });
    for (number, bytes) in [(1, vec![0; 5]), (2, vec![0; 4])] {
        let event = EventInfo { event: EventId(number), ..EventInfo::default() };
        let message = Message::Assign { event, attempt: 1, rois: Vec::new() };
        let ticket = steering_of(&actions_of(&mut l2pu, Input::Message { from: NodeId(2), message }));
        let asks = Input::Done { ticket, outcome: Outcome::Steered(Steered::Ask(vec![7])) };
        let asked = actions_of(&mut l2pu, asks);
        let [Action::Send { to: ROS, message: Message::RoiRequest { event, request, .. } }] = asked[..] else {
            panic!("{asked:?}")
        };
        let bulk = Bulk::Pages(PageSlice::from(bytes));
        let message = Message::RoiReply { event, request, missing: Vec::new(), bulk };
        let ticket = steering_of(&actions_of(&mut l2pu, Input::Message { from: ROS, message }));
        let (result, chains) = (Bulk::empty(), Chains::default());
        let selection = Selection { accept: false, result, chains, payload_bytes: 0, lacks_data: false };
        actions_of(&mut l2pu, Input::Done { ticket, outcome: Outcome::Steered(Steered::Decide(selection)) });
    }
    let counters = L2puCounters::from_values(&l2pu.report(Time::ZERO).counters);
    assert_eq!((counters.roi_bytes, counters.rejected), (9, 2));
}

#[test]
fn a_sink_decides_at_once() {
    let mut sink = L2pu::new(L2puParameters {
        workers: 1,
        ros_of_rob: Vec::new(),
        pros: Some(NodeId(9)),
        overrides: Overrides::default(),
        sink: Some(0.5),
        builder: None,
        request_timeout: Duration::from_millis(10),
        retries: 0,
    });
    let mut out = Outbox::new();
    for number in 0..100 {
        let event = EventInfo { event: EventId(number), ..EventInfo::default() };
        let message = Message::Assign { event, attempt: 1, rois: Vec::new() };
        sink.handle(Time::ZERO, Input::Message { from: NodeId(2), message }, &mut out);
        sink.check();
        let accept = sink_accepts(EventId(number), 0.5);
        let message = Message::L2Decision {
            event: EventId(number),
            attempt: 1,
            accept,
            lacks_data: false,
            has_result: false,
            builder: None,
        };
        assert_eq!(out.drain().collect::<Vec<_>>(), [Action::Send { to: NodeId(2), message }]);
    }
    let L2puCounters { received, accepted, rejected, steps, .. } =
        L2puCounters::from_values(&sink.report(Time::ZERO).counters);
    assert_eq!((received, accepted + rejected, steps), (100, 100, 0));
    assert!((30..70).contains(&accepted), "{accepted}");
}

#[test]
fn a_later_life_decides_only_what_former_lives_had_not_handed_over() {
    let mut driver = Driver::new(L2svParameters { returns: true, ..parameters(Some(DFM)) });
    let from = |from, message| Input::Message { from, message };
    driver.input(from(
        LEVEL1,
        Message::Resume { rejected: 3, accepted: 2, forced: 1, incomplete: 0, uncleared: Vec::new() },
    ));
    for event in [5, 6] {
        let event = EventInfo { event: EventId(event), ..EventInfo::default() };
        let actions = driver.input(from(LEVEL1, Message::L1Again { event, rois: Vec::new() }));
        assert_eq!(assigned(&actions), Vec::<u64>::new(), "the DFM may have it");
    }
    let before = vec![Settlement { event: EventId(5), accept: true, grounds: Grounds::Data }];
    let actions = driver.input(from(DFM, Message::TakenBefore { decided: before.clone(), last: true }));
    assert_eq!(assigned(&actions), [6]);
    assert!(sends(&actions, LEVEL1, &Message::Settled { cleared: u64::MAX, decided: before }));
    let counters = driver.counters();
    assert_eq!((counters.received, counters.rejected, counters.accepted, counters.forced), (7, 3, 3, 1));
    let actions = driver.input(from(LEVEL1, Message::SettledTaken));
    assert!(sends(&actions, DFM, &Message::Forget { up_to: 0, former: true }));
}

#[test]
fn without_a_dfm_an_event_is_settled_before_it_is_cleared() {
    let mut driver = Driver::new(L2svParameters { returns: true, ..parameters(None) });
    let from_level1 = |message| Input::Message { from: LEVEL1, message };
    let actions = driver.input(from_level1(Message::Resume {
        rejected: 2,
        accepted: 0,
        forced: 0,
        incomplete: 0,
        uncleared: vec![EventId(4)],
    }));
    assert_eq!(clears(&actions)[0].3, [4], "what a former life may not have cleared");
    [5, 6].into_iter().for_each(|event| _ = driver.event(event, 0));
    assert_eq!(clears(&driver.recommend(5, false)), []);
    let actions = driver.recommend(6, true);
    let settled = |event, accept| Settlement { event: EventId(event), accept, grounds: Grounds::Data };
    let decided = vec![settled(5, false), settled(6, true)];
    assert!(sends(&actions, LEVEL1, &Message::Settled { cleared: 0, decided }));
    assert_eq!(clears(&actions), []);
    driver.at_ms(150);
    let cleared = clears(&driver.input(from_level1(Message::SettledTaken)));
    assert_eq!((cleared[0].1, &cleared[0].3), (EventId(7), &vec![5, 6]));
}

/// The DFM had spoken before level 1 was within reach: level 1 never forgot what it had not been told, and told a third life.
#[test]
fn what_is_settled_before_level_1_is_within_reach_is_told_when_it_is() {
    let mut driver =
        Driver { l2sv: L2sv::new(L2svParameters { returns: true, ..parameters(Some(DFM)) }), now: Time::ZERO };
    let up = |node| Input::Peer { node, state: PeerState::Up(Incarnation(0)) };
    driver.input(up(DFM));
    let before = vec![Settlement { event: EventId(5), accept: true, grounds: Grounds::Data }];
    driver.input(Input::Message { from: DFM, message: Message::TakenBefore { decided: before.clone(), last: true } });
    let actions = driver.input(up(LEVEL1));
    assert!(sends(&actions, LEVEL1, &Message::Settled { cleared: u64::MAX, decided: before }));
}

const VETOED: u32 = 0b100;

fn assigned(actions: &[Action]) -> Vec<u64> {
    let of = |action: &Action| match action {
        Action::Send { message: Message::Assign { event, .. }, .. } => Some(event.event.0),
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

fn sends(actions: &[Action], to: NodeId, message: &Message) -> bool {
    actions.contains(&Action::Send { to, message: message.clone() })
}
