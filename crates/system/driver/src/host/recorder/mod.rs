//! The thread that writes files: a write may take as long as the disk likes without holding up the scheduler.

mod event;
mod files;
mod streams;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use base::time::Time;
use configuration::Partition;
use dataflow::component::{Outcome, Ticket, Work};
use rol::ReplayFacts;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use transport::waker::Waker;

pub use self::event::EventMaker;
pub use self::files::file_record;
pub use self::streams::RecordedStreams;

use self::files::Files;
use crate::assembly::Assembly;

/// A recording thread; dropping it ends the thread after the work it was given.
pub(crate) struct Recorder {
    jobs: Option<SyncSender<Job>>,
    done: Receiver<Done>,
    /// Finished pieces that were not taken yet.
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// A piece of work, and when it was given.
type Job = (Time, Ticket, Work);

/// A finished piece of work, with words for people if it went wrong.
pub(crate) type Done = (Ticket, Outcome, Option<String>);

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    #[error("output.directory {}: {cause}; expected a directory that can be written to", path.display())]
    Directory { path: PathBuf, cause: std::io::Error },
    #[error("stream {stream}: {cause}")]
    Stream { stream: String, cause: eformat::stream_tag::BadStreamTag },
    #[error("stream.{index}.robs: no ROB of this run is in {selection}; expected some of {robs}")]
    NoRob { index: usize, selection: String, robs: String },
    #[error("the recording thread cannot be started: {0}")]
    Thread(std::io::Error),
}

impl Recorder {
    /// Starts the thread. `application` is part of the file names.
    pub(crate) fn start(
        assembly: &Assembly,
        application: &str,
        replay: Option<&ReplayFacts>,
        waker: Waker,
    ) -> Result<Self, RecorderError> {
        let partition = &assembly.partition;
        let directory = Path::new(&partition.output.directory);
        let failed = |cause| RecorderError::Directory { path: directory.to_owned(), cause };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let rights = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, directory, rights, AtFlags::EACCESS).map_err(|errno| failed(errno.into()))?;
        let mut files = Files::new(assembly, application, replay)?;
        let bound = jobs_max(partition);
        let (jobs, todo) = sync_channel::<Job>(bound);
        let (finished, done) = sync_channel(bound);
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        let work = move || {
            for (given, ticket, work) in todo {
                let (outcome, complaint) = files.work(given, work);
                if finished.send((ticket, outcome, complaint)).is_err() {
                    return;
                }
                counted.fetch_add(1, Ordering::Release);
                waker.wake();
            }
            files.end();
        };
        let builder = std::thread::Builder::new().name(format!("{application} files"));
        let thread = Some(builder.spawn(work).map_err(RecorderError::Thread)?);
        Ok(Self { jobs: Some(jobs), done, waiting, thread })
    }

    /// Gives the thread work: `TakeOver`, `Record`, `Sync` or `Close`.
    ///
    /// # Panics
    /// If there is more work than the slots of the event filter allow.
    pub(crate) fn begin(&self, now: Time, ticket: Ticket, work: Work) {
        let jobs = self.jobs.as_ref().expect("open until dropped");
        jobs.try_send((now, ticket, work)).expect("the recording thread lives, and the filter's slots bound its work");
    }

    /// The next piece of work that is finished.
    pub(crate) fn next_done(&self) -> Option<Done> {
        let done = self.done.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(done)
    }

    /// Whether a finished piece of work waits.
    pub(crate) fn has_done(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing more to say.
            let _ = thread.join();
        }
    }
}

/// Every filter daemon may have all its slots in recording, twice if it had to ask again; besides, one sync, one close.
fn jobs_max(partition: &Partition) -> usize {
    let slots = |ef: configuration::Ef| ef.count as usize * ef.slots.max(partition.sfi.count) as usize;
    2 * partition.event_filter().map_or(0, slots) + 2
}
