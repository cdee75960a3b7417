//! Level 2 too slow for its rate, and level 1 with dead time of its own.

use crate::account::Summary;
use crate::running::Job;

/// Events per second that level 2 can decide: one unit, 2 ms each.
const CAPACITY_HZ: u64 = 500;

/// The queue in front of level 2 is full for the whole run, and decisions take what the queue takes. When the load drops
/// instead, those that come then are as fast as ever.
#[test]
fn when_the_load_drops_decisions_are_fast_again() {
    // So slow that what a busy machine adds to a decision is little; and after the drop a small part of a processor is enough.
    let slower = || {
        let job = slow_level2(true).set("l2pu.cost", "\"20 ms\"").set("l2sv.events_in_system", "20");
        job.set("level1.rate", "\"200 Hz\"")
    };
    let overloaded = slower().events(200).run().expect_ok().1;
    assert_eq!(overloaded.count("level2_forced"), 0, "none is due");
    assert!(overloaded.dead_time() > 0.5, "{overloaded:?}");

    let dropping =
        slower().set("level1.profile", r#"[{ from = "200 ms", rate = "5 Hz" }]"#).events(120).run().expect_ok().1;
    assert_eq!(dropping.count("level2_forced"), 0, "none is due");
    // No more than 40 of its events come before the drop.
    assert!(dropping.latency_ns("p50") * 2 < overloaded.latency_ns("p50"), "{overloaded:?}\n{dropping:?}");
    assert!(dropping.latency_ns("p99") * 8 > overloaded.latency_ns("p50"), "{overloaded:?}\n{dropping:?}");
}

#[test]
fn overload_in_one_process_is_dead_time() {
    let (_, summary) = slow_level2(false).set("l2sv.timeout", "\"20 s\"").events(300).run().expect_ok();
    assert_eq!((summary.count("level1"), summary.count("level2_forced")), (300, 0), "none is due");
    // Of four triggers one is decided, but for those that find the queue empty.
    assert!(summary.dead_time() > 0.5, "{summary:?}");
    assert!(summary.level1_waits_for_level2(), "not for others: {summary:?}");
}

/// All workers busy, a decision takes 32 ms; with a limit of 5 %, no more than 1 in 20 may be forced before that.
#[test]
fn few_events_are_accepted_by_force() {
    let job = slow_level2(true).set("l2sv.timeout", "\"15 ms\"").set("l2sv.forced_limit", "\"5 %\"");
    let job = job.set("level1.profile", r#"[{ from = "1 s", rate = "100 Hz" }]"#);
    let (_, summary) =
        job.events(CAPACITY_HZ + 500).set("run.tolerate", "{}").run().expect_degraded(&["level2_forced"]);
    let forced = summary.count("level2_forced");
    // The end of the run forces those that are overdue then: as many as there are workers, on a machine that is busy.
    assert!((1..=summary.count("level1") / 20 + 16).contains(&forced), "{summary:?}");
    // All but some 500 of the 2000 of the first second, and none of those that follow.
    assert!(summary.dead_time() > 0.45, "{summary:?}");
    assert!(summary.level1_waits_for_level2(), "{summary:?}");
    // What level 2 accepts by lot is 1 in 10; what was forced is accepted besides.
    assert!(summary.count("level2_accepted") >= forced, "{summary:?}");
}

#[test]
fn without_a_limit_overdue_events_wait_for_their_decision() {
    let job = slow_level2(true).set("l2sv.timeout", "\"15 ms\"").set("l2sv.forced_limit", "\"0 %\"");
    let job = job.set("level1.profile", r#"[{ from = "200 ms", rate = "100 Hz" }]"#);
    let (_, summary) = job.events(400).run().expect_end();
    // The last one may be overdue on a busy machine when the run ends, and its end forces it.
    assert!(summary.count("level2_forced") <= 16, "{summary:?}");
}

#[test]
fn simple_dead_time_vetoes_what_comes_too_soon() {
    // 1 ms after each trigger, at 10 kHz: of 11 triggers 10 are vetoed.
    for processes in [false, true] {
        let summary = dead_time("{ simple = 40000 }", "10 kHz", 300, processes);
        assert!(summary.dead_time() > 0.8, "{summary:?}");
    }
}

#[test]
fn complex_dead_time_vetoes_bursts() {
    // One trigger in 200 µs leaves each buffer: 5 kHz of 20 kHz pass. At a low rate hardly any burst fills it.
    let buckets = "{ simple = 4, complex = [{ size = 8, drain = 8000 }, { size = 50, drain = 4000 }] }";
    for processes in [false, true] {
        let high = dead_time(buckets, "20 kHz", 1500, processes);
        assert!(high.dead_time() > 0.6, "{high:?}");
        let low = dead_time(buckets, "500 Hz", 200, processes);
        assert!(low.dead_time() < 0.05, "{low:?}");
    }
}

fn dead_time(table: &str, rate: &str, events: u64, processes: bool) -> Summary {
    let job = Job::example("quickstart").patient().set("ros.count", "2").set("level1.spacing", "\"poisson\"");
    // Room for all events of the low rate: none is vetoed because a busy machine takes them late.
    let job = job.set("ros.busy_above", "45 %").set("ros.busy_below", "40 %");
    let job = job.set("level1.rate", &format!("{rate:?}")).set("level1.dead_time", table);
    let (_, summary) = job.events(events).processes(processes).run().expect_ok();
    assert_eq!(summary.count("level1"), events, "what is vetoed is no level-1 event");
    assert_eq!(summary.count("level2_forced"), 0);
    summary
}

/// Far more triggers than level 2 has time for.
fn slow_level2(processes: bool) -> Job {
    Job::example("quickstart")
        .patient()
        .set("ros.count", "2")
        .set("level1.rate", "\"2 kHz\"")
        .set("l2sv.events_in_system", "40")
        .set("l2pu.count", "1")
        .set("l2pu.workers", "16")
        .set("l2pu.strategy", "\"none\"")
        .set("l2pu.cost", "\"2 ms\"")
        .processes(processes)
}

impl Summary {
    fn dead_time(&self) -> f64 {
        self.0["dead_time_fraction"].as_f64().unwrap()
    }

    fn level1_waits_for_level2(&self) -> bool {
        let waits = self.0["blocked_by"].as_array().unwrap();
        waits.iter().any(|wait| wait["who"] == "level1-1" && wait["by"] == "l2sv-1")
    }

    fn latency_ns(&self, key: &str) -> u64 {
        self.0["latency_ns"]["level2"][key].as_u64().unwrap()
    }
}
