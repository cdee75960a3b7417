//! What a configuration asks for.

use std::path::Path;
use std::sync::Arc;

use base::ids::EventId;
use configuration::{
    Checksum, FRAGMENT_OVERHEAD_BYTES, Input, Level1, Level1Source, Mix, Partition, RosInput, SizeDistribution,
};
use dataflow::level1::trigger::TriggerSource;

use crate::deal::deal;
use crate::emulator::{EmulatedTriggers, Emulation, emulated_source_ids};
use crate::items::{ItemsError, by_bit};
use crate::links::Links;
use crate::parameters::{LinkParameters, LinksError};
use crate::replay::{Replay, ReplayTriggers};
use crate::replay_error::ReplayError;
use crate::sample::{Mixture, Sample, SampleError, SampleInput, SampleTriggers};
use crate::trigger_file::{FileTriggers, TriggerFileError};

/// The input of a whole partition. Open it once per process and make the links and triggers that live there from it;
/// clones share what was read.
#[derive(Clone, Debug)]
pub struct Inputs {
    source: Source,
    repeat: bool,
    shares: Vec<Vec<u32>>,
    parameters: LinkParameters,
    triggers: Triggers,
}

/// Why an input cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A sample.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// Recorded files.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// Prescales of level-1 items.
    #[error(transparent)]
    Items(#[from] ItemsError),
    /// Events that are too large once they are padded.
    #[error(
        "sfi.max_event_size is {max_bytes} bytes, expected at least {needed_bytes}: the largest event of the sample with fragments of input.pad_to"
    )]
    EventTooLarge {
        /// Bytes of the largest event, its fragments' headers included.
        needed_bytes: u64,
        /// The limit.
        max_bytes: u64,
    },
    /// Triggers of a text file.
    #[error(transparent)]
    TriggerFile(#[from] TriggerFileError),
    /// More read-out systems than links.
    #[error("ros.count is {ros_count}, but the input has {links} links: expected at most one read-out system per link")]
    TooManySystems {
        /// Read-out systems.
        ros_count: usize,
        /// Links of the input.
        links: usize,
    },
    /// Sizes of emulated fragments that are not complete.
    #[error("ros.fragment lacks a key that its kind needs")]
    Sizes,
    /// More emulated links than source identifiers.
    #[error("ros.count × ros.robs is {links}, expected at most 65536: a sub-detector has no more modules")]
    TooManyLinks {
        /// Links asked for.
        links: u64,
    },
}

/// Where triggers come from.
#[derive(Clone, Debug)]
enum Triggers {
    None,
    Emulated(EmulatedTriggers),
    /// From the input that fragments come from.
    Input,
    File(FileTriggers),
}

impl Triggers {
    fn open(level1: &Level1, seed: u64, repeat: bool) -> Result<Self, InputError> {
        Ok(match (level1.source, &level1.file) {
            (Level1Source::Emulator, _) => {
                Self::Emulated(EmulatedTriggers::new(level1.rois_per_event, level1.generator.clone(), seed))
            }
            (Level1Source::Sample | Level1Source::Replay, _) => Self::Input,
            (Level1Source::File, Some(path)) => Self::File(FileTriggers::read(Path::new(path), repeat)?),
            (Level1Source::File, None) | (Level1Source::External | Level1Source::Link | Level1Source::Time, _) => {
                Self::None
            }
        })
    }
}

#[derive(Clone, Debug)]
enum Source {
    Emulation(Emulation),
    Sample(SampleInput),
    Replay(Arc<Replay>),
    /// Sources that send by themselves, and the input whose data some of them play.
    Pushed(Vec<u32>, Option<Box<Inputs>>),
}

