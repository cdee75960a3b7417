//! Runs within a command: they say on the standard error what is said in them, and Ctrl-C ends them.

use crate::{Interrupts, complain};
use partition::driver::Meter;
use partition::{Figures, Metered, Outcome, Probe, Run, StartError};

/// Conducts a run from start to account.
///
/// # Errors
///
/// That the run could not start, or that signals cannot be caught.
pub fn conduct(run: Run) -> Result<Outcome, StartError> {
    conduct_metered(run, None).map(|(conducted, _)| conducted)
}

/// The same; with a meter says where the time of this process went.
///
/// # Errors
///
/// Those of [`conduct`].
pub fn conduct_metered(run: Run, meter: Option<Meter>) -> Result<(Outcome, Metered), StartError> {
    let _interrupts = Interrupts::end(run.control()).map_err(StartError::Signals)?;
    partition::conduct_metered(run.observe(Heard), meter)
}

/// Says what is said.
struct Heard;

impl Probe for Heard {
    fn figures(&mut self, _: &Figures) {}

    fn said(&mut self, text: &str) {
        complain(&format!("weir: {text}"));
    }
}
