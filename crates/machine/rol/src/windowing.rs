//! Leaves of an event what a filter's windows ask for.

use std::collections::{BTreeMap, BTreeSet};

use base::bulk::{Bulk, BulkParts, PageSlice};
use configuration::{Checksum, LinkSource, Matching, Partition};
use dataflow::component::Windowed;
use dataflow::message::{BuiltEvent, EventInfo};
use dataflow::readout::ros::{Framing, TimedHead};
use eformat::{
    DetectorGroup, ROB_HEADER_WORDS, ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, ROD_VERSION, SourceId, WORD_BYTES, marker,
};
use timing::Interval;
use trigger::windows::{BadWindows, FILTER_WINDOWS, LeftOut, Window, WindowsResult};

use crate::timed::{ChunkHead, EventHead, TIMED, TimedFragments};
use crate::whole::rob_fragment;

/// Leaves of an event what windows ask for: handles on the same pages, without a copy.
///
/// A fragment that no window names is left out as a whole. So is a chunk that meets none of the windows of its source. The
/// trigger's own fragments stay.
#[derive(Clone, Debug)]
pub struct Windowing {
    framing: TimedFragments,
    /// Sources whose data have times.
    clocks: BTreeMap<u32, Clock>,
}

/// What the times of a source are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// Those of the event, less so many ns.
    Common(i64),
    /// Those of a clock that only its read-out system knows.
    Own,
}

/// A fragment of an event.
struct Fragment {
    source: u32,
    len: usize,
    timed: Option<TimedData>,
}

/// What lies in a fragment of chunks.
struct TimedData {
    head: EventHead,
    /// With the length of each, its head and padding included.
    chunks: Vec<(Interval, usize)>,
}

impl Windowing {
    /// For the events of a partition.
    pub fn new(partition: &Partition) -> Self {
        let framing =
            TimedFragments { run_number: partition.run.number(), adler32: partition.ros.checksum == Checksum::Adler32 };
        let sources = partition.source.iter().enumerate();
        let by_time = sources.filter(|(_, source)| partition.matching(source) == Matching::Time);
        let clock = |(place, source): (usize, &LinkSource)| {
            (source.source_id(place), partition.offset_ns(source).map_or(Clock::Own, Clock::Common))
        };
        Self { framing, clocks: by_time.map(clock).collect() }
    }

    /// What is recorded of an event, with a fragment that says so.
    ///
    /// # Errors
    /// A window of a source that the event does not have, or of times that it does not cover, or not have on its clock.
    pub fn apply(&self, built: &BuiltEvent, asked: Vec<Window>) -> Result<Windowed, BadWindows> {
        let fragments = self.fragments(built.bulk.slices());
        let known = Known::new(&self.clocks, &fragments, &built.missing);
        asked.iter().enumerate().try_for_each(|(place, window)| known.check(place, window))?;
        let wanted = Wanted::new(&asked);
        let mut left = Left { parts: BulkParts::new(built.bulk.clone()), begun: 0, bulk: Bulk::empty() };
        let mut result = WindowsResult { asked, left_out: Vec::new() };
        let (mut kept_chunks, mut left_fragments) = (0, 0);
        for fragment in fragments {
            let left_out = match fragment.kept(&wanted) {
                Kept::All => {
                    left.keep(fragment.len);
                    kept_chunks += fragment.chunks();
                    continue;
                }
                Kept::Nothing => {
                    left.skip(fragment.len);
                    left_fragments += 1;
                    let (chunks, bytes) = (fragment.chunks() as u32, fragment.len as u32);
                    LeftOut { source: fragment.source, kept_chunks: 0, chunks, bytes }
                }
                Kept::Chunks(timed, kept) => self.cut(&built.event, &fragment, timed, &kept, &mut left),
            };
            kept_chunks += u64::from(left_out.kept_chunks);
            result.left_out.push(left_out);
        }
        let said = rob_fragment(FILTER_WINDOWS, &built.event, self.framing.run_number, &result.to_words());
        let sum = |of: fn(&LeftOut) -> u32| result.left_out.iter().map(|left_out| u64::from(of(left_out))).sum();
        let (left_chunks, left_bytes) = (sum(|left_out| left_out.chunks), sum(|left_out| left_out.bytes));
        let bulk = left.take_bulk().followed_by(said);
        Ok(Windowed { bulk, kept_chunks, left_fragments, left_chunks, left_bytes })
    }

