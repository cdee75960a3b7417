//! What happens to events once they are built: an SFI serves them to a filter daemon, which accepts all, and a recorder writes
//! them.

use std::path::PathBuf;
use std::time::Duration;

use base::bulk::PageSlice;
use base::ids::NodeId;
use dataflow::building::dfm::{Dfm, DfmParameters};
use dataflow::building::sfi::{Sfi, SfiParameters};
use dataflow::component::{Component, Outcome};
use dataflow::filter::efd::{Decider, Efd, EfdParameters};
use dataflow::filter::policy::FilterPolicy;
use dataflow::filter::streams::one_stream;
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::message::Recording;
use dataflow::readout::ros::Ros;
use dataflow::recording::sfo::{Durable, Sfo, SfoParameters};
use eformat::{EventHeader, event_envelope};
use storage::{Streams, WriterConfig};

use crate::building::{self, DFM, SFI};
use crate::partition::Partition;

/// Events of four fragments of 1 kB, each written once it is built and accepted.
pub(crate) fn recorded(events: u64) {
    let readout: Vec<NodeId> = (building::FIRST_ROS..EFD.0).map(NodeId).collect();
    let dfm = DfmParameters { efds: vec![EFD], ..building::dfm(events) };
    let sfi = SfiParameters { efds: vec![EFD], ..building::sfi(&readout, DATA_BYTES) };
    let mut components: Vec<(NodeId, Box<dyn Component + Send>)> =
        vec![(DFM, Box::new(Dfm::new(dfm))), (SFI, Box::new(Sfi::new(sfi)))];
    for &node in &readout {
        components.push((node, Box::new(Ros::new(building::ros(node)))));
    }
    components.push((EFD, Box::new(Efd::new(efd()))));
    let sfo = SfoParameters { durable: Durable::Write, retry_after: Duration::from_secs(1), late: false };
    components.push((SFO, Box::new(Sfo::new(sfo))));
    let nothing = Skeleton { strategy: Strategy::None { accept: 0.0 }, robs: Vec::new(), seed: 1 };
    let partition = Partition::new(components, readout, nothing, DATA_BYTES, building::PAGES_PER_ROB);
    let mut partition = partition.with_files(Files::new());
    partition.start();
    partition.run_until(DFM, |report| building::finished(report) >= events);
}

fn efd() -> EfdParameters {
    EfdParameters {
        sfis: vec![SFI],
        sfos: vec![SFO],
        dfm: DFM,
        dfm_returns: false,
        slots: 32,
        decider: Decider::Policy(FilterPolicy::AcceptAll),
        streams: one_stream(),
    }
}

/// Files of one stream, removed in the end.
pub(crate) struct Files {
    directory: PathBuf,
    streams: Streams,
    header: Vec<u8>,
}

impl Files {
    /// In a directory beside the program.
    fn new() -> Self {
        let program = std::env::current_exe().expect("the program knows where it is");
        let directory = program.with_file_name(format!("instructions.{}", std::process::id()));
        let config = WriterConfig { directory: directory.clone(), run_number: 1, ..WriterConfig::default() };
        Self { directory, streams: Streams::new(config), header: Vec::new() }
    }

    /// Writes an event with a header of its own before its fragments, which stay where they are.
    pub(crate) fn record(&mut self, recording: &Recording) -> Outcome {
        let event = recording.built.event.event;
        let slices = recording.built.bulk.slices();
        let header = EventHeader { global_id: event.0, lvl1_id: event.lvl1_id().0, ..EventHeader::default() };
        let trailer = event_envelope(&header, slices.iter().map(PageSlice::as_bytes), false, &mut self.header);
        assert_eq!(trailer, None, "there is no trailer without a checksum");
        let mut parts = Vec::with_capacity(1 + slices.len());
        parts.push(self.header.as_slice());
        parts.extend(slices.iter().map(PageSlice::as_bytes));
        self.streams.write_event("physics", "Main", &parts).expect("there is room for some megabytes");
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        Outcome::Recorded { copies: 1, bytes, closed: Vec::new() }
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What is left is in the directory of builds.
        let _ = self.streams.finish();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

const EFD: NodeId = NodeId(building::FIRST_ROS + 4);
const SFO: NodeId = NodeId(EFD.0 + 1);
const DATA_BYTES: usize = 1000;
