//! The work that drivers do for components, and the bugs that a world plants.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use dataflow::component::{Input, Outcome, Ticket, Unfinished, Work};
use dataflow::ledger::Ledger;
use dataflow::message::{BusyCause, EventInfo, FileRecord, Holdings, Message};
use dataflow::readout::fragment::{FragmentCheck, FragmentHead, status};

use super::setup::{Effort, Place, Planted};
use super::{Arriving, Fragments, Slot, What, World, Written};

impl World {
    pub(super) fn work(&mut self, node: NodeId, ticket: Ticket, work: Work) {
        let in_run = self.now.since(self.direction.began);
        let outside = &mut self.setup.outside;
        let (effort, place, channel) = match &work {
            Work::ReadOut(events) => return self.read_out(node, ticket, events),
            Work::Steer(steer) => {
                let (effort, place) = outside.effort(in_run, Effort::Steer(steer));
                (effort, place, ticket.0 as u16 | STEPS)
            }
            Work::Process(built) => {
                let (effort, place) = outside.effort(in_run, Effort::Process(built));
                (effort, place, ticket.0 as u16 | STEPS)
            }
            Work::Record(recording) => {
                let bytes = recording.built.bulk.len();
                let (effort, place) = outside.effort(in_run, Effort::Record(bytes));
                (effort + self.setup.costs.of_writing(Role::Sfo, bytes), place, 0)
            }
            Work::Sync => {
                let (effort, place) = outside.effort(in_run, Effort::Sync);
                (effort, place, 0)
            }
            Work::TakeOver | Work::Close => (Duration::ZERO, Place::Aside, 0),
        };
        let Some(outcome) = self.outcome(node, work) else { return };
        let application = usize::from(node.0) - 1;
        if place == Place::Thread && self.drivers.is_some() {
            self.charge(effort);
            return self.input_at_cost(node, Input::Done { ticket, outcome });
        }
        let at = match place {
            Place::Thread => self.processors.take(application, self.now, effort).unwrap_or(self.now),
            Place::Aside => {
                let at = self.processors.take_aside(application, self.now, effort);
                self.in_order(node, channel, at)
            }
            Place::Anywhere => self.in_order(node, channel, self.now) + effort,
        };
        let incarnation = self.slot(node).incarnation;
        let input = Input::Done { ticket, outcome };
        self.schedule(at, What::Arrives(node, Arriving::Input(incarnation, input)));
    }

    fn outcome(&mut self, node: NodeId, work: Work) -> Option<Outcome> {
        Some(match work {
            Work::ReadOut(_) => unreachable!("taken before"),
            Work::Steer(steer) => Outcome::Steered(self.setup.outside.steer(node, &steer)),
            Work::Process(built) => Outcome::Processed(self.setup.outside.process(&built)?),
            Work::Record(mut recording) => {
                if self.setup.planted == Some(Planted::ForgottenStream) {
                    recording.streams &= recording.streams.wrapping_neg();
                }
                let streams = recording.streams;
                let is_full = self.now < self.slot(node).full_until;
                let is_healed = self.is_healed();
                if is_full || self.setup.outside.disk_fails(is_healed) {
                    return Some(Outcome::RecordFailed);
                }
                let bytes = recording.built.bulk.len() as u64;
                let lost =
                    self.setup.planted == Some(Planted::LostEvent) && core::mem::replace(&mut self.planted, 1) == 0;
                if !lost {
                    if !self.setup.outside.record(node, &recording) {
                        return Some(Outcome::RecordFailed);
                    }
                    let slot = self.slot_mut(node);
                    slot.recorded.push(Written { event: recording.built.event.event, streams, bytes });
                    slot.unsynced += 1;
                }
                let copies = streams.count_ones().max(1);
                Outcome::Recorded { copies, bytes: bytes * u64::from(copies), closed: Vec::new() }
            }
            Work::Sync => {
                self.slot_mut(node).unsynced = 0;
                Outcome::Synced
            }
            Work::TakeOver => {
                let forgets = self.setup.planted == Some(Planted::ForgottenFiles);
                let events = if forgets { Vec::new() } else { self.slot(node).events() };
                let recorded = if forgets { [0; 3] } else { self.slot(node).totals() };
                Outcome::TakenOver { events, closed: Vec::new(), recorded }
            }
            Work::Close => {
                let files = self.open_files(node);
                let slot = self.slot_mut(node);
                slot.in_closed = slot.recorded.len();
                slot.unsynced = 0;
                slot.closed.extend(files.iter().cloned());
                Outcome::Closed { files, unfinished: Unfinished::default() }
            }
        })
    }

    /// A little later than `at`, and behind everything before on the same channel of a node.
    fn in_order(&mut self, node: NodeId, channel: u16, at: Time) -> Time {
        let at = at + self.handover();
        let last = self.arrivals.work.entry((node, channel)).or_default();
        *last = at.max(*last);
        *last
    }

