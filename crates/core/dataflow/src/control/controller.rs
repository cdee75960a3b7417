//! The conductor of one run: starts the applications, ends the run, drains stage by stage, collects the reports.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::component::Outbox;
use crate::control::lives::Lives;
use crate::control::states::{State, Verb};
use crate::message::{Command, FileRecord, Message};
use crate::report::Report;
use base::ids::{NodeId, Role};
use base::time::Time;

/// An application of the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// `sfi-1`.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Its address.
    pub node: NodeId,
}

/// How a run is conducted.
#[derive(Clone, Debug)]
pub struct ControllerParameters {
    /// All applications.
    pub applications: Vec<Application>,
    /// Ends the run after this time.
    pub duration: Option<Duration>,
    /// How long a stage that drains may make no progress, and how long giving up and reporting may take.
    pub stop_timeout: Duration,
}

/// Conducts one run of connected applications. Losing one ends the run: the rest drains, and what was lost is counted.
///
/// A stage may drain for as long as it, or what is behind it, makes progress: several times in a `stop_timeout` the
/// controller looks at the [marks](crate::report::Report::mark) of all that have not drained, and only when none has changed
/// for a whole `stop_timeout` it gives up. The counters behind the marks are those of events that get on, of which there are
/// finitely many once level 1 has stopped, so that every stop ends.
pub struct Controller {
    parameters: ControllerParameters,
    state: State,
    phase: Phase,
    deadline: Option<Time>,
    /// Looks at the stage that drains since one of them saw progress.
    looks: u32,
    /// What the last look at each application saw.
    marks: BTreeMap<NodeId, u64>,
    ends_at: Option<Time>,
    started: Option<Time>,
    stopped: Option<Time>,
    drained: BTreeSet<NodeId>,
    dead: Vec<NodeId>,
    reports: BTreeMap<NodeId, Report>,
    lives: Lives,
    files: Vec<FileRecord>,
    /// Why the run was not ended by its own limits.
    reasons: Vec<String>,
    forced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Running,
    /// The stage of this index in the drain order.
    Draining(usize),
    Reporting,
    Ended,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Ending {
    /// When it began and when triggers ended; `None` if it never began.
    pub began: Option<Time>,
    /// When triggers ended.
    pub stopped: Option<Time>,
    /// The reports of the applications that lived to give one.
    pub reports: BTreeMap<NodeId, Report>,
    /// What all applications have counted, in all their lives.
    pub lives: Lives,
    /// Applications that died.
    pub dead: Vec<NodeId>,
    /// Whether what was in hand was given up.
    pub forced: bool,
    /// Files that were closed.
    pub files: Vec<FileRecord>,
    /// Empty for a run that ended by its limits or a request to stop; else why it was cut short.
    pub reasons: Vec<String>,
}

impl Controller {
    /// A controller of applications that are all connected.
    pub fn new(parameters: ControllerParameters) -> Self {
        Self {
            parameters,
            state: State::Connected,
            phase: Phase::Waiting,
            deadline: None,
            looks: 0,
            marks: BTreeMap::new(),
            ends_at: None,
            started: None,
            stopped: None,
            drained: BTreeSet::new(),
            dead: Vec::new(),
            reports: BTreeMap::new(),
            lives: Lives::default(),
            files: Vec::new(),
            reasons: Vec::new(),
            forced: false,
        }
    }

    /// Begins the run: sinks first, so that nobody sends to one that has not begun.
    pub fn start(&mut self, now: Time, out: &mut Outbox) {
        self.change(Verb::Start);
        self.phase = Phase::Running;
        self.started = Some(now);
        self.ends_at = self.parameters.duration.map(|duration| now + duration);
        for role in Role::IN_DRAIN_ORDER.into_iter().rev() {
            self.command(role, Command::Start, out);
        }
    }

    /// Takes a message of an application.
    pub fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut Outbox) {
        match message {
            Message::Exhausted => self.stop(now, out),
            Message::Drained => _ = self.drained.insert(from),
            Message::Report(report) => {
                self.lives.on_report(from, (*report).clone());
                self.reports.insert(from, *report);
            }
            Message::Progress(mark) => self.on_progress(from, mark),
            Message::FileClosed(file) => self.files.push(file),
            _ => {}
        }
        self.proceed(now, out);
    }

