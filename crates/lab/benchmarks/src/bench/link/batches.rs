//! A queue each way between two threads, under a lock: a sender adds all that it has, a receiver takes all that there is.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use super::LinkArguments;
use super::line::{LOOK_AGAIN, Line};
use super::talk::{HEAD_BYTES, Outgoing, Talk, head, read_head};

/// One end of both queues.
pub(super) struct Batches {
    data: Arc<[u8]>,
    to: Arc<Queue>,
    from: Arc<Queue>,
    /// Frames of this flush.
    waiting: Vec<Handle>,
    taken: Vec<Handle>,
}

/// A head, and what is shared of the bytes behind it.
type Handle = ([u8; HEAD_BYTES], Arc<[u8]>, usize);

#[derive(Default)]
struct Queue {
    state: Mutex<Queued>,
    /// Whether a look at the state finds something: one who waits does not take the lock from one who sends.
    has_news: AtomicBool,
}

#[derive(Default)]
struct Queued {
    frames: Vec<Handle>,
    /// The receiver, where it sleeps.
    sleeper: Option<Thread>,
    is_closed: bool,
}

impl Batches {
    /// Both ends; the window of a conversation bounds what waits.
    pub(super) fn pair(arguments: &LinkArguments) -> [Self; 2] {
        let data = Arc::from(vec![7; arguments.frame_bytes as usize]);
        let [one, other] = [(); 2].map(|()| Arc::new(Queue::default()));
        [(&one, &other), (&other, &one)].map(|(to, from)| Self {
            data: Arc::clone(&data),
            to: Arc::clone(to),
            from: Arc::clone(from),
            waiting: Vec::new(),
            taken: Vec::new(),
        })
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Queued> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the queue and wakes its receiver.
    fn change(&self, change: impl FnOnce(&mut Queued)) {
        let mut state = self.lock();
        change(&mut state);
        let sleeper = state.sleeper.take();
        self.has_news.store(true, Ordering::Release);
        drop(state);
        if let Some(sleeper) = sleeper {
            sleeper.unpark();
        }
    }
}

impl Line for Batches {
    fn send(&mut self, frame: Outgoing) -> io::Result<bool> {
        self.waiting.push((head(frame), Arc::clone(&self.data), frame.len - HEAD_BYTES));
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.to.change(|state| state.frames.append(&mut self.waiting));
        }
        Ok(())
    }

    fn receive(&mut self, talk: &mut Talk) -> io::Result<bool> {
        if !self.from.has_news.load(Ordering::Acquire) {
            return Ok(false);
        }
        let mut state = self.from.lock();
        self.from.has_news.store(state.is_closed, Ordering::Release);
        core::mem::swap(&mut state.frames, &mut self.taken);
        let is_closed = state.is_closed;
        drop(state);
        if self.taken.is_empty() {
            return if is_closed { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(false) };
        }
        for (head, ..) in self.taken.drain(..) {
            talk.take(read_head(&head).expect("a whole head").number);
        }
        Ok(true)
    }

    fn sleep(&mut self) -> io::Result<()> {
        let mut state = self.from.lock();
        if state.frames.is_empty() && !state.is_closed {
            state.sleeper = Some(std::thread::current());
            drop(state);
            std::thread::park_timeout(LOOK_AGAIN);
        }
        Ok(())
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.to.change(|state| state.is_closed = true);
    }
}
