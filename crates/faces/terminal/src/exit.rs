//! How a command ends.

use std::process::ExitCode;

use partition::summary::RunState;

/// How the program ends (DESIGN §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Well = 0,
    /// Wrong usage or configuration, or a file with problems.
    Wrong = 1,
    /// The command could not start, or could not write its results.
    NotStarted = 2,
    /// The run ended with a residual, or was aborted.
    Aborted = 3,
    /// The run ended in order and with every event accounted for, but not all that was accepted is whole in the files.
    Degraded = 4,
}

impl Exit {
    /// The worse of two ends: what could not start is worse than a run that was aborted, and that is worse than a degraded one.
    #[must_use]
    pub fn or_worse(self, other: Self) -> Self {
        let severity = |exit: Self| match exit {
            Self::Well => 0,
            Self::Degraded => 1,
            Self::Aborted => 2,
            Self::NotStarted => 3,
            Self::Wrong => 4,
        };
        if severity(other) > severity(self) { other } else { self }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<RunState> for Exit {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Ok => Self::Well,
            RunState::Degraded => Self::Degraded,
            RunState::Residual | RunState::Aborted => Self::Aborted,
        }
    }
}
