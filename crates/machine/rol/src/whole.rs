//! Whole fragments: those of an event, wherever they lie, and such as we make ourselves.

use base::bulk::{Bulk, PageSlice};
use dataflow::message::EventInfo;
use eformat::{Bcid, EventFormat, RobParams, Robs, RodHeader, SourceId, rob_prefix, rob_suffix};

/// The ROB fragments of a reply, with the detector data of each. One that is damaged inside is missing; where none begins the
/// reply ends.
pub fn fragments(bulk: &Bulk) -> impl Iterator<Item = (u32, PageSlice)> {
    joined(bulk).into_iter().flat_map(|slice| {
        let robs = Robs::new(EventFormat::V5, slice.as_bytes()).map_while(Result::ok);
        let found = robs.filter_map(|rob| Some((rob.source_id().0, slice.slice_of(rob.rod().ok()?.data()))));
        found.collect::<Vec<_>>()
    })
}

/// Slices with whole fragments: one that lies in several pieces is put together.
fn joined(bulk: &Bulk) -> Vec<PageSlice> {
    let is_whole = |slice: &PageSlice| Robs::new(EventFormat::V5, slice.as_bytes()).all(|rob| rob.is_ok());
    if bulk.slices().len() < 2 || bulk.slices().iter().all(is_whole) {
        return bulk.slices().to_vec();
    }
    vec![PageSlice::from(bulk.slices().iter().flat_map(PageSlice::as_bytes).copied().collect::<Vec<u8>>())]
}

/// A ROB fragment of our own around these data words, such as a result.
pub fn rob_fragment(source_id: SourceId, event: &EventInfo, run_number: u32, words: &[u32]) -> Bulk {
    let EventInfo { event, bcid, trigger_type, .. } = *event;
    let rod = RodHeader {
        source_id,
        run_number,
        lvl1_id: event.lvl1_id().0,
        bcid: Bcid::new(bcid).unwrap_or_default(),
        trigger_type,
        ..RodHeader::default()
    };
    let params = RobParams { rod, ..RobParams::default() };
    let data: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let rob = [rob_prefix(&params, data.len()).as_slice(), &data, rob_suffix(&params, data.len()).as_ref()].concat();
    Bulk::Pages(PageSlice::from(rob))
}
