//! What a stretch of work costs, from many samples of it: so much by itself, for each thing, and for its bytes.

use driver::Sample;

/// Cost in ns: `base + each * count + per_byte * bytes`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fit {
    pub(super) base: f64,
    pub(super) each: f64,
    pub(super) per_byte: f64,
}

/// What a fit may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) base: bool,
    pub(super) each: bool,
    pub(super) per_byte: bool,
}

impl Terms {
    /// All of them.
    pub(super) const ALL: Self = Self { base: true, each: true, per_byte: true };

    fn has(self, term: usize) -> bool {
        [self.base, self.each, self.per_byte][term]
    }
}

/// The least squares over all samples that were not interrupted; no term is below 0. `None` if there are too few.
///
/// An interrupt of the thread, by another one or by the kernel, makes a sample much longer than the others. A few such
/// samples would count more than all others together.
pub(super) fn fit(samples: &[Sample], terms: Terms) -> Option<Fit> {
    let mut cut = Fit { base: f64::from(median(samples)?) * MUCH_LONGER + INTERRUPT_NS, ..Fit::default() };
    let mut found = None;
    for _ in 0..ROUNDS {
        let calm: Vec<Sample> = samples.iter().copied().filter(|one| f64::from(one.ns) < cut.of(one)).collect();
        let fit = least_squares(&calm, terms)?;
        cut = fit.times(LONGER);
        cut.base += INTERRUPT_NS;
        found = Some(fit);
    }
    found
}

impl Fit {
    /// All of it so many times.
    pub(super) fn times(self, factor: f64) -> Self {
        Self { base: self.base * factor, each: self.each * factor, per_byte: self.per_byte * factor }
    }

    fn of(&self, sample: &Sample) -> f64 {
        self.base + self.each * f64::from(sample.count) + self.per_byte * f64::from(sample.bytes)
    }
}

fn median(samples: &[Sample]) -> Option<f32> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    let mut all: Vec<f32> = samples.iter().map(|sample| sample.ns).collect();
    let middle = all.len() / 2;
    Some(*all.select_nth_unstable_by(middle, f32::total_cmp).1)
}

/// The best of all combinations of terms of which none is negative; `None` without samples.
pub(super) fn least_squares(samples: &[Sample], terms: Terms) -> Option<Fit> {
    let sums = Sums::of(samples);
    let mut best: Option<(f64, Fit)> = None;
    for which in 1..8_usize {
        let chosen: Vec<usize> = (0..3).filter(|term| which & 1 << term != 0).collect();
        if chosen.iter().any(|term| !terms.has(*term)) {
            continue;
        }
        let Some(found) = sums.solve(&chosen).filter(|found| found.iter().all(|value| *value >= 0.0)) else { continue };
        let error = sums.error(&found);
        if best.is_none_or(|(least, _)| error < least * (1.0 - LEAST_GAIN)) {
            best = Some((error, Fit { base: found[0], each: found[1], per_byte: found[2] }));
        }
    }
    best.map(|(_, fit)| fit)
}

/// Sums over samples of all products of their features and of the time.
struct Sums {
    products: [[f64; 3]; 3],
    with_time: [f64; 3],
    time_squared: f64,
}

impl Sums {
    fn of(samples: &[Sample]) -> Self {
        let mut sums = Self { products: [[0.0; 3]; 3], with_time: [0.0; 3], time_squared: 0.0 };
        for sample in samples {
            let features = [1.0, f64::from(sample.count), f64::from(sample.bytes)];
            let ns = f64::from(sample.ns);
            for (row, one) in features.iter().enumerate() {
                for (column, other) in features.iter().enumerate() {
                    sums.products[row][column] += one * other;
                }
                sums.with_time[row] += one * ns;
            }
            sums.time_squared += ns * ns;
        }
        sums
    }

