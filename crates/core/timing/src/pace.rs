//! When triggers are offered.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::dead_time::CROSSING;
use base::random::Random;
use base::time::Time;

/// How triggers follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spacing {
    /// As fast as they are taken.
    Unlimited,
    /// At a fixed interval.
    Fixed(Duration),
    /// At random, with this mean interval.
    Poisson(Duration),
}

/// The times at which triggers are offered.
#[derive(Clone, Debug)]
pub struct Pace {
    spacing: Spacing,
    /// Other spacings, each from a time since the start on.
    later: VecDeque<(Duration, Spacing)>,
    random: Random,
    start: Option<Time>,
    on_crossings: bool,
    /// When a fixed spacing would offer, were there no crossings.
    exact: Time,
    next: Option<Time>,
}

impl Pace {
    /// A pace that begins with [`Pace::start`].
    pub fn new(spacing: Spacing, seed: u64) -> Self {
        Self {
            spacing,
            later: VecDeque::new(),
            random: Random::new(seed),
            start: None,
            on_crossings: false,
            exact: Time::ZERO,
            next: None,
        }
    }

    /// Changes the spacing later, each time with the first offer at or after a time since the first start. The times rise.
    #[must_use]
    pub fn then(self, profile: Vec<(Duration, Spacing)>) -> Self {
        Self { later: profile.into(), ..self }
    }

    /// Offers triggers in bunch crossings counted from the first start, at most one in each. The gaps of
    /// [`Spacing::Poisson`] are then geometric, as those of independent crossings.
    #[must_use]
    pub fn on_crossings(self) -> Self {
        Self { on_crossings: true, ..self }
    }

    /// Offers the first trigger now, unless triggers are offered already.
    pub fn start(&mut self, now: Time) {
        if self.next.is_none() {
            self.start.get_or_insert(now);
            self.exact = now;
            self.next = Some(self.at_or_after(now));
        }
    }

    /// Offers no more.
    pub fn stop(&mut self) {
        self.next = None;
    }

    /// When the next trigger is offered.
    pub fn next(&self) -> Option<Time> {
        self.next
    }

    /// The crossing of a time at which a trigger is offered.
    ///
    /// # Panics
    /// Before the start.
    pub fn crossing(&self, offered: Time) -> u64 {
        (offered.as_ns() - self.origin().as_ns()) / CROSSING_NS
    }

    /// Whether triggers come as fast as they are taken: then none can be vetoed.
    pub fn is_unlimited(&self) -> bool {
        self.spacing == Spacing::Unlimited
    }

    /// Offers the next trigger not before this crossing.
    pub fn delay_to_crossing(&mut self, crossing: u64) {
        let not_before = Time::from_ns(self.origin().as_ns() + crossing * CROSSING_NS);
        self.next = self.next.map(|next| next.max(not_before));
    }

    /// Offers the next trigger not before this time.
    pub fn delay(&mut self, not_before: Time) {
        let not_before = self.at_or_after(not_before);
        self.next = self.next.map(|next| next.max(not_before));
    }

    /// Takes the offer that is due; false if none is.
    pub fn take(&mut self, now: Time) -> bool {
        let Some(due) = self.next.filter(|due| *due <= now) else {
            return false;
        };
        let elapsed = due.since(self.origin());
        while let Some((_, spacing)) = self.later.pop_front_if(|(after, _)| *after <= elapsed) {
            self.spacing = spacing;
            self.exact = due;
        }
        self.next = Some(if self.on_crossings { self.next_crossing(due) } else { self.next_time(due, now) });
        true
    }

    fn next_time(&mut self, due: Time, now: Time) -> Time {
        match self.spacing {
            Spacing::Unlimited => now,
            Spacing::Fixed(interval) => due + interval,
            Spacing::Poisson(mean) => due + mean.mul_f64(self.random.exponential()),
        }
    }

    fn next_crossing(&mut self, due: Time) -> Time {
        match self.spacing {
            Spacing::Unlimited => due + CROSSING,
            Spacing::Fixed(interval) => {
                self.exact = self.exact + interval;
                self.at_or_after(self.exact).max(due + CROSSING)
            }
            Spacing::Poisson(mean) => {
                let gap_ns = mean.mul_f64(self.random.exponential()).as_nanos() as u64;
                due + Duration::from_nanos(gap_ns.div_ceil(CROSSING_NS).max(1) * CROSSING_NS)
            }
        }
    }

    /// This time, or the next crossing where only those count.
    fn at_or_after(&self, time: Time) -> Time {
        if !self.on_crossings {
            return time;
        }
        let origin = self.origin().as_ns();
        Time::from_ns(origin + (time.as_ns() - origin).next_multiple_of(CROSSING_NS))
    }

    fn origin(&self) -> Time {
        self.start.expect("crossings are counted from the start")
    }
}

const CROSSING_NS: u64 = CROSSING.as_nanos() as u64;

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn offers(mut pace: Pace, start: Time, count: usize) -> Vec<u64> {
        pace.start(start);
        let mut offers = Vec::new();
        for _ in 0..count {
            let next = pace.next().expect("an offer");
            assert!(pace.take(next));
            offers.push(next.as_ns());
        }
        offers
    }

    #[test]
    fn crossings_are_counted_from_the_start_and_keep_the_mean_rate() {
        let pace = Pace::new(Spacing::Fixed(Duration::from_nanos(60)), 1).on_crossings();
        assert_eq!(offers(pace, Time::from_ns(7), 5), [7, 82, 132, 207, 257]);
        let pace = Pace::new(Spacing::Fixed(Duration::from_nanos(10)), 1).on_crossings();
        assert_eq!(offers(pace, Time::from_ns(7), 3), [7, 32, 57]);
    }

    #[test]
    fn what_goes_on_is_not_started_again() {
        let mut pace = Pace::new(Spacing::Fixed(Duration::from_nanos(100)), 1);
        let at = Time::from_ns;
        pace.start(at(5));
        assert!(pace.take(at(5)));
        pace.start(at(7));
        assert_eq!(pace.next(), Some(at(105)));
        pace.stop();
        pace.start(at(8));
        assert_eq!(pace.next(), Some(at(8)));
    }

    #[test]
    fn random_offers_fall_on_crossings_at_the_mean_rate() {
        let pace = Pace::new(Spacing::Poisson(Duration::from_micros(10)), 3).on_crossings();
        let offers = offers(pace, Time::from_ns(13), 10_000);
        assert!(offers.is_sorted_by(|a, b| a < b) && offers.iter().all(|offer| (offer - 13).is_multiple_of(25)));
        let mean_ns = (offers[9_999] - 13) / 9_999;
        assert!((9_700..10_400).contains(&mean_ns), "{mean_ns}");
    }

    #[test]
    fn a_profile_changes_the_spacing_in_time() {
        let profile = vec![(Duration::from_nanos(250), Spacing::Fixed(Duration::from_nanos(1000)))];
        let pace = Pace::new(Spacing::Fixed(Duration::from_nanos(100)), 1).then(profile);
        assert_eq!(offers(pace, Time::from_ns(5), 6), [5, 105, 205, 305, 1305, 2305]);
    }
}
