//! The peers of a process: it finds them, loses them, and finds their next lives.

use base::ids::{Incarnation, NodeId, Role};
use dataflow::component::PeerState;
use dataflow::message::{DatagramAddresses, Envelope, Message, PeerPlace};
use dataflow::node::RUN_CONTROL;
use transport::scheduler::Context;

use super::{Member, Place};
use crate::host::{FIRST_LIFE, Host, Kind, LinkId, Part, PeerAddress};
use assembly::returns;

/// A peer to which there is a connection.
pub(super) struct Peer {
    pub(super) node: NodeId,
    /// The one that is connected, or to be connected.
    pub(super) life: Incarnation,
    pub(super) link: LinkId,
    /// Both have greeted.
    pub(super) is_up: bool,
}

/// A further connection to a life of a peer.
pub(super) struct FurtherLink {
    node: NodeId,
    life: Incarnation,
    /// Which of the connections between the two it is.
    index: u16,
    part: Part,
    pub(super) link: LinkId,
}

impl Member {
    /// Connects to the peers before this one in the order of the data; those behind it connect to us. To the network ports of
    /// read-out systems those connect who ask them.
    pub(super) fn on_peers(&mut self, context: &mut Context<'_, Host>, places: &[PeerPlace]) -> Result<(), String> {
        let Some(Place { assembly, node, life }) = &self.place else { return Err("peers before a place".into()) };
        let (node, is_first) = (*node, *life == FIRST_LIFE && self.awaited.is_none());
        let is_peer = |place: &&PeerPlace| place.node != node && assembly.talk(place.node, node);
        let places: Vec<&PeerPlace> = places.iter().filter(is_peer).collect();
        self.awaited.get_or_insert_default().extend(places.iter().map(|place| place.node));
        for place in places {
            let known = self.peers.iter().find(|peer| peer.node == place.node).map(|peer| peer.life);
            if known.is_some_and(|life| life > place.life) {
                continue;
            }
            self.drop_further(context.shared, place.node, |life| life < place.life);
            if known.is_some_and(|life| life < place.life) {
                self.part(context, place.node, PeerState::Down);
            }
            if let Err(reason) = self.connect(context, place) {
                if is_first {
                    return Err(reason);
                }
                self.part(context, place.node, PeerState::Down);
                self.tell_lost(context.shared, place.node, place.life, &reason);
            }
        }
        Ok(())
    }

    fn connect(&mut self, context: &mut Context<'_, Host>, place: &PeerPlace) -> Result<(), String> {
        let address: PeerAddress = place.address.parse().map_err(|error| format!("{error}"))?;
        let Some(Place { node, .. }) = &self.place else { return Err("peers before a place".into()) };
        context.shared.set_life(place.node, place.life);
        let parts = context.shared.carriers().connections(*node, place.node);
        // A peer that connects to us may have done so already.
        let is_behind = place.node < *node && self.peers.iter().all(|peer| peer.node != place.node);
        let is_by_port = |other: &FurtherLink| other.node == place.node && other.part.port.is_some();
        let asks = self.role() != Some(Role::Ros) && !self.further.iter().any(is_by_port);
        let ours = |part: &Part| if part.port.is_some() { asks } else { is_behind };
        let to = ((place.node, place.life), &address);
        for (index, part) in (0..).zip(parts).filter(|(_, part)| ours(part)) {
            let link = context.shared.links.connect(to, part, context.now, context.poller, &self.waker);
            let link = link.map_err(|error| error.to_string())?;
            if index == 0 {
                self.peers.push(Peer { node: place.node, life: place.life, link, is_up: false });
            } else {
                self.further.push(FurtherLink { node: place.node, life: place.life, index, part, link });
            }
        }
        Ok(())
    }

    /// Both ends of a connection have proved who they are: the one that made it begins.
    pub(super) fn greet_first(&self, host: &mut Host, link: LinkId) {
        let first = self.peers.iter().filter(|peer| peer.link == link).map(|peer| (peer.node, 0));
        let further = self.further.iter().filter(|further| further.link == link);
        let further = further.map(|further| (further.node, further.index));
        let parent = self.to_parent.iter().filter(|(ours, _)| *ours == link).map(|_| (RUN_CONTROL, 0));
        if let Some((node, index)) = first.chain(further).chain(parent).next() {
            self.greet(host, node, link, index);
        }
    }

