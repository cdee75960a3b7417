//! `weir bench` and the processes that it starts.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use configuration::Size;
use serde::Serialize;
use transport::idle::IdleStrategy;

use crate::calibration::seconds;

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
    /// Plain moves the data, handles moves only handles (with shm), touched also has the source write and the builder
    /// sum every byte. By default what moves least
    #[arg(long, value_enum, hide_possible_values = true)]
    pub payload: Option<BenchPayload>,
    /// Length of a full datagram in bytes, with udp; by default as in a run over the loopback interface
    #[arg(long, value_name = "BYTES", default_value_t = 65507, value_parser = clap::value_parser!(u32).range(256..=65507))]
    pub datagram: u32,
    /// Compare event-builder only with a reference that sends a datagram for each fragment, with udp. By default there is
    /// a second reference, which fills datagrams with fragments, as a run does with those that are there at the same time
    #[arg(long)]
    pub single: bool,
    /// Compare event-builder over udp with acknowledgements, and this window, with the same without them; for window, 1 MB by
    /// default
    #[arg(long, value_name = "SIZE", value_parser = fragment_bytes, conflicts_with = "single")]
    pub window: Option<u32>,
    /// Measure one side only, once: result or reference
    #[arg(long, value_enum, hide_possible_values = true, value_name = "SIDE")]
    pub only: Option<BenchSide>,
    /// Length of a measurement, in seconds; where there are many each takes a part of it, so that all end within 45 s by default
    #[arg(long, value_name = "S", default_value_t = 3.0, value_parser = seconds)]
    pub seconds: f64,
    /// Level-2 processing units of ros
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub l2pus: u32,
    /// Event builders of ros
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub sfis: u32,
    /// Kind of source that links measures: shm or tcp (programs in C), send-many or generator (in Python), or slices; by default all
    #[arg(long, value_enum, hide_possible_values = true, value_name = "KIND")]
    pub source: Option<BenchSource>,
    /// Where the Weir is installed that the sources of links are built with; by default where this program is
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<PathBuf>,
    /// The part that `crate` measures: rob, control, locate or pair; by default all
    #[arg(long, value_enum, hide_possible_values = true, value_name = "PART")]
    pub part: Option<BenchCratePart>,
    /// Kind of building that push-pull measures: pull, push or push-by-number; by default all
    #[arg(long, value_enum, hide_possible_values = true, value_name = "KIND")]
    pub building: Option<BenchBuilding>,
    /// Events of memory
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub events: u64,
    /// Emulated hosts of agents
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub agents: u32,
    /// Applications on each of them
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=30))]
    pub applications: u32,
    /// Pages that are open in monitoring
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub pages: u32,
    /// Pairs of monitoring
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: u32,
    /// How a process of level2, ros or crate waits for work: spin, yield or park
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = BenchIdle::Park)]
    pub idle: BenchIdle,
    /// The program that reference is compared with: PROGRAM SOURCES FRAGMENT_BYTES SECONDS BATCH EVENTS_HELD prints JSON
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<PathBuf>,
    /// Costs that `weir calibrate` has written, for prediction; by default they are measured first
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// The Python interpreter of filter and links; it needs numpy
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub python: PathBuf,
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

    /// Keys of a configuration in which messages travel so; over UDP those of these kinds, all others by connections.
    pub fn keys(self, datagrams: &[&str]) -> String {
        match self {
            Self::Tcp => String::new(),
            Self::Udp => {
                let key = |kind: &&str| {
                    let carrier = if *kind == "clear" { "multicast" } else { "udp" };
                    format!("transport.{kind} = \"{carrier}\"\n")
                };
                datagrams.iter().map(key).collect()
            }
            Self::Shm => "transport.connections = \"shm\"".to_owned(),
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

/// A kind of source that pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchSource {
    /// A program in C, over shared memory
    Shm,
    /// The same over TCP
    Tcp,
    /// A program in Python that hands over many fragments at a time
    SendMany,
    /// A generator in Python
    Generator,
    /// Many free-running sources, built into slices of time
    Slices,
}

impl BenchSource {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Shm, Self::Tcp, Self::SendMany, Self::Generator, Self::Slices];

    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Tcp => "tcp",
            Self::SendMany => "send-many",
            Self::Generator => "generator",
            Self::Slices => "slices",
        }
    }
}

/// What of a read-out crate is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BenchCratePart {
    /// One ROB in one process
    Rob,
    /// Messages of the TRG to ROBs and EBIF
    Control,
    /// The EBIF locates the fragments of an event
    Locate,
    /// The crate with SFI, event handler and SFO
    Pair,
}

