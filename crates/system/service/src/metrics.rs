//! What is measured: states, rates, counters and buffers. A Prometheus server scrapes them as text, and a collector gets them. The document
//! `docs/metrics.md` names each metric with its meaning, and that is the help which is sent.

mod sources;

use core::fmt::{self, Write};
use std::collections::BTreeMap;

use agents::Present;
use axum::http::{HeaderName, header};
use base::ids::Role;
use control::states::State;
use dataflow::report::{Counter, Nature};

use crate::bus::TrafficNow;
use crate::dataflow::{ApplicationNow, Dataflow};
use crate::status::{Status, name};

/// What is told of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) metric: String,
    /// Of which application; none of the partition as a whole.
    pub(crate) application: Option<String>,
    /// What else tells it from others of this metric.
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) value: Number,
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Count(u64),
    Real(f64),
}

/// What went to those who are told beside the page, where there are some.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) bus: Option<TrafficNow>,
    pub(crate) collector: Option<ExportedNow>,
}

/// What a collector was given until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExportedNow {
    /// Whether the collector has answered last.
    pub(crate) connected: bool,
    /// By the name of the signal.
    pub(crate) signals: [(&'static str, CountsNow); 2],
}

/// Of one signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountsNow {
    /// What the collector took.
    pub(crate) exported: u64,
    /// What it did not get, or refused.
    pub(crate) dropped: u64,
}

/// What is measured of a partition.
pub(crate) struct Measured<'a> {
    pub(crate) status: &'a Status,
    pub(crate) dataflow: &'a Dataflow,
    pub(crate) agents: &'a [Present],
    /// Messages that were not kept.
    pub(crate) messages_dropped: u64,
    pub(crate) told: &'a Told,
}

/// All metrics of a partition, as they are now.
pub(crate) fn samples(measured: &Measured<'_>) -> Vec<Sample> {
    let Measured { status, dataflow, agents, messages_dropped, told } = measured;
    let mut samples = Vec::new();
    of_partition(status, &mut samples);
    samples.push(Sample::count("weir_messages_dropped_total", *messages_dropped));
    of_told(told, &mut samples);
    samples.extend(agents.iter().map(|agent| {
        let left_out = Sample::count("weir_agent_beats_left_out_total", agent.left_out.into());
        left_out.with("host", agent.host.clone())
    }));
    for stage in &dataflow.stages {
        for application in &stage.applications {
            of_application(stage.role, application, &mut samples);
            let its = dataflow.sources.iter().filter(|source| source.source.application == application.name);
            its.for_each(|source| sources::samples(source, &mut samples));
        }
    }
    samples
}

/// In the format of Prometheus. Whoever scrapes an agent knows its partition.
pub(crate) fn text(partition: Option<&str>, samples: &[Sample]) -> String {
    let mut families: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for sample in samples {
        families.entry(&sample.metric).or_default().push(sample.line(partition));
    }
    let rows = rows();
    let mut text = String::new();
    for (metric, lines) in families {
        if let Some(row) = rows.get(metric) {
            writeln!(text, "# HELP {metric} {}", row.meaning).expect("a string takes text");
            writeln!(text, "# TYPE {metric} {}", row.kind).expect("a string takes text");
        }
        lines.iter().for_each(|line| text += line);
    }
    text
}

fn of_partition(status: &Status, samples: &mut Vec<Sample>) {
    for state in State::ALL.map(name) {
        let value = u64::from(state == status.state);
        samples.push(Sample::count("weir_state", value).with("state", state));
    }
    let run = status.run.as_ref();
    samples.push(Sample::count("weir_run_number", run.and_then(|run| run.number).map_or(0, u64::from)));
    samples.push(Sample::real("weir_run_seconds", run.map_or(0.0, |run| run.elapsed_s)));
    samples.push(Sample::count("weir_troubles", run.map_or(0, |run| run.troubles.len() as u64)));
    samples.push(Sample::count("weir_histogram_alarms", status.alarms as u64));
    let dead_time = run.and_then(|run| run.rates.dead_time);
    samples.extend(dead_time.map(|share| Sample::real("weir_dead_time_ratio", share)));
}

