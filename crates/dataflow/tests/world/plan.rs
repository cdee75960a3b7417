//! What a run consists of: drawn from a seed, printed with every failure.

use std::time::Duration;

use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::{ClearAfter, Dfm, DfmInput, DfmParameters};
use dataflow::building::sfi::{Sfi, SfiParameters, Source};
use dataflow::component::Component;
use dataflow::control::controller::Application;
use dataflow::filter::efd::Decider;
use dataflow::filter::efd::{Efd, EfdParameters};
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::one_stream;
use dataflow::ids::{EventId, Incarnation, NodeId, Role, RunNumber};
use dataflow::level1::dead_time::{DeadTimeParameters, LeakyBucket};
use dataflow::level1::external::External;
use dataflow::level1::pace::Spacing;
use dataflow::level1::trigger::{Level1, Level1Parameters, Trigger, TriggerInput, TriggerSource};
use dataflow::level2::l2pu::{L2pu, L2puParameters};
use dataflow::level2::l2sv::{L2puAssignment, L2sv, L2svParameters};
use dataflow::level2::overrides::{Override, Overrides};
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::message::Roi;
use dataflow::node::Node;
use dataflow::random::{Random, unit_of_event};
use dataflow::readout::ros::{ReadOut, Ros, RosParameters};
use dataflow::recording::sfo::{Durable, Sfo, SfoParameters};

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) run: u32,
    pub(crate) input: InputKind,
    pub(crate) counts: Counts,
    pub(crate) robs_per_ros: u16,
    pub(crate) pages: usize,
    pub(crate) events: u64,
    pub(crate) first: u64,
    pub(crate) spacing: Spacing,
    pub(crate) profile: Vec<(Duration, Spacing)>,
    pub(crate) crossings: Option<DeadTimeParameters>,
    /// Triggers come from outside: so many are asked for at once.
    pub(crate) credit: Option<usize>,
    /// Whether level 1 has a limit of its own, or only the outside ends.
    pub(crate) limited: bool,
    pub(crate) in_flight: u64,
    pub(crate) events_in_system: usize,
    pub(crate) forced_limit: f64,
    pub(crate) strategy: Strategy,
    pub(crate) workers: usize,
    pub(crate) sink: Option<f64>,
    /// Phased selection: each L2PU feeds an SFI, which keeps so many events.
    pub(crate) phased: Option<usize>,
    pub(crate) overrides: Overrides,
    /// What a step of steering takes.
    pub(crate) steering_cost: Duration,
    /// What it takes before this time of the run instead.
    pub(crate) heavy_until: Option<(Duration, Duration)>,
    pub(crate) assignment: L2puAssignment,
    pub(crate) sfi_assignment: SfiAssignment,
    pub(crate) building: usize,
    pub(crate) sfi_events: usize,
    pub(crate) requests: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) l2_timeout: Duration,
    pub(crate) clear_after: ClearAfter,
    pub(crate) clear_group: usize,
    pub(crate) dfm_queue: usize,
    pub(crate) policy: FilterPolicy,
    /// The policy is that of processing tasks, which also fail for some events.
    pub(crate) filter_tasks: bool,
    pub(crate) efd_slots: usize,
    pub(crate) durable: Durable,
    pub(crate) in_order: bool,
    pub(crate) links: Links,
    pub(crate) fragment_faults: Links,
    pub(crate) record_failures: f64,
    pub(crate) slow_steering: f64,
    /// Fraction of connections that are much slower than the others.
    pub(crate) slow_channels: f64,
    /// What the event filter takes for an event.
    pub(crate) processing_cost: Duration,
    /// The event filter never answers after so many events.
    pub(crate) filter_stuck_after: Option<u64>,
    pub(crate) stop_timeout: Duration,
    pub(crate) duration: Option<Duration>,
    pub(crate) late: Vec<(NodeId, Duration)>,
    pub(crate) faults: Vec<(Duration, Fault)>,
    pub(crate) planted: Option<Planted>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    Level2,
    /// Level 2 without anything behind it.
    Level2Only,
    Level1,
    SelfTrigger,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub(crate) l2sv: u16,
    pub(crate) l2pu: u16,
    pub(crate) ros: u16,
    pub(crate) sfi: u16,
    pub(crate) efd: u16,
    pub(crate) sfo: u16,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub(crate) latency: Duration,
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) delay: f64,
    pub(crate) delay_max: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Kill(NodeId),
    Restart(NodeId, Duration),
    /// It hears and says nothing any more, but its connections stand.
    Hang(NodeId),
    Force,
}

