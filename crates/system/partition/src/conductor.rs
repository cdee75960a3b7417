//! The parent of a run: starts the applications, conducts the run, and says how it ended.

mod left_files;
mod lives;
mod view;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::UdpSocket;
use std::time::Duration;

use base::ids::{NodeId, Role};
use base::time::Time;
use configuration::{BadMenu, Transport};
use dataflow::component::{Outbox, PeerState};
use dataflow::control::accounting::{Accounting, Books};
use dataflow::control::controller::{Controller, ControllerParameters, Ending};
use dataflow::control::states::State;
use dataflow::message::{Command, Envelope, Message, PeerPlace};
use dataflow::node::{RUN_CONTROL, route};
use dataflow::report::{Network, Report};
use dataflow::wire;
use membership::challenge::Prover;
use membership::run_secret::RunSecret;
use nix::sys::resource::UsageWho;
use rol::{InputError, Inputs, Replay};
use transport::clock;
use transport::error::OsError;
use transport::idle::IdleStrategy;
use transport::random::random;
use transport::scheduler::{Context, Scheduler, Task};

use crate::assembly::Assembly;
use crate::children::{Children, Entry};
use crate::control::{Control, Wish};
use crate::cpu::{Processors, cpu_seconds, cpu_seconds_of};
use crate::host::{
    Carriers, DatagramOptions, FIRST_LIFE, FragmentChecks, Host, JOINING_PAGE_LEN, Kind, LinkEvent, LinkId, Links,
    LinksError, Meter, NetworkOptions, Part, Samples, Section, Workshop, WorkshopError,
};
use crate::probe::{Figures, Watched};
use crate::restarts::Restarts;
use crate::run::Run;
use crate::run_number::{RunNumber, RunNumberError};
use left_files::LeftFiles;
use lives::Complaint;
use view::figures;
use words::Words;

pub use lives::Restart;

/// How a run went.
pub struct Outcome {
    /// The partition.
    pub assembly: Assembly,
    /// What run control has heard.
    pub ending: Ending,
    /// Every event from level-1 accept to file.
    pub account: Accounting,
    /// Applications that were started again, in order.
    pub restarts: Vec<Restart>,
    /// When the run began.
    pub began: Time,
    /// From the beginning of the run to the end of its triggers.
    pub duration: Duration,
    /// From the launch until all applications were ready and the run began.
    pub starting: Duration,
    /// Processor time of all processes in that time; none where the kernel does not say.
    pub cpu_starting: Option<Duration>,
    /// Processor time of all processes in their whole life.
    pub cpu: Duration,
    /// Of each child that lived from the beginning of the run to its end; none where the kernel does not say.
    pub cpu_of_children: BTreeMap<NodeId, Duration>,
    /// Processor time of this process from the beginning of the run to its end.
    pub cpu_while_running: Duration,
    /// The part of all processors' time that others left to the run, from its beginning to its end, where the kernel says it.
    pub left_to_us: Option<f64>,
    /// How many processors the run has used, in the mean over the same time; none where the kernel does not say.
    pub cores_used: f64,
    /// Traffic of all applications.
    pub network: Network,
    /// Messages of former lives and runs, which were refused.
    pub stale: u64,
    /// Whether somebody has asked for an early end.
    pub interrupted: bool,
}

impl Outcome {
    /// What applications of a role have counted.
    pub fn reports(&self, role: Role) -> impl Iterator<Item = &Report> {
        self.ending.reports.values().filter(move |report| report.role == role)
    }
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum StartError {
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    RunNumber(#[from] RunNumberError),
    #[error(transparent)]
    Menu(#[from] BadMenu),
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
    #[error(transparent)]
    Links(#[from] LinksError),
    #[error(transparent)]
    Os(#[from] OsError),
    #[error("cannot start {name}: {cause}")]
    Spawn { name: String, cause: io::Error },
    #[error("no port for the multicast group of the read-out systems: {0}")]
    Port(io::Error),
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),
    #[error("this program does not know where it is: {0}")]
    Program(io::Error),
    #[error("no thread for the run: {0}")]
    Thread(io::Error),
    #[error("{name} could not start: {reason}")]
    Child { name: String, reason: String },
    #[error(
        "not all applications were ready within {timeout:?}: {missing} did not answer{cause}; processes.start_timeout sets the limit"
    )]
    StartTimeout { timeout: Duration, missing: String, cause: String },
    #[error(
        "the configuration and the lists of ROBs take {len} bytes, an application is told at most {max}: shorten the menu or the lists, or raise sfi.max_event_size"
    )]
    Welcome { len: usize, max: usize },
    #[error("interrupted before the run began")]
    Interrupted,
}

