//! A partition whose applications live from run to run.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use configuration::Partition;
use control::states::{Illegal, State, Verb};

use crate::RunSettings;
use crate::conductor::{Request, StartError, Wanted, conduct_all};
use crate::control::Control;
use crate::differences::first_difference;
use crate::keeping::Left;
use crate::news::Mailbox;
use crate::run::Run;
use crate::running::Running;

/// A partition that is booted: its applications run, in this process or in their own, and one run may follow the other in
/// them. Each run has its own number, files, account and keys. Dropping it shuts it down.
#[derive(Debug)]
pub struct Session {
    configuration: Partition,
    control: Control,
    requests: Option<SyncSender<Request>>,
    /// None once it is shut down.
    thread: Option<JoinHandle<Result<(), StartError>>>,
}

/// A key that has another value than in the configuration that the partition was booted with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} cannot change between runs of the same processes, only the keys of [run] can: boot the partition anew")]
pub struct FixedKey {
    /// Such as `ros.count`.
    pub key: String,
}

impl Run {
    /// Starts the applications, without a run yet.
    ///
    /// # Errors
    /// They cannot be started; no process or port of them is left.
    ///
    /// # Panics
    /// If the thread that conducts them has panicked.
    pub fn boot(self) -> Result<Session, StartError> {
        let (control, configuration) = (self.control(), self.configuration.clone());
        let (requests, asked) = sync_channel(1);
        let (done, booted) = sync_channel(1);
        requests.send(Request::Boot(done)).expect("its receiver is here");
        let conducted = thread::Builder::new().name("conductor".into());
        let thread = conducted.spawn(move || conduct_all(self, asked).map(drop)).map_err(StartError::Thread)?;
        let mut session = Session { configuration, control, requests: Some(requests), thread: Some(thread) };
        match booted.recv() {
            Ok(Ok(())) => Ok(session),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(session.end().expect_err("a partition that is conducted says whether it has booted")),
        }
    }
}

impl Run {
    /// Takes over agents that a former life of run control has left without a run, and starts the applications below them.
    ///
    /// # Errors
    /// The applications cannot be started; no process or port of them is left.
    ///
    /// # Panics
    /// If a run [goes on](Left::goes_on), or the thread that conducts them has panicked.
    pub fn take_agents_over(self, left: Left) -> Result<Session, StartError> {
        assert!(!left.goes_on(), "a run is taken over as a whole");
        Self { left: Some(left), ..self }.boot()
    }

    /// Takes over a run that a former life of run control has left, with its applications, and waits until it goes on.
    ///
    /// # Errors
    /// It cannot be taken over.
    ///
    /// # Panics
    /// If no run [goes on](Left::goes_on), or the thread that conducts them has panicked.
    pub fn take_over(mut self, left: Left) -> Result<(Session, Running), StartError> {
        assert!(left.goes_on(), "there is a run to be taken over");
        let settings = left.partition.run.clone();
        self.left = Some(left);
        let (control, configuration) = (self.control(), self.configuration.clone());
        let (requests, asked) = sync_channel(1);
        let conducted = thread::Builder::new().name("conductor".into());
        let thread = conducted.spawn(move || conduct_all(self, asked).map(drop)).map_err(StartError::Thread)?;
        let mut session = Session { configuration, control, requests: Some(requests), thread: Some(thread) };
        session.start(settings).map(|running| (session, running))
    }
}

impl Session {
    /// Starts a run, and waits until it has begun. Events, duration and all else that `[run]` says may differ from run to run. Without a
    /// number it gets the next free one.
    ///
    /// # Errors
    /// Another run goes on, or this one did not begin: then another one may.
    pub fn start(&mut self, settings: RunSettings) -> Result<Running, StartError> {
        let state = self.control.state();
        if !matches!(state, State::Booted | State::Fault | State::Absent) {
            return Err(Illegal { state, verb: Verb::Start }.into());
        }
        let news = Mailbox::default();
        let ((begin, begun), (over, outcome)) = (sync_channel(1), sync_channel(1));
        let wanted = Wanted { settings, news: Some(news.clone()), begin: Some(begin), over };
        self.ask(Request::Start(Box::new(wanted)))?;
        match (begun.recv(), outcome) {
            (Ok(control), outcome) => Ok(Running::of_session(control, news, outcome)),
            (Err(_), outcome) => match outcome.recv() {
                Ok(outcome) => Err(outcome.err().unwrap_or(StartError::ShutDown)),
                Err(_) => Err(self.gone()),
            },
        }
    }

    /// The settings of a run that the configuration names, to be changed and [started](Session::start) with.
    pub fn settings(&self) -> RunSettings {
        self.configuration.run.clone()
    }

    /// The settings of a run in a configuration that differs in nothing else.
    ///
    /// # Errors
    /// The first key that differs although it has to stay as it is.
    pub fn settings_of(&self, configuration: &Partition) -> Result<RunSettings, FixedKey> {
        match first_difference(&self.configuration, configuration) {
            Some(key) => Err(FixedKey { key }),
            None => Ok(configuration.run.clone()),
        }
    }

    /// Starts applications again that were lost and that `processes.on_loss` does not have started again by itself.
    ///
    /// # Errors
    /// They cannot be started, or a run goes on.
    pub fn boot_again(&mut self) -> Result<(), StartError> {
        let state = self.control.state();
        if !matches!(state, State::Booted | State::Fault) {
            return Err(Illegal { state, verb: Verb::Boot }.into());
        }
        let (done, booted) = sync_channel(1);
        self.ask(Request::Boot(done))?;
        booted.recv().unwrap_or_else(|_| Err(self.gone()))
    }

    /// What pauses and ends its runs from other threads.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The state of the partition.
    pub fn state(&self) -> State {
        self.control.state()
    }

    /// Whether an application is lost without which no run can begin.
    pub fn is_at_fault(&self) -> bool {
        self.state() == State::Fault
    }

    /// Ends the applications. A run that goes on is stopped first.
    ///
    /// # Errors
    /// The system has refused what the driver needs to go on.
    ///
    /// # Panics
    /// If the thread that conducts them has panicked.
    pub fn shut_down(mut self) -> Result<(), StartError> {
        self.end()
    }

    fn ask(&mut self, request: Request) -> Result<(), StartError> {
        let asked = self.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok());
        if asked { Ok(()) } else { Err(self.gone()) }
    }

    /// Nobody conducts it any more.
    fn gone(&mut self) -> StartError {
        self.end().err().unwrap_or(StartError::ShutDown)
    }

    fn end(&mut self) -> Result<(), StartError> {
        if matches!(self.state(), State::Running | State::Paused) {
            self.control.stop();
        }
        self.requests = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.control.stop();
            self.requests = None;
            // Nobody wants to know how it went.
            let _ = thread.join();
        }
    }
}
