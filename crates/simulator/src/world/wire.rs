//! How messages travel between applications.

use dataflow::ids::NodeId;
use dataflow::message::{Envelope, Message};

use super::setup::Links;
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
        roi_request: true,
        roi_reply: true,
        collected: true,
        clear: true,
    };

    pub(super) fn carry(self, message: &Message) -> bool {
        match message {
            Message::EventRequest { .. } => self.event_request,
            Message::EventReply { .. } => self.event_reply,
            Message::RoiRequest { .. } => self.roi_request,
            Message::RoiReply { .. } => self.roi_reply,
            Message::Collected { .. } => self.collected,
            _ => false,
        }
    }
}

/// A port of a switch: one link behind one buffer, which loses what it has no room for `[ATM1997 §IV]`.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// What the link carries.
    pub bytes_per_s: u64,
    /// What the buffer holds.
    pub buffer_bytes: u64,
}
