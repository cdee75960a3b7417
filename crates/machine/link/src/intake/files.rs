//! Frames in a file, in a named pipe, or in the files that appear in a directory.

use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base::losses::Losses;
use base::time::Time;
use rustix::fs::OFlags;
use rustix::io::{Errno, read};
use transport::error::OsError;
use transport::poller::{Poller, Readiness};

use super::device::{Carrier, Desk};
use super::folder::Folder;
use crate::address::Address;
use crate::error::LinkError;
use crate::frame::Extent;
use crate::socket::Lost;

/// Frames of files.
pub(super) struct Files {
    address: String,
    origin: Origin,
    /// What is read now.
    current: Option<Open>,
    /// What was read and not taken.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

enum Origin {
    /// Each run reads it from its beginning.
    File(PathBuf),
    /// Read for as long as there are writers, one after the other.
    Pipe,
    /// Each file once, in the order of their names.
    Folder(Folder),
}

struct Open {
    file: File,
    /// A file that is no pipe is always worth a try.
    readiness: Readiness,
    path: PathBuf,
    /// Of the next frame.
    offset: u64,
    /// Whether all of it was read; of a pipe, whether its writers have gone.
    is_at_end: bool,
    /// Whether what follows is no frame.
    is_done: bool,
}

enum Found {
    Frame(usize),
    Bad(String),
    Nothing,
}

impl Files {
    /// Looks at what is there.
    pub(super) fn open(at: &Address) -> Result<Self, LinkError> {
        let Address::File(path) = at else { unreachable!("files have a path") };
        let address = at.to_string();
        let refused = |why: String| LinkError::Unreadable { at: address.clone(), why };
        let kind = fs::metadata(path).map_err(|error| refused(error.to_string()))?.file_type();
        let mut current = None;
        let origin = if kind.is_dir() {
            Origin::Folder(Folder::open(path).map_err(|error| refused(error.to_string()))?)
        } else if kind.is_file() || kind.is_fifo() {
            let open = Open::new(path).map_err(|error| refused(error.to_string()))?;
            current = kind.is_fifo().then_some(open);
            if kind.is_fifo() { Origin::Pipe } else { Origin::File(path.clone()) }
        } else {
            return Err(refused("it is none of these".to_owned()));
        };
        Ok(Self { address, origin, current, bytes: vec![0; READ_BYTES], start: 0, end: 0 })
    }

    fn find(&self, desk: &Desk) -> Found {
        let Some(open) = self.current.as_ref().filter(|open| !open.is_done) else { return Found::Nothing };
        let (bytes, format) = (&self.bytes[self.start..self.end], desk.numbering.format());
        // Where nothing says how long a frame is, a file is one, or what one writer writes.
        let may_grow = format.extent == Extent::Whole && !open.is_at_end && bytes.len() <= desk.len_max;
        let is_none = bytes.is_empty() && (format.extent != Extent::Whole || self.is_pipe());
        if may_grow || is_none {
            return Found::Nothing;
        }
        match format.len_of(bytes, desk.len_max) {
            Ok(Some(len)) if len <= bytes.len() => Found::Frame(len),
            Err(bad) => Found::Bad(bad.to_string()),
            Ok(_) if open.is_at_end => Found::Bad(format!("it ends {} bytes after the frame begins", bytes.len())),
            Ok(_) => Found::Nothing,
        }
    }

    fn is_pipe(&self) -> bool {
        matches!(self.origin, Origin::Pipe)
    }

    fn read(&mut self, desk: &mut Desk, poller: &mut Poller) -> Result<bool, Lost> {
        self.make_room();
        let open = self.current.as_mut().expect("something is read");
        open.readiness.clear_readable();
        match read(&open.file, &mut self.bytes[self.end..]) {
            Ok(0) => {
                // A pipe that nobody has written to is none that everybody has left.
                open.is_at_end = open.readiness.is_readable();
                Ok(open.is_at_end)
            }
            Ok(len) => {
                open.readiness.set_readable();
                self.end += if open.is_done { 0 } else { len };
                Ok(true)
            }
            Err(Errno::INTR) => {
                open.readiness.set_readable();
                Ok(true)
            }
            // One writer had left, and another one is there.
            Err(Errno::AGAIN) if open.readiness.is_readable() => self.watch_anew(poller).map(|()| false),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => {
                (open.is_at_end, open.is_done) = (true, true);
                self.skip_rest();
                desk.numbering.note_malformed();
                self.complain(desk, &OsError::new("read", errno).to_string());
                Ok(true)
            }
        }
    }

