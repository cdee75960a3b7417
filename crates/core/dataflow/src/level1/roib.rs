//! The region-of-interest builder: joins what several level-1 processors say of an event into one trigger.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::level1::source::Trigger;
use crate::message::{ROIS_MAX, Roi};
use base::ids::EventId;
use base::time::Time;

/// What one processor says of one event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriggerRecord {
    /// The event.
    pub event: EventId,
    /// Bunch crossing, if the processor knows it.
    pub bcid: Option<u16>,
    /// Level-1 trigger type, if the processor knows it.
    pub trigger_type: Option<u8>,
    /// Level-1 items that fired: the event's are those of any processor.
    pub items: u32,
    /// Triggers since its last record that it has vetoed, since it was told that the partition is busy.
    pub vetoed: u32,
    /// Its regions of interest.
    pub rois: Vec<Roi>,
}

/// An event with the records of all processors that sent one.
#[derive(Clone, Debug, PartialEq)]
pub struct Joined {
    /// The event.
    pub event: EventId,
    /// Its regions of interest are in the order of the processors; bunch crossing and type are those of the first one that gives
    /// them.
    pub trigger: Trigger,
    /// Triggers vetoed before it: what the one says that says most.
    pub vetoed: u32,
    /// Processors that sent a record, one bit each.
    pub present: u64,
    /// Of these, those whose record did not go in whole: another bunch crossing, or regions beyond [`ROIS_MAX`].
    pub flawed: u64,
}

/// Why a record is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// The processor has sent a record of this event last.
    Again,
    /// The processor has gone past this event.
    GoesBack,
    /// The event, or a later one, has gone out.
    Late,
    /// The number is far from all others.
    Wild,
}

/// Whether events wait for the records of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// No.
    No,
    /// As long as it goes on, and for the time-out if it does not.
    WhileHeard,
    /// However long that takes.
    Always,
}

/// Joins records by event. Each processor sends in the order of events: so a record, or an idle mark, says also what does not
/// come any more. Events go out in their order, each once.
#[derive(Clone, Debug)]
pub struct Roib {
    timeout: Duration,
    lines: Vec<Line>,
    newest: Option<EventId>,
    /// Everything below has gone out, or never came.
    next: EventId,
}

#[derive(Clone, Debug)]
struct Line {
    /// With the times at which they came.
    waiting: VecDeque<(Time, TriggerRecord)>,
    /// Nothing below this comes any more.
    passed: EventId,
    /// When it last went on.
    moved: Time,
    awaited: Awaited,
    /// Whether it was told to send nothing: it is not its fault that it does not go on.
    off: bool,
}

impl Roib {
    /// Joins the records of so many processors. An event waits for one that does not go on for the time-out.
    ///
    /// # Panics
    /// If there is no processor, or more than 64.
    pub fn new(processors: usize, timeout: Duration) -> Self {
        assert!((1..=64).contains(&processors), "1 to 64 processors");
        let line = Line {
            waiting: VecDeque::new(),
            passed: EventId(0),
            moved: Time::ZERO,
            awaited: Awaited::WhileHeard,
            off: false,
        };
        Self { timeout, lines: alloc::vec![line; processors], newest: None, next: EventId(0) }
    }

    /// Takes a record of a processor.
    ///
    /// # Errors
    /// It is dropped.
    pub fn take(&mut self, now: Time, processor: usize, record: TriggerRecord) -> Result<(), Dropped> {
        let line = &mut self.lines[processor];
        let event = record.event;
        if self.newest.is_some_and(|newest| newest.0.abs_diff(event.0) > PLACED_WITHIN) || event.0 == u64::MAX {
            return Err(Dropped::Wild);
        }
        if event < line.passed {
            return Err(if event.next() == line.passed { Dropped::Again } else { Dropped::GoesBack });
        }
        self.newest = self.newest.max(Some(event));
        line.go_on(now, event.next());
        if event < self.next {
            return Err(Dropped::Late);
        }
        line.waiting.push_back((now, record));
        Ok(())
    }

    /// The processor sends nothing below this event any more.
    pub fn pass(&mut self, now: Time, processor: usize, below: EventId) {
        let line = &mut self.lines[processor];
        if line.passed < below {
            line.go_on(now, below);
        }
    }

    /// Whether events wait for this processor from now on.
    pub fn set_awaited(&mut self, processor: usize, awaited: Awaited) {
        self.lines[processor].awaited = awaited;
    }

    /// The processor was told to send nothing, or to go on: its time does not run meanwhile.
    pub fn hold(&mut self, now: Time, processor: usize, off: bool) {
        let line = &mut self.lines[processor];
        (line.off, line.moved) = (off, now);
    }

