//! The next life of a writer takes up what the former one has left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use eformat::Adler32;

use crate::backend::{Backend, Disk};
use crate::closed_file::ClosedFile;
use crate::closed_file::Unfinished;
use crate::journal::{Chronicle, FileHistory, JournalError, StreamHistory, forget};
use crate::output::Output;
use crate::scan::{ReadError, Scan};
use crate::write_error::WriteError;
use crate::writer::{OpenFile, SequenceCounts, Writer};
use crate::writer_config::WriterConfig;

/// What a former life of a writer has left, by [`Streams::resume`](crate::Streams::resume).
#[derive(Debug, Default)]
pub struct Resumed {
    /// Numbers of events that are in all their files, those at or above the newest bound that the former life was told.
    pub events: Vec<u64>,
    /// All files that the former life has closed, told to others or not.
    pub closed: Vec<ClosedFile>,
    /// All events in all files, each once.
    pub first_copies: u64,
    /// The same, with all their copies.
    pub copies: u64,
    /// Bytes of these copies.
    pub event_bytes: u64,
    /// What was in files that the former life has set aside. [`Streams::unfinished`](crate::Streams::unfinished) goes on with it.
    pub set_aside: Unfinished,
}

/// Why the files of a former life cannot be taken up. They are as they were; it may be tried again.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be changed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The list of the files of the run cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Journal {
        /// The list.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The list of the files of the run is damaged.
    #[error(
        "{}, line {line}: damaged; expected the list of the files of this run; finish them with `weir file recover`",
        path.display()
    )]
    Damaged {
        /// The list.
        path: PathBuf,
        /// Where it is damaged, from 1.
        line: usize,
    },
    /// A file of the run is shorter than what was written to it, or was taken away.
    #[error("{}: {found_bytes:?} bytes are there, expected at least {expected_bytes}; put the file back", path.display())]
    Short {
        /// The file.
        path: PathBuf,
        /// Its size; `None` if it is not there.
        found_bytes: Option<u64>,
        /// Bytes that were written.
        expected_bytes: u64,
    },
}

/// Closes the files of a writer that does not come again, by the journal that it has kept
/// ([`Streams::keep_journal`](crate::Streams::keep_journal)). Those that are open are cut behind the last event that is in all its streams.
/// All files of that run are given, durable. Then the journal is removed. Nobody may be writing them.
///
/// # Errors
///
/// See [`ResumeError`]; it may be tried again.
pub fn finish_left(journal: &Path) -> Result<Vec<ClosedFile>, ResumeError> {
    let parent = journal.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = parent.unwrap_or(Path::new(".")).to_owned();
    let config = WriterConfig { directory, durable: true, ..WriterConfig::default() };
    let (writers, mut closed) = writers(&config, Chronicle::read(journal)?, &|| Box::new(Disk))?;
    for mut writer in writers {
        closed.extend(writer.finish()?);
    }
    forget(&Disk, journal)?;
    Ok(closed)
}

/// The writers of a chronicle, in its order, with what they have closed before.
pub(crate) fn writers(
    config: &WriterConfig,
    chronicle: Chronicle,
    backend: &dyn Fn() -> Box<dyn Backend>,
) -> Result<(Vec<Writer>, Vec<ClosedFile>), ResumeError> {
    let (mut writers, mut closed) = (Vec::new(), Vec::new());
    for stream in chronicle.streams {
        writers.push(writer(config, stream, backend(), &mut closed)?);
    }
    if config.durable && !writers.is_empty() {
        let directory = &config.directory;
        backend().sync_directory(directory).map_err(|source| WriteError::io("sync", directory, source))?;
    }
    Ok((writers, closed))
}

fn writer(
    config: &WriterConfig,
    StreamHistory { files, set_aside }: StreamHistory,
    backend: Box<dyn Backend>,
    all_closed: &mut Vec<ClosedFile>,
) -> Result<Writer, ResumeError> {
    let mut sequence = SequenceCounts::new(&config.dialect);
    let (mut name, mut open) = (files[0].name.clone(), None);
    for mut file in files {
        let writing = config.directory.join(file.name.writing());
        let bytes = size(&writing)?;
        name = file.name.clone();
        if !file.made {
            // One that is longer is somebody else's.
            if bytes.is_some_and(|bytes| bytes <= file.header_bytes) {
                backend.remove(&writing).map_err(|source| WriteError::io("remove", &writing, source))?;
            }
            continue;
        }
        sequence.add(file.events, file.event_bytes());
        match bytes.filter(|_| file.closed.is_none()) {
            Some(bytes) => open = Some(reopen(config, &*backend, &file, writing, bytes)?),
            None => {
                close(&mut file, config)?;
                all_closed.extend(file.closed_file(&config.directory));
                sequence.files += 1;
                name = name.with_sequence(name.sequence() + 1);
            }
        }
    }
    let (stream_type, stream_name) = (name.stream_type().to_owned(), name.stream_name().to_owned());
    let config = WriterConfig { stream_type, stream_name, ..config.clone() };
    Ok(Writer::resumed(config, backend, name, open, sequence, set_aside))
}

/// The open file, cut behind its last whole event.
fn reopen(
    config: &WriterConfig,
    backend: &dyn Backend,
    file: &FileHistory,
    path: PathBuf,
    found_bytes: u64,
) -> Result<OpenFile, ResumeError> {
    let expected_bytes = file.end;
    if found_bytes < expected_bytes {
        return Err(ResumeError::Short { path, found_bytes: Some(found_bytes), expected_bytes });
    }
    let sum = sum_of(&path, file.end)?;
    let opened = backend.reopen(&path).map_err(|source| WriteError::io("open", &path, source))?;
    let mut output = Output::resumed(opened, file.end, sum);
    output.mend().map_err(|source| WriteError::io("cut", &path, source))?;
    if config.durable {
        output.sync(backend, &path).map_err(|source| WriteError::io("sync", &path, source))?;
    }
    Ok(OpenFile::resumed(path, output, file.events, file.first_copies, file.event_bytes()))
}

/// Completes what is known of a file that has its last name.
fn close(file: &mut FileHistory, config: &WriterConfig) -> Result<(), ResumeError> {
    if file.closed.is_some() {
        return Ok(());
    }
    let path = config.directory.join(file.name.data());
    match size(&path)? {
        Some(bytes) if bytes >= file.end => {
            file.closed = Some((bytes, sum_of(&path, bytes)?.value()));
            Ok(())
        }
        found_bytes => Err(ResumeError::Short { path, found_bytes, expected_bytes: file.end }),
    }
}

fn size(path: &Path) -> Result<Option<u64>, ResumeError> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ReadError::Io { path: path.to_owned(), source }.into()),
    }
}

fn sum_of(path: &Path, bytes: u64) -> Result<Adler32, ReadError> {
    let mut sum = Adler32::new();
    Scan::open(path)?.sum(0..bytes, &mut sum)?;
    Ok(sum)
}

impl From<JournalError> for ResumeError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Io { path, source } => Self::Journal { path, source },
            JournalError::Line { path, line } => Self::Damaged { path, line },
        }
    }
}
