//! Events that applications show to those who watch a run.

use std::sync::Arc;

use base::ids::Role;
use base::time::Time;
use dataflow::message::Recording;

use driver::Assembly;
use driver::{EventMaker, RecordedStreams, unpinned};

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
    streams: Option<RecordedStreams>,
    /// Source identifiers of the ROBs of each read-out system.
    robs: Vec<Vec<u32>>,
}

impl Shown {
    pub(crate) fn of(assembly: &Assembly) -> Arc<Self> {
        let (partition, robs) = (&assembly.partition, assembly.robs.clone());
        // Without them a recorder does not begin, nor a run.
        let streams = RecordedStreams::new(partition, &robs.concat()).ok();
        Arc::new(Self { maker: EventMaker::new(partition), streams, robs })
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

    /// The whole event, as it would be in a file, not compressed. One that was just built has no streams yet. What a part of the read-out has shown
    /// is marked as a part.
    pub fn event(&self) -> Vec<u8> {
        let tags = self.shown.streams.as_ref().map(|streams| streams.tags(&self.recording));
        let is_part = matches!(self.stage, Role::Ros | Role::Ebif);
        self.shown.maker.whole(self.came, &self.recording, (tags.unwrap_or_default(), is_part))
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
