//! The level-2 supervisor: gives level-1 results to L2PUs, collects decisions `[L2SCI2000 §2.3.1]`.

mod lives;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Component, Input, Note, Outbox, PeerState};
use crate::ending::Ending;
use crate::level2::farm::Farm;
pub use crate::level2::farm::L2puAssignment;
use crate::level2::forced::ForcedShare;
use crate::level2::outlet::Outlet;
use crate::level2::overrides::Overrides;
use crate::level2::settling::Settling;
use crate::level2::undecided::Undecided;
use crate::message::{BusyCause, Command, Decision, EventInfo, Grounds, Message, Roi};
use crate::report::{BlockedClock, Counters, L2svCounters, Report};
use crate::window::TakenCount;
use base::histogram::Histogram;
use base::ids::{EventId, NodeId, Role};
use base::time::Time;

/// How a supervisor is set up.
#[derive(Clone, Debug)]
pub struct L2svParameters {
    /// Where events come from.
    pub level1: NodeId,
    /// The processing units that it may use.
    pub l2pus: Vec<NodeId>,
    /// Most events of this supervisor in one L2PU.
    pub share: usize,
    /// Who takes the decisions. `None` where nothing is built. This supervisor then clears every decided event itself,
    /// and has to be the only one: read-out systems follow one sequence of clears.
    pub dfm: Option<NodeId>,
    /// How many supervisors share the events of the run.
    pub supervisors: usize,
    /// What is made of the decisions of the L2PUs.
    pub overrides: Overrides,
    /// How L2PUs are chosen.
    pub assignment: L2puAssignment,
    /// Most events in hand, undecided or not yet taken over by the DFM.
    pub events_in_system: usize,
    /// How long an L2PU may take.
    pub timeout: Duration,
    /// Most forced accepts among all decisions, 0–1.
    pub forced_limit: f64,
    /// Decisions in a group; without a DFM, events in a clear group.
    pub group: usize,
    /// How long a decision, or a clear, may wait for its group to fill.
    pub group_age: Duration,
    /// The window of level 1.
    pub in_flight: u64,
    /// Whether level 1 keeps events until this supervisor has settled them, so that it may die and return.
    pub returns: bool,
    /// For random assignment.
    pub seed: u64,
}

/// A level-2 supervisor.
///
/// It keeps an event until the DFM has taken its decision over. A time-out is decided as accepted and marked `forced`,
/// unless too many are. Then the event is overdue, it waits and level 1 is held back. That holds in a stop as well. An
/// overdue event is then forced beyond the limit only when its L2PU has said nothing at all for another time-out.
pub struct L2sv {
    parameters: L2svParameters,
    undecided: Undecided<Event>,
    /// Events that no L2PU has, in order.
    queue: VecDeque<EventId>,
    /// In order, since all L2PUs have the same time. At most about two for each undecided event.
    timeouts: VecDeque<(Time, EventId, u16)>,
    /// Events whose time-out the limit of forced decisions holds back.
    overdue: VecDeque<EventId>,
    farm: Farm,
    outlet: Outlet,
    /// Where a supervisor may return.
    settling: Option<Settling>,
    /// Level 1 has said what former lives had settled.
    resumed: bool,
    issued_up_to: Option<EventId>,
    forced: ForcedShare,
    taken: TakenCount,
    busy_events: bool,
    busy_forced: bool,
    /// Level 1 will send nothing more.
    level1_done: bool,
    ending: Ending,
    /// Whoever takes the decisions was told that nothing follows.
    done: bool,
    blocked: BlockedClock,
    latency_ns: Histogram,
    counters: L2svCounters,
}

struct Event {
    event: EventInfo,
    rois: Vec<Roi>,
    since: Time,
    attempt: u16,
    assigned_to: Option<usize>,
    /// Since when, if its time-out has passed.
    overdue: Option<Time>,
}

