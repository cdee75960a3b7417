//! Payloads of a stream that are read straight to their pages, since their length is foreseen.
//!
//! Most detectors send fragments of one length. The next read then gets a place for each head and each payload that it expects, and
//! copies nothing afterwards. What does not come as foreseen goes to the inbox, like all else.

use std::io::IoSliceMut;

use transport::page_pool::Page;

use super::book::{Book, Entry};
use crate::inbox::Inbox;
use crate::record::{HEAD_BYTES, RecordHead};

/// What the next fragments are taken to be.
pub(super) struct Foresight {
    /// Length of the last payload, and how many before it were as long with nothing in between.
    len: usize,
    alike: usize,
    headroom: usize,
    slots: Vec<Slot>,
}

/// A place for one fragment.
struct Slot {
    head: [u8; HEAD_BYTES],
    page: Page,
}

impl Foresight {
    pub(super) fn new(headroom: usize) -> Self {
        Self { len: 0, alike: 0, headroom, slots: Vec::new() }
    }

    /// A fragment of this length has come. Never between [`places`](Self::places) and [`sort`](Self::sort).
    pub(super) fn note(&mut self, len: usize) {
        assert!(self.slots.is_empty(), "places keep their length until they are sorted");
        self.alike = if len == self.len { self.alike + 1 } else { 0 };
        self.len = len;
    }

    /// Something else has come.
    pub(super) fn forget(&mut self) {
        (self.len, self.alike) = (0, 0);
    }

    /// Whether a long payload may follow: what is read beyond its head is copied twice.
    pub(super) fn is_long(&self) -> bool {
        self.alike > 0 && self.len >= PAYLOAD_BYTES_MIN
    }

    /// Fragments worth a place in a read of at most so many bytes: no more than came alike before.
    pub(super) fn wanted(&self, most: usize, bytes_max: usize) -> usize {
        if self.is_long() { most.min(self.alike).min(bytes_max / (HEAD_BYTES + self.len)) } else { 0 }
    }

    pub(super) fn add(&mut self, page: Page) {
        self.slots.push(Slot { head: [0; HEAD_BYTES], page });
    }

    /// Places of heads and of payloads.
    pub(super) fn places_count(&self) -> usize {
        2 * self.slots.len()
    }

    /// Whether the next read goes to places of its own.
    pub(super) fn has_places(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Where the next bytes go.
    pub(super) fn places<'a>(&'a mut self, places: &mut Vec<IoSliceMut<'a>>) {
        let (len, headroom) = (self.len, self.headroom);
        for Slot { head, page } in &mut self.slots {
            places.push(IoSliceMut::new(head));
            places.push(IoSliceMut::new(&mut page.bytes_mut()[headroom..][..len]));
        }
    }

    /// So many bytes were read to the places. Whole fragments are added to `whole`. The last one, if a part of its payload is missing, is
    /// returned with the number of bytes that are there. All else is put into the inbox, which is empty, and unused pages into `pages`.
    pub(super) fn sort(
        &mut self,
        mut read: usize,
        book: &mut Book,
        whole: &mut Vec<(RecordHead, Page)>,
        inbox: &mut Inbox,
        pages: &mut Vec<Page>,
    ) -> Option<(RecordHead, Page, usize)> {
        let (len, headroom) = (self.len, self.headroom);
        let (mut part, mut is_as_foreseen, mut is_surprised) = (None, true, false);
        for Slot { head, page } in self.slots.drain(..) {
            let here = read.min(HEAD_BYTES + len);
            read -= here;
            let found = is_as_foreseen.then(|| found(&head, here, len, book)).flatten();
            match found {
                Some((head, filled)) if filled == len => {
                    book.note_fragment();
                    whole.push((head, page));
                }
                Some((head, filled)) => part = Some((head, page, filled)),
                None => {
                    // A head that is cut may still be as foreseen.
                    is_surprised |= here >= HEAD_BYTES;
                    is_as_foreseen = false;
                    inbox.put(&head[..here.min(HEAD_BYTES)]);
                    inbox.put(&page.bytes()[headroom..][..here.saturating_sub(HEAD_BYTES)]);
                    pages.push(page);
                }
            }
        }
        if is_surprised {
            self.forget();
        }
        part
    }
}

/// The head of the foreseen fragment whose bytes are these, and how many of its payload are there.
fn found(head: &[u8; HEAD_BYTES], here: usize, len: usize, book: &Book) -> Option<(RecordHead, usize)> {
    let filled = here.checked_sub(HEAD_BYTES)?;
    let head = RecordHead::decode(head).ok()?;
    let is_foreseen = head.len as usize == len && book.check(&head) == Ok(Entry::Fragment);
    is_foreseen.then_some((head, filled))
}

/// The kernel takes 60 ns longer for a fragment with places of its own: a shorter payload is copied in that time. Of 10 kB a read then
/// takes a fifth less.
const PAYLOAD_BYTES_MIN: usize = 6 << 10;

#[cfg(test)]
mod tests {
    use transport::page_pool::{Pool, PoolOptions};

    use super::*;
    use crate::record::Head;

    const HEADROOM: usize = 92;
    const LEN: usize = 8000;
    const FORMER: u32 = 6;
    const RUN: u32 = 7;

