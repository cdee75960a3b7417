//! The sub-farm input: builds events by pulling `[EB2007 §II-B.2–3]`, after what is pushed `[ATM1997 §II]`, and serves them to
//! the event filter.

mod asking;
mod lives;
mod parameters;
mod requests;
mod sources;

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::building::ahead::Pushed;
use crate::building::asked::Asked;
use crate::building::collected::{Collected, EventData};
use crate::building::held::{Building, Efd, Phase, Taken, Timeout};
use crate::building::pushed::Intake;
use crate::component::{Component, Input, Note, Outbox, PeerState};
use crate::ending::Ending;
use crate::groups::Groups;
use crate::ledger::Finish;
use crate::message::{Assignment, Attempt, Command, DataReply, Ended, EventInfo, Fate, Message, UNASKED};
use crate::readout::showing::show;
use crate::report::{BlockCause, BlockedClock, Counters, Report, SfiCounters};
use asking::Asking;
use base::bulk::{Bulk, BulkParts};
use base::event_manager::EventManager;
use base::ids::{EventId, NodeId, Role};
use base::sampling::Sampler;
use base::time::Time;
use lives::History;
use sources::Sources;

pub use parameters::{Patience, RequestOrder, SfiParameters, Source};

/// An event builder.
///
/// Bounds: at most `events` events are held, because the DFM assigns at most `building` more when this SFI says busy at
/// `events - building`. At most `outstanding_requests` (event, source) pairs are being asked; each may have one reply
/// in flight per try, `retries + 1` in all. The byte credits of its source bound pushed data.
///
/// Push is pull whose first request is not needed: the SFI asks for data that do not come in time.
pub struct Sfi {
    parameters: SfiParameters,
    events: EventManager<Box<Building>>,
    /// Of these, events that are in building.
    building: usize,
    /// Finished with, to be used again: their lists keep their memory.
    #[expect(clippy::vec_box, reason = "they come and go as one pointer")]
    spare: Vec<Box<Building>>,
    asking: Asking,
    collected: Collected,
    intake: Option<Intake>,
    /// Events that ended in this pass.
    ended: Groups<Ended>,
    service: Service,
    sources: Sources,
    history: History,
    /// What became of events, not told yet.
    fates: Fates,
    dfm: DfmLink,
    busy: bool,
    ending: Ending,
    blocked: BlockedClock,
    sampler: Sampler,
    counters: SfiCounters,
}

/// Of what is built, and for whom.
#[derive(Default)]
struct Service {
    /// Granted, waiting for an EFD, in order of service.
    ready: VecDeque<EventId>,
    /// Events that are not served, where they are served in order.
    unserved: BTreeSet<EventId>,
    efds: Vec<Efd>,
    turn: usize,
}

/// What became of events and the DFM was not told yet.
#[derive(Default)]
struct Fates {
    of: Vec<Finish>,
    /// When the first of them has waited long enough for others.
    due: Option<Time>,
}

/// The DFM as this builder sees it.
#[derive(Default)]
struct DfmLink {
    is_up: bool,
    is_gone: bool,
    /// It knows that nothing follows.
    was_told_all: bool,
}

impl Sfi {
    /// A builder without events.
    ///
    /// # Panics
    /// If it may build more events than it can hold, or ask more often than can be numbered.
    pub fn new(parameters: SfiParameters) -> Self {
        assert!(parameters.building <= parameters.events, "room for every event in building");
        assert!(parameters.retries < u32::from(u16::MAX), "tries have numbers of 16 bits");
        let efds = parameters.efds.iter().map(|&node| Efd { node, gone: false, pulls: 0 }).collect();
        let sources = parameters.sources.iter().map(|source| source.node);
        let intake = parameters.push.as_ref().map(|push| Intake::new(push, sources));
        Self {
            events: EventManager::new(parameters.events),
            building: 0,
            spare: Vec::new(),
            asking: Asking::new(&parameters),
            collected: Collected::new(parameters.collected),
            intake,
            ended: Groups::default(),
            service: Service { efds, ..Service::default() },
            sources: Sources::new(&parameters),
            history: History::default(),
            fates: Fates::default(),
            dfm: DfmLink::default(),
            busy: false,
            ending: Ending::NotYet,
            blocked: BlockedClock::default(),
            sampler: Sampler::new(parameters.sampling),
            counters: SfiCounters::default(),
            parameters,
        }
    }

