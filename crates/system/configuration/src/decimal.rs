//! Plain numbers with a fixed resolution.

use core::fmt;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

/// A number with a resolution of 10⁻⁶, from -1000 to 1000, such as an angle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal {
    millionths: i64,
}

impl Decimal {
    /// From a number of millionths.
    pub const fn from_millionths(millionths: i64) -> Self {
        Self { millionths }
    }

    /// From a number, rounded to the resolution; `None` outside -1000 to 1000.
    pub fn from_f64(value: f64) -> Option<Self> {
        (-MAX..=MAX).contains(&value).then(|| Self { millionths: (value * MILLION).round() as i64 })
    }

    /// The number.
    pub fn as_f64(self) -> f64 {
        self.millionths as f64 / MILLION
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_f64().fmt(f)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DecimalVisitor)
    }
}

struct DecimalVisitor;

impl Visitor<'_> for DecimalVisitor {
    type Value = Decimal;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from -1000 to 1000")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Decimal, E> {
        Decimal::from_f64(value).ok_or_else(|| E::invalid_value(de::Unexpected::Float(value), &self))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Decimal, E> {
        Decimal::from_f64(value as f64).ok_or_else(|| E::invalid_value(de::Unexpected::Signed(value), &self))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Decimal, E> {
        Decimal::from_f64(value as f64).ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
    }
}

impl JsonSchema for Decimal {
    fn schema_name() -> Cow<'static, str> {
        "Decimal".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number with a resolution of 10⁻⁶.",
            "type": "number",
            "minimum": -MAX,
            "maximum": MAX,
        })
    }
}

const MAX: f64 = 1000.0;
const MILLION: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0.0, -2.5, 1.25, 6.25, -1000.0, 0.000_001] {
            let decimal = Decimal::from_f64(value).unwrap();
            assert_eq!(Decimal::from_f64(decimal.as_f64()), Some(decimal));
            assert_eq!(decimal.to_string(), value.to_string());
        }
        for value in [f64::NAN, f64::INFINITY, 1000.1, -1e9] {
            assert_eq!(Decimal::from_f64(value), None);
        }
    }
}
