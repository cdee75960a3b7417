//! The event-builder interface of a read-out crate `[DAQ1999 §2.2.2]`. It collects the fragments of an event from the read-out systems
//! of the crate, and gives them out together.
//!
//! Outwards it is to event builders what a read-out system is: it answers, and it pushes. It holds handles on the fragments only:
//! they stay in the pages of the systems until it has sent them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::CrateRos;
use super::gathering::Gathering;
use crate::component::{Component, Input, Outbox, PeerState};
use crate::groups::WEIGHT_MAX;
use crate::message::{Command, DataReply, DataRequest, EventInfo, Message, Missing, PushOrder, UNASKED};
use crate::readout::pusher::{PushParameters, Pusher};
use crate::readout::replies::{Parts, Replies};
use crate::readout::showing::Showing;
use crate::report::{Counters, EbifCounters, Report};
use base::bulk::{Bulk, BulkParts};
use base::ids::{EventId, NodeId, Role};
use base::numbered::Numbered;
use base::sampling::{Sampler, SamplingRule};
use base::time::Time;

/// How the interface of a crate to event building is set up.
#[derive(Clone, Debug)]
pub struct EbifParameters {
    /// The read-out systems of the crate.
    pub systems: Vec<CrateRos>,
    /// How data are pushed, if they are.
    pub push: Option<PushParameters>,
    /// Most events that wait for the credit of a builder; any beyond will be asked for.
    pub waiting_max: usize,
    /// How long the data of an event are waited for.
    pub request_timeout: Duration,
    /// Most bytes of replies that travel in one message, unless the reply for a single event has more.
    pub group_bytes_max: usize,
    /// Which events are shown to those who watch, if any are.
    pub sampling: Option<SamplingRule>,
}

/// The interface of a crate to event building.
///
/// Every event that it is told to collect is answered, pushed, dropped with a cause, or still in hand: `check` holds it to that.
pub struct Ebif {
    parameters: EbifParameters,
    /// Systems that are there, that were there in this life, and that will not return: one bit each, in the order of the crate.
    there: u32,
    seen: u32,
    gone: u32,
    /// Those that are there, by node.
    asked: Arc<[NodeId]>,
    /// By the number of its requests.
    collections: Numbered<Collection>,
    /// In order, since all wait equally long.
    deadlines: VecDeque<(Time, u32)>,
    /// Collections that are to be pushed, by builder and event.
    pushes: BTreeMap<(NodeId, EventId), u32>,
    /// What is collected and waits for the credit of its builder.
    ready: BTreeMap<(NodeId, EventId), (Vec<Missing>, Parts)>,
    /// What all systems are to be asked for at the end of this pass.
    to_ask: Vec<DataRequest>,
    replies: Replies,
    pusher: Option<Pusher>,
    draining: bool,
    showing: Showing,
    counters: EbifCounters,
}

struct Collection {
    event: EventInfo,
    target: Target,
    data: Gathering,
}

/// For whom an event is collected.
#[derive(Clone, Copy)]
enum Target {
    /// A builder has asked.
    Asked { by: NodeId, attempt: u16, request: u32 },
    /// It is to be pushed.
    Push(NodeId),
}

impl Target {
    fn builder(self) -> NodeId {
        match self {
            Self::Asked { by, .. } => by,
            Self::Push(sfi) => sfi,
        }
    }
}

impl Ebif {
    /// With nothing in hand.
    ///
    /// # Panics
    /// If the crate has more than [`SYSTEMS_MAX`] read-out systems.
    pub fn new(parameters: EbifParameters) -> Self {
        assert!(parameters.systems.len() <= SYSTEMS_MAX, "a crate has at most {SYSTEMS_MAX} read-out systems");
        let pusher = parameters.push.as_ref().map(|push| Pusher::new(push, parameters.waiting_max));
        Self {
            there: 0,
            seen: 0,
            gone: 0,
            asked: Arc::default(),
            collections: Numbered::default(),
            deadlines: VecDeque::new(),
            pushes: BTreeMap::new(),
            ready: BTreeMap::new(),
            to_ask: Vec::new(),
            replies: Replies::new(parameters.group_bytes_max),
            pusher,
            draining: false,
            showing: Showing::new(parameters.sampling),
            counters: EbifCounters::default(),
            parameters,
        }
    }

