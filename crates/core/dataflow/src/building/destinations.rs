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
pub(crate) struct DestinationTable {
    /// By rising version and first event.
    versions: VecDeque<Destinations>,
}

impl DestinationTable {
    /// Takes a version; one that is older than the newest is of no use any more.
    pub(crate) fn take(&mut self, table: Destinations) {
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
    pub(crate) fn of(&self, event: EventId) -> Option<NodeId> {
        self.versions.iter().rev().find(|table| table.first <= event)?.of(event)
    }

    /// Forgets versions that no event from this one on goes by.
    pub(crate) fn forget_below(&mut self, oldest: EventId) {
        while self.versions.get(1).is_some_and(|next| next.first <= oldest) {
            self.versions.pop_front();
        }
    }

    /// All versions that may still be asked for, oldest first.
    pub(crate) fn versions(&self) -> impl Iterator<Item = &Destinations> {
        self.versions.iter()
    }

    /// The newest version.
    pub(crate) fn newest(&self) -> Option<&Destinations> {
        self.versions.back()
    }
}

/// Changes of the table within the life of an event. An event whose version was dropped is asked for, not pushed.
const VERSIONS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn table(version: u64, first: u64, sfis: &[u16]) -> Destinations {
        Destinations { version, first: EventId(first), run: 1, sfis: sfis.iter().map(|&sfi| NodeId(sfi)).collect() }
    }

    fn of(table: &DestinationTable, events: core::ops::Range<u64>) -> Vec<Option<u16>> {
        events.map(|event| table.of(EventId(event)).map(|sfi| sfi.0)).collect()
    }

    #[test]
    fn a_version_holds_from_its_event_on() {
        let mut destinations = DestinationTable::default();
        assert_eq!(destinations.of(EventId(1)), None);
        destinations.take(table(1, 0, &[7, 8, 9]));
        destinations.take(table(2, 4, &[7, 9]));
        assert_eq!(of(&destinations, 2..7), [Some(9), Some(7), Some(7), Some(9), Some(7)]);
        destinations.forget_below(EventId(3));
        assert_eq!(destinations.versions().count(), 2);
        destinations.forget_below(EventId(4));
        assert_eq!(destinations.versions().count(), 1);
        assert_eq!(destinations.of(EventId(3)), None);
    }

    #[test]
    fn a_version_replaces_those_that_begin_later_and_old_ones_are_ignored() {
        let mut destinations = DestinationTable::default();
        destinations.take(table(1, 0, &[7]));
        destinations.take(table(2, 10, &[8]));
        destinations.take(table(3, 5, &[9]));
        destinations.take(table(2, 0, &[6]));
        assert_eq!(of(&destinations, 4..12), [7, 9, 9, 9, 9, 9, 9, 9].map(Some));
        destinations.take(table(4, 12, &[]));
        assert_eq!((destinations.of(EventId(12)), destinations.newest().map(|newest| newest.version)), (None, Some(4)));
    }

    #[test]
    fn events_in_a_row_go_to_the_same_builder() {
        let mut destinations = DestinationTable::default();
        destinations.take(Destinations { run: 3, ..table(1, 0, &[7, 8]) });
        assert_eq!(of(&destinations, 0..7), [7, 7, 7, 8, 8, 8, 7].map(Some));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut destinations = DestinationTable::default();
        for version in 1..1000 {
            destinations.take(table(version, version, &[7]));
        }
        assert_eq!(destinations.versions().count(), VERSIONS_MAX);
        assert_eq!(vec![destinations.of(EventId(1)), destinations.of(EventId(999))], [None, Some(NodeId(7))]);
    }
}
