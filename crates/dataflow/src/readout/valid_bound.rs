//! The oldest valid event, as whoever clears says it.

use crate::ids::EventId;

/// A bound that only rises, and that no single message raises beyond what is known to have been issued: what is below it
/// is refused and may be removed, for good.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidBound {
    oldest: EventId,
    /// All events below are known to have been issued.
    known_end: EventId,
    /// What the last message said, if that is beyond what is known.
    claimed: Option<EventId>,
    refused: u64,
}

impl ValidBound {
    /// Events below are not valid any more.
    pub fn oldest(&self) -> EventId {
        self.oldest
    }

    /// This event has been issued.
    pub fn note_issued(&mut self, event: EventId) {
        self.known_end = self.known_end.max(EventId(event.0.saturating_add(1)));
    }

    /// Takes what a message says. What goes beyond what is known to have been issued waits until another message goes beyond as
    /// well, and is forgotten if that one says less.
    pub fn take(&mut self, said: EventId) {
        let claimed = self.claimed.take();
        self.refused += u64::from(claimed.is_some_and(|claimed| claimed > said));
        if said <= self.known_end {
            self.raise(said);
        } else {
            self.raise(claimed.unwrap_or_default().min(said));
            self.claimed = Some(said);
        }
    }

    /// Nothing is issued any more: what was said last holds, and what will be said.
    pub fn settle(&mut self) {
        self.known_end = EventId(u64::MAX);
        let claimed = self.claimed.take().unwrap_or_default();
        self.raise(claimed);
    }

    /// How often a later message said less than one that went beyond what was known.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn raise(&mut self, said: EventId) {
        self.oldest = self.oldest.max(said);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bound, and what was refused, after messages that say so much when as much is known.
    fn after(said: &[(u64, u64)]) -> (u64, u64) {
        let mut bound = ValidBound::default();
        for (said, known) in said {
            bound.note_issued(EventId(*known));
            bound.take(EventId(*said));
        }
        (bound.oldest().0, bound.refused())
    }

    #[test]
    fn one_message_does_not_raise_it_beyond_what_is_known() {
        assert_eq!(after(&[(5, 9), (10, 9)]), (10, 0));
        assert_eq!(after(&[(5, 9), (1 << 40, 9)]), (5, 0));
        assert_eq!(after(&[(5, 9), (1 << 40, 9), (6, 9)]), (6, 1));
        assert_eq!(after(&[(5, 9), (1 << 40, 9), (12, 9), (13, 9)]), (12, 1));
    }

    #[test]
    fn a_receiver_that_lags_behind_or_sees_few_events_follows() {
        assert_eq!(after(&[(20, 9), (22, 9), (25, 9)]), (22, 0));
        assert_eq!(after(&[(20, 9), (22, 29)]), (22, 0));
    }

    #[test]
    fn at_the_end_the_last_word_holds() {
        let mut bound = ValidBound::default();
        bound.take(EventId(1 << 40));
        bound.settle();
        assert_eq!(bound.oldest(), EventId(1 << 40));
        bound.take(EventId(u64::MAX));
        assert_eq!(bound.oldest(), EventId(u64::MAX));
    }
}
