//! How long something took, each time that it was done.

use crate::plot::{Curve, Look};

/// Times in nanoseconds, in rising order; at least one.
#[derive(Clone, Debug)]
pub(super) struct Times(Vec<f64>);

impl Times {
    /// None of no times.
    pub(super) fn of(times: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = times.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then_some(Self(sorted))
    }

    /// All of several; none of none.
    pub(super) fn merged<'a>(times: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        Self::of(times.into_iter().flat_map(|times| &times.0).copied())
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    /// The time that this part of all does not exceed.
    pub(super) fn at(&self, part: f64) -> f64 {
        let last = self.0.len() - 1;
        self.0[((last as f64 * part).ceil() as usize).min(last)]
    }

    pub(super) fn median(&self) -> f64 {
        self.at(0.5)
    }

    pub(super) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// The same without what a stamp takes.
    pub(super) fn less(&self, stamp_ns: f64) -> Self {
        Self(self.0.iter().map(|ns| (ns - stamp_ns).max(0.0)).collect())
    }

    /// What part of all is in each bin, as stairs over microseconds; beyond the last part in a thousand it is not drawn.
    pub(super) fn stairs(&self, name: String) -> Curve {
        let bin = |ns: f64| (ns.max(NS_MIN).log10() * BINS_PER_DECADE).floor() as i32;
        let (first, last) = (bin(self.0[0]), bin(self.at(DRAWN)));
        let mut counts = vec![0_u32; (last - first) as usize + 1];
        self.0.iter().map(|ns| bin(*ns)).filter(|bin| *bin <= last).for_each(|bin| counts[(bin - first) as usize] += 1);
        let us = |bin: i32| 10_f64.powf(f64::from(bin) / BINS_PER_DECADE) / 1e3;
        let steps = (first..).zip(counts).flat_map(|(bin, count)| {
            let part = f64::from(count) / self.0.len() as f64;
            [(us(bin), part), (us(bin + 1), part)]
        });
        let points = [(us(first), 0.0)].into_iter().chain(steps).chain([(us(last + 1), 0.0)]).collect();
        Curve { name, points, look: Look::Line }
    }

    /// What part of all is in each bin, as stairs over percent, of what are parts of a whole.
    pub(super) fn parts_in_percent(&self) -> Vec<(f64, f64)> {
        let mut counts = vec![0_u32; PERCENT_BINS];
        let bin = |part: f64| ((part * PERCENT_BINS as f64) as usize).min(PERCENT_BINS - 1);
        self.0.iter().for_each(|part| counts[bin(*part)] += 1);
        let percent = |bin: usize| 100.0 * bin as f64 / PERCENT_BINS as f64;
        let steps = counts.into_iter().enumerate().flat_map(|(bin, count)| {
            let part = f64::from(count) / self.0.len() as f64;
            [(percent(bin), part), (percent(bin + 1), part)]
        });
        steps.collect()
    }
}

const PERCENT_BINS: usize = 50;
const BINS_PER_DECADE: f64 = 10.0;
/// What took no time that the clock shows is drawn as this.
const NS_MIN: f64 = 1.0;
const DRAWN: f64 = 0.999;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_tail_and_mean_are_those_of_the_times() {
        let times = Times::of((1..=1001).rev().map(f64::from)).unwrap();
        assert_eq!((times.count(), times.median(), times.at(0.999), times.mean()), (1001, 501.0, 1000.0, 501.0));
        assert!(Times::of([]).is_none());
        assert_eq!(Times::of([5.0, 30.0]).unwrap().less(10.0).0, [0.0, 20.0]);
    }

    #[test]
    fn stairs_hold_all_times_and_begin_and_end_on_the_ground() {
        let curve = Times::of([0.0, 1.0, 1.0, 1000.0]).unwrap().stairs("times".into());
        let parts: f64 = curve.points.iter().skip(1).step_by(2).map(|(_, part)| part).sum();
        assert!((parts - 1.0).abs() < 1e-12, "{:?}", curve.points);
        assert_eq!([curve.points[0].1, curve.points[1].1, curve.points.last().unwrap().1], [0.0, 0.75, 0.0]);
        assert!((curve.points[0].0 - 1e-3).abs() < 1e-12 && curve.points.iter().all(|(us, _)| us.is_finite()));
    }
}
