//! Runs within a command: they say on the standard error what is said in them, and Ctrl-C ends them.

use std::io;

use crate::{Interrupts, complain};
use partition::{Figures, Outcome, Probe, Run, Said, StartError};

/// Why a command has no outcome of a run.
#[derive(Debug, thiserror::Error)]
pub enum ConductError {
    /// The run did not begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Nobody could have interrupted it.
    #[error("signals cannot be caught: {0}")]
    Signals(io::Error),
}

/// Conducts a run from start to account.
///
/// # Errors
///
/// That the run could not start, or that signals cannot be caught.
pub fn conduct(run: Run) -> Result<Outcome, ConductError> {
    let _interrupts = Interrupts::end(run.control()).map_err(ConductError::Signals)?;
    Ok(partition::conduct(run.observe(Heard))?)
}

/// Says what is said.
struct Heard;

impl Probe for Heard {
    fn figures(&mut self, _: &Figures) {}

    fn said(&mut self, said: &Said) {
        complain(&format!("weir: {said}"));
    }
}
