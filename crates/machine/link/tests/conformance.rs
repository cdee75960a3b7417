//! What a link does, once for each carrier.

mod bench;

use std::io::Write;
use std::time::Duration;

use base::time::Time;
use bench::raw::RawStream;
use bench::{Bench, CARRIERS, Came, Carrier, PAGES, SIZE_MAX};
use link::wire::RecordHead;
use link::{Flags, Head, Kind, LinkError, LinkOrder, Lost, Order, Secret, Sender, Settings};

#[test]
fn fragments_come_as_they_were_sent() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        let heads: Vec<Head> = (0..200).map(head).collect();
        for (index, head) in heads.iter().enumerate() {
            bench.push(&mut sender, head, &payload(index));
        }
        sender.end().unwrap();
        let came = bench.until_with(&mut sender, |came| matches!(came.last(), Some(Came::Ended { .. })));
        let fragments: Vec<_> = came.iter().filter_map(Came::fragment).collect();
        assert_eq!(fragments.len(), heads.len(), "{carrier:?}");
        for (index, (found, expected)) in fragments.iter().zip(&heads).enumerate() {
            let announced = expected.flags | Flags::NUMBER;
            assert_eq!(found.head, Head { flags: found.head.flags, ..*expected });
            assert!(found.head.flags.contains(announced) && found.faults.is_empty(), "{carrier:?} {index}");
            assert_eq!(found.payload, payload(index), "{carrier:?} {index}");
        }
        assert_eq!(came.last(), Some(&Came::Ended { sent: 200, received: 200 }));
    }
}

fn head(index: usize) -> Head {
    Head {
        number: Some(3 * index as u64),
        time: index.is_multiple_of(2).then_some((index as u64, index as u64 + 5)),
        trigger_type: index as u8,
        flags: [Flags::empty(), Flags::CRC, Flags::TRANSMISSION_ERROR, Flags::CUT | Flags::CRC][index % 4],
    }
}

/// Of all lengths from nothing to the longest.
fn payload(index: usize) -> Vec<u8> {
    bytes(index, (index * 331) % (SIZE_MAX + 1))
}

fn bytes(index: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + index) as u8).collect()
}

/// It was begun while there was room for it.
#[test]
fn a_fragment_that_comes_in_two_parts_waits_for_room() {
    let mut bench = Bench::new(Carrier::Tcp);
    let mut raw = RawStream::connected(&mut bench);
    let head = RecordHead::of_fragment(&Head { number: Some(0), ..Head::default() }, 8, 0, 7, || 0);
    raw.0.write_all(&head.encode()).unwrap();
    (0..STATUS_POLLS).for_each(|_| bench.poll());
    bench.room = 0;
    raw.0.write_all(b"a half\n\n").unwrap();
    (0..STATUS_POLLS).for_each(|_| bench.poll());
    assert_eq!(bench.until(|_| true), []);
    bench.room = 1;
    let came = bench.until(|came| !came.is_empty());
    assert_eq!(came[0].fragment().unwrap().payload, b"a half\n\n");
}

/// A mark follows such a fragment. Many come before the first mark.
fn is_marked(index: usize) -> bool {
    index > 38 && index % 5 == 4
}

