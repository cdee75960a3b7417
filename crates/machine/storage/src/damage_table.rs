//! What is found in small files after many kinds of damage to each of their parts. `tests/golden/damages.txt` is the table; `UPDATE_GOLDEN=1`
//! writes it anew, and its difference is then to be read. Whatever the damage, the way through a file leaves nothing out.

use std::fmt::Write as _;
use std::fs;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eformat::{
    CheckOptions, DataSeparator, Date, EventHeader, FileChecker, FileEnd, FileHeader, FileStart, FileVersion, Guid,
    Parsed, ProblemKind, RobParams, RodHeader, SourceId, Stamp, Time, event_envelope, file_events, write_rob_fragment,
    zlib_pack,
};
use testkit::TempDir;

use crate::rebuild::Rebuilt;
use crate::recover::{FilePart, Found, RecoverError, find};
use crate::salvage::{Piece, Salvage};
use crate::scan::{ReadError, Scan};
use crate::{Dialect, DumpItem, Writer, WriterConfig};

/// A file as bytes, and where its blocks lie, with their separators.
struct Sample {
    name: &'static str,
    file: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Sample {
    fn new(name: &'static str, file: Vec<u8>) -> Self {
        let blocks = file_events(&file).unwrap().map(Result::unwrap);
        let place = |at: usize, bytes: usize| at - DataSeparator::BYTES..at + bytes;
        let places = blocks.map(|event| place(event.offset as usize, event.block.len())).collect();
        Self { name, file, places }
    }

    fn block(&self, index: usize) -> &[u8] {
        &self.file[self.places[index].start + DataSeparator::BYTES..self.places[index].end]
    }

    fn header_bytes(&self) -> usize {
        self.places[0].start
    }

    /// The end record.
    fn end(&self) -> &[u8] {
        &self.file[self.file.len() - FileEnd::BYTES..]
    }

    fn counts(&self) -> [u32; 5] {
        match FileEnd::parse(self.end()) {
            Ok(Parsed::Done(end, _)) => counts_of(&end),
            other => panic!("{}: {other:?}", self.name),
        }
    }
}

/// An event with this id.
pub(crate) fn event(id: u32, adler32: bool) -> Vec<u8> {
    let rod = RodHeader { source_id: SourceId(0x42_0002), run_number: 7, lvl1_id: id, ..Default::default() };
    let params = RobParams { rod, adler32, ..Default::default() };
    let mut rob = vec![id as u8; params.rob_bytes(4 * (id as usize % 3))];
    write_rob_fragment(&mut rob, &params, 4 * (id as usize % 3));
    let header = EventHeader { global_id: id.into(), lvl1_id: id, run_number: 7, lumi_block: 3, ..Default::default() };
    let mut out = Vec::new();
    let trailer = event_envelope(&header, [rob.as_slice()], adler32, &mut out);
    out.into_iter().chain(rob).chain(trailer.into_iter().flatten()).collect()
}

fn opened() -> Stamp {
    Stamp { date: Date::new(5, 6, 2007).unwrap(), time: Time::new(8, 9, 10).unwrap() }
}

const GUID: [u8; 16] = [7; 16];

/// The files of these events.
pub(crate) fn written(change: impl FnOnce(WriterConfig) -> WriterConfig, events: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let directory = TempDir::new("damage-table");
    let config = WriterConfig {
        directory: directory.path().to_owned(),
        run_number: 7,
        lumi_block: 3,
        clock: Arc::new(opened),
        guids: Arc::new(|| Guid::from_bytes(GUID)),
        ..WriterConfig::default()
    };
    let mut writer = Writer::new(change(config)).unwrap();
    events.iter().for_each(|event| writer.write_event(&[event]).unwrap());
    writer.finish().unwrap().iter().map(|file| fs::read(&file.path).unwrap()).collect()
}

/// A file of version 5 whose blocks are zlib streams; without compression, so that no other version of zlib makes others.
fn packed(events: &[Vec<u8>]) -> Vec<u8> {
    let plain = file_events(&written(|config| config, events)[0]).unwrap().header().clone();
    let mut metadata = plain.metadata.unwrap();
    metadata.0.push("Compression=zlib".to_owned());
    let start = FileStart { version: FileVersion::V5, ..plain.start };
    let mut file = FileHeader { start, metadata: Some(metadata), ..plain }.emit();
    for (block_number, event) in (1..).zip(events) {
        let block = zlib_pack([event.as_slice()], 0);
        file.extend(DataSeparator { block_number, block_bytes: block.len() as u32 }.emit());
        file.extend(&block);
    }
    let events = events.len() as u32;
    let end =
        FileEnd { closed: opened(), events, megabytes: 1, sequence_events: events, sequence_megabytes: 1, status: 1 };
    end.emit(&mut file);
    file
}

fn samples() -> Vec<Sample> {
    let all = |adler32| (1..=4).map(|id| event(id, adler32)).collect::<Vec<_>>();
    let dialect = Dialect::V2 { names: None, first_block_number: 12 };
    let second = written(
        |config| WriterConfig { bytes_max: 1300, ..config },
        &(1..=8).map(|id| event(id, true)).collect::<Vec<_>>(),
    );
    vec![
        Sample::new("with checksums", written(|config| config, &all(true)).remove(0)),
        Sample::new("without checksums", written(|config| config, &all(false)).remove(0)),
        Sample::new("second of a sequence", second.into_iter().nth(1).unwrap()),
        Sample::new("of version 2", written(|config| WriterConfig { dialect, ..config }, &all(true)).remove(0)),
        Sample::new("of packed blocks", packed(&all(true))),
    ]
}

/// Its value, or how it is not told.
fn masked(line: &str) -> String {
    let guid = Guid::from_bytes(GUID).to_string();
    match line.split_once("GUID=") {
        Some((before, text)) if text != guid => format!("{before}GUID=(another)"),
        _ => line.to_owned(),
    }
}

/// The lines that a header has and another has not.
fn header_lines(header: &[u8], other: &[u8]) -> Vec<String> {
    let lines = |bytes: &[u8]| -> Vec<String> {
        let Ok(events) = file_events(bytes) else { return Vec::new() };
        let mut header = events.header().clone();
        let is_now = header.start.opened != opened();
        header.start.opened = opened();
        let text = DumpItem::Header(header).to_string();
        text.lines().map(masked).chain(is_now.then(|| "opened now".to_owned())).collect()
    };
    let known = lines(other);
    lines(header).into_iter().filter(|line| !known.contains(line)).collect()
}

/// Walks through a file as recovery does: its pieces lie one behind the other, and end where its events end.
fn assert_nothing_is_left_out(path: &Path, what: &str) {
    let mut scan = Scan::open(path).unwrap();
    let Ok(Rebuilt { header, facts, begin, .. }) = Rebuilt::of(path, &mut scan).unwrap() else { return };
    let checker = FileChecker::with_facts(&header, facts, CheckOptions::default(), &mut Vec::new());
    let file_bytes = scan.file_bytes();
    let mut salvage = Salvage::new(&mut scan, &header, checker, begin).unwrap();
    let end_bytes = if salvage.end().is_some() { FileEnd::BYTES as u64 } else { 0 };
    let mut at = begin;
    while let Some(piece) = salvage.next().unwrap() {
        let (from, to) = match piece {
            // Without bytes where a separator is gone.
            Piece::Damage(damage) => (damage.range.start, damage.range.end),
            Piece::Event { block, .. } if block.start == at => (at, block.end),
            Piece::Event { block, .. } => (block.start - DataSeparator::BYTES as u64, block.end),
        };
        assert!(from == at && to >= from, "{what}: {from}..{to} follows {at}");
        at = to;
    }
    assert_eq!(at, file_bytes - end_bytes, "{what}");
}

/// What is found in a damaged sample: its events by number, as `event@block`, and what was lost.
fn outcome(sample: &Sample, path: &Path, file: &[u8], what: &str) -> String {
    // Not over the former one: the file system would wait for the disk.
    let _ = fs::remove_file(path);
    fs::write(path, file).unwrap();
    assert_nothing_is_left_out(path, what);
    let (mut records, mut text) = (Vec::new(), String::new());
    let found = find(path, &mut |part| {
        match part {
            FilePart::Record(record) => records.push(record.to_vec()),
            FilePart::Event(separator, event) => {
                assert_eq!(separator.block_bytes as usize, event.len());
                let known = (0..sample.places.len()).find(|index| sample.block(*index) == event);
                let name = known.map_or("?".to_owned(), |index| (index + 1).to_string());
                write!(text, "{name}@{} ", separator.block_number).unwrap();
            }
        }
        Ok(())
    });
    let kept = text.split('@').count() - 1;
    let Found { recovered, end } = match found {
        Ok(found) => found,
        Err(RecoverError::Read(ReadError::Bad { problem, .. })) => {
            return format!("nothing: {}", said(&problem.kind));
        }
        Err(error) => panic!("{what}: {error}"),
    };
    let [header, _] = &records[..] else { panic!("{what}: {} records", records.len()) };
    let more = if recovered.may_be_more { "+" } else { "" };
    write!(text, "lost {}{more}", recovered.events_lost).unwrap();
    for damage in &recovered.damages {
        let lost = damage.events_lost.map_or("?".to_owned(), |lost| lost.to_string());
        let (range, offset) = (&damage.range, damage.problem.offset);
        write!(text, " [{range:?} {lost} {}@{offset}]", said(&damage.problem.kind)).unwrap();
    }
    let counts = counts_of(&end);
    let missing = (sample.places.len().saturating_sub(kept)) as u64;
    let is_said = recovered.may_be_more || recovered.events_lost >= missing;
    assert!(is_said || !file.ends_with(sample.end()), "{what}: {missing} are lost: {text}");
    let sizes = recovered.damages.iter().map(|damage| damage.range.end - damage.range.start);
    assert_eq!((recovered.bytes_skipped, recovered.events_kept), (sizes.sum(), end.events), "{what}");
    if counts != sample.counts() {
        write!(text, " end {counts:?}").unwrap();
    }
    for line in header_lines(&[header.as_slice(), &sample.file[sample.header_bytes()..]].concat(), &sample.file) {
        write!(text, "; {line}").unwrap();
    }
    text
}

fn counts_of(end: &FileEnd) -> [u32; 5] {
    [end.events, end.megabytes, end.sequence_events, end.sequence_megabytes, end.status]
}

fn said(kind: &ProblemKind) -> String {
    let debug = format!("{kind:?}");
    debug.split([' ', '(']).next().unwrap_or_default().to_owned()
}

/// Rows of the table; those of neighbouring bytes with the same outcome are one.
struct Table {
    text: String,
    open: Option<(String, RangeInclusive<usize>, String)>,
    directory: TempDir,
}

impl Table {
    fn row(&mut self, sample: &Sample, what: &str, file: &[u8]) {
        self.end();
        let outcome = self.outcome(sample, file, what);
        writeln!(self.text, "{what}: {outcome}").unwrap();
    }