    fn on_build(&mut self, now: Time, events: &[Assignment], oldest: EventId, out: &mut Outbox) {
        // An event to build is not finished, whatever bound the message names.
        let Some(first) = events.iter().map(|assigned| assigned.event.event).min() else { return };
        let oldest = oldest.min(first);
        for assigned in events {
            self.take(now, assigned, oldest, out);
        }
        self.history.forget_below(oldest);
        if let Some(intake) = &mut self.intake {
            self.counters.pushed_dropped += intake.finish_below(oldest);
        }
        self.ask(now, out);
    }

    fn take(&mut self, now: Time, assigned: &Assignment, oldest: EventId, out: &mut Outbox) {
        let Assignment { event, attempt, has_result } = *assigned;
        self.history.given(event.event);
        self.counters.assigned += 1;
        if self.ending.is_abandoned() {
            self.counters.revoked += 1;
            return;
        }
        if let Some(held) = self.events.find_mut(event.event).filter(|held| held.is_granted()) {
            // The DFM lost sight of this SFI and wants an event built again that is built and still here.
            held.attempt = attempt;
            let missing = held.missing.len() as u32;
            self.end(Ended { event: event.event, attempt, missing }, out);
            return;
        }
        let older = self.remove(event.event);
        if older.is_some() || attempt != FIRST_ATTEMPT {
            // It may have kept its place since it was here before.
            self.asking.to_ask.retain(|waiting| *waiting != event.event);
        }
        if let Some(older) = older {
            // Its first SFI and now this one again: the end of the older attempt gives the DFM its credit back.
            if older.phase == Phase::Collecting {
                let missing = older.missing.len() as u32;
                self.end(Ended { event: event.event, attempt: older.attempt, missing }, out);
            }
            self.asking.credits.come_home(older.awaited);
            self.counters.revoked += 1;
            self.reuse(older);
        }
        if self.events.free() == 0 {
            // More than the DFM may assign: it will do so elsewhere in time.
            if self.counters.beyond_room == 0 {
                out.note(Note::AssignedBeyondRoom(event.event));
            }
            self.counters.beyond_room += 1;
            self.counters.revoked += 1;
            return;
        }
        let mut building = self.begin(event, attempt, has_result, oldest);
        if self.intake.is_some() {
            self.take_ahead(now, &mut building);
        }
        let (asks, waits) = (!building.to_ask.is_empty(), building.waits());
        let fresh = self.events.insert(event.event, building).is_ok();
        assert!(fresh, "there is room, and the event is not held");
        self.building += 1;
        if self.parameters.in_order {
            self.service.unserved.insert(event.event);
        }
        if asks {
            self.asking.to_ask.push_back(event.event);
        }
        if !waits {
            self.end_if_collected(event.event, out);
        }
    }

    /// What was pushed of an event before it was assigned; the rest is waited for.
    fn take_ahead(&mut self, now: Time, building: &mut Building) {
        let Some(intake) = &mut self.intake else { return };
        let event = building.event.event;
        let mut ahead = intake.take_ahead(event);
        for part in ahead.drain(..) {
            let taken = building.take_pushed(part, self.parameters.event_bytes_max, &mut self.asking.asked);
            self.counters.pushed_ahead += u64::from(matches!(taken, Taken::Used { .. }));
            self.count_pushed(taken);
        }
        let Some(intake) = &mut self.intake else { return };
        intake.reuse(ahead);
        if building.attempt == FIRST_ATTEMPT && building.unpushed > 0 {
            intake.expect(now, event, building.attempt);
        }
    }

