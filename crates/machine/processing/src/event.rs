//! An event in its slot of shared memory.
//!
//! All numbers are little-endian. The head has [`HEAD_BYTES`]:
//!
//! | byte | type | holds |
//! |---|---|---|
//! | 0 | `u64` | event number |
//! | 8 | `u64` | ordinal in the run |
//! | 16 | `u64` | level-1 items |
//! | 24 | `u64` | chains that accepted at level 2 |
//! | 32 | `u32` | extended level-1 id |
//! | 36 | `u32` | run number |
//! | 40 | `u16` | bunch crossing |
//! | 42 | `u8` | level-1 trigger type |
//! | 43 | `u8` | 1: accepted by a time-out of level 2 |
//! | 44 | `u32` | number m of missing ROBs |
//! | 48 | `u32` | number n of fragments |
//! | 52 | `u32` | where the index begins, in words from the start of the slot |
//! | 56 | `u64` | 0 |
//!
//! Then m source identifiers of missing ROBs, then the ROB fragments as they came, then the index: [`COLUMNS`] columns of
//! n `u32` each. Of the ROB they hold source identifier, first status word, first word, and length in words. Of the ROD's
//! data they hold first word, length in words, and 1 if the ROD contradicts itself. Its data are then all behind its
//! header, or nothing. Words are counted from the start of the slot.
//!
//! The owner makes the index, as it has the fragments in its cache when it copies them. So a task in Python need not
//! walk through the fragments.

use eformat::{EventFormat, Problem, Rob, SourceId, StatusWord};

/// What is known of an event besides its fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventHead<'a> {
    /// Number of the event, unique in the run.
    pub event_number: u64,
    /// How many triggers came before it in this run.
    pub ordinal: u64,
    /// Extended level-1 id.
    pub lvl1_id: u32,
    /// Run number.
    pub run_number: u32,
    /// Bunch crossing.
    pub bcid: u16,
    /// Level-1 trigger type.
    pub trigger_type: u8,
    /// Level-1 items that fired: one bit each.
    pub items: u64,
    /// Chains that accepted at level 2: one bit each.
    pub level2_chains: u64,
    /// Accepted by a time-out of level 2, not by a decision.
    pub forced: bool,
    /// Source identifiers of ROBs without data.
    pub missing: &'a [u32],
}

/// An event as a processing task sees it, in place.
#[derive(Clone, Copy, Debug)]
pub struct EventView<'a> {
    slot: &'a [u8],
    missing: &'a [[u8; WORD]],
    columns: [&'a [[u8; WORD]]; COLUMNS],
}

/// A ROB fragment of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentView<'a> {
    /// Source identifier of the ROB.
    pub source_id: SourceId,
    /// First status word of the ROB.
    pub status: StatusWord,
    /// All bytes of the ROB fragment.
    pub rob: &'a [u8],
    /// Data of the ROD: whole little-endian words.
    pub data: &'a [u8],
    /// Whether the ROD contradicts itself: `data` is then all that lies behind its header, or nothing.
    pub damaged: bool,
}

impl<'a> EventView<'a> {
    /// The event in a slot; `None` if the bytes are none: the owner and its tasks are of different versions.
    pub fn parse(slot: &'a [u8]) -> Option<Self> {
        let slot = slot.get(..slot.len() - slot.len() % WORD)?;
        let words = slot.as_chunks::<WORD>().0;
        let number = |byte: usize| words.get(byte / WORD).map(|word| u32::from_le_bytes(*word) as usize);
        let (missing, fragments, index) = (number(MISSING)?, number(FRAGMENTS)?, number(INDEX)?);
        let missing = words.get(HEAD_BYTES / WORD..)?.get(..missing)?;
        let index = words.get(index..)?.get(..fragments.checked_mul(COLUMNS)?)?;
        let mut columns = [index; COLUMNS];
        for (position, column) in columns.iter_mut().enumerate() {
            *column = &index[position * fragments..(position + 1) * fragments];
        }
        Some(Self { slot, missing, columns })
    }

    /// Number of the event, unique in the run.
    pub fn event_number(&self) -> u64 {
        self.long(EVENT_NUMBER)
    }

