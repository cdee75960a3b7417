//! The region-of-interest builder: joins what several level-1 processors say of an event into one trigger.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::ids::{EventId, Lvl1Id};
use crate::level1::trigger::Trigger;
use crate::message::Roi;
use crate::time::Time;

/// How records are joined.
#[derive(Clone, Debug)]
pub struct RoibParameters {
    /// How many sources send a record of every event: 1–64.
    pub sources: usize,
    /// Most events that wait for a record, or for an earlier event.
    pub incomplete: usize,
    /// How long an event waits for its last record.
    pub timeout: Duration,
    /// About where the level-1 ids begin.
    pub first: EventId,
}

/// What one source says of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRecord {
    /// The event.
    pub lvl1_id: Lvl1Id,
    /// Bunch crossing, if the source knows it.
    pub bcid: Option<u16>,
    /// Level-1 trigger type, if the source knows it.
    pub trigger_type: Option<u8>,
    /// Level-1 items that fired: the event's are those of any source.
    pub items: u32,
    /// Its regions of interest.
    pub rois: Vec<Roi>,
}

/// An event with the records of all sources that sent one.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// The event.
    pub event: EventId,
    /// Its regions of interest are in the order of the sources; bunch crossing and type are those of the first source that
    /// gives them.
    pub trigger: Trigger,
    /// Sources that sent nothing, one bit each.
    pub missing: u64,
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub enum Taken {
    /// It is kept.
    Joined,
    /// Dropped and counted: this source has spoken of the event already.
    Duplicate,
    /// Dropped and counted: this event, or a later one, has gone out.
    Late,
    /// Dropped and counted: its id is more than 2³⁰ away from the newest.
    Unplaced,
    /// No room for another event: here it is again, to be offered once [`Roib::next`] has given one. The source is not
    /// to be read until then.
    Full(SourceRecord),
}

/// What the joiner counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoibCounters {
    /// Events with the records of all sources.
    pub complete: u64,
    /// Events that went out incomplete, after their time-out or at the end.
    pub incomplete: u64,
    /// Records that these lacked, by source.
    pub missing: Vec<u64>,
    /// Records dropped: the source had sent one.
    pub duplicates: u64,
    /// Records dropped: the event had gone out.
    pub late: u64,
    /// Records dropped: of no event near the others.
    pub unplaced: u64,
    /// Records whose bunch crossing is not that of an earlier record of the event.
    pub bcid_mismatches: u64,
}

/// Joins records by level-1 id. Events go out in the order of their ids, each once.
pub struct Roib {
    parameters: RoibParameters,
    waiting: BTreeMap<EventId, Waiting>,
    newest: EventId,
    /// Everything below has gone out, or never came.
    next: EventId,
    ended: bool,
    counters: RoibCounters,
}

struct Waiting {
    since: Time,
    /// Sources that have sent their record.
    seen: u64,
    /// By source, in the order of arrival.
    records: Vec<(usize, SourceRecord)>,
}

impl Roib {
    /// A joiner without records.
    ///
    /// # Panics
    /// If there is no source, there are more than 64, or nothing may wait.
    pub fn new(parameters: RoibParameters) -> Self {
        assert!((1..=64).contains(&parameters.sources) && parameters.incomplete > 0, "sources, and room for an event");
        let counters = RoibCounters { missing: alloc::vec![0; parameters.sources], ..RoibCounters::default() };
        let newest = parameters.first;
        Self { parameters, waiting: BTreeMap::new(), newest, next: EventId(0), ended: false, counters }
    }

