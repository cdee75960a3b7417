//! `[level1.dead_time]`, `[[level1.profile]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Interval, Rate};

/// `[level1.dead_time]`: triggers come in bunch crossings of 25 ns, at most one in each, and level 1 vetoes those that come
/// too close to others. Without this table triggers come at any time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct DeadTime {
    /// Simple dead time: crossings after each trigger without another.
    pub simple: u32,
    /// Complex dead time: models of front-end buffers, each of which must have room for the trigger.
    pub complex: Vec<LeakyBucket>,
}

/// A model of a front-end buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { size = 8, drain = 3500 }")]
pub struct LeakyBucket {
    /// Triggers that it holds.
    pub size: u32,
    /// Crossings in which one of them leaves it.
    pub drain: u32,
}

/// `[[level1.profile]]`: from some time of the run on, another rate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { from = \"5 s\", rate = \"1 kHz\" }")]
pub struct ProfileStep {
    /// Time since the start of the run; later than that of the step before.
    pub from: Interval,
    /// The rate from then on; spaced as `level1.spacing` says. Required.
    pub rate: Rate,
}
