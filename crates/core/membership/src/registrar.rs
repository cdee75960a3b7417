//! Run control's side of joining: who has joined, who is lost, who is started again.
//!
//! It knows the processes of a partition by their lives. A life joins once, over a connection on which it has proved who it is. When
//! its process has ended, the next life is started where that is wanted, or all are told that it will not return. Between two runs
//! all join again, in their first lives.

mod held;
mod lost;
mod taking_over;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base::ids::{Incarnation, NodeId, RunNumber};
use base::time::Time;
use dataflow::component::PeerState;
use dataflow::message::{Command, Envelope, Message, PeerPlace};
use dataflow::node::RUN_CONTROL;

use crate::NO_RUN;
use crate::challenge::Member;
use crate::passage::{Driver, LinkId, Medium, Strand, Way};
use crate::restarts::Restarts;
use crate::severity::Severity;
use held::Held;

pub use taking_over::{Legacy, MemberLeft};

/// What the registrar of a partition has to know.
#[derive(Clone, Debug)]
pub struct RegistrarParameters {
    /// All applications that have a process of their own.
    pub applicants: Vec<Applicant>,
    /// How long one that was started again may take until it is ready.
    pub start_timeout: Duration,
    /// How often an application is started again within the window.
    pub restarts: usize,
    /// See `restarts`.
    pub window: Duration,
}

/// A run that applications join.
#[derive(Clone, Debug)]
pub struct RunToJoin {
    /// Its number.
    pub number: RunNumber,
    /// What one is told that has joined.
    pub welcome: Message,
    /// Whether components here have a connection of their own to each process.
    pub shares: bool,
}

/// An application that is to join.
#[derive(Clone, Debug)]
pub struct Applicant {
    /// Its address.
    pub node: NodeId,
    /// `sfi-1`.
    pub name: String,
    /// What is done when it dies.
    pub after_death: AfterDeath,
}

/// What is done when an application dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterDeath {
    /// It is started again.
    Returns,
    /// Between two runs it is started again. A run cannot go on without it, and ends.
    ReturnsBetweenRuns,
    /// The run ends, and no other begins before all are started.
    EndsRun,
}

/// An application has no process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot start {name}: {cause}")]
pub struct NotStarted {
    /// `sfi-1`.
    pub name: String,
    /// What the driver has said.
    pub cause: String,
}

/// What a driver does for the registrar.
pub trait RegistrarDriver: Driver {
    /// Makes a connection to an application that listens at this address. Only run control that takes over calls.
    ///
    /// # Errors
    /// There is no way to it, for this reason.
    fn call(&mut self, _to: Member, _address: &str) -> Result<LinkId, String> {
        Err("run control here takes nothing over".into())
    }
    /// Starts a life of an application that has no process, or whose process has ended.
    ///
    /// # Errors
    /// It cannot be started, for this reason.
    fn start(&mut self, member: Member) -> Result<(), String>;
    /// Ends a process, if it has not ended.
    fn kill(&mut self, node: NodeId);
    /// The application at the other end of a connection is this member from now on.
    fn rename(&mut self, link: LinkId, member: Member);
    /// A life is over and another one follows.
    fn life_over(&mut self, node: NodeId);
    /// An application has died and will not return: the run ends, or between two runs no other begins.
    fn lost_for_good(&mut self, node: NodeId, how: &str);
    /// The run ends in order, though not as it was meant to.
    fn stop_because(&mut self, reason: &str);
    /// The name of an application.
    fn name(&self, node: NodeId) -> String;
    /// Whether two applications exchange messages: others are not told where they are.
    fn talk(&self, one: NodeId, other: NodeId) -> bool;
    /// Words for people.
    fn announce(&mut self, severity: Severity, text: &str);
    /// Words for people, of an application that has died, and what has led to that, the nearest cause first.
    fn announce_death(&mut self, severity: Severity, node: NodeId, text: &str, causes: Vec<String>);
}

