//! `[[source]]`.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EmulatedSource, FRAGMENT_OVERHEAD_BYTES, FrameDescription, RosInput};
use crate::shift::Shift;
use crate::units::{Interval, Size};

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
    /// Where its read-out system waits for it. `shm:NAME` is a socket in the folder of the partition below `$XDG_RUNTIME_DIR/weir` or `/tmp/weir-UID`,
    /// `shm:/PATH` any other. `tcp://ADDRESS:PORT` needs `partition.key`. A board sends datagrams to `udp://ADDRESS:PORT`; an S-LINK connects to
    /// `slink://ADDRESS:PORT`. `file:/PATH` is a file of frames, a named pipe, or a directory in which such files appear. By default `shm:` and its name.
    pub at: String,
    /// The longest payload of a fragment.
    pub size_max: Size,
    /// What becomes of an event without its fragment.
    pub on_missing: OnMissing,
    /// Whether its fragments come in the order of their numbers. If not, one that is passed over may still come: its event waits for it up to
    /// `ros.request_timeout`, or until an idle mark passes it. For `number`.
    pub ordered: bool,
    /// Bits of its numbers, if they begin again after fewer than 64: a EUDET TLU counts with 15. They are made whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number_bits: Option<u32>,
    /// How a trigger logic unit gives it its triggers, and what it says of them because of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake: Option<Handshake>,
    /// What its times are good for.
    pub clock: SourceClock,
    /// How it is known which event a fragment belongs to; by default `number`, and `time` with `level1.source = "time"`.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Matching>,
    /// An event takes what the source has so long before it, too; by default nothing, or `level1.before`; for `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Interval>,
    /// Likewise behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Interval>,
    /// Added to its times, such as `"-3 us"`; for `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<Shift>,
    /// Whether an event takes all that touches what it takes in time, or only what lies in that as a whole; for `time`.
    pub inclusive: bool,
    /// The number that the source gives to the first trigger of the run, by default 0; for `count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_count: Option<i64>,
    /// Most chunks of it in an event; what is beyond is cut off, and the event marked. For data that belong to events by their time.
    pub chunks: u32,
    /// What a device sends that knows nothing of Weir; needed with `udp://`, `slink://` and `file:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameDescription>,
    /// The host that a board sends from; by default the first one whose datagrams come in a run. Those of others are dropped. Of an
    /// S-LINK the host that may connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// The partition is the source itself, and sends this over the link. With `none`, the default, a program or a device is awaited.
    #[serde(skip_serializing_if = "Play::is_none")]
    pub play: Play,
    /// What is sent in its place where it is emulated.
    #[serde(skip_serializing_if = "EmulatedSource::is_default")]
    pub emulated: EmulatedSource,
}

impl Default for LinkSource {
    fn default() -> Self {
        Self {
            name: String::new(),
            id: None,
            at: String::new(),
            size_max: Size::from_bytes(64 << 10),
            on_missing: OnMissing::Flag,
            ordered: true,
            number_bits: None,
            handshake: None,
            clock: SourceClock::None,
            matching: None,
            before: None,
            after: None,
            offset: None,
            inclusive: true,
            first_count: None,
            chunks: 16,
            frame: None,
            from: None,
            play: Play::None,
            emulated: EmulatedSource::default(),
        }
    }
}

impl LinkSource {
    /// The longest fragment of an event, with what stands around it.
    pub fn fragment_max(&self, matching: Matching) -> Size {
        let chunk = self.size_max.bytes().saturating_add(CHUNK_OVERHEAD_BYTES);
        let data = match matching {
            Matching::Number => self.size_max.bytes(),
            Matching::Time => chunk.saturating_mul(self.chunks.into()),
            Matching::Count => chunk,
        };
        Size::from_bytes(data.saturating_add(FRAGMENT_OVERHEAD_BYTES))
    }

    /// Where its read-out system waits for it.
    pub fn address(&self) -> String {
        if self.at.is_empty() { format!("shm:{}", self.name) } else { self.at.clone() }
    }

    /// Whether an S-LINK connects there.
    pub fn is_slink(&self) -> bool {
        self.address().starts_with("slink:")
    }

    /// Whether a program connects there, and no device sends.
    pub fn is_program(&self) -> bool {
        let at = self.address();
        at.starts_with("shm:") || at.starts_with("tcp:")
    }

    /// What the partition sends in its place, if it plays the source.
    pub fn played(&self) -> Option<Play> {
        Some(self.play).filter(|play| !play.is_none())
    }

    /// Bits of its numbers, if they begin again after fewer than 64.
    pub fn bits_of_numbers(&self) -> Option<u32> {
        self.number_bits.or((self.handshake == Some(Handshake::Eudet)).then_some(EUDET_BITS))
    }

    /// Source identifier of its ROB, where it is in this place of the list.
    pub fn source_id(&self, place: usize) -> u32 {
        self.id.unwrap_or(FIRST_ID.saturating_add(u32::try_from(place).unwrap_or(u32::MAX)))
    }
}

/// What a partition sends in the place of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Play {
    /// Nothing: its program or its device is awaited.
    #[default]
    None,
    /// Data that are made up, as `source.emulated` says.
    Emulator,
    /// What the ROB has in the sample of `input.files`.
    Sample,
    /// What the ROB has in the recorded files of `input.files`.
    Replay,
}

impl Play {
    fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// Its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Emulator => "emulator",
            Self::Sample => "sample",
            Self::Replay => "replay",
        }
    }

    /// The input that it takes data from.
    pub const fn input(self) -> Option<RosInput> {
        match self {
            Self::None | Self::Emulator => None,
            Self::Sample => Some(RosInput::Sample),
            Self::Replay => Some(RosInput::Replay),
        }
    }
}

/// How a trigger logic unit (TLU) gives a source its triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Handshake {
    /// Trigger and busy, as a EUDET TLU: numbers of 15 bits, without gaps. A leader sends one trigger, and the next one when busy has
    /// fallen.
    Eudet,
    /// A common clock, as an AIDA TLU: times from T0 on, no numbers. What comes before the mark of T0 is not of the run.
    Aida,
    /// The same, and numbers without gaps.
    AidaNumber,
}

/// What becomes of an event without the fragment of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnMissing {
    /// It is built, marked incomplete, and counted as such.
    #[default]
    Flag,
    /// It waits for the fragment as long as the source is there; then as `flag`. So one source that is slow holds up the run.
    Wait,
    /// It is built, counted as incomplete, and not recorded.
    Drop,
    /// It is built, counted as incomplete, and recorded in the debug stream `debug_Incomplete` alone, undecided.
    DebugStream,
    /// It is built as if complete; only the source counts it.
    Tolerate,
}

/// How it is known which event a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// It says the number of the event.
    Number,
    /// It says its time, and belongs to all events whose times it meets.
    Time,
    /// It says how many triggers there were before, by the count of the source.
    Count,
}

/// What the times of a source are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SourceClock {
    /// Nothing.
    #[default]
    None,
    /// They are those of the triggers, by a clock of its own, whose offset and drift are found. Clocks are compared with the triggers, if the
    /// leader has this key, too, else with the first such source of the same read-out system. Where the source says numbers or counts, it is found
    /// where it loses or repeats a trigger. Where it is matched by `time`, events follow its clock; without `offset` it is looked for.
    Model,
}

/// Its head, and what fills it up to whole words.
const CHUNK_OVERHEAD_BYTES: u64 = 27;

/// A EUDET TLU clocks the lower bits of its counter out.
const EUDET_BITS: u32 = 15;

/// Test beam.
const FIRST_ID: u32 = 0x0051_0000;
