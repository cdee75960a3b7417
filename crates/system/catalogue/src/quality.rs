//! What a run is worth for those who analyse it.

use core::fmt;
use core::str::FromStr;

use partition::summary::{RunState, Summary};
use serde::{Deserialize, Serialize};

/// What a run is worth. A person may change what the end of the run said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// It ended as wished, and nothing is missing.
    Good,
    /// Events are lost, incomplete, or were decided without all their data; or a person doubts its data.
    Tainted,
    /// Applications or run control were lost on the way, and the run went on.
    Incomplete,
    /// It ended before its time, in order; or its run control is gone, and nobody knows its end.
    Interrupted,
    /// What was in hand was given up, or its events do not add up.
    Aborted,
}

impl Quality {
    /// All, the best first.
    pub const ALL: [Self; 5] = [Self::Good, Self::Tainted, Self::Incomplete, Self::Interrupted, Self::Aborted];

    /// What the end of a run says. `forced` if what was in hand was given up.
    pub fn of(summary: &Summary, forced: bool) -> Self {
        match summary.state {
            RunState::Residual => Self::Aborted,
            RunState::Aborted if forced || summary.accounting.residual > 0 => Self::Aborted,
            RunState::Aborted => Self::Interrupted,
            RunState::Ok | RunState::Degraded if has_lost_any(summary) => Self::Incomplete,
            RunState::Degraded => Self::Tainted,
            RunState::Ok => Self::Good,
        }
    }

    /// Its name, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Tainted => "tainted",
            Self::Incomplete => "incomplete",
            Self::Interrupted => "interrupted",
            Self::Aborted => "aborted",
        }
    }
}

/// Whether somebody was lost, be it for a while.
fn has_lost_any(summary: &Summary) -> bool {
    let Summary { died, restarts, run_control_away, .. } = summary;
    !(died.is_empty() && restarts.is_empty() && run_control_away.is_empty())
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Quality {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|quality| quality.name() == text);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|quality| quality.name()).collect();
            format!("expected one of {}, found {text:?}", names.join(", "))
        })
    }
}
