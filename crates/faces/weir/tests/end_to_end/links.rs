//! Detectors that push: sources of unequal sizes send by themselves, and every byte of theirs is in the files or counted.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use eformat::Event;
use link::{Head, Order, Secret, Sender, Settings};
use nix::sys::signal::Signal;
use testkit::TempDir;

use crate::account::Summary;
use crate::files::{check_all, each_event, recorded};
use crate::running::{Job, Running};

#[test]
fn every_payload_of_three_unequal_sources_is_in_the_file() {
    for processes in [false, true] {
        let beam = Beam::new(processes);
        let running = beam.start();
        let sources = [(0, 40), (1, 3000), (2, 333)].map(|(place, len)| beam.source(place, len, Skips::Nothing));
        let (ended, summary) = running.end().expect_ok();
        let sent = sources.map(|source| source.join().unwrap());
        assert_eq!(summary.count("recorded"), EVENTS);
        check_all(ended.output());
        assert_eq!(in_files(ended.output()), together(&sent));
        for (place, link) in summary.0["links"].as_array().unwrap().iter().enumerate() {
            assert_eq!(link["name"], NAMES[place]);
            assert_eq!((link["fragments"].as_u64(), link["missing"].as_u64()), (Some(EVENTS), Some(0)), "{link}");
        }
    }
}

#[test]
fn sources_that_never_come_are_named_when_the_run_ends() {
    let beam = Beam::new(false);
    let ended = beam.job().with(&["--duration", "300ms"]).start().end().expect(0);
    let absent = format!("sources {} have not come", NAMES.join(", "));
    assert!(ended.stdout.contains(&format!("ok, residual 0; no trigger, as {absent}")), "{}", ended.stdout);
    let of_second = format!("level1-1 for ros-2: sources {}, {} have not come", NAMES[1], NAMES[2]);
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(&of_second), "{}", ended.stdout);
}

#[test]
fn a_number_that_a_source_skips_is_named_with_its_source() {
    let beam = Beam::new(false);
    let running = beam.start();
    let skips = [Skips::Nothing, Skips::Number(17), Skips::Nothing];
    let sources = [0, 1, 2].map(|place| beam.source(place, 100, skips[place]));
    let (ended, summary) = running.end().expect_degraded(&["built_incomplete"]);
    let sent = sources.map(|source| source.join().unwrap());
    assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (EVENTS, 1));
    assert_eq!(in_files(ended.output()), together(&sent));
    assert_eq!(missing(&summary), [0, 1, 0]);
}

#[test]
fn fragments_in_any_order_get_into_their_events_where_that_is_said() {
    let beam = Beam::new(false);
    let running = beam.job().set("source.1.ordered", "false").start();
    let skips = [Skips::Nothing, Skips::Order, Skips::Nothing];
    let sources = [0, 1, 2].map(|place| beam.source(place, 100, skips[place]));
    let (ended, summary) = running.end().expect_ok();
    let sent = sources.map(|source| source.join().unwrap());
    assert_eq!(in_files(ended.output()), together(&sent));
    assert_eq!((summary.count("recorded"), missing(&summary)), (EVENTS, vec![0; 3]));
}

#[test]
fn an_event_without_a_source_is_dropped_or_kept_apart_as_its_policy_says() {
    let causes = ["built_incomplete", "filter_debug"];
    for (policy, withheld, causes) in [("drop", [1, 0], &causes[..1]), ("debug-stream", [0, 1], &causes[..])] {
        let beam = Beam::new(false);
        let running = beam.start_with(&format!("on_missing = {policy:?}\n"));
        let skips = [Skips::Nothing, Skips::Number(17), Skips::Nothing];
        let sources = [0, 1, 2].map(|place| beam.source(place, 100, skips[place]));
        let (ended, summary) = running.end().expect_degraded(causes);
        sources.into_iter().for_each(|source| drop(source.join().unwrap()));
        let counted = ["dropped", "debug"].map(|key| summary.0["withheld"][key].as_u64().unwrap());
        assert_eq!((counted, summary.count("recorded")), (withheld, EVENTS - withheld[0]), "{policy}");
        let apart = recorded(ended.output());
        let apart = apart.iter().filter(|path| path.to_string_lossy().contains("debug_Incomplete"));
        assert_eq!(apart.count() as u64, withheld[1], "{policy}");
    }
}

#[test]
fn an_interrupt_ends_a_run_whose_sources_never_stop() {
    let beam = Beam::new(false);
    let mut running = beam.start();
    let sources = [0, 1, 2].map(|place| beam.source(place, 100, Skips::Stop));
    running.until_recording();
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_end();
    assert_eq!(summary.0["state"], "ok", "{summary:?}");
    sources.into_iter().for_each(|source| drop(source.join().unwrap()));
}

#[test]
fn who_does_not_know_the_key_is_turned_away_and_named() {
    let beam = Beam::new(false);
    let mut running = beam.start();
    let stranger = Settings { key: Some(Secret::new("another")), ..settings(0) };
    assert!(Sender::open(&beam.at(0), &stranger).is_err());
    running.until("it is told", |running| running.error_output().contains("source tlu: a visitor was turned away"));
    let sources = [0, 1, 2].map(|place| beam.source(place, 100, Skips::Nothing));
    running.end().expect_ok();
    sources.into_iter().for_each(|source| drop(source.join().unwrap()));
}

