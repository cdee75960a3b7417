//! How late a component is called.

use core::time::Duration;

use base::time::Time;

/// How late deadlines were met in the last half a second, or a second: a driver sleeps too long, or has no processor.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    since: Time,
    most: Duration,
    before: Duration,
}

impl Lateness {
    /// Work that was due at `deadline` is done now.
    pub fn note(&mut self, now: Time, deadline: Time) {
        let age = now.since(self.since);
        if age >= MEMORY {
            self.before = if age < 2 * MEMORY { self.most } else { Duration::ZERO };
            (self.since, self.most) = (now, Duration::ZERO);
        }
        self.most = self.most.max(now.since(deadline).min(LATENESS_MAX));
    }

    /// The most that was seen of late, [`LATENESS_MAX`] at most.
    pub fn recent(&self, now: Time) -> Duration {
        match now.since(self.since) {
            age if age < MEMORY => self.most.max(self.before),
            age if age < 2 * MEMORY => self.most,
            _ => Duration::ZERO,
        }
    }
}

/// Longer than processes take turns on a busy processor.
const MEMORY: Duration = Duration::from_millis(500);

/// What a source was owed before that is lost: it goes at once, and a switch has to hold it.
pub const LATENESS_MAX: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_is_remembered_for_a_while() {
        let ms = |ms: u64| Time::from_ns(ms * 1_000_000);
        let mut lateness = Lateness::default();
        let mut at = |now, deadline| {
            lateness.note(ms(now), ms(deadline));
            lateness.recent(ms(now)).as_millis()
        };
        assert_eq!([at(1_000, 993), at(1_010, 1_008), at(1_499, 1_490), at(1_600, 1_600)], [7, 7, 9, 9]);
        assert_eq!([at(2_100, 2_099), at(2_700, 2_700), at(9_000, 8_900)], [1, 1, 50]);
        assert_eq!([9_499, 9_999, 10_000].map(|now| lateness.recent(ms(now)).as_millis()), [50, 50, 0]);
    }
}
