//! Run control's side: the hosts of a partition, their agents, and who has which application.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use control::states::State;

use super::lease::{Lease, Leases};
use super::words::{Census, Errand, Living, Order, Word};
use crate::challenge::Member;

/// What a driver does for run control.
pub trait RosterDriver {
    /// Starts the agent of a host, which is to prove that it is this member.
    ///
    /// # Errors
    /// It cannot be started, for this reason.
    fn launch(&mut self, host: usize, agent: Member) -> Result<(), String>;
    /// Ends what was to start the agent of a host, and is there still.
    fn end_launcher(&mut self, host: usize);
    /// Says this over a connection.
    fn say(&mut self, link: usize, order: &Order);
    /// Ends a connection.
    fn close(&mut self, link: usize);
    /// An application has ended, or was not started.
    fn ended(&mut self, node: NodeId, how: String);
    /// Somebody at its host has stopped an application.
    fn stopped(&mut self, node: NodeId, how: String);
    /// Somebody at its host wants an application back that was stopped there.
    fn wanted(&mut self, node: NodeId);
    /// An application whose end is told next has ended in this life, which a former life of run control may have started.
    fn was(&mut self, _member: Member) {}
    /// An application that lives has had so much processor time, in µs.
    fn used(&mut self, node: NodeId, cpu_us: u64);
    /// The agent of a host listens there for run control that comes back.
    fn listens(&mut self, host: usize, agent: Member, address: &str);
    /// The agent of a host shows there what it measures.
    fn shows(&mut self, _host: usize, _address: &str) {}
    /// The agent of a host has left out so many beats, since it began.
    fn left_out(&mut self, _host: usize, _beats: u32) {}
    /// An application that a former life of run control had started lives in this life, and its agent was without run control for so long.
    fn found(&mut self, member: Member, silent: Duration);
}

/// The hosts of a partition, as run control knows them. Hosts are numbered as in the configuration; their agents are the members from 1 on.
#[derive(Debug)]
pub struct Roster {
    leases: Leases,
    /// How long an agent may take to come.
    start_timeout: Duration,
    hosts: Vec<Host>,
    /// By the number of the errand.
    applications: BTreeMap<u32, Application>,
    /// Those that somebody at their host has stopped, and the host.
    stopped: BTreeMap<NodeId, usize>,
    next_errand: u32,
    /// Of the partition.
    state: State,
    /// Those that former lives of run control had started, with their hosts, until it is known whether they live.
    sought: BTreeMap<NodeId, usize>,
}

/// What run control knows of agents that its former life had launched.
#[derive(Clone, Debug, Default)]
pub struct Inheritance {
    /// The present life of run control.
    pub control: Incarnation,
    /// The newest life of the agent of each host.
    pub agents: Vec<Incarnation>,
    /// The applications that may live, with their hosts.
    pub applications: BTreeMap<NodeId, usize>,
    /// The hosts whose agents are called.
    pub called: BTreeSet<usize>,
}

#[derive(Debug)]
struct Host {
    name: String,
    /// Of its agent.
    life: Incarnation,
    stage: Stage,
    /// When nothing of its former agents lives any more.
    empty_at: Option<Time>,
}

#[derive(Debug)]
enum Stage {
    /// It has no agent.
    Empty,
    /// Its agent is on its way.
    Launched { until: Time },
    /// Its agent is called by run control that comes back.
    Called { until: Time },
    /// Its agent is there.
    Here { link: usize, lease: Lease, next_beat: Time },
}

#[derive(Debug)]
struct Application {
    host: usize,
    node: NodeId,
    /// What its agent is told when it has come.
    waits: Option<Errand>,
}

impl Roster {
    /// Of hosts with these names, without agents.
    pub fn new(names: impl IntoIterator<Item = String>, leases: Leases, start_timeout: Duration) -> Self {
        let host = |name| Host { name, life: Incarnation::FIRST, stage: Stage::Empty, empty_at: None };
        let hosts = names.into_iter().map(host).collect();
        let (applications, stopped, sought) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let state = State::Absent;
        Self { leases, start_timeout, hosts, applications, stopped, next_errand: 1, state, sought }
    }

