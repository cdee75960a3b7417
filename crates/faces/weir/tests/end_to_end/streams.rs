//! Several streams: every event is in each of its streams once, and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use eformat::stream_tag::{Entry, decode};
use eformat::{Event, EventStatus, SubDetector};
use nix::sys::signal::Signal;
use storage::FileReader;

use crate::account::Summary;
use crate::files::recorded;
use crate::full_disk::SmallDisk;
use crate::restart::names;
use crate::running::{Job, Running, program, send};

#[test]
fn every_event_is_in_each_of_its_streams_once() {
    for (processes, overrides) in [
        (false, [("sfo.compression", "none"), ("sfo.max_file_events", "0")]),
        (false, [("sfo.compression", "zlib"), ("sfo.max_file_events", "70")]),
        (true, [("sfo.durable", "fsync"), ("sfo.max_file_events", "70")]),
    ] {
        let job = overrides.iter().fold(job(), |job, (key, value)| job.set(key, value));
        let (ended, summary) = job.events(1500).processes(processes).run().expect_ok();
        let copies = Copies::read(ended.output());
        copies.check(&summary);
        let main = copies.count("physics_Main");
        assert_eq!(main, summary.count("recorded"), "every accepted event is in the main stream");
        for (stream, prescale) in [("express_quick", 4), ("calibration_em", 2)] {
            let share = copies.count(stream) as f64 * f64::from(prescale) / main as f64;
            assert!((0.5..2.0).contains(&share), "{stream}: {share}");
        }
        assert_eq!(copies.count("monitoring_asked"), 0, "nobody asked for it");
        let listed: BTreeSet<_> =
            summary.0["files"].as_array().unwrap().iter().map(|file| file["stream"].as_str().unwrap()).collect();
        assert_eq!(listed, ["physics_Main", "express_quick", "calibration_em"].into());
        check_command(ended.output());
    }
}

#[test]
fn no_file_is_larger_than_its_limit() {
    let job = Job::example("event-builder").patient().set("ef.policy", "accept").set("sfo.stream", "physics_Main");
    let ended = job.set("sfo.max_file_size", "1 MB").events(100).run().expect(0);
    let sizes: Vec<u64> = recorded(ended.output()).iter().map(|path| fs::metadata(path).unwrap().len()).collect();
    assert!(sizes.len() > 3 && sizes.iter().all(|bytes| *bytes <= 1_000_000), "{sizes:?}");
    // One more event has 36 kB.
    assert!(sizes[..sizes.len() - 1].iter().all(|bytes| *bytes > 960_000), "{sizes:?}");
}

