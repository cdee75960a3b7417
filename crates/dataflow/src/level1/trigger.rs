//! The source of level-1 triggers, emulated, sampled or replayed.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Component, Input, Outbox, PeerState};
use crate::ids::{EventId, Incarnation, NodeId, Role};
use crate::level1::pace::{Pace, Spacing};
use crate::message::{BusyCause, Command, EventInfo, Message, Roi};
use crate::node::RUN_CONTROL;
use crate::report::{BlockCause, BlockedClock, Level1Counters, PeerCount, Report};
use crate::time::Time;

/// What a trigger carries, apart from its number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trigger {
    /// Bunch crossing.
    pub bcid: u16,
    /// Level-1 trigger type.
    pub trigger_type: u8,
    /// Items that fired, after their prescale.
    pub items: u32,
    /// Regions of interest.
    pub rois: Vec<Roi>,
}

/// Where the content of triggers comes from: an emulator, a physics sample, a recorded file.
pub trait TriggerSource {
    /// The trigger with this ordinal; `None` when there are no more.
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger>;
}

/// How level 1 is set up.
#[derive(Clone, Debug)]
pub struct Level1Parameters {
    /// Read-out systems that follow triggers.
    pub readout: Vec<NodeId>,
    /// The L2SVs, which share the events in turn; or the DFM alone.
    pub deciders: Vec<NodeId>,
    /// Who else may say busy: the DFM behind level 2.
    pub listeners: Vec<NodeId>,
    /// The first event.
    pub first: EventId,
    /// Most events of the run.
    pub limit: Option<u64>,
    /// When triggers are offered.
    pub spacing: Spacing,
    /// Most triggers that a receiver has not yet taken.
    pub in_flight: u64,
    /// For the spacing.
    pub seed: u64,
}

/// Level 1: issues triggers while nobody is busy and every receiver keeps up.
///
/// An offer that falls into dead time is vetoed and lost, as in an experiment; `as fast as possible` offers nothing then.
pub struct Level1 {
    parameters: Level1Parameters,
    source: Box<dyn TriggerSource + Send>,
    pace: Pace,
    receivers: Vec<Receiver>,
    next: EventId,
    tell_due: Option<Time>,
    running: bool,
    exhausted: bool,
    draining: bool,
    blocked: BlockedClock,
    counters: Level1Counters,
}

struct Receiver {
    node: NodeId,
    sent: u64,
    taken: u64,
    /// Sent before the receiver's present life, which counts from 0.
    before: u64,
    life: Option<Incarnation>,
    busy: Vec<BusyCause>,
    reachable: bool,
}

impl Level1 {
    /// A level 1 that waits for [`Command::Start`].
    pub fn new(parameters: Level1Parameters, source: Box<dyn TriggerSource + Send>) -> Self {
        let receiver = |&node: &NodeId| Receiver {
            node,
            sent: 0,
            taken: 0,
            before: 0,
            life: None,
            busy: Vec::new(),
            reachable: false,
        };
        let receivers =
            parameters.readout.iter().chain(&parameters.deciders).chain(&parameters.listeners).map(receiver).collect();
        let pace = Pace::new(parameters.spacing, parameters.seed);
        let next = parameters.first;
        Self {
            parameters,
            source,
            pace,
            receivers,
            next,
            tell_due: None,
            running: false,
            exhausted: false,
            draining: false,
            blocked: BlockedClock::default(),
            counters: Level1Counters::default(),
        }
    }

    /// Issues what is due, as long as the receivers have room; at most a burst, so that the driver can deliver it.
    fn issue(&mut self, now: Time, out: &mut Outbox) {
        for _ in 0..BURST {
            if !self.running || self.exhausted || self.pace.next().is_none_or(|due| due > now) {
                return;
            }
            let held_back = self.is_held_back();
            if held_back && self.pace.is_unlimited() {
                return;
            }
            self.pace.take(now);
            self.counters.offered += 1;
            if held_back {
                self.counters.vetoed += 1;
            } else {
                self.issue_one(now, out);
            }
        }
    }

    fn issue_one(&mut self, now: Time, out: &mut Outbox) {
        let within_limit = self.parameters.limit.is_none_or(|limit| self.counters.issued < limit);
        let Some(trigger) = within_limit.then(|| self.source.trigger(self.counters.issued)).flatten() else {
            self.counters.offered -= 1;
            return self.exhaust(out);
        };
        let decider = self.next_decider().expect("level 1 is held back while no decider can be reached");
        let Trigger { bcid, trigger_type, items, rois } = trigger;
        let (event, ordinal) = (self.next, self.counters.issued);
        let event = EventInfo { event, ordinal, bcid, trigger_type, items, forced: false };
        for receiver in self.receivers[..self.parameters.readout.len()].iter_mut().filter(|r| r.reachable) {
            receiver.sent += 1;
            out.send(receiver.node, Message::L1Accept(event));
        }
        let receiver = &mut self.receivers[decider];
        receiver.sent += 1;
        out.send(receiver.node, Message::L1Result { event, rois });
        self.next = self.next.next();
        self.counters.issued += 1;
        self.tell_due.get_or_insert(now + TELL_EVERY);
        if self.parameters.limit == Some(self.counters.issued) {
            self.exhaust(out);
        }
        self.update_blocked(now);
    }

