//! The read-out system: several ROBs behind one set of requests.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::bulk::Bulk;
use crate::component::{Component, Input, Note, Outbox, Outcome, PeerState, Ticket, Work};
use crate::ids::{EventId, NodeId, Role};
use crate::message::{BusyCause, Command, DataReply, DataRequest, EventInfo, Message, Missing};
use crate::readout::clear_sequence::ClearSequence;
use crate::readout::cleared_ids::{ClearedIds, Remembered};
use crate::readout::fragment::FragmentHead;
use crate::readout::replies::{Parts, Replies};
use crate::readout::rob::{Fragment, Refusal, Rob};
use crate::report::{Report, RosCounters};
use crate::time::Time;
use crate::window::TakenCount;

/// How a read-out system is set up.
#[derive(Clone, Debug)]
pub struct RosParameters {
    /// Source identifiers of its ROBs, in the order of the links.
    pub robs: Vec<u32>,
    /// Pages, that is fragments, in each ROB.
    pub pages_per_rob: usize,
    /// A ROB with more fragments than this raises busy.
    pub busy_above: usize,
    /// Busy ends when every ROB has fewer fragments than this.
    pub busy_below: usize,
    /// How long a request may wait for its data.
    pub request_timeout: Duration,
    /// Most bytes of replies for building that travel in one message, unless the reply for a single event has more.
    pub group_bytes_max: usize,
    /// When fragments come.
    pub read_out: ReadOut,
    /// Where triggers come from, if any do.
    pub level1: Option<NodeId>,
    /// The window of level 1, in triggers.
    pub in_flight: u64,
    /// Who clears.
    pub dfm: NodeId,
    /// Whether the run has begun already: clear groups before the next are not missed.
    pub late: bool,
}

/// What makes fragments come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOut {
    /// Each level-1 accept, in order.
    OnTrigger,
    /// The first request for an event: the emulated read-out of `[EB2007 §IV]`.
    OnRequest,
    /// Level-2 results sent by L2PUs, in any order: the pseudo-ROS.
    Results,
}

/// A read-out system or, with [`ReadOut::Results`], the pseudo-ROS.
///
/// A request is answered at once where all its fragments are there or will not come; else when they are, or at the
/// time-out with what is there.
pub struct Ros {
    parameters: RosParameters,
    robs: Vec<Rob>,
    oldest_valid: EventId,
    /// Cleared and not older than the oldest valid event: their fragments are refused, should they come (again).
    cleared: ClearedIds,
    clears: ClearSequence,
    ask_due: Option<Time>,
    /// Asked in vain for missing clears while short of pages.
    asked_short: u32,
    waiting: BTreeMap<EventId, Vec<Waiting>>,
    /// Deadlines of waiting requests, in order, since all wait equally long.
    timeouts: VecDeque<(Time, EventId)>,
    /// Triggers and on-request events that wait for a page: bounded by the window of level 1 and by `waiting`.
    to_read: VecDeque<EventInfo>,
    reading: BTreeSet<EventId>,
    /// The same by ticket.
    readings: BTreeMap<u64, Vec<EventId>>,
    next_ticket: u64,
    results: VecDeque<(NodeId, EventId, Bulk)>,
    /// Answers for building of this pass.
    replies: Replies,
    taken: TakenCount,
    busy: bool,
    draining: bool,
    abandoned: bool,
    /// Nobody will clear any more.
    dfm_gone: bool,
    counters: RosCounters,
}

struct Waiting {
    request: Request,
    /// The first of its ROBs, in order, whose fragment can still come.
    blocked_on: usize,
    deadline: Time,
}

/// What a ROB knows of an event.
enum Lookup<'a> {
    /// Its fragment.
    Here(&'a Fragment),
    /// It may still come.
    NotYet,
    /// It will not come.
    Never,
}

#[derive(Clone)]
struct Request {
    from: NodeId,
    event: EventId,
    kind: RequestKind,
    /// Indices of ROBs.
    robs: Vec<usize>,
    /// Asked for, but not in this ROS.
    foreign: Vec<u32>,
}

#[derive(Clone, Copy)]
enum RequestKind {
    Roi { request: u32 },
    Event { attempt: u16, request: u32 },
}

