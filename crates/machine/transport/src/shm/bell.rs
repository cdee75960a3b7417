//! Waking a process that sleeps.

use crate::error::OsError;
use crate::shared_memory::{Region, check_foreign, make};
use crate::waker;
use core::sync::atomic::{AtomicU64, Ordering, fence};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SealFlags;
use rustix::mm::ProtFlags;
use std::sync::{Arc, Mutex, Weak};

/// Says to other processes whether this one sleeps: odd while it does, and never the same twice. It is one scheduler's.
#[derive(Debug)]
pub struct SleepWord {
    region: Region,
    file: OwnedFd,
    owner: Mutex<Weak<waker::Shared>>,
}

impl SleepWord {
    /// # Errors
    /// If the kernel refuses.
    pub fn new() -> Result<Self, OsError> {
        let (region, file) = make("weir-sleep", WORD_LEN, SealFlags::FUTURE_WRITE)?;
        Ok(Self { region, file, owner: Mutex::new(Weak::new()) })
    }

    /// Whether it is this scheduler's, or becomes that now, because it is no other living one's.
    pub(crate) fn belongs_to(&self, scheduler: &Arc<waker::Shared>) -> bool {
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

/// Wakes the process at the other end.
#[derive(Debug)]
pub struct Bell {
    sleep: Region,
    event: OwnedFd,
    /// The sleep that was ended last.
    rung: AtomicU64,
}

impl Bell {
    /// From what the peer sent; `None` if it is not what it should be.
    pub fn new(sleep: &OwnedFd, event: OwnedFd) -> Option<Self> {
        check_foreign(sleep.as_fd(), WORD_LEN, SealFlags::SHRINK).ok()?;
        let sleep = Region::map(sleep.as_fd(), WORD_LEN, ProtFlags::READ).ok()?;
        // Whatever the peer gave us, writing to it must not hold us up.
        rustix::fs::fcntl_setfl(&event, rustix::fs::OFlags::NONBLOCK).ok()?;
        Some(Self { sleep, event, rung: AtomicU64::new(0) })
    }

    /// To be called after something was written that the peer reads: wakes it if it sleeps and `cares`.
    pub fn ring_if(&self, cares: impl FnOnce() -> bool) {
        // Pairs with that of a scheduler between its announcement of sleep and its last look: we see the one, or it sees what we
        // wrote.
        fence(Ordering::SeqCst);
        let sleep = word(&self.sleep).load(Ordering::Relaxed);
        if sleep & 1 == 1 && cares() && self.rung.swap(sleep, Ordering::Relaxed) != sleep {
            // A peer that is gone hears nothing; one that fills its own counter up wakes itself.
            let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.event, &1_u64.to_ne_bytes()));
        }
    }
}

fn word(region: &Region) -> &AtomicU64 {
    // SAFETY: aligned (the start of a mapping), initialised, and as long as the region; all access is atomic, and of a peer's
    // word there are only relaxed loads.
    unsafe { AtomicU64::from_ptr(region.at(0).cast()) }
}

const WORD_LEN: usize = size_of::<u64>();

#[cfg(all(test, not(miri)))]
mod tests {
    use super::{Bell, SleepWord};
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::fd::{AsFd, OwnedFd};

    fn count(event: &OwnedFd) -> Option<u64> {
        let mut count = [0; 8];
        rustix::io::read(event, &mut count).ok().map(|_| u64::from_ne_bytes(count))
    }

    #[test]
    fn a_sleeper_is_woken_once_per_sleep_and_only_if_it_cares() {
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let own = SleepWord::new().unwrap();
        let file = own.as_fd().try_clone_to_owned().unwrap();
        let bell = Bell::new(&file, event.try_clone().unwrap()).unwrap();
        bell.ring_if(|| true);
        assert_eq!(count(&event), None);
        for _ in 0..3 {
            own.begin_sleep();
            bell.ring_if(|| false);
            assert_eq!(count(&event), None);
            bell.ring_if(|| true);
            bell.ring_if(|| true);
            assert_eq!(count(&event), Some(1));
            own.end_sleep();
            own.end_sleep();
            bell.ring_if(|| true);
            assert_eq!(count(&event), None);
        }
    }
}