    /// Takes chunks of a fragment over, with a new frame around them.
    fn cut(
        &self,
        event: &EventInfo,
        fragment: &Fragment,
        timed: &TimedData,
        kept: &[bool],
        left: &mut Left,
    ) -> LeftOut {
        let mut left_out = LeftOut { source: fragment.source, ..LeftOut::default() };
        let before = left.take_bulk();
        let in_front = ROB_PREFIX_BYTES + ChunkHead::BYTES;
        left.skip(in_front);
        for (&(_, len), is_kept) in timed.chunks.iter().zip(kept) {
            if *is_kept {
                left.keep(len);
                left_out.kept_chunks += 1;
            } else {
                left.skip(len);
                left_out.chunks += 1;
                left_out.bytes += len as u32;
            }
        }
        let length: usize = timed.chunks.iter().map(|(_, len)| len).sum();
        left.skip(fragment.len - in_front - length);
        let chunks = left.take_bulk();
        assert_eq!(chunks.len() + left_out.bytes as usize, length, "each chunk stays or is left out");
        let EventHead { begin, end, status, .. } = timed.head;
        let (interval, status) = (Interval { begin, end }, status.0);
        let head = TimedHead { rob: fragment.source, event: *event, interval, chunks: left_out.kept_chunks, status };
        left.bulk = before.followed_by(self.framing.frame(&head, chunks));
        left_out
    }

    /// The fragments of an event. Bytes in which none begins are one of the trigger, so that they stay.
    fn fragments(&self, slices: &[PageSlice]) -> Vec<Fragment> {
        let mut bytes = Bytes::of(slices);
        let mut found = Vec::new();
        while bytes.left > 0 {
            let (at, left) = (bytes.clone(), bytes.left);
            let fragment = self.fragment(&at).filter(|fragment| fragment.len <= left);
            let fragment = fragment.unwrap_or(Fragment { source: FILTER_WINDOWS.0, len: left, timed: None });
            bytes.skip(fragment.len);
            found.push(fragment);
        }
        found
    }

    fn fragment(&self, at: &Bytes<'_>) -> Option<Fragment> {
        let mut bytes = at.clone();
        let prefix: [u8; ROB_PREFIX_BYTES] = bytes.take()?;
        let word = |at: usize| u32::from_le_bytes(prefix.as_chunks().0[at]);
        let len = (word(1) as usize).checked_mul(WORD_BYTES)?;
        if word(0) != marker::ROB || len < ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES {
            return None;
        }
        let source = word(4);
        let is_ours = word(2) as usize == ROB_HEADER_WORDS && word(ROB_HEADER_WORDS) == marker::ROD;
        let is_timed = is_ours && word(ROB_HEADER_WORDS + 2) == ROD_VERSION | u32::from(TIMED);
        let checksum = if word(ROB_HEADER_WORDS - 1) == 0 { 0 } else { WORD_BYTES };
        let clock = self.clocks.get(&source).filter(|_| is_timed);
        let timed = clock.and_then(|clock| {
            let data = len.checked_sub(ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES + checksum)?;
            let offset = if let Clock::Common(offset) = clock { *offset } else { 0 };
            timed_data(bytes, data, offset)
        });
        Some(Fragment { source, len, timed })
    }
}

