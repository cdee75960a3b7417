//! Repeatable pseudo-random numbers; the seed comes in with the configuration.

use crate::ids::EventId;

/// A small generator (SplitMix64, Steele et al. 2014): equal seeds give equal sequences on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator; different seeds give unrelated sequences.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is a number below the bound");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * UNIT
    }

    /// Whether something of this probability happens.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A number from the exponential distribution of mean 1: the interval to the next of events that come at random.
    pub fn exponential(&mut self) -> f64 {
        -ln(1.0 - self.unit())
    }

    /// Puts a slice into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index as u64 + 1) as usize);
        }
    }
}

/// A number in [0, 1) that is a function of the event alone: a random selection that does not depend on who makes it.
pub fn unit_of_event(event: EventId, seed: u64) -> f64 {
    (mix(event.0 ^ mix(seed)) >> 11) as f64 * UNIT
}

/// A hash of the event: which of several equal receivers owns it.
pub fn hash_of_event(event: EventId) -> u64 {
    mix(event.0)
}

/// The natural logarithm of a positive normal number to about 1e-13; `core` has none.
fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = f64::from((bits >> 52) as i32 - 1023);
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let series: f64 = (0..20).rev().fold(0.0, |sum, k| sum * t * t + 1.0 / f64::from(2 * k + 1));
    exponent * core::f64::consts::LN_2 + 2.0 * t * series
}

const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_standard_library() {
        for x in [1e-9, 0.001, 0.3, 0.5, 0.999, 1.0, 1.7, 12.0] {
            assert!((ln(x) - f64::ln(x)).abs() < 1e-10, "{x}");
        }
    }

    #[test]
    fn numbers_are_repeatable_and_spread() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let mut random = Random::new(1);
        let mean = (0..10_000).map(|_| random.exponential()).sum::<f64>() / 10_000.0;
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
    }
}