    /// Takes a record of a source.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn take(&mut self, now: Time, source: usize, record: SourceRecord) -> Taken {
        assert!(source < self.parameters.sources, "a source of this joiner");
        let Some(event) = EventId::unwrap_near(self.newest, record.lvl1_id) else {
            self.counters.unplaced += 1;
            return Taken::Unplaced;
        };
        if event < self.next {
            self.counters.late += 1;
            return Taken::Late;
        }
        if self.waiting.len() >= self.parameters.incomplete && !self.waiting.contains_key(&event) {
            return Taken::Full(record);
        }
        self.newest = self.newest.max(event);
        let new = || Waiting { since: now, seen: 0, records: Vec::with_capacity(self.parameters.sources) };
        let waiting = self.waiting.entry(event).or_insert_with(new);
        if waiting.seen >> source & 1 == 1 {
            self.counters.duplicates += 1;
            return Taken::Duplicate;
        }
        let first = waiting.records.iter().find_map(|(_, record)| record.bcid);
        let agrees = record.bcid.is_none_or(|bcid| first.is_none_or(|first| first == bcid));
        self.counters.bcid_mismatches += u64::from(!agrees);
        waiting.seen |= 1 << source;
        waiting.records.push((source, record));
        Taken::Joined
    }

    /// The oldest event, if it is complete, has waited long enough, or nothing follows.
    pub fn next(&mut self, now: Time) -> Option<Joined> {
        let waiting = self.waiting.first_entry()?;
        let missing = all(self.parameters.sources) & !waiting.get().seen;
        if missing != 0 && !self.ended && now < waiting.get().since + self.parameters.timeout {
            return None;
        }
        let (event, waiting) = waiting.remove_entry();
        self.next = event.next();
        self.count(missing);
        Some(Joined { event, trigger: waiting.join(), missing })
    }

    /// When [`Roib::next`] has something to give although no record came.
    pub fn next_deadline(&self) -> Option<Time> {
        self.waiting.first_key_value().map(|(_, waiting)| waiting.since + self.parameters.timeout)
    }

    /// Says that no source will send anything more: what waits goes out as it is.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// What was counted.
    pub fn counters(&self) -> &RoibCounters {
        &self.counters
    }

    fn count(&mut self, missing: u64) {
        self.counters.complete += u64::from(missing == 0);
        self.counters.incomplete += u64::from(missing != 0);
        for (source, count) in self.counters.missing.iter_mut().enumerate() {
            *count += missing >> source & 1;
        }
    }
}

impl Waiting {
    fn join(mut self) -> Trigger {
        self.records.sort_unstable_by_key(|(source, _)| *source);
        let records = || self.records.iter().map(|(_, record)| record);
        Trigger {
            bcid: records().find_map(|record| record.bcid).unwrap_or_default(),
            trigger_type: records().find_map(|record| record.trigger_type).unwrap_or_default(),
            items: records().fold(0, |items, record| items | record.items),
            rois: records().flat_map(|record| &record.rois).copied().collect(),
        }
    }
}