    fn role(&self) -> Option<Role> {
        self.place.as_ref().and_then(|place| place.assembly.application(place.node)).map(|app| app.role)
    }

    fn greet(&self, host: &mut Host, peer: NodeId, link: LinkId, part: u16) {
        let Some(Place { node, .. }) = &self.place else { return };
        let envelope = host.envelope(*node, peer);
        let datagrams = Box::new(host.links.datagram_addresses());
        host.send_over(link, &envelope, &Message::Greet { part, datagrams });
    }

    /// A peer says who it is. The one that was connected to answers.
    pub(super) fn on_greet(
        &mut self,
        context: &mut Context<'_, Host>,
        link: LinkId,
        envelope: &Envelope,
        index: u16,
        datagrams: &DatagramAddresses,
    ) {
        let Some(Place { assembly, node, .. }) = &self.place else { return context.shared.links.close(link) };
        let (node, peer, life) = (*node, envelope.from, envelope.from_incarnation);
        if let Some((_, in_parent)) = self.to_parent.as_ref().filter(|(ours, _)| *ours == link) {
            let host = &mut *context.shared;
            host.links.open(link);
            for &other in in_parent {
                self.peers.push(Peer { node: other, life: FIRST_LIFE, link, is_up: true });
                host.route_over(other, link);
                for (kind, link) in [(Kind::Tcp, self.control), (Kind::Shm, link)] {
                    host.route_part_over(other, Part { kind, port: None }, link);
                }
                host.tell_peer(context.now, node, other, PeerState::Up(FIRST_LIFE));
            }
            return;
        }
        let known = assembly.application(peer).is_some() && assembly.talk(peer, node) && peer != node;
        if !known || context.shared.links.is_open(link) {
            return context.shared.refuse(link);
        }
        let part = context.shared.carriers().connections(node, peer).get(usize::from(index)).copied();
        let Some(part) =
            part.filter(|part| context.shared.links.part(link).is_some_and(|found| found.kind == part.kind))
        else {
            return context.shared.refuse(link);
        };
        if index > 0 {
            return self.on_further_greet(context, link, (peer, life), (index, part));
        }
        match self.peers.iter().find(|other| other.node == peer) {
            Some(ours) if ours.link == link => {}
            // Its former life may not be known to be over.
            Some(ours) if ours.life < life => {
                self.part(context, peer, PeerState::Down);
                self.answer(context.shared, link, peer, life);
            }
            Some(_) => return context.shared.refuse(link),
            None => self.answer(context.shared, link, peer, life),
        }
        self.come_up(context, link, (peer, life), datagrams);
    }

    /// A further connection to a peer, maybe before the first; the one that was connected to answers.
    fn on_further_greet(
        &mut self,
        context: &mut Context<'_, Host>,
        link: LinkId,
        (peer, life): (NodeId, Incarnation),
        (index, part): (u16, Part),
    ) {
        let known = self.peers.iter().find(|other| other.node == peer).map(|other| other.life);
        if known.is_some_and(|known| known < life) {
            self.part(context, peer, PeerState::Down);
        }
        let host = &mut *context.shared;
        let mut further = self.further.iter().filter(|further| further.node == peer);
        let is_of_former_life = host.life(peer) > life || further.any(|further| further.life > life);
        self.drop_further(host, peer, |other| other < life);
        if is_of_former_life || !host.route_part_over(peer, part, link) {
            return host.refuse(link);
        }
        host.links.open(link);
        if self.further.iter().all(|further| further.link != link) {
            self.further.push(FurtherLink { node: peer, life, index, part, link });
            self.greet(context.shared, peer, link, index);
        }
    }

    /// Ends the further connections to these lives of a peer.
    fn drop_further(&mut self, host: &mut Host, node: NodeId, lives: impl Fn(Incarnation) -> bool) {
        for gone in self.further.extract_if(.., |further| further.node == node && lives(further.life)) {
            host.links.close(gone.link);
            host.forget_part(node, gone.link);
        }
    }