impl Ros {
    /// A read-out system with empty buffers.
    pub fn new(parameters: RosParameters) -> Self {
        let ordered = parameters.read_out == ReadOut::OnTrigger;
        let robs = parameters.robs.iter().map(|&id| Rob::new(id, parameters.pages_per_rob, ordered)).collect();
        let clears = if parameters.late { ClearSequence::from_next_seen() } else { ClearSequence::from_start() };
        let taken = TakenCount::new(parameters.level1, parameters.in_flight);
        let cleared = ClearedIds::new(2 * parameters.pages_per_rob);
        let replies = Replies::new(parameters.group_bytes_max);
        Self {
            parameters,
            robs,
            oldest_valid: EventId(0),
            cleared,
            clears,
            ask_due: None,
            asked_short: 0,
            waiting: BTreeMap::new(),
            timeouts: VecDeque::new(),
            to_read: VecDeque::new(),
            reading: BTreeSet::new(),
            readings: BTreeMap::new(),
            next_ticket: 0,
            results: VecDeque::new(),
            replies,
            taken,
            busy: false,
            draining: false,
            abandoned: false,
            dfm_gone: false,
            counters: RosCounters::default(),
        }
    }

    fn on_l1_accept(&mut self, now: Time, event: EventInfo, out: &mut Outbox) {
        self.to_read.push_back(event);
        self.read_next(now, out);
    }

    fn on_l2_result(&mut self, from: NodeId, event: EventId, bulk: Bulk, out: &mut Outbox) {
        self.results.push_back((from, event, bulk));
        if self.dfm_gone {
            return self.release_results(out);
        }
        self.keep_results(out);
    }

    /// Moves results into the buffer while it has room; the L2PUs of the others wait.
    fn keep_results(&mut self, out: &mut Outbox) {
        while self.robs[0].free() > 0 {
            let Some((from, event, bulk)) = self.results.pop_front() else {
                return;
            };
            let len_bytes = u32::try_from(bulk.len()).expect("a result fits a message");
            self.on_fragment(0, FragmentHead { event, status: 0, len_bytes }, bulk, out);
            out.send(from, Message::L2ResultTaken(event));
        }
    }

    /// Without a DFM nobody will ask for a result, and none will be cleared.
    fn release_results(&mut self, out: &mut Outbox) {
        self.results.drain(..).for_each(|(from, event, _)| out.send(from, Message::L2ResultTaken(event)));
    }

    /// Starts reading what a page is free for in every ROB.
    fn read_next(&mut self, now: Time, out: &mut Outbox) {
        let room = self.free().saturating_sub(self.reading.len());
        let events: Vec<EventInfo> = self.to_read.drain(..room.min(self.to_read.len())).collect();
        if !events.is_empty() {
            self.reading.extend(events.iter().map(|info| info.event));
            self.readings.insert(self.next_ticket, events.iter().map(|info| info.event).collect());
            if self.parameters.read_out == ReadOut::OnTrigger {
                events.iter().for_each(|_| self.taken.take(now, out));
            }
            out.start(Ticket(self.next_ticket), Work::ReadOut(events));
            self.next_ticket += 1;
        }
        if !self.to_read.is_empty() {
            self.make_room(now, out);
        }
    }

    /// Short of pages: first the clears that did not arrive; garbage collection is the last resort, and counted.
    fn make_room(&mut self, now: Time, out: &mut Outbox) {
        if self.clears.gap().is_some() && self.asked_short < ASKS_BEFORE_COLLECTION {
            if self.ask_due.is_none() {
                self.ask_for_clears(now, out);
            }
            return;
        }
        if self.collect_garbage(out) {
            self.read_next(now, out);
        }
    }

    /// Removes what nobody can ask for any more, and was not cleared; whether there was any.
    fn collect_garbage(&mut self, out: &mut Outbox) -> bool {
        let oldest_valid = self.oldest_valid;
        let fragments: u64 = self.robs.iter_mut().map(|rob| rob.collect_garbage(oldest_valid)).sum();
        if fragments > 0 {
            out.note(Note::GarbageCollected { fragments });
            self.update_busy(out);
        }
        fragments > 0
    }

    fn on_fragment(&mut self, rob: usize, head: FragmentHead, bulk: Bulk, out: &mut Outbox) {
        let refusal = self.refusal(head.event);
        self.robs[rob].insert(head, bulk, refusal);
        if !self.waiting.is_empty() {
            self.answer_unblocked(rob, head.event, out);
        }
        if !self.busy && self.robs[rob].used() > self.parameters.busy_above {
            self.update_busy(out);
        }
    }

