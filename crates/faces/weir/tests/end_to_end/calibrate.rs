//! Costs of this machine, measured and used.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::TempDir;

use crate::running::{Ended, Job, examples};

#[test]
fn what_is_measured_is_used_by_a_simulation() {
    let directory = TempDir::new("calibrate");
    let costs = directory.join("costs.toml");
    run(&["calibrate", "--seconds", "1", "--output", text(&costs)]).expect(0);
    let written = fs::read_to_string(&costs).unwrap();
    assert!(written.contains("[simulation.driver]") && written.contains("input = \"event-reply\""), "{written}");
    let summary = directory.join("summary.json");
    let example = examples().join("event-builder.toml");
    let sim = ["sim", text(&example), "--events", "2000", "--costs", text(&costs), "--summary", text(&summary)];
    run(&sim).expect(0);
    let summary: Value = serde_json::from_str(&fs::read_to_string(&summary).unwrap()).unwrap();
    assert_eq!(summary["accounting"]["residual"], 0, "{summary}");
    assert!(summary["cpu_s"].as_f64().is_some_and(|cpu| cpu > 0.0), "{summary}");
}

#[test]
fn a_configuration_of_ones_own_is_metered() {
    let example = examples().join("event-builder.toml");
    let ended = run(&["calibrate", text(&example), "--seconds", "1"]).expect(0);
    assert!(ended.stdout.contains("role = \"sfi\", input = \"event-reply\""), "{}", ended.stdout);
}

#[test]
fn files_that_are_no_costs_are_refused() {
    let directory = TempDir::new("calibrate");
    let example = examples().join("event-builder.toml");
    for (content, words) in [
        ("[simulation\n", "not valid TOML"),
        ("", "simulation.driver: expected in a file of costs"),
        ("[simulation.driver]\n[ros]\ncount = 3\n", "ros: expected only what `weir calibrate` writes"),
        ("[simulation]\nmtu = 9000\n[simulation.driver]\n", "simulation.mtu: expected only what"),
        ("[simulation.driver]\npass = 3\n", "simulation.driver.pass"),
        ("[simulation.driver]\nparse = \"3 ns\"\n", "parse"),
        ("[simulation.driver]\nslice = \"3 ns\"\n", "expected at least 1 us"),
        ("[simulation.driver]\n[[simulation.cost]]\nrole = \"rose\"\n", "did you mean"),
        ("[simulation.driver]\n[[simulation.cost]]\ninput = \"event-replay\"\n", "found \"event-replay\""),
    ] {
        let costs = directory.join("bad.toml");
        fs::write(&costs, content).unwrap();
        let ended = run(&["sim", text(&example), "--events", "10", "--costs", text(&costs)]).expect(1);
        assert!(ended.stderr.contains(words), "{content}\n{}", ended.stderr);
        // What is wrong with a kind of input is found when the simulation is made, wherever it stands.
        assert!(ended.stderr.contains("bad.toml") || words.starts_with("found"), "{}", ended.stderr);
    }
    let absent = directory.join("absent.toml");
    let ended = run(&["sim", text(&example), "--costs", text(&absent)]).expect(1);
    assert!(ended.stderr.contains("absent.toml: cannot open"), "{}", ended.stderr);
}

#[test]
fn where_nothing_can_be_written_nothing_is_measured() {
    let ended = run(&["calibrate", "--output", "no/such/directory/costs.toml"]).expect(2);
    assert!(ended.stderr.contains("expected a file in a directory that exists"), "{}", ended.stderr);
}

fn run(arguments: &[&str]) -> Ended {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    Job::command(&arguments, MEMORY_BYTES).run()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const MEMORY_BYTES: u64 = 16 << 30;
