//! Traces of runs, and what `weir trace` makes of them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use nix::sys::signal::Signal;
use serde_json::Value;
use stamps::file::Trace;
use testkit::TempDir;

use crate::account::Summary;
use crate::running::{Job, program, send};
use crate::served::Served;

#[test]
fn of_one_process_agrees_with_the_account() {
    check_counts(false, 1);
}

#[test]
fn of_each_process_agrees_with_the_account() {
    check_counts(true, 19);
}

fn check_counts(processes: bool, files: usize) {
    let traces = TempDir::new("traces");
    let option = format!("--trace={}", traces.path().display());
    let job = Job::example("quickstart").patient().events(600).processes(processes).with(&[&option]);
    let (_, summary): (_, Summary) = job.run().expect_ok();
    let found = trace_files(traces.path());
    assert_eq!(found.len(), files, "{found:?}");
    for path in &found {
        let trace = Trace::read(path).unwrap();
        assert_eq!((trace.torn_at, trace.counts().1), (None, 0), "{}", path.display());
    }

    let json = traces.join("trace.json");
    asked("export", &found, &["-o".as_ref(), json.as_os_str()]).unwrap();
    let exported: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let events = exported["traceEvents"].as_array().unwrap();
    let counted = |name: &str| events.iter().filter(|event| event["ph"] == "X" && event["name"] == name).count() as u64;
    assert_eq!(counted("l2-decision"), summary.count("level1"));
    assert_eq!(counted("built-event"), summary.count("built_complete"));
    assert_eq!(counted("record"), summary.count("recorded"));
    check_nesting(events);
    let arrows = |ph: &str| events.iter().filter(|event| event["ph"] == ph && event["name"] == "record").count() as u64;
    assert_eq!((arrows("s"), arrows("f")), (summary.count("recorded"), summary.count("recorded")));

    let told = asked("distribution", &found, &["--section".as_ref(), "record".as_ref()]).unwrap();
    assert!(told.contains(&format!("{} times: median", summary.count("recorded"))), "{told}");
    let way = ["--begin", "l1-accept", "--end", "record"].map(OsStr::new);
    let told = asked("distribution", &found, &way).unwrap();
    assert!(told.contains(&format!("{} times: median", summary.count("recorded"))), "{told}");
    let drawing = traces.join("sequence.svg");
    asked("sequence", &found, &["-o".as_ref(), drawing.as_os_str()]).unwrap();
    let drawing = fs::read_to_string(&drawing).unwrap();
    for lane in ["level1-1", "l2sv-1", "ros-1"] {
        assert!(drawing.contains(&format!(">{lane}</text>")), "{lane}: {drawing}");
    }
    assert!(drawing.contains("marker-end"), "messages are drawn");
}

/// Each thread has a section within another, or behind it.
fn check_nesting(events: &[Value]) {
    let ns = |event: &Value, key: &str| (event[key].as_f64().unwrap() * 1000.0).round() as u64;
    let mut around: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut depth_max = 0;
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (from, to) = (ns(event, "ts"), ns(event, "ts") + ns(event, "dur"));
        let ends = around.entry(event["tid"].as_u64().unwrap()).or_default();
        while ends.last().is_some_and(|end| *end <= from && *end < to) {
            ends.pop();
        }
        assert!(ends.last().is_none_or(|end| to <= *end), "{event} reaches beyond {ends:?}");
        ends.push(to);
        depth_max = depth_max.max(ends.len());
    }
    assert!(depth_max > 2, "{depth_max}");
}

#[test]
fn of_a_process_that_was_killed_holds_what_it_had_written() {
    let traces = TempDir::new("traces");
    let option = format!("--trace={}", traces.path().display());
    let mut running = Job::example("quickstart").patient().processes(true).endless().with(&[&option]).start();
    let path = traces.join("sfi-1.weirtrace");
    let stamps = |path: &Path| Trace::read(path).map_or(0, |trace| trace.counts().0);
    let is_traced =
        |_: &_| asked("distribution", std::slice::from_ref(&path), &[]).is_ok_and(|told| told.contains("event-reply"));
    running.until("stamps are written", is_traced);
    let before = stamps(&path);
    send(running.child("sfi-1"), Signal::SIGKILL);
    running.end();
    let trace = Trace::read(&path).unwrap();
    assert!(trace.torn_at.is_some() && trace.counts().0 >= before);
    let told = asked("distribution", &[path], &[]).unwrap();
    assert!(told.contains("ends early: its process died") && told.contains("event-reply"), "{told}");
}

#[test]
fn of_a_partition_that_runs_begins_and_ends_when_it_is_asked_for() {
    let mut running = Job::example("quickstart").patient().processes(true).endless().start();
    running.until_recording();
    let directory = running.directory().join("trace");
    assert!(!directory.exists(), "nobody has asked for a trace");
    let told = record(running.pid()).unwrap();
    assert_eq!(told, format!("19 processes traced for 0.5 s\n  19 files in {}\n", directory.display()));
    let is_whole = |path: &PathBuf| Trace::read(path).is_ok_and(|trace| trace.torn_at.is_none());
    running.until("traces are whole", |_| {
        let files = trace_files(&directory);
        files.len() == 19 && files.iter().all(is_whole)
    });
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    running.end().expect(0);
}