/// How an event was decided.
#[derive(Clone, Copy)]
struct Verdict {
    accept: bool,
    grounds: Grounds,
    has_result: bool,
    builder: Option<NodeId>,
}

impl Verdict {
    const FORCED: Self = Self { accept: true, grounds: Grounds::Timeout, has_result: false, builder: None };
}

impl L2sv {
    /// A supervisor without events.
    ///
    /// # Panics
    /// If several supervisors are to do without a DFM.
    pub fn new(parameters: L2svParameters) -> Self {
        assert!(parameters.dfm.is_some() || parameters.supervisors == 1, "one supervisor at most clears without a DFM");
        let L2svParameters { share, assignment, seed, dfm, group, group_age, .. } = parameters;
        Self {
            undecided: Undecided::new(),
            queue: VecDeque::new(),
            timeouts: VecDeque::new(),
            overdue: VecDeque::new(),
            farm: Farm::new(&parameters.l2pus, share, assignment, seed),
            outlet: Outlet::new(dfm, group, group_age),
            settling: parameters.returns.then(|| {
                let mut settling = Settling::new(parameters.level1, group, group_age);
                if dfm.is_none() {
                    settling.be_sure();
                }
                settling
            }),
            resumed: false,
            issued_up_to: None,
            forced: ForcedShare::new(parameters.forced_limit),
            taken: TakenCount::new(Some(parameters.level1), parameters.in_flight),
            parameters,
            busy_events: false,
            busy_forced: false,
            level1_done: false,
            ending: Ending::NotYet,
            done: false,
            blocked: BlockedClock::default(),
            latency_ns: Histogram::default(),
            counters: L2svCounters::default(),
        }
    }

    fn on_l1_result(&mut self, now: Time, event: EventInfo, rois: Vec<Roi>, out: &mut Outbox) {
        self.issued_up_to = self.issued_up_to.max(Some(event.event));
        if self.ending.is_abandoned() {
            self.counters.received += 1;
            self.counters.abandoned += 1;
            return self.taken.take(now, 1, out);
        }
        let undecided = Event { event, rois, since: now, attempt: 0, assigned_to: None, overdue: None };
        if self.undecided.insert(event.event, undecided) {
            self.counters.received += 1;
            self.queue.push_back(event.event);
        }
        self.assign(now, out);
        self.update_busy(now, out);
        // Behind busy, which is to hold back what this lets through.
        self.taken.take(now, 1, out);
    }

    /// Gives waiting events to L2PUs with a free worker.
    fn assign(&mut self, now: Time, out: &mut Outbox) {
        while let Some(&event) = self.queue.front() {
            let Some(undecided) = self.undecided.get_mut(event) else {
                self.queue.pop_front();
                continue;
            };
            let Some(unit) = self.farm.assign() else { break };
            self.queue.pop_front();
            undecided.attempt += 1;
            undecided.assigned_to = Some(unit);
            let attempt = undecided.attempt;
            self.timeouts.push_back((now + self.parameters.timeout, event, attempt));
            let (event, rois) = (undecided.event, undecided.rois.clone());
            out.send(self.farm.node(unit), Message::Assign { event, attempt, rois });
        }
        self.farm.tell_blocked(now, !self.queue.is_empty(), &mut self.blocked);
        if self.ending.is_draining() && self.farm.is_gone() {
            self.force_waiting(now, out);
        }
    }

    fn on_decision(
        &mut self,
        now: Time,
        from: NodeId,
        (event, attempt): (EventId, u16),
        verdict: Verdict,
        out: &mut Outbox,
    ) {
        let Some(unit) = self.farm.find(from) else { return };
        self.farm.release(now, unit);
        let current = |u: &&Event| u.assigned_to == Some(unit) && u.attempt == attempt;
        if let Some(undecided) = self.undecided.get(event).filter(current) {
            let accept = self.parameters.overrides.decide(undecided.event.items, verdict.accept);
            self.counters.overridden += u64::from(accept != verdict.accept);
            self.decide(
                now,
                event,
                Verdict {
                    accept,
                    has_result: accept && verdict.has_result,
                    grounds: if accept { verdict.grounds } else { Grounds::Data },
                    ..verdict
                },
                out,
            );
        } else {
            self.counters.late_decisions += 1;
        }
        self.assign(now, out);
    }