impl Inputs {
    /// Opens the input that `ros.input` names: reads a sample into memory, makes the index of recorded files.
    ///
    /// # Errors
    /// Files that cannot be used; more read-out systems than links.
    pub fn open(partition: &Partition) -> Result<Self, InputError> {
        let Partition { run, input, ros, level1, transport, .. } = partition;
        let source = match ros.input {
            RosInput::Emulator => {
                let sizes: SizeDistribution = ros.fragment.distribution().ok_or(InputError::Sizes)?;
                Source::Emulation(Emulation { sizes, seed: run.seed, payload: ros.fragment.payload })
            }
            RosInput::Sample => Source::Sample(sample_input(partition)?),
            RosInput::Replay => Source::Replay(Arc::new(replay(input)?)),
            RosInput::Links => {
                let ids = partition.source.iter().enumerate().map(|(place, source)| source.source_id(place));
                Source::Pushed(ids.collect(), played(partition)?.map(Box::new))
            }
        };
        let triggers = match level1 {
            Some(level1) => Triggers::open(level1, run.seed, input.repeat)?,
            None => Triggers::None,
        };
        let source_ids = match &source {
            Source::Emulation(_) => {
                let links = u64::from(ros.count) * u64::from(ros.robs);
                if links > 1 << 16 {
                    return Err(InputError::TooManyLinks { links });
                }
                emulated_source_ids(ros.sub_detector, links as usize)
            }
            Source::Sample(input) => input.sample().source_ids().to_vec(),
            Source::Replay(replay) => replay.source_ids().to_vec(),
            Source::Pushed(ids, _) => ids.clone(),
        };
        let (ros_count, links) = (ros.count as usize, source_ids.len());
        if ros_count == 0 || ros_count > links {
            return Err(InputError::TooManySystems { ros_count, links });
        }
        let parameters = LinkParameters {
            run_number: run.number(),
            adler32: ros.checksum == Checksum::Adler32,
            page_bytes: usize::try_from(ros.page_size.bytes()).unwrap_or(usize::MAX),
            pages: ros.pages as usize,
            shared: transport.shares_fragments(),
            first: EventId(u64::from(run.first_lvl1_id)),
            in_order: level1.is_some(),
            ..LinkParameters::default()
        };
        Ok(Self { source, repeat: input.repeat, shares: deal(&source_ids, ros_count), parameters, triggers })
    }

    /// The same for a run of another number.
    #[must_use]
    pub fn of_run(mut self, number: u32) -> Self {
        self.parameters.run_number = number;
        self
    }

    /// Source identifiers of the links of each read-out system.
    pub fn shares(&self) -> &[Vec<u32>] {
        &self.shares
    }

    /// The links of read-out system `ros`, counted from 0, with `ros.pages` pages for each of them. Each has
    /// `pages_in_flight` pages more, for fragments that the ROS has cleared and somebody in the process still holds.
    ///
    /// # Errors
    /// No memory for the pages, or pages that are too short; sources that send by themselves.
    ///
    /// # Panics
    /// If there is no such read-out system.
    pub fn links(&self, ros: usize, pages_in_flight: usize) -> Result<Links, LinksError> {
        let source_ids = self.shares[ros].clone();
        let pages = source_ids.len().saturating_mul(self.parameters.pages.saturating_add(pages_in_flight));
        let parameters =
            LinkParameters { name: format!("ros-{}", ros + 1), source_ids, pages, ..self.parameters.clone() };
        match &self.source {
            Source::Emulation(emulation) => Links::emulator(parameters, emulation),
            Source::Sample(input) => Links::sample(parameters, input.clone()),
            Source::Replay(replay) => Links::replay(parameters, Arc::clone(replay), self.repeat),
            Source::Pushed(..) => Err(LinksError::Pushed),
        }
    }

    /// The link of this ROB alone, for somebody who takes its fragments one after the other.
    ///
    /// # Errors
    /// As [`Self::links`]; no such link.
    pub fn link(&self, source_id: u32) -> Result<Links, LinksError> {
        let one = Self { shares: vec![vec![source_id]], ..self.clone() };
        one.links(0, 0)
    }

