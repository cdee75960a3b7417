//! The level-2 supervisor: gives level-1 results to L2PUs, collects decisions `[L2SCI2000 §2.3.1]`.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Component, Input, Note, Outbox, PeerState};
use crate::histogram::Histogram;
use crate::ids::{EventId, NodeId, Role};
use crate::level2::forced::ForcedShare;
use crate::message::{BusyCause, Command, Decision, EventInfo, Message, Roi};
use crate::random::Random;
use crate::report::{BlockCause, BlockedClock, L2svCounters, Report};
use crate::time::Time;
use crate::window::TakenCount;

/// How a supervisor is set up.
#[derive(Clone, Debug)]
pub struct L2svParameters {
    /// Where events come from.
    pub level1: NodeId,
    /// The processing units that it may use.
    pub l2pus: Vec<NodeId>,
    /// Most events of this supervisor in one L2PU.
    pub share: usize,
    /// Who takes the decisions.
    pub dfm: NodeId,
    /// How L2PUs are chosen.
    pub assignment: L2puAssignment,
    /// Most events in hand, undecided or not yet taken over by the DFM.
    pub events_in_system: usize,
    /// How long an L2PU may take.
    pub timeout: Duration,
    /// Most forced accepts among all decisions, 0–1.
    pub forced_limit: f64,
    /// Decisions in a group.
    pub group: usize,
    /// How long a decision may wait for its group to fill.
    pub group_age: Duration,
    /// The window of level 1.
    pub in_flight: u64,
    /// For random assignment.
    pub seed: u64,
}

/// How L2PUs are chosen among those with a free worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L2puAssignment {
    /// In turn.
    RoundRobin,
    /// At random.
    Random,
    /// The one with the fewest events.
    LeastLoaded,
}

/// A level-2 supervisor.
///
/// It keeps an event until the DFM has taken its decision over. A time-out is decided as accepted and marked `forced`,
/// unless too many are: then the event waits and level 1 is held back.
pub struct L2sv {
    parameters: L2svParameters,
    undecided: BTreeMap<EventId, Undecided>,
    /// Events that no L2PU has, in order.
    queue: VecDeque<EventId>,
    timeouts: VecDeque<(Time, EventId, u16)>,
    l2pus: Vec<Unit>,
    turn: usize,
    group: Vec<Decision>,
    group_due: Option<Time>,
    /// Groups that the DFM has not acknowledged.
    sent: VecDeque<Group>,
    sent_decisions: usize,
    sequence: u64,
    issued_up_to: Option<EventId>,
    report_due: Option<Time>,
    forced: ForcedShare,
    random: Random,
    taken: TakenCount,
    busy_events: bool,
    busy_forced: bool,
    dfm_gone: bool,
    /// Level 1 will send nothing more.
    level1_done: bool,
    draining: bool,
    abandoned: bool,
    /// The DFM was told that nothing follows.
    done: bool,
    blocked: BlockedClock,
    latency_ns: Histogram,
    counters: L2svCounters,
}

struct Undecided {
    event: EventInfo,
    rois: Vec<Roi>,
    since: Time,
    attempt: u16,
    assigned_to: Option<usize>,
    overdue: bool,
}

/// How an event was decided.
#[derive(Clone, Copy)]
struct Verdict {
    accept: bool,
    forced: bool,
    has_result: bool,
}

impl Verdict {
    const FORCED: Self = Self { accept: true, forced: true, has_result: false };
}

struct Group {
    sequence: u64,
    oldest_undecided: EventId,
    decisions: Vec<Decision>,
}

struct Unit {
    node: NodeId,
    reachable: bool,
    gone: bool,
    in_hand: usize,
}

