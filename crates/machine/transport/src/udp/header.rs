//! The header of each datagram.
//!
//! All fields are little-endian:
//!
//! | byte | field | |
//! |---|---|---|
//! | 0 | magic `WD`, version, kind | 0, 1 or 7: a segment, see below; 2: an ask; 3, 4, 6: a notice; 5: an acknowledgement |
//! | 4 | incarnation of the sender | `u32`: its life, and in the lower 16 bits how many peers it had removed when it added this one |
//! | 8 | number of the message | `u64`, counted per sender and destination |
//! | 16 | length of the message in bytes | `u32` |
//! | 20 | offset of this segment in it | `u32`, a multiple of the segment length |
//! | 24 | segment length in bytes | `u32`; all segments but the last of a message have it |
//! | 28 | CRC-32 of the payload in kind 1, else 0 | `u32` |
//! | 32 | tag: the first 8 bytes of an AEGIS-128L MAC with the key of the run | `[u8; 8]` |
//!
//! The tag covers who sends to whom, the 32 bytes before it, and in kind 7 the payload. A receiver takes segments of kinds 0 and 1
//! only where that is [chosen](super::Authenticate::Header). Who sends to whom is a BLAKE3 hash ([`Parties`]) of both addresses and
//! of the receiver's life; for a multicast group that is 0. The sender's life is in the header. So a tag says: of this run, of this
//! life of this sender, to this life of this receiver or to this group, this message. The number of the message tells whether it
//! was delivered before.
//!
//! An ask names bytes that its sender misses. The number is that of a message to it, the offset where they begin,
//! the length how many they are. A length of 0 says that nothing of the message has come, and asks for as much of
//! it as is sent unasked. A datagram holds as many asks as fit, one header behind the other, and no payload.
//!
//! A notice speaks of all messages below its number. Kind 3: they were sent, and their sender has nothing more to send
//! for a while. The last of them may be lost, and no later one tells. Kind 4: they have come or are given up; nobody
//! asks for them any more. Kind 6: their sender does not send them any more, acknowledged or not. It has no payload;
//! length and offset are 0.
//!
//! An acknowledgement (5) says that all messages below its number were delivered. Of the 64 behind that one it says
//! which have come: a bit for each, in the places of length (the nearer 32) and offset. In the place of the
//! checksum it says whom it is for, by incarnation. So a later life forgets nothing because of what an earlier one
//! has sent.
//!
//! A datagram from somebody without the key costs its receiver this one check. Nothing that was said in another run
//! or life verifies. No two tags need different nonces: the MAC takes none. Cost per datagram and byte:
//! `docs/protocols/datagrams.md`.

use aegis::aegis128l::Aegis128LMac;
use std::net::{IpAddr, SocketAddr};

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
    pub(super) cover: Cover,
}

/// What vouches for the payload of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cover {
    /// The tag.
    Tag,
    /// A checksum, against accidents.
    Checksum(u32),
    /// Nothing.
    Nothing,
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

/// The key of a run, ready for use.
#[derive(Clone)]
pub(super) struct Tagger(Aegis128LMac<16>);

impl Tagger {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Self(Aegis128LMac::new(key))
    }

    fn tag<'a>(&self, parties: &Parties, header: &[u8], payload: impl IntoIterator<Item = &'a [u8]>) -> u64 {
        let mut mac = self.0.clone();
        mac.update(&parties.0);
        mac.update(header);
        payload.into_iter().for_each(|part| mac.update(part));
        let [tag @ .., _, _, _, _, _, _, _, _] = mac.finalize();
        u64::from_le_bytes(tag)
    }
}

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parties([u8; 32]);

impl Parties {
    /// The receiver is in this life; a group is in life 0.
    pub(super) fn new(sender: SocketAddr, receiver: SocketAddr, life: u32) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("weir 2026 the ends of a datagram");
        for end in [sender, receiver] {
            // Ends name scopes of their own.
            let ip = match end.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            hasher.update(&ip.octets()).update(&end.port().to_le_bytes());
        }
        Self(hasher.update(&life.to_le_bytes()).finalize().into())
    }
}

/// What makes the tags of what goes from one sender to one receiver.
#[derive(Clone, Copy)]
pub(super) struct Seal<'a> {
    pub(super) tagger: &'a Tagger,
    pub(super) parties: &'a Parties,
}

