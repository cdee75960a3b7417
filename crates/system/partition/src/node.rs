//! `weir node`: the process of one application, commanded by its parent.

mod peers;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

use base::ids::{Incarnation, NodeId, Role};
use base::time::Time;
use configuration::Partition;
use dataflow::component::PeerState;
use dataflow::message::{Command, DatagramAddresses, Envelope, Message};
use dataflow::node::RUN_CONTROL;
use rol::Inputs;
use transport::clock;
use transport::error::OsError;
use transport::idle::IdleStrategy;
use transport::scheduler::{Context, Scheduler, Task, allowed_cpus, pin_to_cpu};
use transport::waker::Waker;

use crate::assembly::Assembly;
use crate::conductor::{idle, new_host};
use crate::host::{
    DatagramOptions, FIRST_LIFE, Host, InvalidPeerAddress, Kind, LinkEvent, LinkId, Links, LinksError, NetworkOptions,
    Part, PeerAddress, Workshop,
};
use crate::introduction::Introduction;
use peers::{FurtherLink, Peer};

/// Why a node does not take part.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum NodeError {
    #[error(
        "standard input: {0}: `weir node` is started by `weir run --processes`, which tells it the secret of the run there"
    )]
    NotIntroduced(std::io::Error),
    #[error("--join {0}")]
    Address(#[from] InvalidPeerAddress),
    #[error(transparent)]
    Links(#[from] LinksError),
    #[error("ros.ports: {0}: expected an address of this host")]
    Port(LinksError),
    #[error(transparent)]
    Os(#[from] OsError),
    #[error("{0}")]
    Refused(String),
    #[error("run control is gone: what was in hand was given up")]
    Orphaned,
}

/// An application that runs in this process, as run control has started it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where run control listens.
    pub join: String,
    /// Its name in the partition, such as `sfi-1`.
    pub name: String,
    /// Addresses of its further network ports.
    pub ports: Vec<IpAddr>,
}

impl Node {
    /// Lives until run control ends it, through one run or several. The standard input holds what run control tells nobody else.
    ///
    /// # Errors
    /// It cannot take part, or run control is gone.
    pub fn run(&self) -> Result<(), NodeError> {
        let introduction = Introduction::hear().map_err(NodeError::NotIntroduced)?;
        take_part(self, introduction)
    }
}

/// Lives as the application `name` until run control ends it.
fn take_part(Node { join, name, ports }: &Node, introduction: Introduction) -> Result<(), NodeError> {
    let address: PeerAddress = join.parse()?;
    let mut scheduler = Scheduler::<Host>::new(IdleStrategy::default())?;
    let waker = scheduler.waker();
    let options = NetworkOptions::joining(address.tcp.ip());
    let mut links = Links::listen(options, introduction.prover(), true, scheduler.poller(), &waker)?;
    let opened = ports.iter().try_for_each(|port| links.listen_at_port(*port, scheduler.poller()));
    opened.map_err(NodeError::Port)?;
    let mut host = Host::empty(links);
    let mut member = Member::join(&mut host, &mut scheduler, address, name, introduction, waker)?;
    host.run(scheduler, &mut member)?;
    member.failure.map_or(Ok(()), Err)
}

/// One application on its way through a run.
struct Member {
    name: String,
    introduction: Introduction,
    waker: Waker,
    control: LinkId,
    parent: PeerAddress,
    /// A connection of its own to the components in the parent, and which of them we talk to.
    to_parent: Option<(LinkId, Vec<NodeId>)>,
    place: Option<Place>,
    /// Peers that have to be connected before we are ready; `None` before their addresses are known.
    awaited: Option<Vec<NodeId>>,
    peers: Vec<Peer>,
    /// Further connections to them.
    further: Vec<FurtherLink>,
    is_ready: bool,
    /// It has had a run before the present one.
    was_in_run: bool,
    ends_at: Option<Time>,
    failure: Option<NodeError>,
    done: bool,
}

/// What run control said of our place in the partition.
struct Place {
    assembly: Assembly,
    node: NodeId,
    life: Incarnation,
}

impl Task<Host> for &mut Member {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        let is_over = self.ends_at.is_some_and(|end| end <= context.now);
        !context.shared.link_events.is_empty() || is_over || (self.done && context.shared.links.is_flushed())
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        while let Some(event) = context.shared.link_events.pop_front() {
            self.on_link_event(context, event);
        }
        let over = self.ends_at.is_some_and(|end| end <= context.now);
        if over || (self.done && context.shared.links.is_flushed()) {
            context.stop();
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.ends_at
    }
}

impl Member {
    fn join(
        host: &mut Host,
        scheduler: &mut Scheduler<'_, Host>,
        address: PeerAddress,
        name: &str,
        introduction: Introduction,
        waker: Waker,
    ) -> Result<Self, NodeError> {
        let control = host.links.connect_to_control(address.tcp, clock::now(), scheduler.poller())?;
        Ok(Self {
            name: name.to_owned(),
            introduction,
            waker,
            control,
            parent: address,
            to_parent: None,
            place: None,
            awaited: None,
            peers: Vec::new(),
            further: Vec::new(),
            is_ready: false,
            was_in_run: false,
            ends_at: None,
            failure: None,
            done: false,
        })
    }

    fn on_link_event(&mut self, context: &mut Context<'_, Host>, event: LinkEvent) {
        match event {
            // Whoever waits for this process in vain says so.
            LinkEvent::NotAccepted { .. } => {}
            LinkEvent::Crowd { who } => self.tell_of_a_crowd(context.shared, who),
            LinkEvent::Proven { link } if link == self.control => self.say_who(context.shared),
            LinkEvent::Proven { link } => self.greet_first(context.shared, link),
            LinkEvent::Message { link, envelope, message } => self.on_message(context, link, &envelope, message),
            LinkEvent::Lost { link, reason } if link == self.control => self.on_control_lost(context, &reason),
            LinkEvent::Lost { link, reason } => self.on_peer_lost(context, link, &reason),
        }
    }

    fn on_message(&mut self, context: &mut Context<'_, Host>, link: LinkId, envelope: &Envelope, message: Message) {
        let from_control = link == self.control;
        if self.failure.is_some() {
            return;
        }
        match message {
            Message::Welcome { configuration, hosted, robs, datagrams } if from_control && self.place.is_none() => {
                let welcomed = self.on_welcome(context, envelope, &configuration, (&hosted, &*datagrams), robs);
                self.report_failure(context, welcomed);
            }
            Message::Peers(peers) if from_control => {
                let connected = self.on_peers(context, &peers);
                self.report_failure(context, connected);
            }
            Message::Greet { part, datagrams } if !from_control => {
                self.on_greet(context, link, envelope, part, &datagrams);
            }
            Message::Gone(peer) if from_control => self.on_gone(context, peer),
            Message::Command(Command::Exit) if from_control => self.done = true,
            Message::Command(Command::Disconnect) if from_control => self.disconnect(context),
            message if context.shared.links.is_open(link) => context.shared.deliver(context.now, envelope, message),
            _ => context.shared.refuse(link),
        }
        self.tell_ready(context.shared);
    }

    /// Takes its place: opens what it needs and puts its component together.
    fn on_welcome(
        &mut self,
        context: &mut Context<'_, Host>,
        envelope: &Envelope,
        configuration: &str,
        (hosted, datagrams): (&[NodeId], &DatagramAddresses),
        robs: Vec<Vec<u32>>,
    ) -> Result<(), String> {
        let partition =
            Partition::parse("the configuration of run control", configuration, &[]).map_err(|e| e.to_string())?;
        let (now, host, node) = (context.now, &mut *context.shared, envelope.to);
        let life = envelope.to_incarnation;
        let assembly = Assembly::new(partition, robs).map_err(|error| error.to_string())?;
        let role = assembly.application(node).ok_or("no such application")?.role;
        if let Some(core) = assembly.core_of(node) {
            // Before it has threads, which then are bound with it.
            pin_to_cpu(core as usize).map_err(|error| {
                format!("processes.cores: core {core}: {error}: expected one of {:?}", allowed_cpus())
            })?;
        }
        let inputs = needs_inputs(&assembly, role).then(|| Inputs::open(&assembly.partition)).transpose();
        let inputs = inputs.map_err(|error| error.to_string())?;
        let late = life != FIRST_LIFE;
        let workshop = Workshop::new(&assembly, inputs.as_ref(), node, &self.waker);
        let workshop = workshop.map_err(|error| error.to_string())?;
        let triggers = inputs.as_ref().and_then(Inputs::triggers).filter(|_| role == Role::Level1);
        let component = assembly.parameters(node, late).component(triggers);
        let (links, events) = (core::mem::take(&mut host.links), core::mem::take(&mut host.link_events));
        *host = new_host(&assembly, links);
        host.link_events = events;
        host.set_life(node, life);
        let peers = assembly.applications.iter().map(|app| app.node).filter(|other| assembly.talk(*other, node));
        let connections_to =
            |other| if hosted.contains(&other) { 1 } else { host.carriers().connections(node, other).len() };
        let to_peers: Vec<usize> = peers.map(connections_to).collect();
        let network = NetworkOptions::new(&assembly, &to_peers);
        let datagram_options = DatagramOptions::new(&assembly, &[node], &self.introduction.secret, network.frame_max());
        let ports = if role == Role::Ros { &assembly.partition.ros.ports[..] } else { &[] };
        let datagram_options = datagram_options.map(|options| options.of_life(life).at_ports(ports));
        let shares = network.shares();
        host.links.reconfigure(network, &self.waker).map_err(|error| error.to_string())?;
        if let Some(options) = &datagram_options {
            host.links.open_datagrams(options, context.poller).map_err(|error| error.to_string())?;
        }
        host.links.open(self.control);
        host.route_over(RUN_CONTROL, self.control);
        host.host(now, node, component, workshop, |a, b| assembly.talk(a, b));
        host.links.share(host.lent_pools(), &self.waker).map_err(|error| error.to_string())?;
        let in_parent: Vec<NodeId> = hosted.iter().copied().filter(|other| assembly.talk(*other, node)).collect();
        for &other in &in_parent {
            host.links.meet(other, FIRST_LIFE, datagrams);
            if !shares {
                host.route_over(other, self.control);
                host.tell_peer(now, node, other, PeerState::Up(FIRST_LIFE));
            }
        }
        if shares && !in_parent.is_empty() {
            let part = Part { kind: Kind::Shm, port: None };
            let parent = ((RUN_CONTROL, FIRST_LIFE), &self.parent);
            let link = host.links.connect(parent, part, now, context.poller, &self.waker);
            let link = link.map_err(|error| error.to_string())?;
            self.to_parent = Some((link, in_parent));
        }
        host.complain_of_buffers(node);
        context.set_idle(idle(&assembly.partition));
        self.place = Some(Place { assembly, node, life });
        Ok(())
    }

    /// Run control has proved who it is: it is told where peers reach this process.
    fn say_who(&self, host: &mut Host) {
        let address = host.links.address().expect("a process that listens has an address").to_string();
        let Introduction { run, node, life, .. } = self.introduction;
        let (to, to_incarnation) = (RUN_CONTROL, FIRST_LIFE);
        let envelope = Envelope { from: node, to, run, from_incarnation: life, to_incarnation };
        host.send_over(self.control, &envelope, &Message::Join { name: self.name.clone(), address });
    }

    /// Gives up all that it has of a run, and joins again over the connection to run control: another run may follow.
    fn disconnect(&mut self, context: &mut Context<'_, Host>) {
        let host = &mut *context.shared;
        let (mut links, mut events) = (core::mem::take(&mut host.links), core::mem::take(&mut host.link_events));
        links.keep_only(self.control);
        events.retain(|event| event.link() == Some(self.control));
        *host = Host::empty(links);
        host.link_events = events;
        self.say_who(host);
        let Introduction { secret, life, .. } = &mut self.introduction;
        (*secret, *life) = (secret.next(), FIRST_LIFE);
        host.links.prove_with(&self.introduction.prover());
        (self.to_parent, self.place, self.awaited, self.is_ready) = (None, None, None, false);
        self.was_in_run = true;
        self.peers.clear();
        self.further.clear();
        context.set_idle(IdleStrategy::default());
    }

    fn tell_of_a_crowd(&self, host: &mut Host, who: String) {
        if let Some(Place { node, .. }) = self.place {
            let envelope = host.envelope(node, RUN_CONTROL);
            host.send_over(self.control, &envelope, &Message::Notice(who));
        }
    }

    fn tell_ready(&mut self, host: &mut Host) {
        // A peer may greet before run control has named it.
        let connected = |awaited: &Vec<NodeId>| {
            awaited.iter().all(|node| self.peers.iter().any(|peer| peer.node == *node && peer.is_up))
        };
        let with_all = self.further.iter().all(|further| host.links.is_open(further.link));
        let is_with_parent = self.to_parent.as_ref().is_none_or(|(link, _)| host.links.is_open(*link));
        if let Some(Place { node, .. }) = &self.place
            && is_with_parent
            && with_all
            && !self.is_ready
            && self.awaited.as_ref().is_some_and(connected)
        {
            self.is_ready = true;
            let envelope = host.envelope(*node, RUN_CONTROL);
            let ready = Message::Ready { datagrams: Box::new(host.links.datagram_addresses()) };
            host.send_over(self.control, &envelope, &ready);
        }
    }

    /// Without run control nobody would end this process: it gives up what it holds, closes its files and ends.
    fn on_control_lost(&mut self, context: &mut Context<'_, Host>, reason: &str) {
        if self.done {
            return context.stop();
        }
        self.failure = Some(if self.place.is_some() || self.was_in_run {
            NodeError::Orphaned
        } else {
            NodeError::Refused(format!("run control did not take it in: {reason}"))
        });
        self.ends_at = Some(context.now + if self.place.is_some() { CLOSING_TIME } else { Duration::ZERO });
        context.shared.links.close(self.control);
        context.shared.abandon_all(context.now);
    }

    fn report_failure(&mut self, context: &mut Context<'_, Host>, result: Result<(), String>) {
        if let Err(reason) = result {
            let envelope = context.shared.envelope(RUN_CONTROL, RUN_CONTROL);
            context.shared.send_over(self.control, &envelope, &Message::Failed(reason.clone()));
            self.failure = Some(NodeError::Refused(reason));
            self.done = true;
        }
    }
}

fn needs_inputs(assembly: &Assembly, role: Role) -> bool {
    let as_input = |sfo: &configuration::Sfo| sfo.dialect == configuration::Dialect::Input;
    match role {
        Role::Level1 | Role::Ros => true,
        Role::Sfo => assembly.partition.sfo.as_ref().is_some_and(as_input),
        _ => false,
    }
}

/// How long an orphaned application takes to close its files.
const CLOSING_TIME: Duration = Duration::from_secs(1);
