//! The blocks of a trace file, each with its checksums. One content has one encoding: whatever else is refused.

use crate::recorder::Source;
use crate::{NOWHERE, Place, Section, Stamp, StampKind};

/// A piece of a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Whose file it is: the first block.
    Process {
        /// The id of the process.
        pid: u32,
        /// What counted the time.
        source: Source,
        /// Its name.
        name: String,
    },
    /// The name of the next section.
    Section(String),
    /// The name of an application.
    Place(Place, String),
    /// The name of the next thread.
    Thread(String),
    /// What one thread stamped.
    Stamps {
        /// Which, counted from zero in the order of their names.
        thread: u16,
        /// How many stamps between the block before and this one were overwritten.
        lost: u64,
        /// Its stamps.
        stamps: Vec<Stamp>,
    },
    /// The last block.
    End,
}

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum Fault {
    #[error("the file is empty: its process died before it wrote anything")]
    Empty,
    #[error("expected a trace file of Weir, which begins with \"weirtrac\"")]
    NotATrace,
    #[error("version {0}: this program reads version {VERSION}; use the one that wrote the file")]
    Version(u32),
    #[error("a block of {0} bytes: expected at most {BLOCK_MAX}")]
    TooLong(u32),
    #[error("a checksum does not fit: the file was changed")]
    Checksum,
    #[error("a block of kind {0}, which is unknown, or not expected here")]
    Unexpected(u8),
    #[error("the block does not hold what its kind says")]
    Malformed,
    #[error("a number or a flag that is not in its one form")]
    NotCanonical,
    #[error("stamps of a thread or a section that no block in front names")]
    Unnamed,
}

impl Block {
    /// Appends the bytes of the block. More stamps than [`STAMPS_PER_BLOCK`] become several blocks.
    ///
    /// # Panics
    /// If a name has more than 65,535 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut content = Vec::new();
        match self {
            Self::Process { pid, source, name } => {
                put(&mut content, u64::from(*pid));
                content.push(u8::from(*source == Source::Clock));
                content.extend_from_slice(name.as_bytes());
            }
            Self::Section(name) | Self::Thread(name) => content.extend_from_slice(name.as_bytes()),
            Self::Place(place, name) => {
                put(&mut content, u64::from(*place));
                content.extend_from_slice(name.as_bytes());
            }
            Self::Stamps { thread, lost, stamps } => {
                let (now, later) = stamps.split_at(stamps.len().min(STAMPS_PER_BLOCK));
                put(&mut content, u64::from(*thread));
                put(&mut content, *lost);
                let mut before = Before::default();
                now.iter().for_each(|stamp| put_stamp(&mut content, &mut before, stamp));
                write(STAMPS, &content, out);
                if !later.is_empty() {
                    Self::Stamps { thread: *thread, lost: 0, stamps: later.to_vec() }.encode(out);
                }
                return;
            }
            Self::End => {}
        }
        assert!(content.len() < 1 << 17, "a name of {} bytes is too long for a trace file", content.len());
        write(self.kind(), &content, out);
    }

    /// The block at the beginning and its length; `None` if the bytes end before it does.
    ///
    /// # Errors
    /// There is no such block.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Self, usize)>, Fault> {
        let Some((kind, content)) = checked(bytes)? else { return Ok(None) };
        let len = HEAD_LEN + content.len() + CHECKSUM_LEN;
        let mut rest = Rest(content);
        let block = match kind {
            PROCESS => Self::Process {
                pid: u32::try_from(rest.number()?).map_err(|_| Fault::Malformed)?,
                source: if rest.flag()? { Source::Clock } else { Source::Counter },
                name: rest.text()?,
            },
            SECTION => Self::Section(rest.text()?),
            PLACE => Self::Place(rest.small()?, rest.text()?),
            THREAD => Self::Thread(rest.text()?),
            STAMPS => Self::Stamps { thread: rest.small()?, lost: rest.number()?, stamps: rest.stamps()? },
            END if content.is_empty() => Self::End,
            END => return Err(Fault::Malformed),
            _ => return Err(Fault::Unexpected(kind)),
        };
        Ok(Some((block, len)))
    }

    pub(crate) fn kind(&self) -> u8 {
        match self {
            Self::Process { .. } => PROCESS,
            Self::Section(_) => SECTION,
            Self::Place(..) => PLACE,
            Self::Thread(_) => THREAD,
            Self::Stamps { .. } => STAMPS,
            Self::End => END,
        }
    }
}

/// What the stamp before said: a stamp tells the difference.
#[derive(Default)]
struct Before {
    at_ns: u64,
    event: u64,
}

fn put_stamp(content: &mut Vec<u8>, before: &mut Before, stamp: &Stamp) {
    content.push(stamp.kind as u8 | if stamp.event.is_some() { HAS_EVENT } else { 0 });
    put(content, stamp.at_ns.saturating_sub(before.at_ns));
    before.at_ns = before.at_ns.max(stamp.at_ns);
    if has_section(stamp.kind) {
        put(content, u64::from(stamp.section.0));
        // Nowhere is the most frequent one.
        put(content, u64::from(stamp.place.wrapping_add(1)));
        put(content, u64::from(stamp.peer.wrapping_add(1)));
    }
    if let Some(event) = stamp.event {
        let difference = event.wrapping_sub(before.event).cast_signed();
        put(content, ((difference << 1) ^ (difference >> 63)).cast_unsigned());
        before.event = event;
    }
}