fn of_told(told: &Told, samples: &mut Vec<Sample>) {
    if let Some(TrafficNow { connected, published, dropped }) = told.bus {
        samples.push(Sample::count("weir_bus_connected", u64::from(connected)));
        samples.push(Sample::count("weir_bus_published_total", published));
        samples.push(Sample::count("weir_bus_dropped_total", dropped));
    }
    if let Some(ExportedNow { connected, signals }) = told.collector {
        samples.push(Sample::count("weir_otlp_connected", u64::from(connected)));
        for (signal, CountsNow { exported, dropped }) in signals {
            let of = |metric, count| Sample::count(metric, count).with("signal", signal.to_owned());
            samples.push(of("weir_otlp_exported_total", exported));
            samples.push(of("weir_otlp_dropped_total", dropped));
        }
    }
}

fn of_application(role: &str, application: &ApplicationNow, samples: &mut Vec<Sample>) {
    let mut push = |sample: Sample| samples.push(Sample { application: Some(application.name.clone()), ..sample });
    push(Sample::real("weir_silent_seconds", application.silent_s.unwrap_or_default()));
    application.in_hand.into_iter().for_each(|in_hand| push(Sample::count("weir_in_hand", in_hand)));
    for (counter, count) in &application.counts {
        push(Sample::count(&metric(role, counter), *count));
    }
    for wait in &application.waits {
        let share = Sample::real("weir_waiting_ratio", wait.share);
        push(share.with("for", wait.by.clone()).with("cause", wait.cause.to_owned()));
    }
}

impl Sample {
    pub(crate) fn count(metric: &str, count: u64) -> Self {
        Self { metric: metric.to_owned(), application: None, labels: Vec::new(), value: Number::Count(count) }
    }

    pub(crate) fn real(metric: &str, value: f64) -> Self {
        Self { value: Number::Real(value), ..Self::count(metric, 0) }
    }

    pub(crate) fn of(self, application: &str) -> Self {
        Self { application: Some(application.to_owned()), ..self }
    }

    pub(crate) fn with(mut self, label: &'static str, value: String) -> Self {
        self.labels.push((label, value));
        self
    }

    fn line(&self, partition: Option<&str>) -> String {
        let application = self.application.as_deref().map(|name| ("application", name));
        let others = self.labels.iter().map(|(label, value)| (*label, value.as_str()));
        let partition = partition.map(|name| ("partition", name));
        let labels = partition.into_iter().chain(application).chain(others);
        let labels: Vec<String> = labels.map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        format!("{}{labels} {}\n", self.metric, self.value)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Real(value) => value.fmt(f),
        }
    }
}

/// The name of the metric of a counter.
fn metric(role: &str, counter: &str) -> String {
    let total = if nature(role, counter).is_some_and(is_gauge) { "" } else { "_total" };
    format!("weir_{role}_{counter}{total}")
}

fn nature(role: &str, counter: &str) -> Option<Nature> {
    let role = Role::IN_DRAIN_ORDER.into_iter().find(|known| known.stem() == role)?;
    Counter::of_role(role).iter().find(|known| known.name == counter).map(|known| known.nature)
}

fn is_gauge(nature: Nature) -> bool {
    matches!(nature, Nature::Held | Nature::Most)
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// What the document says of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricRow {
    /// `counter` or `gauge`.
    pub(crate) kind: &'static str,
    pub(crate) meaning: &'static str,
}

/// The rows of the document by the name of the metric.
pub(crate) fn rows() -> BTreeMap<&'static str, MetricRow> {
    let cells = DOCUMENT.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let metric = cells.next()?.strip_suffix('`')?;
        metric.strip_prefix("weir_")?;
        let (kind, meaning) = (cells.next()?, cells.next()?.trim_end_matches(" |"));
        Some((metric, MetricRow { kind, meaning }))
    });
    cells.collect()
}

