//! The level-2 processing unit: collects RoI data, runs steering, decides `[L2SCI2000 §2.3.2]`.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::bulk::Bulk;
use crate::component::{Component, Input, Outbox, Outcome, PeerState, Steer, Steered, Ticket, Work};
use crate::ids::{EventId, NodeId, Role};
use crate::message::{Command, EventInfo, Message, Missing, Roi};
use crate::report::{ChainCounts, L2puCounters, Report};
use crate::time::Time;

/// How a processing unit is set up.
#[derive(Clone, Debug)]
pub struct L2puParameters {
    /// Events worked on at once.
    pub workers: usize,
    /// Which ROS holds each ROB, by source identifier, rising.
    pub ros_of_rob: Vec<(u32, NodeId)>,
    /// Who keeps the results.
    pub pros: NodeId,
    /// How long a ROS may take.
    pub request_timeout: Duration,
    /// How often it is asked again.
    pub retries: u32,
}

/// A processing unit: a fixed number of workers, each with one event; steering runs in the driver.
pub struct L2pu {
    parameters: L2puParameters,
    workers: Vec<Option<Worker>>,
    by_event: BTreeMap<EventId, usize>,
    /// Assigned while all workers were taken: bounded by the shares of the supervisors.
    queue: VecDeque<Assigned>,
    timeouts: VecDeque<(Time, usize, u32)>,
    next_request: u32,
    pros_up: bool,
    draining: bool,
    abandoned: bool,
    chains: ChainCounts,
    counters: L2puCounters,
}

struct Assigned {
    from: NodeId,
    event: EventInfo,
    attempt: u16,
    rois: Vec<Roi>,
}

struct Worker {
    assigned: Assigned,
    step: u32,
    state: State,
}

enum State {
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
    /// ROSs that have not answered, with the ROBs asked of them.
    waiting: Vec<(NodeId, Vec<u32>)>,
    data: Vec<Bulk>,
    missing: u32,
}

impl L2pu {
    /// A processing unit without events.
    pub fn new(parameters: L2puParameters) -> Self {
        let workers = (0..parameters.workers).map(|_| None).collect();
        Self {
            parameters,
            workers,
            by_event: BTreeMap::new(),
            queue: VecDeque::new(),
            timeouts: VecDeque::new(),
            next_request: 0,
            pros_up: false,
            draining: false,
            abandoned: false,
            chains: ChainCounts::default(),
            counters: L2puCounters::default(),
        }
    }

    fn on_assign(&mut self, assigned: Assigned, out: &mut Outbox) {
        self.counters.received += 1;
        if self.abandoned {
            return;
        }
        self.queue.push_back(assigned);
        self.begin(out);
    }

    fn begin(&mut self, out: &mut Outbox) {
        while let Some(worker) = self.workers.iter().position(Option::is_none) {
            let Some(assigned) = self.queue.pop_front() else { return };
            if let Some(&index) = self.by_event.get(&assigned.event.event) {
                // Assigned again, by a supervisor that lost track: the answer goes to the newest attempt.
                self.workers[index].as_mut().expect("a worker with an event").assigned = assigned;
                continue;
            }
            self.by_event.insert(assigned.event.event, worker);
            let state = State::Steering(Ticket(0));
            self.workers[worker] = Some(Worker { assigned, step: 0, state });
            self.steer(worker, Vec::new(), 0, out);
        }
    }

    fn steer(&mut self, index: usize, data: Vec<Bulk>, missing: u32, out: &mut Outbox) {
        self.next_request = self.next_request.wrapping_add(1);
        let ticket = Ticket(u64::from(self.next_request) << 32 | index as u64);
        let worker = self.workers[index].as_mut().expect("a worker with an event");
        worker.state = State::Steering(ticket);
        self.counters.steps += 1;
        let Assigned { event, ref rois, .. } = worker.assigned;
        let (step, rois) = (worker.step, rois.clone());
        out.start(ticket, Work::Steer(Steer { event, worker: index as u32, step, rois, data, missing }));
        worker.step += 1;
    }

    fn on_steered(&mut self, now: Time, ticket: Ticket, steered: Steered, out: &mut Outbox) {
        let index = (ticket.0 & 0xffff_ffff) as usize;
        let current = |worker: &Worker| matches!(worker.state, State::Steering(t) if t == ticket);
        if !self.workers.get(index).and_then(Option::as_ref).is_some_and(current) {
            return;
        }
        match steered {
            Steered::Ask(robs) => self.collect(now, index, &robs, out),
            Steered::Decide(selection) => {
                self.counters.payload_bytes += u64::from(selection.payload_bytes);
                self.chains.note(selection.chains);
                if selection.accept {
                    self.keep_result(index, selection.result, out);
                } else {
                    self.decide(index, false, false, out);
                }
            }
        }
    }

