//! The command line of `weir` (DESIGN §8): commands, options, help texts, exit statuses.

use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use configuration::{Interval, Partition, Size};
use serde::Serialize;
use simulator::swarm::LEVELS;
use transport::idle::IdleStrategy;

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
    #[command(after_help = BENCH_EXAMPLES)]
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
    #[arg(long, value_name = "S", default_value_t = 18.0, value_parser = seconds)]
    pub seconds: f64,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// `--events` and `--duration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct Limits {
    /// End the run after N level-1 events; replaces all limits in the file
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
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
    /// Check files completely: records, events, fragments, checksums, counts
    Check(FileCheckArgs),
    /// Make valid files of torn ones: cut behind the last whole event, and say what was lost
    Recover(FilesArgs),
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

/// `weir bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// The name of the benchmark
    #[arg(required_unless_present = "list")]
    pub name: Option<String>,
    /// List the benchmarks
    #[arg(long, conflicts_with = "name")]
    pub list: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Number of source processes, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub sources: u32,
    /// Payload of a fragment: bytes, or such as "9 kB"
    #[arg(long, value_name = "SIZE", default_value = "9000", value_parser = fragment_bytes)]
    pub fragment: u32,
    /// How fragments travel: tcp, udp or shm, which is shared memory
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = BenchTransport::Tcp)]
    pub transport: BenchTransport,
    /// What is done to the data: plain (they are moved), handles (only handles move, with shm), or touched (the source
    /// writes and the builder sums every byte); by default what moves least
    #[arg(long, value_enum, hide_possible_values = true)]
    pub payload: Option<BenchPayload>,
    /// Length of a full datagram in bytes, with udp; by default as in a run over the loopback interface
    #[arg(long, value_name = "BYTES", default_value_t = 65507, value_parser = clap::value_parser!(u32).range(256..=65507))]
    pub datagram: u32,
    /// Compare event-builder only with a reference that sends a datagram for each fragment, with udp; by default it is compared
    /// with that and with one that puts as many into a datagram as it holds, as a run does with what is there at the same time
    #[arg(long)]
    pub single: bool,
    /// Compare event-builder over udp with acknowledgements, and this window, with the same without them
    #[arg(long, value_name = "SIZE", value_parser = fragment_bytes, conflicts_with = "single")]
    pub window: Option<u32>,
    /// Measure one side only, once: result or reference
    #[arg(long, value_enum, hide_possible_values = true, value_name = "SIDE")]
    pub only: Option<BenchSide>,
    /// Length of each single measurement, in seconds
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// Kind of building that push-pull measures: pull, push or push-by-number; by default all
    #[arg(long, value_enum, hide_possible_values = true, value_name = "KIND")]
    pub building: Option<BenchBuilding>,
    /// Events of memory
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub events: u64,
    /// What a process of level2 does while there is nothing to do: spin, yield or park
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = BenchIdle::Park)]
    pub idle: BenchIdle,
    /// Costs that `weir calibrate` has written, for prediction; by default they are measured first
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// The Python interpreter of filter; it needs numpy
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub python: PathBuf,
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

/// A time above 0.
fn duration(text: &str) -> Result<Interval, String> {
    let duration: Interval = text.parse()?;
    if duration == Interval::default() { Err("expected a time above 0".to_owned()) } else { Ok(duration) }
}

/// How fragments travel in a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchTransport {
    /// TCP over the loopback interface
    Tcp,
    /// UDP over the loopback interface
    Udp,
    /// Shared memory
    Shm,
}

impl BenchTransport {
    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Shm => "shm",
        }
    }
}

/// What a benchmark does to the data of fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchPayload {
    /// They are moved
    Plain,
    /// They stay where they are: only headers are written and checked
    Handles,
    /// The source writes every byte, the builder sums every byte
    Touched,
}

impl BenchPayload {
    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Handles => "handles",
            Self::Touched => "touched",
        }
    }
}

/// How data get to event builders in a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchBuilding {
    /// Builders ask for them
    Pull,
    /// Sources send them to the builder that the DFM assigns
    Push,
    /// Sources send them to the builder of that event number
    PushByNumber,
}

impl BenchBuilding {
    /// All kinds that this version has.
    pub const ALL: [Self; 3] = [Self::Pull, Self::Push, Self::PushByNumber];

    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "push",
            Self::PushByNumber => "push-by-number",
        }
    }
}

/// A kind of link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchLink {
    /// A TCP connection over the loopback interface
    Tcp,
    /// Shared memory
    Shm,
    /// UDP over the loopback interface
    Udp,
    /// Queues inside a process
    Local,
}

impl BenchLink {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Shm, Self::Udp, Self::Local];

    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Shm => "shm",
            Self::Udp => "udp",
            Self::Local => "local",
        }
    }
}

/// What goes through a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchTalk {
    /// Frames one way, as many as fit in a window
    OneWay,
    /// One frame there and back
    PingPong,
}

impl BenchTalk {
    /// As command lines name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneWay => "one-way",
            Self::PingPong => "ping-pong",
        }
    }
}

/// One of the two that a benchmark compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchSide {
    /// Weir
    Result,
    /// The bare machine
    Reference,
}

impl BenchSide {
    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Result => "weir",
            Self::Reference => "bare",
        }
    }
}

/// What a process of a benchmark does while there is nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchIdle {
    /// Looks again at once
    Spin,
    /// Lets others run, then looks again
    Yield,
    /// Looks for a while, then sleeps
    Park,
}

