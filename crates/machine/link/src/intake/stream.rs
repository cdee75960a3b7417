//! A source behind a stream of bytes (TCP).

use std::io::IoSliceMut;

use transport::page_pool::{Page, Pool};

use super::book::{Book, Entry};
use super::channel::Channel;
use super::foresight::Foresight;
use super::stranger::Stranger;
use super::{Arrival, IntakeCounters, IntakeParameters};
use crate::greeting::text;
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::record::{HEAD_BYTES, RecordHead};
use crate::socket::{Lost, read_to};

/// A connection with a source.
pub(super) struct StreamLine {
    pub(super) channel: Channel,
    inbox: Inbox,
    pub(super) book: Book,
    headroom: usize,
    partial: Option<Partial>,
    /// Fragments whose payloads are in their pages; empty in between.
    whole: Vec<(RecordHead, Page)>,
    /// From the pool, taken many at a time, and those that a foreseen read did not fill.
    pages: Vec<Page>,
    foresight: Foresight,
    held: Held,
}

/// A fragment whose payload has not come as a whole.
struct Partial {
    head: RecordHead,
    /// `None` of a fragment that is dropped.
    page: Option<Page>,
    filled: usize,
}

/// What the next poll needs to get on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// Bytes from the source.
    Bytes,
    /// Room for a fragment.
    Room,
    /// A page.
    Page,
    /// Nothing.
    Nothing,
}

impl StreamLine {
    pub(super) fn new(stranger: Stranger, parameters: &IntakeParameters, run: u32) -> Self {
        let Stranger { socket, readiness, inbox, .. } = stranger;
        Self {
            channel: Channel::new(socket, readiness),
            inbox: inbox.lengthened(INBOX_BYTES),
            book: Book::new(run, parameters.size_max),
            headroom: parameters.headroom,
            partial: None,
            whole: Vec::with_capacity(GROUP),
            pages: Vec::with_capacity(PAGES_AT_ONCE),
            foresight: Foresight::new(parameters.headroom),
            held: Held::Nothing,
        }
    }

    /// A fragment of the run before that has not come as a whole is dropped when it has.
    pub(super) fn await_run(&mut self, run: u32) {
        self.book.await_run(run);
        self.partial.iter_mut().for_each(|partial| partial.page = None);
    }

    pub(super) fn is_ready(&self, room: usize, pool: &Pool) -> bool {
        let can_go_on = match self.held {
            Held::Bytes => self.channel.readiness.is_readable(),
            Held::Room => room > 0,
            Held::Page => room > 0 && pool.has_free(),
            Held::Nothing => true,
        };
        can_go_on || self.channel.has_to_say()
    }

    pub(super) fn is_held(&self) -> bool {
        matches!(self.held, Held::Room | Held::Page)
    }

    pub(super) fn poll(
        &mut self,
        room: usize,
        pool: &Pool,
        counters: &mut IntakeCounters,
        deliver: &mut dyn FnMut(Arrival),
    ) -> Result<bool, Lost> {
        self.channel.flush()?;
        self.channel.check_heard()?;
        let (mut left, mut is_busy) = (room, false);
        for _ in 0..room + OTHERS_PER_POLL {
            self.held = self.step(left, pool, counters, deliver)?;
            left -= self.whole.len();
            for (head, page) in self.whole.drain(..) {
                self.foresight.note(head.len as usize);
                deliver(counters.fragment(&head, page, self.headroom));
            }
            if self.held != Held::Nothing {
                break;
            }
            is_busy = true;
        }
        Ok(is_busy)
    }

    /// Gets on with some fragments, or with one other record, as far as it is there. No more than `left` fragments become whole.
    fn step(
        &mut self,
        left: usize,
        pool: &Pool,
        counters: &mut IntakeCounters,
        deliver: &mut dyn FnMut(Arrival),
    ) -> Result<Held, Lost> {
        if self.partial.is_none() {
            self.gather(left, pool);
            if !self.whole.is_empty() {
                return Ok(Held::Nothing);
            }
            let Some(head) = self.inbox.head()? else { return self.read(left, pool) };
            let page = match self.book.check(&head)? {
                Entry::Fragment if left == 0 => return Ok(Held::Room),
                Entry::Fragment => match take_page(&mut self.pages, pool) {
                    Some(page) => Some(page),
                    None => return Ok(Held::Page),
                },
                Entry::Stale => None,
                Entry::Other if self.hear(&head, deliver)? => {
                    self.foresight.forget();
                    return Ok(Held::Nothing);
                }
                Entry::Other => return self.read(left, pool),
            };
            self.inbox.skip(HEAD_BYTES);
            self.partial = Some(Partial { head, page, filled: 0 });
        }
        if !self.fill_from_inbox() {
            return self.read(left, pool);
        }
        // It was begun in a poll that had room for it, and is complete in one that may have none.
        if left == 0 && self.partial.as_ref().is_some_and(|partial| partial.page.is_some()) {
            return Ok(Held::Room);
        }
        if !self.complete() {
            self.foresight.forget();
            counters.stale += 1;
        }
        Ok(Held::Nothing)
    }

    /// The fragment is there; false of one that is dropped.
    fn complete(&mut self) -> bool {
        let Some(Partial { head, page: Some(page), .. }) = self.partial.take() else { return false };
        self.book.note_fragment();
        self.whole.push((head, page));
        true
    }

