//! Source identifiers: which detector part and module a fragment is from (format note §6).

use std::fmt;

/// Source identifier word: module in bits 0-15, sub-detector in bits 16-23, bits 24-31 optional.
///
/// ```
/// use eformat::{SourceId, SubDetector};
/// let id = SourceId::new(SubDetector::TDAQ_CTP, 1);
/// assert_eq!(id, SourceId(0x0077_0001));
/// assert_eq!(id.to_string(), "0x00770001 TDAQ_CTP");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SourceId(pub u32);

impl SourceId {
    /// The identifier of a module of a sub-detector.
    pub const fn new(sub_detector: SubDetector, module: u16) -> Self {
        Self((sub_detector.0 as u32) << 16 | module as u32)
    }

    /// Module number.
    pub const fn module(self) -> u16 {
        self.0 as u16
    }

    /// Sub-detector.
    pub const fn sub_detector(self) -> SubDetector {
        SubDetector((self.0 >> 16) as u8)
    }

    /// Bits 24-31, zero by convention.
    pub const fn optional(self) -> u8 {
        (self.0 >> 24) as u8
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)?;
        match self.sub_detector().name() {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}

/// Sub-detector part of a source identifier. Known values are the associated constants; any other value is legal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubDetector(pub u8);

impl SubDetector {
    /// Name in the table of the note §6 (`BES_…` for its BESIII list), `None` for other values.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(value, _)| *value == self).map(|(_, name)| *name)
    }

    /// The sub-detector of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(value, _)| *value)
    }

    /// Group of detectors; `None` for a value of a group that the note does not name.
    pub fn group(self) -> Option<DetectorGroup> {
        Some(match self.0 >> 4 {
            0x0 => DetectorGroup::Any,
            0x1 => DetectorGroup::Pixel,
            0x2 => DetectorGroup::Sct,
            0x3 => DetectorGroup::Trt,
            0x4 => DetectorGroup::Lar,
            0x5 => DetectorGroup::Tile,
            0x6 => DetectorGroup::Muon,
            0x7 => DetectorGroup::Tdaq,
            0x8 => DetectorGroup::Forward,
            0xf => DetectorGroup::Other,
            _ => return None,
        })
    }
}

impl fmt::Debug for SubDetector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}"),
            None => write!(f, "SubDetector({:#04x})", self.0),
        }
    }
}

/// Group of sub-detectors: the upper four bits of the sub-detector (note §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DetectorGroup {
    /// Full events and offline.
    Any,
    /// Pixel detector.
    Pixel,
    /// Silicon strips.
    Sct,
    /// Transition radiation tracker.
    Trt,
    /// Liquid argon calorimeter.
    Lar,
    /// Tile calorimeter.
    Tile,
    /// Muon detectors.
    Muon,
    /// Trigger and data acquisition.
    Tdaq,
    /// Forward detectors.
    Forward,
    /// Others.
    Other,
}

macro_rules! sub_detectors {
    ($($name:ident = $value:literal,)*) => {
        impl SubDetector {
            $(#[doc = concat!("`", stringify!($name), "`, `", stringify!($value), "`.")]
            pub const $name: SubDetector = SubDetector($value);)*
        }

        const NAMES: &[(SubDetector, &str)] = &[$((SubDetector($value), stringify!($name)),)*];
    };
}

