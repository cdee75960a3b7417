//! Processes that die within a run and are started again: the run goes on, and all that was lost is counted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use eformat::Event;
use nix::sys::signal::Signal;

use crate::account::Summary;
use crate::carriers::mixed;
use crate::children::{name, of};
use crate::death::Sockets;
use crate::files::{each_event, recorded};
use crate::running::{Ended, Job, Running, send};

#[test]
fn of_a_read_out_system() {
    let summary = check("ros-2", job());
    assert!(summary.count("built_incomplete") > 0, "what it held is missing, and said to be: {summary:?}");
    assert_eq!(summary.0["state"], "degraded");
}

#[test]
fn of_the_front_of_a_read_out_crate() {
    let summary = check("trg-1", crate_job());
    assert_eq!(lost(&summary), 0, "its crate is missing in some events: {summary:?}");
}

#[test]
fn of_the_interface_of_a_read_out_crate() {
    for building in ["pull", "push"] {
        let summary = check("ebif-1", crate_job().set("dfm.building", building).set("sfi.retries", "1000"));
        let spoilt = lost(&summary) + summary.count("built_incomplete");
        assert_eq!(spoilt, 0, "the read-out systems have the data still: {summary:?}");
    }
}

#[test]
fn of_an_event_builder_behind_a_read_out_crate() {
    let summary = check("sfi-1", crate_job().set("sfi.count", "2"));
    assert_eq!(lost(&summary), 0, "the read-out has the data still: {summary:?}");
}

#[test]
fn of_the_pseudo_ros() {
    check("pros-1", job());
}

#[test]
fn of_a_level_2_supervisor() {
    for count in ["1", "2"] {
        let summary = check("l2sv-1", job().set("l2sv.count", count));
        assert_eq!(lost(&summary), 0, "level 1 has its events still: {summary:?}");
    }
}

#[test]
fn of_a_level_2_processing_unit() {
    let summary = check("l2pu-1", job());
    assert_eq!(lost(&summary), 0, "its events go to the other unit: {summary:?}");
}

#[test]
fn of_the_dataflow_manager() {
    for clear_after in ["built", "recorded"] {
        let summary = check("dfm-1", job().set("dfm.clear_after", clear_after));
        assert_eq!(lost(&summary), 0, "the others have its events still: {summary:?}");
    }
}

#[test]
fn of_an_event_builder() {
    let summary = check("sfi-1", job().set("dfm.clear_after", "recorded"));
    assert_eq!(lost(&summary), 0, "the read-out has the data still: {summary:?}");
}

#[test]
fn of_an_event_filter_daemon() {
    let summary = check("efd-1", job());
    assert_eq!(lost(&summary), 0, "the event builders have its events still: {summary:?}");
}

#[test]
fn of_an_event_filter_daemon_with_processing_tasks() {
    let job = Job::example("trigger").set("level1.rate", "1 kHz").set("processes.on_loss", "restart");
    let mut running = job.endless().processes(true).start();
    running.until_recording();
    send(running.child("efd-1"), Signal::SIGKILL);
    running.until("it is back", |running| running.error_output().contains("efd-1 is back"));
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_end();
    assert_eq!(lost(&summary), 0, "{summary:?}");
    assert_eq!(summary.0["restarts"][0]["name"], "efd-1");
}

#[test]
fn of_a_recorder() {
    for durable in ["write", "fsync"] {
        let summary = check("sfo-1", job().set("sfo.durable", durable).set("sfo.max_file_events", "40"));
        assert_eq!(lost(&summary), 0, "the filter daemons have its events still: {summary:?}");
    }
}

#[test]
fn of_one_of_two_recorders() {
    let summary = check("sfo-2", job().set("sfo.count", "2").set("sfo.compression", "zlib"));
    assert_eq!(lost(&summary), 0, "the filter daemons have its events still: {summary:?}");
}

#[test]
fn through_shared_memory() {
    for application in ["ros-2", "pros-1", "l2sv-1", "l2pu-1", "dfm-1", "sfi-1", "efd-1", "sfo-1"] {
        check(application, job().set("transport.connections", "shm"));
    }
}

#[test]
fn with_several_network_ports() {
    for application in ["ros-2", "sfi-1"] {
        let job = || job().set("ros.ports", "[\"127.0.0.2\", \"127.0.0.3\"]");
        check(application, job());
        check(application, job().set("transport.event_reply", "udp").set("transport.event_request", "shm"));
    }
}

