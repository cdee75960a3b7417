//! The event filter with processing tasks: events that a task fails on reach the debug stream, and nothing is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use eformat::{Event, SubDetector};
use nix::sys::signal::Signal;
use testkit::TempDir;
use trigger::FilterResult;

use crate::account::Summary;
use crate::children::{marked, of};
use crate::files::{check_all, each_event, recorded};
use crate::running::{Ended, Job, Running, send, within_deadline};

#[test]
fn a_python_class_decides_on_what_it_reads() {
    let Some(job) = job("a_python_class_decides_on_what_it_reads", "Odd", true) else { return };
    let (ended, summary) = job.set("pt.parameters", "{ keep = 1 }").run().expect_ok();
    assert_eq!(summary.count("filter_accepted"), 200);
    assert_eq!(summary.count("filter_rejected"), 200);
    let events = Recorded::of(&ended, "physics_");
    assert_eq!(events.ordinals(), (0..400).filter(|ordinal| ordinal % 2 == 1).collect());
    // The result of this class is the number of data words that it saw.
    assert!(events.0.values().all(|words| words.len() == 1 && words[0] > 163), "{events:?}");
}

#[test]
fn an_exception() {
    check("an_exception", "Raises", "FilterException", |ordinal| format!("ValueError: event {ordinal} is bad"));
}

#[test]
fn a_crash() {
    check("a_crash", "Crashes", "FilterCrash", |_| "SIGSEGV".into());
}

#[test]
fn an_exit() {
    check("an_exit", "Leaves", "FilterCrash", |_| "status 3".into());
}

#[test]
fn a_loop_without_end() {
    check("a_loop_without_end", "Loops", "FilterTimeout", |_| String::new());
}

#[test]
fn a_leak_up_to_the_limit() {
    check("a_leak_up_to_the_limit", "Leaks", "FilterMemory", |_| String::new());
}

/// By name, besides a stream that takes whatever names no other; a name that there is not is the class's mistake.
#[test]
fn a_python_class_names_streams() {
    for processes in [false, true] {
        let Some(job) = job("a_python_class_names_streams", "Streams", processes) else { return };
        let streams = r#"[{name="Main"},{type="calibration",name="X",by_name=true}]"#;
        let (ended, summary) = job.set("sfo", "{}").set("stream", streams).run().expect_degraded(&["filter_debug"]);
        let of = |stream: &str| Recorded::of(&ended, stream);
        let ordinals = |takes: fn(u64) -> bool| (0..400).filter(|ordinal| takes(*ordinal)).collect::<BTreeSet<u64>>();
        let calibration = of("calibration_X");
        assert_eq!(calibration.ordinals(), ordinals(|ordinal| ordinal % 4 < 2), "{}", ended.stderr);
        let expected = ordinals(|ordinal| ordinal % 4 == 1 || (ordinal % 4 == 2 && ordinal != 6));
        assert_eq!(of("physics_Main").ordinals(), expected);
        let words: BTreeSet<u64> =
            calibration.0.values().filter(|words| words.len() == 1).map(|words| words[0].into()).collect();
        assert_eq!(words, ordinals(|ordinal| ordinal % 4 == 0), "the result words that it gave");
        assert_eq!((summary.count("filter_accepted"), summary.count("filter_debug")), (299, 1), "{summary:?}");
        let debug = of("debug_");
        assert_eq!(debug.ordinals(), [6].into());
        assert!(debug.reason(6).contains("calibration_Y"), "{}", debug.reason(6));
    }
}

#[test]
fn a_kill_from_outside() {
    for processes in [false, true] {
        let Some(job) = job("a_kill_from_outside", "Killed", processes) else { return };
        let directory = TempDir::new("killed");
        let mark = directory.join("mark");
        let job = job.set("pt.parameters", &format!("{{ mark = {:?} }}", mark.display().to_string()));
        let mut running = job.set("pt.timeout", "\"90 s\"").start();
        running.until("a task waits for its end", |_| fs::read_to_string(&mark).is_ok_and(|pid| !pid.is_empty()));
        send(fs::read_to_string(&mark).unwrap().parse().unwrap(), Signal::SIGKILL);
        let (ended, summary) = running.end().expect_degraded(&["filter_debug"]);
        assert_eq!((summary.count("filter_accepted"), summary.count("filter_debug")), (200, 1), "{summary:?}");
        let debug = Recorded::of(&ended, "debug_FilterCrash");
        assert_eq!(debug.ordinals(), [7].into());
        assert!(debug.reason(7).contains("SIGKILL"), "{}", debug.reason(7));
    }
}

