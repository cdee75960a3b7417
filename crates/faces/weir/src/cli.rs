//! The command line of `weir` (DESIGN §8): commands, options, help texts, exit statuses.

mod bench;

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use configuration::{Interval, Partition};
use simulator::swarm::LEVELS;

pub use bench::{
    BenchArgs, BenchBuilding, BenchIdle, BenchLink, BenchPart, BenchPayload, BenchSide, BenchTalk, BenchTransport,
};

/// How the program ends (DESIGN §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All is well.
    Well = 0,
    /// Wrong usage or configuration, or a file with problems.
    Wrong = 1,
    /// The command could not start, or could not write its results.
    NotStarted = 2,
    /// The run ended with a residual, or was aborted.
    Aborted = 3,
    /// The run ended in order and with every event accounted for, but not all that was accepted is whole in the files.
    Degraded = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Takes data from detector links to checked files.
#[derive(Debug, Parser)]
#[command(
    name = "weir",
    version,
    about = "A trigger and data-acquisition system: from detector links to checked files",
    long_about = "Weir is a trigger and data-acquisition system: it reads out detector links, selects events in two trigger \
                  levels, builds them, filters them and records them, with nothing lost and everything accounted for.\n\n\
                  A TOML file describes a partition: which links, triggers, builders and recorders there are.",
    after_help = ROOT_EXAMPLES,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take data: run a whole partition on this machine
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Judge a configuration: is it right, and if not, what is wrong where
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Print every key of a configuration with its meaning, as JSON schema
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
    /// Write a configuration to start from, with the data that it reads
    #[command(after_help = INIT_EXAMPLES)]
    Init(InitArgs),
    /// Look into RAW files, check them, make torn ones whole
    #[command(subcommand, after_help = FILE_EXAMPLES)]
    File(FileCommand),
    /// Simulate a partition in virtual time, or search drawn partitions for faults that they do not survive
    #[command(after_help = SIM_EXAMPLES)]
    Sim(SimArgs),
    /// Measure what inputs cost on this machine, for simulations of it
    #[command(after_help = CALIBRATE_EXAMPLES)]
    Calibrate(CalibrateArgs),
    /// Measure the system beside the bare machine
    #[command(after_help = bench::EXAMPLES)]
    Bench(BenchArgs),
    /// Measure a figure or table: data, SVG and HTML
    #[command(after_help = STUDY_EXAMPLES)]
    Study(StudyArgs),
    /// Run one application of a partition; `weir run --processes` starts it
    #[command(hide = true)]
    Node(NodeArgs),
    /// Decide on built events; an event-filter daemon starts it
    #[command(hide = true)]
    Pt,
    /// Be a process of a benchmark; `weir bench` starts it
    #[command(subcommand, hide = true)]
    BenchPart(BenchPart),
}

/// `weir run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The configuration file of the partition
    pub config: PathBuf,
    /// When the run ends.
    #[command(flatten)]
    pub limits: Limits,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Write the summary of the run to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Give every application a process of its own
    #[arg(long)]
    pub processes: bool,
}

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
    /// Draw faults of this level only: 0 none, 1 of the network, 2 restarts, 3 deaths and forced ends, 4 one crash that loses nothing, 5
    /// several crashes that have to do with one another
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

/// `weir calibrate`.
#[derive(Clone, Debug, Args)]
pub struct CalibrateArgs {
    /// A configuration file: costs within one process are measured in this partition, not in built-in ones
    pub config: Option<PathBuf>,
    /// Write the costs to this file, not to the standard output
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How long to measure in all, about, in seconds
    #[arg(long, value_name = "S", default_value_t = 18.0, value_parser = bench::seconds)]
    pub seconds: f64,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// `--events` and `--duration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct Limits {
    /// End the run after N level-1 events, such as 10000, 10k or 1M; replaces all limits in the file
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = events)]
    pub events: Option<u64>,
    /// End the run after this time, such as 10s or "250 ms"; replaces all limits in the file
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub duration: Option<Interval>,
}

