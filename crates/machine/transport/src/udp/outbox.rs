//! Messages on their way out.

use super::header::{Cover, HEADER_LEN, Header, Parties, Seal, Tagger};
use super::kept::{Message, Ticket, cut};
use super::options::{Authenticate, UdpOptions};
use crate::frame::FrameLimits;
use crate::send_queue::{Full, SendQueue};
use base::bulk::Bulk;
use core::mem::take;
use core::ops::Range;
use crc32fast::Hasher;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, sendmmsg};
use std::collections::VecDeque;
use std::io::IoSlice;

/// A bounded queue of messages for any destinations, cut into datagrams as they are sent. The bytes go to the kernel from
/// the pages that they are in. Single datagrams go ahead of them: asks, notices, and what was asked for,
/// unless that is long and goes as a message does.
pub(super) struct Outbox {
    singles: VecDeque<Single>,
    /// How many of them wait, by peer.
    singles_of: Vec<usize>,
    limits: FrameLimits,
    bytes_max: usize,
    queue: SendQueue,
    /// Of the bytes in the queue, whose they are.
    messages: VecDeque<Outgoing>,
    /// The ticket of the first of these.
    first_ticket: u64,
    stamp: Stamp,
    segments_per_send: usize,
    headers: Box<[[u8; HEADER_LEN]; SEGMENTS_PER_CALL]>,
    /// Empty between calls: kept for its memory.
    parts: Vec<IoSlice<'static>>,
    sends: Vec<Send>,
}

/// What one call sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) datagrams: u64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// Where something goes, and what it says of its sender.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    pub(super) address: SocketAddrAny,
    /// The peer's slot.
    pub(super) slot: u32,
    /// Who we are to that peer.
    pub(super) incarnation: u32,
    /// From us to it.
    pub(super) parties: Parties,
}

struct Single {
    address: SocketAddrAny,
    slot: u32,
    datagram: Vec<u8>,
}

struct Outgoing {
    destination: SocketAddrAny,
    incarnation: u32,
    parties: Parties,
    number: u64,
    len: usize,
    /// Where in the message the next datagram begins.
    sent_len: usize,
    /// Where what goes now ends.
    end: usize,
    /// Whether it goes unasked, the first time.
    is_first: bool,
}

/// What is given to the kernel to be sent at a time to one destination: one datagram, or several to be cut.
struct Send {
    message: usize,
    parts_end: usize,
    payload_len: usize,
    segments: u64,
}

/// What is the same in all headers.
struct Stamp {
    tagger: Tagger,
    segment_len: usize,
    authenticate: Authenticate,
    checksum_payload: bool,
}

impl Outbox {
    pub(super) fn new(options: &UdpOptions, tagger: Tagger, segments_per_send: usize) -> Self {
        let UdpOptions { limits, queue_bytes_max, queue_frames_max, authenticate, checksum_payload, .. } = *options;
        // A datagram has at most that many parts then, and a call takes at least one.
        let copy_below = options.copy_below.max(COPY_BELOW_MIN);
        Self {
            singles: VecDeque::new(),
            singles_of: Vec::new(),
            limits,
            bytes_max: queue_bytes_max,
            queue: SendQueue::new(limits, copy_below, queue_bytes_max, queue_frames_max),
            messages: VecDeque::new(),
            first_ticket: 0,
            stamp: Stamp { tagger, segment_len: options.segment_len(), authenticate, checksum_payload },
            segments_per_send,
            headers: Box::new([[0; HEADER_LEN]; SEGMENTS_PER_CALL]),
            parts: Vec::new(),
            sends: Vec::new(),
        }
    }

    /// Queues the first `first_len` bytes of a message: whole segments, or all of it.
    pub(super) fn push(
        &mut self,
        to: &Destination,
        number: u64,
        (head, bulk): (&[u8], &Bulk),
        first_len: usize,
    ) -> Result<Ticket, Full> {
        let len = self.limits.checked_len(head, bulk);
        if first_len == len {
            self.queue.push_part(head, bulk)?;
        } else {
            let (head, bulk) = cut(head, bulk, 0..first_len);
            self.queue.push_part(head, &bulk)?;
        }
        Ok(self.note_pushed(to, (number, len), 0..first_len, true))
    }

