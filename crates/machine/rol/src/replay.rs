//! Links and triggers from recorded files.
//!
//! An event is taken apart into its RODs and one opaque *record* of everything else ([`eformat::replay`]). Each ROD
//! goes through the system as the fragment of its own link: its bytes lie unchanged behind a ROB header of ours.
//! The record goes as the data of one more fragment. [`assemble`] makes the original event of them again.
//!
//! In between, fragments belong to an event by the number that Weir gave it. Nobody looks at the level-1 id of a
//! recorded ROD: in real files some carry another one than their event.
//!
//! # Source identifiers of the links
//!
//! A link is one ROB of the recorded events. Its source identifier is that of the recorded ROB, if no other ROB
//! before it in the event has the same. Else bits 24–31 say how many do; by convention they are zero (format note
//! §6). So a second ROB of `0x00420001` is the link `0x01420001`. The record has [`RECORD_SOURCE_ID`]. Files are
//! refused if their ROBs use these bits or that identifier, or if an event has more than 256 ROBs of one source.
//!
//! # Rounds
//!
//! Where the files are sent again, events of further rounds have fresh ids. The global id, and the level-1 id in
//! the header and in all RODs, go on behind those of the round before; checksums follow. Everything else is as it
//! was recorded.
//!
//! # What an event does not have
//!
//! A link that has no ROD in an event sends an empty one, marked as dummy. The record does not refer to it, so
//! [`assemble`] leaves it out.

mod assemble;
mod index;
mod level1;
mod links;
mod rounds;
mod source;

use std::sync::Arc;

use dataflow::level1::trigger::{Trigger, TriggerSource};
use eformat::{FileNames, FileVersion, Metadata, RunParameters};

use crate::input_index;

pub use assemble::{AssembleError, assemble};
pub use index::Replay;
pub use source::{RECORD_SOURCE_ID, original_source};

pub(crate) use links::ReplayLinks;

/// What is said of recorded files as a whole, for an output that repeats it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayFacts {
    /// Version of all the files.
    pub version: FileVersion,
    /// File name strings of the first file: its application and the core of its name.
    pub names: FileNames,
    /// Metadata of the first file; version 2 has none.
    pub metadata: Option<Metadata>,
    /// Luminosity block of the files as their metadata say; 0 if they hold several.
    pub lumi_block: Option<u32>,
    /// Run parameters of the first file.
    pub run: RunParameters,
    /// Limit of data blocks for a file, 0 = none, of the first file.
    pub blocks_max: u32,
    /// Limit of the file size in MB, 0 = none, of the first file.
    pub megabytes_max: u32,
    /// Number of the first data block.
    pub first_block_number: u32,
}

/// The triggers of recorded events, in the order of the files. Regions of interest and items are those of the fragments of
/// level 1 in the event, if it has such as the physics samples do.
#[derive(Clone, Debug)]
pub struct ReplayTriggers {
    replay: Arc<Replay>,
    repeat: bool,
}

impl ReplayTriggers {
    /// Triggers that end with the files, or with `repeat` go round without end.
    pub fn new(replay: Arc<Replay>, repeat: bool) -> Self {
        Self { replay, repeat }
    }
}

impl TriggerSource for ReplayTriggers {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        input_index(ordinal, self.replay.events(), self.repeat).map(|event| self.replay.trigger(event))
    }
}
