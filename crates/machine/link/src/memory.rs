//! The memory that a source and a read-out system share: pages, and two rings.
//!
//! All `unsafe` code of the crate is here. The rings are atomic words; each has one writer, and a reader copies what it checks.
//! Pages are lent one by one. The source writes a page only after it has taken its index from the ring of free pages, and before
//! it commits it. A source that writes later alters its own fragments and nothing else. No page of another link or connection
//! lies in the region, and the read-out system decides by nothing that it reads from a page.

use core::sync::atomic::AtomicU64;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SealFlags;
use rustix::mm::ProtFlags;
use transport::error::OsError;
use transport::page_pool::SHARED_HEADER_LEN;
use transport::shared_memory::{Region, check_foreign, make};

use crate::error::Violation;
use crate::greeting::MemorySizes;
use crate::socket::Lost;

/// Positions of both ends, and the rings. Positions count from the beginning and never wrap.
pub(crate) struct Rings {
    region: Region,
    len: u64,
}

/// A word with one writer, on a cache line of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// Intake: pages lent so far.
    Lent = 0,
    /// Intake: entries taken so far.
    Taken = 1,
    /// Intake: how often it said something on the socket.
    News = 2,
    /// Source: entries committed so far.
    Committed = 3,
    /// Source: odd while it sleeps, never the same twice.
    Asleep = 4,
}

impl Rings {
    /// New ones, and the file to give to the source.
    pub(crate) fn make(len: u32) -> Result<(Self, OwnedFd), OsError> {
        let (region, file) = make("weir-link", region_len(len), SealFlags::empty())?;
        Ok((Self { region, len: len.into() }, file))
    }

    /// Those of the read-out system.
    pub(crate) fn map(file: BorrowedFd<'_>, len: u32) -> Result<Self, Lost> {
        if !len.is_power_of_two() || len > RING_MAX {
            return Err(Violation::Memory.into());
        }
        let region = map(file, region_len(len))?;
        Ok(Self { region, len: len.into() })
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub(crate) fn word(&self, word: Word) -> &AtomicU64 {
        self.at(word as usize * LINE)
    }

    /// The place of a free page's index.
    #[inline]
    pub(crate) fn free(&self, position: u64) -> &AtomicU64 {
        self.at(HEADER_BYTES + (position & (self.len - 1)) as usize * size_of::<u64>())
    }

    /// The words of an entry.
    #[inline]
    pub(crate) fn entry(&self, position: u64) -> &[AtomicU64; ENTRY_WORDS] {
        let entries = HEADER_BYTES + self.len as usize * size_of::<u64>();
        let place = self.region.at(entries + (position & (self.len - 1)) as usize * LINE);
        // SAFETY: aligned (the region begins at a memory page), initialised, within the region as its length was computed. The
        // region lives as long as the reference; all access is atomic.
        unsafe { &*place.cast::<[AtomicU64; ENTRY_WORDS]>() }
    }

    #[inline]
    fn at(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `entry`.
        unsafe { AtomicU64::from_ptr(self.region.at(offset).cast()) }
    }
}

/// The pages of the read-out system, as a source sees them.
pub(crate) struct LentPages {
    region: Region,
    sizes: MemorySizes,
    size_max: usize,
}

impl LentPages {
    pub(crate) fn map(file: &OwnedFd, sizes: MemorySizes, size_max: usize) -> Result<Self, Lost> {
        let MemorySizes { page_len, pages, headroom, .. } = sizes;
        let len = (page_len as usize).checked_mul(pages as usize).and_then(|len| len.checked_add(SHARED_HEADER_LEN));
        let fits = (headroom as usize).checked_add(size_max).is_some_and(|needed| needed <= page_len as usize);
        let len = len.filter(|len| fits && *len > SHARED_HEADER_LEN).ok_or(Violation::Memory)?;
        Ok(Self { region: map(file.as_fd(), len)?, sizes, size_max })
    }

    pub(crate) fn has(&self, index: u64) -> bool {
        index < self.sizes.pages.into()
    }

    /// The place of a payload.
    ///
    /// # Panics
    /// If there is no such page, or it is too short.
    #[inline]
    pub(crate) fn payload(&mut self, index: u64, len: usize) -> &mut [u8] {
        assert!(self.has(index) && len <= self.size_max, "a page that was lent, and a payload that fits");
        let MemorySizes { page_len, headroom, .. } = self.sizes;
        let place = SHARED_HEADER_LEN + index as usize * page_len as usize + headroom as usize;
        if len == 0 {
            return &mut [];
        }
        // SAFETY: within the region, since headroom and the longest payload fit into a page (`map`). It cannot shrink (sealed) and is
        // initialised. This process reaches it through `&mut self` alone, and the read-out system leaves a page alone that it has
        // lent. A mistake of the latter is no more than a fragment with wrong bytes.
        unsafe { core::slice::from_raw_parts_mut(self.region.at(place), len) }
    }
}

fn map(file: BorrowedFd<'_>, len: usize) -> Result<Region, Lost> {
    check_foreign(file, len, SealFlags::SHRINK).map_err(|_| Violation::Memory)?;
    Ok(Region::map(file, len, ProtFlags::READ | ProtFlags::WRITE)?)
}

const fn region_len(ring: u32) -> usize {
    HEADER_BYTES + ring as usize * (size_of::<u64>() + LINE)
}

/// The head and the index of the page; the rest of a cache line is left.
pub(crate) const ENTRY_WORDS: usize = crate::record::HEAD_WORDS + 1;
/// The most entries of a ring.
pub(crate) const RING_MAX: u32 = 1 << 20;
const LINE: usize = 64;
const HEADER_BYTES: usize = 8 * LINE;
