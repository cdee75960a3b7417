//! Events are cleared, and clears that did not come are asked for.

use super::{ASK_AGAIN, ReadOut, Ros};
use crate::component::Outbox;
use crate::message::Message;
use base::ids::EventId;
use base::time::Time;

impl Ros {
    pub(super) fn on_clear(
        &mut self,
        now: Time,
        sequence: u64,
        oldest_valid: EventId,
        last: bool,
        events: &[EventId],
        out: &mut Outbox,
    ) {
        let is_new = self.clears.take(sequence, last);
        if self.clears.has_taken(sequence) {
            self.valid.take(sequence, oldest_valid);
            self.cleared.prune_older_than(self.valid.oldest());
            self.destinations.forget_below(self.valid.oldest());
        }
        if !is_new {
            if last && self.clears.is_complete() {
                self.collect_garbage(out);
            }
            return;
        }
        for &event in events {
            let counts = self.links.is_some() && !self.cleared.contains(event);
            self.links.iter_mut().for_each(|links| links.forget(event));
            self.remember_cleared(event);
            if counts {
                self.robs.iter_mut().for_each(|rob| rob.clear_triggered(event));
            } else {
                self.robs.iter_mut().for_each(|rob| rob.clear(event));
            }
            self.reconsider(event, event, |_| true, out);
        }
        // Others may be missing by now, and are asked for at once.
        if self.clears.first_missing().is_none_or(|first| first > self.asked_to) {
            self.ask_due = None;
            self.asked_short = 0;
        }
        if self.ask_due.is_none() {
            self.ask_for_clears(now, out);
        }
        self.update_busy(out);
        if self.busy || self.links.as_ref().is_some_and(|links| links.is_any_off()) {
            self.make_room(now, out);
        }
        if self.clears.is_complete() {
            // The run is over: what is left below the last bound was cleared in a group that is too old to be repeated.
            self.collect_garbage(out);
            self.end_events();
        }
        self.collect_untriggered(out);
        self.read_next(now, out);
        self.keep_results_if_pseudo(now, out);
    }

    pub(super) fn remember_cleared(&mut self, event: EventId) {
        if event >= self.valid.oldest() {
            self.cleared.insert(event);
        }
    }

    /// With every clear that has come, what is left below the oldest valid event belongs to none that was triggered.
    pub(super) fn collect_untriggered(&mut self, out: &mut Outbox) {
        if self.links.is_none() || self.clears.first_missing().is_some() {
            return;
        }
        self.collect_garbage(out);
        self.turn_links_on(out);
        let oldest = self.valid.oldest();
        self.links.iter_mut().for_each(|links| links.forget_below(oldest));
    }

    pub(super) fn keep_results_if_pseudo(&mut self, now: Time, out: &mut Outbox) {
        if self.parameters.read_out == ReadOut::Results {
            self.keep_results(out);
            if !self.results.is_empty() {
                self.make_room(now, out);
                self.keep_results(out);
            }
        }
    }

    pub(super) fn ask_for_clears(&mut self, now: Time, out: &mut Outbox) {
        self.ask_due = None;
        if let Some(missed) = self.clears.missed() {
            self.asked_to = missed.sequences().last().expect("one is missing");
            self.counters.clears_asked += u64::from(missed.bits.count_ones());
            self.asked_short += 1;
            self.ask_due = Some(now + ASK_AGAIN);
            out.send(self.parameters.dfm, Message::ClearAsk(missed));
        }
    }
}
