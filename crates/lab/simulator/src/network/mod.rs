//! Messages over simulated Ethernet: hosts, switches, UDP, TCP and multicast.
//!
//! A [`Network`] owns no events. Its steps go into the queue of the world that uses it, as a variant of the world's own
//! type of event. They come back through [`Network::step`]. Every message has exactly one last [`Outcome`] for each
//! receiver; then what its tag stands for can be freed. Others come before it only where links double frames.
//!
//! ```
//! use simulator::engine::Queue;
//! use simulator::network::{Fate, HostId, Message, Network, Protocol, Step, Topology};
//!
//! enum Event {
//!     Network(Step),
//! }
//!
//! impl From<Step> for Event {
//!     fn from(step: Step) -> Self {
//!         Self::Network(step)
//!     }
//! }
//!
//! let mut network = Network::new(&Topology::star(4), 1).unwrap();
//! let mut queue: Queue<Event> = Queue::new();
//! let message = Message { from: HostId(0), to: HostId(3), len_bytes: 9000, protocol: Protocol::Udp, tag: 7 };
//! network.send(&mut queue, message);
//! while let Some(Event::Network(step)) = queue.pop() {
//!     network.step(&mut queue, step);
//!     while let Some(outcome) = network.next_outcome() {
//!         assert_eq!((outcome.tag, outcome.to, outcome.fate), (7, HostId(3), Fate::Delivered));
//!     }
//! }
//! ```

mod fabric;
mod pieces;
mod tcp;
mod topology;

use std::collections::VecDeque;

use base::random::Random;

use crate::engine::Queue;
use crate::slab::Slab;
use fabric::{Body, Fabric, Frame, Passed};
use tcp::Connections;

pub use fabric::{Counters, Faults};
pub use topology::{Buffer, Group, Link, Port, Switch, SwitchId, Tcp, Topology, TopologyError, Trunk};

/// A network port of a host; a host may have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// How a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// In datagrams of a frame each; the message is lost if one of them is.
    Udp,
    /// In the stream from one port to the other: in order, and again what was lost.
    Tcp,
}

/// A message to send.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The sending port.
    pub from: HostId,
    /// The receiving port.
    pub to: HostId,
    /// Length without headers of the network; may be 0.
    pub len_bytes: u32,
    /// How it travels.
    pub protocol: Protocol,
    /// What the sender calls it.
    pub tag: u64,
}

/// What became of a message at a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The sender's name of the message.
    pub tag: u64,
    /// The sending port.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
    /// Whether it came.
    pub fate: Fate,
    /// Whether copies of it are still on their way, as with [`Faults::duplication`]: the last outcome says that there are none.
    pub more: bool,
}

/// Whether a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its last byte has come, now.
    Delivered,
    /// It will not come.
    Lost(Cause),
}

/// Why a frame or message was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The buffer of a switch had no room: tail drop.
    Buffer,
    /// By chance, on a faulty link.
    Link,
    /// Its receiver found it damaged.
    Damaged,
    /// A link was down.
    Down,
    /// The connection was reset with the message on its way.
    Reset,
}

/// An event of the network, to be given to [`Network::step`] at its time.
#[derive(Clone, Copy, Debug)]
pub struct Step(StepKind);

#[derive(Clone, Copy, Debug)]
enum StepKind {
    /// The last bit of a frame has come to the far end of a lane.
    Frame { lane: u32, frame: u32 },
    /// The earliest time at which a connection may have to send again.
    Retransmission { connection: u32 },
    /// A receiver acknowledges a single segment after this long.
    DelayedAck { connection: u32 },
}

/// Hosts' ports, switches and links, and what is on its way.
#[derive(Debug)]
pub struct Network {
    fabric: Fabric,
    connections: Connections,
    datagrams: Slab<Datagram>,
    groups: Slab<Vec<HostId>>,
    outcomes: VecDeque<Outcome>,
    udp_payload_bytes: u32,
    udp_header_bytes: u32,
}

/// A message in datagrams, to one receiver or a group.
#[derive(Debug)]
struct Datagram {
    tag: u64,
    from: HostId,
    receivers: Vec<Receiver>,
    open: u32,
}

