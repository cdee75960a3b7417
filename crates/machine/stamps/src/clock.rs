//! The monotonic clock and the time of day, read by drivers only.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// The time of `CLOCK_MONOTONIC`: nanoseconds since an origin that all processes of a host share (boot).
///
/// Some 20–30 ns without a system call. The scheduler reads it once per pass and hands it to its tasks.
///
/// # Panics
/// Never on Linux, whose monotonic clock starts at zero.
#[expect(clippy::disallowed_methods, reason = "this is the one function that reads the clock")]
pub fn now() -> Time {
    let read = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(read.tv_sec).expect("the monotonic clock starts at zero");
    let nanoseconds = u64::try_from(read.tv_nsec).expect("a fraction of a second is positive");
    Time::from_ns(seconds * 1_000_000_000 + nanoseconds)
}

/// The time of day as it goes on from one look at it: no later step of the host's clock comes into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    looked: Time,
    /// At that moment, since 1970.
    day: Duration,
}

impl TimeOfDay {
    /// Looks at the host's clock.
    #[expect(clippy::disallowed_methods, reason = "this is the one look at the time of day")]
    pub fn look() -> Self {
        Self { looked: now(), day: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() }
    }

    /// Since 1970, at a time of the monotonic clock.
    pub fn at(self, time: Time) -> Duration {
        if time < self.looked {
            self.day.saturating_sub(self.looked.since(time))
        } else {
            self.day + time.since(self.looked)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_goes_on_as_the_monotonic_clock_does() {
        let look = TimeOfDay { looked: Time::from_ns(5_000), day: Duration::from_nanos(9_000) };
        assert_eq!([4_000, 5_000, 7_500].map(|ns| look.at(Time::from_ns(ns)).as_nanos()), [8_000, 9_000, 11_500]);
        let looked = TimeOfDay::look();
        assert!(looked.at(now()) >= looked.day);
    }

    #[test]
    fn time_does_not_go_back() {
        let (first, second) = (now(), now());
        assert!(second >= first);
        assert!(first.as_ns() > 0);
    }
}