#[test]
fn with_a_carrier_for_each_type() {
    for application in ["ros-2", "sfi-1", "l2pu-1", "dfm-1", "efd-1"] {
        let summary = check(application, mixed(job()).set("transport.filter", "shm"));
        for kind in ["tcp", "shm", "udp"] {
            assert!(summary.0["network"]["carriers"][kind]["bytes"].as_u64() > Some(0), "{kind}: {summary:?}");
        }
    }
}

#[test]
fn of_processes_that_send_datagrams() {
    for application in ["ros-2", "sfi-1", "dfm-1", "l2pu-1"] {
        let types = ["event_request", "event_reply", "roi_request", "roi_reply"];
        let job = types.iter().fold(job(), |job, key| job.set(&format!("transport.{key}"), "udp"));
        check(application, job.set("transport.clear", "multicast"));
    }
}

#[test]
fn of_processes_that_send_acknowledged_datagrams() {
    for application in ["ros-2", "sfi-1", "dfm-1", "l2pu-1", "pros-1", "l2sv-1"] {
        let types = ["event_request", "event_reply", "roi_request", "roi_reply", "collected"];
        let job = types.iter().fold(job(), |job, key| job.set(&format!("transport.{key}"), "udp"));
        let job = job.set("transport.clear", "udp").set("transport.udp.window", "100 kB");
        let summary = check(application, job);
        let keeps_nothing_alone = ["dfm-1", "l2pu-1", "l2sv-1"].contains(&application);
        assert!(!keeps_nothing_alone || lost(&summary) == 0, "others have its events still: {summary:?}");
        let datagrams = &summary.0["network"]["datagrams"];
        assert!(datagrams["received"].as_u64().unwrap() > 0, "{summary:?}");
        assert_eq!(datagrams["malformed"], 0, "{summary:?}");
    }
}

#[test]
fn of_read_out_systems_that_push() {
    for application in ["ros-1", "sfi-2", "dfm-1"] {
        check(application, job().set("dfm.building", "push"));
    }
}

#[test]
fn of_two_at_once() {
    let mut running = job().start();
    running.until_recording();
    let victims = ["ros-1", "sfi-2"].map(|name| running.child(name));
    victims.into_iter().for_each(|pid| send(pid, Signal::SIGKILL));
    running.until("both are back", |running| {
        let said = running.error_output();
        ["ros-1", "sfi-2"].iter().all(|name| said.contains(&format!("{name} is back")))
    });
    let summary = end_well(running);
    assert_eq!(summary.0["restarts"].as_array().unwrap().len(), 2, "{summary:?}");
}

#[test]
fn again_and_again_until_the_limit() {
    let mut running = job()
        .set("processes.restarts", "2")
        .set("processes.restart_window", "1h")
        .set("run.stop_timeout", "5 s")
        .start();
    running.until_recording();
    for death in 1..=3 {
        running.until("there is one to kill", |running| is_there(running, "efd-1"));
        send(running.child("efd-1"), Signal::SIGKILL);
        let died = move |running: &Running| running.error_output().matches("efd-1 died").count() == death;
        running.until("its death is noticed", died);
    }
    let words = ["efd-1 died", "SIGKILL", "started again 2 times within 3600s", "processes.restarts"];
    let (_, summary) = running.end().expect_aborted(&words);
    assert_eq!(summary.0["died"], serde_json::json!(["efd-1"]));
    assert_eq!(summary.0["restarts"].as_array().unwrap().len(), 2, "{summary:?}");
}

#[test]
fn of_a_role_that_cannot_return_ends_the_run() {
    let mut running = job().set("run.stop_timeout", "5 s").start();
    running.until_recording();
    send(running.child("level1-1"), Signal::SIGKILL);
    running.end().expect_aborted(&["level1-1 died", "SIGKILL", "cannot go on without level1-1"]);
}

/// Kills an application in the middle of a run, and looks at what comes of the run.
fn check(application: &str, job: Job) -> Summary {
    let mut running = job.start();
    running.until_recording();
    let sockets = Sockets::of(&running);
    send(running.child(application), Signal::SIGKILL);
    let back = format!("{application} is back");
    running.until("it is back", |running| running.error_output().contains(&back));
    let summary = end_well(running);
    let restarts = summary.0["restarts"].as_array().unwrap_or_else(|| panic!("no restarts: {summary:?}"));
    assert_eq!(restarts.len(), 1, "{summary:?}");
    assert_eq!(restarts[0]["name"], application);
    assert_eq!(restarts[0]["how"], "killed by SIGKILL");
    assert!(restarts[0]["away_s"].as_f64().is_some(), "{summary:?}");
    sockets.check_gone();
    summary
}

