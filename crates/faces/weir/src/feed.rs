//! `weir feed`: an emulated detector as a process of its own. It can misbehave, for tests of what stands behind it.

mod board;

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use clap::{Args, ValueEnum};
use configuration::{ConfigurationError, Fraction, Generator, Interval, Partition, Rate, Size, SizeSpread};
use nix::sys::signal::{Signal, raise};
use rol::detector::{Beams, Chunks, Content, Detector, Mistakes, Pace, Played, PlayedError, SinceT0, Traits, in_words};
use rol::slink::{Blocks, ControlMistakes, FrontEnd};
use rol::{EmulatedTriggers, InputError, Inputs};
use terminal::{Exit, complain};
use weir_source::{Settings, SourceError, key_of};

/// Examples of `weir feed`.
pub const EXAMPLES: &str = "\
Examples:
  weir feed shm:tlu --rate '1 kHz'   fragments of the events 0, 1, 2 …
  weir feed shm:telescope --rate '1 kHz' --size '2 kB' --spread exponential
  weir feed tcp://127.0.0.1:7101 --name board --key-file key --count 1000
  weir feed shm:telescope --beam '1 kHz' --drift 10 --repeat-number 5000   a clock that drifts, a lost trigger
  weir feed shm:radio --time-based --chunk '2 ms' --overlap '10 %'   chunks of time, without numbers
  weir feed shm:tlu --handshake eudet --size '40 B'   a trigger logic unit: the next trigger when busy has fallen
  weir feed shm:calo --level1 --rate '10 kHz'   triggers with regions of interest, as a level-1 processor
  weir feed shm:calo --config examples/trigger.toml --rob 0x410000   what that ROB has of simulated collisions
  weir feed udp://127.0.0.1:7201 --rate '1 kHz'   datagrams, as a board sends them
  weir feed slink://127.0.0.1:7301 --damage 500 --no-end 600   an S-LINK with errors
  weir feed shm:telescope --skip 500 --double 600 --damage 700 --die-at 800

Exit status: 0 the partition has ended the link; 1 wrong usage; 2 no partition; 3 the link broke, or the source did not take orders.";

/// `weir feed`.
#[derive(Clone, Debug, Args)]
pub struct FeedArgs {
    /// Where the partition listens: shm:NAME, shm:/path.sock, tcp://HOST:PORT, udp://HOST:PORT or slink://HOST:PORT
    pub at: String,
    /// The name of the source in the configuration; by default that of shm:NAME
    #[arg(long)]
    pub name: Option<String>,
    /// A file with the key of the partition
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Wait so long for the partition
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub patience: Interval,
    /// End itself if an order of the partition waits so long
    #[arg(long, value_name = "TIME", default_value = "5 s")]
    pub deadline: Interval,
    /// Send N fragments in each run; without limit by default
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// The number of the first event
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first: u64,
    /// Send so many fragments per second; as fast as the partition takes them by default
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,
    /// The size of a payload, or its mean
    #[arg(long, value_name = "SIZE", default_value = "1 kB")]
    pub size: Size,
    /// How sizes are distributed
    #[arg(long, value_enum, default_value_t = Spread::Fixed)]
    pub spread: Spread,
    /// What payloads, sizes and triggers are drawn from; with --config by default its run.seed, else 1
    #[arg(long)]
    pub seed: Option<u64>,
    /// Send the time and a checksum with each fragment
    #[arg(long)]
    pub checksum: bool,
    /// Write each fragment to FILE, too, with all numbers little-endian: the number of the event (8 bytes), unless it is
    /// time-based. With that and in a beam follow begin and end (8 bytes each). Then follow its length (4 bytes) and the payload
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Send with each fragment the time of its trigger in an emulated beam of this mean rate; all sources see the same triggers
    #[arg(long, value_name = "RATE")]
    pub beam: Option<Rate>,
    /// With --beam: say the time alone, and no number
    #[arg(long, requires = "beam")]
    pub no_number: bool,
    /// See only this part of the events, at random
    #[arg(long, value_name = "FRACTION", default_value = "100 %")]
    pub efficiency: Fraction,
    /// With --beam: the clock is ahead by at most so much, at random
    #[arg(long, value_name = "TIME", requires = "beam", default_value = "100 ns")]
    pub jitter: Interval,
    /// Say only so many bits of each number
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=64), default_value_t = 64)]
    pub number_bits: u32,
    /// Chunks of time instead of numbered fragments
    #[command(flatten)]
    pub time: TimeArgs,
    /// How the feed speaks of triggers
    #[command(flatten)]
    pub triggers: TriggersArgs,
    /// What the input of a configuration has
    #[command(flatten)]
    pub input: InputArgs,
    /// What the feed does wrong
    #[command(flatten)]
    pub misbehaviour: MisbehaviourArgs,
}

