//! Links that push within read-out crates: what sources do is really met there, and what was once made wrong of it.

use base::ids::Role;
use dataflow::report::{EfdCounters, RosCounters};
use simulator::world::Doings;
use swarm::{EDITION_OF_CRATE_LINKS, LEVELS, Plan};

use crate::sources::add;

/// What plans have sources do is what their runs see, at all levels of faults.
#[test]
fn sources_misbehave_within_crates_in_every_way_there_is() {
    let (mut met, mut counted, mut filtered) = (Doings::default(), RosCounters::default(), EfdCounters::default());
    let (mut late, mut struck, mut beside_crates) = (0, 0, 0);
    for seed in 0..600 {
        let plan = Plan::draw_in(EDITION_OF_CRATE_LINKS, seed, seed as u32 % LEVELS);
        let outcomes = plan.run_checked();
        let crates = plan.readout.crates.expect("each plan has crates");
        let within: Vec<_> = plan.of(Role::Ros).into_iter().take(usize::from(crates.count * crates.ros)).collect();
        beside_crates += u64::from(within.len() < usize::from(plan.counts.ros));
        let sources = outcomes.setup.detectors.each.iter().zip(&outcomes.sources);
        for (source, doings) in sources.filter(|(source, _)| within.contains(&source.ros)) {
            add(&mut met, doings);
            late += u64::from(!source.habits.late.is_zero());
        }
        for report in within.iter().filter_map(|ros| outcomes.ending.reports.get(ros)) {
            for link in &report.links {
                counted.cleared += link.counters.cleared;
                counted.absent += link.counters.absent;
                counted.never_triggered += link.counters.never_triggered;
                counted.dropped_cleared += link.counters.dropped_cleared;
            }
        }
        let fronts = [Role::Trg, Role::Ebif].map(|role| plan.of(role)).concat();
        struck += u64::from(fronts.iter().any(|front| outcomes.touched.contains(front)));
        let of_efds = EfdCounters::total(outcomes.ending.reports.values().filter(|report| report.role == Role::Efd));
        filtered.dropped_incomplete += of_efds.dropped_incomplete;
        filtered.debug_incomplete += of_efds.debug_incomplete;
    }
    let Doings { sent, swapped, doubled, damaged, wild, back, left_out, invented, idle, hesitated, .. } = met;
    let Doings { unasked, turned_off, blocked, died, returned, unended, .. } = met;
    let by_fragment = [sent, swapped, doubled, damaged, wild, back, left_out, invented, idle, hesitated, unasked];
    let by_source = [turned_off, blocked, died, returned, unended, late, struck, beside_crates];
    let RosCounters { cleared, absent, never_triggered, dropped_cleared, .. } = counted;
    let EfdCounters { dropped_incomplete, debug_incomplete, .. } = filtered;
    let of_events = [cleared, absent, never_triggered, dropped_cleared, dropped_incomplete, debug_incomplete];
    assert!(by_fragment.iter().all(|count| *count > 50), "{met:?}");
    assert!(by_source.iter().all(|count| *count > 5), "{by_source:?}");
    assert!(of_events.iter().all(|count| *count > 20), "{of_events:?}");
}
