//! How a run goes on when run control dies: what it keeps for its next life, and how that takes over.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use agents::{Estate, Fence, Introduction, Left as Heritage};
use base::bulk::PageSlice;
use base::causes::sentences;
use base::ids::{Incarnation, NodeId};
use base::time::Time;
use control::controller::Inheritance;
use control::lives::Lives;
use dataflow::message::{Command, Envelope, Message};
use dataflow::node::RUN_CONTROL;
use dataflow::report::Report;
use dataflow::wire;
use membership::NO_RUN;
use membership::agents::Leases;
use membership::agents::words::fingerprint;
use membership::registrar::{Legacy, MemberLeft, Restart, RunToJoin};
use stamps::clock::TimeOfDay;
use transport::clock;
use transport::poller::Poller;
use transport::scheduler::Context;

use super::site::{link_key, welcome};
use super::{Conductor, Host, LeftFiles, Measures, Phase, StartError};
use crate::control::Wish;
use crate::keeping::{Away, Content, Keeping, Left, Member, Origin, Returned, VERSION, WRITE_EVERY, bytes_of, text};
use crate::run::Run;
use crate::run_number::RunNumber;
use crate::said::Said;

/// This life of run control, and what it knows of others.
pub(super) struct Succession {
    keeping: Option<Keeping>,
    fence: Fence,
    /// What a former life has left, until it is taken over.
    left: Option<Box<Left>>,
    pub(super) life: Incarnation,
    /// Where the first secret comes from.
    origin: Origin,
    /// The configuration that run control was started with.
    configuration: String,
    began_ms: u64,
    /// The agent that was longest without run control was so for so long.
    silent: Duration,
    pub(super) away: Vec<Away>,
    /// When it is written again what changes all the time.
    next_write: Time,
    /// Whether this process has said that it conducts.
    is_claimed: bool,
    /// What was written last.
    written: Option<Content>,
    is_told: bool,
    /// What was wanted while a run was taken over.
    wishes: Vec<Wish>,
}

impl Succession {
    pub(super) fn new(run: &mut Run, now: Time, origin: Origin, fence: Fence) -> Self {
        let has_hosts = !run.configuration.host.is_empty();
        let left = run.left.take().map(Box::new);
        let life = left.as_ref().map_or(Incarnation::FIRST, |left| Incarnation(left.life.0 + 1));
        Self {
            keeping: run.keeping.take().filter(|_| has_hosts),
            fence,
            left,
            life,
            origin,
            configuration: run.configuration.without_secrets().to_toml(),
            began_ms: 0,
            silent: Duration::ZERO,
            away: Vec::new(),
            next_write: now,
            is_claimed: false,
            written: None,
            is_told: false,
            wishes: Vec::new(),
        }
    }

    /// What a former life has left, to be taken over now.
    pub(super) fn take_left(&mut self) -> Option<Box<Left>> {
        self.left.take()
    }

    /// Ends this process, if another one has taken over.
    pub(super) fn give_way(&self) {
        if let Some(keeping) = &self.keeping
            && self.fence.is_passed()
        {
            keeping.taken();
        }
    }

    /// A run begins.
    pub(super) fn begin(&mut self) {
        (self.began_ms, self.away) = (now_ms(), Vec::new());
    }

    /// From now on nobody else conducts.
    fn claim(&mut self, keeping: &Keeping) -> io::Result<()> {
        if !self.is_claimed {
            keeping.claim(&self.fence)?;
            keeping.remove_others(self.life).map_err(io::Error::other)?;
            self.is_claimed = true;
        }
        Ok(())
    }

    /// Writes what the next life has to know, or says that it holds.
    fn write(&mut self, keeping: &Keeping, content: Content) -> io::Result<()> {
        self.claim(keeping)?;
        if self.written.as_ref() == Some(&content) {
            if keeping.confirm(self.life).is_ok() {
                return Ok(());
            }
            // Somebody has removed it: another run control, perhaps.
            self.is_claimed = false;
            self.claim(keeping)?;
        }
        keeping.write(self.life, &content)?;
        self.written = Some(content);
        Ok(())
    }

    /// Nothing can be taken over any more.
    pub(super) fn end(&mut self) {
        self.fence.lower();
        self.keeping.iter().for_each(|keeping| keeping.remove(self.life));
        (self.is_claimed, self.written) = (false, None);
    }
}

