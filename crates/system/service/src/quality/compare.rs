//! Whether two histograms may be of the same distribution, whatever their numbers of entries.

use statrs::function::gamma::gamma_ur;

/// What a comparison found.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// By which test.
    pub test: Test,
    /// How far they differ: χ² per degree of freedom, or the largest distance of the two sums.
    pub distance: f64,
    /// How probable it is that histograms of one distribution differ that much, or more.
    pub probability: f64,
}

/// How histograms are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Test {
    /// χ² of two histograms of counts, without regard to their numbers of entries: it finds single bins. Neighbours are taken together
    /// until both are expected to have some entries there.
    #[default]
    Chi2,
    /// Kolmogorov's and Smirnov's: the largest distance of the two sums. It finds a shift of the whole; of histograms it says too
    /// seldom that they differ.
    Kolmogorov,
}

impl Test {
    /// Compares the counts of two histograms with the same bins; nothing as long as there are too few entries to say anything.
    pub fn compare(self, ours: &[f64], reference: &[f64]) -> Option<Comparison> {
        let sums = (ours.iter().sum::<f64>(), reference.iter().sum::<f64>());
        if sums.0.min(sums.1) < ENTRIES_MIN {
            return None;
        }
        let (distance, probability) = match self {
            Self::Chi2 => chi2(ours, reference, sums)?,
            Self::Kolmogorov => kolmogorov(ours, reference, sums),
        };
        Some(Comparison { test: self, distance, probability })
    }
}

/// Per degree of freedom, with its probability; nothing with a single group of bins.
fn chi2(ours: &[f64], reference: &[f64], (n, m): (f64, f64)) -> Option<(f64, f64)> {
    let groups = groups(ours, reference, n.min(m) / (n + m));
    let degrees = groups.len().checked_sub(1).filter(|degrees| *degrees > 0)? as f64;
    let term = |(a, b): &(f64, f64)| {
        let difference = (m / n).sqrt() * a - (n / m).sqrt() * b;
        difference * difference / (a + b)
    };
    let sum: f64 = groups.iter().map(term).sum();
    // At 0 the function is not defined, and 1.
    let probability = if sum > 0.0 { gamma_ur(degrees / 2.0, sum / 2.0) } else { 1.0 };
    Some((sum / degrees, probability))
}

/// Neighbouring bins together, so that the smaller histogram, which has this share of all entries, is expected to have some in each.
/// What is left at the end goes to the last.
fn groups(ours: &[f64], reference: &[f64], share: f64) -> Vec<(f64, f64)> {
    let mut groups: Vec<(f64, f64)> = Vec::new();
    let mut open = (0.0, 0.0);
    for (a, b) in ours.iter().zip(reference) {
        open = (open.0 + a, open.1 + b);
        if (open.0 + open.1) * share >= EXPECTED_MIN {
            groups.push(core::mem::take(&mut open));
        }
    }
    match groups.last_mut() {
        Some(last) => *last = (last.0 + open.0, last.1 + open.1),
        None => groups.push(open),
    }
    groups
}

fn kolmogorov(ours: &[f64], reference: &[f64], (n, m): (f64, f64)) -> (f64, f64) {
    let (mut a, mut b, mut distance) = (0.0, 0.0, 0.0_f64);
    for (ours, reference) in ours.iter().zip(reference) {
        a += ours / n;
        b += reference / m;
        distance = distance.max((a - b).abs());
    }
    let root = (n * m / (n + m)).sqrt();
    let scaled = (root + 0.12 + 0.11 / root) * distance;
    // Below that the sum needs many terms, and is 1 to six digits.
    let probability = if scaled < 0.3 {
        1.0
    } else {
        let term = |j: i32| f64::from(1 - 2 * ((j + 1) % 2)) * (-2.0 * f64::from(j * j) * scaled * scaled).exp();
        2.0 * (1..=100).map(term).sum::<f64>()
    };
    (distance, probability.clamp(0.0, 1.0))
}

/// Less says nothing of a shape.
const ENTRIES_MIN: f64 = 50.0;
/// With fewer entries, χ² is not distributed as it says.
const EXPECTED_MIN: f64 = 5.0;

#[cfg(test)]
mod tests {
    use base::random::Random;

    use super::*;

    fn drawn(random: &mut Random, entries: usize, shift: f64) -> Vec<f64> {
        let mut counts = vec![0.0; 40];
        for _ in 0..entries {
            let value = (0..4).map(|_| random.unit()).sum::<f64>() / 4.0 + shift;
            counts[((value * 40.0) as usize).min(39)] += 1.0;
        }
        counts
    }

    #[test]
    fn what_is_of_one_distribution_is_seldom_said_to_differ_and_what_is_not_is() {
        let mut random = Random::new(11);
        let reference = drawn(&mut random, 20_000, 0.0);
        for test in [Test::Chi2, Test::Kolmogorov] {
            let mut small = 0;
            for _ in 0..1000 {
                let found = test.compare(&drawn(&mut random, 500, 0.0), &reference).unwrap();
                assert!(found.probability > 1e-6, "{found:?}");
                small += u32::from(found.probability < 0.05);
            }
            // 50 are expected; in bins Kolmogorov's test says so less often.
            assert!(small < 85 && (test == Test::Kolmogorov || small > 20), "{test:?}: {small}");
            let shifted = test.compare(&drawn(&mut random, 5000, 0.02), &reference).unwrap();
            assert!(shifted.probability < 1e-4, "{shifted:?}");
        }
        // One bin that is dead.
        let mut dead = drawn(&mut random, 2000, 0.0);
        dead[20] = 0.0;
        assert!(Test::Chi2.compare(&dead, &reference).unwrap().probability < 1e-6);
    }

    #[test]
    fn a_long_reference_with_a_thin_tail_brings_no_alarms() {
        let mut random = Random::new(12);
        let mut exponential = |entries: usize| {
            let mut counts = vec![0.0; 60];
            for _ in 0..entries {
                counts[((-random.unit().max(1e-300).ln() * 5.0) as usize).min(59)] += 1.0;
            }
            counts
        };
        let reference = exponential(1_000_000);
        let small = |probability: &f64| *probability < 1e-4;
        let runs = (0..2000).map(|_| Test::Chi2.compare(&exponential(60), &reference).unwrap().probability);
        assert!(runs.filter(small).count() <= 3);
    }

    #[test]
    fn too_little_says_nothing() {
        let reference = vec![100.0; 10];
        assert_eq!(Test::Chi2.compare(&[4.0; 10], &reference), None);
        assert_eq!(Test::Chi2.compare(&[600.0], &[600.0]), None, "a single bin has no shape");
        let same = Test::Kolmogorov.compare(&reference, &reference).unwrap();
        assert_eq!((same.distance, same.probability), (0.0, 1.0));
    }
}
