//! The generic header that full event, sub-detector, ROS and ROB fragments share (format note §2, §2a).

use std::ops::Range;

use crate::checksum::ChecksumType;
use crate::layout::{event3, event4, event5, generic, marker};
use crate::problem::{Part, Problem, ProblemKind, truncated};
use crate::source_id::SourceId;
use crate::status::StatusWord;
use crate::word::{WORD_BYTES, size, word, words};

/// Version of the event format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventFormat {
    /// 3.0, with sub-detector and ROS fragments; the dialect of BESIII. Read only.
    V3,
    /// 4.0, LHC run 1. Read only.
    V4,
    /// 5.0, the current format.
    V5,
}

impl EventFormat {
    /// The format of a version word; the lower half of the word is not looked at.
    pub fn from_version(version: u32) -> Option<Self> {
        [Self::V3, Self::V4, Self::V5].into_iter().find(|format| format.version() >> 16 == version >> 16)
    }

    /// Version word of full events and ROBs.
    #[inline]
    pub fn version(self) -> u32 {
        match self {
            Self::V3 => 0x0300_0000,
            Self::V4 => 0x0400_0000,
            Self::V5 => 0x0500_0000,
        }
    }

    /// Version word of RODs, of which the upper half counts.
    #[inline]
    pub fn rod_version(self) -> u32 {
        match self {
            Self::V3 => 0x0300_0000,
            Self::V4 | Self::V5 => crate::layout::ROD_VERSION,
        }
    }
}

/// A fragment with a checked generic header: its sizes are consistent and lie within its bytes.
///
/// [`Event`](crate::Event) and [`Rob`](crate::Rob) are made of it.
#[derive(Debug, Clone, Copy)]
pub struct Fragment<'a> {
    bytes: &'a [u8],
    part: Part,
    format: EventFormat,
    status_words: usize,
    header_words: usize,
    checksum: ChecksumType,
}

impl<'a> Fragment<'a> {
    /// Checks the header of the fragment at the beginning of `bytes`, which may be longer.
    ///
    /// # Errors
    ///
    /// The first problem found, with its offset in `bytes`.
    ///
    /// # Panics
    ///
    /// If `part` is not one of the four kinds with this header: full event, sub-detector, ROS, ROB.
    #[inline]
    pub fn parse_prefix(part: Part, format: EventFormat, bytes: &'a [u8]) -> Result<Self, Problem> {
        check_marker(part, marker_of(part), bytes)?;
        if bytes.len() < generic::WORDS_MIN * WORD_BYTES {
            return Err(truncated(part, 0, generic::WORDS_MIN * WORD_BYTES, bytes.len()));
        }
        let (version, expected) = (word(bytes, generic::VERSION), format.version());
        if version >> 16 != expected >> 16 {
            let kind = ProblemKind::Version { part, found: version, expected };
            return Err(Problem::new(generic::VERSION * WORD_BYTES, kind));
        }
        let fragment_words = size(word(bytes, generic::FRAGMENT_SIZE));
        if fragment_words < generic::WORDS_MIN {
            return Err(bad_size(part, fragment_words, generic::WORDS_MIN));
        }
        if fragment_words * WORD_BYTES > bytes.len() {
            return Err(truncated(part, 0, fragment_words * WORD_BYTES, bytes.len()));
        }
        Self::parse_header(part, format, &bytes[..fragment_words * WORD_BYTES])
    }

    /// Checks a fragment that must fill `bytes`.
    ///
    /// # Errors
    ///
    /// The first problem found; [`ProblemKind::TrailingBytes`] if `bytes` go on behind the fragment.
    ///
    /// # Panics
    ///
    /// As [`parse_prefix`](Self::parse_prefix).
    pub fn parse(part: Part, format: EventFormat, bytes: &'a [u8]) -> Result<Self, Problem> {
        let fragment = Self::parse_prefix(part, format, bytes)?;
        let used = fragment.bytes.len();
        if used == bytes.len() {
            return Ok(fragment);
        }
        let kind = ProblemKind::TrailingBytes { part, extra_bytes: (bytes.len() - used) as u64 };
        Err(Problem::new(used, kind))
    }

