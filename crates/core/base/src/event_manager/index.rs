//! The hash index of the event manager: from event number to slot, for the events that are not in their home slot.

use alloc::boxed::Box;
use alloc::vec;

use crate::ids::EventId;

/// A slot of the event manager.
pub(super) type SlotNumber = u32;

/// Open addressing in buckets of one cache line, at most half full; an entry that finds its bucket full goes to the
/// next.
///
/// An entry is a tag (32 bits of a hash over all 64 of the event number) and a slot number. The bucket where the search
/// for an entry begins, its home, follows from the tag alone. So neither a search nor a removal touches the slots of
/// other events. A removal moves entries back that had to give way (no tombstones). So the cost of a search depends on
/// what is in the index, not on history.
pub(super) struct Index {
    buckets: Box<[Bucket]>,
    len: usize,
}

/// What a search found.
pub(super) enum Probe {
    /// The event.
    Found(Entry),
    /// The event is not there; its entry would go to this bucket.
    Vacant(usize),
}

/// Where the entry of an event is, and what it holds.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    bucket: usize,
    lane: usize,
    /// Where the fragment is.
    pub(super) slot: SlotNumber,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Bucket {
    tags: [u32; LANES],
    slots: [SlotNumber; LANES],
}

impl Index {
    pub(super) const ENTRY_BYTES: usize = size_of::<Bucket>() / LANES;
    pub(super) const ENTRIES_PER_EVENT: usize = 2;

    pub(super) fn new(capacity: usize) -> Self {
        let buckets = (capacity * Self::ENTRIES_PER_EVENT).div_ceil(LANES).max(1);
        let vacant = Bucket { tags: [VACANT; LANES], slots: [SlotNumber::MAX; LANES] };
        Self { buckets: vec![vacant; buckets].into_boxed_slice(), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    #[inline]
    pub(super) fn tag(id: EventId) -> u32 {
        (hash(id) as u32).max(VACANT + 1)
    }

    /// Searches for the entry with this tag of which `is_wanted` says that its slot is the right one.
    #[inline]
    pub(super) fn probe(&self, tag: u32, is_wanted: impl Fn(SlotNumber) -> bool) -> Probe {
        let mut bucket = self.home(tag);
        loop {
            let content = &self.buckets[bucket];
            for lane in content.lanes_with(tag) {
                let slot = content.slots[lane];
                if is_wanted(slot) {
                    return Probe::Found(Entry { bucket, lane, slot });
                }
            }
            if !content.is_full() {
                return Probe::Vacant(bucket);
            }
            bucket = self.after(bucket);
        }
    }

    /// Adds an entry to the bucket that [`Index::probe`] gave.
    #[inline]
    pub(super) fn put(&mut self, bucket: usize, tag: u32, slot: SlotNumber) {
        let content = &mut self.buckets[bucket];
        let lane = content.lanes_with(VACANT).next().expect("a vacant lane where the search ended");
        content.tags[lane] = tag;
        content.slots[lane] = slot;
        self.len += 1;
    }

    /// Removes an entry. No search may end before an entry that had to give way, so a gap in a full bucket is closed.
    #[inline]
    pub(super) fn remove(&mut self, entry: Entry) {
        let was_full = self.buckets[entry.bucket].is_full();
        self.buckets[entry.bucket].tags[entry.lane] = VACANT;
        self.len -= 1;
        if was_full {
            self.close_gap(entry.bucket, entry.lane);
        }
    }

    /// Checks that every entry is found from its home, and passes its tag and slot on.
    pub(super) fn check(&self, mut each: impl FnMut(u32, SlotNumber)) {
        let mut len = 0;
        for (bucket, content) in self.buckets.iter().enumerate() {
            for (tag, slot) in content.entries() {
                let mut way = self.home(tag);
                while way != bucket {
                    assert!(self.buckets[way].is_full(), "a gap between an entry and its home");
                    way = self.after(way);
                }
                each(tag, slot);
                len += 1;
            }
        }
        assert_eq!(len, self.len, "entries in the index");
        assert!(len < self.buckets.len() * LANES, "a full index");
    }

    /// How many buckets the search for each entry visits.
    #[cfg(test)]
    pub(super) fn search_lengths(&self) -> impl Iterator<Item = usize> {
        self.buckets.iter().enumerate().flat_map(move |(bucket, content)| {
            content.entries().map(move |(tag, _)| 1 + self.distance(self.home(tag), bucket))
        })
    }

    #[cold]
    fn close_gap(&mut self, mut gap: usize, mut gap_lane: usize) {
        let mut bucket = gap;
        loop {
            bucket = self.after(bucket);
            let content = self.buckets[bucket];
            let reach = self.distance(gap, bucket);
            let gave_way = |lane: &usize| {
                content.tags[*lane] != VACANT && self.distance(self.home(content.tags[*lane]), bucket) >= reach
            };
            if let Some(lane) = (0..LANES).find(gave_way) {
                self.buckets[gap].tags[gap_lane] = content.tags[lane];
                self.buckets[gap].slots[gap_lane] = content.slots[lane];
                self.buckets[bucket].tags[lane] = VACANT;
                (gap, gap_lane) = (bucket, lane);
            }
            if !content.is_full() {
                break;
            }
        }
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.buckets.len() as u64) >> u32::BITS) as usize
    }

    fn after(&self, bucket: usize) -> usize {
        let next = bucket + 1;
        if next == self.buckets.len() { 0 } else { next }
    }

    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.buckets.len() - from }
    }
}

/// Folded multiplication: every bit of the event number acts on every bit of the result.
#[inline]
pub(super) fn hash(id: EventId) -> u64 {
    let product = u128::from(id.0 ^ HASH_OFFSET) * u128::from(HASH_FACTOR);
    (product >> 64) as u64 ^ product as u64
}

impl Bucket {
    #[inline]
    fn lanes_with(&self, tag: u32) -> impl Iterator<Item = usize> + use<> {
        let mut matches = u64::from_le_bytes(self.tags.map(|other| u8::from(other == tag)));
        core::iter::from_fn(move || {
            let lane = matches.trailing_zeros() as usize / 8;
            matches &= matches.wrapping_sub(1);
            (lane < LANES).then_some(lane)
        })
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.lanes_with(VACANT).next().is_none()
    }

    fn entries(&self) -> impl Iterator<Item = (u32, SlotNumber)> {
        self.tags.into_iter().zip(self.slots).filter(|&(tag, _)| tag != VACANT)
    }
}

const LANES: usize = 8;

/// The tag of a lane without an entry.
const VACANT: u32 = 0;

const HASH_OFFSET: u64 = 0x243f_6a88_85a3_08d3;
const HASH_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