    /// The next L2SV in turn that can be reached.
    fn next_decider(&self) -> Option<usize> {
        let first = self.parameters.readout.len();
        let count = self.parameters.deciders.len();
        let turn = self.counters.issued as usize;
        (0..count).map(|step| first + (turn + step) % count).find(|&index| self.receivers[index].reachable)
    }

    fn deciders(&self) -> &[Receiver] {
        let first = self.parameters.readout.len();
        &self.receivers[first..first + self.parameters.deciders.len()]
    }

    fn exhaust(&mut self, out: &mut Outbox) {
        if !self.exhausted {
            self.exhausted = true;
            self.pace.stop();
            self.tell_issued(out);
            out.send(RUN_CONTROL, Message::Exhausted);
        }
    }

    fn is_held_back(&self) -> bool {
        self.next_decider().is_none() || self.receivers.iter().any(|r| self.is_holding_back(r))
    }

    fn is_holding_back(&self, receiver: &Receiver) -> bool {
        receiver.reachable && (!receiver.busy.is_empty() || self.is_behind(receiver))
    }

    fn is_behind(&self, receiver: &Receiver) -> bool {
        receiver.sent - receiver.taken >= self.parameters.in_flight
    }

    fn update_blocked(&mut self, now: Time) {
        for receiver in &self.receivers {
            let active = self.running && receiver.reachable && !self.exhausted;
            for cause in BusyCause::ALL {
                let on = match cause {
                    BusyCause::Window => receiver.busy.is_empty() && self.is_behind(receiver),
                    cause => receiver.busy.contains(&cause),
                };
                self.blocked.set(now, receiver.node, BlockCause::Busy(cause), active && on);
            }
        }
    }

    fn tell_issued(&mut self, out: &mut Outbox) {
        self.tell_due = None;
        let Some(last) = self.next.0.checked_sub(1) else { return };
        for receiver in self.deciders().iter().filter(|r| r.reachable) {
            out.send(receiver.node, Message::IssuedUpTo(EventId(last)));
        }
    }

    fn on_message(&mut self, from: NodeId, message: &Message) {
        let Some(receiver) = self.receivers.iter_mut().find(|r| r.node == from) else {
            return;
        };
        match *message {
            Message::Taken(count) => {
                let count = receiver.before.saturating_add(count);
                receiver.taken = receiver.taken.max(count.min(receiver.sent));
            }
            Message::Busy { cause, on } => {
                receiver.busy.retain(|c| *c != cause);
                if on {
                    receiver.busy.push(cause);
                }
            }
            _ => {}
        }
    }

    /// A receiver in a new life begins to count anew.
    fn on_peer(&mut self, node: NodeId, state: PeerState, out: &mut Outbox) {
        let decides = self.parameters.deciders.contains(&node);
        let Some(receiver) = self.receivers.iter_mut().find(|r| r.node == node) else {
            return;
        };
        receiver.reachable = false;
        receiver.busy.clear();
        if let PeerState::Up(life) = state {
            receiver.reachable = true;
            if receiver.life != Some(life) {
                receiver.life = Some(life);
                receiver.before = receiver.sent;
                receiver.taken = receiver.sent;
            }
            if decides {
                self.catch_up(node, out);
            }
        }
    }

    /// A decider that comes up learns how far level 1 has come, and whether it goes on.
    fn catch_up(&self, decider: NodeId, out: &mut Outbox) {
        if let Some(last) = self.next.0.checked_sub(1) {
            out.send(decider, Message::IssuedUpTo(EventId(last)));
        }
        if self.draining {
            out.send(decider, Message::NoMore);
        }
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start | Command::Resume => {
                self.running = true;
                if !self.exhausted {
                    self.pace.start(now);
                }
            }
            Command::Pause => {
                self.running = false;
                self.pace.stop();
            }
            Command::Drain | Command::Abandon => {
                self.running = false;
                self.draining = true;
                self.pace.stop();
                self.tell_issued(out);
                let deciders = self.deciders();
                deciders.iter().for_each(|receiver| out.send(receiver.node, Message::NoMore));
            }
            _ => {}
        }
    }
}

impl Component for Level1 {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => self.on_message(from, &message),
            Input::Peer { node, state } => self.on_peer(node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            _ => {}
        }
        self.issue(now, out);
        self.update_blocked(now);
        if self.tell_due.is_some_and(|due| due <= now) {
            self.tell_issued(out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let offer = self.pace.next().filter(|_| !(self.pace.is_unlimited() && self.is_held_back()));
        [offer, self.tell_due].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.draining
    }

    fn report(&self, now: Time) -> Report {
        let deciders = self.deciders();
        Report {
            peers: deciders.iter().map(|r| PeerCount { node: r.node, counts: [r.sent, 0, 0] }).collect(),
            blocked: self.blocked.read(now),
            ..Report::of(Role::Level1, self.counters.to_values())
        }
    }

    fn check(&self) {
        let to_deciders: u64 = self.deciders().iter().map(|r| r.sent).sum();
        assert_eq!(to_deciders, self.counters.issued, "every trigger went to one decider");
        assert!(self.receivers.iter().all(|r| r.taken <= r.sent), "nobody takes what was not sent");
    }
}

const BURST: usize = 64;

/// An idle L2SV learns at least this often how far level 1 has come.
const TELL_EVERY: Duration = Duration::from_millis(10);
