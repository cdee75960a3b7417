//! The monotonic clock, read by drivers only.

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

#[cfg(test)]
mod tests {
    use super::now;

    #[test]
    fn time_does_not_go_back() {
        let (first, second) = (now(), now());
        assert!(second >= first);
        assert!(first.as_ns() > 0);
    }
}