    /// Run control comes back in another life, and calls the agents of these hosts. Each has a lease to answer. What lives there and is
    /// not among the applications ends.
    pub fn inherit(&mut self, now: Time, inheritance: Inheritance) {
        let Inheritance { control, agents, applications, called } = inheritance;
        // No former life of run control has given these numbers.
        self.next_errand = control.0.wrapping_shl(ERRANDS_BITS) | 1;
        for (host, life) in self.hosts.iter_mut().zip(agents) {
            host.life = life;
        }
        for place in called {
            self.hosts[place].stage = Stage::Called { until: now + self.leases.of_agent() };
        }
        self.sought = applications;
    }

    /// The agent of a host cannot be called, for this reason.
    pub fn on_not_found(&mut self, now: Time, driver: &mut dyn RosterDriver, host: usize, reason: &str) {
        if matches!(self.hosts[host].stage, Stage::Called { .. }) {
            self.lose(now, driver, host, reason);
        }
    }

    /// Whether it is not known yet of some application whether it lives.
    pub fn seeks(&self) -> bool {
        !self.sought.is_empty()
    }

    /// An application is to start on a host. The number of its errand comes from here.
    pub fn start(&mut self, now: Time, driver: &mut dyn RosterDriver, host: usize, errand: Errand) {
        let number = self.next_errand;
        self.next_errand += 1;
        let errand = Errand { number, ..errand };
        let node = errand.node;
        self.stopped.remove(&node);
        let waits = match &self.hosts[host].stage {
            Stage::Here { link, .. } => {
                driver.say(*link, &Order::Start(errand));
                None
            }
            Stage::Empty | Stage::Launched { .. } | Stage::Called { .. } => Some(errand),
        };
        self.applications.insert(number, Application { host, node, waits });
        self.launch(now, driver, host);
    }

    /// An application is to end at once.
    pub fn kill(&mut self, driver: &mut dyn RosterDriver, node: NodeId) {
        let of_it = self.applications.iter().filter(|(_, app)| app.node == node);
        let numbers: Vec<u32> = of_it.map(|(number, _)| *number).collect();
        for number in numbers {
            let app = &self.applications[&number];
            match &self.hosts[app.host].stage {
                Stage::Here { link, .. } => driver.say(*link, &Order::End(number)),
                Stage::Empty | Stage::Launched { .. } | Stage::Called { .. } => {
                    self.over(driver, number, "was not started");
                }
            }
        }
    }

    /// Somebody has proved to be this member. Who is not waited for has to go.
    pub fn on_met(&mut self, now: Time, driver: &mut dyn RosterDriver, link: usize, (node, life): Member) {
        let place = usize::from(node.0).checked_sub(1).filter(|place| *place < self.hosts.len());
        let awaited = |place: &usize| {
            let host = &self.hosts[*place];
            host.life == life && matches!(host.stage, Stage::Launched { .. } | Stage::Called { .. })
        };
        let Some(place) = place.filter(awaited) else { return driver.close(link) };
        let lease = Lease::new(now, self.leases.of_agent());
        self.hosts[place].stage = Stage::Here { link, lease, next_beat: now };
        for app in self.applications.values_mut().filter(|app| app.host == place) {
            app.waits.take().into_iter().for_each(|errand| driver.say(link, &Order::Start(errand)));
        }
        self.beat(now, driver);
    }

    /// An agent says something.
    pub fn on_word(&mut self, driver: &mut dyn RosterDriver, link: usize, word: Word) {
        let Some(place) = self.behind(link) else { return };
        if let Stage::Here { lease, .. } = &mut self.hosts[place].stage {
            lease.hear();
        }
        let is_its = |app: &&Application| app.host == place;
        match word {
            Word::Beat(beat) => {
                driver.left_out(place, beat.left_out);
                for (number, cpu_us) in beat.cpu_us {
                    let app = self.applications.get(&number).filter(is_its);
                    app.into_iter().for_each(|app| driver.used(app.node, cpu_us));
                }
            }
            Word::Ended { number, how } => {
                if self.applications.get(&number).filter(is_its).is_some() {
                    self.over(driver, number, &how);
                }
            }
            Word::Stopped { number, how } => {
                if let Some(node) = self.applications.get(&number).filter(is_its).map(|app| app.node) {
                    self.applications.remove(&number);
                    self.stopped.insert(node, place);
                    driver.stopped(node, how);
                }
            }
            Word::Wanted(node) => {
                if self.stopped.get(&node) == Some(&place) {
                    driver.wanted(node);
                }
            }
            Word::Listens(address) => driver.listens(place, (agent(place), self.hosts[place].life), &address),
            Word::Shows(address) => driver.shows(place, &address),
            Word::Census(census) => self.on_census(driver, (place, link), census),
        }
    }

