//! Conversations with a peer that has the key and says anything: an endpoint survives them, and another peer notices
//! nothing.

use super::header::{Acknowledgement, Ask, Cover, HEADER_LEN, Header, Notice, Parties, Seal, Tagger};
use super::outbox::SINGLES_MAX;
use super::{Acknowledged, Endpoint, PeerId, UdpOptions};
use crate::frame::FrameLimits;
use crate::link::Filled;
use crate::page_pool::{Pool, PoolOptions};
use base::bulk::Bulk;
use base::time::Time;
use core::time::Duration;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

/// Entry point of the fuzz target and of the replay of its corpus. Whatever the bytes make a peer say, and us do, does
/// no harm. The first byte says whether messages are acknowledged and asked for; then each step has eight.
///
/// # Panics
/// If a frame is delivered that was not sent, something is held beyond its bound, or an endpoint has something to do
/// for ever. If a message to or from another peer is held up while this goes on, or if there are no sockets.
#[doc(hidden)]
pub fn check_any_conversation(data: &[u8]) {
    let Some((mode, steps)) = data.split_first() else { return };
    let mut conversation = Conversation::new(*mode);
    for step in steps.chunks_exact(STEP_LEN).take(STEPS_MAX) {
        conversation.step(*step.first_chunk().expect("chunks of this length"));
    }
    conversation.pass(Duration::ZERO);
    conversation.victim.remove_peer(conversation.to_liar);
    conversation.exchange();
    let Conversation { victim, other, pool, .. } = conversation;
    drop((victim, other));
    assert_eq!(pool.counters().in_use, 0, "all pages come home");
}

struct Conversation {
    victim: Endpoint,
    liar: UdpSocket,
    to_liar: PeerId,
    /// Its time stands still, so that it sends nothing twice: without the victim's acknowledgements it falls silent.
    other: Endpoint,
    to_other: PeerId,
    to_victim: PeerId,
    options: UdpOptions,
    pool: Pool,
    now: Time,
    /// Messages to the liar.
    sent: u64,
    /// What the other has said, and the victim has not heard yet.
    said: Vec<u8>,
}

impl Conversation {
    fn new(mode: u8) -> Self {
        let limits = FrameLimits::new(8, LEN_MAX).expect("legal limits");
        let acknowledged =
            Acknowledged { window_bytes: 8 << 10, retransmit_after: MILLISECOND * 4, retransmits_max: 3 };
        let options = UdpOptions {
            datagram_len: DATAGRAM_LEN,
            incomplete_messages_max: 16,
            incomplete_bytes_max: 64 << 10,
            incomplete_timeout: MILLISECOND * 20,
            ask_after: if mode & 2 > 0 { MILLISECOND * 2 } else { Duration::ZERO },
            keep_parts_max: 64,
            keep_bytes_max: 64 << 10,
            unasked_len: UNASKED_LEN,
            queue_bytes_max: 32 << 10,
            acknowledged: (mode & 1 > 0).then_some(acknowledged),
            ..UdpOptions::new(limits, KEY)
        };
        let pool = PoolOptions { name: "conversation".into(), page_len: 64 << 10, pages: 16, prefault: false };
        let pool = Pool::new(&pool).expect("a small pool");
        let bind = || Endpoint::bind(LOOPBACK, &options, &pool).expect("a socket");
        let (mut victim, mut other) = (bind(), bind());
        let liar = UdpSocket::bind(LOOPBACK).expect("a socket");
        liar.set_nonblocking(true).expect("a socket that does not wait");
        let add = |endpoint: &mut Endpoint, address| endpoint.add_peer(address).expect("none was removed");
        let to_liar = add(&mut victim, liar.local_addr().expect("an address"));
        let (to_other, to_victim) = (add(&mut victim, other.local_address()), add(&mut other, victim.local_address()));
        let now = START;
        let said = Vec::new();
        let mut new = Self { victim, liar, to_liar, other, to_other, to_victim, options, pool, now, sent: 0, said };
        new.speak();
        new
    }

