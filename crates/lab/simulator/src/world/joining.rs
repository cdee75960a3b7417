//! Applications join, die and return by the protocol of live runs, over connections with faults of their own.
//!
//! Only messages about joining and the orders of run control travel over these connections. The messages of components
//! go as the world's wire carries them. Both keep one order from an application to another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::ids::{Incarnation, NodeId};
use base::random::Random;
use base::time::Time;
use control::controller::Controller;
use dataflow::component::{Input, PeerState};
use dataflow::message::{Envelope, Message};
use dataflow::node::{Node, RUN_CONTROL};
use membership::challenge::{Challenge, Member, Prover};
use membership::participant::{End, Identity, Participant, ParticipantDriver, Place, Ties, Welcome};
use membership::passage::{Driver, LinkId, Medium, Passage, Recipient, Strand, Way};
use membership::registrar::{AfterDeath, Applicant, Registrar, RegistrarDriver, RegistrarParameters, RunToJoin};
use membership::run_secret::RunSecret;
use membership::severity::Severity;

use super::joins::{Impostor, JoinFault, Joins, Moment};
use super::setup::{Planted, Setup};
use super::{Arriving, What, World};

/// What happens to those that join.
pub(super) enum JoinEvent {
    /// A process starts.
    Starts(NodeId),
    /// Something comes over a connection.
    Says(LinkId, Envelope, Message),
    /// The other end of a connection is gone.
    Lost(LinkId),
    /// Run control learns that a process has ended.
    Ended(NodeId, &'static str),
    /// The registrar wants to be called.
    Wake,
    /// Something goes wrong.
    Fault(usize),
}

/// Those that join.
pub(super) struct Joining {
    joins: Joins,
    /// None while it is called.
    registrar: Option<Registrar>,
    /// By application; none while it is called, and without a process.
    participants: Vec<Option<Participant>>,
    ends: Vec<ConnectionEnd>,
    random: Random,
    wake: Option<Time>,
    has_begun: bool,
    /// The run is over: nobody has a component any more.
    is_over: bool,
    /// How long each is away when it dies.
    away: BTreeMap<NodeId, Duration>,
    /// Those that have their place, and accept others from then on.
    placed: BTreeSet<Member>,
    /// Those that have joined, each in its lives.
    admitted: BTreeSet<Member>,
    /// Lives that run control knows to be over.
    over: BTreeSet<Member>,
    /// The newest life of the second that the first has heard of.
    heard: BTreeMap<(NodeId, NodeId), Incarnation>,
}

/// One end of a connection; that of a number and that of the next one belong together.
struct ConnectionEnd {
    owner: Owner,
    state: ProofState,
    /// What it says first, once it is accepted.
    first: Option<(Envelope, Message)>,
    /// When what was sent last from here arrives.
    last: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Control,
    Application(Member),
    Impostor(Impostor, Incarnation),
}

enum ProofState {
    Unproven(Challenge),
    Proven(Passage),
    Closed,
}

impl Joining {
    pub(super) fn new(joins: &Joins, setup: &Setup) -> Self {
        let applicant = |app: &control::controller::Application| Applicant {
            node: app.node,
            name: app.name.clone(),
            after_death: if setup.course.returns(app.node) { AfterDeath::Returns } else { AfterDeath::EndsRun },
        };
        let registrar = Registrar::new(RegistrarParameters {
            applicants: setup.applications.iter().map(applicant).collect(),
            start_timeout: START_TIMEOUT,
            restarts: usize::MAX,
            window: START_TIMEOUT,
        });
        Self {
            joins: joins.clone(),
            registrar: Some(registrar),
            participants: setup.applications.iter().map(|_| None).collect(),
            ends: Vec::new(),
            random: Random::new(setup.seed ^ 0x6a6f_696e_7321),
            wake: None,
            has_begun: false,
            is_over: false,
            away: BTreeMap::new(),
            placed: BTreeSet::new(),
            admitted: BTreeSet::new(),
            over: BTreeSet::new(),
            heard: BTreeMap::new(),
        }
    }

