//! Writing a trace file while the process runs: what is written survives its death.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::block::Block;
use crate::file::{ENDING, TraceError, head};
use crate::recorder::{self, Drained, Source};

/// A trace file that grows.
pub struct TraceWriter {
    path: PathBuf,
    file: File,
    written: u64,
    /// How many names the file has.
    sections: usize,
    places: usize,
    /// The rings of the threads that the file has named.
    threads: Vec<u64>,
    /// Beyond, stamps are counted, and no longer written.
    bytes_max: u64,
    buffer: Vec<u8>,
}

impl TraceWriter {
    /// Makes a file that is not there yet: `NAME.weirtrace` in a directory, or `NAME.2.weirtrace` and so on.
    ///
    /// # Errors
    /// The directory or the file cannot be made or written.
    pub fn create(directory: &Path, process: &str, source: Source) -> Result<Self, TraceError> {
        fs::create_dir_all(directory).map_err(|cause| TraceError::File { path: directory.to_owned(), cause })?;
        let (path, file) = new_file(directory, process)?;
        let mut writer = Self {
            path,
            file,
            written: 0,
            sections: 0,
            places: 0,
            threads: Vec::new(),
            bytes_max: BYTES_MAX,
            buffer: head(),
        };
        Block::Process { pid: std::process::id(), source, name: process.to_owned() }.encode(&mut writer.buffer);
        writer.flush()?;
        Ok(writer)
    }

    /// Appends what was stamped since the last time.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self) -> Result<(), TraceError> {
        let drained = recorder::drain();
        // Read behind the stamps: they speak of no others.
        let names = recorder::section_names();
        names.into_iter().skip(self.sections).for_each(|name| {
            Block::Section(name).encode(&mut self.buffer);
            self.sections += 1;
        });
        recorder::places().into_iter().skip(self.places).for_each(|(place, name)| {
            Block::Place(place, name).encode(&mut self.buffer);
            self.places += 1;
        });
        drained.into_iter().for_each(|of_thread| self.put(of_thread));
        self.flush()
    }

    /// Appends what is left, and the end.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<PathBuf, TraceError> {
        self.write()?;
        Block::End.encode(&mut self.buffer);
        self.flush()?;
        Ok(self.path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets the file have no stamps beyond so many bytes; those that find no room are counted as lost.
    pub fn limit(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }

    /// Onto a disk that has become full.
    #[cfg(test)]
    pub(crate) fn with_full_disk(self) -> Self {
        Self { file: File::options().write(true).open("/dev/full").expect("Linux has this device"), ..self }
    }

    fn put(&mut self, Drained { ring, name, lost, stamps }: Drained) {
        if stamps.is_empty() && lost == 0 {
            return;
        }
        let known = self.threads.iter().position(|known| *known == ring);
        let thread = known.unwrap_or_else(|| {
            Block::Thread(name).encode(&mut self.buffer);
            self.threads.push(ring);
            self.threads.len() - 1
        });
        let thread = u16::try_from(thread).expect("rings have a bound");
        let is_full = self.written > self.bytes_max;
        let (lost, stamps) = if is_full { (lost + stamps.len() as u64, Vec::new()) } else { (lost, stamps) };
        Block::Stamps { thread, lost, stamps }.encode(&mut self.buffer);
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let wrote = self.file.write_all(&self.buffer);
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        wrote.map_err(|cause| TraceError::File { path: self.path.clone(), cause })
    }
}

fn new_file(directory: &Path, process: &str) -> Result<(PathBuf, File), TraceError> {
    let mut number = 1;
    loop {
        let name = if number == 1 { String::new() } else { format!(".{number}") };
        let path = directory.join(format!("{process}{name}.{ENDING}"));
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(cause) => return Err(TraceError::File { path, cause }),
        }
    }
}

/// A trace takes no more of a disk than this.
const BYTES_MAX: u64 = 1 << 30;