/// Its traces were ended, and others were begun that nobody ended.
#[test]
fn of_a_run_that_traces_from_its_start_go_on_to_its_end() {
    let traces = TempDir::new("traces");
    let option = format!("--trace={}", traces.path().display());
    let mut running = Job::example("quickstart").patient().processes(true).endless().with(&[&option]).start();
    running.until_recording();
    let told = record(running.pid()).unwrap_err();
    assert!(told.contains("traces already, to ") && told.contains(".weirtrace"), "{told}");
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    running.end().expect(0);
    let files = trace_files(traces.path());
    assert_eq!(files.len(), 19);
    let sfo = Trace::read(&traces.join("sfo-1.weirtrace")).unwrap();
    assert!(sfo.torn_at.is_none() && sfo.counts().0 > 0);
}

/// Their applications are not the children of run control, or that does not trace itself.
#[test]
fn of_a_partition_on_hosts_or_with_a_service_are_of_all_its_processes() {
    let hosts = r#"[{name="one", roles={ros=1}}, {name="rest"}]"#;
    let mut running = Job::example("quickstart").patient().endless().set("host", hosts).start();
    running.until_recording();
    let told = record(running.pid()).unwrap();
    assert!(told.starts_with("19 processes traced"), "{told}");
    running.signal(Signal::SIGINT);
    running.end().expect(0);
    let served = Served::start(Job::example("quickstart").patient());
    let told = record(served.running.pid()).unwrap_err();
    assert!(told.contains("with a partition on this machine that runs"), "{told}");
    served.ctl("anna", &["boot"]);
    let told = record(served.running.pid()).unwrap();
    assert!(told.starts_with("18 processes traced for 0.5 s\n  18 files in /"), "{told}");
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

#[test]
fn of_a_run_that_is_configured_so_are_named_at_its_end() {
    for (stamps, has_polls) in [("on", false), ("polls", true)] {
        let job = Job::example("quickstart").patient().events(300).set("run.stamps", stamps);
        let (ended, summary) = job.run().expect_ok();
        let file = ended.directory.join("trace/weir.weirtrace");
        assert!(ended.stderr.contains(&format!("time stamps: {}", file.display())), "{}", ended.stderr);
        assert_eq!(Trace::read(&file).unwrap().torn_at, None);
        let told = asked("distribution", std::slice::from_ref(&file), &[]).unwrap();
        assert_eq!(told.contains("poll "), has_polls, "{told}");
        if !has_polls {
            let told = asked("distribution", &[file], &["--section".as_ref(), "record".as_ref()]).unwrap();
            assert!(told.contains(&format!("{} times: median", summary.count("recorded"))), "{told}");
        }
    }
}

#[test]
fn of_an_application_that_returns_are_of_both_its_lives() {
    let job = Job::example("quickstart").processes(true).endless().set("processes.on_loss", "restart");
    let mut running = job.set("run.stamps", "on").start();
    running.until_recording();
    send(running.child("sfi-1"), Signal::SIGKILL);
    running.until("it is back", |running| running.error_output().contains("sfi-1 is back"));
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    let (ended, _) = running.end().expect_end();
    let lives = ["sfi-1.weirtrace", "sfi-1.2.weirtrace"].map(|name| ended.directory.join("trace").join(name));
    let [first, second] = lives.map(|file| Trace::read(&file).unwrap());
    assert!(first.torn_at.is_some() && second.torn_at.is_none() && second.counts().0 > 0);
}

/// Run control orders them, on each host.
#[test]
fn of_a_run_that_is_served_begin_and_end_by_order() {
    let hosts = r#"[{name="one", roles={ros=1}}, {name="rest"}]"#;
    for job in [Job::example("quickstart").patient(), Job::example("quickstart").patient().set("host", hosts)] {
        let mut served = Served::start(job);
        let refused = served.refused("anna", &["stamps", "on"], 1);
        assert!(refused.contains("no application runs: boot first"), "{refused}");
        served.ctl("anna", &["boot"]);
        served.ctl("anna", &["start", "--duration", "1h"]);
        let body = "{\"name\":\"bob\",\"client\":\"c\"}";
        let answer = served.ask("POST", "/api/orders/stamps", &[("Content-Type", "application/json")], body);
        assert_eq!(answer.status, 401, "{answer:?}");
        assert_eq!(served.ctl("anna", &["stamps"]), "no time stamps were written\n");
        check_ordered(&mut served);
        // The end of the run ends them, too.
        served.ctl("anna", &["stamps", "polls"]);
        served.ctl("anna", &["stop"]);
        served.until_state("booted");
        let there = served.get("stamps");
        assert_eq!((there["stamps"].as_str(), there["awaited"].as_u64()), (Some("polls"), Some(0)), "{there}");
        let files = files_of(&there);
        assert!(
            files.len() > 17 && files.iter().all(|file| file.to_str().unwrap().contains(".2.weirtrace")),
            "{there}"
        );
        assert!(files.iter().all(|file| Trace::read(file).unwrap().torn_at.is_none()));
        served.running.signal(Signal::SIGINT);
        served.end().expect(0);
    }
}

/// Begins stamps, ends them, and reads them.
fn check_ordered(served: &mut Served) {
    let told = served.ctl("anna", &["stamps", "on"]);
    assert!(told.starts_with("the applications write time stamps\ntime stamps"), "{told}");
    // The next figures may be of events from before the stamps: as many as may be in flight.
    for more in [0, 1024] {
        let before = served.status()["run"]["recorded"].as_u64().unwrap();
        served.until("more is recorded", |status| status["run"]["recorded"].as_u64() > Some(before + more));
    }
    let told = served.ctl("anna", &["stamps", "off"]);
    let there = served.get("stamps");
    let on_host = |host: Option<&str>| {
        let files = there["files"].as_array().unwrap().iter();
        files.filter(|file| file["host"].as_str() == host).count()
    };
    match on_host(None) {
        0 => {
            assert_eq!((on_host(Some("one")), on_host(Some("rest"))), (1, 17), "{there}");
            assert!(
                told.contains("time stamps on host one: /") && told.contains("on host rest: 17 files in /"),
                "{told}"
            );
        }
        all => assert!(all == 18 && told.contains("time stamps: 18 files in /"), "{told}"),
    }
    let files = files_of(&there);
    assert!(files.iter().all(|file| Trace::read(file).unwrap().torn_at.is_none()), "they are whole");
    let told = asked("distribution", &files, &["--begin", "l1-accept", "--end", "record"].map(OsStr::new)).unwrap();
    assert!(told.contains("times: median"), "{told}");
    let directory = TempDir::new("drawn");
    for (verb, output) in [("sequence", "sequence.svg"), ("export", "trace.json")] {
        asked(verb, &files, &["-o".as_ref(), directory.join(output).as_os_str()]).unwrap();
    }
}

pub(crate) fn files_of(there: &Value) -> Vec<PathBuf> {
    let files = there["files"].as_array().unwrap().iter();
    files.map(|file| PathBuf::from(file["file"].as_str().unwrap())).collect()
}

#[test]
fn that_cannot_be_read_or_lacks_what_is_asked_for_is_refused() {
    let traces = TempDir::new("traces");
    let option = format!("--trace={}", traces.path().display());
    Job::example("quickstart").patient().events(50).with(&[&option]).run().expect_ok();
    let good = traces.join("weir.weirtrace");
    let files = |path: &Path| vec![path.to_owned()];
    let refused = |path: &Path, verb: &str, options: &[&str], reason: &str| {
        let options: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        let told = asked(verb, &files(path), &options).unwrap_err();
        assert!(told.starts_with("weir trace: ") && told.contains(reason), "{told}");
    };
    let (empty, damaged, other) = (traces.join("empty"), traces.join("damaged"), traces.join("other"));
    fs::write(&empty, "").unwrap();
    let mut bytes = fs::read(&good).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&damaged, bytes).unwrap();
    fs::write(&other, "not a trace").unwrap();
    for verb in ["distribution", "sequence", "export"] {
        refused(&traces.join("none"), verb, &[], "No such file");
        refused(&empty, verb, &[], "the file is empty");
        refused(&damaged, verb, &[], "a checksum does not fit");
        refused(&other, verb, &[], "expected a trace file of Weir");
    }
    refused(&good, "distribution", &["--section", "fly"], "no section is called fly; these are: action ");
    refused(&good, "sequence", &["--event", "99999999"], "event 99999999 is in none");
    refused(&good, "sequence", &["--from", "9999999999"], "nothing of any section in these times");
    refused(&good, "export", &["-o", "/none/trace.json"], "/none/trace.json");
    let told = record(i32::MAX).unwrap_err();
    assert!(told.contains("expected `weir run` or `weir serve`, with a partition on this machine"), "{told}");
}

/// What `weir trace record` says of the processes of a partition.
pub(crate) fn record(parent: i32) -> Result<String, String> {
    weir(&["trace".into(), "record".into(), parent.to_string().into(), "--seconds=0.5".into()])
}

fn asked(verb: &str, files: &[PathBuf], options: &[&OsStr]) -> Result<String, String> {
    let words = [OsString::from("trace"), verb.into()].into_iter();
    let files = files.iter().map(|path| path.clone().into_os_string());
    let options = options.iter().map(|option| OsString::from(*option));
    weir(&words.chain(files).chain(options).collect::<Vec<_>>())
}

/// What the program says; or what it complains of.
fn weir(arguments: &[OsString]) -> Result<String, String> {
    let directory = TempDir::new("weir-trace");
    let Output { status, stdout, stderr } =
        Command::new(program()).args(arguments).current_dir(directory.path()).output().unwrap();
    let [out, error] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    match status.code() {
        Some(0) => Ok(out),
        Some(1) => Err(error),
        _ => panic!("{status}: {out}{error}"),
    }
}

fn trace_files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "weirtrace"));
    files.sort();
    files
}
