//! What a link does, once for each carrier.

mod bench;

use bench::{Bench, CARRIERS, Came};
use link::{Flags, Head, LinkOrder, Order};

#[test]
fn fragments_come_as_they_were_sent() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        let mut sender = bench.connected();
        bench.intake.order(LinkOrder::Start { run: 7 });
        bench.expect(&mut sender, Order::Start { run: 7 });
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
            assert!(found.head.flags.contains(announced) && !found.damaged, "{carrier:?} {index}");
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
    let len = (index * 331) % (bench::SIZE_MAX + 1);
    (0..len).map(|at| (at * 7 + index) as u8).collect()
}
