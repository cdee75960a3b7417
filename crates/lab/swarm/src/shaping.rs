//! What sources push, against the rate and the window that they may have towards each builder.

use std::collections::BTreeMap;

use base::ids::NodeId;
use dataflow::building::EVENT_BYTES;
use dataflow::readout::lateness::LATENESS_MAX;

use super::Failures;
use super::plan::{Plan, Push};
use simulator::world::{Outcomes, Pushed};

/// In any interval a source sends no more to a builder than its rate allows and a burst. On top come bytes that it was
/// owed while it was called late, and the last event that still found credit. A bucket that is filled as late and
/// emptied as early as the passes of the source allow overflows only if that does not hold.
pub(super) fn too_fast(plan: &Plan, outcomes: &Outcomes, failures: &mut Failures) {
    let Some(Push { bytes_per_s: Some(rate), burst_bytes, group, .. }) = plan.building.push else { return };
    let takes_ns = |bytes: u64| bytes * 1_000_000_000 / rate;
    let rest = (group as u64 - 1) * outcomes.pushed.iter().map(cost).max().unwrap_or(0);
    let mut paid_ns = BTreeMap::new();
    for pushed in &outcomes.pushed {
        let paid_ns: &mut u64 = paid_ns.entry((pushed.from, pushed.life, pushed.to)).or_default();
        let at_ns = pushed.at.as_ns();
        let most_ns = takes_ns(burst_bytes + rest) + pushed.late.min(LATENESS_MAX).as_nanos() as u64;
        if *paid_ns > at_ns + most_ns {
            let (from, to) = (pushed.from, pushed.to);
            let early = *paid_ns - at_ns - most_ns;
            failures.push(format!("{from:?} pushes {} to {to:?} before its time, by {early} ns", pushed.event));
        }
        *paid_ns = (*paid_ns).max(pushed.earliest.as_ns()) + takes_ns(cost(pushed));
    }
}

/// A source has no more on the way to a builder than its window and the last event that still found room in it.
pub(super) fn too_much(plan: &Plan, outcomes: &Outcomes, failures: &mut Failures) {
    let Some(Push { window_bytes, group, .. }) = plan.building.push else { return };
    let most = window_bytes.saturating_add(group as u64 * outcomes.pushed.iter().map(cost).max().unwrap_or(0));
    let lived = |node: &NodeId| !outcomes.touched.contains(node);
    let mut sent = BTreeMap::<_, u64>::new();
    for pushed in outcomes.pushed.iter().filter(|pushed| lived(&pushed.from) && lived(&pushed.to)) {
        let sent = sent.entry((pushed.from, pushed.to)).or_default();
        *sent += cost(pushed);
        if *sent > pushed.credit.saturating_add(most) {
            let Pushed { from, to, credit, .. } = pushed;
            failures.push(format!("{from:?} has pushed {sent} bytes to {to:?}, which has said that it took {credit}"));
        }
    }
}

fn cost(pushed: &Pushed) -> u64 {
    u64::from(pushed.len_bytes) + EVENT_BYTES
}
