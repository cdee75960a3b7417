//! Run control dies in the middle of a run. The run goes on, and ends as any run if run control comes back in time.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use stamps::file::Trace;

use super::farm::Farm;
use super::{agent, closing_files};
use crate::children::{marked, name};
use crate::files::check_all;
use crate::running::{Job, recorded_bytes, send, within_deadline};
use crate::served::Served;
use crate::trace::{files_of, record};

#[test]
fn run_control_that_comes_back_takes_the_run_over() {
    let mut served = recording(farm());
    let (applications, key) = (applications(&served), served.key.clone());
    kill_control(&mut served);
    until_more_without_control(&served);
    served.again(&[]);
    let taken = served.until_state("running");
    assert_eq!(taken["run"]["number"], 1, "{taken}");
    // Pages that were open command on, and nobody else does.
    assert_eq!((&served.key, &taken["operator"]["name"]), (&key, &json!("anna")), "{taken}");
    until_more(&mut served);
    let run = stop(&mut served, "ok");
    assert_eq!((&run["quality"], &run["partition"]), (&json!("incomplete"), &json!("quickstart")), "{run}");
    assert!(run["remarks"].to_string().contains("had no run control"), "{run}");
    assert_eq!(self::applications(&served), applications, "nobody was started again");

    assert_eq!(served.ctl("anna", &["start", "--events", "300"]), "run 2 has begun\n");
    let second = served.until("the second run is over", |status| status["last"]["number"] == 2);
    assert_eq!(second["last"]["state"], "ok", "{second}");
    assert_eq!(served.get("runs/2")["quality"], "good");
    end(served);
}

#[test]
fn several_lives_of_run_control_follow_one_another() {
    let mut served = recording(farm());
    for _ in 0..3 {
        kill_control(&mut served);
        served.again(&[]);
        served.until_state("running");
        until_more(&mut served);
    }
    let run = stop(&mut served, "ok");
    assert_eq!(run["summary"]["run_control_away"].as_array().map(Vec::len), Some(3), "{run}");
    end(served);
}

/// An application that hangs keeps the second life from going on with the run.
#[test]
fn a_life_that_dies_while_it_takes_over_is_followed_by_another() {
    let mut served = recording(farm());
    let (processes, hung) = (applications(&served), process(&served, "sfi-1"));
    send(hung, Signal::SIGSTOP);
    kill_control(&mut served);
    served.again(&[]);
    let second = served.running.directory().join("runs.sqlite.control.quickstart.1");
    within_deadline("the second life has succeeded the first", || fs::exists(&second).unwrap());
    kill_control(&mut served);
    served.again(&[]);
    let third = served.running.directory().join("runs.sqlite.control.quickstart.2");
    within_deadline("the third life has succeeded the second", || fs::exists(&third).unwrap());
    send(hung, Signal::SIGCONT);
    served.until_state("running");
    assert_eq!(applications(&served), processes, "nobody was started again");
    until_more(&mut served);
    stop(&mut served, "ok");
    end(served);
}

#[test]
fn a_run_that_is_paused_stays_so() {
    let mut served = recording(farm());
    assert_eq!(served.ctl("anna", &["pause"]), "triggers are held back\n");
    // The order was taken, and is carried out soon.
    let kept = served.running.directory().join("runs.sqlite.control.quickstart.0");
    within_deadline("it is kept", || fs::read_to_string(&kept).is_ok_and(|kept| kept.contains("\"is_paused\":true")));
    kill_control(&mut served);
    served.again(&[]);
    served.until_state("paused");
    assert_eq!(served.ctl("anna", &["resume"]), "triggers go on\n");
    until_more(&mut served);
    stop(&mut served, "ok");
    end(served);
}

