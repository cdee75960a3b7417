//! Runs, for devices that do not hear of them.

use core::time::Duration;

use base::time::Time;

use super::LinkOrder;

/// Where a device is in a run. Weir only takes what it sends, or leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// There is no run.
    Outside,
    /// What comes is of this run.
    In { run: u32 },
    /// The run is to end; nobody has looked since.
    Asked { run: u32 },
    /// The run ends when nothing has come for a while, at the latest `at`.
    Ending { run: u32, quiet: Time, at: Time },
}

impl Phase {
    pub(super) fn is_outside(self) -> bool {
        self == Self::Outside
    }

    /// Whether another run begins.
    pub(super) fn order(&mut self, order: LinkOrder) -> bool {
        let run = match *self {
            Self::Outside => None,
            Self::In { run } | Self::Asked { run } | Self::Ending { run, .. } => Some(run),
        };
        match (order, run) {
            (LinkOrder::Start { run: next }, _) => *self = Self::In { run: next },
            (LinkOrder::Stop, Some(run)) => *self = Self::Asked { run },
            _ => {}
        }
        matches!(order, LinkOrder::Start { run: next } if run != Some(next))
    }

    /// Whether the run ends now; `came` says that something has come.
    pub(super) fn is_over(&mut self, now: Time, came: bool) -> bool {
        match *self {
            Self::Outside | Self::In { .. } => false,
            Self::Asked { run } => {
                *self = Self::Ending { run, quiet: now + GRACE, at: now + BOUND };
                false
            }
            Self::Ending { run, at, .. } if came && now < at => {
                *self = Self::Ending { run, quiet: now + GRACE, at };
                false
            }
            Self::Ending { quiet, at, .. } => now >= quiet.min(at),
        }
    }

    /// When to look again; `now` may be long ago.
    pub(super) fn next_deadline(self) -> Option<Time> {
        match self {
            Self::Outside | Self::In { .. } => None,
            Self::Asked { .. } => Some(Time::ZERO),
            Self::Ending { quiet, at, .. } => Some(quiet.min(at)),
        }
    }
}

/// A device that was silent for so long has sent all that it had.
const GRACE: Duration = Duration::from_millis(100);
/// Less than the second that read-out systems wait for the end of a source.
const BOUND: Duration = Duration::from_millis(500);
