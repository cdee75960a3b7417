//! A source that writes to pages it was lent.

use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use transport::error::OsError;
use transport::page_pool::{Page, Pool};
use transport::poller::{Poller, Readiness};
use transport::shm::SleepWord;

use super::book::{Book, Entry};
use super::channel::Channel;
use super::stranger::Stranger;
use super::{Arrival, IntakeCounters, IntakeParameters};
use crate::error::Violation;
use crate::greeting::{MemorySizes, Welcome, text};
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::memory::{Rings, Word};
use crate::record::{HEAD_WORDS, RecordHead, TEXT_BYTES_MAX};
use crate::socket::{Lost, read, write_with_descriptors};

/// A connection with a source.
pub(super) struct SharedLine {
    channel: Channel,
    inbox: Inbox,
    pub(super) book: Book,
    headroom: usize,
    rings: Rings,
    /// What the source has now, by index.
    lent: Box<[Option<Page>]>,
    lent_now: usize,
    lent_max: usize,
    /// Pages lent so far.
    lent_total: u64,
    /// Entries taken so far.
    taken: u64,
    /// How often something was said.
    news: u64,
    /// The bell of the source, and its sleep that we ended last.
    bell: OwnedFd,
    rung: u64,
    /// Our bell.
    event: OwnedFd,
    event_readiness: Readiness,
    /// The first entry is a fragment, for which there was no room.
    is_held: bool,
    /// The socket is at its end; what is in the ring is still taken.
    lost: Option<Lost>,
    pages: Vec<Page>,
}

impl SharedLine {
    /// Lends the first pages, then welcomes the source.
    pub(super) fn new(
        stranger: Stranger,
        parameters: &IntakeParameters,
        pool: &Pool,
        sleep: &Arc<SleepWord>,
        welcome: Welcome,
        poller: &mut Poller,
    ) -> Result<Self, Lost> {
        let lent_max = pool.pages().min(LENT_MAX);
        let ring = ((lent_max + MARKS) as u32).next_power_of_two();
        let (rings, rings_file) = Rings::make(ring)?;
        let (event, bell) = (new_event()?, new_event()?);
        let event_readiness = poller.register(&event)?;
        let sizes = MemorySizes {
            page_len: pool.page_len() as u32,
            pages: pool.pages() as u32,
            headroom: parameters.headroom as u32,
            ring,
        };
        let Stranger { socket, readiness, inbox, .. } = stranger;
        let mut line = Self {
            channel: Channel::new(socket, readiness),
            inbox: inbox.lengthened(INBOX_BYTES),
            book: Book::new(welcome.run, parameters.size_max),
            headroom: parameters.headroom,
            rings,
            lent: (0..pool.pages()).map(|_| None).collect(),
            lent_now: 0,
            lent_max,
            lent_total: 0,
            taken: 0,
            news: 0,
            bell,
            rung: 0,
            event,
            event_readiness,
            is_held: false,
            lost: None,
            pages: Vec::with_capacity(lent_max),
        };
        line.lend(pool);
        let file = pool.file().expect("a pool whose pages can be lent has a file");
        let descriptors = [file, rings_file.as_fd(), sleep.as_fd(), line.event.as_fd(), line.bell.as_fd()];
        let welcome = Welcome { memory: Some(sizes), ..welcome };
        write_with_descriptors(&line.channel.socket, &welcome.encode(), &descriptors)?;
        Ok(line)
    }

    pub(super) fn is_ready(&self, room: usize, pool: &Pool) -> bool {
        (self.has_entries() && (room > 0 || !self.is_held))
            || (self.lent_now < self.lent_max && pool.has_free())
            || (self.lost.is_some() && !self.has_entries())
            || (self.lost.is_none() && self.channel.readiness.is_readable())
            || self.event_readiness.is_readable()
            || self.channel.has_to_say()
    }

