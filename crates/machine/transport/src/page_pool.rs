//! A fixed pool of equal-sized pages.
//!
//! A page has one writer, its [`Page`], and any number of readers. The writer gives away the page's beginning as
//! read-only slices ([`Page::split_to`]) and goes on filling the rest. So a receive buffer shares complete frames
//! while the kernel writes the next ones behind them. The page returns to its pool when the writer and the last
//! slice are gone, from whatever thread. The pool never grows: an empty pool refuses, and the refusal is counted.
//!
//! The pages of a [shared](Pool::shared) pool lie in memory that other processes can be given to read. A slice of
//! such a page travels to them over a [link](crate::shm) without a copy.

use crate::error::OsError;
use crate::mapping::Mapping;
use crate::prefetch::{prefetch, prefetch_to_write};
use crate::shared_memory::{Region, make};
use crate::waker::Waker;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use pages::{Left, PageHeader, PageOwner, PageSlice};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SealFlags;
use std::sync::{Arc, Mutex, MutexGuard};

/// What a pool is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Name in metrics and messages.
    pub name: String,
    /// Length of each page in bytes.
    pub page_len: usize,
    /// Number of pages.
    pub pages: usize,
    /// Whether the kernel backs all pages with memory now, instead of at the first touch of each.
    pub prefault: bool,
}

/// Why there is no pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The sizes make no pool.
    #[error(
        "page pool {name}: {pages} pages of {page_len} bytes: expected 1 to {PAGES_MAX} pages, each of 1 to {PAGE_LEN_MAX} bytes, within the address space"
    )]
    Size {
        /// Name of the pool.
        name: String,
        /// Number of pages asked for.
        pages: usize,
        /// Their length in bytes.
        page_len: usize,
    },
    /// The kernel refuses the memory: ask for fewer or smaller pages.
    #[error("page pool {name}: no memory for {pages} pages of {page_len} bytes: {cause}")]
    Memory {
        /// Name of the pool.
        name: String,
        /// Number of pages asked for.
        pages: usize,
        /// Their length in bytes.
        page_len: usize,
        /// What the kernel said.
        cause: OsError,
    },
}

/// The largest number of pages of a pool.
pub const PAGES_MAX: usize = u32::MAX as usize - 1;

/// The largest length of a page in bytes.
pub const PAGE_LEN_MAX: usize = u32::MAX as usize;

/// A handle on a pool; clones share it. The memory is freed with the last handle, page and slice.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

/// The state of a pool, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Pages away from the pool now.
    pub in_use: usize,
    /// The largest number of pages that were away when some were taken. Pages that came back since the last look count as away.
    pub in_use_max: usize,
    /// How often a page was asked for and none was there.
    pub refusals: u64,
}

impl Pool {
    /// Maps the pages.
    ///
    /// # Errors
    /// Sizes that make no pool; memory that the kernel refuses.
    pub fn new(options: &PoolOptions) -> Result<Self, PoolError> {
        Self::with_memory(options, |len| Ok(Memory::Private(Mapping::new(len, options.prefault)?)))
    }

