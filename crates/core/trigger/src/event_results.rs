//! What the results among the fragments of an event say, for its header.

use eformat::{EventFormat, Rob, SourceId, SubDetector, WORD_BYTES};

use crate::result::{Decision, FILTER_RESULT, FilterResult, LEVEL2_RESULT, trigger_info};
use crate::windows::{FILTER_WINDOWS, WindowsResult};

/// What the results among the fragments of an event say, for its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventResults {
    /// Trigger information of level 2.
    pub lvl2_info: Vec<u32>,
    /// That of the event filter.
    pub hlt_info: Vec<u32>,
    /// Whether the windows of a filter have left something out.
    pub is_partial: bool,
}

impl EventResults {
    /// By the ROB fragments in these pieces, which may end anywhere; a result of another version says nothing.
    pub fn among<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut results = Self::default();
        eformat::each_rob(pieces, |rob| {
            let sub_detector = source_id(rob).map(SourceId::sub_detector);
            if matches!(sub_detector, Some(SubDetector::TDAQ_LVL2 | SubDetector::TDAQ_HLT)) {
                results.add_rob(rob);
            }
            true
        });
        results
    }

    /// Of a ROB fragment in these parts.
    fn add_rob(&mut self, parts: &[&[u8]]) {
        let joined;
        let bytes = match parts {
            [whole] => *whole,
            parts => {
                joined = parts.concat();
                &joined
            }
        };
        if let Ok(rob) = Rob::parse(EventFormat::V5, bytes)
            && let Ok(rod) = rob.rod()
        {
            self.add(rob.source_id(), rod.data());
        }
    }

    fn add(&mut self, source_id: SourceId, data: &[u8]) {
        if source_id == LEVEL2_RESULT
            && let Ok(decision) = Decision::from_bytes(data)
        {
            self.lvl2_info = trigger_info(decision.passed).to_vec();
        } else if source_id == FILTER_RESULT
            && let Ok(result) = FilterResult::from_bytes(data)
        {
            self.hlt_info = trigger_info(result.decision.passed).to_vec();
        } else if source_id == FILTER_WINDOWS {
            self.is_partial = WindowsResult::from_bytes(data).is_ok_and(|result| !result.left_out.is_empty());
        }
    }
}

/// That of a ROB fragment in these parts.
fn source_id(parts: &[&[u8]]) -> Option<SourceId> {
    let mut word = [0; WORD_BYTES];
    let bytes = parts.iter().copied().flatten().skip(SOURCE_ID_AT);
    let count = word.iter_mut().zip(bytes).map(|(to, from)| *to = *from).count();
    (count == WORD_BYTES).then(|| SourceId(u32::from_le_bytes(word)))
}

/// Where it stands, from the begin of the fragment.
const SOURCE_ID_AT: usize = 4 * WORD_BYTES;

#[cfg(test)]
mod tests {
    use eformat::{RobParams, RodHeader, marker, rob_prefix, rob_suffix};

    use super::*;
    use crate::FilterDecision;
    use crate::windows::{LeftOut, Window};

    fn rob(source_id: SourceId, words: &[u32]) -> Vec<u8> {
        let rod = RodHeader { source_id, ..RodHeader::default() };
        let params = RobParams { rod, ..RobParams::default() };
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        [rob_prefix(&params, data.len()).as_slice(), &data, rob_suffix(&params, data.len()).as_ref()].concat()
    }

    fn filter_result(passed: u64) -> Vec<u8> {
        let decision = FilterDecision { input: passed, passed, ..FilterDecision::default() };
        rob(FILTER_RESULT, &FilterResult { decision, reason: String::new() }.to_words())
    }

    /// Data in which a result stands, and behind it the results.
    fn event() -> Vec<u8> {
        let forged: Vec<u32> =
            filter_result(0xbad).as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!(forged[0], marker::ROB);
        let level2 = Decision { input: 5, passed: 5, ..Decision::default() };
        let left_out = vec![LeftOut { source: 7, chunks: 1, ..LeftOut::default() }];
        let windows = WindowsResult { asked: vec![Window::of(vec![8])], left_out };
        let robs = [
            rob(SourceId(0x0051_0000), &forged),
            rob(LEVEL2_RESULT, &level2.to_words()),
            filter_result(9),
            rob(FILTER_WINDOWS, &windows.to_words()),
        ];
        robs.concat()
    }

    #[test]
    fn results_are_the_same_wherever_pieces_end_and_data_cannot_forge_them() {
        let event = event();
        let expected =
            EventResults { lvl2_info: trigger_info(5).to_vec(), hlt_info: trigger_info(9).to_vec(), is_partial: true };
        for cut in 0..=event.len() {
            let (head, rest) = event.split_at(cut);
            assert_eq!(EventResults::among([head, rest].into_iter()), expected, "{cut}");
        }
        for len in 1..event.len() {
            assert_eq!(EventResults::among(event.chunks(len)), expected, "{len}");
        }
    }

    #[test]
    fn what_is_no_rob_says_nothing() {
        let results = EventResults::among([[7_u8; 100].as_slice(), &event()].into_iter());
        assert_eq!(results, EventResults::default());
        let short = [marker::ROB.to_le_bytes(), 2_u32.to_le_bytes()].concat();
        assert_eq!(EventResults::among([short.as_slice()].into_iter()), EventResults::default());
    }
}
