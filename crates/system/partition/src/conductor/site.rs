//! What run control has of its own for all runs of a partition, and what it makes of that for each: an assembly, components.

use std::collections::BTreeSet;
use std::io;
use std::net::UdpSocket;

use base::ids::{Incarnation, NodeId, Role};
use configuration::{Partition, Transport};
use dataflow::message::Message;
use dataflow::node::RUN_CONTROL;
use dataflow::wire;
use membership::NO_RUN;
use membership::challenge::Prover;
use membership::registrar::Registrar;
use membership::run_secret::RunSecret;
use rol::{Inputs, Replay};
use transport::clock;
use transport::error::OsError;
use transport::idle::IdleStrategy;
use transport::poller::Poller;
use transport::random::random;
use transport::scheduler::Scheduler;
use transport::waker::Waker;

use super::StartError;
use super::left_files::LeftFiles;
use crate::RunSettings;
use crate::keeping::{Origin, text};
use crate::run::{Placement, Run};
use crate::run_number::RunNumber;
use driver::Assembly;
use driver::observer::Observer;
use driver::{
    Carriers, DatagramOptions, FragmentChecks, Host, JOINING_PAGE_LEN, Links, NetworkOptions, RestingLinks, Workshop,
};

/// What lasts through all runs.
pub(super) struct Site {
    /// As it is without the settings of a run.
    partition: Partition,
    inputs: Inputs,
    placement: Placement,
    observer: Option<Observer>,
    waker: Waker,
    /// Of sources, between two runs.
    pub(super) resting: RestingLinks,
    /// The longest message to a child.
    frame_max: usize,
    used: BTreeSet<u32>,
    /// The life of run control.
    control: Incarnation,
    _port_of_group: Option<UdpSocket>,
}

/// The run that is wanted.
pub(super) struct Planned {
    pub(super) assembly: Assembly,
    pub(super) number: RunNumber,
    pub(super) left_files: LeftFiles,
}

impl Site {
    /// Opens the input and the network. What a run of it wants, and the first assembly.
    pub(super) fn open(
        run: Run,
        (secret, control): (&RunSecret, Incarnation),
        scheduler: &mut Scheduler<'_, Host>,
    ) -> Result<(Self, Assembly, Links), StartError> {
        let Run { configuration: mut partition, mut placement, observer, .. } = run;
        if !partition.host.is_empty() {
            // Agents start processes, and nothing else.
            placement.in_children = |_| true;
        }
        let inputs = Inputs::open(&partition)?;
        let port_of_group = choose_port(&mut partition.transport).map_err(StartError::Port)?;
        let waker = scheduler.waker();
        let (used, frame_max) = (BTreeSet::new(), usize::MAX);
        let mut site = Self {
            partition,
            inputs,
            placement,
            observer,
            waker,
            resting: RestingLinks::default(),
            frame_max,
            used,
            control,
            _port_of_group: port_of_group,
        };
        let assembly = site.assembly(&site.partition, &site.inputs)?;
        let links = site.listen(&assembly, secret, scheduler.poller())?;
        Ok((site, assembly, links))
    }

    /// The network of this process, if others are to join.
    fn listen(&mut self, assembly: &Assembly, secret: &RunSecret, poller: &mut Poller) -> Result<Links, StartError> {
        let outside = self.outside(assembly).count();
        if outside == 0 {
            return Ok(Links::default());
        }
        let partition = &assembly.partition;
        // That by which a child joins, and one to the components here.
        let to_child = if partition.transport.has_shared_memory() { 2 } else { 1 };
        let mut network = NetworkOptions::new(assembly, &vec![to_child; outside]);
        self.frame_max = network.frame_max();
        let is_alone = outside == assembly.applications.len();
        // Who takes over calls those that it finds: these connections are its own.
        if is_alone && self.control == Incarnation::FIRST {
            network = network.without_components(outside);
        }
        let shares = network.shares() && !is_alone;
        Ok(Links::listen(network, self.prover(secret), shares, poller, &self.waker)?)
    }

    /// What run control proves with who it is.
    pub(super) fn prover(&self, secret: &RunSecret) -> Prover {
        Prover::new(secret, NO_RUN, (RUN_CONTROL, self.control))
    }

