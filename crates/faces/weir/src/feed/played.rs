//! What the input of a configuration has: the fragments of one of its ROBs, or its triggers.

use std::path::Path;

use base::bulk::{Bulk, PageSlice};
use base::ids::EventId;
use configuration::Partition;
use dataflow::level1::trigger::TriggerSource;
use dataflow::message::EventInfo;
use eformat::{EventFormat, GenericStatus, Rob};
use rol::{InputError, Inputs, Links, LinksError, ReadOutError};
use weir_source::Failure;

/// The input of a configuration: emulated, sampled or replayed.
pub(super) struct Played {
    inputs: Inputs,
    /// Of the ROB, if the feed is a detector.
    links: Option<Links>,
    /// The number of the first event of that configuration.
    first: u64,
}

/// What there is of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// So many bytes; with whether they are not all.
    Bytes(usize, bool),
    /// The ROB has nothing of this event.
    Absent,
    /// The input has no such event, nor any behind it.
    End,
}

/// Why nothing can be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlayedError {
    #[error(transparent)]
    Configuration(#[from] configuration::ConfigurationError),
    #[error("--config: {0}")]
    Input(#[from] InputError),
    #[error("--config: {0}")]
    Links(#[from] LinksError),
    #[error("--rob {rob:#x}: expected a ROB of the configuration: {}", in_words(.known))]
    Unknown { rob: u32, known: Vec<u32> },
    #[error("--config: expected --rob with one of {}, or --level1 for the triggers", in_words(.known))]
    NoRob { known: Vec<u32> },
    #[error(
        "--config: level1.source has no triggers to play: expected \"emulator\", \"sample\", \"replay\" or \"file\""
    )]
    NoTriggers,
}

impl Played {
    /// Of this ROB; without one, the triggers. A seed takes the place of that of the configuration.
    pub(super) fn open(
        config: &Path,
        set: &[String],
        seed: Option<u64>,
        rob: Option<u32>,
        is_level1: bool,
    ) -> Result<Self, PlayedError> {
        let mut partition = Partition::load(config, set)?;
        partition.run.seed = seed.unwrap_or(partition.run.seed);
        let inputs = Inputs::open(&partition)?;
        let known: Vec<u32> = inputs.shares().concat();
        let links = match rob {
            Some(rob) if !known.contains(&rob) => return Err(PlayedError::Unknown { rob, known }),
            Some(rob) => Some(inputs.link(rob)?),
            None if !is_level1 => return Err(PlayedError::NoRob { known }),
            None if inputs.triggers().is_none() => return Err(PlayedError::NoTriggers),
            None => None,
        };
        Ok(Self { inputs, links, first: u64::from(partition.run.first_lvl1_id) })
    }

    /// Its triggers, from the first one on.
    pub(super) fn triggers(&self) -> Option<Box<dyn TriggerSource + Send>> {
        self.inputs.triggers()
    }

    /// Writes the data of an event, the `ordinal`-th from 0, into the slot.
    ///
    /// # Panics
    /// The triggers are played, and no ROB.
    pub(super) fn payload(&mut self, ordinal: u64, slot: &mut [u8]) -> Result<Payload, Failure> {
        let links = self.links.as_mut().expect("a ROB is played");
        let info = EventInfo { event: EventId(self.first + ordinal), ordinal, ..EventInfo::default() };
        let mut made = Ok(Payload::Absent);
        let read = links.read_out(&info, &mut |_, _, bulk| made = data(&bulk, slot));
        match read {
            Err(ReadOutError::BehindEnd { .. }) => Ok(Payload::End),
            read => read.map_err(Failure::from).and(made),
        }
    }
}

/// The data of a fragment, as far as there is room.
fn data(fragment: &Bulk, slot: &mut [u8]) -> Result<Payload, Failure> {
    let bytes: Vec<u8> = fragment.slices().iter().flat_map(PageSlice::as_bytes).copied().collect();
    let rob = Rob::parse(EventFormat::V5, &bytes)?;
    if rob.status().generic().contains(GenericStatus::DUMMY) {
        return Ok(Payload::Absent);
    }
    let rod = rob.rod()?;
    let len = rod.data().len().min(slot.len());
    slot[..len].copy_from_slice(&rod.data()[..len]);
    Ok(Payload::Bytes(len, len < rod.data().len()))
}

/// A few of them.
fn in_words(robs: &[u32]) -> String {
    let mut words: Vec<String> = robs.iter().take(TOLD).map(|rob| format!("{rob:#x}")).collect();
    if robs.len() > TOLD {
        words.push(format!("… ({} in all)", robs.len()));
    }
    words.join(", ")
}

const TOLD: usize = 8;

#[cfg(test)]
mod tests {
    use std::fs;

    use dataflow::level1::trigger::Trigger;
    use testkit::TempDir;

    use super::Played;

    #[test]
    fn triggers_and_data_are_drawn_from_the_seed() {
        let directory = TempDir::new("played");
        let config = directory.join("emulated.toml");
        let text = "[partition]\nname = \"p\"\n[level1]\n[ros]\ncount = 1\nfragment = { kind = \"exponential\", mean = \"1 kB\" }\n\
                    [sfi]\ncount = 1\n";
        fs::write(&config, text).unwrap();
        let set = [];
        let triggers = |seed| -> Vec<Trigger> {
            let played = Played::open(&config, &set, seed, None, true).unwrap();
            let mut triggers = played.triggers().unwrap();
            (0..10).map(|ordinal| triggers.trigger(ordinal).unwrap()).collect()
        };
        let sizes = |seed| -> Vec<_> {
            let mut played = Played::open(&config, &set, seed, Some(0x51_0000), false).unwrap();
            (0..10).map(|ordinal| played.payload(ordinal, &mut [0; 20_000]).unwrap()).collect()
        };
        assert_eq!(triggers(None), triggers(Some(1)), "run.seed is 1");
        assert_ne!(triggers(Some(1)), triggers(Some(2)));
        assert_eq!(sizes(Some(2)), sizes(Some(2)));
        assert_ne!(sizes(Some(1)), sizes(Some(2)));
    }
}
