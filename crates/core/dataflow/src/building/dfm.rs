//! The dataflow manager: assigns events to SFIs, clears read-out systems `[EB2007 §II-B.1]`.

mod assigning;
mod books;
mod closed;
mod orphans;
mod parameters;
mod recovery;
mod remembered;
mod sources;

use alloc::vec::Vec;

use crate::building::push_control::PushControl;
use crate::component::{Component, Input, Outbox, PeerState};
use crate::ending::Ending;
use crate::ledger::Finish;
use crate::level1::pace::Pace;
use crate::message::{Attempt, BusyCause, Command, Ended, Message, MissedClears};
use crate::readout::clears::Clears;
use crate::report::{BlockCause, Counters, DfmCounters, PeerCount, Report};
use crate::window::TakenCount;
use assigning::Assigning;
use base::event_map::EventMap;
use base::histogram::Histogram;
use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use books::{BuildState, Granted, Open, Outgoing, Pressure, Sfi, Supervisor};
use closed::Closed;
use orphans::Orphans;
use recovery::{Recovery, Returning};
use remembered::Remembered;
use sources::OwnTrigger;

pub use parameters::{ClearAfter, DfmInput, DfmParameters};

/// The dataflow manager.
///
/// It grants the end of an event to one attempt only: a slow SFI is not a dead one, and no event is built twice.
pub struct Dfm {
    parameters: DfmParameters,
    /// Accepted events that may still be asked from the read-out systems.
    open: EventMap<Open>,
    /// Granted and cleared, but not finished.
    cleared: EventMap<Granted>,
    /// The same of builders that were lost.
    orphans: Orphans,
    assigning: Assigning,
    sfis: Vec<Sfi>,
    outgoing: Outgoing,
    push: PushControl,
    clears: Clears,
    supervisors: Vec<Supervisor>,
    own: OwnTrigger,
    taken: TakenCount,
    pressure: Pressure,
    ending: Ending,
    closed: bool,
    returning: Returning,
    closed_events: Closed,
    latency_ns: Histogram,
    counters: DfmCounters,
}

