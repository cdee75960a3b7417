//! Failures of the file system: no event is half written, and every call may be tried again.

use std::fs;
use std::process::Command;

use crate::common::{Directory, Faults, Faulty, TestEvent, check_good, config, events};
use storage::*;

fn faulty(directory: &Directory, change: impl FnOnce(WriterConfig) -> WriterConfig) -> (Writer, Faults) {
    let faults = Faults::default();
    let writer = Writer::with_backend(change(config(directory)), Box::new(Faulty(faults.clone()))).unwrap();
    (writer, faults)
}

#[test]
fn short_and_interrupted_writes_are_completed() {
    let directory = Directory::new();
    let (mut writer, faults) = faulty(&directory, |config| config);
    faults.set(|faults| (faults.bytes_per_call, faults.interrupts) = (Some(7), true));
    let written: Vec<_> = (0..3).map(|id| TestEvent::new(id, 20)).collect();
    written.iter().for_each(|event| writer.write_event(&event.parts()).unwrap());
    let file = writer.finish().unwrap().remove(0);
    assert_eq!(check_good(&file.path).adler32, file.adler32);
    assert_eq!(events(&file.path), written.iter().map(TestEvent::bytes).collect::<Vec<_>>());
}

#[test]
fn a_full_disk_at_any_byte_loses_nothing() {
    let first = TestEvent::new(1, 10);
    let second = TestEvent::new(2, 10);
    let file_bytes = {
        let directory = Directory::new();
        let (mut writer, _) = faulty(&directory, |config| config);
        writer.write_event(&first.parts()).unwrap();
        writer.write_event(&second.parts()).unwrap();
        writer.finish().unwrap()[0].bytes
    };
    for (space, promises_nothing) in (0..=file_bytes).flat_map(|space| [(space, false), (space, true)]) {
        let directory = Directory::new();
        let (mut writer, faults) = faulty(&directory, |config| config);
        faults.set(|faults| (faults.space, faults.promises_nothing) = (Some(space), promises_nothing));
        let mut failures = 0;
        let mut retry = |result: Result<(), WriteError>| match result {
            Ok(()) => false,
            Err(error) => {
                assert!(error.is_full(), "{error}");
                failures += 1;
                faults.set(|faults| faults.space = None);
                true
            }
        };
        while retry(writer.write_event(&first.parts())) {}
        while retry(writer.write_event(&second.parts())) {}
        while retry(writer.close()) {}
        assert_eq!(failures, u32::from(space < file_bytes));
        let file = writer.finish().unwrap().remove(0);
        assert_eq!(check_good(&file.path).adler32, file.adler32);
        assert_eq!(events(&file.path), [first.bytes(), second.bytes()]);
        assert_eq!(directory.names().len(), 1);
    }
}

#[test]
fn a_failed_cut_is_repeated_before_the_next_event() {
    let directory = Directory::new();
    let (mut writer, faults) = faulty(&directory, |config| config);
    faults.set(|faults| faults.promises_nothing = true);
    let event = TestEvent::new(1, 10);
    writer.write_event(&TestEvent::new(0, 10).parts()).unwrap();
    faults.set(|faults| (faults.space, faults.truncate_fails) = (Some(5), true));
    assert!(writer.write_event(&event.parts()).unwrap_err().is_full());
    assert!(!writer.write_event(&event.parts()).unwrap_err().is_full());
    faults.set(|faults| (faults.space, faults.truncate_fails) = (None, false));
    writer.write_event(&event.parts()).unwrap();
    let file = writer.finish().unwrap().remove(0);
    check_good(&file.path);
    assert_eq!(events(&file.path).len(), 2);
}

#[test]
fn a_cut_that_failed_is_no_change_by_somebody_else() {
    for space in [0, 5] {
        let directory = Directory::new();
        let (mut writer, faults) = faulty(&directory, |config| config);
        faults.set(|faults| faults.promises_nothing = true);
        writer.write_event(&TestEvent::new(0, 10).parts()).unwrap();
        faults.set(|faults| (faults.space, faults.truncate_fails) = (Some(space), true));
        assert!(writer.write_event(&TestEvent::new(1, 10).parts()).unwrap_err().is_full());
        writer.look().unwrap();
        assert!(writer.take_remarks().is_empty(), "{space} bytes of the failed event lie behind the good one");
        faults.set(|faults| (faults.space, faults.truncate_fails) = (None, false));
        writer.write_event(&TestEvent::new(1, 10).parts()).unwrap();
        assert_eq!(events(&writer.finish().unwrap()[0].path).len(), 2);
    }
}

#[test]
fn a_full_disk_leaves_an_event_in_all_its_streams_or_in_none() {
    let names = ["Main", "express", "calibration"];
    let written = [TestEvent::new(1, 10), TestEvent::new(2, 30), TestEvent::new(3, 10)];
    let write = |streams: &mut Streams, event: &TestEvent| {
        let parts = event.parts();
        let copy = |stream_name| EventCopy { stream_type: "physics", stream_name, parts: &parts };
        streams.write_copies(&names.map(copy))
    };
    let total: u64 = (0..=2_000).step_by(20).map(|space| full_disk_run(space, &written, write)).sum();
    assert!(total > 50, "{total}");
}

