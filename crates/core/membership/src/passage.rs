//! A connection behind its proofs: what it lets through, and to whom.

use core::fmt;

use base::ids::NodeId;
use base::time::Time;
use dataflow::component::PeerState;
use dataflow::message::{Command, DatagramAddresses, Envelope, Message};
use dataflow::node::RUN_CONTROL;

use crate::challenge::Member;

/// Names a connection of a process; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub usize);

/// A kind of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// Over a network.
    Tcp,
    /// Through shared memory.
    Shm,
}

/// One of the connections between two processes: its kind, and by which network port of a read-out system it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strand {
    /// What it is.
    pub medium: Medium,
    /// The port, counted from 0.
    pub port: Option<usize>,
}

impl fmt::Display for Strand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.medium {
            Medium::Tcp => "TCP",
            Medium::Shm => "shared memory",
        })?;
        self.port.iter().try_for_each(|port| write!(f, ", network port {}", port + 1))
    }
}

/// Which messages to a node take a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All for which nothing else is chosen.
    All,
    /// Those of components; run control keeps to its own.
    Data,
    /// Those that are chosen to travel so.
    Strand(Strand),
}

/// A connection whose ends have proved who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Who has proved to be at the other end.
    peer: Member,
    /// Whether it has said what it comes for: its messages go to the components.
    is_open: bool,
}

/// For whom a message is that came over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// Whoever sees to joining.
    Joining,
    /// A component.
    Component,
    /// Nobody: it says that it comes from another than has proved to be there.
    Nobody,
}

impl Passage {
    /// Behind the proofs.
    pub const fn new(peer: Member) -> Self {
        Self { peer, is_open: false }
    }

    /// The peer has said what it comes for.
    pub const fn open(&mut self) {
        self.is_open = true;
    }

    /// Which application has proved to be at the other end.
    pub const fn peer(&self) -> NodeId {
        self.peer.0
    }

    /// Whoever has proved to be at the other end is this member from now on.
    pub const fn rename(&mut self, peer: Member) {
        self.peer = peer;
    }

    /// For whom a message is. Run control proves for all applications in its process.
    pub fn recipient(&self, envelope: &Envelope, message: &Message) -> Recipient {
        let is_its_own = self.peer == (envelope.from, envelope.from_incarnation) || self.peer.0 == RUN_CONTROL;
        match (is_its_own, self.is_open) {
            (false, _) => Recipient::Nobody,
            (true, true) if !is_about_joining(message) => Recipient::Component,
            (true, _) => Recipient::Joining,
        }
    }
}

fn is_about_joining(message: &Message) -> bool {
    matches!(
        message,
        Message::Join { .. }
            | Message::Welcome { .. }
            | Message::Peers(_)
            | Message::Greet { .. }
            | Message::Ready { .. }
            | Message::Failed(_)
            | Message::Lost { .. }
            | Message::Gone(_)
    ) || matches!(message, Message::Command(Command::Exit | Command::Disconnect))
}

/// What a driver does at once for whoever sees to joining.
pub trait Driver {
    /// Says something over a connection, if it is still there.
    fn say(&mut self, link: LinkId, envelope: Envelope, message: Message);
    /// The peer has said what it comes for: its messages go to the components from now on.
    fn open(&mut self, link: LinkId);
    /// Ends a connection.
    fn close(&mut self, link: LinkId);
    /// Ends a connection for what came over it, and counts that.
    fn refuse(&mut self, link: LinkId);
    /// Hands a message to a component, or to run control.
    fn deliver(&mut self, envelope: Envelope, message: Message);
    /// Messages to a node take this connection from now on.
    fn route(&mut self, node: NodeId, link: LinkId, way: Way);
    /// An application is in this life from now on. A driver that keeps no lives has nothing to do.
    fn set_life(&mut self, _member: Member) {}
    /// An application takes datagrams there; false if these are no addresses that it can have. Without datagrams all are.
    fn meet(&mut self, _member: Member, _at: &DatagramAddresses) -> bool {
        true
    }
    /// Where this process takes datagrams; by default nowhere.
    fn datagram_addresses(&self) -> DatagramAddresses {
        DatagramAddresses::default()
    }
    /// Tells the components here that talk to it about an application elsewhere.
    fn tell(&mut self, node: NodeId, state: PeerState);
    /// The time.
    fn now(&self) -> Time;
}
