//! An application's side of joining: its place in the run, and its peers as they come, are lost, and return.
//!
//! Of two peers the one with the higher node id connects; to the network ports of a read-out system those connect who ask it.
//! A connection belongs to one life of a peer: what comes from a former life than the one that is known is turned away.
//! When a run is over it joins again, over the same connection to run control.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base::ids::{Incarnation, NodeId, RunNumber};
use base::time::Time;
use dataflow::component::PeerState;
use dataflow::message::{Command, DatagramAddresses, Envelope, Message, PeerPlace};
use dataflow::node::RUN_CONTROL;

use crate::challenge::Member;
use crate::passage::{Driver, LinkId, Medium, Strand, Way};

/// Who joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The run that it joins, if it cannot have several.
    pub run: RunNumber,
    /// Which application, in which life.
    pub member: Member,
    /// `sfi-1`.
    pub name: String,
    /// Where its peers reach it.
    pub address: String,
    /// Where run control listens.
    pub control: String,
    /// The life that run control is in.
    pub control_life: Incarnation,
}

/// What the configuration says of an application's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Those that it talks to and that have a process of their own.
    pub peers: BTreeMap<NodeId, Ties>,
    /// Those that it talks to in the process of run control.
    pub in_parent: Vec<NodeId>,
    /// Whether it has a connection of its own to these.
    pub shares: bool,
    /// Whether it is the one that connects to network ports.
    pub asks: bool,
    /// How long it goes on without run control, which may come back.
    pub patience: Duration,
}

/// What binds two applications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ties {
    /// Their connections; the first carries what must keep its order.
    pub strands: Vec<Strand>,
    /// Whether the peer is started again when it dies.
    pub returns: bool,
}

/// What run control says to one that has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The configuration, as TOML.
    pub configuration: String,
    /// Applications in the process of run control.
    pub hosted: Vec<NodeId>,
    /// Source identifiers of the ROBs of each ROS.
    pub robs: Vec<Vec<u32>>,
}

/// What a driver does for an application that joins.
pub trait ParticipantDriver: Driver {
    /// Makes a connection to a member that listens at this address.
    ///
    /// # Errors
    /// There is no way to it, for this reason.
    fn connect(&mut self, to: Member, address: &str, strand: Strand) -> Result<LinkId, String>;
    /// Puts the component together, opens the connection to run control for it, and says what its place is.
    ///
    /// # Errors
    /// It cannot take part, for this reason.
    fn take_place(&mut self, welcome: Welcome, control: LinkId) -> Result<Place, String>;
    /// Gives up all that it has of a run and ends all connections but that to run control. From now on it is in its first life, and
    /// proves that it belongs to the next run.
    fn leave_place(&mut self, control: LinkId);
    /// Run control is back: the component says again what it must not miss. A driver whose run control never comes back has nothing to do.
    fn say_again(&mut self) {}
    /// What a connection is, if it is there.
    fn medium(&self, link: LinkId) -> Option<Medium>;
}

/// An application's side of joining.
pub struct Participant {
    identity: Identity,
    /// As run control names it, once there is a place in it.
    run: RunNumber,
    control: LinkId,
    place: Option<Place>,
    /// A connection of its own to the components in the parent.
    to_parent: Option<ToParent>,
    /// Peers that have to be connected before we are ready; `None` before their addresses are known.
    awaited: Option<Vec<NodeId>>,
    peers: Vec<Peer>,
    /// Further connections to them.
    further: Vec<FurtherLink>,
    /// The newest life of each that was heard of.
    lives: BTreeMap<NodeId, Incarnation>,
    /// The newest life of each that is over: a connection to it was lost.
    over: BTreeMap<NodeId, Incarnation>,
    is_ready: bool,
    /// It has had a run before the present one.
    was_in_run: bool,
    end: Option<End>,
    is_alone: bool,
    /// It goes on without run control until then.
    alone_until: Option<Time>,
    /// Connections that were lost in this run, as run control was told.
    lost: Vec<Message>,
}

/// How it came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Run control said so.
    Dismissed,
    /// It cannot take part, for this reason.
    Refused(String),
    /// Run control is gone.
    Orphaned,
}

