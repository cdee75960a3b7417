//! Queues and links inside a process.
//!
//! [`queue`] carries values of any type, so that tasks exchange typed messages without encoding them. A receiver
//! takes all that waits in one exchange under a short lock, and works on its batch without one. It works alike
//! within one thread, where nobody contends for the lock, and between threads, where a sleeping receiver is woken.
//! [`LocalLink`] carries frames over two such queues; it moves handles on bulk, not bytes.

use crate::frame::{Frame, FrameLimits};
use crate::link::{Filled, Flushed, Link, LinkCounters, Lost, SendError};
use crate::waker::Waker;
use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// A queue of at most `capacity` values that wait, besides the batch, of at most `capacity`, that the receiver has taken.
///
/// # Panics
/// If the capacity is zero.
pub fn queue<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a queue holds at least one value");
    let shared = Arc::new(Shared {
        capacity,
        waiting: AtomicUsize::new(0),
        senders: AtomicUsize::new(1),
        receiver_gone: AtomicBool::new(false),
        inner: Mutex::new(Inner { items: VecDeque::new(), receiver: None, refused: Vec::new() }),
    });
    (Sender { shared: Arc::clone(&shared), waker: None }, Receiver { shared, batch: VecDeque::new() })
}

/// The sending side; clones send into the same queue.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
    waker: Option<Waker>,
}

/// A value that was not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused<T> {
    /// As many values wait as may.
    #[error("queue full")]
    Full(T),
    /// There is no receiver.
    #[error("receiver gone")]
    Closed(T),
}

impl<T> Sender<T> {
    /// Queues one value.
    ///
    /// # Errors
    /// Gives the value back if the queue is full or the receiver gone.
    pub fn send(&mut self, item: T) -> Result<(), Refused<T>> {
        let mut inner = self.shared.lock();
        if self.shared.receiver_gone.load(Ordering::Relaxed) {
            return Err(Refused::Closed(item));
        }
        if inner.items.len() >= self.shared.capacity {
            inner.remember_refused(self.waker.as_ref());
            return Err(Refused::Full(item));
        }
        inner.items.push_back(item);
        let count = inner.items.len();
        self.shared.finish_send(&inner, count - 1, count);
        Ok(())
    }

    /// Queues as many of `items` as there is room for, in one exchange, and leaves the others; returns how many.
    ///
    /// # Errors
    /// [`Refused::Closed`] if the receiver is gone; all items are left.
    pub fn send_all(&mut self, items: &mut VecDeque<T>) -> Result<usize, Refused<()>> {
        let mut inner = self.shared.lock();
        if self.shared.receiver_gone.load(Ordering::Relaxed) {
            return Err(Refused::Closed(()));
        }
        let before = inner.items.len();
        let count = items.len().min(self.shared.capacity - before);
        if count < items.len() {
            inner.remember_refused(self.waker.as_ref());
        }
        inner.items.extend(items.drain(..count));
        self.shared.finish_send(&inner, before, before + count);
        Ok(count)
    }

    /// Whether a value would be taken, or the loss of the receiver reported. No lock.
    pub fn has_room(&self) -> bool {
        self.shared.waiting.load(Ordering::Relaxed) < self.shared.capacity || self.is_closed()
    }

    /// Whether the receiver is gone. No lock.
    pub fn is_closed(&self) -> bool {
        self.shared.receiver_gone.load(Ordering::Relaxed)
    }

    /// Wakes this scheduler when there is room after a refusal.
    pub fn set_waker(&mut self, waker: Waker) {
        self.waker = Some(waker);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.senders.fetch_add(1, Ordering::Relaxed);
        Self { shared: Arc::clone(&self.shared), waker: self.waker.clone() }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let inner = self.shared.lock();
        if self.shared.senders.fetch_sub(1, Ordering::Release) == 1 {
            inner.wake_receiver();
        }
    }
}

/// The receiving side.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    batch: VecDeque<T>,
}

/// Nothing waits and nobody can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("all senders gone")]
pub struct Disconnected;

impl<T> Receiver<T> {
    /// The next value; `None` if there is none now.
    ///
    /// # Errors
    /// When all senders are gone and all values were received.
    pub fn receive(&mut self) -> Result<Option<T>, Disconnected> {
        if self.batch.is_empty() {
            self.take_batch()?;
        }
        Ok(self.batch.pop_front())
    }

    /// Whether there is a value, or the loss of the senders to report. No lock.
    pub fn is_ready(&self) -> bool {
        !self.batch.is_empty() || self.shared.waiting.load(Ordering::Relaxed) > 0 || self.is_disconnected()
    }

