//! An agent's side: the applications of its host, what somebody there wants of them, and whether run control is still there.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use control::states::State;

use super::lease::{Lease, Leases};
use super::words::{Census, Ended, Errand, Living, Order, Word};

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
    /// This life of run control is obeyed from now on: applications that start join it.
    fn obey(&mut self, control: Incarnation);
}

/// The applications of a host, which live for as long as run control is there, or comes back in time.
#[derive(Debug)]
pub struct Household {
    leases: Leases,
    lease: Lease,
    stage: Stage,
    /// The life of run control that is obeyed. Its former ones are not.
    control: Incarnation,
    /// Whether run control has left in order: nobody comes back.
    is_released: bool,
    /// When run control said something last.
    heard_at: Time,
    /// Of the partition, as run control has said last.
    partition: State,
    /// Those that live, by their errands.
    living: BTreeMap<u32, Here>,
    /// How the last life of each ended that does not live.
    ended: BTreeMap<NodeId, Ended>,
    /// Those of them that run control has not started again, and did not tell to end, either.
    away: BTreeMap<NodeId, Away>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Run control is there.
    Serving,
    /// Its connection has ended. Applications notice that by themselves. If it does not come back, they close their files until then.
    Left { until: Time },
    /// All are to end at once.
    Ending,
}

#[derive(Debug)]
struct Here {
    node: NodeId,
    life: Incarnation,
    name: String,
    /// Who has told it to end, if anybody has.
    ends: Option<By>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    RunControl,
    Here,
}

#[derive(Debug)]
struct Away {
    name: String,
    how: String,
    /// Somebody here has stopped it.
    is_stopped: bool,
    /// What came of the wish to have it back, if there was one.
    wish: Option<Wish>,
}

#[derive(Debug)]
enum Wish {
    Said,
    Refused(String),
}

/// An application of a host, as its agent sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resident {
    /// `ros-1`.
    pub name: String,
    /// That of its errand, if it lives.
    pub number: Option<u32>,
    /// Whether run control does not start it, though somebody here wants it back.
    pub is_refused: bool,
    /// How it has ended, and what came of a wish to have it back. Empty while it lives.
    pub words: String,
}

/// What somebody at the host wants cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// No such application is here.
    #[error("{name} is not on this host: expected one of {here}")]
    Unknown {
        /// The name that was given.
        name: String,
        /// All that are here.
        here: String,
    },
    /// It has ended already.
    #[error("{name} does not live: {how}")]
    Ended {
        /// Its name.
        name: String,
        /// How it has ended.
        how: String,
    },
    /// It lives.
    #[error("{0} lives already")]
    Lives(String),
    /// Nobody here has stopped it.
    #[error("{name} was not stopped here: {how}; run control starts it again, or `weir ctl boot` does")]
    NotStopped {
        /// Its name.
        name: String,
        /// How it has ended.
        how: String,
    },
    /// Nobody gives orders any more.
    #[error("run control is gone: what is left here ends by itself")]
    Left,
}

impl Household {
    /// Without applications; this life of run control was heard just now.
    pub fn new(now: Time, leases: Leases, control: Incarnation) -> Self {
        let lease = Lease::new(now, leases.of_control());
        let (living, ended, away) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (stage, is_released, partition) = (Stage::Serving, false, State::Absent);
        Self { leases, lease, stage, control, is_released, heard_at: now, partition, living, ended, away }
    }

    /// Run control has proved that it is in this life. Whether it is obeyed from now on: it is back in time, in a life behind the one
    /// that was obeyed. Then it is told who lives here, before anything else.
    pub fn on_return(&mut self, now: Time, driver: &mut dyn HouseholdDriver, control: Incarnation) -> bool {
        if self.stage == Stage::Ending || control <= self.control {
            return false;
        }
        let living = self.living.iter().map(|(number, Here { node, life, .. })| Living {
            number: *number,
            node: *node,
            life: *life,
        });
        let (living, ended) = (living.collect(), self.ended.values().cloned().collect());
        driver.say(Word::Census(Census { silent: now.since(self.heard_at), living, ended }));
        (self.stage, self.control, self.heard_at) = (Stage::Serving, control, now);
        self.lease = Lease::new(now, self.leases.of_control());
        driver.obey(control);
        true
    }

