//! What an algorithm in Python can do wrong with an event: that event fails with its reason, and no other.
#![forbid(unsafe_code)]

#[allow(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use std::time::Duration;

use common::{Algorithms, PATIENCE, decide, only_failure, processes_of, start};
use processing::verdict::Ended;
use processing::{FailReason, NoticeKind, TasksOptions};

const EVIL: &str = r#"
import ctypes, json, os, signal, sys
from weir import Decision

class Evil:
    def __init__(self, setup):
        self.evil = setup.parameters["evil"]
        self.kept = []

    def process(self, event):
        if event.event_number == self.evil:
            return self.misbehave(event)
        return event.event_number % 2 == 0

class Raises(Evil):
    def misbehave(self, event):
        raise KeyError("no such cell")

class Segfaults(Evil):
    def misbehave(self, event):
        ctypes.string_at(0)

class Killed(Evil):
    def misbehave(self, event):
        os.kill(os.getpid(), signal.SIGKILL)

class Exits(Evil):
    def misbehave(self, event):
        print("good-bye", flush=True)
        os._exit(3)

class SysExits(Evil):
    def misbehave(self, event):
        sys.exit(4)

class Loops(Evil):
    def misbehave(self, event):
        while True:
            pass

class Leaks(Evil):
    def misbehave(self, event):
        while True:
            self.kept.append(bytearray(1 << 20))

class Garbage(Evil):
    def misbehave(self, event):
        for descriptor in range(3, 30):
            try:
                os.write(descriptor, b"garbage!" * 5)
            except OSError:
                pass
        return False

class Flood(Evil):
    def misbehave(self, event):
        import socket
        for descriptor in range(3, 30):
            try:
                socket.socket(fileno=os.dup(descriptor)).send(bytes(150_000))
            except OSError:
                pass
        return False

class Closes(Evil):
    def misbehave(self, event):
        os.closerange(3, 100)
        while True:
            pass

class TooLarge(Evil):
    def misbehave(self, event):
        return Decision.accept(result=bytes(1 << 20))

class Ragged(Evil):
    def misbehave(self, event):
        return Decision.accept(result=b"abc")

class BadStream(Evil):
    def misbehave(self, event):
        return Decision.accept(streams=("expres",))

class Nothing(Evil):
    def misbehave(self, event):
        return None

class Keeps(Evil):
    def misbehave(self, event):
        self.kept.append(event.fragments[0x420001].data[2:5])
        return True

class KeepsEvent(Evil):
    def process(self, event):
        if event.event_number == self.evil:
            return self.kept[0].lvl1_id == 0
        if not self.kept:
            self.kept.append(event)
        return event.event_number % 2 == 0
"#;

const GUILTY: u64 = 37;
const EVENTS: u64 = 150;

