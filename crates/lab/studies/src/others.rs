//! What other work this machine had while something was measured.

use nix::sys::resource::UsageWho;
use partition::cpu::{Processors, cpu_seconds};
use partition::human::percent;

/// Watches the processors, from its beginning on.
pub(super) struct Others(Processors);

impl Others {
    pub(super) fn watch() -> Self {
        Self(Processors::watch(ours_s()))
    }

    /// What readers of the numbers should know; nothing of a machine that was left to this program, or where the kernel does not say.
    /// The part is below 0 where this program may use some processors alone.
    pub(super) fn remark(&self) -> Option<String> {
        self.0.left_to_us(ours_s()).filter(|left| (0.0..ALONE).contains(left)).map(|left| {
            let others = percent(1.0 - left);
            format!("Other work had {others} of the processors meanwhile: the numbers are those of a busy machine.")
        })
    }
}

/// Processor time of this process and of those of runs that are over.
fn ours_s() -> Option<f64> {
    Some([UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN].map(cpu_seconds).iter().sum())
}

/// What others had of the processors less than this would not show.
const ALONE: f64 = 0.95;
