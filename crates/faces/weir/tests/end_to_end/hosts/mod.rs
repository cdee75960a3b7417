//! A partition on several hosts: network namespaces with addresses of their own, which agents reach through a real `sshd`, a real Slurm or
//! `weir host`.

mod between_runs;
mod farm;
mod ldaq;
mod login;
mod run_again;
mod service;
mod silence;
mod slurm;
mod taking_over;

use std::fs;

use nix::sys::signal::Signal;

use self::farm::Farm;
use crate::account::Summary;
use crate::children::{marked, name};
use crate::files::check_all;
use crate::running::{Job, Running, send, within_deadline};

#[test]
fn a_partition_runs_on_three_hosts() {
    let Some((farm, running)) = start("a_partition_runs_on_three_hosts", quickstart()) else { return };
    check_runs(&farm, running);
}

/// Each host has its applications, and all is accounted for.
fn check_runs(farm: &Farm, mut running: Running) {
    running.until_recording();
    let processes = marked(running.directory().path());
    let on = |host: &str| -> Vec<String> {
        let there = farm.processes(host);
        processes.iter().filter(|pid| there.contains(pid)).filter_map(|pid| name(*pid)).collect()
    };
    assert_eq!(sorted(on("b")), ["efd-1", "pros-1", "ros-1", "sfo-1"]);
    assert_eq!(sorted(on("c")), ["l2pu-1", "ros-2", "sfi-1"]);
    assert!(on("a").len() == 6 && on("rc").is_empty(), "{:?} {:?}", on("a"), on("rc"));
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_ok();
    assert!(summary.0["network"]["carriers"]["tcp"]["bytes"].as_u64() > Some(0), "{summary:?}");
}

#[test]
fn several_runs_follow_one_another_on_them() {
    let test = "several_runs_follow_one_another_on_them";
    let job = quickstart_for(300).with(&["--runs", "3"]);
    let Some((_farm, running)) = start(test, job) else { return };
    let ended = running.end().expect(0);
    assert_eq!(ended.stdout.matches(": ok, residual 0").count(), 3, "{}", ended.stdout);
    assert_eq!(check_all(ended.output()).len(), 3);
}

#[test]
fn a_host_that_is_cut_off_is_lost() {
    let Some((farm, running)) = start("a_host_that_is_cut_off_is_lost", quickstart()) else { return };
    check_lost_when_cut_off(&farm, running);
}

/// The host can say nothing, and nothing reaches it: both sides find out alone.
fn check_lost_when_cut_off(farm: &Farm, mut running: Running) {
    running.until_recording();
    farm.cut_off("c");
    let (ended, summary) =
        running.end().expect_aborted(&["host c is lost: its agent was silent for 3s", "sfi-1", "ros-2"]);
    assert_eq!(died(&summary), ["l2pu-1", "ros-2", "sfi-1"], "{}", ended.stderr);
    let why = "because: host c is lost, because: its agent was silent for 3s";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    assert!(summary.count("recorded") > 0, "{summary:?}");
}

/// What its recorder leaves is read when it writes no more.
#[test]
fn the_files_of_a_host_that_is_cut_off_are_in_the_account() {
    let test = "the_files_of_a_host_that_is_cut_off_are_in_the_account";
    let Some((farm, mut running)) = start(test, quickstart()) else { return };
    running.until_recording();
    farm.cut_off("b");
    let (ended, summary) = running.end().expect_aborted(&["host b is lost", "sfo-1"]);
    assert!(summary.count("recorded") > 0 && ended.stderr.contains("recovered: "), "{summary:?}\n{}", ended.stderr);
}

#[test]
fn a_host_whose_agent_dies_is_lost_at_once() {
    let Some((_farm, running)) = start("a_host_whose_agent_dies_is_lost_at_once", quickstart()) else { return };
    check_lost_with_its_agent(running);
}

