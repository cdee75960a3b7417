//! The sources of a read-out system beside one of them, the reference.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::slip::{SHIFT_MAX, Slip, Slips};

/// Brings together what the reference and other sources say of equal numbers, whoever is ahead, and watches for slips.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Of the reference, with rising numbers.
    reference: VecDeque<Stamp>,
    followers: Vec<Follower>,
}

#[derive(Clone, Copy, Debug)]
struct Stamp {
    number: u64,
    /// How many the reference has said before.
    ordinal: u64,
    time: u64,
}

#[derive(Clone, Debug, Default)]
struct Follower {
    /// What the reference has not passed.
    waiting: VecDeque<(u64, u64)>,
    /// Whether its numbers are those of the reference in order, whatever that calls them.
    counts: bool,
    slips: Slips,
}

impl Comparison {
    /// Of so many sources.
    pub fn new(sources: usize) -> Self {
        Self { reference: VecDeque::new(), followers: (0..sources).map(|_| Follower::default()).collect() }
    }

    /// A number of the reference, its place among all, and its time, ns. One that does not rise is left out.
    pub fn lead(&mut self, number: u64, ordinal: u64, time: u64) {
        if self.reference.back().is_some_and(|newest| newest.number >= number) {
            return;
        }
        push(&mut self.reference, Stamp { number, ordinal, time });
    }

    /// A number of a source, or how many it has counted before, and its time in ns of its own clock.
    pub fn follow(&mut self, source: usize, number: u64, counts: bool, time: u64) {
        let follower = &mut self.followers[source];
        follower.counts = counts;
        push(&mut follower.waiting, (number, time));
    }

    /// Looks at what has come. Slips that are certain now, with their sources.
    pub fn judge(&mut self, mut report: impl FnMut(usize, Slip)) {
        let Self { reference, followers } = self;
        let Some(newest) = reference.back().copied() else { return };
        for (source, follower) in followers.iter_mut().enumerate() {
            let counts = follower.counts;
            let key = |stamp: &Stamp| if counts { stamp.ordinal } else { stamp.number };
            let is_passed = |(number, _): &mut (u64, u64)| number.saturating_add(SHIFT_MAX as u64) <= key(&newest);
            while let Some((number, time)) = follower.waiting.pop_front_if(is_passed) {
                let slip = follower.slips.observe(number, time, |shift| {
                    let wanted = number.checked_add_signed(shift)?;
                    let place = reference.binary_search_by_key(&wanted, key).ok()?;
                    Some(reference[place].time)
                });
                slip.into_iter().for_each(|slip| report(source, slip));
            }
        }
    }

    /// What is known of a source.
    pub fn slips(&self, source: usize) -> &Slips {
        &self.followers[source].slips
    }
}

/// Nobody waits for the oldest of so many.
fn push<T>(stamps: &mut VecDeque<T>, stamp: T) {
    if stamps.len() == STAMPS_MAX {
        stamps.pop_front();
    }
    stamps.push_back(stamp);
}

/// More than what is on its way in links and pages.
const STAMPS_MAX: usize = 1 << 16;