/// Chunks of time instead of numbered fragments.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Time")]
pub struct TimeArgs {
    /// Send chunks of time instead of numbered fragments: each says from when to when it is, in ns since 1970
    #[arg(long)]
    pub time_based: bool,
    /// The length of a chunk; it is sent when that is over
    #[arg(long, value_name = "TIME", default_value = "1 ms", requires = "time_based")]
    pub chunk: Interval,
    /// How much of a chunk is in the next one, too. With --rate, chunks begin when that says
    #[arg(long, value_name = "FRACTION", default_value = "0 %", requires = "time_based")]
    pub overlap: Fraction,
    /// Send each chunk so much later
    #[arg(long, value_name = "TIME", default_value = "0 s", requires = "time_based")]
    pub delay: Interval,
}

/// How the feed speaks of triggers.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Triggers")]
pub struct TriggersArgs {
    /// Send as a device with a trigger logic unit does: numbers of 15 bits (eudet), times since T0 (aida), or both (aida-number)
    #[arg(long, value_enum, conflicts_with = "time_based")]
    pub handshake: Option<HandshakeOfFeed>,
    /// Be a level-1 processor: each fragment is a trigger with regions of interest. With --rate, those that come while the partition is busy
    /// are vetoed, and counted in the next one
    #[arg(long, conflicts_with_all = ["time_based", "beam"])]
    pub level1: bool,
    /// With --level1: regions of interest per event
    #[arg(long, value_name = "N", requires = "level1", conflicts_with = "config", value_parser = clap::value_parser!(u32).range(0..=255), default_value_t = 2)]
    pub rois: u32,
}

/// What the input of a configuration has.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Input")]
pub struct InputArgs {
    /// Send what the input of this configuration has, emulated, sampled or replayed: the data of --rob, or with --level1 its triggers.
    /// Event n is the nth of that input. It ends with the input, unless input.repeat is on
    #[arg(long, value_name = "FILE", conflicts_with_all = ["time_based", "beam", "size", "spread"])]
    pub config: Option<PathBuf>,
    /// The source identifier of the ROB, such as 0x410003
    #[arg(long, value_name = "ID", requires = "config", conflicts_with = "level1", value_parser = identifier)]
    pub rob: Option<u32>,
    /// Change a key of that configuration, as for `weir run`
    #[arg(long, value_name = "KEY=VALUE", requires = "config")]
    pub set: Vec<String>,
}

