//! What an application takes for the time.

use std::time::Duration;

use base::time::Time;

/// The clock of a host as a driver reads it: it may step, but what a component is told never goes back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    ahead: Duration,
    behind: Duration,
    /// What has been read.
    not_before: Time,
}

impl Clock {
    pub(super) fn step_forward(&mut self, step: Duration) {
        self.ahead += step;
    }

    /// It stands still until it has made up for the step.
    pub(super) fn step_back(&mut self, now: Time, step: Duration) {
        self.not_before = self.at(now);
        self.behind += step;
    }

    /// What it says at this time.
    pub(super) fn at(&self, now: Time) -> Time {
        shifted(now, self.ahead, self.behind).max(self.not_before)
    }

    /// When it will say this, or zero if it has.
    pub(super) fn when(&self, reading: Time) -> Time {
        if reading <= self.not_before { Time::ZERO } else { shifted(reading, self.behind, self.ahead) }
    }
}

fn shifted(time: Time, forward: Duration, back: Duration) -> Time {
    Time::from_ns((time + forward).as_ns().saturating_sub(back.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_steps_back_stands_still_for_as_long() {
        let ms = |count: u64| Time::from_ns(count * 1_000_000);
        let mut clock = Clock::default();
        clock.step_forward(Duration::from_millis(5));
        assert_eq!((clock.at(ms(10)), clock.when(ms(15))), (ms(15), ms(10)));
        clock.step_back(ms(10), Duration::from_millis(7));
        assert_eq!([10, 16, 17, 18].map(|at| clock.at(ms(at))), [15, 15, 15, 16].map(ms));
        assert_eq!((clock.when(ms(15)), clock.when(ms(16))), (Time::ZERO, ms(18)));
    }
}
