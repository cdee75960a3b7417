//! Live runs of the laboratory: they say on the standard error what is said in them, and Ctrl-C ends them.

use partition::driver::Meter;
use partition::{Figures, Metered, Outcome, Probe, Run, StartError};
use terminal::Interrupts;

/// Conducts a run from start to account.
pub(crate) fn conduct(run: Run) -> Result<Outcome, StartError> {
    conduct_metered(run, None).map(|(conducted, _)| conducted)
}

/// The same; with a meter says where the time of this process went.
pub(crate) fn conduct_metered(run: Run, meter: Option<Meter>) -> Result<(Outcome, Metered), StartError> {
    let _interrupts = Interrupts::end(run.control()).map_err(StartError::Signals)?;
    partition::conduct_metered(run.observe(Heard), meter)
}

/// Says what is said.
struct Heard;

impl Probe for Heard {
    fn figures(&mut self, _: &Figures) {}

    fn said(&mut self, text: &str) {
        terminal::complain(&format!("weir: {text}"));
    }
}
