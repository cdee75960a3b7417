//! Checking of files: everything that the format note calls a problem, what is there twice, and how much nothing verifies.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use eformat::{Adler32, CheckOptions, Coverage, FileChecker, FileHeader, FileStep, Guid, IdSet, Metadata, Problem};

use crate::reader::oversize;
use crate::scan::{EVENT_BYTES_MAX, ReadError, Scan};

/// What [`check`] looks at and how much it keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckLimits {
    /// What is checked in an event.
    pub event: CheckOptions,
    /// Largest event that is read, in bytes; a larger one is a problem and is passed over.
    pub event_bytes_max: usize,
    /// Problems kept in the report; further ones are counted.
    pub problems_max: usize,
}

impl Default for CheckLimits {
    fn default() -> Self {
        Self { event: CheckOptions::default(), event_bytes_max: EVENT_BYTES_MAX, problems_max: 100 }
    }
}

/// What [`check`] found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Data blocks that lie in it completely.
    pub events: u32,
    /// Bytes of these blocks.
    pub event_bytes: u64,
    /// Adler-32 of all bytes of the file (note §11.8).
    pub adler32: u32,
    /// What checksums say of the events.
    pub coverage: Coverage,
    /// Events of which some data are under no checksum.
    pub unverified_events: u32,
    /// Events whose id was not compared with those before it, to bound the memory.
    pub ids_not_compared: u32,
    /// The first problems, in file order.
    pub problems: Vec<Problem>,
    /// Problems beyond those kept.
    pub more_problems: u64,
    /// Events that files of the same stream, checked before, hold too.
    pub duplicates: Vec<Duplicates>,
}

/// Events that two files of a stream hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicates {
    /// The file that was checked before.
    pub path: PathBuf,
    /// How many events.
    pub events: u64,
    /// The lowest of their ids.
    pub first_event: u64,
}

impl CheckReport {
    /// Whether nothing is wrong, as far as it can be checked.
    pub fn is_good(&self) -> bool {
        self.problems.is_empty() && self.duplicates.is_empty()
    }

    /// Whether nothing is wrong, and checksums vouch for all data.
    pub fn is_verified(&self) -> bool {
        self.is_good() && self.unverified_events == 0 && self.ids_not_compared == 0
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.is_good(), self.is_verified()) {
            (_, true) => "good",
            (true, false) => "not verified",
            (false, _) => "BAD",
        };
        let Self { path, events, bytes, adler32, .. } = self;
        write!(f, "{}: {verdict}, {events} events, {bytes} bytes, Adler-32 {adler32:08X}", path.display())?;
        if *events > 0 {
            let permille = u128::from(self.coverage.covered_bytes) * 1000 / u128::from(self.event_bytes.max(1));
            write!(f, ", {}.{} % of the event bytes under checksums", permille / 10, permille % 10)?;
        }
        if self.unverified_events > 0 {
            let (bytes, events) = (self.coverage.unverified_bytes, self.unverified_events);
            write!(
                f,
                "\n  not verified: {bytes} bytes of data in {events} events, which have no checksum that is checked"
            )?;
        }
        if self.ids_not_compared > 0 {
            let events = self.ids_not_compared;
            write!(
                f,
                "\n  not verified: whether {events} events are there twice, as there are too many gaps between ids"
            )?;
        }
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        if self.more_problems > 0 {
            write!(f, "\n  and {} more", self.more_problems)?;
        }
        for Duplicates { path, events, first_event } in &self.duplicates {
            write!(f, "\n  {events} events are in {} too, the first of them event id {first_event}", path.display())?;
        }
        Ok(())
    }
}

/// Checks a file: records, events at all levels, checksums, counts, and whether what is there twice is the same.
///
/// The limits bound the memory, whatever the size of the file and whatever it claims. Gaps between event ids come on top: at most
/// 2^24 are remembered, with some 30 bytes each.
///
/// # Errors
///
/// Only if the file cannot be read; whatever its content is, is in the report.
pub fn check(path: &Path, limits: &CheckLimits) -> Result<CheckReport, ReadError> {
    Checks::default().check(path, limits)
}

/// Checks of several files that may belong together: an event is in a stream of a run once.
#[derive(Debug, Default)]
pub struct Checks {
    streams: BTreeMap<Stream, KnownEvents>,
    files: Vec<PathBuf>,
}

/// Run number and `type_name`.
type Stream = (u32, Option<String>);

