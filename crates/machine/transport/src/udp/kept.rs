//! Messages that were sent of late, in case a part of them is asked for.

use super::header::HEADER_LEN;
use base::bulk::{Bulk, PageSlice};
use core::ops::Range;
use std::collections::VecDeque;

/// The newest messages to one peer, by number. Bulk stays in its pages.
#[derive(Default)]
pub(super) struct Kept {
    messages: VecDeque<Message>,
    parts: usize,
    bytes: usize,
    /// Messages from here on were queued completely.
    in_parts_end: u64,
    /// Emptied, for its memory.
    spare: Vec<u8>,
}

/// A message that was sent.
pub(super) struct Message {
    number: u64,
    head: Vec<u8>,
    bulk: Bulk,
    /// How many segments of it were sent again.
    repeated: usize,
    /// Where the next segment begins that is sent again unasked.
    again_from: usize,
    /// Its place in the queue, once it was there.
    queued: Option<Ticket>,
    /// What lies beyond was not sent yet: it is sent when it is asked for.
    sent_len: usize,
    /// The place in the queue of what was queued again last, and where that ends in the message.
    again: Option<(Ticket, usize)>,
}

/// The place of a message among all that were ever queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket(pub(super) u64);

impl Kept {
    /// Keeps a message, and forgets older ones beyond the bounds.
    pub(super) fn push(&mut self, number: u64, head: &[u8], bulk: &Bulk, parts_max: usize, bytes_max: usize) {
        if parts_max == 0 {
            return;
        }
        let mut copy = core::mem::take(&mut self.spare);
        copy.extend_from_slice(head);
        let message = Message {
            number,
            head: copy,
            bulk: bulk.clone(),
            repeated: 0,
            again_from: 0,
            queued: None,
            sent_len: 0,
            again: None,
        };
        self.parts += message.parts();
        self.bytes += message.len();
        self.messages.push_back(message);
        for _ in 0..self.displaced_by((0, 0), (parts_max, bytes_max)) {
            self.forget_oldest();
        }
    }

    /// Whether messages are kept that may not have been sent completely.
    pub(super) fn has_in_parts(&self) -> bool {
        self.in_parts_end > 0 && self.oldest().is_some_and(|oldest| oldest < self.in_parts_end)
    }

    /// The first message that was not sent completely, of those that are forgotten when this one is [kept](Self::push).
    pub(super) fn displaced_unsent(
        &mut self,
        head: &[u8],
        bulk: &Bulk,
        bounds: (usize, usize),
    ) -> Option<&mut Message> {
        let displaced = self.displaced_by((parts_of(bulk), head.len() + bulk.len()), bounds);
        self.messages.iter_mut().take(displaced).find(|message| message.sent_len < message.len())
    }

    /// How many of the oldest have to be forgotten for so many more parts and bytes.
    fn displaced_by(&self, more: (usize, usize), (parts_max, bytes_max): (usize, usize)) -> usize {
        let (mut parts, mut bytes) = (self.parts + more.0, self.bytes + more.1);
        let mut is_displaced = |message: &Message| {
            let is_displaced = parts > parts_max || bytes > bytes_max;
            (parts, bytes) = (parts - message.parts(), bytes - message.len());
            is_displaced
        };
        self.messages.iter().take_while(|message| is_displaced(message)).count()
    }

    /// Keeps a message until it is [forgotten](Self::forget). One whose bulk is shorter than `copy_below` is copied, so that it pins
    /// no page.
    pub(super) fn hold(&mut self, number: u64, head: &[u8], bulk: &Bulk, copy_below: usize) {
        if bulk.len() >= copy_below {
            return self.push(number, head, bulk, usize::MAX, usize::MAX);
        }
        let mut whole = Vec::with_capacity(head.len() + bulk.len());
        whole.extend_from_slice(head);
        bulk.slices().iter().for_each(|slice| whole.extend_from_slice(slice.as_bytes()));
        self.push(number, &whole, &Bulk::empty(), usize::MAX, usize::MAX);
    }

    /// Forgets all messages below this one.
    pub(super) fn forget_below(&mut self, end: u64) {
        while self.messages.front().is_some_and(|oldest| oldest.number < end) {
            self.forget_oldest();
        }
    }

