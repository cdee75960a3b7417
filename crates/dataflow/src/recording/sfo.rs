//! The sub-farm output: records events, each once.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{Component, Input, Note, Outbox, Outcome, PeerState, Ticket, Work};
use crate::ids::{EventId, NodeId, Role};
use crate::message::{Command, FileRecord, Message, Recording};
use crate::node::RUN_CONTROL;
use crate::recording::recorded::RecordedEvents;
use crate::report::{Report, SfoCounters};
use crate::time::Time;

/// How a recorder is set up.
#[derive(Clone, Debug)]
pub struct SfoParameters {
    /// When a recorded event is acknowledged.
    pub durable: Durable,
    /// How long to wait before a failed write is tried again.
    pub retry_after: Duration,
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
pub struct Sfo {
    parameters: SfoParameters,
    recorded: RecordedEvents,
    /// Being written, by ticket, with who asked.
    writing: BTreeMap<Ticket, Request>,
    /// Failed, waiting to be tried again, in order.
    stalled: VecDeque<Request>,
    retry_due: Option<Time>,
    /// Written, not yet durable.
    unsynced: Vec<(NodeId, EventId)>,
    syncing: Vec<(NodeId, EventId)>,
    sync_due: Option<Time>,
    next_ticket: u64,
    closing: Closing,
    draining: bool,
    counters: SfoCounters,
}

struct Request {
    from: NodeId,
    recording: Recording,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    No,
    Asked,
    Done,
}

impl Sfo {
    /// A recorder without files.
    pub fn new(parameters: SfoParameters) -> Self {
        Self {
            parameters,
            recorded: RecordedEvents::default(),
            writing: BTreeMap::new(),
            stalled: VecDeque::new(),
            retry_due: None,
            unsynced: Vec::new(),
            syncing: Vec::new(),
            sync_due: None,
            next_ticket: 0,
            closing: Closing::No,
            draining: false,
            counters: SfoCounters::default(),
        }
    }

    fn on_record(&mut self, from: NodeId, recording: Recording, out: &mut Outbox) {
        self.counters.received += 1;
        let event = recording.built.event.event;
        if self.closing != Closing::No {
            self.counters.abandoned += 1;
            return;
        }
        let in_writing = |r: &Request| r.recording.built.event.event == event;
        if self.recorded.contains(event) {
            self.counters.duplicates += 1;
            self.acknowledge_again(from, event, out);
        } else if let Some(request) = self.writing.values_mut().chain(&mut self.stalled).find(|r| in_writing(r)) {
            // Asked by another daemon, since the first was lost: the answer goes to the newest.
            self.counters.duplicates += 1;
            request.from = from;
        } else {
            self.recorded.forget_below(recording.built.oldest_unfinished);
            let request = Request { from, recording };
            if self.stalled.is_empty() {
                self.write(request, out);
            } else {
                self.stalled.push_back(request);
            }
        }
    }

    /// An event that is written but not durable yet is acknowledged with the others, to whoever asked last.
    fn acknowledge_again(&mut self, from: NodeId, event: EventId, out: &mut Outbox) {
        match self.unsynced.iter_mut().chain(&mut self.syncing).find(|(_, written)| *written == event) {
            Some(waiting) => waiting.0 = from,
            None => out.send(from, Message::Recorded { event, fresh: false }),
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

    fn on_recorded(&mut self, now: Time, ticket: Ticket, copies: u32, closed: Vec<FileRecord>, out: &mut Outbox) {
        let Some(Request { from, recording }) = self.writing.remove(&ticket) else {
            return;
        };
        let event = recording.built.event.event;
        self.recorded.insert(event);
        self.counters.recorded += 1;
        self.counters.copies += u64::from(copies);
        self.counters.bytes += recording.built.bulk.len() as u64;
        closed.into_iter().for_each(|file| out.send(RUN_CONTROL, Message::FileClosed(file)));
        match self.parameters.durable {
            Durable::Write => out.send(from, Message::Recorded { event, fresh: true }),
            Durable::Sync { age, events } => {
                self.unsynced.push((from, event));
                self.sync_due.get_or_insert(now + age);
                if self.unsynced.len() >= events {
                    self.sync(out);
                }
            }
        }
    }

    fn sync(&mut self, out: &mut Outbox) {
        if self.syncing.is_empty() && !self.unsynced.is_empty() {
            self.sync_due = None;
            self.syncing = core::mem::take(&mut self.unsynced);
            let ticket = self.ticket();
            out.start(ticket, Work::Sync);
        }
    }

    fn on_synced(&mut self, now: Time, out: &mut Outbox) {
        acknowledge_all(&mut self.syncing, out);
        if self.draining {
            self.sync(out);
        } else if let (Durable::Sync { age, .. }, false) = (self.parameters.durable, self.unsynced.is_empty()) {
            self.sync_due.get_or_insert(now + age);
        }
    }

    fn on_record_failed(&mut self, now: Time, ticket: Ticket, out: &mut Outbox) {
        let Some(request) = self.writing.remove(&ticket) else {
            return;
        };
        self.counters.failures += 1;
        if self.stalled.is_empty() {
            out.note(Note::RecordingStalled);
            self.retry_due = Some(now + self.parameters.retry_after);
        }
        self.stalled.push_back(request);
    }

    fn retry(&mut self, out: &mut Outbox) {
        self.retry_due = None;
        out.note(Note::RecordingResumed);
        for request in core::mem::take(&mut self.stalled) {
            self.write(request, out);
        }
    }

    fn on_closed(&mut self, files: Vec<FileRecord>, out: &mut Outbox) {
        files.into_iter().for_each(|file| out.send(RUN_CONTROL, Message::FileClosed(file)));
        acknowledge_all(&mut self.unsynced, out);
        acknowledge_all(&mut self.syncing, out);
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
                self.draining = true;
                self.sync(out);
            }
            Command::Abandon => {
                self.draining = true;
                self.counters.abandoned += self.stalled.len() as u64;
                self.stalled.clear();
                self.retry_due = None;
            }
            _ => {}
        }
    }

    /// Closes the files once everything is written.
    fn close(&mut self, out: &mut Outbox) {
        let settled = self.writing.is_empty() && self.stalled.is_empty() && self.syncing.is_empty();
        if self.draining && settled && self.closing == Closing::No {
            self.closing = Closing::Asked;
            let ticket = self.ticket();
            out.start(ticket, Work::Close);
        }
    }
}

fn acknowledge_all(written: &mut Vec<(NodeId, EventId)>, out: &mut Outbox) {
    for (to, event) in written.drain(..) {
        out.send(to, Message::Recorded { event, fresh: true });
    }
}

impl Component for Sfo {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { from, message: Message::Record(recording) } => self.on_record(from, recording, out),
            Input::Done { ticket, outcome } => match outcome {
                Outcome::Recorded { copies, closed } => self.on_recorded(now, ticket, copies, closed, out),
                Outcome::RecordFailed => self.on_record_failed(now, ticket, out),
                Outcome::Synced => self.on_synced(now, out),
                Outcome::Closed(files) => self.on_closed(files, out),
                Outcome::ReadOut | Outcome::Steered(_) => {}
            },
            Input::Command(command) => self.on_command(command, out),
            Input::Deadline => self.on_deadline(now, out),
            Input::Message { .. } | Input::Fragment { .. } => {}
            // Acknowledgements to a lost daemon are dropped on the way; its successor asks again.
            Input::Peer { state: PeerState::Up(_) | PeerState::Down | PeerState::Gone, .. } => {}
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
        assert_eq!(c.received, c.recorded + c.duplicates + c.abandoned + in_hand, "every request settled or in hand");
    }
}
