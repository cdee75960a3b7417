//! Events are cleared, and clears that did not come are asked for.

use core::time::Duration;

use super::{ReadOut, Ros, RosParameters};
use crate::component::{Note, Outbox};
use crate::message::{Holdings, Message};
use crate::readout::clear_sequence::ClearSequence;
use crate::readout::cleared_ids::ClearedIds;
use crate::readout::rob::Rob;
use crate::readout::valid_bound::ValidBound;
use base::ids::{EventId, Incarnation};
use base::time::Time;

/// What may be asked for, and what is cleared.
pub(super) struct Clearing {
    pub(super) valid: ValidBound,
    /// Cleared and not older than the oldest valid event: their fragments are refused, should they come (again).
    pub(super) cleared: ClearedIds,
    pub(super) sequence: ClearSequence,
    pub(super) ask_due: Option<Time>,
    /// The last group that was asked for.
    asked_to: u64,
    /// Asked in vain for missing clears while short of pages.
    asked_short: u32,
    /// Nobody will clear any more.
    pub(super) dfm_gone: bool,
    /// The life of whoever clears that was seen last.
    clearer: Option<Incarnation>,
}

impl Clearing {
    pub(super) fn new(parameters: &RosParameters) -> Self {
        Self {
            valid: ValidBound::default(),
            cleared: ClearedIds::new(2 * parameters.pages_per_rob),
            sequence: if parameters.late { ClearSequence::from_next_seen() } else { ClearSequence::from_start() },
            ask_due: None,
            asked_to: 0,
            asked_short: 0,
            dfm_gone: false,
            clearer: None,
        }
    }
}

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
        let is_new = self.clearing.sequence.take(sequence, last);
        if self.clearing.sequence.has_taken(sequence) {
            self.clearing.valid.take(sequence, oldest_valid);
            self.clearing.cleared.prune_older_than(self.clearing.valid.oldest());
            self.pushing.destinations.forget_below(self.clearing.valid.oldest());
        }
        if !is_new {
            if last && self.clearing.sequence.is_complete() {
                self.collect_garbage(out);
            }
            return;
        }
        for &event in events {
            let counts = self.links.is_some() && !self.clearing.cleared.contains(event);
            self.links.iter_mut().for_each(|links| links.forget(event));
            self.remember_cleared(event);
            if counts {
                self.robs.iter_mut().for_each(|rob| rob.clear_triggered(event));
            } else {
                self.robs.iter_mut().for_each(|rob| rob.clear(event));
            }
            self.reconsider(event, event, |_| true, out);
        }
        self.leave_behind();
        // Others may be missing by now, and are asked for at once.
        if self.clearing.sequence.first_missing().is_none_or(|first| first > self.clearing.asked_to) {
            self.clearing.ask_due = None;
            self.clearing.asked_short = 0;
        }
        if self.clearing.ask_due.is_none() {
            self.ask_for_clears(now, out);
        }
        self.update_busy(out);
        if self.busy || self.links.as_ref().is_some_and(|links| links.is_any_off()) {
            self.make_room(now, out);
        }
        if self.clearing.sequence.is_complete() {
            // The run is over: what is left below the last bound was cleared in a group that is too old to be repeated.
            self.collect_garbage(out);
            self.end_events();
        }
        self.collect_untriggered(out);
        self.read_next(now, out);
        self.keep_results_if_pseudo(now, out);
    }

    /// A new life of the DFM numbers its clears from 1 and gives out tables of its own. What it does not clear of the groups of
    /// the former one falls below its bound.
    pub(super) fn on_clearer(&mut self, life: Incarnation, out: &mut Outbox) {
        let before = self.clearing.clearer.replace(life);
        if before == Some(life) || life == Incarnation::FIRST {
            return;
        }
        if before.is_some() {
            self.counters.clears_refused += self.clearing.sequence.refused();
            self.clearing.sequence = ClearSequence::from_start();
            self.clearing.valid.begin_anew();
            self.clearing.ask_due = None;
            self.clearing.asked_to = 0;
            self.clearing.asked_short = 0;
            self.pushing.destinations.begin_anew();
        }
        if self.parameters.read_out == ReadOut::OnRequest {
            let newest = self.robs.iter().filter_map(Rob::newest).max();
            out.send(self.parameters.dfm, Message::Held(Holdings { newest, last: true, ..Holdings::default() }));
        }
    }

    fn remember_cleared(&mut self, event: EventId) {
        if event >= self.clearing.valid.oldest() {
            self.clearing.cleared.insert(event);
        }
    }

    /// With every clear that has come, what is left below the oldest valid event belongs to none that was triggered.
    fn collect_untriggered(&mut self, out: &mut Outbox) {
        if self.links.is_none() || self.clearing.sequence.first_missing().is_some() {
            return;
        }
        self.collect_garbage(out);
        self.turn_links_on(out);
        let oldest = self.clearing.valid.oldest();
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
        self.clearing.ask_due = None;
        if let Some(missed) = self.clearing.sequence.missed() {
            self.clearing.asked_to = missed.sequences().last().expect("one is missing");
            self.counters.clears_asked += u64::from(missed.bits.count_ones());
            self.clearing.asked_short += 1;
            self.clearing.ask_due = Some(now + ASK_AGAIN);
            out.send(self.parameters.dfm, Message::ClearAsk(missed));
        }
    }

    /// Short of pages: first the clears that did not arrive; garbage collection is the last resort, and counted.
    pub(super) fn make_room(&mut self, now: Time, out: &mut Outbox) {
        let may_come = self.clearing.sequence.first_missing().is_some() && !self.clearing.sequence.has_lost();
        if may_come && self.clearing.asked_short < ASKS_BEFORE_COLLECTION {
            if self.clearing.ask_due.is_none() {
                self.ask_for_clears(now, out);
            }
            return;
        }
        if self.collect_garbage(out) {
            self.read_next(now, out);
        }
    }

    /// Removes what nobody can ask for any more, and was not cleared; whether there was any.
    pub(super) fn collect_garbage(&mut self, out: &mut Outbox) -> bool {
        let oldest_valid = self.clearing.valid.oldest();
        let links = self.links.as_deref();
        let was_issued = |event| links.is_none_or(|links| links.was_issued(event));
        let fragments: u64 = self.robs.iter_mut().map(|rob| rob.collect_garbage(oldest_valid, was_issued)).sum();
        if fragments > 0 {
            self.clearing.sequence.forget_lost();
            out.note(Note::GarbageCollected { fragments });
            self.update_busy(out);
        }
        fragments > 0
    }
}

const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A ROS that is short of pages asks so often for clears that it missed. Then it collects garbage.
const ASKS_BEFORE_COLLECTION: u32 = 3;