/// What the feed does wrong.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Misbehaviour")]
pub struct MisbehaviourArgs {
    /// From chunk N on, say nothing and live on
    #[arg(long, value_name = "N", requires = "time_based")]
    pub silent_from: Option<u64>,
    /// With --handshake aida and aida-number: say T0 only behind so many fragments
    #[arg(long, value_name = "N", requires = "handshake", default_value_t = 0)]
    pub t0_after: u64,
    /// With --beam: the clock goes faster by so many parts in a million
    #[arg(long, value_name = "PPM", requires = "beam", default_value_t = 0.0, allow_negative_numbers = true)]
    pub drift: f64,
    /// With --beam: from event N on the clock is ahead by TIME
    #[arg(long, value_name = "N:TIME", requires = "beam", value_parser = step)]
    pub clock_step: Option<(u64, u64)>,
    /// From event N on, say numbers that are higher by 1, as a source that has counted a trigger too many
    #[arg(long, value_name = "N")]
    pub skip_number: Vec<u64>,
    /// From event N on, say numbers that are lower by 1, as a source that has lost a trigger
    #[arg(long, value_name = "N")]
    pub repeat_number: Vec<u64>,
    /// Leave out the fragment of event N; may be given several times, as those below
    #[arg(long, value_name = "N")]
    pub skip: Vec<u64>,
    /// Send the fragment of event N twice
    #[arg(long, value_name = "N")]
    pub double: Vec<u64>,
    /// Say of the fragment of event N that its transmission had an error
    #[arg(long, value_name = "N")]
    pub damage: Vec<u64>,
    /// Of an S-LINK: send the fragment of event N with an error in a control word
    #[arg(long, value_name = "N")]
    pub control_error: Vec<u64>,
    /// Of an S-LINK: leave out the control word before the fragment of event N
    #[arg(long, value_name = "N")]
    pub no_begin: Vec<u64>,
    /// Of an S-LINK: leave out the control word behind the fragment of event N
    #[arg(long, value_name = "N")]
    pub no_end: Vec<u64>,
    /// Before the fragment of event N, be killed
    #[arg(long, value_name = "N")]
    pub die_at: Option<u64>,
    /// Before the fragment of event N, hang
    #[arg(long, value_name = "N")]
    pub hang_at: Option<u64>,
}

impl FeedArgs {
    fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }
}

/// Hand-shakes of trigger logic units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HandshakeOfFeed {
    /// Numbers of 15 bits
    Eudet,
    /// Times since T0, no numbers
    Aida,
    /// Times since T0, and numbers
    AidaNumber,
}

/// How sizes are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Spread {
    /// All equal
    Fixed,
    /// Exponential, cut at the longest payload of the link
    Exponential,
}

/// Feeds a partition.
pub(crate) fn feed(args: &FeedArgs) -> Exit {
    let name = args.name.clone().unwrap_or_else(|| name_in(&args.at).to_owned());
    let mut settings = Settings::named(&name);
    settings.patience = args.patience.duration();
    settings.deadline = args.deadline.duration();
    if let Some(file) = &args.key_file {
        match key_of(file) {
            Ok(key) => settings.key = Some(key),
            Err(error) => {
                complain(&format!("weir: {error}"));
                return Exit::Wrong;
            }
        }
    }
    let detector = match detector(&paced(args)) {
        Ok(detector) => detector,
        Err(error) => {
            complain(&format!("weir: {error}"));
            return if matches!(error, FeedError::Record(..)) { Exit::NotStarted } else { Exit::Wrong };
        }
    };
    if let Some(place) = args.at.strip_prefix("slink://") {
        return over_slink(place, name, args, detector);
    }
    if let Some(place) = args.at.strip_prefix("udp://") {
        return board::feed(place, &name, detector);
    }
    match weir_source::run(&args.at, settings, detector) {
        Ok(sent) => {
            let (runs, busy) = (sent.runs, sent.busy);
            complain(&format!(
                "{name}: {} fragments, {} bytes in {runs} runs, busy {busy:.1?}",
                sent.fragments, sent.bytes
            ));
            Exit::Well
        }
        Err(error) => {
            complain(&format!("weir: {name}: {error}"));
            exit_of(&error)
        }
    }
}

/// Sends blocks over an S-LINK.
fn over_slink(place: &str, name: String, args: &FeedArgs, mut detector: Detector) -> Exit {
    let of = |events: &[u64]| events.iter().copied().collect();
    let MisbehaviourArgs { control_error, no_begin, no_end, .. } = &args.misbehaviour;
    let front_end = FrontEnd {
        name,
        source_id: SLINK_SOURCE_ID,
        size_max: SLINK_BYTES_MAX,
        patience: args.patience.duration(),
        mistakes: ControlMistakes { control_error: of(control_error), no_begin: of(no_begin), no_end: of(no_end) },
    };
    match front_end.send(place, &mut detector) {
        Ok(Blocks { sent, offs }) => {
            complain(&format!("{}: {sent} blocks, told {offs} times to stop (XOFF)", front_end.name));
            Exit::Well
        }
        Err(error) => {
            complain(&format!("weir: {}: {error}", front_end.name));
            exit_of(&error)
        }
    }
}

