//! Frames out of the peer's ring. What a record is, is said in [`outbox`](super::outbox).

use super::lane::OwnLane;
use super::peer::{Handle, Peer};
use super::record::{INLINE, PIECE_LEN, RECORD_HEAD_LEN};
use super::ring::{Consumer, Record};
use crate::frame::{Frame, FrameLimits, LENGTH_FIELD_LEN};
use crate::link::{LinkCounters, Lost};
use crate::page_pool::{Page, Pool, prefetch_ends};
use crate::violation::Violation;
use base::bulk::{Bulk, PageSlice};
use core::ops::Range;
use std::collections::VecDeque;
use std::sync::Arc;

/// What was received and not delivered.
pub(super) struct Intake {
    limits: FrameLimits,
    copy_below: usize,
    pool: Pool,
    consumer: Consumer,
    /// Where the bytes of records are copied to.
    page: Option<Page>,
    /// The bytes of the batch.
    bytes: PageSlice,
    ready: VecDeque<Ready>,
    pieces: VecDeque<Piece>,
    /// What follows the batch.
    broken: Option<Lost>,
    received_len: u64,
    needs_page: bool,
}

/// A frame of the batch.
struct Ready {
    /// Its place in the bytes of the batch.
    head: Range<usize>,
    /// Its pieces at the front of the queue.
    pieces: usize,
}

enum Piece {
    Inline(Range<usize>),
    Lent(PageSlice),
}

/// How an intake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    Some,
    Nothing,
    NoPage,
}

impl Intake {
    pub(super) fn new(limits: FrameLimits, copy_below: usize, pool: Pool) -> Self {
        Self {
            limits,
            copy_below,
            pool,
            consumer: Consumer::default(),
            page: None,
            bytes: PageSlice::default(),
            ready: VecDeque::new(),
            pieces: VecDeque::new(),
            broken: None,
            received_len: 0,
            needs_page: false,
        }
    }