impl Limits {
    /// Puts these limits in the place of those in the configuration; without any, the configuration keeps its own.
    pub fn apply(&self, partition: &mut Partition) {
        if *self != Self::default() {
            partition.run.events = self.events;
            partition.run.duration = self.duration;
        }
    }
}

/// `--set key=value`, any number of times.
#[derive(Clone, Debug, Default, Args)]
pub struct Overrides {
    /// Change a key of the configuration: a TOML value, else a bare string; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// `weir check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The configuration file of the partition
    pub config: PathBuf,
    /// When the run would end.
    #[command(flatten)]
    pub limits: Limits,
    /// Judge a run with a process for each application
    #[arg(long)]
    pub processes: bool,
    /// Judge the text alone, for a run on another machine: not its files, cores, memory and disk
    #[arg(long)]
    pub text_only: bool,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// `weir init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// The name of the template
    #[arg(required_unless_present = "list")]
    pub template: Option<String>,
    /// Where to write it; TEMPLATE.toml by default, `-` for the standard output
    pub file: Option<PathBuf>,
    /// List the templates
    #[arg(long, conflicts_with_all = ["template", "file"])]
    pub list: bool,
}

/// `weir file`.
#[derive(Clone, Debug, Subcommand)]
pub enum FileCommand {
    /// One line for each file: version, run, stream, events, size
    Ls(FilesArgs),
    /// The content of files in words: records, events, fragments
    Dump(DumpArgs),
    /// Check files completely: records, events, fragments, checksums, counts, what is there twice; say what nothing verifies
    Check(FileCheckArgs),
    /// Write valid files with all whole events of damaged or torn ones, which stay as they are; say what was lost
    Recover(FileRecoverArgs),
}

/// The files of a command.
#[derive(Clone, Debug, Args)]
pub struct FilesArgs {
    /// RAW files
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// `weir file dump`.
#[derive(Clone, Debug, Args)]
pub struct DumpArgs {
    /// The files.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Pass over the first N events
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: u64,
    /// Show at most N events of each file
    #[arg(long, value_name = "N")]
    pub events: Option<u64>,
    /// Show events without their fragments
    #[arg(long, conflicts_with = "data")]
    pub headers: bool,
    /// Show the data words of fragments too
    #[arg(long)]
    pub data: bool,
}

/// `weir file recover`.
#[derive(Clone, Debug, Args)]
pub struct FileRecoverArgs {
    /// The files.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Write the valid file here, not to NAME.recovered.data beside the damaged one; for one FILE
    #[arg(long, value_name = "OUTPUT")]
    pub output: Option<PathBuf>,
}

/// `weir file check`.
#[derive(Clone, Debug, Args)]
pub struct FileCheckArgs {
    /// The files.
    #[command(flatten)]
    pub files: FilesArgs,
    /// Show at most N problems of each file; further ones are counted
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub problems: usize,
}

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

/// A number of events above 0, with a decimal prefix behind it or without.
fn events(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a number of events above 0, such as 10000, 10k or 1M, found {text:?}");
    let (digits, factor) = match text.trim().char_indices().last() {
        Some((index, 'k' | 'K')) => (&text.trim()[..index], 1000),
        Some((index, 'M')) => (&text.trim()[..index], 1_000_000),
        Some((index, 'G')) => (&text.trim()[..index], 1_000_000_000),
        _ => (text.trim(), 1),
    };
    let number = digits.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    number.filter(|number| *number > 0).ok_or_else(expected)
}

/// A time above 0.
fn duration(text: &str) -> Result<Interval, String> {
    let duration: Interval = text.parse()?;
    if duration == Interval::default() { Err("expected a time above 0".to_owned()) } else { Ok(duration) }
}

/// `weir node`.
#[derive(Clone, Debug, Args)]
pub struct NodeArgs {
    /// Where run control listens
    #[arg(long, value_name = "ENDPOINT")]
    pub join: String,
    /// Which application of the partition this is, such as sfi-1
    #[arg(long)]
    pub name: String,
    /// An address of a further network port; may be given several times
    #[arg(long, value_name = "IP")]
    pub port: Vec<IpAddr>,
}

/// Reads a command line, the name of the program first.
///
/// # Errors
///
/// What was asked for is done (`--help`, `--version`), or the usage is wrong; the text for it is printed already.
pub fn parse<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> Result<Cli, Exit> {
    Cli::try_parse_from(arguments).map_err(|error| {
        // Nobody is left to be told if this fails.
        let _ = error.print();
        exit_of(&error)
    })
}

fn exit_of(error: &clap::Error) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Well,
        _ => Exit::Wrong,
    }
}

