//! What became of what was written: files that are complete, and what is in none.

use std::path::PathBuf;

/// A file that is complete and has its final name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedFile {
    /// The `.data` file.
    pub path: PathBuf,
    /// Stream as `type_name`.
    pub stream: String,
    /// Events in the file.
    pub events: u32,
    /// Of these, events whose first copy is here: summed over all files of a run, its distinct events.
    pub first_copies: u32,
    /// Size of the file.
    pub bytes: u64,
    /// Adler-32 of all bytes of the file (note §11.8).
    pub adler32: u32,
}

/// What was written and is in no file that is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Events whose first copy it was.
    pub first_copies: u64,
    /// Copies of events.
    pub copies: u64,
    /// Bytes of these copies.
    pub event_bytes: u64,
}

/// Added to the sequence number of a name that is taken (note §11.9).
pub(crate) const NAME_CLASH_STEP: u32 = 100;