    /// Whether the source is gone and some of what it has sent is not delivered.
    pub(super) fn is_ending(&self) -> bool {
        self.lost.is_some()
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    pub(super) fn poll(
        &mut self,
        room: usize,
        pool: &Pool,
        counters: &mut IntakeCounters,
        deliver: &mut dyn FnMut(Arrival),
    ) -> Result<bool, Lost> {
        let mut is_busy = self.hear(deliver)?;
        let taken = self.take(room, counters, deliver)?;
        let lent = self.lend(pool);
        if taken || lent {
            self.ring();
        }
        is_busy |= taken || lent;
        match self.lost {
            Some(lost) if !self.has_entries() => Err(lost),
            _ => Ok(is_busy),
        }
    }

    /// What was said on the socket.
    fn hear(&mut self, deliver: &mut dyn FnMut(Arrival)) -> Result<bool, Lost> {
        if self.event_readiness.is_readable() {
            self.event_readiness.clear_readable();
            // Whether it was written does not matter: we look at everything.
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
        if self.lost.is_some() {
            return Ok(false);
        }
        self.channel.check_heard()?;
        let heard = self.flush().and_then(|()| self.read(deliver));
        match heard {
            Err(lost @ Lost::Violated(_)) => Err(lost),
            Err(lost) => {
                self.lost = Some(lost);
                Ok(true)
            }
            heard => heard,
        }
    }

    fn read(&mut self, deliver: &mut dyn FnMut(Arrival)) -> Result<bool, Lost> {
        let mut is_busy = false;
        for _ in 0..OTHERS_PER_POLL {
            while let Some((head, body)) = self.inbox.record(TEXT_BYTES_MAX)? {
                match head.kind {
                    Kind::Status => deliver(Arrival::Status(text(Kind::Status, body)?)),
                    Kind::Here => self.book.is_configured = true,
                    kind => return Err(Violation::OutOfTurn { kind }.into()),
                }
            }
            if !self.channel.readiness.is_readable() {
                break;
            }
            self.channel.readiness.clear_readable();
            let Some(len) = read(&self.channel.socket, self.inbox.room())? else { break };
            self.channel.readiness.set_readable();
            self.inbox.filled(len);
            is_busy = true;
        }
        Ok(is_busy)
    }

    fn has_entries(&self) -> bool {
        self.rings.word(Word::Committed).load(Ordering::Relaxed) != self.taken
    }

    /// Entries of the ring: each is copied before it is checked.
    fn take(
        &mut self,
        room: usize,
        counters: &mut IntakeCounters,
        deliver: &mut dyn FnMut(Arrival),
    ) -> Result<bool, Violation> {
        let committed = self.rings.word(Word::Committed).load(Ordering::Acquire);
        let (before, capacity) = (self.taken, self.rings.len());
        if committed.wrapping_sub(before) > capacity {
            return Err(Violation::Ring { before, found: committed, capacity });
        }
        let mut left = room;
        self.is_held = false;
        while self.taken != committed {
            let words = self.rings.entry(self.taken).each_ref().map(|word| word.load(Ordering::Relaxed));
            let (head, index) = words.split_first_chunk::<HEAD_WORDS>().expect("an entry is a head and an index");
            let head = RecordHead::of_words(head)?;
            match self.book.check(&head)? {
                Entry::Fragment if left == 0 => {
                    self.is_held = true;
                    break;
                }
                Entry::Fragment => {
                    let page = self.take_page(index[0])?;
                    left -= 1;
                    self.book.note_fragment();
                    deliver(counters.fragment(&head, page, self.headroom));
                }
                Entry::Stale => {
                    self.take_page(index[0])?;
                    counters.stale += 1;
                }
                Entry::Other if matches!(head.kind, Kind::Status | Kind::Here) => {
                    return Err(Violation::OutOfTurn { kind: head.kind });
                }
                Entry::Other => self.book.arrival(&head).into_iter().for_each(&mut *deliver),
            }
            self.taken += 1;
        }
        let is_busy = self.taken != before;
        if is_busy {
            self.rings.word(Word::Taken).store(self.taken, Ordering::Release);
        }
        Ok(is_busy)
    }

    fn take_page(&mut self, index: u64) -> Result<Page, Violation> {
        let lent = usize::try_from(index).ok().and_then(|index| self.lent.get_mut(index));
        let page = lent.and_then(Option::take).ok_or(Violation::Page { index })?;
        self.lent_now -= 1;
        Ok(page)
    }

    /// Gives the source what is free.
    fn lend(&mut self, pool: &Pool) -> bool {
        let wanted = self.lent_max - self.lent_now;
        if wanted == 0 || self.lost.is_some() {
            return false;
        }
        if pool.take_some(wanted, &mut self.pages) == 0 {
            return false;
        }
        for page in self.pages.drain(..) {
            let offset = pool.offset_of(page.bytes()).expect("a page of this pool");
            let index = offset / pool.page_len();
            self.lent[index] = Some(page);
            self.rings.free(self.lent_total).store(index as u64, Ordering::Relaxed);
            self.lent_total += 1;
            self.lent_now += 1;
        }
        self.rings.word(Word::Lent).store(self.lent_total, Ordering::Release);
        true
    }

    /// Wakes the source if it sleeps: once per sleep.
    fn ring(&mut self) {
        // Pairs with that of the source between its announcement of sleep and its last look.
        fence(Ordering::SeqCst);
        let asleep = self.rings.word(Word::Asleep).load(Ordering::Relaxed);
        if asleep & 1 == 1 && self.rung != asleep {
            self.rung = asleep;
            // A source that is gone hears nothing; one that fills its own counter up wakes itself.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// What does not fit into the socket goes with the next poll.
    pub(super) fn say(&mut self, bytes: &[u8]) {
        if self.channel.say(bytes) {
            self.show_news();
        }
    }

    fn flush(&mut self) -> Result<(), Lost> {
        if self.channel.flush()? {
            self.show_news();
        }
        Ok(())
    }

    /// The source reads its socket when it sees that something was said.
    fn show_news(&mut self) {
        self.news += 1;
        self.rings.word(Word::News).store(self.news, Ordering::Release);
    }
}

fn new_event() -> Result<OwnedFd, OsError> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|errno| OsError::new("eventfd", errno))
}

/// Pages that a source has at a time. They are enough for it to go on while the other end is busy elsewhere, and few enough
/// to stay in the caches.
const LENT_MAX: usize = 1024;
/// Entries for marks and ends of runs beside those of pages.
const MARKS: usize = 64;
const INBOX_BYTES: usize = 8 << 10;
const OTHERS_PER_POLL: usize = 64;
