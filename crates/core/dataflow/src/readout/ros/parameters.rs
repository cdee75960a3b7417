//! How a read-out system is set up.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::time::Duration;

use crate::message::EventInfo;
use crate::readout::pusher::PushParameters;
use base::bulk::Bulk;
use base::ids::NodeId;
use base::sampling::SamplingRule;
use timing::Interval;
use timing::rule::Rule;
use timing::slices::Slices;
use timing::watch::Watched;

/// How a read-out system is set up.
#[derive(Clone, Debug)]
pub struct RosParameters {
    /// Source identifiers of its ROBs, in the order of the links.
    pub robs: Vec<u32>,
    /// Pages, that is fragments, in each ROB.
    pub pages_per_rob: usize,
    /// A ROB with more fragments than this raises busy.
    pub busy_above: usize,
    /// Busy ends when every ROB has fewer fragments than this.
    pub busy_below: usize,
    /// How long a request may wait for its data.
    pub request_timeout: Duration,
    /// Most bytes of replies for building that travel in one message, unless the reply for a single event has more.
    pub group_bytes_max: usize,
    /// When fragments come.
    pub read_out: ReadOut,
    /// With [`ReadOut::Pushed`], the links of the ROBs.
    pub links: LinksParameters,
    /// How data are pushed, if they are.
    pub push: Option<PushParameters>,
    /// Where triggers come from, if any do.
    pub level1: Option<NodeId>,
    /// The window of level 1, in triggers.
    pub in_flight: u64,
    /// Who clears.
    pub dfm: NodeId,
    /// Which events are shown to those who watch, if any are.
    pub sampling: Option<SamplingRule>,
    /// Whether the run has begun already: clear groups before the next are not missed.
    pub late: bool,
}

/// What makes fragments come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOut {
    /// Each level-1 accept, in order.
    OnTrigger,
    /// The first request for an event: the emulated read-out of `[EB2007 §IV]`.
    OnRequest,
    /// Level-2 results sent by L2PUs, in any order: the pseudo-ROS.
    Results,
    /// Whatever is outside, whenever that likes: before a level-1 accept, behind it, or never.
    Pushed,
}

/// Links whose sources send by themselves.
#[derive(Clone, Debug, Default)]
pub struct LinksParameters {
    /// One for each ROB.
    pub each: Vec<LinkParameters>,
    /// Events do without a source that is away for longer. One that was told to stop has as long to end.
    pub grace: Duration,
    /// Where events are slices of time, these, without their reach: each link has one of its own.
    pub slice: Option<Slices>,
    /// For so long the event of a trigger waits for links whose data belong to it by time or count.
    pub wait: Duration,
    /// Whether clocks are compared with the times of triggers, as level 1 says them.
    pub by_triggers: bool,
    /// Where links are timed: what stands around the chunks of an event.
    pub framing: Option<Arc<dyn Framing>>,
}

/// Writes what stands around the chunks of an event. The chunks stay where they are.
pub trait Framing: Debug + Send + Sync {
    /// The whole ROB fragment.
    fn frame(&self, head: &TimedHead, chunks: Bulk) -> Bulk;
}

/// What the ROB fragment of an event is made of, besides chunks.
#[derive(Clone, Copy, Debug)]
pub struct TimedHead {
    /// Source identifier of the ROB.
    pub rob: u32,
    /// The event.
    pub event: EventInfo,
    /// What its chunks meet, in ns.
    pub interval: Interval,
    /// How many there are.
    pub chunks: u32,
    /// First status word of the ROB header.
    pub status: u32,
}

/// How it is with the link of a source that sends by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkParameters {
    /// Whether fragments may come in another order than that of their numbers, so that one passed over may still come.
    pub unordered: bool,
    /// Whether an event is complete without its fragment.
    pub tolerated: bool,
    /// Whether events wait for its fragment as long as the source is there.
    pub awaited: bool,
    /// Whether data of an event that may not be all count as missing.
    pub whole: bool,
    /// Whether its fragments are the triggers.
    pub leads: bool,
    /// Whether triggers come one by one, as by the hand-shake of a EUDET TLU. Each fragment of such a leader turns its link off, without
    /// an order. It is turned on again when the trigger is issued, and no other such link still owes its fragment.
    pub one_by_one: bool,
    /// Where its data belong to events by their time, or their count.
    pub timed: Option<TimedParameters>,
    /// What its clock is known from.
    pub watched: Watched,
}

/// How the data of a source are matched, if not by the number of the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedParameters {
    /// What an event takes of them.
    pub rule: Rule,
    /// Most chunks in an event; what is beyond is cut off, and the event marked.
    pub chunks_max: usize,
}
