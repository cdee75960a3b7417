//! From a configuration to components: which application has which parameters.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::ids::{EventId, NodeId, Role, RunNumber};
use configuration as toml;
use configuration::{BadMenu, Partition};
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::building::pushed::PushedParameters;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::{RequestOrder, Sfi, SfiParameters, Source};
use dataflow::component::Component;
use dataflow::control::controller::Application;
use dataflow::filter::efd::{Decider, Efd, EfdParameters};
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::{StreamRule, one_stream};
use dataflow::level1::dead_time::{DeadTimeParameters, LeakyBucket};
use dataflow::level1::external::External;
use dataflow::level1::kept::Keep;
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Level1Parameters, TriggerInput, TriggerSource};
use dataflow::level2::l2pu::{L2pu, L2puParameters};
use dataflow::level2::l2sv::{L2puAssignment, L2sv, L2svParameters};
use dataflow::level2::overrides::{Override, Overrides};
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::node::RUN_CONTROL;
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::readout::ros::{ReadOut, Ros, RosParameters};
use dataflow::recording::sfo::{Durable, Sfo, SfoParameters};
use trigger::{LEVEL2_RESULT, Menu};

use crate::host::{Strategy as Steering, replies_kept};
use crate::observer::Observer;
use crate::restarts::returns;

/// A partition with its applications numbered: everything needed to make any of its components.
pub struct Assembly {
    /// The configuration.
    pub partition: Partition,
    /// All applications; the node of the first is 1.
    pub applications: Vec<Application>,
    /// Source identifiers of the ROBs of each ROS.
    pub robs: Vec<Vec<u32>>,
    /// The selection, if there is one.
    menu: Option<Arc<Menu>>,
    /// What is made of the decisions of level 2.
    overrides: Overrides,
    observer: Option<Observer>,
    /// The `weir` that is run in other processes.
    program: Option<PathBuf>,
}

impl Assembly {
    /// Numbers the applications of a partition.
    ///
    /// # Errors
    /// A menu whose names the detector does not have.
    pub fn new(partition: Partition, robs: Vec<Vec<u32>>) -> Result<Self, BadMenu> {
        let numbered = (1..).zip(partition.applications());
        let applications =
            numbered.map(|(node, app)| Application { name: app.name, role: app.role, node: NodeId(node) }).collect();
        let menu = partition.resolve_menu()?;
        let overrides = overrides(&partition)?;
        Ok(Self { partition, applications, robs, menu, overrides, observer: None, program: None })
    }

    /// The same, with somebody who is told of every decision of the selection.
    pub(crate) fn observed_by(self, observer: Option<Observer>) -> Self {
        Self { observer, ..self }
    }

    /// The same, with this `weir` for other processes; without it they run the program of this one.
    pub(crate) fn with_program(self, program: Option<PathBuf>) -> Self {
        Self { program, ..self }
    }

    /// The program of other processes.
    ///
    /// # Errors
    /// The system does not say which one this is.
    pub(crate) fn program(&self) -> io::Result<PathBuf> {
        self.program.clone().map_or_else(std::env::current_exe, Ok)
    }

    /// Whoever is told of every decision of the selection.
    pub(crate) fn observer(&self) -> Option<Observer> {
        self.observer.clone()
    }

    /// The run.
    pub fn run(&self) -> RunNumber {
        RunNumber(self.partition.run.number())
    }

    /// The application at a node; `None` for run control and beyond.
    pub fn application(&self, node: NodeId) -> Option<&Application> {
        self.applications.get(usize::from(node.0).checked_sub(1)?)
    }

    /// What people call the application at a node.
    pub fn name(&self, node: NodeId) -> String {
        match self.application(node) {
            Some(app) => app.name.clone(),
            None if node == RUN_CONTROL => "run control".into(),
            None => format!("{node:?}"),
        }
    }

    /// Index of a node among those of its role.
    pub(crate) fn index_in_role(&self, node: NodeId) -> usize {
        let role = self.application(node).map(|app| app.role);
        self.applications.iter().filter(|app| Some(app.role) == role).take_while(|app| app.node != node).count()
    }

    /// The processor core to which the process of an application is bound.
    pub fn core_of(&self, node: NodeId) -> Option<u32> {
        self.partition.processes.cores.of(self.application(node)?.role, self.index_in_role(node))
    }

