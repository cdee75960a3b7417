//! The event-filter dataflow daemon: pulls built events, filters them, sends the accepted ones to be recorded.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use crate::component::{Component, Input, Outbox, Outcome, PeerState, Processed, Ticket, Windowed, Work};
use crate::ending::Ending;
use crate::filter::policy::FilterPolicy;
use crate::filter::streams::{StreamRule, streams_of};
use crate::groups::Groups;
use crate::ledger::{Finish, Ledger};
use crate::message::{BuiltEvent, Command, DebugReason, EventInfo, Fate, Holdings, Message, Recording};
use crate::readout::showing::show;
use crate::report::{BlockCause, BlockedClock, ChainCounts, Counters, EfdCounters, Report};
use base::bulk::Bulk;
use base::event_map::EventMap;
use base::ids::{EventId, Incarnation, NodeId, Role};
use base::random::hash_of_event;
use base::sampling::{Sampler, SamplingRule};
use base::several::Several;
use base::time::Time;

/// How a filter daemon is set up.
#[derive(Clone, Debug)]
pub struct EfdParameters {
    /// Where events come from.
    pub sfis: Vec<NodeId>,
    /// The recorders; where there is none, an accepted event is finished.
    pub sfos: Vec<NodeId>,
    /// Told of fates when the SFI of an event is gone.
    pub dfm: NodeId,
    /// Whether the DFM may return, and then has to be told of fates anew.
    pub dfm_returns: bool,
    /// Events in hand; at least one from each SFI.
    pub slots: usize,
    /// The selection.
    pub decider: Decider,
    /// The streams of accepted events.
    pub streams: Vec<StreamRule>,
    /// Which events are shown to those who watch, if any.
    pub sampling: Option<SamplingRule>,
    /// What becomes of events without the data of some ROBs, by their source identifiers, before anybody decides.
    pub demands: Vec<(u32, Demand)>,
}

/// What becomes of an event without the data of a ROB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Demand {
    /// It is not recorded.
    Drop,
    /// It goes to the debug stream.
    Debug,
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decider {
    /// The daemon itself.
    Policy(FilterPolicy),
    /// Processing tasks, which the driver runs.
    Tasks,
}

/// A filter daemon. It keeps an event until it is rejected or its SFO has recorded it, then tells the SFI.
pub struct Efd {
    parameters: EfdParameters,
    /// Events that processing tasks have, with where they came from.
    processing: EventMap<(Several<Origin>, BuiltEvent)>,
    /// Accepted events, not yet recorded, with where they came from: several places, if an SFI was lost and another built
    /// the event again.
    recording: EventMap<(Several<Origin>, Recording)>,
    sfis: Vec<PeerState>,
    sfos: Vec<PeerState>,
    dfm_up: bool,
    /// Fates for the SFIs of this pass.
    fates: Groups<Finish>,
    /// Fates for the DFM, which is away.
    untold: Vec<Finish>,
    /// What SFIs were told and may have told nobody, or the DFM in their place, in the order in which it was told. What is finished for
    /// good leaves when it comes to the front: while an SFI is away that may have an old event nothing does. Where the DFM may return,
    /// this daemon can tell that to a later life in numbers, whatever a dead SFI or a former life knew.
    told: VecDeque<Told>,
    ledger: Ledger,
    /// By SFI: the DFM asks what is here of it up to this life, which is not known to be over.
    asked: Vec<Option<Incarnation>>,
    ending: Ending,
    blocked: BlockedClock,
    chains: ChainCounts,
    sampler: Sampler,
    counters: EfdCounters,
}

/// Where an event came from: its SFI by index, and the life that the SFI had then.
type Origin = (usize, PeerState);

/// What the SFI that an event came from was told, or the DFM in its place.
struct Told {
    origin: Origin,
    finish: Finish,
}

