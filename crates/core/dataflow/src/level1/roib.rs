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
