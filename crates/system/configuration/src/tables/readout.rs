//! `[ros]`.

use core::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{Fraction, Interval, Size};

/// Most bytes of headers, trailers, status and checksum words around the data of an emulated fragment. They are 21
/// words with one status word in ROB and ROD (format note, ROB fragment), a checksum, and room for more status words.
pub const FRAGMENT_OVERHEAD_BYTES: u64 = 128;

/// `[ros]`: the read-out systems and their read-out buffers (ROBs).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Ros {
    /// Number of read-out systems. Required for emulated input; 1 for a sample or a replay, whose ROBs are shared out evenly.
    pub count: u32,
    /// ROBs of each read-out system; for emulated input.
    pub robs: u32,
    /// Where fragments come from; by default what fits `level1.source`.
    pub input: RosInput,
    /// Addresses of the network ports of each read-out system, if it has several. With `--processes` the event builders
    /// and the level-2 processing units spread their requests over them. Replies go back by the port of the request
    /// (EB2007). Each port has connections or sockets of its own. In shared memory, where the address has no meaning,
    /// it has a ring of its own. All are served by the one thread of the process. Without the key all goes by
    /// `transport.host`, as does the rest with it.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "super::transport::ip_addresses")]
    #[schemars(with = "Vec<String>")]
    pub ports: Vec<IpAddr>,
    /// Size of a page of a ROB; a fragment with its headers must fit into one.
    pub page_size: Size,
    /// Pages of each ROB, and so the most fragments it holds.
    pub pages: u32,
    /// A ROB raises busy when a larger part of its pages is in use.
    pub busy_above: Fraction,
    /// It lowers busy when a smaller part of its pages is in use.
    pub busy_below: Fraction,
    /// A request that came before its data waits at most this long, then is answered without.
    pub request_timeout: Interval,
    /// Sub-detector of the source identifiers of emulated ROBs, such as 0x51.
    pub sub_detector: u8,
    /// Checksum at the end of each fragment.
    pub checksum: super::Checksum,
    /// What read-out systems do to the fragments that level 2 asks for; built events stay complete.
    pub preprocessing: Preprocessing,
    /// Calorimeter cells below this many ADC counts are left out of them, 0 to 65535; for `zero-suppression`.
    pub suppress_below: u16,
    /// Sizes of emulated fragments.
    pub fragment: Fragment,
    /// How data are pushed; for `dfm.building = "push"` and `"push-by-number"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<Push>,
}

impl Default for Ros {
    fn default() -> Self {
        Self {
            count: 1,
            robs: 1,
            input: RosInput::Emulator,
            ports: Vec::new(),
            page_size: Size::from_bytes(16 << 10),
            pages: 1024,
            busy_above: Fraction::from_percent(80),
            busy_below: Fraction::from_percent(60),
            request_timeout: Interval::from_ms(100),
            sub_detector: 0x51,
            checksum: super::Checksum::None,
            preprocessing: Preprocessing::None,
            suppress_below: 0,
            fragment: Fragment::default(),
            push: None,
        }
    }
}

/// `ros.push`: how read-out systems send data that nobody has asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { window = \"256 KiB\" }")]
pub struct Push {
    /// Most data that each has on the way to each event builder; without it, the share of `sfi.building` events of
    /// `sfi.max_event_size`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Size>,
    /// What the link of an event builder carries in a second: each of the `ros.count` sources sends at its share of that (rate
    /// division, ATM1997). Without the key they send as fast as they can. A source that was kept from its processor sends at
    /// once what it was owed meanwhile, of up to 50 ms; `window` bounds that, too. To fill the link, `sfi.building` events have
    /// to hold what it carries while messages go from the DFM to the sources and back. Where processes outnumber processors that
    /// is some milliseconds, whatever `transport.idle` is. 32 events of 4 kB are 2.6 ms of a link of 50 MB/s, and 256 are 20 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_per_second: Option<Size>,
    /// What may go at once after a pause, with `link_per_second`, besides what a late source was owed.
    pub burst: Size,
    /// Events that are sent together, and assigned to the same event builder.
    pub group: u32,
    /// A group goes out at this age, full or not; at 0, what is there at the same time goes together, and nothing waits.
    pub group_age: Interval,
}

impl Default for Push {
    fn default() -> Self {
        Self {
            window: None,
            link_per_second: None,
            burst: Size::from_bytes(0),
            group: 1,
            group_age: Interval::from_ms(1),
        }
    }
}

/// `[roc]`: read-out crates (DAQ1999). In each, some read-out systems stand behind a TRG, which tells them of triggers,
/// clears and regions of interest. They stand before an EBIF, which collects their fragments and gives them out together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { count = 1, ros = 4 }")]
pub struct Roc {
    /// Number of crates.
    pub count: u32,
    /// Read-out systems of each crate. The first ones of `ros.count` are in crates, the others stand alone.
    pub ros: u32,
    /// Clears that a TRG sends into its crate together.
    pub clear_group: u32,
    /// A TRG keeps none of them back for longer.
    pub clear_age: Interval,
}

