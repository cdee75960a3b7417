//! Metrics and messages as an OpenTelemetry collector gets them, which comes, goes, refuses and is stuck. No run notices.

mod server;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use server::Collector;

use crate::observed::{ends_well, is_well, leave};
use crate::running::{Job, within_deadline};
use crate::served::Served;

#[test]
fn a_collector_gets_the_metrics_that_prometheus_would_and_every_message() {
    let Some(collector) = Collector::start("a_collector_gets_the_metrics_that_prometheus_would_and_every_message")
    else {
        return;
    };
    let mut served = Served::start(collector.told_by(quickstart()));
    within_deadline("the state", || is_in(&collector, "absent"));
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    let built = || collector.point("sfi-1", "weir.sfi.built_complete", &json!({}));
    within_deadline("events are built", || built().is_some_and(|point| point["value"].as_u64() > Some(0)));
    let first = built().unwrap();
    ends_well(&mut served, 1);
    within_deadline("all counters agree", || differences(&served, &collector).is_empty());
    served.ctl("anna", &["start", "--events", "300"]);
    served.until("the run is over", |status| status["last"]["number"] == 2);
    is_well(&served, 2);
    within_deadline("they begin anew", || built().is_some_and(|point| point["since_ns"] != first["since_ns"]));
    within_deadline("all counters agree", || differences(&served, &collector).is_empty());
    assert_eq!(differences(&served, &collector), Vec::<String>::new());
    let issued = collector.point("level1-1", "weir.level1.issued", &json!({})).unwrap();
    assert_eq!((&issued["value"], &issued["kind"], &issued["described"]), (&json!(300), &json!("sum"), &json!(true)));
    assert!(issued["since_ns"].as_u64() > first["at_ns"].as_u64(), "{issued}");
    is_named_rightly(&issued["resource"]);

    within_deadline("every message", || collector.messages() == said(&served));
    let alike = |log: &Value, message: &Value| {
        let (severity, number) = match message["severity"].as_str().unwrap() {
            "notice" => ("notice", 10),
            "warning" => ("warning", 13),
            other => panic!("{other}: {message}"),
        };
        assert_eq!((&log["severity"], &log["severity_text"]), (&json!(number), &json!(severity)), "{log}");
        assert_eq!(
            (&log["at_ms"], &log["attributes"]["weir.run.number"]),
            (&message["at_ms"], &message["run"]),
            "{log}"
        );
    };
    let (seen, messages) = (collector.seen(), served.get("messages"));
    seen["logs"]
        .as_array()
        .unwrap()
        .iter()
        .zip(messages.as_array().unwrap())
        .for_each(|(log, message)| alike(log, message));
    assert_eq!(metric(&served, "weir_otlp_dropped_total"), 0);
    assert!(metric(&served, "weir_otlp_exported_total{partition=\"quickstart\",signal=\"metrics\"}") > 100);
    // What is said at the end is heard.
    leave(served);
    assert!(is_in(&collector, "absent"), "{}", collector.seen());
}

fn is_named_rightly(resource: &Value) {
    let named = ["service.name", "service.namespace", "service.instance.id"].map(|key| resource[key].as_str().unwrap());
    assert_eq!(named, ["weir-level1", "quickstart", "level1-1"]);
    assert!(!resource["host.name"].as_str().unwrap().is_empty(), "{resource}");
}

#[test]
fn a_collector_that_is_away_misses_no_message_and_its_run_nothing() {
    let Some(mut collector) = Collector::absent("a_collector_that_is_away_misses_no_message_and_its_run_nothing")
    else {
        return;
    };
    let mut served = Served::start(collector.told_by(quickstart()));
    until_said(&served, "is not there: ", 1);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    assert_eq!(metric(&served, "weir_otlp_connected"), 0);
    within_deadline("what is old is given up", || metric(&served, METRICS_DROPPED) > 0);
    collector.come();
    until_said(&served, " answers", 1);
    within_deadline("what was said before is heard", || collector.messages() == said(&served));
    collector.go();
    until_said(&served, "is not there: ", 2);
    served.running.until_more_is_recorded();
    ends_well(&mut served, 1);
    // It has forgotten what it heard before.
    collector.come();
    within_deadline("the end is heard", || collector.messages().iter().any(|(_, text)| text == "the run has ended ok"));
    until_said(&served, " answers", 2);
    assert_eq!(metric(&served, LOGS_DROPPED), 0);
    assert_eq!(told(&served, "is not there: "), 2, "{}", served.get("messages"));
    // Nor is one waited for at the end that takes nothing.
    collector.signal(Signal::SIGSTOP);
    leave(served);
}

