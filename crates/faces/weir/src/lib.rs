//! The `weir` program: a trigger and data-acquisition system, from detector links to checked files.
//!
//! [`cli`] is what a user types; [`run_command`] does it, with the library `partition` and those of the laboratory.
#![forbid(unsafe_code)]

mod agent;
pub mod cli;
pub mod commands;
mod ctl;
pub mod feed;
mod host;
mod ldaq;
mod loading;
mod node;
mod open_files;
pub mod progress;
mod run;
mod scan;
mod serve;
mod succession;
mod top;
mod tracing;

use std::ffi::OsString;
use std::sync::Arc;

use benchmarks::{bench, calibration};
use cli::Command;
use terminal::{Exit, complain, on_standard_streams};

/// Does what the command line asks for.
pub fn run_command<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> Exit {
    let cli = match cli::parse(arguments) {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    open_files::allow_as_many_as_possible();
    if let Err(error) = outlive_limits_of_file_size() {
        complain(&format!("weir: signals cannot be caught: {error}"));
        return Exit::NotStarted;
    }
    match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Scan(args) => scan::scan(&args),
        Command::Check(args) => on_standard_streams(|out, err| commands::check(&args, out, err)),
        Command::Schema => on_standard_streams(|out, _| commands::schema(out)),
        Command::Init(args) => on_standard_streams(|out, err| commands::init(&args, out, err)),
        Command::File(command) => on_standard_streams(|out, err| commands::file(&command, out, err)),
        Command::Feed(args) => feed::feed(&args),
        Command::Calibrate(args) => calibration::calibrate(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Sim(args) => simulation::sim(&args),
        Command::Study(args) => studies::study(&args),
        Command::Trace(command) => traces::trace(&command),
        Command::Serve(args) => serve::serve(&args),
        Command::Ctl(args) => ctl::ctl(&args),
        Command::Top(args) => top::top(args),
        Command::Runs(args) => on_standard_streams(|out, err| commands::runs(&args, out, err)),
        Command::Node(args) => node::main(&args),
        Command::Agent(args) => agent::main(args),
        Command::Ldaq(args) => ldaq::ldaq(&args),
        Command::Host(args) => host::serve(&args),
        Command::Call(args) => host::call_for_agent(&args),
        Command::Pt => commands::pt(),
        Command::BenchPart(part) => bench::part(&part),
        Command::StudyPart(part) => studies::part(&part),
    }
}

/// A write beyond `ulimit -f` is then an error as on a full disk, not a signal that ends the process.
fn outlive_limits_of_file_size() -> std::io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).map(drop)
}
