//! Records the events of one stream in a sequence of files (format note §11).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use eformat::{DataSeparator, FileEnd, FileName, event_size_bytes};

use crate::backend::{Backend, Disk, OutputFile};
use crate::closed_file::{ClosedFile, NAME_CLASH_STEP, Unfinished};
use crate::journal::Journal;
use crate::output::{Mark, Output};
use crate::write_error::WriteError;
use crate::writer_config::{Dialect, WriterConfig};

/// Writes events to files `….writing`, which become `….data` when they are closed.
///
/// Every event is either in a file completely or not at all. After a failure the file is cut back to the last whole
/// event. So the same event may be tried again, for example when a full disk has space again. A writer that is dropped
/// without [`finish`](Self::finish) leaves its `.writing` file for [`recover`](crate::recover).
pub struct Writer {
    config: WriterConfig,
    backend: Box<dyn Backend>,
    /// Name of the open file, or else the name to try next.
    name: FileName,
    open: Option<OpenFile>,
    sequence: SequenceCounts,
    closed: Vec<ClosedFile>,
    /// What is in files that were set aside, or was cut off.
    lost: Unfinished,
    remarks: Vec<String>,
}

impl Writer {
    /// A writer to the disk. The first file is made with the first event.
    ///
    /// # Errors
    ///
    /// Parts that cannot be in a file name, or a directory that cannot be made.
    pub fn new(config: WriterConfig) -> Result<Self, WriteError> {
        Self::with_backend(config, Box::new(Disk))
    }