impl Dfm {
    /// A dataflow manager without events.
    pub fn new(parameters: DfmParameters) -> Self {
        let sfi = |&node: &NodeId| Sfi {
            node,
            reachable: false,
            life: None,
            told: !parameters.late,
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
            remembered: Remembered::default(),
            asks_taken: false,
        };
        let level1 = if let DfmInput::Level1(level1) = parameters.input { Some(level1) } else { None };
        Self {
            open: EventMap::new(),
            cleared: EventMap::new(),
            orphans: Orphans::new(&parameters.efds),
            assigning: Assigning::new(&parameters),
            sfis: parameters.sfis.iter().map(sfi).collect(),
            outgoing: Outgoing::default(),
            push: PushControl::new(parameters.mode.clone(), parameters.in_flight, parameters.late),
            clears: Clears::new(parameters.clear_group, parameters.clear_age),
            supervisors: sources.into_iter().map(supervisor).collect(),
            own: OwnTrigger::new(&parameters.input),
            taken: TakenCount::new(level1, parameters.in_flight),
            pressure: Pressure::default(),
            ending: Ending::NotYet,
            closed: false,
            returning: Returning::new(&parameters),
            closed_events: Closed::new(parameters.returns || parameters.late),
            latency_ns: Histogram::default(),
            counters: DfmCounters::default(),
            parameters,
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
        match self.open.get_mut(event) {
            Some(open)
                if open.attempt == attempt
                    && matches!(open.state, BuildState::Building { sfi: at, .. } if at == sfi) =>
            {
                if let BuildState::Building { since, .. } = open.state {
                    self.latency_ns.record(now.since(since).as_nanos() as u64);
                }
                if let Some(group) = self.outgoing.grants.add(from, Attempt { event, attempt }, 1) {
                    out.send(from, Message::Granted(group));
                }
                self.grant(now, event, sfi, complete, out);
            }
            _ => {
                self.counters.revoked += 1;
                if let Some(group) = self.outgoing.revocations.add(from, Attempt { event, attempt }, 1) {
                    out.send(from, Message::Revoked(group));
                }
            }
        }
    }

    /// The event is this builder's.
    fn grant(&mut self, now: Time, event: EventId, sfi: usize, complete: bool, out: &mut Outbox) {
        let open = self.open.get_mut(event).expect("an open event is granted");
        open.state = BuildState::Granted { sfi };
        let granted = Granted { sfi: sfi as u16, complete, grounds: open.event.grounds };
        open.granted = Some(granted);
        self.count_built(sfi, complete);
        if self.parameters.clear_after == ClearAfter::Built {
            self.open.remove(event);
            self.cleared.insert(event, granted);
            self.clear(now, event, out);
        }
    }

    /// Time-outs of events that are built go as they come to the front.
    fn forget_built(&mut self) {
        let open = &self.open;
        let waits = |event: EventId, attempt: u16| {
            open.get(event)
                .is_some_and(|open| open.attempt == attempt && matches!(open.state, BuildState::Building { .. }))
        };
        while self.assigning.timeouts.front().is_some_and(|(_, event, attempt)| !waits(*event, *attempt)) {
            self.assigning.timeouts.pop_front();
        }
    }

    fn count_built(&mut self, sfi: usize, complete: bool) {
        let sfi = &mut self.sfis[sfi];
        *if complete { &mut sfi.complete } else { &mut sfi.incomplete } += 1;
        *self.counters.built(complete) += 1;
    }

    /// Fates come from the SFI that served the event, or from an EFD whose SFI is gone.
    fn on_finished(&mut self, now: Time, from: NodeId, fates: &[Finish], out: &mut Outbox) {
        if let Some(sfi) = self.sfis.iter_mut().find(|sfi| sfi.node == from) {
            sfi.finished += fates.len() as u64;
        }
        for finish in fates {
            if !self.finish(now, finish, out) {
                self.counters.finished_twice += 1;
            }
            if let Some(recovery) = &mut self.returning.recovery {
                recovery.has_seen(finish.event);
            }
        }
    }

    /// Whether it is news what became of the event.
    fn finish(&mut self, now: Time, finish: &Finish, out: &mut Outbox) -> bool {
        let Finish { event, complete, .. } = *finish;
        let counted = self.cleared.remove(event).or_else(|| self.orphans.finish(event));
        let was_cleared = counted.is_some();
        let counted = counted.map(|granted| (granted.complete, granted.grounds)).or_else(|| {
            let open = self.open.remove(event)?;
            // If it had been granted and its SFI was lost, it was to be built again when its first fate came after all.
            let built = open.built().map(|granted| granted.complete);
            Some((built.unwrap_or_else(|| self.count_built_before(complete)), open.event.grounds))
        });
        let is_news = match counted {
            Some((counted, grounds)) => {
                // The event filter did not always have the copy that was built last.
                *self.counters.built(counted) -= 1;
                *self.counters.built(complete) += 1;
                self.close_built(&Finish { grounds, ..*finish });
                true
            }
            None => self.close_unseen(finish),
        };
        // Of an event that no life here knew, the clear may have died with a former one.
        if is_news && !was_cleared {
            self.clear(now, event, out);
        }
        is_news
    }

    /// Counts an event that a lost SFI had built as built after all.
    fn count_built_before(&mut self, complete: bool) -> bool {
        *self.counters.built(complete) += 1;
        complete
    }

    fn clear(&mut self, now: Time, event: EventId, out: &mut Outbox) {
        if self.clears.add(now, event) {
            self.flush_clears(now, false, out);
        }
    }

    fn flush_clears(&mut self, now: Time, last: bool, out: &mut Outbox) {
        let oldest_valid = self.oldest_valid();
        self.counters.clear_groups += 1;
        self.outgoing.clears.push(self.clears.flush(now, oldest_valid, last));
        if last {
            self.send_clears(out);
        }
        self.tell_next_daemon(out);
        if let DfmInput::Level1(level1) = self.parameters.input {
            self.tell_ledger(level1, out);
            out.send(level1, Message::FinishedBelow(self.oldest_unfinished()));
        }
    }

    fn send_clears(&mut self, out: &mut Outbox) {
        self.outgoing.clears.drain(..).for_each(|group| out.multicast_to_readout(group));
    }

    fn on_clear_ask(&mut self, from: NodeId, missed: MissedClears, out: &mut Outbox) {
        for group in self.clears.repeat(missed) {
            self.counters.clears_repeated += 1;
            out.send(from, group);
        }
    }

    /// The oldest event that anybody can still ask for. A supervisor that cannot be reached may hold events, or get new
    /// ones before it is back here. It counts with what it said last.
    fn oldest_valid(&self) -> EventId {
        if self.closed {
            return EventId(u64::MAX);
        }
        let undecided = self.supervisors.iter().filter(|s| !s.gone).map(|s| s.oldest_undecided).min();
        let to_come = undecided.unwrap_or(self.own.next_event);
        self.open.first().map_or(to_come, |event| to_come.min(event))
    }

    /// The oldest event whose fate is not known, or that was accepted and may be told again. Its supervisor may die with this life. The
    /// next ones take an event below that for rejected, if nobody tells it again.
    fn oldest_unfinished(&self) -> EventId {
        let oldest_valid = self.oldest_valid();
        let unsettled = self.supervisors.iter().filter_map(|supervisor| supervisor.remembered.oldest_accepted());
        let unknown = [self.cleared.first(), self.orphans.oldest()];
        unknown.into_iter().flatten().chain(unsettled).fold(oldest_valid, EventId::min)
    }

    fn update_busy(&mut self, now: Time, out: &mut Outbox) {
        let waits = !self.assigning.queue.is_empty() && !self.has_room();
        if self.pressure.waits.replace(waits) != Some(waits) {
            for sfi in &self.sfis {
                self.pressure.blocked.set(now, sfi.node, BlockCause::NoSfi, waits && sfi.reachable);
            }
        }
        let limit = self.parameters.queue;
        let busy = if self.pressure.is_busy {
            self.assigning.queue.len() > limit / 2
        } else {
            self.assigning.queue.len() > limit
        };
        if busy != self.pressure.is_busy {
            self.pressure.is_busy = busy;
            self.tell_busy(out);
            self.acknowledge(out);
        }
    }

    fn tell_busy(&self, out: &mut Outbox) {
        if let DfmInput::Level2 { level1, .. } | DfmInput::Level1(level1) = self.parameters.input {
            out.send(level1, Message::Busy { cause: BusyCause::BuildQueue, on: self.pressure.is_busy });
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        let up = matches!(state, PeerState::Up(_));
        if let Some(recovery) = &mut self.returning.recovery {
            recovery.on_peer(node, up);
        }
        self.closed_events.forget_told(node);
        self.on_efd(node, state, out);
        if let Some(index) = self.sfis.iter().position(|sfi| sfi.node == node) {
            self.orphan(index, state, out);
            let sfi = &mut self.sfis[index];
            self.pressure.waits = None;
            sfi.reachable = up;
            sfi.told = !self.parameters.late;
            sfi.gone = state == PeerState::Gone;
            sfi.done = false;
            sfi.busy = false;
            sfi.late = false;
            sfi.building = 0;
            self.outgoing.forget(node);
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
                supervisor.remembered.begin_life();
                supervisor.done = false;
                supervisor.seen = false;
                let is_level2 = matches!(self.parameters.input, DfmInput::Level2 { .. });
                supervisor.asks_taken = is_level2 && self.parameters.supervisors_return;
            }
        }
        let level1 = match self.parameters.input {
            DfmInput::Level2 { level1, .. } | DfmInput::Level1(level1) => Some(level1),
            DfmInput::SelfTrigger { .. } => None,
        };
        if up {
            self.push.on_readout(node, self.oldest_unfinished(), out);
        }
        if up && level1 == Some(node) {
            self.taken.tell(out);
            self.tell_busy(out);
        }
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        self.taken.on_deadline(now, out);
        if self.clears.next_deadline().is_some_and(|due| due <= now) {
            self.flush_clears(now, false, out);
        }
        while let Some((_, event, attempt)) = self.assigning.timeouts.pop_front_if(|(deadline, _, _)| *deadline <= now)
        {
            self.on_timeout(now, event, attempt, out);
        }
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start | Command::Resume => {
                self.clears.start(now);
                self.push.start();
                self.publish(out);
                if let Some(pace) = self.own.pace.as_mut().filter(|_| !self.own.exhausted && !self.ending.is_draining())
                {
                    pace.start(now);
                }
            }
            Command::Pause => self.stop_trigger(),
            Command::Drain => {
                self.ending.drain();
                self.stop_trigger();
                self.assign(now, out);
            }
            Command::Abandon => {
                self.ending.abandon();
                self.stop_trigger();
                self.abandon();
            }
            _ => {}
        }
    }

