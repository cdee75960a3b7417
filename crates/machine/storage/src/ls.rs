//! One line about a file, from its first and last records only.

use std::fmt;
use std::path::{Path, PathBuf};

use eformat::{FileEnd, FileHeader, Parsed};

use crate::scan::{ReadError, Scan};

/// What the records at both ends of a file say; its events are not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The records in front of the events.
    pub header: FileHeader,
    /// The file end record; `None` if the file was not closed.
    pub end: Option<FileEnd>,
}

/// Looks at the first records and the last one.
///
/// # Errors
///
/// The file cannot be read, or what is in front of the events is damaged.
pub fn ls(path: &Path) -> Result<Listing, ReadError> {
    let mut scan = Scan::open(path)?;
    let header = scan.header()?;
    let bytes = scan.file_bytes();
    let end_start = bytes.saturating_sub(FileEnd::BYTES as u64).max(scan.offset());
    let end = match FileEnd::parse(scan.bytes(end_start..bytes)?) {
        Ok(Parsed::Done(end, _)) if end.closed.date.to_word() != 0 => Some(end),
        _ => None,
    };
    Ok(Listing { path: path.to_owned(), bytes, header, end })
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileHeader { start, names, metadata, run } = &self.header;
        let version = start.version.to_word();
        write!(f, "{}  v{version}  run {}", self.path.display(), run.run_number)?;
        if let Some(stream) = metadata.as_ref().and_then(|metadata| metadata.value("Stream")) {
            write!(f, "  {stream}")?;
        }
        write!(f, "  {}  {}", names.application, start.opened)?;
        match &self.end {
            Some(end) => write!(f, "  {} events", end.events)?,
            None => write!(f, "  not closed")?,
        }
        write!(f, "  {} bytes", self.bytes)
    }
}