    fn decide(&mut self, now: Time, event: EventId, verdict: Verdict, out: &mut Outbox) {
        let Verdict { accept, grounds, has_result, builder } = verdict;
        let undecided = self.undecided.remove(event).expect("an undecided event");
        self.forget_decided();
        self.latency_ns.record(now.since(undecided.since).as_nanos() as u64);
        self.forced.note(grounds == Grounds::Timeout);
        self.counters.accepted += u64::from(accept);
        self.counters.rejected += u64::from(!accept);
        self.count_grounds(grounds);
        let decision = Decision { event: EventInfo { grounds, ..undecided.event }, accept, has_result, builder };
        self.pass_on(now, decision, out);
        if self.busy_events {
            self.update_busy(now, out);
        }
    }

    /// Time-outs of decided events go as they come to the front, or when there are too many of them.
    fn forget_decided(&mut self) {
        let undecided = &self.undecided;
        let waits = |event: EventId, attempt: u16| undecided.get(event).is_some_and(|u| u.attempt == attempt);
        while self.timeouts.front().is_some_and(|(_, event, attempt)| !waits(*event, *attempt)) {
            self.timeouts.pop_front();
        }
        if self.timeouts.len() > 2 * undecided.len() + TIMEOUTS_SLACK {
            self.timeouts.retain(|(_, event, attempt)| waits(*event, *attempt));
        }
    }

    fn flush(&mut self, now: Time, out: &mut Outbox) {
        let oldest = self.oldest_undecided();
        self.outlet.flush(now, oldest, &mut self.counters, out);
    }

    /// `None` before level 1 has issued anything.
    fn oldest_undecided(&self) -> Option<EventId> {
        if self.done {
            return Some(EventId(u64::MAX));
        }
        let undecided = self.undecided.first().or_else(|| self.issued_up_to.map(EventId::next));
        // Without a DFM, what is decided and not settled is decided anew by the next life.
        let unsettled = self.settling.as_ref().and_then(Settling::oldest);
        unsettled.map_or(undecided, |unsettled| undecided.map(|undecided| undecided.min(unsettled)))
    }

    fn on_decisions_taken(&mut self, now: Time, up_to: u64, oldest_unfinished: EventId, out: &mut Outbox) {
        let taken = self.outlet.on_taken(up_to, oldest_unfinished, self.settling.is_some(), out);
        self.settle_taken(taken, out);
        self.update_busy(now, out);
        self.assign(now, out);
    }

    fn on_issued_up_to(&mut self, now: Time, event: EventId) {
        self.issued_up_to = self.issued_up_to.max(Some(event));
        self.outlet.report_soon(now);
    }

    fn on_timeout(&mut self, now: Time, event: EventId, attempt: u16, out: &mut Outbox) {
        let Some(undecided) = self.undecided.get_mut(event).filter(|u| u.attempt == attempt) else {
            return;
        };
        let unit = undecided.assigned_to.expect("the time-out of an event that was given to a unit");
        let is_silent = |since| !self.farm.heard_since(unit, since);
        if self.forced.allows_one() || self.ending.is_draining() && undecided.overdue.is_some_and(is_silent) {
            return self.decide(now, event, Verdict::FORCED, out);
        }
        self.timeouts.push_back((now + self.parameters.timeout, event, attempt));
        if undecided.overdue.replace(now).is_some() {
            return;
        }
        self.overdue.push_back(event);
        if !self.busy_forced {
            out.note(Note::ForcedLimitReached);
            self.busy_forced = true;
            out.send(self.parameters.level1, Message::Busy { cause: BusyCause::ForcedLimit, on: true });
        }
    }

