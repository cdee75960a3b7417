//! Input that is no valid file: a clear error, never a panic, hang or huge allocation.

mod common;

use std::fs;

use common::{Directory, TestEvent, config};
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
