//! Checking of files: everything that the format note calls a problem, with bounded memory.

use std::fmt;
use std::path::{Path, PathBuf};

use eformat::{Adler32, CheckOptions, FileChecker, FileStep, Problem};

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
    /// The first problems, in file order.
    pub problems: Vec<Problem>,
    /// Problems beyond those kept.
    pub more_problems: u64,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.is_good() { "good" } else { "BAD" };
        let Self { path, events, bytes, adler32, .. } = self;
        write!(f, "{}: {verdict}, {events} events, {bytes} bytes, Adler-32 {adler32:08X}", path.display())?;
        for problem in &self.problems {
            write!(f, "\n  {problem}")?;
        }
        if self.more_problems > 0 {
            write!(f, "\n  and {} more", self.more_problems)?;
        }
        Ok(())
    }
}

/// Checks a file: records, events at all levels, checksums, counts.
///
/// Memory is bounded by the limits, whatever the size of the file and whatever it claims.
///
/// # Errors
///
/// Only if the file cannot be read; whatever its content is, is in the report.
pub fn check(path: &Path, limits: &CheckLimits) -> Result<CheckReport, ReadError> {
    let mut scan = Scan::open(path)?;
    let mut report = CheckReport {
        path: path.to_owned(),
        bytes: scan.file_bytes(),
        events: 0,
        event_bytes: 0,
        adler32: 0,
        problems: Vec::new(),
        more_problems: 0,
    };
    let mut sum = Adler32::new();
    let mut summed = 0;
    let mut found = Vec::new();
    let mut checker: Option<FileChecker> = None;
    loop {
        let offset = scan.offset();
        let step = scan.step()?;
        let mut go_on = true;
        match (step, &mut checker) {
            (Ok(FileStep::Block { separator, range }), Some(checker)) => {
                checker.block(separator, range.start, &mut found);
                match oversize(&separator, range.start, limits.event_bytes_max) {
                    Some(problem) => found.push(problem),
                    None => checker.event(scan.bytes(range.clone())?, range.start, &mut found),
                }
                scan.sum(summed..range.end, &mut sum)?;
                summed = range.end;
            }
            (Ok(FileStep::End(end)), Some(checker)) => {
                checker.end(&end, offset, &mut found);
                go_on = false;
            }
            (Ok(_), _) => checker = Some(FileChecker::new(&scan.header()?, limits.event, &mut found)),
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
    if let Some(checker) = checker {
        report.events = checker.events();
        report.event_bytes = checker.event_bytes();
    }
    Ok(report)
}

impl CheckReport {
    fn keep(&mut self, found: &mut Vec<Problem>, problems_max: usize) {
        let room = problems_max.max(1).saturating_sub(self.problems.len()).min(found.len());
        self.problems.extend(found.drain(..room));
        self.more_problems += found.drain(..).len() as u64;
    }
}
