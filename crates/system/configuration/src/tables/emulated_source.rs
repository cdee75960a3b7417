//! `source.emulated`: what is sent in the place of a source that sends by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SizeDistribution;
use crate::units::{Fraction, Interval, Rate, Size};

/// `source.emulated`: how fast a source sends, and how much, where it is emulated: by `weir sim`, and in a run with `play = "emulator"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { rate = \"2 kHz\", size = \"40 B\" }")]
pub struct EmulatedSource {
    /// Triggers in a second, spaced at random, by default `"1 kHz"`; for the source that leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The size of a payload, or its mean; by default `"1 kB"`, or `size_max` of the source if that is less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// How sizes are distributed.
    pub spread: SizeSpread,
    /// How long it sends behind the trigger, or the end of a chunk; for a source that follows one that leads, or sends chunks.
    pub delay: Interval,
    /// The part of the triggers that it has data of, at random; for a source that follows one that leads.
    pub efficiency: Fraction,
    /// The length of a chunk, by default a fifth of a slice; for `level1.source = "time"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Interval>,
    /// How much of a chunk is in the next one, too; for `level1.source = "time"`.
    pub overlap: Fraction,
}

/// How sizes are distributed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SizeSpread {
    /// All equal.
    #[default]
    Fixed,
    /// Exponential, cut at `size_max` of the source.
    Exponential,
}

impl Default for EmulatedSource {
    fn default() -> Self {
        Self {
            rate: None,
            size: None,
            spread: SizeSpread::Fixed,
            delay: Interval::default(),
            efficiency: Fraction::ONE,
            chunk: None,
            overlap: Fraction::default(),
        }
    }
}

impl EmulatedSource {
    /// Whether nothing is said of it.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The mean size of payloads, of a source whose longest one is `size_max`.
    pub fn mean(&self, size_max: Size) -> Size {
        self.size.unwrap_or(SIZE).min(size_max)
    }

    /// Sizes of payloads, of a source whose longest one is `size_max`.
    pub fn sizes(&self, size_max: Size) -> SizeDistribution {
        let size = self.mean(size_max);
        match self.spread {
            SizeSpread::Fixed => SizeDistribution::Fixed(size),
            SizeSpread::Exponential => SizeDistribution::Exponential { mean: size },
        }
    }

    /// From one trigger to the next in the mean.
    pub fn interval(&self) -> Interval {
        Interval::from_ns(self.rate.and_then(Rate::period_ns).unwrap_or(INTERVAL_NS))
    }

    /// The length of a chunk, where a slice has this length.
    pub fn chunk(&self, slice_ns: u64) -> Interval {
        self.chunk.unwrap_or(Interval::from_ns((slice_ns / CHUNKS_IN_SLICE).max(CHUNK_MIN_NS)))
    }

    /// From the begin of one chunk to that of the next, at least 1 ns.
    pub fn every(&self, slice_ns: u64) -> Interval {
        let lasts = self.chunk(slice_ns).duration();
        let every = lasts.mul_f64(1.0 - self.overlap.as_f64());
        Interval::from_ns(u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1))
    }
}

const SIZE: Size = Size::from_bytes(1000);
const INTERVAL_NS: u64 = 1_000_000;
const CHUNKS_IN_SLICE: u64 = 5;
const CHUNK_MIN_NS: u64 = 5_000;
