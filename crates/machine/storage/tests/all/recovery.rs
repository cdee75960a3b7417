//! Files that are torn or damaged.

use std::fs;
use std::ops::Range;
use std::path::Path;

use crate::common::{Directory, TestEvent, check_good, config, events};
use eformat::stream_tag::{Entry, StreamTag, encode};
use eformat::*;
use proptest::prelude::*;
use storage::*;

/// A file as bytes, its blocks, and where each block lies with its separator.
struct Sample {
    name: &'static str,
    file: Vec<u8>,
    events: Vec<Vec<u8>>,
    places: Vec<Range<usize>>,
}

impl Sample {
    fn new(name: &'static str, file: Vec<u8>) -> Self {
        let blocks: Vec<_> = file_events(&file).unwrap().map(Result::unwrap).collect();
        let places = blocks.iter().map(|event| event.offset as usize - 16..event.offset as usize + event.block.len());
        let (places, events) = (places.collect(), blocks.iter().map(|event| event.block.to_vec()).collect());
        Self { name, file, events, places }
    }

    fn header_bytes(&self) -> usize {
        self.places[0].start
    }
}

/// A closed file of these events.
fn written(change: impl FnOnce(WriterConfig) -> WriterConfig, events: &[Vec<u8>]) -> Vec<u8> {
    let directory = Directory::new();
    let mut writer = Writer::new(change(config(&directory))).unwrap();
    events.iter().for_each(|event| writer.write_event(&[event]).unwrap());
    fs::read(&writer.finish().unwrap()[0].path).unwrap()
}

fn event(id: u32, adler32: bool) -> Vec<u8> {
    let rod = RodHeader { source_id: SourceId(0x42_0002), run_number: 7, lvl1_id: id, ..Default::default() };
    let params = RobParams { rod, adler32, ..Default::default() };
    let words = 1 + id as usize % 3;
    let mut rob = vec![id as u8; params.rob_bytes(words * 4)];
    write_rob_fragment(&mut rob, &params, words * 4);
    let header = EventHeader { global_id: id.into(), lvl1_id: id, run_number: 7, ..Default::default() };
    let mut out = Vec::new();
    let trailer = event_envelope(&header, [rob.as_slice()], adler32, &mut out);
    out.into_iter().chain(rob).chain(trailer.into_iter().flatten()).collect()
}

/// An event of which each block is a zlib stream, in a file of version 5.
fn packed_file(events: &[Vec<u8>]) -> Vec<u8> {
    let plain = file_events(&written(|config| config, events)).unwrap().header().clone();
    let mut metadata = plain.metadata.unwrap();
    metadata.0.push("Compression=zlib".to_owned());
    let start = FileStart { version: FileVersion::V5, ..plain.start };
    let mut file = FileHeader { start, metadata: Some(metadata), ..plain }.emit();
    let mut bytes = 0;
    for (block_number, event) in (1..).zip(events) {
        let block = zlib_pack([event.as_slice()], 1);
        file.extend(DataSeparator { block_number, block_bytes: block.len() as u32 }.emit());
        file.extend(&block);
        bytes += block.len() as u64;
    }
    let (count, megabytes) = (events.len() as u32, FileEnd::megabytes(bytes));
    let counts = FileEnd {
        closed: plain.start.opened,
        events: count,
        megabytes,
        sequence_events: count,
        sequence_megabytes: megabytes,
        status: 1,
    };
    counts.emit(&mut file);
    file
}

fn samples() -> Vec<Sample> {
    let all = |adler32| (0..5).map(|id| event(id, adler32)).collect::<Vec<_>>();
    let dialect = Dialect::V2 { names: None, first_block_number: 12 };
    let zlib: Vec<_> = (0..5)
        .map(|id| {
            let header = EventHeader { global_id: id, lvl1_id: id as u32, run_number: 7, ..Default::default() };
            compressed_event(&header, [lost_rob(&RobParams::default()).as_slice()], 1, ChecksumType::Adler32)
        })
        .collect();
    vec![
        Sample::new("with checksums", written(|config| config, &all(true))),
        Sample::new("without checksums", written(|config| config, &all(false))),
        Sample::new("of version 2", written(|config| WriterConfig { dialect, ..config }, &all(true))),
        Sample::new("of compressed events", written(|config| config, &zlib)),
        Sample::new("of compressed blocks", packed_file(&all(true))),
    ]
}

