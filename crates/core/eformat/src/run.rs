//! Values that describe a run: its type (format note §3c) and its detectors (§12).

use std::fmt;
use std::str::FromStr;

/// Run type word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RunType(pub u32);

impl RunType {
    /// Physics.
    pub const PHYSICS: Self = Self(0);
    /// Calibration.
    pub const CALIBRATION: Self = Self(1);
    /// Cosmics.
    pub const COSMICS: Self = Self(2);
    /// Test.
    pub const TEST: Self = Self(0xf);
    /// Bit that marks simulated data.
    pub const SIMULATION_BIT: u32 = 0x8000_0000;

    /// The same type, marked as simulated.
    #[must_use]
    pub const fn simulated(self) -> Self {
        Self(self.0 | Self::SIMULATION_BIT)
    }

    /// Whether the data are simulated.
    pub const fn is_simulated(self) -> bool {
        self.0 & Self::SIMULATION_BIT != 0
    }
}

impl fmt::Display for RunType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 & !Self::SIMULATION_BIT {
            0 => write!(f, "physics")?,
            1 => write!(f, "calibration")?,
            2 => write!(f, "cosmics")?,
            0xf => write!(f, "test")?,
            other => write!(f, "{other:#x}")?,
        }
        if self.is_simulated() { write!(f, " (simulated)") } else { Ok(()) }
    }
}

/// Which detectors take part in a run, one bit each (note §12). Text form: 32 hexadecimal digits without prefix.
///
/// ```
/// use eformat::DetectorMask;
/// let mask: DetectorMask = "00000000000000000000010000000001".parse()?;
/// assert_eq!(mask.names().collect::<Vec<_>>(), ["pixel barrel", "CTP"]);
/// # Ok::<(), eformat::BadDetectorMask>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DetectorMask(pub u128);

impl DetectorMask {
    /// Names of the set bits that the note knows; bits above 63 are not named, since sources disagree on them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        MASK_BITS
            .iter()
            .enumerate()
            .filter(move |(bit, name)| self.has(*bit) && !name.is_empty())
            .map(|(_, name)| *name)
    }

    /// Whether bit `bit` is set.
    pub fn has(self, bit: usize) -> bool {
        bit < 128 && self.0 >> bit & 1 == 1
    }
}

impl fmt::Display for DetectorMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for DetectorMask {
    type Err = BadDetectorMask;

    fn from_str(text: &str) -> Result<Self, BadDetectorMask> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        value.map(Self).ok_or(BadDetectorMask)
    }
}

/// Text that is not a detector mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a detector mask is 32 hexadecimal digits without prefix")]
pub struct BadDetectorMask;

/// Bunch crossing number, 12 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bcid(u16);

impl Bcid {
    /// Largest number that the field holds.
    pub const MAX: u16 = 0xfff;

    /// The number, `None` above 12 bits.
    pub const fn new(value: u16) -> Option<Self> {
        if value <= Self::MAX { Some(Self(value)) } else { None }
    }

    /// The low 12 bits of `value`.
    pub const fn masked(value: u32) -> Self {
        Self(value as u16 & Self::MAX)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

const MASK_BITS: [&str; 64] = [
    "pixel barrel",
    "pixel disks",
    "pixel B-layer",
    "",
    "SCT barrel A",
    "SCT barrel C",
    "SCT end-cap A",
    "SCT end-cap C",
    "TRT barrel A",
    "TRT barrel C",
    "TRT end-cap A",
    "TRT end-cap C",
    "LAr EMB A",
    "LAr EMB C",
    "LAr EMEC A",
    "LAr EMEC C",
    "LAr HEC A",
    "LAr HEC C",
    "LAr FCal A",
    "LAr FCal C",
    "Tile barrel A",
    "Tile barrel C",
    "Tile extended barrel A",
    "Tile extended barrel C",
    "MDT barrel A",
    "MDT barrel C",
    "MDT end-cap A",
    "MDT end-cap C",
    "RPC barrel A",
    "RPC barrel C",
    "TGC end-cap A",
    "TGC end-cap C",
    "CSC end-cap A",
    "CSC end-cap C",
    "L1Calo preprocessor",
    "L1Calo cluster DAQ",
    "L1Calo cluster RoI",
    "L1Calo jet/energy DAQ",
    "L1Calo jet/energy RoI",
    "MUCTPI",
    "CTP",
    "L2SV",
    "SFI",
    "SFO",
    "LVL2",
    "HLT",
    "BCM",
    "LUCID",
    "ZDC",
    "ALFA",
    "TRT ancillary",
    "Tile laser",
    "muon ancillary",
    "beam crate",
    "FTK",
    "offline",
    "L1Topo",
    "L1Calo digital",
    "L1Calo feature extractor DAQ",
    "L1Calo feature extractor RoI",
    "MMEGA A",
    "MMEGA C",
    "IBL",
    "DBM",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mask_text() {
        let mask = DetectorMask(0x1234_5678_9abc);
        assert_eq!(mask.to_string().parse(), Ok(mask));
        for bad in ["", "+0000000000000000000000000000001", "0x", "123456789"] {
            assert_eq!(bad.parse::<DetectorMask>(), Err(BadDetectorMask));
        }
    }

    #[test]
    fn a_mask_has_128_bits() {
        let mask = DetectorMask(1 << 127 | 1 << 64 | 1 << 3 | 1 << 62);
        assert_eq!((0..200).filter(|bit| mask.has(*bit)).collect::<Vec<_>>(), [3, 62, 64, 127]);
        assert_eq!(mask.names().collect::<Vec<_>>(), ["IBL"]);
    }

    #[test]
    fn a_bunch_crossing_number_has_12_bits() {
        assert_eq!((Bcid::new(0xfff).map(Bcid::get), Bcid::new(0x1000)), (Some(0xfff), None));
        assert_eq!(Bcid::masked(0xf_fabc).get(), 0xabc);
    }

    #[test]
    fn run_type_text() {
        assert_eq!(RunType::COSMICS.simulated().to_string(), "cosmics (simulated)");
        assert_eq!(RunType(0x8000_000f).to_string(), "test (simulated)");
        assert_eq!(RunType(0x8000_0000).to_string(), "physics (simulated)");
        let texts = [RunType::PHYSICS, RunType::CALIBRATION, RunType::COSMICS, RunType::TEST, RunType(0x10)];
        assert_eq!(texts.map(|kind| kind.to_string()), ["physics", "calibration", "cosmics", "test", "0x10"]);
        assert!(RunType(0x8000_0010).is_simulated() && !RunType(0x7fff_ffff).is_simulated());
        assert_eq!(RunType::TEST.simulated().simulated(), RunType(0x8000_000f));
    }
}
