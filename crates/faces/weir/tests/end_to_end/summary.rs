//! The main job: its account, its files, its summary, its table.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::TempDir;

use crate::account::Summary;
use crate::files::recorded;
use crate::running::{Ended, Job, examples, program};

#[test]
fn the_quickstart_in_one_process_accounts_for_every_event() {
    check_quickstart(false, 4000);
}

#[test]
fn the_quickstart_in_processes_accounts_for_every_event() {
    check_quickstart(true, 4000);
}

fn check_quickstart(processes: bool, events: u64) {
    let job = Job::example("quickstart").patient().events(events).processes(processes);
    let (ended, summary) = job.run().expect_ok();
    assert_eq!(summary.count("level1"), events);
    assert!(summary.count("recorded") > events / 8, "about a quarter: {summary:?}");
    assert_eq!(summary.count("level2_forced"), 0, "{summary:?}");
    check_keys(&summary);
    check_traffic(&summary, processes);
    check_command(&ended, summary.count("recorded"));
    assert!(ended.stdout.contains("residual"), "{}", ended.stdout);
}

/// It was written to a file of that name.
#[test]
fn a_summary_for_the_standard_output() {
    let (example, output) = (examples().join("quickstart.toml"), TempDir::new("summary-of-a-run"));
    let arguments = ["run".as_ref(), example.as_os_str(), "--summary".as_ref(), "-".as_ref()];
    let tolerated = ["run.tolerate.level2_forced", "run.tolerate.level2_incomplete"];
    let job = Job::command(&arguments, 1 << 40).recording_into(output.join("out")).events(200).set("ros.count", "2");
    let job = tolerated.into_iter().fold(job, |job, key| job.set(key, "100 %"));
    let ended = job.run().expect(0);
    let summary: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {}", ended.stdout));
    assert_eq!(summary["accounting"]["level1"], 200);
    assert!(ended.stderr.contains("account of events"), "{}", ended.stderr);
    assert!(!Path::new("-").exists() && !ended.directory.join("-").exists(), "nothing is called that");
}

/// Every key of the contract, with the type that it has there.
fn check_keys(summary: &Summary) {
    let contract: Value = serde_json::from_str(CONTRACT).unwrap();
    check_shape("summary", &contract, &summary.0);
    let positive = ["/duration_s", "/rates_hz/recorded", "/throughput_bytes_per_s/recorded", "/cpu_s"];
    for pointer in positive {
        assert!(summary.0.pointer(pointer).and_then(Value::as_f64).unwrap() > 0.0, "{pointer}");
    }
    for latency in ["level2", "build"] {
        let at = |key: &str| summary.0["latency_ns"][latency][key].as_u64().unwrap();
        assert!(at("p50") <= at("p99") && at("p99") <= at("max") && at("max") > 0, "{summary:?}");
    }
}

fn check_shape(place: &str, contract: &Value, found: &Value) {
    match (contract, found) {
        (Value::Object(keys), Value::Object(values)) => {
            for (key, contract) in keys {
                let found = values.get(key).unwrap_or_else(|| panic!("{place} has no key {key}"));
                check_shape(&format!("{place}.{key}"), contract, found);
            }
        }
        (Value::Array(items), Value::Array(values)) => {
            let contract = items.first();
            values.iter().for_each(|value| {
                if let Some(contract) = contract {
                    check_shape(place, contract, value);
                }
            });
        }
        (Value::Number(number), Value::Number(value)) if number.is_u64() => assert!(value.is_u64(), "{place}: {value}"),
        (Value::Number(_), Value::Number(_)) | (Value::String(_), Value::String(_)) => {}
        (contract, found) => panic!("{place}: expected such as {contract}, found {found}"),
    }
}

fn check_traffic(summary: &Summary, processes: bool) {
    let network = |key: &str| summary.0["network"][key].as_u64().unwrap();
    assert_eq!((network("stale"), network("malformed")), (0, 0), "{summary:?}");
    assert_eq!(network("messages") > 0, processes, "{summary:?}");
    assert_eq!(network("bytes") > 0, processes, "{summary:?}");
}

/// What `weir file check` and `weir file ls` say of the files.
fn check_command(ended: &Ended, events: u64) {
    let files = recorded(ended.output());
    let told = |verb: &str| {
        let output = Command::new(program()).args(["file", verb]).args(&files).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told("ls").contains("physics_Main"));
    let checked = told("check");
    let counts = checked.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| *word == "events,").unwrap_or_else(|| panic!("{checked}"));
        words[at - 1].parse::<u64>().unwrap()
    });
    assert_eq!(counts.sum::<u64>(), events);
}

#[test]
fn the_event_builder_alone_builds_every_event() {
    for processes in [false, true] {
        Job::example("event-builder").patient().events(3000).processes(processes).run().expect_all_built(3000);
    }
}

#[test]
fn the_largest_system_starts_builds_and_stops() {
    for (processes, events) in [(false, 300), (true, 100)] {
        let job = Job::example("full-size").set("dfm.rate", "10 kHz").patient();
        job.events(events).processes(processes).run().expect_all_built(events);
    }
}

impl Ended {
    /// Asserts that a run without recorders built all its events.
    pub(crate) fn expect_all_built(self, events: u64) {
        let ended = self.expect(0);
        let summary = std::fs::read_to_string(ended.directory.join("summary.json")).unwrap();
        let summary = Summary(serde_json::from_str(&summary).unwrap());
        assert_eq!(summary.0["state"], "ok");
        for key in ["level1", "level2_accepted", "built_complete", "filter_accepted", "recorded"] {
            assert_eq!(summary.count(key), events, "{key}: {summary:?}");
        }
        assert_eq!((summary.count("residual"), summary.count("recorded_copies")), (0, 0), "{summary:?}");
        assert!(!ended.output().exists(), "nothing is recorded");
    }
}

const CONTRACT: &str = r#"
{"schema": 1, "run_number": 1, "state": "ok", "duration_s": 0.0,
 "accounting": {"level1": 0, "level2_rejected": 0, "level2_accepted": 0, "level2_forced": 0, "level2_lost": 0,
   "built_complete": 0, "built_incomplete": 0, "not_built": 0, "lost_after_build": 0, "filter_rejected": 0,
   "filter_accepted": 0, "filter_debug": 0, "lost_in_recording": 0, "recorded": 0, "recorded_copies": 0,
   "duplicates": 0, "residual": 0},
 "rates_hz": {"level1": 0.0, "built": 0.0, "recorded": 0.0},
 "throughput_bytes_per_s": {"built": 0.0, "recorded": 0.0},
 "latency_ns": {"level2": {"p50": 0, "p99": 0, "max": 0}, "build": {"p50": 0, "p99": 0, "max": 0}},
 "cpu_s": 0.0, "dead_time_fraction": 0.0, "blocked_by": [],
 "reasks": 0, "network": {"messages": 0, "bytes": 0, "stale": 0, "malformed": 0},
 "files": [{"path": "", "stream": "physics_Main", "events": 0, "bytes": 0, "adler32": ""}]}
"#;
