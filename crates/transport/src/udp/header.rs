//! The header of each datagram.
//!
//! All fields are little-endian:
//!
//! | byte | field | |
//! |---|---|---|
//! | 0 | magic `WD`, version, kind | 0 or 1: a segment, 1 if the checksum covers the payload, else it is 0; 2: an ask; 3, 4, 6: a notice; 5: an acknowledgement |
//! | 4 | incarnation of the sender | `u32`: its life, and in the lower 16 bits how many peers it had removed when it added this one |
//! | 8 | number of the message | `u64`, counted per sender and destination |
//! | 16 | length of the message in bytes | `u32` |
//! | 20 | offset of this segment in it | `u32`, a multiple of the segment length |
//! | 24 | segment length in bytes | `u32`; all segments but the last of a message have it |
//! | 28 | CRC-32 of the payload | `u32` |
//! | 32 | SipHash-2-4 of the 32 bytes before, with the partition's key | `u64` |
//!
//! An ask names bytes that its sender misses: the number is that of a message to it, the offset where they begin, the length
//! how many they are, 0 if nothing of the message has come: then for as much of it as is sent unasked. A datagram holds as
//! many asks as fit, one header behind the other, and no payload.
//!
//! A notice says of all messages below its number that they were sent (3), when their sender has nothing more to send for a
//! while: the last of them may be lost, and no later one tells. Or that they have come or are given up (4): nobody asks for
//! them any more. Or that their sender does not send them any more, acknowledged or not (6). It has no payload; length and
//! offset are 0.
//!
//! An acknowledgement (5) says that all messages below its number were delivered, and of the 64 behind that one which have come: a
//! bit for each, in the places of length (the nearer 32) and offset. In the place of the checksum it says whom it is for, by
//! incarnation: what an earlier life has sent is nothing that a later one may forget.
//!
//! The tag covers the header, and through the CRC the payload as far as accidents go. Who has no key can make no datagram
//! that costs its receiver more than this one check.

use siphasher::sip::SipHasher24;

/// Length of the header in bytes.
pub(super) const HEADER_LEN: usize = 40;

/// What a header says besides what proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) incarnation: u32,
    pub(super) number: u64,
    pub(super) message_len: u32,
    pub(super) offset: u32,
    pub(super) segment_len: u32,
    /// `None` if the payload is not covered.
    pub(super) checksum: Option<u32>,
}

/// What a peer says with a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Segment(Header),
    Ask(Ask),
    Sent(Notice),
    Received(Notice),
    /// They are not to be expected any more.
    GivenUp(Notice),
    Acknowledgement(Acknowledgement),
}

/// What a peer has delivered of what was sent to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub(super) incarnation: u32,
    /// All below were delivered.
    pub(super) end: u64,
    /// Bit `n`: the message `end + 1 + n` has come, too.
    pub(super) beyond: u64,
    /// The incarnation of who has sent them.
    pub(super) sender: u32,
    pub(super) segment_len: u32,
}

/// What is said of all messages below `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) incarnation: u32,
    pub(super) end: u64,
    pub(super) segment_len: u32,
}

/// Which bytes a peer misses of a message to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) incarnation: u32,
    pub(super) number: u64,
    pub(super) offset: u32,
    /// 0: all from there on.
    pub(super) len: u32,
    pub(super) segment_len: u32,
}

/// Why bytes are no header of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotOurs {
    /// Another protocol, or another version of this.
    Magic,
    /// Damaged, or from somebody without the key.
    Tag,
}

/// The key of a partition, ready for use.
#[derive(Clone, Copy)]
pub(super) struct Tagger(SipHasher24);

impl Tagger {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Self(SipHasher24::new_with_key(key))
    }

    fn tag(&self, bytes: &[u8]) -> u64 {
        self.0.hash(bytes)
    }
}

impl Header {
    pub(super) fn write(&self, bytes: &mut [u8; HEADER_LEN], tagger: &Tagger) {
        let kind = if self.checksum.is_some() { CHECKED } else { UNCHECKED };
        let words = [self.message_len, self.offset, self.segment_len, self.checksum.unwrap_or(0)];
        write(bytes, kind, self.incarnation, self.number, words, tagger);
    }
}

impl Ask {
    pub(super) fn write(&self, bytes: &mut [u8; HEADER_LEN], tagger: &Tagger) {
        write(bytes, ASK, self.incarnation, self.number, [self.len, self.offset, self.segment_len, 0], tagger);
    }
}

impl Notice {
    /// That they were sent.
    pub(super) fn write_sent(&self, bytes: &mut [u8; HEADER_LEN], tagger: &Tagger) {
        self.write(SENT, bytes, tagger);
    }

    /// That they were received.
    pub(super) fn write_received(&self, bytes: &mut [u8; HEADER_LEN], tagger: &Tagger) {
        self.write(RECEIVED, bytes, tagger);
    }

    /// That they are given up.
    pub(super) fn write_given_up(&self, bytes: &mut [u8; HEADER_LEN], tagger: &Tagger) {
        self.write(GIVEN_UP, bytes, tagger);
    }

    fn write(&self, kind: u8, bytes: &mut [u8; HEADER_LEN], tagger: &Tagger) {
        write(bytes, kind, self.incarnation, self.end, [0, 0, self.segment_len, 0], tagger);
    }
}

