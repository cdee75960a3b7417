//! A bug leaves a test that is named after it.

use simulator::swarm::Plan;

/// Results of events that a dead supervisor had taken with it filled the pROS, and L2PUs waited for it to take more.
#[test]
fn results_of_a_dead_supervisor_do_not_keep_an_l2pu_from_draining() {
    holds(7_001_059, 3);
}

fn holds(seed: u64, level: u32) {
    let plan = Plan::draw(seed, level);
    assert_eq!(plan.verdict(), None, "{plan:#?}");
}