impl Efd {
    /// A daemon without events.
    pub fn new(parameters: EfdParameters) -> Self {
        Self {
            processing: EventMap::new(),
            recording: EventMap::new(),
            sfis: vec![PeerState::Down; parameters.sfis.len()],
            sfos: vec![PeerState::Down; parameters.sfos.len()],
            dfm_up: false,
            fates: Groups::default(),
            untold: Vec::new(),
            told: VecDeque::new(),
            ledger: Ledger::default(),
            asked: vec![None; parameters.sfis.len()],
            ending: Ending::NotYet,
            blocked: BlockedClock::default(),
            chains: ChainCounts::default(),
            sampler: Sampler::new(parameters.sampling),
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
        if !self.parameters.dfm_returns {
            self.forget_below(built.finished_below());
        }
        let known = self.processing.get_mut(event.event).map(|(origins, _)| origins);
        let known = known.or_else(|| self.recording.get_mut(event.event).map(|(origins, _)| origins));
        if let Some(origins) = known {
            if origins.iter().all(|origin| *origin != sfi) {
                return origins.push(sfi);
            }
            // Served again over a new connection: it has its slot.
            return out.send(from, Message::Pull(1));
        }
        self.counters.received += 1;
        if self.ending.is_abandoned() {
            self.counters.abandoned += 1;
            return self.finish(sfi, finish(&built, Fate::Abandoned), out);
        }
        match (self.demand(&built), self.parameters.decider) {
            (Some(Demand::Drop), _) => {
                self.counters.dropped_incomplete += 1;
                self.reject(Several::one(sfi), &built, out);
            }
            (Some(Demand::Debug), _) => {
                let reason = DebugReason::Incomplete;
                self.count_failure(reason);
                self.keep(now, Several::one(sfi), Recording { built, streams: 0, debug: Some(reason) }, out);
            }
            (None, Decider::Tasks) => {
                out.start(Ticket(event.event.0), Work::Process(built.clone()));
                self.processing.insert(event.event, (Several::one(sfi), built));
            }
            (None, Decider::Policy(policy)) if policy.accepts(event.event, event.ordinal) => {
                let streams = streams_of(&self.parameters.streams, event.event, 0, 0);
                self.accept(now, Several::one(sfi), Recording { built, streams, debug: None }, out);
            }
            (None, Decider::Policy(_)) => self.reject(Several::one(sfi), &built, out),
        }
    }

    /// What becomes of an event that lacks data; the debug stream keeps more.
    fn demand(&self, built: &BuiltEvent) -> Option<Demand> {
        let demands = self.parameters.demands.iter().filter(|(rob, _)| built.missing.contains(rob));
        demands.map(|(_, demand)| *demand).max()
    }

    fn on_processed(&mut self, now: Time, event: EventId, processed: Processed, out: &mut Outbox) {
        // An event that was given up in the meantime is nobody's any more.
        let Some((origins, built)) = self.processing.remove(event) else { return };
        match processed {
            Processed::Accept { streams, chains, result, windowed } => {
                self.chains.note(chains);
                let streams = streams_of(&self.parameters.streams, event, streams, chains.passed);
                let built =
                    if let Some(windowed) = windowed { self.windowed(built, *windowed, streams) } else { built };
                let recording = Recording { built: with_result(built, result), streams, debug: None };
                self.accept(now, origins, recording, out);
            }
            Processed::Reject { chains } => {
                self.chains.note(chains);
                self.reject(origins, &built, out);
            }
            Processed::Fail { reason, result } => {
                self.count_failure(reason);
                let recording = Recording { built: with_result(built, result), streams: 0, debug: Some(reason) };
                self.keep(now, origins, recording, out);
            }
        }
    }

    /// The event as its windows leave it; what an event leaves out that no stream takes does not count.
    fn windowed(&mut self, built: BuiltEvent, windowed: Windowed, streams: u32) -> BuiltEvent {
        if streams != 0 {
            let c = &mut self.counters;
            c.windowed += 1;
            c.kept_chunks += windowed.kept_chunks;
            c.left_chunks += windowed.left_chunks;
            c.left_fragments += windowed.left_fragments;
            c.left_bytes += windowed.left_bytes;
        }
        BuiltEvent { bulk: windowed.bulk, ..built }
    }

    fn count_failure(&mut self, reason: DebugReason) {
        self.counters.debug += 1;
        match reason {
            DebugReason::Crash => self.counters.debug_crash += 1,
            DebugReason::Exception => self.counters.debug_exception += 1,
            DebugReason::Timeout => self.counters.debug_timeout += 1,
            DebugReason::Memory => self.counters.debug_memory += 1,
            DebugReason::Incomplete => self.counters.debug_incomplete += 1,
            DebugReason::TooLarge | DebugReason::BadAnswer | DebugReason::NoTask | DebugReason::Malformed => {}
        }
    }

    fn reject(&mut self, origins: Several<Origin>, built: &BuiltEvent, out: &mut Outbox) {
        self.counters.rejected += 1;
        self.finish_all(origins, finish(built, Fate::Rejected), out);
    }

    fn accept(&mut self, now: Time, origins: Several<Origin>, recording: Recording, out: &mut Outbox) {
        if recording.streams == 0 {
            self.counters.prescaled += 1;
            return self.reject(origins, &recording.built, out);
        }
        self.counters.accepted += 1;
        self.keep(now, origins, recording, out);
    }

    /// Holds the event until it is recorded; where nothing records, it is finished.
    fn keep(&mut self, now: Time, origins: Several<Origin>, recording: Recording, out: &mut Outbox) {
        let EventInfo { event, trigger_type, items, .. } = recording.built.event;
        let viewers = self.sampler.takes(event, trigger_type, items, recording.built.bulk.len());
        if viewers.any() {
            show(viewers, recording.clone(), out);
        }
        if self.parameters.sfos.is_empty() {
            return self.finish_all(origins, finish(&recording.built, fate_of(&recording)), out);
        }
        self.recording.insert(event, (origins, recording));
        self.record(now, event, out);
    }

    /// Asks the SFO that owns the event to record it, if it can be reached; gives up if it will never be.
    fn record(&mut self, now: Time, event: EventId, out: &mut Outbox) {
        let sfo = self.owner_of(event);
        match self.sfos[sfo] {
            PeerState::Up(_) => {
                let (_, recording) = self.recording.get(event).expect("an event to record is held");
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
        let (origins, recording) = self.recording.remove(event).expect("an event in recording");
        self.counters.unrecorded += 1;
        self.finish_all(origins, finish(&recording.built, Fate::Unrecorded), out);
    }

    fn on_recorded(&mut self, now: Time, event: EventId, (fresh, complete): (bool, bool), out: &mut Outbox) {
        let Some((origins, recording)) = self.recording.remove(event) else { return };
        self.counters.recorded += 1;
        self.counters.recorded_before += u64::from(!fresh);
        let finish = Finish { complete, ..finish(&recording.built, fate_of(&recording)) };
        self.finish_all(origins, finish, out);
        self.update_blocked(now);
    }

    fn finish_all(&mut self, origins: Several<Origin>, finish: Finish, out: &mut Outbox) {
        origins.into_iter().for_each(|origin| self.finish(origin, finish, out));
    }

    /// Tells the SFI, and asks it for another event. If the life of the SFI that had the event is over, it tells the DFM and
    /// asks the next SFI.
    fn finish(&mut self, (sfi, state): Origin, finish: Finish, out: &mut Outbox) {
        self.told.push_back(Told { origin: (sfi, state), finish });
        if matches!(state, PeerState::Up(_)) && self.sfis[sfi] == state {
            let to = self.parameters.sfis[sfi];
            if let Some(fates) = self.fates.add(to, finish, 1) {
                send_fates(to, fates, out);
            }
        } else if self.dfm_up {
            // At once: the DFM takes what it has not been told for lost when it has the answer to its question.
            out.send(self.parameters.dfm, Message::Finished(vec![finish]));
        } else {
            self.untold.push(finish);
        }
        if matches!(self.sfis[sfi], PeerState::Up(_)) && self.sfis[sfi] != state {
            out.send(self.parameters.sfis[sfi], Message::Pull(1));
        }
    }

    /// The origin of each event in hand; each takes a slot.
    fn origins(&self) -> impl Iterator<Item = &Origin> {
        let processing = self.processing.values().flat_map(|(origins, _)| origins.iter());
        processing.chain(self.recording.values().flat_map(|(origins, _)| origins.iter()))
    }

    fn on_ledger(&mut self, ledger: &Ledger) {
        if ledger.below > self.ledger.below {
            self.ledger = *ledger;
            self.forget_below(ledger.below);
        }
    }

    fn forget_below(&mut self, bound: EventId) {
        while self.told.pop_front_if(|told| told.finish.event < bound).is_some() {}
    }

    /// A life of an SFI is over. What that has sent here may still come until that is seen here, too.
    fn on_orphaned(&mut self, sfi: NodeId, life: Incarnation, out: &mut Outbox) {
        let Some(index) = self.parameters.sfis.iter().position(|node| *node == sfi) else { return };
        self.asked[index] = Some(life);
        self.tell_orphans(index, out);
    }

    /// Answers the DFM, once the life that it asked for is over.
    fn tell_orphans(&mut self, sfi: usize, out: &mut Outbox) {
        let is_over = |asked: Incarnation| match self.sfis[sfi] {
            PeerState::Up(life) => life > asked,
            PeerState::Down => false,
            PeerState::Gone => true,
        };
        let Some(life) = self.asked[sfi].take_if(|asked| is_over(*asked)) else { return };
        let is_its = |&(index, state): &Origin| index == sfi && !matches!(state, PeerState::Up(other) if other > life);
        let is_orphan = |origins: &Several<Origin>| origins.iter().any(is_its);
        let processing = self.processing.iter().filter(|(_, (origins, _))| is_orphan(origins)).map(|(event, _)| event);
        let recording = self.recording.iter().filter(|(_, (origins, _))| is_orphan(origins)).map(|(event, _)| event);
        let events: Vec<EventId> = processing.chain(recording).collect();
        let its = self.told.iter().filter(|told| is_its(&told.origin));
        let finished: Vec<Finish> = its.map(|told| told.finish).collect();
        let (dfm, sfi) = (self.parameters.dfm, self.parameters.sfis[sfi]);
        for some in events.chunks(TOLD_TOGETHER_MAX) {
            let (events, finished) = (some.to_vec(), Vec::new());
            out.send(dfm, Message::Orphans { sfi, life, events, finished, last: false });
        }
        for some in finished.chunks(TOLD_TOGETHER_MAX) {
            let (events, finished) = (Vec::new(), some.to_vec());
            out.send(dfm, Message::Orphans { sfi, life, events, finished, last: false });
        }
        out.send(dfm, Message::Orphans { sfi, life, events: Vec::new(), finished: Vec::new(), last: true });
    }

    /// A DFM in a later life learns what has become of events: its former one may have taken that with it, together with the SFI.
    fn tell_finished(&self, out: &mut Outbox) {
        let finished: Vec<Finish> = self.told.iter().map(|told| told.finish).collect();
        let some = |last| Holdings { ledger: Box::new(self.ledger), last, ..Holdings::default() };
        for finished in finished.chunks(TOLD_TOGETHER_MAX) {
            out.send(self.parameters.dfm, Message::Held(Holdings { finished: finished.to_vec(), ..some(false) }));
        }
        out.send(self.parameters.dfm, Message::Held(some(true)));
    }

    fn update_blocked(&mut self, now: Time) {
        let waits = self.recording.len() >= self.parameters.slots;
        for &sfo in &self.parameters.sfos {
            self.blocked.set(now, sfo, BlockCause::Recording, waits);
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        if node == self.parameters.dfm {
            self.dfm_up = matches!(state, PeerState::Up(_));
            // It asks again.
            self.asked.fill(None);
            if matches!(state, PeerState::Up(life) if life > Incarnation::FIRST) {
                self.tell_finished(out);
                self.untold.clear();
            }
            if self.dfm_up && !self.untold.is_empty() {
                out.send(node, Message::Finished(core::mem::take(&mut self.untold)));
            }
        }
        if let Some(sfi) = self.parameters.sfis.iter().position(|sfi| *sfi == node) {
            self.sfis[sfi] = state;
            self.fates.forget(node);
            self.tell_orphans(sfi, out);
            // What is here of it, in whatever life, keeps its slots.
            let taken = self.origins().filter(|(index, _)| *index == sfi).count() as u32;
            if matches!(state, PeerState::Up(_)) && taken < self.share() {
                out.send(node, Message::Pull(self.share() - taken));
            }
        }
        if let Some(sfo) = self.parameters.sfos.iter().position(|sfo| *sfo == node) {
            self.sfos[sfo] = state;
            let all = self.recording.iter().map(|(event, _)| event);
            let owned: Vec<EventId> = all.filter(|&event| self.owner_of(event) == sfo).collect();
            for event in owned {
                self.record(now, event, out);
            }
        }
    }

    fn on_command(&mut self, command: Command, out: &mut Outbox) {
        if command == Command::Sample {
            self.sampler.ask();
        }
        if command == Command::Drain {
            self.ending.drain();
        }
        if command == Command::Abandon {
            self.ending.abandon();
            for (_, (origins, built)) in core::mem::take(&mut self.processing) {
                self.counters.abandoned += 1;
                self.finish_all(origins, finish(&built, Fate::Abandoned), out);
            }
            while let Some(event) = self.recording.first() {
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
                Message::Ledger(ledger) => self.on_ledger(&ledger),
                Message::Recorded { event, fresh, complete } => {
                    self.on_recorded(now, event, (fresh, complete), out);
                }
                Message::Orphaned { sfi, life } => self.on_orphaned(sfi, life, out),
                // One that it has given up already may be refused, too.
                Message::Refused(event) if !self.recording.contains(event) => {}
                Message::Refused(event) => self.give_up(event, out),
                message => message.passes_no_gate(),
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(command, out),
            Input::Done { ticket: Ticket(event), outcome: Outcome::Processed(processed) } => {
                self.on_processed(now, EventId(event), processed, out);
            }
            Input::Watch(rule) => self.sampler.watch(rule),
            Input::Fragment { .. } | Input::Link { .. } | Input::Done { .. } | Input::Deadline => {}
        }
    }

    fn flush(&mut self, _now: Time, out: &mut Outbox) {
        self.fates.drain(|sfi, fates| send_fates(sfi, fates, out));
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn is_drained(&self) -> bool {
        self.ending.is_draining() && self.processing.is_empty() && self.recording.is_empty() && self.fates.is_empty()
    }

    fn report(&self, now: Time) -> Report {
        let (blocked, chains) = (self.blocked.read(now), self.chains.to_vec());
        let counters = EfdCounters { samples: self.sampler.given, samples_lost: self.sampler.lost, ..self.counters };
        Report { blocked, chains, ..Report::of(Role::Efd, counters.to_values()) }
    }

    fn check(&self) {
        let c = &self.counters;
        let in_hand = self.recording.len() as u64;
        let decided = c.rejected + c.accepted + c.debug + c.abandoned;
        assert_eq!(c.received, decided + self.processing.len() as u64, "every event decided or in a processing task");
        let settled = c.recorded + c.unrecorded;
        let passed_on = if self.parameters.sfos.is_empty() { c.accepted + c.debug } else { settled + in_hand };
        assert_eq!(c.accepted + c.debug, passed_on, "every accepted event recorded, given up or in hand");
        let mut taken = vec![0; self.sfis.len()];
        self.origins().for_each(|(sfi, _)| taken[*sfi] += 1);
        assert!(taken.iter().all(|slots| *slots <= self.share()), "no builder has more than its share of the slots");
    }
}

/// Tells an SFI, and asks it for as many events.
fn send_fates(sfi: NodeId, fates: Vec<Finish>, out: &mut Outbox) {
    let pulls = fates.len() as u32;
    out.send(sfi, Message::Finished(fates));
    out.send(sfi, Message::Pull(pulls));
}

fn fate_of(recording: &Recording) -> Fate {
    if recording.debug.is_some() { Fate::Debug } else { Fate::Accepted }
}

fn finish(built: &BuiltEvent, fate: Fate) -> Finish {
    Finish { event: built.event.event, fate, complete: built.missing.is_empty(), grounds: built.event.grounds }
}

/// Far below the room that a frame has for lists.
const TOLD_TOGETHER_MAX: usize = 512;

/// The result of the filter is recorded behind the fragments.
fn with_result(built: BuiltEvent, result: Bulk) -> BuiltEvent {
    BuiltEvent { bulk: built.bulk.followed_by(result), ..built }
}
