//! Data that a read-out system pushed before their event was assigned here, until it is.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::message::Missing;
use base::bulk::Bulk;
use base::ids::EventId;

/// At most so many events and bytes, and as many parts of an event as there are sources. The newest events are refused: the
/// oldest are assigned next, and what is refused is asked for.
pub(crate) struct Ahead {
    sources: usize,
    events_max: usize,
    bytes_max: usize,
    len_bytes: usize,
    /// By number; they mostly come and go in order.
    events: VecDeque<(EventId, Vec<Pushed>)>,
    /// Lists that were taken and are used again.
    spare: Vec<Vec<Pushed>>,
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
    pub(crate) fn new(sources: usize, events_max: usize, bytes_max: usize) -> Self {
        Self { sources, events_max, bytes_max, len_bytes: 0, events: VecDeque::new(), spare: Vec::new() }
    }

    /// Keeps what a source pushed. `dropped` is given what is not kept: itself, if it is too much, or what it takes the place of.
    pub(crate) fn keep(&mut self, event: EventId, pushed: Pushed, mut dropped: impl FnMut(Pushed)) {
        let place = self.place(event).unwrap_or_else(|place| {
            self.events.insert(place, (event, self.spare.pop().unwrap_or_default()));
            place
        });
        let parts = &mut self.events[place].1;
        if parts.len() == self.sources {
            return dropped(pushed);
        }
        self.len_bytes += pushed.bulk.len();
        parts.push(pushed);
        while self.len_bytes > self.bytes_max || self.events.len() > self.events_max {
            let Some((_, newest)) = self.events.pop_back() else { return };
            self.give(newest, &mut dropped);
        }
    }

    /// The data of an event that is assigned here; what a source pushed twice is there twice.
    pub(crate) fn take(&mut self, event: EventId) -> Vec<Pushed> {
        let taken = self.place(event).ok().and_then(|place| self.events.remove(place));
        let parts = taken.map_or_else(Vec::new, |(_, parts)| parts);
        self.len_bytes -= parts.iter().map(|part| part.bulk.len()).sum::<usize>();
        parts
    }

    /// An empty list that was taken.
    pub(crate) fn reuse(&mut self, parts: Vec<Pushed>) {
        if parts.capacity() > 0 && self.spare.len() < SPARE_MAX {
            self.spare.push(parts);
        }
    }

    /// Drops what will not be built any more.
    pub(crate) fn drop_older_than(&mut self, oldest_unfinished: EventId, mut dropped: impl FnMut(Pushed)) {
        while let Some((_, parts)) = self.events.pop_front_if(|(event, _)| *event < oldest_unfinished) {
            self.give(parts, &mut dropped);
        }
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self, dropped: impl FnMut(Pushed)) {
        self.drop_older_than(EventId(u64::MAX), dropped);
    }

    /// Asserts that the bounds are kept.
    pub(crate) fn check(&self) {
        let len_bytes: usize = self.events.iter().flat_map(|(_, parts)| parts).map(|part| part.bulk.len()).sum();
        assert!(self.events.iter().is_sorted_by(|(first, _), (second, _)| first < second), "events by rising number");
        assert_eq!(self.len_bytes, len_bytes, "bytes ahead of their events");
        let longest = self.events.iter().map(|(_, parts)| parts.len()).max();
        assert!(longest.is_none_or(|parts| parts <= self.sources), "a part of each source at most");
        assert!(len_bytes <= self.bytes_max && self.events.len() <= self.events_max, "pushed data within their bounds");
    }

    /// Where an event is, or would be.
    fn place(&self, event: EventId) -> Result<usize, usize> {
        match self.events.front() {
            Some((first, _)) if *first != event => self.events.binary_search_by_key(&event, |(event, _)| *event),
            Some(_) => Ok(0),
            None => Err(0),
        }
    }

    fn give(&mut self, mut parts: Vec<Pushed>, dropped: &mut impl FnMut(Pushed)) {
        for part in parts.drain(..) {
            self.len_bytes -= part.bulk.len();
            dropped(part);
        }
        self.reuse(parts);
    }
}

/// As many as are taken before others come.
const SPARE_MAX: usize = 64;

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
        let mut ahead = Ahead::new(9, 2, 1000);
        assert!(keep(&mut ahead, 3, pushed(0, 10)).is_empty());
        assert!(keep(&mut ahead, 3, pushed(1, 10)).is_empty());
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
        let mut ahead = Ahead::new(9, 100, 100);
        for event in 0..10 {
            let dropped = keep(&mut ahead, event, pushed(0, 30));
            assert_eq!(dropped.len(), usize::from(event > 2), "event {event}");
        }
        let mut dropped = 0;
        ahead.clear(|_| dropped += 1);
        assert_eq!((dropped, ahead.len_bytes), (3, 0));
        assert_eq!(keep(&mut ahead, 1, pushed(0, 101)), [0], "larger than all room");
    }

    #[test]
    fn parts_without_data_are_bounded_by_the_sources() {
        let mut ahead = Ahead::new(2, 100, 100);
        let dropped: usize = (0..1000).map(|_| keep(&mut ahead, u64::MAX, pushed(0, 0)).len()).sum();
        assert_eq!(dropped, 998);
        assert!(keep(&mut ahead, 1, pushed(1, 10)).is_empty());
        assert_eq!(ahead.take(EventId(u64::MAX)).len(), 2);
        assert_eq!(ahead.len_bytes, 10);
    }
}
