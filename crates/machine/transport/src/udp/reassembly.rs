//! Messages of which a part has come.

use super::unasked::first_part_len;
use base::bulk::PageSlice;
use base::time::Time;
use core::ops::Range;
use core::time::Duration;

/// The incomplete messages of one peer. What has come stays where the kernel wrote it, until the message is complete.
///
/// Memory grows with what has come, never with what is announced, but for one bit per segment of an admitted message.
pub(super) struct Reassembly {
    bounds: Bounds,
    /// In no order; few.
    messages: Vec<Incomplete>,
    /// Lengths of all messages together.
    bytes: usize,
    /// Emptied ones, for their memory.
    spare: Vec<Incomplete>,
    /// Whether a message is to be asked for before its time, since it was overtaken or all has come that was asked for.
    has_due: bool,
}

/// What one peer may have incomplete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) messages_max: usize,
    pub(super) bytes_max: usize,
    pub(super) timeout: Duration,
    pub(super) segment_len: usize,
    /// Of longer messages only so much is sent unasked.
    pub(super) unasked_len: usize,
    /// Zero: what is missing is never asked for.
    pub(super) ask_after: Duration,
}

/// Consecutive segments of a message, side by side.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) number: u64,
    pub(super) message_len: usize,
    pub(super) offset: usize,
    pub(super) bytes: PageSlice,
}

/// What became of a run.
pub(super) enum Added {
    /// The message is complete.
    Complete(Incomplete),
    /// Something is missing still.
    Kept,
    /// Other segments of the message state another length.
    Contradictory,
}

/// What was given up or of no use while a run was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusals {
    pub(super) duplicates: u64,
    pub(super) evicted: u64,
}

/// A message and what has come of it.
#[derive(Default)]
pub(super) struct Incomplete {
    number: u64,
    /// 0 if nothing of it has come: known by the numbers of later ones.
    len: usize,
    deadline: Time,
    ask_at: Time,
    asks: u32,
    /// How often it was asked for although it was sent.
    late_asks: u32,
    /// Segments that were sent or asked for last and have not come.
    expected: usize,
    /// Segments of later messages that have come since.
    overtaken_by: usize,
    /// One bit per segment.
    seen: Vec<u64>,
    seen_count: usize,
    /// Where in the message, and what; in the order of arrival.
    runs: Vec<(usize, PageSlice)>,
}

