//! Traffic that does not overflow the buffers of a switch: adaptive request credits, and rate division at the source
//! `[ATM1997 §IV]`.

use std::time::Duration;

use base::ids::{NodeId, Role};
use dataflow::building::request_credits::CreditPolicy;
use dataflow::readout::pusher::Destination;
use dataflow::report::SfiCounters;

use simulator::world::{Fault, Port};
use swarm::{Counts, InputKind, Plan, Push};

const EVENTS: u64 = 200;
const SOURCES: u16 = 16;
const BYTES_PER_S: u64 = 20_000_000;

/// What came of a run.
#[derive(Debug)]
struct Figures {
    events_per_s: f64,
    overflows: u64,
    repeated: u64,
    incomplete: u64,
}

/// Sixteen sources, two builders, each behind a port of 20 MB/s that holds so many bytes.
fn plan(buffer_bytes: u64) -> Plan {
    Plan::plain(EVENTS).with(|plan| {
        plan.input = InputKind::SelfTrigger;
        plan.counts = Counts { ros: SOURCES, sfi: 2, efd: 0, ..Plan::plain(1).counts };
        plan.building.port = Some(Port { bytes_per_s: BYTES_PER_S, buffer_bytes });
        plan.readout.pages = 1_000;
        plan.building.at_once = 32;
        plan.building.events = 64;
        plan.building.requests = 256;
    })
}

fn figures(plan: &Plan) -> Figures {
    let outcomes = plan.run_checked();
    assert_eq!((outcomes.account.residual, outcomes.account.level1), (0, EVENTS), "{:#?}", outcomes.account);
    let sfis = outcomes.ending.reports.values().filter(|report| report.role == Role::Sfi);
    let sfi = SfiCounters::total(sfis);
    Figures {
        events_per_s: EVENTS as f64 / outcomes.ended.since(outcomes.began).as_secs_f64(),
        overflows: outcomes.troubles.overflows,
        repeated: sfi.reasks + sfi.pushed_late,
        incomplete: outcomes.account.built_incomplete,
    }
}

#[test]
fn adaptive_credits_find_what_a_switch_takes() {
    let of = |credits| figures(&plan(6_000).with(|plan| plan.building.credits = credits));
    let (fixed, adaptive) = (of(CreditPolicy::Fixed), of(CreditPolicy::Adaptive));
    let both = format!("fixed {fixed:?}, adaptive {adaptive:?}");
    println!("{both}");
    assert!(fixed.incomplete > 0 && adaptive.incomplete == 0, "{both}");
    assert!(adaptive.repeated < fixed.repeated / 4 && adaptive.overflows < fixed.overflows, "{both}");
    assert!(adaptive.events_per_s > 0.7 * fixed.events_per_s, "{both}");
}

#[test]
fn adaptive_credits_cost_nothing_where_there_is_room() {
    let of = |credits| figures(&plan(1 << 30).with(|plan| plan.building.credits = credits));
    let (fixed, adaptive) = (of(CreditPolicy::Fixed), of(CreditPolicy::Adaptive));
    println!("fixed {fixed:?}, adaptive {adaptive:?}");
    assert!(adaptive.events_per_s > 0.95 * fixed.events_per_s, "fixed {fixed:?}, adaptive {adaptive:?}");
}

/// A source has not much more time for a fragment at its rate than the inputs take that come with it.
#[test]
fn sources_without_a_processor_lose_nothing_of_their_rate() {
    let of = |each: Duration| {
        let (destination, window_bytes) = (Destination::Assigned, 1 << 20);
        let bytes_per_s = Some(BYTES_PER_S / u64::from(SOURCES) / 16);
        let push = Push { destination, window_bytes, bytes_per_s, burst_bytes: 0, group: 1, ahead: 100 };
        let slow = |index| (Duration::ZERO, Fault::Slow { node: NodeId(index), each, lasts: Duration::from_secs(60) });
        let plan = plan(1 << 30).with(|plan| {
            plan.building.request_timeout = Duration::from_secs(60);
            plan.building.timeout = Duration::from_secs(60);
            plan.building.at_once = 8;
        });
        let sources = plan.applications().into_iter().filter(|application| application.role == Role::Ros);
        let faults = sources.map(|application| slow(application.node.0)).collect();
        figures(&plan.with(|plan| {
            plan.building.push = Some(push);
            plan.course.faults = faults;
        }))
    };
    let (prompt, late) = (of(Duration::ZERO), of(Duration::from_micros(350)));
    println!("prompt {prompt:?}, late {late:?}");
    assert!(late.events_per_s > 0.95 * prompt.events_per_s, "prompt {prompt:?}, late {late:?}");
}

/// A message came due within a pass, and the source went to it at the end of that. Only the source knew that it was late.
#[test]
fn a_source_is_late_whose_time_comes_within_a_pass() {
    let push = Push {
        destination: Destination::Table,
        window_bytes: 500,
        bytes_per_s: Some(1_000_000),
        burst_bytes: 0,
        group: 1,
        ahead: 1,
    };
    let (each, lasts) = (Duration::from_millis(6), Duration::from_millis(36));
    let plan = Plan::plain(40).with(|plan| {
        plan.input = InputKind::Level1;
        plan.counts = Counts { l2sv: 1, l2pu: 1, ros: 1, sfi: 1, efd: 1, sfo: 1 };
        plan.triggers.in_flight = 5;
        plan.building.at_once = 3;
        plan.building.events = 4;
        plan.building.push = Some(push);
        plan.building.timeout = Duration::from_millis(10);
        plan.network.service = Duration::from_micros(15);
        plan.course.faults = vec![(Duration::from_millis(1), Fault::Slow { node: NodeId(4), each, lasts })];
    });
    for seed in 0..100 {
        assert_eq!(plan.clone().with(|plan| plan.seed = seed).verdict(), None, "seed {seed}");
    }
}

#[test]
fn rate_division_does_not_overflow_a_switch() {
    let of = |bytes_per_s| {
        let (destination, window_bytes) = (Destination::Assigned, 1 << 20);
        let push = Push { destination, window_bytes, bytes_per_s, burst_bytes: 0, group: 1, ahead: 100 };
        figures(&plan(16_000).with(|plan| plan.building.push = Some(push)))
    };
    let (free, shaped) = (of(None), of(Some(BYTES_PER_S / u64::from(SOURCES))));
    let both = format!("as it comes {free:?}, shaped {shaped:?}");
    println!("{both}");
    assert!(free.incomplete > 0 && shaped.incomplete == 0, "{both}");
    assert!(shaped.overflows < free.overflows / 10 && shaped.events_per_s > free.events_per_s, "{both}");
}