    /// What wakes the thread that conducts.
    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The applications that have processes of their own.
    pub(super) fn outside<'a>(&self, assembly: &'a Assembly) -> impl Iterator<Item = (NodeId, Role)> + use<'a> {
        let in_children = self.placement.in_children;
        assembly.applications.iter().filter(move |app| in_children(app.role)).map(|app| (app.node, app.role))
    }

    /// Finds a number for a run with these settings that no other has. Of a run that is refused nothing stays.
    pub(super) fn plan(&mut self, settings: RunSettings) -> Result<Planned, StartError> {
        let mut partition = Partition { run: settings, ..self.partition.clone() };
        partition.check_run()?;
        let of_input = |run: &RunSettings| (run.seed, run.first_lvl1_id);
        let inputs = match of_input(&partition.run) == of_input(&self.partition.run) {
            true => self.inputs.clone(),
            false => Inputs::open(&partition)?,
        };
        let number = RunNumber::claim(&partition, inputs.replay().map(Replay::run_number), &self.used)?;
        partition.run.number = Some(number.number);
        let inputs = inputs.of_run(number.number);
        let left_files = LeftFiles::new(&partition.output.directory, number.number);
        let assembly = self.assembly(&partition, &inputs)?;
        self.used.insert(number.number);
        (self.partition, self.inputs) = (partition, inputs);
        Ok(Planned { assembly, number, left_files })
    }

    /// The assembly of a run that goes on already.
    pub(super) fn inherit(&mut self, partition: Partition) -> Result<Assembly, StartError> {
        let inputs = Inputs::open(&partition)?.of_run(partition.run.number());
        let assembly = self.assembly(&partition, &inputs)?;
        self.used.insert(partition.run.number());
        (self.partition, self.inputs) = (partition, inputs);
        Ok(assembly)
    }

    fn assembly(&self, partition: &Partition, inputs: &Inputs) -> Result<Assembly, StartError> {
        let assembly = Assembly::new(partition.clone(), inputs.shares().to_vec())?;
        Ok(assembly.observed_by(self.observer.clone()).with_program(self.placement.program.clone()))
    }

    /// Takes in the applications that live here, for a run.
    pub(super) fn populate(
        &self,
        assembly: &Assembly,
        secret: &RunSecret,
        host: &mut Host,
        poller: &mut Poller,
    ) -> Result<(), StartError> {
        let in_children = self.placement.in_children;
        let (outside, here): (Vec<_>, Vec<_>) = assembly.applications.iter().partition(|app| in_children(app.role));
        let nodes: Vec<NodeId> = here.iter().map(|app| app.node).collect();
        if !outside.is_empty()
            && !here.is_empty()
            && let Some(options) = DatagramOptions::new(assembly, &nodes, secret, self.frame_max)
        {
            host.links.open_datagrams(&options, poller)?;
        }
        let now = clock::now();
        for app in here {
            let (key, links) = (link_key(&assembly.partition), (&self.resting, &self.waker));
            let workshop = Workshop::new(assembly, Some(&self.inputs), app.node, key.as_ref(), links)?;
            let triggers = self.inputs.triggers().filter(|_| app.role == Role::Level1);
            let component = assembly.component(app.node, triggers);
            host.host(now, app.node, component, workshop, |a, b| assembly.talk(a, b));
        }
        host.links.share(host.lent_pools(), &self.waker)?;
        host.complain_of_buffers(RUN_CONTROL);
        if !outside.is_empty() {
            check_welcome(assembly, host, self.frame_max)?;
        }
        Ok(())
    }
}

/// Run control, and those that have joined: a host that has none of the components.
pub(super) fn bare_host(assembly: &Assembly, links: Links, registrar: &Registrar) -> Host {
    let mut host = new_host(assembly, links);
    host.host_control();
    for ((node, life), link) in registrar.members() {
        host.set_life(node, life);
        link.into_iter().for_each(|link| host.route_over(node, link));
    }
    host
}

/// What a child is told when it has joined.
pub(super) fn welcome(assembly: &Assembly, host: &Host) -> Message {
    Message::Welcome {
        configuration: assembly.partition.without_secrets().to_toml(),
        hosted: host.hosted().collect(),
        robs: assembly.robs.clone(),
        datagrams: Box::new(host.links.datagram_addresses()),
    }
}

/// Whether a child takes what it is told when it joins, by the settings that it has then.
fn check_welcome(assembly: &Assembly, host: &Host, frame_max: usize) -> Result<(), StartError> {
    let mut encoded = Vec::new();
    wire::encode(&host.envelope(RUN_CONTROL, RUN_CONTROL), &welcome(assembly, host), &mut encoded);
    let (len, max) = (encoded.len(), frame_max.min(JOINING_PAGE_LEN));
    if len > max { Err(StartError::Welcome { len, max }) } else { Ok(()) }
}

/// Gives the multicast group a port of its own in this run, unless the configuration names one. The socket keeps the system
/// from giving it to somebody else.
fn choose_port(transport: &mut Transport) -> io::Result<Option<UdpSocket>> {
    if !transport.has_multicasts() || transport.udp.port != 0 {
        return Ok(None);
    }
    let socket = UdpSocket::bind((transport.host, 0))?;
    transport.udp.port = socket.local_addr()?.port();
    Ok(Some(socket))
}

/// A host for the applications of a partition.
pub(crate) fn new_host(assembly: &Assembly, links: Links) -> Host {
    let partition = &assembly.partition;
    assembly.applications.iter().for_each(|app| stamps::name_place(app.node.0, &app.name));
    let copy_below = usize::try_from(partition.sfi.copy_below.bytes()).unwrap_or(usize::MAX);
    let replayed = partition.ros.input == configuration::RosInput::Replay;
    let checks = FragmentChecks { rods: !replayed, data: partition.sfi.check == configuration::FragmentCheck::Data };
    let carriers = Carriers::new(partition, assembly.roles());
    Host::new(assembly.run(), assembly.roles().into(), assembly.readout(), links, copy_below, checks, carriers)
}

/// The idle strategy that a partition asks for.
pub fn idle(partition: &configuration::Partition) -> IdleStrategy {
    match partition.transport.idle {
        configuration::Idle::Spin => IdleStrategy::Spin,
        configuration::Idle::Yield => IdleStrategy::Yield,
        configuration::Idle::Park => IdleStrategy::default(),
    }
}

/// What the sources of links prove, if the partition has a key.
pub(crate) fn link_key(partition: &Partition) -> Option<link::Secret> {
    partition.partition.key.as_ref().map(|key| link::Secret::new(&key.0))
}

/// The secret of the first run alone: from the configured key, if there is one, and a number that is drawn for it. The next
/// runs have those that follow from it.
pub(super) fn draw_secret(partition: &Partition) -> Result<(RunSecret, Origin), OsError> {
    match &partition.partition.key {
        Some(key) => {
            let nonce = random()?;
            Ok((RunSecret::new(&key.0, &nonce), Origin::Nonce(text(&nonce))))
        }
        None => {
            let secret = random()?;
            Ok((RunSecret::of_bytes(secret), Origin::Secret(text(&secret))))
        }
    }
}
