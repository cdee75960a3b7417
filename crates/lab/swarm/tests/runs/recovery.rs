//! Applications that die at any time of a run and return: nothing is lost, nothing is built or recorded twice.

use std::time::Duration;

use base::ids::{NodeId, Role};
use dataflow::building::dfm::ClearAfter;
use dataflow::building::sfi::RequestOrder;
use dataflow::filter::policy::FilterPolicy;
use dataflow::level1::pace::Spacing;
use dataflow::level2::steering::Strategy;
use dataflow::readout::pusher::Destination;
use dataflow::recording::sfo::Durable;
use dataflow::report::{DfmCounters, RosCounters, SfiCounters};

use simulator::world::{Fault, Links, Outcomes};
use swarm::{Counts, InputKind, Plan, Push};

const EVENTS: u64 = 60;
/// All of a run, and a little more.
const RUN_US: u64 = 16_000;
const STEP_US: usize = 370;

/// Triggers of about 12 ms, of which everything is accepted and recorded.
fn plan(input: InputKind) -> Plan {
    Plan::plain(EVENTS).with(|plan| {
        plan.input = input;
        plan.triggers.spacing = Spacing::Fixed(Duration::from_micros(200));
        plan.level2.strategy = Strategy::Generate { robs_per_step: 2, accept: 1.0 };
        plan.building.clear_after = ClearAfter::Recorded;
    })
}

/// Dies at this time and returns after two milliseconds.
fn with_restart(plan: &Plan, role: Role, at_us: u64) -> Plan {
    let node = node(plan, role);
    let fault = Fault::Restart(node, Duration::from_millis(2));
    plan.clone().with(|plan| plan.course.faults = vec![(Duration::from_micros(at_us), fault)])
}

fn node(plan: &Plan, role: Role) -> NodeId {
    let app = plan.applications().into_iter().find(|app| app.role == role);
    app.expect("one of the role").node
}

/// Every event is in the files, once, and none counts as lost.
fn all_recorded(plan: &Plan) -> Outcomes {
    let outcomes = plan.run_checked();
    let account = &outcomes.account;
    assert_eq!((account.residual, account.recorded, account.recorded_copies), (0, EVENTS, EVENTS), "{account:#?}");
    outcomes
}

#[test]
fn a_dfm_that_dies_at_any_time_and_returns_loses_nothing() {
    for input in [InputKind::Level2, InputKind::Level1, InputKind::SelfTrigger] {
        for clear_after in [ClearAfter::Built, ClearAfter::Recorded] {
            for at_us in (0..RUN_US).step_by(STEP_US) {
                let plan = plan(input).with(|plan| plan.building.clear_after = clear_after);
                let outcomes = all_recorded(&with_restart(&plan, Role::Dfm, at_us));
                assert_eq!(dfm(&outcomes).recovered_without, 0, "all builders have told");
            }
        }
    }
}

/// An event built again lacked data that the first copy had, or the other way round. The account told of the copy that
/// was not recorded.
#[test]
fn the_account_tells_whether_the_copy_that_is_recorded_has_all_its_data() {
    let mut built_again = 0;
    for at_us in (0..RUN_US).step_by(STEP_US) {
        for seed in 0..4 {
            let plan = plan(InputKind::Level1).with(|plan| {
                plan.seed = seed;
                plan.counts = Counts { sfi: 1, efd: 2, ..Plan::plain(0).counts };
                plan.network.links = Links { loss: 0.4, ..Links::perfect() };
                plan.building.request_timeout = Duration::from_micros(500);
            });
            let outcomes = all_recorded(&with_restart(&plan, Role::Sfi, at_us));
            built_again += outcomes.account.duplicates;
        }
    }
    assert!(built_again > 0, "no event was recorded before its builder died");
}

#[test]
fn a_dfm_that_dies_again_before_it_knows_enough_loses_nothing() {
    for input in [InputKind::Level2, InputKind::Level1, InputKind::SelfTrigger] {
        for again_us in (1_000..4_000).step_by(170) {
            let mut plan = with_restart(&plan(input), Role::Dfm, 3_000);
            let again = Fault::Restart(node(&plan, Role::Dfm), Duration::from_millis(1));
            plan.course.faults.push((Duration::from_micros(4_000 + again_us), again));
            all_recorded(&plan);
        }
    }
}

