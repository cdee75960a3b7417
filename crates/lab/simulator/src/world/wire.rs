//! How messages travel between applications.

use std::time::Duration;

use base::ids::NodeId;
use dataflow::message::{DataReply, Envelope, Message};

use crate::network::{HostId, Network};
use crate::slab::Slab;

/// The way of messages.
pub enum Wire {
    /// Every pair alike, with faults drawn for each message; `slow` says which pairs take much longer than the others.
    Links {
        /// What every pair has.
        links: Links,
        /// Fraction of pairs that are slow.
        slow: f64,
        /// What carries data for building to each event builder; without it there is no bound.
        port: Option<Port>,
        /// Of messages that may be lost, the types that have a connection of their own for each pair. It keeps order in
        /// itself only and loses nothing; all others go by themselves.
        connected: TypeSet,
    },
    /// A simulated network.
    Ethernet(Box<Ethernet>),
}

/// A network, and where applications are in it.
pub struct Ethernet {
    pub(super) network: Network,
    /// By application.
    pub(super) ports: Vec<HostId>,
    /// By application: the port for what goes between two that have one.
    second_ports: Vec<Option<HostId>>,
    /// By application: whether it has links of its own to all others, beside the network.
    pub(super) direct: Vec<bool>,
    pub(super) datagrams: Datagrams,
    pub(super) strays: Strays,
    pub(super) flights: Slab<Flight>,
}

/// Messages in datagrams that come once more and must be refused, such as those that a switch still holds of what was there before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Strays {
    /// Probability that a message comes again as of a former life of its sender.
    pub stale: f64,
    /// Probability that it comes again as of another run.
    pub wrong_run: f64,
}

/// Which messages travel in datagrams; all others have a connection for each pair of hosts `[EB2007 §II-B.4]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Requests for building.
    pub event_request: bool,
    /// Replies to them.
    pub event_reply: bool,
    /// Data that nobody asked for.
    pub pushed: bool,
    /// Byte credits for them.
    pub credit: bool,
    /// Orders to push, by multicast.
    pub push: bool,
    /// Requests of level 2.
    pub roi_request: bool,
    /// Replies to them.
    pub roi_reply: bool,
    /// What level 2 collected.
    pub collected: bool,
    /// Clears, by multicast.
    pub clear: bool,
}

/// A message on its way.
pub(super) struct Flight {
    pub(super) message: Message,
    pub(super) to: Receivers,
}

pub(super) enum Receivers {
    One(Envelope),
    /// With how many have still to hear.
    Many(Vec<Envelope>, usize),
}

impl Ethernet {
    /// A network with the port of each application, in their order.
    pub fn new(network: Network, ports: Vec<HostId>, datagrams: Datagrams) -> Self {
        let direct = vec![false; ports.len()];
        let second_ports = vec![None; ports.len()];
        Self { network, ports, second_ports, direct, datagrams, strays: Strays::default(), flights: Slab::default() }
    }

    /// The same, with a second port for an application: messages between two that have one take it, but for multicasts.
    #[must_use]
    pub fn with_second_port(mut self, node: NodeId, port: HostId) -> Self {
        self.second_ports[usize::from(node.0) - 1] = Some(port);
        self
    }

    /// The same, with messages that come where they do not belong.
    #[must_use]
    pub fn with_strays(self, strays: Strays) -> Self {
        Self { strays, ..self }
    }

    /// The same, with links of its own for an application, as level 1 has them: they take 20 to 40 µs and never fill.
    #[must_use]
    pub fn with_direct(mut self, node: NodeId) -> Self {
        self.direct[usize::from(node.0) - 1] = true;
        self
    }

    pub(super) fn is_direct(&self, one: NodeId, other: NodeId) -> bool {
        [one, other].into_iter().any(|node| self.direct[usize::from(node.0) - 1])
    }

    pub(super) fn port(&self, node: NodeId) -> HostId {
        self.ports[usize::from(node.0) - 1]
    }

    /// The ports that messages from one to the other leave from and come to.
    pub(super) fn ports_between(&self, from: NodeId, to: NodeId) -> (HostId, HostId) {
        let [second_from, second_to] = [from, to].map(|node| self.second_ports[usize::from(node.0) - 1]);
        second_from.zip(second_to).unwrap_or((self.port(from), self.port(to)))
    }

