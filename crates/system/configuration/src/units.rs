//! Values with a unit: sizes, intervals, rates, fractions. All are exact integers inside, so that text → value → text
//! loses nothing.

use core::fmt;
use core::str::FromStr;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};

use crate::problem::did_you_mean;

/// An amount of memory or data in bytes, written `"9 kB"` (9000 bytes) or `"4 KiB"` (4096 bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size {
    bytes: u64,
}

/// A span of time in nanoseconds, at most about 292 years, so that adding one to a time cannot overflow; written `"250 ms"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    ns: u64,
}

/// A frequency with a resolution of 1 mHz, written `"75 kHz"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    millihertz: u64,
}

/// A part of a whole from 0 to 1 with a resolution of 10⁻⁹, written `0.05` or `"5 %"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fraction {
    parts_per_billion: u32,
}

/// A transverse energy or momentum in MeV, written `"25 GeV"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Energy {
    mev: u64,
}

impl Energy {
    /// From a number of MeV.
    pub const fn from_mev(mev: u64) -> Self {
        Self { mev }
    }

    /// The number of MeV.
    pub const fn mev(self) -> u64 {
        self.mev
    }
}

impl Size {
    /// From a number of bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self { bytes }
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }
}

impl Interval {
    /// The longest interval.
    pub const MAX: Self = Self { ns: i64::MAX.cast_unsigned() };

    /// From a number of nanoseconds; longer than [`Interval::MAX`] becomes that.
    pub const fn from_ns(ns: u64) -> Self {
        if ns > Self::MAX.ns { Self::MAX } else { Self { ns } }
    }

    /// From a number of milliseconds; longer than [`Interval::MAX`] becomes that.
    pub const fn from_ms(ms: u64) -> Self {
        Self::from_ns(ms.saturating_mul(1_000_000))
    }

    /// The number of nanoseconds.
    pub const fn ns(self) -> u64 {
        self.ns
    }

    /// The same as the standard library's type.
    pub const fn duration(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.ns)
    }
}

impl Rate {
    /// From a number of millihertz.
    pub const fn from_millihertz(millihertz: u64) -> Self {
        Self { millihertz }
    }

    /// The rate in Hz.
    pub fn hertz(self) -> f64 {
        self.millihertz as f64 / 1e3
    }

    /// The rate in mHz.
    pub const fn millihertz(self) -> u64 {
        self.millihertz
    }

    /// The mean time between two events in nanoseconds, rounded down; `None` for a rate of 0.
    pub const fn period_ns(self) -> Option<u64> {
        1_000_000_000_000_u64.checked_div(self.millihertz)
    }
}

impl Fraction {
    /// Everything.
    pub const ONE: Self = Self { parts_per_billion: BILLION };

    /// From a number of percent; more than 100 becomes 100.
    pub const fn from_percent(percent: u32) -> Self {
        if percent >= 100 {
            return Self::ONE;
        }
        Self { parts_per_billion: percent * (BILLION / 100) }
    }

    /// From a number, rounded to the resolution; `None` outside 0 to 1.
    pub fn from_f64(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then(|| Self { parts_per_billion: (value * f64::from(BILLION)).round() as u32 })
    }

    /// The fraction as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.parts_per_billion) / f64::from(BILLION)
    }

    /// The fraction in units of 10⁻⁹.
    pub const fn parts_per_billion(self) -> u32 {
        self.parts_per_billion
    }

    /// The fraction of a whole number, rounded down.
    pub const fn of(self, whole: u64) -> u64 {
        (whole as u128 * self.parts_per_billion as u128 / BILLION as u128) as u64
    }
}

const BILLION: u32 = 1_000_000_000;

/// How a quantity is written: its units with their factors, largest first; an alias stands behind the name printed.
struct Notation {
    what: &'static str,
    example: &'static str,
    base: &'static str,
    /// The unit of zero.
    natural: &'static str,
    units: &'static [(&'static str, u64)],
    max: u64,
}

const SIZE: Notation = Notation {
    what: "size",
    example: "9 kB",
    base: "B",
    natural: "B",
    units: &[
        ("TB", 1_000_000_000_000),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1000),
        ("B", 1),
    ],
    max: u64::MAX,
};

const INTERVAL: Notation = Notation {
    what: "time",
    example: "250 ms",
    base: "ns",
    natural: "s",
    units: &[
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("\u{b5}s", 1000),
        ("\u{3bc}s", 1000),
        ("ns", 1),
    ],
    max: Interval::MAX.ns,
};

const RATE: Notation = Notation {
    what: "rate",
    example: "75 kHz",
    base: "mHz",
    natural: "Hz",
    units: &[("MHz", 1_000_000_000), ("kHz", 1_000_000), ("Hz", 1000), ("mHz", 1)],
    max: u64::MAX,
};