/// Most are as long as those before, so that their places are foreseen; others, and marks, come instead.
#[test]
fn what_is_foreseen_comes_as_it_was_sent_and_so_does_what_is_not() {
    let lens: Vec<usize> =
        [vec![8000; 40], vec![7999], vec![8000; 3], vec![0; 3], vec![8000; 9], vec![SIZE_MAX; 4], vec![5000; 20]]
            .concat();
    let mut stream = Vec::new();
    for (index, len) in lens.iter().enumerate() {
        let head =
            RecordHead::of_fragment(&head(index), *len as u32, index as u64, 7, || crc32c::crc32c(&bytes(index, *len)));
        stream.extend(head.encode());
        stream.extend(bytes(index, *len));
        if is_marked(index) {
            let idle = RecordHead {
                number: 3 * index as u64,
                flags: Flags::NUMBER,
                run: 7,
                ..RecordHead::plain(Kind::Idle, 0)
            };
            stream.extend(idle.encode());
        }
    }
    for chunk in [997, 7_919, 8_048, 24_001, 150_000] {
        for room in [1, 2, PAGES] {
            let mut bench = Bench::new(Carrier::Tcp);
            let mut raw = RawStream::connected(&mut bench);
            // If the kernel buffers less than a chunk, the test fails instead of waiting for itself.
            raw.0.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
            bench.room = room;
            let mut came = Vec::new();
            for chunk in stream.chunks(chunk) {
                raw.0.write_all(chunk).unwrap();
                bench.poll();
                came.extend(bench.until(|_| true));
            }
            let of_all = lens.len() + (0..lens.len()).filter(|index| is_marked(*index)).count();
            while came.len() < of_all {
                came.extend(bench.until(|came| !came.is_empty()));
            }
            let mut came = came.into_iter();
            for (index, len) in lens.iter().enumerate() {
                let Some(Came::Fragment(found)) = came.next() else { panic!("{chunk} {room}: no fragment {index}") };
                assert_eq!(
                    (found.head.number, found.payload),
                    (head(index).number, bytes(index, *len)),
                    "{chunk} {room}"
                );
                assert!(found.faults.is_empty());
                if is_marked(index) {
                    assert_eq!(came.next(), Some(Came::Idle { number: 3 * index as u64, time: 0 }));
                }
            }
        }
    }
}

#[test]
fn marks_and_texts_come_among_the_fragments() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        sender.report("all is well").unwrap();
        bench.push(&mut sender, &head(0), &payload(0));
        sender.idle(4, 99).unwrap();
        bench.push(&mut sender, &head(2), &payload(2));
        sender.end().unwrap();
        let came = bench.until_with(&mut sender, |came| came.len() == 5);
        assert!(came.contains(&Came::Status("all is well".into())), "{carrier:?} {came:?}");
        let others: Vec<_> = came.iter().filter(|came| !matches!(came, Came::Status(_))).collect();
        assert!(matches!(others[0], Came::Fragment(_)) && matches!(others[2], Came::Fragment(_)), "{carrier:?}");
        assert_eq!(*others[1], Came::Idle { number: 4, time: 99 }, "{carrier:?}");
        assert_eq!(*others[3], Came::Ended { sent: 2, received: 2 }, "{carrier:?}");
    }
}

#[test]
fn nothing_is_taken_before_the_start_nor_after_the_end() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.connected();
        assert!(sender.reserve(8).unwrap().is_none(), "{carrier:?}");
        bench.intake.order(LinkOrder::Start { run: 7 });
        bench.expect(&mut sender, Order::Start { run: 7 });
        bench.push(&mut sender, &head(0), &payload(0));
        bench.intake.order(LinkOrder::Stop);
        bench.expect(&mut sender, Order::Stop);
        bench.push(&mut sender, &head(1), &payload(1));
        sender.end().unwrap();
        assert!(sender.reserve(8).unwrap().is_none(), "{carrier:?}");
        bench.until_with(&mut sender, |came| came.contains(&Came::Ended { sent: 2, received: 2 }));
        bench.intake.order(LinkOrder::Start { run: 8 });
        bench.expect(&mut sender, Order::Start { run: 8 });
        bench.push(&mut sender, &head(0), &payload(0));
        sender.end().unwrap();
        bench.until_with(&mut sender, |came| came.contains(&Came::Ended { sent: 1, received: 1 }));
    }
}

#[test]
fn fragments_of_a_former_run_are_dropped_and_counted() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        bench.push(&mut sender, &head(0), &payload(3));
        bench.until_with(&mut sender, |came| !came.is_empty());
        // Committed, and on its way when the next run begins.
        sender.reserve(9).unwrap().unwrap().fill(1);
        sender.commit(&head(1), 9).unwrap();
        bench.intake.order(LinkOrder::Start { run: 8 });
        bench.intake.order(LinkOrder::Start { run: 9 });
        bench.expect(&mut sender, Order::Start { run: 8 });
        bench.push(&mut sender, &head(4), &payload(4));
        bench.expect(&mut sender, Order::Start { run: 9 });
        bench.push(&mut sender, &head(2), &payload(2));
        sender.end().unwrap();
        let came = bench.until_with(&mut sender, |came| matches!(came.last(), Some(Came::Ended { .. })));
        let numbers: Vec<_> = came.iter().filter_map(Came::fragment).map(|fragment| fragment.head.number).collect();
        assert_eq!(numbers, [Some(6)], "{carrier:?}");
        assert_eq!(bench.intake.counters().stale, 2, "{carrier:?}");
    }
}

