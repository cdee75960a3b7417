//! Event builders by themselves.

use std::collections::BTreeMap;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::building::pushed::PushedParameters;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::{Patience, RequestOrder, Sfi, SfiParameters, Source};
use dataflow::component::{Action, Component, Input, Note, Outbox, PeerState};
use dataflow::message::{Assignment, Command, DataReply, DataRequest, EventInfo, Message};
use dataflow::report::{Counters, SfiCounters};

pub(crate) const DFM: NodeId = NodeId(1);
pub(crate) const FIRST_SOURCE: u16 = 10;
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_millis(100);

#[test]
fn events_beyond_its_room_are_counted_and_the_first_is_noted() {
    let mut driver = Driver::new(parameters(2, 4));
    assert_eq!(notes(&driver.build(0..3)), []);
    assert_eq!(notes(&driver.build(3..6)), [Note::AssignedBeyondRoom(EventId(4))]);
    assert_eq!(notes(&driver.build(6..7)), []);
    let counters = driver.counters();
    assert_eq!((counters.assigned, counters.revoked, counters.beyond_room), (7, 3, 3));
}

#[test]
fn sources_that_are_late_are_asked_again_each_at_its_time() {
    // One is asked each millisecond, so that an event takes twice the time-out.
    let mut driver = Driver::new(parameters(200, 1));
    let silent = [NodeId(FIRST_SOURCE + 20), NodeId(FIRST_SOURCE + 150)];
    let mut asked: BTreeMap<NodeId, Vec<u64>> = BTreeMap::new();
    let mut requests = requests(driver.build(0..1));
    for ms in 1..1000 {
        let (answered, waits): (Vec<_>, Vec<_>) = requests.into_iter().partition(|(to, _)| !silent.contains(to));
        waits.into_iter().for_each(|(to, _)| asked.entry(to).or_default().push(driver.now.as_ns() / 1_000_000));
        driver.now = Time::from_ns(ms * 1_000_000);
        requests = self::requests(driver.answer(answered));
    }
    // With one credit nobody else is asked meanwhile.
    for times in asked.values() {
        let first = times[0];
        assert_eq!(*times, [first, first + 100, first + 200, first + 300]);
    }
    assert_eq!((asked.len(), driver.counters().reasks, driver.ended), (2, 6, vec![(EventId(0), 2)]));
}

#[test]
fn a_source_that_loses_nothing_when_it_is_away_is_waited_for_even_if_it_has_not_come_yet() {
    let mut parameters = parameters(1, 1);
    parameters.sources[0].patience = Patience::WhileAway;
    let mut driver = Driver::new(parameters);
    let mut asked = requests(driver.build(0..1)).len();
    let mut wait = |driver: &mut Driver, timeouts| {
        for _ in 0..timeouts {
            driver.now = driver.now + REQUEST_TIMEOUT;
            asked += requests(driver.input(Input::Deadline)).len();
        }
        (asked, driver.counters().reasks, driver.ended.len())
    };
    assert_eq!(wait(&mut driver, 9), (10, 0, 0));
    driver.input(Input::Peer { node: NodeId(FIRST_SOURCE), state: PeerState::Up(Incarnation(1)) });
    assert_eq!(wait(&mut driver, 9).1, 3, "its tries count from now on");
    assert_eq!(driver.ended, [(EventId(0), 1)]);
}

#[test]
fn a_source_that_is_away_is_waited_for_once_and_not_by_every_event() {
    let mut driver = Driver::new(SfiParameters { outstanding_requests: 8, ..parameters(2, 8) });
    let away = NodeId(FIRST_SOURCE);
    let answer_others = |driver: &mut Driver, actions| {
        let (of_away, of_others): (Vec<_>, Vec<_>) = requests(actions).into_iter().partition(|(to, _)| *to == away);
        driver.answer(of_others);
        of_away.len()
    };
    for node in [away, NodeId(FIRST_SOURCE + 1)] {
        driver.input(Input::Peer { node, state: PeerState::Up(Incarnation(0)) });
    }
    driver.input(Input::Peer { node: away, state: PeerState::Down });
    let actions = driver.build(0..1);
    answer_others(&mut driver, actions);
    driver.now = driver.now + REQUEST_TIMEOUT * 2;
    // What it hears twice does not let it wait anew.
    driver.input(Input::Peer { node: away, state: PeerState::Down });
    let actions = driver.build(1..2);
    assert_eq!((answer_others(&mut driver, actions), driver.ended.len()), (1, 0));
    driver.now = driver.now + REQUEST_TIMEOUT * 2;
    assert!(driver.sfi.next_deadline() <= Some(driver.now));
    driver.input(Input::Deadline);
    assert_eq!(driver.ended, [(EventId(0), 1), (EventId(1), 1)]);
    let actions = driver.build(2..5);
    assert_eq!((answer_others(&mut driver, actions), driver.ended.len()), (0, 5), "at full rate");
    driver.input(Input::Peer { node: away, state: PeerState::Up(Incarnation(0)) });
    let asked = requests(driver.build(5..6));
    assert_eq!(asked.len(), 2);
    driver.answer(asked);
    assert_eq!(driver.ended[5], (EventId(5), 0));
}

