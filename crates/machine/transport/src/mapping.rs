//! Zeroed anonymous memory that lives as long as its owner.

use crate::error::OsError;
use core::ptr::NonNull;
use std::sync::{Arc, Mutex};

/// `len` bytes of zeroed, readable and writable memory at a fixed, page-aligned place.
///
/// It hands out a raw pointer only, never a reference: its owner decides who may read and write which part.
///
/// Short ones share the memory of larger ones, one behind the other. Those of thousands of read-out systems in a process then
/// lie in few memory pages, huge ones where there are.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    /// Unmapped when the last mapping in it goes.
    memory: Arc<Memory>,
}

/// Memory of its own.
struct Memory {
    start: NonNull<u8>,
    len: usize,
}

/// Memory that short mappings are cut from.
struct Common {
    memory: Arc<Memory>,
    used: usize,
}

// SAFETY: the memory is owned by the mapping and tied to no thread; the mapping itself gives out no reference to it.
unsafe impl Send for Mapping {}
// SAFETY: as above; `&Mapping` offers only the address.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` > 0 bytes; with `prefault` the kernel backs them with memory now instead of at the first touch.
    pub(crate) fn new(len: usize, prefault: bool) -> Result<Self, OsError> {
        assert!(len > 0, "a mapping has a length");
        if len <= SHORT && !prefault {
            return Self::cut(len);
        }
        let memory = Memory::new(len, prefault)?;
        Ok(Self { start: memory.start, len, memory: Arc::new(memory) })
    }

    /// A short one, from what is left of the common memory: no part of it is given away twice.
    fn cut(len: usize) -> Result<Self, OsError> {
        static COMMON: Mutex<Option<Common>> = Mutex::new(None);
        let mut common = COMMON.lock().expect("nothing panics while it holds the common memory");
        let room = len.next_multiple_of(ALIGNMENT);
        if common.as_ref().is_none_or(|common| common.memory.len - common.used < room) {
            // Each is twice as long as the one before: a process with few short mappings does not get a huge page for them.
            let before = common.as_ref().map_or(SHORT, |common| common.memory.len);
            let memory = Memory::new((2 * before).min(COMMON_MAX), false)?;
            *common = Some(Common { memory: Arc::new(memory), used: 0 });
        }
        let common = common.as_mut().expect("there is common memory with room");
        // SAFETY: within the memory, which has `room` more bytes.
        let start = unsafe { common.memory.start.add(common.used) };
        common.used += room;
        Ok(Self { start, len, memory: Arc::clone(&common.memory) })
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
        if self.len < self.memory.len {
            // SAFETY: whole memory pages that are this mapping's alone, and nobody holds a reference after the owner.
            unsafe { system::give_back(self.start, self.len.next_multiple_of(ALIGNMENT)) };
        }
    }
}

// SAFETY: as of the mappings in it.
unsafe impl Send for Memory {}
// SAFETY: as of the mappings in it.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(len: usize, prefault: bool) -> Result<Self, OsError> {
        Ok(Self { start: system::map(len, prefault)?, len })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of the successful `map`, and nobody holds a reference after the last mapping.
        unsafe { system::unmap(self.start, self.len) };
    }
}

/// Longest mapping, in bytes, that shares its memory with others.
const SHORT: usize = 64 << 10;
/// Most memory, in bytes, for short mappings at a time.
const COMMON_MAX: usize = 8 << 20;
/// Of short mappings, so that no two share a memory page.
const ALIGNMENT: usize = 4096;

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

    /// The kernel may have the memory, until the range is unmapped.
    ///
    /// # Safety
    /// The range is in that of a `map`, and nobody will read or write it any more.
    pub(super) unsafe fn give_back(start: NonNull<u8>, len: usize) {
        // SAFETY: as the caller promises. A kernel that refuses keeps the memory.
        let _ = unsafe { madvise(start.as_ptr().cast::<c_void>(), len, Advice::LinuxDontNeed) };
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

    pub(super) unsafe fn give_back(_start: NonNull<u8>, _len: usize) {}

    pub(super) unsafe fn unmap(start: NonNull<u8>, len: usize) {
        // SAFETY: allocated by `map` with the same layout.
        unsafe { dealloc(start.as_ptr(), layout(len)) };
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT, COMMON_MAX, Mapping, SHORT};

    #[test]
    fn short_mappings_do_not_overlap_and_are_zero() {
        let lens = [1, ALIGNMENT, SHORT - 1, 100, SHORT];
        let mut mappings = Vec::new();
        let mut total = 0;
        for len in lens.into_iter().cycle().take_while(|len| {
            total += len;
            total < 2 * COMMON_MAX
        }) {
            let mapping = Mapping::new(len, false).unwrap();
            // SAFETY: the mapping is `len` bytes long, and nobody else has it.
            let bytes = unsafe { core::slice::from_raw_parts_mut(mapping.start().as_ptr(), len) };
            assert!(bytes.iter().all(|byte| *byte == 0));
            bytes.fill(1);
            mappings.push(mapping);
            if mappings.len() % 3 == 0 {
                mappings.swap_remove(mappings.len() / 2);
            }
        }
    }
}