    fn collect(&mut self, now: Time, index: usize, robs: &[u32], out: &mut Outbox) {
        self.counters.robs += robs.len() as u64;
        let (waiting, unknown) = self.group_by_ros(robs);
        self.next_request = self.next_request.wrapping_add(1);
        let request = self.next_request;
        let collection = Collection { request, tries: 0, waiting, data: Vec::new(), missing: unknown };
        self.workers[index].as_mut().expect("a worker with an event").state = State::Collecting(collection);
        self.ask(now, index, out);
    }

    fn group_by_ros(&self, robs: &[u32]) -> (Vec<(NodeId, Vec<u32>)>, u32) {
        let mut groups: BTreeMap<NodeId, Vec<u32>> = BTreeMap::new();
        let mut unknown = 0;
        for &rob in robs {
            match self.parameters.ros_of_rob.binary_search_by_key(&rob, |(rob, _)| *rob) {
                Ok(found) => groups.entry(self.parameters.ros_of_rob[found].1).or_default().push(rob),
                Err(_) => unknown += 1,
            }
        }
        (groups.into_iter().collect(), unknown)
    }

    /// Asks all ROSs that have not answered.
    fn ask(&mut self, now: Time, index: usize, out: &mut Outbox) {
        let worker = self.workers[index].as_mut().expect("a worker with an event");
        let State::Collecting(collection) = &mut worker.state else {
            return;
        };
        let (event, request) = (worker.assigned.event.event, collection.request);
        for (ros, robs) in &collection.waiting {
            self.counters.roi_requests += 1;
            out.send(*ros, Message::RoiRequest { event, request, robs: robs.clone() });
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
        let collection = self.by_event.get(&event).and_then(|&index| match &mut self.workers[index].as_mut()?.state {
            State::Collecting(collection) if collection.request == request => Some((index, collection)),
            _ => None,
        });
        let waiting = collection.and_then(|(index, collection)| {
            let position = collection.waiting.iter().position(|(ros, _)| *ros == from)?;
            Some((index, collection, position))
        });
        let Some((index, collection, position)) = waiting else {
            self.counters.late_replies += 1;
            return;
        };
        collection.waiting.swap_remove(position);
        collection.missing += missing.len() as u32;
        self.counters.roi_bytes += bulk.len() as u64;
        collection.data.push(bulk);
        self.finish_collection(index, out);
    }

    /// Runs the next step once nothing is waited for.
    fn finish_collection(&mut self, index: usize, out: &mut Outbox) {
        let worker = self.workers[index].as_mut().expect("a worker with an event");
        let State::Collecting(collection) = &mut worker.state else {
            return;
        };
        if collection.waiting.is_empty() {
            let (data, missing) = (core::mem::take(&mut collection.data), collection.missing);
            self.counters.incomplete += u64::from(missing > 0);
            self.forget_collected();
            self.steer(index, data, missing, out);
        }
    }

    /// Time-outs of requests that are answered go as they come to the front.
    fn forget_collected(&mut self) {
        let workers = &self.workers;
        let waits = |index: usize, request: u32| match &workers[index] {
            Some(Worker { state: State::Collecting(collection), .. }) => {
                collection.request == request && !collection.waiting.is_empty()
            }
            _ => false,
        };
        while self.timeouts.front().is_some_and(|(_, index, request)| !waits(*index, *request)) {
            self.timeouts.pop_front();
        }
    }

    fn on_timeout(&mut self, now: Time, index: usize, request: u32, out: &mut Outbox) {
        let Some(worker) = self.workers[index].as_mut() else {
            return;
        };
        match &mut worker.state {
            State::Collecting(collection) if collection.request == request => {
                if collection.tries < self.parameters.retries {
                    collection.tries += 1;
                    self.counters.reasks += collection.waiting.len() as u64;
                    self.ask(now, index, out);
                } else {
                    let unanswered: usize = collection.waiting.drain(..).map(|(_, robs)| robs.len()).sum();
                    collection.missing += unanswered as u32;
                    self.finish_collection(index, out);
                }
            }
            _ => {}
        }
    }

    /// The pROS has the result before anybody can ask for it.
    fn keep_result(&mut self, index: usize, result: Bulk, out: &mut Outbox) {
        if !self.pros_up {
            return self.decide(index, true, false, out);
        }
        let worker = self.workers[index].as_mut().expect("a worker with an event");
        out.send(self.parameters.pros, Message::L2Result { event: worker.assigned.event.event, bulk: result.clone() });
        worker.state = State::Accepted(result);
    }

    fn on_result_taken(&mut self, event: EventId, out: &mut Outbox) {
        let Some(&index) = self.by_event.get(&event) else {
            return;
        };
        if self.workers[index].as_ref().is_some_and(|worker| matches!(worker.state, State::Accepted(_))) {
            self.decide(index, true, true, out);
        }
    }

    fn decide(&mut self, index: usize, accept: bool, has_result: bool, out: &mut Outbox) {
        let worker = self.workers[index].take().expect("a worker with an event");
        let Assigned { from, event, attempt, .. } = worker.assigned;
        self.by_event.remove(&event.event);
        self.counters.accepted += u64::from(accept);
        self.counters.rejected += u64::from(!accept);
        out.send(from, Message::L2Decision { event: event.event, attempt, accept, has_result });
        self.begin(out);
    }

    fn on_peer(&mut self, node: NodeId, state: PeerState, out: &mut Outbox) {
        if node == self.parameters.pros {
            self.pros_up = matches!(state, PeerState::Up(_));
            self.settle_results(out);
        }
        if state == PeerState::Gone {
            self.give_up_on(node, out);
        }
        if !matches!(state, PeerState::Up(_)) {
            // The events of a lost supervisor are nobody's any more; workers finish theirs unheard.
            self.queue.retain(|assigned| assigned.from != node);
        }
    }

    /// Results that wait for a pROS are sent to its new self, or decided without.
    fn settle_results(&mut self, out: &mut Outbox) {
        for index in 0..self.workers.len() {
            let Some(worker) = &self.workers[index] else { continue };
            let State::Accepted(result) = &worker.state else {
                continue;
            };
            if self.pros_up {
                let (event, bulk) = (worker.assigned.event.event, result.clone());
                out.send(self.parameters.pros, Message::L2Result { event, bulk });
            } else {
                self.decide(index, true, false, out);
            }
        }
    }

    /// A ROS that will not return: its ROBs are missing.
    fn give_up_on(&mut self, ros: NodeId, out: &mut Outbox) {
        for index in 0..self.workers.len() {
            let Some(Worker { state: State::Collecting(collection), .. }) = self.workers[index].as_mut() else {
                continue;
            };
            let lost: usize =
                collection.waiting.iter().filter(|(node, _)| *node == ros).map(|(_, robs)| robs.len()).sum();
            collection.waiting.retain(|(node, _)| *node != ros);
            collection.missing += lost as u32;
            self.finish_collection(index, out);
        }
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, index, request)) = self.timeouts.pop_front_if(|(deadline, _, _)| *deadline <= now) {
            self.on_timeout(now, index, request, out);
        }
    }

    fn on_command(&mut self, command: Command) {
        if matches!(command, Command::Drain | Command::Abandon) {
            self.draining = true;
        }
        if command == Command::Abandon {
            self.abandoned = true;
            self.queue.clear();
            self.by_event.clear();
            self.workers.iter_mut().for_each(|worker| *worker = None);
        }
    }
}

