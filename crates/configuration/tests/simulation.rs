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
        let text = "[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n";
        let error = Partition::parse("p.toml", text, &[key.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

/// All but that of ATM, which is no partition.
fn scenarios() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_one = |path: &PathBuf| path.extension().is_some_and(|e| e == "toml") && !path.ends_with("atm1997.toml");
    let scenarios: Vec<PathBuf> = files.filter(is_one).collect();
    assert!(!scenarios.is_empty());
    scenarios
}
