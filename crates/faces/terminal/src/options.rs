//! Options that several commands take.

use clap::Args;
use configuration::{Interval, Partition, Size};

/// `--events`, `--duration` and `--size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub struct Limits {
    /// End the run after N level-1 events, such as 10000, 10k or 1M; replaces all limits in the file
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = events)]
    pub events: Option<u64>,
    /// End the run after this time, such as 10s or "250 ms"; replaces all limits in the file
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub duration: Option<Interval>,
    /// End the run when this much is recorded, such as 500MB or "2 GB"; replaces all limits in the file
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, value_parser = size)]
    pub size: Option<Size>,
}

impl Limits {
    /// Puts these limits in the place of those in the configuration; without any, the configuration keeps its own.
    pub fn apply(&self, partition: &mut Partition) {
        if *self != Self::default() {
            partition.run.events = self.events;
            partition.run.duration = self.duration;
            partition.run.size = self.size;
        }
    }
}

/// `--set key=value` or `--set @FILE`, any number of times.
#[derive(Clone, Debug, Default, Args)]
pub struct Overrides {
    /// Change a key of the configuration: a TOML value, else a bare string; with @FILE all keys of a file. May be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
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

/// A number of bytes above 0.
fn size(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    if size.bytes() == 0 { Err("expected a size above 0".to_owned()) } else { Ok(size) }
}
