//! An agent's side: the applications of its host, and whether run control is still there.

use alloc::collections::BTreeMap;
use alloc::string::String;

use base::time::Time;

use super::lease::{Lease, Leases};
use super::words::{Errand, Order, Word};

/// What a driver does for an agent.
pub trait HouseholdDriver {
    /// Starts an application.
    ///
    /// # Errors
    /// It cannot be started, for this reason.
    fn start(&mut self, errand: &Errand) -> Result<(), String>;
    /// Ends what was started so at once, if it has not ended.
    fn kill(&mut self, number: u32);
    /// Says this to run control.
    fn say(&mut self, word: Word);
}

/// The applications of a host, which live for as long as run control is there.
#[derive(Debug)]
pub struct Household {
    leases: Leases,
    lease: Lease,
    stage: Stage,
    /// Those that live, each with whether it is to end.
    living: BTreeMap<u32, bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Run control is there.
    Serving,
    /// Its connection has ended. Applications notice that by their own, and close their files until then.
    Left { until: Time },
    /// All are to end at once.
    Ending,
}

impl Household {
    /// Without applications; run control was heard just now.
    pub fn new(now: Time, leases: Leases) -> Self {
        let lease = Lease::new(now, leases.of_control());
        Self { leases, lease, stage: Stage::Serving, living: BTreeMap::new() }
    }

    /// Run control orders something.
    pub fn on_order(&mut self, driver: &mut dyn HouseholdDriver, order: Order) {
        self.lease.hear();
        if self.stage != Stage::Serving {
            return;
        }
        match order {
            Order::Beat => {}
            Order::Start(errand) => match driver.start(&errand) {
                Ok(()) => _ = self.living.insert(errand.number, false),
                Err(how) => driver.say(Word::Ended { number: errand.number, how }),
            },
            Order::End(number) => {
                if let Some(is_to_end) = self.living.get_mut(&number) {
                    *is_to_end = true;
                    driver.kill(number);
                }
            }
        }
    }

    /// An application has ended.
    pub fn on_ended(&mut self, driver: &mut dyn HouseholdDriver, number: u32, how: String) {
        if self.living.remove(&number).is_some() && self.stage == Stage::Serving {
            driver.say(Word::Ended { number, how });
        }
    }

    /// The connection to run control has ended: nobody orders anything any more.
    pub fn on_left(&mut self, now: Time) {
        if self.stage == Stage::Serving {
            self.stage = Stage::Left { until: now + self.leases.of_control() };
        }
    }

    /// To be called when [`Household::next_deadline`] has come, behind all orders that have.
    pub fn on_deadline(&mut self, now: Time, driver: &mut dyn HouseholdDriver) {
        let is_over = match self.stage {
            Stage::Serving => self.lease.look(now),
            Stage::Left { until } => until <= now,
            Stage::Ending => false,
        };
        if is_over {
            self.stage = Stage::Ending;
            self.living.keys().for_each(|number| driver.kill(*number));
        }
    }

    /// When [`Household::on_deadline`] is wanted.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.stage {
            Stage::Serving => Some(self.lease.next_look()),
            Stage::Left { until } => Some(until),
            Stage::Ending => None,
        }
    }

    /// Whether run control is there, as far as this agent knows.
    pub fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Whether nothing is left to do: run control is gone, and all applications have ended.
    pub fn is_over(&self) -> bool {
        self.stage != Stage::Serving && self.living.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::vec;
    use alloc::vec::Vec;
    use base::ids::{Incarnation, NodeId};
    use core::time::Duration;

    #[derive(Default)]
    struct Seen {
        cannot: bool,
        started: Vec<u32>,
        killed: Vec<u32>,
        said: Vec<Word>,
    }

    impl HouseholdDriver for Seen {
        fn start(&mut self, errand: &Errand) -> Result<(), String> {
            if self.cannot {
                return Err("no such program".to_owned());
            }
            self.started.push(errand.number);
            Ok(())
        }

        fn kill(&mut self, number: u32) {
            self.killed.push(number);
        }

        fn say(&mut self, word: Word) {
            self.said.push(word);
        }
    }

    fn start(number: u32) -> Order {
        Order::Start(Errand {
            number,
            node: NodeId(1),
            life: Incarnation::FIRST,
            secret: [0; 16],
            name: "ros-1".to_owned(),
            join: String::new(),
            options: Vec::new(),
        })
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn household() -> (Household, Seen) {
        (Household::new(at(0), Leases::new(Duration::from_secs(1))), Seen::default())
    }

    #[test]
    fn applications_start_and_end_on_order() {
        let (mut household, mut seen) = household();
        household.on_order(&mut seen, start(1));
        household.on_order(&mut seen, start(2));
        household.on_order(&mut seen, Order::End(2));
        household.on_order(&mut seen, Order::End(3));
        assert_eq!((&seen.started, &seen.killed), (&vec![1, 2], &vec![2]));
        household.on_ended(&mut seen, 2, "killed by SIGKILL".to_owned());
        household.on_ended(&mut seen, 2, "killed by SIGKILL".to_owned());
        assert_eq!(seen.said, [Word::Ended { number: 2, how: "killed by SIGKILL".to_owned() }]);
        seen.cannot = true;
        household.on_order(&mut seen, start(3));
        assert_eq!(seen.said[1..], [Word::Ended { number: 3, how: "no such program".to_owned() }]);
        assert!(!household.is_over());
    }

    #[test]
    fn without_a_word_of_run_control_all_end() {
        let (mut household, mut seen) = household();
        household.on_order(&mut seen, start(1));
        for ms in (0..=20_000).step_by(250) {
            household.on_order(&mut seen, Order::Beat);
            household.on_deadline(at(ms), &mut seen);
        }
        assert!(seen.killed.is_empty());
        let over = (20_000..30_000).step_by(250).find(|ms| {
            household.on_deadline(at(*ms), &mut seen);
            !seen.killed.is_empty()
        });
        assert!((22_000..=22_750).contains(&over.unwrap()), "{over:?}");
        assert!(!household.is_over() && household.next_deadline().is_none());
        household.on_order(&mut seen, start(2));
        household.on_ended(&mut seen, 1, "killed by SIGKILL".to_owned());
        assert!(household.is_over() && seen.started == [1] && seen.said.is_empty());
    }

    #[test]
    fn who_is_left_closes_its_files_or_is_ended() {
        let (mut household, mut seen) = household();
        (1..=2).for_each(|number| household.on_order(&mut seen, start(number)));
        household.on_left(at(100));
        household.on_left(at(1000));
        household.on_ended(&mut seen, 1, "exited with status 1".to_owned());
        household.on_deadline(at(2099), &mut seen);
        assert!(seen.killed.is_empty() && seen.said.is_empty());
        assert_eq!(household.next_deadline(), Some(at(2100)));
        household.on_deadline(at(2100), &mut seen);
        assert_eq!(seen.killed, [2]);
        household.on_ended(&mut seen, 2, "killed by SIGKILL".to_owned());
        assert!(household.is_over());
    }
}
