//! Triggers, and who gives them: level 1, or the front of a crate, which may return.

use super::{ReadOut, Ros};
use crate::component::Outbox;
use crate::message::EventInfo;
use crate::window::TakenCount;
use base::ids::{EventId, Incarnation};
use base::time::Time;

/// What is known of who gives triggers.
#[derive(Debug, Default)]
pub(super) struct Given {
    life: Option<Incarnation>,
    /// Triggers of a former life that wait for a page: this one does not count them.
    before: usize,
    /// What is issued up to here and was not given is not read out any more, once all has been that was.
    passed: Option<EventId>,
}

impl Ros {
    /// As many triggers were issued as this one says: they belong to the account even if all who decided on them are gone.
    pub(super) fn note_trigger(&mut self, event: &EventInfo) {
        self.counters.triggers = self.counters.triggers.max(event.ordinal.saturating_add(1));
    }

    /// What was issued before this life, or lost with who gave triggers: nobody reads it out any more.
    pub(super) fn on_issued_up_to(&mut self, last: EventId, out: &mut Outbox) {
        self.clearing.valid.note_issued(last);
        self.on_issued_before(last);
        self.given.passed = self.given.passed.max(Some(last));
        self.pass_late(out);
        self.on_slices_issued(last);
        self.turn_links_on(out);
    }

    /// A link that has nothing to read has passed what it was not given.
    pub(super) fn pass_late(&mut self, out: &mut Outbox) {
        if !self.reads.next.is_empty() || !self.reads.under_way.is_empty() {
            return;
        }
        let Some(last) = self.given.passed.take() else { return };
        for rob in 0..self.robs.len() {
            if self.links.is_none() || !self.robs[rob].has_received() {
                self.robs[rob].pass(last);
                self.answer_unblocked(rob, last, out);
            }
        }
    }

    /// The source of triggers is there. In a new life it counts those that it gives from 0.
    pub(super) fn on_trigger_source(&mut self, now: Time, life: Incarnation, out: &mut Outbox) {
        if self.given.life.replace(life).is_some_and(|before| before != life) {
            self.taken = TakenCount::new(self.parameters.level1, self.parameters.in_flight);
            self.given.before = self.reads.next.len();
        }
        self.taken.tell(out);
        self.tell_busy(out);
        self.tell_awaited(now, true, out);
        self.links.iter_mut().for_each(|links| links.tell_again());
    }

    /// The next triggers have pages.
    pub(super) fn take_triggers(&mut self, now: Time, count: usize, out: &mut Outbox) {
        if self.parameters.read_out != ReadOut::OnTrigger {
            return;
        }
        let of_former = count.min(self.given.before);
        self.given.before -= of_former;
        if count > of_former {
            self.taken.take(now, count - of_former, out);
        }
    }
}
