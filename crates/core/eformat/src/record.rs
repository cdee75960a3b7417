//! Records of a RAW file (format note §11): plain values that parse and emit.

use crate::guid::Guid;
use crate::problem::{Part, Problem, ProblemKind, truncated};
use crate::run::DetectorMask;
use crate::stamp::{Date, Stamp, Time};
use crate::word::{WORD_BYTES, push, push_all, size, to_word, word};

/// Version of the RAW file format (note §11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileVersion {
    /// Old; the dialect of BESIII.
    V2,
    /// LHC run 1. Read only.
    V5,
    /// Current.
    V6,
}

impl FileVersion {
    /// The version of a word, `None` unless 2, 5 or 6.
    pub fn from_word(word: u32) -> Option<Self> {
        [Self::V2, Self::V5, Self::V6].into_iter().find(|version| version.to_word() == word)
    }

    /// The word.
    pub fn to_word(self) -> u32 {
        match self {
            Self::V2 => 2,
            Self::V5 => 5,
            Self::V6 => 6,
        }
    }

    /// Words of the detector mask.
    fn mask_words(self) -> usize {
        match self {
            Self::V2 => 1,
            Self::V5 => 2,
            Self::V6 => 4,
        }
    }
}

/// Outcome of parsing a record from bytes that may end too early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<T> {
    /// The record and the bytes it takes.
    Done(T, usize),
    /// At least this many bytes are needed, counted from the beginning of the record.
    Need(usize),
}

/// File start record (note §11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStart {
    /// Version of the file format.
    pub version: FileVersion,
    /// Number in the file sequence, from 1.
    pub file_number: u32,
    /// When the file was opened, local time of the writer.
    pub opened: Stamp,
    /// Limit of data blocks for a file, 0 = none.
    pub blocks_max: u32,
    /// Limit of the file size in MB (2^20 bytes), 0 = none.
    pub megabytes_max: u32,
}

/// File name strings record (note §11.2).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileNames {
    /// Application that wrote the file.
    pub application: String,
    /// Core of the file name, see [`FileName::core`](crate::FileName::core).
    pub core: String,
}

/// Metadata strings record (note §11.3).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Metadata(
    /// The strings, in order.
    pub Vec<String>,
);

/// Run parameters record (note §11.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RunParameters {
    /// Run number.
    pub run_number: u32,
    /// Largest number of events of the run, 0 = no limit.
    pub events_max: u32,
    /// Whether recording is enabled; a word, 0 or 1 by convention.
    pub recording_enabled: u32,
    /// Trigger type.
    pub trigger_type: u32,
    /// Detectors in the run; version 5 keeps 64 bits, version 2 keeps 32.
    pub detector_mask: DetectorMask,
    /// 0 none or cosmics, 1 protons, 2 ions.
    pub beam_type: u32,
    /// Beam energy in GeV.
    pub beam_energy: u32,
}

/// Data separator record (note §11.5). The data block follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataSeparator {
    /// Number of the block in the file sequence, from 1 (the BESIII dialect counts from elsewhere).
    pub block_number: u32,
    /// Size of the block as stored, in bytes.
    pub block_bytes: u32,
}

/// File end record (note §11.6). MB is 2^20 bytes, rounded to nearest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileEnd {
    /// When the file was closed, local time of the writer.
    pub closed: Stamp,
    /// Events in this file.
    pub events: u32,
    /// MB of event data in this file.
    pub megabytes: u32,
    /// Events in the sequence so far.
    pub sequence_events: u32,
    /// MB of event data in the sequence so far.
    pub sequence_megabytes: u32,
    /// Status word: 1 = last file of the sequence, 0 = more follow.
    pub status: u32,
}

impl FileStart {
    /// Bytes of the record.
    pub const BYTES: usize = 8 * WORD_BYTES;