impl Acknowledgement {
    pub(super) fn write(&self, bytes: &mut [u8; HEADER_LEN], tagger: &Tagger) {
        let words = [self.beyond as u32, (self.beyond >> 32) as u32, self.segment_len, self.sender];
        write(bytes, ACKNOWLEDGEMENT, self.incarnation, self.end, words, tagger);
    }
}

impl Said {
    pub(super) fn read(bytes: &[u8; HEADER_LEN], tagger: &Tagger) -> Result<Self, NotOurs> {
        let [magic_0, magic_1, version, kind, ..] = *bytes;
        if [magic_0, magic_1, version] != MAGIC || kind > GIVEN_UP {
            return Err(NotOurs::Magic);
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        if long(TAG_AT) != tagger.tag(&bytes[..TAG_AT]) {
            return Err(NotOurs::Tag);
        }
        let (incarnation, number, len, offset, segment_len) = (word(4), long(8), word(16), word(20), word(24));
        Ok(match kind {
            ASK => Self::Ask(Ask { incarnation, number, offset, len, segment_len }),
            SENT => Self::Sent(Notice { incarnation, end: number, segment_len }),
            RECEIVED => Self::Received(Notice { incarnation, end: number, segment_len }),
            GIVEN_UP => Self::GivenUp(Notice { incarnation, end: number, segment_len }),
            ACKNOWLEDGEMENT => {
                let beyond = u64::from(len) | u64::from(offset) << 32;
                Self::Acknowledgement(Acknowledgement {
                    incarnation,
                    end: number,
                    beyond,
                    sender: word(28),
                    segment_len,
                })
            }
            _ => {
                let checksum = (kind == CHECKED).then_some(word(28));
                Self::Segment(Header { incarnation, number, message_len: len, offset, segment_len, checksum })
            }
        })
    }
}

fn write(bytes: &mut [u8; HEADER_LEN], kind: u8, incarnation: u32, number: u64, words: [u32; 4], tagger: &Tagger) {
    bytes[..4].copy_from_slice(&[MAGIC[0], MAGIC[1], MAGIC[2], kind]);
    bytes[4..8].copy_from_slice(&incarnation.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    for (field, word) in bytes[16..TAG_AT].chunks_exact_mut(4).zip(words) {
        field.copy_from_slice(&word.to_le_bytes());
    }
    let tag = tagger.tag(&bytes[..TAG_AT]);
    bytes[TAG_AT..].copy_from_slice(&tag.to_le_bytes());
}

const MAGIC: [u8; 3] = *b"WD\x01";
const UNCHECKED: u8 = 0;
const CHECKED: u8 = 1;
const ASK: u8 = 2;
const SENT: u8 = 3;
const RECEIVED: u8 = 4;
const ACKNOWLEDGEMENT: u8 = 5;
const GIVEN_UP: u8 = 6;
const TAG_AT: usize = 32;

#[cfg(test)]
mod tests {
    use super::{Acknowledgement, Ask, HEADER_LEN, Header, NotOurs, Notice, Said, Tagger};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn a_header_is_read_as_written_and_not_with_any_bit_changed(
            (incarnation, number, message_len) in any::<(u32, u64, u32)>(),
            (offset, segment_len, checksum) in any::<(u32, u32, Option<u32>)>(),
            bit in 0..HEADER_LEN * 8,
        ) {
            let header = Header { incarnation, number, message_len, offset, segment_len, checksum };
            let (tagger, mut bytes) = (Tagger::new(&[7; 16]), [0; HEADER_LEN]);
            header.write(&mut bytes, &tagger);
            prop_assert_eq!(Said::read(&bytes, &tagger), Ok(Said::Segment(header)));
            prop_assert_eq!(Said::read(&bytes, &Tagger::new(&[8; 16])), Err(NotOurs::Tag));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Said::read(&bytes, &tagger).is_err());
        }

        #[test]
        fn an_ask_is_read_as_written(
            (incarnation, number, offset, len, segment_len) in any::<(u32, u64, u32, u32, u32)>(),
            bit in 0..HEADER_LEN * 8,
        ) {
            let ask = Ask { incarnation, number, offset, len, segment_len };
            let (tagger, mut bytes) = (Tagger::new(&[7; 16]), [0; HEADER_LEN]);
            ask.write(&mut bytes, &tagger);
            prop_assert_eq!(Said::read(&bytes, &tagger), Ok(Said::Ask(ask)));
            let notice = Notice { incarnation, end: number, segment_len };
            notice.write_sent(&mut bytes, &tagger);
            prop_assert_eq!(Said::read(&bytes, &tagger), Ok(Said::Sent(notice)));
            notice.write_received(&mut bytes, &tagger);
            prop_assert_eq!(Said::read(&bytes, &tagger), Ok(Said::Received(notice)));
            notice.write_given_up(&mut bytes, &tagger);
            prop_assert_eq!(Said::read(&bytes, &tagger), Ok(Said::GivenUp(notice)));
            let beyond = number.rotate_left(7);
            let acknowledgement = Acknowledgement { incarnation, end: number, beyond, sender: offset, segment_len };
            acknowledgement.write(&mut bytes, &tagger);
            prop_assert_eq!(Said::read(&bytes, &tagger), Ok(Said::Acknowledgement(acknowledgement)));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Said::read(&bytes, &tagger).is_err());
        }
    }
}
