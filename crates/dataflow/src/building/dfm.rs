//! The dataflow manager: assigns events to SFIs, clears read-out systems `[EB2007 §II-B.1]`.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::building::assignment::{SfiAssignment, SfiChooser};
use crate::building::push_control::{BuildingMode, Choice, PushControl};
use crate::component::{Component, Input, Note, Outbox, PeerState};
use crate::groups::Groups;
use crate::histogram::Histogram;
use crate::ids::{EventId, Incarnation, NodeId, Role};
use crate::level1::pace::{Pace, Spacing};
use crate::message::{Assignment, Attempt, BusyCause, Command, Decision, Ended, EventInfo, Fate, Message};
use crate::node::RUN_CONTROL;
use crate::readout::clears::Clears;
use crate::report::{BlockCause, BlockedClock, DfmCounters, PeerCount, Report};
use crate::time::Time;
use crate::window::TakenCount;

/// How a dataflow manager is set up.
#[derive(Clone, Debug)]
pub struct DfmParameters {
    /// Where events come from.
    pub input: DfmInput,
    /// The builders.
    pub sfis: Vec<NodeId>,
    /// Most events in building at one SFI.
    pub building: usize,
    /// How an SFI is chosen.
    pub assignment: SfiAssignment,
    /// Events in a row that one SFI gets.
    pub run: usize,
    /// How the data of events come to the SFIs.
    pub mode: BuildingMode,
    /// After this time an event goes to another SFI, if there is one.
    pub build_timeout: Duration,
    /// Events in a clear group.
    pub clear_group: usize,
    /// How long a clear may wait for its group to fill.
    pub clear_age: Duration,
    /// When the read-out systems may forget an event.
    pub clear_after: ClearAfter,
    /// Events that may wait for an SFI before busy is raised.
    pub queue: usize,
    /// The window of level 1.
    pub in_flight: u64,
}

/// Where the events of a DFM come from.
#[derive(Clone, Debug, PartialEq)]
pub enum DfmInput {
    /// Grouped decisions of level 2.
    Level2 {
        /// The supervisors.
        l2svs: Vec<NodeId>,
        /// Told of busy.
        level1: NodeId,
    },
    /// Level 1 directly.
    Level1(NodeId),
    /// Itself `[EB2007 §IV]`.
    SelfTrigger {
        /// The first event.
        first: EventId,
        /// Most events of the run.
        limit: Option<u64>,
        /// When events are triggered.
        spacing: Spacing,
        /// For the spacing.
        seed: u64,
    },
}

/// When the read-out systems may forget an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearAfter {
    /// When it is built, as in `[EB2007 §II-B.1]`.
    Built,
    /// When the event filter rejected it or it is recorded: nothing that dies in between loses it.
    Recorded,
}

/// The dataflow manager.
///
/// It grants the end of an event to one attempt only: a slow SFI is not a dead one, and no event is built twice.
pub struct Dfm {
    parameters: DfmParameters,
    /// Accepted events that may still be asked from the read-out systems.
    open: BTreeMap<EventId, Open>,
    /// Granted and cleared, but not finished.
    cleared: BTreeSet<EventId>,
    queue: VecDeque<EventId>,
    timeouts: VecDeque<(Time, EventId, u16)>,
    sfis: Vec<Sfi>,
    /// Assignments of this pass.
    builds: Groups<Assignment>,
    /// Grants of this pass.
    grants: Groups<Attempt>,
    revocations: Groups<Attempt>,
    push: PushControl,
    chooser: SfiChooser,
    clears: Clears,
    supervisors: Vec<Supervisor>,
    /// Below this, level 1 or the own trigger will issue nothing more.
    next_event: EventId,
    pace: Option<Pace>,
    taken: TakenCount,
    busy: bool,
    exhausted: bool,
    draining: bool,
    abandoned: bool,
    closed: bool,
    blocked: BlockedClock,
    latency_ns: Histogram,
    counters: DfmCounters,
}

struct Open {
    event: EventInfo,
    has_result: bool,
    /// Has some of its data already.
    builder: Option<NodeId>,
    attempt: u16,
    /// If an attempt was granted before: whether it was complete.
    granted: Option<bool>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Queued,
    Building {
        sfi: usize,
        since: Time,
    },
    /// Built at this SFI; kept open until it is finished.
    Granted {
        sfi: usize,
    },
}

