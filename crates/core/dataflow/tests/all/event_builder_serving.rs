//! What an event builder gets, keeps and gives, counted to the last byte.

use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, Incarnation, NodeId};
use base::sampling::SamplingRule;
use base::time::Time;
use dataflow::building::pushed::PushedParameters;
use dataflow::building::sfi::SfiParameters;
use dataflow::component::{Action, Component, Input, PeerState};
use dataflow::ledger::Finish;
use dataflow::message::{Attempt, Command, DataReply, DataRequest, Fate, Grounds, Message, Missing};
use dataflow::node::RUN_CONTROL;
use dataflow::report::{BlockCause, Blocked, Counters, SfiCounters};

use crate::event_builder::{DFM, Driver, FIRST_SOURCE, REQUEST_TIMEOUT, parameters, requests};

const FILTERS: [NodeId; 2] = [NodeId(50), NodeId(51)];

impl Driver {
    fn says(&mut self, from: NodeId, message: Message) -> Vec<Action> {
        let actions = self.input(Input::Message { from, message });
        self.sfi.check();
        actions
    }

    fn goes(&mut self, node: NodeId) -> Vec<Action> {
        self.input(Input::Peer { node, state: PeerState::Gone })
    }

    fn at_ms(&mut self, ms: u64) -> &mut Self {
        self.now = Time::from_ns(ms * 1_000_000);
        self
    }

    fn grant(&mut self, events: core::ops::Range<u64>) -> Vec<Action> {
        let attempts = events.map(|event| Attempt { event: EventId(event), attempt: 1 }).collect();
        self.says(DFM, Message::Granted(attempts))
    }

    /// Events in building, all of whose data come, and which are granted.
    fn built(&mut self, events: core::ops::Range<u64>) -> Vec<Action> {
        let mut actions = self.build(events.clone());
        let mut asked = requests(actions.clone());
        while !asked.is_empty() {
            let answered = self.answer(asked);
            asked = requests(answered.clone());
            actions.extend(answered);
        }
        actions.extend(self.grant(events));
        actions
    }

    fn finish(&mut self, from: NodeId, event: u64, fate: Fate) -> Vec<Action> {
        let finish = Finish { event: EventId(event), fate, complete: true, grounds: Grounds::default() };
        self.says(from, Message::Finished(vec![finish]))
    }

    /// A source answers a request with these bytes, or pushes them if there is none.
    fn sends(&mut self, from: NodeId, request: Option<&DataRequest>, event: u64, bytes: &'static [u8]) -> Vec<Action> {
        let number = request.map_or(0, |request| request.request);
        let len_bytes = bytes.len() as u32;
        let reply = DataReply { event: EventId(event), attempt: 1, request: number, missing: Vec::new(), len_bytes };
        let bulk = Bulk::Pages(PageSlice::from_static(bytes));
        self.says(from, Message::EventReply { pushed: 0, replies: vec![reply], bulk })
    }
}