    /// Maps the pages in a sealed anonymous file (`memfd`) that only this pool can write: other processes can be given its
    /// pages to read. Nothing is left of it when its users are gone.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn shared(options: &PoolOptions) -> Result<Self, PoolError> {
        Self::in_file(options, SealFlags::FUTURE_WRITE)
    }

    /// As [`shared`](Self::shared), but another process can be given the pages to write.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn lendable(options: &PoolOptions) -> Result<Self, PoolError> {
        Self::in_file(options, SealFlags::empty())
    }

    fn in_file(options: &PoolOptions, seals: SealFlags) -> Result<Self, PoolError> {
        Self::with_memory(options, |len| {
            let (region, file) = make("weir-pages", SHARED_HEADER_LEN + len, seals)?;
            region.advise(options.prefault);
            Ok(Memory::Shared { region, file })
        })
    }

    fn with_memory(
        options: &PoolOptions,
        map: impl FnOnce(usize) -> Result<Memory, OsError>,
    ) -> Result<Self, PoolError> {
        let PoolOptions { name, page_len, pages, .. } = options;
        let size_error = || PoolError::Size { name: name.clone(), pages: *pages, page_len: *page_len };
        let sizes_fit = (1..=PAGES_MAX).contains(pages) && (1..=PAGE_LEN_MAX).contains(page_len);
        let len = page_len.checked_mul(*pages).filter(|len| sizes_fit && isize::try_from(*len).is_ok());
        let len = len.filter(|len| *len <= isize::MAX as usize - SHARED_HEADER_LEN).ok_or_else(size_error)?;
        let memory = map(len).map_err(|cause| {
            let (pages, page_len) = (*pages, *page_len);
            PoolError::Memory { name: name.clone(), pages, page_len, cause }
        })?;
        let page_count = *pages as u32;
        Ok(Self(Arc::new(Shared {
            owner: PageOwner::new(let_go),
            name: name.as_str().into(),
            page_len: *page_len,
            start: memory.pages(),
            memory,
            pages: (0..page_count).map(|_| PageHeader::new(0)).collect(),
            free: Mutex::new((0..page_count).rev().collect()),
            returned: Returned::default(),
            in_use_max: AtomicU32::new(0),
            refusals: AtomicU64::new(0),
            is_empty: AtomicBool::new(false),
            wakers: Mutex::new(Vec::new()),
        })))
    }

    /// The page that was returned last, so that pages stay in the cache; `None`, and a refusal counted, if all are away.
    pub fn take(&self) -> Option<Page> {
        let mut free = self.0.lock_free();
        self.0.returned.drain_to(&mut free, &self.0.pages);
        let Some(index) = free.pop() else {
            self.0.refusals.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        self.0.note_taken(&free);
        drop(free);
        Some(self.page(index))
    }

    /// Up to `count` pages, as [`take`](Self::take) would give them one by one; none is refused. Returns how many.
    pub fn take_some(&self, count: usize, pages: &mut Vec<Page>) -> usize {
        let mut free = self.0.lock_free();
        self.0.returned.drain_to(&mut free, &self.0.pages);
        let left = free.len().saturating_sub(count);
        let taken = free.len() - left;
        for index in free.drain(left..) {
            let mut page = self.page(index);
            if self.is_shared() {
                // Its last reader may be another process, on another processor.
                page.fetch_beginning();
            }
            pages.push(page);
        }
        if taken > 0 {
            self.0.note_taken(&free);
        }
        taken
    }

    fn page(&self, index: u32) -> Page {
        let header = &self.0.pages[index as usize];
        header.set_owner(Arc::into_raw(Arc::clone(&self.0)).cast());
        // SAFETY: it is not in the pool any more, and only we know of it.
        unsafe { header.begin_writing() };
        Page { header: header.into(), place: self.0.place(index), len: self.page_len(), start: 0 }
    }

    /// Wakes this scheduler, too, when the pool is empty and a page returns or can be rewound.
    pub fn wake_on_return(&self, waker: Waker) {
        let mut wakers = self.0.lock_wakers();
        if !wakers.iter().any(|known| known.is_same(&waker)) {
            wakers.push(waker);
        }
    }

    /// Backs pages that are touched from now on with small memory pages, instead of huge ones. That suits pages of which
    /// most stay nearly empty, such as those of many idle connections.
    pub fn avoid_huge_pages(&self) {
        match &self.0.memory {
            Memory::Private(mapping) => mapping.avoid_huge_pages(),
            Memory::Shared { region, .. } => region.avoid_huge_pages(),
        }
    }

    /// Name in metrics and messages.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Length of each page in bytes.
    pub fn page_len(&self) -> usize {
        self.0.page_len
    }

    /// Number of pages, free or not.
    pub fn pages(&self) -> usize {
        self.0.pages.len()
    }

    /// Whether its pages can be given to other processes to read.
    pub fn is_shared(&self) -> bool {
        matches!(self.0.memory, Memory::Shared { .. })
    }

    /// Whether two handles are on the same pool.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Length of all pages in bytes.
    pub(crate) fn pages_len(&self) -> usize {
        self.pages() * self.page_len()
    }

    /// Where these bytes lie, from the beginning of the first page; `None` if they do not lie in this pool.
    pub fn offset_of(&self, bytes: &[u8]) -> Option<usize> {
        let offset = (bytes.as_ptr() as usize).checked_sub(self.0.start.as_ptr() as usize)?;
        (offset < self.pages_len() && bytes.len() <= self.pages_len() - offset).then_some(offset)
    }

    /// The file behind a shared pool: [`SHARED_HEADER_LEN`] bytes, of which the first four are not zero while the pool is
    /// empty, then the pages.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        match &self.0.memory {
            Memory::Shared { file, .. } => Some(file.as_fd()),
            Memory::Private(_) => None,
        }
    }

    /// Whether [`take`](Self::take) would find a page now.
    pub fn has_free(&self) -> bool {
        !self.0.is_empty.load(Ordering::SeqCst) || self.0.returned.count() > 0
    }

    /// The counters.
    pub fn counters(&self) -> PoolCounters {
        PoolCounters {
            in_use: self.0.in_use(&self.0.lock_free()),
            in_use_max: self.0.in_use_max.load(Ordering::Relaxed) as usize,
            refusals: self.0.refusals.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({}: {} x {} bytes, {:?})", self.name(), self.pages(), self.page_len(), self.counters())
    }
}

