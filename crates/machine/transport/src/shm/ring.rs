//! The ring of frames: positions on either side of it.
//!
//! A record is contiguous. The low half of its first word is its length in bytes, a multiple of eight. A first word
//! of zero says that the rest of the ring up to its end is skipped. Positions count bytes from the beginning of the
//! stream and never wrap.

use super::lane::{Lane, OwnLane};
use crate::violation::Violation;

/// The writer's place in its own ring.
#[derive(Debug, Default)]
pub(super) struct Producer {
    written: u64,
    published: u64,
    consumed: u64,
}

impl Producer {
    /// Takes room for a record; `None` if there is none now.
    pub(super) fn reserve(&mut self, own: &OwnLane, peer: &Lane, len: usize) -> Result<Option<u64>, Violation> {
        let ring_bytes = own.lane().geometry().ring_bytes as u64;
        let len = len as u64;
        let to_end = ring_bytes - self.written % ring_bytes;
        let skipped = if len > to_end { to_end } else { 0 };
        let needed = self.written + skipped + len;
        if needed - self.consumed > ring_bytes {
            self.look(peer)?;
            if needed - self.consumed > ring_bytes {
                return Ok(None);
            }
        }
        if skipped > 0 {
            own.set_ring_word(self.written, SKIP);
        }
        self.written = needed;
        Ok(Some(needed - len))
    }

    /// Shows the peer what was written; false if it has seen all.
    pub(super) fn publish(&mut self, own: &OwnLane) -> bool {
        let has_more = self.has_unpublished();
        if has_more {
            own.set_produced(self.written);
            self.published = self.written;
        }
        has_more
    }

    pub(super) fn has_unpublished(&self) -> bool {
        self.written != self.published
    }

    /// Whether the peer has made room since we last looked.
    pub(super) fn has_news(&self, peer: &Lane) -> bool {
        peer.consumed() != self.consumed
    }

    fn look(&mut self, peer: &Lane) -> Result<(), Violation> {
        let found = peer.consumed();
        if !(self.consumed..=self.published).contains(&found) || !found.is_multiple_of(8) {
            return Err(Violation::Counter { what: "bytes taken", before: self.consumed, found });
        }
        self.consumed = found;
        Ok(())
    }
}

/// The reader's place in the peer's ring.
#[derive(Debug, Default)]
pub(super) struct Consumer {
    taken: u64,
}

/// A record that was found; nothing in it is checked but its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) position: u64,
    pub(super) len: u64,
    /// The high half of its first word.
    pub(super) tag: u32,
}

impl Consumer {
    /// How far the peer has written.
    pub(super) fn look(&self, peer: &Lane) -> Result<u64, Violation> {
        let found = peer.produced();
        let waiting = found.wrapping_sub(self.taken);
        if waiting > peer.geometry().ring_bytes as u64 || !found.is_multiple_of(8) {
            return Err(Violation::Counter { what: "bytes written", before: self.taken, found });
        }
        Ok(found)
    }

    /// Whether the peer has written something.
    pub(super) fn has_news(&self, peer: &Lane) -> bool {
        peer.produced() != self.taken
    }

    /// The next record before `end`, which [`look`](Self::look) gave.
    pub(super) fn next(&mut self, peer: &Lane, end: u64) -> Result<Option<Record>, Violation> {
        let ring_bytes = peer.geometry().ring_bytes as u64;
        loop {
            if self.taken == end {
                return Ok(None);
            }
            let position = self.taken;
            let (waiting, to_end) = (end - position, ring_bytes - position % ring_bytes);
            let first = peer.ring_word(position);
            if first == SKIP && to_end < waiting {
                self.taken += to_end;
                continue;
            }
            let (len, tag) = (first & 0xffff_ffff, (first >> 32) as u32);
            if len < RECORD_LEN_MIN || !len.is_multiple_of(8) || len > waiting.min(to_end) {
                return Err(Violation::Record { position });
            }
            return Ok(Some(Record { position, len, tag }));
        }
    }

    /// Goes on behind a record.
    pub(super) fn advance(&mut self, record: Record) {
        self.taken = record.position + record.len;
    }

    /// Gives the room of all records taken back to the peer.
    pub(super) fn publish(&self, own: &OwnLane) {
        own.set_consumed(self.taken);
    }
}

/// The two words that each record begins with.
pub(super) const RECORD_LEN_MIN: u64 = 16;
const SKIP: u64 = 0;