    fn answer(&mut self, host: &mut Host, link: LinkId, node: NodeId, life: Incarnation) {
        self.peers.push(Peer { node, life, link, is_up: false });
        host.set_life(node, life);
        self.greet(host, node, link, 0);
    }

    fn come_up(
        &mut self,
        context: &mut Context<'_, Host>,
        link: LinkId,
        (node, life): (NodeId, Incarnation),
        datagrams: &DatagramAddresses,
    ) {
        let host = &mut *context.shared;
        if !host.links.meet(node, life, datagrams) {
            self.peers.retain(|peer| peer.link != link);
            self.drop_further(host, node, |_| true);
            return host.refuse(link);
        }
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.link == link) {
            (peer.life, peer.is_up) = (life, true);
        }
        host.set_life(node, life);
        host.links.open(link);
        host.route_over(node, link);
        if let Some(Place { node: here, .. }) = &self.place {
            host.tell_peer(context.now, *here, node, PeerState::Up(life));
        }
    }

    /// A connection is gone, and who was behind it; run control is told, and knows whether it died.
    pub(super) fn on_peer_lost(&mut self, context: &mut Context<'_, Host>, link: LinkId, reason: &str) {
        context.shared.links.close(link);
        if self.done {
            return;
        }
        let behind_further = self.further.iter().find(|further| further.link == link).map(|further| further.node);
        if let Some(node) = behind_further {
            self.drop_further(context.shared, node, |_| true);
        }
        let behind = |peer: &Peer| peer.link == link || Some(peer.node) == behind_further;
        let lost: Vec<(NodeId, Incarnation)> =
            self.peers.iter().filter(|peer| behind(peer)).map(|peer| (peer.node, peer.life)).collect();
        for (node, life) in lost {
            let state = if self.may_return(node) { PeerState::Down } else { PeerState::Gone };
            self.part(context, node, state);
            self.tell_lost(context.shared, node, life, reason);
        }
    }

    fn tell_lost(&mut self, host: &mut Host, node: NodeId, life: Incarnation, reason: &str) {
        let Some(place) = &self.place else { return };
        if let Some(awaited) = self.awaited.as_mut().filter(|_| place.life != FIRST_LIFE) {
            awaited.retain(|other| *other != node);
        }
        let envelope = host.envelope(place.node, RUN_CONTROL);
        host.send_over(self.control, &envelope, &Message::Lost { node, life, reason: reason.to_owned() });
    }

    /// Run control says that a peer will not return.
    pub(super) fn on_gone(&mut self, context: &mut Context<'_, Host>, node: NodeId) {
        self.part(context, node, PeerState::Gone);
        if let Some(awaited) = &mut self.awaited {
            awaited.retain(|other| *other != node);
        }
    }

    /// A peer is not there any more, or that life of it.
    fn part(&mut self, context: &mut Context<'_, Host>, node: NodeId, state: PeerState) {
        let place = self.peers.iter().position(|peer| peer.node == node);
        let life = place.map(|place| self.peers[place].life);
        let was_up = place.is_some_and(|place| {
            let peer = self.peers.swap_remove(place);
            context.shared.links.close(peer.link);
            peer.is_up
        });
        // Those of the next life may be there before its first connection.
        self.drop_further(context.shared, node, |further| life.is_none_or(|life| further <= life));
        let Some(Place { assembly, .. }) = &self.place else { return };
        if was_up || state == PeerState::Gone {
            context.shared.tell_all(context.now, node, state, |a, b| assembly.talk(a, b));
        }
    }

    fn may_return(&self, node: NodeId) -> bool {
        let Some(Place { assembly, .. }) = &self.place else { return false };
        let is_elsewhere = self.to_parent.as_ref().is_none_or(|(_, in_parent)| !in_parent.contains(&node));
        let role = assembly.application(node).map(|app| app.role);
        is_elsewhere && role.is_some_and(|role| returns(role, &assembly.partition))
    }
}
