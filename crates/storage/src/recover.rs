//! A valid file out of a torn one.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use eformat::stream_tag::{self, Entry};
use eformat::{Adler32, CheckOptions, Event, FileChecker, FileEnd, FileHeader, FileStep, FileVersion, Problem};

use crate::clock::local_stamp;
use crate::reader::oversize;
use crate::scan::{EVENT_BYTES_MAX, ReadError, Scan};

/// What [`recover`] kept and dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The valid file.
    pub path: PathBuf,
    /// Stream as `type_name`, if the file says so.
    pub stream: Option<String>,
    /// Events in it.
    pub events_kept: u32,
    /// Of these, events whose first copy is here: those that name this stream first, or none.
    pub first_copies: u32,
    /// Bytes of the torn file behind the last whole event that were cut off.
    pub bytes_dropped: u64,
    /// Size of the valid file.
    pub bytes: u64,
    /// Adler-32 of all its bytes.
    pub adler32: u32,
    /// Why the file was cut where it was; `None` if it was complete and only had to be renamed.
    pub reason: Option<Problem>,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, events_kept, bytes_dropped, .. } = self;
        write!(f, "{}: {events_kept} events kept, {bytes_dropped} bytes dropped", path.display())?;
        match &self.reason {
            Some(problem) => write!(f, " ({problem})"),
            None => write!(f, " (the file was complete)"),
        }
    }
}

/// Why a file could not be made valid. It is as it was, or torn as it was.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// It cannot be read, or has no valid records in front of the events: then there is nothing to save.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be changed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The name of the valid file is taken.
    #[error("cannot rename to {}: it exists; move it away, then recover again", path.display())]
    Exists {
        /// The name.
        path: PathBuf,
    },
}

/// Cuts a file behind its last whole event, writes the end record and renames `.writing` to `.data`.
///
/// An event is whole if its checks are good, checksums included: after a power failure a block may have its length but
/// not its data. Everything behind the first event that is not whole is dropped. A file of another name keeps it; a
/// complete file is only renamed. Nobody may be writing the file.
///
/// # Errors
///
/// See [`RecoverError`]; recovery may be tried again.
pub fn recover(path: &Path) -> Result<Recovered, RecoverError> {
    let target = match path.extension() {
        Some(extension) if extension == "writing" => path.with_extension("data"),
        _ => path.to_owned(),
    };
    if target != path && target.try_exists().map_err(|source| io_error("look at", &target, source))? {
        return Err(RecoverError::Exists { path: target });
    }
    let whole = WholePart::find(path)?;
    if whole.reason.is_some() {
        append_end(path, &whole).map_err(|source| io_error("write", path, source))?;
    }
    if target != path {
        fs::rename(path, &target).map_err(|source| io_error("rename", path, source))?;
    }
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(|source| io_error("sync", parent, source))?;
    let end_bytes = if whole.reason.is_some() { FileEnd::BYTES as u64 } else { 0 };
    Ok(Recovered {
        stream: whole.stream().map(str::to_owned),
        events_kept: whole.events,
        first_copies: whole.first_copies,
        bytes_dropped: whole.file_bytes - whole.cut,
        bytes: whole.cut + end_bytes,
        adler32: adler32_of(&target)?,
        reason: whole.reason,
        path: target,
    })
}

/// How much of a file is good.
struct WholePart {
    header: FileHeader,
    file_bytes: u64,
    /// Where the last whole event ends; the end of the file if it is complete.
    cut: u64,
    events: u32,
    first_copies: u32,
    event_bytes: u64,
    last_block: u32,
    reason: Option<Problem>,
}

impl WholePart {
    fn find(path: &Path) -> Result<Self, ReadError> {
        let mut scan = Scan::open(path)?;
        let header = scan.header()?;
        let checker = FileChecker::new(&header, CheckOptions::default(), &mut Vec::new());
        let mut whole = Self {
            header,
            file_bytes: scan.file_bytes(),
            cut: scan.offset(),
            events: 0,
            first_copies: 0,
            event_bytes: 0,
            last_block: 0,
            reason: None,
        };
        loop {
            match scan.step()? {
                Ok(FileStep::Block { separator, range }) => {
                    let mut problems = Vec::new();
                    match oversize(&separator, range.start, EVENT_BYTES_MAX) {
                        Some(problem) => problems.push(problem),
                        None => checker.event(scan.bytes(range.clone())?, range.start, &mut problems),
                    }
                    if let Some(problem) = problems.first() {
                        whole.reason = Some(*problem);
                        return Ok(whole);
                    }
                    whole.cut = range.end;
                    whole.events += 1;
                    whole.first_copies += u32::from(is_first_copy(scan.bytes(range.clone())?, whole.stream()));
                    whole.event_bytes += u64::from(separator.block_bytes);
                    whole.last_block = separator.block_number;
                }
                Ok(FileStep::End(end)) if end.events == whole.events => {
                    whole.cut = whole.file_bytes;
                    return Ok(whole);
                }
                Ok(FileStep::End(end)) => {
                    let kind = eformat::ProblemKind::EndCount {
                        field: "events in the file",
                        found: end.events,
                        expected: whole.events,
                    };
                    whole.reason = Some(Problem { offset: whole.cut, unpacked_offset: None, kind });
                    return Ok(whole);
                }
                Ok(FileStep::Header | FileStep::Need(_)) => unreachable!("the header is read"),
                Err(problem) => {
                    whole.reason = Some(problem);
                    return Ok(whole);
                }
            }
        }
    }

    fn stream(&self) -> Option<&str> {
        self.header.metadata.as_ref().and_then(|metadata| metadata.value("Stream"))
    }

    /// The counts of the sequence are those of this file where the block numbers do not tell more; MB of earlier files
    /// cannot be known.
    fn end(&self) -> FileEnd {
        let megabytes = FileEnd::megabytes(self.event_bytes);
        let numbered = self.header.start.version != FileVersion::V2 && self.events > 0;
        FileEnd {
            closed: local_stamp(),
            events: self.events,
            megabytes,
            sequence_events: if numbered { self.last_block } else { self.events },
            sequence_megabytes: megabytes,
            status: LAST_OF_SEQUENCE,
        }
    }
}

/// Whether an event in a file of this stream names it before all others (`type_name`); one that names none is in no other.
fn is_first_copy(event: &[u8], stream: Option<&str>) -> bool {
    let (Ok(event), Some(stream)) = (Event::parse(event), stream) else { return true };
    match stream_tag::decode(event.stream_tags()).first() {
        Some(Entry::Tag(tag)) => stream == format!("{}_{}", tag.stream_type(), tag.name()),
        Some(Entry::Foreign(_)) | None => true,
    }
}

fn append_end(path: &Path, whole: &WholePart) -> io::Result<()> {
    let mut record = Vec::new();
    whole.end().emit(&mut record);
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(whole.cut)?;
    file.seek(SeekFrom::Start(whole.cut))?;
    file.write_all(&record)?;
    file.sync_data()
}

fn adler32_of(path: &Path) -> Result<u32, ReadError> {
    let mut scan = Scan::open(path)?;
    let mut sum = Adler32::new();
    scan.sum(0..scan.file_bytes(), &mut sum)?;
    Ok(sum.value())
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> RecoverError {
    RecoverError::Io { action, path: path.to_owned(), source }
}

const LAST_OF_SEQUENCE: u32 = 1;
