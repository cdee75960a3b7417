//! Traces of this process: from the start, or from one SIGUSR2 to the next.

use std::io;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use signal_hook::consts::SIGUSR2;
use signal_hook::iterator::{Handle, Signals};
use stamps::file::TraceError;
use stamps::recorder::stamp_polls;
use stamps::recording::Recording;
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
        stamp_polls(args.polls);
        let mut caught = Signals::new([SIGUSR2])?;
        let mut recording = args.directory.as_deref().map(|to| Recording::start(to, process)).transpose()?;
        let (directory, process) = (directory(args), process.to_owned());
        let signals = caught.handle();
        let thread = thread::Builder::new().name("traces".into()).spawn(move || {
            for _ in caught.forever() {
                recording = match recording.take() {
                    Some(recording) => end(recording),
                    None => begin(&directory, &process),
                };
            }
            recording.map(end);
        })?;
        Ok(Self { signals, thread: Some(thread) })
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.signals.close();
        // What failed was told.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The options with which processes of applications trace likewise.
pub(crate) fn options(args: &TraceArgs) -> Vec<String> {
    let directory = args.directory.iter().map(|path| format!("--trace={}", path.display()));
    directory.chain(args.polls.then(|| "--trace-polls".to_owned())).collect()
}

fn begin(directory: &Path, process: &str) -> Option<Recording> {
    Recording::start(directory, process).inspect_err(|error| complain(&format!("weir: no trace: {error}"))).ok()
}

fn end(recording: Recording) -> Option<Recording> {
    if let Err(error) = recording.end() {
        complain(&format!("weir: the trace ends early: {error}"));
    }
    None
}

fn directory(args: &TraceArgs) -> PathBuf {
    args.directory.clone().unwrap_or_else(|| DIRECTORY.into())
}

const DIRECTORY: &str = "trace";
