//! S-LINK words in a stream of bytes: blocks of data between control words, with what the link says of errors.
//!
//! The words are those of the S-LINK Interface Specification (CERN, 27 March 1997), and begin and end of a block those of ATLAS. What
//! goes over TCP is the interface of the link's destination, as [DAQ1999 §3.2] reads it: data, LCTRL# and LDERR#, and XOFF back.

use bitflags::bitflags;

pub use crate::error::NoLink;
use crate::record::Flags;

/// What a link says first: that it is one, and the version.
pub const GREETING: [u8; 8] = *b"S-LINK\0\x01";
/// Told to a link: no more words; the same as to the card at its source (UXOFF#).
pub const XOFF: u8 = 0x13;
/// Words again.
pub const XON: u8 = 0x11;
/// The control word before a fragment.
pub const BEGIN: u32 = 0xb0f0_0000;
/// The control word behind one.
pub const END: u32 = 0xe0f0_0000;
/// Most words in a group.
pub const WORDS_MAX: usize = 0xffff;

bitflags! {
    /// What is wrong with a payload, beside what [`Flags`] say.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Faults: u8 {
        /// It does not fit its checksum.
        const CHECKSUM = 1;
        /// A control word of it had a transmission error.
        const CONTROL_WORD = 2;
        /// It had no begin.
        const NO_BEGIN = 4;
        /// It had no end.
        const NO_END = 8;
    }
}

/// What is to be sent over a link.
#[derive(Debug, Default)]
pub struct Words {
    /// The bytes; whoever has sent some takes them out.
    pub bytes: Vec<u8>,
}

impl Words {
    /// Adds a control word. The link puts its own bits in place of the lowest four: `flags` of [`CONTROL_ERROR`] and [`DATA_ERROR`].
    pub fn control(&mut self, word: u32, flags: u32) {
        self.head(1, CONTROL);
        self.bytes.extend_from_slice(&(word & !LINK_BITS | flags & LINK_BITS).to_le_bytes());
    }

    /// Adds data words, little-endian; with `has_error` the link has seen an error in one of them (LDERR#).
    ///
    /// # Panics
    /// If they are no whole words.
    pub fn data(&mut self, words: &[u8], has_error: bool) {
        assert!(words.len().is_multiple_of(WORD_BYTES), "whole words");
        for group in words.chunks(WORDS_MAX * WORD_BYTES) {
            self.head((group.len() / WORD_BYTES) as u32, if has_error { ERROR } else { 0 });
            self.bytes.extend_from_slice(group);
        }
    }

    fn head(&mut self, words: u32, bits: u32) {
        self.bytes.extend_from_slice(&(words | bits).to_le_bytes());
    }
}

/// Puts the bytes of a link together to blocks.
#[derive(Debug)]
pub(crate) struct Blocks {
    len_max: usize,
    /// What is incomplete: the greeting, the head of a group, or a control word.
    part: Vec<u8>,
    has_greeted: bool,
    /// The group that we are in, and its bytes that have not come.
    group: Option<(Group, usize)>,
    block: Option<Block>,
    /// Whether words up to the next control word are of nobody.
    is_skipping: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    is_control: bool,
    has_error: bool,
}

/// Data words between begin and end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) bytes: Vec<u8>,
    pub(crate) flags: Flags,
    pub(crate) faults: Faults,
}

impl Blocks {
    /// Blocks of at most so many bytes; longer ones are cut.
    pub(crate) fn new(len_max: usize) -> Self {
        Self { len_max, part: Vec::new(), has_greeted: false, group: None, block: None, is_skipping: false }
    }

    /// Whether it has said that it is an S-LINK.
    pub(crate) fn has_greeted(&self) -> bool {
        self.has_greeted
    }

    /// What has come of a block does not count. Whether there was something.
    pub(crate) fn skip(&mut self) -> bool {
        let had = self.block.take().is_some();
        self.is_skipping |= had;
        had
    }

    /// Takes bytes from the front, up to the end of a block, which it gives.
    ///
    /// # Errors
    /// What no S-LINK sends.
    pub(crate) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Block>, NoLink> {
        while !bytes.is_empty() {
            let Some((group, left)) = self.group else {
                self.begin_group(bytes)?;
                continue;
            };
            if group.is_control {
                let Some(word) = self.whole(bytes) else { return Ok(None) };
                self.group = None;
                if let Some(block) = self.take_control(u32::from_le_bytes(word)) {
                    return Ok(Some(block));
                }
                continue;
            }
            let (data, rest) = bytes.split_at(left.min(bytes.len()));
            *bytes = rest;
            self.group = (data.len() < left).then_some((group, left - data.len()));
            self.take_data(data, group.has_error);
        }
        Ok(None)
    }