    /// Once the share of forced decisions is below its limit again, overdue events are forced after all.
    fn force_overdue(&mut self, now: Time, out: &mut Outbox) {
        if !self.busy_forced {
            return;
        }
        while let Some(&event) = self.overdue.front() {
            let is_overdue = self.undecided.get(event).is_some_and(|u| u.overdue.is_some());
            if is_overdue && !self.forced.allows_one() {
                return;
            }
            self.overdue.pop_front();
            if is_overdue {
                self.decide(now, event, Verdict::FORCED, out);
            }
        }
        self.busy_forced = false;
        out.send(self.parameters.level1, Message::Busy { cause: BusyCause::ForcedLimit, on: false });
    }

    /// Nobody is left to decide.
    fn force_waiting(&mut self, now: Time, out: &mut Outbox) {
        while let Some(event) = self.queue.pop_front() {
            if self.undecided.get(event).is_some() {
                self.decide(now, event, Verdict::FORCED, out);
            }
        }
    }

    fn in_hand(&self) -> usize {
        self.undecided.len() + self.outlet.in_hand()
    }

    fn update_busy(&mut self, now: Time, out: &mut Outbox) {
        let limit = self.parameters.events_in_system;
        let busy = if self.busy_events { self.in_hand() > limit - limit.div_ceil(4) } else { self.in_hand() >= limit };
        if busy != self.busy_events {
            self.busy_events = busy;
            out.send(self.parameters.level1, Message::Busy { cause: BusyCause::EventsInSystem, on: busy });
            if busy {
                self.flush(now, out);
            }
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        let up = matches!(state, PeerState::Up(_));
        if node == self.parameters.level1 && state == PeerState::Gone {
            self.level1_done = true;
            self.settle_no_more(now, out);
            self.assign(now, out);
        }
        if Some(node) == self.parameters.dfm && state == PeerState::Gone {
            self.decide_unsure(now, out);
        }
        if node == self.parameters.level1 && up {
            self.taken.tell(out);
            if let Some(settling) = &self.settling {
                settling.tell_again(out);
            }
            for (cause, on) in
                [(BusyCause::EventsInSystem, self.busy_events), (BusyCause::ForcedLimit, self.busy_forced)]
            {
                out.send(node, Message::Busy { cause, on });
            }
        }
        if self.outlet.on_peer(node, state, self.done, out)
            && let Some(settling) = &mut self.settling
        {
            settling.void_groups();
        }
        if let Some(unit) = self.farm.find(node) {
            self.on_l2pu(now, unit, state, out);
        }
    }

    /// The events of an L2PU that was lost go to the others, first.
    fn on_l2pu(&mut self, now: Time, unit: usize, state: PeerState, out: &mut Outbox) {
        self.farm.set(unit, state);
        for (event, undecided) in self.undecided.iter_mut().rev().filter(|(_, u)| u.assigned_to == Some(unit)) {
            undecided.assigned_to = None;
            // Voids the time-out of the lost attempt.
            undecided.attempt += 1;
            undecided.overdue = None;
            self.counters.reassigned += 1;
            self.queue.push_front(event);
        }
        self.forget_decided();
        self.assign(now, out);
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        self.taken.on_deadline(now, out);
        while let Some((_, event, attempt)) = self.timeouts.pop_front_if(|(deadline, _, _)| *deadline <= now) {
            self.on_timeout(now, event, attempt, out);
        }
        if let Some(settling) = self.settling.as_mut().filter(|it| it.next_deadline().is_some_and(|due| due <= now)) {
            settling.tell_pending(out);
        }
        if self.outlet.next_deadline().is_some_and(|due| due <= now) {
            self.flush(now, out);
        }
    }

    fn has_decided_all(&self) -> bool {
        let is_settled = self.settling.as_ref().is_none_or(Settling::is_flushed);
        self.ending.is_draining()
            && self.undecided.is_empty()
            && self.outlet.is_flushed()
            && is_settled
            && self.level1_done
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start => self.outlet.start(now),
            Command::Drain => {
                self.ending.drain();
                if let Some(settling) = &mut self.settling {
                    settling.tell_pending(out);
                }
                self.flush(now, out);
                self.assign(now, out);
            }
            Command::Abandon => {
                self.ending.abandon();
                self.level1_done = true;
                self.counters.abandoned += self.undecided.len() as u64;
                self.undecided.clear();
                self.queue.clear();
                self.timeouts.clear();
                self.overdue.clear();
                self.settle_no_more(now, out);
                self.queue.clear();
                self.flush(now, out);
                self.outlet.abandon();
            }
            _ => {}
        }
    }
}

