//! What is missing, here and at peers: asks, answers, and what is said of what was sent.

use super::acknowledging::send_again;
use super::{Endpoint, earlier};
use crate::udp::acknowledged::Overdue;
use crate::udp::asking::Asking;
use crate::udp::header::{Ask, HEADER_LEN, Notice, Said, Seal};
use crate::udp::kept::Message;
use base::time::Time;
use core::time::Duration;

impl Endpoint {
    /// Does what has been due for so long, and what is to be done at once.
    pub(super) fn expire(&mut self, now: Time, patience: Duration) {
        self.deadline = None;
        let asks = !self.options.ask_after.is_zero();
        let part_len = self.part_len();
        for peer in self.peers.iter_mut() {
            let asking = Asking::new(&self.options, &self.tagger, &peer.to);
            self.udp_counters.timed_out += peer.reassembly.expire(now);
            let (asked, datagrams) = asking.ask(peer.reassembly.due(now, patience), part_len);
            self.udp_counters.asked += asked.messages;
            self.udp_counters.asked_most = self.udp_counters.asked_most.max(asked.most.into());
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

    /// Says what was sent to those whose time has come, unless they are sent something anyway, whose numbers say as much.
    pub(super) fn send_notices(&mut self, now: Time) {
        if !core::mem::take(&mut self.notices_due) {
            return;
        }
        for peer in self.peers.iter_mut().filter(|peer| peer.notice_at.is_some_and(|at| at <= now)) {
            let newest = peer.kept.newest().and_then(Message::queued);
            if newest.is_some_and(|ticket| self.outbox.sent_len(ticket).is_some()) {
                // It would overtake it.
                peer.notice_at = Some(now + self.options.ask_after);
            } else {
                let asking = Asking::new(&self.options, &self.tagger, &peer.to);
                self.outbox.push_single(&peer.to, asking.sent(peer.sent_below()));
                peer.notice_pause *= 2;
                // It may be lost, and comes again as long as what it tells of is of use.
                let is_of_use = peer.notice_pause < self.options.incomplete_timeout;
                peer.notice_at = is_of_use.then(|| now + peer.notice_pause);
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
                (peer.notice_at, peer.notice_pause) = (Some(at), self.options.ask_after);
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
            self.deadline = earlier(self.deadline, Some(now));
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
            self.outbox.push_single(&peer.to, Asking::new(&self.options, &self.tagger, &peer.to).received(end));
        }
    }

    /// Sends again what a datagram asks for.
    pub(super) fn answer_all(&mut self, peer: u32, first: Ask, more: &[u8], now: Time) {
        if !self.is_current(peer, first.incarnation) {
            return;
        }
        self.answer(peer, first, now);
        for header in more.chunks(HEADER_LEN) {
            let seal = Seal { tagger: &self.tagger, parties: &self.peers.found(peer).from };
            let said = header.first_chunk().map(|header| Said::read(header, &[], seal));
            match said {
                Some(Ok(Said::Ask(ask)))
                    if (ask.incarnation, ask.segment_len) == (first.incarnation, first.segment_len) =>
                {
                    self.answer(peer, ask, now);
                }
                _ => self.udp_counters.contradictory += 1,
            }
        }
    }

    pub(super) fn answer(&mut self, peer: u32, ask: Ask, now: Time) {
        let segment_len = self.options.segment_len();
        let peer = self.peers.found(peer);
        let (offset, len) = (ask.offset as usize, ask.len as usize);
        let is_sent = ask.number < peer.sent_below();
        let Some(message) = peer.kept.find(ask.number).filter(|_| is_sent) else {
            self.udp_counters.asks_refused += 1;
            return;
        };
        let whole_len = message.len();
        let asked_end =
            if len == 0 { self.options.first_part_len(whole_len, true) } else { offset.saturating_add(len) };
        let mut end = whole_len.min(asked_end);
        if let Some(sent_len) = message.queued().and_then(|ticket| self.outbox.sent_len(ticket)) {
            // The rest is on its way already.
            end = end.min(sent_len);
        }
        let asked = end.saturating_sub(offset).div_ceil(segment_len);
        // Whoever asks again for what waits has it soon.
        let waits = message
            .queued_again()
            .is_some_and(|(ticket, waiting_end)| offset < waiting_end && self.outbox.sent_len(ticket).is_some());
        let is_legal = offset.is_multiple_of(segment_len) && !waits;
        let allowed = if is_legal { message.allowed(asked, segment_len) } else { 0 };
        if allowed == 0 {
            self.udp_counters.asks_refused += 1;
            return;
        }
        let many = allowed.min(self.outbox.room_again() / segment_len);
        let range = offset..end.min(offset + many * segment_len);
        let ticket = (many > SINGLES_PER_ASK).then(|| self.outbox.push_again(&peer.to, message, range.clone()).ok());
        let pushed = if let Some(ticket) = ticket.flatten() {
            message.note_queued_again(ticket, range.end);
            many
        } else {
            let few = allowed.min(SINGLES_PER_ASK);
            let mut starts = (offset..).step_by(segment_len).take(few);
            let mut fits = |start: usize| {
                let range = start..whole_len.min(start + segment_len);
                self.outbox.push_single(&peer.to, self.outbox.segment_again(&peer.to, message, range))
            };
            starts.position(|start| !fits(start)).unwrap_or(few)
        };
        self.udp_counters.asks_answered += 1;
        message.note_repeated(pushed);
        let new_from = message.note_sent(offset + pushed * segment_len);
        self.udp_counters.repeated += new_from.saturating_sub(offset).div_ceil(segment_len).min(pushed) as u64;
        if let Some(window) = &mut peer.send_window {
            window.note_asked(now);
        }
    }

    /// How much to ask for at a time, of each message that is sent in parts. That much finds room in the receive buffer beside
    /// what is asked for of the others.
    fn part_len(&self) -> usize {
        let in_parts: usize = self.peers.iter().map(|peer| peer.reassembly.in_parts()).sum();
        (self.buffers.receive_granted / KERNEL_BYTES_PER_BYTE / in_parts.max(1))
            .min(UNASKED_PER_PART * self.options.unasked_len)
    }
}

/// More segments than these go through the queue: without a copy, and cut by the kernel. If it has no room, these go all the same: a
/// peer that has taken it leaves others their share of the single datagrams.
const SINGLES_PER_ASK: usize = 16;

/// A byte of an Ethernet datagram with its share of the management, as the kernel counts its buffers. It is twice that, so that
/// others find room as well.
const KERNEL_BYTES_PER_BYTE: usize = 4;

/// A part is so many times as long as what goes unasked: a longer one would keep the network no busier.
const UNASKED_PER_PART: usize = 4;
