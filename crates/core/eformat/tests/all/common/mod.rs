//! Helpers of the integration tests: small files of all formats.
#![allow(dead_code, unreachable_pub)]

use eformat::*;

pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A stamp that does not depend on the clock.
pub fn stamp() -> Stamp {
    Stamp { date: Date::new(8, 4, 2026).unwrap(), time: Time::new(12, 3, 40).unwrap() }
}

pub fn rob(source: u32, lvl1_id: u32, words: u32, adler32: bool) -> Vec<u8> {
    let rod = RodHeader {
        source_id: SourceId(source),
        run_number: 77,
        lvl1_id,
        bcid: Bcid::new(0x123).unwrap(),
        trigger_type: 0x84,
        ..Default::default()
    };
    let params = RobParams { rod, adler32, ..Default::default() };
    let data = (words * 4) as usize;
    let mut rob = vec![0; params.rob_bytes(data)];
    for (index, byte) in rob[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + data].iter_mut().enumerate() {
        *byte = (index as u32 * 7 + lvl1_id) as u8;
    }
    write_rob_fragment(&mut rob, &params, data);
    rob
}

pub fn header5(global_id: u64) -> EventHeader {
    EventHeader {
        source_id: SourceId::new(SubDetector::TDAQ_SFI, 1),
        status: vec![0],
        seconds: 1_775_000_000,
        nanoseconds: 5,
        global_id,
        run_number: 77,
        lumi_block: 3,
        lvl1_id: global_id as u32,
        bcid: Bcid::new(0x123).unwrap(),
        trigger_type: 0x84,
        lvl1_info: (0..24).collect(),
        hlt_info: vec![9, 8],
        stream_tags: stream_tag::encode(&[stream_tag::Entry::Tag(
            stream_tag::StreamTag::new("physics", "Main", true).unwrap(),
        )]),
        ..Default::default()
    }
}

/// Two ROBs and a lost one; the first ROB stands twice, as occurrence 0 and 1.
pub fn robs(id: u32, adler32: bool) -> Vec<u8> {
    let lost = lost_rob(&RobParams {
        rod: RodHeader { source_id: SourceId(0x77_0001), ..Default::default() },
        ..Default::default()
    });
    [rob(0x21_0001, id, 3, adler32), rob(0x42_0002, id, id % 4, adler32), lost.to_vec(), rob(0x21_0001, id, 1, adler32)]
        .concat()
}

pub fn event5(id: u32, adler32: bool) -> Vec<u8> {
    let payload = robs(id, adler32);
    let mut out = Vec::new();
    let trailer = event_envelope(&header5(u64::from(id) | 1 << 40), [payload.as_slice()], adler32, &mut out);
    out.extend_from_slice(&payload);
    out.extend(trailer.into_iter().flatten());
    out
}

pub fn event5_zlib(id: u32) -> Vec<u8> {
    let payload = robs(id, true);
    compressed_event(&header5(u64::from(id)), [payload.as_slice()], ZLIB_LEVEL, ChecksumType::Adler32)
}

/// An event of format 4.0 with two ROBs, no checksum.
pub fn event4(id: u32) -> Vec<u8> {
    let mut payload = robs(id, false);
    let starts: Vec<usize> = Robs::new(EventFormat::V5, &payload).map(|rob| rob.unwrap().offset()).collect();
    for start in starts {
        payload[start + 12..start + 16].copy_from_slice(&0x0400_0000u32.to_le_bytes());
    }
    let specific = [1_300_000_000, 7, id, 0, 77, 3, id, 0x123, 0x84, 2, 5, 6, 0, 1, 4, 1, 0x0041_4141];
    let header_words = 7 + 1 + specific.len() as u32;
    let mut words = vec![0xaa12_34aa, header_words + payload.len() as u32 / 4, header_words, 0x0400_0000];
    words.extend([0x79_0001, 1, 0, 0]);
    words.extend(specific);
    [bytes(&words), payload].concat()
}

