//! A task in Rust: this test program again, in the role `rust_task`.
#![forbid(unsafe_code)]

#[allow(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use std::time::Duration;

use common::{decide, only_failure, plays, role, start, start_error};
use eformat::SourceId;
use processing::verdict::Ended;
use processing::{Algorithm, Decision, EventView, FailReason, TasksOptions, serve};
use timing::Interval;
use trigger::windows::Window;

struct Evil(String);

impl Algorithm for Evil {
    fn process(&mut self, event: &EventView<'_>) -> Decision {
        let fragment = event.fragment(SourceId(0x42_0002)).unwrap();
        assert_eq!((event.fragment_count(), fragment.data, event.missing().len()), (2, &[2_u8; 32][..], 0));
        if event.event_number() == 37 {
            match self.0.as_str() {
                "panic" => panic!("no such {}", "cell"),
                "abort" => std::process::abort(),
                "loop" => loop {
                    std::hint::spin_loop();
                },
                "leak" => {
                    let mut kept = Vec::new();
                    loop {
                        kept.push(std::hint::black_box(vec![1_u8; 1 << 20]));
                    }
                }
                "large" => {
                    return Decision::Accept {
                        streams: 0,
                        chains: 0,
                        input: 0,
                        result: vec![0; 1 << 20],
                        windows: vec![],
                    };
                }
                "turned" => {
                    let window = Window { sources: vec![], time: Interval { begin: 9, end: 5 } };
                    return Decision::Accept { streams: 0, chains: 0, input: 0, result: vec![], windows: vec![window] };
                }
                "fail" => return Decision::Fail("not for me".into()),
                _ => {}
            }
        }
        if event.event_number().is_multiple_of(2) {
            return Decision::Accept {
                streams: 1,
                chains: 1,
                input: 1,
                result: vec![event.lvl1_id()],
                windows: vec![],
            };
        }
        Decision::Reject { chains: 0, input: 1 }
    }
}

#[test]
fn rust_task() {
    if plays("rust_task") {
        serve(|setup: &str| -> Result<Box<dyn Algorithm>, String> {
            if setup == "unable" { Err("no such menu".into()) } else { Ok(Box::new(Evil(setup.to_owned()))) }
        })
        .unwrap();
    }
}

fn options(setup: &str) -> TasksOptions {
    let (command, environment) = role("rust_task");
    let streams = vec!["physics".to_owned()];
    TasksOptions { command, environment, setup: setup.into(), streams, slot_bytes: 4096, ..TasksOptions::default() }
}

fn commit(setup: &str, change: impl FnOnce(&mut TasksOptions)) -> (FailReason, String, u64) {
    let mut options = options(setup);
    change(&mut options);
    let mut tasks = start(options);
    let (reason, message) = only_failure(&decide(&mut tasks, 150), 37);
    (reason, message, tasks.restarts())
}

#[test]
fn what_goes_wrong_fails_its_event_alone() {
    let (reason, message, restarts) = commit("panic", |_| {});
    assert_eq!((reason, message.as_str(), restarts), (FailReason::Exception, "panic: no such cell", 0));
    let (reason, message, restarts) = commit("fail", |_| {});
    assert_eq!((reason, message.as_str(), restarts), (FailReason::Exception, "not for me", 0));
    let (reason, _, restarts) = commit("large", |_| {});
    assert_eq!((reason, restarts), (FailReason::BadAnswer, 0));
    let (reason, message, restarts) = commit("turned", |_| {});
    assert_eq!((reason, restarts), (FailReason::BadAnswer, 0));
    assert!(message.starts_with("window 0 ends at 5 ns, before it begins at 9 ns"), "{message}");
    let (reason, _, restarts) = commit("abort", |_| {});
    assert_eq!((reason, restarts), (FailReason::Crash(Ended::Signal(6)), 1));
    let (reason, _, restarts) = commit("loop", |options| options.timeout = Duration::from_secs(10));
    assert_eq!((reason, restarts), (FailReason::Timeout, 1));
    let (reason, _, restarts) = commit("leak", |options| options.memory_limit_bytes = Some(64 << 20));
    assert_eq!((reason, restarts), (FailReason::Memory, 1));
}

#[test]
fn a_task_that_cannot_be_made_says_why() {
    let error = start_error(options("unable"));
    assert!(error.starts_with("ef pt-1 did not start: no such menu"), "{error}");
}