/// The former life has written down that triggers go on, and died before it told them.
#[test]
fn a_run_whose_resumption_was_not_told_goes_on() {
    let mut served = recording(farm());
    assert_eq!(served.ctl("anna", &["pause"]), "triggers are held back\n");
    let path = served.running.directory().join("runs.sqlite.control.quickstart.0");
    within_deadline("it is kept", || fs::read_to_string(&path).is_ok_and(|kept| kept.contains("\"is_paused\":true")));
    kill_control(&mut served);
    let mut kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    kept["is_paused"] = json!(false);
    let mut forgotten = 0;
    for member in kept["members"].as_array_mut().unwrap() {
        let commands = member["commands"].as_array_mut().unwrap();
        forgotten += commands.len() - 1;
        // All are told to start, and then those that trigger to pause.
        commands.truncate(1);
    }
    assert!(forgotten > 0, "{kept}");
    fs::write(&path, kept.to_string()).unwrap();
    served.again(&[]);
    served.until_state("running");
    until_more(&mut served);
    stop(&mut served, "ok");
    end(served);
}

/// The former life dies as soon as it has said that they are written.
#[test]
fn time_stamps_that_were_ordered_go_on_until_the_next_life_ends_them() {
    let mut served = recording(farm());
    served.ctl("anna", &["stamps", "on"]);
    let begun = files_of(&served.get("stamps"));
    kill_control(&mut served);
    until_more_without_control(&served);
    let before = stamps_in(&begun);
    served.again(&[]);
    served.until_state("running");
    within_deadline("stamps are known to be on", || served.get("stamps")["stamps"] == "on");
    until_more(&mut served);
    let told = served.ctl("anna", &["stamps", "off"]);
    assert!(told.contains("time stamps on host a: ") && told.contains("time stamps on host b: "), "{told}");
    assert_eq!(files_of(&served.get("stamps")), begun, "none was begun anew");
    assert!(are_whole(&begun) && stamps_in(&begun) > before, "they went on");
    stop(&mut served, "ok");
    end(served);
}

#[test]
fn time_stamps_of_a_run_end_with_it_under_the_next_life() {
    let mut served = recording(farm().set("run.stamps", "on"));
    kill_control(&mut served);
    served.again(&[]);
    served.until_state("running");
    until_more(&mut served);
    stop(&mut served, "ok");
    until_said(&mut served, "time stamps on host b: ");
    let files = files_of(&served.get("stamps"));
    assert!(files.len() > 5 && are_whole(&files) && stamps_in(&files) > 0, "{files:?}");
    end(served);
}

/// It has not started the agents that it took over: each has a trace of its own recorded.
#[test]
fn traces_are_recorded_of_agents_that_were_taken_over() {
    let mut served = recording(farm());
    kill_control(&mut served);
    served.again(&[]);
    served.until_state("running");
    let below = |name: &str| record(agent(&served.running, name)).unwrap();
    let told = ["a", "b"].map(below);
    let all: usize = told.iter().filter_map(|told| told.split(' ').next()?.parse::<usize>().ok()).sum();
    assert_eq!(all, applications(&served).len(), "{told:?}");
    until_more(&mut served);
    stop(&mut served, "ok");
    end(served);
}

/// Its applications close their files, and their agents end them.
#[test]
fn without_run_control_nothing_is_left_and_the_next_one_begins_anew() {
    let mut served = recording(farm().set("processes.lease", "500 ms"));
    kill_control(&mut served);
    within_deadline("all processes end", || marked(served.running.directory().path()).is_empty());
    assert!(check_all(&served.running.output()).iter().map(|(_, events)| events).sum::<u64>() > 0);
    served.again(&[]);
    let lost = served.until("the run is known to be lost", |status| status["last"]["number"] == 1);
    assert_eq!(lost["last"]["state"], "aborted", "{lost}");
    assert!(lost["last"]["reason"].as_str().unwrap().contains("its agent cannot be called"), "{lost}");
    assert_eq!(served.get("runs/1")["quality"], "interrupted");
    served.until("another run may begin", |status| status["verbs"].to_string().contains("boot"));
    if served.status()["state"] != "absent" {
        served.ctl("anna", &["shutdown"]);
    }
    assert_eq!(served.ctl("anna", &["boot"]), "the applications run\n");
    assert_eq!(served.ctl("anna", &["start", "--events", "300"]), "run 2 has begun\n");
    let second = served.until("the second run is over", |status| status["last"]["number"] == 2);
    assert_eq!(second["last"]["state"], "ok", "{second}");
    end(served);
}

