//! Rate-division traffic shaping `[ATM1997 §III–IV]`: each source sends to each builder at its share of the builder's link.

use core::time::Duration;

use base::time::Time;

/// The rate of one source towards one builder: a token bucket that holds one burst, and what a late source was owed.
///
/// A message may go while there is credit, and takes as much as it is long: what is owed is waited for before the next. Credit
/// comes in ideal time: a source that sleeps too long, or has no processor, sends afterwards what it could have sent meanwhile.
#[derive(Clone, Debug)]
pub struct RateDivision {
    bytes_per_s: u64,
    burst: Duration,
    /// What the first message waits.
    phase: Duration,
    /// When all that was sent is paid for, at the rate; `None` before the first message.
    paid: Option<Time>,
}

impl RateDivision {
    /// This many bytes per second on average, after a pause at most `burst_bytes` at once, then one message more. The first
    /// message waits for `phase` of the time that a large one takes: sources that begin together must not send together
    /// `[ATM1997 §IV]`.
    ///
    /// # Panics
    /// If the rate is 0.
    pub fn new(bytes_per_s: u64, burst_bytes: u64, phase: f64) -> Self {
        assert!(bytes_per_s > 0, "a rate above 0");
        let takes = |bytes: u64| Duration::from_secs_f64(bytes as f64 / bytes_per_s as f64);
        let phase = takes(LARGE_BYTES).mul_f64(phase.clamp(0.0, 1.0));
        Self { bytes_per_s, burst: takes(burst_bytes), phase, paid: None }
    }

    /// When the message that is there now may go.
    pub fn ready_at(&mut self, now: Time) -> Time {
        let paid = *self.paid.get_or_insert(now + self.phase + self.burst);
        Time::from_ns(paid.as_ns().saturating_sub(self.burst.as_nanos() as u64))
    }

    /// Counts a message that goes, from a source that is late by so much at times.
    pub fn take(&mut self, now: Time, late: Duration, bytes: u64) {
        let takes_ns = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_s);
        let takes = Duration::from_nanos(u64::try_from(takes_ns).unwrap_or(LONG_NS).min(LONG_NS));
        let owed_from = Time::from_ns(now.as_ns().saturating_sub(late.as_nanos() as u64));
        self.paid = Some(self.paid.unwrap_or(now).max(owed_from) + takes);
    }
}

const LARGE_BYTES: u64 = 10_000;

/// A hundred years: no message takes longer.
const LONG_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// When messages of this length go, in ns after the first, if they go as soon as they may.
    fn sent(rate: &mut RateDivision, from_ns: u64, bytes: u64, count: usize) -> Vec<u64> {
        let mut now = Time::from_ns(from_ns);
        let mut send = || {
            now = now.max(rate.ready_at(now));
            rate.take(now, Duration::ZERO, bytes);
            now
        };
        let times: Vec<Time> = (0..count).map(|_| send()).collect();
        times.iter().map(|time| time.since(times[0]).as_nanos() as u64).collect()
    }

    #[test]
    fn the_rate_is_kept_whatever_the_length() {
        for bytes in [48, 700, 9_000, 64_000] {
            let mut rate = RateDivision::new(1_000_000, 1_000, 0.0);
            let times = sent(&mut rate, 1_000_000_000, bytes, 1000);
            let per_s = 999.0 * bytes as f64 / (times[999] as f64 * 1e-9);
            assert!((0.97..1.03).contains(&(per_s / 1e6)), "{bytes}: {per_s}");
        }
    }

    #[test]
    fn a_pause_saves_one_burst_and_no_more() {
        let mut rate = RateDivision::new(1_000_000, 3_000, 0.0);
        sent(&mut rate, 0, 1_000, 1);
        assert_eq!(sent(&mut rate, 1_000_000_000, 1_000, 5), [0, 0, 0, 0, 1_000_000], "the fourth overdraws it");
    }

    #[test]
    fn a_late_source_has_the_rate_all_the_same() {
        let late = Duration::from_millis(5);
        let mut rate = RateDivision::new(1_000_000, 0, 0.0);
        let mut sent = 0;
        for pass in 0..200 {
            let now = Time::from_ns(1_000_000_000) + late * pass;
            while rate.ready_at(now) <= now {
                rate.take(now, late, 1_000);
                sent += 1_000;
            }
        }
        assert!((990_000..=1_001_000).contains(&sent), "{sent} bytes in a second");
    }

    #[test]
    fn a_late_source_is_owed_no_more_than_it_was_late() {
        let mut rate = RateDivision::new(1_000_000, 0, 0.0);
        rate.take(Time::from_ns(0), Duration::ZERO, 1_000);
        let now = Time::from_ns(1_000_000_000);
        let mut at_once = 0;
        while rate.ready_at(now) <= now {
            rate.take(now, Duration::from_millis(3), 1_000);
            at_once += 1;
        }
        assert_eq!(at_once, 4, "those of 3 ms, and one more");
    }

    #[test]
    fn sources_that_begin_together_send_apart() {
        let start = Time::from_ns(70);
        let ready = |phase| RateDivision::new(1_000_000, 1_000, phase).ready_at(start).as_ns();
        assert_eq!([0.0, 0.25, 0.5].map(ready), [70, 2_500_070, 5_000_070]);
    }
}
