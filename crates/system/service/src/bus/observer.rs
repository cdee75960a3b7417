//! What a desk has to tell, for a carrier that may be slow or away. It is one more of those who watch, behind the same bounded queues: the
//! desk waits for nobody, and what is missed is counted.

use core::time::Duration;

use catalogue::{Entry, Record, RunId};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::traffic::Traffic;
use crate::desk::Desk;
use crate::messages::{Message, Sought};
use crate::samples::SampledEvent;
use crate::status::Status;

/// What there is to tell of a desk.
#[derive(Debug)]
pub(super) struct Observer {
    desk: Desk,
    status: watch::Receiver<Status>,
    said: broadcast::Receiver<Message>,
    shown: broadcast::Receiver<SampledEvent>,
    second: Interval,
    /// Number of the last message that was told.
    told: u64,
    /// The last run whose record was told, or was there before.
    recorded: Option<RunId>,
}

/// What is new.
#[derive(Debug)]
pub(super) enum News {
    /// There are messages.
    Said,
    /// Another status.
    Changed,
    /// A sample.
    Shown(SampledEvent),
    /// So many samples were missed.
    Missed(u64),
    /// A second is over.
    Second,
    /// No application is left, and nothing follows.
    Left,
}

impl Observer {
    /// Tells what comes from now on, and all messages that are kept.
    pub(super) fn of(desk: &Desk) -> Self {
        let mut second = interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let entries = desk.with_catalogue(|catalogue| catalogue.runs(1)).unwrap_or_default();
        Self {
            desk: desk.clone(),
            status: desk.watch(),
            said: desk.listen(),
            shown: desk.listen_to_samples(),
            second,
            told: desk.newest_restored(),
            recorded: entries.first().map(|newest| newest.id),
        }
    }

    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Waits for something new.
    pub(super) async fn next(&mut self) -> News {
        tokio::select! {
            biased;
            // A receiver that lags finds missed messages among those that are kept.
            said = self.said.recv() => match said {
                Ok(_) | Err(RecvError::Lagged(_)) => News::Said,
                Err(RecvError::Closed) => News::Left,
            },
            changed = self.status.changed() => match changed {
                Ok(()) => News::Changed,
                Err(_) => News::Left,
            },
            _ = self.second.tick() => News::Second,
            shown = self.shown.recv() => match shown {
                Ok(sample) => News::Shown(sample),
                Err(RecvError::Lagged(missed)) => News::Missed(missed),
                Err(RecvError::Closed) => News::Left,
            },
            () = self.desk.is_left() => News::Left,
        }
    }

    /// While nobody takes anything, samples are lost; until the desk is left.
    pub(super) async fn lose(&mut self, traffic: &Traffic) {
        loop {
            match self.next().await {
                News::Shown(_) => traffic.lose(1),
                News::Missed(missed) => traffic.lose(missed),
                News::Said | News::Changed | News::Second => {}
                News::Left => return,
            }
        }
    }

    /// The kept messages that were not told yet, and how many were given up in between. Those given up count once.
    pub(super) fn messages(&mut self) -> (Vec<Message>, u64) {
        let messages = self.desk.messages(&Sought::behind(self.told));
        let given_up = messages.first().map_or(0, |first| first.number - self.told - 1);
        self.told += given_up;
        (messages, given_up)
    }

    /// A message was told, or given up.
    pub(super) fn has_told(&mut self, message: &Message) {
        self.told = message.number;
    }

    /// Records of runs that have ended and were not told yet, the oldest first. A message says that a run has ended.
    pub(super) fn records(&self) -> Vec<Record> {
        let name = &self.desk.configured().partition.partition.name;
        let recorded = self.recorded;
        let is_due = |entry: &Entry| entry.ended.is_some() && entry.partition == *name && Some(entry.id) > recorded;
        self.desk.with_catalogue(|catalogue| {
            let entries = catalogue.runs(RECORDS_BEHIND_MAX).unwrap_or_default();
            let due = entries.iter().rev().filter(|entry| is_due(entry));
            due.filter_map(|entry| catalogue.run(entry.number?).ok()).collect()
        })
    }

    /// A record was told, or given up.
    pub(super) fn has_recorded(&mut self, record: &Record) {
        self.recorded = Some(record.entry.id);
    }
}

/// A bus that is away for more runs than these misses some records; the catalogue has them all.
const RECORDS_BEHIND_MAX: u32 = 100;
