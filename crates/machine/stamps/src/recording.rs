//! Recording the stamps of this process to a file, by a thread of its own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::file::TraceError;
use crate::recorder::{arm, disarm, source};
use crate::writer::TraceWriter;

/// Stamps are armed as long as it lives, and go to a file.
#[must_use]
pub struct Recording {
    path: PathBuf,
    stop: SyncSender<()>,
    thread: JoinHandle<Result<PathBuf, TraceError>>,
}

impl Recording {
    /// Arms the stamps and begins a file in this directory, named after the process.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn start(directory: &Path, process: &str) -> Result<Self, TraceError> {
        arm(STAMPS_PER_THREAD);
        let begun = source().ok_or_else(|| io::Error::other("stamps are not armed"));
        let begun = begun.map_err(|cause| TraceError::File { path: directory.to_owned(), cause });
        let started = begun.and_then(|source| TraceWriter::create(directory, process, source)).and_then(Self::of);
        started.inspect_err(|_| disarm())
    }

    /// Of this writer, by a thread of its own.
    pub(crate) fn of(writer: TraceWriter) -> Result<Self, TraceError> {
        let (stop, stopped) = sync_channel(1);
        let path = writer.path().to_owned();
        let thread = thread::Builder::new().name(THREAD.into()).spawn(move || record(writer, &stopped));
        match thread {
            Ok(thread) => Ok(Self { path, stop, thread }),
            Err(cause) => Err(TraceError::File { path, cause }),
        }
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing more is written, although nobody has ended it: the disk takes no more.
    pub fn is_broken(&self) -> bool {
        self.thread.is_finished()
    }

    /// Disarms the stamps, and says where the file is.
    ///
    /// # Errors
    /// It could not be written.
    ///
    /// # Panics
    /// If the thread has.
    pub fn end(self) -> Result<PathBuf, TraceError> {
        drop(self.stop);
        self.thread.join().expect("the thread of a trace does not panic")
    }
}

fn record(mut writer: TraceWriter, stopped: &Receiver<()>) -> Result<PathBuf, TraceError> {
    while stopped.recv_timeout(BETWEEN_WRITES) == Err(RecvTimeoutError::Timeout) {
        if let Err(error) = writer.write() {
            disarm();
            return Err(error);
        }
    }
    disarm();
    writer.finish()
}

/// The name of the thread that writes.
pub const THREAD: &str = "trace";

/// What a thread may stamp between two writes without losing any: 13 million a second, in six megabytes.
const STAMPS_PER_THREAD: usize = 1 << 18;
const BETWEEN_WRITES: Duration = Duration::from_millis(20);
