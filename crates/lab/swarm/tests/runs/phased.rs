//! Phased selection: the builder has what level 2 collected.

use std::time::Duration;

use base::ids::Role;
use dataflow::level1::pace::Spacing;
use dataflow::level2::steering::Strategy;
use dataflow::report::{RosCounters, SfiCounters};

use swarm::Plan;

/// What building asks for and what the read-out systems send.
fn moved(plan: &Plan) -> (SfiCounters, RosCounters) {
    let outcomes = plan.run_checked();
    assert_eq!((outcomes.account.residual, outcomes.account.recorded), (0, 300), "{:#?}", outcomes.account);
    let of = |role| outcomes.ending.reports.values().filter(move |report| report.role == role);
    (SfiCounters::total(of(Role::Sfi)), RosCounters::total(of(Role::Ros)))
}

#[test]
fn what_level_2_collected_is_not_moved_again() {
    let strategy = Strategy::Generate { robs_per_step: 3, accept: 1.0 };
    // Slow enough for every builder to have room.
    let spacing = Spacing::Fixed(Duration::from_millis(1));
    let plan = Plan::plain(300).with(|plan| {
        plan.level2.strategy = strategy;
        plan.triggers.spacing = spacing;
    });
    let (sfi, plain) = moved(&plan);
    assert_eq!((sfi.collected_used, plain.bytes_out), (0, 300 * (3 + 6) * 100), "3 ROBs for level 2, 6 for building");
    let (sfi, phased) = moved(&plan.clone().with(|plan| plan.level2.phased = Some(40)));
    assert_eq!((sfi.collected_used, phased.bytes_out), (300, 300 * 6 * 100), "every fragment once");
    let (sfi, none) = moved(&plan.clone().with(|plan| plan.level2.phased = Some(0)));
    assert_eq!(
        (sfi.collected_dropped, none.bytes_out),
        (300, plain.bytes_out),
        "where there is no room it is as before"
    );
    let (sfi, short) = moved(&plan.with(|plan| {
        plan.level2.phased = Some(2);
        plan.triggers.spacing = Spacing::Unlimited;
    }));
    assert_eq!(sfi.collected_used + sfi.collected_dropped, 300, "{sfi:?}");
    assert!(short.bytes_out < plain.bytes_out, "{short:?}");
}
