//! The command line of `weir study`.

use std::path::PathBuf;

use ::semaphores::Family;
use clap::{Args, Subcommand, ValueEnum};
use terminal::Overrides;

/// `weir study`.
#[derive(Clone, Debug, Args)]
pub struct StudyArgs {
    /// The name of the study
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// List the studies
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// The configuration under study: by default the example trigger.toml, or what the study brings along
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// A sample, with its description beside it; may be given several times. By default those of input.files
    #[arg(long, value_name = "FILE.parquet")]
    pub sample: Vec<PathBuf>,
    /// Write the decisions on every event to this file, as JSON
    #[arg(long, value_name = "OUT.json")]
    pub decisions: Option<PathBuf>,
    /// Write NAME.json, NAME.svg and NAME.html into this directory
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// A process that a study starts.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum StudyPart {
    /// Takes turns with the process that has made the semaphores of its standard input
    Pong {
        /// What they are
        kind: SemaphoreKind,
        /// Where it runs
        core: usize,
        /// Before normal processes
        #[arg(long)]
        real_time: bool,
    },
}

impl StudyPart {
    /// As it is written in a command line.
    pub(crate) fn to_arguments(self) -> Vec<String> {
        let Self::Pong { kind, core, real_time } = self;
        let kind = kind.to_possible_value().expect("no kind is skipped");
        let words = ["pong".to_owned(), kind.get_name().to_owned(), core.to_string()];
        words.into_iter().chain(real_time.then(|| "--real-time".to_owned())).collect()
    }
}

/// Kinds of semaphores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SemaphoreKind {
    SystemV,
    Posix,
    Futex,
}

impl From<Family> for SemaphoreKind {
    fn from(kind: Family) -> Self {
        match kind {
            Family::SystemV => Self::SystemV,
            Family::Posix => Self::Posix,
            Family::Futex => Self::Futex,
        }
    }
}

impl From<SemaphoreKind> for Family {
    fn from(kind: SemaphoreKind) -> Self {
        match kind {
            SemaphoreKind::SystemV => Self::SystemV,
            SemaphoreKind::Posix => Self::Posix,
            SemaphoreKind::Futex => Self::Futex,
        }
    }
}

/// The end of its help.
pub const EXAMPLES: &str = "\
Examples:
  weir study --list
  weir study selection --sample data/zee_mu0.parquet --output results
  weir study selection --config trigger.toml --decisions decisions.json
  weir study selection --sample my.parquet --set menu.cuts.r_eta_min_permil=920
  weir study daq1999 --output results
  weir study os1998 --output results && weir run my.toml --processes --set @results/os1998.toml

The selection: every event that level 1 accepted goes once through the whole chain. The tables
go to the standard output, progress to the standard error. The HTML page holds the figure and
all tables.

Exit status: 0 well; 1 wrong usage or configuration; 2 a sample cannot be read, a result cannot be
written, or the run could not start; 3 the run ended with a residual.";