    /// How many triggers came before it in this run.
    pub fn ordinal(&self) -> u64 {
        self.long(ORDINAL)
    }

    /// Level-1 items that fired: one bit each.
    pub fn items(&self) -> u64 {
        self.long(ITEMS)
    }

    /// Chains that accepted at level 2: one bit each.
    pub fn level2_chains(&self) -> u64 {
        self.long(LEVEL2)
    }

    /// Extended level-1 id.
    pub fn lvl1_id(&self) -> u32 {
        self.word(LVL1_ID)
    }

    /// Run number.
    pub fn run_number(&self) -> u32 {
        self.word(RUN)
    }

    /// Bunch crossing.
    pub fn bcid(&self) -> u16 {
        self.word(BCID) as u16
    }

    /// Level-1 trigger type.
    pub fn trigger_type(&self) -> u8 {
        self.slot[TRIGGER_TYPE]
    }

    /// Whether it was accepted by a time-out of level 2.
    pub fn forced(&self) -> bool {
        self.slot[FORCED] != 0
    }

    /// Source identifiers of ROBs without data.
    pub fn missing(&self) -> impl ExactSizeIterator<Item = u32> + 'a {
        self.missing.iter().map(|word| u32::from_le_bytes(*word))
    }

    /// Number of fragments.
    pub fn fragment_count(&self) -> usize {
        self.columns[0].len()
    }

    /// The fragments, in the order in which they lie in the event.
    pub fn fragments(&self) -> impl ExactSizeIterator<Item = FragmentView<'a>> {
        let view = *self;
        (0..self.fragment_count()).map(move |position| view.at(position))
    }

    /// The fragment of a ROB; the first one, if there are several.
    pub fn fragment(&self, source_id: SourceId) -> Option<FragmentView<'a>> {
        let wanted = source_id.0.to_le_bytes();
        self.columns[0].iter().position(|found| *found == wanted).map(|position| self.at(position))
    }

    fn at(&self, position: usize) -> FragmentView<'a> {
        let [source_id, status, rob, rob_words, data, data_words, damaged] =
            self.columns.map(|column| u32::from_le_bytes(column[position]));
        FragmentView {
            source_id: SourceId(source_id),
            status: StatusWord(status),
            rob: self.part(rob, rob_words),
            data: self.part(data, data_words),
            damaged: damaged != 0,
        }
    }

    /// Nothing for a range that is not in the slot, which the owner does not write.
    fn part(&self, first: u32, words: u32) -> &'a [u8] {
        let start = first as usize * WORD;
        self.slot.get(start..start.saturating_add(words as usize * WORD)).unwrap_or_default()
    }

    fn word(&self, byte: usize) -> u32 {
        u32::from_le_bytes(self.slot[byte..byte + 4].try_into().expect("four bytes"))
    }

    fn long(&self, byte: usize) -> u64 {
        u64::from_le_bytes(self.slot[byte..byte + 8].try_into().expect("eight bytes"))
    }
}

/// Why an event is in no slot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// At least `bytes` are needed.
    #[error(
        "the event needs more than the {slot_bytes} bytes of a slot, of which {INDEX_BYTES_PER_FRAGMENT} per fragment \
         are for its index: make the slots larger"
    )]
    TooLarge { slot_bytes: usize },
    #[error("the event holds something else than ROB fragments: {problem}")]
    Malformed { problem: Problem },
}

/// Writes events into slots.
#[derive(Debug, Default)]
pub(crate) struct EventWriter {
    index: Vec<[u32; COLUMNS]>,
}

