//! Headers and trailers around the data of a fragment, the same for all kinds of links.

use base::bulk::PageSlice;
use base::ids::EventId;
use dataflow::message::EventInfo;
use dataflow::readout::fragment::{FragmentCheck, FragmentHead, Unplaced, status};
use eformat::{
    Bcid, ChecksumType, EventFormat, ROB_HEADER_WORDS, ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, RobParams, RodHeader,
    SourceId, StatusWord, WORD_BYTES, adler32, marker, write_rob_fragment,
};
use transport::page_pool::Page;

use crate::parameters::LinkParameters;

/// Makes fragments in pages and follows the level-1 ids of each link.
pub(crate) struct Fragments {
    source_ids: Vec<u32>,
    checks: Vec<FragmentCheck>,
    in_order: bool,
    run_number: u32,
    event_type: u32,
    adler32: bool,
}

/// A fragment to be made.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) link: usize,
    pub(crate) event: &'a EventInfo,
    /// Status bits known before the check.
    pub(crate) problems: u32,
}

impl Fragments {
    pub(crate) fn new(parameters: &LinkParameters) -> Self {
        Self {
            source_ids: parameters.source_ids.clone(),
            checks: vec![FragmentCheck::new(parameters.first); parameters.source_ids.len()],
            in_order: parameters.in_order,
            run_number: parameters.run_number,
            event_type: parameters.event_type,
            adler32: parameters.adler32,
        }
    }

    pub(crate) fn source_ids(&self) -> &[u32] {
        &self.source_ids
    }

    /// Bytes of a fragment that are neither data nor, in a replay, part of the ROD.
    pub(crate) fn overhead_bytes(&self) -> usize {
        ROB_PREFIX_BYTES + self.suffix_bytes()
    }

    /// Bytes of a fragment around a ROD that comes complete.
    pub(crate) fn rod_overhead_bytes(&self) -> usize {
        ROB_HEADER_BYTES + self.checksum_bytes()
    }

    /// Bytes behind the data.
    pub(crate) fn suffix_bytes(&self) -> usize {
        ROB_SUFFIX_BYTES + self.checksum_bytes()
    }

    /// A fragment with `data_bytes` of data, rounded down to whole words and cut if the page is too short. `fill` writes
    /// the data; it may leave what the page holds.
    pub(crate) fn frame(
        &mut self,
        mut page: Page,
        wanted: Wanted<'_>,
        data_bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(FragmentHead, PageSlice), Unplaced> {
        let room = page.len() - self.overhead_bytes();
        let cut = if data_bytes > room { status::TRUNCATED } else { 0 };
        let data_bytes = whole_words(data_bytes.min(room));
        let fragment_bytes = self.overhead_bytes() + data_bytes;
        let head = self.examine(&wanted, cut, fragment_bytes)?;
        let bytes = &mut page.bytes_mut()[..fragment_bytes];
        fill(&mut bytes[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + data_bytes]);
        let params = RobParams {
            rod: RodHeader {
                source_id: SourceId(self.source_ids[wanted.link]),
                run_number: self.run_number,
                lvl1_id: wanted.event.event.lvl1_id().0,
                bcid: Bcid::masked(u32::from(wanted.event.bcid)),
                trigger_type: wanted.event.trigger_type,
                event_type: self.event_type,
                ..RodHeader::default()
            },
            status: StatusWord(head.status),
            adler32: self.adler32,
            ..RobParams::default()
        };
        write_rob_fragment(bytes, &params, data_bytes);
        Ok((head, page.freeze(fragment_bytes)))
    }

    /// A fragment around the bytes of a complete ROD.
    ///
    /// # Panics
    /// If they do not fit into the page or are not whole words.
    pub(crate) fn wrap(
        &mut self,
        mut page: Page,
        wanted: Wanted<'_>,
        rod: &[u8],
    ) -> Result<(FragmentHead, PageSlice), Unplaced> {
        assert!(rod.len().is_multiple_of(WORD_BYTES), "a recorded ROD is whole words");
        let fragment_bytes = self.rod_overhead_bytes() + rod.len();
        let head = self.examine(&wanted, 0, fragment_bytes)?;
        let checksum = if self.adler32 { ChecksumType::Adler32 } else { ChecksumType::None };
        let header = [
            marker::ROB,
            (fragment_bytes / WORD_BYTES) as u32,
            ROB_HEADER_WORDS as u32,
            EventFormat::V5.version(),
            self.source_ids[wanted.link],
            1,
            head.status,
            checksum.to_word(),
        ];
        let bytes = &mut page.bytes_mut()[..fragment_bytes];
        for (word, value) in bytes.chunks_exact_mut(WORD_BYTES).zip(header) {
            word.copy_from_slice(&value.to_le_bytes());
        }
        let (rod_place, checksum_place) = bytes[ROB_HEADER_BYTES..].split_at_mut(rod.len());
        rod_place.copy_from_slice(rod);
        if self.adler32 {
            checksum_place.copy_from_slice(&adler32(rod).to_le_bytes());
        }
        Ok((head, page.freeze(fragment_bytes)))
    }

    /// Events that come by request may come in any order: only their distance is checked then.
    fn examine(&mut self, wanted: &Wanted<'_>, cut: u32, fragment_bytes: usize) -> Result<FragmentHead, Unplaced> {
        let event = wanted.event.event;
        let problems = wanted.problems | cut;
        let len_bytes = u32::try_from(fragment_bytes).expect("a page has at most 2^32 bytes");
        let mut head = self.checks[wanted.link].examine(event.lvl1_id(), problems, len_bytes)?;
        if !self.in_order {
            head.status = problems;
        }
        if head.event == event { Ok(head) } else { Err(unplaced(event, &head)) }
    }

    fn checksum_bytes(&self) -> usize {
        if self.adler32 { WORD_BYTES } else { 0 }
    }
}

/// The event lies more than the window away, so its 32-bit id belongs to another one.
fn unplaced(event: EventId, head: &FragmentHead) -> Unplaced {
    Unplaced { lvl1_id: event.lvl1_id(), newest: head.event }
}

/// Rounded down.
pub(crate) fn whole_words(bytes: usize) -> usize {
    bytes - bytes % WORD_BYTES
}

const ROB_HEADER_BYTES: usize = ROB_HEADER_WORDS * WORD_BYTES;

const _: () = assert!(ROB_HEADER_WORDS == 8);