#[test]
fn what_a_collector_refuses_is_counted_and_what_it_wants_later_is_sent_again() {
    let Some(collector) = Collector::start("what_a_collector_refuses_is_counted_and_what_it_wants_later_is_sent_again")
    else {
        return;
    };
    let later = json!([[429, { "Retry-After": "1" }, {}], [503, {}, { "message": "too busy" }], [504, {}, {}]]);
    collector.answers("logs", &later);
    let partly = json!({ "partialSuccess": { "rejectedDataPoints": "3", "errorMessage": "too old" } });
    let refused = json!([[400, {}, { "code": 3, "message": "no such field" }], [500, {}, {}], [200, {}, partly]]);
    collector.answers("metrics", &refused);
    let served = Served::start(collector.told_by(quickstart()));
    until_said(&served, "it wants them later: HTTP 429", 1);
    until_said(&served, "it refuses them: HTTP 400, no such field", 1);
    within_deadline("every message", || collector.messages() == said(&served));
    let answered = |signal: &str| {
        let seen = collector.seen();
        let statuses =
            seen["statuses"].as_array().unwrap().iter().filter(|status| status[0] == format!("/v1/{signal}"));
        statuses.take(4).map(|status| status[1].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(answered("logs"), [429, 503, 504, 200]);
    within_deadline("metrics go on", || answered("metrics").len() == 4);
    assert_eq!(answered("metrics"), [400, 500, 200, 200]);
    // Both are told once: the messages that tell it go the same way.
    let texts = served.get("messages");
    assert_eq!((told(&served, "it wants them later"), told(&served, "it refuses them")), (1, 1), "{texts}");
    assert_eq!(metric(&served, LOGS_DROPPED), 0);
    let of_a_look = 8 + 2;
    within_deadline("what was refused is counted", || metric(&served, METRICS_DROPPED) >= 2 * of_a_look + 3);
    collector.answers("metrics", &json!([[200, {}, { "partialSuccess": { "errorMessage": "use protobuf" } }]]));
    until_said(&served, "it takes them: use protobuf", 1);
    leave(served);
}

#[test]
fn a_collector_gets_the_headers_that_it_wants_and_packed_requests() {
    let test = "a_collector_gets_the_headers_that_it_wants_and_packed_requests";
    let Some(collector) = Collector::start(test) else { return };
    let job = collector.told_by(quickstart()).set("control.otlp_compression", "gzip");
    let path = job.directory().join("collector.headers");
    fs::write(&path, "Authorization: Bearer a-token\nX-Scope-OrgID: daq\n").unwrap();
    let job = job.set("control.otlp_headers", &path.display().to_string());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let served = Served::start(job);
    within_deadline("the state", || is_in(&collector, "absent"));
    let headers = &collector.seen()["headers"];
    let found = ["authorization", "x-scope-orgid", "content-encoding"].map(|name| &headers[name]);
    assert_eq!(found, [&json!("Bearer a-token"), &json!("daq"), &json!("gzip")], "{headers}");
    assert!(!served.get("configuration").to_string().contains("a-token"));
    leave(served);
}

#[test]
fn what_is_said_to_a_collector_may_be_encrypted() {
    let Some(mut collector) = Collector::absent("what_is_said_to_a_collector_may_be_encrypted") else { return };
    let certificate = collector.come_encrypted();
    let [other, _] = collector.certificate("other");
    let job = |authority: &std::path::Path| {
        let address = format!("https://{}", collector.address);
        let job = collector.told_by(quickstart()).set("control.otlp", &address);
        job.set("control.otlp_certificate", &authority.display().to_string())
    };
    let stranger = Served::start(job(&other));
    until_said(&stranger, "does not prove who it is: invalid peer certificate: UnknownIssuer", 1);
    leave(stranger);
    let served = Served::start(job(&certificate));
    until_said(&served, " answers", 1);
    within_deadline("messages are taken", || {
        metric(&served, "weir_otlp_exported_total{partition=\"quickstart\",signal=\"logs\"}") > 0
    });
    assert_eq!(metric(&served, "weir_otlp_connected"), 1);
    leave(served);
    let absent = job(std::path::Path::new("/absent.pem")).served().run().expect(2);
    assert!(
        absent.stderr.contains("control.otlp_certificate, /absent.pem: expected certificates"),
        "{}",
        absent.stderr
    );
}

fn quickstart() -> Job {
    Job::example("quickstart").patient().set("ros.count", "2")
}

fn is_in(collector: &Collector, state: &str) -> bool {
    let point = collector.point("rc", "weir.state", &json!({ "state": state }));
    point.is_some_and(|point| point["value"] == 1)
}

/// Samples of applications that Prometheus would scrape, and the collector has otherwise or not at all.
fn differences(served: &Served, collector: &Collector) -> Vec<String> {
    let seen = collector.seen();
    let points = seen["points"].as_array().unwrap();
    let text = served.ask("GET", "/metrics", &[], "").body;
    let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains("application="));
    // Who waits for whom changes all the time.
    let lines: Vec<&str> = lines.filter(|line| !line.starts_with("weir_waiting_ratio")).collect();
    assert!(lines.len() > 50, "{text}");
    let has = |line: &&str| {
        let (name, rest) = line.split_once('{').unwrap();
        let (labels, value) = rest.split_once("} ").unwrap();
        let value: f64 = value.parse().unwrap();
        let application = labels.rsplit_once("application=\"").unwrap().1.trim_end_matches('"');
        let bare = name.trim_start_matches("weir_").trim_end_matches("_total");
        let role = application.split_once('-').unwrap().0;
        let name = match bare.strip_prefix(&format!("{role}_")) {
            Some(name) => format!("weir.{role}.{name}"),
            None => format!("weir.{bare}"),
        };
        points.iter().any(|point| {
            let it = (&point["resource"]["service.instance.id"], &point["name"], point["value"].as_f64());
            it == (&json!(application), &json!(name), Some(value))
        })
    };
    lines.into_iter().filter(|line| !has(line)).map(str::to_owned).collect()
}

/// Numbers and texts of all messages.
fn said(served: &Served) -> Vec<(u64, String)> {
    let messages = served.get("messages");
    let of = |message: &Value| (message["number"].as_u64().unwrap(), message["text"].as_str().unwrap().to_owned());
    messages.as_array().unwrap().iter().map(of).collect()
}

/// How often messages on the collector have these words.
fn told(served: &Served, words: &str) -> usize {
    said(served).iter().filter(|(_, text)| text.contains("the collector http") && text.contains(words)).count()
}

fn until_said(served: &Served, words: &str, times: usize) {
    within_deadline(words, || told(served, words) >= times);
}

/// The sum of the samples that begin so.
fn metric(served: &Served, name: &str) -> u64 {
    let text = served.ask("GET", "/metrics", &[], "").body;
    let values = text.lines().filter(|line| line.starts_with(name)).map(|line| line.rsplit_once(' ').unwrap().1);
    values.map(|value| value.parse::<u64>().unwrap()).sum()
}

const LOGS_DROPPED: &str = "weir_otlp_dropped_total{partition=\"quickstart\",signal=\"logs\"}";
const METRICS_DROPPED: &str = "weir_otlp_dropped_total{partition=\"quickstart\",signal=\"metrics\"}";