/// A bug that must be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Planted {
    LostEvent,
    Duplicate,
    Miscount,
}

impl Plan {
    /// A small, healthy chain.
    pub(crate) fn plain(events: u64) -> Self {
        Self {
            seed: 1,
            run: 7,
            input: InputKind::Level2,
            counts: Counts { l2sv: 1, l2pu: 2, ros: 2, sfi: 2, efd: 1, sfo: 1 },
            robs_per_ros: 3,
            pages: 200,
            events,
            first: 0,
            spacing: Spacing::Unlimited,
            profile: Vec::new(),
            crossings: None,
            credit: None,
            limited: true,
            in_flight: 16,
            events_in_system: 40,
            forced_limit: 0.1,
            strategy: Strategy::TwoStep { robs_per_step: 2, step_accept: 0.7 },
            workers: 3,
            sink: None,
            phased: None,
            overrides: Overrides::default(),
            steering_cost: Duration::ZERO,
            heavy_until: None,
            assignment: L2puAssignment::RoundRobin,
            sfi_assignment: SfiAssignment::RoundRobin,
            building: 4,
            sfi_events: 8,
            requests: 8,
            request_timeout: Duration::from_millis(20),
            l2_timeout: Duration::from_millis(500),
            clear_after: ClearAfter::Built,
            clear_group: 10,
            dfm_queue: 20,
            policy: FilterPolicy::AcceptAll,
            filter_tasks: false,
            efd_slots: 4,
            durable: Durable::Write,
            in_order: false,
            links: Links::perfect(),
            fragment_faults: Links::perfect(),
            record_failures: 0.0,
            slow_steering: 0.0,
            slow_channels: 0.0,
            processing_cost: Duration::ZERO,
            filter_stuck_after: None,
            stop_timeout: Duration::from_secs(10),
            duration: None,
            late: Vec::new(),
            faults: Vec::new(),
            planted: None,
        }
    }