fn blocks(path: &Path) -> Vec<Vec<u8>> {
    let file = fs::read(path).unwrap();
    file_events(&file).unwrap().map(|event| event.unwrap().block.to_vec()).collect()
}

/// Recovers a damaged version of the sample: nothing but events in which `damaged` bytes lie may be lost or changed.
fn recover_and_compare(sample: &Sample, damaged_file: &[u8], damaged: Range<usize>, what: &str) -> Recovered {
    let directory = Directory::new();
    let path = directory.file("data_test.00000007.physics_Main.daq.RAW._lb0000._SFO-1._0001.data", damaged_file);
    let what = format!("a file {}, {what}", sample.name);
    let recovered = recover(&path, None).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(fs::read(&path).unwrap(), damaged_file, "{what}: the input is as it was");
    let report = check_good(&recovered.path);
    let kept = blocks(&recovered.path);
    assert_eq!((report.events, kept.len()), (recovered.events_kept, kept.len()));
    assert_eq!((report.adler32, report.bytes), (recovered.adler32, recovered.bytes), "{what}");
    let hit = |place: &Range<usize>| place.start + 16 < damaged.end && damaged.start < place.end;
    let good = sample.events.iter().zip(&sample.places).filter(|(_, place)| !hit(place)).map(|(event, _)| event);
    let missing: Vec<_> = good.clone().filter(|event| !kept.contains(event)).collect();
    assert!(missing.is_empty(), "{what}: {} good events are missing\n{recovered}", missing.len());
    let strange = kept.iter().filter(|event| !sample.events.contains(event)).count();
    let hits = sample.places.iter().filter(|place| hit(place)).count();
    assert!(strange <= hits, "{what}: {strange} events are from nowhere\n{recovered}");
    let lost = sample.events.len() - kept.len();
    let is_known = damaged.end < usize::MAX && !recovered.may_be_more;
    assert!(!is_known || recovered.events_lost == lost as u64, "{what}: {lost} are lost\n{recovered}");
    assert_eq!(check(&path, &CheckLimits::default()).unwrap().is_good(), recovered.path == path, "{what}\n{recovered}");
    recovered
}

#[test]
fn a_flipped_bit_costs_one_event_at_most() {
    for sample in samples() {
        for bit in (0..sample.file.len() * 8).step_by(43) {
            let mut file = sample.file.clone();
            file[bit / 8] ^= 1 << (bit % 8);
            recover_and_compare(&sample, &file, bit / 8..bit / 8 + 1, &format!("bit {bit} flipped"));
        }
    }
}