impl L2sv {
    /// A supervisor without events.
    pub fn new(parameters: L2svParameters) -> Self {
        let unit = |&node: &NodeId| Unit { node, reachable: false, gone: false, in_hand: 0 };
        let l2pus = parameters.l2pus.iter().map(unit).collect();
        let forced = ForcedShare::new(parameters.forced_limit);
        let random = Random::new(parameters.seed);
        let taken = TakenCount::new(Some(parameters.level1), parameters.in_flight);
        Self {
            parameters,
            undecided: BTreeMap::new(),
            queue: VecDeque::new(),
            timeouts: VecDeque::new(),
            l2pus,
            turn: 0,
            group: Vec::new(),
            group_due: None,
            sent: VecDeque::new(),
            sent_decisions: 0,
            sequence: 0,
            issued_up_to: None,
            report_due: None,
            forced,
            random,
            taken,
            busy_events: false,
            busy_forced: false,
            dfm_gone: false,
            level1_done: false,
            draining: false,
            abandoned: false,
            done: false,
            blocked: BlockedClock::default(),
            latency_ns: Histogram::default(),
            counters: L2svCounters::default(),
        }
    }

    fn on_l1_result(&mut self, now: Time, event: EventInfo, rois: Vec<Roi>, out: &mut Outbox) {
        self.counters.received += 1;
        self.taken.take(now, out);
        self.issued_up_to = self.issued_up_to.max(Some(event.event));
        if self.abandoned {
            self.counters.abandoned += 1;
            return;
        }
        let undecided = Undecided { event, rois, since: now, attempt: 0, assigned_to: None, overdue: false };
        if self.undecided.insert(event.event, undecided).is_none() {
            self.queue.push_back(event.event);
        }
        self.assign(now, out);
        self.update_busy(now, out);
    }

    /// Gives waiting events to L2PUs with a free worker.
    fn assign(&mut self, now: Time, out: &mut Outbox) {
        while let Some(&event) = self.queue.front() {
            let Some(unit) = self.choose() else { break };
            self.queue.pop_front();
            let Some(undecided) = self.undecided.get_mut(&event) else {
                continue;
            };
            undecided.attempt += 1;
            undecided.assigned_to = Some(unit);
            let attempt = undecided.attempt;
            self.l2pus[unit].in_hand += 1;
            self.timeouts.push_back((now + self.parameters.timeout, event, attempt));
            let (event, rois) = (undecided.event, undecided.rois.clone());
            out.send(self.l2pus[unit].node, Message::Assign { event, attempt, rois });
        }
        let waits = !self.queue.is_empty();
        for unit in &self.l2pus {
            self.blocked.set(now, unit.node, BlockCause::NoWorker, waits && unit.in_hand >= self.parameters.share);
        }
        if self.draining && self.l2pus.iter().all(|unit| unit.gone) {
            self.force_waiting(now, out);
        }
    }

    fn choose(&mut self) -> Option<usize> {
        let count = self.l2pus.len();
        let start = match self.parameters.assignment {
            L2puAssignment::Random => self.random.below(count as u64) as usize,
            _ => self.turn,
        };
        let free = |&index: &usize| self.l2pus[index].reachable && self.l2pus[index].in_hand < self.parameters.share;
        let mut in_turn = (0..count).map(|step| (start + step) % count).filter(free);
        let chosen = match self.parameters.assignment {
            L2puAssignment::LeastLoaded => in_turn.min_by_key(|&index| self.l2pus[index].in_hand),
            _ => in_turn.next(),
        }?;
        self.turn = (chosen + 1) % count;
        Some(chosen)
    }

    fn on_decision(
        &mut self,
        now: Time,
        from: NodeId,
        (event, attempt): (EventId, u16),
        verdict: Verdict,
        out: &mut Outbox,
    ) {
        let Some(unit) = self.l2pus.iter().position(|unit| unit.node == from) else { return };
        self.l2pus[unit].in_hand = self.l2pus[unit].in_hand.saturating_sub(1);
        let current = |u: &Undecided| u.assigned_to == Some(unit) && u.attempt == attempt;
        if self.undecided.get(&event).is_some_and(current) {
            self.decide(now, event, verdict, out);
        } else {
            self.counters.late_decisions += 1;
        }
        self.assign(now, out);
    }

    fn decide(&mut self, now: Time, event: EventId, verdict: Verdict, out: &mut Outbox) {
        let Verdict { accept, forced, has_result } = verdict;
        let undecided = self.undecided.remove(&event).expect("an undecided event");
        self.forget_decided();
        self.latency_ns.record(now.since(undecided.since).as_nanos() as u64);
        self.forced.note(forced);
        self.counters.accepted += u64::from(accept);
        self.counters.rejected += u64::from(!accept);
        self.counters.forced += u64::from(forced);
        self.group.push(Decision { event: EventInfo { forced, ..undecided.event }, accept, has_result });
        if self.group.len() >= self.parameters.group || self.draining {
            self.flush(now, out);
        } else {
            self.group_due.get_or_insert(now + self.parameters.group_age);
        }
    }

