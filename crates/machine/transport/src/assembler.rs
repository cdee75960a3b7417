//! Frames from a byte stream, in place.

use crate::frame::{FrameLimits, Malformed};
use crate::link::LinkCounters;
use crate::page_pool::{Page, Pool};
use base::bulk::PageSlice;

/// Cuts a byte stream that is written straight into pool pages into frames, without copying whole frames.
///
/// Repeat: [`buffer`](Self::buffer), write to it, [`commit`](Self::commit), then [`next_frame`](Self::next_frame) until there is none.
/// Each commit makes one slice of all frames that it completed, from which the frames are cut. The unfinished frame behind them stays
/// with the writer. Where a page ends within a frame, the frame's beginning is copied to a new page.
pub(crate) struct Assembler {
    limits: FrameLimits,
    copy_below: usize,
    pool: Pool,
    page: Option<Page>,
    /// Length of the unfinished frame's beginning, which lies at the start of what the page's writer still has.
    unfinished_len: usize,
    /// Complete frames, delivered up to `delivered_len`.
    complete: PageSlice,
    delivered_len: usize,
    malformed: Option<Malformed>,
    /// Bytes of the stream before the unfinished frame.
    offset: u64,
}

impl Assembler {
    /// # Panics
    /// If a frame can be longer than a page: a limit that callers check first.
    pub(crate) fn new(limits: FrameLimits, copy_below: usize, pool: Pool) -> Self {
        assert!(limits.len_max() <= pool.page_len(), "a frame fits in a page");
        Self {
            limits,
            copy_below,
            pool,
            page: None,
            unfinished_len: 0,
            complete: PageSlice::default(),
            delivered_len: 0,
            malformed: None,
            offset: 0,
        }
    }

    /// From now on frames have these limits, and pages come from this pool. Whether the stream goes on where it was: if a frame has begun,
    /// that takes a page of the new pool.
    ///
    /// # Panics
    /// If a frame can be longer than a page.
    #[must_use]
    pub(crate) fn renew(&mut self, limits: FrameLimits, copy_below: usize, pool: Pool) -> bool {
        assert!(limits.len_max() <= pool.page_len(), "a frame fits in a page");
        (self.limits, self.copy_below) = (limits, copy_below);
        let begun = core::mem::take(&mut self.unfinished_len);
        let old = self.page.take().filter(|_| begun > 0);
        self.pool = pool;
        let Some(old) = old else { return true };
        let Some(mut next) = self.pool.take() else { return false };
        next.bytes_mut()[..begun].copy_from_slice(&old.bytes()[..begun]);
        (self.page, self.unfinished_len) = (Some(next), begun);
        true
    }

    /// Where the stream continues: at most `len_max` bytes, never empty; `None` if that takes a page and the pool has none.
    pub(crate) fn buffer(&mut self, len_max: usize, counters: &mut LinkCounters) -> Option<&mut [u8]> {
        self.make_room(counters);
        let unfinished_len = self.unfinished_len;
        let room = &mut self.page.as_mut()?.bytes_mut()[unfinished_len..];
        let len = room.len().min(len_max);
        (len > 0).then(|| &mut room[..len])
    }

    /// Takes in the first `len` bytes of the buffer.
    pub(crate) fn commit(&mut self, len: usize, counters: &mut LinkCounters) {
        assert!(!self.has_frames(), "frames are delivered before more is taken in");
        let page = self.page.as_mut().expect("bytes were written to a page");
        let filled_len = self.unfinished_len + len;
        let filled = &page.bytes()[..filled_len];
        let mut complete_len = 0;
        while self.malformed.is_none() {
            let rest = &filled[complete_len..];
            match self.limits.read_len(rest, self.offset) {
                Ok(Some(frame_len)) if frame_len <= rest.len() => {
                    complete_len += frame_len;
                    self.offset += frame_len as u64;
                    counters.frames_received += 1;
                    counters.small_frames_received += u64::from(frame_len < self.copy_below);
                }
                Ok(_) => break,
                Err(malformed) => self.malformed = Some(malformed),
            }
        }
        self.unfinished_len = filled_len - complete_len;
        if complete_len > 0 {
            self.complete = page.split_to(complete_len);
            self.delivered_len = 0;
        }
    }

    pub(crate) fn next_frame(&mut self) -> Option<PageSlice> {
        let rest = &self.complete.as_bytes()[self.delivered_len..];
        let field = rest.first_chunk()?;
        let start = self.delivered_len;
        self.delivered_len += u32::from_le_bytes(*field) as usize;
        if start == 0 && self.delivered_len == self.complete.len() {
            self.delivered_len = 0;
            return Some(core::mem::take(&mut self.complete));
        }
        let frame = self.complete.slice(start..self.delivered_len);
        if self.delivered_len == self.complete.len() {
            self.release();
        }
        Some(frame)
    }

