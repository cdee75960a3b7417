//! A valid file out of a damaged one, which stays as it is.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use eformat::stream_tag::{self, Entry};
use eformat::{
    CheckOptions, DataSeparator, Event, FileChecker, FileEnd, FileHeader, FileVersion, Problem, ProblemKind,
};

use crate::backend::{Backend, Disk};
use crate::check::{CheckLimits, CheckReport, check};
use crate::clock::local_stamp;
use crate::output::Output;
use crate::rebuild::Rebuilt;
use crate::salvage::{Damage, Piece, Salvage};
use crate::scan::{ReadError, Scan};

/// What [`recover`] kept and what was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The damaged file.
    pub input: PathBuf,
    /// The valid file; the same as the input, if that is good already and nothing was written.
    pub path: PathBuf,
    /// Stream as `type_name`, if the file says so.
    pub stream: Option<String>,
    /// Events in it.
    pub events_kept: u32,
    /// Of these, events whose first copy is here: those that name this stream first, or none.
    pub first_copies: u32,
    /// Size of the valid file.
    pub bytes: u64,
    /// Adler-32 of all its bytes.
    pub adler32: u32,
    /// Events that were lost, as far as is known.
    pub events_lost: u64,
    /// Whether more may be lost than is known.
    pub may_be_more: bool,
    /// Bytes of the input that are not in the valid file, for what is wrong with them.
    pub bytes_skipped: u64,
    /// The first of these, in file order.
    pub damages: Vec<Damage>,
    /// Damages beyond those kept.
    pub more_damages: u64,
}

impl Recovered {
    /// Whether all events are kept.
    pub fn is_complete(&self) -> bool {
        self.events_lost == 0 && !self.may_be_more
    }
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { input, path, events_kept, events_lost, bytes_skipped, .. } = self;
        if input == path {
            return write!(f, "{}: good, {events_kept} events; there is nothing to recover", input.display());
        }
        let least = if self.may_be_more { "at least " } else { "" };
        write!(f, "{} -> {}: {events_kept} events kept, {least}{events_lost} lost", input.display(), path.display())?;
        write!(f, ", {bytes_skipped} bytes skipped")?;
        for damage in &self.damages {
            write!(f, "\n  {damage}")?;
        }
        if self.more_damages > 0 {
            write!(f, "\n  and {} more", self.more_damages)?;
        }
        Ok(())
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { range, events_lost, problem } = self;
        write!(f, "bytes {} to {}: ", range.start, range.end)?;
        match events_lost {
            Some(0) => f.write_str("no event lost")?,
            Some(1) => f.write_str("1 event lost")?,
            Some(events) => write!(f, "{events} events lost")?,
            None => f.write_str("it is not known how many events are lost")?,
        }
        write!(f, " ({problem})")
    }
}

/// Why there is no valid file. The input is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// It cannot be read, or has neither a header nor events: then there is nothing to save.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The valid file cannot be written.
    #[error("cannot {action} {}: {source}; the valid file can be written elsewhere with --output", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The name of the valid file is taken.
    #[error("{} exists and is not overwritten: move it away, or name another file with --output", path.display())]
    Exists {
        /// The name.
        path: PathBuf,
    },
}

