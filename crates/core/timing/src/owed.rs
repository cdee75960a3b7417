//! What level 1 owes: offers that it is late with by its own fault.

use core::time::Duration;

use base::time::Time;

use crate::lateness::LATENESS_MAX;

/// Until when offers wait for room, since level 1 was not called in time: its driver slept too long, or had no processor.
///
/// In time, they would have found the room that there was between them; together they find the windows full. So nothing is vetoed
/// as long again as level 1 was late, [`LATENESS_MAX`] at most, or until it has caught up and there is room. What waits then, and who
/// comes in time, finds dead time: to wait for longer would keep a system full that has to recover.
#[derive(Clone, Debug, Default)]
pub struct Owed {
    until: Time,
}

impl Owed {
    /// Level 1 is called; the oldest offer that is not taken was due then.
    pub fn on_call(&mut self, now: Time, due: Time) {
        let late = now.since(self.until(due)).min(LATENESS_MAX);
        if late >= LATENESS_MIN && (!self.is_late() || now.since(due) <= WAIT_MAX) {
            self.until = now + late;
        }
    }

    /// Until when an offer that was due at this time waits for room.
    pub fn until(&self, due: Time) -> Time {
        due.max(self.until)
    }

    /// Whether level 1 was late, and may have to catch up.
    pub fn is_late(&self) -> bool {
        self.until != Time::ZERO
    }

    /// Nothing is due any more, and there is room.
    pub fn catch_up(&mut self) {
        *self = Self::default();
    }
}

/// Every driver is a little late. If that counted, an offer that nobody has room for would wait, and be looked at, for ever.
const LATENESS_MIN: Duration = Duration::from_micros(100);

/// An offer that has waited for so long is not kept waiting by further lateness.
const WAIT_MAX: Duration = LATENESS_MAX.saturating_mul(2);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    #[test]
    fn offers_wait_as_long_again_as_level_1_was_late() {
        let mut owed = Owed::default();
        owed.on_call(ms(20), ms(20));
        assert_eq!(owed.until(ms(20)), ms(20), "in time");
        owed.on_call(ms(27), ms(20));
        assert_eq!([20, 27, 30].map(|due| owed.until(ms(due))), [ms(34); 3]);
        owed.on_call(ms(30), ms(20));
        assert_eq!(owed.until(ms(20)), ms(34), "called in time");
        owed.on_call(ms(36), ms(20));
        assert_eq!(owed.until(ms(20)), ms(38), "late again");
        owed.catch_up();
        assert_eq!(owed.until(ms(37)), ms(37));
    }

    /// Offers that nobody had room for kept a driver awake for ever.
    #[test]
    fn a_driver_that_is_always_a_little_late_is_in_time() {
        let mut owed = Owed::default();
        owed.on_call(ms(20) + Duration::from_micros(99), ms(20));
        assert!(!owed.is_late());
        owed.on_call(ms(27), ms(20));
        owed.on_call(owed.until(ms(20)) + Duration::from_nanos(34), ms(20));
        assert_eq!(owed.until(ms(20)), ms(34));
    }

    #[test]
    fn an_offer_does_not_wait_for_ever_for_a_driver_that_is_always_late() {
        let mut owed = Owed::default();
        let mut now = ms(27);
        let calls = (0..1000).take_while(|_| {
            owed.on_call(now, ms(20));
            let waits = now < owed.until(ms(20));
            now = now.max(owed.until(ms(20))) + Duration::from_millis(7);
            waits
        });
        assert!((5..10).contains(&calls.count()));
    }

    #[test]
    fn who_was_away_for_long_does_not_wait_for_as_long() {
        let mut owed = Owed::default();
        owed.on_call(ms(50_000), ms(10));
        assert_eq!(owed.until(ms(10)), ms(50_050));
    }
}
