//! What a run consists of: drawn from a seed, printed with every failure.

use std::time::Duration;

use base::ids::{NodeId, Role};
use base::random::Random;
use control::controller::Application;
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::ClearAfter;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::RequestOrder;
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::{StreamRule, one_stream};
use dataflow::level1::dead_time::{DeadTimeParameters, LeakyBucket};
use dataflow::level1::pace::Spacing;
use dataflow::level2::l2sv::L2puAssignment;
use dataflow::level2::overrides::{Override, Overrides};
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::readout::pusher::Destination;
use dataflow::recording::sfo::Durable;

use super::drawn::Sending;
use simulator::world::{Fault, Joins, Links, Planted, Port, TypeSet};

/// What a run consists of: drawn from a seed, printed with every failure.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of all draws of components and links.
    pub seed: u64,
    /// Run number.
    pub run: u32,
    /// What triggers building.
    pub input: InputKind,
    /// Applications of each role.
    pub counts: Counts,
    /// Read-out crates, if there are any.
    pub crates: Option<Crates>,
    /// Read-out links of each ROS.
    pub robs_per_ros: u16,
    /// Pages of each ROB.
    pub pages: usize,
    /// Events of the run.
    pub events: u64,
    /// Number of the first event.
    pub first: u64,
    /// Intervals between triggers.
    pub spacing: Spacing,
    /// Intervals from these times on.
    pub profile: Vec<(Duration, Spacing)>,
    /// Dead time of the front ends.
    pub crossings: Option<DeadTimeParameters>,
    /// Triggers come from outside: of a processor so many records may wait before it is told to send nothing.
    pub credit: Option<usize>,
    /// The processors that they come from; without it there is one, which does nothing amiss.
    pub outside: Option<Sending>,
    /// Whether level 1 has a limit of its own, or only the outside ends.
    pub limited: bool,
    /// The window of level 1.
    pub in_flight: u64,
    /// Most events in an L2SV.
    pub events_in_system: usize,
    /// Fraction of forced accepts above which an L2SV is busy.
    pub forced_limit: f64,
    /// What steering does.
    pub strategy: Strategy,
    /// Events that an L2PU works on at once.
    pub workers: usize,
    /// L2PUs decide by lot, with this fraction accepted.
    pub sink: Option<f64>,
    /// Phased selection: each L2PU feeds an SFI, which keeps so many events.
    pub phased: Option<usize>,
    /// What is made of decisions of level 2.
    pub overrides: Overrides,
    /// What a step of steering takes.
    pub steering_cost: Duration,
    /// What it takes before this time of the run instead.
    pub heavy_until: Option<(Duration, Duration)>,
    /// How an L2SV chooses an L2PU.
    pub assignment: L2puAssignment,
    /// How the DFM chooses an SFI.
    pub sfi_assignment: SfiAssignment,
    /// Events that an SFI builds at once.
    pub building: usize,
    /// Events that an SFI holds.
    pub sfi_events: usize,
    /// Requests that an SFI has outstanding.
    pub requests: usize,
    /// Whether it is always so many.
    pub credits: CreditPolicy,
    /// Which source is asked first.
    pub request_order: RequestOrder,
    /// How data are pushed, if they are.
    pub push: Option<Push>,
    /// The links of the SFIs; without it they have no bound.
    pub port: Option<Port>,
    /// After this time data are asked for again.
    pub request_timeout: Duration,
    /// After this time an event is accepted by force.
    pub l2_timeout: Duration,
    /// After this time an event is given to another SFI.
    pub build_timeout: Duration,
    /// When events are cleared.
    pub clear_after: ClearAfter,
    /// Events in a group of clears, and of decisions.
    pub clear_group: usize,
    /// Events that may wait at the DFM.
    pub dfm_queue: usize,
    /// What the event filter accepts.
    pub policy: FilterPolicy,
    /// The policy is that of processing tasks, which also fail for some events.
    pub filter_tasks: bool,
    /// What is recorded where.
    pub streams: Vec<StreamRule>,
    /// Events in an EFD.
    pub efd_slots: usize,
    /// When a recording is acknowledged.
    pub durable: Durable,
    /// Events are recorded in the order of their numbers.
    pub in_order: bool,
    /// What happens to messages.
    pub links: Links,
    /// What happens to fragments on read-out links.
    pub fragment_faults: Links,
    /// Probability that a write fails.
    pub record_failures: f64,
    /// Probability that a step of steering takes long.
    pub slow_steering: f64,
    /// Types of messages that may be lost and have connections of their own, each with an order of its own.
    pub connected: TypeSet,
    /// Fraction of connections that are much slower than the others.
    pub slow_channels: f64,
    /// What the event filter takes for an event.
    pub processing_cost: Duration,
    /// The event filter never answers after so many events.
    pub filter_stuck_after: Option<u64>,
    /// How long a stage that drains may make no progress.
    pub stop_timeout: Duration,
    /// The run ends after this time.
    pub duration: Option<Duration>,
    /// From this time of the run on, nothing goes wrong any more on links and disks.
    pub healed_after: Option<Duration>,
    /// Whether disks heal, too; a write that fails is tried again.
    pub disks_heal: bool,
    /// What every input costs.
    pub service: Duration,
    /// Applications that appear so long after the others.
    pub late: Vec<(NodeId, Duration)>,
    /// What goes wrong, and when.
    pub faults: Vec<(Duration, Fault)>,
    /// How applications join; without it they know each other at once.
    pub joins: Option<Joins>,
    /// Whether another run follows in the same processes, if they join and all go on, and whether it does so at once.
    pub again: Option<bool>,
    /// Sources that send by themselves; without them a link is read out when level 1 says so.
    pub sending: Option<Sending>,
    /// Which events are shown to those who watch.
    pub sampling: configuration::Sampling,
    /// A bug to be found.
    pub planted: Option<Planted>,
    /// Numbers with a key of their own in configurations.
    pub fine: Fine,
    /// Whether a user may write its configuration, and all numbers follow from that as in live runs. Otherwise the plan
    /// says what no configuration can: more scarcity, and triggers in another rhythm.
    pub is_lawful: bool,
}