    /// Queues whole segments of a message that was sent before, or in part. They have half of the queue, so that there is room
    /// for others.
    pub(super) fn push_again(
        &mut self,
        to: &Destination,
        message: &Message,
        range: Range<usize>,
    ) -> Result<Ticket, Full> {
        let (head, bulk) = message.part(range.clone());
        self.queue.push_part(head, &bulk)?;
        Ok(self.note_pushed(to, (message.number(), message.len()), range, false))
    }

    /// Bytes of room for [`push_again`](Self::push_again).
    pub(super) fn room_again(&self) -> usize {
        (self.bytes_max / 2).saturating_sub(self.queue.bytes())
    }

    fn note_pushed(
        &mut self,
        to: &Destination,
        (number, len): (u64, usize),
        Range { start: sent_len, end }: Range<usize>,
        is_first: bool,
    ) -> Ticket {
        let ticket = Ticket(self.first_ticket + self.messages.len() as u64);
        let Destination { address: ref destination, incarnation, parties, .. } = *to;
        let destination = destination.clone();
        self.messages.push_back(Outgoing { destination, incarnation, parties, number, len, sent_len, end, is_first });
        ticket
    }

    /// Queues a whole datagram; false if too many wait. When half the room is taken, each peer has but its share. So one
    /// that asks for everything takes nothing from those that ask for little. Never more wait than half the room and all
    /// shares. That is one and a half times the room, or half the room and one for each peer where there are more peers.
    pub(super) fn push_single(&mut self, to: &Destination, datagram: Vec<u8>) -> bool {
        let slot = to.slot as usize;
        if self.singles_of.len() <= slot {
            self.singles_of.resize(slot + 1, 0);
        }
        let share = (SINGLES_MAX / self.singles_of.len()).max(1);
        let has_room = self.singles.len() < SINGLES_MAX / 2 || self.singles_of[slot] < share;
        if has_room {
            self.singles_of[slot] += 1;
            self.singles.push_back(Single { address: to.address.clone(), slot: to.slot, datagram });
        }
        has_room
    }

    /// The datagram of a segment that was sent before.
    pub(super) fn segment_again(&self, to: &Destination, message: &Message, range: Range<usize>) -> Vec<u8> {
        let segment_len = self.stamp.segment_len;
        let (incarnation, number) = (to.incarnation, message.number());
        let length = |len: usize| u32::try_from(len).expect("frames are shorter than 4 GiB");
        let offset = length(range.start);
        let mut datagram = message.datagram(range);
        let (header, payload) = datagram.split_first_chunk_mut().expect("room for the header");
        let payload: &[u8] = payload;
        let cover = self.stamp.cover([payload]);
        let (message_len, segment_len) = (length(message.len()), length(segment_len));
        let header_of = Header { incarnation, number, message_len, offset, segment_len, cover };
        header_of.write(header, self.stamp.seal(&to.parties), [payload]);
        datagram
    }

    /// How much of a message was sent, if it has not all been: the rest comes by itself, and nobody misses it yet.
    pub(super) fn sent_len(&self, Ticket(ticket): Ticket) -> Option<usize> {
        let index = usize::try_from(ticket.checked_sub(self.first_ticket)?).ok()?;
        self.messages.get(index).map(|message| message.sent_len)
    }

    /// The single datagrams that wait.
    #[cfg(test)]
    pub(super) fn singles(&self) -> impl Iterator<Item = &[u8]> {
        self.singles.iter().map(|single| single.datagram.as_slice())
    }

    /// How many single datagrams wait.
    pub(super) fn single_datagrams(&self) -> usize {
        self.singles.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.singles.is_empty()
    }

    /// Payload of a full datagram in bytes.
    pub(super) fn segment_len(&self) -> usize {
        self.stamp.segment_len
    }

    pub(super) fn bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Sends datagrams one by one from now on.
    pub(super) fn stop_cutting_in_kernel(&mut self) {
        self.segments_per_send = 1;
    }

    /// Whether the kernel is given several datagrams at a time to be cut.
    pub(super) fn cuts_in_kernel(&self) -> bool {
        self.segments_per_send > 1
    }

