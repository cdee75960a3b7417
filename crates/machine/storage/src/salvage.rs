//! The way through a damaged file: which events are whole, where they lie, and what lies between them.
//!
//! Where a record or an event is damaged, the way goes on at the next place that two things point to. These are a
//! data separator and the size of the event behind it, or the size of an event and what follows it. So the content
//! of an event is not taken for an event, even if it looks like one. The time is linear in the size of the file:
//! what is looked at in vain is bounded.

use std::collections::VecDeque;
use std::ops::Range;

use eformat::{
    DataSeparator, FileChecker, FileEnd, FileHeader, FileVersion, Parsed, Part, Problem, ProblemKind, WORD_BYTES,
    event_size_bytes, marker,
};

use crate::scan::{EVENT_BYTES_MAX, ReadError, Scan};

/// What comes next in a damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A whole event.
    Event {
        /// Its data block.
        block: Range<u64>,
        /// Number of the block, as its separator says, or as it must be.
        number: Option<u32>,
    },
    /// Bytes that are no part of a whole event.
    Damage(Damage),
}

/// Bytes of a file that are no good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Where they lie.
    pub range: Range<u64>,
    /// Events that were lost with them; `None` if that cannot be known.
    pub events_lost: Option<u32>,
    /// The first thing that is wrong with them.
    pub problem: Problem,
}

/// Walks through a file from the end of its header.
pub(crate) struct Salvage<'s> {
    scan: &'s mut Scan,
    checker: FileChecker,
    version: FileVersion,
    compressed: bool,
    at: u64,
    /// Where the events end: at the end record, if there is a valid one.
    data_end: u64,
    end: Option<FileEnd>,
    /// Number that the next block should have.
    next_number: Option<u32>,
    /// Found already, but behind what is told of first.
    found: VecDeque<Piece>,
    vain_bytes: u64,
}

/// A block that may hold an event.
struct Candidate {
    block: Range<u64>,
    /// Where its separator begins, or itself, if that is damaged.
    begin: u64,
    number: Option<u32>,
}

impl<'s> Salvage<'s> {
    /// Begins at `at`, behind the header, if that is whole.
    pub(crate) fn new(
        scan: &'s mut Scan,
        header: &FileHeader,
        checker: FileChecker,
        at: u64,
    ) -> Result<Self, ReadError> {
        let file_bytes = scan.file_bytes();
        let end_at = file_bytes.checked_sub(FileEnd::BYTES as u64).filter(|end_at| *end_at >= at);
        let end = match end_at {
            Some(end_at) => match FileEnd::parse(&scan.peek::<{ FileEnd::BYTES }>(end_at)?) {
                Ok(Parsed::Done(end, _)) if end.closed.date.to_word() != 0 => Some(end),
                _ => None,
            },
            None => None,
        };
        let data_end = if end.is_some() { file_bytes - FileEnd::BYTES as u64 } else { file_bytes };
        let first_file = at > 0 && header.start.file_number <= 1 && header.start.version != FileVersion::V2;
        Ok(Self {
            scan,
            checker,
            version: header.start.version,
            compressed: header.blocks_are_compressed(),
            at,
            data_end,
            end,
            next_number: first_file.then_some(1),
            found: VecDeque::new(),
            vain_bytes: 0,
        })
    }

    /// The end record, if it is whole.
    pub(crate) fn end(&self) -> Option<&FileEnd> {
        self.end.as_ref()
    }

    /// Bytes of a block that [`next`](Self::next) gave.
    pub(crate) fn bytes(&mut self, block: Range<u64>) -> Result<&[u8], ReadError> {
        self.scan.bytes(block)
    }

