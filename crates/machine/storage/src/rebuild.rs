//! The header of a damaged file: what of it is whole, and what its events say instead of the rest.

use std::collections::BTreeMap;
use std::path::Path;

use eformat::{
    CheckOptions, DetectorMask, Event, EventFormat, FileChecker, FileFacts, FileHeader, FileName, FileNames, FileStart,
    FileVersion, Ids, Metadata, Parsed, Part, Problem, RECORD_BYTES_MAX, RunParameters, zlib_unpack,
};

use crate::clock::{fresh_guid, local_stamp};
use crate::salvage::{Piece, Salvage};
use crate::scan::{EVENT_BYTES_MAX, ReadError, Scan};

/// The header for the events of a damaged file.
pub(crate) struct Rebuilt {
    /// The header.
    pub(crate) header: FileHeader,
    /// What the events have in common.
    pub(crate) facts: FileFacts,
    /// Where the way to the events begins.
    pub(crate) begin: u64,
    /// Whether the bytes of the header are those in the file.
    pub(crate) is_original: bool,
    /// What is wrong with it.
    pub(crate) problem: Option<Problem>,
}

/// What the first events of a file say.
#[derive(Default)]
struct Sample {
    events: u32,
    same_ids: u32,
    run_numbers: Votes,
    lumi_blocks: Votes,
    format: Option<EventFormat>,
    /// Where the first one was found.
    first_at: u64,
}

/// How often each of a few numbers was named.
#[derive(Default)]
struct Votes(BTreeMap<u32, u32>);

impl Rebuilt {
    /// Looks at the header and the first events; `None` if there is neither.
    pub(crate) fn of(path: &Path, scan: &mut Scan) -> Result<Result<Self, Problem>, ReadError> {
        let read = match scan.header() {
            Ok(header) => Ok(header),
            Err(ReadError::Bad { problem, .. }) => Err(problem),
            Err(error) => return Err(error),
        };
        let begin = if read.is_ok() { scan.offset() } else { 0 };
        let provisional = read.clone().unwrap_or_else(|_| any_header());
        let mut sample = Sample::of(scan, &provisional, begin)?;
        let mut is_compressed = provisional.blocks_are_compressed();
        if sample.events == 0 {
            // The word that tells compressed files from others may be damaged.
            let other = with_compression(provisional.clone(), !is_compressed);
            let found = Sample::of(scan, &other, begin)?;
            if found.events > 0 {
                (sample, is_compressed) = (found, !is_compressed);
            }
        }
        let (header, problem) = match read {
            Ok(header) => (header, None),
            Err(problem) if sample.events == 0 => return Ok(Err(problem)),
            Err(problem) => (header_of(path, scan, &sample)?, Some(problem)),
        };
        let before = header.clone();
        let mut header = with_compression(header, is_compressed);
        let facts = sample.decide(path, &mut header, problem.is_some());
        if let Some(metadata) = &mut header.metadata
            && metadata.guid().is_none()
        {
            let guid = format!("GUID={}", fresh_guid());
            match metadata.0.first_mut().filter(|first| first.len() == guid.len()) {
                Some(first) => *first = guid,
                None => metadata.0.insert(0, guid),
            }
        }
        let is_original = problem.is_none() && header == before;
        Ok(Ok(Self { header, facts, begin, is_original, problem }))
    }
}

impl Sample {
    fn of(scan: &mut Scan, header: &FileHeader, begin: u64) -> Result<Self, ReadError> {
        let is_compressed = header.blocks_are_compressed();
        let checker = FileChecker::with_facts(header, FileFacts::default(), CheckOptions::default(), &mut Vec::new());
        let mut salvage = Salvage::new(scan, header, checker, begin)?;
        let mut sample = Self::default();
        while sample.events < SAMPLE_EVENTS
            && let Some(piece) = salvage.next()?
        {
            let Piece::Event { block, .. } = piece else { continue };
            let block_at = block.start;
            let bytes = salvage.bytes(block)?;
            match is_compressed {
                true => match zlib_unpack(Part::DataBlock, bytes, EVENT_BYTES_MAX) {
                    Ok(event) => sample.take(&event, block_at),
                    Err(_) => continue,
                },
                false => sample.take(bytes, block_at),
            }
        }
        Ok(sample)
    }

    fn take(&mut self, bytes: &[u8], block_at: u64) {
        let Ok(event) = Event::parse(bytes) else { return };
        if self.events == 0 {
            self.first_at = block_at;
        }
        self.events += 1;
        self.same_ids += u32::from(event.global_id() as u32 == event.lvl1_id());
        self.run_numbers.add(event.run_number(), WEIGHT_OF_EVENT);
        if event.format() != EventFormat::V3 {
            self.lumi_blocks.add(event.lumi_block(), WEIGHT_OF_EVENT);
        }
        self.format.get_or_insert(event.format());
    }

    /// What most say of the events: themselves, the header, the names. The header says it then, too.
    fn decide(&mut self, path: &Path, header: &mut FileHeader, is_rebuilt: bool) -> FileFacts {
        let names = [name_of(path), core_name(&header.names)];
        let mut facts = FileFacts::of(&header.run, header.metadata.as_ref());
        let is_several = self.lumi_blocks.0.len() > 1 && self.lumi_blocks.share_of_first() < 9;
        for name in names.iter().flatten() {
            self.run_numbers.add(name.run_number(), 1);
            self.lumi_blocks.add(name.lumi_block(), 1);
        }
        if !is_rebuilt {
            self.run_numbers.add(header.run.run_number, 1);
            self.lumi_blocks.add(facts.lumi_block.unwrap_or(0), 1);
        }
        if let Some(run_number) = self.run_numbers.first(header.run.run_number) {
            header.run.run_number = run_number;
            facts.run_number = Some(run_number);
        }
        if let (Some(said), Some(metadata)) = (facts.lumi_block, &mut header.metadata) {
            let block = if is_several { 0 } else { self.lumi_blocks.first(said).unwrap_or(said) };
            if block != said {
                let place = metadata.0.iter_mut().find(|text| text.contains("LumiBlock="));
                *place.expect("it said so") = format!("LumiBlock={block}");
                facts.lumi_block = Some(block).filter(|block| *block != 0);
            }
        }
        facts.ids = if self.events > 1 && 2 * self.same_ids > self.events { Ids::Same } else { Ids::Unknown };
        facts
    }
}

