//! `[source.frame]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Interval, Rate, Size};

/// `[source.frame]`: what the frames of a device look like that knows nothing of Weir. A frame is a header and data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { header = 16, counter = { at = 0, width = 4 } }")]
pub struct FrameDescription {
    /// Length of the header in bytes.
    pub header: u32,
    /// Whether the header is left out of the payload.
    pub strip: bool,
    /// Which byte of a field comes first, where the field does not say it itself.
    pub order: ByteOrder,
    /// The field that counts frames; without one they are numbered as they come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<FrameCounter>,
    /// The time of a frame: the sum of these fields, the most significant one first.
    pub time: Vec<FrameTicks>,
    /// The length of each frame, header included, where all are equally long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The field that says how long a frame is. With neither this nor `size`, a frame is as long as its datagram or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<FrameLength>,
}

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ByteOrder {
    /// The most significant one, as in the headers of the Internet.
    #[default]
    Big,
    /// The least significant one.
    Little,
}

/// An unsigned number in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameField {
    /// Its first byte; 0 is the first one of the frame.
    pub at: u32,
    /// Its width in bytes, 1 to 8.
    pub width: u32,
    /// Which byte comes first; by default as `order` of the frame says.
    pub order: Option<ByteOrder>,
}

/// A field that is one higher in each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { at = 0, width = 4 }")]
pub struct FrameCounter {
    /// Its first byte; 0 is the first one of the frame.
    pub at: u32,
    /// Its width in bytes, 1 to 8; by default 4.
    pub width: u32,
    /// Which byte comes first; by default as `order` of the frame says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ByteOrder>,
    /// It begins again with 0 after so many frames; by default when the field is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modulus: Option<u64>,
}

/// A field that counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { at = 4, width = 8, unit = \"16 ns\" }")]
pub struct FrameTicks {
    /// Its first byte; 0 is the first one of the frame.
    pub at: u32,
    /// Its width in bytes, 1 to 8; by default 4.
    pub width: u32,
    /// Which byte comes first; by default as `order` of the frame says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ByteOrder>,
    /// What it counts; by default nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Interval>,
    /// Or the clock whose ticks it counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<Rate>,
}

/// A field that says how long a frame is: its value times `unit`, and `plus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { at = 2, width = 2, unit = 4, plus = 8 }")]
pub struct FrameLength {
    /// Its first byte; 0 is the first one of the frame.
    pub at: u32,
    /// Its width in bytes, 1 to 8; by default 4.
    pub width: u32,
    /// Which byte comes first; by default as `order` of the frame says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<ByteOrder>,
    /// Bytes that one of its counts stands for.
    pub unit: u32,
    /// Bytes of a frame that it does not count, such as those of the header.
    pub plus: u32,
}

impl FrameCounter {
    /// Where it is.
    pub const fn field(&self) -> FrameField {
        FrameField { at: self.at, width: self.width, order: self.order }
    }
}

impl FrameTicks {
    /// Where it is.
    pub const fn field(&self) -> FrameField {
        FrameField { at: self.at, width: self.width, order: self.order }
    }
}

impl FrameLength {
    /// Where it is.
    pub const fn field(&self) -> FrameField {
        FrameField { at: self.at, width: self.width, order: self.order }
    }
}

impl Default for FrameCounter {
    fn default() -> Self {
        Self { at: 0, width: WIDTH, order: None, modulus: None }
    }
}

impl Default for FrameTicks {
    fn default() -> Self {
        Self { at: 0, width: WIDTH, order: None, unit: None, clock: None }
    }
}

impl Default for FrameLength {
    fn default() -> Self {
        Self { at: 0, width: WIDTH, order: None, unit: 1, plus: 0 }
    }
}

/// Of most fields.
const WIDTH: u32 = 4;
