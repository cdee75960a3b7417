//! A file that is complete.

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

/// Added to the sequence number of a name that is taken (note §11.9).
pub(crate) const NAME_CLASH_STEP: u32 = 100;
