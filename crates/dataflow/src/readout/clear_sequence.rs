//! Which clear groups have arrived: they come by multicast, so some may not.

use alloc::collections::BTreeSet;

/// The numbers of the clear groups seen and missed by one receiver.
#[derive(Clone, Debug, Default)]
pub struct ClearSequence {
    /// Everything below is seen or in `missing`.
    next: u64,
    missing: BTreeSet<u64>,
    last: Option<u64>,
}

impl ClearSequence {
    /// From the first group of the run.
    pub fn from_start() -> Self {
        Self { next: 1, ..Self::default() }
    }

    /// For a receiver that starts late: it holds nothing that an earlier group could clear.
    pub fn from_next_seen() -> Self {
        Self::default()
    }

    /// Notes a group; whether it is new and not a repetition.
    pub fn take(&mut self, sequence: u64, last: bool) -> bool {
        if last {
            self.last = Some(sequence);
        }
        if self.next == 0 {
            self.next = sequence;
        }
        if sequence < self.next {
            return self.missing.remove(&sequence);
        }
        self.missing.extend(self.next.max(sequence.saturating_sub(MISSING_MAX))..sequence);
        while self.missing.len() as u64 > MISSING_MAX {
            self.missing.pop_first();
        }
        self.next = sequence.saturating_add(1);
        true
    }

    /// The first run of missing numbers, as (first, last).
    pub fn gap(&self) -> Option<(u64, u64)> {
        let first = *self.missing.first()?;
        let run = self.missing.iter().zip(first..).take_while(|(sequence, expected)| **sequence == *expected);
        Some((first, first + run.count() as u64 - 1))
    }

    /// Whether every group of the run has arrived.
    pub fn is_complete(&self) -> bool {
        self.last.is_some() && self.missing.is_empty()
    }
}

/// The DFM keeps this many groups to send again; what is older is left to garbage collection.
pub const MISSING_MAX: u64 = 1024;

/// Most groups sent again for one request.
pub const REPEATED_MAX: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_named_and_closed() {
        let mut clears = ClearSequence::from_start();
        assert!(clears.take(1, false));
        assert!(clears.take(5, true));
        assert_eq!(clears.gap(), Some((2, 4)));
        assert!(clears.take(3, false));
        assert!(!clears.take(3, false), "a repetition");
        assert_eq!(clears.gap(), Some((2, 2)));
        assert!(clears.take(2, false) && !clears.is_complete());
        assert!(clears.take(4, false) && clears.is_complete());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut clears = ClearSequence::from_start();
        clears.take(1 << 40, false);
        assert_eq!(clears.missing.len() as u64, MISSING_MAX);
    }
}
