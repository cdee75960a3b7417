//! The few events that something is being done for.

use alloc::collections::VecDeque;

use base::ids::EventId;

/// A set of event numbers that mostly come in order and go in order: then an operation looks at its ends.
///
/// An empty set holds hardly any memory: thousands of read-out systems in a process then use the same, which stays in the cache.
#[derive(Debug, Default)]
pub(crate) struct FewEvents {
    rising: VecDeque<EventId>,
}

impl FewEvents {
    /// Adds an event, unless it is there.
    pub(crate) fn insert(&mut self, event: EventId) {
        if self.rising.back().is_none_or(|last| *last < event) {
            return self.rising.push_back(event);
        }
        if let Err(place) = self.rising.binary_search(&event) {
            self.rising.insert(place, event);
        }
    }

    /// Room for so many more.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.rising.reserve(count);
    }

    pub(crate) fn remove(&mut self, event: EventId) {
        if self.rising.front() == Some(&event) {
            self.rising.pop_front();
        } else if let Ok(place) = self.rising.binary_search(&event) {
            self.rising.remove(place);
        }
        if self.rising.is_empty() && self.rising.capacity() > KEPT {
            self.rising = VecDeque::new();
        }
    }

    pub(crate) fn contains(&self, event: EventId) -> bool {
        self.rising.back().is_some_and(|last| event <= *last) && self.rising.binary_search(&event).is_ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.rising.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rising.is_empty()
    }

    /// Asserts that they are in order.
    pub(crate) fn check(&self) {
        assert!(self.rising.iter().is_sorted_by(|first, second| first < second), "rising events");
    }
}

/// Room for so many is kept.
const KEPT: usize = 4;

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set(operations in prop::collection::vec((any::<bool>(), 0..12_u64), 0..100)) {
            let (mut few, mut model) = (FewEvents::default(), BTreeSet::new());
            for (comes, event) in operations {
                if comes {
                    few.insert(EventId(event));
                    model.insert(event);
                } else {
                    few.remove(EventId(event));
                    model.remove(&event);
                }
                few.check();
                prop_assert_eq!((few.len(), few.is_empty()), (model.len(), model.is_empty()));
                prop_assert!((0..12).all(|event| few.contains(EventId(event)) == model.contains(&event)));
            }
        }
    }
}
