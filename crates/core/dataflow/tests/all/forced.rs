//! How many decisions may be forced by time-outs.

use dataflow::level2::forced::ForcedShare;

#[test]
fn what_was_forced_before_the_last_thousand_decisions_is_forgotten() {
    let mut share = ForcedShare::new(0.01);
    (0..2 * WINDOW).for_each(|decision| share.note(decision < 10));
    assert!(share.allows_one());
    (0..10).for_each(|_| share.note(true));
    assert!(!share.allows_one());
}

#[test]
fn the_share_is_that_of_the_last_thousand() {
    let mut share = ForcedShare::new(0.01);
    let mut decisions = Vec::new();
    let forced = |decisions: &[bool]| decisions.iter().filter(|forced| **forced).count();
    for _ in 0..3 * WINDOW {
        decisions.push(share.allows_one());
        share.note(decisions[decisions.len() - 1]);
        let last = &decisions[decisions.len().saturating_sub(WINDOW)..];
        assert!(forced(last) * 100 <= last.len(), "{} of {}", forced(last), last.len());
    }
    assert_eq!(forced(&decisions[2 * WINDOW..]), 10);
    assert!(!ForcedShare::new(0.0).allows_one());
    assert!(ForcedShare::new(1.0).allows_one());
}

const WINDOW: usize = 1000;