    /// All nodes of a role.
    pub fn of(&self, role: Role) -> Vec<NodeId> {
        self.applications.iter().filter(|app| app.role == role).map(|app| app.node).collect()
    }

    /// The roles of all nodes, run control first.
    pub(crate) fn roles(&self) -> Vec<Role> {
        core::iter::once(Role::RunControl).chain(self.applications.iter().map(|app| app.role)).collect()
    }

    /// Read-out systems and the pseudo-ROS: the receivers of clears.
    pub(crate) fn readout(&self) -> Vec<NodeId> {
        [self.of(Role::Ros), self.of(Role::Pros)].concat()
    }

    /// Whether two applications exchange messages.
    pub fn talk(&self, one: NodeId, other: NodeId) -> bool {
        let (Some(one), Some(other)) = (self.application(one), self.application(other)) else { return true };
        let has_level2 = self.partition.l2sv.is_some();
        let pairs = [(one.role, other.role), (other.role, one.role)];
        pairs.into_iter().any(|pair| match pair {
            (Role::Level1, Role::Ros | Role::L2sv | Role::Dfm)
            | (Role::L2sv, Role::L2pu | Role::Dfm)
            | (Role::Dfm, Role::Ros | Role::Pros | Role::Sfi | Role::Efd)
            | (Role::Sfi, Role::Ros | Role::Pros | Role::Efd)
            | (Role::Efd, Role::Sfo) => true,
            (Role::L2pu, Role::Ros | Role::Pros) => has_level2,
            (Role::L2pu, Role::Sfi) => self.is_phased(),
            (Role::L2sv, Role::Ros) => !self.partition.builds(),
            _ => false,
        })
    }

    /// Fragments of each ROB that can be somewhere behind the ROS, inside one process, or kept to be sent again, after the
    /// ROS has cleared them.
    pub(crate) fn events_behind_ros(&self) -> usize {
        let slots = |count: u32, each: u32| (count * each) as usize;
        let filter =
            self.partition.event_filter().map_or(0, |ef| slots(ef.count, ef.slots.max(self.partition.sfi.count)));
        let is_ahead = self.is_phased() || self.partition.push().is_some();
        let ahead = if is_ahead { slots(self.partition.sfi.count, self.partition.sfi.events) } else { 0 };
        let units = self.partition.l2pu.as_ref().map_or(0, |l2pu| l2pu.count);
        let kept = (self.partition.sfi.count + units) as usize * replies_kept(&self.partition);
        slots(self.partition.sfi.count, self.partition.sfi.events) + ahead + 2 * filter + kept
    }

    /// The component of an application in its first life. `triggers` is for level 1; without them they come over the
    /// network.
    ///
    /// # Panics
    /// If the node is none of an application of the partition.
    pub fn component(
        &self,
        node: NodeId,
        triggers: Option<Box<dyn TriggerSource + Send>>,
    ) -> Box<dyn Component + Send> {
        self.component_of_life(node, triggers, false)
    }

    /// The component of an application; `late` if it comes into a run that has begun.
    ///
    /// # Panics
    /// If the node is none of an application of the partition.
    pub fn component_of_life(
        &self,
        node: NodeId,
        triggers: Option<Box<dyn TriggerSource + Send>>,
        late: bool,
    ) -> Box<dyn Component + Send> {
        let role = self.application(node).expect("an application of the partition").role;
        let index = self.index_in_role(node);
        match role {
            Role::Level1 => {
                let outside =
                    || TriggerInput::External(External::new(self.in_flight().clamp(1, EXTERNAL_MAX) as usize));
                Box::new(Level1::new(self.level1(), triggers.map_or_else(outside, TriggerInput::Source)))
            }
            Role::L2sv => Box::new(L2sv::new(self.l2sv(index))),
            Role::L2pu => Box::new(L2pu::new(self.l2pu(index))),
            Role::Pros => Box::new(Ros::new(RosParameters { late, ..self.pros() })),
            Role::Ros => Box::new(Ros::new(RosParameters { late, ..self.ros(index) })),
            Role::Dfm => Box::new(Dfm::new(DfmParameters { late, ..self.dfm() })),
            Role::Sfi => Box::new(Sfi::new(self.sfi(index))),
            Role::Efd => Box::new(Efd::new(self.efd())),
            Role::Sfo => Box::new(Sfo::new(SfoParameters { late, ..self.sfo() })),
            Role::RunControl => unreachable!("run control is no component"),
        }
    }

