//! Files that other programs wrote: good ones check, bad ones are reported where they are bad.

use std::fs;
use std::path::Path;

use crate::common::split_and_join;
use eformat::*;

fn vector(shared: &Path, name: &str) -> Vec<u8> {
    fs::read(shared.join(name)).unwrap()
}

fn check(file: &[u8]) -> Vec<Problem> {
    check_file(file, CheckOptions::default())
}

#[test]
fn good_vectors_check() {
    let Some(shared) = testkit::shared("good_vectors_check", "format/vectors") else {
        return;
    };
    let names =
        ["v5_sfo1", "v5_sfo2", "v6_plain", "v6_adler", "v6_zlib", "v6_zlib_adler"].map(|name| format!("{name}.data"));
    for name in names {
        let file = vector(&shared, &name);
        assert_eq!(check(&file), [], "{name}");
        let events = file_events(&file).unwrap();
        assert_eq!(events.header().emit(), file[..events.header().emit().len()], "{name}");
        assert!(events.count() > 1, "{name}");
    }
}

#[test]
fn first_events_hold_what_their_readme_says() {
    let Some(shared) = testkit::shared("first_events_hold_what_their_readme_says", "format/vectors") else {
        return;
    };
    let file = vector(&shared, "v5_sfo1.data");
    let first = file_events(&file).unwrap().next().unwrap().unwrap();
    let event = Event::parse(first.block).unwrap();
    assert_eq!(
        (first.block.len(), event.lvl1_id(), event.run_number(), event.lumi_block()),
        (632, 0x0100_0001, 123_456, 17)
    );
    assert_eq!((event.format(), event.robs(event.fragment().payload()).count()), (EventFormat::V4, 4));

    let file = vector(&shared, "v5_sfo2.data");
    let mut events = file_events(&file).unwrap();
    assert!(events.header().blocks_are_compressed());
    let first = events.next().unwrap().unwrap();
    assert_eq!(first.separator.block_bytes, 288);
    let unpacked = zlib_unpack(Part::DataBlock, first.block, 1 << 20).unwrap();
    assert_eq!(Event::parse(&unpacked).unwrap().fragment().checksum_type(), ChecksumType::Adler32);

    for name in ["v6_plain.data", "v6_zlib_adler.data"] {
        let file = vector(&shared, name);
        let first = file_events(&file).unwrap().next().unwrap().unwrap();
        let event = Event::parse(first.block).unwrap();
        let payload = event.unpacked_payload(1 << 20).unwrap();
        assert_eq!(
            event.robs(&payload).map(|rob| rob.unwrap().source_id().0).collect::<Vec<_>>(),
            [0x21_0001, 0x42_0002, 0x77_0001]
        );
        assert_eq!(stream_tag::decode(event.stream_tags()), [stream_tag::Entry::Foreign(b"TAGBYTES".to_vec())]);
        assert_eq!(event.bcid(), 0x65);
    }
}

#[test]
fn bad_vectors_are_reported_where_they_are_bad() {
    let Some(shared) = testkit::shared("bad_vectors_are_reported_where_they_are_bad", "format/vectors") else {
        return;
    };
    let good = vector(&shared, "v6_adler.data");

    let bad = vector(&shared, "bad_robmarker.data");
    let at = (0..good.len()).find(|at| good[*at] != bad[*at]).unwrap() as u64;
    let problems = check(&bad);
    let marker = ProblemKind::Marker { part: Part::Rob, found: 0xdd12_34dc, expected: 0xdd12_34dd };
    assert!(problems.contains(&Problem { offset: at, unpacked_offset: None, kind: marker }), "{problems:?}");
    assert!(matches!(problems[0].kind, ProblemKind::Checksum { part: Part::FullEvent, .. }));
    assert_eq!(problems.len(), 2);

    let bad = vector(&shared, "bad_robbit.data");
    let at = (0..good.len()).find(|at| good[*at] != bad[*at]).unwrap();
    let first =
        file_events(&bad).unwrap().map(Result::unwrap).find(|event| event.offset as usize + event.block.len() > at);
    let first = first.unwrap();
    let event = Event::parse(first.block).unwrap();
    let start = first.offset + event.fragment().payload_range().start as u64;
    let rob = event.robs(event.fragment().payload()).map(Result::unwrap);
    let rob = rob.take_while(|rob| start as usize + rob.offset() <= at).last().unwrap();
    let rob_sum = start + (rob.offset() + rob.fragment().payload_range().end) as u64;
    let event_sum = first.offset + first.block.len() as u64 - 4;
    let problems = check(&bad);
    let sums = problems.iter().map(|problem| match problem.kind {
        ProblemKind::Checksum { part, .. } => (part, problem.offset),
        other => panic!("{other}"),
    });
    assert_eq!(sums.collect::<Vec<_>>(), [(Part::FullEvent, event_sum), (Part::Rob, rob_sum)]);

    let bad = vector(&shared, "bad_trunc.data");
    let last = file_events(&good).unwrap().map(Result::unwrap).last().unwrap();
    let have_bytes = bad.len() as u64 - last.offset;
    let kind = ProblemKind::Truncated { part: Part::DataBlock, needed_bytes: last.block.len() as u64, have_bytes };
    assert_eq!(check(&bad), [Problem { offset: last.offset, unpacked_offset: None, kind }]);
}

#[test]
fn the_recorded_besiii_file_checks_and_survives_split_and_join() {
    let Some(shared) = testkit::shared(
        "the_recorded_besiii_file_checks_and_survives_split_and_join",
        "rawdata/bes3_run0091668_SFO-1_10events.raw",
    ) else {
        return;
    };
    let file = fs::read(shared).unwrap();
    assert_eq!(check(&file), []);
    let mut events = file_events(&file).unwrap();
    let header = events.header().clone();
    assert_eq!(header.start.version, FileVersion::V2);
    assert_eq!((header.names.application.as_str(), header.names.core.as_str()), ("SFO-1", "All"));
    assert_eq!(header.start.opened.date, Date::new(8, 4, 2026).unwrap());
    let mut out = header.emit();
    let (mut rods, mut sources) = (0, std::collections::BTreeSet::new());
    for event in events.by_ref() {
        let event = event.unwrap();
        let split = replay::split(event.block).unwrap();
        rods += split.children.len();
        sources.extend(split.children.iter().map(|child| child.source_id));
        let joined = split_and_join(event.block);
        assert_eq!(joined, event.block);
        out.extend(event.separator.emit());
        out.extend(joined);
    }
    events.end().unwrap().emit(&mut out);
    assert_eq!(out, file);
    assert_eq!((rods, sources.len()), (420, 42));
}

#[test]
fn events_of_all_vectors_survive_split_and_join() {
    let Some(shared) = testkit::shared("events_of_all_vectors_survive_split_and_join", "format/vectors") else {
        return;
    };
    for name in ["v5_sfo1.data", "v5_sfo2.data", "v6_plain.data", "v6_adler.data", "v6_zlib.data"] {
        let file = vector(&shared, name);
        let events = file_events(&file).unwrap();
        let compressed = events.header().blocks_are_compressed();
        for event in events {
            let mut event = event.unwrap().block.to_vec();
            if compressed {
                event = zlib_unpack(Part::DataBlock, &event, 1 << 20).unwrap();
            }
            assert_eq!(split_and_join(&event), event, "{name}");
        }
    }
}
