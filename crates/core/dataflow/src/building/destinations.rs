//! Which builder an event goes to by its number: tables that change at an event number `[ATM1997 §II]`.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use base::ids::{EventId, NodeId};

/// One version of the table of destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destinations {
    /// Higher than that of any table before.
    pub version: u64,
    /// The first event that it holds for; it ends where the next version begins.
    pub first: EventId,
    /// How many events in a row go to the same builder; at least 1.
    pub run: u32,
    /// The builders, in turn.
    pub sfis: Vec<NodeId>,
}

impl Destinations {
    fn of(&self, event: EventId) -> Option<NodeId> {
        let turn = event.0 / u64::from(self.run.max(1));
        let place = turn.checked_rem(self.sfis.len() as u64)?;
        Some(self.sfis[place as usize])
    }
}

/// The versions of the table that events still go by. The DFM and every ROS have one and come to the same answers.
#[derive(Clone, Debug, Default)]
pub struct DestinationTable {
    /// By rising version and first event.
    versions: VecDeque<Destinations>,
}

impl DestinationTable {
    /// Takes a version; one that is older than the newest is of no use any more.
    pub fn take(&mut self, table: Destinations) {
        if self.versions.back().is_some_and(|newest| newest.version >= table.version) {
            return;
        }
        while self.versions.pop_back_if(|older| older.first >= table.first).is_some() {}
        self.versions.push_back(table);
        if self.versions.len() > VERSIONS_MAX {
            self.versions.pop_front();
        }
    }

    /// The builder of an event; `None` before the first table, or where nobody builds.
    pub fn of(&self, event: EventId) -> Option<NodeId> {
        self.versions.iter().rev().find(|table| table.first <= event)?.of(event)
    }

    /// Forgets versions that no event from this one on goes by.
    pub fn forget_below(&mut self, oldest: EventId) {
        while self.versions.get(1).is_some_and(|next| next.first <= oldest) {
            self.versions.pop_front();
        }
    }

    /// All versions that may still be asked for, oldest first.
    pub fn versions(&self) -> impl Iterator<Item = &Destinations> {
        self.versions.iter()
    }

    /// The newest version.
    pub fn newest(&self) -> Option<&Destinations> {
        self.versions.back()
    }
}

/// Changes of the table within the life of an event. An event whose version was dropped is asked for, not pushed.
pub const VERSIONS_MAX: usize = 64;
