//! Time in slices of one length: slice n is what lies from n lengths on, up to n + 1.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use base::time::Time;

use crate::Interval;

/// How time is cut, in ns. Slices have a length, of which they may take a part, and may reach into their neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slices {
    /// From the begin of a slice to that of the next; at least 1.
    pub length: u64,
    /// How much of that it takes, from its begin on; at most all.
    pub window: u64,
    /// How far it reaches back.
    pub before: u64,
    /// How far it reaches ahead.
    pub after: u64,
    /// Sources begin at most so many slices apart. One that begins later is late, and slices before are made without it.
    pub apart: u64,
}

/// The first slice that all have begun by. Those that begin at most `apart` slices apart vote together, and most votes decide. If there is
/// no majority, the earliest decides, unless it is more than a day behind: nobody has set its clock. A slice lasts `length` ns.
pub fn common_begin(begins: impl Iterator<Item = u64>, length: u64, apart: u64) -> Option<u64> {
    let mut begins: Vec<u64> = begins.collect();
    begins.sort_unstable();
    let latest = *begins.last()?;
    let day = DAY_NS / length + 1;
    let up_to = |slice: u64| begins.partition_point(|begin| *begin <= slice);
    let within = |from: u64, slice: u64| up_to(slice) - begins.partition_point(|begin| *begin < from);
    let rank = |&first: &u64| {
        let votes = within(first, first.saturating_add(apart));
        let of_this_day = within(first.saturating_sub(day), first.saturating_add(day));
        (votes, of_this_day, latest - first <= day, Reverse(first))
    };
    let first = begins.iter().copied().max_by_key(rank)?;
    Some(begins[up_to(first.saturating_add(apart)) - 1])
}

impl Slices {
    /// The slice of a time.
    pub fn of(&self, time: u64) -> u64 {
        time / self.length
    }

    /// What a slice covers with its reach.
    pub fn interval(&self, slice: u64) -> Interval {
        let begin = slice.saturating_mul(self.length);
        Interval::new(begin, begin.saturating_add(self.window)).widened(self.before, self.after)
    }

    /// All slices below this one are complete, where nothing comes any more that begins before `watermark`.
    pub fn passed(&self, watermark: u64) -> u64 {
        let begin = watermark.checked_sub(self.window.saturating_add(self.after));
        begin.map_or(0, |begin| begin / self.length + 1)
    }

    /// No slice from this one on reaches below.
    pub fn horizon(&self, slice: u64) -> u64 {
        slice.saturating_mul(self.length).saturating_sub(self.before)
    }
}

/// How many slices of a length lie in a time, with the one that it ends in.
pub fn slices_within(length: Duration, time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(length.as_nanos().max(1))).unwrap_or(u64::MAX)
}

/// How far the sources of a read-out system have come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The first slice that all its sources have begun by.
    pub first: u64,
    /// Slices below are complete at all sources that live.
    pub all: u64,
    /// Slices below are complete at one source at least.
    pub any: u64,
    /// Whether nothing follows.
    pub last: bool,
}

const DAY_NS: u64 = 86_400_000_000_000;

/// A read-out system says of so many slices at once, beyond those that it knows to be issued or left out. Level 1 makes no more of
/// a word without looking whether another one has come.
pub const PASSED_AHEAD_MAX: u64 = 1 << 16;

/// Says when the next slice is to be made of what read-out systems have.
///
/// That is when all sources have passed it; or a *grace* after the first one has. Slices that end by grace follow one another no
/// faster than time itself: a source whose clock has jumped ahead makes nobody late for good. The first slice is the
/// first that all have begun by, except those that begin more than a grace away from most. It is known when all sources have passed
/// it, or a grace behind the first that has. If nobody comes to it, it is known a slice and a grace behind its begin.
#[derive(Clone, Debug)]
pub struct Metronome {
    length: Duration,
    grace: Duration,
    /// Sources begin at most so many slices apart.
    apart: u64,
    /// By read-out system.
    told: Vec<Told>,
    next: Option<u64>,
    /// When a source was first known to have passed the slices below: rising in both.
    seen: VecDeque<(u64, Time)>,
    /// When the last slice ended by grace.
    ended: Option<Time>,
    /// Slices below can be made.
    ready: u64,
}

