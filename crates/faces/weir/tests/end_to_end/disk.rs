//! Recording while the files are taken away, beyond the limit of file sizes, and onto a disk that fails.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::TempDir;

use crate::running::{Ended, Job, Running, send};

fn job(processes: bool) -> Job {
    Job::example("quickstart").patient().set("ros.count", "2").processes(processes)
}

#[test]
fn events_were_recorded_in_a_directory_that_was_not_there_any_more() {
    for (processes, durable) in [(false, "write"), (true, "write"), (true, "fsync")] {
        let mut running = job(processes).set("sfo.durable", durable).endless().start();
        for time in 1..=2 {
            running.until_recording();
            let away = running.directory().join(format!("away-{time}"));
            fs::rename(running.output(), &away).unwrap();
            if time == 2 {
                fs::remove_dir_all(away).unwrap();
            }
            let is_said =
                |running: &Running| running.error_output().matches("events are written again").count() >= time;
            running.until("it is said", is_said);
            running.until_more_is_recorded();
        }
        running.signal(Signal::SIGINT);
        running.end().expect_ok();
    }
}

#[test]
fn a_limit_of_file_sizes_killed_without_a_word() {
    for processes in [false, true] {
        let mut running = job(processes).events(2000).limited("-S -f 4000".to_owned()).start();
        running.until("it is said", |running| {
            let said = running.error_output();
            said.contains("stalled") && said.contains("ulimit -f")
        });
        let recorder = if processes { running.child("sfo-1") } else { running.pid() };
        let raised = Command::new("prlimit").args(["--fsize=unlimited:", "--pid", &recorder.to_string()]).output();
        if !raised.is_ok_and(|output| output.status.success()) {
            return testkit::skip("a_limit_of_file_sizes_killed_without_a_word", "prlimit cannot raise a limit");
        }
        let ended = running.end();
        assert!(ended.stderr.contains("recording goes on"), "{}", ended.stderr);
        let (_, summary) = ended.expect_ok();
        assert_eq!(summary.count("level1"), 2000);
    }
}

#[test]
fn a_file_at_its_limit_is_closed_and_what_is_lost_is_counted() {
    let job = job(false).endless().limited("-f 4000".to_owned()).set("run.stop_timeout", "2 s");
    let mut running = job.start();
    running.until("it is said", |running| running.error_output().contains("stalled"));
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_aborted(&["did not drain"]);
    assert!(summary.count("recorded") > 0, "{summary:?}");
}

#[test]
fn after_a_failed_sync_nothing_is_lost_if_the_disk_recovers() {
    let Some(disk) = FailingDisk::new("after_a_failed_sync_nothing_is_lost_if_the_disk_recovers") else { return };
    for processes in [false, true] {
        let mut running = disk.under(job(processes).endless()).start();
        running.until_recording();
        disk.fail(true);
        running.until("it is said", |running| running.error_output().contains("cannot sync"));
        disk.fail(false);
        running.until_more_is_recorded();
        running.signal(Signal::SIGINT);
        let ended = running.end();
        assert!(ended.stderr.contains("events are written again"), "{}", ended.stderr);
        ended.expect_ok();
    }
}

#[test]
fn more_was_said_to_be_recorded_than_a_failed_sync_had_left() {
    let name = "more_was_said_to_be_recorded_than_a_failed_sync_had_left";
    let Some(disk) = FailingDisk::new(name) else { return };
    for processes in [false, true] {
        let job = disk.under(job(processes).endless()).set("run.stop_timeout", "2 s");
        let mut running = job.start();
        running.until_recording();
        disk.fail(true);
        running.until("it is said", |running| running.error_output().contains("cannot sync"));
        running.signal(Signal::SIGINT);
        let ended = running.end();
        disk.fail(false);
        assert!(
            ended.stderr.contains("events of the file are durable, its end and its name may not be"),
            "{}",
            ended.stderr
        );
        // Files are closed, good, and hold what is said to be recorded: there is no residual.
        let (_, summary) = ended.expect_aborted(&["did not drain", "cannot sync"]);
        assert!(summary.count("recorded") > 0, "{summary:?}");
        assert!(summary.count("lost_in_recording") + summary.count("lost_after_build") > 0, "{summary:?}");
    }
}

