//! How a dataflow manager is set up.

use alloc::vec::Vec;
use core::time::Duration;

use crate::building::assignment::SfiAssignment;
use crate::building::push_control::BuildingMode;
use crate::level1::pace::Spacing;
use base::ids::{EventId, NodeId};

/// How a dataflow manager is set up.
#[derive(Clone, Debug)]
pub struct DfmParameters {
    /// Where events come from.
    pub input: DfmInput,
    /// The builders.
    pub sfis: Vec<NodeId>,
    /// The filter daemons, which may have events whose builder was lost.
    pub efds: Vec<NodeId>,
    /// Most events in building at one SFI.
    pub building: usize,
    /// How an SFI is chosen.
    pub assignment: SfiAssignment,
    /// Events in a row that one SFI gets.
    pub run: usize,
    /// How the data of events come to the SFIs.
    pub mode: BuildingMode,
    /// After this time an event goes to another SFI, if there is one.
    pub build_timeout: Duration,
    /// Events in a clear group.
    pub clear_group: usize,
    /// How long a clear may wait for its group to fill.
    pub clear_age: Duration,
    /// When the read-out systems may forget an event.
    pub clear_after: ClearAfter,
    /// Events that may wait for an SFI before busy is raised.
    pub queue: usize,
    /// Whether supervisors may return, so that their decisions are remembered until level 1 has them settled.
    pub supervisors_return: bool,
    /// Whether a later life may follow, which others have to be able to bring up to date.
    pub returns: bool,
    /// The window of level 1.
    pub in_flight: u64,
    /// A life of it has been in the run before: it first learns what that has left.
    pub late: bool,
}

/// Where the events of a DFM come from.
#[derive(Clone, Debug, PartialEq)]
pub enum DfmInput {
    /// Grouped decisions of level 2.
    Level2 {
        /// The supervisors.
        l2svs: Vec<NodeId>,
        /// Told of busy.
        level1: NodeId,
    },
    /// Level 1 directly.
    Level1(NodeId),
    /// Itself `[EB2007 §IV]`.
    SelfTrigger {
        /// The read-out systems, which know what numbers a former life has used.
        readout: Vec<NodeId>,
        /// The first event.
        first: EventId,
        /// Most events of the run.
        limit: Option<u64>,
        /// When events are triggered.
        spacing: Spacing,
        /// For the spacing.
        seed: u64,
    },
}

/// When the read-out systems may forget an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearAfter {
    /// When it is built, as in `[EB2007 §II-B.1]`.
    Built,
    /// When the event filter rejected it or it is recorded: nothing that dies in between loses it.
    Recorded,
}
