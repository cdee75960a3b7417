//! The five functions of a source, called by the loop, against a real intake.

mod readout;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use readout::{Readout, SIZE_MAX};
use weir_source::{Failure, Function, Reading, Sent, Settings, Source, SourceError, run};

/// Counts up, and notes how it is called. It holds some events back for when it is stopped.
#[derive(Default)]
struct Counter {
    calls: Arc<Mutex<Vec<String>>>,
    number: u64,
    held: u64,
    of_run: Option<u64>,
}

const HELD: u64 = 5;

impl Counter {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Source for Counter {
    fn configure(&mut self, settings: &Settings) -> Result<(), Failure> {
        self.note(format!("configure {}", settings.name));
        Ok(())
    }

    fn start(&mut self, run: u32) -> Result<(), Failure> {
        self.note(format!("start {run}"));
        (self.number, self.held) = (0, 0);
        Ok(())
    }

    fn read(&mut self, slot: &mut [u8]) -> Result<Reading, Failure> {
        assert_eq!(slot.len(), SIZE_MAX);
        if self.held > 0 {
            self.held -= 1;
        } else if self.calls.lock().unwrap().last().is_some_and(|last| last == "stop") {
            return Ok(Reading::Nothing);
        }
        if self.of_run == Some(self.number) {
            return Ok(Reading::End);
        }
        let payload = payload(self.number);
        slot[..payload.len()].copy_from_slice(&payload);
        self.number += 1;
        Ok(Reading::committed(self.number - 1, payload.len()))
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.note("stop".into());
        self.held = HELD;
        Ok(())
    }

    fn status(&mut self) -> String {
        "counting".into()
    }
}

fn payload(number: u64) -> Vec<u8> {
    let len = number as usize * 37 % (SIZE_MAX + 1);
    (0..len).map(|at| (at as u64 * 3 + number) as u8).collect()
}

#[test]
fn a_source_is_led_through_two_runs_and_loses_nothing() {
    let mut readout = Readout::of("counter");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let running = start(&readout, Counter { calls: Arc::clone(&calls), ..Counter::default() });
    let mut fragments = 0;
    for number in [7, 8] {
        readout.start(number);
        readout.until("fragments come", |came| came.fragments > fragments + 1000);
        readout.stop();
        readout.until("the run ends", |came| came.ended.len() as u32 == number - 6);
        let (sent, received) = *readout.came.ended.last().unwrap();
        assert_eq!((sent, readout.came.fragments), (received, fragments + received), "what it held came, too");
        fragments += received;
        for (number, found) in std::mem::take(&mut readout.came.payloads) {
            assert_eq!(found, payload(number), "event {number}");
        }
    }
    readout.until("run control hears how it is", |came| came.statuses == ["counting"]);
    drop(readout);
    let sent = running.join().unwrap().unwrap();
    assert_eq!((sent.runs, sent.fragments), (2, fragments));
    assert_eq!(*calls.lock().unwrap(), ["configure counter", "start 7", "stop", "start 8", "stop"]);
}

#[test]
fn a_run_that_begins_while_the_former_is_read_out_is_not_missed() {
    let mut readout = Readout::of("counter");
    let calls = Arc::new(Mutex::new(Vec::new()));
    let running = start(&readout, Counter { calls: Arc::clone(&calls), ..Counter::default() });
    for number in 1..=3 {
        readout.start(number);
        readout.until("fragments come", |came| came.payloads.len() > 1000);
        readout.came.payloads.clear();
        readout.stop();
    }
    readout.until("the last run ends", |came| !came.ended.is_empty());
    drop(readout);
    assert_eq!(running.join().unwrap().unwrap().runs, 3);
    let expected = ["configure counter", "start 1", "stop", "start 2", "stop", "start 3", "stop"];
    assert_eq!(*calls.lock().unwrap(), expected);
}

#[test]
fn a_source_that_has_no_more_ends_its_run_before_it_is_stopped() {
    let mut readout = Readout::of("counter");
    let running = start(&readout, Counter { of_run: Some(100), ..Counter::default() });
    readout.start(1);
    readout.until("it ends", |came| came.ended == [(100, 100)]);
    readout.stop();
    readout.start(2);
    readout.until("the next run ends, too", |came| came.ended == [(100, 100), (100, 100)]);
    drop(readout);
    assert_eq!(running.join().unwrap().unwrap().fragments, 200);
}

/// Blocks in one of its functions until it is let go.
struct Blocks {
    within: Function,
    let_go: Receiver<()>,
}

impl Blocks {
    fn new(within: Function) -> (Self, SyncSender<()>) {
        let (keep, let_go) = sync_channel(0);
        (Self { within, let_go }, keep)
    }

