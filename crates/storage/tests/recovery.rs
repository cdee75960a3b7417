//! Files whose writer was killed.

mod common;

use std::fs;

use common::{Directory, TestEvent, check_good, config, events};
use eformat::stream_tag::{Entry, StreamTag, encode};
use eformat::*;
use storage::*;

/// A closed file of two events as bytes, and where each whole part of it ends.
fn sample(change: impl FnOnce(WriterConfig) -> WriterConfig) -> (Vec<u8>, Vec<usize>) {
    let directory = Directory::new();
    let mut writer = Writer::new(change(config(&directory))).unwrap();
    let mut ends = Vec::new();
    for id in 0..2 {
        writer.write_event(&TestEvent::new(id, 1).parts()).unwrap();
        ends.push(fs::metadata(writer.path().unwrap()).unwrap().len() as usize);
    }
    let path = writer.finish().unwrap().remove(0).path;
    let separator_and_event = ends[1] - ends[0];
    ends.insert(0, ends[0] - separator_and_event);
    (fs::read(path).unwrap(), ends)
}

#[test]
fn a_file_torn_at_any_byte_becomes_valid() {
    let dialect = Dialect::V2 { names: None, first_block_number: 12 };
    for (file, ends) in [sample(|config| config), sample(|config| WriterConfig { dialect, ..config })] {
        let directory = Directory::new();
        // Every byte of the current version; of the other, whose records differ only in front, some.
        let step = if file[8] == 6 { 1 } else { 11 };
        for length in (0..file.len()).step_by(step).chain([file.len()]) {
            let path = directory.file("a.writing", &file[..length]);
            let whole = ends.iter().filter(|end| **end <= length).count();
            if whole == 0 {
                assert!(matches!(recover(&path), Err(RecoverError::Read(ReadError::Bad { .. }))));
                assert_eq!(fs::read(&path).unwrap(), file[..length]);
                continue;
            }
            let kept = whole - 1;
            let recovered = recover(&path).unwrap();
            assert_eq!(recovered.events_kept as usize, kept);
            let complete = length == file.len();
            assert_eq!(recovered.reason.is_none(), complete);
            let dropped = if complete { 0 } else { length - ends[kept] };
            assert_eq!(recovered.bytes_dropped as usize, dropped, "{recovered}");
            assert_eq!(directory.names(), ["a.data"]);
            let report = check_good(&recovered.path);
            assert_eq!((report.adler32, report.bytes), (recovered.adler32, recovered.bytes));
            let expected: Vec<_> = (0..kept as u32).map(|id| TestEvent::new(id, 1).bytes()).collect();
            assert_eq!(events(&recovered.path), expected);
            fs::remove_file(&recovered.path).unwrap();
        }
    }
}

#[test]
fn events_without_their_data_are_cut_off() {
    let (mut file, ends) = sample(|config| config);
    file[ends[2] - 40..ends[2]].fill(0);
    let directory = Directory::new();
    let recovered = recover(&directory.file("a.writing", &file)).unwrap();
    assert_eq!((recovered.events_kept, recovered.bytes_dropped as usize), (1, file.len() - ends[1]));
    assert!(matches!(recovered.reason.unwrap().kind, ProblemKind::Checksum { .. }));
    check_good(&recovered.path);
}

#[test]
fn a_writer_that_died_leaves_a_file_that_recovers() {
    let directory = Directory::new();
    let mut writer = Writer::new(WriterConfig { events_max: 2, ..config(&directory) }).unwrap();
    for id in 0..3 {
        writer.write_event(&TestEvent::new(id, 1).parts()).unwrap();
    }
    let path = writer.path().unwrap().to_owned();
    drop(writer);
    assert!(ls(&path).unwrap().end.is_none());
    let recovered = recover(&path).unwrap();
    assert_eq!((recovered.events_kept, recovered.stream.as_deref()), (1, Some("physics_Main")));
    assert_eq!(ls(&recovered.path).unwrap().end.unwrap().sequence_events, 3);
    directory.names().iter().for_each(|name| drop(check_good(&directory.path().join(name))));
}

#[test]
fn distinct_events_are_known_from_the_tags_of_their_copies() {
    let directory = Directory::new();
    let mut streams = Streams::new(config(&directory));
    let tags = ["Main", "express"].map(|name| StreamTag::new("physics", name, true).unwrap());
    // The streams of each event, the first one first; an event without tags comes from elsewhere.
    for (id, streams_of) in [(1, &tags[..]), (2, &tags[1..]), (3, &tags[..1]), (4, &tags[..]), (5, &[])] {
        let entries: Vec<Entry> = streams_of.iter().cloned().map(Entry::Tag).collect();
        let header = EventHeader { global_id: id, stream_tags: encode(&entries), ..Default::default() };
        let mut bytes = Vec::new();
        event_envelope(&header, [], false, &mut bytes);
        let parts = [bytes.as_slice()];
        let copy = |stream_name| EventCopy { stream_type: "physics", stream_name, parts: &parts };
        let names = if streams_of.is_empty() { &tags[..1] } else { streams_of };
        let copies: Vec<_> = names.iter().map(|tag| copy(tag.name())).collect();
        streams.write_copies(&copies).unwrap();
    }
    drop(streams);
    let counts: Vec<_> = directory
        .names()
        .iter()
        .map(|name| recover(&directory.path().join(name)).unwrap())
        .map(|recovered| (recovered.stream.unwrap(), recovered.events_kept, recovered.first_copies))
        .collect();
    assert_eq!(counts, [("physics_Main".to_owned(), 4, 4), ("physics_express".to_owned(), 3, 1)]);
}

#[test]
fn nothing_is_overwritten() {
    let (file, _) = sample(|config| config);
    let directory = Directory::new();
    let path = directory.file("a.writing", &file[..file.len() - 1]);
    directory.file("a.data", b"precious");
    assert!(matches!(recover(&path), Err(RecoverError::Exists { .. })));
    assert_eq!(fs::read(directory.path().join("a.data")).unwrap(), b"precious");
    assert!(matches!(recover(&directory.path().join("none.writing")), Err(RecoverError::Read(ReadError::Io { .. }))));
}

#[test]
fn another_name_is_kept() {
    let (file, _) = sample(|config| config);
    let directory = Directory::new();
    let recovered = recover(&directory.file("a.data", &file[..file.len() - 1])).unwrap();
    assert_eq!((recovered.events_kept, directory.names()), (2, vec!["a.data".to_owned()]));
    check_good(&recovered.path);
}
