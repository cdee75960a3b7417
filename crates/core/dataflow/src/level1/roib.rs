//! The region-of-interest builder: joins what several level-1 processors say of an event into one trigger.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use crate::level1::trigger::Trigger;
use crate::message::{ROIS_MAX, Roi};
use base::ids::{EventId, Lvl1Id};
use base::time::Time;

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
    /// Dropped and counted: its id is of no event near the others.
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
    /// Regions of interest dropped: the event had [`ROIS_MAX`] without them.
    pub rois_dropped: u64,
    /// Records whose bunch crossing is not that of an earlier record of the event.
    pub bcid_mismatches: u64,
}

/// Joins records by level-1 id. Events go out in the order of their ids, each once.
///
/// # Wild ids
///
/// The *newest* event is the highest that was placed. A record is placed at once if its id is at most four times
/// [`RoibParameters::incomplete`] ahead of that. One that is more than [`AHEAD_MAX`] ahead, two event-counter resets, is
/// dropped. In between, where there are several sources, none of them alone moves the others' window: its record waits as a
/// *candidate*, and its next ones are not taken, until
///
/// * another source sends a record near it: then both are placed;
/// * it sends a record that is not so far ahead, or is far from the candidate: then the candidate was wild, and is dropped;
/// * nothing else waits, it has sent another record near the candidate, and no record of another source was taken for one
///   time-out: then it is the only one that still speaks, and is believed.
///
/// A candidate that is left at the end is dropped. The one source of a joiner of one is always believed.
/// After a pause of more than two resets every record is unplaced.
pub struct Roib {
    parameters: RoibParameters,
    waiting: BTreeMap<EventId, Waiting>,
    /// By source.
    candidates: Vec<Option<Candidate>>,
    /// When a record was last placed, or a candidate last came.
    last: Time,
    newest: EventId,
    /// Everything below has gone out, or never came.
    next: EventId,
    ended: bool,
    counters: RoibCounters,
}

