//! The books of links that push, beside what sources did.

use std::collections::BTreeSet;

use base::ids::{EventId, NodeId, Role};
use dataflow::message::BusyCause;
use dataflow::report::{LinkReport, LinkState, RosCounters};

use super::Failures;
use super::plan::Plan;
use simulator::world::{Doings, Outcomes};

/// Everything that a link brought is in one place of its books, and everything that was triggered came or is absent.
pub(super) fn check(plan: &Plan, outcomes: &Outcomes, failures: &mut Failures) {
    let sources = &outcomes.setup.detectors.each;
    let numbered = sources.iter().zip(&outcomes.sources).filter(|(source, _)| !source.is_matched());
    for (source, doings) in numbered {
        // Those that died have their former lives in the report, and what those were handed nobody knows.
        let Some(report) = outcomes.ending.reports.get(&source.ros).filter(|_| !is_touched(outcomes, source.ros))
        else {
            continue;
        };
        let link = report.links[usize::from(source.rob)];
        let books = Books { plan, outcomes, doings, ros: source.ros, link };
        let found = books.failures();
        failures.extend(found.into_iter().map(|what| format!("link {} of {:?}: {what}", source.rob, source.ros)));
    }
}

/// Whether a read-out system says that it is busy because a source has not come, and none has.
pub(super) fn is_awaited(outcomes: &Outcomes, busy: &str) -> bool {
    let mut links = outcomes.ending.reports.values().flat_map(|report| &report.links);
    busy.ends_with(BusyCause::Source.describe()) && links.any(|link| link.state == LinkState::Awaited)
}

fn is_touched(outcomes: &Outcomes, ros: NodeId) -> bool {
    outcomes.touched.contains(&ros) || outcomes.ending.dead.contains(&ros)
}

struct Books<'a> {
    plan: &'a Plan,
    outcomes: &'a Outcomes,
    doings: &'a Doings,
    ros: NodeId,
    link: LinkReport,
}

impl Books<'_> {
    fn failures(&self) -> Vec<String> {
        let Self { doings, link: LinkReport { counters: c, state, .. }, .. } = self;
        let mut failures = Vec::new();
        let may_be_early = self.is_cut_short();
        let mut equal = |what: &str, left: u64, right: u64, may_be_less: bool| {
            if left != right && !(may_be_less && left < right) {
                failures.push(format!("{what}: {left} against {right}: {c:?}"));
            }
        };
        let handed = doings.handed.len() as u64;
        equal("fragments", c.fragments_in, handed, may_be_early);
        equal("damaged", c.flagged, doings.handed_damaged, may_be_early);
        equal("announced", c.announced, doings.announced, may_be_early);
        equal("dropped for want of a page", c.dropped_full, 0, false);
        let dropped = c.dropped_duplicate + c.dropped_old + c.dropped_cleared + c.dropped_unplaced;
        let gone = c.cleared + dropped + c.garbage_collected + c.never_triggered;
        equal("every fragment", c.fragments_in, gone + c.resident, false);
        let distinct: BTreeSet<u64> = doings.handed.iter().copied().collect();
        let doubled = handed - distinct.len() as u64;
        let collected = if self.forgets_clears() { c.garbage_collected } else { 0 };
        let again = dropped + c.never_triggered + collected;
        if doubled > again && !may_be_early {
            failures.push(format!("{doubled} fragments came again, {again} at most were dropped as such: {c:?}"));
        }
        if doings.was_not_awaited && self.awaits_all() {
            failures.push("events were issued before its source had come".to_owned());
        }
        if doings.has_ended != (*state == LinkState::Ended) && !may_be_early {
            failures.push(format!("the source has ended: {}, its link is {state:?}", doings.has_ended));
        }
        if !may_be_early {
            self.triggered(c, &distinct, &mut failures);
        }
        failures
    }

    /// Every event that was issued is cleared, of each link with or without a fragment.
    fn triggered(&self, c: &RosCounters, distinct: &BTreeSet<u64>, failures: &mut Vec<String>) {
        let issued = self.issued();
        let known = c.cleared + c.absent;
        // A clear that is lost for good leaves its fragments to be collected.
        let may_lack = c.garbage_collected > 0 || c.clears_asked > 0;
        if known > issued.len() as u64 || (known < issued.len() as u64 && !may_lack) {
            failures.push(format!("{} events were issued, {known} are cleared or absent: {c:?}", issued.len()));
        }
        let came = distinct.intersection(&issued).count() as u64;
        let counts_again = self.may_meet_late() || self.forgets_clears();
        let of_events = if counts_again { c.cleared } else { c.cleared + c.garbage_collected };
        if of_events > came {
            failures.push(format!("of {came} events there were fragments: {c:?}"));
        }
        let above = distinct.iter().filter(|number| issued.last().is_none_or(|last| *number > last)).count() as u64;
        if c.resident > above {
            failures.push(format!("{above} fragments are of no event up to the last: {c:?}"));
        }
    }

    /// Level 1 tells a peer that it meets after it has begun only the last of the events before. All up to that are
    /// taken for issued. They meet when both are there, and later over a slow connection.
    fn may_meet_late(&self) -> bool {
        let level1 = self.plan.of(Role::Level1);
        self.plan.course.late.iter().any(|(late, _)| *late == self.ros || level1.contains(late))
    }

    /// A read-out system remembers events that are cleared ahead of the oldest valid one, twice as many as it has pages. A fragment
    /// of another that comes again stays until it is collected.
    fn forgets_clears(&self) -> bool {
        self.issued().len() > 2 * self.plan.readout.pages
    }

    fn issued(&self) -> BTreeSet<u64> {
        self.outcomes.issued.values().map(|EventId(event)| *event).collect()
    }

    /// Level 1 begins when all sources have come, of all read-out systems that it has met by then.
    fn awaits_all(&self) -> bool {
        let Plan { network, course, .. } = self.plan;
        let is_calm = network.slow_channels == 0.0 && network.links.is_perfect() && course.late.is_empty();
        is_calm && self.outcomes.touched.is_empty() && course.faults.is_empty() && self.doings.died == 0
    }

    /// Not everything has come to its end.
    fn is_cut_short(&self) -> bool {
        let Outcomes { ending, forced, touched, .. } = self.outcomes;
        *forced || ending.forced || !ending.dead.is_empty() || !touched.is_empty() || self.plan.is_hindered()
    }
}
