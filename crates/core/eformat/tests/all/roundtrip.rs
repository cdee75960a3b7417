//! `emit(parse(x)) == x` and `parse(emit(v)) == v`.

use crate::common::bytes;
use eformat::stream_tag::{Entry, StreamTag, decode, encode};
use eformat::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn words_below(length: usize) -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u32>(), 0..length)
}

prop_compose! {
    fn event_header()(
        ids in any::<(u16, u32, u32, u32, u64)>(),
        run in any::<(u32, u32, u16, u32)>(),
        bcid in 0..=Bcid::MAX,
        trigger_type in any::<u8>(),
        blocks in (words_below(4), words_below(20), words_below(3), words_below(20), words_below(12)),
    ) -> EventHeader {
        EventHeader {
            minor_version: ids.0,
            source_id: SourceId(ids.1),
            seconds: ids.2,
            nanoseconds: ids.3,
            global_id: ids.4,
            run_type: RunType(run.0),
            run_number: run.1,
            lumi_block: run.2,
            lvl1_id: run.3,
            bcid: Bcid::new(bcid).unwrap(),
            trigger_type,
            status: blocks.0,
            lvl1_info: blocks.1,
            lvl2_info: blocks.2,
            hlt_info: blocks.3,
            stream_tags: blocks.4,
        }
    }
}

prop_compose! {
    fn rod_header()(words in any::<(u16, u32, u32, u32, u8, u32)>(), bcid in 0..=Bcid::MAX) -> RodHeader {
        RodHeader {
            minor_version: words.0,
            source_id: SourceId(words.1),
            run_number: words.2,
            lvl1_id: words.3,
            bcid: Bcid::new(bcid).unwrap(),
            trigger_type: words.4,
            event_type: words.5,
        }
    }
}

prop_compose! {
    fn stamps()(day in 1..=28u32, month in 1..=12u32, year in 1..=9999u32, hour in 0..24u32, rest in 0..60u32) -> Stamp {
        Stamp { date: Date::new(day, month, year).unwrap(), time: Time::new(hour, rest, 59 - rest).unwrap() }
    }
}

fn version() -> impl Strategy<Value = FileVersion> {
    prop_oneof![Just(FileVersion::V2), Just(FileVersion::V5), Just(FileVersion::V6)]
}

fn done<T>(parsed: Parsed<T>) -> (T, usize) {
    match parsed {
        Parsed::Done(value, length) => (value, length),
        Parsed::Need(needed) => panic!("needs {needed} bytes"),
    }
}

/// Parses with every shorter input, which must ask for more, and at last the whole.
fn growing<T>(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<Parsed<T>, Problem>) -> T {
    for length in 0..bytes.len() {
        match parse(&bytes[..length]) {
            Ok(Parsed::Need(needed)) => assert!(needed > length && needed <= bytes.len()),
            _ => panic!("{length} of {} bytes were enough", bytes.len()),
        }
    }
    let (value, length) = done(parse(bytes).unwrap());
    assert_eq!(length, bytes.len());
    value
}

