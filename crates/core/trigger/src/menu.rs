//! The menu: chains from a level-1 item through level 2 to the event filter.

use std::sync::Arc;

use thiserror::Error;

use crate::cuts::{BadCut, Cuts};
use crate::detector::{Detector, RoiKind};

/// A chain of a menu, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSpec {
    /// Its name, unique in the menu: `e25i`.
    pub name: String,
    /// The level-1 item it starts from: `L1_EM20I`.
    pub item: String,
    /// What it looks for.
    pub algorithm: AlgorithmSpec,
    /// It runs for one in so many events of its item; 1 for every. A hash of event number and name draws them.
    pub prescale: u32,
    /// One in so many events that it runs for is accepted whatever it finds; 0 for none.
    pub pass_through: u32,
    /// The cut of the event filter, not below that of level 2; without it the filter applies level 2's.
    pub filter_et_mev: Option<i32>,
}

/// What a chain looks for: at least `count` regions of interest that passed the level-1 `threshold` and the selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlgorithmSpec {
    /// Cluster with shower shape, isolation, hadronic leakage and a matched track.
    Electron {
        /// Level-1 threshold: `EM20I`.
        threshold: String,
        /// Calibrated transverse energy, at least.
        et_mev: i32,
        /// Electrons, at least.
        count: u32,
    },
    /// The same without the track.
    Photon {
        /// Level-1 threshold: `EM20I`.
        threshold: String,
        /// Calibrated transverse energy, at least.
        et_mev: i32,
        /// Photons, at least.
        count: u32,
    },
    /// Track matched to a muon stub.
    Muon {
        /// Level-1 threshold: `MU20`.
        threshold: String,
        /// Transverse momentum of the track, at least.
        et_mev: i32,
        /// Muons, at least.
        count: u32,
    },
    /// Cone of radius 0.4.
    Jet {
        /// Level-1 threshold: `J75`.
        threshold: String,
        /// Calibrated transverse energy, at least.
        et_mev: i32,
        /// Jets, at least.
        count: u32,
    },
    /// Level 2 takes level 1's word; the event filter sums all calorimeter cells of the built event.
    MissingEt {
        /// Missing transverse energy, at least.
        et_mev: i32,
    },
    /// Every event of the item.
    Pass,
}

/// A checked menu; chain `n` is bit `n` of all sets of chains.
#[derive(Clone, Debug)]
pub struct Menu {
    detector: Arc<Detector>,
    chains: Vec<Chain>,
    cuts: Cuts,
}

/// A chain with its names resolved.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    name: String,
    /// The bit of its level-1 item.
    item: u32,
    seed: u64,
    prescale: u32,
    pass_through: u32,
    pub(crate) selection: Selection,
}

/// What a chain asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Rois(RoiSelection),
    MissingEt { et_mev: LevelCuts },
    Pass,
}

/// An algorithm on regions of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoiSelection {
    pub(crate) algorithm: RoiAlgorithm,
    pub(crate) threshold: u8,
    pub(crate) et_mev: LevelCuts,
    pub(crate) count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoiAlgorithm {
    Electron,
    Photon,
    Muon,
    Jet,
}

/// A cut at level 2 and in the event filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LevelCuts {
    pub(crate) level2: i64,
    pub(crate) filter: i64,
}

