//! The desk of a partition: orders go in, status and messages come out.

mod configuring;
mod views;

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::UNIX_EPOCH;

use agents::Roll;
use base::causes::sentences;
use catalogue::{Keeper, now};
use configuration::{Partition, Stamps};
use control::states::{Illegal, State, Verb};
use partition::summary::RunState;
use partition::{
    Control, Counted, Figures, Keeping, Left, News, NotKilled, Outcome, Placement, Run, RunSettings, Running, Said,
    Session, Stamping, StartError,
};
use serde_json::{Map, Value};
use tokio::sync::{broadcast, oneshot, watch};
use tokio::task::spawn_blocking;

use crate::answer::Refused;
use crate::authority::{Authority, KeyFile};
use crate::between::Between;
use crate::configured::{Configured, Reader};
use crate::dataflow::Dataflow;
use crate::message_log::MessageLog;
use crate::messages::{Message, Messages, Saying, Severity, severity_of};
use crate::operator::{Command, Operator};
use crate::order::{Order, stamps_in_words};
use crate::quality::{Own, Quality, References};
use crate::rates::Recent;
use crate::samples::{SampledEvent, Samples};
use crate::status::{self, LastRun, RunStatus, Status, may, sentence, shown, verbs};
use crate::trend::{Sample, Trend};

/// A partition and all that belongs to its command. Clones are the same desk.
#[derive(Clone, Debug)]
pub struct Desk(Arc<Shared>);

/// Waits for the thread of the desk to end.
#[derive(Debug)]
pub struct Leaving {
    thread: JoinHandle<()>,
    desk: Desk,
}

#[derive(Debug)]
struct Shared {
    /// Reads another configuration.
    reader: Reader,
    state: Mutex<Kept>,
    log: MessageLog,
    status: watch::Sender<Status>,
    said: broadcast::Sender<Message>,
    shown: broadcast::Sender<SampledEvent>,
    work: SyncSender<Work>,
    /// Whether the thread of the desk has ended.
    left: watch::Sender<bool>,
}

#[derive(Debug)]
struct Kept {
    /// Where its next life finds who commands.
    key_file: Option<KeyFile>,
    configured: Arc<Configured>,
    command: Command,
    messages: Messages,
    /// Reaches the partition, once it was booted.
    control: Option<Control>,
    /// The agents of the partition, once it was booted.
    roll: Roll,
    keeper: Keeper,
    /// So many runs begin by themselves behind the one that goes on or is about to begin. None where nobody wants another one.
    follow: Option<u32>,
    /// The run that has begun.
    run: Option<Control>,
    /// A run is about to begin.
    begins: bool,
    leaves: bool,
    dataflow: Dataflow,
    trend: Trend,
    samples: Samples,
    quality: Quality,
    own: Own,
}

/// What takes time, and is done by the thread of the desk.
#[derive(Debug)]
enum Work {
    Boot(oneshot::Sender<Result<(), Refused>>),
    Start(Box<Series>, oneshot::Sender<Result<u32, Refused>>),
    Shutdown(oneshot::Sender<Result<(), Refused>>),
    Configure(Box<Configured>, oneshot::Sender<Result<String, Refused>>),
    Leave,
}

/// Runs that follow one another.
#[derive(Debug)]
struct Series {
    settings: RunSettings,
    runs: u32,
    operator: String,
}