    /// Accepted events: each is collected for its builder.
    fn on_orders(&mut self, now: Time, orders: &[PushOrder], out: &mut Outbox) {
        if self.pusher.is_none() {
            return;
        }
        for &PushOrder { event, sfi } in orders {
            let key = (sfi, event.event);
            if self.pushes.contains_key(&key) || self.ready.contains_key(&key) {
                self.counters.repeated += 1;
                continue;
            }
            self.counters.orders += 1;
            self.collect(now, event, Target::Push(sfi), &[], out);
        }
    }

    fn on_requests(&mut self, now: Time, from: NodeId, requests: &[DataRequest], out: &mut Outbox) {
        for DataRequest { event, attempt, request, robs } in requests {
            self.withdraw(from, event.event);
            self.counters.requests += 1;
            let target = Target::Asked { by: from, attempt: *attempt, request: *request };
            self.collect(now, *event, target, robs, out);
        }
    }

    /// Asks the systems of the crate for an event, or for some ROBs of it.
    fn collect(&mut self, now: Time, event: EventInfo, target: Target, robs: &[u32], out: &mut Outbox) {
        let own = self.collections.next_number();
        let mut data = Gathering::new(&self.parameters.systems, robs);
        for (place, system) in self.parameters.systems.iter().enumerate() {
            // One that was never seen may only not be connected yet.
            if self.there & 1 << place == 0 && (self.seen | self.gone) & 1 << place != 0 {
                data.do_without(system, self.gone & 1 << place != 0);
            }
        }
        if robs.is_empty() {
            self.to_ask.push(request(own, event, target, &[]));
        } else {
            for (node, robs) in data.asked() {
                out.send(
                    node,
                    Message::EventRequest { requests: Arc::new(alloc::vec![request(own, event, target, robs)]) },
                );
            }
        }
        if let Target::Push(sfi) = target {
            self.pushes.insert((sfi, event.event), own);
        }
        self.collections.insert(own, Collection { event, target, data });
        self.deadlines.push_back((now + self.parameters.request_timeout, own));
        // Nobody was asked who could answer.
        if self.collections.get_mut(own).is_some_and(|collection| collection.data.is_complete()) {
            self.finish(now, own, out);
        }
        if self.to_ask.len() == WEIGHT_MAX {
            self.ask(out);
        }
    }

    /// One list for all systems that are there.
    fn ask(&mut self, out: &mut Outbox) {
        if self.to_ask.is_empty() {
            return;
        }
        let requests = Arc::new(core::mem::take(&mut self.to_ask));
        self.to_ask.reserve(requests.len());
        out.broadcast(Arc::clone(&self.asked), Message::EventRequest { requests });
    }

    fn on_replies(&mut self, now: Time, from: NodeId, replies: Vec<DataReply>, bulk: Bulk, out: &mut Outbox) {
        let mut parts = BulkParts::new(bulk);
        for DataReply { request, missing, len_bytes, .. } in replies {
            let data = parts.take(len_bytes as usize);
            // One look at each fragment: all else is for an event.
            match self.collections.get_mut(request).map(|of| (of.data.take(from, missing, data), of.data.is_complete()))
            {
                Some((true, true)) => self.finish(now, request, out),
                Some((true, false)) => {}
                Some((false, _)) | None => self.counters.replies_late += 1,
            }
        }
    }

    /// All that an event waits for has come, or will not.
    fn finish(&mut self, now: Time, own: u32, out: &mut Outbox) {
        let Collection { event, target, data } = self.collections.remove(own).expect("it is there");
        while self.deadlines.pop_front_if(|(_, first)| !self.collections.contains(*first)).is_some() {}
        let is_wanted = data.is_of_all() && self.showing.wants(&event);
        let (missing, mut parts) = data.finish();
        if is_wanted {
            self.showing.show(event, &missing, parts.len_bytes(), || parts.bulk(), out);
        }
        let event = event.event;
        self.counters.lost_robs += missing.iter().filter(|missing| missing.lost).count() as u64;
        match target {
            Target::Asked { by, attempt, request } => {
                self.counters.answered += 1;
                self.counters.bytes_out += u64::from(parts.len_bytes());
                let pushed = self.pusher.as_ref().map_or(0, |pusher| pusher.pushed(by));
                let reply = DataReply { event, attempt, request, missing, len_bytes: parts.len_bytes() };
                self.replies.add(by, pushed, reply, &mut parts, out);
            }
            Target::Push(sfi) => {
                self.pushes.remove(&(sfi, event));
                let mut is_taken = || self.pusher.as_mut().is_some_and(|pusher| pusher.offer(now, sfi, event));
                // A fragment may still come. The builder hears that at once and asks, so it waits for no time-out.
                if missing.iter().any(|missing| !missing.lost) {
                    self.counters.dropped_incomplete += 1;
                    let pushed = self.pusher.as_ref().map_or(0, |pusher| pusher.pushed(sfi));
                    self.replies.add(sfi, pushed, unasked(event, missing, 0), &mut Parts::default(), out);
                } else if is_taken() {
                    self.ready.insert((sfi, event), (missing, parts));
                } else {
                    self.counters.dropped_full += 1;
                }
            }
        }
    }

