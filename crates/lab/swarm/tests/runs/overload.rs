//! Level 2 too slow for what it is offered, and what follows when it is not any more.

use std::time::Duration;

use base::ids::Role;
use dataflow::level1::pace::Spacing;
use dataflow::message::BusyCause;
use dataflow::report::{Counters, L2svCounters, Level1Counters};

use simulator::world::{Fault, Links, Outcomes};
use swarm::{Counts, Plan};

/// Six workers, two to three steps of 200 µs for an event: about 8 kHz.
fn farm() -> Plan {
    Plan::plain(0).with(|plan| {
        plan.counts = Counts { l2sv: 2, l2pu: 2, ..Plan::plain(0).counts };
        plan.triggers.events = u64::MAX;
        plan.triggers.in_flight = 32;
        plan.level2.workers = 3;
        plan.building.clear_group = 1;
        plan.building.events = 16;
        plan.level2.steering_cost = Duration::from_micros(200);
        plan.triggers.spacing = at_rate(1_000);
        plan.course.duration = Some(RUN);
    })
}

fn at_rate(hz: u64) -> Spacing {
    Spacing::Poisson(Duration::from_nanos(1_000_000_000 / hz))
}

fn run(plan: &Plan) -> Outcomes {
    let outcomes = plan.run_checked();
    assert_eq!(outcomes.account.residual, 0, "{:#?}", outcomes.account);
    assert!(outcomes.ending.reasons.is_empty(), "{:?}", outcomes.ending.reasons);
    outcomes
}

#[test]
fn a_rate_above_that_of_level_2_makes_dead_time_until_it_falls() {
    let quiet = run(&farm());
    let overloaded = run(&farm().with(|plan| {
        plan.triggers.spacing = at_rate(OVERLOAD_HZ);
        plan.triggers.profile = vec![(OVERLOAD, at_rate(1_000))];
    }));
    let level1 = level1(&overloaded);
    has_vetoed_what_level_2_does_not_decide(&overloaded, level1);
    assert_eq!(overloaded.account.level2_forced, 0, "nothing is late at an L2PU");
    assert!(has_been(&overloaded, BusyCause::EventsInSystem));
    let (usual, loaded) = (latency(&quiet, Duration::ZERO..RUN), latency(&overloaded, Duration::ZERO..OVERLOAD));
    assert!(loaded > 3 * usual, "{loaded:?} in the overload, {usual:?} without");
    has_recovered(&overloaded, usual);
    assert_eq!((self::level1(&quiet).vetoed, quiet.busy_changes.iter().any(|(_, _, on)| *on)), (0, false));
}

#[test]
fn time_outs_force_no_more_than_their_limit_and_end_with_their_cause() {
    let limit = 0.1;
    let plan = farm().with(|plan| {
        plan.level2.forced_limit = limit;
        plan.level2.timeout = Duration::from_millis(6);
    });
    let quiet = run(&plan);
    assert_eq!(quiet.account.level2_forced, 0);
    let heavy = Some((OVERLOAD, Duration::from_millis(4)));
    let slow = run(&plan.with(|plan| {
        plan.level2.heavy_until = heavy;
        plan.triggers.spacing = at_rate(4_000);
        plan.triggers.profile = vec![(OVERLOAD, at_rate(1_000))];
    }));
    let reports = slow.ending.reports.values().filter(|report| report.role == Role::L2sv);
    for l2sv in reports.map(|report| L2svCounters::from_values(&report.counters)) {
        let decided = l2sv.accepted + l2sv.rejected;
        let allowed = limit * decided as f64;
        assert!(l2sv.forced > 0 && l2sv.forced as f64 <= allowed, "{l2sv:?}");
    }
    assert!(has_been(&slow, BusyCause::ForcedLimit) && level1(&slow).vetoed_busy > 0);
    has_recovered(&slow, latency(&quiet, Duration::ZERO..RUN));
}

