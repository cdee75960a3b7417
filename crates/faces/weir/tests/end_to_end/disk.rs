//! Recording while the files are taken away, beyond the limit of file sizes, and onto a disk that fails.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use testkit::TempDir;

use crate::running::{Job, Running};

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
        let ended = running.end().expect(3);
        disk.fail(false);
        let text = fs::read_to_string(ended.directory.join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&text).unwrap();
        let said = summary["accounting"]["recorded"].as_u64().unwrap();
        let left: Vec<PathBuf> = fs::read_dir(ended.output()).unwrap().map(|entry| entry.unwrap().path()).collect();
        let kept: u64 = left.iter().map(|path| u64::from(storage::recover(path, None).unwrap().events_kept)).sum();
        assert!(said > 0 && said == kept, "{said} events are said to be recorded, {kept} are in {left:?}");
        let lost = ["lost_in_recording", "lost_after_build"].map(|key| summary["accounting"][key].as_u64().unwrap());
        assert!(lost.iter().sum::<u64>() > 0, "{summary}");
    }
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