/// Run control's side of joining.
pub struct Registrar {
    parameters: RegistrarParameters,
    /// The life of run control.
    control: Incarnation,
    entries: Vec<Entry>,
    stage: Stage,
    /// The one that begins or goes on; none between two runs.
    run: Option<RunToJoin>,
    restarts: Restarts,
    returned: Vec<Restart>,
    /// All that run control said to each application in this run; a new life is told again.
    commands: BTreeMap<NodeId, Vec<Command>>,
    /// Those that are lost for good when the run goes on: nobody has waited for them.
    given_up: BTreeSet<NodeId>,
    /// What living applications said against others, which a death may yet explain.
    complaints: Vec<Complaint>,
    /// Why a process that connected last was not let in.
    not_accepted: Option<String>,
}

/// An application that was started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// Which one.
    pub node: NodeId,
    /// How it ended.
    pub how: String,
    /// When it died.
    pub died: Time,
    /// When its next life was connected to its peers; `None` if it never was.
    pub back: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No run is wanted.
    Waiting,
    /// The applications start, or a run begins.
    Starting,
    Running,
    /// A run is over, and another one may follow.
    Leaving,
    /// No other run follows.
    Over,
    /// Members of a run that a former life of run control has begun are called.
    TakingOver,
}

enum Process {
    NotStarted,
    Lives,
    /// So it has ended.
    Ended(String),
}

/// An application, in its present life.
struct Entry {
    node: NodeId,
    name: String,
    after_death: AfterDeath,
    life: Incarnation,
    /// The connection by which it has joined.
    link: Option<LinkId>,
    /// Another one for the messages of components here, if it has made one.
    data_link: Option<LinkId>,
    /// Where its peers reach it, once it has joined.
    address: Option<String>,
    is_ready: bool,
    /// One of its connections was lost then.
    lost: Option<Time>,
    process: Process,
    /// It has ended, and is started again then.
    starts_at: Option<Time>,
    /// Somebody at its host has ended it, and it stays away until it is wanted.
    held: Option<Held>,
    /// It was started again, and has to be ready by then.
    ready_by: Option<Time>,
    /// It can take no part any more, and is about to end.
    is_killed: bool,
    /// It will not return.
    is_gone: bool,
}

/// What an application says against others, which a death may yet explain.
struct Complaint {
    at: Time,
    from: NodeId,
    life: Incarnation,
    /// The peer that it has lost, in this life.
    lost: Option<(NodeId, Incarnation)>,
    text: String,
}

impl Registrar {
    /// Of a partition whose applications have not been started.
    pub fn new(parameters: RegistrarParameters) -> Self {
        let entries = parameters.applicants.iter().cloned().map(Entry::new).collect();
        Self {
            entries,
            stage: Stage::Waiting,
            run: None,
            restarts: Restarts::new(parameters.restarts, parameters.window),
            returned: Vec::new(),
            commands: BTreeMap::new(),
            given_up: BTreeSet::new(),
            complaints: Vec::new(),
            not_accepted: None,
            control: Incarnation::FIRST,
            parameters,
        }
    }

    /// Applications are started that have no process.
    ///
    /// # Errors
    /// One cannot be started.
    pub fn start_missing(&mut self, driver: &mut dyn RegistrarDriver) -> Result<(), NotStarted> {
        self.stage = Stage::Starting;
        for place in 0..self.entries.len() {
            if !self.entries[place].lives() {
                let started = self.start(driver, place, Incarnation::FIRST);
                started.map_err(|cause| NotStarted { name: self.entries[place].name.clone(), cause })?;
            }
        }
        Ok(())
    }

    /// A run begins: those that have joined are told their place in it.
    pub fn configure(&mut self, driver: &mut dyn RegistrarDriver, run: RunToJoin) {
        self.stage = Stage::Starting;
        self.run = Some(run);
        self.returned.clear();
        self.commands.clear();
        self.complaints.clear();
        let joined: Vec<usize> = (0..self.entries.len()).filter(|place| self.entries[*place].has_joined()).collect();
        joined.into_iter().for_each(|place| self.welcome(driver, place));
        self.introduce_if_complete(driver);
    }

    /// The run has begun: from now on a death does not fail the start.
    pub fn begin(&mut self) {
        self.stage = Stage::Running;
    }

