//! Fragment checksums (format note §8).

use std::fmt;

use crate::word::words;

/// How a ROB or full event is protected (note §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChecksumType {
    /// No checksum word.
    #[default]
    None,
    /// CRC16-CCITT. The word is carried; it is verified only if asked, because no public source gives the
    /// algorithm (see [`crc16_ccitt`]).
    Crc16,
    /// Adler-32 over the bytes of the payload.
    Adler32,
}

impl ChecksumType {
    /// The type of a header word, `None` if the word is none of the three.
    #[inline]
    pub fn from_word(word: u32) -> Option<Self> {
        match word {
            0 => Some(Self::None),
            1 => Some(Self::Crc16),
            2 => Some(Self::Adler32),
            _ => None,
        }
    }

    /// The header word.
    #[inline]
    pub fn to_word(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Crc16 => 1,
            Self::Adler32 => 2,
        }
    }

    /// Words behind the payload: 1 with a checksum, else 0.
    #[inline]
    pub fn trailer_words(self) -> usize {
        usize::from(self != Self::None)
    }

    /// The checksum of `payload`, or `None` without checksum.
    pub fn compute(self, payload: &[u8]) -> Option<u32> {
        match self {
            Self::None => None,
            Self::Crc16 => Some(crc16_ccitt(payload)),
            Self::Adler32 => Some(adler32(payload)),
        }
    }
}

impl fmt::Display for ChecksumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Crc16 => "CRC16",
            Self::Adler32 => "Adler-32",
        })
    }
}

/// Adler-32 of `bytes` (zlib's: initial value 1).
pub fn adler32(bytes: &[u8]) -> u32 {
    simd_adler32::adler32(&bytes)
}

/// Adler-32 of bytes that come in pieces.
///
/// ```
/// let mut sum = eformat::Adler32::new();
/// sum.update(b"Wiki");
/// sum.update(b"pedia");
/// assert_eq!(sum.value(), eformat::adler32(b"Wikipedia"));
/// ```
#[derive(Clone, Default)]
pub struct Adler32(simd_adler32::Adler32);

impl Adler32 {
    /// The sum of no bytes, which is 1.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on after bytes whose sum was `value`.
    pub fn from_value(value: u32) -> Self {
        Self(simd_adler32::Adler32::from_checksum(value))
    }

    /// Adds `bytes`.
    #[inline]
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The sum of all bytes so far.
    #[inline]
    pub fn value(&self) -> u32 {
        self.0.finish()
    }
}

impl fmt::Debug for Adler32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Adler32({:08X})", self.value())
    }
}

/// CRC-16 of both halves of the words: polynomial 0x1021, start 0xffff, most significant bit first, low halves in
/// the low half of the result.
///
/// The note §8 marks this as remembered, not confirmed by any source, so a checker uses it only if asked to.
pub fn crc16_ccitt(payload: &[u8]) -> u32 {
    let mut low = CRC16_START;
    let mut high = CRC16_START;
    for word in words(payload) {
        low = crc16_step(low, word as u16);
        high = crc16_step(high, (word >> 16) as u16);
    }
    u32::from(high) << 16 | u32::from(low)
}

fn crc16_step(mut crc: u16, half: u16) -> u16 {
    crc ^= half;
    for _ in 0..16 {
        let carry = crc & 0x8000 != 0;
        crc <<= 1;
        if carry {
            crc ^= CRC16_POLYNOMIAL;
        }
    }
    crc
}

const CRC16_START: u16 = 0xffff;
const CRC16_POLYNOMIAL: u16 = 0x1021;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adler_is_zlibs() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(adler32(b""), 1);
    }

    #[test]
    fn a_sum_goes_on_from_its_value() {
        let mut sum = Adler32::from_value(adler32(b"Wiki"));
        sum.update(b"pedia");
        assert_eq!((sum.value(), Adler32::from_value(7).value()), (adler32(b"Wikipedia"), 7));
    }

    #[test]
    fn words_of_the_types() {
        let types = [ChecksumType::None, ChecksumType::Crc16, ChecksumType::Adler32];
        assert_eq!(types.map(ChecksumType::to_word), [0, 1, 2]);
        assert_eq!([0, 1, 2].map(ChecksumType::from_word), types.map(Some));
        assert_eq!(ChecksumType::from_word(3), None);
        assert_eq!(types.map(ChecksumType::trailer_words), [0, 1, 1]);
        assert_eq!(types.map(|kind| kind.to_string()), ["none", "CRC16", "Adler-32"]);
        assert_eq!(types.map(|kind| kind.compute(b"").is_some()), [false, true, true]);
    }

    #[test]
    fn crc_of_16_bit_units_is_ccitt_false() {
        let payload: Vec<u8> = b"12345678".chunks(2).flat_map(|pair| [pair[1], pair[0], pair[1], pair[0]]).collect();
        assert_eq!(crc16_ccitt(&payload), 0xa12b_a12b);
    }
}