    /// Itself, with what is to go wrong in another run.
    pub(super) fn for_run_of(self, Self { joins, .. }: Self) -> Self {
        Self { joins, ..self }
    }

    /// The former run is left: what comes now is of the next one.
    pub(super) fn leads_on(&mut self) {
        (self.has_begun, self.is_over) = (false, false);
    }

    /// Whoever is at the other end, and has joined, is this member from now on.
    fn rename(&mut self, link: LinkId, member: Member) {
        self.forget(member.0);
        self.admitted.insert(member);
        self.ends[link.0 ^ 1].owner = Owner::Application(member);
        if let ProofState::Proven(passage) = &mut self.ends[link.0].state {
            passage.rename(member);
        }
    }

    /// Whether all have joined, live, and are connected: else a run that began would fail.
    pub(super) fn is_complete(&self) -> bool {
        let is_cut = |link: LinkId| matches!(self.ends[link.0].state, ProofState::Closed);
        self.registrar().all_joined()
            && self.participants.iter().all(Option::is_some)
            && self.registrar().members().all(|(_, link)| !link.is_none_or(is_cut))
    }

    pub(super) fn registrar(&self) -> &Registrar {
        self.registrar.as_ref().expect("the registrar is not called")
    }

    pub(super) fn links_of(&self, member: Member) -> Vec<LinkId> {
        let is_own = |end: &ConnectionEnd| end.owner == Owner::Application(member);
        let own = |(index, end): (usize, &ConnectionEnd)| is_own(end).then_some(LinkId(index));
        self.ends.iter().enumerate().filter_map(own).collect()
    }

    /// An application begins its lives anew.
    pub(super) fn forget(&mut self, node: NodeId) {
        for lives in [&mut self.placed, &mut self.admitted, &mut self.over] {
            lives.retain(|(of, _)| *of != node);
        }
        self.heard.retain(|(here, _), _| *here != node);
    }

    fn nonce(&mut self) -> [u8; 32] {
        core::array::from_fn(|_| self.random.below(256) as u8)
    }

    fn owner(&self, link: LinkId) -> Owner {
        self.ends[link.0].owner
    }

    /// Who is at the other end of a connection, or says that he is.
    fn peer(&self, link: LinkId) -> Member {
        match self.owner(LinkId(link.0 ^ 1)) {
            Owner::Control => (RUN_CONTROL, Incarnation::FIRST),
            Owner::Application(member) => member,
            Owner::Impostor(impostor, life) => (impostor.as_whom, life),
        }
    }
}

/// Does at once what is to be done for one side; what concerns the whole run waits until it has said all.
pub(super) struct Hands<'a> {
    world: &'a mut World,
    here: Owner,
    asked: Vec<Asked>,
}

enum Asked {
    LostForGood(NodeId, String),
    StopBecause(String),
}

impl Driver for Hands<'_> {
    fn say(&mut self, link: LinkId, envelope: Envelope, message: Message) {
        self.world.say(link, envelope, message);
    }

    fn open(&mut self, link: LinkId) {
        self.world.open(link);
    }

    fn close(&mut self, link: LinkId) {
        self.world.close(link);
    }

    fn refuse(&mut self, link: LinkId) {
        self.world.take_wrongly(self.here, link);
        self.world.close(link);
    }

    fn deliver(&mut self, envelope: Envelope, message: Message) {
        if let Owner::Application((node, _)) = self.here
            && !self.world.only_joins()
        {
            self.world.arrives(node, Arriving::Message(envelope, message));
        }
    }

    fn route(&mut self, node: NodeId, link: LinkId, way: Way) {
        if self.here == Owner::Control && way == Way::All {
            self.world.note_admission(node, link);
        }
    }

    fn tell(&mut self, node: NodeId, state: PeerState) {
        if let Owner::Application(here) = self.here {
            self.world.tell_joined(here, node, state);
        }
    }

    fn now(&self) -> Time {
        self.world.now
    }
}