const fn all(sources: usize) -> u64 {
    u64::MAX >> (u64::BITS as usize - sources)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::random::Random;

    fn roib(sources: usize, incomplete: usize, first: u64) -> Roib {
        Roib::new(RoibParameters { sources, incomplete, timeout: Duration::from_nanos(100), first: EventId(first) })
    }

    fn record(id: u32, kind: u8) -> SourceRecord {
        let rois = vec![Roi { kind, ..Roi::default() }];
        SourceRecord { lvl1_id: Lvl1Id(id), bcid: Some(9), trigger_type: None, items: 1 << kind, rois }
    }

    #[test]
    fn records_of_all_sources_make_one_trigger() {
        let mut roib = roib(2, 4, 0);
        assert_eq!(roib.take(Time::ZERO, 1, record(0, 2)), Taken::Joined);
        assert_eq!(roib.next(Time::ZERO), None);
        let typed = SourceRecord { trigger_type: Some(0x84), ..record(0, 1) };
        assert_eq!(roib.take(Time::ZERO, 0, typed), Taken::Joined);
        let joined = roib.next(Time::ZERO).expect("a complete event");
        let kinds: Vec<u8> = joined.trigger.rois.iter().map(|roi| roi.kind).collect();
        assert_eq!((joined.event, joined.missing, kinds), (EventId(0), 0, vec![1, 2]));
        assert_eq!((joined.trigger.bcid, joined.trigger.trigger_type, joined.trigger.items), (9, 0x84, 6));
    }

    #[test]
    fn a_silent_source_is_counted_after_the_time_out() {
        let mut roib = roib(3, 4, 0);
        assert_eq!(roib.take(Time::ZERO, 1, record(0, 0)), Taken::Joined);
        let due = roib.next_deadline().expect("a time-out");
        assert_eq!(due, Time::from_ns(100));
        assert_eq!(roib.next(due).expect("an incomplete event").missing, 0b101);
        assert_eq!(roib.take(due, 0, record(0, 0)), Taken::Late);
        let RoibCounters { incomplete, missing, late, .. } = roib.counters().clone();
        assert_eq!((incomplete, missing, late), (1, vec![1, 0, 1], 1));
    }

    #[test]
    fn duplicates_wild_ids_and_other_crossings_are_counted() {
        let mut roib = roib(2, 4, 10);
        assert_eq!(roib.take(Time::ZERO, 0, record(10, 0)), Taken::Joined);
        assert_eq!(roib.take(Time::ZERO, 0, record(10, 0)), Taken::Duplicate);
        assert_eq!(roib.take(Time::ZERO, 0, record(0x8000_0000, 0)), Taken::Unplaced);
        assert_eq!(roib.take(Time::ZERO, 1, SourceRecord { bcid: Some(8), ..record(10, 0) }), Taken::Joined);
        let counters = roib.counters();
        assert_eq!((counters.duplicates, counters.unplaced, counters.bcid_mismatches), (1, 1, 1));
    }

    #[test]
    fn a_source_that_runs_ahead_has_to_wait() {
        let mut roib = roib(2, 2, 0);
        for id in 0..2 {
            assert_eq!(roib.take(Time::ZERO, 0, record(id, 0)), Taken::Joined);
        }
        assert_eq!(roib.take(Time::ZERO, 0, record(2, 0)), Taken::Full(record(2, 0)));
        assert_eq!(roib.take(Time::ZERO, 1, record(0, 0)), Taken::Joined);
        assert!(roib.next(Time::ZERO).is_some());
        assert_eq!(roib.take(Time::ZERO, 0, record(2, 0)), Taken::Joined);
        roib.end();
        assert_eq!((roib.next(Time::ZERO).is_some(), roib.next(Time::ZERO).is_some()), (true, true));
        assert_eq!(roib.counters().missing, [0, 2]);
    }

    /// Sources of different speed that lose and repeat records, across the wrap of the level-1 id.
    #[test]
    fn events_go_out_once_and_in_order_whatever_the_sources_do() {
        let (events, first) = (500u64, 0xffff_ff00u64);
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut roib = roib(3, 8, first);
            let mut sent = [0; 3];
            let (mut lost, mut repeated) = ([0; 3], 0);
            let mut joined = Vec::new();
            let mut now = Time::ZERO;
            while sent.iter().any(|&next| next < events) {
                now = now + Duration::from_nanos(random.below(30));
                let source = random.below(3) as usize;
                if sent[source] < events {
                    let id = (first + sent[source]) as u32;
                    if random.chance(0.05) {
                        lost[source] += 1;
                        sent[source] += 1;
                    } else if let Taken::Joined | Taken::Late = roib.take(now, source, record(id, 0)) {
                        repeated +=
                            u64::from(random.chance(0.05) && roib.take(now, source, record(id, 0)) != Taken::Joined);
                        sent[source] += 1;
                    }
                }
                joined.extend(core::iter::from_fn(|| roib.next(now)));
            }
            roib.end();
            joined.extend(core::iter::from_fn(|| roib.next(now)));
            assert!(joined.is_sorted_by(|a, b| a.event < b.event), "seed {seed}");
            let c = roib.counters();
            assert_eq!(c.complete + c.incomplete, joined.len() as u64, "seed {seed}");
            let records: u64 = joined.iter().map(|joined| joined.trigger.rois.len() as u64).sum();
            let dropped = c.duplicates + c.late;
            assert_eq!(records + dropped, 3 * events - lost.iter().sum::<u64>() + repeated, "seed {seed}: {c:?}");
        }
    }
}