impl EventWriter {
    /// Copies an event into a slot; the bytes it takes there.
    pub(crate) fn write<'p>(
        &mut self,
        slot: &mut [u8],
        head: &EventHead<'_>,
        parts: impl IntoIterator<Item = &'p [u8]>,
    ) -> Result<usize, Unfit> {
        let too_large = Unfit::TooLarge { slot_bytes: slot.len() };
        self.index.clear();
        let mut at = HEAD_BYTES;
        for rob in head.missing {
            put(slot, &mut at, &rob.to_le_bytes()).ok_or_else(|| too_large.clone())?;
        }
        let start = at;
        for bytes in parts {
            put(slot, &mut at, bytes).ok_or_else(|| too_large.clone())?;
        }
        // A fragment may have come in several parts.
        self.list(start, &slot[start..at]).map_err(|problem| Unfit::Malformed { problem })?;
        let index = at;
        let end = index + self.index.len() * INDEX_BYTES_PER_FRAGMENT;
        let columns = slot.get_mut(index..end).ok_or(too_large)?.as_chunks_mut::<WORD>().0;
        let fragments = self.index.len();
        for (position, entry) in self.index.iter().enumerate() {
            for (column, word) in entry.iter().enumerate() {
                columns[column * fragments + position] = word.to_le_bytes();
            }
        }
        slot[..HEAD_BYTES].copy_from_slice(&head_bytes(head, fragments, index));
        Ok(end)
    }

    /// Adds the fragments of `bytes`, which will lie at byte `start` of the slot, to the index.
    fn list(&mut self, start: usize, bytes: &[u8]) -> Result<(), Problem> {
        let mut at = 0;
        while at < bytes.len() {
            // Each fragment says its format: a replayed event may be of an older one.
            let version =
                bytes[at..].get(VERSION_BYTES).map(|word| u32::from_le_bytes(word.try_into().expect("a word")));
            let format = version.and_then(EventFormat::from_version).unwrap_or(EventFormat::V5);
            let first = eformat::Robs::new(format, &bytes[at..]).next().expect("there are bytes left");
            let rob = first.map_err(|problem| problem.shifted(at as u64))?;
            let len = rob.fragment().bytes().len();
            self.index.push(entry(&rob, start + at));
            at += len;
        }
        Ok(())
    }
}

fn entry(rob: &Rob<'_>, start: usize) -> [u32; COLUMNS] {
    let payload = rob.fragment().payload_range();
    let (data, damaged) = match rob.rod() {
        Ok(rod) => (rod.data_range(), rod.size_problem().is_some()),
        Err(_) => (0..0, true),
    };
    let word = |byte: usize| u32::try_from((start + byte) / WORD).expect("a slot has fewer than 2^32 words");
    let words = |bytes: usize| u32::try_from(bytes / WORD).expect("a slot has fewer than 2^32 words");
    [
        rob.source_id().0,
        rob.status().0,
        word(0),
        words(rob.fragment().bytes().len()),
        word(payload.start + data.start),
        words(data.len()),
        u32::from(damaged),
    ]
}

fn put(slot: &mut [u8], at: &mut usize, bytes: &[u8]) -> Option<()> {
    let end = at.checked_add(bytes.len())?;
    slot.get_mut(*at..end)?.copy_from_slice(bytes);
    *at = end;
    Some(())
}

fn head_bytes(head: &EventHead<'_>, fragments: usize, index: usize) -> [u8; HEAD_BYTES] {
    let mut out = [0; HEAD_BYTES];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    let word = |value: usize| u32::try_from(value).expect("a slot has fewer than 2^32 bytes").to_le_bytes();
    put(EVENT_NUMBER, &head.event_number.to_le_bytes());
    put(ORDINAL, &head.ordinal.to_le_bytes());
    put(ITEMS, &head.items.to_le_bytes());
    put(LEVEL2, &head.level2_chains.to_le_bytes());
    put(LVL1_ID, &head.lvl1_id.to_le_bytes());
    put(RUN, &head.run_number.to_le_bytes());
    put(BCID, &head.bcid.to_le_bytes());
    put(TRIGGER_TYPE, &[head.trigger_type]);
    put(FORCED, &[u8::from(head.forced)]);
    put(MISSING, &word(head.missing.len()));
    put(FRAGMENTS, &word(fragments));
    put(INDEX, &word(index / WORD));
    out
}

/// Bytes of the head.
pub const HEAD_BYTES: usize = 64;

/// Columns of the index.
pub const COLUMNS: usize = 7;

/// Bytes that each fragment takes in the index, besides its own.
pub const INDEX_BYTES_PER_FRAGMENT: usize = COLUMNS * WORD;

const WORD: usize = 4;
const VERSION_BYTES: core::ops::Range<usize> = 12..16;