#[test]
fn a_source_stays_for_the_next_run_and_brings_nothing_of_the_former_along() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        bench.push(&mut sender, &head(0), &payload(3));
        bench.until_with(&mut sender, |came| came.len() == 1);
        // On its way when the run is left, busy and without a stop.
        sender.reserve(9).unwrap().unwrap().fill(1);
        sender.commit(&head(1), 9).unwrap();
        bench.intake.order(LinkOrder::Off);
        for text in ["much", "more", "at last"] {
            sender.report(text).unwrap();
            sender.flush().unwrap();
        }
        bench = bench.into_run(8);
        bench.until(|came| came.len() == 1 && came[0] == Came::Up("tlu".into()));
        (0..STATUS_POLLS).for_each(|_| bench.poll());
        bench.intake.order(LinkOrder::Start { run: 8 });
        bench.expect(&mut sender, Order::Stop);
        bench.push(&mut sender, &head(2), &payload(2));
        assert_eq!(sender.wait(Duration::ZERO).unwrap(), Order::Nothing, "{carrier:?}: the end of the run comes first");
        sender.end().unwrap();
        bench.expect(&mut sender, Order::Start { run: 8 });
        bench.push(&mut sender, &head(4), &payload(4));
        sender.end().unwrap();
        let came = bench.until_with(&mut sender, |came| matches!(came.last(), Some(Came::Ended { .. })));
        assert_eq!(came[0], Came::Status("at last".into()), "{carrier:?}");
        assert_eq!(came.last(), Some(&Came::Ended { sent: 1, received: 1 }), "{carrier:?}");
        let numbers: Vec<_> = came.iter().filter_map(Came::fragment).map(|fragment| fragment.head.number).collect();
        assert_eq!(numbers, [Some(12)], "{carrier:?}");
        assert_eq!(bench.intake.counters().stale, 2, "{carrier:?}");
    }
}

#[test]
fn a_source_that_goes_between_two_runs_is_missed_in_the_second() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        drop(bench.started(7));
        bench = bench.into_run(8);
        let came = bench.until(|came| came.len() == 2);
        assert_eq!(came[0], Came::Up("tlu".into()), "{carrier:?}");
        assert!(matches!(came[1], Came::Down(_)), "{carrier:?} {came:?}");
        bench.started(8);
    }
}

/// As the trigger of a EUDET TLU: the next one comes when busy has fallen.
#[test]
fn one_by_one_each_fragment_waits_for_its_xon() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        bench.intake = bench.intake.one_by_one();
        let mut sender = bench.started(7);
        for number in 0..50 {
            bench.wait_until(&mut sender, |sender| sender.reserve(8).unwrap().is_some());
            sender.commit(&head(number), 8).unwrap();
            assert!(sender.reserve(8).unwrap().is_none(), "{carrier:?}");
            bench.until_with(&mut sender, |came| came.iter().filter_map(Came::fragment).count() == 1);
            assert!(sender.reserve(8).unwrap().is_none(), "{carrier:?}");
            bench.intake.order(LinkOrder::On);
        }
        sender.end().unwrap();
        bench.until_with(&mut sender, |came| came.contains(&Came::Ended { sent: 50, received: 50 }));
    }
}

/// It reads the former run out when the next one has begun.
#[test]
fn a_single_fragment_of_the_former_run_does_not_keep_the_next_one_off() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        bench.intake = bench.intake.one_by_one();
        let mut sender = bench.started(7);
        bench = bench.into_run(8);
        bench.until(|came| came.len() == 1);
        bench.intake.order(LinkOrder::Start { run: 8 });
        bench.expect(&mut sender, Order::Stop);
        bench.push(&mut sender, &head(0), &payload(0));
        sender.end().unwrap();
        bench.expect(&mut sender, Order::Start { run: 8 });
        bench.wait_until(&mut sender, |sender| sender.reserve(8).unwrap().is_some());
        sender.commit(&head(1), 8).unwrap();
        bench.until_with(&mut sender, |came| came.iter().filter_map(Came::fragment).count() == 1);
        assert_eq!(bench.intake.counters().stale, 1, "{carrier:?}");
    }
}

