//! Less of a plan that fails, as long as it still fails.

use std::time::Duration;

use dataflow::ids::NodeId;
use dataflow::level2::overrides::Overrides;

use super::plan::{Counts, Plan};
use crate::world::{Fault, Links};

/// The smallest plan found that `fails` like the given one: faults and features are dropped, and applications and events
/// made fewer, one after the other, until nothing can be dropped any more.
pub fn shrink(plan: &Plan, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut smallest = plan.clone();
    while let Some(smaller) = smaller(&smallest).into_iter().find(|plan| fails(plan)) {
        smallest = smaller;
    }
    smallest
}

/// Plans with one thing less, those with the most removed first.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        if format!("{changed:?}") != format!("{plan:?}") {
            all.push(changed);
        }
    };
    with(&|plan| plan.faults.clear());
    with(&|plan| plan.links = Links::perfect());
    with(&|plan| plan.fragment_faults = Links::perfect());
    for index in 0..plan.faults.len() {
        with(&|plan| _ = plan.faults.remove(index));
    }
    with(&|plan| plan.late.clear());
    with(&|plan| plan.links.loss = 0.0);
    with(&|plan| plan.links.duplication = 0.0);
    with(&|plan| plan.links.delay = 0.0);
    with(&|plan| plan.links.corruption = 0.0);
    with(&|plan| plan.links.stray = 0.0);
    with(&|plan| plan.events = plan.events.div_ceil(2));
    with(&|plan| plan.events -= u64::from(plan.events > 1));
    with(&|plan| plan.record_failures = 0.0);
    with(&|plan| plan.slow_steering = 0.0);
    with(&|plan| plan.slow_channels = 0.0);
    with(&|plan| plan.service = Duration::ZERO);
    with(&|plan| plan.steering_cost = Duration::ZERO);
    with(&|plan| plan.build_timeout = Duration::from_millis(200));
    with(&|plan| plan.healed_after = None);
    with(&|plan| plan.profile.clear());
    with(&|plan| plan.crossings = None);
    with(&|plan| plan.credit = None);
    with(&|plan| plan.sink = None);
    with(&|plan| plan.phased = None);
    with(&|plan| plan.push = None);
    with(&|plan| plan.overrides = Overrides::default());
    with(&|plan| plan.filter_tasks = false);
    with(&|plan| plan.duration = None);
    with(&|plan| plan.robs_per_ros = 1);
    for count in COUNTS {
        with(&|plan| fewer(plan, count));
    }
    all
}

/// One application less of a role; what happens to the others happens to them still.
fn fewer(plan: &mut Plan, count: Count) {
    let number = count(&mut plan.counts);
    if *number <= 1 {
        return;
    }
    let before = plan.applications();
    *count(&mut plan.counts) -= 1;
    let after = plan.applications();
    let moved = |node: NodeId| {
        let name = &before[usize::from(node.0) - 1].name;
        after.iter().find(|app| app.name == *name).map(|app| app.node)
    };
    plan.late = plan.late.iter().filter_map(|(node, time)| Some((moved(*node)?, *time))).collect();
    plan.faults = plan.faults.iter().filter_map(|(at, fault)| Some((*at, moved_fault(fault, &moved)?))).collect();
}

fn moved_fault(fault: &Fault, moved: &dyn Fn(NodeId) -> Option<NodeId>) -> Option<Fault> {
    Some(match fault {
        Fault::Kill(node) => Fault::Kill(moved(*node)?),
        Fault::Restart(node, after) => Fault::Restart(moved(*node)?, *after),
        Fault::Hang(node) => Fault::Hang(moved(*node)?),
        Fault::Force => Fault::Force,
        Fault::Split(nodes, lasts) => Fault::Split(nodes.iter().filter_map(|node| moved(*node)).collect(), *lasts),
        Fault::Slow { node, each, lasts } => Fault::Slow { node: moved(*node)?, each: *each, lasts: *lasts },
        Fault::ClockStep(node, step) => Fault::ClockStep(moved(*node)?, *step),
        Fault::FullDisk(node, lasts) => Fault::FullDisk(moved(*node)?, *lasts),
    })
}

type Count = fn(&mut Counts) -> &mut u16;

const COUNTS: [Count; 6] = [
    |counts| &mut counts.l2sv,
    |counts| &mut counts.l2pu,
    |counts| &mut counts.ros,
    |counts| &mut counts.sfi,
    |counts| &mut counts.efd,
    |counts| &mut counts.sfo,
];