    /// A writer to any file system.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn with_backend(config: WriterConfig, backend: Box<dyn Backend>) -> Result<Self, WriteError> {
        let name = config.first_name()?;
        let io = |source| WriteError::io("create directory", &config.directory, source);
        backend.create_directory(&config.directory).map_err(io)?;
        let sequence = SequenceCounts::new(&config.dialect);
        Ok(Self::resumed(config, backend, name, None, sequence, Unfinished::default()))
    }

    /// A writer that goes on where another has ended, which had set files aside with so much in them.
    pub(crate) fn resumed(
        config: WriterConfig,
        backend: Box<dyn Backend>,
        name: FileName,
        open: Option<OpenFile>,
        sequence: SequenceCounts,
        lost: Unfinished,
    ) -> Self {
        let (closed, remarks) = (Vec::new(), Vec::new());
        Self { config, backend, name, open, sequence, closed, lost, remarks }
    }

    /// Appends one event, given in pieces, and begins a new file first if this one is full (note §11.10).
    ///
    /// # Errors
    ///
    /// The event is not in a file then and may be tried again; [`WriteError::is_full`] tells a full disk.
    pub fn write_event(&mut self, parts: &[&[u8]]) -> Result<(), WriteError> {
        self.write_copy(parts, true, &mut None).map(drop)
    }

    /// As [`write_event`](Self::write_event), for an event that may have its first copy in another stream.
    pub(crate) fn write_copy(
        &mut self,
        parts: &[&[u8]],
        is_first: bool,
        journal: &mut Option<Journal>,
    ) -> Result<WrittenCopy, WriteError> {
        let event_bytes = event_bytes(parts)?;
        let full = |open: &OpenFile| {
            open.stage != Stage::Events || self.config.is_over(open.events, open.output.bytes(), event_bytes)
        };
        if self.open.as_ref().is_some_and(full) {
            self.close_file(false, journal)?;
        }
        let Self { config, backend, name, sequence, open, .. } = &mut *self;
        let open = match open {
            Some(open) => open,
            none => none.insert(OpenFile::create(config, &**backend, name, sequence, journal)?),
        };
        let separator = DataSeparator { block_number: sequence.next_block, block_bytes: event_bytes };
        let mark = open.output.mark();
        open.append_event(&separator, parts).map_err(|source| WriteError::io("write", &open.path, source))?;
        open.first_copies += u32::from(is_first);
        sequence.count(event_bytes);
        Ok(WrittenCopy { mark, event_bytes, is_first })
    }

    /// Takes the copy back that was written last.
    pub(crate) fn take_back(&mut self, copy: WrittenCopy) {
        let WrittenCopy { mark, event_bytes, is_first } = copy;
        let open = self.open.as_mut().expect("the file of the last event is closed by the next one");
        open.output.take_back(mark);
        open.events -= 1;
        open.first_copies -= u32::from(is_first);
        open.event_bytes -= u64::from(event_bytes);
        self.sequence.take_back(1, u64::from(event_bytes));
    }

    /// Makes all events so far durable. If the disk refuses, the file is made anew of what can be read of it; a remark says so.
    ///
    /// # Errors
    ///
    /// As the file system says. What of the data is durable is not known then; it may be tried again.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.sync_open()?;
        self.all_is_durable();
        Ok(())
    }

    pub(crate) fn sync_open(&mut self) -> Result<(), WriteError> {
        let Some(open) = self.open.as_mut().filter(|open| open.stage != Stage::Renamed) else { return Ok(()) };
        self.remarks.extend(open.sync(&*self.backend)?);
        Ok(())
    }

    /// The disk has what is in the files of all streams.
    pub(crate) fn all_is_durable(&mut self) {
        if let Some(open) = &mut self.open {
            open.durable = open.extent();
        }
    }

    /// Whether it is not known what the disk has.
    pub(crate) fn is_unsure(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.output.is_unsure())
    }

    /// Cuts the open file behind the last event that is durable. What is cut off is in no file.
    pub(crate) fn keep_what_is_durable(&mut self) {
        let Some(open) = self.open.as_mut().filter(|open| open.stage != Stage::Renamed) else { return };
        let Extent { mark, events, first_copies, event_bytes } = open.durable.clone();
        let (cut, cut_bytes) = (open.events - events, open.event_bytes - event_bytes);
        if cut > 0 {
            let name = &self.name;
            self.remarks
                .push(format!("{name}: {cut} events behind the last durable one were cut off, and are not recorded"));
        }
        self.sequence.take_back(cut, cut_bytes);
        let first_copies_cut = u64::from(open.first_copies - first_copies);
        let cut = Unfinished { first_copies: first_copies_cut, copies: u64::from(cut), event_bytes: cut_bytes };
        self.lost = self.lost.plus(cut);
        (open.events, open.first_copies, open.event_bytes) = (events, first_copies, event_bytes);
        open.output.keep_only(mark);
        // An end record that was written belonged to more events.
        open.stage = Stage::Events;
    }

    /// Looks whether the open file is still as it was made. One that somebody has removed or moved away is written again. One that
    /// somebody has cut, or written to, is set aside with `.damaged` in its name, and its events are
    /// [`unfinished`](Self::unfinished). The next event begins a new one. A remark says so.
    ///
    /// # Errors
    ///
    /// It cannot be written again, or set aside: it is as it was, and it may be tried again.
    pub fn look(&mut self) -> Result<(), WriteError> {
        self.look_in(&mut None)
    }

    /// As [`look`](Self::look), for a writer that keeps a journal.
    pub(crate) fn look_in(&mut self, journal: &mut Option<Journal>) -> Result<(), WriteError> {
        let Some(open) = self.open.as_mut().filter(|open| open.stage != Stage::Renamed) else { return Ok(()) };
        self.remarks.extend(open.put_back(&*self.backend, self.config.durable)?);
        self.set_aside_if_changed(journal)
    }

    /// What was written and is in no file that is closed: in the open one, in those that were set aside, or cut off.
    pub fn unfinished(&self) -> Unfinished {
        self.open.iter().fold(self.lost, |sum, open| sum.plus(open.unfinished()))
    }

    fn set_aside_if_changed(&mut self, journal: &mut Option<Journal>) -> Result<(), WriteError> {
        let Some(open) = self.open.as_ref().filter(|open| open.stage == Stage::Events) else { return Ok(()) };
        let Some(remark) = open.set_aside(&*self.backend)? else { return Ok(()) };
        if let Some(journal) = journal {
            // Without this line its next life does not find the file, and says so.
            let _ = journal.file_gone(&self.name);
        }
        self.remarks.push(remark);
        self.lost = self.lost.plus(open.unfinished());
        self.sequence.take_back(open.events, open.event_bytes);
        self.open = None;
        self.name = self.name.with_sequence(self.name.sequence() + 1);
        Ok(())
    }

    /// What went wrong and was made good since the last call, for people.
    pub fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// Files closed since the last call.
    pub fn take_closed(&mut self) -> Vec<ClosedFile> {
        std::mem::take(&mut self.closed)
    }

    /// Closes the last file of the sequence, and gives all files not yet taken.
    ///
    /// # Errors
    ///
    /// The file could not be closed; it may be tried again, or left for [`recover`](crate::recover).
    pub fn finish(&mut self) -> Result<Vec<ClosedFile>, WriteError> {
        self.close()?;
        Ok(self.take_closed())
    }

    /// Closes the last file of the sequence; [`take_closed`](Self::take_closed) gives it.
    ///
    /// # Errors
    ///
    /// As for [`finish`](Self::finish).
    pub fn close(&mut self) -> Result<(), WriteError> {
        self.close_file(true, &mut None)
    }

    /// As [`close`](Self::close), for a writer that keeps a journal.
    pub(crate) fn close_in(&mut self, journal: &mut Option<Journal>) -> Result<(), WriteError> {
        self.close_file(true, journal)
    }

    /// Name and end of the open file.
    pub(crate) fn end(&self) -> Option<(&FileName, u64)> {
        self.open.as_ref().map(|open| (&self.name, open.output.bytes()))
    }

    /// Events written.
    pub fn events(&self) -> u64 {
        u64::from(self.sequence.events)
    }

    /// The `.writing` file, if one is open.
    pub fn path(&self) -> Option<&Path> {
        self.open.as_ref().map(|open| open.path.as_path())
    }

    pub(crate) fn is_stream(&self, stream_type: &str, stream_name: &str) -> bool {
        (self.config.stream_type.as_str(), self.config.stream_name.as_str()) == (stream_type, stream_name)
    }

    fn close_file(&mut self, last: bool, journal: &mut Option<Journal>) -> Result<(), WriteError> {
        self.set_aside_if_changed(journal)?;
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let path = self.config.directory.join(self.name.data());
        self.remarks.extend(open.close(&self.config, &*self.backend, &self.sequence, &path, last)?);
        if let Some(journal) = journal {
            journal.file_closed(&self.name, open.output.bytes(), open.output.adler32());
        }
        self.closed.push(ClosedFile {
            path,
            stream: format!("{}_{}", self.config.stream_type, self.config.stream_name),
            events: open.events,
            first_copies: open.first_copies,
            bytes: open.output.bytes(),
            adler32: open.output.adler32(),
        });
        self.open = None;
        self.name = self.name.with_sequence(self.name.sequence() + 1);
        self.sequence.files += 1;
        Ok(())
    }
}