    /// An application that somebody at its host wants back does not start, for this reason.
    pub fn refuse(&self, driver: &mut dyn RosterDriver, node: NodeId, why: String) {
        let stage = self.stopped.get(&node).map(|place| &self.hosts[*place].stage);
        if let Some(Stage::Here { link, .. }) = stage {
            driver.say(*link, &Order::Refuse { node, why });
        }
    }

    /// The state of the partition, which agents are told.
    pub fn set_state(&mut self, now: Time, driver: &mut dyn RosterDriver, state: State) {
        if self.state != state {
            self.state = state;
            self.hosts.iter_mut().for_each(Host::beat_now);
            self.beat(now, driver);
        }
    }

    /// Run control leaves in order: no agent waits for it to come back.
    pub fn release(&self, driver: &mut dyn RosterDriver) {
        for host in &self.hosts {
            if let Stage::Here { link, .. } = host.stage {
                driver.say(link, &Order::Release);
            }
        }
    }

    /// An agent tells run control that comes back who lives on its host. Nobody else lives there.
    fn on_census(&mut self, driver: &mut dyn RosterDriver, (place, link): (usize, usize), census: Census) {
        let Census { silent, living, ended } = census;
        for Living { number, node, life } in living {
            if self.sought.get(&node) == Some(&place) {
                self.sought.remove(&node);
                self.applications.insert(number, Application { host: place, node, waits: None });
                driver.found((node, life), silent);
            } else {
                driver.say(link, &Order::End(number));
            }
        }
        for (node, _) in self.sought.extract_if(.., |_, host| *host == place) {
            let how = ended.iter().find(|ended| ended.node == node);
            how.into_iter().for_each(|ended| driver.was((node, ended.life)));
            match how.map(|ended| (ended.how.clone(), ended.is_stopped)) {
                Some((how, true)) => {
                    self.stopped.insert(node, place);
                    driver.stopped(node, how);
                }
                Some((how, false)) => driver.ended(node, how),
                None => driver.ended(node, "it ended while run control was away".into()),
            }
        }
    }

    /// A connection has ended, for this reason.
    pub fn on_lost(&mut self, now: Time, driver: &mut dyn RosterDriver, link: usize, reason: &str) {
        if let Some(place) = self.behind(link) {
            self.lose(now, driver, place, reason);
        }
    }

    /// What was to start an agent has ended. One that is there already needs it no more.
    pub fn on_launcher_ended(&mut self, now: Time, driver: &mut dyn RosterDriver, host: usize, how: &str) {
        if matches!(self.hosts[host].stage, Stage::Launched { .. }) {
            self.lose(now, driver, host, &format!("its launcher {how} before its agent came"));
        }
    }

    /// To be called when [`Roster::next_deadline`] has come, behind all words that have.
    pub fn on_deadline(&mut self, now: Time, driver: &mut dyn RosterDriver) {
        for place in 0..self.hosts.len() {
            let how = match &mut self.hosts[place].stage {
                Stage::Here { lease, .. } => lease
                    .look(now)
                    .then(|| format!("its agent was silent for {:?} (processes.lease)", self.leases.of_agent())),
                Stage::Called { until } => (*until <= now)
                    .then(|| format!("its agent did not answer within {:?} (processes.lease)", self.leases.of_agent())),
                Stage::Launched { until } => (*until <= now).then(|| {
                    format!("its agent did not come within {:?} (processes.start_timeout)", self.start_timeout)
                }),
                Stage::Empty => None,
            };
            how.into_iter().for_each(|how| self.lose(now, driver, place, &how));
            let host = &mut self.hosts[place];
            host.empty_at = host.empty_at.filter(|at| now < *at);
        }
        self.beat(now, driver);
        self.launch_missing(now, driver);
    }

