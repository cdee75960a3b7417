//! The oldest valid event, as whoever clears says it.

use base::ids::EventId;

/// A bound that only rises, and that no single message raises beyond what is known to have been issued. Events below it
/// are refused and may be removed, for good.
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

    /// Takes what a clear group says. A bound beyond what is known to have been issued waits until another group goes beyond as
    /// well. It is forgotten if a later group says less. An earlier group that was late on its way says nothing against it.
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
