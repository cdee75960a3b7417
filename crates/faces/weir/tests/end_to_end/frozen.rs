//! What users know of each example stays: exit status, words, keys and counts of the summary, names and contents of files.
//!
//! `tests/golden/examples/NAME.txt` says for each what a run gives; a later one may give more. `UPDATE_GOLDEN=1` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use eformat::{Event, adler32};
use serde_json::Value;

use crate::files::{each_event, recorded};
use crate::running::{Ended, Job};

#[test]
fn the_quickstart() {
    check("quickstart", |job| job.patient().events(1000));
}

#[test]
fn the_trigger() {
    check("trigger", |job| job.patient().events(1000));
}

#[test]
fn a_replay() {
    check("replay", |job| job);
}

#[test]
fn event_building() {
    check("event-builder", |job| job.events(2000));
}

#[test]
fn the_full_size() {
    check("full-size", |job| job.events(20));
}

/// Runs it in one process and in several: each gives what stands in its golden file.
fn check(example: &str, settled: impl Fn(Job) -> Job) {
    for processes in [false, true] {
        // Many hundreds of processes show nothing more than a few do.
        if processes && example == "full-size" {
            continue;
        }
        let ended = settled(Job::example(example)).processes(processes).run();
        let name = if processes { format!("{example}-processes") } else { example.to_owned() };
        compare(&name, &told(&ended));
    }
}

fn compare(name: &str, told: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/examples/{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        return fs::write(&path, told).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap();
    assert!(golden.lines().count() > 50, "{golden}");
    let found: Vec<&str> = told.lines().collect();
    let missing: Vec<&str> = golden.lines().filter(|line| !found.contains(line)).collect();
    assert!(missing.is_empty(), "{name} does not give any more:\n  {}\nbut:\n{told}", missing.join("\n  "));
}

/// All that a user can rely on, one thing a line.
fn told(ended: &Ended) -> String {
    let summary = fs::read_to_string(ended.directory.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let mut told = format!("status {}\n", ended.status.code().unwrap());
    for label in ended.stdout.lines().filter_map(label) {
        writeln!(told, "output {label}").unwrap();
    }
    writeln!(told, "ends {}", without_digits(ended.stdout.lines().last().unwrap())).unwrap();
    keys("", &summary, &mut told);
    for (key, count) in summary["accounting"].as_object().unwrap() {
        writeln!(told, "count {key} {count}").unwrap();
    }
    for (stream, contents) in contents(ended) {
        writeln!(told, "file {stream}: {contents}").unwrap();
    }
    told
}

/// What a line of the table is about: what stands before its first number.
fn label(line: &str) -> Option<String> {
    let words: Vec<&str> =
        line.split_whitespace().take_while(|word| !word.contains(|c: char| c.is_ascii_digit())).collect();
    (words.len() > 1 && line.starts_with(|c: char| c.is_ascii_alphabetic())).then(|| words.join(" "))
}

/// The kinds of all values below the keys of a summary; names of applications and files are values, too.
fn keys(place: &str, value: &Value, told: &mut String) {
    match value {
        Value::Object(values) => {
            values.iter().for_each(|(key, value)| keys(&format!("{place}.{}", without_digits(key)), value, told));
        }
        // Who waited for whom differs from run to run.
        Value::Array(_) if place == ".blocked_by" => writeln!(told, "key {place}: list").unwrap(),
        Value::Array(values) => values.iter().take(1).for_each(|value| keys(&format!("{place}[]"), value, told)),
        Value::Number(_) => writeln!(told, "key {place}: number").unwrap(),
        Value::String(_) => writeln!(told, "key {place}: text").unwrap(),
        Value::Bool(_) => writeln!(told, "key {place}: truth").unwrap(),
        Value::Null => writeln!(told, "key {place}: nothing").unwrap(),
    }
}

/// For each kind of file: how many events, of how many bytes, and a sum over the data of all their fragments in any order.
fn contents(ended: &Ended) -> BTreeMap<String, String> {
    let mut sums: BTreeMap<String, (u64, u64, u64)> = BTreeMap::new();
    for file in if ended.output().exists() { recorded(ended.output()) } else { Vec::new() } {
        let name = without_digits(file.file_name().unwrap().to_str().unwrap());
        let sum = sums.entry(name).or_default();
        each_event(&file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            let payload = event.unpacked_payload(64 << 20).unwrap();
            sum.0 += 1;
            for rob in event.robs(&payload) {
                let rob = rob.unwrap();
                let rod = rob.rod().unwrap();
                // Which unit of level 2 decided is nobody's promise.
                if rob.source_id().0 >> 16 != LEVEL2_RESULT {
                    let head = [rob.source_id().0, rod.lvl1_id(), rod.bcid(), rod.trigger_type()];
                    let head = head.into_iter().flat_map(u32::to_le_bytes);
                    let said: Vec<u8> = head.chain(rod.data().iter().copied()).collect();
                    sum.1 += said.len() as u64;
                    sum.2 = sum.2.wrapping_add(u64::from(adler32(&said)));
                }
            }
        });
    }
    let text = |(events, bytes, sum)| format!("{events} events, {bytes} bytes, sum {sum:#x}");
    sums.into_iter().map(|(name, sum)| (name, text(sum))).collect()
}

/// With one `#` for each number.
pub(crate) fn without_digits(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' if plain.ends_with('#') => {}
            '0'..='9' => plain.push('#'),
            c => plain.push(c),
        }
    }
    plain
}

/// The sub-detector of the fragments in which level 2 says what it found.
const LEVEL2_RESULT: u32 = 0x7b;