#[test]
fn a_dfm_that_returns_tells_anew_who_is_pushed_to() {
    for destination in [Destination::Assigned, Destination::Table] {
        let push = Push { destination, window_bytes: 3_000, bytes_per_s: None, burst_bytes: 0, group: 1, ahead: 20 };
        let plan = plan(InputKind::Level1).with(|plan| plan.building.push = Some(push));
        for at_us in (0..RUN_US).step_by(STEP_US) {
            all_recorded(&with_restart(&plan, Role::Dfm, at_us));
        }
    }
}

#[test]
fn a_recorder_that_dies_at_any_time_and_returns_writes_nothing_twice() {
    for durable in [Durable::Write, Durable::Sync { age: Duration::from_millis(1), events: 4 }] {
        let plan = plan(InputKind::Level1).with(|plan| plan.recording.durable = durable);
        for at_us in (0..RUN_US).step_by(STEP_US) {
            all_recorded(&with_restart(&plan, Role::Sfo, at_us));
        }
    }
}

#[test]
fn builders_and_filters_that_die_at_any_time_and_return_lose_nothing() {
    for role in [Role::Sfi, Role::Efd] {
        for at_us in (0..RUN_US).step_by(STEP_US) {
            all_recorded(&with_restart(&plan(InputKind::Level2), role, at_us));
        }
    }
}

/// While level 1 was held back, a read-out system that returned heard of no trigger: each request waited for its time-out.
#[test]
fn a_read_out_system_that_returns_answers_at_once_for_what_was_issued_without_it() {
    let mut incomplete = 0;
    for input in [InputKind::Level2, InputKind::Level1] {
        for at_us in (0..RUN_US).step_by(STEP_US) {
            let outcomes = all_recorded(&with_restart(&plan(input), Role::Ros, at_us));
            incomplete += outcomes.account.built_incomplete;
            let ros = RosCounters::total(outcomes.ending.reports.values().filter(|report| report.role == Role::Ros));
            assert_eq!(ros.timeouts, 0, "died after {at_us} us");
        }
    }
    assert!(incomplete > 0, "what was lost is named");
}

#[test]
fn a_pros_that_dies_at_any_time_and_returns_loses_results_only() {
    let mut incomplete = 0;
    for at_us in (0..RUN_US).step_by(STEP_US) {
        let outcomes = all_recorded(&with_restart(&plan(InputKind::Level2), Role::Pros, at_us));
        incomplete += outcomes.account.built_incomplete;
        let missing = SfiCounters::total(outcomes.ending.reports.values().filter(|report| report.role == Role::Sfi));
        assert_eq!(missing.missing_robs, outcomes.account.built_incomplete, "one for each event: its result");
    }
    assert!(incomplete > 0, "what was lost is counted");
}

/// Otherwise each builder would wait for results that cannot come as long as a source may take with all its tries.
#[test]
fn building_keeps_its_pace_while_the_pros_is_away() {
    const ACCEPTS: u64 = 500;
    let spacing = Duration::from_millis(4);
    let plan = plan(InputKind::Level2).with(|plan| {
        plan.triggers.spacing = Spacing::Fixed(spacing);
        plan.building.request_timeout = Duration::from_millis(500);
        plan.building.timeout = Duration::from_secs(10);
        plan.triggers.events = ACCEPTS;
    });
    let fault = Fault::Restart(node(&plan, Role::Pros), Duration::from_secs(1));
    let outcomes = plan.with(|plan| plan.course.faults = vec![(Duration::from_millis(500), fault)]).run_checked();
    let account = &outcomes.account;
    assert_eq!((account.recorded, account.residual), (ACCEPTS, 0), "{account:#?}");
    let took = outcomes.ended.since(outcomes.began);
    assert!(took < spacing * ACCEPTS as u32 + Duration::from_millis(50), "{took:?}");
    assert!((240..260).contains(&account.built_incomplete), "those of one second: {account:#?}");
    let reports = outcomes.ending.reports.values();
    assert_eq!(SfiCounters::total(reports.filter(|report| report.role == Role::Sfi)).reasks, 0);
}

