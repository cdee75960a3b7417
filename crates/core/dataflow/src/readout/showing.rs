//! Events of a read-out system, or of a crate, that are shown to those who watch: what an event builder gets of them.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::component::Outbox;
use crate::message::{BuiltEvent, EventInfo, Message, Missing, Recording};
use crate::node::RUN_CONTROL;
use base::bulk::Bulk;
use base::ids::EventId;
use base::sampling::{Sampler, SamplingRule};

/// Events that are to be shown, and what came of others.
pub(crate) struct Showing {
    pub(crate) sampler: Sampler,
    /// Those whose data may still come, the oldest first.
    pub(crate) waiting: Vec<EventInfo>,
}

impl Showing {
    pub(crate) fn new(rule: Option<SamplingRule>) -> Self {
        Self { sampler: Sampler::new(rule), waiting: Vec::new() }
    }

    /// An event builder gets this event: it is shown when its data are there, if it is one of those.
    pub(crate) fn note(&mut self, event: &EventInfo) {
        if self.sampler.chooses(event.event, event.trigger_type, event.items) {
            if self.waiting.len() == WAITING_MAX {
                self.waiting.remove(0);
                self.sampler.lost += 1;
            }
            self.waiting.push(*event);
        }
    }

    /// Shows these data, as far as somebody has asked for them.
    pub(crate) fn show(&mut self, event: EventInfo, missing: &[Missing], bulk: Bulk, out: &mut Outbox) {
        if self.sampler.takes(event.event, event.trigger_type, event.items, bulk.len()) {
            let mut missing: Vec<u32> = missing.iter().map(|missing| missing.rob).collect();
            missing.sort_unstable();
            let built = BuiltEvent { event, oldest_unfinished: EventId(0), missing, bulk };
            out.send(RUN_CONTROL, Message::Sample(Box::new(Recording { built, streams: 0, debug: None })));
        }
    }
}

/// More than anybody asks for at a time.
const WAITING_MAX: usize = 64;