/// The chunks that stand here, if so many bytes of data are whole chunks.
fn timed_data(mut bytes: Bytes<'_>, data: usize, offset: i64) -> Option<TimedData> {
    let mut left = data.checked_sub(ChunkHead::BYTES)?;
    let ChunkHead { begin, end, len: count, status } = ChunkHead::parse(&bytes.take()?);
    let mut chunks = Vec::new();
    while left > 0 {
        let head = ChunkHead::parse(&bytes.take()?);
        let payload = (head.len as usize).next_multiple_of(WORD_BYTES);
        let len = ChunkHead::BYTES + payload;
        left = left.checked_sub(len)?;
        bytes.skip(payload);
        chunks.push((Interval::new(head.begin, head.end).shifted(offset), len));
    }
    let head = EventHead { begin, end, chunks: count, status };
    (chunks.len() == count as usize).then_some(TimedData { head, chunks })
}

/// What is recorded of a fragment.
enum Kept<'a> {
    All,
    Nothing,
    /// Those of its chunks that are marked.
    Chunks(&'a TimedData, Vec<bool>),
}

impl Fragment {
    fn kept(&self, wanted: &Wanted) -> Kept<'_> {
        if SourceId(self.source).sub_detector().group() == Some(DetectorGroup::Tdaq) {
            return Kept::All;
        }
        if !wanted.names(self.source) {
            return Kept::Nothing;
        }
        let Some(timed) = &self.timed else { return Kept::All };
        let kept: Vec<bool> = timed.chunks.iter().map(|(time, _)| wanted.meets(self.source, *time)).collect();
        if kept.contains(&false) { Kept::Chunks(timed, kept) } else { Kept::All }
    }

    fn chunks(&self) -> u64 {
        self.timed.as_ref().map_or(0, |timed| timed.chunks.len() as u64)
    }
}

/// What windows want, of all sources and of single ones: intervals in their order that do not touch.
struct Wanted {
    all: Vec<Interval>,
    of: BTreeMap<u32, Vec<Interval>>,
}

impl Wanted {
    fn new(asked: &[Window]) -> Self {
        let (mut all, mut of) = (Vec::new(), BTreeMap::<u32, Vec<Interval>>::new());
        for Window { sources, time } in asked {
            if sources.is_empty() {
                all.push(*time);
            }
            for source in sources {
                of.entry(*source).or_default().push(*time);
            }
        }
        of.values_mut().chain([&mut all]).for_each(merge);
        Self { all, of }
    }

    fn names(&self, source: u32) -> bool {
        !self.all.is_empty() || self.of.contains_key(&source)
    }

    fn meets(&self, source: u32, time: Interval) -> bool {
        meets(&self.all, time) || self.of.get(&source).is_some_and(|its| meets(its, time))
    }
}

/// Sorts intervals, and makes one of those that touch.
fn merge(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable_by_key(|interval| interval.begin);
    intervals.dedup_by(|next, last| {
        let touches = next.begin <= last.end;
        if touches {
            last.end = last.end.max(next.end);
        }
        touches
    });
}

/// Whether a time meets one of these intervals, which are sorted and do not touch.
fn meets(intervals: &[Interval], time: Interval) -> bool {
    let next = intervals.partition_point(|interval| interval.end <= time.begin);
    intervals.get(next).is_some_and(|interval| interval.meets(time))
}

/// What is known of an event, to check windows by.
struct Known<'a> {
    clocks: &'a BTreeMap<u32, Clock>,
    /// Sources of the event, missing ones included.
    sources: BTreeSet<u32>,
    /// What it takes of those that have times.
    reach: BTreeMap<u32, Interval>,
    /// What it takes of all of them.
    whole: Option<Interval>,
    /// A source with a clock of its own, if there is one.
    own: Option<u32>,
}

