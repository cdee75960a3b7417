//! How an event builder is set up.

use alloc::vec::Vec;
use core::time::Duration;

use crate::building::pushed::PushedParameters;
use crate::building::request_credits::CreditPolicy;
use base::ids::NodeId;
use base::sampling::SamplingRule;

/// How an event builder is set up.
#[derive(Clone, Debug)]
pub struct SfiParameters {
    /// The read-out systems, each with the source identifiers of its ROBs.
    pub sources: Vec<Source>,
    /// Who assigns events.
    pub dfm: NodeId,
    /// The event filter; where there is none, a granted event is finished.
    pub efds: Vec<NodeId>,
    /// Most events held; each is room for an event of the largest size.
    pub events: usize,
    /// Largest event in bytes; what would make one larger counts as missing.
    pub event_bytes_max: usize,
    /// Most events in building.
    pub building: usize,
    /// Most events whose data level 2 has collected and that were not assigned yet; each may be as large as an event. 0 where
    /// there is no phased selection.
    pub collected: usize,
    /// Most requests that are not answered, over all events.
    pub outstanding_requests: usize,
    /// Whether it is always so many.
    pub credits: CreditPolicy,
    /// Which source is asked first.
    pub request_order: RequestOrder,
    /// How it is pushed to, if it is.
    pub push: Option<PushedParameters>,
    /// How long a source may take.
    pub request_timeout: Duration,
    /// How often a source is asked again before its data count as missing.
    pub retries: u32,
    /// Whether events are served in the order of their numbers.
    pub in_order: bool,
    /// Which events are shown to those who watch, if any.
    pub sampling: Option<SamplingRule>,
    /// For the order of requests.
    pub seed: u64,
}

/// In which order the sources of an event are asked: builders that go by the same order meet at the same source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestOrder {
    /// Shuffled anew for each event `[EB2007 §II-B.3]`.
    #[default]
    Random,
    /// One order for each builder, which begins one source further with each event.
    Rotating,
}

/// A read-out system as a source of event data.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is.
    pub node: NodeId,
    /// Its ROBs.
    pub robs: Vec<u32>,
    /// Whether it is the pseudo-ROS: only asked for events with a level-2 result.
    pub results: bool,
    /// How long it is waited for.
    pub patience: Patience,
}

/// How long an event waits for a source that does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Patience {
    /// For so many tries.
    #[default]
    Tries,
    /// The same, but while it is away tries do not count: what it gives is not lost with it.
    WhileAway,
    /// As long as it likes.
    Always,
}