fn exit_of(error: &SourceError) -> Exit {
    use weir_source::LinkError::{Address, Ambiguous, KeyMissing, NoPartition, Refused, Taken, Unproven};
    match error {
        SourceError::Link(Address { .. } | Ambiguous { .. } | KeyMissing { .. }) => Exit::Wrong,
        SourceError::Link(NoPartition { .. } | Taken { .. } | Refused { .. } | Unproven { .. }) => Exit::NotStarted,
        _ => Exit::Aborted,
    }
}

/// `telescope` of `shm:telescope`, `shm:test/telescope` and `shm:/run/telescope.sock`.
fn name_in(at: &str) -> &str {
    let last = at.rsplit(['/', ':']).next().unwrap_or(at);
    last.strip_suffix(".sock").unwrap_or(last)
}

/// Why there is nothing to feed with.
#[derive(Debug, thiserror::Error)]
enum FeedError {
    #[error("--record: {0}")]
    Record(#[from] io::Error),
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    #[error("--config: {0}")]
    Input(#[from] InputError),
    #[error("{prefix}{error}", prefix = of_played(error))]
    Played {
        #[from]
        error: PlayedError,
    },
    #[error("--config: expected --rob with one of {known}, or --level1 for the triggers")]
    NoRob { known: String },
    #[error(
        "--config: level1.source has no triggers to play: expected \"emulator\", \"sample\", \"replay\" or \"file\""
    )]
    NoTriggers,
}

/// What of the command line is wrong.
fn of_played(error: &PlayedError) -> &'static str {
    match error {
        PlayedError::Unknown { .. } => "--rob ",
        PlayedError::Links(_) => "--config: ",
    }
}

/// A board that sends as fast as it can sends into the void: it has a rate.
fn paced(args: &FeedArgs) -> FeedArgs {
    let mut args = args.clone();
    if args.at.starts_with("udp://") {
        args.rate.get_or_insert(board::DEFAULT_RATE);
    }
    args
}

/// The detector that the arguments describe.
fn detector(args: &FeedArgs) -> Result<Detector, FeedError> {
    let record = args.record.as_ref().map(File::create).transpose()?;
    let detector = Detector::new(traits(args)?);
    let detector = match record {
        Some(file) => detector.recorded_to(Box::new(BufWriter::new(file))),
        None => detector,
    };
    let (die_at, hang_at) = (args.misbehaviour.die_at, args.misbehaviour.hang_at);
    Ok(detector.calling(Box::new(move |event| misbehave(event, die_at, hang_at))))
}

fn traits(args: &FeedArgs) -> Result<Traits, FeedError> {
    let period_ns = args.rate.and_then(Rate::period_ns);
    let bits = if args.triggers.handshake == Some(HandshakeOfFeed::Eudet) { 15 } else { u64::BITS };
    let has_t0 = matches!(args.triggers.handshake, Some(HandshakeOfFeed::Aida | HandshakeOfFeed::AidaNumber));
    Ok(Traits {
        content: content(args)?,
        seed: args.seed(),
        first: args.first,
        count: args.count,
        pace: period_ns.map_or(Pace::Free, |period_ns| Pace::Every { period_ns }),
        efficiency: args.efficiency,
        has_numbers: !(args.time.time_based
            || args.no_number
            || args.triggers.handshake == Some(HandshakeOfFeed::Aida)),
        number_bits: args.number_bits.min(bits),
        checksum: args.checksum,
        beam: args.beam.and_then(Rate::period_ns).map(|mean_ns| Beams {
            seed: 0,
            mean_ns,
            jitter_ns: args.jitter.ns(),
            drift_ppm: args.misbehaviour.drift,
            clock_step: args.misbehaviour.clock_step,
        }),
        chunks: args.time.time_based.then(|| chunks(args, period_ns)),
        t0: has_t0.then_some(SinceT0 { after: args.misbehaviour.t0_after }),
        mistakes: mistakes(args),
        ..Traits::default()
    })
}