#[test]
fn a_source_that_has_not_come_when_a_run_begins_is_waited_for_likewise() {
    let mut driver = Driver::new(SfiParameters { outstanding_requests: 8, ..parameters(1, 8) });
    driver.input(Input::Command(Command::Start));
    assert_eq!(requests(driver.build(0..1)).len(), 1);
    driver.now = driver.now + REQUEST_TIMEOUT * 4;
    driver.input(Input::Deadline);
    assert!(requests(driver.build(1..3)).is_empty());
    assert_eq!(driver.ended, [0, 1, 2].map(|event| (EventId(event), 1)));
}

#[test]
fn results_of_a_pros_that_is_away_are_missing_at_once() {
    let mut parameters = SfiParameters { outstanding_requests: 8, ..parameters(2, 8) };
    parameters.sources[1].results = true;
    let pros = parameters.sources[1].node;
    let mut driver = Driver::new(parameters);
    let peer = |state| Input::Peer { node: pros, state };
    driver.has_result = true;
    let asked = requests(driver.build(0..1));
    assert!(asked.iter().any(|(to, _)| *to == pros), "it may only not be connected yet");
    driver.answer(asked);
    driver.input(peer(PeerState::Up(Incarnation(0))));
    let asked = requests(driver.build(1..2));
    let (of_pros, of_data): (Vec<_>, Vec<_>) = asked.into_iter().partition(|(to, _)| *to == pros);
    assert_eq!((of_pros.len(), of_data.len()), (1, 1));
    driver.answer(of_data);
    driver.input(peer(PeerState::Down));
    let asked = requests(driver.build(2..3));
    assert!(asked.iter().all(|(to, _)| *to != pros));
    driver.answer(asked);
    driver.input(peer(PeerState::Up(Incarnation(1))));
    let asked = requests(driver.build(3..4));
    driver.answer(asked);
    let ended = [(0, 0), (1, 1), (2, 1), (3, 0)].map(|(event, missing)| (EventId(event), missing));
    assert_eq!((driver.ended.as_slice(), driver.now), (ended.as_slice(), Time::ZERO));
}

#[test]
fn what_a_source_pushes_twice_is_dropped_before_and_after_its_event_is_assigned() {
    let push = PushedParameters { window_bytes: 1 << 20, timeout: REQUEST_TIMEOUT, ahead: 8 };
    let mut driver = Driver::new(SfiParameters { push: Some(push), ..parameters(3, 8) });
    let first = NodeId(FIRST_SOURCE);
    (0..100).for_each(|_| driver.push(first, 0));
    assert_eq!((driver.counters().pushed_dropped, driver.counters().pushed_ahead), (97, 0), "one for each source");
    driver.build(0..1);
    let counters = driver.counters();
    assert_eq!((counters.pushed, counters.pushed_ahead, counters.pushed_dropped), (1, 1, 99));
    [0, 1, 2].into_iter().for_each(|source| driver.push(NodeId(FIRST_SOURCE + source), 0));
    assert_eq!((driver.counters().pushed, driver.counters().pushed_dropped), (3, 100));
    assert_eq!(driver.ended, [(EventId(0), 0)]);
}

#[test]
fn a_source_that_is_asked_for_what_it_did_not_push_is_told_its_credit() {
    let push = PushedParameters { window_bytes: 1 << 20, timeout: REQUEST_TIMEOUT, ahead: 8 };
    let mut parameters = SfiParameters { outstanding_requests: 8, push: Some(push), ..parameters(3, 8) };
    parameters.sources[2].results = true;
    let mut driver = Driver::new(parameters);
    let event = EventInfo { event: EventId(0), ..EventInfo::default() };
    let events = vec![Assignment { event, attempt: 2, has_result: true }];
    let message = Message::Build { events, oldest_unfinished: EventId(0) };
    let actions = driver.input(Input::Message { from: DFM, message });
    let told = |action: &Action| match action {
        Action::Send { to, message: Message::Credit(0) } => Some(*to),
        _ => None,
    };
    let mut told: Vec<NodeId> = actions.iter().filter_map(told).collect();
    told.sort_unstable();
    assert_eq!(told, [NodeId(FIRST_SOURCE), NodeId(FIRST_SOURCE + 1)], "a pseudo-ROS pushes nothing");
    assert_eq!(requests(actions).len(), 3);
}