/// Lets the run go on for a while and ends it: it ends well, every event is recorded once or counted as lost.
fn end_well(mut running: Running) -> Summary {
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let (ended, summary) = running.end().expect_end();
    let mut ids = BTreeSet::new();
    assert!(names(ended.output()).iter().all(|name| name.ends_with(".data")), "{:?}", names(ended.output()));
    for file in recorded(ended.output()) {
        check_file(&file);
        each_event(&file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            assert!(ids.insert(event.global_id()), "event {} is recorded twice", event.global_id());
        });
    }
    // All events are accepted: what is not in the files is counted as lost.
    let missing = (0..summary.count("level1")).filter(|id| !ids.contains(id)).count() as u64;
    assert_eq!(missing, lost(&summary), "{summary:?}");
    assert_eq!(summary.count("recorded"), ids.len() as u64, "{summary:?}");
    all_lives_are_counted(&ended, &summary);
    assert!(ended.stderr.contains("died; it is started again, because: killed by SIGKILL"), "{}", ended.stderr);
    assert!(ended.stdout.contains("started again"), "{}", ended.stdout);
    summary
}

/// The table and the throughput are not those of the last lives alone.
fn all_lives_are_counted(ended: &Ended, summary: &Summary) {
    let shows = |stage: &str, count: u64| {
        let row = ended.stdout.lines().find(|line| line.starts_with(stage)).unwrap_or_else(|| panic!("no {stage}"));
        let digits: String = row.split_once("  ").unwrap().1.trim_start().split("  ").next().unwrap().to_owned();
        assert_eq!(digits.replace(' ', ""), count.to_string(), "{}", ended.stdout);
    };
    shows("level 1 ", summary.count("level1"));
    shows("sfi", summary.count("built_complete") + summary.count("built_incomplete"));
    shows("sfo", summary.count("recorded"));
    let mut bytes = 0;
    recorded(ended.output()).iter().for_each(|file| each_event(file, |event| bytes += event.len()));
    let (seconds, throughput) = (&summary.0["duration_s"], &summary.0["throughput_bytes_per_s"]["recorded"]);
    let counted = seconds.as_f64().unwrap() * throughput.as_f64().unwrap();
    assert!((counted - bytes as f64).abs() < 1.0, "{bytes} bytes are in the files: {summary:?}");
    let dead = summary.0["restarts"].as_array().unwrap().iter().map(|restart| restart["name"].as_str().unwrap());
    let has_died = |role: &str| dead.clone().any(|name| name.starts_with(role));
    let bounds: Vec<&str> =
        summary.0["lower_bounds"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
    assert!(bounds.contains(&"network"), "{bounds:?}");
    assert_eq!(bounds.contains(&"throughput_bytes_per_s.built"), has_died("sfi"), "{bounds:?}");
    assert!(!bounds.contains(&"throughput_bytes_per_s.recorded"), "its files tell: {bounds:?}");
}

/// The names in a directory.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn check_file(path: &Path) {
    let report = storage::check(path, &storage::CheckLimits::default()).unwrap();
    assert!(report.is_good(), "{report}");
}

fn is_there(running: &Running, application: &str) -> bool {
    of(running.pid()).into_iter().any(|pid| name(pid).as_deref() == Some(application))
}

fn lost(summary: &Summary) -> u64 {
    ["level2_lost", "not_built", "lost_after_build", "lost_in_recording"].iter().map(|key| summary.count(key)).sum()
}

/// A read-out crate, of which every event is accepted.
fn crate_job() -> Job {
    Job::example("readout-crate")
        .set("level1.rate", "500 Hz")
        .set("l2pu.strategy", "none")
        .set("l2pu.accept", "1.0")
        .set("transport.roc", "shm")
        .set("processes.on_loss", "restart")
        .endless()
        .processes(true)
}

/// The full chain, which accepts every event, slowly enough that all that is done can be looked at.
fn job() -> Job {
    Job::example("quickstart")
        .set("ros.count", "2")
        .set("level1.rate", "500 Hz")
        .set("l2pu.strategy", "none")
        .set("l2pu.accept", "1.0")
        .set("processes.on_loss", "restart")
        .endless()
        .processes(true)
}
