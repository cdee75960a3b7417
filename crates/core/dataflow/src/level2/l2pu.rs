//! The level-2 processing unit: collects RoI data, runs steering, decides `[L2SCI2000 §2.3.2]`.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Component, Input, Outbox, Outcome, PeerState, Steer, Steered, Ticket, Work};
use crate::ending::Ending;
use crate::level2::overrides::Overrides;
use crate::message::{Command, EventInfo, Message, Missing, Roi};
use crate::report::{ChainCounts, Counters, L2puCounters, Report};
use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use base::random::unit_of_event;
use base::time::Time;

/// How a processing unit is set up.
#[derive(Clone, Debug)]
pub struct L2puParameters {
    /// Events worked on at once.
    pub workers: usize,
    /// Which ROS holds each ROB, by source identifier, rising.
    pub ros_of_rob: Vec<(u32, NodeId)>,
    /// Who keeps the results; nobody does where nothing is built.
    pub pros: Option<NodeId>,
    /// What supervisors make of decisions. An event that is rejected whatever the decision is keeps neither result nor data. Nobody
    /// would ask for them, and in a small pROS they would take the room of others.
    pub overrides: Overrides,
    /// A unit that answers at once, without steering, data or result, and accepts this fraction of the events (0–1). It
    /// is the SteerSink of `[L2SCI2000 §3.2]`, to measure supervisors with.
    pub sink: Option<f64>,
    /// The SFI that is given the data collected for accepted events, for phased selection `[ATM1997 §II-B]`: one that shares
    /// memory with this unit. Not where read-out systems preprocess RoI data, which are no event data then.
    pub builder: Option<NodeId>,
    /// How long a ROS may take.
    pub request_timeout: Duration,
    /// How often it is asked again.
    pub retries: u32,
}

/// A processing unit: a fixed number of workers, each with one event; steering runs in the driver.
pub struct L2pu {
    parameters: L2puParameters,
    workers: Vec<Option<Worker>>,
    idle: Vec<usize>,
    /// Which worker has which event, by event.
    by_event: Vec<(EventId, usize)>,
    /// Assigned while all workers were taken: bounded by the shares of the supervisors.
    queue: VecDeque<Assigned>,
    /// Lists of ROBs that were asked for, empty, to be used again: at most one for each worker.
    spare: Vec<Vec<(NodeId, u32)>>,
    timeouts: VecDeque<(Time, usize, u32)>,
    next_request: u32,
    pros_up: bool,
    builder_up: bool,
    /// Peers that will not return.
    gone: Vec<NodeId>,
    ending: Ending,
    chains: ChainCounts,
    counters: L2puCounters,
}

struct Assigned {
    from: NodeId,
    /// The supervisor has lost its connection since, or died: it counts on no decision.
    is_void: bool,
    event: EventInfo,
    attempt: u16,
    rois: Vec<Roi>,
}

struct Worker {
    assigned: Assigned,
    step: u32,
    state: Deciding,
    /// Some of the data that it has asked for are missing or damaged: then its decision to reject is none.
    lacks_data: bool,
    /// For the builder: ROBs, none twice, and their fragments.
    collected: (Vec<u32>, Vec<Bulk>),
}

enum Deciding {
    /// The driver runs a step.
    Steering(Ticket),
    /// Data of the next step are on their way.
    Collecting(Collection),
    /// The pROS has not yet acknowledged the result.
    Accepted(Bulk),
}

struct Collection {
    request: u32,
    tries: u32,
    /// The ROBs of ROSs that have not answered, by ROS.
    waiting: Vec<(NodeId, u32)>,
    data: Vec<Bulk>,
    missing: u32,
}

impl L2pu {
    /// A processing unit without events.
    pub fn new(parameters: L2puParameters) -> Self {
        let workers = parameters.workers;
        Self {
            parameters,
            workers: (0..workers).map(|_| None).collect(),
            idle: (0..workers).rev().collect(),
            by_event: Vec::with_capacity(workers),
            queue: VecDeque::new(),
            spare: Vec::new(),
            timeouts: VecDeque::new(),
            next_request: 0,
            pros_up: false,
            builder_up: false,
            gone: Vec::new(),
            ending: Ending::NotYet,
            chains: ChainCounts::default(),
            counters: L2puCounters::default(),
        }
    }

    fn on_assign(&mut self, assigned: Assigned, out: &mut Outbox) {
        self.counters.received += 1;
        if self.ending.is_abandoned() {
            return;
        }
        if let Some(fraction) = self.parameters.sink {
            return self.sink(&assigned, fraction, out);
        }
        self.queue.push_back(assigned);
        self.begin(out);
    }

