//! Configurations whose sources send by themselves, in virtual time.

use std::path::{Path, PathBuf};

use configuration::Partition;
use serde_json::Value;
use simulation::{SimulationError, simulate};
use simulator::world::Trace;

#[test]
fn a_test_beam_takes_all_triggers() {
    let summary = simulated(&example("test-beam"), &["run.events=4000"]);
    assert_eq!(summary["state"], "ok", "{summary}");
    let account = &summary["accounting"];
    let count = |key: &str| account[key].as_u64().unwrap();
    assert_eq!(
        [count("level1"), count("built_complete"), count("recorded")],
        [4000; 3],
        "a device without data of an event is no loss"
    );
    assert_eq!(count("residual"), 0);
    let rate = summary["rates_hz"]["level1"].as_f64().unwrap();
    assert!((1800.0..2200.0).contains(&rate), "{rate} Hz");
}

#[test]
fn sources_send_as_they_are_described() {
    let described = |more: &str| {
        format!(
            "simulation.source=[{{name=\"tlu\",rate=\"4 kHz\",size=\"40 B\"}},{{name=\"telescope\",size=\"3 kB\"{more}}}]"
        )
    };
    let all = simulated(&example("test-beam"), &["run.events=4000", &described("")]);
    let rate = all["rates_hz"]["level1"].as_f64().unwrap();
    assert!((3400.0..4400.0).contains(&rate), "{rate} Hz, with the end of the run");
    // 40 B, 3000 B and the 1000 B of the device, and less than 500 B around them.
    let event_bytes =
        all["throughput_bytes_per_s"]["built"].as_f64().unwrap() / all["rates_hz"]["built"].as_f64().unwrap();
    assert!((4040.0..4540.0).contains(&event_bytes), "{event_bytes} B");

    let half =
        simulated(&example("test-beam"), &["run.events=2000", &described(",efficiency=\"50 %\",delay=\"1 ms\"")]);
    let missing = half["accounting"]["built_incomplete"].as_u64().unwrap();
    assert!((900..1100).contains(&missing), "{missing} without a telescope");
    assert_eq!((&half["state"], half["accounting"]["residual"].as_u64()), (&"degraded".into(), Some(0)), "{half}");

    let exponential = described(",spread=\"exponential\"");
    let spread = simulated(&example("test-beam"), &["run.events=500", &exponential]);
    assert_eq!(
        spread,
        simulated(&example("test-beam"), &["run.events=500", &exponential]),
        "a seed gives the same run"
    );
    assert_ne!(spread, simulated(&example("test-beam"), &["run.events=500", "run.seed=2", &exponential]));
}

#[test]
fn free_running_sources_make_slices() {
    let summary = simulated(&example("streaming"), &["run.duration=500 ms"]);
    assert_eq!(summary["state"], "ok", "{summary}");
    let built = summary["accounting"]["built_complete"].as_u64().unwrap();
    assert!((45..=51).contains(&built), "{built} slices of 10 ms in 500 ms");
    let overlapping: Vec<String> =
        (1..=8).map(|source| format!("{{name=\"stream-{source}\",chunk=\"2 ms\",overlap=\"50 %\"}}")).collect();
    let overlapping = format!("simulation.source=[{}]", overlapping.join(","));
    let more = simulated(&example("streaming"), &["run.duration=500 ms", &overlapping]);
    let bytes = |summary: &Value| {
        summary["throughput_bytes_per_s"]["built"].as_f64().unwrap() / summary["rates_hz"]["built"].as_f64().unwrap()
    };
    // Ten and two halves of a slice, where there were five.
    assert!((1.6..2.4).contains(&(bytes(&more) / bytes(&summary))), "{more} {summary}");
}

#[test]
fn each_fragment_is_delayed_by_itself() {
    // A trigger each 0.5 ms in the mean: many are there before the first one is sent.
    let late = "simulation.source=[{name=\"tlu\",rate=\"2 kHz\"},{name=\"telescope\",delay=\"5 ms\"}]";
    let summary = simulated(&example("test-beam"), &["run.events=1000", late]);
    assert_eq!(count(&summary, "built_complete"), 1000, "{summary}");
    let [p50, p99] = ["p50", "p99"].map(|key| summary["latency_ns"]["build"][key].as_u64().unwrap());
    assert!((4_900_000..6_000_000).contains(&p50) && p99 < 6_000_000, "{p50} ns, {p99} ns");
}

#[test]
fn a_delay_of_chunks_is_no_length_of_a_link() {
    // A hundred chunks of 2 ms are delayed at a time, more than a link holds.
    let late: Vec<String> = (1..=8).map(|source| format!("{{name=\"stream-{source}\",delay=\"200 ms\"}}")).collect();
    let late = format!("simulation.source=[{}]", late.join(","));
    let summary = simulated(&example("streaming"), &["run.duration=1 s", "level1.grace=1 s", &late]);
    assert_eq!(summary["state"], "ok", "{summary}");
    let built = count(&summary, "built_complete");
    assert!((76..=81).contains(&built), "{built} slices of 10 ms in 800 ms");
}

#[test]
fn a_source_that_counts_triggers_counts_those_too_that_it_has_no_data_of() {
    let beam = |more: &str, source: &str| {
        let text = format!(
            "partition.name = \"p\"\nrun.events = 500\nlevel1 = {{ source = \"link\", grace = \"1 ms\" }}\nros.count = 1\nsfi.count = 1\n\
             dfm = {{}}\n[[source]]\nname = \"tlu\"\n[[source]]\nname = \"device\"\nmatch = \"count\"\n{more}\n\
             [[simulation.source]]\nname = \"device\"\n{source}\n"
        );
        summary_of(Partition::parse("p.toml", &text, &[]).unwrap())
    };
    for (more, complete) in [("", 500), ("first_count = 7", 500), ("first_count = -3", 497)] {
        let summary = beam(more, "");
        assert_eq!(count(&summary, "built_complete"), complete, "{more}: {summary}");
    }
    let summary = beam("", "efficiency = \"80 %\"");
    let complete = count(&summary, "built_complete");
    assert!((360..440).contains(&complete), "{complete}");
    // Counts that lag behind would make nearly all events wait in vain for the source to pass them.
    let unpassed = summary["links"][1]["unpassed"].as_u64().unwrap();
    assert!(unpassed < 100, "{unpassed} of {summary}");
}

#[test]
fn who_cannot_be_simulated_is_named() {
    let text = "[partition]\nname = \"p\"\n[level1]\nsource = \"external\"\n[[level1.processor]]\nname = \"calo\"\n[ros]\ncount = 1\n\
                [dfm]\n[sfi]\ncount = 1\n";
    let partition = Partition::parse("p.toml", text, &[]).unwrap();
    assert!(matches!(simulate(partition, Trace::default()), Err(SimulationError::Processors)));
}

fn simulated(path: &Path, set: &[&str]) -> Value {
    let set: Vec<String> = set.iter().map(|key| (*key).to_owned()).collect();
    summary_of(Partition::load(path, &set).unwrap_or_else(|error| panic!("{error}")))
}

fn summary_of(partition: Partition) -> Value {
    let simulated = simulate(partition, Trace::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut summary = serde_json::to_value(simulated.summary()).unwrap();
    // Of the machine that simulates.
    summary.as_object_mut().unwrap().remove("environment");
    summary
}

fn count(summary: &Value, key: &str) -> u64 {
    summary["accounting"][key].as_u64().unwrap()
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name).with_extension("toml")
}