    fn stop_trigger(&mut self) {
        if let Some(pace) = &mut self.own.pace {
            pace.stop();
        }
    }

    fn abandon(&mut self) {
        self.assigning.queue.clear();
        self.outgoing.builds.clear();
        self.push.clear();
        for (event, open) in core::mem::take(&mut self.open) {
            self.give_up(event, &open);
        }
    }

    /// The last clear group goes out when no event is left that anybody can ask for.
    fn close(&mut self, now: Time, out: &mut Outbox) {
        if self.is_drained() && !self.closed {
            self.closed = true;
            self.flush_clears(now, true, out);
        }
    }

    fn take_input(&mut self, now: Time, input: Input, out: &mut Outbox) {
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
                Message::L1Accept { events, .. } => self.on_l1_accepts(now, from, &events, out),
                Message::IssuedUpTo(event) => self.on_issued_up_to(from, event),
                Message::Forget { up_to, former } => self.on_forget(from, up_to, former),
                Message::NoMore => self.on_no_more(from),
                Message::Held(holdings) => self.on_held(now, from, &holdings, out),
                Message::Orphans { sfi, life, events, finished, last } => {
                    self.finish_orphans(now, &finished, out);
                    self.on_orphans(from, (sfi, life), &events, last, out);
                }
                Message::ClearAsk(missed) => self.on_clear_ask(from, missed, out),
                message => message.passes_no_gate(),
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Deadline => self.on_deadline(now, out),
            Input::Fragment { .. } | Input::Link { .. } | Input::Watch(_) | Input::Done { .. } => {}
        }
    }
}