    /// The next piece; `None` at the end of the events.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, ReadError> {
        if let Some(piece) = self.found.pop_front() {
            return Ok(Some(piece));
        }
        if self.at == self.data_end {
            return Ok(None);
        }
        let (at, separator) = (self.at, self.separator(self.at)?);
        let block_at = at + DataSeparator::BYTES as u64;
        let sizes = [separator.ok().map(|separator| u64::from(separator.block_bytes)), self.event_bytes(block_at)?];
        let mut problem = separator.err();
        for (index, bytes) in sizes.iter().enumerate() {
            let Some(bytes) = bytes.filter(|_| index == 0 || sizes[0] != sizes[1]) else { continue };
            let block = block_at..block_at.saturating_add(bytes);
            match self.judge(&block)? {
                Ok(()) => return self.take_here(block, separator).map(Some),
                Err(wrong) => problem = problem.or(Some(wrong)),
            }
        }
        let mut problem =
            problem.unwrap_or(Problem { offset: at, unpacked_offset: None, kind: ProblemKind::NoEndRecord });
        let (needed_bytes, have_bytes) = (FileEnd::BYTES as u64, self.data_end - at);
        if have_bytes < needed_bytes && self.peek_word(at)? == Some(END_MARKER) {
            problem.kind = ProblemKind::Truncated { part: Part::FileEnd, needed_bytes, have_bytes };
        }
        self.pass_over(at, block_at, sizes, problem).map(|damage| Some(Piece::Damage(damage)))
    }

    /// A whole event where one should be. Only its separator may be wrong.
    fn take_here(&mut self, block: Range<u64>, separator: Result<DataSeparator, Problem>) -> Result<Piece, ReadError> {
        let mut number = self.next_number.or(separator.ok().map(|separator| separator.block_number));
        let mut events_lost = 0;
        if let (Some(expected), Ok(DataSeparator { block_number, .. })) = (number, separator)
            && block_number != expected
            && block.end < self.data_end
            && self.continues(block.end, Some(block_number.wrapping_add(1)))? == 2
        {
            // The next one has counted on from it.
            (number, events_lost) = (Some(block_number), block_number.saturating_sub(expected));
        }
        let fits = |separator: &DataSeparator| u64::from(separator.block_bytes) == block.end - block.start;
        let (at, expected) = (self.at, self.next_number);
        self.at = block.end;
        self.next_number = number.map(|number| number.wrapping_add(1));
        let event = Piece::Event { block: block.clone(), number };
        let problem = match separator {
            Ok(separator) if !fits(&separator) => {
                let (found_words, expected_words) =
                    (u64::from(separator.block_bytes) / 4, (block.end - block.start) / 4);
                let kind = ProblemKind::FragmentSize { part: Part::DataBlock, found_words, expected_words };
                Problem { offset: at + 12, unpacked_offset: None, kind }
            }
            Ok(separator) if expected.is_some_and(|expected| expected != separator.block_number) => {
                let expected = expected.unwrap_or_default();
                let kind = ProblemKind::BlockNumber { found: separator.block_number, expected };
                Problem { offset: at + 8, unpacked_offset: None, kind }
            }
            Ok(_) => return Ok(event),
            Err(problem) => problem,
        };
        self.found.push_back(event);
        Ok(Piece::Damage(Damage { range: at..block.start, events_lost: Some(events_lost), problem }))
    }

    /// Passes over what is damaged at `at`.
    fn pass_over(
        &mut self,
        at: u64,
        block_at: u64,
        sizes: [Option<u64>; 2],
        problem: Problem,
    ) -> Result<Damage, ReadError> {
        let mut best = (0, 0);
        for end in sizes.iter().flatten().filter_map(|bytes| block_at.checked_add(*bytes)) {
            let certainty = self.continues(end, self.next_number.map(|number| number.wrapping_add(1)))?;
            if certainty > best.0 {
                best = (certainty, end);
            }
        }
        if best.0 > 0 {
            self.at = best.1;
            self.next_number = self.next_number.map(|number| number.wrapping_add(1));
            return Ok(Damage { range: at..self.at, events_lost: Some(1), problem });
        }
        // Two sizes say that this is the event at whose writing the file was torn.
        let is_torn = self.end.is_none()
            && sizes[0].is_some()
            && sizes[0] == sizes[1]
            && sizes[0].is_some_and(|bytes| block_at + bytes > self.data_end);
        if is_torn {
            self.at = self.data_end;
            return Ok(Damage { range: at..self.at, events_lost: Some(1), problem });
        }
        let agreed_end = sizes[0].filter(|_| sizes[0] == sizes[1]).map_or(at, |bytes| block_at + bytes);
        let next = self.search(at + 1, agreed_end)?;
        let zone = at..next.as_ref().map_or(self.data_end, |next| next.begin);
        let packed = self.packed_at_end_of(zone)?.map(|block| {
            let number = match &next {
                _ if block.start == block_at => self.next_number,
                Some(next) => next.number.map(|number| number.wrapping_sub(1)),
                None => self.last_number(),
            };
            Candidate { begin: block.start, block, number }
        });
        let found: Vec<Candidate> = packed.into_iter().chain(next).collect();
        let Some(first) = found.first() else {
            let events_lost = self.lost_at_end(at)?;
            self.at = self.data_end;
            return Ok(Damage { range: at..self.data_end, events_lost, problem });
        };
        // Nothing is in front of the first number.
        let next_number = self.next_number.or(Some(1).filter(|_| first.number == Some(1)));
        let events_lost = first.number.zip(next_number).map(|(number, next)| number.wrapping_sub(next));
        let damage = Damage { range: at..first.begin, events_lost, problem };
        for Candidate { block, number, .. } in found {
            self.at = block.end;
            self.next_number = number.map(|number| number.wrapping_add(1));
            self.found.push_back(Piece::Event { block, number });
        }
        Ok(damage)
    }

    /// A compressed event without its separator that ends where these bytes do: nothing else tells where it begins.
    fn packed_at_end_of(&mut self, zone: Range<u64>) -> Result<Option<Range<u64>>, ReadError> {
        let bytes = zone.end - zone.start;
        if !self.compressed || bytes > EVENT_BYTES_MAX as u64 {
            return Ok(None);
        }
        let is_stream =
            |head: &[u8]| head[0] & 0xf == ZLIB_METHOD && u16::from_be_bytes([head[0], head[1]]).is_multiple_of(31);
        let places = self.scan.bytes(zone.clone())?.windows(2).enumerate().filter(|(_, head)| is_stream(head));
        let places = places.filter(|(place, _)| (bytes - *place as u64).is_multiple_of(WORD_BYTES as u64));
        let places: Vec<u64> = places.map(|(place, _)| zone.start + place as u64).take(STREAMS_MAX).collect();
        for place in places {
            let block = place..zone.end;
            if self.judge(&block)?.is_ok() {
                return Ok(Some(block));
            }
        }
        Ok(None)
    }

    /// Events lost with everything from `at` on: none with an end record that is damaged or torn, one with bytes too few for two.
    fn lost_at_end(&mut self, at: u64) -> Result<Option<u32>, ReadError> {
        if let (Some(last), Some(next)) = (self.last_number(), self.next_number) {
            let all = last.checked_sub(next).map(|lost| lost.saturating_add(1));
            return Ok(all.filter(|lost| u64::from(*lost) <= most_events(self.data_end - at)));
        }
        let rest = self.data_end - at;
        if rest > FileEnd::BYTES as u64 {
            return Ok((most_events(rest) <= 1).then_some(1));
        }
        let is_end = match rest == FileEnd::BYTES as u64 {
            true => self.separator(at)?.is_err(),
            false => self.peek_word(at)? == Some(END_MARKER),
        };
        Ok(Some(u32::from(!is_end)))
    }

    /// Number of the last block, as the end record says; files of version 2 count their blocks from elsewhere.
    fn last_number(&self) -> Option<u32> {
        self.end.as_ref().filter(|_| self.version != FileVersion::V2).map(|end| end.sequence_events)
    }

    /// The next whole event from `from` on. One in front of `agreed_end`, where two sizes say that the damaged event ends, must be
    /// the very next one.
    fn search(&mut self, from: u64, agreed_end: u64) -> Result<Option<Candidate>, ReadError> {
        let mut from = from;
        while self.vain_bytes <= self.scan.file_bytes().saturating_mul(VAIN_FACTOR) + VAIN_BYTES_FREE {
            let Some((at, is_separator)) = self.find_marker(from)? else { return Ok(None) };
            from = at + 1;
            let candidate = if is_separator { self.by_separator(at)? } else { self.by_event(at)? };
            let Some((candidate, certainty)) = candidate else { continue };
            let is_next = candidate.number.is_none_or(|number| {
                let ahead = self.next_number.map_or(0, |next| number.wrapping_sub(next));
                match at < agreed_end {
                    true => ahead == 1 || self.next_number.is_none(),
                    false => u64::from(ahead) <= most_events(at - self.at) + 1,
                }
            });
            if !is_next {
                continue;
            }
            if self.judge(&candidate.block)?.is_ok() {
                return Ok(Some(candidate));
            }
            if certainty > 0 {
                from = candidate.block.end;
            } else {
                self.vain_bytes += candidate.block.end - candidate.block.start;
            }
        }
        Ok(None)
    }

    /// The block behind a separator, if it begins as an event of its size does.
    fn by_separator(&mut self, at: u64) -> Result<Option<(Candidate, u8)>, ReadError> {
        let Ok(DataSeparator { block_number, block_bytes }) = self.separator(at)? else { return Ok(None) };
        let begin = at + DataSeparator::BYTES as u64;
        let block = begin..begin + u64::from(block_bytes);
        let begins = match self.compressed {
            true => block_bytes > 0 && self.peek_word(begin)?.is_some_and(|word| word as u8 & 0xf == ZLIB_METHOD),
            false => self.event_bytes(begin)? == Some(u64::from(block_bytes)),
        };
        if !begins || block.end > self.data_end {
            return Ok(None);
        }
        let certainty = self.continues(block.end, Some(block_number.wrapping_add(1)))?;
        Ok(Some((Candidate { block, begin: at, number: Some(block_number) }, certainty)))
    }

    /// An event without a separator, if there is something behind it that follows events.
    fn by_event(&mut self, at: u64) -> Result<Option<(Candidate, u8)>, ReadError> {
        let Some(bytes) = self.event_bytes(at)? else { return Ok(None) };
        let block = at..at.saturating_add(bytes);
        let certainty = self.continues(block.end, None)?;
        if certainty == 0 {
            return Ok(None);
        }
        let next = if block.end < self.data_end { self.separator(block.end)?.ok() } else { None };
        let number = next.map(|next| next.block_number.wrapping_sub(1));
        Ok(Some((Candidate { block, begin: at, number }, certainty)))
    }

    /// How certain it is that a block ends at `at`: 0 not at all, 1 something follows that follows blocks, 2 the very next number.
    fn continues(&mut self, at: u64, number: Option<u32>) -> Result<u8, ReadError> {
        if at >= self.data_end {
            return Ok(if at == self.data_end { 2 } else { 0 });
        }
        if let Ok(separator) = self.separator(at)? {
            return Ok(if number.is_none_or(|number| number == separator.block_number) { 2 } else { 1 });
        }
        let event_at = at + DataSeparator::BYTES as u64;
        Ok(u8::from(self.event_bytes(event_at)?.is_some_and(|bytes| event_at + bytes <= self.data_end)))
    }

    /// Where the next marker of a separator or an event is, and whether it is that of a separator.
    fn find_marker(&mut self, from: u64) -> Result<Option<(u64, bool)>, ReadError> {
        let (separator, event) = (SEPARATOR_MARKER.to_le_bytes(), marker::FULL_EVENT.to_le_bytes());
        let mut from = from;
        while from + (WORD_BYTES as u64) <= self.data_end {
            let end = self.data_end.min(from + SEARCH_BYTES);
            let compressed = self.compressed;
            let is_marker = |word: &[u8]| word == separator || !compressed && word == event;
            let bytes = self.scan.bytes(from..end)?;
            if let Some(place) = bytes.windows(WORD_BYTES).position(is_marker) {
                return Ok(Some((from + place as u64, bytes[place..place + WORD_BYTES] == separator)));
            }
            from = end - (WORD_BYTES as u64 - 1);
        }
        Ok(None)
    }

    /// Whether a whole event fills the block, which then counts as taken.
    fn judge(&mut self, block: &Range<u64>) -> Result<Result<(), Problem>, ReadError> {
        let (bytes, have_bytes) = (block.end - block.start, self.data_end.saturating_sub(block.start));
        let wrong = |kind| Ok(Err(Problem { offset: block.start, unpacked_offset: None, kind }));
        if bytes > have_bytes {
            return wrong(ProblemKind::Truncated { part: Part::DataBlock, needed_bytes: bytes, have_bytes });
        }
        if bytes > EVENT_BYTES_MAX as u64 {
            return wrong(ProblemKind::Oversize { part: Part::DataBlock, bytes, limit_bytes: EVENT_BYTES_MAX as u64 });
        }
        let mut problems = Vec::new();
        self.checker.event(self.scan.bytes(block.clone())?, block.start, &mut problems);
        Ok(problems.first().map_or(Ok(()), |problem| Err(*problem)))
    }

    fn separator(&mut self, at: u64) -> Result<Result<DataSeparator, Problem>, ReadError> {
        let have_bytes = self.data_end - at;
        if have_bytes < DataSeparator::BYTES as u64 {
            let needed_bytes = DataSeparator::BYTES as u64;
            let kind = ProblemKind::Truncated { part: Part::DataSeparator, needed_bytes, have_bytes };
            return Ok(Err(Problem { offset: at, unpacked_offset: None, kind }));
        }
        Ok(match DataSeparator::parse(&self.scan.peek::<{ DataSeparator::BYTES }>(at)?) {
            Ok(Parsed::Done(separator, _)) => Ok(separator),
            Ok(Parsed::Need(_)) => unreachable!("all its bytes are given"),
            Err(problem) => Err(problem.shifted(at)),
        })
    }

    /// Size of the event that begins at `at`, as its header says; nothing is known of one that is compressed.
    fn event_bytes(&mut self, at: u64) -> Result<Option<u64>, ReadError> {
        if self.compressed || at + 2 * WORD_BYTES as u64 > self.data_end {
            return Ok(None);
        }
        Ok(event_size_bytes(&self.scan.peek::<{ 2 * WORD_BYTES }>(at)?))
    }

    fn peek_word(&mut self, at: u64) -> Result<Option<u32>, ReadError> {
        if at + WORD_BYTES as u64 > self.data_end {
            return Ok(None);
        }
        self.scan.peek::<WORD_BYTES>(at).map(|bytes| Some(u32::from_le_bytes(bytes)))
    }
}

