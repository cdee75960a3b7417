//! What each word of an event says in each format, and what a checker says of events and files that contradict themselves.

use crate::common::{event3, event4, event5, event5_zlib, header5, rob, robs, stamp};
use eformat::*;

/// The specific header begins behind seven generic words and one status word.
const SPECIFIC: usize = 8;

fn with_words(mut event: Vec<u8>, words: &[(usize, u32)]) -> Vec<u8> {
    for (index, value) in words {
        event[index * 4..index * 4 + 4].copy_from_slice(&value.to_le_bytes());
    }
    event
}

/// The event with 100, 101, … in the first `count` words of its specific header.
fn counting(event: Vec<u8>, count: usize) -> Vec<u8> {
    let words: Vec<(usize, u32)> = (0..count).map(|index| (SPECIFIC + index, 100 + index as u32)).collect();
    with_words(event, &words)
}

fn problems_of(event: &[u8]) -> Vec<Problem> {
    let mut problems = Vec::new();
    check_event(event, &CheckOptions::default(), &mut problems);
    problems
}

fn at(offset: usize, kind: ProblemKind) -> Problem {
    Problem { offset: offset as u64, unpacked_offset: None, kind }
}

fn around(header: &EventHeader, payload: &[u8], adler32: bool) -> Vec<u8> {
    let mut event = Vec::new();
    let trailer = event_envelope(header, [payload], adler32, &mut event);
    event.extend_from_slice(payload);
    event.extend(trailer.into_iter().flatten());
    event
}

#[test]
fn each_format_has_its_words_in_its_places() {
    let physics = RunType::PHYSICS;
    type Said = (u32, u32, u64, RunType, u32, u32, u32, u32, u32);
    let cases: [(EventFormat, Vec<u8>, Said); 3] = [
        (EventFormat::V3, counting(event3(1), 5), (100, 0, 101, physics, 102, 0, 103, 0, 104)),
        (EventFormat::V4, counting(event4(1), 9), (100, 101, 102, RunType(103), 104, 105, 106, 107, 108)),
        (
            EventFormat::V5,
            counting(event5(1, false), 10),
            (100, 101, 103 << 32 | 102, RunType(104), 105, 106, 107, 108, 109),
        ),
    ];
    for (format, bytes, said) in cases {
        let event = Event::parse(&bytes).unwrap();
        let (seconds, nanoseconds, global_id, run_type, run_number, lumi_block, lvl1_id, bcid, trigger_type) = said;
        assert_eq!(event.format(), format);
        assert_eq!((event.seconds(), event.nanoseconds(), event.global_id()), (seconds, nanoseconds, global_id));
        assert_eq!((event.run_type(), event.run_number(), event.lumi_block()), (run_type, run_number, lumi_block));
        assert_eq!((event.lvl1_id(), event.bcid(), event.trigger_type()), (lvl1_id, bcid, trigger_type));
        assert_eq!(event.unpacked_words(), event.fragment().payload().len() / 4);
        let header = EventHeader::of(&event).unwrap();
        assert_eq!((header.seconds, header.nanoseconds, header.global_id), (seconds, nanoseconds, global_id));
        assert_eq!((header.run_type, header.run_number), (run_type, run_number));
        assert_eq!((u32::from(header.lumi_block), header.lvl1_id), (lumi_block, lvl1_id));
        assert_eq!((u32::from(header.bcid.get()), u32::from(header.trigger_type)), (bcid, trigger_type));
        assert_eq!(header.source_id, event.source_id());
        let framing = EventFraming::of(&event);
        let payload_words = event.unpacked_words();
        assert_eq!((framing.payload_words, framing.unpacked_words), (payload_words, payload_words as u32));
        assert_eq!((framing.compression, framing.checksum), (CompressionType::None, ChecksumType::None));
    }
}

