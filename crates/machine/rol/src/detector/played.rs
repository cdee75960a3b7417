//! The data of one ROB of an input, emulated, sampled or replayed.

use base::bulk::{Bulk, PageSlice};
use base::ids::EventId;
use dataflow::message::EventInfo;
use eformat::{EventFormat, GenericStatus, Rob};
use weir_source::Failure;

use crate::inputs::Inputs;
use crate::links::Links;
use crate::parameters::{LinksError, ReadOutError};

/// One ROB of an input.
pub struct Played {
    links: Links,
    /// The number of the first event of that input.
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

/// Why a ROB cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum PlayedError {
    /// The input has none of this name.
    #[error("{rob:#x}: expected a ROB of the input: {}", in_words(.known))]
    Unknown {
        /// Source identifier.
        rob: u32,
        /// Those of the input.
        known: Vec<u32>,
    },
    /// Its links.
    #[error(transparent)]
    Links(#[from] LinksError),
}

impl Played {
    /// The ROB with this source identifier.
    ///
    /// # Errors
    /// The input has no such ROB, or pages are too short for it.
    pub fn new(inputs: &Inputs, rob: u32) -> Result<Self, PlayedError> {
        let known: Vec<u32> = inputs.shares().concat();
        if !known.contains(&rob) {
            return Err(PlayedError::Unknown { rob, known });
        }
        Ok(Self { links: inputs.link(rob)?, first: inputs.first().0 })
    }

    /// Writes the data of an event, the `ordinal`-th from 0, into the slot.
    pub(super) fn payload(&mut self, ordinal: u64, slot: &mut [u8]) -> Result<Payload, Failure> {
        let info = EventInfo { event: EventId(self.first + ordinal), ordinal, ..EventInfo::default() };
        let mut made = Ok(Payload::Absent);
        let read = self.links.read_out(&info, &mut |_, _, bulk| made = data(&bulk, slot));
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

/// A few source identifiers, for people.
pub fn in_words(robs: &[u32]) -> String {
    let mut words: Vec<String> = robs.iter().take(TOLD).map(|rob| format!("{rob:#x}")).collect();
    if robs.len() > TOLD {
        words.push(format!("… ({} in all)", robs.len()));
    }
    words.join(", ")
}

const TOLD: usize = 8;

#[cfg(test)]
mod tests {
    use configuration::Partition;
    use dataflow::level1::trigger::Trigger;

    use super::{Inputs, Played};

    #[test]
    fn triggers_and_data_are_drawn_from_the_seed() {
        let inputs = |seed: u64| {
            let text = "[partition]\nname = \"p\"\n[level1]\n[ros]\ncount = 1\n\
                        fragment = { kind = \"exponential\", mean = \"1 kB\" }\n[sfi]\ncount = 1\n";
            Inputs::open(&Partition::parse("p.toml", text, &[format!("run.seed={seed}")]).unwrap()).unwrap()
        };
        let triggers = |seed| -> Vec<Trigger> {
            let mut triggers = inputs(seed).triggers().unwrap();
            (0..10).map(|ordinal| triggers.trigger(ordinal).unwrap()).collect()
        };
        let sizes = |seed| -> Vec<_> {
            let mut played = Played::new(&inputs(seed), 0x51_0000).unwrap();
            (0..10).map(|ordinal| played.payload(ordinal, &mut [0; 20_000]).unwrap()).collect()
        };
        assert_ne!(triggers(1), triggers(2));
        assert_eq!(sizes(2), sizes(2));
        assert_ne!(sizes(1), sizes(2));
    }
}
