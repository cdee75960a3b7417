//! What a read-out system knows of a timed link, besides its chunks.

use alloc::collections::VecDeque;

use super::parameters::TimedParameters;
use crate::message::EventInfo;
use base::ids::EventId;
use base::time::Time;
use timing::Interval;
use timing::slices::Slices;

/// A link whose data belong to events by their time.
pub(super) struct Timed {
    pub(super) parameters: TimedParameters,
    /// Events that were issued, and whose data may still come.
    pub(super) waiting: VecDeque<Waiting>,
}

/// An event whose data may still come.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    pub(super) event: EventInfo,
    pub(super) interval: Interval,
    /// When it is made of what is there.
    pub(super) due: Time,
}

impl Timed {
    pub(super) fn new(parameters: TimedParameters) -> Self {
        Self { parameters, waiting: VecDeque::new() }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.waiting.front().map(|waiting| waiting.due)
    }

    /// The event is cleared: nothing is made of it any more.
    pub(super) fn forget(&mut self, event: EventId) {
        self.waiting.retain(|waiting| waiting.event.event != event);
    }

    pub(super) fn slices(&self, length: u64) -> Slices {
        Slices { length, before: self.parameters.before, after: self.parameters.after }
    }
}