    /// Time-outs of decided events go as they come to the front.
    fn forget_decided(&mut self) {
        let undecided = &self.undecided;
        let waits = |event: &EventId, attempt: u16| undecided.get(event).is_some_and(|u| u.attempt == attempt);
        while self.timeouts.front().is_some_and(|(_, event, attempt)| !waits(event, *attempt)) {
            self.timeouts.pop_front();
        }
    }

    /// Sends the decisions in hand, and how far level 2 has come, even if there are none.
    fn flush(&mut self, now: Time, out: &mut Outbox) {
        self.group_due = None;
        self.report_due = Some(now + REPORT_EVERY);
        let Some(oldest_undecided) = self.oldest_undecided() else {
            return;
        };
        self.sequence += 1;
        let group = Group { sequence: self.sequence, oldest_undecided, decisions: core::mem::take(&mut self.group) };
        out.send(self.parameters.dfm, group.message());
        self.sent_decisions += group.decisions.len();
        self.sent.push_back(group);
    }

    /// `None` before level 1 has issued anything.
    fn oldest_undecided(&self) -> Option<EventId> {
        let undecided = self.undecided.first_key_value().map(|(event, _)| *event);
        undecided.or_else(|| self.issued_up_to.map(EventId::next))
    }

    fn on_decisions_taken(&mut self, now: Time, up_to: u64, out: &mut Outbox) {
        while let Some(group) = self.sent.pop_front_if(|group| group.sequence <= up_to) {
            self.sent_decisions -= group.decisions.len();
        }
        self.update_busy(now, out);
        self.assign(now, out);
    }

    fn on_issued_up_to(&mut self, now: Time, event: EventId) {
        self.issued_up_to = self.issued_up_to.max(Some(event));
        self.report_due.get_or_insert(now + REPORT_EVERY);
    }

    fn on_timeout(&mut self, now: Time, event: EventId, attempt: u16, out: &mut Outbox) {
        let Some(undecided) = self.undecided.get_mut(&event).filter(|u| u.attempt == attempt) else {
            return;
        };
        undecided.overdue = true;
        if self.forced.allows_one() || self.draining {
            self.decide(now, event, Verdict::FORCED, out);
        } else if !self.busy_forced {
            out.note(Note::ForcedLimitReached);
            self.busy_forced = true;
            out.send(self.parameters.level1, Message::Busy { cause: BusyCause::ForcedLimit, on: true });
        }
    }

    /// Once the share of forced decisions is below its limit again, or the run ends, overdue events are forced after all.
    fn force_overdue(&mut self, now: Time, out: &mut Outbox) {
        if !self.busy_forced {
            return;
        }
        let overdue: Vec<EventId> = self.undecided.iter().filter(|(_, u)| u.overdue).map(|(event, _)| *event).collect();
        let mut left = overdue.len();
        for event in overdue {
            if !self.forced.allows_one() && !self.draining {
                break;
            }
            self.decide(now, event, Verdict::FORCED, out);
            left -= 1;
        }
        if left == 0 {
            self.busy_forced = false;
            out.send(self.parameters.level1, Message::Busy { cause: BusyCause::ForcedLimit, on: false });
        }
    }

    /// Nobody is left to decide.
    fn force_waiting(&mut self, now: Time, out: &mut Outbox) {
        while let Some(event) = self.queue.pop_front() {
            if self.undecided.contains_key(&event) {
                self.decide(now, event, Verdict::FORCED, out);
            }
        }
    }

    fn in_hand(&self) -> usize {
        self.undecided.len() + self.group.len() + self.sent_decisions
    }

