//! Run control's side of joining: who has joined, who is lost, who is started again.
//!
//! It knows the processes of a run by their lives. A life joins once, over a connection on which it has proved who it is. When its
//! process has ended, the next life is started where that is wanted, or all are told that it will not return.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base::ids::{Incarnation, NodeId, RunNumber};
use base::time::Time;
use dataflow::component::PeerState;
use dataflow::message::{Command, Envelope, Message, PeerPlace};
use dataflow::node::RUN_CONTROL;

use crate::FIRST_LIFE;
use crate::passage::{Driver, Kind, LinkId, Part, Way};
use crate::restarts::Restarts;

/// What the registrar of a run has to know.
#[derive(Clone, Debug)]
pub struct RegistrarParameters {
    /// The run.
    pub run: RunNumber,
    /// All applications that have a process of their own; each of them has been started.
    pub applicants: Vec<Applicant>,
    /// What one is told that has joined.
    pub welcome: Message,
    /// Whether components here have a connection of their own to each process.
    pub shares: bool,
    /// How long one that was started again may take until it is ready.
    pub start_timeout: Duration,
    /// How often an application is started again within the window.
    pub restarts: usize,
    /// See `restarts`.
    pub window: Duration,
}

/// An application that is to join.
#[derive(Clone, Debug)]
pub struct Applicant {
    /// Its address.
    pub node: NodeId,
    /// `sfi-1`.
    pub name: String,
    /// What is done when it dies within the run.
    pub after_death: AfterDeath,
}

/// What is done when an application dies within the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterDeath {
    /// It is started again.
    Returns,
    /// The run ends; behind how it died people are told this.
    EndsRun(String),
}

/// What a driver does for the registrar.
pub trait RegistrarDriver: Driver {
    /// Starts the next life of an application whose process has ended.
    ///
    /// # Errors
    /// It cannot be started, for this reason.
    fn start(&mut self, member: (NodeId, Incarnation)) -> Result<(), String>;
    /// Ends a process, if it has not ended.
    fn kill(&mut self, node: NodeId);
    /// A life is over and another one follows.
    fn life_over(&mut self, node: NodeId);
    /// An application has died and will not return: the run ends.
    fn lost_for_good(&mut self, node: NodeId, how: &str);
    /// The run ends in order, though not as it was meant to.
    fn stop_because(&mut self, reason: &str);
    /// The name of an application.
    fn name(&self, node: NodeId) -> String;
    /// Words for people.
    fn announce(&mut self, text: &str);
}

/// Run control's side of joining.
pub struct Registrar {
    parameters: RegistrarParameters,
    entries: Vec<Entry>,
    stage: Stage,
    restarts: Restarts,
    returned: Vec<Restart>,
    /// All that run control said to each application; a new life is told again.
    commands: BTreeMap<NodeId, Vec<Command>>,
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
    Starting,
    Running,
    Over,
}

/// An application, in its present life.
struct Entry {
    node: NodeId,
    name: String,
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
    has_ended: bool,
    /// It has ended, and is started again then.
    starts_at: Option<Time>,
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
    /// Of a run whose processes have been started and have not joined.
    pub fn new(parameters: RegistrarParameters) -> Self {
        let entries = parameters.applicants.iter().map(|of| Entry::new(of.node, of.name.clone())).collect();
        Self {
            entries,
            stage: Stage::Starting,
            restarts: Restarts::new(parameters.restarts, parameters.window),
            returned: Vec::new(),
            commands: BTreeMap::new(),
            complaints: Vec::new(),
            not_accepted: None,
            parameters,
        }
    }

    /// The run begins: from now on a death does not fail the start.
    pub fn begin(&mut self) {
        self.stage = Stage::Running;
    }

    /// The run is over: processes end, and none is started again.
    pub fn end(&mut self) {
        self.stage = Stage::Over;
    }

    /// A connection was not let in.
    pub fn on_not_accepted(&mut self, reason: String) {
        self.not_accepted = Some(reason);
    }