#[test]
fn run_control_that_died_with_an_agent_has_its_applications_started_again() {
    // What the read-out systems and the builder of that host held is lost with them.
    let job = farm()
        .set("processes.on_loss", "restart")
        .set("run.tolerate.built_incomplete", "100 %")
        .set("run.tolerate.lost_after_build", "100 %")
        .set("processes.lease", "8 s");
    let mut served = recording(job);
    let agent = agent(&served.running, "b");
    kill_control(&mut served);
    send(agent, Signal::SIGKILL);
    served.again(&[]);
    served.until_state("running");
    until_said(&mut served, "sfi-1 is back");
    until_more(&mut served);
    let run = stop(&mut served, "ok");
    assert!(run["summary"]["restarts"].as_array().unwrap().len() > 1, "{run}");
    end(served);
}

#[test]
fn an_application_that_died_meanwhile_is_started_again() {
    let mut served = recording(farm().set("processes.on_loss", "restart"));
    let sfi = process(&served, "sfi-1");
    kill_control(&mut served);
    send(sfi, Signal::SIGKILL);
    until_gone(sfi);
    served.again(&[]);
    served.until_state("running");
    until_said(&mut served, "sfi-1 is back");
    until_more(&mut served);
    let (last, run) = stopped(&mut served);
    // What it had built and not sent to its end went with it.
    let is_lost = |reason: &str| reason.ends_with(" lost between building and event filter");
    assert!(last["state"] == "ok" || last["reason"].as_str().is_some_and(is_lost), "{last}");
    let restarts = run["summary"]["restarts"].as_array().unwrap();
    assert_eq!((&restarts[0]["name"], &restarts[0]["how"]), (&json!("sfi-1"), &json!("killed by SIGKILL")));
    end(served);
}

#[test]
fn a_run_that_lost_an_application_meanwhile_ends_in_order() {
    let mut served = recording(farm());
    let sfi = process(&served, "sfi-1");
    kill_control(&mut served);
    send(sfi, Signal::SIGKILL);
    until_gone(sfi);
    served.again(&[]);
    until_aborted(&mut served, "sfi-1 died: killed by SIGKILL");
    end(served);
}

#[test]
fn another_configuration_takes_nothing_over() {
    let mut served = recording(farm());
    kill_control(&mut served);
    served.running.again(&["--set", "level1.rate=10 kHz"]);
    assert_eq!(served.running.end_of_last().code(), Some(2));
    let said = served.running.error_output();
    assert!(said.contains("is of a run with another level1.rate"), "{said}");
    served.again(&[]);
    served.until_state("running");
    stop(&mut served, "ok");
    end(served);
}

#[test]
fn who_does_not_know_the_key_takes_nothing_over() {
    let mut served = recording(farm().with_key("a key of this test, which nobody else knows"));
    let kept = fs::read_to_string(served.running.directory().join("runs.sqlite.control.quickstart.0")).unwrap();
    assert!(kept.contains("nonce") && !kept.contains("\"secret\":"), "the key is needed, too");
    kill_control(&mut served);
    let path = served.running.directory().join("with-key.toml");
    let right = fs::read_to_string(&path).unwrap();
    fs::write(&path, right.replace("nobody else knows", "somebody guesses")).unwrap();
    served.running.again(&[]);
    assert_eq!(served.running.end_of_last().code(), Some(2));
    let said = served.running.error_output();
    assert!(said.contains("is of a run with another partition.key"), "{said}");
    fs::write(&path, right).unwrap();
    served.again(&[]);
    served.until_state("running");
    stop(&mut served, "ok");
    end(served);
}

