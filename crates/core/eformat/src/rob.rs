//! ROB fragments (format note §5): views, and the fast functions of the data path.

use std::ops::Range;

use crate::checksum::{ChecksumType, adler32};
use crate::fragment::{EventFormat, Fragment};
use crate::layout::{EMPTY_ROB_WORDS, ROB_HEADER_WORDS, ROD_HEADER_WORDS, ROD_TRAILER_WORDS, generic, marker};
use crate::problem::{Part, Problem};
use crate::rod::{HEADER_BYTES, Rod, RodHeader};
use crate::source_id::SourceId;
use crate::status::StatusWord;
use crate::word::{WORD_BYTES, push, push_all, put, to_word};

/// A ROB fragment with a checked header. Its ROD is checked by [`rod`](Self::rod).
#[derive(Debug, Clone, Copy)]
pub struct Rob<'a> {
    fragment: Fragment<'a>,
    offset: usize,
}

impl<'a> Rob<'a> {
    /// Checks the ROB that fills `bytes`.
    ///
    /// # Errors
    ///
    /// The first problem of the ROB header.
    pub fn parse(format: EventFormat, bytes: &'a [u8]) -> Result<Self, Problem> {
        Ok(Self { fragment: Fragment::parse(Part::Rob, format, bytes)?, offset: 0 })
    }

    /// Checks the ROB at the beginning of `bytes[offset..]`, which may be longer; problems have offsets in `bytes`.
    pub(crate) fn parse_at(format: EventFormat, bytes: &'a [u8], offset: usize) -> Result<Self, Problem> {
        let fragment = Fragment::parse_prefix(Part::Rob, format, &bytes[offset..])
            .map_err(|problem| problem.shifted(offset as u64))?;
        Ok(Self { fragment, offset })
    }

    /// The generic part: bytes, source, status, checksum.
    #[inline]
    pub fn fragment(&self) -> &Fragment<'a> {
        &self.fragment
    }

    /// Byte offset of the ROB in the bytes that were iterated; 0 after [`parse`](Self::parse).
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Source identifier.
    #[inline]
    pub fn source_id(&self) -> SourceId {
        self.fragment.source_id()
    }

    /// First status word.
    #[inline]
    pub fn status(&self) -> StatusWord {
        self.fragment.status()
    }

    /// The ROD fragment inside.
    ///
    /// # Errors
    ///
    /// What is wrong with the ROD header; offset in the bytes of the ROB.
    #[inline]
    pub fn rod(&self) -> Result<Rod<'a>, Problem> {
        Rod::parse(self.fragment.format(), self.fragment.payload())
            .map_err(|problem| problem.shifted(self.fragment.payload_range().start as u64))
    }

    /// Header as a plain value.
    pub fn header(&self) -> RobHeader {
        RobHeader {
            minor_version: self.fragment.version() as u16,
            source_id: self.source_id(),
            status: self.fragment.status_words().collect(),
            checksum: self.fragment.checksum_type(),
        }
    }
}

/// ROBs that lie one behind the other, as in a reply of a ROS or the payload of an event of format 4.0 or 5.0.
///
/// Ends after the first problem, since the next ROB cannot be found then.
///
/// ```
/// use eformat::{EventFormat, RobParams, Robs, lost_rob};
/// let mut reply = Vec::new();
/// reply.extend(lost_rob(&RobParams::default()));
/// reply.extend(lost_rob(&RobParams::default()));
/// let robs: Vec<_> = Robs::new(EventFormat::V5, &reply).collect::<Result<_, _>>()?;
/// assert_eq!(robs.len(), 2);
/// # Ok::<(), eformat::Problem>(())
/// ```
#[derive(Debug, Clone)]
pub struct Robs<'a> {
    format: EventFormat,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Robs<'a> {
    /// Iterates over `bytes`.
    pub fn new(format: EventFormat, bytes: &'a [u8]) -> Self {
        Self { format, bytes, at: 0 }
    }
}

impl<'a> Iterator for Robs<'a> {
    type Item = Result<Rob<'a>, Problem>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.bytes.len() {
            return None;
        }
        let rob = Rob::parse_at(self.format, self.bytes, self.at);
        self.at = match &rob {
            Ok(rob) => self.at + rob.fragment.bytes().len(),
            Err(_) => self.bytes.len(),
        };
        Some(rob)
    }
}

