//! From a configuration to components: which application has which parameters.

use std::time::Duration;

use base::ids::{EventId, NodeId, Role};
use base::sampling::SamplingRule;
use configuration as toml;
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::push_control::BuildingMode;
use dataflow::building::pushed::PushedParameters;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::{Patience, RequestOrder, Sfi, SfiParameters, Source};
use dataflow::component::Component;
use dataflow::filter::efd::{Decider, Demand, Efd, EfdParameters};
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::{StreamRule, one_stream};
use dataflow::level1::dead_time::{DeadTimeParameters, LeakyBucket};
use dataflow::level1::external::{External, ExternalParameters, ProcessorLoss, ProcessorParameters};
use dataflow::level1::kept::Keep;
use dataflow::level1::led::Led;
use dataflow::level1::pace::Spacing;
use dataflow::level1::sliced::Sliced;
use dataflow::level1::trigger::{Level1, Level1Parameters, TriggerInput, TriggerSource};
use dataflow::level2::l2pu::{L2pu, L2puParameters};
use dataflow::level2::l2sv::{L2puAssignment, L2sv, L2svParameters};
use dataflow::readout::pusher::{Destination, PushParameters};
use dataflow::readout::ros::{LinkParameters, LinksParameters, ReadOut, Ros, RosParameters, TimedParameters};
use dataflow::readout::rule::{Axis, Rule};
use dataflow::readout::slices::{Slices, slices_within};
use dataflow::readout::watch::Watched;
use dataflow::recording::sfo::{Durable, Sfo, SfoParameters};
use dataflow::roc::ebif::{Ebif, EbifParameters};
use dataflow::roc::trg::{Trg, TrgParameters};
use trigger::LEVEL2_RESULT;

use crate::Assembly;
use crate::bounds::L2PU_RETRIES;
use crate::returns::returns;

/// Everything that a component is told at its birth.
#[derive(Clone, Debug)]
pub enum Parameters {
    /// Of level 1.
    Level1(Level1Parameters, TriggersFrom),
    /// Of a level-2 supervisor.
    L2sv(L2svParameters),
    /// Of a level-2 processing unit.
    L2pu(L2puParameters),
    /// Of a read-out system or the pROS.
    Ros(RosParameters),
    /// Of the dataflow manager.
    Dfm(DfmParameters),
    /// Of an event builder.
    Sfi(SfiParameters),
    /// Of an event-filter dataflow daemon.
    Efd(EfdParameters),
    /// Of a recorder.
    Sfo(SfoParameters),
    /// Of the front of a crate.
    Trg(TrgParameters),
    /// Of the interface of a crate to event building.
    Ebif(EbifParameters),
}

/// Where level 1 has its triggers from, if it does not make them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriggersFrom {
    /// From processors outside.
    Outside(ExternalParameters),
    /// From a source whose link this read-out system has.
    Link(NodeId),
    /// There are none: events are slices of time.
    Time {
        /// Of a slice.
        length: Duration,
        /// How long it waits.
        grace: Duration,
    },
}

impl Parameters {
    /// The component. `triggers` is for level 1; without them they come from outside.
    pub fn component(self, triggers: Option<Box<dyn TriggerSource + Send>>) -> Box<dyn Component + Send> {
        match self {
            Self::Level1(parameters, from) => {
                let readout = parameters.readout.clone();
                let outside = || match from {
                    TriggersFrom::Time { length, grace } => TriggerInput::Time(Sliced::of(length, grace, readout)),
                    TriggersFrom::Outside(parameters) => TriggerInput::External(Box::new(External::new(parameters))),
                    TriggersFrom::Link(ros) => TriggerInput::Link(Led::by(ros)),
                };
                Box::new(Level1::new(parameters, triggers.map_or_else(outside, TriggerInput::Source)))
            }
            Self::L2sv(parameters) => Box::new(L2sv::new(parameters)),
            Self::L2pu(parameters) => Box::new(L2pu::new(parameters)),
            Self::Ros(parameters) => Box::new(Ros::new(parameters)),
            Self::Dfm(parameters) => Box::new(Dfm::new(parameters)),
            Self::Sfi(parameters) => Box::new(Sfi::new(parameters)),
            Self::Efd(parameters) => Box::new(Efd::new(parameters)),
            Self::Sfo(parameters) => Box::new(Sfo::new(parameters)),
            Self::Trg(parameters) => Box::new(Trg::new(parameters)),
            Self::Ebif(parameters) => Box::new(Ebif::new(parameters)),
        }
    }
}