impl Desk {
    /// A desk for a partition whose applications do not run yet, or of which a run was left. The `reader` reads another configuration in the
    /// place of the one that is `configured`, and the `authority` says who commands. `keeper` keeps its runs, and histograms are compared
    /// with the `references`. What is said goes to the `log`.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn open(
        (configured, reader): (Configured, Reader),
        authority: Authority,
        placement: Placement,
        (keeper, log): (Keeper, MessageLog),
        references: References,
        succession: Option<Succession>,
    ) -> std::io::Result<(Self, Leaving)> {
        let (work, done) = sync_channel(1);
        let partition = &configured.partition;
        let name = partition.partition.name.clone();
        let (holder, key_file) = authority.into_parts();
        let status = Status {
            partition: name,
            state: status::name(State::Absent),
            verbs: verbs(State::Absent),
            operator: holder.clone(),
            waiting: None,
            run: None,
            follow: 0,
            last: None,
            alarms: 0,
            configured: 0,
            sentence: sentence(State::Absent, None, None, None),
        };
        let kept = Kept {
            key_file,
            command: Command::held_by(holder),
            messages: Messages::of(partition.applications().into_iter().map(|app| app.name), log.restored()),
            control: None,
            roll: Roll::default(),
            keeper,
            follow: None,
            run: None,
            begins: false,
            leaves: false,
            dataflow: Dataflow::of(partition),
            trend: Trend::default(),
            samples: Samples::default(),
            quality: Quality::with(references),
            own: Own::default(),
            configured: Arc::new(configured),
        };
        let desk = Self(Arc::new(Shared {
            reader,
            state: Mutex::new(kept),
            log,
            status: watch::Sender::new(status),
            said: broadcast::Sender::new(MESSAGES_UNREAD),
            shown: broadcast::Sender::new(SAMPLES_UNREAD),
            work,
            left: watch::Sender::new(false),
        }));
        let worker = Worker { desk: desk.clone(), placement, session: None, succession };
        let thread = thread::Builder::new().name("desk".into()).spawn(move || worker.work(&done))?;
        let teller = desk.clone();
        desk.0.log.begin(move |severity, text, causes| teller.tell_with(severity, text.to_owned(), causes))?;
        Ok((desk.clone(), Leaving { thread, desk }))
    }

    /// Does what an operator wants; what it says when it is done, or begun.
    ///
    /// # Errors
    /// Somebody else commands, the state table does not allow it, or it did not succeed.
    pub async fn order(&self, by: Operator, order: Order) -> Result<String, Refused> {
        let name = by.name.clone();
        self.take_command(by, false)?;
        let deed = order.deed();
        let done = self.carry_out(&name, order).await?;
        deed.into_iter().for_each(|deed| self.say(format!("{name} {deed}")));
        Ok(done)
    }

    async fn carry_out(&self, name: &str, order: Order) -> Result<String, Refused> {
        match order {
            Order::Boot => {
                self.may(Verb::Boot)?;
                self.work(Work::Boot).await.map(|()| "the applications run".to_owned())
            }
            Order::Start { keys, runs } => {
                let settings = settings(&self.configured().partition, keys)?;
                may_follow(&settings, runs)?;
                self.may(Verb::Start)?;
                if self.kept().follow.is_some() {
                    return Err(Refused::Busy);
                }
                let series = Box::new(Series { settings, runs, operator: name.to_owned() });
                let number = self.work(|answer| Work::Start(series, answer)).await?;
                Ok(format!("run {number} has begun"))
            }
            Order::Pause => self.control(Verb::Pause, Control::pause).map(|()| "triggers are held back".to_owned()),
            Order::Resume => self.control(Verb::Resume, Control::resume).map(|()| "triggers go on".to_owned()),
            Order::Stop => self.end("the run ends", Control::stop),
            Order::Force => self.end("the run ends at once", Control::force),
            Order::Stamps(stamps) => self.stamp(stamps),
            Order::Shutdown => {
                self.may(Verb::Shutdown)?;
                self.end_what_begins();
                self.work(Work::Shutdown).await.map(|()| "no application runs".to_owned())
            }
            Order::Kill { application } => {
                let control = self.kept().control.clone().ok_or(NotKilled::Absent)?;
                let name = application.clone();
                in_background(move || control.kill(&name)).await??;
                Ok(format!("{application} is ended"))
            }
            Order::Configure { file } => self.configure(name, file).await,
        }
    }

    /// Gives command to a client, if nobody has it, or if it takes over.
    ///
    /// # Errors
    /// Somebody else has it.
    pub fn take_command(&self, by: Operator, takes_over: bool) -> Result<(), Refused> {
        let (name, before) = (by.name.clone(), self.kept().command.holder().cloned());
        let from = self.kept().command.take(by, takes_over).map_err(|held| Refused::Held(held.to_string()))?;
        match from {
            Some(from) => self.say(format!("{name} takes command over from {}", from.name)),
            None if before.is_none() => self.say(format!("{name} commands")),
            None => {}
        }
        if before.as_ref() != self.kept().command.holder() {
            self.keep_holder();
        }
        self.refresh();
        Ok(())
    }

    /// Its next life knows who commands.
    fn keep_holder(&self) {
        let kept = {
            let kept = self.kept();
            kept.key_file.as_ref().map_or(Ok(()), |file| file.keep(kept.command.holder()))
        };
        kept.err().into_iter().for_each(|error| self.tell_failed(Severity::Warning, &error));
    }

    /// Gives command up, if this client has it.
    pub fn give_up_command(&self, client: &str) {
        if self.kept().command.give_up(client) {
            self.keep_holder();
            self.say("nobody commands".to_owned());
            self.refresh();
        }
    }

    /// Looks into the catalogue, or adds to it.
    pub fn with_catalogue<T>(&self, look: impl FnOnce(&mut catalogue::Catalogue) -> T) -> T {
        look(self.kept().keeper.catalogue())
    }

    /// Ends the run in order, the applications, and the thread of the desk; the second time ends the run at once.
    pub fn leave(&self) {
        let (again, control) = {
            let mut kept = self.kept();
            (core::mem::replace(&mut kept.leaves, true), kept.control.clone())
        };
        match control {
            Some(control) if again => control.force(),
            Some(control) => control.stop(),
            None => {}
        }
        if !again {
            // Somebody who is just given work to the desk goes first; the thread looks at `leaves` behind it.
            let _ = self.0.work.try_send(Work::Leave);
        }
    }

    /// Waits until no application is left.
    pub(crate) async fn is_left(&self) {
        // The desk that is asked here has the sender.
        let _ = self.0.left.subscribe().wait_for(|left| *left).await;
    }

    /// Refuses at once what would wait for the end of a run, and be done behind it.
    fn may(&self, verb: Verb) -> Result<(), Illegal> {
        let state = self.kept().control.as_ref().map_or(State::Absent, Control::state);
        if may(state, verb) { Ok(()) } else { Err(Illegal { state, verb }) }
    }

    fn control(&self, verb: Verb, act: impl FnOnce(&Control) -> Result<(), Illegal>) -> Result<(), Refused> {
        let control = self.kept().control.clone();
        let control = control.ok_or(Illegal { state: State::Absent, verb });
        let done = control.and_then(|control| act(&control));
        self.refresh();
        Ok(done?)
    }

    fn stamp(&self, stamps: Stamps) -> Result<String, Refused> {
        let Some(control) = self.kept().control.clone() else {
            return Err(Refused::Failed("no application runs: boot first".to_owned()));
        };
        control.stamp(stamps);
        let is_running = matches!(control.state(), State::Running | State::Paused);
        Ok(stamps_in_words(stamps, is_running).to_owned())
    }

    /// Time stamps of the applications; none before they run.
    pub fn stamping(&self) -> Stamping {
        self.kept().control.as_ref().map(Control::stamping).unwrap_or_default()
    }

    /// Ends the run, and those that would follow it; what there is to say.
    fn end(&self, said: &str, act: fn(&Control)) -> Result<String, Refused> {
        let (ended, followed) = {
            let mut kept = self.kept();
            let followed = kept.follow.take().is_some() || kept.begins;
            let state = kept.control.as_ref().map_or(State::Absent, Control::state);
            // A run that drains may be ended faster.
            let may_end = state == State::Draining || state.after(Verb::Stop).is_ok();
            // One that is about to begin does not.
            let run = if kept.begins { kept.control.as_ref() } else { kept.run.as_ref().filter(|_| may_end) };
            let ended = run.map(act).ok_or(Illegal { state, verb: Verb::Stop });
            (ended, followed)
        };
        self.refresh();
        match ended {
            // One is over, and the next has not begun or is about to.
            Err(_) if followed => {
                let begins = self.0.status.borrow().run.is_some();
                Ok(if begins { said } else { "no further run begins" }.to_owned())
            }
            ended => Ok(ended.map(|()| said.to_owned())?),
        }
    }

    /// Applications that start, or a run that is about to begin, do not; no other run begins.
    fn end_what_begins(&self) {
        let mut kept = self.kept();
        kept.follow = None;
        let begins = kept.begins;
        kept.control.iter().filter(|control| begins || control.state() == State::Booting).for_each(Control::stop);
    }

    /// A run has begun; nothing of the one before is left.
    fn begin(&self) {
        let mut kept = self.kept();
        kept.dataflow.begin();
        kept.quality.begin();
        kept.own = Own::default();
    }

    /// Whether a run begins now. Somebody may have ended the series while none went on.
    fn goes_on(&self) -> bool {
        let mut kept = self.kept();
        let goes_on = kept.follow.is_some();
        kept.begins = goes_on;
        if goes_on {
            // Who ends the series from now on ends this run.
            self.0.status.send_modify(|status| status.run = Some(RunStatus::default()));
        }
        goes_on
    }

    /// Whether the series of runs goes on behind one that ended so.
    fn follows(&self, outcome: &Result<Outcome, StartError>) -> bool {
        let mut kept = self.kept();
        let left = kept.follow.take().unwrap_or_default();
        if left == 0 || kept.leaves {
            return false;
        }
        let why = match outcome {
            Ok(outcome) if outcome.interrupted => "was ended early",
            Ok(outcome) if matches!(outcome.summary().state, RunState::Ok | RunState::Degraded) => {
                kept.follow = Some(left - 1);
                return true;
            }
            _ => "did not end well",
        };
        drop(kept);
        self.tell_all(Severity::Warning, format!("no further run begins: this one {why}"));
        false
    }

    async fn work<T>(&self, work: impl FnOnce(oneshot::Sender<Result<T, Refused>>) -> Work) -> Result<T, Refused> {
        let (answer, answered) = oneshot::channel();
        self.0.work.try_send(work(answer)).map_err(|error| match error {
            TrySendError::Full(_) => Refused::Busy,
            TrySendError::Disconnected(_) => Refused::Leaving,
        })?;
        answered.await.unwrap_or(Err(Refused::Leaving))
    }

    pub(crate) fn say(&self, text: String) {
        self.tell_all(Severity::Notice, text);
    }

    pub(crate) fn tell_all(&self, severity: Severity, text: String) {
        self.tell_with(severity, text, Vec::new());
    }

    /// What a run says.
    fn tell_said(&self, Said { severity, text, causes }: Said) {
        self.tell_with(severity_of(severity), text, causes);
    }

    /// What was wanted did not come to be: what it was, and the error.
    fn tell_error(&self, what: &str, error: &dyn core::error::Error) {
        self.tell_with(Severity::Error, what.to_owned(), sentences(error));
    }

    /// What an error says of itself is enough.
    fn tell_failed(&self, severity: Severity, error: &dyn core::error::Error) {
        let mut causes = sentences(error);
        let text = causes.remove(0);
        self.tell_with(severity, text, causes);
    }

    fn tell_with(&self, severity: Severity, text: String, causes: Vec<String>) {
        let run = self.0.status.borrow().run.as_ref().and_then(|run| run.number);
        // In the order of their numbers; neither waits.
        let mut kept = self.kept();
        let message = kept.messages.say(Saying { at_ms: now_ms(), run, severity, text, causes });
        self.0.log.keep(&message);
        // Nobody may listen.
        let _ = self.0.said.send(message);
    }

    /// Tells those who watch what has changed.
    fn tell(&self, change: impl FnOnce(&mut Status)) {
        // Nothing older is told behind something newer, so the lock stays.
        let kept = self.kept();
        let state = kept.control.as_ref().map_or(State::Absent, Control::state);
        let waiting = kept.control.as_ref().and_then(Control::waiting);
        let (begins, follow, alarms) = (kept.begins, kept.follow.unwrap_or_default(), kept.quality.alarms());
        let operator = kept.command.holder().cloned();
        self.0.status.send_if_modified(|status| {
            let before = status.clone();
            change(status);
            let shown = shown(state, status.run.is_some() && !begins);
            status.state = status::name(shown);
            // What is only to be kept yet cannot be ended faster.
            status.verbs = if shown == state { verbs(state) } else { Vec::new() };
            (status.operator, status.waiting) = (operator, waiting);
            (status.follow, status.alarms) = (follow, alarms);
            status.sentence = sentence(shown, status.waiting.as_ref(), status.run.as_ref(), status.last.as_ref());
            *status != before
        });
    }

    pub(crate) fn refresh(&self) {
        self.tell(|_| {});
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leaving {
    /// Waits until no application is left, and all that was said is kept.
    ///
    /// # Panics
    /// If the thread of the desk has panicked.
    pub fn wait(self) {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        self.desk.kept().key_file.iter().for_each(KeyFile::end);
        self.desk.0.log.end();
    }
}

/// Waits for something that takes time while others are served.
async fn in_background<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    spawn_blocking(what).await.map_err(|error| Refused::Failed(error.to_string()))
}