/// The one writer of a page, or of what is left of it after [`split_to`](Self::split_to).
///
/// Dropping it gives up the unwritten rest; slices already given out stay valid.
//
// Why this is sound: `start` only grows while slices are out. Everything below it is read-only for the rest of the page's
// absence from the pool. Everything from it on is reachable through this one, unclonable value alone. So `&mut` never
// overlaps a `&` of a slice, and both are made from the mapping's raw pointer, never from one another. `start` returns to
// zero only when this value is the page's only holder: no slice is left (`rewind`, and return to the pool). A page that
// is away counts as a handle on its pool, so that its memory and its header stay.
pub struct Page {
    header: NonNull<PageHeader>,
    place: NonNull<u8>,
    len: usize,
    start: usize,
}

// SAFETY: the page and its pool are tied to no thread.
unsafe impl Send for Page {}
// SAFETY: as above; what can be done with a shared one is to read what nobody writes.
unsafe impl Sync for Page {}

impl Page {
    /// The bytes that are still ours, to be written. They hold zeros or what an earlier use left there.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: inside the mapping, initialised by it, and reachable only through this value (see above).
        unsafe { core::slice::from_raw_parts_mut(self.ours().as_ptr(), self.len()) }
    }

    /// The bytes that are still ours, to be read.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: as in `bytes_mut`.
        unsafe { core::slice::from_raw_parts(self.ours().as_ptr(), self.len()) }
    }

    /// Has the processor fetch what is written of a page before all else: the headers of a first ROB and its ROD. It is worth it for
    /// pages that are not in the first cache.
    #[inline]
    pub fn fetch_beginning(&mut self) {
        let len = BEGINNING_LEN.min(self.len());
        prefetch_to_write(&mut self.bytes_mut()[..len]);
    }

    /// How many bytes are still ours.
    pub fn len(&self) -> usize {
        self.len - self.start
    }

    /// Whether all bytes were given away.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the first `len` bytes a read-only slice and goes on with the rest.
    ///
    /// # Panics
    /// If `len` is more than [`len`](Self::len).
    pub fn split_to(&mut self, len: usize) -> PageSlice {
        self.check_len(len);
        let start = self.ours();
        self.start += len;
        // SAFETY: this is the page's writer, which writes behind these bytes from now on. They are inside the mapping, which
        // stays with the page's header until `let_go`.
        unsafe { PageSlice::beside_writer(self.header, start, len) }
    }

    /// Makes the first `len` bytes a read-only slice and gives up the rest.
    ///
    /// # Panics
    /// If `len` is more than [`len`](Self::len).
    #[inline]
    pub fn freeze(mut self, len: usize) -> PageSlice {
        if self.header().has_slices() {
            return self.split_to(len);
        }
        self.check_len(len);
        let page = ManuallyDrop::new(self);
        // SAFETY: as in `split_to`; this was the only holder, and the slice takes its place.
        unsafe { PageSlice::first(page.header, page.ours(), len) }
    }

    fn check_len(&self, len: usize) {
        assert!(len <= self.len(), "a slice of {len} bytes of the {} that a page has left", self.len());
    }

    fn ours(&self) -> NonNull<u8> {
        // SAFETY: `start` is at most the page's length: inside the mapping, or one past its end.
        unsafe { self.place.add(self.start) }
    }

    fn header(&self) -> &PageHeader {
        // SAFETY: in the pool, which is there while the page is away; all access to it is shared.
        unsafe { self.header.as_ref() }
    }

    /// Takes the whole page back for writing, if no slice of it is left; what was in it may be overwritten.
    pub fn rewind(&mut self) -> bool {
        let rewound = self.is_sole_holder();
        if rewound {
            self.start = 0;
        }
        rewound
    }

    /// Whether no slice of the page is left.
    pub(crate) fn is_sole_holder(&self) -> bool {
        !self.header().has_slices()
    }

    /// Whether some of the page was given away as slices.
    pub(crate) fn is_begun(&self) -> bool {
        self.start > 0
    }

    /// Takes the whole page back, if no slice of it is left, and moves our first `len` bytes to its beginning.
    pub(crate) fn rewind_keeping(&mut self, len: usize) -> bool {
        let start = self.start;
        let rewound = self.rewind();
        if rewound {
            self.bytes_mut().copy_within(start..start + len, 0);
        }
        rewound
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: this is the page's writer; if nobody else holds it, it goes home.
        unsafe {
            if PageHeader::end_writing(self.header) {
                take_back(self.header);
            }
        }
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Page({} bytes left)", self.len())
    }
}

