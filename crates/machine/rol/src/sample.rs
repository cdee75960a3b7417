//! Links and triggers from samples of simulated collisions.

mod column;
mod facts;
mod file;
mod guard;
mod input;
mod mixture;
mod rows;

use std::ops::Range;
use std::path::{Path, PathBuf};

use base::bulk::PageSlice;
use dataflow::level1::trigger::{Trigger, TriggerSource};
use dataflow::message::{EventInfo, Roi};
use dataflow::readout::fragment::{FragmentHead, Unplaced};
use parquet::errors::ParquetError;
use transport::page_pool::Page;

use crate::fragments::{Fragments, Wanted, whole_words};
use crate::parameters::{LinkParameters, LinksError, ReadOutError};

pub use facts::SampleFacts;
pub use input::SampleInput;
pub use mixture::Mixture;
pub use rows::{SampleRow, TruthParticle, read_rows};

/// The events of a sample that level 1 accepted, in memory: load once and share.
///
/// The files are Parquet, one row per bunch crossing, not compressed or by Snappy, gzip, LZ4 or Zstandard. Of their columns these are
/// read, of which numbers of 32 bits may be stored in 64, as pandas does in lists:
///
/// | column | type |
/// |---|---|
/// | `l1_accept` | boolean; other rows are left out |
/// | `bcid` | u16 |
/// | `event_number` | u64 |
/// | `l1_trigger_type` | u8 |
/// | `l1_tap` | u32: the items, after their prescale |
/// | `rois` | list of { `type`, `ieta`, `iphi` u8, `eta`, `phi` f32, `et_mev`, `aux0_mev`, `aux1_mev` i32, `thresholds` u32 } |
/// | `fragments` | list of { `source_id` u32, `payload` binary, whole words }, the same sources in every event, rising |
/// | `weight` | f64; may be absent, and is 1 then |
/// | `process` | string; may be absent, and is empty then |
///
/// Nothing may be null. It keeps the payloads, one behind the other, with 4 bytes per fragment and 32 per event. It also
/// keeps the regions of interest and the numbers of the events that level 1 rejected.
#[derive(Debug)]
pub struct Sample {
    source_ids: Vec<u32>,
    events: Vec<Event>,
    files: Vec<SampleFile>,
    /// The first is the empty one.
    processes: Vec<String>,
    rois: Vec<Roi>,
    /// Where each fragment begins in `payload`, by event and then source, and the end of the last one.
    offsets: Vec<u32>,
    payload: Vec<u8>,
}

/// One file of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleFile {
    /// Its path.
    pub path: PathBuf,
    /// Its accepted events, as indices in the sample.
    pub events: Range<usize>,
    /// Column `event_number` of the events that level 1 rejected, in the order of the file.
    pub rejected: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    number: u64,
    weight: f64,
    items: u32,
    bcid: u16,
    trigger_type: u8,
    process: u8,
    /// Where its regions of interest end; they begin at the end of those of the event before.
    rois_end: u32,
}

/// Why a sample cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The file system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Not a Parquet file, or damaged: fetch it again.
    #[error("{}: {place}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Which part of the file.
        place: String,
        /// What is wrong.
        source: ParquetError,
    },
    /// The reader of Parquet files gave up on damaged content.
    #[error("{}: too damaged to be read as a Parquet file; fetch it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// Another kind of table.
    #[error("{}: column {column}: expected {expected}, found {found}: not a sample of collisions", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
        /// Its type in a sample.
        expected: &'static str,
        /// What the file has.
        found: String,
    },
    /// A value that no sample has.
    #[error("{}: row {row}, column {column}: expected {expected}, found {found}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Row in the file, from 0.
        row: u64,
        /// The column.
        column: &'static str,
        /// What is legal.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The payloads do not fit into what is kept in memory.
    #[error("{}: row {row}: the payloads so far are larger than the {limit} bytes that a sample may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Row in the file, from 0.
        row: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The description beside a file cannot be read.
    #[error("cannot read {}, the description of a sample that input.mix needs beside its file: {source}", path.display())]
    NoFacts {
        /// The description.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The description beside a file is not JSON.
    #[error("{}: not JSON: {source}", path.display())]
    Json {
        /// The description.
        path: PathBuf,
        /// What is wrong, with its line.
        source: serde_json::Error,
    },
    /// A value in the description beside a file that cannot be.
    #[error("{}: key {key}: expected {expected}, found {found}", path.display())]
    Fact {
        /// The description.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// What is legal.
        expected: String,
        /// What is there.
        found: String,
    },
    /// An event that cannot be drawn by its weight.
    #[error("{}: event {event_number} has the weight {weight}: expected a number from 0 to mix events by", path.display())]
    Weight {
        /// The file.
        path: PathBuf,
        /// Column `event_number`.
        event_number: u64,
        /// Its weight.
        weight: f64,
    },
    /// Nothing can be drawn.
    #[error("{}: the weights of all events that level 1 accepted are 0: expected one above to mix events by", path.display())]
    NoWeight {
        /// The file, or the first of them.
        path: PathBuf,
    },
    /// There is nothing to send.
    #[error("no event in {files} that level 1 accepted (column l1_accept)")]
    NoEvents {
        /// The files.
        files: String,
    },
}

