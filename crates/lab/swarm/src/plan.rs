//! What a run consists of: drawn from a seed, printed with every failure.

use std::time::Duration;

use base::ids::{NodeId, Role};
use control::controller::Application;
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::ClearAfter;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::RequestOrder;
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::{StreamRule, one_stream};
use dataflow::level1::dead_time::DeadTimeParameters;
use dataflow::level1::pace::Spacing;
use dataflow::level2::l2sv::L2puAssignment;
use dataflow::level2::overrides::Overrides;
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::readout::pusher::Destination;
use dataflow::recording::sfo::Durable;

use super::drawn::Sending;
use simulator::world::{Course, Fault, Links, Planted, Port, TypeSet};

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
    /// How triggers come.
    pub triggers: Triggers,
    /// What the read-out systems have.
    pub readout: Readout,
    /// How level 2 decides.
    pub level2: Level2,
    /// How events are built.
    pub building: Building,
    /// How built events are filtered.
    pub filter: Filter,
    /// How events are recorded.
    pub recording: Recording,
    /// What is between the applications.
    pub network: Network,
    /// What happens to the run as a whole, and when.
    pub course: Course,
    /// Whether another run follows in the same processes, if they join and all go on, and whether it does so at once.
    pub again: Option<bool>,
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

/// How triggers come.
#[derive(Clone, Debug)]
pub struct Triggers {
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
}

/// What the read-out systems have.
#[derive(Clone, Debug)]
pub struct Readout {
    /// Read-out crates, if there are any.
    pub crates: Option<Crates>,
    /// Read-out links of each ROS.
    pub robs_per_ros: u16,
    /// Pages of each ROB.
    pub pages: usize,
    /// Sources that send by themselves; without them a link is read out when level 1 says so.
    pub sending: Option<Sending>,
    /// What happens to fragments on read-out links.
    pub fragment_faults: Links,
}

/// How level 2 decides.
#[derive(Clone, Debug)]
pub struct Level2 {
    /// Most events in an L2SV.
    pub events_in_system: usize,
    /// Fraction of forced accepts above which an L2SV is busy.
    pub forced_limit: f64,
    /// After this time an event is accepted by force.
    pub timeout: Duration,
    /// How an L2SV chooses an L2PU.
    pub assignment: L2puAssignment,
    /// Events that an L2PU works on at once.
    pub workers: usize,
    /// What steering does.
    pub strategy: Strategy,
    /// What a step of steering takes.
    pub steering_cost: Duration,
    /// What it takes before this time of the run instead.
    pub heavy_until: Option<(Duration, Duration)>,
    /// Probability that a step of steering takes long.
    pub slow_steering: f64,
    /// L2PUs decide by lot, with this fraction accepted.
    pub sink: Option<f64>,
    /// Phased selection: each L2PU feeds an SFI, which keeps so many events.
    pub phased: Option<usize>,
    /// What is made of decisions of level 2.
    pub overrides: Overrides,
}

/// How events are built.
#[derive(Clone, Debug)]
pub struct Building {
    /// How the DFM chooses an SFI.
    pub assignment: SfiAssignment,
    /// Events that may wait at the DFM.
    pub queue: usize,
    /// After this time an event is given to another SFI.
    pub timeout: Duration,
    /// When events are cleared.
    pub clear_after: ClearAfter,
    /// Events in a group of clears, and of decisions.
    pub clear_group: usize,
    /// Events that an SFI builds at once.
    pub at_once: usize,
    /// Events that an SFI holds.
    pub events: usize,
    /// Requests that an SFI has outstanding.
    pub requests: usize,
    /// Whether it is always so many.
    pub credits: CreditPolicy,
    /// Which source is asked first.
    pub request_order: RequestOrder,
    /// After this time data are asked for again.
    pub request_timeout: Duration,
    /// How data are pushed, if they are.
    pub push: Option<Push>,
    /// The links of the SFIs; without it they have no bound.
    pub port: Option<Port>,
}

/// How built events are filtered.
#[derive(Clone, Debug)]
pub struct Filter {
    /// What the event filter accepts.
    pub policy: FilterPolicy,
    /// The policy is that of processing tasks, which also fail for some events.
    pub has_tasks: bool,
    /// Events in an EFD.
    pub slots: usize,
    /// What the event filter takes for an event.
    pub cost: Duration,
    /// It never answers after so many events.
    pub stuck_after: Option<u64>,
}

/// How events are recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// What is recorded where.
    pub streams: Vec<StreamRule>,
    /// When a recording is acknowledged.
    pub durable: Durable,
    /// Events are recorded in the order of their numbers.
    pub in_order: bool,
    /// Probability that a write fails.
    pub failures: f64,
    /// Whether disks heal, too; a write that fails is tried again.
    pub disks_heal: bool,
}