    /// Everything drawn from the seed; `level` of faults: 0 none, 1 the network's, 2 restarts, 3 deaths and forced ends.
    pub(crate) fn draw(seed: u64, level: u32) -> Self {
        let mut random = Random::new(seed);
        let r = &mut random;
        let pick = |r: &mut Random, low: u64, high: u64| low + r.below(high - low + 1);
        let input = match r.below(6) {
            0 => InputKind::Level1,
            1 => InputKind::SelfTrigger,
            _ => InputKind::Level2,
        };
        let counts = Counts {
            l2sv: pick(r, 1, 2) as u16,
            l2pu: pick(r, 1, 3) as u16,
            ros: pick(r, 1, 3) as u16,
            sfi: pick(r, 1, 3) as u16,
            efd: pick(r, 0, 2) as u16,
            sfo: pick(r, 1, 2) as u16,
        };
        let accept = [0.2, 0.5, 1.0][r.below(3) as usize];
        let strategy = match r.below(3) {
            0 => Strategy::None { accept },
            1 => Strategy::Generate { robs_per_step: 2, accept },
            _ => Strategy::TwoStep { robs_per_step: 2, step_accept: accept },
        };
        let policy = match r.below(3) {
            0 => FilterPolicy::AcceptAll,
            1 => FilterPolicy::Prescale { factor: 3 },
            _ => FilterPolicy::Random { accept: 0.5, seed },
        };
        let spacing = match r.below(3) {
            0 => Spacing::Unlimited,
            1 => Spacing::Fixed(Duration::from_micros(200)),
            _ => Spacing::Poisson(Duration::from_micros(300)),
        };
        let building = pick(r, 1, 4) as usize;
        let recorded = counts.efd > 0 && r.chance(0.5);
        let in_order = counts.sfi == 1 && counts.efd == 1 && counts.sfo == 1 && r.chance(0.5);
        let filter_tasks = !in_order && r.chance(0.5);
        let lossy = level >= 1;
        let mut plan = Self {
            seed,
            run: 1 + r.below(100) as u32,
            input,
            counts,
            robs_per_ros: pick(r, 1, 3) as u16,
            // Without level 1 nobody holds back what the pages cannot take.
            pages: if input == InputKind::SelfTrigger { 200 } else { pick(r, 6, 200) as usize },
            events: pick(r, 5, 40),
            first: [0, 1 << 24, 0xffff_ffff - 10, 0x0100_0000 - 5][r.below(4) as usize],
            spacing,
            profile: Vec::new(),
            crossings: None,
            credit: None,
            limited: true,
            in_flight: pick(r, 2, 16),
            events_in_system: pick(r, 4, 40) as usize,
            forced_limit: [0.0, 0.01, 0.1, 1.0][r.below(4) as usize],
            strategy,
            workers: pick(r, 1, 4) as usize,
            sink: None,
            phased: None,
            overrides: Overrides::default(),
            steering_cost: Duration::ZERO,
            heavy_until: None,
            assignment: [L2puAssignment::RoundRobin, L2puAssignment::Random, L2puAssignment::LeastLoaded]
                [r.below(3) as usize],
            sfi_assignment: [SfiAssignment::RoundRobin, SfiAssignment::LeastLoaded][r.below(2) as usize],
            building,
            sfi_events: building + r.below(5) as usize,
            requests: pick(r, 1, 10) as usize,
            request_timeout: Duration::from_millis(pick(r, 5, 30)),
            l2_timeout: Duration::from_millis(pick(r, 50, 500)),
            clear_after: if recorded { ClearAfter::Recorded } else { ClearAfter::Built },
            clear_group: pick(r, 1, 12) as usize,
            dfm_queue: pick(r, 1, 20) as usize,
            policy: if in_order { FilterPolicy::AcceptAll } else { policy },
            filter_tasks,
            efd_slots: pick(r, 1, 6) as usize,
            durable: if r.chance(0.5) {
                Durable::Write
            } else {
                Durable::Sync { age: Duration::from_millis(5), events: 4 }
            },
            in_order,
            links: if lossy { Links::faulty(r) } else { Links::perfect() },
            fragment_faults: if lossy && r.chance(0.5) { Links::faulty(r) } else { Links::perfect() },
            record_failures: if lossy && !in_order && r.chance(0.3) { 0.1 } else { 0.0 },
            slow_steering: if lossy && r.chance(0.3) { 0.1 } else { 0.0 },
            slow_channels: if r.chance(0.3) { 0.2 } else { 0.0 },
            processing_cost: Duration::ZERO,
            filter_stuck_after: None,
            stop_timeout: Duration::from_secs(10),
            duration: r.chance(0.2).then(|| Duration::from_millis(20)),
            late: Vec::new(),
            faults: Vec::new(),
            planted: None,
        };
        plan.draw_trigger(&mut Random::new(seed ^ 0x7216_6e72));
        if plan.has_level2() {
            // The order of decisions is not that of events.
            plan.in_order = false;
        }
        plan.draw_lives(r, level);
        plan
    }

    /// Of what level 1 and level 2 can do besides the plain.
    fn draw_trigger(&mut self, r: &mut Random) {
        if self.input == InputKind::SelfTrigger {
            return;
        }
        if self.input == InputKind::Level2 && r.chance(0.2) {
            self.input = InputKind::Level2Only;
            self.counts.l2sv = 1;
        }
        if r.chance(0.2) {
            self.credit = Some(1 + r.below(5) as usize);
            self.spacing = Spacing::Unlimited;
            self.limited = r.chance(0.5);
        } else if self.spacing != Spacing::Unlimited && r.chance(0.2) {
            self.profile = vec![(Duration::from_millis(1), Spacing::Poisson(Duration::from_micros(100)))];
        }
        if r.chance(0.3) {
            let bucket = |r: &mut Random| LeakyBucket { size: 1 + r.below(4), drain: 1 + r.below(20_000) };
            let complex = (0..r.below(3)).map(|_| bucket(r)).collect();
            self.crossings = Some(DeadTimeParameters { simple: r.below(10_000), complex });
        }
        if r.chance(0.1) {
            self.sink = Some(r.unit());
        }
        if r.chance(0.3) {
            let all =
                [Override::None, Override::None, Override::ForceAccept, Override::ForceReject][r.below(4) as usize];
            self.overrides = Overrides { all, force_accept_items: r.below(32) as u32, veto_items: r.below(32) as u32 };
        }
        if self.input == InputKind::Level2 && r.chance(0.4) {
            self.phased = Some(r.below(6) as usize);
        }
        if r.chance(0.2) {
            self.steering_cost = Duration::from_micros(r.below(500));
        }
    }

