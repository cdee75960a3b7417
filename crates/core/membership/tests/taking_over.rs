//! Lives of run control follow one another while two agents keep applications going. Lives die, stop and wake up, connections break, and
//! applications die: all drawn from a seed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use base::ids::{Incarnation, NodeId};
use base::random::Random;
use base::time::Time;
use control::states::State;
use membership::agents::words::{Errand, Order, Word};
use membership::agents::{Household, HouseholdDriver, Inheritance, Leases, Resident, Roster, RosterDriver, agent};
use membership::challenge::Member;

#[test]
fn who_takes_over_knows_all_that_live_and_former_lives_are_not_obeyed() {
    let mut taken_over = 0;
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        taken_over += world.controls.len() - 1;
        world.settle();
    }
    assert!(taken_over > 2 * SEEDS as usize, "{taken_over}");
}

#[test]
fn without_run_control_nothing_is_left_after_two_leases() {
    for seed in 1..=SEEDS {
        let mut world = World::new(seed);
        for _ in 0..STEPS {
            world.step();
        }
        world.controls.iter_mut().for_each(|control| control.is_stopped = true);
        let now = world.now;
        while world.hosts.iter().any(|host| !host.processes.living.is_empty()) {
            world.tick();
            assert!(world.now <= now + 3 * LEASE, "seed {seed}: something lives on");
        }
    }
}

/// Two hosts with agents, and run control in its lives.
struct World {
    now: Time,
    random: Random,
    hosts: Vec<Host>,
    /// The last one is the newest life.
    controls: Vec<Control>,
    next_link: usize,
    seed: u64,
}

struct Host {
    household: Household,
    processes: Processes,
    /// Its connection, and by which life it was made.
    link: Option<(usize, usize)>,
    to_control: VecDeque<Word>,
    to_agent: VecDeque<Order>,
}

/// What an agent has started.
#[derive(Default)]
struct Processes {
    living: BTreeMap<u32, Member>,
    dying: Vec<u32>,
    words: Vec<Word>,
    /// The life of run control that is obeyed.
    obeyed: usize,
}

struct Control {
    roster: Roster,
    hands: Hands,
    is_stopped: bool,
}

/// What a life of run control was told, and wants to say.
#[derive(Default)]
struct Hands {
    said: Vec<(usize, Order)>,
    closed: Vec<usize>,
    /// Applications that live as far as it knows.
    living: BTreeSet<NodeId>,
    /// Those that somebody at their host has stopped.
    stopped: BTreeSet<NodeId>,
    /// Told to be over, since the last look.
    ended: Vec<NodeId>,
}

impl World {
    /// All applications run for the first life.
    fn new(seed: u64) -> Self {
        let hosts = (0..HOSTS).map(|_| Host {
            household: Household::new(Time::ZERO, Leases::new(LEASE), Incarnation::FIRST),
            processes: Processes::default(),
            link: None,
            to_control: VecDeque::new(),
            to_agent: VecDeque::new(),
        });
        let hosts = hosts.collect();
        let mut world =
            Self { now: Time::ZERO, random: Random::new(seed), hosts, controls: Vec::new(), next_link: 0, seed };
        let mut control = Control::new();
        for node in 1..=APPLICATIONS {
            control.roster.start(Time::ZERO, &mut control.hands, host_of(NodeId(node)), errand(node));
        }
        world.controls.push(control);
        for host in 0..HOSTS {
            world.connect(host, 0, agent(host));
        }
        (0..4).for_each(|_| world.tick());
        world
    }

    fn step(&mut self) {
        self.tick();
        let newest = self.controls.len() - 1;
        match self.random.below(24) {
            0 => self.take_over(),
            1 => self.controls[newest].is_stopped = true,
            2 => {
                let woken = self.random.below(self.controls.len() as u64) as usize;
                self.controls[woken].is_stopped = false;
            }
            3 => {
                let host = self.random.below(HOSTS as u64) as usize;
                self.lose(host);
            }
            4 => {
                let host = self.random.below(HOSTS as u64) as usize;
                let first = self.hosts[host].processes.living.keys().next().copied();
                self.hosts[host].processes.dying.extend(first);
            }
            // Somebody there stops one, or all.
            6 => {
                let host = self.random.below(HOSTS as u64) as usize;
                let Host { household, processes, .. } = &mut self.hosts[host];
                let first = processes.living.values().next().map(|(node, _)| name_of(*node));
                let names: Vec<&str> = first.iter().map(String::as_str).filter(|_| self.random.chance(0.8)).collect();
                // One that nobody serves refuses.
                let _ = household.stop(processes, &names);
            }
            // It comes once more, or a former one tries to come back.
            5 => {
                let former = self.random.below(self.controls.len() as u64) as usize;
                let host = self.random.below(HOSTS as u64) as usize;
                self.call(host, former);
            }
            _ => {}
        }
        self.check();
    }

