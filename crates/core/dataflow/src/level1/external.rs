//! Level-1 processors outside: they push triggers over links, are told when to begin, and are held back.

use alloc::vec::Vec;
use core::time::Duration;

use crate::component::{LinkNews, LinkOrder, Outbox};
use crate::level1::roib::{Awaited, Dropped, Joined, Roib};
use crate::report::{LinkReport, LinkState, RosCounters};
use base::losses::Losses;
use base::time::Time;

/// What level 1 is told of the processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalParameters {
    /// The processors, 1 to 64.
    pub processors: Vec<ProcessorParameters>,
    /// An event waits so long for one that does not go on.
    pub join_timeout: Duration,
    /// A processor of which so many records wait is told to send nothing.
    pub ahead: usize,
    /// A processor may be away so long, and has so long to end when it is told to stop.
    pub grace: Duration,
    /// Whether read-out systems say when their sources have come: before that no processor begins.
    pub after_sources: bool,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorParameters {
    /// Its identifier in reports.
    pub id: u32,
    /// What becomes of the run if it is away for longer than the grace.
    pub on_loss: ProcessorLoss,
}

/// What becomes of the run without a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessorLoss {
    /// It ends in order.
    Stop,
    /// It waits for it.
    Wait,
    /// It goes on without it, as long as there is another one.
    GoOn,
}

/// Level 1's side of the processors.
///
/// They begin when all of them and all sources of read-out systems are there, and end first. While somebody is busy they are told
/// to send nothing; what they veto meanwhile they say with their next record.
#[derive(Clone, Debug)]
pub struct External {
    parameters: ExternalParameters,
    each: Vec<Processor>,
    roib: Roib,
    /// The next trigger.
    ready: Option<Joined>,
    /// Whether they were told to send, once they were told anything.
    started: Option<bool>,
    /// Nothing is waited for any more.
    is_abandoned: bool,
}

#[derive(Clone, Debug)]
struct Processor {
    parameters: ProcessorParameters,
    state: LinkState,
    /// Whether it was told to send nothing for now.
    off: bool,
    /// When it is lost, if it is away, or has to have ended, if it was told to stop.
    due: Option<Time>,
    counters: RosCounters,
}

impl External {
    /// Waits for the processors.
    ///
    /// # Panics
    /// If there is none, or more than 64.
    pub fn new(parameters: ExternalParameters) -> Self {
        let processor = |&parameters: &ProcessorParameters| Processor {
            parameters,
            state: LinkState::Awaited,
            off: false,
            due: None,
            counters: RosCounters::default(),
        };
        let mut external = Self {
            each: parameters.processors.iter().map(processor).collect(),
            roib: Roib::new(parameters.processors.len(), parameters.join_timeout),
            parameters,
            ready: None,
            started: None,
            is_abandoned: false,
        };
        (0..external.each.len()).for_each(|at| external.set_awaited(at));
        external
    }

    /// Takes what came from the link of a processor.
    pub fn on_link(&mut self, now: Time, at: usize, news: LinkNews, out: &mut Outbox) {
        let processor = &mut self.each[at];
        let counters = &mut processor.counters;
        match news {
            LinkNews::Trigger(record) => {
                counters.fragments_in += 1;
                match self.roib.take(now, at, *record) {
                    Ok(()) => {}
                    Err(Dropped::Again) => counters.dropped_duplicate += 1,
                    Err(Dropped::GoesBack | Dropped::Late) => counters.dropped_old += 1,
                    Err(Dropped::Wild) => counters.dropped_unplaced += 1,
                }
            }
            LinkNews::Idle(event) => self.roib.pass(now, at, event),
            LinkNews::Lost(Losses { malformed, .. }) => counters.frames_malformed += malformed,
            LinkNews::Up => {
                (processor.state, processor.due) = (LinkState::Up, None);
                let off = processor.off;
                self.set_awaited(at);
                match self.started {
                    Some(true) => out.link(at, LinkOrder::Start),
                    Some(false) => self.stop(now, at, out),
                    None => {}
                }
                if off {
                    out.link(at, LinkOrder::Off);
                }
            }
            LinkNews::Down if processor.state == LinkState::Up => {
                counters.sources_lost += 1;
                let has_begun = self.started.is_some();
                processor.state = if has_begun { LinkState::Down } else { LinkState::Awaited };
                processor.due = has_begun.then(|| now + self.parameters.grace);
                self.set_awaited(at);
            }
            LinkNews::Ended { sent } => {
                counters.announced += sent;
                (processor.state, processor.due) = (LinkState::Ended, None);
                self.set_awaited(at);
            }
            // Of these an intake of triggers says nothing, or it changes nothing.
            LinkNews::Down | LinkNews::Passed(_) | LinkNews::Fragment { .. } | LinkNews::Chunk { .. } => {}
        }
    }

    /// What time has brought about.
    pub fn look(&mut self, now: Time) {
        for at in 0..self.each.len() {
            let Processor { state, due, parameters, .. } = &mut self.each[at];
            if due.take_if(|due| *due <= now).is_none() {
                continue;
            }
            if *state == LinkState::Down && parameters.on_loss != ProcessorLoss::Wait {
                *state = LinkState::Lost;
            }
            self.set_awaited(at);
        }
        self.join(now);
    }

    fn join(&mut self, now: Time) {
        if self.ready.is_none() {
            self.ready = self.roib.next(now);
        }
    }

    /// The next trigger, in the order of their numbers.
    pub fn pop(&mut self, now: Time) -> Option<Joined> {
        let joined = self.ready.take()?;
        for (at, processor) in self.each.iter_mut().enumerate() {
            let is_there = joined.present >> at & 1;
            processor.counters.cleared += is_there;
            processor.counters.absent += 1 - is_there;
            processor.counters.flagged += joined.flawed >> at & 1;
        }
        self.join(now);
        Some(joined)
    }

