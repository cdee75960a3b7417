//! Scenarios that stand for papers: each value says where it comes from, and none is what a figure shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use configuration::{Fraction, Interval, Rate, Sfi, Simulation, Size};
use toml::Value;

#[test]
fn every_value_says_where_it_comes_from() {
    for paper in &PAPERS {
        for constant in constants(paper) {
            assert!(says_where_from(&constant.mark), "{}: {:?}", constant.place, constant.mark);
        }
    }
}

#[test]
fn at_most_one_value_is_inferred_from_a_figure() {
    for paper in &PAPERS {
        let marks: BTreeSet<(usize, String)> =
            constants(paper).into_iter().map(|constant| (constant.marked_in, constant.mark)).collect();
        let inferred = marks.iter().filter(|(_, mark)| mark.starts_with("inferred"));
        let figures: Vec<&str> = inferred.map(|(_, mark)| figure(mark)).collect();
        let distinct: BTreeSet<&str> = figures.iter().copied().collect();
        assert_eq!(distinct.len(), figures.len(), "{}: {figures:?}", paper.file);
    }
}

/// What is left to a default is marked nowhere.
#[test]
fn nothing_that_matters_is_left_to_a_default() {
    let of_simulation = keys_that_matter(&Value::try_from(Simulation::default()).unwrap(), &OF_FAULTS);
    let of_builders = keys_that_matter(&Value::try_from(Sfi::default()).unwrap(), &NOT_SIMULATED);
    for paper in PAPERS.iter().filter(|paper| paper.file.starts_with("eb2007")) {
        let has = |table: &str, key: &str| {
            let found = constants(paper).into_iter().any(|constant| constant.table == table && constant.key == key);
            assert!(found, "{}: [{table}] leaves {key} to its default", paper.file);
        };
        of_simulation.iter().for_each(|key| has("simulation", key));
        of_builders.iter().for_each(|key| has("sfi", key));
        for (table, key) in OF_OTHERS {
            has(table, key);
        }
    }
}

#[test]
fn no_value_is_a_result() {
    for paper in &PAPERS {
        for constant in constants(paper) {
            let result = result_in(&constant.value, paper.results);
            assert!(result.is_none(), "{}: {} is {result:?}", constant.place, constant.value);
        }
    }
}

#[test]
fn results_are_known_in_any_unit() {
    for result in [
        "78.0 Hz",
        "0.078 kHz",
        "114200 kB",
        "114.2 MB",
        "119.7 MB",
        "12.82 ms",
        "3.3 GB",
        "2200 Hz",
        "57.1 us",
        "106 MB",
    ] {
        assert!(result_in(&Value::from(result), EB2007).is_some(), "{result}");
    }
    let nested: toml::Table = toml::from_str("x = { size = [\"1 kB\", \"17.5 kHz\"] }").unwrap();
    assert!(result_in(&nested["x"], EB2007).is_some());
    assert!(result_in(&Value::from(15), EB2007).is_some());
    assert!(result_in(&Value::from(120_000_000), ATM1997).is_some());
    for harmless in ["3 MB", "45 us", "3500 Hz", "round-robin", "100 %"] {
        assert!(result_in(&Value::from(harmless), EB2007).is_none(), "{harmless}");
    }
}

#[test]
fn sources_are_told_from_other_words() {
    for mark in ["cited: §IV", "measured: here", "inferred: Fig. 5, x", "assumed: y", "free", "free: z", "as for x"] {
        assert!(says_where_from(mark), "{mark}");
    }
    for mark in ["", "cited", "cited: ", "assumed", "inferred: the figure", "freely", "because"] {
        assert!(!says_where_from(mark), "{mark}");
    }
    let text = "[a]\nx = 1 # free\n[[a.cost]]\nx = \"2\"\nsource = \"cited: y\"\n[a]\nz = 3\n";
    let marks: Vec<String> = constants_in("f", text).into_iter().map(|constant| constant.mark).collect();
    assert_eq!(marks, ["free", "cited: y", ""]);
}

struct Paper {
    file: &'static str,
    results: &'static [(Unit, f64)],
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Hertz,
    Bytes,
    Number,
}

struct Constant {
    place: String,
    table: String,
    key: String,
    value: Value,
    mark: String,
    /// The line that the mark is in.
    marked_in: usize,
}

fn constants(paper: &Paper) -> Vec<Constant> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios").join(paper.file);
    constants_in(paper.file, &fs::read_to_string(path).unwrap())
}

/// All values but names of partitions, with the comments behind them or the `source` of their table.
fn constants_in(file: &str, text: &str) -> Vec<Constant> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut table, mut source) = (String::new(), None);
    let mut constants = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        if line.starts_with('[') {
            table = line.trim_matches(['[', ']']).to_owned();
            let of_table = lines[number + 1..].iter().take_while(|line| !line.starts_with('['));
            source = of_table.zip(number + 1..).find_map(|(line, at)| Some((at, line.strip_prefix("source = ")?)));
            continue;
        }
        let is_value = !line.is_empty() && !line.starts_with('#') && !line.starts_with("source = ");
        if !is_value || table == "partition" {
            continue;
        }
        let parsed: toml::Table = toml::from_str(line).unwrap();
        let (key, value) = parsed.into_iter().next().unwrap();
        let own = line.split_once(" # ").map(|(_, mark)| (number, mark));
        let (marked_in, mark) = own.or(source).unwrap_or((number, ""));
        let mark = mark.trim().trim_matches('"').to_owned();
        let place = format!("scenarios/{file}:{}: {key}", number + 1);
        constants.push(Constant { place, table: table.clone(), key, value, mark, marked_in });
    }
    constants
}

