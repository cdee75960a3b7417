//! The sub-farm output: records events, each once.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Component, Input, Note, Outbox, Outcome, PeerState, Ticket, Unfinished, Work};
use crate::ending::Ending;
use crate::message::{BuiltEvent, Command, FileRecord, Message, Recording};
use crate::node::RUN_CONTROL;
use crate::recording::recorded::RecordedEvents;
use crate::report::{Counters, Report, SfoCounters};
use base::ids::{EventId, NodeId, Role};
use base::several::Several;
use base::time::Time;

/// How a recorder is set up.
#[derive(Clone, Debug)]
pub struct SfoParameters {
    /// When a recorded event is acknowledged.
    pub durable: Durable,
    /// How long to wait before a failed write is tried again.
    pub retry_after: Duration,
    /// A life of it has been in the run before: it first takes over the files of that.
    pub late: bool,
}

/// When a recorded event is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// When it is written: it survives the death of the recorder, not that of the machine.
    Write,
    /// When the disk has it: written events are made durable together.
    Sync {
        /// How long an event may wait for others.
        age: Duration,
        /// How many may wait.
        events: usize,
    },
}

/// A recorder. The filter daemons keep an event until it is acknowledged, so a full disk stalls the run and loses nothing.
///
/// One that returns within a run first learns which events its former life has put into files, acknowledged or not. The filter
/// daemons ask again for those that were not acknowledged to them.
pub struct Sfo {
    parameters: SfoParameters,
    recorded: RecordedEvents,
    /// Being written, by ticket, with who asked.
    writing: BTreeMap<Ticket, Request>,
    /// Failed, waiting to be tried again, in order.
    stalled: VecDeque<Request>,
    /// A write has failed and none has succeeded since.
    is_stalled: bool,
    retry_due: Option<Time>,
    /// Written, not yet known to be durable.
    unsynced: Vec<Written>,
    is_syncing: bool,
    sync_due: Option<Time>,
    next_ticket: u64,
    take_over: TakeOver,
    /// What is to be recorded, until it is known what was.
    early: VecDeque<(NodeId, Recording)>,
    closing: Closing,
    ending: Ending,
    counters: SfoCounters,
}

struct Request {
    /// In the order in which they came.
    serial: u64,
    askers: Askers,
    recording: Recording,
}

/// An event that is in its files.
struct Written {
    askers: Askers,
    event: EventId,
    complete: bool,
}

/// Who wants to know: several, if an event was built again while the daemon that had it first still lives; nobody, if it was lost.
type Askers = Several<NodeId>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Asked,
    Done,
}

/// How far the files of a former life are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TakeOver {
    Due,
    Asked,
    /// To be asked again at the time of retries.
    Failed,
    Done,
}

impl Sfo {
    /// A recorder without files.
    pub fn new(parameters: SfoParameters) -> Self {
        Self {
            recorded: RecordedEvents::default(),
            writing: BTreeMap::new(),
            stalled: VecDeque::new(),
            is_stalled: false,
            retry_due: None,
            unsynced: Vec::new(),
            is_syncing: false,
            sync_due: None,
            next_ticket: 0,
            take_over: if parameters.late { TakeOver::Due } else { TakeOver::Done },
            early: VecDeque::new(),
            closing: Closing::No,
            ending: Ending::NotYet,
            counters: SfoCounters::default(),
            parameters,
        }
    }

    fn begin_take_over(&mut self, out: &mut Outbox) {
        self.take_over = TakeOver::Asked;
        let ticket = self.ticket();
        out.start(ticket, Work::TakeOver);
    }

    fn on_taken_over(
        &mut self,
        events: Vec<EventId>,
        closed: Vec<FileRecord>,
        [recorded, copies, bytes]: [u64; 3],
        out: &mut Outbox,
    ) {
        self.take_over = TakeOver::Done;
        self.counters.taken_over = recorded;
        self.counters.taken_over_copies = copies;
        self.counters.taken_over_bytes = bytes;
        self.recorded.extend(events);
        closed.into_iter().for_each(|file| out.send(RUN_CONTROL, Message::FileClosed(file)));
        for (from, recording) in core::mem::take(&mut self.early) {
            self.on_record(from, recording, out);
        }
    }

    fn on_take_over_failed(&mut self, now: Time) {
        self.counters.failures += 1;
        self.take_over = TakeOver::Failed;
        self.retry_due = Some(now + self.parameters.retry_after);
    }