#[test]
fn xoff_holds_a_source_back_until_xon() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        bench.intake.order(LinkOrder::Off);
        bench.wait_until(&mut sender, |sender| sender.reserve(8).unwrap().is_none());
        assert_eq!(sender.wait(Duration::ZERO).unwrap(), Order::Nothing);
        assert!(sender.reserve(8).unwrap().is_none(), "{carrier:?}");
        bench.intake.order(LinkOrder::On);
        bench.wait_until(&mut sender, |sender| sender.reserve(8).unwrap().is_some());
        sender.commit(&head(0), 8).unwrap();
        bench.until_with(&mut sender, |came| came.len() == 1);
    }
}

#[test]
fn a_source_that_comes_during_a_run_is_told_how_things_stand() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        bench.intake.order(LinkOrder::Start { run: 9 });
        bench.intake.order(LinkOrder::Off);
        let mut sender = bench.connected();
        bench.expect(&mut sender, Order::Start { run: 9 });
        assert!(sender.reserve(8).unwrap().is_none(), "{carrier:?}");
    }
}

#[test]
fn without_pages_a_source_waits_and_loses_nothing() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        bench.keeps_pages = true;
        let mut sender = bench.started(7);
        let (mut sent, mut held) = (0_usize, 0);
        // A stream has buffers on its way: it takes as much as these hold besides.
        while held < 200 {
            match sender.reserve(SIZE_MAX).unwrap() {
                Some(place) => {
                    place.fill(sent as u8);
                    sender.commit(&head(sent), SIZE_MAX).unwrap();
                    (sent, held) = (sent + 1, 0);
                }
                None => held += 1,
            }
            bench.poll();
        }
        assert_eq!(bench.kept.len(), PAGES, "{carrier:?}");
        bench.keeps_pages = false;
        bench.kept.clear();
        sender.end().unwrap();
        let expected = Came::Ended { sent: sent as u64, received: sent as u64 };
        let came = bench.until_with(&mut sender, |came| came.contains(&expected));
        let fragments: Vec<_> = came.iter().filter_map(Came::fragment).collect();
        assert_eq!(fragments.len(), sent, "{carrier:?}");
        let is_whole = |(index, fragment): (usize, &&bench::Fragment)| {
            fragment.head.number == Some(3 * index as u64) && fragment.payload == vec![index as u8; SIZE_MAX]
        };
        assert!(fragments.iter().enumerate().all(is_whole), "{carrier:?}");
    }
}

#[test]
fn no_more_is_delivered_than_there_is_room_for() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        bench.room = 0;
        for index in 0..5 {
            bench.push(&mut sender, &head(index), &payload(index));
        }
        for _ in 0..20 {
            sender.flush().unwrap();
            bench.poll();
        }
        assert!(bench.until(|_| true).is_empty(), "{carrier:?}");
        assert!(!bench.intake.is_ready(Time::ZERO, 0) && bench.intake.is_ready(Time::ZERO, 1), "{carrier:?}");
        bench.room = 2;
        bench.poll();
        assert_eq!(bench.until(|_| true).len(), 2, "{carrier:?}");
        bench.until(|came| came.len() == 3);
    }
}

#[test]
fn a_fragment_that_is_too_long_or_not_reserved_is_refused_at_once() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        let too_long = LinkError::TooLong { len: SIZE_MAX + 1, size_max: SIZE_MAX };
        assert_eq!(sender.reserve(SIZE_MAX + 1).err(), Some(too_long), "{carrier:?}");
        assert_eq!(sender.commit(&head(0), 1), Err(LinkError::NotReserved { len: 1, reserved: 0 }), "{carrier:?}");
        assert!(sender.reserve(5).unwrap().is_some());
        assert_eq!(sender.commit(&head(0), 6), Err(LinkError::NotReserved { len: 6, reserved: 5 }), "{carrier:?}");
        bench.push(&mut sender, &head(0), &payload(5));
        bench.until_with(&mut sender, |came| came.len() == 1);
    }
}