    /// The run is over, or did not begin: all give up what they have of it and join again. Who has not joined cannot be told so.
    pub fn disconnect(&mut self, driver: &mut dyn RegistrarDriver) {
        self.stage = Stage::Leaving;
        for place in 0..self.entries.len() {
            self.say(driver, place, Message::Command(Command::Disconnect));
            let entry = &mut self.entries[place];
            entry.leave_run().into_iter().for_each(|link| driver.close(link));
            if entry.link.is_none() && entry.lives() {
                entry.is_killed = true;
                driver.kill(entry.node);
            }
        }
        self.run = None;
    }

    /// No run is wanted. Applications that have died by now start again where that is wanted.
    pub fn wait(&mut self, driver: &mut dyn RegistrarDriver) {
        self.stage = Stage::Waiting;
        self.complaints.clear();
        self.not_accepted = None;
        for place in 0..self.entries.len() {
            if let Process::Ended(how) = &self.entries[place].process {
                let how = how.clone();
                self.on_death_between_runs(driver, place, &how);
            }
        }
    }

    /// No other run follows: processes end, and none is started again.
    pub fn end(&mut self) {
        self.stage = Stage::Over;
    }

    /// A connection was not let in.
    pub fn on_not_accepted(&mut self, reason: String) {
        self.not_accepted = Some(reason);
    }

    /// Strangers have taken all places.
    pub fn on_crowd(&mut self, driver: &mut dyn RegistrarDriver, who: String) {
        driver.announce(Severity::Warning, &format!("{who}; the oldest are ended to let others in"));
        self.not_accepted = Some(who);
    }

    /// A message that came over a connection of which the peer has proved who it is, and which says that it comes from there.
    pub fn on_message(&mut self, driver: &mut dyn RegistrarDriver, link: LinkId, envelope: Envelope, message: Message) {
        match message {
            Message::Join { name, address } => self.on_join(driver, link, (&name, envelope), address),
            Message::Greet { part: 0, .. } => self.on_greet(driver, link, (envelope.from, envelope.from_incarnation)),
            message => match (self.behind(link), message) {
                // Its run may be over.
                (Some(place), Message::Ready { .. }) if !self.is_in_run(place) => {}
                (Some(place), Message::Ready { datagrams }) => {
                    let is_met = driver.meet(self.entries[place].member(), &datagrams);
                    self.entries[place].is_ready = is_met;
                    if is_met {
                        self.on_ready(driver, place);
                    }
                }
                (Some(place), Message::Failed(reason)) => {
                    self.complain(driver.now(), self.entries[place].node, None, reason);
                }
                (Some(place), Message::Lost { node, life, reason }) => {
                    let text = format!("connection to {} lost: {reason}", driver.name(node));
                    self.complain(driver.now(), self.entries[place].node, Some((node, life)), text);
                }
                (Some(_), message) => driver.deliver(envelope, message),
                (None, _) => driver.refuse(link),
            },
        }
    }

    /// A connection is gone.
    pub fn on_lost(&mut self, driver: &mut dyn RegistrarDriver, link: LinkId) {
        driver.close(link);
        if let Some(place) = self.behind(link) {
            self.entries[place].lose(driver.now(), link);
        }
    }

    /// A process has ended.
    pub fn on_ended(&mut self, driver: &mut dyn RegistrarDriver, node: NodeId, how: &str) {
        let Some(place) = self.place(node) else { return };
        self.entries[place].process = Process::Ended(how.into());
        match self.stage {
            // What it had to say itself may still be on its way.
            Stage::Starting => self.complain(driver.now(), node, None, how.into()),
            // It was given up before.
            Stage::Running if self.entries[place].is_gone => {}
            Stage::Running => self.on_death(driver, place, how),
            Stage::Waiting => self.on_death_between_runs(driver, place, how),
            // The others are told when they are known.
            Stage::TakingOver | Stage::Leaving | Stage::Over => {}
        }
    }