    /// Run control orders something.
    pub fn on_order(&mut self, now: Time, driver: &mut dyn HouseholdDriver, order: Order) {
        self.lease.hear();
        self.heard_at = now;
        if self.stage != Stage::Serving {
            return;
        }
        match order {
            Order::Beat(state) => self.partition = state,
            Order::Release => self.is_released = true,
            Order::Start(errand) => self.on_start(driver, errand),
            Order::End(number) => {
                if let Some(here) = self.living.get_mut(&number) {
                    here.ends = Some(By::RunControl);
                    driver.kill(number);
                }
            }
            Order::Refuse { node, why } => {
                self.away.get_mut(&node).into_iter().for_each(|away| away.wish = Some(Wish::Refused(why.clone())));
            }
        }
    }

    fn on_start(&mut self, driver: &mut dyn HouseholdDriver, errand: Errand) {
        let Errand { number, node, life, .. } = errand;
        let here = match driver.start(&errand) {
            Ok(()) => {
                (_, _) = (self.ended.remove(&node), self.away.remove(&node));
                self.living.insert(number, Here { node, life, name: errand.name, ends: None });
                return;
            }
            Err(how) => (Here { node, life, name: errand.name, ends: None }, how),
        };
        self.note_end(driver, number, here);
    }

    /// An application has ended.
    pub fn on_ended(&mut self, driver: &mut dyn HouseholdDriver, number: u32, how: String) {
        if let Some(here) = self.living.remove(&number) {
            self.note_end(driver, number, (here, how));
        }
    }

    /// What is said now may not be heard: who comes back is told again.
    fn note_end(&mut self, driver: &mut dyn HouseholdDriver, number: u32, (here, how): (Here, String)) {
        let Here { node, life, name, ends } = here;
        let is_stopped = ends == Some(By::Here);
        let how = if is_stopped { STOPPED.to_owned() } else { how };
        self.ended.insert(node, Ended { node, life, how: how.clone(), is_stopped });
        if ends != Some(By::RunControl) {
            self.away.insert(node, Away { name, how: how.clone(), is_stopped, wish: None });
        }
        if self.stage == Stage::Serving {
            driver.say(if is_stopped { Word::Stopped { number, how } } else { Word::Ended { number, how } });
        }
    }

    /// Somebody at this host stops applications, all that live if none is named. Run control is told when they have ended.
    ///
    /// # Errors
    /// One of them is not there to be stopped: then none is.
    pub fn stop(&mut self, driver: &mut dyn HouseholdDriver, names: &[&str]) -> Result<Vec<String>, NotDone> {
        self.all_known(names)?;
        let is_meant = |living: &&mut Here| names.is_empty() || names.contains(&living.name.as_str());
        let ended = self.away.values().find(|away| names.contains(&away.name.as_str()));
        if let Some(Away { name, how, .. }) = ended {
            return Err(NotDone::Ended { name: name.clone(), how: how.clone() });
        }
        let mut stopped = Vec::new();
        for (number, living) in self.living.iter_mut().map(|(number, living)| (*number, living)) {
            if is_meant(&living) {
                living.ends.get_or_insert(By::Here);
                stopped.push(living.name.clone());
                driver.kill(number);
            }
        }
        Ok(stopped)
    }

