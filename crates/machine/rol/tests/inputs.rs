//! What a configuration asks for.

use std::fs;
use std::path::Path;

use configuration::Partition;
use dataflow::message::EventInfo;
use rol::{InputError, Inputs, RECORD_SOURCE_ID};
use testkit::TempDir;

fn example(name: &str, overrides: &[&str]) -> Partition {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name);
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Partition::load(path, &overrides).unwrap()
}

/// Reads one event out of every read-out system; the number of fragments.
fn read_out(inputs: &Inputs) -> usize {
    let mut fragments = 0;
    for ros in 0..inputs.shares().len() {
        let mut links = inputs.links(ros, 0).unwrap();
        links.read_out(&EventInfo::default(), &mut |_, _, _| fragments += 1).unwrap();
    }
    fragments
}

#[test]
fn the_quickstart_reads_the_sample() {
    let inputs = Inputs::open(&example("quickstart.toml", &[])).unwrap();
    assert_eq!((inputs.shares().len(), read_out(&inputs)), (8, 163));
    let mut triggers = inputs.triggers().unwrap();
    assert_eq!(triggers.trigger(0), triggers.trigger(1843), "it repeats");
}

#[test]
fn the_event_builder_emulates() {
    let partition = example("event-builder.toml", &[]);
    let inputs = Inputs::open(&partition).unwrap();
    assert_eq!(read_out(&inputs), (partition.ros.count * partition.ros.robs) as usize);
    assert!(inputs.triggers().is_none() && inputs.replay().is_none());
}

#[test]
fn the_replay_reads_the_recorded_file() {
    let inputs = Inputs::open(&example("replay.toml", &[])).unwrap();
    assert_eq!(read_out(&inputs), inputs.replay().unwrap().source_ids().len());
    assert_eq!(inputs.shares().last().unwrap().last(), Some(&RECORD_SOURCE_ID));
    let events = inputs.replay().unwrap().events() as u64;
    let mut triggers = inputs.triggers().unwrap();
    assert!(triggers.trigger(events - 1).is_some() && triggers.trigger(events).is_none());
}

#[test]
fn more_systems_than_links_are_an_error() {
    let error = Inputs::open(&example("quickstart.toml", &["ros.count=164"])).unwrap_err();
    assert!(matches!(error, InputError::TooManySystems { ros_count: 164, links: 163 }), "{error}");
}

#[test]
fn triggers_of_a_file_go_with_any_fragments() {
    let directory = TempDir::new("rol-inputs");
    let path = directory.join("triggers.jsonl");
    fs::write(&path, "{\"bcid\": 5}\n{\"bcid\": 6}\n").unwrap();
    let file = format!("level1.file={}", path.display());
    for (example_name, input) in [("event-builder.toml", "dfm.input=level1"), ("quickstart.toml", "ros.input=sample")] {
        let overrides = ["level1.source=file", &file, input, "input.repeat=true"];
        let mut triggers = Inputs::open(&example(example_name, &overrides)).unwrap().triggers().unwrap();
        assert_eq!((0..3).map(|at| triggers.trigger(at).unwrap().bcid).collect::<Vec<_>>(), [5, 6, 5]);
    }
    fs::write(&path, "{\"bcid\": -5}\n").unwrap();
    let error =
        Inputs::open(&example("quickstart.toml", &["level1.source=file", &file, "ros.input=sample"])).unwrap_err();
    assert!(matches!(error, InputError::TriggerFile(_)) && error.to_string().contains("triggers.jsonl:1: "), "{error}");
}
