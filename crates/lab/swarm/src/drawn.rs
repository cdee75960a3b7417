//! A drawn source that sends by itself, and in what it misbehaves.

use std::time::Duration;

use base::random::Random;
use configuration::ProcessorLoss;

use simulator::world::{Chunking, Habits, Rhythm};

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
    /// An event is complete without its fragment.
    pub is_tolerated: bool,
    /// How it cuts time, if events are slices of that.
    pub cut: Option<Cut>,
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
        let is_fast = |interval| interval <= Duration::from_micros(20);
        self.habits.are_good() && !matches!(self.rhythm, Rhythm::Alone(interval) if !self.leads && !is_fast(interval))
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