    /// The triggers that `level1.source` names; `None` without `[level1]`, or if they come over the network or a link.
    pub fn triggers(&self) -> Option<Box<dyn TriggerSource + Send>> {
        match (&self.triggers, &self.source) {
            (Triggers::Emulated(triggers), _) => Some(Box::new(triggers.clone())),
            (Triggers::File(triggers), _) => Some(Box::new(triggers.clone())),
            (Triggers::Input, Source::Sample(input)) => Some(Box::new(SampleTriggers::new(input.clone()))),
            (Triggers::Input, Source::Replay(replay)) => {
                Some(Box::new(ReplayTriggers::new(Arc::clone(replay), self.repeat)))
            }
            _ => None,
        }
    }

    /// The input whose data sources play that would send by themselves.
    pub fn played(&self) -> Option<&Self> {
        match &self.source {
            Source::Pushed(_, played) => played.as_deref(),
            _ => None,
        }
    }

    /// The number of the first event.
    pub fn first(&self) -> EventId {
        self.parameters.first
    }

    /// The sample, if it is the input.
    pub fn sample(&self) -> Option<&SampleInput> {
        match &self.source {
            Source::Sample(input) => Some(input),
            _ => None,
        }
    }

    /// The recorded files, if they are the input.
    pub fn replay(&self) -> Option<&Replay> {
        match &self.source {
            Source::Replay(replay) => Some(replay),
            _ => None,
        }
    }
}

/// The input whose data sources of a partition play.
fn played(partition: &Partition) -> Result<Option<Inputs>, InputError> {
    let Some(input) = partition.played_input() else { return Ok(None) };
    let mut partition = partition.clone();
    (partition.ros.input, partition.ros.count, partition.ros.pages) = (input, 1, PAGES_PLAYED);
    (partition.level1, partition.source) = (None, Vec::new());
    Inputs::open(&partition).map(Some)
}

fn replay(input: &Input) -> Result<Replay, ReplayError> {
    let replay = Replay::open(&input.files)?;
    if input.repeat {
        replay.can_repeat()?;
    }
    Ok(replay)
}

fn sample_input(partition: &Partition) -> Result<SampleInput, InputError> {
    let Partition { run, input, sfi, .. } = partition;
    let sample = Arc::new(Sample::load(&input.files)?);
    let mut made = SampleInput::new(Arc::clone(&sample), input.repeat);
    if let Some(mix) = input.mix {
        let prescales = match &input.detector {
            Some(detector) => by_bit(Path::new(detector), &input.prescales)?,
            None => Vec::new(),
        };
        made = made.mixed(Arc::new(match mix {
            Mix::CrossSection => Mixture::new(&sample, &prescales, run.seed)?,
            Mix::Equal => Mixture::equal(&sample, &prescales, run.seed)?,
        }));
    }
    if let Some(pad_to) = input.pad_to {
        let pad_bytes = usize::try_from(pad_to.bytes()).unwrap_or(usize::MAX);
        let (needed_bytes, max_bytes) = (largest_event(&sample, pad_bytes), sfi.max_event_size.bytes());
        if needed_bytes > max_bytes {
            return Err(InputError::EventTooLarge { needed_bytes, max_bytes });
        }
        made = made.padded(pad_bytes);
    }
    Ok(made)
}

/// Who plays a link copies each fragment before it takes the next one.
const PAGES_PLAYED: u32 = 2;

/// Bytes of the largest event with padded fragments and their headers.
fn largest_event(sample: &Sample, pad_bytes: usize) -> u64 {
    let fragment = |event, source| sample.payload(event, source).len().max(pad_bytes) as u64 + FRAGMENT_OVERHEAD_BYTES;
    let sources = 0..sample.source_ids().len();
    let event = |event| sources.clone().map(|source| fragment(event, source)).fold(0, u64::saturating_add);
    (0..sample.events()).map(event).max().unwrap_or(0)
}
