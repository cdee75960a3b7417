//! `[simulation]`, and the scenarios that have it.

use std::collections::BTreeSet;
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
fn constants_of_the_scenarios_have_a_source_and_are_no_results() {
    for path in scenarios() {
        let text = fs::read_to_string(&path).unwrap();
        for source in text.lines().filter_map(|line| line.strip_prefix("source = ")) {
            let known = ["cited", "measured", "inferred from EB2007 Fig. ", "as for ", "not limiting"];
            let source = source.trim_matches('"');
            assert!(known.iter().any(|word| source.starts_with(word)), "{}: {source}", path.display());
        }
        let comments: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix('#')).collect();
        let comments = comments.concat();
        let figures: Vec<&str> = comments.split("Inferred:").skip(1).map(figure).collect();
        let distinct: BTreeSet<&str> = figures.iter().copied().collect();
        assert_eq!(distinct.len(), figures.len(), "{}: {figures:?}", path.display());
        for (key, value) in text.lines().filter_map(|line| line.split_once(" = ")) {
            let value = value.trim_matches('"');
            assert!(!RESULTS.contains(&value), "{}: {key} = {value}", path.display());
        }
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    for (key, word) in [
        ("simulation.cores=0", "simulation.cores"),
        ("simulation.tcp_window=\"1 kB\"", "simulation.tcp_window"),
        ("simulation.cost=[{ role = \"rose\" }]", "did you mean"),
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

/// The figure of the paper that a constant is inferred from.
fn figure(comment: &str) -> &str {
    let (_, figure) = comment.split_once("[EB2007 Fig. ").expect("a figure after \"Inferred:\"");
    figure.split_once(']').expect("an end").0
}

/// What the text of the paper gives as results, in any unit that a scenario might hold them in [EB2007 §IV–V].
const RESULTS: [&str; 14] = [
    "78 Hz", "76 Hz", "114 MB", "114.2 MB", "103 MB", "106 MB", "109 MB", "3.3 GB", "3300 MB", "2.2 kHz", "2200 Hz",
    "17.5 kHz", "17500 Hz", "15",
];