    /// An event with all sources to be asked, but for those that push.
    fn begin(&mut self, event: EventInfo, attempt: u16, has_result: bool, oldest: EventId) -> Box<Building> {
        // Without a spare one, those with lower numbers are all held.
        let number = self.events.len();
        let mut building = self.spare.pop().unwrap_or_else(|| Box::new(Building::numbered(number)));
        self.asking.asked.begin(building.number);
        let collected = self.collected(event.event, oldest);
        let sources = &self.parameters.sources;
        match self.parameters.request_order {
            RequestOrder::Random => self.asking.random.shuffle(&mut self.asking.order),
            RequestOrder::Rotating => {
                let step = 1.min(self.asking.order.len());
                self.asking.order.rotate_left(step);
            }
        }
        let is_pushed = self.intake.is_some() && attempt == FIRST_ATTEMPT;
        let held = &mut *building;
        let asks_all = !is_pushed && (has_result || self.sources.with_data == sources.len());
        if asks_all {
            held.to_ask.extend_from_slice(&self.asking.order);
        }
        for &source in self.asking.order.iter().filter(|_| !asks_all) {
            let index = usize::from(source);
            if is_pushed && !sources[index].results && !self.sources.gone[index] {
                self.asking.asked.at_mut(held.number, index).unpushed = true;
                held.unpushed += 1;
            } else if has_result || !sources[index].results {
                held.to_ask.push(source);
            }
        }
        (held.event, held.attempt, held.has_result) = (event, attempt, has_result);
        (held.oldest_unfinished, held.phase) = (oldest, Phase::Collecting);
        if let Some(EventData { robs, bulk }) = collected {
            held.len_bytes = bulk.len();
            held.collected = robs;
            held.parts.push(bulk);
        }
        building
    }

    /// Takes an event out of the books.
    fn remove(&mut self, event: EventId) -> Option<Box<Building>> {
        let removed = self.events.remove(event)?;
        self.building -= usize::from(removed.phase == Phase::Collecting);
        if self.parameters.in_order {
            self.service.unserved.remove(&event);
        }
        Some(removed)
    }

    /// Lets go of the data; the memory of the lists is for the next event.
    fn reuse(&mut self, mut building: Box<Building>) {
        let held = &mut *building;
        held.to_ask.clear();
        held.named.clear();
        held.collected.clear();
        held.parts.clear();
        held.missing.clear();
        held.forget_times();
        if held.awaited > 0 || held.unpushed > 0 {
            self.asking.asked.forget(held.number);
        }
        (held.awaited, held.unpushed, held.len_bytes) = (0, 0, 0);
        self.spare.push(building);
    }

    #[inline]
    fn count_pushed(&mut self, taken: Taken) {
        match taken {
            Taken::Used { asked } => {
                self.asking.credits.come_home(usize::from(asked));
                self.counters.pushed += 1;
            }
            Taken::ToAsk => self.counters.pushed_late += 1,
            Taken::Not => self.counters.pushed_dropped += 1,
        }
    }

    /// What level 2 has collected of an event.
    fn collected(&mut self, event: EventId, oldest: EventId) -> Option<EventData> {
        let most = self.parameters.event_bytes_max;
        let found = self.collected.take(event);
        self.counters.collected_dropped += self.collected.drop_older_than(oldest);
        let (used, too_large) = found
            .map_or((None, None), |part| if part.bulk.len() <= most { (Some(part), None) } else { (None, Some(part)) });
        self.counters.collected_used += u64::from(used.is_some());
        self.counters.collected_dropped += u64::from(too_large.is_some());
        used
    }

    fn on_collected(&mut self, event: EventId, part: EventData) {
        let is_late = self.events.contains(event) || self.ending.is_draining();
        self.counters.collected_dropped += if is_late { 1 } else { self.collected.keep(event, part) };
    }

    fn end(&mut self, ended: Ended, out: &mut Outbox) {
        if let Some(group) = self.ended.add(self.parameters.dfm, ended, 1) {
            out.send(self.parameters.dfm, Message::EndOfEvent(group));
        }
    }

    fn on_replies(
        &mut self,
        now: Time,
        from: NodeId,
        pushed: u64,
        replies: Vec<DataReply>,
        bulk: Bulk,
        out: &mut Outbox,
    ) {
        let Some(source) = self.sources.by_node.get(usize::from(from.0)).copied().flatten() else { return };
        if let Some(intake) = &mut self.intake {
            intake.on_pushed(usize::from(source), pushed);
        }
        let mut parts = BulkParts::new(bulk);
        for reply in replies {
            let part = parts.take(reply.len_bytes as usize);
            if reply.request == UNASKED {
                self.on_unasked(source, reply, part, out);
            } else {
                self.on_reply(now, source, reply, part, out);
            }
        }
        self.forget_answered();
        self.ask(now, out);
    }

