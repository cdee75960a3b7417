//! What inputs cost: the processor time of each kind of input, by role.

use std::time::Duration;

use base::ids::Role;
use dataflow::component::{Input, Outcome};
use dataflow::message::Message;

/// A kind of input, as far as its cost goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// `L1Accept`, each event.
    L1Accept,
    /// `L1Result`.
    L1Result,
    /// `Assign`.
    Assign,
    /// `RoiRequest`.
    RoiRequest,
    /// `RoiReply`.
    RoiReply,
    /// `L2Result`.
    L2Result,
    /// `L2Decision`.
    L2Decision,
    /// `Decisions`, each decision.
    Decision,
    /// `Build`, each event.
    Build,
    /// `EventRequest`, each event.
    EventRequest,
    /// `EventReply`, each fragment.
    EventReply,
    /// `EndOfEvent`, each event.
    EndOfEvent,
    /// `Granted`, each event.
    Granted,
    /// `Clear`, each event.
    Clear,
    /// `Pull`.
    Pull,
    /// `BuiltEvent`.
    BuiltEvent,
    /// `Record`.
    Record,
    /// `Recorded`.
    Recorded,
    /// `Finished`, each event.
    Finished,
    /// A fragment of a read-out link.
    Fragment,
    /// The end of a piece of work; of reading out, each event.
    Done,
    /// A message that is sent, with its bulk; a multicast is one.
    Send,
    /// The end of a pass, each message that was gathered for it.
    Flush,
    /// An event that a recorder's own thread writes.
    Write,
    /// Any other input.
    Other,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 25] = [
        Self::L1Accept,
        Self::L1Result,
        Self::Assign,
        Self::RoiRequest,
        Self::RoiReply,
        Self::L2Result,
        Self::L2Decision,
        Self::Decision,
        Self::Build,
        Self::EventRequest,
        Self::EventReply,
        Self::EndOfEvent,
        Self::Granted,
        Self::Clear,
        Self::Pull,
        Self::BuiltEvent,
        Self::Record,
        Self::Recorded,
        Self::Finished,
        Self::Fragment,
        Self::Done,
        Self::Send,
        Self::Flush,
        Self::Write,
        Self::Other,
    ];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::L1Accept => "l1-accept",
            Self::L1Result => "l1-result",
            Self::Assign => "assign",
            Self::RoiRequest => "roi-request",
            Self::RoiReply => "roi-reply",
            Self::L2Result => "l2-result",
            Self::L2Decision => "l2-decision",
            Self::Decision => "decision",
            Self::Build => "build",
            Self::EventRequest => "event-request",
            Self::EventReply => "event-reply",
            Self::EndOfEvent => "end-of-event",
            Self::Granted => "granted",
            Self::Clear => "clear",
            Self::Pull => "pull",
            Self::BuiltEvent => "built-event",
            Self::Record => "record",
            Self::Recorded => "recorded",
            Self::Finished => "finished",
            Self::Fragment => "fragment",
            Self::Done => "done",
            Self::Send => "send",
            Self::Flush => "flush",
            Self::Write => "write",
            Self::Other => "other",
        }
    }

    /// The kind of an input, and how many of it there are in it.
    pub fn of_input(input: &Input) -> (Self, usize) {
        match input {
            Input::Message { message, .. } => Self::of(message),
            Input::Fragment { .. } => (Self::Fragment, 1),
            Input::Done { outcome: Outcome::ReadOut(events), .. } => (Self::Done, *events),
            Input::Done { .. } => (Self::Done, 1),
            Input::Deadline | Input::Peer { .. } | Input::Command(_) => (Self::Other, 1),
        }
    }

    /// The kind of a message, and how many of it there are in it; of replies for building, of each event one.
    pub fn of(message: &Message) -> (Self, usize) {
        match message {
            Message::L1Accept(events) => (Self::L1Accept, events.len()),
            Message::L1Result { .. } => (Self::L1Result, 1),
            Message::Assign { .. } => (Self::Assign, 1),
            Message::RoiRequest { .. } => (Self::RoiRequest, 1),
            Message::RoiReply { .. } => (Self::RoiReply, 1),
            Message::L2Result { .. } => (Self::L2Result, 1),
            Message::L2Decision { .. } => (Self::L2Decision, 1),
            Message::Decisions { decisions, .. } => (Self::Decision, decisions.len()),
            Message::Build { events, .. } => (Self::Build, events.len()),
            Message::EventRequest { requests } => (Self::EventRequest, requests.len()),
            Message::EventReply { replies, .. } => (Self::EventReply, replies.len()),
            Message::EndOfEvent(ended) => (Self::EndOfEvent, ended.len()),
            Message::Granted(granted) => (Self::Granted, granted.len()),
            Message::Clear { events, .. } => (Self::Clear, events.len()),
            Message::Pull(_) => (Self::Pull, 1),
            Message::BuiltEvent(_) => (Self::BuiltEvent, 1),
            Message::Record(_) => (Self::Record, 1),
            Message::Recorded { .. } => (Self::Recorded, 1),
            Message::Finished(events) => (Self::Finished, events.len()),
            _ => (Self::Other, 1),
        }
    }
}