    fn sink(&mut self, assigned: &Assigned, fraction: f64, out: &mut Outbox) {
        let Assigned { from, event, attempt, .. } = *assigned;
        let accept = sink_accepts(event.event, fraction);
        self.counters.accepted += u64::from(accept);
        self.counters.rejected += u64::from(!accept);
        out.send(
            from,
            Message::L2Decision {
                event: event.event,
                attempt,
                accept,
                lacks_data: false,
                has_result: false,
                builder: None,
            },
        );
    }

    fn begin(&mut self, out: &mut Outbox) {
        while !self.idle.is_empty() {
            let Some(assigned) = self.queue.pop_front() else { return };
            let event = assigned.event.event;
            let place = match self.by_event.binary_search_by_key(&event, |(event, _)| *event) {
                Ok(found) => {
                    // Assigned again, by a supervisor that lost track: the answer goes to the newest attempt.
                    let worker = self.by_event[found].1;
                    self.workers[worker].as_mut().expect("a worker with an event").assigned = assigned;
                    continue;
                }
                Err(place) => place,
            };
            let worker = self.idle.pop().expect("a worker is idle");
            self.by_event.insert(place, (event, worker));
            let state = Deciding::Steering(Ticket(0));
            self.workers[worker] =
                Some(Worker { assigned, step: 0, state, lacks_data: false, collected: Default::default() });
            self.steer(worker, Vec::new(), 0, out);
        }
    }

    fn worker_with(&self, event: EventId) -> Option<usize> {
        let found = self.by_event.binary_search_by_key(&event, |(event, _)| *event).ok()?;
        Some(self.by_event[found].1)
    }

    fn steer(&mut self, index: usize, data: Vec<Bulk>, missing: u32, out: &mut Outbox) {
        self.next_request = self.next_request.wrapping_add(1);
        let ticket = Ticket(u64::from(self.next_request) << 32 | index as u64);
        let worker = self.workers[index].as_mut().expect("a worker with an event");
        worker.state = Deciding::Steering(ticket);
        self.counters.steps += 1;
        let Assigned { event, ref rois, .. } = worker.assigned;
        let (step, rois) = (worker.step, rois.clone());
        out.start(ticket, Work::Steer(Steer { event, worker: index as u32, step, rois, data, missing }));
        worker.step += 1;
    }

    fn on_steered(&mut self, now: Time, ticket: Ticket, steered: Steered, out: &mut Outbox) {
        let index = (ticket.0 & 0xffff_ffff) as usize;
        let current = |worker: &Worker| matches!(worker.state, Deciding::Steering(t) if t == ticket);
        if !self.workers.get(index).and_then(Option::as_ref).is_some_and(current) {
            return;
        }
        match steered {
            Steered::Ask(robs) => self.collect(now, index, &robs, out),
            Steered::Decide(selection) => {
                self.counters.payload_bytes += u64::from(selection.payload_bytes);
                self.chains.note(selection.chains);
                let worker = self.workers[index].as_mut().expect("a worker with an event");
                worker.lacks_data |= selection.lacks_data;
                if selection.accept {
                    self.keep_result(index, selection.result, out);
                } else if worker.lacks_data {
                    self.keep_result(index, Bulk::empty(), out);
                } else {
                    self.decide(index, false, false, out);
                }
            }
        }
    }

    fn collect(&mut self, now: Time, index: usize, robs: &[u32], out: &mut Outbox) {
        self.counters.robs += robs.len() as u64;
        let (waiting, unknown) = self.by_ros(robs);
        self.next_request = self.next_request.wrapping_add(1);
        let request = self.next_request;
        let collection = Collection { request, tries: 0, waiting, data: Vec::new(), missing: unknown };
        self.workers[index].as_mut().expect("a worker with an event").state = Deciding::Collecting(collection);
        self.ask(now, index, out);
    }

    /// The ROBs with their ROSs, by ROS, and how many no ROS holds.
    fn by_ros(&mut self, robs: &[u32]) -> (Vec<(NodeId, u32)>, u32) {
        let mut asked = self.spare.pop().unwrap_or_default();
        let ros_of_rob = &self.parameters.ros_of_rob;
        let place = |rob: &u32| ros_of_rob.binary_search_by_key(rob, |(rob, _)| *rob).ok();
        asked.extend(robs.iter().filter_map(|rob| Some((ros_of_rob[place(rob)?].1, *rob))));
        asked.sort_unstable();
        let unknown = (robs.len() - asked.len()) as u32;
        (asked, unknown)
    }

