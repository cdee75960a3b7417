//! Memory over many runs in one process. Nothing else runs beside it here.

use std::fs;
use std::path::Path;

use configuration::Partition;
use partition::{Run, RunSettings};
use testkit::TempDir;

#[test]
fn fifty_runs_need_no_more_memory_than_a_few() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/quickstart.toml");
    let folder = TempDir::new("memory");
    let output = format!("output.directory = {:?}", folder.path().display().to_string());
    let configuration = Partition::load(&example, &[output, "run.tolerate.level2_forced = 100 %".into()]).unwrap();
    let mut partition = Run::new(configuration).boot().unwrap();
    let mut memory = Vec::new();
    for number in 1..=50 {
        let settings = RunSettings { events: Some(100), duration: None, ..partition.settings() };
        let summary = partition.start(settings).unwrap().wait().unwrap().summary();
        assert_eq!((summary.run_number, summary.accounting.level1, summary.accounting.residual), (number, 100, 0));
        memory.push(resident_bytes());
    }
    // What a run leaves behind is seen 40 times: a pool of pages, a thread's stack, a table.
    let early = memory[..10].iter().max().unwrap();
    assert!(memory[49] < early + GROWTH_MAX, "{memory:?}");
}

/// Memory that this process has at this moment.
fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Less than the resident part of the pools of one run.
const GROWTH_MAX: u64 = 8 << 20;
