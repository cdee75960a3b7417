//! SIGINT and SIGTERM end a run.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use partition::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::{Handle, Signals};

/// As long as it lives, the first SIGINT or SIGTERM stops a run in order, and the second one forces the stop. Behind it, as before it,
/// they end the program. Runs of a program that catches them so follow one another.
pub struct Interrupts {
    between_runs: Arc<AtomicBool>,
    signals: Handle,
    caught: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Interrupts {
    /// Catches signals for the run of this control.
    ///
    /// # Errors
    /// The system lets nobody catch them.
    pub fn end(control: Control) -> io::Result<Self> {
        Self::call(move || control.interrupt())
    }

    /// Catches signals, and calls this for each.
    ///
    /// # Errors
    /// The system lets nobody catch them.
    pub fn call(mut interrupt: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let between_runs = between_runs()?;
        let mut coming = Signals::new(ENDING)?;
        let signals = coming.handle();
        let caught = Arc::new(AtomicBool::new(false));
        let catches = Arc::clone(&caught);
        let thread = thread::Builder::new().name("interrupts".into()).spawn(move || {
            coming.forever().for_each(|_| {
                catches.store(true, Ordering::SeqCst);
                interrupt();
            });
        })?;
        between_runs.store(false, Ordering::SeqCst);
        Ok(Self { between_runs, signals, caught, thread: Some(thread) })
    }

    /// Whether there was a signal.
    pub fn any(&self) -> bool {
        self.caught.load(Ordering::SeqCst)
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.between_runs.store(true, Ordering::SeqCst);
        self.signals.close();
        // It only counts signals: it cannot have failed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Whether no run is there to be ended. A signal that was caught once is ignored when nobody catches it any more, unless this says
/// otherwise.
fn between_runs() -> io::Result<Arc<AtomicBool>> {
    static BETWEEN_RUNS: Mutex<Option<Arc<AtomicBool>>> = Mutex::new(None);
    let mut known = BETWEEN_RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*known {
        return Ok(Arc::clone(known));
    }
    let between_runs = Arc::new(AtomicBool::new(true));
    for signal in ENDING {
        register_conditional_default(signal, Arc::clone(&between_runs))?;
    }
    Ok(Arc::clone(known.insert(between_runs)))
}

const ENDING: [i32; 2] = [SIGINT, SIGTERM];