    /// Asks all ROSs that have not answered.
    fn ask(&mut self, now: Time, index: usize, out: &mut Outbox) {
        let worker = self.workers[index].as_mut().expect("a worker with an event");
        let Deciding::Collecting(collection) = &mut worker.state else {
            return;
        };
        if !self.gone.is_empty() {
            collection.give_up(|ros| self.gone.contains(&ros));
        }
        let (event, request) = (worker.assigned.event.event, collection.request);
        for of_one in by_ros(&collection.waiting) {
            self.counters.roi_requests += 1;
            out.send(of_one[0].0, collection.request_to(event, of_one));
        }
        self.timeouts.push_back((now + self.parameters.request_timeout, index, request));
        self.finish_collection(index, out);
    }

    fn on_roi_reply(
        &mut self,
        from: NodeId,
        event: EventId,
        request: u32,
        missing: &[Missing],
        bulk: Bulk,
        out: &mut Outbox,
    ) {
        let collection = self.worker_with(event).and_then(|index| {
            let worker = self.workers[index].as_mut()?;
            match &mut worker.state {
                Deciding::Collecting(collection) if collection.request == request => {
                    Some((index, collection, &mut worker.collected))
                }
                _ => None,
            }
        });
        let keeps = self.parameters.builder.is_some();
        let waiting = collection.and_then(|(index, collection, kept)| {
            let position = collection.waiting.iter().position(|(ros, _)| *ros == from)?;
            let count = collection.waiting[position..].iter().take_while(|(ros, _)| *ros == from).count();
            Some((index, collection, kept, position..position + count))
        });
        let Some((index, collection, kept, its)) = waiting else {
            self.counters.late_replies += 1;
            return;
        };
        let robs = collection.waiting[its.clone()].iter().map(|(_, rob)| *rob);
        // A fragment that an earlier step has fetched as well must not come twice.
        if keeps && !bulk.is_empty() && robs.clone().all(|rob| !kept.0.contains(&rob)) {
            kept.0.extend(robs.filter(|rob| missing.iter().all(|missing| missing.rob != *rob)));
            kept.1.push(bulk.clone());
        }
        collection.waiting.drain(its);
        collection.missing += missing.len() as u32;
        self.counters.roi_bytes += bulk.len() as u64;
        collection.data.push(bulk);
        self.finish_collection(index, out);
    }

    /// Runs the next step once nothing is waited for.
    fn finish_collection(&mut self, index: usize, out: &mut Outbox) {
        let worker = self.workers[index].as_mut().expect("a worker with an event");
        let Deciding::Collecting(collection) = &mut worker.state else {
            return;
        };
        if collection.waiting.is_empty() {
            let (data, missing) = (core::mem::take(&mut collection.data), collection.missing);
            self.spare.push(core::mem::take(&mut collection.waiting));
            worker.lacks_data |= missing > 0;
            self.counters.incomplete += u64::from(missing > 0);
            self.forget_collected();
            self.steer(index, data, missing, out);
        }
    }

    /// Time-outs of requests that are answered go as they come to the front.
    fn forget_collected(&mut self) {
        let workers = &self.workers;
        let waits = |index: usize, request: u32| match &workers[index] {
            Some(Worker { state: Deciding::Collecting(collection), .. }) => {
                collection.request == request && !collection.waiting.is_empty()
            }
            _ => false,
        };
        while self.timeouts.front().is_some_and(|(_, index, request)| !waits(*index, *request)) {
            self.timeouts.pop_front();
        }
        if self.timeouts.len() > 2 * workers.len() + TIMEOUTS_SLACK {
            self.timeouts.retain(|(_, index, request)| waits(*index, *request));
        }
    }

    fn on_timeout(&mut self, now: Time, index: usize, request: u32, out: &mut Outbox) {
        let Some(worker) = self.workers[index].as_mut() else {
            return;
        };
        match &mut worker.state {
            Deciding::Collecting(collection) if collection.request == request => {
                if collection.tries < self.parameters.retries {
                    collection.tries += 1;
                    self.counters.reasks += by_ros(&collection.waiting).count() as u64;
                    self.ask(now, index, out);
                } else {
                    collection.missing += collection.waiting.drain(..).len() as u32;
                    self.finish_collection(index, out);
                }
            }
            _ => {}
        }
    }