/// What triggers building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Decisions of level 2.
    Level2,
    /// Level 2 without anything behind it.
    Level2Only,
    /// Level 1.
    Level1,
    /// The DFM itself.
    SelfTrigger,
}

/// Numbers that have a key of their own in configurations, and rarely matter.
#[derive(Clone, Debug)]
pub struct Fine {
    /// Decisions in a group; without it as many as in a group of clears.
    pub decision_group: Option<usize>,
    /// Age at which a group of decisions goes out.
    pub decision_age: Duration,
    /// Age at which a group of clears goes out.
    pub clear_age: Duration,
    /// Age at which a group of events is pushed.
    pub push_age: Duration,
    /// After this time a read-out system answers without the data.
    pub readout_timeout: Duration,
    /// After this time level 2 asks for data again; without it, after the time of builders.
    pub l2_request_timeout: Option<Duration>,
    /// How often a builder asks again.
    pub retries: u32,
    /// Below the first part of its pages a read-out system lowers busy, above the second it raises it.
    pub busy: (f64, f64),
    /// Roles whose loss ends the run, unless the plan has them return.
    pub stops: Vec<Role>,
}

impl Default for Fine {
    fn default() -> Self {
        Self {
            decision_group: None,
            decision_age: Duration::from_millis(2),
            clear_age: Duration::from_millis(5),
            push_age: Duration::from_millis(2),
            readout_timeout: Duration::from_millis(10),
            l2_request_timeout: None,
            retries: 3,
            busy: (0.5, 2.0 / 3.0),
            stops: Vec::new(),
        }
    }
}