struct ToParent {
    link: LinkId,
    is_open: bool,
}

/// A peer to which there is a connection.
struct Peer {
    node: NodeId,
    /// The one that is connected, or to be connected.
    life: Incarnation,
    link: LinkId,
    /// Both have greeted.
    is_up: bool,
}

/// A further connection to a life of a peer.
struct FurtherLink {
    node: NodeId,
    life: Incarnation,
    /// Which of the connections between the two it is.
    index: u16,
    strand: Strand,
    link: LinkId,
    is_open: bool,
}

impl Participant {
    /// Connects to run control.
    ///
    /// # Errors
    /// There is no way to it, for this reason.
    pub fn join(driver: &mut dyn ParticipantDriver, identity: Identity) -> Result<Self, String> {
        let strand = Strand { medium: Medium::Tcp, port: None };
        let control = driver.connect((RUN_CONTROL, identity.control_life), &identity.control, strand)?;
        Ok(Self {
            run: identity.run,
            identity,
            control,
            place: None,
            to_parent: None,
            awaited: None,
            peers: Vec::new(),
            further: Vec::new(),
            lives: BTreeMap::new(),
            over: BTreeMap::new(),
            is_ready: false,
            was_in_run: false,
            end: None,
            is_alone: false,
            alone_until: None,
            lost: Vec::new(),
        })
    }

    /// How it came to an end, if it did: what was said last has still to go out.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Whether run control is gone: nobody hears what is said to it.
    pub fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Whether it has a place in the run.
    pub fn has_place(&self) -> bool {
        self.place.is_some()
    }

    /// Whether it has said that it is connected to all its peers.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The life of a peer that it is connected to.
    pub fn knows(&self, node: NodeId) -> Option<Incarnation> {
        self.peers.iter().find(|peer| peer.node == node && peer.is_up).map(|peer| peer.life)
    }

    /// Both ends of a connection have proved who they are: the one that made it begins.
    pub fn on_proven(&self, driver: &mut dyn ParticipantDriver, link: LinkId) {
        if link == self.control {
            return self.say_who(driver);
        }
        let first = self.peers.iter().filter(|peer| peer.link == link).map(|peer| (peer.node, 0));
        let further = self.further.iter().filter(|further| further.link == link);
        let further = further.map(|further| (further.node, further.index));
        let parent = self.to_parent.iter().filter(|parent| parent.link == link).map(|_| (RUN_CONTROL, 0));
        if let Some((node, index)) = first.chain(further).chain(parent).next() {
            self.greet(driver, node, link, index);
        }
    }

    /// A message that came over a connection of which the peer has proved who it is, and which says that it comes from there.
    pub fn on_message(
        &mut self,
        driver: &mut dyn ParticipantDriver,
        link: LinkId,
        envelope: Envelope,
        message: Message,
    ) {
        let from_control = link == self.control;
        if matches!(self.end, Some(End::Refused(_) | End::Orphaned)) {
            return;
        }
        match message {
            Message::Welcome { configuration, hosted, robs, datagrams } if from_control && self.place.is_none() => {
                let welcome = Welcome { configuration, hosted, robs };
                self.run = envelope.run;
                let welcomed = self.on_welcome(driver, welcome, &datagrams);
                self.report_failure(driver, welcomed);
            }
            Message::Peers(peers) if from_control => {
                let connected = self.on_peers(driver, &peers);
                self.report_failure(driver, connected);
            }
            Message::Greet { .. } if !from_control && self.is_control_again(&envelope) => {
                self.on_control_again(driver, link, envelope.from_incarnation);
            }
            Message::Greet { part, datagrams } if !from_control => {
                self.on_greet(driver, link, &envelope, part, &datagrams);
            }
            Message::Gone(peer) if from_control => self.on_gone(driver, peer),
            Message::Command(Command::Exit) if from_control => self.end = Some(End::Dismissed),
            Message::Command(Command::Disconnect) if from_control => self.disconnect(driver),
            message if self.is_open(link) => driver.deliver(envelope, message),
            _ => self.turn_away(driver, link),
        }
        self.tell_ready(driver);
    }

