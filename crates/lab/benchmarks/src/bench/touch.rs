//! Writing and reading every byte of data, the same way on both sides of a comparison.

/// Writes data as emulated links do.
pub(super) fn write(data: &mut [u8]) {
    rol::write_emulated(data);
}

/// Sums data as builders do that check them.
pub(super) fn sum(data: &[u8]) -> u64 {
    driver::byte_sum(data)
}

/// The sum of the data of one fragment; they are whole words.
pub(super) fn expected(fragment_bytes: u32) -> u64 {
    let mut data = vec![0; whole_words(fragment_bytes)];
    write(&mut data);
    sum(&data)
}

fn whole_words(fragment_bytes: u32) -> usize {
    fragment_bytes as usize / WORD_BYTES * WORD_BYTES
}

const WORD_BYTES: usize = 4;