/// How data are pushed.
#[derive(Clone, Copy, Debug)]
pub struct Push {
    /// Who tells where an event goes.
    pub destination: Destination,
    /// Most bytes on the way from a ROS to an SFI.
    pub window_bytes: u64,
    /// Rate from a ROS to an SFI.
    pub bytes_per_s: Option<u64>,
    /// What goes at once after a pause.
    pub burst_bytes: u64,
    /// Events that go together.
    pub group: usize,
    /// Events whose data an SFI keeps before they are assigned.
    pub ahead: usize,
}

/// Applications of each role.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Level-2 supervisors.
    pub l2sv: u16,
    /// Level-2 processing units.
    pub l2pu: u16,
    /// Read-out systems.
    pub ros: u16,
    /// Event builders.
    pub sfi: u16,
    /// Event-filter dataflow daemons; without them events are dropped behind the event builders.
    pub efd: u16,
    /// Recorders.
    pub sfo: u16,
}

/// The read-out crates of a plan: the first read-out systems are in them.
#[derive(Clone, Copy, Debug)]
pub struct Crates {
    /// How many there are.
    pub count: u16,
    /// Read-out systems of each.
    pub ros: u16,
    /// Clears that go into a crate together.
    pub group: usize,
    /// Age at which such a group goes.
    pub age: Duration,
}

impl Plan {
    /// A small, healthy chain.
    pub fn plain(events: u64) -> Self {
        Self {
            seed: 1,
            run: 7,
            input: InputKind::Level2,
            counts: Counts { l2sv: 1, l2pu: 2, ros: 2, sfi: 2, efd: 1, sfo: 1 },
            crates: None,
            robs_per_ros: 3,
            pages: 200,
            events,
            first: 0,
            spacing: Spacing::Unlimited,
            profile: Vec::new(),
            crossings: None,
            credit: None,
            outside: None,
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
            credits: CreditPolicy::Fixed,
            request_order: RequestOrder::Random,
            push: None,
            port: None,
            connected: TypeSet::default(),
            request_timeout: Duration::from_millis(20),
            l2_timeout: Duration::from_millis(500),
            build_timeout: BUILD_TIMEOUT,
            clear_after: ClearAfter::Built,
            clear_group: 10,
            dfm_queue: 20,
            policy: FilterPolicy::AcceptAll,
            filter_tasks: false,
            streams: one_stream(),
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
            healed_after: None,
            disks_heal: true,
            service: Duration::ZERO,
            late: Vec::new(),
            faults: Vec::new(),
            joins: None,
            again: None,
            sending: None,
            sampling: configuration::Sampling::default(),
            planted: None,
            fine: Fine::default(),
            is_lawful: false,
        }
    }

    /// Everything drawn from the seed, the level of faults included.
    pub fn of_seed(seed: u64) -> Self {
        Self::draw(seed, Random::new(seed ^ 0x6c65_7665).below(u64::from(LEVELS)) as u32)
    }

    /// Everything drawn from the seed. `level` of faults: 0 none, 1 the network's, 2 restarts, 3 deaths and forced
    /// ends, 4 one crash that loses nothing, 5 several related crashes.
    pub fn draw(seed: u64, level: u32) -> Self {
        Self::draw_in(EDITION, seed, level)
    }

    /// The same in an edition of the draws, up to [`EDITION`]. Each draws more than the one before, and a test that
    /// names a seed keeps its plan by naming the edition, too.
    pub fn draw_in(edition: u32, seed: u64, level: u32) -> Self {
        let mut plan = Self::draw_first(edition, seed, level);
        plan.draw_more(edition, level);
        plan
    }

