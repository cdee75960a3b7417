//! `[simulation]`, and the scenarios that have it.

use std::fs;
use std::path::{Path, PathBuf};

use configuration::Partition;

#[test]
fn the_scenarios_are_good() {
    for path in scenarios() {
        let partition = Partition::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert!(partition.simulation.is_some(), "{}", path.display());
    }
}

#[test]
fn costs_say_where_they_come_from() {
    for path in scenarios() {
        let costs = Partition::load(&path, &[]).unwrap().simulation.unwrap().cost;
        for source in costs.iter().map(|cost| &cost.source) {
            let known = ["cited: ", "measured by ", "inferred: Fig. ", "as for ", "free: "];
            assert!(known.iter().any(|word| source.starts_with(word)), "{}: {source:?}", path.display());
        }
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    for (key, word) in [
        ("simulation.cores=0", "simulation.cores"),
        ("simulation.tcp_window=\"1 kB\"", "simulation.tcp_window"),
        ("simulation.cost=[{ role = \"rose\" }]", "did you mean"),
        ("simulation.second_port_roles=[\"efs\"]", "did you mean"),
        ("simulation.fault=[{ application = \"sfi-9\" }]", "expected an application"),
    ] {
        assert_refused(&[key], word);
    }
}

#[test]
fn faults_that_could_not_happen_are_refused() {
    let farm = "simulation.layout=farm";
    for (fault, word) in [
        ("{ kind = \"kill\" }", "such as application = \"ros-1\""),
        ("{ kind = \"kill\", applications = [\"ros-1\", \"rose-2\"] }", "did you mean `ros-2`?"),
        ("{ kind = \"slow\", application = \"sfi-1\", lasts = \"1 s\" }", "expected each"),
        ("{ kind = \"slow\", application = \"sfi-1\", each = \"1 ms\" }", "expected lasts"),
        ("{ kind = \"full-disk\", application = \"sfi-1\", lasts = \"1 s\" }", "sfi-1 has no disk"),
        ("{ kind = \"restart\", application = \"sfi-1\", lasts = \"1 s\" }", "processes.on_loss"),
        (
            "{ kind = \"network-partition\", applications = [\"dfm-1\", \"sfi-1\", \"sfi-2\", \"ros-1\", \"ros-2\", \"ros-3\", \"ros-4\"], lasts = \"1 s\" }",
            "the other side",
        ),
        ("{ kind = \"stumble\", application = \"sfi-1\" }", "network-partition"),
    ] {
        assert_refused(&[farm, &format!("simulation.fault=[{fault}]")], word);
    }
    let cut_off = "simulation.fault=[{ kind = \"cut-off\", application = \"sfi-1\", lasts = \"1 s\" }]";
    assert_refused(&[cut_off], "found \"process\"");
    let restart = "simulation.fault=[{ kind = \"restart\", application = \"level1-1\" }]";
    assert_refused(&["level1.rate=1 kHz", "processes.on_loss=restart", restart], "does not return");
    for key in ["frame_loss", "frame_corruption", "frame_duplication", "frame_delay"] {
        assert_refused(&[&format!("simulation.{key}=1 %")], "simulation.layout = \"farm\"");
        assert_refused(&[farm, &format!("simulation.{key}=101 %")], key);
    }
    assert_refused(&["simulation.frame_jitter=1 us"], "simulation.layout = \"farm\"");
    assert_refused(&[farm, "simulation.frame_delay=1 %", "simulation.frame_delay_max=0 s"], "a time above 0");
    for key in ["message_stale", "message_wrong_run"] {
        assert_refused(&[farm, &format!("simulation.{key}=1 %")], "travel in datagrams");
    }
}

fn assert_refused(keys: &[&str], word: &str) {
    let text = "[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n";
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let error = Partition::parse("p.toml", text, &keys).unwrap_err().to_string();
    assert!(error.contains(word), "{keys:?}: {error}");
}

/// All but that of ATM, which is no partition.
fn scenarios() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let files_of = |directory: PathBuf| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = files_of(directory.join("faults")).chain(files_of(directory));
    let is_one = |path: &PathBuf| path.extension().is_some_and(|e| e == "toml") && !path.ends_with("atm1997.toml");
    let scenarios: Vec<PathBuf> = files.filter(is_one).collect();
    assert!(!scenarios.is_empty());
    scenarios
}
