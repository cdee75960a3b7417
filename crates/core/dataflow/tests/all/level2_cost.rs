//! What an event costs in each component of level 2, without network and driver.
//!
//! `cargo test --release -p dataflow --test all level2_cost -- --ignored --nocapture`

use std::time::{Duration, Instant};

use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;
use dataflow::component::{Action, Component, Input, Outbox, Outcome, PeerState, Selection, Steered, Work};
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Level1Parameters, Trigger, TriggerInput, TriggerSource};
use dataflow::level2::l2pu::{L2pu, L2puParameters};
use dataflow::level2::l2sv::{L2puAssignment, L2sv, L2svParameters};
use dataflow::level2::overrides::Overrides;
use dataflow::message::{Chains, Command, EventInfo, Message, Roi};

use crate::level1;

const LEVEL1: NodeId = NodeId(1);
const L2SV: NodeId = NodeId(2);
const DFM: NodeId = NodeId(3);
const ROS: NodeId = NodeId(4);
const PROS: NodeId = NodeId(5);
const FIRST_UNIT: u16 = 10;
const WORKERS: usize = 64;
const BATCH: u64 = 64;
const BATCHES: u64 = 20_000;

struct Triggers;

impl TriggerSource for Triggers {
    fn trigger(&mut self, _: u64) -> Option<Trigger> {
        Some(Trigger { rois: rois(), ..Trigger::default() })
    }
}

fn rois() -> Vec<Roi> {
    vec![Roi::default(); 2]
}

#[test]
#[ignore = "a measurement"]
fn cost_per_event() {
    level1();
    supervisor(4, 0);
    supervisor(64, 0);
    supervisor(4, 4000);
    supervisor(64, 4000);
    unit(None);
    unit(Some(0.1));
}

fn level1() {
    let parameters = Level1Parameters {
        readout: vec![ROS],
        deciders: vec![L2SV],
        listeners: vec![DFM],
        in_flight: BATCH,
        ..level1::parameters(Spacing::Unlimited, None)
    };
    let mut level1 = Level1::new(parameters, TriggerInput::Source(Box::new(Triggers)));
    let mut out = Outbox::new();
    for node in [ROS, L2SV, DFM] {
        up(&mut level1, node, &mut out);
    }
    level1.handle(Time::ZERO, Input::Command(Command::Start), &mut out);
    let mut clock = Stopwatch::default();
    for batch in 1..=BATCHES {
        out.drain();
        let now = Time::from_ns(batch * 1000);
        clock.time(|| {
            for from in [ROS, L2SV] {
                level1.handle(now, Input::Message { from, message: Message::Taken(batch * BATCH) }, &mut out);
            }
        });
    }
    clock.report("level 1", 1);
}

