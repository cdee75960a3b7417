//! How many data requests a builder may have on the way: a fixed number, or what the network turns out to take.

use core::time::Duration;

use base::time::Time;

/// A policy for the number of requests that are not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreditPolicy {
    /// Always the most `[EB2007 §II-B.3]`.
    #[default]
    Fixed,
    /// As many as do no harm (additive increase, multiplicative decrease). Each round of replies adds one. A request that
    /// has to be repeated, or a reply that takes several times as long as those before it, halves them.
    ///
    /// A long time alone says nothing: how long a reply takes is most often a matter of processors, not of queues in a network.
    Adaptive,
}

/// The requests that are on the way, and how many may be.
#[derive(Clone, Debug)]
pub(crate) struct RequestCredits {
    policy: CreditPolicy,
    most: usize,
    /// In parts of `WHOLE`: one reply earns a part of a credit.
    limit: u64,
    outstanding: usize,
    /// How long replies take, in the mean over the last few.
    usual: Option<Duration>,
    /// Requests sent before this time say nothing of the limit since.
    decreased: Time,
}

impl RequestCredits {
    /// At most this many requests.
    pub(crate) fn new(policy: CreditPolicy, most: usize) -> Self {
        let start = match policy {
            CreditPolicy::Fixed => most,
            CreditPolicy::Adaptive => most.min(START),
        };
        Self { policy, most, limit: start as u64 * WHOLE, outstanding: 0, usual: None, decreased: Time::ZERO }
    }

    /// Whether one more request may go.
    pub(crate) fn has_one(&self) -> bool {
        self.outstanding < self.limit()
    }

    /// How many more requests may go.
    pub(crate) fn left(&self) -> usize {
        self.limit().saturating_sub(self.outstanding)
    }

    /// How many may be on the way now.
    pub(crate) fn limit(&self) -> usize {
        (self.limit / WHOLE) as usize
    }

    /// How many are on the way.
    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// Sources are asked.
    pub(crate) fn spend(&mut self, count: usize) {
        self.outstanding += count;
    }

    /// Sources are not waited for any more, whether their data came or not.
    pub(crate) fn come_home(&mut self, count: usize) {
        self.outstanding -= count;
    }

    /// The whole of the reply to a request that was sent once has come.
    #[inline]
    pub(crate) fn on_reply(&mut self, now: Time, sent: Time) {
        if self.policy == CreditPolicy::Adaptive {
            self.adapt(now, sent);
        }
    }

    fn adapt(&mut self, now: Time, sent: Time) {
        let took = now.since(sent);
        let usual = *self.usual.get_or_insert(took);
        self.usual = Some((usual * (SMOOTHED - 1) + took) / SMOOTHED);
        if took > LATE * usual.max(SHORT) {
            return self.decrease(now, sent);
        }
        self.limit = (self.limit + (WHOLE * WHOLE / self.limit).max(1)).min(self.most as u64 * WHOLE);
    }

    /// A request that was sent at this time has to be repeated.
    pub(crate) fn on_reask(&mut self, now: Time, sent: Time) {
        if self.policy == CreditPolicy::Adaptive {
            self.decrease(now, sent);
        }
    }

    /// Once for all requests that were on the way together.
    fn decrease(&mut self, now: Time, sent: Time) {
        if sent >= self.decreased {
            self.decreased = now;
            self.limit = (self.limit / 2).max(WHOLE);
        }
    }

    /// Asserts that the bound is kept.
    pub(crate) fn check(&self) {
        assert!(self.outstanding <= self.most, "requests within their bound");
        assert!((1..=self.most.max(1)).contains(&self.limit()), "the limit within its bounds");
    }
}

const WHOLE: u64 = 1 << 16;
/// As many as a network that is not known takes.
const START: usize = 4;
/// Replies in the mean of how long they take.
const SMOOTHED: u32 = 8;
/// A reply that takes this many times the usual has been lost on its way, in part at least. The usual is the mean of those before.
/// The fastest would not do: where processors are shared, most replies take far longer, and the limit would fall to one request.
const LATE: u32 = 8;
/// Shorter times are those of schedulers, not of networks.
const SHORT: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(credits: &mut RequestCredits, from_us: u64, took_us: u64, count: usize) {
        for reply in 0..count as u64 {
            let sent = Time::from_ns((from_us + reply * took_us) * 1000);
            credits.on_reply(sent + Duration::from_micros(took_us), sent);
            credits.check();
        }
    }

    #[test]
    fn fixed_credits_stay() {
        let mut credits = RequestCredits::new(CreditPolicy::Fixed, 3);
        credits.spend(3);
        assert!(!credits.has_one());
        credits.on_reask(Time::from_ns(5), Time::from_ns(1));
        credits.come_home(2);
        assert_eq!((credits.limit(), credits.has_one(), credits.outstanding()), (3, true, 1));
        assert_eq!(credits.left(), 2);
        credits.spend(2);
        assert_eq!((credits.left(), credits.has_one()), (0, false));
    }

    #[test]
    fn credits_grow_by_one_in_a_round_and_halve_once_for_a_round() {
        let mut credits = RequestCredits::new(CreditPolicy::Adaptive, 64);
        assert_eq!(credits.limit(), START);
        replies(&mut credits, 0, 500, 5);
        assert_eq!(credits.limit(), START + 1);
        replies(&mut credits, 10_000, 500, 3000);
        assert_eq!(credits.limit(), 64);
        let at = |ms: u64| Time::from_ns(ms * 1_000_000);
        credits.on_reask(at(2000), at(1900));
        credits.on_reask(at(2001), at(1901));
        assert_eq!(credits.limit(), 32, "asked together");
        credits.on_reask(at(2100), at(2000));
        assert_eq!(credits.limit(), 16);
        (0..100).for_each(|k| credits.on_reask(at(3000 + k), at(3000 + k)));
        assert_eq!(credits.limit(), 1);
    }

    #[test]
    fn a_reply_that_is_far_later_than_those_before_takes_credits() {
        let mut credits = RequestCredits::new(CreditPolicy::Adaptive, 64);
        replies(&mut credits, 0, 500, 3000);
        replies(&mut credits, 10_000_000, 9_000, 1);
        assert_eq!(credits.limit(), 32);
    }

    #[test]
    fn a_reply_that_is_a_few_times_later_than_usual_takes_none() {
        let mut credits = RequestCredits::new(CreditPolicy::Adaptive, 64);
        replies(&mut credits, 0, 1000, 3000);
        replies(&mut credits, 10_000_000, 5_000, 1);
        assert_eq!(credits.limit(), 64);
    }

    #[test]
    fn slow_replies_take_none() {
        let mut credits = RequestCredits::new(CreditPolicy::Adaptive, 64);
        replies(&mut credits, 0, 50, 1);
        replies(&mut credits, 10_000, 2_000, 3000);
        assert_eq!(credits.limit(), 64);
    }
}
