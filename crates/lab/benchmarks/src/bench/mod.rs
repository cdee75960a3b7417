//! `weir bench`: system benchmarks, each in alternation with the bare machine doing the same work.

mod accretion;
mod agents;
mod agreement;
mod arguments;
mod credits;
mod crossing;
mod datagrams;
mod event_builder;
mod exchange;
mod filter;
mod grouping;
mod handover;
mod hops;
mod level2;
mod link;
mod links;
pub(crate) mod loopback;
mod losses;
mod memory;
mod monitoring;
mod network;
mod paired;
mod points;
mod prediction;
mod push_pull;
mod readout_crate;
mod reference;
mod ring;
mod ros;
mod served;
mod service;
mod sfi;
mod shaping;
mod simulation;
mod sources;
mod spread;
mod start;
mod touch;
mod window;

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use configuration::{ConfigurationError, RequestCredits};
use control::accounting::Accounting;
use processing::TasksError;
use transport::error::OsError;

use crate::calibration::CalibrationError;
use ::simulation::SimulationError;
use paired::to_json;
use partition::{Outcome, StartError};
use reference::ReferenceError;
use terminal::on_standard_streams;
use terminal::{ConductError, Exit};

pub use arguments::{BenchArgs, BenchPart, EXAMPLES};

/// Runs a benchmark and prints its result.
pub fn bench(args: &BenchArgs) -> Exit {
    let Some(name) = &args.name else { return print(LIST) };
    let mut is_off = false;
    let measured = match name.as_str() {
        "event-builder" => event_builder::measure(args).map(|found| (to_json(&found), found.to_text())),
        "memory" => memory::measure(args).map(|found| (to_json(&found), found.to_text())),
        "sources" => sources::measure(args).map(|found| (to_json(&found), found.to_text())),
        "ros" => ros::measure(args).map(|found| (to_json(&found), found.to_text())),
        "sfi" => sfi::measure(args).map(|found| (to_json(&found), found.to_text())),
        "transport" => link::measure(args).map(|found| (to_json(&found), found.to_text())),
        "links" => links::measure(args).map(|found| (to_json(&found), found.to_text())),
        "push-pull" => push_pull::measure(args).map(|found| (to_json(&found), found.to_text())),
        "window" => window::measure(args).map(|found| (to_json(&found), found.to_text())),
        "accretion" => accretion::measure(args).map(|found| (to_json(&found), found.to_text())),
        "grouping" => grouping::measure(args).map(|found| (to_json(&found), found.to_text())),
        "agents" => agents::measure(args).map(|found| (to_json(&found), found.to_text())),
        "monitoring" => monitoring::measure(args).map(|found| (to_json(&found), found.to_text())),
        "start" => start::measure(args).map(|found| (to_json(&found), found.to_text())),
        "reference" => agreement::measure(args).map(|found| {
            is_off = found.is_off();
            (to_json(&found), found.to_text())
        }),
        "shaping" => shaping::measure(args).map(|found| {
            is_off = found.is_off();
            (to_json(&found), found.to_text())
        }),
        "credits" => credits::measure(args).map(|found| (to_json(&found), found.to_text())),
        "losses" => losses::measure(args).map(|found| (to_json(&found), found.to_text())),
        "level2" => level2::measure(args).map(|found| (to_json(&found), found.to_text())),
        "prediction" => prediction::measure(args).map(|found| {
            is_off = found.is_off();
            (to_json(&found), found.to_text())
        }),
        "simulation" => {
            simulation::measure(args).map(|found| (to_json(&found), found.to_text_as(["simulator", "queue"])))
        }
        "crate" => readout_crate::measure(args).map(|found| (to_json(&found), found.to_text())),
        "filter" => filter::measure(args).map(|found| (to_json(&found), found.to_text())),
        _ => {
            terminal::complain(&format!("weir: no benchmark is called {name}; `weir bench --list` names all"));
            return Exit::Wrong;
        }
    };
    match measured {
        Ok((json, text)) => match print(if args.json { &json } else { &text }) {
            Exit::Well if is_off => Exit::Wrong,
            exit => exit,
        },
        Err(error) => {
            terminal::complain(&format!("weir bench {name}: {error}"));
            Exit::NotStarted
        }
    }
}

