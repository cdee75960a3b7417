//! How long a record is that describes the pieces of a frame.

use super::lane::Geometry;

/// The most pieces of a record besides as many bytes as may lie in it.
pub(super) fn pieces_max(geometry: Geometry) -> usize {
    (geometry.record_max() - geometry.inline_max() - RECORD_HEAD_LEN) / PIECE_LEN
}

/// The region of a piece that lies in the record.
pub(super) const INLINE: u32 = u32::MAX;
pub(super) const RECORD_HEAD_LEN: usize = 16;
pub(super) const PIECE_LEN: usize = 24;
