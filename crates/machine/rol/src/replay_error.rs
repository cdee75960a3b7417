//! Why recorded files cannot be replayed.

use std::path::PathBuf;

use eformat::{FileVersion, Problem, SourceId};
use storage::ReadError;

/// Why recorded files cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A file that cannot be read, is no RAW file, or is damaged; a torn one can be repaired by `weir file recover`.
    #[error("{0}{remedy}", remedy = remedy(.0))]
    Read(#[from] ReadError),
    /// The file system refused.
    #[error("cannot read {} at byte {offset}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What the system says.
        source: std::io::Error,
    },
    /// An event that cannot be taken apart.
    #[error("{}: event at byte {offset}: {problem}", path.display())]
    Event {
        /// The file.
        path: PathBuf,
        /// Where its data block begins.
        offset: u64,
        /// What is wrong, with an offset in the event.
        problem: Problem,
    },
    /// A ROB whose source identifier has a meaning of ours.
    #[error(
        "{}: event at byte {offset}: ROB {source_id}, number {occurrence} of this source: expected identifiers below 0x01000000 other than 0x00ff0000, and at most 256 ROBs of each in an event",
        path.display()
    )]
    Source {
        /// The file.
        path: PathBuf,
        /// Where the data block of the event begins.
        offset: u64,
        /// The source identifier.
        source_id: SourceId,
        /// How many ROBs of this source stand before it in the event.
        occurrence: u32,
    },
    /// Files of different formats cannot become one output.
    #[error("{}: file version {}, but the first file has {}: replay them one by one", path.display(), found.to_word(), expected.to_word())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: FileVersion,
        /// The version of the first file.
        expected: FileVersion,
    },
    /// Files of different runs cannot become one run.
    #[error("{}: it is of run {found}, but the first file of run {expected}: replay them one by one", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// Its run number.
        found: u32,
        /// The run number of the first file.
        expected: u32,
    },
    /// An event whose ids cannot be changed.
    #[error(
        "{}: event at byte {offset}: its payload is compressed, so that input.repeat cannot give it fresh ids: replay the file once, or one that is not compressed",
        path.display()
    )]
    Compressed {
        /// The file.
        path: PathBuf,
        /// Where the data block of the event begins.
        offset: u64,
    },
    /// The file is not what it was when the run began.
    #[error("{}: event at byte {offset}: the file was changed since it was opened", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Where its data block begins.
        offset: u64,
    },
    /// More links than a partition can have.
    #[error("{}: event at byte {offset}: more than {limit} different sources of fragments", path.display())]
    TooManySources {
        /// The file.
        path: PathBuf,
        /// Where the data block of the event begins.
        offset: u64,
        /// The limit.
        limit: usize,
    },
    /// More regions of interest than are kept in memory.
    #[error("{}: event at byte {offset}: more than {limit} regions of interest in all files", path.display())]
    TooManyRois {
        /// The file.
        path: PathBuf,
        /// Where the data block of the event begins.
        offset: u64,
        /// The limit.
        limit: u32,
    },
    /// More regions of interest in an event than level 1 may give.
    #[error("{}: event at byte {offset}: expected at most {limit} regions of interest, found {found}", path.display())]
    EventRois {
        /// The file.
        path: PathBuf,
        /// Where the data block of the event begins.
        offset: u64,
        /// How many there are.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// There is nothing to send.
    #[error("no event in {files}")]
    NoEvents {
        /// The files.
        files: String,
    },
}

/// What to do about a file that begins well.
fn remedy(error: &ReadError) -> String {
    match error {
        ReadError::Bad { path, problem } if problem.offset > 0 => {
            format!("; `weir file recover {}` makes a file of what is whole in it", path.display())
        }
        _ => String::new(),
    }
}
