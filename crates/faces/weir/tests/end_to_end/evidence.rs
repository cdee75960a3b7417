//! A test beam, from what its sources wrote down themselves to what a reader finds in the files that knows the published format alone.

use std::process::{Child, Command, Stdio};

use serde_json::Value;
use testkit::TempDir;

use crate::account::Summary;
use crate::files::recorded;
use crate::running::{Job, Running, program, test_beam_by_number};

#[test]
fn every_fragment_of_a_test_beam_is_in_its_event_or_counted() {
    if Command::new("python3").arg("--version").output().is_err() {
        return testkit::skip("every_fragment_of_a_test_beam_is_in_its_event_or_counted", "python3 is not installed");
    }
    let beam = Beam::new();
    let running = beam.start();
    let count = EVENTS.to_string();
    let feeds = [
        beam.feed("tlu", &["--size", "40 B", "--count", &count]),
        beam.feed("telescope", &["--size", "2 kB", "--spread", "exponential", "--count", &count, "--skip", "700"]),
        beam.feed("device", &["--size", "300 B", "--count", &count, "--double", "900", "--skip", "40", "--skip", "41"]),
    ];
    let (ended, summary) = running.end().expect_degraded(&["built_incomplete"]);
    for feed in feeds {
        let feed = feed.wait_with_output().unwrap();
        assert!(feed.status.success(), "{feed:?}");
    }
    assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (EVENTS, 3));
    let reader = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/independent.py");
    let mut read = Command::new("python3");
    read.arg(reader);
    for (place, name) in NAMES.iter().enumerate() {
        read.arg(format!("{}={}", FIRST_ID + place, beam.record(name)));
    }
    let read = read.arg("--").args(recorded(ended.output())).output().unwrap();
    assert!(read.status.success(), "{read:?}");
    let found: Value = serde_json::from_slice(&read.stdout).unwrap();
    for ((place, name), skipped) in NAMES.iter().enumerate().zip([0, 1, 2]) {
        let of = |key: &str| found[(FIRST_ID + place).to_string()][key].as_u64().unwrap();
        assert_eq!(of("same"), EVENTS - skipped, "{name}: {found}");
        assert_eq!((of("differ"), of("in_no_file"), of("in_no_record")), (0, 0, 0), "{name}: {found}");
        let link = &summary.0["links"][place];
        assert_eq!(link["missing"], skipped, "{link}");
    }
    assert_eq!(doubled(&summary), [0, 0, 1]);
}

fn doubled(summary: &Summary) -> Vec<u64> {
    summary.0["links"].as_array().unwrap().iter().map(|link| link["doubled"].as_u64().unwrap()).collect()
}

/// The example, with sockets of its own.
struct Beam(TempDir);

impl Beam {
    fn new() -> Self {
        Self(TempDir::new("evidence"))
    }

    fn at(&self, name: &str) -> String {
        format!("shm:{}/{name}.sock", self.0.path().display())
    }

    fn record(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn start(&self) -> Running {
        let mut text = test_beam_by_number();
        for name in NAMES {
            text = text.replace(&format!("at = \"shm:{name}\""), &format!("at = {:?}", self.at(name)));
        }
        let path = self.0.join("beam.toml");
        std::fs::write(&path, text).unwrap();
        Job::of(&path).patient().start()
    }

    fn feed(&self, name: &str, arguments: &[&str]) -> Child {
        let mut feed = Command::new(program());
        feed.args(["feed", &self.at(name), "--record", &self.record(name)]).args(arguments);
        feed.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

const NAMES: [&str; 3] = ["tlu", "telescope", "device"];
const FIRST_ID: usize = 0x0051_0000;
const EVENTS: u64 = 2_000;