struct Sfi {
    node: NodeId,
    reachable: bool,
    gone: bool,
    /// It has told the fates of all its events.
    done: bool,
    busy: bool,
    /// An event that it was given was not built in time, and none since.
    late: bool,
    building: usize,
    complete: u64,
    incomplete: u64,
    finished: u64,
}

impl Sfi {
    /// How many more events it may get, if at most so many may be in building.
    fn room(&self, most: usize) -> usize {
        if self.reachable && !self.busy { most.saturating_sub(self.building) } else { 0 }
    }
}

struct Supervisor {
    node: NodeId,
    reachable: bool,
    gone: bool,
    life: Option<Incarnation>,
    /// Nothing follows from it.
    done: bool,
    seen: bool,
    sequence: u64,
    oldest_undecided: EventId,
    taken: [u64; 3],
}

impl Dfm {
    /// A dataflow manager without events.
    pub fn new(parameters: DfmParameters) -> Self {
        let sfi = |&node: &NodeId| Sfi {
            node,
            reachable: false,
            gone: false,
            done: false,
            busy: false,
            late: false,
            building: 0,
            complete: 0,
            incomplete: 0,
            finished: 0,
        };
        let sources = match &parameters.input {
            DfmInput::Level2 { l2svs, .. } => l2svs.clone(),
            DfmInput::Level1(level1) => alloc::vec![*level1],
            DfmInput::SelfTrigger { .. } => Vec::new(),
        };
        let supervisor = |node: NodeId| Supervisor {
            node,
            reachable: false,
            gone: false,
            life: None,
            done: false,
            seen: false,
            sequence: 0,
            oldest_undecided: EventId(0),
            taken: [0; 3],
        };
        let (pace, next_event) = match parameters.input {
            DfmInput::SelfTrigger { first, spacing, seed, .. } => (Some(Pace::new(spacing, seed)), first),
            _ => (None, EventId(0)),
        };
        let level1 = if let DfmInput::Level1(level1) = parameters.input { Some(level1) } else { None };
        Self {
            open: BTreeMap::new(),
            cleared: BTreeSet::new(),
            queue: VecDeque::new(),
            timeouts: VecDeque::new(),
            sfis: parameters.sfis.iter().map(sfi).collect(),
            builds: Groups::new(),
            grants: Groups::new(),
            revocations: Groups::new(),
            push: PushControl::new(parameters.mode.clone(), parameters.in_flight),
            chooser: SfiChooser::new(parameters.assignment).in_runs_of(parameters.run),
            clears: Clears::new(parameters.clear_group, parameters.clear_age),
            supervisors: sources.into_iter().map(supervisor).collect(),
            next_event,
            pace,
            taken: TakenCount::new(level1, parameters.in_flight),
            busy: false,
            exhausted: false,
            draining: false,
            abandoned: false,
            closed: false,
            blocked: BlockedClock::default(),
            latency_ns: Histogram::default(),
            counters: DfmCounters::default(),
            parameters,
        }
    }

    fn on_decisions(
        &mut self,
        now: Time,
        from: NodeId,
        sequence: u64,
        oldest: EventId,
        decisions: &[Decision],
        out: &mut Outbox,
    ) {
        let Some(index) = self.supervisors.iter().position(|s| s.node == from) else {
            return;
        };
        if sequence == self.supervisors[index].sequence + 1 {
            for decision in decisions {
                self.take(now, index, decision, out);
            }
            // Only now: a clear group that goes out in between must not call an accepted event of this group too old.
            let supervisor = &mut self.supervisors[index];
            supervisor.sequence = sequence;
            supervisor.seen = true;
            supervisor.oldest_undecided = supervisor.oldest_undecided.max(oldest);
            self.assign(now, out);
        }
        self.acknowledge(out);
    }

    fn take(&mut self, now: Time, supervisor: usize, decision: &Decision, out: &mut Outbox) {
        let event = decision.event.event;
        if self.open.contains_key(&event) || self.cleared.contains(&event) {
            self.counters.duplicates += 1;
            return;
        }
        let taken = &mut self.supervisors[supervisor].taken;
        if decision.accept {
            taken[1] += 1;
            taken[2] += u64::from(decision.event.forced);
            self.counters.taken_forced += u64::from(decision.event.forced);
            self.accept(decision.event, decision.has_result, decision.builder);
        } else {
            taken[0] += 1;
            self.counters.taken_rejected += 1;
            self.clear(now, event, out);
        }
    }

