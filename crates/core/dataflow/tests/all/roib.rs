//! Records of several level-1 processors become one trigger.

use std::time::Duration;

use base::ids::EventId;
use base::random::Random;
use base::time::Time;
use dataflow::level1::roib::{Awaited, Dropped, Joined, Roib, TriggerRecord};
use dataflow::message::{ROIS_MAX, Roi};

const TIMEOUT: Duration = Duration::from_nanos(100);

fn record(event: u64, kind: u8) -> TriggerRecord {
    let rois = vec![Roi { kind, ..Roi::default() }];
    TriggerRecord { event: EventId(event), bcid: Some(9), items: 1 << kind, rois, ..TriggerRecord::default() }
}

fn at(ns: u64) -> Time {
    Time::from_ns(ns)
}

#[test]
fn records_of_all_processors_make_one_trigger() {
    let mut roib = Roib::new(2, TIMEOUT);
    assert_eq!(roib.take(at(0), 1, TriggerRecord { vetoed: 3, ..record(7, 2) }), Ok(()));
    assert_eq!(roib.next(at(0)), None);
    let typed = TriggerRecord { trigger_type: Some(0x84), bcid: None, vetoed: 2, ..record(7, 1) };
    assert_eq!(roib.take(at(0), 0, typed), Ok(()));
    let joined = roib.next(at(0)).expect("a complete event");
    let kinds: Vec<u8> = joined.trigger.rois.iter().map(|roi| roi.kind).collect();
    assert_eq!((joined.event, joined.present, joined.flawed, joined.vetoed), (EventId(7), 3, 0, 3));
    assert_eq!(kinds, [1, 2]);
    assert_eq!((joined.trigger.bcid, joined.trigger.trigger_type, joined.trigger.items), (9, 0x84, 6));
}

#[test]
fn who_has_gone_past_an_event_is_not_waited_for() {
    let mut roib = Roib::new(3, TIMEOUT);
    for event in [5, 9] {
        roib.take(at(0), 0, record(event, 0)).unwrap();
    }
    roib.take(at(0), 1, record(9, 0)).unwrap();
    assert_eq!(roib.next(at(0)), None, "the third may still send 5");
    roib.pass(at(1), 2, EventId(9));
    assert_eq!(roib.next(at(1)).map(|joined| (joined.event, joined.present)), Some((EventId(5), 1)));
    assert_eq!(roib.next(at(1)), None);
    assert_eq!(roib.next_deadline(), Some(at(101)));
    assert_eq!(roib.next(at(101)).map(|joined| (joined.event, joined.present)), Some((EventId(9), 3)));
    assert_eq!(roib.take(at(102), 2, record(9, 0)), Err(Dropped::Late));
}

#[test]
fn who_goes_on_slowly_is_waited_for_and_who_must_be_there_for_ever() {
    let mut roib = Roib::new(2, TIMEOUT);
    roib.take(at(0), 0, record(50, 0)).unwrap();
    for event in 0..10 {
        roib.take(at(90 * event), 1, record(event, 0)).unwrap();
        assert_eq!(roib.next(at(90 * event)).map(|joined| joined.event), Some(EventId(event)));
        assert_eq!(roib.next(at(90 * event + 99)), None);
    }
    roib.hold(at(2_000), 1, true);
    assert_eq!((roib.next_deadline(), roib.next(at(9_000))), (None, None), "nobody lets it");
    roib.hold(at(9_000), 1, false);
    assert_eq!(roib.next_deadline(), Some(at(9_100)));
    roib.set_awaited(1, Awaited::Always);
    assert_eq!((roib.next_deadline(), roib.next(at(1_000_000))), (None, None));
    roib.set_awaited(1, Awaited::No);
    assert_eq!(roib.next(at(1_000_000)).map(|joined| joined.event), Some(EventId(50)));
}

#[test]
fn what_comes_again_goes_back_or_is_wild_is_dropped() {
    let mut roib = Roib::new(1, TIMEOUT);
    roib.take(at(0), 0, record(1 << 40, 0)).unwrap();
    for (event, dropped) in [
        (1 << 40, Dropped::Again),
        ((1 << 40) - 7, Dropped::GoesBack),
        (3, Dropped::Wild),
        ((1 << 41) + 1, Dropped::Wild),
    ] {
        assert_eq!(roib.take(at(0), 0, record(event, 0)), Err(dropped));
    }
    assert_eq!(roib.take(at(0), 0, record((1 << 40) + 1000, 0)), Ok(()), "numbers may have gaps");
}

#[test]
fn records_that_do_not_fit_one_another_are_marked() {
    let mut roib = Roib::new(2, TIMEOUT);
    let full = TriggerRecord { rois: vec![Roi::default(); ROIS_MAX], ..record(0, 0) };
    roib.take(at(0), 0, full).unwrap();
    roib.take(at(0), 1, record(0, 1)).unwrap();
    roib.take(at(0), 0, record(1, 0)).unwrap();
    roib.take(at(0), 1, TriggerRecord { bcid: Some(10), ..record(1, 1) }).unwrap();
    for _ in 0..2 {
        let joined = roib.next(at(0)).unwrap();
        assert_eq!((joined.flawed, joined.trigger.bcid), (2, 9));
        assert!(joined.trigger.rois.len() <= ROIS_MAX);
    }
}

/// Whatever is lost, doubled or slow: events go out once and in order, and every record is in one or was dropped.
#[test]
fn every_record_is_in_one_event_or_dropped() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let mut roib = Roib::new(3, TIMEOUT);
        let (mut next, mut dropped, mut sent) = ([10_u64; 3], 0, 0);
        let mut events: Vec<Joined> = Vec::new();
        for step in 0..3000 {
            let now = at(step * 10);
            let processor = random.below(3) as usize;
            next[processor] += u64::from(!random.chance(0.1)) + u64::from(random.chance(0.1));
            dropped += u64::from(roib.take(now, processor, record(next[processor], processor as u8)).is_err());
            sent += 1;
            events.extend(std::iter::from_fn(|| roib.next(now)));
        }
        (0..3).for_each(|processor| roib.set_awaited(processor, Awaited::No));
        events.extend(std::iter::from_fn(|| roib.next(at(0))));
        assert!(events.is_sorted_by(|one, other| one.event < other.event), "seed {seed}");
        let records: u64 = events.iter().map(|joined| u64::from(joined.present.count_ones())).sum();
        assert_eq!(records + dropped, sent, "seed {seed}");
    }
}
