//! Counters that begin again, as numbers that do not: a EUDET TLU counts with 15 bits.

/// Finds the whole number of each count: a little lower than the newest one, or else higher. That is right as long as nothing comes
/// later than it reaches back, and losses stay within the rest of the period.
#[derive(Clone, Copy, Debug)]
pub struct Unwrap {
    /// The counter begins again with 0 after so many counts; `None`: it does not.
    period: Option<u64>,
    /// How far a number may lie behind the newest one.
    back: u64,
    newest: Option<u64>,
}

impl Unwrap {
    /// Of numbers of so many bits, 1 to 64: each is the one next to the newest.
    ///
    /// # Panics
    /// With other bits.
    pub fn of_bits(bits: u32) -> Self {
        assert!((1..=u64::BITS).contains(&bits), "a number has 1 to 64 bits");
        Self::of_period(1_u64.checked_shl(bits), 1 << (bits - 1))
    }

    /// Of a counter that begins again with 0 after `period` counts, or never. A number lies at most `back` behind the newest one.
    ///
    /// # Panics
    /// With a period of 0.
    pub fn of_period(period: Option<u64>, back: u64) -> Self {
        assert!(period != Some(0), "a period has a count");
        Self { period, back, newest: None }
    }

    /// Begins again: any number is the first.
    pub fn restart(&mut self) {
        self.newest = None;
    }

    /// Others are at this number already: the next one is near it.
    pub fn pass(&mut self, number: u64) {
        self.newest = self.newest.max(Some(number));
    }

    /// The whole number. The part of a count beyond the period is left out. The first one is whole already.
    pub fn whole(&mut self, count: u64) -> u64 {
        let number = self.place(count);
        self.newest = self.newest.max(Some(number));
        number
    }

    /// The whole number. `None`, and forgotten, if it is no count, or more than `far` from the newest number.
    pub fn whole_within(&mut self, count: u64, far: u64) -> Option<u64> {
        let number = self.place(count);
        let is_count = self.period.is_none_or(|period| count < period);
        let is_near = self.newest.is_none_or(|newest| newest.abs_diff(number) <= far);
        (is_count && is_near).then(|| self.whole(count))
    }

    fn place(&self, count: u64) -> u64 {
        let Some(period) = self.period else { return count };
        let count = count % period;
        let Some(newest) = self.newest else { return count };
        let place = newest % period;
        let ahead = if count >= place { count - place } else { period - place + count };
        let behind = period - ahead;
        // Before the first number there is none: it belongs ahead.
        newest.checked_sub(behind).filter(|_| behind <= self.back).unwrap_or(newest.wrapping_add(ahead))
    }
}