impl Reassembly {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, messages: Vec::new(), bytes: 0, spare: Vec::new(), has_due: false }
    }

    /// Adds a run that lies within its message, whose length is within the bound.
    pub(super) fn add(&mut self, run: &Run, now: Time, refusals: &mut Refusals) -> Added {
        let index = match self.messages.iter().rposition(|message| message.number == run.number) {
            Some(index) if self.messages[index].is_begun() => index,
            known => self.admit(run, known, refusals),
        };
        let Bounds { segment_len, timeout, ask_after, .. } = self.bounds;
        let message = &mut self.messages[index];
        if message.len != run.message_len {
            return Added::Contradictory;
        }
        message.deadline = now + timeout;
        message.ask_at = now + ask_after;
        message.overtaken_by = 0;
        let added = message.add(run, segment_len, refusals);
        if message.seen_count == message.len.div_ceil(segment_len) {
            return Added::Complete(self.remove(index));
        }
        if added > 0 && !ask_after.is_zero() {
            message.expected = message.expected.saturating_sub(added);
            message.asks = message.asks.min(1);
            if message.expected == 0 {
                message.ask_at = AT_ONCE;
                self.has_due = true;
            }
        }
        Added::Kept
    }

    /// Messages with these numbers were sent, and nothing of them has come. They may be asked for, the newest if there are many,
    /// from `ask_at` on.
    pub(super) fn miss(&mut self, numbers: Range<u64>, now: Time, ask_at: Time) {
        let Bounds { messages_max, timeout, ask_after, .. } = self.bounds;
        let room = if ask_after.is_zero() { 0 } else { messages_max.saturating_sub(self.messages.len()) };
        for number in numbers.rev().take(room) {
            let mut message = self.spare.pop().unwrap_or_default();
            message.begin(number, 0, 0);
            (message.deadline, message.ask_at) = (now + timeout, ask_at);
            self.messages.push(message);
        }
    }

    /// So many segments of a message have come: what was sent before and has not come by now is hardly just late. It is asked for
    /// at once, the first time.
    pub(super) fn overtake(&mut self, number: u64, segments: usize, now: Time) {
        if self.bounds.ask_after.is_zero() {
            return;
        }
        for message in self.messages.iter_mut().filter(|message| message.number < number && message.asks == 0) {
            message.overtaken_by += segments;
            if message.overtaken_by >= REORDERED_MAX && message.ask_at > now {
                message.ask_at = AT_ONCE;
                self.has_due = true;
            }
        }
    }

    /// Whether something is to be asked for before the time that [`wait`](Self::wait) told, since this was called.
    pub(super) fn take_due(&mut self) -> bool {
        core::mem::take(&mut self.has_due)
    }

    /// Messages whose missing parts are to be [asked](Incomplete::ask) for now; of what may just be late, with so much patience.
    pub(super) fn due(&mut self, now: Time, patience: Duration) -> impl Iterator<Item = &mut Incomplete> {
        let ask_after = self.bounds.ask_after;
        self.messages.iter_mut().filter_map(move |message| {
            let is_due = message.ask_at == AT_ONCE || message.ask_at + patience <= now;
            (is_due && !ask_after.is_zero()).then(|| {
                // What is asked for because it is its turn is not overtaken by what was sent before.
                message.asks = (message.asks + u32::from(message.is_late())).max(1);
                message.ask_at = now + ask_after * (1 + message.asks / ASKS_OF_A_PACE).min(ASKS_SLOWEST);
                message
            })
        })
    }

    /// How many are sent in parts that are asked for.
    pub(super) fn in_parts(&self) -> usize {
        let Bounds { segment_len, unasked_len, .. } = self.bounds;
        self.messages
            .iter()
            .filter(|message| first_part_len(message.len, segment_len, unasked_len) < message.len)
            .count()
    }

    /// Forgets a message, if it is known.
    pub(super) fn forget(&mut self, number: u64) {
        if let Some(index) = self.messages.iter().position(|message| message.number == number) {
            let message = self.remove(index);
            self.recycle(message);
        }
    }

    /// Forgets messages that nobody sends any more.
    pub(super) fn forget_below(&mut self, end: u64) {
        while let Some(index) = self.messages.iter().position(|message| message.number < end) {
            let message = self.remove(index);
            self.recycle(message);
        }
    }

    /// Gives up what is overdue; returns how many messages of which a part had come.
    pub(super) fn expire(&mut self, now: Time) -> u64 {
        let mut count = 0;
        while let Some(index) = self.messages.iter().position(|message| message.deadline <= now) {
            let message = self.remove(index);
            count += u64::from(message.is_begun());
            self.recycle(message);
        }
        count
    }

    /// Gives up everything; returns how many messages of which a part had come.
    pub(super) fn clear(&mut self) -> u64 {
        let count = self.messages.iter().filter(|message| message.is_begun()).count() as u64;
        self.messages.clear();
        self.bytes = 0;
        count
    }

    /// When the first message is overdue, or is to be asked for.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let asks = !self.bounds.ask_after.is_zero();
        let due = |message: &Incomplete| if asks { message.deadline.min(message.ask_at) } else { message.deadline };
        self.messages.iter().map(due).min()
    }

    /// The first message that has not come completely, of those that are known to be sent and may come yet.
    pub(super) fn first_missing(&self) -> Option<u64> {
        self.messages.iter().map(|message| message.number).min()
    }

    /// How long to wait for the rest of a message.
    pub(super) fn ask_after(&self) -> Duration {
        self.bounds.ask_after
    }

    /// How long to wait before something is due for what came last; `None` if nothing is incomplete.
    pub(super) fn wait(&self) -> Option<Duration> {
        let Bounds { timeout, ask_after, .. } = self.bounds;
        let wait = if ask_after.is_zero() { timeout } else { timeout.min(ask_after) };
        (!self.messages.is_empty()).then_some(wait)
    }

    /// Payload of a full datagram in bytes.
    pub(super) fn segment_len(&self) -> usize {
        self.bounds.segment_len
    }

    /// The messages of which a part has come, in no order.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Incomplete> {
        self.messages.iter().filter(|message| message.is_begun())
    }

    /// Takes back an emptied message, for its memory.
    pub(super) fn recycle(&mut self, mut message: Incomplete) {
        message.runs.clear();
        if self.spare.len() < SPARE_MAX {
            self.spare.push(message);
        }
    }

    /// Makes room for a message that was not `known`, or known to be missing only.
    fn admit(&mut self, run: &Run, known: Option<usize>, refusals: &mut Refusals) -> usize {
        let Bounds { messages_max, bytes_max, segment_len, unasked_len, .. } = self.bounds;
        let asks = known.map_or((0, 0), |index| {
            let missing = self.remove(index);
            let asks = (missing.asks, missing.late_asks);
            self.recycle(missing);
            asks
        });
        while self.messages.len() >= messages_max || self.bytes + run.message_len > bytes_max {
            let oldest = (0..self.messages.len()).min_by_key(|index| self.messages[*index].deadline);
            let message = self.remove(oldest.expect("an empty table has room for the longest message"));
            refusals.evicted += u64::from(message.is_begun());
            self.recycle(message);
        }
        let mut message = self.spare.pop().unwrap_or_default();
        message.begin(run.number, run.message_len, run.message_len.div_ceil(segment_len));
        (message.asks, message.late_asks) = asks;
        message.expected = first_part_len(run.message_len, segment_len, unasked_len).div_ceil(segment_len);
        self.bytes += message.len;
        self.messages.push(message);
        self.messages.len() - 1
    }

    fn remove(&mut self, index: usize) -> Incomplete {
        let message = self.messages.swap_remove(index);
        self.bytes -= message.len;
        message
    }
}

