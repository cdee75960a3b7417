//! What has become of accepted events, told together with the bound below which nobody remembers them.
//!
//! The dataflow manager alone counts what becomes of all events. It tells these counts to everybody who may forget
//! events below a bound. A later life of it goes on from the highest bound that anybody knows, and learns the rest
//! event by event.

use crate::message::terms::{Fate, Grounds};
use base::ids::EventId;

pub use crate::report::Tally;

/// More than a run has: ten thousand years of triggers at 100 kHz.
pub const EVENTS_MAX: u64 = 1 << 55;

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

impl Tally {
    /// Of an event that was accepted on these grounds.
    pub const fn count_grounds(&mut self, grounds: Grounds) {
        match grounds {
            Grounds::Data => {}
            Grounds::PartOfData => self.on_part += 1,
            Grounds::Timeout => self.forced += 1,
        }
    }

    /// How many events had this fate.
    pub const fn of_fate(&mut self, fate: Fate) -> &mut u64 {
        match fate {
            Fate::Rejected => &mut self.rejected,
            Fate::Accepted => &mut self.accepted,
            Fate::Debug => &mut self.debug,
            Fate::Unrecorded => &mut self.unrecorded,
            Fate::Abandoned => &mut self.abandoned,
        }
    }

    /// Whether every built event has one fate, and no run is too short for so many.
    pub fn adds_up(&self) -> bool {
        let fates = [self.rejected, self.accepted, self.debug, self.unrecorded, self.abandoned, self.lost];
        let finished = fates.into_iter().fold(0, u64::saturating_add);
        let is_built = finished == self.complete.saturating_add(self.incomplete);
        is_built && self.events() <= EVENTS_MAX && self.forced.saturating_add(self.on_part) <= self.events()
    }

    /// All events.
    pub const fn events(&self) -> u64 {
        self.complete.saturating_add(self.incomplete).saturating_add(self.not_built)
    }
}
