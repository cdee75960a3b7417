//! The conductor of a partition: leads it from state to state, and conducts its runs. A run is started, drained stage by stage
//! and reported; the next one may follow in the same processes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::lives::Lives;
use crate::states::{Illegal, State, Verb};
use base::ids::{NodeId, Role};
use base::time::Time;
use dataflow::component::Outbox;
use dataflow::message::{Command, FileRecord, Message};
use dataflow::report::{Report, Unexpected};

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

/// What a run keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLimits {
    /// Ends the run after this time.
    pub duration: Option<Duration>,
    /// How long a stage that drains may make no progress, and how long giving up and reporting may take.
    pub stop_timeout: Duration,
}

/// Leads a partition through the [state table](crate::states), and conducts one run after the other. Losing an application
/// ends the run: the rest drains, and what was lost is counted.
///
/// A stage may drain for as long as it, or what is behind it, makes progress. Several times in a `stop_timeout` the controller
/// looks at the [marks](dataflow::report::Report::mark) of all that have not drained. It gives up only when none has changed
/// for a whole `stop_timeout`. The counters behind the marks are those of events that get on. There are finitely many once
/// level 1 has stopped, so every stop ends.
pub struct Controller {
    applications: Vec<Application>,
    limits: RunLimits,
    state: State,
    run: OneRun,
}

/// All that is known of one run. Nothing of it reaches the next one.
#[derive(Default)]
struct OneRun {
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
    /// Applications before this place are done with what all are waited for: nobody looks at them again.
    done: usize,
    dead: Vec<NodeId>,
    reports: BTreeMap<NodeId, Report>,
    lives: Lives,
    unexpected: Vec<Unexpected>,
    files: Vec<FileRecord>,
    /// Why the run was not ended by its own limits.
    reasons: Vec<String>,
    forced: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Waiting,
    Running,
    /// The stage of this index in the drain order.
    Draining(usize),
    Reporting,
    Ended,
}

/// What a life of run control hands on to the next one.
#[derive(Clone, Debug, Default)]
pub struct Inheritance {
    /// When it began.
    pub began: Time,
    /// Whether triggers are held back.
    pub is_paused: bool,
    /// What applications have counted.
    pub lives: Lives,
    /// Applications that died, and did not return.
    pub dead: Vec<NodeId>,
    /// Why the run ends early, if it does.
    pub reasons: Vec<String>,
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
    /// What nobody has to say to run control.
    pub unexpected: Vec<Unexpected>,
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
    /// A controller of applications that do not run yet.
    pub fn new(applications: Vec<Application>) -> Self {
        let limits = RunLimits { duration: None, stop_timeout: Duration::ZERO };
        Self { applications, limits, state: State::Absent, run: OneRun::default() }
    }

    /// The applications start.
    ///
    /// # Errors
    /// They run already.
    pub fn boot(&mut self) -> Result<(), Illegal> {
        self.go(Verb::Boot)
    }

    /// They run and have joined.
    ///
    /// # Errors
    /// They were not to start.
    pub fn joined(&mut self) -> Result<(), Illegal> {
        self.go(Verb::Joined)
    }

    /// They have the configuration of a run with these limits. The controller forgets the former run.
    ///
    /// # Errors
    /// They do not run, or have another one.
    pub fn configure(&mut self, limits: RunLimits) -> Result<(), Illegal> {
        self.go(Verb::Configure)?;
        (self.limits, self.run) = (limits, OneRun::default());
        Ok(())
    }

    /// They have found one another.
    ///
    /// # Errors
    /// They have no configuration, or no run may begin now.
    pub fn connect(&mut self) -> Result<(), Illegal> {
        self.go(Verb::Connect)
    }

    /// Begins the run: sinks first, so that nobody sends to one that has not begun.
    ///
    /// # Errors
    /// They are not connected.
    pub fn start(&mut self, now: Time, out: &mut Outbox) -> Result<(), Illegal> {
        if self.run.phase != Phase::Waiting {
            return Err(Illegal { state: self.state, verb: Verb::Start });
        }
        self.go(Verb::Start)?;
        self.run.phase = Phase::Running;
        self.run.started = Some(now);
        self.run.ends_at = self.limits.duration.map(|duration| now + duration);
        for role in Role::IN_DRAIN_ORDER.into_iter().rev() {
            self.command(role, Command::Start, out);
        }
        Ok(())
    }