impl Incomplete {
    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether a part of it has come.
    fn is_begun(&self) -> bool {
        self.len > 0
    }

    fn begin(&mut self, number: u64, len: usize, segments: usize) {
        (self.number, self.len, self.asks, self.expected) = (number, len, 0, 0);
        (self.seen_count, self.overtaken_by, self.late_asks) = (0, 0, 0);
        self.seen.clear();
        self.seen.resize(segments.div_ceil(64), 0);
    }

    /// What has come of its beginning in one piece.
    pub(super) fn beginning(&self) -> &[u8] {
        self.runs.iter().find(|(offset, _)| *offset == 0).map_or(&[], |(_, bytes)| bytes.as_bytes())
    }

    /// The bytes that are missing, in order.
    pub(super) fn missing(&self, segment_len: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let (len, count) = (self.len, self.len.div_ceil(segment_len));
        let mut next = 0;
        core::iter::from_fn(move || {
            let first = self.first_missing(next..count)?;
            let end = (first..count).find(|segment| self.has(*segment)).unwrap_or(count);
            next = end;
            Some(first * segment_len..len.min(end * segment_len))
        })
    }

    /// Whether something is missing that was sent or asked for; else there is more to be asked for.
    pub(super) fn is_late(&self) -> bool {
        !self.is_begun() || self.expected > 0
    }

    /// It is asked for although it was sent: how often now.
    pub(super) fn count_late_ask(&mut self) -> u32 {
        self.late_asks += 1;
        self.late_asks
    }

