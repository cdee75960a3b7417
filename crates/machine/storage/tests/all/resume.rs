//! A writer that dies, and its next life: every event is in all its streams or in none, and no name is taken twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Directory, Faults, Faulty, TestEvent, check_good, config, events};
use proptest::prelude::*;
use storage::*;

const STREAMS: [&str; 3] = ["Main", "express", "calibration"];

/// The streams of an event: the first takes all.
fn streams_of(id: u32) -> Vec<&'static str> {
    let takes = |index: usize| id.is_multiple_of(index as u32 + 1);
    STREAMS.iter().enumerate().filter(|(index, _)| takes(*index)).map(|(_, name)| *name).collect()
}

fn write(streams: &mut Streams, id: u32, oldest: u32) -> Result<(), WriteError> {
    let event = TestEvent::new(id, 10 + id as usize % 7);
    let parts = event.parts();
    let copy = |stream_name| EventCopy { stream_type: "physics", stream_name, parts: &parts };
    let copies: Vec<_> = streams_of(id).into_iter().map(copy).collect();
    streams.write_numbered(id.into(), oldest.into(), &copies)
}

fn settings(directory: &Directory, events_max: u32) -> WriterConfig {
    WriterConfig { events_max, durable: true, ..config(directory) }
}

fn journal(directory: &Directory) -> PathBuf {
    directory.path().join("data_test.00000007.SFO-1.journal")
}

/// A life that writes the events up to `last`, all of which somebody may ask for, and dies.
fn write_and_die(directory: &Directory, events_max: u32, last: u32) {
    let mut streams = Streams::new(settings(directory, events_max));
    streams.keep_journal().unwrap();
    (1..=last).for_each(|id| write(&mut streams, id, 0).unwrap());
}

/// The name of a file that is not closed.
fn open_file(directory: &Directory) -> String {
    directory.names().into_iter().find(|name| name.ends_with(".writing")).unwrap()
}

/// The ids in all files of a stream, in order.
fn ids(directory: &Path, stream: &str) -> Vec<u32> {
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_str().unwrap().contains(&format!("physics_{stream}.")));
    ids_of(files)
}

fn ids_of(mut files: Vec<PathBuf>) -> Vec<u32> {
    files.sort();
    let mut ids = Vec::new();
    for path in files {
        assert!(path.extension().unwrap() == "data", "{path:?}");
        check_good(&path);
        ids.extend(events(&path).iter().map(|bytes| eformat::Event::parse(bytes).unwrap().global_id() as u32));
    }
    ids
}

/// Checks that all events up to `last` are in their streams once, and that the closed files are all that there are.
fn check_all(directory: &Directory, last: u32, mut closed: Vec<ClosedFile>) {
    for stream in STREAMS {
        let expected: Vec<u32> = (1..=last).filter(|id| streams_of(*id).contains(&stream)).collect();
        assert_eq!(ids(directory.path(), stream), expected, "{stream}");
    }
    closed.sort_by_key(|file| file.path.clone());
    closed.dedup();
    let names: Vec<String> = directory.names().into_iter().filter(|name| name.ends_with(".data")).collect();
    let told: Vec<String> =
        closed.iter().map(|file| file.path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(told, names);
    assert_eq!(closed.iter().map(|file| file.first_copies).sum::<u32>(), last);
    for file in closed {
        let report = check_good(&file.path);
        assert_eq!((report.events, report.adler32), (file.events, file.adler32), "{:?}", file.path);
        assert_eq!(fs::metadata(&file.path).unwrap().len(), file.bytes);
    }
}

#[test]
fn the_next_life_goes_on_in_the_files_of_the_former() {
    let directory = Directory::new();
    let mut first = Streams::new(settings(&directory, 4));
    first.keep_journal().unwrap();
    (1..=10).for_each(|id| write(&mut first, id, 8).unwrap());
    drop(first);
    let mut second = Streams::new(settings(&directory, 4));
    let resumed = second.resume().unwrap();
    assert_eq!(resumed.events, [8, 9, 10], "what nobody asks for is not named");
    let (mut copies, mut event_bytes) = (0, 0);
    for id in 1..=10 {
        let of_it = streams_of(id).len() as u64;
        copies += of_it;
        event_bytes += of_it * TestEvent::new(id, 10 + id as usize % 7).bytes().len() as u64;
    }
    let totals = (resumed.first_copies, resumed.copies, resumed.event_bytes);
    assert_eq!(totals, (10, copies, event_bytes), "all are counted nevertheless");
    let mut closed = resumed.closed;
    assert_eq!(closed.len(), 3);
    (11..=20).for_each(|id| write(&mut second, id, 8).unwrap());
    closed.extend(second.finish().unwrap());
    check_all(&directory, 20, closed);
    let names = directory.names();
    let numbers = names.iter().filter(|name| name.contains("Main"));
    let numbers: Vec<_> = numbers.map(|name| name.parse::<eformat::FileName>().unwrap().sequence()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5], "no file was ended early, and the names go on: {names:?}");
    second.forget_journal().unwrap();
    second.forget_journal().unwrap();
    assert!(!journal(&directory).exists());
}

