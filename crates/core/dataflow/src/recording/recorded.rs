//! Which events were recorded already.

use alloc::collections::BTreeMap;

use base::ids::EventId;

/// The recorded events that may still be asked for again.
///
/// Every request brings the oldest event that is not finished for good; those below were decided once and are refused. So
/// only the events in between are remembered, about those in flight, while no event builder is away that may have an old one.
#[derive(Clone, Debug, Default)]
pub struct RecordedEvents {
    below: EventId,
    /// Whether they have the data of all ROBs, as far as that is known.
    events: BTreeMap<EventId, Option<bool>>,
}

impl RecordedEvents {
    /// Moves the bound up.
    pub fn forget_below(&mut self, oldest_unfinished: EventId) {
        if oldest_unfinished > self.below {
            self.below = oldest_unfinished;
            self.events = self.events.split_off(&oldest_unfinished);
        }
    }

    /// Whether the event was recorded, or finished in another way.
    pub fn contains(&self, event: EventId) -> bool {
        event < self.below || self.events.contains_key(&event)
    }

    /// Whether a recorded event has the data of all ROBs, if that is known.
    pub fn is_complete(&self, event: EventId) -> Option<bool> {
        self.events.get(&event).copied().flatten()
    }

    /// Adds events that a former life recorded.
    pub fn extend(&mut self, events: impl IntoIterator<Item = EventId>) {
        let below = self.below;
        self.events.extend(events.into_iter().filter(|event| *event >= below).map(|event| (event, None)));
    }

    /// Adds an event.
    pub fn insert(&mut self, event: EventId, complete: bool) {
        self.events.insert(event, Some(complete));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_the_bound_counts_as_recorded_and_takes_no_memory() {
        let mut recorded = RecordedEvents::default();
        (0..100).for_each(|event| recorded.insert(EventId(event), true));
        recorded.forget_below(EventId(90));
        recorded.forget_below(EventId(50));
        assert_eq!(recorded.events.len(), 10);
        assert!(recorded.contains(EventId(3)) && recorded.contains(EventId(95)) && !recorded.contains(EventId(100)));
    }
}
