//! The books of slices, beside what sources handed over: computed anew, since how slices are made is under test.

use std::collections::BTreeMap;
use std::time::Duration;

use base::ids::{EventId, Role};
use dataflow::readout::fragment::status;
use dataflow::report::{Counters, Level1Counters, RosCounters};
use simulator::world::{Doings, Fault, Handed, Outcomes, Source};
use timing::Interval;

use super::Failures;
use super::drawn::{Cut, Drawn, Slicing};
use super::outside::Seen;
use super::plan::Plan;
use super::sliced::SliceFragment;

/// A slice has what its sources had sent of it when it was made. What they sent is in one place of the books. What is left out is dead time.
pub(super) fn check((plan, outcomes, seen): (&Plan, &Outcomes, &Seen), slicing: &Slicing, failures: &mut Failures) {
    let drawn = plan.sources();
    let all = drawn.iter().zip(&outcomes.setup.detectors.each).zip(&outcomes.sources);
    for ((drawn, source), doings) in all {
        let link = Link { plan, outcomes, seen, slicing, drawn, source, doings };
        failures
            .extend(link.failures().into_iter().map(|what| format!("{:?}, link {}: {what}", source.ros, source.rob)));
    }
    dead_time(plan, outcomes, slicing, failures);
}

/// Each slice of the time that passed is made, or left out and counted.
fn dead_time(plan: &Plan, outcomes: &Outcomes, slicing: &Slicing, failures: &mut Failures) {
    let level1 = outcomes.ending.reports.values().find(|report| report.role == Role::Level1);
    let Some(c) = level1.map(|report| Level1Counters::from_values(&report.counters)) else { return };
    let (Some(first), Some(last)) = (outcomes.issued.values().next(), outcomes.issued.values().next_back()) else {
        return;
    };
    let heard = outcomes.sources.iter().flat_map(|doings| &doings.chunks);
    let begin = |handed: &Handed| match handed {
        Handed::Chunk { time, .. } if !time.is_none() => Some(time.begin / ns(slicing.length)),
        Handed::Passed(time) => Some(time / ns(slicing.length)),
        _ => None,
    };
    let elapsed = outcomes.issued_up_to.max(*last).0 - first.0 + 1;
    let before = first.0 - heard.filter_map(begin).min().unwrap_or(first.0).min(first.0);
    let left_out = elapsed.saturating_sub(outcomes.issued.len() as u64);
    let pauses = plan.course.faults.iter().any(|(_, fault)| matches!(fault, Fault::Pause(_)));
    let is_cut_short = is_cut_short(plan, outcomes);
    if (c.vetoed_busy < left_out && !pauses) || (c.vetoed_busy > left_out + before && !is_cut_short) {
        failures.push(format!("of {elapsed} slices {left_out} were left out, and {before} before the first: {c:?}"));
    }
    if c.offered != c.issued + c.vetoed {
        failures.push(format!("slices are made or left out: {c:?}"));
    }
}

struct Link<'a> {
    plan: &'a Plan,
    outcomes: &'a Outcomes,
    seen: &'a Seen,
    slicing: &'a Slicing,
    drawn: &'a Drawn,
    source: &'a Source,
    doings: &'a Doings,
}