    /// To be called when [`Registrar::next_deadline`] has come, or at any other time.
    pub fn on_deadline(&mut self, driver: &mut dyn RegistrarDriver) {
        let now = driver.now();
        for entry in self.entries.iter_mut().filter(|entry| entry.hopeless_at().is_some_and(|at| at <= now)) {
            entry.is_killed = true;
            driver.kill(entry.node);
        }
        if self.starts_again() {
            let due = |entry: &Entry| entry.starts_again_at().is_some_and(|at| at <= now);
            let due: Vec<usize> = (0..self.entries.len()).filter(|place| due(&self.entries[*place])).collect();
            due.into_iter().for_each(|place| self.start_again(driver, place));
        }
        if self.stage == Stage::Running {
            self.part_from_held(driver);
            self.settle_complaints(driver);
        }
    }

    /// When [`Registrar::on_deadline`] is wanted.
    pub fn next_deadline(&self) -> Option<Time> {
        let hopeless = self.entries.iter().filter_map(Entry::hopeless_at);
        let again = self.entries.iter().filter_map(Entry::starts_again_at).filter(|_| self.starts_again());
        let parts = self.entries.iter().filter_map(Entry::parts_at);
        let due = self.complaints.iter().map(Complaint::due).chain(parts).filter(|_| self.stage == Stage::Running);
        hopeless.chain(again).chain(due).min()
    }

    /// Who is to blame for a start that has failed, and why: the one that ended, in its own words if it had any.
    pub fn blamed(&mut self, now: Time) -> Option<(NodeId, String)> {
        if !self.complaints.iter().any(|complaint| complaint.due() <= now) {
            return None;
        }
        let complaints = core::mem::take(&mut self.complaints);
        let of_the_dead = complaints.iter().find(|complaint| self.has_ended(complaint.from));
        let complaint = of_the_dead.or(complaints.first())?;
        let is_own = |other: &&Complaint| other.from == complaint.from && !is_exit(&other.text);
        let reason = complaints.iter().find(is_own).unwrap_or(complaint).text.clone();
        Some((complaint.from, reason))
    }

    /// Whether all are connected to their peers.
    pub fn all_ready(&self) -> bool {
        self.entries.iter().all(|entry| entry.is_ready && entry.lives())
    }

    /// Whether all have joined, for the run if there is one.
    pub fn all_joined(&self) -> bool {
        self.entries.iter().all(|entry| entry.has_joined() && entry.lives())
    }

    /// Whether all have joined that live.
    pub fn all_living_joined(&self) -> bool {
        self.entries.iter().all(|entry| entry.has_joined() || !entry.lives())
    }

    /// Whether an application has joined, for the run if there is one.
    pub fn has_joined(&self, node: NodeId) -> bool {
        self.place(node).is_some_and(|place| self.entries[place].has_joined())
    }

    /// Those that are not ready for the run, or have not joined where there is none.
    pub fn missing(&self) -> impl Iterator<Item = NodeId> {
        let is_there = |entry: &&Entry| if self.run.is_some() { entry.is_ready } else { entry.has_joined() };
        self.entries.iter().filter(move |entry| !is_there(entry)).map(|entry| entry.node)
    }

    /// Why somebody was not let in, if anybody still has to join.
    pub fn take_not_accepted(&mut self) -> Option<String> {
        let all_joined = self.entries.iter().all(Entry::has_joined);
        self.not_accepted.take().filter(|_| !all_joined)
    }

    /// Applications that were started again in this run, in order.
    pub fn returned(&self) -> &[Restart] {
        &self.returned
    }

    /// The present life of an application.
    pub fn life(&self, node: NodeId) -> Incarnation {
        self.place(node).map_or(Incarnation::FIRST, |place| self.entries[place].life)
    }

    /// All applications, each in its present life and with the connection by which it has joined, if it is there.
    pub fn members(&self) -> impl Iterator<Item = (Member, Option<LinkId>)> {
        self.entries.iter().map(|entry| (entry.member(), entry.link))
    }

    /// The connection by which an application has joined, if it is there.
    pub fn link(&self, node: NodeId) -> Option<LinkId> {
        self.place(node).and_then(|place| self.entries[place].link)
    }

    /// Whether a message is said again to the next life of an application.
    pub fn remembers(message: &Message) -> bool {
        matches!(message, Message::Command(command) if !matches!(command, Command::Progress | Command::Sample))
    }

