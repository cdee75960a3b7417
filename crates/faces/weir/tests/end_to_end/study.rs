//! `weir study`: the whole chain decides as the reference selection does; networks are simulated as before.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::TempDir;

use crate::running::{Ended, Job, examples};

#[test]
fn all_samples_agree_with_the_reference() {
    let Some(physics) = testkit::shared("all_samples_agree_with_the_reference", "physics") else { return };
    let reference = read(&physics.join("reference_results.json"));
    let directory = TempDir::new("study");
    let (output, decisions) = (directory.join("out"), directory.join("decisions.json"));
    let samples: Vec<PathBuf> =
        keys(&reference["samples"]).map(|name| physics.join(format!("{name}.parquet"))).collect();
    let results = [OsStr::new("--output"), output.as_ref(), OsStr::new("--decisions"), decisions.as_ref()];
    let samples = samples.iter().flat_map(|sample| [OsStr::new("--sample"), sample.as_ref()]);
    let ended = study(&samples.chain(results).collect::<Vec<_>>()).expect(0);
    assert!(ended.stdout.contains("zee_mu20"), "{}", ended.stdout);

    every_event_agrees(&reference, &read(&decisions));
    let report = read(&output.join("selection.json"));
    for sample in report["samples"].as_array().unwrap() {
        let name = sample["sample"].as_str().unwrap();
        let expected = &reference["samples"][name];
        counts_agree(name, sample, expected);
        requests_agree(name, &sample["requests"], &expected["requests"]);
        efficiencies_agree(name, &sample["efficiencies"], expected);
    }
    let svg = fs::read_to_string(output.join("selection.svg")).unwrap();
    let html = fs::read_to_string(output.join("selection.html")).unwrap();
    assert!(svg.starts_with("<svg") && html.contains(&svg), "the page holds the figure");
}

/// Samples that nothing was tuned on, and that need no files from elsewhere.
#[test]
fn samples_of_other_seeds_agree_with_the_reference() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let directory = TempDir::new("study");
    let decisions = directory.join("decisions.json");
    let samples = ["zee_seed90511", "dijet_seed90512"].map(|name| data.join(name).with_extension("parquet"));
    let arguments = samples.iter().flat_map(|sample| [OsStr::new("--sample"), sample.as_ref()]);
    study(&arguments.chain([OsStr::new("--decisions"), decisions.as_ref()]).collect::<Vec<_>>()).expect(0);
    let reference = read(&data.join("reference_decisions.json"));
    assert_eq!(read(&decisions)["events"], reference);
}

#[test]
fn event_building_over_atm_makes_the_golden_tables() {
    makes_golden_tables("atm1997", &[2, 4, 5, 6], include_str!("../golden/study-atm1997.md"));
}

#[test]
fn the_event_builder_of_2007_makes_the_golden_tables() {
    makes_golden_tables("eb2007", &[2, 3, 4, 5, 6], include_str!("../golden/study-eb2007.md"));
}

/// Every number that the paper gives within 10 %, all tables as they were looked at last, and these figures of the paper.
fn makes_golden_tables(name: &str, figures: &[u32], golden: &str) {
    let directory = TempDir::new("study");
    let arguments = ["study", name, "--output"].map(OsStr::new);
    let ended = Job::command(&[&arguments[..], &[directory.path().as_ref()]].concat(), MEMORY).run().expect(0);
    let (_, given) = ended.stdout.split_once("## Numbers").unwrap();
    let rows = given.lines().filter(|line| line.starts_with('|')).skip(2);
    let ratios: Vec<f64> = rows.map(|row| row.rsplit('|').nth(1).unwrap().trim().parse().unwrap()).collect();
    assert!(ratios.len() >= 10 && ratios.iter().all(|ratio| (0.9..=1.1).contains(ratio)), "{ratios:?}");
    assert_eq!(
        ended.stdout, golden,
        "if the change is meant: weir study {name} > crates/faces/weir/tests/golden/study-{name}.md"
    );
    let file = |extension| fs::read_to_string(directory.join(name).with_extension(extension)).unwrap();
    let (svg, html) = (file("svg"), file("html"));
    assert!(svg.starts_with("<svg") && html.contains(&svg), "the page holds the figure");
    let data = read(&directory.join(format!("{name}.json")));
    let titles: Vec<&str> =
        data["figures"].as_array().unwrap().iter().map(|figure| figure["title"].as_str().unwrap()).collect();
    assert_eq!(titles.len(), figures.len(), "{titles:?}");
    for (title, number) in titles.into_iter().zip(figures) {
        assert!(title.starts_with(&format!("Fig. {number}: ")), "{title}");
        assert!(svg.contains(title), "the page has {title}");
    }
}