    fn accept(&mut self, event: EventInfo, has_result: bool, builder: Option<NodeId>) {
        self.counters.taken_accepted += 1;
        if self.abandoned {
            self.counters.not_built += 1;
            return;
        }
        self.push.on_event(event.event);
        let open = Open { event, has_result, builder, attempt: 0, granted: None, state: State::Queued };
        self.open.insert(event.event, open);
        self.queue.push_back(event.event);
    }

    /// Tells the supervisors what is taken over, unless too much waits already: they hold their events until then, and
    /// so hold back level 1.
    fn acknowledge(&mut self, out: &mut Outbox) {
        if self.queue.len() > self.parameters.queue || !matches!(self.parameters.input, DfmInput::Level2 { .. }) {
            return;
        }
        for supervisor in self.supervisors.iter_mut().filter(|s| s.reachable && s.seen) {
            supervisor.seen = false;
            out.send(supervisor.node, Message::DecisionsTaken(supervisor.sequence));
        }
    }

    fn on_l1_result(&mut self, now: Time, from: NodeId, event: EventInfo, out: &mut Outbox) {
        let Some(level1) = self.supervisors.iter_mut().find(|s| s.node == from) else {
            return;
        };
        level1.taken[1] += 1;
        level1.oldest_undecided = level1.oldest_undecided.max(event.event.next());
        self.taken.take(now, out);
        self.accept(event, false, None);
        self.assign(now, out);
    }

    fn on_issued_up_to(&mut self, from: NodeId, event: EventId) {
        if let Some(level1) = self.supervisors.iter_mut().find(|s| s.node == from) {
            level1.oldest_undecided = level1.oldest_undecided.max(event.next());
        }
    }