/// Conducts a run from start to account, in this thread.
///
/// # Errors
/// It did not begin; no process or port of it is left.
pub fn conduct(run: Run) -> Result<Outcome, StartError> {
    conduct_metered(run, None).map(|(conducted, _)| conducted)
}

/// What was seen of the driver in this process.
#[derive(Default)]
pub struct Metered {
    /// Where the time of its thread went.
    pub sections: BTreeMap<Section, Samples>,
    /// Processor time of threads beside it.
    pub beside: Duration,
}

/// The same; with a meter says where the time of this process went.
///
/// # Errors
/// Likewise.
///
/// # Panics
/// Never: the scheduler runs until the run is over.
pub fn conduct_metered(run: Run, meter: Option<Meter>) -> Result<(Outcome, Metered), StartError> {
    let _control = Ended(run.control());
    conduct_to_its_end(run, meter)
}

/// Says to others that nothing can be wanted of a run any more, however it ends.
struct Ended(Control);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.over();
    }
}

fn conduct_to_its_end(run: Run, meter: Option<Meter>) -> Result<(Outcome, Metered), StartError> {
    let launched = clock::now();
    let own_cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let cpu_before = own_cpu_before + cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let inputs = Inputs::open(&run.configuration)?;
    let mut partition = run.configuration;
    let run_number = RunNumber::claim(&partition, inputs.replay().map(Replay::run_number))?;
    partition.run.number = Some(run_number.number);
    let inputs = inputs.of_run(run_number.number);
    let left_files = LeftFiles::new(&partition.output.directory, run_number.number);
    let _port_of_group = choose_port(&mut partition.transport).map_err(StartError::Port)?;
    let assembly = Assembly::new(partition, inputs.shares().to_vec())?
        .observed_by(run.observer)
        .with_program(run.placement.program);
    let mut scheduler = Scheduler::<Host>::new(idle(&assembly.partition))?;
    let secret = draw_secret(&assembly)?;
    let (mut host, children) = populate(&assembly, &inputs, run.placement.in_children, &mut scheduler, &secret)?;
    let mut conductor = Conductor::new(assembly, children, secret, run.control, run.probe, left_files);
    if let Some(meter) = meter {
        host.set_meter(meter);
    }
    let before = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_seconds(UsageWho::RUSAGE_THREAD);
    host.run(scheduler, &mut conductor)?;
    let beside = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_seconds(UsageWho::RUSAGE_THREAD) - before;
    let metered = Metered {
        sections: host.take_meter().map(Meter::into_sections).unwrap_or_default(),
        beside: Duration::from_secs_f64(beside.max(0.0)),
    };
    let ending = match conductor.phase {
        Phase::Over(ending) => ending,
        Phase::Failed(error) => return Err(error),
        Phase::Starting { .. } | Phase::Running(_) | Phase::Ending { .. } => {
            unreachable!("the scheduler runs until the conductor is done")
        }
    };
    drop(conductor.children);
    let cpu = cpu_seconds(UsageWho::RUSAGE_SELF) + cpu_seconds(UsageWho::RUSAGE_CHILDREN) - cpu_before;
    let returned = conductor.returned.iter().map(|restart| restart.node);
    let touched: Vec<NodeId> = ending.dead.iter().copied().chain(returned).collect();
    let account = Books {
        applications: &conductor.assembly.applications,
        reports: &ending.reports,
        files: &ending.files,
        touched: &touched,
        forced: ending.forced,
    }
    .account();
    let (began, ended) = conductor.began.zip(conductor.ended).expect("a run that is over has begun and ended");
    let (network, stale) = network(&host, &ending);
    let conducted = Outcome {
        assembly: conductor.assembly,
        account,
        restarts: conductor.returned,
        began,
        duration: ended.since(began),
        starting: began.since(launched),
        cpu_starting: conductor.cpu_until_began.map(|cpu| Duration::from_secs_f64((cpu - own_cpu_before).max(0.0))),
        cpu: Duration::from_secs_f64(cpu.max(0.0)),
        cpu_of_children: conductor.cpu_of_children,
        cpu_while_running: Duration::from_secs_f64(conductor.cpu_while_running),
        left_to_us: conductor.left_to_us,
        cores_used: conductor.cores_used,
        network,
        stale,
        interrupted: conductor.control.ends(),
        ending: *ending,
    };
    Ok((conducted, metered))
}

