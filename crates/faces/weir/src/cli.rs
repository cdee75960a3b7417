//! The command line of `weir` (DESIGN §8): commands, options, help texts, exit statuses.

mod service;

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use benchmarks::{bench, calibration};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use terminal::{Exit, Limits, Overrides};

pub use self::service::{
    CtlArgs, CtlVerb, MessagesArgs, RunsArgs, RunsCommand, SampleArgs, ServeArgs, SoughtArgs, StampsWanted, TopArgs,
};
use crate::feed::{self, FeedArgs};

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
    /// Take a run at each point of a scan, unattended
    #[command(after_help = SCAN_EXAMPLES)]
    Scan(ScanArgs),
    /// Look into RAW files, check them, make torn ones whole
    #[command(subcommand, after_help = FILE_EXAMPLES)]
    File(FileCommand),
    /// Be a detector: push emulated fragments to a partition that runs
    #[command(after_help = feed::EXAMPLES)]
    Feed(Box<FeedArgs>),
    /// Simulate a partition in virtual time, or search drawn partitions for faults that they do not survive
    #[command(after_help = simulation::EXAMPLES)]
    Sim(simulation::SimArgs),
    /// Measure what inputs cost on this machine, for simulations of it
    #[command(after_help = calibration::EXAMPLES)]
    Calibrate(calibration::CalibrateArgs),
    /// Measure the system beside the bare machine
    #[command(after_help = bench::EXAMPLES)]
    Bench(bench::BenchArgs),
    /// Measure a figure or table: data, SVG and HTML
    #[command(after_help = studies::EXAMPLES)]
    Study(studies::StudyArgs),
    /// Record and read traces: where the time of each thread goes, and what becomes of an event
    #[command(subcommand, after_help = traces::EXAMPLES)]
    Trace(traces::TraceCommand),
    /// Serve run control: a page for the shift, and an API for programs
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Order something from a partition that `weir serve` runs
    #[command(after_help = CTL_EXAMPLES)]
    Ctl(CtlArgs),
    /// Watch and command a partition that `weir serve` runs, on a terminal
    Top(TopArgs),
    /// Look into the run catalogue, and add to it
    #[command(after_help = RUNS_EXAMPLES)]
    Runs(RunsArgs),
    /// Stay on a host of a farm, and start its agent for partitions that know the key of the farm
    #[command(after_help = HOST_EXAMPLES)]
    Host(HostArgs),
    /// Look after the applications of the host that you are logged in to: what they do, stop them, start them
    #[command(after_help = LDAQ_EXAMPLES)]
    Ldaq(LdaqArgs),
    /// Run one application of a partition; `weir run --processes` starts it
    #[command(hide = true)]
    Node(NodeArgs),
    /// Start, watch and end the applications of a host; a launcher of `weir run` starts it
    #[command(hide = true)]
    Agent(AgentArgs),
    /// Have `weir host` start an agent; `weir run` starts it as a launcher
    #[command(hide = true)]
    Call(CallArgs),
    /// Decide on built events; an event-filter daemon starts it
    #[command(hide = true)]
    Pt,
    /// Be a process of a benchmark; `weir bench` starts it
    #[command(subcommand, hide = true)]
    BenchPart(bench::BenchPart),
    /// Be a process of a study; `weir study` starts it
    #[command(subcommand, hide = true)]
    StudyPart(studies::StudyPart),
}

/// Which sources the partition plays, beside those that the configuration says.
#[derive(Clone, Debug, Default, Args)]
pub struct Playing {
    /// Play sources instead of waiting for their programs: those named, such as --play-sources=tlu,telescope, or all that are
    /// programs. source.emulated says what they send, or source.play of a source that has it
    #[arg(long, value_name = "NAME", num_args = 0.., require_equals = true, value_delimiter = ',')]
    pub play_sources: Option<Vec<String>>,
    /// Wait for the programs of sources that the configuration plays: of those named, such as --await-sources=telescope, or of all
    #[arg(long, value_name = "NAME", num_args = 0.., require_equals = true, value_delimiter = ',', conflicts_with = "play_sources")]
    pub await_sources: Option<Vec<String>>,
}

