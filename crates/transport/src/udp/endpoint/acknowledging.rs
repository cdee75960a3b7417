//! What is acknowledged, as a sender and as a receiver.

use super::missing::asking;
use super::{Endpoint, QueueFull};
use crate::udp::header::{Acknowledgement, Notice};
use crate::udp::kept::Message;
use crate::udp::outbox::Outbox;
use crate::udp::peer::PeerId;
use dataflow::bulk::Bulk;
use dataflow::time::Time;
use rustix::net::SocketAddrAny;

impl Endpoint {
    pub(super) fn send_acknowledged(&mut self, id: PeerId, head: &[u8], bulk: &Bulk) -> Result<u64, QueueFull> {
        let peer = self.peers.get(id);
        let window = peer.send_window.as_mut().expect("this peer acknowledges");
        let (number, len) = (peer.next_number, head.len() + bulk.len());
        let goes = window.released_end() == number && window.has_room(&peer.kept, len);
        let has_room = if goes {
            self.outbox.push(&peer.address, number, head, bulk).is_ok()
        } else {
            self.options.limits.checked_len(head, bulk);
            self.waiting.bytes + len <= self.options.queue_bytes_max
                && self.waiting.frames < self.options.queue_frames_max
        };
        if !has_room {
            self.counters.sends_refused += 1;
            return Err(QueueFull);
        }
        if goes {
            window.note_released(len);
        } else {
            self.waiting.frames += 1;
            self.waiting.bytes += len;
        }
        peer.next_number += 1;
        peer.kept.hold(number, head, bulk, self.options.copy_below);
        if self.to_notify.last() != Some(&id) {
            self.to_notify.push(id);
        }
        Ok(number)
    }

    /// What waited goes, as far as windows and the queue have room.
    pub(super) fn release(&mut self, now: Time) {
        if self.waiting.frames == 0 {
            return;
        }
        for peer in self.peers.iter_mut() {
            let Some(window) = &mut peer.send_window else { continue };
            let mut has_released = false;
            while let Some(message) = window.next(&mut peer.kept) {
                let (number, len) = (message.number(), message.len());
                let (head, bulk) = message.contents();
                if self.outbox.push(&peer.address, number, head, bulk).is_err() {
                    break;
                }
                window.note_released(len);
                self.waiting.frames -= 1;
                self.waiting.bytes -= len;
                has_released = true;
            }
            if has_released && !self.options.ask_after.is_zero() {
                (peer.notice_at, peer.notices) = (Some(now + self.options.ask_after), 0);
            }
            self.deadline = [self.deadline, window.arm(now), peer.notice_at].into_iter().flatten().min();
        }
    }

    /// Tells those whose messages have come what has come.
    pub(super) fn acknowledge(&mut self) {
        let asking = asking(&self.options, &self.tagger);
        for peer in self.to_acknowledge.drain(..) {
            let peer = self.peers.found(peer);
            if let Some((sender, came)) = peer.pay() {
                self.outbox.push_single(&peer.address, asking.acknowledge(sender, came));
            }
        }
    }

    pub(super) fn owe(&mut self, peer: u32) {
        if self.peers.found(peer).owe() {
            self.to_acknowledge.push(peer);
        }
    }

    pub(super) fn take_acknowledgement(&mut self, peer: u32, said: &Acknowledgement, now: Time) {
        if !self.is_current(peer, said.incarnation) {
            return;
        }
        let peer = self.peers.found(peer);
        let window = peer.send_window.as_mut().filter(|_| said.sender == self.options.incarnation);
        match window.map(|window| window.acknowledge(&mut peer.kept, said, now)) {
            Some(Ok(_)) => {
                if said.end >= peer.next_number {
                    peer.notice_at = None;
                }
                // It waits for what was given up, or is a later life that does not know where we are.
                let end = peer.kept.oldest().unwrap_or(peer.next_number);
                if said.end < end {
                    let notice = asking(&self.options, &self.tagger).given_up(end);
                    self.outbox.push_single(&peer.address, notice);
                }
            }
            Some(Err(_)) | None => self.udp_counters.acknowledgements_refused += 1,
        }
        self.release(now);
    }

    /// A peer does not send messages any more.
    pub(super) fn take_given_up(&mut self, id: u32, notice: Notice) {
        if !self.is_current(id, notice.incarnation) {
            return;
        }
        let peer = self.peers.found(id);
        let Some(in_order) = &mut peer.in_order else {
            self.udp_counters.contradictory += 1;
            return;
        };
        let is_first = in_order.acknowledgement() == (0, 0);
        let mut ready = core::mem::take(&mut self.ready);
        let missing = in_order.skip_to(notice.end, &mut |bytes| ready.push(bytes));
        // What an earlier life of ours has got is not lost.
        self.udp_counters.messages_lost += if is_first { 0 } else { missing };
        peer.reassembly.forget_below(notice.end);
        ready.drain(..).for_each(|bytes| self.push_frame(id, bytes));
        self.ready = ready;
        self.owe(id);
    }
}

/// Frames that wait for acknowledgements of earlier ones.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Waiting {
    pub(super) frames: usize,
    pub(super) bytes: usize,
}

/// Sends messages again, as far as they were sent completely; returns how many datagrams.
pub(super) fn send_again<'a>(
    outbox: &mut Outbox,
    address: &SocketAddrAny,
    messages: impl Iterator<Item = &'a Message>,
) -> u64 {
    let segment_len = outbox.segment_len();
    let mut sent = 0;
    for message in messages {
        if sent >= RETRANSMITTED_MAX || outbox.sent_len(address, message.number()).is_some() {
            break;
        }
        for start in (0..message.len()).step_by(segment_len) {
            let range = start..message.len().min(start + segment_len);
            let datagram = outbox.segment_again(message.number(), message, range);
            if !outbox.push_single(address, datagram) {
                return sent;
            }
            sent += 1;
        }
    }
    sent
}

/// Datagrams sent again at a time when nothing is acknowledged; what comes of them says what else is missing.
const RETRANSMITTED_MAX: u64 = 64;