    /// How a read to the places of three fragments was sorted.
    struct Sorted {
        whole: Vec<u64>,
        part: Option<(u64, usize)>,
        inbox: Vec<u8>,
        pages: usize,
        is_long: bool,
    }

    fn fragment(sequence: u64, len: usize) -> Vec<u8> {
        let head = RecordHead::of_fragment(&Head::default(), len as u32, sequence, RUN, || 0);
        [&head.encode()[..], &vec![sequence as u8 + 1; len]].concat()
    }

    fn sorted(bytes: &[u8]) -> Sorted {
        let options = PoolOptions { name: "fragments".into(), page_len: HEADROOM + LEN, pages: 3, prefault: false };
        let pool = Pool::new(&options).unwrap();
        let mut foresight = Foresight::new(HEADROOM);
        (0..4).for_each(|_| foresight.note(LEN));
        (0..3).for_each(|_| foresight.add(pool.take().unwrap()));
        let mut places = Vec::new();
        foresight.places(&mut places);
        let mut rest = bytes;
        for place in &mut places {
            let here = rest.split_off(..place.len().min(rest.len())).unwrap();
            place[..here.len()].copy_from_slice(here);
        }
        assert!(rest.is_empty(), "the kernel writes no more than there is room for");
        let (mut book, mut whole, mut pages) = (Book::new(FORMER, LEN), Vec::new(), Vec::new());
        book.start(FORMER);
        book.start(RUN);
        let mut inbox = Inbox::new(4 * LEN);
        let part = foresight.sort(bytes.len(), &mut book, &mut whole, &mut inbox, &mut pages);
        for (head, page) in &whole {
            assert!(page.bytes()[HEADROOM..][..LEN].iter().all(|byte| u64::from(*byte) == head.sequence + 1));
        }
        Sorted {
            whole: whole.iter().map(|(head, _)| head.sequence).collect(),
            part: part.map(|(head, _, filled)| (head.sequence, filled)),
            inbox: inbox.unread().to_vec(),
            pages: pages.len(),
            is_long: foresight.is_long(),
        }
    }

    #[test]
    fn as_many_are_foreseen_as_were_alike() {
        let mut foresight = Foresight::new(HEADROOM);
        let mut wanted = |len| {
            foresight.note(len);
            foresight.wanted(100, 10 * (HEAD_BYTES + LEN))
        };
        assert_eq!([LEN, LEN, LEN, LEN, LEN - 1, LEN - 1].map(&mut wanted), [0, 1, 2, 3, 0, 1]);
        assert_eq!([LEN; 14].map(&mut wanted)[9..], [9, 10, 10, 10, 10]);
        assert_eq!([PAYLOAD_BYTES_MIN - 1; 9].map(wanted), [0; 9]);
        (0..9).for_each(|_| foresight.note(LEN));
        assert_eq!(foresight.wanted(3, usize::MAX), 3);
        foresight.forget();
        foresight.note(LEN);
        assert_eq!(foresight.wanted(3, usize::MAX), 0);
    }

    #[test]
    fn what_came_as_foreseen_stays_where_it_is() {
        let three = [fragment(0, LEN), fragment(1, LEN), fragment(2, LEN)].concat();
        let all = sorted(&three);
        assert_eq!((all.whole, all.part, all.pages), (vec![0, 1, 2], None, 0));
        let half = sorted(&three[..2 * HEAD_BYTES + LEN + 3]);
        assert_eq!((half.whole, half.part, half.pages), (vec![0], Some((1, 3)), 1));
        let head = sorted(&three[..2 * HEAD_BYTES + LEN]);
        assert_eq!((head.whole, head.part, head.inbox), (vec![0], Some((1, 0)), vec![]));
        let none = sorted(&[]);
        assert_eq!((none.whole, none.part, none.pages, none.is_long), (vec![], None, 3, true));
    }

    #[test]
    fn a_head_that_is_cut_waits_in_the_inbox() {
        let two = [fragment(0, LEN), fragment(1, LEN)].concat();
        let cut = sorted(&two[..HEAD_BYTES + LEN + 20]);
        assert_eq!((cut.whole, cut.part, cut.pages, cut.is_long), (vec![0], None, 2, true));
        assert_eq!(cut.inbox, fragment(1, LEN)[..20]);
    }

    #[test]
    fn all_from_the_first_that_is_not_as_foreseen_goes_to_the_inbox() {
        let idle = RecordHead { run: RUN, ..RecordHead::plain(crate::kind::Kind::Idle, 0) }.encode().to_vec();
        let mut stale = fragment(1, LEN);
        stale[44] = FORMER as u8;
        let mut of_no_run = fragment(1, LEN);
        of_no_run[44] = 5;
        for other in [fragment(1, LEN - 1), fragment(1, 2 * LEN), idle, stale, of_no_run, vec![0xff; HEAD_BYTES]] {
            let behind = [&other[..], &fragment(2, LEN)].concat();
            let behind = &behind[..behind.len().min(2 * (HEAD_BYTES + LEN))];
            let found = sorted(&[&fragment(0, LEN), behind].concat());
            assert_eq!((found.whole, found.part, found.pages, found.is_long), (vec![0], None, 2, false));
            assert_eq!(found.inbox, behind);
        }
    }
}
