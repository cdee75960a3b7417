//! Puts in order what a network has turned round.

use core::time::Duration;
use std::collections::BTreeMap;

use base::time::Time;

/// Holds back what came too early, for a while.
pub(crate) struct Sorter<T> {
    next: Option<u64>,
    held: BTreeMap<u64, T>,
    /// When the first of those held came.
    since: Time,
    missing: u64,
}

impl<T> Sorter<T> {
    pub(crate) fn new() -> Self {
        Self { next: None, held: BTreeMap::new(), since: Time::ZERO, missing: 0 }
    }

    /// Begins with another first number. Gives how many were held.
    pub(crate) fn restart(&mut self) -> usize {
        let held = self.held.len();
        (self.next, self.missing) = (None, 0);
        self.held.clear();
        held
    }

    /// Numbers that were passed over.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Takes an item. False: it came twice, or too late.
    pub(crate) fn push(&mut self, now: Time, number: u64, item: T) -> bool {
        if number < *self.next.get_or_insert(number) || self.held.contains_key(&number) {
            return false;
        }
        if self.held.is_empty() {
            self.since = now;
        }
        self.held.insert(number, item);
        true
    }

    /// The next item, if none is expected before it any more; with `all`, none is.
    pub(crate) fn pop(&mut self, now: Time, all: bool) -> Option<(u64, T)> {
        if !self.is_ready(now) && !all {
            return None;
        }
        let (number, item) = self.held.pop_first()?;
        self.missing += number - self.next.unwrap_or(number);
        self.next = Some(number.saturating_add(1));
        self.since = now;
        Some((number, item))
    }

    /// Whether there is something to [`pop`](Self::pop).
    pub(crate) fn is_ready(&self, now: Time) -> bool {
        let Some((first, _)) = self.held.first_key_value() else { return false };
        Some(*first) == self.next || self.held.len() > HELD_MAX || now.since(self.since) >= PATIENCE
    }

    /// When what is held is given up waiting for.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        (!self.held.is_empty()).then(|| self.since + PATIENCE)
    }
}

/// More than a switch turns round.
const HELD_MAX: usize = 32;
/// Longer than any path through a network of one experiment differs from another.
const PATIENCE: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use base::time::Time;

    use super::{HELD_MAX, PATIENCE, Sorter};

    fn popped(sorter: &mut Sorter<()>, now: Time) -> Vec<u64> {
        core::iter::from_fn(|| sorter.pop(now, false)).map(|(number, ())| number).collect()
    }

    #[test]
    fn what_was_turned_round_is_turned_back() {
        let mut sorter = Sorter::new();
        assert!([5, 7, 8].iter().all(|number| sorter.push(Time::ZERO, *number, ())));
        assert_eq!(popped(&mut sorter, Time::ZERO), [5]);
        assert!(!sorter.push(Time::ZERO, 5, ()) && !sorter.push(Time::ZERO, 8, ()));
        assert!(sorter.push(Time::ZERO, 6, ()));
        assert_eq!(popped(&mut sorter, Time::ZERO), [6, 7, 8]);
        assert_eq!((sorter.missing(), sorter.next_deadline()), (0, None));
    }

    #[test]
    fn what_does_not_come_is_missing_after_a_while() {
        let mut sorter = Sorter::new();
        assert!(sorter.push(Time::ZERO, 0, ()) && sorter.push(Time::ZERO, 3, ()));
        assert_eq!(popped(&mut sorter, Time::ZERO), [0]);
        let due = sorter.next_deadline().unwrap();
        assert_eq!(due, Time::ZERO + PATIENCE);
        assert_eq!(popped(&mut sorter, due), [3]);
        assert_eq!(sorter.missing(), 2);
        assert!(!sorter.push(due, 2, ()), "too late");
    }

    #[test]
    fn no_more_is_held_than_a_network_turns_round() {
        let mut sorter = Sorter::new();
        assert!(sorter.push(Time::ZERO, 0, ()));
        assert_eq!(popped(&mut sorter, Time::ZERO), [0]);
        for number in 2..=HELD_MAX as u64 + 1 {
            assert!(sorter.push(Time::ZERO, number, ()));
        }
        assert_eq!(popped(&mut sorter, Time::ZERO), []);
        assert!(sorter.push(Time::ZERO, 500, ()));
        assert_eq!(popped(&mut sorter, Time::ZERO).len(), HELD_MAX);
        assert_eq!((sorter.missing(), sorter.restart()), (1, 1));
        assert!(sorter.push(Time::ZERO + Duration::from_secs(1), 2, ()), "any number is the first");
    }
}