/// What the text is.
pub(crate) const CONTENT_TYPE: [(HeaderName, &str); 1] =
    [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
/// The names of the signals of a collector.
pub(crate) const LOGS: &str = "logs";
pub(crate) const METRICS: &str = "metrics";
const DOCUMENT: &str = include_str!("../../../../docs/metrics.md");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use configuration::Partition;

    use super::*;
    use crate::dataflow::WaitNow;
    use crate::rates::Rates;
    use crate::status::RunStatus;

    /// Of a partition with all roles, in which everything is there that may be.
    fn everything() -> String {
        let text = "[partition]\nname = \"p\"\n[level1]\n[l2sv]\n[l2pu]\n[ros]\ncount = 1\n[roc]\ncount = 1\nros = 1\n[sfi]\ncount = 1\n[ef]\n[sfo]\n";
        let partition = Partition::parse("p", text, &[]).unwrap();
        let mut dataflow = Dataflow::of(&partition);
        for stage in &mut dataflow.stages {
            let role = Role::IN_DRAIN_ORDER.into_iter().find(|role| role.stem() == stage.role).unwrap();
            let application = &mut stage.applications[0];
            application.counts = Counter::of_role(role).iter().map(|counter| (counter.name, 3)).collect();
            application.in_hand = Some(2);
            let (by, words) = ("a \"b\"".to_owned(), String::new());
            application.waits.push(WaitNow { role_of: "sfi", by, cause: "no room", words, share: 0.5 });
        }
        dataflow.sources.push(crate::sources::full());
        let rates = Rates { dead_time: Some(0.25), ..Rates::default() };
        let run = Some(RunStatus { number: Some(7), elapsed_s: 1.5, rates, ..RunStatus::default() });
        let (state, verbs) = (name(State::Running), Vec::new());
        let status = Status {
            partition: "p".into(),
            state,
            verbs,
            operator: None,
            waiting: None,
            run,
            follow: 0,
            last: None,
            alarms: 0,
            configured: 0,
            sentence: String::new(),
        };
        let bus = Some(TrafficNow { connected: true, published: 5, dropped: 1 });
        let counts = CountsNow { exported: 9, dropped: 2 };
        let collector = Some(ExportedNow { connected: true, signals: [(LOGS, counts), (METRICS, counts)] });
        let agents = [Present { host: "b".into(), metrics: None, left_out: 4 }];
        let told = Told { bus, collector };
        let (status, dataflow, agents) = (&status, &dataflow, &agents);
        let all = samples(&Measured { status, dataflow, agents, messages_dropped: 6, told: &told });
        let of_host = crate::host_metrics::samples(&crate::host_metrics::tests::host());
        super::text(Some("p"), &[all, of_host].concat())
    }

    #[test]
    fn each_metric_has_a_row_and_each_row_a_metric() {
        let text = everything();
        let sent: BTreeSet<&str> =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('{').next().unwrap()).collect();
        let rows = rows();
        let documented: BTreeSet<&str> = rows.keys().copied().collect();
        assert_eq!(sent.difference(&documented).collect::<Vec<_>>(), Vec::<&&str>::new(), "without a row");
        assert_eq!(documented.difference(&sent).collect::<Vec<_>>(), Vec::<&&str>::new(), "nobody sends it");
        for (metric, row) in rows {
            let expected = if metric.ends_with("_total") { "counter" } else { "gauge" };
            assert_eq!(row.kind, expected, "{metric}");
            assert!(row.meaning.ends_with('.'), "{metric}: {}", row.meaning);
        }
    }

    #[test]
    fn samples_are_as_prometheus_reads_them() {
        let text = everything();
        for line in [
            "# TYPE weir_sfi_built_complete_total counter",
            "weir_sfi_built_complete_total{partition=\"p\",application=\"sfi-1\"} 3",
            "weir_state{partition=\"p\",state=\"running\"} 1",
            "weir_state{partition=\"p\",state=\"absent\"} 0",
            "weir_bus_connected{partition=\"p\"} 1",
            "weir_bus_dropped_total{partition=\"p\"} 1",
            "weir_otlp_dropped_total{partition=\"p\",signal=\"logs\"} 2",
            "weir_agent_beats_left_out_total{partition=\"p\",host=\"b\"} 4",
            "weir_dead_time_ratio{partition=\"p\"} 0.25",
            "weir_waiting_ratio{partition=\"p\",application=\"dfm-1\",for=\"a \\\"b\\\"\",cause=\"no room\"} 0.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
