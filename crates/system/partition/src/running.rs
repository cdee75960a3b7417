//! A run that goes on in a thread of its own.

use std::iter;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use control::states::Illegal;

use crate::conductor::{Outcome, StartError, conduct};
use crate::control::Control;
use crate::news::{Mailbox, News};
use crate::probe::{Figures, Probe, Watched};
use crate::run::Run;
use crate::said::Said;
use crate::waiting::Waiting;

/// A run that has begun. Dropping it stops the run in order, and waits for its end.
#[derive(Debug)]
#[must_use = "a run that is dropped is stopped"]
pub struct Running {
    control: Control,
    news: Mailbox,
    /// None once it was waited for.
    end: Option<End>,
}

/// Where its outcome comes from.
#[derive(Debug)]
enum End {
    /// It has a thread of its own, and ends with it.
    Thread(JoinHandle<Result<Outcome, StartError>>),
    /// It is one of several.
    Session(Receiver<Result<Outcome, StartError>>),
}

impl Run {
    /// Starts the run in a thread of its own.
    ///
    /// # Errors
    /// It did not begin; no process or port of it is left.
    ///
    /// # Panics
    /// If the thread of the run has panicked.
    pub fn start(mut self) -> Result<Running, StartError> {
        let news = Mailbox::default();
        let (begin, begun) = sync_channel(1);
        let control = self.control().of_this_run();
        self.probe = Watched(Some(Box::new(Telling {
            news: news.clone(),
            begin: Some(begin),
            probe: core::mem::take(&mut self.probe),
        })));
        let conducted = thread::Builder::new().name("conductor".into()).spawn(move || conduct(self));
        let thread = conducted.map_err(StartError::Thread)?;
        match begun.recv() {
            Ok(()) => Ok(Running { control, news, end: Some(End::Thread(thread)) }),
            Err(_) => End::Thread(thread).wait().map(|_| unreachable!("a run that is over has begun")),
        }
    }
}

impl Running {
    /// One of several runs of a partition.
    pub(crate) fn of_session(control: Control, news: Mailbox, outcome: Receiver<Result<Outcome, StartError>>) -> Self {
        Self { control, news, end: Some(End::Session(outcome)) }
    }

    /// Holds back triggers. What is in hand is finished, and time goes on.
    ///
    /// # Errors
    /// The run is paused already, or ends, or is over.
    pub fn pause(&self) -> Result<(), Illegal> {
        self.control.pause()
    }

    /// Lets triggers go on.
    ///
    /// # Errors
    /// The run is not paused.
    pub fn resume(&self) -> Result<(), Illegal> {
        self.control.resume()
    }

    /// Ends the run in the order of the data, so that nothing is lost. One that is over stays so, and the next one goes on.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// What pauses and ends it, and no other run, from other threads.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// What comes, as it comes, until the run is over: figures four times per second, and what is said. Who reads late gets the newest
    /// figures alone, and the last 256 lines.
    pub fn reports(&self) -> impl Iterator<Item = News> + '_ {
        iter::from_fn(|| self.news.next())
    }

    /// Waits for the end of the run.
    ///
    /// # Errors
    /// The system refused what the driver needs to go on.
    ///
    /// # Panics
    /// If the thread of the run has panicked.
    pub fn wait(mut self) -> Result<Outcome, StartError> {
        self.end.take().expect("a run is waited for once").wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(end) = self.end.take() else { return };
        self.control.stop();
        // Nobody wants to know how it went.
        match end {
            End::Thread(thread) => _ = thread.join(),
            End::Session(outcome) => _ = outcome.recv(),
        }
    }
}

impl End {
    fn wait(self) -> Result<Outcome, StartError> {
        match self {
            Self::Thread(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Session(outcome) => outcome.recv().unwrap_or(Err(StartError::ShutDown)),
        }
    }
}

/// Tells the one who started the run, and the probe that watches it.
struct Telling {
    news: Mailbox,
    begin: Option<SyncSender<()>>,
    probe: Watched,
}

impl Probe for Telling {
    fn begun(&mut self) {
        self.begin.take().into_iter().for_each(|begin| _ = begin.send(()));
        self.probe.0.iter_mut().for_each(|probe| probe.begun());
    }

    fn figures(&mut self, figures: &Figures) {
        self.news.figures(figures);
        self.probe.0.iter_mut().for_each(|probe| probe.figures(figures));
    }

    fn said(&mut self, said: &Said) {
        self.news.said(said);
        self.probe.0.iter_mut().for_each(|probe| probe.said(said));
    }

    fn waits(&mut self, waiting: &Waiting) {
        self.probe.0.iter_mut().for_each(|probe| probe.waits(waiting));
    }

    fn over(&mut self) {
        self.news.close();
    }
}
