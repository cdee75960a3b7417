//! Processes that die or hang within a run.

use std::net::SocketAddr;

use nix::sys::signal::Signal;

use crate::account::Summary;
use crate::children::{all_listening, listening, marked, name, of};
use crate::files::check_all;
use crate::open_files::that_cannot_begin;
use crate::running::{Ended, Job, Running, send, within_deadline};

#[test]
fn of_the_level_1_source() {
    check_death("level1-1");
}

#[test]
fn of_a_level_2_supervisor() {
    check_death("l2sv-1");
}

#[test]
fn of_a_level_2_processing_unit() {
    check_death("l2pu-1");
}

#[test]
fn of_the_pseudo_ros() {
    check_death("pros-1");
}

#[test]
fn of_a_read_out_system() {
    check_death("ros-2");
}

#[test]
fn of_the_dataflow_manager() {
    check_death("dfm-1");
}

#[test]
fn of_an_event_builder() {
    check_death("sfi-1");
}

#[test]
fn of_an_event_filter_daemon() {
    check_death("efd-1");
}

#[test]
fn of_a_recorder() {
    check_death("sfo-1");
}

/// Kills an application in the middle of a run: the run ends by itself, and says what happened.
fn check_death(application: &str) {
    check_death_in(job(), application);
}

pub(crate) fn check_death_in(job: Job, application: &str) {
    let mut running = job.set("run.stop_timeout", "5 s").start();
    running.until_recording();
    let sockets = Sockets::of(&running);
    send(running.child(application), Signal::SIGKILL);
    let (ended, summary) = running.end().expect_aborted(&[application, "SIGKILL"]);
    assert!(ended.stderr.contains(application), "{}", ended.stderr);
    check_remains(&ended, &summary, application);
    sockets.check_gone();
}

fn check_remains(ended: &Ended, summary: &Summary, application: &str) {
    assert!(summary.count("recorded") > 0, "{summary:?}");
    assert_eq!(summary.0["died"], serde_json::json!([application]));
    let mut names: Vec<_> =
        std::fs::read_dir(ended.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["out", "stderr", "stdout", "summary.json"]);
}

#[test]
fn of_two_at_once() {
    let mut running = start();
    running.until_recording();
    let sockets = Sockets::of(&running);
    let victims = ["ros-1", "efd-1"].map(|name| running.child(name));
    victims.into_iter().for_each(|pid| send(pid, Signal::SIGKILL));
    let (_, summary) = running.end().expect_aborted(&["ros-1", "efd-1", "SIGKILL"]);
    assert!(summary.count("recorded") > 0, "{summary:?}");
    sockets.check_gone();
}

#[test]
fn an_application_that_hangs_does_not_hold_up_the_end() {
    // Together: each waits for deadlines most of the time.
    let applications = ["level1-1", "l2sv-1", "l2pu-1", "pros-1", "ros-1", "dfm-1", "sfi-1", "efd-1", "sfo-1"];
    for some in applications.chunks(3) {
        std::thread::scope(|scope| {
            some.iter().for_each(|application| {
                scope.spawn(|| check_hang(application));
            });
        });
    }
}

/// Stops an application for good, then asks the run to end: it does, within its deadlines.
fn check_hang(application: &str) {
    check_hang_in(job(), application);
}

pub(crate) fn check_hang_in(job: Job, application: &str) {
    let mut running = job.set("run.stop_timeout", "2 s").start();
    running.until_recording();
    let sockets = Sockets::of(&running);
    send(running.child(application), Signal::SIGSTOP);
    running.signal(Signal::SIGINT);
    let (ended, summary) = running.end().expect_aborted(&[application]);
    assert!(summary.count("recorded") > 0, "{summary:?}");
    assert!(!ended.stderr.contains("was told to end, did not"), "who does not hang ends at once: {}", ended.stderr);
    sockets.check_gone();
}

#[test]
fn without_run_control_all_processes_end_and_leave_valid_files() {
    let mut running = start();
    running.until_recording();
    let sockets = Sockets::of(&running);
    running.signal(Signal::SIGKILL);
    let (output, directory) = (running.output(), running.directory().path().to_owned());
    within_deadline("all processes end", || marked(&directory).is_empty());
    sockets.check_gone();
    let events: u64 = check_all(&output).iter().map(|(_, events)| events).sum();
    assert!(events > 0);
}

#[test]
fn a_child_that_dies_before_the_run_begins_ends_it() {
    let mut running = that_cannot_begin().start();
    let mut first = None;
    running.until("a child is started", |running| {
        first = of(running.pid()).into_iter().find_map(|pid| Some((pid, name(pid)?)));
        first.is_some()
    });
    let (first, name) = first.unwrap();
    send(first, Signal::SIGKILL);
    let ended = running.end().expect(2);
    assert!(ended.stderr.contains(&format!("{name} could not start: killed by SIGKILL")), "{}", ended.stderr);
    assert!(!ended.directory.join("summary.json").exists(), "no run, no account");
}

/// One application of each role, and two where the others shall go on.
fn start() -> Running {
    job().set("run.stop_timeout", "5 s").start()
}

pub(crate) fn job() -> Job {
    Job::example("quickstart").set("ros.count", "2").set("sfo.max_file_events", "40").endless().processes(true)
}

/// The sockets on which the processes of a run listen.
pub(crate) struct Sockets(Vec<u64>);

impl Sockets {
    pub(crate) fn of(running: &Running) -> Self {
        let processes = of(running.pid()).into_iter().chain([running.pid()]);
        let sockets: Vec<u64> = processes.flat_map(listening).map(|(_, inode)| inode).collect();
        assert!(!sockets.is_empty());
        Self(sockets)
    }

    pub(crate) fn check_gone(&self) {
        // A process that ends has no environment any more a little before its sockets are closed.
        let is_left = |(_, inode): &(SocketAddr, u64)| self.0.contains(inode);
        within_deadline("sockets are closed", || !all_listening().iter().any(is_left));
    }
}
