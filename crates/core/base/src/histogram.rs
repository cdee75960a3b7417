//! A histogram of times with a fixed relative resolution.

use alloc::vec::Vec;
use core::fmt;

/// Counts of values in bins whose width is 1/16 of their value or finer: percentiles are right within 6 %.
///
/// 976 bins cover all of `u64`; they are allocated with the first entry. (`hdrhistogram` does the same and needs `std`,
/// which this crate has not.)
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    bins: Vec<u64>,
    max: u64,
}

impl Histogram {
    /// Adds one value.
    pub fn record(&mut self, value: u64) {
        if self.bins.is_empty() {
            self.bins.resize(BINS, 0);
        }
        self.bins[bin_of(value)] += 1;
        self.max = self.max.max(value);
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.bins.is_empty() {
            self.bins.clone_from(&other.bins);
        } else {
            for (bin, count) in self.bins.iter_mut().zip(&other.bins) {
                *bin = bin.saturating_add(*count);
            }
        }
        self.max = self.max.max(other.max);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.bins.iter().copied().fold(0, u64::saturating_add)
    }

    /// The largest value, exactly; 0 if there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The value below which a fraction of all values lies, to the bin; 0 if there is none.
    pub fn quantile(&self, fraction: f64) -> u64 {
        let rank = (fraction * self.count() as f64) as u64;
        let mut below = 0;
        for (index, &count) in self.bins.iter().enumerate() {
            below = count.saturating_add(below);
            if count > 0 && below > rank {
                return upper_edge(index).min(self.max);
            }
        }
        self.max
    }

    /// The bins that are not empty, as (index, count): for the wire.
    pub fn entries(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.bins.iter().enumerate().filter(|(_, count)| **count > 0).map(|(index, &count)| (index as u16, count))
    }

    /// From entries; `None` if they are not those of a histogram. A bin may not exist, be empty or come twice, or the
    /// values be more than can be counted.
    pub fn from_entries(entries: &[(u16, u64)], max: u64) -> Option<Self> {
        let total = entries.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        let is_listed_well = entries.is_sorted_by(|a, b| a.0 < b.0) && entries.iter().all(|(_, count)| *count > 0);
        total.filter(|_| is_listed_well)?;
        let mut bins = if entries.is_empty() { Vec::new() } else { alloc::vec![0; BINS] };
        for &(index, count) in entries {
            *bins.get_mut(usize::from(index))? = count;
        }
        Some(Self { bins, max })
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} values up to {})", self.count(), self.max)
    }
}

const SUB_BITS: u32 = 4;
const SUB_BINS: usize = 1 << SUB_BITS;
const BINS: usize = (64 - SUB_BITS as usize + 1) * SUB_BINS;

fn bin_of(value: u64) -> usize {
    let Some(exponent) = (value >> SUB_BITS).checked_ilog2() else {
        return value as usize;
    };
    let sub = (value >> exponent) as usize & (SUB_BINS - 1);
    (exponent as usize + 1) * SUB_BINS + sub
}

fn upper_edge(bin: usize) -> u64 {
    if bin < SUB_BINS {
        return bin as u64;
    }
    let exponent = bin / SUB_BINS - 1;
    let lower = ((SUB_BINS + bin % SUB_BINS) as u64) << exponent;
    lower + ((1 << exponent) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bin() {
        for value in (0..200).chain([255, 256, 1_000, 123_456_789, u64::MAX / 3, u64::MAX]) {
            let bin = bin_of(value);
            assert!(bin < BINS, "{value}");
            assert!(value <= upper_edge(bin), "{value}");
            assert!(bin == 0 || value > upper_edge(bin - 1), "{value}");
        }
    }

    #[test]
    fn quantiles_are_right_within_a_bin() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), 0);
        for value in 1..=1000 {
            histogram.record(value);
        }
        assert!((500..=532).contains(&histogram.quantile(0.5)), "{}", histogram.quantile(0.5));
        assert!((990..=1000).contains(&histogram.quantile(0.99)));
        assert_eq!((histogram.max(), histogram.count()), (1000, 1000));
        let entries: Vec<_> = histogram.entries().collect();
        assert_eq!(Histogram::from_entries(&entries, 1000), Some(histogram));
        for bad in [&[(5, 1), (5, 1)][..], &[(5, 0)], &[(5000, 1)], &[(1, u64::MAX), (2, 1)]] {
            assert_eq!(Histogram::from_entries(bad, 1000), None, "{bad:?}");
        }
    }
}