/// What all processes received: the children tell it with their reports.
fn network(host: &Host, ending: &Ending) -> (Network, u64) {
    let here: Vec<NodeId> = host.hosted().collect();
    let all = ending.lives.all();
    let elsewhere = all.iter().filter(|(node, _)| !here.contains(node)).map(|(_, report)| report.network);
    let sum = elsewhere.fold(host.network(), Network::plus);
    (sum, all.values().map(|report| report.stale).sum())
}

/// Takes in the applications that live here, and starts the others.
fn populate(
    assembly: &Assembly,
    inputs: &Inputs,
    in_children: fn(Role) -> bool,
    scheduler: &mut Scheduler<'_, Host>,
    secret: &RunSecret,
) -> Result<(Host, Children), StartError> {
    let partition = &assembly.partition;
    let (outside, here): (Vec<_>, Vec<_>) = assembly.applications.iter().partition(|app| in_children(app.role));
    let waker = scheduler.waker();
    let mut frame_max = usize::MAX;
    let links = if outside.is_empty() {
        Links::default()
    } else {
        // That by which a child joins, and one to the components here.
        let to_child = if partition.transport.has_shared_memory() { 2 } else { 1 };
        let network = NetworkOptions::new(partition, &vec![to_child; outside.len()]);
        frame_max = network.frame_max();
        let nodes: Vec<NodeId> = here.iter().map(|app| app.node).collect();
        let datagrams = DatagramOptions::new(assembly, &nodes, secret, network.frame_max());
        let shares = network.shares() && !here.is_empty();
        let prover = Prover::new(secret, assembly.run(), (RUN_CONTROL, FIRST_LIFE));
        let mut links = Links::listen(network, prover, shares, scheduler.poller(), &waker)?;
        if let Some(options) = datagrams.filter(|_| !here.is_empty()) {
            links.open_datagrams(&options, scheduler.poller())?;
        }
        links
    };
    let address = links.address();
    let mut host = new_host(assembly, links);
    host.host_control();
    let now = clock::now();
    for app in here {
        let workshop = Workshop::new(assembly, Some(inputs), app.node, &waker)?;
        let triggers = inputs.triggers().filter(|_| app.role == Role::Level1);
        let component = assembly.component(app.node, triggers);
        host.host(now, app.node, component, workshop, |a, b| assembly.talk(a, b));
    }
    host.links.share(host.lent_pools(), &waker)?;
    host.complain_of_buffers(RUN_CONTROL);
    let mut children = Children::default();
    if let Some(address) = address {
        check_welcome(assembly, &host, frame_max)?;
        let program = assembly.program().map_err(StartError::Program)?;
        for app in outside {
            let ports = if app.role == Role::Ros { &partition.ros.ports[..] } else { &[] };
            let spawned = children.spawn(&program, (app.node, &app.name), &address, (secret, assembly.run()), ports);
            spawned.map_err(|cause| StartError::Spawn { name: app.name.clone(), cause })?;
        }
    }
    Ok((host, children))
}

