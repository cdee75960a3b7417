//! Run control as a service, those who command it, and the catalogue of its runs.

use std::net::SocketAddr;
use std::path::PathBuf;

use catalogue::{NEWEST, NEWEST_MAX, Quality, Severity};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum, value_parser};
use terminal::{Limits, Overrides};

use super::Playing;

/// `weir serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// The configuration file of the partition
    pub config: PathBuf,
    /// Where to listen; port 0 takes a free one. Beyond loopback all is encrypted
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// The certificate to show, in PEM; without one, the service makes its own beyond loopback
    #[arg(long, value_name = "FILE", requires = "certificate_key")]
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub certificate_key: Option<PathBuf>,
    /// Keep the key for orders, and who commands, in this file from start to start. Without the file it is made, for its owner alone
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Run all applications in this process
    #[arg(long)]
    pub one_process: bool,
    /// Take over from a service of the same catalogue that hangs; from one that has died it takes over by itself
    #[arg(long)]
    pub take_over: bool,
    /// Which sources it plays.
    #[command(flatten)]
    pub playing: Playing,
    /// Changes of keys.
    #[command(flatten)]
    pub overrides: Overrides,
}

/// `weir top`.
#[derive(Clone, Debug, Args)]
pub struct TopArgs {
    /// The partition, if several are served
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
}

/// `weir ctl`.
#[derive(Clone, Debug, Args)]
pub struct CtlArgs {
    /// The partition, if several are served
    #[arg(long, value_name = "NAME", global = true)]
    pub partition: Option<String>,
    /// Take command over from somebody else
    #[arg(long, global = true)]
    pub take_over: bool,
    /// The key for orders is in this file, as `weir serve --key-file` keeps it
    #[arg(long, value_name = "FILE", global = true)]
    pub key_file: Option<PathBuf>,
    /// Where the service is at loopback, if another user has started it
    #[arg(long, value_name = "ADDRESS", global = true, requires = "key_file", conflicts_with = "partition")]
    pub address: Option<SocketAddr>,
    /// What to do.
    #[command(subcommand)]
    pub verb: CtlVerb,
}

