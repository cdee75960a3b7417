//! Read-out links (ROLs): the inputs of a read-out system and of level 1.
//!
//! [`Links`] are all links of one read-out system. For an event they put one ROB fragment per link into the pages of a
//! fixed pool. A fragment of each kind of input is one contiguous slice. It has a ROB header of format 5.0 with one
//! status word, ROD, and an Adler-32 if configured (format note §5). [`Inputs`] opens what a configuration asks for.
//!
//! | kind | fragments | triggers |
//! |---|---|---|
//! | [`Emulation`] | sizes by a distribution, data a fixed pattern | [`EmulatedTriggers`] |
//! | [`Sample`] | simulated collisions from Parquet files | [`SampleTriggers`] |
//! | [`Replay`] | the RODs of recorded events, and one opaque record per event | [`ReplayTriggers`] |
//!
//! What a link delivers is a function of its configuration and the event alone, so every run can be repeated.
//!
//! ```
//! use configuration::{Payload, Size, SizeDistribution};
//! use dataflow::message::EventInfo;
//! use rol::{Emulation, LinkParameters, Links, deal, emulated_source_ids};
//!
//! let shares = deal(&emulated_source_ids(0x51, 16), 4);
//! let sizes = SizeDistribution::Fixed(Size::from_bytes(1000));
//! let emulation = Emulation { sizes, payload: Payload::Prefilled, seed: 1 };
//! let parameters = LinkParameters { source_ids: shares[3].clone(), pages: 8, ..LinkParameters::default() };
//! let mut links = Links::emulator(parameters, &emulation)?;
//!
//! let mut fragments = Vec::new();
//! links.read_out(&EventInfo::default(), &mut |_link, head, bulk| fragments.push((head, bulk)))?;
//! assert_eq!(fragments.len(), 4);
//! let fragment = eformat::check_rob(fragments[0].1.slices()[0].as_bytes())?;
//! assert_eq!((fragment.source_id.0, fragment.data.len()), (0x0051_000c, 1000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod deal;
pub mod detector;
mod emulator;
mod fragments;
mod inputs;
mod items;
mod links;
mod parameters;
mod playing;
mod preprocessing;
mod pushed;
mod replay;
mod replay_error;
mod sample;
pub mod slink;
mod timed;
mod trigger_file;
mod trigger_record;
mod whole;
mod windowing;

pub use deal::deal;
pub use emulator::{EmulatedTriggers, Emulation, FragmentSizes, emulated_source_ids, emulated_word, write_emulated};
pub use inputs::{InputError, Inputs};
pub use items::ItemsError;
pub use links::{LinkCounters, Links};
pub use parameters::{LinkParameters, LinksError, ReadOutError};
pub use playing::{detector_of, processor_of};
pub use preprocessing::{PREPROCESSED, Preprocessing};
pub use pushed::{Pushed, PushedFragments};
pub use replay::{AssembleError, RECORD_SOURCE_ID, Replay, ReplayFacts, ReplayTriggers, assemble, original_source};
pub use replay_error::ReplayError;
pub use sample::{
    Mixture, Sample, SampleError, SampleFacts, SampleFile, SampleInput, SampleRow, SampleTriggers, TruthParticle,
    read_rows,
};

pub use timed::{Chunk, ChunkHead, EventHead, TIMED, TimedFragments};
pub use trigger_file::{FileTriggers, TriggerFileError};
pub use trigger_record::{BadTriggerRecord, TRIGGER_BYTES_MAX, decode_trigger, encode_trigger};
pub use whole::{fragments, rob_fragment};
pub use windowing::Windowing;

/// Which event of an input of `events` events the trigger `ordinal` is; `None` behind the end.
fn input_index(ordinal: u64, events: usize, repeat: bool) -> Option<usize> {
    let index = if repeat { ordinal.checked_rem(events as u64)? } else { ordinal };
    usize::try_from(index).ok().filter(|index| *index < events)
}
