//! The owner's side: what the driver of an event-filter daemon holds.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::fd::AsFd;
use transport::shared_memory::{SLOT_ALIGN_BYTES, SharedSlots};
use transport::waker::Waker;

use crate::bell::Bell;
use crate::driver::{Done, Driver, Ends, Shared};
use crate::event::{EventHead, EventWriter, HEAD_BYTES, Unfit};
use crate::notice::Notice;
use crate::options::{SETUP_BYTES_MAX, STREAMS_MAX, TasksError, TasksOptions};
use crate::protocol::Given;
use crate::verdict::{FailReason, Verdict};
use crate::worker::Job;

/// The processing tasks of an owner. Dropping it ends and reaps them, whatever they do, within about a second.
///
/// To be used by one thread: submit events, take verdicts and notices. A thread of its own looks after the processes and
/// wakes the owner.
pub struct Tasks {
    slots: SharedSlots,
    free: Vec<u32>,
    writer: EventWriter,
    sequence: u64,
    jobs: SyncSender<Job>,
    done: Receiver<Done>,
    /// Verdicts on events that no task saw.
    at_once: VecDeque<(u64, Verdict)>,
    notices: Receiver<Notice>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Tasks {
    /// Starts the tasks and waits until each is ready.
    ///
    /// # Errors
    /// Options that make no tasks; a program that is not there. A task that ends, complains, or is not ready in time, with
    /// its last words. All that were started are gone then.
    ///
    /// # Panics
    /// If the thread that looks after the tasks panics.
    pub fn start(options: TasksOptions, waker: Waker) -> Result<Self, TasksError> {
        check(&options)?;
        let name = options.name.clone();
        let system = |cause| TasksError::System { name: name.clone(), cause };
        let slot_bytes = options.slot_bytes.next_multiple_of(SLOT_ALIGN_BYTES);
        let slots = SharedSlots::new("weir events", options.slots, slot_bytes)
            .map_err(|cause| TasksError::Memory { name: name.clone(), cause })?;
        let shared = Arc::new(Shared {
            bell: Bell::new().map_err(system)?,
            stop: AtomicBool::new(false),
            done_waiting: AtomicUsize::new(0),
            notices_waiting: AtomicUsize::new(0),
            restarts: AtomicU64::new(0),
        });
        let (jobs, todo) = sync_channel(options.slots);
        let (finished, done) = sync_channel(options.slots);
        let (news, notices) = sync_channel(NOTICES_MAX);
        let (started, start) = sync_channel(1);
        let ends = Ends { jobs: todo, done: finished, notices: news, started };
        let free = (0..u32::try_from(options.slots).expect("checked with the slots")).rev().collect();
        let memory = slots.as_fd().try_clone_to_owned().map_err(system)?;
        let driver = Driver::new(options, memory, slot_bytes, Arc::clone(&shared), waker, ends);
        let builder = std::thread::Builder::new().name(format!("{name} tasks"));
        // The kernel ends the tasks when the thread that started them ends: it starts them, and lives as long as they do.
        let thread = builder.spawn(move || driver.run()).map_err(system)?;
        let (writer, at_once) = (EventWriter::default(), VecDeque::new());
        let tasks =
            Self { slots, free, writer, sequence: 0, jobs, done, at_once, notices, shared, thread: Some(thread) };
        start.recv().expect("the thread tells how the start went before it ends").map(|()| tasks)
    }

    /// Copies an event into a free slot and queues it. `parts` are its ROB fragments, each whole in one part.
    ///
    /// An event that does not fit, or is none, has its verdict at once.
    ///
    /// # Panics
    /// If no slot is free: the caller takes no more events than [`has_free`](Self::has_free) allows.
    pub fn submit<'p>(&mut self, ticket: u64, head: &EventHead<'_>, parts: impl IntoIterator<Item = &'p [u8]>) {
        let slot = self.free.pop().expect("the caller submits no more events than there are slots");
        match self.writer.write(self.slots.slot_mut(slot as usize), head, parts) {
            Ok(len) => {
                self.sequence += 1;
                let len_bytes = u32::try_from(len).expect("a slot has fewer than 2^32 bytes");
                let given = Given { sequence: self.sequence, slot, len_bytes };
                let job = Job { ticket, given, witnessed: 0, alone: false };
                self.jobs.try_send(job).expect("the thread lives, and there is a place for each slot");
                self.shared.bell.ring();
            }
            Err(unfit) => {
                self.free.push(slot);
                let reason = match unfit {
                    Unfit::TooLarge { .. } => FailReason::TooLarge,
                    Unfit::Malformed { .. } => FailReason::Malformed,
                };
                self.at_once.push_back((ticket, Verdict::Failed { reason, message: unfit.to_string() }));
            }
        }
    }