#[test]
fn info_blocks_of_each_format() {
    let blocks = |bytes: &[u8]| {
        let event = Event::parse(bytes).unwrap();
        let infos = [event.lvl1_info().collect::<Vec<_>>(), event.lvl2_info().collect(), event.hlt_info().collect()];
        (infos, event.stream_tags().to_vec())
    };
    let besiii = with_words(event3(1), &[(SPECIFIC + 5, 9)]);
    assert_eq!(blocks(&besiii), ([vec![], vec![9], vec![1, 2, 3, 4]], vec![]));
    assert_eq!(blocks(&event4(1)), ([vec![5, 6], vec![], vec![4]], b"AAA\0".to_vec()));
    let (infos, tags) = blocks(&event5(1, false));
    assert_eq!(infos, [(0..24).collect(), vec![], vec![9, 8]]);
    assert!(tags.starts_with(b"weir1;physics;Main;1;;\0"));
}

#[test]
fn fields_that_hold_more_than_they_may_are_named() {
    let fields4 = [(5, "luminosity block", 0xffff), (7, "bcid", 0xfff), (8, "trigger type", 0xff)];
    let fields5 = [(6, "luminosity block", 0xffff), (8, "bcid", 0xfff), (9, "trigger type", 0xff)];
    let cases =
        [(event3(1), vec![(4, "trigger type", 0xff)]), (event4(1), fields4.into()), (event5(1, false), fields5.into())];
    for (event, fields) in cases {
        for (index, field, max) in fields {
            let index = SPECIFIC + index;
            let header = |value| EventHeader::of(&Event::parse(&with_words(event.clone(), &[(index, value)])).unwrap());
            assert!(header(max).is_ok(), "{field}");
            let kind = ProblemKind::Field { part: Part::FullEvent, field, found: max + 1, max };
            assert_eq!(header(max + 1), Err(at(index * 4, kind)));
        }
    }
    let rod = |index: usize, value| {
        let rob = with_words(rob(1, 1, 0, false), &[(SPECIFIC + index, value)]);
        Rob::parse(EventFormat::V5, &rob).unwrap().rod().unwrap().header()
    };
    for (index, field, max) in [(6, "bcid", 0xfff), (7, "trigger type", 0xff)] {
        assert!(rod(index, max).is_ok());
        let kind = ProblemKind::Field { part: Part::Rod, field, found: max + 1, max };
        assert_eq!(rod(index, max + 1), Err(at(index * 4, kind)));
    }
}

#[test]
fn two_words_tell_the_size_of_an_event() {
    let event = event5(1, true);
    assert_eq!(event_size_bytes(&event[..8]), Some(event.len() as u64));
    assert_eq!(event_size_bytes(&event[..7]), None);
    assert_eq!(event_size_bytes(&rob(1, 1, 1, false)), None);
}

#[test]
fn a_payload_of_another_size_than_declared_is_refused() {
    let event = event5_zlib(1);
    let payload_bytes = Event::parse(&event).unwrap().unpacked_words() as u64 * 4;
    let place = SPECIFIC + 11;
    for declared in [payload_bytes - 4, payload_bytes + 4] {
        let bytes = with_words(event.clone(), &[(place, declared as u32 / 4)]);
        let problem = Event::parse(&bytes).unwrap().unpacked_payload(1 << 20).unwrap_err();
        let kind = ProblemKind::UnpackedSize { found_bytes: payload_bytes, expected_bytes: declared };
        assert_eq!(problem, at(place * 4, kind));
    }
    let view = Event::parse(&event).unwrap();
    assert_eq!(view.unpacked_payload(payload_bytes as usize).unwrap(), robs(1, true));
    let limit_bytes = payload_bytes - 1;
    let kind = ProblemKind::Oversize { part: Part::FullEvent, bytes: payload_bytes, limit_bytes };
    assert_eq!(view.unpacked_payload(limit_bytes as usize), Err(at(place * 4, kind)));
}