impl Header {
    pub(super) fn write<'a>(
        &self,
        bytes: &mut [u8; HEADER_LEN],
        seal: Seal<'_>,
        payload: impl IntoIterator<Item = &'a [u8]>,
    ) {
        let (kind, checksum) = match self.cover {
            Cover::Tag => (PROVED, 0),
            Cover::Checksum(checksum) => (CHECKED, checksum),
            Cover::Nothing => (UNCHECKED, 0),
        };
        let words = [self.message_len, self.offset, self.segment_len, checksum];
        let covered = payload.into_iter().filter(|_| self.cover == Cover::Tag);
        write(bytes, kind, self.incarnation, self.number, words, seal, covered);
    }
}

impl Ask {
    pub(super) fn write(&self, bytes: &mut [u8; HEADER_LEN], seal: Seal<'_>) {
        write(bytes, ASK, self.incarnation, self.number, [self.len, self.offset, self.segment_len, 0], seal, NOTHING);
    }
}

impl Notice {
    /// That they were sent.
    pub(super) fn write_sent(&self, bytes: &mut [u8; HEADER_LEN], seal: Seal<'_>) {
        self.write(SENT, bytes, seal);
    }

    /// That they were received.
    pub(super) fn write_received(&self, bytes: &mut [u8; HEADER_LEN], seal: Seal<'_>) {
        self.write(RECEIVED, bytes, seal);
    }

    /// That they are given up.
    pub(super) fn write_given_up(&self, bytes: &mut [u8; HEADER_LEN], seal: Seal<'_>) {
        self.write(GIVEN_UP, bytes, seal);
    }

    fn write(&self, kind: u8, bytes: &mut [u8; HEADER_LEN], seal: Seal<'_>) {
        write(bytes, kind, self.incarnation, self.end, [0, 0, self.segment_len, 0], seal, NOTHING);
    }
}

impl Acknowledgement {
    pub(super) fn write(&self, bytes: &mut [u8; HEADER_LEN], seal: Seal<'_>) {
        let words = [self.beyond as u32, (self.beyond >> 32) as u32, self.segment_len, self.sender];
        write(bytes, ACKNOWLEDGEMENT, self.incarnation, self.end, words, seal, NOTHING);
    }
}

impl Said {
    pub(super) fn read(bytes: &[u8; HEADER_LEN], payload: &[u8], seal: Seal<'_>) -> Result<Self, NotOurs> {
        let [magic_0, magic_1, version, kind, ..] = *bytes;
        if [magic_0, magic_1, version] != MAGIC || kind > PROVED {
            return Err(NotOurs::Magic);
        }
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let covered = (kind == PROVED).then_some(payload);
        if long(TAG_AT) != seal.tagger.tag(seal.parties, &bytes[..TAG_AT], covered) {
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
                let cover = match kind {
                    PROVED => Cover::Tag,
                    CHECKED => Cover::Checksum(word(28)),
                    _ => Cover::Nothing,
                };
                Self::Segment(Header { incarnation, number, message_len: len, offset, segment_len, cover })
            }
        })
    }
}

fn write<'a>(
    bytes: &mut [u8; HEADER_LEN],
    kind: u8,
    incarnation: u32,
    number: u64,
    words: [u32; 4],
    Seal { tagger, parties }: Seal<'_>,
    covered: impl IntoIterator<Item = &'a [u8]>,
) {
    bytes[..4].copy_from_slice(&[MAGIC[0], MAGIC[1], MAGIC[2], kind]);
    bytes[4..8].copy_from_slice(&incarnation.to_le_bytes());
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    for (field, word) in bytes[16..TAG_AT].chunks_exact_mut(4).zip(words) {
        field.copy_from_slice(&word.to_le_bytes());
    }
    let tag = tagger.tag(parties, &bytes[..TAG_AT], covered);
    bytes[TAG_AT..].copy_from_slice(&tag.to_le_bytes());
}

const MAGIC: [u8; 3] = *b"WD\x02";
const UNCHECKED: u8 = 0;
const CHECKED: u8 = 1;
const ASK: u8 = 2;
const SENT: u8 = 3;
const RECEIVED: u8 = 4;
const ACKNOWLEDGEMENT: u8 = 5;
const GIVEN_UP: u8 = 6;
const PROVED: u8 = 7;
const NOTHING: [&[u8]; 0] = [];
const TAG_AT: usize = 32;