impl Sample {
    /// Reads the files, one behind the other.
    ///
    /// # Errors
    /// A file that is not a sample, is damaged, or has other sources than the first; no events at all.
    pub fn load(files: &[impl AsRef<Path>]) -> Result<Self, SampleError> {
        let mut sample = Self {
            source_ids: Vec::new(),
            events: Vec::new(),
            files: Vec::new(),
            processes: vec![String::new()],
            rois: Vec::new(),
            offsets: vec![0],
            payload: Vec::new(),
        };
        for path in files {
            file::append(path.as_ref(), &mut sample)?;
        }
        if sample.events.is_empty() {
            let names: Vec<String> = files.iter().map(|path| path.as_ref().display().to_string()).collect();
            let files = if names.is_empty() { "an empty list of files".to_owned() } else { names.join(", ") };
            return Err(SampleError::NoEvents { files });
        }
        sample.payload.shrink_to_fit();
        sample.offsets.shrink_to_fit();
        Ok(sample)
    }

    /// Number of events.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Source identifiers of the fragments of every event, rising.
    pub fn source_ids(&self) -> &[u32] {
        &self.source_ids
    }

    /// Number of an event in its file: its column `event_number`.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn event_number(&self, event: usize) -> u64 {
        self.events[event].number
    }

    /// The files, in their order.
    pub fn files(&self) -> &[SampleFile] {
        &self.files
    }

    /// Weight of an event: its column `weight`, a finite number.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn weight(&self, event: usize) -> f64 {
        self.events[event].weight
    }

    /// Physics process of an event: its column `process`.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn process(&self, event: usize) -> &str {
        &self.processes[usize::from(self.events[event].process)]
    }

    /// Level-1 items of an event after their prescale.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn items(&self, event: usize) -> u32 {
        self.events[event].items
    }

    /// Payload bytes of the fragments of an event.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn event_payload_bytes(&self, event: usize) -> usize {
        let at = event * self.source_ids.len();
        (self.offsets[at + self.source_ids.len()] - self.offsets[at]) as usize
    }

    /// Payload bytes of all fragments together.
    pub fn payload_bytes(&self) -> usize {
        self.payload.len()
    }

    /// The payload of a fragment: little-endian words. `source` is an index in [`source_ids`](Self::source_ids).
    ///
    /// # Panics
    /// If there is no such event or source.
    pub fn payload(&self, event: usize, source: usize) -> &[u8] {
        assert!(source < self.source_ids.len(), "a source of the sample");
        let at = event * self.source_ids.len() + source;
        &self.payload[self.offsets[at] as usize..self.offsets[at + 1] as usize]
    }

    /// What level 1 said of an event.
    ///
    /// The bunch crossing is that of the sample, 1 to 3564, as the sample's CTP fragment repeats it.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn trigger(&self, event: usize) -> Trigger {
        let Event { bcid, trigger_type, items, rois_end, .. } = self.events[event];
        let rois_start = event.checked_sub(1).map_or(0, |before| self.events[before].rois_end);
        Trigger { bcid, trigger_type, items, rois: self.rois[rois_start as usize..rois_end as usize].to_vec() }
    }
}

/// The triggers of a sample.
#[derive(Clone, Debug)]
pub struct SampleTriggers(SampleInput);

impl SampleTriggers {
    /// The triggers of these events, in their order.
    pub fn new(input: SampleInput) -> Self {
        Self(input)
    }
}

impl TriggerSource for SampleTriggers {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        self.0.event(ordinal).map(|event| self.0.sample().trigger(event))
    }
}

/// The links of one read-out system.
pub(crate) struct SampleLinks {
    input: SampleInput,
    /// Index of the source of each link.
    sources: Vec<usize>,
    /// Index of the event that is read out.
    event: usize,
}

impl SampleLinks {
    pub(crate) fn new(parameters: &LinkParameters, input: SampleInput) -> Result<Self, LinksError> {
        let known = &input.sample().source_ids;
        let find = |&source_id: &u32| {
            let unknown = |_| LinksError::UnknownSource { source_id, sources: known.len() };
            known.binary_search(&source_id).map_err(unknown)
        };
        let sources = parameters.source_ids.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Self { input, sources, event: 0 })
    }

    pub(crate) fn prepare(&mut self, event: &EventInfo) -> Result<(), ReadOutError> {
        self.event = self.input.event(event.ordinal).ok_or(ReadOutError::BehindEnd {
            event: event.event,
            ordinal: event.ordinal,
            events: self.input.sample().events(),
        })?;
        Ok(())
    }

    pub(crate) fn fragment(
        &self,
        fragments: &mut Fragments,
        page: Page,
        wanted: Wanted<'_>,
    ) -> Result<(FragmentHead, PageSlice), Unplaced> {
        let payload = self.input.sample().payload(self.event, self.sources[wanted.link]);
        let padded = payload.len().max(whole_words(self.input.pad_bytes()));
        fragments.frame(page, wanted, padded, |data| {
            let (records, padding) = data.split_at_mut(payload.len().min(data.len()));
            records.copy_from_slice(&payload[..records.len()]);
            padding.fill(0);
        })
    }
}
