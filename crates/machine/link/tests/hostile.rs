//! Sources that do not keep to the protocol, by mistake or by intent: they lose their connection, and nothing else happens.

mod bench;

use std::io::Write;
use std::os::unix::net::UnixStream;

use base::time::Time;
use bench::raw::{RawShared, RawStream};
use bench::{Bench, Came, Carrier, PAGES, SIZE_MAX};
use link::wire::{HEAD_BYTES, RecordHead, record};
use link::{Faults, Flags, Head, Kind, Lost, Violation};
use proptest::prelude::*;

fn fragment(sequence: u64) -> RecordHead {
    RecordHead::of_fragment(&Head { number: Some(sequence), ..Head::default() }, 8, sequence, 7, || 0)
}

/// The source loses its connection for this reason; one that behaves can come next.
fn expect_violation(bench: &mut Bench, expected: Violation) {
    let came = bench.until(|came| matches!(came.last(), Some(Came::Down(_))));
    assert_eq!(came.last(), Some(&Came::Down(Lost::Violated(expected))));
    assert_eq!(bench.intake.counters().violations, 1);
    let mut sender = bench.started(7);
    bench.push(&mut sender, &Head::default(), b"good");
    let came = bench.until_with(&mut sender, |came| !came.is_empty());
    assert_eq!(came[0].fragment().unwrap().payload, b"good");
}

#[test]
fn a_page_that_was_not_lent_ends_a_connection() {
    for index in [PAGES as u64, u64::MAX, 1 << 32] {
        let mut bench = Bench::new(Carrier::Shared);
        let mut raw = RawShared::connected(&mut bench);
        raw.commit(&fragment(0).encode(), index);
        expect_violation(&mut bench, Violation::Page { index });
    }
}

#[test]
fn a_page_that_is_committed_twice_ends_a_connection() {
    let mut bench = Bench::new(Carrier::Shared);
    bench.keeps_pages = true;
    let mut raw = RawShared::connected(&mut bench);
    let index = raw.lent(0);
    raw.commit(&fragment(0).encode(), index);
    raw.commit(&fragment(1).encode(), index);
    expect_violation(&mut bench, Violation::Page { index });
}

#[test]
fn a_payload_longer_than_its_page_ends_a_connection() {
    for len in [SIZE_MAX as u32 + 1, u32::MAX] {
        let mut bench = Bench::new(Carrier::Shared);
        let mut raw = RawShared::connected(&mut bench);
        raw.commit(&RecordHead { len, ..fragment(0) }.encode(), raw.lent(0));
        let expected = "at most size_max of the source";
        expect_violation(&mut bench, Violation::Length { kind: Kind::Fragment, len: len.into(), expected });
    }
}

#[test]
fn a_ring_that_jumps_ends_a_connection() {
    for found in [1 << 40, u64::MAX] {
        let mut bench = Bench::new(Carrier::Shared);
        let mut raw = RawShared::connected(&mut bench);
        raw.commit(&fragment(0).encode(), raw.lent(0));
        bench.until(|came| came.len() == 1);
        raw.set_committed(found);
        let capacity = raw.welcome.memory.unwrap().ring.into();
        expect_violation(&mut bench, Violation::Ring { before: 1, found, capacity });
    }
    let mut bench = Bench::new(Carrier::Shared);
    let mut raw = RawShared::connected(&mut bench);
    // Within the ring, but nothing was written there.
    raw.set_committed(5);
    expect_violation(&mut bench, Violation::Kind { found: 0 });
}

#[test]
fn a_head_that_changes_after_its_commit_changes_nothing() {
    let mut bench = Bench::new(Carrier::Shared);
    let mut raw = RawShared::connected(&mut bench);
    raw.commit(&fragment(0).encode(), raw.lent(0));
    bench.until(|came| came.len() == 1);
    raw.overwrite(0, &[0xff; HEAD_BYTES], u64::MAX);
    raw.commit(&fragment(1).encode(), raw.lent(1));
    let came = bench.until(|came| !came.is_empty());
    assert_eq!(came[0].fragment().unwrap().head.number, Some(1));
}

#[test]
fn a_source_that_never_commits_keeps_its_own_pages_and_nobody_awake() {
    let mut bench = Bench::new(Carrier::Shared);
    let raw = RawShared::connected(&mut bench);
    for _ in 0..100 {
        bench.poll();
    }
    assert!(!bench.intake.is_ready(Time::ZERO, usize::MAX >> 1), "there is nothing to do");
    assert_eq!(bench.intake.pool().counters().in_use, PAGES);
    let pool = bench.intake.pool().clone();
    drop(raw);
    bench.until(|came| came.contains(&Came::Down(Lost::Closed)));
    assert_eq!(pool.counters().in_use, 0);
}

#[test]
fn a_former_source_reaches_nothing_of_its_successor() {
    let mut bench = Bench::new(Carrier::Shared);
    let mut former = RawShared::connected(&mut bench);
    former.commit(&[0xff; HEAD_BYTES], 0);
    bench.until(|came| matches!(came.last(), Some(Came::Down(Lost::Violated(_)))));
    let mut successor = RawShared::connected(&mut bench);
    former.set_committed(9);
    successor.commit(&fragment(0).encode(), successor.lent(0));
    bench.until(|came| came.iter().any(|came| came.fragment().is_some()));
    assert!(bench.intake.is_up());
}