#[derive(Clone, Copy, Debug)]
enum Told {
    /// It will not return.
    Gone,
    /// It is not there, and is not waited for.
    Away,
    /// It may say something.
    Nothing,
    Passed(Passed),
}

impl Metronome {
    /// For slices of this length, of so many read-out systems, which are away.
    pub fn new(length: Duration, grace: Duration, readouts: usize) -> Self {
        let told = alloc::vec![Told::Away; readouts];
        let apart = slices_within(length, grace);
        Self { length, grace, apart, told, next: None, seen: VecDeque::new(), ended: None, ready: 0 }
    }

    /// A read-out system is there, maybe in a new life.
    pub fn come(&mut self, readout: usize) {
        self.told[readout] = Told::Nothing;
    }

    /// A read-out system is away; it may return, if it is not gone for good.
    pub fn leave(&mut self, readout: usize, for_good: bool) {
        self.told[readout] = if for_good { Told::Gone } else { Told::Away };
    }

    /// Takes what a read-out system says.
    pub fn take(&mut self, now: Time, readout: usize, passed: Passed) {
        self.told[readout] = Told::Passed(passed);
        let most = self.next.unwrap_or(passed.first).saturating_add(PASSED_AHEAD_MAX);
        let reach = passed.any.max(passed.all).max(passed.first).min(most);
        if self.seen.back().is_none_or(|(slice, _)| *slice < reach) {
            self.seen.push_back((reach, now));
        }
    }

    /// Looks what can be made now. The next slice, if it can.
    pub fn ready(&mut self, now: Time) -> Option<u64> {
        let next = self.begin(now)?;
        if self.ready <= next {
            let most = next.saturating_add(PASSED_AHEAD_MAX);
            self.ready = self.complete().min(most).max(self.ready);
        }
        if self.ready <= next && self.due(next).is_some_and(|due| due <= now) {
            self.ready = next + 1;
            self.ended = Some(now);
        }
        (next < self.ready).then_some(next)
    }

    /// The slice that is made or left out next; none before it is known which is the first.
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// The next slice is made, or left out.
    pub fn take_next(&mut self) {
        let next = self.next.map_or(0, |next| next + 1);
        self.next = Some(next);
        while self.seen.pop_front_if(|(slice, _)| *slice <= next).is_some() {}
    }