#[test]
fn a_source_that_counts_by_itself_goes_on_with_no_events_that_may_be_others() {
    let beam = Beam::new(false);
    let mut running = beam.start();
    beam.is_held.store(true, Relaxed);
    let others = [0, 2].map(|place| beam.source(place, 100, Skips::Nothing));
    let counted = beam.source(1, 100, Skips::Count(300));
    let counted = counted.join().unwrap();
    let again = Settings { patience: Duration::ZERO, ..settings(1) };
    let mut refused = String::new();
    running.until("it is turned away", |_| {
        refused = Sender::open(&beam.at(1), &again).err().map(|error| error.to_string()).unwrap_or_default();
        refused.contains("it counts by itself")
    });
    beam.is_held.store(false, Relaxed);
    let (ended, summary) = running.end().expect_degraded(&["built_incomplete"]);
    assert!(ended.stderr.contains("source telescope: a visitor was turned away: it counts by itself"), "{refused}");
    let sent = others.map(|source| source.join().unwrap());
    assert_eq!(missing(&summary), [0, EVENTS - 300, 0]);
    assert_eq!(in_files(ended.output()), together(&[&sent[..], &[counted]].concat()));
}

/// Two hundred marks with each fragment: a million within a few seconds.
#[test]
fn idle_marks_by_the_hundred_thousand_hold_nobody_up() {
    let beam = Beam::new(false);
    let running = beam.start();
    let skips = [Skips::Nothing, Skips::NoIdleMark, Skips::NoIdleMark];
    let sources = [0, 1, 2].map(|place| beam.source(place, 100, skips[place]));
    let (ended, summary) = running.end().expect_ok();
    let sent = sources.map(|source| source.join().unwrap());
    assert_eq!(in_files(ended.output()), together(&sent));
    assert_eq!(missing(&summary), [0; 3]);
}

#[test]
fn a_source_that_never_commits_is_missed_in_each_event_and_named() {
    let beam = Beam::new(false);
    let running = beam.job().set("ros.request_timeout", "5 ms").events(FEW).start();
    let skips = [Skips::Stop, Skips::Commit, Skips::Stop];
    let sources = [0, 1, 2].map(|place| beam.source(place, 100, skips[place]));
    let (_, summary) = running.end().expect_degraded(&["built_incomplete"]);
    assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (FEW, FEW));
    assert_eq!(missing(&summary), [0, FEW, 0]);
    sources.into_iter().for_each(|source| drop(source.join().unwrap()));
    assert_eq!(beam.left(), Vec::<PathBuf>::new());
}

#[test]
fn sources_that_fill_all_memory_are_held_back_and_lose_nothing() {
    let beam = Beam::new(false);
    let running = beam.job().set("ros.pages", "16").start();
    let sources = [(0, 40), (1, 3000), (2, 333)].map(|(place, len)| beam.source(place, len, Skips::Nothing));
    let (ended, summary) = running.end().expect_ok();
    let sent = sources.map(|source| source.join().unwrap());
    assert_eq!(in_files(ended.output()), together(&sent));
    assert_eq!(missing(&summary), [0; 3]);
    assert_eq!(beam.left(), Vec::<PathBuf>::new());
}

/// What a source keeps back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Skips {
    Nothing,
    /// It says after each fragment many times that no older one follows.
    NoIdleMark,
    /// It reserves, and never commits.
    Commit,
    Number(u64),
    /// The order of its numbers: of each eight the last comes first.
    Order,
    /// All numbers, and all behind so many fragments.
    Count(u64),
    /// The end: it goes on until the link is closed.
    Stop,
}

/// A test beam with three sources: two over shared memory, one over TCP.
struct Beam {
    directory: TempDir,
    port: u16,
    processes: bool,
    /// Whether sources wait in the middle.
    is_held: Arc<AtomicBool>,
}

impl Beam {
    fn new(processes: bool) -> Self {
        // The port is free when the run begins, as far as anybody can tell.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { directory: TempDir::new("beam"), port, processes, is_held: Arc::default() }
    }

    fn at(&self, place: usize) -> String {
        match place {
            2 => format!("tcp://127.0.0.1:{}", self.port),
            _ => format!("shm:{}/{}.sock", self.directory.path().display(), NAMES[place]),
        }
    }

