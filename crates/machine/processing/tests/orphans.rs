//! Nothing is left of the tasks when their owner ends, however it ends.
#![forbid(unsafe_code)]

#[allow(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{
    Algorithms, PATIENCE, deaths_of, decide, options_of, plays, processes_of, role, start, wait_gone, wait_readable,
};
use processing::{EventHead, Tasks, TasksOptions};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

const ALGORITHMS: &str = r#"
import os

def tell(setup):
    with open(setup.parameters["fifo"], "w") as fifo:
        fifo.write("x")

class Idles:
    def __init__(self, setup):
        tell(setup)
    def process(self, event):
        return True

class Loops:
    def __init__(self, setup):
        self.setup = setup
    def process(self, event):
        tell(self.setup)
        while True:
            pass

class LoopsAtStart:
    def __init__(self, setup):
        tell(setup)
        while True:
            pass
    def process(self, event):
        return True

class Forks:
    """A process that it starts holds everything open that it has."""
    def __init__(self, setup):
        self.setup = setup
    def process(self, event):
        if os.fork() == 0:
            while True:
                pass
        tell(self.setup)
        if event.event_number == 2:
            os.abort()
        return True

class Crashes:
    def process(self, event):
        if event.event_number % 10 == 0:
            os.abort()
        return True
"#;

/// Two tasks with an event each.
fn own(interpreter: &Path, directory: &Path, class: &str) -> Tasks {
    let algorithm = format!("{}:{class}", directory.join("algorithms.py").display());
    let setup = format!(r#"{{"parameters": {{"fifo": "{}"}}}}"#, directory.join("fifo").display());
    let mut tasks = start(TasksOptions { count: 2, setup, ..options_of(interpreter, &algorithm, directory) });
    for ticket in 1..=2 {
        tasks.submit(ticket, &EventHead { event_number: ticket, ..EventHead::default() }, []);
    }
    tasks
}

#[test]
fn owner() {
    if plays("owner") {
        let variable = |name| PathBuf::from(std::env::var_os(name).unwrap());
        let class = std::env::var("WEIR_TEST_CLASS").unwrap();
        let mut tasks = own(&variable("WEIR_PYTHON"), &variable("WEIR_TEST_DIRECTORY"), &class);
        while tasks.wait_done(PATIENCE).is_some() {}
    }
}

/// A FIFO through which the algorithms say that they have come so far.
fn fifo(directory: &Path) -> OwnedFd {
    let path = directory.join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    rustix::fs::open(&path, OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

fn wait_told(fifo: &OwnedFd, times: usize) {
    let mut told = 0;
    while told < times {
        wait_readable(fifo, "a task did not come so far");
        told += rustix::io::read(fifo, &mut [0; 16]).unwrap();
    }
}

#[test]
fn tasks_die_with_a_killed_owner_whatever_they_do() {
    for class in ["Idles", "Loops", "LoopsAtStart"] {
        let Some(algorithms) = Algorithms::new("tasks_die_with_a_killed_owner", ALGORITHMS) else { return };
        let directory = algorithms.directory.path();
        let fifo = fifo(directory);
        let (command, environment) = role("owner");
        let mut owner = Command::new(&command[0])
            .args(&command[1..])
            .envs(environment)
            .env("WEIR_TEST_DIRECTORY", directory)
            .env("WEIR_TEST_CLASS", class)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_told(&fifo, 2);
        let tasks = processes_of(directory);
        assert_eq!(tasks.len(), 2, "{class}");
        let deaths = deaths_of(&tasks);
        owner.kill().unwrap();
        owner.wait().unwrap();
        wait_gone(&deaths);
    }
}

#[test]
fn a_dropped_owner_leaves_nothing_whatever_its_tasks_do() {
    for class in ["Idles", "Loops", "Forks"] {
        let Some(algorithms) = Algorithms::new("a_dropped_owner", ALGORITHMS) else { return };
        let interpreter = testkit::python("a_dropped_owner").unwrap();
        let directory = algorithms.directory.path();
        let fifo = fifo(directory);
        let tasks = own(&interpreter, directory, class);
        wait_told(&fifo, 2);
        let deaths = deaths_of(&processes_of(directory));
        drop(tasks);
        wait_gone(&deaths);
        assert_eq!(processes_of(directory), [], "{class}");
    }
}

#[test]
fn no_descriptor_and_no_file_is_left() {
    // A process of its own: other tests open and close descriptors meanwhile.
    if testkit::python("no_descriptor_and_no_file_is_left").is_none() {
        return;
    }
    let (command, environment) = role("counter");
    let counted = Command::new(&command[0]).args(&command[1..]).envs(environment).status().unwrap();
    assert!(counted.success());
}

#[test]
fn counter() {
    if !plays("counter") {
        return;
    }
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    let algorithms = Algorithms::new("counter", ALGORITHMS).unwrap();
    let files = || std::fs::read_dir(algorithms.directory.path()).unwrap().count();
    let options = TasksOptions { count: 2, ..algorithms.options("Crashes") };
    let made = files();
    let mut tasks = start(options);
    decide(&mut tasks, 100);
    assert_eq!(tasks.restarts(), 10);
    drop(tasks);
    common::start_error(algorithms.options("Absent"));
    assert_eq!((open(), files()), (before, made));
}
