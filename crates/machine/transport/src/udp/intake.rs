//! Datagrams on their way into pages.
//!
//! A call receives many datagrams, each into a place of its own in a page, one place behind the other. The headers
//! go elsewhere. Places have the length of the longest payload of late. So the full segments of a message that come
//! in a row lie side by side and are the message, without a copy. The same holds for datagrams that the kernel has
//! joined: their place is laid out for alternating headers and payloads of the configured length. What does not fit
//! this guess is received elsewhere and copied once. What is much shorter is moved together, so that it does not
//! pin pages that it hardly fills.

use super::header::HEADER_LEN;
use super::options::{DATAGRAM_LEN_LOOPBACK, UdpOptions};
use super::system::{DATAGRAMS_PER_CALL, Datagram, DatagramBatch};
use crate::link::LinkCounters;
use crate::page_pool::{Page, Pool};
use base::bulk::PageSlice;
use core::ops::Range;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io::IoSliceMut;

/// Receives batches of datagrams.
pub(super) struct Intake {
    pool: Pool,
    page: Option<Page>,
    /// Payload of a full datagram.
    segment_len: usize,
    /// The most datagrams that the kernel joins; 1 without joining.
    joined_max: usize,
    batch_max: usize,
    /// How many datagrams to make places for: twice as many as came last.
    expected: usize,
    guess: Guess,
    layout: Layout,
    headers: Box<[u8]>,
    /// Per place, room for what goes beyond it.
    spill: Box<[u8]>,
    spill_len: usize,
    /// Where the payload of each datagram of the last batch begins, in the batch.
    starts: [usize; DATAGRAMS_PER_CALL],
    flat: Vec<u8>,
    datagrams: DatagramBatch,
    /// Empty between calls: kept for its memory.
    parts: Vec<IoSliceMut<'static>>,
}

/// What one call brought.
pub(super) struct Batch {
    /// The places, one behind the other.
    pub(super) bytes: PageSlice,
    /// How many datagrams came.
    pub(super) count: usize,
    /// Whether more may wait.
    pub(super) is_full: bool,
}

/// Where a datagram's segments are.
pub(super) enum Segments {
    /// In their place in the batch: this many of them, of so many bytes of payload together.
    InPlace { count: usize, payload_len: usize },
    /// In [`Intake::flat`], headers and all, each but the last of this length.
    Flat { datagram_len: usize },
}

/// Why nothing was received.
pub(super) enum NoBatch {
    PoolEmpty,
    Os(Errno),
}

impl Intake {
    pub(super) fn new(options: &UdpOptions, pool: Pool, joins: bool) -> Self {
        let segment_len = options.segment_len();
        let joined_max = if joins { DATAGRAM_LEN_LOOPBACK / options.datagram_len } else { 1 };
        let longest = if joined_max > 1 { usize::from(u16::MAX) } else { options.datagram_len };
        let guess = Guess::new(segment_len, joined_max, pool.page_len());
        Self {
            layout: Layout::new(guess.place_len, segment_len),
            pool,
            page: None,
            segment_len,
            joined_max,
            batch_max: options.datagrams_per_fill,
            expected: options.datagrams_per_fill,
            guess,
            headers: vec![0; DATAGRAMS_PER_CALL * joined_max * HEADER_LEN].into(),
            // Zeroed memory that is not touched is not there.
            spill: vec![0; DATAGRAMS_PER_CALL * longest].into(),
            spill_len: longest,
            starts: [0; DATAGRAMS_PER_CALL],
            flat: Vec::new(),
            datagrams: DatagramBatch::empty(),
            parts: Vec::new(),
        }
    }

    /// Whether [`receive`](Self::receive) would find a page.
    pub(super) fn has_room(&self) -> bool {
        let place_len = self.guess.place_len;
        self.pool.has_free() || self.page.as_ref().is_some_and(|page| page.len() >= place_len || page.is_sole_holder())
    }

