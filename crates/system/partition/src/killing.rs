//! Ends one application at once, at the wish of somebody: the policy of its role then applies, as behind a death.

use std::sync::mpsc::SyncSender;

/// An application that is to end at once, and who waits for the answer.
#[derive(Debug)]
pub(crate) struct Kill {
    pub(crate) name: String,
    pub(crate) answer: SyncSender<Result<(), NotKilled>>,
}

/// Why an application is not ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotKilled {
    /// The partition has none of this name.
    #[error("there is no application {name:?}: expected one of {known}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// It has no process of its own.
    #[error(
        "{0} lives in the process of run control, which cannot end it alone: run each application in its own process"
    )]
    Here(String),
    /// Its process has ended already.
    #[error("{0} does not live")]
    Gone(String),
    /// Nobody conducts the partition.
    #[error("no application runs")]
    Absent,
}
