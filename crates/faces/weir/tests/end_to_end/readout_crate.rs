//! Read-out crates: a TRG, read-out systems and an EBIF, in one process and in processes of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use eformat::{Event, RobStatus};
use testkit::TempDir;

use crate::account::Summary;
use crate::files::{each_event, recorded};
use crate::running::{Job, examples, program};

#[test]
fn a_crate_and_one_that_stands_alone_give_whole_events() {
    for building in ["pull", "push"] {
        for processes in [false, true] {
            let (_, summary) = job().set("dfm.building", building).processes(processes).run().expect_ok();
            assert_whole(&summary);
        }
    }
}

#[test]
fn the_number_of_an_event_tells_a_crate_where_it_goes() {
    let text = "partition.name = \"by-number\"\nlevel1 = {}\nros.count = 5\nroc = { count = 2, ros = 2 }\n\
                sfi.count = 2\nsfo = {}\ndfm.building = \"push-by-number\"\n";
    let directory = testkit::TempDir::new("by-number");
    let path = directory.join("by-number.toml");
    std::fs::write(&path, text).unwrap();
    for processes in [false, true] {
        let (_, summary) = Job::of(&path).events(1000).processes(processes).run().expect_ok();
        assert_eq!((summary.count("recorded"), summary.0["reasks"].as_u64()), (1000, Some(0)), "{summary:?}");
    }
}

#[test]
fn fragments_are_collected_by_messages_or_where_they_lie() {
    for roc in ["tcp", "shm"] {
        let (_, summary) = job().set("transport.roc", roc).processes(true).run().expect_ok();
        assert_whole(&summary);
    }
}

#[test]
fn a_crate_that_cannot_be_is_refused() {
    let ended = job().set("roc.count", "2").run().expect(1);
    assert!(ended.stderr.contains("2 crates of 4 read-out systems need ros.count = 8"), "{}", ended.stderr);
}

fn job() -> Job {
    Job::example("readout-crate").patient().set("l2pu.step_accept", "0.5").events(2000)
}

fn assert_whole(summary: &Summary) {
    assert_eq!(summary.count("level1"), 2000, "{summary:?}");
    assert!(summary.count("recorded") > 100, "a quarter is accepted: {summary:?}");
    assert_eq!(summary.count("built_incomplete") + summary.count("level2_incomplete"), 0, "{summary:?}");
}

/// What the paper left out, together: triggers over the network, and S-LINKs with errors and XOFF, two of them into each read-out system.
/// Level 2 gets its data. Behind the crate stand two event builders, an event filter and a recorder.
#[test]
fn a_whole_crate_takes_fragments_of_slinks_by_triggers_from_the_network() {
    for processes in [false, true] {
        let whole = Whole::new();
        let job = whole.job().set("transport.roc", "shm").set("l2pu.step_accept", "0.7").processes(processes);
        let running = job.start();
        let count = EVENTS.to_string();
        let key = whole.directory.join("key").display().to_string();
        let trigger = ["--level1", "--rois", "1", "--count", &count, "--key-file", &key];
        let mut feeds = vec![whole.feed("central", &trigger)];
        feeds.extend((1..=RODS).map(|rod| {
            let wrong: Vec<String> =
                faults(rod).into_iter().flat_map(|(option, event, _)| [option.to_owned(), event.to_string()]).collect();
            let wrong: Vec<&str> = wrong.iter().map(String::as_str).collect();
            whole.feed(&format!("rod-{rod}"), &[&["--count", &count, "--size", "768 B"], &wrong[..]].concat())
        }));
        let (ended, summary) = running.end().expect_ok();
        let mut all_offs = 0;
        for (place, feed) in feeds.into_iter().enumerate() {
            let feed = feed.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&feed.stderr);
            assert!(feed.status.success(), "{said}");
            if place > 0 {
                let offs = said.split("told ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
                assert!(said.contains(": 3000 blocks"), "{said}");
                all_offs += offs.unwrap();
            }
        }
        assert!(all_offs > 0, "an S-LINK is turned off while its buffer is full");
        assert_eq!((summary.count("level1"), summary.count("built_incomplete")), (EVENTS, 0), "{summary:?}");
        assert!(summary.count("level2_rejected") > 300 && summary.count("recorded") > 300, "{summary:?}");
        assert!(is_whole_link(&summary, "central", 0), "{summary:?}");
        (1..=RODS).for_each(|rod| {
            let damaged = faults(rod).len() as u64;
            assert!(is_whole_link(&summary, &format!("rod-{rod}"), damaged), "{rod}: {summary:?}");
        });
        check_fragments(ended.output());
    }
}

#[test]
fn a_whole_crate_plays_its_trigger_and_its_links() {
    for processes in [false, true] {
        let anywhere = (0..RODS).fold(Job::example("readout-crate-full").patient(), |job, rod| {
            job.set(&format!("source.{rod}.at"), "slink://127.0.0.1:0")
        });
        let job = anywhere.set("level1.processor.0.at", "tcp://127.0.0.1:0").set("level1.rate", "20 kHz");
        let (_, summary) = job.events(EVENTS).processes(processes).run().expect_ok();
        assert_eq!((summary.count("level1"), summary.count("built_incomplete")), (EVENTS, 0), "{summary:?}");
        assert!(summary.count("recorded") > 100, "{summary:?}");
        let links = summary.0["links"].as_array().unwrap();
        assert_eq!(links.len() as u64, RODS + 1);
        assert!(
            links.iter().all(|link| link["played"] == "emulator" && link["missing"] == link["late"]),
            "{summary:?}"
        );
    }
}

