//! Fragments of sources that send by themselves: headers and trailers around a payload that lies in its page already.

use base::bulk::PageSlice;
use base::ids::EventId;
use dataflow::readout::fragment::FragmentHead;
use eformat::{
    ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, RobParams, RodHeader, SourceId, StatusWord, WORD_BYTES, write_rob_fragment,
};
use transport::page_pool::Page;

/// Makes fragments around the payloads of one source.
#[derive(Clone, Copy, Debug)]
pub struct PushedFragments {
    /// Source identifier of the ROB.
    pub source_id: u32,
    /// Run number in the ROD headers.
    pub run_number: u32,
    /// Whether each fragment ends with an Adler-32 of its ROD.
    pub adler32: bool,
}

/// What a source says of a payload.
#[derive(Clone, Copy, Debug)]
pub struct Pushed {
    /// Its number.
    pub event: EventId,
    /// The trigger type.
    pub trigger_type: u8,
    /// What is known to be wrong with it.
    pub status: StatusWord,
}

impl PushedFragments {
    /// Bytes of a page before the payload.
    pub const HEADROOM: usize = ROB_PREFIX_BYTES;
    /// Bytes of a page behind the longest payload: it is filled up to whole words.
    pub const TAILROOM: usize = WORD_BYTES - 1 + ROB_SUFFIX_BYTES + WORD_BYTES;

    /// The fragment around the `len` bytes behind the headroom. Its ROD says the length in bytes as the detector event type, since the
    /// data are whole words, filled up with zeros.
    ///
    /// # Panics
    /// If the page is too short.
    pub fn frame(&self, mut page: Page, len: usize, pushed: &Pushed) -> (FragmentHead, PageSlice) {
        let data_bytes = len.next_multiple_of(WORD_BYTES);
        let params = RobParams {
            rod: RodHeader {
                source_id: SourceId(self.source_id),
                run_number: self.run_number,
                lvl1_id: pushed.event.lvl1_id().0,
                trigger_type: pushed.trigger_type,
                event_type: len as u32,
                ..RodHeader::default()
            },
            status: pushed.status,
            adler32: self.adler32,
            ..RobParams::default()
        };
        let fragment_bytes = params.rob_bytes(data_bytes);
        let bytes = &mut page.bytes_mut()[..fragment_bytes];
        bytes[Self::HEADROOM + len..Self::HEADROOM + data_bytes].fill(0);
        write_rob_fragment(bytes, &params, data_bytes);
        let head = FragmentHead { event: pushed.event, status: pushed.status.0, len_bytes: fragment_bytes as u32 };
        (head, page.freeze(fragment_bytes))
    }
}

#[cfg(test)]
mod tests {
    use transport::page_pool::{Pool, PoolOptions};

    use super::*;

    #[test]
    fn a_payload_of_any_length_is_in_the_fragment_with_its_length() {
        let options = PoolOptions { name: "test".into(), page_len: 256, pages: 1, prefault: false };
        let pool = Pool::new(&options).unwrap();
        for (len, adler32) in [(0, false), (1, true), (2, false), (3, true), (4, false), (101, true)] {
            let mut page = pool.take().unwrap();
            page.bytes_mut().fill(0xee);
            let payload: Vec<u8> = (0..len).map(|at| at as u8 + 1).collect();
            page.bytes_mut()[PushedFragments::HEADROOM..][..len].copy_from_slice(&payload);
            let fragments = PushedFragments { source_id: 0x51_0003, run_number: 7, adler32 };
            let pushed = Pushed { event: EventId(9), trigger_type: 4, status: StatusWord::GOOD };
            let (head, slice) = fragments.frame(page, len, &pushed);
            assert_eq!(head.len_bytes as usize, slice.len());
            let rob = eformat::Rob::parse(eformat::EventFormat::V5, slice.as_bytes()).unwrap();
            let rod = rob.rod().unwrap();
            assert_eq!((rod.lvl1_id(), rod.event_type() as usize, rod.trigger_type()), (9, len, 4));
            let data = rod.data();
            assert_eq!(&data[..len], payload);
            assert!(data[len..].iter().all(|byte| *byte == 0) && data.len() < len + 4);
        }
    }
}