const ENERGY: Notation = Notation {
    what: "energy",
    example: "25 GeV",
    base: "MeV",
    natural: "GeV",
    units: &[("TeV", 1_000_000), ("GeV", 1000), ("MeV", 1)],
    // Selections compute in signed 32-bit MeV.
    max: i32::MAX as u64,
};

const PERCENT: Notation = Notation {
    what: "fraction",
    example: "5 %",
    base: "10\u{207b}\u{2079}",
    natural: "%",
    units: &[("%", 10_000_000)],
    max: BILLION as u64,
};

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

impl Notation {
    fn expected(&self) -> String {
        format!("{} {} such as {:?}", article(self.what), self.what, self.example)
    }

    fn names(&self) -> Vec<&'static str> {
        self.units.iter().map(|unit| unit.0).collect()
    }

    /// The value of `text`, or a whole sentence on what is wrong.
    fn parse(&self, text: &str) -> Result<u64, String> {
        self.number(text).map_err(|reason| format!("expected {}, found {text:?}: {reason}", self.expected()))
    }

    fn number(&self, text: &str) -> Result<u64, String> {
        let text = text.trim();
        if text.starts_with('-') {
            return Err("it is negative".to_owned());
        }
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = (&text[..end], text[end..].trim_start());
        if number.is_empty() {
            return Err("the number is missing".to_owned());
        }
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        if whole.is_empty() || decimals.is_empty() || decimals.contains('.') {
            return Err(format!("`{number}` is not a number"));
        }
        if unit.is_empty() {
            return Err(format!("the unit is missing ({})", self.names().join(", ")));
        }
        let Some(&(_, factor)) = self.units.iter().find(|known| known.0 == unit) else {
            let names = self.names();
            return Err(format!(
                "`{unit}` is not a unit of {} {} ({}){}",
                article(self.what),
                self.what,
                names.join(", "),
                did_you_mean(unit, &names)
            ));
        };
        self.scaled(whole, decimals.trim_end_matches('0'), factor)
    }

    fn scaled(&self, whole: &str, decimals: &str, factor: u64) -> Result<u64, String> {
        let too_large = || format!("it is too large, at most {}", self.written(self.max));
        let too_fine = || format!("it is not a whole number of {}", self.base);
        let whole: u64 = whole.parse().map_err(|_| too_large())?;
        let tenths = 10_u64.checked_pow(decimals.len() as u32).ok_or_else(too_fine)?;
        let decimals: u64 = if decimals.is_empty() { 0 } else { decimals.parse().map_err(|_| too_fine())? };
        let part = u128::from(decimals) * u128::from(factor);
        if !part.is_multiple_of(u128::from(tenths)) {
            return Err(too_fine());
        }
        let total = u128::from(whole) * u128::from(factor) + part / u128::from(tenths);
        u64::try_from(total).ok().filter(|&value| value <= self.max).ok_or_else(too_large)
    }

    /// The value in the largest unit in which it is a whole number.
    fn written(&self, value: u64) -> String {
        if value == 0 {
            return format!("0 {}", self.natural);
        }
        self.units
            .iter()
            .find(|unit| value.is_multiple_of(unit.1))
            .map(|&(unit, factor)| format!("{} {unit}", value / factor))
            .expect("the last unit is the base unit of factor 1")
    }

    fn pattern(&self) -> String {
        format!(r"^\s*[0-9]+(\.[0-9]+)?\s*({})\s*$", self.names().join("|"))
    }
}

/// The traits of a quantity that is written as a string with a unit.
macro_rules! quantity {
    ($type:ident, $field:ident, $notation:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$notation.written(self.$field))
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                $notation.parse(text).map(|$field| Self { $field })
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;

                impl Visitor<'_> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(&$notation.expected())
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }

                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "description": format!("{} {} with its unit: {}.", if article($notation.what) == "an" { "An" } else { "A" }, $notation.what, $notation.names().join(", ")),
                    "pattern": $notation.pattern(),
                    "examples": [$notation.example],
                })
            }
        }
    };
}

quantity!(Size, bytes, SIZE);
quantity!(Interval, ns, INTERVAL);
quantity!(Rate, millihertz, RATE);
quantity!(Energy, mev, ENERGY);

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_percent = BILLION / 100;
        let (whole, rest) = (self.parts_per_billion / per_percent, self.parts_per_billion % per_percent);
        if rest == 0 {
            return f.pad(&format!("{whole} %"));
        }
        let decimals = format!("{rest:07}");
        f.pad(&format!("{whole}.{} %", decimals.trim_end_matches('0')))
    }
}

impl FromStr for Fraction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        PERCENT
            .parse(text)
            .map(|parts| Self { parts_per_billion: u32::try_from(parts).expect("a fraction is at most 10⁹ parts") })
    }
}

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FractionVisitor)
    }
}