    /// Forgets one message; returns its length in bytes, if it was kept.
    pub(super) fn forget(&mut self, number: u64) -> Option<usize> {
        let index = self.messages.binary_search_by_key(&number, |message| message.number).ok()?;
        let message = self.messages.remove(index)?;
        self.parts -= message.parts();
        self.bytes -= message.len();
        Some(message.len())
    }

    /// The oldest that is kept.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.messages.front().map(|message| message.number)
    }

    /// The newest that is kept.
    pub(super) fn newest(&self) -> Option<&Message> {
        self.messages.back()
    }

    /// Their lengths together, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many are kept.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// All messages below this one, in order.
    pub(super) fn below(&self, end: u64) -> impl Iterator<Item = &Message> {
        self.messages.iter().take_while(move |message| message.number < end)
    }

    /// All messages below this one, in order.
    pub(super) fn below_mut(&mut self, end: u64) -> impl Iterator<Item = &mut Message> {
        self.messages.iter_mut().take_while(move |message| message.number < end)
    }

    /// The newest has this place in the queue, as much of it as goes unasked.
    pub(super) fn note_queued(&mut self, ticket: Ticket, first_len: usize) {
        if let Some(newest) = self.messages.back_mut() {
            newest.note_queued(ticket, first_len);
        }
    }

    /// The newest goes in parts.
    pub(super) fn note_in_parts(&mut self) {
        self.in_parts_end = self.messages.back().map_or(self.in_parts_end, |newest| newest.number + 1);
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.messages.pop_front() else { return };
        self.parts -= oldest.parts();
        self.bytes -= oldest.len();
        self.spare = oldest.head;
        self.spare.clear();
    }

    /// A message that is kept.
    pub(super) fn find(&mut self, number: u64) -> Option<&mut Message> {
        let index = self.messages.binary_search_by_key(&number, |message| message.number).ok()?;
        self.messages.get_mut(index)
    }
}

impl Message {
    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.bulk.len()
    }

    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Its place in the queue, once it was there.
    pub(super) fn queued(&self) -> Option<Ticket> {
        self.queued
    }

    /// It goes, from this place in the queue, as much of it as goes unasked.
    pub(super) fn note_queued(&mut self, ticket: Ticket, first_len: usize) {
        (self.queued, self.sent_len) = (Some(ticket), first_len);
    }

    /// What lies beyond was not sent yet.
    pub(super) fn sent_len(&self) -> usize {
        self.sent_len
    }

    /// It was sent up to here at least; returns how far it was before.
    pub(super) fn note_sent(&mut self, end: usize) -> usize {
        let before = self.sent_len;
        self.sent_len = before.max(end);
        before
    }

    /// It goes again up to here, from this place in the queue.
    pub(super) fn note_queued_again(&mut self, ticket: Ticket, end: usize) {
        self.again = Some((ticket, end));
    }

    /// The place in the queue of what was queued again last, and where that ends in the message.
    pub(super) fn queued_again(&self) -> Option<(Ticket, usize)> {
        self.again
    }

    /// What it is made of.
    pub(super) fn contents(&self) -> (&[u8], &Bulk) {
        (&self.head, &self.bulk)
    }

    /// How many segments may be sent again now, of so many that were asked for. An attacker who copies an ask and repeats
    /// it cannot make us send for ever.
    pub(super) fn allowed(&self, asked: usize, segment_len: usize) -> usize {
        let most = REPEATS_MAX * self.len().div_ceil(segment_len);
        asked.min(most - self.repeated)
    }

    /// So many of those that were allowed are sent.
    pub(super) fn note_repeated(&mut self, segments: usize) {
        self.repeated += segments;
    }

    /// The segment to send again unasked.
    pub(super) fn segment_again(&self, segment_len: usize) -> Range<usize> {
        self.again_from..self.len().min(self.again_from + segment_len)
    }

    /// That one was sent: next comes the one behind it, or the first.
    pub(super) fn note_again(&mut self, segment_len: usize) {
        let end = self.again_from + segment_len;
        self.again_from = if end < self.len() { end } else { 0 };
    }

    /// What these bytes of it are made of.
    pub(super) fn part(&self, range: Range<usize>) -> (&[u8], Bulk) {
        cut(&self.head, &self.bulk, range)
    }

    /// The payload of a segment, behind room for its header.
    pub(super) fn datagram(&self, range: Range<usize>) -> Vec<u8> {
        let mut datagram = Vec::with_capacity(HEADER_LEN + range.len());
        datagram.resize(HEADER_LEN, 0);
        let mut at = 0;
        for part in core::iter::once(self.head.as_slice()).chain(self.bulk.slices().iter().map(PageSlice::as_bytes)) {
            let (begin, end) = (range.start.clamp(at, at + part.len()), range.end.clamp(at, at + part.len()));
            datagram.extend_from_slice(&part[begin - at..end - at]);
            at += part.len();
        }
        datagram
    }

    fn parts(&self) -> usize {
        parts_of(&self.bulk)
    }
}

