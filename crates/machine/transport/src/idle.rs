//! What a scheduler does when none of its tasks has work.
//!
//! A thread that polls in a loop keeps its processor from those that have work to do, whatever their priority. One
//! that yields after an unsuccessful poll restores predictable and scaling behaviour \[L2SCI2000 §3.1\]. One that
//! sleeps leaves the processor free altogether, but pays for each wake-up.

use base::time::Time;
use core::time::Duration;

/// How to be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleStrategy {
    /// Poll again at once: the shortest reaction, for a processor of its own. Where it has none, a peer may wait for the processor
    /// with what this thread waits for. So it yields every [`SPIN_MAX`], a system call that comes back at once where nobody waits.
    Spin,
    /// Let other threads run between two passes.
    Yield,
    /// Yield for so long, then sleep until a source is ready, a waker wakes, or a task's deadline comes. Where nobody else wants the
    /// processor, yielding is a system call that comes back at once. Otherwise a peer that wants it may have what this thread waits
    /// for.
    Park {
        /// How long to yield before sleep.
        yield_for: Duration,
    },
    /// Sleep at once where there is nothing to do, and for so long behind each pass in which there was something. It is for many
    /// connections and no hurry: a pass looks at all of them, and that takes longer than to hear a few.
    Paced {
        /// How long to sleep behind a pass.
        between: Duration,
    },
}

impl Default for IdleStrategy {
    fn default() -> Self {
        // Sleeping at once took 0.4 sleeps and wake-ups per event of an event builder with 4 sources; this makes 1.1 to 1.4 times its events/s.
        Self::Park { yield_for: Duration::from_micros(50) }
    }
}

/// What to do before the next pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// Nothing.
    None,
    /// Let other threads run.
    Yield,
    /// Sleep until there is something to do.
    Sleep,
}

/// Where an idle scheduler stands in its strategy.
#[derive(Debug)]
pub struct Idle {
    strategy: IdleStrategy,
    idle_since: Option<Time>,
}

impl Idle {
    /// At the beginning of an idle time.
    pub fn new(strategy: IdleStrategy) -> Self {
        Self { strategy, idle_since: None }
    }

    /// After a pass in which a task had work; how long to sleep before the next one.
    pub fn busy(&mut self) -> Duration {
        self.idle_since = None;
        if let IdleStrategy::Paced { between } = self.strategy { between } else { Duration::ZERO }
    }

    /// After a pass that began at `now` and in which no task had work.
    pub fn idle(&mut self, now: Time) -> Pause {
        let (lasts, meanwhile, then) = match self.strategy {
            IdleStrategy::Spin => (SPIN_MAX, Pause::None, Pause::Yield),
            IdleStrategy::Yield => return Pause::Yield,
            IdleStrategy::Paced { .. } => return Pause::Sleep,
            IdleStrategy::Park { yield_for } => (yield_for, Pause::Yield, Pause::Sleep),
        };
        if now.since(*self.idle_since.get_or_insert(now)) < lasts {
            return meanwhile;
        }
        self.idle_since = None;
        then
    }
}

/// A hundred times what yielding takes where nobody waits, and a fiftieth of the time for which a processor is given out.
pub const SPIN_MAX: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::{Idle, IdleStrategy, Pause};
    use base::time::Time;
    use core::time::Duration;

    fn at_us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    #[test]
    fn park_yields_then_sleeps_and_begins_anew_with_work() {
        let mut idle = Idle::new(IdleStrategy::Park { yield_for: Duration::from_micros(10) });
        let pauses = [100, 109, 110, 111].map(|us| idle.idle(at_us(us)));
        assert_eq!(pauses, [Pause::Yield, Pause::Yield, Pause::Sleep, Pause::Yield]);
        idle.busy();
        assert_eq!(idle.idle(at_us(130)), Pause::Yield);
    }

    #[test]
    fn paced_sleeps_behind_each_pass() {
        let mut paced = Idle::new(IdleStrategy::Paced { between: Duration::from_millis(5) });
        assert_eq!((paced.busy(), paced.idle(at_us(1))), (Duration::from_millis(5), Pause::Sleep));
        assert_eq!(Idle::new(IdleStrategy::default()).busy(), Duration::ZERO);
    }

    #[test]
    fn yield_never_sleeps() {
        let mut idle = Idle::new(IdleStrategy::Yield);
        assert_eq!([0, 1_000_000].map(|us| idle.idle(at_us(us))), [Pause::Yield; 2]);
    }

    /// A peer that has the message had no processor for the milliseconds that the kernel gives one who never yields.
    #[test]
    fn spin_lets_others_run_every_while() {
        let mut idle = Idle::new(IdleStrategy::Spin);
        let pauses = [100, 149, 150, 151, 200, 201].map(|us| idle.idle(at_us(us)));
        let none = Pause::None;
        assert_eq!(pauses, [none, none, Pause::Yield, none, none, Pause::Yield]);
        assert_eq!(idle.idle(at_us(202)), none);
        idle.busy();
        assert_eq!([252, 301].map(|us| idle.idle(at_us(us))), [none; 2], "only while there is no work");
    }
}
