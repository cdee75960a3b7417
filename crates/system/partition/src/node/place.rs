//! What an application needs for its place in the partition: its component, and its ways to others.

use std::net::IpAddr;
use std::time::Duration;

use agents::Introduction;
use base::ids::{Incarnation, NodeId, Role};
use configuration::{Partition, Scheduling};
use dataflow::node::RUN_CONTROL;
use membership::challenge::Member;
use membership::participant::{ParticipantDriver, Place, Ties, Welcome};
use membership::passage::{LinkId, Medium, Strand};
use rol::Inputs;
use transport::idle::IdleStrategy;
use transport::poller::Poller;
use transport::scheduler::{allowed_cpus, pin_to_cpu};
use transport::scheduling::{SchedulingClass, set_scheduling_class};
use transport::waker::Waker;

use crate::conductor::{idle, new_host};
use crate::hands::{Hands, KnowsTalk};
use driver::Assembly;
use driver::{DatagramOptions, Host, NetworkOptions, PeerAddress, RestingLinks, Workshop};

/// What the process of an application does for it.
pub(super) struct Child<'a> {
    pub(super) introduction: &'a mut Introduction,
    /// Its address in the network that carries data, if that is not the one of run control.
    pub(super) at: Option<IpAddr>,
    pub(super) waker: &'a Waker,
    /// Of sources, between two runs.
    pub(super) resting: &'a RestingLinks,
    pub(super) poller: &'a mut Poller,
    /// The partition, once it has its place.
    pub(super) assembly: &'a mut Option<Assembly>,
    /// How the process waits from now on.
    pub(super) idle: &'a mut Option<IdleStrategy>,
}

impl KnowsTalk for Child<'_> {
    fn talk(&self, one: NodeId, other: NodeId) -> bool {
        self.assembly.as_ref().is_some_and(|assembly| assembly.talk(one, other))
    }
}

impl ParticipantDriver for Hands<'_, Child<'_>> {
    fn connect(&mut self, to: Member, address: &str, strand: Strand) -> Result<LinkId, String> {
        let address: PeerAddress = address.parse().map_err(|error| format!("{error}"))?;
        let Child { poller, waker, .. } = &mut self.side;
        self.host.links.connect((to, &address), strand, self.now, poller, waker).map_err(|error| error.to_string())
    }

    fn take_place(&mut self, welcome: Welcome, control: LinkId) -> Result<Place, String> {
        let Welcome { configuration, hosted, robs } = welcome;
        let mut partition =
            Partition::parse("the configuration of run control", &configuration, &[]).map_err(|e| e.to_string())?;
        self.side.at.into_iter().for_each(|at| partition.transport.host = at);
        let assembly = Assembly::new(partition, robs).map_err(|error| error.to_string())?;
        self.put_together(&assembly, &hosted, control)?;
        *self.side.idle = Some(idle(&assembly.partition));
        let place = self.place(&assembly, &hosted);
        *self.side.assembly = Some(assembly);
        Ok(place)
    }

    fn leave_place(&mut self, control: LinkId) {
        let host = &mut *self.host;
        let (mut links, mut events) = (core::mem::take(&mut host.links), core::mem::take(&mut host.link_events));
        links.keep_only(control);
        events.retain(|event| event.link() == Some(control));
        *host = Host::empty(links);
        host.link_events = events;
        let introduction = &mut *self.side.introduction;
        (introduction.secret, introduction.life) = (introduction.secret.next(), Incarnation::FIRST);
        host.links.prove_with(&introduction.prover());
        *self.side.assembly = None;
        *self.side.idle = Some(IdleStrategy::default());
    }

    fn say_again(&mut self) {
        self.host.say_again();
    }

    fn medium(&self, link: LinkId) -> Option<Medium> {
        self.host.links.strand(link).map(|strand| strand.medium)
    }
}

