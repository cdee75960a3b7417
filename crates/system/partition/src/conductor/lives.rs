//! Children that join, die and return: what the registrar asks of run control.

use agents::{Children, Introduction, Start};
use base::ids::{Incarnation, NodeId, Role};
use base::time::Time;
use configuration::LossAction;
use membership::NO_RUN;
use membership::challenge::Member;
use membership::passage::{LinkId, Medium, Strand};
use membership::registrar::{AfterDeath, Applicant, Registrar, RegistrarDriver, RegistrarParameters};
use membership::run_secret::RunSecret;
use membership::severity::Severity;
use transport::poller::Poller;
use transport::waker::Waker;

use super::{Conductor, Phase, names};
use crate::conductor::site::link_key;
use crate::hands::{Hands, KnowsTalk};
use crate::killing::{Kill, NotKilled};
use crate::said::Said;
use driver::Assembly;
use driver::{Host, LinkEvent, PeerAddress};

/// What run control does for the registrar, at once or when it has said all.
pub(super) struct Parent<'a> {
    assembly: &'a Assembly,
    children: &'a mut Children,
    secret: &'a RunSecret,
    /// The life of run control.
    control: Incarnation,
    /// Connections are made with these, by run control that takes over.
    caller: Option<Caller<'a>>,
    asked: Vec<Asked>,
}

/// What a connection is made with.
struct Caller<'a> {
    poller: &'a mut Poller,
    waker: &'a Waker,
}

/// What is done when the registrar has said all.
enum Asked {
    Announce(Said),
    AnnounceDeath(NodeId, Said),
    LifeOver(NodeId),
    LostForGood(NodeId, String),
    StopBecause(String),
}

impl KnowsTalk for Parent<'_> {
    fn talk(&self, one: NodeId, other: NodeId) -> bool {
        self.assembly.talk(one, other)
    }
}

impl RegistrarDriver for Hands<'_, Parent<'_>> {
    fn start(&mut self, (node, life): Member) -> Result<(), String> {
        let Parent { assembly, children, secret, control, .. } = &mut self.side;
        let control = *control;
        let address = self.host.links.address().expect("a process with children listens");
        let links = link_key(&assembly.partition);
        let introduction = Introduction { secret: secret.clone(), run: NO_RUN, node, life, links, control };
        let is_ros = assembly.application(node).is_some_and(|app| app.role == Role::Ros);
        let ports = if is_ros { assembly.partition.ros.ports.clone() } else { Vec::new() };
        let program = assembly.program().map_err(|cause| cause.to_string())?;
        let (name, join, host) = (assembly.name(node), address.to_string(), assembly.host_of(node));
        let started = children.start(Start { program, name, join, introduction: &introduction, ports, host });
        started.map_err(|cause| cause.to_string())
    }

    fn call(&mut self, to: Member, address: &str) -> Result<LinkId, String> {
        let Caller { poller, waker } = self.side.caller.as_mut().ok_or("nobody is called now")?;
        let address: PeerAddress = address.parse().map_err(|error| format!("{error}"))?;
        let strand = Strand { medium: Medium::Tcp, port: None };
        let link = self.host.links.connect((to, &address), strand, self.now, poller, waker);
        link.map_err(|error| error.to_string())
    }

    fn kill(&mut self, node: NodeId) {
        self.side.children.kill(node);
    }

    fn rename(&mut self, link: LinkId, member: Member) {
        self.host.links.rename(link, member);
    }

    fn life_over(&mut self, node: NodeId) {
        self.side.asked.push(Asked::LifeOver(node));
    }

    fn lost_for_good(&mut self, node: NodeId, how: &str) {
        self.side.asked.push(Asked::LostForGood(node, how.to_owned()));
    }

    fn stop_because(&mut self, reason: &str) {
        self.side.asked.push(Asked::StopBecause(reason.to_owned()));
    }

    fn name(&self, node: NodeId) -> String {
        self.side.assembly.name(node)
    }

    fn talk(&self, one: NodeId, other: NodeId) -> bool {
        self.side.talk(one, other)
    }

    fn announce(&mut self, severity: Severity, text: &str) {
        self.side.asked.push(Asked::Announce(Said::of(severity, text)));
    }

    fn announce_death(&mut self, severity: Severity, node: NodeId, text: &str, causes: Vec<String>) {
        self.side.asked.push(Asked::AnnounceDeath(node, Said::of(severity, text).because(causes)));
    }
}

