//! Files that a measurement records.

use std::path::PathBuf;

use base::bulk::PageSlice;
use dataflow::component::Outcome;
use dataflow::message::Recording;
use eformat::{EventHeader, event_envelope};
use storage::{Streams, WriterConfig};

/// Files of one stream, removed in the end.
pub(crate) struct Files {
    directory: PathBuf,
    streams: Streams,
    header: Vec<u8>,
}

impl Files {
    /// In a directory beside the program.
    pub(crate) fn new() -> Self {
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
