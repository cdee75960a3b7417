//! For how long silence is borne.

use core::time::Duration;

use base::time::Time;

/// The times of a partition with agents, which all follow from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leases(Duration);

impl Leases {
    /// An agent that is silent for so long is lost.
    pub const fn new(length: Duration) -> Self {
        Self(length)
    }

    /// Each says something so often.
    pub fn beat(self) -> Duration {
        self.0 / LOOKS
    }

    /// How long run control bears the silence of an agent.
    pub const fn of_agent(self) -> Duration {
        self.0
    }

    /// How long an agent bears the silence of run control: longer, so that run control knows of the loss first.
    pub fn of_control(self) -> Duration {
        2 * self.0
    }

    /// When nothing lives any more on a host that was lost, whatever its agent could not say. Until then run control neither starts
    /// anything there nor reads what was left.
    pub fn until_empty(self) -> Duration {
        3 * self.0
    }
}

/// Whether somebody is heard often enough.
///
/// It counts looks, not time: who did not get a processor for long has not looked, and blames nobody for that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    between_looks: Duration,
    next_look: Time,
    /// Looks since the other one was heard.
    silent: u32,
}

impl Lease {
    /// One that begins now, and bears silence for so long.
    pub fn new(now: Time, length: Duration) -> Self {
        let between_looks = length / LOOKS;
        Self { between_looks, next_look: now + between_looks, silent: 0 }
    }

    /// The other one was heard.
    pub fn hear(&mut self) {
        self.silent = 0;
    }

    /// Looks if it is time to, when all that has come was heard. Whether the lease is over.
    pub fn look(&mut self, now: Time) -> bool {
        if self.next_look <= now {
            self.silent += 1;
            self.next_look = now + self.between_looks;
        }
        // The first look may come right behind a word.
        self.silent > LOOKS
    }

    /// When a look is wanted.
    pub const fn next_look(&self) -> Time {
        self.next_look
    }
}

/// Looks within a lease.
const LOOKS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(4);

    fn at(s: u64) -> Time {
        Time::from_ns(s * 1_000_000_000)
    }

    #[test]
    fn silence_ends_a_lease() {
        let mut lease = Lease::new(at(0), LENGTH);
        let over: Vec<u64> = (1..=6).filter(|second| lease.look(at(*second))).collect();
        assert_eq!(over, [5, 6]);
        lease.hear();
        assert!(!lease.look(at(7)));
        assert_eq!(lease.next_look(), at(8));
    }

    #[test]
    fn who_did_not_look_blames_nobody() {
        let mut lease = Lease::new(at(0), LENGTH);
        assert!(!lease.look(at(1000)));
        assert!(!lease.look(at(1000)) && !lease.look(at(1003)));
        lease.hear();
        assert!((1004..=1007).all(|second| !lease.look(at(second))));
        assert!(lease.look(at(1008)));
    }

    #[test]
    fn run_control_knows_first_and_waits_longest() {
        let leases = Leases::new(LENGTH);
        assert!(leases.beat() < leases.of_agent() && leases.of_agent() < leases.of_control());
        // Between the last word that an agent hears and its loss lies no more than a beat and a look.
        assert!(leases.of_control() + 2 * leases.beat() < leases.of_agent() + leases.until_empty());
    }

    extern crate alloc;
    use alloc::vec::Vec;
}
