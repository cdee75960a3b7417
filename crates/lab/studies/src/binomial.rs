//! Fractions with their statistical errors.

use serde::Serialize;

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct PassedOf {
    /// How many passed.
    pub(super) passed: u64,
    /// How many there were.
    pub(super) all: u64,
}

impl PassedOf {
    /// Counts one more.
    pub(super) fn count(&mut self, passed: bool) {
        self.all += 1;
        self.passed += u64::from(passed);
    }

    /// The fraction; none of nothing.
    pub(super) fn value(self) -> Option<f64> {
        (self.all > 0).then(|| self.passed as f64 / self.all as f64)
    }

    /// The binomial standard error; 0 at the ends.
    pub(super) fn error(self) -> Option<f64> {
        self.value().map(|value| (value * (1.0 - value) / self.all as f64).sqrt())
    }

    /// Where the true fraction is with 68 % confidence: Wilson's score interval, which has a width at 0 and 1, too.
    pub(super) fn interval(self) -> Option<[f64; 2]> {
        let (value, n) = (self.value()?, self.all as f64);
        let middle = (value + 0.5 / n) / (1.0 + 1.0 / n);
        let half = (value * (1.0 - value) / n + 0.25 / (n * n)).sqrt() / (1.0 + 1.0 / n);
        Some([(middle - half).max(0.0), (middle + half).min(1.0)])
    }
}

/// A sum of weights, or what is proportional to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Estimate {
    /// The value.
    pub(super) value: f64,
    /// Its standard error.
    pub(super) error: f64,
}

/// Weights as they are summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct WeightSum {
    sum: f64,
    sum_of_squares: f64,
}

impl WeightSum {
    pub(super) fn add(&mut self, weight: f64) {
        self.sum += weight;
        self.sum_of_squares += weight * weight;
    }

    pub(super) fn sum(self) -> f64 {
        self.sum
    }

    /// The sum, scaled.
    pub(super) fn times(self, factor: f64) -> Estimate {
        Estimate { value: factor * self.sum, error: factor * self.sum_of_squares.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_binomial_errors() {
        let half = PassedOf { passed: 50, all: 100 };
        assert_eq!((half.value(), half.error()), (Some(0.5), Some(0.05)));
        let [low, high] = half.interval().unwrap();
        assert!((low - 0.45).abs() < 1e-3 && (high - 0.55).abs() < 1e-3, "{low} {high}");
        assert_eq!((PassedOf::default().value(), PassedOf::default().interval()), (None, None));
    }

    #[test]
    fn all_of_a_few_is_not_certain() {
        let [low, high] = PassedOf { passed: 4, all: 4 }.interval().unwrap();
        assert!(low < 0.85 && (high - 1.0).abs() < 1e-12, "{low} {high}");
    }

    #[test]
    fn weights_have_the_error_of_the_heavy_ones() {
        let mut sum = WeightSum::default();
        [3.0, 4.0].into_iter().for_each(|weight| sum.add(weight));
        assert_eq!((sum.times(2.0), sum.sum()), (Estimate { value: 14.0, error: 10.0 }, 7.0));
    }
}
