//! What a life of a writer leaves to the next: which files it has begun, and which events are whole in them.
//!
//! Lines of text. An event has its line once all its copies are written: what lies behind the ends that it names belongs to
//! an event that is not in all its streams. A line without an end does not count.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::str::{FromStr, SplitAsciiWhitespace};

use eformat::{DataSeparator, FileName};

use crate::backend::Backend;
use crate::output::Output;
use crate::write_error::WriteError;
use crate::writer::ClosedFile;

/// The journal of the files of a run, being written.
pub(crate) struct Journal {
    path: PathBuf,
    output: Output,
    /// Streams by their number in the lines, as `type_name`.
    streams: Vec<String>,
    compact_above: u64,
}

/// What a journal tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chronicle {
    /// By number.
    pub(crate) streams: Vec<StreamHistory>,
    /// The bound that the writer was told last.
    pub(crate) oldest: u64,
    /// Events at or above it that are in files.
    pub(crate) events: BTreeSet<u64>,
    /// Bytes of whole lines.
    bytes: u64,
}

/// The files of one stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamHistory {
    /// In order; the last one may still be open.
    pub(crate) files: Vec<FileHistory>,
}

/// A file, as far as it is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileHistory {
    pub(crate) name: FileName,
    pub(crate) header_bytes: u64,
    /// Whether it was made; else its name may be that of a file of somebody else.
    pub(crate) made: bool,
    /// Where the last whole event ends.
    pub(crate) end: u64,
    pub(crate) events: u32,
    pub(crate) first_copies: u32,
    /// Size and Adler-32, if it is known to be closed.
    pub(crate) closed: Option<(u64, u32)>,
}

/// Why a journal cannot be used.
#[derive(Debug)]
pub(crate) enum JournalError {
    Io { path: PathBuf, source: io::Error },
    Line { path: PathBuf, line: usize },
}

impl Journal {
    /// An empty journal; one of an earlier run is replaced.
    pub(crate) fn begin(backend: &dyn Backend, path: PathBuf) -> Result<Self, WriteError> {
        forget(backend, &path)?;
        let file = backend.create(&path).map_err(|source| WriteError::io("create", &path, source))?;
        Ok(Self { path, output: Output::new(file), streams: Vec::new(), compact_above: COMPACT_ABOVE_BYTES })
    }

    /// Goes on behind the whole lines of a journal.
    pub(crate) fn resume(backend: &dyn Backend, path: PathBuf, chronicle: &Chronicle) -> Result<Self, WriteError> {
        let file = backend.reopen(&path).map_err(|source| WriteError::io("open", &path, source))?;
        let output = Output::resumed(file, chronicle.bytes, eformat::Adler32::new());
        let streams = chronicle.streams.iter().map(|stream| stream_of(&stream.files[0].name)).collect();
        Ok(Self { path, output, streams, compact_above: COMPACT_ABOVE_BYTES.max(2 * chronicle.bytes) })
    }

    /// A file will be made.
    pub(crate) fn file_begins(&mut self, name: &FileName, header_bytes: u64) -> Result<(), WriteError> {
        let stream = stream_of(name);
        let known = self.number_of(&stream);
        let number = known.unwrap_or(self.streams.len());
        self.append(&format!("begin {number} {name} {header_bytes}\n"))?;
        if known.is_none() {
            self.streams.push(stream);
        }
        Ok(())
    }

    /// It was made, with its header.
    pub(crate) fn file_made(&mut self, name: &FileName) -> Result<(), WriteError> {
        let number = self.number_of(&stream_of(name)).expect("it was begun");
        self.append(&format!("made {number}\n"))
    }

    /// A file has its last name. That this is not written is no harm: it shows in the directory.
    pub(crate) fn file_closed(&mut self, name: &FileName, bytes: u64, adler32: u32) {
        let number = self.number_of(&stream_of(name)).expect("it was begun");
        let _ = self.append(&format!("closed {number} {bytes} {adler32}\n"));
    }

    /// An event is whole in these files, up to their ends, the first of them with its first copy. Nobody asks for an event below
    /// `oldest` any more.
    pub(crate) fn event<'a>(
        &mut self,
        backend: &dyn Backend,
        (event, oldest): (u64, u64),
        ends: impl Iterator<Item = (&'a FileName, u64)>,
    ) -> Result<(), WriteError> {
        let mut line = format!("event {event} {oldest}");
        for (name, end) in ends {
            let number = self.number_of(&stream_of(name)).expect("its file was begun");
            write!(line, " {number} {end}").expect("a string takes everything");
        }
        line.push('\n');
        self.append(&line)?;
        if self.output.bytes() > self.compact_above {
            // Without room for a second journal the long one goes on.
            let compacted = self.compact(backend);
            self.compact_above = COMPACT_ABOVE_BYTES.max(2 * self.output.bytes());
            let _ = compacted;
        }
        Ok(())
    }

    /// Writes a short journal of the same content in place of this one.
    fn compact(&mut self, backend: &dyn Backend) -> Result<(), WriteError> {
        let Ok(chronicle) = Chronicle::read(&self.path) else { return Ok(()) };
        let path = self.path.with_extension("new");
        forget(backend, &path)?;
        let file = backend.create(&path).map_err(|source| WriteError::io("create", &path, source))?;
        let mut output = Output::new(file);
        output.append(chronicle.lines().as_bytes(), &[]).map_err(|source| WriteError::io("write", &path, source))?;
        backend.rename(&path, &self.path).map_err(|source| WriteError::io("rename", &path, source))?;
        self.output = output;
        Ok(())
    }

