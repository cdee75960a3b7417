//! `weir sim`: the configurations of live runs, scenarios and drawn partitions in virtual time.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testkit::TempDir;

use crate::running::{Ended, Job, examples};

#[test]
fn scenarios_account_for_everything() {
    for (name, duration) in [("eb2007-third", "50 ms"), ("eb2007-full", "20 ms"), ("overload", "100 ms")] {
        let (summary, _) = simulated(&scenario(name), &["--duration", duration]);
        assert_eq!((&summary["state"], summary["accounting"]["residual"].as_u64()), (&"ok".into(), Some(0)), "{name}");
        assert!(summary["accounting"]["built_complete"].as_u64().unwrap() > 0, "{name}: {summary}");
    }
}

/// At their full rates, as long as an event takes several times over.
#[test]
fn level_2_keeps_up_with_level_1() {
    for (name, nominal_hz) in [("level2-75khz", 75e3), ("level2-100khz", 100e3), ("level2-and-building", 75e3)] {
        let (summary, _) = simulated(&scenario(name), &["--duration", "30 ms"]);
        let account = &summary["accounting"];
        assert_eq!((&summary["state"], account["residual"].as_u64()), (&"ok".into(), Some(0)), "{name}");
        assert!(account["built_complete"].as_u64().unwrap() > 0, "{name}: {summary}");
        assert_eq!(summary["dead_time_fraction"].as_f64(), Some(0.0), "{name}");
        let level1_hz = account["level1"].as_f64().unwrap() / 0.03;
        assert!(level1_hz >= 0.97 * nominal_hz, "{name}: {level1_hz} Hz");
        let latency_ms = summary["latency_ns"]["level2"]["p99"].as_f64().unwrap() / 1e6;
        assert!(latency_ms < 10.0, "{name}: {latency_ms} ms");
    }
}