proptest! {
    #[test]
    fn event_headers(header in event_header(), adler32 in any::<bool>(), sizes in vec(0..6u32, 0..5), level in 0..10u32) {
        // What the fragments repeat is theirs.
        let of_robs = crate::common::header5(1);
        let EventHeader { run_number, lvl1_id, bcid, trigger_type, .. } = of_robs;
        let header = EventHeader { run_number, lvl1_id, bcid, trigger_type, ..header };
        let robs: Vec<Vec<u8>> = sizes.iter().map(|size| crate::common::rob(*size, 1, *size, adler32)).collect();
        let pieces = || robs.iter().map(Vec::as_slice);
        let mut event = Vec::new();
        let trailer = event_envelope(&header, pieces(), adler32, &mut event);
        event.extend(pieces().flatten().chain(trailer.iter().flatten()));
        let checksum = if adler32 { ChecksumType::Adler32 } else { ChecksumType::None };
        for event in [event, compressed_event(&header, pieces(), level, checksum)] {
            let view = Event::parse(&event).unwrap();
            prop_assert_eq!(&EventHeader::of(&view).unwrap(), &header);
            let mut emitted = Vec::new();
            header.emit(&EventFraming::of(&view), &mut emitted);
            prop_assert_eq!(&emitted, &event[..emitted.len()]);
            prop_assert_eq!(view.unpacked_payload(1 << 20).unwrap().into_owned(), robs.concat());
            let mut problems = Vec::new();
            check_event(&event, &CheckOptions::default(), &mut problems);
            prop_assert_eq!(problems, vec![]);
            prop_assert_eq!(crate::common::split_and_join(&event), event.clone());
            prop_assert_eq!(event_size_bytes(&event), Some(event.len() as u64));
        }
    }

    #[test]
    fn robs(header in rod_header(), status in words_below(4), rod_status in words_below(3), data in words_below(9), first in any::<bool>(), minor_version in any::<u16>()) {
        let mut rod = header.emit().to_vec();
        let blocks = if first { [&rod_status, &data] } else { [&data, &rod_status] };
        blocks.iter().for_each(|block| rod.extend(bytes(block)));
        rod.extend(bytes(&[rod_status.len() as u32, data.len() as u32, u32::from(!first)]));
        for checksum in [ChecksumType::None, ChecksumType::Crc16, ChecksumType::Adler32] {
            let rob_header = RobHeader { minor_version, source_id: header.source_id, status: status.clone(), checksum };
            let rob = rob_header.emit(&rod);
            let view = Rob::parse(EventFormat::V5, &rob).unwrap();
            prop_assert_eq!(view.fragment().verify_checksum(), Ok(()));
            prop_assert_eq!(view.header(), rob_header);
            let view = view.rod().unwrap();
            prop_assert_eq!(view.header().unwrap(), header);
            prop_assert_eq!(view.bytes(), &rod);
            prop_assert_eq!(view.data(), bytes(&data));
            prop_assert_eq!(view.status_words().collect::<Vec<_>>(), rod_status.clone());
            prop_assert_eq!(view.size_problem(), None);
            let summary = check_rob(&rob).unwrap();
            prop_assert_eq!(&rob[summary.data], bytes(&data));
            prop_assert_eq!(summary.status.0, status.first().copied().unwrap_or(0));
        }
    }

    #[test]
    fn written_robs(header in rod_header(), data in words_below(30), adler32 in any::<bool>(), words in any::<(u32, u32)>()) {
        let params = RobParams { rod: header, status: StatusWord(words.0), rod_status: StatusWord(words.1), adler32 };
        let data = bytes(&data);
        let mut rob = vec![0xcc; params.rob_bytes(data.len())];
        rob[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + data.len()].copy_from_slice(&data);
        write_rob_fragment(&mut rob, &params, data.len());
        let summary = check_rob(&rob).unwrap();
        prop_assert_eq!(&rob[summary.data], &data);
        prop_assert_eq!((summary.lvl1_id, summary.status), (header.lvl1_id, params.status));
        prop_assert_eq!(summary.run_number, header.run_number & 0x7fff_ffff);
        let view = Rob::parse(EventFormat::V5, &rob).unwrap();
        prop_assert_eq!(view.fragment().verify_checksum(), Ok(()));
        prop_assert_eq!(view.rod().unwrap().status_words().collect::<Vec<_>>(), vec![words.1]);
        let lost = lost_rob(&params);
        prop_assert!(check_rob(&lost).unwrap().status.as_rob().contains(RobStatus::LOST));
    }

    #[test]
    fn records(words in any::<[u32; 6]>(), stamp in stamps(), version in version(), mask in any::<u128>(), texts in vec("[ -~]{0,9}", 2..6)) {
        let start = FileStart { version, file_number: words[0], opened: stamp, blocks_max: words[1], megabytes_max: words[2] };
        let mut out = Vec::new();
        start.emit(&mut out);
        prop_assert_eq!(growing(&out, FileStart::parse), start);

        let names = FileNames { application: texts[0].clone(), core: texts[1].clone() };
        let mut out = Vec::new();
        names.emit(&mut out);
        prop_assert_eq!(growing(&out, FileNames::parse), names);

        let metadata = Metadata(texts);
        let mut out = Vec::new();
        metadata.emit(&mut out);
        prop_assert_eq!(growing(&out, Metadata::parse), metadata);

        let kept = match version { FileVersion::V2 => mask & u128::from(u32::MAX), FileVersion::V5 => mask & u128::from(u64::MAX), FileVersion::V6 => mask };
        let run = RunParameters { run_number: words[0], events_max: words[1], recording_enabled: words[2], trigger_type: words[3], detector_mask: DetectorMask(kept), beam_type: words[4], beam_energy: words[5] };
        let mut out = Vec::new();
        run.emit(version, &mut out);
        prop_assert_eq!(growing(&out, |bytes| RunParameters::parse(version, bytes)), run);

        let separator = DataSeparator { block_number: words[0], block_bytes: words[1] };
        prop_assert_eq!(growing(&separator.emit(), DataSeparator::parse), separator);

        let end = FileEnd { closed: stamp, events: words[0], megabytes: words[1], sequence_events: words[2], sequence_megabytes: words[3], status: words[4] };
        let mut out = Vec::new();
        end.emit(&mut out);
        prop_assert_eq!(growing(&out, FileEnd::parse), end);
    }

    #[test]
    fn stream_tags(names in vec(("[a-z0-9-]{1,8}", "[A-Za-z0-9_-]{1,8}", any::<bool>(), vec(any::<u32>(), 0..3), vec(any::<u8>(), 0..3)), 0..4), foreign in vec(1u8..=255, 1..12)) {
        let mut entries = vec![Entry::Foreign(foreign)];
        for (stream_type, name, lumi, robs, detectors) in names {
            let mut tag = StreamTag::new(&stream_type, &name, lumi).unwrap();
            tag.robs = robs.into_iter().map(SourceId).collect();
            tag.sub_detectors = detectors.into_iter().map(SubDetector).collect();
            entries.push(Entry::Tag(tag));
        }
        prop_assert_eq!(decode(&bytes(&encode(&entries))), entries);
    }

    #[test]
    fn masks_guids_and_dates(mask in any::<u128>(), guid in any::<[u8; 16]>(), word in any::<u32>()) {
        prop_assert_eq!(DetectorMask(mask).to_string().parse(), Ok(DetectorMask(mask)));
        prop_assert_eq!(Guid::from_bytes(guid).to_string().parse(), Ok(Guid::from_bytes(guid)));
        if let Some(date) = Date::from_word(word) {
            prop_assert_eq!(date.to_word(), word);
        }
    }
}

