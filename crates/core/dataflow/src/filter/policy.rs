//! Filters that need no algorithm.

use base::ids::EventId;
use base::random::unit_of_event;

/// How an event is selected. The decision is a function of the event alone, whoever makes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FilterPolicy {
    /// All are accepted.
    AcceptAll,
    /// One in `factor`, by the trigger ordinal.
    Prescale {
        /// At least 1.
        factor: u64,
    },
    /// A random choice.
    Random {
        /// Fraction accepted, 0–1.
        accept: f64,
        /// Another seed selects other events.
        seed: u64,
    },
}

impl FilterPolicy {
    /// Whether the event with this number and trigger ordinal is recorded.
    pub fn accepts(&self, event: EventId, ordinal: u64) -> bool {
        match *self {
            Self::AcceptAll => true,
            Self::Prescale { factor } => ordinal.is_multiple_of(factor),
            Self::Random { accept, seed } => unit_of_event(event, seed) < accept,
        }
    }
}
