//! What an operator may want.

use configuration::Stamps;
use std::path::PathBuf;

use serde_json::{Map, Value};

/// What an operator wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Start the applications, or those again that were lost.
    Boot,
    /// Begin a run, or several that follow one another.
    Start {
        /// They replace those of `[run]` in the configuration.
        keys: Map<String, Value>,
        /// How many runs, at least 1. One follows when the one before has reached its limit.
        runs: u32,
    },
    /// Hold triggers back.
    Pause,
    /// Let them go on.
    Resume,
    /// End the run in the order of the data.
    Stop,
    /// End it at once, and give up what is in hand.
    Force,
    /// Have the applications write time stamps, or no more.
    Stamps(Stamps),
    /// End the applications.
    Shutdown,
    /// End one application at once; the policy of its role then applies.
    Kill {
        /// Such as `sfi-1`.
        application: String,
    },
    /// Put another configuration into force, when no run goes on.
    Configure {
        /// Its file; without it the one that the service was started with, as it is now.
        file: Option<PathBuf>,
    },
}

impl Order {
    /// What messages say of its operator, if no other message names him.
    pub(crate) fn deed(&self) -> Option<String> {
        let deed = match self {
            Self::Boot | Self::Start { .. } | Self::Configure { .. } => return None,
            Self::Pause => "holds triggers back",
            Self::Resume => "lets triggers go on",
            Self::Stop => "ends the run",
            Self::Force => "ends the run at once",
            Self::Stamps(Stamps::Off) => "wants no more time stamps",
            Self::Stamps(_) => "wants time stamps",
            Self::Shutdown => "ends the applications",
            Self::Kill { application } => return Some(format!("ends {application} at once")),
        };
        Some(deed.to_owned())
    }
}

/// What comes of an order about time stamps.
pub(crate) fn stamps_in_words(stamps: Stamps, is_running: bool) -> &'static str {
    match (stamps, is_running) {
        (Stamps::Off, _) => "the applications write no more time stamps",
        (_, true) => "the applications write time stamps",
        (_, false) => "the applications write time stamps when a run begins",
    }
}