    fn number_of(&self, stream: &str) -> Option<usize> {
        self.streams.iter().position(|known| known == stream)
    }

    fn append(&mut self, line: &str) -> Result<(), WriteError> {
        self.output.append(line.as_bytes(), &[]).map_err(|source| WriteError::io("write", &self.path, source))
    }
}

/// Removes a journal, if there is one.
pub(crate) fn forget(backend: &dyn Backend, path: &Path) -> Result<(), WriteError> {
    match backend.remove(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(WriteError::io("remove", path, source)),
        _ => Ok(()),
    }
}

impl Chronicle {
    /// What the journal at `path` tells; nothing, if there is none.
    pub(crate) fn read(path: &Path) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(io(error)),
        };
        let (mut reader, mut chronicle, mut line) = (BufReader::new(file), Self::default(), String::new());
        for number in 1.. {
            line.clear();
            let bytes = reader.read_line(&mut line).map_err(io)? as u64;
            if !line.ends_with('\n') {
                break;
            }
            let known = chronicle.take(line.split_ascii_whitespace());
            known.ok_or_else(|| JournalError::Line { path: path.to_owned(), line: number })?;
            chronicle.bytes += bytes;
        }
        Ok(chronicle)
    }

    fn take(&mut self, mut words: SplitAsciiWhitespace<'_>) -> Option<()> {
        match words.next()? {
            "begin" => {
                let (number, name, header_bytes) = (next(&mut words)?, next(&mut words)?, next(&mut words)?);
                let (file, streams) = (FileHistory::new(name, header_bytes), self.streams.len());
                match self.streams.get_mut::<usize>(number) {
                    Some(stream) => {
                        // One that was not made has given its place to this one.
                        stream.files.pop_if(|last| !last.made);
                        stream.files.push(file);
                    }
                    None if number == streams => self.streams.push(StreamHistory { files: vec![file] }),
                    None => return None,
                }
            }
            "made" => self.last_of(next(&mut words)?)?.made = true,
            "event" => {
                let (event, oldest) = (next(&mut words)?, next(&mut words)?);
                let mut is_first = true;
                while let Some(number) = words.next() {
                    let file = self.last_of(number.parse().ok()?)?;
                    file.end = next(&mut words)?;
                    file.events += 1;
                    file.first_copies += u32::from(core::mem::take(&mut is_first));
                }
                self.has(event, oldest);
            }
            "closed" => {
                let number = next(&mut words)?;
                self.last_of(number)?.closed = Some((next(&mut words)?, next(&mut words)?));
            }
            "at" => {
                let file = self.last_of(next(&mut words)?)?;
                (file.end, file.events, file.first_copies) = (next(&mut words)?, next(&mut words)?, next(&mut words)?);
            }
            _ => return None,
        }
        Some(())
    }

    fn has(&mut self, event: u64, oldest: u64) {
        if oldest > self.oldest {
            self.oldest = oldest;
            self.events = self.events.split_off(&oldest);
        }
        if event >= self.oldest {
            self.events.insert(event);
        }
    }

    fn last_of(&mut self, number: usize) -> Option<&mut FileHistory> {
        self.streams.get_mut(number)?.files.last_mut()
    }

    /// The shortest journal of this content.
    fn lines(&self) -> String {
        let mut lines = String::new();
        for (number, stream) in self.streams.iter().enumerate() {
            for file in &stream.files {
                let FileHistory { name, header_bytes, end, events, first_copies, .. } = file;
                let mut line = format!("begin {number} {name} {header_bytes}\n");
                if file.made {
                    line += &format!("made {number}\nat {number} {end} {events} {first_copies}\n");
                }
                if let Some((bytes, adler32)) = file.closed {
                    line += &format!("closed {number} {bytes} {adler32}\n");
                }
                lines += &line;
            }
        }
        for event in &self.events {
            writeln!(lines, "event {event} {}", self.oldest).expect("a string takes everything");
        }
        lines
    }
}

impl FileHistory {
    fn new(name: FileName, header_bytes: u64) -> Self {
        Self { name, header_bytes, made: false, end: header_bytes, events: 0, first_copies: 0, closed: None }
    }

    /// Bytes of the events in it.
    pub(crate) fn event_bytes(&self) -> u64 {
        let separators = u64::from(self.events) * DataSeparator::BYTES as u64;
        self.end.saturating_sub(self.header_bytes + separators)
    }

    /// It as it is told to others.
    pub(crate) fn closed_file(&self, directory: &Path) -> Option<ClosedFile> {
        let (bytes, adler32) = self.closed?;
        let (path, stream) = (directory.join(self.name.data()), stream_of(&self.name));
        Some(ClosedFile { path, stream, events: self.events, first_copies: self.first_copies, bytes, adler32 })
    }
}

fn stream_of(name: &FileName) -> String {
    format!("{}_{}", name.stream_type(), name.stream_name())
}

fn next<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

/// A journal that is longer is written anew: all but the events in flight and a few words for each file can go.
const COMPACT_ABOVE_BYTES: u64 = 1 << 20;