    /// Somebody at this host wants those back that were stopped here, all of them if none is named. Run control gives them their
    /// next life, or refuses.
    ///
    /// # Errors
    /// One of them was not stopped here: then none is asked for.
    pub fn start(&mut self, driver: &mut dyn HouseholdDriver, names: &[&str]) -> Result<Vec<String>, NotDone> {
        self.all_known(names)?;
        if let Some(living) = self.living.values().find(|living| names.contains(&living.name.as_str())) {
            return Err(NotDone::Lives(living.name.clone()));
        }
        let is_named = |away: &Away| names.contains(&away.name.as_str());
        let own = self.away.values().find(|away| is_named(away) && !away.is_stopped);
        if let Some(Away { name, how, .. }) = own {
            return Err(NotDone::NotStopped { name: name.clone(), how: how.clone() });
        }
        let mut wanted = Vec::new();
        for (node, away) in self.away.iter_mut().filter(|(_, away)| away.is_stopped) {
            if names.is_empty() || is_named(away) {
                away.wish = Some(Wish::Said);
                wanted.push(away.name.clone());
                driver.say(Word::Wanted(*node));
            }
        }
        Ok(wanted)
    }

    fn all_known(&self, names: &[&str]) -> Result<(), NotDone> {
        if self.stage != Stage::Serving {
            return Err(NotDone::Left);
        }
        let here: Vec<String> = self.residents().map(|resident| resident.name).collect();
        match names.iter().find(|name| !here.iter().any(|other| other == *name)) {
            Some(name) => Err(NotDone::Unknown { name: (*name).to_owned(), here: here.join(", ") }),
            None => Ok(()),
        }
    }

    /// Since run control was heard last.
    pub fn silence(&self, now: Time) -> core::time::Duration {
        now.since(self.heard_at)
    }

    /// The applications of this host: those that live, and those that have ended and were not started again.
    pub fn residents(&self) -> impl Iterator<Item = Resident> {
        let living = self.living.iter().map(|(number, living)| Resident {
            name: living.name.clone(),
            number: Some(*number),
            is_refused: false,
            words: String::new(),
        });
        living.chain(self.away.values().map(|away| {
            let wish = match &away.wish {
                None => String::new(),
                Some(Wish::Said) => "; run control was asked to start it".to_owned(),
                Some(Wish::Refused(why)) => alloc::format!("; run control does not start it: {why}"),
            };
            let is_refused = matches!(away.wish, Some(Wish::Refused(_)));
            Resident { name: away.name.clone(), number: None, is_refused, words: away.how.clone() + &wish }
        }))
    }

    /// What this host does, in the words of the [state table](control::states): what the partition does, with those of its applications that
    /// live here.
    pub fn state(&self) -> State {
        let has_lost_one = self.away.values().any(|away| !away.is_stopped) && self.partition != State::Absent;
        match self.stage {
            Stage::Serving if has_lost_one => State::Fault,
            _ if self.living.is_empty() => State::Absent,
            Stage::Serving => self.partition,
            Stage::Left { .. } | Stage::Ending => State::Draining,
        }
    }

    /// The connection to run control has ended: nobody orders anything, unless it comes back.
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

    /// Whether run control may still order something, over the connection that is there.
    pub fn is_serving(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Whether nothing is left to do: run control is gone, and all applications have ended. One that may come back in time has to find
    /// this host, whatever it had heard of the partition last.
    pub fn is_over(&self) -> bool {
        let awaits_control = matches!(self.stage, Stage::Left { .. }) && !self.is_released;
        self.stage != Stage::Serving && self.living.is_empty() && !awaits_control
    }
}

/// What run control and people are told.
const STOPPED: &str = "stopped by the local agent";

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;
    use core::time::Duration;

    #[derive(Default)]
    struct Seen {
        cannot: bool,
        started: Vec<u32>,
        killed: Vec<u32>,
        said: Vec<Word>,
        obeyed: Option<Incarnation>,
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

        fn obey(&mut self, control: Incarnation) {
            self.obeyed = Some(control);
        }
    }

    /// Of `ros-1`, the node 1, by the errand 1, and so on.
    fn start(number: u32) -> Order {
        Order::Start(errand(number))
    }

