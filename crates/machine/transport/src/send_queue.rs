//! Frames on their way out.

use crate::frame::FrameLimits;
use base::bulk::{Bulk, PageSlice};
use std::collections::VecDeque;
use std::io::IoSlice;

/// A bounded queue of frames, ready for vectored writes.
///
/// Parts below `copy_below` are copied one behind the other into one buffer, larger ones kept as slices; the order of
/// both is in `segments`. In the steady state nothing is allocated: the buffer and the queues keep their memory.
pub(crate) struct SendQueue {
    limits: FrameLimits,
    copy_below: usize,
    bytes_max: usize,
    frames_max: usize,
    /// Copied bytes, the first `copied_sent` of which were sent. Mostly all are before more come, so that the buffer begins anew.
    copied: Vec<u8>,
    copied_sent: usize,
    segments: VecDeque<Segment>,
    /// Per frame, how much of it was not sent yet.
    frame_lens: VecDeque<usize>,
    bytes: usize,
}

/// The next bytes to be sent.
enum Segment {
    /// This many, not zero, from the front of the copied ones.
    Copied(usize),
    /// The slice from this offset on.
    Shared(PageSlice, usize),
}

/// The queue is at its bound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl SendQueue {
    pub(crate) fn new(limits: FrameLimits, copy_below: usize, bytes_max: usize, frames_max: usize) -> Self {
        Self {
            limits,
            // An empty slice has nothing to be sent in place.
            copy_below: copy_below.max(1),
            bytes_max,
            frames_max,
            copied: Vec::new(),
            copied_sent: 0,
            segments: VecDeque::new(),
            frame_lens: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Frames that are queued from now on have these limits.
    pub(crate) fn renew(&mut self, limits: FrameLimits, copy_below: usize, bytes_max: usize, frames_max: usize) {
        (self.limits, self.copy_below) = (limits, copy_below.max(1));
        (self.bytes_max, self.frames_max) = (bytes_max, frames_max);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Those of them that were copied.
    pub(crate) fn copied_bytes(&self) -> usize {
        self.copied.len() - self.copied_sent
    }

    pub(crate) fn push(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), Full> {
        self.limits.checked_len(head, bulk);
        self.push_part(head, bulk)
    }

    /// Part of a frame that comes in parts; each counts as one here.
    pub(crate) fn push_part(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), Full> {
        let len = head.len() + bulk.len();
        if self.bytes + len > self.bytes_max || self.frame_lens.len() == self.frames_max {
            return Err(Full);
        }
        let mut begun = self.copied.len();
        self.copied.extend_from_slice(head);
        for slice in bulk.slices() {
            if slice.len() < self.copy_below {
                self.copied.extend_from_slice(slice.as_bytes());
            } else {
                self.end_copy(begun);
                self.segments.push_back(Segment::Shared(slice.clone(), 0));
                begun = self.copied.len();
            }
        }
        self.end_copy(begun);
        self.frame_lens.push_back(len);
        self.bytes += len;
        Ok(())
    }

    /// At least as many parts as there are to be gathered.
    pub(crate) fn parts_max(&self) -> usize {
        self.segments.len()
    }

    /// Fills `gathered` with what is to be sent next; returns how many of its places, and bytes.
    pub(crate) fn gather<'a>(&'a self, gathered: &mut [IoSlice<'a>]) -> (usize, usize) {
        let mut copied = &self.copied[self.copied_sent..];
        let (mut count, mut bytes) = (0, 0);
        let mut add = |part: &'a [u8]| {
            let has_place = count < gathered.len();
            if has_place && !part.is_empty() {
                gathered[count] = IoSlice::new(part);
                count += 1;
                bytes += part.len();
            }
            has_place
        };
        for segment in &self.segments {
            let has_place = match segment {
                Segment::Shared(slice, sent_len) => add(&slice.as_bytes()[*sent_len..]),
                Segment::Copied(len) => {
                    let (part, behind) = copied.split_at(*len);
                    copied = behind;
                    add(part)
                }
            };
            if !has_place {
                break;
            }
        }
        (count, bytes)
    }

    /// Forgets the first `len` bytes, which were sent; returns how many frames that completes.
    pub(crate) fn advance(&mut self, len: usize) -> u64 {
        self.bytes -= len;
        self.forget_segments(len);
        let (mut left, mut frames) = (len, 0);
        while left > 0 {
            let frame_len = self.frame_lens.front_mut().expect("what was sent belongs to a frame");
            let sent_len = left.min(*frame_len);
            *frame_len -= sent_len;
            left -= sent_len;
            if *frame_len == 0 {
                self.frame_lens.pop_front();
                frames += 1;
            }
        }
        frames
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        self.copied.clear();
        self.copied_sent = 0;
        self.segments.clear();
        self.frame_lens.clear();
        self.bytes = 0;
    }

    /// What was copied from `begun` on is to be sent next.
    fn end_copy(&mut self, begun: usize) {
        let copied = self.copied.len() - begun;
        match self.segments.back_mut() {
            _ if copied == 0 => {}
            Some(Segment::Copied(len)) => *len += copied,
            _ => self.segments.push_back(Segment::Copied(copied)),
        }
    }

    fn forget_segments(&mut self, len: usize) {
        let (mut left, mut copied) = (len, 0);
        while left > 0 {
            let segment = self.segments.front_mut().expect("what was sent was in the queue");
            let sent_len = match segment {
                Segment::Copied(len) => {
                    let sent_len = left.min(*len);
                    *len -= sent_len;
                    copied += sent_len;
                    if *len == 0 {
                        self.segments.pop_front();
                    }
                    sent_len
                }
                Segment::Shared(slice, start) => {
                    let sent_len = left.min(slice.len() - *start);
                    *start += sent_len;
                    if *start == slice.len() {
                        self.segments.pop_front();
                    }
                    sent_len
                }
            };
            left -= sent_len;
        }
        self.copied_sent += copied;
        if self.copied_sent == self.copied.len() {
            self.copied.clear();
            self.copied_sent = 0;
        } else if self.copied_sent >= SENT_KEPT_MAX && self.copied_sent >= self.copied_bytes() {
            self.copied.drain(..self.copied_sent);
            self.copied_sent = 0;
        }
    }
}

/// So many bytes that were sent may lie before the others. Beyond that, no more than there are others: to close the gap, no more are
/// moved than were sent.
const SENT_KEPT_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::{Full, SENT_KEPT_MAX, SendQueue};
    use crate::frame::FrameLimits;
    use base::bulk::{Bulk, PageSlice};
    use proptest::prelude::*;
    use std::io::IoSlice;

    fn head(len: usize, bulk_len: usize) -> Vec<u8> {
        let mut head = vec![7; len];
        head[..4].copy_from_slice(&((len + bulk_len) as u32).to_le_bytes());
        head
    }

    fn bulk(lens: &[usize], seed: usize) -> Bulk {
        let slice = |len: &usize| PageSlice::from((0..*len).map(|i| (i * 3 + seed) as u8).collect::<Vec<_>>());
        Bulk::PageList(lens.iter().map(slice).collect())
    }

    fn send_some(queue: &mut SendQueue, places: usize, len_max: usize) -> (Vec<u8>, u64) {
        let mut gathered = [IoSlice::new(&[]); 8];
        let (count, bytes) = queue.gather(&mut gathered[..places]);
        let mut sent: Vec<u8> = gathered[..count].iter().flat_map(|part| part.to_vec()).collect();
        assert_eq!(sent.len(), bytes);
        sent.truncate(len_max);
        let frames = queue.advance(sent.len());
        (sent, frames)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn what_is_sent_is_what_was_queued(
            frames in prop::collection::vec((4_usize..40, prop::collection::vec(0_usize..60, 0..4)), 1..40),
            writes in prop::collection::vec((1_usize..=8, 1_usize..200), 1..10),
        ) {
            let limits = FrameLimits::new(4, 400).unwrap();
            let mut queue = SendQueue::new(limits, 30, 2000, 5);
            let (mut expected, mut sent, mut frames_sent) = (Vec::new(), Vec::new(), 0);
            let mut writes = writes.iter().cycle();
            for (seed, (head_len, lens)) in frames.iter().enumerate() {
                let head = head(*head_len, lens.iter().sum());
                let bulk = bulk(lens, seed);
                expected.extend_from_slice(&head);
                bulk.slices().iter().for_each(|slice| expected.extend_from_slice(slice.as_bytes()));
                while queue.push(&head, &bulk) == Err(Full) {
                    let (places, len_max) = writes.next().unwrap();
                    let (bytes, frames) = send_some(&mut queue, *places, *len_max);
                    sent.extend(bytes);
                    frames_sent += frames;
                }
            }
            while !queue.is_empty() {
                let (bytes, frames) = send_some(&mut queue, 8, usize::MAX);
                sent.extend(bytes);
                frames_sent += frames;
            }
            prop_assert_eq!(sent, expected);
            prop_assert_eq!(frames_sent, frames.len() as u64);
            prop_assert!(queue.copied.is_empty() && queue.segments.is_empty() && queue.frame_lens.is_empty());
        }
    }

    #[test]
    fn the_queue_is_bounded_in_frames_and_in_bytes() {
        let limits = FrameLimits::new(4, 100).unwrap();
        let mut queue = SendQueue::new(limits, 30, 100, 3);
        for _ in 0..3 {
            queue.push(&head(10, 0), &Bulk::empty()).unwrap();
        }
        assert_eq!(queue.push(&head(10, 0), &Bulk::empty()), Err(Full));
        queue.clear();
        queue.push(&head(10, 50), &bulk(&[50], 1)).unwrap();
        assert_eq!(queue.push(&head(41, 0), &Bulk::empty()), Err(Full));
        assert_eq!(queue.bytes(), 60);
        queue.push(&head(40, 0), &Bulk::empty()).unwrap();
    }

    #[test]
    fn only_large_parts_keep_their_page() {
        let limits = FrameLimits::new(4, 100).unwrap();
        let mut queue = SendQueue::new(limits, 30, 1000, 10);
        queue.push(&head(10, 29), &bulk(&[29], 1)).unwrap();
        assert_eq!(queue.segments.len(), 1);
        queue.push(&head(10, 30), &bulk(&[30], 1)).unwrap();
        assert_eq!(queue.segments.len(), 2);
    }

    #[test]
    #[should_panic(expected = "states the sum of its parts")]
    fn a_frame_of_our_own_with_a_wrong_length_is_a_bug() {
        let limits = FrameLimits::new(4, 100).unwrap();
        let _ = SendQueue::new(limits, 30, 1000, 10).push(&head(10, 1), &Bulk::empty());
    }

    #[test]
    fn what_was_sent_does_not_pile_up_before_what_waits() {
        let limits = FrameLimits::new(4, 400).unwrap();
        let mut queue = SendQueue::new(limits, 64, 1 << 20, 1 << 16);
        let (mut queued, mut sent) = (Vec::new(), Vec::new());
        for round in 0..4000_usize {
            let (head, bulk) = (head(20, 60), bulk(&[20, 40], round));
            queue.push(&head, &bulk).unwrap();
            queued.extend_from_slice(&head);
            bulk.slices().iter().for_each(|slice| queued.extend_from_slice(slice.as_bytes()));
            if round > 1000 {
                sent.extend(send_some(&mut queue, 8, 75 + round % 10).0);
            }
            assert!(queue.copied.len() <= 2 * queue.copied_bytes() + SENT_KEPT_MAX);
        }
        while !queue.is_empty() {
            sent.extend(send_some(&mut queue, 8, usize::MAX).0);
        }
        assert!(sent == queued && queue.copied.is_empty());
    }
}