    /// Whether complete frames wait.
    pub(crate) fn has_frames(&self) -> bool {
        self.delivered_len < self.complete.len()
    }

    /// Whether [`buffer`](Self::buffer) would give one.
    pub(crate) fn has_room(&self) -> bool {
        let page_has_room = |page: &Page| page.len() > self.unfinished_len || page.is_sole_holder();
        self.pool.has_free() || self.page.as_ref().is_some_and(page_has_room)
    }

    /// What the stream holds after the last frame, if it is no frame.
    pub(crate) fn malformed(&self) -> Option<Malformed> {
        self.malformed
    }

    /// Length of the beginning of a frame that came last.
    pub(crate) fn unfinished_len(&self) -> usize {
        self.unfinished_len
    }

    /// Gives back all pages but those of delivered frames.
    pub(crate) fn close(&mut self) {
        self.page = None;
        self.unfinished_len = 0;
        self.release();
    }

    fn release(&mut self) {
        self.complete = PageSlice::default();
        self.delivered_len = 0;
    }

    /// Sees to it that the unfinished frame can be finished where it is, and that the next read is a large one.
    fn make_room(&mut self, counters: &mut LinkCounters) {
        let Some(page) = &mut self.page else {
            self.page = self.pool.take();
            counters.pool_empty += u64::from(self.page.is_none());
            return;
        };
        let unfinished_len = self.unfinished_len;
        // Connections that say little then touch little of their pages.
        if unfinished_len == 0 && page.is_begun() && page.rewind_keeping(0) {
            return;
        }
        let read_len_min = (self.pool.page_len() / 4).min(READ_LEN_MIN);
        let frame_len = self.limits.read_len(&page.bytes()[..unfinished_len], self.offset).ok().flatten();
        let wanted_len = frame_len.unwrap_or(0).max(unfinished_len + read_len_min);
        if page.len() >= wanted_len || !page.is_begun() {
            return;
        }
        if page.rewind_keeping(unfinished_len) {
            counters.bytes_moved += unfinished_len as u64;
        } else if let Some(mut next) = self.pool.take() {
            next.bytes_mut()[..unfinished_len].copy_from_slice(&page.bytes()[..unfinished_len]);
            counters.bytes_moved += unfinished_len as u64;
            self.page = Some(next);
        } else if !page.rewind_keeping(unfinished_len) {
            counters.pool_empty += 1;
        }
    }
}

