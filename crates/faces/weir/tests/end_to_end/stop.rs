//! Stopping in the middle of a run.

use nix::sys::signal::Signal;

use crate::running::{Job, Running};

#[test]
fn an_interrupt_drains_and_accounts() {
    for processes in [false, true] {
        check_signal(Signal::SIGINT, processes);
    }
}

#[test]
fn a_request_to_terminate_drains_and_accounts() {
    for processes in [false, true] {
        check_signal(Signal::SIGTERM, processes);
    }
}

fn check_signal(signal: Signal, processes: bool) {
    let mut running = endless(processes);
    running.until_recording();
    running.signal(signal);
    let (ended, summary) = running.end().expect_ok();
    assert!(summary.count("recorded") > 0);
    assert!(ended.stderr.contains("stopping"), "{}", ended.stderr);
}

#[test]
fn the_end_of_the_time_drains_and_accounts() {
    for processes in [false, true] {
        let (_, summary) = few_sources(processes).with(&["--duration", "3s"]).run().expect_ok();
        assert!(summary.count("recorded") > 0);
        assert!(summary.0["duration_s"].as_f64().unwrap() >= 3.0, "{summary:?}");
    }
}

#[test]
fn a_second_interrupt_forces_and_everything_lost_is_counted() {
    for processes in [false, true] {
        // So slow that level 2 cannot have drained before the second interrupt, and so kind that its first event is recorded.
        let mut running = slow_level2(processes).endless().start();
        running.until_recording();
        running.signal(Signal::SIGINT);
        running.until("the first interrupt is taken", |running| running.error_output().contains("stopping"));
        running.signal(Signal::SIGINT);
        let (_, summary) = running.end().expect_aborted(&["forced", "second interrupt"]);
        let lost = ["level2_lost", "not_built", "lost_after_build", "lost_in_recording"].map(|key| summary.count(key));
        assert!(summary.count("recorded") > 0 && lost.iter().sum::<u64>() > 0, "{summary:?}");
    }
}

/// What level 1 has issued is finished, and the run is not the worse for it.
#[test]
fn an_interrupt_while_a_run_drains_loses_nothing() {
    let mut running = slow_level2(true).events(20).start();
    // All is issued long before the first event has gone all the way.
    running.until_recording();
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_ok();
    assert_eq!(summary.count("level1"), 20, "{summary:?}");
    assert!(summary.count("recorded") > 0, "{summary:?}");
}

#[test]
fn an_interrupt_before_the_run_begins_ends_it() {
    let running = crate::open_files::that_cannot_begin().start();
    crate::running::within_deadline("a child is started", || !crate::children::of(running.pid()).is_empty());
    running.signal(Signal::SIGINT);
    let ended = running.end().expect(2);
    assert!(ended.stderr.contains("interrupted before the run began"), "{}", ended.stderr);
    assert!(!ended.directory.join("summary.json").exists(), "no run, no account");
}

/// A run that goes on until it is stopped.
fn endless(processes: bool) -> Running {
    few_sources(processes).endless().start()
}

fn few_sources(processes: bool) -> Job {
    Job::example("quickstart").patient().set("ros.count", "2").processes(processes)
}

/// A decision takes 100 ms and more, is never late, and accepts.
fn slow_level2(processes: bool) -> Job {
    let slow = [("l2pu.cost", "100 ms"), ("l2pu.step_accept", "1"), ("l2pu.workers", "1"), ("l2sv.timeout", "60 s")];
    slow.into_iter().fold(few_sources(processes), |job, (key, value)| job.set(key, value))
}
