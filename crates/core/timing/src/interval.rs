//! Stretches of time.

/// From `begin` on, up to `end` but without it, in ns.
///
/// Arithmetic ends at both ends of the clock. Nothing meets the last nanosecond of it, `u64::MAX`, which stands for "never".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The first nanosecond.
    pub begin: u64,
    /// The first that is behind it.
    pub end: u64,
}

impl Interval {
    /// Covers at least a nanosecond: what ends where it begins, or before, is an instant.
    pub fn new(begin: u64, end: u64) -> Self {
        Self { begin, end: end.max(begin.saturating_add(1)) }
    }

    /// Whether both cover some nanosecond.
    pub fn meets(self, other: Self) -> bool {
        self.begin < other.end && other.begin < self.end
    }

    /// Whether it covers nothing that another does not.
    pub fn lies_in(self, other: Self) -> bool {
        other.begin <= self.begin && self.end <= other.end
    }

    /// Whether it covers nothing: what stands for no time at all.
    pub fn is_none(self) -> bool {
        self.end <= self.begin
    }

    /// With so much more before and behind it.
    #[must_use]
    pub fn widened(self, before: u64, after: u64) -> Self {
        Self { begin: self.begin.saturating_sub(before), end: self.end.saturating_add(after) }
    }

    /// Later by `offset`, or earlier where that is negative.
    #[must_use]
    pub fn shifted(self, offset: i64) -> Self {
        Self::new(self.begin.saturating_add_signed(offset), self.end.saturating_add_signed(offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_touches_does_not_meet() {
        let of = Interval::new;
        assert!(!of(0, 10).meets(of(10, 20)) && of(0, 11).meets(of(10, 20)));
        assert!(of(10, 10).meets(of(10, 20)) && !of(20, 20).meets(of(10, 20)));
        assert_eq!(of(10, 3), of(10, 11));
    }

    #[test]
    fn an_interval_lies_in_itself_and_in_what_is_wider() {
        let of = Interval::new;
        assert!(of(3, 9).lies_in(of(3, 9)) && of(3, 9).lies_in(of(2, 10)));
        assert!(!of(3, 10).lies_in(of(3, 9)) && !of(2, 9).lies_in(of(3, 9)));
        assert!(Interval::default().is_none() && !of(0, 0).is_none());
    }

    #[test]
    fn the_ends_of_the_clock_hold() {
        let all = Interval::new(5, u64::MAX - 1).widened(10, 10);
        assert_eq!(all, Interval::new(0, u64::MAX));
        assert!(!Interval::new(u64::MAX, 0).meets(all) && Interval::new(0, 0).meets(all));
        assert_eq!(Interval::new(3, 9).shifted(-5), Interval { begin: 0, end: 4 });
        assert_eq!(Interval::new(3, 4).shifted(-9), Interval { begin: 0, end: 1 });
    }
}