    /// The record.
    pub fn emit(&self, out: &mut Vec<u8>) {
        push_all(out, &[marker::FILE_START, to_word(Self::BYTES / WORD_BYTES), self.version.to_word()]);
        push_all(out, &[self.file_number, self.opened.date.to_word(), self.opened.time.to_word()]);
        push_all(out, &[self.blocks_max, self.megabytes_max]);
    }

    /// Parses the record at the beginning of `bytes`.
    ///
    /// # Errors
    ///
    /// Wrong marker, size, version, date or time.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Problem> {
        if !record_head(Part::FileStart, marker::FILE_START, Self::BYTES, bytes)? {
            return Ok(Parsed::Need(Self::BYTES));
        }
        let found = word(bytes, 2);
        let version = FileVersion::from_word(found)
            .ok_or_else(|| Problem::new(2 * WORD_BYTES, ProblemKind::FileVersion { found }))?;
        let start = Self {
            version,
            file_number: word(bytes, 3),
            opened: stamp(bytes, 4)?,
            blocks_max: word(bytes, 6),
            megabytes_max: word(bytes, 7),
        };
        Ok(Parsed::Done(start, Self::BYTES))
    }
}

impl FileNames {
    /// The record, strings padded with spaces.
    ///
    /// # Panics
    ///
    /// If the strings are longer than a record of 1 MiB holds.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        push(out, marker::FILE_NAMES);
        push_string(out, &self.application);
        push_string(out, &self.core);
        assert!(out.len() - begin <= RECORD_BYTES_MAX, "the names fit into a record");
    }

    /// Parses the record at the beginning of `bytes`.
    ///
    /// # Errors
    ///
    /// Wrong marker, more than 1 MiB, or not UTF-8.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Problem> {
        let mut cursor = Cursor::begin(Part::FileNames, marker::FILE_NAMES, bytes)?;
        let mut take = || cursor.string();
        let (Some(application), Some(core)) = (take()?, take()?) else {
            return Ok(Parsed::Need(cursor.needed));
        };
        Ok(Parsed::Done(Self { application, core }, cursor.needed))
    }
}

impl Metadata {
    /// Strings of a new file in the order of the original writer: GUID, the user's, stream, project, luminosity block.
    ///
    /// User strings that hold one of the reserved keys are left out, since readers would take them for these.
    pub fn new<'s>(
        guid: Guid,
        user: impl IntoIterator<Item = &'s str>,
        stream_type: &str,
        stream_name: &str,
        project: &str,
        lumi_block: u32,
    ) -> Self {
        let mut strings = vec![format!("GUID={guid}")];
        let free = |text: &&str| !RESERVED_KEYS.iter().any(|key| text.contains(key));
        strings.extend(user.into_iter().filter(free).map(str::to_owned));
        strings.push(format!("Stream={stream_type}_{stream_name}"));
        strings.push(format!("Project={project}"));
        strings.push(format!("LumiBlock={lumi_block}"));
        Self(strings)
    }

    /// GUID of string 0.
    pub fn guid(&self) -> Option<Guid> {
        self.0.first()?.strip_prefix("GUID=")?.parse().ok()
    }

    /// Value behind `key` and `=` in the first string that holds them, as the original reader searches.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.0.iter().find_map(|text| {
            let at = text.find(key)?;
            text[at + key.len()..].strip_prefix('=')
        })
    }

    /// Whether each data block is one zlib stream (note §11.5).
    pub fn blocks_are_compressed(&self) -> bool {
        self.value("Compression") == Some("zlib")
    }

    /// The record, strings padded with spaces.
    ///
    /// # Panics
    ///
    /// If the strings are longer than a record of 1 MiB holds.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        push_all(out, &[marker::METADATA, to_word(self.0.len())]);
        for text in &self.0 {
            push_string(out, text);
        }
        assert!(out.len() - begin <= RECORD_BYTES_MAX, "the metadata fit into a record");
    }

    /// Parses the record at the beginning of `bytes`.
    ///
    /// # Errors
    ///
    /// Wrong marker, more than 1 MiB, or not UTF-8.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Problem> {
        let mut cursor = Cursor::begin(Part::Metadata, marker::METADATA, bytes)?;
        let Some(count) = cursor.word() else {
            return Ok(Parsed::Need(cursor.needed));
        };
        cursor.limit(size(count).saturating_mul(WORD_BYTES))?;
        let mut strings = Vec::new();
        for _ in 0..count {
            match cursor.string()? {
                Some(text) => strings.push(text),
                None => return Ok(Parsed::Need(cursor.needed)),
            }
        }
        Ok(Parsed::Done(Self(strings), cursor.needed))
    }
}