#[test]
fn problems_in_compressed_data_tell_both_places() {
    let payload = with_words(rob(1, 1, 1, false), &[(0, 7)]);
    let event = compressed_event(&header5(1), [payload.as_slice()], 1, ChecksumType::None);
    let start = Event::parse(&event).unwrap().fragment().payload_range().start as u64;
    let kind = ProblemKind::Marker { part: Part::Rob, found: 7, expected: 0xdd12_34dd };
    let expected = Problem { offset: start, unpacked_offset: Some(0), kind };
    assert_eq!(problems_of(&event), [expected]);
    // A block of a version 5 file, compressed as a whole.
    assert_eq!(at(9, kind).unpacked_from(40), Problem { offset: 40, unpacked_offset: Some(9), kind });
    assert_eq!(expected.unpacked_from(40), Problem { offset: 40, unpacked_offset: Some(0), kind });
    assert_eq!(expected.shifted(2), Problem { offset: start + 2, unpacked_offset: Some(0), kind });
    let text = "wrong ROB marker 0x00000007, expected 0xdd1234dd";
    assert_eq!(at(9, kind).to_string(), format!("byte 9: {text}"));
    assert_eq!(at(9, kind).unpacked_from(40).to_string(), format!("byte 40 (byte 9 of the decompressed data): {text}"));
    let kind = ProblemKind::Marker { part: Part::Rod, found: 0xee34_12ee, expected: 0xee12_34ee };
    assert!(kind.to_string().ends_with("expected 0xee1234ee (the bytes are in big-endian order)"));
}

#[test]
fn a_rod_must_say_what_its_event_says_unless_its_rob_explains() {
    let (run, lvl1, bcid, trigger) = (4, 5, 6, 7);
    let mismatch = |word, found| {
        let (field, expected) =
            [("run number", 77), ("level-1 id", 1), ("bunch crossing", 0x123), ("trigger type", 0x84)][word - run];
        Some(ProblemKind::Mismatch { part: Part::Rod, field, found, other: Part::FullEvent, expected })
    };
    let agrees = |_, _| None;
    let mut cases: Vec<(usize, u32, u32, Option<ProblemKind>)> = vec![
        (run, 78, 0, mismatch(run, 78)),
        // A detector that does not know its run; and the bit that a ROD does not keep.
        (run, 0, 0, agrees(run, 0)),
        (run, 77 | 1 << 31, 0, None),
        (run, 78, 0x0001_0003, mismatch(run, 78)),
        (lvl1, 0, 0, mismatch(lvl1, 0)),
        (lvl1, 1 | 1 << 31, 0, mismatch(lvl1, 1 | 1 << 31)),
        (lvl1, 2, 0x2, None),
        (lvl1, 2, 0x1, mismatch(lvl1, 2)),
        (bcid, 0x124, 0, mismatch(bcid, 0x124)),
        (bcid, 0x1123, 0, None),
        (bcid, 0x124, 0x1, None),
        (bcid, 0x124, 0x2, mismatch(bcid, 0x124)),
        (trigger, 0x85, 0, mismatch(trigger, 0x85)),
        (trigger, 0x184, 0, None),
        (trigger, 0x85, 0x0001_0000, None),
        (trigger, 0x85, 0x3, mismatch(trigger, 0x85)),
        // Duplicate, out of sequence, truncated: the ROD was sent for this event.
        (lvl1, 2, 0x0b00_0000, mismatch(lvl1, 2)),
    ];
    let not_of_event =
        [0x2000, 0x4000, 0x8000, 0x1000, 0x40, 0x4, 0x8, 0x400, 0x10, 0x20].map(|specific| specific << 16);
    cases.extend(not_of_event.into_iter().chain([0x20, 0x8]).map(|status| (lvl1, 2, status, None)));
    let good = event5(1, false);
    let rob = Event::parse(&good).unwrap().fragment().payload_range().start / 4;
    for (word, value, status, expected) in cases {
        let event = with_words(good.clone(), &[(rob + 6, status), (rob + 8 + word, value)]);
        let expected: Vec<Problem> = expected.into_iter().map(|kind| at((rob + 8 + word) * 4, kind)).collect();
        assert_eq!(problems_of(&event), expected, "word {word} is {value:#x}, status {status:#x}");
    }
}

