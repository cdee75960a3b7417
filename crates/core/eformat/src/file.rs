//! The way through a RAW file (format note §11), record by record, without reading anything itself.

use std::ops::Range;

use crate::problem::{Part, Problem, ProblemKind};
use crate::record::{
    DataSeparator, FileEnd, FileNames, FileStart, FileVersion, Metadata, Parsed, RunParameters, marker, short_record,
};
use crate::word::{WORD_BYTES, word};

/// Everything in front of the events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHeader {
    /// File start record.
    pub start: FileStart,
    /// File name strings.
    pub names: FileNames,
    /// Metadata strings; version 2 files have none.
    pub metadata: Option<Metadata>,
    /// Run parameters.
    pub run: RunParameters,
}

impl FileHeader {
    /// The four (or three) records, as the start of a file.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.start.emit(&mut out);
        self.names.emit(&mut out);
        if let Some(metadata) = &self.metadata {
            metadata.emit(&mut out);
        }
        self.run.emit(self.start.version, &mut out);
        out
    }

    /// Whether each data block is one zlib stream (note §11.5); only version 5 files are.
    pub fn blocks_are_compressed(&self) -> bool {
        self.metadata.as_ref().is_some_and(Metadata::blocks_are_compressed)
    }
}

/// Outcome of one [`FileParser::step`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileStep {
    /// Call again with at least this many bytes from [`FileParser::offset`] on; the file holds them.
    Need(usize),
    /// The records in front of the events are read: [`FileParser::header`] gives them.
    Header,
    /// A data block lies at `range` of the file, completely.
    Block {
        /// The separator in front of it.
        separator: DataSeparator,
        /// Byte range of the block in the file.
        range: Range<u64>,
    },
    /// The file end record, which the file ends with.
    End(FileEnd),
}

/// Walks through a file whose length is known, driven by someone who can read it.
///
/// Never asks for more bytes than the file holds, and for at most 1 MiB at a time. It does not look at the data blocks
/// themselves. After an error or [`FileStep::End`] it stays where it is.
///
/// [`file_events`] is this parser over a whole file in memory.
#[derive(Debug, Clone)]
pub struct FileParser {
    file_bytes: u64,
    offset: u64,
    expect: Expect,
}

#[derive(Debug, Clone)]
enum Expect {
    Start,
    Names(FileStart),
    MetadataOrRun(FileStart, FileNames),
    Run(FileStart, FileNames, Metadata),
    Blocks(Box<FileHeader>),
}

impl FileParser {
    /// Begins at the start of a file of `file_bytes` bytes.
    pub fn new(file_bytes: u64) -> Self {
        Self { file_bytes, offset: 0, expect: Expect::Start }
    }

    /// Where the next bytes are needed from.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The records in front of the events, once they are read.
    pub fn header(&self) -> Option<&FileHeader> {
        match &self.expect {
            Expect::Blocks(header) => Some(header),
            _ => None,
        }
    }

    /// Goes on with `bytes`, which begin at [`offset`](Self::offset) of the file and may be any number.
    ///
    /// # Errors
    ///
    /// The problem that ends the way, with its offset in the file. [`ProblemKind::NoEndRecord`] if the file ends
    /// where a data separator or the end record should be, or has an end record with date 0.
    pub fn step(&mut self, bytes: &[u8]) -> Result<FileStep, Problem> {
        let left = self.file_bytes - self.offset;
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        loop {
            let done = (self.offset - (self.file_bytes - left)) as usize;
            if let Some(step) = self.one_record(&bytes[done.min(bytes.len())..])? {
                return Ok(step);
            }
        }
    }