    /// Whether an event can be submitted now.
    pub fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// The next event that has a verdict. Not in the order of submission.
    pub fn next_done(&mut self) -> Option<(u64, Verdict)> {
        self.at_once.pop_front().or_else(|| {
            let done = self.done.try_recv().ok()?;
            Some(self.take(done))
        })
    }

    /// As [`next_done`](Self::next_done), but waits for it; `None` when that takes longer than `timeout`.
    ///
    /// # Panics
    /// If the thread that looks after the tasks has panicked.
    pub fn wait_done(&mut self, timeout: Duration) -> Option<(u64, Verdict)> {
        self.next_done().or_else(|| match self.done.recv_timeout(timeout) {
            Ok(done) => Some(self.take(done)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("the thread of the tasks lives as long as they do"),
        })
    }

    /// Whether a verdict waits.
    pub fn has_done(&self) -> bool {
        !self.at_once.is_empty() || self.shared.done_waiting.load(Ordering::Acquire) > 0
    }

    /// The next piece of news; when many are not taken, later ones are left out and their number is told.
    pub fn next_notice(&mut self) -> Option<Notice> {
        let notice = self.notices.try_recv().ok()?;
        self.shared.notices_waiting.fetch_sub(1, Ordering::Relaxed);
        Some(notice)
    }

    /// As [`next_notice`](Self::next_notice), but waits for it; `None` when that takes longer than `timeout`.
    pub fn wait_notice(&mut self, timeout: Duration) -> Option<Notice> {
        let notice = self.notices.recv_timeout(timeout).ok()?;
        self.shared.notices_waiting.fetch_sub(1, Ordering::Relaxed);
        Some(notice)
    }

    /// Whether a piece of news waits.
    pub fn has_notice(&self) -> bool {
        self.shared.notices_waiting.load(Ordering::Acquire) > 0
    }

    /// How often a task ended and had to be started again.
    pub fn restarts(&self) -> u64 {
        self.shared.restarts.load(Ordering::Relaxed)
    }

    fn take(&mut self, done: Done) -> (u64, Verdict) {
        self.shared.done_waiting.fetch_sub(1, Ordering::Relaxed);
        self.free.push(done.slot);
        (done.ticket, done.verdict)
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing more to say.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tasks({} of {} slots free)", self.free.len(), self.slots.slots())
    }
}

fn check(options: &TasksOptions) -> Result<(), TasksError> {
    let json_bytes = |text: &String| serde_json::to_string(text).expect("a string is JSON").len() + 1;
    let setup_bytes: usize = options.streams.iter().chain([&options.setup, &options.name]).map(json_bytes).sum();
    let problem = if options.command.is_empty() {
        "the command is empty, expected a program".to_owned()
    } else if options.count == 0 || options.slots == 0 {
        "expected at least one task and one slot".to_owned()
    } else if options.slot_bytes < HEAD_BYTES {
        format!("slots of {} bytes, expected at least {HEAD_BYTES}", options.slot_bytes)
    } else if options.streams.len() > STREAMS_MAX {
        format!("{} streams, expected at most {STREAMS_MAX}", options.streams.len())
    } else if setup_bytes > SETUP_BYTES_MAX {
        format!("the setup has {setup_bytes} bytes, expected at most {SETUP_BYTES_MAX}")
    } else {
        return Ok(());
    };
    Err(TasksError::Options { name: options.name.clone(), problem })
}

const NOTICES_MAX: usize = 256;
