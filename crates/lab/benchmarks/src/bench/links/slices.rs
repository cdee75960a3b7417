//! Slices of time of many free-running sources, beside events of as many sources of which one triggers.
//!
//! The sources are threads of one process. Each writes and sends pieces of one length, the same on both sides, over shared memory. With a
//! trigger a piece is the fragment of an event, and sources send as fast as pieces are taken. Without one a piece is a chunk of
//! time, which follows the one before it. Such sources run free, by the clock: they send as many pieces in a second as the triggered builder
//! has just taken. More would have slices left out, fewer would show nothing. So rates can at most be equal: what is compared is whether
//! the rate is kept, and the processor time of a piece. All have one clock. Otherwise the read-out system
//! would hold the chunks of all for as long as the last source is behind.
//!
//! A slice has one chunk of each source, or ten; an event has one fragment. A slice takes what follows it within a tenth of its length,
//! too: one more of each source. Rates are of pieces; one in two slices counts once. One process is the
//! partition: no bytes move, so that the bookkeeping of either is all that costs.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use base::ids::Role;
use base::time::Time;
use configuration::Partition;
use dataflow::report::RosCounters;
use driver::scratch::Scratch;
use link::{Address, Head, LinkError, Order, Sender, Settings};
use partition::{Outcome, Run, conduct};
use serde::Serialize;
use transport::clock;

use super::super::{BenchError, sound};

/// What events are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Building {
    Slices {
        /// Chunks of a source that begin within a slice.
        chunks: u32,
        /// How long a chunk lasts.
        every_ns: u64,
    },
    Triggers,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Built {
    pub(super) books: Books,
    /// In events.
    pub(super) pieces: u64,
    pub(super) seconds: f64,
    /// Of the partition.
    pub(super) cpu_s: f64,
}

/// What became of the chunks of all sources. One in several slices counts once.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Books {
    /// Came in.
    pub(super) chunks_in: u64,
    /// In slices.
    #[serde(rename = "chunks_in_slices")]
    pub(super) in_events: u64,
    /// Came when all their slices had been built.
    #[serde(rename = "chunks_late")]
    pub(super) late: u64,
    /// In no slice, or still there at the end.
    #[serde(rename = "chunks_left")]
    pub(super) left: u64,
    /// Slices built.
    #[serde(rename = "slices")]
    pub(super) events: u64,
}

/// The free-running sources of one process.
#[derive(Clone, Debug)]
pub(in super::super) struct FreeArguments {
    /// The folder with the sockets of all, each named by its place.
    pub(in super::super) folder: PathBuf,
    pub(in super::super) sources: u32,
    pub(in super::super) bytes: u32,
    /// How long a chunk lasts, if they send chunks of time.
    pub(in super::super) every_ns: Option<u64>,
}

impl Built {
    /// How long the pieces of a source last that sends as many as were built.
    pub(super) fn every_ns(&self) -> u64 {
        (f64::from(SOURCES) * self.seconds / self.pieces as f64 * 1e9).max(1.0) as u64
    }
}

/// Builds for so long, and for longer if nothing was built in that time.
pub(super) fn run(building: Building, mut seconds: f64) -> Result<Built, BenchError> {
    loop {
        let built = run_once(building, seconds)?;
        if built.pieces > 0 {
            return Ok(built);
        }
        if seconds > LONGEST_SECONDS {
            return Err(BenchError::NothingBuilt { seconds });
        }
        seconds *= 2.0;
    }
}

fn run_once(building: Building, seconds: f64) -> Result<Built, BenchError> {
    let failed = |what| move |error: io::Error| BenchError::System { what, error };
    let folder = Scratch::new().map_err(failed("a temporary directory"))?;
    let partition = Partition::parse("links bench", &configuration(building, seconds, folder.path()), &[])?;
    let mut sources = spawn(building, folder.path()).map_err(failed("the program of the sources"))?;
    // What sources say for people is not for the output of a benchmark.
    let conducted = conduct(Run::new(partition));
    // A source ends with its link. One that comes when the run is over would wait for another run.
    let _ = sources.kill();
    sources.wait().map_err(failed("the program of the sources"))?;
    let conducted = conducted.map_err(BenchError::Run)?;
    let books = Books::of(&conducted, sound(&conducted)?.built_complete);
    if building != Building::Triggers && books.chunks_in != books.in_events + books.late + books.left {
        return Err(BenchError::Chunks { books: books.to_string() });
    }
    let pieces = books.in_events;
    Ok(Built { books, pieces, seconds: conducted.duration.as_secs_f64(), cpu_s: conducted.cpu.as_secs_f64() })
}

impl Books {
    fn of(conducted: &Outcome, events: u64) -> Self {
        let c = RosCounters::total(conducted.reports(Role::Ros));
        Self {
            chunks_in: c.fragments_in,
            in_events: c.cleared,
            late: c.dropped_old,
            left: c.never_triggered + c.resident,
            events,
        }
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chunks_in, in_events, late, left, events } = self;
        write!(f, "{chunks_in} chunks in = {in_events} in {events} slices + {late} late + {left} left")
    }
}

