//! The numbers of the fragments of a link: whole, counted where a source says none, and as a trigger logic unit gives them.

use link::Head;
use timing::handshake::{Breach, Handshake, Mode};
use timing::unwrap::Unwrap;

/// Gives each fragment of a link its whole number.
pub(super) struct Numbers {
    /// Makes numbers of few bits whole.
    unwrap: Option<Unwrap>,
    /// Of a fragment that says none.
    next: u64,
    watched: Option<Watched>,
}

/// The hand-shake of a source with a trigger logic unit, and how often the source broke it.
struct Watched {
    handshake: Handshake,
    breaches: u64,
}

/// A breach of the hand-shake.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Broken {
    breach: Breach,
    /// The number of the fragment, or of the next one.
    event: u64,
    /// How many breaches there are with it.
    count: u64,
}

impl Numbers {
    /// Of a source whose numbers have so many bits, if they are few, and which takes part in a hand-shake.
    pub(super) fn new(bits: Option<u32>, mode: Option<Mode>) -> Self {
        let handshake = mode.map(|mode| Handshake::new(mode, bits.unwrap_or(u64::BITS)));
        let watched = handshake.map(|handshake| Watched { handshake, breaches: 0 });
        Self { unwrap: bits.map(Unwrap::of_bits), next: 0, watched }
    }

    /// The number of a fragment, if it is one of the run.
    #[inline]
    pub(super) fn of_fragment(&mut self, head: &Head) -> (Option<u64>, Option<Broken>) {
        // By these, idle marks are made whole, too.
        let said = head.number.map(|number| self.whole(number));
        let (number, broken) = match &mut self.watched {
            None => (Some(said.unwrap_or(self.next)), None),
            Some(watched) => watched.fragment(head, self.next),
        };
        self.next = number.map_or(self.next, |number| number.wrapping_add(1));
        (number, broken)
    }

    /// What a number of few bits is.
    pub(super) fn whole(&mut self, number: u64) -> u64 {
        self.unwrap.as_mut().map_or(number, |unwrap| unwrap.whole(number))
    }

    /// Whether this mark is T0.
    pub(super) fn is_t0(&self, number: u64, time: u64) -> bool {
        (number, time) == (0, 0) && self.watched.as_ref().is_some_and(|watched| watched.handshake.has_t0())
    }

    /// T0 has come.
    pub(super) fn on_t0(&mut self) -> Option<Broken> {
        let watched = self.watched.as_mut()?;
        let breach = watched.handshake.t0().err()?;
        Some(watched.broken(breach, self.next))
    }

    /// The source returns, if it was there before, when others are at this number.
    pub(super) fn catch_up(&mut self, newest: u64) {
        if self.next > 0 {
            self.unwrap.iter_mut().for_each(|unwrap| unwrap.pass(newest));
            self.watched.iter_mut().for_each(|watched| watched.handshake.pass(newest));
        }
    }

    /// The number of the next fragment, if that says none.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
}

impl Watched {
    fn fragment(&mut self, head: &Head, next: u64) -> (Option<u64>, Option<Broken>) {
        let (number, breach) = self.handshake.fragment(head.number, head.time.map(|(begin, _)| begin));
        (number, breach.map(|breach| self.broken(breach, number.unwrap_or(next))))
    }

    fn broken(&mut self, breach: Breach, event: u64) -> Broken {
        self.breaches += 1;
        Broken { breach, event, count: self.breaches }
    }
}

impl Broken {
    /// What people are told of it.
    pub(super) fn told(&self, title: &str) -> Option<String> {
        let Self { breach, event, count } = self;
        match *count {
            ..=BREACHES_TOLD => Some(format!("{title}, event {event}: {breach}")),
            FIRST_UNTOLD => Some(format!("{title}: more breaches of the hand-shake are only counted")),
            _ => None,
        }
    }
}

