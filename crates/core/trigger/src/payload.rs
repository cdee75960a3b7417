//! Checked views of the data of one ROD, which its first word describes: `0xD1 << 24 | data type << 16 | records`.
//!
//! Words behind the records are padding and are not read.

use dataflow::message::Roi;
use eformat::WORD_BYTES;
use thiserror::Error;

use crate::detector::RoiKind;
use crate::geography::{SubSystem, TOWERS_ETA, TOWERS_PHI};

/// What the records of a payload are; the discriminant is the data type in its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum DataType {
    /// Electromagnetic cells.
    EmCells = 1,
    /// Hadronic towers.
    HadTowers = 2,
    /// Tracks.
    Tracks = 3,
    /// Muon stubs.
    MuonStubs = 4,
    /// Level-1 regions of interest.
    Rois = 5,
    /// The words of the central trigger.
    CentralTrigger = 6,
}

/// The records of a payload whose first word was checked against its length.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records<'a> {
    words: &'a [[u8; WORD_BYTES]],
}

/// Why a payload is taken as one without records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadPayload {
    /// Not a whole number of words, or none at all.
    #[error("the payload has {bytes} bytes; expected whole words of 4, at least one")]
    Length {
        /// Its length.
        bytes: usize,
    },
    /// Not a payload of this format.
    #[error("the first word of the payload is {word:#010x}; expected 0xd1 in its upper eight bits")]
    Marker {
        /// The first word.
        word: u32,
    },
    /// Records of another kind than the source has.
    #[error("the payload holds data of type {found} (word 0, bits 16-23); expected type {expected}")]
    DataType {
        /// The type it claims.
        found: u8,
        /// The type of its source.
        expected: u8,
    },
    /// Fewer words than its records need.
    #[error("the payload announces {records} records, which need {needed} words; it has {found}")]
    Truncated {
        /// Records by the first word.
        records: u16,
        /// Words needed, the first included.
        needed: usize,
        /// Words there are.
        found: usize,
    },
    /// Fewer records than its content needs.
    #[error("the payload of the central trigger has {found} records; expected {expected}")]
    Records {
        /// Records by the first word.
        found: usize,
        /// Those needed.
        expected: usize,
    },
}

/// A track, or a muon stub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Pseudorapidity in units of 10⁻⁴.
    pub eta_q: i32,
    /// Azimuth in units of 2π/65536.
    pub phi_q: i32,
    /// Charge over transverse momentum in the detector's unit; 0 if not measured.
    pub qpt_q: i32,
    /// Of a track: z at the beam line in the detector's unit. Of a stub: its quality word.
    pub low: i16,
}

/// Level-1 accept as the central trigger tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CentralTrigger {
    /// Low 32 bits of the event number.
    pub event: u32,
    /// Bunch crossing.
    pub bcid: u32,
    /// Trigger type.
    pub trigger_type: u32,
    /// Items before prescale.
    pub items_before_prescale: u32,
    /// Items after prescale.
    pub items: u32,
}

impl DataType {
    /// What the ROBs of a sub-detector hold.
    #[must_use]
    pub const fn of(sub: SubSystem) -> Self {
        match sub {
            SubSystem::Tracker => Self::Tracks,
            SubSystem::EmCalo => Self::EmCells,
            SubSystem::HadCalo => Self::HadTowers,
            SubSystem::Muon => Self::MuonStubs,
        }
    }

    const fn words_per_record(self) -> usize {
        match self {
            Self::EmCells | Self::HadTowers | Self::CentralTrigger => 1,
            Self::Tracks | Self::MuonStubs => 2,
            Self::Rois => 4,
        }
    }
}