impl Conductor {
    /// Writes down what changes, now and then.
    pub(super) fn keep_now_and_then(&mut self, now: Time) {
        if self.succession.next_write <= now {
            self.succession.next_write = now + WRITE_EVERY;
            self.keep();
        }
    }

    /// Says that what a former life has written holds as long as its run is being taken over. A third life would think that nothing of it
    /// lives any more.
    pub(super) fn confirm_now_and_then(&mut self, now: Time) {
        if self.succession.next_write <= now {
            self.succession.next_write = now + WRITE_EVERY;
            let life = self.succession.life;
            // What cannot be confirmed now is written when the run goes on.
            self.succession.keeping.iter().for_each(|keeping| _ = keeping.confirm(life));
        }
    }

    /// Writes down what the next life has to know.
    pub(super) fn keep(&mut self) {
        let Some(keeping) = self.succession.keeping.clone() else { return };
        let Some(content) = self.content() else { return };
        let life = self.succession.life;
        match self.succession.write(&keeping, content) {
            Ok(()) => self.succession.is_told = false,
            Err(_) if self.succession.is_told => {}
            Err(error) => {
                self.succession.is_told = true;
                let path = keeping.file(life);
                let said = Said::warning("nobody can take over if run control dies");
                let mut causes = sentences(&error);
                causes[0] = format!("{}: {}", path.display(), causes[0]);
                self.say(said.because(causes));
            }
        }
    }

    fn content(&self) -> Option<Content> {
        let estate = self.children.estate();
        // Nothing on other hosts outlives this process if nothing is there, or ends.
        let ends = matches!(self.phase, Phase::Ending { goes_on: false, .. } | Phase::Over | Phase::Failed(_));
        if ends || estate.agents.is_empty() {
            return None;
        }
        let goes_on = matches!(self.phase, Phase::Running | Phase::TakingOver { .. });
        // Between two runs applications hold nothing: agents are all that is worth to be taken over.
        let (legacy, inheritance) = match goes_on {
            true => (self.registrar.legacy(), self.controller.legacy()?),
            false => (Legacy::default(), Inheritance::default()),
        };
        let agents = estate.agents.iter().map(|(life, at)| (life.0, at.map(|at| at.to_string()))).collect();
        let mut commands = legacy.commands;
        let mut lives: BTreeMap<NodeId, ([Option<&Report>; 2], bool)> =
            inheritance.lives.kept().map(|(node, reports, is_cut_short)| (node, (reports, is_cut_short))).collect();
        let has_many = self.has_many();
        let member = |member: MemberLeft| {
            let ([newest, former], is_cut_short) = lives.remove(&member.node).unwrap_or_default();
            let said = commands.remove(&member.node).unwrap_or_default();
            let report = |report: &Report| to_text(&Message::Report(Box::new(report.clone())));
            Member {
                node: member.node.0,
                life: member.life.0,
                address: member.address,
                is_gone: member.is_gone,
                commands: said.into_iter().map(|command| to_text(&Message::Command(command))).collect(),
                newest: newest.filter(|_| !has_many).map(report),
                former: former.map(report),
                is_cut_short,
            }
        };
        let Succession { origin, configuration, began_ms, away, .. } = &self.succession;
        Some(Content {
            version: VERSION,
            configuration: configuration.clone(),
            goes_on,
            run: self.assembly.partition.without_secrets().to_toml(),
            origin: origin.clone(),
            members_secret: text(&fingerprint(&self.secret)),
            agents_secret: text(&estate.secret),
            agents,
            began_ms: *began_ms,
            is_paused: inheritance.is_paused,
            members: legacy.members.into_iter().map(member).collect(),
            returned: legacy.returned.iter().map(returned).collect(),
            dead: inheritance.dead.iter().map(|node| node.0).collect(),
            reasons: inheritance.reasons,
            away: away.clone(),
        })
    }

