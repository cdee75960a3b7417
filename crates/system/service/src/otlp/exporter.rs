//! Exports what a desk has to tell: messages when they are said, metrics at intervals.
//!
//! Nothing is queued. Messages wait where the desk keeps them, and of the metrics one snapshot waits, until the next one takes its place.

use std::time::UNIX_EPOCH;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::Shared;
use super::answer::Answer;
use super::collector::Collector;
use super::encoding::{AnyValue, Decimal, KeyValue, LogRecord, LogsRequest, ResourceLogs, Scope, ScopeLogs};
use super::lane::{Lane, Signal};
use super::snapshot::{Snapshot, Starts, resource};
use crate::bus::Bus;
use crate::desk::Desk;
use crate::hosts::{Hosts, this_machine};
use crate::measuring::measured;
use crate::messages::{Message, Severity, Sought};
use crate::metrics::Told;

/// Tells a collector what a desk has to tell.
pub(super) struct Exporter<'a> {
    shared: &'a Shared,
    desk: &'a Desk,
    bus: Option<Bus>,
    collector: Collector<'a>,
    hosts: Hosts,
    starts: Starts,
    /// What is still to be exported of the metrics.
    snapshot: Option<Snapshot>,
    /// Number of the last message that was exported.
    told: u64,
    logs: Lane,
    metrics: Lane,
    /// Whether the collector is there, as it was said last.
    presence: Option<Presence>,
}

/// Whether a collector is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Here,
    Away,
    Untrusted,
}

impl<'a> Exporter<'a> {
    /// Exports what comes from now on, and all messages that are kept.
    pub(super) fn of(shared: &'a Shared, desk: &'a Desk, bus: Option<Bus>) -> Self {
        Self {
            shared,
            desk,
            bus,
            collector: Collector::at(&shared.endpoint),
            hosts: Hosts::of(&desk.configured().partition, this_machine()),
            starts: Starts::at(now_ns()),
            snapshot: None,
            told: desk.newest_restored(),
            logs: Lane::new(),
            metrics: Lane::new(),
            presence: None,
        }
    }