fn says_where_from(mark: &str) -> bool {
    let says = |word: &str| mark.strip_prefix(word).is_some_and(|rest| !rest.trim().is_empty());
    let inferred = mark.strip_prefix("inferred: Fig. ");
    mark == "free"
        || ["cited: ", "measured: ", "assumed: ", "free: ", "as for "].into_iter().any(says)
        || inferred.is_some_and(|figure| figure.starts_with(|letter: char| letter.is_ascii_digit()))
}

fn figure(mark: &str) -> &str {
    mark.strip_prefix("inferred: Fig. ").and_then(|figure| figure.split(',').next()).expect("a figure")
}

fn keys_that_matter(defaults: &Value, not: &[&str]) -> Vec<String> {
    let is_inert = |value: &Value| match value {
        Value::String(text) => text.starts_with("0 "),
        Value::Array(values) => values.is_empty(),
        _ => false,
    };
    let all = defaults.as_table().unwrap().iter();
    let matter = all.filter(|(key, value)| !is_inert(value) && !not.contains(&key.as_str()));
    matter.map(|(key, _)| key.clone()).collect()
}

/// A result that a value, or a part of it, is: the same within 0.2 %, or the time of one if it is a rate.
fn result_in(value: &Value, results: &[(Unit, f64)]) -> Option<(Unit, f64)> {
    let is = |kind, number: f64| {
        let same = |result: &&(Unit, f64)| result.0 == kind && (number / result.1 - 1.0).abs() < 0.002;
        results.iter().find(same).copied()
    };
    match value {
        Value::Integer(number) => is(Unit::Number, *number as f64),
        Value::Float(number) => is(Unit::Number, *number),
        Value::Array(values) => values.iter().find_map(|value| result_in(value, results)),
        Value::Table(table) => table.values().find_map(|value| result_in(value, results)),
        Value::String(text) => {
            let hertz = text.parse().ok().map(Rate::hertz);
            let of_one = text.parse().ok().map(|time: Interval| 1e9 / time.ns() as f64);
            let bytes = text.parse().ok().map(|size: Size| size.bytes() as f64);
            let part = text.parse().ok().map(Fraction::as_f64);
            let rate = hertz.or(of_one).and_then(|hertz| is(Unit::Hertz, hertz));
            let mebibytes = bytes.map(|bytes| bytes / f64::from(1 << 20) * 1e6);
            let size = [bytes, mebibytes].into_iter().flatten().find_map(|bytes| is(Unit::Bytes, bytes));
            rate.or(size).or_else(|| is(Unit::Number, part?))
        }
        _ => None,
    }
}

const PAPERS: [Paper; 3] = [
    Paper { file: "eb2007-third.toml", results: EB2007 },
    Paper { file: "eb2007-full.toml", results: EB2007 },
    Paper { file: "atm1997.toml", results: ATM1997 },
];

/// Rates, bandwidths and event builders that saturate [EB2007 §IV–V].
const EB2007: &[(Unit, f64)] = &[
    (Unit::Hertz, 76.0),
    (Unit::Hertz, 78.0),
    (Unit::Hertz, 2.2e3),
    (Unit::Hertz, 17.5e3),
    (Unit::Bytes, 103e6),
    (Unit::Bytes, 106e6),
    (Unit::Bytes, 109e6),
    (Unit::Bytes, 114e6),
    (Unit::Bytes, 114.2e6),
    (Unit::Bytes, 3.3e9),
    (Unit::Number, 15.0),
];

/// Throughput, its unit or part of the links; saturation; rates [ATM1997 §IV]. Keys have the units.
const ATM1997: &[(Unit, f64)] = &[
    (Unit::Number, 120.0),
    (Unit::Number, 120e6),
    (Unit::Number, 135.0),
    (Unit::Number, 135e6),
    (Unit::Number, 700.0),
    (Unit::Number, 30.0),
    (Unit::Number, 30e3),
    (Unit::Number, 40.0),
    (Unit::Number, 40e3),
];

/// Without delayed frames, none of which is the default, it is not looked at.
const OF_FAULTS: [&str; 1] = ["frame_delay_max"];
/// Of `[sfi]`, what a simulation does not look at.
const NOT_SIMULATED: [&str; 2] = ["copy_below", "check"];
const OF_OTHERS: [(&str, &str); 12] = [
    ("run", "duration"),
    ("ros", "count"),
    ("ros", "robs"),
    ("ros", "fragment"),
    ("ros", "pages"),
    ("dfm", "input"),
    ("dfm", "assignment"),
    ("dfm", "clear_group"),
    ("dfm", "clear_age"),
    ("transport", "event_request"),
    ("transport", "event_reply"),
    ("transport", "clear"),
];
