//! A bug leaves a test that is named after it.

use simulator::swarm::Plan;

/// Results of events that a dead supervisor had taken with it filled the pROS, and L2PUs waited for it to take more.
#[test]
fn results_of_a_dead_supervisor_do_not_keep_an_l2pu_from_draining() {
    holds(7_001_059, 3);
}

/// An application was killed in the moment in which the run began, and run control was told of it before.
#[test]
fn a_death_in_the_first_moment_ends_the_run() {
    holds(1_795_324_697_387, 3);
}

/// Events that went to a second builder were counted twice where the DFM died.
#[test]
fn events_assigned_twice_by_a_dead_dfm_count_once() {
    holds(50_006_488, 3);
}

fn holds(seed: u64, level: u32) {
    let plan = Plan::draw(seed, level);
    assert_eq!(plan.verdict(), None, "{plan:#?}");
}