impl<'a> Known<'a> {
    fn new(clocks: &'a BTreeMap<u32, Clock>, fragments: &[Fragment], missing: &[u32]) -> Self {
        let sources = fragments.iter().map(|fragment| fragment.source).chain(missing.iter().copied()).collect();
        let reach = |fragment: &Fragment| {
            let EventHead { begin, end, .. } = fragment.timed.as_ref()?.head;
            Some((fragment.source, Interval { begin, end }))
        };
        let reach: BTreeMap<u32, Interval> = fragments.iter().filter_map(reach).collect();
        let whole = hull(reach.values().copied());
        let own = clocks.iter().find(|(_, clock)| **clock == Clock::Own).map(|(source, _)| *source);
        Self { clocks, sources, reach, whole, own }
    }

    /// A window is of sources that the event has, and meets what it takes of one of them. Whether sources have times is as the
    /// partition says: a source may be missing, or its data may be none.
    fn check(&self, place: usize, window: &Window) -> Result<(), BadWindows> {
        let named = &window.sources;
        if let Some(&source_id) = named.iter().find(|source| !self.sources.contains(source)) {
            return Err(BadWindows::UnknownSource { place, source_id });
        }
        if window.is_always() {
            return Ok(());
        }
        let is_own = |source: &&u32| self.clocks.get(source) == Some(&Clock::Own);
        let own = if named.is_empty() { self.own } else { named.iter().find(is_own).copied() };
        if let Some(source_id) = own {
            return Err(BadWindows::OwnClock { place, source_id });
        }
        let all = named.is_empty();
        let has_times =
            if all { !self.clocks.is_empty() } else { named.iter().any(|source| self.clocks.contains_key(source)) };
        if !has_times {
            return Err(BadWindows::NoTimes { place });
        }
        let event =
            if all { self.whole } else { hull(named.iter().filter_map(|source| self.reach.get(source).copied())) };
        match event {
            Some(event) if !window.time.meets(event) => Err(BadWindows::Outside { place, asked: window.time, event }),
            _ => Ok(()),
        }
    }
}

/// From the first begin to the last end.
fn hull(intervals: impl Iterator<Item = Interval>) -> Option<Interval> {
    intervals.reduce(|one, other| Interval { begin: one.begin.min(other.begin), end: one.end.max(other.end) })
}

/// What is taken over of a bulk; parts that follow one another are one slice of it, as far as they lie together.
struct Left {
    parts: BulkParts,
    /// Bytes that are kept and not taken yet.
    begun: usize,
    bulk: Bulk,
}

impl Left {
    fn keep(&mut self, len: usize) {
        self.begun += len;
    }

    fn skip(&mut self, len: usize) {
        self.settle();
        self.parts.take(len);
    }

    fn settle(&mut self) {
        let len = core::mem::take(&mut self.begun);
        if len > 0 {
            self.bulk = core::mem::take(&mut self.bulk).followed_by(self.parts.take(len));
        }
    }

    fn take_bulk(&mut self) -> Bulk {
        self.settle();
        core::mem::take(&mut self.bulk)
    }
}

/// Bytes that lie in several pieces.
#[derive(Clone)]
struct Bytes<'a> {
    pieces: core::slice::Iter<'a, PageSlice>,
    piece: &'a [u8],
    left: usize,
}

impl<'a> Bytes<'a> {
    fn of(slices: &'a [PageSlice]) -> Self {
        Self { pieces: slices.iter(), piece: &[], left: slices.iter().map(PageSlice::len).sum() }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        let mut done = 0;
        while done < N {
            let part = self.next_part(N - done)?;
            bytes[done..done + part.len()].copy_from_slice(part);
            done += part.len();
        }
        Some(bytes)
    }

    fn skip(&mut self, len: usize) {
        let mut left = len;
        while left > 0
            && let Some(part) = self.next_part(left)
        {
            left -= part.len();
        }
    }

    /// At most so many bytes, as far as they lie together; `None` behind the last.
    fn next_part(&mut self, len: usize) -> Option<&'a [u8]> {
        while self.piece.is_empty() {
            self.piece = self.pieces.next()?.as_bytes();
        }
        let (part, rest) = self.piece.split_at(len.min(self.piece.len()));
        self.piece = rest;
        self.left -= part.len();
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use base::ids::EventId;
    use eformat::{EventFormat, Robs, StatusWord};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Of a source: its identifier, and begin, end and length of its chunks.
    type Source = (u32, Vec<(u64, u64, usize)>);

