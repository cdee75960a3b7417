//! `weir trace`: what the trace files of a partition say (`docs/trace.md`).
#![forbid(unsafe_code)]

mod costs;
mod distribution;
mod error;
mod export;
mod merged;
mod record;
mod sequence;
mod svg;

pub use costs::Costs;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use terminal::{Exit, complain, on_standard_streams, quiet};

use error::TracesError;

/// `weir trace`.
#[derive(Clone, Debug, Subcommand)]
pub enum TraceCommand {
    /// Begin traces in all processes of a partition that runs, and end them
    Record(RecordArgs),
    /// Draw who does what when, and what is sent, as SVG
    Sequence(SequenceArgs),
    /// Show how long sections, messages or the ways of events take
    Distribution(DistributionArgs),
    /// Write JSON for Perfetto and the viewer of Chrome
    Export(ExportArgs),
    /// Measure what stamps and the scheduler cost on this machine
    Costs,
}

/// `weir trace record`.
#[derive(Clone, Debug, Args)]
pub struct RecordArgs {
    /// The process id of `weir run` or `weir serve`
    pub pid: i32,
    /// For how many seconds
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub seconds: f64,
}

/// `weir trace sequence`.
#[derive(Clone, Debug, Args)]
pub struct SequenceArgs {
    /// Trace files of one partition
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Draw the way of this event; by default one from the middle
    #[arg(long, value_name = "N")]
    pub event: Option<u64>,
    /// Begin so many microseconds behind the first stamp, and draw whatever happens
    #[arg(long, value_name = "US", conflicts_with = "event")]
    pub from: Option<u64>,
    /// Draw so many microseconds; of an event, until its end
    #[arg(long, value_name = "US")]
    pub length: Option<u64>,
    /// The SVG file
    #[arg(long, short, value_name = "SVG", default_value = "sequence.svg")]
    pub output: PathBuf,
}

/// `weir trace distribution`.
#[derive(Clone, Debug, Args)]
pub struct DistributionArgs {
    /// Trace files of one partition
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How long this section takes; without it a table shows all
    #[arg(long, value_name = "NAME", conflicts_with_all = ["message", "begin"])]
    pub section: Option<String>,
    /// How long a message takes from being sent until its section begins
    #[arg(long, value_name = "NAME", conflicts_with = "begin")]
    pub message: Option<String>,
    /// How long an event takes from the first beginning of this section
    #[arg(long, value_name = "NAME", requires = "end")]
    pub begin: Option<String>,
    /// to the next beginning of that one
    #[arg(long, value_name = "NAME", requires = "begin")]
    pub end: Option<String>,
    /// Draw it as SVG, too
    #[arg(long, value_name = "SVG")]
    pub svg: Option<PathBuf>,
}

/// `weir trace export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// Trace files of one partition
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The JSON file
    #[arg(long, short, value_name = "JSON", default_value = "trace.json")]
    pub output: PathBuf,
}

/// Does what the command says.
pub fn trace(command: &TraceCommand) -> Exit {
    let done = match command {
        TraceCommand::Record(args) => record::record(args),
        TraceCommand::Sequence(args) => sequence::sequence(args),
        TraceCommand::Distribution(args) => distribution::distribution(args),
        TraceCommand::Export(args) => export::export(args),
        TraceCommand::Costs => costs::costs(),
    };
    match done {
        Ok(text) => on_standard_streams(|out, _| quiet(write!(out, "{text}")).map(|()| Exit::Well)),
        Err(error) => {
            complain(&format!("weir trace: {error}"));
            Exit::Wrong
        }
    }
}

/// What a command prints, or why it cannot.
type Done = Result<String, TracesError>;

/// How the help of the command ends.
pub const EXAMPLES: &str = "\
Examples:
  weir run quickstart.toml --trace traces
  weir trace distribution traces/*.weirtrace
  weir trace distribution traces/*.weirtrace --section event-request --svg request.svg
  weir trace distribution traces/*.weirtrace --begin l1-accept --end record
  weir trace sequence traces/*.weirtrace --event 1000 -o event.svg
  weir trace export traces/*.weirtrace -o trace.json    for ui.perfetto.dev
  weir trace record 4711 --seconds 5    of a partition that runs

Exit status: 0 well; 1 wrong usage, or a file that cannot be read or written.";
