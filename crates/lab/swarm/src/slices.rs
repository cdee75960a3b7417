//! Partitions whose events are slices of time: how time is cut, and by whom.

use std::time::Duration;

use base::random::Random;
use simulator::world::{Chunking, Rhythm};

use super::drawn::{Cut, Drawn, Slicing};
use super::plan::Plan;
use super::sources::GRACE;

impl Plan {
    /// How time is cut into events, if it is.
    pub fn slicing(&self) -> Option<Slicing> {
        self.readout.sending.as_ref().and_then(|sending| sending.slices).filter(|_| self.triggers.credit.is_none())
    }

    /// Sources run free. Their habits are drawn already; what they send are chunks of time.
    pub(super) fn draw_slices(&mut self, level: u32, r: &mut Random) {
        let longest_us = if r.chance(0.5) { 300 } else { 2_000 };
        let length = micros(r, 50, longest_us);
        let longest_ms = [3, 20, 100][r.below(3) as usize];
        let slicing = Slicing {
            length,
            window: r.chance(0.15).then(|| length.mul_f64(0.1 + 0.9 * r.unit())),
            grace: micros(r, 500, longest_ms * 1_000),
        };
        let zero_ns = [0, 1 << 40, 1_700_000_000_000_000_000][r.below(3) as usize] + r.below(1 << 20);
        let (events, strays) = (self.triggers.events, level > 0 && r.chance(0.5));
        // Nearly always there is room for the chunks of some slices.
        let held = if r.chance(0.92) { self.fine.busy.1 * self.readout.pages as f64 / 4.0 } else { f64::INFINITY };
        let Some(sending) = &mut self.readout.sending else { return };
        let more = 4 + sending.more as u32;
        let until = length * (events as u32 + more);
        for drawn in &mut sending.each {
            (drawn.leads, drawn.one_by_one, drawn.is_unordered) = (false, false, false);
            drawn.rhythm = Rhythm::Behind(Duration::ZERO);
            drawn.cut = Some(cut(r, length, held, Chunking { zero_ns, until, ..STILL }));
            if strays {
                stray(r, length, drawn);
            }
        }
        sending.slices = Some(slicing);
        let is_endless = |drawn: &Drawn| drawn.habits.is_silent || drawn.habits.never_ends;
        if sending.each.iter().any(is_endless) {
            self.course.duration.get_or_insert(Duration::from_millis(1 + r.below(80)));
        }
    }

    /// After this time of the run no source does anything new, and none is waited for.
    pub(super) fn slices_are_over_after(&self, slicing: &Slicing) -> Duration {
        let Some(sending) = &self.readout.sending else { return Duration::ZERO };
        // A clock that steps leaves so many slices behind or ahead.
        let strays = sending.each.iter().any(|drawn| drawn.cut.is_some_and(|cut| cut.chunking.step.is_some()));
        let slices = (self.triggers.events + sending.more) as u32 + if strays { 500 } else { 64 };
        let over = |drawn: &Drawn| {
            let until = drawn.cut.map_or(Duration::ZERO, |cut| cut.chunking.until);
            let away = |(at, away): &(Duration, Option<Duration>)| *at + away.unwrap_or(GRACE).max(GRACE);
            until + drawn.habits.late + drawn.habits.hesitation * 2 + drawn.habits.deaths.iter().map(away).sum()
        };
        let sources: Duration = sending.each.iter().map(over).sum();
        // What has to end by grace comes one slice after the other, and may wait for room as long again.
        sources + GRACE * 3 + slicing.grace * 4 + (slicing.length + slicing.grace * 2) * slices
    }
}

/// Chunks of a length of their own, which overlap or leave something out: at most about so many in a slice.
fn cut(r: &mut Random, length: Duration, held: f64, chunking: Chunking) -> Cut {
    let longest = if r.chance(0.8) { 1.0 } else { 3.0 };
    let every = length.mul_f64((0.08 + longest * r.unit()).max(1.0 / held));
    let lasts = match r.below(6) {
        0 => every.mul_f64(1.0 + r.unit()),
        1 => every.mul_f64(r.unit()),
        2 => Duration::ZERO,
        _ => every,
    };
    let reach = |r: &mut Random| {
        if r.chance(0.3) { length.mul_f64(1.5 * r.unit()).min(every.mul_f64(held.min(100.0))) } else { Duration::ZERO }
    };
    Cut {
        chunking: Chunking { every, lasts, ..chunking },
        before: reach(r),
        after: reach(r),
        most: if r.chance(0.2) { 1 + r.below(8) as u32 } else { 16 + r.below(100) as u32 },
        is_exclusive: r.chance(0.15),
    }
}

/// The clock of a source is off from the beginning, or steps.
fn stray(r: &mut Random, length: Duration, drawn: &mut Drawn) {
    if !r.chance(0.4) {
        return;
    }
    let slices = if r.chance(0.7) { 3 } else { 200 };
    let off = length.mul_f64(f64::from(slices) * r.unit()).as_nanos() as i64;
    let off = if r.chance(0.5) { off } else { -off };
    let from = if r.chance(0.5) { Duration::ZERO } else { length * r.below(20) as u32 };
    drawn.cut.iter_mut().for_each(|cut| cut.chunking.step = Some((from, off)));
}

fn micros(r: &mut Random, low: u64, high: u64) -> Duration {
    Duration::from_nanos(1_000 * low + r.below(1_000 * (high - low)))
}

const STILL: Chunking =
    Chunking { zero_ns: 0, every: Duration::ZERO, lasts: Duration::ZERO, until: Duration::ZERO, step: None };
