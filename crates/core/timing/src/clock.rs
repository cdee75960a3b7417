//! The clock of a source beside the reference: offset, drift, quality.
//!
//! Pairs are taken in blocks, of which the medians count. A line through the last of these has the median of their slopes
//! (Theil and Sen), of which those between distant points weigh more (Sievers). So a quarter of wild pairs does no harm.
//! All is done in whole numbers, offsets in ns and drifts in 10⁻¹² (ps per second). So equal pairs give equal results everywhere,
//! and nothing adds up.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A model of one clock, fitted while pairs come. Its memory is fixed.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    block: Vec<Pair>,
    points: VecDeque<Point>,
    /// A point is taken from each such number of blocks.
    stride: u32,
    skipped: u32,
    fit: Option<Fit>,
    /// The block before lay off the line.
    suspect: Option<Suspect>,
    steps: u64,
}

/// The state of a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// The time of the reference at which the offset holds, ns.
    pub at: u64,
    /// How far the source is ahead, ns.
    pub offset_ns: i64,
    /// How much faster the source goes, in 10⁻¹²: 10 ppm are 10,000,000.
    pub drift: i64,
    /// Median distance of pairs from the line, ns.
    pub quality_ns: u64,
    /// How long before `at` the line begins, ns.
    pub span_ns: u64,
}

/// One moment on both clocks, ns.
#[derive(Clone, Copy, Debug)]
struct Pair {
    reference: u64,
    offset: i64,
}

/// The median of a block.
#[derive(Clone, Copy, Debug)]
struct Point {
    at: u64,
    offset: i64,
    spread: u64,
}

#[derive(Clone, Copy, Debug)]
struct Suspect {
    /// How far off it lay, and how many have before it.
    by: i64,
    count: u32,
}

impl Clock {
    /// The same moment on both clocks, ns.
    pub fn observe(&mut self, reference: u64, source: u64) {
        self.block.push(Pair { reference, offset: source.wrapping_sub(reference).cast_signed() });
        if self.block.len() == BLOCK {
            let point = self.median_of_block();
            self.block.clear();
            self.take(point);
        }
    }

    /// What is known of the clock; nothing before the first [`FITTED_AFTER`] pairs.
    pub fn fit(&self) -> Option<Fit> {
        self.fit.filter(|_| self.points.len() >= POINTS_MIN)
    }

    /// Steps of the clock so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn median_of_block(&mut self) -> Point {
        self.block.sort_unstable_by_key(|pair| pair.reference);
        // A slope of too few points says nothing. Without one, the middle pair has the median, since offsets rise or fall evenly.
        let (at, drift) = (self.block[BLOCK / 2].reference, self.fit().map_or(0, |fit| fit.drift));
        let pairs = self.block.iter().map(|pair| (pair.reference, pair.offset));
        let (offset, spread) = level_and_spread(pairs, drift, at);
        Point { at, offset, spread }
    }

    fn take(&mut self, point: Point) {
        if let Some(fit) = self.fit() {
            let off = clamp(i128::from(point.offset) - fit.offset_at(point.at));
            let tolerance = fit.tolerance_at(point.at);
            if off.unsigned_abs() > tolerance {
                return self.doubt(point, off, tolerance);
            }
            self.suspect = None;
        }
        self.skipped += 1;
        if self.skipped < self.stride && self.points.len() >= POINTS_MIN {
            return;
        }
        self.skipped = 0;
        self.keep(point);
    }

    /// Two blocks that are off by the same are a step; many that agree in nothing are another clock.
    fn doubt(&mut self, point: Point, off: i64, tolerance: u64) {
        let before =
            self.suspect.replace(Suspect { by: off, count: self.suspect.map_or(1, |before| before.count + 1) });
        let Some(before) = before else { return };
        if before.by.abs_diff(off) <= tolerance.saturating_mul(2) {
            self.points.iter_mut().for_each(|point| point.offset = point.offset.saturating_add(off));
        } else if before.count >= DOUBTS_MAX {
            self.points.clear();
        } else {
            return;
        }
        (self.suspect, self.steps) = (None, self.steps + 1);
        self.keep(point);
    }

    fn keep(&mut self, point: Point) {
        if self.points.len() == POINTS {
            let begin = self.points.front().map_or(0, |oldest| oldest.at);
            if point.at.saturating_sub(begin) < WINDOW_NS {
                // Half as many points reach twice as far back.
                let mut keeps = false;
                self.points.retain(|_| {
                    keeps = !keeps;
                    keeps
                });
                self.stride = self.stride.max(1).saturating_mul(2);
            } else {
                self.points.pop_front();
            }
        }
        self.points.push_back(point);
        self.fit = Some(self.line(point.at));
    }

    fn line(&self, at: u64) -> Fit {
        let mut slopes = Vec::with_capacity(POINTS * POINTS / 2);
        for (index, late) in self.points.iter().enumerate() {
            let earlier = self.points.iter().take(index).filter(|early| early.at < late.at);
            slopes.extend(earlier.map(|early| {
                let (rise, apart) = (i128::from(late.offset) - i128::from(early.offset), late.at - early.at);
                (clamp(rise * UNIT / i128::from(apart)), apart)
            }));
        }
        let mut spreads: Vec<u64> = self.points.iter().map(|point| point.spread).collect();
        let quality_ns = median(&mut spreads);
        let span_ns = at - self.points.front().map_or(at, |oldest| oldest.at.min(at));
        let points = || self.points.iter().map(|point| (point.at, point.offset));
        let slope = weighted_median(&mut slopes);
        // Pairs of a block may lie near each other, and its median far from the line of all.
        let (_, scatter_ns) = level_and_spread(points(), slope, at);
        let drift = likely(slope, quality_ns.max(scatter_ns), span_ns);
        let (offset_ns, _) = level_and_spread(points(), drift, at);
        Fit { at, offset_ns, drift, quality_ns, span_ns }
    }
}