    fn update_busy(&mut self, now: Time, out: &mut Outbox) {
        let limit = self.parameters.events_in_system;
        let busy = if self.busy_events { self.in_hand() > limit - limit / 4 } else { self.in_hand() >= limit };
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
        }
        if node == self.parameters.level1 && up {
            self.taken.tell(out);
            for (cause, on) in
                [(BusyCause::EventsInSystem, self.busy_events), (BusyCause::ForcedLimit, self.busy_forced)]
            {
                out.send(node, Message::Busy { cause, on });
            }
        }
        if node == self.parameters.dfm {
            self.dfm_gone = state == PeerState::Gone;
            if up {
                self.sent.iter().for_each(|group| out.send(node, group.message()));
                if self.done {
                    out.send(node, Message::NoMore);
                }
            }
        }
        if let Some(unit) = self.l2pus.iter().position(|unit| unit.node == node) {
            self.on_l2pu(now, unit, state, out);
        }
    }

    /// The events of an L2PU that was lost go to the others, first.
    fn on_l2pu(&mut self, now: Time, unit: usize, state: PeerState, out: &mut Outbox) {
        let node = self.l2pus[unit].node;
        let reachable = matches!(state, PeerState::Up(_));
        self.l2pus[unit] = Unit { node, reachable, gone: state == PeerState::Gone, in_hand: 0 };
        for (event, undecided) in self.undecided.iter_mut().rev().filter(|(_, u)| u.assigned_to == Some(unit)) {
            undecided.assigned_to = None;
            // Voids the time-out of the lost attempt.
            undecided.attempt += 1;
            undecided.overdue = false;
            self.counters.reassigned += 1;
            self.queue.push_front(*event);
        }
        self.assign(now, out);
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        self.taken.on_deadline(now, out);
        while let Some(&(deadline, event, attempt)) = self.timeouts.front() {
            if deadline > now {
                break;
            }
            self.timeouts.pop_front();
            self.on_timeout(now, event, attempt, out);
        }
        let due = |time: Option<Time>| time.is_some_and(|time| time <= now);
        if due(self.group_due) || due(self.report_due) {
            self.flush(now, out);
        }
    }

    fn has_decided_all(&self) -> bool {
        let decided = self.undecided.is_empty() && self.group.is_empty();
        self.draining && decided && self.level1_done
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Drain => {
                self.draining = true;
                self.force_overdue(now, out);
                self.flush(now, out);
                self.assign(now, out);
            }
            Command::Abandon => {
                self.draining = true;
                self.abandoned = true;
                self.level1_done = true;
                self.counters.abandoned += self.undecided.len() as u64;
                self.undecided.clear();
                self.queue.clear();
                self.flush(now, out);
                self.sent.clear();
                self.sent_decisions = 0;
            }
            _ => {}
        }
    }
}

impl Group {
    fn message(&self) -> Message {
        let Self { sequence, oldest_undecided, ref decisions } = *self;
        Message::Decisions { sequence, oldest_undecided, decisions: decisions.clone() }
    }
}

impl Component for L2sv {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::L1Result { event, rois } => self.on_l1_result(now, event, rois, out),
                Message::NoMore => self.level1_done = true,
                Message::IssuedUpTo(event) => self.on_issued_up_to(now, event),
                Message::L2Decision { event, attempt, accept, has_result } => {
                    self.on_decision(now, from, (event, attempt), Verdict { accept, forced: false, has_result }, out);
                }
                Message::DecisionsTaken(up_to) => self.on_decisions_taken(now, up_to, out),
                _ => {}
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Deadline => self.on_deadline(now, out),
            Input::Fragment { .. } | Input::Done { .. } => {}
        }
        self.force_overdue(now, out);
        if self.has_decided_all() && !self.done {
            self.done = true;
            self.flush(now, out);
            out.send(self.parameters.dfm, Message::NoMore);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let timeout = self.timeouts.front().map(|(deadline, _, _)| *deadline);
        [self.taken.next_deadline(), timeout, self.group_due, self.report_due].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.has_decided_all() && (self.dfm_gone || self.sent_decisions == 0)
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
        let sent: usize = self.sent.iter().map(|group| group.decisions.len()).sum();
        assert_eq!(self.sent_decisions, sent, "decisions that the DFM has to acknowledge");
    }
}

/// The DFM learns at least this often how far level 2 has come, also when it is idle.
const REPORT_EVERY: Duration = Duration::from_millis(100);
