//! The oldest valid event, as whoever clears says it.

use base::ids::EventId;

/// A bound that only rises, and that no single message raises beyond what is known to have been issued: what is below it
/// is refused and may be removed, for good.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidBound {
    oldest: EventId,
    /// All events below are known to have been issued.
    known_end: EventId,
    /// The clear group that said most recently what is beyond what is known.
    claim: Option<Claim>,
    refused: u64,
}

/// What a clear group said, by its number.
#[derive(Clone, Copy, Debug)]
struct Claim {
    sequence: u64,
    said: EventId,
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

    /// Takes what a clear group says. What goes beyond what is known to have been issued waits until another group goes beyond as
    /// well, and is forgotten if a later group says less. An earlier group that was late on its way says nothing against it.
    pub fn take(&mut self, sequence: u64, said: EventId) {
        let before = self.claim;
        let goes_beyond = said > self.known_end;
        if before.is_none_or(|claim| claim.sequence <= sequence) {
            self.claim = goes_beyond.then_some(Claim { sequence, said });
            self.refused += u64::from(before.is_some_and(|claim| claim.said > said));
        }
        self.raise(if goes_beyond { before.map_or(EventId(0), |claim| claim.said.min(said)) } else { said });
    }

    /// Another life clears, and counts its groups from the first again.
    pub fn begin_anew(&mut self) {
        self.claim = None;
    }

    /// Nothing is issued any more: what was said last holds, and what will be said.
    pub fn settle(&mut self) {
        self.known_end = EventId(u64::MAX);
        if let Some(claim) = self.claim.take() {
            self.raise(claim.said);
        }
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
        for (sequence, (said, known)) in (1..).zip(said) {
            bound.note_issued(EventId(*known));
            bound.take(sequence, EventId(*said));
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
        bound.take(1, EventId(1 << 40));
        bound.settle();
        assert_eq!(bound.oldest(), EventId(1 << 40));
        bound.take(2, EventId(u64::MAX));
        assert_eq!(bound.oldest(), EventId(u64::MAX));
    }

    #[test]
    fn an_earlier_group_that_is_late_does_not_contradict_the_last_word() {
        let mut bound = ValidBound::default();
        bound.note_issued(EventId(9));
        bound.take(3, EventId(u64::MAX));
        bound.take(2, EventId(5));
        assert_eq!((bound.oldest(), bound.refused()), (EventId(5), 0));
        bound.settle();
        assert_eq!(bound.oldest(), EventId(u64::MAX));
    }
}
