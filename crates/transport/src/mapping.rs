//! Zeroed anonymous memory that lives as long as its owner.

use crate::error::OsError;
use core::ptr::NonNull;

/// `len` bytes of zeroed, readable and writable memory at a fixed, page-aligned place.
///
/// It hands out a raw pointer only, never a reference: its owner decides who may read and write which part.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is owned by the mapping and tied to no thread; the mapping itself gives out no reference to it.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` offers only the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` > 0 bytes; with `prefault` the kernel backs them with memory now instead of at the first touch.
    pub(crate) fn new(len: usize, prefault: bool) -> Result<Self, OsError> {
        assert!(len > 0, "a mapping has a length");
        let start = system::map(len, prefault)?;
        Ok(Self { start, len })
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Backs what is touched from now on with small pages only.
    pub(crate) fn avoid_huge_pages(&self) {
        system::avoid_huge_pages(self.start, self.len);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of the successful `map`, and nobody holds a reference after the owner.
        unsafe { system::unmap(self.start, self.len) };
    }
}

#[cfg(not(miri))]
mod system {
    use super::{NonNull, OsError};
    use core::ffi::c_void;
    use core::ptr::null_mut;
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    pub(super) fn map(len: usize, prefault: bool) -> Result<NonNull<u8>, OsError> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a private anonymous mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { mmap_anonymous(null_mut(), len, protection, MapFlags::PRIVATE) }
            .map_err(|errno| OsError::new("mmap", errno))?;
        // Huge pages spare most TLB misses of a pool beyond the caches; a kernel without them serves small ones.
        // SAFETY: the range was mapped above; neither advice changes what it holds.
        let _ = unsafe { madvise(start, len, Advice::LinuxHugepage) };
        if prefault {
            // Kernels before 5.14 lack this advice: there the first use of a page pays for it.
            // SAFETY: as above.
            let _ = unsafe { madvise(start, len, Advice::LinuxPopulateWrite) };
        }
        Ok(NonNull::new(start.cast()).expect("mmap never maps the address 0 unless asked to"))
    }

    pub(super) fn avoid_huge_pages(start: NonNull<u8>, len: usize) {
        // SAFETY: the range is that of a `map`; the advice does not change what it holds. A kernel without huge pages refuses.
        let _ = unsafe { madvise(start.as_ptr().cast::<c_void>(), len, Advice::LinuxNoHugepage) };
    }

    /// # Safety
    /// The range is that of a `map`, and no reference into it is left.
    pub(super) unsafe fn unmap(start: NonNull<u8>, len: usize) {
        // SAFETY: as the caller promises.
        unsafe { munmap(start.as_ptr().cast::<c_void>(), len) }.expect("a mapping of our own can be unmapped");
    }
}

/// The interpreter knows no memory mapping, and checks the use of heap memory as well.
#[cfg(miri)]
mod system {
    use super::{NonNull, OsError};
    use std::alloc::{Layout, alloc_zeroed, dealloc};

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, 4096).expect("a small test allocation")
    }

    pub(super) fn map(len: usize, _prefault: bool) -> Result<NonNull<u8>, OsError> {
        // SAFETY: `len` is not zero.
        Ok(NonNull::new(unsafe { alloc_zeroed(layout(len)) }).expect("memory for a test"))
    }

    pub(super) fn avoid_huge_pages(_start: NonNull<u8>, _len: usize) {}

    pub(super) unsafe fn unmap(start: NonNull<u8>, len: usize) {
        // SAFETY: allocated by `map` with the same layout.
        unsafe { dealloc(start.as_ptr(), layout(len)) };
    }
}