impl Unfinished {
    /// `None` for sums that cannot be.
    pub(crate) fn checked_plus(self, other: Self) -> Option<Self> {
        Some(Self {
            first_copies: self.first_copies.checked_add(other.first_copies)?,
            copies: self.copies.checked_add(other.copies)?,
            event_bytes: self.event_bytes.checked_add(other.event_bytes)?,
        })
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            first_copies: self.first_copies + other.first_copies,
            copies: self.copies + other.copies,
            event_bytes: self.event_bytes + other.event_bytes,
        }
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("name", &self.name)
            .field("events", &self.sequence.events)
            .finish_non_exhaustive()
    }
}

/// An empty file and its path.
type NewFile = (Box<dyn OutputFile>, PathBuf);

/// A copy of an event that may be taken back as long as it is the last of its stream.
pub(crate) struct WrittenCopy {
    mark: Mark,
    event_bytes: u32,
    is_first: bool,
}

pub(crate) struct OpenFile {
    path: PathBuf,
    output: Output,
    events: u32,
    first_copies: u32,
    event_bytes: u64,
    /// What of it is durable, with all events in other streams.
    durable: Extent,
    stage: Stage,
}

/// How far a file reaches.
#[derive(Clone)]
struct Extent {
    mark: Mark,
    events: u32,
    first_copies: u32,
    event_bytes: u64,
}

/// How far the closing of a file has come, so that it goes on there after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Events,
    Ended,
    Renamed,
}

impl OpenFile {
    pub(crate) fn resumed(path: PathBuf, output: Output, events: u32, first_copies: u32, event_bytes: u64) -> Self {
        let output = output.ending_with(FileEnd::BYTES);
        let durable = Extent { mark: output.mark(), events, first_copies, event_bytes };
        Self { path, output, events, first_copies, event_bytes, durable, stage: Stage::Events }
    }