    /// Ends the run in order: what is in hand is finished.
    pub fn stop(&mut self, now: Time, out: &mut Outbox) {
        if self.phase == Phase::Running {
            self.change(Verb::Stop);
            self.stopped = Some(now);
            self.enter(now, 0, out);
            self.proceed(now, out);
        }
    }

    /// Ends the run in order, but not as it was meant to end.
    pub fn stop_because(&mut self, now: Time, reason: &str, out: &mut Outbox) {
        if self.phase != Phase::Ended {
            self.reasons.push(reason.into());
            self.stop(now, out);
        }
    }

    /// Ends the run at once: what is in hand is given up and counted.
    pub fn force(&mut self, now: Time, reason: &str, out: &mut Outbox) {
        self.stop(now, out);
        if matches!(self.phase, Phase::Draining(_)) && !self.forced {
            self.forced = true;
            self.reasons.push(reason.into());
            self.parameters.applications.iter().for_each(|app| out.send(app.node, Message::Command(Command::Abandon)));
            self.deadline = Some(now + self.parameters.stop_timeout);
        }
    }

    /// Holds back triggers.
    pub fn pause(&mut self, out: &mut Outbox) {
        if self.state == State::Running {
            self.change(Verb::Pause);
            self.command(Role::Level1, Command::Pause, out);
            self.command(Role::Dfm, Command::Pause, out);
        }
    }

    /// Lets triggers go on.
    pub fn resume(&mut self, out: &mut Outbox) {
        if self.state == State::Paused {
            self.change(Verb::Resume);
            self.command(Role::Level1, Command::Resume, out);
            self.command(Role::Dfm, Command::Resume, out);
        }
    }

    /// An application has died: the run ends, for that reason.
    pub fn on_death(&mut self, now: Time, node: NodeId, how: &str, out: &mut Outbox) {
        if self.phase == Phase::Ended || self.dead.contains(&node) {
            return;
        }
        self.dead.push(node);
        self.lives.on_death(node);
        self.reasons.push(format!("{} died: {how}", self.name(node)));
        self.stop(now, out);
        self.proceed(now, out);
    }

