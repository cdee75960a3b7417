//! The read-out system: several ROBs behind one set of requests.

mod clearing;
mod links;
mod matching;
mod parameters;
mod pushing;
mod reading;
mod timed;
mod triggers;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::convert::Infallible;

use crate::component::{Component, Input, Outbox, Outcome, PeerState};
use crate::ending::Ending;
use crate::message::{BusyCause, Command, DataReply, DataRequest, EventInfo, Message, Missing, UNASKED};
use crate::readout::fragment::FragmentHead;
use crate::readout::pusher::Pusher;
use crate::readout::replies::{Parts, Replies};
use crate::readout::requests::{Named, Request, RequestKind, Waiting, WaitingRequests};
use crate::readout::rob::{Refusal, Rob};
use crate::readout::showing::Showing;
use crate::report::{Counters, Report, RosCounters};
use crate::window::TakenCount;
use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use timing::Interval;

use clearing::Clearing;
use links::Links;
pub use parameters::{Framing, LinkParameters, LinksParameters, ReadOut, RosParameters, TimedHead, TimedParameters};
use pushing::Pushing;
use reading::{Reads, ToRead};
use triggers::Given;

/// A read-out system or, with [`ReadOut::Results`], the pseudo-ROS.
///
/// A request is answered at once where all its fragments are there or will not come. Otherwise that is when they are,
/// or at the time-out with those that are there.
pub struct Ros {
    parameters: RosParameters,
    robs: Vec<Rob>,
    clearing: Clearing,
    waiting: WaitingRequests,
    /// Deadlines of waiting requests, in order, since all wait equally long.
    timeouts: VecDeque<(Time, EventId)>,
    reads: Reads,
    results: VecDeque<(NodeId, EventId, Bulk)>,
    answers: Answers,
    pushing: Pushing,
    /// Where sources send by themselves.
    links: Option<Box<Links>>,
    taken: TakenCount,
    given: Given,
    busy: bool,
    ending: Ending,
    showing: Showing,
    counters: RosCounters,
}

/// Answers, and what they are made of.
struct Answers {
    /// Answers for building of this pass.
    replies: Replies,
    /// The data of one request; empty in between.
    parts: Parts,
    /// Lists of ROBs of requests that were answered, to be used again.
    #[expect(clippy::vec_box, reason = "they come and go as one pointer")]
    spare: Vec<Box<Named>>,
}

/// What a ROB knows of an event.
enum Lookup<'a> {
    /// Its fragment.
    Here(&'a Bulk),
    /// It may still come.
    NotYet,
    /// It will not come.
    Never,
}

impl Ros {
    /// A read-out system with empty buffers.
    pub fn new(parameters: RosParameters) -> Self {
        let is_ordered = |index: usize| match parameters.read_out {
            ReadOut::OnTrigger => true,
            ReadOut::Pushed => {
                let link = &parameters.links.each[index];
                !link.unordered && link.timed.is_none()
            }
            ReadOut::OnRequest | ReadOut::Results => false,
        };
        let rob = |(index, &id)| {
            let rob = Rob::new(id, parameters.pages_per_rob, is_ordered(index));
            match parameters.links.each.get(index).and_then(|link| link.timed) {
                Some(timed) => rob.timed(timed.rule.exclusive),
                None => rob,
            }
        };
        let robs = parameters.robs.iter().enumerate().map(rob).collect();
        let links = (parameters.read_out == ReadOut::Pushed).then(|| Links::new(&parameters.links, parameters.late));
        let clearing = Clearing::new(&parameters);
        let taken = TakenCount::new(parameters.level1, parameters.in_flight);
        let replies = Replies::new(parameters.group_bytes_max);
        let (pushing, showing) = (Pushing::new(&parameters), Showing::new(parameters.sampling));
        Self {
            parameters,
            robs,
            clearing,
            waiting: WaitingRequests::default(),
            timeouts: VecDeque::new(),
            reads: Reads::default(),
            results: VecDeque::new(),
            answers: Answers { replies, parts: Parts::default(), spare: Vec::new() },
            pushing,
            links,
            taken,
            given: Given::default(),
            busy: false,
            ending: Ending::NotYet,
            showing,
            counters: RosCounters::default(),
        }
    }