impl Default for Roc {
    fn default() -> Self {
        Self { count: 1, ros: 4, clear_group: 10, clear_age: Interval::from_ms(2) }
    }
}

/// What read-out systems do to the fragments that level 2 asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preprocessing {
    /// Nothing.
    #[default]
    None,
    /// They leave out the words of zero behind the records of a fragment, and cells below `suppress_below`.
    ZeroSuppression,
}

/// Where fragments come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RosInput {
    /// Made up, with sizes from `ros.fragment`.
    #[default]
    Emulator,
    /// From a sample of simulated collisions.
    Sample,
    /// From the events of recorded files.
    Replay,
    /// From the programs of `[[source]]`, which send when they like.
    Links,
}

/// `ros.fragment`: sizes of the data of emulated fragments, without headers, rounded down to whole words of 4 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { kind = \"fixed\", size = \"1 kB\" }")]
pub struct Fragment {
    /// Distribution of sizes.
    pub kind: FragmentKind,
    /// Size of every fragment, `"1 kB"` if absent; for the kind `fixed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// Mean size; for the kinds `gaussian` and `exponential`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Size>,
    /// Standard deviation; for the kind `gaussian`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigma: Option<Size>,
    /// Sizes to choose from; for the kind `list`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<Size>,
    /// How often each of `sizes` is chosen, relative to the others; equally often if absent; for the kind `list`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// When the data are written.
    pub payload: Payload,
}

impl Default for Fragment {
    fn default() -> Self {
        Self {
            kind: FragmentKind::Fixed,
            size: None,
            mean: None,
            sigma: None,
            sizes: Vec::new(),
            weights: Vec::new(),
            payload: Payload::Prefilled,
        }
    }
}

impl Fragment {
    /// The distribution; `None` if a key that it needs is absent, which no loaded configuration has.
    pub fn distribution(&self) -> Option<SizeDistribution> {
        match self.kind {
            FragmentKind::Fixed => Some(SizeDistribution::Fixed(self.size.unwrap_or(Self::SIZE))),
            FragmentKind::Gaussian => Some(SizeDistribution::Gaussian { mean: self.mean?, sigma: self.sigma? }),
            FragmentKind::Exponential => Some(SizeDistribution::Exponential { mean: self.mean? }),
            FragmentKind::List => {
                let weight = |index| self.weights.get(index).copied().unwrap_or(1);
                let sizes = self.sizes.iter().enumerate();
                let weighted: Vec<_> = sizes.map(|(index, &size)| (size, weight(index))).collect();
                (!weighted.is_empty()).then_some(SizeDistribution::List(weighted))
            }
        }
    }

    const SIZE: Size = Size::from_bytes(1000);
}

/// Kind of a distribution of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FragmentKind {
    /// All equal.
    #[default]
    Fixed,
    /// Normal, cut at 0 and at 6 standard deviations.
    Gaussian,
    /// Exponential, cut at 10 times the mean.
    Exponential,
    /// From a list, with weights.
    List,
}

/// When the data of emulated fragments are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Payload {
    /// Once to every page, at the start: a detector link that writes to memory by itself.
    #[default]
    Prefilled,
    /// Anew for each fragment, by the processor of the read-out system.
    Written,
}

/// A complete distribution of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeDistribution {
    /// All equal.
    Fixed(Size),
    /// Normal, cut at 0 and at [`SizeDistribution::size_max`].
    Gaussian {
        /// The mean.
        mean: Size,
        /// The standard deviation.
        sigma: Size,
    },
    /// Exponential, cut at [`SizeDistribution::size_max`].
    Exponential {
        /// The mean.
        mean: Size,
    },
    /// Sizes with their weights; at least one.
    List(Vec<(Size, u32)>),
}

impl SizeDistribution {
    /// The largest size: 6 standard deviations above the mean of a Gaussian, 10 times the mean of an exponential.
    pub fn size_max(&self) -> Size {
        match self {
            Self::Fixed(size) => *size,
            Self::Gaussian { mean, sigma } => {
                Size::from_bytes(sigma.bytes().saturating_mul(6).saturating_add(mean.bytes()))
            }
            Self::Exponential { mean } => Size::from_bytes(mean.bytes().saturating_mul(10)),
            Self::List(sizes) => sizes.iter().map(|&(size, _)| size).max().unwrap_or_default(),
        }
    }

    /// The mean size, rounded down, of the distribution without its cut.
    pub fn size_mean(&self) -> Size {
        match self {
            Self::Fixed(size) => *size,
            Self::Gaussian { mean, .. } | Self::Exponential { mean } => *mean,
            Self::List(sizes) => {
                let weights: u128 = sizes.iter().map(|&(_, weight)| u128::from(weight)).sum();
                let sum = sizes
                    .iter()
                    .map(|&(size, weight)| u128::from(size.bytes()) * u128::from(weight))
                    .fold(0, u128::saturating_add);
                let mean = sum.checked_div(weights).unwrap_or_default();
                Size::from_bytes(u64::try_from(mean).unwrap_or(u64::MAX))
            }
        }
    }
}