    fn begin_group(&mut self, bytes: &mut &[u8]) -> Result<(), NoLink> {
        if !self.has_greeted {
            let Some(found) = self.whole(bytes) else { return Ok(()) };
            self.has_greeted = found == GREETING;
            return if self.has_greeted { Ok(()) } else { Err(NoLink::Greeting { found }) };
        }
        let Some(head) = self.whole(bytes) else { return Ok(()) };
        let found = u32::from_le_bytes(head);
        let (words, bits) = (found as usize & WORDS_MAX, found & !(WORDS_MAX as u32));
        let is_control = bits & CONTROL != 0;
        if words == 0 || bits & !(CONTROL | ERROR) != 0 || (is_control && words != 1) {
            return Err(NoLink::Group { found });
        }
        self.group = Some((Group { is_control, has_error: bits & ERROR != 0 }, words * WORD_BYTES));
        Ok(())
    }

    /// The next so many bytes, as soon as all have come.
    fn whole<const LEN: usize>(&mut self, bytes: &mut &[u8]) -> Option<[u8; LEN]> {
        let (taken, rest) = bytes.split_at(bytes.len().min(LEN - self.part.len()));
        self.part.extend_from_slice(taken);
        *bytes = rest;
        let whole = self.part.as_slice().try_into().ok()?;
        self.part.clear();
        Some(whole)
    }

    fn take_data(&mut self, data: &[u8], has_error: bool) {
        if self.is_skipping {
            return;
        }
        // Data that no begin announces are a block all the same.
        let headless = || Block { faults: Faults::NO_BEGIN, ..Block::default() };
        let block = self.block.get_or_insert_with(headless);
        block.flags.set(Flags::TRANSMISSION_ERROR, block.flags.contains(Flags::TRANSMISSION_ERROR) || has_error);
        let room = self.len_max - block.bytes.len();
        block.flags.set(Flags::CUT, block.flags.contains(Flags::CUT) || data.len() > room);
        block.bytes.extend_from_slice(&data[..data.len().min(room)]);
    }

    /// The block that ends here.
    fn take_control(&mut self, word: u32) -> Option<Block> {
        let (has_data_error, has_control_error) = (word & DATA_ERROR != 0, word & CONTROL_ERROR != 0);
        if core::mem::take(&mut self.is_skipping) && word & !LINK_BITS == END {
            return None;
        }
        // It is of the data before it.
        if let Some(block) = self.block.as_mut().filter(|_| has_data_error) {
            block.flags |= Flags::TRANSMISSION_ERROR;
        }
        let fault = if has_control_error { Faults::CONTROL_WORD } else { Faults::empty() };
        match word & !LINK_BITS {
            BEGIN => {
                let before = self.block.replace(Block { faults: fault, ..Block::default() });
                before.map(|before| Block { faults: before.faults | Faults::NO_END, ..before })
            }
            END => {
                let block = self.block.take().unwrap_or(Block { faults: Faults::NO_BEGIN, ..Block::default() });
                Some(Block { faults: block.faults | fault, ..block })
            }
            // Of the user, or damaged beyond recognition: it parts no fragments.
            _ => {
                self.block.iter_mut().for_each(|block| block.faults |= Faults::CONTROL_WORD);
                None
            }
        }
    }
}

/// Set in a control word by the link: there was a transmission error in the data before it, or in itself.
pub const DATA_ERROR: u32 = 1;
/// The latter.
pub const CONTROL_ERROR: u32 = 2;
/// Bits of a control word that are the link's.
const LINK_BITS: u32 = 0xf;
/// Of the head of a group: they are control words (LCTRL#).
const CONTROL: u32 = 1 << 16;
/// One of them had an error (LDERR#).
const ERROR: u32 = 1 << 17;
const WORD_BYTES: usize = 4;

