//! Memory that several processes of a host map: events written once by their owner and read in place by others.
//!
//! The memory is a sealed anonymous file (`memfd`). It has no name in any file system, so nothing is left behind
//! however its users end. It travels as a file descriptor. One seal keeps its length, so that no access can fault.
//! Another forbids new writable mappings and writes: others can map it read-only, and in no other way.
//!
//! | type | in | may |
//! |---|---|---|
//! | [`SharedSlots`] | the owner | write any slot that no reader holds |
//! | [`SlotReader`] | a reader | read slots that the owner gave it |
//! | [`Progress`] | both ends | load and store one number, for a reader to say where it is |
//!
//! Which slot is whose at a time is agreed by messages over another way; a message orders what was written before it.

use crate::error::OsError;
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, fstatfs, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Why there is no shared memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharedMemoryError {
    /// The sizes make no memory.
    #[error(
        "shared memory of {slots} slots of {slot_bytes} bytes: expected 1 to {SLOTS_MAX} slots, each of a multiple of \
         {SLOT_ALIGN_BYTES} bytes up to {SLOT_BYTES_MAX}"
    )]
    Size {
        /// Number of slots asked for.
        slots: usize,
        /// Their length in bytes.
        slot_bytes: usize,
    },
    /// The kernel refuses; it must be Linux 5.1 or newer.
    #[error("shared memory: {0}")]
    System(#[from] OsError),
    /// A descriptor was handed over that is not the memory it should be.
    #[error(
        "shared memory from another process: expected at least {expected_bytes} bytes, sealed; found {found_bytes}"
    )]
    Foreign {
        /// Length that was announced, in bytes.
        expected_bytes: usize,
        /// Length found in bytes; 0 if it is not sealed.
        found_bytes: usize,
    },
}

/// The largest number of slots.
pub const SLOTS_MAX: usize = 1 << 20;

/// The largest length of a slot in bytes: positions in it fit in 32 bits.
pub const SLOT_BYTES_MAX: usize = 1 << 30;

/// Slots begin at multiples of this: a cache line.
pub const SLOT_ALIGN_BYTES: usize = 64;

/// Equal slots, written by this process and mapped read-only by others.
#[derive(Debug)]
pub struct SharedSlots {
    region: Region,
    fd: OwnedFd,
    slots: usize,
    slot_bytes: usize,
}

impl SharedSlots {
    /// Makes zeroed memory; `name` is seen in the list of a process's mappings.
    ///
    /// # Errors
    /// Sizes that make no memory; memory that the kernel refuses.
    pub fn new(name: &str, slots: usize, slot_bytes: usize) -> Result<Self, SharedMemoryError> {
        let len = checked_len(slots, slot_bytes)?;
        let (region, fd) = make(name, len, SealFlags::FUTURE_WRITE)?;
        Ok(Self { region, fd, slots, slot_bytes })
    }

    /// A slot, to be written. Only to be called for slots that no reader holds: a reader would see the bytes change.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: inside the mapping, which is initialised; this process reaches it through `&mut self` alone, and other
        // processes cannot write to it (sealed).
        unsafe { core::slice::from_raw_parts_mut(self.region.at(slot * self.slot_bytes), self.slot_bytes) }
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Length of each slot in bytes.
    pub fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }
}

impl AsFd for SharedSlots {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The slots of another process, read in place.
#[derive(Debug)]
pub struct SlotReader {
    region: Region,
    slots: usize,
    slot_bytes: usize,
}

impl SlotReader {
    /// Maps the memory behind a descriptor that the owner of [`SharedSlots`] of these sizes sent.
    ///
    /// # Errors
    /// Sizes that make no memory, or memory that is shorter or not sealed: it could change or vanish under its reader.
    pub fn map(fd: impl AsFd, slots: usize, slot_bytes: usize) -> Result<Self, SharedMemoryError> {
        let len = checked_len(slots, slot_bytes)?;
        check_foreign(fd.as_fd(), len, SealFlags::SHRINK | SealFlags::FUTURE_WRITE)?;
        Ok(Self { region: Region::map(fd.as_fd(), len, ProtFlags::READ)?, slots, slot_bytes })
    }

    /// A slot that the owner gave to this process and did not take back: it writes to no such slot, and nobody else can.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn slot(&self, slot: usize) -> &[u8] {
        assert!(slot < self.slots, "slot {slot} of {}", self.slots);
        // SAFETY: inside the mapping, which is initialised and cannot shrink (sealed, checked by `map`). The one writer is
        // the `SharedSlots` at its other end, whose owner leaves slots alone that a reader holds.
        unsafe { core::slice::from_raw_parts(self.region.at(slot * self.slot_bytes), self.slot_bytes) }
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots
    }
}

