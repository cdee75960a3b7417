//! Run control dies while no run goes on, in each state of the table. Its next life takes over the agents, which start the applications anew.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;
use std::time::UNIX_EPOCH;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::agent;
use super::taking_over::{applications, end, farm, kill_control, process, recording, stop, until_gone, until_said};
use crate::children::marked;
use crate::running::{Job, send, within_deadline};
use crate::served::Served;

#[test]
fn agents_are_taken_over_before_the_first_run() {
    let served = booted(farm());
    check_taken_over(served, "booted", 1);
}

#[test]
fn agents_are_taken_over_between_two_runs() {
    let mut served = recording(farm());
    stop(&mut served, "ok");
    let mut served = check_again(served, "booted", 2);
    // And so they are from a life that has taken over itself.
    served.until("the run is over", |status| status["run"].is_null() && status["last"]["number"] == 2);
    check_taken_over(served, "booted", 3);
}

#[test]
fn agents_are_taken_over_while_a_run_begins() {
    let served = booted(farm());
    let stopped = process(&served, "sfi-1");
    send(stopped, Signal::SIGSTOP);
    let mut start = served.ctl_command("anna");
    let mut start = start.arg("start").stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // One does not come to its place.
    within_deadline("the run is about to begin", || served.status()["state"] == "configured");
    check_taken_over(served, "booted", 2);
    start.wait().unwrap();
}

#[test]
fn agents_are_taken_over_at_a_fault() {
    let mut served = booted(farm());
    send(process(&served, "sfi-1"), Signal::SIGKILL);
    served.until_state("fault");
    check_taken_over(served, "fault", 1);
}

#[test]
fn a_run_is_taken_over_while_it_drains() {
    let mut served = recording(farm());
    let recorder = process(&served, "sfo-1");
    send(recorder, Signal::SIGSTOP);
    assert_eq!(served.ctl("anna", &["stop"]), "the run ends\n");
    // The order was taken, and is carried out soon: level 1 is told to stop behind its start.
    within_deadline("it drains", || {
        let kept = fs::read(&kept(&served)[0]).unwrap();
        let kept: Value = serde_json::from_slice(&kept).unwrap();
        let members = kept["members"].as_array().unwrap();
        members.iter().any(|member| member["commands"].as_array().unwrap().len() > 1)
    });
    kill_control(&mut served);
    served.again(&[]);
    send(recorder, Signal::SIGCONT);
    let over = served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!(over["last"]["state"], "ok", "{over}");
    end(served);
}

#[test]
fn behind_a_shutdown_nothing_is_taken_over() {
    let mut served = booted(farm());
    assert_eq!(served.ctl("anna", &["shutdown"]), "no application runs\n");
    kill_control(&mut served);
    assert!(kept(&served).is_empty(), "{:?}", kept(&served));
    served.again(&[]);
    assert_eq!(served.status()["state"], "absent");
    end(served);
}

#[test]
fn nobody_is_called_of_a_run_of_which_nothing_lives_any_more() {
    let mut served = recording(farm().set("processes.lease", "3 s"));
    kill_control(&mut served);
    within_deadline("all processes end", || marked(served.running.directory().path()).is_empty());
    kept(&served).iter().for_each(|path| make_old(Path::new(path)));
    served.again(&[]);
    assert_eq!(served.status()["state"], "absent");
    let said = served.running.error_output();
    assert!(said.contains("run 1 is over: its run control has died") && !said.contains("goes on without"), "{said}");
    assert_eq!(served.get("runs/1")["quality"], "interrupted");
    assert_eq!(served.ctl("anna", &["boot"]), "the applications run\n");
    take_a_run(&served, 2);
    end(served);
}

#[test]
fn an_agent_that_has_died_meanwhile_is_launched_again() {
    let mut served = booted(farm().set("processes.lease", "4 s"));
    let former = agent(&served.running, "b");
    kill_control(&mut served);
    send(former, Signal::SIGKILL);
    until_gone(former);
    served.again(&[]);
    served.until_state("booted");
    assert_ne!(agent(&served.running, "b"), former);
    take_a_run(&served, 1);
    end(served);
}