    #[inline]
    fn parse_header(part: Part, format: EventFormat, bytes: &'a [u8]) -> Result<Self, Problem> {
        let status_words = size(word(bytes, generic::STATUS_COUNT));
        let header_words = size(word(bytes, generic::HEADER_SIZE));
        let fixed_words = generic::fixed_words(status_words);
        let total_words = bytes.len() / WORD_BYTES;
        if fixed_words > header_words || fixed_words > total_words {
            return Err(bad_header(part, header_words, fixed_words as u64));
        }
        let mut fragment = Self { bytes, part, format, status_words, header_words, checksum: ChecksumType::None };
        fragment.check_specific_words()?;
        let type_index = fixed_words - 1;
        let type_word = word(bytes, type_index);
        if format != EventFormat::V3 {
            fragment.checksum = ChecksumType::from_word(type_word).ok_or_else(|| {
                Problem::new(type_index * WORD_BYTES, ProblemKind::ChecksumType { part, found: type_word })
            })?;
        }
        let least_words = header_words + fragment.checksum.trailer_words();
        if least_words > total_words {
            return Err(bad_size(part, total_words, least_words));
        }
        Ok(fragment)
    }

    /// The header size follows from the counts in the header.
    #[inline]
    fn check_specific_words(&self) -> Result<(), Problem> {
        let expected_words = match (self.format, self.part) {
            (EventFormat::V3, _) => self.specific_words_v3()?,
            (_, Part::FullEvent) => {
                let (info, counted) = match self.format {
                    EventFormat::V5 => (event5::INFO, event5::COUNTED_WORDS),
                    _ => (event4::INFO, event4::COUNTED_WORDS),
                };
                self.counted_words(self.fixed_words() + info, counted + self.status_words)
            }
            _ => self.fixed_words() as u64,
        };
        if expected_words == self.header_words as u64 {
            Ok(())
        } else {
            Err(bad_header(self.part, self.header_words, expected_words))
        }
    }

    fn specific_words_v3(&self) -> Result<u64, Problem> {
        let index = self.fixed_words() - 1;
        let found = word(self.bytes, index);
        let required = match self.part {
            Part::FullEvent => Some(event3::WORDS),
            Part::Ros => Some(event3::ROS_WORDS),
            Part::Rob => Some(0),
            _ => None,
        };
        match required {
            Some(required) if required != size(found) => {
                let expected_words = (self.fixed_words() + required) as u64;
                let kind = ProblemKind::HeaderSize { part: self.part, found_words: found, expected_words };
                Err(Problem::new(index * WORD_BYTES, kind))
            }
            _ => Ok((self.fixed_words() + size(found)) as u64),
        }
    }

    /// Header size that follows from the four counted blocks; more than the header claims if a count lies outside.
    fn counted_words(&self, first_count: usize, base: usize) -> u64 {
        let mut at = first_count;
        let mut expected = base as u64;
        for _ in 0..4 {
            if at >= self.header_words.min(self.bytes.len() / WORD_BYTES) {
                return expected.max(self.header_words as u64 + 1);
            }
            let count = word(self.bytes, at);
            expected += u64::from(count);
            at = at.saturating_add(1 + size(count));
        }
        expected
    }

    fn fixed_words(&self) -> usize {
        generic::fixed_words(self.status_words)
    }

    /// All bytes of the fragment.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Which fragment it is.
    pub fn part(&self) -> Part {
        self.part
    }

    /// Format version.
    #[inline]
    pub fn format(&self) -> EventFormat {
        self.format
    }

    /// Version word; its lower half is the minor version.
    pub fn version(&self) -> u32 {
        word(self.bytes, generic::VERSION)
    }

