//! SIGINT and SIGTERM end a run.

use std::io;
use std::thread::{self, JoinHandle};

use partition::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// As long as it lives, the first SIGINT or SIGTERM stops a run in order, and the second one forces the stop.
pub struct Interrupts {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Interrupts {
    /// Catches signals for the run of this control.
    ///
    /// # Errors
    /// The system lets nobody catch them.
    pub fn end(control: Control) -> io::Result<Self> {
        let mut caught = Signals::new([SIGINT, SIGTERM])?;
        let signals = caught.handle();
        let thread = thread::Builder::new().name("interrupts".into()).spawn(move || {
            caught.forever().for_each(|_| control.interrupt());
        })?;
        Ok(Self { signals, thread: Some(thread) })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.signals.close();
        // It only counts signals: it cannot have failed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