/// Who is given which event.
fn served(actions: &[Action]) -> Vec<(NodeId, u64)> {
    let of = |action: &Action| match action {
        Action::Send { to, message: Message::BuiltEvent(built) } => Some((*to, built.event.event.0)),
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

fn busy(actions: &[Action]) -> Vec<bool> {
    let of = |action: &Action| match action {
        Action::Send { to: DFM, message: Message::SfiBusy(on) } => Some(*on),
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

fn serving(sources: u16, events: usize) -> SfiParameters {
    SfiParameters { efds: FILTERS.to_vec(), outstanding_requests: 100, ..parameters(sources, events) }
}

#[test]
fn events_are_served_to_who_asks_and_again_first_where_a_daemon_is_lost() {
    let [first, second] = FILTERS;
    let mut driver = Driver::new(serving(1, 10));
    assert_eq!(served(&driver.built(0..4)), [], "nobody has asked");
    assert_eq!(served(&driver.at_ms(10).says(second, Message::Pull(1))), [(second, 0)]);
    assert_eq!(served(&driver.at_ms(20).says(first, Message::Pull(2))), [(first, 1), (first, 2)]);
    assert_eq!(served(&driver.at_ms(30).goes(first)), []);
    assert_eq!(served(&driver.at_ms(40).says(second, Message::Pull(3))), [(second, 1), (second, 2), (second, 3)]);
    driver.finish(second, 1, Fate::Rejected);
    driver.finish(first, 2, Fate::Accepted);
    let blocked = |by, ms: u64| Blocked { by, cause: BlockCause::NoPull, time_ns: ms * 1_000_000 };
    let mut waited = driver.at_ms(50).sfi.report(Time::from_ns(50_000_000)).blocked;
    waited.sort_by_key(|blocked| blocked.by);
    assert_eq!(waited, [blocked(first, 30), blocked(second, 40)]);
    let c = driver.counters();
    assert_eq!((c.served, c.served_again, c.rejected, c.accepted), (6, 2, 1, 0), "only who has an event ends it");
    driver.goes(second);
    let c = driver.counters();
    assert_eq!((c.served_again, c.abandoned, c.built_complete), (2 + 3, 3, 4), "nobody is left to ask");
}

#[test]
fn a_builder_is_busy_with_what_is_not_in_building_any_more() {
    let mut driver = Driver::new(SfiParameters { building: 4, ..serving(1, 10) });
    assert_eq!(busy(&driver.built(0..4)), []);
    assert_eq!(busy(&driver.built(4..5)), []);
    assert_eq!(busy(&driver.built(5..6)), [true], "six of the ten: four may be assigned still");
    assert_eq!(busy(&driver.built(6..8)), []);
    driver.says(FILTERS[0], Message::Pull(8));
    let changes: Vec<_> = (0..8).map(|event| busy(&driver.finish(FILTERS[0], event, Fate::Accepted))).collect();
    let at = changes.iter().position(|changes| !changes.is_empty());
    assert_eq!((at, changes.concat()), (Some(4), vec![false]), "with three, half of the six");
}

#[test]
fn data_are_taken_up_to_the_limit_of_an_event() {
    let mut driver = Driver::new(SfiParameters { event_bytes_max: 10, ..serving(2, 10) });
    let sources = [0, 1].map(|source| NodeId(FIRST_SOURCE + source));
    for (event, last) in [(0, b"four".as_slice()), (1, b"five+")] {
        let asked = requests(driver.build(event..event + 1));
        let of = |node| &asked.iter().find(|(to, _)| *to == node).unwrap().1;
        driver.sends(sources[0], Some(of(sources[0])), event, b"sixsix");
        driver.sends(sources[1], Some(of(sources[1])), event, last);
        driver.sends(sources[1], Some(of(sources[1])), event, last);
        driver.grant(event..event + 1);
    }
    driver.sends(sources[1], None, 9, b"");
    let c = driver.counters();
    assert_eq!((c.bytes_built, c.oversized, c.missing_robs), (10 + 6, 1, 1));
    assert_eq!((c.built_complete, c.built_incomplete, c.late_replies), (1, 1, 2), "each answered twice");
    assert_eq!(driver.ended, [(EventId(0), 0), (EventId(1), 1)]);
    let given = driver.says(FILTERS[0], Message::Pull(2));
    let bytes = |action: &Action| match action {
        Action::Send { message: Message::BuiltEvent(built), .. } => Some(built.bulk.len()),
        _ => None,
    };
    assert_eq!(given.iter().filter_map(bytes).collect::<Vec<_>>(), [10, 6]);
}

#[test]
fn what_level_2_has_collected_is_used_once() {
    let mut driver = Driver::new(SfiParameters { collected: 4, ..serving(1, 10) });
    let collected = |event| Message::Collected {
        event: EventId(event),
        robs: vec![0],
        bulk: Bulk::Pages(PageSlice::from_static(b"rob")),
    };
    (0..2).for_each(|event| drop(driver.says(NodeId(60), collected(event))));
    driver.built(0..3);
    driver.says(NodeId(60), collected(2));
    let c = driver.counters();
    assert_eq!((c.collected_used, c.collected_dropped, c.bytes_built), (2, 1, 6), "the third came too late");
}

#[test]
fn what_was_not_pushed_in_time_is_asked_for() {
    let push = PushedParameters { window_bytes: 1 << 20, timeout: REQUEST_TIMEOUT, ahead: 8 };
    let mut driver = Driver::new(SfiParameters { push: Some(push), ..serving(3, 10) });
    let source = |source| NodeId(FIRST_SOURCE + source);
    driver.sends(source(0), None, 0, b"ahead");
    assert_eq!(requests(driver.build(0..1)), []);
    driver.sends(source(1), None, 0, b"pushed");
    assert_eq!(driver.sfi.next_deadline(), Some(Time::ZERO + REQUEST_TIMEOUT));
    driver.now = driver.now + REQUEST_TIMEOUT + Duration::from_millis(1);
    let asked = requests(driver.input(Input::Deadline));
    assert_eq!(asked.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [source(2)]);
    driver.sends(source(2), Some(&asked[0].1), 0, b"asked");
    driver.grant(0..1);
    let c = driver.counters();
    assert_eq!((c.pushed, c.pushed_ahead, c.pushed_late, c.requests, c.bytes_built), (2, 1, 1, 1, 5 + 6 + 5));
    driver.input(Input::Command(Command::Drain));
    driver.sends(source(0), None, 7, b"too late");
    assert_eq!(driver.counters().pushed_dropped, 1, "nothing is kept for what will not be assigned");
    driver.input(Input::Peer { node: DFM, state: PeerState::Up(Incarnation(0)) });
}

/// A source that says of an event that it misses a fragment is asked, whether the event is assigned or not; once, at no time-out.
#[test]
fn what_a_source_cannot_push_whole_is_asked_for_at_once() {
    let push = PushedParameters { window_bytes: 1 << 20, timeout: REQUEST_TIMEOUT, ahead: 8 };
    let mut driver = Driver::new(SfiParameters { push: Some(push), ..serving(2, 10) });
    let [away, other] = [0, 1].map(|source| NodeId(FIRST_SOURCE + source));
    let misses = |driver: &mut Driver, event| {
        let missing = vec![Missing { rob: 0, lost: false }];
        let reply = DataReply { event: EventId(event), attempt: 1, request: 0, missing, len_bytes: 0 };
        requests(driver.says(away, Message::EventReply { pushed: 0, replies: vec![reply], bulk: Bulk::empty() }))
    };
    assert_eq!(misses(&mut driver, 0), []);
    let mut asked = requests(driver.build(0..2));
    asked.extend(misses(&mut driver, 1));
    assert_eq!(asked.iter().map(|(to, asked)| (*to, asked.event.event.0)).collect::<Vec<_>>(), [(away, 0), (away, 1)]);
    assert_eq!(misses(&mut driver, 1), [], "it has been asked");
    for event in 0..2 {
        driver.sends(other, None, event, b"whole");
        driver.sends(away, Some(&asked[event as usize].1), event, b"asked");
    }
    let c = driver.counters();
    assert_eq!((c.pushed, c.pushed_late, c.pushed_dropped, c.requests), (2, 2, 1, 2));
    assert_eq!(driver.ended, [(EventId(0), 0), (EventId(1), 0)]);
}

/// Events that are shown to run control.
fn shown(actions: &[Action]) -> Vec<u64> {
    let of = |action: &Action| match action {
        Action::Send { to: RUN_CONTROL, message: Message::Sample(sample) } => Some(sample.built.event.event.0),
        _ => None,
    };
    actions.iter().filter_map(of).collect()
}

#[test]
fn events_are_shown_when_run_control_asks_and_served_as_ever() {
    let rule = SamplingRule { trigger_types: [0; 4], items: 0, prescale: 1, samples: 2, bytes: 1 << 20 };
    let mut silent = Driver::new(serving(1, 20));
    let mut driver = Driver::new(SfiParameters { sampling: Some(rule), ..serving(1, 20) });
    let without_samples = |actions: Vec<Action>| {
        let is_sample = |action: &Action| matches!(action, Action::Send { message: Message::Sample(_), .. });
        actions.into_iter().filter(|action| !is_sample(action)).collect::<Vec<_>>()
    };
    let mut given = Vec::new();
    for (round, asks) in [false, true, false, true].into_iter().enumerate() {
        if asks {
            let said = driver.input(Input::Command(Command::Sample));
            assert_eq!((said, silent.input(Input::Command(Command::Sample))), (Vec::new(), Vec::new()));
        }
        let events = 4 * round as u64 + 1..4 * round as u64 + 5;
        let actions = driver.built(events.clone());
        given.push(shown(&actions));
        // Whoever is not asked again, or shows nothing, does all else alike.
        assert_eq!(without_samples(actions), silent.built(events));
    }
    assert_eq!(given, [vec![], vec![5, 6], vec![], vec![13, 14]]);
    let counts = |driver: &Driver| {
        let counters = SfiCounters::from_values(&driver.sfi.report(driver.now).counters);
        (counters.samples, counters.samples_lost, counters.built_complete)
    };
    assert_eq!((counts(&driver), counts(&silent)), ((4, 8, 16), (0, 0, 16)));
}