    /// Header size.
    #[inline]
    pub fn header_words(&self) -> usize {
        self.header_words
    }

    /// Source identifier.
    #[inline]
    pub fn source_id(&self) -> SourceId {
        SourceId(word(self.bytes, generic::SOURCE_ID))
    }

    /// First status word; good if there is none (note §7).
    #[inline]
    pub fn status(&self) -> StatusWord {
        StatusWord(if self.status_words == 0 { 0 } else { word(self.bytes, generic::STATUS) })
    }

    /// All status words.
    pub fn status_words(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        words(self.word_bytes(generic::STATUS..generic::STATUS + self.status_words))
    }

    /// Bytes of the specific header.
    pub fn specific(&self) -> &'a [u8] {
        self.word_bytes(self.fixed_words()..self.header_words)
    }

    /// How the payload is protected.
    #[inline]
    pub fn checksum_type(&self) -> ChecksumType {
        self.checksum
    }

    /// Checksum word, if the fragment has one.
    #[inline]
    pub fn checksum(&self) -> Option<u32> {
        let last = self.bytes.len() / WORD_BYTES - 1;
        (self.checksum != ChecksumType::None).then(|| word(self.bytes, last))
    }

    /// Where the payload lies in [`bytes`](Self::bytes).
    #[inline]
    pub fn payload_range(&self) -> Range<usize> {
        self.header_words * WORD_BYTES..self.bytes.len() - self.checksum.trailer_words() * WORD_BYTES
    }

    /// Child fragments, or the compressed stream.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.payload_range()]
    }

    /// Compares the checksum word with the payload (note §8).
    ///
    /// # Errors
    ///
    /// [`ProblemKind::Checksum`] at the checksum word.
    pub fn verify_checksum(&self) -> Result<(), Problem> {
        let (Some(stored), Some(computed)) = (self.checksum(), self.checksum.compute(self.payload())) else {
            return Ok(());
        };
        if stored == computed {
            return Ok(());
        }
        let kind = ProblemKind::Checksum { part: self.part, kind: self.checksum, stored, computed };
        Err(Problem::new(self.payload_range().end, kind))
    }

    fn word_bytes(&self, range: Range<usize>) -> &'a [u8] {
        &self.bytes[range.start * WORD_BYTES..range.end * WORD_BYTES]
    }
}

/// Checks the marker if there are bytes for it, so that a wrong marker is not reported as a short fragment.
#[inline]
pub(crate) fn check_marker(part: Part, expected: u32, bytes: &[u8]) -> Result<(), Problem> {
    if bytes.len() < WORD_BYTES {
        return Err(truncated(part, 0, WORD_BYTES, bytes.len()));
    }
    let found = word(bytes, generic::MARKER);
    if found == expected { Ok(()) } else { Err(Problem::new(0, ProblemKind::Marker { part, found, expected })) }
}

#[inline]
fn marker_of(part: Part) -> u32 {
    match part {
        Part::FullEvent => marker::FULL_EVENT,
        Part::SubDetector => marker::SUB_DETECTOR,
        Part::Ros => marker::ROS,
        Part::Rob => marker::ROB,
        other => panic!("the {other} has no generic fragment header"),
    }
}

#[cold]
fn bad_size(part: Part, found_words: usize, expected_words: usize) -> Problem {
    let kind =
        ProblemKind::FragmentSize { part, found_words: found_words as u64, expected_words: expected_words as u64 };
    Problem::new(generic::FRAGMENT_SIZE * WORD_BYTES, kind)
}

#[cold]
fn bad_header(part: Part, found_words: usize, expected_words: u64) -> Problem {
    let kind = ProblemKind::HeaderSize { part, found_words: crate::word::to_word(found_words), expected_words };
    Problem::new(generic::HEADER_SIZE * WORD_BYTES, kind)
}