/// Why a menu cannot be used.
#[derive(Debug, Error)]
pub enum MenuError {
    /// A set of chains has 64 bits.
    #[error("the menu has {found} chains; at most {CHAINS_MAX} are possible")]
    TooManyChains {
        /// How many it has.
        found: usize,
    },
    /// Two chains have one name.
    #[error("chain {index} is called `{name}` like chain {first}: give each its own name")]
    DuplicateName {
        /// The second of them, from 0.
        index: usize,
        /// The first of them.
        first: usize,
        /// Their name.
        name: String,
    },
    /// The detector description has no such level-1 item.
    #[error("chain {index} `{chain}`: unknown level-1 item `{item}`; known are {known}")]
    UnknownItem {
        /// Which chain, from 0.
        index: usize,
        /// Its name.
        chain: String,
        /// The unknown name.
        item: String,
        /// What there is.
        known: String,
    },
    /// The detector description has no such threshold for regions of interest of this kind.
    #[error("chain {index} `{chain}`: unknown level-1 threshold `{threshold}` for {kind}; known are {known}")]
    UnknownThreshold {
        /// Which chain, from 0.
        index: usize,
        /// Its name.
        chain: String,
        /// The unknown name.
        threshold: String,
        /// `muons`
        kind: &'static str,
        /// What there is.
        known: String,
    },
    /// A number or name of a chain is out of range.
    #[error("chain {index} `{chain}`, `{key}`: expected {expected}, found {found}")]
    Value {
        /// Which chain, from 0.
        index: usize,
        /// Its name.
        chain: String,
        /// Which field of [`ChainSpec`] or [`AlgorithmSpec`].
        key: &'static str,
        /// What is legal.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A selection constant is out of range.
    #[error(transparent)]
    Cut(#[from] BadCut),
}

/// Chains in a menu, at most.
pub const CHAINS_MAX: usize = 64;

impl Menu {
    /// Resolves the names of chains against a detector.
    ///
    /// # Errors
    /// The first chain that cannot be, with its index and name, or the constant out of range.
    pub fn new(detector: Arc<Detector>, chains: &[ChainSpec], cuts: Cuts) -> Result<Self, MenuError> {
        cuts.check()?;
        if chains.len() > CHAINS_MAX {
            return Err(MenuError::TooManyChains { found: chains.len() });
        }
        for (index, chain) in chains.iter().enumerate() {
            if let Some(first) = chains[..index].iter().position(|earlier| earlier.name == chain.name) {
                return Err(MenuError::DuplicateName { index, first, name: chain.name.clone() });
            }
        }
        let specs = chains.iter().enumerate().map(|(index, chain)| Spec { index, chain, detector: &detector });
        let chains = specs.map(|spec| spec.resolve()).collect::<Result<_, _>>()?;
        Ok(Self { chains, cuts, detector })
    }

    /// The detector it was resolved against.
    #[must_use]
    pub fn detector(&self) -> &Detector {
        &self.detector
    }

    /// Its selection constants.
    #[must_use]
    pub fn cuts(&self) -> &Cuts {
        &self.cuts
    }

    /// Names of its chains, in order of their bits.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.chains.iter().map(|chain| chain.name.as_str())
    }

    /// The chains that run for an event: level 1 fired their item, and prescales do not take them away.
    #[must_use]
    pub fn input(&self, event: u64, items: u32) -> u64 {
        self.set(|_, chain| chain.item & items != 0 && draws(event, chain.seed, chain.prescale))
    }

    /// Of these chains, those that accept the event whatever they find.
    #[must_use]
    pub fn passed_through(&self, event: u64, input: u64) -> u64 {
        self.set(|index, chain| {
            let is_input = input >> index & 1 != 0;
            is_input && chain.pass_through != 0 && draws(event, scramble(chain.seed), chain.pass_through)
        })
    }

    pub(crate) fn chain(&self, index: usize) -> &Chain {
        &self.chains[index]
    }

    /// All chains.
    pub(crate) fn all(&self) -> u64 {
        self.set(|_, _| true)
    }

    fn set(&self, has: impl Fn(usize, &Chain) -> bool) -> u64 {
        let bits = self.chains.iter().enumerate().map(|(index, chain)| u64::from(has(index, chain)) << index);
        bits.fold(0, |set, bit| set | bit)
    }
}

impl RoiAlgorithm {
    pub(crate) fn roi_kind(self) -> RoiKind {
        match self {
            Self::Electron | Self::Photon => RoiKind::Em,
            Self::Muon => RoiKind::Muon,
            Self::Jet => RoiKind::Jet,
        }
    }
}

/// A chain on its way to be resolved.
struct Spec<'a> {
    index: usize,
    chain: &'a ChainSpec,
    detector: &'a Detector,
}