    /// Strangers have taken all places.
    pub fn on_crowd(&mut self, driver: &mut dyn RegistrarDriver, who: String) {
        driver.announce(&format!("{who}; the oldest are ended to let others in"));
        self.not_accepted = Some(who);
    }

    /// A message that came over a connection of which the peer has proved who it is, and which says that it comes from there.
    pub fn on_message(&mut self, driver: &mut dyn RegistrarDriver, link: LinkId, envelope: Envelope, message: Message) {
        match message {
            Message::Join { name, address } => self.on_join(driver, link, (&name, envelope), address),
            Message::Greet { part: 0, .. } => self.on_greet(driver, link, envelope.from),
            message => match (self.behind(link), message) {
                (Some(place), Message::Ready { datagrams }) => {
                    let member = (self.entries[place].node, self.entries[place].life);
                    let is_met = driver.meet(member, &datagrams);
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
        self.entries[place].has_ended = true;
        match self.stage {
            // What it had to say itself may still be on its way.
            Stage::Starting => self.complain(driver.now(), node, None, how.into()),
            Stage::Running => self.on_death(driver, place, how),
            Stage::Over => {}
        }
    }

    /// To be called when [`Registrar::next_deadline`] has come, or at any other time.
    pub fn on_deadline(&mut self, driver: &mut dyn RegistrarDriver) {
        let now = driver.now();
        for entry in self.entries.iter_mut().filter(|entry| entry.hopeless_at().is_some_and(|at| at <= now)) {
            entry.is_killed = true;
            driver.kill(entry.node);
        }
        if self.stage == Stage::Running {
            let due = |entry: &Entry| entry.starts_again_at().is_some_and(|at| at <= now);
            let due: Vec<usize> = (0..self.entries.len()).filter(|place| due(&self.entries[*place])).collect();
            due.into_iter().for_each(|place| self.start_again(driver, place));
            self.settle_complaints(driver);
        }
    }

    /// When [`Registrar::on_deadline`] is wanted.
    pub fn next_deadline(&self) -> Option<Time> {
        let is_running = self.stage == Stage::Running;
        let hopeless = self.entries.iter().filter_map(Entry::hopeless_at);
        let again = self.entries.iter().filter_map(Entry::starts_again_at);
        hopeless.chain(again.chain(self.complaints.iter().map(Complaint::due)).filter(|_| is_running)).min()
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
        self.entries.iter().all(|entry| entry.is_ready && !entry.has_ended)
    }

    /// Those that are not, by name.
    pub fn waiting(&self) -> Vec<&str> {
        self.entries.iter().filter(|entry| !entry.is_ready).map(|entry| entry.name.as_str()).collect()
    }

    /// Why somebody was not let in, if anybody still has to join.
    pub fn take_not_accepted(&mut self) -> Option<String> {
        let all_joined = self.entries.iter().all(|entry| entry.address.is_some());
        self.not_accepted.take().filter(|_| !all_joined)
    }

    /// Applications that were started again, in order.
    pub fn returned(&self) -> &[Restart] {
        &self.returned
    }

    /// The present life of an application.
    pub fn life(&self, node: NodeId) -> Incarnation {
        self.place(node).map_or(FIRST_LIFE, |place| self.entries[place].life)
    }

    /// The connection by which an application has joined, if it is there.
    pub fn link(&self, node: NodeId) -> Option<LinkId> {
        self.place(node).and_then(|place| self.entries[place].link)
    }

    /// What is said to an application is said again to its next life.
    pub fn remember(&mut self, node: NodeId, message: &Message) {
        if let Message::Command(command) = message
            && *command != Command::Progress
        {
            let said = self.commands.entry(node).or_default();
            // What was lifted is not said again, so that no list grows with the run.
            if *command == Command::Resume && said.last() == Some(&Command::Pause) {
                said.pop();
            } else {
                said.push(*command);
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
        let is_life = |entry: &Entry| entry.life == envelope.from_incarnation && !entry.has_ended;
        let is_it = |entry: &Entry| entry.name == name && is_life(entry);
        let place = self.place(envelope.from).filter(|place| is_it(&self.entries[*place]));
        let Some(place) = place.filter(|place| self.entries[*place].address.is_none()) else {
            return self.turn_away(driver, link);
        };
        self.not_accepted = None;
        let entry = &mut self.entries[place];
        (entry.link, entry.address) = (Some(link), Some(address));
        let member = (entry.node, entry.life);
        driver.open(link);
        driver.route(member.0, link, Way::All);
        self.say(driver, place, self.parameters.welcome.clone());
        if !self.parameters.shares {
            driver.tell(member.0, PeerState::Up(member.1));
        }
        if self.stage != Stage::Starting {
            self.introduce_again(driver, place);
        } else if self.entries.iter().all(|entry| entry.address.is_some()) {
            self.introduce(driver);
        }
    }

    /// A child that has joined makes another connection, for the components here; it is answered.
    fn on_greet(&mut self, driver: &mut dyn RegistrarDriver, link: LinkId, node: NodeId) {
        let joined = |entry: &Entry| entry.link.is_some() && entry.data_link.is_none();
        let is_new = self.parameters.shares && self.behind(link).is_none();
        let place = self.place(node).filter(|place| is_new && joined(&self.entries[*place]));
        let Some(place) = place else { return self.turn_away(driver, link) };
        let entry = &mut self.entries[place];
        entry.data_link = Some(link);
        let life = entry.life;
        driver.open(link);
        driver.route(node, link, Way::Data);
        for (kind, link) in [(Kind::Tcp, entry.link), (Kind::Shm, Some(link))] {
            link.into_iter().for_each(|link| driver.route(node, link, Way::Part(Part { kind, port: None })));
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

    /// Tells everybody where the others are.
    fn introduce(&self, driver: &mut dyn RegistrarDriver) {
        let peers: Vec<PeerPlace> = self.entries.iter().filter_map(Entry::address).collect();
        (0..self.entries.len()).for_each(|place| self.say(driver, place, Message::Peers(peers.clone())));
    }

    /// One has joined in the run: it is told what the former life was told, and the others where it is.
    fn introduce_again(&self, driver: &mut dyn RegistrarDriver, place: usize) {
        if self.stage != Stage::Running {
            return self.say(driver, place, Message::Command(Command::Exit));
        }
        let node = self.entries[place].node;
        for command in self.commands.get(&node).into_iter().flatten() {
            self.say(driver, place, Message::Command(*command));
        }
        // It was not there when the others were told.
        for gone in self.entries.iter().filter(|entry| entry.is_gone) {
            self.say(driver, place, Message::Gone(gone.node));
        }
        let places = self.entries.iter().filter_map(Entry::address);
        let (own, others): (Vec<PeerPlace>, Vec<PeerPlace>) = places.partition(|place| place.node == node);
        for other in (0..self.entries.len()).filter(|other| *other != place) {
            if self.entries[other].address.is_some() {
                self.say(driver, other, Message::Peers(own.clone()));
            }
        }
        self.say(driver, place, Message::Peers(others));
    }

    fn on_ready(&mut self, driver: &mut dyn RegistrarDriver, place: usize) {
        let now = driver.now();
        self.entries[place].ready_by = None;
        let node = self.entries[place].node;
        let Some(restart) = self.returned.iter_mut().rfind(|restart| restart.node == node) else { return };
        restart.back.get_or_insert(now);
        let away = now.since(restart.died).as_secs_f64();
        driver.announce(&format!("{} is back after {away:.2} s", self.entries[place].name));
    }

    /// It is started again, where that is wanted and possible; else the run ends.
    fn on_death(&mut self, driver: &mut dyn RegistrarDriver, place: usize, how: &str) {
        let now = driver.now();
        let overdue = self.entries[place].ready_by.is_some_and(|by| by <= now);
        let how = if overdue { self.why_not_ready() } else { how.into() };
        let entry = &mut self.entries[place];
        let node = entry.node;
        let after_death =
            self.parameters.applicants.iter().find(|of| of.node == node).map(|applicant| &applicant.after_death);
        if let Some(AfterDeath::EndsRun(why)) = after_death {
            let how = how + why;
            return self.lose_for_good(driver, place, &how);
        }
        match self.restarts.after_death(now, node) {
            Ok(pause) => {
                driver.announce(&format!("{} died: {how}; it is started again", entry.name));
                self.returned.push(Restart { node, how, died: now, back: None });
                (entry.starts_at, entry.ready_by) = (Some(now + pause), None);
            }
            Err(error) => self.lose_for_good(driver, place, &format!("{how}; {error}")),
        }
    }

    fn why_not_ready(&mut self) -> String {
        let cause = self.not_accepted.take().map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("not ready within {:?} (processes.start_timeout){cause}", self.parameters.start_timeout)
    }

    /// A child will not return: the run ends.
    fn lose_for_good(&mut self, driver: &mut dyn RegistrarDriver, place: usize, how: &str) {
        let entry = &mut self.entries[place];
        (entry.starts_at, entry.address, entry.is_gone) = (None, None, true);
        let node = entry.node;
        driver.announce(&format!("{} died: {how}; the run ends", entry.name));
        for other in (0..self.entries.len()).filter(|other| *other != place) {
            self.say(driver, other, Message::Gone(node));
        }
        driver.tell(node, PeerState::Gone);
        driver.lost_for_good(node, how);
    }

    /// Its time has come. What its former life has sent was taken before, or takes too long to come.
    fn start_again(&mut self, driver: &mut dyn RegistrarDriver, place: usize) {
        let entry = &mut self.entries[place];
        let next = (entry.node, Incarnation(entry.life.0 + 1));
        entry.forget_life().into_iter().flatten().for_each(|link| driver.close(link));
        driver.tell(next.0, PeerState::Down);
        if let Err(cause) = driver.start(next) {
            return self.lose_for_good(driver, place, &format!("it cannot be started again: {cause}"));
        }
        let by = driver.now() + self.parameters.start_timeout;
        let entry = &mut self.entries[place];
        (entry.life, entry.has_ended, entry.starts_at, entry.ready_by) = (next.1, false, None, Some(by));
        driver.set_life(next);
        driver.life_over(next.0);
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
        let any_ended_for_good = self.entries.iter().any(|entry| entry.has_ended && entry.starts_at.is_none());
        any_ended_for_good || has_died((complaint.from, complaint.life)) || complaint.lost.is_some_and(has_died)
    }

    fn say(&self, driver: &mut dyn RegistrarDriver, place: usize, message: Message) {
        let entry = &self.entries[place];
        if let Some(link) = entry.link {
            driver.say(link, self.envelope((entry.node, entry.life)), message);
        }
    }

    fn envelope(&self, (to, to_incarnation): (NodeId, Incarnation)) -> Envelope {
        Envelope { from: RUN_CONTROL, to, run: self.parameters.run, from_incarnation: FIRST_LIFE, to_incarnation }
    }

    fn place(&self, node: NodeId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.node == node)
    }

    /// The one behind a connection.
    fn behind(&self, link: LinkId) -> Option<usize> {
        self.entries.iter().position(|entry| [entry.link, entry.data_link].contains(&Some(link)))
    }

    fn has_ended(&self, node: NodeId) -> bool {
        self.place(node).is_some_and(|place| self.entries[place].has_ended)
    }
}

impl Entry {
    fn new(node: NodeId, name: String) -> Self {
        Self {
            node,
            name,
            life: FIRST_LIFE,
            link: None,
            data_link: None,
            address: None,
            is_ready: false,
            lost: None,
            has_ended: false,
            starts_at: None,
            ready_by: None,
            is_killed: false,
            is_gone: false,
        }
    }

    /// Where it listens, once it has joined.
    fn address(&self) -> Option<PeerPlace> {
        Some(PeerPlace { node: self.node, life: self.life, address: self.address.clone()? })
    }

    /// When it is ended, unless it ends before: without a connection it can take no part, and it may not take too long.
    fn hopeless_at(&self) -> Option<Time> {
        let lost = self.lost.map(|at| at + GRACE);
        [lost, self.ready_by].into_iter().flatten().min().filter(|_| !self.has_ended && !self.is_killed)
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