impl RunParameters {
    /// Words of the record in a version.
    pub fn record_words(version: FileVersion) -> usize {
        FIXED_RUN_WORDS + version.mask_words()
    }

    /// The record in a file of `version`; a version keeps as many bits of the mask as it has.
    pub fn emit(&self, version: FileVersion, out: &mut Vec<u8>) {
        push_all(out, &[marker::RUN_PARAMETERS, to_word(Self::record_words(version)), self.run_number]);
        push_all(out, &[self.events_max, self.recording_enabled, self.trigger_type]);
        for index in 0..version.mask_words() {
            push(out, (self.detector_mask.0 >> (32 * index)) as u32);
        }
        push_all(out, &[self.beam_type, self.beam_energy]);
    }

    /// Parses the record at the beginning of `bytes` of a file of `version`.
    ///
    /// # Errors
    ///
    /// Wrong marker, or a size that does not fit the version.
    pub fn parse(version: FileVersion, bytes: &[u8]) -> Result<Parsed<Self>, Problem> {
        let length = Self::record_words(version) * WORD_BYTES;
        if !record_head(Part::RunParameters, marker::RUN_PARAMETERS, length, bytes)? {
            return Ok(Parsed::Need(length));
        }
        let mask_words = version.mask_words();
        let mask = (0..mask_words).map(|index| u128::from(word(bytes, MASK_AT + index)) << (32 * index));
        let parameters = Self {
            run_number: word(bytes, 2),
            events_max: word(bytes, 3),
            recording_enabled: word(bytes, 4),
            trigger_type: word(bytes, 5),
            detector_mask: DetectorMask(mask.sum()),
            beam_type: word(bytes, MASK_AT + mask_words),
            beam_energy: word(bytes, MASK_AT + mask_words + 1),
        };
        Ok(Parsed::Done(parameters, length))
    }
}

impl DataSeparator {
    /// Bytes of the record.
    pub const BYTES: usize = 4 * WORD_BYTES;

    /// The record.
    pub fn emit(&self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        let record_words = to_word(Self::BYTES / WORD_BYTES);
        let words = [marker::DATA_SEPARATOR, record_words, self.block_number, self.block_bytes];
        for (index, value) in words.into_iter().enumerate() {
            crate::word::put(&mut out, index, value);
        }
        out
    }

    /// Parses the record at the beginning of `bytes`.
    ///
    /// # Errors
    ///
    /// Wrong marker or size.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Problem> {
        if !record_head(Part::DataSeparator, marker::DATA_SEPARATOR, Self::BYTES, bytes)? {
            return Ok(Parsed::Need(Self::BYTES));
        }
        let separator = Self { block_number: word(bytes, 2), block_bytes: word(bytes, 3) };
        Ok(Parsed::Done(separator, Self::BYTES))
    }
}

impl FileEnd {
    /// Bytes of the record.
    pub const BYTES: usize = 10 * WORD_BYTES;

    /// Event bytes as MB of the record: rounded to nearest.
    pub fn megabytes(event_bytes: u64) -> u32 {
        u32::try_from((event_bytes + (1 << 19)) >> 20).unwrap_or(u32::MAX)
    }

    /// The record.
    pub fn emit(&self, out: &mut Vec<u8>) {
        push_all(out, &[marker::FILE_END, to_word(Self::BYTES / WORD_BYTES)]);
        push_all(out, &[self.closed.date.to_word(), self.closed.time.to_word(), self.events, self.megabytes]);
        push_all(out, &[self.sequence_events, self.sequence_megabytes, self.status, marker::FILE_END_TRAILER]);
    }