/// What `weir file ls` and `weir file dump` say of the streams.
fn check_command(output: &Path) {
    let files = recorded(output);
    let told = |verb: &str| {
        let output = Command::new(program()).args(["file", verb]).args(&files).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (ls, dump) = (told("ls"), told("dump"));
    for stream in ["physics_Main", "express_quick", "calibration_em"] {
        assert!(ls.contains(stream) && dump.contains(stream), "{stream}");
    }
}

#[test]
fn an_event_that_no_stream_takes_is_rejected() {
    let job = Job::example("quickstart").patient().set("ros.count", "2").set("sfo", "{}");
    let job = job.set("stream", r#"[{name="few",prescale=5},{type="express",name="asked",by_name=true}]"#);
    let (ended, summary) = job.events(1000).run().expect_ok();
    let copies = Copies::read(ended.output());
    copies.check(&summary);
    let built = summary.count("built_complete");
    assert!(summary.count("filter_rejected") > built / 2, "{summary:?}");
    assert_eq!(copies.count("physics_few"), summary.count("filter_accepted"));
}

#[test]
fn a_full_disk_leaves_each_event_in_each_stream_once() {
    for processes in [false, true] {
        let Some(disk) = SmallDisk::new("a_full_disk_leaves_each_event_in_each_stream_once") else { return };
        let filler = disk.fill();
        let job = job().events(400).processes(processes).recording_into(disk.output());
        let mut running = job.start();
        running.until("it is said", |running| running.error_output().contains("stalled"));
        fs::remove_file(filler).unwrap();
        let (ended, summary) = running.end().expect_ok();
        Copies::read(ended.output()).check(&summary);
    }
}

#[test]
fn a_forced_end_on_a_full_disk_leaves_no_event_half_recorded() {
    let Some(disk) = SmallDisk::new("a_forced_end_on_a_full_disk_leaves_no_event_half_recorded") else { return };
    disk.fill();
    let job = job().set("run.stop_timeout", "2 s").endless();
    let mut running = job.recording_into(disk.output()).start();
    running.until("it is said", |running| running.error_output().contains("stalled"));
    running.signal(Signal::SIGINT);
    let (ended, summary) = running.end().expect_aborted(&["did not drain"]);
    Copies::read(ended.output()).check(&summary);
}

#[test]
fn distinct_events_are_known_when_the_recorder_died() {
    let job = job().set("run.stop_timeout", "5 s").endless().processes(true);
    let mut running = job.start();
    running.until_recording();
    send(running.child("sfo-1"), Signal::SIGKILL);
    let (ended, summary) = running.end().expect_aborted(&["sfo-1", "SIGKILL"]);
    let copies = Copies::read(ended.output());
    assert_eq!(copies.streams_of.len() as u64, summary.count("recorded"), "{summary:?}");
    assert!(summary.count("recorded_copies") > summary.count("recorded"), "{summary:?}");
    // The event in hand may lack the copies that had still to be written.
    let incomplete = copies.tags_of.iter().filter(|(event, tags)| copies.streams_of[event] != **tags).count();
    assert!(incomplete <= 1, "{incomplete}");
}

#[test]
fn a_recorder_that_cannot_return_leaves_each_event_in_all_its_streams_or_in_none() {
    let job = job().set("processes.on_loss", "restart").set("processes.restarts", "1").set("run.stop_timeout", "5 s");
    let mut running = job.endless().processes(true).start();
    running.until_more_is_recorded();
    send(running.child("sfo-1"), Signal::SIGKILL);
    running.until("it is back", |running| running.error_output().contains("sfo-1 is back"));
    running.until_more_is_recorded();
    send(running.child("sfo-1"), Signal::SIGKILL);
    let (ended, summary) = running.end().expect_aborted(&["sfo-1", "SIGKILL", "processes.restarts"]);
    Copies::read(ended.output()).check(&summary);
    assert!(summary.count("recorded") > 0, "{summary:?}");
    let names = names(ended.output());
    assert!(names.iter().all(|name| name.ends_with(".data")), "{names:?}");
}

#[test]
fn a_recorder_that_returns_leaves_each_event_in_each_stream_once() {
    for overrides in [
        [("sfo.compression", "zlib"), ("sfo.durable", "write")],
        [("sfo.compression", "none"), ("sfo.durable", "fsync")],
    ] {
        let job = overrides.iter().fold(job(), |job, (key, value)| job.set(key, value));
        let job = job.set("processes.on_loss", "restart").set("sfo.max_file_events", "70");
        let mut running = job.endless().processes(true).start();
        for death in 1..=2 {
            running.until_more_is_recorded();
            send(running.child("sfo-1"), Signal::SIGKILL);
            let is_back = move |running: &Running| running.error_output().matches("sfo-1 is back").count() == death;
            running.until("it is back", is_back);
        }
        running.until_more_is_recorded();
        running.signal(Signal::SIGINT);
        let (ended, summary) = running.end().expect_end();
        Copies::read(ended.output()).check(&summary);
        assert_eq!(summary.count("lost_in_recording"), 0, "{summary:?}");
        let names = names(ended.output());
        assert!(names.iter().all(|name| name.ends_with(".data")), "{names:?}");
    }
}

#[test]
fn a_recorder_that_returns_to_a_full_disk_waits_for_room() {
    let Some(disk) = SmallDisk::new("a_recorder_that_returns_to_a_full_disk_waits_for_room") else { return };
    let filler = disk.fill();
    let job = job().set("processes.on_loss", "restart").set("run.stop_timeout", "60 s").events(600).processes(true);
    let mut running = job.recording_into(disk.output()).start();
    running.until("it is said", |running| running.error_output().contains("stalled"));
    send(running.child("sfo-1"), Signal::SIGKILL);
    running.until("it is back", |running| running.error_output().contains("sfo-1 is back"));
    // The first one may have stalled more than once: where there is no room for an event, there may be some for a smaller one.
    running.until("it is full for the second one", |running| {
        let said = running.error_output();
        said.split_once("sfo-1 died").is_some_and(|(_, said)| said.contains("stalled"))
    });
    fs::remove_file(filler).unwrap();
    let (ended, summary) = running.end().expect_end();
    Copies::read(ended.output()).check(&summary);
    assert_eq!(summary.count("lost_in_recording"), 0, "{summary:?}");
}

#[test]
fn a_stream_of_no_rob_is_refused_as_the_run_begins() {
    for processes in [false, true] {
        let job = Job::example("quickstart").set("sfo", "{}").processes(processes);
        let job = job.set("stream", r#"[{type="calibration",name="csc",robs=["MUON_CSC_ENDCAP_A_SIDE"]}]"#);
        let ended = job.events(10).run().expect(2);
        let expected = "stream.0.robs: no ROB of this run is in MUON_CSC_ENDCAP_A_SIDE; expected some of";
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

fn job() -> Job {
    let streams = r#"[{name="Main"},{type="express",name="quick",prescale=4},
        {type="calibration",name="em",prescale=2,robs=["LAR_EM_BARREL_A_SIDE"]},
        {type="monitoring",name="asked",by_name=true}]"#;
    Job::example("quickstart").patient().set("ros.count", "2").set("sfo", "{}").set("stream", streams)
}

/// All copies of all events in the files of a run.
struct Copies {
    /// The streams in which an event was found, by its number.
    streams_of: BTreeMap<u64, BTreeSet<String>>,
    /// The streams that the event names, the same in all its copies.
    tags_of: BTreeMap<u64, BTreeSet<String>>,
    copies: u64,
}

/// Source identifier and bytes of each ROB of an event.
type RobBytes = Vec<(u32, Vec<u8>)>;

impl Copies {
    fn read(output: &Path) -> Self {
        let mut copies = Self { streams_of: BTreeMap::new(), tags_of: BTreeMap::new(), copies: 0 };
        let mut full: BTreeMap<u64, RobBytes> = BTreeMap::new();
        let mut partial: BTreeMap<u64, RobBytes> = BTreeMap::new();
        for path in recorded(output) {
            let mut reader = FileReader::open(&path).unwrap();
            let stream = reader.header().metadata.as_ref().unwrap().value("Stream").unwrap().to_owned();
            while let Some(event) = reader.next_event().unwrap() {
                let event = Event::parse(event.bytes).unwrap();
                copies.add(&stream, &event);
                let is_partial = event.status().as_event().contains(EventStatus::PARTIAL);
                assert_eq!(is_partial, stream == "calibration_em", "{stream}");
                let known = if is_partial { &mut partial } else { &mut full };
                let robs = robs_of(&event);
                let before = known.insert(event.global_id(), robs.clone());
                assert!(before.is_none_or(|before| before == robs), "full copies have the same fragments");
            }
        }
        for (event, part) in partial {
            assert!(part.iter().any(|(rob, _)| rob >> 16 == u32::from(SubDetector::LAR_EM_BARREL_A_SIDE.0)));
            // A recorder that died may have had no time for the full copy; it is written first, so there is one.
            let mut expected = full[&event].clone();
            expected.retain(|(rob, _)| PARTIAL.contains(&(rob >> 16)));
            assert_eq!(part, expected, "event {event}");
        }
        copies
    }

    fn add(&mut self, stream: &str, event: &Event<'_>) {
        self.copies += 1;
        let id = event.global_id();
        let entries = decode(event.stream_tags());
        let tags = entries.iter().map(|entry| match entry {
            Entry::Tag(tag) => format!("{}_{}", tag.stream_type(), tag.name()),
            Entry::Foreign(text) => panic!("{text:?}"),
        });
        let tags: BTreeSet<String> = tags.collect();
        assert!(tags.contains(stream), "{stream} in {tags:?}");
        assert!(self.streams_of.entry(id).or_default().insert(stream.to_owned()), "event {id} twice in {stream}");
        let known = self.tags_of.entry(id).or_insert_with(|| tags.clone());
        assert_eq!(*known, tags, "event {id}");
    }

    /// Every event is in all its streams, and as many are there as the account says.
    fn check(&self, summary: &Summary) {
        assert_eq!(self.streams_of, self.tags_of);
        assert_eq!(self.streams_of.len() as u64, summary.count("recorded"), "{summary:?}");
        assert_eq!(self.copies, summary.count("recorded_copies"), "{summary:?}");
    }

    fn count(&self, stream: &str) -> u64 {
        self.streams_of.values().filter(|streams| streams.contains(stream)).count() as u64
    }
}

fn robs_of(event: &Event<'_>) -> RobBytes {
    let payload = event.unpacked_payload(1 << 26).unwrap();
    let robs = event.robs(&payload).map(|rob| rob.unwrap());
    robs.map(|rob| (rob.source_id().0, rob.fragment().bytes().to_vec())).collect()
}

/// Sub-detectors of the partial stream: its own, and the results of level 2 and of the event filter.
const PARTIAL: [u32; 3] = [0x41, 0x7b, 0x7c];
