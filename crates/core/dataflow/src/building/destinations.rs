//! Which builder an event goes to by its number: tables that change at an event number `[ATM1997 §II]`.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::message::EventInfo;
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
    is_expected: bool,
    /// Events that came before the first version, which travels on a connection of its own: at most the window of level 1.
    early: VecDeque<EventInfo>,
}

impl DestinationTable {
    /// Without a version, of which one will come if it `is_expected`.
    pub(crate) fn new(is_expected: bool) -> Self {
        Self { is_expected, ..Self::default() }
    }

    /// For a new life of the DFM.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.is_expected)
    }

    /// The builder of a new event. One that comes before the first version is named with that.
    pub(crate) fn direct(&mut self, event: &EventInfo) -> Option<NodeId> {
        if self.is_expected && self.versions.is_empty() {
            self.early.push_back(*event);
        }
        self.of(event.event)
    }

    /// The events that came before the first version, with their builders, at the end of a pass: several versions may come in it.
    pub(crate) fn take_early(&mut self) -> impl Iterator<Item = (NodeId, EventInfo)> {
        let early = if self.versions.is_empty() { VecDeque::new() } else { core::mem::take(&mut self.early) };
        early.into_iter().filter_map(|event| Some((self.of(event.event)?, event)))
    }

    /// The builder of an event has asked for it.
    pub(crate) fn withdraw(&mut self, event: EventId) {
        self.early.retain(|early| early.event != event);
    }

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

    /// Forgets older events, and versions that no event from this one on goes by.
    pub(crate) fn forget_below(&mut self, oldest: EventId) {
        while self.early.pop_front_if(|early| early.event < oldest).is_some() {}
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

    #[test]
    fn events_before_the_first_version_are_named_by_the_one_that_holds() {
        let mut table = DestinationTable::new(true);
        let info = |event| EventInfo { event: EventId(event), ..EventInfo::default() };
        for event in 10..15 {
            assert_eq!(table.direct(&info(event)), None);
        }
        table.forget_below(EventId(11));
        table.withdraw(EventId(13));
        assert_eq!(table.take_early().count(), 0, "nobody knows yet");
        for (version, first, sfi) in [(1, 0, 7), (2, 12, 8)] {
            table.take(Destinations { version, first: EventId(first), run: 1, sfis: vec![NodeId(sfi)] });
        }
        let named: Vec<_> = table.take_early().map(|(sfi, event)| (sfi.0, event.event.0)).collect();
        assert_eq!(named, [(7, 11), (8, 12), (8, 14)]);
        assert_eq!((table.direct(&info(20)), table.take_early().count()), (Some(NodeId(8)), 0));
        assert_eq!((table.anew().direct(&info(21)), DestinationTable::default().direct(&info(21))), (None, None));
    }
}