    /// Parses the record at the beginning of `bytes`.
    ///
    /// # Errors
    ///
    /// Wrong marker, size, date, time or end marker.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<Self>, Problem> {
        if !record_head(Part::FileEnd, marker::FILE_END, Self::BYTES, bytes)? {
            return Ok(Parsed::Need(Self::BYTES));
        }
        let (found, expected) = (word(bytes, 9), marker::FILE_END_TRAILER);
        if found != expected {
            let kind = ProblemKind::Marker { part: Part::FileEnd, found, expected };
            return Err(Problem::new(9 * WORD_BYTES, kind));
        }
        let end = Self {
            closed: stamp(bytes, 2)?,
            events: word(bytes, 4),
            megabytes: word(bytes, 5),
            sequence_events: word(bytes, 6),
            sequence_megabytes: word(bytes, 7),
            status: word(bytes, 8),
        };
        Ok(Parsed::Done(end, Self::BYTES))
    }
}

/// Markers of the records.
pub(crate) mod marker {
    pub(crate) const FILE_START: u32 = 0x1234_aaaa;
    pub(crate) const FILE_NAMES: u32 = 0x1234_aabb;
    pub(crate) const METADATA: u32 = 0x1234_aabc;
    pub(crate) const RUN_PARAMETERS: u32 = 0x1234_bbbb;
    pub(crate) const DATA_SEPARATOR: u32 = 0x1234_cccc;
    pub(crate) const FILE_END: u32 = 0x1234_dddd;
    pub(crate) const FILE_END_TRAILER: u32 = 0x1234_eeee;
}

/// Largest record of strings that is read or written, in bytes.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Keys that readers search for, which a user string must not hold (note §11.3).
pub const RESERVED_KEYS: [&str; 5] = ["GUID=", "Stream=", "Project=", "LumiBlock=", "Compression="];

/// Checks marker and size of a record of fixed length; `false` if bytes are missing.
fn record_head(part: Part, expected: u32, length: usize, bytes: &[u8]) -> Result<bool, Problem> {
    if bytes.len() >= WORD_BYTES && word(bytes, 0) != expected {
        let kind = ProblemKind::Marker { part, found: word(bytes, 0), expected };
        return Err(Problem::new(0, kind));
    }
    let expected_words = to_word(length / WORD_BYTES);
    if bytes.len() >= 2 * WORD_BYTES && word(bytes, 1) != expected_words {
        let kind = ProblemKind::RecordSize { part, found_words: word(bytes, 1), expected_words };
        return Err(Problem::new(WORD_BYTES, kind));
    }
    Ok(bytes.len() >= length)
}

fn stamp(bytes: &[u8], index: usize) -> Result<Stamp, Problem> {
    let (date, time) = (word(bytes, index), word(bytes, index + 1));
    let at = index * WORD_BYTES;
    Ok(Stamp {
        date: Date::from_word(date).ok_or_else(|| Problem::new(at, ProblemKind::Date { found: date }))?,
        time: Time::from_word(time).ok_or_else(|| Problem::new(at + WORD_BYTES, ProblemKind::Time { found: time }))?,
    })
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    push(out, to_word(text.len()));
    out.extend_from_slice(text.as_bytes());
    let padding = text.len().next_multiple_of(WORD_BYTES) - text.len();
    out.extend(std::iter::repeat_n(b' ', padding));
}

/// Reads words and strings; `needed` is the end of what was asked for, in the record.
struct Cursor<'a> {
    part: Part,
    bytes: &'a [u8],
    needed: usize,
    strings: u32,
}

impl<'a> Cursor<'a> {
    fn begin(part: Part, expected: u32, bytes: &'a [u8]) -> Result<Self, Problem> {
        if bytes.len() >= WORD_BYTES && word(bytes, 0) != expected {
            let kind = ProblemKind::Marker { part, found: word(bytes, 0), expected };
            return Err(Problem::new(0, kind));
        }
        Ok(Self { part, bytes, needed: WORD_BYTES, strings: 0 })
    }

