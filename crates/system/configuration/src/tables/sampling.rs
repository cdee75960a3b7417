//! `[sampling]`: which events are shown to those who watch a run.

use base::ids::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Size;

/// `[sampling]`: which events are shown to those who watch a run that `weir serve` conducts. Samples never hold up data: what is not
/// taken is counted, as `samples_lost`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Sampling {
    /// Who shows events: `"sfi"`, as they are built, and `"efd"`, those that are to be recorded. `"ros"` and `"ebif"` show what a read-out
    /// system or a crate gives to an event builder. With an empty list nobody does.
    pub stages: Vec<SamplingStage>,
    /// Level-1 trigger types of these events, 0 to 255; if empty, all.
    pub trigger_types: Vec<u8>,
    /// Numbers of level-1 items, 0 to 31: an event needs one of them. If empty, it needs none.
    pub items: Vec<u8>,
    /// Of these events one in so many, chosen by its number: every stage chooses the same ones. The share is exact while `samples_lost`
    /// stays at 0.
    #[schemars(range(min = 1))]
    pub prescale: u32,
    /// Samples that an application gives in a quarter of a second, at most.
    #[schemars(range(min = 1, max = 1000))]
    pub samples: u32,
    /// Their bytes, at most; a larger event is never shown. An application holds so much, once, for those who watch.
    pub size: Size,
}

/// Who shows events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplingStage {
    /// Read-out systems.
    Ros,
    /// Interfaces of read-out crates to event building.
    Ebif,
    /// Event builders.
    Sfi,
    /// Filter daemons.
    Efd,
}

impl SamplingStage {
    /// The role of those who show events.
    pub fn role(self) -> Role {
        match self {
            Self::Ros => Role::Ros,
            Self::Ebif => Role::Ebif,
            Self::Sfi => Role::Sfi,
            Self::Efd => Role::Efd,
        }
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            stages: vec![SamplingStage::Sfi],
            trigger_types: Vec::new(),
            items: Vec::new(),
            prescale: 1,
            samples: 2,
            size: Size::from_bytes(4 << 20),
        }
    }
}

impl Sampling {
    /// Whether nothing is said.
    pub(crate) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
