//! The trigger distributor of a read-out crate, its front `[DAQ1999 §2.2.1]`.
//!
//! Outwards it is to level 1, level 2 and the DFM what a read-out system is. In the crate it says everything once to all: accepts,
//! and clears in groups of its own. Accepted events go to the EBIF, and regions of interest come back through it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::CrateRos;
use super::gathering::Gathering;
use super::windows::{Windows, bit};
use crate::building::directing::Directing;
use crate::building::push_control::ORDERS_MAX;
use crate::component::{Component, Input, Outbox, PeerState};
use crate::message::{BusyCause, Command, EventInfo, Message, Missing, PushOrder};
use crate::readout::clear_sequence::ClearSequence;
use crate::readout::clears::Clears;
use crate::readout::valid_bound::ValidBound;
use crate::report::{Counters, Report, TrgCounters};
use crate::window::TakenCount;
use base::bulk::Bulk;
use base::ids::{EventId, Incarnation, NodeId, Role};
use base::numbered::Numbered;
use base::time::Time;
use timing::Interval;

/// How the front of a crate is set up.
#[derive(Clone, Debug)]
pub struct TrgParameters {
    /// The read-out systems of the crate.
    pub systems: Vec<CrateRos>,
    /// Who gives out their data, if events are built.
    pub ebif: Option<NodeId>,
    /// Where triggers come from.
    pub level1: NodeId,
    /// The window of level 1, in triggers.
    pub in_flight: u64,
    /// Who clears.
    pub dfm: NodeId,
    /// Clears that go into the crate together.
    pub group: usize,
    /// None is kept back for longer.
    pub group_age: Duration,
    /// How long level 2 waits at most for data that it asked for.
    pub roi_timeout: Duration,
    /// Whether read-out systems say when their sources have come.
    pub has_sources: bool,
    /// Whether a table says where events go by their number.
    pub by_table: bool,
    /// Whether the run has begun already: clear groups before the next are not missed.
    pub late: bool,
}

/// The trigger distributor of a read-out crate.
///
/// A trigger is taken when all read-out systems that are there have taken it. The crate is busy when one of them is.
pub struct Trg {
    parameters: TrgParameters,
    windows: Windows,
    taken: TakenCount,
    /// Triggers of which level 1 was told that they are taken.
    done: u64,
    /// What level 1 takes the crate to be busy for: one bit per cause.
    told_busy: u8,
    /// The newest event that was issued, as far as it is known.
    issued: Option<EventId>,
    /// Clears from outside.
    clears: ClearSequence,
    valid: ValidBound,
    ask_due: Option<Time>,
    clearer: Option<Incarnation>,
    /// Clears into the crate, and the bound that goes with them.
    groups: Clears,
    bound: EventId,
    /// The bound that holds once so many clears have gone.
    next_bound: (u64, EventId),
    /// The last group has gone.
    over: bool,
    destinations: Directing,
    rois: Numbered<OpenRoi>,
    /// In order, since all wait equally long.
    roi_deadlines: VecDeque<(Time, u32)>,
    draining: bool,
    abandoned: bool,
    dfm_gone: bool,
    counters: TrgCounters,
}

/// A request of level 2 whose data are on their way.
struct OpenRoi {
    client: NodeId,
    event: EventId,
    request: u32,
    data: Gathering,
}

impl Trg {
    /// The front of an empty crate.
    pub fn new(parameters: TrgParameters) -> Self {
        let nodes = parameters.systems.iter().map(|system| system.node);
        let late = parameters.late;
        Self {
            windows: Windows::new(nodes, parameters.has_sources),
            taken: TakenCount::new(Some(parameters.level1), parameters.in_flight),
            done: 0,
            told_busy: 0,
            issued: None,
            clears: if late { ClearSequence::from_next_seen() } else { ClearSequence::from_start() },
            valid: ValidBound::default(),
            ask_due: None,
            clearer: None,
            groups: Clears::new(parameters.group, parameters.group_age),
            bound: EventId(0),
            next_bound: (0, EventId(0)),
            over: false,
            destinations: Directing::new(parameters.by_table),
            rois: Numbered::default(),
            roi_deadlines: VecDeque::new(),
            draining: false,
            abandoned: false,
            dfm_gone: false,
            counters: TrgCounters::default(),
            parameters,
        }
    }