    fn word(&mut self) -> Option<u32> {
        let at = self.needed;
        self.needed += WORD_BYTES;
        (self.needed <= self.bytes.len()).then(|| word(&self.bytes[at..], 0))
    }

    /// `None` if bytes are missing; then nothing may be read any more.
    fn string(&mut self) -> Result<Option<String>, Problem> {
        if self.needed > self.bytes.len() {
            return Ok(None);
        }
        let Some(length) = self.word() else {
            return Ok(None);
        };
        self.limit(size(length))?;
        let start = self.needed;
        self.needed += size(length).next_multiple_of(WORD_BYTES);
        if self.needed > self.bytes.len() {
            return Ok(None);
        }
        let (part, index) = (self.part, self.strings);
        self.strings += 1;
        let text = std::str::from_utf8(&self.bytes[start..start + size(length)])
            .map_err(|_| Problem::new(start, ProblemKind::Text { part, index }))?;
        Ok(Some(text.to_owned()))
    }

    /// Refuses a record that `more` bytes would make larger than allowed.
    fn limit(&self, more: usize) -> Result<(), Problem> {
        let (bytes, limit_bytes) = ((self.needed as u64).saturating_add(more as u64), RECORD_BYTES_MAX as u64);
        if bytes <= limit_bytes {
            return Ok(());
        }
        let at = self.needed - WORD_BYTES;
        Err(Problem::new(at, ProblemKind::Oversize { part: self.part, bytes, limit_bytes }))
    }
}

/// The problem of a record that needs more bytes than there are.
pub(crate) fn short_record(part: Part, offset: u64, needed: usize, have: u64) -> Problem {
    truncated(part, 0, needed, have as usize).shifted(offset)
}

const MASK_AT: usize = 6;
const FIXED_RUN_WORDS: usize = MASK_AT + 2;

const _: () = {
    assert!(FileStart::BYTES == 32 && DataSeparator::BYTES == 16 && FileEnd::BYTES == 40);
    assert!(FIXED_RUN_WORDS + 4 == 12 && FIXED_RUN_WORDS + 2 == 10 && FIXED_RUN_WORDS + 1 == 9);
};

#[cfg(test)]
mod tests {
    use super::*;

    fn guid() -> Guid {
        "10605EAF-52B1-DB11-94A4-000347D7BFE1".parse().unwrap()
    }

    #[test]
    fn metadata_hold_what_readers_search() {
        let user = ["made=here", "LumiBlock=9", "my GUID=x", "note"];
        let metadata = Metadata::new(guid(), user, "physics", "Main", "data22", 3);
        let known =
            ["GUID=10605EAF-52B1-DB11-94A4-000347D7BFE1", "Stream=physics_Main", "Project=data22", "LumiBlock=3"];
        assert_eq!(metadata.0, [known[0], "made=here", "note", known[1], known[2], known[3]]);
        assert_eq!(metadata.guid(), Some(guid()));
        assert_eq!((metadata.value("Stream"), metadata.value("LumiBlock")), (Some("physics_Main"), Some("3")));
        assert_eq!((metadata.value("Tier"), metadata.value("note")), (None, None));
        let prefixed = Metadata(vec!["the LumiBlock=7".into()]);
        assert_eq!((prefixed.value("LumiBlock"), prefixed.guid()), (Some("7"), None));
    }

    #[test]
    fn only_zlib_compresses_blocks() {
        let compressed = |text: &str| Metadata(vec![text.to_owned()]).blocks_are_compressed();
        assert!(compressed("Compression=zlib"));
        assert!(!compressed("Compression=none") && !compressed("zlib"));
    }