    /// When [`Roster::on_deadline`] is wanted.
    pub fn next_deadline(&self) -> Option<Time> {
        let of_stage = |host: &Host| match &host.stage {
            Stage::Empty => None,
            Stage::Launched { until } | Stage::Called { until } => Some(*until),
            Stage::Here { lease, next_beat, .. } => Some(lease.next_look().min(*next_beat)),
        };
        self.hosts.iter().flat_map(|host| [of_stage(host), host.empty_at]).flatten().min()
    }

    /// Whether something may live on a host that was lost.
    pub fn has_unknown(&self) -> bool {
        self.hosts.iter().any(|host| host.empty_at.is_some())
    }

    /// Whether the agent of a host is there.
    pub fn is_here(&self, host: usize) -> bool {
        matches!(self.hosts[host].stage, Stage::Here { .. })
    }

    fn beat(&mut self, now: Time, driver: &mut dyn RosterDriver) {
        let between = self.leases.beat();
        for host in &mut self.hosts {
            if let Stage::Here { link, next_beat, .. } = &mut host.stage
                && *next_beat <= now
            {
                driver.say(*link, &Order::Beat(self.state));
                *next_beat = now + between;
            }
        }
    }

    /// Launches the agents of hosts that are to have applications.
    fn launch_missing(&mut self, now: Time, driver: &mut dyn RosterDriver) {
        let waiting = self.applications.values().filter(|app| app.waits.is_some());
        let wanted: BTreeSet<usize> = waiting.map(|app| app.host).collect();
        wanted.into_iter().for_each(|place| self.launch(now, driver, place));
    }

    /// Launches the agent of a host that has none, if nothing of former ones lives there.
    fn launch(&mut self, now: Time, driver: &mut dyn RosterDriver, place: usize) {
        let host = &mut self.hosts[place];
        if host.empty_at.is_some() || !matches!(host.stage, Stage::Empty) {
            return;
        }
        host.life = Incarnation(host.life.0 + 1);
        host.stage = Stage::Launched { until: now + self.start_timeout };
        if let Err(cause) = driver.launch(place, (agent(place), host.life)) {
            self.lose(now, driver, place, &format!("its agent cannot be launched: {cause}"));
        }
    }

    /// A host is lost with all its applications.
    fn lose(&mut self, now: Time, driver: &mut dyn RosterDriver, place: usize, reason: &str) {
        let host = &mut self.hosts[place];
        if let Stage::Here { link, .. } = host.stage {
            driver.close(link);
        }
        // One that was called may have applications, and one that was launched has none.
        let is_called = matches!(host.stage, Stage::Called { .. });
        if is_called || matches!(host.stage, Stage::Here { .. }) {
            host.empty_at = Some(now + self.leases.until_empty());
        }
        host.stage = Stage::Empty;
        driver.end_launcher(place);
        let how = format!("host {} is lost: {reason}", host.name);
        // What has not begun to start waits for the agent that is launched in the place of one that was called in vain.
        let is_lost = |app: &Application| app.host == place && !(is_called && app.waits.is_some());
        let lost = self.applications.iter().filter(|(_, app)| is_lost(app));
        let lost: Vec<u32> = lost.map(|(number, _)| *number).collect();
        lost.into_iter().for_each(|number| self.over(driver, number, &how));
        // Whoever could want these back is gone.
        self.stopped.iter().filter(|(_, its)| **its == place).for_each(|(node, _)| driver.wanted(*node));
        self.stopped.retain(|_, its| *its != place);
        let sought = self.sought.extract_if(.., |_, host| *host == place);
        sought.for_each(|(node, _)| driver.ended(node, how.clone()));
    }

    fn over(&mut self, driver: &mut dyn RosterDriver, number: u32, how: &str) {
        self.applications.remove(&number).into_iter().for_each(|app| driver.ended(app.node, how.into()));
    }

    fn behind(&self, link: usize) -> Option<usize> {
        let is_it = |host: &Host| matches!(host.stage, Stage::Here { link: its, .. } if its == link);
        self.hosts.iter().position(is_it)
    }
}

impl Host {
    fn beat_now(&mut self) {
        if let Stage::Here { next_beat, .. } = &mut self.stage {
            *next_beat = Time::ZERO;
        }
    }
}
/// Numbers of errands that one life of run control gives.
const ERRANDS_BITS: u32 = 20;