/// What an operator wants.
#[derive(Clone, Debug, Subcommand)]
pub enum CtlVerb {
    /// Say how it is
    Status {
        /// Go on, with a line for each change and message
        #[arg(long)]
        watch: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the sources that send by themselves: state, rates, last number, what is missing or dropped, clock, what they say
    Sources {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the newest event that an application has shown, or write it to a file
    Sample(SampleArgs),
    /// Show what was said, the oldest first
    Messages(MessagesArgs),
    /// Start the applications, or those again that were lost
    Boot,
    /// Begin a run, with limits of its own or those of the configuration
    Start {
        /// When the run ends.
        #[command(flatten)]
        limits: Limits,
        /// Take N runs, each when the one before has reached its limit; `weir ctl stop` ends the series too
        #[arg(long, value_name = "N", default_value_t = 1, hide_default_value = true, value_parser = value_parser!(u32).range(1..))]
        runs: u32,
    },
    /// Hold triggers back
    Pause,
    /// Let them go on
    Resume,
    /// End the run in the order of the data
    Stop,
    /// End the run at once, and give up what is in hand
    Force,
    /// Have the applications write time stamps, or no more; then say where they are. Without a word, just say that
    Stamps {
        /// Which stamps
        #[arg(value_enum)]
        wanted: Option<StampsWanted>,
    },
    /// End the applications
    Shutdown,
    /// End one application at once; what follows is what processes.on_loss says of its role
    Kill {
        /// Such as sfi-1
        application: String,
        /// Its name again, where nobody can be asked for it
        #[arg(long, value_name = "APPLICATION")]
        confirm: Option<String>,
    },
    /// Put a changed configuration into force, when no run goes on; `weir check` has to find nothing wrong with it
    Configure {
        /// Its file, instead of the one that the service was started with
        file: Option<PathBuf>,
    },
}

/// Which time stamps there shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StampsWanted {
    /// Those of actions, sections and messages
    On,
    /// The same, and those of Poll functions
    Polls,
    /// None any more: the files are whole then
    Off,
}

/// `weir ctl sample`.
#[derive(Clone, Debug, Args)]
pub struct SampleArgs {
    /// The sample of this number, not the newest one
    #[arg(long, value_name = "N")]
    pub number: Option<u64>,
    /// Only what this application shows, or those of this role, such as sfi-1 or efd
    #[arg(long, value_name = "NAME", conflicts_with = "number")]
    pub of: Option<String>,
    /// Write it to a new file, for `weir file`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "list", "data"])]
    pub output: Option<PathBuf>,
    /// With all data words
    #[arg(long)]
    pub data: bool,
    /// The tree of the event as JSON
    #[arg(long, conflicts_with = "data")]
    pub json: bool,
    /// List all samples that are kept, one a line
    #[arg(long, conflicts_with_all = ["number", "data"])]
    pub list: bool,
}

/// `weir ctl messages`.
#[derive(Clone, Debug, Args)]
pub struct MessagesArgs {
    /// Which ones.
    #[command(flatten)]
    pub sought: SoughtArgs,
    /// Only those of run N
    #[arg(long, value_name = "N")]
    pub run: Option<u32>,
    /// Only those before number N: --json shows the numbers
    #[arg(long, value_name = "N")]
    pub before: Option<u64>,
    /// Go on with those that follow
    #[arg(long)]
    pub follow: bool,
}

/// Which messages somebody wants to see, and how.
#[derive(Clone, Debug, Args)]
pub struct SoughtArgs {
    /// Only those that matter at least so much: notice, warning or error
    #[arg(long, value_name = "SEVERITY", value_parser = |text: &str| text.parse::<Severity>())]
    pub severity: Option<Severity>,
    /// Only those of this application, or of a role, such as sfi-1 or sfi
    #[arg(long, value_name = "NAME")]
    pub application: Option<String>,
    /// Only those with these words, in whatever case
    #[arg(long, value_name = "WORDS")]
    pub words: Option<String>,
    /// At most the N newest of them
    #[arg(long, value_name = "N", default_value_t = NEWEST, value_parser = value_parser!(u32).range(1..=i64::from(NEWEST_MAX)))]
    pub newest: u32,
    /// As JSON, one a line
    #[arg(long)]
    pub json: bool,
}

/// `weir runs`.
#[derive(Clone, Debug, Args)]
pub struct RunsArgs {
    /// The file of the catalogue
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "config")]
    pub catalogue: Option<PathBuf>,
    /// A configuration that names it with control.catalogue
    #[arg(long, value_name = "CONFIG", global = true)]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: RunsCommand,
}

/// What to do with the catalogue.
#[derive(Clone, Debug, Subcommand)]
pub enum RunsCommand {
    /// One line for each run, the newest last
    Ls {
        /// At most the N newest runs
        #[arg(long, value_name = "N", default_value_t = 50)]
        newest: u32,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// All about a run: times, end, account, files, remarks
    Show {
        /// Its number
        run: u32,
        /// Print its configuration instead, which `weir run` takes
        #[arg(long, conflicts_with = "json")]
        configuration: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What was said in a run, the newest last; `weir serve` keeps it
    Messages {
        /// Its number
        run: u32,
        /// Which ones.
        #[command(flatten)]
        sought: SoughtArgs,
    },
    /// The keys in which the configurations of two runs differ
    Diff {
        /// The number of the first
        first: u32,
        /// The number of the second
        second: u32,
    },
    /// Add a remark to a run
    Comment {
        /// Its number
        run: u32,
        /// The words
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        text: String,
        /// Change what the run is worth: good, tainted, incomplete, interrupted or aborted
        #[arg(long, value_name = "QUALITY", value_parser = |text: &str| text.parse::<Quality>())]
        quality: Option<Quality>,
    },
}