    fn refusal(&self, event: EventId) -> Option<Refusal> {
        if event < self.oldest_valid {
            Some(Refusal::Old)
        } else {
            self.cleared.contains(event).then_some(Refusal::Cleared)
        }
    }

    fn look_up(&self, rob: usize, event: EventId) -> Lookup<'_> {
        match self.robs[rob].find(event) {
            Some(fragment) => Lookup::Here(fragment),
            None if self.robs[rob].has_passed(event) || self.refusal(event).is_some() => Lookup::Never,
            None => Lookup::NotYet,
        }
    }

    fn on_read_out(&mut self, now: Time, ticket: Ticket, out: &mut Outbox) {
        for event in self.readings.remove(&ticket.0).expect("what was read had been started") {
            self.reading.remove(&event);
        }
        self.read_next(now, out);
    }

    /// Looks again at requests that waited for this ROB: for the event whose fragment came, and on an ordered link for
    /// those that it has passed.
    fn answer_unblocked(&mut self, rob: usize, event: EventId, out: &mut Outbox) {
        if self.parameters.read_out == ReadOut::OnTrigger {
            let passed: Vec<EventId> = self.waiting.range(..event).map(|(event, _)| *event).collect();
            for event in passed {
                self.reconsider(event, |waiting| waiting.blocked_on == rob, out);
            }
        }
        self.reconsider(event, |waiting| waiting.blocked_on == rob, out);
    }

    /// Answers the waiting requests of an event that `which` selects and that need not wait any longer.
    fn reconsider(&mut self, event: EventId, which: impl Fn(&Waiting) -> bool, out: &mut Outbox) {
        let Some(mut requests) = self.waiting.remove(&event) else {
            return;
        };
        requests.retain_mut(|waiting| {
            if !which(waiting) {
                return true;
            }
            let Some(rob) = self.first_blocked(&waiting.request, waiting.blocked_on) else {
                self.answer(&waiting.request, out);
                return false;
            };
            waiting.blocked_on = rob;
            true
        });
        if !requests.is_empty() {
            self.waiting.insert(event, requests);
        }
    }

    fn on_requests(&mut self, now: Time, from: NodeId, requests: Vec<DataRequest>, out: &mut Outbox) {
        for DataRequest { event, attempt, request, robs } in requests {
            let request = self.request(from, event.event, RequestKind::Event { attempt, request }, &robs);
            self.counters.event_requests += 1;
            if !self.on_request(now, request, out) && self.parameters.read_out == ReadOut::OnRequest {
                self.to_read.push_back(event);
            }
        }
        if !self.to_read.is_empty() {
            self.read_next(now, out);
        }
    }

    /// Answers a request if it need not wait; whether it was answered, or another waits for the same event already.
    fn on_request(&mut self, now: Time, request: Request, out: &mut Outbox) -> bool {
        let Some(blocked_on) = self.first_blocked(&request, 0) else {
            self.answer(&request, out);
            return true;
        };
        let event = request.event;
        let deadline = now + self.parameters.request_timeout;
        let asked_before = self.waiting.contains_key(&event) || self.reading.contains(&event);
        self.waiting.entry(event).or_default().push(Waiting { request, blocked_on, deadline });
        self.timeouts.push_back((deadline, event));
        asked_before
    }

    /// The first ROB from `from` on whose fragment can still come.
    fn first_blocked(&self, request: &Request, from: usize) -> Option<usize> {
        let not_yet = |rob: usize| matches!(self.look_up(rob, request.event), Lookup::NotYet);
        request.robs.iter().copied().find(|&rob| rob >= from && not_yet(rob))
    }

    /// Sends what is there; what is not is named, as lost if it will not come.
    fn answer(&mut self, request: &Request, out: &mut Outbox) {
        let mut missing: Vec<Missing> = request.foreign.iter().map(|&rob| Missing { rob, lost: true }).collect();
        let mut parts = Parts::default();
        for &rob in &request.robs {
            let source_id = self.robs[rob].source_id();
            match self.look_up(rob, request.event) {
                Lookup::Here(fragment) => parts.add(&fragment.bulk),
                Lookup::NotYet => missing.push(Missing { rob: source_id, lost: false }),
                Lookup::Never => missing.push(Missing { rob: source_id, lost: true }),
            }
        }
        self.counters.lost_robs += missing.iter().filter(|m| m.lost).count() as u64;
        let bulk = parts.into_bulk();
        self.counters.bytes_out += bulk.len() as u64;
        let event = request.event;
        match request.kind {
            RequestKind::Roi { request: number } => {
                out.send(request.from, Message::RoiReply { event, request: number, missing, bulk });
            }
            RequestKind::Event { attempt, request: number } => {
                let len_bytes = u32::try_from(bulk.len()).expect("a reply fits a message");
                let reply = DataReply { event, attempt, request: number, missing, len_bytes };
                self.replies.add(request.from, reply, &bulk, out);
            }
        }
    }

    fn on_clear(
        &mut self,
        now: Time,
        sequence: u64,
        oldest_valid: EventId,
        last: bool,
        events: &[EventId],
        out: &mut Outbox,
    ) {
        if !self.clears.take(sequence, last) {
            return;
        }
        self.oldest_valid = self.oldest_valid.max(oldest_valid);
        for &event in events {
            self.remember_cleared(event);
            self.robs.iter_mut().for_each(|rob| rob.clear(event));
            self.reconsider(event, |_| true, out);
        }
        if self.clears.gap().is_none() {
            self.ask_due = None;
            self.asked_short = 0;
        } else if self.ask_due.is_none() {
            self.ask_for_clears(now, out);
        }
        self.update_busy(out);
        if self.busy {
            self.make_room(now, out);
        }
        if self.clears.is_complete() {
            // The run is over: what is left below the last bound was cleared in a group that is too old to be repeated.
            self.collect_garbage(out);
        }
        self.read_next(now, out);
        self.keep_results_if_pseudo(now, out);
    }

    fn remember_cleared(&mut self, event: EventId) {
        if event < self.oldest_valid {
            return;
        }
        if self.cleared.insert(event) == Remembered::Full {
            self.cleared.prune_older_than(self.oldest_valid);
            // Still full: a late fragment of this event is then kept until garbage collection.
            let _ = self.cleared.insert(event);
        }
    }

    fn keep_results_if_pseudo(&mut self, now: Time, out: &mut Outbox) {
        if self.parameters.read_out == ReadOut::Results {
            self.keep_results(out);
            if !self.results.is_empty() {
                self.make_room(now, out);
                self.keep_results(out);
            }
        }
    }

    fn ask_for_clears(&mut self, now: Time, out: &mut Outbox) {
        self.ask_due = None;
        if let Some((first, last)) = self.clears.gap() {
            self.counters.clears_asked += last - first + 1;
            self.asked_short += 1;
            self.ask_due = Some(now + ASK_AGAIN);
            out.send(self.parameters.dfm, Message::ClearAsk { first, last });
        }
    }

    fn free(&self) -> usize {
        self.robs.iter().map(Rob::free).min().expect("a ROS has a ROB")
    }

    fn update_busy(&mut self, out: &mut Outbox) {
        let fullest = self.robs.iter().map(Rob::used).max().expect("a ROS has a ROB");
        let busy = if self.busy { fullest >= self.parameters.busy_below } else { fullest > self.parameters.busy_above };
        if busy != self.busy {
            self.busy = busy;
            self.tell_busy(out);
        }
    }

    fn tell_busy(&self, out: &mut Outbox) {
        if let Some(level1) = self.parameters.level1 {
            out.send(level1, Message::Busy { cause: BusyCause::Pages, on: self.busy });
        }
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        self.taken.on_deadline(now, out);
        if self.ask_due.is_some_and(|due| due <= now) {
            self.ask_for_clears(now, out);
            if !self.to_read.is_empty() {
                self.read_next(now, out);
            }
        }
        while let Some(&(deadline, event)) = self.timeouts.front() {
            if deadline > now {
                return;
            }
            self.timeouts.pop_front();
            self.time_out(now, event, out);
        }
    }

    fn time_out(&mut self, now: Time, event: EventId, out: &mut Outbox) {
        let Some(requests) = self.waiting.remove(&event) else {
            return;
        };
        let (late, patient): (Vec<_>, Vec<_>) = requests.into_iter().partition(|waiting| waiting.deadline <= now);
        for waiting in late {
            self.counters.timeouts += 1;
            self.answer(&waiting.request, out);
        }
        if patient.is_empty() {
            self.to_read.retain(|info| info.event != event || self.parameters.read_out == ReadOut::OnTrigger);
        } else {
            self.waiting.insert(event, patient);
        }
    }

    fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut Outbox) {
        match message {
            Message::L1Accept(event) => self.on_l1_accept(now, event, out),
            Message::L2Result { event, bulk } => self.on_l2_result(from, event, bulk, out),
            Message::RoiRequest { event, request, robs } => {
                let request = self.request(from, event, RequestKind::Roi { request }, &robs);
                self.counters.roi_requests += 1;
                self.on_request(now, request, out);
            }
            Message::EventRequest { requests } => self.on_requests(now, from, requests, out),
            Message::Clear { sequence, oldest_valid, last, events } => {
                self.on_clear(now, sequence, oldest_valid, last, &events, out);
            }
            _ => {}
        }
    }

    /// A request for the named ROBs, or for all if none is named.
    fn request(&self, from: NodeId, event: EventId, kind: RequestKind, names: &[u32]) -> Request {
        if names.is_empty() {
            return Request { from, event, kind, robs: (0..self.robs.len()).collect(), foreign: Vec::new() };
        }
        let index_of = |name: &u32| self.robs.iter().position(|rob| rob.source_id() == *name);
        let mut robs: Vec<usize> = names.iter().filter_map(index_of).collect();
        robs.sort_unstable();
        robs.dedup();
        let foreign = names.iter().copied().filter(|name| index_of(name).is_none()).collect();
        Request { from, event, kind, robs, foreign }
    }

    fn on_peer(&mut self, node: NodeId, state: PeerState, out: &mut Outbox) {
        if node == self.parameters.dfm && state == PeerState::Gone {
            self.dfm_gone = true;
            self.release_results(out);
        }
        if matches!(state, PeerState::Up(_)) {
            if Some(node) == self.parameters.level1 {
                self.taken.tell(out);
                self.tell_busy(out);
            }
            return;
        }
        for requests in self.waiting.values_mut() {
            requests.retain(|waiting| waiting.request.from != node);
        }
        self.waiting.retain(|_, requests| !requests.is_empty());
        self.results.retain(|(from, _, _)| *from != node);
        self.replies.forget(node);
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Drain => self.draining = true,
            Command::Abandon => {
                self.draining = true;
                self.abandoned = true;
            }
            _ => {}
        }
    }
}