    fn step(&mut self, [what, life, base, number, first, second, low, high]: [u8; STEP_LEN]) {
        let incarnation = [0, 1, 2, u32::MAX][usize::from(life % 4)];
        let base =
            [0, self.sent, self.sent.saturating_sub(16), 500, 4096, 1 << 40, u64::MAX - 255][usize::from(base % 7)];
        let number = base.saturating_add(number.into());
        let word = u32::from(u16::from_le_bytes([low, high]));
        let segment_len = if life & 0x40 > 0 { word } else { SEGMENT_LEN };
        let notice = Notice { incarnation, end: number, segment_len };
        let tagger = Tagger::new(&if life & 0x80 > 0 { [0; 16] } else { KEY });
        let liar = self.liar.local_addr().expect("an address");
        let seal = Seal { tagger: &tagger, parties: &Parties::new(liar, self.victim.local_address(), 0) };
        let mut header = [0; HEADER_LEN];
        let mut payload = Vec::new();
        match what % 9 {
            0 => {
                let count = if life & 0x20 > 0 { SEGMENTS_IN_A_ROW } else { 1 };
                for offset in (u32::from(first)..).map(|segment| segment * SEGMENT_LEN).take(count) {
                    let rest = word.saturating_sub(offset);
                    let mut payload = vec![second; rest.min(SEGMENT_LEN) as usize];
                    if offset == 0 && payload.len() >= 4 {
                        payload[..4].copy_from_slice(&word.to_le_bytes());
                    }
                    let cover = Cover::Tag;
                    let segment = Header { incarnation, number, message_len: word, offset, segment_len, cover };
                    segment.write(&mut header, seal, [&payload[..]]);
                    self.say(&header, &payload);
                }
                return self.pass_if(what);
            }
            1 => {
                let unit = if life & 0x20 > 0 { SEGMENT_LEN } else { second.into() };
                let (offset, len) = (u32::from(first) * unit, word);
                Ask { incarnation, number, offset, len, segment_len }.write(&mut header, seal);
                payload = header.repeat(usize::from(second % 8));
            }
            2 => notice.write_sent(&mut header, seal),
            3 => notice.write_received(&mut header, seal),
            4 => notice.write_given_up(&mut header, seal),
            5 => {
                let beyond = word.wrapping_mul(0x0101_0101).into();
                let beyond = if first > 0 { u64::rotate_left(beyond, first.into()) } else { 0 };
                let sender = [0, 1, 1 << 16][usize::from(second % 3)];
                Acknowledgement { incarnation, end: number, beyond, sender, segment_len }.write(&mut header, seal);
            }
            6 => return self.send(usize::from(first % 32), word as usize),
            7 => return self.pass(Duration::from_millis(first.into())),
            _ => header[..STEP_LEN].copy_from_slice(&[what, life, number as u8, first, second, low, high, 0]),
        }
        self.say(&header, &payload);
        self.pass_if(what);
    }

    fn say(&self, header: &[u8; HEADER_LEN], payload: &[u8]) {
        // The victim's buffer may be full: then it is lost.
        let _ = self.liar.send_to(&[header, payload].concat(), self.victim.local_address());
    }

    fn pass_if(&mut self, what: u8) {
        if what & 0x80 > 0 {
            self.pass(Duration::ZERO);
        }
    }

    /// Messages from the victim to the liar.
    fn send(&mut self, count: usize, len: usize) {
        for _ in 0..count {
            let message = frame(len.clamp(8, LEN_MAX));
            self.sent += u64::from(self.victim.send(self.to_liar, &message, &Bulk::empty()).is_ok());
        }
    }

