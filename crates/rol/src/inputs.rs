//! What a configuration asks for.

use std::sync::Arc;

use configuration::{Checksum, Level1Source, Partition, RosInput, SizeDistribution};
use dataflow::ids::EventId;
use dataflow::level1::trigger::TriggerSource;

use crate::deal::deal;
use crate::emulator::{EmulatedTriggers, Emulation, emulated_source_ids};
use crate::links::{LinkParameters, Links, LinksError};
use crate::replay::{Replay, ReplayError, ReplayTriggers};
use crate::sample::{Sample, SampleError, SampleTriggers};

/// The input of a whole partition. Open it once per process and make the links and triggers that live there from it;
/// clones share what was read.
#[derive(Clone, Debug)]
pub struct Inputs {
    source: Source,
    repeat: bool,
    shares: Vec<Vec<u32>>,
    parameters: LinkParameters,
    level1: Option<(Level1Source, EmulatedTriggers)>,
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

#[derive(Clone, Debug)]
enum Source {
    Emulation(Emulation),
    Sample(Arc<Sample>),
    Replay(Arc<Replay>),
}

impl Inputs {
    /// Opens the input that `ros.input` names: reads a sample into memory, makes the index of recorded files.
    ///
    /// # Errors
    /// Files that cannot be used; more read-out systems than links.
    pub fn open(partition: &Partition) -> Result<Self, InputError> {
        let Partition { run, input, ros, level1, .. } = partition;
        let source = match ros.input {
            RosInput::Emulator => {
                let sizes: SizeDistribution = ros.fragment.distribution().ok_or(InputError::Sizes)?;
                Source::Emulation(Emulation { sizes, seed: run.seed })
            }
            RosInput::Sample => Source::Sample(Arc::new(Sample::load(&input.files)?)),
            RosInput::Replay => Source::Replay(Arc::new(Replay::open(&input.files)?)),
        };
        let source_ids = match &source {
            Source::Emulation(_) => {
                let links = u64::from(ros.count) * u64::from(ros.robs);
                if links > 1 << 16 {
                    return Err(InputError::TooManyLinks { links });
                }
                emulated_source_ids(ros.sub_detector, links as usize)
            }
            Source::Sample(sample) => sample.source_ids().to_vec(),
            Source::Replay(replay) => replay.source_ids().to_vec(),
        };
        let (ros_count, links) = (ros.count as usize, source_ids.len());
        if ros_count == 0 || ros_count > links {
            return Err(InputError::TooManySystems { ros_count, links });
        }
        let parameters = LinkParameters {
            run_number: run.number,
            adler32: ros.checksum == Checksum::Adler32,
            page_bytes: usize::try_from(ros.page_size.bytes()).unwrap_or(usize::MAX),
            pages: ros.pages as usize,
            first: EventId(u64::from(run.first_lvl1_id)),
            in_order: level1.is_some(),
            ..LinkParameters::default()
        };
        let level1 =
            level1.as_ref().map(|level1| (level1.source, EmulatedTriggers::new(level1.rois_per_event, run.seed)));
        Ok(Self { source, repeat: input.repeat, shares: deal(&source_ids, ros_count), parameters, level1 })
    }

    /// Source identifiers of the links of each read-out system.
    pub fn shares(&self) -> &[Vec<u32>] {
        &self.shares
    }

    /// The links of read-out system `ros`, counted from 0, with `ros.pages` pages for each of them and `pages_in_flight`
    /// pages for each beside these: for fragments that the ROS has cleared and somebody in the process still holds.
    ///
    /// # Errors
    /// No memory for the pages, or pages that are too short.
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
            Source::Sample(sample) => Links::sample(parameters, Arc::clone(sample), self.repeat),
            Source::Replay(replay) => Links::replay(parameters, Arc::clone(replay), self.repeat),
        }
    }

    /// The triggers that `level1.source` names; `None` without `[level1]`, or if its source is not the open input.
    pub fn triggers(&self) -> Option<Box<dyn TriggerSource + Send>> {
        match (&self.level1, &self.source) {
            (Some((Level1Source::Emulator, triggers)), _) => Some(Box::new(triggers.clone())),
            (Some((Level1Source::Sample, _)), Source::Sample(sample)) => {
                Some(Box::new(SampleTriggers::new(Arc::clone(sample), self.repeat)))
            }
            (Some((Level1Source::Replay, _)), Source::Replay(replay)) => {
                Some(Box::new(ReplayTriggers::new(Arc::clone(replay), self.repeat)))
            }
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