/// What a child is told when it has joined.
fn welcome(assembly: &Assembly, host: &Host) -> Message {
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

/// The secret of this run alone: from the configured key, if there is one, and a number that is drawn for it.
fn draw_secret(assembly: &Assembly) -> Result<RunSecret, OsError> {
    match &assembly.partition.partition.key {
        Some(key) => Ok(RunSecret::new(&key.0, &random()?)),
        None => Ok(RunSecret::of_bytes(random()?)),
    }
}

/// Conducts the run from the scheduler's thread.
struct Conductor {
    assembly: Assembly,
    children: Children,
    /// Why a process that connected last was not let in.
    not_accepted: Option<String>,
    secret: RunSecret,
    control: Control,
    probe: Watched,
    left_files: LeftFiles,
    phase: Phase,
    tick: Time,
    /// Complaints of living applications about others, which a death may yet explain.
    complaints: Vec<Complaint>,
    restarts: Restarts,
    /// Applications that were started again, in order.
    returned: Vec<Restart>,
    /// All that run control said to each application; a new life is told again.
    commands: BTreeMap<NodeId, Vec<Command>>,
    words: Words,
    began: Option<Time>,
    /// Processor time of all processes then, in seconds.
    cpu_until_began: Option<f64>,
    ended: Option<Time>,
    /// Processor time of this process, in seconds: when the run began negative, since it ended that of the run.
    cpu_while_running: f64,
    /// Until the run began; since it ended, while it lasted.
    cpu_of_children: BTreeMap<NodeId, Duration>,
    processors: Processors,
    left_to_us: Option<f64>,
    cores_used: f64,
    next_progress: Time,
    shown: Figures,
}

enum Phase {
    Starting {
        deadline: Time,
    },
    Running(Box<Controller>),
    /// The run is over; the children end.
    Ending {
        ending: Box<Ending>,
        deadline: Time,
    },
    Over(Box<Ending>),
    Failed(StartError),
}

impl Task<Host> for &mut Conductor {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        let news = context.shared.has_for_control() || !context.shared.link_events.is_empty();
        news || self.next_deadline().is_some_and(|deadline| deadline <= context.now)
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        self.act(context.now, context.shared);
        if matches!(self.phase, Phase::Over(_) | Phase::Failed(_)) {
            context.stop();
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let controller = if let Phase::Running(controller) = &self.phase { controller.next_deadline() } else { None };
        [Some(self.tick), controller].into_iter().flatten().min()
    }
}

impl Conductor {
    fn new(
        assembly: Assembly,
        children: Children,
        secret: RunSecret,
        control: Control,
        probe: Watched,
        left_files: LeftFiles,
    ) -> Self {
        let now = clock::now();
        let deadline = now + assembly.partition.processes.start_timeout.duration();
        let restarts = Restarts::new(&assembly.partition.processes);
        Self {
            assembly,
            children,
            not_accepted: None,
            secret,
            control,
            probe,
            left_files,
            phase: Phase::Starting { deadline },
            tick: now,
            complaints: Vec::new(),
            restarts,
            returned: Vec::new(),
            commands: BTreeMap::new(),
            words: Words::default(),
            began: None,
            cpu_until_began: None,
            ended: None,
            cpu_while_running: 0.0,
            cpu_of_children: BTreeMap::new(),
            processors: Processors::watch(None),
            left_to_us: None,
            cores_used: 0.0,
            next_progress: now,
            shown: Figures::default(),
        }
    }

    fn act(&mut self, now: Time, host: &mut Host) {
        while let Some(event) = host.link_events.pop_front() {
            self.on_link_event(now, host, event);
        }
        while let Some((from, message)) = host.next_for_control() {
            self.on_message(now, host, from, message);
        }
        if self.tick <= now {
            self.tick = now + TICK;
            self.on_tick(now, host);
        }
        self.with_controller(host, |controller, out| {
            if controller.next_deadline().is_some_and(|deadline| deadline <= now) {
                controller.on_deadline(now, out);
            }
        });
        self.advance(now, host);
    }

    /// Calls the controller, if the run goes on, and sends what it says.
    fn with_controller(&mut self, host: &mut Host, call: impl FnOnce(&mut Controller, &mut Outbox)) {
        let Phase::Running(controller) = &mut self.phase else { return };
        let mut out = Outbox::new();
        call(controller, &mut out);
        let mut sends = Vec::new();
        route(&mut out, &[], |to, message| sends.push((to, message)), |_| {});
        self.remember(&sends);
        sends.into_iter().for_each(|(to, message)| host.send_from_control(to, message));
    }

    fn on_link_event(&mut self, now: Time, host: &mut Host, event: LinkEvent) {
        match event {
            LinkEvent::NotAccepted { reason } => self.not_accepted = Some(reason),
            LinkEvent::Crowd { who } => {
                self.say(&format!("{who}; the oldest are ended to let others in"));
                self.not_accepted = Some(who);
            }
            // Whoever has connected says what it comes for.
            LinkEvent::Proven { .. } => {}
            LinkEvent::Message { link, envelope, message } => self.on_joining(now, host, link, &envelope, message),
            LinkEvent::Lost { link, reason } => {
                host.links.close(link);
                if let Some(child) = self.children.behind(link) {
                    child.lose(now, link, reason);
                }
            }
        }
    }

    fn on_joining(&mut self, now: Time, host: &mut Host, link: LinkId, envelope: &Envelope, message: Message) {
        match message {
            Message::Join { name, address } => self.on_join(now, host, link, (&name, envelope), address),
            Message::Greet { part: 0, .. } => self.on_greet(now, host, link, envelope.from),
            Message::Ready { datagrams } => {
                if let Some(child) = self.children.behind(link) {
                    let (node, met) = (child.node, host.links.meet(child.node, child.life, &datagrams));
                    child.ready = met;
                    if met {
                        self.on_ready(now, node);
                    }
                }
            }
            Message::Failed(reason) => match self.children.behind(link).map(|child| child.node) {
                Some(node) => self.complain(now, node, None, reason),
                None => host.refuse(link),
            },
            Message::Lost { node, life, reason } => match self.children.behind(link).map(|child| child.node) {
                Some(from) => {
                    let text = format!("connection to {} lost: {reason}", self.name(node));
                    self.complain(now, from, Some((node, life)), text);
                }
                None => host.refuse(link),
            },
            message if host.links.is_open(link) => host.deliver(now, envelope, message),
            _ => host.refuse(link),
        }
    }

    /// A child says who it is. It has proved that; what is no child in its present life is turned away.
    fn on_join(
        &mut self,
        now: Time,
        host: &mut Host,
        link: LinkId,
        (name, envelope): (&str, &Envelope),
        address: String,
    ) {
        let is_it = |child: &&mut Entry| child.name == name && child.life == envelope.from_incarnation;
        let Some(child) = self.children.at(envelope.from).filter(is_it).filter(|child| child.address.is_none()) else {
            return host.refuse(link);
        };
        self.not_accepted = None;
        child.link = Some(link);
        child.address = Some(address);
        let node = child.node;
        host.links.open(link);
        host.route_over(node, link);
        host.send_from_control(node, welcome(&self.assembly, host));
        if !host.links.are_shared() {
            let assembly = &self.assembly;
            host.tell_all(now, node, PeerState::Up(host.life(node)), |a, b| assembly.talk(a, b));
        }
        if !matches!(self.phase, Phase::Starting { .. }) {
            self.introduce_again(host, node);
        } else if self.children.iter().all(|child| child.address.is_some()) {
            self.introduce(host);
        }
    }

    /// A child that has joined makes another connection, for the components here; it is answered.
    fn on_greet(&mut self, now: Time, host: &mut Host, link: LinkId, node: NodeId) {
        let genuine = host.links.are_shared() && !host.links.is_open(link);
        let joined = |child: &&mut Entry| child.link.is_some() && child.data_link.is_none();
        let Some(child) = self.children.at(node).filter(joined).filter(|_| genuine) else {
            return host.refuse(link);
        };
        child.data_link = Some(link);
        host.links.open(link);
        host.route_data_over(node, link);
        for (kind, link) in [(Kind::Tcp, child.link), (Kind::Shm, Some(link))] {
            link.map(|link| host.route_part_over(node, Part { kind, port: None }, link));
        }
        let envelope = host.envelope(RUN_CONTROL, node);
        let greeting = Message::Greet { part: 0, datagrams: Box::new(host.links.datagram_addresses()) };
        host.send_over(link, &envelope, &greeting);
        let assembly = &self.assembly;
        host.tell_all(now, node, PeerState::Up(host.life(node)), |a, b| assembly.talk(a, b));
    }

    /// Tells every child where the others are.
    fn introduce(&self, host: &mut Host) {
        let peers: Vec<PeerPlace> = self.children.places().collect();
        for child in self.children.iter() {
            host.send_from_control(child.node, Message::Peers(peers.clone()));
        }
    }

    fn on_message(&mut self, now: Time, host: &mut Host, from: NodeId, message: Message) {
        if !self.assembly.application(from).is_some_and(|app| message.may_go(app.role, Role::RunControl)) {
            return self.say(&format!(
                "{} says {} to run control, which has to hear none",
                self.name(from),
                message.name()
            ));
        }
        if let Message::Notice(text) = &message {
            self.words.hear(from, text);
            let line = format!("{}: {text}", self.name(from));
            return self.say(&line);
        }
        self.with_controller(host, |controller, out| controller.on_message(now, from, message, out));
    }

    fn on_tick(&mut self, now: Time, host: &mut Host) {
        for (node, how) in self.children.reap() {
            self.on_death(now, host, node, &how);
        }
        self.end_the_lost(now);
        self.start_again(now, host);
        self.settle_complaints(now, host);
        for wish in self.control.take() {
            self.fulfil(now, host, wish);
        }
        self.control.is(self.state());
        if self.next_progress <= now {
            self.next_progress = now + PROGRESS_EVERY;
            self.show_progress(now, host);
        }
    }

    /// A child whose connection is gone and that does not end is ended: it can take no part any more.
    fn end_the_lost(&mut self, now: Time) {
        let overdue = |lost: &Option<(Time, String)>| lost.as_ref().is_some_and(|(at, _)| now.since(*at) > GRACE);
        let lost: Vec<NodeId> =
            self.children.iter().filter(|child| overdue(&child.lost)).map(|child| child.node).collect();
        lost.into_iter().for_each(|node| self.children.kill(node));
    }

    fn on_death(&mut self, now: Time, host: &mut Host, node: NodeId, how: &str) {
        match self.phase {
            // What it had to say itself may still be on its way.
            Phase::Starting { .. } => self.complain(now, node, None, how.to_owned()),
            Phase::Running(_) => self.on_death_in_run(now, host, node, how),
            Phase::Ending { .. } | Phase::Over(_) | Phase::Failed(_) => {}
        }
    }

    /// A complaint that no death explains ends the run, or its start, as well.
    fn settle_complaints(&mut self, now: Time, host: &mut Host) {
        if !self.complaints.iter().any(|complaint| complaint.is_due(now)) {
            return;
        }
        if let Phase::Starting { .. } = self.phase {
            return self.fail_for_a_complaint();
        }
        let due: Vec<Complaint> = self.complaints.extract_if(.., |complaint| complaint.is_due(now)).collect();
        for complaint in due.iter().filter(|complaint| !self.is_explained(complaint)).collect::<Vec<_>>() {
            let reason = format!("{}: {}", self.name(complaint.from()), complaint.text());
            self.with_controller(host, |controller, out| controller.stop_because(now, &reason, out));
        }
    }

    /// Names who is to blame for a failed start: the one that ended, in its own words if it had any.
    fn fail_for_a_complaint(&mut self) {
        let complaints = core::mem::take(&mut self.complaints);
        let of_the_dead = complaints.iter().find(|complaint| self.children.has_ended(complaint.from()));
        if let Some(complaint) = of_the_dead.or(complaints.first()) {
            let is_own = |other: &&Complaint| other.from() == complaint.from() && !is_exit(other.text());
            let reason = complaints.iter().find(is_own).unwrap_or(complaint).text().to_owned();
            self.phase = Phase::Failed(StartError::Child { name: self.name(complaint.from()), reason });
        }
    }

    /// Does what somebody wants of the run.
    fn fulfil(&mut self, now: Time, host: &mut Host, wish: Wish) {
        let ends = !matches!(wish, Wish::Pause | Wish::Resume);
        match (&self.phase, wish) {
            (Phase::Starting { .. }, _) if ends => self.phase = Phase::Failed(StartError::Interrupted),
            (Phase::Running(_), Wish::Interrupt) => {
                self.say("stopping: what is in hand is finished (interrupt again to give it up)");
                self.with_controller(host, |controller, out| controller.stop(now, out));
            }
            (Phase::Running(_), Wish::Stop) => {
                self.say("stopping: what is in hand is finished");
                self.with_controller(host, |controller, out| controller.stop(now, out));
            }
            (Phase::Running(controller), Wish::Force(reason)) if !controller.is_forced() => {
                self.say("forced to stop: what is in hand is given up");
                self.with_controller(host, |controller, out| controller.force(now, reason, out));
            }
            (Phase::Running(_), Wish::Pause) => self.with_controller(host, Controller::pause),
            (Phase::Running(_), Wish::Resume) => self.with_controller(host, Controller::resume),
            _ => {}
        }
    }

    /// The state of the partition.
    fn state(&self) -> State {
        match &self.phase {
            Phase::Starting { .. } => State::Booted,
            Phase::Running(controller) => controller.state(),
            Phase::Ending { .. } => State::Connected,
            Phase::Over(_) | Phase::Failed(_) => State::Absent,
        }
    }

    /// Goes on to the next phase when this one is finished.
    fn advance(&mut self, now: Time, host: &mut Host) {
        match &self.phase {
            Phase::Starting { deadline } => {
                let deadline = *deadline;
                if self.children.iter().all(|child| child.ready) && !self.children.any_ended() {
                    self.begin(now, host);
                } else if deadline <= now {
                    self.fail_to_start();
                }
            }
            Phase::Running(controller) => {
                if let Some(ending) = controller.ending() {
                    self.end(now, host, ending);
                }
            }
            Phase::Ending { deadline, .. } => {
                if self.children.all_ended() || *deadline <= now {
                    self.finish();
                }
            }
            Phase::Over(_) | Phase::Failed(_) => {}
        }
    }

    fn begin(&mut self, now: Time, host: &mut Host) {
        let controller = Controller::new(ControllerParameters {
            applications: self.assembly.applications.clone(),
            duration: self.assembly.partition.run.duration.map(configuration::Interval::duration),
            stop_timeout: self.assembly.partition.run.stop_timeout.duration(),
        });
        self.phase = Phase::Running(Box::new(controller));
        self.began = Some(now);
        self.cpu_while_running = -cpu_seconds(UsageWho::RUSAGE_SELF);
        self.cpu_of_children = self.cpu_of_each_child();
        self.cpu_until_began = self.cpu_seconds_of_all(&self.cpu_of_children);
        self.processors = Processors::watch(self.cpu_until_began);
        self.with_controller(host, |controller, out| controller.start(now, out));
        self.control.is(self.state());
        if let Some(probe) = &mut self.probe.0 {
            probe.begun();
        }
    }

    /// Processor time of this process and its children, if the kernel says it of all.
    fn cpu_seconds_of_all(&self, each_child: &BTreeMap<NodeId, Duration>) -> Option<f64> {
        let children: Duration = each_child.values().sum();
        let is_said = each_child.len() == self.children.iter().count();
        is_said.then(|| children.as_secs_f64() + cpu_seconds(UsageWho::RUSAGE_SELF))
    }

    fn cpu_of_each_child(&self) -> BTreeMap<NodeId, Duration> {
        let cpu = |child: &Entry| Some((child.node, Duration::from_secs_f64(cpu_seconds_of(child.process())?)));
        self.children.iter().filter_map(cpu).collect()
    }

    fn fail_to_start(&mut self) {
        let waiting: Vec<&str> =
            self.children.iter().filter(|child| !child.ready).map(|child| child.name.as_str()).collect();
        let mut missing = waiting[..waiting.len().min(NAMED)].join(", ");
        if waiting.len() > NAMED {
            missing += &format!(" and {} more", waiting.len() - NAMED);
        }
        // Who has joined does not wait to be let in.
        let all_joined = self.children.iter().all(|child| child.address.is_some());
        let cause = self.not_accepted.take().filter(|_| !all_joined);
        let cause = cause.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let timeout = self.assembly.partition.processes.start_timeout.duration();
        self.phase = Phase::Failed(StartError::StartTimeout { timeout, missing, cause });
    }

    fn end(&mut self, now: Time, host: &mut Host, mut ending: Ending) {
        self.ended = Some(now);
        self.cpu_while_running += cpu_seconds(UsageWho::RUSAGE_SELF);
        let cpu = self.cpu_of_each_child();
        let ours_s = self.cpu_seconds_of_all(&cpu);
        (self.left_to_us, self.cores_used) = (self.processors.left_to_us(ours_s), self.processors.used(ours_s));
        self.returned.iter().for_each(|restart| _ = self.cpu_of_children.remove(&restart.node));
        let before = core::mem::take(&mut self.cpu_of_children).into_iter();
        self.cpu_of_children =
            before.filter_map(|(node, before)| Some((node, cpu.get(&node)?.saturating_sub(before)))).collect();
        for app in &self.assembly.applications {
            host.send_from_control(app.node, Message::Command(Command::Exit));
        }
        if ending.forced {
            let said = core::mem::take(&mut self.words).into_last();
            ending.reasons.extend(said.map(|(node, text)| format!("{} said last: {text}", self.name(node))));
        }
        // Those that did not even report are stuck.
        ending.dead.iter().for_each(|&node| self.children.kill(node));
        self.phase = Phase::Ending { ending: Box::new(ending), deadline: now + EXIT_TIMEOUT };
    }

    /// Ends children that have not ended by themselves, and makes valid files of what a dead recorder left.
    fn finish(&mut self) {
        let left: Vec<NodeId> =
            self.children.iter().filter(|child| !child.has_ended()).map(|child| child.node).collect();
        for node in left {
            self.say(&format!("{} {NOT_ENDED} within {EXIT_TIMEOUT:?} and is killed", self.name(node)));
        }
        self.children = Children::default();
        let Phase::Ending { ending, .. } = core::mem::replace(&mut self.phase, Phase::Failed(StartError::Interrupted))
        else {
            unreachable!("only an ending run is finished")
        };
        let mut ending = ending;
        let restarted = self.returned.iter().map(|restart| restart.node);
        let touched: BTreeSet<NodeId> = restarted.chain(ending.dead.iter().copied()).collect();
        for node in touched {
            if self.assembly.application(node).is_some_and(|app| app.role == Role::Sfo) {
                let (files, remarks) = self.left_files.of(&self.name(node), &ending.files);
                ending.files.extend(files);
                remarks.iter().for_each(|remark| self.say(remark));
            }
        }
        self.phase = Phase::Over(ending);
    }

    fn show_progress(&mut self, now: Time, host: &mut Host) {
        let (Phase::Running(controller), Some(probe)) = (&self.phase, &mut self.probe.0) else { return };
        let elapsed = now.since(self.began.unwrap_or(now));
        let reports = self
            .assembly
            .applications
            .iter()
            .filter_map(|app| host.report(now, app.node).or_else(|| controller.lives().of(app.node)));
        let mut figures = figures(elapsed, &self.assembly, reports);
        figures.stopping = controller.draining();
        figures.troubles = self.words.troubles(|node| self.assembly.name(node)).collect();
        // What a life had counted since its last report died with it, until the next one finds it in files or is told.
        figures.is_at_least(&self.shown);
        self.shown.clone_from(&figures);
        probe.figures(&figures);
        // What is asked for while the run drains could come when the last reports are collected.
        if controller.is_running() {
            for child in self.children.iter() {
                host.send_from_control(child.node, Message::Command(Command::Report));
            }
        }
    }

    fn say(&mut self, text: &str) {
        if let Some(probe) = &mut self.probe.0 {
            probe.said(text);
        }
    }

    fn name(&self, node: NodeId) -> String {
        self.assembly.name(node)
    }
}

/// Whether these words are the parent's on how a child ended.
fn is_exit(text: &str) -> bool {
    text.starts_with("exited with") || text.starts_with("killed by")
}

const TICK: Duration = Duration::from_millis(20);
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

/// How long a lost connection may stay without a death that explains it.
const GRACE: Duration = Duration::from_secs(1);
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);
/// So many of the applications that are missing are named.
const NAMED: usize = 8;
const NOT_ENDED: &str = "was told to end, did not";
