//! The builder's side of push building: what is waited for, what comes ahead of its event, what credits go back.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::building::ahead::{Ahead, Pushed};
use crate::building::byte_credits::TakenBytes;
use crate::component::Outbox;
use crate::message::Message;
use base::ids::{EventId, NodeId};
use base::time::Time;

/// How a builder is pushed to.
#[derive(Clone, Debug, PartialEq)]
pub struct PushedParameters {
    /// What each source may have on the way, as it knows it.
    pub window_bytes: u64,
    /// How long a source may take before it is asked.
    pub timeout: Duration,
    /// Most events whose data are kept before they are assigned. Their bytes are within the windows of the sources.
    pub ahead: usize,
}

/// All of push building that is not about one event in building.
pub(crate) struct Intake {
    timeout: Duration,
    /// By source.
    credits: Vec<TakenBytes>,
    nodes: Vec<NodeId>,
    ahead: Ahead,
    /// Below this, events are finished for good.
    oldest_unfinished: EventId,
    /// When the sources of an attempt are not waited for any longer, in order, since all are waited for equally long.
    timeouts: VecDeque<(Time, EventId, u16)>,
    /// By source: what happened in this pass.
    news: Vec<News>,
    /// Sources with news.
    heard: Vec<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    /// It pushed, or what it pushed was used.
    Pushed,
    /// It was asked for what it did not push.
    Asked,
}

impl Intake {
    /// For sources by index.
    pub(crate) fn new(parameters: &PushedParameters, sources: impl Iterator<Item = NodeId>) -> Self {
        let nodes: Vec<NodeId> = sources.collect();
        let windows = parameters.window_bytes.saturating_mul(nodes.len() as u64).saturating_mul(2);
        Self {
            timeout: parameters.timeout,
            credits: nodes.iter().map(|_| TakenBytes::new(parameters.window_bytes)).collect(),
            ahead: Ahead::new(nodes.len(), parameters.ahead, usize::try_from(windows).unwrap_or(usize::MAX)),
            oldest_unfinished: EventId(0),
            timeouts: VecDeque::new(),
            news: nodes.iter().map(|_| News::None).collect(),
            heard: Vec::new(),
            nodes,
        }
    }

    /// The sources of an attempt are waited for from now on.
    pub(crate) fn expect(&mut self, now: Time, event: EventId, attempt: u16) {
        self.timeouts.push_back((now + self.timeout, event, attempt));
    }

    /// What came ahead of an event that is assigned now. The list comes back, empty, with [`Intake::reuse`].
    pub(crate) fn take_ahead(&mut self, event: EventId) -> Vec<Pushed> {
        let parts = self.ahead.take(event);
        for part in &parts {
            self.release(part);
        }
        parts
    }

    pub(crate) fn reuse(&mut self, parts: Vec<Pushed>) {
        self.ahead.reuse(parts);
    }

    /// Keeps what came ahead of its event; how many parts of events were dropped for it, itself perhaps.
    pub(crate) fn keep(&mut self, event: EventId, part: Pushed) -> u64 {
        if event < self.oldest_unfinished {
            return 1;
        }
        let source = usize::from(part.source);
        self.credits[source].hold(part.bulk.len());
        let mut dropped = Vec::new();
        self.ahead.keep(event, part, |part| dropped.push(part));
        self.release_all(&dropped)
    }

    /// Drops what will not be built here any more; how many parts of events.
    pub(crate) fn finish_below(&mut self, oldest_unfinished: EventId) -> u64 {
        self.oldest_unfinished = self.oldest_unfinished.max(oldest_unfinished);
        let mut dropped = Vec::new();
        self.ahead.drop_older_than(self.oldest_unfinished, |part| dropped.push(part));
        self.release_all(&dropped)
    }

    /// Drops all data ahead of their events; how many parts. The builder asks for data that events still wait for in their time.
    pub(crate) fn clear(&mut self) -> u64 {
        let mut dropped = Vec::new();
        self.ahead.clear(|part| dropped.push(part));
        self.release_all(&dropped)
    }

    /// A source says how much it has pushed so far.
    pub(crate) fn on_pushed(&mut self, source: usize, pushed: u64) {
        self.credits[source].on_pushed(pushed);
        self.note(source, News::Pushed);
    }

    /// A source came or went.
    pub(crate) fn on_peer(&mut self, source: usize) {
        self.credits[source].restart();
    }

    /// A source is asked for what it did not push: it is told what it may push, in case this was lost.
    pub(crate) fn on_asked(&mut self, source: usize) {
        self.note(source, News::Asked);
    }

    /// Tells the sources heard of in this pass what they may push.
    pub(crate) fn flush(&mut self, out: &mut Outbox) {
        for source in self.heard.drain(..).map(usize::from) {
            let credits = &mut self.credits[source];
            let taken = match core::mem::replace(&mut self.news[source], News::None) {
                News::Asked => Some(credits.tell()),
                _ => credits.due(),
            };
            if let Some(taken) = taken {
                out.send(self.nodes[source], Message::Credit(taken));
            }
        }
    }

    /// An attempt whose sources are not waited for any longer.
    pub(crate) fn pop_timeout(&mut self, now: Time) -> Option<(EventId, u16)> {
        let (_, event, attempt) = self.timeouts.pop_front_if(|(deadline, _, _)| *deadline <= now)?;
        Some((event, attempt))
    }

    /// Time-outs of attempts that wait for nobody go as they come to the front.
    pub(crate) fn forget(&mut self, waits: impl Fn(EventId, u16) -> bool) {
        while self.timeouts.pop_front_if(|(_, event, attempt)| !waits(*event, *attempt)).is_some() {}
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.timeouts.front().map(|(deadline, _, _)| *deadline)
    }

    /// Asserts that what is kept is bounded.
    pub(crate) fn check(&self) {
        self.ahead.check();
        assert!(self.timeouts.iter().is_sorted_by_key(|(deadline, _, _)| *deadline), "time-outs in order");
    }

    fn release_all(&mut self, dropped: &[Pushed]) -> u64 {
        dropped.iter().for_each(|part| self.release(part));
        dropped.len() as u64
    }

    fn release(&mut self, part: &Pushed) {
        let source = usize::from(part.source);
        self.credits[source].release(part.bulk.len());
        self.note(source, News::Pushed);
    }

    fn note(&mut self, source: usize, news: News) {
        if self.news[source] == News::None {
            self.heard.push(source as u16);
        }
        if self.news[source] != News::Asked {
            self.news[source] = news;
        }
    }
}