#[test]
fn a_death_at_any_byte_leaves_whole_events() {
    let mut seen = BTreeSet::new();
    for space in (0..9_000).step_by(41) {
        let (directory, faults) = (Directory::new(), Faults::default());
        let backend = faults.clone();
        let settings = WriterConfig { durable: space % 2 == 0, ..settings(&directory, 3) };
        let mut first = Streams::with_backend(settings.clone(), move || Box::new(Faulty(backend.clone())));
        first.keep_journal().unwrap();
        // Neither is the file mended when the disk is full: as if the writer had died in the write.
        faults.set(|faults| (faults.space, faults.truncate_fails) = (Some(space), true));
        let written = (1..=9).take_while(|id| write(&mut first, *id, 0).is_ok()).count() as u32;
        drop(first);
        let mut second = Streams::new(settings);
        let resumed = second.resume().unwrap();
        let known: Vec<u64> = (1..=u64::from(written)).collect();
        assert_eq!(resumed.events, known, "{space}");
        (written + 1..=9).for_each(|id| write(&mut second, id, 0).unwrap());
        let mut closed = resumed.closed;
        closed.extend(second.finish().unwrap());
        check_all(&directory, 9, closed);
        seen.insert(written);
    }
    assert_eq!(seen, (0..=9).collect());
}

#[test]
fn files_of_an_earlier_run_are_left_alone() {
    let directory = Directory::new();
    write_and_die(&directory, 2, 5);
    let before = directory.names();
    write_and_die(&directory, 2, 3);
    let mut second = Streams::new(settings(&directory, 2));
    let resumed = second.resume().unwrap();
    assert_eq!(resumed.events, [1, 2, 3]);
    let mut closed = resumed.closed;
    closed.extend(second.finish().unwrap());
    assert!(closed.iter().all(|file| !before.iter().any(|name| file.path.ends_with(name))), "{closed:?} {before:?}");
    assert_eq!(closed.iter().map(|file| file.events).sum::<u32>(), 3 + 1 + 1);
    assert!(before.iter().all(|name| directory.path().join(name).exists()));
}

#[test]
fn the_list_stays_short() {
    let directory = Directory::new();
    let mut streams = Streams::new(settings(&directory, 1000));
    streams.keep_journal().unwrap();
    let event = TestEvent::new(1, 0);
    let parts = event.parts();
    let copies = [EventCopy { stream_type: "physics", stream_name: "Main", parts: &parts }];
    let mut longest = 0;
    for id in 0..100_000u64 {
        streams.write_numbered(id, id.saturating_sub(100), &copies).unwrap();
        if id.is_multiple_of(1000) {
            longest = longest.max(fs::metadata(journal(&directory)).unwrap().len());
        }
    }
    assert!(longest < 1 << 21, "{longest}");
    drop(streams);
    let mut second = Streams::new(settings(&directory, 1000));
    let resumed = second.resume().unwrap();
    assert_eq!(resumed.events, (100_000 - 101..100_000).collect::<Vec<_>>());
    let files = resumed.closed.into_iter().chain(second.finish().unwrap());
    assert_eq!(files.map(|file| file.events).sum::<u32>(), 100_000);
}