/// `weir run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The configuration file of the partition
    pub config: PathBuf,
    /// When the run ends.
    #[command(flatten)]
    pub limits: Limits,
    /// Which sources it plays.
    #[command(flatten)]
    pub playing: Playing,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Write the summary of the run to this file, as JSON; of several runs to FILE with the run number before its ending. With `-` it
    /// goes to the standard output, and the table to the standard error
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Give every application a process of its own
    #[arg(long)]
    pub processes: bool,
    /// Take N runs, one after the other in the same processes; each has its number, its limits, its table
    #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Traces.
    #[command(flatten)]
    pub trace: TraceArgs,
}

/// `weir scan`.
#[derive(Clone, Debug, Args)]
pub struct ScanArgs {
    /// The file that says which keys take which values
    pub scan: PathBuf,
    /// Print the points and take none
    #[arg(long, conflicts_with_all = ["resume", "results"])]
    pub list: bool,
    /// Take only the points that the results do not have yet
    #[arg(long)]
    pub resume: bool,
    /// Where results go, a line of JSON for each run; SCAN with the ending .results.jsonl by default
    #[arg(long, value_name = "FILE")]
    pub results: Option<PathBuf>,
}

/// Time stamps of a process.
#[derive(Clone, Debug, Args)]
pub struct TraceArgs {
    /// Record time stamps from the start, in a file of this directory for each process. Without it SIGUSR2 begins, and ends,
    /// traces in the directory trace
    #[arg(long = "trace", value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Stamp Poll functions as well, most of which find nothing to do
    #[arg(long = "trace-polls")]
    pub polls: bool,
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
    /// Which sources it plays.
    #[command(flatten)]
    pub playing: Playing,
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
    /// The address of this host in the network that carries data; an agent says it, with which this process ends
    #[arg(long, value_name = "IP")]
    pub at: Option<IpAddr>,
    /// Traces.
    #[command(flatten)]
    pub trace: TraceArgs,
}

/// `weir agent`.
#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    /// The name of this host in the configuration
    #[arg(long, value_name = "NAME")]
    pub host: String,
    /// Where run control listens for agents
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub join: SocketAddr,
    /// The address of this host in the network that carries data
    #[arg(long, value_name = "IP")]
    pub at: IpAddr,
    /// Where applications work
    #[arg(long, value_name = "FOLDER")]
    pub directory: Option<PathBuf>,
    /// Where it shows metrics; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub metrics: Option<SocketAddr>,
}

/// `weir ldaq`.
#[derive(Clone, Debug, Args)]
pub struct LdaqArgs {
    /// The agent, if several of yours run on this machine: the name of its host, or HOST.PROCESS
    #[arg(long, value_name = "NAME", global = true)]
    pub agent: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub verb: LdaqVerb,
}

/// What somebody at a host wants.
#[derive(Clone, Debug, Subcommand)]
pub enum LdaqVerb {
    /// Say what this host does, and how each of its applications is
    Status,
    /// Stop applications at once, or all of this host; run control is told who did it
    Stop {
        /// Such as ros-1
        names: Vec<String>,
    },
    /// Have those back that were stopped here
    Start {
        /// Such as ros-1
        names: Vec<String>,
    },
    /// Write events to a new file, as applications of this host have them
    Sample(LocalSampleArgs),
}

/// `weir ldaq sample`.
#[derive(Clone, Debug, Args)]
pub struct LocalSampleArgs {
    /// Where events are looked at: ros, ebif, sfi, efd, or one application such as ros-2
    #[arg(long, value_name = "STAGE")]
    pub stage: String,
    /// Only events of this level-1 trigger type, such as 132 or 0x84; may be given again
    #[arg(long = "type", value_name = "TYPE", value_parser = trigger_type)]
    pub types: Vec<u8>,
    /// This part of them, by event number: the same events at every stage
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = fraction)]
    pub fraction: f64,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub count: u32,
    /// The file, for `weir file`
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
}

