//! The account beside the files, event by event, and beside what a run without faults writes: where nothing may be lost.

use std::collections::BTreeMap;

use base::ids::{EventId, Role};

use super::Failures;
use super::expected::{Expected, Numbered};
use super::outside::{Recorded, Seen};
use super::plan::{InputKind, Plan};
use simulator::world::Outcomes;

/// The first events of the run.
pub(super) fn events(plan: &Plan, outcomes: &Outcomes, count: u64) -> impl Iterator<Item = Numbered> {
    let of_source = |ordinal| plan.has_numbers_of_its_own().then(|| outcomes.issued.get(&ordinal).copied());
    let event = move |ordinal| of_source(ordinal).unwrap_or(Some(EventId(plan.triggers.first.wrapping_add(ordinal))));
    (0..count).filter_map(move |ordinal| Some(Numbered { event: event(ordinal)?, ordinal }))
}

/// The account says of each event what became of it.
pub(super) fn against_files(plan: &Plan, outcomes: &Outcomes, seen: &Seen, failures: &mut Failures) {
    let account = &outcomes.account;
    if account.level2_forced + account.level2_incomplete > 0 || plan.input == InputKind::Level2Only {
        return;
    }
    let all = events(plan, outcomes, account.level1);
    let expected: Vec<Expected> = all.map(|numbered| plan.expected(numbered)).collect();
    let count = |is: fn(&Expected) -> bool| expected.iter().filter(|expected| is(expected)).count() as u64;
    let filtered = count(|expected| *expected == Expected::Filtered);
    let failed = count(|expected| *expected == Expected::Recorded(0));
    let passed = count(|expected| matches!(expected, Expected::Recorded(1..)));
    let found = (account.filter_rejected, account.filter_debug, account.filter_accepted);
    // Who lacks a source may be withheld before anybody decides; built or served again, one copy of it alone.
    let are_copies = [Role::Dfm, Role::Sfi, Role::Efd].iter().any(|role| plan.crashed_roles().contains(role));
    let is_withheld = plan.withholds() && (are_copies || account.built_incomplete > 0);
    let is_told = if is_withheld {
        found.0 + found.1 + found.2 == filtered + failed + passed && found.2 <= passed
    } else {
        found == (filtered, failed, passed)
    };
    if !is_told {
        failures.push(format!("the filter rejects {filtered}, fails for {failed}, accepts {passed}: {account:?}"));
    }
    let incomplete = seen.recorded().filter(|recorded| !recorded.complete).count() as u64;
    // What was rejected is in no file. A recorder may have returned, or have forgotten a cleared event. Of an event
    // built again it then does not know whether the first copy lacks data.
    let is_forgotten = plan.crashed_roles().contains(&Role::Sfo) || plan.loses_ledgers();
    let again = if is_forgotten { account.duplicates } else { 0 };
    let rejected = if is_withheld { account.filter_rejected } else { filtered };
    let (least, most) = (incomplete.saturating_sub(again), incomplete + rejected + again);
    // The copy in a file may be complete, and the one that counts as built not.
    let is_one_copy = !(plan.withholds() && are_copies);
    if is_one_copy && !(least..=most).contains(&account.built_incomplete) {
        failures.push(format!("{incomplete} incomplete events are in files: {account:?}"));
    }
    if plan.keeps_data() && account.built_incomplete > 0 {
        failures.push(format!("events are incomplete, and no data were lost: {account:?}"));
    }
}

/// The files are those of a run without any fault.
pub(super) fn against_twin(seen: &Seen, twin: &Seen, failures: &mut Failures) {
    let files = |seen: &Seen| -> BTreeMap<EventId, Recorded> {
        seen.recorded().map(|recorded| (recorded.event, *recorded)).collect()
    };
    let (found, expected) = (files(seen), files(twin));
    for event in found.keys().chain(expected.keys().filter(|event| !found.contains_key(*event))) {
        if found.get(event) != expected.get(event) {
            let (found, expected) = (found.get(event), expected.get(event));
            failures.push(format!("{event} is in the files as {found:?}, and without faults as {expected:?}"));
        }
    }
}