/// The lower bits of what a peer takes for our incarnation: as often it can be added again and told from before.
pub(super) const REMOVED_BITS: u32 = u16::BITS;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn a_segment_is_read_as_written_and_not_with_any_bit_changed(
            (incarnation, number, message_len) in any::<(u32, u64, u32)>(),
            (offset, segment_len, checksum, how) in any::<(u32, u32, u32, u8)>(),
            payload in prop::collection::vec(any::<u8>(), 0..200),
            (cut, bit) in any::<(prop::sample::Index, prop::sample::Index)>(),
        ) {
            let cover = [Cover::Tag, Cover::Checksum(checksum), Cover::Nothing][usize::from(how % 3)];
            let header = Header { incarnation, number, message_len, offset, segment_len, cover };
            let (tagger, parties) = (Tagger::new(&[7; 16]), Parties::new(address(1), address(2), 0));
            let seal = Seal { tagger: &tagger, parties: &parties };
            let (mut bytes, (first, rest)) = ([0; HEADER_LEN], payload.split_at(cut.index(payload.len() + 1)));
            header.write(&mut bytes, seal, [first, &[], rest]);
            prop_assert_eq!(Said::read(&bytes, &payload, seal), Ok(Said::Segment(header)));
            let bit = bit.index(8 * if cover == Cover::Tag { HEADER_LEN + payload.len() } else { HEADER_LEN });
            let mut damaged = [&bytes[..], &payload].concat();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let (damaged, damaged_payload) = damaged.split_first_chunk().unwrap();
            prop_assert!(Said::read(damaged, damaged_payload, seal).is_err());
            if cover == Cover::Tag {
                prop_assert_eq!(Said::read(&bytes, &[&payload[..], &[0]].concat(), seal), Err(NotOurs::Tag));
            }
        }

        #[test]
        fn an_ask_is_read_as_written(
            (incarnation, number, offset, len, segment_len) in any::<(u32, u64, u32, u32, u32)>(),
            bit in 0..HEADER_LEN * 8,
        ) {
            let ask = Ask { incarnation, number, offset, len, segment_len };
            let (tagger, parties) = (Tagger::new(&[7; 16]), Parties::new(address(1), address(2), 0));
            let (seal, mut bytes) = (Seal { tagger: &tagger, parties: &parties }, [0; HEADER_LEN]);
            ask.write(&mut bytes, seal);
            prop_assert_eq!(Said::read(&bytes, &[], seal), Ok(Said::Ask(ask)));
            let notice = Notice { incarnation, end: number, segment_len };
            notice.write_sent(&mut bytes, seal);
            prop_assert_eq!(Said::read(&bytes, &[], seal), Ok(Said::Sent(notice)));
            notice.write_received(&mut bytes, seal);
            prop_assert_eq!(Said::read(&bytes, &[], seal), Ok(Said::Received(notice)));
            notice.write_given_up(&mut bytes, seal);
            prop_assert_eq!(Said::read(&bytes, &[], seal), Ok(Said::GivenUp(notice)));
            let beyond = number.rotate_left(7);
            let acknowledgement = Acknowledgement { incarnation, end: number, beyond, sender: offset, segment_len };
            acknowledgement.write(&mut bytes, seal);
            prop_assert_eq!(Said::read(&bytes, &[], seal), Ok(Said::Acknowledgement(acknowledgement)));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(Said::read(&bytes, &[], seal).is_err());
        }
    }

    #[test]
    fn a_tag_is_of_one_key_sender_receiver_and_life() {
        let notice = Notice { incarnation: 0, end: 5, segment_len: 100 };
        let (tagger, parties) = (Tagger::new(&[7; 16]), Parties::new(address(1), address(2), 0));
        let mut bytes = [0; HEADER_LEN];
        notice.write_sent(&mut bytes, Seal { tagger: &tagger, parties: &parties });
        let read = |tagger: &Tagger, parties: &Parties| Said::read(&bytes, &[], Seal { tagger, parties });
        assert!(read(&tagger, &parties).is_ok());
        assert_eq!(read(&Tagger::new(&[8; 16]), &parties), Err(NotOurs::Tag));
        let v6: SocketAddr = "[::1]:1".parse().unwrap();
        for (sender, receiver, life) in [
            (address(3), address(2), 0),
            (address(1), address(3), 0),
            (address(2), address(1), 0),
            (v6, address(2), 0),
            (address(1), address(2), 1),
        ] {
            assert_eq!(read(&tagger, &Parties::new(sender, receiver, life)), Err(NotOurs::Tag));
        }
    }
}