impl Component for Dfm {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        if self.returning.recovery.is_none() {
            self.take_input(now, input, out);
        } else {
            if let Some(input) = self.hold_back(now, input) {
                self.take_input(now, input, out);
            }
            self.go_on_if_recovered(now, out);
        }
        self.self_trigger(now, out);
        self.close(now, out);
    }

    fn flush(&mut self, _now: Time, out: &mut Outbox) {
        self.tell_taken(out);
        self.outgoing.grants.drain(|sfi, attempts| out.send(sfi, Message::Granted(attempts)));
        self.outgoing.revocations.drain(|sfi, attempts| out.send(sfi, Message::Revoked(attempts)));
        if !self.outgoing.builds.is_empty() {
            let oldest_unfinished = self.oldest_unfinished();
            let mut builds = core::mem::take(&mut self.outgoing.builds);
            builds.drain(|sfi, events| {
                self.tell_ledger(sfi, out);
                out.send(sfi, Message::Build { events, oldest_unfinished });
            });
            self.outgoing.builds = builds;
        }
        self.push.flush(out);
        // Behind the grants: where builders let go of their data first, a read-out system gets all its pages back at once.
        self.send_clears(out);
    }

    fn next_deadline(&self) -> Option<Time> {
        let offer =
            self.own.pace.as_ref().and_then(Pace::next).filter(|_| self.assigning.queue.is_empty() && self.has_room());
        let offer = offer.filter(|_| self.returning.recovery.is_none());
        let recovery = self.returning.recovery.as_ref().and_then(Recovery::deadline);
        let timeout = self.assigning.timeouts.front().map(|(deadline, _, _)| *deadline);
        [offer, timeout, recovery, self.clears.next_deadline(), self.taken.next_deadline()].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        let is_idle = self.open.is_empty() && self.returning.recovery.is_none();
        self.ending.is_draining() && is_idle && (self.ending.is_abandoned() || self.sources_are_done())
    }

    fn is_settled(&self) -> bool {
        // A builder that had told all is given events again where a DFM returns at the end.
        let unfinished = self.open.len() + self.cleared.len() + self.orphans.len();
        let are_told =
            self.sfis.iter().all(|sfi| sfi.done || sfi.gone) && unfinished == 0 && self.returning.recovery.is_none();
        !self.ending.is_draining() || self.ending.is_abandoned() || are_told
    }

    fn report(&self, now: Time) -> Report {
        let supervisors = self.supervisors.iter().map(|s| PeerCount { node: s.node, counts: s.taken });
        let sfis = self.sfis.iter().map(|s| PeerCount { node: s.node, counts: [s.complete, s.incomplete, s.finished] });
        Report {
            peers: supervisors.chain(sfis).collect(),
            blocked: self.pressure.blocked.read(now),
            latency_ns: self.latency_ns.clone(),
            ..Report::of(Role::Dfm, self.counters.to_values())
        }
    }

    fn check(&self) {
        let c = &self.counters;
        let built = c.built_complete + c.built_incomplete;
        let granted = self.open.values().filter(|open| matches!(open.state, BuildState::Granted { .. })).count();
        let unbuilt = (self.open.len() - granted) as u64;
        assert_eq!(c.taken_accepted, built + c.not_built + unbuilt, "every accepted event open, built or given up");
        let finished = c.rejected + c.accepted + c.debug + c.unrecorded + c.abandoned;
        let in_hand = granted + self.cleared.len() + self.orphans.len();
        assert_eq!(built, finished + c.lost_built + in_hand as u64, "every built event finished, lost or in hand");
        let open = self.open.values().map(|open| open.event.grounds);
        let granted = self.cleared.iter().chain(self.orphans.iter()).map(|(_, granted)| granted.grounds);
        self.closed_events.check(c, open.chain(granted));
        for (index, sfi) in self.sfis.iter().enumerate() {
            assert!(sfi.building <= self.parameters.building, "SFI {index} within its bound");
        }
    }
}