    /// The registrar says this again to the next life of the application.
    pub fn remember(&mut self, node: NodeId, message: &Message) {
        if let Message::Command(command) = message
            && Self::remembers(message)
        {
            let said = self.commands.entry(node).or_default();
            // It forgets what was lifted or doubled, so that no list grows with the run.
            match (command, said.last()) {
                (Command::Resume, Some(Command::Pause)) => _ = said.pop(),
                (Command::Pause | Command::Resume, Some(last)) if last == command => {}
                (Command::Resume, _) if !said.contains(&Command::Pause) => {}
                (Command::NoStamps | Command::Stamps | Command::StampPolls, _) => {
                    said.retain(|said| !matches!(said, Command::Stamps | Command::StampPolls));
                    said.extend(Some(*command).filter(|command| *command != Command::NoStamps));
                }
                _ => said.push(*command),
            }
        }
    }

    /// A child says who it is. It has proved that; what is none in its present life, or has joined before, is turned away.
    fn on_join(
        &mut self,
        driver: &mut dyn RegistrarDriver,
        link: LinkId,
        (name, envelope): (&str, Envelope),
        address: String,
    ) {
        let is_it = |entry: &Entry| entry.name == name && entry.is_life(envelope.from_incarnation);
        let place = self.place(envelope.from).filter(|place| is_it(&self.entries[*place]));
        let Some(place) = place.filter(|place| self.entries[*place].may_join_over(link)) else {
            return self.turn_away(driver, link);
        };
        self.not_accepted = None;
        let entry = &mut self.entries[place];
        (entry.link, entry.address) = (Some(link), Some(address));
        driver.open(link);
        driver.route(entry.node, link, Way::All);
        match self.stage {
            Stage::Over => self.say(driver, place, Message::Command(Command::Exit)),
            _ if self.run.is_none() => self.begin_anew(driver, place),
            Stage::Running => {
                self.welcome(driver, place);
                self.introduce_again(driver, place);
            }
            _ => {
                self.welcome(driver, place);
                self.introduce_if_complete(driver);
            }
        }
    }

    /// Tells one that has joined its place in the run.
    fn welcome(&self, driver: &mut dyn RegistrarDriver, place: usize) {
        let Some(RunToJoin { welcome, shares, .. }) = &self.run else { return };
        self.say(driver, place, welcome.clone());
        if !shares {
            let (node, life) = self.entries[place].member();
            driver.tell(node, PeerState::Up(life));
        }
    }

    /// One has joined that waits for a run: whatever it was, it is in its first life then.
    fn begin_anew(&mut self, driver: &mut dyn RegistrarDriver, place: usize) {
        let entry = &mut self.entries[place];
        entry.life = Incarnation::FIRST;
        (entry.is_ready, entry.lost) = (false, None);
        driver.set_life(entry.member());
        entry.link.into_iter().for_each(|link| driver.rename(link, entry.member()));
    }

    /// A child that has joined makes another connection, for the components here; it is answered.
    fn on_greet(&mut self, driver: &mut dyn RegistrarDriver, link: LinkId, (node, life): Member) {
        let is_new = self.run.as_ref().is_some_and(|run| run.shares) && self.behind(link).is_none();
        let place = self.place(node).filter(|place| is_new && self.is_in_run(*place));
        let has_none = |entry: &Entry| entry.link.is_some() && entry.data_link.is_none() && entry.lost.is_none();
        let awaits = |entry: &Entry| entry.is_life(life) && has_none(entry);
        let place = place.filter(|place| awaits(&self.entries[*place]));
        let Some(place) = place else { return self.turn_away(driver, link) };
        let entry = &mut self.entries[place];
        entry.data_link = Some(link);
        driver.open(link);
        driver.route(node, link, Way::Data);
        for (medium, link) in [(Medium::Tcp, entry.link), (Medium::Shm, Some(link))] {
            link.into_iter().for_each(|link| driver.route(node, link, Way::Strand(Strand { medium, port: None })));
        }
        let greeting = Message::Greet { part: 0, datagrams: driver.datagram_addresses().into() };
        driver.say(link, self.envelope((node, life)), greeting);
        driver.tell(node, PeerState::Up(life));
    }