#[test]
fn a_file_that_is_gone_is_asked_for() {
    let directory = Directory::new();
    write_and_die(&directory, 4, 1);
    let name = open_file(&directory);
    let (there, away) = (directory.path().join(&name), directory.path().join("away"));
    fs::rename(&there, &away).unwrap();
    let mut second = Streams::new(settings(&directory, 4));
    let error = second.resume().unwrap_err();
    assert!(matches!(error, ResumeError::Short { found_bytes: None, .. }), "{error}");
    fs::rename(&away, &there).unwrap();
    assert_eq!(second.resume().unwrap().events, [1]);
}

#[test]
fn a_file_that_was_cut_is_asked_for() {
    for is_renamed in [false, true] {
        let directory = Directory::new();
        write_and_die(&directory, 4, 1);
        let name = open_file(&directory);
        let (mut path, whole) = (directory.path().join(&name), fs::read(directory.path().join(&name)).unwrap());
        if is_renamed {
            // It died after that, and before its journal said so.
            fs::remove_file(&path).unwrap();
            path.set_extension("data");
        }
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let error = Streams::new(settings(&directory, 4)).resume().unwrap_err();
        let (found, expected) = (whole.len() as u64 - 1, whole.len() as u64);
        assert!(
            matches!(error, ResumeError::Short { found_bytes: Some(found_bytes), expected_bytes, .. }
                if (found_bytes, expected_bytes) == (found, expected)),
            "{error}"
        );
        fs::write(&path, &whole).unwrap();
        let closed = Streams::new(settings(&directory, 4)).resume().unwrap().closed;
        let sizes: Vec<_> = closed.iter().map(|file| (file.bytes, file.adler32, file.path.clone())).collect();
        let expected = (expected, eformat::adler32(&whole), path);
        assert_eq!(sizes, if is_renamed { vec![expected] } else { Vec::new() });
    }
}

#[test]
fn a_closed_file_may_have_been_taken_away() {
    let directory = Directory::new();
    let mut first = Streams::new(settings(&directory, 1));
    first.keep_journal().unwrap();
    // The third event closes the file of the first two.
    (1..=3).for_each(|id| write(&mut first, id, 0).unwrap());
    let mut closed = first.take_closed();
    drop(first);
    closed.sort_by_key(|file| file.path.clone());
    assert!(closed.len() > 1, "{closed:?}");
    closed.iter().for_each(|file| fs::remove_file(&file.path).unwrap());
    let mut resumed = Streams::new(settings(&directory, 1)).resume().unwrap().closed;
    resumed.sort_by_key(|file| file.path.clone());
    assert_eq!(resumed, closed, "the list knows them");
}

#[test]
fn a_list_that_is_not_there_leaves_nothing_to_finish() {
    let directory = Directory::new();
    assert_eq!(finish_left(&journal(&directory)).unwrap(), []);
    fs::create_dir(journal(&directory)).unwrap();
    let error = finish_left(&journal(&directory)).unwrap_err();
    assert!(matches!(error, ResumeError::Journal { .. }), "{error}");
}

/// A list of these lines.
fn list_of(lines: &[&str]) -> String {
    lines.iter().fold(String::new(), |list, line| {
        let list = list + line + " ";
        let sum = eformat::adler32(list.as_bytes());
        list + &format!("{sum}\n")
    })
}

#[test]
fn a_file_that_was_begun_and_not_made_is_removed_if_it_is_our_own() {
    let name = "data_test.00000007.physics_Main.daq.RAW._lb0000._SFO-1._0001";
    for (bytes, is_left) in [(0, false), (100, false), (101, true)] {
        let directory = Directory::new();
        fs::write(journal(&directory), list_of(&[&format!("begin 0 {name} 100")])).unwrap();
        let path = directory.file(&format!("{name}.writing"), &vec![7; bytes]);
        let mut streams = Streams::new(settings(&directory, 4));
        assert_eq!(streams.resume().unwrap().first_copies, 0);
        assert_eq!(path.exists(), is_left, "{bytes}");
        write(&mut streams, 1, 0).unwrap();
        let files = streams.finish().unwrap();
        let sequence = files[0].path.file_name().unwrap().to_str().unwrap().parse::<eformat::FileName>().unwrap();
        assert_eq!(sequence.sequence(), if is_left { 101 } else { 1 });
    }
}

