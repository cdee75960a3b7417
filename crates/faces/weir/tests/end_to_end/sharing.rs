//! Connections through shared memory, between real processes.

use crate::death::{check_death_in, check_hang_in, job};
use crate::running::Job;

#[test]
fn the_full_chain_passes_events_from_process_to_process() {
    let (_, summary) = shared(Job::example("quickstart").patient()).events(1000).processes(true).run().expect_ok();
    assert_eq!(summary.count("recorded"), summary.count("filter_accepted"), "{summary:?}");
    assert!(summary.count("recorded") > 0, "{summary:?}");
}

#[test]
fn events_are_built_and_recorded() {
    let job = builder().events(2000).processes(true);
    let (_, summary) = job.run().expect_ok();
    assert_eq!(summary.count("recorded"), 2000, "{summary:?}");
}

#[test]
fn short_fragments_travel_in_the_ring_and_long_ones_in_their_pages() {
    for size in ["\"40 B\"", "\"600 B\"", "\"60 kB\""] {
        let job = builder().set("ros.fragment.size", size).set("ros.page_size", "\"64 KiB\"");
        let (_, summary) = job.events(500).processes(true).run().expect_ok();
        assert_eq!(summary.count("built_complete"), 500, "{size}: {summary:?}");
    }
}

#[test]
fn requests_in_datagrams_go_beside() {
    let job = builder().set("transport.event_request", "udp").events(500).processes(true);
    let (_, summary) = job.run().expect_ok();
    assert_eq!(summary.count("built_complete"), 500, "{summary:?}");
}

#[test]
fn a_death_ends_the_run_as_over_tcp() {
    for application in ["ros-2", "sfi-1", "efd-1", "sfo-1", "l2pu-1", "dfm-1"] {
        check_death_in(shared(job()), application);
    }
}

#[test]
fn a_peer_that_hangs_does_not_hold_up_the_end() {
    for application in ["ros-1", "sfi-1"] {
        check_hang_in(shared(job()), application);
    }
}

/// Event building alone, recorded.
fn builder() -> Job {
    shared(Job::example("event-builder").patient()).set("sfo", "{}")
}

fn shared(job: Job) -> Job {
    job.set("transport.connections", "shm")
}