    /// Triggers what is due while the SFIs have room for it.
    fn self_trigger(&mut self, now: Time, out: &mut Outbox) {
        let DfmInput::SelfTrigger { limit, .. } = self.parameters.input else {
            return;
        };
        while !self.exhausted && !self.draining && self.queue.is_empty() && self.has_room() {
            if !self.pace.as_mut().is_some_and(|pace| pace.take(now)) {
                return;
            }
            let event =
                EventInfo { event: self.next_event, ordinal: self.counters.self_triggered, ..EventInfo::default() };
            self.next_event = self.next_event.next();
            self.counters.self_triggered += 1;
            self.accept(event, false, None);
            self.assign_queued(now, out);
            if limit.is_some_and(|limit| self.counters.self_triggered >= limit) {
                self.exhausted = true;
                self.stop_trigger();
                out.send(RUN_CONTROL, Message::Exhausted);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.sfis.iter().any(|sfi| sfi.room(self.parameters.building) > 0)
    }

    fn assign(&mut self, now: Time, out: &mut Outbox) {
        self.assign_queued(now, out);
        self.update_busy(now, out);
        if self.sfis.iter().all(|sfi| sfi.gone) && !self.queue.is_empty() {
            self.give_up_queue(out);
            self.update_busy(now, out);
            self.acknowledge(out);
        }
    }

    fn assign_queued(&mut self, now: Time, out: &mut Outbox) {
        while let Some(&event) = self.queue.front() {
            let Some(sfi) = self.choose(event) else { return };
            self.queue.pop_front();
            self.build_at(now, event, sfi, out);
        }
    }

    /// An SFI for an event, if one has room.
    fn choose(&mut self, event: EventId) -> Option<usize> {
        if let Some(only) = self.only(event) {
            return Some(only).filter(|&sfi| self.sfis[sfi].room(self.parameters.building) > 0);
        }
        let room = self.sfis.iter().map(|sfi| sfi.room(self.parameters.building));
        self.preferred(event).or_else(|| self.chooser.choose(room))
    }

    /// The SFI that the event's data are pushed to by its number, if it builds.
    fn only(&self, event: EventId) -> Option<usize> {
        let Choice::Only(node) = self.push.choice(event) else { return None };
        let is_new = self.open.get(&event).is_some_and(|open| open.attempt == 0);
        let builds = |sfi: &usize| self.sfis[*sfi].reachable && !self.sfis[*sfi].late;
        self.sfis.iter().position(|sfi| sfi.node == node).filter(builds).filter(|_| is_new)
    }

    /// The table of destinations holds those SFIs that build.
    fn publish(&mut self, out: &mut Outbox) {
        if self.push.is_on() {
            let building = self.sfis.iter().filter(|sfi| sfi.reachable && !sfi.late).map(|sfi| sfi.node).collect();
            let oldest = self.oldest_unfinished();
            self.counters.destinations += u64::from(self.push.publish(building, oldest, out));
        }
    }

    fn set_late(&mut self, sfi: usize, late: bool, out: &mut Outbox) {
        if self.sfis[sfi].late != late {
            self.sfis[sfi].late = late;
            self.publish(out);
        }
    }

    /// The SFI that has some of the event's data, if it has room.
    fn preferred(&self, event: EventId) -> Option<usize> {
        let DfmInput::Level2 { .. } = self.parameters.input else { return None };
        let builder = self.open.get(&event)?.builder?;
        let is_it = |sfi: &Sfi| sfi.node == builder && sfi.room(self.parameters.building) > 0;
        self.sfis.iter().position(is_it)
    }

    fn build_at(&mut self, now: Time, event: EventId, sfi: usize, out: &mut Outbox) {
        let Some(open) = self.open.get_mut(&event) else { return };
        let to = self.sfis[sfi].node;
        // The first attempt is pushed; one that is not, is not the first.
        open.attempt += if open.attempt == 0 && self.push.is_on() && !self.push.is_pushed(event, to) { 2 } else { 1 };
        open.state = State::Building { sfi, since: now };
        self.sfis[sfi].building += 1;
        self.timeouts.push_back((now + self.parameters.build_timeout, event, open.attempt));
        let Open { event, has_result, attempt, .. } = *open;
        if attempt == 1 {
            self.push.order(event, to, out);
        }
        if let Some(events) = self.builds.add(to, Assignment { event, attempt, has_result }, 1) {
            out.send(to, Message::Build { events, oldest_unfinished: self.oldest_unfinished() });
        }
    }

    fn on_end_of_events(&mut self, now: Time, from: NodeId, events: &[Ended], out: &mut Outbox) {
        let Some(sfi) = self.sfis.iter().position(|sfi| sfi.node == from) else {
            return;
        };
        for ended in events {
            self.on_end_of_event(now, sfi, ended, out);
        }
        self.forget_built();
        self.assign(now, out);
    }

    fn on_end_of_event(&mut self, now: Time, sfi: usize, ended: &Ended, out: &mut Outbox) {
        let Ended { event, attempt, missing } = *ended;
        let from = self.sfis[sfi].node;
        self.set_late(sfi, false, out);
        self.sfis[sfi].building = self.sfis[sfi].building.saturating_sub(1);
        let complete = missing == 0;
        match self.open.get_mut(&event) {
            Some(open)
                if open.attempt == attempt && matches!(open.state, State::Building { sfi: at, .. } if at == sfi) =>
            {
                if let State::Building { since, .. } = open.state {
                    self.latency_ns.record(now.since(since).as_nanos() as u64);
                }
                open.state = State::Granted { sfi };
                open.granted = Some(complete);
                self.count_built(sfi, complete);
                if let Some(group) = self.grants.add(from, Attempt { event, attempt }, 1) {
                    out.send(from, Message::Granted(group));
                }
                if self.parameters.clear_after == ClearAfter::Built {
                    self.open.remove(&event);
                    self.cleared.insert(event);
                    self.clear(now, event, out);
                }
            }
            _ => {
                self.counters.revoked += 1;
                if let Some(group) = self.revocations.add(from, Attempt { event, attempt }, 1) {
                    out.send(from, Message::Revoked(group));
                }
            }
        }
    }

    /// Time-outs of events that are built go as they come to the front.
    fn forget_built(&mut self) {
        let open = &self.open;
        let waits = |event: &EventId, attempt: u16| {
            open.get(event).is_some_and(|open| open.attempt == attempt && matches!(open.state, State::Building { .. }))
        };
        while self.timeouts.front().is_some_and(|(_, event, attempt)| !waits(event, *attempt)) {
            self.timeouts.pop_front();
        }
    }

    fn count_built(&mut self, sfi: usize, complete: bool) {
        let sfi = &mut self.sfis[sfi];
        if complete {
            sfi.complete += 1;
            self.counters.built_complete += 1;
        } else {
            sfi.incomplete += 1;
            self.counters.built_incomplete += 1;
        }
    }

    /// Fates come from the SFI that served the event, or from an EFD whose SFI is gone.
    fn on_finished(&mut self, now: Time, from: NodeId, fates: &[(EventId, Fate)], out: &mut Outbox) {
        if let Some(sfi) = self.sfis.iter_mut().find(|sfi| sfi.node == from) {
            sfi.finished += fates.len() as u64;
        }
        for &(event, fate) in fates {
            if self.finish(now, event, out) {
                self.count_fate(fate);
            } else {
                self.counters.finished_twice += 1;
            }
        }
    }

    /// Whether the event was unfinished.
    fn finish(&mut self, now: Time, event: EventId, out: &mut Outbox) -> bool {
        if self.cleared.remove(&event) {
            return true;
        }
        let Some(open) = self.open.remove(&event) else {
            return false;
        };
        if let State::Building { .. } | State::Queued = open.state {
            // It had been granted, its SFI was lost, and it was to be built again when its first fate came after all.
            self.count_built_before(open.granted);
        }
        self.clear(now, event, out);
        true
    }

    /// Counts an event that a lost SFI had built as built after all.
    fn count_built_before(&mut self, granted: Option<bool>) {
        self.counters.built_complete += u64::from(granted != Some(false));
        self.counters.built_incomplete += u64::from(granted == Some(false));
    }

    fn count_fate(&mut self, fate: Fate) {
        *match fate {
            Fate::Rejected => &mut self.counters.rejected,
            Fate::Accepted => &mut self.counters.accepted,
            Fate::Debug => &mut self.counters.debug,
            Fate::Unrecorded => &mut self.counters.unrecorded,
            Fate::Abandoned => &mut self.counters.abandoned,
        } += 1;
    }

    fn clear(&mut self, now: Time, event: EventId, out: &mut Outbox) {
        if self.clears.add(now, event) {
            self.flush_clears(now, false, out);
        }
    }

    fn flush_clears(&mut self, now: Time, last: bool, out: &mut Outbox) {
        let oldest_valid = self.oldest_valid();
        self.counters.clear_groups += 1;
        out.multicast_to_readout(self.clears.flush(now, oldest_valid, last));
    }

    fn on_clear_ask(&mut self, from: NodeId, first: u64, last: u64, out: &mut Outbox) {
        let oldest_valid = self.oldest_valid();
        for group in self.clears.repeat(first, last, oldest_valid) {
            self.counters.clears_repeated += 1;
            out.send(from, group);
        }
    }

    /// The oldest event that anybody can still ask for. A supervisor that cannot be reached may hold events, or be given
    /// new ones before it is back here: it counts with what it said last.
    fn oldest_valid(&self) -> EventId {
        if self.closed {
            return EventId(u64::MAX);
        }
        let undecided = self.supervisors.iter().filter(|s| !s.gone).map(|s| s.oldest_undecided).min();
        let to_come = undecided.unwrap_or(self.next_event);
        self.open.first_key_value().map_or(to_come, |(event, _)| to_come.min(*event))
    }

    /// The oldest event whose fate is not known.
    fn oldest_unfinished(&self) -> EventId {
        let oldest_valid = self.oldest_valid();
        self.cleared.first().map_or(oldest_valid, |event| oldest_valid.min(*event))
    }

    fn update_busy(&mut self, now: Time, out: &mut Outbox) {
        let waits = !self.queue.is_empty() && !self.has_room();
        for sfi in &self.sfis {
            self.blocked.set(now, sfi.node, BlockCause::NoSfi, waits && sfi.reachable);
        }
        let limit = self.parameters.queue;
        let busy = if self.busy { self.queue.len() > limit / 2 } else { self.queue.len() > limit };
        if busy != self.busy {
            self.busy = busy;
            self.tell_busy(out);
            self.acknowledge(out);
        }
    }

    fn tell_busy(&self, out: &mut Outbox) {
        if let DfmInput::Level2 { level1, .. } | DfmInput::Level1(level1) = self.parameters.input {
            out.send(level1, Message::Busy { cause: BusyCause::BuildQueue, on: self.busy });
        }
    }

    /// A slow event goes to another SFI, if one has room.
    fn on_timeout(&mut self, now: Time, event: EventId, attempt: u16, out: &mut Outbox) {
        let Some(open) = self.open.get(&event).filter(|open| open.attempt == attempt) else { return };
        let State::Building { sfi: late, .. } = open.state else { return };
        self.set_late(late, true, out);
        let most = self.parameters.building;
        let room = self.sfis.iter().enumerate().map(|(sfi, it)| if sfi == late { 0 } else { it.room(most) });
        match self.chooser.choose(room).filter(|_| attempt < ATTEMPTS_MAX) {
            Some(sfi) => {
                self.counters.reassigned += 1;
                self.build_at(now, event, sfi, out);
            }
            None => self.timeouts.push_back((now + self.parameters.build_timeout, event, attempt)),
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        let up = matches!(state, PeerState::Up(_));
        if let Some(index) = self.sfis.iter().position(|sfi| sfi.node == node) {
            let sfi = &mut self.sfis[index];
            sfi.reachable = up;
            sfi.gone = state == PeerState::Gone;
            sfi.done = false;
            sfi.busy = false;
            sfi.late = false;
            sfi.building = 0;
            self.builds.forget(node);
            self.grants.forget(node);
            self.revocations.forget(node);
            self.publish(out);
            self.reclaim(index);
            self.assign(now, out);
        }
        if let Some(supervisor) = self.supervisors.iter_mut().find(|s| s.node == node) {
            supervisor.reachable = up;
            supervisor.gone = state == PeerState::Gone;
            if let PeerState::Up(life) = state
                && supervisor.life.replace(life) != Some(life)
            {
                supervisor.sequence = 0;
                supervisor.done = false;
            }
        }
        let level1 = match self.parameters.input {
            DfmInput::Level2 { level1, .. } | DfmInput::Level1(level1) => Some(level1),
            DfmInput::SelfTrigger { .. } => None,
        };
        if up {
            self.push.on_readout(node, out);
        }
        if up && level1 == Some(node) {
            self.taken.tell(out);
            self.tell_busy(out);
        }
    }

    /// The open events of an SFI that was lost are built elsewhere.
    fn reclaim(&mut self, lost: usize) {
        for (event, open) in self.open.iter_mut().rev() {
            match open.state {
                State::Building { sfi, .. } if sfi == lost => {}
                State::Granted { sfi } if sfi == lost => {
                    let counted = &mut self.sfis[lost];
                    let (total, own) = if open.granted == Some(true) {
                        (&mut self.counters.built_complete, &mut counted.complete)
                    } else {
                        (&mut self.counters.built_incomplete, &mut counted.incomplete)
                    };
                    *total -= 1;
                    *own -= 1;
                }
                _ => continue,
            }
            open.state = State::Queued;
            self.counters.reassigned += 1;
            self.queue.push_front(*event);
        }
    }

    /// Nobody is left to build.
    fn give_up_queue(&mut self, out: &mut Outbox) {
        while let Some(event) = self.queue.pop_front() {
            if let Some(open) = self.open.remove(&event) {
                self.give_up(event, &open);
                out.note(Note::NotBuilt(event));
            }
        }
    }

    /// An event that was granted before may be with an EFD still: its fate can come.
    fn give_up(&mut self, event: EventId, open: &Open) {
        let granted_now = matches!(open.state, State::Granted { .. });
        if open.granted.is_some() {
            if !granted_now {
                self.count_built_before(open.granted);
            }
            self.cleared.insert(event);
        } else {
            self.counters.not_built += 1;
        }
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        self.taken.on_deadline(now, out);
        if self.clears.next_deadline().is_some_and(|due| due <= now) {
            self.flush_clears(now, false, out);
        }
        while let Some((_, event, attempt)) = self.timeouts.pop_front_if(|(deadline, _, _)| *deadline <= now) {
            self.on_timeout(now, event, attempt, out);
        }
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start | Command::Resume => {
                self.clears.start(now);
                if let Some(pace) = self.pace.as_mut().filter(|_| !self.exhausted) {
                    pace.start(now);
                }
            }
            Command::Pause => self.stop_trigger(),
            Command::Drain => {
                self.draining = true;
                self.stop_trigger();
                self.assign(now, out);
            }
            Command::Abandon => {
                self.draining = true;
                self.abandoned = true;
                self.stop_trigger();
                self.abandon();
            }
            _ => {}
        }
    }

    fn stop_trigger(&mut self) {
        if let Some(pace) = &mut self.pace {
            pace.stop();
        }
    }

    fn abandon(&mut self) {
        self.queue.clear();
        self.builds.clear();
        self.push.clear();
        for (event, open) in core::mem::take(&mut self.open) {
            self.give_up(event, &open);
        }
    }

    fn on_no_more(&mut self, from: NodeId) {
        if let Some(supervisor) = self.supervisors.iter_mut().find(|s| s.node == from) {
            supervisor.done = true;
        }
        if let Some(sfi) = self.sfis.iter_mut().find(|sfi| sfi.node == from) {
            sfi.done = true;
        }
    }

    /// Whether nobody will send an event any more.
    fn sources_are_done(&self) -> bool {
        self.supervisors.iter().all(|s| s.done || s.gone)
    }

    /// The last clear group goes out when no event is left that anybody can ask for.
    fn close(&mut self, now: Time, out: &mut Outbox) {
        if self.is_drained() && !self.closed {
            self.closed = true;
            self.flush_clears(now, true, out);
        }
    }
}

impl Component for Dfm {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::EndOfEvent(events) => self.on_end_of_events(now, from, &events, out),
                Message::Finished(fates) => self.on_finished(now, from, &fates, out),
                Message::SfiBusy(busy) => {
                    if let Some(sfi) = self.sfis.iter_mut().find(|sfi| sfi.node == from) {
                        sfi.busy = busy;
                    }
                    self.assign(now, out);
                }
                Message::Decisions { sequence, oldest_undecided, decisions } => {
                    self.on_decisions(now, from, sequence, oldest_undecided, &decisions, out);
                }
                Message::L1Result { event, .. } => self.on_l1_result(now, from, event, out),
                Message::IssuedUpTo(event) => self.on_issued_up_to(from, event),
                Message::NoMore => self.on_no_more(from),
                Message::ClearAsk { first, last } => self.on_clear_ask(from, first, last, out),
                _ => {}
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Deadline => self.on_deadline(now, out),
            Input::Fragment { .. } | Input::Done { .. } => {}
        }
        self.self_trigger(now, out);
        self.close(now, out);
    }

