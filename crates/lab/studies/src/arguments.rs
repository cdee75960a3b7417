//! The command line of `weir study`.

use std::path::PathBuf;

use clap::Args;
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
    /// The configuration under study; the example trigger.toml by default
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

/// The end of its help.
pub const EXAMPLES: &str = "\
Examples:
  weir study --list
  weir study selection --sample data/zee_mu0.parquet --output results
  weir study selection --config trigger.toml --decisions decisions.json
  weir study selection --sample my.parquet --set menu.cuts.r_eta_min_permil=920

Every event that level 1 accepted goes once through the whole chain. The tables go to the standard
output, progress to the standard error. The HTML page holds the figure and all tables.

Exit status: 0 well; 1 wrong usage or configuration; 2 a sample cannot be read, a result cannot be
written, or the run could not start; 3 the run ended with a residual.";