/// One number that two processes share.
#[derive(Debug)]
pub struct Progress {
    region: Region,
    fd: OwnedFd,
}

impl Progress {
    /// Makes a number, 0 at first.
    ///
    /// # Errors
    /// Memory that the kernel refuses.
    pub fn new(name: &str) -> Result<Self, SharedMemoryError> {
        let (region, fd) = make(name, PROGRESS_BYTES, SealFlags::empty())?;
        Ok(Self { region, fd })
    }

    /// Maps the number behind a descriptor that another process sent.
    ///
    /// # Errors
    /// Memory that is no such number; memory that the kernel refuses.
    pub fn map(fd: OwnedFd) -> Result<Self, SharedMemoryError> {
        check_foreign(fd.as_fd(), PROGRESS_BYTES, SealFlags::SHRINK)?;
        let region = Region::map(fd.as_fd(), PROGRESS_BYTES, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { region, fd })
    }

    /// The number.
    pub fn load(&self) -> u64 {
        self.number().load(Ordering::Acquire)
    }

    /// Changes the number.
    pub fn store(&self, number: u64) {
        self.number().store(number, Ordering::Release);
    }

    fn number(&self) -> &AtomicU64 {
        // SAFETY: aligned (the start of a mapping), initialised, and as long as the mapping; all access is atomic.
        unsafe { AtomicU64::from_ptr(self.region.at(0).cast()) }
    }
}

impl AsFd for Progress {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A shared mapping of a sealed file.
#[derive(Debug)]
pub struct Region {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory is owned by the region and tied to no thread; the region gives out no reference to it.
unsafe impl Send for Region {}
// SAFETY: as above; `&Region` offers only addresses.
unsafe impl Sync for Region {}

impl Region {
    /// Maps so many bytes of a file; one of another process was [checked](check_foreign).
    ///
    /// # Errors
    /// If the kernel refuses.
    ///
    /// # Panics
    /// Never.
    pub fn map(fd: BorrowedFd<'_>, len: usize, protection: ProtFlags) -> Result<Self, OsError> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let start = unsafe { mmap(null_mut(), len, protection, MapFlags::SHARED, fd, 0) }
            .map_err(|errno| OsError::new("mmap", errno))?;
        let start = NonNull::new(start.cast()).expect("mmap never maps the address 0 unless asked to");
        Ok(Self { start, len })
    }

    /// Asks for huge pages, and with `prefault` for memory now instead of at the first touch.
    pub(crate) fn advise(&self, prefault: bool) {
        let start = self.start.as_ptr().cast();
        // SAFETY: the range is this mapping; neither advice changes what it holds. A kernel that knows neither does without.
        let _ = unsafe { madvise(start, self.len, Advice::LinuxHugepage) };
        if prefault {
            // SAFETY: as above.
            let _ = unsafe { madvise(start, self.len, Advice::LinuxPopulateWrite) };
        }
    }

    /// Backs what is touched from now on with small pages only.
    pub(crate) fn avoid_huge_pages(&self) {
        // SAFETY: as above.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, Advice::LinuxNoHugepage) };
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Where the byte at `offset` lies, as long as the region lives.
    ///
    /// # Panics
    /// If it is not in the region.
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.len, "an offset in the mapping");
        // SAFETY: inside the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of the successful `map`, and nobody holds a reference after the owner.
        unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.len) }
            .expect("a mapping of our own can be unmapped");
    }
}

/// Makes, maps and only then seals: the seal against writing spares mappings that exist.
///
/// # Errors
/// If the kernel refuses.
pub fn make(name: &str, len: usize, more_seals: SealFlags) -> Result<(Region, OwnedFd), OsError> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
        .map_err(|errno| OsError::new("memfd_create", errno))?;
    ftruncate(&fd, len as u64).map_err(|errno| OsError::new("ftruncate", errno))?;
    let region = Region::map(fd.as_fd(), len, ProtFlags::READ | ProtFlags::WRITE)?;
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL | more_seals;
    fcntl_add_seals(&fd, seals).map_err(|errno| OsError::new("fcntl(F_ADD_SEALS)", errno))?;
    Ok((region, fd))
}

