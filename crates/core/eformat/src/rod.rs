//! ROD fragments (format note §5).

use crate::fragment::{EventFormat, check_marker};
use crate::layout::{ROD_HEADER_WORDS, ROD_TRAILER_WORDS, ROD_VERSION, marker, rod};
use crate::problem::{Part, Problem, ProblemKind, truncated};
use crate::run::Bcid;
use crate::source_id::SourceId;
use crate::word::{WORD_BYTES, put, size, word, words};

/// A ROD fragment with a checked header.
///
/// Its size may contradict its trailer; [`size_problem`](Self::size_problem) tells. Navigation goes on then, as the
/// note §5 says, with no status words and everything behind the header as data.
#[derive(Debug, Clone, Copy)]
pub struct Rod<'a> {
    bytes: &'a [u8],
    status_words: usize,
    data_words: usize,
    status_first: bool,
    problem: Option<Problem>,
}

impl<'a> Rod<'a> {
    /// Checks the ROD that fills `bytes`, the payload of a ROB of an event of `format`.
    ///
    /// # Errors
    ///
    /// Wrong marker, header size or major version, or less than a header; a size mismatch is no error here.
    #[inline]
    pub fn parse(format: EventFormat, bytes: &'a [u8]) -> Result<Self, Problem> {
        check_marker(Part::Rod, marker::ROD, bytes)?;
        if bytes.len() < HEADER_BYTES {
            return Err(truncated(Part::Rod, 0, HEADER_BYTES, bytes.len()));
        }
        if !bytes.len().is_multiple_of(WORD_BYTES) {
            let kind = ProblemKind::NotWords { part: Part::Rod, bytes: bytes.len() as u64 };
            return Err(Problem::new(0, kind));
        }
        let header_words = word(bytes, rod::HEADER_SIZE);
        if size(header_words) != ROD_HEADER_WORDS {
            let expected_words = ROD_HEADER_WORDS as u64;
            let kind = ProblemKind::HeaderSize { part: Part::Rod, found_words: header_words, expected_words };
            return Err(Problem::new(rod::HEADER_SIZE * WORD_BYTES, kind));
        }
        let (version, expected) = (word(bytes, rod::VERSION), format.rod_version());
        if version >> 16 != expected >> 16 {
            let kind = ProblemKind::Version { part: Part::Rod, found: version, expected };
            return Err(Problem::new(rod::VERSION * WORD_BYTES, kind));
        }
        Ok(Self::parse_body(bytes))
    }

    #[inline]
    fn parse_body(bytes: &'a [u8]) -> Self {
        let total = bytes.len() / WORD_BYTES;
        let damaged = |offset, kind| Self {
            bytes,
            status_words: 0,
            data_words: total - ROD_HEADER_WORDS,
            status_first: true,
            problem: Some(Problem::new(offset, kind)),
        };
        let least = ROD_HEADER_WORDS + ROD_TRAILER_WORDS;
        if total < least {
            let kind = ProblemKind::RodSize { found_words: total as u64, expected_words: least as u64 };
            return damaged(0, kind);
        }
        let status_words = word(bytes, total - rod::TRAILER_STATUS_COUNT);
        let data_words = word(bytes, total - rod::TRAILER_DATA_COUNT);
        let expected_words = least as u64 + u64::from(status_words) + u64::from(data_words);
        if expected_words != total as u64 {
            let at = (total - rod::TRAILER_STATUS_COUNT) * WORD_BYTES;
            return damaged(at, ProblemKind::RodSize { found_words: total as u64, expected_words });
        }
        let position = word(bytes, total - rod::TRAILER_POSITION);
        let at = (total - rod::TRAILER_POSITION) * WORD_BYTES;
        Self {
            bytes,
            status_words: size(status_words),
            data_words: size(data_words),
            status_first: position == 0,
            problem: (position > 1).then(|| Problem::new(at, ProblemKind::StatusPosition { found: position })),
        }
    }

    /// All bytes of the fragment.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What is wrong with the trailer, if anything; offset in [`bytes`](Self::bytes).
    #[inline]
    pub fn size_problem(&self) -> Option<Problem> {
        self.problem
    }

    /// Low half of the version word, defined by the detector.
    pub fn minor_version(&self) -> u16 {
        word(self.bytes, rod::VERSION) as u16
    }

    /// Source identifier; normally that of the ROB.
    pub fn source_id(&self) -> SourceId {
        SourceId(word(self.bytes, rod::SOURCE_ID))
    }