    /// Receives what waits, as far as it fits in a page and in one call.
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>, counters: &mut LinkCounters) -> Result<Batch, NoBatch> {
        self.layout = Layout::new(self.guess.place_len, self.segment_len);
        let Layout { place_len, placed, .. } = self.layout;
        if !self.make_room() {
            counters.pool_empty += 1;
            return Err(NoBatch::PoolEmpty);
        }
        let page = self.page.as_mut().expect("there is room");
        let asked = (page.len() / place_len).min(self.expected);
        let places = page.bytes_mut().chunks_exact_mut(place_len);
        let headers = self.headers.chunks_exact_mut(self.joined_max * HEADER_LEN);
        let spills = self.spill.chunks_exact_mut(self.spill_len);
        let mut parts = core::mem::take(&mut self.parts);
        for ((mut place, headers), spill) in places.zip(headers).zip(spills).take(asked) {
            for header in headers.chunks_exact_mut(HEADER_LEN).take(placed) {
                let payload_len = place.len().min(self.segment_len);
                let (payload, rest) = place.split_at_mut(payload_len);
                parts.push(IoSliceMut::new(header));
                parts.push(IoSliceMut::new(payload));
                place = rest;
            }
            let beyond_len = self.spill_len.saturating_sub(placed * HEADER_LEN + place_len);
            parts.push(IoSliceMut::new(&mut spill[..beyond_len]));
        }
        counters.receive_calls += 1;
        let received = self.datagrams.receive(socket, &mut parts, 2 * placed + 1);
        self.parts = emptied(parts);
        let count = received.map_err(NoBatch::Os)?;
        self.expected = (2 * count).max(EXPECTED_MIN).min(self.batch_max);
        let (mut used, mut dense_len, mut payload_max) = (0, 0, 0);
        for index in 0..count {
            let len = self.datagrams.datagram(index).len;
            let payload_len = payload_len(len, self.segment_len);
            counters.bytes_received += len as u64;
            payload_max = payload_max.max(payload_len);
            self.starts[index] = index * place_len;
            used = index * place_len + payload_len.min(place_len);
            dense_len += payload_len.min(place_len);
        }
        self.guess.learn(payload_max);
        if used > 2 * dense_len + CACHE_LINE * count {
            counters.bytes_moved += dense_len as u64;
            used = self.compact(count, place_len);
        }
        let page = self.page.as_mut().expect("as above");
        let bytes = page.split_to(used.next_multiple_of(CACHE_LINE).min(page.len()));
        Ok(Batch { bytes, count, is_full: count == asked })
    }

    /// What the kernel says of a datagram of the last batch.
    pub(super) fn datagram(&self, index: usize) -> Datagram {
        self.datagrams.datagram(index)
    }

    /// Where the segments of a datagram of the last batch are; brings them to [`flat`](Self::flat) if they have no place.
    pub(super) fn segments(&mut self, batch: &Batch, index: usize) -> Segments {
        let Datagram { len, joined_len, .. } = self.datagrams.datagram(index);
        let full_len = HEADER_LEN + self.segment_len;
        let is_expected = joined_len.is_none_or(|joined_len| joined_len == full_len);
        let has_headers =
            (HEADER_LEN..full_len).contains(&(len % full_len)) || (len > 0 && len.is_multiple_of(full_len));
        if is_expected && has_headers && len <= self.layout.placed_len() {
            let count = len.div_ceil(full_len);
            return Segments::InPlace { count, payload_len: len - count * HEADER_LEN };
        }
        self.flatten(batch, index, len);
        Segments::Flat { datagram_len: joined_len.filter(|joined_len| *joined_len > 0).unwrap_or(len.max(1)) }
    }

    /// The header of segment `segment` of a datagram that is in place.
    pub(super) fn header(&self, index: usize, segment: usize) -> &[u8; HEADER_LEN] {
        let at = (index * self.joined_max + segment) * HEADER_LEN;
        self.headers[at..].first_chunk().expect("room for the headers of each datagram")
    }

    /// Where the payload of segment `segment` of a datagram in place is, in the batch.
    pub(super) fn place(&self, index: usize, segment: usize, payload_len: usize) -> Range<usize> {
        let place = self.starts[index];
        let (start, end) = (segment * self.segment_len, (segment + 1) * self.segment_len);
        place + start..place + end.min(payload_len)
    }

    /// The bytes of a datagram that had no place.
    pub(super) fn flat(&self) -> &[u8] {
        &self.flat
    }

    /// Writes `len` bytes behind all that came; `None` if there is no page for it.
    pub(super) fn store(&mut self, len: usize, write: impl FnOnce(&mut [u8])) -> Option<PageSlice> {
        if self.page.as_ref().is_none_or(|page| page.len() < len) {
            self.page = Some(self.pool.take()?);
        }
        let page = self.page.as_mut()?;
        write(&mut page.bytes_mut()[..len]);
        Some(page.split_to(len))
    }

    /// As [`store`](Self::store), for a part of [`flat`](Self::flat).
    pub(super) fn store_flat(&mut self, range: Range<usize>) -> Option<PageSlice> {
        let flat = core::mem::take(&mut self.flat);
        let stored = self.store(range.len(), |place| place.copy_from_slice(&flat[range.clone()]));
        self.flat = flat;
        stored
    }

    /// Sees to it that the page has a worthwhile number of places, at least one; returns whether it has.
    fn make_room(&mut self) -> bool {
        let place_len = self.guess.place_len;
        let Some(page) = &mut self.page else {
            self.page = self.pool.take();
            return self.page.is_some();
        };
        if page.is_begun() && page.rewind() {
            return true;
        }
        // A page that is left with room for little more is pinned by what it has, and a pool has few.
        let worthwhile = (self.batch_max / 4).min(self.pool.page_len() / place_len / 4).max(1);
        if page.len() / place_len >= worthwhile {
            return true;
        }
        if self.pool.has_free()
            && let Some(next) = self.pool.take()
        {
            self.page = Some(next);
            return true;
        }
        page.len() >= place_len
    }

    /// Moves payloads that leave the greater part of their places empty to one another. So received messages pin no more
    /// than about twice their own length of the pool. Returns where they end.
    fn compact(&mut self, count: usize, place_len: usize) -> usize {
        let bytes = self.page.as_mut().expect("it was just received into").bytes_mut();
        let mut end = 0;
        for index in 0..count {
            let payload_len = payload_len(self.datagrams.datagram(index).len, self.segment_len).min(place_len);
            let place = index * place_len;
            bytes.copy_within(place..place + payload_len, end);
            self.starts[index] = end;
            end += payload_len;
            // What fills its place may go on in the next.
            if payload_len < place_len {
                end = end.next_multiple_of(CACHE_LINE).min(place + place_len);
            }
        }
        end
    }

    fn flatten(&mut self, batch: &Batch, index: usize, len: usize) {
        let Layout { place_len, placed, .. } = self.layout;
        self.flat.clear();
        for segment in 0..placed {
            let header = self.headers[(index * self.joined_max + segment) * HEADER_LEN..].first_chunk::<HEADER_LEN>();
            self.flat.extend_from_slice(header.expect("room for the headers of each datagram"));
            let start = self.starts[index];
            let place = start + segment * self.segment_len..start + place_len.min((segment + 1) * self.segment_len);
            // The batch ends where the last datagram ends.
            let (begin, end) = (place.start.min(batch.bytes.len()), place.end.min(batch.bytes.len()));
            self.flat.extend_from_slice(&batch.bytes.as_bytes()[begin..end]);
        }
        let beyond_len = len.saturating_sub(self.flat.len());
        let spill = &self.spill[index * self.spill_len..][..beyond_len.min(self.spill_len)];
        self.flat.extend_from_slice(spill);
        self.flat.truncate(len);
    }
}

