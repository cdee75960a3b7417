//! Asking peers for what is missing of their messages.

use super::header::{Ask, HEADER_LEN, Tagger};
use super::reassembly::Reassembly;
use dataflow::time::Time;

/// What all asks of an endpoint say.
pub(super) struct Asking<'a> {
    pub(super) incarnation: u32,
    pub(super) segment_len: usize,
    pub(super) tagger: &'a Tagger,
}

impl Asking<'_> {
    /// Datagrams that name all that is to be asked for now, and of how many messages.
    pub(super) fn ask(&self, reassembly: &mut Reassembly, now: Time) -> (u64, Vec<Vec<u8>>) {
        let (mut asked, mut datagrams) = (0, Vec::new());
        let mut datagram = Vec::new();
        for message in reassembly.ask(now) {
            asked += 1;
            for range in message.wanted(self.segment_len).take(RANGES_PER_ASK) {
                let word = |len: usize| u32::try_from(len).expect("frames are shorter than 4 GiB");
                let ask = Ask {
                    incarnation: self.incarnation,
                    number: message.number(),
                    offset: word(range.start),
                    len: word(range.len()),
                    segment_len: word(self.segment_len),
                };
                let mut header = [0; HEADER_LEN];
                ask.write(&mut header, self.tagger);
                datagram.extend_from_slice(&header);
                if datagram.len() > self.segment_len.min(ASK_LEN_MAX) {
                    datagrams.push(core::mem::take(&mut datagram));
                }
            }
        }
        if !datagram.is_empty() {
            datagrams.push(datagram);
        }
        (asked, datagrams)
    }
}

/// Of a message of which every other segment is missing, so many are asked for at a time.
const RANGES_PER_ASK: usize = 32;

/// Small datagrams are not joined with others on the way, and hardly lost.
const ASK_LEN_MAX: usize = 1400;
