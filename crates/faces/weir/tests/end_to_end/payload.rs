//! Every payload byte in the files equals its input.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use eformat::{CompressionType, Event};
use rol::Sample;

use crate::account::Summary;
use crate::files::{each_event, recorded};
use crate::running::{Ended, Job, examples};

#[test]
fn in_one_process() {
    check(job(false));
}

#[test]
fn in_processes() {
    check(job(true));
}

#[test]
fn compressed_into_several_files_of_two_recorders() {
    let job = job(true)
        .set("sfo.compression", "zlib")
        .set("sfo.count", "2")
        .set("sfo.max_file_events", "50")
        .set("ros.checksum", "adler32");
    let checked = check(job);
    assert!(checked.compressed > 0);
    let files = recorded(checked.ended.output());
    let of = |application: &str| files.iter().filter(|file| file.display().to_string().contains(application)).count();
    assert!(of("sfo-1") > 1 && of("sfo-2") > 1, "{files:?}");
}

#[test]
fn durable_and_cleared_when_recorded() {
    let job = job(true).set("dfm.clear_after", "recorded").set("sfo.durable", "fsync").set("ros.count", "3");
    check(job);
}

#[test]
fn compressed_and_checksummed_in_one_process() {
    let job = job(false)
        .set("sfo.compression", "zlib")
        .set("ros.checksum", "adler32")
        .set("sfo.durable", "fsync")
        .set("dfm.clear_after", "recorded");
    assert!(check(job).compressed > 0);
}

#[test]
fn over_the_wrap_of_the_level_1_id() {
    for processes in [false, true] {
        let first = u32::MAX - 200;
        let checked = check_from(job(processes).set("run.first_lvl1_id", &first.to_string()), u64::from(first));
        let wrapped = checked.ids.iter().filter(|id| **id > u64::from(u32::MAX)).count();
        assert!(0 < wrapped && wrapped < checked.ids.len(), "{:?}", checked.ids);
    }
}

struct Checked {
    ended: Ended,
    ids: BTreeSet<u64>,
    compressed: u64,
}

fn job(processes: bool) -> Job {
    // More than the sample has, so that it starts again.
    Job::example("quickstart").patient().events(2200).processes(processes)
}

fn check(job: Job) -> Checked {
    check_from(job, 0)
}

/// Runs it and compares every data word of every event with the sample.
fn check_from(job: Job, first: u64) -> Checked {
    let (ended, summary) = job.run().expect_ok();
    let mut checked = Checked { ended, ids: BTreeSet::new(), compressed: 0 };
    for file in recorded(checked.ended.output()) {
        each_event(&file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            checked.compressed += u64::from(event.compression() == CompressionType::Zlib);
            let id = event.global_id();
            check_event(&event, usize::try_from(id - first).unwrap());
            assert!(checked.ids.insert(id), "event {id} twice");
        });
    }
    assert_eq!(checked.ids.len() as u64, recorded_events(&summary));
    checked
}

fn recorded_events(summary: &Summary) -> u64 {
    let recorded = summary.count("recorded");
    assert!(recorded > 100, "{summary:?}");
    recorded
}

fn check_event(event: &Event<'_>, ordinal: usize) {
    let sample = &*SAMPLE;
    let row = ordinal % sample.events();
    let payload = event.unpacked_payload(64 << 20).unwrap();
    let mut seen = BTreeSet::new();
    for rob in event.robs(&payload) {
        let rob = rob.unwrap();
        let (source, rod) = (rob.source_id().0, rob.rod().unwrap());
        assert!(seen.insert(source), "source {source:#x} twice in event {ordinal}");
        assert_eq!(rod.lvl1_id(), event.lvl1_id(), "source {source:#x}, event {ordinal}");
        assert_eq!(rod.source_id().0, source);
        assert_eq!(rob.status().0, 0, "source {source:#x}, event {ordinal}");
        if source != LEVEL2_RESULT {
            let index = sample.source_ids().binary_search(&source).expect("a source of the sample");
            assert_eq!(rod.data(), sample.payload(row, index), "source {source:#x}, event {ordinal}");
        }
    }
    let expected: BTreeSet<u32> = sample.source_ids().iter().copied().chain([LEVEL2_RESULT]).collect();
    assert_eq!(seen, expected, "event {ordinal}");
    let trigger = sample.trigger(row);
    assert_eq!((event.bcid(), event.trigger_type()), (u32::from(trigger.bcid), u32::from(trigger.trigger_type)));
}

static SAMPLE: LazyLock<Arc<Sample>> =
    LazyLock::new(|| Arc::new(Sample::load(&[examples().join("data/zee_mu0.parquet")]).unwrap()));

/// The source identifier of what level 2 found out.
const LEVEL2_RESULT: u32 = 0x007b_0000;
