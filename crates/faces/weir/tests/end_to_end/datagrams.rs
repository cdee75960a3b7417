//! Messages in datagrams, between real processes.

use crate::account::Summary;
use crate::death::{check_death_in, check_hang_in, job};
use crate::running::Job;

#[test]
fn events_are_built_over_udp_and_cleared_by_multicast() {
    let job = builder().events(1000).processes(true);
    let (_, summary) = over_udp(job, &["event_request", "event_reply"]).run().expect_ok();
    assert_eq!(summary.count("built_complete"), 1000);
    // Of groups of requests and replies there may be few, but each datagram carries at most 64 KiB of the data.
    assert!(datagrams(&summary, "received") >= 4 * 9000 * 1000 / (64 << 10), "{summary:?}");
    for cause in ["foreign", "malformed", "stale"] {
        assert_eq!(datagrams(&summary, cause), 0, "{cause}: {summary:?}");
    }
}

#[test]
fn all_types_travel_in_acknowledged_datagrams() {
    let types = ["roi_request", "roi_reply", "event_request", "event_reply", "collected"];
    let job = over_udp(Job::example("quickstart").patient().events(500).processes(true), &types);
    let job = job.set("transport.clear", "udp").set("transport.udp.window", "100 kB");
    let (_, summary) = job.set("transport.udp.retransmits", "1000").run().expect_ok();
    assert!(datagrams(&summary, "received") >= RECEIVED_MIN, "{summary:?}");
    assert_eq!((datagrams(&summary, "malformed"), summary.0["reasks"].as_u64()), (0, Some(0)), "{summary:?}");
}

#[test]
fn level_2_reads_out_regions_over_udp() {
    let job = Job::example("quickstart").patient().events(500).processes(true);
    let types = ["roi_request", "roi_reply", "event_request", "event_reply"];
    let (_, summary) = over_udp(job, &types).run().expect_ok();
    assert!(datagrams(&summary, "received") >= RECEIVED_MIN, "{summary:?}");
}

#[test]
fn one_process_has_no_datagrams() {
    let job = builder().events(100);
    let (_, summary) = over_udp(job, &["event_request", "event_reply"]).run().expect_ok();
    assert_eq!(summary.0["network"].get("datagrams"), None, "{summary:?}");
}

#[test]
fn a_death_ends_the_run_as_over_tcp() {
    for application in ["ros-2", "sfi-1", "l2pu-1", "dfm-1", "pros-1"] {
        check_death_in(all_over_udp(job()), application);
    }
}

#[test]
fn a_death_ends_the_run_with_acknowledgements_too() {
    for application in ["ros-2", "sfi-1"] {
        check_death_in(all_over_udp(job()).set("transport.udp.window", "100 kB"), application);
    }
}

#[test]
fn a_peer_that_hangs_does_not_hold_up_the_end() {
    for application in ["ros-1", "sfi-1"] {
        check_hang_in(all_over_udp(job()), application);
    }
}

#[test]
fn a_peer_that_hangs_does_not_hold_up_the_end_with_acknowledgements_either() {
    for application in ["ros-1", "sfi-1", "l2pu-1"] {
        // What others have to say to it fills the window soon, and waits.
        let job = all_over_udp(job()).set("transport.udp.window", "2 kB").set("transport.clear", "udp");
        check_hang_in(job.set("transport.udp.retransmits", "100"), application);
    }
}

#[test]
fn clears_that_are_not_multicast_go_to_each_read_out_system() {
    let job = builder().events(1000).processes(true).set("transport.clear", "udp");
    let (_, summary) = job.run().expect_ok();
    let (sent, received) = (datagrams(&summary, "sent"), datagrams(&summary, "received"));
    // A multicast would be received more often than it is sent; what comes behind the report of its receiver is not counted.
    assert!(received >= 4 * 10 && sent >= received, "{summary:?}");
}

/// Event building alone, recorded.
fn builder() -> Job {
    Job::example("event-builder").patient().set("sfo", "{}")
}

/// These types in datagrams, clears by multicast.
fn over_udp(job: Job, types: &[&str]) -> Job {
    let set = |job: Job, key: &&str| job.set(&format!("transport.{key}"), "udp");
    types.iter().fold(job, set).set("transport.clear", "multicast")
}

fn all_over_udp(job: Job) -> Job {
    over_udp(job, &["roi_request", "roi_reply", "event_request", "event_reply"])
}

fn datagrams(summary: &Summary, count: &str) -> u64 {
    summary.0["network"]["datagrams"][count].as_u64().unwrap_or_else(|| panic!("no count {count}: {summary:?}"))
}

/// Each of 500 events asks at least once and is answered; of the four that a unit has in hand messages may share a datagram.
const RECEIVED_MIN: u64 = 2 * 500 / 4;