    /// Drops what came and was not issued, as far as nothing more of it is to come; how many triggers.
    pub fn discard(&mut self, now: Time) -> usize {
        let mut count = 0;
        while let Some(joined) = self.ready.take().or_else(|| self.roib.next(now)) {
            count += 1;
            for (at, processor) in self.each.iter_mut().enumerate() {
                processor.counters.never_triggered += joined.present >> at & 1;
            }
        }
        count
    }

    /// Whether there is no trigger to issue now.
    pub fn is_empty(&self) -> bool {
        self.ready.is_none()
    }

    /// Whether there will be none, either.
    pub fn is_over(&self) -> bool {
        self.is_empty() && self.is_silent() && (0..self.each.len()).all(|at| self.roib.waiting(at) == 0)
    }

    /// Whether no processor can send anything any more that belongs to this run.
    pub fn is_silent(&self) -> bool {
        self.is_abandoned || (0..self.each.len()).all(|at| self.is_done(at))
    }

    /// Whether a processor has not come yet, without which none begins.
    pub fn is_awaited(&self) -> bool {
        self.each.iter().any(|processor| processor.state == LinkState::Awaited)
    }

    /// Whether a processor is lost without which the run ends.
    pub fn is_lost(&self) -> bool {
        let ends = |one: &Processor| one.state == LinkState::Lost && one.parameters.on_loss == ProcessorLoss::Stop;
        self.each.iter().any(ends)
    }

    /// Whether the processors were told to send.
    pub fn is_started(&self) -> bool {
        self.started == Some(true)
    }

    /// Whether they were ever told to send.
    pub fn has_begun(&self) -> bool {
        self.started.is_some()
    }

    /// Whether they begin after the sources of read-out systems.
    pub fn is_after_sources(&self) -> bool {
        self.parameters.after_sources
    }

    /// Tells all processors to send, or to end.
    pub fn turn(&mut self, now: Time, on: bool, out: &mut Outbox) {
        if on == self.is_started() {
            return;
        }
        self.started = Some(on);
        for at in 0..self.each.len() {
            if self.each[at].state != LinkState::Up {
                self.set_awaited(at);
            } else if on {
                out.link(at, LinkOrder::Start);
            } else {
                self.stop(now, at, out);
            }
        }
    }

    /// Tells processors to send nothing while the partition is busy or has enough of them, and to go on. Before they were told to begin they
    /// send nothing anyway.
    pub fn hold(&mut self, now: Time, busy: bool, out: &mut Outbox) {
        if !self.has_begun() {
            return;
        }
        for (at, processor) in self.each.iter_mut().enumerate() {
            let waiting = self.roib.waiting(at);
            let room_from = if processor.off { self.parameters.ahead / 2 } else { self.parameters.ahead };
            let off = busy || waiting > room_from || (waiting == room_from && room_from > 0);
            if off != core::mem::replace(&mut processor.off, off) {
                self.roib.hold(now, at, off);
                out.link(at, if off { LinkOrder::Off } else { LinkOrder::On });
            }
        }
    }

    /// The run ends without what they have still to say.
    pub fn abandon(&mut self) {
        self.is_abandoned = true;
        (0..self.each.len()).for_each(|at| self.set_awaited(at));
    }

    /// When [`look`](Self::look) has something to do.
    pub fn next_deadline(&self) -> Option<Time> {
        let joins = self.roib.next_deadline().filter(|_| self.ready.is_none());
        self.each.iter().filter_map(|processor| processor.due).chain(joins).min()
    }

    /// What came of each.
    pub fn report(&self) -> Vec<LinkReport> {
        let report = |(at, processor): (usize, &Processor)| {
            let resident = self.resident(at);
            let counters = RosCounters { resident, ..processor.counters };
            LinkReport { rob: processor.parameters.id, state: processor.state, counters, clock: None }
        };
        self.each.iter().enumerate().map(report).collect()
    }

    /// Asserts that every record is in one place of the books.
    ///
    /// # Panics
    /// If one is not.
    pub fn check(&self) {
        for (at, processor) in self.each.iter().enumerate() {
            let c = &processor.counters;
            let dropped = c.dropped_duplicate + c.dropped_old + c.dropped_unplaced;
            let known = c.cleared + c.never_triggered + dropped + self.resident(at);
            assert_eq!(c.fragments_in, known, "every record of processor {at}: {c:?}");
        }
    }

    fn resident(&self, at: usize) -> u64 {
        let ready = self.ready.as_ref().map_or(0, |joined| joined.present >> at & 1);
        self.roib.waiting(at) as u64 + ready
    }

    fn stop(&mut self, now: Time, at: usize, out: &mut Outbox) {
        self.each[at].due.get_or_insert(now + self.parameters.grace);
        out.link(at, LinkOrder::Stop);
    }

    /// Whether it sends nothing more, for now at least.
    fn is_done(&self, at: usize) -> bool {
        let Processor { state, due, .. } = &self.each[at];
        let stops = self.started == Some(false);
        match state {
            LinkState::Ended | LinkState::Lost => true,
            LinkState::Up => stops && due.is_none(),
            LinkState::Awaited | LinkState::Down => stops,
        }
    }

    fn set_awaited(&mut self, at: usize) {
        let awaited = match self.each[at].parameters.on_loss {
            _ if self.is_abandoned || self.is_done(at) => Awaited::No,
            ProcessorLoss::Wait => Awaited::Always,
            ProcessorLoss::Stop | ProcessorLoss::GoOn => Awaited::WhileHeard,
        };
        self.roib.set_awaited(at, awaited);
    }
}
