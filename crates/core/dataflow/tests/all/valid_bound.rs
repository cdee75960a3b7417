//! The oldest event that can still be asked for, as others say it.

use base::ids::EventId;
use dataflow::readout::valid_bound::ValidBound;

/// The bound, and what was refused, after messages that say so much when as much is known.
fn after(said: &[(u64, u64)]) -> (u64, u64) {
    let mut bound = ValidBound::default();
    for (sequence, (said, known)) in (1..).zip(said) {
        bound.note_issued(EventId(*known));
        bound.take(sequence, EventId(*said));
    }
    (bound.oldest().0, bound.refused())
}

#[test]
fn one_message_does_not_raise_it_beyond_what_is_known() {
    assert_eq!(after(&[(5, 9), (10, 9)]), (10, 0));
    assert_eq!(after(&[(5, 9), (1 << 40, 9)]), (5, 0));
    assert_eq!(after(&[(5, 9), (1 << 40, 9), (6, 9)]), (6, 1));
    assert_eq!(after(&[(5, 9), (1 << 40, 9), (12, 9), (13, 9)]), (12, 1));
}

#[test]
fn a_receiver_that_lags_behind_or_sees_few_events_follows() {
    assert_eq!(after(&[(20, 9), (22, 9), (25, 9)]), (22, 0));
    assert_eq!(after(&[(20, 9), (22, 29)]), (22, 0));
}

#[test]
fn at_the_end_the_last_word_holds() {
    let mut bound = ValidBound::default();
    bound.take(1, EventId(1 << 40));
    bound.settle();
    assert_eq!(bound.oldest(), EventId(1 << 40));
    bound.take(2, EventId(u64::MAX));
    assert_eq!(bound.oldest(), EventId(u64::MAX));
}

#[test]
fn an_earlier_group_that_is_late_does_not_contradict_the_last_word() {
    let mut bound = ValidBound::default();
    bound.note_issued(EventId(9));
    bound.take(3, EventId(u64::MAX));
    bound.take(2, EventId(5));
    assert_eq!((bound.oldest(), bound.refused()), (EventId(5), 0));
    bound.settle();
    assert_eq!(bound.oldest(), EventId(u64::MAX));
}