    fn read_out(&mut self, node: NodeId, ticket: Ticket, events: &[EventInfo]) {
        let incarnation = self.slot(node).incarnation;
        if !self.setup.one_by_one {
            let fragments = self.fragments(node, events);
            let all = Fragments { ticket, events: events.len(), fragments };
            if self.drivers.is_some() {
                self.charge(self.cost_of_fragments(node, &all));
                return self.input_fragments(node, incarnation, all);
            }
            return self.schedule(self.now, What::Arrives(node, Arriving::Fragments(incarnation, Box::new(all))));
        }
        let (mut last, mut read) = (self.now, 0);
        for (index, event) in events.iter().enumerate() {
            last = last.max(self.read_out_event(node, event));
            read += 1;
            if index + 1 == events.len() || self.random.chance(0.5) {
                let input = Input::Done { ticket, outcome: Outcome::ReadOut(core::mem::take(&mut read)) };
                self.schedule(last, What::Arrives(node, Arriving::Input(incarnation, input)));
            }
        }
    }

    fn fragments(&mut self, node: NodeId, events: &[EventInfo]) -> Vec<(u16, FragmentHead, Bulk)> {
        let links = self.setup.outside.links(node);
        let mut fragments = Vec::with_capacity(events.len() * usize::from(links));
        for event in events {
            fragments.extend((0..links).map(|rob| self.fragment(node, rob, event)));
        }
        fragments
    }

    /// When the last fragment comes. They come in order on each link, unless the link loses, repeats or delays one.
    fn read_out_event(&mut self, node: NodeId, event: &EventInfo) -> Time {
        let incarnation = self.slot(node).incarnation;
        let links = if self.is_healed() { self.setup.fragment_faults.healed() } else { self.setup.fragment_faults };
        let mut last = self.now;
        for rob in 0..self.setup.outside.links(node) {
            let (_, mut head, bulk) = self.fragment(node, rob, event);
            if links.corruption > 0.0 && self.random.chance(links.corruption) {
                if self.random.chance(0.5) {
                    // It cannot be told to be of this event.
                    continue;
                }
                head.status |= status::TRUNCATED;
            }
            let copies =
                if self.random.chance(links.loss) { 0 } else { 1 + u32::from(self.random.chance(links.duplication)) };
            let mut at = self.in_order(node, 1 + rob, self.now);
            if self.random.chance(links.delay) {
                at = at + links.delay_max.mul_f64(self.random.unit());
            }
            for _ in 0..copies {
                let input = Input::Fragment { rob, head, bulk: bulk.clone() };
                self.schedule(at, What::Arrives(node, Arriving::Input(incarnation, input)));
            }
            last = last.max(at);
        }
        last
    }

    fn fragment(&mut self, node: NodeId, rob: u16, event: &EventInfo) -> (u16, FragmentHead, Bulk) {
        let bulk = self.setup.outside.fragment(node, rob, event);
        let len_bytes = bulk.len() as u32;
        let checks = &mut self.checks[usize::from(node.0) - 1];
        let index = usize::from(rob);
        if checks.len() <= index {
            checks.resize_with(index + 1, || FragmentCheck::new(event.event));
        }
        let head = checks[index].examine(event.event.lvl1_id(), 0, len_bytes).expect("an id near the others");
        assert_eq!(head.event, event.event, "the id of 32 bits is unwrapped");
        (rob, head, bulk)
    }

    pub(super) fn input_fragments(&mut self, to: NodeId, incarnation: base::ids::Incarnation, all: Fragments) {
        let now = self.now;
        let slot = &mut self.slots[usize::from(to.0) - 1];
        if slot.hangs || slot.incarnation != incarnation {
            return;
        }
        let now = slot.reads_clock(now);
        let Some(node) = &mut slot.node else { return };
        let mut out = core::mem::take(&mut self.out);
        self.tally.inputs += all.fragments.len() as u64 + 1;
        for (rob, head, bulk) in all.fragments {
            node.handle(now, Input::Fragment { rob, head, bulk }, &mut out);
        }
        node.handle(now, Input::Done { ticket: all.ticket, outcome: Outcome::ReadOut(all.events) }, &mut out);
        self.after(to, &mut out);
        self.out = out;
    }

    /// All that a recorder has written since it last closed, as a file of each stream.
    pub(super) fn open_files(&self, sfo: NodeId) -> Vec<FileRecord> {
        let slot = self.slot(sfo);
        let open = &slot.recorded[slot.in_closed..];
        let mut files: BTreeMap<u32, FileRecord> = BTreeMap::new();
        for Written { streams, bytes, .. } in open {
            let first = streams.trailing_zeros();
            // Without any bit there is the debug stream.
            for stream in
                (first..=u32::BITS).filter(|stream| *stream == first || u64::from(*streams) >> stream & 1 == 1)
            {
                let file = files.entry(stream).or_insert_with(|| empty_file(stream));
                file.events += 1;
                file.first_copies += u64::from(stream == first);
                file.bytes += bytes;
            }
        }
        let numbered = files.into_values().zip(slot.closed.len() + 1..);
        numbered.map(|(file, number)| FileRecord { path: format!("{}-{number}", slot.app.name), ..file }).collect()
    }

