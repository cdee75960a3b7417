//! What is acknowledged, as a sender and as a receiver.

use super::{Endpoint, QueueFull};
use crate::udp::asking::Asking;
use crate::udp::header::{Acknowledgement, Notice};
use crate::udp::kept::Message;
use crate::udp::outbox::{Destination, Outbox};
use crate::udp::peer::PeerId;
use base::bulk::Bulk;
use base::time::Time;

impl Endpoint {
    pub(super) fn send_acknowledged(&mut self, id: PeerId, head: &[u8], bulk: &Bulk) -> Result<u64, QueueFull> {
        let peer = self.peers.get(id);
        let window = peer.send_window.as_mut().expect("this peer acknowledges");
        let (number, len) = (peer.next_number, head.len() + bulk.len());
        let goes = window.released_end() == number && window.has_room(&peer.kept, len);
        let first_len = self.options.first_part_len(len, true);
        let ticket = goes.then(|| self.outbox.push(&peer.to, number, (head, bulk), first_len).ok()).flatten();
        let has_room = if goes {
            ticket.is_some()
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
        if let Some(ticket) = ticket {
            peer.kept.note_queued(ticket, first_len);
        }
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
                let first_len = self.options.first_part_len(len, true);
                let Ok(ticket) = self.outbox.push(&peer.to, number, (head, bulk), first_len) else { break };
                message.note_queued(ticket, first_len);
                window.note_released(len);
                self.waiting.frames -= 1;
                self.waiting.bytes -= len;
                has_released = true;
            }
            if has_released && !self.options.ask_after.is_zero() {
                let pause = self.options.ask_after;
                (peer.notice_at, peer.notice_pause) = (Some(now + pause), pause);
            }
            self.deadline = [self.deadline, window.arm(now), peer.notice_at].into_iter().flatten().min();
        }
    }

    /// Tells those whose messages have come what has come.
    pub(super) fn acknowledge(&mut self) {
        for peer in self.to_acknowledge.drain(..) {
            let peer = self.peers.found(peer);
            if let Some((sender, came)) = peer.pay() {
                let asking = Asking::new(&self.options, &self.tagger, &peer.to);
                self.outbox.push_single(&peer.to, asking.acknowledge(sender, came));
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
        let window = peer.send_window.as_mut().filter(|_| said.sender == peer.to.incarnation);
        match window.map(|window| window.acknowledge(&mut peer.kept, said, now)) {
            Some(Ok(_)) => {
                if said.end >= peer.next_number {
                    peer.notice_at = None;
                }
                // It waits for what was given up, or is a later life that does not know where we are.
                let end = peer.kept.oldest().unwrap_or(peer.next_number);
                if said.end < end {
                    let notice = Asking::new(&self.options, &self.tagger, &peer.to).given_up(end);
                    self.outbox.push_single(&peer.to, notice);
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
        let lost = &mut self.udp_counters.messages_lost;
        *lost = lost.saturating_add(if is_first { 0 } else { missing });
        peer.note_given_up(notice.end);
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

/// Sends messages again that were sent completely; returns how many datagrams. Where receivers ask, a part of a long message is enough:
/// their asks name the rest. The next call goes on in a message where this one stops.
pub(super) fn send_again<'a>(
    outbox: &mut Outbox,
    to: &Destination,
    messages: impl Iterator<Item = &'a mut Message>,
    asks: bool,
) -> u64 {
    let segment_len = outbox.segment_len();
    let mut sent = 0;
    for message in messages {
        if sent >= RETRANSMITTED_MAX || message.queued().is_some_and(|ticket| outbox.sent_len(ticket).is_some()) {
            break;
        }
        for _ in 0..message.len().div_ceil(segment_len) {
            if asks && sent >= RETRANSMITTED_MAX {
                return sent;
            }
            let datagram = outbox.segment_again(to, message, message.segment_again(segment_len));
            if !outbox.push_single(to, datagram) {
                return sent;
            }
            message.note_again(segment_len);
            sent += 1;
        }
    }
    sent
}

/// Datagrams sent again at a time when nothing is acknowledged; what comes of them says what else is missing. Where nobody
/// asks, the last message begun is sent whole all the same, since tries are few.
const RETRANSMITTED_MAX: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameLimits;
    use crate::udp::header::{HEADER_LEN, Parties, Tagger};
    use crate::udp::kept::Kept;
    use crate::udp::options::UdpOptions;
    use std::collections::BTreeSet;

    /// Sends messages again; returns the number and the segment of each datagram.
    fn again(kept: &mut Kept, asks: bool) -> Vec<(u64, u32)> {
        let options = UdpOptions::new(FrameLimits::new(8, 4 << 20).unwrap(), [1; 16]);
        let mut outbox = Outbox::new(&options, Tagger::new(&[1; 16]), 1);
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
        let (parties, address) = (Parties::new(address, address, 0), address.into());
        let to = Destination { address, slot: 0, incarnation: 0, parties };
        let count = send_again(&mut outbox, &to, kept.below_mut(u64::MAX), asks);
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let sent: Vec<_> = outbox
            .singles()
            .map(|datagram| (u64::from(word(datagram, 8)), word(datagram, 20) / 1432, datagram.len() - HEADER_LEN))
            .inspect(|(_, segment, len)| assert!(*len == if *segment == LAST { 1 } else { 1432 }))
            .map(|(number, segment, _)| (number, segment))
            .collect();
        assert_eq!(sent.len() as u64, count);
        sent
    }

    /// The last segment of a message: 1,100 full ones, and one byte.
    const LAST: u32 = 1100;

    fn kept(messages: u64) -> Kept {
        let mut kept = Kept::default();
        let message = vec![0; LAST as usize * 1432 + 1];
        (0..messages).for_each(|number| kept.push(number, &message, &Bulk::empty(), usize::MAX, usize::MAX));
        kept
    }

    #[test]
    fn all_of_a_long_message_is_sent_again_where_nobody_asks() {
        let mut kept = kept(2);
        let (first, second) = (again(&mut kept, false), again(&mut kept, false));
        assert_eq!((first.len(), first[0], second[0]), (1024, (0, 0), (0, 1024)));
        let all: BTreeSet<_> = first.into_iter().chain(second).collect();
        assert_eq!(all, (0..=LAST).map(|segment| (0, segment)).collect());
    }

    #[test]
    fn few_at_a_time_are_enough_where_the_receiver_asks() {
        let mut kept = kept(2);
        let all: Vec<_> = (0..18).flat_map(|_| again(&mut kept, true)).map(|(_, segment)| segment).collect();
        let expected: Vec<_> = (0..=LAST).cycle().take(18 * 64).collect();
        assert_eq!(all, expected);
    }
}
