//! Frames on their way into the ring.
//!
//! A record is two words, then three words per piece, then bytes. Without pieces the bytes are the frame. With pieces the
//! first `head` bytes are the frame's beginning and the pieces, in order, its bulk: a handle, or some of the further
//! bytes. Without head the frame is the pieces one behind the other: its head was too long for the ring.
//!
//! | word | low half | high half |
//! |---|---|---|
//! | 0 | length of the record in bytes | number of pieces |
//! | 1 | length of the head in bytes | length of all bytes |
//! | of a piece: 0 | its length in bytes | the region, or [`INLINE`] |
//! | of a piece: 1, 2 | where it lies in the region | its ticket |

use super::lane::{Lane, OwnLane};
use super::ledger::Ledger;
use super::options::Process;
use super::record::{INLINE, PIECE_LEN, RECORD_HEAD_LEN, pieces_max};
use super::ring::Producer;
use crate::page_pool::Page;
use crate::violation::Violation;
use base::bulk::{Bulk, PageSlice};
use std::collections::VecDeque;

/// What is to be sent: in the ring and not published, or waiting for room.
pub(super) struct Outbox {
    process: Process,
    ledger: Ledger,
    producer: Producer,
    waiting: VecDeque<(Box<[u8]>, Bulk)>,
    waiting_bytes: usize,
    /// Pages for copies; the first is being filled.
    pages: VecDeque<Page>,
    blocked: Blocked,
    inline_max: usize,
    pieces_max: usize,
    /// Frames and bytes that were written and not published.
    unpublished: (u64, u64),
}

/// What the first frame that waits is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    Not,
    Ring,
    /// So many.
    Tickets(usize),
    Pages,
}

/// The queue is at its bound.
#[derive(Debug)]
pub(super) struct Full;

impl Outbox {
    pub(super) fn new(process: &Process) -> Self {
        let geometry = process.options().geometry();
        Self {
            process: process.clone(),
            ledger: Ledger::new(geometry.tickets),
            producer: Producer::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            pages: VecDeque::new(),
            blocked: Blocked::Not,
            inline_max: geometry.inline_max(),
            pieces_max: pieces_max(geometry).min(geometry.tickets),
            unpublished: (0, 0),
        }
    }

    /// Keeps to what the peer has room for; false if that is too little for the longest frame.
    pub(super) fn agree(&mut self, tickets: usize, inline_max: usize) -> bool {
        let copies = &self.process.pools()[0];
        let needed = 2 * self.process.options().limits.len_max().div_ceil(copies.page_len()) + 1;
        self.inline_max = self.inline_max.min(inline_max);
        self.pieces_max = self.pieces_max.min(tickets);
        self.ledger = Ledger::new(tickets.min(self.process.options().tickets_max));
        self.pieces_max >= needed
    }

    /// Bytes that wait, in the ring or for room in it.
    pub(super) fn queued_bytes(&self) -> usize {
        self.waiting_bytes + self.unpublished.1 as usize
    }

    /// Puts a frame behind those that wait for room.
    pub(super) fn enqueue(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), Full> {
        let len = head.len() + bulk.len();
        let options = self.process.options();
        if self.waiting.len() >= options.queue_frames_max || self.waiting_bytes + len > options.queue_bytes_max {
            return Err(Full);
        }
        self.waiting.push_back((head.into(), bulk.clone()));
        self.waiting_bytes += len;
        Ok(())
    }

    /// Writes a frame to the ring unless others wait or there is no room now.
    pub(super) fn put(&mut self, head: &[u8], bulk: &Bulk, own: &OwnLane, peer: &Lane) -> Result<bool, Violation> {
        Ok(self.waiting.is_empty() && self.try_put(head, bulk, own, peer)?)
    }

    /// Writes what waits, as far as there is room, and shows the peer all that was written; how many frames and bytes.
    pub(super) fn flush(&mut self, own: &OwnLane, peer: &Lane) -> Result<(u64, u64), Violation> {
        while let Some((head, bulk)) = self.waiting.pop_front() {
            if !self.try_put(&head, &bulk, own, peer)? {
                self.waiting.push_front((head, bulk));
                break;
            }
            self.waiting_bytes -= head.len() + bulk.len();
        }
        self.producer.publish(own);
        Ok(core::mem::take(&mut self.unpublished))
    }

    /// Whether [`flush`](Self::flush) has something to do now.
    pub(super) fn is_flushable(&self, peer: &Lane) -> bool {
        self.producer.has_unpublished() || (self.has_waiting() && self.can_go_on(peer))
    }