/// Runs events of which one is dealt with badly; its reason and message, and how often the task was started again.
fn commit(test: &str, class: &str, change: impl FnOnce(&mut TasksOptions)) -> Option<(FailReason, String, u64)> {
    let algorithms = Algorithms::new(test, EVIL)?;
    let mut options = algorithms.options(class);
    options.setup = format!(r#"{{"parameters": {{"evil": {GUILTY}}}}}"#);
    options.timeout = PATIENCE;
    change(&mut options);
    let mut tasks = start(options);
    let (reason, message) = only_failure(&decide(&mut tasks, EVENTS), GUILTY);
    let restarts = tasks.restarts();
    let mut told = 0;
    while let Some(notice) = tasks.next_notice() {
        told += u64::from(notice.kind == NoticeKind::Restarted);
    }
    assert_eq!(told, restarts);
    drop(tasks);
    assert_eq!(processes_of(algorithms.directory.path()), []);
    Some((reason, message, restarts))
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn an_exception_fails_its_event_and_costs_no_restart() {
    let Some((reason, message, restarts)) = commit("an_exception", "Raises", |_| {}) else { return };
    assert_eq!((reason, restarts), (FailReason::Exception, 0));
    has(&message, &["KeyError: 'no such cell'", "in misbehave", "algorithms.py line"]);
}

#[test]
fn a_segmentation_fault_fails_its_event_and_says_where() {
    let Some((reason, message, restarts)) = commit("a_segmentation_fault", "Segfaults", |_| {}) else { return };
    assert_eq!((reason, restarts), (FailReason::Crash(Ended::Signal(11)), 1));
    has(&message, &["SIGSEGV", "Fatal Python error: Segmentation fault", "in misbehave"]);
}

#[test]
fn a_killed_task_fails_its_event() {
    let Some((reason, _, restarts)) = commit("a_killed_task", "Killed", |_| {}) else { return };
    assert_eq!((reason, restarts), (FailReason::Crash(Ended::Signal(9)), 1));
}

#[test]
fn a_task_that_exits_fails_its_event_with_the_status_and_its_last_words() {
    let Some((reason, message, restarts)) = commit("a_task_that_exits", "Exits", |_| {}) else { return };
    assert_eq!((reason, restarts), (FailReason::Crash(Ended::Status(3)), 1));
    has(&message, &["status 3", "good-bye"]);
    let Some((reason, ..)) = commit("a_task_that_exits", "SysExits", |_| {}) else { return };
    assert_eq!(reason, FailReason::Crash(Ended::Status(4)));
}

#[test]
fn an_endless_loop_times_out() {
    // No other event takes as long, on a busy machine either.
    let timeout = |options: &mut TasksOptions| options.timeout = Duration::from_secs(10);
    let Some((reason, _, restarts)) = commit("an_endless_loop", "Loops", timeout) else { return };
    assert_eq!((reason, restarts), (FailReason::Timeout, 1));
}

#[test]
fn a_leak_ends_at_the_limit() {
    let limited = |options: &mut TasksOptions| options.memory_limit_bytes = Some(400 << 20);
    let Some((reason, message, restarts)) = commit("a_leak", "Leaks", limited) else { return };
    assert_eq!((reason, restarts), (FailReason::Memory, 1), "{message}");
}

#[test]
fn a_task_that_ends_with_events_unread_has_its_answers_counted() {
    // It announces the end of its memory, which needs no limit, and ends; what was on its way to it goes to the next one.
    let source = r#"
class Runs:
    def process(self, event):
        if event.event_number % 7 == 0:
            raise MemoryError("enough")
        return event.event_number % 2 == 0
"#;
    let Some(algorithms) = Algorithms::new("a_task_that_ends_with_events_unread", source) else { return };
    let mut tasks = start(TasksOptions { count: 2, ..algorithms.options("Runs") });
    for (number, verdict) in (1..).zip(decide(&mut tasks, 210)) {
        match verdict {
            processing::Verdict::Failed { reason: FailReason::Memory, .. } if number % 7 == 0 => {}
            processing::Verdict::Failed { reason, message } => panic!("event {number}: {reason}: {message}"),
            _ => assert_ne!(number % 7, 0),
        }
    }
}

#[test]
fn garbage_on_the_socket_is_a_bad_answer() {
    let Some((reason, message, restarts)) = commit("garbage", "Garbage", |_| {}) else { return };
    // Where it is not clear which of several events it was, each is tried alone.
    assert!(reason == FailReason::BadAnswer && (1..=2).contains(&restarts), "{restarts}: {message}");
    let Some((reason, message, restarts)) = commit("garbage", "Flood", |_| {}) else { return };
    assert!(reason == FailReason::BadAnswer && (1..=2).contains(&restarts), "{restarts}: {message}");
    has(&message, &["150000 bytes"]);
}

#[test]
fn a_task_that_closes_its_socket_and_goes_on_is_ended() {
    let Some((reason, message, restarts)) = commit("a_task_that_closes", "Closes", |_| {}) else { return };
    assert!(reason == FailReason::BadAnswer && (1..=2).contains(&restarts), "{restarts}: {message}");
}

#[test]
fn an_answer_that_is_none_is_a_bad_answer() {
    for (class, words) in [
        ("TooLarge", "a result of 1048576 bytes"),
        ("Ragged", "a result of 3 bytes"),
        ("BadStream", "expected some of ('physics', 'express')"),
        ("Nothing", "process() returned None"),
    ] {
        let Some((reason, message, restarts)) = commit("an_answer_that_is_none", class, |_| {}) else { return };
        assert_eq!((reason, restarts), (FailReason::BadAnswer, 0), "{class}");
        has(&message, &[words]);
    }
}

#[test]
fn memory_that_is_kept_beyond_its_event_is_noticed() {
    let Some((reason, message, _)) = commit("memory_that_is_kept", "Keeps", |_| {}) else { return };
    assert_eq!(reason, FailReason::Exception);
    has(&message, &["EventOver", "keep a copy"]);
    let Some((reason, message, _)) = commit("memory_that_is_kept", "KeepsEvent", |_| {}) else { return };
    assert_eq!(reason, FailReason::Exception);
    has(&message, &["EventOver", "copy what you keep"]);
}

#[test]
fn several_tasks_share_the_events_and_the_trouble() {
    let source = r#"
import os
class Moody:
    def process(self, event):
        if event.event_number % 50 == 7:
            os.abort()
        if event.event_number % 50 == 8:
            raise ValueError
        return event.event_number % 2 == 0
"#;
    let Some(algorithms) = Algorithms::new("several_tasks", source) else { return };
    let mut tasks = start(TasksOptions { count: 3, ..algorithms.options("Moody") });
    let verdicts = decide(&mut tasks, 500);
    for (number, verdict) in (1..).zip(&verdicts) {
        let failed = match verdict {
            processing::Verdict::Failed { reason, .. } => Some(*reason),
            _ => None,
        };
        let expected = match number % 50 {
            7 => Some(FailReason::Crash(Ended::Signal(6))),
            8 => Some(FailReason::Exception),
            _ => None,
        };
        assert_eq!(failed, expected, "event {number}");
    }
    assert_eq!(tasks.restarts(), 10);
    drop(tasks);
    assert_eq!(processes_of(algorithms.directory.path()), []);
}

#[test]
fn events_do_not_wait_for_tasks_that_cannot_be_started_again() {
    let source = r#"
import os
class Once:
    def __init__(self):
        os.unlink(__file__)
    def process(self, event):
        os.abort()
"#;
    let Some(algorithms) = Algorithms::new("events_do_not_wait", source) else { return };
    let mut tasks = start(algorithms.options("Once"));
    let verdicts = decide(&mut tasks, 20);
    let reason = |verdict: &processing::Verdict| match verdict {
        processing::Verdict::Failed { reason, message } => (*reason, message.clone()),
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&verdicts[0]).0, FailReason::Crash(Ended::Signal(6)));
    for verdict in &verdicts[1..] {
        let (reason, message) = reason(verdict);
        assert_eq!(reason, FailReason::Unavailable);
        has(&message, &["no processing task can be started", "there is no file"]);
    }
}
