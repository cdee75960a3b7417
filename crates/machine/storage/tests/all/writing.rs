//! Writing, checking and reading back.

use std::fs;

use crate::common::{Directory, TestEvent, check_good, config, events};
use eformat::*;
use proptest::prelude::*;
use storage::*;

#[test]
fn what_is_written_is_read() {
    let directory = Directory::new();
    let mut writer = Writer::new(WriterConfig { durable: true, ..config(&directory) }).unwrap();
    let written: Vec<_> = (0..5).map(|id| TestEvent::new(id, id as usize * 100)).collect();
    for event in &written {
        writer.write_event(&event.parts()).unwrap();
        writer.sync().unwrap();
    }
    assert!(writer.path().unwrap().to_str().unwrap().ends_with("._0001.writing"));
    let files = writer.finish().unwrap();
    assert_eq!(directory.names(), ["data_test.00000007.physics_Main.daq.RAW._lb0000._SFO-1._0001.data"]);
    let [file] = &files[..] else { panic!("{files:?}") };
    let report = check_good(&file.path);
    assert_eq!(
        (file.events, file.stream.as_str(), file.bytes),
        (5, "physics_Main", fs::metadata(&file.path).unwrap().len())
    );
    assert_eq!((file.adler32, report.adler32), (adler32(&fs::read(&file.path).unwrap()), file.adler32));
    assert_eq!(events(&file.path), written.iter().map(TestEvent::bytes).collect::<Vec<_>>());
    let listing = ls(&file.path).unwrap();
    assert_eq!(listing.end.unwrap().status, 1);
    assert_eq!(listing.header.metadata.as_ref().unwrap().value("Stream"), Some("physics_Main"));
    assert!(listing.header.metadata.as_ref().unwrap().guid().is_some());
    assert!(writer.finish().unwrap().is_empty());
}

#[test]
fn files_roll_over_by_count_and_continue_the_sequence() {
    let directory = Directory::new();
    let mut writer = Writer::new(WriterConfig { events_max: 2, ..config(&directory) }).unwrap();
    for id in 0..5 {
        writer.write_event(&TestEvent::new(id, 3).parts()).unwrap();
    }
    assert_eq!(writer.take_closed().len(), 2);
    assert_eq!(writer.finish().unwrap().len(), 1);
    let listings: Vec<_> = directory.names().iter().map(|name| ls(&directory.path().join(name)).unwrap()).collect();
    let ends: Vec<_> = listings.iter().map(|listing| listing.end.unwrap()).collect();
    assert_eq!(
        ends.iter().map(|end| (end.events, end.sequence_events, end.status)).collect::<Vec<_>>(),
        [(2, 2, 0), (2, 4, 0), (1, 5, 1)]
    );
    assert_eq!(listings.iter().map(|listing| listing.header.start.file_number).collect::<Vec<_>>(), [1, 2, 3]);
    let mut reader = FileReader::open(&listings[1].path).unwrap();
    assert_eq!(reader.next_event().unwrap().unwrap().block_number, 3);
    listings.iter().for_each(|listing| drop(check_good(&listing.path)));
}

/// Sizes and events of the files of events with these data words.
fn sizes(bytes_max: u64, events: &[usize]) -> Vec<(u64, u32)> {
    let directory = Directory::new();
    let mut writer = Writer::new(WriterConfig { bytes_max, ..config(&directory) }).unwrap();
    for (id, words) in (0..).zip(events) {
        writer.write_event(&TestEvent::new(id, *words).parts()).unwrap();
    }
    let files = writer.finish().unwrap();
    files.iter().for_each(|file| drop(check_good(&file.path)));
    files.iter().map(|file| (fs::metadata(&file.path).unwrap().len(), file.events)).collect()
}

#[test]
fn a_file_keeps_to_its_limit_to_the_byte() {
    let [(one, 1)] = sizes(0, &[100])[..] else { panic!("one event, one file") };
    let [(two, 2)] = sizes(0, &[100, 100])[..] else { panic!("no limit, one file") };
    assert_eq!(sizes(two, &[100, 100, 100]), [(two, 2), (one, 1)]);
    assert_eq!(sizes(two - 1, &[100, 100]), [(one, 1), (one, 1)]);
}

#[test]
fn an_event_above_the_limit_is_alone_in_its_file() {
    let events: Vec<_> = sizes(2000, &[10, 10, 1000, 10]).iter().map(|(_, events)| *events).collect();
    assert_eq!(events, [2, 1, 1]);
}