    /// Wakes this scheduler when a value comes or the last sender goes.
    pub fn set_waker(&mut self, waker: Waker) {
        self.shared.lock().receiver = Some(waker);
    }

    fn is_disconnected(&self) -> bool {
        // Acquire: what the senders queued before they went is seen afterwards.
        self.shared.senders.load(Ordering::Acquire) == 0
    }

    fn take_batch(&mut self) -> Result<(), Disconnected> {
        let disconnected = self.is_disconnected();
        if self.shared.waiting.load(Ordering::Relaxed) == 0 {
            return if disconnected { Err(Disconnected) } else { Ok(()) };
        }
        let mut inner = self.shared.lock();
        core::mem::swap(&mut inner.items, &mut self.batch);
        self.shared.waiting.store(0, Ordering::Relaxed);
        inner.refused.drain(..).for_each(|waker| waker.wake());
        Ok(())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut inner = self.shared.lock();
        self.shared.receiver_gone.store(true, Ordering::Relaxed);
        inner.refused.drain(..).for_each(|waker| waker.wake());
        let left = core::mem::take(&mut inner.items);
        // What a value does when it is dropped is not our business under the lock.
        drop(inner);
        drop(left);
    }
}

struct Shared<T> {
    capacity: usize,
    /// Length of `items`, written under the lock.
    waiting: AtomicUsize,
    senders: AtomicUsize,
    receiver_gone: AtomicBool,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    items: VecDeque<T>,
    receiver: Option<Waker>,
    /// Whom to wake when there is room.
    refused: Vec<Waker>,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().expect("nothing panics while it holds the queue")
    }

    fn finish_send(&self, inner: &Inner<T>, before: usize, after: usize) {
        self.waiting.store(after, Ordering::Relaxed);
        // A receiver that has left values waiting knows of them.
        if before == 0 && after > 0 {
            inner.wake_receiver();
        }
    }
}

impl<T> Inner<T> {
    fn wake_receiver(&self) {
        if let Some(waker) = &self.receiver {
            waker.wake();
        }
    }

    fn remember_refused(&mut self, waker: Option<&Waker>) {
        if let Some(waker) = waker
            && !self.refused.iter().any(|known| known.is_same(waker))
        {
            self.refused.push(waker.clone());
        }
    }
}

/// Settings of a link inside the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalOptions {
    /// Legal lengths of frames.
    pub limits: FrameLimits,
    /// Received frames below this length in bytes are counted.
    pub copy_below: usize,
    /// Bound in bytes of the frames that were sent and not flushed; at least the longest frame.
    pub queue_bytes_max: usize,
    /// Bound of the frames that were sent and not flushed, and of those that were flushed and not received.
    pub queue_frames_max: usize,
}

/// One side of a link inside the process; see [`Link`] for its use. It never makes a system call unless it wakes a sleeper.
pub struct LocalLink {
    options: LocalOptions,
    queued: VecDeque<Frame>,
    queued_bytes: usize,
    outgoing: Sender<Frame>,
    incoming: Receiver<Frame>,
    counters: LinkCounters,
}

impl LocalLink {
    /// The two sides of a link.
    ///
    /// # Panics
    /// If the longest frame does not fit in the empty queue.
    pub fn pair(options: &LocalOptions) -> (Self, Self) {
        assert!(options.queue_bytes_max >= options.limits.len_max(), "the longest frame fits in the queue");
        let (to_second, from_first) = queue(options.queue_frames_max);
        let (to_first, from_second) = queue(options.queue_frames_max);
        (Self::new(options, to_second, from_second), Self::new(options, to_first, from_first))
    }

    /// Wakes this scheduler when frames come, or room, or the peer goes.
    pub fn set_waker(&mut self, waker: &Waker) {
        self.outgoing.set_waker(waker.clone());
        self.incoming.set_waker(waker.clone());
    }

    fn new(options: &LocalOptions, outgoing: Sender<Frame>, incoming: Receiver<Frame>) -> Self {
        let (options, counters) = (options.clone(), LinkCounters::default());
        Self { options, queued: VecDeque::new(), queued_bytes: 0, outgoing, incoming, counters }
    }

    fn count_received(&mut self) {
        let frames = &self.incoming.batch;
        self.counters.receive_calls += 1;
        self.counters.frames_received += frames.len() as u64;
        for len in frames.iter().map(Frame::len) {
            self.counters.bytes_received += len as u64;
            self.counters.small_frames_received += u64::from(len < self.options.copy_below);
        }
    }
}