    /// Says what is not its to say: if it had joined over this connection, it is lost.
    fn turn_away(&mut self, driver: &mut dyn RegistrarDriver, link: LinkId) {
        driver.refuse(link);
        if let Some(place) = self.behind(link) {
            self.entries[place].lose(driver.now(), link);
        }
    }

    /// Tells everybody where its peers are, if all have joined.
    fn introduce_if_complete(&self, driver: &mut dyn RegistrarDriver) {
        if !self.entries.iter().all(Entry::has_joined) {
            return;
        }
        for place in 0..self.entries.len() {
            let peers = self.peers_of(driver, place);
            self.say(driver, place, Message::Peers(peers));
        }
    }

    /// Where those are that talk to an application, if they have joined.
    fn peers_of(&self, driver: &dyn RegistrarDriver, place: usize) -> Vec<PeerPlace> {
        let node = self.entries[place].node;
        let peers = self.entries.iter().filter(|entry| entry.node != node && driver.talk(node, entry.node));
        peers.filter_map(Entry::address).collect()
    }

    /// One has joined in the run: it is told what the former life was told, and the others where it is.
    fn introduce_again(&self, driver: &mut dyn RegistrarDriver, place: usize) {
        let node = self.entries[place].node;
        for command in self.commands.get(&node).into_iter().flatten() {
            self.say(driver, place, Message::Command(*command));
        }
        // It was not there when the others were told.
        for gone in self.entries.iter().filter(|entry| entry.is_gone) {
            self.say(driver, place, Message::Gone(gone.node));
        }
        let own: Vec<PeerPlace> = self.entries[place].address().into_iter().collect();
        for other in (0..self.entries.len()).filter(|other| *other != place) {
            if self.entries[other].has_joined() && driver.talk(node, self.entries[other].node) {
                self.say(driver, other, Message::Peers(own.clone()));
            }
        }
        let others = self.peers_of(driver, place);
        self.say(driver, place, Message::Peers(others));
    }

    fn on_ready(&mut self, driver: &mut dyn RegistrarDriver, place: usize) {
        let now = driver.now();
        self.entries[place].ready_by = None;
        let node = self.entries[place].node;
        let last = self.returned.iter_mut().rfind(|restart| restart.node == node);
        let Some(restart) = last.filter(|restart| restart.back.is_none()) else { return };
        restart.back = Some(now);
        let away = now.since(restart.died).as_secs_f64();
        driver.announce(Severity::Notice, &format!("{} is back after {away:.2} s", self.entries[place].name));
    }

    /// It is started again, where that is wanted and possible; else the run ends.
    fn on_death(&mut self, driver: &mut dyn RegistrarDriver, place: usize, how: &str) {
        let now = driver.now();
        let overdue = self.entries[place].ready_by.is_some_and(|by| by <= now);
        let how = if overdue { self.why_not_ready() } else { how.into() };
        let entry = &mut self.entries[place];
        let node = entry.node;
        let why = match entry.after_death {
            AfterDeath::Returns => None,
            AfterDeath::ReturnsBetweenRuns => Some(format!("; a run cannot go on without {}", entry.name)),
            AfterDeath::EndsRun => Some(String::new()),
        };
        if let Some(why) = why {
            return self.lose_for_good(driver, place, (&how, &why));
        }
        if entry.held.is_some() {
            let text = format!("{} was {how}; the run goes on without it until it is started there", entry.name);
            driver.announce(Severity::Warning, &text);
            // A former life of run control may have seen the same death.
            if !self.returned.iter().any(|restart| restart.node == node && restart.back.is_none()) {
                self.returned.push(Restart { node, how, died: now, back: None });
            }
            (entry.starts_at, entry.ready_by) = (None, None);
            return;
        }
        match self.restarts.after_death(now, node) {
            Ok(pause) => {
                (entry.starts_at, entry.ready_by) = (Some(now + pause), None);
                let text = format!("{} died; it is started again", entry.name);
                driver.announce_death(Severity::Warning, node, &text, self.causes(place, &how));
                self.returned.push(Restart { node, how, died: now, back: None });
            }
            Err(error) => self.lose_for_good(driver, place, (&how, &format!("; {error}"))),
        }
    }