    fn on_unasked(&mut self, source: u16, reply: DataReply, bulk: Bulk, out: &mut Outbox) {
        let part = Pushed { source, missing: reply.missing, bulk };
        if let Some(building) = self.events.find_mut(reply.event) {
            let taken = building.take_pushed(part, self.parameters.event_bytes_max, &mut self.asking.asked);
            let waits = building.waits();
            self.count_pushed(taken);
            if taken == Taken::ToAsk {
                self.asking.queue(reply.event);
            } else if !waits {
                self.end_if_collected(reply.event, out);
            }
            return;
        }
        match &mut self.intake {
            Some(intake) if !self.ending.is_draining() => {
                self.counters.pushed_dropped += intake.keep(reply.event, part);
            }
            _ => self.counters.pushed_dropped += 1,
        }
    }

    fn on_reply(&mut self, now: Time, source: u16, reply: DataReply, bulk: Bulk, out: &mut Outbox) {
        let DataReply { event, attempt, request, missing, .. } = reply;
        let Some(building) = self.events.find_mut(event).filter(|building| building.attempt == attempt) else {
            self.counters.late_replies += 1;
            return;
        };
        // Its fields are borrowed one by one, which a box does not allow.
        let building: &mut Building = building;
        let asked = self.asking.asked.at_mut(building.number, usize::from(source));
        if !asked.awaits(request) {
            self.counters.late_replies += 1;
            return;
        }
        let len_bytes = bulk.len();
        if building.len_bytes + len_bytes > self.parameters.event_bytes_max {
            // There is no room for it: its ROBs are missing, as if they had been lost.
            self.counters.oversized += 1;
            self.give_up(event, source);
            return self.end_if_collected(event, out);
        }
        if len_bytes > 0 {
            building.len_bytes += len_bytes;
            building.parts.push(bulk);
        }
        if !missing.is_empty() {
            let of = |lost: bool| missing.iter().filter(move |missing| missing.lost == lost).map(|missing| missing.rob);
            building.missing.extend(of(true));
            let to_come: Vec<u32> = of(false).collect();
            if !to_come.is_empty() {
                building.name(source, to_come);
                asked.valid_from = asked.serial + 1;
                self.ask_again(now, event, source, out);
                return self.end_if_collected(event, out);
            }
        }
        if asked.serial == 1 {
            self.asking.credits.on_reply(now, asked.sent);
        }
        building.answered(source, asked);
        self.asking.credits.come_home(1);
        if !building.waits() {
            self.end_if_collected(event, out);
        }
    }

    /// Asks once more for what is missing, or gives it up.
    fn ask_again(&mut self, now: Time, event: EventId, source: u16, out: &mut Outbox) {
        let building = self.events.find_mut(event).expect("the event is held");
        let asked = self.asking.asked.at_mut(building.number, usize::from(source));
        if u32::from(asked.serial) <= self.parameters.retries {
            self.counters.reasks += 1;
            self.asking.credits.on_reask(now, asked.sent);
            self.send_request(now, event, source, out);
        } else {
            self.give_up(event, source);
        }
    }

    /// The credit comes home whether data came or not.
    fn give_up(&mut self, event: EventId, source: u16) {
        let building: &mut Building = self.events.find_mut(event).expect("the event is held");
        let all = &self.parameters.sources[usize::from(source)].robs;
        let named = building.named.iter().find(|(of, _)| *of == source).map(|(_, robs)| robs);
        building.missing.extend_from_slice(named.unwrap_or(all));
        building.answered(source, self.asking.asked.at_mut(building.number, usize::from(source)));
        self.asking.credits.come_home(1);
    }