    /// Begins to take over the run that a former life has left.
    pub(super) fn take_over(&mut self, context: &mut Context<'_, Host>, left: &Left) -> Result<(), StartError> {
        let (now, host) = (context.now, &mut *context.shared);
        let Left { content, .. } = left;
        let number = left.run_number();
        self.assembly = self.site.inherit(left.partition.clone())?;
        self.number = Some(RunNumber::again(&self.assembly.partition, number));
        self.left_files = Some(LeftFiles::new(&self.assembly.partition.output.directory, number));
        self.show_from(now);
        self.renew(host);
        let run = RunToJoin {
            number: self.assembly.run(),
            welcome: welcome(&self.assembly, host),
            shares: host.links.are_shared(),
        };
        self.registrar.inherit(self.succession.life, run, legacy(content));
        self.succeed(left)?;
        self.succession.wishes.clear();
        (self.succession.began_ms, self.succession.away) = (content.began_ms, content.away.clone());
        let living = content.members.iter().filter(|member| !member.is_gone).map(|member| NodeId(member.node));
        let applications = living.filter_map(|node| Some((node, self.assembly.host_of(node)?))).collect();
        self.call_agents(left, applications)?;
        self.controller.boot().expect("nothing else can be done yet");
        self.configured();
        self.controller.connect().expect("they were configured");
        let began = began(now, content.began_ms);
        self.controller.inherit(inheritance(began, content)).expect("they are connected");
        self.measures = Measures::launch(now, &self.children);
        self.measures.begin(now, &self.children);
        self.measures.began = Some(began);
        let leases = Leases::new(self.assembly.partition.processes.lease.duration()).until_empty();
        self.phase =
            Phase::TakingOver { deadline: now + self.assembly.partition.processes.start_timeout.duration() + leases };
        Ok(())
    }

    /// Takes over the agents that a former life has left between two runs, or about to begin one. Whatever lives there ends: applications
    /// start anew, in lives that are told from those.
    pub(super) fn take_agents_over(&mut self, left: &Left) -> Result<(), StartError> {
        self.succeed(left)?;
        self.call_agents(left, BTreeMap::new())
    }

    /// From here on the former life is not obeyed.
    fn succeed(&mut self, left: &Left) -> Result<(), StartError> {
        let Some(keeping) = self.succession.keeping.clone() else { return Ok(()) };
        let life = self.succession.life;
        keeping.succeed(left.life, life, &left.content).map_err(StartError::TakenOver)?;
        self.succession.claim(&keeping).map_err(|error| {
            keeping.remove(life);
            StartError::TakenOver(error)
        })
    }

    fn call_agents(&mut self, left: &Left, applications: BTreeMap<NodeId, usize>) -> Result<(), StartError> {
        let (_, of_agents) = left.secrets().expect("it was looked at when it was read");
        let agents = left.content.agents.iter().map(|(life, at)| {
            let at = at.as_ref().and_then(|at| at.parse().ok());
            (Incarnation(*life), at)
        });
        let estate = Estate { secret: fingerprint(&of_agents), agents: agents.collect() };
        let (life, links) = (self.succession.life, link_key(&self.assembly.partition));
        let introduction =
            Introduction { secret: of_agents, run: NO_RUN, node: RUN_CONTROL, life, links, control: life };
        let program = self.assembly.program().map_err(StartError::Program);
        let taken = program.and_then(|program| {
            let heritage = Heritage { estate, applications };
            self.children.take_over(&program, &introduction, heritage).map_err(StartError::TakenOver)
        });
        // Nobody else can take it over any more.
        taken.inspect_err(|_| self.succession.end())
    }

    /// Hears which members live.
    pub(super) fn find(&mut self, now: Time, host: &mut Host, poller: &mut Poller) {
        for ((node, life), silent) in self.children.found() {
            self.succession.silent = self.succession.silent.max(silent);
            self.call(now, host, poller, (node, life));
        }
    }

    /// Remembers what is wanted until the run goes on. Who wants it to end does not wait for those that are not back.
    pub(super) fn note_wishes(&mut self, now: Time, host: &mut Host) {
        let wishes = self.control.take();
        if wishes.iter().any(|wish| matches!(wish, Wish::Force(_) | Wish::Interrupt)) {
            self.with_registrar(now, host, |registrar, hands| registrar.give_up_missing(hands, true));
        }
        self.succession.wishes.extend(wishes);
    }

    /// Ends applications that are found when they were given up already.
    pub(super) fn end_late(&mut self) {
        for ((node, _), _) in self.children.found() {
            self.children.kill(node);
        }
    }