    /// What is in a recorded fragment of chunks: begin and end of each, and its payload.
    type Found = (u32, Vec<(u64, u64, Vec<u8>)>);

    const SLICE: Interval = Interval { begin: 1000, end: 2000 };
    const EARLY: u32 = 0x0051_0000;
    const LATE: u32 = 0x0051_0001;
    const UNTIMED: u32 = 0x0042_0007;
    const RESULT: u32 = 0x007b_0000;

    /// Two sources with times, of which the clock of the second one is 100 ns behind.
    fn windowing(checksum: &str) -> Windowing {
        let text = format!(
            "[partition]\nname = \"p\"\n[level1]\nsource = \"time\"\nslice = \"1 us\"\n[ros]\ncount = 1\nchecksum = {checksum:?}\n\
             [dfm]\n[sfi]\ncount = 1\n[[source]]\nname = \"a\"\n[[source]]\nname = \"b\"\noffset = \"100 ns\"\n"
        );
        Windowing::new(&Partition::parse("p.toml", &text, &[]).unwrap())
    }

    fn event() -> EventInfo {
        EventInfo { event: EventId(1), ..EventInfo::default() }
    }

    fn chunk(source: u32, &(begin, end, len): &(u64, u64, usize)) -> PageSlice {
        let payload: Vec<u8> = (0..len).map(|at| (at as u64 + begin + u64::from(source)) as u8).collect();
        let head = [begin.to_le_bytes(), end.to_le_bytes(), (len as u64).to_le_bytes()].concat();
        let padding = vec![0; len.next_multiple_of(WORD_BYTES) - len];
        PageSlice::from([head, payload, padding].concat())
    }

    /// An event of these sources, of one without times, and of a result, in the pieces in which it is in a ROS.
    fn built(windowing: &Windowing, sources: &[Source], missing: Vec<u32>) -> BuiltEvent {
        let of = |(source, chunks): &Source| {
            let head =
                TimedHead { rob: *source, event: event(), interval: SLICE, chunks: chunks.len() as u32, status: 4 };
            let chunks = chunks.iter().map(|one| chunk(*source, one)).collect();
            windowing.framing.frame(&head, Bulk::PageList(chunks))
        };
        let ours = |source| rob_fragment(SourceId(source), &event(), 0, &[1, 2, 3]);
        let all = sources.iter().map(of).chain([UNTIMED, RESULT].map(ours));
        let bulk = all.fold(Bulk::empty(), Bulk::followed_by);
        BuiltEvent { event: event(), oldest_unfinished: EventId(0), missing, bulk }
    }

