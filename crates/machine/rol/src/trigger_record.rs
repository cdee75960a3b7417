//! What level-1 processors send: the payload of a fragment on their link.

use base::ids::EventId;
use dataflow::level1::roib::TriggerRecord;
use dataflow::message::{ROIS_MAX, Roi};

/// Why a payload is no record of a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTriggerRecord {
    /// The length is not that of a head and whole regions.
    #[error(
        "a record of {bytes} bytes: expected {TRIGGER_HEAD_BYTES} and {ROI_BYTES} for each region of interest, at most {ROIS_MAX}"
    )]
    Length {
        /// Bytes of the payload.
        bytes: usize,
    },
    /// Another version, or what this one does not know.
    #[error("byte {offset}: expected {expected}, found {found:#x}")]
    Field {
        /// Where in the payload.
        offset: usize,
        /// What is legal there.
        expected: &'static str,
        /// What is there.
        found: u32,
    },
}

/// Checks the payload of a fragment, as `docs/protocols/level1.md` describes it. Event and trigger type stand in its head; type 0 says that
/// the processor does not know it. A payload without bytes says nothing more.
///
/// # Errors
/// What is wrong with it, and where.
pub fn decode_trigger(event: EventId, trigger_type: u8, payload: &[u8]) -> Result<TriggerRecord, BadTriggerRecord> {
    let trigger_type = (trigger_type != 0).then_some(trigger_type);
    let nothing = TriggerRecord { event, trigger_type, ..TriggerRecord::default() };
    if payload.is_empty() {
        return Ok(nothing);
    }
    let length = BadTriggerRecord::Length { bytes: payload.len() };
    let (Some(head), true) = (payload.first_chunk(), payload.len() <= TRIGGER_BYTES_MAX) else { return Err(length) };
    let (regions, rest) = payload[TRIGGER_HEAD_BYTES..].as_chunks::<ROI_BYTES>();
    if !rest.is_empty() {
        return Err(length);
    }
    let [first, items, vetoed] = words::<TRIGGER_HEAD_BYTES, 3>(head);
    let [version, flags, bcid_low, bcid_high] = first.to_le_bytes();
    let bcid = u16::from_le_bytes([bcid_low, bcid_high]);
    let field = |offset, expected, found| Err(BadTriggerRecord::Field { offset, expected, found });
    if version != RECORD_VERSION {
        return field(0, "version 1", version.into());
    }
    if flags & !BCID_KNOWN != 0 {
        return field(1, "flags 0 or 1", flags.into());
    }
    if bcid > eformat::Bcid::MAX || (flags == 0 && bcid != 0) {
        return field(2, "a bunch crossing up to 4095, or 0 without the flag", bcid.into());
    }
    let rois = regions.iter().enumerate().map(|(index, region)| roi(TRIGGER_HEAD_BYTES + index * ROI_BYTES, region));
    Ok(TriggerRecord {
        bcid: (flags & BCID_KNOWN != 0).then_some(bcid),
        items,
        vetoed,
        rois: rois.collect::<Result<_, _>>()?,
        ..nothing
    })
}

/// The payload of a record, whose event and trigger type stand in the head of the fragment.
///
/// # Panics
/// If there are more than 255 regions of interest.
pub fn encode_trigger(record: &TriggerRecord) -> Vec<u8> {
    assert!(record.rois.len() <= ROIS_MAX, "an event has at most {ROIS_MAX} regions of interest");
    let flags = if record.bcid.is_some() { BCID_KNOWN } else { 0 };
    let [bcid_low, bcid_high] = record.bcid.unwrap_or(0).to_le_bytes();
    let first = u32::from_le_bytes([RECORD_VERSION, flags, bcid_low, bcid_high]);
    let regions = record.rois.iter().flat_map(|roi| {
        let place = u32::from_le_bytes([roi.kind, roi.ieta, roi.iphi, 0]);
        let [et, aux0, aux1] = [roi.et_mev, roi.aux_mev[0], roi.aux_mev[1]].map(i32::cast_unsigned);
        [place, roi.eta.to_bits(), roi.phi.to_bits(), et, aux0, aux1, roi.thresholds]
    });
    [first, record.items, record.vetoed].into_iter().chain(regions).flat_map(u32::to_le_bytes).collect()
}

