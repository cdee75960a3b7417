//! The event-filter dataflow daemon: pulls built events, filters them, sends the accepted ones to be recorded.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use crate::component::{Component, Input, Outbox, PeerState};
use crate::filter::policy::FilterPolicy;
use crate::ids::{EventId, NodeId, Role};
use crate::message::{BuiltEvent, Command, Fate, Message, Recording};
use crate::random::hash_of_event;
use crate::report::{BlockCause, BlockedClock, EfdCounters, Report};
use crate::time::Time;

/// How a filter daemon is set up.
#[derive(Clone, Debug)]
pub struct EfdParameters {
    /// Where events come from.
    pub sfis: Vec<NodeId>,
    /// The recorders; where there is none, an accepted event is finished.
    pub sfos: Vec<NodeId>,
    /// Told of fates when the SFI of an event is gone.
    pub dfm: NodeId,
    /// Events in hand; at least one from each SFI.
    pub slots: usize,
    /// The selection.
    pub policy: FilterPolicy,
}

/// A filter daemon. It keeps an accepted event until its SFO has recorded it, then tells the SFI.
pub struct Efd {
    parameters: EfdParameters,
    /// Accepted events, not yet recorded, with where they came from: several places, if an SFI was lost and another built
    /// the event again.
    recording: BTreeMap<EventId, (Vec<Origin>, Recording)>,
    sfis: Vec<PeerState>,
    sfos: Vec<PeerState>,
    draining: bool,
    abandoned: bool,
    blocked: BlockedClock,
    counters: EfdCounters,
}

/// Where an event came from: its SFI by index, and the life that the SFI had then.
type Origin = (usize, PeerState);

impl Efd {
    /// A daemon without events.
    pub fn new(parameters: EfdParameters) -> Self {
        Self {
            recording: BTreeMap::new(),
            sfis: vec![PeerState::Down; parameters.sfis.len()],
            sfos: vec![PeerState::Down; parameters.sfos.len()],
            draining: false,
            abandoned: false,
            blocked: BlockedClock::default(),
            counters: EfdCounters::default(),
            parameters,
        }
    }

    /// Events that one SFI may send: the slots are shared out evenly.
    fn share(&self) -> u32 {
        (self.parameters.slots / self.parameters.sfis.len()).max(1) as u32
    }

    fn on_built_event(&mut self, now: Time, from: NodeId, built: BuiltEvent, out: &mut Outbox) {
        let Some(sfi) = self.parameters.sfis.iter().position(|node| *node == from) else {
            return;
        };
        let sfi = (sfi, self.sfis[sfi]);
        let event = built.event;
        if let Some((origins, _)) = self.recording.get_mut(&event.event) {
            return origins.push(sfi);
        }
        self.counters.received += 1;
        if !self.parameters.policy.accepts(event.event, event.ordinal) {
            self.counters.rejected += 1;
            return self.finish(sfi, event.event, Fate::Rejected, out);
        }
        self.counters.accepted += 1;
        if self.parameters.sfos.is_empty() {
            return self.finish(sfi, event.event, Fate::Accepted, out);
        }
        self.recording.insert(event.event, (vec![sfi], Recording { built, debug: false }));
        if self.abandoned {
            self.give_up(event.event, out);
        } else {
            self.record(now, event.event, out);
        }
    }

    /// Asks the SFO that owns the event to record it, if it can be reached; gives up if it will never be.
    fn record(&mut self, now: Time, event: EventId, out: &mut Outbox) {
        let sfo = self.owner_of(event);
        match self.sfos[sfo] {
            PeerState::Up(_) => {
                let (_, recording) = &self.recording[&event];
                out.send(self.parameters.sfos[sfo], Message::Record(recording.clone()));
            }
            PeerState::Down => {}
            PeerState::Gone => self.give_up(event, out),
        }
        self.update_blocked(now);
    }