impl BenchCratePart {
    /// All parts.
    pub const ALL: [Self; 4] = [Self::Rob, Self::Control, Self::Locate, Self::Pair];

    /// As users name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rob => "rob",
            Self::Control => "control",
            Self::Locate => "locate",
            Self::Pair => "pair",
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

/// `weir bench-part`: the processes of benchmarks.
#[derive(Clone, Debug, Subcommand)]
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
    },
    /// One that asks a server
    Client {
        /// Where the server listens
        server: SocketAddr,
        /// Which client this is, from 0
        id: u32,
        /// Length of a request in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(8..=65536))]
        request_bytes: u32,
        /// Length of a reply in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(8..=65536))]
        reply_bytes: u32,
        /// Requests on the way at a time
        #[arg(value_parser = clap::value_parser!(u32).range(1..=65536))]
        in_flight: u32,
        /// What to do while there are no replies
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
    /// Event building by datagrams in the network that the process is in; prints what it came to
    InNetwork {
        /// The process that started this one
        parent: u32,
        /// Number of source processes
        #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
        sources: u32,
        /// Payload of a fragment in bytes
        #[arg(value_parser = fragment_bytes)]
        fragment_bytes: u32,
        /// Length of a datagram in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(256..=65507))]
        datagram_bytes: u32,
        /// How long, in seconds
        #[arg(value_parser = part_of_seconds)]
        seconds: f64,
        /// Requests on their way at most; by default as many as there is room for
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=65536))]
        outstanding_requests: Option<u32>,
        /// Fewer, as the network takes them
        #[arg(long, requires = "outstanding_requests")]
        adaptive: bool,
    },
    /// Free-running sources
    Free {
        /// The folder with their sockets
        folder: PathBuf,
        /// How many there are
        #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
        sources: u32,
        /// Length of a payload in bytes
        #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
        bytes: u32,
        /// Send chunks of time instead of numbered fragments, each of so many ns
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        every: Option<u64>,
    },
    /// Emulated hosts
    Farm {
        /// Where launchers find it
        socket: PathBuf,
    },
    /// What run control starts on an emulated host
    Launcher {
        /// Where the emulated hosts are
        farm: PathBuf,
        /// Arguments of `weir agent`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// One that is handed events in shared memory
    Receiver,
    /// A processing task that rejects every event
    Task,
}

fn fragment_bytes(text: &str) -> Result<u32, String> {
    let bytes = match text.parse::<u64>() {
        Ok(bytes) => bytes,
        Err(_) => text.parse::<Size>()?.bytes(),
    };
    let accepted = u32::try_from(bytes).ok().filter(|bytes| *bytes <= FRAGMENT_BYTES_MAX);
    accepted.ok_or_else(|| format!("expected at most {FRAGMENT_BYTES_MAX} bytes"))
}

/// Of a measurement that takes a part of the time.
fn part_of_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.001..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected a number from 0.001 to 3600".to_owned())
}

/// Keeps the events of a benchmark within memory.
const FRAGMENT_BYTES_MAX: u32 = 16 << 20;

/// The end of its help.
pub const EXAMPLES: &str = "\
Examples:
  weir bench --list
  weir bench event-builder --sources 4 --fragment 9000 --transport tcp --json
  weir bench event-builder --fragment \"1 kB\"
  weir bench event-builder --transport udp --datagram 1472
  weir bench event-builder --transport shm --payload touched
  weir bench event-builder --only reference --json    to compare the bare machine with another
  weir bench level2 --idle spin --json
  weir bench agents --agents 500 --applications 10    what run control of 5,000 applications costs
  weir bench filter --python ./venv/bin/python
  weir bench crate --part pair                        a read-out crate and what it feeds, in processes
  weir bench links --prefix $HOME/weir                sources in C and Python, built with what is installed there
  weir bench reference --against ./evb                another program that builds events with bare sockets
  weir bench prediction --json                        within 15 %? Ends with 1 if not; takes 45 s

Each benchmark alternates with the bare machine, which moves the same bytes with plain system
calls; the ratio of the two says what the complete protocol costs.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_shortest_measurement_is_long_enough() {
        let shortest = seconds("0.01").unwrap();
        assert_eq!(part_of_seconds(&(shortest / 3.0).to_string()), Ok(shortest / 3.0));
        assert!(part_of_seconds("0").is_err() && part_of_seconds("NaN").is_err());
    }

    #[test]
    fn a_fragment_is_a_number_of_bytes_or_a_size() {
        assert_eq!(fragment_bytes("9000"), Ok(9000));
        assert_eq!(fragment_bytes("9 kB"), Ok(9000));
        assert!(fragment_bytes("9 km").unwrap_err().contains("km"));
    }
}