#[test]
fn scenarios_that_make_no_sense_say_why() {
    let directory = TempDir::new("study");
    let path = directory.join("scenario.toml");
    for (from, to, expected) in [
        ("ports = 8 ", "ports = 80 ", "push is 80: expected ports that"),
        ("allotted = 0.8", "allotted = 2.0", "allotted is 2: expected 0.01 to 1"),
        ("sources = 6", "souces = 6", "souces"),
    ] {
        let changed = include_str!("../../../../../scenarios/atm1997.toml").replacen(from, to, 1);
        fs::write(&path, changed).unwrap();
        let arguments = ["study", "atm1997", "--config"].map(OsStr::new);
        let ended = Job::command(&[&arguments[..], &[path.as_ref()]].concat(), MEMORY).run().expect(1);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

/// Whatever it measures in so short a time: every cell is there, and what it advises is what `weir check` takes.
#[test]
fn this_machine_gets_all_tables_and_a_part_of_a_configuration() {
    let directory = TempDir::new("study");
    let (scenario, output) = (directory.join("os1998.toml"), directory.join("out"));
    let text = include_str!("../../../../lab/studies/src/os1998/acquisition.toml");
    fs::write(&scenario, text.replacen("\"500 ms\"", "\"100 ms\"", 1)).unwrap();
    let line = ["study", "os1998", "--config"].map(OsStr::new);
    let arguments = [scenario.as_os_str(), "--output".as_ref(), output.as_os_str()];
    let ended = Job::command(&[&line[..], &arguments].concat(), MEMORY).run().expect(0);
    let html = fs::read_to_string(output.join("os1998.html")).unwrap();
    for table in ["Table 1", "Table 2", "Table 3", "§2: from the signal", "§3: the whole", "What suits this machine"]
    {
        assert!(ended.stdout.contains(&format!("## {table}")) && html.contains(table), "{table}: {}", ended.stdout);
    }
    let (_, conclusions) = ended.stdout.split_once("## Whether the conclusions of OS1998 hold here").unwrap();
    for table in ["(Table 1)", "(Table 2)", "(Table 3)"] {
        let told = conclusions.lines().find(|line| line.starts_with("| ") && line.contains(table));
        let told = told.unwrap_or_else(|| panic!("no conclusion of {table}: {conclusions}"));
        assert!(["| yes |", "| no |", "| – |"].iter().any(|holds| told.contains(holds)), "{told}");
    }
    let json = fs::read_to_string(output.join("os1998.json")).unwrap();
    let figures: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (title, of_paper) in
        [("Table 1: processors", 208_117.0), ("Table 2: lock and unlock", 0.0), ("Table 3: context switch", 8.0)]
    {
        let figure = figures["figures"].as_array().unwrap().iter().find(|figure| figure["title"] == title);
        let curves = figure.unwrap()["curves"].as_array().unwrap();
        let of = |name: &str| curves.iter().find(|curve| curve["name"].as_str().unwrap().contains(name)).unwrap();
        assert!(of_paper == 0.0 || of("RTPC-604")["points"][0][0] == of_paper, "{title}: {json}");
        // A context switch cannot be told where others keep the machine busy.
        assert!(title.contains("Table 3") || of("here")["points"][0][0].as_f64() >= Some(0.0), "{title}: {json}");
        assert!(html.contains(title), "{title}");
    }
    for not_a_number in ["NaN", " inf "] {
        assert!(
            !json.contains("null") && !ended.stdout.contains(not_a_number) && !html.contains(not_a_number),
            "{}",
            ended.stdout
        );
    }
    let part = output.join("os1998.toml");
    let (_, printed) = ended.stdout.split_once("```toml\n").unwrap();
    assert_eq!(fs::read_to_string(&part).unwrap(), printed.strip_suffix("```\n").unwrap());
    let at_part = format!("@{}", part.display());
    Job::of(&scenario).processes(true).with(&["--set", &at_part]).checked().run().expect(0);
}

/// However short its runs are: all figures are there, of runs without residual, and nothing else is left.
#[test]
fn traced_crates_make_all_figures_of_the_paper() {
    let directory = TempDir::new("study");
    let (scratch, output) = (directory.join("scratch"), directory.join("out"));
    fs::create_dir(&scratch).unwrap();
    let ended = crates(&directory, "1 s", &output).environment("TMPDIR", &scratch).run().expect(0);
    let file = |extension| fs::read_to_string(output.join("daq1999").with_extension(extension)).unwrap();
    let (svg, html) = (file("svg"), file("html"));
    for not_a_number in ["NaN", " inf", "-inf"] {
        assert!(!ended.stdout.contains(not_a_number) && !html.contains(not_a_number), "{}", ended.stdout);
    }
    // A figure of two plots has letters behind its number.
    let is_of = |number: u32, line: &str| {
        [": ", " ("].iter().any(|behind| line.starts_with(&format!("## Fig. {number}{behind}")))
    };
    for number in 2..=23 {
        let heading = ended.stdout.lines().find(|line| is_of(number, line)).unwrap();
        assert!(html.contains(heading.strip_prefix("## ").unwrap()), "{heading}");
        assert!(ended.stdout.contains(&format!("\n| Fig. {number} | ")), "its conclusion: {}", ended.stdout);
    }
    assert!(svg.starts_with("<svg") && html.contains(&svg), "the page holds the figure");
    let data = read(&output.join("daq1999.json"));
    for figure in data["figures"].as_array().unwrap() {
        let curves = figure["curves"].as_array().unwrap();
        let points: Vec<&Value> = curves.iter().flat_map(|curve| curve["points"].as_array().unwrap()).collect();
        let is_finite = |point: &&Value| (0..2).all(|axis| point[axis].as_f64().is_some_and(f64::is_finite));
        assert!(!points.is_empty() && points.iter().all(is_finite), "{figure}");
        assert!(svg.contains(figure["title"].as_str().unwrap()), "{figure}");
    }
    let (_, runs) = ended.stdout.split_once("## Runs").unwrap();
    let (runs, _) = runs.split_once("\n## ").unwrap();
    let residuals: Vec<&str> =
        runs.lines().filter(|line| line.starts_with('|')).skip(2).map(|line| cell(line, 5)).collect();
    assert_eq!(residuals, vec!["0"; 11], "{runs}");
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "traces and files of runs are removed");
}

/// Whatever it does just then, it leaves nothing behind.
#[test]
fn an_interrupt_ends_the_study_of_crates() {
    let directory = TempDir::new("study");
    let (scratch, output) = (directory.join("scratch"), directory.join("out"));
    fs::create_dir(&scratch).unwrap();
    let mut running = crates(&directory, "100 s", &output).environment("TMPDIR", &scratch).start();
    let has_trace = |path: PathBuf| path.join("traces/trg-1.weirtrace").exists();
    running
        .until("a crate is traced", |_| fs::read_dir(&scratch).unwrap().flatten().any(|entry| has_trace(entry.path())));
    running.signal(Signal::SIGINT);
    let ended = running.end().expect(3);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("weir study daq1999: interrupted"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0, "traces and files of runs are removed");
    assert_eq!(fs::read_dir(&output).unwrap().count(), 0, "what was not measured is not written");
}

#[test]
fn crates_that_cannot_be_studied_are_named() {
    let directory = TempDir::new("study");
    let output = directory.join("out");
    let ended = crates(&directory, "a while", &output).run().expect(1);
    assert!(ended.stderr.contains("daq1999.toml") && ended.stderr.contains("a while"), "{}", ended.stderr);
    let line = ["study", "daq1999", "--config", "absent.toml"].map(OsStr::new);
    let ended = Job::command(&line, MEMORY).run().expect(1);
    assert!(ended.stdout.is_empty() && ended.stderr.contains("absent.toml"), "{}", ended.stderr);
}

/// The study of crates with runs that last so long.
fn crates(directory: &TempDir, lasting: &str, output: &Path) -> Job {
    let scenario = directory.join("daq1999.toml");
    let text = include_str!("../../../../lab/studies/src/daq1999/partition.toml");
    fs::write(&scenario, text.replacen("\"2 s\"", &format!("{lasting:?}"), 1)).unwrap();
    let line = ["study", "daq1999", "--config"].map(OsStr::new);
    let arguments = [scenario.as_os_str(), "--output".as_ref(), output.as_os_str()];
    Job::command(&[&line[..], &arguments].concat(), MEMORY)
}

/// One of a row of a table.
fn cell(row: &str, place: usize) -> &str {
    row.split('|').nth(place + 1).unwrap().trim()
}

#[test]
fn the_studies_are_listed() {
    let ended = Job::command(&["study", "--list"].map(OsStr::new), MEMORY).run().expect(0);
    assert!(ended.stdout.contains("selection"), "{}", ended.stdout);
    let unknown = Job::command(&["study", "fly"].map(OsStr::new), MEMORY).run().expect(1);
    assert!(unknown.stderr.contains("fly"), "{}", unknown.stderr);
}

#[test]
fn what_cannot_be_studied_is_named() {
    let directory = TempDir::new("study");
    let sample = examples().join("data/zmumu_mu0.accepted.parquet");
    let alone = directory.join("alone.parquet");
    fs::copy(&sample, &alone).unwrap();
    let text = directory.join("text.parquet");
    fs::write(&text, "no table").unwrap();
    let menuless = examples().join("event-builder.toml");
    let nowhere = directory.join("nowhere/out.json");
    let in_a_file = text.join("out");
    let absent = directory.join("absent.parquet");
    let cases: &[(&[&OsStr], i32, &str)] = &[
        (&["--sample".as_ref(), absent.as_ref()], 2, "absent.parquet"),
        (&["--sample".as_ref(), text.as_ref()], 2, "text.parquet"),
        (&["--sample".as_ref(), alone.as_ref()], 2, "alone.json"),
        (&["--sample".as_ref(), sample.as_ref(), "--decisions".as_ref(), nowhere.as_ref()], 2, "nowhere"),
        (&["--sample".as_ref(), sample.as_ref(), "--output".as_ref(), in_a_file.as_ref()], 2, "text.parquet"),
        (&["--sample".as_ref(), sample.as_ref(), "--sample".as_ref(), sample.as_ref()], 1, "zmumu_mu0.accepted"),
        (&["--config".as_ref(), menuless.as_ref()], 1, "--sample"),
        (&["--config".as_ref(), menuless.as_ref(), "--sample".as_ref(), sample.as_ref()], 1, "menu"),
        (&["--config".as_ref(), absent.as_ref()], 1, "absent.parquet"),
        (&[], 2, "weir init trigger"),
    ];
    for (arguments, status, expected) in cases {
        let ended = study(arguments).expect(*status);
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty(), "{arguments:?}: {}", ended.stdout);
    }
}