impl Link<'_> {
    fn failures(&self) -> Failures {
        let Self { plan, outcomes, source, drawn, .. } = self;
        let rob = plan.robs(drawn.ros)[usize::from(drawn.rob)];
        let cut = drawn.cut.expect("a source of slices");
        let mut books = Books::new(rob, *self.slicing, cut);
        self.doings.chunks.iter().for_each(|handed| books.take(handed));
        let mut failures = Failures::new();
        self.slices(&books, &mut failures);
        let report = outcomes.ending.reports.get(&source.ros);
        let is_whole = !is_cut_short(plan, outcomes) && !outcomes.touched.contains(&source.ros);
        if let Some(report) = report.filter(|_| is_whole) {
            let counters = report.links[usize::from(source.rob)].counters;
            self.counts(&books, &counters, &mut failures);
            let (heard, said) = (books.newest.unwrap_or(0), outcomes.issued_up_to.0);
            if plan.is_healthy() && heard < said {
                failures.push(format!("it has heard of slices up to {heard}, and level 1 has said {said}"));
            }
        }
        failures
    }

    /// Every slice that was built has of this source what it is to have; *empty* is not *missing*.
    fn slices(&self, books: &Books, failures: &mut Failures) {
        let Self { plan, seen, .. } = self;
        for slice in &seen.slices {
            let Some(expected) = books.made.get(&slice.event) else {
                let is_there = slice.fragments.iter().any(|fragment| fragment.rob == books.rob);
                failures.extend(is_there.then(|| format!("{} is built, and was not made", slice.event)));
                continue;
            };
            let found = slice.fragments.iter().find(|fragment| fragment.rob == books.rob);
            let may_lack = !plan.is_healthy() || !plan.waits_for_pages();
            let fits = |expected: &Option<SliceFragment>| found == expected.as_ref() || (found.is_none() && may_lack);
            if !expected.iter().any(fits) {
                failures.push(format!("{} has {found:?}, and is to have {expected:?}", slice.event));
            }
            let is_flagged = slice.missing.contains(&books.rob);
            if is_flagged == found.is_some() && !(found.is_none() && self.drawn.is_tolerated()) {
                failures.push(format!("{} has {found:?}, missing is {:?}", slice.event, slice.missing));
            }
        }
    }

    fn counts(&self, books: &Books, c: &RosCounters, failures: &mut Failures) {
        let mut holds = |holds: bool, what: &str| {
            if !holds {
                failures.push(format!("{what}: {books}: {c:?}"));
            }
        };
        holds(c.fragments_in == books.chunks, "chunks");
        holds(c.flagged == self.doings.handed_damaged, "damaged ones");
        holds(c.announced == self.doings.announced, "announced ones");
        holds(c.dropped_unplaced == books.wild, "wild ones");
        let used = books.kept.iter().filter(|kept| kept.is_used).count() as u64;
        let freed = c.cleared + c.garbage_collected;
        // A read-out system that hears of a slice when that is cleared makes nothing of it.
        let may_be_early = !self.plan.is_healthy() || self.plan.has_level2();
        holds(freed == used || (may_be_early && freed < used), "chunks in slices");
        let unused = books.kept.len() as u64 - freed.min(used);
        holds(c.dropped_old + c.never_triggered == books.late + unused, "late chunks, and those that no slice has");
        // What is late in part is so as a whole when the run is over.
        holds(c.dropped_old >= books.late, "late chunks");
        let at_the_end = c.dropped_old - books.late.min(c.dropped_old);
        holds(c.late_in_part + at_the_end == books.late_in_part, "chunks that are late in part");
        let dropped = c.dropped_unplaced + c.dropped_old + c.dropped_duplicate + c.dropped_cleared + c.dropped_full;
        let gone = c.cleared + c.garbage_collected + c.never_triggered + dropped;
        holds(c.fragments_in == gone + c.resident && c.resident == 0, "every chunk in one place, and none left");
        if self.nothing_is_late() {
            holds(c.unpassed == 0, "a slice was made before all had passed it");
            let first = self.outcomes.issued.values().next();
            let has_begun =
                |first: &EventId| books.began.is_none_or(|began| first.0 >= began / ns(self.slicing.length));
            holds(first.is_none_or(has_begun), "a slice was made before a source had begun");
            // A chunk between two windows is in no slice. It may come when the first one is made.
            let has_gaps = self.slicing.window.is_some();
            holds(has_gaps || books.late == 0, "a chunk is late although all sources were waited for");
        }
    }

    /// Whether no slice is to be made that a source has not passed. Nothing is late on its way, and slices wait for longer than that takes.
    fn nothing_is_late(&self) -> bool {
        let Self { plan, outcomes, .. } = self;
        let was_held_up = |doings: &Doings| doings.turned_off + doings.blocked > 0;
        let takes = |drawn: &Drawn| {
            let chunk = drawn.cut.map_or(Duration::ZERO, |cut| cut.chunking.every.max(cut.chunking.lasts) * 2);
            drawn.habits.late + drawn.latency * 4 + chunk
        };
        let takes = plan.sources().iter().map(takes).max().unwrap_or_default();
        let is_calm = plan.course.faults.is_empty() && plan.is_healthy() && plan.network.service.is_zero();
        is_calm
            && plan.course.joins.is_none()
            && !outcomes.sources.iter().any(was_held_up)
            && takes + self.slicing.length * 2 + SLACK < self.slicing.grace
    }
}

