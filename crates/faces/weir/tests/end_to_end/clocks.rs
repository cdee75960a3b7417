//! Sources with clocks of their own: one that drifts, one that loses a trigger, one that counts with few bits.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use testkit::TempDir;

use crate::account::Summary;
use crate::running::{Job, program};

#[test]
fn a_lost_trigger_and_a_drifting_clock_are_named_with_source_and_event() {
    let mut beam = Beam::new("clock = \"model\"");
    beam.feed("tlu", &[]);
    beam.feed("telescope", &["--drift", "10", "--clock-step", "3000:1 ms"]);
    beam.feed("device", &["--drift", "-25", "--repeat-number", "2000"]);
    let (said, summary) = beam.end();
    let slip = "source device slips: from its event 1999 on its times are those of event number +1; triggers lost: 1";
    assert!(said.contains(slip), "{said}");
    assert_eq!(said.matches(" slips: ").count(), 1, "{said}");
    let clock = |place: usize, key: &str| summary.0["links"][place]["clock"][key].as_i64().unwrap();
    assert_eq!(summary.0["links"][0]["clock"], Value::Null, "the leader is the reference");
    assert!((clock(1, "drift_ppt") - 10_000_000).abs() < 1_000_000, "{summary:?}");
    assert_eq!((clock(1, "steps"), clock(1, "slips")), (1, 0), "{summary:?}");
    assert!((clock(2, "drift_ppt") + 25_000_000).abs() < 1_000_000, "{summary:?}");
    assert_eq!(["slips", "slipped_at", "shift"].map(|key| clock(2, key)), [1, 1999, 1], "{summary:?}");
}

#[test]
fn numbers_of_few_bits_are_made_whole() {
    // Each source passes the end of its range several times.
    let mut beam = Beam::new("number_bits = 10");
    ["tlu", "telescope", "device"].into_iter().for_each(|name| beam.feed(name, &["--number-bits", "10"]));
    let (_, summary) = beam.end();
    assert_eq!((summary.count("level1"), summary.count("built_incomplete")), (EVENTS, 0));
}

/// The example of a test beam, with sources of its own.
struct Beam {
    directory: TempDir,
    job: Option<Job>,
    feeds: Vec<Child>,
}

impl Beam {
    fn new(keys: &str) -> Self {
        let directory = TempDir::new("clocks");
        let mut text =
            "[partition]\nname = \"clocks\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n[sfo]\ncount = 1\n"
                .to_owned();
        for name in ["tlu", "telescope", "device"] {
            let at = Self::at(&directory, name);
            text += &format!("[[source]]\nname = {name:?}\nat = {at:?}\n{keys}\n");
        }
        let path = directory.join("beam.toml");
        fs::write(&path, text).unwrap();
        let job = Job::of(&path).patient().events(EVENTS);
        Self { directory, job: Some(job), feeds: Vec::new() }
    }

    fn at(directory: &TempDir, name: &str) -> String {
        format!("shm:{}/{name}.sock", directory.path().display())
    }

    fn feed(&mut self, name: &str, arguments: &[&str]) {
        let mut feed = Command::new(program());
        feed.args([
            "feed",
            &Self::at(&self.directory, name),
            "--beam",
            "1 kHz",
            "--size",
            "100 B",
            "--seed",
            &name.len().to_string(),
        ]);
        self.feeds.push(feed.args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    fn end(mut self) -> (String, Summary) {
        let (ended, summary) = self.job.take().expect("one run").start().end().expect_end();
        self.feeds.iter_mut().for_each(|feed| assert!(feed.wait().unwrap().success()));
        (ended.stderr, summary)
    }
}

const EVENTS: u64 = 5_000;