    fn byte(&mut self, sample: &Sample, what: &str, at: usize, file: &[u8]) {
        let outcome = self.outcome(sample, file, what);
        match &mut self.open {
            Some((known, range, same)) if known == what && *same == outcome => *range = *range.start()..=at,
            _ => {
                self.end();
                self.open = Some((what.to_owned(), at..=at, outcome));
            }
        }
    }

    fn end(&mut self) {
        if let Some((what, range, outcome)) = self.open.take() {
            writeln!(self.text, "{what} {range:?}: {outcome}").unwrap();
        }
    }

    fn outcome(&self, sample: &Sample, file: &[u8], what: &str) -> String {
        let name = "data_test.00000007.physics_Main.daq.RAW._lb0003._SFO-1._0001.data";
        outcome(sample, &self.directory.join(name), file, &format!("a file {}, {what}", sample.name))
    }
}

/// What may be wrong at the beginning of a block, as offset from its separator and the word that stands there then.
fn wrong_words(sample: &Sample, index: usize) -> Vec<(&'static str, usize, u32)> {
    let place = &sample.places[index];
    let word = |at: usize| u32::from_le_bytes(sample.file[place.start + at..][..4].try_into().unwrap());
    let (number, bytes, words) = (word(8), word(12), word(20));
    let next = sample.places.get(index + 1).map_or(0, |next| next.len() as u32);
    vec![
        ("separator marker", 0, 0x1234_cccd),
        ("separator size", 4, 5),
        ("number + 1", 8, number + 1),
        ("number - 1", 8, number - 1),
        ("number + 20", 8, number + 20),
        ("number 0", 8, 0),
        ("number -1", 8, u32::MAX),
        ("block bytes 0", 12, 0),
        ("block bytes - 4", 12, bytes - 4),
        ("block bytes + 4", 12, bytes + 4),
        ("block bytes with the next", 12, bytes + next),
        ("block bytes huge", 12, u32::MAX - 3),
        ("event marker", 16, 0xaa12_34ab),
        ("event words 0", 20, 0),
        ("event words - 1", 20, words.wrapping_sub(1)),
        ("event words + 1", 20, words.wrapping_add(1)),
        ("event words with the next", 20, words.wrapping_add(next / 4)),
        ("event words huge", 20, u32::MAX),
        ("content", 40, word(40) ^ 1),
    ]
}

fn with_word(file: &mut [u8], at: usize, word: u32) {
    file[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

fn damage_words(table: &mut Table, sample: &Sample, pairs: bool) {
    let last = sample.places.len() - 1;
    for index in 0..=last {
        for (what, at, word) in wrong_words(sample, index) {
            let mut file = sample.file.clone();
            with_word(&mut file, sample.places[index].start + at, word);
            table.row(sample, &format!("event {}, {what}", index + 1), &file);
        }
    }
    if !pairs {
        return;
    }
    // Two at once: in one block, in neighbours, and in the last block of a file without its end record.
    for (first, second, end) in [(1, 1, 0), (1, 2, 0), (0, last, 0), (last, last, FileEnd::BYTES)] {
        for (index, (what, at, word)) in wrong_words(sample, first).into_iter().enumerate() {
            for (other, other_at, other_word) in wrong_words(sample, second).into_iter().skip(index % 6).step_by(6) {
                let mut file = sample.file[..sample.file.len() - end].to_vec();
                with_word(&mut file, sample.places[first].start + at, word);
                with_word(&mut file, sample.places[second].start + other_at, other_word);
                table.row(sample, &format!("event {}, {what}; event {}, {other}", first + 1, second + 1), &file);
            }
        }
    }
}

fn damage_blocks(table: &mut Table, sample: &Sample) {
    let count = sample.places.len();
    let place = |index: usize| sample.places[index].clone();
    let mut edit = |what: String, range: Range<usize>, new: &[u8]| {
        let mut file = sample.file.clone();
        file.splice(range, new.iter().copied());
        table.row(sample, &what, &file);
    };
    for index in 0..count {
        let (at, bytes) = (place(index), sample.file[place(index)].to_vec());
        let number = index + 1;
        edit(format!("event {number} gone"), at.clone(), &[]);
        edit(format!("event {number} twice"), at.start..at.start, &bytes);
        edit(format!("event {number} without separator"), at.start..at.start + 16, &[]);
        edit(format!("event {number} without block"), at.start + 16..at.end, &[]);
        for length in [1, 4, 16, 48, 64, 100, 200] {
            edit(format!("{length} bytes before event {number}"), at.start..at.start, &vec![0x5a; length]);
            edit(format!("{length} bytes lost from event {number}"), at.start..at.start + length, &[]);
        }
        for until in index + 1..count {
            let both = at.start..place(until).end;
            edit(format!("events {number} to {} gone", until + 1), both.clone(), &[]);
            edit(format!("events {number} to {} zeros", until + 1), both.clone(), &vec![0; both.len()]);
            let swapped = [&sample.file[place(until)], &sample.file[at.end..place(until).start], &bytes].concat();
            edit(format!("events {number} and {} swapped", until + 1), both, &swapped);
        }
    }
    let (begin, end) = (sample.header_bytes(), place(count - 1).end);
    edit("all events gone".to_owned(), begin..end, &[]);
    edit("end record gone".to_owned(), end..sample.file.len(), &[]);
    edit("end record twice".to_owned(), end..end, &sample.file[end..]);
    edit("header gone".to_owned(), 0..begin, &[]);
    edit("header zeros".to_owned(), 0..begin, &vec![0; begin]);
    edit("header and first separator zeros".to_owned(), 0..begin + 16, &vec![0; begin + 16]);
}

#[test]
fn every_damage_is_found_as_in_the_table() {
    let mut table = Table { text: String::new(), open: None, directory: TempDir::new("damage-table") };
    for (sample, step) in samples().into_iter().zip([1, 5, 5, 5, 5]) {
        let places = &sample.places;
        writeln!(table.text, "\n# A file {} of {} bytes, events at {places:?}", sample.name, sample.file.len())
            .unwrap();
        let header = (0..sample.header_bytes()).step_by(3 * step);
        for at in header.chain((sample.header_bytes()..sample.file.len()).step_by(step)) {
            let mut file = sample.file.clone();
            file[at] ^= 0x55;
            table.byte(&sample, "wrong byte", at, &file);
        }
        for at in (0..=sample.file.len()).step_by(4 * step + 1) {
            table.byte(&sample, "cut at byte", at, &sample.file[..at]);
        }
        damage_words(&mut table, &sample, sample.name != "without checksums");
        damage_blocks(&mut table, &sample);
    }
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/damages.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &table.text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    let different = table.text.lines().zip(expected.lines()).find(|(now, then)| now != then);
    assert_eq!(different, None, "now and then");
    assert_eq!(table.text.len(), expected.len());
}