    fn on_l1_accepts(&mut self, now: Time, events: Vec<EventInfo>, times: Vec<Interval>, out: &mut Outbox) {
        self.counters.triggers += events.len() as u64;
        events.iter().for_each(|event| self.valid.note_issued(event.event));
        self.issued = self.issued.max(events.last().map(|last| last.event));
        let builder = |event: &EventInfo| self.destinations.direct(event).map(|sfi| PushOrder { event: *event, sfi });
        let orders = events.iter().filter_map(builder).collect();
        self.windows.send(events.len());
        out.broadcast(self.windows.there(), Message::L1Accept { events, times });
        self.accept(orders, out);
        self.tell_taken(now, out);
    }

    /// Level 2 has accepted these events, or every event is.
    fn accept(&mut self, orders: Vec<PushOrder>, out: &mut Outbox) {
        if let (Some(ebif), false) = (self.parameters.ebif, orders.is_empty()) {
            self.counters.accepted += orders.len() as u64;
            out.send(ebif, Message::Push(orders));
        }
    }

    /// What was issued before this life: the crate is not told of it any more.
    fn on_issued_up_to(&mut self, last: EventId, out: &mut Outbox) {
        self.valid.note_issued(last);
        self.issued = self.issued.max(Some(last));
        out.broadcast(self.windows.there(), Message::IssuedUpTo(last));
    }

    fn tell_taken(&mut self, now: Time, out: &mut Outbox) {
        let done = self.counters.triggers - self.windows.behind().min(self.counters.triggers);
        let more = done.saturating_sub(self.done);
        if more > 0 {
            self.done = done;
            self.taken.take(now, more as usize, out);
        }
    }

    /// Where nothing is issued any more, nobody waits for one that is busy.
    fn tell_busy(&mut self, out: &mut Outbox) {
        let busy = if self.draining { 0 } else { self.windows.busy() };
        let changed = busy ^ core::mem::replace(&mut self.told_busy, busy);
        for cause in BusyCause::ALL.into_iter().filter(|cause| changed & bit(*cause) != 0) {
            out.send(self.parameters.level1, Message::Busy { cause, on: busy & bit(cause) != 0 });
        }
    }

    fn on_clear(&mut self, now: Time, group: Group<'_>, out: &mut Outbox) {
        let is_new = self.clears.take(group.sequence, group.last);
        if is_new {
            for &event in group.events {
                self.counters.rejected += 1;
                if self.groups.add(now, event) {
                    self.send_group(now, out);
                }
            }
            self.ask_for_clears(now, out);
        }
        if self.clears.has_taken(group.sequence) {
            self.valid.take(group.sequence, group.oldest_valid);
            self.destinations.forget_below(self.valid.oldest());
        }
        self.note_bound();
        self.end_clears(now, out);
    }

    /// As long as a group from outside is missing, its events may not have been cleared.
    fn note_bound(&mut self) {
        if self.clears.first_missing().is_none() {
            self.next_bound = (self.counters.rejected, self.valid.oldest());
        }
    }

    /// All that waits goes.
    fn send_all_groups(&mut self, now: Time, out: &mut Outbox) {
        if self.draining && self.dfm_gone {
            // Nobody will ask for anything.
            self.bound = EventId(u64::MAX);
        } else {
            self.note_bound();
        }
        self.send_group(now, out);
    }

    /// A bound goes only with or behind the last clear below it: a system may forget what is below and was not cleared.
    fn send_group(&mut self, now: Time, out: &mut Outbox) {
        self.counters.dispatched += self.groups.pending() as u64;
        if self.counters.dispatched >= self.next_bound.0 {
            self.bound = self.bound.max(self.next_bound.1);
        }
        let group = self.groups.flush(now, self.bound, self.over);
        self.counters.groups = self.groups.sent();
        out.broadcast(self.windows.there(), group);
    }

    /// Behind the last group from outside, or where nobody will clear any more, goes the last one of the crate. It brings the last
    /// word on the bound, which holds only when nothing is issued any more: a system that has it needs no other.
    fn end_clears(&mut self, now: Time, out: &mut Outbox) {
        if !self.over && self.draining && (self.clears.is_complete() || self.dfm_gone) {
            self.over = true;
            self.send_all_groups(now, out);
        }
    }