#[test]
fn what_a_source_may_not_say_ends_a_connection_on_both_carriers() {
    let wrong = [
        (RecordHead { sequence: 5, ..fragment(0) }, Violation::Sequence { found: 5, expected: 0 }),
        (RecordHead { run: 8, ..fragment(0) }, Violation::Run { found: 8, expected: 7 }),
        (RecordHead { crc: 1, ..fragment(0) }, Violation::Unannounced),
        (RecordHead { aux: 256, ..fragment(0) }, Violation::Unannounced),
        (RecordHead { flags: Flags::empty(), number: 1, ..fragment(0) }, Violation::Unannounced),
        (RecordHead::plain(Kind::Welcome, 0), Violation::OutOfTurn { kind: Kind::Welcome }),
        (RecordHead::plain(Kind::End, 1), Violation::Length { kind: Kind::End, len: 1, expected: "0" }),
    ];
    for (head, expected) in wrong {
        let mut bench = Bench::new(Carrier::Shared);
        let mut raw = RawShared::connected(&mut bench);
        raw.commit(&head.encode(), raw.lent(0));
        expect_violation(&mut bench, expected);
        let mut bench = Bench::new(Carrier::Tcp);
        let mut raw = RawStream::connected(&mut bench);
        raw.0.write_all(&head.encode()).unwrap();
        expect_violation(&mut bench, expected);
    }
}

#[test]
fn a_payload_that_does_not_fit_its_checksum_is_delivered_as_damaged() {
    let mut head = fragment(0);
    (head.flags, head.crc) = (head.flags | Flags::CRC, 5);
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    raw.0.write_all(&[&head.encode()[..], b"damaged!"].concat()).unwrap();
    let came = bench.until(|came| !came.is_empty());
    let found = came[0].fragment().unwrap();
    assert!(found.faults == Faults::CHECKSUM && found.payload == b"damaged!");
    let mut bench = Bench::new(Carrier::Shared);
    let mut raw = RawShared::connected(&mut bench);
    raw.commit(&head.encode(), raw.lent(0));
    let came = bench.until(|came| !came.is_empty());
    assert_eq!(came[0].fragment().unwrap().faults, Faults::CHECKSUM);
    assert_eq!(bench.intake.counters().damaged, 1);
}

#[test]
fn a_fragment_of_four_gigabytes_is_refused_by_its_head() {
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    raw.0.write_all(&RecordHead { len: u32::MAX, ..fragment(0) }.encode()).unwrap();
    let expected = "at most size_max of the source";
    expect_violation(&mut bench, Violation::Length { kind: Kind::Fragment, len: u32::MAX.into(), expected });
}

#[test]
fn visitors_that_say_nothing_do_not_keep_the_source_out() {
    for carrier in bench::CARRIERS {
        let mut bench = Bench::new(carrier);
        let place = bench.at().split_once(':').unwrap().1.trim_start_matches("//").to_owned();
        let silent: Vec<Box<dyn Send>> = (0..20)
            .map(|_| match carrier {
                Carrier::Tcp => Box::new(std::net::TcpStream::connect(&place).unwrap()) as Box<dyn Send>,
                Carrier::Shared => Box::new(UnixStream::connect(&place).unwrap()),
            })
            .collect();
        drop(bench.connected());
        drop(silent);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_bytes_end_a_connection_with_a_reason(
        bytes in prop::collection::vec(any::<u8>(), 48..600),
        kind in prop::sample::select(vec![1_u8, 2, 3, 16, 32, 33, 34, 35]),
        is_head_right in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if is_head_right {
            // A head that is believed, with random fields and a random body behind it.
            (bytes[4], bytes[5], bytes[7]) = (kind, 7, 0);
            bytes[2..4].fill(0);
        }
        for carrier in bench::CARRIERS {
            let mut bench = Bench::new(carrier);
            let place = bench.at().split_once(':').unwrap().1.trim_start_matches("//").to_owned();
            // As a visitor, then as a source.
            match carrier {
                Carrier::Tcp => drop(std::net::TcpStream::connect(&place).unwrap().write_all(&bytes)),
                Carrier::Shared => drop(UnixStream::connect(&place).unwrap().write_all(&bytes)),
            }
            bench.until(|came| matches!(came.last(), Some(Came::TurnedAway(_))));
            match carrier {
                Carrier::Tcp => drop(RawStream::connected(&mut bench).0.write_all(&bytes)),
                Carrier::Shared => drop(RawShared::connected(&mut bench).socket.write_all(&bytes)),
            }
            let came = bench.until(|came| matches!(came.last(), Some(Came::Down(_))));
            prop_assert!(came.iter().filter(|came| matches!(came, Came::Down(_))).count() == 1);
            prop_assert_eq!(bench.intake.pool().counters().in_use, 0);
        }
    }

    #[test]
    fn random_entries_end_a_connection_with_a_reason(
        entries in prop::collection::vec((prop::array::uniform32(any::<u8>()), 0_u64..20, any::<bool>()), 1..20),
    ) {
        let mut bench = Bench::new(Carrier::Shared);
        let mut raw = RawShared::connected(&mut bench);
        for (index, (noise, page, is_head_right)) in entries.iter().enumerate() {
            let mut head = fragment(index as u64).encode();
            let from = if *is_head_right { 24 } else { 0 };
            head[from..from + 8].copy_from_slice(&noise[..8]);
            raw.commit(&head, *page);
        }
        drop(raw);
        bench.until(|came| matches!(came.last(), Some(Came::Down(_))));
        prop_assert_eq!(bench.intake.pool().counters().in_use, 0);
    }
}

#[test]
fn a_status_that_is_no_text_ends_a_connection() {
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    raw.0.write_all(&record(Kind::Status, 7, &[0xff])).unwrap();
    expect_violation(&mut bench, Violation::Text { kind: Kind::Status });
}
