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

#[cfg(test)]
mod tests {
    use eformat::{EventHeader, Guid, event_envelope};

    use super::*;

    /// What events of these ids, level-1 ids, runs and luminosity blocks say.
    fn sample(events: &[(u64, u32, u32, u16)]) -> Sample {
        let mut sample = Sample::default();
        for (index, (global_id, lvl1_id, run_number, lumi_block)) in (1..).zip(events.iter().copied()) {
            let header = EventHeader { global_id, lvl1_id, run_number, lumi_block, ..EventHeader::default() };
            let mut bytes = Vec::new();
            event_envelope(&header, [], false, &mut bytes);
            sample.take(&bytes, 100 * index);
            sample.take(&bytes[..20], 0);
            assert_eq!((u64::from(sample.events), sample.first_at), (index, 100));
        }
        sample
    }

    fn header(run_number: u32, lumi_block: u32, core: &str) -> FileHeader {
        let guid = Guid::from_bytes([7; 16]);
        let metadata = Some(Metadata::new(guid, [], "physics", "Main", "data_test", lumi_block));
        let names = FileNames { application: "SFO-1".to_owned(), core: core.to_owned() };
        FileHeader { metadata, names, run: RunParameters { run_number, ..any_header().run }, ..any_header() }
    }

    fn core(run_number: u32, lumi_block: u32) -> String {
        format!("data_test.{run_number:08}.physics_Main.daq.RAW._lb{lumi_block:04}._SFO-1")
    }

    /// What is decided, as it is said of the file and in its header: run number, and luminosity block.
    fn decided(events: &[(u64, u32, u32, u16)], header: &mut FileHeader, path: &str, is_rebuilt: bool) -> (u32, u32) {
        let facts = sample(events).decide(Path::new(path), header, is_rebuilt);
        let metadata = header.metadata.as_ref().unwrap();
        assert_eq!(metadata.0.len(), 4, "{metadata:?}");
        let lumi_block = metadata.value("LumiBlock").unwrap().parse().unwrap();
        assert_eq!(facts.run_number, Some(header.run.run_number));
        assert_eq!(facts.lumi_block.unwrap_or(0), lumi_block);
        (header.run.run_number, lumi_block)
    }

    #[test]
    fn two_events_outvote_the_name_and_the_header() {
        let path = |run, lumi| format!("somewhere/{}._0001.data", core(run, lumi));
        let one = [(1, 1, 8, 4)];
        let two = [one[0], (2, 2, 8, 4)];
        let header = |run, lumi| header(run, lumi, "no core name");
        assert_eq!(decided(&one, &mut header(7, 3), &path(7, 3), false), (7, 3), "as many: the header's");
        assert_eq!(decided(&one, &mut header(7, 3), &path(7, 3), true), (8, 4), "it has no voice if it was made anew");
        assert_eq!(decided(&one, &mut header(7, 3), &path(6, 2), false), (8, 4));
        assert_eq!(decided(&one, &mut header(7, 3), "a.data", false), (8, 4));
        assert_eq!(decided(&two, &mut header(7, 3), &path(7, 3), false), (8, 4));
        let mut with_core = self::header(7, 3, &core(7, 3));
        assert_eq!(decided(&one, &mut with_core, &path(7, 3), false), (7, 3), "three of five");
        let mut with_core = self::header(7, 3, &core(6, 2));
        assert_eq!(decided(&[], &mut with_core, &format!("{}.damaged", path(6, 2)), false), (6, 2), "two names");
    }

    #[test]
    fn a_file_of_several_luminosity_blocks_says_none() {
        let events = |of_4: u64, of_5: u64| -> Vec<_> {
            (0..of_4).map(|id| (id, 0, 7, 4)).chain((0..of_5).map(|id| (id, 0, 7, 5))).collect()
        };
        let block = |of_4, of_5, said| decided(&events(of_4, of_5), &mut header(7, said, ""), "a.data", false).1;
        assert_eq!([block(9, 1, 3), block(8, 2, 3), block(2, 0, 3)], [4, 0, 4], "up to a tenth may be damaged");
        assert_eq!(block(2, 0, 0), 0, "a file that says none keeps to that");
    }

    #[test]
    fn ids_are_the_same_if_those_of_most_events_are() {
        let ids = |events: &[(u64, u32, u32, u16)]| {
            sample(events).decide(Path::new("a.data"), &mut header(7, 3, ""), false).ids
        };
        let (same, other) = ((1, 1, 7, 3), (2, 3, 7, 3));
        assert_eq!([ids(&[]), ids(&[same]), ids(&[same, other])], [Ids::Unknown; 3]);
        assert_eq!([ids(&[same, same]), ids(&[same, other, same])], [Ids::Same; 2]);
    }

    #[test]
    fn so_many_values_are_counted() {
        let mut votes = Votes::default();
        assert_eq!((votes.first(3), votes.share_of_first()), (None, 0));
        (0..VALUES_MAX as u32).for_each(|value| votes.add(value, 1));
        assert_eq!((votes.first(3), votes.first(5000)), (Some(3), Some(VALUES_MAX as u32 - 1)));
        votes.add(5000, 7);
        votes.add(10, 1);
        assert_eq!((votes.0.len(), votes.first(3), votes.share_of_first()), (VALUES_MAX, Some(10), 0));
        votes.add(10, 998);
        assert_eq!(votes.share_of_first(), 5, "1000 of 1999 are half of them, in whole tenths: {:?}", votes.0.get(&10));
    }

    #[test]
    fn a_record_is_found_behind_other_markers() {
        let names = FileNames { application: "SFO-1".to_owned(), core: "core".to_owned() };
        let record = FileHeader { names: names.clone(), metadata: None, ..any_header() }.emit();
        let at = record.windows(4).position(|word| word == FILE_NAMES.to_le_bytes()).unwrap();
        let parse = |bytes: &[u8]| FileNames::parse(bytes).ok();
        let record = &record[at..];
        for (false_markers, is_found) in [(0, true), (PLACES_MAX - 1, true), (PLACES_MAX, false)] {
            let mut bytes = [FILE_NAMES.to_le_bytes(), [0xff; 4]].concat().repeat(false_markers);
            bytes.extend(record);
            assert_eq!(find(&bytes, FILE_NAMES, parse), Some(names.clone()).filter(|_| is_found), "{false_markers}");
        }
        assert_eq!(find(&record[..8], FILE_NAMES, parse), None);
        assert_eq!(find(&FILE_NAMES.to_le_bytes(), FILE_NAMES, |_| Some(Parsed::Done((), 4))), Some(()), "at the end");
        assert_eq!(find(&[1, 2, 3], FILE_NAMES, |_| Some(Parsed::Done((), 4))), None);
    }

    #[test]
    fn the_word_that_says_compressed_is_written_once() {
        let mut header = header(7, 3, "");
        let plain = header.clone();
        header = with_compression(header, true);
        assert!(header.blocks_are_compressed());
        let compressed = header.clone();
        assert_eq!(with_compression(header, true), compressed);
        for damaged in ["Kompression=zlib", "Compression=zlip"] {
            let mut header = compressed.clone();
            *header.metadata.as_mut().unwrap().0.last_mut().unwrap() = damaged.to_owned();
            assert_eq!(with_compression(header, true), compressed, "{damaged}");
        }
        assert_eq!(with_compression(compressed, false), plain);
        assert_eq!(with_compression(any_header(), true).metadata.unwrap().0, ["Compression=zlib"]);
    }
}
