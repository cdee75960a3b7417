//! All metrics at one time, in the words of OpenTelemetry, application by application.

use core::ops::Range;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use base::ids::Role;

use super::encoding::{
    CUMULATIVE, Data, Decimal, KeyValue, Metric, MetricsRequest, Point, Resource, ResourceMetrics, Scope, ScopeMetrics,
    Value,
};
use crate::dataflow::Dataflow;
use crate::hosts::Hosts;
use crate::metrics::{MetricRow, Number, Sample, rows};

/// The metrics at one time; a part of them may have been exported.
#[derive(Debug)]
pub(super) struct Snapshot {
    at_ns: u64,
    samples: Vec<Sample>,
    /// Since when each application counts, and run control.
    since: Since,
    /// What is still to be exported begins here.
    next: usize,
}

/// Since when counters count, in ns since 1970.
#[derive(Clone, Debug, Default)]
pub(super) struct Since {
    /// Those of the service itself.
    service_ns: u64,
    applications: BTreeMap<String, u64>,
}

/// Finds out since when counters count.
#[derive(Debug)]
pub(super) struct Starts {
    since: Since,
    run: Option<u32>,
    /// What was counted when it was looked last, and when that was.
    seen: BTreeMap<String, BTreeMap<&'static str, u64>>,
    seen_ns: u64,
}

impl Starts {
    /// Of a service that begins now.
    pub(super) fn at(now_ns: u64) -> Self {
        let since = Since { service_ns: now_ns, applications: BTreeMap::new() };
        Self { since, run: None, seen: BTreeMap::new(), seen_ns: now_ns }
    }

    /// Counters begin at 0 with each run; a `run` is its number and its age in seconds.
    pub(super) fn look(&mut self, now_ns: u64, run: Option<(u32, f64)>, dataflow: &Dataflow) -> Since {
        let begun = run.filter(|(number, _)| self.run != Some(*number)).map(|(number, age_s)| {
            self.run = Some(number);
            // What the run before has counted was told until then.
            now_ns.saturating_sub((age_s * 1e9) as u64).max(self.seen_ns)
        });
        for application in dataflow.stages.iter().flat_map(|stage| &stage.applications) {
            let before = self.seen.get(&application.name);
            let fell =
                |(name, count): (&&str, &u64)| before.and_then(|before| before.get(*name)).is_some_and(|b| b > count);
            let since = begun.or_else(|| application.counts.iter().any(fell).then_some(self.seen_ns));
            match since {
                Some(since) => _ = self.since.applications.insert(application.name.clone(), since),
                None => _ = self.since.applications.entry(application.name.clone()).or_insert(self.seen_ns),
            }
            self.seen.insert(application.name.clone(), application.counts.clone());
        }
        self.seen_ns = now_ns;
        self.since.clone()
    }
}

impl Snapshot {
    /// Of what is measured now. The samples of an application stand together.
    pub(super) fn new(at_ns: u64, mut samples: Vec<Sample>, since: Since) -> Self {
        // There is no such measurement.
        samples.retain(|sample| !matches!(sample.value, Number::Real(value) if !value.is_finite()));
        Self { at_ns, samples, since, next: 0 }
    }

    /// How many data points are still to be exported.
    pub(super) fn left(&self) -> u64 {
        (self.samples.len() - self.next) as u64
    }

    /// The next request, and how many data points it has.
    pub(super) fn request(&self, partition: &str, hosts: &Hosts) -> (Vec<u8>, u64) {
        let range = self.batch();
        let groups = self.samples[range.clone()].chunk_by(|a, b| a.application == b.application);
        let resource_metrics = groups.map(|samples| self.of_one(samples, partition, hosts)).collect();
        let request = serde_json::to_vec(&MetricsRequest { resource_metrics });
        (request.expect("numbers, strings and lists are JSON"), range.len() as u64)
    }

    /// The request was exported, or given up.
    pub(super) fn advance(&mut self) {
        self.next = self.batch().end;
    }

    /// Whole applications, as many as fit.
    fn batch(&self) -> Range<usize> {
        let mut end = self.next;
        for group in self.samples[self.next..].chunk_by(|a, b| a.application == b.application) {
            if end > self.next && end + group.len() - self.next > POINTS_MAX {
                break;
            }
            end += group.len();
        }
        self.next..end
    }

    fn of_one<'a>(&'a self, samples: &'a [Sample], partition: &'a str, hosts: &'a Hosts) -> ResourceMetrics<'a> {
        let application = samples[0].application.as_deref();
        let start_ns = match application {
            None => self.since.service_ns,
            Some(name) => self.since.applications.get(name).copied().unwrap_or(self.since.service_ns),
        };
        let mut by_name: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
        samples.iter().for_each(|sample| by_name.entry(&sample.metric).or_default().push(sample));
        let metrics = by_name.into_iter().map(|(metric, samples)| self.metric(metric, &samples, start_ns)).collect();
        ResourceMetrics {
            resource: resource(application, partition, hosts),
            scope_metrics: [ScopeMetrics { scope: Scope::own(), metrics }],
        }
    }

