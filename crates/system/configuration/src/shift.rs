//! A difference of times: an interval with a sign.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use serde::{Serialize, Serializer};

use crate::units::Interval;

/// How much later something is, or earlier where it is negative; written `"3 us"` or `"-3 us"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shift {
    ns: i64,
}

impl Shift {
    /// From a number of nanoseconds.
    pub const fn from_ns(ns: i64) -> Self {
        Self { ns }
    }

    /// The number of nanoseconds.
    pub const fn ns(self) -> i64 {
        self.ns
    }
}

impl fmt::Display for Shift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.ns < 0 { "-" } else { "" };
        write!(f, "{sign}{}", Interval::from_ns(self.ns.unsigned_abs()))
    }
}

impl FromStr for Shift {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (factor, length) = text.trim_start().strip_prefix('-').map_or((1, text), |length| (-1, length));
        let length: Interval = length.parse()?;
        Ok(Self { ns: factor * length.ns().cast_signed() })
    }
}

impl Serialize for Shift {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Shift {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Shift {
    fn schema_name() -> Cow<'static, str> {
        "Shift".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let units = Interval::json_schema(generator);
        let pattern = units.get("pattern").and_then(|pattern| pattern.as_str()).unwrap_or_default();
        json_schema!({
            "type": "string",
            "description": "A time with its unit, later, or with a minus earlier: h, min, s, ms, us, ns.",
            "pattern": pattern.replacen('^', r"^\s*-?", 1),
            "examples": ["-3 us"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Shift;

    #[test]
    fn a_shift_reads_back_and_what_is_none_is_said() {
        for ns in [0, 1, -1, 3_000, -250_000_000, i64::MAX, -i64::MAX] {
            let shift = Shift::from_ns(ns);
            assert_eq!(shift.to_string().parse(), Ok(shift));
        }
        assert_eq!("- 3 us".parse::<Shift>().map(Shift::ns), Ok(-3_000));
        assert!("--3 us".parse::<Shift>().is_err() && "-3".parse::<Shift>().is_err());
    }
}
