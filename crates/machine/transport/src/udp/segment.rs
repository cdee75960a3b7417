//! Whether a datagram is a segment of a message, or speaks of messages.

use super::counters::UdpCounters;
use super::header::{Acknowledgement, Ask, Cover, HEADER_LEN, NotOurs, Notice, Said, Seal};
use super::options::{Authenticate, UdpOptions};

/// What a datagram says that is one of ours, undamaged, and no segment or one of a message that may be. Otherwise counts why
/// not.
pub(super) fn check(
    header: &[u8; HEADER_LEN],
    payload: &[u8],
    options: &UdpOptions,
    seal: Seal<'_>,
    counters: &mut UdpCounters,
) -> Option<Said> {
    let cause = match Said::read(header, payload, seal) {
        Err(NotOurs::Magic) => &mut counters.not_ours,
        Err(NotOurs::Tag) => &mut counters.not_proved,
        Ok(
            Said::Ask(Ask { segment_len, .. })
            | Said::Sent(Notice { segment_len, .. })
            | Said::Received(Notice { segment_len, .. })
            | Said::GivenUp(Notice { segment_len, .. })
            | Said::Acknowledgement(Acknowledgement { segment_len, .. }),
        ) if segment_len as usize != options.segment_len() => &mut counters.other_segment_len,
        Ok(said @ (Said::Ask(_) | Said::Sent(_) | Said::Received(_) | Said::GivenUp(_) | Said::Acknowledgement(_))) => {
            return Some(said);
        }
        Ok(Said::Segment(header)) if header.cover != Cover::Tag && options.authenticate == Authenticate::Everything => {
            &mut counters.not_proved
        }
        Ok(Said::Segment(header)) => {
            let (offset, message_len) = (header.offset as usize, header.message_len as usize);
            let segment_len = options.segment_len();
            let is_legal = (options.limits.len_min()..=options.limits.len_max()).contains(&message_len);
            let fits = offset < message_len && payload.len() == segment_len.min(message_len - offset);
            if header.segment_len as usize != segment_len {
                &mut counters.other_segment_len
            } else if !is_legal || !fits || !offset.is_multiple_of(segment_len) {
                &mut counters.contradictory
            } else if !is_undamaged(header.cover, payload, options.checksum_payload) {
                &mut counters.corrupt
            } else {
                return Some(Said::Segment(header));
            }
        }
    };
    *cause += 1;
    None
}

/// Whether the payload is as it was sent, as far as anything says it; without authentication it must, where that `is_required`.
fn is_undamaged(cover: Cover, payload: &[u8], is_required: bool) -> bool {
    match cover {
        Cover::Tag => true,
        Cover::Checksum(checksum) => checksum == crc32fast::hash(payload),
        Cover::Nothing => !is_required,
    }
}