    fn errand(number: u32) -> Errand {
        Errand {
            number,
            node: NodeId(number as u16),
            life: Incarnation::FIRST,
            secret: [0; 16],
            name: alloc::format!("ros-{number}"),
            join: String::new(),
            options: Vec::new(),
        }
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn household() -> (Household, Seen) {
        (Household::new(at(0), Leases::new(Duration::from_secs(1)), Incarnation::FIRST), Seen::default())
    }

    #[test]
    fn applications_start_and_end_on_order() {
        let (mut household, mut seen) = household();
        household.on_order(at(0), &mut seen, start(1));
        household.on_order(at(0), &mut seen, start(2));
        household.on_order(at(0), &mut seen, Order::End(2));
        household.on_order(at(0), &mut seen, Order::End(3));
        assert_eq!((&seen.started, &seen.killed), (&vec![1, 2], &vec![2]));
        household.on_ended(&mut seen, 2, "killed by SIGKILL".to_owned());
        household.on_ended(&mut seen, 2, "killed by SIGKILL".to_owned());
        assert_eq!(seen.said, [Word::Ended { number: 2, how: "killed by SIGKILL".to_owned() }]);
        seen.cannot = true;
        household.on_order(at(0), &mut seen, start(3));
        assert_eq!(seen.said[1..], [Word::Ended { number: 3, how: "no such program".to_owned() }]);
        assert!(!household.is_over());
    }

    #[test]
    fn without_a_word_of_run_control_all_end() {
        let (mut household, mut seen) = household();
        household.on_order(at(0), &mut seen, start(1));
        for ms in (0..=20_000).step_by(250) {
            household.on_order(at(ms), &mut seen, Order::Beat(State::Running));
            household.on_deadline(at(ms), &mut seen);
        }
        assert!(seen.killed.is_empty());
        let over = (20_000..30_000).step_by(250).find(|ms| {
            household.on_deadline(at(*ms), &mut seen);
            !seen.killed.is_empty()
        });
        assert!((22_000..=22_750).contains(&over.unwrap()), "{over:?}");
        assert!(!household.is_over() && household.next_deadline().is_none());
        household.on_order(at(0), &mut seen, start(2));
        household.on_ended(&mut seen, 1, "killed by SIGKILL".to_owned());
        assert!(household.is_over() && seen.started == [1] && seen.said.is_empty());
    }

    #[test]
    fn run_control_that_comes_back_in_time_is_told_who_lives_and_obeyed() {
        let (mut household, mut seen) = household();
        (1..=3).for_each(|number| household.on_order(at(0), &mut seen, start(number)));
        household.on_left(at(100));
        household.on_ended(&mut seen, 2, "killed by SIGKILL".to_owned());
        assert!(seen.said.is_empty(), "nobody hears it");
        assert!(!household.on_return(at(1000), &mut seen, Incarnation::FIRST), "the life that has left");
        assert!(household.on_return(at(1000), &mut seen, Incarnation(2)));
        let [Word::Census(Census { silent, living, ended })] = &seen.said[..] else { panic!("{:?}", seen.said) };
        assert_eq!((*silent, living.len(), ended.len()), (Duration::from_secs(1), 2, 1));
        assert_eq!((living[0].number, living[1].number, &ended[0].how[..]), (1, 3, "killed by SIGKILL"));
        assert_eq!(seen.obeyed, Some(Incarnation(2)));
        assert!(!household.on_return(at(1001), &mut seen, Incarnation(1)), "a former life wakes up");
        household.on_deadline(at(2900), &mut seen);
        household.on_order(at(2900), &mut seen, Order::End(3));
        assert!(household.is_serving() && seen.killed == [3]);
        household.on_left(at(3000));
        household.on_deadline(at(5000), &mut seen);
        assert!(!household.on_return(at(5001), &mut seen, Incarnation(3)), "too late");
    }

    #[test]
    fn who_is_left_closes_its_files_or_is_ended() {
        let (mut household, mut seen) = household();
        (1..=2).for_each(|number| household.on_order(at(0), &mut seen, start(number)));
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

    #[test]
    fn who_is_stopped_here_stays_away_until_run_control_has_it_back() {
        let (mut household, mut seen) = household();
        (1..=2).for_each(|number| household.on_order(at(0), &mut seen, start(number)));
        household.on_order(at(0), &mut seen, Order::Beat(State::Running));
        assert_eq!(household.stop(&mut seen, &["ros-1"]), Ok(vec!["ros-1".to_owned()]));
        household.on_ended(&mut seen, 1, "killed by SIGKILL".to_owned());
        assert_eq!(seen.said, [Word::Stopped { number: 1, how: STOPPED.to_owned() }]);
        assert_eq!(household.state(), State::Running, "the others run");
        assert!(matches!(household.stop(&mut seen, &["ros-1"]), Err(NotDone::Ended { .. })));
        assert_eq!(household.start(&mut seen, &["ros-2"]), Err(NotDone::Lives("ros-2".to_owned())));

        assert_eq!(household.start(&mut seen, &[]), Ok(vec!["ros-1".to_owned()]));
        assert_eq!(seen.said[1..], [Word::Wanted(NodeId(1))]);
        household.on_order(at(0), &mut seen, Order::Refuse { node: NodeId(1), why: "the run has ended".to_owned() });
        let words: Vec<String> = household.residents().map(|resident| resident.words).collect();
        let refused = "stopped by the local agent; run control does not start it: the run has ended";
        assert_eq!(words, ["", refused]);
        household.on_order(at(0), &mut seen, Order::Start(Errand { number: 3, ..errand(1) }));
        assert!(household.residents().all(|resident| resident.number.is_some() && resident.words.is_empty()));

        household.stop(&mut seen, &[]).unwrap();
        assert_eq!(seen.killed, [1, 2, 3]);
        (2..=3).for_each(|number| household.on_ended(&mut seen, number, "killed by SIGKILL".to_owned()));
        assert_eq!(household.state(), State::Absent);
    }

    /// What it has heard of the partition may be out of date.
    #[test]
    fn without_applications_a_host_waits_for_run_control_that_has_not_left_in_order() {
        for (state, is_released) in State::ALL.into_iter().flat_map(|state| [(state, false), (state, true)]) {
            let (mut household, mut seen) = household();
            household.on_order(at(0), &mut seen, start(1));
            household.on_order(at(0), &mut seen, Order::Beat(state));
            household.on_ended(&mut seen, 1, "killed by SIGKILL".to_owned());
            if is_released {
                household.on_order(at(100), &mut seen, Order::Release);
            }
            household.on_left(at(100));
            assert_eq!(household.is_over(), is_released, "{state:?}");
            household.on_deadline(at(2099), &mut seen);
            assert_eq!(household.is_over(), is_released, "{state:?}");
            household.on_deadline(at(2100), &mut seen);
            assert!(household.is_over(), "{state:?}");
        }
    }

    #[test]
    fn who_dies_is_a_fault_and_nobody_here_starts_it() {
        let (mut household, mut seen) = household();
        (1..=2).for_each(|number| household.on_order(at(0), &mut seen, start(number)));
        household.on_order(at(0), &mut seen, Order::Beat(State::Running));
        household.on_ended(&mut seen, 1, "killed by SIGSEGV".to_owned());
        assert_eq!(household.state(), State::Fault);
        let error = household.start(&mut seen, &["ros-1"]).unwrap_err().to_string();
        assert!(error.starts_with("ros-1 was not stopped here: killed by SIGSEGV"), "{error}");
        let error = household.stop(&mut seen, &["sfi-1"]).unwrap_err().to_string();
        assert_eq!(error, "sfi-1 is not on this host: expected one of ros-2, ros-1");
        household.on_left(at(100));
        assert_eq!((household.state(), household.stop(&mut seen, &[])), (State::Draining, Err(NotDone::Left)));
    }

    /// One that run control ends is not missed.
    #[test]
    fn a_host_whose_applications_have_ended_on_order_is_absent() {
        let (mut household, mut seen) = household();
        household.on_order(at(0), &mut seen, start(1));
        household.on_order(at(0), &mut seen, Order::End(1));
        household.on_ended(&mut seen, 1, "killed by SIGKILL".to_owned());
        assert_eq!((household.state(), household.residents().count()), (State::Absent, 0));
    }
}
