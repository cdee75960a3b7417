//! ROBs that lie in several pieces of memory, such as those whose data are in pages of their own.

use crate::layout::{ROB_HEADER_WORDS, ROD_HEADER_WORDS, generic, marker, rod};
use crate::rob::{ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, check_rob};
use crate::word::WORD_BYTES;

/// Calls `each` for the parts of every ROB in bytes that lie in these pieces, as long as it says so. Any
/// part may end anywhere. False if it has said no, or where no whole ROB begins.
///
/// ```
/// let rob = eformat::lost_rob(&Default::default());
/// let mut found = Vec::new();
/// assert!(eformat::each_rob([&rob[..], &rob[..70], &rob[70..]], |parts| {
///     found.push(parts.len());
///     true
/// }));
/// assert_eq!(found, [1, 2]);
/// ```
pub fn each_rob<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, mut each: impl FnMut(&[&'a [u8]]) -> bool) -> bool {
    let mut begun: Vec<&'a [u8]> = Vec::new();
    let mut have = 0;
    for mut rest in pieces {
        while !rest.is_empty() {
            let len = match rob_len(&begun, rest) {
                RobLen::Known(len) => len,
                RobLen::Cut => usize::MAX,
                RobLen::NoRob => return false,
            };
            let (part, behind) = rest.split_at(rest.len().min(len - have));
            begun.push(part);
            have += part.len();
            rest = behind;
            if have == len {
                if !each(&begun) {
                    return false;
                }
                begun.clear();
                have = 0;
            }
        }
    }
    begun.is_empty()
}

/// Source identifier and extended level-1 id of a ROB in these parts, if it is sound, but for its checksum. One part has to pass
/// [`check_rob`]; several are as those that [`rob_prefix`](crate::rob_prefix) and [`rob_suffix`](crate::rob_suffix) make, and may end
/// anywhere.
pub fn check_parts(parts: &[&[u8]]) -> Option<(u32, u32)> {
    if let [rob] = parts {
        return check_rob(rob).ok().map(|summary| (summary.source_id.0, summary.lvl1_id));
    }
    let prefix: [u8; ROB_PREFIX_BYTES] = bytes_at(parts, 0)?;
    let word = |at: usize| word_at(&prefix, at);
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let checksum_bytes = if word(ROB_HEADER_WORDS - 1)? == 0 { 0 } else { WORD_BYTES };
    let data_bytes = len.checked_sub(ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES + checksum_bytes)?;
    let suffix: [u8; ROB_SUFFIX_BYTES] = bytes_at(parts, ROB_PREFIX_BYTES + data_bytes)?;
    let is_sound = word(generic::MARKER)? == marker::ROB
        && word(generic::HEADER_SIZE)? as usize == ROB_HEADER_WORDS
        && word(generic::STATUS_COUNT)? == 1
        && word(ROB_HEADER_WORDS + rod::MARKER)? == marker::ROD
        && word(ROB_HEADER_WORDS + rod::HEADER_SIZE)? as usize == ROD_HEADER_WORDS
        && word_at(&suffix, 1)? == 1
        && word_at(&suffix, 2)? as usize == data_bytes / WORD_BYTES;
    is_sound.then_some((word(generic::SOURCE_ID)?, word(ROB_HEADER_WORDS + rod::LVL1_ID)?))
}

/// The bytes from `at` on, wherever the parts end; `None` if they are too few.
fn bytes_at<const LEN: usize>(parts: &[&[u8]], mut at: usize) -> Option<[u8; LEN]> {
    let (mut bytes, mut have) = ([0; LEN], 0);
    for part in parts {
        let from = part.get(at..).unwrap_or_default();
        at = at.saturating_sub(part.len());
        let len = from.len().min(LEN - have);
        bytes[have..have + len].copy_from_slice(&from[..len]);
        have += len;
    }
    (have == LEN).then_some(bytes)
}

/// Length of a ROB, as it says.
enum RobLen {
    Known(usize),
    /// Further bytes say it.
    Cut,
    NoRob,
}

/// Length of the ROB that begins with these parts.
fn rob_len(begun: &[&[u8]], rest: &[u8]) -> RobLen {
    let mut head = [0; LEN_BYTES];
    let bytes = begun.iter().copied().chain([rest]).flatten();
    let count = head.iter_mut().zip(bytes).map(|(to, from)| *to = *from).count();
    if count < LEN_BYTES {
        return RobLen::Cut;
    }
    let word = |at: usize| word_at(&head, at).unwrap_or_default();
    match (word(generic::FRAGMENT_SIZE) as usize).checked_mul(WORD_BYTES) {
        Some(len) if word(generic::MARKER) == marker::ROB && len >= LEN_BYTES => RobLen::Known(len),
        _ => RobLen::NoRob,
    }
}

fn word_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at * WORD_BYTES..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// What says how long a ROB is: its first two words.
const LEN_BYTES: usize = 2 * WORD_BYTES;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RobParams, RodHeader, SourceId, write_rob_fragment};

    #[test]
    fn a_rob_is_sound_wherever_its_data_are_cut_and_no_byte_of_its_frame_may_change() {
        for adler32 in [false, true] {
            let rod = RodHeader { source_id: SourceId(7), lvl1_id: 9, ..RodHeader::default() };
            let params = RobParams { rod, adler32, ..RobParams::default() };
            let mut rob = vec![0xab; params.rob_bytes(40)];
            write_rob_fragment(&mut rob, &params, 40);
            for cut in 1..rob.len() {
                let (head, rest) = rob.split_at(cut);
                assert_eq!(check_parts(&[head, rest]), Some((7, 9)), "{cut}");
            }
            for cut in 0..=rob.len() {
                let (head, rest) = rob.split_at(cut);
                let mut found = 0;
                assert!(each_rob([&rob[..], head, &[], rest, &rob[..]], |parts| {
                    found += 1;
                    parts.concat() == rob
                }));
                assert_eq!(found, 3);
                assert_eq!(each_rob([&rob[..], head], |_| true), [0, rob.len()].contains(&cut), "cut");
            }
            let suffix = rob.len() - params.suffix_bytes();
            for at in [0, 8, 20, 32, 36, suffix + 4, suffix + 8] {
                let mut bad = rob.clone();
                bad[at] ^= 0x40;
                let (head, rest) = bad.split_at(80);
                assert_eq!(check_parts(&[head, rest]), None, "{at}");
            }
        }
    }
}