    /// Sends some of the queue, which is not empty, in one call.
    pub(super) fn send(&mut self, socket: BorrowedFd<'_>) -> Result<Sent, Errno> {
        if !self.singles.is_empty() {
            return self.send_singles(socket);
        }
        let mut gathered = [IoSlice::new(&[]); PARTS_PER_CALL];
        let (count, _) = self.queue.gather(&mut gathered);
        let mut parts = take(&mut self.parts);
        let mut plan = Plan {
            stamp: &self.stamp,
            source: Source { parts: &gathered[..count], used_len: 0 },
            headers: self.headers.iter_mut(),
            parts: &mut parts,
            sends: &mut self.sends,
            segments_per_send: self.segments_per_send,
        };
        plan.add_messages(&self.messages);
        assert!(!self.sends.is_empty(), "a call has room for the parts of any datagram");
        let mut start = 0;
        let sends = self.sends.iter().map(|send| {
            let parts = &parts[start..send.parts_end];
            start = send.parts_end;
            (&self.messages[send.message].destination, parts)
        });
        let taken = transmit(socket, sends);
        self.parts = emptied(parts);
        let outcome = taken.map(|taken| self.advance(taken));
        self.sends.clear();
        outcome
    }

    fn send_singles(&mut self, socket: BorrowedFd<'_>) -> Result<Sent, Errno> {
        let some = self.singles.iter().take(SENDS_PER_CALL);
        let parts: Vec<IoSlice<'_>> = some.clone().map(|single| IoSlice::new(&single.datagram)).collect();
        let sends = some.zip(&parts).map(|(single, part)| (&single.address, core::slice::from_ref(part)));
        let taken = transmit(socket, sends)?;
        let singles_of = &mut self.singles_of;
        let forgotten = self.singles.drain(..taken).inspect(|single| singles_of[single.slot as usize] -= 1);
        let bytes = forgotten.map(|single| single.datagram.len() as u64).sum();
        Ok(Sent { datagrams: taken as u64, messages: 0, bytes })
    }

    /// Forgets what the next call would send first: the kernel does not take it. Returns how many datagrams that were.
    pub(super) fn skip(&mut self) -> u64 {
        if let Some(single) = self.singles.pop_front() {
            self.singles_of[single.slot as usize] -= 1;
            return 1;
        }
        let Some(message) = self.messages.front() else {
            return 0;
        };
        let segment_len = self.stamp.segment_len;
        let payload_len = (message.end - message.sent_len).min(self.segments_per_send * segment_len);
        let segments = payload_len.div_ceil(segment_len) as u64;
        self.sends.push(Send { message: 0, parts_end: 0, payload_len, segments });
        self.advance(1);
        self.sends.clear();
        segments
    }

    fn advance(&mut self, taken: usize) -> Sent {
        let mut sent = Sent::default();
        let mut payload_len = 0;
        for send in &self.sends[..taken] {
            self.messages[send.message].sent_len += send.payload_len;
            payload_len += send.payload_len;
            sent.datagrams += send.segments;
        }
        let done = self.queue.advance(payload_len);
        sent.bytes = payload_len as u64 + sent.datagrams * HEADER_LEN as u64;
        sent.messages = self.messages.drain(..done as usize).filter(|message| message.is_first).count() as u64;
        self.first_ticket += done;
        sent
    }
}

impl Stamp {
    fn cover<'a>(&self, payload: impl IntoIterator<Item = &'a [u8]>) -> Cover {
        match self.authenticate {
            Authenticate::Everything => Cover::Tag,
            Authenticate::Header if self.checksum_payload => {
                let mut hasher = Hasher::new();
                payload.into_iter().for_each(|part| hasher.update(part));
                Cover::Checksum(hasher.finalize())
            }
            Authenticate::Header => Cover::Nothing,
        }
    }

    fn seal<'a>(&'a self, parties: &'a Parties) -> Seal<'a> {
        Seal { tagger: &self.tagger, parties }
    }
}

/// How the gathered parts become datagrams.
struct Plan<'p, 'a> {
    stamp: &'p Stamp,
    source: Source<'a>,
    headers: core::slice::IterMut<'a, [u8; HEADER_LEN]>,
    parts: &'p mut Vec<IoSlice<'a>>,
    sends: &'p mut Vec<Send>,
    segments_per_send: usize,
}

impl Plan<'_, '_> {
    fn add_messages(&mut self, messages: &VecDeque<Outgoing>) {
        for (index, message) in messages.iter().enumerate() {
            let mut offset = message.sent_len;
            while offset < message.end {
                if self.sends.len() == SENDS_PER_CALL {
                    return;
                }
                let parts_start = self.parts.len();
                let (segments, end) = self.add_segments(message, offset);
                let is_complete = segments == self.segments_per_send as u64 || end == message.end;
                // Cut in two, it would be received in two places.
                if segments == 0 || (!is_complete && !self.sends.is_empty()) {
                    self.parts.truncate(parts_start);
                    return;
                }
                let (parts_end, payload_len) = (self.parts.len(), end - offset);
                self.sends.push(Send { message: index, parts_end, payload_len, segments });
                if !is_complete {
                    return;
                }
                offset = end;
            }
        }
    }