/// The events of a stream.
#[derive(Debug, Default)]
struct KnownEvents {
    /// Files that are copies of one another have the same one.
    guids: Vec<Guid>,
    /// First id to last id and the file that they are in.
    ranges: BTreeMap<u64, (u64, usize)>,
}

impl Checks {
    /// As [`check`], and whether events of the file are in files checked before. Not compared are files of different streams, which
    /// may both have an event, and copies of one file, which have its GUID.
    ///
    /// # Errors
    ///
    /// As for [`check`].
    pub fn check(&mut self, path: &Path, limits: &CheckLimits) -> Result<CheckReport, ReadError> {
        let mut scan = Scan::open(path)?;
        let mut report = CheckReport::new(path, scan.file_bytes());
        let checker = walk(&mut scan, limits, &mut report)?;
        if let Some((header, checker)) = checker {
            report.events = checker.events();
            report.event_bytes = checker.event_bytes();
            report.coverage = checker.coverage();
            report.unverified_events = checker.unverified_events();
            report.ids_not_compared = checker.ids_not_compared();
            report.duplicates = self.remember(path, &header, checker.ids());
        }
        Ok(report)
    }

    fn remember(&mut self, path: &Path, header: &FileHeader, ids: &IdSet) -> Vec<Duplicates> {
        let metadata = header.metadata.as_ref();
        let stream = metadata.and_then(|metadata| metadata.value("Stream")).map(str::to_owned);
        let known = self.streams.entry((header.run.run_number, stream)).or_default();
        if let Some(guid) = metadata.and_then(Metadata::guid) {
            if known.guids.contains(&guid) {
                return Vec::new();
            }
            known.guids.push(guid);
        }
        self.files.push(path.to_owned());
        let found = ids.ranges().flat_map(|range| known.add(range, self.files.len() - 1));
        let mut duplicates = BTreeMap::<usize, Duplicates>::new();
        for (first_event, last, file) in found {
            let path = || self.files[file].clone();
            let entry = duplicates.entry(file).or_insert_with(|| Duplicates { path: path(), events: 0, first_event });
            entry.events = entry.events.saturating_add((last - first_event).saturating_add(1));
        }
        duplicates.into_values().collect()
    }
}

impl KnownEvents {
    /// Adds those of a file that are not known; gives those that are, in ranges with their file.
    fn add(&mut self, (first, last): (u64, u64), file: usize) -> Vec<(u64, u64, usize)> {
        let begins_before = self.ranges.range(..=first).next_back().filter(|(_, (end, _))| *end >= first);
        let overlapping_from = begins_before.map_or(first, |(begin, _)| *begin);
        let overlapping: Vec<_> = self.ranges.range(overlapping_from..=last).collect();
        let overlaps = overlapping.iter().map(|(begin, (end, file))| (first.max(**begin), last.min(*end), *file));
        let overlaps: Vec<_> = overlaps.collect();
        let mut next = Some(first);
        for (begin, end, _) in &overlaps {
            if let Some(free) = next.filter(|free| free < begin) {
                self.ranges.insert(free, (begin - 1, file));
            }
            next = end.checked_add(1);
        }
        if let Some(free) = next.filter(|free| *free <= last) {
            self.ranges.insert(free, (last, file));
        }
        overlaps
    }
}

/// Checks everything from the first to the last byte, as far as the records lead; gives the header, if it is valid.
fn walk(
    scan: &mut Scan,
    limits: &CheckLimits,
    report: &mut CheckReport,
) -> Result<Option<(FileHeader, FileChecker)>, ReadError> {
    let mut sum = Adler32::new();
    let mut summed = 0;
    let mut found = Vec::new();
    let mut checker: Option<(FileHeader, FileChecker)> = None;
    loop {
        let offset = scan.offset();
        let step = scan.step()?;
        let mut go_on = true;
        match (step, &mut checker) {
            (Ok(FileStep::Block { separator, range }), Some((_, checker))) => {
                checker.block(separator, range.start, &mut found);
                match oversize(&separator, range.start, limits.event_bytes_max) {
                    Some(problem) => found.push(problem),
                    None => checker.event(scan.bytes(range.clone())?, range.start, &mut found),
                }
                scan.sum(summed..range.end, &mut sum)?;
                summed = range.end;
            }
            (Ok(FileStep::End(end)), Some((_, checker))) => {
                checker.end(&end, offset, &mut found);
                go_on = false;
            }
            (Ok(_), _) => {
                let header = scan.header()?;
                let begun = FileChecker::new(&header, limits.event, &mut found);
                checker = Some((header, begun));
            }
            (Err(problem), _) => {
                found.push(problem);
                go_on = false;
            }
        }
        report.keep(&mut found, limits.problems_max);
        if !go_on {
            break;
        }
    }
    scan.sum(summed..scan.file_bytes(), &mut sum)?;
    report.adler32 = sum.value();
    Ok(checker)
}