/// A builder that has cleared its built events takes only that with it which nobody else has. The filter knows what the
/// builder was told and had no time to tell.
#[test]
fn what_counts_as_lost_with_a_builder_is_not_in_the_files() {
    let mut lost = 0;
    for at_us in (0..RUN_US).step_by(STEP_US / 2) {
        let plan = plan(InputKind::Level2).with(|plan| plan.building.clear_after = ClearAfter::Built);
        let outcomes = with_restart(&plan, Role::Sfi, at_us).run_checked();
        let dfm = dfm(&outcomes);
        assert_eq!(dfm.lost_built, EVENTS - outcomes.account.recorded, "{dfm:?}");
        lost += dfm.lost_built;
    }
    assert!(lost > 0, "a builder dies with events that nobody else has");
}

/// Events that a builder had told a DFM that died as well were built again without their data. Those that the filter
/// had rejected counted as not built. So was what a filter daemon had told that DFM in place of the builder.
#[test]
fn the_account_is_true_when_a_dfm_and_a_builder_both_die_and_return() {
    for input in [InputKind::Level2, InputKind::Level1] {
        for at_us in (1_000..RUN_US).step_by(STEP_US) {
            for apart_us in [-700, -100, 0, 100, 700_i64] {
                let policy = FilterPolicy::Prescale { factor: 3 };
                let plan = with_restart(&plan(input).with(|plan| plan.filter.policy = policy), Role::Dfm, at_us);
                let builder = Fault::Restart(node(&plan, Role::Sfi), Duration::from_millis(2));
                let at = Duration::from_micros(at_us.saturating_add_signed(apart_us));
                let faults = plan.course.faults.iter().cloned().chain([(at, builder)]).collect();
                let account = plan.with(|plan| plan.course.faults = faults).run_checked().account;
                let (rejected, complete) = (account.filter_rejected, account.built_complete);
                assert_eq!(
                    (rejected, account.recorded, complete),
                    (EVENTS * 2 / 3, EVENTS / 3, EVENTS),
                    "{account:#?}"
                );
            }
        }
    }
}

#[test]
fn a_dfm_that_returns_does_not_wait_for_a_dead_builder_for_ever() {
    let mut plan = plan(InputKind::Level1);
    let builders: Vec<NodeId> =
        plan.applications().into_iter().filter(|app| app.role == Role::Sfi).map(|app| app.node).collect();
    plan = with_restart(&plan, Role::Dfm, 5_000);
    // It is away until long after the DFM has given it up.
    plan.course.faults.push((Duration::from_millis(4), Fault::Restart(builders[0], Duration::from_millis(900))));
    let outcomes = plan.run_checked();
    let account = &outcomes.account;
    assert_eq!((account.residual, account.recorded, account.recorded_copies), (0, EVENTS, EVENTS), "{account:#?}");
    assert_eq!(dfm(&outcomes).recovered_without, 1, "it is counted");
}

#[test]
fn what_a_slow_builder_holds_is_not_built_again_by_a_dfm_that_returns() {
    for at_us in (2_000..9_000).step_by(500) {
        let mut plan = with_restart(&plan(InputKind::Level2), Role::Dfm, at_us + 300);
        let node = node(&plan, Role::Sfi);
        let slow = Fault::Slow { node, each: Duration::from_millis(40), lasts: Duration::from_millis(30) };
        plan.course.faults.push((Duration::from_micros(at_us), slow));
        let outcomes = all_recorded(&plan);
        assert_eq!((dfm(&outcomes).recovered_without, outcomes.account.duplicates), (0, 0));
    }
}

#[test]
fn a_builder_that_hangs_is_not_waited_for_for_ever_by_a_dfm_that_returns() {
    let mut plan = with_restart(&plan(InputKind::Level2), Role::Dfm, 5_000);
    plan.course.faults.push((Duration::from_millis(4), Fault::Hang(node(&plan, Role::Sfi))));
    let outcomes = plan.run_checked();
    assert_eq!(dfm(&outcomes).recovered_without, 1, "it is counted");
    assert!(outcomes.account.recorded > EVENTS * 8 / 10, "the other builds: {:#?}", outcomes.account);
}

