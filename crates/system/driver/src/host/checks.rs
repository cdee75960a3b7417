//! The check of fragments that arrive for building, beside that of the messages that bring them.

use base::bulk::{Bulk, BulkParts, PageSlice};
use base::ids::EventId;
use dataflow::message::DataReply;

/// How fragments are checked that arrive for building, beside their ROB headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentChecks {
    /// Every ROD header, and the level-1 id against the event. Replayed RODs may be of another version, and carry what
    /// level-1 id they like.
    pub rods: bool,
    /// Every byte is read, and their sum kept.
    pub data: bool,
}

impl FragmentChecks {
    /// Whether every fragment of every reply is what it should be.
    pub(super) fn passes(self, replies: &[DataReply], bulk: &Bulk) -> bool {
        self.passes_as_whole(replies, bulk) || self.passes_in_pieces(replies, bulk)
    }

    /// Fragments may lie in several pieces, where their data are in pages of their own.
    #[cold]
    fn passes_in_pieces(self, replies: &[DataReply], bulk: &Bulk) -> bool {
        let mut parts = BulkParts::new(bulk.clone());
        replies.iter().all(|reply| {
            let part = parts.take(reply.len_bytes as usize);
            let is_it = |id: u32| !self.rods || id == reply.event.lvl1_id().0;
            let sound = |rob: &[&[u8]]| eformat::check_parts(rob).is_some_and(|(_, lvl1_id)| is_it(lvl1_id));
            part.len() == reply.len_bytes as usize
                && eformat::each_rob(part.slices().iter().map(PageSlice::as_bytes), sound)
        })
    }

    fn passes_as_whole(self, replies: &[DataReply], bulk: &Bulk) -> bool {
        let mut slices = bulk.slices().iter().map(PageSlice::as_bytes);
        let mut rest: &[u8] = &[];
        replies.iter().all(|reply| {
            let mut left = reply.len_bytes as usize;
            while left > 0 {
                if rest.is_empty() {
                    let Some(slice) = slices.next() else { return false };
                    rest = slice;
                }
                let (part, behind) = rest.split_at(left.min(rest.len()));
                (rest, left) = (behind, left - part.len());
                if !self.passes_slice(part, reply.event) {
                    return false;
                }
            }
            true
        })
    }

    /// Those replies of which every fragment is what it should be.
    pub(super) fn sound_ones(self, replies: Vec<DataReply>, bulk: Bulk) -> (Vec<DataReply>, Bulk) {
        let mut parts = BulkParts::new(bulk);
        let (mut sound, mut slices) = (Vec::new(), Vec::new());
        for reply in replies {
            let part = parts.take(reply.len_bytes as usize);
            if self.passes(core::slice::from_ref(&reply), &part) {
                slices.extend_from_slice(part.slices());
                sound.push(reply);
            }
        }
        (sound, Bulk::PageList(slices))
    }

    fn passes_slice(self, mut bytes: &[u8], event: EventId) -> bool {
        if !self.rods {
            return eformat::Robs::new(eformat::EventFormat::V5, bytes).all(|rob| rob.is_ok());
        }
        while !bytes.is_empty() {
            let Some(len) = rob_len(bytes) else { return false };
            let (rob, rest) = bytes.split_at(len);
            match eformat::check_rob(rob) {
                Ok(summary) if summary.lvl1_id == event.lvl1_id().0 => bytes = rest,
                _ => return false,
            }
        }
        true
    }
}

/// Sum of bytes, in steps that compilers turn into a few instructions for many bytes.
pub fn byte_sum(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let of = |block: &[u8]| block.iter().map(|&byte| u32::from(byte)).sum::<u32>();
    blocks.iter().map(|block| u64::from(of(block))).sum::<u64>() + u64::from(of(rest))
}

/// Length of the ROB fragment at the beginning of `bytes`, if all of it is there.
fn rob_len(bytes: &[u8]) -> Option<usize> {
    let words = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
    let len = usize::try_from(words).ok()?.checked_mul(eformat::WORD_BYTES)?;
    (len > 0 && len <= bytes.len()).then_some(len)
}