    /// All that live are back: the run goes on.
    pub(super) fn go_on(&mut self, now: Time, host: &mut Host) {
        self.phase = Phase::Running;
        let (silent, to_ms) = (self.succession.silent, now_ms());
        let from_ms = to_ms.saturating_sub(u64::try_from(silent.as_millis()).unwrap_or(u64::MAX));
        self.succession.away.push(Away { from_ms, to_ms });
        self.has_begun();
        self.warn(&format!(
            "run control is back after {:.2} s and has taken over the run that its former life had begun",
            silent.as_secs_f64()
        ));
        self.with_registrar(now, host, |registrar, hands| registrar.go_on(hands));
        let said = |command| move |commands: &Vec<Command>| commands.contains(&command);
        let legacy = self.registrar.legacy();
        let (is_forced, is_stopped) =
            (legacy.commands.values().any(said(Command::Abandon)), legacy.commands.values().any(said(Command::Drain)));
        self.with_controller(host, |controller, out| {
            if is_forced {
                controller.force(now, "the stop was forced before run control died", out);
            } else if is_stopped {
                controller.stop(now, out);
            } else {
                controller.go_on(out);
            }
        });
        self.take_over_stamps(&legacy.commands);
        for wish in core::mem::take(&mut self.succession.wishes) {
            self.fulfil(now, host, wish);
        }
        self.keep();
    }
}

fn legacy(content: &Content) -> Legacy {
    let member = |member: &Member| MemberLeft {
        node: NodeId(member.node),
        life: Incarnation(member.life),
        address: member.address.clone(),
        is_gone: member.is_gone,
    };
    let command = |text: &String| match of_text(text) {
        Some(Message::Command(command)) => Some(command),
        _ => None,
    };
    let commands = |member: &Member| (NodeId(member.node), member.commands.iter().filter_map(command).collect());
    let restart = |returned: &Returned| Restart {
        node: NodeId(returned.node),
        how: returned.how.clone(),
        died: Time::from_ns(returned.died_ns),
        back: returned.back_ns.map(Time::from_ns),
    };
    Legacy {
        members: content.members.iter().map(member).collect(),
        commands: content.members.iter().map(commands).collect(),
        returned: content.returned.iter().map(restart).collect(),
    }
}

fn returned(restart: &Restart) -> Returned {
    let Restart { node, how, died, back } = restart;
    Returned { node: node.0, how: how.clone(), died_ns: died.as_ns(), back_ns: back.map(Time::as_ns) }
}

fn inheritance(began: Time, content: &Content) -> Inheritance {
    let report = |text: &Option<String>| match of_text(text.as_ref()?) {
        Some(Message::Report(report)) => Some(*report),
        _ => None,
    };
    let kept = content
        .members
        .iter()
        .map(|member| (NodeId(member.node), [&member.newest, &member.former].map(report), member.is_cut_short));
    Inheritance {
        began,
        is_paused: content.is_paused,
        lives: Lives::of_kept(kept),
        dead: content.dead.iter().map(|node| NodeId(*node)).collect(),
        reasons: content.reasons.clone(),
    }
}

/// When a run began by the clock of this machine, as far as that goes back.
fn began(now: Time, began_ms: u64) -> Time {
    let elapsed_ns = now_ms().saturating_sub(began_ms).saturating_mul(1_000_000);
    Time::from_ns(now.as_ns().saturating_sub(elapsed_ns))
}

fn now_ms() -> u64 {
    let since_1970 = TimeOfDay::look().at(clock::now());
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// A message as it travels, as text. It goes from nobody to nobody.
fn to_text(message: &Message) -> String {
    let mut encoded = Vec::new();
    wire::encode(&NOBODY, message, &mut encoded);
    text(&encoded)
}

fn of_text(text: &str) -> Option<Message> {
    wire::decode(&PageSlice::copy_of(&bytes_of(text)?)).ok().map(|(_, message)| message)
}

const NOBODY: Envelope = Envelope {
    from: RUN_CONTROL,
    to: RUN_CONTROL,
    run: NO_RUN,
    from_incarnation: Incarnation::FIRST,
    to_incarnation: Incarnation::FIRST,
};