    /// Time passes, and the victim does all that it has to do.
    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.exchange();
        let incomplete: usize = self.victim.incomplete(self.to_liar).map(|message| message.len).sum();
        assert!(incomplete <= self.options.incomplete_bytes_max, "{incomplete} bytes incomplete");
    }

    /// A message to the other, and what it said before the liar spoke, come, and the victim comes to rest.
    fn exchange(&mut self) {
        let message = frame(LEN_TO_OTHER);
        self.victim.flush(self.now);
        self.victim.send(self.to_other, &message, &Bulk::empty()).expect("an empty queue, and room in its own window");
        let (mut is_heard, mut is_idle) = ((false, false), false);
        for _ in 0..PASSES_MAX {
            let filled = self.victim.fill(self.now).expect("the loopback interface works");
            let singles = self.victim.single_datagrams();
            assert!(singles <= SINGLES_MAX + SINGLES_MAX / 2, "{singles} answers wait");
            while let Some((from, frame)) = self.victim.next_frame() {
                let bytes = frame.head.as_bytes();
                if from == self.to_other {
                    assert!(
                        !core::mem::replace(&mut is_heard.0, true) && bytes == self.said,
                        "what the other has said"
                    );
                } else {
                    let is_whole = bytes[..4] == (bytes.len() as u32).to_le_bytes();
                    assert!(from == self.to_liar && is_whole, "a whole frame");
                }
            }
            self.victim.flush(self.now);
            let mut place = [0; DATAGRAM_LEN];
            while self.liar.recv(&mut place).is_ok() {}
            is_heard.1 |= self.hear(&message);
            is_idle = filled == Filled::WouldBlock && self.victim.next_deadline().is_none_or(|due| due > self.now);
            if is_idle && is_heard == (true, true) {
                break;
            }
        }
        assert!(is_idle, "an endpoint comes to rest: {:?}", self.victim);
        assert_eq!(is_heard, (true, true), "the other is heard, and hears: {:?} {:?}", self.victim, self.other);
        assert!(self.victim.queued_bytes() <= 2 * self.options.queue_bytes_max + LEN_MAX, "{:?}", self.victim);
        self.speak();
    }

    /// The other speaks to the victim, whose buffer is empty.
    fn speak(&mut self) {
        self.said = frame(LEN_FROM_OTHER);
        self.said[4..8].copy_from_slice(&(self.other.counters().frames_sent as u32).to_le_bytes());
        self.other.send(self.to_victim, &self.said, &Bulk::empty()).expect("the victim has heard all before");
        self.other.flush(START);
    }

    /// The other does all that it has to do; whether it hears this.
    fn hear(&mut self, message: &[u8]) -> bool {
        let mut is_heard = false;
        while self.other.fill(START).expect("the loopback interface works") == Filled::Some {
            while let Some((_, frame)) = self.other.next_frame() {
                is_heard |= frame.head.as_bytes() == message;
            }
        }
        self.other.flush(START);
        is_heard
    }
}

fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![5; len];
    frame[..4].copy_from_slice(&(len as u32).to_le_bytes());
    frame
}

const KEY: [u8; 16] = [7; 16];
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const DATAGRAM_LEN: usize = 256;
const SEGMENT_LEN: u32 = (DATAGRAM_LEN - HEADER_LEN) as u32;
/// More than two parts.
const LEN_MAX: usize = 32 << 10;
/// What is said to and by the other goes whole: its time stands still.
const UNASKED_LEN: usize = 6 << 10;
/// More than go unasked, and more than are sent again one by one.
const SEGMENTS_IN_A_ROW: usize = 32;
const LEN_TO_OTHER: usize = 3000;
const START: Time = Time::from_ns(1 << 40);
const MILLISECOND: Duration = Duration::from_millis(1);
const STEP_LEN: usize = 8;

/// More than half a window: the next goes when this is acknowledged.
const LEN_FROM_OTHER: usize = 5000;

/// Longer inputs find nothing more.
const STEPS_MAX: usize = 512;

/// As many calls take in what fits in the victim's buffer.
const PASSES_MAX: usize = 1000;
