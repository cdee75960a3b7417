//! What an interrupt ends: the run that goes on, and the scan.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use partition::Control;
use rustix::event::{EventfdFlags, eventfd};
use terminal::Interrupts;

/// Whether somebody has interrupted the scan. Clones are the same.
#[derive(Clone)]
pub(super) struct Interrupted {
    known: Arc<Mutex<Known>>,
    /// Can be read behind an interrupt.
    wakes: Arc<OwnedFd>,
}

#[derive(Default)]
struct Known {
    any: bool,
    run: Option<Control>,
}

impl Interrupted {
    /// Catches SIGINT and SIGTERM as long as the second value lives.
    pub(super) fn caught() -> io::Result<(Self, Interrupts)> {
        let wakes = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let interrupted = Self { known: Arc::default(), wakes };
        let caught = interrupted.clone();
        let interrupts = Interrupts::call(move || caught.interrupt())?;
        Ok((interrupted, interrupts))
    }

    pub(super) fn any(&self) -> bool {
        self.known().any
    }

    /// What can be read from the first interrupt on.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    /// Has interrupts end this run, until another one begins. Without delay, if there was one since the scan last looked.
    pub(super) fn end(&self, run: Control) {
        let mut known = self.known();
        if known.any {
            run.interrupt();
        }
        known.run = Some(run);
    }

    fn interrupt(&self) {
        let mut known = self.known();
        known.any = true;
        // It is full only if it can be read.
        let _ = rustix::io::write(&self.wakes, &1_u64.to_ne_bytes());
        if let Some(run) = &known.run {
            run.interrupt();
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