/// How a place is laid out.
#[derive(Clone, Copy)]
struct Layout {
    place_len: usize,
    /// Segments that have their payload, or its beginning, in the place.
    placed: usize,
}

impl Layout {
    fn new(place_len: usize, segment_len: usize) -> Self {
        Self { place_len, placed: place_len.div_ceil(segment_len) }
    }

    /// The longest datagram that fits, headers included.
    fn placed_len(self) -> usize {
        self.placed * HEADER_LEN + self.place_len
    }
}

/// How long the next payloads will be: as the longest of late. Too short costs a copy, too long costs room between
/// messages, which pins pages.
struct Guess {
    place_len: usize,
    segment_len: usize,
    place_len_max: usize,
    longest_of_late: usize,
    batches: u32,
}

impl Guess {
    fn new(segment_len: usize, joined_max: usize, page_len: usize) -> Self {
        let place_len_max =
            if page_len < segment_len { page_len } else { (page_len / segment_len).min(joined_max) * segment_len };
        let mut guess = Self { place_len: 0, segment_len, place_len_max, longest_of_late: 0, batches: 0 };
        guess.place_len = guess.round(FIRST_GUESS);
        guess
    }

    fn learn(&mut self, payload_max: usize) {
        self.longest_of_late = self.longest_of_late.max(payload_max);
        self.batches += 1;
        if payload_max > self.place_len {
            self.place_len = self.round(payload_max);
        }
        if self.batches == BATCHES_REMEMBERED {
            if self.longest_of_late < self.place_len / 2 {
                self.place_len = self.round(self.longest_of_late);
            }
            (self.batches, self.longest_of_late) = (0, 0);
        }
    }

    /// Whole segments lie side by side, and nothing else has to.
    fn round(&self, len: usize) -> usize {
        let rounded = if len > self.segment_len {
            len.next_multiple_of(self.segment_len)
        } else {
            len.max(1).next_multiple_of(CACHE_LINE).min(self.segment_len)
        };
        rounded.min(self.place_len_max)
    }
}

/// How much of a datagram, or of several that are joined, goes to its place.
fn payload_len(len: usize, segment_len: usize) -> usize {
    let full_len = HEADER_LEN + segment_len;
    len / full_len * segment_len + (len % full_len).saturating_sub(HEADER_LEN)
}

/// The same memory for parts of another lifetime: nothing is left to be converted.
fn emptied(mut parts: Vec<IoSliceMut<'_>>) -> Vec<IoSliceMut<'static>> {
    parts.clear();
    parts.into_iter().map(|_| unreachable!("no part is left")).collect()
}

const CACHE_LINE: usize = 64;

/// A call for fewer costs about the same.
const EXPECTED_MIN: usize = 8;

/// Requests and small fragments.
const FIRST_GUESS: usize = 2048;

const BATCHES_REMEMBERED: u32 = 64;
