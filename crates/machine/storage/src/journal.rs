//! What a life of a writer leaves to the next: which files it has begun, and which events are whole in them.
//!
//! Lines of text. An event has its line once all its copies are written. The line names where the files end; what
//! lies behind belongs to an event that is not in all its streams. A line without an end does not count. Each ends
//! with the Adler-32 of all bytes before this number, so that none can be changed, left out or there twice.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::str::{FromStr, SplitAsciiWhitespace};

use eformat::{Adler32, DataSeparator, FileName};

use crate::backend::Backend;
use crate::closed_file::Unfinished;
use crate::closed_file::{ClosedFile, NAME_CLASH_STEP};
use crate::output::Output;
use crate::write_error::WriteError;

/// The journal of the files of a run, being written.
pub(crate) struct Journal {
    path: PathBuf,
    output: Output,
    /// Streams by their number in the lines, as `type_name`.
    streams: Vec<String>,
    compact_above: u64,
}

/// What a journal tells.
#[derive(Debug, Default)]
pub(crate) struct Chronicle {
    /// By number.
    pub(crate) streams: Vec<StreamHistory>,
    /// The bound that the writer was told last.
    pub(crate) oldest: u64,
    /// Events at or above it that are in files.
    pub(crate) events: BTreeSet<u64>,
    /// Bytes of whole lines, and their sum.
    bytes: u64,
    sum: Adler32,
}

/// The files of one stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StreamHistory {
    /// In order; the last one may still be open.
    pub(crate) files: Vec<FileHistory>,
    /// What was in files that were set aside.
    pub(crate) set_aside: Unfinished,
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
        let output = Output::resumed(file, chronicle.bytes, chronicle.sum.clone());
        let streams = chronicle.streams.iter().map(|stream| stream_of(&stream.files[0].name)).collect();
        Ok(Self { path, output, streams, compact_above: COMPACT_ABOVE_BYTES })
    }

    /// A file will be made.
    pub(crate) fn file_begins(&mut self, name: &FileName, header_bytes: u64) -> Result<(), WriteError> {
        let stream = stream_of(name);
        let known = self.number_of(&stream);
        let number = known.unwrap_or(self.streams.len());
        self.append(format!("begin {number} {name} {header_bytes}"))?;
        if known.is_none() {
            self.streams.push(stream);
        }
        Ok(())
    }

    /// It was made, with its header.
    pub(crate) fn file_made(&mut self, name: &FileName) -> Result<(), WriteError> {
        let number = self.number_of(&stream_of(name)).expect("it was begun");
        self.append(format!("made {number}"))
    }

    /// A file has its last name. That this is not written is no harm: it shows in the directory.
    pub(crate) fn file_closed(&mut self, name: &FileName, bytes: u64, adler32: u32) {
        let number = self.number_of(&stream_of(name)).expect("it was begun");
        let _ = self.append(format!("closed {number} {bytes} {adler32}"));
    }

    /// The open file is no file of the run any more.
    pub(crate) fn file_gone(&mut self, name: &FileName) -> Result<(), WriteError> {
        let number = self.number_of(&stream_of(name)).expect("it was begun");
        self.append(format!("gone {number}"))
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
        self.append(line)?;
        if self.output.bytes() > self.compact_above {
            // Without room for a second journal the long one goes on.
            let _ = self.compact(backend);
            self.compact_above = COMPACT_ABOVE_BYTES.max(2 * self.output.bytes());
        }
        Ok(())
    }

    /// Writes a short journal of the same content in place of this one.
    fn compact(&mut self, backend: &dyn Backend) -> Result<(), WriteError> {
        let Ok(chronicle) = Chronicle::read(&self.path) else { return Ok(()) };
        let path = compacted(&self.path);
        remove(backend, &path)?;
        let file = backend.create(&path).map_err(|source| WriteError::io("create", &path, source))?;
        let mut output = Output::new(file);
        let written = output.append(summed(chronicle.lines()).as_bytes(), &[]);
        let written = written.map_err(|source| WriteError::io("write", &path, source));
        let renamed = || backend.rename(&path, &self.path).map_err(|source| WriteError::io("rename", &path, source));
        if let Err(error) = written.and_then(|()| renamed()) {
            // On a full disk the events need its room.
            let _ = remove(backend, &path);
            return Err(error);
        }
        self.output = output;
        Ok(())
    }

    /// Writes it again if somebody has removed it or moved it away.
    pub(crate) fn look(&mut self, backend: &dyn Backend) -> Result<(), WriteError> {
        let put_back = self.output.put_back(backend, &self.path, false);
        put_back.map(drop).map_err(|source| WriteError::io("write again", &self.path, source))
    }

    fn number_of(&self, stream: &str) -> Option<usize> {
        self.streams.iter().position(|known| known == stream)
    }

    fn append(&mut self, mut line: String) -> Result<(), WriteError> {
        end_line(&mut line, &mut self.output.sum());
        self.output.append(line.as_bytes(), &[]).map_err(|source| WriteError::io("write", &self.path, source))
    }
}

