//! Input that is no valid file: a clear error, never a panic, hang or huge allocation.

use std::fs;

use crate::common::{Directory, TestEvent, config};
use eformat::*;
use storage::*;

fn sample() -> Vec<u8> {
    let directory = Directory::new();
    let mut writer = Writer::new(config(&directory)).unwrap();
    for id in 0..2 {
        writer.write_event(&TestEvent::new(id, 5).parts()).unwrap();
    }
    fs::read(&writer.finish().unwrap()[0].path).unwrap()
}

/// Everything that reads a file.
fn look(path: &std::path::Path) -> CheckReport {
    let report = check(path, &CheckLimits::default()).unwrap();
    let _ = report.to_string();
    let _ = ls(path).map(|listing| listing.to_string());
    if let Ok(items) = dump(path, DumpOptions { data: true, ..Default::default() }) {
        items.for_each(|item| drop(item.map(|item| item.to_string())));
    }
    let read_all = || -> Result<(), ReadError> {
        let mut reader = FileReader::open(path)?;
        while reader.next_event()?.is_some() {}
        Ok(())
    };
    let _ = read_all().map_err(|error| error.to_string());
    report
}

#[test]
fn every_truncation_is_bad() {
    let (file, directory) = (sample(), Directory::new());
    for length in 0..file.len() {
        let report = look(&directory.file("a.data", &file[..length]));
        assert!(!report.is_good(), "{length}");
        assert!(report.problems.iter().all(|problem| problem.offset <= length as u64));
    }
}

