//! How a read-out system is set up.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::time::Duration;

use crate::message::EventInfo;
use crate::readout::pusher::PushParameters;
use base::bulk::Bulk;
use base::ids::NodeId;
use timing::Interval;

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
    /// Where events are slices of time, the length of a slice in ns.
    pub slice: Option<u64>,
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
    /// Whether its fragments are the triggers.
    pub leads: bool,
    /// Where its data belong to events by their time.
    pub timed: Option<TimedParameters>,
}

/// How the times of a source are matched, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedParameters {
    /// Added to all times that the source says.
    pub offset: i64,
    /// An event takes so much more before its interval.
    pub before: u64,
    /// And behind it.
    pub after: u64,
    /// Most chunks in an event; what is beyond is cut off, and the event marked.
    pub chunks_max: usize,
}