    /// Takes the next free name (note §11.9) and writes everything in front of the events.
    fn create(
        config: &WriterConfig,
        backend: &dyn Backend,
        name: &mut FileName,
        sequence: &SequenceCounts,
        journal: &mut Option<Journal>,
    ) -> Result<Self, WriteError> {
        let ((file, path), header) = loop {
            let header = config.file_header(name, sequence.files + 1).emit();
            if let Some(journal) = journal {
                journal.file_begins(name, header.len() as u64)?;
            }
            if let Some(created) = create_at(config, backend, name)? {
                break (created, header);
            }
            *name = name.with_sequence(name.sequence() + NAME_CLASH_STEP);
        };
        let mut output = Output::new(file).ending_with(FileEnd::BYTES);
        let written = output.append(&header, &[]).map_err(|source| WriteError::io("write", &path, source));
        let made = written.and_then(|()| journal.as_mut().map_or(Ok(()), |journal| journal.file_made(name)));
        if let Err(error) = made {
            drop(output);
            // Without events nothing is lost with the file; if it cannot be removed its name is skipped later.
            let _ = backend.remove(&path);
            return Err(error);
        }
        Ok(Self::resumed(path, output, 0, 0, 0))
    }

    fn extent(&self) -> Extent {
        let Self { events, first_copies, event_bytes, .. } = *self;
        Extent { mark: self.output.mark(), events, first_copies, event_bytes }
    }

    fn unfinished(&self) -> Unfinished {
        let (first_copies, copies) = (u64::from(self.first_copies), u64::from(self.events));
        Unfinished { first_copies, copies, event_bytes: self.event_bytes }
    }

    /// With a remark if the file had to be made anew.
    fn sync(&mut self, backend: &dyn Backend) -> Result<Option<String>, WriteError> {
        let renewed =
            self.output.sync(backend, &self.path).map_err(|source| WriteError::io("sync", &self.path, source))?;
        let (path, events) = (self.path.display(), self.events);
        Ok(renewed.then(|| format!("{path}: the disk refused a part of it: its {events} events are written again")))
    }

    /// With a remark if it had to be.
    fn put_back(&mut self, backend: &dyn Backend, durable: bool) -> Result<Option<String>, WriteError> {
        let put_back = self.output.put_back(backend, &self.path, durable);
        let was_gone = put_back.map_err(|source| WriteError::io("write again", &self.path, source))?;
        let (path, events) = (self.path.display(), self.events);
        let remark = "was removed or moved away while it was written";
        Ok(was_gone.then(|| format!("{path} {remark}: its {events} events are written again")))
    }

    /// Renames a file that somebody else has cut or written to; with a remark then.
    fn set_aside(&self, backend: &dyn Backend) -> Result<Option<String>, WriteError> {
        let path = &self.path;
        let changed = self.output.changed_to().map_err(|source| WriteError::io("look at", path, source))?;
        let Some(found) = changed else { return Ok(None) };
        let aside = path.with_extension("damaged");
        if backend.exists(&aside).map_err(|source| WriteError::io("look at", &aside, source))? {
            return Err(WriteError::Exists { path: aside });
        }
        backend.rename(path, &aside).map_err(|source| WriteError::io("rename", path, source))?;
        Ok(Some(format!(
            "{}: somebody else has changed it while it was written: {found} bytes are there, {} were written; its {} events \
             do not count as recorded: it is {} now, `weir file recover` saves what is whole in it",
            path.display(),
            self.output.bytes(),
            self.events,
            aside.display()
        )))
    }

    fn append_event(&mut self, separator: &DataSeparator, parts: &[&[u8]]) -> io::Result<()> {
        self.output.append(&separator.emit(), parts)?;
        self.events += 1;
        self.event_bytes += u64::from(separator.block_bytes);
        Ok(())
    }

