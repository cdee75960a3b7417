//! Checking of whole files: what spans records, and every event (format note §5, §11).

use crate::check::{CheckOptions, Coverage, check_event};
use crate::compression::zlib_unpack;
use crate::event::Event;
use crate::file::{FileEvent, FileHeader, file_events};
use crate::id_set::IdSet;
use crate::problem::{Part, Problem, ProblemKind};
use crate::record::{DataSeparator, FileEnd, FileVersion};
use crate::twice::{Comparison, FileFacts};
use crate::word::WORD_BYTES;

/// Checks the parts of a file that span records: block numbers, counts of the end record, GUID. Checks each event, and what
/// events have in common with the file and with one another: run number, luminosity block, ids.
///
/// Fed in file order by whoever reads the file; [`check_file`] does it for a file in memory.
#[derive(Debug, Clone)]
pub struct FileChecker {
    options: CheckOptions,
    version: FileVersion,
    first_file: bool,
    compressed: bool,
    next_number: Option<u32>,
    events: u32,
    event_bytes: u64,
    comparison: Comparison,
    coverage: Coverage,
    unverified_events: u32,
}

impl FileChecker {
    /// Begins with the header; appends what is wrong with it to `problems`.
    pub fn new(header: &FileHeader, options: CheckOptions, problems: &mut Vec<Problem>) -> Self {
        let facts = FileFacts::of(&header.run, header.metadata.as_ref());
        Self::with_facts(header, facts, options, problems)
    }

    /// The same for events of which something else is known than what the header says.
    pub fn with_facts(
        header: &FileHeader,
        facts: FileFacts,
        options: CheckOptions,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let version = header.start.version;
        let first_file = header.start.file_number <= 1;
        if let Some(metadata) = &header.metadata
            && metadata.guid().is_none()
        {
            let mut before = Vec::new();
            header.start.emit(&mut before);
            header.names.emit(&mut before);
            problems.push(Problem::new(before.len(), ProblemKind::Guid));
        }
        let next_number = (first_file && version != FileVersion::V2).then_some(1);
        let compressed = header.blocks_are_compressed();
        Self {
            options,
            version,
            first_file,
            compressed,
            next_number,
            events: 0,
            event_bytes: 0,
            comparison: Comparison::new(facts),
            coverage: Coverage::default(),
            unverified_events: 0,
        }
    }

    /// Counts a block and checks its number; its data lie at `offset` of the file.
    pub fn block(&mut self, separator: DataSeparator, offset: u64, problems: &mut Vec<Problem>) {
        let found = separator.block_number;
        match self.next_number {
            Some(expected) if expected != found => {
                let at = offset - (DataSeparator::BYTES - 2 * WORD_BYTES) as u64;
                let kind = ProblemKind::BlockNumber { found, expected };
                problems.push(Problem { offset: at, unpacked_offset: None, kind });
            }
            _ => {}
        }
        self.next_number = Some(found.wrapping_add(1));
        self.events = self.events.saturating_add(1);
        self.event_bytes += u64::from(separator.block_bytes);
    }

    /// Checks the event in a block whose data lie at `offset` of the file. One that is good in itself is compared with the file
    /// and with those before it.
    pub fn event(&mut self, block: &[u8], offset: u64, problems: &mut Vec<Problem>) {
        let first = problems.len();
        if !self.compressed {
            let coverage = self.one_event(block, problems);
            if problems.len() == first {
                self.cover(coverage);
            }
            problems[first..].iter_mut().for_each(|problem| *problem = problem.shifted(offset));
            return;
        }
        match zlib_unpack(Part::DataBlock, block, self.options.unpacked_bytes_max) {
            Ok(event) => {
                self.one_event(&event, problems);
                if problems.len() == first {
                    self.cover(Coverage { covered_bytes: block.len() as u64, unverified_bytes: 0 });
                }
                problems[first..].iter_mut().for_each(|problem| *problem = problem.unpacked_from(offset));
            }
            Err(problem) => problems.push(problem.shifted(offset)),
        }
    }

    fn one_event(&mut self, bytes: &[u8], problems: &mut Vec<Problem>) -> Coverage {
        let first = problems.len();
        let coverage = check_event(bytes, &self.options, problems);
        if problems.len() == first {
            let event = Event::parse(bytes).expect("it has no problems");
            self.comparison.event(&event, problems);
        }
        coverage
    }

    fn cover(&mut self, coverage: Coverage) {
        self.coverage += coverage;
        self.unverified_events += u32::from(coverage.unverified_bytes > 0);
    }

    /// Compares the end record at `offset` with what was seen.
    pub fn end(&self, end: &FileEnd, offset: u64, problems: &mut Vec<Problem>) {
        let megabytes = FileEnd::megabytes(self.event_bytes);
        let mut compare = |index: usize, field, found: u32, expected: u32| {
            if found != expected {
                let at = offset + (index * WORD_BYTES) as u64;
                let kind = ProblemKind::EndCount { field, found, expected };
                problems.push(Problem { offset: at, unpacked_offset: None, kind });
            }
        };
        compare(4, "events in the file", end.events, self.events);
        compare(5, "MB in the file", end.megabytes, megabytes);
        if self.first_file && self.version != FileVersion::V2 {
            compare(6, "events in the sequence", end.sequence_events, self.events);
            compare(7, "MB in the sequence", end.sequence_megabytes, megabytes);
        }
    }

    /// Data blocks seen.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// Ids of the good events seen.
    pub fn ids(&self) -> &IdSet {
        self.comparison.known()
    }

    /// Events whose ids were not compared with those before them, to bound the memory: there are millions of gaps between ids.
    pub fn ids_not_compared(&self) -> u32 {
        self.comparison.not_compared()
    }

    /// What checksums say of the good events seen.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// Good events of which some data are under no checksum.
    pub fn unverified_events(&self) -> u32 {
        self.unverified_events
    }

    /// Bytes of the data blocks seen, as stored.
    pub fn event_bytes(&self) -> u64 {
        self.event_bytes
    }
}

/// Checks a complete file in memory: everything the note calls a problem, in file order.
pub fn check_file(file: &[u8], options: CheckOptions) -> Vec<Problem> {
    let mut events = match file_events(file) {
        Ok(events) => events,
        Err(problem) => return vec![problem],
    };
    let mut problems = Vec::new();
    let mut checker = FileChecker::new(events.header(), options, &mut problems);
    for event in events.by_ref() {
        match event {
            Ok(FileEvent { separator, offset, block }) => {
                checker.block(separator, offset, &mut problems);
                checker.event(block, offset, &mut problems);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if let Some(end) = events.end() {
        checker.end(end, (file.len() - FileEnd::BYTES) as u64, &mut problems);
    }
    problems
}