fn checked_len(slots: usize, slot_bytes: usize) -> Result<usize, SharedMemoryError> {
    let fit = (1..=SLOTS_MAX).contains(&slots)
        && (1..=SLOT_BYTES_MAX).contains(&slot_bytes)
        && slot_bytes.is_multiple_of(SLOT_ALIGN_BYTES);
    let len = slots.checked_mul(slot_bytes).filter(|len| fit && isize::try_from(*len).is_ok());
    len.ok_or(SharedMemoryError::Size { slots, slot_bytes })
}

/// Checks that memory of another process is sealed like this, at least `len` bytes long, and of pages of the usual length. Of
/// others only whole ones can be unmapped.
///
/// # Errors
/// Memory that is shorter or not sealed so.
pub fn check_foreign(fd: BorrowedFd<'_>, len: usize, seals: SealFlags) -> Result<(), SharedMemoryError> {
    let sealed = fcntl_get_seals(fd).is_ok_and(|found| found.contains(seals))
        && fstatfs(fd).is_ok_and(|found| u64::try_from(found.f_type) == Ok(TMPFS_MAGIC));
    let found = fstat(fd).map_err(|errno| OsError::new("fstat", errno))?.st_size;
    let found_bytes = if sealed { usize::try_from(found).unwrap_or(0) } else { 0 };
    if found_bytes < len {
        return Err(SharedMemoryError::Foreign { expected_bytes: len, found_bytes });
    }
    Ok(())
}

/// Of the file system that memory files of usual pages are in, from `linux/magic.h`.
const TMPFS_MAGIC: u64 = 0x0102_1994;

const PROGRESS_BYTES: usize = size_of::<u64>();

#[cfg(all(test, not(miri)))]
mod tests {
    use super::{Progress, SharedMemoryError, SharedSlots, SlotReader, check_foreign};
    use rustix::fd::AsFd;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    use rustix::mm::{MapFlags, ProtFlags, mmap};

    #[test]
    fn a_reader_sees_what_the_owner_wrote() {
        let mut slots = SharedSlots::new("test", 3, 128).unwrap();
        slots.slot_mut(2).fill(7);
        let reader = SlotReader::map(&slots, 3, 128).unwrap();
        assert_eq!(reader.slot(2), [7; 128]);
        assert_eq!(reader.slot(1), [0; 128]);
        slots.slot_mut(1)[5] = 1;
        assert_eq!(reader.slot(1)[5], 1);
    }

    #[test]
    fn the_memory_can_be_neither_shrunk_nor_written_by_its_descriptor() {
        let slots = SharedSlots::new("test", 1, 4096).unwrap();
        assert!(ftruncate(&slots, 0).is_err());
        assert!(rustix::io::pwrite(&slots, &[1], 0).is_err());
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which the kernel refuses.
        assert!(unsafe { mmap(core::ptr::null_mut(), 4096, writable, MapFlags::SHARED, slots.as_fd(), 0) }.is_err());
    }

    #[test]
    fn memory_that_is_too_short_or_not_sealed_is_refused() {
        let slots = SharedSlots::new("test", 1, 4096).unwrap();
        let refused = SlotReader::map(&slots, 2, 4096).unwrap_err();
        assert_eq!(refused, SharedMemoryError::Foreign { expected_bytes: 8192, found_bytes: 4096 });
        let pipe = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
        assert!(matches!(SlotReader::map(&pipe, 1, 64), Err(SharedMemoryError::Foreign { found_bytes: 0, .. })));
        assert!(matches!(SharedSlots::new("test", 1, 65), Err(SharedMemoryError::Size { .. })));
        assert!(matches!(SharedSlots::new("test", 0, 64), Err(SharedMemoryError::Size { .. })));
    }

    #[test]
    fn memory_of_large_pages_is_refused() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | MemfdFlags::HUGETLB;
        // A kernel without such pages makes none for a peer either.
        let Ok(large) = memfd_create("test", flags) else { return };
        ftruncate(&large, 1 << 30).unwrap();
        fcntl_add_seals(&large, SealFlags::SHRINK).unwrap();
        let refused = check_foreign(large.as_fd(), 4096, SealFlags::SHRINK).unwrap_err();
        assert_eq!(refused, SharedMemoryError::Foreign { expected_bytes: 4096, found_bytes: 0 });
    }

    #[test]
    fn progress_is_seen_at_the_other_end() {
        let progress = Progress::new("test").unwrap();
        let other = Progress::map(progress.as_fd().try_clone_to_owned().unwrap()).unwrap();
        other.store(41);
        assert_eq!(progress.load(), 41);
    }
}