    fn pass(&self, function: Function) {
        if function == self.within {
            let _ = self.let_go.recv();
        }
    }
}

impl Source for Blocks {
    fn configure(&mut self, _: &Settings) -> Result<(), Failure> {
        self.pass(Function::Configure);
        Ok(())
    }

    fn start(&mut self, _: u32) -> Result<(), Failure> {
        self.pass(Function::Start);
        Ok(())
    }

    fn read(&mut self, _: &mut [u8]) -> Result<Reading, Failure> {
        self.pass(Function::Read);
        Ok(Reading::Nothing)
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.pass(Function::Stop);
        Ok(())
    }
}

#[test]
fn a_source_that_blocks_is_ended_and_named_when_the_partition_waits() {
    for within in [Function::Configure, Function::Start, Function::Read, Function::Stop] {
        let mut readout = Readout::of("stubborn");
        let (source, keep) = Blocks::new(within);
        let mut settings = Settings::named("stubborn");
        settings.deadline = Duration::from_millis(50);
        let running = start_as(&readout, settings, source);
        readout.until("it is up", |came| came.up == 1);
        readout.start(1);
        readout.stop();
        readout.until(&format!("the link is cut, as {within} blocks"), |came| came.down.len() == 1);
        match running.join().unwrap().unwrap_err() {
            SourceError::Blocked { name, function, .. } => assert_eq!((name.as_str(), function), ("stubborn", within)),
            other => panic!("{within}: {other}"),
        }
        drop(keep);
    }
}

#[test]
fn a_source_may_take_its_time_while_nobody_waits() {
    let mut readout = Readout::of("slow");
    let (source, keep) = Blocks::new(Function::Read);
    let mut settings = Settings::named("slow");
    settings.deadline = Duration::from_millis(20);
    let running = start_as(&readout, settings, source);
    readout.start(1);
    // A hundred polls of up to a millisecond each: many deadlines.
    (0..200).for_each(|_| readout.poll());
    assert!(readout.came.down.is_empty() && !running.is_finished(), "{:?}", readout.came);
    drop(keep);
    readout.stop();
    readout.until("it ends its run", |came| came.ended == [(0, 0)]);
    drop(readout);
    running.join().unwrap().unwrap();
}

/// Fails in its first read.
struct Fails;

impl Source for Fails {
    fn read(&mut self, _: &mut [u8]) -> Result<Reading, Failure> {
        Err("the high voltage is off".into())
    }
}

#[test]
fn a_source_that_fails_tells_run_control_why() {
    let mut readout = Readout::of("failing");
    let running = start_as(&readout, Settings::named("failing"), Fails);
    readout.start(1);
    readout.until("the link ends", |came| came.down.len() == 1);
    assert_eq!(readout.came.statuses, ["read: the high voltage is off"]);
    let error = running.join().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "source failing: read: the high voltage is off");
}

fn start(readout: &Readout, source: impl Source + Send + 'static) -> JoinHandle<Result<Sent, SourceError>> {
    start_as(readout, Settings::named("counter"), source)
}

fn start_as(
    readout: &Readout,
    settings: Settings,
    source: impl Source + Send + 'static,
) -> JoinHandle<Result<Sent, SourceError>> {
    let at = readout.at().to_owned();
    thread::spawn(move || run(&at, settings, source))
}