/// The registrar of these applications, which have processes of their own.
pub(super) fn registrar(assembly: &Assembly, outside: impl Iterator<Item = (NodeId, Role)>) -> Registrar {
    let processes = &assembly.partition.processes;
    let applicant = |(node, role)| {
        let after_death = match processes.on_loss.of(role) {
            LossAction::Restart if ::assembly::recovers(role) => AfterDeath::Returns,
            LossAction::Restart => AfterDeath::ReturnsBetweenRuns,
            LossAction::Stop => AfterDeath::EndsRun,
        };
        Applicant { node, name: assembly.name(node), after_death }
    };
    Registrar::new(RegistrarParameters {
        applicants: outside.map(applicant).collect(),
        start_timeout: processes.start_timeout.duration(),
        restarts: processes.restarts as usize,
        window: processes.restart_window.duration(),
    })
}

impl Conductor {
    /// Ends applications at once. What follows is as behind a death.
    pub(super) fn kill_whom_somebody_wants_gone(&mut self) {
        for Kill { name, answer } in self.control.take_kills() {
            let found = self.killable(&name);
            // Who has asked may have gone; who has not knows of it before it shows.
            let _ = answer.send(found.clone().map(drop));
            found.into_iter().for_each(|node| self.children.kill(node));
        }
    }

    fn killable(&self, name: &str) -> Result<NodeId, NotKilled> {
        let applications = &self.assembly.applications;
        let Some(application) = applications.iter().find(|application| application.name == name) else {
            let known = applications.iter().map(|application| application.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(NotKilled::Unknown { name: name.to_owned(), known });
        };
        match self.children.iter().find(|child| child.node() == application.node) {
            None => Err(NotKilled::Here(name.to_owned())),
            Some(child) if child.has_ended() => Err(NotKilled::Gone(name.to_owned())),
            Some(_) => Ok(application.node),
        }
    }

    pub(super) fn on_link_event(&mut self, now: Time, host: &mut Host, event: LinkEvent) {
        self.with_registrar(now, host, |registrar, hands| match event {
            LinkEvent::NotAccepted { reason } => registrar.on_not_accepted(reason),
            LinkEvent::Crowd { who } => registrar.on_crowd(hands, who),
            // Whoever has connected says what it comes for. Who was called is told who calls.
            LinkEvent::Proven { link } => registrar.on_proven(hands, link),
            LinkEvent::Message { link, envelope, message } => registrar.on_message(hands, link, envelope, message),
            LinkEvent::Lost { link, .. } => registrar.on_lost(hands, link),
        });
    }

    /// An application of a former life of run control lives in this life.
    pub(super) fn call(&mut self, now: Time, host: &mut Host, poller: &mut Poller, (node, life): Member) {
        let waker = self.site.waker();
        let caller = Some(Caller { poller, waker: &waker });
        self.with_registrar_of(now, host, caller, |registrar, hands| registrar.on_found(hands, node, life));
    }

    /// Calls the registrar, and does what it asks for.
    pub(super) fn with_registrar<R>(
        &mut self,
        now: Time,
        host: &mut Host,
        call: impl FnOnce(&mut Registrar, &mut Hands<'_, Parent<'_>>) -> R,
    ) -> R {
        self.with_registrar_of(now, host, None, call)
    }

    fn with_registrar_of<R>(
        &mut self,
        now: Time,
        host: &mut Host,
        caller: Option<Caller<'_>>,
        call: impl FnOnce(&mut Registrar, &mut Hands<'_, Parent<'_>>) -> R,
    ) -> R {
        let (assembly, children, secret) = (&self.assembly, &mut self.children, &self.secret);
        let (control, asked) = (self.succession.life, Vec::new());
        let mut hands = Hands { now, host, side: Parent { assembly, children, secret, control, caller, asked } };
        let answer = call(&mut self.registrar, &mut hands);
        for asked in hands.side.asked {
            match asked {
                Asked::Announce(said) => self.say(said),
                Asked::AnnounceDeath(node, said) => {
                    let said = self.with_last_words(node, said);
                    self.say(said);
                }
                Asked::LifeOver(node) => {
                    self.words.forget(node);
                    self.with_controller(host, |controller, _| controller.on_life_over(node, None));
                }
                Asked::LostForGood(node, how) => self.on_loss(now, host, node, how),
                Asked::StopBecause(reason) => {
                    self.with_controller(host, |controller, out| controller.stop_because(now, &reason, out));
                }
            }
        }
        answer
    }

    /// What an application that died in a run had said last may be why; with its host it did not die of that.
    fn with_last_words(&self, node: NodeId, mut said: Said) -> Said {
        if matches!(self.phase, Phase::Running) && !names::is_of_lost_host(&said) {
            said.causes.extend(self.words.last(node).map(|words| format!("it said last: {words}")));
        }
        said
    }

    /// An application has died and will not return: the run ends, or none can begin.
    fn on_loss(&mut self, now: Time, host: &mut Host, node: NodeId, how: String) {
        if matches!(self.phase, Phase::Running) {
            return self.with_controller(host, |controller, out| controller.on_death(now, node, &how, out));
        }
        // One that is at fault stays so.
        let _ = self.controller.fail();
        self.lost.get_or_insert((node, how));
    }
}
