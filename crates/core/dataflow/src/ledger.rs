//! What has become of accepted events, told together with the bound below which nobody remembers them.
//!
//! The dataflow manager alone counts what becomes of all events. It tells these counts to everybody who may forget
//! events below a bound. A later life of it goes on from the highest bound that anybody knows, and learns the rest
//! event by event.

use crate::message::{Fate, Grounds};
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
    /// On what level 2 had accepted it.
    pub grounds: Grounds,
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
    /// Of all, those accepted by a level-2 time-out.
    pub forced: u64,
    /// Of all, those accepted by level 2 on a part of the data that it had asked for.
    pub on_part: u64,
}

impl Tally {
    /// Number of values.
    pub const COUNT: usize = Fate::COUNT + 6;

    /// The values, in the order of the fields.
    pub const fn to_values(self) -> [u64; Self::COUNT] {
        let [rejected, accepted, debug, unrecorded, abandoned] = self.fates;
        let Self { complete, incomplete, not_built, lost, forced, on_part, .. } = self;
        [complete, incomplete, not_built, rejected, accepted, debug, unrecorded, abandoned, lost, forced, on_part]
    }

    /// From values in the order of the fields.
    pub const fn from_values(values: [u64; Self::COUNT]) -> Self {
        let [complete, incomplete, not_built, rejected, accepted, debug, unrecorded, abandoned, lost, forced, on_part] =
            values;
        let fates = [rejected, accepted, debug, unrecorded, abandoned];
        Self { complete, incomplete, not_built, fates, lost, forced, on_part }
    }

    /// Of an event that was accepted on these grounds.
    pub const fn count_grounds(&mut self, grounds: Grounds) {
        match grounds {
            Grounds::Data => {}
            Grounds::PartOfData => self.on_part += 1,
            Grounds::Timeout => self.forced += 1,
        }
    }

    /// All events.
    pub const fn total(&self) -> u64 {
        self.complete.saturating_add(self.incomplete).saturating_add(self.not_built)
    }
}