    /// The oldest event, if nothing is to be waited for.
    pub fn next(&mut self, now: Time) -> Option<Joined> {
        let (event, since) = self.oldest()?;
        let waits =
            |line: &Line| line.may_send(event) && line.until(since, self.timeout).is_none_or(|until| now < until);
        (!self.lines.iter().any(waits)).then(|| self.join(event))
    }

    /// When [`Roib::next`] has something to give although nothing came.
    pub fn next_deadline(&self) -> Option<Time> {
        let (event, since) = self.oldest()?;
        let mut awaited =
            self.lines.iter().filter(|line| line.may_send(event)).map(|line| line.until(since, self.timeout));
        awaited.try_fold(since, |latest, until| Some(latest.max(until?)))
    }

    /// Records of a processor that wait.
    pub fn waiting(&self, processor: usize) -> usize {
        self.lines[processor].waiting.len()
    }

    /// The oldest event of which there is a record, and since when there is one.
    fn oldest(&self) -> Option<(EventId, Time)> {
        let fronts = self.lines.iter().filter_map(|line| line.waiting.front());
        fronts.map(|(came, record)| (record.event, *came)).min()
    }

    fn join(&mut self, event: EventId) -> Joined {
        self.next = event.next();
        let mut joined = Joined { event, trigger: Trigger::default(), vetoed: 0, present: 0, flawed: 0 };
        let (mut bcid, mut trigger_type) = (None, None);
        let Trigger { items, rois, .. } = &mut joined.trigger;
        for (processor, line) in self.lines.iter_mut().enumerate() {
            let Some((_, record)) = line.waiting.pop_front_if(|(_, record)| record.event == event) else { continue };
            let room = ROIS_MAX - rois.len();
            let agrees = record.bcid.is_none() || *bcid.get_or_insert(record.bcid) == record.bcid;
            joined.present |= 1 << processor;
            joined.flawed |= u64::from(!agrees || record.rois.len() > room) << processor;
            joined.vetoed = joined.vetoed.max(record.vetoed);
            trigger_type = trigger_type.or(record.trigger_type);
            *items |= record.items;
            rois.extend(record.rois.into_iter().take(room));
        }
        joined.trigger.bcid = bcid.flatten().unwrap_or_default();
        joined.trigger.trigger_type = trigger_type.unwrap_or_default();
        joined
    }
}

impl Line {
    fn go_on(&mut self, now: Time, passed: EventId) {
        (self.passed, self.moved) = (passed, now);
    }

    /// Whether a record of this event may still come.
    fn may_send(&self, event: EventId) -> bool {
        self.passed <= event && self.awaited != Awaited::No
    }

    /// How long an event waits for it that is there since that time; `None` for as long as it takes.
    fn until(&self, since: Time, timeout: Duration) -> Option<Time> {
        (self.awaited != Awaited::Always && !self.off).then(|| since.max(self.moved) + timeout)
    }
}

