//! How much the collector took, and how much it did not get.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(feature = "otlp")]
use super::lane::Signal;
use crate::metrics::{CountsNow, ExportedNow, LOGS, METRICS};

/// Counts since the service began.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    connected: AtomicBool,
    logs: Counts,
    metrics: Counts,
}

/// Of one signal: messages, or data points.
#[derive(Debug, Default)]
struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Traffic {
    pub(super) fn now(&self) -> ExportedNow {
        let connected = self.connected.load(Ordering::Relaxed);
        ExportedNow { connected, signals: [(LOGS, self.logs.now()), (METRICS, self.metrics.now())] }
    }
}

impl Counts {
    fn now(&self) -> CountsNow {
        let now = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CountsNow { exported: now(&self.exported), dropped: now(&self.dropped) }
    }
}

#[cfg(feature = "otlp")]
impl Traffic {
    pub(super) fn set_connected(&self, connected: bool) {
        self.connected.store(connected, Ordering::Relaxed);
    }

    pub(super) fn export(&self, signal: Signal, count: u64) {
        self.of(signal).exported.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn lose(&self, signal: Signal, count: u64) {
        self.of(signal).dropped.fetch_add(count, Ordering::Relaxed);
    }

    fn of(&self, signal: Signal) -> &Counts {
        match signal {
            Signal::Logs => &self.logs,
            Signal::Metrics => &self.metrics,
        }
    }
}
