//! Who watches a run: is told how far it is and what is said in it.

use std::time::Duration;

use base::ids::Role;
use dataflow::report::BlockCause;

use crate::said::Said;
use crate::sources::Source;
use crate::waiting::Waiting;

/// Watches a run, from the thread that conducts it. What takes long here holds up run control, and the applications that live
/// in this process; [`Running::reports`](crate::Running::reports) holds up nobody.
pub trait Probe: Send {
    /// All applications are ready, and the run has begun.
    fn begun(&mut self) {}

    /// New figures, a few times per second.
    fn figures(&mut self, figures: &Figures);

    /// Something that people should read: what an application says, or what run control does.
    fn said(&mut self, said: &Said);

    /// The same, where no run is wanted.
    fn said_between_runs(&mut self, said: &Said) {
        self.said(said);
    }

    /// Run control waits for some, on the way to another state. It says so a few times per second, until they are there.
    fn waits(&mut self, _waiting: &Waiting) {}

    /// Nothing follows, also of a run that did not begin.
    fn over(&mut self) {}
}

/// A probe, if there is one, which is told when nothing follows.
#[derive(Default)]
pub(crate) struct Watched(pub(crate) Option<Box<dyn Probe>>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|probe| probe.over());
    }
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Level-1 events issued.
    pub issued: u64,
    /// Events built.
    pub built: u64,
    /// Events recorded.
    pub recorded: u64,
    /// Bytes recorded.
    pub bytes_recorded: u64,
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Trigger opportunities of level 1, issued and vetoed.
    pub offered: u64,
    /// Of these, those that fell into dead time.
    pub vetoed: u64,
    /// What each application has counted, in the order in which data move.
    pub applications: Vec<Counted>,
    /// The sources that send by themselves, in the order of their applications.
    pub sources: Vec<Source>,
    /// Who has waited for whom since the start of the run.
    pub waits: Vec<Wait>,
    /// The stage that drains, of a run that is being stopped.
    pub stopping: Option<Role>,
    /// What goes wrong at this moment, in words.
    pub troubles: Vec<String>,
    /// Applications that live and do not answer run control, each with the time since it did.
    pub silent: Vec<(String, Duration)>,
}

/// What an application has counted since the start of the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its name.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// The values of its counters, in the order of `Counter::of_role`.
    pub counts: Vec<u64>,
}

/// How long an application has waited for another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What waits.
    pub stage: Role,
    /// Name of the one that waits.
    pub who: String,
    /// Name of the one that is waited for.
    pub whom: String,
    /// Its role.
    pub by: Role,
    /// Why.
    pub cause: BlockCause,
    /// Who waits for whom and why, in words.
    pub words: String,
    /// For how long since the start of the run, in ns.
    pub time_ns: u64,
}

impl Figures {
    /// Counts do not run backwards.
    pub(crate) fn is_at_least(&mut self, before: &Self) {
        self.issued = self.issued.max(before.issued);
        self.built = self.built.max(before.built);
        self.recorded = self.recorded.max(before.recorded);
        self.bytes_recorded = self.bytes_recorded.max(before.bytes_recorded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_do_not_run_backwards_when_a_process_begins_anew() {
        let figures = |issued, recorded, elapsed_ms| Figures {
            issued,
            built: issued / 2,
            recorded,
            bytes_recorded: recorded * 1000,
            elapsed: Duration::from_millis(elapsed_ms),
            ..Figures::default()
        };
        let mut shown = figures(4000, 3, 2500);
        shown.is_at_least(&figures(3000, 750, 2000));
        assert_eq!(shown, figures(4000, 750, 2500));
    }
}