    /// The bytes to ask for, in order, bounded: the beginning, as 0..0, if nothing has come. They are expected from now on.
    pub(super) fn ask(&mut self, segment_len: usize, segments_max: usize, ranges_max: usize) -> Vec<Range<usize>> {
        if !self.is_begun() {
            return core::iter::once(0..0).collect();
        }
        let (mut ranges, mut room) = (Vec::new(), segments_max);
        for range in self.missing(segment_len).take(ranges_max) {
            let segments = range.len().div_ceil(segment_len).min(room);
            ranges.push(range.start..range.end.min(range.start + segments * segment_len));
            room -= segments;
            if room == 0 {
                break;
            }
        }
        self.expected = segments_max - room;
        ranges
    }

    /// Copies the complete message to its place, of its length.
    pub(super) fn copy_to(&self, place: &mut [u8]) {
        for (offset, bytes) in &self.runs {
            place[*offset..offset + bytes.len()].copy_from_slice(bytes.as_bytes());
        }
    }

    /// Keeps the segments of the run that are new; returns how many.
    fn add(&mut self, run: &Run, segment_len: usize, refusals: &mut Refusals) -> usize {
        let before = self.seen_count;
        let first = run.offset / segment_len;
        let end = first + run.bytes.len().div_ceil(segment_len);
        let mut start = first;
        while start < end {
            if self.has(start) {
                refusals.duplicates += 1;
                start += 1;
                continue;
            }
            let stop = (start..end).find(|segment| self.has(*segment)).unwrap_or(end);
            (start..stop).for_each(|segment| self.seen[segment / 64] |= 1 << (segment % 64));
            self.seen_count += stop - start;
            let inside = (start - first) * segment_len..run.bytes.len().min((stop - first) * segment_len);
            let whole = inside.len() == run.bytes.len();
            let bytes = if whole { run.bytes.clone() } else { run.bytes.slice(inside) };
            self.runs.push((start * segment_len, bytes));
            start = stop;
        }
        self.seen_count - before
    }

    fn first_missing(&self, mut among: Range<usize>) -> Option<usize> {
        while !among.is_empty() {
            let from_here = self.seen[among.start / 64] >> (among.start % 64);
            let seen = (from_here.trailing_ones() as usize).min(64 - among.start % 64);
            if seen == 0 || seen < 64 - among.start % 64 {
                return Some(among.start + seen).filter(|segment| *segment < among.end);
            }
            among.start += seen;
        }
        None
    }

    fn has(&self, segment: usize) -> bool {
        self.seen[segment / 64] & 1 << (segment % 64) != 0
    }
}

/// After so many asks the next follow more slowly: the peer may be busy, not the network bad.
const ASKS_OF_A_PACE: u32 = 4;

/// When what is known to be missing, or not to be sent unasked, is asked for.
pub(super) const AT_ONCE: Time = Time::from_ns(0);

/// Asks follow each other within so many times `ask_after`.
const ASKS_SLOWEST: u32 = 16;

/// Segments of later messages that may overtake one on their way: many more than networks let overtake.
const REORDERED_MAX: usize = 16;