    /// Reads one record; `None` if the next one may be read at once.
    fn one_record(&mut self, bytes: &[u8]) -> Result<Option<FileStep>, Problem> {
        let offset = self.offset;
        let at = |problem: Problem| problem.shifted(offset);
        match &mut self.expect {
            Expect::Start => {
                let parsed = FileStart::parse(bytes).map_err(at)?;
                self.accept(Part::FileStart, parsed, |_, start| Expect::Names(start))
            }
            Expect::Names(_) => {
                let parsed = FileNames::parse(bytes).map_err(at)?;
                self.accept(Part::FileNames, parsed, |expect, names| match expect {
                    Expect::Names(start) => Expect::MetadataOrRun(start, names),
                    other => other,
                })
            }
            Expect::MetadataOrRun(start, _) => {
                if bytes.len() < WORD_BYTES {
                    return self.need(Part::RunParameters, WORD_BYTES).map(Some);
                }
                match word(bytes, 0) {
                    marker::METADATA if start.version != FileVersion::V2 => self.metadata(bytes),
                    marker::RUN_PARAMETERS => self.run_parameters(bytes),
                    found => {
                        let expected = "metadata strings (0x1234aabc) or run parameters (0x1234bbbb)";
                        Err(at(Problem::new(0, ProblemKind::RecordOrder { found, expected })))
                    }
                }
            }
            Expect::Run(..) => self.run_parameters(bytes),
            Expect::Blocks(_) => self.block_or_end(bytes).map(Some),
        }
    }

    fn metadata(&mut self, bytes: &[u8]) -> Result<Option<FileStep>, Problem> {
        let parsed = Metadata::parse(bytes).map_err(|problem| problem.shifted(self.offset))?;
        self.accept(Part::Metadata, parsed, |expect, metadata| match expect {
            Expect::MetadataOrRun(start, names) => Expect::Run(start, names, metadata),
            other => other,
        })
    }

    fn run_parameters(&mut self, bytes: &[u8]) -> Result<Option<FileStep>, Problem> {
        let version = match &self.expect {
            Expect::MetadataOrRun(start, _) | Expect::Run(start, ..) => start.version,
            _ => unreachable!("run parameters are read only behind the names"),
        };
        let parsed = RunParameters::parse(version, bytes).map_err(|problem| problem.shifted(self.offset))?;
        let step = self.accept(Part::RunParameters, parsed, |expect, run| match expect {
            Expect::MetadataOrRun(start, names) => {
                Expect::Blocks(Box::new(FileHeader { start, names, metadata: None, run }))
            }
            Expect::Run(start, names, metadata) => {
                Expect::Blocks(Box::new(FileHeader { start, names, metadata: Some(metadata), run }))
            }
            other => other,
        })?;
        Ok(step.or(Some(FileStep::Header)))
    }

    fn block_or_end(&mut self, bytes: &[u8]) -> Result<FileStep, Problem> {
        let offset = self.offset;
        let at = |problem: Problem| problem.shifted(offset);
        if self.offset == self.file_bytes {
            return Err(Problem::new(0, ProblemKind::NoEndRecord).shifted(offset));
        }
        if bytes.len() < WORD_BYTES {
            return self.need(Part::DataSeparator, WORD_BYTES);
        }
        match word(bytes, 0) {
            marker::DATA_SEPARATOR => match DataSeparator::parse(bytes).map_err(at)? {
                Parsed::Need(needed) => self.need(Part::DataSeparator, needed),
                Parsed::Done(separator, length) => self.block(separator, length as u64),
            },
            marker::FILE_END => match FileEnd::parse(bytes).map_err(at)? {
                Parsed::Need(needed) => self.need(Part::FileEnd, needed),
                Parsed::Done(end, length) => self.end(end, length as u64),
            },
            found => {
                let expected = "a data separator (0x1234cccc) or file end (0x1234dddd)";
                Err(at(Problem::new(0, ProblemKind::RecordOrder { found, expected })))
            }
        }
    }