struct FractionVisitor;

impl Visitor<'_> for FractionVisitor {
    type Value = Fraction;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fraction from 0 to 1, or such as \"5 %\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Fraction, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Fraction, E> {
        Fraction::from_f64(value).ok_or_else(|| E::invalid_value(de::Unexpected::Float(value), &self))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Fraction, E> {
        match value {
            0 => Ok(Fraction::default()),
            1 => Ok(Fraction::ONE),
            _ => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
        }
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Fraction, E> {
        self.visit_i64(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl JsonSchema for Fraction {
    fn schema_name() -> Cow<'static, str> {
        "Fraction".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A part of a whole: a number from 0 to 1, or a percentage.",
            "oneOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": PERCENT.pattern() },
            ],
            "examples": [0.05, PERCENT.example],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    #[test]
    fn decimal_and_binary_units() {
        let bytes = |text: &str| text.parse::<Size>().unwrap().bytes();
        assert_eq!(bytes("9 kB"), 9000);
        assert_eq!(bytes("4 KiB"), 4096);
        assert_eq!(bytes("1.5MB"), 1_500_000);
        assert_eq!("5 us".parse::<Interval>(), "5 \u{b5}s".parse());
        assert_eq!("2 min".parse::<Interval>().unwrap().ns(), 120_000_000_000);
        assert_eq!("75 kHz".parse::<Rate>().unwrap().hertz(), 75_000.0);
        assert_eq!("75 kHz".parse::<Rate>().unwrap().period_ns(), Some(13_333));
        assert_eq!(Rate::default().period_ns(), None);
        assert_eq!("12.5 %".parse::<Fraction>().unwrap().of(1000), 125);
    }

    #[test]
    fn what_is_wrong_with_a_quantity_is_said() {
        let wrong = |text: &str| text.parse::<Size>().unwrap_err();
        let units = "(TB, GiB, GB, MiB, MB, KiB, kB, B)";
        let head = |text: &str| format!("expected a size such as \"9 kB\", found {text:?}: ");
        assert_eq!(wrong("9 s"), head("9 s") + "`s` is not a unit of a size " + units);
        assert_eq!(wrong("9 kb"), head("9 kb") + "`kb` is not a unit of a size " + units + "; did you mean `kB`?");
        assert_eq!(wrong("9"), head("9") + "the unit is missing " + units);
        assert_eq!(wrong("kB"), head("kB") + "the number is missing");
        assert_eq!(wrong(""), head("") + "the number is missing");
        assert_eq!(wrong("-9 kB"), head("-9 kB") + "it is negative");
        assert_eq!(wrong("1.2.3 kB"), head("1.2.3 kB") + "`1.2.3` is not a number");
        assert_eq!(wrong("1.5 B"), head("1.5 B") + "it is not a whole number of B");
        assert_eq!(wrong("99999999999 GB"), head("99999999999 GB") + "it is too large, at most 18446744073709551615 B");
        assert_eq!(
            "101 %".parse::<Fraction>().unwrap_err(),
            "expected a fraction such as \"5 %\", found \"101 %\": it is too large, at most 100 %"
        );
    }

    proptest! {
        #[test]
        fn a_size_reads_back(bytes in any::<u64>(), shift in 0_u32..40, round in 0_u32..10) {
            let size = Size::from_bytes((bytes >> shift) / 10_u64.pow(round) * 10_u64.pow(round));
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn an_interval_reads_back(ns in any::<u64>(), round in 0_u32..12) {
            let interval = Interval::from_ns(ns / 10_u64.pow(round) * 10_u64.pow(round));
            prop_assert_eq!(interval.to_string().parse(), Ok(interval));
        }

        #[test]
        fn a_rate_reads_back(millihertz in any::<u64>(), round in 0_u32..12) {
            let rate = Rate::from_millihertz(millihertz / 10_u64.pow(round) * 10_u64.pow(round));
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn a_fraction_reads_back(parts_per_billion in 0_u32..=BILLION, round in 0_u32..9) {
            let fraction = Fraction {
                parts_per_billion: parts_per_billion / 10_u32.pow(round) * 10_u32.pow(round),
            };
            prop_assert_eq!(fraction.to_string().parse(), Ok(fraction));
            prop_assert_eq!(Fraction::from_f64(fraction.as_f64()), Some(fraction));
        }

        #[test]
        fn any_text_is_answered(text in any::<String>(), digits in "[0-9.]{0,40} ?(kB|ms|Hz|%)?") {
            for text in [text, digits] {
                let _ = (text.parse::<Size>(), text.parse::<Interval>(), text.parse::<Rate>(), text.parse::<Fraction>());
            }
        }
    }
}
