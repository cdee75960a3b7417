//! The numbers of an event moved on, so that it can be sent again as another one.

use std::ops::Range;

use crate::checksum::ChecksumType;
use crate::compression::CompressionType;
use crate::event::Event;
use crate::fragment::{EventFormat, Fragment};
use crate::layout::{event3, event4, event5, rod};
use crate::problem::Problem;
use crate::rod::Rod;
use crate::word::{WORD_BYTES, put, word};

/// Adds `global` to the global id of the event that fills `bytes`, which has 32 bits in formats 3.0 and 4.0. Adds `lvl1` to its level-1 ids, in the
/// header and in all RODs, so that those which agree go on to agree. Checksums that were right are right again.
///
/// What has no ROD header keeps its bytes, and so has a compressed payload as a whole.
///
/// # Errors
///
/// The first problem on the way to the ROBs; the event is as it was.
pub fn advance_ids(bytes: &mut [u8], global: u64, lvl1: u32) -> Result<(), Problem> {
    let event = Event::parse(bytes)?;
    let global_id = event.global_id().wrapping_add(global);
    let (low, high, lvl1_id) = match event.format() {
        EventFormat::V5 => (event5::GLOBAL_ID_LOW, Some(event5::GLOBAL_ID_HIGH), event5::LVL1_ID),
        EventFormat::V4 => (event4::GLOBAL_ID, None, event4::LVL1_ID),
        EventFormat::V3 => (event3::GLOBAL_ID, None, event3::LVL1_ID),
    };
    let at = |index| event.specific_offset(index) / WORD_BYTES;
    let (low, high, lvl1_id) = (at(low), high.map(at), at(lvl1_id));
    let mut lvl1_ids = vec![lvl1_id];
    // A sum over others comes behind them.
    let mut sums = Vec::new();
    if event.compression() == CompressionType::None {
        let payload_start = event.fragment().payload_range().start;
        for rob in event.robs(event.fragment().payload()) {
            let rob = rob.map_err(|problem| problem.shifted(payload_start as u64))?;
            let start = payload_start + rob.offset();
            if Rod::parse(event.format(), rob.fragment().payload()).is_ok() {
                let rod_start = start + rob.fragment().payload_range().start;
                lvl1_ids.push(rod_start / WORD_BYTES + rod::LVL1_ID);
                sums.extend(Sum::right(rob.fragment(), start));
            }
        }
        sums.extend(Sum::right(event.fragment(), 0));
    }
    put(bytes, low, global_id as u32);
    if let Some(high) = high {
        put(bytes, high, (global_id >> 32) as u32);
    }
    for index in lvl1_ids {
        put(bytes, index, word(bytes, index).wrapping_add(lvl1));
    }
    sums.into_iter().for_each(|sum| sum.renew(bytes));
    Ok(())
}

/// A checksum in an event.
struct Sum {
    kind: ChecksumType,
    payload: Range<usize>,
}

impl Sum {
    /// That of a fragment at a place in the event; `None` if it has none, or a wrong one.
    fn right(fragment: &Fragment<'_>, start: usize) -> Option<Self> {
        let kind = fragment.checksum_type();
        let Range { start: from, end: to } = fragment.payload_range();
        let is_right = kind != ChecksumType::None && fragment.verify_checksum().is_ok();
        is_right.then_some(Self { kind, payload: start + from..start + to })
    }

    fn renew(self, bytes: &mut [u8]) {
        if let Some(sum) = self.kind.compute(&bytes[self.payload.clone()]) {
            put(bytes, self.payload.end / WORD_BYTES, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CheckOptions, EventHeader, RobParams, RodHeader, SourceId, check_event, event_envelope, write_rob_fragment,
    };

    fn event(global_id: u64, lvl1_id: u32, rod_ids: &[u32]) -> Vec<u8> {
        let robs: Vec<Vec<u8>> = rod_ids
            .iter()
            .map(|&lvl1_id| {
                let rod = RodHeader { source_id: SourceId(0x42_0001), lvl1_id, ..RodHeader::default() };
                let params = RobParams { rod, adler32: true, ..RobParams::default() };
                let mut rob = vec![7; params.rob_bytes(8)];
                write_rob_fragment(&mut rob, &params, 8);
                rob
            })
            .collect();
        let header = EventHeader { global_id, lvl1_id, ..EventHeader::default() };
        let mut bytes = Vec::new();
        let trailer = event_envelope(&header, robs.iter().map(Vec::as_slice), true, &mut bytes).unwrap();
        robs.iter().for_each(|rob| bytes.extend_from_slice(rob));
        bytes.extend_from_slice(&trailer);
        bytes
    }

    #[test]
    fn all_ids_move_on_together_and_checksums_follow() {
        let mut bytes = event(u64::from(u32::MAX), 0xffff_ffff, &[0xffff_ffff, 17]);
        let before = bytes.clone();
        advance_ids(&mut bytes, 10, 10).unwrap();
        assert!(bytes == event(u64::from(u32::MAX) + 10, 9, &[9, 27]), "as if it had been made so");
        advance_ids(&mut bytes, 10_u64.wrapping_neg(), 10_u32.wrapping_neg()).unwrap();
        assert!(bytes == before);
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut bytes = event(1, 1, &[1]);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        advance_ids(&mut bytes, 1, 1).unwrap();
        let mut problems = Vec::new();
        check_event(&bytes, &CheckOptions::default(), &mut problems);
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}