#[test]
fn a_copy_that_cannot_be_taken_back_at_once_is_before_the_next_event() {
    let (directory, faults) = (Directory::new(), Faults::default());
    faults.set(|faults| faults.promises_nothing = true);
    let backend = faults.clone();
    let mut streams = Streams::with_backend(config(&directory), move || Box::new(Faulty(backend.clone())));
    let (first, event) = (TestEvent::new(0, 10), TestEvent::new(1, 10));
    let (first, parts) = (first.parts(), event.parts());
    let copies_of =
        |parts| ["Main", "express"].map(|stream_name| EventCopy { stream_type: "physics", stream_name, parts });
    streams.write_copies(&copies_of(&first)).unwrap();
    let copies = copies_of(&parts);
    faults.set(|faults| (faults.space, faults.truncate_fails) = (Some(event.bytes().len() as u64 + 20), true));
    assert!(streams.write_copies(&copies).unwrap_err().is_full());
    faults.set(|faults| (faults.space, faults.truncate_fails) = (None, false));
    streams.write_copies(&copies).unwrap();
    for file in streams.finish().unwrap() {
        assert_eq!((check_good(&file.path).events, file.events, events(&file.path).len()), (2, 2, 2));
    }
}

/// Writes events with little space and, after each failure, with enough; the number of failures.
fn full_disk_run(
    space: u64,
    written: &[TestEvent],
    write: impl Fn(&mut Streams, &TestEvent) -> Result<(), WriteError>,
) -> u64 {
    let (directory, faults) = (Directory::new(), Faults::default());
    let backend = faults.clone();
    let changed = WriterConfig { events_max: 2, ..config(&directory) };
    let mut streams = Streams::with_backend(changed, move || Box::new(Faulty(backend.clone())));
    faults.set(|faults| faults.space = Some(space));
    let mut failures = 0;
    for event in written {
        while let Err(error) = write(&mut streams, event) {
            assert!(error.is_full(), "{error}");
            failures += 1;
            faults.set(|faults| faults.space = None);
        }
    }
    let files = streams.finish().unwrap();
    for name in ["physics_Main", "physics_express", "physics_calibration"] {
        let mut own: Vec<_> = files.iter().filter(|file| file.stream == name).collect();
        own.sort_by_key(|file| file.path.clone());
        let found: Vec<_> = own.iter().flat_map(|file| events(&file.path)).collect();
        assert_eq!(found, written.iter().map(TestEvent::bytes).collect::<Vec<_>>());
        let firsts: u32 = own.iter().map(|file| file.first_copies).sum();
        assert_eq!(firsts, if name == "physics_Main" { 3 } else { 0 });
        for file in own {
            assert_eq!((check_good(&file.path).adler32, check_good(&file.path).events), (file.adler32, file.events));
        }
    }
    failures
}

#[test]
fn closing_goes_on_where_it_failed() {
    let directory = Directory::new();
    let (mut writer, faults) = faulty(&directory, |config| WriterConfig { durable: true, events_max: 1, ..config });
    writer.write_event(&TestEvent::new(1, 1).parts()).unwrap();
    faults.set(|faults| faults.sync_fails = true);
    assert!(writer.write_event(&TestEvent::new(2, 1).parts()).is_err());
    faults.set(|faults| (faults.sync_fails, faults.rename_fails) = (false, true));
    assert!(writer.write_event(&TestEvent::new(2, 1).parts()).is_err());
    faults.set(|faults| (faults.rename_fails, faults.directory_fails) = (false, true));
    assert!(writer.write_event(&TestEvent::new(2, 1).parts()).is_err());
    faults.set(|faults| faults.directory_fails = false);
    writer.write_event(&TestEvent::new(2, 1).parts()).unwrap();
    let files = writer.finish().unwrap();
    assert_eq!(files.iter().map(|file| file.events).collect::<Vec<_>>(), [1, 1]);
    files.iter().for_each(|file| drop(check_good(&file.path)));
    assert!(faults.0.lock().unwrap().syncs >= 2);
}

#[test]
fn a_name_taken_meanwhile_is_not_overwritten() {
    let directory = Directory::new();
    let mut writer = Writer::new(config(&directory)).unwrap();
    writer.write_event(&TestEvent::new(1, 1).parts()).unwrap();
    let data = writer.path().unwrap().with_extension("data");
    fs::write(&data, b"precious").unwrap();
    assert!(matches!(writer.close(), Err(WriteError::Exists { .. })));
    assert_eq!(fs::read(&data).unwrap(), b"precious");
    fs::remove_file(&data).unwrap();
    let files = writer.finish().unwrap();
    check_good(&files[0].path);
}

#[test]
fn a_small_file_system_fills_and_goes_on() {
    let name = "a_small_file_system_fills_and_goes_on";
    let directory = Directory::new();
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(directory.path()).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        testkit::skip(name, "no permission to mount a file system");
        return;
    }
    let _unmount = Unmount(&directory);
    let filler = directory.file("filler", &vec![1; 128 << 10]);
    let mut writer = Writer::new(config(&directory)).unwrap();
    let mut id = 0;
    let error = loop {
        match writer.write_event(&TestEvent::new(id, 3000).parts()) {
            Ok(()) => id += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_full() && id > 0, "{error}");
    fs::remove_file(filler).unwrap();
    writer.write_event(&TestEvent::new(id, 3000).parts()).unwrap();
    let file = writer.finish().unwrap().remove(0);
    assert_eq!((check_good(&file.path).events, file.events), (id + 1, id + 1));
}

struct Unmount<'a>(&'a Directory);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}