/// Whether runs with these settings may follow one another.
fn may_follow(settings: &RunSettings, runs: u32) -> Result<(), Refused> {
    let has_end = settings.events.is_some() || settings.duration.is_some() || settings.size.is_some();
    match runs {
        0 => Err(Refused::Settings("runs: expected at least 1, found 0".to_owned())),
        1 => Ok(()),
        _ if has_end => Ok(()),
        _ => Err(Refused::Settings("runs: expected a limit of each: events, duration or size".to_owned())),
    }
}

/// The settings of a run: those of the configuration with some keys replaced.
fn settings(partition: &Partition, keys: Map<String, Value>) -> Result<RunSettings, Refused> {
    let mut value = serde_json::to_value(&partition.run).expect("settings are keys and values");
    let known = value.as_object_mut().expect("settings are a table");
    // A limit replaces all limits, as on the command line.
    if LIMITS.iter().any(|limit| keys.contains_key(*limit)) {
        LIMITS.iter().for_each(|limit| _ = known.remove(*limit));
    }
    for (key, value) in keys {
        // Alone, so that it is named if it is wrong.
        let alone = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
        let is_known = serde_json::from_value::<RunSettings>(alone);
        is_known.map_err(|error| Refused::Settings(format!("run.{key}: {error}")))?;
        known.insert(key, value);
    }
    let run = serde_json::from_value(value).map_err(|error| Refused::Settings(error.to_string()))?;
    let partition = Partition { run, ..partition.clone() };
    partition.check_run().map_err(|error| Refused::Settings(error.to_string()))?;
    Ok(partition.run)
}

