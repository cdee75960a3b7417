//! Where other processes see whether a scheduler sleeps.

use super::Shared;
use crate::error::OsError;
use crate::shared_memory::{Region, make};
use core::sync::atomic::{AtomicU64, Ordering};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SealFlags;
use std::sync::{Arc, Mutex, Weak};

/// Says to other processes whether this one sleeps: odd while it does, and never the same twice. It is one scheduler's.
#[derive(Debug)]
pub struct SleepWord {
    region: Region,
    file: OwnedFd,
    owner: Mutex<Weak<Shared>>,
}

impl SleepWord {
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> Result<Self, OsError> {
        let (region, file) = make("weir-sleep", WORD_LEN, SealFlags::FUTURE_WRITE)?;
        Ok(Self { region, file, owner: Mutex::new(Weak::new()) })
    }

    /// Whether it is this scheduler's, or becomes that now, because it is no other living one's.
    pub(crate) fn belongs_to(&self, scheduler: &Arc<Shared>) -> bool {
        let mut owner = self.owner.lock().expect("nothing panics while it holds the owner");
        if owner.strong_count() == 0 {
            *owner = Arc::downgrade(scheduler);
        }
        core::ptr::eq(owner.as_ptr(), Arc::as_ptr(scheduler))
    }

    /// The caller looks once more at all that it waits for, behind a sequentially consistent fence, before it sleeps.
    pub(crate) fn begin_sleep(&self) {
        let word = word(&self.region);
        word.store(word.load(Ordering::Relaxed) | 1, Ordering::Release);
    }

    pub(crate) fn end_sleep(&self) {
        let word = word(&self.region);
        let before = word.load(Ordering::Relaxed);
        word.store(before + (before & 1), Ordering::Release);
    }
}

impl AsFd for SleepWord {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The word in its memory, ours or a peer's.
pub(crate) fn word(region: &Region) -> &AtomicU64 {
    // SAFETY: aligned (the start of a mapping), initialised, and as long as the region. All access is atomic, and of a peer's
    // word there are only relaxed loads.
    unsafe { AtomicU64::from_ptr(region.at(0).cast()) }
}

/// Its length in bytes.
pub(crate) const WORD_LEN: usize = size_of::<u64>();
