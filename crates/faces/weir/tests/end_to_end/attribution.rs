//! Causes of delay are planted in runs, and the one sentence names each, with what helps.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::filter;
use crate::running::Job;
use crate::served::Served;

#[test]
fn a_slow_filter() {
    let Some(job) = filter::slow_one("attribution::a_slow_filter") else { return };
    check(job, "is busy because efd-1 has no free task", "start more tasks (pt.count = 2 instead of 1)");
}

#[test]
fn a_slow_recorder() {
    // Of each event it is waited for until the disk has it.
    let job = quickstart().set("l2pu.step_accept", "1.0").set("sfo.durable", "fsync").set("ef.slots", "1");
    let remedy = "let an event count as recorded earlier (sfo.durable = \"write\" instead of \"fsync\")";
    check(job, "efd-1 is busy because sfo-1 has not recorded what it was given", remedy);
}

#[test]
fn a_slow_level_2_processor() {
    let job = quickstart().set("l2pu.count", "1").set("l2pu.cost", "20 ms");
    let remedy = "start more units of level 2 (l2pu.count = 2 instead of 1)";
    check(job, "l2sv-1 is busy because l2pu-1 has no free worker", remedy);
}

#[test]
fn few_pages() {
    let job = quickstart().set("ros.count", "1").set("ros.pages", "8").set("l2pu.workers", "64").set("ef.slots", "64");
    let remedy = "give each read-out buffer more pages (ros.pages = 16 instead of 8)";
    check(job, "level1-1 holds triggers back because the pages of ros-1 are used up", remedy);
}

#[test]
fn few_credits() {
    let job = Job::example("event-builder").patient().set("sfi.outstanding_requests", "1").set("sfi.count", "1");
    let job = job.set("level1", "{}").set("dfm.input", "level1");
    let remedy = "let each ask all 4 sources of an event at once (sfi.outstanding_requests = 4 instead of 1)";
    check(job, "dfm-1 waits because sfi-1 has no room for an event", remedy);
}

#[test]
fn a_source_that_does_not_come() {
    let job =
        (0..3).fold(Job::example("test-beam").patient(), |job, place| job.set(&format!("source.{place}.play"), "none"));
    check(
        job,
        "level1-1 holds triggers back because sources tlu, telescope, device have not come",
        "start it, or see why",
    );
}

fn quickstart() -> Job {
    Job::example("quickstart").patient().set("ros.count", "2")
}

/// The sentence names this cause, with this remedy, for as long as the run goes on.
fn check(job: Job, cause: &str, remedy: &str) {
    let mut served = Served::start(job);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    for _ in 0..2 {
        served.until(cause, |status| {
            let sentence = status["sentence"].as_str().unwrap_or_default();
            sentence.contains(cause) && sentence.contains(remedy)
        });
        assert!(served.status()["run"]["troubles"] == json!([]));
    }
    served.ctl("anna", &["stop"]);
    served.until("the run is over", |status| status["last"]["number"] == 1);
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}
