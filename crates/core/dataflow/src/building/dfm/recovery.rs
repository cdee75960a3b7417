//! A dataflow manager that returns within a run: what its former life knew, the others still hold.
//!
//! Event builders tell what they have in building, what was granted to them, and what they have finished. The sources
//! tell again all accepted events that are not known to be finished. Their words wait until the builders have told. So
//! no event that a builder holds or has finished is given out a second time. Ends of event wait, too: the event may
//! have been granted to another builder, which has not told yet.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Dfm, DfmInput, DfmParameters};
use crate::building::dfm::books::{BuildState, Open};
use crate::component::{Input, Note, Outbox};
use crate::message::{Assignment, HeldEvent, Holdings, Message};
use base::ids::{EventId, NodeId};
use base::time::Time;

/// Whether this is a later life, and what it does not know yet.
pub(super) struct Returning {
    /// Until it knows what the builders hold.
    pub(super) recovery: Option<Recovery>,
    /// Takes what came meanwhile.
    pub(super) catches_up: bool,
}

impl Returning {
    pub(super) fn new(parameters: &DfmParameters) -> Self {
        Self { recovery: parameters.late.then(|| Recovery::new(parameters)), catches_up: false }
    }
}

/// What a later life does not know yet.
pub(super) struct Recovery {
    /// They have not told what they hold, or have seen finished.
    silent: Vec<Silent>,
    /// When it goes on without those that cannot be reached, then without those that can.
    deadline: Option<Time>,
    patient_until: Time,
    /// The first of these times has come.
    is_due: bool,
    /// The newest event that one of the others has heard of.
    newest: Option<EventId>,
    /// What the sources say, and ends of event, in order.
    waiting: VecDeque<Input>,
}

struct Silent {
    node: NodeId,
    reachable: bool,
    /// Whether it is not gone on without: a DFM that triggers itself has nobody else to ask which numbers are taken.
    is_needed: bool,
}

impl Recovery {
    pub(super) fn new(parameters: &DfmParameters) -> Self {
        let readout = if let DfmInput::SelfTrigger { readout, .. } = &parameters.input { &readout[..] } else { &[] };
        let triggers = matches!(parameters.input, DfmInput::SelfTrigger { .. });
        let silent = |is_needed| move |&node: &NodeId| Silent { node, reachable: false, is_needed };
        let of_numbers = parameters.sfis.iter().chain(readout).map(silent(triggers));
        // A builder that has died as well may have told the former life alone what had become of its events.
        let of_fates = parameters.efds.iter().map(silent(false));
        Self {
            silent: of_numbers.chain(of_fates).collect(),
            deadline: None,
            patient_until: Time::ZERO,
            is_due: false,
            newest: None,
            waiting: VecDeque::new(),
        }
    }

    /// When it goes on without those that have not told.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// It has told what it holds, or is lost with it.
    fn wait_no_more_for(&mut self, node: NodeId) {
        self.silent.retain(|silent| silent.node != node);
    }

    pub(super) fn on_peer(&mut self, node: NodeId, up: bool) {
        // What a builder has ended it tells anew, if it still has it.
        self.waiting.retain(|input| !matches!(input, Input::Message { from, .. } if *from == node));
        if !up {
            return self.wait_no_more_for(node);
        }
        self.silent.iter_mut().filter(|silent| silent.node == node).for_each(|silent| silent.reachable = true);
    }

    /// Its number is taken.
    pub(super) fn has_seen(&mut self, event: EventId) {
        self.newest = self.newest.max(Some(event));
    }

    fn begin(&mut self, now: Time, timeout: Duration) {
        if self.deadline.is_none() && !self.is_due {
            self.deadline = Some(now + timeout);
            self.patient_until = now + timeout * PATIENCE;
        }
    }

    fn is_over(&mut self, now: Time) -> bool {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.is_due = true;
            self.deadline = Some(self.patient_until).filter(|until| *until > now);
        }
        let is_late = self.is_due && self.deadline.is_none();
        self.silent.iter().all(|silent| !silent.is_needed && self.is_due && (is_late || !silent.reachable))
    }
}

impl Dfm {
    /// What has to wait until the builders have told what they hold is kept; anything else is handed back.
    pub(super) fn hold_back(&mut self, now: Time, input: Input) -> Option<Input> {
        let Some(recovery) = &mut self.returning.recovery else { return Some(input) };
        recovery.begin(now, self.parameters.build_timeout);
        let waits = match &input {
            // A finished event is neither built again nor granted.
            Input::Message { message: Message::Held(_), .. } => false,
            Input::Message { message: Message::EndOfEvent(_), .. } => true,
            Input::Message { from: node, .. } | Input::Peer { node, .. } => {
                self.supervisors.iter().any(|source| source.node == *node)
            }
            _ => false,
        };
        if waits {
            recovery.waiting.push_back(input);
            return None;
        }
        Some(input)
    }

