//! The store of chunks against one that is too simple to be wrong.

use base::ids::EventId;
use proptest::prelude::*;
use timing::Interval;
use timing::chunks::{Arrival, Chunks, Freed};

/// Keeps all in one list, and looks at all of it each time.
#[derive(Default)]
struct Naive {
    exclusive: bool,
    chunks: Vec<Known>,
    events: Vec<(u64, Vec<u32>)>,
    horizon: u64,
}

#[derive(Clone)]
struct Known {
    interval: Interval,
    name: u32,
    was_used: bool,
}

impl Naive {
    fn insert(&mut self, interval: Interval, name: u32) -> Arrival {
        if interval.end <= self.horizon {
            return Arrival::Late;
        }
        let at = self.chunks.iter().position(|known| known.interval.begin > interval.begin);
        self.chunks.insert(at.unwrap_or(self.chunks.len()), Known { interval, name, was_used: false });
        if interval.begin < self.horizon { Arrival::PartlyLate } else { Arrival::InTime }
    }

    fn make(&mut self, event: u64, interval: Interval, most: usize) -> (Vec<u32>, bool) {
        let exclusive = self.exclusive;
        let belongs = |known: &&mut Known| {
            let Interval { begin, end } = known.interval;
            let lies_in = interval.begin <= begin && end <= interval.end && begin < end;
            if exclusive { lies_in } else { begin < interval.end && interval.begin < end }
        };
        let all: Vec<&mut Known> = self.chunks.iter_mut().filter(belongs).collect();
        let is_cut = all.len() > most;
        let names: Vec<u32> = all
            .into_iter()
            .take(most)
            .map(|known| {
                known.was_used = true;
                known.name
            })
            .collect();
        self.events.push((event, names.clone()));
        (names, is_cut)
    }