impl Link for LocalLink {
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError> {
        let len = self.options.limits.checked_len(head, bulk);
        if self.outgoing.is_closed() {
            return Err(SendError::Lost(Lost::Closed));
        }
        let is_full = self.queued.len() == self.options.queue_frames_max;
        if is_full || self.queued_bytes + len > self.options.queue_bytes_max {
            self.counters.sends_refused += 1;
            return Err(SendError::Full);
        }
        let head = PageSlice::copy_of(head);
        self.queued.push_back(Frame { head, rest: bulk.clone() });
        self.queued_bytes += len;
        Ok(())
    }

    fn flush(&mut self, _now: Time) -> Result<Flushed, Lost> {
        if self.queued.is_empty() && !self.outgoing.is_closed() {
            return Ok(Flushed::All);
        }
        self.counters.send_calls += 1;
        let Ok(count) = self.outgoing.send_all(&mut self.queued) else {
            self.queued.clear();
            self.queued_bytes = 0;
            return Err(Lost::Closed);
        };
        let left: usize = self.queued.iter().map(Frame::len).sum();
        self.counters.frames_sent += count as u64;
        self.counters.bytes_sent += (self.queued_bytes - left) as u64;
        self.queued_bytes = left;
        if self.queued.is_empty() {
            return Ok(Flushed::All);
        }
        self.counters.send_would_blocks += 1;
        Ok(Flushed::WouldBlock)
    }

    fn fill(&mut self, _now: Time) -> Result<Filled, Lost> {
        if !self.incoming.batch.is_empty() {
            return Ok(Filled::FramesWaiting);
        }
        self.incoming.take_batch().map_err(|Disconnected| Lost::Closed)?;
        if self.incoming.batch.is_empty() {
            self.counters.receive_would_blocks += 1;
            return Ok(Filled::WouldBlock);
        }
        self.count_received();
        Ok(Filled::Some)
    }

    fn next_frame(&mut self) -> Option<Frame> {
        self.incoming.batch.pop_front()
    }

    fn is_receivable(&self, _now: Time) -> bool {
        self.incoming.is_ready()
    }

    fn is_flushable(&self) -> bool {
        !self.queued.is_empty() && self.outgoing.has_room()
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::{Disconnected, LocalLink, LocalOptions, Refused, queue};
    use crate::frame::FrameLimits;
    use crate::link::{Filled, Link};
    use base::bulk::Bulk;
    use base::time::Time;
    use std::collections::VecDeque;

    #[test]
    fn both_sides_count_the_same_bytes() {
        let limits = FrameLimits::new(4, 100).unwrap();
        let options = LocalOptions { limits, copy_below: 20, queue_bytes_max: 1000, queue_frames_max: 10 };
        let (mut first, mut second) = LocalLink::pair(&options);
        for len in [10_u32, 30, 19, 20] {
            let mut head = vec![0; len as usize];
            head[..4].copy_from_slice(&len.to_le_bytes());
            first.send(&head, &Bulk::empty()).unwrap();
        }
        first.flush(Time::ZERO).unwrap();
        assert!(matches!(second.fill(Time::ZERO), Ok(Filled::Some)));
        let (sent, received) = (*first.counters(), *second.counters());
        assert_eq!((sent.frames_sent, sent.bytes_sent), (4, 79));
        assert_eq!((received.frames_received, received.bytes_received, received.small_frames_received), (4, 79, 2));
    }

    #[test]
    fn values_arrive_in_order_and_the_bound_holds() {
        let (mut sender, mut receiver) = queue(2);
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        assert!(!sender.has_room());
        assert_eq!(sender.send(3), Err(Refused::Full(3)));
        assert_eq!(receiver.receive(), Ok(Some(1)));
        assert_eq!(sender.send_all(&mut VecDeque::from([3, 4, 5])), Ok(2));
        assert_eq!(core::iter::from_fn(|| receiver.receive().unwrap()).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(!receiver.is_ready());
    }

    #[test]
    fn what_was_sent_before_the_senders_went_is_received() {
        let (mut sender, mut receiver) = queue(2);
        let second = sender.clone();
        sender.send(1).unwrap();
        drop(sender);
        assert_eq!(receiver.receive(), Ok(Some(1)));
        assert_eq!(receiver.receive(), Ok(None));
        drop(second);
        assert!(receiver.is_ready());
        assert_eq!(receiver.receive(), Err(Disconnected));
    }

    #[test]
    fn a_sender_learns_that_the_receiver_went() {
        let (mut sender, receiver) = queue(1);
        sender.send(1).unwrap();
        drop(receiver);
        assert!(sender.has_room() && sender.is_closed());
        assert_eq!(sender.send(2), Err(Refused::Closed(2)));
        assert_eq!(sender.send_all(&mut VecDeque::from([2])), Err(Refused::Closed(())));
    }
}
