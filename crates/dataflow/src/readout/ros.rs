//! The read-out system: several ROBs behind one set of requests.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::convert::Infallible;
use core::time::Duration;

use crate::building::destinations::DestinationTable;
use crate::bulk::Bulk;
use crate::component::{Component, Input, Note, Outbox, Outcome, PeerState, Ticket, Work};
use crate::ids::{EventId, Incarnation, NodeId, Role};
use crate::message::{BusyCause, Command, DataReply, DataRequest, EventInfo, Holdings, Message, Missing, PushOrder};
use crate::readout::clear_sequence::ClearSequence;
use crate::readout::cleared_ids::{ClearedIds, Remembered};
use crate::readout::few_events::FewEvents;
use crate::readout::fragment::FragmentHead;
use crate::readout::pusher::{Destination, PushParameters, Pusher};
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
    /// How data are pushed, if they are.
    pub push: Option<PushParameters>,
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
    /// Events that wait for a page: bounded by the window of level 1, or by what builders may have asked for.
    to_read: VecDeque<ToRead>,
    /// Events that are being read.
    reading: FewEvents,
    /// The same by ticket, in the order in which they are read.
    readings: BTreeMap<Ticket, VecDeque<ToRead>>,
    next_ticket: Ticket,
    results: VecDeque<(NodeId, EventId, Bulk)>,
    /// Answers for building of this pass.
    replies: Replies,
    pusher: Option<Pusher>,
    /// Where events go by their number.
    destinations: DestinationTable,
    /// Events to be pushed whose data came in this pass.
    complete: Vec<(NodeId, EventId)>,
    taken: TakenCount,
    busy: bool,
    draining: bool,
    abandoned: bool,
    /// Nobody will clear any more.
    dfm_gone: bool,
    /// The life of whoever clears that was seen last.
    clearer: Option<Incarnation>,
    counters: RosCounters,
}

/// An event to read, and the request that it is read for, if there is one.
struct ToRead {
    event: EventInfo,
    /// With its deadline.
    request: Option<(Request, Time)>,
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
    /// `None` for every ROB of this ROS.
    robs: Option<Box<Named>>,
}

/// The ROBs that a request names.
#[derive(Clone)]
struct Named {
    /// Their indices, rising.
    here: Vec<usize>,
    /// Asked for, but not in this ROS.
    foreign: Vec<u32>,
}

#[derive(Clone, Copy)]
enum RequestKind {
    Roi { request: u32 },
    Event { attempt: u16, request: u32 },
}

