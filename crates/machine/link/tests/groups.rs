//! Fragments that come together over TCP: they are copied in groups, and come as if each came alone.

mod bench;

use std::io::Write;

use bench::raw::RawStream;
use bench::{Bench, Came, Carrier, PAGES};
use link::wire::RecordHead;
use link::{Flags, Head, Kind, LinkOrder, Lost, Violation};

fn record(sequence: u64) -> Vec<u8> {
    let head = Head { number: Some(sequence), ..Head::default() };
    let head = RecordHead::of_fragment(&head, 8, sequence, 7, || 0);
    [&head.encode()[..], &sequence.to_le_bytes()].concat()
}

fn records(sequences: impl IntoIterator<Item = u64>) -> Vec<u8> {
    sequences.into_iter().flat_map(record).collect()
}

/// The number of each fragment, which its head and its payload both say.
fn numbers(came: &[Came]) -> Vec<u64> {
    let number = |fragment: &bench::Fragment| {
        let number = fragment.head.number.unwrap();
        assert_eq!(fragment.payload, number.to_le_bytes());
        number
    };
    came.iter().filter_map(Came::fragment).map(number).collect()
}

#[test]
fn good_fragments_before_a_wrong_one_are_delivered() {
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    raw.0.write_all(&records([0, 1, 2, 7])).unwrap();
    let came = bench.until(|came| matches!(came.last(), Some(Came::Down(_))));
    assert_eq!(numbers(&came), [0, 1, 2]);
    let expected = Violation::Sequence { found: 7, expected: 3 };
    assert_eq!(came[3..], [Came::Down(Lost::Violated(expected))]);
}

#[test]
fn a_mark_between_fragments_keeps_its_place() {
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    let idle = RecordHead { run: 7, number: 2, flags: Flags::NUMBER, ..RecordHead::plain(Kind::Idle, 0) };
    raw.0.write_all(&[records([0, 1]), idle.encode().to_vec(), records([2, 3])].concat()).unwrap();
    let came = bench.until(|came| came.len() == 5);
    assert_eq!(numbers(&came), [0, 1, 2, 3]);
    assert!(matches!(came[2], Came::Idle { number: 2, .. }), "{came:?}");
}

#[test]
fn no_more_come_than_there_is_room_for() {
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    bench.room = 3;
    raw.0.write_all(&records(0..8)).unwrap();
    let mut all = Vec::new();
    while all.len() < 8 {
        bench.poll();
        let came = bench.until(|_| true);
        assert!(came.len() <= 3, "{came:?}");
        all.extend(numbers(&came));
    }
    assert_eq!(all, Vec::from_iter(0..8));
}

#[test]
fn what_has_no_page_comes_when_one_is_back() {
    let mut bench = Bench::new(Carrier::Tcp);
    bench.keeps_pages = true;
    let mut raw = RawStream::connected(&mut bench);
    // The second write finds pages for a part of a group, and at last none.
    let most = PAGES as u64;
    raw.0.write_all(&records(0..5)).unwrap();
    let first = bench.until(|came| came.len() == 5);
    raw.0.write_all(&records(5..most + 4)).unwrap();
    let second = bench.until(|came| came.len() == PAGES - 5);
    for _ in 0..10 {
        bench.poll();
    }
    assert_eq!(bench.until(|_| true), [], "all pages are away");
    bench.kept.clear();
    let third = bench.until(|came| came.len() == 4);
    assert_eq!([numbers(&first), numbers(&second), numbers(&third)].concat(), Vec::from_iter(0..most + 4));
}

#[test]
fn more_than_a_group_come_in_order() {
    let mut bench = Bench::with(Carrier::Tcp, |parameters| parameters.pages = 64);
    let mut raw = RawStream::connected(&mut bench);
    raw.0.write_all(&records(0..17)).unwrap();
    let came = bench.until(|came| came.len() >= 17);
    assert_eq!(numbers(&came), Vec::from_iter(0..17));
}

#[test]
fn a_fragment_that_is_half_there_when_the_next_run_begins_is_dropped() {
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    let former = record(0);
    raw.0.write_all(&former[..former.len() - 1]).unwrap();
    let idle = RecordHead { run: 7, number: 9, flags: Flags::NUMBER, ..RecordHead::plain(Kind::Idle, 0) };
    // News of it, and the read.
    (0..3).for_each(|_| bench.poll());
    bench = bench.into_run(8);
    bench.intake.order(LinkOrder::Start { run: 8 });
    let next = RecordHead::of_fragment(&Head { number: Some(5), ..Head::default() }, 8, 0, 8, || 0);
    let next = [&next.encode()[..], &5_u64.to_le_bytes()].concat();
    raw.0.write_all(&[&former[former.len() - 1..], &idle.encode(), &next].concat()).unwrap();
    let came = bench.until(|came| came.len() == 2);
    assert_eq!((&came[0], numbers(&came)), (&Came::Up("tlu".into()), vec![5]));
    assert_eq!(bench.intake.counters().stale, 1);
}
