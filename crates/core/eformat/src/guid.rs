//! GUID of a file (format note §11.3).

use std::fmt;
use std::str::FromStr;

/// Identity of a file: 8-4-4-4-12 upper-case hexadecimal digits with dashes.
///
/// ```
/// use eformat::Guid;
/// let guid: Guid = "10605EAF-52B1-DB11-94A4-000347D7BFE1".parse()?;
/// assert_eq!(guid.to_string(), "10605EAF-52B1-DB11-94A4-000347D7BFE1");
/// # Ok::<(), eformat::BadGuid>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Guid([u8; 16]);

impl Guid {
    /// A time-based (version 1) UUID, its first three groups in little-endian byte order as in the known files.
    ///
    /// `ticks` counts 100 ns since 1582-10-15; only its low 60 bits and the low 14 bits of `sequence` are used.
    pub fn time_based(ticks: u64, sequence: u16, node: [u8; 6]) -> Self {
        let mut bytes = [0; 16];
        bytes[0..4].copy_from_slice(&(ticks as u32).to_le_bytes());
        bytes[4..6].copy_from_slice(&((ticks >> 32) as u16).to_le_bytes());
        bytes[6..8].copy_from_slice(&((ticks >> 48) as u16 & 0x0fff | 0x1000).to_le_bytes());
        bytes[8..10].copy_from_slice(&(sequence & 0x3fff | 0x8000).to_be_bytes());
        bytes[10..16].copy_from_slice(&node);
        Self(bytes)
    }

    /// The sixteen bytes in the order of the text.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            if DASHES.contains(&index) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02X}")?;
        }
        Ok(())
    }
}

impl FromStr for Guid {
    type Err = BadGuid;

    fn from_str(text: &str) -> Result<Self, BadGuid> {
        let mut rest = text.as_bytes();
        let mut bytes = [0; 16];
        for (index, byte) in bytes.iter_mut().enumerate() {
            if DASHES.contains(&index) {
                rest = rest.strip_prefix(b"-").ok_or(BadGuid)?;
            }
            let (digits, tail) = rest.split_first_chunk::<2>().ok_or(BadGuid)?;
            *byte = digit(digits[0])? << 4 | digit(digits[1])?;
            rest = tail;
        }
        if rest.is_empty() { Ok(Self(bytes)) } else { Err(BadGuid) }
    }
}

/// Text that is not a GUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a GUID is 8-4-4-4-12 upper-case hexadecimal digits with dashes")]
pub struct BadGuid;

fn digit(byte: u8) -> Result<u8, BadGuid> {
    match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'A'..=b'F' => Ok(byte - b'A' + 10),
        _ => Err(BadGuid),
    }
}

/// Bytes in front of which the text has a dash.
const DASHES: [usize; 4] = [4, 6, 8, 10];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_based_form() {
        let guid = Guid::time_based(0x0123_4567_89ab_cdef, 0x2222, [1, 2, 3, 4, 5, 6]);
        assert_eq!(guid.to_string(), "EFCDAB89-6745-2311-A222-010203040506");
    }

    #[test]
    fn wrong_text() {
        for bad in [
            "",
            "10605eaf-52B1-DB11-94A4-000347D7BFE1",
            "10605EAF52B1-DB11-94A4-000347D7BFE1",
            "10605EAF-52B1-DB11-94A4-000347D7BFE1 ",
            "10605EAF-52B1-DB11-94A4-000347D7BFE",
        ] {
            assert_eq!(bad.parse::<Guid>(), Err(BadGuid), "{bad}");
        }
    }
}