impl Component for Ros {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => self.on_message(now, from, message, out),
            Input::Fragment { rob, head, bulk } => self.on_fragment(usize::from(rob), head, bulk, out),
            Input::Done { ticket, outcome: Outcome::ReadOut } => self.on_read_out(now, ticket, out),
            Input::Done { .. } => {}
            Input::Peer { node, state } => self.on_peer(node, state, out),
            Input::Command(command) => self.on_command(command),
            Input::Deadline => self.on_deadline(now, out),
        }
    }

    fn flush(&mut self, _now: Time, out: &mut Outbox) {
        self.replies.flush(out);
    }

    fn next_deadline(&self) -> Option<Time> {
        let timeout = self.timeouts.front().map(|(deadline, _)| *deadline);
        [self.taken.next_deadline(), self.ask_due, timeout].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        let idle =
            self.waiting.is_empty() && self.reading.is_empty() && self.to_read.is_empty() && self.replies.is_empty();
        self.abandoned || (self.draining && (self.dfm_gone || (idle && self.clears.is_complete())))
    }

    fn report(&self, _now: Time) -> Report {
        let mut sum = self.counters.to_values();
        for rob in &self.robs {
            for (total, value) in sum.iter_mut().zip(rob.counters().to_values()) {
                *total += value;
            }
        }
        let role = if self.parameters.read_out == ReadOut::Results { Role::Pros } else { Role::Ros };
        Report::of(role, sum)
    }

    fn check(&self) {
        self.robs.iter().for_each(Rob::check);
        assert!(self.waiting.values().all(|requests| !requests.is_empty()), "no empty list of waiting requests");
        assert!(self.timeouts.iter().is_sorted_by_key(|(deadline, _)| *deadline), "time-outs in order");
    }
}

const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How often a ROS short of pages asks for the clears it missed before it collects garbage.
const ASKS_BEFORE_COLLECTION: u32 = 3;