    fn metric<'a>(&self, metric: &str, samples: &[&'a Sample], start_ns: u64) -> Metric<'a> {
        let MetricRow { kind, meaning } = ROWS.get(metric).copied().unwrap_or(UNKNOWN);
        let is_counter = kind == "counter";
        let point = |sample: &&'a Sample| Point {
            attributes: sample.labels.iter().map(|(label, value)| KeyValue::text(label, value)).collect(),
            start_time_unix_nano: is_counter.then_some(Decimal(start_ns)),
            time_unix_nano: Decimal(self.at_ns),
            value: match sample.value {
                // More does not fit in what OTLP has for it.
                Number::Count(count) => Value::AsInt(Decimal(count.min(i64::MAX as u64))),
                Number::Real(value) => Value::AsDouble(value),
            },
        };
        let data_points = samples.iter().map(point).collect();
        let data = if is_counter {
            Data::Sum { data_points, aggregation_temporality: CUMULATIVE, is_monotonic: true }
        } else {
            Data::Gauge { data_points }
        };
        Metric { name: name(metric), unit: unit(metric), description: meaning, data }
    }
}

/// Who tells: an application, or run control.
pub(super) fn resource<'a>(application: Option<&'a str>, partition: &'a str, hosts: &'a Hosts) -> Resource<'a> {
    let (instance, host) = match application {
        Some(name) => (name, hosts.of_application(name)),
        None => (RUN_CONTROL, hosts.here()),
    };
    // The stem of its role: all instances of a service have one name.
    let service = instance.rsplit_once('-').map_or(instance, |(stem, _)| stem);
    let attributes = vec![
        KeyValue::text("service.name", service_name(service)),
        KeyValue::text("service.namespace", partition),
        KeyValue::text("service.instance.id", instance),
        KeyValue::text("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::text("host.name", host),
    ];
    Resource { attributes }
}

/// Such as `weir-sfi`.
fn service_name(stem: &str) -> &'static str {
    SERVICES.iter().find(|name| name.strip_prefix("weir-") == Some(stem)).map_or("weir", String::as_str)
}

/// `weir_sfi_built_complete_total` is `weir.sfi.built_complete`.
fn name(metric: &str) -> String {
    let bare = metric.strip_suffix("_total").unwrap_or(metric);
    let bare = bare.strip_prefix("weir_").unwrap_or(bare);
    let of_role = bare.split_once('_').filter(|(stem, _)| service_name(stem) != "weir");
    match of_role {
        Some((role, name)) => format!("weir.{role}.{name}"),
        None => format!("weir.{bare}"),
    }
}

/// By UCUM, as the words of the name say it; empty for what is only counted.
fn unit(metric: &str) -> &'static str {
    let has = |unit| metric.split('_').any(|word| word == unit);
    match () {
        () if has("bytes") => "By",
        () if has("seconds") => "s",
        () if has("ratio") => "1",
        () => "",
    }
}

