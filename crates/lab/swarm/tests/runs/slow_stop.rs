//! Stops of partitions that need long for what is in hand, and of some that never finish it.

use std::time::Duration;

use base::ids::Role;
use dataflow::level2::steering::Strategy;

use simulator::world::{Fault, Outcomes};
use swarm::Plan;

const STOP_TIMEOUT: Duration = Duration::from_millis(500);
/// Below the time-out, so that something moves within it.
const COST: Duration = Duration::from_millis(400);

fn plan() -> Plan {
    let strategy = Strategy::Generate { robs_per_step: 2, accept: 1.0 };
    Plan::plain(40).with(|plan| {
        plan.level2.strategy = strategy;
        plan.course.stop_timeout = STOP_TIMEOUT;
        plan.level2.timeout = Duration::from_secs(100);
    })
}

fn time_to_stop(outcomes: &Outcomes) -> Duration {
    outcomes.ended.since(outcomes.ending.stopped.expect("it was stopped"))
}

fn is_whole(outcomes: &Outcomes) {
    assert_eq!((outcomes.account.residual, outcomes.account.recorded), (0, 40), "{:#?}", outcomes.account);
    assert!(outcomes.ending.reasons.is_empty() && !outcomes.ending.forced, "{:?}", outcomes.ending.reasons);
}

#[test]
fn a_slow_filter_finishes_what_is_in_hand() {
    let outcomes = plan()
        .with(|plan| {
            plan.filter.has_tasks = true;
            plan.filter.cost = COST;
            plan.filter.slots = 1;
        })
        .run_checked();
    is_whole(&outcomes);
    assert!(time_to_stop(&outcomes) > 5 * STOP_TIMEOUT, "{:?}", time_to_stop(&outcomes));
}

#[test]
fn slow_steering_finishes_what_is_in_hand() {
    let outcomes = plan()
        .with(|plan| {
            plan.level2.steering_cost = COST;
            plan.level2.workers = 1;
        })
        .run_checked();
    is_whole(&outcomes);
    assert!(time_to_stop(&outcomes) > 5 * STOP_TIMEOUT, "{:?}", time_to_stop(&outcomes));
}

#[test]
fn a_filter_that_never_answers_is_forced() {
    let outcomes = plan()
        .with(|plan| {
            plan.filter.has_tasks = true;
            plan.filter.stuck_after = Some(10);
        })
        .run_checked();
    let reasons = &outcomes.ending.reasons;
    assert!(outcomes.ending.forced && reasons[0].ends_with("no progress for 0.5 s (run.stop_timeout)"), "{reasons:?}");
    assert!(time_to_stop(&outcomes) < 2 * STOP_TIMEOUT, "{:?}", time_to_stop(&outcomes));
}

#[test]
fn an_application_that_hangs_is_passed_over() {
    for role in [Role::L2sv, Role::L2pu, Role::Sfi, Role::Efd, Role::Sfo, Role::Ros] {
        let hangs = plan().applications().into_iter().find(|app| app.role == role).expect("one of the role").node;
        let faults = vec![(Duration::ZERO, Fault::Hang(hangs))];
        let outcomes = plan()
            .with(|plan| {
                plan.course.faults = faults;
                plan.course.duration = Some(COST);
            })
            .run_checked();
        let reasons = &outcomes.ending.reasons;
        assert!(outcomes.ending.forced && reasons[0].contains("(run.stop_timeout)"), "{reasons:?}");
        assert!(time_to_stop(&outcomes) < 5 * STOP_TIMEOUT, "{role}: {:?}", time_to_stop(&outcomes));
    }
}
