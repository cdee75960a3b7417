//! `[level1]`, `[l2sv]`, `[l2pu]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DeadTime, Generator, Play, ProfileStep};
use crate::units::{Fraction, Interval, Rate};

/// `[level1]`: the source of level-1 triggers. Without this table the DFM triggers itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Level1 {
    /// Where triggers and their regions of interest come from.
    pub source: Level1Source,
    /// Trigger rate; without it triggers come as fast as the system takes them. For the source `external` it is that of processors that the
    /// partition plays.
    pub rate: Option<Rate>,
    /// How triggers are spaced in time at the given rate.
    pub spacing: Spacing,
    /// Dead time that level 1 imposes itself, by the crossing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_time: Option<DeadTime>,
    /// Other rates, from given times on: a load that changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<ProfileStep>,
    /// Most triggers that the level-2 supervisors (without them the DFM) have not yet taken over.
    pub in_flight: u32,
    /// Regions of interest per event, or their mean number; for the source `emulator`, and of each processor that the partition plays.
    pub rois_per_event: u32,
    /// Path of a file of triggers, one JSON object on each line; for the source `file`. Its keys, all optional, are
    /// `bcid`, `trigger_type`, `items` (bits) and `rois`, a list of objects. Each has `kind` (`"em"`, `"jet"`, `"muon"`,
    /// `"xe"`, `"te"`), `eta`, `phi`, `et_mev`, `aux_mev` (two numbers), `thresholds` (bits), `ieta` and `iphi`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Level-1 processors, 1 to 64, each of which sends its part of every event; for the source `external`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processor: Vec<Processor>,
    /// The `[[source]]` whose fragments are the triggers, by its name; by default the first; for the source `link`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// Length of a slice, by default 1 ms; for the source `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<Interval>,
    /// A slice takes only so much from its begin on, as a metronome opens a gate; by default all of it. For the source `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Interval>,
    /// A slice takes so much of the time before it, too, by default nothing; for the source `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Interval>,
    /// Likewise of the time behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Interval>,
    /// For the source `time`: a slice waits so long for other sources when the first one has passed it, and then for
    /// room. The default is 100 ms. For the source `link`, an event waits so long for sources by `time` or `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Interval>,
    /// An event goes on without the part of a processor that says nothing for this time; for the source `external`.
    pub join_timeout: Interval,
    /// What the emulated level 1 makes up; for the source `emulator`, and for processors that the partition plays.
    pub generator: Generator,
}

impl Default for Level1 {
    fn default() -> Self {
        Self {
            source: Level1Source::Emulator,
            rate: None,
            spacing: Spacing::Fixed,
            dead_time: None,
            profile: Vec::new(),
            in_flight: 1024,
            rois_per_event: 2,
            file: None,
            processor: Vec::new(),
            leader: None,
            slice: None,
            window: None,
            before: None,
            after: None,
            grace: None,
            join_timeout: Interval::from_ms(100),
            generator: Generator::default(),
        }
    }
}

impl Level1 {
    /// Whether the partition plays a level-1 processor.
    pub fn plays_processors(&self) -> bool {
        self.processor.iter().any(|processor| processor.played().is_some())
    }

    /// Length of a slice in ns, where events are slices of time.
    pub fn slice_ns(&self) -> Option<u64> {
        (self.source == Level1Source::Time).then(|| self.slice.unwrap_or(Interval::from_ms(1)).ns())
    }

    /// How long a slice waits.
    pub fn slice_grace(&self) -> Interval {
        self.grace.unwrap_or(Interval::from_ms(100))
    }
}

/// `[[level1.processor]]`: a level-1 processor outside, which pushes triggers over a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { name = \"calo\", at = \"shm:calo\" }")]
pub struct Processor {
    /// Its name in messages and tables; the processor says the same of itself. Required.
    pub name: String,
    /// Where level 1 waits for it: `shm:NAME`, `shm:/PATH`, or `tcp://ADDRESS:PORT`, which needs `partition.key`. By default `shm:` and its
    /// name.
    pub at: String,
    /// What becomes of the run if the processor is away for more than a second.
    pub on_loss: ProcessorLoss,
    /// Bits of its numbers, if they begin again after fewer than 64. They are made whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_bits: Option<u32>,
    /// The partition is the processor itself, and sends emulated triggers over the link; no program is awaited then.
    /// `emulator`, or `none` where another configuration plays it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub play: Option<Play>,
}

impl Processor {
    /// Where level 1 waits for it.
    pub fn address(&self) -> String {
        if self.at.is_empty() { format!("shm:{}", self.name) } else { self.at.clone() }
    }

    /// What the partition sends in its place, if it plays the processor.
    pub fn played(&self) -> Option<Play> {
        self.play.filter(|play| *play != Play::None)
    }

    /// Its identifier, where it is in this place of the list.
    pub fn source_id(place: usize) -> u32 {
        FIRST_ID.saturating_add(u32::try_from(place).unwrap_or(u32::MAX))
    }
}

