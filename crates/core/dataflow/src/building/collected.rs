//! Data of accepted events that level 2 has collected, until their builder is told to build them `[ATM1997 §II-B]`.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::OccupiedEntry;
use alloc::vec::Vec;

use base::bulk::Bulk;
use base::ids::EventId;

/// At most so many events. The newest are refused: the oldest are built next.
pub(crate) struct Collected {
    most: usize,
    events: BTreeMap<EventId, EventData>,
}

/// Some of the data of an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EventData {
    /// Source identifiers, none twice.
    pub(crate) robs: Vec<u32>,
    /// Their fragments.
    pub(crate) bulk: Bulk,
}

impl Collected {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, events: BTreeMap::new() }
    }

    /// Keeps the data of an event; how many events were dropped for it, itself perhaps.
    pub(crate) fn keep(&mut self, event: EventId, part: EventData) -> u64 {
        let replaced = self.events.insert(event, part).is_some();
        let overflows = self.events.len() > self.most;
        if overflows {
            self.events.pop_last();
        }
        u64::from(replaced) + u64::from(overflows)
    }

    /// The data of an event that is to be built here.
    pub(crate) fn take(&mut self, event: EventId) -> Option<EventData> {
        self.events.remove(&event)
    }

    /// Drops what will not be built any more; how many events.
    pub(crate) fn drop_older_than(&mut self, oldest_unfinished: EventId) -> u64 {
        let mut dropped = 0;
        while self
            .events
            .first_entry()
            .filter(|first| *first.key() < oldest_unfinished)
            .map(OccupiedEntry::remove)
            .is_some()
        {
            dropped += 1;
        }
        dropped
    }

    /// Drops everything; how many events.
    pub(crate) fn clear(&mut self) -> u64 {
        core::mem::take(&mut self.events).len() as u64
    }

    /// Asserts that the bound is kept.
    pub(crate) fn check(&self) {
        assert!(self.events.len() <= self.most, "data of level 2 within their bound");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_refused_and_the_finished_are_dropped() {
        let part = |rob| EventData { robs: alloc::vec![rob], bulk: Bulk::Modelled { len_bytes: 1, seed: rob } };
        let mut collected = Collected::new(2);
        assert_eq!([1, 3, 2].map(|event| collected.keep(EventId(event), part(event as u32))), [0, 0, 1]);
        assert_eq!((collected.take(EventId(1)), collected.take(EventId(3))), (Some(part(1)), None));
        assert_eq!(collected.keep(EventId(2), part(2)), 1, "said again");
        assert_eq!((collected.drop_older_than(EventId(2)), collected.drop_older_than(EventId(3))), (0, 1));
        assert_eq!([5, 6].map(|event| collected.keep(EventId(event), part(5))), [0, 0]);
        assert_eq!((collected.clear(), collected.clear()), (2, 0), "what is given up is counted");
        assert_eq!(Collected::new(0).keep(EventId(1), part(1)), 1);
    }
}
