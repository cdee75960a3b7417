//! What the writer needs of a file system. Tests put failures here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

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
    /// Writes at the end that the file has, whoever has moved it; may write less than asked for.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Cuts the file to `bytes`, where writing goes on.
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

    /// Takes room on the disk for these bytes of the file, of which none need be written yet. A cut gives back the room behind it. Where
    /// the file system cannot promise room it does not.
    ///
    /// # Errors
    ///
    /// There is none, on the disk or within the limits of this process.
    fn reserve(&mut self, bytes: Range<u64>) -> io::Result<()>;

    /// Reads what was written, from `offset` on; gives the number of bytes, 0 at the end.
    ///
    /// # Errors
    ///
    /// As the file system says.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The size of the file.
    ///
    /// # Errors
    ///
    /// If it cannot be known.
    fn bytes(&self) -> io::Result<u64>;

    /// Whether this is the file of that name.
    ///
    /// # Errors
    ///
    /// If it cannot be known.
    fn is_at(&self, path: &Path) -> io::Result<bool>;
}

/// The file system of the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Backend for Disk {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = OpenOptions::new().read(true).append(true).create_new(true).open(path)?;
        Ok(Box::new(file))
    }

    fn reopen(&self, path: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = OpenOptions::new().read(true).append(true).open(path)?;
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
        self.set_len(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn reserve(&mut self, bytes: Range<u64>) -> io::Result<()> {
        if getrlimit(Resource::Fsize).current.is_some_and(|limit| bytes.end > limit) {
            return Err(Errno::FBIG.into());
        }
        loop {
            match fallocate(&*self, FallocateFlags::KEEP_SIZE, bytes.start, bytes.end - bytes.start) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                reserved => return Ok(reserved?),
            }
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.metadata()?;
        match fs::metadata(path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (own.dev(), own.ino())),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use testkit::TempDir;

    use super::*;

    #[test]
    fn a_directory_that_is_not_there_is_not_durable() {
        let directory = TempDir::new("backend");
        assert!(Disk.sync_directory(directory.path()).is_ok());
        let absent = directory.join("absent");
        assert_eq!(Disk.sync_directory(&absent).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_cut_and_goes_on_there() {
        let directory = TempDir::new("backend");
        let path = &directory.join("file");
        let mut file = Disk.create(path).unwrap();
        assert_eq!(file.write_vectored(&[IoSlice::new(b"some words")]).unwrap(), 10);
        assert!(Disk.create(path).is_err() && Disk.exists(path).unwrap());
        let mut file = Disk.reopen(path).unwrap();
        file.truncate(4).unwrap();
        assert_eq!(file.write_vectored(&[IoSlice::new(b" more")]).unwrap(), 5);
        file.sync_data().unwrap();
        assert_eq!(fs::read(path).unwrap(), b"some more");
        Disk.remove(path).unwrap();
        assert!(!Disk.exists(path).unwrap());
    }

    #[test]
    fn room_is_taken_for_what_was_asked_and_does_not_make_the_file_longer() {
        let directory = TempDir::new("backend");
        let path = directory.join("file");
        let mut file = Disk.create(&path).unwrap();
        file.reserve(8 << 20..9 << 20).unwrap();
        let about = fs::metadata(&path).unwrap();
        assert_eq!((about.len(), file.bytes().unwrap()), (0, 0));
        // A file system that promises nothing takes nothing.
        assert!([0, 1].contains(&((about.blocks() * 512) >> 20)), "{} blocks", about.blocks());
    }

    #[test]
    fn a_file_is_known_by_more_than_its_name() {
        let directory = TempDir::new("backend");
        let (path, other) = (directory.join("file"), directory.join("other"));
        let file = Disk.create(&path).unwrap();
        assert!(file.is_at(&path).unwrap());
        fs::write(&other, "").unwrap();
        assert!(!file.is_at(&other).unwrap());
        assert!(!file.is_at(&directory.join("absent")).unwrap());
        assert!(!file.is_at(&path.join("below")).unwrap(), "a file is no directory");
        let too_long = directory.join("n".repeat(300));
        assert!(file.is_at(&too_long).is_err(), "this cannot be known");
    }
}
