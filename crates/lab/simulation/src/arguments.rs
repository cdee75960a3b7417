//! The command line of `weir sim`.

use std::path::PathBuf;

use clap::Args;
use swarm::LEVELS;
use terminal::{Limits, Overrides};

/// `weir sim`.
#[derive(Clone, Debug, Args)]
pub struct SimArgs {
    /// The configuration file of the partition; without it partitions are drawn from seeds
    #[arg(conflicts_with = "swarm")]
    pub config: Option<PathBuf>,
    /// When the run ends.
    #[command(flatten)]
    pub limits: Limits,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Seed of the run in the place of run.seed; without a configuration, the first seed to draw from
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Draw faults of this level: 0 none, 1 network, 2 restarts, 3 deaths and forced ends, 4 a crash that loses
    /// nothing, 5 related crashes
    #[arg(long, value_name = "0-5", conflicts_with = "config", value_parser = clap::value_parser!(u32).range(..i64::from(LEVELS)))]
    pub level: Option<u32>,
    /// Write the summary of the run to this file, as JSON
    #[arg(long, value_name = "FILE", requires = "config")]
    pub summary: Option<PathBuf>,
    /// Write every message to this file as it arrives; those of the least plan that fails go to FILE.least
    #[arg(long, value_name = "FILE", conflicts_with = "swarm")]
    pub trace: Option<PathBuf>,
    /// Use the costs that `weir calibrate` has written to this file
    #[arg(long, value_name = "FILE", requires = "config")]
    pub costs: Option<PathBuf>,
    /// Set the prediction beside the summary of a live run
    #[arg(long, value_name = "SUMMARY", requires = "config")]
    pub compare: Option<PathBuf>,
    /// Draw this many partitions with their faults, run and check them all
    #[arg(long, value_name = "N", required_unless_present_any = ["config", "seed"])]
    pub swarm: Option<u64>,
}

/// The end of its help.
pub const EXAMPLES: &str = "\
Examples:
  weir sim quickstart.toml
  weir sim scenarios/eb2007-third.toml --set sfi.count=15
  weir sim scenarios/faults/restart.toml --set simulation.fault.0.application=dfm-1
  weir sim event-builder.toml --costs costs.toml --compare summary.json
  weir sim --swarm 2000 --seed 1
  weir sim --seed 17 --trace messages.txt

A simulation takes the configuration of a run; its table [simulation] says what hosts and networks
there are, and what goes wrong. Without a configuration, partitions and what goes wrong in them are drawn from seeds; a
failing seed is printed with the least that still fails.

Exit status: 0 well; 1 wrong usage or configuration; 2 could not start; 3 the run ended with a
residual or was aborted, or a seed failed.";
