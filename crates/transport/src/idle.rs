//! What a scheduler does when none of its tasks has work.
//!
//! A thread that polls in a loop keeps its processor from those that have work to do, whatever their priority; one that
//! yields after an unsuccessful poll restores predictable and scaling behaviour \[L2SCI2000 §3.1\]. One that sleeps leaves
//! the processor free altogether, but pays for each wake-up.

use core::time::Duration;
use dataflow::time::Time;

/// How to be idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleStrategy {
    /// Poll again at once: the shortest reaction, for a processor of its own.
    Spin,
    /// Let other threads run between two passes.
    Yield,
    /// Spin a little if at all, yield a little, then sleep until a source is ready, a waker wakes, or a task's deadline comes.
    Park(ParkLimits),
}

/// How long `park` stays awake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkLimits {
    /// The longest time to spin. It is halved each time it was spent in vain and doubled when work came before sleep, so
    /// that a scheduler spins only where that helps.
    pub spin_max: Duration,
    /// How long to yield between spinning and sleep.
    pub yield_for: Duration,
}

impl Default for ParkLimits {
    /// No spinning: where nobody else wants the processor, yielding is a system call that comes back at once, and where
    /// somebody does, it is a peer that has what this one waits for.
    fn default() -> Self {
        Self { spin_max: Duration::ZERO, yield_for: Duration::from_micros(50) }
    }
}

impl Default for IdleStrategy {
    fn default() -> Self {
        Self::Park(ParkLimits::default())
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
    spin_for: Duration,
}

impl Idle {
    /// At the beginning of an idle time.
    pub fn new(strategy: IdleStrategy) -> Self {
        let spin_for = match strategy {
            IdleStrategy::Park(limits) => limits.spin_max,
            IdleStrategy::Spin | IdleStrategy::Yield => Duration::ZERO,
        };
        Self { strategy, idle_since: None, spin_for }
    }

    /// After a pass in which a task had work.
    pub fn busy(&mut self) {
        if let (Some(_), IdleStrategy::Park(limits)) = (self.idle_since.take(), self.strategy) {
            self.spin_for = (self.spin_for * 2).clamp(SPIN_MIN.min(limits.spin_max), limits.spin_max);
        }
    }

    /// After a pass that began at `now` and in which no task had work.
    pub fn idle(&mut self, now: Time) -> Pause {
        let limits = match self.strategy {
            IdleStrategy::Spin => return Pause::None,
            IdleStrategy::Yield => return Pause::Yield,
            IdleStrategy::Park(limits) => limits,
        };
        let idle_for = now.since(*self.idle_since.get_or_insert(now));
        if idle_for < self.spin_for {
            Pause::None
        } else if idle_for < self.spin_for + limits.yield_for {
            Pause::Yield
        } else {
            self.spin_for /= 2;
            self.idle_since = None;
            Pause::Sleep
        }
    }
}

/// From where spinning grows again after it never helped.
const SPIN_MIN: Duration = Duration::from_nanos(500);

#[cfg(test)]
mod tests {
    use super::{Idle, IdleStrategy, ParkLimits, Pause};
    use core::time::Duration;
    use dataflow::time::Time;

    fn at_us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    fn park() -> Idle {
        let (spin_max, yield_for) = (Duration::from_micros(8), Duration::from_micros(10));
        Idle::new(IdleStrategy::Park(ParkLimits { spin_max, yield_for }))
    }

    #[test]
    fn park_spins_then_yields_then_sleeps() {
        let mut idle = park();
        let pauses = [100, 107, 108, 117, 118].map(|us| idle.idle(at_us(us)));
        assert_eq!(pauses, [Pause::None, Pause::None, Pause::Yield, Pause::Yield, Pause::Sleep]);
    }

    #[test]
    fn spinning_in_vain_gets_shorter_and_work_makes_it_longer() {
        let mut idle = park();
        idle.idle(at_us(0));
        assert_eq!(idle.idle(at_us(18)), Pause::Sleep);
        idle.busy();
        idle.idle(at_us(100));
        assert_eq!(idle.idle(at_us(104)), Pause::Yield);
        idle.busy();
        idle.idle(at_us(200));
        assert_eq!(idle.idle(at_us(207)), Pause::None);
    }

    #[test]
    fn spin_and_yield_never_sleep() {
        for (strategy, pause) in [(IdleStrategy::Spin, Pause::None), (IdleStrategy::Yield, Pause::Yield)] {
            let mut idle = Idle::new(strategy);
            assert_eq!([0, 1_000_000].map(|us| idle.idle(at_us(us))), [pause; 2]);
        }
    }
}