/// So many breaches of a hand-shake by a source are told.
const BREACHES_TOLD: u64 = 8;
const FIRST_UNTOLD: u64 = BREACHES_TOLD + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_few_bits_are_whole_and_a_fragment_without_one_is_the_next() {
        let mut numbers = Numbers::new(Some(4), None);
        let said = [Some(13), Some(14), Some(15), Some(0), None, Some(2), Some(1)];
        let whole = said.map(|number| numbers.of_fragment(&head(number)));
        assert_eq!(whole, [13, 14, 15, 16, 17, 18, 17].map(|number| (Some(number), None)));
        // It follows the fragment that came last.
        assert_eq!((numbers.next(), numbers.whole(3)), (18, 19));
    }

    #[test]
    fn a_source_without_numbers_is_counted() {
        let mut numbers = Numbers::new(None, None);
        let counted: Vec<_> = (0..3).filter_map(|_| numbers.of_fragment(&head(None)).0).collect();
        assert_eq!(counted, [0, 1, 2]);
        let far = u64::MAX;
        assert_eq!(numbers.of_fragment(&head(Some(far))), (Some(far), None));
        assert_eq!(numbers.of_fragment(&head(None)), (Some(0), None));
    }

    /// Without the others, number 5 of 4 bits would be the fifth.
    #[test]
    fn only_who_returns_goes_on_where_the_others_are() {
        for mode in [None, Some(Mode::Eudet)] {
            let mut numbers = Numbers::new(Some(4), mode);
            numbers.catch_up(100);
            assert_eq!(numbers.of_fragment(&head(Some(1))), (Some(1), None));
            numbers.catch_up(100);
            assert_eq!(numbers.of_fragment(&head(Some(5))).0, Some(101), "{mode:?}");
        }
    }

    #[test]
    fn idle_marks_of_a_source_in_a_hand_shake_are_whole() {
        let mut numbers = Numbers::new(Some(15), Some(Mode::Eudet));
        for number in 0..40_000_u64 {
            assert_eq!(numbers.of_fragment(&head(Some(number & 0x7fff))), (Some(number), None));
        }
        assert_eq!(numbers.whole(40_001 & 0x7fff), 40_001);
    }

    #[test]
    fn a_breach_is_told_eight_times_and_then_counted() {
        let mut numbers = Numbers::new(Some(15), Some(Mode::Eudet));
        assert_eq!(numbers.of_fragment(&head(Some(0))), (Some(0), None));
        let mut told = Vec::new();
        for number in 1..=12 {
            let (taken_for, broken) = numbers.of_fragment(&head(None));
            let broken = broken.unwrap();
            assert_eq!((taken_for, broken.count), (Some(number), number));
            told.extend(broken.told("source a"));
        }
        assert_eq!(told.len(), 9, "{told:?}");
        assert!(told[..8].iter().zip(1..).all(|(text, event)| text.starts_with(&format!("source a, event {event}: "))));
        assert_eq!(told[8], "source a: more breaches of the hand-shake are only counted");
    }

    #[test]
    fn only_a_mark_of_nothing_is_t0_and_only_where_there_is_one() {
        let mut aida = Numbers::new(None, Some(Mode::Aida));
        assert!(aida.is_t0(0, 0) && !aida.is_t0(1, 0) && !aida.is_t0(0, 1));
        assert!(!Numbers::new(None, None).is_t0(0, 0) && !Numbers::new(None, Some(Mode::Eudet)).is_t0(0, 0));
        let (number, broken) = aida.of_fragment(&head(None));
        assert_eq!((number, broken), (None, Some(Broken { breach: Breach::BeforeT0, event: 0, count: 1 })));
        assert_eq!((aida.on_t0(), aida.next()), (None, 0));
        assert_eq!(aida.on_t0(), Some(Broken { breach: Breach::T0Again, event: 0, count: 2 }));
    }

    fn head(number: Option<u64>) -> Head {
        Head { number, ..Head::default() }
    }
}