/// A number that is further from all others than this is none.
pub(crate) const PLACED_WITHIN: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use base::random::Random;

    const TIMEOUT: Duration = Duration::from_nanos(100);

    fn record(event: u64, kind: u8) -> TriggerRecord {
        let rois = vec![Roi { kind, ..Roi::default() }];
        TriggerRecord { event: EventId(event), bcid: Some(9), items: 1 << kind, rois, ..TriggerRecord::default() }
    }

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn records_of_all_processors_make_one_trigger() {
        let mut roib = Roib::new(2, TIMEOUT);
        assert_eq!(roib.take(at(0), 1, TriggerRecord { vetoed: 3, ..record(7, 2) }), Ok(()));
        assert_eq!(roib.next(at(0)), None);
        let typed = TriggerRecord { trigger_type: Some(0x84), bcid: None, vetoed: 2, ..record(7, 1) };
        assert_eq!(roib.take(at(0), 0, typed), Ok(()));
        let joined = roib.next(at(0)).expect("a complete event");
        let kinds: Vec<u8> = joined.trigger.rois.iter().map(|roi| roi.kind).collect();
        assert_eq!((joined.event, joined.present, joined.flawed, joined.vetoed), (EventId(7), 3, 0, 3));
        assert_eq!(kinds, [1, 2]);
        assert_eq!((joined.trigger.bcid, joined.trigger.trigger_type, joined.trigger.items), (9, 0x84, 6));
    }

    #[test]
    fn who_has_gone_past_an_event_is_not_waited_for() {
        let mut roib = Roib::new(3, TIMEOUT);
        for event in [5, 9] {
            roib.take(at(0), 0, record(event, 0)).unwrap();
        }
        roib.take(at(0), 1, record(9, 0)).unwrap();
        assert_eq!(roib.next(at(0)), None, "the third may still send 5");
        roib.pass(at(1), 2, EventId(9));
        assert_eq!(roib.next(at(1)).map(|joined| (joined.event, joined.present)), Some((EventId(5), 1)));
        assert_eq!(roib.next(at(1)), None);
        assert_eq!(roib.next_deadline(), Some(at(101)));
        assert_eq!(roib.next(at(101)).map(|joined| (joined.event, joined.present)), Some((EventId(9), 3)));
        assert_eq!(roib.take(at(102), 2, record(9, 0)), Err(Dropped::Late));
    }

    #[test]
    fn who_goes_on_slowly_is_waited_for_and_who_must_be_there_for_ever() {
        let mut roib = Roib::new(2, TIMEOUT);
        roib.take(at(0), 0, record(50, 0)).unwrap();
        for event in 0..10 {
            roib.take(at(90 * event), 1, record(event, 0)).unwrap();
            assert_eq!(roib.next(at(90 * event)).map(|joined| joined.event), Some(EventId(event)));
            assert_eq!(roib.next(at(90 * event + 99)), None);
        }
        roib.hold(at(2_000), 1, true);
        assert_eq!((roib.next_deadline(), roib.next(at(9_000))), (None, None), "nobody lets it");
        roib.hold(at(9_000), 1, false);
        assert_eq!(roib.next_deadline(), Some(at(9_100)));
        roib.set_awaited(1, Awaited::Always);
        assert_eq!((roib.next_deadline(), roib.next(at(1_000_000))), (None, None));
        roib.set_awaited(1, Awaited::No);
        assert_eq!(roib.next(at(1_000_000)).map(|joined| joined.event), Some(EventId(50)));
    }

    #[test]
    fn what_comes_again_goes_back_or_is_wild_is_dropped() {
        let mut roib = Roib::new(1, TIMEOUT);
        roib.take(at(0), 0, record(1 << 40, 0)).unwrap();
        for (event, dropped) in [
            (1 << 40, Dropped::Again),
            ((1 << 40) - 7, Dropped::GoesBack),
            (3, Dropped::Wild),
            ((1 << 41) + 1, Dropped::Wild),
        ] {
            assert_eq!(roib.take(at(0), 0, record(event, 0)), Err(dropped));
        }
        assert_eq!(roib.take(at(0), 0, record((1 << 40) + 1000, 0)), Ok(()), "numbers may have gaps");
    }

    #[test]
    fn records_that_do_not_fit_one_another_are_marked() {
        let mut roib = Roib::new(2, TIMEOUT);
        let full = TriggerRecord { rois: vec![Roi::default(); ROIS_MAX], ..record(0, 0) };
        roib.take(at(0), 0, full).unwrap();
        roib.take(at(0), 1, record(0, 1)).unwrap();
        roib.take(at(0), 0, record(1, 0)).unwrap();
        roib.take(at(0), 1, TriggerRecord { bcid: Some(10), ..record(1, 1) }).unwrap();
        for _ in 0..2 {
            let joined = roib.next(at(0)).unwrap();
            assert_eq!((joined.flawed, joined.trigger.bcid), (2, 9));
            assert!(joined.trigger.rois.len() <= ROIS_MAX);
        }
    }

    /// Whatever is lost, doubled or slow: events go out once and in order, and every record is in one or was dropped.
    #[test]
    fn every_record_is_in_one_event_or_dropped() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let mut roib = Roib::new(3, TIMEOUT);
            let (mut next, mut dropped, mut sent) = ([10_u64; 3], 0, 0);
            let mut events: Vec<Joined> = Vec::new();
            for step in 0..3000 {
                let now = at(step * 10);
                let processor = random.below(3) as usize;
                next[processor] += u64::from(!random.chance(0.1)) + u64::from(random.chance(0.1));
                dropped += u64::from(roib.take(now, processor, record(next[processor], processor as u8)).is_err());
                sent += 1;
                events.extend(core::iter::from_fn(|| roib.next(now)));
            }
            (0..3).for_each(|processor| roib.set_awaited(processor, Awaited::No));
            events.extend(core::iter::from_fn(|| roib.next(at(0))));
            assert!(events.is_sorted_by(|one, other| one.event < other.event), "seed {seed}");
            let records: u64 = events.iter().map(|joined| u64::from(joined.present.count_ones())).sum();
            assert_eq!(records + dropped, sent, "seed {seed}");
        }
    }
}
