//! Triggers that are the fragments of a source, told by the read-out system of its link.

use alloc::collections::VecDeque;

use crate::message::LinkTrigger;
use base::ids::{EventId, NodeId};

/// Level 1's side of the leading source.
#[derive(Clone, Debug)]
pub struct Led {
    ros: NodeId,
    arrived: VecDeque<LinkTrigger>,
    newest: Option<EventId>,
    over: bool,
    /// Whether the source was told to send.
    started: bool,
}

impl Led {
    /// The source leads whose link this read-out system has.
    pub fn by(ros: NodeId) -> Self {
        Self { ros, arrived: VecDeque::new(), newest: None, over: false, started: false }
    }

    /// The read-out system of the leading source.
    pub fn ros(&self) -> NodeId {
        self.ros
    }

    /// Takes what the read-out system tells. A trigger that a former life of it has told is none.
    pub fn arrive(&mut self, triggers: &[LinkTrigger], last: bool) {
        for &trigger in triggers {
            if self.newest < Some(trigger.event) {
                self.newest = Some(trigger.event);
                self.arrived.push_back(trigger);
            }
        }
        self.over |= last;
    }

    /// Nothing follows.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// The next trigger.
    pub fn pop(&mut self) -> Option<LinkTrigger> {
        self.arrived.pop_front()
    }

    /// Whether there is no trigger to issue now.
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Whether there will be none, either.
    pub fn is_over(&self) -> bool {
        self.over && self.arrived.is_empty()
    }

    /// Drops what came and was not issued; how many.
    pub fn discard(&mut self) -> usize {
        self.arrived.drain(..).count()
    }

    /// Whether the source was told to send.
    pub fn is_started(&self) -> bool {
        self.started
    }

    /// Whether the source has to be told that it is to send, or not.
    pub fn turn(&mut self, on: bool) -> bool {
        core::mem::replace(&mut self.started, on) != on
    }

    /// The read-out system has a new life, which was told nothing.
    pub fn forget(&mut self) {
        self.started = false;
    }
}
