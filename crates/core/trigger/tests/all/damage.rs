//! Data that are not what they should be: no panic, nothing read beyond, everything counted.

use std::cell::RefCell;
use std::sync::Arc;

use base::bulk::PageSlice;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use trigger::{BadPayload, DataType, Filter, Next, Records, Roi, Steering};

use crate::common::regroup::payload;
use crate::common::sample::Event;
use crate::common::{detector, level2, physics, reference_menu, sample};

#[test]
fn a_first_word_that_does_not_fit_is_refused_and_says_why() {
    let parse = |bytes: &[u8]| Records::parse(bytes, DataType::Tracks).err();
    let word = |word: u32| word.to_le_bytes();
    assert_eq!(parse(&[]), Some(BadPayload::Length { bytes: 0 }));
    assert_eq!(parse(&[1, 2, 3]), Some(BadPayload::Length { bytes: 3 }));
    assert_eq!(parse(&[word(0xd103_0000).as_slice(), &[0]].concat()), Some(BadPayload::Length { bytes: 5 }));
    assert_eq!(parse(&word(0xd003_0000)), Some(BadPayload::Marker { word: 0xd003_0000 }));
    assert_eq!(parse(&word(0xd104_0000)), Some(BadPayload::DataType { found: 4, expected: 3 }));
    let short = [word(0xd103_0002), word(1), word(2), word(3)].concat();
    assert_eq!(parse(&short), Some(BadPayload::Truncated { records: 2, needed: 5, found: 4 }));
    assert_eq!(parse(&word(0xd103_0000)), None);
}

#[test]
fn padding_behind_the_records_is_not_read() {
    let mut padded = payload(DataType::EmCells, &[0x1234_0007]).as_bytes().to_vec();
    padded.extend_from_slice(&[0xff; 64]);
    let records = Records::parse(&padded, DataType::EmCells).unwrap();
    assert_eq!(records.cells().collect::<Vec<_>>(), [(0x1234, 7)]);
}

#[test]
fn padded_fragments_get_the_same_decision_and_their_bytes_are_counted() {
    let test = "padded_fragments_get_the_same_decision_and_their_bytes_are_counted";
    let Some((mut steering, mut filter, events)) = setting(test, "zee_mu0") else { return };
    for event in &events[..200] {
        let expected = level2(&mut steering, event);
        let expected_filter = filter.decide(event.number, &event.slices());
        let mut padded = event.clone();
        for (_, payload) in &mut padded.fragments {
            *payload = [payload.as_bytes(), &[0xa5; 400]].concat().into();
        }
        let found = level2(&mut steering, &padded);
        assert_eq!(found.requested_payload_bytes, expected.requested_payload_bytes + 400 * expected.requested_robs);
        assert_eq!((found.passed, found.bad_payloads), (expected.passed, 0));
        assert_eq!(filter.decide(event.number, &padded.slices()), expected_filter);
    }
}

#[test]
fn the_order_of_tracks_and_stubs_does_not_matter() {
    let Some((mut steering, _, mut events)) = setting("the_order_of_tracks_and_stubs_does_not_matter", "zee_mu20")
    else {
        return;
    };
    events.extend(setting("", "zmumu_mu20").unwrap().2);
    for event in &events {
        let expected = level2(&mut steering, event);
        let features: Vec<_> = steering.features().collect();
        let mut shuffled = event.clone();
        for (source_id, payload) in &mut shuffled.fragments {
            if matches!(*source_id >> 16, 0x21 | 0x61) {
                let (first, records) = payload.as_bytes().split_at(4);
                let reversed: Vec<u8> = records.rchunks(8).flatten().copied().collect();
                *payload = [first, &reversed].concat().into();
            }
        }
        assert_eq!(level2(&mut steering, &shuffled), expected, "event {}", event.number);
        assert_eq!(steering.features().collect::<Vec<_>>(), features, "event {}", event.number);
    }
}

#[test]
fn missing_fragments_are_counted_and_hold_nothing_up() {
    let Some((mut steering, mut filter, events)) =
        setting("missing_fragments_are_counted_and_hold_nothing_up", "zee_mu0")
    else {
        return;
    };
    for event in &events {
        steering.begin(event.number, event.items, &event.rois);
        let mut asked = 0;
        let mut next = steering.step(&mut std::iter::empty());
        while let Next::Ask(robs) = next {
            asked += robs.len() as u32;
            next = steering.step(&mut std::iter::empty());
        }
        let Next::Decided(decision) = next else { unreachable!() };
        assert_eq!((decision.missing_robs, decision.requested_payload_bytes), (asked, 0));
        let of_level1 = level1_word(event, &[7, 8]);
        assert_eq!(decision.passed, of_level1, "only what takes level 1's word");
        let filtered = filter.decide(event.number, &[]);
        assert_eq!((filtered.passed, filtered.missing_fragments), (0, 163));
    }
}

