//! How much went to the bus, and how much did not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts since the service began.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    connected: AtomicBool,
    published: AtomicU64,
    dropped: AtomicU64,
}

/// What they are at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrafficNow {
    /// Whether the bus is there.
    pub(crate) connected: bool,
    /// What was given to it.
    pub(crate) published: u64,
    /// Samples and messages that it did not get.
    pub(crate) dropped: u64,
}

impl Traffic {
    pub(super) fn now(&self) -> TrafficNow {
        TrafficNow {
            connected: self.connected.load(Ordering::Relaxed),
            published: self.published.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

#[cfg(feature = "nats")]
impl Traffic {
    pub(super) fn set_connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::Relaxed);
    }

    pub(super) fn publish(&self) {
        self.published.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lose(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}
