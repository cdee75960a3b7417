//! Little-endian 32-bit words in byte slices of any alignment (format note §1).

/// Bytes of one word.
pub const WORD_BYTES: usize = 4;

/// The words of `bytes`; a rest shorter than a word is left out.
pub fn words(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> + '_ {
    bytes.as_chunks::<WORD_BYTES>().0.iter().map(|chunk| u32::from_le_bytes(*chunk))
}

/// Word `index` of bytes that the caller has checked to hold it.
#[inline]
pub(crate) fn word(bytes: &[u8], index: usize) -> u32 {
    let start = index * WORD_BYTES;
    let chunk = bytes[start..start + WORD_BYTES].try_into().expect("a range of four bytes is four bytes");
    u32::from_le_bytes(chunk)
}

/// A word as a count or index; a 32-bit value always fits in `usize` on the supported machines.
#[inline]
pub(crate) fn size(value: u32) -> usize {
    value as usize
}

/// A length of ours as a word.
#[inline]
pub(crate) fn to_word(value: usize) -> u32 {
    u32::try_from(value).expect("a fragment is smaller than 2^32 words")
}

#[inline]
pub(crate) fn put(bytes: &mut [u8], index: usize, value: u32) {
    let start = index * WORD_BYTES;
    bytes[start..start + WORD_BYTES].copy_from_slice(&value.to_le_bytes());
}

pub(crate) fn push(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn push_all(out: &mut Vec<u8>, values: &[u32]) {
    for value in values {
        push(out, *value);
    }
}

const _: () = assert!(usize::BITS >= u32::BITS);