#[test]
fn what_was_not_asked_for_and_what_comes_twice_is_not_looked_at() {
    let test = "what_was_not_asked_for_and_what_comes_twice_is_not_looked_at";
    let Some((mut steering, _, events)) = setting(test, "zee_mu0") else { return };
    for event in &events[..300] {
        let expected = level2(&mut steering, event);
        steering.begin(event.number, event.items, &event.rois);
        let junk = (0x0041_0000, PageSlice::from_static(b"junk"));
        let mut next = steering.step(&mut [junk].into_iter());
        while let Next::Ask(_) = next {
            let twice = event.fragments.iter().flat_map(|fragment| [fragment, fragment]).cloned();
            next = steering.step(&mut twice.into_iter());
        }
        assert_eq!(next, Next::Decided(expected));
        assert_eq!(steering.step(&mut std::iter::empty()), Next::Decided(expected), "a decision stands");
    }
}

#[test]
fn arbitrary_payloads_never_panic_and_are_counted() {
    let Some((steering, filter, events)) = setting("arbitrary_payloads_never_panic_and_are_counted", "zee_mu0") else {
        return;
    };
    let contexts = RefCell::new((steering, filter));
    let template = events.into_iter().next().unwrap();
    let words = prop::collection::vec(any::<u32>(), 0..40);
    let damage = (0..7_u8, words, prop::bool::weighted(0.3));
    let roi = (0..6_u8, any::<u8>(), any::<u8>(), any::<u32>());
    let input = (prop::collection::vec(damage, 163), prop::collection::vec(roi, 0..8), any::<u32>());
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 300, ..Config::default() },
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    runner
        .run(&input, |(damage, rois, items)| {
            let mut event = template.clone();
            event.items = items | 0xffff;
            event.rois = rois
                .into_iter()
                .map(|(kind, ieta, iphi, thresholds)| Roi { kind, ieta, iphi, thresholds, ..Roi::default() })
                .collect();
            let mut bad = 0;
            for ((source_id, payload), (kind, words, tear)) in event.fragments.iter_mut().zip(damage) {
                *payload = damaged(*source_id, kind, &words, tear);
                let data_type = data_type(*source_id);
                bad += u32::from(Records::parse(payload.as_bytes(), data_type).is_err());
            }
            let (steering, filter) = &mut *contexts.borrow_mut();
            let decision = level2(steering, &event);
            prop_assert_eq!(decision.passed & !decision.input, 0);
            prop_assert!(decision.bad_payloads <= decision.requested_robs);
            prop_assert_eq!(decision.bad_payloads as usize, steering.problems().len());
            let filtered = filter.decide(event.number, &event.slices());
            prop_assert_eq!(filtered.bad_payloads, bad);
            prop_assert_eq!(filtered.passed & !filtered.input, 0);
            Ok(())
        })
        .unwrap();
}

#[test]
fn fragments_of_the_filter_in_any_order_never_panic() {
    let Some((_, mut filter, events)) = setting("fragments_of_the_filter_in_any_order_never_panic", "dijet_mu20")
    else {
        return;
    };
    for event in &events[..50] {
        let mut slices = event.slices();
        slices.reverse();
        filter.decide(event.number, &slices);
        slices.extend_from_within(..);
        slices.sort_by_key(|(source_id, _)| *source_id);
        filter.decide(event.number, &slices);
    }
}

fn setting(test: &str, name: &str) -> Option<(Steering, Filter, Vec<Event>)> {
    let physics = physics(test)?;
    let menu = reference_menu(&detector(&physics, "rob160"));
    let events = sample::accepted(&physics.join(format!("{name}.parquet")));
    Some((Steering::new(Arc::clone(&menu)), Filter::new(menu), events))
}

/// The chains of XE50 and RD0, by their bits in the menu and in level 1.
fn level1_word(event: &Event, chains: &[u32; 2]) -> u64 {
    chains.iter().zip([15, 17]).fold(0, |set, (chain, item)| set | u64::from(event.items >> item & 1) << chain)
}

fn data_type(source_id: u32) -> DataType {
    match source_id >> 16 {
        0x21 => DataType::Tracks,
        0x41 => DataType::EmCells,
        0x51 => DataType::HadTowers,
        0x61 => DataType::MuonStubs,
        0x77 => DataType::CentralTrigger,
        _ => DataType::Rois,
    }
}

/// Legal, or with a first word that does not fit, or anything.
fn damaged(source_id: u32, kind: u8, words: &[u32], tear: bool) -> PageSlice {
    let right = data_type(source_id);
    let whole = match kind {
        0 => PageSlice::from(words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()),
        1 => payload(DataType::Rois, words),
        _ => payload(right, words),
    };
    if tear { whole.slice(0..whole.len() * 2 / 3) } else { whole }
}
