//! How much is sent before it is asked for.

/// How much of a message is sent before its receiver asks for the rest, which it does in parts that its buffer holds. A long message
/// that is sent at once would find no room, and be sent twice.
pub(super) fn first_part_len(len: usize, segment_len: usize, unasked_len: usize) -> usize {
    if len > unasked_len { len.min((unasked_len / segment_len).max(1) * segment_len) } else { len }
}