/// The example, whose trigger and links are programs.
struct Whole {
    directory: TempDir,
    ports: Vec<u16>,
}

impl Whole {
    fn new() -> Self {
        // They are free when the run begins, as far as anybody can tell.
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let free: Vec<_> = (0..=RODS).map(|_| free()).collect();
        let ports = free.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        let directory = TempDir::new("whole-crate");
        fs::write(directory.join("key"), KEY).unwrap();
        Self { directory, ports }
    }

    fn job(&self) -> Job {
        let text = fs::read_to_string(examples().join("readout-crate-full.toml")).unwrap();
        let text = text.replace("\nplay = \"emulator\"", "").replace("duration = \"5 s\"", "");
        let text =
            text.replace("rate = \"2 kHz\"", "").replacen("[partition]", &format!("[partition]\nkey = {KEY:?}"), 1);
        let text = (7300..).zip(&self.ports).fold(text, |text, (port, own)| {
            text.replace(&format!("127.0.0.1:{port}\"\n"), &format!("127.0.0.1:{own}\"\n"))
        });
        let path = self.directory.join("whole.toml");
        fs::write(&path, text).unwrap();
        Job::of(&path).patient().set("level1.join_timeout", "60 s").set("ros.pages", "256")
    }

    fn feed(&self, name: &str, arguments: &[&str]) -> Child {
        let place = name.strip_prefix("rod-").map_or(0, |rod| rod.parse().unwrap());
        let scheme = if place == 0 { "tcp" } else { "slink" };
        let at = format!("{scheme}://127.0.0.1:{}", self.ports[place]);
        let mut command = Command::new(program());
        command.args(["feed", &at, "--name", name]).args(arguments).stdin(Stdio::null());
        command.stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// What is wrong with fragments of a link: the option of `weir feed`, the event, and what the file says.
fn faults(rod: u64) -> Vec<(&'static str, u64, RobStatus)> {
    let each = ("--damage", 100 * rod, RobStatus::LINK_DATA_ERROR);
    let further = [
        ("--control-error", 1100, RobStatus::LINK_CONTROL_ERROR),
        ("--no-begin", 1200, RobStatus::NO_BOF),
        ("--no-end", 1300, RobStatus::NO_EOF),
    ];
    [each].into_iter().chain(further.into_iter().filter(|_| rod == 1)).collect()
}

fn is_whole_link(summary: &Summary, name: &str, damaged: u64) -> bool {
    let links = summary.0["links"].as_array().unwrap();
    let link = links.iter().find(|link| link["name"] == name).unwrap();
    let [kept, late, missing] = ["kept", "late", "missing"].map(|key| link[key].as_u64().unwrap());
    // Level 2 may reject an event before a link has its fragment, which is late then.
    let is_all = kept + late == EVENTS && missing == late;
    is_all && link["damaged"].as_u64() == Some(damaged) && link["device"]["malformed"] == 0
}

/// Each event has a fragment of each link, as it was sent, and is marked where the link had an error.
fn check_fragments(output: &Path) {
    let (mut events, mut marked) = (BTreeSet::new(), BTreeMap::new());
    let files: Vec<PathBuf> = recorded(output);
    for file in files {
        each_event(&file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            let payload = event.unpacked_payload(64 << 20).unwrap();
            let robs: Vec<_> = event.robs(&payload).map(Result::unwrap).collect();
            let number = event.global_id();
            assert!(robs.len() as u64 >= RODS && events.insert(number), "{number}");
            for rob in robs.iter().filter(|rob| (FIRST_ROB..FIRST_ROB + RODS as u32).contains(&rob.source_id().0)) {
                let sent = rob.rod().unwrap();
                let sent = &sent.data()[..sent.event_type() as usize];
                assert_eq!(&sent[20..24], &(number as u32).to_le_bytes(), "the ROD says the event");
                if rob.status().0 != 0 {
                    marked.insert((number, rob.source_id().0), rob.status().0);
                }
            }
        });
    }
    let expected = (1..=RODS).flat_map(|rod| faults(rod).into_iter().map(move |fault| (rod, fault)));
    let expected = expected.filter(|(_, (_, event, _))| events.contains(event)).map(|(rod, (_, event, status))| {
        let bits = (status | RobStatus::LINK_ERROR).bits();
        ((event, FIRST_ROB + rod as u32 - 1), u32::from(bits) << 16)
    });
    assert_eq!(marked, expected.collect());
}

const KEY: &str = "a key of a trigger far away";
const EVENTS: u64 = 3000;
const RODS: u64 = 8;
/// Of the sources without an identifier.
const FIRST_ROB: u32 = 0x0051_0000;
