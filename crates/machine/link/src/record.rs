//! What travels on a link: records with a head of [`HEAD_BYTES`], all little-endian.

use crate::error::Violation;
use crate::kind::Kind;

/// The version of the protocol.
pub const VERSION: u32 = 1;

/// Length of a record's head in bytes.
pub const HEAD_BYTES: usize = 48;

/// The longest text of a status or a refusal in bytes.
pub const TEXT_BYTES_MAX: usize = 4096;

/// The longest name of a source in bytes.
pub const NAME_BYTES_MAX: usize = 64;

bitflags::bitflags! {
    /// What a source says of a fragment.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Flags: u8 {
        /// It has a number. Set where [`Head::number`] is.
        const NUMBER = 1;
        /// It has a time. Set where [`Head::time`] is.
        const TIME = 2;
        /// The record carries the CRC-32C of the payload. The sender computes it.
        const CRC = 4;
        /// The source saw an error in the transmission from its detector.
        const TRANSMISSION_ERROR = 8;
        /// The source has cut the fragment.
        const CUT = 16;
    }
}

/// What is said of a fragment beside its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The number of the event.
    pub number: Option<u64>,
    /// When it begins and ends, in ns of the source's clock.
    pub time: Option<(u64, u64)>,
    /// The kind of trigger, where the source knows it.
    pub trigger_type: u8,
    /// What else the source says of it.
    pub flags: Flags,
}

/// The head of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// Length in bytes of what follows.
    pub len: u32,
    /// The kind.
    pub kind: Kind,
    /// What is set, and what a source says of a fragment.
    pub flags: Flags,
    /// The trigger type of a fragment; 1 in a refusal that is worth another try.
    pub aux: u16,
    /// The number of the event.
    pub number: u64,
    /// Its begin in ns.
    pub begin: u64,
    /// Its end in ns.
    pub end: u64,
    /// Fragments sent before on this connection in this run.
    pub sequence: u64,
    /// CRC-32C of the payload.
    pub crc: u32,
    /// The run.
    pub run: u32,
}

impl RecordHead {
    /// A record of this kind with nothing in its head but the length of what follows.
    pub const fn plain(kind: Kind, len: u32) -> Self {
        let flags = Flags::empty();
        Self { len, kind, flags, aux: 0, number: 0, begin: 0, end: 0, sequence: 0, crc: 0, run: 0 }
    }

    /// Of a fragment; `crc` counts if the flags of the head ask for it.
    pub fn of_fragment(head: &Head, len: u32, sequence: u64, run: u32, crc: impl FnOnce() -> u32) -> Self {
        let mut flags = head.flags - (Flags::NUMBER | Flags::TIME);
        flags.set(Flags::NUMBER, head.number.is_some());
        flags.set(Flags::TIME, head.time.is_some());
        let (begin, end) = head.time.unwrap_or_default();
        let crc = if flags.contains(Flags::CRC) { crc() } else { 0 };
        let (aux, number) = (head.trigger_type.into(), head.number.unwrap_or_default());
        Self { len, kind: Kind::Fragment, flags, aux, number, begin, end, sequence, crc, run }
    }

    /// What a fragment's record says of it.
    pub fn fragment(&self) -> Head {
        Head {
            number: self.flags.contains(Flags::NUMBER).then_some(self.number),
            time: self.flags.contains(Flags::TIME).then_some((self.begin, self.end)),
            trigger_type: self.aux as u8,
            flags: self.flags,
        }
    }

    /// As bytes.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        for (at, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.to_words()) {
            *at = word.to_le_bytes();
        }
        bytes
    }

    /// From bytes.
    ///
    /// # Errors
    /// What version 1 does not know.
    pub fn decode(bytes: &[u8; HEAD_BYTES]) -> Result<Self, Violation> {
        let (words, _) = bytes.as_chunks::<8>();
        Self::of_words(&core::array::from_fn(|word| u64::from_le_bytes(words[word])))
    }

    /// As the words of which shared memory is made.
    pub(crate) fn to_words(self) -> [u64; HEAD_WORDS] {
        let first = u64::from(self.len)
            | u64::from(self.kind as u8) << 32
            | u64::from(self.flags.bits()) << 40
            | u64::from(self.aux) << 48;
        let last = u64::from(self.crc) | u64::from(self.run) << 32;
        [first, self.number, self.begin, self.end, self.sequence, last]
    }

    pub(crate) fn of_words(words: &[u64; HEAD_WORDS]) -> Result<Self, Violation> {
        let [first, number, begin, end, sequence, last] = *words;
        let (kind, found) = ((first >> 32) as u8, (first >> 40) as u8);
        let head = Self {
            len: first as u32,
            kind: Kind::of(kind).ok_or(Violation::Kind { found: kind })?,
            flags: Flags::from_bits(found).ok_or(Violation::Flags { found })?,
            aux: (first >> 48) as u16,
            number,
            begin,
            end,
            sequence,
            crc: last as u32,
            run: (last >> 32) as u32,
        };
        head.check_announced()?;
        Ok(head)
    }

    /// What no flag announces is zero, so that a later version can use it.
    fn check_announced(&self) -> Result<(), Violation> {
        let has = |flag| self.flags.contains(flag);
        let is_right = (has(Flags::NUMBER) || self.number == 0)
            && (has(Flags::TIME) || (self.begin, self.end) == (0, 0))
            && (has(Flags::CRC) || self.crc == 0)
            && self.aux <= u8::MAX.into();
        if is_right { Ok(()) } else { Err(Violation::Unannounced) }
    }
}

/// A head in words of eight bytes.
pub(crate) const HEAD_WORDS: usize = HEAD_BYTES / 8;