#[cfg(test)]
mod tests {
    use super::{Consumer, Producer, Violation};
    use crate::shm::lane::{Geometry, Lane, OwnLane};
    use proptest::prelude::*;

    const GEOMETRY: Geometry = Geometry { ring_bytes: 4096, tickets: 8 };

    fn lanes() -> (OwnLane, OwnLane) {
        let lane = || OwnLane::new(Lane::in_process(GEOMETRY));
        (lane(), lane())
    }

    /// Writes a record of these many payload words; whether there was room.
    fn write(producer: &mut Producer, own: &OwnLane, peer: &Lane, words: u64, seed: u64) -> bool {
        let len = 16 + 8 * words;
        let Some(position) = producer.reserve(own, peer, len as usize).unwrap() else { return false };
        own.set_ring_word(position, len | seed << 32);
        own.set_ring_word(position + 8, words);
        let bytes: Vec<u8> = (0..8 * words).map(|index| (index + seed) as u8).collect();
        own.copy_to_ring(position + 16, &bytes);
        true
    }

    /// Reads the next record and checks it against its own seed; `None` if there is none.
    fn read(consumer: &mut Consumer, peer: &Lane) -> Option<(u64, u64)> {
        let end = consumer.look(peer).unwrap();
        let record = consumer.next(peer, end).unwrap()?;
        let (words, seed) = (peer.ring_word(record.position + 8), u64::from(record.tag));
        let mut bytes = vec![0; record.len as usize - 16];
        peer.copy_from_ring(record.position + 16, &mut bytes);
        assert!(bytes.iter().zip(0_u64..).all(|(byte, index)| *byte == (index + seed) as u8));
        consumer.advance(record);
        Some((words, seed))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 256 }))]
        #[test]
        fn records_come_out_in_order_whatever_is_published_when(
            lens in prop::collection::vec(0_u64..120, 1..200),
            steps in prop::collection::vec(0_u8..4, 1..20),
        ) {
            let (own, peer) = lanes();
            let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
            let (mut sent, mut received) = (0, 0);
            let mut steps = steps.iter().cycle();
            let mut turns = 0;
            while received < lens.len() {
                turns += 1;
                // Each kind of step comes round, whatever was drawn.
                let step = if turns % 7 == 0 { (turns / 7 % 4) as u8 } else { *steps.next().unwrap() };
                match step {
                    0 if sent < lens.len() => {
                        sent += usize::from(write(&mut producer, &own, peer.lane(), lens[sent], sent as u64));
                    }
                    1 => { producer.publish(&own); }
                    2 => while let Some((words, seed)) = read(&mut consumer, own.lane()) {
                        prop_assert_eq!((words, seed), (lens[received], received as u64));
                        received += 1;
                    },
                    _ => consumer.publish(&peer),
                }
            }
        }
    }

    #[test]
    fn two_threads_pass_records_and_room() {
        let count = if cfg!(miri) { 60 } else { 100_000 };
        let (own, peer) = lanes();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut producer = Producer::default();
                for seed in 0..count {
                    while !write(&mut producer, &own, peer.lane(), seed % 100, seed) {
                        producer.publish(&own);
                        std::thread::yield_now();
                    }
                    if seed % 3 == 0 {
                        producer.publish(&own);
                    }
                }
                producer.publish(&own);
            });
            let mut consumer = Consumer::default();
            for seed in 0..count {
                let record = loop {
                    match read(&mut consumer, own.lane()) {
                        Some(record) => break record,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(record, (seed % 100, seed));
                consumer.publish(&peer);
            }
        });
    }

    #[test]
    fn impossible_counters_and_records_are_violations() {
        let (own, peer) = lanes();
        let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
        for found in [7, 4104, u64::MAX - 7] {
            own.set_produced(found);
            assert_eq!(consumer.look(own.lane()), Err(Violation::Counter { what: "bytes written", before: 0, found }));
        }
        for first in [0, 8, 17, 24, u64::from(u32::MAX), 4104] {
            own.set_ring_word(0, first);
            own.set_produced(16);
            assert_eq!(consumer.next(own.lane(), 16), Err(Violation::Record { position: 0 }), "{first}");
        }
        own.set_ring_word(0, 16);
        assert!(consumer.next(own.lane(), 16).unwrap().is_some());
        while write(&mut producer, &own, peer.lane(), 10, 0) {}
        producer.publish(&own);
        peer.set_consumed(4096 + 8);
        assert!(matches!(producer.reserve(&own, peer.lane(), 96), Err(Violation::Counter { .. })));
    }
}