/// What run control keeps for its next life, and the run that its former life has left.
#[derive(Debug)]
pub struct Succession {
    /// Where it keeps that.
    pub keeping: Keeping,
    /// What there was.
    pub left: Option<Left>,
}

/// The thread of the desk.
struct Worker {
    desk: Desk,
    placement: Placement,
    session: Option<Session>,
    succession: Option<Succession>,
}

impl Worker {
    fn work(mut self, wanted: &Receiver<Work>) {
        match self.succession.as_mut().and_then(|succession| succession.left.take()) {
            Some(left) if left.goes_on() => self.take_over(left),
            Some(left) => self.take_agents_over(left),
            None => {}
        }
        while let Ok(work) = wanted.recv() {
            match work {
                // Who has asked may have left meanwhile.
                Work::Boot(answer) => _ = answer.send(self.boot()),
                Work::Start(series, answer) => self.series(&series, answer),
                Work::Shutdown(answer) => _ = answer.send(self.shut_down()),
                Work::Configure(configured, answer) => _ = answer.send(self.configure(*configured)),
                Work::Leave => {}
            }
            if self.desk.kept().leaves {
                break;
            }
        }
        if let Err(error) = self.end() {
            self.desk.tell_error("the applications did not end well", &error);
        }
        self.desk.0.left.send_replace(true);
    }