/// A record far ahead of all others.
struct Candidate {
    event: EventId,
    record: SourceRecord,
    /// The source has one behind it, and waits.
    is_followed: bool,
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
        let candidates = (0..parameters.sources).map(|_| None).collect();
        Self {
            parameters,
            waiting: BTreeMap::new(),
            candidates,
            last: Time::ZERO,
            newest,
            next: EventId(0),
            ended: false,
            counters,
        }
    }

    /// Takes a record of a source.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn take(&mut self, now: Time, source: usize, record: SourceRecord) -> Taken {
        assert!(source < self.parameters.sources, "a source of this joiner");
        let event = EventId::unwrap_near(self.newest, record.lvl1_id);
        let Some(event) = event.filter(|event| event.0.saturating_sub(self.newest.0) <= AHEAD_MAX) else {
            self.counters.unplaced += 1;
            return Taken::Unplaced;
        };
        if self.is_far(event) {
            if !self.is_confirmed(source, event) {
                return self.propose(now, source, event, record);
            }
            self.place_candidates_near(now, event);
        }
        self.drop_candidate(source);
        if event < self.next {
            self.counters.late += 1;
            return Taken::Late;
        }
        if self.waiting.len() >= self.parameters.incomplete && !self.waiting.contains_key(&event) {
            return Taken::Full(record);
        }
        self.place(now, source, event, record)
    }

    fn place(&mut self, now: Time, source: usize, event: EventId, record: SourceRecord) -> Taken {
        self.newest = self.newest.max(event);
        self.last = now;
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

    fn is_far(&self, event: EventId) -> bool {
        self.parameters.sources > 1 && event.0.saturating_sub(self.newest.0) > self.near()
    }

    fn near(&self) -> u64 {
        4 * self.parameters.incomplete as u64
    }

    fn is_confirmed(&self, source: usize, event: EventId) -> bool {
        let others = self.candidates.iter().enumerate().filter(|(other, _)| *other != source);
        others
            .filter_map(|(_, candidate)| candidate.as_ref())
            .any(|other| other.event.0.abs_diff(event.0) <= self.near())
    }

    /// Keeps a record until it is known whether it is wild.
    fn propose(&mut self, now: Time, source: usize, event: EventId, record: SourceRecord) -> Taken {
        let near = self.near();
        if let Some(candidate) = &mut self.candidates[source]
            && candidate.event.0.abs_diff(event.0) <= near
        {
            if candidate.event == event && !candidate.is_followed {
                self.counters.duplicates += 1;
                return Taken::Duplicate;
            }
            candidate.is_followed = true;
            return Taken::Full(record);
        }
        self.drop_candidate(source);
        self.last = now;
        self.candidates[source] = Some(Candidate { event, record, is_followed: false });
        Taken::Joined
    }

    fn drop_candidate(&mut self, source: usize) {
        self.counters.unplaced += u64::from(self.candidates[source].take().is_some());
    }

    /// Candidates have room of their own, so that no two sources wait for each other.
    fn place_candidates_near(&mut self, now: Time, event: EventId) {
        let near = self.near();
        for source in 0..self.parameters.sources {
            let is_near = |candidate: &mut Candidate| candidate.event.0.abs_diff(event.0) <= near;
            if let Some(Candidate { event, record, .. }) = self.candidates[source].take_if(is_near) {
                let taken = self.place(now, source, event, record);
                assert_eq!(taken, Taken::Joined, "a source speaks once of an event that nobody has spoken of");
            }
        }
    }

    /// Believes a source that goes on alone.
    fn believe_followed(&mut self, now: Time) {
        if !self.waiting.is_empty() || now < self.last + self.parameters.timeout {
            return;
        }
        let followed = self.candidates.iter().flatten().filter(|candidate| candidate.is_followed);
        if let Some(event) = followed.map(|candidate| candidate.event).min() {
            self.place_candidates_near(now, event);
        }
    }

    /// The oldest event, if it is complete, has waited long enough, or nothing follows.
    pub fn next(&mut self, now: Time) -> Option<Joined> {
        self.believe_followed(now);
        let waiting = self.waiting.first_entry()?;
        let missing = all(self.parameters.sources) & !waiting.get().seen;
        if missing != 0 && !self.ended && now < waiting.get().since + self.parameters.timeout {
            return None;
        }
        let (event, waiting) = waiting.remove_entry();
        self.next = event.next();
        self.count(missing);
        let (trigger, rois_dropped) = waiting.join();
        self.counters.rois_dropped += rois_dropped;
        Some(Joined { event, trigger, missing })
    }

    /// When [`Roib::next`] has something to give although no record came.
    pub fn next_deadline(&self) -> Option<Time> {
        let oldest = self.waiting.first_key_value().map(|(_, waiting)| waiting.since + self.parameters.timeout);
        let is_followed = self.candidates.iter().flatten().any(|candidate| candidate.is_followed);
        oldest.or_else(|| is_followed.then(|| self.last + self.parameters.timeout))
    }

    /// Says that no source will send anything more: what waits goes out as it is.
    pub fn end(&mut self) {
        self.ended = true;
        (0..self.parameters.sources).for_each(|source| self.drop_candidate(source));
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
    /// The trigger, and how many regions of interest it has no room for.
    fn join(mut self) -> (Trigger, u64) {
        self.records.sort_unstable_by_key(|(source, _)| *source);
        let records = || self.records.iter().map(|(_, record)| record);
        let all = records().map(|record| record.rois.len()).sum::<usize>();
        let trigger = Trigger {
            bcid: records().find_map(|record| record.bcid).unwrap_or_default(),
            trigger_type: records().find_map(|record| record.trigger_type).unwrap_or_default(),
            items: records().fold(0, |items, record| items | record.items),
            rois: records().flat_map(|record| &record.rois).take(ROIS_MAX).copied().collect(),
        };
        (trigger, all.saturating_sub(ROIS_MAX) as u64)
    }
}

/// How far ahead of the newest event a record may be: two event-counter resets, each of which moves the id by 2²⁴ at most.
pub const AHEAD_MAX: u64 = 2 << 24;

const fn all(sources: usize) -> u64 {
    u64::MAX >> (u64::BITS as usize - sources)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use base::random::Random;

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
    fn a_wild_id_of_one_source_makes_nothing_late() {
        let mut roib = roib(2, 4, 0);
        for id in 0..10 {
            let wild = if id == 5 { 1 << 23 } else { id };
            assert_eq!(roib.take(Time::ZERO, 0, record(wild, 0)), Taken::Joined);
            assert_eq!(roib.take(Time::ZERO, 1, record(id, 0)), Taken::Joined);
            assert_eq!(roib.next(Time::from_ns(100)).map(|joined| joined.event), Some(EventId(u64::from(id))));
        }
        let RoibCounters { complete, incomplete, late, unplaced, .. } = *roib.counters();
        assert_eq!((complete, incomplete, late, unplaced), (9, 1, 0, 1));
    }

    #[test]
    fn sources_that_agree_step_over_event_counter_resets() {
        let mut roib = roib(3, 2, 0);
        let (mut now, mut ids) = (Time::ZERO, Vec::new());
        for reset in [0, 1, 2, 4, 5] {
            for id in [reset << 24, (reset << 24) + 1] {
                for source in [0, 2, 1] {
                    assert_eq!(roib.take(now, source, record(id, 0)), Taken::Joined, "{source} {id:#x}");
                }
                now = now + Duration::from_nanos(1000);
                ids.extend(core::iter::from_fn(|| roib.next(now)).map(|joined| joined.event.0 as u32));
            }
        }
        let expected: Vec<u32> =
            [0, 1, 2, 4, 5].into_iter().flat_map(|reset| [reset << 24, (reset << 24) + 1]).collect();
        assert_eq!((ids, roib.counters().complete), (expected, 10));
        assert_eq!(roib.take(now, 0, record(8 << 24, 0)), Taken::Unplaced, "three resets");
    }

    #[test]
    fn a_source_ahead_of_a_reset_waits_for_another() {
        let mut roib = roib(2, 4, 0);
        let reset = 1 << 24;
        assert_eq!(roib.take(Time::ZERO, 0, record(reset, 0)), Taken::Joined);
        assert_eq!(roib.take(Time::ZERO, 0, record(reset + 1, 0)), Taken::Full(record(reset + 1, 0)));
        assert_eq!(roib.take(Time::from_ns(50), 1, record(7, 0)), Taken::Joined, "still before the reset");
        assert_eq!(roib.next(Time::from_ns(149)), None);
        assert_eq!(roib.next(Time::from_ns(150)).map(|joined| joined.event), Some(EventId(7)));
        assert_eq!(roib.take(Time::from_ns(160), 1, record(reset, 0)), Taken::Joined);
        assert_eq!(roib.next(Time::from_ns(160)).map(|joined| joined.missing), Some(0));
        assert_eq!(roib.take(Time::from_ns(160), 0, record(reset + 1, 0)), Taken::Joined);
    }

    #[test]
    fn the_only_source_that_speaks_is_believed_once_it_goes_on() {
        let mut roib = roib(2, 4, 0);
        let reset = 1 << 24;
        assert_eq!(roib.take(Time::ZERO, 0, record(reset, 0)), Taken::Joined);
        assert_eq!(roib.next(Time::from_ns(1000)), None, "one alone may be wild");
        assert_eq!(roib.take(Time::from_ns(1000), 0, record(reset + 3, 0)), Taken::Full(record(reset + 3, 0)));
        assert_eq!(roib.next_deadline(), Some(Time::from_ns(100)));
        assert_eq!(roib.next(Time::from_ns(1000)), None, "placed, and waits for the other source");
        assert_eq!(roib.take(Time::from_ns(1000), 0, record(reset + 3, 0)), Taken::Joined);
        assert_eq!(roib.next(Time::from_ns(1100)).map(|joined| joined.missing), Some(2));
        assert_eq!(roib.take(Time::from_ns(1100), 0, record(0, 0)), Taken::Late);
    }

    #[test]
    fn regions_beyond_what_a_message_holds_are_counted() {
        let mut roib = roib(64, 1, 0);
        for source in 0..64 {
            let rois = vec![Roi { kind: source as u8 % 5, ..Roi::default() }; ROIS_MAX];
            let _ = roib.take(Time::ZERO, source, SourceRecord { rois, ..record(0, 0) });
        }
        let joined = roib.next(Time::ZERO).expect("an event");
        assert_eq!((joined.trigger.rois.len(), roib.counters().rois_dropped), (ROIS_MAX, 63 * ROIS_MAX as u64));
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
