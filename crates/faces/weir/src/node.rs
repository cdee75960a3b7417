//! `weir node`: the process of one application, commanded by its parent.

use std::sync::Arc;

use partition::{Node, NodeError};
use signal_hook::consts::SIGINT;
use terminal::{Exit, complain};

use crate::cli::NodeArgs;
use crate::tracing::Tracing;

/// Lives until the run ends.
pub(crate) fn main(args: &NodeArgs) -> Exit {
    // The parent decides when a run ends; an interrupt from the terminal is for it alone.
    if let Err(error) = signal_hook::flag::register(SIGINT, Arc::default()) {
        complain(&format!("weir node {}: signals cannot be set up: {error}", args.name));
        return Exit::NotStarted;
    }
    let _tracing = match Tracing::start(&args.trace, &args.name) {
        Ok(tracing) => tracing,
        Err(error) => {
            complain(&format!("weir node {}: {error}", args.name));
            return Exit::NotStarted;
        }
    };
    let node = Node { join: args.join.clone(), name: args.name.clone(), ports: args.port.clone(), at: args.at };
    match node.run() {
        Ok(()) => Exit::Well,
        Err(NodeError::Orphaned) => Exit::Aborted,
        Err(error) => {
            complain(&format!("weir node {}: {error}", args.name));
            Exit::NotStarted
        }
    }
}
