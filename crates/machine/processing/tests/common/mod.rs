//! What the tests of processing tasks share: events, tasks in Python, and a look at what is left of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use eformat::{ROB_PREFIX_BYTES, RobParams, RodHeader, SourceId, write_rob_fragment};
use processing::{EventHead, FailReason, Tasks, TasksError, TasksOptions, Verdict, python};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use testkit::TempDir;
use transport::idle::IdleStrategy;
use transport::scheduler::Scheduler;
use transport::waker::Waker;

/// Long enough for a machine under load; reached only by a test that fails.
pub const PATIENCE: Duration = Duration::from_secs(120);

pub fn waker() -> Waker {
    let scheduler: Scheduler<'_> = Scheduler::new(IdleStrategy::Yield).unwrap();
    scheduler.waker()
}

/// Algorithms in Python, in a directory of their own.
pub struct Algorithms {
    pub directory: TempDir,
    interpreter: PathBuf,
}

impl Algorithms {
    pub fn new(test: &str, source: &str) -> Option<Self> {
        let interpreter = testkit::python(test)?;
        let directory = TempDir::new("processing");
        std::fs::write(directory.join("algorithms.py"), source).unwrap();
        Some(Self { directory, interpreter })
    }

    pub fn options(&self, class: &str) -> TasksOptions {
        self.options_for(&format!("{}:{class}", self.directory.join("algorithms.py").display()))
    }

    pub fn options_for(&self, algorithm: &str) -> TasksOptions {
        options_of(&self.interpreter, algorithm, self.directory.path())
    }
}

pub fn options_of(interpreter: &Path, algorithm: &str, directory: &Path) -> TasksOptions {
    let python = python::command(interpreter.as_os_str(), algorithm, directory).unwrap();
    TasksOptions {
        command: python.command,
        environment: python.environment,
        slots: 64,
        slot_bytes: 64 << 10,
        streams: vec!["physics".into(), "express".into()],
        ..TasksOptions::default()
    }
}

/// This test program again, as the test `role` with a variable that makes it play it.
pub fn role(role: &str) -> (Vec<OsString>, Vec<(OsString, OsString)>) {
    let program = std::env::current_exe().unwrap();
    let command = vec![program.into(), role.into(), "--exact".into(), "--nocapture".into(), "--quiet".into()];
    (command, vec![("WEIR_TEST_ROLE".into(), role.into())])
}

pub fn plays(role: &str) -> bool {
    std::env::var("WEIR_TEST_ROLE").is_ok_and(|played| played == role)
}

pub fn start(options: TasksOptions) -> Tasks {
    Tasks::start(options, waker()).unwrap()
}

pub fn start_error(options: TasksOptions) -> String {
    match Tasks::start(options, waker()) {
        Ok(_) => panic!("the tasks started"),
        Err(error @ (TasksError::Start { .. } | TasksError::Program { .. })) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
    }
}

/// Submits events 1 to `count`; their verdicts, by number.
pub fn decide(tasks: &mut Tasks, count: u64) -> Vec<Verdict> {
    let event = [rob(0x42_0001, &[1; 64]), rob(0x42_0002, &[2; 32])].concat();
    let mut verdicts: Vec<Option<Verdict>> = (0..count).map(|_| None).collect();
    let mut submitted = 0;
    for _ in 0..count {
        while submitted < count && tasks.has_free() {
            submitted += 1;
            tasks.submit(submitted, &EventHead { event_number: submitted, ..EventHead::default() }, [event.as_slice()]);
        }
        let (ticket, verdict) = tasks.wait_done(PATIENCE).expect("every event has a verdict");
        let before = verdicts[ticket as usize - 1].replace(verdict);
        assert_eq!(before, None, "event {ticket} has two verdicts");
    }
    assert!(!tasks.has_done() && tasks.next_done().is_none());
    verdicts.into_iter().map(|verdict| verdict.expect("as many verdicts as events, and none twice")).collect()
}

/// That event `guilty` alone failed; its reason and message.
pub fn only_failure(verdicts: &[Verdict], guilty: u64) -> (FailReason, String) {
    let mut found = None;
    for (number, verdict) in (1..).zip(verdicts) {
        match verdict {
            Verdict::Failed { reason, message } if number == guilty => found = Some((*reason, message.clone())),
            Verdict::Failed { reason, message } => panic!("event {number} failed, too: {reason}: {message}"),
            Verdict::Accepted { .. } if number % 2 == 0 => {}
            Verdict::Rejected { .. } if number % 2 == 1 => {}
            other => panic!("event {number}: {other:?}"),
        }
    }
    found.unwrap_or_else(|| panic!("event {guilty}: {:?}", verdicts[guilty as usize - 1]))
}

pub fn rob(source: u32, data: &[u8]) -> Vec<u8> {
    let rod = RodHeader { source_id: SourceId(source), ..RodHeader::default() };
    let params = RobParams { rod, adler32: source.is_multiple_of(2), ..RobParams::default() };
    let mut bytes = vec![0; params.rob_bytes(data.len())];
    bytes[ROB_PREFIX_BYTES..][..data.len()].copy_from_slice(data);
    write_rob_fragment(&mut bytes, &params, data.len());
    bytes
}

/// Processes whose command line names the directory.
pub fn processes_of(directory: &Path) -> Vec<Pid> {
    let wanted = directory.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let names_it = |number: &i32| {
        std::fs::read(format!("/proc/{number}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(wanted))
    };
    numbers.filter(names_it).filter_map(Pid::from_raw).collect()
}

/// Waits until a descriptor is readable.
pub fn wait_readable(descriptor: &OwnedFd, what: &str) {
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let ready = poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(ready, 1, "{what}");
}

/// Waits until processes are gone.
pub fn wait_gone(deaths: &[OwnedFd]) {
    for death in deaths {
        wait_readable(death, "a process lives on");
    }
}

pub fn deaths_of(processes: &[Pid]) -> Vec<OwnedFd> {
    processes.iter().filter_map(|process| pidfd_open(*process, PidfdFlags::empty()).ok()).collect()
}
