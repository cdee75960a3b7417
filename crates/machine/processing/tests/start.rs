//! Tasks that do not start say why.
#![forbid(unsafe_code)]

#[allow(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use std::path::Path;
use std::time::Duration;

use common::{Algorithms, options_of, processes_of, start_error, waker};
use processing::{Tasks, TasksError, TasksOptions};

const SOURCE: &str = r#"
class Constructor:
    def __init__(self):
        raise ValueError("the threshold is negative")
    def process(self, event):
        return True

class NoProcess:
    pass

class Loops:
    def __init__(self):
        while True:
            pass
    def process(self, event):
        return True

class Exits:
    def __init__(self):
        import os
        os._exit(7)
    def process(self, event):
        return True

class Fine:
    def process(self, event):
        return True
"#;

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn an_algorithm_that_cannot_be_made_says_why() {
    let Some(algorithms) = Algorithms::new("an_algorithm_that_cannot_be_made", SOURCE) else { return };
    std::fs::write(algorithms.directory.join("torn.py"), "class Torn:\n    def process(self\n").unwrap();
    let path = |rest: &str| format!("{}/{rest}", algorithms.directory.path().display());
    for (name, words) in [
        (
            path("algorithms.py:Constructor"),
            vec!["pt-1", "ValueError: the threshold is negative", "algorithms.py line 4"],
        ),
        (path("algorithms.py:NoProcess"), vec!["no method process(event)"]),
        (path("algorithms.py:Absent"), vec!["has no class Absent"]),
        (path("absent.py:Any"), vec!["there is no file", "absent.py"]),
        (path("torn.py:Torn"), vec!["SyntaxError", "torn.py"]),
        ("no.such.module:Any".into(), vec!["ModuleNotFoundError", "no"]),
        ("nonsense".into(), vec!["FILE.py:Class"]),
        (path("algorithms.py:Exits"), vec!["exited with status 7 before it was ready"]),
    ] {
        has(&start_error(algorithms.options_for(&name)), &words);
    }
    let slow = TasksOptions { start_timeout: Duration::from_secs(2), count: 2, ..algorithms.options("Loops") };
    has(&start_error(slow), &["not ready in time"]);
    let bad_json = TasksOptions { setup: "{".into(), ..algorithms.options("Fine") };
    has(&start_error(bad_json), &["JSONDecodeError"]);
    assert_eq!(processes_of(algorithms.directory.path()), []);
}

#[test]
fn a_missing_numpy_says_how_to_install_it() {
    let Some(algorithms) = Algorithms::new("a_missing_numpy", SOURCE) else { return };
    let without = algorithms.directory.join("without");
    std::fs::create_dir(&without).unwrap();
    std::fs::write(without.join("numpy.py"), "raise ImportError('No module named numpy')").unwrap();
    let mut options = algorithms.options("Fine");
    let path = options.environment.iter_mut().find(|(name, _)| name == "PYTHONPATH").unwrap();
    path.1.push(":");
    path.1.push(&without);
    has(&start_error(options), &["weir needs numpy", "-m pip install numpy"]);
}

#[test]
fn a_missing_interpreter_is_named() {
    let directory = testkit::TempDir::new("processing");
    let options = options_of(Path::new("/no/such/python3"), "a:B", directory.path());
    has(&start_error(options), &["/no/such/python3 cannot be started", "No such file"]);
    let options = TasksOptions { command: vec!["true".into()], ..TasksOptions::default() };
    has(&start_error(options), &["exited with status 0 before it was ready"]);
}

#[test]
fn options_that_make_no_tasks_are_refused() {
    let fine = TasksOptions { command: vec!["true".into()], ..TasksOptions::default() };
    for (options, words) in [
        (TasksOptions { command: Vec::new(), ..fine.clone() }, "the command is empty"),
        (TasksOptions { count: 0, ..fine.clone() }, "at least one task"),
        (TasksOptions { slot_bytes: 8, ..fine.clone() }, "at least 64"),
        (TasksOptions { streams: vec!["s".into(); 33], ..fine.clone() }, "at most 32"),
        (TasksOptions { setup: "\n".repeat(100_000), ..fine.clone() }, "the setup has"),
    ] {
        match Tasks::start(options, waker()) {
            Err(TasksError::Options { problem, .. }) => has(&problem, &[words]),
            other => panic!("{other:?}"),
        }
    }
}