#[test]
fn the_names_go_on_behind_files_that_are_all_closed() {
    let directory = Directory::new();
    let mut first = Streams::new(settings(&directory, 2));
    first.keep_journal().unwrap();
    (1..=4).for_each(|id| write(&mut first, id, 0).unwrap());
    first.finish().unwrap();
    drop(first);
    let mut second = Streams::new(settings(&directory, 2));
    second.resume().unwrap();
    write(&mut second, 5, 0).unwrap();
    second.finish().unwrap();
    let names = directory.names();
    let last = names.iter().rfind(|name| name.contains("Main")).unwrap();
    assert_eq!(last.parse::<eformat::FileName>().unwrap().sequence(), 3, "{names:?}");
}

#[test]
fn a_file_that_cannot_be_looked_at_is_not_taken_for_one_that_is_gone() {
    let directory = Directory::new();
    // No file system has names of this length.
    let name = format!("data_test.00000007.physics_Main.daq.RAW._lb0000._{}._0001", "S".repeat(300));
    let list = list_of(&[&format!("begin 0 {name} 100"), "made 0"]);
    fs::write(journal(&directory), list).unwrap();
    let error = finish_left(&journal(&directory)).unwrap_err();
    assert!(matches!(error, ResumeError::Read(ReadError::Io { .. })), "{error}");
}

#[test]
fn without_a_journal_nothing_was_written() {
    let directory = Directory::new();
    let mut streams = Streams::new(settings(&directory, 4));
    assert!(streams.resume().unwrap().events.is_empty());
    write(&mut streams, 1, 0).unwrap();
    assert!(journal(&directory).exists());
}

#[test]
fn what_is_left_for_good_is_closed_behind_the_last_event_in_all_its_streams() {
    let directory = Directory::new();
    let mut writer = Streams::new(settings(&directory, 4));
    writer.keep_journal().unwrap();
    (1..=5).for_each(|id| write(&mut writer, id, 0).unwrap());
    let known = fs::read(journal(&directory)).unwrap();
    write(&mut writer, 6, 0).unwrap();
    drop(writer);
    // As if it had died after the copies and before the line: they are whole, and not all that there should be.
    fs::write(journal(&directory), known).unwrap();
    let closed = finish_left(&journal(&directory)).unwrap();
    check_all(&directory, 5, closed);
    assert!(directory.names().iter().all(|name| name.ends_with(".data")), "{:?}", directory.names());
}

#[test]
fn what_is_left_for_good_may_be_closed_in_several_attempts() {
    let directory = Directory::new();
    write_and_die(&directory, 4, 9);
    let left = fs::read(journal(&directory)).unwrap();
    let taken = directory.names().into_iter().rfind(|name| name.ends_with(".writing")).unwrap();
    let taken = directory.file(&taken.replace(".writing", ".data"), b"of somebody else");
    let error = finish_left(&journal(&directory)).unwrap_err();
    assert!(matches!(error, ResumeError::Write(WriteError::Exists { .. })), "{error}");
    assert_eq!(fs::read(journal(&directory)).unwrap(), left);
    fs::remove_file(taken).unwrap();
    check_all(&directory, 9, finish_left(&journal(&directory)).unwrap());
}

#[test]
#[should_panic = "an event that the journal does not name"]
fn with_a_journal_events_have_numbers() {
    let directory = Directory::new();
    let mut streams = Streams::new(settings(&directory, 4));
    streams.keep_journal().unwrap();
    let _ = streams.write_event("physics", "Main", &TestEvent::new(1, 0).parts());
}

