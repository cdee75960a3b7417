//! The `weir` program: a trigger and data-acquisition system, from detector links to checked files.
//!
//! [`cli`] is what a user types; [`run_command`] does it. `weir run` conducts a run from one process or many: the parent
//! runs `conductor`, a child runs `node`, and both drive components with `host`.
#![forbid(unsafe_code)]

mod assembly;
mod bench;
mod calibration;
mod children;
pub mod cli;
pub mod commands;
mod conductor;
mod cpu;
mod host;
mod human;
mod introduction;
pub mod lossy;
mod machine;
mod node;
mod observer;
mod open_files;
pub mod progress;
mod restarts;
mod run;
mod run_number;
mod scratch;
mod simulation;
mod study;
pub mod summary;
pub mod table;

use std::ffi::OsString;
use std::io::Write;
use std::sync::Arc;

use cli::{Command, Exit};

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
        Command::Check(args) => commands::on_standard_streams(|out, err| commands::check(&args, out, err)),
        Command::Schema => commands::on_standard_streams(|out, _| commands::schema(out)),
        Command::Init(args) => commands::on_standard_streams(|out, err| commands::init(&args, out, err)),
        Command::File(command) => commands::on_standard_streams(|out, err| commands::file(&command, out, err)),
        Command::Calibrate(args) => calibration::calibrate(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Sim(args) => simulation::sim(&args),
        Command::Study(args) => study::study(&args),
        Command::Node(args) => node::main(&args),
        Command::Pt => commands::pt(),
        Command::BenchPart(part) => bench::part(&part),
    }
}

/// A write beyond `ulimit -f` is then an error as on a full disk, not a signal that ends the process.
fn outlive_limits_of_file_size() -> std::io::Result<()> {
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).map(drop)
}

/// A line on the standard error; what nobody reads is dropped.
fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