    /// Until the desk is left: what it said last goes out once more, if the collector takes it.
    pub(super) async fn run(mut self) {
        let desk = self.desk;
        let mut said = desk.listen();
        let mut looks = interval(self.shared.interval);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let due = self.due();
            let sends_at = due.map_or_else(Instant::now, |(_, at)| at);
            tokio::select! {
                biased;
                () = desk.is_left() => break,
                _ = looks.tick() => self.look(),
                () = sleep_until(sends_at), if due.is_some() => self.send_due(due).await,
                heard = said.recv() => if matches!(heard, Err(RecvError::Closed)) { break },
            }
        }
        self.look();
        (self.logs, self.metrics) = (Lane::new(), Lane::new());
        // What is to be sent again is not waited for.
        while let Some(due) = self.due().filter(|(_, at)| *at <= Instant::now()) {
            self.send_due(Some(due)).await;
        }
        self.shared.traffic.set_connected(false);
    }

    /// Looks at the metrics. What was not exported of the last look is given up.
    fn look(&mut self) {
        self.give_up();
        self.hosts = Hosts::of(&self.desk.configured().partition, this_machine());
        let (status, dataflow, at_ns) = (self.desk.status(), self.desk.dataflow(), now_ns());
        let run = status.run.as_ref().and_then(|run| Some((run.number?, run.elapsed_s)));
        let since = self.starts.look(at_ns, run, &dataflow);
        let told = Told { bus: self.bus.as_ref().map(Bus::traffic), collector: Some(self.shared.traffic.now()) };
        self.snapshot = Some(Snapshot::new(at_ns, measured(self.desk, &told), since));
    }

    fn give_up(&mut self) {
        let left = self.snapshot.take().map_or(0, |snapshot| snapshot.left());
        self.shared.traffic.lose(Signal::Metrics, left);
    }

    /// What there is to send, and when it may go.
    fn due(&self) -> Option<(Signal, Instant)> {
        let has_logs = self.desk.newest_message() > self.told;
        let has_metrics = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.left() > 0);
        let logs = has_logs.then(|| (Signal::Logs, self.logs.not_before()));
        let metrics = has_metrics.then(|| (Signal::Metrics, self.metrics.not_before()));
        logs.into_iter().chain(metrics).min_by_key(|(_, at)| *at)
    }

    async fn send_due(&mut self, due: Option<(Signal, Instant)>) {
        match due {
            Some((Signal::Logs, _)) => self.send_logs().await,
            Some((Signal::Metrics, _)) => self.send_metrics().await,
            None => {}
        }
    }

    async fn send_metrics(&mut self) {
        let Some(snapshot) = &self.snapshot else { return };
        let status = self.desk.status();
        let (body, points) = snapshot.request(&status.partition, &self.hosts);
        let answer = self.collector.post(Signal::Metrics.name(), body).await;
        if self.is_over(Signal::Metrics, points, answer) {
            self.snapshot.iter_mut().for_each(Snapshot::advance);
        }
    }

    async fn send_logs(&mut self) {
        let mut messages = self.desk.messages(&Sought::behind(self.told));
        let Some(first) = messages.first() else { return };
        // The desk keeps the newest ones alone.
        let given_up = first.number - self.told - 1;
        self.shared.traffic.lose(Signal::Logs, given_up);
        self.told += given_up;
        messages.truncate(MESSAGES_MAX);
        let newest = messages.last().map_or(self.told, |message| message.number);
        let body = self.logs_request(&messages);
        let answer = self.collector.post(Signal::Logs.name(), body).await;
        if self.is_over(Signal::Logs, messages.len() as u64, answer) {
            self.told = newest;
        }
    }

    fn logs_request(&self, messages: &[Message]) -> Vec<u8> {
        let partition = &self.desk.status().partition;
        let observed_time_unix_nano = Decimal(now_ns());
        let log_records = messages.iter().map(|message| record(message, observed_time_unix_nano)).collect();
        let scope_logs = [ScopeLogs { scope: Scope::own(), log_records }];
        let resource_logs = [ResourceLogs { resource: resource(None, partition, &self.hosts), scope_logs }];
        serde_json::to_vec(&LogsRequest { resource_logs }).expect("numbers, strings and lists are JSON")
    }

    /// Whether a request is not to be sent again, by its answer. So many messages or data points were in it.
    fn is_over(&mut self, signal: Signal, count: u64, answer: Answer) -> bool {
        let traffic = &self.shared.traffic;
        self.tell_presence(&answer);
        match answer {
            Answer::Taken { rejected, words } => {
                let rejected = rejected.min(count);
                traffic.export(signal, count - rejected);
                traffic.lose(signal, rejected);
                if rejected == 0 && words.is_none() {
                    self.lane(signal).is_well();
                } else {
                    self.lane(signal).is_done();
                    let words = words.unwrap_or_else(|| "it does not say why".to_owned());
                    let rejects =
                        if rejected > 0 { format!("rejects {rejected} of {count}") } else { "takes them".to_owned() };
                    self.object(signal, &format!("{rejects}: {words}"));
                }
                true
            }
            Answer::Refused(why) => {
                traffic.lose(signal, count);
                self.lane(signal).is_done();
                self.object(signal, &format!("refuses them: {why}"));
                true
            }
            Answer::Later { after, why } => {
                self.lane(signal).wait(after);
                self.object(signal, &format!("wants them later: {why}"));
                false
            }
            Answer::Absent(_) | Answer::Untrusted(_) => {
                self.lane(signal).wait(None);
                false
            }
        }
    }

    /// Says that the collector is away, or there again: once.
    fn tell_presence(&mut self, answer: &Answer) {
        let (presence, why) = match answer {
            Answer::Absent(why) => (Presence::Away, why.as_str()),
            Answer::Untrusted(why) => (Presence::Untrusted, why.as_str()),
            Answer::Taken { .. } | Answer::Refused(_) | Answer::Later { .. } => (Presence::Here, ""),
        };
        self.shared.traffic.set_connected(presence == Presence::Here);
        if self.presence.replace(presence) == Some(presence) {
            return;
        }
        let url = &self.shared.url;
        let what = match presence {
            Presence::Here => return self.desk.say(format!("the collector {url} answers")),
            Presence::Away => "is not there",
            Presence::Untrusted => "does not prove who it is",
        };
        let text = format!("the collector {url} {what}: {why}; runs go on without it, and it is tried again");
        self.desk.tell_all(Severity::Warning, text);
    }

    /// Says the first trouble with a signal since all was well.
    fn object(&mut self, signal: Signal, what: &str) {
        if self.lane(signal).is_news() {
            let text = format!("{} for the collector {}: it {what}", signal.words(), self.shared.url);
            self.desk.tell_all(Severity::Warning, text);
        }
    }

    fn lane(&mut self, signal: Signal) -> &mut Lane {
        match signal {
            Signal::Logs => &mut self.logs,
            Signal::Metrics => &mut self.metrics,
        }
    }
}

fn record(message: &Message, observed_time_unix_nano: Decimal) -> LogRecord<'_> {
    let (severity_number, severity_text) = match message.severity {
        Severity::Notice => (10, "notice"),
        Severity::Warning => (13, "warning"),
        Severity::Error => (17, "error"),
    };
    let run = message.run.map(|run| KeyValue::number("weir.run.number", run.into()));
    let application = message.application.as_ref().map(|name| KeyValue::text("weir.application", name));
    let cause = (!message.causes.is_empty()).then(|| KeyValue::texts("weir.cause", &message.causes));
    let own = [
        KeyValue::number("weir.message.number", message.number),
        KeyValue::number("weir.message.repeats", message.repeats),
    ];
    LogRecord {
        time_unix_nano: Decimal(message.at_ms.saturating_mul(1_000_000)),
        observed_time_unix_nano,
        severity_number,
        severity_text,
        body: AnyValue::StringValue(&message.text),
        attributes: run.into_iter().chain(application).chain(cause).chain(own).collect(),
    }
}

fn now_ns() -> u64 {
    let since = catalogue::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Of the messages that wait, so many go together.
const MESSAGES_MAX: usize = 200;
