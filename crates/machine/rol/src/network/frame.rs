//! What level-1 processors send.

use base::ids::Lvl1Id;
use dataflow::level1::roib::SourceRecord;
use dataflow::message::{ROIS_MAX, Roi};

/// What one level-1 processor says of one event, as it travels over its connection.
///
/// All numbers are little-endian. A frame is a header of 24 bytes and at most 255 regions of interest of 28 bytes each.
///
/// | byte | header | |
/// |---|---|---|
/// | 0 | u32 | length of the frame in bytes, these four included |
/// | 4 | u32 | 0x314c0001: `L1`, and version 1 of this layout |
/// | 8 | u32 | source: which of `level1.sources`, from 0; the same in all frames of a connection |
/// | 12 | u32 | level-1 id; the frames of a source come in rising order |
/// | 16 | u16 | bunch crossing, 0 to 4095 |
/// | 18 | u8 | trigger type |
/// | 19 | u8 | flags: 1 the bunch crossing is known, 2 the trigger type is known, 4 the source has ended |
/// | 20 | u32 | level-1 items after their prescale, one bit each |
///
/// | byte | region | |
/// |---|---|---|
/// | 0 | u8, u8, u8, u8 | kind (0 electromagnetic, 1 jet, 2 muon, 3 missing, 4 total transverse energy), tower in η, tower in φ, 0 |
/// | 4 | f32, f32 | η, φ |
/// | 12 | i32 | transverse energy in MeV |
/// | 16 | i32, i32 | two more energies in MeV |
/// | 24 | u32 | thresholds passed, one bit each |
///
/// The frame that ends a source has no regions, and its event is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Level1Frame {
    /// Which of the sources.
    pub source: u32,
    /// What it says; `None` if it says that it has ended.
    pub record: Option<SourceRecord>,
}

/// A frame that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLevel1Frame {
    /// The length is not that of a header and whole regions.
    #[error(
        "a frame of {bytes} bytes: expected {HEADER_BYTES} and {ROI_BYTES} for each region of interest, at most {ROIS_MAX}"
    )]
    Length {
        /// Bytes of the frame.
        bytes: usize,
    },
    /// Another protocol, or another version.
    #[error("byte {offset}: expected {expected}, found {found:#x}")]
    Field {
        /// Where in the frame.
        offset: usize,
        /// What is legal there.
        expected: &'static str,
        /// What is there.
        found: u32,
    },
}

impl Level1Frame {
    /// Checks a frame, which includes its length.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadLevel1Frame> {
        let length = BadLevel1Frame::Length { bytes: bytes.len() };
        let (Some(header), true) = (bytes.first_chunk::<HEADER_BYTES>(), bytes.len() <= FRAME_BYTES_MAX) else {
            return Err(length);
        };
        let (regions, rest) = bytes[HEADER_BYTES..].as_chunks::<ROI_BYTES>();
        if !rest.is_empty() {
            return Err(length);
        }
        let [_, magic, source, lvl1_id, crossing, items] = words(header);
        let [bcid_low, bcid_high, trigger_type, flags] = crossing.to_le_bytes();
        let bcid = u16::from_le_bytes([bcid_low, bcid_high]);
        let field = |offset, expected, found| Err(BadLevel1Frame::Field { offset, expected, found });
        if magic != MAGIC {
            return field(4, "0x314c0001", magic);
        }
        if bcid > BCID_MAX {
            return field(16, "a bunch crossing up to 4095", u32::from(bcid));
        }
        if flags & !(BCID_KNOWN | TYPE_KNOWN | ENDED) != 0 {
            return field(19, "flags 1, 2 and 4", u32::from(flags));
        }
        if flags & ENDED != 0 {
            return if regions.is_empty() { Ok(Self { source, record: None }) } else { Err(length) };
        }
        let rois = regions.iter().enumerate().map(|(index, region)| roi(HEADER_BYTES + index * ROI_BYTES, region));
        Ok(Self {
            source,
            record: Some(SourceRecord {
                lvl1_id: Lvl1Id(lvl1_id),
                bcid: (flags & BCID_KNOWN != 0).then_some(bcid),
                trigger_type: (flags & TYPE_KNOWN != 0).then_some(trigger_type),
                items,
                rois: rois.collect::<Result<_, _>>()?,
            }),
        })
    }

    /// The bytes of the frame.
    ///
    /// # Panics
    /// If there are more than 255 regions of interest.
    pub fn encode(&self) -> Vec<u8> {
        let none = SourceRecord { lvl1_id: Lvl1Id(0), bcid: None, trigger_type: None, items: 0, rois: Vec::new() };
        let record = self.record.as_ref().unwrap_or(&none);
        assert!(record.rois.len() <= ROIS_MAX, "an event has at most {ROIS_MAX} regions of interest");
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(record.bcid.is_some(), BCID_KNOWN)
            | flag(record.trigger_type.is_some(), TYPE_KNOWN)
            | flag(self.record.is_none(), ENDED);
        let [bcid_low, bcid_high] = record.bcid.unwrap_or(0).to_le_bytes();
        let crossing = u32::from_le_bytes([bcid_low, bcid_high, record.trigger_type.unwrap_or(0), flags]);
        let len = HEADER_BYTES + record.rois.len() * ROI_BYTES;
        let header = [len as u32, MAGIC, self.source, record.lvl1_id.0, crossing, record.items];
        let regions = record.rois.iter().flat_map(|roi| {
            let place = u32::from_le_bytes([roi.kind, roi.ieta, roi.iphi, 0]);
            let [et, aux0, aux1] = [roi.et_mev, roi.aux_mev[0], roi.aux_mev[1]].map(i32::cast_unsigned);
            [place, roi.eta.to_bits(), roi.phi.to_bits(), et, aux0, aux1, roi.thresholds]
        });
        header.into_iter().chain(regions).flat_map(u32::to_le_bytes).collect()
    }
}

fn roi(offset: usize, region: &[u8; ROI_BYTES]) -> Result<Roi, BadLevel1Frame> {
    let [place, eta, phi, et, aux0, aux1, thresholds] = words(region);
    let [kind, ieta, iphi, zero] = place.to_le_bytes();
    if kind > KIND_MAX || zero != 0 {
        return Err(BadLevel1Frame::Field {
            offset,
            expected: "a kind from 0 to 4, and 0 in bits 24-31",
            found: place,
        });
    }
    let [eta, phi] = [eta, phi].map(f32::from_bits);
    if !eta.is_finite() || !phi.is_finite() {
        return Err(BadLevel1Frame::Field { offset: offset + 4, expected: "finite angles", found: eta.to_bits() });
    }
    let [et_mev, aux0, aux1] = [et, aux0, aux1].map(u32::cast_signed);
    Ok(Roi { kind, ieta, iphi, eta, phi, et_mev, aux_mev: [aux0, aux1], thresholds })
}

fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u32; WORDS] {
    let words = bytes.as_chunks::<4>().0;
    std::array::from_fn(|index| u32::from_le_bytes(words[index]))
}

/// Bytes of a frame without regions of interest.
pub(super) const HEADER_BYTES: usize = 24;
/// Bytes of the longest frame.
pub(super) const FRAME_BYTES_MAX: usize = HEADER_BYTES + ROIS_MAX * ROI_BYTES;
const ROI_BYTES: usize = 28;
const MAGIC: u32 = 0x314c_0001;
const BCID_KNOWN: u8 = 1;
const TYPE_KNOWN: u8 = 2;
const ENDED: u8 = 4;
const KIND_MAX: u8 = 4;
const BCID_MAX: u16 = eformat::Bcid::MAX;