/// Sequentially consistent with a page's writer that finds the pool empty first and its page's slices alive next, and
/// sleeps. Either it sees the last slice gone, or we see the pool empty and wake it.
///
/// # Safety
/// The header is that of a page that is away, and a slice of it, which seems to be the last, still counts.
unsafe fn let_go(page: NonNull<PageHeader>) {
    // SAFETY: the slice still counts, so that the page is away.
    let header = unsafe { page.as_ref() };
    // As soon as we have left, a writer may take the page home, and with it what keeps the pool.
    let pool = header.has_writer().then(|| {
        let pool = header.owner().cast::<Shared>();
        // SAFETY: from `Arc::into_raw`, and it counts while the page is away.
        unsafe {
            Arc::increment_strong_count(pool);
            Arc::from_raw(pool)
        }
    });
    // SAFETY: the only call.
    match unsafe { PageHeader::leave(page) } {
        // SAFETY: nobody holds the page.
        Left::Nobody => unsafe { take_back(page) },
        Left::Writer => pool.iter().filter(|pool| pool.is_empty.load(Ordering::SeqCst)).for_each(|pool| pool.wake()),
        Left::Slices => {}
    }
}

/// # Safety
/// The page is away, and nobody holds it.
unsafe fn take_back(page: NonNull<PageHeader>) {
    // SAFETY: in the pool, which is there while the page is away.
    let owner = unsafe { page.as_ref() }.owner();
    // SAFETY: from `Arc::into_raw`, when the page was taken; whoever takes it next has a handle of its own.
    let pool = unsafe { Arc::from_raw(owner.cast::<Shared>()) };
    pool.take_back(page);
}

/// What is looked at for every page comes first.
#[repr(C)]
struct Shared {
    /// The first field: its address is that of the whole. A page that is away counts as a handle.
    owner: PageOwner,
    /// Not in `free` yet.
    returned: Returned,
    pages: Box<[PageHeader]>,
    /// The first page, in `memory`.
    start: NonNull<u8>,
    page_len: usize,
    /// For who takes pages; the last is taken first.
    free: Mutex<Vec<u32>>,
    /// Whether `free` is, and whoever returns a page has to wake those who wait; written under the lock of `free`.
    is_empty: AtomicBool,
    in_use_max: AtomicU32,
    refusals: AtomicU64,
    memory: Memory,
    wakers: Mutex<Vec<Waker>>,
    name: Box<str>,
}

// SAFETY: `start` points into `memory`, which is tied to no thread and lives as long; all else is sendable by itself.
unsafe impl Send for Shared {}
// SAFETY: as above; who may read and write which part of the memory is said at `Page`.
unsafe impl Sync for Shared {}

impl Shared {
    fn place(&self, index: u32) -> NonNull<u8> {
        assert!((index as usize) < self.pages.len(), "a page of this pool");
        // SAFETY: the mapping holds `pages.len()` pages of `page_len` bytes.
        unsafe { self.start.add(index as usize * self.page_len) }
    }

    /// To be called with the free list locked.
    fn set_empty(&self, is_empty: bool) {
        self.is_empty.store(is_empty, Ordering::SeqCst);
        if let Memory::Shared { region, .. } = &self.memory {
            // SAFETY: aligned (the start of a mapping), initialised, and as long as the region; all access is atomic.
            unsafe { AtomicU32::from_ptr(region.at(0).cast()) }.store(is_empty.into(), Ordering::Release);
        }
    }

