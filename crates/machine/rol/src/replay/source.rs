//! Source identifiers of replayed links.

use eformat::SourceId;

/// Source identifier of the link that carries the record of each event: sub-detector OTHER, module 0.
pub const RECORD_SOURCE_ID: u32 = 0x00ff_0000;

/// The recorded source and its occurrence that a replayed link stands for; `None` for the record.
pub fn original_source(link: u32) -> Option<(SourceId, u32)> {
    (link != RECORD_SOURCE_ID).then_some((SourceId(link & ORIGINAL_BITS), link >> OCCURRENCE_SHIFT))
}

/// The link of a recorded ROB; `None` if its identifier has a meaning of ours or the occurrence does not fit.
pub(super) fn link_of(source_id: SourceId, occurrence: u32) -> Option<u32> {
    let is_free = source_id.0 & !ORIGINAL_BITS == 0 && source_id.0 != RECORD_SOURCE_ID;
    (is_free && occurrence <= OCCURRENCE_MAX).then_some(source_id.0 | occurrence << OCCURRENCE_SHIFT)
}

const OCCURRENCE_SHIFT: u32 = 24;
const ORIGINAL_BITS: u32 = (1 << OCCURRENCE_SHIFT) - 1;
const OCCURRENCE_MAX: u32 = 0xff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_sources_are_one_to_one() {
        for (source_id, occurrence, link) in
            [(0x42_0001, 0, 0x0042_0001), (0x42_0001, 1, 0x0142_0001), (0, 255, 0xff00_0000)]
        {
            assert_eq!(link_of(SourceId(source_id), occurrence), Some(link));
            assert_eq!(original_source(link), Some((SourceId(source_id), occurrence)));
        }
        assert_eq!(original_source(RECORD_SOURCE_ID), None);
    }

    #[test]
    fn identifiers_with_a_meaning_of_ours_are_refused() {
        for (source_id, occurrence) in [(0x0142_0001, 0), (RECORD_SOURCE_ID, 0), (0x42_0001, 256)] {
            assert_eq!(link_of(SourceId(source_id), occurrence), None);
        }
    }
}
