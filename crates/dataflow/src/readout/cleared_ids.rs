//! Events that were cleared before their fragment came.

use crate::ids::EventId;
use crate::readout::event_manager::{EventManager, InsertError};

/// A bounded set of event numbers: the events of one read-out link that level 2 or building has finished with while the
/// fragment was still on its way. Such a fragment is dropped when it comes.
///
/// Every operation but [`ClearedIds::prune_older_than`] costs O(1). All memory
/// ([`ClearedIds::BYTES_PER_EVENT`] × capacity) is allocated at construction.
#[derive(Debug)]
pub struct ClearedIds {
    ids: EventManager<()>,
}

/// What became of an event number that was to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Remembered {
    /// It is in the set now.
    New,
    /// It was in the set before: the event was cleared twice.
    Already,
    /// It is not in the set, because the set is full: if the fragment comes, it will stay until it is older than the
    /// oldest valid event.
    Full,
}

impl ClearedIds {
    /// Bytes of memory for one event of the capacity.
    pub const BYTES_PER_EVENT: usize = EventManager::<()>::BYTES_PER_EVENT;

    /// The highest capacity, in events.
    pub const MAX_CAPACITY: usize = EventManager::<()>::MAX_CAPACITY;

    /// An empty set for at most `capacity` events.
    ///
    /// # Panics
    /// If `capacity` is above [`ClearedIds::MAX_CAPACITY`].
    pub fn new(capacity: usize) -> Self {
        Self { ids: EventManager::new(capacity) }
    }

    /// Remembers that an event was cleared.
    pub fn insert(&mut self, id: EventId) -> Remembered {
        match self.ids.insert(id, ()) {
            Ok(()) => Remembered::New,
            Err(InsertError::Duplicate(())) => Remembered::Already,
            Err(InsertError::Full(())) => Remembered::Full,
        }
    }

    /// Forgets an event, and returns whether it was in the set: whether its fragment, which has come, is to be dropped.
    pub fn remove(&mut self, id: EventId) -> bool {
        self.ids.remove(id).is_some()
    }

    /// Whether an event is in the set.
    pub fn contains(&self, id: EventId) -> bool {
        // Mostly none is, and then no slot is looked at.
        !self.ids.is_empty() && self.ids.contains(id)
    }

    /// Forgets all events below `oldest_valid`, since their fragments are dropped for their age, and returns how many
    /// there were. Cost as of [`EventManager::remove_older_than`].
    pub fn prune_older_than(&mut self, oldest_valid: EventId) -> usize {
        self.ids.remove_older_than(oldest_valid, |_, ()| {})
    }

    /// Forgets all events.
    pub fn clear(&mut self) {
        self.ids.drain(|_, ()| {});
    }

    /// How many events are in the set.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no event is in the set.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// How many events can be in the set.
    pub fn capacity(&self) -> usize {
        self.ids.capacity()
    }

    /// Checks internal consistency.
    ///
    /// # Panics
    /// If there is none.
    pub fn check(&self) {
        self.ids.check();
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set_of_limited_size(
            capacity in 0usize..20,
            operations in prop::collection::vec((0..8u8, 0xffff_fff0_u64..0x1_0000_0010), 0..200),
        ) {
            let mut cleared = ClearedIds::new(capacity);
            let mut model = BTreeSet::new();
            for (choice, id) in operations {
                let id = EventId(id);
                match choice {
                    0..=4 => {
                        let expected = if model.contains(&id) {
                            Remembered::Already
                        } else if model.len() == capacity {
                            Remembered::Full
                        } else {
                            model.insert(id);
                            Remembered::New
                        };
                        prop_assert_eq!(cleared.insert(id), expected);
                    }
                    5..=6 => prop_assert_eq!(cleared.remove(id), model.remove(&id)),
                    _ => {
                        let kept = model.split_off(&id);
                        prop_assert_eq!(cleared.prune_older_than(id), model.len());
                        model = kept;
                    }
                }
                cleared.check();
                prop_assert_eq!(cleared.len(), model.len());
                prop_assert_eq!(cleared.contains(id), model.contains(&id));
            }
            cleared.clear();
            prop_assert!(cleared.is_empty());
        }
    }
}
