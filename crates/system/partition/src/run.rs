//! A run, before it starts, and how others end it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::ids::Role;
use configuration::Partition;

use crate::observer::Observer;
use crate::probe::Probe;

/// A run of a partition: where its applications live, and who watches it.
pub struct Run {
    pub(crate) configuration: Partition,
    pub(crate) placement: Placement,
    pub(crate) probe: Option<Box<dyn Probe>>,
    pub(crate) observer: Option<Observer>,
    pub(crate) control: Control,
}

/// Where the applications of a partition live.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    pub(crate) in_children: fn(Role) -> bool,
}

impl Run {
    /// A run with all applications in this process, that nobody watches.
    pub fn new(configuration: Partition) -> Self {
        let (placement, control) = (Placement::local(), Control::default());
        Self { configuration, placement, probe: None, observer: None, control }
    }

    /// With applications placed like that.
    pub fn place(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Watched by a probe.
    pub fn observe(self, probe: impl Probe + 'static) -> Self {
        Self { probe: Some(Box::new(probe)), ..self }
    }

    /// With an observer of each decision of the selection in this process.
    pub fn note_decisions(self, observer: Observer) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// What ends it early.
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

    /// Those of some roles in processes of their own, the others in this one.
    pub fn apart(in_children: fn(Role) -> bool) -> Self {
        Self { in_children }
    }
}

/// Ends a run, from any thread. Clones end the same run.
#[derive(Clone, Debug, Default)]
pub struct Control(Arc<Interrupts>);

#[derive(Debug, Default)]
struct Interrupts {
    all: AtomicU32,
    taken: AtomicU32,
}

impl Control {
    /// The first one stops the run in the order of the data, so that nothing is lost; the second one forces the stop: what is in
    /// hand is given up. Before the run has begun one is enough.
    pub fn interrupt(&self) {
        self.0.all.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were since the last call.
    pub(crate) fn new_interrupts(&self) -> u32 {
        let all = self.0.all.load(Ordering::Relaxed);
        all - self.0.taken.swap(all, Ordering::Relaxed)
    }
}