#[test]
fn a_source_that_ends_has_delivered_all_and_may_come_back() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        for life in 0..3 {
            let mut sender = bench.started(7);
            for index in 0..5 {
                bench.push(&mut sender, &head(index), &payload(index));
            }
            bench.wait_until(&mut sender, |sender| sender.is_flushed());
            drop(sender);
            let came = bench.until(|came| matches!(came.last(), Some(Came::Down(_))));
            assert_eq!(came.iter().filter_map(Came::fragment).count(), 5, "{carrier:?} {life}");
            assert_eq!(came.last(), Some(&Came::Down(Lost::Closed)), "{carrier:?}");
        }
        assert_eq!(bench.intake.counters().connections, 3);
    }
}

#[test]
fn a_link_that_is_closed_has_delivered_all_although_it_was_told_much() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        for index in 0..PAGES {
            bench.push(&mut sender, &head(index), &payload(index));
        }
        // What it never reads would make the kernel throw away what it has sent.
        for _ in 0..100 {
            bench.intake.order(LinkOrder::Off);
        }
        let has_closed = std::thread::scope(|scope| {
            let closing = scope.spawn(|| sender.close(Duration::from_secs(60)));
            while !closing.is_finished() {
                bench.poll();
            }
            closing.join().unwrap()
        });
        assert_eq!(has_closed, Ok(true), "{carrier:?}");
        let came = bench.until(|came| came.last() == Some(&Came::Down(Lost::Closed)));
        assert_eq!(came.iter().filter_map(Came::fragment).count(), PAGES, "{carrier:?}");
    }
}

#[test]
fn a_second_source_of_the_same_name_is_refused_while_the_first_lives() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let sender = bench.connected();
        let settings = Settings { patience: Duration::ZERO, ..bench.settings() };
        let error = bench.open(&settings).err().unwrap();
        let refused = error.to_string();
        assert!(matches!(error, LinkError::Taken { .. }), "{carrier:?} {refused}");
        assert!(
            refused.ends_with(": refused for 0ns: a source named tlu is connected already; end it first"),
            "{refused}"
        );
        let came = bench.until(|came| !came.is_empty());
        assert!(came.iter().all(|came| matches!(came, Came::TurnedAway(_))), "{carrier:?} {came:?}");
        drop(sender);
        drop(bench.connected());
    }
}

#[test]
fn nobody_follows_a_source_that_was_the_last() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let first = bench.connected();
        bench.intake.let_nobody_follow(Some("it counts by itself"));
        drop(first);
        bench.until(|came| came.contains(&Came::Down(Lost::Closed)));
        let settings = Settings { patience: Duration::ZERO, ..bench.settings() };
        for _ in 0..3 {
            let refused = bench.open(&settings).err().unwrap().to_string();
            assert!(refused.contains("it counts by itself"), "{carrier:?} {refused}");
        }
        let came = bench.until(|came| !came.is_empty());
        assert!(matches!(came[..], [Came::TurnedAway(_)]), "people are told once: {came:?}");
        bench.intake.let_nobody_follow(None);
        drop(bench.connected());
    }
}

#[test]
fn a_second_source_takes_the_place_of_one_that_does_not_answer() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        // As one that is stopped: its end of the link is open, and nobody reads there.
        let mut stopped = bench.started(7);
        bench.push(&mut stopped, &head(0), &payload(0));
        stopped.flush().unwrap();
        bench.until(|came| came.iter().any(|came| came.fragment().is_some()));
        let settings = Settings { patience: Duration::ZERO, ..bench.settings() };
        for _ in 0..3 {
            assert!(bench.open(&settings).is_err(), "{carrier:?}");
        }
        let came = bench.until(|came| !came.is_empty());
        assert!(matches!(came[..], [Came::TurnedAway(_)]), "people are told once: {came:?}");
        bench.ahead = Duration::from_secs(10);
        let mut second = bench.open(&settings).unwrap();
        let came = bench.until(|came| came.len() == 2);
        assert_eq!(came, [Came::Down(Lost::Silent), Came::Up("tlu".into())], "{carrier:?}");
        bench.expect(&mut second, Order::Start { run: 7 });
        assert!(stopped.wait(Duration::ZERO).is_ok_and(|order| order == Order::Closed), "{carrier:?}");
    }
}

