//! The fragments of an event that a worker has asked for so far.

use base::bulk::PageSlice;
use eformat::WORD_BYTES;

use crate::data::Data;
use crate::detector::Detector;
use crate::payload::{BadPayload, DataType, Records};

/// What was asked for, and what of it came; reused for the next event.
#[derive(Debug, Default)]
pub(crate) struct InHand {
    /// In rising source identifier.
    robs: Vec<Rob>,
    pub(crate) payload_bytes: u32,
    pub(crate) problems: Vec<(u32, BadPayload)>,
}

#[derive(Debug)]
struct Rob {
    source_id: u32,
    /// Its records, once it came; none if they were not legal.
    records: Option<PageSlice>,
}

impl InHand {
    pub(crate) fn clear(&mut self) {
        self.robs.clear();
        self.payload_bytes = 0;
        self.problems.clear();
    }

    /// ROBs that were asked for.
    pub(crate) fn asked(&self) -> u32 {
        self.robs.len() as u32
    }

    /// ROBs that were asked for and did not come.
    pub(crate) fn missing(&self) -> u32 {
        self.robs.iter().filter(|rob| rob.records.is_none()).count() as u32
    }

    /// Leaves in `source_ids`, rising and without repetition, what was not asked for yet, and remembers it as asked for.
    pub(crate) fn ask(&mut self, source_ids: &mut Vec<u32>) {
        source_ids.sort_unstable();
        source_ids.dedup();
        source_ids.retain(|source_id| self.find(*source_id).is_err());
        self.robs.extend(source_ids.iter().map(|source_id| Rob { source_id: *source_id, records: None }));
        self.robs.sort_unstable_by_key(|rob| rob.source_id);
    }

    /// Keeps a fragment if it was asked for and is not here yet.
    pub(crate) fn put(&mut self, detector: &Detector, source_id: u32, payload: &PageSlice) {
        let Ok(index) = self.find(source_id) else { return };
        let slot = &mut self.robs[index].records;
        if slot.is_some() {
            return;
        }
        let bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.payload_bytes = self.payload_bytes.saturating_add(bytes);
        let sub = detector.sub_system(source_id).expect("only ROBs of known sub-detectors are asked for");
        match Records::parse(payload.as_bytes(), DataType::of(sub)).map(Records::bytes) {
            Ok(bytes) => *slot = Some(payload.slice(WORD_BYTES..WORD_BYTES + bytes)),
            Err(problem) => {
                self.problems.push((source_id, problem));
                *slot = Some(PageSlice::default());
            }
        }
    }

    fn find(&self, source_id: u32) -> Result<usize, usize> {
        self.robs.binary_search_by_key(&source_id, |rob| rob.source_id)
    }
}

impl Data for InHand {
    fn records(&self, source_id: u32) -> Records<'_> {
        let rob = self.find(source_id).ok().and_then(|index| self.robs[index].records.as_ref());
        rob.map_or_else(Records::default, |records| Records::of_checked(records.as_bytes()))
    }
}
