//! Traces of this process: from the start, or from one SIGUSR2 to the next. Run control may order others.

use std::io;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use signal_hook::consts::SIGUSR2;
use signal_hook::iterator::{Handle, Signals};
use stamps::file::TraceError;
use stamps::switch::{self, DIRECTORY, Owner};
use terminal::complain;

use crate::cli::TraceArgs;

/// As long as it lives, SIGUSR2 begins a trace, and ends the one that goes on.
pub(crate) struct Tracing {
    signals: Handle,
    thread: Option<JoinHandle<()>>,
}

/// Why there can be no traces.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TracingError {
    #[error("signals cannot be caught: {0}")]
    Signals(#[from] io::Error),
    #[error("--trace: {0}")]
    Trace(#[from] TraceError),
}

impl Tracing {
    /// Begins a trace, if one was asked for, and waits for signals.
    pub(crate) fn start(args: &TraceArgs, process: &str) -> Result<Self, TracingError> {
        let mut caught = Signals::new([SIGUSR2])?;
        switch::prepare(args.directory.as_deref().unwrap_or(Path::new(DIRECTORY)), process);
        if args.directory.is_some() {
            switch::begin(Owner::Process, args.polls)?;
        }
        let (signals, polls) = (caught.handle(), args.polls);
        let (named, begun) = sync_channel::<()>(0);
        let thread = thread::Builder::new().name("traces".into()).spawn(move || {
            drop(named);
            for _ in caught.forever() {
                if switch::is_on(Owner::Process) { end(Owner::Process) } else { begin(polls) }
            }
            end(Owner::Process);
        })?;
        // Until it has its name, which says that this process waits for signals.
        let _ = begun.recv();
        Ok(Self { signals, thread: Some(thread) })
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.signals.close();
        // What failed was told.
        let _ = self.thread.take().map(JoinHandle::join);
        end(Owner::RunControl);
    }
}

/// The options with which processes of applications trace likewise.
pub(crate) fn options(args: &TraceArgs) -> Vec<String> {
    let directory = args.directory.iter().map(|path| format!("--trace={}", path.display()));
    directory.chain(args.polls.then(|| "--trace-polls".to_owned())).collect()
}

fn begin(polls: bool) {
    if let Err(error) = switch::begin(Owner::Process, polls) {
        complain(&format!("weir: no trace: {error}"));
    }
}

fn end(owner: Owner) {
    if let Err(error) = switch::end(owner) {
        complain(&format!("weir: the trace ends early: {error}"));
    }
}