    /// Run number.
    #[inline]
    pub fn run_number(&self) -> u32 {
        word(self.bytes, rod::RUN_NUMBER)
    }

    /// Extended level-1 id: ECR counter in bits 24-31, level-1 counter below.
    #[inline]
    pub fn lvl1_id(&self) -> u32 {
        word(self.bytes, rod::LVL1_ID)
    }

    /// Bunch crossing word; 12 bits are defined.
    #[inline]
    pub fn bcid(&self) -> u32 {
        word(self.bytes, rod::BCID)
    }

    /// Level-1 trigger type word; 8 bits are defined.
    #[inline]
    pub fn trigger_type(&self) -> u32 {
        word(self.bytes, rod::TRIGGER_TYPE)
    }

    /// Detector event type.
    pub fn event_type(&self) -> u32 {
        word(self.bytes, rod::EVENT_TYPE)
    }

    /// Status words.
    pub fn status_words(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        let before = if self.status_first { 0 } else { self.data_words };
        words(self.body(before, self.status_words))
    }

    /// Data of the detector.
    pub fn data(&self) -> &'a [u8] {
        &self.bytes[self.data_range()]
    }

    /// Where the data lie in [`bytes`](Self::bytes).
    #[inline]
    pub fn data_range(&self) -> std::ops::Range<usize> {
        let before = if self.status_first { self.status_words } else { 0 };
        let start = (ROD_HEADER_WORDS + before) * WORD_BYTES;
        start..start + self.data_words * WORD_BYTES
    }

    /// Header as a plain value.
    ///
    /// # Errors
    ///
    /// [`ProblemKind::Field`] if bunch crossing or trigger type hold more bits than defined.
    pub fn header(&self) -> Result<RodHeader, Problem> {
        let bcid = u16::try_from(self.bcid()).ok().and_then(Bcid::new);
        let trigger_type = u8::try_from(self.trigger_type());
        Ok(RodHeader {
            minor_version: self.minor_version(),
            source_id: self.source_id(),
            run_number: self.run_number(),
            lvl1_id: self.lvl1_id(),
            bcid: bcid.ok_or_else(|| self.field(rod::BCID, "bcid", u32::from(Bcid::MAX)))?,
            trigger_type: trigger_type
                .map_err(|_| self.field(rod::TRIGGER_TYPE, "trigger type", u32::from(u8::MAX)))?,
            event_type: self.event_type(),
        })
    }

    fn field(&self, index: usize, field: &'static str, max: u32) -> Problem {
        let kind = ProblemKind::Field { part: Part::Rod, field, found: word(self.bytes, index), max };
        Problem::new(index * WORD_BYTES, kind)
    }

    fn body(&self, start_words: usize, length_words: usize) -> &'a [u8] {
        let start = (ROD_HEADER_WORDS + start_words) * WORD_BYTES;
        &self.bytes[start..start + length_words * WORD_BYTES]
    }
}

/// Header of a ROD of the current version, as a plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RodHeader {
    /// Detector-defined minor version.
    pub minor_version: u16,
    /// Source identifier.
    pub source_id: SourceId,
    /// Run number.
    pub run_number: u32,
    /// Extended level-1 id: ECR counter in bits 24-31.
    pub lvl1_id: u32,
    /// Bunch crossing number.
    pub bcid: Bcid,
    /// Level-1 trigger type.
    pub trigger_type: u8,
    /// Detector event type.
    pub event_type: u32,
}

impl RodHeader {
    /// The nine words.
    #[inline]
    pub fn emit(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        put(&mut out, rod::MARKER, marker::ROD);
        put(&mut out, rod::HEADER_SIZE, ROD_HEADER_WORDS as u32);
        put(&mut out, rod::VERSION, ROD_VERSION | u32::from(self.minor_version));
        put(&mut out, rod::SOURCE_ID, self.source_id.0);
        put(&mut out, rod::RUN_NUMBER, self.run_number);
        put(&mut out, rod::LVL1_ID, self.lvl1_id);
        put(&mut out, rod::BCID, u32::from(self.bcid.get()));
        put(&mut out, rod::TRIGGER_TYPE, u32::from(self.trigger_type));
        put(&mut out, rod::EVENT_TYPE, self.event_type);
        out
    }
}

/// Bytes of a ROD header.
pub(crate) const HEADER_BYTES: usize = ROD_HEADER_WORDS * WORD_BYTES;