    /// Sends what is to be pushed and may go.
    fn push(&mut self, now: Time, out: &mut Outbox) {
        let Some(pusher) = &mut self.pusher else { return };
        while let Some((lane, count)) = pusher.next(now) {
            for _ in 0..count {
                let Some(event) = pusher.take(lane) else { break };
                let sfi = pusher.builder(lane);
                let (missing, mut parts) = self.ready.remove(&(sfi, event)).expect("what waits in a lane is there");
                let len_bytes = parts.len_bytes();
                let (_, pushed) = pusher.sent(now, lane, len_bytes as usize);
                self.counters.pushed += 1;
                self.counters.bytes_out += u64::from(len_bytes);
                self.replies.add(sfi, pushed, unasked(event, missing, len_bytes), &mut parts, out);
            }
        }
    }

    /// A builder asks for an event: it is not pushed as well.
    fn withdraw(&mut self, sfi: NodeId, event: EventId) {
        let Some(pusher) = &mut self.pusher else { return };
        let collection = self.pushes.remove(&(sfi, event)).and_then(|own| self.collections.remove(own));
        let ready = self.ready.remove(&(sfi, event));
        if ready.is_some() {
            pusher.withdraw(sfi, event);
        }
        self.counters.dropped_withdrawn += u64::from(collection.is_some() || ready.is_some());
    }

    fn time_out(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, own)) = self.deadlines.pop_front_if(|(deadline, _)| *deadline <= now) {
            if let Some(collection) = self.collections.get_mut(own) {
                self.counters.timeouts += 1;
                collection.data.do_without_rest(&self.parameters.systems);
                self.finish(now, own, out);
            }
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        if let Some(place) = self.parameters.systems.iter().position(|system| system.node == node) {
            return self.on_system(now, place, state, out);
        }
        let is_up = matches!(state, PeerState::Up(_));
        if let Some(pusher) = &mut self.pusher {
            pusher.on_peer(node, is_up);
        }
        // In either case the lane forgets what waits in it.
        let before = self.in_hand();
        self.ready.retain(|(sfi, _), _| *sfi != node);
        if !is_up {
            self.collections.retain(|collection| collection.target.builder() != node);
            self.pushes.retain(|(sfi, _), _| *sfi != node);
            self.replies.forget(node);
        }
        self.counters.dropped_peer += (before - self.in_hand()) as u64;
    }

    fn on_system(&mut self, now: Time, place: usize, state: PeerState, out: &mut Outbox) {
        // What the others were to be asked for they are asked for, whatever comes of this one.
        self.ask(out);
        if matches!(state, PeerState::Up(_)) {
            self.there |= 1 << place;
            self.seen |= 1 << place;
            self.note_there();
            return self.ask_anew(place, out);
        }
        self.there &= !(1 << place);
        self.note_there();
        self.gone |= u32::from(state == PeerState::Gone) << place;
        let system = &self.parameters.systems[place];
        let is_lost = state == PeerState::Gone;
        let waits = |data: &mut Gathering| data.do_without(system, is_lost) && data.is_complete();
        let hit = self.collections.iter_mut().filter_map(|(own, of)| waits(&mut of.data).then_some(own));
        for own in hit.collect::<Vec<_>>() {
            self.finish(now, own, out);
        }
    }

    fn note_there(&mut self) {
        let is_there = |place: usize| self.there & 1 << place != 0;
        let there = self.parameters.systems.iter().enumerate().filter(|(place, _)| is_there(*place));
        self.asked = there.map(|(_, system)| system.node).collect();
    }

    /// A system that has come is asked for what is waited for.
    fn ask_anew(&self, place: usize, out: &mut Outbox) {
        let node = self.parameters.systems[place].node;
        let asked = |collection: &Collection| {
            let asked = collection.data.asked().find(|(of, _)| *of == node);
            asked.map(|(_, robs)| robs.to_vec())
        };
        let waiting =
            self.collections.iter().filter_map(|(own, collection)| Some((own, collection, asked(collection)?)));
        let requests = waiting.map(|(own, collection, robs)| request(own, collection.event, collection.target, &robs));
        let requests: Vec<DataRequest> = requests.collect();
        for some in requests.chunks(WEIGHT_MAX) {
            out.send(node, Message::EventRequest { requests: Arc::new(some.to_vec()) });
        }
    }

    /// All that built events have drained before: nobody waits for what is in hand.
    fn drain(&mut self) {
        self.draining = true;
        self.counters.dropped_end += self.in_hand() as u64;
        self.collections.clear();
        self.pushes.clear();
        self.to_ask.clear();
        for (sfi, event) in core::mem::take(&mut self.ready).into_keys() {
            self.pusher.iter_mut().for_each(|pusher| pusher.withdraw(sfi, event));
        }
    }

    /// Events that are neither sent nor dropped.
    fn in_hand(&self) -> usize {
        self.collections.len() + self.ready.len()
    }
}

