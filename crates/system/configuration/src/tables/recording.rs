//! `[sfo]`, `[output]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Interval, Size};

/// `[sfo]`: the recorders. Without this table events are dropped at the end of the chain as if recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Sfo {
    /// Number of recorders; each event belongs to one.
    pub count: u32,
    /// The one stream, as type and name joined by `_`; `"physics_Main"` if absent. The type is one of physics, calibration,
    /// reserved, unknown, express, monitoring. Not with `[[stream]]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Order of the events in a file.
    pub order: EventOrder,
    /// Format of events and files.
    pub dialect: Dialect,
    /// When an event counts as recorded.
    pub durable: Durability,
    /// Written data are flushed to the disk at this age; for the durability `fsync`.
    pub fsync_age: Interval,
    /// A file is closed before it would grow beyond this size; only a file of a single event may be larger. `"0 B"` is no limit.
    pub max_file_size: Size,
    /// A file is closed after this many events; 0 is no limit.
    pub max_file_events: u32,
    /// Checksum at the end of each event; dialect `bes3` has none.
    pub checksum: Checksum,
    /// Compression of each event's data.
    pub compression: Compression,
    /// Project tag, the first part of file names.
    pub project: String,
    /// Luminosity block written into events and file names.
    pub lumi_block: u32,
}

impl Default for Sfo {
    fn default() -> Self {
        Self {
            count: 1,
            stream: None,
            order: EventOrder::Arrival,
            dialect: Dialect::Atlas,
            durable: Durability::Write,
            fsync_age: Interval::from_ms(100),
            max_file_size: Size::from_bytes(2_000_000_000),
            max_file_events: 0,
            checksum: Checksum::Adler32,
            compression: Compression::None,
            project: "data_test".to_owned(),
            lumi_block: 1,
        }
    }
}

impl Sfo {
    /// The one stream where there is no `[[stream]]`.
    pub fn stream(&self) -> &str {
        self.stream.as_deref().unwrap_or(Self::STREAM)
    }

    /// Type of the stream: what stands before the first `_` (format note §11).
    pub fn stream_type(&self) -> &str {
        self.stream().split_once('_').map_or(self.stream(), |parts| parts.0)
    }

    /// Name of the stream: what stands behind the first `_`.
    pub fn stream_name(&self) -> &str {
        self.stream().split_once('_').map_or("", |parts| parts.1)
    }

    const STREAM: &str = "physics_Main";
}

/// Order of the events in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EventOrder {
    /// As they arrive.
    #[default]
    Arrival,
    /// By event number, without gaps; needs a chain that rejects nothing.
    Event,
}

/// Format of events and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Event format 5.0 in file format 6.
    #[default]
    Atlas,
    /// Event format 3.0 in file format 2.
    Bes3,
    /// As the replayed file.
    Input,
}

/// When an event counts as recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When it is handed to the kernel: survives the death of the recorder.
    #[default]
    Write,
    /// When it is on the disk: survives the death of the machine.
    Fsync,
    /// When its file is closed.
    File,
}

/// Kind of checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    /// No checksum.
    #[default]
    None,
    /// Adler-32 (format note §8).
    Adler32,
}

/// Kind of event compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// zlib (format note §9).
    Zlib,
}

/// `[output]`: where files go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Output {
    /// Folder of the recorded files, relative to the working directory. A leading `~/` stands for the home folder. A run makes the
    /// folder if it does not exist.
    pub directory: String,
}

impl Default for Output {
    fn default() -> Self {
        Self { directory: "out".to_owned() }
    }
}
