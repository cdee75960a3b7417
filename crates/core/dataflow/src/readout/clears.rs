//! Grouped clears `[EB2007 §II-B.1]`: which events the read-out systems may forget.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use crate::message::{Message, MissedClears};
use crate::readout::clear_sequence::MISSING_MAX;
use base::ids::EventId;
use base::time::Time;

/// Collects events to clear into numbered groups, and keeps the groups for those who missed one.
#[derive(Clone, Debug)]
pub struct Clears {
    size: usize,
    age: Duration,
    pending: Vec<EventId>,
    due: Option<Time>,
    sequence: u64,
    /// Groups that were sent, each with the bound that it said.
    history: VecDeque<(EventId, Arc<Vec<EventId>>)>,
    closed: bool,
}

impl Clears {
    /// Groups of `size` events, none kept back longer than `age`.
    pub fn new(size: usize, age: Duration) -> Self {
        Self {
            size,
            age,
            pending: Vec::with_capacity(size),
            due: None,
            sequence: 0,
            history: VecDeque::new(),
            closed: false,
        }
    }

    /// Begins to send groups, empty ones if nothing else.
    pub fn start(&mut self, now: Time) {
        self.due.get_or_insert(now + EMPTY_EVERY);
    }

    /// Adds an event; whether the group is full.
    pub fn add(&mut self, now: Time, event: EventId) -> bool {
        self.pending.push(event);
        let due = now + self.age;
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        self.pending.len() >= self.size
    }

    /// When the group has to be sent; also an empty one, so that a lost group is noticed.
    pub fn next_deadline(&self) -> Option<Time> {
        self.due
    }

    /// The next group, empty or not; behind the last, that one again, so that those who miss groups can catch up.
    pub fn flush(&mut self, now: Time, oldest_valid: EventId, last: bool) -> Message {
        self.due = Some(now + EMPTY_EVERY);
        if self.closed && self.pending.is_empty() {
            let (_, events) = self.history.back().cloned().unwrap_or_default();
            return Message::Clear { sequence: self.sequence, oldest_valid, last: true, events };
        }
        self.sequence += 1;
        self.closed |= last;
        let events = Arc::new(self.pending.drain(..).collect::<Vec<_>>());
        if self.history.len() as u64 == MISSING_MAX {
            self.history.pop_front();
        }
        self.history.push_back((oldest_valid, Arc::clone(&events)));
        Message::Clear { sequence: self.sequence, oldest_valid, last: self.closed, events }
    }

    /// These groups again, as they were: by a newer bound a receiver could forget what a later group clears. What is too old to be
    /// kept comes as an empty group that says no bound: it is left to garbage collection.
    pub fn repeat(&self, missed: MissedClears) -> impl Iterator<Item = Message> + '_ {
        let kept_from = self.sequence + 1 - self.history.len() as u64;
        let were_sent = missed.sequences().filter(|sequence| (1..=self.sequence).contains(sequence));
        were_sent.map(move |sequence| {
            let index = sequence.checked_sub(kept_from);
            let kept = index.map(|index| self.history[index as usize].clone());
            let (oldest_valid, events) = kept.unwrap_or_default();
            Message::Clear { sequence, oldest_valid, last: false, events }
        })
    }

    /// Events that wait for their group.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// How many groups were sent.
    pub fn sent(&self) -> u64 {
        self.sequence
    }
}

/// A receiver that misses groups finds out within this time.
const EMPTY_EVERY: Duration = Duration::from_millis(100);
