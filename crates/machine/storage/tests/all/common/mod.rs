//! Helpers of the integration tests: events, unique directories, and a file system with injected failures.
#![allow(dead_code, unreachable_pub)]

use std::fs;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use eformat::*;
use storage::*;
use testkit::TempDir;

/// A directory of its own for one test.
pub struct Directory(TempDir);

impl Directory {
    pub fn new() -> Self {
        Self(TempDir::new("storage"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Names in the directory, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// An event with one ROB of `words` data words, in three pieces.
pub struct TestEvent(pub Vec<Vec<u8>>);

impl TestEvent {
    pub fn new(id: u32, words: usize) -> Self {
        let rod = RodHeader { source_id: SourceId(0x42_0002), lvl1_id: id, ..Default::default() };
        let params = RobParams { rod, adler32: true, ..Default::default() };
        let mut rob = vec![id as u8; params.rob_bytes(words * 4)];
        write_rob_fragment(&mut rob, &params, words * 4);
        let event = EventHeader { global_id: u64::from(id), lvl1_id: id, run_number: 7, ..Default::default() };
        let mut header = Vec::new();
        let trailer = event_envelope(&event, [rob.as_slice()], true, &mut header).unwrap();
        Self(vec![header, rob, trailer.to_vec()])
    }

    pub fn parts(&self) -> Vec<&[u8]> {
        self.0.iter().map(Vec::as_slice).collect()
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.concat()
    }
}

pub fn config(directory: &Directory) -> WriterConfig {
    WriterConfig { directory: directory.path().to_owned(), run_number: 7, ..Default::default() }
}

pub fn check_good(path: &Path) -> CheckReport {
    let report = check(path, &CheckLimits::default()).unwrap();
    assert!(report.is_good(), "{report}");
    report
}

/// Event bytes of a file.
pub fn events(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = FileReader::open(path).unwrap();
    let mut events = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        events.push(event.bytes.to_vec());
    }
    events
}

/// What goes wrong in a [`Faulty`] file system. Cloned handles share it.
#[derive(Clone, Default)]
pub struct Faults(pub Arc<Mutex<FaultState>>);

#[derive(Default)]
pub struct FaultState {
    /// Bytes that may still be written before the disk is full.
    pub space: Option<u64>,
    /// Largest number of bytes that one call writes.
    pub bytes_per_call: Option<usize>,
    /// Every other call is interrupted.
    pub interrupts: bool,
    /// Truncation, sync, renaming or directory sync fail while set.
    pub truncate_fails: bool,
    pub sync_fails: bool,
    pub rename_fails: bool,
    pub directory_fails: bool,
    /// Room is neither given nor refused before it is used, as by a file system that knows of no reservations.
    pub promises_nothing: bool,
    /// What was written cannot be read back.
    pub read_fails: bool,
    pub calls: u64,
    pub syncs: u64,
}

impl Faults {
    pub fn set(&self, change: impl FnOnce(&mut FaultState)) {
        change(&mut self.0.lock().unwrap());
    }
}

/// The disk, with failures.
pub struct Faulty(pub Faults);

struct FaultyFile {
    faults: Faults,
    file: Box<dyn OutputFile>,
    bytes: u64,
    /// Up to where it has room on the disk.
    room: u64,
}

impl Backend for Faulty {
    fn create_directory(&self, path: &Path) -> io::Result<()> {
        Disk.create_directory(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = Disk.create(path)?;
        Ok(Box::new(FaultyFile { faults: self.0.clone(), file, bytes: 0, room: 0 }))
    }

    fn reopen(&self, path: &Path) -> io::Result<Box<dyn OutputFile>> {
        let file = Disk.reopen(path)?;
        let bytes = fs::metadata(path)?.len();
        Ok(Box::new(FaultyFile { faults: self.0.clone(), file, bytes, room: bytes }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Disk.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fail(self.0.0.lock().unwrap().rename_fails)?;
        Disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        fail(self.0.0.lock().unwrap().directory_fails)?;
        Disk.sync_directory(path)
    }
}

impl OutputFile for FaultyFile {
    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut faults = self.faults.0.lock().unwrap();
        faults.calls += 1;
        if faults.interrupts && faults.calls.is_multiple_of(2) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let mut length = all.len().min(faults.bytes_per_call.unwrap_or(usize::MAX));
        if let Some(space) = &mut faults.space {
            let free = self.room - self.bytes + *space;
            if free == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            length = length.min(free as usize);
            *space -= (self.bytes + length as u64).saturating_sub(self.room);
        }
        let mut at = 0;
        while at < length {
            at += self.file.write_vectored(&[IoSlice::new(&all[at..length])])?;
        }
        self.bytes += length as u64;
        self.room = self.room.max(self.bytes);
        Ok(length)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        let mut faults = self.faults.0.lock().unwrap();
        fail(faults.truncate_fails)?;
        if let Some(space) = &mut faults.space {
            *space += self.room - bytes;
        }
        (self.bytes, self.room) = (bytes, bytes);
        self.file.truncate(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let mut faults = self.faults.0.lock().unwrap();
        fail(faults.sync_fails)?;
        faults.syncs += 1;
        self.file.sync_data()
    }

    fn reserve(&mut self, bytes: Range<u64>) -> io::Result<()> {
        let mut faults = self.faults.0.lock().unwrap();
        let more = bytes.end.saturating_sub(self.room);
        if faults.promises_nothing {
            return Ok(());
        }
        // Never far ahead.
        fail(more > 1 << 20)?;
        if let Some(space) = &mut faults.space {
            *space = space.checked_sub(more).ok_or(io::ErrorKind::StorageFull)?;
        }
        self.room += more;
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        fail(self.faults.0.lock().unwrap().read_fails)?;
        self.file.read_at(bytes, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn is_at(&self, path: &Path) -> io::Result<bool> {
        self.file.is_at(path)
    }
}

fn fail(fails: bool) -> io::Result<()> {
    if fails { Err(io::Error::other("injected")) } else { Ok(()) }
}
