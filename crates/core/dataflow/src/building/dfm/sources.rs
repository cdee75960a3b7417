//! Where the events of a dataflow manager come from: level 2, level 1, itself.

use alloc::vec::Vec;

use super::{Dfm, DfmInput};
use crate::building::dfm::books::{BuildState, Open, Supervisor};
use crate::component::Outbox;
use crate::level1::pace::Pace;
use crate::message::{Decision, EventInfo, Grounds, Message, Settlement};
use crate::node::RUN_CONTROL;
use base::ids::{EventId, NodeId};
use base::time::Time;

/// The trigger of a DFM that nobody tells what to build.
pub(super) struct OwnTrigger {
    /// Below this, level 1 or the own trigger will issue nothing more.
    pub(super) next_event: EventId,
    pub(super) pace: Option<Pace>,
    pub(super) exhausted: bool,
}

impl OwnTrigger {
    pub(super) fn new(input: &DfmInput) -> Self {
        let (pace, next_event) = match *input {
            DfmInput::SelfTrigger { first, spacing, seed, .. } => (Some(Pace::new(spacing, seed)), first),
            _ => (None, EventId(0)),
        };
        Self { next_event, pace, exhausted: false }
    }
}

impl Dfm {
    pub(super) fn on_decisions(
        &mut self,
        now: Time,
        from: NodeId,
        sequence: u64,
        oldest: EventId,
        decisions: &[Decision],
        out: &mut Outbox,
    ) {
        let Some(index) = self.supervisors.iter().position(|s| s.node == from) else {
            return;
        };
        if sequence == self.supervisors[index].sequence + 1 {
            for decision in decisions {
                self.take(now, index, decision, out);
            }
            // Only now: a clear group that goes out in between must not call an accepted event of this group too old.
            let supervisor = &mut self.supervisors[index];
            supervisor.sequence = sequence;
            supervisor.seen = true;
            supervisor.oldest_undecided = supervisor.oldest_undecided.max(oldest);
            if self.parameters.supervisors_return {
                supervisor.remembered.add(sequence, decisions);
            }
            self.assign(now, out);
        } else if sequence <= self.supervisors[index].sequence {
            // It was not told that this group is taken, or the connection was lost on the way.
            self.supervisors[index].seen = true;
        }
        self.acknowledge(out);
    }

    pub(super) fn take(&mut self, now: Time, supervisor: usize, decision: &Decision, out: &mut Outbox) {
        let event = decision.event.event;
        if self.knows(event) {
            return self.count_known();
        }
        let taken = &mut self.supervisors[supervisor].taken;
        if decision.accept {
            taken[1] += 1;
            taken[2] += u64::from(decision.event.grounds == Grounds::Timeout);
            self.count_grounds(decision.event.grounds);
            self.accept(decision.event, decision.has_result, Some(supervisor as u16), decision.builder);
        } else {
            taken[0] += 1;
            self.counters.taken_rejected += 1;
            self.clear(now, event, out);
        }
    }

    /// On what level 2 had accepted an event.
    pub(super) fn count_grounds(&mut self, grounds: Grounds) {
        self.counters.taken_forced += u64::from(grounds == Grounds::Timeout);
        self.counters.taken_incomplete += u64::from(grounds == Grounds::PartOfData);
    }

    /// Whether the event was taken over before, by this life or an earlier one.
    fn knows(&self, event: EventId) -> bool {
        self.open.contains(event) || self.is_cleared(event) || self.closed_events.contains(event)
    }

    /// Whether the event is built, and its fate not known.
    pub(super) fn is_cleared(&self, event: EventId) -> bool {
        self.cleared.contains(event) || self.orphans.contains(event)
    }

    /// To a DFM that has returned, sources tell again what may be in its books already.
    fn count_known(&mut self) {
        let Self { counters, parameters, .. } = self;
        *if parameters.late { &mut counters.told_again } else { &mut counters.duplicates } += 1;
    }

    pub(super) fn accept(&mut self, event: EventInfo, has_result: bool, source: Option<u16>, builder: Option<NodeId>) {
        self.counters.taken_accepted += 1;
        if self.ending.is_abandoned() {
            return self.close_not_built(event);
        }
        self.push.on_event(event.event);
        let open = Open { event, has_result, source, builder, attempt: 0, granted: None, state: BuildState::Queued };
        self.open.insert(event.event, open);
        self.assigning.queue.push_back(event.event);
    }

    /// Tells the supervisors what is taken over, unless too much waits already: they hold their events until then, and
    /// so hold back level 1.
    pub(super) fn acknowledge(&mut self, out: &mut Outbox) {
        // A life that is over by now must not be answered: its successor would take that as meant for itself.
        if self.returning.catches_up {
            return;
        }
        if self.assigning.queue.len() > self.parameters.queue
            || !matches!(self.parameters.input, DfmInput::Level2 { .. })
        {
            return;
        }
        if !self.supervisors.iter().any(|s| s.reachable && s.seen) {
            return;
        }
        let oldest_unfinished = self.oldest_unfinished();
        for index in 0..self.supervisors.len() {
            let Supervisor { node, sequence: up_to, seen, reachable, .. } = self.supervisors[index];
            if reachable && seen {
                self.supervisors[index].seen = false;
                self.tell_ledger(node, out);
                out.send(node, Message::DecisionsTaken { up_to, oldest_unfinished });
            }
        }
    }