/// Writes a valid file with all whole events of a damaged or torn one, by default beside it, as `NAME.recovered.data`.
///
/// The input is never changed and no file is overwritten. An event is whole if [`check`] finds nothing wrong with it, checksums
/// included. Its data block is the same, byte for byte; blocks are numbered anew. What of the header is damaged is
/// made anew of what the name of the file and its events say. A file that is good needs no other: without `output` none is
/// written, unless its name ends in `.writing`. Takes time in proportion to the size of the file, and memory for its largest event and
/// for the gaps between event ids.
///
/// # Errors
///
/// See [`RecoverError`].
pub fn recover(path: &Path, output: Option<&Path>) -> Result<Recovered, RecoverError> {
    let report = check(path, &CheckLimits::default())?;
    if report.is_good() && output.is_none() && path.extension().is_none_or(|extension| extension != "writing") {
        return Ok(find(path, &mut |_| Ok(()))?.recovered.of_good(&report));
    }
    let target = output.map_or_else(|| beside(path), Path::to_owned);
    let temporary = with_suffix(&target, ".writing");
    for path in [&target, &temporary] {
        if path.try_exists().map_err(io_error("look at", path))? {
            return Err(RecoverError::Exists { path: path.clone() });
        }
    }
    let mut recovered = write(path, &temporary)?;
    if target.try_exists().map_err(io_error("look at", &target))? {
        remove(&temporary);
        return Err(RecoverError::Exists { path: target });
    }
    fs::rename(&temporary, &target).map_err(io_error("rename", &temporary))?;
    sync_directory_of(&target)?;
    recovered.path = target;
    Ok(recovered)
}

/// Half a file is of no use, and takes room.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
}

