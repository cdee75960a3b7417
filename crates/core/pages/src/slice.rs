//! Parts of pages.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;

use crate::header::{Left, PageHeader, PageOwner};

/// A reference-counted part of a page that is not written any more. The page goes back to its owner when its last slice is
/// dropped, so that nobody can leak or release it twice.
///
/// A clone costs one atomic increment; let one thread own the slices of a page where possible.
#[derive(Clone)]
pub struct PageSlice {
    start: NonNull<u8>,
    len: usize,
    /// `None` for bytes that live for ever.
    page: Option<Holder>,
}

/// One slice's count in the header of its page.
struct Holder(NonNull<PageHeader>);

/// Bytes of their own.
#[repr(C)]
struct Owned {
    header: PageHeader,
    bytes: Vec<u8>,
}

// SAFETY: the bytes are not written while a slice lives. The maker of the first slice of a page promised that it may be let
// go from any thread.
unsafe impl Send for PageSlice {}
// SAFETY: as above; shared, it can be read and cloned only, and the count is atomic.
unsafe impl Sync for PageSlice {}

impl PageSlice {
    /// The first holder of a page: it has neither slice nor writer.
    ///
    /// # Safety
    /// The page has an owner. As long as a slice of the page counts, header and owner stay where they are. From `start` on
    /// there are `len` initialised bytes that nobody writes. Nobody else makes slices of the page meanwhile, except from this
    /// one. `let_go` may be called from any thread.
    #[inline]
    pub unsafe fn first(page: NonNull<PageHeader>, start: NonNull<u8>, len: usize) -> Self {
        // SAFETY: the header is there.
        unsafe { page.as_ref() }.begin();
        Self { start, len, page: Some(Holder(page)) }
    }

    /// One more slice of a page that has a writer.
    ///
    /// # Safety
    /// As [`first`](Self::first), but that the page's writer may write other bytes of it and make slices of these.
    ///
    /// # Panics
    /// If the page has a billion slices.
    #[inline]
    pub unsafe fn beside_writer(page: NonNull<PageHeader>, start: NonNull<u8>, len: usize) -> Self {
        // SAFETY: the header is there.
        unsafe { page.as_ref() }.enter();
        Self { start, len, page: Some(Holder(page)) }
    }

    /// Bytes that live for ever.
    pub const fn from_static(bytes: &'static [u8]) -> Self {
        Self { start: NonNull::from_ref(bytes).cast(), len: bytes.len(), page: None }
    }

    /// A copy of these bytes.
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self::from(bytes.to_vec())
    }

    /// Length in bytes.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no byte in the slice.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[inline]
    pub const fn as_bytes(&self) -> &[u8] {
        // SAFETY: initialised and not written as long as this slice counts; see `first`. Static or empty otherwise.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Takes the first `len` bytes off.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    pub fn split_to(&mut self, len: usize) -> Self {
        if len == self.len {
            return core::mem::take(self);
        }
        let taken = self.slice(0..len);
        // SAFETY: within the slice, as the range was.
        self.start = unsafe { self.start.add(len) };
        self.len -= len;
        taken
    }

    /// A part of this slice; the page stays away from its owner as long as the part lives, unless it is empty.
    ///
    /// # Panics
    /// If the range is not inside the slice.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let Range { start, end } = range;
        assert!(start <= end && end <= self.len, "bytes {start} to {end} of a slice of {}", self.len);
        if start == end {
            return Self::default();
        }
        // SAFETY: within the slice.
        Self { start: unsafe { self.start.add(start) }, len: end - start, page: self.page.clone() }
    }

    /// The part of this slice that is there already as `part` of its [bytes](Self::as_bytes).
    ///
    /// # Panics
    /// If they are other bytes.
    pub fn slice_of(&self, part: &[u8]) -> Self {
        if part.is_empty() {
            return Self::default();
        }
        let start = part.as_ptr().addr().checked_sub(self.start.addr().get()).expect("a part of the slice");
        self.slice(start..start + part.len())
    }
}

impl Default for PageSlice {
    #[inline]
    fn default() -> Self {
        Self::from_static(&[])
    }
}

impl From<Vec<u8>> for PageSlice {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        let (start, len) = (NonNull::from_ref(bytes.as_slice()).cast(), bytes.len());
        let owned = Box::leak(Box::new(Owned { header: PageHeader::new(0), bytes }));
        owned.header.set_owner(&OWNER);
        let owned = NonNull::from(owned);
        // SAFETY: the bytes and their header, which is the first field, live until `free`, and only slices know of them.
        unsafe { Self::first(owned.cast(), start, len) }
    }
}

static OWNER: PageOwner = PageOwner::new(free);

/// # Safety
/// The header is that of an `Owned` that was leaked, and its last slice is dropped.
unsafe fn free(page: NonNull<PageHeader>) {
    // SAFETY: the header is there while the slice counts, and nobody else takes it away.
    let left = unsafe { PageHeader::leave(page) };
    assert_eq!(left, Left::Nobody, "bytes of their own have no writer who could make another slice");
    // SAFETY: it was a box, and nobody holds it any more.
    drop(unsafe { Box::from_raw(page.cast::<Owned>().as_ptr()) });
}

impl Clone for Holder {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: the header is there while this holder counts.
        unsafe { self.0.as_ref() }.enter();
        Self(self.0)
    }
}

impl Drop for Holder {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: it counts until now.
        unsafe { PageHeader::drop_slice(self.0) }
    }
}

impl PartialEq for PageSlice {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for PageSlice {}

impl fmt::Debug for PageSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageSlice({} bytes)", self.len)
    }
}

const _: () = assert!(size_of::<PageSlice>() == 24, "eight to three cache lines");

#[cfg(test)]
mod tests;