/// What is between the applications.
#[derive(Clone, Debug)]
pub struct Network {
    /// What happens to messages.
    pub links: Links,
    /// Types of messages that may be lost and have connections of their own, each with an order of its own.
    pub connected: TypeSet,
    /// Fraction of connections that are much slower than the others.
    pub slow_channels: f64,
    /// What every input costs.
    pub service: Duration,
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
            triggers: Triggers::plain(events),
            readout: Readout::plain(),
            level2: Level2::plain(),
            building: Building::plain(),
            filter: Filter::plain(),
            recording: Recording::plain(),
            network: Network::plain(),
            course: Course::calm(Duration::from_secs(10)),
            again: None,
            sampling: configuration::Sampling::default(),
            planted: None,
            fine: Fine::default(),
            is_lawful: false,
        }
    }

    /// The same plan with something else.
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn is_struck(&self, node: NodeId) -> bool {
        self.course.faults.iter().any(|(_, fault)| matches!(fault, Fault::Restart(n, _) if *n == node))
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
            Role::Trg => self.readout.crates.map_or(0, |crates| crates.count),
            _ if !builds => 0,
            Role::Ebif => self.readout.crates.map_or(0, |crates| crates.count),
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
        Duration::from_millis(1)
            + if self.network.slow_channels > 0.0 { self.network.links.delay_max } else { Duration::ZERO }
    }

    /// From this time of the run on nothing goes wrong any more. `None` if there is no such time, or if the events in
    /// hand then take longer than a stop that makes no progress.
    pub(super) fn quiet_after(&self) -> Option<Duration> {
        let costs = self.filter.cost
            + self.level2.steering_cost
            + self.level2.heavy_until.map_or(Duration::ZERO, |(_, cost)| cost);
        if costs.as_secs_f64() * self.triggers.events as f64 > self.course.stop_timeout.as_secs_f64() {
            return None;
        }
        let links = [self.network.links, self.readout.fragment_faults];
        let always = links.iter().all(Links::is_perfect) && self.recording.failures == 0.0;
        let network = if always { Some(Duration::ZERO) } else { self.course.healed_after };
        let over = |(at, fault): &(Duration, Fault)| match fault {
            Fault::Restart(_, lasts)
            | Fault::Split(_, lasts)
            | Fault::Slow { lasts, .. }
            | Fault::ClockStep(_, lasts)
            | Fault::ClockBack(_, lasts)
            | Fault::FullDisk(_, lasts)
            | Fault::Pause(lasts) => *at + *lasts,
            Fault::Kill(_) | Fault::Hang(_) | Fault::Force | Fault::Watch(_) | Fault::Forged { .. } => *at,
        };
        let faults = self.course.faults.iter().map(over).max().unwrap_or_default();
        let late = self.course.late.iter().map(|(_, after)| *after).max().unwrap_or_default();
        let sources = self.sources_are_over_after();
        network.map(|network| network.max(faults).max(late) + sources)
    }

    /// How long events in hand may take to drain, or those still to be triggered to come, once nothing goes wrong any more.
    /// Over slow connections builders wait for each event, from its assignment to its data, and now and then ask again.
    pub(super) fn patience(&self) -> Duration {
        let patience = self.course.stop_timeout + self.waits_for_sources();
        if self.network.slow_channels == 0.0 {
            return patience;
        }
        let at_once = self.building.at_once as u64 * u64::from(self.counts.sfi.max(1));
        patience + self.slow_event() * self.triggers.events.div_ceil(at_once) as u32
    }

    /// What an event takes over slow connections.
    fn slow_event(&self) -> Duration {
        self.network.links.delay_max * MESSAGES_OF_EVENT + self.building.request_timeout * 2
    }

    /// Far more steps than a run takes that ends. Each offer of a trigger is one, also while level 1 is held back by events that come one
    /// after the other.
    pub(super) fn steps_max(&self) -> u64 {
        let (Spacing::Fixed(interval) | Spacing::Poisson(interval)) = self.triggers.spacing else { return STEPS_MAX };
        let lasts =
            self.quiet_after().unwrap_or_default() + self.patience() + self.slow_event() * self.triggers.events as u32;
        STEPS_MAX + (lasts.as_nanos() / interval.as_nanos().max(1)) as u64
    }

    /// Whether something never answers, so that the end has to be forced.
    pub fn is_hindered(&self) -> bool {
        self.filter.stuck_after.is_some() || self.course.faults.iter().any(|(_, fault)| matches!(fault, Fault::Hang(_)))
    }

    /// Whether nothing is lost or late.
    pub fn is_healthy(&self) -> bool {
        let disturbs_nobody = |(_, fault): &(Duration, Fault)| matches!(fault, Fault::Pause(_) | Fault::Watch(_));
        let undisturbed = self.course.faults.iter().all(disturbs_nobody)
            && self.course.late.is_empty()
            && self.network.slow_channels == 0.0;
        let is_near = self.building.port.is_none()
            && self.network.links.is_perfect()
            && self.readout.fragment_faults.is_perfect();
        undisturbed && is_near && self.sources_are_good()
    }

    /// Whether requests wait for data as long as a page may have to be waited for. With more events under way than
    /// pages that is longer, and so it is where clears are slow. A link that is off waits for decisions, too.
    pub(super) fn waits_for_pages(&self) -> bool {
        let Fine { clear_age, decision_age, readout_timeout, retries, .. } = self.fine;
        let age = if self.readout.sending.is_some() { clear_age + decision_age } else { clear_age };
        let age = age + self.matching().map_or(Duration::ZERO, |matching| matching.grace);
        let age = age + self.readout.crates.map_or(Duration::ZERO, |crates| crates.age);
        let is_patient = readout_timeout >= age * 2 && self.building.request_timeout * (retries + 1) >= age * 3;
        // Sources that run ahead fill pages with fragments of every event that is not cleared.
        let under_way =
            if self.readout.sending.is_some() { self.level2.events_in_system as u64 } else { self.triggers.in_flight };
        under_way <= self.readout.pages as u64 && is_patient && self.never_turns_off_matched()
    }

    /// Crates, and read-out systems that stand alone.
    pub(super) fn sources_of_builders(&self) -> u16 {
        self.counts.ros - self.readout.crates.map_or(0, |crates| crates.count * (crates.ros - 1))
    }

    pub(super) fn robs(&self, ros: usize) -> Vec<u32> {
        (0..u32::from(self.readout.robs_per_ros)).map(|rob| (ros as u32) << 8 | rob).collect()
    }

    fn all_robs(&self) -> Vec<u32> {
        (0..usize::from(self.counts.ros)).flat_map(|ros| self.robs(ros)).collect()
    }

    /// The steering of all L2PUs.
    pub fn skeleton(&self) -> Skeleton {
        Skeleton { strategy: self.level2.strategy, robs: self.all_robs(), seed: self.seed }
    }
}

