//! Damaged and random input: always an answer, never a panic.

use crate::common::{event3, event4, event5, files, split_and_join};
use eformat::*;
use proptest::prelude::*;

#[test]
fn every_truncation_is_reported_inside_the_file() {
    for (name, file) in files() {
        for length in 0..file.len() {
            let problems = check_file(&file[..length], CheckOptions::default());
            assert!(!problems.is_empty(), "{name} cut to {length}");
            assert!(problems.iter().all(|problem| problem.offset <= length as u64), "{name}: {problems:?}");
        }
    }
}

#[test]
fn every_bit_flip_of_checksummed_data_is_reported() {
    let event = event5(1, true);
    let header_bytes = Event::parse(&event).unwrap().fragment().payload_range().start;
    for bit in 0..event.len() * 8 {
        let mut broken = event.clone();
        broken[bit / 8] ^= 1 << (bit % 8);
        let mut problems = Vec::new();
        check_event(&broken, &CheckOptions::default(), &mut problems);
        assert!(bit / 8 < header_bytes || !problems.is_empty(), "bit {bit}");
        fuzzing::event(&broken);
    }
}

#[test]
fn every_bit_flip_of_each_file_gets_an_answer() {
    for (_, mut file) in files() {
        for bit in 0..file.len() * 8 {
            file[bit / 8] ^= 1 << (bit % 8);
            fuzzing::file(&file);
            file[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn every_truncation_and_bit_flip_of_events_and_templates_gets_an_answer() {
    for event in [event3(1), event4(2), event5(3, false)] {
        assert_eq!(split_and_join(&event), event);
        let template = replay::split(&event).unwrap().template;
        for length in 0..event.len() {
            fuzzing::event(&event[..length]);
            assert!(Event::parse(&event[..length]).is_err());
        }
        for length in 0..template.len() {
            assert!(replay::Template::parse(&template[..length]).is_err());
        }
        for bit in 0..event.len() * 8 {
            let mut broken = event.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            fuzzing::event(&broken);
        }
        for bit in 0..template.len() * 8 {
            let mut broken = template.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            fuzzing::template(&broken);
        }
    }
}

#[test]
fn damage_is_named() {
    let good = event5(1, true);
    let start = Event::parse(&good).unwrap().fragment().payload_range().start;
    let damaged = |at: usize, value: u32| {
        let mut event = good.clone();
        event[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let mut problems = Vec::new();
        check_event(&event, &CheckOptions { adler32: false, ..Default::default() }, &mut problems);
        assert_eq!(problems.len(), 1, "{problems:?}");
        (problems[0].offset as usize, problems[0].kind)
    };
    let rod = start + 32;
    let header = |part, found_words, expected_words| ProblemKind::HeaderSize { part, found_words, expected_words };
    let header_words = start as u64 / 4;
    let cases = [
        (0, 0xaa34_12aa, 0, ProblemKind::Marker { part: Part::FullEvent, found: 0xaa34_12aa, expected: 0xaa12_34aa }),
        (8, 50, 8, header(Part::FullEvent, 50, header_words)),
        (
            12,
            0x0600_0000,
            12,
            ProblemKind::Version { part: Part::FullEvent, found: 0x0600_0000, expected: 0x0500_0000 },
        ),
        (28, 3, 28, ProblemKind::ChecksumType { part: Part::FullEvent, found: 3 }),
        (start, 0xdd12_34dc, start, ProblemKind::Marker { part: Part::Rob, found: 0xdd12_34dc, expected: 0xdd12_34dd }),
        (start + 4, 3, start + 4, ProblemKind::FragmentSize { part: Part::Rob, found_words: 3, expected_words: 7 }),
        (
            start + 12,
            0x0400_0000,
            start + 12,
            ProblemKind::Version { part: Part::Rob, found: 0x0400_0000, expected: 0x0500_0000 },
        ),
        (rod, 0xee12_34ef, rod, ProblemKind::Marker { part: Part::Rod, found: 0xee12_34ef, expected: 0xee12_34ee }),
        (rod + 4, 10, rod + 4, header(Part::Rod, 10, 9)),
        (
            rod + 8,
            0x0400_0000,
            rod + 8,
            ProblemKind::Version { part: Part::Rod, found: 0x0400_0000, expected: 0x0301_0000 },
        ),
        (rod + 36 + 12 + 8, 4, rod + 36 + 12 + 4, ProblemKind::RodSize { found_words: 16, expected_words: 17 }),
        (rod + 36 + 12 + 12, 2, rod + 36 + 12 + 12, ProblemKind::StatusPosition { found: 2 }),
    ];
    for (at, value, offset, kind) in cases {
        assert_eq!(damaged(at, value), (offset, kind));
    }
}

#[test]
fn huge_claims_cost_nothing() {
    let mut file = files()[0].1.clone();
    let block = file_events(&file).unwrap().next().unwrap().unwrap().offset as usize;
    file[block - 4..block].copy_from_slice(&u32::MAX.to_le_bytes());
    let problems = check_file(&file, CheckOptions::default());
    assert!(
        matches!(problems[..], [Problem { kind: ProblemKind::Truncated { part: Part::DataBlock, .. }, .. }]),
        "{problems:?}"
    );

    let mut file = files()[0].1.clone();
    file[36..40].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    let problems = check_file(&file, CheckOptions::default());
    assert!(
        matches!(problems[..], [Problem { kind: ProblemKind::Oversize { part: Part::FileNames, .. }, .. }]),
        "{problems:?}"
    );

    let mut event = crate::common::event5_zlib(1);
    let unpacked = (8 + 11) * 4;
    event[unpacked..unpacked + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut problems = Vec::new();
    check_event(&event, &CheckOptions::default(), &mut problems);
    assert!(matches!(problems[0].kind, ProblemKind::Oversize { .. }), "{problems:?}");
}

proptest! {
    #[test]
    fn random_bytes_get_an_answer(data in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzzing::event(&data);
        fuzzing::file(&data);
        fuzzing::stream_tags(&data);
        fuzzing::template(&data);
        fuzzing::zlib(&data);
    }

    #[test]
    fn random_words_behind_a_marker_get_an_answer(
        version in prop_oneof![Just(0x0300_0000u32), Just(0x0400_0000), Just(0x0500_0000)],
        rest in proptest::collection::vec(prop_oneof![0u32..40, any::<u32>()], 0..80),
    ) {
        let total = rest.len() as u32 + 4;
        let mut words = vec![0xaa12_34aa, total, total.min(30), version];
        words.extend(rest);
        fuzzing::event(&crate::common::bytes(&words));
    }
}
