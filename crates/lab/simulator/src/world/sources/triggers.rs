//! When triggers came, for sources that say times.

use std::collections::VecDeque;

use base::time::Time;
use timing::Interval;

use super::Sources;
use crate::world::detectors::Rhythm;

/// Triggers that some source has still to come to, by number.
#[derive(Default)]
pub(super) struct Triggers(VecDeque<(u64, u64)>);

impl Triggers {
    /// None for a number that no trigger had.
    pub(super) fn time_of(&self, number: u64) -> Interval {
        let place = self.0.partition_point(|(other, _)| *other < number);
        let at = self.0.get(place).filter(|(other, _)| *other == number);
        at.map_or(Interval::default(), |(_, at)| Interval::new(*at, *at))
    }
}

impl Sources {
    /// The leading source has sent these, and knows nothing of order if it misbehaves.
    pub(super) fn note_triggers(&mut self, now: Time, all: &[(u64, bool)]) {
        let behind = self.lines.iter().filter(|line| matches!(line.source.rhythm, Rhythm::Behind(_)));
        let slowest = behind.map(|line| line.next).min().unwrap_or(u64::MAX);
        let Triggers(times) = &mut self.triggers;
        while times.pop_front_if(|(number, _)| *number < slowest).is_some() {}
        for (number, _) in all {
            if times.back().is_none_or(|(last, _)| last < number) {
                times.push_back((*number, CLOCK_BEGINS_NS + now.as_ns()));
            }
        }
    }
}

/// What clocks say at the begin of the world: no time is before that of a clock.
const CLOCK_BEGINS_NS: u64 = 1_000_000_000_000;