const ROOT_EXAMPLES: &str = "\
First steps:
  weir init quickstart               write quickstart.toml and the data that it reads
  weir check quickstart.toml         is it right?
  weir run quickstart.toml           take data; files go to the folder out
  weir file check out/*.data         check every word of the files

Exit status: 0 well; 1 wrong usage or configuration, or a file with problems; 2 could not
start; 3 the run ended with a residual or was aborted; 4 the run was degraded: accepted events
were lost or are incomplete. `weir COMMAND --help` shows examples of each.";

const RUN_EXAMPLES: &str = "\
Examples:
  weir run quickstart.toml
  weir run quickstart.toml --events 100000 --summary summary.json
  weir run quickstart.toml --duration 10s --processes
  weir run quickstart.toml --set sfi.count=3 --set 'output.directory=\"/data/test\"'
  weir run replay.toml --set 'input.files=[\"my.raw\"]'

The first SIGINT (Ctrl-C) or SIGTERM stops the run in the order of the data, so that nothing is
lost; a second one forces the stop. Files are valid in both cases. Progress goes to the standard
error, the final table to the standard output.

With --processes an application that dies ends the run in order; with processes.on_loss = \"restart\"
it is started again and the run goes on, where its role allows that. What was lost is counted.

Exit status: 0 well; 1 wrong usage or configuration; 2 could not start; 3 the run ended with a
residual (events unaccounted for) or was aborted; 4 it was degraded: accepted events were lost,
are incomplete, failed in the event filter or were decided without all their data, more than
run.tolerate allows. The last line says why.";

const CALIBRATE_EXAMPLES: &str = "\
Examples:
  weir calibrate --output costs.toml
  weir sim event-builder.toml --costs costs.toml
  weir calibrate mine.toml --output costs.toml --seconds 30

Short live runs are metered: what each kind of input costs each component, and what the driver around
them costs. A machine that is busy otherwise makes costs larger; what is interrupted is left out.

Exit status: 0 well; 1 wrong usage or configuration; 2 could not measure or write.";

const SIM_EXAMPLES: &str = "\
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

const CHECK_EXAMPLES: &str = "\
Examples:
  weir check quickstart.toml
  weir check quickstart.toml --set ros.count=16
  weir check farm.toml --text-only   for a run on another machine

First the text is judged, then whether this machine can run it: its files, programs, cores, memory
and disk. `weir run` judges the same before it starts. A problem is printed as file:line:column: key:
what was expected; what would run, but not as meant, is a warning. Exit status: 0 well; 1 wrong.";

const SCHEMA_EXAMPLES: &str = "\
Examples:
  weir schema > weir.schema.json     for editors that complete and check TOML files
  weir schema | less                 to read";

const INIT_EXAMPLES: &str = "\
Examples:
  weir init --list
  weir init quickstart               writes quickstart.toml
  weir init replay test/first.toml
  weir init event-builder -          writes to the standard output

Nothing is overwritten. Data that the template reads are written to the folder data beside it.";

const FILE_EXAMPLES: &str = "\
Examples:
  weir file ls out/*.data
  weir file dump --events 1 out/*.data | head -50
  weir file check out/*.data
  weir file recover out/*.writing    writes out/*.recovered.data and overwrites nothing

No file is changed. A checksum covers the data of an event, not its header: of that, check compares what the
fragments or the file say too. An event that is in two files of a stream is a problem.
Exit status: 0 well; 1 a file has problems, or cannot be read or recovered; 4 recovered, but events are lost.";

const STUDY_EXAMPLES: &str = "\
Examples:
  weir study --list
  weir study selection --sample data/zee_mu0.parquet --output results
  weir study selection --config trigger.toml --decisions decisions.json
  weir study selection --sample my.parquet --set menu.cuts.r_eta_min_permil=920

Every event that level 1 accepted goes once through the whole chain. The tables go to the standard
output, progress to the standard error. The HTML page holds the figure and all tables.

Exit status: 0 well; 1 wrong usage or configuration; 2 a sample cannot be read, a result cannot be
written, or the run could not start; 3 the run ended with a residual.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn run_args(options: &[&str]) -> RunArgs {
        let line = ["weir", "run", "c.toml"].iter().chain(options);
        match Cli::try_parse_from(line).unwrap().command {
            Command::Run(args) => args,
            other => panic!("{other:?}"),
        }
    }

    fn limited(options: &[&str]) -> (Option<u64>, Option<Interval>) {
        let mut partition = Partition::default();
        partition.run.events = Some(1000);
        partition.run.duration = Some(Interval::from_ms(5000));
        run_args(options).limits.apply(&mut partition);
        (partition.run.events, partition.run.duration)
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn one_limit_on_the_command_line_replaces_both_in_the_file() {
        let duration = Some(Interval::from_ms(10_000));
        assert_eq!(limited(&[]), (Some(1000), Some(Interval::from_ms(5000))));
        assert_eq!(limited(&["--events", "5"]), (Some(5), None));
        assert_eq!(limited(&["--duration", "10s"]), (None, duration));
        for (text, events) in [("10k", 10_000), ("10 k", 10_000), ("1M", 1_000_000), ("2G", 2_000_000_000)] {
            assert_eq!(limited(&["--events", text]), (Some(events), None), "{text}");
        }
        assert_eq!(limited(&["--duration", "10 s", "--events=7"]), (Some(7), duration));
    }

    #[test]
    fn the_options_of_run_are_read() {
        let args = run_args(&["--set", "sfi.count=2", "--set", "run.seed=7", "--summary", "s.json", "--processes"]);
        assert_eq!(args.overrides.set, ["sfi.count=2", "run.seed=7"]);
        assert_eq!(args.summary.unwrap().to_str(), Some("s.json"));
        assert!(args.processes);
    }

    #[test]
    fn wrong_usage_is_1_and_help_is_0() {
        let wrong: &[&[&str]] = &[
            &["weir"],
            &["weir", "fly"],
            &["weir", "run"],
            &["weir", "run", "c.toml", "--events", "0"],
            &["weir", "run", "c.toml", "--events", "-5"],
            &["weir", "run", "c.toml", "--events", "k"],
            &["weir", "run", "c.toml", "--events", "1e6"],
            &["weir", "run", "c.toml", "--events", "99999999999999G"],
            &["weir", "run", "c.toml", "--duration", "10"],
            &["weir", "file", "check"],
            &["weir", "init"],
            &["weir", "bench", "x", "--fragment", "1 TB"],
            &["weir", "bench", "x", "--seconds", "NaN"],
            &["weir", "bench", "x", "--sources", "257"],
            &["weir", "node", "--name", "sfi-1"],
        ];
        for line in wrong {
            assert_eq!(exit_of(&Cli::try_parse_from(line.iter()).unwrap_err()), Exit::Wrong, "{line:?}");
        }
        for line in [&["weir", "--help"], &["weir", "--version"], &["weir", "help"]] {
            assert_eq!(exit_of(&Cli::try_parse_from(line.iter()).unwrap_err()), Exit::Well, "{line:?}");
        }
    }
}
