//! Waking the thread that looks after the tasks.

use core::sync::atomic::{AtomicBool, Ordering};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// Rings a sleeping thread out of its poll; costs no system call while that thread is awake.
#[derive(Debug)]
pub(crate) struct Bell {
    event: OwnedFd,
    asleep: AtomicBool,
}

impl Bell {
    pub(crate) fn new() -> std::io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event, asleep: AtomicBool::new(false) })
    }

    /// To be called after the change that the thread must see.
    pub(crate) fn ring(&self) {
        // Exchanged, not loaded: it orders the caller's change before the sleeper's last look.
        if self.asleep.swap(false, Ordering::SeqCst) {
            rustix::io::retry_on_intr(|| rustix::io::write(&self.event, &1_u64.to_ne_bytes()))
                .expect("an event counter below its maximum takes an increment");
        }
    }

    /// The thread will sleep, unless its last look finds a change.
    pub(crate) fn begin_sleep(&self) {
        self.asleep.swap(true, Ordering::SeqCst);
    }

    pub(crate) fn end_sleep(&self) {
        if !self.asleep.swap(false, Ordering::SeqCst) {
            let mut count = [0; 8];
            // It may not have been written yet: then a later sleep ends early, once.
            let _ = rustix::io::read(&self.event, &mut count);
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}
