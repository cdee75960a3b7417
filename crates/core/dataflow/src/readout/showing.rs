//! Events of a read-out system, or of a crate, that are shown to those who watch: what an event builder gets of them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::component::Outbox;
use crate::message::{BuiltEvent, EventInfo, Message, Missing, Recording};
use crate::node::RUN_CONTROL;
use base::bulk::Bulk;
use base::ids::EventId;
use base::sampling::{Sampler, SamplingRule, Viewers};

/// Events that are to be shown, and what came of others.
pub(crate) struct Showing {
    pub(crate) sampler: Sampler,
    /// Those whose data may still come, the oldest first.
    pub(crate) waiting: VecDeque<EventInfo>,
}

impl Showing {
    pub(crate) fn new(rule: Option<SamplingRule>) -> Self {
        Self { sampler: Sampler::new(rule), waiting: VecDeque::new() }
    }

    /// An event builder gets this event: it is shown when its data are there, if it is one of those.
    #[inline]
    pub(crate) fn note(&mut self, event: &EventInfo) {
        if self.wants(event) {
            self.keep(event);
        }
    }

    fn keep(&mut self, event: &EventInfo) {
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
            self.sampler.lost += 1;
        }
        self.waiting.push_back(*event);
    }

    /// Whether such an event is to be shown, and there is room. One without room is lost.
    #[inline]
    pub(crate) fn wants(&mut self, event: &EventInfo) -> bool {
        self.sampler.is_watched() && self.wants_for_viewers(event)
    }

    fn wants_for_viewers(&mut self, event: &EventInfo) -> bool {
        let &EventInfo { event, trigger_type, items, .. } = event;
        let is_chosen = self.sampler.chooses(event, trigger_type, items);
        // A copy is asked, so that nothing counts as shown.
        let has_room = is_chosen && self.sampler.clone().takes(event, trigger_type, items, BYTES_MIN).any();
        self.sampler.lost += u64::from(is_chosen && !has_room);
        has_room
    }

    /// Shows so many bytes, if there are any and somebody has asked for so many. They are shared only then.
    pub(crate) fn show(
        &mut self,
        event: EventInfo,
        missing: &[Missing],
        len_bytes: u32,
        share: impl FnOnce() -> Bulk,
        out: &mut Outbox,
    ) {
        if len_bytes == 0 {
            self.sampler.lost += 1;
            return;
        }
        let viewers = self.sampler.takes(event.event, event.trigger_type, event.items, len_bytes as usize);
        if viewers.any() {
            let bulk = share();
            let mut missing: Vec<u32> = missing.iter().map(|missing| missing.rob).collect();
            missing.sort_unstable();
            let built = BuiltEvent { event, oldest_unfinished: EventId(0), missing, bulk };
            show(viewers, Recording { built, streams: 0, debug: None }, out);
        }
    }
}

/// Shows an event to those who watch.
pub(crate) fn show(viewers: Viewers, recording: Recording, out: &mut Outbox) {
    if viewers.here {
        out.show(recording.clone());
    }
    if viewers.control {
        out.send(RUN_CONTROL, Message::Sample(Box::new(recording)));
    }
}

/// More than anybody asks for at a time.
const WAITING_MAX: usize = 64;
/// An event that is shown has something.
const BYTES_MIN: usize = 1;
