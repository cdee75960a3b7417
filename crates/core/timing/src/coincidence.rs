//! The clock of a source that says times alone, and no numbers, beside the times of triggers.
//!
//! A trigger and the data nearest to where the source should have them are a pair, from which a [`Clock`] is fitted. When that has failed
//! for a while, the source is looked for anew. Most triggers of a stretch have one difference of times in common with some data: so far
//! the source is off. Of data that come with no trigger, or triggers without data, neither may be many more than the pairs.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::clock::{Clock, Fit};

/// Follows the clock of one source.
#[derive(Clone, Debug)]
pub struct Coincidence {
    /// Data within this are a pair as long as nothing is known of the clock, ns.
    window: u64,
    clock: Clock,
    /// How far the source is ahead of what the clock says, or of the reference before that says something, ns.
    guess: i64,
    /// Whether the guess has been of use.
    is_found: bool,
    /// What held of earlier triggers.
    former: Option<Former>,
    /// The last triggers, in order; those from `next` on are not compared.
    triggers: VecDeque<u64>,
    next: usize,
    /// The last data, by their times.
    data: VecDeque<u64>,
    /// Those that came last.
    recent: VecDeque<u64>,
    /// The middle one of these: so far the source has come, wild times aside.
    reached: u64,
    /// Triggers without data, less those with data several times.
    failures: u32,
    /// Of these, the first.
    failed_at: u64,
}

/// Where a source was before it was found elsewhere.
#[derive(Clone, Copy, Debug)]
struct Former {
    /// Up to this time of the reference.
    until: u64,
    fit: Option<Fit>,
    guess: i64,
}

/// The source is found elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Since a trigger at this time, ns of the reference.
    pub since: u64,
    /// How much further ahead it is, ns.
    pub by: i64,
}

impl Coincidence {
    /// Of a source whose data lie at most so far from their triggers, in ns, unless its clock says otherwise. With `is_found` its clock
    /// is the reference to begin with; else it is looked for.
    pub fn new(window: u64, is_found: bool) -> Self {
        Self {
            window: window.max(WINDOW_MIN_NS),
            clock: Clock::default(),
            guess: 0,
            is_found,
            former: None,
            triggers: VecDeque::new(),
            next: 0,
            data: VecDeque::new(),
            recent: VecDeque::new(),
            reached: 0,
            failures: 0,
            failed_at: 0,
        }
    }

    /// When a trigger was, ns of the reference. They rise; one that goes back is left out.
    pub fn lead(&mut self, time: u64) {
        if self.triggers.back().is_some_and(|newest| *newest > time) {
            return;
        }
        self.triggers.push_back(time);
        if self.triggers.len() > TRIGGERS_MAX {
            self.triggers.pop_front();
            self.next = self.next.saturating_sub(1);
        }
    }

    /// The time of data, in ns of the source, in any order.
    pub fn follow(&mut self, time: u64) {
        self.recent.push_back(time);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        if self.recent.len() == RECENT {
            let mut recent: Vec<u64> = self.recent.iter().copied().collect();
            self.reached = *recent.select_nth_unstable(RECENT / 2).1;
        }
        let place = self.data.partition_point(|known| *known <= time);
        self.data.insert(place, time);
        if self.data.len() > DATA_MAX {
            self.data.pop_front();
        }
    }

    /// Compares what has come. Says when the source is found elsewhere.
    pub fn judge(&mut self) -> Option<Jump> {
        let mut jump = None;
        while let Some(&trigger) = self.triggers.get(self.next) {
            let (expected, tolerance) = (self.source_at(trigger), self.tolerance_at(trigger));
            if self.is_found && self.reached <= expected.saturating_add(tolerance) {
                break;
            }
            self.next += 1;
            match self.nearest(expected).filter(|time| self.is_found && time.abs_diff(expected) <= tolerance) {
                Some(time) => self.learn(trigger, time),
                None => jump = self.fail(trigger).or(jump),
            }
        }
        jump
    }

    /// Whether it is known where the source has the data of a trigger.
    pub fn is_known(&self) -> bool {
        self.is_found
    }