    fn free(&mut self) -> Freed {
        let (mut freed, horizon, events) = (Freed::default(), self.horizon, &self.events);
        self.chunks.retain(|known| {
            let stays = known.interval.end > horizon || events.iter().any(|(_, names)| names.contains(&known.name));
            if !stays {
                *if known.was_used { &mut freed.used } else { &mut freed.unused } += 1;
            }
            stays
        });
        freed
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// A chunk, this much behind the newest, or ahead of it, and this long.
    Insert {
        back: u64,
        ahead: u64,
        len: u64,
    },
    /// An event so far behind the one before, so long, of at most so many chunks.
    Make {
        gap: u64,
        len: u64,
        most: usize,
    },
    /// Clears the event in this place.
    Clear(usize),
    ClearBelow(usize),
    /// The horizon: this much before the begin of the newest event.
    Advance(u64),
}

fn step() -> impl Strategy<Value = Step> {
    // Zero-length and huge ones among them.
    let len = || prop_oneof![4 => 0..30_u64, 1 => Just(0), 1 => 100..2000_u64, 1 => Just(u64::MAX)];
    prop_oneof![
        6 => (prop_oneof![3 => Just(0), 1 => 0..200_u64], 0..30_u64, len())
            .prop_map(|(back, ahead, len)| Step::Insert { back, ahead, len }),
        3 => (0..40_u64, 1..60_u64, prop_oneof![2 => Just(usize::MAX), 1 => 0..4_usize])
            .prop_map(|(gap, len, most)| Step::Make { gap, len, most }),
        2 => (0..9_usize).prop_map(Step::Clear),
        1 => (0..9_usize).prop_map(Step::ClearBelow),
        2 => (0..20_u64).prop_map(Step::Advance),
    ]
}

/// Does the same with both, from this time of the clock on.
fn compare(origin: u64, exclusive: bool, steps: &[Step]) {
    let (mut chunks, mut naive) = (Chunks::new(exclusive), Naive { exclusive, ..Naive::default() });
    let (mut newest, mut event_begin, mut watermark) = (origin, origin, None);
    let mut first = None;
    let (mut names, mut numbers) = (0, 0);
    let mut accounts = [0_u64; 4];
    for step in steps {
        match *step {
            Step::Insert { back, ahead, len } => {
                newest = newest.saturating_add(ahead);
                let begin = newest.saturating_sub(back);
                let interval = Interval::new(begin, begin.saturating_add(len));
                names += 1;
                watermark = watermark.max(Some(begin));
                first = Some(first.map_or(begin, |first: u64| first.min(begin)));
                let arrival = chunks.insert(interval, names);
                assert_eq!(arrival, naive.insert(interval, names));
                accounts[0] += 1;
                accounts[1] += u64::from(arrival == Arrival::Late);
            }
            Step::Make { gap, len, most } => {
                event_begin = event_begin.saturating_add(gap).max(naive.horizon);
                numbers += 1 + gap;
                let interval = Interval::new(event_begin, event_begin.saturating_add(len));
                let mut made = Vec::new();
                let is_cut = chunks.make(EventId(numbers), interval, most, |_, name| made.push(*name));
                assert_eq!((made, is_cut), naive.make(numbers, interval, most));
            }
            Step::Clear(place) => {
                let event = if place < naive.events.len() { naive.events.remove(place).0 } else { numbers + 1 };
                let freed = naive.free();
                assert_eq!(chunks.clear(EventId(event)), freed);
                accounts[2] += freed.used;
            }
            Step::ClearBelow(place) => {
                let oldest = naive.events.get(place).map_or(0, |event| event.0);
                naive.events.retain(|event| event.0 >= oldest);
                let freed = naive.free();
                assert_eq!(chunks.clear_below(EventId(oldest)), freed);
                accounts[2] += freed.used;
            }
            Step::Advance(before) => {
                let horizon = event_begin.saturating_sub(before).max(naive.horizon);
                naive.horizon = horizon;
                let freed = naive.free();
                assert_eq!(chunks.advance(horizon), freed);
                accounts[2] += freed.used;
                accounts[3] += freed.unused;
            }
        }
        chunks.check();
        assert_eq!(chunks.len(), naive.chunks.len());
        assert_eq!(chunks.watermark(), watermark);
        assert_eq!(chunks.began(), first);
        let everything: Vec<u32> = chunks.meeting(Interval::new(0, u64::MAX)).map(|(_, name)| *name).collect();
        let known = naive.chunks.iter().filter(|known| known.interval.begin < u64::MAX);
        assert_eq!(everything, known.map(|known| known.name).collect::<Vec<_>>());
        let [came, late, used, unused] = accounts;
        assert_eq!(came, late + used + unused + chunks.len() as u64, "every chunk accounted for");
    }
}

#[test]
fn what_a_source_has_of_the_time_that_it_was_gone_is_not_known() {
    let mut chunks: Chunks<()> = Chunks::new(false);
    let lacks = |chunks: &Chunks<()>, all: &[[u64; 2]]| -> Vec<bool> {
        all.iter().map(|[begin, end]| chunks.may_lack(Interval::new(*begin, *end))).collect()
    };
    chunks.lose();
    chunks.pass(30);
    assert_eq!(chunks.began(), Some(30));
    assert_eq!(lacks(&chunks, &[[10, 20], [25, 35], [35, 40]]), [true, false, false], "it begins in the second");
    chunks.insert(Interval::new(40, 50), ());
    chunks.lose();
    assert_eq!(chunks.began(), Some(30), "it has begun, though it is gone");
    chunks.pass(60);
    chunks.insert(Interval::new(20, 25), ());
    assert_eq!(lacks(&chunks, &[[15, 20], [35, 40], [45, 50], [55, 60], [60, 70]]), [true, false, true, true, false]);
    chunks.lose();
    chunks.pass(90);
    assert_eq!(lacks(&chunks, &[[45, 50], [60, 70], [90, 95]]), [true, true, false], "twice, before an event is made");
    chunks.advance(90);
    chunks.lose();
    chunks.pass(20);
    assert_eq!(lacks(&chunks, &[[90, 95], [90, 200]]), [false, false], "it sends again what it had sent");
}

#[derive(Clone, Debug)]
enum Word {
    Pass(u64),
    Lose,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn chunks_are_in_the_events_that_they_meet_or_lie_in(
        origin in prop_oneof![3 => Just(0), 2 => Just(1_790_000_000_000_000_000), 1 => u64::MAX - 500..=u64::MAX],
        exclusive: bool,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        compare(origin, exclusive, &steps);
    }
}

/// The oldest event held the place of every later chunk.
#[test]
fn an_event_that_is_never_cleared_does_not_make_the_list_grow() {
    let mut chunks = Chunks::default();
    chunks.insert(Interval::new(0, 10), ());
    chunks.make(EventId(0), Interval::new(0, 10), 9, |_, ()| {});
    for number in 1..10_000_u64 {
        let interval = Interval::new(number * 10, number * 10 + 10);
        chunks.insert(interval, ());
        chunks.make(EventId(number), interval, 9, |_, ()| {});
        chunks.advance(interval.end);
        assert_eq!(chunks.clear(EventId(number)), Freed { used: 1, unused: 0 });
    }
    assert_eq!(chunks.len(), 1);
    chunks.check();
    assert_eq!(chunks.clear(EventId(0)), Freed { used: 1, unused: 0 });
}

proptest! {
    /// Against a list of all times that the source was gone.
    #[test]
    fn nothing_that_may_be_lost_counts_as_known(
        words in prop::collection::vec(prop_oneof![3 => (0..300_u64).prop_map(Word::Pass), 1 => Just(Word::Lose)], 1..30),
        begin in 0..300_u64,
        len in 1..50_u64,
    ) {
        let mut chunks: Chunks<()> = Chunks::new(false);
        let (mut watermark, mut began, mut gone) = (None, None, Vec::<(u64, Option<u64>)>::new());
        for word in words {
            match word {
                Word::Pass(time) => {
                    chunks.pass(time);
                    watermark = watermark.max(Some(time));
                    began = Some(began.map_or(time, |began: u64| began.min(time)));
                    gone.last_mut().filter(|(_, back)| back.is_none()).into_iter().for_each(|(_, back)| *back = Some(time));
                }
                Word::Lose => {
                    chunks.lose();
                    if gone.last().is_none_or(|(_, back)| back.is_some()) {
                        gone.extend(watermark.map(|from| (from, None)));
                    }
                }
            }
        }
        let interval = Interval::new(begin, begin + len);
        let meets = |(from, back): &(u64, Option<u64>)| {
            let gap = Interval { begin: *from, end: back.unwrap_or(u64::MAX) };
            !gap.is_none() && gap.meets(interval)
        };
        let is_known = !gone.iter().any(meets) && began.is_none_or(|began| began < interval.end);
        prop_assert!(is_known || chunks.may_lack(interval) || began.is_none());
        if gone.len() < 2 {
            prop_assert_eq!(chunks.may_lack(interval), !is_known && began.is_some());
        }
    }
}
