//! `weir bench filter`: small events through one processing task that decides at once, in Python and in Rust.
//!
//! Everything between an EFD and its tasks is there: the copy into shared memory, the supervised process, verdicts. The
//! reference is [`handover`](super::handover): the same bytes to a child that does not look at them.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use base::time::Time;
use eformat::{RobParams, RodHeader, SourceId, write_rob_fragment};
use nix::sys::resource::UsageWho;
use processing::{Algorithm, Decision, EventHead, EventView, ServeError, Tasks, TasksOptions, Verdict, python, serve};
use serde::Serialize;
use transport::clock;
use transport::idle::IdleStrategy;
use transport::scheduler::Scheduler;

use super::paired::{Comparison, Figures, RatioOf};
use super::{BenchError, PATIENCE, handover};
use crate::bench::arguments::BenchArgs;
use driver::scratch::Scratch;
use partition::cpu::cpu_seconds;

/// Both measurements.
#[derive(Serialize)]
pub(crate) struct Filter {
    /// That of Python once more, the language that costs most.
    #[serde(flatten)]
    main: Comparison<Parameters>,
    python: Comparison<Parameters>,
    rust: Comparison<Parameters>,
}

/// What is measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Parameters {
    task: &'static str,
    fragments: u16,
    event_bytes: usize,
    /// Events that the task has or that wait for it.
    slots: usize,
    seconds: f64,
    pairs: usize,
}

/// Measures both, each in alternation with the reference.
pub(crate) fn measure(args: &BenchArgs) -> Result<Filter, BenchError> {
    let event = event();
    let scratch = Scratch::new().map_err(|error| BenchError::System { what: "a temporary directory", error })?;
    let class = scratch.path().join("trivial.py");
    let written = fs::write(&class, TRIVIAL).and_then(|()| {
        python::command(
            args.python.as_os_str(),
            &format!("{}:Trivial", class.display()),
            &scratch.path().join("package"),
        )
    });
    let python = written.map_err(|error| BenchError::System { what: "the Python package", error })?;
    let own = std::env::current_exe().map_err(|error| BenchError::System { what: "the program's own path", error })?;
    let rust: Vec<OsString> = vec![own.into(), "bench-part".into(), "task".into()];
    let compare = |name, task, command: &[OsString], environment: &[(OsString, OsString)]| {
        let (fragments, event_bytes, seconds) = (FRAGMENTS, event.len(), args.seconds / 2.0);
        let parameters = Parameters { task, fragments, event_bytes, slots: SLOTS, seconds, pairs: PAIRS };
        let (command, environment) = (command.to_vec(), environment.to_vec());
        let options = TasksOptions {
            name: "bench".into(),
            command,
            environment,
            slots: SLOTS,
            slot_bytes: SLOT_BYTES,
            ..TasksOptions::default()
        };
        let bare = || {
            let (events, seconds, cpu) = handover::run(&event, SLOTS, SLOT_BYTES, seconds)?;
            Ok(Figures::of(events as f64, Some(event_bytes as f64), seconds, cpu))
        };
        Comparison::measure(name, parameters, (PAIRS, RatioOf::EventsPerS), || run(&options, &event, seconds), bare)
    };
    let python = compare("filter.python", "python", &python.command, &python.environment)?;
    let rust = compare("filter.rust", "rust", &rust, &[])?;
    Ok(Filter { main: python.clone().named("filter"), python, rust })
}

impl Filter {
    /// A few lines for people.
    pub(crate) fn to_text(&self) -> String {
        [&self.python, &self.rust].map(Comparison::to_text).join("\n\n")
    }
}

/// The task in Rust.
pub(super) fn task_main() -> Result<(), ServeError> {
    struct Trivial;

    impl Algorithm for Trivial {
        fn process(&mut self, _event: &EventView<'_>) -> Decision {
            Decision::Reject { chains: 0, input: 0 }
        }
    }

    serve(|_: &str| -> Result<Box<dyn Algorithm>, String> { Ok(Box::new(Trivial)) })
}

fn run(options: &TasksOptions, event: &[u8], seconds: f64) -> Result<Figures, BenchError> {
    let scheduler: Scheduler<'_> = Scheduler::new(IdleStrategy::Yield)?;
    let mut tasks = Tasks::start(options.clone(), scheduler.waker())?;
    let (own, children) = (UsageWho::RUSAGE_SELF, UsageWho::RUSAGE_CHILDREN);
    let cpu_before = cpu_seconds(own) + cpu_seconds(children);
    let began = clock::now();
    let end = began + Duration::from_secs_f64(seconds);
    let (mut submitted, mut done) = (0, 0);
    let goes_on = |submitted: u64| submitted == 0 || clock::now() < end;
    while goes_on(submitted) || done < submitted {
        while tasks.has_free() && goes_on(submitted) {
            submitted += 1;
            let head = EventHead { event_number: submitted, ..EventHead::default() };
            tasks.submit(submitted, &head, [event]);
        }
        let Some(first) = tasks.wait_done(SILENCE_MAX) else {
            return Err(BenchError::Task("decides on nothing".into()));
        };
        let mut next = Some(first);
        while let Some((_, verdict)) = next {
            if !matches!(verdict, Verdict::Rejected { .. }) {
                return Err(BenchError::Task(format!("should reject: {verdict:?}")));
            }
            done += 1;
            next = tasks.next_done();
        }
    }
    let measured = seconds_since(began);
    drop(tasks);
    let cpu = cpu_seconds(own) + cpu_seconds(children) - cpu_before;
    Ok(Figures::of(done as f64, Some(event.len() as f64), measured, cpu))
}

fn seconds_since(began: Time) -> f64 {
    clock::now().since(began).as_secs_f64()
}

/// Fragments of emulated data, one behind the other.
fn event() -> Vec<u8> {
    let mut event = Vec::new();
    for module in 0..FRAGMENTS {
        let rod = RodHeader { source_id: SourceId(0x42_0000 | u32::from(module)), ..RodHeader::default() };
        let params = RobParams { rod, ..RobParams::default() };
        let start = event.len();
        event.resize(start + params.rob_bytes(DATA_BYTES), 0);
        write_rob_fragment(&mut event[start..], &params, DATA_BYTES);
    }
    event
}

const TRIVIAL: &str = "\
from weir import Decision

class Trivial:
    def process(self, event):
        return Decision.reject()
";

const PAIRS: usize = 5;
const FRAGMENTS: u16 = 4;
const DATA_BYTES: usize = 76;
const SLOTS: usize = 64;
const SLOT_BYTES: usize = 64 << 10;
const SILENCE_MAX: Duration = PATIENCE;