    /// A run that goes on already, until it ends.
    fn take_over(&mut self, left: Left) {
        let number = left.run_number();
        let resumed = self.desk.kept().keeper.resume(number);
        resumed.err().into_iter().for_each(|error| self.desk.tell_failed(Severity::Error, &error));
        self.desk.say(format!("run {number} goes on without run control: its applications are called"));
        let run = self.new_run();
        match run.take_over(left) {
            Ok((session, running)) => {
                self.session = Some(session);
                self.has_begun(Some(number));
                let outcome = self.conduct(Some(number), running);
                self.remark_absences(&outcome);
                outcome.as_ref().err().into_iter().for_each(|error| self.interrupted(error));
                self.over(outcome);
            }
            Err(error) => {
                self.desk.kept().control = None;
                self.interrupted(&error);
                self.desk.tell_error(&format!("run {number} was left and is lost"), &error);
                self.desk.refresh();
            }
        }
    }

    /// Agents that no run was left on: the applications start below them.
    fn take_agents_over(&mut self, left: Left) {
        self.desk.say("run control has died without a run: its agents start the applications".to_owned());
        let booted = self.new_run().take_agents_over(left).map(|session| self.session = Some(session));
        let _ = self.booted(booted);
    }

    /// A run that was taken over stays in the catalogue, though nobody can say how it went.
    fn interrupted(&self, error: &StartError) {
        let kept = self.desk.kept().keeper.interrupt(&format!("its run control has died: {error}"), now());
        kept.err().into_iter().for_each(|error| self.desk.tell_failed(Severity::Error, &error));
    }

