//! Where the events of recorded files are.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use dataflow::level1::trigger::Trigger;
use dataflow::message::{ROIS_MAX, Roi};
use eformat::replay::{Split, split};
use eformat::{Bcid, CompressionType, DataSeparator, Event, Parsed, Part, advance_ids, zlib_unpack};
use storage::{EVENT_BYTES_MAX, FileReader, ReadEvent};

use super::ReplayFacts;
use super::level1::level1_of;
use super::rounds::Rounds;
use super::source::{RECORD_SOURCE_ID, link_of};
use crate::replay_error::ReplayError;

/// An index of the events of recorded files: open once and share. The events themselves stay in the files.
///
/// File version 6 with events of format 5.0, version 5 with 4.0, version 2 with 3.0 (format note §11).
#[derive(Debug)]
pub struct Replay {
    files: Vec<InputFile>,
    events: Vec<Indexed>,
    rois: Vec<Roi>,
    source_ids: Vec<u32>,
    facts: ReplayFacts,
    sizes: LargestSizes,
    rounds: Rounds,
    compressed: Option<Place>,
}

/// Bytes of the largest parts of all events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LargestSizes {
    pub(super) rod: usize,
    pub(super) record: usize,
}

/// Where an event is.
type Place = (PathBuf, u64);

#[derive(Debug)]
struct InputFile {
    path: PathBuf,
    file: File,
    is_compressed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Indexed {
    offset: u64,
    file: u32,
    bytes: u32,
    items: u32,
    /// Where its regions of interest end; they begin at the end of those of the event before.
    rois_end: u32,
    bcid: u16,
    trigger_type: u8,
}

impl Replay {
    /// Reads through all files, one event at a time.
    ///
    /// # Errors
    /// Files that cannot be read or are damaged, files of different versions, no events at all; see [`ReplayError`].
    pub fn open(files: &[impl AsRef<Path>]) -> Result<Self, ReplayError> {
        let mut indexer = Indexer::default();
        for path in files {
            indexer.append(path.as_ref())?;
        }
        let Some(facts) = indexer.facts.filter(|_| !indexer.events.is_empty()) else {
            let names: Vec<String> = files.iter().map(|path| path.as_ref().display().to_string()).collect();
            let files = if names.is_empty() { "an empty list of files".to_owned() } else { names.join(", ") };
            return Err(ReplayError::NoEvents { files });
        };
        let mut source_ids: Vec<u32> = indexer.links.into_iter().collect();
        source_ids.push(RECORD_SOURCE_ID);
        let Indexer { files, events, rois, sizes, rounds, compressed, .. } = indexer;
        Ok(Self { files, events, rois, source_ids, facts, sizes, rounds, compressed })
    }

    /// Number of events.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// Source identifiers of the links that the files need: rising, and the record's behind them all.
    pub fn source_ids(&self) -> &[u32] {
        &self.source_ids
    }

    /// Run number of the files.
    pub fn run_number(&self) -> u32 {
        self.facts.run.run_number
    }

    /// What is said of the files as a whole.
    pub fn facts(&self) -> &ReplayFacts {
        &self.facts
    }

    /// Whether every event can be given fresh ids.
    ///
    /// # Errors
    /// One has a compressed payload.
    pub fn can_repeat(&self) -> Result<(), ReplayError> {
        match &self.compressed {
            None => Ok(()),
            Some((path, offset)) => Err(ReplayError::Compressed { path: path.clone(), offset: *offset }),
        }
    }

    /// The bytes of an event in a round through the files, from 0: as they were recorded, but that ids of further rounds are fresh.
    ///
    /// # Errors
    /// As for [`event`](Self::event).
    ///
    /// # Panics
    /// If there is no such event.
    pub fn event_of_round(&self, event: usize, round: u64, out: &mut Vec<u8>) -> Result<(), ReplayError> {
        self.event(event, out)?;
        if round == 0 {
            return Ok(());
        }
        let (global, lvl1) = self.rounds.advance(round);
        let Indexed { offset, file, .. } = self.events[event];
        let path = || self.files[file as usize].path.clone();
        advance_ids(out, global, lvl1).map_err(|problem| ReplayError::Event { path: path(), offset, problem })
    }

