//! What must hold of every run, whatever happened in it.

use std::collections::BTreeSet;

use base::ids::{EventId, Role};
use configuration::OnMissing;
use control::accounting::Accounting;
use dataflow::level1::pace::Spacing;
use dataflow::message::Grounds;
use dataflow::report::{
    Counters, DfmCounters, EbifCounters, EfdCounters, Level1Counters, Report, RosCounters, SfiCounters,
};

use super::expected::{Expected, Numbered};
use super::outside::{Recorded, Seen, WINDOWED, Withheld};
use super::plan::{InputKind, Plan};
use super::shaping;
use super::{Failures, books, link_books, match_books, slice_books};
use simulator::world::{Fault, Outcomes};

/// A run that has ended, to be checked against its plan.
pub(super) struct Check<'a> {
    pub(super) plan: &'a Plan,
    pub(super) outcomes: &'a Outcomes,
    pub(super) seen: &'a Seen,
    /// What the same plan without any fault has written, where that has to be the same.
    pub(super) twin: Option<&'a Seen>,
    /// Whether a run went before in the same processes.
    pub(super) follows: bool,
}

impl Check<'_> {
    /// All that does not hold.
    pub(super) fn failures(&self) -> Failures {
        let mut failures = Failures::new();
        self.whatever_happened(&mut failures);
        shaping::too_fast(self.plan, self.outcomes, &mut failures);
        shaping::too_much(self.plan, self.outcomes, &mut failures);
        self.files(&mut failures);
        self.what_is_missing_is_counted(&mut failures);
        match self.plan.slicing() {
            None => {
                link_books::check(self.plan, self.outcomes, &mut failures);
                match_books::check((self.plan, self.outcomes, self.seen), &mut failures);
            }
            Some(slicing) => slice_books::check((self.plan, self.outcomes, self.seen), &slicing, &mut failures),
        }
        if self.plan.is_hindered() {
            self.hindrance_is_overcome(&mut failures);
        } else {
            self.nothing_hindered(&mut failures);
        }
        if !self.outcomes.forced && !self.outcomes.ending.forced {
            self.every_fate_is_known(&mut failures);
        }
        if self.plan.keeps_all() && !self.outcomes.forced && !self.outcomes.ending.forced {
            self.nothing_lost_in_a_crash(&mut failures);
        }
        failures
    }

    /// The DFM knows what has become of every event, or that nobody will say. Otherwise others keep data for all events
    /// above an unknown one, to the end of the run.
    fn every_fate_is_known(&self, failures: &mut Failures) {
        let ending = &self.outcomes.ending;
        for report in ending.reports.values().filter(|report| report.role == Role::Dfm) {
            let c = DfmCounters::from_values(&report.counters);
            let known = c.rejected + c.accepted + c.debug + c.unrecorded + c.abandoned + c.lost_built;
            let built = c.built_complete + c.built_incomplete;
            if known != built {
                failures.push(format!("{built} events were built, the fates of {known} are known: {c:?}"));
            }
        }
    }

    /// Every event that is to be recorded is: read-out systems keep it until then.
    fn nothing_lost_in_a_crash(&self, failures: &mut Failures) {
        let Self { plan, outcomes, seen, .. } = self;
        let files: BTreeSet<EventId> = seen.events().collect();
        let missing = self.selected().filter(|event| !files.contains(event));
        if plan.input != InputKind::Level2Only && self.dropped() == 0 {
            failures.extend(missing.map(|event| format!("{event} is lost in a crash")));
        }
        let account = &outcomes.account;
        // An event whose rejection nobody knows any more is built again, without its data, and sent to the debug stream. The recorder
        // refuses it: it is below what it remembers.
        let set_apart = if plan.loses_ledgers() && plan.withholds() { account.duplicates } else { 0 };
        if lost(account) > account.lost_in_recording.min(set_apart) {
            failures.push(format!("events count as lost: {account:?}"));
        }
        let accepted = self.events().filter(|&numbered| plan.is_accepted(numbered)).count() as u64;
        let doubtful = account.level2_forced + account.level2_incomplete;
        let may_be_accepted = accepted..=accepted + doubtful;
        if plan.has_level2() && !may_be_accepted.contains(&account.level2_accepted) {
            failures.push(format!("level 2 passed other events than it accepts: {account:?}"));
        }
        books::against_files(plan, outcomes, seen, failures);
        if let Some(twin) = self.twin {
            books::against_twin(seen, twin, failures);
        }
    }

    /// The account closes, and no event is recorded twice, or rejected and recorded.
    fn whatever_happened(&self, failures: &mut Failures) {
        let a = &self.outcomes.account;
        let mut equal = |what: &str, left: u64, right: u64| {
            if left != right {
                failures.push(format!("{what}: {left} against {right}"));
            }
        };
        equal("residual", a.residual, 0);
        equal("level 2", a.level1, a.level2_rejected + a.level2_accepted + a.level2_lost);
        equal("building", a.level2_accepted, a.built_complete + a.built_incomplete + a.not_built);
        let filtered = a.filter_rejected + a.filter_accepted + a.filter_debug + a.lost_after_build;
        equal("filter", a.built_complete + a.built_incomplete, filtered);
        equal("recording", a.recorded + a.lost_in_recording, a.filter_accepted + a.filter_debug);
        failures.extend(a.differences.iter().cloned());
        failures.extend(self.outcomes.violations.iter().cloned());
        let mut files = BTreeSet::new();
        let mut not_selected = Vec::new();
        for Recorded { event, streams, withheld, .. } in self.seen.recorded() {
            if !files.insert(*event) {
                failures.push(format!("{event} is recorded twice"));
            }
            let Some(numbered) = self.numbered(*event) else {
                failures.push(format!("{event} is recorded, and was no trigger"));
                continue;
            };
            let expected = match withheld {
                None => self.plan.expected_of_filter(numbered),
                Some(Withheld::Debug) => Expected::Recorded(0),
                Some(Withheld::Dropped) => Expected::Filtered,
            };
            match expected {
                Expected::Recorded(expected) if expected == *streams => {}
                other => failures.push(format!("{event} is in streams {streams:#b}, and is to be {other:?}")),
            }
            if !self.plan.is_accepted(numbered) {
                not_selected.push(event);
            }
        }
        // Level 2 rejects nothing that it has not decided on all data.
        if not_selected.len() as u64 > a.level2_forced + a.level2_incomplete {
            failures.push(format!("recorded, though to be rejected: {not_selected:?}"));
        }
        if self.plan.recording.in_order && self.outcomes.touched.is_empty() {
            let sorted = self.seen.files.values().all(|events| events.is_sorted_by_key(|recorded| recorded.event));
            failures.extend((!sorted).then(|| "events are recorded out of order".to_owned()));
        }
    }

    /// The account knows what is in the files.
    fn files(&self, failures: &mut Failures) {
        let account = &self.outcomes.account;
        // What is in no stream is in the debug stream.
        let copies: u32 = self.seen.recorded().map(|recorded| recorded.streams.count_ones().max(1)).sum();
        let distinct: BTreeSet<EventId> = self.seen.events().collect();
        if self.plan.of(Role::Sfo).is_empty() {
            return;
        }
        if (account.recorded, account.recorded_copies) != (distinct.len() as u64, u64::from(copies)) {
            failures.push(format!("{copies} copies of {} events are in files: {account:?}", distinct.len()));
        }
        let on = |grounds| self.seen.recorded().filter(|recorded| recorded.grounds == grounds).count() as u64;
        let (forced, incomplete) = (on(Grounds::Timeout), on(Grounds::PartOfData));
        if forced > account.level2_forced || incomplete > account.level2_incomplete {
            failures.push(format!(
                "level 2 decided {forced} without and {incomplete} on a part of their data: {account:?}"
            ));
        }
    }

    /// As many events as are to be recorded and are in no file count as lost, or were issued behind what the account knows.
    fn what_is_missing_is_counted(&self, failures: &mut Failures) {
        let Self { plan, outcomes, seen, .. } = self;
        if plan.of(Role::Sfo).is_empty() || plan.counts.efd == 0 {
            return;
        }
        if !self.knows_the_first() {
            return self.rejected_are_to_be(failures);
        }
        let files: BTreeSet<EventId> = seen.events().collect();
        let missing: Vec<EventId> = self.selected().filter(|event| !files.contains(event)).collect();
        if missing.len() as u64 > lost(&outcomes.account).saturating_add(self.dropped()) {
            failures
                .push(format!("missing in the files are {missing:?}, and not all are lost: {:?}", outcomes.account));
        }
    }

    /// Whether the events that the account knows are the first that were issued. They are not if the triggering
    /// application is gone and its last words reached some of the others only, or died with them. Where applications
    /// join, run control may tell of a death before all has come that was said before.
    fn knows_the_first(&self) -> bool {
        let crashed = self.plan.crashed_roles();
        let is_cut_off = self.plan.course.joins.is_some() && crashed.contains(&Role::Level1);
        let has_taken_others =
            self.plan.input == InputKind::SelfTrigger && self.dies_for_good(Role::Dfm) && crashed.len() > 1;
        !is_cut_off && !has_taken_others
    }

    fn dies_for_good(&self, role: Role) -> bool {
        let of_role = self.plan.of(role);
        self.plan.course.faults.iter().any(|(_, fault)| matches!(fault, Fault::Kill(node) if of_role.contains(node)))
    }

    /// Whichever events the account knows, it counts none as rejected that is to be recorded.
    fn rejected_are_to_be(&self, failures: &mut Failures) {
        let rejected = self.outcomes.account.level2_rejected + self.outcomes.account.filter_rejected;
        // A leading source that misbehaves may bring more than the run was to have.
        let most = self.plan.triggers.events.max(self.outcomes.issued.len() as u64);
        let all = books::events(self.plan, self.outcomes, most);
        let to_be = all.filter(|&numbered| !self.is_recorded(numbered)).count() as u64;
        if rejected > to_be.saturating_add(self.dropped()) {
            failures.push(format!("{to_be} events are to be rejected: {:?}", self.outcomes.account));
        }
    }

    /// Everything drains in time; and without deaths nothing is lost, and all credits, pages and busies are home.
    fn nothing_hindered(&self, failures: &mut Failures) {
        let Self { plan, outcomes, .. } = self;
        let reasons = &outcomes.ending.reasons;
        failures.extend(reasons.iter().filter(|reason| reason.contains("did not")).cloned());
        if let (Some(quiet), Some(stopped)) = (plan.quiet_after(), outcomes.ending.stopped) {
            let limit = stopped.max(outcomes.began + quiet) + plan.patience();
            if outcomes.ended > limit {
                failures
                    .push(format!("stopped at {stopped}, nothing in its way, and ended only at {}", outcomes.ended));
            }
        }
        self.ends_by_itself(failures);
        if outcomes.forced || outcomes.ending.forced {
            return;
        }
        failures.extend(outcomes.lost_credits.iter().cloned());
        if outcomes.ending.dead.is_empty() {
            // Else what waits for the dead, to be decided, built or cleared, waits still.
            let busy = outcomes.busy.iter().filter(|busy| !link_books::is_awaited(outcomes, busy));
            failures.extend(busy.map(|busy| format!("busy not released: {busy}")));
            outcomes.ending.reports.values().for_each(|report| self.pages(report, failures));
        }
        if !outcomes.touched.is_empty() {
            return;
        }
        failures.extend(reasons.iter().cloned());
        outcomes.ending.reports.values().for_each(|report| self.report(report, failures));
        outcomes.ending.reports.values().for_each(|report| self.samples(report, failures));
        self.nothing_lost(failures);
    }

    /// Nothing is shown that nobody has asked for.
    fn samples(&self, report: &Report, failures: &mut Failures) {
        let (given, lost) = match report.role {
            Role::Sfi => {
                let c = SfiCounters::from_values(&report.counters);
                (c.samples, c.samples_lost)
            }
            Role::Efd => {
                let c = EfdCounters::from_values(&report.counters);
                (c.samples, c.samples_lost)
            }
            Role::Ros => {
                let c = RosCounters::from_values(&report.counters);
                (c.samples, c.samples_lost)
            }
            Role::Ebif => {
                let c = EbifCounters::from_values(&report.counters);
                (c.samples, c.samples_lost)
            }
            _ => return,
        };
        let asked = self.plan.course.faults.iter().filter(|(_, fault)| matches!(fault, Fault::Watch(_))).count() as u64;
        if given > asked * u64::from(self.plan.sampling.samples) || (asked == 0 && lost > 0) {
            failures.push(format!("asked {asked} times, and shown {given} events, lost {lost}"));
        }
    }

    /// Once nothing goes wrong any more all events come and get on, without being asked for.
    fn ends_by_itself(&self, failures: &mut Failures) {
        let Self { plan, outcomes, .. } = self;
        if let (Some(quiet), Some(stopped), None) = (plan.quiet_after(), outcomes.ending.stopped, plan.course.duration)
        {
            let limit = outcomes.began + quiet + plan.patience();
            if stopped > limit {
                failures.push(format!("nothing in its way from {quiet:?} on, and all was issued only at {stopped}"));
            }
        }
    }

    /// What never answers is passed over in time, and named.
    fn hindrance_is_overcome(&self, failures: &mut Failures) {
        let Self { plan, outcomes, .. } = self;
        let (Some(quiet), Some(stopped)) = (plan.quiet_after(), outcomes.ending.stopped) else { return };
        let limit = stopped.max(outcomes.began + quiet) + plan.course.stop_timeout * TIMEOUTS_OF_FORCED_END;
        if outcomes.ended > limit {
            failures.push(format!("stopped at {stopped}, forced, and ended only at {}", outcomes.ended));
        }
        let applications = plan.applications();
        for (at, fault) in &plan.course.faults {
            if let Fault::Hang(node) = fault
                && outcomes.began + *at < stopped
            {
                let name = &applications[usize::from(node.0) - 1].name;
                if !outcomes.ending.reasons.iter().any(|reason| reason.starts_with(name.as_str())) {
                    failures.push(format!("{name} does not answer, and nobody says so: {:?}", outcomes.ending.reasons));
                }
            }
        }
    }

    fn pages(&self, report: &Report, failures: &mut Failures) {
        // What sources sent in vain is in no event.
        if matches!(report.role, Role::Ros | Role::Pros) && report.links.is_empty() {
            let c = RosCounters::from_values(&report.counters);
            let home = (c.resident > 0).then(|| format!("{:?}: pages not home: {:?}", report.node, report.counters));
            failures.extend(home);
        }
    }

    fn report(&self, report: &Report, failures: &mut Failures) {
        let plan = self.plan;
        let mut holds = |holds: bool, what: &str| {
            if !holds {
                failures.push(format!("{:?}: {what}: {:?}", report.node, report.counters));
            }
        };
        match report.role {
            Role::Ros | Role::Pros => {
                let c = RosCounters::from_values(&report.counters);
                // Else so many events may be cleared while one is still valid that a ROS cannot remember them all until it reads
                // their fragments.
                let remembers = self.outcomes.issued.len().max(plan.triggers.events as usize) <= plan.readout.pages;
                // A group that was asked for again brings the newest bound, and may overtake the clear of an event below that.
                let is_overtaken = c.clears_asked > 0;
                let are_cleared = c.garbage_collected == 0 || is_overtaken;
                holds(!plan.is_healthy() || !remembers || are_cleared, "an event was not cleared");
            }
            Role::Sfi => {
                let c = SfiCounters::from_values(&report.counters);
                let ended = c.built_complete + c.built_incomplete + c.revoked;
                // To a builder far away an event comes late whose time a clock has cut short, and that it is not wanted later still.
                let is_late = plan.network.slow_channels > 0.0 && c.assigned > ended && self.has_skipped_time();
                holds(c.assigned == ended || is_late, "an assignment left open");
                holds(c.beyond_room == 0, "more assigned than there is room for");
            }
            Role::Level1 => {
                let c = Level1Counters::from_values(&report.counters);
                let is_outside = plan.triggers.credit.is_some() || plan.readout.sending.is_some();
                holds(is_outside || c.unused == 0, "a trigger that level 1 made and did not use");
                let waits = plan.triggers.spacing == Spacing::Unlimited && plan.slicing().is_none();
                holds(!waits || c.vetoed == 0, "vetoed what can wait");
                holds(
                    plan.triggers.crossings.is_some() || c.vetoed == c.vetoed_busy,
                    "dead time of front ends without any",
                );
            }
            Role::Efd => {
                let c = EfdCounters::from_values(&report.counters);
                holds(c.unrecorded == 0, "accepted and not recorded");
                let left = [c.kept_chunks, c.left_fragments, c.left_chunks, c.left_bytes];
                holds(
                    c.windowed <= c.accepted && left == WINDOWED.map(|of_one| of_one * c.windowed),
                    "what windows leave",
                );
            }
            _ => {}
        }
        holds(report.unexpected.is_empty(), "a message that its sender has not to say");
        // What may be lost may also overtake the greeting of one that comes late.
        let may_be_stale = !plan.course.late.is_empty() || plan.network.links.stray > 0.0 || self.follows;
        holds(report.stale == 0 || may_be_stale, "stale messages without a restart");
    }

    fn has_skipped_time(&self) -> bool {
        self.plan.course.faults.iter().any(|(_, fault)| matches!(fault, Fault::ClockStep(..)))
    }

    fn nothing_lost(&self, failures: &mut Failures) {
        let Self { plan, outcomes, seen, .. } = self;
        let account = &outcomes.account;
        let mut holds = |holds: bool, what: &str| {
            if !holds {
                failures.push(format!("{what}: {account:?}"));
            }
        };
        holds(lost(account) + account.duplicates == 0, "events lost or doubled without a death");
        // How many slices there are is for `slice_books`.
        let is_open = plan.course.duration.is_some() || plan.slicing().is_some();
        let all_triggered = is_open || account.level1 == plan.triggers.events || !plan.leader_is_good();
        holds(all_triggered, "not every event was triggered");
        holds(
            !plan.is_healthy() || !plan.waits_for_pages() || account.built_incomplete == 0,
            "data missing without a fault",
        );
        let doubtful = account.level2_forced + account.level2_incomplete;
        if plan.has_level2() {
            let accepted = self.events().filter(|&numbered| plan.is_accepted(numbered)).count() as u64;
            let may_be_accepted = accepted..=accepted + doubtful;
            holds(may_be_accepted.contains(&account.level2_accepted), "level 2 passed other events than it accepts");
        }
        if plan.counts.efd > 0 && plan.input != InputKind::Level2Only {
            let expected: BTreeSet<EventId> = self.selected().collect();
            let files: BTreeSet<EventId> = seen.events().collect();
            let withheld =
                seen.recorded().filter(|recorded| recorded.withheld.is_some()).map(|recorded| recorded.event);
            let debug: BTreeSet<EventId> = withheld.collect();
            let are_more = files.difference(&expected).any(|event| !debug.contains(event));
            let are_less = expected.difference(&files).count() as u64 > self.dropped();
            holds(!are_less && (!are_more || doubtful > 0), "the files hold other events than were selected");
        }
    }

    /// At most so many events were dropped since they lack a source. Of a filter daemon that has died nobody knows.
    fn dropped(&self) -> u64 {
        let Outcomes { ending, touched, .. } = self.outcomes;
        if !self.plan.sources().iter().any(|drawn| drawn.on_missing == OnMissing::Drop) {
            return 0;
        }
        let is_known = |node| !touched.contains(node) && ending.reports.contains_key(node);
        if !self.plan.of(Role::Efd).iter().all(is_known) {
            return u64::MAX;
        }
        let of_role = ending.reports.values().filter(|report| report.role == Role::Efd);
        EfdCounters::total(of_role).dropped_incomplete
    }

    /// The events that the account knows.
    fn events(&self) -> impl Iterator<Item = Numbered> {
        books::events(self.plan, self.outcomes, self.outcomes.account.level1)
    }

    /// Those of them that are to be recorded.
    fn selected(&self) -> impl Iterator<Item = EventId> {
        self.events().filter(|&numbered| self.is_recorded(numbered)).map(|numbered| numbered.event)
    }

    fn is_recorded(&self, numbered: Numbered) -> bool {
        matches!(self.plan.expected(numbered), Expected::Recorded(_))
    }

    fn numbered(&self, event: EventId) -> Option<Numbered> {
        if !self.plan.has_numbers_of_its_own() {
            return Some(Numbered { event, ordinal: event.0.wrapping_sub(self.plan.triggers.first) });
        }
        let (ordinal, _) = self.outcomes.issued.iter().find(|(_, issued)| **issued == event)?;
        Some(Numbered { event, ordinal: *ordinal })
    }
}

/// Without progress a stage is given up, and has as long to do that. Every stage has as long to say that it has, and
/// the end for its report.
const TIMEOUTS_OF_FORCED_END: u32 = 5;

/// What was issued, and neither rejected nor recorded.
fn lost(account: &Accounting) -> u64 {
    account.level2_lost + account.not_built + account.lost_after_build + account.lost_in_recording
}
