//! Which clear groups have arrived: they come by multicast, so some may not.

use alloc::collections::BTreeSet;

use crate::message::MissedClears;

/// The numbers of the clear groups seen and missed by one receiver.
#[derive(Clone, Debug, Default)]
pub struct ClearSequence {
    /// Everything below is seen or in `missing`.
    next: u64,
    missing: BTreeSet<u64>,
    /// Groups were missed for so long that nobody keeps them any more.
    has_lost: bool,
    last: Option<u64>,
    /// A group so far ahead that it is taken when another one says the same.
    far: Option<u64>,
    /// The first group, where it could be any: until another one is near it.
    begun_at: Option<u64>,
    refused: u64,
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

    /// Notes a group; whether it is new and not a repetition. One may be so far ahead that all before it would be given up. It is
    /// left, to be asked for when another one is near it.
    pub fn take(&mut self, sequence: u64, last: bool) -> bool {
        if !self.is_plausible(sequence) {
            return false;
        }
        if last {
            self.last = Some(sequence);
        }
        if sequence < self.next {
            return self.missing.remove(&sequence);
        }
        let expected = core::mem::replace(&mut self.next, sequence.saturating_add(1));
        let kept_from = self.next.saturating_sub(MISSING_MAX);
        self.has_lost |= self.first_missing().unwrap_or(expected) < kept_from;
        while self.first_missing().is_some_and(|first| first < kept_from) {
            self.missing.pop_first();
        }
        self.missing.extend(expected.max(kept_from)..sequence);
        true
    }

    fn is_plausible(&mut self, sequence: u64) -> bool {
        if self.next == 0 {
            (self.next, self.begun_at) = (sequence, Some(sequence));
            return true;
        }
        if let Some(begun_at) = self.begun_at.take()
            && sequence.abs_diff(begun_at) >= MISSING_MAX
        {
            *self = Self { next: sequence, begun_at: Some(sequence), refused: self.refused + 1, ..Self::default() };
            return true;
        }
        let is_near = sequence < self.next.saturating_add(MISSING_MAX);
        let Some(far) = self.far.take() else {
            self.far = (!is_near).then_some(sequence);
            return is_near;
        };
        let agree = sequence.abs_diff(far) < MISSING_MAX;
        self.refused += u64::from(!agree);
        if !is_near && !agree {
            self.far = Some(sequence);
        }
        is_near || agree
    }

    /// Whether a group was taken, now or before.
    pub fn has_taken(&self, sequence: u64) -> bool {
        sequence < self.next && !self.missing.contains(&sequence)
    }

    /// How many groups were so far ahead that they were not taken, and no other one was near them.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The first groups that are missing, as many as can be asked for together.
    pub fn missed(&self) -> Option<MissedClears> {
        let first = self.first_missing()?;
        let together = self.missing.range(first..=first.saturating_add(u64::from(u64::BITS) - 1));
        Some(MissedClears { first, bits: together.fold(0, |bits, sequence| bits | 1 << (sequence - first)) })
    }

    /// The first group that is missing.
    pub fn first_missing(&self) -> Option<u64> {
        self.missing.first().copied()
    }

    /// Whether groups were missed for so long that it is no use to ask for them: what they cleared is left to garbage
    /// collection.
    pub fn has_lost(&self) -> bool {
        self.has_lost
    }

    /// Garbage was collected: what was lost does no harm any more.
    pub fn forget_lost(&mut self) {
        self.has_lost = false;
    }

    /// Whether every group of the run has arrived.
    pub fn is_complete(&self) -> bool {
        self.last.is_some() && self.missing.is_empty()
    }
}

/// The DFM keeps this many groups to send again; what is older is left to garbage collection.
pub const MISSING_MAX: u64 = 1024;