    /// Who looks at the run later reads when nobody could have commanded it.
    fn remark_absences(&self, outcome: &Result<Outcome, StartError>) {
        let remarked =
            outcome.as_ref().map_or(Ok(()), |outcome| self.desk.kept().keeper.remark_absences(&outcome.away));
        remarked.err().into_iter().for_each(|error| self.desk.tell_failed(Severity::Error, &error));
    }

    /// What starts, or takes over, the applications.
    fn new_run(&self) -> Run {
        let run = Run::new(self.desk.configured().partition.clone()).place(self.placement.clone());
        let (say, refresh) = (self.desk.clone(), self.desk.clone());
        let say = move |said| say.tell_said(said);
        let run = match Between::of(say, move || refresh.refresh()) {
            Ok(between) => run.observe(between),
            Err(error) => {
                self.desk.tell_error("what is said between two runs is not told", &error);
                run
            }
        };
        {
            let mut kept = self.desk.kept();
            (kept.control, kept.roll) = (Some(run.control()), run.roll());
        }
        match &self.succession {
            Some(succession) => run.keep(succession.keeping.clone()),
            None => run,
        }
    }

    fn boot(&mut self) -> Result<(), Refused> {
        let booted = match &mut self.session {
            Some(session) => session.boot_again(),
            None => self.new_run().boot().map(|session| self.session = Some(session)),
        };
        self.booted(booted)
    }

    fn booted(&self, booted: Result<(), StartError>) -> Result<(), Refused> {
        if self.session.is_none() {
            self.desk.kept().control = None;
        }
        match &booted {
            Ok(()) => self.desk.say("the applications run".to_owned()),
            Err(StartError::Interrupted) => {
                self.desk.say("the applications do not start: that was given up".to_owned());
            }
            Err(error) => self.desk.tell_error("the applications cannot be started", &error),
        }
        self.desk.refresh();
        Ok(booted?)
    }

