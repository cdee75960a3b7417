//! What is known of a connection: which run, how many fragments.

use super::Arrival;
use crate::error::Violation;
use crate::kind::Kind;
use crate::record::{RecordHead, TEXT_BYTES_MAX};

/// Checks the heads of one connection.
pub(super) struct Book {
    run: u32,
    /// Runs that the source was told of before.
    former: Vec<u32>,
    is_started: bool,
    received: u64,
    size_max: usize,
    /// Whether the source has said that it is here: it does so when it first asks for orders.
    pub(super) is_configured: bool,
}

/// What a head says, once it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// A fragment of this run, the next one.
    Fragment,
    /// A fragment of a former run.
    Stale,
    /// Something else that a source says, with a short body or none.
    Other,
}

impl Book {
    pub(super) fn new(run: u32, size_max: usize) -> Self {
        Self { run, former: Vec::new(), is_started: false, received: 0, size_max, is_configured: false }
    }

    pub(super) fn start(&mut self, run: u32) {
        if run != self.run {
            self.former.extend(self.is_started.then_some(self.run));
            self.former.retain(|former| *former != run);
            (self.run, self.received) = (run, 0);
        }
        self.is_started = true;
    }

    /// Nothing of the run before is waited for any more, and this one has not begun.
    pub(super) fn await_run(&mut self, run: u32) {
        self.start(run);
        self.is_started = false;
    }

    pub(super) fn check(&self, head: &RecordHead) -> Result<Entry, Violation> {
        let (len_max, expected) = match head.kind {
            Kind::Fragment => (self.size_max, "at most size_max of the source"),
            Kind::Status => (TEXT_BYTES_MAX, "at most 4096"),
            Kind::Idle | Kind::End | Kind::Here => (0, "0"),
            kind => return Err(Violation::OutOfTurn { kind }),
        };
        if head.len as usize > len_max {
            return Err(Violation::Length { kind: head.kind, len: head.len.into(), expected });
        }
        if head.kind != Kind::Fragment {
            return Ok(Entry::Other);
        }
        if head.run != self.run && self.former.contains(&head.run) {
            return Ok(Entry::Stale);
        }
        if !self.is_started {
            return Err(Violation::OutOfTurn { kind: Kind::Fragment });
        }
        if head.run != self.run {
            return Err(Violation::Run { found: head.run, expected: self.run });
        }
        if head.sequence != self.received {
            return Err(Violation::Sequence { found: head.sequence, expected: self.received });
        }
        Ok(Entry::Fragment)
    }

    pub(super) fn note_fragment(&mut self) {
        self.received += 1;
    }

    /// What a mark or the end of a run says; nothing if it is said of another run.
    pub(super) fn arrival(&self, head: &RecordHead) -> Option<Arrival> {
        match head.kind {
            _ if head.run != self.run => None,
            Kind::Idle => Some(Arrival::Idle { number: head.number, time: head.begin }),
            Kind::End => Some(Arrival::Ended { sent: head.sequence, received: self.received }),
            _ => None,
        }
    }
}