/// `perf stat -e instructions:u` of this test, with a `request_timeout` that is met and one that is not.
#[test]
#[ignore = "a measurement"]
fn cost_of_time_outs_of_many_sources() {
    let request_timeout = match std::env::var("TIMEOUT_MS").ok().and_then(|ms| ms.parse().ok()) {
        Some(ms) => Duration::from_millis(ms),
        None => REQUEST_TIMEOUT,
    };
    let mut driver = Driver::new(SfiParameters { request_timeout, outstanding_requests: 8, ..parameters(1600, 100) });
    let mut requests = requests(driver.build(0..100));
    while driver.ended.len() < 100 {
        driver.now = driver.now + Duration::from_millis(1);
        requests = self::requests(driver.answer(requests));
    }
    println!("{:?}", driver.counters());
}

pub(crate) struct Driver {
    pub(crate) sfi: Sfi,
    pub(crate) now: Time,
    pub(crate) ended: Vec<(EventId, u32)>,
    /// Of events that are assigned from now on.
    has_result: bool,
}

impl Driver {
    pub(crate) fn new(parameters: SfiParameters) -> Self {
        let sfi = Sfi::new(parameters);
        let mut driver = Self { sfi, now: Time::ZERO, ended: Vec::new(), has_result: false };
        driver.input(Input::Peer { node: DFM, state: PeerState::Up(Incarnation(0)) });
        driver
    }

    pub(crate) fn input(&mut self, input: Input) -> Vec<Action> {
        let mut out = Outbox::new();
        self.sfi.handle(self.now, input, &mut out);
        if self.sfi.next_deadline().is_some_and(|deadline| deadline <= self.now) {
            self.sfi.handle(self.now, Input::Deadline, &mut out);
        }
        self.sfi.flush(self.now, &mut out);
        let actions: Vec<Action> = out.drain().collect();
        for action in &actions {
            if let Action::Send { to: DFM, message: Message::EndOfEvent(ended) } = action {
                self.ended.extend(ended.iter().map(|ended| (ended.event, ended.missing)));
            }
        }
        actions
    }

    pub(crate) fn build(&mut self, events: core::ops::Range<u64>) -> Vec<Action> {
        let has_result = self.has_result;
        let assigned = |event| Assignment {
            event: EventInfo { event: EventId(event), ..EventInfo::default() },
            attempt: 1,
            has_result,
        };
        let events = events.map(assigned).collect();
        self.input(Input::Message { from: DFM, message: Message::Build { events, oldest_unfinished: EventId(0) } })
    }

    /// All data that were asked for have come, and time has passed.
    pub(crate) fn answer(&mut self, requests: Vec<(NodeId, DataRequest)>) -> Vec<Action> {
        let reply = |request: DataRequest| DataReply {
            event: request.event.event,
            attempt: request.attempt,
            request: request.request,
            missing: Vec::new(),
            len_bytes: 0,
        };
        let mut actions = self.input(Input::Deadline);
        for (from, request) in requests {
            let message = Message::EventReply { pushed: 0, replies: vec![reply(request)], bulk: Bulk::empty() };
            actions.extend(self.input(Input::Message { from, message }));
        }
        actions
    }

    /// A source sends all that it has of an event, which is nothing, unasked.
    fn push(&mut self, from: NodeId, event: u64) {
        let reply = DataReply { event: EventId(event), attempt: 1, request: 0, missing: Vec::new(), len_bytes: 0 };
        let message = Message::EventReply { pushed: 0, replies: vec![reply], bulk: Bulk::empty() };
        self.input(Input::Message { from, message });
        self.sfi.check();
    }

    pub(crate) fn counters(&self) -> SfiCounters {
        SfiCounters::from_values(&self.sfi.report(self.now).counters)
    }
}

pub(crate) fn requests(actions: Vec<Action>) -> Vec<(NodeId, DataRequest)> {
    let of = |action| match action {
        Action::Send { to, message: Message::EventRequest { requests } } => {
            requests.iter().map(|request| (to, request.clone())).collect()
        }
        _ => Vec::new(),
    };
    actions.into_iter().flat_map(of).collect()
}

fn notes(actions: &[Action]) -> Vec<Note> {
    let note = |action: &Action| if let Action::Note(note) = action { Some(note.clone()) } else { None };
    actions.iter().filter_map(note).collect()
}

pub(crate) fn parameters(sources: u16, events: usize) -> SfiParameters {
    let source = |index: u16| Source {
        node: NodeId(FIRST_SOURCE + index),
        robs: vec![index.into()],
        results: false,
        patience: Patience::Tries,
    };
    SfiParameters {
        sources: (0..sources).map(source).collect(),
        dfm: DFM,
        efds: Vec::new(),
        events,
        event_bytes_max: 1 << 20,
        building: events,
        collected: 0,
        outstanding_requests: 1,
        credits: CreditPolicy::Fixed,
        request_order: RequestOrder::Random,
        push: None,
        request_timeout: REQUEST_TIMEOUT,
        retries: 3,
        in_order: false,
        sampling: None,
        seed: 1,
    }
}
