//! What an event of the hot paths costs: instructions, copies, allocations and system calls, counted by callgrind and compared
//! with `limits.txt`.
//!
//! Each path is a small program in one thread, without clock and network wherever possible, so that the count is the
//! same in every run. Nothing looks at wall times. It runs twice under callgrind, once for twice as many events: the
//! difference is the cost of the events alone, whatever starting takes.
//!
//! ```text
//! instructions check LIMITS     compare, either way: what became cheaper gets a new limit, too
//! instructions update LIMITS    measure and write the limits
//! instructions run PATH EVENTS  be the program that is measured
//! ```
//!
//! Instructions and copies depend on compiler and processor type (the file says which they are of) and may be 5 % off.
//! Allocations and system calls may, too, but by no more than 0.02 per event. Bytes that the kernel copies are not counted.
#![forbid(unsafe_code)]

mod building;
mod callgrind;
mod counts;
mod files;
mod filter;
mod level2;
mod limits;
mod links;
mod partition;
mod ros;
mod shm;
mod simulation;
mod tcp;
mod udp;
mod wire;

use std::path::Path;
use std::process::ExitCode;

use callgrind::CallgrindError;
use counts::Counts;
use limits::{Limits, LimitsError};

/// As in the program.
#[global_allocator]
static ALLOCATOR: heap::Heap = heap::Heap;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        ["run", name, events] => run(name, events),
        ["check", limits] => check(Path::new(limits)),
        ["update", limits] => update(Path::new(limits)),
        _ => Err(Failure::Usage),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("instructions: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// Why the program fails.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("expected `check LIMITS`, `update LIMITS` or `run PATH EVENTS`")]
    Usage,
    #[error("no path {0}: expected one of {names}", names = PATHS.map(|path| path.name).join(", "))]
    UnknownPath(String),
    #[error(transparent)]
    Callgrind(#[from] CallgrindError),
    #[error(transparent)]
    Limits(#[from] LimitsError),
    #[error(
        "{paths} cost something else than the limits say: find out why, with callgrind_annotate on the files named above; if that is meant, run `make limits`"
    )]
    OtherThanLimits { paths: String },
}

/// A hot path.
struct HotPath {
    name: &'static str,
    /// Enough that the count per event is steady, few enough for a valgrind.
    events: u64,
    run: fn(u64),
}

const PATHS: [HotPath; 17] = [
    HotPath { name: "building", events: 4000, run: building::one_kilobyte },
    HotPath { name: "building_40", events: 400, run: building::many_sources },
    HotPath { name: "building_1600", events: 16, run: building::full_size },
    HotPath { name: "push", events: 4000, run: building::pushed },
    HotPath { name: "push_by_number", events: 4000, run: building::pushed_by_number },
    HotPath { name: "ros", events: 4000, run: ros::requests },
    HotPath { name: "links_shared", events: 9600, run: links::shared },
    HotPath { name: "links_tcp", events: 9600, run: links::tcp },
    HotPath { name: "level2", events: 4000, run: level2::two_step },
    HotPath { name: "filter", events: 2000, run: filter::recorded },
    HotPath { name: "simulation", events: 400, run: simulation::event_building },
    HotPath { name: "wire", events: 10_000, run: wire::encode_and_decode },
    HotPath { name: "tcp", events: 6400, run: tcp::frames },
    HotPath { name: "shm", events: 6400, run: shm::frames },
    HotPath { name: "udp_short", events: 3200, run: udp::short_messages },
    HotPath { name: "udp_cut", events: 320, run: udp::cut_messages },
    HotPath { name: "udp_window", events: 320, run: udp::acknowledged_messages },
];

fn run(name: &str, events: &str) -> Result<(), Failure> {
    let path = PATHS.iter().find(|path| path.name == name).ok_or_else(|| Failure::UnknownPath(name.to_owned()))?;
    (path.run)(events.parse().map_err(|_| Failure::Usage)?);
    Ok(())
}

fn check(file: &Path) -> Result<(), Failure> {
    let limits = Limits::read(file)?;
    if !limits.is_for_this_machine() {
        println!("the limits are of {}, this is {}", limits.machine, limits::machine());
    }
    let mut off = Vec::new();
    println!("{:<16} {} per event", "path", Counts::HEAD);
    for path in &PATHS {
        let counted = callgrind::per_event(path.name, path.events)?;
        println!("{:<16} {counted}", path.name);
        let wrong = counted.off(limits.of(path.name)?);
        if !wrong.is_empty() {
            println!("  off its limits: {}; {}", wrong.join(", "), callgrind::profile(path.name).display());
            off.push(path.name);
        }
    }
    if off.is_empty() { Ok(()) } else { Err(Failure::OtherThanLimits { paths: off.join(", ") }) }
}

fn update(file: &Path) -> Result<(), Failure> {
    let mut limits = Limits::none();
    for path in &PATHS {
        let counted = callgrind::per_event(path.name, path.events)?;
        println!("{:<16} {counted}", path.name);
        limits.set(path.name, counted);
    }
    Ok(limits.write(file)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_runs() {
        for path in &PATHS {
            (path.run)(64);
        }
    }

    #[test]
    fn every_path_has_a_limit() {
        let limits = Limits::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/limits.txt"))).unwrap();
        for path in &PATHS {
            assert!(limits.of(path.name).is_ok(), "{}", path.name);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        assert!(matches!(run("flying", "1"), Err(Failure::UnknownPath(_))));
        assert!(matches!(run("wire", "many"), Err(Failure::Usage)));
    }
}
