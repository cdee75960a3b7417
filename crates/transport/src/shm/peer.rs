//! The process at the other end, as long as anything of it is in use here.

use super::bell::Bell;
use super::greeting::{Pages, Received};
use super::lane::{Lane, OwnLane, Violation};
use crate::page_pool::{SHARED_HEADER_LEN, prefetch_ends};
use bytes::Bytes;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use dataflow::bulk::PageSlice;
use rustix::fd::OwnedFd;
use rustix::net::{Shutdown, shutdown};
use std::sync::{Arc, Mutex, MutexGuard};

/// The peer's memory, mapped here until the link and the last slice of its pages are gone; then the peer is told so.
pub(super) struct Peer {
    lane: Lane,
    own: Arc<OwnLane>,
    pages: Vec<Pages>,
    bell: Bell,
    socket: Arc<OwnedFd>,
    /// Tickets that were given back, shown to the peer or not; the lock is that of the ring of tickets.
    returned: Mutex<u64>,
    /// Whether some of them are not shown yet.
    has_unshown: AtomicBool,
    /// The thread that shows them at its next flush, by its mark; 0 while none has promised to.
    keeper: AtomicUsize,
}

impl Peer {
    pub(super) fn new(received: Received, own: Arc<OwnLane>, socket: Arc<OwnedFd>) -> Self {
        let Received { lane, bell, pages, .. } = received;
        let (returned, has_unshown, keeper) = (Mutex::new(0), AtomicBool::new(false), AtomicUsize::new(0));
        Self { lane, own, pages, bell, socket, returned, has_unshown, keeper }
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
        let slice = ForeignSlice { peer: Arc::clone(self), start, len: len as usize, ticket };
        // By the time that all handles of a batch are read, it is here.
        prefetch_ends(slice.as_ref());
        Ok(PageSlice::new(Bytes::from_owner(slice)))
    }

    /// This thread calls [`show_returned`](Self::show_returned) whenever there is something to show, before it sleeps.
    pub(super) fn keep(&self) {
        self.keeper.store(mark_of_thread(), Ordering::Relaxed);
    }

    /// No thread does that any more.
    pub(super) fn end_keeping(&self) {
        self.keeper.store(0, Ordering::Relaxed);
        self.show_returned();
    }

    /// Whether tickets were given back that the peer has not been shown.
    pub(super) fn has_unshown(&self) -> bool {
        self.has_unshown.load(Ordering::Relaxed)
    }

    /// Shows the peer all tickets that were given back, and wakes it if it needs them.
    pub(super) fn show_returned(&self) {
        if self.has_unshown() {
            let returned = self.lock_returned();
            self.has_unshown.store(false, Ordering::Relaxed);
            self.own.set_returned(*returned);
            drop(returned);
            self.ring();
        }
    }

    /// A ticket is shown at once, unless it is given back by the thread that shows many at a time: what a peer sees of each
    /// costs both of them a cache line, and a look at whether it sleeps a barrier.
    fn give_back(&self, ticket: u64) {
        let is_kept = self.keeper.load(Ordering::Relaxed) == mark_of_thread();
        let mut returned = self.lock_returned();
        self.own.set_ticket(*returned, ticket);
        *returned += 1;
        if is_kept {
            return self.has_unshown.store(true, Ordering::Relaxed);
        }
        self.own.set_returned(*returned);
        drop(returned);
        self.ring();
    }

    fn ring(&self) {
        self.bell.ring_if(|| self.lane.is_waiting() || self.pages.iter().any(Pages::are_all_away));
    }

    fn lock_returned(&self) -> MutexGuard<'_, u64> {
        self.returned.lock().expect("nothing panics while it gives a ticket back")
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
        self.peer.give_back(self.ticket);
    }
}

/// Differs from that of every other living thread, and from 0.
fn mark_of_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| core::ptr::from_ref(mark) as usize)
}