impl Votes {
    fn add(&mut self, value: u32, weight: u32) {
        if self.0.len() < VALUES_MAX || self.0.contains_key(&value) {
            *self.0.entry(value).or_default() += weight;
        }
    }

    /// The value with most votes; `preferred`, if it has as many.
    fn first(&self, preferred: u32) -> Option<u32> {
        self.0.iter().max_by_key(|(value, votes)| (**votes, **value == preferred)).map(|(value, _)| *value)
    }

    /// Tenths of all votes that the first value has.
    fn share_of_first(&self) -> u32 {
        let most = self.0.values().max().copied().unwrap_or(0);
        10 * most / self.0.values().sum::<u32>().max(1)
    }
}

/// A header of the records in front of the first event that are whole. The others are made of the name of the file and its events.
fn header_of(path: &Path, scan: &mut Scan, sample: &Sample) -> Result<FileHeader, ReadError> {
    let length = sample.first_at.min(2 * RECORD_BYTES_MAX as u64);
    let bytes = scan.bytes(0..length)?;
    let run = [FileVersion::V6, FileVersion::V5, FileVersion::V2].into_iter().find_map(|version| {
        find(bytes, RUN_PARAMETERS, |record| RunParameters::parse(version, record).ok()).map(|run| (version, run))
    });
    let by_format = match sample.format {
        Some(EventFormat::V3) => FileVersion::V2,
        Some(EventFormat::V4) => FileVersion::V5,
        Some(EventFormat::V5) | None => FileVersion::V6,
    };
    let (version, run) = run.unwrap_or_else(|| (by_format, any_header().run));
    let name = name_of(path);
    let start = match FileStart::parse(bytes) {
        Ok(Parsed::Done(start, _)) => FileStart { version, ..start },
        _ => {
            let file_number = name.as_ref().map_or(1, FileName::sequence);
            FileStart { version, file_number, opened: local_stamp(), blocks_max: 0, megabytes_max: 0 }
        }
    };
    let names = find(bytes, FILE_NAMES, |record| FileNames::parse(record).ok()).unwrap_or_else(|| FileNames {
        application: name.as_ref().map_or("unknown", FileName::application).to_owned(),
        core: name.as_ref().map_or_else(|| "unknown".to_owned(), FileName::core),
    });
    let name = name.or_else(|| core_name(&names));
    let metadata = (version != FileVersion::V2).then(|| {
        find(bytes, METADATA, |record| Metadata::parse(record).ok()).unwrap_or_else(|| match &name {
            Some(name) => {
                let stream = (name.stream_type(), name.stream_name());
                Metadata::new(fresh_guid(), [], stream.0, stream.1, name.project(), name.lumi_block())
            }
            None => Metadata(vec![format!("GUID={}", fresh_guid())]),
        })
    });
    Ok(FileHeader { start, names, metadata, run })
}

/// The first record with this marker that is whole.
fn find<T>(bytes: &[u8], marker: u32, parse: impl Fn(&[u8]) -> Option<Parsed<T>>) -> Option<T> {
    let marker = marker.to_le_bytes();
    let places = (0..bytes.len().saturating_sub(3)).filter(|at| bytes[*at..*at + 4] == marker);
    places.take(PLACES_MAX).find_map(|at| match parse(&bytes[at..])? {
        Parsed::Done(record, _) => Some(record),
        Parsed::Need(_) => None,
    })
}

fn with_compression(mut header: FileHeader, is_compressed: bool) -> FileHeader {
    if header.blocks_are_compressed() != is_compressed {
        let metadata = header.metadata.get_or_insert_default();
        metadata.0.retain(|text| !text.contains("ompression=") && !text.ends_with("=zlib"));
        metadata.0.extend(is_compressed.then(|| "Compression=zlib".to_owned()));
    }
    header
}

/// A header that says nothing.
fn any_header() -> FileHeader {
    let opened = local_stamp();
    FileHeader {
        // Not the first one: nothing is known of its block numbers.
        start: FileStart { version: FileVersion::V6, file_number: 2, opened, blocks_max: 0, megabytes_max: 0 },
        names: FileNames { application: String::new(), core: String::new() },
        metadata: None,
        run: RunParameters { recording_enabled: 1, detector_mask: DetectorMask(0), ..RunParameters::default() },
    }
}

fn name_of(path: &Path) -> Option<FileName> {
    path.file_name()?.to_str()?.trim_end_matches(".damaged").parse().ok()
}

fn core_name(names: &FileNames) -> Option<FileName> {
    format!("{}._0001", names.core).parse().ok()
}

const FILE_NAMES: u32 = 0x1234_aabb;
const METADATA: u32 = 0x1234_aabc;
const RUN_PARAMETERS: u32 = 0x1234_bbbb;
/// Events that are asked what they have in common.
const SAMPLE_EVENTS: u32 = 1000;
/// The name and the header have a voice each; two events outvote them.
const WEIGHT_OF_EVENT: u32 = 2;
const VALUES_MAX: usize = 1000;
/// Markers that are tried.
const PLACES_MAX: usize = 100;