#[test]
fn an_interrupt_while_tasks_are_busy() {
    for processes in [false, true] {
        let Some(mut running) = slow("an_interrupt_while_tasks_are_busy", processes) else { return };
        running.until_recording();
        running.signal(Signal::SIGINT);
        let (_, summary) = running.end().expect_ok();
        assert!(summary.count("recorded") > 0 && summary.count("filter_debug") == 0, "{summary:?}");
    }
}

/// Those of a daemon do not outlive it.
#[test]
fn tasks_end_with_their_daemon() {
    let Some(mut running) = slow("tasks_end_with_their_daemon", true) else { return };
    running.until_recording();
    let daemon = running.child("efd-1");
    let tasks = of(daemon);
    assert_eq!(tasks.len(), 3);
    send(daemon, Signal::SIGKILL);
    // The end of the run looks for processes that are left.
    running.end().expect_aborted(&["efd-1", "SIGKILL"]);
}

#[test]
fn tasks_end_with_the_run() {
    for processes in [false, true] {
        let Some(mut running) = slow("tasks_end_with_the_run", processes) else { return };
        running.until_recording();
        running.signal(Signal::SIGKILL);
        let (output, directory) = (running.output(), running.directory().path().to_owned());
        within_deadline("all processes end", || marked(&directory).is_empty());
        if processes {
            assert!(check_all(&output).iter().map(|(_, events)| events).sum::<u64>() > 0);
        }
    }
}

/// Events that the filter has no time for fill the read-out, and level 1 waits. Level 2 has all its data nevertheless: an
/// event is not issued before there is a page for it.
#[test]
fn a_slow_filter_takes_no_data_from_level_2() {
    let Some(python) = testkit::python("a_slow_filter_takes_no_data_from_level_2") else { return };
    let chains = |job: Job| {
        let job = job.set("ros.pages", "64").set("sfi.events", "4").set("sfi.building", "4").set("ef.slots", "2");
        let job = job.set("l2pu.request_timeout", "\"1 s\"").set("ros.request_timeout", "\"1 s\"");
        let (_, summary) = job.set("l2sv.timeout", "\"60 s\"").events(250).run().expect_ok();
        assert_eq!(summary.0["selection"]["level2_data"]["incomplete_steps"], 0, "{summary:?}");
        summary.chains().into_iter().map(|chain| chain.level2).collect::<Vec<_>>()
    };
    let expected = chains(Job::example("trigger"));
    let slow = Job::example("trigger")
        .set("pt.algorithm", &class("Slow"))
        .set("pt.parameters", "{ seconds = 0.03 }")
        .set("pt.python", &format!("{:?}", python.display().to_string()))
        .set("pt.count", "1");
    assert_eq!(chains(slow), expected);
}

/// The largest event that builders build is no larger than what a task can take.
#[test]
fn the_largest_event_that_is_built_fits_a_task() {
    let job = || Job::example("trigger").patient().set("ros.count", "2").events(300);
    let (ended, _) = job().run().expect_ok();
    let mut largest = 0;
    recorded(ended.output()).iter().for_each(|file| each_event(file, |event| largest = largest.max(event.len())));
    let (_, summary) = job().set("sfi.max_event_size", &format!("\"{largest} B\"")).run().expect_ok();
    assert_eq!(summary.count("filter_debug"), 0, "{summary:?}");
}

/// An interpreter that is not there, and one without numpy.
#[test]
fn an_interpreter_that_cannot_work_is_told_before_the_run() {
    let test = "an_interpreter_that_cannot_work_is_told_before_the_run";
    let Some(python) = testkit::python(test) else { return };
    let directory = TempDir::new("python");
    let bare = directory.join("bare");
    fs::write(&bare, format!("#!/bin/sh\nexec {} -S \"$@\"\n", python.display())).unwrap();
    fs::set_permissions(&bare, Permissions::from_mode(0o755)).unwrap();
    for (interpreter, status, words) in
        [(directory.join("absent"), 1, "expected a program, found none"), (bare, 2, "numpy")]
    {
        for processes in [false, true] {
            let Some(job) = job(test, "Raises", processes) else { return };
            let ended = job.set("pt.python", &format!("{:?}", interpreter.display().to_string())).run().expect(status);
            assert!(ended.stderr.contains(words), "{}", ended.stderr);
        }
    }
}

/// Nothing that is wrong with the class starts a run.
#[test]
fn a_class_that_cannot_be_made_is_told_before_the_run() {
    let test = "a_class_that_cannot_be_made_is_told_before_the_run";
    for (class, words) in [("Nothing", "Nothing"), ("Odd", "keep")] {
        for processes in [false, true] {
            let Some(job) = job(test, class, processes) else { return };
            let ended = job.run().expect(2);
            assert!(ended.stderr.contains(words), "{}", ended.stderr);
        }
    }
}