/// Events that so many bytes can hold.
fn most_events(bytes: u64) -> u64 {
    bytes / (DataSeparator::BYTES as u64 + EVENT_BYTES_LEAST)
}

/// The least block: a compressed event takes no less.
const EVENT_BYTES_LEAST: u64 = 48;
const SEPARATOR_MARKER: u32 = 0x1234_cccc;
const END_MARKER: u32 = 0x1234_dddd;
/// Low half of the first byte of a zlib stream.
const ZLIB_METHOD: u8 = 8;
const SEARCH_BYTES: u64 = 64 << 10;
/// Beginnings of zlib streams that are tried between two separators.
const STREAMS_MAX: usize = 1000;
/// Bytes that are looked at in vain: times the size of the file, and for small files.
const VAIN_FACTOR: u64 = 4;
const VAIN_BYTES_FREE: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use testkit::TempDir;

    use super::*;
    use crate::damage_table::{event, written};
    use crate::recover::{FilePart as Written, Recovered, find};

    const HEADER: usize = 276;

    /// The file header, blocks of these numbers and what lies between them, and the end record of four events.
    fn file(parts: &[(Option<u32>, &[u8])]) -> Vec<u8> {
        let events: Vec<_> = (1..=4).map(|id| event(id, true)).collect();
        let whole = written(|config| config, &events).remove(0);
        let mut file = whole[..HEADER].to_vec();
        for (number, bytes) in parts {
            let separator = |block_number| DataSeparator { block_number, block_bytes: bytes.len() as u32 }.emit();
            file.extend(number.map(separator).into_iter().flatten());
            file.extend(*bytes);
        }
        file.extend(&whole[whole.len() - FileEnd::BYTES..]);
        file
    }

    /// What is found in a file, and the ids of the events in it.
    fn found(file: &[u8]) -> (Recovered, Vec<u64>) {
        let directory = TempDir::new("salvage");
        let path = directory.join("a.data");
        std::fs::write(&path, file).unwrap();
        let mut ids = Vec::new();
        let found = find(&path, &mut |part| {
            if let Written::Event(_, bytes) = part {
                ids.push(eformat::Event::parse(bytes).unwrap().global_id());
            }
            Ok(())
        });
        (found.unwrap().recovered, ids)
    }

    #[test]
    fn a_separator_is_found_wherever_it_lies_in_what_is_read_at_once() {
        let events: Vec<_> = (1..=4).map(|id| event(id, true)).collect();
        let at = (HEADER + DataSeparator::BYTES + events[0].len()) as u64;
        let around = |bytes: u64| bytes - 5..bytes + 5;
        for gap in around(SEARCH_BYTES).chain(around(2 * SEARCH_BYTES)) {
            let zeros = vec![0; gap as usize];
            let parts = [(Some(1), events[0].as_slice()), (None, &zeros), (Some(2), &events[1]), (Some(3), &events[2])];
            let (recovered, ids) = found(&file(&[&parts[..], &[(Some(4), &events[3])]].concat()));
            assert_eq!(ids, [1, 2, 3, 4], "{gap}");
            assert_eq!((recovered.events_lost, recovered.damages.len()), (0, 1), "{gap}");
            assert_eq!(recovered.damages[0].range, at..at + gap);
        }
    }

    /// Zeros hold no more events than there is room for: a number further ahead is no evidence.
    #[test]
    fn a_number_counts_as_far_ahead_as_events_have_room() {
        let (first, last) = (event(1, true), event(4, true));
        for gap in [63, 64, 65, 640] {
            let zeros = vec![0; gap];
            let most = gap as u32 / 64 + 1;
            for (ahead, lost) in [(0, Some(0)), (1, Some(1)), (most, Some(most)), (most + 1, None)] {
                let (recovered, ids) = found(&file(&[(Some(1), &first), (None, &zeros), (Some(2 + ahead), &last)]));
                assert_eq!((ids, recovered.damages[0].events_lost), (vec![1, 4], lost), "{gap} {ahead}");
            }
        }
    }

    /// Beginnings of blocks of 900 kB each in a file of 1 MB, in front of an event: looked at in vain.
    #[test]
    fn what_is_looked_at_in_vain_is_bounded() {
        let found_behind = |traps: usize| {
            // Nothing says where the first one ends.
            let mut data = vec![0; 24];
            for _ in 0..traps {
                data.extend(DataSeparator { block_number: 2, block_bytes: 900_000 }.emit());
                data.extend([marker::FULL_EVENT, 900_000 / 4].iter().flat_map(|word: &u32| word.to_le_bytes()));
            }
            data.resize(1_000_000, 0);
            let (first, last) = (event(1, true), event(4, true));
            found(&file(&[(Some(1), &first), (None, &data), (Some(4), &last)])).1
        };
        let bound = 4 * 1_000_000 + (64 << 20);
        assert_eq!(found_behind(bound / 900_000 - 1), [1, 4]);
        assert_eq!(found_behind(bound / 900_000 + 2), [1]);
    }

    #[test]
    fn an_event_above_the_limit_is_not_read() {
        let directory = TempDir::new("salvage");
        let path = directory.join("a.data");
        let header = written(|config| config, &[event(1, true)]).remove(0);
        std::fs::write(&path, &header[..HEADER]).unwrap();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
        let mut scan = Scan::open(&path).unwrap();
        let header = scan.header().unwrap();
        let checker = FileChecker::new(&header, eformat::CheckOptions::default(), &mut Vec::new());
        let mut salvage = Salvage::new(&mut scan, &header, checker, HEADER as u64).unwrap();
        let limit = EVENT_BYTES_MAX as u64;
        let mut judge = |bytes: u64| salvage.judge(&(1000..1000 + bytes)).unwrap().unwrap_err();
        let part = Part::DataBlock;
        let kind = ProblemKind::Oversize { part, bytes: limit + 4, limit_bytes: limit };
        assert_eq!(judge(limit + 4), Problem { offset: 1000, unpacked_offset: None, kind });
        assert!(matches!(judge(limit).kind, ProblemKind::Marker { .. }), "one at the limit is looked at");
        let (needed_bytes, have_bytes) = (1 << 30, (1 << 30) - 1000);
        let kind = ProblemKind::Truncated { part, needed_bytes, have_bytes };
        assert_eq!(judge(1 << 30), Problem { offset: 1000, unpacked_offset: None, kind });
    }

    /// A block of an event whose sizes are right, and nothing else: around this, which looks like the next ones.
    fn broken(around: &[u8]) -> Vec<u8> {
        let words = (8 + 400 + around.len()).div_ceil(4) as u32;
        let mut block: Vec<u8> = [marker::FULL_EVENT, words].iter().flat_map(|word| word.to_le_bytes()).collect();
        block.resize(208, 0);
        block.extend(around);
        block.resize(words as usize * 4, 0);
        block
    }

    #[test]
    fn what_lies_in_an_event_of_known_size_is_not_taken_for_the_next_one() {
        let (first, inner, zeros) = (event(1, true), event(9, true), vec![0; 200]);
        for (number, expected) in [(1, &[1][..]), (2, &[1]), (3, &[1, 9]), (4, &[1])] {
            let separator = DataSeparator { block_number: number, block_bytes: inner.len() as u32 }.emit();
            let block = broken(&[separator.as_slice(), &inner].concat());
            // What follows it is damaged, so that nothing else tells where it ends.
            let (_, ids) = found(&file(&[(Some(1), &first), (Some(2), &block), (None, &zeros)]));
            assert_eq!(ids, expected, "a separator with number {number} within the block of number 2");
        }
    }

    #[test]
    fn an_event_without_separator_follows_right_behind_a_damaged_one() {
        let (first, next, last) = (event(1, true), event(8, true), event(10, true));
        let parts = [(Some(1), first.as_slice()), (Some(2), &broken(&[])), (None, &next), (Some(6), &last)];
        let (recovered, ids) = found(&file(&parts));
        assert_eq!(ids, [1, 8, 10]);
        assert_eq!(recovered.damages[0].events_lost, Some(3), "numbers 2, 3 and 4");
    }
}
