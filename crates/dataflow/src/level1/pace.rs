//! When triggers are offered.

use core::time::Duration;

use crate::random::Random;
use crate::time::Time;

/// How triggers follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spacing {
    /// As fast as they are taken.
    Unlimited,
    /// At a fixed interval.
    Fixed(Duration),
    /// At random, with this mean interval.
    Poisson(Duration),
}

/// The times at which triggers are offered.
#[derive(Clone, Debug)]
pub struct Pace {
    spacing: Spacing,
    random: Random,
    next: Option<Time>,
}

impl Pace {
    /// A pace that begins with [`Pace::start`].
    pub fn new(spacing: Spacing, seed: u64) -> Self {
        Self { spacing, random: Random::new(seed), next: None }
    }

    /// Offers the first trigger now.
    pub fn start(&mut self, now: Time) {
        self.next = Some(now);
    }

    /// Offers no more.
    pub fn stop(&mut self) {
        self.next = None;
    }

    /// When the next trigger is offered.
    pub fn next(&self) -> Option<Time> {
        self.next
    }

    /// Whether triggers come as fast as they are taken: then none can be vetoed.
    pub fn is_unlimited(&self) -> bool {
        self.spacing == Spacing::Unlimited
    }

    /// Takes the offer that is due; false if none is.
    pub fn take(&mut self, now: Time) -> bool {
        let Some(due) = self.next.filter(|due| *due <= now) else {
            return false;
        };
        self.next = Some(match self.spacing {
            Spacing::Unlimited => now,
            Spacing::Fixed(interval) => due + interval,
            Spacing::Poisson(mean) => due + mean.mul_f64(self.random.exponential()),
        });
        true
    }
}