    #[test]
    fn megabytes_are_rounded_to_nearest() {
        const HALF: u64 = 1 << 19;
        for (bytes, megabytes) in
            [(0, 0), (HALF - 1, 0), (HALF, 1), (3 * HALF - 1, 1), (3 * HALF, 2), (u64::MAX / 2, u32::MAX)]
        {
            assert_eq!(FileEnd::megabytes(bytes), megabytes, "{bytes}");
        }
    }

    #[test]
    fn versions_of_files() {
        let known: Vec<_> =
            (0..10).filter_map(|word| FileVersion::from_word(word).map(|version| (word, version))).collect();
        assert_eq!(known, [(2, FileVersion::V2), (5, FileVersion::V5), (6, FileVersion::V6)]);
        let words = known.iter().map(|(_, version)| RunParameters::record_words(*version));
        assert_eq!(words.collect::<Vec<_>>(), [9, 10, 12]);
    }

    #[test]
    fn a_record_of_strings_has_at_most_one_mebibyte() {
        // Marker, length of the application, its text, length of the core.
        let rest = 4 * WORD_BYTES;
        let names = FileNames { application: "SFO1".into(), core: "x".repeat(RECORD_BYTES_MAX - rest) };
        let mut record = Vec::new();
        names.emit(&mut record);
        assert_eq!(FileNames::parse(&record), Ok(Parsed::Done(names, RECORD_BYTES_MAX)));
        record[3 * WORD_BYTES..rest].copy_from_slice(&to_word(RECORD_BYTES_MAX - rest + 1).to_le_bytes());
        let (bytes, limit_bytes) = (RECORD_BYTES_MAX as u64 + 1, RECORD_BYTES_MAX as u64);
        let kind = ProblemKind::Oversize { part: Part::FileNames, bytes, limit_bytes };
        assert_eq!(FileNames::parse(&record), Err(Problem::new(3 * WORD_BYTES, kind)));
        // So many strings have no place for their lengths.
        let mut strings = Vec::new();
        push_all(&mut strings, &[marker::METADATA, 1 << 30]);
        assert!(matches!(
            Metadata::parse(&strings),
            Err(Problem { offset: 4, kind: ProblemKind::Oversize { .. }, .. })
        ));
    }

    #[test]
    fn damaged_records_are_named() {
        let stamp = Stamp { date: Date::new(8, 4, 2026).unwrap(), time: Time::new(12, 3, 40).unwrap() };
        let start =
            FileStart { version: FileVersion::V6, file_number: 1, opened: stamp, blocks_max: 0, megabytes_max: 0 };
        let mut record = Vec::new();
        start.emit(&mut record);
        let part = Part::FileStart;
        let cases = [
            (0, ProblemKind::Marker { part, found: 77, expected: marker::FILE_START }),
            (1, ProblemKind::RecordSize { part, found_words: 77, expected_words: 8 }),
            (2, ProblemKind::FileVersion { found: 77 }),
            (4, ProblemKind::Date { found: 77 }),
            (5, ProblemKind::Time { found: 77 }),
        ];
        for (index, kind) in cases {
            let mut damaged = record.clone();
            crate::word::put(&mut damaged, index, 77);
            assert_eq!(FileStart::parse(&damaged), Err(Problem::new(index * WORD_BYTES, kind)));
            // The error comes as soon as the wrong bytes are there.
            let head = FileStart::parse(&damaged[..(index + 1) * WORD_BYTES]);
            assert_eq!(head.is_err(), index < 2, "{index}");
        }
        let mut names = Vec::new();
        FileNames { application: "SFO1".into(), core: "core".into() }.emit(&mut names);
        names[4 * WORD_BYTES] = 0xff;
        let kind = ProblemKind::Text { part: Part::FileNames, index: 1 };
        assert_eq!(FileNames::parse(&names), Err(Problem::new(4 * WORD_BYTES, kind)));
        names[0] = 0;
        let kind = ProblemKind::Marker { part: Part::FileNames, found: 0x1234_aa00, expected: marker::FILE_NAMES };
        assert_eq!(FileNames::parse(&names), Err(Problem::new(0, kind)));
    }
}