/// What a link is to have, by what was handed over.
struct Books {
    rob: u32,
    slicing: Slicing,
    cut: Cut,
    /// The newest slice that was made or left out.
    newest: Option<u64>,
    /// No slice reaches below that is still to be made.
    horizon: u64,
    watermark: Option<u64>,
    /// The earliest time that it has told.
    began: Option<u64>,
    /// When it was gone, from what it had told to what it told first when it was back.
    gone: Vec<(u64, Option<u64>)>,
    is_up: bool,
    has_ended: bool,
    /// Chunks of this life of the read-out system that were kept, in the order of their coming.
    kept: Vec<Kept>,
    chunks: u64,
    wild: u64,
    late: u64,
    late_in_part: u64,
    /// Of each slice what lives of the read-out system make of it; none where it is missing.
    made: BTreeMap<EventId, Vec<Option<SliceFragment>>>,
}

struct Kept {
    time: Interval,
    place: u64,
    is_damaged: bool,
    is_used: bool,
}

impl Books {
    fn new(rob: u32, slicing: Slicing, cut: Cut) -> Self {
        Self {
            rob,
            slicing,
            cut,
            newest: None,
            horizon: 0,
            watermark: None,
            began: None,
            gone: Vec::new(),
            is_up: false,
            has_ended: false,
            kept: Vec::new(),
            chunks: 0,
            wild: 0,
            late: 0,
            late_in_part: 0,
            made: BTreeMap::new(),
        }
    }

    fn take(&mut self, handed: &Handed) {
        match *handed {
            Handed::Chunk { time, place, is_damaged } => self.chunk(time, place, is_damaged),
            Handed::Passed(time) if self.is_near(time) => self.pass(time),
            Handed::Passed(_) => {}
            Handed::Up => (self.is_up, self.has_ended) = (true, false),
            Handed::Down => self.lose(),
            Handed::Ended => (self.is_up, self.has_ended) = (false, true),
            Handed::Made(slice) => self.make(slice),
            Handed::LeftOut(slice) => self.go_on(slice.0),
            Handed::Life => {
                let made = core::mem::take(&mut self.made);
                *self = Self { made, ..Self::new(self.rob, self.slicing, self.cut) };
            }
        }
    }

    fn chunk(&mut self, time: Interval, place: u64, is_damaged: bool) {
        self.chunks += 1;
        if time.is_none() || !self.is_near(time.begin) {
            self.wild += 1;
            return;
        }
        self.pass(time.begin);
        if time.end <= self.horizon {
            self.late += 1;
            return;
        }
        self.late_in_part += u64::from(time.begin < self.horizon);
        self.kept.push(Kept { time, place, is_damaged, is_used: false });
    }

    fn pass(&mut self, time: u64) {
        self.watermark = self.watermark.max(Some(time));
        self.began = Some(self.began.map_or(time, |began| began.min(time)));
        self.gone.last_mut().into_iter().for_each(|(_, back)| _ = back.get_or_insert(time));
    }

