//! How far two cores are from each other, and the courses that runs take because of it.
//!
//! The host of a virtual machine moves its cores about: for seconds or minutes two of them share a cache, and then they do
//! not. The same instructions of processes that talk from one to the other then take up to twice as long. Nothing here can
//! change that, but runs of one course can be told from those of another, and are set beside their like alone.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use transport::clock;
use transport::scheduler::{allowed_cpus, pin_to_cpu};

/// How long a cache line takes from the first core that we may use to the second and back, in ns; 1 without a second.
pub(crate) fn line_ns() -> f64 {
    let [one, other, ..] = allowed_cpus()[..] else { return 1.0 };
    let line = Line::default();
    let blocks = thread::scope(|scope| {
        let answers = scope.spawn(|| {
            // Where threads may not be bound, the kernel mostly keeps them apart.
            let _ = pin_to_cpu(other);
            line.answer();
        });
        let asks = scope.spawn(|| {
            let _ = pin_to_cpu(one);
            line.ask()
        });
        let blocks = asks.join().expect("one who asks does not panic");
        answers.join().expect("one who answers does not panic");
        blocks
    });
    lower_quartile(blocks)
}

/// Whether cores have not moved from one distance to another.
pub(crate) fn is_same_course(one_ns: f64, other_ns: f64) -> bool {
    one_ns.max(other_ns) < one_ns.min(other_ns) * ALIKE_MAX
}

/// The distances at which cores were, nearest first: those that are close to a further one are of its course.
pub(crate) fn courses(distances_ns: impl Iterator<Item = f64>) -> Vec<RangeInclusive<f64>> {
    let mut all: Vec<f64> = distances_ns.collect();
    all.sort_by(f64::total_cmp);
    let mut courses: Vec<RangeInclusive<f64>> = Vec::new();
    for ns in all {
        match courses.last_mut() {
            Some(last) if is_same_course(*last.end(), ns) => *last = *last.start()..=ns,
            _ => courses.push(ns..=ns),
        }
    }
    courses
}

/// A cache line that two threads hand to each other.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU32);

impl Line {
    /// Times of there and back in ns, each the mean of a block.
    fn ask(&self) -> Vec<f64> {
        let mut turn = 0;
        let mut blocks = Vec::with_capacity(BLOCKS);
        let end = clock::now() + ENOUGH;
        while blocks.len() < BLOCKS && (blocks.is_empty() || clock::now() < end) {
            let began = clock::now();
            for _ in 0..ROUNDS {
                self.0.store(turn + 1, Ordering::Release);
                turn += 2;
                while self.0.load(Ordering::Acquire) != turn {
                    core::hint::spin_loop();
                }
            }
            blocks.push(clock::now().since(began).as_nanos() as f64 / f64::from(ROUNDS));
        }
        self.0.store(LAST, Ordering::Release);
        blocks
    }

    fn answer(&self) {
        loop {
            match self.0.load(Ordering::Acquire) {
                LAST => return,
                asked if asked % 2 == 1 => self.0.store(asked + 1, Ordering::Release),
                _ => core::hint::spin_loop(),
            }
        }
    }
}

/// What others do on the machine only makes blocks longer.
fn lower_quartile(mut blocks: Vec<f64>) -> f64 {
    let place = blocks.len() / 4;
    *blocks.select_nth_unstable_by(place, f64::total_cmp).1
}

/// Distances of one kind, measured again and again, differ by less than this from their neighbours, those of two kinds
/// by more. They were 80 to 140 ns and 390 to 560 ns on a host of virtual machines.
const ALIKE_MAX: f64 = 1.7;
const BLOCKS: usize = 40;
const ROUNDS: u32 = 250;
/// Long for a few blocks on cores that others use.
const ENOUGH: Duration = Duration::from_millis(50);
/// No turn has this number, which is even.
const LAST: u32 = u32::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_takes_some_time() {
        let ns = line_ns();
        assert!(ns > 0.0 && ns.is_finite(), "{ns}");
    }

    #[test]
    fn distances_that_are_close_are_of_one_course() {
        let found = courses([450.0, 80.0, 100.0, 140.0, 557.0, 2_000.0].into_iter());
        assert_eq!(found, [80.0..=140.0, 450.0..=557.0, 2_000.0..=2_000.0]);
        assert!(courses(core::iter::empty()).is_empty());
        assert!(is_same_course(77.0, 110.0) && !is_same_course(110.0, 450.0));
    }
}
