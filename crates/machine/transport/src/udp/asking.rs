//! Asking peers for what is missing of their messages, and telling them what was sent and what has come.

use super::header::{Acknowledgement, Ask, HEADER_LEN, Notice, Seal, Tagger};
use super::options::UdpOptions;
use super::outbox::Destination;
use super::reassembly::Incomplete;

/// What all asks and notices of an endpoint say.
pub(super) struct Asking<'a> {
    pub(super) incarnation: u32,
    pub(super) segment_len: usize,
    pub(super) seal: Seal<'a>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(options: &UdpOptions, tagger: &'a Tagger, to: &'a Destination) -> Self {
        let seal = Seal { tagger, parties: &to.parties };
        Self { incarnation: to.incarnation, segment_len: options.segment_len(), seal }
    }
}

impl Asking<'_> {
    /// A datagram that says that all messages below `end` were sent.
    pub(super) fn sent(&self, end: u64) -> Vec<u8> {
        let mut header = [0; HEADER_LEN];
        self.notice(end).write_sent(&mut header, self.seal);
        header.to_vec()
    }

    /// A datagram that says that all messages below `end` have come or are given up.
    pub(super) fn received(&self, end: u64) -> Vec<u8> {
        let mut header = [0; HEADER_LEN];
        self.notice(end).write_received(&mut header, self.seal);
        header.to_vec()
    }

    /// A datagram that says that messages below `end` are not to be expected any more.
    pub(super) fn given_up(&self, end: u64) -> Vec<u8> {
        let mut header = [0; HEADER_LEN];
        self.notice(end).write_given_up(&mut header, self.seal);
        header.to_vec()
    }

    /// A datagram that acknowledges to this incarnation of a peer all messages below `end`, and some beyond.
    pub(super) fn acknowledge(&self, sender: u32, (end, beyond): (u64, u64)) -> Vec<u8> {
        let segment_len = self.notice(end).segment_len;
        let acknowledgement = Acknowledgement { incarnation: self.incarnation, end, beyond, sender, segment_len };
        let mut header = [0; HEADER_LEN];
        acknowledgement.write(&mut header, self.seal);
        header.to_vec()
    }

    fn notice(&self, end: u64) -> Notice {
        let segment_len = u32::try_from(self.segment_len).expect("shorter than a datagram");
        Notice { incarnation: self.incarnation, end, segment_len }
    }

    /// Datagrams that name the parts to ask for of messages that are due, of each at most so many bytes. Also, of how many
    /// messages something is missing that was sent.
    pub(super) fn ask<'a>(
        &self,
        due: impl Iterator<Item = &'a mut Incomplete>,
        bytes_max: usize,
    ) -> (Asked, Vec<Vec<u8>>) {
        let (mut asked, mut datagrams) = (Asked::default(), Vec::new());
        let mut datagram = Vec::new();
        let segments_max = (bytes_max / self.segment_len).max(1);
        for message in due {
            if message.is_late() {
                asked.messages += 1;
                asked.most = asked.most.max(message.count_late_ask());
            }
            for range in message.ask(self.segment_len, segments_max, RANGES_PER_ASK) {
                let word = |len: usize| u32::try_from(len).expect("frames are shorter than 4 GiB");
                let ask = Ask {
                    incarnation: self.incarnation,
                    number: message.number(),
                    offset: word(range.start),
                    len: word(range.len()),
                    segment_len: word(self.segment_len),
                };
                let mut header = [0; HEADER_LEN];
                ask.write(&mut header, self.seal);
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

/// Messages of which something is missing that was sent.
#[derive(Default)]
pub(super) struct Asked {
    /// How many.
    pub(super) messages: u64,
    /// How often the one was asked for that was asked for most often.
    pub(super) most: u32,
}

/// Of a message of which every other segment is missing, so many are asked for at a time.
const RANGES_PER_ASK: usize = 32;

/// Small datagrams are not joined with others on the way, and hardly lost.
const ASK_LEN_MAX: usize = 1400;
