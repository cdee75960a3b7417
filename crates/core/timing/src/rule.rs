//! Which data of a source belong to an event.

use crate::Interval;

/// How the data of a source are matched with events.
///
/// Both lie on one axis. An event is an interval there, widened by what it takes before and behind it; data are another. Those that
/// meet belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// What is compared.
    pub axis: Axis,
    /// Added to all that the source says: in ns, or in triggers.
    pub offset: i64,
    /// An event takes so much more before its interval, in ns.
    pub before: u64,
    /// And behind it.
    pub after: u64,
    /// Whether data belong to an event only if they lie in what it takes as a whole.
    pub exclusive: bool,
}

/// What of a source is compared with what of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Axis {
    /// Times.
    #[default]
    Time,
    /// The count of the source with the ordinal of the event: the n-th fragment is of the n-th trigger.
    Count,
}

impl Rule {
    /// What an event takes, of this ordinal and of this time, if that is known.
    pub fn of(&self, ordinal: u64, time: Option<Interval>) -> Option<Interval> {
        match self.axis {
            Axis::Time => Some(time.filter(|time| !time.is_none())?.widened(self.before, self.after)),
            Axis::Count => Some(Interval::new(ordinal, ordinal.saturating_add(1))),
        }
    }

    /// Whether an event without data of the source lacks them. By time, that there are none may be how it is.
    pub fn demands(&self) -> bool {
        self.axis == Axis::Count
    }

    /// Where data of this time lie, as the source says, which had counted so many before. `None` if it says no time that it needs.
    pub fn place(&self, time: Interval, count: u64) -> Option<Interval> {
        let said = match self.axis {
            Axis::Time => Some(time).filter(|time| !time.is_none()),
            Axis::Count => Some(Interval::new(count, count.saturating_add(1))),
        };
        Some(said?.shifted(self.offset))
    }

    /// Nothing that begins before this follows data of this interval, as far as the source does not say more.
    pub fn watermark(&self, data: Interval) -> u64 {
        if self.axis == Axis::Count { data.end } else { data.begin }
    }

    /// Where a source with data here is at most, if one with events here is not wild.
    pub fn is_near(&self, one: u64, other: u64) -> bool {
        let far = if self.axis == Axis::Count { FAR_COUNT } else { FAR_NS };
        one.abs_diff(other) <= far
    }
}

/// Times of triggers, which rise. One that goes back, or is far ahead, counts when the next one agrees.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rising {
    newest: Option<u64>,
    doubted: Option<u64>,
}

impl Rising {
    /// Whether the next time counts.
    pub fn take(&mut self, time: u64) -> bool {
        let follows = |known: u64| time.checked_sub(known).is_some_and(|ahead| ahead <= FAR_NS);
        let counts = self.newest.is_none_or(follows) || self.doubted.is_some_and(follows);
        (self.newest, self.doubted) = if counts { (Some(time), None) } else { (self.newest, Some(time)) };
        counts
    }
}

/// More than an hour.
const FAR_NS: u64 = 1 << 42;
const FAR_COUNT: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_an_interval_of_time_or_the_place_among_triggers() {
        let time = Some(Interval::new(1000, 1010));
        let by_time = Rule { before: 100, after: 5, ..Rule::default() };
        assert_eq!((by_time.of(7, time), by_time.of(7, None)), (Some(Interval::new(900, 1015)), None));
        let by_count = Rule { axis: Axis::Count, ..by_time };
        assert_eq!(
            (by_count.of(7, time), by_count.of(7, None)),
            (Some(Interval::new(7, 8)), Some(Interval::new(7, 8)))
        );
        assert_eq!([by_time, by_count].map(|rule| rule.watermark(Interval::new(3, 9))), [3, 9]);
        let shifted = [by_time, by_count].map(|rule| Rule { offset: -2, ..rule }.place(Interval::new(30, 90), 7));
        assert_eq!(shifted, [Some(Interval::new(28, 88)), Some(Interval::new(5, 6))]);
        assert_eq!(by_time.place(Interval::default(), 7), None);
    }

    #[test]
    fn a_wild_time_does_not_count_and_two_that_agree_do() {
        let mut rising = Rising::default();
        let took = [5, 9, 1 << 60, 12, 12, 3, 15, 1 << 60, (1 << 60) + 4, 20, 21].map(|time| rising.take(time));
        let [t, f] = [true, false];
        assert_eq!(took, [t, t, f, t, t, f, t, f, t, f, t]);
    }
}