    /// Takes over a run that a former life of run control has begun and that goes on.
    ///
    /// # Errors
    /// They are not connected.
    pub fn inherit(&mut self, inheritance: Inheritance) -> Result<(), Illegal> {
        let Inheritance { began, is_paused, lives, dead, reasons } = inheritance;
        self.go(Verb::Start)?;
        if is_paused {
            self.change(Verb::Pause);
        }
        let ends_at = self.limits.duration.map(|duration| began + duration);
        self.run =
            OneRun { phase: Phase::Running, started: Some(began), ends_at, lives, dead, reasons, ..OneRun::default() };
        Ok(())
    }

    /// What the next life of run control needs to take over.
    pub fn legacy(&self) -> Option<Inheritance> {
        Some(Inheritance {
            began: self.run.started?,
            is_paused: self.state == State::Paused,
            lives: self.run.lives.clone(),
            dead: self.run.dead.clone(),
            reasons: self.run.reasons.clone(),
        })
    }

    /// They have given up their configuration and connections, and wait for another run. It also ends a fault.
    ///
    /// # Errors
    /// A run goes on, or they do not run.
    pub fn disconnect(&mut self) -> Result<(), Illegal> {
        self.go(Verb::Disconnect)
    }

    /// They end.
    ///
    /// # Errors
    /// A run goes on, or they do not run.
    pub fn shut_down(&mut self) -> Result<(), Illegal> {
        self.go(Verb::Shutdown)
    }

    /// No run can begin as it is.
    ///
    /// # Errors
    /// A run goes on.
    pub fn fail(&mut self) -> Result<(), Illegal> {
        self.go(Verb::Fail)
    }

    fn go(&mut self, verb: Verb) -> Result<(), Illegal> {
        self.state = self.state.after(verb)?;
        Ok(())
    }

