//! Data that belong to events by their time: chunks in pages, and what stands around those of an event.

use base::bulk::{Bulk, PageSlice};
use dataflow::readout::ros::{Framing, TimedHead};
use eformat::{
    Adler32, Bcid, ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, RobParams, RodHeader, SourceId, StatusWord, WORD_BYTES,
    rob_prefix, rob_suffix,
};
use transport::page_pool::Page;

/// Makes the ROB fragments of events from chunks, which stay in their pages.
#[derive(Clone, Copy, Debug)]
pub struct TimedFragments {
    /// Run number in the ROD headers.
    pub run_number: u32,
    /// Whether each fragment ends with an Adler-32 of its ROD.
    pub adler32: bool,
}

/// What stands before the payload of a chunk, in its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    /// As the source says, in ns of its clock.
    pub begin: u64,
    /// Likewise.
    pub end: u64,
    /// Length of the payload in bytes; it is filled up with zeros to whole words.
    pub len: u32,
    /// What is wrong with it, as in a ROB header.
    pub status: StatusWord,
}

impl ChunkHead {
    /// Its length, which the payload stands behind.
    pub const BYTES: usize = 24;
    /// Bytes of a page behind the longest payload.
    pub const TAILROOM: usize = WORD_BYTES - 1;

    /// The chunk in a page in which the payload stands already.
    ///
    /// # Panics
    /// If the page is too short.
    pub fn put(&self, mut page: Page) -> PageSlice {
        let payload_end = Self::BYTES + self.len as usize;
        let end = payload_end.next_multiple_of(WORD_BYTES);
        let bytes = &mut page.bytes_mut()[..end];
        bytes[..Self::BYTES].copy_from_slice(&self.emit());
        bytes[payload_end..].fill(0);
        page.freeze(end)
    }

    fn emit(&self) -> [u8; Self::BYTES] {
        head(self.begin, self.end, self.len, self.status.0)
    }

    /// The chunks in the data of a ROD, each with its payload; `None` if they are none. Before them stands the head of the event.
    pub fn all_in(data: &[u8]) -> Option<(EventHead, Vec<Chunk<'_>>)> {
        let (first, mut rest) = data.split_first_chunk::<{ Self::BYTES }>()?;
        let event = Self::parse(first);
        let event = EventHead { begin: event.begin, end: event.end, chunks: event.len, status: event.status };
        let mut chunks = Vec::new();
        while let Some((bytes, behind)) = rest.split_first_chunk::<{ Self::BYTES }>() {
            let head = Self::parse(bytes);
            let len = head.len as usize;
            let (payload, _) = behind.split_at_checked(len)?;
            rest = behind.get(len.next_multiple_of(WORD_BYTES)..)?;
            chunks.push((head, payload));
        }
        (rest.is_empty() && chunks.len() == event.chunks as usize).then_some((event, chunks))
    }

    /// The head in these bytes.
    pub(crate) fn parse(bytes: &[u8; Self::BYTES]) -> Self {
        let u64_at = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        let u32_at = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        Self { begin: u64_at(0), end: u64_at(8), len: u32_at(16), status: StatusWord(u32_at(20)) }
    }
}

/// A chunk in the data of a ROD: its head and its payload.
pub type Chunk<'a> = (ChunkHead, &'a [u8]);

/// What stands before the chunks of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHead {
    /// What the chunks meet, in ns: with what the event takes before and behind it.
    pub begin: u64,
    /// The end of that.
    pub end: u64,
    /// How many there are.
    pub chunks: u32,
    /// As in the ROB header.
    pub status: StatusWord,
}