    fn lose(&mut self) {
        let is_gone = self.gone.last().is_some_and(|(_, back)| back.is_none());
        if core::mem::replace(&mut self.is_up, false) && !is_gone {
            self.gone.extend(self.watermark.map(|from| (from, None)));
        }
    }

    /// Whether the source may have had something of this time that nobody knows. None between two times that it was gone, which may be
    /// taken for one as long as no slice of them is made.
    fn may_lack(&self, window: Interval) -> Option<bool> {
        let gap = |(from, back): &(u64, Option<u64>)| Interval { begin: *from, end: back.unwrap_or(u64::MAX) };
        let gone = || self.gone.iter().map(gap).filter(|gap| !gap.is_none());
        let is_early = self.began.is_some_and(|began| window.end <= began);
        if is_early || gone().any(|gap| gap.meets(window)) {
            return Some(true);
        }
        let is_between = gone().any(|gap| gap.end <= window.begin) && gone().any(|gap| gap.begin >= window.end);
        (!is_between).then_some(false)
    }

    fn make(&mut self, slice: EventId) {
        let window = self.window(slice.0);
        let is_passed = self.has_ended || self.watermark.is_some_and(|watermark| watermark >= window.end);
        let may_lack = self.may_lack(window);
        let is_exclusive = self.cut.is_exclusive;
        let belongs = |kept: &&mut Kept| match is_exclusive {
            true => window.begin <= kept.time.begin && kept.time.end <= window.end,
            false => kept.time.begin < window.end && window.begin < kept.time.end,
        };
        let mut its: Vec<&mut Kept> = self.kept.iter_mut().filter(belongs).collect();
        its.sort_by_key(|kept| kept.time.begin);
        let is_cut = its.len() > self.cut.most as usize;
        its.truncate(self.cut.most as usize);
        let damage = if is_cut || its.iter().any(|kept| kept.is_damaged) { status::TRUNCATED } else { 0 };
        let is_there = is_passed || self.is_up || !its.is_empty();
        its.iter_mut().for_each(|kept| kept.is_used = true);
        let chunks: Vec<u64> = its.iter().map(|kept| kept.place).collect();
        let made = self.made.entry(slice).or_default();
        for lacks in [false, true].into_iter().filter(|lacks| may_lack.is_none_or(|may| may == *lacks)) {
            let late = if is_passed && !lacks { 0 } else { status::TIMEOUT };
            let fragment = SliceFragment { rob: self.rob, window, status: damage | late, chunks: chunks.clone() };
            made.push(is_there.then_some(fragment));
        }
        self.go_on(slice.0);
    }

    /// No slice up to this one is still to be made.
    fn go_on(&mut self, slice: u64) {
        self.newest = self.newest.max(Some(slice));
        self.horizon = self.horizon.max(self.window(slice.saturating_add(1)).begin);
    }

    fn window(&self, slice: u64) -> Interval {
        let Slicing { length, window, .. } = self.slicing;
        let begin = slice.saturating_mul(ns(length));
        let end = begin.saturating_add(ns(window.unwrap_or(length))).saturating_add(ns(self.cut.after));
        Interval { begin: begin.saturating_sub(ns(self.cut.before)), end }
    }

    fn is_near(&self, time: u64) -> bool {
        self.newest.is_none_or(|newest| (time / ns(self.slicing.length)).abs_diff(newest) <= 1 << 30)
    }
}

impl core::fmt::Display for Books {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { chunks, wild, late, late_in_part, kept, .. } = self;
        let used = kept.iter().filter(|kept| kept.is_used).count();
        write!(f, "{chunks} in, {used} of {} in slices, {late} late, {late_in_part} in part, {wild} wild", kept.len())
    }
}

/// Not everything has come to its end.
fn is_cut_short(plan: &Plan, outcomes: &Outcomes) -> bool {
    let Outcomes { ending, forced, .. } = outcomes;
    *forced || ending.forced || !ending.dead.is_empty() || plan.is_hindered()
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// More than messages take, and passes.
const SLACK: Duration = Duration::from_millis(1);