    /// Takes a message of an application. Before a run begins there is none to take.
    pub fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut Outbox) {
        if self.run.phase == Phase::Waiting {
            return;
        }
        match message {
            Message::Exhausted => self.stop(now, out),
            Message::Drained => _ = self.run.drained.insert(from),
            Message::Report(report) => {
                self.run.lives.on_report(from, (*report).clone());
                self.run.reports.insert(from, *report);
            }
            Message::Progress(mark) => self.on_progress(from, mark),
            Message::FileClosed(file) => self.run.files.push(file),
            _ => {}
        }
        self.proceed(now, out);
    }

    /// Ends the run in order: what is in hand is finished.
    pub fn stop(&mut self, now: Time, out: &mut Outbox) {
        if self.run.phase == Phase::Running {
            self.change(Verb::Stop);
            self.run.stopped = Some(now);
            self.enter(now, 0, out);
            self.proceed(now, out);
        }
    }

    /// Ends the run in order, but not as it was meant to end.
    pub fn stop_because(&mut self, now: Time, reason: &str, out: &mut Outbox) {
        if self.run.phase != Phase::Ended {
            self.run.reasons.push(reason.into());
            self.stop(now, out);
        }
    }

    /// Ends the run at once: what is in hand is given up and counted.
    pub fn force(&mut self, now: Time, reason: &str, out: &mut Outbox) {
        self.stop(now, out);
        if matches!(self.run.phase, Phase::Draining(_)) && !self.run.forced {
            self.run.forced = true;
            self.run.reasons.push(reason.into());
            self.applications.iter().for_each(|app| out.send(app.node, Message::Command(Command::Abandon)));
            self.run.deadline = Some(now + self.limits.stop_timeout);
        }
    }

    /// Holds back triggers.
    pub fn pause(&mut self, out: &mut Outbox) {
        if self.state == State::Running {
            self.change(Verb::Pause);
            self.tell_triggers(Command::Pause, out);
        }
    }

    /// Lets triggers go on.
    pub fn resume(&mut self, out: &mut Outbox) {
        if self.state == State::Paused {
            self.change(Verb::Resume);
            self.tell_triggers(Command::Resume, out);
        }
    }

    /// A former life may have died before it said whether triggers go on: that is said again.
    pub fn go_on(&mut self, out: &mut Outbox) {
        match self.state {
            State::Running => self.tell_triggers(Command::Resume, out),
            State::Paused => self.tell_triggers(Command::Pause, out),
            _ => {}
        }
    }

    /// Whoever triggers by itself.
    fn tell_triggers(&self, command: Command, out: &mut Outbox) {
        self.command(Role::Level1, command, out);
        self.command(Role::Dfm, command, out);
    }

    /// An application has died: the run ends, for that reason.
    pub fn on_death(&mut self, now: Time, node: NodeId, how: &str, out: &mut Outbox) {
        if self.run.phase == Phase::Ended || self.run.dead.contains(&node) {
            return;
        }
        self.run.dead.push(node);
        self.run.lives.on_death(node);
        self.run.reasons.push(format!("{} died: {how}", self.name(node)));
        self.stop(now, out);
        self.proceed(now, out);
    }

    /// The time that [`Controller::next_deadline`] named has come.
    pub fn on_deadline(&mut self, now: Time, out: &mut Outbox) {
        if self.run.ends_at.is_some_and(|end| end <= now) {
            self.run.ends_at = None;
            self.stop(now, out);
        }
        if self.run.deadline.is_some_and(|deadline| deadline <= now) {
            self.run.deadline = None;
            self.on_stage_timeout(now, out);
        }
        self.proceed(now, out);
    }

    /// When [`Controller::on_deadline`] is wanted.
    pub fn next_deadline(&self) -> Option<Time> {
        let end = self.run.ends_at.filter(|_| self.run.phase == Phase::Running);
        [self.run.deadline, end].into_iter().flatten().min()
    }

    /// A life of an application has ended and another one follows; its last report, if it is to be had otherwise than by a message.
    pub fn on_life_over(&mut self, node: NodeId, last: Option<Report>) {
        last.into_iter().for_each(|report| self.run.lives.on_report(node, report));
        self.run.lives.on_death(node);
    }

    /// What applications have counted so far, for progress while the run goes on.
    pub fn lives(&self) -> &Lives {
        &self.run.lives
    }

    /// The state of the partition.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether what is in hand is given up.
    pub fn is_forced(&self) -> bool {
        self.run.forced
    }

    /// Whether the run goes on, paused or not.
    pub fn is_running(&self) -> bool {
        self.run.phase == Phase::Running
    }

    /// The role that drains, if the run is being stopped.
    pub fn draining(&self) -> Option<Role> {
        match self.run.phase {
            Phase::Draining(stage) => Some(Role::IN_DRAIN_ORDER[stage]),
            Phase::Waiting | Phase::Running | Phase::Reporting | Phase::Ended => None,
        }
    }

    /// Whom the stop waits for: those of the stage that have not drained, or have not reported at the end, of so many.
    pub fn awaited(&self) -> (Vec<NodeId>, usize) {
        let (run, stage) = (&self.run, self.draining());
        let is_asked = |app: &&Application| run.phase == Phase::Reporting || stage == Some(app.role);
        let has_answered = |node: &NodeId| match stage {
            Some(_) => run.drained.contains(node),
            None => run.reports.contains_key(node),
        };
        let asked = self.applications.iter().filter(is_asked).map(|app| app.node);
        let awaited = asked.clone().filter(|node| !has_answered(node) && !run.dead.contains(node));
        (awaited.collect(), asked.count())
    }

    /// Whether the run has ended.
    pub fn has_ended(&self) -> bool {
        self.run.phase == Phase::Ended
    }

    /// The outcome, once the run has ended.
    pub fn ending(&self) -> Option<Ending> {
        (self.run.phase == Phase::Ended).then(|| Ending {
            began: self.run.started,
            stopped: self.run.stopped,
            reports: self.run.reports.clone(),
            lives: self.run.lives.clone(),
            unexpected: self.run.unexpected.clone(),
            dead: self.run.dead.clone(),
            forced: self.run.forced,
            files: self.files_once(),
            reasons: self.run.reasons.clone(),
        })
    }

    /// A recorder that returned has told of the files of its former life again.
    fn files_once(&self) -> Vec<FileRecord> {
        let mut paths = BTreeSet::new();
        self.run.files.iter().filter(|file| paths.insert(&file.path)).cloned().collect()
    }

    /// Counts what an application has not to say to run control.
    pub fn refuse(&mut self, from: NodeId, message: &Message) {
        Unexpected::count(&mut self.run.unexpected, from, message.name());
    }

    fn enter(&mut self, now: Time, stage: usize, out: &mut Outbox) {
        self.run.phase = Phase::Draining(stage);
        (self.run.looks, self.run.done) = (0, 0);
        self.run.deadline = Some(now + if self.run.forced { self.limits.stop_timeout } else { self.look_interval() });
        let command = if self.run.forced { Command::Abandon } else { Command::Drain };
        self.command(Role::IN_DRAIN_ORDER[stage], command, out);
    }

    /// Goes on to the next stage as soon as this one is finished.
    fn proceed(&mut self, now: Time, out: &mut Outbox) {
        while let Phase::Draining(stage) = self.run.phase {
            let role = Role::IN_DRAIN_ORDER[stage];
            if !self.are_done(|run, app| app.role != role || run.drained.contains(&app.node)) {
                return;
            }
            if stage + 1 < Role::IN_DRAIN_ORDER.len() {
                self.enter(now, stage + 1, out);
            } else {
                self.run.phase = Phase::Reporting;
                self.run.done = 0;
                self.run.reports.clear();
                self.run.deadline = Some(now + self.limits.stop_timeout);
                self.applications.iter().for_each(|app| out.send(app.node, Message::Command(Command::Report)));
            }
        }
        if self.run.phase == Phase::Reporting && self.are_done(|run, app| run.reports.contains_key(&app.node)) {
            self.end();
        }
    }

    /// Whether all that live have done what they are waited for. Who has stays so until something else is waited for.
    fn are_done(&mut self, has_done: impl Fn(&OneRun, &Application) -> bool) -> bool {
        let is_done = |app: &&Application| has_done(&self.run, app) || self.run.dead.contains(&app.node);
        self.run.done += self.applications[self.run.done..].iter().take_while(is_done).count();
        self.run.done == self.applications.len()
    }

    fn look_interval(&self) -> Duration {
        self.limits.stop_timeout / LOOKS
    }

    /// Asks all that have not drained how far they are: an application waits for those behind it.
    fn look(&mut self, now: Time, stage: usize, out: &mut Outbox) {
        self.run.looks += 1;
        self.run.deadline = Some(now + self.look_interval());
        for role in &Role::IN_DRAIN_ORDER[stage..] {
            let undrained = self.living(*role).filter(|node| !self.run.drained.contains(node));
            undrained.for_each(|node| out.send(node, Message::Command(Command::Progress)));
        }
    }

    fn on_progress(&mut self, from: NodeId, mark: u64) {
        if self.run.marks.insert(from, mark) != Some(mark) {
            self.run.looks = 0;
        }
    }

    /// A stage that cannot drain is told to give up; one that does not even do that is passed over.
    fn on_stage_timeout(&mut self, now: Time, out: &mut Outbox) {
        match self.run.phase {
            Phase::Draining(stage) if !self.run.forced && self.run.looks < LOOKS => self.look(now, stage, out),
            Phase::Draining(stage) => {
                let role = Role::IN_DRAIN_ORDER[stage];
                let stuck: Vec<NodeId> = self.living(role).filter(|node| !self.run.drained.contains(node)).collect();
                for &node in &stuck {
                    let seconds = self.limits.stop_timeout.as_secs_f64();
                    let what = if self.run.forced {
                        format!("did not answer within {seconds} s")
                    } else {
                        format!("did not drain: no progress for {seconds} s")
                    };
                    self.run.reasons.push(format!("{} {what} (run.stop_timeout)", self.name(node)));
                }
                if self.run.forced {
                    self.run.drained.extend(stuck);
                } else {
                    self.run.forced = true;
                    self.applications.iter().for_each(|app| out.send(app.node, Message::Command(Command::Abandon)));
                    self.run.deadline = Some(now + self.limits.stop_timeout);
                }
            }
            Phase::Reporting => {
                let silent = |app: &&Application| {
                    !self.run.dead.contains(&app.node) && !self.run.reports.contains_key(&app.node)
                };
                let silent: Vec<NodeId> = self.applications.iter().filter(silent).map(|app| app.node).collect();
                for node in silent {
                    self.run.reasons.push(format!("{} did not report", self.name(node)));
                    self.run.lives.on_death(node);
                    self.run.dead.push(node);
                }
                self.end();
            }
            Phase::Waiting | Phase::Running | Phase::Ended => {}
        }
    }

    fn end(&mut self) {
        self.change(Verb::Drained);
        self.run.phase = Phase::Ended;
        self.run.deadline = None;
    }

    fn change(&mut self, verb: Verb) {
        self.go(verb).expect("the controller follows the table");
    }

    fn command(&self, role: Role, command: Command, out: &mut Outbox) {
        self.living(role).for_each(|node| out.send(node, Message::Command(command)));
    }

    fn living(&self, role: Role) -> impl Iterator<Item = NodeId> + '_ {
        let alive = move |app: &&Application| app.role == role && !self.run.dead.contains(&app.node);
        self.applications.iter().filter(alive).map(|app| app.node)
    }

    fn name(&self, node: NodeId) -> &str {
        self.applications.iter().find(|app| app.node == node).map_or("an unknown application", |app| &app.name)
    }
}

/// Looks at a stage within the time for which it may make no progress.
const LOOKS: u32 = 8;