fn roi(offset: usize, region: &[u8; ROI_BYTES]) -> Result<Roi, BadTriggerRecord> {
    let [place, eta, phi, et, aux0, aux1, thresholds] = words::<ROI_BYTES, 7>(region);
    let [kind, ieta, iphi, zero] = place.to_le_bytes();
    if kind > KIND_MAX || zero != 0 {
        let expected = "a kind from 0 to 4, and 0 in bits 24-31";
        return Err(BadTriggerRecord::Field { offset, expected, found: place });
    }
    for (at, angle) in [(4, eta), (8, phi)] {
        if !f32::from_bits(angle).is_finite() {
            return Err(BadTriggerRecord::Field { offset: offset + at, expected: "a finite angle", found: angle });
        }
    }
    let [eta, phi] = [eta, phi].map(f32::from_bits);
    let [et_mev, aux0, aux1] = [et, aux0, aux1].map(u32::cast_signed);
    Ok(Roi { kind, ieta, iphi, eta, phi, et_mev, aux_mev: [aux0, aux1], thresholds })
}

fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u32; WORDS] {
    let words = bytes.as_chunks::<4>().0;
    std::array::from_fn(|index| u32::from_le_bytes(words[index]))
}

/// Bytes of the longest payload.
pub const TRIGGER_BYTES_MAX: usize = TRIGGER_HEAD_BYTES + ROIS_MAX * ROI_BYTES;
/// Bytes before the regions of interest.
const TRIGGER_HEAD_BYTES: usize = 12;
const ROI_BYTES: usize = 28;
const RECORD_VERSION: u8 = 1;
const BCID_KNOWN: u8 = 1;
const KIND_MAX: u8 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The bytes of version 1, as the page of the protocol has them: processors are built with them, so they do not change.
    const GOLDEN: &str = "01 01 2301 05000000 07000000 \
         02 10 20 00 0000803f 000000c0 10270000 ffffffff 01000000 08000000";

    fn golden() -> (TriggerRecord, Vec<u8>) {
        let roi =
            Roi { kind: 2, ieta: 16, iphi: 32, eta: 1.0, phi: -2.0, et_mev: 10_000, aux_mev: [-1, 1], thresholds: 8 };
        let record = TriggerRecord {
            event: EventId(1 << 40),
            bcid: Some(0x123),
            trigger_type: Some(0x84),
            items: 5,
            vetoed: 7,
            rois: vec![roi],
        };
        let digits: Vec<char> = GOLDEN.chars().filter(char::is_ascii_hexdigit).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
        (record, digits.chunks(2).map(byte).collect())
    }

    #[test]
    fn the_bytes_of_version_1() {
        let (record, bytes) = golden();
        assert_eq!(encode_trigger(&record), bytes);
        assert_eq!(decode_trigger(record.event, 0x84, &bytes), Ok(record));
        let nothing = TriggerRecord { event: EventId(3), ..TriggerRecord::default() };
        assert_eq!(decode_trigger(EventId(3), 0, &[]), Ok(nothing.clone()));
        assert_eq!(encode_trigger(&nothing), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_is_no_record_is_said_with_its_place() {
        let (record, bytes) = golden();
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            decode_trigger(record.event, 0, &bytes).unwrap_err().to_string()
        };
        assert_eq!(with(0, 2), "byte 0: expected version 1, found 0x2");
        assert_eq!(with(1, 2), "byte 1: expected flags 0 or 1, found 0x2");
        assert_eq!(with(3, 0x10), "byte 2: expected a bunch crossing up to 4095, or 0 without the flag, found 0x1023");
        assert_eq!(with(12, 5), "byte 12: expected a kind from 0 to 4, and 0 in bits 24-31, found 0x201005");
        assert_eq!(with(19, 0x7f), "byte 16: expected a finite angle, found 0x7f800000");
        let long = decode_trigger(record.event, 0, &bytes[..39]).unwrap_err();
        assert_eq!(long, BadTriggerRecord::Length { bytes: 39 });
        let longest = vec![0; TRIGGER_BYTES_MAX + ROI_BYTES];
        assert!(matches!(decode_trigger(record.event, 0, &longest), Err(BadTriggerRecord::Length { .. })));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(start in any::<bool>(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = bytes;
            if start && bytes.len() >= 4 {
                bytes[..4].copy_from_slice(&[1, 1, 0, 0]);
            }
            if let Ok(record) = decode_trigger(EventId(9), 1, &bytes) {
                let again = encode_trigger(&record);
                prop_assert!(bytes.is_empty() || again == bytes);
                prop_assert_eq!(decode_trigger(EventId(9), 1, &again), Ok(record));
            }
        }
    }
}
