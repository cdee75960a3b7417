//! Level-1 processors outside: `weir feed --level1` triggers runs, dies, returns, and is held back.

use std::fs;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use testkit::TempDir;

use crate::account::Summary;
use crate::files::check_all;
use crate::running::{Job, Running, program, send};

const KEY: &str = "a key of processors";

/// A partition that two processors trigger: one over shared memory, one over TCP.
struct Outside {
    directory: TempDir,
    port: u16,
}

impl Outside {
    fn new() -> Self {
        let directory = TempDir::new("outside");
        fs::write(directory.join("key"), KEY).unwrap();
        // The port is free when the run begins, as far as anybody can tell.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        Self { directory, port: listener.local_addr().unwrap().port() }
    }

    fn at(&self, name: &str) -> String {
        match name {
            "muon" => format!("tcp://127.0.0.1:{}", self.port),
            _ => format!("shm:{}/{name}.sock", self.directory.path().display()),
        }
    }

    /// With level 2, or with a detector that pushes.
    fn job(&self, calo: &str, pushes: bool) -> Job {
        let mut text = format!("[partition]\nname = \"outside\"\nkey = {KEY:?}\n[level1]\nsource = \"external\"\n");
        for (name, more) in [("calo", calo), ("muon", "")] {
            text += &format!("[[level1.processor]]\nname = {name:?}\nat = {:?}\n{more}", self.at(name));
        }
        text += "[dfm]\n[sfi]\ncount = 1\n[sfo]\ncount = 1\n[ros]\ncount = 2\n";
        text += &if pushes {
            let sources = ["one", "two"].map(|name| format!("[[source]]\nname = {name:?}\nat = {:?}\n", self.at(name)));
            format!("input = \"links\"\n{}", sources.concat())
        } else {
            "robs = 2\n[l2sv]\n[l2pu]\naccept = \"50 %\"\nstrategy = \"generate\"\n".to_owned()
        };
        let path = self.directory.join("outside.toml");
        fs::write(&path, text).unwrap();
        Job::of(&path).patient()
    }

    fn feed(&self, name: &str, arguments: &[&str]) -> Child {
        let mut command = Command::new(program());
        command.args(["feed", &self.at(name), "--name", name, "--key-file"]).arg(self.directory.join("key"));
        if ["calo", "muon"].contains(&name) {
            command.arg("--level1");
        }
        command.args(arguments).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn link<'a>(summary: &'a Summary, name: &str) -> &'a serde_json::Value {
    summary.0["links"].as_array().unwrap().iter().find(|link| link["name"] == name).unwrap()
}

#[test]
fn processors_of_their_own_trigger_level_2_and_end_the_run() {
    let outside = Outside::new();
    let running = outside.job("", false).set("level1.join_timeout", "60 s").processes(true).start();
    let feeds = [
        outside.feed("calo", &["--count", "2000", "--skip", "7", "--skip", "100"]),
        outside.feed("muon", &["--count", "2000", "--skip", "100", "--double", "50", "--rois", "1"]),
    ];
    let (ended, summary) = running.end().expect_ok();
    for feed in feeds {
        let feed = feed.wait_with_output().unwrap();
        assert!(feed.status.success(), "{feed:?}");
    }
    check_all(ended.output());
    assert_eq!((summary.count("level1"), summary.count("residual")), (1999, 0), "the number 100 is a gap");
    let count = |name: &str, key: &str| link(&summary, name)[key].as_u64().unwrap();
    assert_eq!((count("calo", "kept"), count("calo", "missing")), (1998, 1));
    assert_eq!((count("muon", "kept"), count("muon", "missing"), count("muon", "doubled")), (1999, 0, 1));
    assert_eq!(link(&summary, "calo")["state"], "ended");
}

#[test]
fn a_processor_outside_triggers_detectors_that_push() {
    let outside = Outside::new();
    let running = outside.job("", true).set("level1.join_timeout", "60 s").start();
    let feeds = ["one", "two", "calo", "muon"].map(|name| outside.feed(name, &["--count", "1000", "--first", "70000"]));
    let (ended, summary) = running.end().expect_ok();
    for feed in feeds {
        assert!(feed.wait_with_output().unwrap().status.success());
    }
    check_all(ended.output());
    assert_eq!((summary.count("level1"), summary.count("recorded")), (1000, 1000));
    assert_eq!(summary.count("built_incomplete"), 0);
}

#[test]
fn processors_and_detectors_that_push_stay_for_the_next_run() {
    for processes in [false, true] {
        let outside = Outside::new();
        let job = outside.job("", true).set("level1.join_timeout", "60 s").with(&["--runs", "2"]).processes(processes);
        let running = job.start();
        let feeds = ["one", "two", "calo", "muon"].map(|name| outside.feed(name, &["--count", "1000"]));
        let ended = running.end().expect(0);
        for feed in feeds {
            let feed = feed.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&feed.stderr);
            assert!(feed.status.success() && said.contains(": 2000 fragments"), "{said}\n{}", ended.stderr);
        }
        check_all(ended.output());
        assert_eq!(ended.stdout.matches(": ok, residual 0").count(), 2, "{}\n{}", ended.stdout, ended.stderr);
    }
}