    /// Behind the end of a file, or when all writers of a pipe have gone.
    fn go_on(&mut self, poller: &mut Poller) -> Result<bool, Lost> {
        match &self.origin {
            Origin::File(_) => Ok(false),
            Origin::Folder(_) => {
                self.current = None;
                Ok(true)
            }
            Origin::Pipe => {
                self.watch_anew(poller)?;
                let open = self.current.as_mut().expect("a pipe is open");
                (open.is_at_end, open.is_done, open.offset) = (false, false, 0);
                Ok(true)
            }
        }
    }

    /// The kernel says once that the writers of a pipe have gone, and never again of the same descriptor.
    fn watch_anew(&mut self, poller: &mut Poller) -> Result<(), Lost> {
        let open = self.current.as_mut().expect("a pipe is open");
        // Opened before the old one is closed, it keeps what was written in between.
        open.file = open_file(&open.path)?;
        open.readiness = poller.register(&open.file).map_err(Lost::System)?;
        Ok(())
    }

    fn open_next(&mut self, desk: &mut Desk) -> Result<bool, Lost> {
        let Origin::Folder(folder) = &mut self.origin else { return Ok(false) };
        folder.look(desk)?;
        let Some(path) = folder.pop() else { return Ok(false) };
        match Open::new(&path) {
            Ok(open) if open.file.metadata().is_ok_and(|found| found.is_file()) => {
                self.current = Some(open);
            }
            // A directory within, or the like.
            Ok(_) => {}
            Err(error) => {
                desk.numbering.note_malformed();
                desk.complain(|| format!("{}: {error}", path.display()));
            }
        }
        Ok(true)
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.bytes.len() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.bytes.len() {
            // What is longer than the longest frame is none, so that it ends.
            self.bytes.resize(2 * self.end, 0);
        }
    }

    fn skip_rest(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    fn complain(&self, desk: &mut Desk, why: &str) {
        let Some(open) = &self.current else { return };
        desk.complain(|| format!("{}, byte {}: {why}", open.path.display(), open.offset));
    }
}

impl Carrier for Files {
    fn waits(&self) -> bool {
        true
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        match (&mut self.origin, &mut self.current) {
            (Origin::Folder(folder), _) => folder.register(poller)?,
            (Origin::Pipe, Some(open)) => open.readiness = poller.register(&open.file)?,
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Lost> {
        if let Origin::File(path) = &self.origin {
            self.current = Some(Open::new(path)?);
            self.skip_rest();
        }
        Ok(())
    }

    fn has_some(&self, desk: &Desk) -> bool {
        !matches!(self.find(desk), Found::Nothing)
    }

    fn is_readable(&self) -> bool {
        match (&self.origin, &self.current) {
            (Origin::File(_), Some(open)) => !open.is_at_end,
            (_, Some(open)) => open.is_at_end || open.readiness.is_readable(),
            (Origin::Folder(folder), None) => folder.has_some(),
            (_, None) => false,
        }
    }

    fn fill(&mut self, desk: &mut Desk, poller: &mut Poller) -> Result<bool, Lost> {
        match &self.current {
            None => self.open_next(desk),
            Some(open) if open.is_at_end => self.go_on(poller),
            Some(open) if open.readiness.is_readable() => self.read(desk, poller),
            Some(_) => Ok(false),
        }
    }

    fn take(&mut self, now: Time, desk: &mut Desk) {
        let (taken, bad) = match self.find(desk) {
            Found::Frame(len) => (Some(len), desk.take(now, &self.bytes[self.start..self.start + len])),
            Found::Bad(why) => {
                desk.numbering.note_malformed();
                (None, Some(format!("{why}; what follows is left out")))
            }
            Found::Nothing => (None, None),
        };
        if let Some(why) = bad {
            self.complain(desk, &format!("not as [source.frame] says: {why}"));
        }
        let open = self.current.as_mut().expect("a frame is in a file");
        if let Some(len) = taken {
            self.start += len;
            open.offset += len as u64;
        }
        if taken.is_none() || desk.numbering.format().extent == Extent::Whole {
            open.is_done = true;
            self.skip_rest();
        }
    }

    fn leave(&mut self) -> u64 {
        0
    }

    fn is_at_end(&self) -> bool {
        let is_read = self.current.as_ref().is_some_and(|open| open.is_at_end);
        matches!(self.origin, Origin::File(_)) && is_read && self.start == self.end
    }

    fn lost_in_run(&self) -> Losses {
        Losses::default()
    }
}

impl Open {
    fn new(path: &Path) -> Result<Self, OsError> {
        let file = open_file(path)?;
        let readiness = Readiness::default();
        Ok(Self { file, readiness, path: path.to_owned(), offset: 0, is_at_end: false, is_done: false })
    }
}

/// A pipe without a writer is no reason to wait.
fn open_file(path: &Path) -> Result<File, OsError> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = File::options().read(true).custom_flags(flags).open(path);
    opened.map_err(|error| OsError { call: "open", code: error.raw_os_error().unwrap_or_default() })
}

const READ_BYTES: usize = 256 << 10;