#[test]
fn a_file_that_the_disk_did_not_take_left_a_residual() {
    let Some(disk) = FailingDisk::new("a_file_that_the_disk_did_not_take_left_a_residual") else { return };
    for processes in [false, true] {
        let mut running = disk.under(job(processes).endless()).set("sfo.durable", "file").start();
        running.until_recording();
        disk.fail(true);
        running.signal(Signal::SIGINT);
        let ended = running.end().expect(4);
        disk.fail(false);
        let words = "events in no file that is closed do not count as recorded";
        assert!(ended.stderr.contains("cannot sync") && ended.stderr.contains(words), "{}", ended.stderr);
        let (lost, left) = lost_in_recording(&ended);
        let [left] = &left[..] else { panic!("{left:?}") };
        assert_eq!(left.extension().unwrap(), "writing");
        assert_eq!(u64::from(storage::recover(left, None).unwrap().events_kept), lost);
    }
}

#[test]
fn an_open_file_that_somebody_cut_went_unnoticed() {
    for processes in [false, true] {
        let mut running = job(processes).endless().start();
        running.until_recording();
        cut_the_open_file(&mut running);
        running.signal(Signal::SIGINT);
        let ended = running.end().expect(4);
        let (lost, mut left) = lost_in_recording(&ended);
        left.sort();
        let [damaged, good] = &left[..] else { panic!("{left:?}") };
        assert!(lost > 0 && damaged.extension().unwrap() == "damaged", "{lost}, {left:?}");
        let report = storage::check(good, &storage::CheckLimits::default()).unwrap();
        assert!(report.is_good(), "{report}");
    }
}

/// Its next life counted the events as recorded.
#[test]
fn what_a_recorder_had_set_aside_was_forgotten_when_it_died() {
    let keys = [("processes.on_loss", "restart"), ("dfm.clear_after", "recorded")];
    let job = keys.into_iter().fold(job(true).endless(), |job, (key, value)| job.set(key, value));
    let mut running = job.start();
    running.until_recording();
    cut_the_open_file(&mut running);
    send(running.child("sfo-1"), Signal::SIGKILL);
    running.until("it is back", |running| running.error_output().contains("sfo-1 is back"));
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let ended = running.end().expect(4);
    let (lost, _) = lost_in_recording(&ended);
    let count = |row: &str| {
        let line = ended.stdout.lines().find_map(|line| line.trim_start().strip_prefix(row)).expect("it has the row");
        let line = line.trim_start();
        line.split(" =").next().and_then(|count| count.split("  ").next()).expect("a count").to_owned()
    };
    assert!(lost > 0 && count("sfo ") == count("recorded "), "{}", ended.stdout);
}

/// Until the recorder has noticed and goes on.
fn cut_the_open_file(running: &mut Running) {
    let mut entries = fs::read_dir(running.output()).unwrap().map(|entry| entry.unwrap().path());
    let open = entries.find(|path| path.extension().is_some_and(|suffix| suffix == "writing")).unwrap();
    fs::OpenOptions::new().write(true).open(open).unwrap().set_len(2000).unwrap();
    running.until("it is said", |running| running.error_output().contains("somebody else has changed it"));
    running.until_more_is_recorded();
}

/// Of a run whose account closes and that says it has lost events in recording and nothing else; with all that is in its directory.
fn lost_in_recording(ended: &Ended) -> (u64, Vec<PathBuf>) {
    let text = fs::read_to_string(ended.directory.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    let lost = summary["accounting"]["lost_in_recording"].as_u64().unwrap();
    assert_eq!(summary["degraded_by"], serde_json::json!({ "lost_in_recording": lost }), "{summary}");
    (lost, fs::read_dir(ended.output()).unwrap().map(|entry| entry.unwrap().path()).collect())
}

/// Makes syncs of files fail, as a disk does that cannot write any more.
struct FailingDisk {
    directory: TempDir,
}

impl FailingDisk {
    /// `None`, and the test is skipped, where there is no C compiler.
    fn new(test: &str) -> Option<Self> {
        let directory = TempDir::new("failing-disk");
        let source = directory.join("sync.c");
        fs::write(&source, SYNC).unwrap();
        let library = directory.join("sync.so");
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).output();
        if built.is_ok_and(|output| output.status.success()) {
            return Some(Self { directory });
        }
        testkit::skip(test, "cc cannot make a library");
        None
    }

    fn under(&self, job: Job) -> Job {
        let job = job.environment("LD_PRELOAD", &self.directory.join("sync.so"));
        job.environment("FAILING", &self.marker()).set("sfo.durable", "fsync")
    }

    fn marker(&self) -> PathBuf {
        self.directory.join("failing")
    }

    fn fail(&self, yes: bool) {
        if yes { fs::write(self.marker(), "") } else { fs::remove_file(self.marker()) }.unwrap();
    }
}

/// Fails while the file exists that the environment names.
const SYNC: &str = r#"
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int fdatasync(int file) {
    const char *failing = getenv("FAILING");
    if (failing && access(failing, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_fdatasync, file);
}
"#;