/// It dies in the middle, returns or does not, somebody is busy or not, and the run is stopped at any time: no stop hangs.
#[test]
fn a_processor_that_dies_is_waited_for_or_not_and_no_stop_hangs() {
    for (round, policy) in ["stop", "wait", "go-on", "wait"].iter().enumerate() {
        let outside = Outside::new();
        let mut job = outside.job(&format!("on_loss = {policy:?}\n"), false).endless();
        if round % 2 == 0 {
            // One event at a time: the partition is busy all the time.
            job = job.set("l2pu.cost", "2 ms").set("level1.in_flight", "1").set("l2pu.workers", "1");
        }
        let mut running = job.start();
        let mut calo = outside.feed("calo", &[]);
        let mut muon = outside.feed("muon", &[]);
        running.until_recording();
        send(calo.id() as i32, Signal::SIGKILL);
        calo.wait().unwrap();
        running.until("it is missed", |running: &Running| {
            running.error_output().contains("level-1 processor calo is lost")
        });
        if round == 3 {
            calo = outside.feed("calo", &["--first", "1000000"]);
            running.until_more_is_recorded();
        }
        if *policy != "stop" {
            running.signal(Signal::SIGINT);
        }
        let (_, summary) = running.end().expect_end();
        assert_eq!((summary.0["state"].as_str(), summary.count("residual")), (Some("ok"), 0), "{policy}: {summary:?}");
        let expected = match round {
            0 | 2 => &["lost", "down"][..],
            1 => &["down"],
            _ => &["ended"],
        };
        let state = link(&summary, "calo")["state"].as_str().unwrap();
        assert!(expected.contains(&state), "{policy}: {state}");
        calo.wait().unwrap();
        muon.wait().unwrap();
    }
}

#[test]
fn who_proves_no_key_is_no_processor() {
    let outside = Outside::new();
    let mut running = outside.job("", false).endless().start();
    fs::write(outside.directory.join("key"), "another one").unwrap();
    let stranger = outside.feed("muon", &[]).wait_with_output().unwrap();
    assert!(!stranger.status.success(), "{stranger:?}");
    running.until("it is told", |running| {
        running.error_output().contains("level-1 processor muon: a visitor was turned away")
    });
    running.signal(Signal::SIGINT);
    running.end().expect_end();
}

/// A test beam of emulated devices with trigger logic units: one by one, a lost trigger, and T0 that comes late.
#[test]
fn devices_with_trigger_logic_units_are_matched_and_breaches_are_named() {
    let directory = TempDir::new("tlu");
    let at = |name: &str| format!("shm:{}/{name}.sock", directory.path().display());
    let names = [("tlu", "eudet"), ("telescope", "eudet"), ("clock", "aida"), ("both", "aida-number")];
    let mut text =
        "[partition]\nname = \"tlu\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[sfi]\ncount = 1\n[sfo]\n"
            .to_owned();
    for (name, handshake) in names {
        text += &format!("[[source]]\nname = {name:?}\nat = {:?}\nhandshake = {handshake:?}\n", at(name));
    }
    let path = directory.join("tlu.toml");
    fs::write(&path, text).unwrap();
    let running = Job::of(&path).patient().start();
    let feeds = names.map(|(name, handshake)| {
        let mut command = Command::new(program());
        command.args(["feed", &at(name), "--handshake", handshake, "--size", "40 B"]);
        command.args(match name {
            "telescope" => &["--count", "200", "--skip", "50"][..],
            "clock" => &["--count", "205", "--t0-after", "5"],
            _ => &["--count", "200"],
        });
        command.stderr(Stdio::piped()).spawn().unwrap()
    });
    let (ended, summary) = running.end().expect_degraded(&["built_incomplete"]);
    for feed in feeds {
        let feed = feed.wait_with_output().unwrap();
        assert!(feed.status.success(), "{feed:?}");
    }
    check_all(ended.output());
    assert_eq!((summary.count("level1"), summary.count("built_incomplete")), (200, 1));
    assert_eq!(link(&summary, "telescope")["missing"], 1);
    assert_eq!(
        (&link(&summary, "clock")["device"]["outside"], &link(&summary, "clock")["missing"]),
        (&5.into(), &0.into())
    );
    for expected in [
        "source clock, event 0: a fragment before T0 is dropped",
        "source telescope, event 51: expected the number 50: triggers that the source has lost: 1",
    ] {
        assert!(ended.stderr.contains(expected), "{expected} in {}", ended.stderr);
    }
}
