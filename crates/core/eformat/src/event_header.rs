//! Full event header of format 5.0 as a plain value, and the writing of events (format note §3a).

use crate::checksum::{Adler32, ChecksumType};
use crate::compression::{CompressionType, zlib_pack};
use crate::event::Event;
use crate::fragment::EventFormat;
use crate::layout::{EVENT_HEADER_WORDS_MIN, event4, event5, generic, marker};
use crate::problem::{Part, Problem, ProblemKind};
use crate::run::{Bcid, RunType};
use crate::source_id::SourceId;
use crate::word::{WORD_BYTES, push, push_all, size, to_word};

/// Header of a full event, without what follows from its payload (that is [`EventFraming`]).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct EventHeader {
    /// Low half of the version word.
    pub minor_version: u16,
    /// Source identifier.
    pub source_id: SourceId,
    /// Status words; writers put one.
    pub status: Vec<u32>,
    /// Bunch crossing time in seconds, unix time.
    pub seconds: u32,
    /// Nanoseconds added to the seconds.
    pub nanoseconds: u32,
    /// Event number.
    pub global_id: u64,
    /// Run type.
    pub run_type: RunType,
    /// Run number.
    pub run_number: u32,
    /// Luminosity block.
    pub lumi_block: u16,
    /// Extended level-1 id.
    pub lvl1_id: u32,
    /// Bunch crossing number.
    pub bcid: Bcid,
    /// Level-1 trigger type.
    pub trigger_type: u8,
    /// Level-1 trigger info words (note §4).
    pub lvl1_info: Vec<u32>,
    /// Level-2 info words.
    pub lvl2_info: Vec<u32>,
    /// Event filter (HLT) info words.
    pub hlt_info: Vec<u32>,
    /// Stream tag words, made by [`stream_tag::encode`](crate::stream_tag::encode) or taken over as they are.
    pub stream_tags: Vec<u32>,
}

/// What a full event header says about its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventFraming {
    /// Payload as stored, in words.
    pub payload_words: usize,
    /// Payload before compression, in words.
    pub unpacked_words: u32,
    /// How the payload is stored.
    pub compression: CompressionType,
    /// How the payload is protected.
    pub checksum: ChecksumType,
}

impl EventHeader {
    /// The header of `event` in terms of format 5.0, whatever its own format is.
    ///
    /// # Errors
    ///
    /// [`ProblemKind::Field`] if a word holds more bits than its field has.
    pub fn of(event: &Event<'_>) -> Result<Self, Problem> {
        let fragment = event.fragment();
        let (bcid, lumi_block, trigger_type) = match event.format() {
            EventFormat::V4 => (event4::BCID, event4::LUMI_BLOCK, event4::TRIGGER_TYPE),
            EventFormat::V3 => (0, 0, crate::layout::event3::TRIGGER_TYPE),
            EventFormat::V5 => (event5::BCID, event5::LUMI_BLOCK, event5::TRIGGER_TYPE),
        };
        let field = |index, field, found: u32, max: u32| {
            if found <= max {
                return Ok(found);
            }
            let kind = ProblemKind::Field { part: Part::FullEvent, field, found, max };
            Err(Problem::new(event.specific_offset(index), kind))
        };
        Ok(Self {
            minor_version: fragment.version() as u16,
            source_id: event.source_id(),
            status: fragment.status_words().collect(),
            seconds: event.seconds(),
            nanoseconds: event.nanoseconds(),
            global_id: event.global_id(),
            run_type: event.run_type(),
            run_number: event.run_number(),
            lumi_block: field(lumi_block, "luminosity block", event.lumi_block(), u32::from(u16::MAX))? as u16,
            lvl1_id: event.lvl1_id(),
            bcid: Bcid::masked(field(bcid, "bcid", event.bcid(), u32::from(Bcid::MAX))?),
            trigger_type: field(trigger_type, "trigger type", event.trigger_type(), u32::from(u8::MAX))? as u8,
            lvl1_info: event.lvl1_info().collect(),
            lvl2_info: event.lvl2_info().collect(),
            hlt_info: event.hlt_info().collect(),
            stream_tags: crate::word::words(event.stream_tags()).collect(),
        })
    }

    /// Size of the header: 23 + N + n1 + n2 + n3 + n4 words.
    pub fn header_words(&self) -> usize {
        let blocks = [&self.status, &self.lvl1_info, &self.lvl2_info, &self.hlt_info, &self.stream_tags];
        EVENT_HEADER_WORDS_MIN + blocks.iter().map(|block| block.len()).sum::<usize>()
    }