    pub(super) fn has_frames(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether the peer has written something, or a loss follows the batch.
    pub(super) fn has_news(&self, peer: &Peer) -> bool {
        self.broken.is_some() || self.consumer.has_news(peer.lane())
    }

    /// Whether there is a page to receive into, as far as that was missing.
    pub(super) fn has_room(&self) -> bool {
        !self.needs_page || self.pool.has_free() || self.page.as_ref().is_some_and(Page::is_sole_holder)
    }

    /// Takes in all records that are there, as far as a page holds their bytes.
    pub(super) fn take_batch(
        &mut self,
        peer: &Arc<Peer>,
        own: &OwnLane,
        counters: &mut LinkCounters,
    ) -> Result<Taken, Lost> {
        if let Some(lost) = self.broken {
            return Err(lost);
        }
        self.bytes = PageSlice::default();
        let end = self.consumer.look(peer.lane())?;
        let mut filled = 0;
        self.needs_page = false;
        loop {
            match self.take(peer, end, &mut filled, counters) {
                Ok(true) => {}
                Ok(false) => break,
                Err(lost) if self.ready.is_empty() => return Err(lost),
                Err(lost) => {
                    self.broken = Some(lost);
                    break;
                }
            }
        }
        if self.ready.is_empty() {
            return Ok(if self.needs_page { Taken::NoPage } else { Taken::Nothing });
        }
        self.prefetch();
        if filled > 0 {
            self.bytes = self.page.as_mut().expect("bytes were copied to a page").split_to(filled);
        }
        self.consumer.publish(own);
        peer.bell().ring_if(|| peer.lane().is_waiting());
        Ok(Taken::Some)
    }

    /// Has the processor fetch what the batch points to. Misses that follow one another overlap; each alone would hold up the work around it.
    fn prefetch(&self) {
        for piece in &self.pieces {
            if let Piece::Lent(slice) = piece {
                prefetch_ends(slice.as_bytes());
            }
        }
    }

    /// The next frame of the batch.
    pub(super) fn next_frame(&mut self) -> Option<Frame> {
        let Ready { head, pieces } = self.ready.pop_front()?;
        if head.is_empty() {
            return Some(Frame::whole(self.joined(pieces)));
        }
        let head = self.bytes.slice(head);
        let rest = match pieces {
            0 => Bulk::empty(),
            1 => Bulk::Pages(self.next_piece()),
            _ => Bulk::PageList((0..pieces).map(|_| self.next_piece()).collect()),
        };
        Some(Frame { head, rest })
    }

    /// Forgets the batch and gives the page back.
    pub(super) fn clear(&mut self) {
        self.ready.clear();
        self.pieces.clear();
        self.bytes = PageSlice::default();
        self.page = None;
    }

    /// Takes in the next record before `end`; false if there is none or its bytes have no room.
    fn take(
        &mut self,
        peer: &Arc<Peer>,
        end: u64,
        filled: &mut usize,
        counters: &mut LinkCounters,
    ) -> Result<bool, Lost> {
        let Some(record) = self.consumer.next(peer.lane(), end)? else { return Ok(false) };
        let layout = Layout::of(record, peer.lane().ring_word(record.position + 8))?;
        if !self.make_room(*filled, layout.bytes_len)? {
            return Ok(false);
        }
        let (start, pieces_before) = (*filled, self.pieces.len());
        let room = self.page.as_mut().map_or(&mut [][..], Page::bytes_mut);
        peer.lane().copy_from_ring(layout.bytes_at, &mut room[start..start + layout.bytes_len]);
        let taken = self.take_pieces(peer, &layout, start).and_then(|bulk_len| {
            let len = self.check_len(&layout, start, pieces_before, bulk_len)?;
            Ok((layout.head_len + bulk_len, len))
        });
        let len = match taken {
            Ok((len, stated)) if len == stated => len,
            Ok(_) => {
                self.pieces.truncate(pieces_before);
                return Err(Violation::Record { position: record.position }.into());
            }
            Err(lost) => {
                self.pieces.truncate(pieces_before);
                return Err(lost);
            }
        };
        self.ready.push_back(Ready { head: start..start + layout.head_len, pieces: layout.pieces });
        *filled += layout.bytes_len;
        self.consumer.advance(record);
        self.received_len += len as u64;
        counters.frames_received += 1;
        counters.bytes_received += len as u64;
        counters.small_frames_received += u64::from(len < self.copy_below);
        Ok(true)
    }

    /// Has room for this many bytes behind those filled; false if that takes another page and there is none, or a batch.
    fn make_room(&mut self, filled: usize, len: usize) -> Result<bool, Lost> {
        if filled == 0
            && let Some(page) = self.page.as_mut().filter(|page| page.is_begun())
        {
            // Over and over the same bytes, which stay in the cache.
            page.rewind();
        }
        if self.page.as_ref().map_or(0, Page::len) >= filled + len {
            return Ok(true);
        }
        if filled > 0 || !self.ready.is_empty() {
            return Ok(false);
        }
        if len > self.pool.page_len() {
            return Err(Violation::Memory.into());
        }
        match self.pool.take() {
            Some(page) => self.page = Some(page),
            None => self.needs_page = true,
        }
        Ok(!self.needs_page)
    }

    /// Puts the pieces of a record into the queue; their length.
    fn take_pieces(&mut self, peer: &Arc<Peer>, layout: &Layout, start: usize) -> Result<usize, Lost> {
        let (mut bulk_len, mut inline_at) = (0, layout.head_len);
        for piece in 0..layout.pieces {
            let place = layout.pieces_at + (piece * PIECE_LEN) as u64;
            let (len, region) = halves(peer.lane().ring_word(place));
            bulk_len += len as usize;
            if bulk_len > self.limits.len_max() {
                return Err(Violation::Record { position: layout.position }.into());
            }
            if region == INLINE {
                let end = inline_at + len as usize;
                if end > layout.bytes_len {
                    return Err(Violation::Record { position: layout.position }.into());
                }
                self.pieces.push_back(Piece::Inline(start + inline_at..start + end));
                inline_at = end;
            } else {
                let (offset, ticket) = (peer.lane().ring_word(place + 8), peer.lane().ring_word(place + 16));
                let slice = peer.slice(Handle { region, offset, len, ticket })?;
                self.pieces.push_back(Piece::Lent(slice));
            }
        }
        if inline_at != layout.bytes_len {
            return Err(Violation::Record { position: layout.position }.into());
        }
        Ok(bulk_len)
    }

    /// The length that the frame states, which must be legal.
    fn check_len(&self, layout: &Layout, start: usize, first_piece: usize, bulk_len: usize) -> Result<usize, Lost> {
        let mut field = [0; LENGTH_FIELD_LEN];
        let short = Violation::Record { position: layout.position };
        let head = if layout.head_len > 0 {
            let page = self.page.as_ref().ok_or(short)?;
            &page.bytes()[start..start + layout.head_len]
        } else {
            match self.pieces.get(first_piece) {
                Some(Piece::Lent(slice)) if bulk_len >= LENGTH_FIELD_LEN => slice.as_bytes(),
                _ => return Err(short.into()),
            }
        };
        field.copy_from_slice(head.get(..LENGTH_FIELD_LEN).ok_or(short)?);
        let stated = self.limits.read_len(&field, self.received_len)?;
        Ok(stated.expect("the field is complete"))
    }

    fn next_piece(&mut self) -> PageSlice {
        match self.pieces.pop_front().expect("a frame's pieces are in the queue") {
            Piece::Inline(range) => self.bytes.slice(range),
            Piece::Lent(slice) => slice,
        }
    }

    /// Pieces in one, copied to memory of their own. They begin with a head that was too long for the ring, and a peer may
    /// change its pages between two looks of the decoder.
    fn joined(&mut self, pieces: usize) -> PageSlice {
        let slices: Vec<PageSlice> = (0..pieces).map(|_| self.next_piece()).collect();
        let parts: Vec<&[u8]> = slices.iter().map(PageSlice::as_bytes).collect();
        PageSlice::from(parts.concat())
    }
}

/// The parts of a record.
struct Layout {
    position: u64,
    head_len: usize,
    pieces: usize,
    pieces_at: u64,
    bytes_at: u64,
    bytes_len: usize,
}

impl Layout {
    fn of(record: Record, second: u64) -> Result<Self, Violation> {
        let Record { position, len, tag: pieces } = record;
        let (head_len, bytes_len) = halves(second);
        let described = u64::from(pieces) * PIECE_LEN as u64;
        let whole = RECORD_HEAD_LEN as u64 + described + u64::from(bytes_len).next_multiple_of(8);
        // Without pieces all bytes are the head.
        if whole != len || head_len > bytes_len || (pieces == 0 && head_len == 0) {
            return Err(Violation::Record { position });
        }
        let head_len = if pieces == 0 { bytes_len } else { head_len };
        let pieces_at = position + RECORD_HEAD_LEN as u64;
        Ok(Self {
            position,
            head_len: head_len as usize,
            pieces: pieces as usize,
            pieces_at,
            bytes_at: pieces_at + described,
            bytes_len: bytes_len as usize,
        })
    }
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}