fn study(arguments: &[&OsStr]) -> Ended {
    let line = ["study", "selection"].map(OsStr::new);
    Job::command(&[&line[..], arguments].concat(), MEMORY).run()
}

fn every_event_agrees(reference: &Value, decisions: &Value) {
    let menu: Vec<&Value> = reference["menu"].as_array().unwrap().iter().map(|chain| &chain["chain"]).collect();
    assert_eq!(decisions["menu"].as_array().unwrap().iter().collect::<Vec<_>>(), menu);
    for name in keys(&reference["samples"]) {
        let rows = decisions["events"][name].as_array().unwrap();
        assert_eq!(rows.len() as u64, reference["samples"][name]["events"].as_u64().unwrap(), "{name}");
    }
    for name in keys(&reference["events"]) {
        let (expected, found) = (&reference["events"][name], &decisions["events"][name]);
        for (expected, found) in expected.as_array().unwrap().iter().zip(found.as_array().unwrap()) {
            let expected = &expected.as_array().unwrap()[..6];
            assert_eq!(found.as_array().unwrap(), expected, "{name}");
        }
    }
}

fn counts_agree(name: &str, sample: &Value, expected: &Value) {
    assert_eq!(sample["events"], expected["events"], "{name}");
    for (level, key) in ["l1", "l2", "ef"].iter().enumerate() {
        let found = &sample["levels"][level];
        assert_eq!(found["accepted"], expected[format!("{key}_accepted")], "{name} {key}");
        near(&found["fraction"], &expected[format!("{key}_fraction")], 1e-5, name);
    }
    let physics = &sample["levels"][0]["accepted_without_random"];
    assert_eq!(physics, &expected["l1_accepted_without_random"], "{name}");
    for chain in sample["chains"].as_array().unwrap() {
        let of = chain["name"].as_str().unwrap();
        assert_eq!(chain["level2"], expected["chains_l2"][of], "{name} {of}");
        assert_eq!(chain["event_filter"], expected["chains_ef"][of], "{name} {of}");
        let fraction = &expected["chains_ef_weighted_fraction"][of];
        near(&chain["event_filter_fraction"], fraction, 1e-9, &format!("{name} {of}"));
    }
}

