//! The clocks of the sources of a read-out system, beside that of the triggers.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::Interval;
use crate::clock::Fit;
use crate::coincidence::{Coincidence, Jump};
use crate::compare::Comparison;
use crate::slip::Slip;

/// What a source says that its clock can be known from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Watched {
    /// Nothing, or nobody wants to know.
    #[default]
    No,
    /// The numbers of triggers, with their times.
    Numbers,
    /// The counts of triggers, with their times.
    Counts,
    /// Times alone.
    Times {
        /// Its data are so far from their triggers at most, in ns, as long as its clock is not known.
        window: u64,
        /// Whether it begins in step with the triggers. Else it has to be found first.
        in_step: bool,
    },
}

/// Follows the clocks of sources.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Of sources that say which trigger a time is of.
    comparison: Comparison,
    parts: Vec<SourceWatch>,
    /// The source that the others are compared with, where the triggers say no times.
    reference: Option<usize>,
}

#[derive(Clone, Debug)]
enum SourceWatch {
    None,
    Numbers,
    Counts,
    Times(Box<Coincidence>),
}

/// Something has happened to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Its numbers belong to other triggers.
    Slip(Slip),
    /// Its times, which are all that it says, are others.
    Jump(Jump),
}

/// What is known of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Beside the triggers.
    pub fit: Fit,
    /// Steps so far.
    pub steps: u64,
    /// Slips of the numbers so far.
    pub slips: u64,
    /// The last one.
    pub last: Option<Slip>,
}

/// The clock of a source, and where its numbers slipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkClock {
    /// How far it is ahead, ns.
    pub offset_ns: i64,
    /// How much faster it goes, in 10⁻¹².
    pub drift: i64,
    /// Median distance of its times from the model, ns.
    pub quality_ns: u64,
    /// Steps of the clock.
    pub steps: u64,
    /// Slips of its numbers.
    pub slips: u64,
    /// The event of the last slip.
    pub slipped_at: u64,
    /// What has to be added to its numbers since.
    pub shift: i64,
}

impl From<Known> for LinkClock {
    fn from(Known { fit: Fit { offset_ns, drift, quality_ns, .. }, steps, slips, last }: Known) -> Self {
        let (slipped_at, shift) = last.map_or((0, 0), |slip| (slip.since, slip.shift));
        Self { offset_ns, drift, quality_ns, steps, slips, slipped_at, shift }
    }
}

impl LinkClock {
    /// How many numbers it is.
    pub const VALUES: usize = 7;

    /// As numbers, for the way to run control.
    pub fn to_values(self) -> [u64; Self::VALUES] {
        let Self { offset_ns, drift, quality_ns, steps, slips, slipped_at, shift } = self;
        [offset_ns.cast_unsigned(), drift.cast_unsigned(), quality_ns, steps, slips, slipped_at, shift.cast_unsigned()]
    }

    /// From these numbers.
    pub fn from_values(values: [u64; Self::VALUES]) -> Self {
        let [offset_ns, drift, quality_ns, steps, slips, slipped_at, shift] = values;
        let (offset_ns, drift, shift) = (offset_ns.cast_signed(), drift.cast_signed(), shift.cast_signed());
        Self { offset_ns, drift, quality_ns, steps, slips, slipped_at, shift }
    }
}

impl Watch {
    /// Of sources, in the order of their links. They are compared with the triggers, if those say their times, else with the first one
    /// that says numbers.
    pub fn new(watched: impl Iterator<Item = Watched>, by_triggers: bool) -> Self {
        let part = |watched| match watched {
            Watched::No => SourceWatch::None,
            Watched::Numbers => SourceWatch::Numbers,
            Watched::Counts => SourceWatch::Counts,
            Watched::Times { window, in_step } => SourceWatch::Times(Box::new(Coincidence::new(window, in_step))),
        };
        let parts: Vec<SourceWatch> = watched.map(part).collect();
        let first = parts.iter().position(|part| matches!(part, SourceWatch::Numbers));
        Self { comparison: Comparison::new(parts.len()), reference: first.filter(|_| !by_triggers), parts }
    }

    /// A trigger was issued that says its time, ns.
    pub fn trigger(&mut self, number: u64, ordinal: u64, time: u64) {
        if self.reference.is_none() {
            self.comparison.lead(number, ordinal, time);
        }
        for part in &mut self.parts {
            if let SourceWatch::Times(coincidence) = part {
                coincidence.lead(time);
            }
        }
    }

