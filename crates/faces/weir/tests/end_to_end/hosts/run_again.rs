//! `weir run` dies, and is started again: it takes over what it has left, as `weir serve` does.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::between_runs::make_old;
use super::taking_over::farm;
use crate::children::marked;
use crate::files::check_all;
use crate::running::{Job, Running, recorded_bytes, send, within_deadline};

#[test]
fn a_run_that_was_killed_goes_on_when_it_is_started_again() {
    let mut running = recording(&[]);
    let processes = marked(running.directory().path());
    kill(&mut running);
    running.again(&[]);
    running.until("it is taken over", |running| running.error_output().contains("run control is back after"));
    let now = marked(running.directory().path());
    assert!(processes.iter().filter(|pid| now.contains(pid)).count() > 5, "nobody was started again");
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let (ended, summary) = running.end().expect_ok();
    assert_eq!(summary.0["run_number"], 1, "{summary:?}");
    assert_eq!(summary.0["run_control_away"].as_array().map(Vec::len), Some(1), "{summary:?}");
    let recorded: u64 = check_all(ended.output()).iter().map(|(_, events)| events).sum();
    assert_eq!(summary.count("recorded"), recorded);
}

/// Whatever of its agents and applications is there already.
#[test]
fn a_run_that_was_killed_while_it_starts_begins_when_it_is_started_again() {
    let mut running = farm().set("processes.lease", "5 s").endless().start();
    let kept = running.directory().join("runs.sqlite.control.quickstart.0");
    within_deadline("its agents are kept", || fs::exists(&kept).unwrap());
    kill(&mut running);
    running.again(&[]);
    // Where the run has begun just before, it is taken over.
    running.until("the next life conducts", |running| {
        let said = running.error_output();
        said.contains("run control is back after") || said.contains("run control has died without a run")
    });
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let (ended, summary) = running.end().expect_ok();
    let recorded: u64 = check_all(ended.output()).iter().map(|(_, events)| events).sum();
    assert_eq!(summary.count("recorded"), recorded);
}

#[test]
fn two_commands_do_not_conduct_the_same_partition() {
    let mut running = recording(&[]);
    let first = running.pid();
    running.again(&[]);
    assert_eq!(running.end_of_last().code(), Some(2));
    let said = running.error_output();
    assert!(said.contains("another process is run control of this partition"), "{said}");
    send(first, Signal::SIGINT);
    assert_eq!(running.end_of_first().code(), Some(0));
}

/// The next one begins a run of its own.
#[test]
fn a_run_of_which_nothing_lives_any_more_is_over() {
    let mut running = recording(&["--set", "processes.lease=3 s"]);
    kill(&mut running);
    within_deadline("all processes end", || marked(running.directory().path()).is_empty());
    make_old(&running.directory().join("runs.sqlite.control.quickstart.0"));
    running.again(&["--events", "200"]);
    let ended = running.end().expect(0);
    assert!(ended.stderr.contains("run 1 is over: its run control has died"), "{}", ended.stderr);
    let summary: Value = serde_json::from_slice(&fs::read(ended.directory.join("summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["run_number"], &summary["state"]), (&json!(2), &json!("ok")), "{summary}");
}

#[test]
fn several_runs_go_on_with_the_next_when_they_are_started_again() {
    let mut running = recorded(farm().with(&["--runs", "2", "--duration", "8 s"]));
    kill(&mut running);
    running.again(&[]);
    running.until("it is taken over", |running| running.error_output().contains("run control is back after"));
    let ended = running.end().expect(0);
    assert!(["run 1: ok", "run 2: ok"].iter().all(|run| ended.stdout.contains(run)), "{}", ended.stdout);
}

fn recording(further: &[&str]) -> Running {
    recorded(farm().endless().with(further))
}

fn recorded(job: Job) -> Running {
    let mut running = job.start();
    running.until_recording();
    let kept = running.directory().join("runs.sqlite.control.quickstart.0");
    within_deadline("it is kept", || fs::exists(&kept).unwrap());
    assert!(recorded_bytes(&running.output()) > 0);
    running
}

fn kill(running: &mut Running) {
    running.signal(Signal::SIGKILL);
    running.end_of_last();
}