    /// Whether frames wait for room.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn ledger_mut(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Drops what waits; what the peer may be reading stays.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.unpublished = (0, 0);
        self.pages.clear();
    }

    fn can_go_on(&self, peer: &Lane) -> bool {
        match self.blocked {
            Blocked::Not => true,
            Blocked::Ring => self.producer.has_news(peer),
            // They may be home already: a fill takes them back, too.
            Blocked::Tickets(needed) => self.ledger.has_room(needed) || self.ledger.has_news(peer),
            Blocked::Pages => self.ledger.has_news(peer) || self.process.pools()[0].has_free(),
        }
    }

    fn try_put(&mut self, head: &[u8], bulk: &Bulk, own: &OwnLane, peer: &Lane) -> Result<bool, Violation> {
        let blocked = self.write(head, bulk, own, peer)?;
        if blocked != self.blocked {
            own.set_waiting(matches!(blocked, Blocked::Ring | Blocked::Tickets(_)));
            self.blocked = blocked;
        }
        Ok(blocked == Blocked::Not)
    }

    /// Writes a frame to the ring; else what is missing.
    fn write(&mut self, head: &[u8], bulk: &Bulk, own: &OwnLane, peer: &Lane) -> Result<Blocked, Violation> {
        if let Some(page) = self.pages.front_mut().filter(|page| page.is_begun()) {
            page.rewind();
        }
        let (mode, plan) = self.plan(head, bulk);
        if !self.ledger.has_room(plan.tickets) {
            self.ledger.settle(peer)?;
            if !self.ledger.has_room(plan.tickets) {
                return Ok(Blocked::Tickets(plan.tickets));
            }
        }
        if !self.reserve_pages(plan.pages, peer)? {
            return Ok(Blocked::Pages);
        }
        let Some(position) = self.producer.reserve(own, peer, plan.record_len())? else {
            return Ok(Blocked::Ring);
        };
        let mut record = RecordWriter::begin(own, position, &plan);
        self.write_record(&mut record, head, bulk, mode);
        self.unpublished.0 += 1;
        self.unpublished.1 += (head.len() + bulk.len()) as u64;
        Ok(Blocked::Not)
    }

    fn plan(&self, head: &[u8], bulk: &Bulk) -> (Mode, Plan) {
        if head.len() > self.inline_max {
            return (Mode::Whole, self.plan_in(Mode::Whole, head, bulk));
        }
        let plan = self.plan_in(Mode::Lend, head, bulk);
        if plan.pieces <= self.pieces_max {
            (Mode::Lend, plan)
        } else {
            (Mode::Copy, self.plan_in(Mode::Copy, head, bulk))
        }
    }

    fn plan_in(&self, mode: Mode, head: &[u8], bulk: &Bulk) -> Plan {
        let room = self.pages.front().map_or(0, Page::len);
        let mut plan = Plan::new(room, self.process.pools()[0].page_len());
        match mode {
            Mode::Whole => plan.copy(head.len()),
            Mode::Lend | Mode::Copy => plan.add_head(head.len()),
        }
        for slice in bulk.slices() {
            match self.route(mode, slice, plan.inline_len) {
                Route::Nothing => {}
                Route::Inline => plan.add_inline(slice.len()),
                Route::Lent { .. } => plan.add_lent(),
                Route::Copied => plan.copy(slice.len()),
            }
        }
        plan
    }

    fn route(&self, mode: Mode, slice: &PageSlice, inline_len: usize) -> Route {
        let len = slice.len();
        if len == 0 {
            return Route::Nothing;
        }
        if mode != Mode::Lend {
            return Route::Copied;
        }
        if len < self.process.options().copy_below {
            return if inline_len + len <= self.inline_max { Route::Inline } else { Route::Copied };
        }
        let mut places =
            self.process.pools().iter().zip(0..).filter_map(|(pool, region)| {
                pool.offset_of(slice.as_bytes()).map(|offset| Route::Lent { region, offset })
            });
        places.next().unwrap_or(Route::Copied)
    }

    /// Has this many fresh pages behind the one that is being filled; false if the pool has too few now.
    fn reserve_pages(&mut self, count: usize, peer: &Lane) -> Result<bool, Violation> {
        let pool = &self.process.pools()[0];
        let wanted = count + usize::from(!self.pages.is_empty());
        while self.pages.len() < wanted {
            let mut page = pool.take();
            if page.is_none() {
                self.ledger.settle(peer)?;
                page = pool.take();
            }
            let Some(page) = page else { return Ok(false) };
            self.pages.push_back(page);
        }
        Ok(true)
    }

    fn write_record(&mut self, record: &mut RecordWriter<'_>, head: &[u8], bulk: &Bulk, mode: Mode) {
        let mut run = 0;
        let mut inline_len = 0;
        if mode == Mode::Whole {
            self.copy(record, &mut run, head);
        } else {
            record.bytes(head);
            inline_len = head.len();
        }
        for slice in bulk.slices() {
            match self.route(mode, slice, inline_len) {
                Route::Nothing => {}
                Route::Copied => self.copy(record, &mut run, slice.as_bytes()),
                Route::Inline => {
                    self.end_run(record, &mut run);
                    record.piece(slice.len(), INLINE, 0, 0);
                    record.bytes(slice.as_bytes());
                    inline_len += slice.len();
                }
                Route::Lent { region, offset } => {
                    self.end_run(record, &mut run);
                    let ticket = self.ledger.lend(slice.clone());
                    record.piece(slice.len(), region, offset, ticket);
                }
            }
        }
        self.end_run(record, &mut run);
    }

    /// Copies behind the `run` bytes at the beginning of the first page that no handle is on yet. As planned by [`Plan::copy`].
    fn copy(&mut self, record: &mut RecordWriter<'_>, run: &mut usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.pages.front().is_none_or(|page| bytes.len() > page.len() - *run) {
                self.end_run(record, run);
                self.next_page();
            }
            let page = self.pages.front_mut().expect("pages were reserved");
            let (now, later) = bytes.split_at(bytes.len().min(page.len() - *run));
            page.bytes_mut()[*run..*run + now.len()].copy_from_slice(now);
            *run += now.len();
            bytes = later;
        }
    }

    fn next_page(&mut self) {
        // A page that nothing was taken from is a fresh one.
        if self.pages.front().is_some_and(Page::is_begun) {
            self.pages.pop_front();
        }
    }

    fn end_run(&mut self, record: &mut RecordWriter<'_>, run: &mut usize) {
        if *run == 0 {
            return;
        }
        let slice = self.pages.front_mut().expect("the page that was written to").split_to(*run);
        let offset = self.process.pools()[0].offset_of(slice.as_bytes()).expect("a page of this pool");
        let ticket = self.ledger.lend(slice);
        record.piece(*run, 0, offset, ticket);
        *run = 0;
    }
}