impl Component for L2sv {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::L1Result { event, rois } => self.on_l1_result(now, event, rois, out),
                Message::Resume { rejected, accepted, forced, incomplete, uncleared } => {
                    self.on_resume(now, [rejected, accepted, forced, incomplete], &uncleared, out);
                }
                Message::L1Again { event, rois } => self.on_l1_again(now, event, rois, out),
                Message::AcceptedBefore(decisions) => self.on_accepted_before(decisions),
                Message::TakenBefore { decided, last } => self.on_taken_before(now, decided, last, out),
                Message::SettledTaken => self.on_settled_taken(now, out),
                Message::NoMore => self.level1_done = true,
                Message::IssuedUpTo(event) => self.on_issued_up_to(now, event),
                Message::ClearAsk(missed) => self.outlet.on_clear_ask(from, missed, &mut self.counters, out),
                Message::L2Decision { event, attempt, accept, lacks_data, has_result, builder } => {
                    let grounds = if lacks_data { Grounds::PartOfData } else { Grounds::Data };
                    let verdict = Verdict { accept, grounds, has_result, builder };
                    self.on_decision(now, from, (event, attempt), verdict, out);
                }
                Message::Ledger(ledger) => self.outlet.on_ledger(&ledger),
                Message::DecisionsTaken { up_to, oldest_unfinished } => {
                    self.on_decisions_taken(now, up_to, oldest_unfinished, out);
                }
                message => message.passes_no_gate(),
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Deadline => self.on_deadline(now, out),
            Input::Fragment { .. } | Input::Link { .. } | Input::Watch(_) | Input::Done { .. } => {}
        }
        self.force_overdue(now, out);
        if self.has_decided_all() && !self.done {
            self.flush(now, out);
            self.done = true;
            self.outlet.close(now, &mut self.counters, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let timeout = self.timeouts.front().map(|(deadline, _, _)| *deadline);
        let settle = self.settling.as_ref().and_then(Settling::next_deadline);
        [self.taken.next_deadline(), timeout, settle, self.outlet.next_deadline()].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.has_decided_all() && self.outlet.is_taken()
    }

    fn is_settled(&self) -> bool {
        self.settling.is_none() || self.resumed
    }

    fn report(&self, now: Time) -> Report {
        Report {
            blocked: self.blocked.read(now),
            latency_ns: self.latency_ns.clone(),
            ..Report::of(Role::L2sv, self.counters.to_values())
        }
    }

    fn check(&self) {
        let decided = self.counters.accepted + self.counters.rejected + self.counters.abandoned;
        assert_eq!(self.counters.received, decided + self.undecided.len() as u64, "every event in hand or decided");
        assert!(self.timeouts.iter().is_sorted_by_key(|(deadline, _, _)| *deadline), "time-outs in order");
        assert!(self.timeouts.len() <= 3 * self.undecided.len() + TIMEOUTS_SLACK, "time-outs of events in hand");
        self.undecided.check();
        self.farm.check();
        self.outlet.check();
    }
}

/// Time-outs of decided events that are not worth being tidied up.
const TIMEOUTS_SLACK: usize = 64;
