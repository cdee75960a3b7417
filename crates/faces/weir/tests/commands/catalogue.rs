//! The run catalogue, as users fill and read it.

use std::fs;

use serde_json::Value;
use testkit::TempDir;

use crate::{said, weir};

const CONFIGURATION: &str = "\
partition.name = \"kept\"
control.catalogue = \"runs.sqlite\"
dfm.input = \"self\"
run.events = 100
[ros]
count = 1
[sfi]
count = 1
[sfo]
count = 1
";

#[test]
fn runs_are_kept_under_numbers_that_never_come_again() {
    let directory = TempDir::new("catalogue");
    fs::write(directory.join("kept.toml"), CONFIGURATION).unwrap();
    let run = |options: &[&str]| said(0, directory.path(), &[&["run", "kept.toml"], options].concat());
    run(&[]);
    run(&["--runs", "2", "--set", "sfi.count=2"]);
    // The files of all runs are moved away: their numbers stay taken.
    fs::remove_dir_all(directory.join("out")).unwrap();
    run(&["--events", "50"]);
    let runs = |arguments: &[&str]| {
        said(0, directory.path(), &[&["runs"], arguments, &["--catalogue", "runs.sqlite"]].concat()).0
    };
    let listed: Value = serde_json::from_str(&runs(&["ls", "--json"])).unwrap();
    let told = |run: &Value| (run["run_number"].as_u64(), run["recorded"].as_u64(), run["quality"].to_string());
    let good = |number, recorded| (Some(number), Some(recorded), "\"good\"".to_owned());
    let listed: Vec<_> = listed.as_array().unwrap().iter().map(told).collect();
    assert_eq!(listed, [good(1, 100), good(2, 100), good(3, 100), good(4, 50)]);

    assert_eq!(runs(&["diff", "1", "2"]), "sfi.count: 1 -> 2\n");
    runs(&["comment", "2", "beam was off", "--quality", "tainted"]);
    let sheet = runs(&["show", "2"]);
    assert!(sheet.contains("tainted") && sheet.contains("beam was off") && sheet.contains("adler32"), "{sheet}");
    let shown = said(0, directory.path(), &["runs", "show", "4", "--config", "kept.toml", "--configuration"]).0;
    fs::write(directory.join("again.toml"), shown.replace("number = 4\n", "")).unwrap();
    said(0, directory.path(), &["run", "again.toml"]);
    assert!(runs(&["ls"]).lines().last().unwrap().trim_start().starts_with('5'));
}

#[test]
fn what_does_not_begin_leaves_no_run_and_wrong_catalogues_are_named() {
    let directory = TempDir::new("catalogue");
    fs::write(directory.join("kept.toml"), CONFIGURATION).unwrap();
    said(0, directory.path(), &["run", "kept.toml", "--set", "run.number=7"]);
    let (_, error) = said(2, directory.path(), &["run", "kept.toml", "--set", "run.number=7"]);
    assert!(error.contains("run 7 is in the catalogue already"), "{error}");
    let taken = ["run", "kept.toml", "--set", "run.number=7", "--set", "control.catalogue=other.sqlite"];
    assert!(said(2, directory.path(), &taken).1.contains("of run 7 already"));
    let listed = said(0, directory.path(), &["runs", "ls", "--json", "--catalogue", "other.sqlite"]).0;
    assert_eq!(listed, "[]\n");
    for (arguments, expected) in [
        (&["runs", "ls"][..], "expected --catalogue FILE"),
        (&["runs", "ls", "--catalogue", "none.sqlite"], "there is no run catalogue none.sqlite"),
        (&["runs", "ls", "--catalogue", "kept.toml"], "not a database"),
        (&["runs", "show", "8", "--catalogue", "runs.sqlite"], "run 8 is not in the catalogue"),
        (&["run", "kept.toml", "--set", "control.catalogue=kept.toml"], "not a database"),
    ] {
        let output = weir(directory.path(), arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(expected), "{arguments:?}: {error}");
    }
}