    /// A source has data of a number, or a count, at a time of its own, ns.
    pub fn data(&mut self, link: usize, number: u64, time: u64) {
        match &mut self.parts[link] {
            SourceWatch::None => {}
            SourceWatch::Numbers if self.reference == Some(link) => self.comparison.lead(number, number, time),
            SourceWatch::Numbers => self.comparison.follow(link, number, false, time),
            SourceWatch::Counts => self.comparison.follow(link, number, true, time),
            SourceWatch::Times(coincidence) => coincidence.follow(time),
        }
    }

    /// Looks at what has come: what is certain now, with the link.
    pub fn judge(&mut self, mut report: impl FnMut(usize, Finding)) {
        self.comparison.judge(|link, slip| report(link, Finding::Slip(slip)));
        for (link, part) in self.parts.iter_mut().enumerate() {
            if let SourceWatch::Times(coincidence) = part {
                coincidence.judge().into_iter().for_each(|jump| report(link, Finding::Jump(jump)));
            }
        }
    }

    /// Where a source that says times alone has a time of the triggers. It is elsewhere, as far as its clock is another; `None` as long as it
    /// is not found.
    pub fn seen_by(&self, link: usize, time: Interval) -> Option<Interval> {
        let SourceWatch::Times(coincidence) = &self.parts[link] else { return Some(time) };
        if time.is_none() {
            return None;
        }
        let length = time.end.saturating_sub(time.begin);
        let begin = coincidence.source_at(time.begin);
        coincidence.is_known().then(|| Interval { begin, end: begin.saturating_add(length) })
    }

    /// Whether it is known where a source has a time of the triggers.
    pub fn is_known(&self, link: usize) -> bool {
        if let SourceWatch::Times(coincidence) = &self.parts[link] { coincidence.is_known() } else { true }
    }

    /// What is known of the clock of a source; nothing of what others are compared with.
    pub fn known(&self, link: usize) -> Option<Known> {
        if let SourceWatch::Times(coincidence) = &self.parts[link] {
            let clock = coincidence.clock();
            return Some(Known { fit: clock.fit()?, steps: clock.steps(), slips: 0, last: None });
        }
        let slips = self.comparison.slips(link);
        let clock = slips.clock();
        Some(Known { fit: clock.fit()?, steps: clock.steps(), slips: slips.count(), last: slips.last() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Numbers of the triggers have gaps, and their distances are all different.
    fn run(
        watched: Watched,
        by_triggers: bool,
        say: impl Fn(u64, u64) -> (u64, u64),
    ) -> (Watch, Vec<(usize, Finding)>) {
        let mut watch = Watch::new([Watched::Numbers, watched].into_iter(), by_triggers);
        let mut found = Vec::new();
        for ordinal in 0..400 {
            let time = 7 * MS + ordinal * MS + (ordinal * ordinal * 7919) % (MS / 2);
            let number = 10 + 3 * ordinal;
            watch.trigger(number, ordinal, time);
            watch.data(0, number, time);
            let (number, time) = say(ordinal, time);
            watch.data(1, number, time);
            watch.judge(|link, finding| found.push((link, finding)));
        }
        (watch, found)
    }

    #[test]
    fn numbers_are_compared_with_the_triggers_or_with_the_first_that_has_any() {
        for by_triggers in [false, true] {
            let (watch, found) = run(Watched::Numbers, by_triggers, |ordinal, time| (10 + 3 * ordinal, time + 500));
            assert_eq!(found, []);
            let known = [0, 1].map(|link| watch.known(link).map(|known| known.fit.offset_ns));
            assert_eq!(known, [by_triggers.then_some(0), Some(500)]);
        }
    }

    #[test]
    fn a_count_that_slips_is_told_with_the_trigger() {
        let (watch, found) = run(Watched::Counts, true, |ordinal, time| (ordinal - u64::from(ordinal >= 200), time));
        let [(1, Finding::Slip(slip))] = found[..] else { panic!("{found:?}") };
        assert_eq!((slip.since, slip.by), (199, 1), "the count from which on it belongs elsewhere");
        assert_eq!(watch.known(1).unwrap().slips, 1);
    }

    #[test]
    fn times_alone_are_mapped_to_where_the_source_has_them() {
        let watched = Watched::Times { window: 1000, in_step: false };
        let before = Watch::new([watched].into_iter(), true);
        assert_eq!(before.seen_by(0, Interval::new(5, 9)), None);
        let (watch, found) = run(watched, true, |_, time| (0, time + 90 * MS));
        assert_eq!(found, [], "it has not jumped: it was found");
        assert_eq!(
            watch.seen_by(1, Interval::new(500 * MS, 500 * MS + 9)),
            Some(Interval::new(590 * MS, 590 * MS + 9))
        );
        assert_eq!(watch.seen_by(0, Interval::new(5, 9)), Some(Interval::new(5, 9)));
    }
}