/// What becomes of a run without one of its level-1 processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProcessorLoss {
    /// It ends in order.
    #[default]
    Stop,
    /// It waits for it; that is dead time.
    Wait,
    /// It goes on without its part of events, as long as there is another processor.
    GoOn,
}

/// The central trigger processor.
const FIRST_ID: u32 = 0x0077_0000;

/// Where level-1 triggers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Level1Source {
    /// Made up.
    #[default]
    Emulator,
    /// From a sample of simulated collisions.
    Sample,
    /// From the events of recorded files; regions of interest from their fragments of level 1, if they have such.
    Replay,
    /// From the file `level1.file`.
    File,
    /// From level-1 processors outside: `[[level1.processor]]`.
    External,
    /// From a source of `[[source]]`: each of its fragments is a trigger.
    Link,
    /// None: events are slices of time, with what sources of `[[source]]` say to be of that time.
    Time,
}

/// How triggers are spaced in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Equal intervals.
    #[default]
    Fixed,
    /// Exponentially distributed intervals, as of independent collisions.
    Poisson,
}

/// `[l2sv]`: the level-2 supervisors. Without this table every level-1 event is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct L2sv {
    /// Number of supervisors.
    pub count: u32,
    /// How a supervisor chooses the processing unit of an event.
    pub assignment: L2svAssignment,
    /// Most undecided events of a supervisor; at this number it raises busy.
    pub events_in_system: u32,
    /// An event without a decision after this time is accepted by force, and marked so.
    pub timeout: Interval,
    /// A larger part of events accepted by force raises busy instead.
    pub forced_limit: Fraction,
    /// What is made of the decisions of level 2.
    pub decisions: Decisions,
    /// Events of these level-1 items, by their names in `input.detector`, are accepted whatever level 2 says.
    pub force_accept: Vec<String>,
    /// Events of these level-1 items are rejected whatever level 2 says.
    pub veto: Vec<String>,
    /// Decisions go to the DFM in groups of this many.
    pub group: u32,
    /// A group goes to the DFM at this age, full or not.
    pub group_age: Interval,
}

impl Default for L2sv {
    fn default() -> Self {
        Self {
            count: 1,
            assignment: L2svAssignment::RoundRobin,
            events_in_system: 1000,
            timeout: Interval::from_ms(1000),
            forced_limit: Fraction::from_percent(10),
            decisions: Decisions::AsFound,
            force_accept: Vec::new(),
            veto: Vec::new(),
            group: 100,
            group_age: Interval::from_ms(10),
        }
    }
}

/// What is made of the decisions of level 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decisions {
    /// They stand.
    #[default]
    AsFound,
    /// Every event is accepted; level 2 runs along.
    ForceAccept,
    /// Every event is rejected.
    ForceReject,
}

/// How a level-2 supervisor chooses the processing unit of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum L2svAssignment {
    /// One after the other.
    #[default]
    RoundRobin,
    /// At random.
    Random,
    /// The one with the fewest undecided events.
    LeastLoaded,
}

/// `[l2pu]`: the level-2 processing units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct L2pu {
    /// Number of processing units.
    pub count: u32,
    /// Events that a unit works on at once.
    pub workers: u32,
    /// How a decision is reached; by default `menu` with `[menu]`, else `two-step`.
    pub strategy: Strategy,
    /// Part of the events accepted; for the strategies `none`, `generate` and `sink`.
    pub accept: Fraction,
    /// Part of the events of which data are asked for; for the strategy `generate`. The others are decided at once.
    pub asked: Fraction,
    /// Part of the events accepted by each step; for the strategy `two-step`.
    pub step_accept: Fraction,
    /// ROBs that each step asks for data, for each event.
    pub robs_per_step: u32,
    /// Data that have not come after this time are asked for again.
    pub request_timeout: Interval,
    /// Phased selection [ATM1997 §II-B]: unit n gives what it has collected of accepted events to event builder n, which asks
    /// only for the rest. For units and builders in one process.
    pub phased: bool,
    /// Processor time that each step takes.
    pub cost: Interval,
}

impl Default for L2pu {
    fn default() -> Self {
        Self {
            count: 1,
            workers: 4,
            strategy: Strategy::TwoStep,
            accept: Fraction::from_percent(10),
            asked: Fraction::from_percent(100),
            step_accept: Fraction::from_percent(10),
            robs_per_step: 2,
            request_timeout: Interval::from_ms(100),
            phased: false,
            cost: Interval::from_ns(0),
        }
    }
}

/// How a level-2 processing unit reaches a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// At random, without data.
    None,
    /// At random, after data of the regions of interest were asked for.
    Generate,
    /// In two steps; each asks for data and rejects most events.
    #[default]
    TwoStep,
    /// By the chains of `[menu]`, on the data of their regions of interest.
    Menu,
    /// At random and at once, without a worker: measures the supervisor.
    Sink,
}
