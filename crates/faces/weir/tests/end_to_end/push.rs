//! Data that are pushed, between real processes.

use nix::sys::signal::Signal;

use crate::account::Summary;
use crate::running::{Job, send};

#[test]
fn what_the_dfm_assigns_is_pushed() {
    for processes in [false, true] {
        let job = builder().set("dfm.building", "push").events(1000).processes(processes);
        let (_, summary) = job.run().expect_ok();
        assert_eq!(summary.count("built_complete"), 1000);
        assert_eq!(reasks(&summary), 0, "{summary:?}");
    }
}

#[test]
fn what_the_number_of_an_event_assigns_is_pushed() {
    for processes in [false, true] {
        let (_, summary) = by_number().events(1000).processes(processes).run().expect_ok();
        assert_eq!(summary.count("recorded"), 1000);
        assert_eq!(reasks(&summary), 0, "{summary:?}");
    }
}

#[test]
fn small_windows_groups_and_rates_lose_nothing() {
    let push = "{window=\"20 kB\", link_per_second=\"40 MB\", group=3, group_age=\"2 ms\"}";
    let job = builder().set("dfm.building", "push").set("ros.push", push).events(500).processes(true);
    let (_, summary) = job.run().expect_ok();
    assert_eq!((summary.count("built_complete"), reasks(&summary)), (500, 0), "{summary:?}");
    for push in ["{window=\"20 kB\", group=4}", "{group=4, group_age=\"0 s\"}"] {
        let (_, summary) = by_number().set("ros.push", push).events(502).processes(true).run().expect_ok();
        assert_eq!((summary.count("recorded"), reasks(&summary)), (502, 0), "{summary:?}");
    }
}

#[test]
fn pushed_events_of_level_2_are_complete() {
    let job = Job::example("quickstart").patient().set("dfm.building", "push").events(300).processes(true);
    let (_, summary) = job.run().expect_ok();
    assert!(summary.count("recorded") > 0, "{summary:?}");
}

#[test]
fn pushed_data_travel_in_datagrams() {
    let job = builder().set("dfm.building", "push").set("transport.event_reply", "udp").events(1000).processes(true);
    let (_, summary) = job.run().expect_ok();
    assert_eq!(summary.count("built_complete"), 1000);
}

#[test]
fn adaptive_credits_and_a_rotating_order_build_everything() {
    let job = builder().set("sfi.credits", "adaptive").set("sfi.request_order", "rotating").events(1000);
    let (_, summary) = job.processes(true).run().expect_ok();
    assert_eq!(summary.count("built_complete"), 1000);
}

#[test]
fn a_builder_that_is_pushed_to_dies() {
    for job in [builder().set("dfm.building", "push"), by_number()] {
        let mut running = job.endless().set("run.stop_timeout", "5 s").processes(true).start();
        running.until_recording();
        send(running.child("sfi-1"), Signal::SIGKILL);
        let (_, summary) = running.end().expect_aborted(&["sfi-1", "SIGKILL"]);
        assert!(summary.count("recorded") > 0, "{summary:?}");
    }
}

/// Event building alone, recorded.
fn builder() -> Job {
    Job::example("event-builder").patient().set("sfo", "{}")
}

/// Level 1 without level 2.
fn by_number() -> Job {
    builder().set("level1", "{}").set("dfm.input", "level1").set("dfm.building", "push-by-number")
}

fn reasks(summary: &Summary) -> u64 {
    summary.0["reasks"].as_u64().unwrap_or_else(|| panic!("no re-asks: {summary:?}"))
}