/// Removes a journal, if there is one, and what a death has left of one that was being made short.
pub(crate) fn forget(backend: &dyn Backend, path: &Path) -> Result<(), WriteError> {
    remove(backend, &compacted(path)).and(remove(backend, path))
}

fn remove(backend: &dyn Backend, path: &Path) -> Result<(), WriteError> {
    match backend.remove(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(WriteError::io("remove", path, source)),
        _ => Ok(()),
    }
}

impl Chronicle {
    /// Events in all files, each once; the same with all their copies; bytes of these.
    pub(crate) fn totals(&self) -> [u64; 3] {
        let files = self.streams.iter().flat_map(|stream| &stream.files);
        files.fold([0; 3], |[first_copies, copies, bytes], file| {
            let bytes = if file.made { bytes + file.event_bytes() } else { bytes };
            [first_copies + u64::from(file.first_copies), copies + u64::from(file.events), bytes]
        })
    }

    /// What was in files that were set aside.
    pub(crate) fn set_aside(&self) -> Unfinished {
        self.streams.iter().fold(Unfinished::default(), |sum, stream| sum.plus(stream.set_aside))
    }

    /// What the journal at `path` tells; nothing, if there is none.
    pub(crate) fn read(path: &Path) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(io(error)),
        };
        let (mut reader, mut chronicle, mut line) = (BufReader::new(file), Self::default(), Vec::new());
        for number in 1.. {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(io)?;
            if !line.ends_with(b"\n") {
                break;
            }
            let known = chronicle.take_line(&line);
            known.ok_or_else(|| JournalError::Line { path: path.to_owned(), line: number })?;
        }
        Ok(chronicle)
    }

    /// `None` for a line that is not the next one of a journal.
    fn take_line(&mut self, line: &[u8]) -> Option<()> {
        let (text, _) = str::from_utf8(line).ok()?.strip_suffix('\n')?.rsplit_once(' ')?;
        let mut expected = text.to_owned();
        end_line(&mut expected, &mut self.sum.clone());
        if expected.as_bytes() != line {
            return None;
        }
        self.take(text.split_ascii_whitespace())?;
        self.sum.update(line);
        self.bytes += line.len() as u64;
        Some(())
    }

    /// `None` for words that cannot be: whoever sums such a line has them from somewhere else.
    fn take(&mut self, mut words: SplitAsciiWhitespace<'_>) -> Option<()> {
        match words.next()? {
            "begin" => {
                let (number, name, header_bytes) =
                    (next(&mut words)?, next::<FileName>(&mut words)?, next(&mut words)?);
                name.sequence().checked_add(NAME_CLASH_STEP)?;
                let (file, streams) = (FileHistory::new(name, header_bytes), self.streams.len());
                match self.streams.get_mut::<usize>(number) {
                    Some(stream) => {
                        // One that was not made has given its place to this one.
                        stream.files.pop_if(|last| !last.made);
                        stream.files.push(file);
                    }
                    None if number == streams => {
                        self.streams.push(StreamHistory { files: vec![file], set_aside: Unfinished::default() });
                    }
                    None => return None,
                }
            }
            "made" => self.last_of(next(&mut words)?)?.made = true,
            "gone" => {
                let number = next(&mut words)?;
                let file = self.last_of(number)?;
                let lost = file.lost();
                // What was set aside has its name but for the ending, and keeps it.
                let next = file.name.with_sequence(file.name.sequence() + 1);
                *file = FileHistory::new(next, file.header_bytes);
                self.lose(number, lost)?;
            }
            "lost" => {
                let number = next(&mut words)?;
                let (first_copies, copies) = (next(&mut words)?, next(&mut words)?);
                self.lose(number, Unfinished { first_copies, copies, event_bytes: next(&mut words)? })?;
            }
            "event" => {
                let (event, oldest) = (next(&mut words)?, next(&mut words)?);
                let mut is_first = true;
                while let Some(number) = words.next() {
                    let file = self.last_of(number.parse().ok()?)?;
                    let (events, first) = (file.events.checked_add(1)?, u32::from(core::mem::take(&mut is_first)));
                    file.reach(next(&mut words)?, events, file.first_copies + first)?;
                }
                self.has(event, oldest);
            }
            "closed" => {
                let number = next(&mut words)?;
                let file = self.last_of(number)?;
                let (bytes, adler32) = (next(&mut words)?, next(&mut words)?);
                file.closed = (bytes >= file.end).then_some((bytes, adler32));
                file.closed?;
            }
            "at" => {
                let file = self.last_of(next(&mut words)?)?;
                file.reach(next(&mut words)?, next(&mut words)?, next(&mut words)?)?;
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

    fn lose(&mut self, number: usize, lost: Unfinished) -> Option<()> {
        let stream = self.streams.get_mut(number)?;
        stream.set_aside = stream.set_aside.checked_plus(lost)?;
        Some(())
    }

    fn last_of(&mut self, number: usize) -> Option<&mut FileHistory> {
        self.streams.get_mut(number)?.files.last_mut()
    }

    /// The shortest journal of this content.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, stream) in self.streams.iter().enumerate() {
            for file in &stream.files {
                let FileHistory { name, header_bytes, end, events, first_copies, .. } = file;
                lines.push(format!("begin {number} {name} {header_bytes}"));
                if file.made {
                    lines.push(format!("made {number}"));
                    lines.push(format!("at {number} {end} {events} {first_copies}"));
                }
                lines.extend(file.closed.map(|(bytes, adler32)| format!("closed {number} {bytes} {adler32}")));
            }
            let Unfinished { first_copies, copies, event_bytes } = stream.set_aside;
            if copies > 0 {
                lines.push(format!("lost {number} {first_copies} {copies} {event_bytes}"));
            }
        }
        lines.extend(self.events.iter().map(|event| format!("event {event} {}", self.oldest)));
        lines
    }
}