/// Where the valid file goes by default.
fn beside(path: &Path) -> PathBuf {
    let is_raw = path.extension().is_some_and(|extension| extension == "writing" || extension == "data");
    with_suffix(&if is_raw { path.with_extension("") } else { path.to_owned() }, ".recovered.data")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Writes the valid file.
fn write(path: &Path, target: &Path) -> Result<Recovered, RecoverError> {
    let mut output = None;
    let error = |source| RecoverError::Io { action: "write", path: target.to_owned(), source };
    let found = find(path, &mut |part| {
        let output = match &mut output {
            Some(output) => output,
            none => none.insert(Output::new(Disk.create(target).map_err(error)?)),
        };
        match part {
            FilePart::Record(record) => output.append(record, &[]),
            FilePart::Event(separator, event) => output.append(&separator.emit(), &[event]),
        }
        .map_err(error)
    });
    let written = found.and_then(|Found { mut recovered, .. }| {
        let output = output.as_mut().expect("a header was written");
        output.sync(&Disk, target).map_err(error)?;
        (recovered.bytes, recovered.adler32) = (output.bytes(), output.adler32());
        Ok(recovered)
    });
    if written.is_err() && output.is_some() {
        remove(target);
    }
    written
}

/// What is to be found in a file.
pub(crate) struct Found {
    pub(crate) recovered: Recovered,
    /// The end record of the valid file.
    pub(crate) end: FileEnd,
}

/// A part of the valid file, in order.
pub(crate) enum FilePart<'a> {
    Record(&'a [u8]),
    Event(DataSeparator, &'a [u8]),
}

pub(crate) type Sink<'s> = &'s mut dyn FnMut(FilePart<'_>) -> Result<(), RecoverError>;

/// Goes through the whole file and gives the parts of the valid one.
pub(crate) fn find(path: &Path, sink: Sink<'_>) -> Result<Found, RecoverError> {
    let mut scan = Scan::open(path)?;
    let rebuilt = Rebuilt::of(path, &mut scan)?.map_err(|problem| scan.bad(problem))?;
    let Rebuilt { header, facts, begin, is_original, problem: header_problem } = rebuilt;
    let header_bytes = match is_original {
        true => scan.bytes(0..begin)?.to_vec(),
        false => header.emit(),
    };
    sink(FilePart::Record(&header_bytes))?;
    let stream = header.metadata.as_ref().and_then(|metadata| metadata.value("Stream")).map(str::to_owned);
    let mut found = Finding {
        recovered: Recovered::none(path, stream),
        event_bytes: 0,
        first_number: None,
        is_first_file: header.start.file_number <= 1 && header.start.version != FileVersion::V2,
    };
    if !is_original && header_problem.is_none() {
        let kind = ProblemKind::HeaderDiffers;
        let problem = Problem { offset: 0, unpacked_offset: None, kind };
        found.damage(Damage { range: 0..begin, events_lost: Some(0), problem });
    }
    let checker = FileChecker::with_facts(&header, facts, CheckOptions::default(), &mut Vec::new());
    let file_bytes = scan.file_bytes();
    let mut salvage = Salvage::new(&mut scan, &header, checker, begin)?;
    while let Some(piece) = salvage.next()? {
        match piece {
            Piece::Damage(mut damage) => {
                if damage.range.start == 0
                    && let Some(problem) = header_problem
                {
                    damage.problem = problem;
                }
                found.damage(damage);
            }
            Piece::Event { block, number } => {
                let bytes = salvage.bytes(block)?;
                sink(FilePart::Event(found.event(bytes, number), bytes))?;
            }
        }
    }
    let before = salvage.end().copied();
    if before.is_none() && found.recovered.damages.last().is_none_or(|last| last.range.end != file_bytes) {
        let problem = Problem { offset: file_bytes, unpacked_offset: None, kind: ProblemKind::NoEndRecord };
        found.damage(Damage { range: file_bytes..file_bytes, events_lost: Some(0), problem });
    }
    let end = found.end(&header, before.as_ref());
    if let Some(before) = before.filter(|before| *before != end) {
        found.end_differs(&header, &before, file_bytes);
    }
    let mut record = Vec::new();
    end.emit(&mut record);
    sink(FilePart::Record(&record))?;
    Ok(Found { recovered: found.recovered, end })
}

/// What was found so far.
struct Finding {
    recovered: Recovered,
    event_bytes: u64,
    first_number: Option<u32>,
    is_first_file: bool,
}

impl Finding {
    fn event(&mut self, block: &[u8], number: Option<u32>) -> DataSeparator {
        let first = if self.is_first_file { 1 } else { number.unwrap_or(1) };
        let first = *self.first_number.get_or_insert(first);
        let separator = DataSeparator {
            block_number: first.wrapping_add(self.recovered.events_kept),
            block_bytes: u32::try_from(block.len()).expect("a block has fewer than 2^32 bytes"),
        };
        let stream = self.recovered.stream.as_deref();
        self.recovered.first_copies += u32::from(is_first_copy(block, stream));
        self.recovered.events_kept += 1;
        self.event_bytes += block.len() as u64;
        separator
    }

    fn damage(&mut self, damage: Damage) {
        let Recovered { events_lost, may_be_more, bytes_skipped, damages, more_damages, .. } = &mut self.recovered;
        *events_lost += u64::from(damage.events_lost.unwrap_or(0));
        *may_be_more |= damage.events_lost.is_none();
        *bytes_skipped += damage.range.end - damage.range.start;
        match damages.len() < DAMAGES_MAX {
            true => damages.push(damage),
            false => *more_damages += 1,
        }
    }

    /// The end record tells of events that are gone without another trace, or is all that is wrong.
    fn end_differs(&mut self, header: &FileHeader, before: &FileEnd, file_bytes: u64) {
        let events_lost = self.lost_without_trace(header, before);
        let is_told = self.recovered.may_be_more || events_lost == Some(0);
        if is_told && !self.recovered.damages.is_empty() {
            return;
        }
        let (found, expected) = (before.events, self.recovered.events_kept);
        let kind = ProblemKind::EndCount { field: "events in the file", found, expected };
        let at = file_bytes - FileEnd::BYTES as u64;
        let problem = Problem { offset: at + 16, unpacked_offset: None, kind };
        self.damage(Damage { range: at..file_bytes, events_lost, problem });
    }

    /// Events that the end record counts, and that are neither kept nor told as lost; `None` if its two counts do not agree on that.
    fn lost_without_trace(&self, header: &FileHeader, before: &FileEnd) -> Option<u32> {
        let known = u64::from(self.recovered.events_kept) + self.recovered.events_lost;
        let in_earlier_files = match header.start.version {
            FileVersion::V2 => 0,
            _ => u64::from(self.first_number.unwrap_or(1)).saturating_sub(1),
        };
        let by_events = u64::from(before.events).saturating_sub(known);
        let by_sequence = u64::from(before.sequence_events).saturating_sub(in_earlier_files + known);
        let lost = match (by_events, by_sequence) {
            (lost, same) if lost == same => Some(lost),
            (0, _) => Some(0),
            // The numbers of the blocks, which begin with 1, are with the sequence.
            (_, 0) if self.is_first_file => Some(0),
            _ => None,
        };
        lost.map(|lost| u32::try_from(lost).unwrap_or(u32::MAX))
    }

    /// The counts of the sequence go on from what the record said; without one they are what the block numbers say. MB of earlier
    /// files cannot be known then.
    fn end(&self, header: &FileHeader, before: Option<&FileEnd>) -> FileEnd {
        let events = self.recovered.events_kept;
        let megabytes = FileEnd::megabytes(self.event_bytes);
        let numbered = header.start.version != FileVersion::V2 && events > 0;
        let last_number = self.first_number.unwrap_or(1).wrapping_add(events).wrapping_sub(1);
        let own = (if numbered { last_number } else { events }, megabytes);
        let (sequence_events, sequence_megabytes) = match before {
            Some(end) if !self.is_first_file => (
                end.sequence_events.saturating_sub(end.events).saturating_add(events),
                end.sequence_megabytes.saturating_sub(end.megabytes).saturating_add(megabytes),
            ),
            _ => own,
        };
        let (closed, status) = before.map_or_else(|| (local_stamp(), LAST_OF_SEQUENCE), |end| (end.closed, end.status));
        FileEnd { closed, events, megabytes, sequence_events, sequence_megabytes, status }
    }
}

impl Recovered {
    /// It for a file that is good, as the check of all its events has found.
    pub(crate) fn of_good(self, report: &CheckReport) -> Self {
        let CheckReport { events, bytes, adler32, .. } = *report;
        let (events_kept, first_copies) = (events, self.first_copies);
        Self { events_kept, first_copies, bytes, adler32, ..Self::none(&self.input, self.stream) }
    }

    fn none(path: &Path, stream: Option<String>) -> Self {
        Self {
            input: path.to_owned(),
            path: path.to_owned(),
            stream,
            events_kept: 0,
            first_copies: 0,
            bytes: 0,
            adler32: 0,
            events_lost: 0,
            may_be_more: false,
            bytes_skipped: 0,
            damages: Vec::new(),
            more_damages: 0,
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

pub(crate) fn sync_directory_of(path: &Path) -> Result<(), RecoverError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(io_error("sync", parent))
}

pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RecoverError {
    let path = path.to_owned();
    move |source| RecoverError::Io { action, path, source }
}

const LAST_OF_SEQUENCE: u32 = 1;
/// Damages that are told one by one.
const DAMAGES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use eformat::{FileNames, FileStart, FileVersion, RunParameters, Stamp};

    use super::*;

    fn finding(is_first_file: bool) -> Finding {
        let recovered = Recovered::none(Path::new("a"), None);
        Finding { recovered, event_bytes: 0, first_number: None, is_first_file }
    }

    fn damage(events_lost: Option<u32>) -> Damage {
        let problem = Problem { offset: 0, unpacked_offset: None, kind: ProblemKind::NoEndRecord };
        Damage { range: 10..14, events_lost, problem }
    }

    #[test]
    fn the_valid_file_lies_beside_the_damaged_one() {
        let cases = [("d/a.data", "d/a.recovered.data"), ("d/a.writing", "d/a.recovered.data")];
        for (path, target) in cases.into_iter().chain([("a.raw", "a.raw.recovered.data"), ("a", "a.recovered.data")]) {
            assert_eq!(beside(Path::new(path)), Path::new(target));
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_durable_is_an_error() {
        assert!(sync_directory_of(Path::new("a file here")).is_ok());
        let error = sync_directory_of(Path::new("/no such directory/file")).unwrap_err();
        assert!(matches!(error, RecoverError::Io { action: "sync", .. }), "{error}");
    }

    #[test]
    fn damages_beyond_those_that_are_told_are_counted() {
        let mut found = finding(true);
        (0..=DAMAGES_MAX).for_each(|_| found.damage(damage(Some(2))));
        let Recovered { damages, more_damages, events_lost, bytes_skipped, may_be_more, .. } = &found.recovered;
        let all = DAMAGES_MAX as u64 + 1;
        assert_eq!((damages.len(), *more_damages), (DAMAGES_MAX, 1));
        assert_eq!((*events_lost, *bytes_skipped, *may_be_more), (2 * all, 4 * all, false));
        assert!(!found.recovered.is_complete());
        found.recovered.path = "b".into();
        let text = found.recovered.to_string();
        let said = ["0 events kept, 2002 lost, 4004 bytes skipped", "\n  bytes 10 to 14: 2 events lost (byte 0: "];
        assert!(said.iter().all(|said| text.contains(said)) && text.ends_with("\n  and 1 more"), "{text}");
        assert_eq!(text.lines().count(), 1 + DAMAGES_MAX + 1);
        found.damage(damage(None));
        assert!(found.recovered.may_be_more && found.recovered.to_string().contains("at least 2002 lost"));
        let mut few = finding(true);
        few.recovered.path = "b".into();
        let texts = [Some(0), Some(1), None].map(|lost| {
            few.damage(damage(lost));
            few.recovered.to_string()
        });
        let said = ["no event lost", "1 event lost", "it is not known how many events are lost"];
        assert!(texts.iter().zip(said).all(|(text, said)| text.lines().last().unwrap().contains(said)), "{texts:?}");
    }

    #[test]
    fn nothing_lost_for_certain_is_complete() {
        let complete = |lost| {
            let mut found = finding(true);
            found.damage(damage(lost));
            found.recovered.is_complete()
        };
        assert_eq!([Some(0), Some(1), None].map(complete), [true, false, false]);
    }

    /// Of 5 events and 3 MB two are kept, with half a megabyte each.
    #[test]
    fn the_sequence_goes_on_from_what_its_last_record_said() {
        let header = |version, file_number| FileHeader {
            start: FileStart { version, file_number, opened: Stamp::default(), blocks_max: 0, megabytes_max: 0 },
            names: FileNames { application: String::new(), core: String::new() },
            metadata: None,
            run: RunParameters::default(),
        };
        let closed = Stamp::default();
        let before =
            FileEnd { closed, events: 5, megabytes: 3, sequence_events: 105, sequence_megabytes: 43, status: 0 };
        let own = FileEnd { closed, events: 2, megabytes: 1, sequence_events: 2, sequence_megabytes: 1, status: 0 };
        let end_of = |version, number, before: Option<&FileEnd>| {
            let mut found = finding(number == 1);
            for block_number in [101, 103] {
                found.event(&vec![0; 1 << 19], Some(block_number));
            }
            found.end(&header(version, number), before)
        };
        assert_eq!(end_of(FileVersion::V6, 1, Some(&before)), own);
        let later = FileEnd { sequence_events: 102, sequence_megabytes: 41, ..own };
        assert_eq!(end_of(FileVersion::V6, 2, Some(&before)), later);
        let numbered = end_of(FileVersion::V6, 2, None);
        assert_eq!((numbered.sequence_events, numbered.sequence_megabytes, numbered.status), (102, 1, 1));
        assert_eq!(end_of(FileVersion::V2, 2, None).sequence_events, 2);
    }

    #[test]
    fn blocks_are_numbered_anew() {
        let numbers =
            |mut found: Finding| [Some(7), None, Some(3)].map(|number| found.event(&[0; 8], number).block_number);
        assert_eq!(numbers(finding(true)), [1, 2, 3]);
        assert_eq!(numbers(finding(false)), [7, 8, 9]);
    }
}