    /// A connection is gone.
    pub fn on_lost(&mut self, driver: &mut dyn ParticipantDriver, link: LinkId, reason: &str) {
        driver.close(link);
        if link == self.control {
            self.is_alone = true;
            if let Some(patience) = self.patience() {
                self.alone_until = Some(driver.now() + patience);
                return;
            }
            let refused = || End::Refused(format!("run control did not take it in: {reason}"));
            let was_taken_in = self.place.is_some() || self.was_in_run;
            let end = if was_taken_in { End::Orphaned } else { refused() };
            self.end.get_or_insert(end);
        } else if self.end.is_none() {
            self.lose(driver, link, reason);
        }
    }

    /// To be called when [`Participant::next_deadline`] has come.
    pub fn on_deadline(&mut self, now: Time) {
        if self.alone_until.is_some_and(|until| until <= now) {
            self.alone_until = None;
            self.end.get_or_insert(End::Orphaned);
        }
    }

    /// When run control is waited for no more, if it is waited for.
    pub fn next_deadline(&self) -> Option<Time> {
        self.alone_until
    }

    /// How long it goes on without run control, if it does at all.
    fn patience(&self) -> Option<Duration> {
        let patience = self.place.as_ref().filter(|_| self.is_ready && self.end.is_none())?.patience;
        (!patience.is_zero()).then_some(patience)
    }

    /// Whether run control says that it is in a life behind the one that is known, and finds this application in a run.
    fn is_control_again(&self, envelope: &Envelope) -> bool {
        let is_later = envelope.from == RUN_CONTROL && envelope.from_incarnation > self.identity.control_life;
        is_later && self.patience().is_some()
    }

    /// Run control has taken over what its former life has left. That life is not heard any more, if it still lives.
    fn on_control_again(&mut self, driver: &mut dyn ParticipantDriver, link: LinkId, life: Incarnation) {
        driver.close(self.control);
        (self.control, self.identity.control_life) = (link, life);
        (self.is_alone, self.alone_until) = (false, None);
        driver.open(link);
        driver.route(RUN_CONTROL, link, Way::All);
        let datagrams = driver.datagram_addresses().into();
        self.say_to_control(driver, Message::Ready { datagrams });
        self.lost.iter().for_each(|lost| self.say_to_control(driver, lost.clone()));
        driver.say_again();
    }

    /// Words for people, by way of run control.
    pub fn notice(&self, driver: &mut dyn ParticipantDriver, text: String) {
        if self.place.is_some() {
            self.say_to_control(driver, Message::Notice(text));
        }
    }

    /// Run control has proved who it is: it is told where peers reach this process.
    fn say_who(&self, driver: &mut dyn ParticipantDriver) {
        let Identity { name, address, .. } = &self.identity;
        self.say_to_control(driver, Message::Join { name: name.clone(), address: address.clone() });
    }

    /// Gives up all that it has of a run, and joins again: another run may follow. It says so in its present life, and is in its first
    /// one from then on.
    fn disconnect(&mut self, driver: &mut dyn ParticipantDriver) {
        driver.leave_place(self.control);
        self.run = self.identity.run;
        self.say_who(driver);
        self.identity.member.1 = Incarnation::FIRST;
        (self.place, self.to_parent, self.awaited, self.is_ready) = (None, None, None, false);
        self.peers.clear();
        self.further.clear();
        self.lives.clear();
        self.over.clear();
        self.lost.clear();
        self.was_in_run = true;
    }

    /// Takes its place: what is needed for that is opened, and those in the parent are there.
    fn on_welcome(
        &mut self,
        driver: &mut dyn ParticipantDriver,
        welcome: Welcome,
        datagrams: &DatagramAddresses,
    ) -> Result<(), String> {
        let place = driver.take_place(welcome, self.control)?;
        for &other in &place.in_parent {
            driver.meet((other, Incarnation::FIRST), datagrams);
            if !place.shares {
                driver.route(other, self.control, Way::All);
                driver.tell(other, PeerState::Up(Incarnation::FIRST));
            }
        }
        if place.shares && !place.in_parent.is_empty() {
            let strand = Strand { medium: Medium::Shm, port: None };
            let control = (RUN_CONTROL, self.identity.control_life);
            let link = driver.connect(control, &self.identity.control, strand)?;
            self.to_parent = Some(ToParent { link, is_open: false });
        }
        self.place = Some(place);
        Ok(())
    }