    fn block(&mut self, separator: DataSeparator, length: u64) -> Result<FileStep, Problem> {
        let start = self.offset + length;
        let block_bytes = u64::from(separator.block_bytes);
        if start + block_bytes > self.file_bytes {
            let have_bytes = self.file_bytes - start;
            let kind = ProblemKind::Truncated { part: Part::DataBlock, needed_bytes: block_bytes, have_bytes };
            return Err(Problem { offset: start, unpacked_offset: None, kind });
        }
        self.offset = start + block_bytes;
        Ok(FileStep::Block { separator, range: start..self.offset })
    }

    fn end(&self, end: FileEnd, length: u64) -> Result<FileStep, Problem> {
        let extra_bytes = self.file_bytes - self.offset - length;
        if extra_bytes > 0 {
            let kind = ProblemKind::TrailingBytes { part: Part::FileEnd, extra_bytes };
            return Err(Problem::new(0, kind).shifted(self.offset + length));
        }
        if end.closed.date.to_word() == 0 {
            return Err(Problem::new(0, ProblemKind::NoEndRecord).shifted(self.offset));
        }
        Ok(FileStep::End(end))
    }

    fn accept<T>(
        &mut self,
        part: Part,
        parsed: Parsed<T>,
        next: impl FnOnce(Expect, T) -> Expect,
    ) -> Result<Option<FileStep>, Problem> {
        match parsed {
            Parsed::Need(needed) => self.need(part, needed).map(Some),
            Parsed::Done(value, length) => {
                self.offset += length as u64;
                let expect = std::mem::replace(&mut self.expect, Expect::Start);
                self.expect = next(expect, value);
                Ok(None)
            }
        }
    }

    fn need(&self, part: Part, needed: usize) -> Result<FileStep, Problem> {
        let have = self.file_bytes - self.offset;
        if have >= needed as u64 {
            Ok(FileStep::Need(needed))
        } else {
            Err(short_record(part, self.offset, needed, have))
        }
    }
}

/// One event of a file in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEvent<'a> {
    /// The separator in front of the block.
    pub separator: DataSeparator,
    /// Offset of the block in the file.
    pub offset: u64,
    /// The block: a full event, or a zlib stream of one if [`FileHeader::blocks_are_compressed`].
    pub block: &'a [u8],
}

/// The events of a complete file in memory.
#[derive(Debug, Clone)]
pub struct FileEvents<'a> {
    file: &'a [u8],
    parser: FileParser,
    header: FileHeader,
    end: Option<FileEnd>,
    failed: bool,
}

/// Reads the records in front of the events of a file in memory and iterates over its events.
///
/// # Errors
///
/// What is wrong in front of the events.
pub fn file_events(file: &[u8]) -> Result<FileEvents<'_>, Problem> {
    let mut parser = FileParser::new(file.len() as u64);
    let header = loop {
        if let Some(header) = parser.header() {
            break header.clone();
        }
        parser.step(&file[parser.offset() as usize..])?;
    };
    Ok(FileEvents { file, parser, header, end: None, failed: false })
}

impl<'a> FileEvents<'a> {
    /// The records in front of the events.
    pub fn header(&self) -> &FileHeader {
        &self.header
    }

    /// The file end record, after the last event.
    pub fn end(&self) -> Option<&FileEnd> {
        self.end.as_ref()
    }
}

impl<'a> Iterator for FileEvents<'a> {
    type Item = Result<FileEvent<'a>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.end.is_some() {
            return None;
        }
        let rest = &self.file[self.parser.offset() as usize..];
        match self.parser.step(rest) {
            Ok(FileStep::Block { separator, range }) => Some(Ok(FileEvent {
                separator,
                offset: range.start,
                block: &self.file[range.start as usize..range.end as usize],
            })),
            Ok(FileStep::End(end)) => {
                self.end = Some(end);
                None
            }
            Ok(FileStep::Need(_) | FileStep::Header) => {
                unreachable!("all bytes of the file are given and its header is read")
            }
            Err(problem) => {
                self.failed = true;
                Some(Err(problem))
            }
        }
    }
}
