//! What the owner says about its processing tasks.

use core::time::Duration;
use std::ffi::OsString;

use transport::shared_memory::SharedMemoryError;

use crate::protocol::{DEPTH_MAX, FRAME_BYTES_MAX};

/// What the owner says about its processing tasks.
#[derive(Clone, Debug)]
pub struct TasksOptions {
    /// Name in messages, such as the name of the owning application.
    pub name: String,
    /// Program and arguments of a task; it is the task or becomes it (`exec`), it does not start it as a child.
    pub command: Vec<OsString>,
    /// Variables that the tasks get besides those of this process.
    pub environment: Vec<(OsString, OsString)>,
    /// Number of tasks.
    pub count: usize,
    /// Number of events that are submitted and not taken back at a time; 32 per task keep fast tasks busy.
    pub slots: usize,
    /// Length of a slot in bytes, rounded up to whole cache lines. It is the largest event with
    /// [`HEAD_BYTES`](crate::event::HEAD_BYTES), [`INDEX_BYTES_PER_FRAGMENT`](crate::event::INDEX_BYTES_PER_FRAGMENT)
    /// per fragment, and 4 bytes per missing ROB.
    pub slot_bytes: usize,
    /// How long a task may work on an event, counted from when it begins it; found after at most a quarter more.
    pub timeout: Duration,
    /// How long a task may take to start, the user's constructor included.
    pub start_timeout: Duration,
    /// Private memory that a task may have, its program and libraries included (`RLIMIT_DATA`): a Python interpreter
    /// with numpy needs some 60 MB by itself.
    pub memory_limit_bytes: Option<u64>,
    /// Names of the streams that a task may choose, at most 32.
    pub streams: Vec<String>,
    /// Handed to each task as it is; JSON for tasks in Python. At most [`SETUP_BYTES_MAX`] with the streams.
    pub setup: String,
}

impl Default for TasksOptions {
    fn default() -> Self {
        Self {
            name: "ef".into(),
            command: Vec::new(),
            environment: Vec::new(),
            count: 1,
            slots: DEPTH_MAX,
            slot_bytes: 1 << 20,
            timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(60),
            memory_limit_bytes: None,
            streams: Vec::new(),
            setup: String::new(),
        }
    }
}

/// Bytes of stream names and setup together, as JSON strings.
pub const SETUP_BYTES_MAX: usize = FRAME_BYTES_MAX - 4096;

/// The largest number of streams.
pub const STREAMS_MAX: usize = 32;

/// Why the tasks do not start.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// Options that make no tasks.
    #[error("processing tasks of {name}: {problem}")]
    Options {
        /// Name of the tasks.
        name: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// No memory for events.
    #[error("processing tasks of {name}: {cause}")]
    Memory {
        /// Name of the tasks.
        name: String,
        /// Why.
        cause: SharedMemoryError,
    },
    /// The kernel refuses a thread, a socket or a pipe.
    #[error("processing tasks of {name}: {cause}")]
    System {
        /// Name of the tasks.
        name: String,
        /// What it says.
        cause: std::io::Error,
    },
    /// The program cannot be started.
    #[error("{task}: {program} cannot be started: {cause}; expected a program that exists and may be executed")]
    Program {
        /// Name of the task.
        task: String,
        /// Its program.
        program: String,
        /// What the kernel says.
        cause: std::io::Error,
    },
    /// The program started and is not ready.
    #[error("{task} did not start: {what}{}", last_words(tail))]
    Start {
        /// Name of the task.
        task: String,
        /// Its own words, or how it ended.
        what: String,
        /// The last lines of its error output.
        tail: String,
    },
}

pub(crate) fn last_words(tail: &str) -> String {
    if tail.is_empty() { String::new() } else { format!("\nThe last lines that it printed:\n{tail}") }
}