    pub(super) fn on_l1_accepts(&mut self, now: Time, from: NodeId, events: &[EventInfo], out: &mut Outbox) {
        let Some(level1) = self.supervisors.iter_mut().find(|s| s.node == from) else {
            return;
        };
        level1.taken[1] += events.len() as u64;
        if let Some(last) = events.last() {
            level1.oldest_undecided = level1.oldest_undecided.max(last.event.next());
        }
        for &event in events {
            if self.knows(event.event) {
                self.count_known();
            } else {
                self.accept(event, false, None, None);
            }
        }
        self.assign(now, out);
        // Behind busy, which is to hold back what this lets through.
        self.taken.take(now, events.len(), out);
    }

    pub(super) fn on_issued_up_to(&mut self, from: NodeId, event: EventId) {
        if let Some(level1) = self.supervisors.iter_mut().find(|s| s.node == from) {
            level1.oldest_undecided = level1.oldest_undecided.max(event.next());
        }
    }

    /// Triggers what is due while the SFIs have room for it.
    pub(super) fn self_trigger(&mut self, now: Time, out: &mut Outbox) {
        let DfmInput::SelfTrigger { limit, .. } = self.parameters.input else {
            return;
        };
        if self.returning.recovery.is_some() {
            return;
        }
        while !self.own.exhausted && !self.ending.is_draining() && self.assigning.queue.is_empty() && self.has_room() {
            if !self.own.pace.as_mut().is_some_and(|pace| pace.take(now)) {
                return;
            }
            let (event, ordinal) = (self.own.next_event, self.counters.self_triggered);
            self.own.next_event = event.next();
            self.counters.self_triggered += 1;
            self.trigger_unknown(event, ordinal);
            self.assign_queued(now, out);
            self.exhaust_at(limit, out);
        }
    }

    /// Somebody may know of an event that a former life had triggered.
    pub(super) fn trigger_unknown(&mut self, event: EventId, ordinal: u64) {
        if !self.knows(event) {
            self.accept(EventInfo { event, ordinal, ..EventInfo::default() }, false, None, None);
        }
    }

    /// The last event of the run has been triggered.
    pub(super) fn exhaust_at(&mut self, limit: Option<u64>, out: &mut Outbox) {
        if limit.is_some_and(|limit| self.counters.self_triggered >= limit) {
            self.own.exhausted = true;
            self.stop_trigger();
            out.send(RUN_CONTROL, Message::Exhausted);
        }
    }

    /// Tells supervisors in a new life what was taken over from former ones.
    pub(super) fn tell_taken(&mut self, out: &mut Outbox) {
        if !self.supervisors.iter().any(|s| s.asks_taken && s.reachable) {
            return;
        }
        let asking: Vec<NodeId> =
            self.supervisors.iter().filter(|s| s.asks_taken && s.reachable).map(|s| s.node).collect();
        asking.into_iter().for_each(|node| self.tell_ledger(node, out));
        let accepted_before = self.accepted_before();
        for (index, supervisor) in self.supervisors.iter_mut().enumerate().filter(|(_, s)| s.asks_taken && s.reachable)
        {
            supervisor.asks_taken = false;
            let is_its = |open: &&Open| open.source == Some(index as u16);
            let accepted = |open: &Open| Decision {
                event: open.event,
                accept: true,
                has_result: open.has_result,
                builder: open.builder,
            };
            let open: Vec<Decision> = self.open.values().filter(is_its).map(accepted).collect();
            for some in open.chunks(TOLD_TOGETHER_MAX) {
                out.send(supervisor.node, Message::AcceptedBefore(some.to_vec()));
            }
            let mut decided = supervisor.remembered.of_former_lives();
            decided.extend(&accepted_before);
            while decided.len() > TOLD_TOGETHER_MAX {
                let rest = decided.split_off(TOLD_TOGETHER_MAX);
                out.send(supervisor.node, Message::TakenBefore { decided, last: false });
                decided = rest;
            }
            out.send(supervisor.node, Message::TakenBefore { decided, last: true });
        }
    }

    /// What a former life had been told of decisions died with it. Of events that it had taken over as accepted the others know: a
    /// supervisor that died as well must not decide them anew, perhaps otherwise.
    fn accepted_before(&self) -> Vec<Settlement> {
        if !self.parameters.late {
            return Vec::new();
        }
        let open = self.open.iter().map(|(event, open)| (event, open.event.grounds));
        let built = self.cleared.iter().chain(self.orphans.iter()).map(|(event, granted)| (event, granted.grounds));
        let known = open.chain(built).chain(self.closed_events.accepted());
        known.map(|(event, grounds)| Settlement { event, accept: true, grounds }).collect()
    }

    pub(super) fn on_forget(&mut self, from: NodeId, up_to: u64, former: bool) {
        if let Some(supervisor) = self.supervisors.iter_mut().find(|s| s.node == from) {
            supervisor.remembered.forget(up_to, former);
        }
    }

    pub(super) fn on_no_more(&mut self, from: NodeId) {
        if let Some(supervisor) = self.supervisors.iter_mut().find(|s| s.node == from) {
            supervisor.done = true;
        }
        if let Some(sfi) = self.sfis.iter_mut().find(|sfi| sfi.node == from) {
            sfi.done = true;
        }
    }

    /// Whether nobody will send an event any more.
    pub(super) fn sources_are_done(&self) -> bool {
        self.supervisors.iter().all(|s| s.done || s.gone)
    }
}

/// Far below the room that a frame has for lists.
const TOLD_TOGETHER_MAX: usize = 512;
