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
    let described = |more: &str, limit: &str| {
        let tlu = "source.0.emulated={rate=\"4 kHz\",size=\"40 B\"}";
        let telescope = format!("source.1.emulated={{size=\"3 kB\"{more}}}");
        simulated(&example("test-beam"), &[limit, tlu, &telescope, "source.2.emulated={}"])
    };
    let all = described("", "run.events=4000");
    let rate = all["rates_hz"]["level1"].as_f64().unwrap();
    assert!((3400.0..4400.0).contains(&rate), "{rate} Hz, with the end of the run");
    // 40 B, 3000 B and the 1000 B of the device, and less than 500 B around them.
    let event_bytes =
        all["throughput_bytes_per_s"]["built"].as_f64().unwrap() / all["rates_hz"]["built"].as_f64().unwrap();
    assert!((4040.0..4540.0).contains(&event_bytes), "{event_bytes} B");

    let half = described(",efficiency=\"50 %\",delay=\"1 ms\"", "run.events=2000");
    let missing = half["accounting"]["built_incomplete"].as_u64().unwrap();
    assert!((900..1100).contains(&missing), "{missing} without a telescope");
    assert_eq!((&half["state"], half["accounting"]["residual"].as_u64()), (&"degraded".into(), Some(0)), "{half}");

    let spread = |seed: &str| {
        let set = ["run.events=500", seed, "source.1.emulated={size=\"3 kB\",spread=\"exponential\"}"];
        simulated(&example("test-beam"), &set)
    };
    assert_eq!(spread("run.seed=1"), spread("run.seed=1"), "a seed gives the same run");
    assert_ne!(spread("run.seed=1"), spread("run.seed=2"));
}

#[test]
fn free_running_sources_make_slices() {
    let summary = simulated(&example("streaming"), &["run.duration=500 ms"]);
    assert_eq!(summary["state"], "ok", "{summary}");
    let built = summary["accounting"]["built_complete"].as_u64().unwrap();
    assert!((45..=51).contains(&built), "{built} slices of 10 ms in 500 ms");
    let [one, more] = ["0 %", "50 %"].map(|overlap| {
        let emulated = format!("{{chunk=\"2 ms\",overlap=\"{overlap}\"}}");
        streaming("run.duration=500 ms", "level1.grace=500 ms", &emulated)
    });
    let bytes = |summary: &Value| {
        summary["throughput_bytes_per_s"]["built"].as_f64().unwrap() / summary["rates_hz"]["built"].as_f64().unwrap()
    };
    // Ten and two halves of a slice, where there were five.
    assert!((1.6..2.4).contains(&(bytes(&more) / bytes(&one))), "{more} {one}");
}

#[test]
fn each_fragment_is_delayed_by_itself() {
    // A trigger each 0.5 ms in the mean: many are there before the first one is sent.
    let late = "source.1.emulated.delay=5 ms";
    let summary = simulated(&example("test-beam"), &["run.events=1000", late]);
    assert_eq!(count(&summary, "built_complete"), 1000, "{summary}");
    let [p50, p99] = ["p50", "p99"].map(|key| summary["latency_ns"]["build"][key].as_u64().unwrap());
    assert!((4_900_000..6_000_000).contains(&p50) && p99 < 6_000_000, "{p50} ns, {p99} ns");
}

#[test]
fn a_delay_of_chunks_is_no_length_of_a_link() {
    // A hundred chunks of 2 ms are delayed at a time, more than a link holds.
    let summary = streaming("run.duration=1 s", "level1.grace=1 s", "{chunk=\"2 ms\",delay=\"200 ms\"}");
    assert_eq!(summary["state"], "ok", "{summary}");
    let built = count(&summary, "built_complete");
    assert!((96..=101).contains(&built), "{built} slices of 10 ms in 1 s");
    // What is delayed at the stop is sent then.
    for link in summary["links"].as_array().unwrap() {
        let [sent, fragments] = ["sent", "fragments"].map(|key| link[key].as_u64().unwrap());
        assert!((495..=505).contains(&sent) && fragments == sent, "{link}");
    }
}

#[test]
fn a_source_that_counts_triggers_counts_those_too_that_it_has_no_data_of() {
    let beam = |more: &str, source: &str| {
        let text = format!(
            "partition.name = \"p\"\nrun.events = 500\nlevel1 = {{ source = \"link\", grace = \"1 ms\" }}\nros.count = 1\nsfi.count = 1\n\
             dfm = {{}}\n[[source]]\nname = \"tlu\"\n[[source]]\nname = \"device\"\nmatch = \"count\"\n{more}\n\
             [source.emulated]\n{source}\n"
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
fn sources_that_a_run_would_play_are_simulated_as_others() {
    let play = [0, 1, 2].map(|source| format!("source.{source}.play=emulator"));
    let of = |set: &[String]| {
        let set: Vec<&str> = ["run.events=100"].into_iter().chain(set.iter().map(String::as_str)).collect();
        simulated(&example("test-beam"), &set)
    };
    assert_eq!(of(&play), of(&[]));
}

#[test]
fn who_cannot_be_simulated_is_named() {
    let text = "[partition]\nname = \"p\"\n[level1]\nsource = \"external\"\n[[level1.processor]]\nname = \"calo\"\n[ros]\ncount = 1\n\
                [dfm]\n[sfi]\ncount = 1\n";
    let partition = Partition::parse("p.toml", text, &[]).unwrap();
    assert!(matches!(simulate(partition, Trace::default()), Err(SimulationError::Processors)));
}

/// The example, whose sources send like that.
fn streaming(limit: &str, grace: &str, emulated: &str) -> Value {
    let each: Vec<String> = (0..8).map(|source| format!("source.{source}.emulated={emulated}")).collect();
    let set: Vec<&str> = [limit, grace].into_iter().chain(each.iter().map(String::as_str)).collect();
    simulated(&example("streaming"), &set)
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
