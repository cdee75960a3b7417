//! The process at the other end, as long as anything of it is in use here.

use super::bell::Bell;
use super::greeting::{Pages, Received};
use super::lane::{Lane, OwnLane, Violation};
use crate::page_pool::SHARED_HEADER_LEN;
use bytes::Bytes;
use core::sync::atomic::{AtomicU32, Ordering};
use dataflow::bulk::PageSlice;
use rustix::fd::OwnedFd;
use rustix::net::{Shutdown, shutdown};
use std::sync::{Arc, Mutex};

/// The peer's memory, mapped here until the link and the last slice of its pages are gone; then the peer is told so.
pub(super) struct Peer {
    lane: Lane,
    own: Arc<OwnLane>,
    pages: Vec<Pages>,
    bell: Bell,
    socket: Arc<OwnedFd>,
    /// Tickets that were given back; the lock is that of the ring of tickets.
    returned: Mutex<u64>,
}

impl Peer {
    pub(super) fn new(received: Received, own: Arc<OwnLane>, socket: Arc<OwnedFd>) -> Self {
        let Received { lane, bell, pages, .. } = received;
        Self { lane, own, pages, bell, socket, returned: Mutex::new(0) }
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// A slice of the peer's pages; `lent` counts all handles received before this one.
    pub(super) fn slice(self: &Arc<Self>, handle: Handle, lent: u64) -> Result<PageSlice, Violation> {
        let Handle { region, offset, len, ticket } = handle;
        let tickets = self.own.lane().geometry().tickets as u64;
        if ticket >= tickets || lent - self.own.lane().returned() >= tickets {
            return Err(Violation::Ticket { ticket });
        }
        let outside = Violation::Handle { region, offset, len };
        let pages = self.pages.get(region as usize).ok_or(outside)?;
        let end = offset.checked_add(len.into()).ok_or(outside)?;
        if len == 0 || end > pages.len as u64 {
            return Err(outside);
        }
        let start = pages.region.at(SHARED_HEADER_LEN + offset as usize);
        let slice = ForeignSlice { peer: Arc::clone(self), start, len: len as usize, region, ticket };
        Ok(PageSlice::new(Bytes::from_owner(slice)))
    }

    fn give_back(&self, region: u32, ticket: u64) {
        let mut returned = self.returned.lock().expect("nothing panics while it gives a ticket back");
        self.own.set_ticket(*returned, ticket);
        *returned += 1;
        self.own.set_returned(*returned);
        drop(returned);
        self.bell.ring_if(|| self.lane.is_waiting() || self.pages[region as usize].are_all_away());
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // One that is gone need not be told.
        let _ = shutdown(&self.socket, Shutdown::Write);
    }
}

/// Where bulk lies in the peer's memory, as the peer says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    pub(super) region: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) ticket: u64,
}

impl Pages {
    /// Whether the pool is empty.
    fn are_all_away(&self) -> bool {
        // SAFETY: aligned (the start of a mapping), initialised, and as long as the region; a relaxed load alone, of what its
        // owner writes as an atomic.
        unsafe { AtomicU32::from_ptr(self.region.at(0).cast()) }.load(Ordering::Relaxed) != 0
    }
}

/// A part of the peer's pages that the peer will not write again while this value lives.
struct ForeignSlice {
    peer: Arc<Peer>,
    start: *const u8,
    len: usize,
    region: u32,
    ticket: u64,
}

// SAFETY: the memory is held by `peer` and tied to no thread.
unsafe impl Send for ForeignSlice {}
// SAFETY: as above; it is only read.
unsafe impl Sync for ForeignSlice {}

impl AsRef<[u8]> for ForeignSlice {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: inside the region of `peer` (checked by `Peer::slice`), which cannot shrink (sealed) and is initialised. Its one
        // writer leaves these bytes alone until the ticket is back; what happens if it does not is said in the module.
        unsafe { core::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Drop for ForeignSlice {
    fn drop(&mut self) {
        self.peer.give_back(self.region, self.ticket);
    }
}
