//! `[[stream]]`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use eformat::{SourceId, SubDetector};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `[[stream]]`: one of the streams that accepted events are recorded in. An event has a copy in each stream that takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Stream {
    /// Kind of the stream; with its name it is in the names of its files.
    #[serde(rename = "type")]
    pub stream_type: StreamType,
    /// Its name, such as `Main`. Required.
    pub name: String,
    /// It takes events that one of these chains of `[menu]` accepted. If empty, it takes every accepted event that was
    /// not asked to go to a stream by name.
    pub chains: Vec<String>,
    /// It takes only events that the algorithm of the event filter sends to it by name.
    pub by_name: bool,
    /// Of the events that it would take it takes one in so many; an event that no stream takes is rejected.
    #[schemars(range(min = 1))]
    pub prescale: u32,
    /// Only these ROBs of an event are recorded, and the results of level 2 and of the event filter; without the key, all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub robs: Vec<RobSelection>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            stream_type: StreamType::Physics,
            name: String::new(),
            chains: Vec::new(),
            by_name: false,
            prescale: 1,
            robs: Vec::new(),
        }
    }
}

/// Type of a stream (format note §10). Streams of the type `debug` are made by the recorder itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StreamType {
    /// Events for physics.
    #[default]
    Physics,
    /// Events that are looked at first.
    Express,
    /// Events, or parts of them, for calibration.
    Calibration,
    /// Events to check the detector with.
    Monitoring,
    /// Set aside.
    Reserved,
    /// None of these.
    Unknown,
}

impl StreamType {
    /// The type as it is in tags and names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Physics => "physics",
            Self::Express => "express",
            Self::Calibration => "calibration",
            Self::Monitoring => "monitoring",
            Self::Reserved => "reserved",
            Self::Unknown => "unknown",
        }
    }
}

/// Some ROBs of an event: those of a sub-detector, or those in a range of source identifiers (format note §6).
///
/// ```
/// use configuration::RobSelection;
/// let selection: RobSelection = "TILECAL_BARREL_A_SIDE".parse()?;
/// assert!(selection.contains(0x0051_0007));
/// let selection: RobSelection = "0x00510000-0x0051000f".parse()?;
/// assert!(selection.contains(0x0051_0007) && !selection.contains(0x0051_0010));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RobSelection {
    /// All ROBs of a sub-detector.
    SubDetector(SubDetector),
    /// All ROBs from `first` to `last`.
    Sources {
        /// The first source identifier.
        first: u32,
        /// The last one.
        last: u32,
    },
}

impl RobSelection {
    /// Whether the ROB with this source identifier is one of them.
    pub fn contains(&self, source_id: u32) -> bool {
        match *self {
            Self::SubDetector(sub_detector) => SourceId(source_id).sub_detector() == sub_detector,
            Self::Sources { first, last } => (first..=last).contains(&source_id),
        }
    }

    /// A number of at most two digits is a sub-detector: no source identifier is as low.
    fn from_number(number: u32) -> Self {
        match u8::try_from(number) {
            Ok(sub_detector) => Self::SubDetector(SubDetector(sub_detector)),
            Err(_) => Self::Sources { first: number, last: number },
        }
    }
}

impl fmt::Display for RobSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SubDetector(sub_detector) => match sub_detector.name() {
                Some(name) => f.write_str(name),
                None => write!(f, "{:#04x}", sub_detector.0),
            },
            Self::Sources { first, last } if first == last => write!(f, "{first:#010x}"),
            Self::Sources { first, last } => write!(f, "{first:#010x}-{last:#010x}"),
        }
    }
}

impl FromStr for RobSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected {EXPECTED}, found {text:?}");
        let number = |text: &str| u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
        if let Some((first, last)) = text.split_once('-') {
            let (first, last) = (number(first).ok_or_else(wrong)?, number(last).ok_or_else(wrong)?);
            return if first <= last { Ok(Self::Sources { first, last }) } else { Err(wrong()) };
        }
        match number(text) {
            Some(number) => Ok(Self::from_number(number)),
            None => SubDetector::from_name(text).map(Self::SubDetector).ok_or_else(wrong),
        }
    }
}

impl Serialize for RobSelection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RobSelection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RobVisitor)
    }
}

struct RobVisitor;

impl Visitor<'_> for RobVisitor {
    type Value = RobSelection;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RobSelection, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<RobSelection, E> {
        let number = u32::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))?;
        Ok(RobSelection::from_number(number))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<RobSelection, E> {
        self.visit_i64(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl JsonSchema for RobSelection {
    fn schema_name() -> Cow<'static, str> {
        "RobSelection".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "ROBs: a sub-detector by name or number (0x51), a source identifier (0x00510003), or a range of \
                            them (\"0x00510000-0x0051000f\").",
            "oneOf": [
                { "type": "integer", "minimum": 0, "maximum": u32::MAX },
                { "type": "string" },
            ],
            "examples": ["TILECAL_BARREL_A_SIDE", "0x00510000-0x0051000f"],
        })
    }
}

const EXPECTED: &str = "a sub-detector such as \"TILECAL_BARREL_A_SIDE\" or 0x51, a source identifier such as \
                        \"0x00510003\", or a range of them such as \"0x00510000-0x0051000f\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_read_back() {
        for text in ["TILECAL_BARREL_A_SIDE", "0x99", "0x00510003", "0x00510000-0x0051000f"] {
            assert_eq!(text.parse::<RobSelection>().unwrap().to_string(), text);
        }
        assert_eq!("0x51".parse(), Ok(RobSelection::SubDetector(SubDetector::TILECAL_BARREL_A_SIDE)));
    }

    #[test]
    fn what_is_none_is_said() {
        for text in ["", "tile", "0x", "51", "0x510003-", "0x00510003-0x00510002", "0x123456789"] {
            assert_eq!(text.parse::<RobSelection>(), Err(format!("expected {EXPECTED}, found {text:?}")));
        }
    }
}
