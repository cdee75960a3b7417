//! Supervisors that die and return: level 1 tells them again what they had in hand, the DFM what they had decided.

use std::time::Duration;

use base::ids::Role;
use dataflow::building::dfm::ClearAfter;
use dataflow::level1::pace::Spacing;
use dataflow::report::L2svCounters;
use simulator::world::Fault;
use swarm::{InputKind, Plan, Run};

/// In the middle of a run, in all parts of a group's way: nothing is lost, nothing is decided twice.
#[test]
fn no_event_is_lost_with_a_supervisor_that_returns() {
    let mut told_again = 0;
    for after_us in (0..20_000).step_by(500) {
        let run = restarted(busy(), after_us);
        assert_eq!(lost(&run), 0, "restarted after {after_us} us: {:?}", run.outcomes.account);
        told_again += l2sv(&run).told_again;
    }
    assert!(told_again > 100, "{told_again}");
}

#[test]
fn no_event_is_lost_with_one_of_two_supervisors() {
    for after_us in (0..20_000).step_by(1_000) {
        let mut plan = busy();
        plan.counts.l2sv = 2;
        let run = restarted(plan, after_us);
        assert_eq!(lost(&run), 0, "restarted after {after_us} us: {:?}", run.outcomes.account);
    }
}

/// Its clears go on, and what its former life had decided counts.
#[test]
fn a_supervisor_that_clears_returns() {
    let mut told_again = 0;
    for after_us in (0..20_000).step_by(500) {
        let plan = busy().with(|plan| plan.input = InputKind::Level2Only);
        let run = restarted(plan, after_us);
        let account = &run.outcomes.account;
        assert_eq!((account.level1, account.level2_lost), (400, 0), "restarted after {after_us} us: {account:?}");
        told_again += l2sv(&run).told_again;
    }
    assert!(told_again > 100, "{told_again}");
}

/// One that returns when the run has ended knows what to report only when level 1 has told it.
#[test]
fn a_supervisor_that_returns_at_the_end_reports_what_was_settled() {
    for after_us in (40_000..120_000).step_by(2_000) {
        let plan = busy().with(|plan| plan.input = InputKind::Level2Only);
        let run = restarted(plan, after_us);
        assert_eq!(run.outcomes.account.level2_lost, 0, "restarted after {after_us} us: {:?}", run.outcomes.account);
    }
}

/// Twice the same, the second time while it learns what the first life had in hand.
#[test]
fn a_supervisor_that_dies_again_at_once_loses_nothing() {
    for after_us in (2_050..4_500).step_by(50) {
        let mut plan = busy();
        let l2sv = plan.of(Role::L2sv)[0];
        let (first, again) = (Duration::from_millis(1), Duration::from_micros(after_us));
        let away = Duration::from_millis(1);
        plan.course.faults = vec![(first, Fault::Restart(l2sv, away)), (again, Fault::Restart(l2sv, away))];
        let run = held(&plan);
        assert_eq!(lost(&run), 0, "restarted again after {after_us} us: {:?}", run.outcomes.account);
    }
}

/// What it had accepted waited for builders in the DFM, and nobody else knew of it when that died, too.
#[test]
fn what_a_supervisor_that_returned_had_accepted_outlives_the_dfm() {
    for after_us in (4_000..30_000).step_by(1_000) {
        for clear_after in [ClearAfter::Built, ClearAfter::Recorded] {
            let mut plan = busy().with(|plan| plan.building.clear_after = clear_after);
            let (l2sv, dfm) = (plan.of(Role::L2sv)[0], plan.of(Role::Dfm)[0]);
            let at = Duration::from_micros(after_us);
            let away = Duration::from_millis(1);
            plan.course.faults = vec![
                (Duration::from_millis(2), Fault::Split(plan.of(Role::Sfi), Duration::from_millis(40))),
                (at, Fault::Restart(l2sv, away)),
                (at + Duration::from_millis(8), Fault::Restart(dfm, away)),
            ];
            let run = held(&plan);
            assert_eq!(lost(&run), 0, "restarted after {after_us} us: {:?}", run.outcomes.account);
        }
    }
}

/// What the DFM had finished and level 1 did not know of was decided again, without its data, and counted twice or not at all.
#[test]
fn what_was_finished_before_supervisor_and_dfm_died_is_not_decided_again() {
    let mut told_again = 0;
    for after_us in (1_000..20_000).step_by(1_000) {
        for dfm_us in [1_000, 5_000, 15_000] {
            let mut plan = busy().with(|plan| plan.building.clear_after = ClearAfter::Recorded);
            let restarts = |role, us: u64, away_ms| {
                (Duration::from_micros(after_us + us), Fault::Restart(plan.of(role)[0], Duration::from_millis(away_ms)))
            };
            plan.course.faults = vec![restarts(Role::L2sv, 0, 20), restarts(Role::Dfm, dfm_us, 1)];
            let run = held(&plan);
            assert_eq!(lost(&run), 0, "restarted after {after_us} and {dfm_us} us: {:?}", run.outcomes.account);
            told_again += l2sv(&run).told_again;
        }
    }
    assert!(told_again > 100, "{told_again}");
}

/// What L2PUs had in hand was known to read-out systems alone, and nobody counted it.
#[test]
fn what_dies_with_level_1_and_its_supervisor_counts_as_lost() {
    let mut lost_undecided = 0;
    for after_us in (1_000..20_000).step_by(500) {
        for (level1_us, l2sv_us) in [(0, 0), (0, 400), (400, 0)] {
            let mut plan = busy();
            let dies = |role, us: u64| (Duration::from_micros(after_us + us), Fault::Kill(plan.of(role)[0]));
            plan.course.faults = vec![dies(Role::Level1, level1_us), dies(Role::L2sv, l2sv_us)];
            let run = held(&plan);
            let account = &run.outcomes.account;
            lost_undecided += account.level2_lost;
        }
    }
    assert!(lost_undecided > 100, "{lost_undecided}");
}

/// A result that came again waited for a page, though it was there: with no page free everything stood still.
#[test]
fn a_result_that_comes_again_needs_no_page() {
    assert_eq!(Plan::draw_in(1, 300_010_788, 2).verdict(), None);
}

fn busy() -> Plan {
    Plan::plain(400).with(|plan| {
        plan.triggers.spacing = Spacing::Fixed(Duration::from_micros(50));
        plan.level2.steering_cost = Duration::from_micros(100);
        plan.level2.workers = 8;
        plan.readout.pages = 400;
    })
}

fn restarted(mut plan: Plan, after_us: u64) -> Run {
    let l2sv = plan.of(Role::L2sv)[0];
    plan.course.faults = vec![(Duration::from_micros(after_us), Fault::Restart(l2sv, Duration::from_millis(3)))];
    held(&plan)
}

fn held(plan: &Plan) -> Run {
    let run = plan.run();
    assert!(run.failures.is_empty(), "{:?}: {:?}\n{:?}", plan.course.faults, run.failures, run.outcomes.account);
    run
}

fn lost(run: &Run) -> u64 {
    let account = &run.outcomes.account;
    account.level2_lost + account.not_built + account.lost_after_build + account.lost_in_recording
}

fn l2sv(run: &Run) -> L2svCounters {
    L2svCounters::total(run.outcomes.ending.reports.values().filter(|report| report.role == Role::L2sv))
}