impl FileHistory {
    fn new(name: FileName, header_bytes: u64) -> Self {
        Self { name, header_bytes, made: false, end: header_bytes, events: 0, first_copies: 0, closed: None }
    }

    /// Bytes of the events in it.
    pub(crate) fn event_bytes(&self) -> u64 {
        self.end - self.header_bytes - separator_bytes(self.events)
    }

    /// What is lost with it.
    fn lost(&self) -> Unfinished {
        let (first_copies, copies) = (u64::from(self.first_copies), u64::from(self.events));
        Unfinished { first_copies, copies, event_bytes: self.event_bytes() }
    }

    /// It holds so much; `None` if it cannot, or if it held more before.
    fn reach(&mut self, end: u64, events: u32, first_copies: u32) -> Option<()> {
        let least_bytes = self.header_bytes.checked_add(separator_bytes(events))?;
        let is_possible = end >= least_bytes.max(self.end) && events >= self.events && first_copies <= events;
        (self.end, self.events, self.first_copies) = (end, events, first_copies);
        is_possible.then_some(())
    }

    /// It as it is told to others.
    pub(crate) fn closed_file(&self, directory: &Path) -> Option<ClosedFile> {
        let (bytes, adler32) = self.closed?;
        let (path, stream) = (directory.join(self.name.data()), stream_of(&self.name));
        Some(ClosedFile { path, stream, events: self.events, first_copies: self.first_copies, bytes, adler32 })
    }
}