#[test]
fn a_former_run_control_that_wakes_up_is_not_obeyed() {
    let mut served = recording(farm());
    let applications = applications(&served);
    let former = served.running.pid();
    send(former, Signal::SIGSTOP);
    served.running.again(&[]);
    assert_eq!(served.running.end_of_last().code(), Some(2));
    let said = served.running.error_output();
    assert!(said.contains("another process is run control of this partition"), "{said}");
    served.again(&["--take-over"]);
    served.until_state("running");
    send(former, Signal::SIGCONT);
    assert_eq!(served.running.end_of_first().code(), Some(3));
    until_more(&mut served);
    assert_eq!(self::applications(&served), applications, "it has ended nobody");
    stop(&mut served, "ok");
    end(served);
}

#[test]
fn partitions_of_one_catalogue_are_taken_over_each_for_itself() {
    let first = recording(farm());
    let catalogue = format!("{:?}", first.running.directory().join("runs.sqlite"));
    let second = farm().set("partition.name", "other").set("control.catalogue", &catalogue);
    let mut both = [first, recording_run(second, 2)];
    both.iter_mut().for_each(kill_control);
    for served in &mut both {
        served.again(&[]);
        served.until_state("running");
        until_more(served);
    }
    for served in &mut both {
        assert_eq!(served.ctl("anna", &["stop"]), "the run ends\n");
        let over = served.until_state("booted");
        assert_eq!(over["last"]["state"], "ok", "{over}");
    }
    // The catalogue is in the directory of the first one.
    both.into_iter().rev().for_each(end);
}

#[test]
fn run_control_that_comes_back_finds_the_hosts_that_it_logged_in_to() {
    let test = "taking_over::run_control_that_comes_back_finds_the_hosts_that_it_logged_in_to";
    let Some(mut farm) = Farm::to_log_in(test) else { return };
    let job = farm.logged_in(patient(closing_files()), "10.77.0.4");
    check_taken_over(recording(job));
}

#[test]
fn run_control_that_comes_back_finds_the_nodes_of_its_jobs() {
    let test = "taking_over::run_control_that_comes_back_finds_the_nodes_of_its_jobs";
    let Some(mut farm) = Farm::of_nodes(test) else { return };
    let job = farm.on_nodes(patient(closing_files()));
    check_taken_over(recording(job));
    within_deadline("no job is left", || farm.jobs().is_empty());
}

fn check_taken_over(mut served: Served) {
    let applications = applications(&served);
    kill_control(&mut served);
    until_more_without_control(&served);
    served.again(&[]);
    served.until_state("running");
    until_more(&mut served);
    stop(&mut served, "ok");
    assert_eq!(self::applications(&served), applications, "nobody was started again");
    end(served);
}

/// Nobody saw the host go.
#[test]
fn run_control_that_comes_back_notices_a_host_that_was_cut_off_meanwhile() {
    let test = "taking_over::run_control_that_comes_back_notices_a_host_that_was_cut_off_meanwhile";
    let Some(mut farm) = Farm::to_log_in(test) else { return };
    let job = farm.logged_in(closing_files().set("processes.lease", "6 s"), "10.77.0.4");
    let mut served = recording(job);
    kill_control(&mut served);
    farm.cut_off("c");
    served.again(&[]);
    until_aborted(&mut served, "host c is lost");
    let directory = served.running.directory().path().to_owned();
    end(served);
    within_deadline("all processes end", || marked(&directory).is_empty());
}

/// Two hosts on this machine.
pub(super) fn farm() -> Job {
    let job = Job::example("quickstart").patient().set("ros.count", "3").set("sfo.max_file_events", "40");
    patient(job).set("host", "[{name=\"a\"}, {name=\"b\", data=\"127.0.0.2\"}]")
}

/// In all of the files.
fn stamps_in(files: &[PathBuf]) -> u64 {
    files.iter().map(|file| Trace::read(file).map_or(0, |trace| trace.counts().0)).sum()
}

fn are_whole(files: &[PathBuf]) -> bool {
    files.iter().all(|file| Trace::read(file).unwrap().torn_at.is_none())
}

/// It waits long for run control, and does not fill the disk of a busy machine.
pub(super) fn patient(job: Job) -> Job {
    job.set("level1.rate", "400 Hz").set("processes.lease", "30 s")
}