    /// Connects to the peers before this one in the order of the data; those behind it connect to us. To the network ports of
    /// read-out systems those connect who ask them.
    fn on_peers(&mut self, driver: &mut dyn ParticipantDriver, places: &[PeerPlace]) -> Result<(), String> {
        let Some(place) = &self.place else { return Err("peers before a place".into()) };
        let is_first = self.identity.member.1 == Incarnation::FIRST && self.awaited.is_none();
        let places: Vec<&PeerPlace> = places.iter().filter(|of| place.peers.contains_key(&of.node)).collect();
        self.awaited.get_or_insert_default().extend(places.iter().map(|place| place.node));
        for place in places {
            if self.life(place.node) > place.life {
                continue;
            }
            let known = self.peers.iter().find(|peer| peer.node == place.node).map(|peer| peer.life);
            self.drop_further(driver, place.node, |life| life < place.life);
            if known.is_some_and(|life| life < place.life) {
                self.part(driver, place.node, PeerState::Down);
            }
            if let Err(reason) = self.connect(driver, place) {
                if is_first {
                    return Err(reason);
                }
                self.part(driver, place.node, PeerState::Down);
                self.tell_lost(driver, (place.node, place.life), &reason);
            }
        }
        Ok(())
    }

    fn connect(&mut self, driver: &mut dyn ParticipantDriver, place: &PeerPlace) -> Result<(), String> {
        let Some(Place { peers, asks, .. }) = &self.place else { return Ok(()) };
        let (strands, asks) = (peers[&place.node].strands.clone(), *asks);
        self.hear_of(driver, (place.node, place.life));
        // A peer that connects to us may have done so already.
        let is_unknown = self.peers.iter().all(|peer| peer.node != place.node);
        let is_behind = place.node < self.identity.member.0 && is_unknown;
        let is_by_port = |other: &FurtherLink| other.node == place.node && other.strand.port.is_some();
        let asks = asks && !self.further.iter().any(is_by_port);
        let ours = |strand: &Strand| if strand.port.is_some() { asks } else { is_behind };
        let (node, life) = (place.node, place.life);
        for (index, strand) in (0..).zip(strands).filter(|(_, strand)| ours(strand)) {
            let link = driver.connect((node, life), &place.address, strand)?;
            if index == 0 {
                self.peers.push(Peer { node, life, link, is_up: false });
            } else {
                self.further.push(FurtherLink { node, life, index, strand, link, is_open: false });
            }
        }
        Ok(())
    }

    fn greet(&self, driver: &mut dyn ParticipantDriver, peer: NodeId, link: LinkId, part: u16) {
        let datagrams = driver.datagram_addresses().into();
        driver.say(link, self.envelope(peer), Message::Greet { part, datagrams });
    }

    /// A peer says which connection this is. The one that was connected to answers.
    fn on_greet(
        &mut self,
        driver: &mut dyn ParticipantDriver,
        link: LinkId,
        envelope: &Envelope,
        index: u16,
        datagrams: &DatagramAddresses,
    ) {
        let (peer, life) = (envelope.from, envelope.from_incarnation);
        let Some(place) = &self.place else { return driver.close(link) };
        if let Some(parent) = self.to_parent.as_mut().filter(|parent| parent.link == link && !parent.is_open) {
            parent.is_open = true;
            return self.meet_parent(driver, link);
        }
        let strand = place.peers.get(&peer).and_then(|ties| ties.strands.get(usize::from(index))).copied();
        let strand = strand.filter(|strand| driver.medium(link) == Some(strand.medium));
        let is_over = self.over.get(&peer).is_some_and(|over| life <= *over);
        let is_new = !self.is_open(link) && life >= self.life(peer) && !is_over;
        let Some(strand) = strand.filter(|_| is_new) else { return self.turn_away(driver, link) };
        if index > 0 {
            return self.on_further_greet(driver, link, (peer, life), (index, strand));
        }
        match self.peers.iter().find(|other| other.node == peer) {
            Some(ours) if ours.link == link => {}
            // Its former life may not be known to be over.
            Some(ours) if ours.life < life => {
                self.part(driver, peer, PeerState::Down);
                self.answer(driver, link, (peer, life));
            }
            Some(_) => return self.turn_away(driver, link),
            None => self.answer(driver, link, (peer, life)),
        }
        self.come_up(driver, link, (peer, life), datagrams);
    }

