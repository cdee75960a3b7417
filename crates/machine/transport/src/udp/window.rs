//! Which messages of a sender were delivered.

/// The numbers of the messages delivered, exact for the newest [`WINDOW_MESSAGES`]; older ones count as delivered.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// One more than the newest number delivered; 0 before the first.
    end: u64,
    /// One bit per number, at the number modulo the length.
    delivered: Box<[u64; WORDS]>,
    /// The first number that came: what was sent before it is not ours to miss.
    counted_from: u64,
}

/// What is known of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It was not delivered.
    No,
    /// It was delivered.
    Delivered,
    /// It is too old to know, or has a number that no sender gets to.
    TooOld,
}

impl Default for Window {
    fn default() -> Self {
        Self { end: 0, delivered: Box::new([0; WORDS]), counted_from: 0 }
    }
}

impl Window {
    pub(super) fn knows(&self, number: u64) -> Known {
        if number == u64::MAX {
            // Nothing can come behind it: it would be new for ever.
            Known::TooOld
        } else if number >= self.end {
            Known::No
        } else if self.end - number > WINDOW_MESSAGES {
            Known::TooOld
        } else if self.has(number) {
            Known::Delivered
        } else {
            Known::No
        }
    }

    /// Notes a delivery; returns how many messages are known to be lost by it.
    pub(super) fn deliver(&mut self, number: u64) -> u64 {
        let lost = if number >= self.end { self.advance(number) } else { 0 };
        self.delivered[Self::word(number)] |= Self::bit(number);
        lost
    }

    /// Moves the end behind `number`; returns how many that were not delivered left the window.
    fn advance(&mut self, number: u64) -> u64 {
        let end = number + 1;
        if self.end == 0 {
            self.counted_from = number;
        }
        let mut lost = 0;
        if end - self.end >= WINDOW_MESSAGES {
            if self.end > 0 {
                let oldest = self.end.saturating_sub(WINDOW_MESSAGES).max(self.counted_from);
                let delivered: u64 = self.delivered.iter().map(|word| u64::from(word.count_ones())).sum();
                lost = (end - WINDOW_MESSAGES - oldest).saturating_sub(delivered);
            }
            self.delivered.fill(0);
        } else {
            for entering in self.end..end {
                let leaving = entering.checked_sub(WINDOW_MESSAGES).filter(|leaving| *leaving >= self.counted_from);
                lost += u64::from(leaving.is_some() && !self.has(entering));
                self.delivered[Self::word(entering)] &= !Self::bit(entering);
            }
        }
        self.end = end;
        lost
    }

    fn has(&self, number: u64) -> bool {
        self.delivered[Self::word(number)] & Self::bit(number) != 0
    }

    fn word(number: u64) -> usize {
        (number % WINDOW_MESSAGES / 64) as usize
    }

    fn bit(number: u64) -> u64 {
        1 << (number % 64)
    }
}

/// How far behind the newest a message may be and still be told from one that was delivered. A sender has less on the
/// way to one receiver under any sensible number of credits.
pub(super) const WINDOW_MESSAGES: u64 = 4096;

const WORDS: usize = (WINDOW_MESSAGES / 64) as usize;

#[cfg(test)]
mod tests {
    use super::{Known, WINDOW_MESSAGES, Window};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_message_that_is_overtaken_by_the_first_is_new() {
        let mut window = Window::default();
        assert_eq!(window.deliver(5), 0);
        assert_eq!((window.knows(4), window.knows(5), window.knows(6)), (Known::No, Known::Delivered, Known::No));
        assert_eq!(window.deliver(5 + WINDOW_MESSAGES), 0);
        assert_eq!(window.knows(5), Known::TooOld);
        assert_eq!(window.deliver(6 + 2 * WINDOW_MESSAGES), WINDOW_MESSAGES);
        assert_eq!(window.deliver(u64::MAX - 1), u64::MAX - 8 - 2 * WINDOW_MESSAGES);
        assert_eq!((window.knows(u64::MAX - 1), window.knows(u64::MAX)), (Known::Delivered, Known::TooOld));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn the_window_agrees_with_a_set(steps in prop::collection::vec((0_u64..12_000, 0_u64..6000), 1..200)) {
            let (mut window, mut set, mut lost) = (Window::default(), BTreeSet::new(), 0);
            let (mut newest, mut first) = (0_u64, None);
            for (forward, back) in steps {
                let number = (newest + forward % 160 * (forward / 160 % 3)).saturating_sub(back / 30 * (back % 2));
                let known = window.knows(number);
                let expected = match () {
                    () if !set.is_empty() && newest + 1 - number.min(newest) > WINDOW_MESSAGES => Known::TooOld,
                    () if set.contains(&number) => Known::Delivered,
                    () => Known::No,
                };
                prop_assert_eq!(known, expected);
                if known == Known::No {
                    lost += window.deliver(number);
                    set.insert(number);
                    first.get_or_insert(number);
                    newest = newest.max(number);
                }
            }
            let first = first.unwrap();
            let left = first..(newest + 1).saturating_sub(WINDOW_MESSAGES).max(first);
            prop_assert_eq!(lost, left.filter(|number| !set.contains(number)).count() as u64);
        }
    }
}