static ROWS: LazyLock<BTreeMap<&'static str, MetricRow>> = LazyLock::new(rows);
/// Names of services.
static SERVICES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let stems = Role::IN_DRAIN_ORDER.into_iter().map(Role::stem).chain([RUN_CONTROL]);
    stems.map(|stem| format!("weir-{stem}")).collect()
});
const UNKNOWN: MetricRow = MetricRow { kind: "gauge", meaning: "" };
const RUN_CONTROL: &str = "rc";
/// Half a megabyte, far below the 20 MiB that a collector takes at least.
const POINTS_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use configuration::Partition;
    use serde_json::{Value as Json, json};

    use super::*;

    const S: u64 = 1_000_000_000;

    /// A partition whose only counter of `sfi-1` is as it is said.
    fn dataflow(assigned: u64) -> Dataflow {
        let mut dataflow = Dataflow::of(&partition());
        let sfi = dataflow.stages.iter_mut().find(|stage| stage.role == "sfi").unwrap();
        sfi.applications[0].counts = BTreeMap::from([("assigned", assigned)]);
        dataflow
    }

    fn partition() -> Partition {
        let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 2\n";
        Partition::parse("p", text, &["host=[{name=\"a\"},{name=\"b\"}]".to_owned()]).unwrap()
    }

    fn sample(metric: &str, application: Option<&str>, value: Number) -> Sample {
        let application = application.map(str::to_owned);
        Sample { metric: metric.to_owned(), application, labels: Vec::new(), value }
    }

    /// All requests of a snapshot.
    fn requests(mut snapshot: Snapshot) -> Vec<(Json, u64)> {
        let hosts = Hosts::of(&partition(), "here".to_owned());
        let mut requests = Vec::new();
        while snapshot.left() > 0 {
            let (body, points) = snapshot.request("p", &hosts);
            requests.push((serde_json::from_slice(&body).unwrap(), points));
            snapshot.advance();
        }
        requests
    }

    #[test]
    fn counters_count_from_the_start_of_their_run() {
        let mut starts = Starts::at(S);
        let mut since =
            |now_s: u64, run, assigned| starts.look(now_s * S, run, &dataflow(assigned)).applications["sfi-1"] / S;
        assert_eq!(since(10, Some((1, 4.0)), 50), 6, "the run is four seconds old");
        assert_eq!(since(20, Some((1, 14.5)), 90), 6, "and goes on");
        assert_eq!(since(30, None, 95), 6, "it is over");
        assert_eq!(since(40, Some((2, 3.0)), 5), 37);
        assert_eq!(since(50, Some((2, 13.0)), 4), 40, "whoever counted anew did so since");
        assert_eq!(since(60, Some((3, 30.0)), 4), 50, "nothing is counted twice");
    }

    #[test]
    fn names_and_units_follow_from_those_of_prometheus() {
        for (metric, expected, expected_unit) in [
            ("weir_sfi_built_complete_total", "weir.sfi.built_complete", ""),
            ("weir_level1_issued_total", "weir.level1.issued", ""),
            ("weir_sfo_bytes_total", "weir.sfo.bytes", "By"),
            ("weir_sfo_taken_over_bytes_total", "weir.sfo.taken_over_bytes", "By"),
            ("weir_run_seconds", "weir.run_seconds", "s"),
            ("weir_dead_time_ratio", "weir.dead_time_ratio", "1"),
            ("weir_in_hand", "weir.in_hand", ""),
            ("weir_otlp_dropped_total", "weir.otlp_dropped", ""),
        ] {
            assert_eq!((name(metric).as_str(), unit(metric)), (expected, expected_unit), "{metric}");
        }
        // Two metrics never become one.
        let all: std::collections::BTreeSet<String> = ROWS.keys().map(|metric| name(metric)).collect();
        assert_eq!(all.len(), ROWS.len());
    }

    #[test]
    fn each_application_is_a_resource_on_its_host() {
        let since = Since { service_ns: 3, applications: BTreeMap::from([("sfi-1".to_owned(), 5)]) };
        let samples = vec![
            sample("weir_troubles", None, Number::Count(1)),
            sample("weir_bus_dropped_total", None, Number::Count(2)),
            sample("weir_dead_time_ratio", None, Number::Real(f64::NAN)),
            sample("weir_sfi_assigned_total", Some("sfi-1"), Number::Count(u64::MAX)),
            sample("weir_waiting_ratio", Some("sfi-2"), Number::Real(0.5)),
        ];
        let requests = requests(Snapshot::new(9, samples, since));
        let [(request, 4)] = &requests[..] else { panic!("{requests:?}") };
        let resources = request["resourceMetrics"].as_array().unwrap();
        let attribute = |resource: &Json, key: &str| {
            let attributes = resource["resource"]["attributes"].as_array().unwrap().iter();
            attributes.clone().find(|it| it["key"] == key).unwrap()["value"]["stringValue"].as_str().unwrap().to_owned()
        };
        let keys = ["service.name", "service.namespace", "service.instance.id", "host.name"];
        let named: Vec<_> = resources.iter().map(|resource| keys.map(|key| attribute(resource, key))).collect();
        let expected =
            [["weir-rc", "p", "rc", "here"], ["weir-sfi", "p", "sfi-1", "a"], ["weir-sfi", "p", "sfi-2", "b"]];
        assert_eq!(named, expected);
        let metrics = |index: usize| &resources[index]["scopeMetrics"][0]["metrics"];
        let point = json!({ "startTimeUnixNano": "3", "timeUnixNano": "9", "asInt": "2" });
        assert_eq!(metrics(0)[0]["sum"]["dataPoints"], json!([point]));
        assert_eq!(metrics(0)[1]["gauge"]["dataPoints"], json!([{ "timeUnixNano": "9", "asInt": "1" }]));
        assert_eq!(metrics(0)[2], Json::Null, "what is no number is not told");
        let counted = &metrics(1)[0];
        assert_eq!(
            (&counted["name"], &counted["description"]),
            (&json!("weir.sfi.assigned"), &json!("Events assigned."))
        );
        let sum = &counted["sum"];
        assert_eq!((&sum["aggregationTemporality"], &sum["isMonotonic"]), (&json!(2), &json!(true)));
        assert_eq!(sum["dataPoints"][0]["asInt"], json!(i64::MAX.to_string()));
        assert_eq!(metrics(2)[0]["gauge"]["dataPoints"][0]["asDouble"], json!(0.5));
    }

    #[test]
    fn many_applications_go_in_several_requests_and_none_in_two() {
        let of = |index: usize, count| {
            let name = format!("sfi-{index}");
            (0..count).map(move |_| sample("weir_in_hand", Some(&name), Number::Count(1)))
        };
        let samples = (1..=5).flat_map(|index| of(index, POINTS_MAX / 2)).chain(of(6, POINTS_MAX * 2)).collect();
        let requests = requests(Snapshot::new(9, samples, Since::default()));
        let points: Vec<u64> = requests.iter().map(|(_, points)| *points).collect();
        let most = POINTS_MAX as u64;
        assert_eq!(points, [most, most, most / 2, 2 * most], "one that is too large goes alone");
        let of_each = |(request, _): &(Json, u64)| request["resourceMetrics"].as_array().unwrap().len();
        assert_eq!(requests.iter().map(of_each).collect::<Vec<_>>(), [2, 2, 1, 1]);
    }
}