    /// The time that [`Controller::next_deadline`] named has come.
    pub fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        if self.ends_at.is_some_and(|end| end <= now) {
            self.ends_at = None;
            self.stop(now, out);
        }
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.on_stage_timeout(now, out);
        }
        self.proceed(now, out);
    }

    /// When [`Controller::on_deadline`] is wanted.
    pub fn next_deadline(&self) -> Option<Time> {
        let end = self.ends_at.filter(|_| self.phase == Phase::Running);
        [self.deadline, end].into_iter().flatten().min()
    }

    /// A life of an application has ended and another one follows; its last report, if it is to be had otherwise than by a message.
    pub fn on_life_over(&mut self, node: NodeId, last: Option<Report>) {
        last.into_iter().for_each(|report| self.lives.on_report(node, report));
        self.lives.on_death(node);
    }

    /// What applications have counted so far, for progress while the run goes on.
    pub fn lives(&self) -> &Lives {
        &self.lives
    }

    /// The state of the partition.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether what is in hand is given up.
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// Whether the run goes on, paused or not.
    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// The role that drains, if the run is being stopped.
    pub fn draining(&self) -> Option<Role> {
        match self.phase {
            Phase::Draining(stage) => Some(Role::IN_DRAIN_ORDER[stage]),
            Phase::Waiting | Phase::Running | Phase::Reporting | Phase::Ended => None,
        }
    }

    /// Whether the run has ended.
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The outcome, once the run has ended.
    pub fn ending(&self) -> Option<Ending> {
        (self.phase == Phase::Ended).then(|| Ending {
            began: self.started,
            stopped: self.stopped,
            reports: self.reports.clone(),
            lives: self.lives.clone(),
            dead: self.dead.clone(),
            forced: self.forced,
            files: self.files_once(),
            reasons: self.reasons.clone(),
        })
    }

    /// A recorder that returned has told of the files of its former life again.
    fn files_once(&self) -> Vec<FileRecord> {
        let mut paths = BTreeSet::new();
        self.files.iter().filter(|file| paths.insert(&file.path)).cloned().collect()
    }

    fn enter(&mut self, now: Time, stage: usize, out: &mut Outbox) {
        self.phase = Phase::Draining(stage);
        self.looks = 0;
        self.deadline = Some(now + if self.forced { self.parameters.stop_timeout } else { self.look_interval() });
        let command = if self.forced { Command::Abandon } else { Command::Drain };
        self.command(Role::IN_DRAIN_ORDER[stage], command, out);
    }

    /// Goes on to the next stage as soon as this one is finished.
    fn proceed(&mut self, now: Time, out: &mut Outbox) {
        while let Phase::Draining(stage) = self.phase {
            let role = Role::IN_DRAIN_ORDER[stage];
            if !self.living(role).all(|node| self.drained.contains(&node)) {
                return;
            }
            if stage + 1 < Role::IN_DRAIN_ORDER.len() {
                self.enter(now, stage + 1, out);
            } else {
                self.phase = Phase::Reporting;
                self.reports.clear();
                self.deadline = Some(now + self.parameters.stop_timeout);
                self.parameters
                    .applications
                    .iter()
                    .for_each(|app| out.send(app.node, Message::Command(Command::Report)));
            }
        }
        let reported = |app: &Application| self.dead.contains(&app.node) || self.reports.contains_key(&app.node);
        if self.phase == Phase::Reporting && self.parameters.applications.iter().all(reported) {
            self.end();
        }
    }

    fn look_interval(&self) -> Duration {
        self.parameters.stop_timeout / LOOKS
    }

    /// Asks all that have not drained how far they are: an application waits for those behind it.
    fn look(&mut self, now: Time, stage: usize, out: &mut Outbox) {
        self.looks += 1;
        self.deadline = Some(now + self.look_interval());
        for role in &Role::IN_DRAIN_ORDER[stage..] {
            let undrained = self.living(*role).filter(|node| !self.drained.contains(node));
            undrained.for_each(|node| out.send(node, Message::Command(Command::Progress)));
        }
    }

    fn on_progress(&mut self, from: NodeId, mark: u64) {
        if self.marks.insert(from, mark) != Some(mark) {
            self.looks = 0;
        }
    }

    /// A stage that cannot drain is told to give up; one that does not even do that is passed over.
    fn on_stage_timeout(&mut self, now: Time, out: &mut Outbox) {
        match self.phase {
            Phase::Draining(stage) if !self.forced && self.looks < LOOKS => self.look(now, stage, out),
            Phase::Draining(stage) => {
                let role = Role::IN_DRAIN_ORDER[stage];
                let stuck: Vec<NodeId> = self.living(role).filter(|node| !self.drained.contains(node)).collect();
                for &node in &stuck {
                    let seconds = self.parameters.stop_timeout.as_secs_f64();
                    let what = if self.forced {
                        format!("did not answer within {seconds} s")
                    } else {
                        format!("did not drain: no progress for {seconds} s")
                    };
                    self.reasons.push(format!("{} {what} (run.stop_timeout)", self.name(node)));
                }
                if self.forced {
                    self.drained.extend(stuck);
                } else {
                    self.forced = true;
                    self.parameters
                        .applications
                        .iter()
                        .for_each(|app| out.send(app.node, Message::Command(Command::Abandon)));
                    self.deadline = Some(now + self.parameters.stop_timeout);
                }
            }
            Phase::Reporting => {
                let silent =
                    |app: &&Application| !self.dead.contains(&app.node) && !self.reports.contains_key(&app.node);
                let silent: Vec<NodeId> =
                    self.parameters.applications.iter().filter(silent).map(|app| app.node).collect();
                for node in silent {
                    self.reasons.push(format!("{} did not report", self.name(node)));
                    self.lives.on_death(node);
                    self.dead.push(node);
                }
                self.end();
            }
            Phase::Waiting | Phase::Running | Phase::Ended => {}
        }
    }

    fn end(&mut self) {
        self.change(Verb::Drained);
        self.phase = Phase::Ended;
        self.deadline = None;
    }

    fn change(&mut self, verb: Verb) {
        self.state = self.state.after(verb).expect("the controller follows the table");
    }

    fn command(&self, role: Role, command: Command, out: &mut Outbox) {
        self.living(role).for_each(|node| out.send(node, Message::Command(command)));
    }

    fn living(&self, role: Role) -> impl Iterator<Item = NodeId> + '_ {
        let alive = move |app: &&Application| app.role == role && !self.dead.contains(&app.node);
        self.parameters.applications.iter().filter(alive).map(|app| app.node)
    }

    fn name(&self, node: NodeId) -> &str {
        self.parameters
            .applications
            .iter()
            .find(|app| app.node == node)
            .map_or("an unknown application", |app| &app.name)
    }
}

/// Looks at a stage within the time for which it may make no progress.
const LOOKS: u32 = 8;
