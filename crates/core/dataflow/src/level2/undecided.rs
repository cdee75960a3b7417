//! The events that a supervisor has in hand.

use alloc::collections::VecDeque;

use base::ids::EventId;

/// A table by event number, for events that come in rising order and leave in about the same.
///
/// Insertion at the end and removal cost O(1) amortised. So does a search while the numbers rise evenly, as they do between
/// event-counter resets; else it is a binary one. Memory is bounded by twice the events in the table.
#[derive(Clone, Debug)]
pub(crate) struct Undecided<T> {
    /// In rising order; the first is never empty.
    slots: VecDeque<(EventId, Option<T>)>,
    len: usize,
}

impl<T> Undecided<T> {
    pub(crate) fn new() -> Self {
        Self { slots: VecDeque::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The oldest event.
    pub(crate) fn first(&self) -> Option<EventId> {
        self.slots.front().map(|(event, _)| *event)
    }

    /// Adds an event; false, and nothing, if it is there.
    pub(crate) fn insert(&mut self, event: EventId, value: T) -> bool {
        if self.slots.back().is_none_or(|(last, _)| *last < event) {
            self.slots.push_back((event, Some(value)));
        } else {
            match self.slots.binary_search_by_key(&event, |(event, _)| *event) {
                Ok(index) if self.slots[index].1.is_some() => return false,
                Ok(index) => self.slots[index].1 = Some(value),
                Err(index) => self.slots.insert(index, (event, Some(value))),
            }
        }
        self.len += 1;
        true
    }

    pub(crate) fn get(&self, event: EventId) -> Option<&T> {
        self.slots[self.find(event)?].1.as_ref()
    }

    pub(crate) fn get_mut(&mut self, event: EventId) -> Option<&mut T> {
        let index = self.find(event)?;
        self.slots[index].1.as_mut()
    }

    pub(crate) fn remove(&mut self, event: EventId) -> Option<T> {
        let index = self.find(event)?;
        let value = self.slots[index].1.take()?;
        self.len -= 1;
        while self.slots.front().is_some_and(|(_, value)| value.is_none()) {
            self.slots.pop_front();
        }
        if self.slots.len() > 2 * self.len + SLACK {
            self.slots.retain(|(_, value)| value.is_some());
        }
        Some(value)
    }

    /// All events, rising.
    pub(crate) fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (EventId, &mut T)> {
        self.slots.iter_mut().filter_map(|(event, value)| Some((*event, value.as_mut()?)))
    }

    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.len = 0;
    }

    /// Asserts that the table is consistent.
    pub(crate) fn check(&self) {
        let live = self.slots.iter().filter(|(_, value)| value.is_some()).count();
        assert_eq!(live, self.len, "every event in the table is counted");
        assert!(self.slots.iter().is_sorted_by(|a, b| a.0 < b.0), "events in order");
        assert!(self.slots.front().is_none_or(|(_, value)| value.is_some()), "the oldest event is in hand");
    }

    fn find(&self, event: EventId) -> Option<usize> {
        let offset = event.0.checked_sub(self.slots.front()?.0.0)?;
        // Most often each number is there.
        let guess = offset as usize;
        if self.slots.get(guess).is_some_and(|(found, _)| *found == event) {
            return Some(guess);
        }
        self.search(event, offset)
    }

    /// Searches for an event among numbers with gaps. `offset` is its distance from the first.
    #[inline(never)]
    fn search(&self, event: EventId, offset: u64) -> Option<usize> {
        let span = self.slots.back()?.0.0 - self.slots.front()?.0.0;
        if offset > span {
            return None;
        }
        let steps = self.slots.len() as u128 - 1;
        let guess = (u128::from(offset) * steps).checked_div(u128::from(span))? as usize;
        if self.slots[guess].0 == event {
            return Some(guess);
        }
        self.slots.binary_search_by_key(&event, |(event, _)| *event).ok()
    }
}

/// Empty slots that are not worth being tidied up.
const SLACK: usize = 64;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_an_ordered_map(
            stride in 1u64..4,
            operations in prop::collection::vec((0u8..8, 0u64..400), 0..400),
        ) {
            let mut table = Undecided::new();
            let mut model = BTreeMap::new();
            let mut next = 1 << 33;
            for (choice, number) in operations {
                let event = EventId((1 << 33) + number);
                match choice {
                    0..=3 => {
                        next += if number == 0 { 1 << 24 } else { stride };
                        prop_assert!(table.insert(EventId(next), number));
                        model.insert(EventId(next), number);
                    }
                    4 => {
                        let is_new = !model.contains_key(&event);
                        prop_assert_eq!(table.insert(event, number), is_new);
                        model.entry(event).or_insert(number);
                        next = next.max(event.0);
                    }
                    5 => {
                        let first = model.first_key_value().map(|(event, _)| *event);
                        prop_assert_eq!(table.first(), first);
                        prop_assert_eq!(first.and_then(|first| table.remove(first)), model.pop_first().map(|(_, v)| v));
                    }
                    6 => prop_assert_eq!(table.remove(event), model.remove(&event)),
                    _ => {
                        prop_assert_eq!(table.get(event), model.get(&event));
                        prop_assert_eq!(table.get_mut(event), model.get_mut(&event));
                    }
                }
                table.check();
                prop_assert_eq!(table.len(), model.len());
            }
            let events: Vec<EventId> = table.iter_mut().map(|(event, _)| event).collect();
            prop_assert_eq!(events, model.into_keys().collect::<Vec<_>>());
        }
    }

    #[test]
    fn one_event_that_stays_does_not_keep_the_room_of_the_others() {
        let mut table = Undecided::new();
        (0..100_000).for_each(|event| {
            table.insert(EventId(event), ());
            if event > 0 {
                table.remove(EventId(event));
            }
        });
        assert!(table.slots.len() <= 2 + SLACK && table.first() == Some(EventId(0)));
    }
}
