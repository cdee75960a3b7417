//! The event filter with processing tasks: events that a task fails on reach the debug stream, and nothing is lost.

use std::collections::BTreeSet;
use std::path::Path;

use eformat::{Event, SubDetector};
use trigger::FilterResult;

use crate::account::Summary;
use crate::files::{each_event, recorded};
use crate::running::{Ended, Job};

#[test]
fn a_python_class_decides_on_what_it_reads() {
    let Some(job) = job("a_python_class_decides_on_what_it_reads", "Odd", true) else { return };
    let (ended, summary) = job.set("pt.parameters", "{ keep = 1 }").run().expect_ok();
    assert_eq!(summary.count("filter_accepted"), 200);
    assert_eq!(summary.count("filter_rejected"), 200);
    let events = Recorded::of(&ended, "physics_");
    assert_eq!(events.ordinals, (0..400).filter(|ordinal| ordinal % 2 == 1).collect());
    // The result of this class is the number of data words that it saw.
    assert!(events.results.iter().all(|words| words.len() == 1 && words[0] > 163), "{:?}", events.results);
}

#[test]
fn an_exception() {
    check("an_exception", "Raises", "FilterException", &["ValueError: event 7 is bad"]);
}

#[test]
fn a_crash() {
    check("a_crash", "Crashes", "FilterCrash", &["SIGSEGV"]);
}

#[test]
fn an_exit() {
    check("an_exit", "Leaves", "FilterCrash", &["status 3"]);
}

#[test]
fn a_loop_without_end() {
    check("a_loop_without_end", "Loops", "FilterTimeout", &[]);
}

#[test]
fn a_leak_up_to_the_limit() {
    check("a_leak_up_to_the_limit", "Leaks", "FilterMemory", &[]);
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

/// Runs a class that fails on one event in 40: these are in the debug stream with the reason, all others are decided.
fn check(test: &str, class: &str, stream: &str, words: &[&str]) {
    // Long enough for the interpreter on a busy machine; a loop has no end anyway.
    let timeout = if class == "Loops" { "\"500 ms\"" } else { "\"60 s\"" };
    for processes in [false, true] {
        let Some(job) = job(test, class, processes) else { return };
        let job = job.set("pt.timeout", timeout).set("pt.memory_limit", "\"300 MB\"");
        let (ended, summary) = job.run().expect_ok();
        check_counts(&summary);
        let debug = Recorded::of(&ended, &format!("debug_{stream}"));
        assert_eq!(debug.ordinals, (0..400).filter(|ordinal| ordinal % 40 == 7).collect(), "{}", ended.stderr);
        let physics = Recorded::of(&ended, "physics_");
        assert_eq!(physics.ordinals, (0..400).filter(|ordinal| ordinal % 2 == 0).collect());
        let reasons: Vec<String> = debug.reasons();
        assert!(words.iter().all(|word| reasons[0].contains(word)), "{words:?} in {reasons:?}");
    }
}

fn check_counts(summary: &Summary) {
    assert_eq!(summary.count("filter_debug"), 10);
    assert_eq!(summary.count("filter_accepted"), 200);
    assert_eq!(summary.count("filter_rejected"), 190);
}

fn job(test: &str, class: &str, processes: bool) -> Option<Job> {
    let python = testkit::python(test)?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/filter.py");
    let job = Job::example("quickstart")
        .events(400)
        .set("l2pu.step_accept", "1.0")
        .set("pt.algorithm", &format!("{:?}", format!("{}:{class}", file.display())))
        .set("pt.python", &format!("{:?}", python.display().to_string()))
        .set("pt.count", "2")
        .processes(processes);
    Some(job)
}

/// The events of a stream.
#[derive(Debug, Default)]
struct Recorded {
    ordinals: BTreeSet<u64>,
    /// Data words of the event filter's result in each.
    results: Vec<Vec<u32>>,
}

impl Recorded {
    fn of(ended: &Ended, stream: &str) -> Self {
        let mut found = Self::default();
        let files = recorded(ended.output());
        for file in files.iter().filter(|file| file.display().to_string().contains(&format!(".{stream}"))) {
            each_event(file, |bytes| {
                let event = Event::parse(bytes).unwrap();
                // The run begins with event 0.
                assert!(found.ordinals.insert(event.global_id()), "recorded twice");
                let payload = event.unpacked_payload(1 << 20).unwrap();
                let robs = event.robs(&payload).map(Result::unwrap);
                let result = robs.filter(|rob| rob.source_id().sub_detector() == SubDetector::TDAQ_HLT).last();
                let data = result.expect("the result of the filter").rod().unwrap().data().to_vec();
                found.results.push(data.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect());
            });
        }
        found
    }

    fn reasons(&self) -> Vec<String> {
        let bytes = |words: &Vec<u32>| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        self.results.iter().map(|words| FilterResult::from_bytes(&bytes(words)).unwrap().reason).collect()
    }
}
