//! `weir feed --config`: processes of their own send what the input of a configuration has. What they send is recorded as if the
//! partition had read that input itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use eformat::Event;
use testkit::TempDir;

use crate::files::{check_all, events, recorded};
use crate::running::{Job, examples, program};

/// The data of some ROBs, by event.
pub(crate) type Data = BTreeMap<u64, BTreeMap<u32, Vec<u8>>>;

const EVENTS: u64 = 150;

#[test]
fn played_detectors_and_triggers_of_a_sample_are_recorded_as_the_sample() {
    let directory = TempDir::new("played");
    let input = format!("[input]\nfiles = [{:?}]\n", examples().join("data/zee_mu0.parquet"));
    let chain = "[dfm]\n[sfi]\ncount = 1\n[sfo]\ncount = 1\n[ef]\ncount = 1\n";
    let itself = directory.join("itself.toml");
    let text = format!(
        "[partition]\nname = \"itself\"\n{input}[level1]\nsource = \"sample\"\n[ros]\ncount = 2\ninput = \"sample\"\n{chain}"
    );
    fs::write(&itself, text).unwrap();
    let (ended, _) = Job::of(&itself).events(EVENTS).run().expect_ok();
    let all = data(ended.output());
    let first = all.values().next().unwrap();
    let robs: Vec<u32> = first.iter().filter(|(_, data)| data.len() > 8).map(|(rob, _)| *rob).take(3).collect();
    assert_eq!(robs.len(), 3);

    let played = Played::of(&directory, &robs, "source = \"external\"\n[[level1.processor]]\nname = \"level1\"\n");
    let running = Job::of(&played.path).patient().start();
    let count = EVENTS.to_string();
    let mut feeds = vec![played.feed("level1", &itself, &["--level1", "--count", &count])];
    feeds.extend(robs.iter().map(|rob| played.feed_rob(*rob, &itself, &["--count", &count])));
    let (ended, summary) = running.end().expect_ok();
    feeds.into_iter().for_each(expect_well);
    assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (EVENTS, 0));
    check_all(ended.output());
    let some = all.into_iter().map(|(event, mut of)| {
        of.retain(|rob, _| robs.contains(rob));
        (event, of)
    });
    assert_eq!(data(ended.output()), some.collect::<Data>());
}

#[test]
fn a_played_file_that_leads_ends_the_run_with_its_last_event() {
    let directory = TempDir::new("played");
    let input = examples().join("replay.toml");
    let original = examples().join("data/replay.data");
    let all = data_of(&[original]);
    let in_all = |rob: &u32| all.values().all(|of| of.contains_key(rob));
    let robs: Vec<u32> = all.values().next().unwrap().keys().copied().filter(in_all).take(2).collect();
    let played = Played::of(&directory, &robs, &format!("source = \"link\"\nleader = \"{:#x}\"\n", robs[0]));
    let running = Job::of(&played.path).patient().start();
    let feeds: Vec<Child> = robs.iter().map(|rob| played.feed_rob(*rob, &input, &[])).collect();
    let (ended, summary) = running.end().expect_ok();
    feeds.into_iter().for_each(expect_well);
    assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (all.len() as u64, 0));
    let came: Vec<_> = data(ended.output()).into_values().collect();
    let some = all.into_values().map(|mut of| {
        of.retain(|rob, _| robs.contains(rob));
        of
    });
    assert_eq!(came, some.collect::<Vec<_>>());
}

#[test]
fn a_feed_says_what_it_cannot_play() {
    let config = examples().join("replay.toml");
    let quickstart = examples().join("test-beam.toml");
    for (config, arguments, words) in [
        (&config, &["--rob", "0x12"][..], "--rob 0x12: expected a ROB of the input: 0x"),
        (&config, &["--rob", "twelve"], "expected a source identifier, such as 0x410003, found \"twelve\""),
        (&config, &[], "expected --rob with one of 0x"),
        (&config, &["--set", "input.files=[\"none.data\"]", "--rob", "0x12"], "none.data"),
        (&quickstart, &["--level1"], "level1.source has no triggers to play"),
        (&quickstart, &["--rob", "0x510000"], "ros.input = \"links\""),
    ] {
        let mut feed = Command::new(program());
        feed.args(["feed", "shm:nobody", "--config"]).arg(config).args(arguments);
        let told = feed.output().unwrap();
        let error = String::from_utf8_lossy(&told.stderr);
        assert_eq!(told.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains(words), "{arguments:?}: {error}");
    }
}

/// A partition whose sources have the names of their ROBs.
struct Played<'a> {
    directory: &'a TempDir,
    path: std::path::PathBuf,
}

impl<'a> Played<'a> {
    fn of(directory: &'a TempDir, robs: &[u32], level1: &str) -> Self {
        let at = |name: &str| format!("shm:{}/{name}.sock", directory.path().display());
        let mut text = format!("[partition]\nname = \"played\"\n[level1]\n{level1}");
        if level1.contains("processor") {
            text += &format!("at = {:?}\n", at("level1"));
        }
        for rob in robs {
            let name = format!("{rob:#x}");
            text += &format!("[[source]]\nname = {name:?}\nid = {rob}\nat = {:?}\n", at(&name));
        }
        text += "[ros]\ncount = 1\ninput = \"links\"\n[dfm]\n[sfi]\ncount = 1\n[sfo]\ncount = 1\norder = \"event\"\n";
        let path = directory.join("played.toml");
        fs::write(&path, text).unwrap();
        Self { directory, path }
    }

    fn feed(&self, name: &str, config: &Path, arguments: &[&str]) -> Child {
        let at = format!("shm:{}/{name}.sock", self.directory.path().display());
        let mut feed = Command::new(program());
        feed.args(["feed", &at, "--name", name, "--config"]).arg(config).args(arguments);
        feed.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn feed_rob(&self, rob: u32, config: &Path, arguments: &[&str]) -> Child {
        let rob = format!("{rob:#x}");
        self.feed(&rob, config, &[&["--rob", &rob], arguments].concat())
    }
}

fn expect_well(feed: Child) {
    let told = feed.wait_with_output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}

pub(crate) fn data(output: &Path) -> Data {
    data_of(&recorded(output))
}

/// By the global number of the event.
pub(crate) fn data_of(files: &[std::path::PathBuf]) -> Data {
    let of = |bytes: &Vec<u8>| {
        let event = Event::parse(bytes).unwrap();
        let payload = event.unpacked_payload(64 << 20).unwrap();
        let robs = event.robs(&payload).map(|rob| {
            let rob = rob.unwrap();
            (rob.source_id().0, rob.rod().unwrap().data().to_vec())
        });
        (event.global_id(), robs.collect())
    };
    events(files).iter().map(of).collect()
}
