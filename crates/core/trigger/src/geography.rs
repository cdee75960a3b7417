//! Where in the read-out the data of a region are: from windows in η and φ to source identifiers.

use std::ops::Range;

/// A sub-detector that is read out for regions of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubSystem {
    /// Tracks.
    Tracker = 0,
    /// Electromagnetic calorimeter.
    EmCalo = 1,
    /// Hadronic calorimeter.
    HadCalo = 2,
    /// Muon stubs.
    Muon = 3,
}

/// Channels of a sub-detector in η and φ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Channels from η = −2.5 to 2.5.
    pub eta: u32,
    /// Channels around.
    pub phi: u32,
}

/// A region of a sub-detector in units of its [`Grid`]: cells, towers, or quantised angles (η plus 25,000).
///
/// η outside the grid is cut off; φ goes around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The sub-detector.
    pub sub: SubSystem,
    /// In η.
    pub eta: Range<i32>,
    /// In φ.
    pub phi: Range<i32>,
}

/// How the read-out of a sub-detector is divided into ROBs: `eta` times `phi` of them, φ running faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// Number of the sub-detector in source identifiers.
    pub sub_detector: u32,
    /// Divisions in η, at least one.
    pub eta: u32,
    /// Divisions in φ, at least one.
    pub phi: u32,
}

impl SubSystem {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tracker, Self::EmCalo, Self::HadCalo, Self::Muon];

    /// Its name in the detector description.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tracker => "TRACKER",
            Self::EmCalo => "EM_CALO",
            Self::HadCalo => "HAD_CALO",
            Self::Muon => "MUON",
        }
    }

    /// Its channels: part of the payload format.
    #[must_use]
    pub const fn grid(self) -> Grid {
        match self {
            Self::EmCalo => Grid { eta: EM_CELLS_ETA as u32, phi: EM_CELLS_PHI as u32 },
            Self::HadCalo => Grid { eta: TOWERS_ETA as u32, phi: TOWERS_PHI as u32 },
            Self::Tracker | Self::Muon => Grid { eta: ANGLES_ETA as u32, phi: ANGLES_PHI as u32 },
        }
    }
}

impl Modules {
    /// Source identifiers of all its ROBs, rising.
    pub fn sources(self) -> impl Iterator<Item = u32> {
        (0..self.count()).map(move |module| self.sub_detector << 16 | module)
    }

    /// How many ROBs it has.
    #[must_use]
    pub fn count(self) -> u32 {
        self.eta * self.phi
    }

    pub(crate) fn source(self, eta: u32, phi: u32) -> u32 {
        self.sub_detector << 16 | (eta * self.phi + phi)
    }

    pub(crate) fn eta_modules(self, window: &Range<i32>, channels: u32) -> Range<u32> {
        let channels = i64::from(channels);
        let (start, end) = (i64::from(window.start).max(0), i64::from(window.end).min(channels));
        if end <= start {
            return 0..0;
        }
        let module = |channel: i64| (channel * i64::from(self.eta) / channels) as u32;
        module(start)..module(end - 1) + 1
    }

    /// Rising: what a window around φ = 0 has at the beginning, then what it has at the end.
    pub(crate) fn phi_modules(self, window: &Range<i32>, channels: u32) -> [Range<u32>; 2] {
        let (channels, count) = (i64::from(channels), i64::from(self.phi));
        if window.is_empty() {
            return [0..0, 0..0];
        }
        let module = |channel: i64| (channel * count).div_euclid(channels);
        let (first, last) = (module(i64::from(window.start)), module(i64::from(window.end) - 1));
        if last - first + 1 >= count {
            return [0..self.phi, 0..0];
        }
        let (first, last) = (first.rem_euclid(count) as u32, last.rem_euclid(count) as u32);
        if first <= last { [first..last + 1, 0..0] } else { [0..last + 1, first..self.phi] }
    }
}

/// Electromagnetic cells in η, 0.025 each.
pub(crate) const EM_CELLS_ETA: i32 = 200;
/// Electromagnetic cells in φ.
pub(crate) const EM_CELLS_PHI: i32 = 256;
/// Trigger towers, which are those of the hadronic calorimeter, in η, 0.1 each.
pub(crate) const TOWERS_ETA: i32 = 50;
/// Trigger towers in φ.
pub(crate) const TOWERS_PHI: i32 = 64;
/// Electromagnetic cells along one side of a tower.
pub(crate) const CELLS_PER_TOWER: i32 = EM_CELLS_PHI / TOWERS_PHI;
/// Steps of quantised η of tracks and stubs from −2.5 to 2.5.
pub(crate) const ANGLES_ETA: i32 = 50_000;
/// Quantised η counts from the middle.
pub(crate) const ANGLES_ETA_ZERO: i32 = ANGLES_ETA / 2;
/// Steps of quantised φ of tracks and stubs.
pub(crate) const ANGLES_PHI: i32 = 65_536;
/// Steps of quantised η in a tower.
pub(crate) const ANGLES_ETA_PER_TOWER: i32 = ANGLES_ETA / TOWERS_ETA;
/// Steps of quantised φ in a tower.
pub(crate) const ANGLES_PHI_PER_TOWER: i32 = ANGLES_PHI / TOWERS_PHI;

const _: () = assert!(EM_CELLS_ETA / TOWERS_ETA == CELLS_PER_TOWER);
