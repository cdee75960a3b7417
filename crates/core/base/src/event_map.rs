//! What is known of events in hand, by their number.

use alloc::collections::VecDeque;

use crate::ids::EventId;

/// A map of event numbers that mostly come in order and mostly go in about that order. An operation then looks at its ends, or
/// where the event would be if none was missing, and allocates nothing.
///
/// Any other order is possible: finding takes a binary search, a number below the last one moves those behind it.
#[derive(Debug)]
pub struct EventMap<V> {
    /// By rising event. What was removed leaves a gap, until it comes to the front or gaps are more than half.
    rising: VecDeque<(EventId, Option<V>)>,
    len: usize,
}

impl<V> EventMap<V> {
    /// Knows nothing.
    pub const fn new() -> Self {
        Self { rising: VecDeque::new(), len: 0 }
    }

    /// Adds an event; what was known of it before.
    pub fn insert(&mut self, event: EventId, value: V) -> Option<V> {
        if self.rising.back().is_none_or(|(last, _)| *last < event) {
            self.rising.push_back((event, Some(value)));
            self.len += 1;
            return None;
        }
        let before = match self.place(event) {
            Ok(place) => self.rising[place].1.replace(value),
            Err(place) => {
                self.rising.insert(place, (event, Some(value)));
                None
            }
        };
        self.len += usize::from(before.is_none());
        before
    }

    /// What is known of an event.
    pub fn get(&self, event: EventId) -> Option<&V> {
        let place = self.place(event).ok()?;
        self.rising[place].1.as_ref()
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, event: EventId) -> Option<&mut V> {
        let place = self.place(event).ok()?;
        self.rising[place].1.as_mut()
    }

    /// Whether anything is known of it.
    pub fn contains(&self, event: EventId) -> bool {
        self.get(event).is_some()
    }

    /// Forgets it; what was known.
    pub fn remove(&mut self, event: EventId) -> Option<V> {
        let place = self.place(event).ok()?;
        let removed = self.rising[place].1.take()?;
        self.len -= 1;
        self.close_gaps();
        Some(removed)
    }

    /// The lowest event.
    pub fn first(&self) -> Option<EventId> {
        self.rising.front().map(|(event, _)| *event)
    }

    /// By rising event.
    pub fn iter(&self) -> impl Iterator<Item = (EventId, &V)> {
        self.rising.iter().filter_map(|(event, value)| Some((*event, value.as_ref()?)))
    }

    /// By rising event.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (EventId, &mut V)> {
        self.rising.iter_mut().filter_map(|(event, value)| Some((*event, value.as_mut()?)))
    }

    /// By rising event.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Forgets all that are not to be kept.
    pub fn retain(&mut self, mut keeps: impl FnMut(EventId, &V) -> bool) {
        self.rising.retain(|(event, value)| value.as_ref().is_some_and(|value| keeps(*event, value)));
        self.len = self.rising.len();
    }

    /// Of how many events something is known.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where an event is, or would be.
    fn place(&self, event: EventId) -> Result<usize, usize> {
        let Some((first, _)) = self.rising.front() else { return Err(0) };
        if self.rising.back().is_some_and(|(last, _)| *last < event) {
            return Err(self.rising.len());
        }
        let Some(ahead) = event.0.checked_sub(first.0) else { return Err(0) };
        let without_gaps = usize::try_from(ahead).unwrap_or(usize::MAX);
        if self.rising.get(without_gaps).is_some_and(|(there, _)| *there == event) {
            return Ok(without_gaps);
        }
        self.rising.binary_search_by_key(&event, |(event, _)| *event)
    }

    fn close_gaps(&mut self) {
        if self.len == 0 {
            self.rising.clear();
            self.rising.shrink_to(KEPT);
            return;
        }
        while self.rising.pop_front_if(|(_, value)| value.is_none()).is_some() {}
        if self.rising.len() > 2 * self.len + GAPS {
            self.rising.retain(|(_, value)| value.is_some());
        }
    }
}

impl<V> Default for EventMap<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> IntoIterator for EventMap<V> {
    type Item = (EventId, V);
    type IntoIter = core::iter::FilterMap<
        alloc::collections::vec_deque::IntoIter<(EventId, Option<V>)>,
        fn((EventId, Option<V>)) -> Option<(EventId, V)>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        self.rising.into_iter().filter_map(|(event, value)| Some((event, value?)))
    }
}

/// So many gaps do no harm in a small map.
const GAPS: usize = 32;
/// Room for so many is kept when all are gone.
const KEPT: usize = 1024;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::*;
    use crate::random::Random;

    #[test]
    fn a_gap_moves_nothing_until_gaps_are_more_than_half() {
        let mut map = EventMap::new();
        (0..100).for_each(|event| _ = map.insert(EventId(event), ()));
        (1..=60).for_each(|event| _ = map.remove(EventId(event)));
        assert_eq!((map.len(), map.rising.len()), (40, 100));
        (61..=70).for_each(|event| _ = map.remove(EventId(event)));
        assert!(map.rising.len() < 60, "{}", map.rising.len());
    }

    #[test]
    fn it_does_what_a_tree_does() {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let (mut map, mut model) = (EventMap::new(), BTreeMap::new());
            let (mut next, spread) = (0, 1 + seed * 3);
            for step in 0..2000 {
                let drawn = EventId(random.next_u64() % (next + 2));
                let recent = EventId(next.saturating_sub(random.next_u64() % spread));
                match random.next_u64() % 10 {
                    0..4 => {
                        next += 1 + random.next_u64() % 2;
                        assert_eq!(map.insert(EventId(next), step), model.insert(EventId(next), step));
                    }
                    4 => assert_eq!(map.insert(drawn, step), model.insert(drawn, step)),
                    5..8 => assert_eq!(map.remove(recent), model.remove(&recent)),
                    8 => assert_eq!(map.get_mut(drawn), model.get_mut(&drawn)),
                    _ if step % 100 == 9 => {
                        map.retain(|event, value| (event.0 + value) % 3 > 0);
                        model.retain(|event, value| (event.0 + *value) % 3 > 0);
                    }
                    _ => assert_eq!(map.get(recent), model.get(&recent)),
                }
                assert_eq!((map.len(), map.first()), (model.len(), model.keys().next().copied()));
                assert!(map.rising.len() <= 2 * map.len() + GAPS, "gaps are bounded");
            }
            let rising: Vec<(EventId, u64)> = map.iter().map(|(event, value)| (event, *value)).collect();
            assert_eq!(rising, model.iter().map(|(event, value)| (*event, *value)).collect::<Vec<_>>());
            assert!(map.iter_mut().rev().map(|(event, _)| event).eq(model.keys().rev().copied()));
            assert!(map.into_iter().eq(model));
        }
    }
}
