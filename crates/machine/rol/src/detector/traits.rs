//! What a detector is, and what it sends.

use std::collections::BTreeSet;

use configuration::{Fraction, SizeSpread};
use dataflow::level1::trigger::TriggerSource;

use super::played::Played;

/// Is called with the event before each fragment.
pub type Hook = Box<dyn FnMut(u64) + Send>;

/// What a detector is, and what it sends.
pub struct Traits {
    /// What its fragments hold.
    pub content: Content,
    /// What payloads, sizes and losses are drawn from.
    pub seed: u64,
    /// The number of the first event.
    pub first: u64,
    /// Events in a run, if it ends by itself.
    pub count: Option<u64>,
    /// When fragments come; chunks come when their time is over.
    pub pace: Pace,
    /// The part of the events that it has data of, at random.
    pub efficiency: Fraction,
    /// Whether it says the number of an event.
    pub has_numbers: bool,
    /// What it says of event 0.
    pub counts_from: i64,
    /// Bits of the numbers that it says: 1 to 64.
    pub number_bits: u32,
    /// Whether it sends checksums.
    pub checksum: bool,
    /// Whether events have the times of a beam.
    pub beam: Option<Beams>,
    /// Whether it sends chunks of time instead of events.
    pub chunks: Option<Chunks>,
    /// Whether it says when T0 comes. Its times are those since then, unless it sees a beam.
    pub t0: Option<SinceT0>,
    /// Whether its status says which event it is at.
    pub says_event: bool,
    /// How it misbehaves.
    pub mistakes: Mistakes,
}

impl Default for Traits {
    /// 1 kB of made-up data for each event, as fast as they are taken.
    fn default() -> Self {
        Self {
            content: Content::MadeUp { mean_bytes: 1000, spread: SizeSpread::Fixed },
            seed: 1,
            first: 0,
            count: None,
            pace: Pace::Free,
            efficiency: Fraction::ONE,
            has_numbers: true,
            counts_from: 0,
            number_bits: u64::BITS,
            checksum: false,
            beam: None,
            chunks: None,
            t0: None,
            says_event: true,
            mistakes: Mistakes::default(),
        }
    }
}

/// What fragments hold.
pub enum Content {
    /// Random bytes.
    MadeUp {
        /// How many, or their mean.
        mean_bytes: u64,
        /// How their number is distributed. It is cut at the longest payload of the link.
        spread: SizeSpread,
    },
    /// What a ROB has in the input of a configuration.
    Played(Box<Played>),
    /// Triggers with regions of interest, of a level-1 processor: made anew for each run.
    Triggers(Box<dyn Fn() -> Box<dyn TriggerSource + Send> + Send>),
}

/// When fragments come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as the partition takes them.
    Free,
    /// In equal distances.
    Every {
        /// From one to the next.
        period_ns: u64,
    },
    /// With the triggers of the beam, which the fragments are. Those that come when the run has stopped are none.
    Trigger,
    /// With the triggers of the beam, or behind them.
    Beam {
        /// So much later. What is delayed when the run stops is sent then.
        delay_ns: u64,
    },
}

/// Triggers at random times. All detectors with the same seed and mean see the same ones.
#[derive(Clone, Debug)]
pub struct Beams {
    /// What the triggers are drawn from.
    pub seed: u64,
    /// From one trigger to the next.
    pub mean_ns: u64,
    /// The clock is ahead by at most so much, at random.
    pub jitter_ns: u64,
    /// The clock goes faster by so many parts in a million.
    pub drift_ppm: f64,
    /// From this event on the clock is ahead by so many ns.
    pub clock_step: Option<(u64, u64)>,
}

/// How time is cut.
#[derive(Clone, Debug)]
pub struct Chunks {
    /// From begin to end.
    pub length_ns: u64,
    /// From one begin to the next.
    pub every_ns: u64,
    /// A chunk is sent so long after its end. What is delayed when the run stops is sent then.
    pub delay_ns: u64,
    /// From this chunk on it says nothing, and lives on.
    pub silent_from: Option<u64>,
}

/// Times since T0.
#[derive(Clone, Copy, Debug)]
pub struct SinceT0 {
    /// T0 is said behind so many fragments.
    pub after: u64,
}

/// How a detector misbehaves, by events.
#[derive(Clone, Debug, Default)]
pub struct Mistakes {
    /// No fragment.
    pub skip: BTreeSet<u64>,
    /// It comes twice.
    pub double: BTreeSet<u64>,
    /// It says that its transmission had an error.
    pub damage: BTreeSet<u64>,
    /// From here on numbers are higher by 1.
    pub skip_number: Vec<u64>,
    /// From here on numbers are lower by 1.
    pub repeat_number: Vec<u64>,
}