    fn draw_lives(&mut self, r: &mut Random, level: u32) {
        let apps = self.applications();
        if level >= 1 && r.chance(0.3) {
            let app = &apps[r.below(apps.len() as u64) as usize];
            self.late.push((app.node, Duration::from_millis(1 + r.below(20))));
        }
        if level == 2 {
            let may_restart = |app: &&Application| {
                let l2sv = app.role == Role::L2sv && self.input == InputKind::Level2;
                l2sv || matches!(app.role, Role::Ros | Role::L2pu | Role::Sfi | Role::Efd | Role::Pros)
            };
            let candidates: Vec<&Application> = apps.iter().filter(may_restart).collect();
            for _ in 0..1 + r.below(2) {
                let node = candidates[r.below(candidates.len() as u64) as usize].node;
                if self.late.iter().any(|(late, _)| *late == node) || self.is_struck(node) {
                    continue;
                }
                let after = Duration::from_millis(1 + r.below(10));
                self.faults.push((Duration::from_micros(r.below(10_000)), Fault::Restart(node, after)));
            }
        }
        if level >= 3 {
            let node = apps[r.below(apps.len() as u64) as usize].node;
            let at = Duration::from_micros(r.below(15_000));
            self.faults.push((at, if r.chance(0.8) { Fault::Kill(node) } else { Fault::Force }));
            self.late.retain(|(late, _)| *late != node);
        }
    }