    /// The bytes of an event.
    ///
    /// # Errors
    /// The file cannot be read any more, or was changed.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn event(&self, event: usize, out: &mut Vec<u8>) -> Result<(), ReplayError> {
        let Indexed { offset, file, bytes, .. } = self.events[event];
        let InputFile { path, file, is_compressed } = &self.files[file as usize];
        out.resize(bytes as usize, 0);
        let io = |source| ReplayError::Io { path: path.clone(), offset, source };
        file.read_exact_at(out, offset).map_err(io)?;
        if *is_compressed {
            let problem = |problem| ReplayError::Event { path: path.clone(), offset, problem };
            *out = zlib_unpack(Part::DataBlock, out, EVENT_BYTES_MAX).map_err(problem)?;
        }
        Ok(())
    }

    /// An event taken apart, with the link of each child.
    pub(super) fn split_event(&self, event: usize, bytes: &[u8]) -> Result<(Split, Vec<u32>), ReplayError> {
        let Indexed { offset, file, .. } = self.events[event];
        let path = &self.files[file as usize].path;
        let (split, links) = split_at(path, offset, bytes)?;
        let is_known = |link: &u32| self.source_ids.binary_search_by_key(&key(*link), |known| key(*known)).is_ok();
        let fits = split.template.len() <= self.sizes.record
            && split.children.iter().all(|child| child.range.len() <= self.sizes.rod)
            && links.iter().all(is_known);
        if fits { Ok((split, links)) } else { Err(ReplayError::Changed { path: path.clone(), offset }) }
    }

    /// What the recorded header says of an event: bunch crossing (0 in format 3.0, which has none) and low 8 bits of
    /// the trigger type. What the fragments of level 1 say, if there are any.
    ///
    /// # Panics
    /// If there is no such event.
    pub fn trigger(&self, event: usize) -> Trigger {
        let Indexed { bcid, trigger_type, items, rois_end, .. } = self.events[event];
        let rois_start = event.checked_sub(1).map_or(0, |before| self.events[before].rois_end);
        Trigger { bcid, trigger_type, items, rois: self.rois[rois_start as usize..rois_end as usize].to_vec() }
    }

    pub(super) fn largest(&self) -> LargestSizes {
        self.sizes
    }
}

#[derive(Default)]
struct Indexer {
    files: Vec<InputFile>,
    events: Vec<Indexed>,
    rois: Vec<Roi>,
    links: BTreeSet<u32>,
    facts: Option<ReplayFacts>,
    sizes: LargestSizes,
    rounds: Rounds,
    compressed: Option<Place>,
}

impl Indexer {
    fn append(&mut self, path: &Path) -> Result<(), ReplayError> {
        let mut reader = FileReader::open(path)?;
        let io = |source| ReplayError::Io { path: path.to_owned(), offset: 0, source };
        let file = File::open(path).map_err(io)?;
        let is_compressed = reader.header().blocks_are_compressed();
        self.files.push(InputFile { path: path.to_owned(), file, is_compressed });
        let header = reader.header();
        let (found, run, header) = (header.start.version, header.run, header.clone());
        let lumi_block = header.metadata.as_ref().and_then(|metadata| metadata.value("LumiBlock")?.parse().ok());
        let facts = self.facts.get_or_insert(ReplayFacts {
            version: found,
            names: header.names,
            metadata: header.metadata,
            lumi_block,
            run: header.run,
            blocks_max: header.start.blocks_max,
            megabytes_max: header.start.megabytes_max,
            first_block_number: 1,
        });
        if facts.lumi_block != lumi_block {
            facts.lumi_block = Some(0);
        }
        if facts.version != found {
            return Err(ReplayError::Version { path: path.to_owned(), found, expected: facts.version });
        }
        if facts.run.run_number != run.run_number {
            let (found, expected) = (run.run_number, facts.run.run_number);
            return Err(ReplayError::Run { path: path.to_owned(), found, expected });
        }
        while let Some(event) = reader.next_event()? {
            self.append_event(path, &event)?;
        }
        Ok(())
    }

