//! Pages that a read-out system has lent.

use core::sync::atomic::{Ordering, fence};
use core::time::Duration;

use rustix::fd::{AsFd, OwnedFd};
use transport::error::OsError;
use transport::shm::Bell;

use super::opening::Opened;
use crate::error::Violation;
use crate::kind::Kind;
use crate::memory::{LentPages, Rings, Word};
use crate::record::{HEAD_WORDS, RecordHead};
use crate::socket::{Lost, sleep, write};

/// The source's side of the shared memory.
pub(super) struct Shared {
    socket: OwnedFd,
    outbox: Vec<u8>,
    rings: Rings,
    pages: LentPages,
    /// That of the read-out system.
    bell: Bell,
    /// Our own.
    event: OwnedFd,
    asleep: u64,
    /// Free pages: how many we took, how many there are.
    used: u64,
    lent: u64,
    /// Entries: how many we made, how many of them are known to be taken.
    committed: u64,
    taken: u64,
    news: u64,
    /// The page that the next fragment goes to.
    current: Option<u64>,
    broken: Option<Violation>,
}

impl Shared {
    pub(super) fn new(opened: Opened) -> Result<Self, Lost> {
        let Opened { socket, welcome, descriptors, .. } = opened;
        let sizes = welcome.memory.ok_or(Violation::Memory)?;
        let [pages, rings, sleep, bell, event]: [OwnedFd; 5] = descriptors.try_into().map_err(|_| Violation::Memory)?;
        let rings = Rings::map(rings.as_fd(), sizes.ring)?;
        let pages = LentPages::map(&pages, sizes, welcome.size_max as usize)?;
        let bell = Bell::new(&sleep, bell).ok_or(Violation::Memory)?;
        Ok(Self {
            socket,
            outbox: Vec::new(),
            rings,
            pages,
            bell,
            event,
            asleep: 0,
            used: 0,
            lent: 0,
            committed: 0,
            taken: 0,
            news: 0,
            current: None,
            broken: None,
        })
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    /// Whether something was said on the socket since this was asked last.
    #[inline]
    pub(super) fn has_news(&mut self) -> bool {
        let before = self.news;
        self.news = self.rings.word(Word::News).load(Ordering::Acquire);
        self.news != before
    }

    #[inline]
    pub(super) fn has_room(&mut self) -> bool {
        self.has_place() && (self.current.is_some() || self.take_page())
    }

    /// Whether an entry can be made.
    #[inline]
    fn has_place(&mut self) -> bool {
        if self.committed.wrapping_sub(self.taken) >= self.rings.len() {
            self.taken = self.rings.word(Word::Taken).load(Ordering::Acquire);
        }
        self.committed.wrapping_sub(self.taken) < self.rings.len()
    }

    #[inline]
    fn take_page(&mut self) -> bool {
        if self.used == self.lent {
            self.lent = self.rings.word(Word::Lent).load(Ordering::Acquire);
        }
        if self.used == self.lent {
            return false;
        }
        let index = self.rings.free(self.used).load(Ordering::Relaxed);
        if !self.pages.has(index) {
            self.broken = Some(Violation::Page { index });
            return false;
        }
        self.used += 1;
        self.current = Some(index);
        true
    }

    #[inline]
    pub(super) fn payload(&mut self, len: usize) -> &mut [u8] {
        let current = self.current.expect("there is room");
        self.pages.payload(current, len)
    }

    #[inline]
    pub(super) fn commit(&mut self, head: &RecordHead) {
        let page = self.current.take().expect("a page was reserved");
        self.enter(head, page);
    }

    /// Says what belongs among the fragments there, and texts on the socket; false: not now.
    pub(super) fn try_say(&mut self, head: &RecordHead, body: &[u8]) -> bool {
        if matches!(head.kind, Kind::Status | Kind::Here) {
            if !self.outbox.is_empty() {
                return false;
            }
            self.outbox.extend_from_slice(&head.encode());
            self.outbox.extend_from_slice(body);
            return true;
        }
        let has_place = self.has_place();
        if has_place {
            self.enter(head, 0);
        }
        has_place
    }

    #[inline]
    fn enter(&mut self, head: &RecordHead, page: u64) {
        let entry = self.rings.entry(self.committed);
        for (place, word) in entry.iter().zip(head.to_words()) {
            place.store(word, Ordering::Relaxed);
        }
        entry[HEAD_WORDS].store(page, Ordering::Relaxed);
        self.committed += 1;
        self.rings.word(Word::Committed).store(self.committed, Ordering::Release);
        self.bell.ring_if(|| true);
    }

    pub(super) fn flush(&mut self) -> Result<(), Lost> {
        if let Some(violation) = self.broken {
            return Err(violation.into());
        }
        if !self.outbox.is_empty() {
            let written = write(&self.socket, &self.outbox)?;
            self.outbox.drain(..written);
        }
        Ok(())
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Sleeps until the other end says something, or there may be what is wanted: room for a fragment, or for something else.
    pub(super) fn sleep(&mut self, wants_room: bool, wants_to_say: bool, timeout: Duration) -> Result<(), OsError> {
        let waits_for_ring = wants_room || wants_to_say;
        if waits_for_ring {
            self.asleep += 1;
            self.rings.word(Word::Asleep).store(self.asleep, Ordering::Relaxed);
            // What was lent without seeing our announcement is seen after this.
            fence(Ordering::SeqCst);
        }
        let mut slept = Ok(());
        let has_it = (wants_room && self.has_room()) || (wants_to_say && self.outbox.is_empty() && self.has_place());
        if !has_it {
            slept = sleep(&[self.socket.as_fd(), self.event.as_fd()], !self.outbox.is_empty(), timeout);
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
        if waits_for_ring {
            self.asleep += 1;
            self.rings.word(Word::Asleep).store(self.asleep, Ordering::Release);
        }
        slept
    }
}
