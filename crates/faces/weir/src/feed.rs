//! `weir feed`: an emulated detector as a process of its own. It can misbehave, for tests of what stands behind it.

mod board;
mod played;
mod processor;
mod slink;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base::random::Random;
use base::time::Time;
use clap::{Args, ValueEnum};
use configuration::{Fraction, Generator, Interval, Rate, Size};
use dataflow::level1::trigger::TriggerSource;
use nix::sys::signal::{Signal, raise};
use played::{Payload, Played, PlayedError};
use processor::Processor;
use rol::EmulatedTriggers;
use terminal::{Exit, complain};
use transport::clock;
use weir_source::{Failure, Flags, Head, Reading, Settings, Source, SourceError, key_of};

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
    /// Send chunks of time instead of numbered fragments: each says from when to when it is, in ns since 1970
    #[arg(long, help_heading = "Time")]
    pub time_based: bool,
    /// The length of a chunk; it is sent when that is over
    #[arg(long, value_name = "TIME", default_value = "1 ms", requires = "time_based", help_heading = "Time")]
    pub chunk: Interval,
    /// How much of a chunk is in the next one, too. With --rate, chunks begin when that says
    #[arg(long, value_name = "FRACTION", default_value = "0 %", requires = "time_based", help_heading = "Time")]
    pub overlap: Fraction,
    /// Send each chunk so much later
    #[arg(long, value_name = "TIME", default_value = "0 s", requires = "time_based", help_heading = "Time")]
    pub delay: Interval,
    /// From chunk N on, say nothing and live on
    #[arg(long, value_name = "N", requires = "time_based", help_heading = "Misbehaviour")]
    pub silent_from: Option<u64>,
    /// Send as a device with a trigger logic unit does: numbers of 15 bits (eudet), times since T0 (aida), or both (aida-number)
    #[arg(long, value_enum, conflicts_with = "time_based", help_heading = "Triggers")]
    pub handshake: Option<HandshakeOfFeed>,
    /// With --handshake aida and aida-number: say T0 only behind so many fragments
    #[arg(long, value_name = "N", requires = "handshake", default_value_t = 0, help_heading = "Misbehaviour")]
    pub t0_after: u64,
    /// Be a level-1 processor: each fragment is a trigger with regions of interest. With --rate, those that come while the partition is busy
    /// are vetoed, and counted in the next one
    #[arg(long, conflicts_with_all = ["time_based", "beam"], help_heading = "Triggers")]
    pub level1: bool,
    /// With --level1: regions of interest per event
    #[arg(long, value_name = "N", requires = "level1", conflicts_with = "config", value_parser = clap::value_parser!(u32).range(0..=255), default_value_t = 2, help_heading = "Triggers")]
    pub rois: u32,
    /// Send what the input of this configuration has, emulated, sampled or replayed: the data of --rob, or with --level1 its triggers.
    /// Event n is the nth of that input. It ends with the input, unless input.repeat is on
    #[arg(long, value_name = "FILE", conflicts_with_all = ["time_based", "beam", "size", "spread"], help_heading = "Input")]
    pub config: Option<PathBuf>,
    /// The source identifier of the ROB, such as 0x410003
    #[arg(long, value_name = "ID", requires = "config", conflicts_with = "level1", value_parser = identifier, help_heading = "Input")]
    pub rob: Option<u32>,
    /// Change a key of that configuration, as for `weir run`
    #[arg(long, value_name = "KEY=VALUE", requires = "config", help_heading = "Input")]
    pub set: Vec<String>,
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
    /// With --beam: the clock goes faster by so many parts in a million
    #[arg(
        long,
        value_name = "PPM",
        requires = "beam",
        default_value_t = 0.0,
        allow_negative_numbers = true,
        help_heading = "Misbehaviour"
    )]
    pub drift: f64,
    /// With --beam: from event N on the clock is ahead by TIME
    #[arg(long, value_name = "N:TIME", requires = "beam", value_parser = step, help_heading = "Misbehaviour")]
    pub clock_step: Option<(u64, Duration)>,
    /// From event N on, say numbers that are higher by 1, as a source that has counted a trigger too many
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub skip_number: Vec<u64>,
    /// From event N on, say numbers that are lower by 1, as a source that has lost a trigger
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub repeat_number: Vec<u64>,
    /// Say only so many bits of each number
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=64), default_value_t = 64)]
    pub number_bits: u32,
    /// Leave out the fragment of event N; may be given several times, as those below
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub skip: Vec<u64>,
    /// Send the fragment of event N twice
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub double: Vec<u64>,
    /// Say of the fragment of event N that its transmission had an error
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub damage: Vec<u64>,
    /// Of an S-LINK: send the fragment of event N with an error in a control word
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub control_error: Vec<u64>,
    /// Of an S-LINK: leave out the control word before the fragment of event N
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub no_begin: Vec<u64>,
    /// Of an S-LINK: leave out the control word behind the fragment of event N
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub no_end: Vec<u64>,
    /// Before the fragment of event N, be killed
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub die_at: Option<u64>,
    /// Before the fragment of event N, hang
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
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
    let feed = match Feed::new(args) {
        Ok(feed) => feed,
        Err(error) => {
            complain(&format!("weir: {error}"));
            return if matches!(error, FeedError::Record(..)) { Exit::NotStarted } else { Exit::Wrong };
        }
    };
    if let Some(place) = args.at.strip_prefix("slink://") {
        return slink::feed(place, &name, feed);
    }
    if let Some(place) = args.at.strip_prefix("udp://") {
        return board::feed(place, &name, feed);
    }
    match weir_source::run(&args.at, settings, feed) {
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

fn exit_of(error: &SourceError) -> Exit {
    use weir_source::LinkError::{Address, Ambiguous, KeyMissing, NoPartition, Refused, Unproven};
    match error {
        SourceError::Link(Address { .. } | Ambiguous { .. } | KeyMissing { .. }) => Exit::Wrong,
        SourceError::Link(NoPartition { .. } | Refused { .. } | Unproven { .. }) => Exit::NotStarted,
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
    Played(#[from] PlayedError),
}

struct Feed {
    args: FeedArgs,
    skip: BTreeSet<u64>,
    /// Those that are still to be sent a second time.
    double: BTreeSet<u64>,
    damage: BTreeSet<u64>,
    /// Of the next fragment.
    number: u64,
    beam: Option<Beam>,
    played: Option<Played>,
    processor: Option<Processor>,
    /// When T0 was said.
    t0: Option<Time>,
    begun: Time,
    /// The same in ns since 1970.
    origin: u64,
    /// Whether it has said when the next chunk begins.
    has_said: bool,
    sent_in_run: u64,
    is_stopped: bool,
    record: Option<BufWriter<File>>,
}

/// Triggers at random times, the same for all sources.
struct Beam {
    triggers: Random,
    jitter: Random,
    mean_ns: u64,
    next: u64,
    now_ns: u64,
}

impl Beam {
    fn of(args: &FeedArgs) -> Option<Self> {
        let mean_ns = args.beam?.period_ns()?;
        let jitter = Random::new(args.seed() ^ BEAM_SEED);
        Some(Self { triggers: Random::new(BEAM_SEED), jitter, mean_ns, next: 0, now_ns: 0 })
    }

    /// The time of an event by the clock of the source, ns; events rise.
    fn time_of(&mut self, event: u64, args: &FeedArgs) -> u64 {
        while self.next <= event {
            // A tenth of the mean is dead time.
            self.now_ns += (self.mean_ns as f64 * (0.1 + 0.9 * self.triggers.exponential())) as u64;
            self.next += 1;
        }
        let drift = (self.now_ns as f64 * args.drift * 1e-6) as i64;
        let step = args.clock_step.filter(|(at, _)| event >= *at).map_or(Duration::ZERO, |(_, step)| step);
        let jitter = args.jitter.duration().as_nanos() as u64;
        let ahead = step.as_nanos() as u64 + self.jitter.below(jitter + 1);
        (self.now_ns + CLOCK_BEGINS_NS).saturating_add_signed(drift).saturating_add(ahead)
    }
}

impl Feed {
    fn new(args: &FeedArgs) -> Result<Self, FeedError> {
        let mut args = args.clone();
        if args.handshake == Some(HandshakeOfFeed::Eudet) {
            args.number_bits = args.number_bits.min(15);
        }
        let args = &args;
        let record = args.record.as_ref().map(File::create).transpose()?.map(BufWriter::new);
        let open = |config: &PathBuf| Played::open(config, &args.set, args.seed, args.rob, args.level1);
        let played = args.config.as_ref().map(open).transpose()?;
        Ok(Self {
            args: args.clone(),
            skip: args.skip.iter().copied().collect(),
            double: BTreeSet::new(),
            damage: args.damage.iter().copied().collect(),
            number: args.first,
            beam: Beam::of(args),
            t0: None,
            processor: args.level1.then(|| Processor::new(triggers(args, played.as_ref()))),
            played,
            begun: clock::now(),
            origin: unix_ns(),
            has_said: false,
            sent_in_run: 0,
            is_stopped: false,
            record,
        })
    }

    /// Whether the next fragment is due.
    fn is_due(&self) -> bool {
        let Some(period) = self.args.rate.and_then(Rate::period_ns) else { return true };
        let elapsed = clock::now().since(self.begun).as_nanos();
        let vetoed = self.processor.as_ref().map_or(0, Processor::vetoed);
        elapsed >= u128::from(period) * u128::from(self.sent_in_run + vetoed)
    }

    /// When the chunk of this number begins and ends.
    fn time_of(&self, number: u64) -> (u64, u64) {
        let length = self.args.chunk.ns();
        let step = length - (length as f64 * self.args.overlap.as_f64()) as u64;
        let step = self.args.rate.and_then(Rate::period_ns).unwrap_or(step).max(1);
        let begin = self.origin.saturating_add(step.saturating_mul(number - self.args.first));
        (begin, begin.saturating_add(length))
    }

    /// What it says while no chunk is due; `None` if one is.
    fn wait_for_time(&mut self) -> Option<Reading> {
        let (begin, end) = self.time_of(self.number);
        if self.args.silent_from.is_some_and(|from| self.number >= from) {
            return Some(Reading::Nothing);
        }
        if unix_ns() >= end.saturating_add(self.args.delay.ns()) {
            self.has_said = false;
            return None;
        }
        let says = !std::mem::replace(&mut self.has_said, true);
        Some(if says { Reading::Passed(begin) } else { Reading::Nothing })
    }

    /// Whether it has still to say that T0 has come.
    fn awaits_t0(&self) -> bool {
        let has_t0 = self.args.handshake.is_some_and(|handshake| handshake != HandshakeOfFeed::Eudet);
        has_t0 && self.t0.is_none() && self.sent_in_run >= self.args.t0_after
    }

    /// What it says of a fragment: number, or time since T0, or since it does not matter when.
    fn head(&self, number: u64) -> Head {
        let number = Some(self.said(number)).filter(|_| self.args.handshake != Some(HandshakeOfFeed::Aida));
        let mut head = Head { number, ..Head::default() };
        if matches!(self.args.handshake, Some(HandshakeOfFeed::Aida | HandshakeOfFeed::AidaNumber)) {
            let since = clock::now().since(self.t0.unwrap_or(Time::ZERO)).as_nanos() as u64;
            head.time = Some((since, since));
        }
        head.flags.set(Flags::CRC, self.args.checksum);
        head
    }

    /// The trigger of an event; those that came while it could not be sent are vetoed.
    fn trigger(&mut self, number: u64, slot: &mut [u8]) -> Result<Reading, Failure> {
        let period = self.args.rate.and_then(Rate::period_ns);
        let due = period.map_or(0, |period| clock::now().since(self.begun).as_nanos() / u128::from(period));
        let processor = self.processor.as_mut().expect("a processor");
        let waiting = due.saturating_sub(self.sent_in_run.into()) as u64;
        let Some((mut head, len)) = processor.trigger((number, number - self.args.first), waiting, slot) else {
            return Ok(Reading::End);
        };
        head.number = Some(self.said(number));
        head.flags.set(Flags::CRC, self.args.checksum);
        Ok(Reading::Committed(head, len))
    }

    /// Writes the payload of an event: what is played, or made up.
    fn payload(&mut self, number: u64, slot: &mut [u8]) -> Result<Payload, Failure> {
        match &mut self.played {
            Some(played) => played.payload(number - self.args.first, slot),
            None => Ok(Payload::Bytes(self.fill(number, slot), false)),
        }
    }

    /// Makes the payload of an event up, which depends on the event and the seed alone. Gives its length.
    fn fill(&self, number: u64, slot: &mut [u8]) -> usize {
        let mut random = Random::new(self.args.seed() ^ number.wrapping_mul(0x9e37_79b9));
        let mean = self.args.size.bytes();
        let size = match self.args.spread {
            Spread::Fixed => mean,
            Spread::Exponential => (mean as f64 * random.exponential()) as u64,
        };
        let len = usize::try_from(size).unwrap_or(usize::MAX).min(slot.len());
        for bytes in slot[..len].chunks_mut(8) {
            bytes.copy_from_slice(&random.next_u64().to_le_bytes()[..bytes.len()]);
        }
        len
    }

    /// Whether it sees an event. All that it may leave out lies below `--count`.
    fn sees(&self, number: u64) -> bool {
        let efficiency = self.args.efficiency.as_f64();
        let is_last = self.args.count.is_some_and(|count| number >= self.args.first.saturating_add(count));
        efficiency >= 1.0
            || is_last
            || Random::new(self.args.seed() ^ number.wrapping_mul(SIGHT_SEED)).chance(efficiency)
    }

    /// The number that it says of an event.
    fn said(&self, number: u64) -> u64 {
        let before = |events: &[u64]| events.iter().filter(|event| **event <= number).count() as u64;
        let said = (number + before(&self.args.skip_number)).saturating_sub(before(&self.args.repeat_number));
        said & (u64::MAX >> (u64::BITS - self.args.number_bits))
    }

    /// What it says of the next event; `None` if that has no data.
    fn next(&mut self, slot: &mut [u8]) -> Result<Option<Reading>, Failure> {
        while self.skip.contains(&self.number) || !self.sees(self.number) {
            self.number += 1;
        }
        let number = self.number;
        if self.args.count.is_some_and(|count| number >= self.args.first.saturating_add(count)) {
            return Ok(Some(Reading::End));
        }
        if self.awaits_t0() {
            self.t0 = Some(clock::now());
            return Ok(Some(Reading::Passed(0)));
        }
        if self.is_stopped || !(self.args.time_based || self.is_due()) {
            return Ok(Some(Reading::Nothing));
        }
        if self.args.time_based
            && let Some(waits) = self.wait_for_time()
        {
            return Ok(Some(waits));
        }
        self.misbehave(number);
        if self.processor.is_some() {
            let reading = self.trigger(number, slot)?;
            if !matches!(reading, Reading::End) {
                self.go_on(number);
            }
            return Ok(Some(reading));
        }
        let (len, is_cut) = match self.payload(number, slot)? {
            Payload::Bytes(len, is_cut) => (len, is_cut),
            Payload::End => return Ok(Some(Reading::End)),
            Payload::Absent => {
                self.go_on(number);
                return Ok(None);
            }
        };
        self.fragment(number, &slot[..len], is_cut).map(Some)
    }

    /// What it says of this payload of an event.
    fn fragment(&mut self, number: u64, payload: &[u8], is_cut: bool) -> Result<Reading, Failure> {
        let mut head = self.head(number);
        head.flags.set(Flags::CUT, is_cut);
        if self.args.time_based {
            head = Head { number: None, time: Some(self.time_of(number)), ..head };
        } else if self.args.checksum && head.time.is_none() {
            head.time = Some((clock::now().as_ns(), clock::now().as_ns()));
        }
        if let Some(beam) = &mut self.beam {
            let time = beam.time_of(number, &self.args);
            head.time = Some((time, time));
            head.number = head.number.filter(|_| !self.args.no_number);
        }
        self.write_down(number, &head, payload)?;
        head.flags.set(Flags::TRANSMISSION_ERROR, self.damage.contains(&number));
        self.go_on(number);
        Ok(Reading::Committed(head, payload.len()))
    }

    /// That nothing comes of the events before the next one, where numbers say that.
    fn passes(&self) -> Reading {
        let has_numbers = self.args.handshake.is_none() && self.args.number_bits == u64::BITS;
        if has_numbers { Reading::Idle(self.said(self.number)) } else { Reading::Nothing }
    }

    /// To the next fragment.
    fn go_on(&mut self, number: u64) {
        self.sent_in_run += 1;
        if !self.double.remove(&number) {
            self.number += 1;
        }
    }

    fn misbehave(&self, number: u64) {
        if self.args.die_at == Some(number) {
            // Nothing can be done against it, and nothing may go wrong with it.
            let _ = raise(Signal::SIGKILL);
        }
        if self.args.hang_at == Some(number) {
            let (keep, wait) = sync_channel::<()>(0);
            // The sender lives: it waits for ever.
            let _ = wait.recv();
            drop(keep);
        }
    }

    fn write_down(&mut self, number: u64, head: &Head, payload: &[u8]) -> io::Result<()> {
        let has_time = self.args.time_based || self.beam.is_some();
        let Some(record) = &mut self.record else { return Ok(()) };
        if !self.args.time_based {
            record.write_all(&number.to_le_bytes())?;
        }
        if let Some((begin, end)) = head.time.filter(|_| has_time) {
            record.write_all(&begin.to_le_bytes())?;
            record.write_all(&end.to_le_bytes())?;
        }
        record.write_all(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        record.write_all(payload)
    }
}

impl Source for Feed {
    fn start(&mut self, _: u32) -> Result<(), Failure> {
        self.is_stopped = false;
        self.number = self.args.first;
        self.beam = Beam::of(&self.args);
        self.processor = self.args.level1.then(|| Processor::new(triggers(&self.args, self.played.as_ref())));
        self.double = self.args.double.iter().copied().collect();
        self.sent_in_run = 0;
        self.t0 = None;
        self.begun = clock::now();
        self.origin = unix_ns();
        Ok(())
    }

    fn read(&mut self, slot: &mut [u8]) -> Result<Reading, Failure> {
        for absent in 0..ABSENT_TOGETHER {
            match self.next(slot)? {
                Some(Reading::Nothing) if absent > 0 => break,
                Some(reading) => return Ok(reading),
                None => {}
            }
        }
        Ok(self.passes())
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.is_stopped = true;
        match &mut self.record {
            Some(record) => Ok(record.flush()?),
            None => Ok(()),
        }
    }

    fn status(&mut self) -> String {
        match self.processor.as_ref().map_or(0, Processor::vetoed) {
            0 => format!("event {}", self.number),
            vetoed => format!("event {}, {vetoed} triggers vetoed", self.number),
        }
    }
}

/// What a processor says: the triggers that are played, or emulated ones.
fn triggers(args: &FeedArgs, played: Option<&Played>) -> Box<dyn TriggerSource + Send> {
    let emulated = || Box::new(EmulatedTriggers::new(args.rois, Generator::default(), args.seed())) as Box<_>;
    played.and_then(Played::triggers).unwrap_or_else(emulated)
}

/// `0x410003`.
fn identifier(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
    let number = number.unwrap_or_else(|| text.trim().parse());
    number.map_err(|_| format!("expected a source identifier, such as 0x410003, found {text:?}"))
}

/// `1000:1 ms`.
fn step(text: &str) -> Result<(u64, Duration), String> {
    let expected = || format!("expected an event and a time, such as \"1000:1 ms\", found {text:?}");
    let (event, time) = text.split_once(':').ok_or_else(expected)?;
    let time: Interval = time.trim().parse().map_err(|_| expected())?;
    Ok((event.trim().parse().map_err(|_| expected())?, time.duration()))
}

/// Events without data that are passed over before orders are looked at again.
const ABSENT_TOGETHER: usize = 1000;
const BEAM_SEED: u64 = 0x5ea_b0a7;
const SIGHT_SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// No time is before the begin of the clock, however slow it goes.
const CLOCK_BEGINS_NS: u64 = 1_000_000_000_000;

/// The time that hosts have in common, as far as they keep it.
#[expect(clippy::disallowed_methods, reason = "the time of an emulated chunk is the wall clock's")]
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

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