#[derive(Debug)]
struct Receiver {
    to: HostId,
    frames_to_come: u32,
    lost: Option<Cause>,
    /// Of a message in one datagram: how many there are of it besides.
    copies: u32,
}

impl Network {
    /// A network at rest. The seed decides which frames faulty links lose.
    ///
    /// # Errors
    /// What [`Topology::check`] finds.
    pub fn new(topology: &Topology, seed: u64) -> Result<Self, TopologyError> {
        topology.check()?;
        Ok(Self {
            fabric: Fabric::new(topology, Random::new(seed))?,
            connections: Connections::new(topology),
            datagrams: Slab::default(),
            groups: Slab::default(),
            outcomes: VecDeque::new(),
            udp_payload_bytes: topology.mtu_bytes - IP_HEADER_BYTES - topology.udp_header_bytes,
            udp_header_bytes: IP_HEADER_BYTES + topology.udp_header_bytes,
        })
    }

    /// Sends a message.
    ///
    /// # Panics
    /// If a port does not exist.
    pub fn send<E: From<Step>>(&mut self, queue: &mut Queue<E>, message: Message) {
        let Message { from, to, len_bytes, protocol, tag } = message;
        assert!(self.fabric.has(from) && self.fabric.has(to), "{message:?} is between ports of the network");
        if from == to {
            self.outcomes.push_back(Outcome { tag, from, to, fate: Fate::Delivered, more: false });
            return;
        }
        match protocol {
            Protocol::Udp => self.send_datagrams(queue, from, &[to], len_bytes, tag),
            Protocol::Tcp => self.connections.send(&mut self.fabric, queue, message),
        }
    }

    /// Sends a message in datagrams to each of the receivers; switches make the copies.
    ///
    /// # Panics
    /// If a port does not exist, or the sender is a receiver.
    pub fn multicast<E: From<Step>>(
        &mut self,
        queue: &mut Queue<E>,
        from: HostId,
        to: &[HostId],
        len_bytes: u32,
        tag: u64,
    ) {
        assert!(self.fabric.has(from) && to.iter().all(|to| self.fabric.has(*to)), "ports of the network");
        assert!(!to.contains(&from), "{from:?} does not send to itself");
        if !to.is_empty() {
            self.send_datagrams(queue, from, to, len_bytes, tag);
        }
    }

    /// Does what happens now in the network.
    pub fn step<E: From<Step>>(&mut self, queue: &mut Queue<E>, step: Step) {
        match step.0 {
            StepKind::Frame { lane, frame } => self.on_frame(queue, lane, frame),
            StepKind::Retransmission { connection } => {
                self.connections.on_retransmission_timer(&mut self.fabric, queue, connection);
            }
            StepKind::DelayedAck { connection } => {
                self.connections.on_delayed_ack_timer(&mut self.fabric, queue, connection);
            }
        }
    }

    /// Whether something became of a message.
    pub fn has_outcome(&self) -> bool {
        !self.outcomes.is_empty()
    }

    /// The next thing that became of a message. To be asked until there is none, after each call of the others.
    pub fn next_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Resets the connections of a port, both ways, as when its host crashes: the messages on them are lost, those in
    /// datagrams go on.
    pub fn reset(&mut self, host: HostId) {
        self.connections.reset(host, &mut self.outcomes);
    }

    /// Resets the connections between two ports, both ways.
    pub fn reset_between(&mut self, one: HostId, other: HostId) {
        self.connections.reset_between(one, other, &mut self.outcomes);
    }

    /// Sets the faults of the link between a port and its switch, both ways.
    pub fn set_faults(&mut self, host: HostId, faults: Faults) {
        self.fabric.set_faults(host, faults);
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.fabric.counters();
        (counters.tcp_timeouts, counters.tcp_fast_retransmits) = self.connections.retransmissions();
        counters
    }

    /// Whether nothing is on its way: neither frame nor message.
    pub fn is_idle(&self) -> bool {
        self.fabric.is_idle() && self.datagrams.is_empty() && self.groups.is_empty() && self.connections.is_idle()
    }

