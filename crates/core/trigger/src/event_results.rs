//! What the results among the fragments of an event say, for its header.

use eformat::{EventFormat, Robs, SourceId, SubDetector};

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
    /// By the fragments in these pieces, in any of which they begin anew; a result of another version says nothing.
    pub fn among<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut results = Self::default();
        for rob in pieces.flat_map(|piece| Robs::new(EventFormat::V5, piece)).flatten() {
            let source_id = rob.source_id();
            if matches!(source_id.sub_detector(), SubDetector::TDAQ_LVL2 | SubDetector::TDAQ_HLT)
                && let Ok(rod) = rob.rod()
            {
                results.add(source_id, rod.data());
            }
        }
        results
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