impl RegistrarDriver for Hands<'_> {
    fn start(&mut self, (node, life): Member) -> Result<(), String> {
        if self.world.slot(node).gone {
            return Err("killed by a fault".into());
        }
        if self.world.only_joins() {
            self.world.slot_mut(node).incarnation = life;
            self.world.joining().forget(node);
        }
        assert_eq!(self.world.slot(node).incarnation, life, "lives are counted alike");
        let away =
            if life == Incarnation::FIRST { self.world.setup.course.lateness(node) } else { self.world.away(node) };
        self.world.schedule(self.world.now + away, What::Join(JoinEvent::Starts(node)));
        Ok(())
    }

    fn kill(&mut self, node: NodeId) {
        if !self.world.end_process(node, PeerState::Down, KILLED) {
            self.world.tell_ended(node, KILLED);
        }
    }

    fn rename(&mut self, link: LinkId, (node, life): Member) {
        self.world.slot_mut(node).incarnation = life;
        self.world.joining().rename(link, (node, life));
    }

    fn life_over(&mut self, _: NodeId) {}

    fn lost_for_good(&mut self, node: NodeId, how: &str) {
        self.asked.push(Asked::LostForGood(node, how.to_owned()));
    }

    fn stop_because(&mut self, reason: &str) {
        self.asked.push(Asked::StopBecause(reason.to_owned()));
    }

    fn name(&self, node: NodeId) -> String {
        self.world.slot(node).app.name.clone()
    }

    /// Here all are connected to all.
    fn talk(&self, _: NodeId, _: NodeId) -> bool {
        true
    }

    fn announce(&mut self, _: Severity, text: &str) {
        self.world.trace.tell(self.world.now, text);
    }

    fn announce_death(&mut self, _: Severity, _: NodeId, text: &str, causes: Vec<String>) {
        self.world.trace.tell(self.world.now, &format!("{text}, because: {}", causes.join(", because: ")));
    }
}

impl ParticipantDriver for Hands<'_> {
    fn connect(&mut self, to: Member, _: &str, _: Strand) -> Result<LinkId, String> {
        Ok(self.world.connect(self.here, to))
    }

    fn take_place(&mut self, _: Welcome, control: LinkId) -> Result<Place, String> {
        let Owner::Application((here, life)) = self.here else { unreachable!("an application takes its place") };
        let setup = &self.world.setup;
        let ties = |node| Ties {
            strands: vec![Strand { medium: Medium::Tcp, port: None }],
            returns: setup.course.returns(node),
        };
        let others = self.world.slots.iter().map(|slot| slot.app.node).filter(|node| *node != here);
        let peers = others.map(|node| (node, ties(node))).collect();
        self.world.open(control);
        self.world.put_together(here);
        self.world.accept_those_that_wait((here, life));
        Ok(Place { peers, ..Place::default() })
    }

    fn leave_place(&mut self, control: LinkId) {
        let Owner::Application((here, _)) = self.here else { unreachable!("an application has its place") };
        self.world.leave(here, control);
    }

    fn medium(&self, _: LinkId) -> Option<Medium> {
        Some(Medium::Tcp)
    }
}

impl World {
    /// The processes are started.
    pub(super) fn start_processes(&mut self) {
        self.with_registrar(|registrar, hands| {
            registrar.start_missing(hands).expect("nobody is gone before the start");
        });
        self.configure_joined();
    }

    /// Those that have joined, or join, get their places in the run.
    pub(super) fn configure_joined(&mut self) {
        let number = self.setup.run;
        let welcome = Message::Welcome {
            configuration: String::new(),
            hosted: Vec::new(),
            robs: Vec::new(),
            datagrams: Box::default(),
        };
        self.with_registrar(|registrar, hands| {
            registrar.configure(hands, RunToJoin { number, welcome, shares: false });
        });
        self.schedule_faults(Moment::OfStart);
    }

    /// Faults whose moments count from now on.
    pub(super) fn schedule_faults(&mut self, from_now: fn(Duration) -> Moment) {
        let faults = self.joining().joins.faults.clone();
        for (index, (moment, _)) in faults.into_iter().enumerate().filter(|(_, (at, _))| *at == from_now(at.after())) {
            self.schedule(self.now + moment.after(), What::Join(JoinEvent::Fault(index)));
        }
    }