/// A process that a benchmark started.
pub fn part(part: &BenchPart) -> Exit {
    let done = match *part {
        BenchPart::Source { builder, id, fragment_bytes, batch, touched } => {
            let arguments = reference::SourceArguments { builder, id, fragment_bytes, batch, touched };
            reference::source_main(&arguments).map_err(|error| error.to_string())
        }
        BenchPart::Datagrams { builder, id, fragment_bytes, datagram_bytes, window, grouped, touched } => {
            let arguments =
                datagrams::DatagramArguments { builder, id, fragment_bytes, datagram_bytes, window, grouped, touched };
            datagrams::source_main(&arguments).map_err(|error| error.to_string())
        }
        BenchPart::Ring { id, fragment_bytes, slots, touched } => {
            let arguments = ring::RingArguments { id, fragment_bytes, slots, touched };
            ring::source_main(&arguments).map_err(|error| error.to_string())
        }
        BenchPart::Replier { client, id, request_bytes, reply_bytes, idle } => {
            let arguments = exchange::ReplierArguments { client, id, request_bytes, reply_bytes, idle };
            exchange::replier_main(&arguments).map_err(|error| error.to_string())
        }
        BenchPart::Client { server, id, request_bytes, reply_bytes, in_flight, idle, large_bytes, large_part } => {
            let large = exchange::LargeReplies { bytes: large_bytes, part: large_part };
            let talk = service::ServiceTalk { request_bytes, reply_bytes, large, in_flight, idle };
            let arguments = service::ClientArguments { server, id, talk };
            service::client_main(&arguments).map_err(|error| error.to_string())
        }
        BenchPart::Link { link, talk, side, frame_bytes, window } => {
            let arguments = link::LinkArguments { link, talk, frame_bytes, window };
            link::far_main(&arguments, side).map_err(|error| error.to_string())
        }
        BenchPart::InNetwork {
            parent,
            sources,
            fragment_bytes,
            datagram_bytes,
            seconds,
            outstanding_requests,
            adaptive,
        } => {
            let credits = if adaptive { RequestCredits::Adaptive } else { RequestCredits::Fixed };
            let asking = outstanding_requests
                .map(|outstanding_requests| event_builder::Asking { credits, outstanding_requests });
            let building = event_builder::InNetwork { sources, fragment_bytes, datagram_bytes, asking, seconds };
            let said = network::main(parent, building);
            said.map(|said| _ = print(&said)).map_err(|error| error.to_string())
        }
        BenchPart::Free { ref folder, sources, bytes, every: every_ns } => {
            let arguments = links::FreeArguments { folder: folder.clone(), sources, bytes, every_ns };
            links::free_main(&arguments).map_err(|error| error.to_string())
        }
        BenchPart::Farm { ref socket } => emulation::farm::main(socket).map_err(|error| error.to_string()),
        BenchPart::Launcher { ref farm, ref arguments } => {
            emulation::launcher::main(farm, arguments).map_err(|error| error.to_string())
        }
        BenchPart::Receiver => handover::receiver_main().map_err(|error| error.to_string()),
        BenchPart::Task => filter::task_main().map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => Exit::Well,
        Err(error) => {
            terminal::complain(&format!("weir bench-part: {error}"));
            Exit::NotStarted
        }
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error(transparent)]
    Start(#[from] ConductError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error(transparent)]
    Tasks(#[from] TasksError),
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    #[error(transparent)]
    Os(#[from] OsError),
    #[error("interrupted")]
    Interrupted,
    #[error("the run was not sound: residual {residual}, {incomplete} incomplete events, {forced} forced {reasons:?}")]
    Unsound { residual: u64, incomplete: u64, forced: u64, reasons: Vec<String> },
    #[error(
        "--transport {transport} with --payload {payload}: shared memory moves no bytes, so expected handles or touched with shm, plain or touched with the others"
    )]
    Payload { transport: &'static str, payload: &'static str },
    #[error("the data sum up to {sum}: expected at least {fragments} times {each}")]
    Data { sum: u64, each: u64, fragments: u64 },
    #[error("the processing task {0}")]
    Task(String),
    #[error(
        "expected --against PROGRAM, which takes SOURCES FRAGMENT_BYTES SECONDS BATCH EVENTS_HELD and prints \
         {{\"events_per_s\": …, \"cpu_us_per_event\": …}}"
    )]
    NoProgram,
    #[error("{program}: {reason}")]
    Program { program: String, reason: String },
    #[error("no run: {0}")]
    Run(StartError),
    #[error(
        "{prefix} has no include/weir.h: sources are built with an installed Weir: run `make install PREFIX=/some/where`, then \
         `weir bench links --prefix /some/where`"
    )]
    NotInstalled { prefix: String },
    #[error("the program of the source has ended, {status}: {why}")]
    SourceEnded { status: ExitStatus, why: String },
    #[error("the source has sent next to nothing in {PATIENCE:?}")]
    SourceSilent,
    #[error("{dropped} fragments were dropped: a source that sends each number once loses none")]
    Dropped { dropped: u64 },
    #[error("nothing was built in {seconds} s: is the machine busy with something else?")]
    NothingBuilt { seconds: f64 },
    #[error("{books}: expected all in slices, late or left")]
    Chunks { books: String },
    #[error("a network that drops datagrams {0}")]
    Network(String),
    #[error("weir serve: {0}")]
    NotServed(String),
    #[error("{what}: {error}")]
    System { what: &'static str, error: io::Error },
}