    fn draw_first(edition: u32, seed: u64, level: u32) -> Self {
        let mut random = Random::new(seed);
        let r = &mut random;
        let pick = |r: &mut Random, low: u64, high: u64| low + r.below(high - low + 1);
        let input = match r.below(6) {
            0 => InputKind::Level1,
            1 if edition >= EDITION_OF_LINKS => InputKind::Level1,
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
            crates: None,
            robs_per_ros: pick(r, 1, 3) as u16,
            // Without level 1 nobody holds back what the pages cannot take.
            pages: if input == InputKind::SelfTrigger { 200 } else { pick(r, 6, 200) as usize },
            events: pick(r, 5, 40),
            first: [0, 1 << 24, 0xffff_ffff - 10, 0x0100_0000 - 5][r.below(4) as usize],
            spacing,
            profile: Vec::new(),
            crossings: None,
            credit: None,
            outside: None,
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
            credits: CreditPolicy::Fixed,
            request_order: RequestOrder::Random,
            push: None,
            port: None,
            connected: TypeSet::default(),
            request_timeout: Duration::from_millis(pick(r, 5, 30)),
            l2_timeout: Duration::from_millis(pick(r, 50, 500)),
            build_timeout: BUILD_TIMEOUT,
            clear_after: if recorded { ClearAfter::Recorded } else { ClearAfter::Built },
            clear_group: pick(r, 1, 12) as usize,
            dfm_queue: pick(r, 1, 20) as usize,
            policy: if in_order { FilterPolicy::AcceptAll } else { policy },
            filter_tasks,
            streams: one_stream(),
            efd_slots: pick(r, 1, 6) as usize,
            durable: if r.chance(0.5) {
                Durable::Write
            } else {
                Durable::Sync { age: Duration::from_millis(5), events: 4 }
            },
            in_order,
            links: if lossy { faulty(r) } else { Links::perfect() },
            fragment_faults: if lossy && r.chance(0.5) { faulty(r) } else { Links::perfect() },
            record_failures: if lossy && !in_order && r.chance(0.3) { 0.1 } else { 0.0 },
            slow_steering: if lossy && r.chance(0.3) { 0.1 } else { 0.0 },
            slow_channels: if r.chance(0.3) { 0.2 } else { 0.0 },
            processing_cost: Duration::ZERO,
            filter_stuck_after: None,
            stop_timeout: Duration::from_secs(10),
            duration: r.chance(0.2).then(|| Duration::from_millis(20)),
            healed_after: None,
            disks_heal: false,
            service: Duration::ZERO,
            late: Vec::new(),
            faults: Vec::new(),
            joins: None,
            again: None,
            sending: None,
            sampling: configuration::Sampling::default(),
            planted: None,
            fine: Fine::default(),
            is_lawful: false,
        };
        plan.draw_trigger(&mut Random::new(seed ^ 0x7216_6e72));
        plan.draw_transfer(&mut Random::new(seed ^ 0x0070_7573_6821));
        if plan.has_level2() {
            // The order of decisions is not that of events.
            plan.in_order = false;
        }
        plan.draw_lives(r, level);
        if level >= 1 {
            plan.draw_trouble(&mut Random::new(seed ^ 0x0074_726f_7562));
        }
        if level == 4 {
            plan.draw_crash(&mut Random::new(seed ^ 0x6372_6173_6821));
        }
        if level == 5 {
            plan.draw_crashes(&mut Random::new(seed ^ 0x7365_7665_7261));
        }
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

    /// Of how the data come to the builders.
    fn draw_transfer(&mut self, r: &mut Random) {
        self.credits = [CreditPolicy::Fixed, CreditPolicy::Adaptive][r.below(2) as usize];
        self.request_order = [RequestOrder::Random, RequestOrder::Rotating][r.below(2) as usize];
        if self.phased.is_some() || r.chance(0.4) {
            return;
        }
        let by_table = self.input == InputKind::Level1 && r.chance(0.7);
        self.push = Some(Push {
            destination: if by_table { Destination::Table } else { Destination::Assigned },
            window_bytes: [1, 500, 2_000, 1 << 20][r.below(4) as usize],
            bytes_per_s: r.chance(0.3).then(|| [50_000, 1_000_000][r.below(2) as usize]),
            burst_bytes: r.below(2) * 1_000,
            group: [1, 1, 2, 5][r.below(4) as usize],
            ahead: [0, 1, 4, 20][r.below(4) as usize],
        });
    }

    fn draw_lives(&mut self, r: &mut Random, level: u32) {
        let apps = self.applications();
        if level >= 1 && r.chance(0.3) {
            let app = &apps[r.below(apps.len() as u64) as usize];
            self.late.push((app.node, Duration::from_millis(1 + r.below(20))));
        }
        if level == 2 {
            let may_restart = |app: &&Application| app.role != Role::Level1;
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
        if level == 2 {
            self.draw_second_lives(&mut Random::new(self.seed ^ 0x7365_636f_6e64));
        }
        if level == 3 {
            let node = apps[r.below(apps.len() as u64) as usize].node;
            let at = Duration::from_micros(r.below(15_000));
            self.faults.push((at, if r.chance(0.8) { Fault::Kill(node) } else { Fault::Force }));
            self.late.retain(|(late, _)| *late != node);
        }
    }

    /// Of what hosts and networks do besides losing messages.
    fn draw_trouble(&mut self, r: &mut Random) {
        let apps = self.applications();
        let any = |r: &mut Random| apps[r.below(apps.len() as u64) as usize].node;
        let millis = |r: &mut Random, most: u64| Duration::from_millis(1 + r.below(most));
        if r.chance(0.3) {
            self.links.corruption = 0.1 * r.unit();
            self.links.stray = 0.1 * r.unit();
        }
        if r.chance(0.2) {
            self.service = Duration::from_nanos(r.below(20_000));
        }
        let mut strike = |r: &mut Random, chance: f64, fault: &dyn Fn(&mut Random) -> Fault| {
            if r.chance(chance) {
                let at = Duration::from_micros(r.below(15_000));
                self.faults.push((at, fault(r)));
            }
        };
        strike(r, 0.15, &|r| {
            let side = apps.iter().map(|app| app.node).filter(|_| r.chance(0.4)).collect();
            Fault::Split(side, millis(r, 40))
        });
        strike(r, 0.15, &|r| Fault::Slow {
            node: any(r),
            each: Duration::from_micros(r.below(2_000)),
            lasts: millis(r, 50),
        });
        strike(r, 0.15, &|r| Fault::ClockStep(any(r), millis(r, 2_000)));
        if self.counts.efd > 0 && !self.in_order {
            strike(r, 0.15, &|r| Fault::FullDisk(any(r), millis(r, 100)));
        }
        if r.chance(0.3) {
            self.healed_after = Some(millis(r, 100));
        }
    }

    /// Supervisors that return may die again, while they learn what they had in hand or later.
    fn draw_second_lives(&mut self, r: &mut Random) {
        let supervisors = self.of(Role::L2sv);
        for (at, fault) in self.faults.clone() {
            if let Fault::Restart(node, after) = fault
                && supervisors.contains(&node)
                && r.chance(0.5)
            {
                let latest_us = if r.chance(0.5) { 500 } else { 5_000 };
                let again = at + after + Duration::from_micros(10 + r.below(latest_us));
                self.faults.push((again, Fault::Restart(node, Duration::from_micros(200 + r.below(5_000)))));
            }
        }
    }

    pub(super) fn is_struck(&self, node: NodeId) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Restart(n, _) if *n == node))
    }

    /// All applications; the node of the first is 1.
    pub fn applications(&self) -> Vec<Application> {
        let level2 = self.has_level2();
        let builds = self.input != InputKind::Level2Only;
        let has_filter = self.counts.efd > 0;
        let count = |role: Role| match role {
            Role::Level1 => u16::from(self.input != InputKind::SelfTrigger),
            Role::L2sv if level2 => self.counts.l2sv,
            Role::L2pu if level2 => self.counts.l2pu,
            Role::Ros => self.counts.ros,
            Role::Trg => self.crates.map_or(0, |crates| crates.count),
            _ if !builds => 0,
            Role::Ebif => self.crates.map_or(0, |crates| crates.count),
            Role::Pros => u16::from(level2),
            Role::Dfm => 1,
            Role::Sfi => self.counts.sfi,
            Role::Efd => self.counts.efd,
            Role::Sfo if has_filter => self.counts.sfo,
            _ => 0,
        };
        let order = [
            Role::Level1,
            Role::L2sv,
            Role::L2pu,
            Role::Pros,
            Role::Ros,
            Role::Dfm,
            Role::Sfi,
            Role::Efd,
            Role::Sfo,
            Role::Trg,
            Role::Ebif,
        ];
        let names = order.into_iter().flat_map(|role| (1..=count(role)).map(move |n| (role, format!("{role}-{n}"))));
        (1..).zip(names).map(|(node, (role, name))| Application { name, role, node: NodeId(node) }).collect()
    }

    /// Whether there is a level 2.
    pub fn has_level2(&self) -> bool {
        matches!(self.input, InputKind::Level2 | InputKind::Level2Only)
    }

    /// All nodes of a role.
    pub fn of(&self, role: Role) -> Vec<NodeId> {
        self.applications().into_iter().filter(|app| app.role == role).map(|app| app.node).collect()
    }

    /// After this time all that are not late have found one another.
    pub fn time_to_connect(&self) -> Duration {
        Duration::from_millis(1) + if self.slow_channels > 0.0 { self.links.delay_max } else { Duration::ZERO }
    }

    /// From this time of the run on nothing goes wrong any more. `None` if there is no such time, or if the events in
    /// hand then take longer than a stop that makes no progress.
    pub(super) fn quiet_after(&self) -> Option<Duration> {
        let costs =
            self.processing_cost + self.steering_cost + self.heavy_until.map_or(Duration::ZERO, |(_, cost)| cost);
        if costs.as_secs_f64() * self.events as f64 > self.stop_timeout.as_secs_f64() {
            return None;
        }
        let links = [self.links, self.fragment_faults];
        let always = links.iter().all(Links::is_perfect) && self.record_failures == 0.0;
        let network = if always { Some(Duration::ZERO) } else { self.healed_after };
        let over = |(at, fault): &(Duration, Fault)| match fault {
            Fault::Restart(_, lasts)
            | Fault::Split(_, lasts)
            | Fault::Slow { lasts, .. }
            | Fault::ClockStep(_, lasts)
            | Fault::ClockBack(_, lasts)
            | Fault::FullDisk(_, lasts)
            | Fault::Pause(lasts) => *at + *lasts,
            Fault::Kill(_) | Fault::Hang(_) | Fault::Force | Fault::Watch | Fault::Forged { .. } => *at,
        };
        let faults = self.faults.iter().map(over).max().unwrap_or_default();
        let late = self.late.iter().map(|(_, after)| *after).max().unwrap_or_default();
        let sources = self.sources_are_over_after();
        network.map(|network| network.max(faults).max(late) + sources)
    }

    /// How long events in hand may take to drain, or those still to be triggered to come, once nothing goes wrong any more.
    /// Over slow connections builders wait for each event, from its assignment to its data, and now and then ask again.
    pub(super) fn patience(&self) -> Duration {
        let patience = self.stop_timeout + self.waits_for_sources();
        if self.slow_channels == 0.0 {
            return patience;
        }
        let at_once = self.building as u64 * u64::from(self.counts.sfi.max(1));
        patience + self.slow_event() * self.events.div_ceil(at_once) as u32
    }

    /// What an event takes over slow connections.
    fn slow_event(&self) -> Duration {
        self.links.delay_max * MESSAGES_OF_EVENT + self.request_timeout * 2
    }

    /// Far more steps than a run takes that ends. Each offer of a trigger is one, also while level 1 is held back by events that come one
    /// after the other.
    pub(super) fn steps_max(&self) -> u64 {
        let (Spacing::Fixed(interval) | Spacing::Poisson(interval)) = self.spacing else { return STEPS_MAX };
        let lasts = self.quiet_after().unwrap_or_default() + self.patience() + self.slow_event() * self.events as u32;
        STEPS_MAX + (lasts.as_nanos() / interval.as_nanos().max(1)) as u64
    }

    /// Whether something never answers, so that the end has to be forced.
    pub fn is_hindered(&self) -> bool {
        self.filter_stuck_after.is_some() || self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Hang(_)))
    }

    /// Whether nothing is lost or late.
    pub fn is_healthy(&self) -> bool {
        let disturbs_nobody = |(_, fault): &(Duration, Fault)| matches!(fault, Fault::Pause(_) | Fault::Watch);
        let undisturbed = self.faults.iter().all(disturbs_nobody) && self.late.is_empty() && self.slow_channels == 0.0;
        let is_near = self.port.is_none() && self.links.is_perfect() && self.fragment_faults.is_perfect();
        undisturbed && is_near && self.sources_are_good()
    }

    /// Whether requests wait for data as long as a page may have to be waited for. With more events under way than
    /// pages that is longer, and so it is where clears are slow. A link that is off waits for decisions, too.
    pub(super) fn waits_for_pages(&self) -> bool {
        let Fine { clear_age, decision_age, readout_timeout, retries, .. } = self.fine;
        let age = if self.sending.is_some() { clear_age + decision_age } else { clear_age };
        let age = age + self.crates.map_or(Duration::ZERO, |crates| crates.age);
        let is_patient = readout_timeout >= age * 2 && self.request_timeout * (retries + 1) >= age * 3;
        // Sources that run ahead fill pages with fragments of every event that is not cleared.
        let under_way = if self.sending.is_some() { self.events_in_system as u64 } else { self.in_flight };
        under_way <= self.pages as u64 && is_patient
    }

    /// Crates, and read-out systems that stand alone.
    pub(super) fn sources_of_builders(&self) -> u16 {
        self.counts.ros - self.crates.map_or(0, |crates| crates.count * (crates.ros - 1))
    }

    pub(super) fn robs(&self, ros: usize) -> Vec<u32> {
        (0..u32::from(self.robs_per_ros)).map(|rob| (ros as u32) << 8 | rob).collect()
    }

    fn all_robs(&self) -> Vec<u32> {
        (0..usize::from(self.counts.ros)).flat_map(|ros| self.robs(ros)).collect()
    }

    /// The steering of all L2PUs.
    pub fn skeleton(&self) -> Skeleton {
        Skeleton { strategy: self.strategy, robs: self.all_robs(), seed: self.seed }
    }
}