    /// The solution with only these terms, by elimination; `None` where they cannot be told apart.
    fn solve(&self, chosen: &[usize]) -> Option<[f64; 3]> {
        let count = chosen.len();
        let mut rows: Vec<Vec<f64>> = chosen
            .iter()
            .map(|&row| {
                let products = chosen.iter().map(|&column| self.products[row][column]);
                products.chain([self.with_time[row]]).collect()
            })
            .collect();
        for pivot in 0..count {
            let scale = self.products[chosen[pivot]][chosen[pivot]];
            if rows[pivot][pivot] <= scale * SINGULAR {
                return None;
            }
            for row in 0..count {
                if row != pivot {
                    let factor = rows[row][pivot] / rows[pivot][pivot];
                    let above = rows[pivot].clone();
                    rows[row].iter_mut().zip(above).for_each(|(value, other)| *value -= factor * other);
                }
            }
        }
        let mut found = [0.0; 3];
        chosen.iter().enumerate().for_each(|(place, &term)| found[term] = rows[place][count] / rows[place][place]);
        Some(found)
    }

    fn error(&self, found: &[f64; 3]) -> f64 {
        let mut error = self.time_squared;
        for (row, one) in found.iter().enumerate() {
            error -= 2.0 * one * self.with_time[row];
            error +=
                found.iter().enumerate().map(|(column, other)| one * other * self.products[row][column]).sum::<f64>();
        }
        error.max(0.0)
    }
}

/// Fewer samples say nothing.
const SAMPLES_MIN: usize = 20;
/// How much longer than the median, or than others of the same size, what was interrupted is.
const MUCH_LONGER: f64 = 20.0;
const LONGER: f64 = 3.0;
/// What an interrupt takes at least: another process on the core looks for work for a few microseconds.
const INTERRUPT_NS: f64 = 5_000.0;
/// What is found without what seems interrupted tells better what was.
const ROUNDS: usize = 4;
/// A further term has to explain at least this part of what is left.
const LEAST_GAIN: f64 = 1e-6;
const SINGULAR: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: usize, bytes: usize, ns: f64) -> Sample {
        Sample { count: count as f32, bytes: bytes as f32, ns: ns as f32 }
    }

    fn close(found: f64, expected: f64) -> bool {
        (found - expected).abs() <= 0.01 * expected.abs() + 0.01
    }

    #[test]
    fn a_cost_is_taken_apart() {
        let all = (0..1000).map(|i| (1 + i % 7, 100 * (i % 11)));
        let samples: Vec<Sample> =
            all.map(|(count, bytes)| sample(count, bytes, 100.0 + 30.0 * count as f64 + 0.25 * bytes as f64)).collect();
        let Fit { base, each, per_byte } = fit(&samples, Terms::ALL).unwrap();
        assert!(close(base, 100.0) && close(each, 30.0) && close(per_byte, 0.25), "{base} {each} {per_byte}");
    }

    #[test]
    fn interrupts_do_not_count() {
        let mut samples: Vec<Sample> = (0..1000).map(|i| sample(1 + i % 5, 0, 50.0 * (1 + i % 5) as f64)).collect();
        samples.extend((0..20).map(|_| sample(1, 0, 3e6)));
        let Fit { base, each, .. } = fit(&samples, Terms::ALL).unwrap();
        assert!(base < 1.0 && close(each, 50.0), "{base} {each}");
    }

    #[test]
    fn nothing_is_negative_and_what_cannot_be_told_apart_is_one_term() {
        let falling: Vec<Sample> = (1..100).map(|i| sample(i, 0, 1000.0 - i as f64)).collect();
        let found = fit(&falling, Terms::ALL).unwrap();
        assert!(found.each == 0.0 && close(found.base, 950.0), "{found:?}");
        let alike: Vec<Sample> = (1..100).map(|_| sample(2, 4, 80.0)).collect();
        let found = fit(&alike, Terms::ALL).unwrap();
        assert!(close(found.of(&alike[0]), 80.0), "{found:?}");
        let each = fit(&alike, Terms { base: false, ..Terms::ALL }).unwrap();
        assert!(close(each.of(&alike[0]), 80.0) && each.base == 0.0, "{each:?}");
    }

    #[test]
    fn few_samples_say_nothing() {
        assert_eq!(fit(&[sample(1, 0, 5.0); SAMPLES_MIN - 1], Terms::ALL), None);
    }
}
