//! What an operator may want.

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
    /// End the applications.
    Shutdown,
}

impl Order {
    /// What messages say of its operator, if no other message names him.
    pub(crate) fn deed(&self) -> Option<&'static str> {
        match self {
            Self::Boot | Self::Start { .. } => None,
            Self::Pause => Some("holds triggers back"),
            Self::Resume => Some("lets triggers go on"),
            Self::Stop => Some("ends the run"),
            Self::Force => Some("ends the run at once"),
            Self::Shutdown => Some("ends the applications"),
        }
    }
}
