//! `[level1.generator]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::decimal::Decimal;
use crate::units::Energy;

/// `[level1.generator]`: what the emulated level 1 makes up; for `level1.source = "emulator"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Generator {
    /// How the number of regions of interest varies about `level1.rois_per_event`.
    pub multiplicity: Multiplicity,
    /// Where the regions are.
    pub position: Position,
    /// Middle of the hot spot in pseudorapidity, -2.5 to 2.5; for the position `hot-spot`.
    pub eta: Decimal,
    /// Middle of the hot spot in azimuth, 0 to 6.283185; for the position `hot-spot`.
    pub phi: Decimal,
    /// Half width of the hot spot in both, above 0 to 3.141592; for the position `hot-spot`.
    pub width: Decimal,
    /// How transverse energies are spread.
    pub spectrum: Spectrum,
    /// The least transverse energy.
    pub et_min: Energy,
    /// Mean transverse energy above `et_min`; for the spectrum `exponential`.
    pub et_mean_above: Energy,
    /// The threshold bits that every region has passed.
    pub thresholds: u32,
    /// The level-1 items of every event, one bit each.
    pub items: u32,
    /// How often each kind of region is made up, relative to the others.
    pub kinds: Kinds,
}

impl Default for Generator {
    fn default() -> Self {
        Self {
            multiplicity: Multiplicity::Fixed,
            position: Position::Flat,
            eta: Decimal::from_millionths(0),
            phi: Decimal::from_millionths(0),
            width: Decimal::from_millionths(500_000),
            spectrum: Spectrum::Exponential,
            et_min: Energy::from_mev(5000),
            et_mean_above: Energy::from_mev(20_000),
            thresholds: 1,
            items: 1,
            kinds: Kinds::default(),
        }
    }
}

/// How the number of regions of interest varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Multiplicity {
    /// Not at all.
    #[default]
    Fixed,
    /// By the Poisson distribution, at most 255.
    Poisson,
}

/// Where emulated regions of interest are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Position {
    /// Evenly in |η| < 2.5 and φ.
    #[default]
    Flat,
    /// Evenly in a square, as of a noisy region: all events ask the same few read-out systems.
    HotSpot,
}

/// How emulated transverse energies are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Spectrum {
    /// They fall exponentially above the least one.
    #[default]
    Exponential,
    /// All are the least one.
    Fixed,
}

/// `level1.generator.kinds`: weights of the kinds of regions of interest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { em = 3, jet = 1, muon = 0 }")]
pub struct Kinds {
    /// Electromagnetic clusters.
    pub em: u32,
    /// Jets.
    pub jet: u32,
    /// Muons.
    pub muon: u32,
}

impl Default for Kinds {
    fn default() -> Self {
        Self { em: 1, jet: 1, muon: 1 }
    }
}