    fn on_l1_accepts(&mut self, now: Time, events: Vec<EventInfo>, times: &[Interval], out: &mut Outbox) {
        events.iter().for_each(|event| self.clearing.valid.note_issued(event.event));
        events.last().into_iter().for_each(|last| self.note_trigger(last));
        if self.parameters.read_out == ReadOut::Pushed {
            return self.on_accepts_pushed(now, &events, times, out);
        }
        let to_read =
            |event: EventInfo| ToRead { event, request: None, builder: self.pushing.destinations.direct(&event) };
        self.reads.next.extend(events.into_iter().map(to_read));
        self.read_next(now, out);
    }

    fn on_l2_result(&mut self, from: NodeId, event: EventId, bulk: Bulk, out: &mut Outbox) {
        if self.robs[0].find(event).is_some() {
            // A supervisor that returned has had it decided again.
            return out.send(from, Message::L2ResultTaken(event));
        }
        self.results.push_back((from, event, bulk));
        if self.clearing.dfm_gone {
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

    fn on_fragment(&mut self, rob: usize, head: FragmentHead, bulk: Bulk, out: &mut Outbox) {
        self.clearing.valid.note_issued(head.event);
        let refusal = self.refusal(head.event);
        self.take_fragment(rob, head, bulk, refusal, out);
        if !self.busy && self.robs[rob].used() > self.parameters.busy_above {
            self.update_busy(out);
        }
    }

    /// Fragments of all kinds of links pass here, and nowhere else.
    // Inlined: a call would move every fragment.
    #[inline(always)]
    fn take_fragment(
        &mut self,
        rob: usize,
        head: FragmentHead,
        bulk: Bulk,
        refusal: Option<Refusal>,
        out: &mut Outbox,
    ) {
        self.robs[rob].insert(head, bulk, refusal);
        if !self.waiting.is_empty() && refusal != Some(Refusal::Unplaced) {
            self.answer_unblocked(rob, head.event, out);
        }
    }

    fn refusal(&self, event: EventId) -> Option<Refusal> {
        if event < self.clearing.valid.oldest() {
            Some(Refusal::Old)
        } else {
            self.clearing.cleared.contains(event).then_some(Refusal::Cleared)
        }
    }

    #[inline]
    fn look_up(&self, rob: usize, event: EventId) -> Lookup<'_> {
        match self.robs[rob].find(event) {
            Some(fragment) => Lookup::Here(fragment),
            // A result is there before its event is decided.
            None if self.parameters.read_out == ReadOut::Results => Lookup::Never,
            None if self.robs[rob].has_passed(event) || self.refusal(event).is_some() => Lookup::Never,
            None => Lookup::NotYet,
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        // Those that waited for a page, too, may come here behind younger ones.
        let place = self.timeouts.partition_point(|(deadline, _)| *deadline <= waiting.deadline);
        self.timeouts.insert(place, (waiting.deadline, waiting.request.event));
        self.waiting.push(waiting);
    }

    /// Looks again at requests that waited for this ROB. They are for the event whose fragment came, and on an ordered
    /// link for those that it has passed.
    fn answer_unblocked(&mut self, rob: usize, event: EventId, out: &mut Outbox) {
        let first = if self.robs[rob].is_ordered() { EventId(0) } else { event };
        self.reconsider(first, event, |waiting| waiting.blocked_on == rob, out);
    }

    /// Answers the waiting requests of some events that `which` selects and that need not wait any longer.
    fn reconsider(&mut self, first: EventId, last: EventId, which: impl Fn(&Waiting) -> bool, out: &mut Outbox) {
        let mut place = self.waiting.first_from(first);
        while let Some(waiting) = self.waiting.up_to(last, place) {
            if !which(waiting) {
                place += 1;
                continue;
            }
            match self.first_blocked(&waiting.request, waiting.blocked_on) {
                Some(rob) => {
                    self.waiting.block(place, rob);
                    place += 1;
                }
                None => {
                    let Waiting { request, .. } = self.waiting.take(place);
                    self.answer(&request, out);
                    self.reuse(request);
                }
            }
        }
    }

    fn on_requests(&mut self, now: Time, from: NodeId, requests: &[DataRequest], out: &mut Outbox) {
        self.counters.event_requests += requests.len() as u64;
        let deadline = now + self.parameters.request_timeout;
        if self.parameters.read_out == ReadOut::OnRequest {
            self.reads.next.reserve(requests.len());
        }
        for &DataRequest { event, attempt, request, ref robs } in requests {
            if robs.is_empty() {
                self.showing.note(&event);
            }
            self.withdraw(from, event.event);
            let request = self.request(from, event.event, RequestKind::Event { attempt, request }, robs);
            self.take_request(deadline, event, request, out);
        }
        if !self.reads.next.is_empty() {
            self.read_next(now, out);
        }
    }

    /// A request for building; [`Ros::read_next`] is for the caller.
    fn take_request(&mut self, deadline: Time, event: EventInfo, request: Request, out: &mut Outbox) {
        if self.parameters.read_out == ReadOut::OnRequest {
            self.note_trigger(&event);
            self.reads.next.push_back(ToRead { event, request: Some((request, deadline)), builder: None });
        } else {
            self.on_request(deadline, request, out);
        }
    }

    /// Answers a request, at once or when its data are there. An order to push has its data looked for when its turn comes.
    fn on_request(&mut self, deadline: Time, request: Request, out: &mut Outbox) {
        if request.kind.is_push() {
            return self.pushing.offers.push((request.from, request.event));
        }
        match self.collect(request.event, request.robs.as_deref(), Err) {
            Ok(missing) => {
                self.reply(&request, missing, out);
                self.reuse(request);
            }
            Err(blocked_on) => {
                self.answers.parts.clear();
                self.wait(Waiting { request, blocked_on, deadline });
            }
        }
    }

    /// The first ROB from `from` on whose fragment can still come.
    fn first_blocked(&self, request: &Request, from: usize) -> Option<usize> {
        if self.parameters.read_out == ReadOut::Results || self.refusal(request.event).is_some() {
            return None;
        }
        let not_yet = |rob: &usize| self.robs[*rob].awaits(request.event);
        match &request.robs {
            None => (from..self.robs.len()).find(not_yet),
            Some(named) => named.here.iter().copied().filter(|rob| *rob >= from).find(not_yet),
        }
    }

    /// Gathers in `parts` what is there of an event. What is not is named, as lost if it will not come; `not_yet` says what
    /// becomes of the rest.
    fn collect<E>(
        &mut self,
        event: EventId,
        robs: Option<&Named>,
        not_yet: impl Fn(usize) -> Result<(), E>,
    ) -> Result<Vec<Missing>, E> {
        let mut missing = Vec::new();
        let mut count = self.robs.len();
        if let Some(named) = robs {
            missing.extend(named.foreign.iter().map(|&rob| Missing { rob, lost: true }));
            count = named.here.len();
        }
        if count > 1 {
            self.answers.parts.reserve(count);
        }
        for index in 0..count {
            let rob = robs.map_or(index, |named| named.here[index]);
            let lost = match self.look_up(rob, event) {
                Lookup::Here(bulk) => {
                    let bulk = bulk.clone();
                    self.answers.parts.add(bulk);
                    continue;
                }
                Lookup::NotYet => {
                    not_yet(rob)?;
                    false
                }
                Lookup::Never => true,
            };
            if self.links.as_ref().is_some_and(|links| links.is_tolerated(rob)) {
                continue;
            }
            missing.push(Missing { rob: self.robs[rob].source_id(), lost });
        }
        Ok(missing)
    }

    /// The same with all that can still come named as not there.
    fn collect_now(&mut self, event: EventId, robs: Option<&Named>) -> Vec<Missing> {
        let Ok(missing) = self.collect(event, robs, |_| Ok::<(), Infallible>(()));
        missing
    }

    /// Shows events whose data are there. One that is cleared before is lost, and so is one without data.
    fn show(&mut self, out: &mut Outbox) {
        for _ in 0..self.showing.waiting.len() {
            let Some(event) = self.showing.waiting.pop_front().filter(|event| self.showing.wants(event)) else {
                continue;
            };
            let collected = self.collect(event.event, None, Err);
            let parts = &mut self.answers.parts;
            match collected {
                Ok(missing) => {
                    let len_bytes = parts.len_bytes();
                    self.showing.show(event, &missing, len_bytes, || parts.take_bulk(), out);
                }
                Err(_) => self.showing.waiting.push_back(event),
            }
            self.answers.parts.clear();
        }
    }

    /// The memory of a request that was answered is for the next one.
    fn reuse(&mut self, request: Request) {
        if let Some(named) = request.robs.filter(|_| self.answers.spare.len() < SPARE_MAX) {
            self.answers.spare.push(named);
        }
    }

    /// Sends what is there; what is to be pushed goes when its turn comes.
    fn answer(&mut self, request: &Request, out: &mut Outbox) {
        if request.kind.is_push() {
            return self.pushing.offers.push((request.from, request.event));
        }
        let missing = self.collect_now(request.event, request.robs.as_deref());
        self.reply(request, missing, out);
    }

    /// Sends what was gathered.
    fn reply(&mut self, request: &Request, missing: Vec<Missing>, out: &mut Outbox) {
        let event = request.event;
        self.count_out(&missing);
        match request.kind {
            RequestKind::Roi { request: number } => {
                let bulk = self.answers.parts.take_bulk();
                out.send(request.from, Message::RoiReply { event, request: number, missing, bulk });
            }
            RequestKind::Event { attempt, request: number } => {
                self.note_answered(event, request.robs.as_deref());
                let pushed = self.pushing.pusher.as_ref().map_or(0, |pusher| pusher.pushed(request.from));
                let reply =
                    DataReply { event, attempt, request: number, missing, len_bytes: self.answers.parts.len_bytes() };
                self.answers.replies.add(request.from, pushed, reply, &mut self.answers.parts, out);
            }
        }
    }

    /// For the books of links: what comes now of an event that was answered without it is in no event.
    #[inline]
    fn note_answered(&mut self, event: EventId, robs: Option<&Named>) {
        if self.links.is_some() {
            let asked = |rob: &usize| robs.is_none_or(|named| named.here.contains(rob));
            (0..self.robs.len()).filter(asked).for_each(|rob| self.robs[rob].note_answered(event));
        }
    }

    fn count_out(&mut self, missing: &[Missing]) {
        self.counters.bytes_out += u64::from(self.answers.parts.len_bytes());
        self.counters.lost_robs += missing.iter().filter(|m| m.lost).count() as u64;
    }

    fn free(&self) -> usize {
        self.robs.iter().map(Rob::free).min().expect("a ROS has a ROB")
    }

    fn update_busy(&mut self, out: &mut Outbox) {
        if self.links.is_some() {
            return self.turn_links_on(out);
        }
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
        self.on_link_deadline(now, out);
        if let Some(pusher) = &mut self.pushing.pusher {
            pusher.on_deadline(now);
        }
        if self.clearing.ask_due.is_some_and(|due| due <= now) {
            self.ask_for_clears(now, out);
            if !self.reads.next.is_empty() {
                self.read_next(now, out);
            }
        }
        while let Some((_, event)) = self.timeouts.pop_front_if(|(deadline, _)| *deadline <= now) {
            self.time_out(now, event, out);
        }
        let is_late = |next: &mut ToRead| next.request.as_ref().is_some_and(|(_, deadline)| *deadline <= now);
        while let Some(ToRead { request: Some((request, _)), .. }) = self.reads.next.pop_front_if(is_late) {
            self.answer_late(&request, out);
        }
    }

    fn time_out(&mut self, now: Time, event: EventId, out: &mut Outbox) {
        let mut place = self.waiting.first_from(event);
        while let Some(waiting) = self.waiting.up_to(event, place) {
            if waiting.deadline <= now {
                let late = self.waiting.take(place);
                if self.has_to_wait(&late.request) {
                    let deadline = now + self.parameters.request_timeout;
                    self.wait(Waiting { deadline, ..late });
                } else {
                    self.answer_late(&late.request, out);
                }
            } else {
                place += 1;
            }
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
            Message::L1Accept { events, times } => self.on_l1_accepts(now, events, &times, out),
            Message::Lead(on) => self.on_lead(now, on, out),
            Message::PassedTaken => self.on_passed_taken(),
            Message::IssuedUpTo(last) => self.on_issued_up_to(last, out),
            Message::L2Result { event, bulk } => self.on_l2_result(from, event, bulk, out),
            Message::RoiRequest { event, request, robs } => {
                let request = self.request(from, event, RequestKind::Roi { request }, &robs);
                self.counters.roi_requests += 1;
                self.on_request(now + self.parameters.request_timeout, request, out);
            }
            Message::EventRequest { requests } => self.on_requests(now, from, &requests, out),
            Message::Push(orders) => self.on_push(now, &orders, out),
            Message::Destinations(table) => self.pushing.destinations.take(table),
            Message::Credit(taken) => {
                if let Some(pusher) = &mut self.pushing.pusher {
                    pusher.on_credit(from, taken);
                }
            }
            Message::Clear { sequence, oldest_valid, last, events } => {
                self.on_clear(now, sequence, oldest_valid, last, &events, out);
            }
            message => message.passes_no_gate(),
        }
    }

    /// Any input but a fragment.
    #[inline(never)]
    fn on_other(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => self.on_message(now, from, message, out),
            Input::Link { rob, news } => self.on_link(now, usize::from(rob), news, out),
            Input::Done { ticket, outcome: Outcome::ReadOut(count) } => self.on_read_out(now, ticket, count, out),
            Input::Done { .. } => {}
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Watch(rule) => self.showing.sampler.watch(rule),
            Input::Deadline => self.on_deadline(now, out),
            Input::Fragment { .. } => unreachable!("taken before"),
        }
    }

    /// A request for the named ROBs, or for all if none is named.
    fn request(&mut self, from: NodeId, event: EventId, kind: RequestKind, names: &[u32]) -> Request {
        self.clearing.valid.note_issued(event);
        if names.is_empty() {
            return Request { from, event, kind, robs: None };
        }
        let mut named = self.answers.spare.pop().unwrap_or_default();
        let Named { here, foreign } = &mut *named;
        here.clear();
        foreign.clear();
        for name in names {
            match self.robs.iter().position(|rob| rob.source_id() == *name) {
                Some(rob) => here.push(rob),
                None => foreign.push(*name),
            }
        }
        here.sort_unstable();
        here.dedup();
        Request { from, event, kind, robs: Some(named) }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        if node == self.parameters.dfm && state == PeerState::Gone {
            self.clearing.dfm_gone = true;
            self.release_results(out);
        }
        if let PeerState::Up(life) = state
            && node == self.parameters.dfm
        {
            self.on_clearer(life, out);
        }
        if let PeerState::Up(life) = state
            && Some(node) == self.parameters.level1
        {
            self.on_trigger_source(now, life, out);
        }
        let up = matches!(state, PeerState::Up(_));
        if let Some(pusher) = &mut self.pushing.pusher {
            pusher.on_peer(node, up);
        }
        if up {
            return;
        }
        self.waiting.retain(|waiting| waiting.request.from != node);
        let is_from = |next: &ToRead| next.request.as_ref().is_some_and(|(request, _)| request.from == node);
        self.reads.next.retain(|next| !is_from(next));
        self.reads.under_way.iter_mut().filter(|(_, next)| is_from(next)).for_each(|(_, next)| next.request = None);
        let all = self.reads.next.iter_mut().chain(self.reads.under_way.iter_mut().map(|(_, next)| next));
        all.filter(|next| next.builder == Some(node)).for_each(|next| next.builder = None);
        self.pushing.offers.retain(|(builder, _)| *builder != node);
        self.results.retain(|(from, _, _)| *from != node);
        self.answers.replies.forget(node);
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start => self.start_links(now, out),
            Command::Drain => {
                self.ending.drain();
                self.stop_links(now, out);
                self.tell_full(out);
                self.clearing.valid.settle();
                if self.clearing.sequence.is_complete() {
                    self.collect_garbage(out);
                    self.end_events();
                    self.read_next(now, out);
                    self.keep_results_if_pseudo(now, out);
                }
            }
            Command::Sample => self.showing.sampler.ask(),
            Command::Abandon => {
                self.ending.abandon();
                self.stop_links(now, out);
            }
            _ => {}
        }
    }
}