    fn end_if_collected(&mut self, event: EventId, out: &mut Outbox) {
        let building = self.events.find_mut(event).expect("the event is held");
        if building.phase != Phase::Collecting || building.waits() {
            return;
        }
        building.phase = Phase::Ended;
        building.missing.sort_unstable();
        let (attempt, missing) = (building.attempt, building.missing.len() as u32);
        self.building -= 1;
        // Busy goes ahead of the end of event, so that the DFM does not fill the place it sees.
        self.update_busy(out);
        self.end(Ended { event, attempt, missing }, out);
    }

    fn on_granted(&mut self, now: Time, Attempt { event, attempt }: Attempt, out: &mut Outbox) {
        let current = |b: &&mut Box<Building>| b.attempt == attempt && b.phase == Phase::Ended;
        let Some(building) = self.events.find_mut(event).filter(current) else {
            return;
        };
        building.phase = Phase::Ready;
        self.counters.bytes_built += building.len_bytes as u64;
        self.counters.missing_robs += building.missing.len() as u64;
        if building.missing.is_empty() {
            self.counters.built_complete += 1;
        } else {
            self.counters.built_incomplete += 1;
        }
        let EventInfo { trigger_type, items, .. } = building.event;
        let viewers = self.sampler.takes(event, trigger_type, items, building.len_bytes);
        if viewers.any() {
            show(viewers, building.sample(), out);
        }
        if self.service.efds.is_empty() {
            return self.finish(now, event, Fate::Accepted, None, out);
        }
        self.service.ready.push_back(event);
        self.serve(now, out);
        self.update_busy(out);
    }

    fn on_revoked(&mut self, now: Time, Attempt { event, attempt }: Attempt, out: &mut Outbox) {
        let current = |b: &Building| b.attempt == attempt && b.phase == Phase::Ended;
        if self.events.find(event).is_some_and(|building| current(building)) {
            let revoked = self.remove(event).expect("the event is held");
            self.reuse(revoked);
            self.counters.revoked += 1;
            self.serve(now, out);
            self.update_busy(out);
        }
    }

    /// Gives events to EFDs that asked.
    fn serve(&mut self, now: Time, out: &mut Outbox) {
        while let Some(event) = self.next_to_serve() {
            let Some(efd) = self.next_pull() else { break };
            if self.service.ready.front() == Some(&event) {
                self.service.ready.pop_front();
            } else {
                self.service.ready.retain(|ready| *ready != event);
            }
            self.service.efds[efd].pulls -= 1;
            self.counters.served += 1;
            let building = self.events.find_mut(event).expect("an event that is ready is held");
            building.phase = Phase::Served(efd);
            self.service.unserved.remove(&event);
            out.send(self.service.efds[efd].node, Message::BuiltEvent(building.built_event()));
        }
        let waits = !self.service.ready.is_empty();
        for efd in &self.service.efds {
            self.blocked.set(now, efd.node, BlockCause::NoPull, waits && efd.pulls == 0 && !efd.gone);
        }
        if self.service.efds.iter().all(|efd| efd.gone) {
            while let Some(event) = self.service.ready.pop_front() {
                self.finish(now, event, Fate::Abandoned, None, out);
            }
        }
    }

    /// The event that has waited longest; in order of events, only one that no earlier event can precede.
    fn next_to_serve(&self) -> Option<EventId> {
        if !self.parameters.in_order {
            return self.service.ready.front().copied();
        }
        let event = *self.service.unserved.first()?;
        let building = self.events.find(event).expect("an event that is not served is held");
        (building.phase == Phase::Ready).then_some(event)
    }

    fn next_pull(&mut self) -> Option<usize> {
        let count = self.service.efds.len();
        let chosen =
            (0..count).map(|step| (self.service.turn + step) % count).find(|&efd| self.service.efds[efd].pulls > 0)?;
        self.service.turn = (chosen + 1) % count;
        Some(chosen)
    }

    fn on_pull(&mut self, now: Time, from: NodeId, count: u32, out: &mut Outbox) {
        if let Some(efd) = self.service.efds.iter_mut().find(|efd| efd.node == from) {
            efd.pulls = efd.pulls.saturating_add(count);
            self.serve(now, out);
        }
    }

