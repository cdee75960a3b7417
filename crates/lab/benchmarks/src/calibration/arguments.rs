//! The command line of `weir calibrate`.

use std::path::PathBuf;

use clap::Args;
use terminal::Overrides;

/// `weir calibrate`.
#[derive(Clone, Debug, Args)]
pub struct CalibrateArgs {
    /// A configuration file: costs within one process are measured in this partition, not in built-in ones
    pub config: Option<PathBuf>,
    /// Write the costs to this file, not to the standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How long to measure in all, about, in seconds
    #[arg(long, value_name = "S", default_value_t = 18.0, value_parser = seconds)]
    pub seconds: f64,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// How long a measurement may take.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected a number from 0.01 to 3600".to_owned())
}

/// The end of its help.
pub const EXAMPLES: &str = "\
Examples:
  weir calibrate --output costs.toml
  weir sim event-builder.toml --costs costs.toml
  weir calibrate mine.toml --output costs.toml --seconds 30

Short live runs are metered: what each kind of input costs each component, and what the driver around
them costs. A machine that is busy otherwise makes costs larger; what is interrupted is left out.

Exit status: 0 well; 1 wrong usage or configuration; 2 could not measure or write.";
