//! `[[source]]`.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FRAGMENT_OVERHEAD_BYTES, FrameDescription};
use crate::units::Size;

/// `[[source]]`: a program that sends fragments by itself, for `ros.input = "links"`. Sources are shared out over the read-out
/// systems in their order, one ROB for each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { name = \"tlu\", at = \"shm:tlu\" }")]
pub struct LinkSource {
    /// Its name in messages and tables; the program says the same of itself. Required.
    pub name: String,
    /// Source identifier of its ROB, such as 0x00510000; by default that number and its place in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
    /// Where its read-out system waits for it: `shm:NAME`, a socket in the folder of the partition below `$XDG_RUNTIME_DIR/weir` or
    /// `/tmp/weir-UID`; `shm:/PATH`; `tcp://ADDRESS:PORT`, which needs `partition.key`; `udp://ADDRESS:PORT`, to which a board sends
    /// datagrams; `slink://ADDRESS:PORT`, to which an S-LINK connects; or `file:/PATH`: a file of frames, a named pipe, or a directory in which such files appear. By default `shm:` and its name.
    pub at: String,
    /// The longest payload of a fragment.
    pub size_max: Size,
    /// What becomes of an event without its fragment.
    pub on_missing: OnMissing,
    /// Bits of its numbers, if they begin again after fewer than 64: a EUDET TLU counts with 15. They are made whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_bits: Option<u32>,
    /// What its times are good for.
    pub clock: SourceClock,
    /// Most chunks of it in an event; what is beyond is cut off, and the event marked. For data that belong to events by their time.
    pub chunks: u32,
    /// What a device sends that knows nothing of Weir; needed with `udp://`, `slink://` and `file:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameDescription>,
    /// The host that a board sends from; by default the first one whose datagrams come in a run. Those of others are dropped. Of an
    /// S-LINK the host that may connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
}

impl Default for LinkSource {
    fn default() -> Self {
        Self {
            name: String::new(),
            id: None,
            at: String::new(),
            size_max: Size::from_bytes(64 << 10),
            on_missing: OnMissing::Flag,
            number_bits: None,
            clock: SourceClock::None,
            chunks: 16,
            frame: None,
            from: None,
        }
    }
}

impl LinkSource {
    /// The longest fragment of an event, with what stands around it.
    pub fn fragment_max(&self, timed: bool) -> Size {
        let chunk = self.size_max.bytes().saturating_add(CHUNK_OVERHEAD_BYTES);
        let data = if timed { chunk.saturating_mul(self.chunks.into()) } else { self.size_max.bytes() };
        Size::from_bytes(data.saturating_add(FRAGMENT_OVERHEAD_BYTES))
    }

    /// Where its read-out system waits for it.
    pub fn address(&self) -> String {
        if self.at.is_empty() { format!("shm:{}", self.name) } else { self.at.clone() }
    }

    /// Source identifier of its ROB, where it is in this place of the list.
    pub fn source_id(&self, place: usize) -> u32 {
        self.id.unwrap_or(FIRST_ID.saturating_add(u32::try_from(place).unwrap_or(u32::MAX)))
    }
}

/// What becomes of an event without the fragment of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnMissing {
    /// It is built, marked incomplete, and counted as such.
    #[default]
    Flag,
    /// It is built as if complete; only the source counts it.
    Tolerate,
}

/// What the times of a source are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceClock {
    /// Nothing.
    #[default]
    None,
    /// They are those of the triggers, by a clock of its own. Its read-out system compares them with those of the leader, or of the first
    /// such source: it finds offset and drift of the clock, and where the source loses or repeats a trigger.
    Model,
}

/// Its head, and what fills it up to whole words.
const CHUNK_OVERHEAD_BYTES: u64 = 27;

/// Test beam.
const FIRST_ID: u32 = 0x0051_0000;