    /// One run after the other. Who has ordered them is answered when the first has begun.
    fn series(&mut self, series: &Series, answer: oneshot::Sender<Result<u32, Refused>>) {
        {
            let mut kept = self.desk.kept();
            kept.follow = Some(series.runs - 1);
        }
        let mut answer = Some(answer);
        let mut settings = series.settings.clone();
        while self.desk.goes_on() && self.run(settings.clone(), &series.operator, answer.take()) {
            settings.number = None;
        }
    }

    /// A whole run; whether another one follows. Who has ordered it is answered when it has begun.
    fn run(
        &mut self,
        settings: RunSettings,
        operator: &str,
        answer: Option<oneshot::Sender<Result<u32, Refused>>>,
    ) -> bool {
        // Who has asked may have left meanwhile.
        let answered = |said| answer.map(|answer| answer.send(said));
        let begun = match &mut self.session {
            None => Err(Illegal { state: State::Absent, verb: Verb::Start }.into()),
            Some(session) if !may(session.state(), Verb::Start) => {
                Err(Illegal { state: session.state(), verb: Verb::Start }.into())
            }
            Some(session) => begin(&self.desk, session, settings, operator),
        };
        match begun {
            Err(error) => {
                {
                    let mut kept = self.desk.kept();
                    (kept.follow, kept.begins) = (None, false);
                }
                self.not_begun(&error);
                answered(Err(error));
                false
            }
            Ok((number, running)) => {
                self.has_begun(number);
                self.desk.say(format!("{operator} has begun the run"));
                answered(Ok(number.unwrap_or_default()));
                let outcome = self.conduct(number, running);
                let follows = self.desk.follows(&outcome);
                self.over(outcome);
                follows
            }
        }
    }

    /// Who has given it up knows why it did not begin.
    fn not_begun(&self, error: &Refused) {
        if matches!(error, Refused::Start(error) if matches!(**error, StartError::Interrupted)) {
            self.desk.say("no run has begun: it was given up".to_owned());
            return self.desk.tell(|status| status.run = None);
        }
        self.desk.tell_error("no run has begun", error);
        let last = LastRun { number: None, state: "not started".into(), reason: Some(error.to_string()), recorded: 0 };
        self.desk.tell(|status| (status.run, status.last) = (None, Some(last)));
    }

    /// From now on what is said is said of this run.
    fn has_begun(&self, number: Option<u32>) {
        self.desk.tell(|status| status.run = Some(RunStatus { number, ..RunStatus::default() }));
        self.desk.begin();
    }

    /// Tells how a run goes until it is over.
    fn conduct(&self, number: Option<u32>, running: Running) -> Result<Outcome, StartError> {
        {
            let mut kept = self.desk.kept();
            (kept.run, kept.begins) = (Some(running.control()), false);
        }
        follow(&self.desk, number, running)
    }

    fn over(&self, outcome: Result<Outcome, StartError>) {
        self.desk.kept().run = None;
        let kept = self.desk.kept().keeper.end(outcome.as_ref().ok(), now());
        if let Err(error) = kept {
            self.desk.tell_error("the run is not in the catalogue", &error);
        }
        let last = match outcome {
            Ok(outcome) => {
                let summary = outcome.summary();
                self.desk.kept().dataflow.end(counted(&outcome));
                let state = status::name(summary.state);
                let (number, recorded) = (Some(summary.run_number), summary.accounting.recorded);
                LastRun { number, state, reason: summary.reason, recorded }
            }
            Err(error) => {
                LastRun { number: None, state: "aborted".into(), reason: Some(error.to_string()), recorded: 0 }
            }
        };
        let severity = match last.state.as_str() {
            "ok" => Severity::Notice,
            "degraded" => Severity::Warning,
            _ => Severity::Error,
        };
        self.desk.tell_with(
            severity,
            format!("the run has ended {}", last.state),
            last.reason.iter().cloned().collect(),
        );
        self.desk.tell(|status| (status.run, status.last) = (None, Some(last)));
    }