#[test]
fn the_words_of_a_small_rob_are_these() {
    let rob = crate::common::rob(0x42_0002, 0x0100_0001, 1, true);
    let expected = [
        0xdd12_34dd,
        23,
        8,
        0x0500_0000,
        0x42_0002,
        1,
        0,
        2,
        0xee12_34ee,
        9,
        0x0301_0000,
        0x42_0002,
        77,
        0x0100_0001,
        0x123,
        0x84,
        0,
        0x160f_0801,
        0,
        1,
        1,
        1,
    ];
    assert_eq!(words(&rob).take(22).collect::<Vec<_>>(), expected);
    assert_eq!(words(&rob).last().unwrap(), adler32(&rob[32..88]));
}

#[test]
fn truncated_rods_are_data_only() {
    let rob = crate::common::rob(1, 1, 4, false);
    let mut cut = rob[..rob.len() - 8].to_vec();
    let words = (cut.len() as u32 / 4).to_le_bytes();
    cut[4..8].copy_from_slice(&words);
    let view = Rob::parse(EventFormat::V5, &cut).unwrap();
    let rod = view.rod().unwrap();
    assert!(matches!(rod.size_problem().unwrap().kind, ProblemKind::RodSize { .. }));
    assert_eq!((rod.status_words().len(), rod.data().len()), (0, cut.len() - 68));
    assert!(check_rob(&cut).is_err());
}