    fn bytes_of(bulk: &Bulk) -> Vec<u8> {
        bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec()).collect()
    }

    /// The fragments with chunks, the identifiers of all fragments, and what the last of them says.
    fn read(bulk: &Bulk) -> (Vec<Found>, Vec<u32>, WindowsResult) {
        let bytes = bytes_of(bulk);
        let robs: Vec<_> = Robs::new(EventFormat::V5, &bytes).map(Result::unwrap).collect();
        let mut timed = Vec::new();
        for rob in &robs {
            assert!(eformat::check_rob(rob.fragment().bytes()).is_ok());
            if let Some((head, chunks)) = ChunkHead::all_in(rob.rod().unwrap().data()) {
                let EventHead { begin, end, status, .. } = head;
                assert_eq!((begin, end, status), (SLICE.begin, SLICE.end, StatusWord(4)));
                let chunks = chunks.into_iter().map(|(head, data)| (head.begin, head.end, data.to_vec()));
                timed.push((rob.source_id().0, chunks.collect()));
            }
        }
        let result = WindowsResult::from_bytes(robs.last().unwrap().rod().unwrap().data()).unwrap();
        (timed, robs.iter().map(|rob| rob.source_id().0).collect(), result)
    }

    fn window(begin: u64, end: u64, sources: &[u32]) -> Window {
        Window { sources: sources.to_vec(), time: Interval::new(begin, end) }
    }

    fn sources() -> Vec<Source> {
        let early = vec![(1000, 1100, 10), (1100, 1200, 0), (1200, 1300, 33)];
        let late = vec![(900, 1000, 5), (1000, 1100, 6), (1700, 1900, 7)];
        vec![(EARLY, early), (LATE, late)]
    }

    #[test]
    fn chunks_that_meet_a_window_stay_and_all_others_are_counted() {
        for checksum in ["none", "adler32"] {
            let windowing = windowing(checksum);
            let built = built(&windowing, &sources(), Vec::new());
            let asked = vec![window(1150, 1200, &[]), window(1250, 1260, &[EARLY])];
            let windowed = windowing.apply(&built, asked.clone()).unwrap();
            let (timed, robs, result) = read(&windowed.bulk);
            assert_eq!(robs, [EARLY, LATE, UNTIMED, RESULT, FILTER_WINDOWS.0], "what has no time is in all windows");
            let of = |(source, chunks): &Source, kept: &[usize]| {
                let payload = |one| chunk(*source, one).as_bytes()[ChunkHead::BYTES..][..one.2].to_vec();
                (*source, kept.iter().map(|&at| (chunks[at].0, chunks[at].1, payload(&chunks[at]))).collect::<Vec<_>>())
            };
            // The second source's chunk from 1000 to 1100 is from 1100 to 1200 on the clock of the others.
            assert_eq!(timed, [of(&sources()[0], &[1, 2]), of(&sources()[1], &[1])]);
            let left_out = vec![
                LeftOut { source: EARLY, kept_chunks: 2, chunks: 1, bytes: 24 + 12 },
                LeftOut { source: LATE, kept_chunks: 1, chunks: 2, bytes: 24 + 8 + 24 + 8 },
            ];
            assert_eq!(result, WindowsResult { asked, left_out });
            assert_eq!((windowed.kept_chunks, windowed.left_chunks, windowed.left_fragments), (3, 3, 0));
            assert_eq!(windowed.left_bytes, 36 + 64);
            let said = rob_fragment(FILTER_WINDOWS, &event(), 0, &result.to_words()).len();
            assert_eq!(windowed.bulk.len(), built.bulk.len() - 100 + said);
        }
    }

    #[test]
    fn a_source_that_no_window_names_is_left_out_and_one_that_nothing_met_is_empty() {
        let windowing = windowing("none");
        let built = built(&windowing, &sources(), vec![0x0051_0009]);
        let windowed =
            windowing.apply(&built, vec![window(1400, 1500, &[EARLY]), Window::of(vec![0x0051_0009])]).unwrap();
        let (timed, robs, result) = read(&windowed.bulk);
        assert_eq!((timed, robs), (vec![(EARLY, Vec::new())], vec![EARLY, RESULT, FILTER_WINDOWS.0]));
        let chunks: Vec<u32> = result.left_out.iter().map(|left_out| left_out.chunks).collect();
        assert_eq!(chunks, [3, 3, 0]);
        assert_eq!((windowed.kept_chunks, windowed.left_chunks, windowed.left_fragments), (0, 6, 2));
    }

    #[test]
    fn windows_of_sources_alone_leave_whole_fragments_and_windows_of_all_leave_the_event() {
        let windowing = windowing("none");
        let built = built(&windowing, &sources(), Vec::new());
        let windowed = windowing.apply(&built, vec![Window::of(vec![LATE, UNTIMED])]).unwrap();
        let (timed, robs, _) = read(&windowed.bulk);
        assert_eq!(robs, [LATE, UNTIMED, RESULT, FILTER_WINDOWS.0]);
        assert_eq!(timed[0].1.len(), 3);
        let all = windowing.apply(&built, vec![window(0, 10_000, &[])]).unwrap();
        assert_eq!(&bytes_of(&all.bulk)[..built.bulk.len()], bytes_of(&built.bulk));
        assert_eq!((all.kept_chunks, all.left_bytes, read(&all.bulk).2.left_out), (6, 0, Vec::new()));
    }

    #[test]
    fn windows_that_are_none_of_the_event_are_refused() {
        let windowing = windowing("none");
        let built = built(&windowing, &sources(), vec![0x0051_0009]);
        let refused = |window| windowing.apply(&built, vec![Window::of(Vec::new()), window]).unwrap_err();
        let (unknown, outside) = (refused(Window::of(vec![EARLY, 3])), refused(window(2000, 2100, &[])));
        assert_eq!(unknown, BadWindows::UnknownSource { place: 1, source_id: 3 });
        assert_eq!(outside, BadWindows::Outside { place: 1, asked: Interval::new(2000, 2100), event: SLICE });
        let words = "window 1 from 2000 to 2100 ns is outside of the event, which reaches from 1000 to 2000 ns";
        assert_eq!(outside.to_string(), words);
        assert_eq!(refused(window(1000, 1001, &[UNTIMED])), BadWindows::NoTimes { place: 1 });
        assert_eq!(refused(window(5, 6, &[0x0051_0009])), BadWindows::NoTimes { place: 1 }, "it has none if it comes");
    }

    #[test]
    fn whether_sources_have_times_does_not_depend_on_what_is_there() {
        let windowing = windowing("none");
        let (both, early) = (vec![EARLY, UNTIMED], vec![EARLY]);
        let none = built(&windowing, &[], vec![EARLY, LATE]);
        let mut broken = built(&windowing, &[(EARLY, vec![(1000, 1100, 10)])], vec![LATE]);
        let mut bytes = bytes_of(&broken.bulk);
        // The number of chunks.
        bytes[ROB_PREFIX_BYTES + 16] = 9;
        broken.bulk = Bulk::Pages(PageSlice::from(bytes));
        for (event, robs) in [(&none, vec![]), (&broken, vec![EARLY])] {
            for (named, untimed) in [(&both, true), (&early, false), (&vec![], true)] {
                let windowed = windowing.apply(event, vec![window(1000, 1001, named)]).unwrap();
                let untimed = [UNTIMED].into_iter().filter(|_| untimed);
                let expected: Vec<u32> =
                    robs.iter().copied().chain(untimed).chain([RESULT, FILTER_WINDOWS.0]).collect();
                let bytes = bytes_of(&windowed.bulk);
                let found = Robs::new(EventFormat::V5, &bytes).map(|rob| rob.unwrap().source_id().0);
                assert_eq!(found.collect::<Vec<_>>(), expected, "{named:x?}");
            }
            assert_eq!(
                windowing.apply(event, vec![window(1000, 1001, &[UNTIMED])]),
                Err(BadWindows::NoTimes { place: 0 })
            );
        }
    }

    #[test]
    fn times_of_a_source_with_a_clock_of_its_own_are_refused_and_all_of_it_is_not() {
        let mut windowing = windowing("none");
        windowing.clocks.insert(LATE, Clock::Own);
        let built = built(&windowing, &sources(), Vec::new());
        for named in [vec![LATE], vec![EARLY, LATE], vec![]] {
            let refused = windowing.apply(&built, vec![window(1000, 1001, &named)]).unwrap_err();
            assert_eq!(refused, BadWindows::OwnClock { place: 0, source_id: LATE });
            assert!(refused.to_string().contains("the source 0x00510001 has a clock of its own"), "{refused}");
        }
        let windowed = windowing.apply(&built, vec![window(1000, 1001, &[EARLY]), Window::of(vec![LATE])]).unwrap();
        let (timed, ..) = read(&windowed.bulk);
        assert_eq!(
            timed.iter().map(|(source, chunks)| (*source, chunks.len())).collect::<Vec<_>>(),
            [(EARLY, 1), (LATE, 3)]
        );
    }

    #[test]
    fn the_clock_of_a_source_is_that_of_the_configuration() {
        let text = "[partition]\nname = \"p\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n\
                    [[source]]\nname = \"l\"\nclock = \"model\"\n[[source]]\nname = \"a\"\nmatch = \"time\"\noffset = \"3 us\"\n\
                    [[source]]\nname = \"b\"\nmatch = \"time\"\nclock = \"model\"\n[[source]]\nname = \"c\"\nmatch = \"count\"\n";
        let clocks = Windowing::new(&Partition::parse("p.toml", text, &[]).unwrap()).clocks;
        assert_eq!(clocks.into_values().collect::<Vec<_>>(), [Clock::Common(3000), Clock::Own]);
    }

    #[test]
    fn chunks_that_stay_lie_where_they_were() {
        let windowing = windowing("none");
        let built = built(&windowing, &sources(), Vec::new());
        let windowed = windowing.apply(&built, vec![window(1250, 1300, &[EARLY])]).unwrap();
        let lies = |slice: &PageSlice| {
            built.bulk.slices().iter().any(|old| old.as_bytes().as_ptr() == slice.as_bytes().as_ptr())
        };
        let kept: Vec<usize> = windowed.bulk.slices().iter().filter(|slice| lies(slice)).map(PageSlice::len).collect();
        assert_eq!(kept, [24 + 36, 68 + 12 + 16], "the chunk, and the result");
    }

    proptest! {
        /// The same is left wherever the pieces of an event end, and it is what a list of its chunks says.
        #[test]
        fn what_is_left_does_not_depend_on_pieces(
            lens in vec((0_u64..900, 1_u64..300, 0_usize..50), 0..6),
            windows in vec((0_u64..1000, 0_u64..300, 0_usize..3), 0..4),
            cuts in vec(1_usize..90, 1..60),
        ) {
            let windowing = windowing("adler32");
            let chunks: Vec<_> = lens.iter().map(|(at, long, len)| (1000 + at, 1000 + at + long, *len)).collect();
            let its = [(EARLY, chunks.clone()), (LATE, chunks)];
            let whole = built(&windowing, &its, Vec::new());
            let names = [vec![], vec![EARLY], vec![LATE]];
            let asked: Vec<_> = windows.iter().map(|&(at, long, which)| window(1000 + at, 1000 + at + long, &names[which])).collect();
            let mut parts = BulkParts::new(whole.bulk.clone());
            let mut cuts = cuts.into_iter().cycle();
            let mut pieces = Vec::new();
            while let part @ 1.. = cuts.next().unwrap() {
                let bulk = parts.take(part);
                if bulk.is_empty() {
                    break;
                }
                pieces.extend(bulk.slices().to_vec());
            }
            let in_pieces = BuiltEvent { bulk: Bulk::PageList(pieces), ..whole.clone() };
            let one = windowing.apply(&whole, asked.clone()).unwrap();
            let other = windowing.apply(&in_pieces, asked.clone()).unwrap();
            prop_assert_eq!(bytes_of(&one.bulk), bytes_of(&other.bulk));
            prop_assert_eq!((one.left_bytes, one.kept_chunks), (other.left_bytes, other.kept_chunks));
            let found = read(&one.bulk).0.into_iter().map(|(id, chunks)| (id, chunks.len()));
            let shift = |source| if source == LATE { 100 } else { 0 };
            let names = |window: &Window, source| window.sources.is_empty() || window.sources.contains(source);
            let expected = its.iter().filter(|(source, _)| asked.iter().any(|window| names(window, source))).map(|(source, chunks)| {
                let meets = |(begin, end, _): &&(u64, u64, usize)| {
                    let time = Interval::new(begin + shift(*source), end + shift(*source));
                    asked.iter().any(|window| names(window, source) && window.time.meets(time))
                };
                (*source, chunks.iter().filter(meets).count())
            });
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