#[test]
fn a_source_that_has_nothing_to_send_keeps_its_place_since_it_answers() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        let settings = Settings { patience: Duration::ZERO, ..bench.settings() };
        for _ in 0..3 {
            assert!(bench.open(&settings).is_err(), "{carrier:?}");
            assert_eq!(sender.wait(Duration::ZERO).unwrap(), Order::Nothing);
            bench.wait_until(&mut sender, |sender| sender.is_flushed());
            (0..20).for_each(|_| bench.poll());
            bench.ahead += Duration::from_secs(10);
        }
        let came = bench.until(|came| came.len() == 3);
        assert!(came.iter().all(|came| matches!(came, Came::TurnedAway(_))), "{carrier:?} {came:?}");
    }
}

#[test]
fn strangers_are_turned_away_with_the_reason() {
    for carrier in CARRIERS {
        let mut bench = Bench::with(carrier, |parameters| parameters.key = Some(Secret::new("key")));
        let right = Settings { key: Some(Secret::new("key")), ..bench.settings() };
        for (settings, expected) in [
            (Settings { name: "other".into(), ..right.clone() }, "this is the link of tlu, not of other"),
            (Settings { id: Some(5), ..right.clone() }, "has source id 0x00510000 here, and says 0x00000005"),
            (Settings { key: Some(Secret::new("yek")), ..right.clone() }, "does not know the key"),
        ] {
            let refused = bench.open(&settings).err().unwrap();
            assert!(matches!(refused, LinkError::Refused { .. }), "{carrier:?} {refused}");
            assert!(refused.to_string().contains(expected), "{carrier:?} {refused}");
        }
        assert_eq!(bench.intake.counters().turned_away, 3, "{carrier:?}");
        assert!(bench.open(&right).is_ok(), "{carrier:?}");
    }
}

#[test]
fn a_key_that_only_one_end_has_makes_no_link() {
    let mut bench = Bench::new(Carrier::Shared);
    let with_key = Settings { key: Some(Secret::new("key")), ..bench.settings() };
    assert!(matches!(bench.open(&with_key).err(), Some(LinkError::Unproven { .. })));
    let mut bench = Bench::with(Carrier::Shared, |parameters| parameters.key = Some(Secret::new("key")));
    let without = bench.settings();
    assert!(matches!(bench.open(&without).err(), Some(LinkError::Unproven { .. })));
    let without = Settings { key: None, ..without };
    assert!(matches!(Sender::open("tcp://127.0.0.1:1", &without).err(), Some(LinkError::KeyMissing { .. })));
}

#[test]
fn a_source_learns_that_the_partition_is_gone() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.started(7);
        drop(bench);
        assert_eq!(sender.wait(Duration::from_secs(60)).unwrap(), Order::Closed, "{carrier:?}");
        assert_eq!(sender.reserve(1).err(), Some(LinkError::Closed), "{carrier:?}");
        assert_eq!(sender.flush(), Err(LinkError::Closed), "{carrier:?}");
    }
}

#[test]
fn an_address_without_a_partition_is_an_error_that_says_so() {
    let folder = testkit::TempDir::new("link");
    let at = format!("shm:{}", folder.path().join("nobody.sock").display());
    let settings = Settings { name: "tlu".into(), id: None, key: None, patience: Duration::ZERO };
    let error = Sender::open(&at, &settings).err().unwrap();
    assert!(matches!(&error, LinkError::NoPartition { .. }), "{error}");
}

#[test]
fn a_socket_whose_owner_died_is_taken_over_and_a_living_one_is_not() {
    let bench = Bench::new(Carrier::Shared);
    let path = bench.at().strip_prefix("shm:").unwrap().to_owned();
    let parameters = || bench::parameters(link::Address::Shared(path.clone().into()), None);
    assert!(matches!(bench::open_intake(parameters()).err(), Some(LinkError::InUse { .. })));
    let kept = std::fs::hard_link(&path, format!("{path}.kept"));
    kept.unwrap();
    let folder = bench.into_folder();
    // What a process leaves that cannot tidy up: the name of a socket where nobody listens.
    std::fs::rename(format!("{path}.kept"), &path).unwrap();
    assert!(bench::open_intake(parameters()).is_ok());
    drop(folder);
}

/// More than it takes to read what a source has said.
const STATUS_POLLS: usize = 10;
