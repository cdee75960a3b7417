//! `weir feed`: an emulated detector as a process of its own. It can misbehave, for tests of what stands behind it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use base::random::Random;
use base::time::Time;
use clap::{Args, ValueEnum};
use configuration::{Interval, Rate, Size};
use nix::sys::signal::{Signal, raise};
use terminal::{Exit, complain};
use transport::clock;
use weir_source::{Failure, Flags, Head, Reading, Settings, Source, SourceError, key_of};

/// Examples of `weir feed`.
pub const EXAMPLES: &str = "\
Examples:
  weir feed shm:tlu --rate '1 kHz'   fragments of the events 0, 1, 2 …
  weir feed shm:telescope --rate '1 kHz' --size '2 kB' --spread exponential
  weir feed tcp://127.0.0.1:7101 --name board --key-file key --count 1000
  weir feed shm:telescope --skip 500 --double 600 --damage 700 --die-at 800

Exit status: 0 the partition has ended the link; 1 wrong usage; 2 no partition; 3 the link broke, or the source did not take orders.";

/// `weir feed`.
#[derive(Clone, Debug, Args)]
pub struct FeedArgs {
    /// Where the partition listens: shm:NAME, shm:/path.sock or tcp://HOST:PORT
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
    /// What payloads and sizes are drawn from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Send the time and a checksum with each fragment
    #[arg(long)]
    pub checksum: bool,
    /// Write each fragment to FILE, too: number (8 bytes) and length (4 bytes), little-endian, then the payload
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Leave out the fragment of event N; may be given several times, as those below
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub skip: Vec<u64>,
    /// Send the fragment of event N twice
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub double: Vec<u64>,
    /// Say of the fragment of event N that its transmission had an error
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub damage: Vec<u64>,
    /// Before the fragment of event N, be killed
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub die_at: Option<u64>,
    /// Before the fragment of event N, hang
    #[arg(long, value_name = "N", help_heading = "Misbehaviour")]
    pub hang_at: Option<u64>,
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
            complain(&format!("weir: --record: {error}"));
            return Exit::NotStarted;
        }
    };
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

struct Feed {
    args: FeedArgs,
    skip: BTreeSet<u64>,
    /// Those that are still to be sent a second time.
    double: BTreeSet<u64>,
    damage: BTreeSet<u64>,
    /// Of the next fragment.
    number: u64,
    begun: Time,
    sent_in_run: u64,
    is_stopped: bool,
    record: Option<BufWriter<File>>,
}

impl Feed {
    fn new(args: &FeedArgs) -> io::Result<Self> {
        let record = args.record.as_ref().map(File::create).transpose()?.map(BufWriter::new);
        Ok(Self {
            args: args.clone(),
            skip: args.skip.iter().copied().collect(),
            double: BTreeSet::new(),
            damage: args.damage.iter().copied().collect(),
            number: args.first,
            begun: clock::now(),
            sent_in_run: 0,
            is_stopped: false,
            record,
        })
    }

    /// Whether the next fragment is due.
    fn is_due(&self) -> bool {
        let Some(period) = self.args.rate.and_then(Rate::period_ns) else { return true };
        let due = u64::try_from(Duration::from_nanos(period).as_nanos().saturating_mul(self.sent_in_run.into()));
        due.is_ok_and(|due| clock::now().since(self.begun) >= Duration::from_nanos(due))
    }

    /// Writes the payload of an event, which depends on the event and the seed alone. Gives its length.
    fn fill(&self, number: u64, slot: &mut [u8]) -> usize {
        let mut random = Random::new(self.args.seed ^ number.wrapping_mul(0x9e37_79b9));
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

    fn write_down(&mut self, number: u64, payload: &[u8]) -> io::Result<()> {
        let Some(record) = &mut self.record else { return Ok(()) };
        record.write_all(&number.to_le_bytes())?;
        record.write_all(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        record.write_all(payload)
    }
}

impl Source for Feed {
    fn start(&mut self, _: u32) -> Result<(), Failure> {
        self.is_stopped = false;
        self.number = self.args.first;
        self.double = self.args.double.iter().copied().collect();
        self.sent_in_run = 0;
        self.begun = clock::now();
        Ok(())
    }

    fn read(&mut self, slot: &mut [u8]) -> Result<Reading, Failure> {
        while self.skip.contains(&self.number) {
            self.number += 1;
        }
        let number = self.number;
        if self.args.count.is_some_and(|count| number >= self.args.first.saturating_add(count)) {
            return Ok(Reading::End);
        }
        if self.is_stopped || !self.is_due() {
            return Ok(Reading::Nothing);
        }
        self.misbehave(number);
        let len = self.fill(number, slot);
        self.write_down(number, &slot[..len])?;
        let mut head = Head { number: Some(number), ..Head::default() };
        if self.args.checksum {
            head.time = Some((clock::now().as_ns(), clock::now().as_ns()));
            head.flags |= Flags::CRC;
        }
        head.flags.set(Flags::TRANSMISSION_ERROR, self.damage.contains(&number));
        self.sent_in_run += 1;
        if !self.double.remove(&number) {
            self.number += 1;
        }
        Ok(Reading::Committed(head, len))
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.is_stopped = true;
        match &mut self.record {
            Some(record) => Ok(record.flush()?),
            None => Ok(()),
        }
    }

    fn status(&mut self) -> String {
        format!("event {}", self.number)
    }
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
