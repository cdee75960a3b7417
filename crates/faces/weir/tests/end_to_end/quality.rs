//! Histograms of a run: of the system, and of a monitoring task in Python; their references, and alarms.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::TempDir;

use crate::running::{Job, within_deadline};
use crate::served::Served;

#[test]
fn what_differs_from_its_reference_is_an_alarm() {
    let Some(python) = testkit::python("quality::what_differs_from_its_reference_is_an_alarm") else { return };
    let here = TempDir::new("quality");
    let example = fs::read_to_string(root().join("examples/monitoring/fragments.py")).unwrap();
    let good = here.join("good.py");
    fs::write(&good, &example).unwrap();
    let job = || Job::example("quickstart").patient().set("ros.count", "2");

    let (references, heads) = shown(&python, &good, Served::start(job()));
    let names: Vec<&str> = heads.iter().map(|head| head["name"].as_str().unwrap()).collect();
    let system = ["system.bunch-crossing", "system.event-size.sfi", "system.trigger-type"];
    assert_eq!(names, [&["fragment-length", "fragments"][..], &system].concat());
    assert!(heads.iter().all(|head| head["alarm"] == json!(false) && head["comparison"].is_null()), "{heads:?}");
    let file = here.join("references.json");
    fs::write(&file, references.to_string()).unwrap();
    let job = || job().set("control.references", &format!("{:?}", file.display().to_string()));

    let (_, heads) = shown(&python, &good, Served::start(job()));
    // All entries of others are in one bin, which has no shape.
    for name in ["fragment-length", "system.bunch-crossing"] {
        assert!(distance(&heads, name) < UNLIKE, "{heads:?}");
    }

    // A part of the read-out gives longer fragments.
    let bad = here.join("bad.py");
    fs::write(
        &bad,
        example.replace("len(fragment.data) for", "len(fragment.data) + 40 * (fragment.source_id % 4 == 0) for"),
    )
    .unwrap();
    let (_, heads) = shown(&python, &bad, Served::start(job()));
    let is_unlike = |head: &&Value| head["comparison"]["distance"].as_f64() > Some(UNLIKE);
    let unlike: Vec<&Value> = heads.iter().filter(is_unlike).collect();
    let [alarm] = unlike[..] else { panic!("{heads:?}") };
    let found = (&alarm["name"], &alarm["alarm"], &alarm["by"]);
    assert_eq!(found, (&json!("fragment-length"), &json!(true), &json!("fragments")));
}

/// How far a histogram is from its reference: χ² for each bin.
fn distance(heads: &[Value], name: &str) -> f64 {
    let head = heads.iter().find(|head| head["name"] == name).unwrap();
    head["comparison"]["distance"].as_f64().unwrap_or_else(|| panic!("{head}"))
}

/// Histograms that are alike are at 1, or at a few if the entries of an event go together. A changed one is at hundreds.
const UNLIKE: f64 = 50.0;

#[test]
fn what_is_no_histogram_is_refused() {
    let served = Served::start(Job::example("quickstart"));
    let histogram = json!({"name": "a", "edges": [0, 1, 2], "counts": [1, 2]});
    let with = |key: &str, value: Value| {
        let mut changed = histogram.clone();
        changed[key] = value;
        json!({"name": "task", "histograms": [changed]})
    };
    for (body, said) in [
        (with("name", json!("../a")), "a name of 1 to 64"),
        (with("name", json!("system.a")), "names that begin with `system.`"),
        (with("edges", json!([0, 2, 1])), "edges that rise"),
        (with("counts", json!([1])), "found 1 counts and 3 edges"),
        (with("counts", json!([1, -2])), "counts from 0"),
        (with("colour", json!(1)), "unknown field `colour`"),
        (json!({"name": "", "histograms": []}), "a name of 1 to 64 characters"),
    ] {
        let answer = served.post("histograms", &body);
        assert!(answer.status == 422 && answer.body.contains(said), "{body}: {answer:?}");
    }
    let good = json!({"name": "task", "histograms": [histogram]});
    assert_eq!(
        served.ask("POST", "/api/histograms", &[("Content-Type", "application/json")], &good.to_string()).status,
        401
    );
    assert_eq!(served.post("histograms", &good).status, 200);
    let other = json!({"name": "other", "histograms": [histogram]});
    let answer = served.post("histograms", &other);
    assert!(answer.status == 422 && answer.body.contains("of another client"), "{answer:?}");
    assert_eq!(served.get("histograms/a")["histogram"]["counts"], json!([1.0, 2.0]));
    assert_eq!(served.get("histograms").as_array().unwrap().len(), 1);
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

#[test]
fn references_that_cannot_be_read_are_named() {
    let here = TempDir::new("references");
    let file = here.join("references.json");
    fs::write(&file, "{").unwrap();
    let job = Job::example("quickstart").set("control.references", &format!("{:?}", file.display().to_string()));
    let ended = job.served().start().end();
    let expected = format!("control.references {}", file.display());
    assert!(ended.stderr.contains(&expected) && ended.stderr.contains("/api/references"), "{}", ended.stderr);
    ended.expect(2);
}

/// A run with a monitoring task, until both have seen enough; its histograms as references and as a list.
fn shown(python: &Path, task: &Path, mut served: Served) -> (Value, Vec<Value>) {
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    served.running.until_recording();
    let mut task = started(python, task, &served);
    let entries = |served: &Served, name: &str| {
        let heads = served.get("histograms");
        let found = heads.as_array().unwrap().iter().find(|head| head["name"] == name).cloned();
        found.and_then(|head| head["entries"].as_f64()).unwrap_or_default()
    };
    within_deadline("both have filled enough", || {
        assert!(task.try_wait().unwrap().is_none(), "the task has ended");
        entries(&served, "fragments") > 100.0 && entries(&served, "system.event-size.sfi") > 100.0
    });
    served.ctl("anna", &["stop"]);
    served.until_state("booted");
    assert_eq!(task.wait().unwrap().code(), Some(0));
    let heads = served.get("histograms").as_array().unwrap().clone();
    let alarms = heads.iter().filter(|head| head["alarm"] == json!(true)).count();
    assert_eq!(served.status()["alarms"], json!(alarms));
    let said = served.get("messages").to_string();
    assert!(alarms == 0 || said.contains("Data of a fragment differs from its reference"), "{said}");
    let references = served.get("references");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
    (references, heads)
}

fn started(python: &Path, task: &Path, served: &Served) -> Child {
    let mut command = Command::new(python);
    command.arg(task).env("PYTHONPATH", root().join("python"));
    command.env("XDG_RUNTIME_DIR", served.running.directory().path());
    command.stdin(Stdio::null()).spawn().unwrap()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}