#[test]
fn every_flipped_bit_gets_an_answer() {
    let (mut file, directory) = (sample(), Directory::new());
    for bit in (0..file.len() * 8).step_by(7) {
        file[bit / 8] ^= 1 << (bit % 8);
        look(&directory.file("a.data", &file));
        file[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn damage_is_reported_where_it_is() {
    let (good, directory) = (sample(), Directory::new());
    let block = file_events(&good).unwrap().next().unwrap().unwrap().offset as usize;
    let first = |at: usize, value: u32| {
        let mut file = good.clone();
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let report = look(&directory.file("a.data", &file));
        (report.problems[0].offset as usize, report.problems[0].kind)
    };
    let (offset, kind) = first(0, 0x1234_aaab);
    assert!(matches!((offset, kind), (0, ProblemKind::Marker { part: Part::FileStart, .. })));
    assert_eq!(first(8, 7), (8, ProblemKind::FileVersion { found: 7 }));
    let (offset, kind) = first(block, 0xaa12_34ab);
    assert!(matches!(kind, ProblemKind::Marker { part: Part::FullEvent, .. }) && offset == block);
    let (offset, kind) = first(block - 4, 0xffff_fff0);
    assert!(matches!(kind, ProblemKind::Truncated { part: Part::DataBlock, .. }) && offset == block);
    assert_eq!(first(block - 8, 9), (block - 8, ProblemKind::BlockNumber { found: 9, expected: 1 }));
    let (offset, kind) = first(good.len() - 24, 9);
    assert!(matches!(kind, ProblemKind::EndCount { found: 9, expected: 2, .. }) && offset == good.len() - 24);
}

#[test]
fn empty_random_and_other_things_are_no_files() {
    let directory = Directory::new();
    let empty = look(&directory.file("empty", &[]));
    assert!(matches!(empty.problems[0].kind, ProblemKind::Truncated { part: Part::FileStart, .. }));
    let mut state = 1u32;
    for length in [1, 31, 32, 1000, 100_000] {
        let random: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            })
            .collect();
        assert!(!look(&directory.file("random", &random)).is_good());
    }
    assert!(matches!(check(directory.path(), &CheckLimits::default()), Err(ReadError::NotAFile { .. })));
    assert!(matches!(ls(std::path::Path::new("/dev/zero")), Err(ReadError::NotAFile { .. })));
    assert!(matches!(FileReader::open(&directory.path().join("none")), Err(ReadError::Io { .. })));
}

#[test]
fn events_above_the_limit_are_not_read() {
    let (file, directory) = (sample(), Directory::new());
    let path = directory.file("a.data", &file);
    let mut reader = FileReader::open_with_limit(&path, 64).unwrap();
    let error = reader.next_event().unwrap_err();
    assert!(matches!(error, ReadError::Bad { problem: Problem { kind: ProblemKind::Oversize { .. }, .. }, .. }));
    assert!(reader.next_event().unwrap().is_none());
    let report = check(&path, &CheckLimits { event_bytes_max: 64, problems_max: 1, ..Default::default() }).unwrap();
    assert_eq!((report.events, report.problems.len(), report.more_problems), (2, 1, 1));
    assert_eq!(report.adler32, adler32(&file));
}

#[test]
fn a_sparse_file_of_any_size_is_read_in_small_memory() {
    let (file, directory) = (sample(), Directory::new());
    let block = file_events(&file).unwrap().next().unwrap().unwrap().offset as usize;
    let mut head = file[..block].to_vec();
    head[block - 4..].copy_from_slice(&0xffff_fff0u32.to_le_bytes());
    let path = directory.file("a.data", &head);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
    let error = FileReader::open(&path).unwrap().next_event().unwrap_err().to_string();
    assert!(error.contains("more than the limit"), "{error}");
    assert!(ls(&path).unwrap().end.is_none());
}

#[test]
fn vectors_check_as_they_should() {
    let Some(vectors) = testkit::shared("vectors_check_as_they_should", "format/vectors") else {
        return;
    };
    let names = ["v5_sfo1", "v5_sfo2", "v6_plain", "v6_adler", "v6_zlib", "v6_zlib_adler"];
    for name in names.iter().chain(&["bad_robbit", "bad_robmarker", "bad_trunc"]) {
        let report = look(&vectors.join(format!("{name}.data")));
        assert_eq!(report.is_good(), !name.starts_with("bad"), "{report}");
    }
    let mut reader = FileReader::open(&vectors.join("v5_sfo2.data")).unwrap();
    let event = reader.next_event().unwrap().unwrap();
    assert_eq!(Event::parse(event.bytes).unwrap().format(), EventFormat::V4);
}

#[test]
fn a_dump_tells_what_is_there() {
    let (file, directory) = (sample(), Directory::new());
    let path = directory.file("a.data", &file);
    let options = DumpOptions { skip: 1, events_max: 1, data: true, robs: true };
    let items: Vec<_> = dump(&path, options).unwrap().map(Result::unwrap).collect();
    let [DumpItem::Header(_), DumpItem::Event(event)] = &items[..] else { panic!("{items:?}") };
    let text = event.to_string();
    for expected in ["event 2 at byte", "level-1 id 0x00000001", "ROB 0x00420002 LAR_EM_BARREL_ENDCAP", "01010101"] {
        let expected = expected.replace("LAR_EM_BARREL_ENDCAP", "LAR_EM_BARREL_C_SIDE");
        assert!(text.contains(&expected), "{text}");
    }
    let all: Vec<_> = dump(&path, DumpOptions::default()).unwrap().map(Result::unwrap).collect();
    assert!(matches!(all[..], [DumpItem::Header(_), DumpItem::Event(_), DumpItem::Event(_), DumpItem::End(_)]));
    let listing = ls(&path).unwrap().to_string();
    assert!(listing.contains("v6  run 7  physics_Main  SFO-1") && listing.contains("2 events"), "{listing}");
}

/// A file of run 7 with these events, one ROB each, of which only the last word of the ROB is data.
fn file_of(adler32: bool, events: &[EventHeader]) -> Vec<u8> {
    let directory = Directory::new();
    let mut writer = Writer::new(config(&directory)).unwrap();
    for header in events {
        let EventHeader { run_number, lvl1_id, bcid, trigger_type, .. } = *header;
        let rod = RodHeader { run_number, lvl1_id, bcid, trigger_type, ..Default::default() };
        let params = RobParams { rod, adler32: false, ..Default::default() };
        let mut rob = vec![0; params.rob_bytes(4)];
        write_rob_fragment(&mut rob, &params, 4);
        let mut head = Vec::new();
        let trailer = event_envelope(header, [rob.as_slice()], adler32, &mut head);
        writer.write_event(&[&head, &rob, trailer.as_ref().map_or(&[], |sum| sum.as_slice())]).unwrap();
    }
    fs::read(&writer.finish().unwrap()[0].path).unwrap()
}

fn headers(ids: &[u64]) -> Vec<EventHeader> {
    let bcid = Bcid::new(3).unwrap();
    let header = |id: &u64| EventHeader {
        global_id: *id,
        lvl1_id: *id as u32,
        run_number: 7,
        bcid,
        trigger_type: 0x84,
        ..Default::default()
    };
    ids.iter().map(header).collect()
}

#[test]
fn what_no_checksum_covers_is_not_called_good() {
    let directory = Directory::new();
    for adler32 in [true, false] {
        let file = file_of(adler32, &headers(&[1, 2, 3]));
        let report = look(&directory.file("a.data", &file));
        let rod_bytes = 14 * 4;
        assert_eq!((report.is_good(), report.is_verified()), (true, adler32), "{report}");
        assert_eq!(report.unverified_events, if adler32 { 0 } else { 3 });
        assert_eq!(report.coverage.unverified_bytes, if adler32 { 0 } else { 3 * rod_bytes });
        // Of an event ROB and checksum are covered.
        assert_eq!(report.coverage.covered_bytes, if adler32 { 3 * (rod_bytes + 32 + 4) } else { 0 });
        let said = report.to_string();
        assert_eq!(said.contains(": good, "), adler32, "{said}");
        assert_eq!(said.contains("not verified: 168 bytes of data in 3 events"), !adler32, "{said}");
    }
}

#[test]
fn what_is_there_twice_is_compared() {
    let directory = Directory::new();
    // Words of the event header, of the ROD, and what is said of a change of either.
    let event = [(12, "run number"), (14, "level-1 id"), (15, "bunch crossing"), (16, "trigger type")];
    let rod = [(4, "run number"), (5, "level-1 id"), (6, "bunch crossing"), (7, "trigger type")];
    let good = file_of(false, &headers(&[1, 2, 3]));
    let block = file_events(&good).unwrap().nth(2).unwrap().unwrap().offset as usize;
    let rod_at = block + Event::parse(&good[block..good.len() - 40]).unwrap().fragment().payload_range().start + 32;
    for (at, field) in
        event.map(|(at, field)| (block + at * 4, field)).iter().chain(&rod.map(|(at, field)| (rod_at + at * 4, field)))
    {
        let mut file = good.clone();
        file[*at] ^= 0x40;
        let report = look(&directory.file("a.data", &file));
        assert!(
            report
                .problems
                .iter()
                .any(|problem| matches!(problem.kind, ProblemKind::Mismatch { field: found, .. } if found == *field)),
            "{field}: {report}"
        );
    }
    // The event id, which is the level-1 id in this file.
    let mut file = good.clone();
    file[block + 9 * 4] ^= 0x40;
    let report = look(&directory.file("a.data", &file));
    assert!(
        matches!(report.problems[..], [Problem { kind: ProblemKind::EventId { event: 0x43, lvl1_id: 3 }, .. }]),
        "{report}"
    );
    // The run number of the file.
    let run = good.windows(4).position(|word| word == 0x1234_bbbb_u32.to_le_bytes()).unwrap() + 8;
    let mut file = good.clone();
    file[run] ^= 0x40;
    let report = look(&directory.file("a.data", &file));
    assert_eq!(report.problems.len(), 3, "{report}");
    let expected = ProblemKind::Mismatch {
        part: Part::FullEvent,
        field: "run number",
        found: 7,
        other: Part::RunParameters,
        expected: 0x47,
    };
    assert!(report.problems.iter().all(|problem| problem.kind == expected), "{report}");
}

#[test]
fn an_event_that_is_there_twice_is_reported() {
    let directory = Directory::new();
    let report = look(&directory.file("a.data", &file_of(true, &headers(&[5, 6, 5, 7]))));
    assert!(
        matches!(report.problems[..], [Problem { kind: ProblemKind::DuplicateEvent { event: 5 }, .. }]),
        "{report}"
    );

    let limits = CheckLimits::default();
    let [first, second] = [&[1, 2, 3, 8, 9][..], &[4, 3, 8, 7]].map(|ids| file_of(true, &headers(ids)));
    let (first, second) = (directory.file("first.data", &first), directory.file("second.data", &second));
    let mut checks = Checks::default();
    assert!(checks.check(&first, &limits).unwrap().is_good());
    assert!(checks.check(&first, &limits).unwrap().is_good(), "the same file is not another one");
    let report = checks.check(&second, &limits).unwrap();
    assert_eq!(report.duplicates, [Duplicates { path: first.clone(), events: 2, first_event: 3 }]);
    assert!(!report.is_good() && report.to_string().contains("2 events are in "), "{report}");

    let third = directory.file("third.data", &file_of(true, &headers(&[1, 2, 4, 7, 9])));
    let duplicates = checks.check(&third, &limits).unwrap().duplicates;
    let of = |path: &std::path::Path, events, first_event| Duplicates { path: path.to_owned(), events, first_event };
    assert_eq!(duplicates, [of(&first, 3, 1), of(&second, 2, 4)]);

    // An event may be in several streams.
    let mut express = fs::read(&second).unwrap();
    let at = express.windows(4).position(|text| text == b"Main").unwrap();
    let at = express[at + 4..].windows(4).position(|text| text == b"Main").map(|next| at + 4 + next).unwrap_or(at);
    express[at..at + 4].copy_from_slice(b"Main".map(|letter| letter ^ 1).as_slice());
    let mut checks = Checks::default();
    checks.check(&first, &limits).unwrap();
    assert!(checks.check(&directory.file("express.data", &express), &limits).unwrap().is_good());
}
