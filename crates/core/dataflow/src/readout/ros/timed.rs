//! What a read-out system knows of a link whose data belong to events by time or count, besides its chunks.

use alloc::collections::VecDeque;

use super::parameters::TimedParameters;
use crate::message::EventInfo;
use base::ids::EventId;
use base::time::Time;
use timing::Interval;
use timing::slices::Slices;

/// A link whose data belong to events by their time, or their count.
pub(super) struct Timed {
    pub(super) parameters: TimedParameters,
    /// Events that were issued, and whose data may still come.
    pub(super) waiting: VecDeque<Waiting>,
    /// Where the newest event begins.
    newest: Option<u64>,
    /// Data below it may have belonged to an event that was made before the source had passed it.
    pub(super) missed: u64,
}

/// An event whose data may still come.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) event: EventInfo,
    /// When it is; none if that is not known.
    pub(super) time: Interval,
    /// When it is made of what is there.
    pub(super) due: Time,
}

impl Timed {
    pub(super) fn new(parameters: TimedParameters) -> Self {
        Self { parameters, waiting: VecDeque::new(), newest: None, missed: 0 }
    }

    /// An event was issued.
    pub(super) fn issue(&mut self, waiting: Waiting, seen: impl Fn(Interval) -> Option<Interval>) {
        let taken = self.taken(&waiting, seen);
        self.newest = if taken.is_none() { self.newest } else { Some(taken.begin) };
        self.waiting.push_back(waiting);
    }

    /// What an event takes, by the clock of the source: `seen` says where that has a time. None if it is not known.
    pub(super) fn taken(&self, waiting: &Waiting, seen: impl Fn(Interval) -> Option<Interval>) -> Interval {
        self.parameters.rule.of(waiting.event.ordinal, seen(waiting.time)).unwrap_or_default()
    }

    /// What begins before is in none of the events that wait, nor in later ones.
    pub(super) fn horizon(&self, seen: impl Fn(Interval) -> Option<Interval>) -> u64 {
        self.waiting.front().map_or(0, |waiting| self.taken(waiting, seen).begin)
    }

    /// Whether data that begin here may belong to an event: they are near the newest one, or the newest data of the source.
    pub(super) fn is_near(&self, begin: u64, newest: Option<u64>) -> bool {
        let known = [self.newest, newest];
        known == [None; 2] || known.into_iter().flatten().any(|near| self.parameters.rule.is_near(near, begin))
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.waiting.front().map(|waiting| waiting.due)
    }

    /// The event is cleared: nothing is made of it any more.
    pub(super) fn forget(&mut self, event: EventId) {
        self.waiting.retain(|waiting| waiting.event.event != event);
    }

    /// What slices take of the source.
    pub(super) fn slices(&self, slices: Slices) -> Slices {
        Slices { before: self.parameters.rule.before, after: self.parameters.rule.after, ..slices }
    }
}
