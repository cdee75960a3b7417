//! A run, before it starts.

use std::path::PathBuf;

use agents::Roll;
use base::ids::Role;
use configuration::Partition;
use metering::Meter;

use crate::control::Control;
use crate::keeping::{Keeping, Left};
use crate::probe::{Probe, Watched};
use driver::observer::Observer;

/// A run of a partition: where its applications live, and who watches it.
#[must_use]
pub struct Run {
    pub(crate) configuration: Partition,
    pub(crate) placement: Placement,
    pub(crate) probe: Watched,
    pub(crate) observer: Option<Observer>,
    pub(crate) options_of_children: Vec<String>,
    pub(crate) meter: Option<Meter>,
    pub(crate) control: Control,
    pub(crate) keeping: Option<Keeping>,
    pub(crate) left: Option<Left>,
    pub(crate) roll: Roll,
}

/// Where the applications of a partition live.
#[derive(Clone, Debug)]
pub struct Placement {
    pub(crate) in_children: fn(Role) -> bool,
    pub(crate) program: Option<PathBuf>,
}

impl Run {
    /// A run with all applications in this process, that nobody watches.
    pub fn new(configuration: Partition) -> Self {
        let (placement, control) = (Placement::local(), Control::default());
        Self {
            configuration,
            placement,
            probe: Watched::default(),
            observer: None,
            options_of_children: Vec::new(),
            meter: None,
            control,
            keeping: None,
            left: None,
            roll: Roll::default(),
        }
    }

    /// With what run control keeps so that its next life can take the run over. That takes hosts with agents.
    pub fn keep(self, keeping: Keeping) -> Self {
        Self { keeping: Some(keeping), ..self }
    }

    /// With applications placed like that.
    pub fn place(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Watched by a probe.
    pub fn observe(self, probe: impl Probe + 'static) -> Self {
        Self { probe: Watched(Some(Box::new(probe))), ..self }
    }

    /// With an observer of each decision of the selection in this process.
    pub fn note_decisions(self, observer: Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// With further options of `weir node` for the processes of applications.
    pub fn give_children(self, options_of_children: Vec<String>) -> Self {
        Self { options_of_children, ..self }
    }

    /// With a meter of where the time of this process goes, for one run.
    pub fn meter(self, meter: Meter) -> Self {
        Self { meter: Some(meter), ..self }
    }

    /// The agents that are there.
    pub fn roll(&self) -> Roll {
        self.roll.clone()
    }

    /// What pauses it, and ends it early.
    pub fn control(&self) -> Control {
        self.control.clone()
    }
}

impl Placement {
    /// All in this process.
    pub fn local() -> Self {
        Self::apart(|_| false)
    }

    /// Each in a process of its own, a direct child of this one.
    pub fn processes() -> Self {
        Self::apart(|_| true)
    }

    /// With this `weir` as the program of all processes that the run needs: applications, and processing tasks of a menu. Without it
    /// they run the program that asks for them, which has to be `weir` then.
    pub fn with_program(self, weir: impl Into<PathBuf>) -> Self {
        Self { program: Some(weir.into()), ..self }
    }

    /// Those of some roles in processes of their own, the others in this one.
    pub fn apart(in_children: fn(Role) -> bool) -> Self {
        Self { in_children, program: None }
    }
}