fn requests_agree(name: &str, found: &Value, expected: &Value) {
    near(&found["mean_fraction_of_event_bytes"], &expected["mean_fraction_of_event_bytes"], 0.51e-4, name);
    near(&found["mean_robs_per_event"], &expected["mean_robs_per_event"], 0.51e-2, name);
    for kind in ["em_executions", "muon_executions", "jet_executions"] {
        assert_eq!(found[kind], expected[kind], "{name} {kind}");
    }
}

fn efficiencies_agree(name: &str, found: &Value, expected: &Value) {
    let of = |lepton: &str| found.as_array().unwrap().iter().find(|found| found["lepton"] == lepton);
    let curve = |found: &Value, index: usize, key: &str| found["curves"][index][key].clone();
    match of("electron") {
        None => assert!(expected["leptons"]["e"].is_null(), "{name}"),
        Some(found) => {
            let turn_on = &expected["turn_on"];
            assert_eq!(found["leptons_above"], expected["leptons"]["e"], "{name}");
            assert_eq!(found["leptons"], turn_on["all"], "{name}");
            for (index, key) in ["l1_em20", "l1_em20i", "e25i"].into_iter().enumerate() {
                assert_eq!(curve(found, index, "passed"), turn_on[key], "{name} {key}");
                assert_eq!(
                    curve(found, index, "passed_above"),
                    expected["leptons"][format!("e_{key}")],
                    "{name} {key}"
                );
                let efficiency = &expected["efficiency"][format!("e_{key}")];
                near(&curve(found, index, "efficiency"), efficiency, 1e-5, &format!("{name} {key}"));
            }
        }
    }
    match of("muon") {
        None => assert!(expected["leptons"]["mu"].is_null(), "{name}"),
        Some(found) => {
            assert_eq!(found["leptons_above"], expected["leptons"]["mu"], "{name}");
            for (index, key) in ["l1_mu20", "mu20"].into_iter().enumerate() {
                let expected = &expected["leptons"][format!("mu_{key}")];
                assert_eq!(&curve(found, index, "passed_above"), expected, "{name} {key}");
            }
        }
    }
}

/// The reference rounds.
fn near(found: &Value, expected: &Value, within: f64, what: &str) {
    let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
    assert!((found - expected).abs() <= within, "{what}: {found} against {expected}");
}

fn keys(table: &Value) -> impl Iterator<Item = &str> {
    table.as_object().unwrap().keys().map(String::as_str)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Address space of each process.
const MEMORY: u64 = 8 << 30;
