//! Whether a source still takes orders.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use base::time::Time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::clock;

/// Watches from a thread of its own that orders of the partition are taken. It calls a function, once, when one has waited for the
/// deadline and the source has not looked. It ends when it is dropped.
pub struct Watch {
    _until_dropped: SyncSender<()>,
}

impl Watch {
    /// Watches `orders`, which is readable while an order waits, for a source that counts its looks with
    /// the beat.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn over(
        orders: OwnedFd,
        deadline: Duration,
        beat: Beat,
        blocked: impl FnOnce(Blocked) + Send + 'static,
    ) -> io::Result<Self> {
        let (until_dropped, dropped) = sync_channel(0);
        thread::Builder::new().name("weir watch".into()).spawn(move || {
            if let Some(found) = watch(&orders, deadline, &beat, &dropped) {
                blocked(found);
            }
        })?;
        Ok(Self { _until_dropped: until_dropped })
    }
}

/// Counts how often a source has looked for orders, and says whether one was read and not taken.
#[derive(Clone, Debug, Default)]
pub struct Beat(Arc<Beats>);

#[derive(Debug, Default)]
struct Beats {
    looks: AtomicU64,
    is_waiting: AtomicBool,
}

impl Beat {
    /// The source takes an order; whether another one waits in its own memory ([`Sender::has_order`](link::Sender::has_order)).
    pub fn look(&self, is_waiting: bool) {
        // One writer: no read-modify-write is needed.
        self.0.looks.store(self.0.looks.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.read(is_waiting);
    }

    /// The source has read what came, without taking an order.
    pub fn read(&self, is_waiting: bool) {
        self.0.is_waiting.store(is_waiting, Ordering::Relaxed);
    }

    fn looks(&self) -> u64 {
        self.0.looks.load(Ordering::Relaxed)
    }
}

/// A source that has left an order waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// How long it may.
    pub deadline: Duration,
}

fn watch(orders: &OwnedFd, deadline: Duration, beat: &Beat, dropped: &Receiver<()>) -> Option<Blocked> {
    let look = (deadline / LOOKS_PER_DEADLINE).clamp(Duration::from_millis(1), LOOK_MAX);
    let mut since: Option<(u64, Time)> = None;
    loop {
        // Whoever drops the watch is noticed at the latest after one look.
        let at_most = if since.is_none() { look } else { Duration::ZERO };
        let waits = beat.0.is_waiting.load(Ordering::Relaxed) || is_readable(orders, at_most);
        let (looks, now) = (beat.looks(), clock::now());
        since = match since {
            _ if !waits => None,
            Some((then, first)) if then == looks && now.since(first) >= deadline => return Some(Blocked { deadline }),
            Some((then, first)) if then == looks => Some((then, first)),
            _ => Some((looks, now)),
        };
        let pause = if since.is_some() { look } else { Duration::ZERO };
        if !matches!(dropped.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            return None;
        }
    }
}

/// Whether an order has come, or comes within this time.
fn is_readable(orders: &OwnedFd, at_most: Duration) -> bool {
    let mut fds = [PollFd::new(orders, PollFlags::IN)];
    let at_most = Timespec::try_from(at_most).expect("a look takes less than a second");
    matches!(poll(&mut fds, Some(&at_most)), Ok(1..))
}

const LOOKS_PER_DEADLINE: u32 = 10;
const LOOK_MAX: Duration = Duration::from_millis(200);