/// What the data path needs to know of a ROB of format 5.0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobSummary {
    /// Source identifier of the ROB.
    pub source_id: SourceId,
    /// First status word of the ROB.
    pub status: StatusWord,
    /// Run number of the ROD.
    pub run_number: u32,
    /// Extended level-1 id of the ROD.
    pub lvl1_id: u32,
    /// Bunch crossing of the ROD.
    pub bcid: u32,
    /// Level-1 trigger type of the ROD.
    pub trigger_type: u32,
    /// Where the detector data lie in the bytes of the ROB.
    pub data: Range<usize>,
}

/// Checks everything of the ROB of format 5.0 that fills `bytes` except its checksum; a few nanoseconds, no
/// allocation.
///
/// # Errors
///
/// The first problem, a ROD size mismatch included.
#[inline]
pub fn check_rob(bytes: &[u8]) -> Result<RobSummary, Problem> {
    let rob = Rob::parse(EventFormat::V5, bytes)?;
    let rod = rob.rod()?;
    let rod_start = rob.fragment.payload_range().start;
    if let Some(problem) = rod.size_problem() {
        return Err(problem.shifted(rod_start as u64));
    }
    let data = rod.data_range();
    Ok(RobSummary {
        source_id: rob.source_id(),
        status: rob.status(),
        run_number: rod.run_number(),
        lvl1_id: rod.lvl1_id(),
        bcid: rod.bcid(),
        trigger_type: rod.trigger_type(),
        data: rod_start + data.start..rod_start + data.end,
    })
}

/// What a ROB written here says besides its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RobParams {
    /// Header of the ROD; its source identifier is also the ROB's. The run number is masked to 31 bits on writing.
    pub rod: RodHeader,
    /// Status word of the ROB.
    pub status: StatusWord,
    /// Status word of the ROD.
    pub rod_status: StatusWord,
    /// Whether the ROB ends with an Adler-32 of its ROD.
    pub adler32: bool,
}

impl RobParams {
    /// Bytes of the complete ROB around `data_bytes` bytes of data.
    pub const fn rob_bytes(&self, data_bytes: usize) -> usize {
        ROB_PREFIX_BYTES + data_bytes + self.suffix_bytes()
    }

    /// Bytes behind the data: ROD status word, ROD trailer and checksum.
    pub const fn suffix_bytes(&self) -> usize {
        ROB_SUFFIX_BYTES + if self.adler32 { WORD_BYTES } else { 0 }
    }
}

