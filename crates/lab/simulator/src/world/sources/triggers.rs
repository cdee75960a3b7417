//! What those that follow see of the leading source, or of processors: which triggers there are, and since when.

use std::collections::VecDeque;

use base::time::Time;

use super::{Line, Sources};
use crate::world::detectors::Rhythm;

/// Triggers that some source may still have to come to.
#[derive(Default)]
pub(super) struct Triggers {
    /// No more triggers below this number come.
    below: u64,
    /// Former and present values of `below`, each with the time from which it held; the oldest first.
    seen: VecDeque<(u64, Time)>,
    /// When the first ones came.
    began: Option<Time>,
}

impl Triggers {
    pub(super) fn new(first: u64) -> Self {
        Self { below: first, seen: VecDeque::new(), began: None }
    }

    /// Up to which number triggers have come.
    pub(super) fn below(&self) -> u64 {
        self.below
    }

    /// When the first ones came.
    pub(super) fn began(&self) -> Option<Time> {
        self.began
    }

    /// None for a trigger that is still to come.
    pub(super) fn since(&self, number: u64) -> Option<Time> {
        let place = self.seen.partition_point(|(below, _)| *below <= number);
        self.seen.get(place).map(|(_, since)| *since)
    }

    fn note(&mut self, below: u64, now: Time) {
        if self.below < below {
            self.below = below;
            self.seen.push_back((below, now));
            self.began.get_or_insert(now);
        }
    }

    /// Forgets what is before this number, and at least half of all. Returns the first number that it still knows.
    fn forget(&mut self, slowest: u64) -> u64 {
        let done = self.seen.partition_point(|(below, _)| *below <= slowest);
        let mut gone = self.seen.drain(..done.max(KEPT_MAX / 2));
        gone.next_back().map_or(slowest, |(below, _)| below)
    }
}

impl Sources {
    /// There are all triggers below this number. A source that is very far behind has lost the oldest ones.
    pub(super) fn note_triggers(&mut self, below: u64, now: Time) {
        self.triggers.note(below, now);
        if self.triggers.seen.len() < KEPT_MAX {
            return;
        }
        let follows = |line: &&mut Line| !matches!(line.source.rhythm, Rhythm::Alone(_));
        let slowest = self.lines.iter_mut().filter(follows).map(|line| line.next).min().unwrap_or(u64::MAX);
        let first = self.triggers.forget(slowest);
        self.lines.iter_mut().filter(follows).for_each(|line| line.next = line.next.max(first));
    }
}

/// So many are kept for sources that do not connect.
const KEPT_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::super::one_that_follows;
    use super::*;
    use crate::world::detectors::Detectors;

    fn sources() -> Sources {
        Sources::new(&Detectors { each: vec![one_that_follows()], ..Detectors::default() }, 1)
    }

    #[test]
    fn triggers_are_there_from_when_they_came_on() {
        let mut sources = sources();
        sources.note_triggers(1, Time::from_ns(5));
        sources.note_triggers(3, Time::from_ns(9));
        let since = [0, 1, 2, 3].map(|number| sources.triggers.since(number).map(Time::as_ns));
        assert_eq!(since, [Some(5), Some(9), Some(9), None]);
    }

    #[test]
    fn a_source_that_does_not_connect_loses_the_oldest_triggers() {
        let mut sources = sources();
        let end = 10 * KEPT_MAX as u64;
        (1..=end).for_each(|below| sources.note_triggers(below, Time::from_ns(below)));
        assert!(sources.triggers.seen.len() < KEPT_MAX);
        let next = sources.lines[0].next;
        assert!((end - KEPT_MAX as u64..end).contains(&next), "{next}");
        assert_eq!(
            sources.triggers.since(next),
            Some(Time::from_ns(next + 1)),
            "it goes on with a trigger that is known"
        );
    }

    #[test]
    fn what_all_have_come_to_is_forgotten() {
        let mut sources = sources();
        let most = KEPT_MAX as u64;
        (1..most).for_each(|below| sources.note_triggers(below, Time::from_ns(below)));
        sources.lines[0].next = most - 10;
        sources.note_triggers(most, Time::from_ns(most));
        assert_eq!((sources.triggers.seen.len(), sources.lines[0].next), (10, most - 10));
    }
}