impl Framing for TimedFragments {
    fn frame(&self, head: &TimedHead, chunks: Bulk) -> Bulk {
        let data_bytes = ChunkHead::BYTES + chunks.len();
        let params = RobParams {
            rod: RodHeader {
                minor_version: TIMED,
                source_id: SourceId(head.rob),
                run_number: self.run_number,
                lvl1_id: head.event.event.lvl1_id().0,
                bcid: Bcid::masked(u32::from(head.event.bcid)),
                trigger_type: head.event.trigger_type,
                event_type: head.chunks,
            },
            status: StatusWord(head.status),
            adler32: self.adler32,
            ..RobParams::default()
        };
        // One small piece of memory for what stands before the chunks and behind.
        let mut around = Vec::with_capacity(ROB_PREFIX_BYTES + ChunkHead::BYTES + ROB_SUFFIX_BYTES + WORD_BYTES);
        around.extend_from_slice(&rob_prefix(&params, data_bytes));
        around.extend_from_slice(&self::head(head.interval.begin, head.interval.end, head.chunks, head.status));
        let before = around.len();
        around.extend_from_slice(&rob_suffix(&params, data_bytes));
        if self.adler32 {
            let mut sum = Adler32::new();
            sum.update(&around[ROB_PREFIX_BYTES - ROD_HEADER_BYTES..before]);
            chunks.slices().iter().for_each(|chunk| sum.update(chunk.as_bytes()));
            sum.update(&around[before..]);
            around.extend_from_slice(&sum.value().to_le_bytes());
        }
        let mut first = PageSlice::from(around);
        let first_part = first.split_to(before);
        Bulk::Pages(first_part).followed_by(chunks).followed_by(Bulk::Pages(first))
    }
}

fn head(begin: u64, end: u64, count: u32, status: u32) -> [u8; ChunkHead::BYTES] {
    let mut bytes = [0; ChunkHead::BYTES];
    bytes[..8].copy_from_slice(&begin.to_le_bytes());
    bytes[8..16].copy_from_slice(&end.to_le_bytes());
    bytes[16..20].copy_from_slice(&count.to_le_bytes());
    bytes[20..].copy_from_slice(&status.to_le_bytes());
    bytes
}

/// Minor version of RODs whose data are chunks.
pub const TIMED: u16 = 1;

const ROD_HEADER_BYTES: usize = eformat::ROD_HEADER_WORDS * WORD_BYTES;

#[cfg(test)]
mod tests {
    use base::ids::EventId;
    use dataflow::message::EventInfo;
    use timing::Interval;
    use transport::page_pool::{Pool, PoolOptions};

    use super::*;

    #[test]
    fn chunks_of_any_length_are_in_the_fragment_and_one_may_be_in_two() {
        let options = PoolOptions { name: "test".into(), page_len: 256, pages: 3, prefault: false };
        let pool = Pool::new(&options).unwrap();
        let heads = [(0, 7), (1, 0), (101, 3)].map(|(len, status)| ChunkHead {
            begin: u64::from(len) * 10,
            end: u64::from(len) * 10 + 9,
            len,
            status: StatusWord(status),
        });
        let payload = |len: u32| (0..len).map(|at| at as u8 + 1).collect::<Vec<_>>();
        let chunks = heads.map(|head| {
            let mut page = pool.take().unwrap();
            page.bytes_mut().fill(0xee);
            page.bytes_mut()[ChunkHead::BYTES..][..head.len as usize].copy_from_slice(&payload(head.len));
            head.put(page)
        });
        for (adler32, which) in [(false, 0..3), (true, 1..3), (true, 2..2)] {
            let fragments = TimedFragments { run_number: 7, adler32 };
            let interval = Interval::new(5, 2000);
            let event = EventInfo { event: EventId(0x1_0000_0009), ..EventInfo::default() };
            let head = TimedHead { rob: 0x51_0003, event, interval, chunks: which.len() as u32, status: 4 };
            let bulk = fragments.frame(&head, Bulk::PageList(chunks[which.clone()].to_vec()));
            assert!(chunks[which.clone()].iter().all(|chunk| bulk.slices().contains(chunk)), "no byte is copied");
            let bytes: Vec<u8> = bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec()).collect();
            let summary = eformat::check_rob(&bytes).unwrap();
            assert_eq!(summary.lvl1_id, 9);
            let rob = eformat::Rob::parse(eformat::EventFormat::V5, &bytes).unwrap();
            let (event, found) = ChunkHead::all_in(rob.rod().unwrap().data()).unwrap();
            assert_eq!(event, EventHead { begin: 5, end: 2000, chunks: which.len() as u32, status: StatusWord(4) });
            let expected: Vec<_> = heads[which].iter().map(|head| (*head, payload(head.len))).collect();
            assert_eq!(found.into_iter().map(|(head, data)| (head, data.to_vec())).collect::<Vec<_>>(), expected);
        }
    }
}
