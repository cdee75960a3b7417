//! Read-out crates: a TRG, read-out systems and an EBIF, in one process and in processes of their own.

use crate::account::Summary;
use crate::running::Job;

#[test]
fn a_crate_and_one_that_stands_alone_give_whole_events() {
    for building in ["pull", "push"] {
        for processes in [false, true] {
            let (_, summary) = job().set("dfm.building", building).processes(processes).run().expect_ok();
            assert_whole(&summary);
        }
    }
}

#[test]
fn the_number_of_an_event_tells_a_crate_where_it_goes() {
    let text = "partition.name = \"by-number\"\nlevel1 = {}\nros.count = 5\nroc = { count = 2, ros = 2 }\n\
                sfi.count = 2\nsfo = {}\ndfm.building = \"push-by-number\"\n";
    let directory = testkit::TempDir::new("by-number");
    let path = directory.join("by-number.toml");
    std::fs::write(&path, text).unwrap();
    for processes in [false, true] {
        let (_, summary) = Job::of(&path).events(1000).processes(processes).run().expect_ok();
        assert_eq!((summary.count("recorded"), summary.0["reasks"].as_u64()), (1000, Some(0)), "{summary:?}");
    }
}

#[test]
fn fragments_are_collected_by_messages_or_where_they_lie() {
    for roc in ["tcp", "shm"] {
        let (_, summary) = job().set("transport.roc", roc).processes(true).run().expect_ok();
        assert_whole(&summary);
    }
}

#[test]
fn a_crate_that_cannot_be_is_refused() {
    let ended = job().set("roc.count", "2").run().expect(1);
    assert!(ended.stderr.contains("2 crates of 4 read-out systems need ros.count = 8"), "{}", ended.stderr);
}

fn job() -> Job {
    Job::example("readout-crate").patient().set("l2pu.step_accept", "0.5").events(2000)
}

fn assert_whole(summary: &Summary) {
    assert_eq!(summary.count("level1"), 2000, "{summary:?}");
    assert!(summary.count("recorded") > 100, "a quarter is accepted: {summary:?}");
    assert_eq!(summary.count("built_incomplete") + summary.count("level2_incomplete"), 0, "{summary:?}");
}