    fn is_struck(&self, node: NodeId) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Restart(n, _) if *n == node))
    }

    pub(crate) fn applications(&self) -> Vec<Application> {
        let level2 = self.has_level2();
        let builds = self.input != InputKind::Level2Only;
        let has_filter = self.counts.efd > 0;
        let count = |role: Role| match role {
            Role::Level1 => u16::from(self.input != InputKind::SelfTrigger),
            Role::L2sv if level2 => self.counts.l2sv,
            Role::L2pu if level2 => self.counts.l2pu,
            Role::Ros => self.counts.ros,
            _ if !builds => 0,
            Role::Pros => u16::from(level2),
            Role::Dfm => 1,
            Role::Sfi => self.counts.sfi,
            Role::Efd => self.counts.efd,
            Role::Sfo if has_filter => self.counts.sfo,
            _ => 0,
        };
        let order =
            [Role::Level1, Role::L2sv, Role::L2pu, Role::Pros, Role::Ros, Role::Dfm, Role::Sfi, Role::Efd, Role::Sfo];
        let names = order.into_iter().flat_map(|role| (1..=count(role)).map(move |n| (role, format!("{role}-{n}"))));
        (1..).zip(names).map(|(node, (role, name))| Application { name, role, node: NodeId(node) }).collect()
    }

    pub(crate) fn has_level2(&self) -> bool {
        matches!(self.input, InputKind::Level2 | InputKind::Level2Only)
    }

    fn of(&self, role: Role) -> Vec<NodeId> {
        self.applications().into_iter().filter(|app| app.role == role).map(|app| app.node).collect()
    }

    fn one(&self, role: Role) -> Option<NodeId> {
        self.of(role).first().copied()
    }

    /// Whether messages between two nodes take long. One application's own work does not.
    pub(crate) fn is_slow(&self, from: NodeId, to: NodeId) -> bool {
        let pair = EventId(u64::from(from.0) << 16 | u64::from(to.0));
        from != to && unit_of_event(pair, self.seed) < self.slow_channels
    }

    /// After this time all that are not late have found one another.
    pub(crate) fn time_to_connect(&self) -> Duration {
        Duration::from_millis(1) + if self.slow_channels > 0.0 { self.links.delay_max } else { Duration::ZERO }
    }

    /// Whether something never answers, so that the end has to be forced.
    pub(crate) fn is_hindered(&self) -> bool {
        self.filter_stuck_after.is_some() || self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Hang(_)))
    }

    /// Whether nothing is lost or late.
    pub(crate) fn is_healthy(&self) -> bool {
        let perfect = |links: &Links| links.loss + links.duplication + links.delay == 0.0;
        perfect(&self.links) && perfect(&self.fragment_faults) && self.late.is_empty() && self.slow_channels == 0.0
    }

    pub(crate) fn readout(&self) -> Vec<NodeId> {
        [self.of(Role::Ros), self.of(Role::Pros)].concat()
    }

    fn robs(&self, ros: usize) -> Vec<u32> {
        (0..u32::from(self.robs_per_ros)).map(|rob| (ros as u32) << 8 | rob).collect()
    }

    fn all_robs(&self) -> Vec<u32> {
        (0..usize::from(self.counts.ros)).flat_map(|ros| self.robs(ros)).collect()
    }

    pub(crate) fn skeleton(&self) -> Skeleton {
        Skeleton { strategy: self.strategy, robs: self.all_robs(), seed: self.seed }
    }

    pub(crate) fn node(&self, node: NodeId, incarnation: Incarnation) -> Node {
        let apps = self.applications();
        let app = &apps[usize::from(node.0) - 1];
        let index = self.of(app.role).iter().position(|n| *n == node).expect("the node has its role");
        Node::new(node, RunNumber(self.run), incarnation, apps.len() + 1, self.component(app.role, index, incarnation))
    }

    fn component(&self, role: Role, index: usize, incarnation: Incarnation) -> Box<dyn Component + Send> {
        let clears = self.one(Role::Dfm).or(self.one(Role::L2sv)).expect("somebody clears");
        let dfm = self.one(Role::Dfm);
        let ros = |robs, read_out| {
            Box::new(Ros::new(RosParameters {
                robs,
                pages_per_rob: self.pages,
                busy_above: self.pages * 2 / 3,
                busy_below: self.pages / 2,
                request_timeout: Duration::from_millis(10),
                group_bytes_max: 1000,
                read_out,
                level1: self.one(Role::Level1).filter(|_| read_out == ReadOut::OnTrigger),
                in_flight: self.in_flight,
                dfm: clears,
                late: incarnation.0 > 0,
            }))
        };
        match role {
            Role::Level1 => Box::new(Level1::new(
                Level1Parameters {
                    readout: self.of(Role::Ros),
                    deciders: if self.has_level2() { self.of(Role::L2sv) } else { dfm.into_iter().collect() },
                    listeners: if self.has_level2() { dfm.into_iter().collect() } else { Vec::new() },
                    first: EventId(self.first),
                    limit: self.limited.then_some(self.events),
                    spacing: self.spacing,
                    profile: self.profile.clone(),
                    crossings: self.crossings.clone(),
                    in_flight: self.in_flight,
                    seed: self.seed,
                },
                match self.credit {
                    Some(credit) => TriggerInput::External(External::new(credit)),
                    None => TriggerInput::Source(Box::new(Triggers)),
                },
            )),
            Role::L2sv => Box::new(L2sv::new(L2svParameters {
                level1: self.one(Role::Level1).expect("level 2 needs level 1"),
                l2pus: self.of(Role::L2pu),
                share: self.workers.div_ceil(usize::from(self.counts.l2sv)),
                dfm,
                supervisors: usize::from(self.counts.l2sv),
                overrides: self.overrides,
                assignment: self.assignment,
                events_in_system: self.events_in_system,
                timeout: self.l2_timeout,
                forced_limit: self.forced_limit,
                group: self.clear_group,
                group_age: Duration::from_millis(2),
                in_flight: self.in_flight,
                seed: self.seed,
            })),
            Role::L2pu => Box::new(L2pu::new(L2puParameters {
                workers: self.workers,
                ros_of_rob: self.ros_of_rob(),
                pros: self.one(Role::Pros),
                sink: self.sink,
                builder: self.phased.map(|_| self.of(Role::Sfi)[index % usize::from(self.counts.sfi)]),
                request_timeout: self.request_timeout,
                retries: 2,
            })),
            Role::Pros => ros(vec![0x7c_0000], ReadOut::Results),
            Role::Ros => {
                let on_trigger = self.input != InputKind::SelfTrigger;
                ros(self.robs(index), if on_trigger { ReadOut::OnTrigger } else { ReadOut::OnRequest })
            }
            Role::Dfm => Box::new(Dfm::new(self.dfm())),
            Role::Sfi => Box::new(Sfi::new(SfiParameters {
                sources: self.sources(),
                dfm: clears,
                efds: self.of(Role::Efd),
                events: self.sfi_events,
                event_bytes_max: 1 << 20,
                building: self.building,
                collected: self.phased.unwrap_or(0),
                outstanding_requests: self.requests,
                request_timeout: self.request_timeout,
                retries: 3,
                in_order: self.in_order,
                seed: self.seed + index as u64,
            })),
            Role::Efd => Box::new(Efd::new(EfdParameters {
                sfis: self.of(Role::Sfi),
                sfos: self.of(Role::Sfo),
                dfm: clears,
                slots: self.efd_slots,
                decider: if self.filter_tasks { Decider::Tasks } else { Decider::Policy(self.policy) },
                streams: one_stream(),
            })),
            Role::Sfo => {
                Box::new(Sfo::new(SfoParameters { durable: self.durable, retry_after: Duration::from_millis(20) }))
            }
            Role::RunControl => unreachable!("run control is no component"),
        }
    }

    fn dfm(&self) -> DfmParameters {
        let input = match self.input {
            InputKind::Level2 | InputKind::Level2Only => DfmInput::Level2 {
                l2svs: self.of(Role::L2sv),
                level1: self.one(Role::Level1).expect("level 2 needs level 1"),
            },
            InputKind::Level1 => DfmInput::Level1(self.one(Role::Level1).expect("there is a level 1")),
            InputKind::SelfTrigger => DfmInput::SelfTrigger {
                first: EventId(self.first),
                limit: Some(self.events),
                spacing: self.spacing,
                seed: self.seed,
            },
        };
        DfmParameters {
            input,
            sfis: self.of(Role::Sfi),
            building: self.building,
            assignment: self.sfi_assignment,
            build_timeout: Duration::from_millis(200),
            clear_group: self.clear_group,
            clear_age: Duration::from_millis(5),
            clear_after: self.clear_after,
            queue: self.dfm_queue,
            in_flight: self.in_flight,
        }
    }

    fn ros_of_rob(&self) -> Vec<(u32, NodeId)> {
        let ros = self.of(Role::Ros).into_iter().enumerate();
        ros.flat_map(|(index, node)| self.robs(index).into_iter().map(move |rob| (rob, node))).collect()
    }

    fn sources(&self) -> Vec<Source> {
        let ros = self.of(Role::Ros).into_iter().enumerate();
        let ros = ros.map(|(index, node)| Source { node, robs: self.robs(index), results: false });
        let pros = self.one(Role::Pros).map(|node| Source { node, robs: vec![0x7c_0000], results: true });
        ros.chain(pros).collect()
    }
}

impl Links {
    pub(crate) fn perfect() -> Self {
        Self {
            latency: Duration::from_micros(20),
            loss: 0.0,
            duplication: 0.0,
            delay: 0.0,
            delay_max: Duration::from_millis(30),
        }
    }

    fn faulty(r: &mut Random) -> Self {
        let mut some = |most: f64| if r.chance(0.6) { r.unit() * most } else { 0.0 };
        Self { loss: some(0.3), duplication: some(0.2), delay: some(0.2), ..Self::perfect() }
    }
}

struct Triggers;

impl TriggerSource for Triggers {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        Some(trigger(ordinal))
    }
}

/// The trigger with this ordinal, wherever it comes from.
pub(crate) fn trigger(ordinal: u64) -> Trigger {
    let rois = vec![Roi { kind: 0, eta: 0.5, phi: 1.0, et_mev: 25_000, thresholds: 1, ..Roi::default() }];
    Trigger { bcid: (ordinal % 3564) as u16, trigger_type: 0x84, items: 1 << (ordinal % 7), rois }
}
