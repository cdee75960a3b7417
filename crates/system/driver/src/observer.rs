//! What the selection of a run in this process decided, event by event: for studies.

use std::sync::{Arc, Mutex, PoisonError};

/// Tells what was decided. Clones tell the same listener.
#[derive(Clone, Default)]
pub struct Observer(Arc<Mutex<Vec<Seen>>>);

/// A decision.
#[derive(Clone, Debug)]
pub enum Seen {
    /// Of level 2.
    Level2 {
        /// Place of the event in the run.
        ordinal: u64,
        /// The decision.
        decision: trigger::Decision,
        /// What the algorithms found.
        features: Vec<trigger::Feature>,
    },
    /// Of the event filter.
    Filter {
        /// Place of the event in the run.
        ordinal: u64,
        /// Chains that accepted it.
        passed: u64,
    },
}

impl Observer {
    /// Notes a decision. All are kept until they are taken.
    pub fn note(&self, seen: Seen) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    /// What was noted so far, in its order.
    pub fn take(&self) -> Vec<Seen> {
        core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
