//! Which builder a trigger goes to, also one that comes before the table that says it.

use alloc::collections::VecDeque;

use crate::building::destinations::{DestinationTable, Destinations};
use crate::message::EventInfo;
use base::ids::{EventId, NodeId};

/// The table of destinations at a source of data, and the triggers that wait for its first version. The table travels on a
/// connection of its own.
#[derive(Debug)]
pub(crate) struct Directing {
    table: DestinationTable,
    is_expected: bool,
    /// At most the window of level 1.
    early: VecDeque<EventInfo>,
}

impl Directing {
    /// Without a version, of which one will come if it `is_expected`.
    pub(crate) fn new(is_expected: bool) -> Self {
        Self { table: DestinationTable::default(), is_expected, early: VecDeque::new() }
    }

    /// For a new life of the DFM.
    pub(crate) fn begin_anew(&mut self) {
        *self = Self::new(self.is_expected);
    }

    /// Takes a version of the table.
    pub(crate) fn take(&mut self, table: Destinations) {
        self.table.take(table);
    }

    /// The builder of a new event. One that comes before the first version is named with that. So are those behind it in its pass:
    /// else younger events take the credit for which older ones wait.
    pub(crate) fn direct(&mut self, event: &EventInfo) -> Option<NodeId> {
        if self.table.newest().is_some() && self.early.is_empty() {
            return self.table.of(event.event);
        }
        if self.is_expected {
            self.early.push_back(*event);
        }
        None
    }

    /// The events that came before the first version, with their builders, at the end of a pass: several versions may come in it.
    pub(crate) fn take_early(&mut self) -> impl Iterator<Item = (NodeId, EventInfo)> {
        let early = if self.table.newest().is_none() { VecDeque::new() } else { core::mem::take(&mut self.early) };
        early.into_iter().filter_map(|event| Some((self.table.of(event.event)?, event)))
    }

    /// The builder of an event has asked for it.
    pub(crate) fn withdraw(&mut self, event: EventId) {
        self.early.retain(|early| early.event != event);
    }

    /// Nobody asks for older events.
    pub(crate) fn forget_below(&mut self, oldest: EventId) {
        while self.early.pop_front_if(|early| early.event < oldest).is_some() {}
        self.table.forget_below(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_before_the_first_version_are_named_by_the_one_that_holds() {
        let mut directing = Directing::new(true);
        let info = |event| EventInfo { event: EventId(event), ..EventInfo::default() };
        for event in 10..15 {
            assert_eq!(directing.direct(&info(event)), None);
        }
        directing.forget_below(EventId(11));
        directing.withdraw(EventId(13));
        assert_eq!(directing.take_early().count(), 0, "nobody knows yet");
        for (version, first, sfi) in [(1, 0, 7), (2, 12, 8)] {
            directing.take(Destinations { version, first: EventId(first), run: 1, sfis: alloc::vec![NodeId(sfi)] });
        }
        assert_eq!(directing.direct(&info(15)), None, "not before the older ones");
        let named: alloc::vec::Vec<_> = directing.take_early().map(|(sfi, event)| (sfi.0, event.event.0)).collect();
        assert_eq!(named, [(7, 11), (8, 12), (8, 14), (8, 15)]);
        assert_eq!((directing.direct(&info(20)), directing.take_early().count()), (Some(NodeId(8)), 0));
        directing.begin_anew();
        assert_eq!(directing.direct(&info(21)), None);
    }
}
