//! Emulated links and triggers.

mod sizes;
mod triggers;

use base::bulk::PageSlice;
use configuration::{Payload, SizeDistribution};
use dataflow::readout::fragment::{FragmentHead, Unplaced};
use eformat::{ROB_PREFIX_BYTES, WORD_BYTES};
use transport::page_pool::{Page, Pool};

use crate::fragments::{Fragments, Wanted};
use crate::parameters::LinkParameters;

pub use sizes::FragmentSizes;
pub use triggers::EmulatedTriggers;
pub(crate) use triggers::{ETA_MAX, PI, TOWERS_ETA, TOWERS_PHI, tower};

/// What emulated links send.
///
/// The data of a fragment are [`emulated_word`] 0, 1, 2 …, of as many bytes as the distribution gives. Unless asked
/// otherwise they are written to every page once, at the start; per event only headers and trailer are. So real bytes go
/// through the system, at the cost of a detector link that writes to memory by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulation {
    /// Sizes of the data.
    pub sizes: SizeDistribution,
    /// Seed of the sizes.
    pub seed: u64,
    /// When the data are written.
    pub payload: Payload,
}

/// Word `index` of the data of every emulated fragment: `0xda7a` in the upper half, the low 16 bits of the index below.
pub const fn emulated_word(index: usize) -> u32 {
    0xda7a_0000 | index as u32 & 0xffff
}

/// Writes [`emulated_word`] 0, 1, 2 … over all whole words.
pub fn write_emulated(data: &mut [u8]) {
    data.as_chunks_mut().0.iter_mut().enumerate().for_each(put_word);
}

/// Source identifiers of `count` emulated links: modules 0, 1, 2 … of a sub-detector (format note §6).
///
/// # Panics
/// If there are more than the 65536 modules that an identifier can name.
pub fn emulated_source_ids(sub_detector: u8, count: usize) -> Vec<u32> {
    assert!(count <= 1 << 16, "a sub-detector has at most 65536 modules, {count} were asked for");
    (0..count as u32).map(|module| u32::from(sub_detector) << 16 | module).collect()
}

pub(crate) struct Emulator {
    /// By link.
    sizes: Vec<FragmentSizes>,
    payload: Payload,
}

impl Emulator {
    pub(crate) fn new(parameters: &LinkParameters, emulation: &Emulation) -> Self {
        let sizes = |&source_id: &u32| FragmentSizes::new(&emulation.sizes, emulation.seed, source_id);
        Self { sizes: parameters.source_ids.iter().map(sizes).collect(), payload: emulation.payload }
    }

    /// Fills all pages of the pool.
    pub(crate) fn prepare(pool: &Pool) {
        let mut pages: Vec<Page> = std::iter::from_fn(|| pool.has_free().then(|| pool.take()).flatten()).collect();
        for page in &mut pages {
            let bytes = page.bytes_mut();
            bytes[SIZE_WORD].fill(0);
            write_emulated(&mut bytes[ROB_PREFIX_BYTES..]);
        }
    }

    pub(crate) fn fragment(
        &self,
        fragments: &mut Fragments,
        mut page: Page,
        wanted: Wanted<'_>,
    ) -> Result<(FragmentHead, PageSlice), Unplaced> {
        let data_bytes = self.sizes[wanted.link].data_bytes(wanted.event.event);
        match self.payload {
            Payload::Prefilled => {
                restore(page.bytes_mut(), fragments.suffix_bytes());
                fragments.frame(page, wanted, data_bytes, |_| {})
            }
            Payload::Written => fragments.frame(page, wanted, data_bytes, write_emulated),
        }
    }
}

/// Puts data back where the fragment that was in the page before had its trailer. Its size still stands in its header.
fn restore(page: &mut [u8], suffix_bytes: usize) {
    let size_words = u32::from_le_bytes(page[SIZE_WORD].try_into().expect("a word has four bytes"));
    let end = size_words as usize * WORD_BYTES;
    if end == 0 {
        return;
    }
    let first_word = (end - suffix_bytes - ROB_PREFIX_BYTES) / WORD_BYTES;
    let trailer = page[end - suffix_bytes..end].as_chunks_mut().0;
    trailer.iter_mut().enumerate().for_each(|(index, word)| put_word((first_word + index, word)));
}

fn put_word((index, word): (usize, &mut [u8; WORD_BYTES])) {
    *word = emulated_word(index).to_le_bytes();
}

/// The fragment size in a ROB header (format note §2).
const SIZE_WORD: std::ops::Range<usize> = WORD_BYTES..2 * WORD_BYTES;
