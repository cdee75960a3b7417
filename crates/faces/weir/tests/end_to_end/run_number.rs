//! Numbers of runs that record into one directory.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;
use storage::FileReader;
use testkit::TempDir;

use crate::files::{check_all, recorded};
use crate::running::{Ended, Job, examples};

fn job(directory: &Path) -> Job {
    Job::example("quickstart").patient().set("ros.count", "2").recording_into(directory.to_owned())
}

/// The number of a run that went well, as the summary and the last line have it.
fn number_of(ended: Ended) -> u64 {
    let ended = ended.expect(0);
    let text = fs::read_to_string(ended.directory.join("summary.json")).unwrap();
    let number = serde_json::from_str::<Value>(&text).unwrap()["run_number"].as_u64().unwrap();
    assert!(ended.stdout.contains(&format!("run {number}: ok")), "{}", ended.stdout);
    number
}

/// Run numbers that the records of the files say, in order.
fn runs(directory: &Path) -> Vec<u32> {
    check_all(directory);
    let number = |path| FileReader::open(path).unwrap().header().run.run_number;
    recorded(directory).iter().map(|path| number(path)).collect()
}

#[test]
fn two_runs_into_one_folder_were_both_run_1() {
    let directory = TempDir::new("run-number");
    for (number, processes) in [(1, false), (2, true), (3, false)] {
        assert_eq!(number_of(job(directory.path()).events(100).processes(processes).run()), number);
    }
    assert_eq!(runs(directory.path()), [1, 2, 3]);
}

#[test]
fn a_number_that_is_there_is_refused() {
    let directory = TempDir::new("run-number");
    assert_eq!(number_of(job(directory.path()).events(100).set("run.number", "7").run()), 7);
    for processes in [false, true] {
        let again = job(directory.path()).events(100).set("run.number", "7").processes(processes);
        let said = again.run().expect(2).stderr;
        assert!(said.contains("data_test.00000007.physics_Main.daq.RAW._lb0001._sfo-1._0001.data is there"), "{said}");
        assert!(said.contains("leave run.number out for the next free one"), "{said}");
    }
    assert_eq!(number_of(job(directory.path()).events(100).run()), 8);
    assert_eq!(runs(directory.path()), [7, 8]);
    for (number, status) in [("7", 1), ("9", 0)] {
        let said = job(directory.path()).set("run.number", number).checked().run().expect(status).stderr;
        assert_eq!(said.contains("is there, of run 7 already"), number == "7", "{said}");
    }
}

#[test]
fn runs_at_the_same_time_take_different_numbers() {
    let directory = TempDir::new("run-number");
    let start = |processes| job(directory.path()).endless().processes(processes).start();
    let mut both = [start(false), start(true)];
    for running in &mut both {
        running.until_recording();
    }
    let named = |number: u32| {
        let part = format!(".{number:08}.");
        fs::read_dir(directory.path()).unwrap().any(|entry| {
            let name = entry.unwrap().file_name();
            name.to_str().unwrap().contains(&part)
        })
    };
    for running in &mut both {
        running.until("both record", |_| named(1) && named(2));
    }
    let said = job(directory.path()).set("run.number", "2").run().expect(2).stderr;
    assert!(said.contains("another run 2 is recorded"), "{said}");
    let numbers = both.map(|running| {
        running.signal(Signal::SIGINT);
        number_of(running.end())
    });
    assert_eq!(numbers.iter().sum::<u64>(), 3, "{numbers:?}");
    assert!(runs(directory.path()).iter().all(|run| [1, 2].contains(run)));
}

#[test]
fn a_replay_said_that_it_was_run_1() {
    let files = format!("[{:?}]", examples().join("data/replay.data").display().to_string());
    let directory = TempDir::new("run-number");
    let replay =
        |into: &str| Job::example("replay").patient().set("input.files", &files).recording_into(directory.join(into));
    for dialect in ["input", "atlas"] {
        for processes in [false, true] {
            let into = format!("{dialect}-{processes}");
            let ended = replay(&into).set("sfo.dialect", dialect).processes(processes).run();
            assert_eq!(number_of(ended), u64::from(REPLAYED), "{into}");
            assert_eq!(runs(&directory.join(&into)), [REPLAYED]);
        }
    }
    for (again, status) in [(replay("input-true"), 2), (replay("input-true").checked(), 1)] {
        let said = again.run().expect(status).stderr;
        assert!(said.contains("replayed files keep their run number"), "{said}");
    }
    let said = replay("other").set("run.number", "5").run().expect(2).stderr;
    assert!(said.contains("run.number is 5") && said.contains("leave the key out"), "{said}");
}

/// The run of the recorded file among the examples.
const REPLAYED: u32 = 105;