/// Runs a class that fails on one event in 40. These are in the debug stream with a reason that has the words, all
/// others are decided.
fn check(test: &str, class: &str, stream: &str, words: impl Fn(u64) -> String) {
    // Long enough for the interpreter on a busy machine. A loop has no end anyway: fewer of them.
    let (timeout, events) = if class == "Loops" { ("\"10 s\"", 80) } else { ("\"60 s\"", 400) };
    for processes in [false, true] {
        let Some(job) = unlimited(test, class, processes) else { return };
        let job = job.events(events).set("pt.timeout", timeout);
        let (ended, summary) = job.set("pt.memory_limit", "\"300 MB\"").run().expect_degraded(&["filter_debug"]);
        check_counts(&summary, events);
        let debug = Recorded::of(&ended, &format!("debug_{stream}"));
        assert_eq!(debug.ordinals(), (0..events).filter(|ordinal| ordinal % 40 == 7).collect(), "{}", ended.stderr);
        let physics = Recorded::of(&ended, "physics_");
        assert_eq!(physics.ordinals(), (0..events).filter(|ordinal| ordinal % 2 == 0).collect());
        for ordinal in debug.ordinals() {
            let (words, reason) = (words(ordinal), debug.reason(ordinal));
            assert!(reason.contains(&words), "{words:?} in {reason:?}");
        }
    }
}

fn check_counts(summary: &Summary, events: u64) {
    assert_eq!(summary.count("filter_debug"), events / 40);
    assert_eq!(summary.count("filter_accepted"), events / 2);
    assert_eq!(summary.count("filter_rejected"), events / 2 - events / 40);
}

fn job(test: &str, class: &str, processes: bool) -> Option<Job> {
    Some(unlimited(test, class, processes)?.events(400))
}

fn unlimited(test: &str, class: &str, processes: bool) -> Option<Job> {
    let python = testkit::python(test)?;
    let job = Job::example("quickstart")
        .patient()
        .set("l2pu.step_accept", "1.0")
        .set("pt.algorithm", &self::class(class))
        .set("pt.python", &format!("{:?}", python.display().to_string()))
        .set("pt.count", "2")
        .set("pt.timeout", "\"60 s\"")
        .processes(processes);
    Some(job)
}

fn class(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/filter.py");
    format!("{:?}", format!("{}:{name}", file.display()))
}

/// With one task that is always busy.
pub(crate) fn slow_one(test: &str) -> Option<Job> {
    let job = unlimited(test, "Slow", false)?.set("pt.parameters", "{ seconds = 0.03 }").set("pt.count", "1");
    Some(job.set("ros.count", "2"))
}

/// A run that goes on, with tasks that are always busy.
fn slow(test: &str, processes: bool) -> Option<Running> {
    let job = unlimited(test, "Slow", processes)?.set("pt.parameters", "{ seconds = 0.03 }").set("pt.count", "3");
    Some(job.set("run.stop_timeout", "20 s").endless().start())
}

/// The events of a stream, which are recorded in any order: data words of the event filter's result in each.
#[derive(Debug, Default)]
struct Recorded(BTreeMap<u64, Vec<u32>>);

impl Recorded {
    fn of(ended: &Ended, stream: &str) -> Self {
        let mut found = Self::default();
        let files = recorded(ended.output());
        for file in files.iter().filter(|file| file.display().to_string().contains(&format!(".{stream}"))) {
            each_event(file, |bytes| {
                let event = Event::parse(bytes).unwrap();
                let payload = event.unpacked_payload(1 << 20).unwrap();
                let robs = event.robs(&payload).map(Result::unwrap);
                let result = robs.filter(|rob| rob.source_id().sub_detector() == SubDetector::TDAQ_HLT).last();
                let data = result.expect("the result of the filter").rod().unwrap().data().to_vec();
                let words = data.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
                // The run begins with event 0.
                assert!(found.0.insert(event.global_id(), words).is_none(), "recorded twice");
            });
        }
        found
    }

    fn ordinals(&self) -> BTreeSet<u64> {
        self.0.keys().copied().collect()
    }

    /// Why an event is in the debug stream.
    fn reason(&self, ordinal: u64) -> String {
        let bytes: Vec<u8> = self.0[&ordinal].iter().flat_map(|word| word.to_le_bytes()).collect();
        FilterResult::from_bytes(&bytes).unwrap().reason
    }
}
