//! Which file descriptors are ready.

use crate::error::OsError;
use base::time::Time;
use core::sync::atomic::{AtomicU8, Ordering};
use core::time::Duration;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;

/// An epoll instance whose news is kept per source in a [`Readiness`]. So asking whether a source is ready is no system
/// call, and one call per pass serves all sources.
///
/// Edge-triggered: the kernel tells each change once and the readiness remembers it until its owner has drained the source.
/// A level-triggered wait would return at once, for ever, while a reader that is held up leaves bytes in its socket. Or it
/// would need a call to change the interest at each stop and go of each reader and writer.
pub struct Poller {
    epoll: OwnedFd,
    sources: Vec<Readiness>,
    events: Vec<Event>,
}

impl Poller {
    /// A poller without sources.
    ///
    /// # Errors
    /// If the kernel has no more descriptors to give.
    pub fn new() -> Result<Self, OsError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|errno| OsError::new("epoll_create", errno))?;
        Ok(Self { epoll, sources: Vec::new(), events: Vec::with_capacity(EVENTS_PER_WAIT) })
    }

    /// Watches a descriptor until it is closed. It counts as readable and writable until its owner finds otherwise.
    ///
    /// # Errors
    /// If the kind of file cannot be watched, or the kernel refuses.
    pub fn register(&mut self, source: impl AsFd) -> Result<Readiness, OsError> {
        let readiness = Readiness(Arc::new(AtomicU8::new(READABLE | WRITABLE)));
        let free = self.sources.iter().position(|known| Arc::strong_count(&known.0) == 1);
        let token = free.unwrap_or(self.sources.len());
        let interest = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, source, EventData::new_u64(token as u64), interest)
            .map_err(|errno| OsError::new("epoll_ctl", errno))?;
        if token == self.sources.len() {
            self.sources.push(readiness.clone());
        } else {
            self.sources[token] = readiness.clone();
        }
        Ok(readiness)
    }

    /// Takes in the kernel's news; sleeps for `timeout` (`None`: for ever) if there is none. Returns how many sources changed.
    ///
    /// # Errors
    /// If the kernel refuses: a broken environment, as nothing here depends on a peer.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<usize, OsError> {
        // The kernel counts whole milliseconds here and a longer sleep than this is as good as none.
        let timeout = timeout.map(|timeout| {
            let timeout = timeout.min(Duration::from_secs(3600));
            rustix::event::Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() }
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(OsError::new("epoll_wait", errno)),
        }
        for event in &self.events {
            let (token, flags) = (event.data.u64() as usize, event.flags);
            self.sources[token].set(flags);
        }
        Ok(self.events.len())
    }

    /// Whether there is anything to watch besides the scheduler's own waker.
    pub(crate) fn watches_more_than_one(&self) -> bool {
        self.sources.len() > 1
    }
}

/// How long to sleep until `deadline`; `None` without one.
pub(crate) fn sleep_until(deadline: Option<Time>, now: Time) -> Option<Duration> {
    deadline.map(|deadline| deadline.since(now))
}

/// What is known of one source. Its owner reads or writes until the source would block, then says so.
///
/// For sources that are not watched there is the default: always worth a try.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<AtomicU8>);

impl Readiness {
    /// Whether a read is worth a try.
    pub fn is_readable(&self) -> bool {
        self.has(READABLE | HUNG_UP | UNWATCHED)
    }

    /// Whether a write is worth a try.
    pub fn is_writable(&self) -> bool {
        self.has(WRITABLE | HUNG_UP | UNWATCHED)
    }

    /// To be called *before* a read that may drain the source, so that news that comes during the read stays.
    pub fn clear_readable(&self) {
        self.0.fetch_and(!READABLE, Ordering::Relaxed);
    }

    /// To be called after a read that did not drain the source.
    pub fn set_readable(&self) {
        self.0.fetch_or(READABLE, Ordering::Relaxed);
    }

    /// To be called before a write that may fill the source.
    pub fn clear_writable(&self) {
        self.0.fetch_and(!WRITABLE, Ordering::Relaxed);
    }

    /// To be called after a write that did not fill the source.
    pub fn set_writable(&self) {
        self.0.fetch_or(WRITABLE, Ordering::Relaxed);
    }

    fn has(&self, any: u8) -> bool {
        self.0.load(Ordering::Relaxed) & any != 0
    }

    fn set(&self, flags: EventFlags) {
        let mut ready = 0;
        if flags.intersects(EventFlags::IN) {
            ready |= READABLE;
        }
        if flags.intersects(EventFlags::OUT) {
            ready |= WRITABLE;
        }
        if flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            ready |= HUNG_UP;
        }
        self.0.fetch_or(ready, Ordering::Relaxed);
    }
}

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(UNWATCHED)))
    }
}

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;
/// The end of the stream or an error is to be found by reading or writing; it comes once and stays.
const HUNG_UP: u8 = 4;
const UNWATCHED: u8 = 8;

/// More sources than this with news are served by the next wait.
const EVENTS_PER_WAIT: usize = 256;

#[cfg(test)]
mod tests {
    use super::{Poller, Readiness};
    use core::time::Duration;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::io::{read, write};

    #[test]
    fn readiness_is_remembered_until_it_is_cleared_and_comes_again() {
        let mut poller = Poller::new().unwrap();
        let event = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let ready = poller.register(&event).unwrap();
        poller.wait(Some(Duration::ZERO)).unwrap();
        ready.clear_readable();
        assert!(!ready.is_readable() && ready.is_writable());
        for _ in 0..2 {
            write(&event, &1_u64.to_ne_bytes()).unwrap();
            assert_eq!(poller.wait(None).unwrap(), 1);
            assert!(ready.is_readable());
            poller.wait(Some(Duration::ZERO)).unwrap();
            assert!(ready.is_readable());
            ready.clear_readable();
            read(&event, &mut [0; 8]).unwrap();
            assert!(!ready.is_readable());
        }
    }

    #[test]
    fn the_place_of_a_closed_source_is_used_again() {
        let mut poller = Poller::new().unwrap();
        for _ in 0..10 {
            let event = eventfd(1, EventfdFlags::NONBLOCK).unwrap();
            let ready = poller.register(&event).unwrap();
            assert_eq!(poller.wait(None).unwrap(), 1);
            assert!(ready.is_readable());
        }
        assert_eq!(poller.sources.len(), 1);
    }

    #[test]
    fn what_is_not_watched_is_always_worth_a_try() {
        let ready = Readiness::default();
        ready.clear_readable();
        ready.clear_writable();
        assert!(ready.is_readable() && ready.is_writable());
    }
}
