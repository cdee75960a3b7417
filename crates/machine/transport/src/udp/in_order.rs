//! What has come of a peer whose messages are acknowledged: each is delivered once, in order.

use super::acknowledged::MESSAGES_UNDER_WAY_MAX;
use super::window::Known;
use base::bulk::PageSlice;
use std::collections::BTreeMap;

/// Messages that have come, and wait for earlier ones.
#[derive(Debug)]
pub(super) struct InOrder {
    /// All below were delivered, or given up by their sender.
    next: u64,
    /// No more than a sender may have under way. They are copies: pages that wait here could be those that the missing message
    /// needs to arrive in.
    held: BTreeMap<u64, PageSlice>,
    held_bytes: usize,
    held_bytes_max: usize,
}

impl InOrder {
    pub(super) fn new(held_bytes_max: usize) -> Self {
        Self { next: 0, held: BTreeMap::new(), held_bytes: 0, held_bytes_max }
    }

    /// Begins anew, with a peer that does.
    pub(super) fn restart(&mut self) {
        *self = Self::new(self.held_bytes_max);
    }

    pub(super) fn knows(&self, number: u64) -> Known {
        if number < self.next || self.held.contains_key(&number) {
            Known::Delivered
        } else if number - self.next >= MESSAGES_UNDER_WAY_MAX || number == u64::MAX {
            // No sender of ours is that far ahead, and nothing can come behind the last number.
            Known::TooOld
        } else {
            Known::No
        }
    }

    /// Takes a message that was not known; `deliver` gets what is in order now.
    pub(super) fn take(&mut self, number: u64, bytes: PageSlice, deliver: &mut impl FnMut(PageSlice)) {
        if number != self.next {
            // What does not fit is not acknowledged, and comes again.
            if self.held_bytes + bytes.len() <= self.held_bytes_max {
                self.held_bytes += bytes.len();
                self.held.insert(number, PageSlice::copy_of(bytes.as_bytes()));
            }
            return;
        }
        deliver(bytes);
        self.next += 1;
        self.deliver_held(deliver);
    }

    /// Does not wait for messages below `end`; returns how many are missing for good.
    pub(super) fn skip_to(&mut self, end: u64, deliver: &mut impl FnMut(PageSlice)) -> u64 {
        let mut missing = end.saturating_sub(self.next);
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() < end) {
            missing -= 1;
            let bytes = entry.remove();
            self.held_bytes -= bytes.len();
            deliver(bytes);
        }
        self.next = self.next.max(end);
        self.deliver_held(deliver);
        missing
    }

    /// The first that was not delivered, and of the 64 behind it which have come: a bit for each.
    pub(super) fn acknowledgement(&self) -> (u64, u64) {
        let beyond = self.held.keys().map(|number| number - self.next - 1).take_while(|bit| *bit < u64::BITS.into());
        (self.next, beyond.fold(0, |bits, bit| bits | 1 << bit))
    }

    fn deliver_held(&mut self, deliver: &mut impl FnMut(PageSlice)) {
        while let Some(entry) = self.held.first_entry().filter(|entry| *entry.key() == self.next) {
            let bytes = entry.remove();
            self.held_bytes -= bytes.len();
            deliver(bytes);
            self.next += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(number: u64) -> PageSlice {
        PageSlice::from(number.to_le_bytes().to_vec())
    }

    fn number_of(slice: &PageSlice) -> u64 {
        u64::from_le_bytes(*slice.as_bytes().first_chunk().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn any_order_with_repetitions_is_delivered_in_order(
            order in prop::collection::vec(0_u64..80, 1..300), given_up in 0_u64..80,
        ) {
            let (mut table, mut delivered, mut came) = (InOrder::new(usize::MAX), Vec::new(), std::collections::BTreeSet::new());
            for number in order {
                let is_news = came.insert(number);
                prop_assert_eq!(table.knows(number) == Known::No, is_news);
                if is_news {
                    table.take(number, bytes(number), &mut |slice| delivered.push(number_of(&slice)));
                }
                let (end, beyond) = table.acknowledgement();
                prop_assert_eq!(end, (0..).find(|number| !came.contains(number)).unwrap());
                for bit in 0..64 {
                    prop_assert_eq!(beyond & 1 << bit != 0, came.contains(&(end + 1 + bit)));
                }
            }
            let missing = (0..given_up).filter(|number| !came.contains(number)).count() as u64;
            let lost = table.skip_to(given_up, &mut |slice| delivered.push(number_of(&slice)));
            prop_assert_eq!(lost, missing);
            let expected: Vec<u64> = came.into_iter().filter(|number| *number < table.next).collect();
            prop_assert_eq!(delivered, expected);
            prop_assert!(table.next >= given_up);
        }
    }

    #[test]
    fn what_is_too_far_ahead_is_refused() {
        let table = InOrder::new(usize::MAX);
        assert_eq!(table.knows(MESSAGES_UNDER_WAY_MAX), Known::TooOld);
        assert_eq!(table.knows(u64::MAX), Known::TooOld);
        assert_eq!(table.knows(MESSAGES_UNDER_WAY_MAX - 1), Known::No);
    }

    #[test]
    fn the_last_number_is_never_taken() {
        let (mut table, mut delivered) = (InOrder::new(usize::MAX), 0);
        table.skip_to(u64::MAX - 2, &mut |_| delivered += 1);
        assert_eq!((table.knows(u64::MAX - 1), table.knows(u64::MAX)), (Known::No, Known::TooOld));
        table.take(u64::MAX - 1, bytes(1), &mut |_| delivered += 1);
        table.take(u64::MAX - 2, bytes(0), &mut |_| delivered += 1);
        assert_eq!((delivered, table.acknowledgement(), table.knows(u64::MAX)), (2, (u64::MAX, 0), Known::TooOld));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let (mut table, mut delivered) = (InOrder::new(20), 0);
        for number in [1, 2, 3] {
            table.take(number, bytes(number), &mut |_| delivered += 1);
        }
        assert_eq!((table.acknowledgement(), table.held_bytes), ((0, 0b11), 16));
        table.take(0, bytes(0), &mut |_| delivered += 1);
        assert_eq!((delivered, table.acknowledgement(), table.held_bytes), (3, (3, 0), 0));
    }

    #[test]
    fn a_sender_that_gives_everything_up_costs_no_time() {
        let (mut table, mut delivered) = (InOrder::new(usize::MAX), 0);
        table.take(5, bytes(5), &mut |_| delivered += 1);
        assert_eq!(table.skip_to(u64::MAX, &mut |_| delivered += 1), u64::MAX - 1);
        assert_eq!((delivered, table.acknowledgement()), (1, (u64::MAX, 0)));
    }
}
