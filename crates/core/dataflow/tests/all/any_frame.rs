//! What the fuzz target `message` and the replay of its corpus check.

use base::bulk::{Bulk, PageSlice};
use dataflow::wire::{decode, encode};

/// Any bytes are refused or come out unchanged.
///
/// # Panics
/// If bytes that are accepted do not come out unchanged.
pub(crate) fn check_any_frame(data: &[u8]) {
    let frame = PageSlice::copy_of(data);
    if let Ok((envelope, message)) = decode(&frame) {
        let mut again = Vec::new();
        encode(&envelope, &message, &mut again);
        let bulk = message.bulk().map(Bulk::slices).unwrap_or_default();
        bulk.iter().for_each(|slice| again.extend_from_slice(slice.as_bytes()));
        assert!(again == data, "{message:?} comes out as it came in");
    }
}
