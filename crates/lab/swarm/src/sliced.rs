//! The bytes of slices: what stands around chunks, and what is found in a built event.

use base::bulk::{Bulk, PageSlice};
use base::ids::EventId;
use dataflow::message::BuiltEvent;
use dataflow::readout::ros::{Framing, TimedHead};
use timing::Interval;

/// A slice that was built.
#[derive(Clone, Debug)]
pub(super) struct BuiltSlice {
    pub(super) event: EventId,
    /// Of each ROB that has one.
    pub(super) fragments: Vec<SliceFragment>,
    /// ROBs whose fragments are flagged as missing.
    pub(super) missing: Vec<u32>,
    /// Bytes of the result of level 2.
    pub(super) result: usize,
}

/// What a slice has of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SliceFragment {
    pub(super) rob: u32,
    /// What its chunks are said to meet.
    pub(super) window: Interval,
    pub(super) status: u32,
    /// Its chunks, by their place among all that the source has sent.
    pub(super) chunks: Vec<u64>,
}

/// Stands in front of the chunks of an event.
#[derive(Debug)]
pub(super) struct Framed;

impl Framing for Framed {
    fn frame(&self, head: &TimedHead, chunks: Bulk) -> Bulk {
        let TimedHead { rob, event, interval, chunks: count, status } = *head;
        let words = [event.event.0, rob.into(), interval.begin, interval.end, count.into(), status.into()];
        bulk_of(&words).followed_by(chunks)
    }
}

/// The bytes of a chunk.
pub(super) fn chunk(rob: u32, time: Interval, place: u64) -> Bulk {
    bulk_of(&[rob.into(), place, time.begin, time.end])
}

impl BuiltSlice {
    /// What a built event is made of.
    ///
    /// # Panics
    /// If its bytes are not those of fragments of this event, or a ROB is in it twice.
    pub(super) fn of(built: &BuiltEvent) -> Self {
        let (results, fragments): (Vec<_>, Vec<_>) = built
            .bulk
            .slices()
            .iter()
            .map(PageSlice::as_bytes)
            .partition(|bytes| **bytes == [0; RESULT_BYTES as usize]);
        let (bytes, result) = (fragments.concat(), results.len() * RESULT_BYTES as usize);
        let words = bytes.chunks_exact(8);
        let mut words = words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let mut fragments = Vec::new();
        while let Some(event) = words.next() {
            assert_eq!(event, built.event.event.0, "a fragment of another event in {built:?}");
            fragments.push(fragment(|| words.next().expect("whole fragments")));
        }
        let robs = |fragment: &SliceFragment| fragment.rob;
        let mut all: Vec<u32> = fragments.iter().map(robs).chain(built.missing.iter().copied()).collect();
        all.sort_unstable();
        assert!(all.is_sorted_by(|one, other| one < other), "a ROB is there twice in {built:?}");
        Self { event: built.event.event, fragments, missing: built.missing.to_vec(), result }
    }
}

fn fragment(mut next: impl FnMut() -> u64) -> SliceFragment {
    let [rob, begin, end, count, status] = core::array::from_fn(|_| next());
    let mut chunk = || {
        let [of, place, _, _] = core::array::from_fn(|_| next());
        assert_eq!(of, rob, "a chunk of another source");
        place
    };
    let chunks = (0..count).map(|_| chunk()).collect();
    SliceFragment { rob: rob as u32, window: Interval { begin, end }, status: status as u32, chunks }
}

/// Bytes of the result of level 2, which are zeros.
pub(super) const RESULT_BYTES: u32 = 64;

fn bulk_of(words: &[u64]) -> Bulk {
    Bulk::Pages(PageSlice::from(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()))
}