impl Assembly {
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
        self.parameters(node, false).component(triggers)
    }

    /// What the component of an application is told; `late` if it comes into a run that has begun.
    ///
    /// # Panics
    /// If the node is none of an application of the partition.
    pub fn parameters(&self, node: NodeId, late: bool) -> Parameters {
        let role = self.application(node).expect("an application of the partition").role;
        let index = self.index_in_role(node);
        match role {
            Role::Level1 => {
                let from = self.leading_ros().map(TriggersFrom::Link).or_else(|| self.time());
                Parameters::Level1(self.level1(), from.unwrap_or_else(|| TriggersFrom::Outside(self.outside())))
            }
            Role::L2sv => Parameters::L2sv(self.l2sv(index)),
            Role::L2pu => Parameters::L2pu(self.l2pu(index)),
            Role::Pros => Parameters::Ros(RosParameters { late, ..self.pros() }),
            Role::Ros => Parameters::Ros(RosParameters { late, ..self.in_crate(index, self.ros(index)) }),
            Role::Dfm => Parameters::Dfm(DfmParameters { late, ..self.dfm() }),
            Role::Sfi => Parameters::Sfi(self.sfi(index)),
            Role::Efd => Parameters::Efd(self.efd()),
            Role::Sfo => Parameters::Sfo(SfoParameters { late, ..self.sfo() }),
            Role::Trg => Parameters::Trg(TrgParameters { late, ..self.trg(index) }),
            Role::Ebif => Parameters::Ebif(self.ebif(index)),
            Role::RunControl => unreachable!("run control is no component"),
        }
    }

    pub(crate) fn level1_node(&self) -> Option<NodeId> {
        self.of(Role::Level1).first().copied()
    }

    pub(crate) fn is_phased(&self) -> bool {
        self.partition.l2pu.as_ref().is_some_and(|l2pu| l2pu.phased)
    }

    /// The dataflow manager, if events are built.
    fn dfm_node(&self) -> Option<NodeId> {
        self.of(Role::Dfm).first().copied()
    }

    /// Who clears the read-out: the DFM, else the one L2SV.
    pub(crate) fn clearer(&self) -> NodeId {
        self.dfm_node().or_else(|| self.of(Role::L2sv).first().copied()).expect("checked: one of them is there")
    }

    /// Each application of a role draws other random numbers.
    pub(crate) fn seed_of(&self, index: usize) -> u64 {
        self.partition.run.seed.wrapping_add(index as u64)
    }

    fn first(&self) -> EventId {
        EventId(u64::from(self.partition.run.first_lvl1_id))
    }

    /// The window of level 1. All that is in it when a ROS raises busy must find a page. Level 2 asks for the data of
    /// an event that waits for one in vain, and decides without them.
    pub(crate) fn in_flight(&self) -> u64 {
        if let Some(in_flight) = self.scale.in_flight {
            return in_flight;
        }
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
        // Processors that are played have the rate themselves.
        let rate = level1.rate.filter(|_| level1.source != toml::Level1Source::External);
        let l2svs = self.of(Role::L2sv);
        Level1Parameters {
            readout: self.fronts(),
            keep: self.keep(),
            listeners: if l2svs.is_empty() { Vec::new() } else { self.of(Role::Dfm) },
            deciders: if l2svs.is_empty() { self.of(Role::Dfm) } else { l2svs },
            first: self.first(),
            limit: self.partition.run.events,
            spacing: spacing(rate, poisson),
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

    /// The units of a supervisor, which it takes in turn. Each begins elsewhere, or all would give their events to the
    /// same unit at the same time.
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
            seed: self.seed_of(index),
        }
    }

    fn l2pu(&self, index: usize) -> L2puParameters {
        let l2pu = self.partition.l2pu.clone().unwrap_or_default();
        let trgs = self.of(Role::Trg);
        let front_of = |place, node| self.partition.crate_of(place).map_or(node, |place| trgs[place]);
        let ros = self.of(Role::Ros).into_iter().enumerate().map(|(place, node)| front_of(place, node));
        let mut ros_of_rob: Vec<(u32, NodeId)> =
            ros.zip(&self.robs).flat_map(|(node, robs)| robs.iter().map(move |rob| (*rob, node))).collect();
        ros_of_rob.sort_unstable();
        L2puParameters {
            workers: l2pu.workers as usize,
            ros_of_rob,
            pros: self.of(Role::Pros).first().copied(),
            builder: l2pu.phased.then(|| self.of(Role::Sfi)).map(|sfis| sfis[index % sfis.len()]),
            overrides: self.overrides,
            sink: (l2pu.strategy == toml::Strategy::Sink).then(|| l2pu.accept.as_f64()),
            request_timeout: l2pu.request_timeout.duration(),
            retries: L2PU_RETRIES as u32,
        }
    }

    pub(crate) fn ros(&self, index: usize) -> RosParameters {
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
                bytes_per_s: push.link_per_second.map(|link| link.bytes() / u64::from(self.partition.sources())),
                burst_bytes: push.burst.bytes(),
                group: push.group as usize,
                group_age: push.group_age.duration(),
                seed: self.seed_of(index),
            }),
            read_out: match (self.partition.ros.input, self.level1_node()) {
                (toml::RosInput::Links, _) => ReadOut::Pushed,
                (_, Some(_)) => ReadOut::OnTrigger,
                (_, None) => ReadOut::OnRequest,
            },
            links: self.links(index),
            sampling: self.sampling(toml::SamplingStage::Ros),
            level1: self.level1_node(),
            in_flight: self.in_flight(),
            dfm: self.clearer(),
            late: false,
        }
    }

    /// The sources of a read-out system, by the place of its ROBs among all.
    fn links(&self, index: usize) -> LinksParameters {
        if self.partition.ros.input != toml::RosInput::Links {
            return LinksParameters::default();
        }
        let leader = self.partition.leader();
        let link = |(place, source): (usize, &toml::LinkSource)| LinkParameters {
            unordered: !source.ordered,
            tolerated: source.on_missing == toml::OnMissing::Tolerate,
            awaited: source.on_missing == toml::OnMissing::Wait,
            whole: matches!(source.on_missing, toml::OnMissing::Drop | toml::OnMissing::DebugStream),
            leads: leader == Some(place),
            one_by_one: source.handshake == Some(toml::Handshake::Eudet),
            timed: self.timed(source),
            watched: if leader == Some(place) { Watched::No } else { self.watched(source) },
        };
        LinksParameters {
            each: self.sources_of(index).map(link).collect(),
            grace: SOURCE_GRACE,
            slice: self.slices(),
            by_triggers: leader.is_some_and(|place| self.partition.source[place].clock == toml::SourceClock::Model),
            wait: self.partition.level1.as_ref().map_or(Duration::ZERO, |level1| level1.slice_grace().duration()),
            framing: Some(self.framing.clone()),
        }
    }

    /// How time is cut, where events are slices of it; each source reaches as far as it likes.
    fn slices(&self) -> Option<Slices> {
        let length = self.partition.slice_ns()?;
        let level1 = self.partition.level1.as_ref()?;
        let window = level1.window.map_or(length, toml::Interval::ns);
        let apart = slices_within(Duration::from_nanos(length), level1.slice_grace().duration());
        Some(Slices { length, window, before: 0, after: 0, apart })
    }

    /// What the clock of a source is known from.
    fn watched(&self, source: &toml::LinkSource) -> Watched {
        if source.clock == toml::SourceClock::None {
            return Watched::No;
        }
        match (self.partition.matching(source), self.timed(source)) {
            (toml::Matching::Number, _) => Watched::Numbers,
            (toml::Matching::Count, _) => Watched::Counts,
            (toml::Matching::Time, timed) => {
                let window = timed.map_or(0, |timed| timed.rule.before.max(timed.rule.after));
                Watched::Times { window, in_step: source.offset.is_some() }
            }
        }
    }

    /// How the data of a source are matched by time or count, if they are.
    pub fn timed(&self, source: &toml::LinkSource) -> Option<TimedParameters> {
        let level1 = self.partition.level1.as_ref()?;
        let ns = |own: Option<toml::Interval>, all| own.or(all).map_or(0, toml::Interval::ns);
        match self.partition.matching(source) {
            toml::Matching::Number => None,
            toml::Matching::Time => {
                let rule = Rule {
                    axis: Axis::Time,
                    offset: source.offset.map_or(0, toml::Shift::ns),
                    before: ns(source.before, level1.before),
                    after: ns(source.after, level1.after),
                    exclusive: !source.inclusive,
                };
                Some(TimedParameters { rule, chunks_max: source.chunks as usize })
            }
            toml::Matching::Count => {
                let offset = source.first_count.map_or(0, i64::saturating_neg);
                Some(TimedParameters { rule: Rule { axis: Axis::Count, offset, ..Rule::default() }, chunks_max: 1 })
            }
        }
    }

    /// Level-1 processors outside.
    fn outside(&self) -> ExternalParameters {
        let level1 = self.partition.level1.clone().unwrap_or_default();
        let ahead = usize::try_from(self.in_flight()).unwrap_or(usize::MAX);
        let processor = |(place, processor): (usize, &toml::Processor)| ProcessorParameters {
            id: toml::Processor::source_id(place),
            on_loss: match processor.on_loss {
                toml::ProcessorLoss::Stop => ProcessorLoss::Stop,
                toml::ProcessorLoss::Wait => ProcessorLoss::Wait,
                toml::ProcessorLoss::GoOn => ProcessorLoss::GoOn,
            },
        };
        ExternalParameters {
            processors: level1.processor.iter().enumerate().map(processor).collect(),
            join_timeout: level1.join_timeout.duration(),
            ahead: ahead.clamp(1, self.scale.triggers_ahead),
            grace: SOURCE_GRACE,
            after_sources: self.partition.ros.input == toml::RosInput::Links,
        }
    }

    /// Where events are slices of time.
    fn time(&self) -> Option<TriggersFrom> {
        let level1 = self.partition.level1.as_ref()?;
        let length = Duration::from_nanos(level1.slice_ns()?);
        Some(TriggersFrom::Time { length, grace: level1.slice_grace().duration() })
    }

    /// The sources of a read-out system with their places among all.
    pub fn sources_of(&self, ros: usize) -> impl Iterator<Item = (usize, &toml::LinkSource)> {
        let robs = &self.robs[ros];
        let all = self.partition.source.iter().enumerate();
        all.filter(|(place, source)| robs.contains(&source.source_id(*place)))
    }

    /// The read-out system of the source that leads, if one does.
    pub fn leading_ros(&self) -> Option<NodeId> {
        let leader = self.partition.leader()?;
        let id = self.partition.source[leader].source_id(leader);
        let index = self.robs.iter().position(|robs| robs.contains(&id))?;
        self.of(Role::Ros).get(index).copied()
    }

    /// Most bytes of replies for building in one message: what fits one datagram, if that is long.
    fn reply_group_bytes(&self) -> usize {
        let (transport, most) = (&self.partition.transport, self.scale.reply_group_bytes);
        let replies = [toml::MessageType::EventReply, toml::MessageType::Pushed];
        let room = transport.datagram_len().saturating_sub(REPLY_HEAD_BYTES) as usize;
        let in_long_datagrams = replies.into_iter().any(|of| transport.way(of) == toml::Way::Udp) && room >= most / 2;
        if in_long_datagrams { room.min(most) } else { most }
    }

    /// A result is kept from its decision until the event is cleared. There are as many as there can be events in level
    /// 2, waiting for an SFI, and in SFIs.
    fn pros(&self) -> RosParameters {
        let l2sv = self.partition.l2sv.clone().unwrap_or_default();
        let in_level2 = (l2sv.count * l2sv.events_in_system) as usize + self.in_flight() as usize;
        let all = in_level2 + self.partition.dfm.queue as usize + self.events_behind_ros();
        let pages = self.scale.result_pages.unwrap_or(all);
        RosParameters {
            robs: vec![LEVEL2_RESULT.0],
            pages_per_rob: pages,
            busy_above: pages,
            busy_below: pages,
            read_out: ReadOut::Results,
            links: LinksParameters::default(),
            push: None,
            sampling: None,
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
                toml::BuildingMode::PushByNumber => BuildingMode::PushByTable { readout: self.fronts(), run },
            },
            input: match dfm.input {
                toml::DfmInput::Level2 => DfmInput::Level2 { l2svs: self.of(Role::L2sv), level1: level1() },
                toml::DfmInput::Level1 => DfmInput::Level1(level1()),
                toml::DfmInput::SelfTrigger => DfmInput::SelfTrigger {
                    readout: self.fronts(),
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
        let is_awaited = |ros| self.sources_of(ros).any(|(_, source)| source.on_missing == toml::OnMissing::Wait);
        let all = self.of(Role::Ros).into_iter().zip(&self.robs).enumerate();
        let alone = all.filter(|(index, _)| self.partition.crate_of(*index).is_none());
        let ros = alone.map(|(index, (node, robs))| {
            let patience = if is_awaited(index) { Patience::Always } else { Patience::Tries };
            Source { node, robs: robs.clone(), results: false, patience }
        });
        let crates = self.of(Role::Ebif).into_iter().enumerate().map(|(place, node)| {
            let mut within = (0..self.robs.len()).filter(|ros| self.partition.crate_of(*ros) == Some(place));
            let patience = if within.any(is_awaited) { Patience::Always } else { Patience::WhileAway };
            let robs = self.systems_of(place).into_iter().flat_map(|system| system.robs).collect();
            Source { node, robs, results: false, patience }
        });
        let pros = self.of(Role::Pros).into_iter();
        let result = |node| Source { node, robs: vec![LEVEL2_RESULT.0], results: true, patience: Patience::Tries };
        let pros = pros.map(result);
        SfiParameters {
            sources: ros.chain(crates).chain(pros).collect(),
            dfm: self.clearer(),
            efds: self.of(Role::Efd),
            events: sfi.events as usize,
            event_bytes_max: usize::try_from(sfi.max_event_size.bytes()).unwrap_or(usize::MAX),
            building: sfi.building as usize,
            collected: if self.is_phased() { self.scale.collected.unwrap_or(sfi.events as usize) } else { 0 },
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
                ahead: self.scale.pushed_ahead.unwrap_or(self.partition.ros.pages.max(sfi.events) as usize),
            }),
            request_timeout: sfi.request_timeout.duration(),
            retries: sfi.retries,
            in_order: self.partition.sfo.as_ref().is_some_and(|sfo| sfo.order == toml::EventOrder::Event),
            sampling: self.sampling(toml::SamplingStage::Sfi),
            seed: self.seed_of(index),
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
            sampling: self.sampling(toml::SamplingStage::Efd),
            demands: self.demands(),
        }
    }

    /// Which events a stage shows to those who watch, if any.
    pub(crate) fn sampling(&self, stage: toml::SamplingStage) -> Option<SamplingRule> {
        let sampling = &self.partition.sampling;
        let mut trigger_types = [0; 4];
        sampling.trigger_types.iter().for_each(|number| trigger_types[usize::from(number / 64)] |= 1 << (number % 64));
        sampling.stages.contains(&stage).then(|| SamplingRule {
            trigger_types,
            items: sampling.items.iter().fold(0, |items, item| items | 1 << item),
            prescale: u64::from(sampling.prescale),
            samples: sampling.samples,
            bytes: usize::try_from(sampling.size.bytes()).unwrap_or(usize::MAX),
        })
    }

    /// Sources without which events shall not go on.
    fn demands(&self) -> Vec<(u32, Demand)> {
        let demand = |(place, source): (usize, &toml::LinkSource)| match source.on_missing {
            toml::OnMissing::Drop => Some((source.source_id(place), Demand::Drop)),
            toml::OnMissing::DebugStream => Some((source.source_id(place), Demand::Debug)),
            toml::OnMissing::Flag | toml::OnMissing::Wait | toml::OnMissing::Tolerate => None,
        };
        self.partition.source.iter().enumerate().filter_map(demand).collect()
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
            toml::Durability::Fsync => Durable::Sync { age: sfo.fsync_age.duration(), events: self.scale.sync_group },
        };
        SfoParameters { durable, retry_after: self.scale.retry_recording_after, late: false }
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

/// What a reply to some requests has around their data.
const REPLY_HEAD_BYTES: u64 = 1024;

/// A source that is away for longer is lost, and one that was told to stop has as long to end.
const SOURCE_GRACE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use configuration::Partition;

    use super::*;

    /// The sum with the place of an application went beyond the numbers that there are.
    #[test]
    fn the_largest_seed_gives_each_application_another_one() {
        let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 3\nrun.seed = 18446744073709551615\n";
        let partition = Partition::parse("p", text, &[]).unwrap();
        let assembly = Assembly::new(partition, vec![vec![0]]);
        let builders = assembly.of(Role::Sfi).into_iter();
        let seeds = builders.map(|node| match assembly.parameters(node, false) {
            Parameters::Sfi(sfi) => sfi.seed,
            other => panic!("{other:?} is no event builder"),
        });
        assert!(seeds.eq([u64::MAX, 0, 1]));
    }
}