/// While a read-out system is cut off, chains that need its data cannot be decided, also of events that other chains
/// accept. The event filter looks at all of them.
#[test]
fn level_2_rejects_nothing_for_lack_of_data() {
    let directory = TempDir::new("sim");
    let summary = directory.join("summary.json");
    let run = |faults: &str, status: i32| -> Value {
        let config = examples().join("trigger.toml");
        let faults = format!("simulation.fault={faults}");
        let keys = ["level1.rate=10 kHz", "simulation.layout=processes", "l2pu.request_timeout=2 ms", "ros.pages=2048"];
        let mut arguments = vec![text(&config), "--events", "2000", "--summary", text(&summary), "--set", &faults];
        arguments.extend(keys.iter().flat_map(|key| ["--set", key]));
        sim(&arguments).expect(status);
        serde_json::from_str(&fs::read_to_string(&summary).unwrap()).unwrap()
    };
    let passed = |summary: &Value| -> Vec<u64> {
        let chains = summary["selection"]["chains"].as_array().unwrap();
        chains.iter().map(|chain| chain["level2_passed"].as_u64().unwrap()).collect()
    };
    let all_data = run("[]", 0);
    let cut_off = run(r#"[{ at = "60 ms", kind = "cut-off", application = "ros-3", lasts = "60 ms" }]"#, 4);
    let incomplete = &cut_off["accounting"]["level2_incomplete"];
    assert!(incomplete.as_u64() > Some(0), "{cut_off}");
    assert_eq!(cut_off["degraded_by"], serde_json::json!({ "level2_incomplete": incomplete }), "nothing else is lost");
    let (all_data, cut_off) = (passed(&all_data), passed(&cut_off));
    assert!(all_data.iter().zip(&cut_off).all(|(all, more)| all <= more), "{all_data:?} {cut_off:?}");
    assert_ne!(all_data, cut_off);
}

#[test]
fn a_seed_gives_the_same_run_and_the_same_messages() {
    let directory = TempDir::new("sim");
    let run = |seed: &str, file: &str| {
        let trace = directory.join(file);
        let (summary, _) = simulated(
            &examples().join("quickstart.toml"),
            &["--events", "300", "--seed", seed, "--trace", text(&trace)],
        );
        (summary, fs::read_to_string(trace).unwrap())
    };
    let (first, messages) = run("7", "first");
    assert!(messages.lines().count() > 300, "{messages}");
    assert_eq!((first, messages.clone()), run("7", "again"));
    assert_ne!(messages, run("8", "other").1);
}

/// The same triggers, data, decisions of level 2 and of processing tasks, and streams.
#[test]
fn simulated_runs_do_to_every_event_what_live_runs_do() {
    // Nothing is forced because the machine is slow.
    let patient =
        ["l2sv.timeout=60 s", "l2pu.request_timeout=60 s", "sfi.request_timeout=60 s", "dfm.build_timeout=60 s"];
    let patient = patient.map(|key| ["--set", key]).concat();
    for (name, events) in [("quickstart", "500"), ("trigger", "300"), ("replay", "10")] {
        let further: &[&str] = if name == "replay" { &[] } else { &patient };
        let arguments = [&["--events", events], further].concat();
        let (live, summary) = Job::example(name).with(&arguments).run().expect_ok();
        let (simulated, _) = simulated(&examples().join(name).with_extension("toml"), &arguments);
        let of_level2 = ["level1", "level2_accepted", "level2_rejected", "built_complete"];
        let of_filter = ["filter_accepted", "filter_rejected", "filter_debug", "recorded", "recorded_copies"];
        for count in of_level2.into_iter().chain(of_filter) {
            let found = simulated["accounting"][count].as_u64();
            assert_eq!(found, Some(summary.count(count)), "{name}: {count}\n{}", live.stdout);
        }
        let live = fs::read_to_string(live.directory.join("summary.json")).unwrap();
        let live = serde_json::from_str(&live).unwrap();
        assert_eq!(events_by_stream(&simulated), events_by_stream(&live), "{name}");
    }
}

fn events_by_stream(summary: &Value) -> BTreeMap<String, u64> {
    let mut events = BTreeMap::new();
    for file in summary["files"].as_array().unwrap() {
        *events.entry(file["stream"].as_str().unwrap().to_owned()).or_default() += file["events"].as_u64().unwrap();
    }
    events
}

#[test]
fn a_prediction_stands_beside_a_live_run() {
    let job = Job::example("quickstart").patient().events(500);
    let (live, _) = job.run().expect_ok();
    let live = live.directory.join("summary.json");
    let (_, ended) = simulated(&examples().join("quickstart.toml"), &["--events", "500", "--compare", text(&live)]);
    let (_, table) = ended.stdout.split_once("simulated").unwrap();
    let row = table.lines().find(|line| line.starts_with("events built / s")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert!(cells.last().unwrap().parse::<f64>().unwrap() > 0.0, "{row}");
}

#[test]
fn drawn_partitions_are_checked_and_one_is_shown() {
    let swarm = sim(&["--swarm", "40", "--seed", "3"]).expect(0);
    assert!(swarm.stdout.contains("40 seeds from 3"), "{}", swarm.stdout);
    let directory = TempDir::new("sim");
    let trace = directory.join("messages");
    let one = sim(&["--seed", "17", "--trace", text(&trace)]).expect(0);
    assert!(one.stdout.contains("Plan {") && one.stdout.contains("seed 17: nothing lost"), "{}", one.stdout);
    assert!(fs::read_to_string(&trace).unwrap().contains("NodeId(1) appears in life 0"));
    let restart = sim(&["--seed", "4125", "--level", "2", "--trace", text(&trace)]).expect(0);
    assert!(restart.stdout.contains("Restart("), "{}", restart.stdout);
    assert!(fs::read_to_string(&trace).unwrap().contains("appears in life 1"));
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let directory = TempDir::new("sim");
    let text_file = directory.join("text");
    fs::write(&text_file, "no summary").unwrap();
    let nowhere = directory.join("nowhere/file");
    let (quickstart, replay) = (examples().join("quickstart.toml"), examples().join("replay.toml"));
    let absent = directory.join("absent.toml");
    let (farm, costs) = (scenario("overload"), directory.join("costs.toml"));
    fs::write(&costs, "[simulation.driver]\n").unwrap();
    let cases: &[(&[&OsStr], i32, &str)] = &[
        (&[absent.as_ref()], 1, "absent.toml"),
        (&[replay.as_ref(), "--set".as_ref(), "input.files=[\"absent.data\"]".as_ref()], 1, "absent.data"),
        (&[quickstart.as_ref(), "--compare".as_ref(), text_file.as_ref()], 1, "weir run --summary"),
        (&[quickstart.as_ref(), "--trace".as_ref(), nowhere.as_ref()], 2, "cannot write the trace"),
        (&[quickstart.as_ref(), "--summary".as_ref(), nowhere.as_ref()], 2, "a directory that exists"),
        (&[quickstart.as_ref(), "--set".as_ref(), "simulation.cores=0".as_ref()], 1, "simulation.cores"),
        (&[farm.as_ref(), "--costs".as_ref(), costs.as_ref()], 1, "simulation.layout"),
        (&[quickstart.as_ref(), "--swarm".as_ref(), "3".as_ref()], 1, "--swarm"),
        (&["--seed".as_ref(), "1".as_ref(), "--level".as_ref(), "6".as_ref()], 1, "--level"),
        (&[], 1, "--swarm"),
    ];
    for (arguments, status, expected) in cases {
        let line = [&[OsStr::new("sim")], *arguments].concat();
        let ended = Job::command(&line, MEMORY).run().expect(*status);
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
    }
}

/// Simulates a configuration to a good end; its summary.
fn simulated(config: &Path, arguments: &[&str]) -> (Value, Ended) {
    let directory = TempDir::new("sim");
    let summary = directory.join("summary.json");
    let ended = sim(&[&[text(config), "--summary", text(&summary)], arguments].concat()).expect(0);
    (serde_json::from_str(&fs::read_to_string(summary).unwrap()).unwrap(), ended)
}

pub(crate) fn sim(arguments: &[&str]) -> Ended {
    let line: Vec<OsString> = [&["sim"], arguments].concat().into_iter().map(Into::into).collect();
    Job::command(&line.iter().map(OsString::as_os_str).collect::<Vec<_>>(), MEMORY).run()
}

pub(crate) fn scenario(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios").join(name).with_extension("toml")
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Address space of a simulation.
const MEMORY: u64 = 8 << 30;
