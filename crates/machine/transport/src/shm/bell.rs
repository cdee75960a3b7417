//! Waking a process that sleeps.

use crate::shared_memory::{Region, check_foreign};
use crate::waker::sleep_word::{WORD_LEN, word};
use core::sync::atomic::{AtomicU64, Ordering, fence};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::SealFlags;
use rustix::mm::ProtFlags;

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

#[cfg(all(test, not(miri)))]
mod tests {
    use super::Bell;
    use crate::waker::SleepWord;
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