    /// Run control has answered over the connection for the components in its process.
    fn meet_parent(&mut self, driver: &mut dyn ParticipantDriver, link: LinkId) {
        let Some(Place { in_parent, .. }) = &self.place else { return };
        driver.open(link);
        for &node in in_parent {
            self.peers.push(Peer { node, life: Incarnation::FIRST, link, is_up: true });
            driver.route(node, link, Way::All);
            for (medium, link) in [(Medium::Tcp, self.control), (Medium::Shm, link)] {
                driver.route(node, link, Way::Strand(Strand { medium, port: None }));
            }
            driver.tell(node, PeerState::Up(Incarnation::FIRST));
        }
    }

    /// A further connection to a peer, maybe before the first; the one that was connected to answers.
    fn on_further_greet(
        &mut self,
        driver: &mut dyn ParticipantDriver,
        link: LinkId,
        (peer, life): Member,
        (index, strand): (u16, Strand),
    ) {
        let known = self.peers.iter().find(|other| other.node == peer).map(|other| other.life);
        if known.is_some_and(|known| known < life) {
            self.part(driver, peer, PeerState::Down);
        }
        self.drop_further(driver, peer, |other| other < life);
        self.hear_of(driver, (peer, life));
        let is_there = |other: &FurtherLink| other.node == peer && other.index == index;
        if self.further.iter().any(|other| is_there(other) && (other.is_open || other.link != link)) {
            return self.turn_away(driver, link);
        }
        driver.open(link);
        driver.route(peer, link, Way::Strand(strand));
        match self.further.iter_mut().find(|further| further.link == link) {
            Some(ours) => ours.is_open = true,
            None => {
                self.further.push(FurtherLink { node: peer, life, index, strand, link, is_open: true });
                self.greet(driver, peer, link, index);
            }
        }
    }

    /// Ends the further connections to these lives of a peer.
    fn drop_further(&mut self, driver: &mut dyn ParticipantDriver, node: NodeId, lives: impl Fn(Incarnation) -> bool) {
        for gone in self.further.extract_if(.., |further| further.node == node && lives(further.life)) {
            driver.close(gone.link);
        }
    }

    fn answer(&mut self, driver: &mut dyn ParticipantDriver, link: LinkId, (node, life): Member) {
        self.peers.push(Peer { node, life, link, is_up: false });
        self.hear_of(driver, (node, life));
        self.greet(driver, node, link, 0);
    }