/// Events that lack data load building as forced ones do, and do not count as forced. They do not feed themselves, nor
/// hold back level 1, which would end the triggers of a run that has lost data.
#[test]
fn accepts_without_all_data_end_with_their_cause_and_hold_back_nobody() {
    let (forced_limit, request_timeout) = (0.01, Duration::from_millis(1));
    let plan = farm().with(|plan| {
        plan.level2.forced_limit = forced_limit;
        plan.building.request_timeout = request_timeout;
        plan.triggers.spacing = at_rate(4_000);
        plan.course.healed_after = Some(OVERLOAD);
    });
    let quiet = run(&plan);
    let lossy = run(&plan.with(|plan| plan.network.links = Links { loss: 0.7, ..plan.network.links }));
    let incomplete = lossy.account.level2_incomplete;
    assert!(
        incomplete as f64 > 0.05 * lossy.account.level1 as f64,
        "{incomplete} are more than may be forced: {:?}",
        lossy.account
    );
    assert!(!has_been(&lossy, BusyCause::ForcedLimit));
    let (usual, after) = (latency(&quiet, SETTLED..RUN), latency(&lossy, SETTLED..RUN));
    assert!(after < usual.mul_f64(1.1), "{after:?} after the losses, {usual:?} without");
}

/// Offers are a third of what level 2 decides. At times level 1 is called every 10 ms only, when offers for most of a window are due.
#[test]
fn the_lateness_of_level_1_is_no_dead_time() {
    let interval = Duration::from_micros(400);
    for spacing in [Spacing::Fixed(interval), Spacing::Poisson(interval)] {
        let plan = farm().with(|plan| plan.triggers.spacing = spacing);
        let source = plan.applications().into_iter().find(|application| application.role == Role::Level1);
        let node = source.expect("level 1").node;
        let (each, lasts) = (Duration::from_millis(10), Duration::from_micros(400));
        let fault = |nth: u64| (Duration::from_millis(80 * nth), Fault::Slow { node, each, lasts });
        let (prompt, late) =
            (level1(&run(&plan)), level1(&run(&plan.with(|plan| plan.course.faults = (1..=5).map(fault).collect()))));
        println!("prompt {prompt:?}, late {late:?}");
        assert!(late.issued as f64 > 0.95 * prompt.issued as f64, "prompt {prompt:?}, late {late:?}");
    }
}

fn level1(outcomes: &Outcomes) -> Level1Counters {
    Level1Counters::total(outcomes.ending.reports.values().filter(|report| report.role == Role::Level1))
}

/// Each offer is an event or falls into dead time. Of those that come in the overload level 2 gets no more than it decides.
fn has_vetoed_what_level_2_does_not_decide(outcomes: &Outcomes, level1: Level1Counters) {
    assert_eq!((level1.offered, level1.vetoed), (level1.issued + level1.vetoed, level1.vetoed_busy), "{level1:?}");
    let end = outcomes.began + OVERLOAD;
    let decided = outcomes.level2.iter().filter(|decided| decided.at < end).count() as f64;
    let offered = OVERLOAD.as_secs_f64() * OVERLOAD_HZ as f64;
    let (vetoed, expected) = (level1.vetoed as f64, offered - decided);
    // Offers come by chance, and those in the system are not decided yet.
    assert!((vetoed - expected).abs() < 4.0 * offered.sqrt(), "{expected} expected: {level1:?}");
}

fn has_been(outcomes: &Outcomes, busy: BusyCause) -> bool {
    outcomes.busy_changes.iter().any(|(_, cause, on)| *cause == busy && *on)
}

/// The mean over the decisions in a part of the run.
fn latency(outcomes: &Outcomes, part: std::ops::Range<Duration>) -> Duration {
    let (from, to) = (outcomes.began + part.start, outcomes.began + part.end);
    let within = || outcomes.level2.iter().filter(|decided| (from..to).contains(&decided.at));
    let count = within().count() as u32;
    assert!(count > 50, "{count} decisions");
    within().map(|decided| decided.latency).sum::<Duration>() / count
}

/// Soon after the load has fallen nobody is busy, and latencies are what they were without it.
fn has_recovered(outcomes: &Outcomes, usual: Duration) {
    let settled = outcomes.began + SETTLED;
    let last = outcomes.busy_changes.iter().filter(|(_, _, on)| *on).map(|(at, _, _)| *at).max();
    assert!(last.is_some_and(|last| last < settled), "busy last at {last:?}, settled from {settled}");
    let after = latency(outcomes, SETTLED..RUN);
    assert!(after < usual.mul_f64(1.1), "{after:?} after the overload, {usual:?} without");
}

const OVERLOAD_HZ: u64 = 30_000;
const OVERLOAD: Duration = Duration::from_millis(150);
const SETTLED: Duration = Duration::from_millis(200);
const RUN: Duration = Duration::from_millis(500);
