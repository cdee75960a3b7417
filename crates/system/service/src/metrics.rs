//! What a Prometheus server scrapes: states, rates, counters and buffers in its text format. The document `docs/metrics.md` names each
//! metric with its meaning, and that is the help which is sent.

use core::fmt::Write;
use std::collections::BTreeMap;

use base::ids::Role;
use control::states::State;
use dataflow::report::{Counter, Nature};

use crate::bus::TrafficNow;
use crate::dataflow::Dataflow;
use crate::status::{Status, name};

/// All metrics of a partition, as they are now.
pub(crate) fn text(status: &Status, dataflow: &Dataflow, bus: Option<TrafficNow>) -> String {
    let mut families = Families::default();
    let partition = [("partition", status.partition.as_str())];
    for state in STATES.map(name) {
        let labels = [partition[0], ("state", &state)];
        families.add("weir_state", &labels, f64::from(u8::from(state == status.state)));
    }
    let run = status.run.as_ref();
    families.add("weir_run_number", &partition, run.and_then(|run| run.number).map_or(0.0, f64::from));
    families.add("weir_run_seconds", &partition, run.map_or(0.0, |run| run.elapsed_s));
    families.add("weir_troubles", &partition, run.map_or(0.0, |run| run.troubles.len() as f64));
    families.add("weir_histogram_alarms", &partition, status.alarms as f64);
    if let Some(dead_time) = run.and_then(|run| run.rates.dead_time) {
        families.add("weir_dead_time_ratio", &partition, dead_time);
    }
    if let Some(TrafficNow { connected, published, dropped }) = bus {
        families.add("weir_bus_connected", &partition, f64::from(u8::from(connected)));
        families.add("weir_bus_published_total", &partition, published as f64);
        families.add("weir_bus_dropped_total", &partition, dropped as f64);
    }
    for stage in &dataflow.stages {
        for application in &stage.applications {
            let of = [partition[0], ("application", application.name.as_str())];
            if let Some(in_hand) = application.in_hand {
                families.add("weir_in_hand", &of, in_hand as f64);
            }
            for (counter, count) in &application.counts {
                families.add(&metric(stage.role, counter), &of, *count as f64);
            }
            for wait in &application.waits {
                let labels = [of[0], of[1], ("for", &wait.by), ("cause", wait.cause)];
                families.add("weir_waiting_ratio", &labels, wait.share);
            }
        }
    }
    families.text()
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

/// Samples by metric: those of one stand together.
#[derive(Default)]
struct Families(BTreeMap<String, Vec<String>>);

impl Families {
    fn add(&mut self, metric: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        self.0.entry(metric.to_owned()).or_default().push(format!("{metric}{{{}}} {value}", labels.join(",")));
    }

    fn text(&self) -> String {
        let rows = rows();
        let mut text = String::new();
        for (metric, samples) in &self.0 {
            if let Some(row) = rows.get(metric.as_str()) {
                writeln!(text, "# HELP {metric} {}", row.meaning).expect("a string takes text");
                writeln!(text, "# TYPE {metric} {}", row.kind).expect("a string takes text");
            }
            samples.iter().for_each(|sample| text += &format!("{sample}\n"));
        }
        text
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// What the document says of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MetricRow {
    kind: &'static str,
    meaning: &'static str,
}

/// The rows of the document by the name of the metric.
fn rows() -> BTreeMap<&'static str, MetricRow> {
    let cells = DOCUMENT.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let metric = cells.next()?.strip_suffix('`')?;
        let (kind, meaning) = (cells.next()?, cells.next()?.trim_end_matches(" |"));
        Some((metric, MetricRow { kind, meaning }))
    });
    cells.collect()
}

const STATES: [State; 8] = [
    State::Absent,
    State::Booted,
    State::Configured,
    State::Connected,
    State::Running,
    State::Paused,
    State::Draining,
    State::Fault,
];
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
        let rates = Rates { dead_time: Some(0.25), ..Rates::default() };
        let run = Some(RunStatus { number: Some(7), elapsed_s: 1.5, rates, ..RunStatus::default() });
        let (state, verbs) = (name(State::Running), Vec::new());
        let status = Status {
            partition: "p".into(),
            state,
            verbs,
            operator: None,
            run,
            follow: 0,
            last: None,
            alarms: 0,
            sentence: String::new(),
        };
        super::text(&status, &dataflow, Some(TrafficNow { connected: true, published: 5, dropped: 1 }))
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
            "weir_dead_time_ratio{partition=\"p\"} 0.25",
            "weir_waiting_ratio{partition=\"p\",application=\"dfm-1\",for=\"a \\\"b\\\"\",cause=\"no room\"} 0.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