/// Writes the ROB and ROD headers in front of data that lie in `buf` already, and status, trailer and checksum behind.
///
/// `buf` is the ROB: [`ROB_PREFIX_BYTES`], the data, then [`RobParams::suffix_bytes`]. The data are a multiple of 4 bytes.
///
/// # Panics
///
/// If `buf` has another length than `params.rob_bytes(data_bytes)` or the data are not whole words.
#[inline]
pub fn write_rob_fragment(buf: &mut [u8], params: &RobParams, data_bytes: usize) {
    assert_eq!(buf.len(), params.rob_bytes(data_bytes), "the buffer has exactly the size of the ROB");
    let data_end = ROB_PREFIX_BYTES + data_bytes;
    buf[..ROB_PREFIX_BYTES].copy_from_slice(&rob_prefix(params, data_bytes));
    let suffix = rob_suffix(params, data_bytes);
    buf[data_end..data_end + ROB_SUFFIX_BYTES].copy_from_slice(&suffix);
    if params.adler32 {
        let rod_end = data_end + ROB_SUFFIX_BYTES;
        let sum = adler32(&buf[ROB_HEADER_BYTES..rod_end]);
        buf[rod_end..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// The ROB and ROD headers in front of `data_bytes` bytes of data, for vectored output.
///
/// # Panics
///
/// If the data are not whole words.
#[inline]
pub fn rob_prefix(params: &RobParams, data_bytes: usize) -> [u8; ROB_PREFIX_BYTES] {
    assert!(data_bytes.is_multiple_of(WORD_BYTES), "fragment data are whole words");
    let checksum = if params.adler32 { ChecksumType::Adler32 } else { ChecksumType::None };
    let mut out = [0; ROB_PREFIX_BYTES];
    put(&mut out, generic::MARKER, marker::ROB);
    put(&mut out, generic::FRAGMENT_SIZE, to_word(params.rob_bytes(data_bytes) / WORD_BYTES));
    put(&mut out, generic::HEADER_SIZE, ROB_HEADER_WORDS as u32);
    put(&mut out, generic::VERSION, EventFormat::V5.version());
    put(&mut out, generic::SOURCE_ID, params.rod.source_id.0);
    put(&mut out, generic::STATUS_COUNT, 1);
    put(&mut out, generic::STATUS, params.status.0);
    put(&mut out, generic::STATUS + 1, checksum.to_word());
    let rod = RodHeader { run_number: params.rod.run_number & RUN_NUMBER_MASK, ..params.rod };
    out[ROB_HEADER_BYTES..].copy_from_slice(&rod.emit());
    out
}

/// The ROD status word and trailer behind `data_bytes` bytes of data, without checksum.
///
/// # Panics
///
/// If the data are not whole words.
#[inline]
pub fn rob_suffix(params: &RobParams, data_bytes: usize) -> [u8; ROB_SUFFIX_BYTES] {
    assert!(data_bytes.is_multiple_of(WORD_BYTES), "fragment data are whole words");
    let mut out = [0; ROB_SUFFIX_BYTES];
    put(&mut out, 0, params.rod_status.0);
    put(&mut out, 1, 1);
    put(&mut out, 2, to_word(data_bytes / WORD_BYTES));
    put(&mut out, 3, STATUS_BEHIND_DATA);
    out
}

/// An empty ROB that stands for data that are not there: no data, [`StatusWord::LOST`] in ROB and ROD, no checksum.
///
/// Statuses and checksum choice of `params` are not used. For other reasons (discard mode, time-out) write a ROB
/// without data by [`write_rob_fragment`].
pub fn lost_rob(params: &RobParams) -> [u8; LOST_ROB_BYTES] {
    let lost = RobParams { status: StatusWord::LOST, rod_status: StatusWord::LOST, adler32: false, ..*params };
    let mut out = [0; LOST_ROB_BYTES];
    write_rob_fragment(&mut out, &lost, 0);
    out
}

/// Header of a ROB of format 5.0 as a plain value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RobHeader {
    /// Low half of the version word.
    pub minor_version: u16,
    /// Source identifier.
    pub source_id: SourceId,
    /// Status words; writers put one.
    pub status: Vec<u32>,
    /// How the ROD is protected.
    pub checksum: ChecksumType,
}

impl RobHeader {
    /// The complete ROB around `rod`, the bytes of one ROD fragment.
    ///
    /// # Panics
    ///
    /// If `rod` is not whole words, or the ROB had more than 2^32 words.
    pub fn emit(&self, rod: &[u8]) -> Vec<u8> {
        assert!(rod.len().is_multiple_of(WORD_BYTES), "a ROD fragment is whole words");
        let header_words = generic::fixed_words(self.status.len());
        let total_words = header_words + rod.len() / WORD_BYTES + self.checksum.trailer_words();
        let mut out = Vec::with_capacity(total_words * WORD_BYTES);
        let version = EventFormat::V5.version() | u32::from(self.minor_version);
        push_all(&mut out, &[marker::ROB, to_word(total_words), to_word(header_words), version]);
        push_all(&mut out, &[self.source_id.0, to_word(self.status.len())]);
        push_all(&mut out, &self.status);
        push(&mut out, self.checksum.to_word());
        out.extend_from_slice(rod);
        if let Some(sum) = self.checksum.compute(rod) {
            push(&mut out, sum);
        }
        out
    }
}

/// Bytes of ROB and ROD header in front of the data of a ROB written here.
pub const ROB_PREFIX_BYTES: usize = ROB_HEADER_BYTES + HEADER_BYTES;
/// Bytes of ROD status word and trailer behind the data, without checksum.
pub const ROB_SUFFIX_BYTES: usize = (1 + ROD_TRAILER_WORDS) * WORD_BYTES;
/// Bytes of [`lost_rob`].
pub const LOST_ROB_BYTES: usize = EMPTY_ROB_WORDS * WORD_BYTES;

const ROB_HEADER_BYTES: usize = ROB_HEADER_WORDS * WORD_BYTES;
/// The original writer keeps 31 bits of the run number in a ROD (note §5).
const RUN_NUMBER_MASK: u32 = 0x7fff_ffff;
const STATUS_BEHIND_DATA: u32 = 1;

const _: () = {
    assert!(ROB_PREFIX_BYTES == 68 && ROB_SUFFIX_BYTES == 16 && LOST_ROB_BYTES == 84);
    assert!(ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES == LOST_ROB_BYTES);
    assert!(HEADER_BYTES == ROD_HEADER_WORDS * WORD_BYTES);
};