    fn on_record(&mut self, from: NodeId, recording: Recording, out: &mut Outbox) {
        if self.ending.is_abandoned() {
            self.counters.received += 1;
            self.counters.abandoned += 1;
            return;
        }
        if self.take_over != TakeOver::Done {
            return self.early.push_back((from, recording));
        }
        self.counters.received += 1;
        let event = recording.built.event.event;
        let in_writing = |r: &Request| r.recording.built.event.event == event;
        if self.recorded.contains(event) {
            self.counters.duplicates += 1;
            self.acknowledge_again(from, &recording.built, out);
        } else if let Some(request) = self.writing.values_mut().chain(&mut self.stalled).find(|r| in_writing(r)) {
            self.counters.duplicates += 1;
            request.askers.push(from);
        } else if self.closing != Closing::No {
            // An event that deaths have brought here after the end: nobody is to wait for it.
            self.counters.refused += 1;
            out.send(from, Message::Refused(event));
        } else {
            self.recorded.forget_below(recording.built.finished_below());
            let request = Request { serial: self.counters.received, askers: Several::one(from), recording };
            if !self.is_stalled {
                self.write(request, out);
            } else {
                self.stalled.push_back(request);
            }
        }
    }

    /// A daemon's questions go with its connection. It asks again, and its next life asks for the events that it is given. So it
    /// hears of no event more often than it has asked.
    fn forget(&mut self, efd: NodeId) {
        self.early.retain(|(from, _)| *from != efd);
        let requests = self.writing.values_mut().chain(&mut self.stalled).map(|request| &mut request.askers);
        let written = self.unsynced.iter_mut().map(|written| &mut written.askers);
        requests.chain(written).for_each(|askers| askers.retain(|asker| *asker != efd));
    }

    /// An event that is written but not durable yet is acknowledged with the others.
    fn acknowledge_again(&mut self, from: NodeId, again: &BuiltEvent, out: &mut Outbox) {
        let event = again.event.event;
        match self.unsynced.iter_mut().find(|written| written.event == event) {
            Some(written) => written.askers.push(from),
            None => {
                let complete = self.recorded.is_complete(event).unwrap_or(again.missing.is_empty());
                out.send(from, Message::Recorded { event, fresh: false, complete });
            }
        }
    }

    fn write(&mut self, request: Request, out: &mut Outbox) {
        let ticket = self.ticket();
        out.start(ticket, Work::Record(request.recording.clone()));
        self.writing.insert(ticket, request);
    }

    fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    fn on_recorded(
        &mut self,
        now: Time,
        ticket: Ticket,
        copies: u32,
        bytes: u64,
        closed: Vec<FileRecord>,
        out: &mut Outbox,
    ) {
        let Some(Request { askers, recording, .. }) = self.writing.remove(&ticket) else {
            return;
        };
        let event = recording.built.event.event;
        let complete = recording.built.missing.is_empty();
        self.recorded.insert(event, complete);
        self.counters.recorded += 1;
        self.counters.copies += u64::from(copies);
        self.counters.bytes += bytes;
        if self.is_stalled {
            self.resume(out);
        }
        closed.into_iter().for_each(|file| out.send(RUN_CONTROL, Message::FileClosed(file)));
        match self.parameters.durable {
            Durable::Write => acknowledge(&askers, event, complete, out),
            Durable::Sync { age, events } => {
                self.unsynced.push(Written { askers, event, complete });
                self.sync_due.get_or_insert(now + age);
                if self.unsynced.len() >= events {
                    self.sync(out);
                }
            }
        }
    }

    fn sync(&mut self, out: &mut Outbox) {
        if !self.is_syncing && !self.unsynced.is_empty() {
            (self.sync_due, self.is_syncing) = (None, true);
            let ticket = self.ticket();
            out.start(ticket, Work::Sync);
        }
    }

    /// Work is done in order: what was written while others were to be made durable is so, too.
    fn on_synced(&mut self, out: &mut Outbox) {
        (self.sync_due, self.is_syncing) = (None, false);
        for Written { askers, event, complete } in self.unsynced.drain(..) {
            acknowledge(&askers, event, complete, out);
        }
    }

    /// Most often a full disk: the event waits, with all that come after it.
    fn on_record_failed(&mut self, now: Time, ticket: Ticket, out: &mut Outbox) {
        let Some(request) = self.writing.remove(&ticket) else { return };
        self.counters.failures += 1;
        if self.ending.is_abandoned() {
            self.counters.abandoned += 1;
            return;
        }
        if !core::mem::replace(&mut self.is_stalled, true) {
            out.note(Note::RecordingStalled);
        }
        self.retry_due = Some(now + self.parameters.retry_after);
        let place = self.stalled.partition_point(|waiting| waiting.serial < request.serial);
        self.stalled.insert(place, request);
    }

    /// Nothing helps an event that cannot be put into a file at all.
    fn on_record_refused(&mut self, ticket: Ticket, out: &mut Outbox) {
        let Some(request) = self.writing.remove(&ticket) else { return };
        self.counters.refused += 1;
        let event = request.recording.built.event.event;
        request.askers.iter().for_each(|&to| out.send(to, Message::Refused(event)));
        if self.is_stalled {
            self.resume(out);
        }
    }

    /// Tries one event; if that goes well the others follow.
    fn retry(&mut self, out: &mut Outbox) {
        self.retry_due = None;
        if self.take_over == TakeOver::Failed {
            return self.begin_take_over(out);
        }
        if let Some(request) = self.stalled.pop_front() {
            self.write(request, out);
        }
    }