    /// Takes some fragments that are in the inbox as a whole. Their payloads are copied to pages one after the other, with nothing in
    /// between: all else would wait for each copy to end.
    fn gather(&mut self, most: usize, pool: &Pool) {
        let Self { inbox, book, whole, pages, headroom, .. } = self;
        let mut rest = inbox.unread();
        while whole.len() < most.min(GROUP) {
            let Some((head, behind)) = rest.split_first_chunk::<HEAD_BYTES>() else { break };
            let Ok(head) = RecordHead::decode(head) else { break };
            let len = head.len as usize;
            if behind.len() < len || book.check(&head) != Ok(Entry::Fragment) {
                break;
            }
            let Some(page) = take_page(pages, pool) else { break };
            book.note_fragment();
            whole.push((head, page));
            rest = &behind[len..];
        }
        let mut rest = inbox.unread();
        for (head, page) in whole.iter_mut() {
            let (payload, behind) = rest[HEAD_BYTES..].split_at(head.len as usize);
            page.bytes_mut()[*headroom..][..payload.len()].copy_from_slice(payload);
            rest = behind;
        }
        let taken = inbox.unread().len() - rest.len();
        inbox.skip(taken);
    }

    /// Says what the record says, if it is all there.
    fn hear(&mut self, head: &RecordHead, deliver: &mut dyn FnMut(Arrival)) -> Result<bool, Lost> {
        let Some(body) = self.inbox.body(head.len as usize) else { return Ok(false) };
        match head.kind {
            Kind::Status => deliver(Arrival::Status(text(Kind::Status, body)?)),
            Kind::Here => self.book.is_configured = true,
            _ => self.book.arrival(head).into_iter().for_each(&mut *deliver),
        }
        Ok(true)
    }

    /// Whether the payload is complete.
    fn fill_from_inbox(&mut self) -> bool {
        let Some(partial) = &mut self.partial else { return true };
        let unread = self.inbox.unread();
        let len = (partial.head.len as usize - partial.filled).min(unread.len());
        if let Some(page) = &mut partial.page {
            let place = self.headroom + partial.filled;
            page.bytes_mut()[place..place + len].copy_from_slice(&unread[..len]);
        }
        partial.filled += len;
        self.inbox.skip(len);
        partial.filled == partial.head.len as usize
    }

    /// Reads what has come: what is missing of a payload straight to its page, and so what is foreseen.
    fn read(&mut self, left: usize, pool: &Pool) -> Result<Held, Lost> {
        if !self.channel.readiness.is_readable() {
            return Ok(Held::Bytes);
        }
        self.channel.readiness.clear_readable();
        let is_stale = self.partial.as_ref().is_some_and(|partial| partial.page.is_none());
        let is_straight = !is_stale && self.inbox.unread().is_empty();
        let is_foreseen = is_straight && self.foresee(left, pool);
        let Self { channel, inbox, headroom, partial, foresight, .. } = self;
        let (mut places, mut missing) = (Vec::with_capacity(2 + foresight.places_count()), 0);
        if let Some(Partial { head, page: Some(page), filled }) = partial {
            missing = head.len as usize - *filled;
            places.push(IoSliceMut::new(&mut page.bytes_mut()[*headroom + *filled..][..missing]));
        }
        if is_foreseen {
            foresight.places(&mut places);
        } else {
            let room = inbox.room();
            let len = if is_straight && foresight.is_long() { HEAD_BYTES } else { room.len() };
            places.push(IoSliceMut::new(&mut room[..len]));
        }
        let asked: usize = places.iter().map(|place| place.len()).sum();
        let read = read_to(&channel.socket, &mut places)?;
        // Less than there was room for was all that there is; the poller says when more comes.
        if read == Some(asked) {
            channel.readiness.set_readable();
        }
        let here = read.unwrap_or(0);
        partial.iter_mut().for_each(|partial| partial.filled += here.min(missing));
        let behind = here.saturating_sub(missing);
        if is_foreseen {
            self.take_foreseen(behind);
        } else {
            self.inbox.filled(behind);
        }
        Ok(if read.is_some() { Held::Nothing } else { Held::Bytes })
    }

    /// Gives the next fragments their places, if they are foreseen.
    fn foresee(&mut self, left: usize, pool: &Pool) -> bool {
        let most = left.saturating_sub(usize::from(self.partial.is_some()));
        for _ in 0..self.foresight.wanted(most, INBOX_BYTES) {
            let Some(page) = take_page(&mut self.pages, pool) else { break };
            self.foresight.add(page);
        }
        self.foresight.has_places()
    }

    /// So many bytes were read behind the payload that was missing.
    fn take_foreseen(&mut self, behind: usize) {
        if behind > 0 && self.partial.is_some() {
            self.complete();
        }
        let Self { inbox, book, partial, whole, pages, foresight, .. } = self;
        if let Some((head, page, filled)) = foresight.sort(behind, book, whole, inbox, pages) {
            *partial = Some(Partial { head, page: Some(page), filled });
        }
    }
}

fn take_page(pages: &mut Vec<Page>, pool: &Pool) -> Option<Page> {
    if pages.is_empty() {
        pool.take_some(PAGES_AT_ONCE, pages);
        if !pool.is_shared() {
            // Many others were written since they were. A shared pool has done it.
            pages.iter_mut().for_each(Page::fetch_beginning);
        }
    }
    pages.pop()
}

/// Some hundred fragments of a kilobyte with one system call.
const INBOX_BYTES: usize = 256 << 10;
const PAGES_AT_ONCE: usize = 16;
/// As many as are copied together: more would leave the first cache again.
const GROUP: usize = 16;
/// Steps of one poll beyond one for each fragment.
const OTHERS_PER_POLL: usize = 64;