    pub(super) fn on_join_event(&mut self, event: JoinEvent) {
        match event {
            JoinEvent::Starts(node) => self.start_process(node),
            JoinEvent::Says(link, envelope, message) => self.hear(link, envelope, message),
            JoinEvent::Lost(link) => self.lose_connection(link),
            JoinEvent::Ended(node, how) => self.with_registrar(|registrar, hands| {
                hands.world.joining().over.insert((node, registrar.life(node)));
                registrar.on_ended(hands, node, how);
            }),
            JoinEvent::Wake => {
                let now = self.now;
                if self.joining().wake == Some(now) {
                    self.joining().wake = None;
                    self.with_registrar(|_, _| {});
                }
            }
            JoinEvent::Fault(index) => self.strike_at_joining(index),
        }
    }

    /// What is said to an application goes over the connection by which it has joined, if it has.
    pub(super) fn command_joined(&mut self, to: NodeId, message: &Message) {
        let run = self.setup.run;
        let registrar = self.joining().registrar.as_mut().expect("nobody commands within a call of the registrar");
        registrar.remember(to, message);
        let (link, to_incarnation) = (registrar.link(to), registrar.life(to));
        let envelope = Envelope { from: RUN_CONTROL, to, run, from_incarnation: Incarnation::FIRST, to_incarnation };
        link.into_iter().for_each(|link| self.say(link, envelope, message.clone()));
    }

    /// Whether an application has a process.
    pub(super) fn has_process(&mut self, node: NodeId) -> bool {
        self.joining().participants[usize::from(node.0) - 1].is_some()
    }

    /// Whether the run is over, and only joining goes on.
    pub(super) fn only_joins(&self) -> bool {
        self.joining.as_ref().is_some_and(|joining| joining.is_over)
    }

    fn away(&mut self, node: NodeId) -> Duration {
        self.joining().away.get(&node).copied().unwrap_or(START)
    }

    /// It is away for so long when it dies.
    pub(super) fn set_away(&mut self, node: NodeId, away: Duration) {
        self.joining().away.insert(node, away);
    }

    /// The process of an application has ended: its connections are gone, and run control is told.
    pub(super) fn process_ended(&mut self, member: Member, how: &'static str) {
        self.joining().participants[usize::from(member.0.0) - 1] = None;
        // Its next life knows nothing of what this one has heard.
        self.joining().heard.retain(|(here, _), _| *here != member.0);
        let links = self.joining().links_of(member);
        links.into_iter().for_each(|link| self.close(link));
        self.tell_ended(member.0, how);
    }

    fn tell_ended(&mut self, node: NodeId, how: &'static str) {
        let at = self.now + self.latency();
        self.schedule(at, What::Join(JoinEvent::Ended(node, how)));
    }

    /// Lets those come that are on their way back when the run has ended, and looks whether all know each other.
    pub(super) fn settle_joining(&mut self) {
        if self.joining.is_none() || self.slots.iter().any(|slot| slot.hangs) {
            return;
        }
        let ended = self.now;
        self.only_join();
        let until = ended + SETTLING;
        while let Some(what) = self.next_until(until) {
            if let What::Join(event) = what {
                self.on_join_event(event);
            }
        }
        let lives: Vec<Member> =
            self.slots.iter().filter(|slot| !slot.gone).map(|slot| (slot.app.node, slot.incarnation)).collect();
        let mut lonely = Vec::new();
        for (here, life) in &lives {
            let participant = self.joining().participants[usize::from(here.0) - 1].as_ref();
            let is_ready = participant.is_some_and(Participant::is_ready);
            let knows =
                |(other, life): &Member| other == here || participant.and_then(|p| p.knows(*other)) == Some(*life);
            if !is_ready || !lives.iter().all(knows) {
                lonely.push(format!("{here:?} in life {} has not found all others, ready: {is_ready}", life.0));
            }
        }
        self.monitor.violations.extend(lonely);
        self.now = ended;
    }

    /// The run is over: nobody has a component any more.
    pub(super) fn only_join(&mut self) {
        self.joining.iter_mut().for_each(|joining| joining.is_over = true);
    }