    fn take_back(&self, page: NonNull<PageHeader>) {
        let index = (page.addr().get() - self.pages.as_ptr().addr()) / size_of::<PageHeader>();
        let is_first = self.returned.push(index as u32, &self.pages);
        // Who takes pages looks at both before it sleeps; where another page was here before this one, it was woken for that.
        if is_first && self.is_empty.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    fn wake(&self) {
        self.lock_wakers().iter().for_each(Waker::wake);
    }

    fn lock_wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().expect("nothing panics while it holds the wakers")
    }

    fn lock_free(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().expect("nothing panics while it holds the free list")
    }

    /// Pages were taken from `free`, behind a look at what had come back. Pages that came back since count as in use.
    fn note_taken(&self, free: &[u32]) {
        if free.is_empty() != self.is_empty.load(Ordering::Relaxed) {
            self.set_empty(free.is_empty());
        }
        let in_use = (self.pages.len() - free.len()) as u32;
        if in_use > self.in_use_max.load(Ordering::Relaxed) {
            self.in_use_max.store(in_use, Ordering::Relaxed);
        }
    }

    fn in_use(&self, free: &[u32]) -> usize {
        self.pages.len() - free.len() - self.returned.count()
    }
}

/// Pages that came back, from whatever thread, until somebody takes them all. It is a stack. Its links are in the headers of
/// pages, as the index behind that of the page below, 0 if there is none.
#[derive(Default)]
struct Returned {
    /// How many (upper half), and the index behind the last one's (lower half; 0 if there is none).
    head: AtomicU64,
}

impl Returned {
    fn count(&self) -> usize {
        (self.head.load(Ordering::SeqCst) >> 32) as usize
    }

    /// Whether there was none before.
    fn push(&self, index: u32, pages: &[PageHeader]) -> bool {
        let push = |head: u64| {
            pages[index as usize].note.store(head as u32, Ordering::Relaxed);
            Some(((head >> 32) + 1) << 32 | u64::from(index + 1))
        };
        // A page is on the stack once, and the stack is only ever taken whole: an unchanged head has an unchanged rest.
        self.head.fetch_update(Ordering::SeqCst, Ordering::Relaxed, push) == Ok(0)
    }

    /// Moves all to the end of `free`, the last one last.
    #[inline]
    fn drain_to(&self, free: &mut Vec<u32>, pages: &[PageHeader]) {
        if self.head.load(Ordering::Relaxed) != 0 {
            self.drain_some_to(free, pages);
        }
    }

    // Apart, since most pages are taken while none has come back.
    #[inline(never)]
    fn drain_some_to(&self, free: &mut Vec<u32>, pages: &[PageHeader]) {
        let head = self.head.swap(0, Ordering::SeqCst);
        let (count, mut next) = ((head >> 32) as usize, head as u32);
        let before = free.len();
        free.resize(before + count, 0);
        for place in free[before..].iter_mut().rev() {
            *place = next - 1;
            next = pages[*place as usize].note.load(Ordering::Relaxed);
        }
    }
}

enum Memory {
    Private(Mapping),
    Shared { region: Region, file: OwnedFd },
}

impl Memory {
    fn pages(&self) -> NonNull<u8> {
        match self {
            Self::Private(mapping) => mapping.start(),
            // SAFETY: a shared region is longer than its header.
            Self::Shared { region, .. } => unsafe { region.start().add(SHARED_HEADER_LEN) },
        }
    }
}

/// What is read and written of a page before all else: the headers of a first ROB and its ROD.
const BEGINNING_LEN: usize = 128;

/// Has the processor fetch what is looked at first of bulk that another process wrote: beginning and end.
pub(crate) fn prefetch_ends(bulk: &[u8]) {
    prefetch(&bulk[..BEGINNING_LEN.min(bulk.len())]);
    prefetch(&bulk[bulk.len().saturating_sub(1)..]);
}

