//! The rates of the last hour, for those who begin to watch.

use std::collections::VecDeque;

use serde::Serialize;

use crate::rates::Rates;

/// The rates at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Of which run.
    pub run: Option<u32>,
    /// The rates.
    pub rates: Rates,
}

/// Samples of the last hour in which a run went on.
#[derive(Debug, Default)]
pub(crate) struct Trend(VecDeque<Sample>);

impl Trend {
    pub(crate) fn add(&mut self, sample: Sample) {
        while self.0.front().is_some_and(|first| first.at_ms + KEPT_MS < sample.at_ms) || self.0.len() >= SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.0.iter().copied().collect()
    }
}

const KEPT_MS: u64 = 3_600_000;
/// One comes in a second, and some more where a run ends.
const SAMPLES_MAX: usize = 4000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept_and_never_more_than_its_bound() {
        let mut trend = Trend::default();
        let sample = |at_ms| Sample { at_ms, run: Some(1), rates: Rates::default() };
        (0..7200).for_each(|second| trend.add(sample(second * 1000)));
        let samples = trend.samples();
        assert_eq!((samples.len(), samples[0].at_ms), (3601, 3_599_000));
        (0..10_000).for_each(|_| trend.add(sample(7_200_000)));
        assert_eq!(trend.samples().len(), SAMPLES_MAX);
    }
}