impl Hands<'_, Child<'_>> {
    /// Opens what its component needs, and takes it in.
    fn put_together(&mut self, assembly: &Assembly, hosted: &[NodeId], control: LinkId) -> Result<(), String> {
        let Introduction { node, life, secret, links, .. } = &*self.side.introduction;
        let (node, life) = (*node, *life);
        let (now, host, waker, resting) = (self.now, &mut *self.host, self.side.waker, self.side.resting);
        let role = assembly.application(node).ok_or("no such application")?.role;
        // Before it has threads, which then are scheduled and bound with it. And in this order, as a normal process
        // would not get to run on a core that has real-time ones.
        if assembly.partition.processes.scheduling == Scheduling::RealTime {
            set_scheduling_class(REAL_TIME).map_err(|error| format!("processes.scheduling: {error}"))?;
        }
        if let Some(core) = assembly.core_of(node) {
            pin_to_cpu(core as usize).map_err(|error| {
                let host = assembly.host_of(node);
                let (key, whose) = (assembly.partition.key_of_cores(host), assembly.partition.whose(host));
                format!("{key}: {whose}core {core}: {error}: expected one of {:?}", allowed_cpus())
            })?;
        }
        let inputs = needs_inputs(assembly, role).then(|| Inputs::open(&assembly.partition)).transpose();
        let inputs = inputs.map_err(|error| error.to_string())?;
        let workshop = Workshop::new(assembly, inputs.as_ref(), node, links.as_ref(), (resting, waker));
        let workshop = workshop.map_err(|error| error.to_string())?;
        let triggers = inputs.as_ref().and_then(Inputs::triggers).filter(|_| role == Role::Level1);
        let component = assembly.parameters(node, life != Incarnation::FIRST).component(triggers);
        let (links, events) = (core::mem::take(&mut host.links), core::mem::take(&mut host.link_events));
        *host = new_host(assembly, links);
        host.link_events = events;
        host.set_life(node, life);
        let peers = assembly.applications.iter().map(|app| app.node).filter(|other| assembly.talk(*other, node));
        let connections_to =
            |other| if hosted.contains(&other) { 1 } else { host.carriers().connections(node, other).len() };
        // Run control that takes over connects as well.
        let by_control = self.side.at.map(|_| 1);
        let to_peers: Vec<usize> = peers.map(connections_to).chain(by_control).collect();
        let network = NetworkOptions::new(assembly, &to_peers);
        let datagram_options = DatagramOptions::new(assembly, &[node], secret, network.frame_max());
        let ports = if role == Role::Ros { &assembly.partition.ros.ports[..] } else { &[] };
        let datagram_options = datagram_options.map(|options| options.of_life(life).at_ports(ports));
        host.links.reconfigure(network, waker).map_err(|error| error.to_string())?;
        if let Some(options) = &datagram_options {
            host.links.open_datagrams(options, self.side.poller).map_err(|error| error.to_string())?;
        }
        host.links.open(control);
        host.route_over(RUN_CONTROL, control);
        host.host(now, node, component, workshop, |a, b| assembly.talk(a, b));
        host.links.share(host.lent_pools(), waker).map_err(|error| error.to_string())?;
        host.complain_of_buffers(node);
        Ok(())
    }

    fn place(&self, assembly: &Assembly, hosted: &[NodeId]) -> Place {
        let node = self.side.introduction.node;
        let talks = |app: &NodeId| *app != node && assembly.talk(*app, node);
        let others = assembly.applications.iter().map(|app| app.node).filter(talks);
        let (in_parent, elsewhere): (Vec<NodeId>, Vec<NodeId>) = others.partition(|other| hosted.contains(other));
        let ties = |other: NodeId| {
            let role = assembly.application(other).map(|app| app.role);
            let returns = role.is_some_and(|role| ::assembly::returns(role, &assembly.partition));
            Ties { strands: self.host.carriers().connections(node, other), returns }
        };
        Place {
            peers: elsewhere.into_iter().map(|other| (other, ties(other))).collect(),
            in_parent,
            shares: self.host.links.are_shared(),
            asks: assembly.application(node).is_some_and(|app| app.role != Role::Ros),
            // An agent ends it, should run control not come back.
            patience: self.side.at.map_or(Duration::ZERO, |_| assembly.partition.processes.lease.duration()),
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

/// Before all that is not real time, and behind all that is and says how urgent.
const REAL_TIME: SchedulingClass = SchedulingClass::RealTime { priority: 1 };
