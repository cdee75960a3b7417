//! What can be wrong with a file or an event, and where.

use std::fmt;

use crate::checksum::ChecksumType;

/// One thing wrong with the bytes of an event or a file: where it is, what was found and what was expected.
///
/// Covers what the format note §5 says that a checker calls a problem, and the framing around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Problem {
    /// Byte offset in the bytes given to the function that reports it; for file functions, in the file.
    pub offset: u64,
    /// Where the problem lies in compressed data, byte offset in the decompressed bytes; `offset` is then the
    /// place of the compressed data.
    pub unpacked_offset: Option<u64>,
    /// What is wrong.
    pub kind: ProblemKind,
}

impl Problem {
    /// A problem at `offset`.
    pub fn new(offset: usize, kind: ProblemKind) -> Self {
        Self { offset: offset as u64, unpacked_offset: None, kind }
    }

    /// The same problem seen from bytes in which the reporting function's bytes begin at `base`.
    #[must_use]
    pub fn shifted(self, base: u64) -> Self {
        Self { offset: self.offset + base, ..self }
    }

    /// The same problem, found in bytes decompressed from data at `base`.
    #[must_use]
    pub fn unpacked_from(self, base: u64) -> Self {
        Self { offset: base, unpacked_offset: Some(self.unpacked_offset.unwrap_or(self.offset)), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}", self.offset)?;
        if let Some(unpacked) = self.unpacked_offset {
            write!(f, " (byte {unpacked} of the decompressed data)")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for Problem {}

/// What is wrong. Sizes are in the unit named by the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProblemKind {
    /// The bytes end before the thing does.
    #[error("{part} is truncated: it needs {needed_bytes} bytes, {have_bytes} are there")]
    Truncated {
        /// The thing cut short.
        part: Part,
        /// Bytes it needs, as far as is known.
        needed_bytes: u64,
        /// Bytes from its start to the end.
        have_bytes: u64,
    },
    /// Bytes follow where nothing may follow.
    #[error("{extra_bytes} bytes follow the end of the {part}")]
    TrailingBytes {
        /// The thing that ended.
        part: Part,
        /// Bytes behind it.
        extra_bytes: u64,
    },
    /// A length that is not a whole number of 32-bit words.
    #[error("{part} has {bytes} bytes, which is not a multiple of 4")]
    NotWords {
        /// The thing measured.
        part: Part,
        /// Its length.
        bytes: u64,
    },
    /// A size above what the caller allows.
    #[error("{part} has {bytes} bytes, more than the limit of {limit_bytes}")]
    Oversize {
        /// The thing that is too large.
        part: Part,
        /// Its length.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// Wrong marker word (note §5: 1 and 2).
    #[error("wrong {part} marker {found:#010x}, expected {expected:#010x}{}", swapped(*.found, *.expected))]
    Marker {
        /// The fragment or record expected here.
        part: Part,
        /// Word found.
        found: u32,
        /// Word expected.
        expected: u32,
    },
    /// A record marker that may not stand here.
    #[error("unknown record marker {found:#010x}, expected {expected}")]
    RecordOrder {
        /// Word found.
        found: u32,
        /// The records that may follow here, in words.
        expected: &'static str,
    },
    /// Unsupported format version (note §5: 3 and 5).
    #[error("unsupported {part} version {found:#010x}, expected {expected:#010x}")]
    Version {
        /// The fragment.
        part: Part,
        /// Version word found.
        found: u32,
        /// Version word expected; only the upper half is compared.
        expected: u32,
    },
    /// Wrong header size (note §5: 4 and 6).
    #[error("{part} header size is {found_words} words, expected {expected_words}")]
    HeaderSize {
        /// The fragment.
        part: Part,
        /// Words that the header claims.
        found_words: u32,
        /// Words that follow from the other fields.
        expected_words: u64,
    },
    /// A fragment size that cannot hold its own header, or that its container contradicts (note §5: 4).
    #[error("{part} size is {found_words} words, expected {expected_words}")]
    FragmentSize {
        /// The fragment.
        part: Part,
        /// Words that the header claims.
        found_words: u64,
        /// Words expected.
        expected_words: u64,
    },
    /// ROD size does not match its trailer (note §5: 7); navigation goes on.
    #[error("ROD size is {found_words} words, its trailer says {expected_words}")]
    RodSize {
        /// Words of the ROB payload.
        found_words: u64,
        /// 12 + status words + data words.
        expected_words: u64,
    },
    /// Status block position is neither 0 nor 1.
    #[error("ROD status block position is {found}, expected 0 (before the data) or 1 (behind)")]
    StatusPosition {
        /// Word found.
        found: u32,
    },
    /// A field holds more bits than it may (note §3a, §5).
    #[error("{part} field `{field}` is {found}, expected at most {max}")]
    Field {
        /// The fragment or record.
        part: Part,
        /// Name of the field.
        field: &'static str,
        /// Value found.
        found: u32,
        /// Largest legal value.
        max: u32,
    },
    /// Unknown checksum type (note §8).
    #[error("unknown {part} checksum type {found}, expected 0 (none), 1 (CRC16) or 2 (Adler-32)")]
    ChecksumType {
        /// The fragment.
        part: Part,
        /// Word found.
        found: u32,
    },
    /// The checksum does not belong to the data.
    #[error("{part} checksum ({kind}) is {stored:#010x}, the data give {computed:#010x}")]
    Checksum {
        /// The fragment.
        part: Part,
        /// How it is computed.
        kind: ChecksumType,
        /// Value in the fragment.
        stored: u32,
        /// Value of the data.
        computed: u32,
    },
    /// Unknown event compression (note §9).
    #[error("unknown compression type {found}, expected 0 (none) or 1 (zlib)")]
    CompressionType {
        /// Word found.
        found: u32,
    },
    /// Data that are not one zlib stream with zero padding to a word.
    #[error("{part} is not one valid zlib stream padded with zeros to a word")]
    Zlib {
        /// The compressed thing.
        part: Part,
    },
    /// Decompressed size differs from the one declared.
    #[error("payload decompresses to {found_bytes} bytes, the header says {expected_bytes}")]
    UnpackedSize {
        /// Bytes that came out (or more: decompression stops there).
        found_bytes: u64,
        /// Bytes declared.
        expected_bytes: u64,
    },
    /// File version is not 2, 5 or 6 (note §11.1).
    #[error("file format version {found}, expected 2, 5 or 6")]
    FileVersion {
        /// Word found.
        found: u32,
    },
    /// Record size does not fit record and version (note §11.7).
    #[error("{part} record size is {found_words} words, expected {expected_words}")]
    RecordSize {
        /// The record.
        part: Part,
        /// Word found.
        found_words: u32,
        /// Words expected.
        expected_words: u32,
    },
    /// Date is not DDMMYYYY (note §11.1).
    #[error("date {found} is not a date written DDMMYYYY")]
    Date {
        /// Word found.
        found: u32,
    },
    /// Time is not HHMMSS (note §11.1).
    #[error("time {found} is not a time written HHMMSS")]
    Time {
        /// Word found.
        found: u32,
    },
    /// Text that is not UTF-8.
    #[error("string {index} of the {part} is not UTF-8 text")]
    Text {
        /// The record.
        part: Part,
        /// Which string, from 0.
        index: u32,
    },
    /// String 0 of the metadata is not `GUID=` with a GUID (note §11.3).
    #[error("metadata string 0 is not `GUID=` and 8-4-4-4-12 upper-case hexadecimal digits")]
    Guid,
    /// Data block number does not continue the count (note §11.5).
    #[error("data block number is {found}, expected {expected}")]
    BlockNumber {
        /// Word found.
        found: u32,
        /// Number before it plus one, or the first number of a sequence.
        expected: u32,
    },
    /// A count in the file end record is not what the file holds (note §11.6).
    #[error("file end record says {field} = {found}, the file holds {expected}")]
    EndCount {
        /// Which count.
        field: &'static str,
        /// Word found.
        found: u32,
        /// Value of the file.
        expected: u32,
    },
    /// What the records in front of the events say of the events is not what these say.
    #[error("the records in front of the events do not agree with most of the events, or their GUID is damaged")]
    HeaderDiffers,
    /// Two places say different things of the same event.
    #[error("{field} of the {part} is {found:#x}, expected {expected:#x} as in the {other}")]
    Mismatch {
        /// Where the problem is reported.
        part: Part,
        /// What both say.
        field: &'static str,
        /// Value found.
        found: u32,
        /// The other place.
        other: Part,
        /// Its value.
        expected: u32,
    },
    /// The event id is not the level-1 id, as it is in the events before.
    #[error(
        "event id {event} does not belong to the level-1 id {lvl1_id:#010x}; those of the events before are the same"
    )]
    EventId {
        /// Event id found.
        event: u64,
        /// Level-1 id of the event.
        lvl1_id: u32,
    },
    /// An event of this id stands further ahead in the file.
    #[error("event id {event} is in the file twice")]
    DuplicateEvent {
        /// The id.
        event: u64,
    },
    /// The file has no end record (note §11.6).
    #[error("the file has no file end record: it was not closed (`recover` makes it valid)")]
    NoEndRecord,
}

/// Fragment or record that a [`Problem`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Full event fragment, note §3.
    FullEvent,
    /// Sub-detector fragment, event format 3.0 only.
    SubDetector,
    /// ROS fragment, event format 3.0 only.
    Ros,
    /// ROB fragment, note §5.
    Rob,
    /// ROD fragment, note §5.
    Rod,
    /// File start record, note §11.1.
    FileStart,
    /// File name strings, note §11.2.
    FileNames,
    /// Metadata strings, note §11.3.
    Metadata,
    /// Run parameters, note §11.4.
    RunParameters,
    /// Data separator, note §11.5.
    DataSeparator,
    /// Data block behind a separator, note §11.5.
    DataBlock,
    /// File end record, note §11.6.
    FileEnd,
    /// The file as a whole.
    File,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::FullEvent => "full event",
            Part::SubDetector => "sub-detector",
            Part::Ros => "ROS",
            Part::Rob => "ROB",
            Part::Rod => "ROD",
            Part::FileStart => "file start",
            Part::FileNames => "file name strings",
            Part::Metadata => "metadata strings",
            Part::RunParameters => "run parameters",
            Part::DataSeparator => "data separator",
            Part::DataBlock => "data block",
            Part::FileEnd => "file end",
            Part::File => "file",
        })
    }
}

/// Says so when the words are of the other byte order: the `1234` in each marker is there for this (note §1).
fn swapped(found: u32, expected: u32) -> &'static str {
    if found.swap_bytes() == expected { " (the bytes are in big-endian order)" } else { "" }
}

/// A [`ProblemKind::Truncated`] at `offset`.
pub(crate) fn truncated(part: Part, offset: usize, needed_bytes: usize, have_bytes: usize) -> Problem {
    let kind = ProblemKind::Truncated { part, needed_bytes: needed_bytes as u64, have_bytes: have_bytes as u64 };
    Problem::new(offset, kind)
}