#[test]
fn taken_names_are_passed_over() {
    let directory = Directory::new();
    let core = "data_test.00000007.physics_Main.daq.RAW._lb0000._SFO-1";
    directory.file(&format!("{core}._0001.data"), b"old");
    directory.file(&format!("{core}._0101.writing"), b"old");
    let mut writer = Writer::new(WriterConfig { events_max: 1, ..config(&directory) }).unwrap();
    for id in 0..2 {
        writer.write_event(&TestEvent::new(id, 1).parts()).unwrap();
    }
    writer.finish().unwrap();
    let numbers: Vec<_> = directory.names().iter().map(|name| name[core.len() + 2..].to_owned()).collect();
    assert_eq!(numbers, ["0001.data", "0101.writing", "0201.data", "0202.data"]);
    assert_eq!(fs::read(directory.path().join(format!("{core}._0001.data"))).unwrap(), b"old");
}

#[test]
fn streams_have_their_own_files() {
    let directory = Directory::new();
    let mut streams = Streams::new(config(&directory));
    for (id, name) in [(1, "Main"), (2, "express"), (3, "Main")] {
        streams.write_event("physics", name, &TestEvent::new(id, 1).parts()).unwrap();
    }
    streams.sync().unwrap();
    let files = streams.finish().unwrap();
    let counts: Vec<_> = files.iter().map(|file| (file.stream.as_str(), file.events)).collect();
    assert_eq!(counts, [("physics_Main", 2), ("physics_express", 1)]);
    files.iter().for_each(|file| drop(check_good(&file.path)));
    assert!(matches!(streams.write_event("physics", "a/b", &[]), Err(WriteError::Name(_))));
}

#[test]
fn what_is_not_an_event_is_refused() {
    let directory = Directory::new();
    let mut writer = Writer::new(config(&directory)).unwrap();
    let event = TestEvent::new(1, 1);
    for parts in [&event.parts()[..2], &event.parts()[1..], &[], &[&[][..]]] {
        assert!(matches!(writer.write_event(parts), Err(WriteError::NotAnEvent { .. })));
    }
    assert!(writer.finish().unwrap().is_empty());
    assert!(directory.names().is_empty());
}

#[test]
fn many_pieces_are_one_event() {
    let directory = Directory::new();
    let mut writer = Writer::new(config(&directory)).unwrap();
    let event = TestEvent::new(1, 3000).bytes();
    let mut parts = vec![&event[..8]];
    parts.extend(event[8..].chunks(5));
    parts.insert(1, &[]);
    writer.write_event(&parts).unwrap();
    let files = writer.finish().unwrap();
    check_good(&files[0].path);
    assert_eq!(events(&files[0].path), [event]);
}

#[test]
fn the_recorded_besiii_file_is_written_back_with_the_same_events() {
    let name = "the_recorded_besiii_file_is_written_back_with_the_same_events";
    let Some(original) = testkit::shared(name, "rawdata/bes3_run0091668_SFO-1_10events.raw") else {
        return;
    };
    check_good(&original);
    let directory = Directory::new();
    let mut reader = FileReader::open(&original).unwrap();
    let header = reader.header().clone();
    let mut writer = None;
    while let Some(event) = reader.next_event().unwrap() {
        let writer = writer.get_or_insert_with(|| {
            let dialect = Dialect::V2 { names: Some(header.names.clone()), first_block_number: event.block_number };
            let config =
                WriterConfig { dialect, run: header.run, run_number: header.run.run_number, ..config(&directory) };
            Writer::new(config).unwrap()
        });
        writer.write_event(&[event.bytes]).unwrap();
    }
    let file = writer.unwrap().finish().unwrap().remove(0);
    check_good(&file.path);
    assert_eq!(events(&file.path), events(&original));
    let (old, new) = (fs::read(&original).unwrap(), fs::read(&file.path).unwrap());
    // All but file start (number, date, limits) and file end (date, status) is the same.
    assert_eq!(old[FileStart::BYTES..old.len() - FileEnd::BYTES], new[FileStart::BYTES..new.len() - FileEnd::BYTES]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_events_come_back(sizes in proptest::collection::vec(0..200usize, 0..20), events_max in 0..4u32) {
        let directory = Directory::new();
        let mut writer = Writer::new(WriterConfig { events_max, ..config(&directory) }).unwrap();
        let written: Vec<_> = sizes.iter().zip(0..).map(|(words, id)| TestEvent::new(id, *words)).collect();
        for event in &written {
            writer.write_event(&event.parts()).unwrap();
        }
        let files = writer.finish().unwrap();
        let read: Vec<_> = files.iter().inspect(|file| drop(check_good(&file.path))).flat_map(|file| events(&file.path)).collect();
        prop_assert_eq!(read, written.iter().map(TestEvent::bytes).collect::<Vec<_>>());
    }
}
