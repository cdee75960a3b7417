//! Which clears are sent together, and again.

use std::time::Duration;

use base::ids::EventId;
use base::time::Time;
use dataflow::message::{Message, MissedClears};
use dataflow::readout::clear_sequence::MISSING_MAX;
use dataflow::readout::clears::Clears;

#[test]
fn a_group_is_repeated_as_it_was() {
    let mut clears = clears();
    assert!(!clears.add(Time::ZERO, EventId(7)));
    assert!(clears.add(Time::ZERO, EventId(8)));
    let sent = clears.flush(Time::ZERO, EventId(9), false);
    clears.flush(Time::ZERO, EventId(10), false);
    assert_eq!(clears.repeat(MissedClears { first: 1, bits: 1 }).collect::<Vec<_>>(), [sent]);
}

#[test]
fn nothing_follows_the_last_group() {
    let mut clears = clears();
    clears.add(Time::ZERO, EventId(7));
    let last = clears.flush(Time::ZERO, EventId(9), true);
    assert_eq!((clears.flush(Time::ZERO, EventId(9), false), clears.sent()), (last, 1));
}

#[test]
fn what_is_asked_beyond_reason_is_bounded() {
    let mut clears = clears();
    let all_from = |first| MissedClears { first, bits: u64::MAX };
    assert_eq!(clears.repeat(all_from(0)).count(), 0);
    for _ in 0..2 * MISSING_MAX {
        clears.flush(Time::ZERO, EventId(5), false);
    }
    assert_eq!([0, 1, u64::MAX].map(|first| clears.repeat(all_from(first)).count()), [63, 64, 0]);
    let is_kept = |clear: &Message| matches!(clear, Message::Clear { oldest_valid: EventId(5), .. });
    let kept = |sequence| clears.repeat(MissedClears { first: sequence, bits: 1 }).filter(is_kept).count() as u64;
    assert_eq!((1..=2 * MISSING_MAX).map(kept).sum::<u64>(), MISSING_MAX);
}

fn clears() -> Clears {
    Clears::new(2, Duration::from_millis(10))
}
