//! What the writer needs of a file system. Tests put failures here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Seek, SeekFrom, Write};
use std::path::Path;

/// A file system to write to.
pub trait Backend: Send {
    /// Makes a directory and those above it; it may exist.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Creates a file that must not exist.
    ///
    /// # Errors
    ///
    /// `AlreadyExists`, or as the file system says.
    fn create(&self, path: &Path) -> io::Result<Box<dyn OutputFile>>;

    /// Opens a file that exists, to cut it and go on writing.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn reopen(&self, path: &Path) -> io::Result<Box<dyn OutputFile>>;

    /// Whether something has this name.
    ///
    /// # Errors
    ///
    /// If it cannot be known.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Renames a file.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes names in a directory durable.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn sync_directory(&self, path: &Path) -> io::Result<()>;
}

/// A file being written.
pub trait OutputFile: Send {
    /// Writes at the end; may write less than asked for.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Cuts the file to `bytes` and goes on writing there.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;

    /// Makes the data durable.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn sync_data(&mut self) -> io::Result<()>;
}

/// The file system of the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Backend for Disk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        Ok(Box::new(file))
    }

    fn reopen(&self, path: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = OpenOptions::new().write(true).open(path)?;
        Ok(Box::new(file))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

impl OutputFile for File {
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        Write::write_vectored(self, parts)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.seek(SeekFrom::Start(bytes)).map(drop)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        File::sync_data(self)
    }
}