sub_detectors! {
    FULL_SD_EVENT = 0x00,
    OFFLINE = 0x01,
    PIXEL_BARREL = 0x11,
    PIXEL_DISK = 0x12,
    PIXEL_B_LAYER = 0x13,
    PIXEL_IBL = 0x14,
    PIXEL_DBM = 0x15,
    SCT_BARREL_A_SIDE = 0x21,
    SCT_BARREL_C_SIDE = 0x22,
    SCT_ENDCAP_A_SIDE = 0x23,
    SCT_ENDCAP_C_SIDE = 0x24,
    TRT_ANCILLARY_CRATE = 0x30,
    TRT_BARREL_A_SIDE = 0x31,
    TRT_BARREL_C_SIDE = 0x32,
    TRT_ENDCAP_A_SIDE = 0x33,
    TRT_ENDCAP_C_SIDE = 0x34,
    LAR_EM_BARREL_A_SIDE = 0x41,
    LAR_EM_BARREL_C_SIDE = 0x42,
    LAR_EM_ENDCAP_A_SIDE = 0x43,
    LAR_EM_ENDCAP_C_SIDE = 0x44,
    LAR_HAD_ENDCAP_A_SIDE = 0x45,
    LAR_HAD_ENDCAP_C_SIDE = 0x46,
    LAR_FCAL_A_SIDE = 0x47,
    LAR_FCAL_C_SIDE = 0x48,
    LAR_EM_BARREL_ENDCAP_A_SIDE = 0x49,
    LAR_EM_BARREL_ENDCAP_C_SIDE = 0x4a,
    LAR_EM_HAD_ENDCAP_A_SIDE = 0x4b,
    LAR_EM_HAD_ENDCAP_C_SIDE = 0x4c,
    TILECAL_LASER_CRATE = 0x50,
    TILECAL_BARREL_A_SIDE = 0x51,
    TILECAL_BARREL_C_SIDE = 0x52,
    TILECAL_EXT_A_SIDE = 0x53,
    TILECAL_EXT_C_SIDE = 0x54,
    MUON_ANCILLARY_CRATE = 0x60,
    MUON_MDT_BARREL_A_SIDE = 0x61,
    MUON_MDT_BARREL_C_SIDE = 0x62,
    MUON_MDT_ENDCAP_A_SIDE = 0x63,
    MUON_MDT_ENDCAP_C_SIDE = 0x64,
    MUON_RPC_BARREL_A_SIDE = 0x65,
    MUON_RPC_BARREL_C_SIDE = 0x66,
    MUON_TGC_ENDCAP_A_SIDE = 0x67,
    MUON_TGC_ENDCAP_C_SIDE = 0x68,
    MUON_CSC_ENDCAP_A_SIDE = 0x69,
    MUON_CSC_ENDCAP_C_SIDE = 0x6a,
    MUON_MMEGA_ENDCAP_A_SIDE = 0x6b,
    MUON_MMEGA_ENDCAP_C_SIDE = 0x6c,
    MUON_STGC_ENDCAP_A_SIDE = 0x6d,
    MUON_STGC_ENDCAP_C_SIDE = 0x6e,
    TDAQ_BEAM_CRATE = 0x70,
    TDAQ_CALO_PREPROC = 0x71,
    TDAQ_CALO_CLUSTER_PROC_DAQ = 0x72,
    TDAQ_CALO_CLUSTER_PROC_ROI = 0x73,
    TDAQ_CALO_JET_PROC_DAQ = 0x74,
    TDAQ_CALO_JET_PROC_ROI = 0x75,
    TDAQ_MUON_CTP_INTERFACE = 0x76,
    TDAQ_CTP = 0x77,
    TDAQ_L2SV = 0x78,
    TDAQ_SFI = 0x79,
    TDAQ_SFO = 0x7a,
    TDAQ_LVL2 = 0x7b,
    TDAQ_HLT = 0x7c,
    TDAQ_LAR_MET = 0x7d,
    TDAQ_TILE_MET = 0x7e,
    TDAQ_FTK = 0x7f,
    FORWARD_BCM = 0x81,
    FORWARD_LUCID = 0x82,
    FORWARD_ZDC = 0x83,
    FORWARD_ALPHA = 0x84,
    FORWARD_AFP = 0x85,
    TDAQ_CALO_TOPO_PROC = 0x91,
    TDAQ_CALO_DIGITAL_PROC = 0x92,
    TDAQ_CALO_FEAT_EXTRACT_DAQ = 0x93,
    TDAQ_CALO_FEAT_EXTRACT_ROI = 0x94,
    OTHER = 0xff,
    BES_MDC = 0xa1,
    BES_TOF = 0xa2,
    BES_EMC = 0xa3,
    BES_MUC = 0xa4,
    BES_TRIGGER = 0xa5,
    BES_MRPC = 0xa7,
    BES_CGEM = 0xa8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_one_to_one() {
        for (value, name) in NAMES {
            assert_eq!(SubDetector::from_name(name), Some(*value));
            assert_eq!(value.name(), Some(*name));
        }
    }

    #[test]
    fn texts_name_what_is_known() {
        assert_eq!(SourceId(0x1299_0003).to_string(), "0x12990003");
        assert_eq!(format!("{:?} {:?}", SubDetector::TDAQ_CTP, SubDetector(0x99)), "TDAQ_CTP SubDetector(0x99)");
        assert_eq!(SubDetector::from_name("TDAQ"), None);
    }

    #[test]
    fn parts_of_the_word() {
        let id = SourceId(0xab79_500b);
        assert_eq!((id.sub_detector(), id.module(), id.optional()), (SubDetector::TDAQ_SFI, 0x500b, 0xab));
        let id = SourceId(0x0079_500b);
        assert_eq!((id.sub_detector(), id.module(), id.optional()), (SubDetector::TDAQ_SFI, 0x500b, 0));
        assert_eq!(id.sub_detector().group(), Some(DetectorGroup::Tdaq));
        assert_eq!(SubDetector::BES_MDC.group(), None);
    }

    #[test]
    fn the_upper_half_of_a_sub_detector_is_its_group() {
        use DetectorGroup::{Any, Forward, Lar, Muon, Other, Pixel, Sct, Tdaq, Tile, Trt};
        let named = [Any, Pixel, Sct, Trt, Lar, Tile, Muon, Tdaq, Forward];
        for value in 0..=u8::MAX {
            let expected = named.get(usize::from(value / 16)).copied().or((value >= 0xf0).then_some(Other));
            assert_eq!(SubDetector(value).group(), expected, "{value:#x}");
        }
    }
}
