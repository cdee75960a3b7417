//! Events that are slices of time, made of what sources send by themselves.

use alloc::vec::Vec;
use core::time::Duration;

use crate::slices::{Metronome, Passed};
use base::ids::{EventId, NodeId};
use base::time::Time;

/// Level 1 as the metronome: it issues slices in the order of time, or leaves them out, for all read-out systems alike.
#[derive(Clone, Debug)]
pub struct Sliced {
    readout: Vec<NodeId>,
    metronome: Metronome,
    /// The next slice, if it can be made.
    ready: Option<EventId>,
    is_over: bool,
    /// Whether the sources were told to stop.
    stopped: bool,
}

impl Sliced {
    /// Slices of this length. They are made a grace after the first source has passed them, at the latest.
    pub fn of(length: Duration, grace: Duration, readout: Vec<NodeId>) -> Self {
        let metronome = Metronome::new(length, grace, readout.len());
        Self { readout, metronome, ready: None, is_over: false, stopped: false }
    }

    /// A read-out system says how far its sources have come.
    pub fn take(&mut self, now: Time, from: NodeId, passed: Passed) {
        if let Some(index) = self.index(from) {
            self.metronome.take(now, index, passed);
        }
    }

    /// A read-out system is there, in a new life.
    pub fn come(&mut self, node: NodeId) {
        if let Some(index) = self.index(node) {
            self.metronome.come(index);
        }
    }

    /// It is away; it may return, if not for good.
    pub fn leave(&mut self, node: NodeId, for_good: bool) {
        if let Some(index) = self.index(node) {
            self.metronome.leave(index, for_good);
        }
    }

    /// Looks what can be made now.
    pub fn look(&mut self, now: Time) {
        self.ready = self.metronome.ready(now).map(EventId);
        self.is_over = self.ready.is_none() && self.metronome.is_over();
    }

    /// No slice below this one will be made; none before it is known which is the first.
    pub fn next(&self) -> Option<EventId> {
        self.metronome.next().map(EventId)
    }

    /// The next slice, if it can be made: it is made, or left out.
    pub fn pop(&mut self, now: Time) -> Option<EventId> {
        let slice = self.ready.take()?;
        self.metronome.take_next();
        self.look(now);
        Some(slice)
    }

    /// Whether the next slice has waited for room as long as it may.
    pub fn is_late(&self, now: Time) -> bool {
        self.metronome.waits_until().is_some_and(|until| until <= now)
    }

    /// When to look again.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.ready.is_some() { self.metronome.waits_until() } else { self.metronome.next_deadline() }
    }

    /// Whether no slice can be made now.
    pub fn is_empty(&self) -> bool {
        self.ready.is_none()
    }

    /// Whether none will be any more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The read-out systems, if they have still to be told that their sources are to stop.
    pub fn stop(&mut self) -> &[NodeId] {
        if core::mem::replace(&mut self.stopped, true) { &[] } else { &self.readout }
    }

    /// Whether they were told; one that returns has to be told again.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    fn index(&self, node: NodeId) -> Option<usize> {
        self.readout.iter().position(|readout| *readout == node)
    }
}