/// Processor time of inputs and of what is sent because of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    table: Vec<Cost>,
    free: bool,
}

/// What one kind of input costs in one role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Of each, in ns.
    pub each_ns: u32,
    /// Of each message, whatever there is in it, in ns.
    pub message_ns: u32,
    /// Of a kibibyte of bulk that comes with it, in ns.
    pub kibibyte_ns: u32,
}

impl Costs {
    /// Nothing costs anything.
    pub fn none() -> Self {
        Self { table: vec![Cost::default(); ROLES * Kind::ALL.len()], free: true }
    }

    /// Every input costs the same.
    pub fn uniform(each: Duration) -> Self {
        let each_ns = u32::try_from(each.as_nanos()).unwrap_or(u32::MAX);
        let cost = Cost { each_ns, ..Cost::default() };
        let mut costs = Self { table: vec![cost; ROLES * Kind::ALL.len()], free: each_ns == 0 };
        for kind in [Kind::Send, Kind::Flush, Kind::Write] {
            (0..ROLES).for_each(|role| costs.table[role * Kind::ALL.len() + kind as usize] = Cost::default());
        }
        costs
    }

    /// Sets one cost.
    #[must_use]
    pub fn with(mut self, role: Role, kind: Kind, cost: Cost) -> Self {
        self.set(role, kind, cost);
        self
    }

    /// Sets one cost.
    pub fn set(&mut self, role: Role, kind: Kind, cost: Cost) {
        self.table[place(role, kind)] = cost;
        self.free = self.table.iter().all(|cost| *cost == Cost::default());
    }

    /// What an input costs.
    pub fn of_input(&self, role: Role, input: &Input) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        match input {
            Input::Message { message, .. } => self.of_message(role, message, 1),
            Input::Fragment { head, .. } => self.cost(role, Kind::Fragment, 1, head.len_bytes as usize),
            other => {
                let (kind, count) = Kind::of_input(other);
                self.cost(role, kind, count, 0)
            }
        }
    }

    /// What a message costs its receiver, if a reply has so many fragments of each event.
    pub fn of_message(&self, role: Role, message: &Message, fragments: usize) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        let (kind, count) = Kind::of(message);
        let count = if kind == Kind::EventReply { count * fragments } else { count };
        let bulk = message.bulk().map_or(0, base::bulk::Bulk::len);
        self.cost(role, kind, count, bulk)
    }

    /// What sending a message costs.
    pub fn of_sending(&self, role: Role, message: &Message) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        self.cost(role, Kind::Send, 1, message.bulk().map_or(0, base::bulk::Bulk::len))
    }

    /// What the fragments of events and the end of reading them out cost.
    pub fn of_fragments(&self, role: Role, events: usize, count: usize, bytes: usize) -> Duration {
        if self.free {
            return Duration::ZERO;
        }
        let each_event = self.table[place(role, Kind::Fragment)].message_ns;
        let further = u64::from(each_event) * events.saturating_sub(1) as u64;
        let fragments = self.cost(role, Kind::Fragment, count, bytes);
        fragments + Duration::from_nanos(further) + self.cost(role, Kind::Done, events, 0)
    }

    /// What the end of a pass costs, that sends so many.
    pub fn of_flush(&self, role: Role, count: usize) -> Duration {
        if self.free { Duration::ZERO } else { self.cost(role, Kind::Flush, count, 0) }
    }

    /// What an event of so many bytes costs the thread that writes it.
    pub fn of_writing(&self, role: Role, bytes: usize) -> Duration {
        if self.free { Duration::ZERO } else { self.cost(role, Kind::Write, 1, bytes) }
    }

    fn cost(&self, role: Role, kind: Kind, count: usize, bytes: usize) -> Duration {
        let Cost { each_ns, message_ns, kibibyte_ns } = self.table[place(role, kind)];
        let of_all = u64::from(message_ns) + u64::from(each_ns) * count as u64;
        Duration::from_nanos(of_all + u64::from(kibibyte_ns) * bytes as u64 / 1024)
    }
}

fn place(role: Role, kind: Kind) -> usize {
    role as usize * Kind::ALL.len() + kind as usize
}

/// Roles have numbers below this.
const ROLES: usize = 16;