impl BenchIdle {
    /// As schedulers understand it.
    pub fn strategy(self) -> IdleStrategy {
        match self {
            Self::Spin => IdleStrategy::Spin,
            Self::Yield => IdleStrategy::Yield,
            Self::Park => IdleStrategy::default(),
        }
    }

    /// As configurations name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Park => "park",
        }
    }
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

/// `weir bench-part`: the processes of benchmarks.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum BenchPart {
    /// A source of fragments
    Source {
        /// Where the builder listens
        builder: SocketAddr,
        /// Which source this is, from 0
        id: u32,
        /// Payload of a fragment in bytes
        fragment_bytes: u32,
        /// Fragments to write at a time
        batch: u32,
        /// Write all data anew
        #[arg(long)]
        touched: bool,
    },
    /// A source of fragments in datagrams
    Datagrams {
        /// Where the builder receives
        builder: SocketAddr,
        /// Which source this is, from 0
        id: u32,
        /// Payload of a fragment in bytes
        fragment_bytes: u32,
        /// Length of a datagram in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(256..=65507))]
        datagram_bytes: u32,
        /// Events that it may be ahead
        #[arg(value_parser = clap::value_parser!(u32).range(1..=65536))]
        window: u32,
        /// Put short fragments of several events into a datagram
        #[arg(long)]
        grouped: bool,
        /// Write all data anew
        #[arg(long)]
        touched: bool,
    },
    /// A source of fragments in shared memory; the standard input is a socket
    Ring {
        /// Which source this is, from 0
        id: u32,
        /// Payload of a fragment in bytes
        fragment_bytes: u32,
        /// Slots of the ring
        #[arg(value_parser = clap::value_parser!(u32).range(1..))]
        slots: u32,
        /// Write all data anew
        #[arg(long)]
        touched: bool,
    },
    /// One that replies to requests
    Replier {
        /// Where the client listens
        client: SocketAddr,
        /// Which replier this is, from 0
        id: u32,
        /// Length of a request in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(8..=65536))]
        request_bytes: u32,
        /// Length of a reply in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(8..=65536))]
        reply_bytes: u32,
        /// What to do while there are no requests
        #[arg(value_enum)]
        idle: BenchIdle,
        /// Length of a large reply in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(..=1 << 20))]
        large_bytes: u32,
        /// Which part of the replies is large
        large_part: f64,
    },
    /// The far end of a link; the standard input is a socket
    Link {
        /// The kind of link
        #[arg(value_enum)]
        link: BenchLink,
        /// What goes through it
        #[arg(value_enum)]
        talk: BenchTalk,
        /// Which of the two is measured
        #[arg(value_enum)]
        side: BenchSide,
        /// Length of a frame in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
        frame_bytes: u32,
        /// Frames that may be on their way
        #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
        window: u64,
    },
    /// One that is handed events in shared memory
    Receiver,
    /// A processing task that rejects every event
    Task,
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

fn fragment_bytes(text: &str) -> Result<u32, String> {
    let bytes = match text.parse::<u64>() {
        Ok(bytes) => bytes,
        Err(_) => text.parse::<Size>()?.bytes(),
    };
    let accepted = u32::try_from(bytes).ok().filter(|bytes| *bytes <= FRAGMENT_BYTES_MAX);
    accepted.ok_or_else(|| format!("expected at most {FRAGMENT_BYTES_MAX} bytes"))
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected a number from 0.01 to 3600".to_owned())
}

/// Keeps the events of a benchmark within memory.
const FRAGMENT_BYTES_MAX: u32 = 16 << 20;

const ROOT_EXAMPLES: &str = "\
First steps:
  weir init quickstart               write quickstart.toml and the data that it reads
  weir check quickstart.toml         is it right?
  weir run quickstart.toml           take data; files go to the folder out
  weir file check out/*.data         check every word of the files

Exit status: 0 well; 1 wrong usage or configuration, or a file with problems; 2 could not
start; 3 the run ended with a residual or was aborted. `weir COMMAND --help` shows examples of each.";

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
residual (events unaccounted for) or was aborted; the last line says why.";

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

A problem is printed as file:line:column: key: what was expected. Exit status: 0 well; 1 wrong.";

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
  weir file recover out/*.writing

Exit status: 0 well; 1 a file has problems or cannot be read.";

const BENCH_EXAMPLES: &str = "\
Examples:
  weir bench --list
  weir bench event-builder --sources 4 --fragment 9000 --transport tcp --json
  weir bench event-builder --fragment \"1 kB\"
  weir bench event-builder --transport udp --datagram 1472
  weir bench event-builder --transport shm --payload touched
  weir bench event-builder --only reference --json    to compare the bare machine with another
  weir bench level2 --idle spin --json
  weir bench filter --python ./venv/bin/python
  weir bench prediction --seconds 2 --json            within 15 %? Ends with 1 if not

Each benchmark alternates with the bare machine, which moves the same bytes with plain system
calls; the ratio of the two says what the complete protocol costs.";

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

    #[test]
    fn a_fragment_is_a_number_of_bytes_or_a_size() {
        assert_eq!(fragment_bytes("9000"), Ok(9000));
        assert_eq!(fragment_bytes("9 kB"), Ok(9000));
        assert!(fragment_bytes("9 km").unwrap_err().contains("km"));
    }
}