fn check_lost_with_its_agent(mut running: Running) {
    running.until_recording();
    send(agent(&running, "c"), Signal::SIGKILL);
    let (_, summary) = running.end().expect_aborted(&["host c is lost: its agent is gone", "sfi-1"]);
    assert_eq!(died(&summary), ["l2pu-1", "ros-2", "sfi-1"]);
}

#[test]
fn a_host_whose_agent_dies_returns() {
    let job = quickstart().set("processes.on_loss", "restart");
    let Some((_farm, mut running)) = start("a_host_whose_agent_dies_returns", job) else { return };
    running.until_recording();
    let first = agent(&running, "c");
    send(first, Signal::SIGKILL);
    running.until("its applications are back", |running| {
        ["l2pu-1", "ros-2", "sfi-1"].iter().all(|app| running.error_output().contains(&format!("{app} is back")))
    });
    assert_ne!(agent(&running, "c"), first);
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_end();
    let restarts = summary.0["restarts"].as_array().map_or(0, Vec::len);
    assert_eq!(restarts, 3, "{summary:?}");
}

/// Agents and applications see the end of their connections.
#[test]
fn without_run_control_nothing_is_left_on_any_host() {
    let test = "without_run_control_nothing_is_left_on_any_host";
    let Some((_farm, mut running)) = start(test, quickstart()) else { return };
    running.until_recording();
    check_left_alone(&running);
}

/// On the host that is cut off nobody sees anything: the lease ends what runs there.
#[test]
fn without_run_control_and_network_nothing_is_left_on_any_host() {
    let test = "without_run_control_and_network_nothing_is_left_on_any_host";
    let Some((farm, mut running)) = start(test, quickstart()) else { return };
    running.until_recording();
    farm.cut_off("c");
    check_left_alone(&running);
}

fn check_left_alone(running: &Running) {
    running.signal(Signal::SIGKILL);
    let directory = running.directory().path();
    within_deadline("all processes end", || marked(directory).is_empty());
    let events: u64 = check_all(&running.output()).iter().map(|(_, events)| events).sum();
    assert!(events > 0);
}

#[test]
fn a_host_that_cannot_be_reached_is_named() {
    let test = "a_host_that_cannot_be_reached_is_named";
    let Some(mut farm) = Farm::to_log_in(test) else { return };
    let ended = farm.logged_in(quickstart(), "10.77.0.9").run().expect(2);
    let said = "host c is lost: its launcher exited with status 255 before its agent came";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

/// The example on three hosts, until it is stopped; files are closed now and then.
fn quickstart() -> Job {
    closing_files().endless()
}

fn closing_files() -> Job {
    example().set("sfo.max_file_events", "40")
}

fn quickstart_for(events: u64) -> Job {
    example().events(events)
}

/// A busy machine may leave an agent without a processor for a second, and its host is not lost.
fn example() -> Job {
    let job = Job::example("quickstart").patient().set("processes.lease", "3 s");
    job.set("ros.count", "3").set("sfi.count", "2").set("run.stop_timeout", "20 s")
}

fn start(test: &str, job: Job) -> Option<(Farm, Running)> {
    let mut farm = Farm::to_log_in(test)?;
    let running = farm.logged_in(job, "10.77.0.4").start();
    Some((farm, running))
}

fn died(summary: &Summary) -> Vec<String> {
    let died = summary.0["died"].as_array().unwrap_or_else(|| panic!("nobody died: {summary:?}"));
    sorted(died.iter().map(|name| name.as_str().unwrap().to_owned()).collect())
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// The process of the agent of a host.
fn agent(running: &Running, host: &str) -> i32 {
    let processes = marked(running.directory().path());
    let is_it = |pid: &i32| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').skip(1).take(3).eq(["agent", "--host", host])
    };
    processes.into_iter().find(is_it).unwrap_or_else(|| panic!("no agent of {host}\n{}", running.error_output()))
}