    fn flush(&mut self, _now: Time, out: &mut Outbox) {
        self.grants.drain(|sfi, attempts| out.send(sfi, Message::Granted(attempts)));
        self.revocations.drain(|sfi, attempts| out.send(sfi, Message::Revoked(attempts)));
        if !self.builds.is_empty() {
            let oldest_unfinished = self.oldest_unfinished();
            self.builds.drain(|sfi, events| out.send(sfi, Message::Build { events, oldest_unfinished }));
        }
        self.push.flush(out);
    }

    fn next_deadline(&self) -> Option<Time> {
        let offer = self.pace.as_ref().and_then(Pace::next).filter(|_| self.queue.is_empty() && self.has_room());
        let timeout = self.timeouts.front().map(|(deadline, _, _)| *deadline);
        [offer, timeout, self.clears.next_deadline(), self.taken.next_deadline()].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.draining && self.open.is_empty() && (self.abandoned || self.sources_are_done())
    }

    fn is_settled(&self) -> bool {
        !self.draining || self.abandoned || self.sfis.iter().all(|sfi| sfi.done || sfi.gone)
    }

    fn report(&self, now: Time) -> Report {
        let supervisors = self.supervisors.iter().map(|s| PeerCount { node: s.node, counts: s.taken });
        let sfis = self.sfis.iter().map(|s| PeerCount { node: s.node, counts: [s.complete, s.incomplete, s.finished] });
        Report {
            peers: supervisors.chain(sfis).collect(),
            blocked: self.blocked.read(now),
            latency_ns: self.latency_ns.clone(),
            ..Report::of(Role::Dfm, self.counters.to_values())
        }
    }

    fn check(&self) {
        let c = &self.counters;
        let built = c.built_complete + c.built_incomplete;
        let granted = self.open.values().filter(|open| matches!(open.state, State::Granted { .. })).count();
        let unbuilt = (self.open.len() - granted) as u64;
        assert_eq!(c.taken_accepted, built + c.not_built + unbuilt, "every accepted event open, built or given up");
        let finished = c.rejected + c.accepted + c.debug + c.unrecorded + c.abandoned;
        assert_eq!(built, finished + (granted + self.cleared.len()) as u64, "every built event finished or in hand");
        for (index, sfi) in self.sfis.iter().enumerate() {
            assert!(sfi.building <= self.parameters.building, "SFI {index} within its bound");
        }
    }
}

/// After so many attempts an event stays where it is: if all SFIs are slow, taking it from one to the next would never end.
const ATTEMPTS_MAX: u16 = 3;