/// The member that the agent of a host is.
///
/// # Panics
/// Never: a partition has fewer than 65,535 hosts.
pub fn agent(host: usize) -> NodeId {
    NodeId(u16::try_from(host + 1).expect("a partition has fewer than 65,535 hosts"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::words::{Beat, Ended};
    use alloc::borrow::ToOwned;
    use alloc::vec;

    #[derive(Default)]
    struct Seen {
        cannot: bool,
        launched: Vec<(usize, Member)>,
        launchers_ended: usize,
        said: Vec<(usize, Order)>,
        closed: Vec<usize>,
        ended: Vec<(u16, String)>,
        stopped: Vec<u16>,
        wanted: Vec<u16>,
        used: Vec<(u16, u64)>,
        listening: Vec<(usize, Member, String)>,
        shown: Vec<(usize, String)>,
        left_out: Vec<(usize, u32)>,
        found: Vec<(u16, u32, u128)>,
    }

    impl RosterDriver for Seen {
        fn launch(&mut self, host: usize, agent: Member) -> Result<(), String> {
            self.launched.push((host, agent));
            if self.cannot { Err("no such program".to_owned()) } else { Ok(()) }
        }

        fn end_launcher(&mut self, _: usize) {
            self.launchers_ended += 1;
        }

        fn say(&mut self, link: usize, order: &Order) {
            self.said.push((link, order.clone()));
        }

        fn close(&mut self, link: usize) {
            self.closed.push(link);
        }

        fn ended(&mut self, node: NodeId, how: String) {
            self.ended.push((node.0, how));
        }

        fn stopped(&mut self, node: NodeId, _: String) {
            self.stopped.push(node.0);
        }

        fn wanted(&mut self, node: NodeId) {
            self.wanted.push(node.0);
        }

        fn used(&mut self, node: NodeId, cpu_us: u64) {
            self.used.push((node.0, cpu_us));
        }

        fn listens(&mut self, host: usize, agent: Member, address: &str) {
            self.listening.push((host, agent, address.to_owned()));
        }

        fn shows(&mut self, host: usize, address: &str) {
            self.shown.push((host, address.to_owned()));
        }

        fn left_out(&mut self, host: usize, beats: u32) {
            self.left_out.push((host, beats));
        }

        fn found(&mut self, (node, life): Member, silent: Duration) {
            self.found.push((node.0, life.0, silent.as_millis()));
        }
    }

    impl Seen {
        /// Numbers of what was started and ended, in order.
        fn orders(&self) -> Vec<i64> {
            let number = |order: &Order| match order {
                Order::Beat(_) | Order::Refuse { .. } | Order::Release => None,
                Order::Start(errand) => Some(i64::from(errand.number)),
                Order::End(number) => Some(-i64::from(*number)),
            };
            self.said.iter().filter_map(|(_, order)| number(order)).collect()
        }
    }

    fn errand(node: u16) -> Errand {
        Errand {
            number: 0,
            node: NodeId(node),
            life: Incarnation::FIRST,
            secret: [0; 16],
            name: String::new(),
            join: String::new(),
            options: Vec::new(),
        }
    }

    fn at(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    /// Two hosts; the first has an agent with two applications, on connection 7.
    fn served() -> (Roster, Seen, Member) {
        let (s, names) = (Duration::from_secs, ["a".to_owned(), "b".to_owned()]);
        let (mut roster, mut seen) = (Roster::new(names, Leases::new(s(1)), s(30)), Seen::default());
        roster.start(at(0), &mut seen, 0, errand(1));
        roster.start(at(0), &mut seen, 0, errand(2));
        let (host, agent) = seen.launched[0];
        assert_eq!((host, agent.0, seen.launched.len()), (0, NodeId(1), 1));
        assert!(seen.said.is_empty());
        roster.on_met(at(0), &mut seen, 7, agent);
        assert_eq!(seen.orders(), [1, 2]);
        assert!(roster.is_here(0) && !roster.is_here(1));
        (roster, seen, agent)
    }

    #[test]
    fn applications_start_and_end_through_the_agent_of_their_host() {
        let (mut roster, mut seen, _) = served();
        roster.start(at(1), &mut seen, 0, errand(3));
        roster.kill(&mut seen, NodeId(2));
        assert_eq!(seen.orders(), [1, 2, 3, -2]);
        roster.on_word(&mut seen, 7, Word::Ended { number: 2, how: "killed by SIGKILL".to_owned() });
        roster.on_word(&mut seen, 7, Word::Ended { number: 2, how: "again".to_owned() });
        roster.on_word(&mut seen, 9, Word::Ended { number: 1, how: "by somebody else".to_owned() });
        assert_eq!(seen.ended, [(2, "killed by SIGKILL".to_owned())]);
        roster.on_word(&mut seen, 7, Word::Beat(Beat { left_out: 3, cpu_us: vec![(1, 500), (2, 9), (44, 9)] }));
        assert_eq!((&seen.used[..], &seen.left_out[..]), (&[(1, 500)][..], &[(0, 3)][..]));
        for link in [7, 9] {
            roster.on_word(&mut seen, link, Word::Shows("10.0.0.2:9100".to_owned()));
        }
        assert_eq!(seen.shown, [(0, "10.0.0.2:9100".to_owned())], "nobody else is believed");
    }

    #[test]
    fn who_is_not_waited_for_has_to_go() {
        let (mut roster, mut seen, agent) = served();
        for (link, member) in
            [(8, agent), (9, (NodeId(2), Incarnation::FIRST)), (10, (NodeId(0), agent.1)), (11, (NodeId(300), agent.1))]
        {
            roster.on_met(at(0), &mut seen, link, member);
        }
        assert_eq!(seen.closed, [8, 9, 10, 11]);
        assert!(roster.is_here(0));
    }

    #[test]
    fn a_silent_agent_is_lost_with_its_applications() {
        let (mut roster, mut seen, agent) = served();
        for ms in (0..10_000).step_by(250) {
            roster.on_word(&mut seen, 7, Word::Beat(Beat::default()));
            roster.on_deadline(at(ms), &mut seen);
        }
        assert!(
            seen.ended.is_empty()
                && seen.said.iter().filter(|(_, order)| matches!(order, Order::Beat(_))).count() >= 40
        );
        let lost = (10_000..20_000).step_by(250).find(|ms| {
            roster.on_deadline(at(*ms), &mut seen);
            !seen.ended.is_empty()
        });
        let lost = lost.unwrap();
        assert!((10_750..=11_250).contains(&lost), "{lost}");
        assert_eq!(seen.ended.iter().map(|(node, _)| *node).collect::<Vec<_>>(), [1, 2]);
        assert!(seen.ended[0].1.contains("host a is lost: its agent was silent"), "{:?}", seen.ended);
        assert_eq!((&seen.closed, roster.has_unknown()), (&vec![7], true));

        // It is wanted again: first all that may live there has to end.
        roster.start(at(lost), &mut seen, 0, errand(1));
        roster.on_deadline(at(lost + 2999), &mut seen);
        assert_eq!(seen.launched.len(), 1);
        roster.on_deadline(at(lost + 3000), &mut seen);
        assert!(!roster.has_unknown());
        let (_, again) = seen.launched[1];
        assert!(again.0 == agent.0 && again.1 > agent.1);
        // The former one is not let in, the next one is.
        roster.on_met(at(lost + 3001), &mut seen, 8, agent);
        roster.on_met(at(lost + 3001), &mut seen, 9, again);
        assert_eq!((&seen.closed[..], &seen.orders()[..]), (&[7, 8][..], &[1, 2, 3][..]));
    }

    #[test]
    fn a_connection_that_ends_is_a_loss_at_once() {
        let (mut roster, mut seen, _) = served();
        roster.on_lost(at(5), &mut seen, 6, "of somebody else");
        roster.on_lost(at(5), &mut seen, 7, "its agent has ended");
        assert_eq!(seen.ended.len(), 2);
        assert!(roster.has_unknown() && seen.launchers_ended == 1);
        roster.kill(&mut seen, NodeId(1));
        assert_eq!(seen.ended.len(), 2);
    }

    #[test]
    fn an_agent_that_does_not_come_is_a_loss() {
        let (mut roster, mut seen, _) = served();
        roster.start(at(0), &mut seen, 1, errand(3));
        roster.on_launcher_ended(at(1), &mut seen, 1, "exited with status 255");
        assert!(seen.ended[0].1.contains("host b is lost: its launcher exited with status 255"), "{:?}", seen.ended);
        assert!(!roster.has_unknown(), "nothing was started there");
        roster.start(at(2), &mut seen, 1, errand(3));
        roster.on_deadline(at(30_002), &mut seen);
        assert!(seen.ended.iter().any(|(_, how)| how.contains("did not come within 30s")), "{:?}", seen.ended);
        seen.cannot = true;
        roster.start(at(30_003), &mut seen, 1, errand(3));
        assert!(seen.ended.last().unwrap().1.contains("cannot be launched: no such program"), "{:?}", seen.ended);
        seen.cannot = false;
        roster.start(at(30_004), &mut seen, 1, errand(4));
        roster.kill(&mut seen, NodeId(4));
        assert_eq!(seen.ended.last().unwrap(), &(4, "was not started".to_owned()));
    }

    #[test]
    fn an_agent_says_where_it_listens() {
        let (mut roster, mut seen, agent) = served();
        roster.on_word(&mut seen, 7, Word::Listens("10.0.0.2:4000".to_owned()));
        assert_eq!(seen.listening, [(0, agent, "10.0.0.2:4000".to_owned())]);
    }

    /// Applications 1 to 3 on the first host and 4 on the second, of a former life; agents are in life 5.
    fn taking_over() -> (Roster, Seen) {
        let (s, names) = (Duration::from_secs, ["a".to_owned(), "b".to_owned()]);
        let (mut roster, seen) = (Roster::new(names, Leases::new(s(1)), s(30)), Seen::default());
        let applications = [(1, 0), (2, 0), (3, 0), (4, 1)].map(|(node, host)| (NodeId(node), host)).into();
        let agents = vec![Incarnation(5); 2];
        let called = [0, 1].into();
        roster.inherit(at(0), Inheritance { control: Incarnation(1), agents, applications, called });
        (roster, seen)
    }

    #[test]
    fn who_takes_over_between_two_runs_starts_applications_below_the_agents_that_are_there() {
        let (s, names) = (Duration::from_secs, ["a".to_owned(), "b".to_owned()]);
        let (mut roster, mut seen) = (Roster::new(names, Leases::new(s(1)), s(30)), Seen::default());
        let (agents, applications) = (vec![Incarnation(5); 2], BTreeMap::new());
        roster.inherit(at(0), Inheritance { control: Incarnation(1), agents, applications, called: [0, 1].into() });
        roster.start(at(1), &mut seen, 0, errand(1));
        roster.start(at(1), &mut seen, 1, errand(2));
        assert!(seen.launched.is_empty(), "they have agents");
        roster.on_met(at(2), &mut seen, 7, (NodeId(1), Incarnation(5)));
        let living = vec![Living { number: 9, node: NodeId(1), life: Incarnation(3) }];
        let census = Census { silent: Duration::ZERO, living, ended: Vec::new() };
        roster.on_word(&mut seen, 7, Word::Census(census));
        assert_eq!(seen.orders(), [1 << 20 | 1, -9], "what has outlived the former life ends");
        // What is to start on a host whose agent does not answer waits for another agent.
        roster.on_not_found(at(3), &mut seen, 1, "its agent cannot be called: no route");
        assert!(seen.ended.is_empty() && roster.has_unknown());
        roster.on_deadline(at(3003), &mut seen);
        assert_eq!(seen.launched, [(1, (NodeId(2), Incarnation(6)))]);
        roster.on_met(at(3004), &mut seen, 8, (NodeId(2), Incarnation(6)));
        assert_eq!(seen.orders()[2..], [1 << 20 | 2]);
    }

    #[test]
    fn who_takes_over_hears_who_lives() {
        let (mut roster, mut seen) = taking_over();
        roster.on_met(at(1), &mut seen, 7, (NodeId(1), Incarnation(5)));
        let living = [(9, 1, 0), (11, 2, 3), (12, 8, 0)].map(|(number, node, life)| Living {
            number,
            node: NodeId(node),
            life: Incarnation(life),
        });
        let ended = vec![Ended {
            node: NodeId(3),
            life: Incarnation::FIRST,
            how: "killed by SIGKILL".to_owned(),
            is_stopped: false,
        }];
        let census = Census { silent: Duration::from_millis(250), living: living.to_vec(), ended };
        roster.on_word(&mut seen, 7, Word::Census(census));
        assert_eq!(seen.found, [(1, 0, 250), (2, 3, 250)]);
        assert_eq!(seen.ended, [(3, "killed by SIGKILL".to_owned())]);
        assert_eq!(seen.orders(), [-12], "nobody knows it");
        assert!(roster.seeks());
        roster.on_not_found(at(2), &mut seen, 1, "its agent cannot be called: no route");
        assert!(!roster.seeks() && roster.has_unknown());
        assert_eq!(seen.ended[1..], [(4, "host b is lost: its agent cannot be called: no route".to_owned())]);
        roster.on_word(&mut seen, 7, Word::Ended { number: 11, how: "exited with status 1".to_owned() });
        assert_eq!(seen.ended[2..], [(2, "exited with status 1".to_owned())]);
        // Errands have numbers that no former life has given.
        roster.start(at(3), &mut seen, 0, errand(2));
        assert!(seen.orders()[1] > i64::from(u16::MAX), "{:?}", seen.orders());
    }

    #[test]
    fn an_agent_that_does_not_answer_who_takes_over_is_a_loss() {
        let (mut roster, mut seen) = taking_over();
        roster.on_met(at(1), &mut seen, 7, (NodeId(1), Incarnation(4)));
        assert_eq!(seen.closed, [7], "a former agent");
        roster.on_deadline(at(1000), &mut seen);
        assert_eq!(seen.ended.len(), 4);
        assert!(seen.ended[0].1.contains("did not answer within 1s"), "{:?}", seen.ended);
        assert!(roster.has_unknown() && !roster.seeks());
    }

    #[test]
    fn a_launcher_that_ends_behind_its_agent_is_no_loss() {
        let (mut roster, mut seen, _) = served();
        roster.on_launcher_ended(at(1), &mut seen, 0, "exited with status 0");
        assert!(seen.ended.is_empty() && roster.is_here(0));
    }

    #[test]
    fn who_is_stopped_at_its_host_is_wanted_back_from_there_alone() {
        let (mut roster, mut seen, agent) = served();
        roster.start(at(0), &mut seen, 1, errand(3));
        let other = seen.launched[1].1;
        roster.on_met(at(0), &mut seen, 8, other);
        roster.on_word(&mut seen, 8, Word::Stopped { number: 1, how: String::new() });
        roster.on_word(&mut seen, 7, Word::Wanted(NodeId(1)));
        assert!(seen.stopped.is_empty() && seen.wanted.is_empty(), "it lives, and is not of that host");
        roster.on_word(&mut seen, 7, Word::Stopped { number: 1, how: String::new() });
        roster.on_word(&mut seen, 8, Word::Wanted(NodeId(1)));
        roster.on_word(&mut seen, 7, Word::Wanted(NodeId(1)));
        assert_eq!((&seen.stopped[..], &seen.wanted[..]), (&[1][..], &[1][..]));
        roster.refuse(&mut seen, NodeId(1), "not now".to_owned());
        roster.refuse(&mut seen, NodeId(2), "it lives".to_owned());
        let refusals = seen.said.iter().filter(|(_, order)| matches!(order, Order::Refuse { .. }));
        assert_eq!(refusals.map(|(link, _)| *link).collect::<Vec<_>>(), [7]);
        roster.start(at(1), &mut seen, 0, errand(1));
        roster.on_word(&mut seen, 7, Word::Wanted(NodeId(1)));
        assert_eq!(seen.wanted.len(), 1, "it was started");
        roster.on_word(&mut seen, 7, Word::Stopped { number: 2, how: String::new() });
        roster.on_lost(at(2), &mut seen, 7, "its agent has ended");
        assert_eq!(seen.wanted, [1, 2], "nobody there can want it any more");
        assert_ne!(agent, other);
    }

    #[test]
    fn agents_hear_of_each_state_at_once() {
        let (mut roster, mut seen, _) = served();
        for state in [State::Running, State::Running, State::Draining] {
            roster.set_state(at(1), &mut seen, state);
        }
        let states: Vec<State> = seen
            .said
            .iter()
            .filter_map(|(_, order)| if let Order::Beat(state) = order { Some(*state) } else { None })
            .collect();
        assert_eq!(states, [State::Absent, State::Running, State::Draining]);
    }
}
