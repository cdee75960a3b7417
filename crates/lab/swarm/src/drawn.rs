//! A drawn source that sends by itself, and in what it misbehaves.

use std::time::Duration;

use base::random::Random;
use configuration::{OnMissing, ProcessorLoss};

use simulator::world::{Chunking, Habits, Rhythm, Telling};

/// Sources that send by themselves.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The fraction of numbers that no trigger has.
    pub gaps: f64,
    /// Triggers that the leading source has beyond those of the run: only with a limit.
    pub more: u64,
    /// The sources. Those of links that a smaller plan has not are left out, and then the first may have to lead.
    pub each: Vec<Drawn>,
    /// Events are slices of time, and nobody leads.
    pub slices: Option<Slicing>,
    /// A source leads, and data of others belong to its triggers by time or count.
    pub matching: Option<Matching>,
}

/// What holds of all sources whose data belong to triggers by time or count.
#[derive(Clone, Copy, Debug)]
pub struct Matching {
    /// For so long an event waits for them.
    pub grace: Duration,
    /// What clocks say at the begin of the world, in ns.
    pub zero_ns: u64,
}

/// How the data of a source belong to triggers, if not by number.
#[derive(Clone, Copy, Debug)]
pub enum Matched {
    /// By time.
    Time(ByTime),
    /// By count.
    Count(ByCount),
}

/// How a source counts triggers.
#[derive(Clone, Copy, Debug)]
pub struct ByCount {
    /// It calls the first one so.
    pub first: u32,
    /// What it says of its times.
    pub telling: Telling,
    /// Whether its clock is followed.
    pub has_clock: bool,
}

/// What events have of a source by time.
#[derive(Clone, Copy, Debug)]
pub struct ByTime {
    /// An event reaches so far back.
    pub before: Duration,
    /// And so far ahead.
    pub after: Duration,
    /// Most chunks that it has.
    pub most: u32,
    /// Whether it has only those that lie in it as a whole.
    pub is_exclusive: bool,
    /// What the source says of its times.
    pub telling: Telling,
    /// What is known of its clock.
    pub clock: OwnClock,
}

/// What is known of the clock of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnClock {
    /// It goes as that of the triggers does, but for an offset that the configuration says.
    Common,
    /// It begins so, and is followed.
    InStep,
    /// It has to be found.
    Sought,
}

/// How time is cut into events.
#[derive(Clone, Copy, Debug)]
pub struct Slicing {
    /// Of a slice, to the next.
    pub length: Duration,
    /// So much of that is an event, from its begin on; without it all.
    pub window: Option<Duration>,
    /// For so long a slice waits for who has not passed it.
    pub grace: Duration,
}

/// How a source cuts time into chunks, and what slices have of them.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// From when to when they are.
    pub chunking: Chunking,
    /// A slice reaches so far back.
    pub before: Duration,
    /// And so far ahead.
    pub after: Duration,
    /// Most of them that a slice has.
    pub most: u32,
    /// Whether it has only those that lie in it as a whole.
    pub is_exclusive: bool,
}

/// A drawn source.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The place of its read-out system among all.
    pub ros: usize,
    /// Its link.
    pub rob: u16,
    /// Whether its fragments are the triggers.
    pub leads: bool,
    /// Whether it has the hand-shake of a EUDET TLU.
    pub one_by_one: bool,
    /// When it sends.
    pub rhythm: Rhythm,
    /// What its link takes.
    pub latency: Duration,
    /// Its fragments may come in any order, which no configuration says.
    pub is_unordered: bool,
    /// What becomes of an event without its fragment.
    pub on_missing: OnMissing,
    /// How it cuts time, if events are slices of that.
    pub cut: Option<Cut>,
    /// How its data belong to triggers, if not by their numbers.
    pub matched: Option<Matched>,
    /// What becomes of the run without it, if it is a level-1 processor.
    pub on_loss: ProcessorLoss,
    /// In what it misbehaves.
    pub habits: Habits,
}

impl Drawn {
    /// Whether it does nothing amiss.
    pub(super) fn is_good(&self) -> bool {
        if let Some(cut) = &self.cut {
            return self.habits.are_good() && cut.chunking.step.is_none();
        }
        // A clock may be lost in a pause before it is known.
        if self.by_time().is_some_and(|time| time.clock != OwnClock::Common) {
            return false;
        }
        let is_fast = |interval| interval <= Duration::from_micros(20);
        self.habits.are_good() && !matches!(self.rhythm, Rhythm::Alone(interval) if !self.leads && !is_fast(interval))
    }

    /// Whether an event is complete without its fragment.
    pub(super) fn is_tolerated(&self) -> bool {
        self.on_missing == OnMissing::Tolerate
    }

    /// Whether an event has its data whole, or is taken for one without.
    pub(super) fn is_whole_or_missing(&self) -> bool {
        matches!(self.on_missing, OnMissing::Drop | OnMissing::DebugStream)
    }

    /// What events have of it by time, if they have.
    pub(super) fn by_time(&self) -> Option<ByTime> {
        self.matched.and_then(|matched| if let Matched::Time(time) = matched { Some(time) } else { None })
    }

    /// What it says of its times, if its data belong to triggers by time or count.
    pub(super) fn telling(&self) -> Telling {
        match self.matched {
            None => Telling::default(),
            Some(Matched::Time(time)) => time.telling,
            Some(Matched::Count(count)) => count.telling,
        }
    }

    /// Whether its clock is its own.
    pub(super) fn has_clock(&self) -> bool {
        match self.matched {
            None => false,
            Some(Matched::Time(time)) => time.clock != OwnClock::Common,
            Some(Matched::Count(count)) => count.has_clock,
        }
    }

    pub(super) fn misbehave(&mut self, r: &mut Random) {
        let habits = &mut self.habits;
        let rarely = |r: &mut Random, often: f64| if r.chance(0.15) { often * r.unit() } else { 0.0 };
        habits.swaps = rarely(r, 0.5);
        habits.doubles = rarely(r, 0.5);
        habits.damages = rarely(r, 0.5);
        habits.runs_wild = rarely(r, 0.3);
        habits.goes_back = rarely(r, 0.3);
        habits.leaves_out = rarely(r, 1.0);
        habits.invents = rarely(r, 1.0);
        habits.hesitates = rarely(r, 0.2);
        let longest_us = if r.chance(0.7) { 5_000 } else { 100_000 };
        habits.hesitation = Duration::from_micros(1 + r.below(longest_us));
        habits.is_silent = r.chance(0.04);
        habits.is_deaf = r.chance(0.15);
        habits.never_ends = r.chance(0.08);
        habits.begins_anew = r.chance(0.3);
        let mut at = Duration::ZERO;
        for _ in 0..if r.chance(0.15) { 1 + r.below(3) } else { 0 } {
            at += Duration::from_micros(r.below(8_000));
            let away = Duration::from_micros(match r.below(3) {
                0 => 10 + r.below(500),
                1 => 10 + r.below(30_000),
                _ => 900_000 + r.below(700_000),
            });
            let returns = r.chance(0.75);
            habits.deaths.push((at, returns.then_some(away)));
            at += away;
        }
        if !self.leads && r.chance(0.1) {
            // Slower than the others.
            self.rhythm = Rhythm::Alone(Duration::from_micros(100 + r.below(3_000)));
        } else if !self.leads && r.chance(0.1) {
            self.rhythm = Rhythm::Behind(Duration::from_micros(r.below(200_000)));
        }
    }
}