/// How many parts a message with this bulk counts as.
fn parts_of(bulk: &Bulk) -> usize {
    bulk.slices().len().max(1)
}

/// What these bytes of a message are made of.
pub(super) fn cut<'a>(head: &'a [u8], bulk: &Bulk, range: Range<usize>) -> (&'a [u8], Bulk) {
    let mut at = head.len();
    let head = &head[range.start.min(at)..range.end.min(at)];
    let mut slices = Vec::new();
    for slice in bulk.slices() {
        let end = at + slice.len();
        let (begin, stop) = (range.start.clamp(at, end), range.end.clamp(at, end));
        if begin < stop {
            slices.push(slice.slice(begin - at..stop - at));
        }
        at = end;
    }
    (head, Bulk::PageList(slices))
}

/// Times that each segment may be sent again, on average: enough where half of all datagrams are lost.
const REPEATS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::{Kept, REPEATS_MAX};
    use base::bulk::{Bulk, PageSlice};

    fn bulk(slices: &[&'static [u8]]) -> Bulk {
        Bulk::PageList(slices.iter().map(|slice| PageSlice::from_static(slice)).collect())
    }

    #[test]
    fn the_newest_are_kept() {
        let mut kept = Kept::default();
        for number in 0..10 {
            kept.push(number, b"head", &bulk(&[b"bulk", b"more"]), 6, 1000);
        }
        assert!(kept.find(6).is_none() && kept.find(7).is_some() && kept.find(9).is_some() && kept.find(10).is_none());
        kept.push(10, &[0; 900], &Bulk::empty(), 100, 920);
        assert!(kept.find(8).is_none() && kept.find(9).is_some() && kept.find(10).is_some());
        kept.push(11, &[0; 2000], &Bulk::empty(), 100, 920);
        assert!((0..12).all(|number| kept.find(number).is_none()));
        assert_eq!((kept.parts, kept.bytes), (0, 0));
        kept.push(12, b"head", &Bulk::empty(), 0, 1000);
        assert!(kept.find(12).is_none());
    }

    #[test]
    fn a_segment_is_cut_from_all_parts() {
        let mut kept = Kept::default();
        kept.push(0, b"head", &bulk(&[b"bulk", b"more"]), 9, 1000);
        let message = kept.find(0).unwrap();
        let payload = |range| message.datagram(range).split_off(super::HEADER_LEN);
        assert_eq!(payload(0..12), b"headbulkmore");
        assert_eq!(payload(3..9), b"dbulkm");
        assert_eq!(payload(4..8), b"bulk");
        assert_eq!(payload(12..12), b"");
        let part = |range| {
            let (head, bulk) = message.part(range);
            [head, &bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec()).collect::<Vec<_>>()].concat()
        };
        assert_eq!([part(0..12), part(3..9), part(4..8)], [&b"headbulkmore"[..], b"dbulkm", b"bulk"]);
    }

    #[test]
    fn repeated_asks_come_to_an_end() {
        let mut kept = Kept::default();
        kept.push(0, &[0; 100], &Bulk::empty(), 9, 1000);
        let message = kept.find(0).unwrap();
        let mut sent = 0;
        for _ in 0..1000 {
            let allowed = message.allowed(7, 10);
            message.note_repeated(allowed);
            sent += allowed;
        }
        assert_eq!(sent, REPEATS_MAX * 10);
    }
}
