//! Recorded events through the chain and back into a file: the same bytes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use eformat::{Event, advance_ids};

use crate::files::{events, recorded};
use crate::running::{Ended, Job, examples};

#[test]
fn the_shipped_file_comes_out_as_it_went_in() {
    let input = examples().join("data/replay.data");
    for processes in [false, true] {
        let ended = replay(&input, processes);
        compare(&input, &ended);
    }
}

#[test]
fn a_real_file_comes_out_as_it_went_in() {
    let Some(input) = testkit::shared("a_real_file_comes_out_as_it_went_in", BES3) else { return };
    for processes in [false, true] {
        let ended = replay(&input, processes);
        compare(&input, &ended);
    }
}

#[test]
fn a_real_file_is_read_by_another_program_as_the_original() {
    let name = "a_real_file_is_read_by_another_program_as_the_original";
    let (Some(input), Some(python)) = (testkit::shared(name, BES3), testkit::python(name)) else { return };
    for processes in [false, true] {
        let ended = replay(&input, processes);
        let files = recorded(ended.output());
        let [output] = &files[..] else { panic!("{files:?}") };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/same_arrays.py");
        let told = Command::new(&python).arg(script).args([&input, output]).output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    }
}

#[test]
fn a_file_that_goes_round_repeated_its_event_ids() {
    let name = "a_file_that_goes_round_repeated_its_event_ids";
    let inputs = [Some(examples().join("data/replay.data")), testkit::shared(name, BES3)];
    for (input, processes) in inputs.iter().flatten().flat_map(|input| [(input, false), (input, true)]) {
        let job = job(input, processes).set("input.repeat", "true").events(200);
        let (ended, summary) = job.run().expect_ok();
        assert_eq!((summary.count("level1"), summary.count("recorded")), (200, 200));
        let (original, recorded) = (events(std::slice::from_ref(input)), events(&recorded(ended.output())));
        let ids = |event: &Vec<u8>| Event::parse(event).map(|event| (event.global_id(), event.lvl1_id())).unwrap();
        let all: Vec<_> = recorded.iter().map(ids).collect();
        let (global, lvl1): (BTreeSet<u64>, BTreeSet<u32>) = all.iter().copied().unzip();
        assert_eq!((global.len(), lvl1.len()), (200, 200), "{}: {all:?}", input.display());
        for (recorded, original) in recorded.into_iter().zip(original.iter().cycle()) {
            let ((global, lvl1), was) = (ids(&recorded), ids(original));
            let mut back = recorded;
            advance_ids(&mut back, was.0.wrapping_sub(global), was.1.wrapping_sub(lvl1)).unwrap();
            assert!(back == *original, "all but the ids is as it was");
        }
    }
}

fn replay(input: &Path, processes: bool) -> Ended {
    let (ended, summary) = job(input, processes).run().expect_ok();
    let count = events(&[input.to_owned()]).len() as u64;
    assert_eq!((summary.count("level1"), summary.count("recorded")), (count, count));
    ended
}

fn job(input: &Path, processes: bool) -> Job {
    let files = format!("[{:?}]", input.display().to_string());
    Job::example("replay").patient().set("input.files", &files).processes(processes)
}

fn compare(input: &Path, ended: &Ended) {
    let files: Vec<PathBuf> = recorded(ended.output());
    let (before, after) = (events(&[input.to_owned()]), events(&files));
    assert_eq!(before.len(), after.len());
    for (number, (before, after)) in before.iter().zip(&after).enumerate() {
        assert!(before == after, "event {number} of {} differs", input.display());
    }
}

const BES3: &str = "rawdata/bes3_run0091668_SFO-1_10events.raw";