    /// How an L2PU reaches its decisions.
    pub fn steering(&self) -> Steering {
        let l2pu = self.partition.l2pu.clone().unwrap_or_default();
        match (&self.menu, l2pu.strategy) {
            (Some(menu), toml::Strategy::Menu) => Steering::menu(menu, l2pu.workers as usize),
            _ => Steering::Skeleton(self.skeleton()),
        }
    }

    /// The skeleton of level-2 steering.
    fn skeleton(&self) -> Skeleton {
        let l2pu = self.partition.l2pu.clone().unwrap_or_default();
        let robs_per_step = l2pu.robs_per_step as usize;
        let accept = l2pu.accept.as_f64();
        let strategy = match l2pu.strategy {
            toml::Strategy::None => Strategy::None { accept },
            toml::Strategy::Generate => Strategy::Generate { robs_per_step, accept },
            toml::Strategy::Menu | toml::Strategy::Sink => Strategy::None { accept: l2pu.accept.as_f64() },
            toml::Strategy::TwoStep => Strategy::TwoStep { robs_per_step, step_accept: l2pu.step_accept.as_f64() },
        };
        Skeleton { strategy, robs: self.robs.concat(), seed: self.partition.run.seed }
    }

    fn level1_node(&self) -> Option<NodeId> {
        self.of(Role::Level1).first().copied()
    }

    fn is_phased(&self) -> bool {
        self.partition.l2pu.as_ref().is_some_and(|l2pu| l2pu.phased)
    }

    /// The dataflow manager, if events are built.
    fn dfm_node(&self) -> Option<NodeId> {
        self.of(Role::Dfm).first().copied()
    }

    /// Who clears the read-out: the DFM, else the one L2SV.
    fn clearer(&self) -> NodeId {
        self.dfm_node().or_else(|| self.of(Role::L2sv).first().copied()).expect("checked: one of them is there")
    }

    fn first(&self) -> EventId {
        EventId(u64::from(self.partition.run.first_lvl1_id))
    }

    /// The window of level 1. All that is in it when a ROS raises busy must find a page: level 2 asks for the data of an
    /// event that waits for one in vain, and decides without them.
    fn in_flight(&self) -> u64 {
        let (_, busy_above) = self.busy_limits();
        let free = u64::from(self.partition.ros.pages).saturating_sub(busy_above as u64).max(1);
        self.partition.level1.as_ref().map_or(1, |level1| u64::from(level1.in_flight).min(free))
    }

    /// Pages of a ROB in use: it lowers busy below the first number, which an empty one is, and raises it above the second.
    fn busy_limits(&self) -> (usize, usize) {
        let ros = &self.partition.ros;
        let share = |fraction: toml::Fraction| (fraction.as_f64() * f64::from(ros.pages)) as usize;
        (share(ros.busy_below).max(1), share(ros.busy_above))
    }

    fn level1(&self) -> Level1Parameters {
        let level1 = self.partition.level1.clone().unwrap_or_default();
        let poisson = level1.spacing == toml::Spacing::Poisson;
        let l2svs = self.of(Role::L2sv);
        Level1Parameters {
            readout: self.of(Role::Ros),
            keep: self.keep(),
            listeners: if l2svs.is_empty() { Vec::new() } else { self.of(Role::Dfm) },
            deciders: if l2svs.is_empty() { self.of(Role::Dfm) } else { l2svs },
            first: self.first(),
            limit: self.partition.run.events,
            spacing: spacing(level1.rate, poisson),
            profile: level1
                .profile
                .iter()
                .map(|step| (step.from.duration(), spacing(Some(step.rate), poisson)))
                .collect(),
            crossings: level1.dead_time.as_ref().map(dead_time),
            in_flight: self.in_flight(),
            seed: self.partition.run.seed,
        }
    }

    /// Whether supervisors that die are started again.
    fn supervisors_return(&self) -> bool {
        returns(Role::L2sv, &self.partition)
    }

    /// Which events level 1 tells a decider again that returns.
    fn keep(&self) -> Keep {
        match self.partition.l2sv {
            None => Keep::Unfinished,
            Some(_) if self.supervisors_return() => Keep::Unsettled,
            Some(_) => Keep::Nothing,
        }
    }

    /// The units of a supervisor, which it takes in turn: each begins elsewhere, or all would give their events to the same unit
    /// at the same time.
    fn l2pus_of(&self, index: usize) -> Vec<NodeId> {
        let mut units = self.of(Role::L2pu);
        let first = index * units.len() / self.of(Role::L2sv).len().max(1);
        units.rotate_left(first);
        units
    }