    /// Time goes on by a quarter of a beat; what was said is heard by those that are not stopped.
    fn tick(&mut self) {
        self.now = self.now + LEASE / 16;
        for host in 0..HOSTS {
            self.hear(host);
        }
        for control in self.controls.iter_mut().filter(|control| !control.is_stopped) {
            control.roster.on_deadline(self.now, &mut control.hands);
        }
        self.carry();
    }

    fn hear(&mut self, place: usize) {
        let Host { household, processes, link, to_control, to_agent } = &mut self.hosts[place];
        for order in to_agent.drain(..) {
            let obeyed = processes.obeyed;
            household.on_order(self.now, processes, order);
            assert_eq!(link.map(|(_, by)| by), Some(obeyed), "orders of another life, seed {}", self.seed);
        }
        for number in core::mem::take(&mut processes.dying) {
            if processes.living.remove(&number).is_some() {
                household.on_ended(processes, number, "killed".into());
            }
        }
        household.on_deadline(self.now, processes);
        to_control.extend(processes.words.drain(..));
        // It says so four times in a lease.
        to_control.push_back(Word::Beat(Default::default()));
        let Some((link, by)) = *link else { return to_control.clear() };
        if !self.controls[by].is_stopped {
            let Control { roster, hands, .. } = &mut self.controls[by];
            to_control.drain(..).for_each(|word| roster.on_word(hands, link, word));
        }
    }

    /// What run control says reaches agents over connections that are there.
    fn carry(&mut self) {
        for (by, control) in self.controls.iter_mut().enumerate() {
            for (link, order) in control.hands.said.drain(..) {
                let its = self.hosts.iter_mut().find(|host| host.link == Some((link, by)));
                its.into_iter().for_each(|host| host.to_agent.push_back(order.clone()));
            }
            for link in control.hands.closed.drain(..) {
                let its = self.hosts.iter_mut().find(|host| host.link == Some((link, by)));
                if let Some(host) = its {
                    (host.link, host.to_agent) = (None, VecDeque::new());
                    host.household.on_left(self.now);
                }
            }
        }
    }

    fn connect(&mut self, host: usize, by: usize, member: NodeId) {
        let link = self.next_link;
        self.next_link += 1;
        (self.hosts[host].link, self.hosts[host].processes.obeyed) = (Some((link, by)), by);
        self.hosts[host].to_agent.clear();
        let Control { roster, hands, .. } = &mut self.controls[by];
        let life = Incarnation(1);
        roster.on_met(self.now, hands, link, (member, life));
        self.carry();
    }

    /// A connection breaks: both ends see it.
    fn lose(&mut self, host: usize) {
        let Some((link, by)) = self.hosts[host].link.take() else { return };
        self.hosts[host].to_agent.clear();
        self.hosts[host].to_control.clear();
        self.hosts[host].household.on_left(self.now);
        let Control { roster, hands, .. } = &mut self.controls[by];
        roster.on_lost(self.now, hands, link, "cut");
        self.carry();
    }

    /// The next life begins with what the newest one knew.
    fn take_over(&mut self) {
        let newest = self.controls.last().unwrap();
        let living = newest.hands.living.union(&newest.hands.stopped).map(|node| (*node, host_of(*node)));
        let applications: BTreeMap<NodeId, usize> = living.collect();
        let called: BTreeSet<usize> = applications.values().copied().collect();
        let mut control = Control::new();
        control.hands.living = applications.keys().copied().collect();
        let inheritance = Inheritance {
            control: Incarnation(self.controls.len() as u32),
            agents: vec![Incarnation(1); HOSTS],
            applications,
            called: called.clone(),
        };
        control.roster.inherit(self.now, inheritance);
        self.controls.push(control);
        let by = self.controls.len() - 1;
        called.into_iter().for_each(|host| self.call(host, by));
    }

    /// A life of run control calls the agent of a host.
    fn call(&mut self, host: usize, by: usize) {
        let life = Incarnation(by as u32);
        let Host { household, processes, .. } = &mut self.hosts[host];
        // An agent that has nothing left to do is gone.
        if household.is_over() {
            let Control { roster, hands, .. } = &mut self.controls[by];
            return roster.on_not_found(self.now, hands, host, "its agent is gone");
        }
        let (obeyed, was_over) = (processes.obeyed, household.next_deadline().is_none());
        let is_let_in = household.on_return(self.now, processes, life);
        assert_eq!(is_let_in, by > obeyed && !was_over, "seed {}", self.seed);
        if !is_let_in {
            let Control { roster, hands, .. } = &mut self.controls[by];
            return roster.on_not_found(self.now, hands, host, "turned away");
        }
        // The connection of the former life ends; that one sees it when it looks.
        if let Some((link, former)) = self.hosts[host].link.take() {
            let Control { roster, hands, .. } = &mut self.controls[former];
            roster.on_lost(self.now, hands, link, "its agent has left");
            hands.said.clear();
        }
        self.hosts[host].to_control.clear();
        self.connect(host, by, agent(host));
    }

