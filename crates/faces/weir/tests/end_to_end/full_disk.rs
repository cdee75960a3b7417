//! Recording onto a disk that is full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use testkit::TempDir;

use crate::running::{Job, Running};

#[test]
fn the_run_pauses_and_goes_on_when_there_is_room() {
    for processes in [false, true] {
        let Some(disk) = SmallDisk::new("the_run_pauses_and_goes_on_when_there_is_room") else { return };
        let filler = disk.fill();
        let mut running = start(&disk, processes, &["--events", "400"]);
        running.until("it is said", |running| running.error_output().contains("stalled"));
        fs::remove_file(filler).unwrap();
        let ended = running.end();
        assert!(ended.stderr.contains("recording goes on"), "{}", ended.stderr);
        assert!(ended.stderr.contains(", because: No space left on device"), "{}", ended.stderr);
        let (_, summary) = ended.expect_ok();
        assert_eq!(summary.count("level1"), 400);
        assert!(summary.count("recorded") > 0);
    }
}

#[test]
fn an_interrupt_ends_the_run_and_what_is_lost_is_counted() {
    for processes in [false, true] {
        let Some(disk) = SmallDisk::new("an_interrupt_ends_the_run_and_what_is_lost_is_counted") else { return };
        disk.fill();
        let mut running = start(&disk, processes, &["--duration", "1h", "--set", "run.stop_timeout=2 s"]);
        running.until("it is said", |running| running.error_output().contains("stalled"));
        running.signal(Signal::SIGINT);
        let (_, summary) = running.end().expect_aborted(&["did not drain"]);
        assert!(summary.count("lost_in_recording") + summary.count("lost_after_build") > 0, "{summary:?}");
    }
}

#[test]
fn the_end_of_the_time_ends_the_run_and_what_is_lost_is_counted() {
    for processes in [false, true] {
        let test = "the_end_of_the_time_ends_the_run_and_what_is_lost_is_counted";
        let Some(disk) = SmallDisk::new(test) else { return };
        disk.fill_but(LITTLE_ROOM_BYTES);
        let running = start(&disk, processes, &["--duration", "10s", "--set", "run.stop_timeout=2 s"]);
        let (_, summary) = running.end().expect_aborted(&["did not drain"]);
        assert!(summary.count("lost_in_recording") + summary.count("lost_after_build") > 0, "{summary:?}");
    }
}

fn start(disk: &SmallDisk, processes: bool, arguments: &[&str]) -> Running {
    let job = Job::example("quickstart").patient().set("ros.count", "2").processes(processes).with(arguments);
    job.recording_into(disk.output()).start()
}

/// A file system of a few megabytes in memory.
pub(crate) struct SmallDisk {
    directory: TempDir,
}

impl SmallDisk {
    /// `None`, and the test is skipped, where none can be mounted.
    pub(crate) fn new(test: &str) -> Option<Self> {
        let directory = TempDir::new("small-disk");
        let options = format!("size={DISK_BYTES}");
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &options, "weir-test"]).arg(directory.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self { directory }),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                testkit::skip(test, &format!("no file system can be mounted: {}", said.trim()));
                None
            }
            Err(error) => {
                testkit::skip(test, &format!("mount cannot be started: {error}"));
                None
            }
        }
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.directory.join("out")
    }

    /// Leaves room for a few dozen events.
    pub(crate) fn fill(&self) -> PathBuf {
        self.fill_but(ROOM_BYTES)
    }

    fn fill_but(&self, room_bytes: usize) -> PathBuf {
        let filler = self.directory.join("filler");
        fs::write(&filler, vec![0; DISK_BYTES - room_bytes]).unwrap();
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        unmount(self.directory.path());
    }
}

fn unmount(path: &Path) {
    let unmounted = Command::new("umount").arg("-l").arg(path).status();
    assert!(
        unmounted.is_ok_and(|status| status.success()) || std::thread::panicking(),
        "{} stays mounted",
        path.display()
    );
}

const DISK_BYTES: usize = 24 << 20;
const ROOM_BYTES: usize = 1 << 20;
/// A few events: a busy machine records no more in the time of a run.
const LITTLE_ROOM_BYTES: usize = 64 << 10;