    /// It is started again where that is wanted; else no run can begin.
    fn on_death_between_runs(&mut self, driver: &mut dyn RegistrarDriver, place: usize, how: &str) {
        let entry = &mut self.entries[place];
        let node = entry.node;
        entry.forget_life().into_iter().flatten().for_each(|link| driver.close(link));
        entry.starts_at = None;
        let restart = match entry.after_death {
            AfterDeath::EndsRun => Err(String::new()),
            _ if entry.held.is_some() => Err(String::new()),
            AfterDeath::Returns | AfterDeath::ReturnsBetweenRuns => {
                self.restarts.after_death(driver.now(), node).map_err(|error| format!("; {error}"))
            }
        };
        match restart {
            Ok(pause) => {
                entry.starts_at = Some(driver.now() + pause);
                let text = format!("{} is dead between two runs; it is started again", entry.name);
                driver.announce_death(Severity::Warning, node, &text, self.causes(place, how));
            }
            Err(why) => self.lose_between_runs(driver, place, (how, &why)),
        }
    }

    fn why_not_ready(&mut self) -> String {
        let cause = self.not_accepted.take().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("not ready within {:?} (processes.start_timeout){cause}", self.parameters.start_timeout)
    }

    /// Its time has come. What its former life has sent was taken before, or takes too long to come.
    fn start_again(&mut self, driver: &mut dyn RegistrarDriver, place: usize) {
        let (node, Incarnation(life)) = self.entries[place].member();
        let is_in_run = self.run.is_some();
        if is_in_run && self.entries[place].held != Some(Held::Away) {
            self.close(driver, place);
            driver.tell(node, PeerState::Down);
        }
        let next = if is_in_run { Incarnation(life + 1) } else { Incarnation::FIRST };
        match self.start(driver, place, next) {
            Ok(()) if is_in_run => {
                self.entries[place].ready_by = Some(driver.now() + self.parameters.start_timeout);
                driver.life_over(node);
            }
            Ok(()) => {}
            Err(cause) => {
                self.entries[place].starts_at = None;
                let how = format!("it cannot be started again: {cause}");
                if is_in_run {
                    self.lose_for_good(driver, place, (&how, ""));
                } else {
                    self.lose_between_runs(driver, place, (&how, ""));
                }
            }
        }
    }

    /// Starts the process of one that has none.
    fn start(&mut self, driver: &mut dyn RegistrarDriver, place: usize, life: Incarnation) -> Result<(), String> {
        self.close(driver, place);
        let entry = &mut self.entries[place];
        driver.start((entry.node, life))?;
        (entry.life, entry.process, entry.starts_at, entry.is_gone) = (life, Process::Lives, None, false);
        entry.held = None;
        driver.set_life(entry.member());
        Ok(())
    }

    /// Nothing is left of a life that is over.
    fn close(&mut self, driver: &mut dyn RegistrarDriver, place: usize) {
        self.entries[place].forget_life().into_iter().flatten().for_each(|link| driver.close(link));
    }

    fn complain(&mut self, at: Time, from: NodeId, lost: Option<(NodeId, Incarnation)>, text: String) {
        let life = self.life(from);
        self.complaints.push(Complaint { at, from, life, lost, text });
    }

    /// A complaint that no death explains ends the run as well.
    fn settle_complaints(&mut self, driver: &mut dyn RegistrarDriver) {
        let now = driver.now();
        let due: Vec<Complaint> = self.complaints.extract_if(.., |complaint| complaint.due() <= now).collect();
        for complaint in due.iter().filter(|complaint| !self.is_explained(complaint)) {
            driver.stop_because(&format!("{}: {}", driver.name(complaint.from), complaint.text));
        }
    }

    /// Whether somebody has died, which explains the complaint.
    fn is_explained(&self, complaint: &Complaint) -> bool {
        let has_died = |(node, life)| self.has_ended(node) || self.life(node) > life;
        let any_ended_for_good =
            self.entries.iter().any(|entry| entry.has_ended() && entry.starts_at.is_none() && entry.held.is_none());
        any_ended_for_good || has_died((complaint.from, complaint.life)) || complaint.lost.is_some_and(has_died)
    }

    fn say(&self, driver: &mut dyn RegistrarDriver, place: usize, message: Message) {
        let entry = &self.entries[place];
        if let Some(link) = entry.link {
            driver.say(link, self.envelope(entry.member()), message);
        }
    }

