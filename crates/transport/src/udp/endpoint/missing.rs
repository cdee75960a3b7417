//! What is missing, here and at peers: asks, answers, and what is said of what was sent.

use super::acknowledging::send_again;
use super::{Endpoint, earlier};
use crate::udp::acknowledged::Overdue;
use crate::udp::asking::Asking;
use crate::udp::header::{Ask, HEADER_LEN, Notice, Said, Tagger};
use crate::udp::options::UdpOptions;
use crate::udp::outbox::Destination;
use dataflow::time::Time;

impl Endpoint {
    pub(super) fn expire(&mut self, now: Time) {
        self.deadline = None;
        let asks = !self.options.ask_after.is_zero();
        for peer in self.peers.iter_mut() {
            let asking = asking(&self.options, &self.tagger, &peer.to);
            self.udp_counters.timed_out += peer.reassembly.expire(now);
            let (asked, datagrams) = asking.ask(&mut peer.reassembly, now);
            self.udp_counters.asked += asked;
            // What is not asked for now is asked for later.
            datagrams.into_iter().for_each(|datagram| _ = self.outbox.push_single(&peer.to, datagram));
            let is_notice_due = peer.notice_at.is_some_and(|at| at <= now);
            self.notices_due |= is_notice_due;
            if let Some(window) = &mut peer.send_window {
                match window.expire(&mut peer.kept, now) {
                    Some(Overdue::SendAgain(end)) => {
                        self.udp_counters.retransmitted +=
                            send_again(&mut self.outbox, &peer.to, peer.kept.below_mut(end), asks);
                    }
                    Some(Overdue::GivenUp(count)) => {
                        self.udp_counters.unacknowledged += count;
                        let end = peer.kept.oldest().unwrap_or(peer.next_number);
                        self.outbox.push_single(&peer.to, asking.given_up(end));
                    }
                    None => {}
                }
            }
            let retransmit_at = peer.send_window.and_then(|window| window.deadline());
            // A notice that is due goes with the next flush.
            let notice_at = peer.notice_at.filter(|_| !is_notice_due);
            let due = [peer.reassembly.next_deadline(), notice_at, retransmit_at].into_iter().flatten().min();
            self.deadline = earlier(self.deadline, due);
        }
        self.release(now);
    }

    /// Says what was sent to those whose time has come, unless something is sent anyway, whose numbers say as much.
    pub(super) fn send_notices(&mut self, now: Time) {
        if !core::mem::take(&mut self.notices_due) {
            return;
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.notice_at.is_some_and(|at| at <= now)) {
            if self.outbox.has_messages() {
                // It would overtake them.
                peer.notice_at = Some(now + self.options.ask_after);
            } else {
                let asking = asking(&self.options, &self.tagger, &peer.to);
                self.outbox.push_single(&peer.to, asking.sent(peer.sent_below()));
                peer.notices += 1;
                let pause = self.options.ask_after * (1 << peer.notices);
                peer.notice_at = (peer.notices < NOTICES_MAX).then(|| now + pause);
            }
            self.deadline = earlier(self.deadline, peer.notice_at);
        }
    }

    /// What is sent last nobody can know to be lost, unless told.
    pub(super) fn schedule_notices(&mut self, now: Time) {
        let Some(at) = (!self.to_notify.is_empty()).then(|| now + self.options.ask_after) else { return };
        for id in self.to_notify.drain(..) {
            let Some(peer) = self.peers.find_by_id(id) else { continue };
            if !self.options.ask_after.is_zero() {
                (peer.notice_at, peer.notices) = (Some(at), 0);
            }
            let retransmit_at = peer.send_window.as_mut().and_then(|window| window.arm(now));
            self.deadline = earlier(self.deadline, retransmit_at);
        }
        self.deadline = earlier(self.deadline, Some(at));
    }

    /// A peer says what it has sent: either something is missing, or it is told that all has come.
    pub(super) fn take_sent(&mut self, peer: u32, notice: Notice, now: Time) {
        if !self.is_current(peer, notice.incarnation) {
            return;
        }
        if self.peers.found(peer).note_sent(notice.end, now) {
            self.deadline = Some(now);
        }
        if self.peers.found(peer).in_order.is_some() {
            self.owe(peer);
        } else if self.peers.found(peer).received_end() >= notice.end {
            self.tell_received(peer);
        }
    }

    pub(super) fn take_received(&mut self, peer: u32, notice: Notice) {
        if !self.is_current(peer, notice.incarnation) {
            return;
        }
        let peer = self.peers.found(peer);
        // What was given up counts as received here.
        if peer.send_window.is_some() {
            self.udp_counters.acknowledgements_refused += 1;
        } else {
            peer.note_received(notice.end);
        }
    }

    pub(super) fn tell_received(&mut self, peer: u32) {
        let peer = self.peers.found(peer);
        let end = peer.received_end();
        if !self.options.ask_after.is_zero() {
            self.outbox.push_single(&peer.to, asking(&self.options, &self.tagger, &peer.to).received(end));
        }
    }

    /// Sends again what a datagram asks for.
    pub(super) fn answer_all(&mut self, peer: u32, first: Ask, more: &[u8]) {
        if !self.is_current(peer, first.incarnation) {
            return;
        }
        self.answer(peer, first);
        for header in more.chunks(HEADER_LEN) {
            let said = header.first_chunk().map(|header| Said::read(header, &self.tagger));
            match said {
                Some(Ok(Said::Ask(ask)))
                    if (ask.incarnation, ask.segment_len) == (first.incarnation, first.segment_len) =>
                {
                    self.answer(peer, ask);
                }
                _ => self.udp_counters.contradictory += 1,
            }
        }
    }

    pub(super) fn answer(&mut self, peer: u32, ask: Ask) {
        let segment_len = self.options.segment_len();
        let peer = self.peers.found(peer);
        let (offset, len) = (ask.offset as usize, ask.len as usize);
        let is_sent = ask.number < peer.sent_below();
        let Some(message) = peer.kept.find(ask.number).filter(|_| is_sent) else {
            self.udp_counters.asks_refused += 1;
            return;
        };
        let mut end = if len == 0 { message.len() } else { message.len().min(offset.saturating_add(len)) };
        if let Some(sent_len) = message.queued().and_then(|ticket| self.outbox.sent_len(ticket)) {
            // The rest is on its way already.
            end = end.min(sent_len);
        }
        let asked = end.saturating_sub(offset).div_ceil(segment_len);
        let allowed = if offset.is_multiple_of(segment_len) { message.allow(asked, segment_len) } else { 0 };
        if allowed == 0 {
            self.udp_counters.asks_refused += 1;
            return;
        }
        self.udp_counters.asks_answered += 1;
        for start in (offset..end).step_by(segment_len).take(allowed) {
            let range = start..message.len().min(start + segment_len);
            let datagram = self.outbox.segment_again(&peer.to, message, range);
            if !self.outbox.push_single(&peer.to, datagram) {
                return;
            }
            self.udp_counters.repeated += 1;
        }
    }
}

pub(super) fn asking<'a>(options: &UdpOptions, tagger: &'a Tagger, to: &Destination) -> Asking<'a> {
    Asking { incarnation: to.incarnation, segment_len: options.segment_len(), tagger }
}

/// How often a peer is told the same: twice as long after each other.
const NOTICES_MAX: u32 = 3;