    fn l2sv(&self, index: usize) -> L2svParameters {
        let l2sv = self.partition.l2sv.clone().unwrap_or_default();
        let workers = self.partition.l2pu.clone().unwrap_or_default().workers;
        L2svParameters {
            level1: self.level1_node().expect("level 2 needs level 1"),
            l2pus: self.l2pus_of(index),
            share: workers.div_ceil(l2sv.count) as usize,
            dfm: self.dfm_node(),
            supervisors: l2sv.count as usize,
            overrides: self.overrides,
            assignment: match l2sv.assignment {
                toml::L2svAssignment::RoundRobin => L2puAssignment::RoundRobin,
                toml::L2svAssignment::Random => L2puAssignment::Random,
                toml::L2svAssignment::LeastLoaded => L2puAssignment::LeastLoaded,
            },
            events_in_system: l2sv.events_in_system as usize,
            timeout: l2sv.timeout.duration(),
            forced_limit: l2sv.forced_limit.as_f64(),
            group: l2sv.group as usize,
            group_age: l2sv.group_age.duration(),
            in_flight: self.in_flight(),
            returns: self.supervisors_return(),
            seed: self.partition.run.seed + index as u64,
        }
    }

    fn l2pu(&self, index: usize) -> L2puParameters {
        let l2pu = self.partition.l2pu.clone().unwrap_or_default();
        let ros = self.of(Role::Ros);
        let mut ros_of_rob: Vec<(u32, NodeId)> =
            ros.into_iter().zip(&self.robs).flat_map(|(node, robs)| robs.iter().map(move |rob| (*rob, node))).collect();
        ros_of_rob.sort_unstable();
        L2puParameters {
            workers: l2pu.workers as usize,
            ros_of_rob,
            pros: self.of(Role::Pros).first().copied(),
            builder: l2pu.phased.then(|| self.of(Role::Sfi)[index]),
            overrides: self.overrides,
            sink: (l2pu.strategy == toml::Strategy::Sink).then(|| l2pu.accept.as_f64()),
            request_timeout: l2pu.request_timeout.duration(),
            retries: 2,
        }
    }

    fn ros(&self, index: usize) -> RosParameters {
        let ros = &self.partition.ros;
        let (busy_below, busy_above) = self.busy_limits();
        RosParameters {
            robs: self.robs[index].clone(),
            pages_per_rob: ros.pages as usize,
            busy_above,
            busy_below,
            request_timeout: ros.request_timeout.duration(),
            group_bytes_max: self.reply_group_bytes(),
            push: self.partition.push().map(|push| PushParameters {
                destination: match self.partition.dfm.building {
                    toml::BuildingMode::PushByNumber => Destination::Table,
                    toml::BuildingMode::Pull | toml::BuildingMode::Push => Destination::Assigned,
                },
                sfis: self.of(Role::Sfi),
                window_bytes: self.partition.push_window().bytes(),
                bytes_per_s: push.link_per_second.map(|link| link.bytes() / u64::from(ros.count)),
                burst_bytes: push.burst.bytes(),
                group: push.group as usize,
                group_age: push.group_age.duration(),
                seed: self.partition.run.seed + index as u64,
            }),
            read_out: if self.level1_node().is_some() { ReadOut::OnTrigger } else { ReadOut::OnRequest },
            level1: self.level1_node(),
            in_flight: self.in_flight(),
            dfm: self.clearer(),
            late: false,
        }
    }

    /// Most bytes of replies for building in one message: what fits one datagram, if that is long.
    fn reply_group_bytes(&self) -> usize {
        let transport = &self.partition.transport;
        let replies = [toml::MessageType::EventReply, toml::MessageType::Pushed];
        let room = transport.datagram_len().saturating_sub(REPLY_HEAD_BYTES) as usize;
        let in_long_datagrams =
            replies.into_iter().any(|of| transport.way(of) == toml::Way::Udp) && room >= REPLY_GROUP_BYTES / 2;
        if in_long_datagrams { room.min(REPLY_GROUP_BYTES) } else { REPLY_GROUP_BYTES }
    }

