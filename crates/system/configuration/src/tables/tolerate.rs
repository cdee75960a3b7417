//! `[run] tolerate`: losses with which a run is still well.

use core::fmt;
use std::borrow::Cow;

use control::losses::{Cause, Loss};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::units::Fraction;

/// How many events of each cause a run may lose, or take with less than all data, and still end as `ok`. With more it
/// ends as `degraded`, exit status 4. A number of events, or a part such as `"1 %"`. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table of causes, such as { built_incomplete = 10 }")]
pub struct Tolerate {
    /// Level-1 events that died before level 2 had decided.
    pub level2_lost: Tolerance,
    /// Level-1 events accepted by a level-2 time-out.
    pub level2_forced: Tolerance,
    /// Level-1 events that level 2 accepted without all the data that it had asked for: it rejects none of these.
    pub level2_incomplete: Tolerance,
    /// Accepted events that were not built.
    pub not_built: Tolerance,
    /// Events built with data missing.
    pub built_incomplete: Tolerance,
    /// Built events that died before the event filter had decided.
    pub lost_after_build: Tolerance,
    /// Built events in the debug stream, because the event filter failed on them.
    pub filter_debug: Tolerance,
    /// Events that the event filter accepted and that were not recorded.
    pub lost_in_recording: Tolerance,
}

/// How many events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tolerance {
    /// So many.
    Events(u64),
    /// This part of those that came so far.
    Part(Fraction),
}

impl Tolerate {
    /// Whether a run with this loss may still be well.
    pub fn allows(&self, loss: &Loss) -> bool {
        let tolerance = match loss.cause {
            Cause::Level2Lost => self.level2_lost,
            Cause::Level2Forced => self.level2_forced,
            Cause::Level2Incomplete => self.level2_incomplete,
            Cause::NotBuilt => self.not_built,
            Cause::BuiltIncomplete => self.built_incomplete,
            Cause::LostAfterBuild => self.lost_after_build,
            Cause::FilterDebug => self.filter_debug,
            Cause::LostInRecording => self.lost_in_recording,
        };
        let most = match tolerance {
            Tolerance::Events(events) => events,
            Tolerance::Part(part) => part.of(loss.of),
        };
        loss.events <= most
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::Events(0)
    }
}

impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Events(events) => serializer.serialize_u64(*events),
            Self::Part(part) => part.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ToleranceVisitor)
    }
}

struct ToleranceVisitor;

impl Visitor<'_> for ToleranceVisitor {
    type Value = Tolerance;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of events such as 10, or a part such as \"1 %\"")
    }

    fn visit_u64<E: de::Error>(self, events: u64) -> Result<Tolerance, E> {
        Ok(Tolerance::Events(events))
    }

    fn visit_i64<E: de::Error>(self, events: i64) -> Result<Tolerance, E> {
        let events = u64::try_from(events).map_err(|_| E::invalid_value(de::Unexpected::Signed(events), &self))?;
        self.visit_u64(events)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Tolerance, E> {
        let part = text.parse().map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))?;
        Ok(Tolerance::Part(part))
    }
}

impl JsonSchema for Tolerance {
    fn schema_name() -> Cow<'static, str> {
        "Tolerance".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut part = Fraction::json_schema(generator).to_value();
        let part = part["oneOf"][1].take();
        json_schema!({
            "description": "A number of events, or a part of those that came so far.",
            "oneOf": [{ "type": "integer", "minimum": 0 }, part],
            "examples": [10, "1 %"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_of_the_events_that_came_so_far() {
        let tolerate: Tolerate = toml::from_str("built_incomplete = 10\nfilter_debug = \"1 %\"").unwrap();
        let allows = |cause, events, of| tolerate.allows(&Loss { cause, events, of });
        assert!(allows(Cause::BuiltIncomplete, 10, 11) && !allows(Cause::BuiltIncomplete, 11, 5000));
        assert!(allows(Cause::FilterDebug, 2, 200) && !allows(Cause::FilterDebug, 2, 199));
        for cause in Cause::ALL.into_iter().filter(|cause| !["built_incomplete", "filter_debug"].contains(&cause.key()))
        {
            assert!(!allows(cause, 1, 1_000_000), "{cause:?}");
        }
    }

    #[test]
    fn the_keys_are_the_causes() {
        let written: toml::Table = toml::from_str(&toml::to_string(&Tolerate::default()).unwrap()).unwrap();
        let mut causes = Cause::ALL.map(Cause::key);
        causes.sort_unstable();
        assert!(written.keys().map(String::as_str).eq(causes), "{written:?}");
    }
}
