//! A beam that sources see with clocks of their own, for tests: what each says of each trigger.

use base::random::Random;

/// Triggers in order, and the clock of one source.
pub(crate) struct Beam {
    random: Random,
    pub(crate) now_ns: f64,
    number: u64,
    pub(crate) clock: Clock,
    pub(crate) spacing: Spacing,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Spacing {
    /// As particles come, with a dead time of a tenth of the mean.
    Random(f64),
    Equal(f64),
    /// As particles come within spills: so far apart on average, so many in a spill, and a pause before the next one.
    Spills(f64, u64, f64),
}

pub(crate) struct Clock {
    pub(crate) offset_ns: f64,
    pub(crate) drift_ppm: f64,
    /// Standard deviation.
    pub(crate) jitter_ns: f64,
    /// One time in so many is wild.
    pub(crate) wild: f64,
}

impl Beam {
    pub(crate) fn new(seed: u64, spacing: Spacing) -> Self {
        let mut random = Random::new(seed);
        let clock = Clock {
            offset_ns: random.unit() * 1e12,
            drift_ppm: random.unit() * 100.0 - 50.0,
            jitter_ns: 500.0,
            wild: 0.01,
        };
        Self { random, now_ns: 1e9, number: 0, clock, spacing }
    }

    /// Number, time of the reference, time of the source.
    pub(crate) fn next(&mut self) -> (u64, u64, u64) {
        self.now_ns += match self.spacing {
            Spacing::Random(mean) => mean * (0.1 + 0.9 * self.random.exponential()),
            Spacing::Equal(spacing) => spacing,
            Spacing::Spills(_, many, pause) if self.number % many == many - 1 => pause,
            Spacing::Spills(mean, ..) => mean * (0.1 + 0.9 * self.random.exponential()),
        };
        let Clock { offset_ns, drift_ppm, jitter_ns, wild } = self.clock;
        // The sum of twelve is nearly normal.
        let normal = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
        let strays = if self.random.chance(wild) { self.random.unit() * 1e8 } else { 0.0 };
        let source = self.now_ns * (1.0 + drift_ppm * 1e-6) + offset_ns + jitter_ns * normal + strays;
        let number = self.number;
        self.number += 1;
        (number, self.now_ns as u64, source as u64)
    }

    /// As far as the source is ahead now, without jitter.
    pub(crate) fn offset_ns(&self) -> f64 {
        self.now_ns * self.clock.drift_ppm * 1e-6 + self.clock.offset_ns
    }
}