fn trigger_type(text: &str) -> Result<u8, String> {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse(), |digits| u8::from_str_radix(digits, 16));
    number.map_err(|_| "expected a number from 0 to 255, such as 132 or 0x84".to_owned())
}

fn fraction(text: &str) -> Result<f64, String> {
    let part = text.parse().ok().filter(|part: &f64| (1e-9..=1.0).contains(part));
    let part = part.ok_or_else(|| "expected a part above 0, and 1 at most".to_owned())?;
    let one_in = (1.0 / part).round();
    // One in three cannot be said exactly.
    let is_one_in = (1.0 / part - one_in).abs() < 0.01 * one_in;
    is_one_in.then_some(part).ok_or_else(|| format!("expected one event in so many, such as {:.4}", 1.0 / one_in))
}

/// `weir host`.
#[derive(Clone, Debug, Args)]
pub struct HostArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::from(([0, 0, 0, 0], agents::PORT)))]
    pub listen: SocketAddr,
    /// The file with the key of the farm
    #[arg(long, value_name = "FILE", default_value = FARM_KEY)]
    pub key: PathBuf,
}

/// `weir call`.
#[derive(Clone, Debug, Args)]
pub struct CallArgs {
    /// Where `weir host` listens
    #[arg(value_name = "ADDRESS")]
    pub address: String,
    /// The file with the key of the farm
    #[arg(long, value_name = "FILE", default_value = FARM_KEY)]
    pub key: PathBuf,
    /// The arguments of the agent
    #[arg(last = true)]
    pub arguments: Vec<String>,
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
  weir run quickstart.toml --events 100k --runs 5
  weir run test-beam.toml                  emulated detectors
  weir run test-beam.toml --await-sources  waits for the programs of its detectors
  weir run quickstart.toml --processes --set @machine.toml
  weir run quickstart.toml --set sfi.count=3 --set 'output.directory=\"/data/test\"'
  weir run replay.toml --set 'input.files=[\"my.raw\"]'

The first SIGINT (Ctrl-C) or SIGTERM stops the run in the order of the data, so that nothing is
lost; a second one forces the stop. Files are valid in both cases. Progress goes to the standard
error, the final table to the standard output. With --runs an interrupt ends the runs that would
follow as well, and so does a run that cannot begin; the exit status is the worst of all runs.

With --processes an application that dies ends the run in order; with processes.on_loss = \"restart\"
it is started again and the run goes on, where its role allows that. What was lost is counted.

Exit status: 0 well; 1 wrong usage or configuration; 2 could not start; 3 the run ended with a
residual (events unaccounted for) or was aborted; 4 it was degraded: accepted events were lost,
are incomplete, failed in the event filter or were decided without all their data, more than
run.tolerate allows. The last line says why.";

const SCAN_EXAMPLES: &str = "\
Examples:
  weir scan threshold.toml --list    the points, with every configuration judged
  weir scan threshold.toml
  weir scan threshold.toml --resume  after an interrupt: the points that are left

A scan that takes 12 runs:
  configuration = \"detector.toml\"    beside this file
  tries = 2                            another run if one is not good
  set = { run.events = 10000 }         at all points
  [[axis]]
  key = \"sfi.count\"                  a key of the configuration
  values = [1, 2, 4]
  [[axis]]
  name = \"voltage\"                   set by the command below, in WEIR_VOLTAGE
  from = 1000
  to = 1300
  steps = 4
  [prepare]
  command = [\"./set-voltage\"]

Weir judges every configuration before the first run. It names a point that fails, says why, and goes on.
The first SIGINT or SIGTERM ends the run in the order of the data, and the scan; a second one ends the run at once.
Exit status: 0 all points are taken; 1 a wrong plan or configuration; 2 nothing could start, or results cannot be
written; 3 interrupted; 4 points have failed. docs/scans.md says more.";

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

const SERVE_EXAMPLES: &str = "\
Examples:
  weir serve quickstart.toml         then open the address that it prints
  weir serve quickstart.toml --listen 127.0.0.1:0
  weir serve quickstart.toml --listen 0.0.0.0:8443      for a control room; check the fingerprint that it prints
  weir ctl boot; weir ctl start --events 100k; weir ctl status --watch

Whoever has the printed address may command; others may watch. One commands at a time. Runs are kept in
control.catalogue, or in runs.sqlite. The first SIGINT or SIGTERM ends the run in the order of the data, then the
applications and the service; the second one ends the run at once.";

const HOST_EXAMPLES: &str = "\
Examples:
  (umask 077; openssl rand -hex 32 > /etc/weir/farm.key)     the same on all hosts
  weir host --listen 10.0.0.11:7350

A host with launcher = \"service\" is called there. examples/hosts has a unit for systemd and a manifest for Kubernetes.
Whoever knows the key may run any program as the user of the service, as a configuration names programs.";

/// Where the key of a farm is unless somebody says so.
const FARM_KEY: &str = "/etc/weir/farm.key";

const LDAQ_EXAMPLES: &str = "\
Examples:
  weir ldaq status
  weir ldaq stop ros-1 ros-2
  weir ldaq start
  weir ldaq --agent daq-2 stop       one of several agents
  weir ldaq sample --stage ros --type 0x84 --fraction 0.01 --count 10 --output events.data

For partitions on several hosts, on each of these, as the user of the agent. What is stopped is lost for the run as
processes.on_loss says. With \"restart\" the run goes on without it, until you start it here.
Exit status: 0 done; 1 refused, with the reason; 2 no agent is there.";

const CTL_EXAMPLES: &str = "\
Examples:
  weir ctl boot
  weir ctl start --duration 10min
  weir ctl pause
  weir ctl --take-over stop
  weir ctl status --watch
  weir ctl sources
  weir ctl sample --of sfi-1
  weir ctl sample --output event.data
  weir ctl stamps on; weir ctl stamps off    traces of all applications, on all hosts

Exit status: 0 done; 1 refused, with the reason; 2 run control is not there or does not answer.";

const RUNS_EXAMPLES: &str = "\
Examples:
  weir run quickstart.toml --set control.catalogue=runs.sqlite
  weir runs ls --catalogue runs.sqlite
  weir runs show 7 --config quickstart.toml
  weir runs show 7 --catalogue runs.sqlite --configuration > again.toml
  weir runs diff 7 8 --catalogue runs.sqlite
  weir runs comment 7 \"beam was off\" --quality tainted --catalogue runs.sqlite

With control.catalogue a run gets its number from the catalogue, which keeps its configuration, times, end, account
and files. A run is good; tainted (events lost, incomplete, or decided without all their data); incomplete
(applications were lost and the run went on); interrupted (ended before its time); or aborted (events given up, or not
accounted for).";

const FILE_EXAMPLES: &str = "\
Examples:
  weir file ls out/*.data
  weir file dump --events 1 out/*.data | head -50
  weir file check out/*.data
  weir file recover out/*.writing    writes out/*.recovered.data and overwrites nothing

No file is changed. A checksum covers the data of an event, not its header: of that, check compares what the
fragments or the file say too. An event that is in two files of a stream is a problem.
Exit status: 0 well; 1 a file has problems, or cannot be read or recovered; 4 recovered, but events are lost.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use configuration::{Interval, Partition};

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
    fn a_part_of_events_is_one_in_so_many() {
        assert_eq!(["1", "0.5", "0.01", "0.333"].map(|text| fraction(text).is_ok()), [true; 4]);
        for (text, words) in
            [("0", "above 0"), ("1.5", "1 at most"), ("0.7", "such as 1.0000"), ("0.4", "such as 0.3333")]
        {
            assert!(fraction(text).unwrap_err().contains(words), "{text}");
        }
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
            &["weir", "feed"],
            &["weir", "feed", "shm:tlu", "--rate", "fast"],
        ];
        for line in wrong {
            assert_eq!(exit_of(&Cli::try_parse_from(line.iter()).unwrap_err()), Exit::Wrong, "{line:?}");
        }
        for line in [&["weir", "--help"], &["weir", "--version"], &["weir", "help"]] {
            assert_eq!(exit_of(&Cli::try_parse_from(line.iter()).unwrap_err()), Exit::Well, "{line:?}");
        }
    }
}