    /// Adds the next segments of a message; returns how many, and where they end.
    fn add_segments(&mut self, message: &Outgoing, mut offset: usize) -> (u64, usize) {
        let segment_len = self.stamp.segment_len;
        let mut segments = 0;
        while segments < self.segments_per_send as u64 && offset < message.end {
            let payload_len = segment_len.min(message.end - offset);
            if !self.source.has(payload_len) {
                break;
            }
            let Some(bytes) = self.headers.next() else {
                break;
            };
            let header_at = self.parts.len();
            self.parts.push(IoSlice::new(&[]));
            self.source.take(payload_len, self.parts);
            let payload = || self.parts[header_at + 1..].iter().map(|part| &**part);
            let cover = self.stamp.cover(payload());
            let length = |len: usize| u32::try_from(len).expect("frames are shorter than 4 GiB");
            let (message_len, segment_len) = (length(message.len), length(segment_len));
            let header = Header {
                incarnation: message.incarnation,
                number: message.number,
                message_len,
                offset: length(offset),
                segment_len,
                cover,
            };
            header.write(bytes, self.stamp.seal(&message.parties), payload());
            self.parts[header_at] = IoSlice::new(bytes);
            offset += payload_len;
            segments += 1;
        }
        (segments, offset)
    }
}

/// The rest of the gathered parts.
struct Source<'a> {
    parts: &'a [IoSlice<'a>],
    /// How much of the first is used.
    used_len: usize,
}

impl<'a> Source<'a> {
    fn has(&self, len: usize) -> bool {
        let mut there = 0;
        for part in self.parts {
            there += part.len();
            if there >= len + self.used_len {
                return true;
            }
        }
        false
    }

    fn take(&mut self, mut len: usize, parts: &mut Vec<IoSlice<'a>>) {
        while len > 0 {
            let (first, rest) = self.parts.split_first().expect("as many bytes as are taken");
            let bytes: &'a [u8] = &first[self.used_len..];
            let taken_len = bytes.len().min(len);
            parts.push(IoSlice::new(&bytes[..taken_len]));
            self.used_len += taken_len;
            len -= taken_len;
            if taken_len == bytes.len() {
                (self.parts, self.used_len) = (rest, 0);
            }
        }
    }
}

/// Returns how many were taken, of at most [`SENDS_PER_CALL`].
fn transmit<'a>(
    socket: BorrowedFd<'_>,
    mut sends: impl Iterator<Item = (&'a SocketAddrAny, &'a [IoSlice<'a>])>,
) -> Result<usize, Errno> {
    let mut nothing = [const { None::<SendAncillaryBuffer<'_, '_, '_>> }; SENDS_PER_CALL];
    let mut nothing = nothing.iter_mut();
    let mut count = 0;
    let mut headers: [MMsgHdr<'_>; SENDS_PER_CALL] = core::array::from_fn(|_| {
        let control = nothing.next().expect("as many as headers").insert(SendAncillaryBuffer::default());
        let Some((destination, parts)) = sends.next() else {
            return MMsgHdr::new(&[], control);
        };
        count += 1;
        MMsgHdr::new_with_addr(destination, parts, control)
    });
    rustix::io::retry_on_intr(|| sendmmsg(socket, &mut headers[..count], SendFlags::NOSIGNAL))
}

/// The same memory for parts of another lifetime: nothing is left to be converted.
fn emptied(mut parts: Vec<IoSlice<'_>>) -> Vec<IoSlice<'static>> {
    parts.clear();
    parts.into_iter().map(|_| unreachable!("no part is left")).collect()
}

/// The longest datagram has 64 such parts, each with copied bytes on either side.
const COPY_BELOW_MIN: usize = 1024;

/// Gathered parts per call; more than the longest datagram has.
const PARTS_PER_CALL: usize = 256;

/// Datagrams per call; some 0.3 MB of full Ethernet datagrams.
const SEGMENTS_PER_CALL: usize = 256;

/// Single datagrams of one peer that wait at most, where there are no others; what does not fit is asked for again.
pub(super) const SINGLES_MAX: usize = 1024;

/// Messages of `sendmmsg` per call.
const SENDS_PER_CALL: usize = 64;