fn chunks(args: &FeedArgs, period_ns: Option<u64>) -> Chunks {
    let length_ns = args.time.chunk.ns();
    let step_ns = length_ns - (length_ns as f64 * args.time.overlap.as_f64()) as u64;
    Chunks {
        length_ns,
        every_ns: period_ns.unwrap_or(step_ns),
        delay_ns: args.time.delay.ns(),
        silent_from: args.misbehaviour.silent_from,
    }
}

fn mistakes(args: &FeedArgs) -> Mistakes {
    let of = |events: &[u64]| events.iter().copied().collect();
    Mistakes {
        skip: of(&args.misbehaviour.skip),
        double: of(&args.misbehaviour.double),
        damage: of(&args.misbehaviour.damage),
        skip_number: args.misbehaviour.skip_number.clone(),
        repeat_number: args.misbehaviour.repeat_number.clone(),
    }
}

/// What fragments hold: what is played, or made up.
fn content(args: &FeedArgs) -> Result<Content, FeedError> {
    let inputs = args.input.config.as_ref().map(|config| inputs(config, &args.input.set, args.seed)).transpose()?;
    match (inputs, args.input.rob) {
        (None, _) if args.triggers.level1 => {
            let (rois, seed) = (args.triggers.rois, args.seed());
            let triggers = move || Box::new(EmulatedTriggers::new(rois, Generator::default(), seed)) as Box<_>;
            Ok(Content::Triggers(Box::new(triggers)))
        }
        (None, _) => {
            let spread = match args.spread {
                Spread::Fixed => SizeSpread::Fixed,
                Spread::Exponential => SizeSpread::Exponential,
            };
            Ok(Content::MadeUp { mean_bytes: args.size.bytes(), spread })
        }
        (Some(inputs), Some(rob)) => {
            Ok(Content::Played(Box::new(Played::new(inputs.played().unwrap_or(&inputs), rob)?)))
        }
        (Some(inputs), None) if args.triggers.level1 => {
            if inputs.triggers().is_none() {
                return Err(FeedError::NoTriggers);
            }
            Ok(Content::Triggers(Box::new(move || inputs.triggers().expect("it has had triggers"))))
        }
        (Some(inputs), None) => Err(FeedError::NoRob { known: in_words(&inputs.shares().concat()) }),
    }
}

/// The input of a configuration. A seed takes the place of its own.
fn inputs(config: &Path, set: &[String], seed: Option<u64>) -> Result<Inputs, FeedError> {
    let mut partition = Partition::load(config, set)?;
    partition.run.seed = seed.unwrap_or(partition.run.seed);
    Ok(Inputs::open(&partition)?)
}

fn misbehave(event: u64, die_at: Option<u64>, hang_at: Option<u64>) {
    if die_at == Some(event) {
        // Nothing can be done against it, and nothing may go wrong with it.
        let _ = raise(Signal::SIGKILL);
    }
    if hang_at == Some(event) {
        let (keep, wait) = sync_channel::<()>(0);
        // The sender lives: it waits for ever.
        let _ = wait.recv();
        drop(keep);
    }
}

/// `0x410003`.
fn identifier(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
    let number = number.unwrap_or_else(|| text.trim().parse());
    number.map_err(|_| format!("expected a source identifier, such as 0x410003, found {text:?}"))
}

/// `1000:1 ms`; with ns.
fn step(text: &str) -> Result<(u64, u64), String> {
    let expected = || format!("expected an event and a time, such as \"1000:1 ms\", found {text:?}");
    let (event, time) = text.split_once(':').ok_or_else(expected)?;
    let time: Interval = time.trim().parse().map_err(|_| expected())?;
    Ok((event.trim().parse().map_err(|_| expected())?, time.ns()))
}

/// Of the ROD: test beam. The configuration gives the ROB its own.
const SLINK_SOURCE_ID: u32 = 0x0051_0000;
const SLINK_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn a_source_has_the_name_of_its_socket() {
        for at in ["shm:telescope", "shm:test/telescope", "shm:/run/telescope.sock"] {
            assert_eq!(name_in(at), "telescope");
        }
    }
}