#[test]
fn a_torn_file_keeps_all_whole_events() {
    for sample in samples() {
        for length in (sample.header_bytes()..sample.file.len()).step_by(7) {
            let what = format!("torn at {length}");
            let recovered = recover_and_compare(&sample, &sample.file[..length], length..usize::MAX, &what);
            let whole = sample.places.iter().filter(|place| place.end <= length).count();
            assert_eq!(recovered.events_kept as usize, whole, "{what}");
        }
        for length in [0, 1, 40, sample.header_bytes() - 1] {
            let directory = Directory::new();
            let path = directory.file("a.writing", &sample.file[..length]);
            assert!(matches!(recover(&path, None), Err(RecoverError::Read(ReadError::Bad { .. }))));
            assert_eq!((fs::read(&path).unwrap().len(), directory.names().len()), (length, 1));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn an_overwritten_range_costs_the_events_in_it(
        which in 0..5usize, at in any::<prop::sample::Index>(), length in 1..300usize, fill in any::<Option<u8>>(),
    ) {
        let sample = samples().swap_remove(which);
        let at = at.index(sample.file.len());
        let range = at..(at + length).min(sample.file.len());
        let mut file = sample.file.clone();
        for (index, byte) in file[range.clone()].iter_mut().enumerate() {
            *byte = fill.unwrap_or((index * 37 + at) as u8);
        }
        if file != sample.file {
            recover_and_compare(&sample, &file, range.clone(), &format!("{range:?} overwritten with {fill:?}"));
        }
    }

    #[test]
    fn bytes_that_are_gone_or_too_many_cost_the_event_they_are_in(
        which in 0..5usize, at in any::<prop::sample::Index>(), length in 1..60usize, insert in any::<bool>(),
    ) {
        let sample = samples().swap_remove(which);
        let (begin, end) = (sample.header_bytes(), sample.places[4].start);
        let at = begin + at.index(end - begin);
        let (range, new) = if insert { (at..at, vec![0x5a; length]) } else { (at..(at + length).min(end), Vec::new()) };
        let mut file = sample.file.clone();
        file.splice(range.clone(), new);
        recover_and_compare(&sample, &file, at..range.end.max(at + 1), &format!("{range:?} replaced, {insert}"));
    }

    #[test]
    fn several_damages_cost_their_events(
        which in 0..5usize, places in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 2..5),
    ) {
        let sample = samples().swap_remove(which);
        let (mut file, mut hit) = (sample.file.clone(), 0);
        for (at, byte) in places {
            // One event in which none of them lies is good.
            let at = sample.places[1].start + at.index(sample.places[2].start - sample.places[1].start);
            file[at] ^= byte | 1;
            hit = hit.max(at);
        }
        let range = sample.places[1].start..sample.places[2].start;
        recover_and_compare(&sample, &file, range, "several bytes of the second event changed");
    }
}

/// An event with these bytes as its data.
fn event_around(id: u32, data: &[u8]) -> Vec<u8> {
    let rod = RodHeader { source_id: SourceId(0x42_0002), run_number: 7, lvl1_id: id, ..Default::default() };
    let params = RobParams { rod, ..Default::default() };
    let mut rob = vec![0; params.rob_bytes(data.len())];
    rob[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + data.len()].copy_from_slice(data);
    write_rob_fragment(&mut rob, &params, data.len());
    let header = EventHeader { global_id: id.into(), lvl1_id: id, run_number: 7, ..Default::default() };
    let mut out = Vec::new();
    let trailer = event_envelope(&header, [rob.as_slice()], true, &mut out);
    out.into_iter().chain(rob).chain(trailer.into_iter().flatten()).collect()
}

#[test]
fn the_data_of_a_damaged_event_are_not_taken_for_events() {
    let mut inner = written(|config| config, &(10..14).map(|id| event(id, true)).collect::<Vec<_>>());
    inner.resize(inner.len().next_multiple_of(4), 0);
    let events = [event(0, true), event(1, true), event_around(2, &inner), event(3, true), event_around(4, &inner)];
    let sample = Sample::new("with a file in an event", written(|config| config, &events));
    let place = sample.places[2].clone();
    for bit in (place.start * 8..(place.start + 200) * 8).step_by(5).chain([(place.end - 4) * 8]) {
        let mut file = sample.file.clone();
        file[bit / 8] ^= 1 << (bit % 8);
        let recovered = recover_and_compare(&sample, &file, bit / 8..bit / 8 + 1, &format!("bit {bit} flipped"));
        assert!(recovered.events_kept >= 4, "{recovered}");
    }
    // Torn within the last event, behind events in its data.
    for length in (sample.places[4].start + 30..sample.places[4].end).step_by(7) {
        let recovered = recover_and_compare(&sample, &sample.file[..length], length..usize::MAX, "torn");
        assert_eq!((recovered.events_kept, recovered.events_lost), (4, 1), "{recovered}");
    }
}

#[test]
fn what_looks_like_events_takes_linear_time() {
    // Markers and sizes that lead to one another, 2 MB of them in an event whose own size is damaged.
    let mut data = Vec::new();
    while data.len() < 2_000_000 {
        let rest = (2_100_000 - data.len()) as u32 / 4;
        let block_number = data.len() as u32;
        data.extend(DataSeparator { block_number, block_bytes: rest * 4 }.emit());
        data.extend([marker::FULL_EVENT, rest].iter().flat_map(|word| word.to_le_bytes()));
    }
    let sample =
        Sample::new("of traps", written(|config| config, &[event(0, true), event_around(1, &data), event(2, true)]));
    let mut file = sample.file.clone();
    let at = sample.places[1].start;
    file[at..at + 24].fill(0xff);
    let recovered = recover_and_compare(&sample, &file, at..at + 24, "its sizes overwritten");
    assert_eq!((recovered.events_kept, recovered.events_lost), (2, 1), "{recovered}");
}

#[test]
fn events_without_their_data_are_left_out() {
    let sample = &samples()[0];
    let mut file = sample.file.clone();
    let place = &sample.places[1];
    file[place.end - 20..place.end].fill(0);
    let recovered = recover_and_compare(sample, &file, place.clone(), "with zeros");
    let [damage] = &recovered.damages[..] else { panic!("{recovered}") };
    assert_eq!((damage.range.clone(), damage.events_lost), (place.start as u64..place.end as u64, Some(1)));
    assert!(matches!(damage.problem.kind, ProblemKind::Checksum { .. }));
    let said = recovered.to_string();
    assert!(said.contains("4 events kept, 1 lost") && said.contains("1 event lost (byte"), "{said}");
}

#[test]
fn whole_events_that_were_gone_did_not_count_as_lost() {
    for sample in samples() {
        for (first, last) in [(0, 0), (1, 2), (2, 2), (3, 4), (4, 4), (0, 4)] {
            let gone = sample.places[first].start..sample.places[last].end;
            let mut file = sample.file.clone();
            file.drain(gone.clone());
            let recovered = recover_and_compare(&sample, &file, gone, &format!("events {first} to {last} gone"));
            let lost = (last - first + 1) as u64;
            assert_eq!((recovered.events_lost, recovered.may_be_more, recovered.is_complete()), (lost, false, false));
        }
    }
}

#[test]
fn an_event_that_is_there_twice_is_kept_once() {
    let events = [event(0, true), event(1, true), event(1, true), event(2, true)];
    let sample = Sample::new("with an event twice", written(|config| config, &events));
    let directory = Directory::new();
    let recovered = recover(&directory.file("a.data", &sample.file), None).unwrap();
    assert!(matches!(recovered.damages[0].problem.kind, ProblemKind::DuplicateEvent { event: 1 }), "{recovered}");
    assert_eq!(blocks(&recovered.path), [event(0, true), event(1, true), event(2, true)]);
    check_good(&recovered.path);
}

#[test]
fn a_good_file_needs_no_other() {
    let sample = &samples()[0];
    let directory = Directory::new();
    let path = directory.file("a.data", &sample.file);
    let recovered = recover(&path, None).unwrap();
    assert_eq!((recovered.path.as_path(), recovered.events_kept), (path.as_path(), 5));
    assert!(recovered.is_complete() && recovered.to_string().contains("nothing to recover"), "{recovered}");
    let other = directory.path().join("b.data");
    assert_eq!(recover(&path, Some(&other)).unwrap().events_kept, 5);
    assert_eq!(fs::read(&other).unwrap(), sample.file);
    // It was closed and not renamed.
    let recovered = recover(&directory.file("c.writing", &sample.file), None).unwrap();
    assert!(recovered.is_complete() && fs::read(&recovered.path).unwrap() == sample.file, "{recovered}");
    assert_eq!(directory.names(), ["a.data", "b.data", "c.recovered.data", "c.writing"]);
}

#[test]
fn nothing_is_overwritten() {
    let sample = &samples()[0];
    let torn = &sample.file[..sample.file.len() - 1];
    let directory = Directory::new();
    let path = directory.file("a.writing", torn);
    for name in ["a.recovered.data", "a.recovered.data.writing"] {
        let other = directory.file(name, b"precious");
        assert!(matches!(recover(&path, None), Err(RecoverError::Exists { .. })));
        assert!(matches!(recover(&path, Some(&path)), Err(RecoverError::Exists { .. })));
        assert_eq!(fs::read(&other).unwrap(), b"precious");
        fs::remove_file(other).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), torn);
    let absent = directory.path().join("none.writing");
    assert!(matches!(recover(&absent, None), Err(RecoverError::Read(ReadError::Io { .. }))));
    let nowhere = directory.path().join("none").join("b.data");
    assert!(matches!(recover(&path, Some(&nowhere)), Err(RecoverError::Io { .. })));
    assert_eq!(directory.names(), ["a.writing"]);
}