impl Fit {
    /// The time of the source at a time of the reference, ns.
    pub fn source_at(&self, reference: u64) -> u64 {
        let source = i128::from(reference) + self.offset_at(reference);
        u64::try_from(source.max(0)).unwrap_or(u64::MAX)
    }

    /// How far from the line a pair may lie that belongs to it, ns, at a time of the reference. It grows beyond the end of the line, since
    /// the slope may be wrong.
    pub fn tolerance_at(&self, reference: u64) -> u64 {
        let near = self.quality_ns.saturating_mul(TOLERANCE).max(TOLERANCE_MIN_NS);
        let beyond = u128::from(reference.saturating_sub(self.at));
        let by_slope = u128::from(near) * beyond / u128::from(self.span_ns.max(1));
        // No slope is taken to be more wrong than twice what clocks differ by.
        let most = 2 * beyond * DRIFT_USUAL.unsigned_abs() / UNIT.unsigned_abs();
        near.saturating_add(u64::try_from(by_slope.min(most)).unwrap_or(u64::MAX))
    }

    fn offset_at(&self, reference: u64) -> i128 {
        i128::from(self.offset_ns) + gain(self.drift, self.at, reference)
    }
}

/// What a clock of this drift gains between two times, ns.
fn gain(drift: i64, from: u64, to: u64) -> i128 {
    (i128::from(to) - i128::from(from)) * i128::from(drift) / UNIT
}

/// The median of offsets at some times, all taken to one time by a drift, and the median distance from it.
fn level_and_spread(offsets: impl Iterator<Item = (u64, i64)>, drift: i64, at: u64) -> (i64, u64) {
    let mut levels: Vec<i64> =
        offsets.map(|(time, offset)| clamp(i128::from(offset) - gain(drift, at, time))).collect();
    let middle = median(&mut levels);
    let mut distances: Vec<u64> = levels.iter().map(|level| level.abs_diff(middle)).collect();
    (middle, median(&mut distances))
}

/// How fast a clock goes, from the slope of a line of this length. `error_ns` is how far its points lie from it. The less the slope is
/// worth beside what clocks differ by, the less of it counts.
fn likely(drift: i64, error_ns: u64, span_ns: u64) -> i64 {
    let error = (i128::from(error_ns) * UNIT / i128::from(span_ns.max(1))).min(UNIT);
    let usual = DRIFT_USUAL * DRIFT_USUAL;
    clamp(i128::from(drift) * usual / (usual + error * error))
}

fn clamp(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

fn median<T: Ord + Copy>(values: &mut [T]) -> T {
    let middle = values.len() / 2;
    *values.select_nth_unstable(middle).1
}

/// The first value with more than half of all weights up to it; 0 of none.
fn weighted_median(values: &mut [(i64, u64)]) -> i64 {
    values.sort_unstable();
    let all: u128 = values.iter().map(|(_, weight)| u128::from(*weight)).sum();
    let mut below = 0;
    let middle = values.iter().find(|(_, weight)| {
        below += u128::from(*weight);
        below * 2 > all
    });
    middle.map_or(0, |(value, _)| *value)
}

/// Pairs after which a clock is known.
pub const FITTED_AFTER: usize = BLOCK * POINTS_MIN;

/// Pairs of which the median counts.
pub const BLOCK: usize = 16;
const POINTS: usize = 24;
const POINTS_MIN: usize = 4;
/// Of the unit of drifts.
const UNIT: i128 = 1_000_000_000_000;
/// So much the clocks of devices differ: 100 ppm.
const DRIFT_USUAL: i128 = 100_000_000;
/// Points reach back so far, if they are frequent enough: short for a temperature, long for a tick.
const WINDOW_NS: u64 = 10_000_000_000;
/// In medians of the distances: more than five standard deviations.
const TOLERANCE: u64 = 8;
const TOLERANCE_MIN_NS: u64 = 100;
const DOUBTS_MAX: u32 = 8;