impl Component for Ros {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        // Most inputs are fragments: they pass by what the others need.
        if let Input::Fragment { rob, head, bulk } = input {
            return self.on_fragment(usize::from(rob), head, bulk, out);
        }
        self.on_other(now, input, out);
    }

    fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.judge_clocks(out);
        self.tell_triggers(out);
        self.take_stock(now, out);
        if !self.showing.waiting.is_empty() {
            self.show(out);
        }
        self.push(now, out);
        self.answers.replies.flush(out);
    }

    fn next_deadline(&self) -> Option<Time> {
        let timeout = self.timeouts.front().map(|(deadline, _)| *deadline);
        let to_read = self.reads.next.front().and_then(|next| Some(next.request.as_ref()?.1));
        let push = self.pushing.pusher.as_ref().and_then(Pusher::next_deadline);
        let links = self.links.as_ref().and_then(|links| links.next_deadline());
        [self.taken.next_deadline(), self.clearing.ask_due, timeout, to_read, push, links].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        let idle = self.waiting.is_empty()
            && self.reads.events.is_empty()
            && self.reads.next.is_empty()
            && self.answers.replies.is_empty();
        self.ending.is_abandoned()
            || (self.ending.is_draining()
                && (self.clearing.dfm_gone
                    || (idle
                        && self.clearing.sequence.is_complete()
                        && self.links.as_ref().is_none_or(|links| links.are_over()))))
    }

    fn report(&self, _now: Time) -> Report {
        let refused = self.counters.clears_refused + self.clearing.sequence.refused() + self.clearing.valid.refused();
        let (samples, samples_lost) = (self.showing.sampler.given, self.showing.sampler.lost);
        let mut sum = RosCounters { clears_refused: refused, samples, samples_lost, ..self.counters }.to_values();
        for rob in &self.robs {
            for (total, value) in sum.iter_mut().zip(rob.counters().to_values()) {
                *total += value;
            }
        }
        let role = if self.parameters.read_out == ReadOut::Results { Role::Pros } else { Role::Ros };
        let links = self.links.as_ref().map_or_else(Vec::new, |links| links.report(&self.robs));
        Report { links, ..Report::of(role, sum) }
    }

    fn check(&self) {
        self.robs.iter().for_each(Rob::check);
        self.clearing.cleared.check();
        self.reads.events.check();
        self.waiting.check();
        assert!(self.answers.parts.is_empty(), "nothing is left of the request before");
        self.pushing.pusher.iter().for_each(Pusher::check);
        assert!(self.timeouts.iter().is_sorted_by_key(|(deadline, _)| *deadline), "time-outs in order");
    }
}

/// Lists of ROBs that are kept for further requests.
const SPARE_MAX: usize = 16;
/// Later attempts are asked for.
const FIRST_ATTEMPT: u16 = 1;
const PUSH: RequestKind = RequestKind::Event { attempt: FIRST_ATTEMPT, request: UNASKED };