impl Triggers {
    fn plain(events: u64) -> Self {
        Self {
            events,
            first: 0,
            spacing: Spacing::Unlimited,
            profile: Vec::new(),
            crossings: None,
            credit: None,
            outside: None,
            limited: true,
            in_flight: 16,
        }
    }
}

impl Readout {
    fn plain() -> Self {
        Self { crates: None, robs_per_ros: 3, pages: 200, sending: None, fragment_faults: Links::perfect() }
    }
}

impl Level2 {
    fn plain() -> Self {
        Self {
            events_in_system: 40,
            forced_limit: 0.1,
            timeout: Duration::from_millis(500),
            assignment: L2puAssignment::RoundRobin,
            workers: 3,
            strategy: Strategy::TwoStep { robs_per_step: 2, step_accept: 0.7 },
            steering_cost: Duration::ZERO,
            heavy_until: None,
            slow_steering: 0.0,
            sink: None,
            phased: None,
            overrides: Overrides::default(),
        }
    }
}

impl Building {
    fn plain() -> Self {
        Self {
            assignment: SfiAssignment::RoundRobin,
            queue: 20,
            timeout: BUILD_TIMEOUT,
            clear_after: ClearAfter::Built,
            clear_group: 10,
            at_once: 4,
            events: 8,
            requests: 8,
            credits: CreditPolicy::Fixed,
            request_order: RequestOrder::Random,
            request_timeout: Duration::from_millis(20),
            push: None,
            port: None,
        }
    }
}

impl Filter {
    fn plain() -> Self {
        Self { policy: FilterPolicy::AcceptAll, has_tasks: false, slots: 4, cost: Duration::ZERO, stuck_after: None }
    }
}

impl Recording {
    fn plain() -> Self {
        Self { streams: one_stream(), durable: Durable::Write, in_order: false, failures: 0.0, disks_heal: true }
    }
}

impl Network {
    fn plain() -> Self {
        Self { links: Links::perfect(), connected: TypeSet::default(), slow_channels: 0.0, service: Duration::ZERO }
    }
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
/// That which draws who watches read-out systems and crates as well; all else is drawn as in that of runs.
pub const EDITION_OF_MODULES: u32 = 17;
/// That which draws sources whose data belong to triggers by time or count, and no crates; all else is drawn as in that of modules.
pub const EDITION_OF_MATCHES: u32 = 18;
/// That which draws sources without which events are withheld, and no crates; all else is drawn as in that of modules.
pub const EDITION_OF_WITHHELD: u32 = 19;
/// That which draws links that push within crates, with triggers from processors; all else is drawn as in that of modules.
pub const EDITION_OF_CRATE_LINKS: u32 = 20;