    /// Appends the header of format 5.0.
    ///
    /// # Panics
    ///
    /// If the event had more than 2^32 words.
    pub fn emit(&self, framing: &EventFraming, out: &mut Vec<u8>) {
        let header_words = self.header_words();
        let total_words = header_words + framing.payload_words + framing.checksum.trailer_words();
        out.reserve(header_words * WORD_BYTES);
        let version = EventFormat::V5.version() | u32::from(self.minor_version);
        push_all(out, &[marker::FULL_EVENT, to_word(total_words), to_word(header_words), version]);
        push_all(out, &[self.source_id.0, to_word(self.status.len())]);
        push_all(out, &self.status);
        push(out, framing.checksum.to_word());
        push_all(out, &[self.seconds, self.nanoseconds, self.global_id as u32, (self.global_id >> 32) as u32]);
        push_all(out, &[self.run_type.0, self.run_number, u32::from(self.lumi_block), self.lvl1_id]);
        push_all(out, &[u32::from(self.bcid.get()), u32::from(self.trigger_type)]);
        push_all(out, &[framing.compression.to_word(), framing.unpacked_words]);
        for block in [&self.lvl1_info, &self.lvl2_info, &self.hlt_info, &self.stream_tags] {
            push(out, to_word(block.len()));
            push_all(out, block);
        }
    }
}

impl EventFraming {
    /// The framing that `event` has, in terms of format 5.0.
    pub fn of(event: &Event<'_>) -> Self {
        let payload_words = event.fragment().payload().len() / WORD_BYTES;
        let unpacked_words = match event.format() {
            EventFormat::V5 => {
                let at = event.specific_offset(event5::UNPACKED_WORDS) / WORD_BYTES;
                crate::word::word(event.fragment().bytes(), at)
            }
            _ => to_word(payload_words),
        };
        let checksum = event.fragment().checksum_type();
        Self { payload_words, unpacked_words, compression: event.compression(), checksum }
    }
}

/// Writes the header of an uncompressed event around `payload`, ROBs in pieces that stay where they are, to `out`
/// (cleared first). Returns the bytes that follow the payload: the Adler-32, if `adler32` is set.
///
/// The event is `out`, the pieces, then the returned bytes.
///
/// ```
/// use eformat::{Event, EventHeader, event_envelope};
/// let (mut header, rob) = (Vec::new(), eformat::lost_rob(&Default::default()));
/// let trailer = event_envelope(&EventHeader::default(), [rob.as_slice()], true, &mut header);
/// let event = [header.as_slice(), &rob, &trailer.expect("a checksum was asked for")].concat();
/// assert_eq!(Event::parse(&event)?.fragment().verify_checksum(), Ok(()));
/// # Ok::<(), eformat::Problem>(())
/// ```
///
/// # Panics
///
/// If the payload is not whole words, or the event had more than 2^32 words.
pub fn event_envelope<'p>(
    header: &EventHeader,
    payload: impl IntoIterator<Item = &'p [u8]>,
    adler32: bool,
    out: &mut Vec<u8>,
) -> Option<[u8; WORD_BYTES]> {
    let mut payload_bytes = 0;
    let mut sum = Adler32::new();
    for piece in payload {
        payload_bytes += piece.len();
        if adler32 {
            sum.update(piece);
        }
    }
    assert!(payload_bytes.is_multiple_of(WORD_BYTES), "the payload of an event is whole words");
    let payload_words = payload_bytes / WORD_BYTES;
    let checksum = if adler32 { ChecksumType::Adler32 } else { ChecksumType::None };
    let compression = CompressionType::None;
    out.clear();
    header.emit(&EventFraming { payload_words, unpacked_words: to_word(payload_words), compression, checksum }, out);
    adler32.then(|| sum.value().to_le_bytes())
}

/// A complete event with its payload compressed by zlib `level` (note §9).
///
/// # Panics
///
/// If the payload is not whole words, or the event had more than 2^32 words.
pub fn compressed_event<'p>(
    header: &EventHeader,
    payload: impl IntoIterator<Item = &'p [u8]>,
    level: u32,
    checksum: ChecksumType,
) -> Vec<u8> {
    let mut unpacked_bytes = 0;
    let packed = zlib_pack(payload.into_iter().inspect(|piece| unpacked_bytes += piece.len()), level);
    assert!(unpacked_bytes.is_multiple_of(WORD_BYTES), "the payload of an event is whole words");
    let framing = EventFraming {
        payload_words: packed.len() / WORD_BYTES,
        unpacked_words: to_word(unpacked_bytes / WORD_BYTES),
        compression: CompressionType::Zlib,
        checksum,
    };
    let mut out = Vec::with_capacity(header.header_words() * WORD_BYTES + packed.len() + WORD_BYTES);
    header.emit(&framing, &mut out);
    out.extend_from_slice(&packed);
    if let Some(sum) = checksum.compute(&packed) {
        push(&mut out, sum);
    }
    out
}

/// Size in bytes that the event beginning at `bytes` claims; `None` if there is no event marker or no size yet.
///
/// For readers of a stream; nothing else is checked.
pub fn event_size_bytes(bytes: &[u8]) -> Option<u64> {
    let needed = (generic::FRAGMENT_SIZE + 1) * WORD_BYTES;
    let begins = bytes.len() >= needed && crate::word::word(bytes, generic::MARKER) == marker::FULL_EVENT;
    begins.then(|| (size(crate::word::word(bytes, generic::FRAGMENT_SIZE)) * WORD_BYTES) as u64)
}