#[test]
fn a_filter_daemon_that_hangs_is_not_waited_for_for_ever_by_a_dfm_that_triggers_itself() {
    let counts = Counts { efd: 2, ..Plan::plain(0).counts };
    let mut plan = with_restart(&plan(InputKind::SelfTrigger).with(|plan| plan.counts = counts), Role::Dfm, 5_000);
    plan.course.faults.push((Duration::from_millis(4), Fault::Hang(node(&plan, Role::Efd))));
    let outcomes = plan.run_checked();
    assert_eq!(dfm(&outcomes).recovered_without, 1, "it is counted");
    assert!(outcomes.account.recorded > EVENTS * 8 / 10, "the other filters: {:#?}", outcomes.account);
}

/// One builder was late with an event that another had built, and ended it while the DFM was away. The next DFM heard it first, and
/// granted the event to both. So they were where the other had been told that the event was finished for all, and was heard last.
#[test]
fn an_event_that_one_builder_was_granted_is_not_granted_to_another_by_a_dfm_that_returns() {
    let trickle = |bytes_per_s| Push {
        destination: Destination::Assigned,
        window_bytes: 1 << 20,
        bytes_per_s,
        burst_bytes: 0,
        group: 1,
        ahead: 4,
    };
    let slowly = Push { window_bytes: 1, burst_bytes: 1_000, ahead: 0, ..trickle(Some(50_000)) };
    let alone = Plan::plain(6).with(|plan| {
        plan.input = InputKind::SelfTrigger;
        plan.counts = Counts { ros: 1, efd: 2, sfo: 2, ..Plan::plain(0).counts };
        plan.readout.robs_per_ros = 1;
        plan.building.request_order = RequestOrder::Rotating;
        plan.triggers.spacing = Spacing::Poisson(Duration::from_micros(300));
        plan.building.push = Some(trickle(Some(1_000_000)));
        plan.building.timeout = Duration::from_micros(633);
        plan.building.clear_after = ClearAfter::Recorded;
    });
    let selected = Plan::plain(6).with(|plan| {
        plan.input = InputKind::Level2;
        plan.counts = Counts { l2sv: 2, l2pu: 1, ..Plan::plain(0).counts };
        plan.level2.strategy = Strategy::TwoStep { robs_per_step: 2, step_accept: 1.0 };
        plan.building.push = Some(slowly);
        plan.building.timeout = Duration::from_micros(7_811);
        plan.building.clear_after = ClearAfter::Recorded;
    });
    for (plan, from_us, to_us) in [(alone, 500_u64, 2_500), (selected, 14_000, 24_000)] {
        for at_us in (from_us..to_us).step_by((to_us - from_us) as usize / 60) {
            for seed in 1..4 {
                let plan = plan.clone().with(|plan| plan.seed = seed);
                let outcomes = with_restart(&plan, Role::Dfm, at_us).run_checked();
                assert_eq!(outcomes.account.recorded, 6, "{:#?}", outcomes.account);
            }
        }
    }
}

/// The next DFM went on without a builder that was out of reach. It then gave it an event that it had, under the number of
/// the attempt that it had. The DFM took the end of the old attempt for that of the new one, and the event was never served.
#[test]
fn a_builder_that_was_out_of_reach_tells_what_it_holds_before_it_is_given_more() {
    for input in [InputKind::Level2, InputKind::Level1, InputKind::SelfTrigger] {
        for clear_after in [ClearAfter::Built, ClearAfter::Recorded] {
            for at_us in (500..10_000).step_by(250) {
                let plan = plan(input).with(|plan| {
                    plan.building.clear_after = clear_after;
                    plan.building.timeout = Duration::from_millis(2);
                });
                let mut plan = with_restart(&plan, Role::Dfm, at_us);
                let split = Fault::Split(vec![node(&plan, Role::Sfi)], Duration::from_millis(15));
                plan.course.faults.push((Duration::from_micros(at_us - 300), split));
                all_recorded(&plan);
            }
        }
    }
}

/// An event builder died as the run ended: the report of the DFM did not wait for what the filter daemons had of it.
#[test]
fn a_builder_that_dies_at_the_end_leaves_no_event_unknown() {
    assert_eq!(Plan::draw_in(1, 400_010_233, 3).verdict(), None);
}

/// What was built a second time with data missing counted twice.
#[test]
fn what_is_built_twice_and_incomplete_counts_once() {
    assert_eq!(Plan::draw_in(1, 400_003_480, 4).verdict(), None);
}

fn dfm(outcomes: &Outcomes) -> DfmCounters {
    DfmCounters::total(outcomes.ending.reports.values().filter(|report| report.role == Role::Dfm))
}
