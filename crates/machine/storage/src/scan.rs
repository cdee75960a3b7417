//! Reading of files with bounded memory: a window over the bytes, and the parser of `eformat` on top of it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use eformat::{Adler32, FileHeader, FileParser, FileStep, Problem};

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A directory, pipe or device.
    #[error("cannot read {}: it is not a regular file", path.display())]
    NotAFile {
        /// What was given.
        path: PathBuf,
    },
    /// The content is not a RAW file, or is damaged.
    #[error("{}: {problem}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// Where and what.
        problem: Problem,
    },
}

/// Default limit of one event, in bytes.
pub const EVENT_BYTES_MAX: usize = 256 << 20;

/// Walks through the records of a file on disk.
#[derive(Debug)]
pub(crate) struct Scan {
    path: PathBuf,
    window: Window,
    parser: FileParser,
}

impl Scan {
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { path: path.to_owned(), source };
        // Looked at before opening: to open a pipe waits for its writer.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(ReadError::NotAFile { path: path.to_owned() });
        }
        let file = File::open(path).map_err(io)?;
        let file_bytes = file.metadata().map_err(io)?.len();
        let window = Window { file, file_bytes, start: 0, buffer: Vec::new() };
        Ok(Self { path: path.to_owned(), window, parser: FileParser::new(file_bytes) })
    }

    /// The next step, or the problem that ends the way.
    pub(crate) fn step(&mut self) -> Result<Result<FileStep, Problem>, ReadError> {
        let mut needed = eformat::WORD_BYTES;
        loop {
            let offset = self.parser.offset();
            let needed_here = (needed as u64).min(self.window.file_bytes - offset);
            let bytes = self.window.get(offset..offset + needed_here);
            let bytes = bytes.map_err(|source| ReadError::Io { path: self.path.clone(), source })?;
            let before = self.parser.offset();
            match self.parser.step(bytes) {
                // Records behind one another are taken in one step; what is needed counts from the last one.
                Ok(FileStep::Need(more)) if self.parser.offset() == before => needed = more.max(needed + 1),
                Ok(FileStep::Need(more)) => needed = more,
                Ok(step) => return Ok(Ok(step)),
                Err(problem) => return Ok(Err(problem)),
            }
        }
    }

    /// Reads up to the first data block.
    pub(crate) fn header(&mut self) -> Result<FileHeader, ReadError> {
        loop {
            if let Some(header) = self.parser.header() {
                return Ok(header.clone());
            }
            self.step()?.map_err(|problem| self.bad(problem))?;
        }
    }

    pub(crate) fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], ReadError> {
        let io = |source| ReadError::Io { path: self.path.clone(), source };
        self.window.get(range).map_err(io)
    }

    /// A few bytes that the file holds, without moving the window.
    pub(crate) fn peek<const N: usize>(&self, at: u64) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        let io = |source| ReadError::Io { path: self.path.clone(), source };
        self.window.file.read_exact_at(&mut bytes, at).map_err(io)?;
        Ok(bytes)
    }

    /// Adds a range of any length to a sum.
    pub(crate) fn sum(&mut self, range: Range<u64>, sum: &mut Adler32) -> Result<(), ReadError> {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at + READ_AHEAD_BYTES as u64);
            sum.update(self.bytes(at..end)?);
            at = end;
        }
        Ok(())
    }

    pub(crate) fn offset(&self) -> u64 {
        self.parser.offset()
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.window.file_bytes
    }

    pub(crate) fn bad(&self, problem: Problem) -> ReadError {
        ReadError::Bad { path: self.path.clone(), problem }
    }
}

/// Part of a file in memory.
#[derive(Debug)]
struct Window {
    file: File,
    file_bytes: u64,
    start: u64,
    buffer: Vec<u8>,
}

impl Window {
    /// Bytes that the file holds, read ahead if they are not here.
    fn get(&mut self, range: Range<u64>) -> io::Result<&[u8]> {
        assert!(range.start <= range.end && range.end <= self.file_bytes, "the range is in the file");
        let here = self.start..self.start + self.buffer.len() as u64;
        if range.start < here.start || range.end > here.end {
            self.read(&range)?;
        }
        let from = (range.start - self.start) as usize;
        Ok(&self.buffer[from..from + (range.end - range.start) as usize])
    }

    fn read(&mut self, range: &Range<u64>) -> io::Result<()> {
        let end = range.end.max(range.start + READ_AHEAD_BYTES as u64).min(self.file_bytes);
        let length = (end - range.start) as usize;
        if self.buffer.capacity() > SHRINK_FACTOR * length.max(READ_AHEAD_BYTES) {
            self.buffer = Vec::new();
        }
        self.buffer.resize(length, 0);
        let result = self.file.read_exact_at(&mut self.buffer, range.start);
        if result.is_err() {
            self.buffer.clear();
        }
        self.start = range.start;
        result
    }
}

const READ_AHEAD_BYTES: usize = 256 << 10;
/// How much larger than needed the buffer may stay after a large event.
const SHRINK_FACTOR: usize = 16;

#[cfg(test)]
mod tests {
    use testkit::TempDir;

    use super::*;

    #[test]
    fn after_a_large_event_its_memory_is_given_back() {
        let directory = TempDir::new("scan");
        let path = directory.join("a");
        let bytes: Vec<u8> = (0..6u32 << 20).map(|at| (at >> 8) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mut scan = Scan::open(&path).unwrap();
        let (all, part) = (bytes.len() as u64, READ_AHEAD_BYTES as u64);
        // A range in front of what is here, one that follows it, and one that reaches beyond it.
        for (from, to) in [(part, all), (0, 10), (part - 1, part), (part, part + 2), (all - 1, all), (all, all)] {
            assert!(scan.bytes(from..to).unwrap() == &bytes[from as usize..to as usize], "{from}..{to}");
            let least = usize::try_from(to - from).unwrap().max(READ_AHEAD_BYTES);
            assert!(scan.window.buffer.capacity() <= SHRINK_FACTOR * least, "{from}..{to}");
        }
        let capacity = |scan: &mut Scan, range: Range<u64>| {
            scan.bytes(range).unwrap();
            scan.window.buffer.capacity()
        };
        let large = capacity(&mut scan, 1..SHRINK_FACTOR as u64 * part);
        assert_eq!(capacity(&mut scan, 0..10), large, "it is kept for the next event");
        let mut sum = Adler32::new();
        scan.sum(3..all - 1, &mut sum).unwrap();
        assert_eq!(sum.value(), eformat::adler32(&bytes[3..bytes.len() - 1]));
    }
}
