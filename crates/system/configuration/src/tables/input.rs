//! `[input]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Size;

/// `[input]`: the files that a sample or a replay reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Input {
    /// Paths of the files, relative to the folder of the configuration file. Paths given with `--set` are relative to the working
    /// directory. A leading `~/` stands for the home folder.
    pub files: Vec<String>,
    /// Starts again at the first event after the last one, with fresh event ids; with `mix`, draws events without end.
    /// Of replayed events the global id, and the level-1 id in the header and in all RODs, go on behind those of the
    /// round before. Checksums follow, all else is as recorded. Events with a compressed payload are refused.
    pub repeat: bool,
    /// How the events of several sample files are mixed; without the key the files are read one behind the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mix: Option<Mix>,
    /// Path of the detector description, such as `"data/detector.json"`: names of level-1 items and thresholds, geography.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detector: Option<String>,
    /// Fragments of a sample whose data are shorter get words of zero behind them, up to this size. So they are as
    /// large as those of a real detector while their content stays the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad_to: Option<Size>,
    /// Prescales of level-1 items by their name in the detector description, such as `L1_RD0 = 100`; for `mix`. An event
    /// of these items alone is drawn that much less often; with several, as often as any of their prescales lets it pass.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prescales: BTreeMap<String, u32>,
}

/// How the events of several sample files are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mix {
    /// An event accepted by level 1 is drawn with a probability that is proportional to its cross section. This is
    /// `cross_section_mb` × `weight` / `sum_of_weights_generated` of the description beside its file, `FILE.json`.
    CrossSection,
    /// Every file is drawn equally often. Within a file, an event accepted by level 1 is drawn with a probability that
    /// is proportional to its `weight`. No descriptions are needed.
    Equal,
}
