//! `weir agent`: starts, watches and ends the applications of a host.

use agents::Agent;
use terminal::{Exit, complain};

use crate::cli::AgentArgs;

/// Serves until run control is gone, or needs it no more.
pub(crate) fn main(args: AgentArgs) -> Exit {
    let AgentArgs { host, join, at, directory } = args;
    match (Agent { host: host.clone(), join, at, directory }).run() {
        Ok(()) => Exit::Well,
        Err(error) => {
            complain(&format!("weir agent {host}: {error}"));
            Exit::NotStarted
        }
    }
}