    fn resume(&mut self, out: &mut Outbox) {
        self.is_stalled = false;
        out.note(Note::RecordingResumed);
        for request in core::mem::take(&mut self.stalled) {
            self.write(request, out);
        }
    }

    /// What is written and not durable is not acknowledged. It is tried again, or in the end the files tell how much of it they have.
    fn on_sync_failed(&mut self, now: Time) {
        self.counters.failures += 1;
        self.is_syncing = false;
        if self.ending.is_abandoned() {
            self.unsynced.clear();
        } else {
            self.sync_due = Some(now + self.parameters.retry_after);
        }
    }

    /// What is in no file that is closed was not recorded, whatever was acknowledged.
    fn on_closed(&mut self, files: Vec<FileRecord>, unfinished: Unfinished, out: &mut Outbox) {
        files.into_iter().for_each(|file| out.send(RUN_CONTROL, Message::FileClosed(file)));
        let c = &mut self.counters;
        Unfinished { events: c.unfinished, copies: c.unfinished_copies, bytes: c.unfinished_bytes } = unfinished;
        self.closing = Closing::Done;
    }

    fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        if self.retry_due.is_some_and(|due| due <= now) {
            self.retry(out);
        }
        if self.sync_due.is_some_and(|due| due <= now) {
            self.sync(out);
            self.sync_due = None;
        }
    }

    fn on_command(&mut self, command: Command, out: &mut Outbox) {
        match command {
            Command::Drain => {
                self.ending.drain();
                self.sync(out);
            }
            Command::Abandon => {
                self.ending.abandon();
                self.counters.received += self.early.len() as u64;
                self.counters.abandoned += (self.early.len() + self.stalled.len()) as u64;
                self.early.clear();
                self.stalled.clear();
                self.retry_due = None;
            }
            _ => {}
        }
    }

    /// Closes the files once everything is written.
    fn close(&mut self, out: &mut Outbox) {
        let taken_over = self.take_over == TakeOver::Done || self.ending.is_abandoned();
        let written = taken_over && self.writing.is_empty() && self.stalled.is_empty() && !self.is_syncing;
        if self.ending.is_abandoned() && written {
            // Once more, to know what is durable.
            self.sync(out);
        }
        let settled = written && self.unsynced.is_empty() && !self.is_syncing;
        if self.ending.is_draining() && settled && self.closing == Closing::No {
            self.closing = Closing::Asked;
            let ticket = self.ticket();
            out.start(ticket, Work::Close);
        }
    }
}

/// The first of them takes it for its own.
fn acknowledge(askers: &Askers, event: EventId, complete: bool, out: &mut Outbox) {
    for (index, &to) in askers.iter().enumerate() {
        out.send(to, Message::Recorded { event, fresh: index == 0, complete });
    }
}

impl Component for Sfo {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        if self.take_over == TakeOver::Due {
            self.begin_take_over(out);
        }
        match input {
            Input::Message { from, message: Message::Record(recording) } => self.on_record(from, recording, out),
            Input::Done { ticket, outcome } => match outcome {
                Outcome::Recorded { copies, bytes, closed } => {
                    self.on_recorded(now, ticket, copies, bytes, closed, out);
                }
                Outcome::TakenOver { events, closed, recorded } => self.on_taken_over(events, closed, recorded, out),
                Outcome::TakeOverFailed => self.on_take_over_failed(now),
                Outcome::RecordFailed => self.on_record_failed(now, ticket, out),
                Outcome::RecordRefused => self.on_record_refused(ticket, out),
                Outcome::SyncFailed => self.on_sync_failed(now),
                Outcome::Synced => self.on_synced(out),
                Outcome::Closed { files, unfinished } => self.on_closed(files, unfinished, out),
                Outcome::ReadOut(_) | Outcome::Steered(_) | Outcome::Processed(_) => {}
            },
            Input::Command(command) => self.on_command(command, out),
            Input::Deadline => self.on_deadline(now, out),
            Input::Message { message, .. } => message.passes_no_gate(),
            Input::Fragment { .. } | Input::Link { .. } | Input::Watch(_) => {}
            Input::Peer { node, state: PeerState::Up(_) | PeerState::Down | PeerState::Gone } => self.forget(node),
        }
        self.close(out);
    }

    fn next_deadline(&self) -> Option<Time> {
        [self.retry_due, self.sync_due].into_iter().flatten().min()
    }

    fn is_drained(&self) -> bool {
        self.closing == Closing::Done
    }

    fn report(&self, _now: Time) -> Report {
        Report::of(Role::Sfo, self.counters.to_values())
    }

    fn check(&self) {
        let c = &self.counters;
        let in_hand = (self.writing.len() + self.stalled.len()) as u64;
        assert_eq!(
            c.received,
            c.recorded + c.refused + c.duplicates + c.abandoned + in_hand,
            "every request settled or in hand"
        );
    }
}
