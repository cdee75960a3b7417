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
    /// Length of the last payload, and whether the one before it was as long.
    len: usize,
    is_steady: bool,
    headroom: usize,
    slots: Vec<Slot>,
}

/// A place for one fragment.
struct Slot {
    head: [u8; HEAD_BYTES],
    page: Page,
}

/// What has come of a fragment in its slot.
enum Found {
    Whole(RecordHead),
    Part(RecordHead, usize),
    /// Something else, or a part of a head.
    Other,
}

impl Foresight {
    pub(super) fn new(headroom: usize) -> Self {
        Self { len: 0, is_steady: false, headroom, slots: Vec::new() }
    }

    /// A fragment of this length has come.
    pub(super) fn note(&mut self, len: usize) {
        self.is_steady = len == self.len;
        self.len = len;
    }

    /// Fragments worth a place in a read of at most so many bytes: none where nothing is foreseen.
    pub(super) fn wanted(&self, most: usize, bytes_max: usize) -> usize {
        let is_worth_it = self.is_steady && self.len >= PAYLOAD_BYTES_MIN;
        if is_worth_it { most.min(bytes_max / (HEAD_BYTES + self.len)) } else { 0 }
    }

    pub(super) fn add(&mut self, page: Page) {
        self.slots.push(Slot { head: [0; HEAD_BYTES], page });
    }

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

    /// So many bytes were read to the places. Whole fragments are added to `whole`; the last one, if a part of its payload is missing, is
    /// returned with the number of bytes that are there. All else is put into the inbox, which is empty, and unused pages into `pages`.
    pub(super) fn sort(
        &mut self,
        mut read: usize,
        book: &mut Book,
        whole: &mut Vec<(RecordHead, Page)>,
        (inbox, pages): (&mut Inbox, &mut Vec<Page>),
    ) -> Option<(RecordHead, Page, usize)> {
        let (len, headroom) = (self.len, self.headroom);
        let (mut part, mut is_as_foreseen) = (None, true);
        for Slot { head, page } in self.slots.drain(..) {
            let here = read.min(HEAD_BYTES + len);
            read -= here;
            match if is_as_foreseen { found(&head, here, len, book) } else { Found::Other } {
                Found::Whole(head) => {
                    book.note_fragment();
                    whole.push((head, page));
                    continue;
                }
                Found::Part(head, filled) => {
                    part = Some((head, page, filled));
                    continue;
                }
                Found::Other => is_as_foreseen = false,
            }
            inbox.put(&head[..here.min(HEAD_BYTES)]);
            inbox.put(&page.bytes()[headroom..][..here.saturating_sub(HEAD_BYTES)]);
            pages.push(page);
        }
        part
    }
}

fn found(head: &[u8; HEAD_BYTES], here: usize, len: usize, book: &Book) -> Found {
    let Some(filled) = here.checked_sub(HEAD_BYTES) else { return Found::Other };
    match RecordHead::decode(head) {
        Ok(head) if head.len as usize == len && book.check(&head) == Ok(Entry::Fragment) => {
            if filled == len {
                Found::Whole(head)
            } else {
                Found::Part(head, filled)
            }
        }
        _ => Found::Other,
    }
}

/// The kernel takes 60 ns longer for a fragment with places of its own: a shorter payload is copied in that time. Of 10 kB a read then
/// takes a fifth less.
const PAYLOAD_BYTES_MIN: usize = 6 << 10;