    /// Where the source has a time of the reference, in ns of its own.
    pub fn source_at(&self, reference: u64) -> u64 {
        let former = self.former.filter(|former| reference < former.until);
        let (fit, guess) = former.map_or((self.clock.fit(), self.guess), |former| (former.fit, former.guess));
        fit.map_or(reference, |fit| fit.source_at(reference)).saturating_add_signed(guess)
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn tolerance_at(&self, reference: u64) -> u64 {
        self.clock.fit().map_or(self.window, |fit| fit.tolerance_at(reference).min(self.window))
    }

    fn nearest(&self, expected: u64) -> Option<u64> {
        let behind = self.data.partition_point(|time| *time < expected);
        let near = self.data.range(behind.saturating_sub(1)..).take(2);
        near.copied().min_by_key(|time| time.abs_diff(expected))
    }

    fn learn(&mut self, trigger: u64, time: u64) {
        // Some data are there by chance. While the source is elsewhere these are all, and say nothing of its clock.
        self.failures = self.failures.saturating_sub(SUCCESS);
        if self.failures > 0 {
            return;
        }
        self.clock.observe(trigger, time);
        // What was a guess the clock knows.
        let by_guess = self.source_at(trigger).abs_diff(time);
        if self.clock.fit().is_some_and(|fit| fit.source_at(trigger).abs_diff(time) <= by_guess) {
            self.guess = 0;
        }
    }

    fn fail(&mut self, trigger: u64) -> Option<Jump> {
        if self.failures == 0 {
            self.failed_at = trigger;
        }
        self.failures += 1;
        // Less and less often: a source may have nothing to do with the triggers.
        if self.failures < FAILURES || !self.failures.is_power_of_two() {
            return None;
        }
        let by = self.search(self.tolerance_at(trigger))?;
        let jump = Jump { since: self.failed_at, by: by.saturating_sub(self.guess) };
        let was_found = core::mem::replace(&mut self.is_found, true);
        if was_found {
            self.former = Some(Former { until: self.failed_at, fit: self.clock.fit(), guess: self.guess });
        }
        (self.guess, self.failures) = (by, 0);
        (was_found && jump.by.unsigned_abs() > self.tolerance_at(trigger)).then_some(jump)
    }

    /// How far ahead of its clock most triggers have data. What was compared last has come at the source, if that is found; else
    /// that is most likely of what lies in the middle.
    fn search(&self, tolerance: u64) -> Option<i64> {
        let end = if self.is_found { self.next } else { (self.next / 2).max(self.next.min(SOUGHT)) };
        let sought = SOUGHT.min(self.failures as usize);
        let sought = self.triggers.range(end.saturating_sub(sought)..end);
        let (count, span) = (sought.len(), self.reached.saturating_sub(*self.data.front()?).max(1));
        let by_clock = |time: &u64| self.clock.fit().map_or(*time, |fit| fit.source_at(*time));
        let ahead = |time: u64, expected: u64| time.wrapping_sub(expected).cast_signed();
        let mut distances: Vec<i64> = sought
            .map(by_clock)
            .flat_map(|expected| self.data.iter().map(move |time| ahead(*time, expected)))
            .collect();
        distances.sort_unstable();
        let widths = core::iter::successors(Some(tolerance.min(SEARCH_NS)), |width| Some(width * 4));
        let found = widths.take(WIDTHS).find_map(|width| {
            let (found, by) = densest(&distances, width, self.guess)?;
            let by_chance = u128::from(width) * (count * self.data.len()) as u128 / u128::from(span);
            (found * 2 >= count && found as u128 >= 2 * by_chance + BY_CHANCE).then_some(by)
        });
        found.filter(|_| count >= FAILURES as usize)
    }
}

/// How many of some rising numbers lie within `width` of each other at most, and the middle one of them. If there are as many
/// elsewhere, those nearest to `known` count.
fn densest(numbers: &[i64], width: u64, known: i64) -> Option<(usize, i64)> {
    let mut first = 0;
    let mut best: Option<(usize, i64)> = None;
    for (last, number) in numbers.iter().enumerate() {
        while number.abs_diff(numbers[first]) > width {
            first += 1;
        }
        let (count, middle) = (last - first + 1, numbers[usize::midpoint(first, last)]);
        let is_better = |(most, at): (usize, i64)| {
            (count, u64::MAX - middle.abs_diff(known)) > (most, u64::MAX - at.abs_diff(known))
        };
        if best.is_none_or(is_better) {
            best = Some((count, middle));
        }
    }
    best
}

/// Outweighs so many failures.
const SUCCESS: u32 = 2;
/// After so many triggers without data the source is looked for, and then after twice as many each time.
const FAILURES: u32 = 32;
/// By so many triggers at most.
const SOUGHT: usize = 64;
/// Known of both: a source is found if what it is behind, or ahead, is less.
const TRIGGERS_MAX: usize = 1024;
const DATA_MAX: usize = 4096;
const RECENT: usize = 9;
const WINDOW_MIN_NS: u64 = 100;
/// Wider than most jitter.
const SEARCH_NS: u64 = 2_000;
/// Wider by 4 each time: for jitter, and for what a clock gains within the triggers that are sought.
const WIDTHS: usize = 3;
/// A few data are anywhere.
const BY_CHANCE: u128 = 8;
