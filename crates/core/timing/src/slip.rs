//! A source that has lost or gained a trigger: its numbers belong to other triggers from then on.
//!
//! The times show it. Where a source numbers as the reference does, the times of equal numbers lie on one line. Where it slips, they are
//! off by the distance of triggers. Then the times of numbers that are further by the shift lie on the line.

use alloc::vec::Vec;

use crate::clock::{Clock, FITTED_AFTER, Fit};

/// Compares the numbers and times of one source with those of the reference.
///
/// It knows shifts of at most [`SHIFT_MAX`], and needs triggers that are further apart than the [tolerance](Fit::tolerance_at) of the
/// clock. Of triggers in equal distances it takes a step of the clock by such a distance for a slip: times alone do not tell.
#[derive(Clone, Debug, Default)]
pub struct Slips {
    clock: Clock,
    /// What came before the clock was known.
    first: Vec<Sample>,
    /// Number `n` of the source belongs to number `n + shift` of the reference.
    shift: i64,
    window: Vec<Sample>,
    /// Windows since the last one that was understood.
    doubts: u32,
    count: u64,
    last: Option<Slip>,
}

/// From an event on, a source numbers another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slip {
    /// The first number of the source that belongs to another trigger.
    pub since: u64,
    /// What has to be added to its number, more than before: 1 if the source has lost a trigger.
    pub by: i64,
    /// The same, since the beginning.
    pub shift: i64,
}

/// A number of the source, with the times of the reference from `SHIFT_MAX` numbers before to as many behind it.
#[derive(Clone, Copy, Debug)]
struct Sample {
    number: u64,
    time: u64,
    around: [Option<u64>; SHIFTS],
}

impl Slips {
    /// A number of the source, its time in ns of its own clock, and the time of each reference number further by so much. Gives the
    /// slip that this makes certain.
    pub fn observe(&mut self, number: u64, time: u64, reference: impl Fn(i64) -> Option<u64>) -> Option<Slip> {
        let sample = || {
            let around = core::array::from_fn(|place| reference(place as i64 - SHIFT_MAX));
            Sample { number, time, around }
        };
        let Some(fit) = self.clock.fit().filter(|_| self.first.is_empty()) else {
            return self.begin(sample());
        };
        let expected = reference(self.shift)?;
        if self.window.is_empty() && is_near(&fit, expected, time) {
            self.clock.observe(expected, time);
            return None;
        }
        self.window.push(sample());
        if self.window.len() < WINDOW {
            return None;
        }
        let window = core::mem::take(&mut self.window);
        self.judge(&fit, &window)
    }

    /// The clock of the source.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Slips so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The last one.
    pub fn last(&self) -> Option<Slip> {
        self.last
    }

    /// Finds the shift with which the source begins: the one whose differences of time agree best. So it does after a time when
    /// nothing fitted.
    fn begin(&mut self, sample: Sample) -> Option<Slip> {
        self.first.push(sample);
        if self.first.len() < FITTED_AFTER {
            return None;
        }
        let first = core::mem::take(&mut self.first);
        let spreads = core::array::from_fn::<_, SHIFTS, _>(|place| spread(&first, place));
        let of = |shift: i64| spreads[(shift + SHIFT_MAX) as usize];
        let best = (-SHIFT_MAX..=SHIFT_MAX).min_by_key(|shift| (of(*shift), (*shift - self.shift).abs()))?;
        let is_known = of(self.shift) / MUCH_BETTER <= of(best).saturating_add(SPREAD_MIN_NS);
        let slip = if is_known { None } else { Some(self.slip(first[0].number, best)) };
        self.learn(&first);
        slip
    }

    fn judge(&mut self, fit: &Fit, window: &[Sample]) -> Option<Slip> {
        let fits = |shift: i64| window.iter().filter(move |sample| sample.fits(fit, shift));
        // What follows the last number that fits may be the begin of a slip.
        let understood = window.iter().rposition(|sample| sample.fits(fit, self.shift)).map_or(WINDOW, |last| last + 1);
        if fits(self.shift).count() >= WINDOW / 2 {
            // Wild times.
            self.doubts = 0;
            self.learn(&window[..understood]);
            self.window.extend_from_slice(&window[understood..]);
            return None;
        }
        let near = |shift: &i64| (fits(*shift).count(), -(*shift - self.shift).abs());
        let best = (-SHIFT_MAX..=SHIFT_MAX).filter(|shift| *shift != self.shift).max_by_key(near)?;
        if fits(best).count() >= CERTAIN {
            let since = fits(best).find(|sample| !sample.fits(fit, self.shift)).unwrap_or(&window[0]).number;
            return Some(self.slip(since, best));
        }
        // If that goes on, it is the clock that has changed.
        self.doubts += 1;
        if self.doubts > DOUBTS_MAX {
            self.learn(window);
        } else {
            self.window.extend_from_slice(&window[understood..]);
        }
        None
    }

    fn slip(&mut self, since: u64, shift: i64) -> Slip {
        let slip = Slip { since, by: shift - self.shift, shift };
        (self.shift, self.doubts, self.count, self.last) = (shift, 0, self.count + 1, Some(slip));
        slip
    }

    fn learn(&mut self, samples: &[Sample]) {
        for sample in samples {
            if let Some(reference) = sample.reference(self.shift) {
                self.clock.observe(reference, sample.time);
            }
        }
    }
}

impl Sample {
    fn reference(&self, shift: i64) -> Option<u64> {
        self.around[(shift + SHIFT_MAX) as usize]
    }

    fn fits(&self, fit: &Fit, shift: i64) -> bool {
        self.reference(shift).is_some_and(|reference| is_near(fit, reference, self.time))
    }
}

fn is_near(fit: &Fit, reference: u64, source: u64) -> bool {
    fit.source_at(reference).abs_diff(source) <= fit.tolerance_at(reference)
}

/// Median distance of the differences of time from their median; none if the reference lacks many of the numbers.
fn spread(samples: &[Sample], place: usize) -> u64 {
    let difference = |sample: &Sample| Some(sample.time.wrapping_sub(sample.around[place]?).cast_signed());
    let mut differences: Vec<i64> = samples.iter().filter_map(difference).collect();
    let middle = differences.len() / 2;
    if middle < samples.len() / 4 {
        return u64::MAX;
    }
    let median = *differences.select_nth_unstable(middle).1;
    let mut distances: Vec<u64> = differences.iter().map(|difference| difference.abs_diff(median)).collect();
    *distances.select_nth_unstable(middle).1
}

/// The largest shift that is told.
pub const SHIFT_MAX: i64 = 8;
const SHIFTS: usize = 2 * SHIFT_MAX as usize + 1;

/// Numbers that are looked at together once one does not fit.
const WINDOW: usize = 16;
/// So many of them show a shift.
const CERTAIN: usize = 13;
/// Windows that nothing explains, before they are put down to the clock.
const DOUBTS_MAX: u32 = 2;
/// A source begins with a shift if its times agree so much better.
const MUCH_BETTER: u64 = 8;
const SPREAD_MIN_NS: u64 = 100;
