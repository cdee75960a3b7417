//! Whose pages are out, until they are home again.

use super::lane::Lane;
use crate::violation::Violation;
use base::bulk::PageSlice;

/// The slices that a peer reads, by ticket.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    lent: Vec<Option<PageSlice>>,
    free: Vec<u32>,
    tickets_max: usize,
    out: usize,
    /// How many tickets were ever taken back.
    taken: u64,
    /// Whether the peer reads no more: what it says of tickets is of no meaning now.
    is_over: bool,
}

impl Ledger {
    pub(super) fn new(tickets_max: usize) -> Self {
        Self { tickets_max, ..Self::default() }
    }

    /// Whether this many more slices can be lent.
    pub(super) fn has_room(&self, count: usize) -> bool {
        self.out + count <= self.tickets_max
    }

    /// Holds a slice; the ticket for it.
    pub(super) fn lend(&mut self, slice: PageSlice) -> u64 {
        assert!(self.has_room(1), "room was asked for");
        self.out += 1;
        let ticket = self.free.pop().unwrap_or_else(|| {
            self.lent.push(None);
            u32::try_from(self.lent.len() - 1).expect("fewer tickets than 2^32")
        });
        self.lent[ticket as usize] = Some(slice);
        ticket.into()
    }

    /// Whether tickets have come back that were not taken.
    pub(super) fn has_news(&self, peer: &Lane) -> bool {
        !self.is_over && peer.returned() != self.taken
    }

    /// Takes back the tickets that have come back.
    pub(super) fn settle(&mut self, peer: &Lane) -> Result<(), Violation> {
        if self.is_over {
            return Ok(());
        }
        let found = peer.returned();
        if found.wrapping_sub(self.taken) > self.out as u64 {
            return Err(Violation::Counter { what: "tickets returned", before: self.taken, found });
        }
        while self.taken != found {
            let ticket = peer.ticket(self.taken);
            let slot = usize::try_from(ticket).ok().and_then(|index| self.lent.get_mut(index));
            let slice = slot.and_then(Option::take).ok_or(Violation::Ticket { ticket })?;
            drop(slice);
            self.free.push(ticket as u32);
            self.out -= 1;
            self.taken += 1;
        }
        Ok(())
    }

    /// Whether nothing is out.
    pub(super) fn is_empty(&self) -> bool {
        self.out == 0
    }

    /// Takes everything back: the peer reads no more.
    pub(super) fn clear(&mut self) {
        self.lent.clear();
        self.free.clear();
        self.out = 0;
        self.is_over = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{Ledger, Violation};
    use crate::shm::lane::{Geometry, Lane, OwnLane};
    use base::bulk::PageSlice;

    #[test]
    fn tickets_come_back_once() {
        let peer = OwnLane::new(Lane::in_process(Geometry { ring_bytes: 4096, tickets: 4 }));
        let mut ledger = Ledger::new(4);
        let slice = || PageSlice::from_static(b"page");
        for round in 0..10 {
            let tickets = [ledger.lend(slice()), ledger.lend(slice())];
            assert!(!ledger.has_room(3));
            for (index, ticket) in tickets.into_iter().enumerate() {
                peer.set_ticket(2 * round + index as u64, ticket);
                peer.set_returned(2 * round + index as u64 + 1);
            }
            assert!(ledger.has_news(peer.lane()));
            ledger.settle(peer.lane()).unwrap();
            assert!(ledger.is_empty() && !ledger.has_news(peer.lane()));
        }
        peer.set_returned(21);
        assert!(matches!(ledger.settle(peer.lane()), Err(Violation::Counter { before: 20, found: 21, .. })));
        ledger.lend(slice());
        peer.set_ticket(20, 77);
        assert_eq!(ledger.settle(peer.lane()), Err(Violation::Ticket { ticket: 77 }));
    }

    #[test]
    fn tickets_of_a_peer_that_has_ended_are_no_news() {
        let peer = OwnLane::new(Lane::in_process(Geometry { ring_bytes: 4096, tickets: 4 }));
        let mut ledger = Ledger::new(4);
        let ticket = ledger.lend(PageSlice::from_static(b"page"));
        peer.set_ticket(0, ticket);
        peer.set_returned(1);
        ledger.clear();
        assert!(ledger.is_empty() && !ledger.has_news(peer.lane()));
        assert_eq!(ledger.settle(peer.lane()), Ok(()));
    }
}