/// The account of a run in which nothing went wrong, and that nobody cut short: no other run measures anything.
fn sound(conducted: &Outcome) -> Result<&Accounting, BenchError> {
    if conducted.interrupted {
        return Err(BenchError::Interrupted);
    }
    let account = &conducted.account;
    let Accounting { residual, built_incomplete, level2_incomplete, level2_forced: forced, .. } = *account;
    let incomplete = built_incomplete + level2_incomplete;
    let reasons = &conducted.ending.reasons;
    if residual == 0 && incomplete == 0 && forced == 0 && reasons.is_empty() {
        return Ok(account);
    }
    Err(BenchError::Unsound { residual, incomplete, forced, reasons: reasons.clone() })
}

fn print(text: &str) -> Exit {
    on_standard_streams(|out, _| writeln!(out, "{text}").map(|()| Exit::Well))
}

/// How long one side may keep the other waiting: a machine with other work may keep it from its processor for seconds.
const PATIENCE: Duration = Duration::from_secs(300);

const LIST: &str = "\
event-builder  source processes, one building process, the complete protocol, over TCP, UDP or shared memory
transport      frames of 64 B to 1 MB through one link of each kind, one way and there and back
links          programs of detectors in C and Python that push fragments of 1 kB, over shared memory and TCP; slices of time
push-pull      eight sources and eight builders, by requests and by pushing, fragments of 48 B to 64 kB
grouping       pushed events in groups of 1 to 64, fragments of 48 B to 9 kB, over TCP or UDP
shaping        rate division at a link of 50 MB/s that four sources share, fragments of 1 to 100 kB; 1 if less than 90 % of it is used
window         event building in datagrams with acknowledgements and without, fragments of 1 to 37.5 kB
accretion      read-out systems with 2 to 12 links beside one with as many data
losses         event building by datagrams of 1,472 bytes of which the network drops 0 to 30 %, in network namespaces; needs root
credits        fixed and adaptive credits of requests where the output port of a switch overflows, in network namespaces; needs root
ros            one read-out system with twelve ROBs, asked by several L2PUs and SFIs: level 2, building and clears together
sfi            one event builder with light sources: events of 1.5 MB and of 256 bytes
memory         the resident set over ten million small events
sources        the cost of an event per source, from 4 to 1600 sources in one process
level2         a supervisor with sinks in one process; two-step selection with data requests over TCP; one event in flight
simulation     inputs of components in a second of processor time, of the full-size event builder; the event queue alone
crate          a read-out crate of DAQ1999: one ROB, control messages, locating by an EBIF, the crate with SFI, event handler and SFO
filter         small events through one processing task, in Python and in Rust
reference      the bare machine of event building over TCP, beside another program that does the same; 1 if they differ by more than 10 %
start          the start and the stop of examples/full-size.toml in 261 processes, beside as many bare ones
agents         run control of a farm whose hosts are emulated: processor time, boot, start, stop; --agents N --applications N
monitoring     event building under `weir serve` with ten pages open beside the same with none, and processor time; takes a minute
prediction     what `weir sim` says of five partitions, beside live runs of them; ends with 1 if it is off by more than 15 %";