/// `backlog` events more than the L2PUs can take wait for one.
fn supervisor(units: u16, backlog: u64) {
    let mut l2sv = L2sv::new(L2svParameters {
        level1: LEVEL1,
        l2pus: (0..units).map(|unit| NodeId(FIRST_UNIT + unit)).collect(),
        share: if backlog > 0 { BATCH as usize / usize::from(units) } else { WORKERS },
        dfm: Some(DFM),
        supervisors: 1,
        overrides: Overrides::default(),
        assignment: L2puAssignment::RoundRobin,
        events_in_system: 100_000,
        timeout: Duration::from_secs(1),
        forced_limit: 0.1,
        group: 100,
        group_age: Duration::from_millis(10),
        in_flight: BATCH,
        returns: false,
        seed: 1,
    });
    let mut answers = Vec::new();
    let mut out = Outbox::new();
    for node in [LEVEL1, DFM].into_iter().chain((0..units).map(|unit| NodeId(FIRST_UNIT + unit))) {
        up(&mut l2sv, node, &mut out);
    }
    out.drain();
    let (mut results, mut decisions, mut rest) = (Stopwatch::default(), Stopwatch::default(), Stopwatch::default());
    let result = |number: u64| {
        let event = EventInfo { event: EventId(number), ordinal: number, ..EventInfo::default() };
        Input::Message { from: LEVEL1, message: Message::L1Result { event, rois: rois() } }
    };
    (0..backlog).for_each(|number| l2sv.handle(Time::ZERO, result(number), &mut out));
    for batch in 0..BATCHES {
        let now = Time::from_ns(batch * 1000);
        let inputs: Vec<Input> = (0..BATCH).map(|offset| result(backlog + batch * BATCH + offset)).collect();
        results.time(|| inputs.into_iter().for_each(|input| l2sv.handle(now, input, &mut out)));
        for action in out.drain() {
            if let Action::Send { to, message: Message::Assign { event, attempt, .. } } = action {
                let message = Message::L2Decision {
                    event: event.event,
                    attempt,
                    accept: false,
                    lacks_data: false,
                    has_result: false,
                    builder: None,
                };
                answers.push(Input::Message { from: to, message });
            }
        }
        decisions.time(|| answers.drain(..).for_each(|input| l2sv.handle(now, input, &mut out)));
        let mut taken = Vec::new();
        for action in out.drain() {
            match action {
                Action::Send { message: Message::Decisions { sequence, .. }, .. } => taken.push(sequence),
                Action::Send { to, message: Message::Assign { event, attempt, .. } } => {
                    let message = Message::L2Decision {
                        event: event.event,
                        attempt,
                        accept: false,
                        lacks_data: false,
                        has_result: false,
                        builder: None,
                    };
                    answers.push(Input::Message { from: to, message });
                }
                _ => {}
            }
        }
        rest.time(|| {
            taken.into_iter().for_each(|sequence| {
                l2sv.handle(
                    now,
                    Input::Message {
                        from: DFM,
                        message: Message::DecisionsTaken { up_to: sequence, oldest_unfinished: EventId(0) },
                    },
                    &mut out,
                );
            });
        });
    }
    let what = format!("L2SV with {units} L2PUs, {backlog} events waiting");
    results.report(&format!("{what}: level-1 results"), 1);
    decisions.report(&format!("{what}: decisions"), 1);
    rest.report(&format!("{what}: acknowledgements"), 1);
}

fn unit(sink: Option<f64>) {
    let mut l2pu = L2pu::new(L2puParameters {
        workers: WORKERS,
        ros_of_rob: Vec::new(),
        pros: Some(PROS),
        overrides: Overrides::default(),
        sink,
        builder: None,
        request_timeout: Duration::from_millis(10),
        retries: 1,
    });
    let mut out = Outbox::new();
    up(&mut l2pu, L2SV, &mut out);
    let mut clock = Stopwatch::default();
    for batch in 0..BATCHES {
        let now = Time::from_ns(batch * 1000);
        let inputs: Vec<Input> = (0..BATCH)
            .map(|offset| {
                let number = batch * BATCH + offset;
                let event = EventInfo { event: EventId(number), ordinal: number, ..EventInfo::default() };
                let message = Message::Assign { event, attempt: 1, rois: rois() };
                Input::Message { from: L2SV, message }
            })
            .collect();
        clock.time(|| inputs.into_iter().for_each(|input| l2pu.handle(now, input, &mut out)));
        let done: Vec<Input> = out
            .drain()
            .filter_map(|action| match action {
                Action::Start { ticket, work: Work::Steer(_) } => {
                    let (result, chains) = (Bulk::empty(), Chains::default());
                    let selection = Selection { accept: false, result, chains, payload_bytes: 0, lacks_data: false };
                    let outcome = Outcome::Steered(Steered::Decide(selection));
                    Some(Input::Done { ticket, outcome })
                }
                _ => None,
            })
            .collect();
        if sink.is_some() {
            continue;
        }
        clock.time(|| done.into_iter().for_each(|input| l2pu.handle(now, input, &mut out)));
        out.drain();
    }
    let what = if sink.is_some() { "L2PU, sink" } else { "L2PU, one step" };
    clock.report(what, if sink.is_some() { 1 } else { 2 });
}

fn up(component: &mut dyn Component, node: NodeId, out: &mut Outbox) {
    component.handle(Time::ZERO, Input::Peer { node, state: PeerState::Up(Incarnation(0)) }, out);
}

/// Times of equal pieces of work; their median does not mind what else the machine does.
#[derive(Default)]
struct Stopwatch(Vec<Duration>);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "a measurement of the real machine")]
    fn time(&mut self, work: impl FnOnce()) {
        let begin = Instant::now();
        work();
        self.0.push(begin.elapsed());
    }

    fn report(mut self, what: &str, pieces_per_batch: u32) {
        self.0.sort_unstable();
        let median = self.0[self.0.len() / 2] * pieces_per_batch;
        eprintln!("{what}: {:.0} ns per event", median.as_nanos() as f64 / BATCH as f64);
    }
}