#[test]
fn a_short_rob_says_how_many_bytes_it_needs() {
    let whole = rob(1, 1, 2, true);
    for have in 0..whole.len() {
        // The marker alone tells that it is a ROB, seven words tell its size.
        let needed = [4, 28, whole.len()].into_iter().find(|needed| have < *needed).unwrap();
        let (needed_bytes, have_bytes) = (needed as u64, have as u64);
        let kind = ProblemKind::Truncated { part: Part::Rob, needed_bytes, have_bytes };
        assert_eq!(Rob::parse(EventFormat::V5, &whole[..have]).map(drop), Err(at(0, kind)));
    }
    let longer = [whole.as_slice(), &[0; 8]].concat();
    let kind = ProblemKind::TrailingBytes { part: Part::Rob, extra_bytes: 8 };
    assert_eq!(Rob::parse(EventFormat::V5, &longer).map(drop), Err(at(whole.len(), kind)));
}

#[test]
fn a_broken_fragment_of_format_3_hides_its_siblings_only() {
    let good = event3(1);
    assert_eq!(problems_of(&good), []);
    let view = Event::parse(&good).unwrap();
    let first_detector = view.fragment().header_words();
    let first_ros = first_detector + 9;
    let first_rob = first_ros + 11;
    // The two ROBs of the first ROS: 8 + 9 + 2 + 4 and 8 + 9 + 4 words; then a ROS with one.
    let second_ros = first_rob + 23 + 21;
    let third_rob = second_ros + 11;
    let marker = |part, expected| ProblemKind::Marker { part, found: 7, expected };
    let rob = marker(Part::Rob, 0xdd12_34dd);
    let ros = marker(Part::Ros, 0xcc12_34cc);
    let cases = [
        (vec![first_rob, third_rob], vec![(first_rob, rob), (third_rob, rob)]),
        (vec![first_rob + 23, third_rob], vec![(first_rob + 23, rob), (third_rob, rob)]),
        (vec![first_ros, second_ros], vec![(first_ros, ros)]),
        (vec![first_detector, third_rob], vec![(first_detector, marker(Part::SubDetector, 0xbb12_34bb))]),
    ];
    for (broken, expected) in cases {
        let words: Vec<(usize, u32)> = broken.iter().map(|index| (*index, 7)).collect();
        let expected: Vec<Problem> = expected.into_iter().map(|(index, kind)| at(index * 4, kind)).collect();
        assert_eq!(problems_of(&with_words(good.clone(), &words)), expected);
    }
    let run_number = second_ros + 8;
    let (part, other, field) = (Part::Ros, Part::FullEvent, "run number");
    let kind = ProblemKind::Mismatch { part, field, found: 78, other, expected: 77 };
    assert_eq!(problems_of(&with_words(good.clone(), &[(run_number, 78)])), [at(run_number * 4, kind)]);
    assert_eq!(problems_of(&with_words(good.clone(), &[(run_number, 0)])), []);
}

#[test]
fn coverage_counts_what_checksums_vouch_for() {
    let coverage = |event: &[u8]| check_event(event, &CheckOptions::default(), &mut Vec::new());
    let payload = robs(1, true);
    let payload_bytes = payload.len() as u64;
    let lost_rod_bytes = 13 * 4;
    let rob_headers = 4 * 32;
    let cases = [
        (around(&header5(1), &payload, true), payload_bytes + 4, 0),
        (around(&header5(1), &payload, false), payload_bytes - rob_headers - lost_rod_bytes, lost_rod_bytes),
        (around(&header5(1), &robs(1, false), false), 0, robs(1, false).len() as u64 - rob_headers),
    ];
    for (event, covered_bytes, unverified_bytes) in cases {
        assert_eq!(coverage(&event), Coverage { covered_bytes, unverified_bytes });
    }
    let packed = compressed_event(&header5(1), [payload.as_slice()], 1, ChecksumType::None);
    let covered_bytes = Event::parse(&packed).unwrap().fragment().payload().len() as u64;
    assert_eq!(coverage(&packed), Coverage { covered_bytes, unverified_bytes: 0 });
    assert_eq!(coverage(&packed[..40]), Coverage::default());

    let by_crc = RobHeader { checksum: ChecksumType::Crc16, source_id: SourceId(1), ..Default::default() };
    let rod = rob(1, 1, 2, false)[32..].to_vec();
    let event = around(&header5(1), &by_crc.emit(&rod), false);
    assert_eq!(coverage(&event).covered_bytes, 0);
    let options = CheckOptions { crc16: true, ..CheckOptions::default() };
    let verified = check_event(&event, &options, &mut Vec::new());
    assert_eq!(verified, Coverage { covered_bytes: rod.len() as u64 + 4, unverified_bytes: 0 });
}

