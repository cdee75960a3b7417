//! The run catalogue, in files of its own.

mod messages;

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use catalogue::{Catalogue, CatalogueError, Entry, Keeper, Numbering, Quality, differences};
use configuration::Partition;
use partition::summary::{FileSummary, RunState, Summary};
use testkit::TempDir;

fn partition(overrides: &[&str]) -> Partition {
    let text = "[partition]\nname = \"beam\"\nkey = \"of many secret letters\"\n[ros]\ncount = 1\n[sfi]\ncount = 1\n";
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Partition::parse("beam.toml", text, &overrides).unwrap()
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

fn summary(run_number: u32, state: RunState) -> Summary {
    let json = serde_json::json!({
        "schema": 1, "run_number": run_number, "state": state, "duration_s": 1.0,
        "accounting": { "level1": 10, "level2_rejected": 0, "level2_accepted": 10, "level2_forced": 0, "level2_lost": 0,
            "built_complete": 10, "built_incomplete": 0, "not_built": 0, "lost_after_build": 0, "filter_rejected": 0,
            "filter_accepted": 10, "filter_debug": 0, "lost_in_recording": 0, "recorded": 10, "recorded_copies": 10,
            "duplicates": 0, "residual": 0 },
        "rates_hz": { "level1": 10.0, "built": 10.0, "recorded": 10.0 },
        "throughput_bytes_per_s": { "built": 0.0, "recorded": 0.0 },
        "latency_ns": { "level2": { "p50": 0, "p99": 0, "max": 0 }, "build": { "p50": 0, "p99": 0, "max": 0 } },
        "cpu_s": 0.0, "dead_time_fraction": 0.0, "blocked_by": [], "reasks": 0,
        "network": { "messages": 0, "bytes": 0, "stale": 0, "malformed": 0 },
        "files": [{ "path": "out/a.data", "stream": "physics_Main", "events": 10, "bytes": 4000, "adler32": "0A0B0C0D" }],
    });
    serde_json::from_value(json).unwrap()
}

#[test]
fn a_run_is_kept_from_its_number_to_its_files() {
    let directory = TempDir::new("catalogue");
    let file = directory.join("new/runs.sqlite");
    let mut catalogue = Catalogue::open(&file).unwrap();
    let first = catalogue.reserve(&partition(&[]), Numbering::From(1), "anna", at(0)).unwrap();
    assert_eq!(first.number, Some(1));
    let entry = catalogue.runs(10).unwrap().remove(0);
    assert_eq!((entry.quality, entry.ended, entry.reason), (None, None, None));
    catalogue.end(first.id, &summary(1, RunState::Ok), false, at(60)).unwrap();
    drop(catalogue);

    let record = Catalogue::existing(&file).unwrap().run(1).unwrap();
    let Entry { number, partition: name, operator, began, ended, quality, recorded, bytes, .. } = record.entry;
    assert_eq!((number, name.as_str(), operator.as_str()), (Some(1), "beam", "anna"));
    assert_eq!((began, ended, quality), (at(0), Some(at(60)), Some(Quality::Good)));
    assert_eq!((recorded, bytes), (10, 4000));
    assert_eq!(record.summary, Some(summary(1, RunState::Ok)));
    let path = "out/a.data".to_owned();
    let file = FileSummary { path, stream: "physics_Main".into(), events: 10, bytes: 4000, adler32: "0A0B0C0D".into() };
    assert_eq!(record.files, [file]);
    assert!(!record.configuration.contains("secret"), "{}", record.configuration);
    assert_eq!(Partition::parse("kept", &record.configuration, &[]).unwrap(), partition(&[]).without_secrets());
}

#[test]
fn no_number_comes_twice_unless_files_are_replayed() {
    let directory = TempDir::new("catalogue");
    let file = directory.join("runs.sqlite");
    let (mut here, mut there) = (Catalogue::open(&file).unwrap(), Catalogue::open(&file).unwrap());
    let reserve = |catalogue: &mut Catalogue, number| catalogue.reserve(&partition(&[]), number, "bob", at(0));
    assert_eq!(reserve(&mut here, Numbering::Given(7)).unwrap().number, Some(7));
    assert!(matches!(reserve(&mut there, Numbering::Given(7)), Err(CatalogueError::NumberTaken { number: 7 })));
    let eighth = reserve(&mut there, Numbering::From(1)).unwrap();
    assert_eq!(eighth.number, Some(8));
    assert_eq!(reserve(&mut here, Numbering::From(20)).unwrap().number, Some(20));
    assert_eq!(reserve(&mut here, Numbering::From(1)).unwrap().number, Some(21));
    for end in [1, 2] {
        let replayed = reserve(&mut here, Numbering::Replayed).unwrap();
        assert_eq!(replayed.number, None);
        here.end(replayed.id, &summary(7, RunState::Ok), false, at(end)).unwrap();
    }
    assert_eq!(here.run(7).unwrap().entry.ended, Some(at(2)));
    there.withdraw(eighth.id).unwrap();
    assert!(matches!(there.run(8), Err(CatalogueError::NoSuchRun { number: 8 })));
    assert_eq!(reserve(&mut here, Numbering::Given(u32::MAX)).unwrap().number, Some(u32::MAX));
    assert!(matches!(reserve(&mut here, Numbering::From(1)), Err(CatalogueError::Exhausted)));
}

#[test]
fn people_may_doubt_a_run_and_the_configurations_of_two_are_compared() {
    let directory = TempDir::new("catalogue");
    let mut catalogue = Catalogue::open(&directory.join("runs.sqlite")).unwrap();
    for (number, overrides) in [(1, &[][..]), (2, &["sfi.count=3"])] {
        let run = catalogue.reserve(&partition(overrides), Numbering::From(1), "anna", at(0)).unwrap();
        catalogue.end(run.id, &summary(number, RunState::Ok), false, at(1)).unwrap();
        catalogue.remark(run.id, "bob", "rain", (number == 2).then_some(Quality::Tainted), at(2)).unwrap();
    }
    let runs = catalogue.runs(10).unwrap();
    let told = |entry: &Entry| (entry.number, entry.quality, entry.remarks);
    assert_eq!(
        runs.iter().map(told).collect::<Vec<_>>(),
        [(Some(2), Some(Quality::Tainted), 1), (Some(1), Some(Quality::Good), 1)]
    );
    assert_eq!(catalogue.runs(1).unwrap().len(), 1);
    let (first, second) = (catalogue.run(1).unwrap(), catalogue.run(2).unwrap());
    assert_eq!((second.remarks[0].text.as_str(), second.remarks[0].at), ("rain", at(2)));
    let found = differences(&first.configuration, &second.configuration).unwrap();
    assert_eq!(found.iter().map(|difference| difference.key.as_str()).collect::<Vec<_>>(), ["sfi.count"]);
}

#[test]
fn the_end_of_a_run_says_what_it_is_worth() {
    let died = |state| Summary { died: vec!["sfi-1".into()], ..summary(1, state) };
    for (summary, forced, quality) in [
        (summary(1, RunState::Ok), false, Quality::Good),
        (summary(1, RunState::Degraded), false, Quality::Tainted),
        (died(RunState::Ok), false, Quality::Incomplete),
        (died(RunState::Degraded), false, Quality::Incomplete),
        (died(RunState::Aborted), false, Quality::Interrupted),
        (summary(1, RunState::Aborted), true, Quality::Aborted),
        (summary(1, RunState::Residual), false, Quality::Aborted),
    ] {
        assert_eq!(Quality::of(&summary, forced), quality, "{:?}", summary.state);
    }
    assert!("fine".parse::<Quality>().unwrap_err().contains("interrupted"));
}

#[test]
fn a_run_whose_run_control_is_gone_was_interrupted() {
    let directory = TempDir::new("catalogue");
    let file = directory.join("runs.sqlite");
    let mut catalogue = Catalogue::open(&file).unwrap();
    catalogue.reserve(&partition(&[]), Numbering::From(1), "anna", at(0)).unwrap();
    let database = rusqlite::Connection::open(&file).unwrap();
    // Of this host, the first process of another start of the machine.
    database.execute("UPDATE runs SET holder = substr(holder, 1, instr(holder, ' ')) || '1 1'", []).unwrap();
    let entry = catalogue.run(1).unwrap().entry;
    assert_eq!((entry.quality, entry.ended), (Some(Quality::Interrupted), None));
    assert!(entry.reason.is_some_and(|reason| reason.contains("gone")));
}

#[test]
fn a_run_that_nobody_could_take_over_stays_as_interrupted() {
    let directory = TempDir::new("catalogue");
    let file = directory.join("runs.sqlite");
    let mut settings = partition(&[]).run;
    settings.number = Some(7);
    let mut keeper = Keeper::at(&file, &partition(&[])).unwrap();
    keeper.begin(&mut settings, "anna", at(0)).unwrap();
    let mut next = Keeper::at(&file, &partition(&[])).unwrap();
    next.resume(7).unwrap();
    next.interrupt("nothing could be taken over", at(9)).unwrap();
    next.end(None, at(10)).unwrap();
    let entry = next.catalogue().run(7).unwrap().entry;
    assert_eq!((entry.quality, entry.ended), (Some(Quality::Interrupted), Some(at(9))));
    assert_eq!(entry.reason.as_deref(), Some("nothing could be taken over"));
    next.resume(7).unwrap();
    next.interrupt("once more", at(20)).unwrap();
    assert_eq!(next.catalogue().run(7).unwrap().entry.ended, Some(at(9)), "it is over");
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let directory = TempDir::new("catalogue");
    let missing = directory.join("missing.sqlite");
    assert!(matches!(Catalogue::existing(&missing), Err(CatalogueError::Missing { .. })));
    assert!(!missing.exists());
    let text = directory.join("notes.txt");
    fs::write(&text, "no database, but a text of some length".repeat(40)).unwrap();
    assert!(matches!(Catalogue::open(&text), Err(CatalogueError::Database { .. })));
    let foreign = directory.join("foreign.sqlite");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    assert!(matches!(Catalogue::open(&foreign), Err(CatalogueError::Foreign { .. })));
    let newer = directory.join("newer.sqlite");
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Catalogue::open(&newer), Err(CatalogueError::Version { found: 99, .. })));
}