    /// The pROS has the result, if there is one, before anybody can ask for it. While it is away results are lost: as the event
    /// had one, its builder finds it missing.
    fn keep_result(&mut self, index: usize, result: Bulk, out: &mut Outbox) {
        let Assigned { is_void, event, .. } = self.workers[index].as_ref().expect("a worker with an event").assigned;
        let is_wanted = !is_void && self.may_be_accepted(event) && !result.is_empty();
        let Some(pros) = self.parameters.pros.filter(|_| is_wanted) else {
            return self.decide(index, true, false, out);
        };
        if !self.pros_up {
            return self.decide(index, true, true, out);
        }
        out.send(pros, Message::L2Result { event: event.event, bulk: result.clone() });
        self.workers[index].as_mut().expect("a worker with an event").state = Deciding::Accepted(result);
    }

    fn on_result_taken(&mut self, event: EventId, out: &mut Outbox) {
        let Some(index) = self.worker_with(event) else {
            return;
        };
        if self.workers[index].as_ref().is_some_and(|worker| matches!(worker.state, Deciding::Accepted(_))) {
            self.decide(index, true, true, out);
        }
    }

    fn decide(&mut self, index: usize, accept: bool, has_result: bool, out: &mut Outbox) {
        let worker = self.workers[index].take().expect("a worker with an event");
        let (Assigned { from, is_void, event, attempt, .. }, lacks_data) = (worker.assigned, worker.lacks_data);
        let place = self.by_event.binary_search_by_key(&event.event, |(event, _)| *event);
        self.by_event.remove(place.expect("a working worker is found by its event"));
        self.idle.push(index);
        self.counters.accepted += u64::from(accept);
        self.counters.rejected += u64::from(!accept);
        let is_wanted = accept && !is_void && self.may_be_accepted(event);
        let builder = if is_wanted { self.give_to_builder(event.event, worker.collected, out) } else { None };
        let event = event.event;
        if !is_void {
            out.send(from, Message::L2Decision { event, attempt, accept, lacks_data, has_result, builder });
        }
        self.begin(out);
    }

    fn may_be_accepted(&self, event: EventInfo) -> bool {
        self.parameters.overrides.decide(event.items, true)
    }

    /// The builder that has the collected data now, if there are any.
    fn give_to_builder(
        &self,
        event: EventId,
        (robs, bulks): (Vec<u32>, Vec<Bulk>),
        out: &mut Outbox,
    ) -> Option<NodeId> {
        let builder = self.parameters.builder.filter(|_| self.builder_up)?;
        let bulk = bulks.into_iter().reduce(Bulk::followed_by)?;
        out.send(builder, Message::Collected { event, robs, bulk });
        Some(builder)
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        if Some(node) == self.parameters.pros {
            self.pros_up = matches!(state, PeerState::Up(_));
            self.settle_results(out);
        }
        if Some(node) == self.parameters.builder {
            self.builder_up = matches!(state, PeerState::Up(_));
        }
        if let PeerState::Up(_) = state {
            self.ask_anew(now, node, out);
        }
        if state == PeerState::Gone {
            self.gone.push(node);
            self.give_up_on(node, out);
        }
        // No assignment of a lost supervisor counts, even if it returned; nobody hears what workers finish of them.
        self.queue.retain(|assigned| assigned.from != node);
        self.let_go(node, out);
    }

    /// Results of events of a lost supervisor do not wait for a pROS. The events that fill it may have to be decided first, in a later
    /// life, which needs the workers that wait. If there is none, nobody clears it.
    fn let_go(&mut self, l2sv: NodeId, out: &mut Outbox) {
        for index in 0..self.workers.len() {
            let its = self.workers[index].as_mut().filter(|worker| worker.assigned.from == l2sv);
            let Some(worker) = its else { continue };
            worker.assigned.is_void = true;
            if matches!(worker.state, Deciding::Accepted(_)) {
                self.decide(index, true, false, out);
            }
        }
    }

    /// Results that wait for a pROS are sent to its new self, or are lost.
    fn settle_results(&mut self, out: &mut Outbox) {
        for index in 0..self.workers.len() {
            let Some(worker) = &self.workers[index] else { continue };
            let Deciding::Accepted(result) = &worker.state else {
                continue;
            };
            match self.parameters.pros.filter(|_| self.pros_up) {
                Some(pros) => {
                    let (event, bulk) = (worker.assigned.event.event, result.clone());
                    out.send(pros, Message::L2Result { event, bulk });
                }
                None => self.decide(index, true, true, out),
            }
        }
    }