#[test]
fn a_writer_that_died_leaves_a_file_that_is_finished_in_place() {
    let directory = Directory::new();
    let mut writer = Writer::new(WriterConfig { events_max: 2, ..config(&directory) }).unwrap();
    for id in 0..3 {
        writer.write_event(&TestEvent::new(id, 1).parts()).unwrap();
    }
    let path = writer.path().unwrap().to_owned();
    drop(writer);
    assert!(ls(&path).unwrap().end.is_none());
    let finished = finish_torn(&path).unwrap();
    assert_eq!((finished.events_kept, finished.stream.as_deref()), (1, Some("physics_Main")));
    assert_eq!(ls(&finished.path).unwrap().end.unwrap().sequence_events, 3);
    assert!(directory.names().iter().all(|name| name.ends_with(".data")));
    directory.names().iter().for_each(|name| drop(check_good(&directory.path().join(name))));
    assert_eq!(events(&finished.path), [TestEvent::new(2, 1).bytes()]);
}

#[test]
fn a_left_file_is_finished_at_whatever_byte_it_is_torn() {
    let sample = &samples()[0];
    for length in (sample.header_bytes()..=sample.file.len()).step_by(5).chain([sample.file.len()]) {
        let directory = Directory::new();
        let finished = finish_torn(&directory.file("a.writing", &sample.file[..length])).unwrap();
        let whole = sample.places.iter().filter(|place| place.end <= length).count();
        assert_eq!((finished.events_kept as usize, directory.names()), (whole, vec!["a.data".to_owned()]), "{length}");
        assert_eq!(
            finished.events_lost,
            u64::from(sample.places.iter().any(|place| place.contains(&(length - 1)) && place.end > length))
        );
        let report = check_good(&finished.path);
        assert_eq!((report.bytes, report.adler32), (finished.bytes, finished.adler32));
    }
}