fn separator_bytes(events: u32) -> u64 {
    u64::from(events) * DataSeparator::BYTES as u64
}

/// Ends a line that follows bytes of the sum `before`, which becomes that with the line.
fn end_line(line: &mut String, before: &mut Adler32) {
    line.push(' ');
    before.update(line.as_bytes());
    let rest = format!("{}\n", before.value());
    before.update(rest.as_bytes());
    line.push_str(&rest);
}

/// The lines of a journal as they are written.
fn summed(lines: Vec<String>) -> String {
    let mut sum = Adler32::new();
    lines.into_iter().fold(String::new(), |all, mut line| {
        end_line(&mut line, &mut sum);
        all + &line
    })
}

/// Where a short journal is made.
fn compacted(path: &Path) -> PathBuf {
    path.with_extension("new")
}

fn stream_of(name: &FileName) -> String {
    format!("{}_{}", name.stream_type(), name.stream_name())
}

fn next<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

/// A journal that is longer is written anew: all but the events in flight and a few words for each file can go.
const COMPACT_ABOVE_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const STREAMS: [&str; 2] = ["physics_Main", "express_Few"];

    fn chronicle(lines: &[&str]) -> Option<Chronicle> {
        let mut chronicle = Chronicle::default();
        lines.iter().try_for_each(|line| chronicle.take(line.split_ascii_whitespace())).map(|()| chronicle)
    }

    fn begin(stream: usize, sequence: u32, header_bytes: u64) -> String {
        let name = format!("data_test.00000007.{}.daq.RAW._lb0000._SFO-1._{sequence:04}", STREAMS[stream]);
        format!("begin {stream} {name} {header_bytes}")
    }

    #[test]
    fn totals_are_those_of_all_files() {
        let (first, second, not_made) = (begin(0, 1, 100), begin(1, 1, 200), begin(0, 2, 300));
        let lines = [&first, "made 0", &second, "made 1", "event 1 0 0 150 1 260", "event 2 0 1 300", "closed 0 190 7"];
        let separator = DataSeparator::BYTES as u64;
        let bytes = 50 - separator + 100 - 2 * separator;
        let all = chronicle(&[&lines[..], &[&not_made]].concat()).unwrap();
        assert_eq!(all.totals(), [2, 3, bytes]);
        let files: Vec<_> = all.streams[0].files.iter().map(|file| (file.made, file.closed)).collect();
        assert_eq!(files, [(true, Some((190, 7))), (false, None)]);
    }

    #[test]
    fn a_file_that_was_set_aside_keeps_its_name() {
        let gone = chronicle(&[&begin(0, 4, 100), "made 0", "event 1 0 0 150", "gone 0"]).unwrap();
        let [file] = &gone.streams[0].files[..] else { panic!("{gone:?}") };
        assert_eq!((file.name.sequence(), file.made, file.events), (5, false, 0));
    }

    #[test]
    fn what_was_set_aside_is_not_forgotten() {
        let (first, second) = (begin(0, 1, 100), begin(0, 3, 100));
        let lines = [&first, "made 0", "event 1 0 0 150", "gone 0", "lost 0 1 2 300", &second, "made 0", "gone 0"];
        let all = chronicle(&lines).unwrap();
        let event_bytes = 300 + 50 - DataSeparator::BYTES as u64;
        assert_eq!(all.set_aside(), Unfinished { first_copies: 2, copies: 3, event_bytes });
        assert_eq!(all.totals(), [0; 3]);
        let again = all.lines();
        let again = chronicle(&again.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!(again.set_aside(), all.set_aside());
        assert!(chronicle(&[&first, "lost 0 1 2"]).is_none() && chronicle(&[&first, "lost 1 1 2 3"]).is_none());
        let most = format!("lost 0 {} 1 1", u64::MAX);
        assert!(chronicle(&[&first, &most]).is_some() && chronicle(&[&first, &most, &most]).is_none());
    }

    #[test]
    fn a_file_that_was_not_made_gives_its_place_to_the_next() {
        let (first, second) = (begin(0, 1, 100), begin(0, 101, 100));
        let all = chronicle(&[&first, &second, "made 0"]).unwrap();
        let sequences: Vec<_> = all.streams[0].files.iter().map(|file| file.name.sequence()).collect();
        assert_eq!(sequences, [101]);
        assert!(chronicle(&[&begin(1, 1, 100)]).is_none(), "streams are numbered from 0 on");
    }

    #[test]
    fn events_below_the_oldest_are_forgotten() {
        let begin = begin(0, 1, 100);
        let lines = [&begin, "made 0", "event 1 0 0 200", "event 4 2 0 300", "event 3 3 0 400", "event 2 1 0 500"];
        let all = chronicle(&lines).unwrap();
        assert_eq!((all.oldest, all.events.iter().copied().collect::<Vec<_>>()), (3, vec![3, 4]));
    }

    #[test]
    fn a_short_journal_has_the_same_content() {
        let (first, second, third) = (begin(0, 1, 100), begin(1, 1, 200), begin(0, 2, 300));
        let lines = [&first, "made 0", &second, "made 1", "event 1 0 0 150 1 260", "closed 0 190 7", &third];
        let all = chronicle(&lines).unwrap();
        let text = all.lines();
        let again = chronicle(&text.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_eq!((&again.streams[0].files, &again.streams[1].files), (&all.streams[0].files, &all.streams[1].files));
        assert_eq!((again.totals(), again.events, again.oldest), (all.totals(), all.events, all.oldest));
    }

    #[test]
    fn impossible_values_are_refused() {
        let name = "data_test.00000007.physics_Main.daq.RAW._lb0000._SFO-1";
        let begin = |header_bytes: u64| format!("begin 0 {name}._0001 {header_bytes}");
        let all = |lines: &[&str]| {
            let mut chronicle = Chronicle::default();
            lines.iter().try_for_each(|line| chronicle.take(line.split_ascii_whitespace())).map(|()| chronicle)
        };
        let good = all(&[&begin(100), "made 0", "event 1 0 0 150", "closed 0 200 1"]).unwrap();
        assert_eq!(good.streams[0].files[0].event_bytes(), 50 - DataSeparator::BYTES as u64);
        for header_bytes in [u64::MAX, u64::MAX - 1] {
            let end = format!("event 1 0 0 {}", u64::MAX);
            assert!(all(&[&begin(header_bytes), "made 0", &end]).is_none());
            assert!(all(&[&begin(header_bytes), "made 0", &format!("at 0 {} 1 1", u64::MAX)]).is_none());
        }
        for line in ["event 1 0 0 101", "event 1 0 1 200", "at 0 110 1 1", "at 0 200 1 2", "closed 0 99 1", "made 1"] {
            assert!(all(&[&begin(100), "made 0", line]).is_none(), "{line}");
        }
        assert!(all(&[&format!("begin 0 {name}._{} 100", u32::MAX)]).is_none());
        assert!(all(&[&begin(100), "made 0", "event 1 0 0 200", "event 2 0 0 199"]).is_none());
        assert!(all(&[&begin(100), "made 0", &format!("at 0 {} {} 1", u64::MAX, u32::MAX), "event 2 0 0 1"]).is_none());
    }
}
