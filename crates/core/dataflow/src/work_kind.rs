//! Kinds of work that a process does for its components: what simulations take costs of, and calibrations measure.

use crate::component::{Input, LinkNews, Outcome};
use crate::message::Message;

/// A kind of input, or of what a driver does because of inputs, as far as its cost goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum WorkKind {
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
    /// `Push`, each event.
    Push,
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

impl WorkKind {
    /// All kinds.
    pub const ALL: [Self; 26] = [
        Self::L1Accept,
        Self::L1Result,
        Self::Assign,
        Self::RoiRequest,
        Self::RoiReply,
        Self::L2Result,
        Self::L2Decision,
        Self::Decision,
        Self::Build,
        Self::Push,
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
            Self::Push => "push",
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
            Input::Link { news: LinkNews::Fragment { .. }, .. } => (Self::Fragment, 1),
            Input::Link { .. } | Input::Deadline | Input::Peer { .. } | Input::Watch(_) | Input::Command(_) => {
                (Self::Other, 1)
            }
        }
    }

    /// The kind of a message, and how many of it there are in it; of replies for building, of each event one.
    pub fn of(message: &Message) -> (Self, usize) {
        match message {
            Message::L1Accept { events, .. } => (Self::L1Accept, events.len()),
            Message::L1Result { .. } => (Self::L1Result, 1),
            Message::Assign { .. } => (Self::Assign, 1),
            Message::RoiRequest { .. } => (Self::RoiRequest, 1),
            Message::RoiReply { .. } => (Self::RoiReply, 1),
            Message::L2Result { .. } => (Self::L2Result, 1),
            Message::L2Decision { .. } => (Self::L2Decision, 1),
            Message::Decisions { decisions, .. } => (Self::Decision, decisions.len()),
            Message::Build { events, .. } => (Self::Build, events.len()),
            Message::Push(orders) => (Self::Push, orders.len()),
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
