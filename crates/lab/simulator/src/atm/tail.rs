//! A histogram of small numbers, read from its far end.

/// How often each number was seen, and so the probability that it is exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    counts: Vec<u64>,
    total: u64,
}

impl Tail {
    /// For numbers up to `max`.
    pub fn new(max: usize) -> Self {
        Self { counts: vec![0; max + 1], total: 0 }
    }

    /// Counts a number.
    ///
    /// # Panics
    /// If it is above the maximum.
    pub fn add(&mut self, number: usize) {
        self.counts[number] += 1;
        self.total += 1;
    }

    /// Counts what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, others) in self.counts.iter_mut().zip(&other.counts) {
            *count += others;
        }
        self.total += other.total;
    }

    /// The probability of a number above `number`; 0 if none was seen.
    pub fn above(&self, number: usize) -> f64 {
        let above: u64 = self.counts.iter().skip(number + 1).sum();
        above as f64 / self.total.max(1) as f64
    }

    /// The smallest number that is exceeded with at most this probability.
    pub fn quantile(&self, probability: f64) -> usize {
        (0..self.counts.len()).find(|number| self.above(*number) <= probability).unwrap_or(self.counts.len())
    }

    /// The mean of all numbers.
    pub fn mean(&self) -> f64 {
        let sum: f64 = (0_u32..).zip(&self.counts).map(|(number, count)| f64::from(number) * *count as f64).sum();
        sum / self.total.max(1) as f64
    }

    /// The largest number seen.
    pub fn max(&self) -> usize {
        self.counts.iter().rposition(|count| *count > 0).unwrap_or(0)
    }

    /// How many numbers were counted.
    pub const fn total(&self) -> u64 {
        self.total
    }
}
