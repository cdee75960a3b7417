//! The process at the other end, as long as anything of it is in use here.

use super::bell::Bell;
use super::greeting::{Pages, Received};
use super::lane::{Lane, OwnLane};
use crate::page_pool::SHARED_HEADER_LEN;
use crate::violation::Violation;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use pages::{Left, PageHeader, PageOwner, PageSlice};
use rustix::fd::OwnedFd;
use rustix::net::{Shutdown, shutdown};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// The peer's memory, mapped here until the link and the last slice of its pages are gone; then the peer is told so.
#[repr(C)]
pub(super) struct Peer {
    /// The first field: its address is that of the whole. Each ticket that we have counts as a handle.
    owner: PageOwner,
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
    /// What we have of the peer's pages, by ticket, in blocks that are made when they are needed. One that we have has an owner,
    /// and the peer does not write it until it has the ticket back.
    lent: Box<[OnceLock<Box<[PageHeader]>>]>,
}

impl Peer {
    pub(super) fn new(received: Received, own: Arc<OwnLane>, socket: Arc<OwnedFd>) -> Self {
        let Received { lane, bell, pages, .. } = received;
        let (returned, has_unshown, keeper) = (Mutex::new(0), AtomicBool::new(false), AtomicUsize::new(0));
        let blocks = own.lane().geometry().tickets.div_ceil(LENT_BLOCK);
        let lent = (0..blocks).map(|_| OnceLock::new()).collect();
        let owner = PageOwner::new(let_go);
        Self { owner, lane, own, pages, bell, socket, returned, has_unshown, keeper, lent }
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// A slice of the peer's pages. Called by the one [intake](super::intake) of the link, so that a ticket is looked at and
    /// taken by one thread.
    pub(super) fn slice(self: &Arc<Self>, handle: Handle) -> Result<PageSlice, Violation> {
        let Handle { region, offset, len, ticket } = handle;
        if ticket >= self.own.lane().geometry().tickets as u64 {
            return Err(Violation::Ticket { ticket });
        }
        let outside = Violation::Handle { region, offset, len };
        let pages = self.pages.get(region as usize).ok_or(outside)?;
        let end = offset.checked_add(len.into()).ok_or(outside)?;
        if len == 0 || end > pages.len as u64 {
            return Err(outside);
        }
        let lent = self.lent(ticket);
        if !lent.owner().is_null() {
            return Err(Violation::Ticket { ticket });
        }
        lent.set_owner(Arc::into_raw(Arc::clone(self)).cast());
        let start = NonNull::new(pages.region.at(SHARED_HEADER_LEN + offset as usize)).expect("inside the region");
        // SAFETY: inside the region of the peer, which cannot shrink (sealed) and is initialised. Its one writer leaves these
        // bytes alone until the ticket is back; what happens if it does not is said in the module. Region and header stay
        // until the ticket is given back, and no other slice has it.
        Ok(unsafe { PageSlice::first(lent.into(), start, len as usize) })
    }

    fn lent(&self, ticket: u64) -> &PageHeader {
        let (block, place) = (ticket as usize / LENT_BLOCK, ticket as usize % LENT_BLOCK);
        let new = || (0..LENT_BLOCK).map(|place| PageHeader::new((block * LENT_BLOCK + place) as u32)).collect();
        &self.lent[block].get_or_init(new)[place]
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

    /// A ticket is shown at once, unless the thread that shows many at a time gives it back. To show one costs both ends a
    /// cache line, and a look at whether the peer sleeps a barrier.
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
        // SAFETY: aligned (the start of a mapping), initialised, and as long as the region. It is a relaxed load alone, of
        // what its owner writes as an atomic.
        unsafe { AtomicU32::from_ptr(self.region.at(0).cast()) }.load(Ordering::Relaxed) != 0
    }
}

/// # Safety
/// The header is that of a page whose ticket we have, and its last slice still counts.
unsafe fn let_go(page: NonNull<PageHeader>) {
    // SAFETY: in the peer, which is there while we have the ticket.
    let lent = unsafe { page.as_ref() };
    // SAFETY: the only call.
    let left = unsafe { PageHeader::leave(page) };
    assert_eq!(left, Left::Nobody, "nobody here writes a peer's page");
    let (peer, ticket) = (lent.owner().cast::<Peer>(), lent.note.load(Ordering::Relaxed));
    lent.set_owner(core::ptr::null());
    // SAFETY: from `Arc::into_raw`, when the ticket came, and it counted until now.
    unsafe { Arc::from_raw(peer) }.give_back(ticket.into());
}

/// Differs from that of every other living thread, and from 0.
fn mark_of_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| core::ptr::from_ref(mark) as usize)
}

const LENT_BLOCK: usize = 64;
