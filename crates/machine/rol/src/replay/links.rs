//! The replayed links of one read-out system.

use std::sync::Arc;

use base::bulk::PageSlice;
use dataflow::message::EventInfo;
use dataflow::readout::fragment::{FragmentHead, Unplaced};
use eformat::{GenericStatus, RobStatus, StatusWord};
use transport::page_pool::Page;

use super::index::Replay;
use super::source::RECORD_SOURCE_ID;
use crate::fragments::{Fragments, Wanted};
use crate::input_index;
use crate::parameters::{LinkParameters, LinksError, ReadOutError};

/// Reads an event from its file once per read-out system and copies the RODs of its links to their pages. Unlike the
/// other kinds it allocates, per event, the list of the RODs and the record.
pub(crate) struct ReplayLinks {
    replay: Arc<Replay>,
    repeat: bool,
    source_ids: Vec<u32>,
    /// The event that is read out.
    event: Vec<u8>,
    record: Vec<u8>,
    /// Where the RODs lie in the event, by link and rising.
    rods: Vec<(u32, std::ops::Range<usize>)>,
}

impl ReplayLinks {
    pub(crate) fn new(parameters: &LinkParameters, replay: Arc<Replay>, repeat: bool) -> Result<Self, LinksError> {
        let known = replay.source_ids();
        if let Some(&source_id) = parameters.source_ids.iter().find(|source_id| !known.contains(source_id)) {
            return Err(LinksError::UnknownSource { source_id, sources: known.len() });
        }
        let source_ids = parameters.source_ids.clone();
        Ok(Self { replay, repeat, source_ids, event: Vec::new(), record: Vec::new(), rods: Vec::new() })
    }

    /// Bytes of the longest fragment of any link.
    pub(crate) fn longest_fragment(&self, fragments: &Fragments) -> usize {
        let largest = self.replay.largest();
        let rod = largest.rod + fragments.rod_overhead_bytes();
        let has_record = self.source_ids.contains(&RECORD_SOURCE_ID);
        if has_record { rod.max(largest.record + fragments.overhead_bytes()) } else { rod }
    }

    pub(crate) fn prepare(&mut self, event: &EventInfo) -> Result<(), ReadOutError> {
        let events = self.replay.events();
        let index = input_index(event.ordinal, events, self.repeat).ok_or(ReadOutError::BehindEnd {
            event: event.event,
            ordinal: event.ordinal,
            events,
        })?;
        let round = event.ordinal / events as u64;
        self.replay.event_of_round(index, round, &mut self.event)?;
        let (split, links) = self.replay.split_event(index, &self.event)?;
        self.record = split.template;
        self.rods.clear();
        self.rods.extend(links.into_iter().zip(split.children.into_iter().map(|child| child.range)));
        self.rods.sort_unstable_by_key(|(link, _)| *link);
        Ok(())
    }

    pub(crate) fn fragment(
        &self,
        fragments: &mut Fragments,
        page: Page,
        wanted: Wanted<'_>,
    ) -> Result<(FragmentHead, PageSlice), Unplaced> {
        let source_id = self.source_ids[wanted.link];
        if source_id == RECORD_SOURCE_ID {
            return fragments.frame(page, wanted, self.record.len(), |data| {
                data.copy_from_slice(&self.record);
            });
        }
        match self.rods.binary_search_by_key(&source_id, |(link, _)| *link) {
            Ok(at) => fragments.wrap(page, wanted, &self.event[self.rods[at].1.clone()]),
            Err(_) => fragments.frame(page, Wanted { problems: DUMMY.0, ..wanted }, 0, |_| {}),
        }
    }
}

/// Status of the fragment of a link that the event does not have.
const DUMMY: StatusWord = StatusWord::rob(GenericStatus::DUMMY, RobStatus::empty());
