//! What a read-out system takes out of fragments before it sends them to level 2.

use base::bulk::{Bulk, PageSlice};
use eformat::{EventFormat, ROD_HEADER_WORDS, Rob, Robs, WORD_BYTES};

/// Zero suppression: leaves out words of zero behind the records of a fragment, and small calorimeter cells.
///
/// The first word of the data says how many records there are: `0xD1 << 24 | data type << 16 | records`. A fragment that
/// loses something stays a legal ROB. Sizes, record count and checksum are made anew, and the first status word of its ROD
/// gets the bit [`PREPROCESSED`]. All else passes unchanged and uncopied: other data, fragments that are damaged, cut, or
/// do not agree with their checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preprocessing {
    /// Calorimeter cells of fewer ADC counts are left out; 0 keeps all.
    pub suppress_below: u16,
}

/// Set in the first status word of a ROD whose data are not all that the detector sent. It is a bit of the half that is
/// the detector's own (format note §5).
pub const PREPROCESSED: u32 = 1 << 31;

impl Preprocessing {
    /// The same ROB fragments, some of them shorter.
    pub fn apply(self, bulk: Bulk) -> Bulk {
        let mut made = Vec::new();
        let mut parts = Vec::new();
        for slice in bulk.slices() {
            self.apply_to_slice(slice, &mut made, &mut parts);
        }
        if made.is_empty() {
            return bulk;
        }
        let made = PageSlice::from(made);
        let slice = |part| match part {
            Preprocessed::Unchanged(slice) => slice,
            Preprocessed::Made { start, end } => made.slice(start..end),
        };
        let mut slices: Vec<PageSlice> = parts.into_iter().map(slice).collect();
        match slices.len() {
            1 => Bulk::Pages(slices.remove(0)),
            _ => Bulk::PageList(slices),
        }
    }

    fn apply_to_slice(self, slice: &PageSlice, made: &mut Vec<u8>, parts: &mut Vec<Preprocessed>) {
        let bytes = slice.as_bytes();
        // Everything from here on is unchanged so far.
        let mut from = 0;
        for rob in Robs::new(EventFormat::V5, bytes).map_while(Result::ok) {
            let start = made.len();
            if self.shorten(&rob, made).is_none() {
                continue;
            }
            if from < rob.offset() {
                parts.push(Preprocessed::Unchanged(slice.slice(from..rob.offset())));
            }
            from = rob.offset() + rob.fragment().bytes().len();
            match parts.last_mut() {
                Some(Preprocessed::Made { end, .. }) => *end = made.len(),
                _ => parts.push(Preprocessed::Made { start, end: made.len() }),
            }
        }
        if from < bytes.len() {
            parts.push(Preprocessed::Unchanged(slice.slice(from..bytes.len())));
        }
    }

    /// Appends the ROB without what can be left out; `None` if nothing can.
    fn shorten(self, rob: &Rob<'_>, out: &mut Vec<u8>) -> Option<()> {
        let rod = rob.rod().ok().filter(|rod| rod.size_problem().is_none())?;
        if rod.status_words().len() == 0 {
            return None;
        }
        let data = Data::parse(rod.data())?;
        let suppress_below = if data.is_calorimeter() { self.suppress_below } else { 0 };
        let is_kept = |record: &&[u8; WORD_BYTES]| u32::from_le_bytes(**record) & 0xffff >= u32::from(suppress_below);
        let kept = if suppress_below == 0 { data.count } else { data.records.iter().filter(is_kept).count() };
        if kept == data.count && !data.has_padding || rob.fragment().verify_checksum().is_err() {
            return None;
        }
        let (bytes, rod_start) = (rob.fragment().bytes(), rob.fragment().payload_range().start);
        let (start, data_range) = (out.len(), rod.data_range());
        out.extend_from_slice(&bytes[..rod_start + data_range.start]);
        out.extend_from_slice(&data.first_word(kept).to_le_bytes());
        if suppress_below == 0 {
            out.extend_from_slice(data.records.as_flattened());
        } else {
            data.records.iter().filter(is_kept).for_each(|record| out.extend_from_slice(record));
        }
        let data_bytes = out.len() - start - rod_start - data_range.start;
        out.extend_from_slice(&rod.bytes()[data_range.end..]);
        let rod_end = out.len();
        let position = get(out, rod_end - WORD_BYTES);
        let before_status = ROD_HEADER_WORDS * WORD_BYTES + if position == 0 { 0 } else { data_bytes };
        let status = start + rod_start + before_status;
        let flagged = get(out, status) | PREPROCESSED;
        put(out, status, flagged);
        put(out, rod_end - 2 * WORD_BYTES, (data_bytes / WORD_BYTES) as u32);
        if let Some(sum) = rob.fragment().checksum_type().compute(&out[start + rod_start..rod_end]) {
            out.extend_from_slice(&sum.to_le_bytes());
        }
        let size_words = (out.len() - start) / WORD_BYTES;
        put(out, start + WORD_BYTES, size_words as u32);
        Some(())
    }
}

enum Preprocessed {
    Unchanged(PageSlice),
    Made { start: usize, end: usize },
}

/// Data of a fragment whose first word was checked against its length, with nothing but zeros behind the records.
struct Data<'a> {
    kind: u8,
    count: usize,
    records: &'a [[u8; WORD_BYTES]],
    has_padding: bool,
}

impl<'a> Data<'a> {
    fn parse(data: &'a [u8]) -> Option<Self> {
        let (first, rest) = data.as_chunks().0.split_first()?;
        let first = u32::from_le_bytes(*first);
        let (kind, count) = ((first >> 16) as u8, (first & 0xffff) as usize);
        let words = count * words_per_record(kind)?;
        if first >> 24 != MARKER || words > rest.len() {
            return None;
        }
        let (records, padding) = rest.split_at(words);
        let is_zero = padding.iter().all(|word| *word == [0; WORD_BYTES]);
        is_zero.then_some(Self { kind, count, records, has_padding: !padding.is_empty() })
    }

    fn is_calorimeter(&self) -> bool {
        matches!(self.kind, EM_CELLS | HAD_TOWERS)
    }

    fn first_word(&self, count: usize) -> u32 {
        MARKER << 24 | u32::from(self.kind) << 16 | count as u32
    }
}

/// `None` for a kind of data that is not known.
const fn words_per_record(kind: u8) -> Option<usize> {
    match kind {
        EM_CELLS | HAD_TOWERS | CENTRAL_TRIGGER => Some(1),
        TRACKS | MUON_STUBS => Some(2),
        ROIS => Some(4),
        _ => None,
    }
}

fn get(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word of the fragment"))
}

fn put(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + WORD_BYTES].copy_from_slice(&word.to_le_bytes());
}

const MARKER: u32 = 0xd1;
const EM_CELLS: u8 = 1;
const HAD_TOWERS: u8 = 2;
const TRACKS: u8 = 3;
const MUON_STUBS: u8 = 4;
const ROIS: u8 = 5;
const CENTRAL_TRIGGER: u8 = 6;
