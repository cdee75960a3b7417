//! What everybody may see of a partition, and what those who watch show of it.

use std::sync::Arc;

use agents::Present;
use catalogue::CatalogueError;
use tokio::sync::{broadcast, watch};

use super::{Desk, now_ms};
use crate::configured::Configured;
use crate::dataflow::Dataflow;
use crate::messages::{Message, Severity, Sought};
use crate::quality::{Histogram, NotKept, Quality};
use crate::samples::{self, SampledEvent};
use crate::status::Status;
use crate::trend::Sample;

impl Desk {
    /// What is now.
    pub fn status(&self) -> Status {
        self.0.status.borrow().clone()
    }

    /// What is now, and each change of it.
    pub fn watch(&self) -> watch::Receiver<Status> {
        self.0.status.subscribe()
    }

    /// Messages from now on; who reads too slowly misses some.
    pub fn listen(&self) -> broadcast::Receiver<Message> {
        self.0.said.subscribe()
    }

    /// The messages at hand that are sought, the oldest first.
    pub fn messages(&self, sought: &Sought) -> Vec<Message> {
        self.kept().messages.find(sought)
    }

    /// The same among all that are kept, also by former services. Waits for the disk if they are not at hand.
    pub(crate) fn find_messages(&self, sought: &Sought) -> Result<Vec<Message>, CatalogueError> {
        let (mut found, oldest) = {
            let kept = self.kept();
            (kept.messages.find(sought), kept.messages.oldest())
        };
        let missing = sought.limit() - found.len();
        if missing > 0 && sought.behind.saturating_add(1) < oldest {
            let before = sought.before.map_or(oldest, |before| before.min(oldest));
            let older = Sought { before: Some(before), newest: u32::try_from(missing).ok(), ..sought.clone() };
            found.splice(..0, self.0.log.find(&older)?);
        }
        Ok(found)
    }

    /// Number of the newest message of former services; 0 if there is none.
    #[cfg(any(feature = "nats", feature = "otlp"))]
    pub(crate) fn newest_restored(&self) -> u64 {
        self.0.log.restored().last().map_or(0, |newest| newest.number)
    }

    /// Number of the newest message; 0 if nothing was said.
    #[cfg(feature = "otlp")]
    pub(crate) fn newest_message(&self) -> u64 {
        self.kept().messages.newest()
    }

    /// The configuration that is in force.
    pub fn configured(&self) -> Arc<Configured> {
        Arc::clone(&self.kept().configured)
    }

    /// Who gives to whom, how fast, and who waits, as it was a second ago at most.
    pub fn dataflow(&self) -> Dataflow {
        self.kept().dataflow.clone()
    }

    /// The agents that are there.
    pub(crate) fn agents(&self) -> Vec<Present> {
        self.kept().roll.present()
    }

    /// Messages that were not kept since the service began.
    pub(crate) fn messages_dropped(&self) -> u64 {
        self.0.log.dropped()
    }

    /// The rates of the last hour, the oldest first.
    pub fn trend(&self) -> Vec<Sample> {
        self.kept().trend.samples()
    }

    /// The kept samples behind that number.
    pub fn samples(&self, behind: u64) -> Vec<SampledEvent> {
        self.kept().samples.behind(behind)
    }

    /// Samples from now on; who reads too slowly misses some.
    pub fn listen_to_samples(&self) -> broadcast::Receiver<SampledEvent> {
        self.0.shown.subscribe()
    }

    /// The event of a sample, if it is still kept.
    #[cfg(feature = "nats")]
    pub(crate) fn sampled(&self, number: u64) -> Option<Arc<[u8]>> {
        self.kept().samples.event(number)
    }

    pub(crate) fn sample(&self, number: u64) -> Option<samples::Kept> {
        self.kept().samples.open(number)
    }

    /// Keeps histograms that a client has filled, and compares them with their references.
    pub(crate) fn post(&self, by: &str, histograms: Vec<Histogram>) -> Result<(), NotKept> {
        let when = (now_ms(), self.run_now());
        let kept = histograms.into_iter().try_for_each(|histogram| {
            let change = self.kept().quality.post(by, when, histogram)?;
            change.into_iter().for_each(|change| self.tell_alarm(change));
            Ok(())
        });
        self.refresh();
        kept
    }

    /// Compares what the system has filled with its references.
    pub(super) fn judge_own(&self, run: Option<u32>) {
        let changes: Vec<_> = {
            let super::Kept { own, quality, .. } = &mut *self.kept();
            own.histograms().filter_map(|histogram| quality.judge("system", (now_ms(), run), histogram)).collect()
        };
        changes.into_iter().for_each(|change| self.tell_alarm(change));
    }

    fn tell_alarm(&self, (alarm, words): (bool, String)) {
        self.tell_all(if alarm { Severity::Warning } else { Severity::Notice }, words);
    }

    /// Looks at the histograms.
    pub(crate) fn with_quality<T>(&self, look: impl FnOnce(&Quality) -> T) -> T {
        look(&self.kept().quality)
    }

    /// The number of the run that goes on, or of the last one.
    pub(crate) fn run_now(&self) -> Option<u32> {
        let status = self.0.status.borrow();
        status.run.as_ref().map_or_else(|| status.last.as_ref().and_then(|last| last.number), |run| run.number)
    }
}