    fn owner_of(&self, event: EventId) -> usize {
        (hash_of_event(event) % self.parameters.sfos.len() as u64) as usize
    }

    fn give_up(&mut self, event: EventId, out: &mut Outbox) {
        let (origins, _) = self.recording.remove(&event).expect("an event in recording");
        self.counters.unrecorded += 1;
        origins.into_iter().for_each(|origin| self.finish(origin, event, Fate::Unrecorded, out));
    }

    fn on_recorded(&mut self, now: Time, event: EventId, fresh: bool, out: &mut Outbox) {
        let Some((origins, recording)) = self.recording.remove(&event) else { return };
        self.counters.recorded += 1;
        self.counters.recorded_before += u64::from(!fresh);
        let fate = if recording.debug { Fate::Debug } else { Fate::Accepted };
        origins.into_iter().for_each(|origin| self.finish(origin, event, fate, out));
        self.update_blocked(now);
    }

    /// Tells the SFI, and asks it for another event; or the DFM, if the SFI that had the event is no more.
    fn finish(&mut self, (sfi, life): Origin, event: EventId, fate: Fate, out: &mut Outbox) {
        let fates = vec![(event, fate)];
        if matches!(life, PeerState::Up(_)) && self.sfis[sfi] == life {
            out.send(self.parameters.sfis[sfi], Message::Finished(fates));
            out.send(self.parameters.sfis[sfi], Message::Pull(1));
        } else {
            out.send(self.parameters.dfm, Message::Finished(fates));
        }
    }

    fn update_blocked(&mut self, now: Time) {
        let waits = self.recording.len() >= self.parameters.slots;
        for &sfo in &self.parameters.sfos {
            self.blocked.set(now, sfo, BlockCause::Recording, waits);
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        if let Some(sfi) = self.parameters.sfis.iter().position(|sfi| *sfi == node) {
            self.sfis[sfi] = state;
            if matches!(state, PeerState::Up(_)) {
                out.send(node, Message::Pull(self.share()));
            }
        }
        if let Some(sfo) = self.parameters.sfos.iter().position(|sfo| *sfo == node) {
            self.sfos[sfo] = state;
            let owned: Vec<EventId> = self.recording.keys().copied().filter(|&e| self.owner_of(e) == sfo).collect();
            for event in owned {
                self.record(now, event, out);
            }
        }
    }

    fn on_command(&mut self, command: Command, out: &mut Outbox) {
        if matches!(command, Command::Drain | Command::Abandon) {
            self.draining = true;
        }
        if command == Command::Abandon {
            self.abandoned = true;
            while let Some((&event, _)) = self.recording.first_key_value() {
                self.give_up(event, out);
            }
        }
    }
}

impl Component for Efd {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::BuiltEvent(built) => self.on_built_event(now, from, built, out),
                Message::Recorded { event, fresh } => self.on_recorded(now, event, fresh, out),
                Message::Refused(event) if self.recording.contains_key(&event) => self.give_up(event, out),
                _ => {}
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(command, out),
            Input::Fragment { .. } | Input::Done { .. } | Input::Deadline => {}
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn is_drained(&self) -> bool {
        self.draining && self.recording.is_empty()
    }

    fn report(&self, now: Time) -> Report {
        Report { blocked: self.blocked.read(now), ..Report::of(Role::Efd, self.counters.to_values()) }
    }

    fn check(&self) {
        let c = &self.counters;
        let in_hand = self.recording.len() as u64;
        assert_eq!(c.received, c.rejected + c.accepted + c.debug, "every event decided");
        let settled = c.recorded + c.unrecorded;
        let passed_on = if self.parameters.sfos.is_empty() { c.accepted } else { settled + in_hand };
        assert_eq!(c.accepted + c.debug, passed_on, "every accepted event recorded, given up or in hand");
        let bound = self.share() as usize * self.parameters.sfis.len();
        assert!(self.recording.len() <= 2 * bound, "events in hand within their bound");
    }
}
