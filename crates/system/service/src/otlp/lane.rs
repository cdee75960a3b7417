//! Messages and metrics go separate ways: one may be held up, or refused, without the other.

use core::time::Duration;

use tokio::time::Instant;
use transport::random::random;

use crate::metrics::{LOGS, METRICS};

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Logs,
    Metrics,
}

/// When a signal may be sent again, and what was said of its troubles.
#[derive(Debug)]
pub(super) struct Lane {
    not_before: Instant,
    /// One after the other.
    failures: u32,
    /// What is wrong was told.
    told: bool,
}

impl Signal {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Logs => LOGS,
            Self::Metrics => METRICS,
        }
    }

    /// What people call it.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Logs => "messages",
            Self::Metrics => METRICS,
        }
    }
}

impl Lane {
    pub(super) fn new() -> Self {
        Self { not_before: Instant::now(), failures: 0, told: false }
    }

    pub(super) fn not_before(&self) -> Instant {
        self.not_before
    }

    /// It was taken, without a word.
    pub(super) fn is_well(&mut self) {
        *self = Self::new();
    }

    /// It was answered for good: the next may go at once.
    pub(super) fn is_done(&mut self) {
        (self.not_before, self.failures) = (Instant::now(), 0);
    }

    /// It is to be sent again: so much later, or later each time.
    pub(super) fn wait(&mut self, after: Option<Duration>) {
        let after = after.map_or_else(|| backoff(self.failures, chance()), |after| after.clamp(FIRST, AFTER_MAX));
        self.failures = self.failures.saturating_add(1);
        self.not_before = Instant::now() + after;
    }

    /// Whether this trouble is to be told: the first one since all was well.
    pub(super) fn is_news(&mut self) -> bool {
        !core::mem::replace(&mut self.told, true)
    }
}

/// Doubles from failure to failure, by chance half of it more or less, so that many exporters do not come back together.
fn backoff(failures: u32, chance: f64) -> Duration {
    let doubled = FIRST.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST);
    doubled.mul_f64(0.5 + chance)
}

/// From 0 to 1. A kernel without random bytes does not spread.
fn chance() -> f64 {
    random::<4>().map_or(0.5, |bytes| f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX))
}

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// A collector that wants to be left alone for longer is asked again all the same.
const AFTER_MAX: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_make_it_wait_longer_within_a_bound() {
        let ms = |failures, chance| backoff(failures, chance).as_millis();
        assert_eq!([0, 1, 2, 4].map(|failures| ms(failures, 0.5)), [1000, 2000, 4000, 16_000]);
        assert_eq!([5, 40, u32::MAX].map(|failures| ms(failures, 0.5)), [30_000; 3]);
        assert_eq!([0.0, 1.0].map(|chance| ms(1, chance)), [1000, 3000]);
        assert!((0..100).all(|_| (0.0..=1.0).contains(&chance())));
    }

    #[test]
    fn the_collector_says_how_long_unless_that_is_no_time_or_for_ever() {
        let mut lane = Lane::new();
        for (said, expected) in [(7, 7), (0, 1), (1_000_000, 600)] {
            let before = Instant::now();
            lane.wait(Some(Duration::from_secs(said)));
            let waits = lane.not_before() - before;
            assert!(waits >= Duration::from_secs(expected) && waits < Duration::from_secs(expected + 60), "{waits:?}");
        }
        assert!(lane.is_news() && !lane.is_news());
        lane.is_done();
        assert!(!lane.is_news() && lane.not_before() <= Instant::now());
        lane.is_well();
        assert!(lane.is_news());
    }
}