    pub(super) fn on_held(&mut self, now: Time, from: NodeId, holdings: &Holdings, out: &mut Outbox) {
        if let Some(recovery) = &mut self.returning.recovery {
            let finished = holdings.finished.iter().map(|finish| finish.event);
            holdings.newest.into_iter().chain(finished).for_each(|event| recovery.has_seen(event));
            if holdings.last {
                recovery.wait_no_more_for(from);
            }
        }
        self.on_ledger(&holdings.ledger);
        for finish in &holdings.finished {
            self.finish(now, finish, out);
        }
        let Some(sfi) = self.sfis.iter().position(|sfi| sfi.node == from) else { return };
        if !self.ending.is_abandoned() {
            holdings.events.iter().for_each(|held| self.adopt(now, sfi, held, out));
        }
        if holdings.last {
            self.sfis[sfi].told = true;
            self.publish(out);
        }
        self.assign(now, out);
    }

    /// Takes an event that a builder holds into the books. Where two hold it, the one to which it was granted has it, else
    /// the later attempt; the end of the other attempt is void.
    fn adopt(&mut self, now: Time, sfi: usize, held: &HeldEvent, out: &mut Outbox) {
        let HeldEvent { assigned: Assignment { event: info, attempt, has_result }, granted, missing } = *held;
        let event = info.event;
        if !granted {
            let building = &mut self.sfis[sfi].building;
            *building = (*building + 1).min(self.parameters.building);
        }
        if self.is_cleared(event) || self.closed_events.contains(event) {
            return;
        }
        let state = self.open.get(event).map(|open| (open.state, open.attempt));
        match state {
            None => {
                self.counters.taken_accepted += 1;
                self.count_grounds(info.grounds);
                self.push.on_event(event);
                let open = Open {
                    event: info,
                    has_result,
                    source: None,
                    builder: None,
                    attempt,
                    granted: None,
                    state: BuildState::Queued,
                };
                self.open.insert(event, open);
            }
            Some((BuildState::Granted { .. }, _)) => return,
            Some((BuildState::Building { .. }, other)) if !granted && attempt <= other => return,
            Some((BuildState::Queued, _)) => self.assigning.queue.retain(|waiting| *waiting != event),
            Some((BuildState::Building { .. }, _)) => {}
        }
        if granted {
            return self.grant(now, event, sfi, missing == 0, out);
        }
        let open = self.open.get_mut(event).expect("it is open by now");
        (open.attempt, open.state) = (attempt, BuildState::Building { sfi, since: now });
        self.assigning.timeouts.push_back((now + self.parameters.build_timeout, event, attempt));
    }

    /// Goes on as soon as it knows enough, or has waited long enough.
    pub(super) fn go_on_if_recovered(&mut self, now: Time, out: &mut Outbox) {
        let is_over = |recovery: &mut Recovery| recovery.is_over(now) || self.ending.is_abandoned();
        let Some(recovery) = self.returning.recovery.take_if(is_over) else { return };
        self.counters.recovered_without += recovery.silent.len() as u64;
        recovery.silent.iter().for_each(|silent| out.note(Note::RecoveredWithout(silent.node)));
        if let DfmInput::SelfTrigger { first, limit, .. } = self.parameters.input {
            self.tell_itself_again(first, recovery.newest);
            self.exhaust_at(limit, out);
        }
        self.returning.catches_up = true;
        for input in recovery.waiting {
            self.take_input(now, input, out);
        }
        self.returning.catches_up = false;
        self.acknowledge(out);
        self.publish(out);
        self.assign(now, out);
    }

    /// Of events that it has triggered itself no source tells again. What nobody knows of the numbers that are taken died with a
    /// builder, or on the way to it.
    fn tell_itself_again(&mut self, first: EventId, newest: Option<EventId>) {
        // Nobody living may have seen an event that was given up at a dead builder, but it was counted.
        let counted = EventId(first.0 + self.closed_events.below_bound());
        self.own.next_event = newest.map_or(first, EventId::next).max(counted);
        self.counters.self_triggered = self.own.next_event.0.saturating_sub(first.0);
        for ordinal in counted.0 - first.0..self.counters.self_triggered {
            self.trigger_unknown(EventId(first.0 + ordinal), ordinal);
        }
    }
}

/// One that can be reached and says nothing is slow. The DFM waits so many times longer for it, since the events that it holds
/// would be built a second time.
const PATIENCE: u32 = 10;