    fn append_event(&mut self, path: &Path, event: &ReadEvent<'_>) -> Result<(), ReplayError> {
        let offset = event.offset;
        let (split, links) = split_at(path, offset, event.bytes)?;
        self.links.extend(links);
        if self.links.len() >= SOURCES_MAX {
            return Err(ReplayError::TooManySources { path: path.to_owned(), offset, limit: SOURCES_MAX });
        }
        self.sizes.record = self.sizes.record.max(split.template.len());
        let longest = split.children.iter().map(|child| child.range.len()).max();
        self.sizes.rod = self.sizes.rod.max(longest.unwrap_or(0));
        if let (true, Some(facts)) = (self.events.is_empty(), &mut self.facts) {
            facts.first_block_number = event.block_number;
        }
        let problem = |problem| ReplayError::Event { path: path.to_owned(), offset, problem };
        let view = Event::parse(event.bytes).map_err(problem)?;
        self.rounds.add(view.global_id(), view.lvl1_id());
        if view.compression() != CompressionType::None {
            self.compressed.get_or_insert((path.to_owned(), offset));
        }
        let before = self.rois.len();
        let items = level1_of(view.format(), event.bytes, &split.children, &mut self.rois);
        let found = self.rois.len() - before;
        if found > ROIS_MAX {
            return Err(ReplayError::EventRois { path: path.to_owned(), offset, found, limit: ROIS_MAX });
        }
        self.events.push(Indexed {
            offset,
            items,
            rois_end: u32::try_from(self.rois.len()).map_err(|_| ReplayError::TooManyRois {
                path: path.to_owned(),
                offset,
                limit: u32::MAX,
            })?,
            file: u32::try_from(self.files.len() - 1).expect("a list of names has less than 2^32"),
            bytes: self.block_bytes(offset, event.bytes.len())?,
            bcid: Bcid::masked(view.bcid()).get(),
            trigger_type: view.trigger_type() as u8,
        });
        Ok(())
    }

    /// Bytes of the data block at `offset` as it is stored; its separator tells if it is compressed.
    fn block_bytes(&self, offset: u64, event_bytes: usize) -> Result<u32, ReplayError> {
        let InputFile { path, file, is_compressed } = self.files.last().expect("the file is in the list");
        if !is_compressed {
            return Ok(u32::try_from(event_bytes).expect("the size of a block has 32 bits"));
        }
        let mut separator = [0; DataSeparator::BYTES];
        let io = |source| ReplayError::Io { path: path.clone(), offset, source };
        file.read_exact_at(&mut separator, offset - DataSeparator::BYTES as u64).map_err(io)?;
        match DataSeparator::parse(&separator) {
            Ok(Parsed::Done(separator, _)) if separator.block_bytes as usize <= EVENT_BYTES_MAX => {
                Ok(separator.block_bytes)
            }
            _ => Err(ReplayError::Changed { path: path.clone(), offset }),
        }
    }
}

fn split_at(path: &Path, offset: u64, bytes: &[u8]) -> Result<(Split, Vec<u32>), ReplayError> {
    let split = split(bytes).map_err(|problem| ReplayError::Event { path: path.to_owned(), offset, problem })?;
    let links = split.children.iter().map(|child| {
        let (source_id, occurrence) = (child.source_id, child.occurrence);
        let refused = || ReplayError::Source { path: path.to_owned(), offset, source_id, occurrence };
        link_of(source_id, occurrence).ok_or_else(refused)
    });
    let links = links.collect::<Result<_, _>>()?;
    Ok((split, links))
}

/// The order of the links: the record is the last.
fn key(link: u32) -> (bool, u32) {
    (link == RECORD_SOURCE_ID, link)
}

/// Links that 16-bit numbers can name, the record included.
const SOURCES_MAX: usize = 1 << 16;
