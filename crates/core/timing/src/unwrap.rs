//! Numbers of few bits, made whole: a EUDET TLU counts with 15.

/// Finds the whole number of each narrow one: the one next to the newest. That is right as long as losses and exchanges stay within half
/// of the range.
#[derive(Clone, Copy, Debug)]
pub struct Unwrap {
    bits: u32,
    newest: Option<u64>,
}

impl Unwrap {
    /// Of numbers of so many bits, 1 to 64.
    ///
    /// # Panics
    /// With other bits.
    pub fn new(bits: u32) -> Self {
        assert!((1..=u64::BITS).contains(&bits), "a number has 1 to 64 bits");
        Self { bits, newest: None }
    }

    /// The whole number. Higher bits of `narrow` are left out. The first one is whole already.
    pub fn whole(&mut self, narrow: u64) -> u64 {
        let rest = u64::BITS - self.bits;
        let narrow = narrow << rest >> rest;
        let Some(newest) = self.newest else {
            self.newest = Some(narrow);
            return narrow;
        };
        // Sign-extended: how far it is from the newest.
        let step = (narrow.wrapping_sub(newest) << rest).cast_signed() >> rest;
        // Before the first there is none: it belongs behind.
        let whole = newest
            .checked_add_signed(step)
            .unwrap_or_else(|| newest.wrapping_add(narrow.wrapping_sub(newest) << rest >> rest));
        self.newest = Some(newest.max(whole));
        whole
    }
}