    fn ask_for_clears(&mut self, now: Time, out: &mut Outbox) {
        self.ask_due = None;
        if let Some(missed) = self.clears.missed() {
            self.counters.clears_asked += u64::from(missed.bits.count_ones());
            self.ask_due = Some(now + ASK_AGAIN);
            out.send(self.parameters.dfm, Message::ClearAsk(missed));
        }
    }

    fn on_roi_request(
        &mut self,
        now: Time,
        client: NodeId,
        event: EventId,
        number: u32,
        robs: &[u32],
        out: &mut Outbox,
    ) {
        self.counters.rois += 1;
        self.valid.note_issued(event);
        let mut data = Gathering::new(&self.parameters.systems, robs);
        for system in self.parameters.systems.iter().filter(|system| !self.windows.is_there(system.node)) {
            data.do_without(system, self.windows.is_gone(system.node));
        }
        let own = self.rois.next_number();
        for (node, robs) in data.asked() {
            // A region of interest names what it wants.
            out.send(node, Message::RoiRequest { event, request: own, robs: robs.to_vec() });
        }
        self.rois.insert(own, OpenRoi { client, event, request: number, data });
        self.roi_deadlines.push_back((now + self.parameters.roi_timeout, own));
        self.answer_if_complete(own, out);
    }

    fn on_roi_reply(&mut self, from: NodeId, own: u32, missing: Vec<Missing>, bulk: Bulk, out: &mut Outbox) {
        let is_awaited = self.rois.get_mut(own).is_some_and(|open| open.data.take(from, missing, bulk));
        self.counters.replies_late += u64::from(!is_awaited);
        self.answer_if_complete(own, out);
    }

    fn answer_if_complete(&mut self, own: u32, out: &mut Outbox) {
        if self.rois.get_mut(own).is_some_and(|open| open.data.is_complete()) {
            let OpenRoi { client, event, request, data } = self.rois.remove(own).expect("it is there");
            let (missing, mut parts) = data.finish();
            self.counters.rois_answered += 1;
            out.send(client, Message::RoiReply { event, request, missing, bulk: parts.take_bulk() });
            while self.roi_deadlines.pop_front_if(|(_, first)| !self.rois.contains(*first)).is_some() {}
        }
    }

    /// What has not come by now is named as missing: level 2 asks again.
    fn time_out_rois(&mut self, now: Time, out: &mut Outbox) {
        while let Some((_, own)) = self.roi_deadlines.pop_front_if(|(deadline, _)| *deadline <= now) {
            if let Some(open) = self.rois.get_mut(own) {
                self.counters.timeouts += 1;
                open.data.do_without_rest(&self.parameters.systems);
                self.answer_if_complete(own, out);
            }
        }
    }

    fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut Outbox) {
        match message {
            Message::L1Accept { events, times } => self.on_l1_accepts(now, events, times, out),
            Message::IssuedUpTo(last) => self.on_issued_up_to(last, out),
            Message::Taken(count) => {
                self.windows.on_taken(from, count);
                self.tell_taken(now, out);
            }
            Message::Busy { cause, on } => {
                self.windows.on_busy(from, cause, on);
                self.tell_busy(out);
            }
            Message::Clear { sequence, oldest_valid, last, events } => {
                self.on_clear(now, Group { sequence, oldest_valid, last, events: &events }, out);
            }
            Message::ClearAsk(missed) => self.groups.repeat(missed).for_each(|group| out.send(from, group)),
            Message::RoiRequest { event, request, robs } => self.on_roi_request(now, from, event, request, &robs, out),
            Message::RoiReply { request, missing, bulk, .. } => self.on_roi_reply(from, request, missing, bulk, out),
            Message::Push(orders) => self.accept(orders, out),
            Message::Destinations(table) => self.destinations.take(table),
            message => message.passes_no_gate(),
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        if node == self.parameters.level1 && matches!(state, PeerState::Up(_)) {
            // It takes all to be busy whose sources it waits for.
            self.told_busy = if self.parameters.has_sources { bit(BusyCause::Source) } else { 0 };
            self.taken.tell(out);
            self.tell_busy(out);
        }
        if node == self.parameters.dfm {
            match state {
                PeerState::Up(life) => self.on_clearer(life),
                PeerState::Gone => {
                    self.dfm_gone = true;
                    self.end_clears(now, out);
                }
                PeerState::Down => {}
            }
        }
        if self.parameters.systems.iter().any(|system| system.node == node) {
            self.on_system(now, node, state, out);
        }
        if !matches!(state, PeerState::Up(_)) {
            let before = self.rois.len();
            self.rois.retain(|open| open.client != node);
            self.counters.rois_dropped += (before - self.rois.len()) as u64;
        }
    }

    /// A read-out system comes or goes: one in a new life is told that it missed all before.
    fn on_system(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        if let PeerState::Up(life) = state {
            let is_new = self.windows.come(node, life);
            if let Some(issued) = self.issued.filter(|_| is_new) {
                out.send(node, Message::IssuedUpTo(issued));
            }
        } else {
            self.windows.leave(node, state == PeerState::Gone);
            let system = self.parameters.systems.iter().find(|system| system.node == node);
            let system = system.expect("a system of the crate");
            let do_without = |open: &mut OpenRoi| open.data.do_without(system, state == PeerState::Gone);
            let hit = self.rois.iter_mut().filter_map(|(own, open)| do_without(open).then_some(own));
            for own in hit.collect::<Vec<_>>() {
                self.answer_if_complete(own, out);
            }
        }
        self.tell_busy(out);
        self.tell_taken(now, out);
    }

    /// A new life of the DFM numbers its clears from 1 and gives out tables of its own.
    fn on_clearer(&mut self, life: Incarnation) {
        let before = self.clearer.replace(life);
        if before.is_some_and(|before| before != life) {
            self.counters.clears_refused += self.clears.refused();
            self.clears = ClearSequence::from_start();
            self.valid.begin_anew();
            self.ask_due = None;
            self.destinations.begin_anew();
        }
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start => self.groups.start(now),
            Command::Drain => {
                self.draining = true;
                self.valid.settle();
                self.tell_busy(out);
                self.end_clears(now, out);
            }
            Command::Abandon => (self.draining, self.abandoned) = (true, true),
            _ => {}
        }
    }
}

/// A group of clears from outside.
#[derive(Clone, Copy)]
struct Group<'a> {
    sequence: u64,
    oldest_valid: EventId,
    last: bool,
    events: &'a [EventId],
}

impl Component for Trg {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => self.on_message(now, from, message, out),
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Deadline => {
                self.taken.on_deadline(now, out);
                self.time_out_rois(now, out);
                if self.ask_due.is_some_and(|due| due <= now) {
                    self.ask_for_clears(now, out);
                }
                if self.groups.next_deadline().is_some_and(|due| due <= now) {
                    self.send_all_groups(now, out);
                }
            }
            Input::Fragment { .. } | Input::Link { .. } | Input::Watch(_) | Input::Done { .. } => {}
        }
    }

    fn flush(&mut self, _now: Time, out: &mut Outbox) {
        let early = self.destinations.take_early().map(|(sfi, event)| PushOrder { event, sfi });
        let early: Vec<PushOrder> = early.collect();
        early.chunks(ORDERS_MAX).for_each(|orders| self.accept(orders.to_vec(), out));
    }

    fn next_deadline(&self) -> Option<Time> {
        let roi = self.roi_deadlines.front().map(|(deadline, _)| *deadline);
        [self.taken.next_deadline(), self.ask_due, self.groups.next_deadline(), roi].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.abandoned || (self.draining && self.over)
    }

    fn report(&self, _now: Time) -> Report {
        let refused = self.counters.clears_refused + self.clears.refused() + self.valid.refused();
        let (pending, rois_open) = (self.groups.pending() as u64, self.rois.len() as u64);
        let counters = TrgCounters { clears_refused: refused, pending, rois_open, ..self.counters };
        Report::of(Role::Trg, counters.to_values())
    }

    fn check(&self) {
        let c = &self.counters;
        let open = self.rois.len() as u64;
        assert_eq!(c.rois, c.rois_answered + c.rois_dropped + open, "every request of level 2 accounted for");
        assert!(self.done <= c.triggers, "no more is taken than has come");
        assert!(self.roi_deadlines.iter().is_sorted_by_key(|(deadline, _)| *deadline), "time-outs in order");
        assert_eq!(c.rejected, c.dispatched + self.groups.pending() as u64, "every clear accounted for");
    }
}

const ASK_AGAIN: Duration = Duration::from_millis(100);