/// The smallest room worth a system call in bytes, for large pages: the rest of a page below it is given up.
const READ_LEN_MIN: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::Assembler;
    use crate::frame::FrameLimits;
    use crate::link::LinkCounters;
    use crate::page_pool::{Pool, PoolOptions};
    use base::bulk::PageSlice;
    use proptest::prelude::*;

    const PAGE_LEN: usize = 256;

    struct Fixture {
        pool: Pool,
        assembler: Assembler,
        counters: LinkCounters,
    }

    impl Fixture {
        fn new(pages: usize) -> Self {
            let pool =
                Pool::new(&PoolOptions { name: "test".into(), page_len: PAGE_LEN, pages, prefault: false }).unwrap();
            let limits = FrameLimits::new(4, PAGE_LEN).unwrap();
            let assembler = Assembler::new(limits, 16, pool.clone());
            Self { pool, assembler, counters: LinkCounters::default() }
        }

        fn write(&mut self, bytes: &[u8]) -> Option<usize> {
            let buffer = self.assembler.buffer(usize::MAX, &mut self.counters)?;
            let len = bytes.len().min(buffer.len());
            buffer[..len].copy_from_slice(&bytes[..len]);
            self.assembler.commit(len, &mut self.counters);
            Some(len)
        }

        fn frames(&mut self) -> Vec<PageSlice> {
            core::iter::from_fn(|| self.assembler.next_frame()).collect()
        }
    }

    fn frame(len: usize, seed: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..len).map(|i| (i * 7 + seed) as u8).collect();
        bytes[..4].copy_from_slice(&(len as u32).to_le_bytes());
        bytes
    }

    /// Feeds `stream` in pieces of the given lengths, in rotation; `held` slices stay alive at a time.
    fn feed(fixture: &mut Fixture, stream: &[u8], pieces: &[usize], held: usize) -> Vec<Vec<u8>> {
        let mut kept = std::collections::VecDeque::new();
        let (mut received, mut at) = (Vec::new(), 0);
        for piece in pieces.iter().cycle() {
            if at == stream.len() {
                break;
            }
            let end = stream.len().min(at + piece);
            at += fixture.write(&stream[at..end]).expect("enough pages for the slices that are held");
            for slice in fixture.frames() {
                received.push(slice.as_bytes().to_vec());
                kept.push_back((slice, received.len() - 1));
                if kept.len() > held {
                    kept.pop_front();
                }
            }
            for (slice, index) in &kept {
                assert_eq!(slice.as_bytes(), received[*index], "a slice does not change while it lives");
            }
        }
        received
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn any_chunking_yields_the_same_frames(
            lens in prop::collection::vec(4_usize..=PAGE_LEN, 1..40),
            pieces in prop::collection::vec(1_usize..300, 1..20),
            held in 0_usize..5,
        ) {
            let frames: Vec<_> = lens.iter().enumerate().map(|(seed, len)| frame(*len, seed)).collect();
            let mut fixture = Fixture::new(held + 3);
            prop_assert_eq!(feed(&mut fixture, &frames.concat(), &pieces, held), frames);
            prop_assert_eq!(fixture.assembler.unfinished_len(), 0);
            fixture.assembler.close();
            prop_assert_eq!(fixture.pool.counters().in_use, 0);
        }

        #[test]
        fn any_bytes_are_frames_or_one_error(
            stream in prop::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..600),
            piece in 1_usize..300,
        ) {
            let mut fixture = Fixture::new(2);
            let mut at = 0;
            while at < stream.len() && fixture.assembler.malformed().is_none() {
                let end = stream.len().min(at + piece);
                at += fixture.write(&stream[at..end]).expect("no slice is held");
                for slice in fixture.frames() {
                    prop_assert!((4..=PAGE_LEN).contains(&slice.len()));
                }
            }
        }
    }

    #[test]
    fn frames_before_a_malformed_one_are_delivered() {
        let mut fixture = Fixture::new(1);
        let stream = [frame(20, 1), frame(30, 2), vec![0; 8]].concat();
        fixture.write(&stream);
        assert_eq!(fixture.frames().len(), 2);
        let malformed = fixture.assembler.malformed().unwrap();
        assert_eq!((malformed.offset, malformed.len), (50, 0));
    }

    #[test]
    fn a_stream_goes_on_within_a_frame_when_its_limits_and_pool_change() {
        let long = frame(3 * PAGE_LEN, 3);
        for begun in [0, 3, 100] {
            let mut fixture = Fixture::new(1);
            fixture.write(&[frame(20, 1), frame(200, 2)[..begun].to_vec()].concat());
            let pool =
                Pool::new(&PoolOptions { name: "new".into(), page_len: 4 * PAGE_LEN, pages: 2, prefault: false });
            assert!(fixture.assembler.renew(FrameLimits::new(4, 4 * PAGE_LEN).unwrap(), 16, pool.unwrap()));
            assert_eq!(fixture.frames()[0].as_bytes(), frame(20, 1), "what came before is delivered");
            let rest = [frame(200, 2)[begun..].to_vec(), long.clone()].concat();
            assert_eq!(feed(&mut fixture, &rest, &[70], 0), [frame(200, 2), long.clone()]);
            assert_eq!(fixture.pool.counters().in_use, 0, "the former pool has its page back");
        }
    }

    #[test]
    fn a_connection_that_says_little_touches_little_of_its_page() {
        let mut fixture = Fixture::new(1);
        let mut places = std::collections::BTreeSet::new();
        for seed in 0..100 {
            fixture.write(&frame(20, seed));
            places.extend(fixture.frames().iter().map(|slice| slice.as_bytes().as_ptr()));
        }
        assert_eq!((places.len(), fixture.counters.bytes_moved), (1, 0));
    }

    #[test]
    fn an_empty_pool_stops_the_stream_until_a_slice_is_dropped() {
        let mut fixture = Fixture::new(1);
        let stream = [frame(200, 1), frame(200, 2)].concat();
        let first_len = fixture.write(&stream).unwrap();
        assert_eq!(first_len, PAGE_LEN);
        let kept = fixture.frames();
        assert!(!fixture.assembler.has_room());
        assert_eq!((fixture.write(&stream[first_len..]), fixture.counters.pool_empty), (None, 1));
        drop(kept);
        assert!(fixture.assembler.has_room());
        fixture.write(&stream[first_len..]).unwrap();
        assert_eq!(fixture.frames()[0].as_bytes(), &stream[200..]);
    }
}