#[test]
fn a_left_file_that_is_damaged_is_kept_beside_what_was_saved() {
    let sample = &samples()[0];
    let mut file = sample.file.clone();
    file[sample.places[1].end - 20] ^= 1;
    for (name, length) in [("a.writing", file.len() - 50), ("a.data", file.len())] {
        let directory = Directory::new();
        let finished = finish_torn(&directory.file(name, &file[..length])).unwrap();
        assert_eq!(directory.names(), ["a.damaged", "a.data"]);
        assert_eq!(fs::read(directory.path().join("a.damaged")).unwrap(), file[..length]);
        assert_eq!(finished.events_kept, if name == "a.data" { 4 } else { 3 });
        check_good(&finished.path);
        assert!(matches!(finish_torn(&directory.file("b.data", b"")), Err(RecoverError::Read(_))));
    }
    let directory = Directory::new();
    directory.file("a.data", b"precious");
    assert!(matches!(finish_torn(&directory.file("a.writing", &file)), Err(RecoverError::Exists { .. })));
    assert_eq!(fs::read(directory.path().join("a.data")).unwrap(), b"precious");
}

#[test]
fn distinct_events_are_known_from_the_tags_of_their_copies() {
    let directory = Directory::new();
    let mut streams = Streams::new(config(&directory));
    let tags = ["Main", "express"].map(|name| StreamTag::new("physics", name, true).unwrap());
    // The streams of each event, the first one first; an event without tags comes from elsewhere.
    for (id, streams_of) in [(1, &tags[..]), (2, &tags[1..]), (3, &tags[..1]), (4, &tags[..]), (5, &[])] {
        let entries: Vec<Entry> = streams_of.iter().cloned().map(Entry::Tag).collect();
        let stream_tags = encode(&entries);
        let header = EventHeader { global_id: id, run_number: 7, stream_tags, ..Default::default() };
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
        .map(|name| recover(&directory.path().join(name), None).unwrap())
        .map(|recovered| (recovered.stream.unwrap(), recovered.events_kept, recovered.first_copies))
        .collect();
    assert_eq!(counts, [("physics_Main".to_owned(), 4, 4), ("physics_express".to_owned(), 3, 1)]);
}
