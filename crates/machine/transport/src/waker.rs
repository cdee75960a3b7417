//! Waking a scheduler that sleeps.

use crate::error::OsError;
use core::sync::atomic::{AtomicU8, Ordering};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

pub(crate) mod sleep_word;

pub use sleep_word::SleepWord;

/// Tells a scheduler, from any thread, that something changed that it must look at. Clones wake the same scheduler.
///
/// Costs one atomic exchange; a system call only if the scheduler sleeps. Change first, then wake.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Shared>);

impl Waker {
    /// Makes the scheduler run one more pass over its tasks, from sleep if need be.
    ///
    /// # Panics
    /// If the kernel refuses to write to the scheduler's own event counter.
    pub fn wake(&self) {
        // The exchange is unconditional: it orders the caller's change before the scheduler's next look at the state.
        if self.0.state.swap(NOTIFIED, Ordering::AcqRel) == SLEEPING {
            rustix::io::retry_on_intr(|| rustix::io::write(&self.0.event, &1_u64.to_ne_bytes()))
                .expect("an event counter below its maximum takes an increment");
        }
    }

    /// Whether two wakers wake the same scheduler.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn new() -> Result<Self, OsError> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| OsError::new("eventfd", errno))?;
        Ok(Self(Arc::new(Shared { state: AtomicU8::new(AWAKE), event, seen_elsewhere: Mutex::new(Vec::new()) })))
    }

    /// The scheduler starts a pass: what was notified until now is what this pass will see.
    pub(crate) fn begin_pass(&self) {
        // A plain load spares the exchange on most passes; a notification missed here keeps the state from sleeping.
        if self.0.state.load(Ordering::Relaxed) != AWAKE {
            self.0.state.swap(AWAKE, Ordering::AcqRel);
        }
    }

    /// The scheduler announces sleep; false if it was notified since its pass began, and must not sleep.
    pub(crate) fn begin_sleep(&self) -> bool {
        self.0.state.compare_exchange(AWAKE, SLEEPING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// From now on other processes see in this word whether the scheduler sleeps.
    ///
    /// # Panics
    /// If the word is another living scheduler's: a sleeper would not be woken while the other is awake.
    pub fn show_sleep_in(&self, word: &Arc<SleepWord>) {
        assert!(word.belongs_to(&self.0), "the links of a shm::Process are registered with one scheduler");
        let mut words = self.lock_words();
        if !words.iter().any(|known| Arc::ptr_eq(known, word)) {
            words.push(Arc::clone(word));
        }
    }

    /// Tells other processes that the scheduler is about to sleep; whether there are any. If so it has to look once more at
    /// what they write: they wake it for what they write from now on.
    pub(crate) fn announce_sleep(&self) -> bool {
        let words = self.lock_words();
        words.iter().for_each(|word| word.begin_sleep());
        // What a process wrote without seeing our announcement is seen after this.
        core::sync::atomic::fence(Ordering::SeqCst);
        !words.is_empty()
    }

    /// The scheduler slept; clears the event counter if a waker wrote it.
    pub(crate) fn end_sleep(&self) {
        self.lock_words().iter().for_each(|word| word.end_sleep());
        if self.0.state.swap(AWAKE, Ordering::AcqRel) == NOTIFIED {
            let mut count = [0; 8];
            // It may not have been written yet: then a later sleep ends early, once.
            let _ = rustix::io::read(&self.0.event, &mut count);
        }
    }

    fn lock_words(&self) -> std::sync::MutexGuard<'_, Vec<Arc<SleepWord>>> {
        self.0.seen_elsewhere.lock().expect("nothing panics while it holds the sleep words")
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

/// A scheduler as its wakers know it.
#[derive(Debug)]
pub(crate) struct Shared {
    state: AtomicU8,
    event: OwnedFd,
    seen_elsewhere: Mutex<Vec<Arc<SleepWord>>>,
}

const AWAKE: u8 = 0;
const NOTIFIED: u8 = 1;
const SLEEPING: u8 = 2;

#[cfg(test)]
mod tests {
    use super::Waker;

    fn event_count(waker: &Waker) -> Option<u64> {
        let mut count = [0; 8];
        rustix::io::read(waker, &mut count).ok().map(|_| u64::from_ne_bytes(count))
    }

    #[test]
    fn an_awake_scheduler_costs_no_system_call() {
        let waker = Waker::new().unwrap();
        waker.wake();
        waker.wake();
        assert_eq!(event_count(&waker), None);
        assert!(!waker.begin_sleep());
        waker.begin_pass();
        assert!(waker.begin_sleep());
    }

    #[test]
    fn a_sleeping_scheduler_is_signalled_once() {
        let waker = Waker::new().unwrap();
        assert!(waker.begin_sleep());
        waker.wake();
        waker.wake();
        assert_eq!(event_count(&waker), Some(1));
        waker.end_sleep();
        assert!(waker.begin_sleep());
    }

    #[test]
    fn waking_clears_the_signal() {
        let waker = Waker::new().unwrap();
        assert!(waker.begin_sleep());
        waker.wake();
        waker.end_sleep();
        assert_eq!(event_count(&waker), None);
    }
}