fn faulty(r: &mut Random) -> Links {
    let mut some = |most: f64| if r.chance(0.6) { r.unit() * most } else { 0.0 };
    Links { loss: some(0.3), duplication: some(0.2), delay: some(0.2), ..Links::perfect() }
}

/// Longer than anything takes where nothing is wrong.
const BUILD_TIMEOUT: Duration = Duration::from_millis(200);

/// From level 1 to the DFM, through building, and back to the DFM.
const MESSAGES_OF_EVENT: u32 = 8;
/// Steps of a run, besides offers of triggers.
const STEPS_MAX: u64 = 1_000_000;
/// Levels of faults.
pub const LEVELS: u32 = 6;
/// The newest edition of the draws in which applications know each other at once.
pub const EDITION: u32 = 8;
/// The newest edition in which they join.
pub const EDITION_OF_JOINS: u32 = 10;
/// The newest edition in which links push; applications join, or know each other at once.
pub const EDITION_OF_LINKS: u32 = 11;
/// That which draws level-1 processors outside.
pub const EDITION_OF_PROCESSORS: u32 = 12;
/// That which draws read-out crates; triggers come from processors outside, or level 1 makes them.
pub const EDITION_OF_CRATES: u32 = 13;
/// That which draws who watches; all else is drawn as in that of crates.
pub const EDITION_OF_WATCHERS: u32 = 14;
/// That which draws another run in the same processes.
pub const EDITION_OF_RUNS: u32 = 15;
/// That which draws slices of time, and no crates; all else is drawn as in that of runs.
pub const EDITION_OF_SLICES: u32 = 16;