    /// A result is kept from its decision until the event is cleared: as many as there can be events in level 2, waiting
    /// for an SFI, and in SFIs.
    fn pros(&self) -> RosParameters {
        let l2sv = self.partition.l2sv.clone().unwrap_or_default();
        let in_level2 = (l2sv.count * l2sv.events_in_system) as usize + self.in_flight() as usize;
        let pages = in_level2 + self.partition.dfm.queue as usize + self.events_behind_ros();
        RosParameters {
            robs: vec![LEVEL2_RESULT.0],
            pages_per_rob: pages,
            busy_above: pages,
            busy_below: pages,
            read_out: ReadOut::Results,
            push: None,
            level1: None,
            ..self.ros(0)
        }
    }

    fn dfm(&self) -> DfmParameters {
        let dfm = &self.partition.dfm;
        let level1 = || self.level1_node().expect("this input of the DFM needs level 1");
        let run = self.partition.push().map_or(1, |push| push.group);
        DfmParameters {
            run: run as usize,
            mode: match dfm.building {
                toml::BuildingMode::Pull => BuildingMode::Pull,
                toml::BuildingMode::Push => BuildingMode::PushAssigned,
                toml::BuildingMode::PushByNumber => BuildingMode::PushByTable { readout: self.of(Role::Ros), run },
            },
            input: match dfm.input {
                toml::DfmInput::Level2 => DfmInput::Level2 { l2svs: self.of(Role::L2sv), level1: level1() },
                toml::DfmInput::Level1 => DfmInput::Level1(level1()),
                toml::DfmInput::SelfTrigger => DfmInput::SelfTrigger {
                    readout: self.of(Role::Ros),
                    first: self.first(),
                    limit: self.partition.run.events,
                    spacing: spacing(dfm.rate, false),
                    seed: self.partition.run.seed,
                },
            },
            sfis: self.of(Role::Sfi),
            efds: self.of(Role::Efd),
            building: self.partition.sfi.building as usize,
            assignment: match dfm.assignment {
                toml::SfiAssignment::RoundRobin => SfiAssignment::RoundRobin,
                toml::SfiAssignment::LeastLoaded => SfiAssignment::LeastLoaded,
            },
            build_timeout: dfm.build_timeout.duration(),
            clear_group: dfm.clear_group as usize,
            clear_age: dfm.clear_age.duration(),
            clear_after: match dfm.clear_after {
                toml::ClearAfter::Built => ClearAfter::Built,
                toml::ClearAfter::Recorded => ClearAfter::Recorded,
            },
            supervisors_return: self.supervisors_return(),
            returns: returns(Role::Dfm, &self.partition),
            queue: dfm.queue as usize,
            in_flight: self.in_flight(),
            late: false,
        }
    }

    fn sfi(&self, index: usize) -> SfiParameters {
        let sfi = &self.partition.sfi;
        let ros = self.of(Role::Ros).into_iter().zip(&self.robs);
        let ros = ros.map(|(node, robs)| Source { node, robs: robs.clone(), results: false });
        let pros = self.of(Role::Pros).into_iter();
        let pros = pros.map(|node| Source { node, robs: vec![LEVEL2_RESULT.0], results: true });
        SfiParameters {
            sources: ros.chain(pros).collect(),
            dfm: self.clearer(),
            efds: self.of(Role::Efd),
            events: sfi.events as usize,
            event_bytes_max: usize::try_from(sfi.max_event_size.bytes()).unwrap_or(usize::MAX),
            building: sfi.building as usize,
            collected: if self.is_phased() { sfi.events as usize } else { 0 },
            outstanding_requests: sfi.outstanding_requests as usize,
            credits: match sfi.credits {
                toml::RequestCredits::Fixed => CreditPolicy::Fixed,
                toml::RequestCredits::Adaptive => CreditPolicy::Adaptive,
            },
            request_order: match sfi.request_order {
                toml::RequestOrder::Random => RequestOrder::Random,
                toml::RequestOrder::Rotating => RequestOrder::Rotating,
            },
            push: self.partition.push().map(|_| PushedParameters {
                window_bytes: self.partition.push_window().bytes(),
                timeout: sfi.request_timeout.duration(),
                // By number, all that a read-out system holds may come ahead.
                ahead: self.partition.ros.pages.max(sfi.events) as usize,
            }),
            request_timeout: sfi.request_timeout.duration(),
            retries: sfi.retries,
            in_order: self.partition.sfo.as_ref().is_some_and(|sfo| sfo.order == toml::EventOrder::Event),
            seed: self.partition.run.seed + index as u64,
        }
    }