    fn come_up(
        &mut self,
        driver: &mut dyn ParticipantDriver,
        link: LinkId,
        (node, life): Member,
        datagrams: &DatagramAddresses,
    ) {
        if !driver.meet((node, life), datagrams) {
            self.peers.retain(|peer| peer.link != link);
            self.drop_further(driver, node, |_| true);
            return driver.refuse(link);
        }
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.link == link) {
            (peer.life, peer.is_up) = (life, true);
        }
        self.hear_of(driver, (node, life));
        driver.open(link);
        driver.route(node, link, Way::All);
        driver.tell(node, PeerState::Up(life));
    }

    /// Says what is not its to say: who was behind that connection is lost.
    fn turn_away(&mut self, driver: &mut dyn ParticipantDriver, link: LinkId) {
        driver.refuse(link);
        self.on_lost(driver, link, "it said what it has not to say");
    }

    /// A connection is gone, and who was behind it; run control is told, and knows whether it died.
    fn lose(&mut self, driver: &mut dyn ParticipantDriver, link: LinkId, reason: &str) {
        let behind_further = self.further.iter().find(|further| further.link == link).map(|further| further.node);
        if let Some(node) = behind_further {
            self.drop_further(driver, node, |_| true);
        }
        let behind = |peer: &Peer| peer.link == link || Some(peer.node) == behind_further;
        let lost: Vec<Member> =
            self.peers.iter().filter(|peer| behind(peer)).map(|peer| (peer.node, peer.life)).collect();
        for (node, life) in lost {
            let returns = self.place.as_ref().and_then(|place| place.peers.get(&node)).is_some_and(|ties| ties.returns);
            self.part(driver, node, if returns { PeerState::Down } else { PeerState::Gone });
            self.tell_lost(driver, (node, life), reason);
        }
    }

    fn tell_lost(&mut self, driver: &mut dyn ParticipantDriver, (node, life): Member, reason: &str) {
        let is_late = self.identity.member.1 != Incarnation::FIRST;
        if let Some(awaited) = self.awaited.as_mut().filter(|_| is_late) {
            awaited.retain(|other| *other != node);
        }
        let lost = Message::Lost { node, life, reason: reason.to_owned() };
        self.say_to_control(driver, lost.clone());
        self.lost.push(lost);
    }

    /// Run control says that a peer will not return.
    fn on_gone(&mut self, driver: &mut dyn ParticipantDriver, node: NodeId) {
        self.part(driver, node, PeerState::Gone);
        // Nor does it speak, in whatever life: one that was never met here, either.
        self.over.insert(node, Incarnation(u32::MAX));
        if let Some(awaited) = &mut self.awaited {
            awaited.retain(|other| *other != node);
        }
    }

    /// A peer is not there any more, or that life of it.
    fn part(&mut self, driver: &mut dyn ParticipantDriver, node: NodeId, state: PeerState) {
        let place = self.peers.iter().position(|peer| peer.node == node);
        let gone = place.map(|place| self.peers.swap_remove(place));
        if let Some(gone) = &gone {
            driver.close(gone.link);
            self.over.insert(node, gone.life);
        }
        // Those of the next life may be there before its first connection.
        let life = gone.as_ref().map(|gone| gone.life);
        self.drop_further(driver, node, |further| life.is_none_or(|life| further <= life));
        if gone.is_some_and(|gone| gone.is_up) || state == PeerState::Gone {
            driver.tell(node, state);
        }
    }

    fn tell_ready(&mut self, driver: &mut dyn ParticipantDriver) {
        // A peer may greet before run control has named it.
        let connected = |awaited: &Vec<NodeId>| awaited.iter().all(|node| self.knows(*node).is_some());
        let with_all = self.further.iter().all(|further| further.is_open);
        let is_with_parent = self.to_parent.as_ref().is_none_or(|parent| parent.is_open);
        let is_with_peers = self.awaited.as_ref().is_some_and(connected);
        if !self.is_ready && self.place.is_some() && is_with_parent && with_all && is_with_peers {
            self.is_ready = true;
            let datagrams = driver.datagram_addresses().into();
            self.say_to_control(driver, Message::Ready { datagrams });
        }
    }

    fn report_failure(&mut self, driver: &mut dyn ParticipantDriver, result: Result<(), String>) {
        if let Err(reason) = result {
            self.say_to_control(driver, Message::Failed(reason.clone()));
            self.end = Some(End::Refused(reason));
        }
    }

    fn say_to_control(&self, driver: &mut dyn ParticipantDriver, message: Message) {
        driver.say(self.control, self.envelope(RUN_CONTROL), message);
    }

    fn envelope(&self, to: NodeId) -> Envelope {
        let (from, from_incarnation) = self.identity.member;
        Envelope { from, to, run: self.run, from_incarnation, to_incarnation: self.life(to) }
    }

    fn hear_of(&mut self, driver: &mut dyn ParticipantDriver, member: Member) {
        self.lives.insert(member.0, member.1);
        driver.set_life(member);
    }

    /// The newest life of an application that was heard of.
    fn life(&self, node: NodeId) -> Incarnation {
        self.lives.get(&node).copied().unwrap_or(Incarnation::FIRST)
    }

    fn is_open(&self, link: LinkId) -> bool {
        let is_to_parent = self.to_parent.as_ref().is_some_and(|parent| parent.link == link && parent.is_open);
        let is_control = self.control == link && self.place.is_some();
        is_to_parent
            || is_control
            || self.peers.iter().any(|peer| peer.link == link && peer.is_up)
            || self.further.iter().any(|further| further.link == link && further.is_open)
    }
}