/// As many messages at a time are usual between two peers.
const SPARE_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::{Added, Bounds, Reassembly, Refusals, Run};
    use base::bulk::PageSlice;
    use base::time::Time;
    use proptest::prelude::*;
    use std::time::Duration;

    const SEGMENT_LEN: usize = 10;

    fn reassembly(messages_max: usize, bytes_max: usize) -> Reassembly {
        let timeout = Duration::from_nanos(100);
        let ask_after = Duration::ZERO;
        Reassembly::new(Bounds {
            messages_max,
            bytes_max,
            timeout,
            segment_len: SEGMENT_LEN,
            unasked_len: 1 << 20,
            ask_after,
        })
    }

    fn content(len: usize) -> Vec<u8> {
        (0..len).map(|index| (index * 7) as u8).collect()
    }

    /// The segments `first..end` of a message.
    fn run(number: u64, message_len: usize, first: usize, end: usize) -> Run {
        let (offset, stop) = (first * SEGMENT_LEN, message_len.min(end * SEGMENT_LEN));
        let bytes = PageSlice::from(content(message_len)[offset..stop].to_vec());
        Run { number, message_len, offset, bytes }
    }

    fn add(reassembly: &mut Reassembly, run: &Run, now_ns: u64) -> (Added, Refusals) {
        let mut refusals = Refusals::default();
        (reassembly.add(run, Time::from_ns(now_ns), &mut refusals), refusals)
    }

    fn missing(reassembly: &Reassembly) -> Vec<core::ops::Range<usize>> {
        reassembly.messages().next().unwrap().missing(SEGMENT_LEN).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]
        #[test]
        fn any_order_with_any_repetition_makes_the_message(
            len in 1_usize..700,
            runs in prop::collection::vec((0_usize..70, 1_usize..9), 0..40),
            order in any::<prop::sample::Index>(),
        ) {
            let count = len.div_ceil(SEGMENT_LEN);
            let some = runs.iter().map(|(first, runs)| (first % count, count.min(first % count + runs)));
            let turn = order.index(count);
            let all = (0..count).map(|segment| ((segment + turn) % count, (segment + turn) % count + 1));
            let (mut table, mut seen, mut complete) = (reassembly(2, 1000), vec![false; count], None);
            for (first, end) in some.chain(all) {
                let (added, refusals) = add(&mut table, &run(3, len, first, end), 0);
                let known = seen[first..end].iter().filter(|seen| **seen).count();
                prop_assert_eq!(refusals.duplicates, known as u64);
                seen[first..end].fill(true);
                if let Added::Complete(message) = added {
                    complete = Some(message);
                    break;
                }
                let missing: Vec<_> = missing(&table).into_iter().flatten().collect();
                let expected: Vec<_> = (0..len).filter(|byte| !seen[byte / SEGMENT_LEN]).collect();
                prop_assert_eq!(missing, expected);
            }
            let mut place = vec![0; len];
            complete.expect("all segments came").copy_to(&mut place);
            prop_assert_eq!(place, content(len));
            prop_assert_eq!((table.bytes, table.next_deadline()), (0, None));
        }
    }

    #[test]
    fn the_message_that_waits_longest_makes_room() {
        let mut table = reassembly(2, 100);
        for (number, now_ns) in [(1, 0), (2, 1)] {
            assert!(matches!(add(&mut table, &run(number, 30, 0, 1), now_ns).0, Added::Kept));
        }
        add(&mut table, &run(1, 30, 1, 2), 2);
        assert_eq!(add(&mut table, &run(3, 30, 0, 1), 3).1.evicted, 1);
        assert!(matches!(add(&mut table, &run(1, 30, 2, 3), 4).0, Added::Complete(_)));
        assert_eq!(add(&mut table, &run(4, 90, 0, 1), 5).1.evicted, 1);
        assert_eq!((table.bytes, table.messages().count()), (90, 1));
    }

    #[test]
    fn what_does_not_go_on_is_given_up() {
        let mut table = reassembly(4, 1000);
        add(&mut table, &run(1, 30, 0, 1), 0);
        add(&mut table, &run(2, 30, 0, 1), 50);
        assert_eq!(table.next_deadline(), Some(Time::from_ns(100)));
        assert_eq!((table.expire(Time::from_ns(99)), table.expire(Time::from_ns(100))), (0, 1));
        assert_eq!((table.next_deadline(), table.bytes), (Some(Time::from_ns(150)), 30));
        table.forget(2);
        assert_eq!((table.next_deadline(), table.bytes, table.clear()), (None, 0, 0));
    }

    #[test]
    fn segments_that_disagree_on_the_length_are_refused() {
        let mut table = reassembly(4, 1000);
        add(&mut table, &run(1, 30, 0, 1), 0);
        assert!(matches!(add(&mut table, &run(1, 40, 1, 2), 0).0, Added::Contradictory));
        assert_eq!(missing(&table).into_iter().flatten().collect::<Vec<_>>(), (10..30).collect::<Vec<_>>());
        assert_eq!(table.messages().next().unwrap().beginning(), &content(10)[..]);
    }
}
