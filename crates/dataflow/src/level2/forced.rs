//! How many decisions may be forced by time-outs.

use alloc::collections::VecDeque;

/// The share of forced accepts among the last 1000 decisions.
///
/// Forced accepts load building, which slows level 2, which forces more: a loop that must not feed itself.
#[derive(Clone, Debug)]
pub struct ForcedShare {
    recent: VecDeque<bool>,
    forced: usize,
    most: usize,
}

impl ForcedShare {
    /// At most `limit` (0–1) of the last 1000 decisions may be forced.
    pub fn new(limit: f64) -> Self {
        Self { recent: VecDeque::with_capacity(WINDOW), forced: 0, most: (limit * WINDOW as f64) as usize }
    }

    /// Whether one more may be forced.
    pub fn allows_one(&self) -> bool {
        self.forced < self.most
    }

    /// Notes a decision.
    pub fn note(&mut self, forced: bool) {
        if self.recent.len() == WINDOW && self.recent.pop_front() == Some(true) {
            self.forced -= 1;
        }
        self.recent.push_back(forced);
        self.forced += usize::from(forced);
    }
}

const WINDOW: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_that_of_the_last_thousand() {
        let mut share = ForcedShare::new(0.01);
        for _ in 0..10 {
            assert!(share.allows_one());
            share.note(true);
        }
        assert!(!share.allows_one());
        (0..WINDOW).for_each(|_| share.note(false));
        assert!(share.allows_one());
        assert!(!ForcedShare::new(0.0).allows_one());
    }
}