    /// How often a message is sent: once, unless a bug is planted on it.
    pub(super) fn plant(&mut self, to: NodeId, message: &Message) -> usize {
        let mut strike = |number: u64| {
            self.planted += 1;
            self.planted == number
        };
        match (self.setup.planted, message) {
            (Some(Planted::Duplicate), Message::Record(_)) if strike(1) => 2,
            (Some(Planted::LostCredit), Message::Pull(1)) if strike(3) => 0,
            (Some(Planted::ForgottenResults), Message::L1Again { .. }) => 0,
            (Some(Planted::UntoldSlices), Message::IssuedUpTo(_)) if self.readout.first() == Some(&to) => 0,
            _ => 1,
        }
    }

    /// Changes what is said, if that bug is planted.
    pub(super) fn plant_in(&self, to: NodeId, message: Message) -> Message {
        match (self.setup.planted, message) {
            (Some(Planted::ForgottenHoldings), Message::Held(holdings)) => {
                Message::Held(Holdings { events: Vec::new(), finished: Vec::new(), ..holdings })
            }
            (Some(Planted::ForgottenDecisions), Message::DecisionsTaken { up_to, .. }) => {
                Message::DecisionsTaken { up_to, oldest_unfinished: EventId(u64::MAX) }
            }
            (Some(Planted::TwoGrants), Message::Revoked(attempts)) => Message::Granted(attempts),
            (Some(Planted::DoubleCredit), Message::Pull(1)) => Message::Pull(2),
            (Some(Planted::ForgottenDecisions), Message::FinishedBelow(_)) => Message::FinishedBelow(EventId(u64::MAX)),
            (Some(Planted::UnendedAnswers), Message::Orphans { sfi, life, events, finished, .. }) => {
                Message::Orphans { sfi, life, events, finished, last: false }
            }
            (Some(Planted::ForgottenFates), Message::Orphans { sfi, life, events, last, .. }) => {
                Message::Orphans { sfi, life, events, finished: Vec::new(), last }
            }
            (Some(Planted::ForgottenCounts), Message::Ledger(ledger)) => {
                Message::Ledger(Box::new(Ledger { below: ledger.below, ..Ledger::default() }))
            }
            (Some(Planted::UntoldFates), Message::Held(holdings)) if holdings.newest.is_none() => {
                Message::Held(Holdings { finished: Vec::new(), ..holdings })
            }
            (
                Some(Planted::UnflaggedResults),
                Message::L2Decision { event, attempt, accept, lacks_data, builder, .. },
            ) => Message::L2Decision { event, attempt, accept, lacks_data, has_result: false, builder },
            (Some(Planted::ForgottenTaken), Message::TakenBefore { .. }) => {
                Message::TakenBefore { decided: Vec::new(), last: true }
            }
            (Some(Planted::UnawaitedSources), Message::Busy { cause: BusyCause::Source, .. })
                if self.slot(to).app.role == Role::Trg =>
            {
                Message::Busy { cause: BusyCause::Source, on: false }
            }
            (_, message) => message,
        }
    }

    /// Adds an event of an earlier group to a group of clears, if that bug is planted.
    pub(super) fn plant_in_clears(&mut self, mut message: Message) -> Message {
        if self.setup.planted == Some(Planted::DoubleClear)
            && let Message::Clear { events, .. } = &mut message
        {
            match (self.planted, events.first()) {
                (DONE, _) | (_, None) => {}
                (0, Some(first)) => self.planted = first.0 + 1,
                (noted, Some(_)) => {
                    Arc::make_mut(events).push(EventId(noted - 1));
                    self.planted = DONE;
                }
            }
        }
        message
    }

    /// Whether a component is not called any more at its times, because that bug is planted.
    pub(super) fn forgets_deadlines(&mut self, node: NodeId) -> bool {
        if self.setup.planted != Some(Planted::ForgottenTimeout) || self.slot(node).app.role != Role::Sfi {
            return false;
        }
        self.planted += 1;
        self.planted > FORGETS_AFTER
    }

    pub(super) fn handover(&mut self) -> Duration {
        self.setup.handover.mul_f64(1.0 + self.random.unit())
    }
}

impl Slot {
    /// Events in its files, copies of them, bytes of these.
    fn totals(&self) -> [u64; 3] {
        self.recorded.iter().fold([0; 3], |[events, copies, bytes], written| {
            let of_it = u64::from(written.streams.count_ones().max(1));
            [events + 1, copies + of_it, bytes + of_it * written.bytes]
        })
    }

    fn events(&self) -> Vec<EventId> {
        self.recorded.iter().map(|written| written.event).collect()
    }
}

fn empty_file(stream: u32) -> FileRecord {
    let stream = match stream {
        0 => "physics_Main".to_owned(),
        u32::BITS => "debug_Main".to_owned(),
        other => format!("physics_{other}"),
    };
    FileRecord { path: String::new(), stream, events: 0, first_copies: 0, bytes: 0, adler32: 1 }
}

/// Channels of work that may overtake other work.
const STEPS: u16 = 1 << 15;
/// The bug has been at work.
const DONE: u64 = u64::MAX;
const FORGETS_AFTER: u64 = 20;
