//! What a writer is to write.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use eformat::{
    DataSeparator, DetectorMask, FileEnd, FileHeader, FileName, FileNames, FileStart, FileVersion, Guid, Metadata,
    RunParameters, Stamp,
};

use crate::clock::{fresh_guid, local_stamp};
use crate::write_error::WriteError;

/// What a [`Writer`](crate::Writer) is to write. `default()` is a valid configuration for tests in the current directory.
#[derive(Clone)]
pub struct WriterConfig {
    /// Where the files go; created if it is absent.
    pub directory: PathBuf,
    /// Project tag of the names; empty = `data_test`.
    pub project: String,
    /// Run number of the names and the run parameters.
    pub run_number: u32,
    /// Type of the stream.
    pub stream_type: String,
    /// Name of the stream.
    pub stream_name: String,
    /// Luminosity block of the names, 0 if files hold several.
    pub lumi_block: u32,
    /// Application of the names.
    pub application: String,
    /// A new file begins before an event with which the closed file would be larger than this; 0 = no limit. Only a file of a
    /// single event may be larger.
    pub bytes_max: u64,
    /// Events of a file; 0 = no limit.
    pub events_max: u32,
    /// Whether files and their names are made durable when closed.
    pub durable: bool,
    /// Run parameters record; its run number is replaced by `run_number`.
    pub run: RunParameters,
    /// Further metadata strings.
    pub metadata: Vec<String>,
    /// Version of the files.
    pub dialect: Dialect,
    /// Clock of the records.
    pub clock: Arc<dyn Fn() -> Stamp + Send + Sync>,
    /// Source of GUIDs.
    pub guids: Arc<dyn Fn() -> Guid + Send + Sync>,
}

/// Kind of files that a [`Writer`](crate::Writer) makes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Dialect {
    /// Version 6, with metadata.
    #[default]
    V6,
    /// Version 2, the dialect of BESIII.
    V2 {
        /// File name strings record, such as that of the file that is replayed; by default as in version 6.
        names: Option<FileNames>,
        /// Number of the first data block.
        first_block_number: u32,
    },
}

impl WriterConfig {
    pub(crate) fn first_name(&self) -> Result<FileName, WriteError> {
        let Self { project, run_number, stream_type, stream_name, lumi_block, application, .. } = self;
        FileName::new(project, *run_number, stream_type, stream_name, *lumi_block, application)
            .map_err(WriteError::Name)
    }

    /// Whether a file that is `file_bytes` long with its `events` is full for one more of `event_bytes`. The limit holds for all its
    /// bytes, those of the end record included. That of the note (§11.10), in rounded MB, would let it grow beyond.
    pub(crate) fn is_over(&self, events: u32, file_bytes: u64, event_bytes: u32) -> bool {
        let closed_bytes = file_bytes + (DataSeparator::BYTES + FileEnd::BYTES) as u64 + u64::from(event_bytes);
        let by_size = self.bytes_max != 0 && closed_bytes > self.bytes_max && events > 0;
        by_size || self.events_max != 0 && events >= self.events_max
    }

    pub(crate) fn file_header(&self, name: &FileName, file_number: u32) -> FileHeader {
        let own = || FileNames { application: self.application.clone(), core: name.core() };
        let (version, names, metadata) = match &self.dialect {
            Dialect::V6 => (FileVersion::V6, own(), Some(self.metadata(name))),
            Dialect::V2 { names, .. } => (FileVersion::V2, names.clone().unwrap_or_else(own), None),
        };
        let opened = (self.clock)();
        // Rounded up, as 0 is no limit.
        let megabytes_max = u32::try_from(self.bytes_max.div_ceil(1 << 20)).unwrap_or(u32::MAX);
        let blocks_max = self.events_max;
        FileHeader {
            start: FileStart { version, file_number, opened, blocks_max, megabytes_max },
            names,
            metadata,
            run: RunParameters { run_number: self.run_number, ..self.run },
        }
    }

    fn metadata(&self, name: &FileName) -> Metadata {
        let user = self.metadata.iter().map(String::as_str);
        let (stream_type, stream_name) = (&self.stream_type, &self.stream_name);
        Metadata::new((self.guids)(), user, stream_type, stream_name, name.project(), self.lumi_block)
    }
}

impl Default for WriterConfig {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("."),
            project: String::new(),
            run_number: 0,
            stream_type: "physics".to_owned(),
            stream_name: "Main".to_owned(),
            lumi_block: 0,
            application: "SFO-1".to_owned(),
            bytes_max: 0,
            events_max: 0,
            durable: false,
            run: RunParameters { recording_enabled: 1, detector_mask: DetectorMask(0), ..RunParameters::default() },
            metadata: Vec::new(),
            dialect: Dialect::V6,
            clock: Arc::new(local_stamp),
            guids: Arc::new(fresh_guid),
        }
    }
}

impl fmt::Debug for WriterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterConfig").field("directory", &self.directory).finish_non_exhaustive()
    }
}
