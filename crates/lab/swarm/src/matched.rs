//! What a built event has of sources whose data belong to it by time, or by count.

use base::bulk::PageSlice;
use base::ids::EventId;
use timing::Interval;

/// A built event.
#[derive(Clone, Debug)]
pub(super) struct BuiltMatch {
    pub(super) event: EventId,
    /// Of each ROB that has one.
    pub(super) fragments: Vec<MatchedFragment>,
    /// ROBs whose fragments are flagged as missing.
    pub(super) missing: Vec<u32>,
}

/// What it has of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MatchedFragment {
    pub(super) rob: u32,
    /// What its chunks are said to meet.
    pub(super) window: Interval,
    pub(super) status: u32,
    pub(super) chunks: Vec<Chunk>,
}

/// One of its chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// By the clock of the world.
    pub(super) truth: Interval,
    /// As in [`Handed`](simulator::world::Handed).
    pub(super) place: u64,
}

impl MatchedFragment {
    /// Whether this begins a fragment of matched data: no other bytes of the world are as long.
    pub(super) fn begins(head: &PageSlice) -> bool {
        head.as_bytes().len() == HEAD_BYTES
    }

    /// The fragment that begins with this.
    ///
    /// # Panics
    /// If it is not of this event, or has chunks of another source.
    pub(super) fn of(event: EventId, head: &PageSlice, mut next: impl FnMut() -> PageSlice) -> Self {
        let [of, rob, begin, end, count, status]: [u64; 6] = words(head);
        assert_eq!(of, event.0, "a fragment of another event");
        let mut chunk = || {
            let [of, place, begin, end]: [u64; 4] = words(&next());
            assert_eq!(of, rob, "a chunk of another source in {event}");
            Chunk { truth: Interval { begin, end }, place }
        };
        let chunks = (0..count).map(|_| chunk()).collect();
        Self { rob: rob as u32, window: Interval { begin, end }, status: status as u32, chunks }
    }
}

fn words<const COUNT: usize>(bytes: &PageSlice) -> [u64; COUNT] {
    let bytes = bytes.as_bytes();
    assert_eq!(bytes.len(), COUNT * 8, "whole words");
    core::array::from_fn(|word| u64::from_le_bytes(*bytes[word * 8..].first_chunk().expect("whole words")))
}

/// See [`Framed`](super::sliced::Framed).
const HEAD_BYTES: usize = 48;
