//! Who holds a page.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// Counts the slices of a page and its writer, if it has one. Four to a cache line: there is one for each page in hand.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct PageHeader {
    /// Slices, and [`WRITER`].
    holders: AtomicU32,
    /// For its owner.
    pub note: AtomicU32,
    owner: AtomicPtr<PageOwner>,
}

/// To whom pages go back. It is the first field (`#[repr(C)]`) of a pool, or of whatever else has pages, so its address is that
/// of the whole.
#[derive(Debug)]
pub struct PageOwner {
    let_go: unsafe fn(NonNull<PageHeader>),
}

/// Who holds a page after a slice has left it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nobody: the page is the caller's.
    Nobody,
    /// Its writer, who can take all of it back now.
    Writer,
    /// Other slices.
    Slices,
}

impl PageOwner {
    /// A slice that seems to be the last calls `let_go` instead of counting itself off. That calls [`PageHeader::leave`]
    /// once and does what is to be done with the page, from whatever thread.
    pub const fn new(let_go: unsafe fn(NonNull<PageHeader>)) -> Self {
        Self { let_go }
    }
}

impl PageHeader {
    /// The header of a page that nobody holds.
    pub const fn new(note: u32) -> Self {
        Self { holders: AtomicU32::new(0), note: AtomicU32::new(note), owner: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// To whom the page goes back, or nobody (null).
    #[inline]
    pub fn set_owner(&self, owner: *const PageOwner) {
        self.owner.store(owner.cast_mut(), Ordering::Release);
    }

    /// To whom the page goes back; null if nobody was [set](Self::set_owner).
    #[inline]
    pub fn owner(&self) -> *const PageOwner {
        self.owner.load(Ordering::Acquire)
    }

    /// From now on the page has a writer.
    ///
    /// # Safety
    /// Nobody holds the page, and nobody else begins to.
    #[inline]
    pub unsafe fn begin_writing(&self) {
        self.holders.store(WRITER, Ordering::Relaxed);
    }

    /// Whether a slice of the page is left. Sequentially consistent with a slice that leaves.
    #[inline]
    pub fn has_slices(&self) -> bool {
        self.holders.load(Ordering::SeqCst) & !WRITER > 0
    }

    /// Whether the page has a writer.
    #[inline]
    pub fn has_writer(&self) -> bool {
        self.holders.load(Ordering::Relaxed) & WRITER != 0
    }

    /// The page's writer leaves; whether that leaves nobody and the page is the caller's. Otherwise the last slice lets go of
    /// it, and the header may be gone by now.
    ///
    /// # Safety
    /// The page has a writer, and nobody takes it for one afterwards.
    #[inline]
    pub unsafe fn end_writing(page: NonNull<Self>) -> bool {
        // SAFETY: the header is there while the writer counts. A reference to the count alone does not say that it is longer.
        let holders = unsafe { &(*page.as_ptr()).holders };
        // Without slices there is nobody who could make one meanwhile.
        holders.load(Ordering::Acquire) == WRITER || holders.fetch_sub(WRITER, Ordering::SeqCst) == WRITER
    }

    /// A slice leaves the page. Unless that leaves nobody, the header may be gone by now.
    ///
    /// # Safety
    /// It is `let_go` that calls, once.
    #[inline]
    pub unsafe fn leave(page: NonNull<Self>) -> Left {
        // SAFETY: the header is there while the slice counts. A reference to the count alone does not say that it is longer.
        let holders = unsafe { &(*page.as_ptr()).holders };
        // The only holder cannot get company: a new one begins as another's.
        if holders.load(Ordering::Acquire) == 1 {
            return Left::Nobody;
        }
        match holders.fetch_sub(1, Ordering::SeqCst) {
            1 => Left::Nobody,
            LAST_BESIDE_WRITER => Left::Writer,
            _ => Left::Slices,
        }
    }

    /// The first holder of a page that nobody else knows of.
    #[inline]
    pub(crate) fn begin(&self) {
        self.holders.store(1, Ordering::Relaxed);
    }

    /// One more slice beside another holder.
    ///
    /// # Panics
    /// At a billion slices, long before the count is full.
    #[inline]
    pub(crate) fn enter(&self) {
        let holders = self.holders.fetch_add(1, Ordering::Relaxed);
        if holders & !WRITER >= SLICES_MAX {
            // Whoever catches the panic and goes on must not count up to the writer.
            self.holders.fetch_sub(1, Ordering::Relaxed);
            panic!("the slices of a page can be counted");
        }
    }

    /// A slice of this page is dropped.
    ///
    /// # Safety
    /// The slice counts, and counts no more afterwards.
    #[inline]
    pub(crate) unsafe fn drop_slice(page: NonNull<Self>) {
        // SAFETY: the header is there while the slice counts. A reference to the count alone does not say that it is longer.
        let count = unsafe { &(*page.as_ptr()).holders };
        let mut holders = count.load(Ordering::Relaxed);
        // Not one subtraction. Of several slices that leave at the same time, the last still has to count when the owner
        // is called. Otherwise a writer that leaves, too, may take the header away before.
        while holders & !WRITER > 1 {
            match count.compare_exchange_weak(holders, holders - 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => holders = now,
            }
        }
        // SAFETY: the slice still counts, so that header and owner are there; it is the owner's function for its pages.
        unsafe {
            let owner = (*page.as_ptr()).owner();
            ((*owner).let_go)(page);
        }
    }
}

/// Beside the slices.
const WRITER: u32 = 1 << 31;
const LAST_BESIDE_WRITER: u32 = WRITER + 1;
const SLICES_MAX: u32 = 1 << 30;
