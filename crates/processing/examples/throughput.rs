//! Events per second through one processing task, from `submit` to the verdict.
//!
//! `cargo run --release -p processing --example throughput -- [PYTHON [SECONDS]]`: for each kind of event, the tasks in Rust and
//! in Python that reject at once, and those that add up the data of one fragment.
#![forbid(unsafe_code)]

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use eformat::{ROB_PREFIX_BYTES, RobParams, RodHeader, SourceId, words, write_rob_fragment};
use processing::{Algorithm, Decision, EventHead, EventView, Tasks, TasksOptions, Verdict, python, serve};
use transport::clock;
use transport::idle::IdleStrategy;
use transport::scheduler::Scheduler;

const ALGORITHMS: &str = "
from weir import Decision

class Trivial:
    def process(self, event):
        return Decision.reject()

class Looks:
    def process(self, event):
        return event.fragments[0x420001].data.sum() == 0

class All:
    def process(self, event):
        total = 0
        for fragment in event.fragments.values():
            total += len(fragment.data)
        return total == 0
";

struct Trivial;

impl Algorithm for Trivial {
    fn process(&mut self, _event: &EventView<'_>) -> Decision {
        Decision::Reject { chains: 0, input: 0 }
    }
}

struct Looks;

impl Algorithm for Looks {
    fn process(&mut self, event: &EventView<'_>) -> Decision {
        let fragment = event.fragment(SourceId(0x42_0001));
        let sum: u32 = fragment.map_or(0, |fragment| words(fragment.data).fold(0, u32::wrapping_add));
        Decision::Reject { chains: 0, input: sum.into() }
    }
}

struct All;

impl Algorithm for All {
    fn process(&mut self, event: &EventView<'_>) -> Decision {
        let sum: usize = event.fragments().map(|fragment| fragment.data.len()).sum();
        Decision::Reject { chains: 0, input: sum as u64 }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("pt".as_ref()) {
        serve(|setup: &str| -> Result<Box<dyn Algorithm>, String> {
            match setup {
                "Trivial" => Ok(Box::new(Trivial)),
                "Looks" => Ok(Box::new(Looks)),
                _ => Ok(Box::new(All)),
            }
        })?;
        return Ok(());
    }
    let interpreter = first.unwrap_or_else(|| "python3".into());
    let seconds = arguments.next().and_then(|seconds| seconds.to_str()?.parse().ok()).unwrap_or(2);
    let directory = testkit::TempDir::new("throughput");
    std::fs::write(directory.join("algorithms.py"), ALGORITHMS)?;
    for (name, fragments, data_bytes) in [("160 fragments, 1.5 kB", 160, 8), ("4 fragments, 0.3 kB", 4, 76)] {
        let event = event(fragments, data_bytes);
        println!("{name} of data, {} bytes", event.len());
        for algorithm in ["Trivial", "Looks", "All"] {
            let command = vec![std::env::current_exe()?.into(), "pt".into()];
            run("Rust", algorithm, options(command, Vec::new(), algorithm), &event, seconds)?;
            let path = format!("{}:{algorithm}", directory.join("algorithms.py").display());
            let python = python::command(&interpreter, &path, Path::new(&directory.join("package")))?;
            run("Python", algorithm, options(python.command, python.environment, ""), &event, seconds)?;
        }
    }
    Ok(())
}

fn options(command: Vec<OsString>, environment: Vec<(OsString, OsString)>, setup: &str) -> TasksOptions {
    let setup = setup.to_owned();
    TasksOptions { command, environment, setup, slots: 64, slot_bytes: 64 << 10, ..TasksOptions::default() }
}

fn run(kind: &str, algorithm: &str, options: TasksOptions, event: &[u8], seconds: u64) -> Result<(), Box<dyn Error>> {
    let scheduler: Scheduler<'_> = Scheduler::new(IdleStrategy::Yield)?;
    let mut tasks = Tasks::start(options, scheduler.waker())?;
    let (begin, mut done, mut ticket) = (clock::now(), 0_u64, 0);
    let end = begin + Duration::from_secs(seconds);
    while clock::now() < end {
        while tasks.has_free() {
            ticket += 1;
            tasks.submit(ticket, &EventHead { event_number: ticket, ..EventHead::default() }, [event]);
        }
        let mut next = tasks.wait_done(Duration::from_secs(10));
        while let Some((_, verdict)) = next {
            assert!(matches!(verdict, Verdict::Rejected { .. }), "{verdict:?}");
            done += 1;
            next = tasks.next_done();
        }
    }
    let rate = done as f64 / clock::now().since(begin).as_secs_f64();
    println!("  {kind:6} {algorithm:8} {rate:9.0} events/s");
    Ok(())
}

fn event(fragments: u16, data_bytes: usize) -> Vec<u8> {
    let mut event = Vec::new();
    for module in 0..fragments {
        let rod = RodHeader { source_id: SourceId(0x42_0000 | u32::from(module)), ..RodHeader::default() };
        let params = RobParams { rod, ..RobParams::default() };
        let start = event.len();
        event.resize(start + params.rob_bytes(data_bytes), 0);
        event[start + ROB_PREFIX_BYTES..][..data_bytes].fill(1);
        write_rob_fragment(&mut event[start..], &params, data_bytes);
    }
    event
}