    fn on_finished(&mut self, now: Time, from: NodeId, fates: &[Finish], out: &mut Outbox) {
        for &Finish { event, fate, complete, .. } in fates {
            let served_by = |efd: usize| self.service.efds[efd].node == from;
            let phase = self.events.find(event).map(|building| building.phase);
            if matches!(phase, Some(Phase::Served(efd)) if served_by(efd)) {
                self.finish(now, event, fate, Some(complete), out);
            }
        }
        self.serve(now, out);
    }

    /// An event filter may have had another copy, which was complete or not.
    fn finish(&mut self, now: Time, event: EventId, fate: Fate, complete: Option<bool>, out: &mut Outbox) {
        let finished = self.remove(event).expect("an event to finish is held");
        let complete = complete.unwrap_or(finished.missing.is_empty());
        let grounds = finished.event.grounds;
        self.reuse(finished);
        *match fate {
            Fate::Rejected => &mut self.counters.rejected,
            Fate::Accepted => &mut self.counters.accepted,
            Fate::Debug => &mut self.counters.debug,
            Fate::Unrecorded => &mut self.counters.unrecorded,
            Fate::Abandoned => &mut self.counters.abandoned,
        } += 1;
        let finish = Finish { event, fate, complete, grounds };
        self.fates.of.push(finish);
        self.history.finished(finish);
        if self.fates.of.len() >= FINISHED_GROUP || self.ending.is_draining() {
            self.tell_finished(out);
        } else {
            self.fates.due.get_or_insert(now + FINISHED_AGE);
        }
        self.update_busy(out);
    }

    fn tell_finished(&mut self, out: &mut Outbox) {
        self.fates.due = None;
        if self.dfm.is_up && !self.fates.of.is_empty() {
            out.send(self.parameters.dfm, Message::Finished(core::mem::take(&mut self.fates.of)));
        }
    }

    /// Busy with `events - building` events that are not in building any more: then all that the DFM may have assigned
    /// by now still fits.
    fn update_busy(&mut self, out: &mut Outbox) {
        let limit = (self.parameters.events - self.parameters.building).max(1);
        let held = self.events.len();
        if !self.busy && held < limit {
            return;
        }
        let kept = held - self.building;
        let busy = if self.busy { kept > limit / 2 } else { kept >= limit };
        if busy != self.busy {
            self.busy = busy;
            out.send(self.parameters.dfm, Message::SfiBusy(busy));
        }
    }

    fn on_timeout(&mut self, now: Time, timeout: &Timeout, out: &mut Outbox) {
        let late = self.late(timeout);
        for &source in &late {
            let waits = match self.parameters.sources[usize::from(source)].patience {
                Patience::Tries => false,
                Patience::WhileAway => self.sources.away[usize::from(source)],
                Patience::Always => true,
            };
            if waits {
                // It has not said that it has nothing: that is no other try.
                self.send_try(now, timeout.event, source, out);
            } else {
                self.ask_again(now, timeout.event, source, out);
            }
        }
        if !late.is_empty() {
            self.end_if_collected(timeout.event, out);
            self.ask(now, out);
        }
    }

    /// The sources that a time-out is for, in the order of requests.
    fn late(&mut self, timeout: &Timeout) -> Vec<u16> {
        let building = self.events.find_mut(timeout.event).filter(|b| b.attempt == timeout.attempt);
        let request_timeout = self.parameters.request_timeout;
        building.map_or_else(Vec::new, |b| {
            b.take_late(&self.asking.order, request_timeout, timeout.deadline, &self.asking.asked)
        })
    }

    /// Whether requests may still be unanswered that a time-out is for.
    fn is_awaited(&self, timeout: &Timeout) -> bool {
        self.events.find(timeout.event).is_some_and(|b| b.attempt == timeout.attempt && b.awaited > 0)
    }

    /// Time-outs of answered requests go as they come to the front, so that they do not pile up until their time.
    fn forget_answered(&mut self) {
        while self.asking.timeouts.front().is_some_and(|timeout| !self.is_awaited(timeout)) {
            self.asking.timeouts.pop_front();
        }
        if let Some(intake) = &mut self.intake {
            let waits = |b: &Building, attempt| b.attempt == attempt && b.unpushed > 0;
            intake.forget(|event, attempt| self.events.find(event).is_some_and(|b| waits(b, attempt)));
        }
    }