    /// Whoever is obeyed knows of nobody who does not live, once all that was said is heard; and no life is there twice.
    fn check(&self) {
        for host in &self.hosts {
            let nodes: BTreeSet<NodeId> = host.processes.living.values().map(|(node, _)| *node).collect();
            assert_eq!(nodes.len(), host.processes.living.len(), "somebody lives twice, seed {}", self.seed);
        }
    }

    /// With a last life that nobody disturbs, it knows exactly those that live.
    fn settle(&mut self) {
        self.take_over();
        (0..64).for_each(|_| self.tick());
        let Control { roster, hands, .. } = self.controls.last().unwrap();
        assert!(!roster.seeks(), "seed {}", self.seed);
        let lives = |host: &Host| host.processes.living.values().map(|(node, _)| *node).collect::<Vec<_>>();
        let living: BTreeSet<NodeId> = self.hosts.iter().flat_map(lives).collect();
        assert_eq!(living, hands.living, "seed {}", self.seed);
        let is_stopped = |resident: &Resident| resident.number.is_none() && resident.words.starts_with("stopped by");
        let serving = self.hosts.iter().filter(|host| host.household.is_serving());
        let stopped =
            serving.flat_map(|host| host.household.residents().filter(is_stopped)).map(|resident| resident.name);
        let known: BTreeSet<String> = hands.stopped.iter().map(|node| name_of(*node)).collect();
        assert!(stopped.into_iter().all(|name| known.contains(&name)), "{known:?}, seed {}", self.seed);
        let unique: BTreeSet<NodeId> = hands.ended.iter().copied().collect();
        assert_eq!(unique.len(), hands.ended.len(), "told twice, seed {}", self.seed);
    }
}

impl Control {
    fn new() -> Self {
        let names = (0..HOSTS).map(|host| format!("host {host}"));
        let mut roster = Roster::new(names, Leases::new(LEASE), Duration::from_secs(1000));
        let mut hands = Hands::default();
        roster.set_state(Time::ZERO, &mut hands, State::Running);
        Self { roster, hands, is_stopped: false }
    }
}

impl HouseholdDriver for Processes {
    fn start(&mut self, errand: &Errand) -> Result<(), String> {
        self.living.insert(errand.number, (errand.node, errand.life));
        Ok(())
    }

    fn kill(&mut self, number: u32) {
        self.dying.push(number);
    }

    fn say(&mut self, word: Word) {
        self.words.push(word);
    }

    fn obey(&mut self, control: Incarnation) {
        assert!(control.0 as usize > self.obeyed);
    }
}

impl RosterDriver for Hands {
    fn launch(&mut self, _: usize, _: Member) -> Result<(), String> {
        Ok(())
    }

    fn end_launcher(&mut self, _: usize) {}

    fn say(&mut self, link: usize, order: &Order) {
        if let Order::Start(errand) = order {
            self.living.insert(errand.node);
        }
        self.said.push((link, order.clone()));
    }

    fn close(&mut self, link: usize) {
        self.closed.push(link);
    }

    fn ended(&mut self, node: NodeId, _: String) {
        self.living.remove(&node);
        self.ended.push(node);
    }

    fn stopped(&mut self, node: NodeId, _: String) {
        self.living.remove(&node);
        self.stopped.insert(node);
    }

    fn wanted(&mut self, node: NodeId) {
        self.stopped.remove(&node);
    }

    fn used(&mut self, _: NodeId, _: u64) {}

    fn listens(&mut self, _: usize, _: Member, _: &str) {}

    fn found(&mut self, (node, _): Member, silent: Duration) {
        assert!(self.living.contains(&node) && silent <= 3 * LEASE);
    }
}

fn errand(node: u16) -> Errand {
    Errand {
        number: 0,
        node: NodeId(node),
        life: Incarnation::FIRST,
        secret: [0; 16],
        name: name_of(NodeId(node)),
        join: String::new(),
        options: Vec::new(),
    }
}

fn name_of(node: NodeId) -> String {
    format!("a-{}", node.0)
}

fn host_of(node: NodeId) -> usize {
    usize::from(node.0) % HOSTS
}

const HOSTS: usize = 2;
const APPLICATIONS: u16 = 6;
const LEASE: Duration = Duration::from_secs(16);
const SEEDS: u64 = 500;
const STEPS: usize = 100;
