//! What this process does for whoever sees to joining, as run control or as an application.

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use dataflow::component::PeerState;
use dataflow::message::{DatagramAddresses, Envelope, Message};
use membership::challenge::Member;
use membership::passage::{Driver, LinkId, Way};

use driver::Host;

/// Does what is to be done at once; `side` is what only one of the two can do.
pub(crate) struct Hands<'a, Side> {
    pub(crate) now: Time,
    pub(crate) host: &'a mut Host,
    pub(crate) side: Side,
}

/// Knows which applications talk to each other.
pub(crate) trait KnowsTalk {
    /// Whether these do.
    fn talk(&self, one: NodeId, other: NodeId) -> bool;
}

impl<Side: KnowsTalk> Driver for Hands<'_, Side> {
    fn say(&mut self, link: LinkId, envelope: Envelope, message: Message) {
        self.host.send_over(link, &envelope, &message);
    }

    fn open(&mut self, link: LinkId) {
        self.host.links.open(link);
    }

    fn close(&mut self, link: LinkId) {
        self.host.close(link);
    }

    fn refuse(&mut self, link: LinkId) {
        self.host.refuse(link);
    }

    fn deliver(&mut self, envelope: Envelope, message: Message) {
        self.host.deliver(self.now, &envelope, message);
    }

    fn route(&mut self, node: NodeId, link: LinkId, way: Way) {
        match way {
            Way::All => self.host.route_over(node, link),
            Way::Data => self.host.route_data_over(node, link),
            Way::Strand(strand) => self.host.route_strand_over(node, strand, link),
        }
    }

    fn set_life(&mut self, (node, life): Member) {
        self.host.set_life(node, life);
    }

    fn meet(&mut self, (node, life): (NodeId, Incarnation), at: &DatagramAddresses) -> bool {
        self.host.links.meet(node, life, at)
    }

    fn datagram_addresses(&self) -> DatagramAddresses {
        self.host.links.datagram_addresses()
    }

    fn tell(&mut self, node: NodeId, state: PeerState) {
        let Self { now, host, side } = self;
        host.tell_all(*now, node, state, |one, other| side.talk(one, other));
    }

    fn now(&self) -> Time {
        self.now
    }
}
