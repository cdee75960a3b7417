//! zlib streams padded to words (format note §9 for events, §11.5 for blocks of version 5 files).

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::problem::{Part, Problem, ProblemKind};
use crate::word::WORD_BYTES;

/// How the payload of a full event is stored (note §9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CompressionType {
    /// As it is.
    #[default]
    None,
    /// One zlib stream, zero-padded to a word.
    Zlib,
}

impl CompressionType {
    /// The type of a header word, `None` if it is neither (the reserved value is never written).
    pub fn from_word(word: u32) -> Option<Self> {
        match word {
            0 => Some(Self::None),
            1 => Some(Self::Zlib),
            _ => None,
        }
    }

    /// The header word.
    pub fn to_word(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Zlib => 1,
        }
    }
}

/// zlib level that ATLAS has used (note §9).
pub const ZLIB_LEVEL: u32 = 1;

/// Compresses `pieces`, one behind the other, to one zlib stream padded with zeros to a word. `level` is 0 to 9.
pub fn zlib_pack<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, level: u32) -> Vec<u8> {
    let mut packer = Compress::new(Compression::new(level.min(9)), true);
    let mut out = Vec::with_capacity(CHUNK_BYTES);
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            rest = &rest[step(&mut packer, rest, &mut out, FlushCompress::None).0..];
        }
    }
    while step(&mut packer, &[], &mut out, FlushCompress::Finish).1 != Status::StreamEnd {}
    out.resize(out.len().next_multiple_of(WORD_BYTES), 0);
    out
}

fn step(packer: &mut Compress, input: &[u8], out: &mut Vec<u8>, flush: FlushCompress) -> (usize, Status) {
    out.reserve(CHUNK_BYTES);
    let before = packer.total_in();
    let status = packer.compress_vec(input, out, flush).expect("zlib compression into a vector with space cannot fail");
    ((packer.total_in() - before) as usize, status)
}

/// Decompresses one zlib stream, padded with zero bytes to a word, of at most `limit_bytes`.
///
/// Memory grows with what comes out, never with what a header claims.
///
/// # Errors
///
/// [`ProblemKind::Zlib`] if `packed` is not exactly one padded stream; [`ProblemKind::Oversize`] if more than
/// `limit_bytes` come out. Offsets are in `packed`.
pub fn zlib_unpack(part: Part, packed: &[u8], limit_bytes: usize) -> Result<Vec<u8>, Problem> {
    let mut unpacker = Decompress::new(true);
    let mut out = Vec::new();
    loop {
        out.reserve(CHUNK_BYTES);
        let (read, written) = (unpacker.total_in(), unpacker.total_out());
        let status = unpacker.decompress_vec(&packed[read as usize..], &mut out, FlushDecompress::None);
        if out.len() > limit_bytes {
            let kind = ProblemKind::Oversize { part, bytes: out.len() as u64, limit_bytes: limit_bytes as u64 };
            return Err(Problem::new(0, kind));
        }
        let bad = Problem::new(unpacker.total_in() as usize, ProblemKind::Zlib { part });
        match status {
            Ok(Status::StreamEnd) => break,
            Ok(_) if (read, written) != (unpacker.total_in(), unpacker.total_out()) => {}
            Ok(_) | Err(_) => return Err(bad),
        }
    }
    let used = unpacker.total_in() as usize;
    let padding = &packed[used..];
    if padding.len() >= WORD_BYTES || padding.iter().any(|byte| *byte != 0) {
        return Err(Problem::new(used, ProblemKind::Zlib { part }));
    }
    Ok(out)
}

const CHUNK_BYTES: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpack_undoes_pack() {
        let data: Vec<u8> = (0..100_000u32).map(|i| (u64::from(i).pow(2) >> 7) as u8).collect();
        for length in [0, 1, 100, data.len()] {
            let packed = zlib_pack([&data[..length / 2], &data[length / 2..length]], ZLIB_LEVEL);
            assert_eq!(packed.len() % 4, 0);
            assert_eq!(zlib_unpack(Part::DataBlock, &packed, length).unwrap(), &data[..length]);
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let packed = zlib_pack([[0u8; 1 << 20].as_slice()], 9);
        let problem = zlib_unpack(Part::DataBlock, &packed, 1000).unwrap_err();
        assert!(matches!(problem.kind, ProblemKind::Oversize { limit_bytes: 1000, .. }), "{problem}");
    }

    #[test]
    fn damage_and_bad_padding_are_reported() {
        let packed = zlib_pack([b"some words of data".as_slice()], 1);
        let mut longer = packed.clone();
        longer.extend_from_slice(&[0; 4]);
        assert!(zlib_unpack(Part::DataBlock, &longer, 100).is_err());
        for length in 0..packed.len() - 3 {
            assert!(zlib_unpack(Part::DataBlock, &packed[..length], 100).is_err());
        }
        for at in 2..packed.len() - 3 {
            let mut broken = packed.clone();
            broken[at] ^= 0x55;
            let _ = zlib_unpack(Part::DataBlock, &broken, 100);
        }
    }
}