/// What a system is asked for; it answers with the number of the collection.
fn request(own: u32, event: EventInfo, target: Target, robs: &[u32]) -> DataRequest {
    let attempt = if let Target::Asked { attempt, .. } = target { attempt } else { FIRST_ATTEMPT };
    DataRequest { event, attempt, request: own, robs: robs.to_vec() }
}

/// What goes to a builder that has not asked.
fn unasked(event: EventId, missing: Vec<Missing>, len_bytes: u32) -> DataReply {
    DataReply { event, attempt: FIRST_ATTEMPT, request: UNASKED, missing, len_bytes }
}

impl Component for Ebif {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::Push(orders) => self.on_orders(now, &orders, out),
                Message::EventRequest { requests } => self.on_requests(now, from, &requests, out),
                Message::EventReply { replies, bulk, .. } => self.on_replies(now, from, replies, bulk, out),
                Message::Credit(taken) => self.pusher.iter_mut().for_each(|pusher| pusher.on_credit(from, taken)),
                message => message.passes_no_gate(),
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(Command::Drain | Command::Abandon) => self.drain(),
            Input::Command(Command::Sample) => self.showing.sampler.ask(),
            Input::Watch(rule) => self.showing.sampler.watch(rule),
            Input::Deadline => {
                self.time_out(now, out);
                self.pusher.iter_mut().for_each(|pusher| pusher.on_deadline(now));
            }
            Input::Command(_) | Input::Fragment { .. } | Input::Link { .. } | Input::Done { .. } => {}
        }
    }

    fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.ask(out);
        self.push(now, out);
        self.replies.flush(out);
    }

    fn next_deadline(&self) -> Option<Time> {
        let timeout = self.deadlines.front().map(|(deadline, _)| *deadline);
        let push = self.pusher.as_ref().and_then(Pusher::next_deadline);
        [timeout, push].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.draining
    }

    fn report(&self, _now: Time) -> Report {
        let Sampler { given: samples, lost: samples_lost, .. } = self.showing.sampler;
        let counters = EbifCounters { in_hand: self.in_hand() as u64, samples, samples_lost, ..self.counters };
        Report::of(Role::Ebif, counters.to_values())
    }

    fn check(&self) {
        let c = &self.counters;
        let dropped = c.dropped_incomplete + c.dropped_full + c.dropped_withdrawn + c.dropped_peer + c.dropped_end;
        let out = c.answered + c.pushed + dropped;
        assert_eq!(c.requests + c.orders, out + self.in_hand() as u64, "every event accounted for");
        assert!(self.pushes.values().all(|own| self.collections.contains(*own)), "what is to be pushed is collected");
        assert!(self.deadlines.iter().is_sorted_by_key(|(deadline, _)| *deadline), "time-outs in order");
        self.pusher.iter().for_each(Pusher::check);
    }
}

/// Those that are there are known by one bit each.
pub const SYSTEMS_MAX: usize = 32;

/// Later attempts are asked for.
const FIRST_ATTEMPT: u16 = 1;