    /// Resets the connections of an application.
    pub(super) fn reset(&mut self, node: NodeId) {
        let ports = [Some(self.port(node)), self.second_ports[usize::from(node.0) - 1]];
        ports.into_iter().flatten().for_each(|port| self.network.reset(port));
    }
}

impl Datagrams {
    /// Everything that may be lost.
    pub const ALL: Self = Self {
        event_request: true,
        event_reply: true,
        pushed: true,
        credit: true,
        push: true,
        roi_request: true,
        roi_reply: true,
        collected: true,
        clear: true,
    };

    pub(super) fn carry(self, message: &Message) -> bool {
        match message {
            Message::EventRequest { .. } => self.event_request,
            Message::EventReply { replies, .. } if is_pushed(replies) => self.pushed,
            Message::EventReply { .. } => self.event_reply,
            Message::Credit(_) => self.credit,
            Message::RoiRequest { .. } => self.roi_request,
            Message::RoiReply { .. } => self.roi_reply,
            Message::Collected { .. } => self.collected,
            _ => false,
        }
    }

    /// Whether a message to all read-out systems is sent once.
    pub(super) fn carry_to_all(self, message: &Message) -> bool {
        match message {
            Message::Push(_) => self.push,
            _ => self.clear,
        }
    }
}

/// Some of the types of messages that may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TypeSet(u16);

impl TypeSet {
    /// Those whose bits are set, in an order of their own.
    pub const fn of_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn has(self, message: &Message) -> bool {
        Self::number(message).is_some_and(|number| self.0 >> number & 1 == 1)
    }

    /// The number of a type, if it is one that may be lost.
    pub(super) fn number(message: &Message) -> Option<u16> {
        Some(match message {
            Message::EventRequest { .. } => 0,
            Message::EventReply { replies, .. } if is_pushed(replies) => 1,
            Message::EventReply { .. } => 2,
            Message::Credit(_) => 3,
            Message::Push(_) => 4,
            Message::RoiRequest { .. } => 5,
            Message::RoiReply { .. } => 6,
            Message::Collected { .. } => 7,
            Message::Clear { .. } => 8,
            Message::ClearAsk(_) => 9,
            _ => return None,
        })
    }

    /// How many types there are.
    pub const COUNT: u32 = 10;
}

/// Of those that are asked for as well, the first says it.
fn is_pushed(replies: &[DataReply]) -> bool {
    replies.first().is_some_and(|reply| reply.request == 0)
}

/// A port of a switch: one link behind one buffer, which loses what it has no room for `[ATM1997 §IV]`.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// What the link carries.
    pub bytes_per_s: u64,
    /// What the buffer holds.
    pub buffer_bytes: u64,
}

/// A network that treats every pair alike, and what it does to messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// The least that a message takes; it may take twice as long.
    pub latency: Duration,
    /// Probability that a message that may be lost is lost.
    pub loss: f64,
    /// Probability that such a message arrives twice.
    pub duplication: f64,
    /// Probability that such a message is delayed, and overtaken by others.
    pub delay: f64,
    /// Probability that such a message arrives with wrong bits, which its checksum tells.
    pub corruption: f64,
    /// Probability that such a message is seen again in another run, or from a former life of its sender.
    pub stray: f64,
    /// The longest delay.
    pub delay_max: Duration,
}

impl Links {
    /// Nothing is lost, doubled, delayed or damaged.
    pub const fn perfect() -> Self {
        Self {
            latency: Duration::from_micros(20),
            loss: 0.0,
            duplication: 0.0,
            delay: 0.0,
            corruption: 0.0,
            stray: 0.0,
            delay_max: Duration::from_millis(30),
        }
    }

    /// Whether nothing goes wrong.
    pub fn is_perfect(&self) -> bool {
        self.loss + self.duplication + self.delay + self.corruption + self.stray == 0.0
    }

    /// The same links without anything going wrong.
    #[must_use]
    pub const fn healed(self) -> Self {
        Self { loss: 0.0, duplication: 0.0, delay: 0.0, corruption: 0.0, stray: 0.0, ..self }
    }
}