#[test]
fn a_death_while_the_list_is_made_short_leaves_nothing() {
    let directory = Directory::new();
    let short = journal(&directory).with_extension("new");
    let mut streams = Streams::new(settings(&directory, 4));
    fs::write(&short, "begin 0").unwrap();
    streams.keep_journal().unwrap();
    assert!(!short.exists());
    fs::write(&short, "begin 0").unwrap();
    streams.forget_journal().unwrap();
    assert!(directory.names().is_empty(), "{:?}", directory.names());
}

#[test]
fn a_list_that_cannot_be_made_short_goes_on() {
    let (directory, faults) = (Directory::new(), Faults::default());
    let backend = faults.clone();
    let mut streams = Streams::with_backend(settings(&directory, 0), move || Box::new(Faulty(backend.clone())));
    streams.keep_journal().unwrap();
    let event = TestEvent::new(1, 0);
    let parts = event.parts();
    let copies = [EventCopy { stream_type: "physics", stream_name: "Main", parts: &parts }];
    streams.write_numbered(0, 0, &copies).unwrap();
    faults.set(|faults| faults.rename_fails = true);
    let (mut id, long) = (1, 5 << 18);
    while fs::metadata(journal(&directory)).unwrap().len() < long {
        streams.write_numbered(id, id, &copies).unwrap();
        id += 1;
    }
    assert!(!journal(&directory).with_extension("new").exists());
    drop(streams);
    assert_eq!(Streams::new(settings(&directory, 0)).resume().unwrap().events, [id - 1]);
}

/// What may become of the list of a run.
#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Cut(usize),
    LeaveOut(usize),
    Duplicate(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        (any::<usize>(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, 1 << bit)),
        any::<usize>().prop_map(Damage::Cut),
        any::<usize>().prop_map(Damage::LeaveOut),
        any::<usize>().prop_map(Damage::Duplicate),
    ]
}

fn damaged(list: &[u8], damage: &Damage) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = list.split_inclusive(|byte| *byte == b'\n').collect();
    match damage {
        Damage::Flip(at, bits) => {
            let mut list = list.to_vec();
            let at = at % list.len();
            list[at] ^= bits;
            return list;
        }
        Damage::Cut(at) => return list[..at % list.len()].to_vec(),
        Damage::LeaveOut(at) => drop(lines.remove(at % lines.len())),
        Damage::Duplicate(at) => lines.insert(at % lines.len(), lines[at % lines.len()]),
    }
    lines.concat()
}

proptest! {
    /// A list of which something is missing at the end, or never was, is one of a writer that died earlier.
    #[test]
    fn a_damaged_list_is_refused(damage in damage()) {
        let directory = Directory::new();
        write_and_die(&directory, 0, 9);
        let list = fs::read(journal(&directory)).unwrap();
        fs::write(journal(&directory), damaged(&list, &damage)).unwrap();
        let mut second = Streams::new(settings(&directory, 0));
        match second.resume() {
            Ok(resumed) => {
                let last = resumed.events.len() as u64;
                prop_assert_eq!(&resumed.events, &(1..=last).collect::<Vec<_>>());
                let closed = second.finish().unwrap();
                for stream in STREAMS {
                    let expected: Vec<u32> = (1..=last as u32).filter(|id| streams_of(*id).contains(&stream)).collect();
                    let files = closed.iter().filter(|file| file.stream == format!("physics_{stream}"));
                    prop_assert_eq!(ids_of(files.map(|file| file.path.clone()).collect()), expected, "{}", stream);
                }
            }
            Err(error) => prop_assert!(matches!(error, ResumeError::Damaged { .. }), "{}", error),
        }
    }

    /// Whatever stands in the list, nothing panics.
    #[test]
    fn a_list_of_anything_is_refused(text in "(begin|made|event|closed|at|[ -~])?( [0-9a-z._]{1,12}){0,5}\n") {
        let directory = Directory::new();
        directory.file("data_test.00000007.SFO-1.journal", text.as_bytes());
        let error = Streams::new(settings(&directory, 4)).resume().unwrap_err();
        prop_assert!(matches!(error, ResumeError::Damaged { line: 1, .. }), "{}", error);
    }
}