impl<'a> Records<'a> {
    /// Checks the first word of a payload.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(payload: &'a [u8], expected: DataType) -> Result<Self, BadPayload> {
        let (words, rest) = payload.as_chunks::<WORD_BYTES>();
        let (Some((first, words)), true) = (words.split_first(), rest.is_empty()) else {
            return Err(BadPayload::Length { bytes: payload.len() });
        };
        let word = u32::from_le_bytes(*first);
        let (data_type, records) = ((word >> 16) as u8, word as u16);
        if word >> 24 != MARKER {
            return Err(BadPayload::Marker { word });
        }
        if data_type != expected as u8 {
            return Err(BadPayload::DataType { found: data_type, expected: expected as u8 });
        }
        let needed = usize::from(records) * expected.words_per_record();
        let Some(words) = words.get(..needed) else {
            return Err(BadPayload::Truncated { records, needed: needed + 1, found: words.len() + 1 });
        };
        Ok(Self { words })
    }

    /// The records without the words before and behind them, for [`Records::of_checked`].
    pub(crate) fn bytes(self) -> usize {
        self.words.len() * WORD_BYTES
    }

    /// From bytes that a `parse` has found to be whole records of the type they are read as.
    pub(crate) fn of_checked(bytes: &'a [u8]) -> Self {
        Self { words: bytes.as_chunks().0 }
    }

    /// Channel and ADC counts of calorimeter records.
    pub fn cells(self) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.words.iter().map(|word| u32::from_le_bytes(*word)).map(|word| (word >> 16, word & 0xffff))
    }

    /// Tracks or muon stubs.
    pub fn tracks(self) -> impl Iterator<Item = Track> + 'a {
        self.words.as_chunks::<2>().0.iter().map(|record| {
            let [angles, rest] = record.map(u32::from_le_bytes);
            Track {
                eta_q: i32::from(angles as i16),
                phi_q: (angles >> 16) as i32,
                qpt_q: i32::from((rest >> 16) as i16),
                low: rest as i16,
            }
        })
    }

    /// Regions of interest. Energies beside the main one come in steps of 250 MeV, rounded down. Positions are made from the
    /// tower numbers, so the direction of missing energy is known to half a tower.
    pub fn rois(self) -> impl Iterator<Item = Roi> + 'a {
        self.words.as_chunks::<4>().0.iter().map(|record| {
            let [place, et, aux, thresholds] = record.map(u32::from_le_bytes);
            let (kind, ieta, iphi) = ((place >> 24) as u8, (place >> 16) as u8, (place >> 8) as u8);
            let (eta, phi) = position(kind, ieta, iphi);
            Roi {
                kind,
                ieta,
                iphi,
                eta,
                phi,
                et_mev: et.cast_signed(),
                aux_mev: [(aux >> 16) as i16, aux as i16].map(|steps| i32::from(steps) * AUX_STEP_MEV),
                thresholds,
            }
        })
    }

    /// The words of the central trigger.
    ///
    /// # Errors
    /// Too few records.
    pub fn central_trigger(self) -> Result<CentralTrigger, BadPayload> {
        let Some(words) = self.words.first_chunk::<5>() else {
            return Err(BadPayload::Records { found: self.words.len(), expected: 5 });
        };
        let [event, bcid, trigger_type, items_before_prescale, items] = words.map(u32::from_le_bytes);
        Ok(CentralTrigger { event, bcid, trigger_type, items_before_prescale, items })
    }
}

/// Clusters and jets are centred on the upper corner of their tower, muons on its middle.
fn position(kind: u8, ieta: u8, iphi: u8) -> (f32, f32) {
    let offset = match kind {
        kind if kind == RoiKind::Em as u8 || kind == RoiKind::Jet as u8 => 1.0,
        kind if kind == RoiKind::Muon as u8 => 0.5,
        kind if kind == RoiKind::MissingEt as u8 => return (0.0, azimuth(f64::from(iphi) + 0.5)),
        _ => return (0.0, 0.0),
    };
    let eta = -2.5 + 5.0 / f64::from(TOWERS_ETA) * (f64::from(ieta) + offset);
    (eta as f32, azimuth(f64::from(iphi) + offset))
}

fn azimuth(towers: f64) -> f32 {
    let towers = towers % f64::from(TOWERS_PHI);
    (towers * (std::f64::consts::TAU / f64::from(TOWERS_PHI))) as f32
}

const MARKER: u32 = 0xd1;
const AUX_STEP_MEV: i32 = 250;
