//! A carrier for each type of message, between real processes, by what the receivers count.

use crate::account::Summary;
use crate::death::{check_death_in, job};
use crate::running::Job;

const EVENTS: u64 = 500;

/// Of the quickstart, each of which is asked for a report so often and answers.
const APPLICATIONS: f64 = 18.0;
const REPORTS_PER_S: f64 = 4.0;

/// The data of all events of [`builder`]. They travel three times: to builders, to the event filter, to the recorder.
const DATA: u64 = 4 * 9000 * EVENTS;

#[test]
fn replies_pass_through_shared_memory_and_all_else_over_tcp() {
    let summary = built(builder().set("transport.event_reply", "shm"));
    assert_eq!(times(&summary), [2, 1, 0]);
    assert_eq!(bytes(&summary)[2], 0);
    let summary = built(builder().set("transport.connections", "shm").set("transport.event_reply", "tcp"));
    assert_eq!(times(&summary), [1, 2, 0]);
}

#[test]
fn requests_in_datagrams_are_answered_over_tcp() {
    let summary = built(builder().set("transport.event_request", "udp"));
    assert_eq!(times(&summary), [3, 0, 0]);
    assert!(bytes(&summary)[1] == 0 && bytes(&summary)[2] > 0, "{summary:?}");
    let summary = built(builder().set("transport.event_reply", "udp"));
    assert_eq!(times(&summary), [2, 0, 1]);
}

#[test]
fn three_carriers_share_the_work() {
    let job = builder().set("transport.event_request", "udp").set("transport.event_reply", "shm");
    let summary = built(job.set("transport.clear", "multicast").set("transport.recording", "shm"));
    assert_eq!(times(&summary), [1, 2, 0]);
    assert!(bytes(&summary)[2] > 0, "{summary:?}");
}

#[test]
fn pushed_data_and_their_credits_part() {
    // A window that needs credits many times, and requests only where something is lost.
    let push = || builder().set("dfm.building", "push").set("ros.push", "{window=\"100 kB\"}");
    assert_eq!(times(&built(push().set("transport.pushed", "udp"))), [2, 0, 1]);
    let summary = built(push().set("transport.credit", "udp"));
    assert_eq!(times(&summary), [3, 0, 0]);
    assert!(bytes(&summary)[2] > 0, "{summary:?}");
    let summary = built(push().set("transport.pushed", "shm").set("transport.push", "multicast"));
    assert_eq!(times(&summary), [2, 1, 0]);
    assert!(bytes(&summary)[2] > 0, "{summary:?}");
}

#[test]
fn stages_have_connections_of_their_own() {
    let chain = || Job::example("quickstart").patient().events(EVENTS).processes(true).set("ef.policy", "accept");
    let summary = |job: Job| job.run().expect_ok().1;
    let [_, before, _] = bytes(&summary(chain()));
    assert_eq!(before, 0);
    // Over TCP what run control says.
    let shared = || chain().set("transport.connections", "shm");
    let control = summary(shared());
    for stage in ["level1", "level2", "building", "filter", "recording"] {
        let [_, shm, _] = bytes(&summary(chain().set(&format!("transport.{stage}"), "shm")));
        assert!(shm > 0, "{stage}");
        let staged = summary(shared().set(&format!("transport.{stage}"), "tcp"));
        // The longer one run is than the other, the more often its applications report.
        let seconds = [&control, &staged].map(|run| run.0["duration_s"].as_f64().unwrap());
        let reports = 2.0 * APPLICATIONS * ((seconds[0] - seconds[1]).max(0.0) * REPORTS_PER_S + 1.0);
        let [more, without] = [&staged, &control].map(|run| messages_over_tcp(run) as f64);
        assert!(more + reports > without + EVENTS as f64 / 4.0, "{stage}: {more} messages, {without} of run control");
    }
}

#[test]
fn a_death_ends_the_run_as_with_one_carrier() {
    for application in ["ros-2", "sfi-1", "dfm-1"] {
        check_death_in(mixed(job()), application);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    for (key, value, word) in [
        ("transport.event_reply", "multicast", "\"udp\", found \"multicast\""),
        ("transport.building", "udp", "expected \"connection\", \"tcp\" or \"shm\""),
        ("transport.credit", "udp", "only for dfm.building"),
    ] {
        let ended = builder().set(key, value).run().expect(1);
        assert!([key, word].iter().all(|text| ended.stderr.contains(text)), "{key}: {}", ended.stderr);
    }
}

/// Requests in datagrams, replies through shared memory, the rest over TCP.
pub(crate) fn mixed(job: Job) -> Job {
    let types = [("event_request", "udp"), ("event_reply", "shm"), ("roi_reply", "shm"), ("clear", "multicast")];
    types.into_iter().fold(job, |job, (key, carrier)| job.set(&format!("transport.{key}"), carrier))
}

/// Event building alone from four sources, recorded.
fn builder() -> Job {
    Job::example("event-builder").patient().set("sfo", "{}").events(EVENTS).processes(true)
}

/// How often all data have passed over TCP, in shared memory and in datagrams.
fn times(summary: &Summary) -> [u64; 3] {
    bytes(summary).map(|bytes| {
        assert!((bytes + DATA / 4) % DATA < DATA / 2, "a part of the data: {summary:?}");
        (bytes + DATA / 4) / DATA
    })
}

/// What all processes have received over TCP, in shared memory and in datagrams.
fn bytes(summary: &Summary) -> [u64; 3] {
    ["tcp", "shm", "udp"].map(|kind| {
        let carried = &summary.0["network"]["carriers"][kind]["bytes"];
        carried.as_u64().unwrap_or_else(|| panic!("no count of {kind}: {summary:?}"))
    })
}

fn messages_over_tcp(summary: &Summary) -> u64 {
    summary.0["network"]["carriers"]["tcp"]["messages"].as_u64().expect("a number of messages")
}

fn built(job: Job) -> Summary {
    let (_, summary) = job.run().expect_ok();
    assert_eq!(summary.count("built_complete"), EVENTS, "{summary:?}");
    summary
}
