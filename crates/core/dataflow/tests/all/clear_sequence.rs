//! Which clears are missing.

use dataflow::message::MissedClears;
use dataflow::readout::clear_sequence::{ClearSequence, MISSING_MAX};

#[test]
fn a_gap_is_named_and_closed() {
    let mut clears = ClearSequence::from_start();
    assert!(clears.take(1, false));
    assert!(clears.take(5, true));
    assert_eq!(clears.missed(), Some(MissedClears { first: 2, bits: 0b111 }));
    assert!(clears.take(3, false));
    assert!(!clears.take(3, false), "a repetition");
    assert_eq!(clears.missed(), Some(MissedClears { first: 2, bits: 0b101 }));
    assert!(clears.take(2, false) && !clears.is_complete());
    assert!(clears.take(4, false) && clears.is_complete());
}

#[test]
fn one_group_far_ahead_does_not_make_the_others_old() {
    let mut clears = ClearSequence::from_start();
    assert!(clears.take(1, false));
    assert!(!clears.take(1 << 40, true));
    assert!(clears.take(2, false) && clears.take(3, false));
    assert_eq!((clears.refused(), clears.first_missing(), clears.is_complete()), (1, None, false));
}

#[test]
fn who_begins_late_begins_again_where_the_first_is_far_from_the_others() {
    let mut clears = ClearSequence::from_next_seen();
    assert!(clears.take(1 << 40, true) && clears.take(7, false) && clears.take(9, false));
    assert_eq!((clears.refused(), clears.missed()), (1, Some(MissedClears { first: 8, bits: 1 })));
    assert!(!clears.take(1 << 40, false) && clears.take(8, false));
    assert_eq!((clears.refused(), clears.is_complete()), (2, false));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut clears = ClearSequence::from_start();
    clears.take(1 << 40, false);
    assert!(clears.take((1 << 40) + 1, false));
    assert!(clears.has_lost());
    assert_eq!(clears.first_missing(), Some((1 << 40) + 1 - (MISSING_MAX - 1)));
}

#[test]
fn a_group_is_lost_when_nobody_keeps_it_any_more() {
    let mut clears = ClearSequence::from_start();
    clears.take(2, false);
    (3..=MISSING_MAX).for_each(|sequence| assert!(clears.take(sequence, false)));
    assert_eq!((clears.first_missing(), clears.has_lost()), (Some(1), false));
    clears.take(MISSING_MAX + 1, true);
    assert!(clears.has_lost() && clears.is_complete());
}
