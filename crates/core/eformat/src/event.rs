//! Full event fragments (format note §3): checked views.

use std::borrow::Cow;

use crate::compression::{CompressionType, zlib_unpack};
use crate::fragment::{EventFormat, Fragment};
use crate::layout::{event3, event4, event5, generic};
use crate::problem::{Part, Problem, ProblemKind, truncated};
use crate::run::RunType;
use crate::source_id::SourceId;
use crate::status::StatusWord;
use crate::tree::EventRobs;
use crate::word::{WORD_BYTES, size, word, words};

/// A full event of any supported format with a checked header.
///
/// What lies in the payload is checked on the way through it ([`robs`](Self::robs)) or at once by
/// [`check_event`](crate::check_event).
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    fragment: Fragment<'a>,
    compression: CompressionType,
}

impl<'a> Event<'a> {
    /// Checks the header of the event that fills `bytes`.
    ///
    /// # Errors
    ///
    /// The first problem found, with its offset in `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Problem> {
        let format = format_of(bytes)?;
        let fragment = Fragment::parse(Part::FullEvent, format, bytes)?;
        Self::with_fragment(fragment)
    }

    fn with_fragment(fragment: Fragment<'a>) -> Result<Self, Problem> {
        let mut event = Self { fragment, compression: CompressionType::None };
        if event.format() == EventFormat::V5 {
            let found = event.specific_word(event5::COMPRESSION);
            event.compression = CompressionType::from_word(found).ok_or_else(|| {
                let offset = event.specific_offset(event5::COMPRESSION);
                Problem::new(offset, ProblemKind::CompressionType { found })
            })?;
        }
        Ok(event)
    }

    /// The generic part: bytes, status words, checksum, payload.
    pub fn fragment(&self) -> &Fragment<'a> {
        &self.fragment
    }

    /// Format version.
    pub fn format(&self) -> EventFormat {
        self.fragment.format()
    }

    /// Source identifier (note §3d).
    pub fn source_id(&self) -> SourceId {
        self.fragment.source_id()
    }

    /// First status word.
    pub fn status(&self) -> StatusWord {
        self.fragment.status()
    }

    /// Bunch crossing time in seconds, unix time.
    pub fn seconds(&self) -> u32 {
        self.specific_word(match self.format() {
            EventFormat::V5 => event5::SECONDS,
            EventFormat::V4 => event4::SECONDS,
            EventFormat::V3 => event3::SECONDS,
        })
    }

    /// Nanoseconds added to [`seconds`](Self::seconds); 0 in format 3.0.
    pub fn nanoseconds(&self) -> u32 {
        match self.format() {
            EventFormat::V5 => self.specific_word(event5::NANOSECONDS),
            EventFormat::V4 => self.specific_word(event4::NANOSECONDS),
            EventFormat::V3 => 0,
        }
    }

    /// Global event id (the event number).
    pub fn global_id(&self) -> u64 {
        match self.format() {
            EventFormat::V5 => {
                let low = self.specific_word(event5::GLOBAL_ID_LOW);
                u64::from(self.specific_word(event5::GLOBAL_ID_HIGH)) << 32 | u64::from(low)
            }
            EventFormat::V4 => u64::from(self.specific_word(event4::GLOBAL_ID)),
            EventFormat::V3 => u64::from(self.specific_word(event3::GLOBAL_ID)),
        }
    }

    /// Run type; physics in format 3.0, which has no such word.
    pub fn run_type(&self) -> RunType {
        match self.format() {
            EventFormat::V5 => RunType(self.specific_word(event5::RUN_TYPE)),
            EventFormat::V4 => RunType(self.specific_word(event4::RUN_TYPE)),
            EventFormat::V3 => RunType::PHYSICS,
        }
    }

    /// Run number.
    pub fn run_number(&self) -> u32 {
        self.specific_word(match self.format() {
            EventFormat::V5 => event5::RUN_NUMBER,
            EventFormat::V4 => event4::RUN_NUMBER,
            EventFormat::V3 => event3::RUN_NUMBER,
        })
    }

    /// Luminosity block word (16 bits are defined); 0 in format 3.0.
    pub fn lumi_block(&self) -> u32 {
        match self.format() {
            EventFormat::V5 => self.specific_word(event5::LUMI_BLOCK),
            EventFormat::V4 => self.specific_word(event4::LUMI_BLOCK),
            EventFormat::V3 => 0,
        }
    }

    /// Extended level-1 id: ECR counter in bits 24-31.
    pub fn lvl1_id(&self) -> u32 {
        self.specific_word(match self.format() {
            EventFormat::V5 => event5::LVL1_ID,
            EventFormat::V4 => event4::LVL1_ID,
            EventFormat::V3 => event3::LVL1_ID,
        })
    }

    /// Bunch crossing word (12 bits are defined); 0 in format 3.0.
    pub fn bcid(&self) -> u32 {
        match self.format() {
            EventFormat::V5 => self.specific_word(event5::BCID),
            EventFormat::V4 => self.specific_word(event4::BCID),
            EventFormat::V3 => 0,
        }
    }

    /// Level-1 trigger type word; 8 bits are defined.
    pub fn trigger_type(&self) -> u32 {
        self.specific_word(match self.format() {
            EventFormat::V5 => event5::TRIGGER_TYPE,
            EventFormat::V4 => event4::TRIGGER_TYPE,
            EventFormat::V3 => event3::TRIGGER_TYPE,
        })
    }

    /// How the payload is stored.
    pub fn compression(&self) -> CompressionType {
        self.compression
    }

    /// Payload size without compression; the real size where the header does not count (note §3a, +11).
    pub fn unpacked_words(&self) -> usize {
        match self.compression {
            CompressionType::Zlib => size(self.specific_word(event5::UNPACKED_WORDS)),
            CompressionType::None => self.fragment.payload().len() / WORD_BYTES,
        }
    }

    /// Level-1 trigger info: before prescale, after prescale, after veto (note §4).
    pub fn lvl1_info(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        words(self.block(0))
    }

    /// Level-2 trigger info.
    pub fn lvl2_info(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        words(self.block(1))
    }

    /// Event filter (HLT) info.
    pub fn hlt_info(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        words(self.block(2))
    }

    /// Stream tag text with its padding; see [`stream_tag`](crate::stream_tag).
    pub fn stream_tags(&self) -> &'a [u8] {
        self.block(3)
    }

    /// The payload without compression, of at most `limit_bytes` if it has to be decompressed.
    ///
    /// # Errors
    ///
    /// Broken stream, too large, or not the size that the header declares; offsets are in the event.
    pub fn unpacked_payload(&self, limit_bytes: usize) -> Result<Cow<'a, [u8]>, Problem> {
        let packed = self.fragment.payload();
        if self.compression == CompressionType::None {
            return Ok(Cow::Borrowed(packed));
        }
        let expected = size(self.specific_word(event5::UNPACKED_WORDS)) * WORD_BYTES;
        let at = self.specific_offset(event5::UNPACKED_WORDS);
        if expected > limit_bytes {
            let (bytes, limit_bytes) = (expected as u64, limit_bytes as u64);
            return Err(Problem::new(at, ProblemKind::Oversize { part: Part::FullEvent, bytes, limit_bytes }));
        }
        let mismatch =
            |found_bytes| Problem::new(at, ProblemKind::UnpackedSize { found_bytes, expected_bytes: expected as u64 });
        match zlib_unpack(Part::FullEvent, packed, expected) {
            Ok(payload) if payload.len() == expected => Ok(Cow::Owned(payload)),
            Ok(payload) => Err(mismatch(payload.len() as u64)),
            Err(Problem { kind: ProblemKind::Oversize { bytes, .. }, .. }) => Err(mismatch(bytes)),
            Err(problem) => Err(problem.shifted(self.fragment.payload_range().start as u64)),
        }
    }

    /// The ROBs of `payload`, which [`unpacked_payload`](Self::unpacked_payload) gave; for format 3.0 through the
    /// sub-detector and ROS fragments. Offsets are in `payload`.
    pub fn robs<'p>(&self, payload: &'p [u8]) -> EventRobs<'p> {
        EventRobs::new(self.format(), payload)
    }

    pub(crate) fn specific_offset(&self, index: usize) -> usize {
        self.fragment.header_words() * WORD_BYTES - self.fragment.specific().len() + index * WORD_BYTES
    }

    fn specific_word(&self, index: usize) -> u32 {
        word(self.fragment.specific(), index)
    }

    /// One of the four counted blocks of formats 4.0 and 5.0. Format 3.0 has two fixed ones in their place.
    fn block(&self, which: usize) -> &'a [u8] {
        let specific = self.fragment.specific();
        let slice = |start: usize, length: usize| &specific[start * WORD_BYTES..(start + length) * WORD_BYTES];
        let mut at = match (self.format(), which) {
            (EventFormat::V5, _) => event5::INFO,
            (EventFormat::V4, _) => event4::INFO,
            (EventFormat::V3, 1) => return slice(event3::LVL2_INFO, 1),
            (EventFormat::V3, 2) => return slice(event3::EVENT_FILTER_INFO, event3::EVENT_FILTER_WORDS),
            (EventFormat::V3, _) => return &[],
        };
        for _ in 0..which {
            at += 1 + size(word(specific, at));
        }
        slice(at + 1, size(word(specific, at)))
    }
}

/// Format by the version word; a wrong marker is reported first.
fn format_of(bytes: &[u8]) -> Result<EventFormat, Problem> {
    crate::fragment::check_marker(Part::FullEvent, crate::layout::marker::FULL_EVENT, bytes)?;
    let needed = generic::WORDS_MIN * WORD_BYTES;
    if bytes.len() < needed {
        return Err(truncated(Part::FullEvent, 0, needed, bytes.len()));
    }
    let found = word(bytes, generic::VERSION);
    EventFormat::from_version(found).ok_or_else(|| {
        let kind = ProblemKind::Version { part: Part::FullEvent, found, expected: EventFormat::V5.version() };
        Problem::new(generic::VERSION * WORD_BYTES, kind)
    })
}