    /// What lies where the sockets were.
    fn left(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path());
        all.filter(|path| path.extension().is_some_and(|extension| extension == "sock")).collect()
    }

    fn start(&self) -> Running {
        self.job().start()
    }

    /// With further keys of each source.
    fn start_with(&self, keys: &str) -> Running {
        self.job_with(keys).start()
    }

    fn job(&self) -> Job {
        self.job_with("")
    }

    fn job_with(&self, keys: &str) -> Job {
        let mut text = format!(
            "[partition]\nname = \"beam\"\nkey = {KEY:?}\n[level1]\nsource = \"link\"\n[ros]\ncount = 2\n[dfm]\n\
             [sfi]\ncount = 1\n[sfo]\ncount = 1\n"
        );
        for (place, name) in NAMES.iter().enumerate() {
            text += &format!("[[source]]\nname = {name:?}\nat = {:?}\n{keys}", self.at(place));
        }
        let path = self.directory.join("beam.toml");
        fs::write(&path, text).unwrap();
        Job::of(&path).patient().processes(self.processes)
    }

    /// Sends [`EVENTS`] fragments of about this length; each with its bytes.
    fn source(&self, place: usize, len: usize, skips: Skips) -> JoinHandle<Payloads> {
        let (at, is_held) = (self.at(place), Arc::clone(&self.is_held));
        thread::spawn(move || {
            let mut sender = Sender::open(&at, &settings(place)).unwrap();
            while !matches!(sender.wait(Duration::from_secs(60)).unwrap(), Order::Start { .. }) {}
            let last = match skips {
                Skips::Stop | Skips::Commit => u64::MAX,
                Skips::Count(count) => count,
                Skips::Nothing | Skips::NoIdleMark | Skips::Number(_) | Skips::Order => EVENTS,
            };
            let mut sent = Payloads::new();
            for number in (0..last).filter(|number| skips != Skips::Number(*number)) {
                while number == EVENTS / 2 && is_held.load(Relaxed) {
                    sender.wait(Duration::from_millis(10)).unwrap();
                }
                let number = if skips == Skips::Order { number ^ 7 } else { number };
                let payload = payload(place, number, len);
                loop {
                    if let Ok(Some(slot)) = sender.reserve(payload.len())
                        && skips != Skips::Commit
                    {
                        slot[..payload.len()].copy_from_slice(&payload);
                        break;
                    }
                    if sender.wait(Duration::from_millis(10)).is_ok_and(|order| order != Order::Closed) {
                        continue;
                    }
                    return sent;
                }
                let number_said = Some(number).filter(|_| !matches!(skips, Skips::Count(_)));
                let head = Head { number: number_said, ..Head::default() };
                if sender.commit(&head, payload.len()).is_err() {
                    return sent;
                }
                for _ in 0..if skips == Skips::NoIdleMark { MARKS } else { 0 } {
                    if sender.idle(number + 1, 0).is_err() {
                        return sent;
                    }
                }
                if last != u64::MAX {
                    sent.insert((number, FIRST_ID + place as u32), payload);
                }
            }
            if matches!(skips, Skips::Count(_)) {
                sender.flush().unwrap();
                return sent;
            }
            sender.end().unwrap();
            sender.flush().unwrap();
            while sender.wait(Duration::from_secs(60)).is_ok_and(|order| order != Order::Closed) {}
            sent
        })
    }
}

/// Payloads by event and source.
pub(crate) type Payloads = BTreeMap<(u64, u32), Vec<u8>>;

fn settings(place: usize) -> Settings {
    Settings { name: NAMES[place].into(), id: None, key: Some(Secret::new(KEY)), patience: Duration::from_secs(60) }
}

/// Of no length in whole words, and different everywhere.
fn payload(place: usize, number: u64, len: usize) -> Vec<u8> {
    let len = len + (number as usize * 7 + place) % 5;
    (0..len).map(|at| (at as u64 * 31 + number * 131 + place as u64) as u8).collect()
}

fn together(sent: &[Payloads]) -> Payloads {
    sent.iter().flat_map(Clone::clone).collect()
}

/// What the files hold, cut to the length that each source has said.
pub(crate) fn in_files(output: &Path) -> Payloads {
    in_some(&recorded(output), |_| {})
}

/// The same of one run, whose number all events have.
pub(crate) fn in_run(output: &Path, run: u32) -> Payloads {
    let name = format!(".{run:08}.");
    let of_run = recorded(output).into_iter().filter(|path| path.to_str().is_some_and(|path| path.contains(&name)));
    in_some(&of_run.collect::<Vec<_>>(), |event| assert_eq!(event.run_number(), run))
}

fn in_some(files: &[PathBuf], look: impl Fn(&Event<'_>)) -> Payloads {
    let mut found = Payloads::new();
    for file in files {
        each_event(file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            look(&event);
            let payload = event.unpacked_payload(64 << 20).unwrap();
            for rob in event.robs(&payload) {
                let rob = rob.unwrap();
                let rod = rob.rod().unwrap();
                if rob.status().0 == 0 {
                    let data = rod.data()[..rod.event_type() as usize].to_vec();
                    found.insert((event.global_id(), rob.source_id().0), data);
                }
            }
        });
    }
    found
}

fn missing(summary: &Summary) -> Vec<u64> {
    summary.0["links"].as_array().unwrap().iter().map(|link| link["missing"].as_u64().unwrap()).collect()
}

const NAMES: [&str; 3] = ["tlu", "telescope", "device"];
const KEY: &str = "a key of the test beam";
const FIRST_ID: u32 = 0x0051_0000;
const EVENTS: u64 = 2_000;
const FEW: u64 = 50;
const MARKS: u32 = 250;