fn spawn(building: Building, folder: &Path) -> io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench-part", "free"]).arg(folder).args([SOURCES, PIECE_BYTES].map(|n| n.to_string()));
    if let Building::Slices { every_ns, .. } = building {
        command.args(["--every", &every_ns.to_string()]);
    }
    command.stdin(Stdio::null()).spawn()
}

/// The life of the sources: they send until their links end. A short run may end a link that is still to be used.
pub(in super::super) fn free_main(arguments: &FreeArguments) -> Result<(), LinkError> {
    let begun = Arc::new(OnceLock::new());
    let sending = |place| {
        let (arguments, begun) = (arguments.clone(), begun.clone());
        thread::spawn(move || send(&arguments, place, &begun))
    };
    let all: Vec<_> = (0..arguments.sources).map(sending).collect();
    all.into_iter().try_for_each(|one| match one.join().expect("a source does not panic") {
        Ok(()) | Err(LinkError::Closed) => Ok(()),
        other => other,
    })
}

/// A source that starts late has the clock of the others, and sends what it has missed. `begun` is when the first one started.
fn send(arguments: &FreeArguments, place: u32, begun: &OnceLock<Time>) -> Result<(), LinkError> {
    let &FreeArguments { bytes, every_ns, .. } = arguments;
    let at = Address::Shared(arguments.folder.join(format!("{place}.sock"))).to_string();
    let settings = Settings { name: name(place), id: None, key: None, patience: Duration::from_secs(60) };
    let mut sender = Sender::open(&at, &settings)?;
    let (mut is_running, mut piece) = (false, 0);
    loop {
        match sender.wait(if every_ns.is_some() { PAUSE } else { WAIT })? {
            Order::Start { .. } => is_running = true,
            Order::Stop => {
                is_running = false;
                sender.end()?;
            }
            Order::Closed => return Ok(()),
            Order::Nothing => {}
        }
        // Pieces that are over by now.
        let over = match every_ns {
            Some(every_ns) if is_running => {
                clock::now().since(*begun.get_or_init(clock::now)).as_nanos() as u64 / every_ns
            }
            _ => u64::MAX,
        };
        while is_running && !sender.has_order() && piece < over {
            let Some(slot) = sender.reserve(bytes as usize)? else { break };
            slot.fill(piece as u8);
            let head = match every_ns {
                Some(every_ns) => Head { time: Some((piece * every_ns, (piece + 1) * every_ns)), ..Head::default() },
                None => Head { number: Some(piece), ..Head::default() },
            };
            sender.commit(&head, bytes as usize)?;
            piece += 1;
        }
    }
}

fn name(place: u32) -> String {
    format!("free-{place}")
}

fn configuration(building: Building, seconds: f64, folder: &Path) -> String {
    let (trigger, chunks, of_source) = match building {
        Building::Slices { chunks, every_ns } => {
            let slice = u64::from(chunks) * every_ns;
            let trigger =
                format!("source = \"time\", slice = \"{slice} ns\", after = \"{} ns\", grace = \"60 s\"", slice / 10);
            let chunks = chunks + OVERLAP;
            (trigger, format!("chunks = {}\n", 2 * chunks), chunks)
        }
        Building::Triggers => (format!("source = \"link\", leader = \"{}\"", name(0)), String::new(), 1),
    };
    let source = |place: u32| {
        let (name, folder) = (name(place), folder.display());
        format!(
            "[[source]]\nname = \"{name}\"\nat = \"shm:{folder}/{place}.sock\"\nsize_max = \"{PIECE_BYTES} B\"\n{chunks}"
        )
    };
    let sources: String = (0..SOURCES).map(source).collect();
    format!(
        r#"
        partition.name = "bench"
        run.duration = "{milliseconds} ms"
        level1 = {{ {trigger} }}
        dfm = {{ clear_group = 8 }}
        sfi = {{ count = 1, events = 32, building = 16, outstanding_requests = 16, max_event_size = "{event_bytes} B" }}
        ros = {{ count = 1, pages = {PAGES} }}
        {sources}
        "#,
        milliseconds = (seconds * 1e3).round().max(1.0),
        event_bytes = 4 * SOURCES * PIECE_BYTES * of_source,
    )
}

pub(super) const SOURCES: u32 = 32;
/// Of a chunk, and of a fragment.
pub(super) const PIECE_BYTES: u32 = 1000;
/// A slice is as long as so many chunks.
pub(super) const CHUNKS: [u32; 2] = [1, 10];
/// It takes so many of the next one.
pub(super) const OVERLAP: u32 = 1;
/// Within less the first slices are not built.
pub(super) const SECONDS_MIN: f64 = 0.2;
/// A machine that builds nothing in as long does not build.
const LONGEST_SECONDS: f64 = 10.0;
/// Pieces for which a source has pages.
const PAGES: u32 = 1280;
const WAIT: Duration = Duration::from_millis(20);
/// A source that runs free sends what came meanwhile together.
const PAUSE: Duration = Duration::from_millis(2);