    fn send_datagrams<E: From<Step>>(
        &mut self,
        queue: &mut Queue<E>,
        from: HostId,
        to: &[HostId],
        len_bytes: u32,
        tag: u64,
    ) {
        let frames = len_bytes.div_ceil(self.udp_payload_bytes).max(1);
        let receivers =
            to.iter().map(|to| Receiver { to: *to, frames_to_come: frames, lost: None, copies: 0 }).collect();
        let open = u32::try_from(to.len()).expect("fewer receivers than ports");
        let datagram = self.datagrams.insert(Datagram { tag, from, receivers, open });
        let mut left_bytes = len_bytes;
        for _ in 0..frames {
            let payload_bytes = left_bytes.min(self.udp_payload_bytes);
            left_bytes -= payload_bytes;
            let bytes = payload_bytes + self.udp_header_bytes;
            let body = if let [to] = to {
                Body::Datagram { datagram, to: *to, is_all: frames == 1 }
            } else {
                Body::Multicast { datagram, group: self.groups.insert(to.to_vec()) }
            };
            let passed = self.fabric.send(queue, from, Frame::new(from, bytes, body));
            self.on_passed(queue, passed);
        }
    }

    fn on_frame<E: From<Step>>(&mut self, queue: &mut Queue<E>, lane: u32, frame: u32) {
        let passed = self.fabric.on_frame(queue, lane, frame, &mut self.groups);
        self.on_passed(queue, passed);
    }

    fn on_passed<E: From<Step>>(&mut self, queue: &mut Queue<E>, passed: Passed) {
        while let Some((datagram, to)) = self.fabric.next_doubled() {
            self.datagrams[datagram].receiver(to).copies += 1;
        }
        match passed {
            Passed::On => {}
            Passed::Here(frame) => self.on_arrival(queue, &frame),
            Passed::Lost(frame, cause) => self.on_loss(&frame, cause),
            Passed::Copied(lost) => lost.iter().for_each(|(frame, cause)| self.on_loss(frame, *cause)),
        }
    }

    fn on_arrival<E: From<Step>>(&mut self, queue: &mut Queue<E>, frame: &Frame) {
        match frame.body {
            Body::Datagram { datagram, to, .. } => self.account(datagram, to, None),
            Body::Again { .. } => {}
            Body::Multicast { datagram, group } => {
                for to in self.groups.remove(group) {
                    self.account(datagram, to, None);
                }
            }
            Body::Segment(segment) => {
                self.connections.on_segment(&mut self.fabric, queue, segment, &mut self.outcomes);
            }
            Body::Ack(ack) => self.connections.on_ack(&mut self.fabric, queue, ack),
        }
    }

    fn on_loss(&mut self, frame: &Frame, cause: Cause) {
        match frame.body {
            Body::Datagram { datagram, to, .. } => self.account(datagram, to, Some(cause)),
            Body::Multicast { datagram, group } => {
                for to in self.groups.remove(group) {
                    self.account(datagram, to, Some(cause));
                }
            }
            // Its sender finds out by itself.
            Body::Segment(_) | Body::Ack(_) | Body::Again { .. } => {}
        }
    }

    /// One frame of a datagram came to a receiver, or will not.
    fn account(&mut self, index: u32, to: HostId, lost: Option<Cause>) {
        let datagram = &mut self.datagrams[index];
        let (tag, from) = (datagram.tag, datagram.from);
        let receiver = datagram.receiver(to);
        if receiver.copies > 0 {
            receiver.copies -= 1;
            if lost.is_none() {
                self.outcomes.push_back(Outcome { tag, from, to, fate: Fate::Delivered, more: true });
            }
            return;
        }
        receiver.lost = receiver.lost.or(lost);
        receiver.frames_to_come -= 1;
        if receiver.frames_to_come > 0 {
            return;
        }
        let fate = receiver.lost.map_or(Fate::Delivered, Fate::Lost);
        self.outcomes.push_back(Outcome { tag, from, to, fate, more: false });
        datagram.open -= 1;
        if datagram.open == 0 {
            self.datagrams.remove(index);
        }
    }
}

impl Datagram {
    fn receiver(&mut self, to: HostId) -> &mut Receiver {
        self.receivers.iter_mut().find(|receiver| receiver.to == to).expect("frames go to receivers")
    }
}

const IP_HEADER_BYTES: u32 = 20;