impl RequestKind {
    /// Whether nobody asked.
    fn is_push(self) -> bool {
        matches!(self, Self::Event { request: UNASKED, .. })
    }
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
        let pusher = parameters.push.as_ref().map(|push| Pusher::new(push, parameters.pages_per_rob));
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
            reading: FewEvents::default(),
            readings: BTreeMap::new(),
            next_ticket: Ticket(0),
            results: VecDeque::new(),
            replies,
            pusher,
            destinations: DestinationTable::default(),
            complete: Vec::new(),
            taken,
            busy: false,
            draining: false,
            abandoned: false,
            dfm_gone: false,
            clearer: None,
            counters: RosCounters::default(),
        }
    }

    fn on_l1_accept(&mut self, now: Time, event: EventInfo, out: &mut Outbox) {
        self.to_read.push_back(ToRead { event, request: None });
        if let Some(sfi) = self.destinations.of(event.event) {
            let request = self.request(sfi, event.event, PUSH, &[]);
            self.on_request(now + self.parameters.request_timeout, request, out);
        }
        self.read_next(now, out);
    }

    fn on_l2_result(&mut self, from: NodeId, event: EventId, bulk: Bulk, out: &mut Outbox) {
        if self.robs[0].find(event).is_some() {
            // A supervisor that returned has had it decided again.
            return out.send(from, Message::L2ResultTaken(event));
        }
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
            // Decided in two lives of a supervisor, an event may wait twice.
            if self.robs[0].find(event).is_none() {
                let len_bytes = u32::try_from(bulk.len()).expect("a result fits a message");
                self.on_fragment(0, FragmentHead { event, status: 0, len_bytes }, bulk, out);
            }
            out.send(from, Message::L2ResultTaken(event));
        }
    }

    /// Without a DFM nobody will ask for a result, and none will be cleared.
    fn release_results(&mut self, out: &mut Outbox) {
        self.results.drain(..).for_each(|(from, event, _)| out.send(from, Message::L2ResultTaken(event)));
    }

    /// Starts reading what a page is free for in every ROB.
    fn read_next(&mut self, now: Time, out: &mut Outbox) {
        let mut room = self.free().saturating_sub(self.reading.len());
        let mut reading = Vec::new();
        while let Some(next) = self.to_read.pop_front() {
            let Some(next) = self.still_to_read(next, out) else { continue };
            if room == 0 {
                self.to_read.push_front(next);
                break;
            }
            room -= 1;
            self.reading.insert(next.event.event);
            if reading.is_empty() {
                reading.reserve(READ_TOGETHER_MAX.min(1 + self.to_read.len()));
            }
            reading.push(next);
            if reading.len() == READ_TOGETHER_MAX {
                self.start_reading(now, core::mem::take(&mut reading), out);
            }
        }
        self.start_reading(now, reading, out);
        if self.to_read.is_empty() && self.to_read.capacity() > TO_READ_KEPT {
            // Its memory is for whoever is next, while it is in the cache: there may be thousands like this one.
            self.to_read = VecDeque::new();
        }
        if !self.to_read.is_empty() {
            self.make_room(now, out);
        }
    }

    fn start_reading(&mut self, now: Time, reading: Vec<ToRead>, out: &mut Outbox) {
        if reading.is_empty() {
            return;
        }
        if self.parameters.read_out == ReadOut::OnTrigger {
            reading.iter().for_each(|_| self.taken.take(now, out));
        }
        out.start(self.next_ticket, Work::ReadOut(reading.iter().map(|next| next.event).collect()));
        self.readings.insert(self.next_ticket, reading.into());
        self.next_ticket.0 += 1;
    }

    /// A request for an event that was read or is being read for another need not wait for a page.
    fn still_to_read(&mut self, next: ToRead, out: &mut Outbox) -> Option<ToRead> {
        let Some((request, deadline)) = next.request else { return Some(next) };
        let Some(blocked_on) = self.first_blocked(&request, 0) else {
            self.answer(&request, out);
            return None;
        };
        if self.reading.contains(request.event) {
            self.wait(Waiting { request, blocked_on, deadline });
            return None;
        }
        Some(ToRead { event: next.event, request: Some((request, deadline)) })
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
            // A result is there before its event is decided.
            None if self.parameters.read_out == ReadOut::Results => Lookup::Never,
            None if self.robs[rob].has_passed(event) || self.refusal(event).is_some() => Lookup::Never,
            None => Lookup::NotYet,
        }
    }

    /// The next `count` events of a piece of work were read: what they were read for is answered.
    fn on_read_out(&mut self, now: Time, ticket: Ticket, count: usize, out: &mut Outbox) {
        let mut reading = self.readings.remove(&ticket).expect("what was read had been started");
        for ToRead { event, request } in reading.drain(..count) {
            self.reading.remove(event.event);
            if let Some((request, deadline)) = request {
                self.on_request(deadline, request, out);
            }
        }
        if !reading.is_empty() {
            self.readings.insert(ticket, reading);
        }
        self.read_next(now, out);
    }

    fn wait(&mut self, waiting: Waiting) {
        // Those that waited for a page, too, may come here behind younger ones.
        let place = self.timeouts.partition_point(|(deadline, _)| *deadline <= waiting.deadline);
        self.timeouts.insert(place, (waiting.deadline, waiting.request.event));
        self.waiting.entry(waiting.request.event).or_default().push(waiting);
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

    fn on_push(&mut self, now: Time, orders: &[PushOrder], out: &mut Outbox) {
        if self.parameters.push.as_ref().is_none_or(|push| push.destination != Destination::Assigned) {
            return;
        }
        let deadline = now + self.parameters.request_timeout;
        for &PushOrder { event, sfi } in orders {
            let request = self.request(sfi, event.event, PUSH, &[]);
            self.take_request(deadline, event, request, out);
        }
        if !self.to_read.is_empty() {
            self.read_next(now, out);
        }
    }

    /// Sends what is to be pushed and may go.
    fn push(&mut self, now: Time, out: &mut Outbox) {
        let Some(mut pusher) = self.pusher.take() else { return };
        self.complete.drain(..).for_each(|(sfi, event)| pusher.offer(now, sfi, event));
        while let Some((lane, count)) = pusher.next(now) {
            for _ in 0..count {
                let Some(event) = pusher.take(lane) else { break };
                if self.refusal(event).is_some() {
                    continue;
                }
                let (bulk, missing) = self.data(event, None);
                if missing.iter().any(|missing| !missing.lost) {
                    continue;
                }
                let (sfi, pushed) = pusher.sent(now, lane, bulk.len());
                self.counters.pushed += 1;
                self.count_out(&bulk, &missing);
                let len_bytes = u32::try_from(bulk.len()).expect("a reply fits a message");
                let reply = DataReply { event, attempt: FIRST_ATTEMPT, request: UNASKED, missing, len_bytes };
                self.replies.add(sfi, pushed, reply, bulk, out);
            }
        }
        self.pusher = Some(pusher);
    }

    /// A builder asks for an event: it is not pushed as well.
    fn withdraw(&mut self, from: NodeId, event: EventId) {
        let Some(pusher) = &mut self.pusher else { return };
        pusher.withdraw(from, event);
        if let Some(requests) = self.waiting.get_mut(&event) {
            requests.retain(|waiting| waiting.request.from != from || !waiting.request.kind.is_push());
            if requests.is_empty() {
                self.waiting.remove(&event);
            }
        }
    }

    fn on_requests(&mut self, now: Time, from: NodeId, requests: Vec<DataRequest>, out: &mut Outbox) {
        self.counters.event_requests += requests.len() as u64;
        let deadline = now + self.parameters.request_timeout;
        if self.parameters.read_out == ReadOut::OnRequest {
            self.to_read.reserve(requests.len());
        }
        for DataRequest { event, attempt, request, robs } in requests {
            self.withdraw(from, event.event);
            let request = self.request(from, event.event, RequestKind::Event { attempt, request }, &robs);
            self.take_request(deadline, event, request, out);
        }
        if !self.to_read.is_empty() {
            self.read_next(now, out);
        }
    }

    /// A request for building; [`Ros::read_next`] is for the caller.
    fn take_request(&mut self, deadline: Time, event: EventInfo, request: Request, out: &mut Outbox) {
        if self.parameters.read_out == ReadOut::OnRequest {
            self.to_read.push_back(ToRead { event, request: Some((request, deadline)) });
        } else {
            self.on_request(deadline, request, out);
        }
    }

    /// Answers a request, at once or when its data are there.
    fn on_request(&mut self, deadline: Time, request: Request, out: &mut Outbox) {
        if request.kind.is_push() {
            return match self.first_blocked(&request, 0) {
                None => self.answer(&request, out),
                Some(blocked_on) => self.wait(Waiting { request, blocked_on, deadline }),
            };
        }
        match self.all_data(request.event, request.robs.as_deref()) {
            Ok((bulk, missing)) => self.reply(&request, bulk, missing, out),
            Err(blocked_on) => self.wait(Waiting { request, blocked_on, deadline }),
        }
    }

    /// The first ROB from `from` on whose fragment can still come.
    fn first_blocked(&self, request: &Request, from: usize) -> Option<usize> {
        let not_yet = |rob: &usize| matches!(self.look_up(*rob, request.event), Lookup::NotYet);
        match &request.robs {
            None => (from..self.robs.len()).find(not_yet),
            Some(named) => named.here.iter().copied().filter(|rob| *rob >= from).find(not_yet),
        }
    }

    /// What is there of an event; what is not is named, as lost if it will not come.
    fn data(&self, event: EventId, robs: Option<&Named>) -> (Bulk, Vec<Missing>) {
        let Ok(data) = self.collect(event, robs, |_| Ok::<(), Infallible>(()));
        data
    }

    /// The same, if nothing of it can still come; else the first ROB, in order, whose fragment can.
    fn all_data(&self, event: EventId, robs: Option<&Named>) -> Result<(Bulk, Vec<Missing>), usize> {
        self.collect(event, robs, Err)
    }

    fn collect<E>(
        &self,
        event: EventId,
        robs: Option<&Named>,
        not_yet: impl Fn(usize) -> Result<(), E>,
    ) -> Result<(Bulk, Vec<Missing>), E> {
        let foreign = robs.iter().flat_map(|named| &named.foreign);
        let mut missing: Vec<Missing> = foreign.map(|&rob| Missing { rob, lost: true }).collect();
        let mut parts = Parts::default();
        let mut add = |rob: usize| {
            let source_id = self.robs[rob].source_id();
            match self.look_up(rob, event) {
                Lookup::Here(fragment) => parts.add(fragment.bulk.clone()),
                Lookup::NotYet => {
                    not_yet(rob)?;
                    missing.push(Missing { rob: source_id, lost: false });
                }
                Lookup::Never => missing.push(Missing { rob: source_id, lost: true }),
            }
            Ok(())
        };
        match robs {
            None => (0..self.robs.len()).try_for_each(&mut add)?,
            Some(named) => named.here.iter().copied().try_for_each(&mut add)?,
        }
        Ok((parts.into_bulk(), missing))
    }

    /// Sends what is there; what is to be pushed goes when its turn comes.
    fn answer(&mut self, request: &Request, out: &mut Outbox) {
        if request.kind.is_push() {
            return self.complete.push((request.from, request.event));
        }
        let (bulk, missing) = self.data(request.event, request.robs.as_deref());
        self.reply(request, bulk, missing, out);
    }

    fn reply(&mut self, request: &Request, bulk: Bulk, missing: Vec<Missing>, out: &mut Outbox) {
        let event = request.event;
        self.count_out(&bulk, &missing);
        match request.kind {
            RequestKind::Roi { request: number } => {
                out.send(request.from, Message::RoiReply { event, request: number, missing, bulk });
            }
            RequestKind::Event { attempt, request: number } => {
                let len_bytes = u32::try_from(bulk.len()).expect("a reply fits a message");
                let reply = DataReply { event, attempt, request: number, missing, len_bytes };
                let pushed = self.pusher.as_ref().map_or(0, |pusher| pusher.pushed(request.from));
                self.replies.add(request.from, pushed, reply, bulk, out);
            }
        }
    }

    fn count_out(&mut self, bulk: &Bulk, missing: &[Missing]) {
        self.counters.bytes_out += bulk.len() as u64;
        self.counters.lost_robs += missing.iter().filter(|m| m.lost).count() as u64;
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
            if last && self.clears.is_complete() {
                self.collect_garbage(out);
            }
            return;
        }
        self.oldest_valid = self.oldest_valid.max(oldest_valid);
        self.destinations.forget_below(self.oldest_valid);
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
        if let Some(pusher) = &mut self.pusher {
            pusher.on_deadline(now);
        }
        if self.ask_due.is_some_and(|due| due <= now) {
            self.ask_for_clears(now, out);
            if !self.to_read.is_empty() {
                self.read_next(now, out);
            }
        }
        while let Some((_, event)) = self.timeouts.pop_front_if(|(deadline, _)| *deadline <= now) {
            self.time_out(now, event, out);
        }
        let is_late = |next: &mut ToRead| next.request.as_ref().is_some_and(|(_, deadline)| *deadline <= now);
        while let Some(ToRead { request: Some((request, _)), .. }) = self.to_read.pop_front_if(is_late) {
            self.answer_late(&request, out);
        }
    }

    fn time_out(&mut self, now: Time, event: EventId, out: &mut Outbox) {
        let Some(requests) = self.waiting.remove(&event) else {
            return;
        };
        let (late, patient): (Vec<_>, Vec<_>) = requests.into_iter().partition(|waiting| waiting.deadline <= now);
        late.iter().for_each(|waiting| self.answer_late(&waiting.request, out));
        if !patient.is_empty() {
            self.waiting.insert(event, patient);
        }
    }

    /// What is late is not pushed: the builder asks for it.
    fn answer_late(&mut self, request: &Request, out: &mut Outbox) {
        if !request.kind.is_push() {
            self.counters.timeouts += 1;
            self.answer(request, out);
        }
    }

    fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut Outbox) {
        match message {
            Message::L1Accept(event) => self.on_l1_accept(now, event, out),
            Message::L2Result { event, bulk } => self.on_l2_result(from, event, bulk, out),
            Message::RoiRequest { event, request, robs } => {
                let request = self.request(from, event, RequestKind::Roi { request }, &robs);
                self.counters.roi_requests += 1;
                self.on_request(now + self.parameters.request_timeout, request, out);
            }
            Message::EventRequest { requests } => self.on_requests(now, from, requests, out),
            Message::Push(orders) => self.on_push(now, &orders, out),
            Message::Destinations(table) => self.destinations.take(table),
            Message::Credit(taken) => {
                if let Some(pusher) = &mut self.pusher {
                    pusher.on_credit(from, taken);
                }
            }
            Message::Clear { sequence, oldest_valid, last, events } => {
                self.on_clear(now, sequence, oldest_valid, last, &events, out);
            }
            _ => {}
        }
    }

    /// A request for the named ROBs, or for all if none is named.
    fn request(&self, from: NodeId, event: EventId, kind: RequestKind, names: &[u32]) -> Request {
        if names.is_empty() {
            return Request { from, event, kind, robs: None };
        }
        let index_of = |name: &u32| self.robs.iter().position(|rob| rob.source_id() == *name);
        let mut here: Vec<usize> = names.iter().filter_map(index_of).collect();
        here.sort_unstable();
        here.dedup();
        let foreign = names.iter().copied().filter(|name| index_of(name).is_none()).collect();
        Request { from, event, kind, robs: Some(Box::new(Named { here, foreign })) }
    }

    fn on_peer(&mut self, node: NodeId, state: PeerState, out: &mut Outbox) {
        if node == self.parameters.dfm && state == PeerState::Gone {
            self.dfm_gone = true;
            self.release_results(out);
        }
        if let PeerState::Up(life) = state
            && node == self.parameters.dfm
        {
            self.on_clearer(life, out);
        }
        let up = matches!(state, PeerState::Up(_));
        if let Some(pusher) = &mut self.pusher {
            pusher.on_peer(node, up);
        }
        if up {
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
        let is_from = |next: &ToRead| next.request.as_ref().is_some_and(|(request, _)| request.from == node);
        self.to_read.retain(|next| !is_from(next));
        self.readings.values_mut().flatten().filter(|next| is_from(next)).for_each(|next| next.request = None);
        self.results.retain(|(from, _, _)| *from != node);
        self.replies.forget(node);
    }

    /// A new life of the DFM numbers its clears from 1 and gives out tables of its own. What it does not clear of the groups of
    /// the former one falls below its bound.
    fn on_clearer(&mut self, life: Incarnation, out: &mut Outbox) {
        let before = self.clearer.replace(life);
        if before == Some(life) || life == FIRST_LIFE {
            return;
        }
        if before.is_some() {
            self.clears = ClearSequence::from_start();
            self.ask_due = None;
            self.asked_short = 0;
            self.destinations = DestinationTable::default();
        }
        if self.parameters.read_out == ReadOut::OnRequest {
            let newest = self.robs.iter().filter_map(Rob::newest).max();
            out.send(self.parameters.dfm, Message::Held(Holdings { newest, last: true, ..Holdings::default() }));
        }
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
            Input::Done { ticket, outcome: Outcome::ReadOut(count) } => self.on_read_out(now, ticket, count, out),
            Input::Done { .. } => {}
            Input::Peer { node, state } => self.on_peer(node, state, out),
            Input::Command(command) => self.on_command(command),
            Input::Deadline => self.on_deadline(now, out),
        }
    }

    fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.push(now, out);
        self.replies.flush(out);
    }

    fn next_deadline(&self) -> Option<Time> {
        let timeout = self.timeouts.front().map(|(deadline, _)| *deadline);
        let to_read = self.to_read.front().and_then(|next| Some(next.request.as_ref()?.1));
        let push = self.pusher.as_ref().and_then(Pusher::next_deadline);
        [self.taken.next_deadline(), self.ask_due, timeout, to_read, push].into_iter().flatten().min()
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
        self.reading.check();
        assert!(self.waiting.values().all(|requests| !requests.is_empty()), "no empty list of waiting requests");
        self.pusher.iter().for_each(Pusher::check);
        assert!(self.timeouts.iter().is_sorted_by_key(|(deadline, _)| *deadline), "time-outs in order");
    }
}

/// No life of whoever clears was in the run before it.
const FIRST_LIFE: Incarnation = Incarnation(0);
/// Most events in one piece of work: their fragments are answered while they are still in the cache.
const READ_TOGETHER_MAX: usize = 16;
/// Room for so many events to read is kept.
const TO_READ_KEPT: usize = 4;
/// The number of the request that nobody made.
const UNASKED: u32 = 0;
/// Later attempts are asked for.
const FIRST_ATTEMPT: u16 = 1;
const PUSH: RequestKind = RequestKind::Event { attempt: FIRST_ATTEMPT, request: UNASKED };

const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How often a ROS short of pages asks for the clears it missed before it collects garbage.
const ASKS_BEFORE_COLLECTION: u32 = 3;