#[test]
fn a_lost_rob_says_so_whatever_was_asked_for() {
    let rod = RodHeader { source_id: SourceId(0x42_0001), lvl1_id: 5, ..Default::default() };
    let plain = lost_rob(&RobParams { rod, ..Default::default() });
    let params = RobParams { rod, status: StatusWord(1), rod_status: StatusWord(2), adler32: true };
    assert_eq!(lost_rob(&params), plain);
    let rob = Rob::parse(EventFormat::V5, &plain).unwrap();
    assert_eq!((rob.status(), rob.source_id()), (StatusWord::LOST, SourceId(0x42_0001)));
    assert_eq!(rob.rod().unwrap().status_words().collect::<Vec<_>>(), [StatusWord::LOST.0]);
}

/// A file with one event per header, which has no fragments; its records say run 77 and, if `lumi_block` is not 0, that.
fn file_of(file_number: u32, lumi_block: u32, headers: &[EventHeader]) -> (Vec<u8>, Vec<usize>) {
    let guid = "10605EAF-52B1-DB11-94A4-000347D7BFE1".parse().unwrap();
    let header = FileHeader {
        start: FileStart { version: FileVersion::V6, file_number, opened: stamp(), blocks_max: 0, megabytes_max: 0 },
        names: FileNames { application: "SFO-1".into(), core: "core".into() },
        metadata: Some(Metadata::new(guid, [], "physics", "Main", "data_test", lumi_block)),
        run: RunParameters { run_number: 77, ..Default::default() },
    };
    let (mut out, mut starts, mut event_bytes) = (header.emit(), Vec::new(), 0);
    for (index, header) in headers.iter().enumerate() {
        let event = around(header, &[], false);
        let block = DataSeparator { block_number: index as u32 + 1, block_bytes: event.len() as u32 };
        out.extend(block.emit());
        starts.push(out.len());
        event_bytes += event.len() as u64;
        out.extend(event);
    }
    let (events, megabytes) = (headers.len() as u32, FileEnd::megabytes(event_bytes));
    let (sequence_events, sequence_megabytes) = (events, megabytes);
    FileEnd { closed: stamp(), events, megabytes, sequence_events, sequence_megabytes, status: 1 }.emit(&mut out);
    (out, starts)
}

fn header(global_id: u64, lvl1_id: u32) -> EventHeader {
    EventHeader { lvl1_id, global_id, ..header5(1) }
}

#[test]
fn events_of_a_file_are_of_its_run_and_luminosity_block_and_have_one_id_each() {
    let full = Part::FullEvent;
    let run = EventHeader { run_number: 78, ..header(2, 2) };
    let lumi = EventHeader { lumi_block: 4, ..header(2, 2) };
    let mismatch = |field, found, other, expected| ProblemKind::Mismatch { part: full, field, found, other, expected };
    let wrong_run = mismatch("run number", 78, Part::RunParameters, 77);
    let wrong_block = mismatch("luminosity block", 4, Part::Metadata, 3);
    let twice = ProblemKind::DuplicateEvent { event: 1 };
    let strange = ProblemKind::EventId { event: 9, lvl1_id: 4 };
    // Luminosity block of the file, second to last event; what is wrong with which of them, and at which word.
    let cases = [
        (3, vec![run.clone()], Some((1, 5, wrong_run))),
        (3, vec![lumi.clone()], Some((1, 6, wrong_block))),
        (0, vec![lumi], None),
        (0, vec![header(1, 1)], Some((1, 2, twice))),
        (0, vec![header(2, 2), header(3, 3), header(9, 4)], Some((3, 2, strange))),
        // With a reset of the event counter the ids may part; so they may where one event alone had the same ids.
        (0, vec![header(2, 2), header(3, 3), header(9, 0x0100_0004)], None),
        (0, vec![header(9, 4), header(5, 5), header(11, 4)], None),
    ];
    for (lumi_block, more, expected) in cases {
        let headers = [vec![header(1, 1)], more].concat();
        let (file, starts) = file_of(1, lumi_block, &headers);
        let expected: Vec<Problem> =
            expected.into_iter().map(|(event, word, kind)| at(starts[event] + (SPECIFIC + word) * 4, kind)).collect();
        assert_eq!(check_file(&file, CheckOptions::default()), expected, "{headers:?}");
    }
    // Ids that were apart at first are the same by chance.
    let (file, _) = file_of(1, 0, &[header(9, 4), header(5, 5), header(6, 6), header(11, 7)]);
    assert_eq!(check_file(&file, CheckOptions::default()), []);
}

