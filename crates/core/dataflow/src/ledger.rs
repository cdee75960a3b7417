//! What has become of accepted events, told together with the bound below which nobody remembers them.
//!
//! The dataflow manager alone counts what becomes of all events. It tells these counts to everybody who may forget
//! events below a bound. A later life of it goes on from the highest bound that anybody knows, and learns the rest
//! event by event.

use crate::message::Fate;
use base::ids::EventId;

/// What became of an event, and of what it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finish {
    /// The event.
    pub event: EventId,
    /// What became of it.
    pub fate: Fate,
    /// Whether it had the data of all ROBs.
    pub complete: bool,
}

/// What became of all accepted events below a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// Everything below is finished for good.
    pub below: EventId,
    /// How many of these events.
    pub tally: Tally,
}

/// Accepted events by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Built with the data of all ROBs.
    pub complete: u64,
    /// Built with data missing.
    pub incomplete: u64,
    /// Given up before they were built.
    pub not_built: u64,
    /// Of those built, by [`Fate`].
    pub fates: [u64; Fate::COUNT],
    /// Built, and lost.
    pub lost: u64,
}

impl Tally {
    /// Number of values.
    pub const COUNT: usize = Fate::COUNT + 4;

    /// The values, in the order of the fields.
    pub const fn to_values(self) -> [u64; Self::COUNT] {
        let [rejected, accepted, debug, unrecorded, abandoned] = self.fates;
        [self.complete, self.incomplete, self.not_built, rejected, accepted, debug, unrecorded, abandoned, self.lost]
    }

    /// From values in the order of the fields.
    pub const fn from_values(values: [u64; Self::COUNT]) -> Self {
        let [complete, incomplete, not_built, rejected, accepted, debug, unrecorded, abandoned, lost] = values;
        Self { complete, incomplete, not_built, fates: [rejected, accepted, debug, unrecorded, abandoned], lost }
    }

    /// All events.
    pub const fn total(&self) -> u64 {
        self.complete.saturating_add(self.incomplete).saturating_add(self.not_built)
    }
}