    fn efd(&self) -> EfdParameters {
        let ef = self.partition.event_filter().expect("a partition with an EFD has a filter");
        let seed = self.partition.run.seed;
        EfdParameters {
            sfis: self.of(Role::Sfi),
            sfos: self.of(Role::Sfo),
            dfm: self.clearer(),
            dfm_returns: returns(Role::Dfm, &self.partition),
            slots: ef.slots as usize,
            decider: if self.partition.pt.is_some() {
                Decider::Tasks
            } else {
                Decider::Policy(match ef.policy {
                    toml::FilterPolicy::Accept => FilterPolicy::AcceptAll,
                    toml::FilterPolicy::Prescale => FilterPolicy::Prescale { factor: u64::from(ef.prescale) },
                    toml::FilterPolicy::Random => FilterPolicy::Random { accept: ef.accept.as_f64(), seed },
                })
            },
            streams: self.stream_rules(),
        }
    }

    /// When each of the streams takes an event: those of the configuration, else the one that takes all.
    fn stream_rules(&self) -> Vec<StreamRule> {
        if self.partition.stream.is_empty() {
            return one_stream();
        }
        let menu = self.partition.menu.as_ref();
        let names: Vec<&str> = menu.iter().flat_map(|menu| &menu.chain).map(|chain| chain.name.as_str()).collect();
        self.partition.stream.iter().map(|stream| stream_rule(stream, &names)).collect()
    }

    fn sfo(&self) -> SfoParameters {
        let sfo = self.partition.sfo.clone().unwrap_or_default();
        let durable = match sfo.durable {
            // The file is made durable when it is closed; until then an acknowledgement means as much as a write.
            toml::Durability::Write | toml::Durability::File => Durable::Write,
            toml::Durability::Fsync => Durable::Sync { age: sfo.fsync_age.duration(), events: SYNC_GROUP },
        };
        SfoParameters { durable, retry_after: RETRY_RECORDING_AFTER, late: false }
    }
}

/// The bit of a chain is its place among `chain_names`.
fn stream_rule(stream: &toml::Stream, chain_names: &[&str]) -> StreamRule {
    let bit = |name: &String| {
        let place = chain_names.iter().position(|known| known == name);
        1_u64 << place.expect("checked: the chains of a stream are those of the menu")
    };
    StreamRule {
        chains: stream.chains.iter().map(bit).fold(0, |bits, bit| bits | bit),
        by_name: stream.by_name,
        prescale: u64::from(stream.prescale),
    }
}

fn overrides(partition: &Partition) -> Result<Overrides, BadMenu> {
    let (force_accept_items, veto_items) = partition.overridden_items()?;
    let all = match partition.l2sv.as_ref().map(|l2sv| l2sv.decisions).unwrap_or_default() {
        toml::Decisions::AsFound => Override::None,
        toml::Decisions::ForceAccept => Override::ForceAccept,
        toml::Decisions::ForceReject => Override::ForceReject,
    };
    Ok(Overrides { all, force_accept_items, veto_items })
}

fn dead_time(dead_time: &toml::DeadTime) -> DeadTimeParameters {
    let bucket =
        |bucket: &toml::LeakyBucket| LeakyBucket { size: u64::from(bucket.size), drain: u64::from(bucket.drain) };
    let complex = dead_time.complex.iter().map(bucket).collect();
    DeadTimeParameters { simple: u64::from(dead_time.simple), complex }
}

fn spacing(rate: Option<toml::Rate>, poisson: bool) -> Spacing {
    match rate.map(|rate| Duration::from_secs_f64(1.0 / rate.hertz())) {
        None => Spacing::Unlimited,
        Some(interval) if poisson => Spacing::Poisson(interval),
        Some(interval) => Spacing::Fixed(interval),
    }
}

/// Triggers from the network that level 1 asks for ahead.
const EXTERNAL_MAX: u64 = 256;
const SYNC_GROUP: usize = 1000;
const RETRY_RECORDING_AFTER: Duration = Duration::from_secs(1);

/// What a reply to some requests has around their data.
const REPLY_HEAD_BYTES: u64 = 1024;

/// Most bytes of replies for building in one message, unless an event alone has more: large enough that what a message
/// costs no longer counts, small enough that a builder works on the first while the next are on their way.
pub(crate) const REPLY_GROUP_BYTES: usize = 64 << 10;
