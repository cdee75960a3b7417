//! What one side of a link writes and the other reads.

use crate::shared_memory::Region;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::Arc;

/// Sizes of the two rings, powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) ring_bytes: usize,
    pub(super) tickets: usize,
}

impl Geometry {
    pub(super) fn is_legal(self) -> bool {
        let Self { ring_bytes, tickets } = self;
        ring_bytes.is_power_of_two()
            && tickets.is_power_of_two()
            && (RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring_bytes)
            && (1..=TICKETS_MAX).contains(&tickets)
    }

    /// Length of the lane whose ring of frames is ours and whose ring of tickets is for those of the peer.
    pub(super) fn lane_len(self) -> usize {
        HEADER_LEN + self.ring_bytes + self.tickets * size_of::<u64>()
    }

    /// The longest record in bytes: some fit in the ring at a time, so that filling and emptying overlap.
    pub(super) fn record_max(self) -> usize {
        self.ring_bytes / 4
    }

    /// The most bytes of a frame that lie in the ring themselves.
    pub(super) fn inline_max(self) -> usize {
        self.ring_bytes / 8
    }
}

/// The lane of either side, to be read. All words are read whole; bytes are copied.
#[derive(Clone)]
pub(super) struct Lane {
    start: NonNull<u8>,
    geometry: Geometry,
    /// Keeps the memory.
    _memory: Arc<dyn Send + Sync>,
}

// SAFETY: `start` points into `_memory`, which is tied to no thread; all access is atomic or of bytes that the counters give to
// one side.
unsafe impl Send for Lane {}
// SAFETY: as above.
unsafe impl Sync for Lane {}

impl Lane {
    pub(super) fn of_region(region: Region, geometry: Geometry) -> Self {
        assert!(geometry.is_legal() && region.len() >= geometry.lane_len(), "a lane fits in its memory");
        Self { start: region.start(), geometry, _memory: Arc::new(region) }
    }

    #[cfg(test)]
    pub(super) fn in_process(geometry: Geometry) -> Self {
        let mapping = crate::mapping::Mapping::new(geometry.lane_len(), false).unwrap();
        Self { start: mapping.start(), geometry, _memory: Arc::new(mapping) }
    }

    pub(super) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// How many bytes were ever put into the ring.
    pub(super) fn produced(&self) -> u64 {
        self.load(PRODUCED)
    }

    /// How many bytes were ever taken out of the other side's ring.
    pub(super) fn consumed(&self) -> u64 {
        self.load(CONSUMED)
    }

    /// How many tickets of the other side were ever given back.
    pub(super) fn returned(&self) -> u64 {
        self.load(RETURNED)
    }

    /// Whether its writer waits for room or tickets.
    pub(super) fn is_waiting(&self) -> bool {
        self.load(WAITING) != 0
    }

    /// Whether its writer has closed the link.
    pub(super) fn is_closed(&self) -> bool {
        self.load(CLOSED) != 0
    }

    /// A ticket of the other side.
    pub(super) fn ticket(&self, index: u64) -> u64 {
        self.word(self.ticket_place(index)).load(Ordering::Relaxed)
    }

    /// The word of the ring that holds this byte.
    #[inline]
    pub(super) fn ring_word(&self, position: u64) -> u64 {
        self.word_of_ring(position).load(Ordering::Relaxed)
    }

    /// Bytes of the ring that do not cross its end.
    pub(super) fn copy_from_ring(&self, position: u64, to: &mut [u8]) {
        let from = self.ring_bytes_at(position, to.len());
        // SAFETY: inside the memory; `to` is elsewhere. An honest writer leaves these bytes alone until they are consumed;
        // what another one leaves in `to` is checked like all that it says.
        unsafe { core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    }

    #[inline]
    fn ring_bytes_at(&self, position: u64, len: usize) -> *mut u8 {
        let place = self.ring_place(position);
        assert!(len <= HEADER_LEN + self.geometry.ring_bytes - place, "bytes that do not cross the end of the ring");
        // SAFETY: inside the memory, as asserted.
        unsafe { self.start.as_ptr().add(place) }
    }

    fn ring_place(&self, position: u64) -> usize {
        HEADER_LEN + (position as usize & (self.geometry.ring_bytes - 1))
    }

    fn ticket_place(&self, index: u64) -> usize {
        let slot = index as usize & (self.geometry.tickets - 1);
        HEADER_LEN + self.geometry.ring_bytes + slot * size_of::<u64>()
    }

    /// Acquires what was written before the word. Of memory that is mapped read-only, only relaxed loads are certain to be mere
    /// reads.
    fn load(&self, place: usize) -> u64 {
        let value = self.word(place).load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        value
    }

    /// Wherever the position is, without a comparison: this is done several times for every frame.
    #[inline]
    fn word_of_ring(&self, position: u64) -> &AtomicU64 {
        let place = HEADER_LEN + (position as usize & (self.geometry.ring_bytes - 8));
        // SAFETY: the length of the ring is a power of two of at least a kernel page (asserted when the lane was made). So the
        // place is a multiple of eight and inside the memory; otherwise as in `word`.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(place).cast()) }
    }

    fn word(&self, place: usize) -> &AtomicU64 {
        assert!(place.is_multiple_of(8) && place < self.geometry.lane_len(), "a word of the lane");
        // SAFETY: inside the memory and aligned, as asserted (the memory is aligned to kernel pages); initialised; alive as
        // long as `self`. Other processes access it as an atomic too, and this one never writes what it mapped read-only.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().add(place).cast()) }
    }
}

/// The lane of this side, to be written.
pub(super) struct OwnLane(Lane);

impl OwnLane {
    /// The memory must be writable, and no other `OwnLane` of it may exist.
    pub(super) fn new(lane: Lane) -> Self {
        Self(lane)
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.0
    }

    pub(super) fn set_produced(&self, bytes: u64) {
        self.store(PRODUCED, bytes);
    }

    pub(super) fn set_consumed(&self, bytes: u64) {
        self.store(CONSUMED, bytes);
    }

    pub(super) fn set_returned(&self, tickets: u64) {
        self.store(RETURNED, tickets);
    }

    pub(super) fn set_waiting(&self, is_waiting: bool) {
        self.store(WAITING, is_waiting.into());
    }

    pub(super) fn close(&self) {
        self.store(CLOSED, 1);
    }

    pub(super) fn set_ticket(&self, index: u64, ticket: u64) {
        self.0.word(self.0.ticket_place(index)).store(ticket, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn set_ring_word(&self, position: u64, word: u64) {
        self.0.word_of_ring(position).store(word, Ordering::Relaxed);
    }

    /// Writes bytes of the ring that are not published and do not cross its end.
    pub(super) fn copy_to_ring(&self, position: u64, bytes: &[u8]) {
        let to = self.0.ring_bytes_at(position, bytes.len());
        // SAFETY: inside the memory; `bytes` are elsewhere. The reader looks at them after they are published only.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn store(&self, place: usize, value: u64) {
        self.0.word(place).store(value, Ordering::Release);
    }
}

const RING_BYTES_MIN: usize = 4096;
const RING_BYTES_MAX: usize = 1 << 28;
const TICKETS_MAX: usize = 1 << 20;

/// Each word in a cache line of its own, or rather in a pair of them, which processors fetch together.
const PRODUCED: usize = 0;
const CONSUMED: usize = 128;
const RETURNED: usize = 256;
const WAITING: usize = 384;
const CLOSED: usize = 512;
const HEADER_LEN: usize = 1024;