/// An event of format 3.0: two sub-detectors, the first with two ROSs; one RODs carries another level-1 id.
pub fn event3(id: u32) -> Vec<u8> {
    let rod = |source: u32, id: u32, data: &[u32]| {
        let mut words = vec![0xee12_34ee, 9, 0x0300_0000, source, 0, id, 0, 0, 0];
        words.extend_from_slice(data);
        words.extend([0, 1, data.len() as u32, 1]);
        words
    };
    let generic = |marker: u32, source: u32, specific: &[u32], payload: &[u32]| {
        let header = 8 + specific.len() as u32;
        let mut words = vec![marker, header + payload.len() as u32, header, 0x0300_0000, source, 1, 0];
        words.push(specific.len() as u32);
        words.extend_from_slice(specific);
        words.extend_from_slice(payload);
        words
    };
    let rob = |source: u32, rod: &[u32]| generic(0xdd12_34dd, source, &[], rod);
    let ros = |source: u32, payload: &[u32]| generic(0xcc12_34cc, source, &[77, id, 0], payload);
    let two = [rob(0xa1_0000, &rod(0xa1_0000, id, &[1, 2])), rob(0xa1_0001, &rod(0xa1_0001, id, &[]))].concat();
    let one = rob(0xa1_0002, &rod(0xa1_0002, id, &[3]));
    let first = generic(0xbb12_34bb, 0xa1_500b, &[0], &[ros(0xa1_0020, &two), ros(0xa1_0033, &one)].concat());
    let second = ros(0x7c_0000, &rob(0x7c_0000, &rod(0x7c_0000, 0, &[4, 5, 6])));
    let second = generic(0xbb12_34bb, 0x7c_0000, &[], &second);
    let specific = [1_775_000_000, id, 77, id, 0, 0, 1, 2, 3, 4];
    bytes(&generic(0xaa12_34aa, 0x79_500b, &specific, &[first, second].concat()))
}

/// A complete file around `events`.
pub fn file(version: FileVersion, compressed: bool, events: &[Vec<u8>]) -> Vec<u8> {
    let guid = "10605EAF-52B1-DB11-94A4-000347D7BFE1".parse().unwrap();
    let mut metadata = Metadata::new(guid, ["made=here"], "physics", "Main", "data_test", 3);
    if compressed {
        metadata.0.push("Compression=zlib".into());
    }
    let header = FileHeader {
        start: FileStart { version, file_number: 1, opened: stamp(), blocks_max: 0, megabytes_max: 2000 },
        names: FileNames {
            application: "SFO-1".into(),
            core: "data_test.00000077.physics_Main.daq.RAW._lb0003._SFO-1".into(),
        },
        metadata: (version != FileVersion::V2).then_some(metadata),
        run: RunParameters {
            run_number: 77,
            recording_enabled: 1,
            detector_mask: DetectorMask(0x1ff),
            ..Default::default()
        },
    };
    let mut out = header.emit();
    let mut event_bytes = 0;
    for (index, event) in events.iter().enumerate() {
        let block = if compressed { zlib_pack([event.as_slice()], 1) } else { event.clone() };
        event_bytes += block.len() as u64;
        out.extend(DataSeparator { block_number: index as u32 + 1, block_bytes: block.len() as u32 }.emit());
        out.extend(block);
    }
    let (count, megabytes) = (events.len() as u32, FileEnd::megabytes(event_bytes));
    let end = FileEnd {
        closed: stamp(),
        events: count,
        megabytes,
        sequence_events: count,
        sequence_megabytes: megabytes,
        status: 1,
    };
    end.emit(&mut out);
    out
}

/// One small file of each format, with its name.
pub fn files() -> Vec<(&'static str, Vec<u8>)> {
    let ids = [0x0100_0001, 0x0100_0002, 0x0200_0000];
    let all = |make: &dyn Fn(u32) -> Vec<u8>| ids.iter().map(|id| make(*id)).collect::<Vec<_>>();
    vec![
        ("v6_event5_plain", file(FileVersion::V6, false, &all(&|id| event5(id, false)))),
        ("v6_event5_adler", file(FileVersion::V6, false, &all(&|id| event5(id, true)))),
        ("v6_event5_zlib", file(FileVersion::V6, false, &all(&event5_zlib))),
        ("v6_empty", file(FileVersion::V6, false, &[])),
        ("v5_event4_plain", file(FileVersion::V5, false, &all(&event4))),
        ("v5_event4_zlib", file(FileVersion::V5, true, &all(&event4))),
        ("v2_event3", file(FileVersion::V2, false, &all(&event3))),
    ]
}

/// Splits and joins an event.
pub fn split_and_join(event: &[u8]) -> Vec<u8> {
    let split = replay::split(event).unwrap();
    let template = replay::Template::parse(&split.template).unwrap();
    let lookup = |source_id, occurrence| {
        let mut children = split.children.iter();
        let child = children.find(|child| (child.source_id, child.occurrence) == (source_id, occurrence))?;
        Some((child.range.clone(), child.range.len()))
    };
    let mut out = Vec::new();
    for segment in template.join(lookup).unwrap() {
        match segment {
            replay::Segment::Literal(range) => out.extend_from_slice(&split.template[range]),
            replay::Segment::Rod(range) => out.extend_from_slice(&event[range]),
        }
    }
    out
}