pub(crate) fn has_section(kind: StampKind) -> bool {
    matches!(kind, StampKind::Enter | StampKind::Send)
}

/// Seven bits a byte, the lowest first.
fn put(content: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        content.push(number as u8 | 0x80);
        number >>= 7;
    }
    content.push(number as u8);
}

/// A length has a checksum of its own: so a changed one is told from the end of a file whose process died.
fn write(kind: u8, content: &[u8], out: &mut Vec<u8>) {
    let mut head = [kind, 0, 0, 0, 0];
    head[1..].copy_from_slice(&(content.len() as u32).to_le_bytes());
    let sum = crc32c::crc32c(&head);
    out.extend_from_slice(&head);
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(content);
    out.extend_from_slice(&crc32c::crc32c_append(sum, content).to_le_bytes());
}

/// Kind and content of the block at the beginning.
fn checked(bytes: &[u8]) -> Result<Option<(u8, &[u8])>, Fault> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LEN>() else { return Ok(None) };
    let [kind, l0, l1, l2, l3, sum @ ..] = *head;
    let sum = u32::from_le_bytes(sum);
    if sum != crc32c::crc32c(&head[..5]) {
        return Err(Fault::Checksum);
    }
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    if len > BLOCK_MAX {
        return Err(Fault::TooLong(len));
    }
    let Some((content, rest)) = rest.split_at_checked(len as usize) else { return Ok(None) };
    let Some((last, _)) = rest.split_first_chunk::<CHECKSUM_LEN>() else { return Ok(None) };
    if u32::from_le_bytes(*last) != crc32c::crc32c_append(sum, content) {
        return Err(Fault::Checksum);
    }
    Ok(Some((kind, content)))
}

/// What is left of a block.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn byte(&mut self) -> Result<u8, Fault> {
        let (first, rest) = self.0.split_first().ok_or(Fault::Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    fn flag(&mut self) -> Result<bool, Fault> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::NotCanonical),
        }
    }

    fn number(&mut self) -> Result<u64, Fault> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return Err(Fault::Malformed);
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                // A last byte of nothing could be left out.
                return if byte == 0 && shift > 0 { Err(Fault::NotCanonical) } else { Ok(number) };
            }
        }
        Err(Fault::Malformed)
    }

    fn small(&mut self) -> Result<u16, Fault> {
        u16::try_from(self.number()?).map_err(|_| Fault::Malformed)
    }

    /// All that is left.
    fn text(&mut self) -> Result<String, Fault> {
        String::from_utf8(std::mem::take(&mut self.0).to_vec()).map_err(|_| Fault::Malformed)
    }

    fn stamps(&mut self) -> Result<Vec<Stamp>, Fault> {
        let (mut stamps, mut before) = (Vec::new(), Before::default());
        while !self.0.is_empty() {
            if stamps.len() == STAMPS_PER_BLOCK {
                return Err(Fault::Malformed);
            }
            stamps.push(self.stamp(&mut before)?);
        }
        Ok(stamps)
    }

    fn stamp(&mut self, before: &mut Before) -> Result<Stamp, Fault> {
        let head = self.byte()?;
        let kind = match head & !HAS_EVENT {
            0 => StampKind::Enter,
            1 => StampKind::Leave,
            2 => StampKind::Send,
            3 => StampKind::Further,
            _ => return Err(Fault::Malformed),
        };
        before.at_ns = before.at_ns.checked_add(self.number()?).ok_or(Fault::Malformed)?;
        let (section, place, peer) = match has_section(kind) {
            true => (self.small()?, self.small()?.wrapping_sub(1), self.small()?.wrapping_sub(1)),
            false => (0, NOWHERE, NOWHERE),
        };
        let event = match head & HAS_EVENT {
            0 => None,
            _ => {
                let folded = self.number()?;
                let difference = (folded >> 1) ^ (folded & 1).wrapping_neg();
                before.event = before.event.wrapping_add(difference);
                Some(before.event)
            }
        };
        Ok(Stamp { at_ns: before.at_ns, kind, section: Section(section), place, peer, event })
    }
}

/// The version that is written and read.
pub const VERSION: u32 = 1;

/// Each takes at most 31 bytes.
pub const STAMPS_PER_BLOCK: usize = 4096;

const HEAD_LEN: usize = 9;
const CHECKSUM_LEN: usize = 4;
const BLOCK_MAX: u32 = 1 << 18;
const HAS_EVENT: u8 = 0x80;

const PROCESS: u8 = 1;
const SECTION: u8 = 2;
const PLACE: u8 = 3;
const THREAD: u8 = 4;
const STAMPS: u8 = 5;
const END: u8 = 6;
