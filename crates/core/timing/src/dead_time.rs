//! Dead time that level 1 imposes on itself, so that front ends are never asked for more than they can hold.

use alloc::vec::Vec;
use core::time::Duration;

/// One bunch crossing of the LHC, to the nanosecond.
pub const CROSSING: Duration = Duration::from_nanos(25);

/// Which triggers level 1 vetoes by their times alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadTimeParameters {
    /// Simple dead time: crossings after each accept in which no other is given. 0 leaves one trigger per crossing.
    pub simple: u64,
    /// Complex dead time: every bucket has to have room.
    pub complex: Vec<LeakyBucket>,
}

/// A model of a front-end buffer: each trigger puts one in, one runs out per `drain` crossings.
///
/// So no `window` of consecutive crossings has more than `size + window / drain` triggers, rounded down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyBucket {
    /// Triggers that it holds; at least 1.
    pub size: u64,
    /// Crossings for one to run out; at least 1.
    pub drain: u64,
}

/// Why a trigger is vetoed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadTimeCause {
    /// Too soon after the one before.
    Simple,
    /// A leaky bucket is full.
    Complex,
}

/// The dead time that the triggers so far have left behind. Crossings are counted from the start of the run and given in
/// rising order.
#[derive(Clone, Debug)]
pub struct DeadTime {
    parameters: DeadTimeParameters,
    /// The first crossing that simple dead time leaves free.
    free_from: u64,
    /// The crossing at which each bucket will have run empty: its level is what lies between now and then.
    empty_at: Vec<u64>,
}

impl DeadTime {
    /// Before the first trigger.
    ///
    /// # Panics
    /// If a bucket holds nothing or never drains.
    pub fn new(parameters: DeadTimeParameters) -> Self {
        assert!(parameters.complex.iter().all(|b| b.size > 0 && b.drain > 0), "buckets that hold and drain");
        let empty_at = alloc::vec![0; parameters.complex.len()];
        Self { parameters, free_from: 0, empty_at }
    }

    /// Why a trigger in this crossing is vetoed, if it is.
    pub fn veto(&self, crossing: u64) -> Option<DeadTimeCause> {
        if crossing < self.free_from {
            Some(DeadTimeCause::Simple)
        } else {
            (crossing < self.buckets_free_from()).then_some(DeadTimeCause::Complex)
        }
    }

    /// The first crossing that is free of dead time.
    pub fn free_from(&self) -> u64 {
        self.free_from.max(self.buckets_free_from())
    }

    /// Notes a trigger that was given.
    pub fn note(&mut self, crossing: u64) {
        self.free_from = crossing + 1 + self.parameters.simple;
        for (empty_at, bucket) in self.empty_at.iter_mut().zip(&self.parameters.complex) {
            *empty_at = (*empty_at).max(crossing) + bucket.drain;
        }
    }

    fn buckets_free_from(&self) -> u64 {
        let buckets = self.empty_at.iter().zip(&self.parameters.complex);
        buckets.map(|(empty_at, b)| empty_at.saturating_sub((b.size - 1).saturating_mul(b.drain))).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use base::random::Random;

    #[test]
    fn simple_dead_time_covers_the_crossings_after_an_accept() {
        let mut dead_time = DeadTime::new(DeadTimeParameters { simple: 4, complex: Vec::new() });
        dead_time.note(10);
        for crossing in 10..15 {
            assert_eq!(dead_time.veto(crossing), Some(DeadTimeCause::Simple));
        }
        assert_eq!((dead_time.veto(15), dead_time.free_from()), (None, 15));
    }

    #[test]
    fn a_bucket_fills_and_drains() {
        let mut dead_time =
            DeadTime::new(DeadTimeParameters { simple: 0, complex: vec![LeakyBucket { size: 3, drain: 100 }] });
        for crossing in [0, 1, 2] {
            assert_eq!(dead_time.veto(crossing), None);
            dead_time.note(crossing);
        }
        assert_eq!(dead_time.veto(3), Some(DeadTimeCause::Complex));
        assert_eq!((dead_time.veto(99), dead_time.veto(100)), (Some(DeadTimeCause::Complex), None));
        assert_eq!(dead_time.free_from(), 100);
    }

    #[test]
    fn no_window_has_more_triggers_than_its_buckets_allow() {
        let buckets = [LeakyBucket { size: 7, drain: 350 }, LeakyBucket { size: 15, drain: 370 }];
        let mut dead_time = DeadTime::new(DeadTimeParameters { simple: 4, complex: buckets.to_vec() });
        let mut random = Random::new(5);
        let given: Vec<u64> = (0..200_000)
            .filter(|&crossing| {
                let given = random.chance(0.01) && dead_time.veto(crossing).is_none();
                if given {
                    dead_time.note(crossing);
                }
                given
            })
            .collect();
        assert!(given.len() > 400, "{}", given.len());
        for (index, first) in given.iter().enumerate() {
            for window in [100, 1000, 10_000] {
                let inside = given[index..].iter().take_while(|crossing| **crossing < first + window).count() as u64;
                assert!(buckets.iter().all(|b| inside <= b.size + window / b.drain), "{inside} in {window}");
            }
        }
    }
}
