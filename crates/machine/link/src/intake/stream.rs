//! A source behind a stream of bytes (TCP).

use transport::page_pool::{Page, Pool};

use super::book::{Book, Entry};
use super::channel::Channel;
use super::stranger::Stranger;
use super::{Arrival, IntakeCounters, IntakeParameters};
use crate::greeting::text;
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::record::{HEAD_BYTES, RecordHead};
use crate::socket::{Lost, read, read_both};

/// A connection with a source.
pub(super) struct StreamLine {
    pub(super) channel: Channel,
    inbox: Inbox,
    pub(super) book: Book,
    headroom: usize,
    partial: Option<Partial>,
    /// Fragments whose payloads are in their pages; empty in between.
    whole: Vec<(RecordHead, Page)>,
    /// Taken from the pool, many at a time.
    pages: Vec<Page>,
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
            self.held = self.step(&mut left, pool, counters, deliver)?;
            if self.held != Held::Nothing {
                break;
            }
            is_busy = true;
        }
        Ok(is_busy)
    }

    /// Some fragments, or one other record, or as much of it as there is.
    fn step(
        &mut self,
        left: &mut usize,
        pool: &Pool,
        counters: &mut IntakeCounters,
        deliver: &mut dyn FnMut(Arrival),
    ) -> Result<Held, Lost> {
        if self.partial.is_none() && self.gather(*left, pool) {
            *left -= self.whole.len();
            self.whole.drain(..).for_each(|(head, page)| deliver(counters.fragment(&head, page, self.headroom)));
            return Ok(Held::Nothing);
        }
        while self.partial.is_none() {
            let Some(head) = self.inbox.head()? else {
                if !self.read()? {
                    return Ok(Held::Bytes);
                }
                continue;
            };
            match self.book.check(&head)? {
                Entry::Fragment if *left == 0 => return Ok(Held::Room),
                Entry::Fragment => {
                    let Some(page) = take_page(&mut self.pages, pool) else { return Ok(Held::Page) };
                    self.inbox.skip(HEAD_BYTES);
                    self.partial = Some(Partial { head, page: Some(page), filled: 0 });
                }
                Entry::Stale => {
                    self.inbox.skip(HEAD_BYTES);
                    self.partial = Some(Partial { head, page: None, filled: 0 });
                }
                Entry::Other => {
                    if self.hear(&head, deliver)? {
                        return Ok(Held::Nothing);
                    }
                    if !self.read()? {
                        return Ok(Held::Bytes);
                    }
                }
            }
        }
        while !self.fill_from_inbox() {
            if !self.read()? {
                return Ok(Held::Bytes);
            }
        }
        // It was begun in a poll that had room for it, and is complete in one that may have none.
        if *left == 0 && self.partial.as_ref().is_some_and(|partial| partial.page.is_some()) {
            return Ok(Held::Room);
        }
        let Some(Partial { head, page, .. }) = self.partial.take() else { return Ok(Held::Nothing) };
        let Some(page) = page else {
            counters.stale += 1;
            return Ok(Held::Nothing);
        };
        *left -= 1;
        self.book.note_fragment();
        deliver(counters.fragment(&head, page, self.headroom));
        Ok(Held::Nothing)
    }

    /// Takes some fragments that are in the inbox as a whole; whether there were any. Their payloads are copied to pages one after the
    /// other, with nothing in between: all else would wait for each copy to end.
    fn gather(&mut self, most: usize, pool: &Pool) -> bool {
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
        !whole.is_empty()
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

    /// Reads what has come: what is missing of a payload straight into its page. False if nothing has.
    fn read(&mut self) -> Result<bool, Lost> {
        if !self.channel.readiness.is_readable() {
            return Ok(false);
        }
        self.channel.readiness.clear_readable();
        let room = self.inbox.room();
        let (read, asked) = match &mut self.partial {
            Some(Partial { head, page: Some(page), filled }) => {
                let (place, missing) = (self.headroom + *filled, head.len as usize - *filled);
                let asked = missing + room.len();
                let read = read_both(&self.channel.socket, &mut page.bytes_mut()[place..place + missing], room)?;
                *filled += read.unwrap_or(0).min(missing);
                self.inbox.filled(read.unwrap_or(0).saturating_sub(missing));
                (read, asked)
            }
            _ => {
                let asked = room.len();
                let read = read(&self.channel.socket, room)?;
                self.inbox.filled(read.unwrap_or(0));
                (read, asked)
            }
        };
        // Less than there was room for was all that there is; the poller says when more comes.
        if read == Some(asked) {
            self.channel.readiness.set_readable();
        }
        Ok(read.is_some())
    }
}

fn take_page(pages: &mut Vec<Page>, pool: &Pool) -> Option<Page> {
    if pages.is_empty() {
        pool.take_some(PAGES_AT_ONCE, pages);
    }
    pages.pop()
}

/// Some hundred fragments of a kilobyte with one system call.
const INBOX_BYTES: usize = 256 << 10;
const PAGES_AT_ONCE: usize = 16;
/// As many as are copied together: more would leave the first cache again.
const GROUP: usize = 16;
/// Records in one poll that are no fragments.
const OTHERS_PER_POLL: usize = 64;