#[test]
fn records_of_a_file_that_contradict_its_events() {
    let check = |file: &[u8]| check_file(file, CheckOptions::default());
    let (good, starts) = file_of(1, 0, &[header(1, 1), header(2, 2)]);
    let (second_file, _) = file_of(2, 0, &[header(1, 1), header(2, 2)]);
    let end = good.len() / 4 - 10;
    let second = starts[1] / 4 - 2;
    let count = |field, found, expected| ProblemKind::EndCount { field, found, expected };
    let cases = [
        (second, 5, ProblemKind::BlockNumber { found: 5, expected: 2 }, true),
        (end + 4, 3, count("events in the file", 3, 2), true),
        (end + 5, 1, count("MB in the file", 1, 0), true),
        // Later files of a sequence count on from what the files before them hold.
        (end + 6, 3, count("events in the sequence", 3, 2), false),
        (end + 7, 1, count("MB in the sequence", 1, 0), false),
    ];
    for (index, value, kind, in_each_file) in cases {
        assert_eq!(check(&with_words(good.clone(), &[(index, value)])), [at(index * 4, kind)]);
        let expected = if in_each_file { vec![at(index * 4, kind)] } else { Vec::new() };
        assert_eq!(check(&with_words(second_file.clone(), &[(index, value)])), expected);
    }
    let first = starts[0] / 4 - 2;
    let from_seven = [(first, 7), (second, 8)];
    assert_eq!(check(&with_words(second_file, &from_seven)), []);
    let kind = ProblemKind::BlockNumber { found: 7, expected: 1 };
    assert_eq!(check(&with_words(good.clone(), &from_seven)), [at(first * 4, kind)]);

    let guid = good.windows(5).position(|text| text == b"GUID=").unwrap();
    let mut no_guid = good;
    no_guid[guid] = b'X';
    // The metadata record begins with its marker, the number of strings and the length of the first.
    assert_eq!(check(&no_guid), [at(guid - 12, ProblemKind::Guid)]);
}

#[test]
fn a_checker_counts_what_it_saw() {
    let (file, _) = file_of(1, 0, &[header(1, 1), header(2, 2), header(7, 7)]);
    let mut events = file_events(&file).unwrap();
    let mut problems = Vec::new();
    let mut checker = FileChecker::new(events.header(), CheckOptions::default(), &mut problems);
    let mut bytes = 0;
    for event in events.by_ref().map(Result::unwrap) {
        checker.block(event.separator, event.offset, &mut problems);
        checker.event(event.block, event.offset, &mut problems);
        bytes += event.block.len() as u64;
    }
    assert_eq!(problems, []);
    assert_eq!((checker.events(), checker.event_bytes(), checker.ids_not_compared()), (3, bytes, 0));
    assert_eq!(checker.ids().ranges().collect::<Vec<_>>(), [(1, 2), (7, 7)]);
    assert_eq!((checker.unverified_events(), checker.coverage()), (0, Coverage::default()));
    let event = event5(1, false);
    let block = DataSeparator { block_number: 4, block_bytes: event.len() as u32 };
    checker.block(block, 0, &mut problems);
    checker.event(&event, 0, &mut problems);
    assert_eq!((checker.unverified_events(), problems), (1, vec![]));
    let unverified_bytes = robs(1, false).len() as u64 - 4 * 32;
    assert_eq!(checker.coverage(), Coverage { covered_bytes: 0, unverified_bytes });
}