/// A run of it that records, and goes on until it is stopped.
pub(super) fn recording(job: Job) -> Served {
    recording_run(job, 1)
}

fn recording_run(job: Job, number: u32) -> Served {
    let mut served = Served::start(job);
    assert_eq!(served.ctl("anna", &["boot"]), "the applications run\n");
    assert_eq!(served.ctl("anna", &["start", "--duration", "1h"]), format!("run {number} has begun\n"));
    served.running.until_recording();
    served
}

/// Until all its threads have ended: then others may be run control.
pub(super) fn kill_control(served: &mut Served) {
    served.running.signal(Signal::SIGKILL);
    served.running.end_of_last();
}

pub(super) fn until_gone(pid: i32) {
    within_deadline("a process ends", || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| matches!(rest.trim().chars().next(), Some('Z' | 'X')))
    });
}

pub(super) fn until_more_without_control(served: &Served) {
    let output = served.running.output();
    let before = recorded_bytes(&output);
    within_deadline("more is recorded", || recorded_bytes(&output) > before + MORE_BYTES);
}

pub(super) fn until_more(served: &mut Served) {
    served.running.until_more_is_recorded();
}

pub(super) fn until_said(served: &mut Served, text: &str) {
    let mut heard = Value::Null;
    within_deadline(text, || {
        heard = served.get("messages");
        heard.to_string().contains(text)
    });
}

/// Stops the run, which ends in this state; what is kept of it. Each event is in one file.
pub(super) fn stop(served: &mut Served, state: &str) -> Value {
    let (last, run) = stopped(served);
    assert_eq!(last["state"], state, "{last}");
    run
}

/// Stops the run; how it ended, and what is kept of it.
fn stopped(served: &mut Served) -> (Value, Value) {
    assert_eq!(served.ctl("anna", &["stop"]), "the run ends\n");
    let over = served.until_state("booted");
    assert_eq!(over["last"]["number"], 1, "{over}");
    let run = served.get("runs/1");
    assert_eq!(run["summary"]["accounting"]["residual"], 0, "{run}");
    let files = check_all(&served.running.output());
    let events: u64 = files.iter().map(|(_, events)| events).sum();
    assert_eq!(Some(events), over["last"]["recorded"].as_u64(), "{over}");
    assert_eq!(run["files"].as_array().map(Vec::len), Some(files.len()), "{run}");
    (over["last"].clone(), run)
}

/// Until the run is over for this reason; all that was taken is accounted for.
fn until_aborted(served: &mut Served, why: &str) {
    let over = served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!(over["last"]["state"], "aborted", "{over}");
    assert!(over["last"]["reason"].as_str().unwrap().contains(why), "{over}");
    let run = served.get("runs/1");
    assert_eq!(
        (&run["quality"], &run["summary"]["accounting"]["residual"]),
        (&json!("interrupted"), &json!(0)),
        "{run}"
    );
}

/// Ends the service; nothing of the run is left for anybody.
pub(super) fn end(served: Served) {
    served.running.signal(Signal::SIGTERM);
    let ended = served.end().expect(0);
    let is_kept = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(".control."));
    let kept = fs::read_dir(ended.directory.path()).unwrap().flatten().map(|entry| entry.path());
    let kept: Vec<_> = kept.filter(|path| is_kept(path) && path.extension() != Some("lock".as_ref())).collect();
    assert!(kept.is_empty(), "{kept:?}");
}

/// The processes of applications, by name.
pub(super) fn applications(served: &Served) -> Vec<(String, i32)> {
    let processes = marked(served.running.directory().path());
    let mut named: Vec<_> = processes.into_iter().filter_map(|pid| Some((name(pid)?, pid))).collect();
    named.sort();
    assert!(named.len() > 5, "{named:?}");
    named
}

pub(super) fn process(served: &Served, application: &str) -> i32 {
    let found = applications(served).into_iter().find(|(name, _)| name == application);
    found.unwrap_or_else(|| panic!("no {application}")).1
}

/// Some events of the sample.
const MORE_BYTES: u64 = 500_000;