impl Component for L2pu {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::Assign { event, attempt, rois } => {
                    self.on_assign(Assigned { from, event, attempt, rois }, out);
                }
                Message::RoiReply { event, request, missing, bulk } => {
                    self.on_roi_reply(from, event, request, &missing, bulk, out);
                }
                Message::L2ResultTaken(event) => self.on_result_taken(event, out),
                _ => {}
            },
            Input::Done { ticket, outcome: Outcome::Steered(steered) } => self.on_steered(now, ticket, steered, out),
            Input::Peer { node, state } => self.on_peer(node, state, out),
            Input::Command(command) => self.on_command(command),
            Input::Deadline => self.on_deadline(now, out),
            Input::Fragment { .. } | Input::Done { .. } => {}
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.timeouts.front().map(|(deadline, _, _)| *deadline)
    }

    fn is_drained(&self) -> bool {
        self.draining && self.by_event.is_empty() && self.queue.is_empty()
    }

    fn report(&self, _now: Time) -> Report {
        Report { chains: self.chains.to_vec(), ..Report::of(Role::L2pu, self.counters.to_values()) }
    }

    fn check(&self) {
        let working = self.workers.iter().flatten().count();
        assert_eq!(working, self.by_event.len(), "every working worker is found by its event");
        assert!(self.queue.is_empty() || working == self.workers.len(), "nothing waits for a free worker");
    }
}