    /// When it has to be looked again, if nobody says anything before.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.next {
            None => self.due_of_first(self.first()?),
            Some(next) => self.due(next),
        }
    }

    /// Until when the next slice, which can be made, may wait for room.
    pub fn waits_until(&self) -> Option<Time> {
        self.due(self.next?).map(|due| due + self.grace)
    }

    /// Whether all that are not gone have said that nothing follows, and all that they have is made.
    pub fn is_over(&self) -> bool {
        // One that has passed nothing but time has no slice.
        let end = self.passed().filter(|passed| passed.any > passed.first).map(|passed| passed.all).max();
        self.nothing_follows() && end.is_none_or(|end| self.next.is_some_and(|next| next >= end))
    }

    /// The next slice, as soon as it is known which is the first.
    fn begin(&mut self, now: Time) -> Option<u64> {
        if self.next.is_none() {
            let is_late = self.next_deadline().is_some_and(|due| due <= now) || self.nothing_follows();
            let complete = self.complete();
            self.next = self.first().filter(|first| is_late || *first < complete);
        }
        self.next
    }

    fn nothing_follows(&self) -> bool {
        self.told.iter().all(|told| matches!(told, Told::Gone | Told::Passed(Passed { last: true, .. })))
    }

    /// The first slice that all have begun by, as soon as one has passed a slice.
    fn first(&self) -> Option<u64> {
        let has_passed = self.passed().any(|passed| passed.any > passed.first);
        let begins = self.passed().filter(|passed| passed.any > 0).map(|passed| passed.first);
        has_passed.then(|| common_begin(begins, self.length.as_nanos() as u64, self.apart))?
    }

    /// Slices below are complete everywhere.
    fn complete(&self) -> u64 {
        let is_silent = self.told.iter().any(|told| matches!(told, Told::Nothing));
        let goes_on = self.passed().filter(|passed| !passed.last).map(|passed| passed.all).min();
        let all = goes_on.or_else(|| self.passed().map(|passed| passed.all).max());
        all.filter(|_| !is_silent).unwrap_or(0)
    }

    /// When the first slice is not waited for any longer. It may be that nobody comes to it: a link that is full of older data waits to
    /// hear which is the first.
    fn due_of_first(&self, first: u64) -> Option<Time> {
        let a_slice_later = || self.seen.back().map(|(_, seen)| *seen + self.length + self.grace);
        self.due(first).or_else(a_slice_later)
    }

    /// When this slice ends by grace.
    fn due(&self, slice: u64) -> Option<Time> {
        let (_, seen) = self.seen.iter().find(|(end, _)| *end > slice)?;
        let due = *seen + self.grace;
        Some(self.ended.map_or(due, |ended| due.max(ended + self.length)))
    }

    fn passed(&self) -> impl Iterator<Item = &Passed> + Clone {
        self.told.iter().filter_map(|told| if let Told::Passed(passed) = told { Some(passed) } else { None })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    const MS: u64 = 1_000_000;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * MS)
    }

    fn metronome(readouts: usize) -> Metronome {
        let mut metronome = Metronome::new(Duration::from_millis(1), Duration::from_millis(10), readouts);
        (0..readouts).for_each(|readout| metronome.come(readout));
        metronome
    }

    fn passed(first: u64, all: u64, any: u64) -> Passed {
        Passed { first, all, any, last: false }
    }

    /// Slices that can be made now, which are taken.
    fn taken(metronome: &mut Metronome, now: Time) -> Vec<u64> {
        core::iter::from_fn(|| metronome.ready(now).inspect(|_| metronome.take_next())).collect()
    }

    #[test]
    fn a_slice_covers_its_time_and_its_reach() {
        let slices = Slices { length: 10, window: 10, before: 2, after: 3, apart: 0 };
        assert_eq!((slices.interval(0), slices.interval(4)), (Interval::new(0, 13), Interval::new(38, 53)));
        assert_eq!([0, 12, 13, 23].map(|time| slices.passed(time)), [0, 0, 1, 2]);
        assert_eq!((slices.of(39), slices.horizon(4), slices.horizon(0)), (3, 38, 0));
        let open = Slices { window: 4, ..slices };
        assert_eq!((open.interval(0), open.interval(4)), (Interval::new(0, 7), Interval::new(38, 47)));
        assert_eq!([6, 7, 16, 17].map(|time| open.passed(time)), [0, 1, 1, 2]);
        let last = slices.interval(u64::MAX);
        assert_eq!(last, Interval { begin: u64::MAX - 2, end: u64::MAX });
    }

    #[test]
    fn sources_that_end_without_a_slice_are_over() {
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, passed(700, 700, 700));
        metronome.take(ms(1), 0, Passed { last: true, ..passed(705, 705, 705) });
        assert!(!metronome.is_over(), "the other may have some");
        metronome.take(ms(2), 1, Passed { last: true, ..passed(0, 0, 0) });
        assert!(metronome.is_over());
        metronome.take(ms(3), 1, Passed { last: true, ..passed(3, 5, 5) });
        assert!(!metronome.is_over());
    }

    #[test]
    fn slices_are_made_when_all_have_passed_them_from_the_first_on() {
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, passed(700, 702, 705));
        assert_eq!(taken(&mut metronome, ms(1)), [], "the other may have older ones");
        metronome.take(ms(1), 1, passed(699, 701, 701));
        assert_eq!(taken(&mut metronome, ms(1)), [700], "the first had not begun before");
        metronome.take(ms(2), 1, passed(701, 800, 800));
        assert_eq!(taken(&mut metronome, ms(2)), [701]);
    }

    #[test]
    fn the_first_slice_is_not_known_before_all_sources_have_come_to_it() {
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, passed(701, 703, 703));
        metronome.take(ms(0), 1, passed(702, 0, 704));
        assert_eq!(taken(&mut metronome, ms(1)), [], "a source has said nothing yet");
        metronome.take(ms(2), 1, passed(702, 699, 704));
        assert_eq!(taken(&mut metronome, ms(2)), [], "it may have something older");
        metronome.take(ms(3), 1, passed(699, 702, 704));
        assert_eq!(taken(&mut metronome, ms(3)), [701]);
    }

    #[test]
    fn the_first_slice_of_the_clock_waits_for_who_has_said_nothing() {
        let mut metronome = metronome(1);
        metronome.take(ms(0), 0, passed(0, 0, 3));
        assert_eq!(taken(&mut metronome, ms(1)), [], "one of its sources has not begun");
        metronome.take(ms(2), 0, passed(2, 2, 3));
        assert_eq!(taken(&mut metronome, ms(2)), []);
        metronome.take(ms(3), 0, passed(2, 3, 4));
        assert_eq!(taken(&mut metronome, ms(3)), [2]);
    }

    #[test]
    fn a_clock_that_nobody_has_set_does_not_say_which_slice_is_the_first() {
        let first = |begins: &[u64], length| common_begin(begins.iter().copied(), length, 6);
        assert_eq!(first(&[1_700_000_000_000, 3], MS), Some(1_700_000_000_000));
        assert_eq!(first(&[3, 900_000_000], 2_000 * MS), Some(900_000_000), "however long a slice is");
        assert_eq!(first(&[7, 20, 1 << 50], MS), Some(7), "nor does one that is far ahead");
        let (day, sooner) = (DAY_NS / MS + 1, 5);
        assert_eq!(
            (first(&[sooner, sooner + day], MS), first(&[sooner, sooner + day + 1], MS)),
            (Some(5), Some(day + 6))
        );
        let mut metronome = metronome(3);
        metronome.take(ms(0), 0, passed(3, 4, 4));
        metronome.take(ms(1), 1, passed(700, 702, 702));
        metronome.take(ms(2), 2, passed(701, 702, 702));
        assert_eq!(taken(&mut metronome, ms(11)), [701], "of which the first one has nothing");
    }

    #[test]
    fn a_first_slice_that_nobody_comes_to_is_known_a_grace_behind_its_time() {
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, passed(7, 0, 9));
        metronome.take(ms(1), 1, passed(10, 0, 10));
        assert_eq!((taken(&mut metronome, ms(11)), metronome.next()), (vec![], None));
        assert_eq!(metronome.next_deadline(), Some(ms(12)));
        assert_eq!((taken(&mut metronome, ms(12)), metronome.next()), (vec![], Some(10)), "which makes room");
    }

    #[test]
    fn who_begins_more_than_a_grace_behind_the_others_is_not_waited_for() {
        let first = |begins: &[u64]| common_begin(begins.iter().copied(), MS, 6);
        assert_eq!((first(&[7, 9, 3]), first(&[7, 10, 3, 99]), first(&[])), (Some(9), Some(7), None));
        assert_eq!(first(&[3, 20, 21]), Some(21), "most decide");
        assert_eq!(slices_within(Duration::from_millis(2), Duration::from_millis(5)), 3);
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, passed(700, 1000, 1000));
        metronome.take(ms(0), 1, passed(711, 1000, 1000));
        assert_eq!(metronome.ready(ms(0)), Some(700));
    }

    #[test]
    fn a_grace_behind_the_first_source_a_slice_is_made_without_the_others() {
        let mut metronome = metronome(2);
        metronome.take(ms(5), 0, passed(0, 2, 2));
        metronome.take(ms(5), 1, passed(0, 0, 0));
        assert_eq!((taken(&mut metronome, ms(14)), metronome.next_deadline()), (vec![], Some(ms(15))));
        assert_eq!(taken(&mut metronome, ms(15)), [0]);
        assert_eq!(metronome.next_deadline(), Some(ms(16)), "no faster than time");
        assert_eq!(taken(&mut metronome, ms(16)), [1]);
        assert_eq!((taken(&mut metronome, ms(99)), metronome.next_deadline()), (vec![], None), "nobody has passed it");
    }

    #[test]
    fn a_clock_that_has_jumped_ahead_does_not_pull_the_others_along() {
        let mut metronome = metronome(1);
        metronome.take(ms(0), 0, passed(0, 1, 1_000_000));
        let made = (0..100).map(|now| taken(&mut metronome, ms(now)).len()).sum::<usize>();
        assert_eq!(made, 1 + 90, "one for each ms behind the grace");
    }

    #[test]
    fn a_word_of_too_many_slices_is_forgotten_with_the_next_one() {
        let mut metronome = metronome(1);
        metronome.take(ms(0), 0, passed(0, u64::MAX, u64::MAX));
        assert_eq!(metronome.ready(ms(0)), Some(0));
        metronome.take(ms(1), 0, passed(0, 1, 1));
        let mut make = || metronome.ready(ms(1)).inspect(|_| metronome.take_next()).is_some();
        let made = (0..PASSED_AHEAD_MAX * 2).filter(|_| make()).count() as u64;
        assert_eq!(made, PASSED_AHEAD_MAX);
        assert_eq!((metronome.next_deadline(), taken(&mut metronome, ms(99))), (None, vec![]));
    }

    #[test]
    fn the_last_slices_of_the_clock_are_made() {
        let mut metronome = metronome(1);
        metronome.take(ms(0), 0, passed(u64::MAX - 2, u64::MAX, u64::MAX));
        assert_eq!(taken(&mut metronome, ms(0)), [u64::MAX - 2, u64::MAX - 1]);
    }

    #[test]
    fn who_is_away_is_not_waited_for() {
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, passed(0, 3, 3));
        metronome.leave(1, false);
        assert_eq!(taken(&mut metronome, ms(0)), [0, 1, 2]);
        metronome.take(ms(0), 0, Passed { last: true, ..passed(3, 3, 3) });
        assert!(!metronome.is_over(), "it may return");
        metronome.leave(1, true);
        assert!(metronome.is_over());
    }

    #[test]
    fn who_has_passed_nothing_asks_for_no_look() {
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, passed(0, 0, 0));
        assert_eq!((taken(&mut metronome, ms(20)), metronome.next_deadline()), (vec![], None));
        metronome.take(ms(30), 0, passed(7, 7, 7));
        assert_eq!((taken(&mut metronome, ms(50)), metronome.next_deadline()), (vec![], None));
        metronome.take(ms(60), 0, passed(7, 8, 8));
        assert_eq!((taken(&mut metronome, ms(60)), taken(&mut metronome, ms(70))), (vec![], vec![7]));
    }

    #[test]
    fn it_is_over_when_all_that_was_told_is_made() {
        let mut metronome = metronome(2);
        metronome.take(ms(0), 0, Passed { last: true, ..passed(0, 2, 2) });
        assert!(!metronome.is_over());
        metronome.take(ms(0), 1, Passed { last: true, ..passed(0, 3, 3) });
        assert!(!metronome.is_over());
        assert_eq!(taken(&mut metronome, ms(0)), [0, 1, 2]);
        assert!(metronome.is_over());
        let mut nothing = super::tests::metronome(1);
        nothing.take(ms(0), 0, Passed { last: true, ..Passed::default() });
        assert!(nothing.is_over(), "nobody had anything");
    }
}