    fn shut_down(&mut self) -> Result<(), Refused> {
        // Nothing is left of a start that was given up.
        let Some(session) = &self.session else { return Ok(()) };
        let state = session.state();
        state.after(Verb::Shutdown)?;
        self.end()?;
        self.desk.say("the applications have ended".to_owned());
        Ok(())
    }

    fn end(&mut self) -> Result<(), StartError> {
        let ended = self.session.take().map_or(Ok(()), Session::shut_down);
        self.desk.kept().control = None;
        self.desk.refresh();
        ended
    }
}

fn begin(
    desk: &Desk,
    session: &mut Session,
    mut settings: RunSettings,
    operator: &str,
) -> Result<(Option<u32>, Running), Refused> {
    let at = now();
    desk.kept().keeper.begin(&mut settings, operator, at).map_err(|error| Refused::Failed(error.to_string()))?;
    let number = settings.number;
    match session.start(settings) {
        Ok(running) => Ok((number, running)),
        Err(error) => {
            let withdrawn = match &error {
                // Its applications know its number, which is never given to another one.
                StartError::Interrupted | StartError::StartTimeout { .. } | StartError::Child { .. } => {
                    desk.kept().keeper.interrupt(&error.to_string(), at)
                }
                _ => desk.kept().keeper.end(None, at),
            };
            withdrawn.err().into_iter().for_each(|error| desk.tell_failed(Severity::Error, &error));
            Err(error.into())
        }
    }
}

/// What each application has counted in a run.
fn counted(outcome: &Outcome) -> impl Iterator<Item = Counted> {
    outcome.assembly.applications.iter().filter_map(|application| {
        let report = outcome.ending.lives.of(application.node)?;
        Some(Counted { name: application.name.clone(), role: report.role, counts: report.counters })
    })
}

/// Tells how a run goes, until it is over.
fn follow(desk: &Desk, number: Option<u32>, running: Running) -> Result<Outcome, StartError> {
    let mut recent = Recent::default();
    let mut told = None;
    for news in running.reports() {
        match news {
            News::Sample(sampled) => {
                // It takes a while to make the event, during which nobody waits for the desk.
                let event: Arc<[u8]> = sampled.event().into();
                let told = {
                    let mut kept = desk.kept();
                    kept.own.fill(sampled.stage, &event);
                    kept.samples.add((now_ms(), number), &sampled, event)
                };
                // Nobody may listen.
                let _ = desk.0.shown.send(told);
            }
            News::Said(said) => desk.tell_said(said),
            News::Figures(figures) => {
                recent.add(figures.clone());
                // What changes at once is told at once; all else once per second.
                let second = (figures.elapsed.as_secs(), figures.stopping, figures.troubles.len());
                if told.as_ref() != Some(&second) {
                    told = Some(second);
                    observe(desk, number, &figures, &recent);
                }
            }
        }
    }
    desk.judge_own(number);
    running.wait()
}

fn observe(desk: &Desk, number: Option<u32>, figures: &Figures, recent: &Recent) {
    let run = RunStatus::new(number, figures, recent, &desk.configured().partition);
    {
        let mut kept = desk.kept();
        kept.dataflow.note(recent);
        kept.trend.add(Sample { at_ms: now_ms(), run: number, rates: run.rates });
    }
    desk.judge_own(number);
    desk.tell(|status| status.run = Some(run));
}

fn now_ms() -> u64 {
    let since = now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The keys of `[run]` that end a run.
const LIMITS: [&str; 3] = ["events", "duration", "size"];
/// So many messages may wait for one who listens.
const MESSAGES_UNREAD: usize = 256;
/// And so many samples, as they are kept.
const SAMPLES_UNREAD: usize = 256;
