//! Files that appear in a directory.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fd::OwnedFd;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use transport::error::OsError;
use transport::poller::{Poller, Readiness};

use super::device::Desk;
use crate::socket::Lost;

/// A directory under watch. Names that begin with a dot are those of files that are not ready.
pub(super) struct Folder {
    path: PathBuf,
    watch: OwnedFd,
    readiness: Readiness,
    /// Whole, and not read.
    pending: BTreeSet<OsString>,
    /// Read, and still there.
    taken: BTreeSet<OsString>,
}

impl Folder {
    /// What is there already counts as whole.
    pub(super) fn open(path: &Path) -> Result<Self, OsError> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let watch = inotify::init(flags).map_err(|errno| OsError::new("inotify_init", errno))?;
        inotify::add_watch(&watch, path, WATCHED).map_err(|errno| OsError::new("inotify_add_watch", errno))?;
        let (pending, taken) = (BTreeSet::new(), BTreeSet::new());
        let mut folder = Self { path: path.to_owned(), watch, readiness: Readiness::default(), pending, taken };
        folder.scan()?;
        Ok(folder)
    }

    pub(super) fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.readiness = poller.register(&self.watch)?;
        Ok(())
    }

    /// Whether a [`look`](Self::look) or a [`pop`](Self::pop) is worth a try.
    pub(super) fn has_some(&self) -> bool {
        !self.pending.is_empty() || self.readiness.is_readable()
    }

    /// The first of the names.
    pub(super) fn pop(&mut self) -> Option<PathBuf> {
        let name = self.pending.pop_first()?;
        let path = self.path.join(&name);
        self.taken.insert(name);
        Some(path)
    }

    /// Takes in what has happened.
    pub(super) fn look(&mut self, desk: &mut Desk) -> Result<(), Lost> {
        if !self.readiness.is_readable() {
            return Ok(());
        }
        self.readiness.clear_readable();
        let Self { path, watch, pending, taken, .. } = self;
        let (mut is_incomplete, mut space) = (false, [MaybeUninit::uninit(); EVENT_BYTES]);
        let mut events = Reader::new(&*watch, &mut space);
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(Lost::System(OsError::new("read(inotify)", errno))),
            };
            let what = event.events();
            if what.intersects(GONE) {
                return Err(Lost::Gone);
            }
            is_incomplete |= what.contains(ReadFlags::QUEUE_OVERFLOW);
            let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            let Some(name) = name.filter(|name| is_ready(name) && !what.contains(ReadFlags::ISDIR)) else { continue };
            if !what.contains(ReadFlags::CLOSE_WRITE) {
                // Whatever had the name before is another file.
                taken.remove(name);
                pending.remove(name);
            }
            if !what.intersects(ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_TO) {
                continue;
            }
            if taken.contains(name) {
                let file = path.join(name);
                desk.complain(|| format!("{} was read already: what is written to it now is not", file.display()));
            } else {
                pending.insert(name.to_owned());
            }
        }
        if is_incomplete {
            self.scan().map_err(Lost::System)?;
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), OsError> {
        let failed = |error: std::io::Error| OsError {
            call: "read the directory",
            code: error.raw_os_error().unwrap_or_default(),
        };
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if is_ready(&name) && !self.taken.contains(&name) {
                self.pending.insert(name);
            }
        }
        Ok(())
    }
}

fn is_ready(name: &OsStr) -> bool {
    !name.as_bytes().starts_with(b".")
}

const WATCHED: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
const GONE: ReadFlags =
    ReadFlags::DELETE_SELF.union(ReadFlags::MOVE_SELF).union(ReadFlags::UNMOUNT).union(ReadFlags::IGNORED);
/// Of some hundred events.
const EVENT_BYTES: usize = 16 << 10;
