//! Sources that the partition plays itself: what stands behind their links takes them for detectors.

use std::fs;
use std::process::{Command, Stdio};

use configuration::SizeSpread;
use nix::sys::signal::Signal;
use rol::detector::{Content, Detector, Traits};
use testkit::TempDir;
use weir_source::{Reading, Source};

use crate::account::Summary;
use crate::files::check_all;
use crate::played::{data, data_of};
use crate::running::{Job, examples, program};
use crate::served::Served;

#[test]
fn a_played_test_beam_ends_by_itself_with_each_byte_that_its_sources_have_made() {
    for (readouts, processes) in [("1", false), ("2", true)] {
        let job = example("test-beam").set("source.0.emulated.rate", "5 kHz").set("run.events", "3000");
        let (ended, summary) = job.set("ros.count", readouts).processes(processes).patient().run().expect_ok();
        check_all(ended.output());
        assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (3000, 0));
        assert_played(&summary, &["emulator"; 3]);
        assert!(ended.stdout.contains("played (emulator)"), "{}", ended.stdout);
        let device = summary.0["links"][2]["fragments"].as_u64().unwrap();
        assert!(device > 3000 * 7 / 10, "{device}");
        let found = data(ended.output());
        for (rob, mean_bytes) in [(0x51_0000, 40), (0x51_0001, 3000)] {
            let mut detector = Detector::new(Traits {
                content: Content::MadeUp { mean_bytes, spread: SizeSpread::Fixed },
                seed: 1 ^ u64::from(rob) << 32,
                ..Traits::default()
            });
            detector.start(1).unwrap();
            let mut slot = vec![0; 4096];
            for event in 0..3000 {
                let Reading::Committed(_, len) = detector.read(&mut slot).unwrap() else { panic!("an event") };
                assert_eq!(found[&event][&rob][..], slot[..len], "event {event} of {rob:#x}");
            }
        }
    }
}

#[test]
fn played_sources_make_slices_of_time() {
    for processes in [false, true] {
        let job = example("streaming").set("run.events", "60").set("level1.grace", "60 s");
        let (ended, summary) = job.processes(processes).patient().run().expect_ok();
        check_all(ended.output());
        assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (60, 0));
        assert_played(&summary, &["emulator"; 8]);
        for link in summary.0["links"].as_array().unwrap() {
            assert_eq!((link["late"].as_u64(), link["missing"].as_u64()), (Some(0), Some(0)), "{link}");
        }
    }
}

#[test]
fn a_sample_and_recorded_files_enter_by_links_that_push() {
    let directory = TempDir::new("playing");
    let sample = examples().join("data/zee_mu0.parquet");
    let itself = directory.join("itself.toml");
    let chain = "[dfm]\n[sfi]\ncount = 1\n[sfo]\ncount = 1\norder = \"event\"\n";
    let text = format!(
        "[partition]\nname = \"itself\"\n[input]\nfiles = [{sample:?}]\n[level1]\nsource = \"sample\"\n[ros]\ncount = 2\n\
         input = \"sample\"\n{chain}"
    );
    fs::write(&itself, text).unwrap();
    let (ended, _) = Job::of(&itself).events(100).run().expect_ok();
    let pulled = data(ended.output());
    for (play, file, all, events) in [
        ("sample", sample, pulled, Some(100)),
        ("replay", examples().join("data/replay.data"), data_of(&[examples().join("data/replay.data")]), None),
    ] {
        let has_data = |rob: &u32| all.values().all(|of| of.get(rob).is_some_and(|data| data.len() > 8));
        let robs: Vec<u32> = all.values().next().unwrap().keys().copied().filter(has_data).take(2).collect();
        assert_eq!(robs.len(), 2, "{play}");
        let mut text = format!(
            "[partition]\nname = \"playing\"\n[input]\nfiles = [{file:?}]\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n\
             page_size = \"256 kB\"\n{chain}"
        );
        for rob in &robs {
            text +=
                &format!("[[source]]\nname = \"rob-{rob:x}\"\nid = {rob}\nplay = \"{play}\"\nsize_max = \"256 kB\"\n");
        }
        let path = directory.join(format!("{play}.toml"));
        fs::write(&path, text).unwrap();
        let job = Job::of(&path).set("source.0.emulated.rate", "5 kHz").patient();
        let job = events.into_iter().fold(job, Job::events);
        let (ended, summary) = in_own_folder(job).run().expect_ok();
        check_all(ended.output());
        assert_played(&summary, &[play; 2]);
        let some = all.into_values().map(|mut of| {
            of.retain(|rob, _| robs.contains(rob));
            of
        });
        assert_eq!(data(ended.output()).into_values().collect::<Vec<_>>(), some.collect::<Vec<_>>(), "{play}");
    }
}

#[test]
fn runs_with_played_sources_are_interrupted_and_follow_one_another() {
    for processes in [false, true] {
        let job = example("test-beam").set("run.events", "300").with(&["--runs", "2"]).processes(processes).patient();
        let ended = job.run().expect(0);
        assert_eq!(ended.stdout.matches("played (emulator)").count(), 6, "{}", ended.stdout);
        assert_eq!(ended.stdout.matches(": ok, residual 0").count(), 2, "{}", ended.stdout);
    }
    let mut running = example("test-beam").endless().patient().start();
    running.until_recording();
    running.signal(Signal::SIGINT);
    running.end().expect_ok();
}

