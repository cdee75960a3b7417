//! How many decisions may be forced by time-outs.

use alloc::collections::VecDeque;

/// The share of forced accepts among the last 1000 decisions, or all as long as there were fewer.
///
/// Forced accepts load building, which slows level 2, which forces more: a loop that must not feed itself.
///
/// Accepts that lack data load building as well, and count as decisions only. A forced event can wait for its L2PU instead; the
/// L2PU has waited for data that an incomplete one lacks. If these held back level 1, triggers would end while a read-out system
/// is away, since only decisions make the share fall. If building cannot keep up with them, the full queue of the DFM holds back
/// level 1, and ends that loop.
#[derive(Clone, Debug)]
pub struct ForcedShare {
    recent: VecDeque<bool>,
    forced: usize,
    limit: f64,
}

impl ForcedShare {
    /// At most `limit` (0–1) of the decisions may be forced.
    pub fn new(limit: f64) -> Self {
        Self { recent: VecDeque::with_capacity(WINDOW), forced: 0, limit }
    }

    /// Whether one more may be forced.
    pub fn allows_one(&self) -> bool {
        let decisions = (self.recent.len() + 1).min(WINDOW);
        (self.forced + 1) as f64 <= self.limit * decisions as f64
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
