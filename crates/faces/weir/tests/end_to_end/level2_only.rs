//! A chain that ends with level 2: the supervisor clears the read-out systems itself.

use std::fs;

use nix::sys::signal::Signal;

use crate::account::Summary;
use crate::running::{Ended, Job, Running, send};
use crate::selection::Trigger;

/// Many times more events than the read-out systems have pages: each page is cleared and used again.
#[test]
fn every_event_is_decided_and_cleared() {
    let without_menu = Trigger::without(&["ef", "pt", "sfo", "stream", "menu", "menu.chain"]);
    let without_menu = without_menu.with("[sfi]\ncount = 2", "[sfi]\ncount = 0");
    let with_menu = level2_only();
    for (strategy, accepted) in [("two-step", 1..70), ("menu", 270..870), ("sink", 50..200)] {
        let text = if strategy == "menu" { &with_menu } else { &without_menu };
        for processes in [false, true] {
            let job = job(text, strategy).patient().set("ros.pages", "32").events(1000).processes(processes);
            let (ended, summary) = account(job.run(), 0, "ok");
            assert_eq!(summary.count("level1"), 1000);
            assert!(accepted.contains(&summary.count("level2_accepted")), "{strategy}: {summary:?}");
            assert_eq!((summary.count("level2_forced"), summary.count("level2_lost")), (0, 0), "{summary:?}");
            assert_eq!(summary.0["files"].as_array().unwrap().len(), 0);
            assert!(!ended.output().exists(), "nothing is recorded");
            if strategy == "menu" {
                assert!(summary.chains().iter().all(|chain| chain.level2.1 <= chain.level2.0), "{summary:?}");
            }
        }
    }
}

/// An event that were not cleared for good would be the last one.
#[test]
fn one_page_of_each_link_is_enough() {
    let text = level2_only();
    for (pages, group) in [("1", "1"), ("4", "100")] {
        for processes in [false, true] {
            let job = job(&text, "menu").set("ros.pages", pages).set("l2sv.group", group);
            let (_, summary) = account(job.events(100).processes(processes).run(), 0, "ok");
            assert_eq!(summary.count("level1"), 100);
        }
    }
}

#[test]
fn an_interrupt_drains() {
    let text = level2_only();
    for processes in [false, true] {
        let mut running = job(&text, "menu").endless().processes(processes).start();
        until_it_runs(&mut running);
        running.signal(Signal::SIGINT);
        let (ended, summary) = account(running.end(), 0, "ok");
        assert!(summary.count("level1") > 0 && ended.stderr.contains("stopping"), "{}", ended.stderr);
    }
}

/// Level 1 tells it again what it had in hand, and its clears go on.
#[test]
fn a_supervisor_that_dies_returns() {
    let text = &level2_only();
    for connections in ["tcp", "shm"] {
        let job = job(text, "menu").set("processes.on_loss", "restart").set("transport.connections", connections);
        let mut running = job.set("ros.pages", "64").endless().processes(true).start();
        until_it_runs(&mut running);
        send(running.child("l2sv-1"), Signal::SIGKILL);
        running.until("it is back", |running| running.error_output().contains("l2sv-1 is back"));
        running.signal(Signal::SIGINT);
        let (ended, summary) = account(running.end(), 0, "ok");
        assert_eq!(summary.count("level2_lost"), 0, "{summary:?}\n{}", ended.stderr);
        assert_eq!(summary.0["restarts"][0]["name"], "l2sv-1");
    }
}

#[test]
fn a_death_is_told_and_accounted_for() {
    let text = &level2_only();
    // Together: each waits most of the time.
    std::thread::scope(|scope| {
        for application in ["l2sv-1", "l2pu-1", "ros-2", "level1-1"] {
            scope.spawn(move || {
                let job = job(text, "menu").set("run.stop_timeout", "\"5 s\"").endless();
                let mut running = job.processes(true).start();
                until_it_runs(&mut running);
                send(running.child(application), Signal::SIGKILL);
                let (_, summary) = account(running.end(), 3, "aborted");
                let reason = summary.0["reason"].as_str().unwrap();
                assert!(reason.contains(application) && reason.contains("SIGKILL"), "{reason}");
                assert_eq!(summary.0["died"], serde_json::json!([application]));
                assert!(summary.count("level1") > 0, "{summary:?}");
            });
        }
    });
}

#[test]
fn nothing_can_be_behind_it() {
    let text = Trigger::without(&[]).with("[sfi]\ncount = 2", "[sfi]\ncount = 0");
    let ended = text.job().events(10).run().expect(1);
    for table in ["ef", "pt", "sfo", "stream"] {
        assert!(ended.stderr.contains(&format!("[{table}] needs events that are built")), "{}", ended.stderr);
    }
    assert!(!ended.stderr.contains("which is absent"), "{}", ended.stderr);
    let text = level2_only();
    let two = text.job().set("l2sv.count", "2").events(10).run().expect(1);
    assert!(two.stderr.contains("l2sv.count: expected 1 with sfi.count = 0"), "{}", two.stderr);
}

fn level2_only() -> Trigger {
    Trigger::without(&["ef", "pt", "sfo", "stream"]).with("[sfi]\ncount = 2", "[sfi]\ncount = 0")
}

fn job(text: &Trigger, strategy: &str) -> Job {
    text.job().set("l2pu.strategy", &format!("{strategy:?}"))
}

/// Nothing is recorded that could be waited for.
fn until_it_runs(running: &mut Running) {
    running.until("events are issued", |running| {
        let text = running.error_output();
        text.lines().any(|line| line.contains(" issued, ") && !line.contains(" 0 issued, "))
    });
}

fn account(ended: Ended, status: i32, state: &str) -> (Ended, Summary) {
    let ended = ended.expect(status);
    let text = fs::read_to_string(ended.directory.join("summary.json")).unwrap();
    let summary = Summary(serde_json::from_str(&text).unwrap());
    let n = |key| summary.count(key);
    assert_eq!(summary.0["state"], state, "{summary:?}\n{}", ended.stderr);
    assert_eq!(n("residual"), 0, "{summary:?}");
    assert_eq!(n("level1"), n("level2_rejected") + n("level2_accepted") + n("level2_lost"), "{summary:?}");
    (ended, summary)
}