/// Takes any bytes apart, in pieces of all lengths, as a line does: blocks are as long as they may be, and no piece matters.
///
/// # Panics
/// If they are not, or one does.
pub fn check_any_words(bytes: &[u8]) {
    let of_pieces = |step: usize| {
        let (mut blocks, mut found) = (Blocks::new(LEN_MAX), Vec::new());
        for mut piece in bytes.chunks(step) {
            while !piece.is_empty() {
                match blocks.next(&mut piece) {
                    Ok(block) => found.extend(block),
                    Err(error) => return (found, Some(error)),
                }
            }
        }
        (found, None)
    };
    let whole = of_pieces(bytes.len().max(1));
    assert!(whole.0.iter().all(|block| block.bytes.len() <= LEN_MAX), "no block is too long");
    for step in [1, 3, 7] {
        assert_eq!(of_pieces(step), whole, "in pieces of {step} bytes");
    }
}

/// Of a fuzzer.
const LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(words: &Words) -> Vec<Block> {
        let bytes = [&GREETING[..], &words.bytes].concat();
        let (mut blocks, mut rest, mut found) = (Blocks::new(16), &bytes[..], Vec::new());
        while !rest.is_empty() {
            found.extend(blocks.next(&mut rest).unwrap());
        }
        found
    }

    fn block(bytes: &[u8], flags: Flags, faults: Faults) -> Block {
        Block { bytes: bytes.to_vec(), flags, faults }
    }

    #[test]
    fn a_block_is_what_stands_between_begin_and_end() {
        let mut words = Words::default();
        words.control(BEGIN, 0);
        words.data(b"abcdefgh", false);
        words.data(b"ijkl", false);
        words.control(END, 0);
        words.control(BEGIN, 0);
        words.control(END, 0);
        let (none, well) = (Flags::empty(), Faults::empty());
        assert_eq!(taken(&words), [block(b"abcdefghijkl", none, well), block(b"", none, well)]);
    }

    #[test]
    fn each_error_is_that_of_its_block() {
        let mut words = Words::default();
        words.control(BEGIN, 0);
        words.data(b"abcd", false);
        words.control(END, DATA_ERROR);
        words.control(BEGIN, CONTROL_ERROR);
        words.data(b"efgh", false);
        words.control(END, 0);
        words.control(BEGIN, 0);
        words.data(b"ijkl", true);
        words.control(END, CONTROL_ERROR);
        words.control(BEGIN, 0);
        words.control(0x1230_0000, 0);
        words.control(END, 0);
        let (none, data) = (Flags::empty(), Flags::TRANSMISSION_ERROR);
        let expected = [
            block(b"abcd", data, Faults::empty()),
            block(b"efgh", none, Faults::CONTROL_WORD),
            block(b"ijkl", data, Faults::CONTROL_WORD),
            block(b"", none, Faults::CONTROL_WORD),
        ];
        assert_eq!(taken(&words), expected);
    }

    #[test]
    fn what_lacks_begin_or_end_is_marked_and_what_is_too_long_is_cut() {
        let mut words = Words::default();
        words.data(b"abcd", false);
        words.control(END, 0);
        words.control(BEGIN, 0);
        words.data(b"efgh", false);
        words.control(BEGIN, 0);
        words.data(b"ijklmnopqrstuvwxyz01", false);
        words.control(END, 0);
        let none = Flags::empty();
        let expected = [
            block(b"abcd", none, Faults::NO_BEGIN),
            block(b"efgh", none, Faults::NO_END),
            block(b"ijklmnopqrstuvwx", Flags::CUT, Faults::empty()),
        ];
        assert_eq!(taken(&words), expected);
    }

    #[test]
    fn what_was_skipped_goes_on_to_the_next_control_word() {
        let mut words = Words::default();
        words.control(BEGIN, 0);
        words.data(b"abcd", false);
        let (bytes, mut blocks) = ([&GREETING[..], &words.bytes].concat(), Blocks::new(16));
        assert_eq!(blocks.next(&mut &bytes[..]), Ok(None));
        assert!(blocks.skip() && !blocks.skip());
        words.bytes.clear();
        words.data(b"efgh", false);
        words.control(END, 0);
        words.control(BEGIN, 0);
        words.control(END, 0);
        let mut rest = &words.bytes[..];
        assert_eq!(blocks.next(&mut rest), Ok(Some(Block::default())));
        assert!(rest.is_empty());
    }

    #[test]
    fn what_is_no_link_is_refused() {
        let heads = [0, 1 << 18 | 1, CONTROL | 2];
        for found in heads {
            let bytes = [&GREETING[..], &u32::to_le_bytes(found)].concat();
            assert_eq!(Blocks::new(16).next(&mut &bytes[..]), Err(NoLink::Group { found }));
        }
        let found = *b"GET / HT";
        assert_eq!(Blocks::new(16).next(&mut &found[..]), Err(NoLink::Greeting { found }));
    }
}
