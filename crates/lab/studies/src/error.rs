//! Why a study has no result.

use std::io;
use std::path::PathBuf;

use configuration::{BadMenu, ConfigurationError};
use terminal::{ConductError, Exit};
use transport::error::OsError;

use crate::sample::BadSample;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum StudyError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Menu(#[from] BadMenu),
    #[error("the configuration has no chains: expected tables [[menu.chain]]")]
    NoMenu,
    #[error("no samples: expected some with --sample, or in input.files of the configuration")]
    NoSamples,
    #[error(
        "no samples: {} is not there; name some with --sample, or start in a folder where `weir init trigger` wrote its data",
        path.display()
    )]
    NoExample { path: PathBuf },
    #[error("two samples are called {name}: expected files with names of their own, which the results are filed under")]
    SameName { name: String },
    #[error(transparent)]
    Sample(#[from] BadSample),
    #[error(transparent)]
    Start(#[from] ConductError),
    #[error("cannot write {}: {cause}", path.display())]
    Output { path: PathBuf, cause: io::Error },
    #[error("cannot draw the figure: {0}")]
    Figure(String),
    #[error("{}: {cause}", path.display())]
    Scenario { path: PathBuf, cause: String },
    #[error("{}: {cause}", path.display())]
    Trace { path: PathBuf, cause: String },
    #[error(
        "the trace of {process} holds nothing of {what}: expected some; let runs last longer (run.duration of --config FILE), or it is another \
         partition than the study's"
    )]
    NothingSeen { process: String, what: String },
    #[error("{sample}: the run does not count: {reason}")]
    Unsound { sample: String, reason: String },
    #[error(transparent)]
    Os(#[from] OsError),
    #[error("the process that takes turns with this one: {0}")]
    Partner(io::Error),
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),
    #[error("files of runs: {0}")]
    Scratch(io::Error),
    #[error("interrupted")]
    Interrupted,
}

impl StudyError {
    /// How the program ends.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Configuration(_)
            | Self::Menu(_)
            | Self::NoMenu
            | Self::NoSamples
            | Self::SameName { .. }
            | Self::Scenario { .. } => Exit::Wrong,
            Self::NoExample { .. }
            | Self::Sample(_)
            | Self::Start(_)
            | Self::Output { .. }
            | Self::Figure(_)
            | Self::Os(_)
            | Self::Partner(_)
            | Self::Signals(_)
            | Self::Scratch(_)
            | Self::Trace { .. }
            | Self::NothingSeen { .. } => Exit::NotStarted,
            Self::Unsound { .. } | Self::Interrupted => Exit::Aborted,
        }
    }
}
