//! Events that applications show to those who watch a run.

use std::sync::Arc;

use base::ids::Role;
use base::time::Time;
use dataflow::message::Recording;

use crate::assembly::Assembly;
use crate::host::{EventMaker, unpinned};

/// A copy of an event, as it was in an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// Name of the application.
    pub application: String,
    /// What it is.
    pub stage: Role,
    came: Time,
    recording: Recording,
    shown: Arc<Shown>,
}

/// What all samples of a run have in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    maker: EventMaker,
    /// Source identifiers of the ROBs of each read-out system.
    robs: Vec<Vec<u32>>,
}

impl Shown {
    pub(crate) fn of(assembly: &Assembly) -> Arc<Self> {
        Arc::new(Self { maker: EventMaker::new(&assembly.partition), robs: assembly.robs.clone() })
    }
}

impl Sampled {
    /// A sample that came to run control at that time.
    pub(crate) fn new(
        shown: &Arc<Shown>,
        (application, stage): (String, Role),
        came: Time,
        recording: Recording,
    ) -> Self {
        Self { application, stage, came, recording: unpinned(recording), shown: shown.clone() }
    }

    /// The whole event, as it would be in a file of one stream that takes it, not compressed.
    pub fn event(&self) -> Vec<u8> {
        self.shown.maker.whole(self.came, &self.recording)
    }

    /// The source identifiers of the ROBs of each read-out system, in their order.
    pub fn readout(&self) -> &[Vec<u32>] {
        &self.shown.robs
    }

    /// Bytes of its fragments.
    pub(crate) fn len(&self) -> usize {
        self.recording.built.bulk.len()
    }
}
