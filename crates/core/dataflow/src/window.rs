//! The receiver's side of the window of level 1.

use core::time::Duration;

use crate::component::Outbox;
use crate::message::Message;
use base::ids::NodeId;
use base::time::Time;

/// Counts the triggers that a component has taken and tells level 1 often enough that its window does not run dry.
#[derive(Clone, Debug)]
pub struct TakenCount {
    level1: Option<NodeId>,
    every: u64,
    taken: u64,
    told: u64,
    due: Option<Time>,
}

impl TakenCount {
    /// For a window of `in_flight` triggers; without level 1 nothing is told.
    pub fn new(level1: Option<NodeId>, in_flight: u64) -> Self {
        Self { level1, every: (in_flight / 4).max(1), taken: 0, told: 0, due: None }
    }

    /// Counts triggers that came together.
    pub fn take(&mut self, now: Time, count: usize, out: &mut Outbox) {
        self.taken += count as u64;
        if self.taken - self.told >= self.every {
            self.tell(out);
        } else if self.due.is_none() && self.level1.is_some() {
            self.due = Some(now + TELL_AFTER);
        }
    }

    /// When [`TakenCount::on_deadline`] has something to tell.
    pub fn next_deadline(&self) -> Option<Time> {
        self.due
    }

    /// Tells level 1 what it has not been told, if it is time.
    pub fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        if self.due.is_some_and(|due| due <= now) {
            self.tell(out);
        }
    }

    /// Tells level 1 at once: it may be a new one.
    pub fn tell(&mut self, out: &mut Outbox) {
        self.due = None;
        self.told = self.taken;
        if let Some(level1) = self.level1 {
            out.send(level1, Message::Taken(self.taken));
        }
    }
}

const TELL_AFTER: Duration = Duration::from_millis(1);
