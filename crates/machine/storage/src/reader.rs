//! The events of a file, one by one.

use std::path::Path;

use eformat::{DataSeparator, FileEnd, FileHeader, FileStep, Part, Problem, ProblemKind, zlib_unpack};

use crate::scan::{EVENT_BYTES_MAX, ReadError, Scan};

/// Reads the events of a file of any supported version, also one that was not closed, with bounded memory.
#[derive(Debug)]
pub struct FileReader {
    scan: Scan,
    header: FileHeader,
    event_bytes_max: usize,
    unpacked: Vec<u8>,
    end: Option<FileEnd>,
    failed: bool,
}

/// One event of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadEvent<'a> {
    /// Number of the data block.
    pub block_number: u32,
    /// Offset of the data block in the file.
    pub offset: u64,
    /// The full event; decompressed if the file compresses its blocks (version 5).
    pub bytes: &'a [u8],
}

impl FileReader {
    /// Reads everything in front of the events.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or what is in front of the events is damaged.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::open_with_limit(path, EVENT_BYTES_MAX)
    }

    /// The same with another limit for one event than 256 MB, in bytes.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn open_with_limit(path: &Path, event_bytes_max: usize) -> Result<Self, ReadError> {
        let mut scan = Scan::open(path)?;
        let header = scan.header()?;
        Ok(Self { scan, header, event_bytes_max, unpacked: Vec::new(), end: None, failed: false })
    }

    /// The records in front of the events.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The file end record, after the last event.
    pub fn end(&self) -> Option<&FileEnd> {
        self.end.as_ref()
    }

    /// The next event; `None` behind the last one, and after an error.
    ///
    /// # Errors
    ///
    /// A damaged or missing record, or an event above the limit. What is inside the event is not checked.
    pub fn next_event(&mut self) -> Result<Option<ReadEvent<'_>>, ReadError> {
        if self.failed || self.end.is_some() {
            return Ok(None);
        }
        // Taken back below: every way out with `?` ends the reading.
        self.failed = true;
        let (separator, range) = match self.scan.step()?.map_err(|problem| self.scan.bad(problem))? {
            FileStep::Block { separator, range } => (separator, range),
            FileStep::End(end) => {
                self.failed = false;
                self.end = Some(end);
                return Ok(None);
            }
            FileStep::Header | FileStep::Need(_) => unreachable!("the header was read by open"),
        };
        if let Some(problem) = oversize(&separator, range.start, self.event_bytes_max) {
            return Err(self.scan.bad(problem));
        }
        if self.header.blocks_are_compressed() {
            let block = self.scan.bytes(range.clone())?;
            self.unpacked = zlib_unpack(Part::DataBlock, block, self.event_bytes_max)
                .map_err(|problem| self.scan.bad(problem.shifted(range.start)))?;
        }
        self.failed = false;
        let bytes = match self.header.blocks_are_compressed() {
            true => &self.unpacked,
            false => self.scan.bytes(range.clone())?,
        };
        Ok(Some(ReadEvent { block_number: separator.block_number, offset: range.start, bytes }))
    }
}

/// The problem of a block above the limit.
pub(crate) fn oversize(separator: &DataSeparator, offset: u64, limit: usize) -> Option<Problem> {
    let bytes = u64::from(separator.block_bytes);
    let kind = ProblemKind::Oversize { part: Part::DataBlock, bytes, limit_bytes: limit as u64 };
    (bytes > limit as u64).then_some(Problem { offset, unpacked_offset: None, kind })
}
