//! `[dfm]`, `[sfi]`, `[ef]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Fraction, Interval, Rate, Size};

/// `[dfm]`: the dataflow manager, which assigns events to event builders and clears the read-out systems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Dfm {
    /// Where events come from; by default `level2` with `[l2sv]`, else `level1` with `[level1]`, else `self`.
    pub input: DfmInput,
    /// Rate of the input `self`; without it events come as fast as they are built.
    pub rate: Option<Rate>,
    /// How the data of an event come to its SFI.
    pub building: BuildingMode,
    /// How the SFI of an event is chosen.
    pub assignment: SfiAssignment,
    /// An event that is not built after this time is assigned again.
    pub build_timeout: Interval,
    /// Clears go to the read-out systems in groups of this many events.
    pub clear_group: u32,
    /// A group goes out at this age, full or not.
    pub clear_age: Interval,
    /// When the read-out systems may drop an event.
    pub clear_after: ClearAfter,
    /// Events that wait for an SFI before the DFM raises busy.
    pub queue: u32,
}

impl Default for Dfm {
    fn default() -> Self {
        Self {
            input: DfmInput::SelfTrigger,
            rate: None,
            building: BuildingMode::Pull,
            assignment: SfiAssignment::RoundRobin,
            build_timeout: Interval::from_ms(2000),
            clear_group: 100,
            clear_age: Interval::from_ms(10),
            clear_after: ClearAfter::Built,
            queue: 1000,
        }
    }
}

/// Where the events of the dataflow manager come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DfmInput {
    /// Accepted by level 2.
    #[serde(rename = "level2")]
    Level2,
    /// Every level-1 event.
    #[serde(rename = "level1")]
    Level1,
    /// The DFM's own triggers (EB2007).
    #[default]
    #[serde(rename = "self")]
    SelfTrigger,
}

/// How the data of an event come to its event builder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BuildingMode {
    /// It asks for them (EB2007).
    #[default]
    Pull,
    /// The DFM tells the read-out systems who builds the event, and these send (ATM1997). What does not come is asked for.
    Push,
    /// The read-out systems send as soon as their data are there: the number of the event says who builds it.
    PushByNumber,
}

/// How the SFI of an event is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SfiAssignment {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with the most free event slots.
    LeastLoaded,
}

/// When the read-out systems may drop an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClearAfter {
    /// When it is built (EB2007).
    #[default]
    Built,
    /// When it is rejected or recorded, so that the loss of an SFI, EFD or SFO loses no event.
    Recorded,
}

/// `[sfi]`: the event builders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Sfi {
    /// Number of event builders. Required. 0 ends the chain with level 2: nothing is built, and the one level-2 supervisor
    /// clears the read-out systems itself.
    pub count: u32,
    /// Event slots of each: events being built, or built and not yet taken over by the event filter.
    pub events: u32,
    /// Events that each builds at once.
    pub building: u32,
    /// Most data requests of each that are not yet answered.
    pub outstanding_requests: u32,
    /// Whether it is always so many.
    pub credits: RequestCredits,
    /// In which order the read-out systems are asked.
    pub request_order: RequestOrder,
    /// A request that is not answered after this time is sent again. The transport asks for lost parts of messages long
    /// before. A shorter time repeats, on a busy machine, requests whose data are only late.
    pub request_timeout: Interval,
    /// A request is sent again at most this often; then the event is built without these data, and marked so.
    pub retries: u32,
    /// Memory reserved for each event that is being built.
    pub max_event_size: Size,
    /// Fragments below this size are copied into the event, larger ones stay where they were received.
    pub copy_below: Size,
    /// What is looked at of each fragment that arrives for building.
    pub check: FragmentCheck,
}

impl Default for Sfi {
    fn default() -> Self {
        Self {
            count: 1,
            events: 64,
            building: 32,
            outstanding_requests: 64,
            credits: RequestCredits::Fixed,
            request_order: RequestOrder::Random,
            request_timeout: Interval::from_ms(500),
            retries: 3,
            max_event_size: Size::from_bytes(4_000_000),
            copy_below: Size::from_bytes(2000),
            check: FragmentCheck::Headers,
        }
    }
}

/// What is looked at of each fragment that arrives for building.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FragmentCheck {
    /// Its headers.
    #[default]
    Headers,
    /// Its headers, and every byte: their sum is in the summary of the run. So a builder costs what one does whose
    /// processor reads all data.
    Data,
}

/// How many data requests an event builder has on the way at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestCredits {
    /// `sfi.outstanding_requests`, always (EB2007).
    #[default]
    Fixed,
    /// As many as the network takes, up to `sfi.outstanding_requests`: fewer when requests have to be repeated or replies
    /// come far later than those before.
    Adaptive,
}

/// In which order the read-out systems are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestOrder {
    /// At random, anew for each event (EB2007).
    #[default]
    Random,
    /// One behind the other, beginning with the next for each event.
    Rotating,
}

/// `[ef]`: the event filter. Without this table every built event is accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Ef {
    /// Number of event-filter dataflow daemons (EFDs).
    pub count: u32,
    /// Events in each EFD at once.
    pub slots: u32,
    /// Which events are accepted.
    pub policy: FilterPolicy,
    /// One event of this many is accepted; for the policy `prescale`.
    pub prescale: u32,
    /// Part of the events accepted; for the policy `random`.
    pub accept: Fraction,
}

impl Default for Ef {
    fn default() -> Self {
        Self { count: 1, slots: 8, policy: FilterPolicy::Accept, prescale: 10, accept: Fraction::from_percent(50) }
    }
}

/// Which events the event filter accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilterPolicy {
    /// All.
    #[default]
    Accept,
    /// One in `ef.prescale`.
    Prescale,
    /// The part `ef.accept`, at random.
    Random,
}
