//! The time-stamp counter of the processor, and what its ticks are in nanoseconds.

use crate::clock;
use core::sync::atomic::{AtomicBool, Ordering};

/// What counts the time of stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The counter of the processor, calibrated by the monotonic clock.
    Counter,
    /// The monotonic clock itself, where the counter changes its rate or stands still.
    Clock,
}

static COUNTS: AtomicBool = AtomicBool::new(false);

/// Chooses the source; to be called before the first [`now`].
pub(crate) fn choose() -> Source {
    let counts = cfg!(all(target_arch = "x86_64", not(miri))) && is_invariant();
    COUNTS.store(counts, Ordering::Relaxed);
    if counts { Source::Counter } else { Source::Clock }
}

/// The kernel says of each processor whether its counter keeps its rate, and counts in every sleep.
fn is_invariant() -> bool {
    let known = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = known.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.split_whitespace().any(|known| known == *flag))
}

/// The present count.
#[inline]
pub(crate) fn now() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if COUNTS.load(Ordering::Relaxed) {
        // SAFETY: every x86-64 processor has the instruction, and Linux permits it to user space.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    clock::now().as_ns()
}

/// The counter and the clock at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anchor {
    ticks: u64,
    ns: u64,
}

impl Anchor {
    /// The best of a few tries: nothing came between both readings.
    pub(crate) fn now() -> Self {
        let read = |_| {
            let (before, ns, after) = (now(), clock::now().as_ns(), now());
            (after.saturating_sub(before), Self { ticks: before + after.saturating_sub(before) / 2, ns })
        };
        (0..TRIES).map(read).min_by_key(|(width, _)| *width).expect("there are tries").1
    }
}

/// The counter calibrated by the clock at two moments: exact at both, linear between.
pub(crate) struct Scale {
    from: Anchor,
    ns_per_tick: f64,
}

impl Scale {
    pub(crate) fn between(from: Anchor, to: Anchor) -> Self {
        let (ticks, ns) = (to.ticks.saturating_sub(from.ticks), to.ns.saturating_sub(from.ns));
        let ns_per_tick = if ticks == 0 { 0.0 } else { ns as f64 / ticks as f64 };
        Self { from, ns_per_tick }
    }

    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        self.from.ns + (ticks.saturating_sub(self.from.ticks) as f64 * self.ns_per_tick) as u64
    }
}

const TRIES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_on_the_clock() {
        choose();
        let before = clock::now().as_ns();
        let from = Anchor::now();
        let ticks: Vec<u64> = (0..100).map(|_| now()).collect();
        let scale = Scale::between(from, Anchor::now());
        let after = clock::now().as_ns();
        let times: Vec<u64> = ticks.into_iter().map(|ticks| scale.ns(ticks)).collect();
        assert!(times.is_sorted() && before <= times[0] && times[99] <= after, "{before} {times:?} {after}");
    }

    #[test]
    fn a_clock_that_stands_still_gives_one_time() {
        let anchor = Anchor { ticks: 7, ns: 100 };
        assert_eq!(Scale::between(anchor, anchor).ns(1 << 60), 100);
    }
}
