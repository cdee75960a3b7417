//! The example of a test beam: a TLU leads, a telescope says its numbers, and a device says times alone. For each trigger a reader that
//! is not ours finds in the files what the sources wrote down themselves.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testkit::TempDir;

use crate::account::Summary;
use crate::files::check_all;
use crate::running::{Ended, Job, examples, program};

#[test]
fn an_independent_reader_finds_for_each_trigger_what_its_sources_wrote_down() {
    for (readouts, processes) in [("1", false), ("3", true)] {
        let mut beam = Beam::new();
        beam.feed("tlu", &["--size", "40 B"]);
        beam.feed("telescope", &["--size", "3 kB", "--spread", "exponential", "--drift", "-5"]);
        beam.feed("device", &["--size", "300 B", "--no-number", "--efficiency", "80 %", "--drift", "10"]);
        let (ended, summary) = beam.run(readouts, processes).expect_ok();
        beam.wait();
        check_all(ended.output());
        assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (EVENTS, 0));
        let said = beam.read(&ended, 0..0);
        let hits: u64 = said.split(' ').nth(2).unwrap().parse().unwrap();
        assert!((EVENTS * 7 / 10..EVENTS * 9 / 10).contains(&hits), "{said}");
        let device = &summary.0["links"][2];
        assert_eq!((device["fragments"].as_u64(), device["kept"].as_u64()), (Some(hits), Some(hits)), "{device}");
        assert_eq!((device["missing"].as_u64(), device["late"].as_u64()), (Some(0), Some(0)), "{device}");
        clock(&summary, 1, -5_000_000);
        clock(&summary, 2, 10_000_000);
    }
}

/// The TLU, which leads, is at another read-out system.
#[test]
fn a_trigger_that_a_source_has_lost_is_located_wherever_the_leader_is() {
    let mut beam = Beam::new();
    beam.feed("tlu", &[]);
    beam.feed("telescope", &["--repeat-number", "2000", "--drift", "10"]);
    beam.feed("device", &["--no-number"]);
    let (ended, summary) = beam.run("3", false).expect_end();
    beam.wait();
    let slip =
        "source telescope slips: from its event 1999 on its times are those of event number +1; triggers lost: 1";
    assert!(ended.stderr.contains(slip) && ended.stderr.matches(" slips: ").count() == 1, "{}", ended.stderr);
    let clock = &summary.0["links"][1]["clock"];
    assert_eq!(["slips", "slipped_at", "shift"].map(|key| clock[key].as_i64()), [Some(1), Some(1999), Some(1)]);
}

#[test]
fn a_clock_that_steps_by_a_millisecond_is_followed_by_its_times_alone() {
    let mut beam = Beam::new();
    beam.feed("tlu", &[]);
    beam.feed("telescope", &["--clock-step", "2000:1 ms"]);
    beam.feed("device", &["--no-number", "--drift", "10", "--clock-step", "3000:1 ms"]);
    let (ended, summary) = beam.run("2", false).expect_ok();
    beam.wait();
    assert!(ended.stderr.contains("source device: its clock has stepped by +"), "{}", ended.stderr);
    // The triggers that were decided before its step was certain: at 1 kHz, those of 1.5 s on a busy machine.
    beam.read(&ended, 3_000..4_500);
    for place in [1, 2] {
        assert_eq!(summary.0["links"][place]["clock"]["steps"], 1, "{summary:?}");
    }
    clock(&summary, 2, 10_000_000);
}

fn clock(summary: &Summary, place: usize, drift: i64) {
    let link = &summary.0["links"][place];
    let found = link["clock"]["drift_ppt"].as_i64().unwrap();
    assert!((found - drift).abs() < 1_000_000, "{link}");
}

/// The example with its sources.
struct Beam {
    directory: TempDir,
    job: Option<Job>,
    feeds: Vec<Child>,
}

impl Beam {
    fn new() -> Self {
        let directory = TempDir::new("test-beam");
        let text = fs::read_to_string(examples().join("test-beam.toml")).unwrap();
        let at = format!("shm:{}/", directory.path().display());
        let path = directory.join("test-beam.toml");
        fs::write(&path, text.replace("at = \"shm:", &format!("at = \"{at}"))).unwrap();
        Self { job: Some(Job::of(&path).with(&["--await-sources"]).patient()), directory, feeds: Vec::new() }
    }

    fn record(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn feed(&mut self, name: &str, arguments: &[&str]) {
        let mut feed = Command::new(program());
        let at = format!("shm:{}/{name}", self.directory.path().display());
        feed.args(["feed", &at, "--beam", "1 kHz", "--count", &EVENTS.to_string(), "--seed", &name.len().to_string()]);
        feed.arg("--record").arg(self.record(&format!("{name}.record"))).args(arguments);
        self.feeds.push(feed.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    fn run(&mut self, readouts: &str, processes: bool) -> Ended {
        let job = self.job.take().expect("one run").set("level1.grace", "60 s");
        job.set("ros.count", readouts).processes(processes).run()
    }

    fn wait(&mut self) {
        self.feeds.iter_mut().for_each(|feed| assert!(feed.wait().unwrap().success()));
    }

    /// What the independent reader says; these events may have other data of the device. It needs no packages.
    fn read(&self, ended: &Ended, spared: Range<u64>) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/test_beam.py");
        let mut reader = Command::new("python3");
        reader.arg(script).arg(ended.output()).args([spared.start, spared.end].map(|event| event.to_string()));
        for name in ["tlu", "telescope", "device"] {
            reader.arg(format!("{name}={}", self.record(&format!("{name}.record")).display()));
        }
        let told = reader.output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        String::from_utf8(told.stdout).unwrap()
    }
}

const EVENTS: u64 = 5_000;