/// Run control that only hangs is not dead: it has to be taken over by force.
#[test]
fn run_control_that_hangs_between_two_runs_is_not_obeyed_when_it_wakes_up() {
    let mut served = booted(farm());
    let former = served.running.pid();
    send(former, Signal::SIGSTOP);
    served.again(&["--take-over"]);
    served.until_state("booted");
    let applications = applications(&served);
    send(former, Signal::SIGCONT);
    assert_eq!(served.running.end_of_first().code(), Some(3));
    take_a_run(&served, 1);
    assert_eq!(self::applications(&served), applications, "it has ended nobody");
    end(served);
}

/// Nobody has to remove it by hand.
#[test]
fn what_another_configuration_has_left_is_removed_when_nothing_of_it_lives() {
    let mut served = recording(farm().set("processes.lease", "3 s"));
    kill_control(&mut served);
    served.running.again(&["--set", "level1.rate=300 Hz"]);
    assert_eq!(served.running.end_of_last().code(), Some(2));
    let said = served.running.error_output();
    assert!(said.contains("is of a run with another level1.rate") && said.contains("or try again in "), "{said}");
    within_deadline("all processes end", || marked(served.running.directory().path()).is_empty());
    let left = kept(&served);
    left.iter().for_each(|path| make_old(Path::new(path)));
    served.again(&["--set", "level1.rate=300 Hz"]);
    let said = served.running.error_output();
    assert_eq!(said.matches("is removed: it was kept by run control with another level1.rate").count(), 1, "{said}");
    assert!(left.len() == 1 && kept(&served).is_empty(), "{left:?}");
    assert_eq!(served.status()["state"], "absent");
    end(served);
}

pub(super) fn booted(job: Job) -> Served {
    let served = Served::start(job);
    assert_eq!(served.ctl("anna", &["boot"]), "the applications run\n");
    served
}

fn check_taken_over(served: Served, state: &str, number: u32) {
    end(check_again(served, state, number));
}

/// Run control dies in this state, and its next life takes a run of this number below the same agents.
fn check_again(mut served: Served, state: &str, number: u32) -> Served {
    let agents = ["a", "b"].map(|host| agent(&served.running, host));
    let before = applications(&served);
    within_deadline("what is to be known is kept", || kept(&served).len() == 1);
    kill_control(&mut served);
    served.again(&[]);
    served.until_state("booted");
    let now = ["a", "b"].map(|host| agent(&served.running, host));
    assert_eq!(now, agents, "in state {state}: {}", served.running.error_output());
    until_said(&mut served, "run control has died without a run");
    let now = applications(&served);
    assert!(before.iter().all(|(_, pid)| now.iter().all(|(_, other)| pid != other)), "{before:?} {now:?}");
    take_a_run(&served, number);
    served
}

fn take_a_run(served: &Served, number: u32) {
    assert_eq!(served.ctl("anna", &["start", "--events", "200"]), format!("run {number} has begun\n"));
    let mut last = Value::Null;
    within_deadline("the run is over", || {
        last = served.status()["last"].take();
        last["number"] == number
    });
    assert_eq!(last["state"], "ok", "{last}");
}

/// What run control keeps for its next life.
pub(super) fn kept(served: &Served) -> Vec<String> {
    let directory = fs::read_dir(served.running.directory().path()).unwrap();
    let paths = directory.flatten().map(|entry| entry.path().display().to_string());
    let is_kept = |path: &String| path.rsplit_once('.').is_some_and(|(_, life)| life.parse::<u32>().is_ok());
    paths.filter(|path| path.contains(".control.") && is_kept(path)).collect()
}

/// As if it had been written long ago.
pub(super) fn make_old(file: &Path) {
    File::options().write(true).open(file).unwrap().set_modified(UNIX_EPOCH).unwrap();
}