/// How the parts of a frame travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Each as it is best.
    Lend,
    /// All bulk copied, in few pieces.
    Copy,
    /// The head, too.
    Whole,
}

enum Route {
    Nothing,
    Inline,
    Lent { region: u32, offset: usize },
    Copied,
}

/// What a frame takes.
#[derive(Debug)]
struct Plan {
    head_len: usize,
    inline_len: usize,
    pieces: usize,
    tickets: usize,
    /// Fresh pages.
    pages: usize,
    /// Room in the page that is being filled.
    room: usize,
    page_len: usize,
    /// Whether the last piece is a copy that another can be put behind.
    is_open: bool,
}

impl Plan {
    fn new(room: usize, page_len: usize) -> Self {
        Self { head_len: 0, inline_len: 0, pieces: 0, tickets: 0, pages: 0, room, page_len, is_open: false }
    }

    fn add_head(&mut self, len: usize) {
        self.head_len = len;
        self.inline_len = len;
    }

    fn add_inline(&mut self, len: usize) {
        self.inline_len += len;
        self.pieces += 1;
        self.is_open = false;
    }

    fn add_lent(&mut self) {
        self.pieces += 1;
        self.tickets += 1;
        self.is_open = false;
    }

    /// A slice is cut only if it is longer than a page.
    fn copy(&mut self, mut len: usize) {
        while len > 0 {
            if len > self.room {
                // A whole page that is too short for the slice takes the slice's beginning.
                self.pages += usize::from(self.room < self.page_len);
                self.room = self.page_len;
                self.is_open = false;
            }
            if !self.is_open {
                self.pieces += 1;
                self.tickets += 1;
                self.is_open = true;
            }
            let now = len.min(self.room);
            self.room -= now;
            len -= now;
        }
    }

    /// The pieces of the record: none if all lies in it, in order.
    fn described(&self) -> usize {
        if self.tickets == 0 { 0 } else { self.pieces }
    }

    fn record_len(&self) -> usize {
        RECORD_HEAD_LEN + PIECE_LEN * self.described() + self.inline_len.next_multiple_of(8)
    }
}

/// Writes the parts of a record to their places.
struct RecordWriter<'a> {
    own: &'a OwnLane,
    /// Where the next piece is described; `None` if none is.
    next_piece: Option<u64>,
    next_byte: u64,
}

impl<'a> RecordWriter<'a> {
    fn begin(own: &'a OwnLane, position: u64, plan: &Plan) -> Self {
        let pieces = plan.described();
        own.set_ring_word(position, halves(plan.record_len(), pieces as u32));
        own.set_ring_word(position + 8, halves(plan.head_len, plan.inline_len as u32));
        let first_piece = position + RECORD_HEAD_LEN as u64;
        let next_byte = first_piece + (PIECE_LEN * pieces) as u64;
        Self { own, next_piece: (pieces > 0).then_some(first_piece), next_byte }
    }

    fn piece(&mut self, len: usize, region: u32, offset: usize, ticket: u64) {
        if let Some(place) = &mut self.next_piece {
            self.own.set_ring_word(*place, halves(len, region));
            self.own.set_ring_word(*place + 8, offset as u64);
            self.own.set_ring_word(*place + 16, ticket);
            *place += PIECE_LEN as u64;
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.own.copy_to_ring(self.next_byte, bytes);
        self.next_byte += bytes.len() as u64;
    }
}

fn halves(low: usize, high: u32) -> u64 {
    u64::from(u32::try_from(low).expect("lengths of frames fit in 32 bits")) | u64::from(high) << 32
}