    fn close(
        &mut self,
        config: &WriterConfig,
        backend: &dyn Backend,
        sequence: &SequenceCounts,
        data: &Path,
        last: bool,
    ) -> Result<Option<String>, WriteError> {
        let mut remark = None;
        if self.stage == Stage::Events {
            let end = FileEnd {
                closed: (config.clock)(),
                events: self.events,
                megabytes: FileEnd::megabytes(self.event_bytes),
                sequence_events: sequence.events,
                sequence_megabytes: FileEnd::megabytes(sequence.event_bytes),
                status: u32::from(last),
            };
            let mut record = Vec::new();
            end.emit(&mut record);
            self.output.append_end(&record).map_err(|source| WriteError::io("close", &self.path, source))?;
            self.stage = Stage::Ended;
        }
        if self.stage == Stage::Ended {
            remark = self.rename(config, backend, data)?;
            self.stage = Stage::Renamed;
        }
        let directory = &config.directory;
        if config.durable
            && let Err(source) = backend.sync_directory(directory)
        {
            return self.although(WriteError::io("sync", directory, source)).map(Some);
        }
        Ok(remark)
    }

    /// All that somebody relies on is on the disk: the end of a file and its name need not be. Else that is an error.
    fn although(&self, error: WriteError) -> Result<String, WriteError> {
        if self.durable.events < self.events {
            return Err(error);
        }
        Ok(format!("{error}: the {} events of the file are durable, its end and its name may not be", self.events))
    }

    fn rename(
        &mut self,
        config: &WriterConfig,
        backend: &dyn Backend,
        data: &Path,
    ) -> Result<Option<String>, WriteError> {
        let synced = if config.durable { self.sync(backend) } else { Ok(None) };
        let remark = synced.or_else(|error| self.although(error).map(Some))?;
        if backend.exists(data).map_err(|source| WriteError::io("look at", data, source))? {
            return Err(WriteError::Exists { path: data.to_owned() });
        }
        backend.rename(&self.path, data).map_err(|source| WriteError::io("rename", &self.path, source))?;
        Ok(remark)
    }
}

/// The file, or `None` if its name is taken. The `.data` name is looked at last. Another writer of the same name may
/// rename its file between the two looks, but can no longer create one.
fn create_at(config: &WriterConfig, backend: &dyn Backend, name: &FileName) -> Result<Option<NewFile>, WriteError> {
    let path = config.directory.join(name.writing());
    let file = match backend.create(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(source) => return Err(WriteError::io("create", &path, source)),
    };
    let taken = backend.exists(&config.directory.join(name.data()));
    if matches!(taken, Ok(false)) {
        return Ok(Some((file, path)));
    }
    drop(file);
    backend.remove(&path).map_err(|source| WriteError::io("remove", &path, source))?;
    taken.map(|_| None).map_err(|source| WriteError::io("look at", &path, source))
}

/// What a sequence of files holds so far.
pub(crate) struct SequenceCounts {
    /// Closed ones.
    pub(crate) files: u32,
    events: u32,
    event_bytes: u64,
    next_block: u32,
}

impl SequenceCounts {
    pub(crate) fn new(dialect: &Dialect) -> Self {
        let next_block = match dialect {
            Dialect::V6 => 1,
            Dialect::V2 { first_block_number, .. } => *first_block_number,
        };
        Self { files: 0, events: 0, event_bytes: 0, next_block }
    }

    fn count(&mut self, event_bytes: u32) {
        self.add(1, u64::from(event_bytes));
    }

    pub(crate) fn add(&mut self, events: u32, event_bytes: u64) {
        self.events = self.events.saturating_add(events);
        self.next_block = self.next_block.wrapping_add(events);
        self.event_bytes = self.event_bytes.saturating_add(event_bytes);
    }

    /// The last ones are in none of its files any more.
    fn take_back(&mut self, events: u32, event_bytes: u64) {
        self.next_block = self.next_block.wrapping_sub(events);
        self.events -= events;
        self.event_bytes -= event_bytes;
    }
}

pub(crate) fn event_bytes(parts: &[&[u8]]) -> Result<u32, WriteError> {
    let given_bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
    let claimed_bytes = parts.first().and_then(|first| event_size_bytes(first));
    match u32::try_from(given_bytes) {
        Ok(bytes) if claimed_bytes == Some(given_bytes) => Ok(bytes),
        _ => Err(WriteError::NotAnEvent { given_bytes, claimed_bytes }),
    }
}