/// What lies before the first page of a shared pool: a memory page, so that the pages are aligned to those of the kernel.
pub const SHARED_HEADER_LEN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::{Pool, PoolError, PoolOptions};

    fn pool(page_len: usize, pages: usize) -> Pool {
        Pool::new(&PoolOptions { name: "test".into(), page_len, pages, prefault: false }).unwrap()
    }

    #[test]
    fn a_pool_is_bounded_and_counts() {
        let pool = pool(4096, 2);
        let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
        assert!(pool.take().is_none() && !pool.has_free());
        drop(first);
        let counters = pool.counters();
        assert_eq!((counters.in_use, counters.in_use_max, counters.refusals), (1, 2, 1));
        drop(second);
        assert_eq!(pool.counters().in_use, 0);
    }

    #[test]
    fn the_page_returned_last_is_taken_first() {
        let pool = pool(4096, 3);
        let (mut first, second) = (pool.take().unwrap(), pool.take().unwrap());
        first.bytes_mut()[0] = 7;
        drop(second);
        drop(first);
        assert_eq!(pool.take().unwrap().bytes()[0], 7);
    }

    #[test]
    fn a_page_is_filled_behind_the_slices_that_were_given_out() {
        let pool = pool(64, 1);
        let mut page = pool.take().unwrap();
        page.bytes_mut()[..10].fill(1);
        let first = page.split_to(10);
        page.bytes_mut()[..20].fill(2);
        let second = page.split_to(20);
        page.bytes_mut().fill(3);
        assert_eq!(page.len(), 34);
        assert_eq!(first.as_bytes(), [1; 10]);
        let inner = second.slice(5..20);
        drop(second);
        let third = page.freeze(34);
        assert_eq!((inner.as_bytes(), third.as_bytes()), (&[2; 15][..], &[3; 34][..]));
        drop((first, third));
        assert_eq!(pool.counters().in_use, 1);
        drop(inner);
        assert_eq!(pool.counters().in_use, 0);
    }

    #[test]
    fn a_page_is_rewound_only_when_no_slice_is_left() {
        let pool = pool(64, 1);
        let mut page = pool.take().unwrap();
        page.bytes_mut().copy_from_slice(&core::array::from_fn::<u8, 64, _>(|i| i as u8));
        let slice = page.split_to(40);
        assert!(!page.rewind() && !page.rewind_keeping(4) && page.is_begun());
        drop(slice);
        assert!(page.rewind_keeping(4));
        assert_eq!((page.len(), &page.bytes()[..5]), (64, &[40, 41, 42, 43, 4][..]));
    }

    #[test]
    fn slices_return_a_page_from_another_thread_while_it_is_filled() {
        let pool = pool(256, 2);
        let (to_reader, slices) = std::sync::mpsc::sync_channel::<base::bulk::PageSlice>(1024);
        let reader = std::thread::spawn(move || {
            slices.iter().map(|slice| slice.as_bytes().iter().map(|byte| u64::from(*byte)).sum::<u64>()).sum::<u64>()
        });
        let mut sent = 0;
        for round in 0..40_u8 {
            let mut page = loop {
                match pool.take() {
                    Some(page) => break page,
                    None => std::thread::yield_now(),
                }
            };
            while !page.is_empty() {
                page.bytes_mut()[..64].fill(round);
                sent += 64 * u64::from(round);
                to_reader.send(page.split_to(64)).unwrap();
            }
        }
        drop(to_reader);
        assert_eq!(reader.join().unwrap(), sent);
        assert_eq!(pool.counters().in_use, 0);
    }

    #[test]
    fn slices_outlive_the_pool() {
        let pool = pool(64, 1);
        let mut page = pool.take().unwrap();
        page.bytes_mut().fill(9);
        let slice = page.freeze(64);
        drop(pool);
        assert_eq!(slice.as_bytes(), [9; 64]);
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for (page_len, pages) in [(0, 1), (1, 0), (usize::MAX, 2), (1 << 33, 1), (1, 1 << 33)] {
            let options = PoolOptions { name: "test".into(), page_len, pages, prefault: false };
            assert!(matches!(Pool::new(&options), Err(PoolError::Size { .. })), "{page_len} x {pages}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps no memory there")]
    fn memory_that_the_kernel_does_not_have_is_an_error() {
        let options = PoolOptions { name: "test".into(), page_len: 1 << 31, pages: 1 << 31, prefault: false };
        let said = Pool::new(&options).expect_err("no memory").to_string();
        let sizes =
            format!("no memory for {} pages of {} bytes: system call mmap failed", options.pages, options.page_len);
        assert!(said.contains(&sizes), "{said}");
    }

    #[test]
    #[should_panic(expected = "a slice of 65 bytes")]
    fn more_than_a_page_cannot_be_given_out() {
        let pool = pool(64, 1);
        pool.take().unwrap().freeze(65);
    }
}
