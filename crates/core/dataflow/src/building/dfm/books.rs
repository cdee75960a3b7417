//! What a dataflow manager knows of events, event builders and sources.

use alloc::vec::Vec;

use crate::building::dfm::remembered::Remembered;
use crate::groups::Groups;
use crate::message::{Assignment, Attempt, EventInfo, Grounds, Message};
use crate::report::BlockedClock;
use base::ids::{EventId, Incarnation, NodeId};
use base::time::Time;

pub(super) struct Open {
    pub(super) event: EventInfo,
    pub(super) has_result: bool,
    /// The index of the supervisor that accepted it, if one did.
    pub(super) source: Option<u16>,
    /// Has some of its data already.
    pub(super) builder: Option<NodeId>,
    pub(super) attempt: u16,
    /// If an attempt was granted, now or before.
    pub(super) granted: Option<Granted>,
    pub(super) state: BuildState,
}

impl Open {
    /// By whom it counts as built.
    pub(super) fn built(&self) -> Option<Granted> {
        self.granted.filter(|_| matches!(self.state, BuildState::Granted { .. }))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Granted {
    /// The index of the builder.
    pub(super) sfi: u16,
    pub(super) complete: bool,
    /// On what level 2 had accepted the event.
    pub(super) grounds: Grounds,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BuildState {
    Queued,
    Building {
        sfi: usize,
        since: Time,
    },
    /// Built at this SFI; kept open until it is finished.
    Granted {
        sfi: usize,
    },
}

pub(super) struct Sfi {
    pub(super) node: NodeId,
    pub(super) reachable: bool,
    /// The one in which it was seen last.
    pub(super) life: Option<Incarnation>,
    /// All that it held when a DFM that returned came up with it is known. Until then the DFM could give it an event that it has.
    pub(super) told: bool,
    pub(super) gone: bool,
    /// It has told the fates of all its events.
    pub(super) done: bool,
    pub(super) busy: bool,
    /// An event that it was given was not built in time, and none since.
    pub(super) late: bool,
    pub(super) building: usize,
    pub(super) complete: u64,
    pub(super) incomplete: u64,
    pub(super) finished: u64,
}

impl Sfi {
    /// Whether events may be pushed to it.
    pub(super) fn builds(&self) -> bool {
        self.reachable && self.told && !self.late
    }

    /// How many more events it may get, if at most so many may be in building.
    pub(super) fn room(&self, most: usize) -> usize {
        if self.reachable && self.told && !self.busy { most.saturating_sub(self.building) } else { 0 }
    }
}

pub(super) struct Supervisor {
    pub(super) node: NodeId,
    pub(super) reachable: bool,
    pub(super) gone: bool,
    pub(super) life: Option<Incarnation>,
    /// Nothing follows from it.
    pub(super) done: bool,
    pub(super) seen: bool,
    pub(super) sequence: u64,
    pub(super) oldest_undecided: EventId,
    pub(super) taken: [u64; 3],
    pub(super) remembered: Remembered,
    /// It is in a new life, and does not know what its former ones have handed over.
    pub(super) asks_taken: bool,
}

/// What goes out at the end of a pass.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) builds: Groups<Assignment>,
    pub(super) grants: Groups<Attempt>,
    pub(super) revocations: Groups<Attempt>,
    /// For all read-out systems.
    pub(super) clears: Vec<Message>,
}

impl Outgoing {
    /// Messages that a builder has not got go with its connection.
    pub(super) fn forget(&mut self, sfi: NodeId) {
        self.builds.forget(sfi);
        self.grants.forget(sfi);
        self.revocations.forget(sfi);
    }
}

/// Whether builders keep up.
#[derive(Default)]
pub(super) struct Pressure {
    /// Whether sources of events were told to hold back.
    pub(super) is_busy: bool,
    /// Whether events wait for builders, as last told to `blocked`.
    pub(super) waits: Option<bool>,
    pub(super) blocked: BlockedClock,
}