    fn envelope(&self, (to, to_incarnation): Member) -> Envelope {
        let run = self.run.as_ref().map_or(NO_RUN, |run| run.number);
        Envelope { from: RUN_CONTROL, to, run, from_incarnation: Incarnation::FIRST, to_incarnation }
    }

    /// Whether one that has ended is started again when its time has come.
    fn starts_again(&self) -> bool {
        matches!(self.stage, Stage::Running | Stage::Waiting)
    }

    /// Whether one has joined for the run.
    fn is_in_run(&self, place: usize) -> bool {
        self.run.is_some() && self.entries[place].has_joined()
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.node == node)
    }

    /// The one behind a connection.
    fn behind(&self, link: LinkId) -> Option<usize> {
        self.entries.iter().position(|entry| [entry.link, entry.data_link].contains(&Some(link)))
    }

    fn has_ended(&self, node: NodeId) -> bool {
        self.place(node).is_some_and(|place| self.entries[place].has_ended())
    }
}

impl Entry {
    fn new(Applicant { node, name, after_death }: Applicant) -> Self {
        Self {
            node,
            name,
            after_death,
            life: Incarnation::FIRST,
            link: None,
            data_link: None,
            address: None,
            is_ready: false,
            lost: None,
            process: Process::NotStarted,
            starts_at: None,
            held: None,
            ready_by: None,
            is_killed: false,
            is_gone: false,
        }
    }

    fn member(&self) -> Member {
        (self.node, self.life)
    }

    fn lives(&self) -> bool {
        matches!(self.process, Process::Lives)
    }

    fn has_ended(&self) -> bool {
        matches!(self.process, Process::Ended(_))
    }

    /// Whether it is in this life.
    fn is_life(&self, life: Incarnation) -> bool {
        self.life == life && self.lives()
    }

    fn has_joined(&self) -> bool {
        self.address.is_some()
    }

    /// One that has left a run joins the next over the connection that it has: whoever comes over another one is not it.
    fn may_join_over(&self, link: LinkId) -> bool {
        !self.has_joined() && self.link.is_none_or(|own| own == link)
    }

    /// Where it listens, once it has joined.
    fn address(&self) -> Option<PeerPlace> {
        Some(PeerPlace { node: self.node, life: self.life, address: self.address.clone()? })
    }

    /// When it is ended, unless it ends before: without a connection it can take no part, and it may not take too long.
    fn hopeless_at(&self) -> Option<Time> {
        let lost = self.lost.map(|at| at + GRACE);
        [lost, self.ready_by].into_iter().flatten().min().filter(|_| self.lives() && !self.is_killed)
    }

    /// When its next life is started: what the former one has sent is taken first, if that does not take too long.
    fn starts_again_at(&self) -> Option<Time> {
        let is_read = self.link.is_none() && self.data_link.is_none();
        self.starts_at.map(|at| if is_read { at } else { at + GRACE })
    }

    /// One of its connections is gone.
    fn lose(&mut self, now: Time, link: LinkId) {
        if self.data_link == Some(link) {
            self.data_link = None;
        } else {
            self.link = None;
        }
        self.lost = Some(now);
    }

    /// It joins again before the next run.
    fn leave_run(&mut self) -> Option<LinkId> {
        (self.address, self.is_ready, self.lost) = (None, false, None);
        (self.starts_at, self.ready_by) = (None, None);
        self.data_link.take()
    }

    /// It has ended: nothing of its life is left.
    fn forget_life(&mut self) -> [Option<LinkId>; 2] {
        (self.address, self.is_ready, self.lost, self.ready_by) = (None, false, None, None);
        self.is_killed = false;
        [self.link.take(), self.data_link.take()]
    }
}

impl Complaint {
    fn due(&self) -> Time {
        self.at + GRACE
    }
}

/// Whether these words are the driver's on how a process ended.
fn is_exit(text: &str) -> bool {
    text.starts_with("exited with") || text.starts_with("killed by")
}

/// How long a lost connection may stay without a death that explains it.
const GRACE: Duration = Duration::from_secs(1);