    pub(super) fn joining(&mut self) -> &mut Joining {
        self.joining.as_mut().expect("a world in which applications join")
    }

    pub(super) fn with_registrar(&mut self, call: impl FnOnce(&mut Registrar, &mut Hands<'_>)) {
        let mut registrar = self.joining().registrar.take().expect("the registrar is not called twice");
        let mut hands = Hands { world: self, here: Owner::Control, asked: Vec::new() };
        call(&mut registrar, &mut hands);
        registrar.on_deadline(&mut hands);
        let asked = hands.asked;
        let (next, is_complete) = (registrar.next_deadline(), registrar.all_ready());
        let joining = self.joining();
        joining.registrar = Some(registrar);
        if is_complete && !joining.has_begun {
            self.begin_joined();
        }
        for asked in asked {
            self.with_controller(|controller: &mut Controller, now, out| match asked {
                Asked::LostForGood(node, how) => controller.on_death(now, node, &how, out),
                Asked::StopBecause(reason) => controller.stop_because(now, &reason, out),
            });
        }
        if let Some(next) = next
            && self.joining().wake.is_none_or(|wake| next < wake)
        {
            let at = next.max(self.now);
            self.joining().wake = Some(at);
            self.schedule(at, What::Join(JoinEvent::Wake));
        }
    }

    /// All are ready: the run begins, and what is to go wrong in it.
    fn begin_joined(&mut self) {
        let joining = self.joining();
        joining.has_begun = true;
        joining.registrar.as_mut().expect("the registrar is not called").begin();
        self.schedule(self.now, What::Begin);
        self.schedule_faults(Moment::OfRun);
        for index in 0..self.setup.course.faults.len() {
            self.schedule(self.now + self.setup.course.faults[index].0, What::Fault(index));
        }
    }

    fn start_process(&mut self, node: NodeId) {
        let (gone, life) = (self.slot(node).gone, self.slot(node).incarnation);
        if gone {
            return self.tell_ended(node, KILLED);
        }
        let (name, here) = (self.slot(node).app.name.clone(), Owner::Application((node, life)));
        let identity = Identity {
            run: self.setup.run,
            member: (node, life),
            name,
            address: String::new(),
            control: String::new(),
            control_life: Incarnation::FIRST,
        };
        let mut hands = Hands { world: self, here, asked: Vec::new() };
        let participant = Participant::join(&mut hands, identity).expect("everybody can connect");
        self.joining().participants[usize::from(node.0) - 1] = Some(participant);
    }

    fn with_participant(&mut self, (node, life): Member, call: impl FnOnce(&mut Participant, &mut Hands<'_>)) {
        let index = usize::from(node.0) - 1;
        if self.slots[index].hangs {
            return;
        }
        let Some(mut participant) = self.joining().participants[index].take() else { return };
        let mut hands = Hands { world: self, here: Owner::Application((node, life)), asked: Vec::new() };
        call(&mut participant, &mut hands);
        let how = match participant.end() {
            None => None,
            Some(End::Dismissed) => Some("exited with status 0"),
            Some(End::Refused(_) | End::Orphaned) => Some("exited with status 1"),
        };
        self.joining().participants[index] = Some(participant);
        if let Some(how) = how {
            self.end_process(node, PeerState::Down, how);
        }
    }

    /// Its component comes to life.
    fn put_together(&mut self, node: NodeId) {
        if self.only_joins() {
            return;
        }
        let incarnation = self.slot(node).incarnation;
        self.trace.tell(self.now, &format!("{node:?} has its place in life {}", incarnation.0));
        let component = (self.setup.components)(node, incarnation);
        let new = Node::new(node, self.setup.run, incarnation, self.roles.clone(), component);
        self.slot_mut(node).node = Some(new);
        self.connect_sources_of(node);
        self.note_return(node);
        self.input(node, Input::Peer { node: RUN_CONTROL, state: PeerState::Up(Incarnation::FIRST) });
    }

    fn tell_joined(&mut self, (here, life): Member, node: NodeId, state: PeerState) {
        if let PeerState::Up(up) = state {
            let heard = self.joining().heard.entry((here, node)).or_default();
            if up < *heard {
                let heard = heard.0;
                self.violates(format!("{here:?} takes {node:?} in life {} though it has heard of {heard}", up.0));
            } else {
                *heard = up;
            }
        }
        if !self.only_joins() {
            self.arrives(here, Arriving::Input(life, Input::Peer { node, state }));
        }
    }

    fn note_admission(&mut self, node: NodeId, link: LinkId) {
        let member = self.joining().peer(link);
        if !self.joining().admitted.insert(member) {
            self.violates(format!("{member:?} has joined twice"));
        }
        if member.0 != node || self.joining().over.contains(&member) {
            self.violates(format!("{member:?} has joined as {node:?}"));
        }
    }

    /// Takes one in that is refused, if that bug is planted.
    fn take_wrongly(&mut self, here: Owner, link: LinkId) {
        let peer = self.joining().peer(link);
        match (self.setup.planted, here) {
            (Some(Planted::JoinedTwice), Owner::Control) => self.note_admission(peer.0, link),
            (Some(Planted::FormerGreeting), Owner::Application(here)) => {
                let heard = self.joining().heard.get(&(here.0, peer.0));
                if heard.is_some_and(|heard| peer.1 < *heard) {
                    self.tell_joined(here, peer.0, PeerState::Up(peer.1));
                }
            }
            _ => {}
        }
    }

    fn violates(&mut self, what: String) {
        self.monitor.violations.push(what);
    }

    /// A connection to a member, if that one is there.
    fn connect(&mut self, from: Owner, to: Member) -> LinkId {
        let accepts = match to {
            (RUN_CONTROL, _) => true,
            (node, life) => {
                let lives =
                    self.joining().participants[usize::from(node.0) - 1].is_some() || self.slot(node).node.is_some();
                lives && self.slot(node).incarnation == life
            }
        };
        let there = if to.0 == RUN_CONTROL { Owner::Control } else { Owner::Application(to) };
        let nonces = [self.joining().nonce(), self.joining().nonce()];
        let link = LinkId(self.joining().ends.len());
        let made = ProofState::Unproven(Challenge::of_connected(to, nonces[0]));
        let prover = self.prover(there);
        let (challenge, (envelope, message)) = Challenge::of_accepted(&prover, nonces[1]);
        let accepted = if accepts { ProofState::Unproven(challenge) } else { ProofState::Closed };
        for (owner, state, first) in [(from, made, None), (there, accepted, Some((envelope, message)))] {
            self.joining().ends.push(ConnectionEnd { owner, state, first, last: Time::ZERO });
        }
        if to.0 == RUN_CONTROL || self.joining().placed.contains(&to) {
            self.accept(LinkId(link.0 + 1));
        }
        if !accepts {
            let at = self.now + self.latency();
            self.schedule(at, What::Join(JoinEvent::Lost(link)));
        }
        link
    }

    fn accept(&mut self, link: LinkId) {
        if let Some((envelope, message)) = self.joining().ends[link.0].first.take() {
            self.say(link, envelope, message);
        }
    }

    /// It has its place: those are accepted that wait.
    fn accept_those_that_wait(&mut self, member: Member) {
        self.joining().placed.insert(member);
        let is_its_own = |end: &ConnectionEnd| end.owner == Owner::Application(member);
        let ends = self.joining().ends.iter().enumerate();
        let waiting: Vec<usize> = ends.filter(|(_, end)| is_its_own(end)).map(|(index, _)| index).collect();
        waiting.into_iter().for_each(|index| self.accept(LinkId(index)));
    }

    fn prover(&self, of: Owner) -> Prover {
        let (secret, here) = match of {
            Owner::Control => ("secret", (RUN_CONTROL, Incarnation::FIRST)),
            Owner::Application(member) => ("secret", member),
            Owner::Impostor(impostor, life) => {
                (if impostor.knows_secret { "secret" } else { "guess" }, (impostor.as_whom, life))
            }
        };
        Prover::new(&RunSecret::new(secret, &[0; 16]), self.setup.run, here)
    }

    fn say(&mut self, link: LinkId, envelope: Envelope, message: Message) {
        if matches!(self.joining().ends[link.0].state, ProofState::Closed) {
            return;
        }
        let at = self.arrival_over(link);
        self.schedule(at, What::Join(JoinEvent::Says(LinkId(link.0 ^ 1), envelope, message)));
    }

    /// Between applications in order with all else that is reliable between them.
    fn arrival_over(&mut self, link: LinkId) -> Time {
        let ends = [link, LinkId(link.0 ^ 1)].map(|link| match self.joining().owner(link) {
            Owner::Control => Some(RUN_CONTROL),
            Owner::Application((node, _)) => Some(node),
            Owner::Impostor(..) => None,
        });
        let at = match ends {
            [Some(from), Some(to)] => self.arrival(from, to),
            _ => self.now + self.latency(),
        };
        let last = &mut self.joining().ends[link.0].last;
        *last = at.max(*last);
        *last
    }

    fn open(&mut self, link: LinkId) {
        if let Owner::Impostor(impostor, _) = self.joining().owner(LinkId(link.0 ^ 1))
            && !impostor.knows_secret
        {
            self.violates(format!("{impostor:?} was let in without the secret"));
        }
        if let ProofState::Proven(passage) = &mut self.joining().ends[link.0].state {
            passage.open();
        }
    }

    /// Ends a connection; the other end sees that when all that was said before has come, or a while later.
    pub(super) fn close(&mut self, link: LinkId) {
        if matches!(self.joining().ends[link.0].state, ProofState::Closed) {
            return;
        }
        self.joining().ends[link.0].state = ProofState::Closed;
        let at = self.arrival_over(link);
        let joining = self.joining();
        let later = joining.joins.notice_max.mul_f64(joining.random.unit());
        self.schedule(at + later, What::Join(JoinEvent::Lost(LinkId(link.0 ^ 1))));
    }

    fn lose_connection(&mut self, link: LinkId) {
        if matches!(self.joining().ends[link.0].state, ProofState::Closed) {
            return;
        }
        self.joining().ends[link.0].state = ProofState::Closed;
        self.tell_of_loss(link, "closed by the peer");
    }

    fn tell_of_loss(&mut self, link: LinkId, reason: &str) {
        match self.joining().owner(link) {
            Owner::Control => self.with_registrar(|registrar, hands| registrar.on_lost(hands, link)),
            Owner::Application(member) => {
                self.with_participant(member, |participant, hands| participant.on_lost(hands, link, reason));
            }
            Owner::Impostor(..) => {}
        }
    }

    fn hear(&mut self, link: LinkId, envelope: Envelope, message: Message) {
        let owner = self.joining().owner(link);
        if let Owner::Application((node, _)) = owner
            && self.slot(node).hangs
        {
            return;
        }
        let prover = self.prover(owner);
        match &mut self.joining().ends[link.0].state {
            ProofState::Closed => {}
            ProofState::Unproven(_) if matches!(owner, Owner::Impostor(impostor, _) if impostor.skips_proof) => {
                self.pretend(link, owner);
            }
            ProofState::Unproven(challenge) => match challenge.on_message(&prover, &envelope, &message) {
                Ok(step) => {
                    if let Some(proven) = step.proven {
                        self.joining().ends[link.0].state = ProofState::Proven(Passage::new(proven.peer));
                    }
                    step.say.into_iter().for_each(|(envelope, message)| self.say(link, envelope, message));
                    if step.proven.is_some() {
                        self.on_proven(link, owner);
                    }
                }
                Err(_) if self.setup.planted == Some(Planted::UncheckedChallenge) => {
                    let peer = self.joining().peer(link);
                    self.joining().ends[link.0].state = ProofState::Proven(Passage::new(peer));
                    self.hear(link, envelope, message);
                }
                Err(_) => self.turn_away(link),
            },
            ProofState::Proven(passage) => match passage.recipient(&envelope, &message) {
                Recipient::Nobody => self.turn_away(link),
                Recipient::Component => {
                    Hands { world: self, here: owner, asked: Vec::new() }.deliver(envelope, message);
                }
                Recipient::Joining => match owner {
                    Owner::Control => {
                        self.with_registrar(|registrar, hands| registrar.on_message(hands, link, envelope, message));
                    }
                    Owner::Application(member) => {
                        self.hear_of(member.0, &message);
                        self.with_participant(member, |participant, hands| {
                            participant.on_message(hands, link, envelope, message);
                        });
                    }
                    Owner::Impostor(..) => {}
                },
            },
        }
    }

    /// From here on an application knows of these lives.
    fn hear_of(&mut self, here: NodeId, message: &Message) {
        if let Message::Peers(places) = message {
            for place in places {
                let heard = self.joining().heard.entry((here, place.node)).or_default();
                *heard = place.life.max(*heard);
            }
        }
    }

    fn on_proven(&mut self, link: LinkId, owner: Owner) {
        match owner {
            Owner::Control => {}
            Owner::Application(member) => {
                self.with_participant(member, |participant, hands| participant.on_proven(hands, link));
            }
            Owner::Impostor(..) => self.pretend(link, owner),
        }
    }

    /// Who has said what he has not to say is turned away.
    fn turn_away(&mut self, link: LinkId) {
        self.close(link);
        self.tell_of_loss(link, "turned away");
    }

    /// An impostor says what he comes for.
    fn pretend(&mut self, link: LinkId, owner: Owner) {
        let Owner::Impostor(Impostor { as_whom, at, .. }, life) = owner else { return };
        let to_incarnation = if at == RUN_CONTROL { Incarnation::FIRST } else { self.slot(at).incarnation };
        let envelope = Envelope { from: as_whom, to: at, run: self.setup.run, from_incarnation: life, to_incarnation };
        let message = if at == RUN_CONTROL {
            Message::Join { name: self.slot(as_whom).app.name.clone(), address: "elsewhere".into() }
        } else {
            Message::Greet { part: 0, datagrams: Box::default() }
        };
        self.say(link, envelope, message);
    }

    fn strike_at_joining(&mut self, index: usize) {
        let (moment, fault) = self.joining().joins.faults[index].clone();
        if matches!(moment, Moment::BetweenRuns(_)) && !self.only_joins() {
            return;
        }
        self.trace.tell(self.now, &format!("{fault:?}"));
        match fault {
            // It would be taken for one that may die.
            JoinFault::Impostor(Impostor { as_whom: node, knows_secret: true, .. })
            | JoinFault::Cut(node)
            | JoinFault::Death(node)
                if !self.setup.course.returns(node) => {}
            // Of one that has not died yet nobody knows another life.
            JoinFault::Impostor(Impostor { as_whom: node, lives_ahead: ..0, knows_secret: true, .. })
                if self.slot(node).incarnation == Incarnation::FIRST => {}
            JoinFault::Impostor(impostor) => {
                let Incarnation(life) = self.slot(impostor.as_whom).incarnation;
                let life = Incarnation(life.saturating_add_signed(impostor.lives_ahead));
                let at_life =
                    if impostor.at == RUN_CONTROL { Incarnation::FIRST } else { self.slot(impostor.at).incarnation };
                self.connect(Owner::Impostor(impostor, life), (impostor.at, at_life));
            }
            JoinFault::Death(node) => _ = self.end_process(node, PeerState::Down, KILLED),
            JoinFault::Cut(node) => {
                let own = Owner::Application((node, self.slot(node).incarnation));
                let ends = &self.joining().ends;
                let is_to_control = |link: &usize| ends[*link].owner == own && ends[link ^ 1].owner == Owner::Control;
                let link = (0..ends.len()).find(is_to_control).map(LinkId);
                if let Some(link) = link {
                    self.turn_away(LinkId(link.0 ^ 1));
                }
            }
        }
    }
}

const KILLED: &str = "killed by SIGKILL";
/// How long a process takes to start that has died by itself.
const START: Duration = Duration::from_millis(1);
pub(super) const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Longer than the longest pause before a restart, and what follows.
const SETTLING: Duration = Duration::from_secs(60);
