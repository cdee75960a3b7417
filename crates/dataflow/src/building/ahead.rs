//! Data that a read-out system pushed before their event was assigned here, until it is.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::bulk::Bulk;
use crate::ids::EventId;
use crate::message::Missing;

/// At most so many events and bytes. The newest events are refused: the oldest are assigned next, and what is refused is
/// asked for.
pub(crate) struct Ahead {
    events_max: usize,
    bytes_max: usize,
    len_bytes: usize,
    events: BTreeMap<EventId, Vec<Pushed>>,
}

/// What a source pushed of one event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pushed {
    /// Index of the source.
    pub(crate) source: u16,
    /// ROBs that are not in `bulk`.
    pub(crate) missing: Vec<Missing>,
    /// Their fragments.
    pub(crate) bulk: Bulk,
}

impl Ahead {
    pub(crate) fn new(events_max: usize, bytes_max: usize) -> Self {
        Self { events_max, bytes_max, len_bytes: 0, events: BTreeMap::new() }
    }

    /// Keeps what a source pushed. `dropped` is given what is not kept: itself, if it came twice or is too much, or what it
    /// takes the place of.
    pub(crate) fn keep(&mut self, event: EventId, pushed: Pushed, mut dropped: impl FnMut(Pushed)) {
        let parts = self.events.entry(event).or_default();
        if parts.iter().any(|part| part.source == pushed.source) {
            return dropped(pushed);
        }
        self.len_bytes += pushed.bulk.len();
        parts.push(pushed);
        while self.len_bytes > self.bytes_max || self.events.len() > self.events_max {
            let Some((_, newest)) = self.events.pop_last() else { return };
            self.give(newest, &mut dropped);
        }
    }

    /// The data of an event that is assigned here.
    pub(crate) fn take(&mut self, event: EventId) -> Vec<Pushed> {
        if self.events.is_empty() {
            return Vec::new();
        }
        let parts = self.events.remove(&event).unwrap_or_default();
        self.len_bytes -= parts.iter().map(|part| part.bulk.len()).sum::<usize>();
        parts
    }

    /// Drops what will not be built any more.
    pub(crate) fn drop_older_than(&mut self, oldest_unfinished: EventId, mut dropped: impl FnMut(Pushed)) {
        while self.events.first_key_value().is_some_and(|(event, _)| *event < oldest_unfinished) {
            let (_, parts) = self.events.pop_first().expect("there is a first event");
            self.give(parts, &mut dropped);
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, dropped: impl FnMut(Pushed)) {
        self.drop_older_than(EventId(u64::MAX), dropped);
    }

    /// Asserts that the bounds are kept.
    pub(crate) fn check(&self) {
        let len_bytes: usize = self.events.values().flatten().map(|part| part.bulk.len()).sum();
        assert_eq!(self.len_bytes, len_bytes, "bytes ahead of their events");
        assert!(len_bytes <= self.bytes_max && self.events.len() <= self.events_max, "pushed data within their bounds");
    }

    fn give(&mut self, parts: Vec<Pushed>, dropped: &mut impl FnMut(Pushed)) {
        for part in parts {
            self.len_bytes -= part.bulk.len();
            dropped(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(source: u16, len_bytes: u32) -> Pushed {
        Pushed { source, missing: Vec::new(), bulk: Bulk::Modelled { len_bytes, seed: 0 } }
    }

    /// Keeps it; the sources of what was dropped for it.
    fn keep(ahead: &mut Ahead, event: u64, part: Pushed) -> Vec<u16> {
        let mut dropped = Vec::new();
        ahead.keep(EventId(event), part, |part| dropped.push(part.source));
        ahead.check();
        dropped
    }

    #[test]
    fn the_newest_are_refused_and_the_finished_are_dropped() {
        let mut ahead = Ahead::new(2, 1000);
        assert!(keep(&mut ahead, 3, pushed(0, 10)).is_empty());
        assert!(keep(&mut ahead, 3, pushed(1, 10)).is_empty());
        assert_eq!(keep(&mut ahead, 3, pushed(1, 10)), [1], "pushed twice");
        assert!(keep(&mut ahead, 2, pushed(1, 10)).is_empty());
        assert_eq!(keep(&mut ahead, 1, pushed(5, 10)), [0, 1], "older than what it replaces");
        assert_eq!(keep(&mut ahead, 9, pushed(7, 10)), [7]);
        assert_eq!((ahead.take(EventId(2)), ahead.take(EventId(2))), (alloc::vec![pushed(1, 10)], Vec::new()));
        ahead.drop_older_than(EventId(1), |_| panic!("not finished"));
        let mut dropped = 0;
        ahead.drop_older_than(EventId(2), |_| dropped += 1);
        ahead.check();
        assert_eq!((dropped, ahead.len_bytes), (1, 0));
    }

    #[test]
    fn bytes_are_bounded() {
        let mut ahead = Ahead::new(100, 100);
        for event in 0..10 {
            let dropped = keep(&mut ahead, event, pushed(0, 30));
            assert_eq!(dropped.len(), usize::from(event > 2), "event {event}");
        }
        let mut dropped = 0;
        ahead.clear(|_| dropped += 1);
        assert_eq!((dropped, ahead.len_bytes), (3, 0));
        assert_eq!(keep(&mut ahead, 1, pushed(0, 101)), [0], "larger than all room");
    }
}