    /// Asks a ROS, once it is in reach or has a new life, for what it owes. That does not count as another try.
    fn ask_anew(&mut self, now: Time, ros: NodeId, out: &mut Outbox) {
        for (index, worker) in self.workers.iter().enumerate() {
            let Some(Worker { assigned, state: Deciding::Collecting(collection), .. }) = worker else { continue };
            let Some(its) = by_ros(&collection.waiting).find(|its| its[0].0 == ros) else { continue };
            self.counters.roi_requests += 1;
            out.send(ros, collection.request_to(assigned.event.event, its));
            self.timeouts.retain(|(_, other, request)| (*other, *request) != (index, collection.request));
            self.timeouts.push_back((now + self.parameters.request_timeout, index, collection.request));
        }
    }

    /// A ROS that will not return: its ROBs are missing.
    fn give_up_on(&mut self, ros: NodeId, out: &mut Outbox) {
        for index in 0..self.workers.len() {
            let Some(Worker { state: Deciding::Collecting(collection), .. }) = self.workers[index].as_mut() else {
                continue;
            };
            collection.give_up(|node| node == ros);
            self.finish_collection(index, out);
        }
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, index, request)) = self.timeouts.pop_front_if(|(deadline, _, _)| *deadline <= now) {
            self.on_timeout(now, index, request, out);
        }
    }

    fn on_command(&mut self, command: Command) {
        if command == Command::Drain {
            self.ending.drain();
        }
        if command == Command::Abandon {
            self.ending.abandon();
            self.queue.clear();
            self.by_event.clear();
            self.workers.iter_mut().for_each(|worker| *worker = None);
            self.idle = (0..self.workers.len()).rev().collect();
        }
    }
}

impl Collection {
    /// The request for these ROBs of one ROS.
    fn request_to(&self, event: EventId, of_one: &[(NodeId, u32)]) -> Message {
        let robs = of_one.iter().map(|(_, rob)| *rob).collect();
        Message::RoiRequest { event, request: self.request, robs }
    }

    /// What these read-out systems have will not come.
    fn give_up(&mut self, is_gone: impl Fn(NodeId) -> bool) {
        let before = self.waiting.len();
        self.waiting.retain(|(ros, _)| !is_gone(*ros));
        self.missing += (before - self.waiting.len()) as u32;
    }
}

impl Component for L2pu {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::Assign { event, attempt, rois } => {
                    self.on_assign(Assigned { from, is_void: false, event, attempt, rois }, out);
                }
                Message::RoiReply { event, request, missing, bulk } => {
                    self.on_roi_reply(from, event, request, &missing, bulk, out);
                }
                Message::L2ResultTaken(event) => self.on_result_taken(event, out),
                message => message.passes_no_gate(),
            },
            Input::Done { ticket, outcome: Outcome::Steered(steered) } => self.on_steered(now, ticket, steered, out),
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(command),
            Input::Deadline => self.on_deadline(now, out),
            Input::Fragment { .. } | Input::Link { .. } | Input::Watch(_) | Input::Done { .. } => {}
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.timeouts.front().map(|(deadline, _, _)| *deadline)
    }

    fn is_drained(&self) -> bool {
        self.ending.is_draining() && self.by_event.is_empty() && self.queue.is_empty()
    }

    fn report(&self, _now: Time) -> Report {
        Report { chains: self.chains.to_vec(), ..Report::of(Role::L2pu, self.counters.to_values()) }
    }

    fn check(&self) {
        let working = self.workers.iter().flatten().count();
        assert_eq!(working, self.by_event.len(), "every working worker is found by its event");
        assert!(self.by_event.is_sorted_by(|a, b| a.0 < b.0), "events in order");
        assert_eq!(working + self.idle.len(), self.workers.len(), "every worker works or is idle");
        assert!(self.queue.is_empty() || self.idle.is_empty(), "nothing waits for a free worker");
        assert!(self.timeouts.len() <= 3 * self.workers.len() + TIMEOUTS_SLACK, "time-outs of workers");
    }
}

/// The ROBs of one ROS after the other.
fn by_ros(waiting: &[(NodeId, u32)]) -> impl Iterator<Item = &[(NodeId, u32)]> {
    waiting.chunk_by(|(one, _), (other, _)| one == other)
}

/// What a [sink](L2puParameters::sink) decides.
pub fn sink_accepts(event: EventId, fraction: f64) -> bool {
    unit_of_event(event, 0) < fraction
}

/// Time-outs of answered requests that are not worth being tidied up.
const TIMEOUTS_SLACK: usize = 64;