impl CheckReport {
    fn new(path: &Path, bytes: u64) -> Self {
        Self {
            path: path.to_owned(),
            bytes,
            events: 0,
            event_bytes: 0,
            adler32: 0,
            coverage: Coverage::default(),
            unverified_events: 0,
            ids_not_compared: 0,
            problems: Vec::new(),
            more_problems: 0,
            duplicates: Vec::new(),
        }
    }

    fn keep(&mut self, found: &mut Vec<Problem>, problems_max: usize) {
        let room = problems_max.max(1).saturating_sub(self.problems.len()).min(found.len());
        self.problems.extend(found.drain(..room));
        self.more_problems += found.drain(..).len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_report_says_what_is_wrong_and_what_nothing_vouches_for() {
        let good =
            CheckReport { events: 3, event_bytes: 1000, adler32: 0xab, ..CheckReport::new(Path::new("a"), 1234) };
        let covered = Coverage { covered_bytes: 876, unverified_bytes: 0 };
        let head = "3 events, 1234 bytes, Adler-32 000000AB, 87.6 % of the event bytes under checksums";
        let covered_only = CheckReport { coverage: covered, ..good.clone() };
        assert_eq!(covered_only.to_string(), format!("a: good, {head}"));
        assert_eq!(CheckReport::new(Path::new("a"), 9).to_string(), "a: good, 0 events, 9 bytes, Adler-32 00000000");

        let coverage = Coverage { unverified_bytes: 5, ..covered };
        let unverified = CheckReport { coverage, unverified_events: 2, ..good.clone() };
        let reason = "5 bytes of data in 2 events, which have no checksum that is checked";
        assert_eq!(unverified.to_string(), format!("a: not verified, {head}\n  not verified: {reason}"));

        let gaps = CheckReport { coverage: covered, ids_not_compared: 4, ..good.clone() };
        let reason = "whether 4 events are there twice, as there are too many gaps between ids";
        assert_eq!(gaps.to_string(), format!("a: not verified, {head}\n  not verified: {reason}"));

        let kind = eformat::ProblemKind::NoEndRecord;
        let problem = Problem { offset: 7, unpacked_offset: None, kind };
        let problems = CheckReport { coverage: covered, problems: vec![problem], more_problems: 6, ..good.clone() };
        assert_eq!(problems.to_string(), format!("a: BAD, {head}\n  {problem}\n  and 6 more"));

        let duplicates = vec![Duplicates { path: "b".into(), events: 2, first_event: 8 }];
        let twice = CheckReport { coverage: covered, duplicates, ..good };
        let line = "2 events are in b too, the first of them event id 8";
        assert_eq!(twice.to_string(), format!("a: BAD, {head}\n  {line}"));

        let all = [covered_only, unverified, gaps, problems, twice];
        assert_eq!(all.each_ref().map(CheckReport::is_good), [true, true, true, false, false]);
        assert_eq!(all.each_ref().map(CheckReport::is_verified), [true, false, false, false, false]);
    }

    proptest! {
        #[test]
        fn an_event_belongs_to_the_file_that_had_it_first(
            files in proptest::collection::vec(proptest::collection::btree_set(0..40_u64, 0..20), 1..6),
        ) {
            let (mut known, mut first_file) = (KnownEvents::default(), BTreeMap::new());
            for (file, ids) in files.into_iter().enumerate() {
                let mut set = IdSet::default();
                let mut expected = Vec::new();
                for id in ids {
                    set.insert(id);
                    match first_file.get(&id) {
                        Some(first) => expected.push((id, *first)),
                        None => drop(first_file.insert(id, file)),
                    }
                }
                let found = set.ranges().flat_map(|range| known.add(range, file));
                let found: Vec<_> =
                    found.flat_map(|(first, last, file)| (first..=last).map(move |id| (id, file))).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn the_last_number_is_an_id_too() {
        let mut known = KnownEvents::default();
        assert_eq!(known.add((u64::MAX - 1, u64::MAX), 0), []);
        assert_eq!(known.add((0, u64::MAX), 1), [(u64::MAX - 1, u64::MAX, 0)]);
        assert_eq!(known.add((5, 5), 2), [(5, 5, 1)]);
    }
}