const EVENT_NUMBER: usize = 0;
const ORDINAL: usize = 8;
const ITEMS: usize = 16;
const LEVEL2: usize = 24;
const LVL1_ID: usize = 32;
const RUN: usize = 36;
const BCID: usize = 40;
const TRIGGER_TYPE: usize = 42;
const FORCED: usize = 43;
const MISSING: usize = 44;
const FRAGMENTS: usize = 48;
const INDEX: usize = 52;

#[cfg(test)]
mod tests {
    use super::*;
    use eformat::{RobParams, RodHeader, write_rob_fragment};

    fn rob(source: u32, data: &[u8]) -> Vec<u8> {
        let params =
            RobParams { rod: RodHeader { source_id: SourceId(source), ..Default::default() }, ..Default::default() };
        let mut bytes = vec![0; params.rob_bytes(data.len())];
        bytes[eformat::ROB_PREFIX_BYTES..][..data.len()].copy_from_slice(data);
        write_rob_fragment(&mut bytes, &params, data.len());
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let robs = [rob(0x42_0001, &[1; 8]), rob(0x42_0002, &[]), rob(0x51_0003, &[3; 400])];
        let two = [robs[0].clone(), robs[1].clone()].concat();
        let head = EventHead {
            event_number: 1 << 40,
            ordinal: 7,
            lvl1_id: 9,
            run_number: 3,
            bcid: 3563,
            trigger_type: 0x84,
            items: 5,
            level2_chains: 1 << 50,
            forced: true,
            missing: &[0x60_0000],
        };
        let mut slot = vec![0xff; 1024];
        let len = EventWriter::default().write(&mut slot, &head, [two.as_slice(), &robs[2]]).unwrap();
        let view = EventView::parse(&slot[..len]).unwrap();
        assert_eq!((view.event_number(), view.ordinal(), view.lvl1_id()), (1 << 40, 7, 9));
        assert_eq!((view.bcid(), view.trigger_type(), view.forced()), (3563, 0x84, true));
        assert_eq!((view.items(), view.level2_chains(), view.run_number()), (5, 1 << 50, 3));
        assert_eq!(view.missing().collect::<Vec<_>>(), [0x60_0000]);
        let found: Vec<_> = view.fragments().map(|fragment| fragment.rob.to_vec()).collect();
        assert_eq!(found, robs);
        assert_eq!(view.fragment(SourceId(0x51_0003)).unwrap().data, [3; 400]);
        assert!(view.fragments().all(|fragment| !fragment.damaged));
        assert!(view.fragment(SourceId(1)).is_none());
    }

    #[test]
    fn an_event_that_does_not_fit_or_is_none_is_refused() {
        let rob = rob(1, &[0; 64]);
        let mut writer = EventWriter::default();
        let need = HEAD_BYTES + rob.len() + INDEX_BYTES_PER_FRAGMENT;
        let mut slot = vec![0; need];
        assert_eq!(writer.write(&mut slot, &EventHead::default(), [rob.as_slice()]), Ok(need));
        let small = &mut slot[..need - 4];
        assert!(matches!(writer.write(small, &EventHead::default(), [rob.as_slice()]), Err(Unfit::TooLarge { .. })));
        let torn = &rob[..40];
        let refused = writer.write(&mut slot, &EventHead::default(), [rob.as_slice(), torn]);
        assert!(matches!(refused, Err(Unfit::Malformed { .. }) | Err(Unfit::TooLarge { .. })), "{refused:?}");
    }

    #[test]
    fn bytes_that_are_no_event_are_refused_without_a_panic() {
        for len in 0..200 {
            let _ = EventView::parse(&vec![0xff; len]);
            let _ = EventView::parse(&vec![0; len]);
        }
    }

    #[test]
    fn a_damaged_rod_is_marked() {
        let mut bytes = rob(1, &[0; 64]);
        bytes[eformat::ROB_HEADER_WORDS * 4] = 0;
        let mut slot = vec![0; 1024];
        let len = EventWriter::default().write(&mut slot, &EventHead::default(), [bytes.as_slice()]).unwrap();
        let fragment = EventView::parse(&slot[..len]).unwrap().fragments().next().unwrap();
        assert!(fragment.damaged && fragment.data.is_empty() && fragment.rob == bytes);
    }
}