    /// Sources that have not pushed in time are asked.
    fn ask_late(&mut self, now: Time, out: &mut Outbox) {
        while let Some((event, attempt)) = self.intake.as_mut().and_then(|intake| intake.pop_timeout(now)) {
            let Some(building) = self.events.find_mut(event).filter(|b| b.attempt == attempt) else { continue };
            if building.unpushed == 0 {
                continue;
            }
            self.counters.pushed_late += building.unpushed as u64;
            building.ask_unpushed(&self.asking.order, &mut self.asking.asked);
            self.asking.queue(event);
        }
        self.ask(now, out);
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        while let Some(timeout) = self.asking.timeouts.pop_front_if(|timeout| timeout.deadline <= now) {
            self.on_timeout(now, &timeout, out);
        }
        if self.intake.is_some() {
            self.ask_late(now, out);
        }
        self.give_up_overdue(now, out);
        if self.fates.due.is_some_and(|due| due <= now) {
            self.tell_finished(out);
        }
    }

    fn on_peer(&mut self, now: Time, node: NodeId, state: PeerState, out: &mut Outbox) {
        let gone = state == PeerState::Gone;
        if let Some(source) = self.parameters.sources.iter().position(|source| source.node == node) {
            self.on_source(now, source, state, out);
        }
        if let Some(efd) = self.service.efds.iter().position(|efd| efd.node == node) {
            self.service.efds[efd].gone = gone;
            self.service.efds[efd].pulls = 0;
            self.take_back(efd);
            self.serve(now, out);
        }
        if node == self.parameters.dfm {
            self.on_dfm(now, state, out);
        }
    }

    /// The events for which something holds, by number.
    fn in_order(&self, which: impl Fn(&Building) -> bool) -> Vec<EventId> {
        let mut events: Vec<EventId> =
            self.events.iter().filter(|(_, building)| which(building)).map(|(event, _)| event).collect();
        events.sort_unstable();
        events
    }

    /// Events of an EFD that was lost are served again, before the others.
    fn take_back(&mut self, lost: usize) {
        for event in self.in_order(|building| building.phase == Phase::Served(lost)).into_iter().rev() {
            self.events.find_mut(event).expect("the event is held").phase = Phase::Ready;
            self.service.ready.push_front(event);
            self.counters.served_again += 1;
            if self.parameters.in_order {
                self.service.unserved.insert(event);
            }
        }
    }

    fn on_command(&mut self, now: Time, command: Command, out: &mut Outbox) {
        match command {
            Command::Start => self.wait_for_sources(now),
            Command::Drain => {
                self.ending.drain();
                self.counters.collected_dropped += self.collected.clear();
                self.counters.pushed_dropped += self.intake.as_mut().map_or(0, Intake::clear);
                self.tell_finished(out);
                self.serve(now, out);
            }
            Command::Abandon => {
                self.ending.abandon();
                self.abandon(now, out);
            }
            Command::Sample => self.sampler.ask(),
            _ => {}
        }
    }

    /// Granted events count as abandoned; the others are the DFM's to count.
    fn abandon(&mut self, now: Time, out: &mut Outbox) {
        self.drop_ungranted();
        self.counters.collected_dropped += self.collected.clear();
        self.counters.pushed_dropped += self.intake.as_mut().map_or(0, Intake::clear);
        self.service.ready.clear();
        for event in self.in_order(|_| true) {
            self.finish(now, event, Fate::Abandoned, None, out);
        }
        self.tell_finished(out);
    }
}