#[test]
fn a_served_partition_plays_its_sources_in_each_run() {
    let mut served = Served::start(example("streaming").set("run.events", "20").set("level1.grace", "60 s").patient());
    served.ctl("ann", &["boot"]);
    for run in 1..=2 {
        served.ctl("ann", &["start"]);
        let over = served.until("the run is over", |status| status["last"]["number"] == run);
        assert_eq!(over["last"]["state"], "ok", "{over}");
    }
}

#[test]
fn it_is_said_which_sources_are_played_and_which_cannot_be() {
    let ended = example("test-beam").checked().run().expect(0);
    let said = "it plays sources itself (emulator): tlu, telescope, device";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    let some = || Job::example("test-beam").with(&["--await-sources=telescope"]).checked();
    let refused = some().run().expect(1).stderr;
    assert!(refused.contains("tlu is played and telescope is not: their times cannot match"), "{refused}");
    let some = some().set("source.1.clock", "none").run().expect(0);
    assert!(some.stdout.contains("it plays sources itself (emulator): tlu, device"), "{}", some.stdout);
    for (name, arguments, words) in [
        (
            "test-beam",
            "--await-sources=board",
            "names of sources that are programs (tlu, telescope, device), found \"board\"",
        ),
        ("quickstart", "--play-sources", "no [[source]] is a program"),
        ("quickstart", "--await-sources", "no [[source]] is a program"),
    ] {
        let ended = Job::example(name).with(&[arguments]).run().expect(1);
        assert!(ended.stderr.contains(words), "{}", ended.stderr);
    }
}

/// The commands that the run says, as they stand there.
#[test]
fn a_run_names_whom_it_waits_for_and_what_takes_their_place() {
    let job =
        example("test-beam").with(&["--await-sources"]).patient().set("run.events", "200").set("level1.grace", "60 s");
    let folder = job.directory().to_owned();
    let mut running = job.start();
    let play = "with --play-sources the partition plays the sources that it waits for";
    running.until("it says whom it waits for", |running| running.error_output().contains(play));
    let said = running.error_output();
    let named = |name: &str| {
        let awaited = format!("waits for source {name} at shm:");
        let line = said.lines().find(|line| line.contains(&awaited)).unwrap_or_else(|| panic!("{name}: {said}"));
        line.split('`').nth(1).expect("a command").to_owned()
    };
    let feeds = ["tlu", "telescope", "device"].map(|name| {
        let words = named(name).replacen("weir ", "", 1);
        let mut feed = Command::new("sh");
        feed.arg("-c").arg(format!("exec {} {words}", program())).env("XDG_RUNTIME_DIR", &folder);
        feed.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    });
    let (_, summary) = running.end().expect_ok();
    assert_eq!((summary.count("recorded"), summary.count("built_incomplete")), (200, 0));
    for mut feed in feeds {
        assert!(feed.wait().unwrap().success());
    }
}

/// As they stand in the documents, without a flag or another program.
#[test]
fn the_examples_of_sources_take_data_as_they_stand() {
    for (name, sources) in [("test-beam", 3), ("streaming", 8)] {
        let (ended, summary) = example(name).run().expect_ok();
        check_all(ended.output());
        assert_played(&summary, &vec!["emulator"; sources]);
        assert!(summary.count("recorded") > 0 && ended.stdout.contains(": ok, residual 0"), "{}", ended.stdout);
    }
}

#[test]
fn a_played_source_that_the_input_does_not_have_is_named_with_those_that_it_has() {
    let directory = TempDir::new("playing");
    let (path, file) = (directory.join("unknown.toml"), examples().join("data/replay.data"));
    let text = format!(
        "[partition]\nname = \"unknown\"\n[input]\nfiles = [{file:?}]\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n\
         page_size = \"256 kB\"\n[[source]]\nname = \"calo\"\nid = 0x12\nplay = \"replay\"\n[dfm]\n[sfi]\ncount = 1\n[sfo]\n"
    );
    fs::write(&path, text).unwrap();
    for processes in [false, true] {
        let said = in_own_folder(Job::of(&path).processes(processes)).run().expect(2).stderr;
        assert!(said.contains("source calo: id = 0x12: expected a ROB of the input: 0x210000"), "{said}");
        assert!(said.contains("give it the id of one of these"), "{said}");
    }
}

/// An example, at addresses of its own.
fn example(name: &str) -> Job {
    in_own_folder(Job::example(name))
}

fn in_own_folder(job: Job) -> Job {
    let folder = job.directory().to_owned();
    job.environment("XDG_RUNTIME_DIR", &folder)
}

fn assert_played(summary: &Summary, by: &[&str]) {
    let links = summary.0["links"].as_array().unwrap();
    assert_eq!(links.iter().map(|link| link["played"].as_str().unwrap_or("no")).collect::<Vec<_>>(), by);
}
