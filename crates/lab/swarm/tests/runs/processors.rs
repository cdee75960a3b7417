//! Level-1 processors outside: what they do is really met, and triggers come from them alone.

use base::ids::Role;
use dataflow::report::{Counters, Level1Counters, RosCounters};
use simulator::world::Doings;
use swarm::{EDITION_OF_PROCESSORS, LEVELS, Plan};

/// What plans have processors do is what their runs see, at all levels of faults.
#[test]
fn processors_misbehave_in_every_way_there_is() {
    let (mut met, mut counted) = (Doings::default(), RosCounters::default());
    let (mut beside_sources, mut several, mut unused) = (0, 0, 0);
    for seed in 0..200 {
        let plan = Plan::draw_in(EDITION_OF_PROCESSORS, seed, seed as u32 % LEVELS);
        let outcomes = plan.run_checked();
        let level1 = outcomes.ending.reports.values().find(|report| report.role == Role::Level1);
        let Some(level1) = level1 else { continue };
        let processors = outcomes.setup.detectors.each.iter().zip(&outcomes.sources);
        for (_, doings) in processors.filter(|(source, _)| plan.of(Role::Level1).contains(&source.ros)) {
            met.sent += doings.sent;
            met.left_out += doings.left_out;
            met.unasked += doings.unasked;
            met.turned_off += doings.turned_off;
            met.died += doings.died;
            met.returned += doings.returned;
            met.unended += doings.unended;
        }
        for link in &level1.links {
            counted.cleared += link.counters.cleared;
            counted.absent += link.counters.absent;
            counted.dropped_duplicate += link.counters.dropped_duplicate;
            counted.dropped_old += link.counters.dropped_old;
            counted.dropped_unplaced += link.counters.dropped_unplaced;
        }
        several += u64::from(level1.links.len() > 1);
        beside_sources += u64::from(plan.readout.sending.is_some());
        unused += Level1Counters::from_values(&level1.counters).unused;
    }
    let Doings { sent, left_out, unasked, turned_off, died, returned, unended, .. } = met;
    let does = [sent, left_out, unasked, turned_off, died, returned, unended];
    assert!(does.iter().all(|count| *count > 3), "{met:?}");
    let RosCounters { cleared, absent, dropped_duplicate, dropped_old, dropped_unplaced, .. } = counted;
    let found = [cleared, absent, dropped_duplicate, dropped_old, dropped_unplaced, several, beside_sources, unused];
    assert!(found.iter().all(|count| *count > 3), "{found:?} {counted:?}");
}