impl Component for Sfi {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message } => match message {
                Message::EventReply { pushed, replies, bulk } => {
                    self.on_replies(now, from, pushed, replies, bulk, out);
                }
                Message::Build { events, oldest_unfinished } => self.on_build(now, &events, oldest_unfinished, out),
                Message::Collected { event, robs, bulk } => self.on_collected(event, EventData { robs, bulk }),
                Message::Granted(attempts) => attempts.iter().for_each(|&attempt| self.on_granted(now, attempt, out)),
                Message::Revoked(attempts) => attempts.iter().for_each(|&attempt| self.on_revoked(now, attempt, out)),
                Message::Pull(count) => self.on_pull(now, from, count, out),
                Message::Finished(fates) => self.on_finished(now, from, &fates, out),
                Message::Ledger(ledger) => self.history.on_ledger(&ledger),
                message => message.passes_no_gate(),
            },
            Input::Peer { node, state } => self.on_peer(now, node, state, out),
            Input::Command(command) => self.on_command(now, command, out),
            Input::Deadline => self.on_deadline(now, out),
            Input::Watch(rule) => self.sampler.watch(rule),
            Input::Fragment { .. } | Input::Link { .. } | Input::Done { .. } => {}
        }
        if self.is_drained() && self.dfm.is_up && !self.dfm.was_told_all {
            self.dfm.was_told_all = true;
            out.send(self.parameters.dfm, Message::NoMore);
        }
    }

    fn flush(&mut self, _now: Time, out: &mut Outbox) {
        if let Some(intake) = &mut self.intake {
            intake.flush(out);
        }
        self.asking.requests.flush(out);
        self.ended.drain(|dfm, ended| out.send(dfm, Message::EndOfEvent(ended)));
    }

    fn next_deadline(&self) -> Option<Time> {
        let timeout = self.asking.timeouts.front().map(|timeout| timeout.deadline);
        let pushed = self.intake.as_ref().and_then(Intake::next_deadline);
        [timeout, self.fates.due, pushed, self.sources.next_deadline()].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.ending.is_draining() && self.events.is_empty() && (self.fates.of.is_empty() || self.dfm.is_gone)
    }

    fn report(&self, now: Time) -> Report {
        let counters = SfiCounters { samples: self.sampler.given, samples_lost: self.sampler.lost, ..self.counters };
        Report { blocked: self.blocked.read(now), ..Report::of(Role::Sfi, counters.to_values()) }
    }

    fn check(&self) {
        let asked: usize = self.events.iter().map(|(_, building)| building.awaited).sum();
        assert_eq!(self.asking.credits.outstanding(), asked, "every request credit is out or home");
        self.asking.credits.check();
        self.intake.iter().for_each(Intake::check);
        assert!(self.events.len() <= self.parameters.events, "events within their bound");
        self.collected.check();
        let queued: BTreeSet<&EventId> = self.asking.to_ask.iter().collect();
        assert_eq!(queued.len(), self.asking.to_ask.len(), "an event has one place among those to be asked for");
        let in_phase = |is: fn(&Building) -> bool| self.events.iter().filter(|(_, building)| is(building)).count();
        assert_eq!(self.building, in_phase(|b| b.phase == Phase::Collecting), "events in building");
        let count =
            |b: &Building, is: fn(&Asked) -> bool| self.asking.asked.of(b.number).filter(|asked| is(asked)).count();
        let numbers: BTreeSet<usize> = self.events.iter().map(|(_, building)| building.number).collect();
        assert_eq!(numbers.len(), self.events.len(), "every event has a number of its own");
        let is_expected = |asked: &Asked| asked.awaited || asked.unpushed;
        let expects = |b: &Building| self.asking.asked.of(b.number).any(is_expected);
        assert!(!self.spare.iter().any(|building| expects(building)), "nothing is expected for no event");
        let awaits = |b: &Building| b.awaited == count(b, |a| a.awaited) && b.unpushed == count(b, |a| a.unpushed);
        assert!(self.events.iter().all(|(_, building)| awaits(building)), "sources that have not answered");
        let ready = in_phase(|b| b.phase == Phase::Ready);
        assert_eq!(ready, self.service.ready.len(), "every ready event waits once");
        let c = &self.counters;
        let finished = c.rejected + c.accepted + c.debug + c.unrecorded + c.abandoned;
        let granted = in_phase(Building::is_granted);
        assert_eq!(
            c.built_complete + c.built_incomplete,
            finished + granted as u64,
            "every built event finished or here"
        );
    }
}

/// Finished events travel to the DFM in groups.
pub const FINISHED_GROUP: usize = 32;
/// The data of later attempts are asked for.
const FIRST_ATTEMPT: u16 = 1;
const FINISHED_AGE: Duration = Duration::from_millis(5);