impl Spec<'_> {
    fn item(&self) -> Result<u32, MenuError> {
        let item = &self.chain.item;
        let unknown = || MenuError::UnknownItem {
            index: self.index,
            chain: self.chain.name.clone(),
            item: item.clone(),
            known: self.detector.item_names().collect::<Vec<_>>().join(", "),
        };
        self.detector.item(item).map(|bit| 1 << bit).ok_or_else(unknown)
    }

    fn resolve(&self) -> Result<Chain, MenuError> {
        let chain = self.chain;
        if chain.name.is_empty() {
            return Err(self.value("name", "a name", "none"));
        }
        if chain.prescale == 0 {
            return Err(self.value("prescale", "1 or more; leave out a chain that is not to run", "0"));
        }
        Ok(Chain {
            name: chain.name.clone(),
            item: self.item()?,
            seed: seed(&chain.name),
            prescale: chain.prescale,
            pass_through: chain.pass_through,
            selection: self.selection()?,
        })
    }

    fn selection(&self) -> Result<Selection, MenuError> {
        let (algorithm, threshold, et_mev, count) = match &self.chain.algorithm {
            AlgorithmSpec::Electron { threshold, et_mev, count } => {
                (RoiAlgorithm::Electron, threshold, *et_mev, *count)
            }
            AlgorithmSpec::Photon { threshold, et_mev, count } => (RoiAlgorithm::Photon, threshold, *et_mev, *count),
            AlgorithmSpec::Muon { threshold, et_mev, count } => (RoiAlgorithm::Muon, threshold, *et_mev, *count),
            AlgorithmSpec::Jet { threshold, et_mev, count } => (RoiAlgorithm::Jet, threshold, *et_mev, *count),
            AlgorithmSpec::MissingEt { et_mev } => {
                return Ok(Selection::MissingEt { et_mev: self.level_cuts(*et_mev)? });
            }
            AlgorithmSpec::Pass => {
                return match self.chain.filter_et_mev {
                    None => Ok(Selection::Pass),
                    Some(cut) => Err(self.value("filter_et_mev", "none, for it cuts on nothing", &cut.to_string())),
                };
            }
        };
        if count == 0 {
            return Err(self.value("count", "1 or more", "0"));
        }
        let threshold = self.threshold(algorithm.roi_kind(), threshold)?;
        Ok(Selection::Rois(RoiSelection { algorithm, threshold, et_mev: self.level_cuts(et_mev)?, count }))
    }

    fn level_cuts(&self, level2: i32) -> Result<LevelCuts, MenuError> {
        if level2 < 0 {
            return Err(self.value("et_mev", "0 or more", &level2.to_string()));
        }
        let filter = self.chain.filter_et_mev.unwrap_or(level2);
        if filter < level2 {
            let expected = format!("at least the cut of level 2, {level2}");
            return Err(self.value("filter_et_mev", &expected, &filter.to_string()));
        }
        Ok(LevelCuts { level2: i64::from(level2), filter: i64::from(filter) })
    }

    fn threshold(&self, kind: RoiKind, name: &str) -> Result<u8, MenuError> {
        let unknown = || MenuError::UnknownThreshold {
            index: self.index,
            chain: self.chain.name.clone(),
            threshold: name.to_owned(),
            kind: match kind {
                RoiKind::Em => "electrons and photons",
                RoiKind::Jet => "jets",
                RoiKind::Muon => "muons",
                RoiKind::MissingEt => "missing energy",
                RoiKind::TotalEt => "total energy",
            },
            known: self.detector.threshold_names(kind).collect::<Vec<_>>().join(", "),
        };
        self.detector.threshold(kind, name).ok_or_else(unknown)
    }

    fn value(&self, key: &'static str, expected: &str, found: &str) -> MenuError {
        MenuError::Value {
            index: self.index,
            chain: self.chain.name.clone(),
            key,
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }
}

/// Whether the event is one of the one in `period` that a chain takes: the same on every machine and at every level.
fn draws(event: u64, seed: u64, period: u32) -> bool {
    period == 1 || scramble(event ^ seed).is_multiple_of(u64::from(period))
}

/// FNV-1a of the name: a chain draws the same events wherever it stands in the menu.
fn seed(name: &str) -> u64 {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    scramble(hash)
}

/// The finaliser of SplitMix64: each bit of the result depends on all of the argument.
fn scramble(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
