//! The loop that owns a source.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;
use std::{fmt, io, panic};

use base::time::Time;
use link::{LinkError, Order, Sender};
use rustix::net::{Shutdown, shutdown};
use transport::clock;

use crate::watch::{Beat, Blocked, Watch};
use crate::{Failure, Reading, Settings, Source};

/// Runs a source at `at`, such as `shm:telescope` or `tcp://127.0.0.1:7101`, through all runs of a partition until that ends.
///
/// The source runs in a thread of its own. If it blocks, that thread is left behind, the link is cut, and this returns: a program
/// that has nothing else to do ends.
///
/// # Errors
/// The partition cannot be reached or refuses, the link breaks, one of the five functions fails or blocks.
pub fn run(at: &str, settings: Settings, source: impl Source + Send + 'static) -> Result<Sent, SourceError> {
    let name = settings.name.clone();
    let (end, ended) = sync_channel(2);
    let at = at.to_owned();
    let thread = thread::Builder::new().name("weir source".into()).spawn(move || {
        let served = Server::open(&at, settings, source, Some(&end)).and_then(|mut server| server.serve());
        // The receiver is gone only if this source was given up.
        let _ = end.send(served);
    });
    let thread = thread.map_err(SourceError::System)?;
    match ended.recv() {
        Ok(Err(SourceError::Failed { function, failure, .. })) => Err(SourceError::Failed { name, function, failure }),
        Ok(served) => served,
        // It ended without a word: it panicked.
        Err(_) => match thread.join() {
            Err(panicked) => panic::resume_unwind(panicked),
            Ok(()) => unreachable!("the thread says how it ended"),
        },
    }
}

/// The same in the thread that calls it, for a source that does not block: nobody watches over it.
///
/// # Errors
/// The partition cannot be reached or refuses, the link breaks, one of the five functions fails.
pub fn run_here(at: &str, settings: Settings, source: impl Source) -> Result<Sent, SourceError> {
    Server::open(at, settings, source, None)?.serve()
}

/// What a source has sent, in all its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Runs that it began.
    pub runs: u64,
    /// Fragments.
    pub fragments: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Time in which the partition took nothing: dead time of the source.
    pub busy: Duration,
}

/// One of the five functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Function {
    /// [`Source::configure`].
    Configure,
    /// [`Source::start`].
    Start,
    /// [`Source::read`].
    Read,
    /// [`Source::stop`].
    Stop,
    /// [`Source::status`].
    Status,
}

impl fmt::Display for Function {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Configure => "configure",
            Self::Start => "start",
            Self::Read => "read",
            Self::Stop => "stop",
            Self::Status => "status",
        })
    }
}

/// How a source ended, if not because the partition has closed the link.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The link to the partition.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// One of the five functions.
    #[error("source {name}: {function}: {failure}")]
    Failed {
        /// Of the source.
        name: String,
        /// Which one.
        function: Function,
        /// What it says.
        failure: Failure,
    },
    /// One of the five functions does not return, although the partition waits.
    #[error(
        "source {name}: {function} has not returned while the partition waited for {deadline:?}: wait for the device with a time-out, \
         and say that nothing is there"
    )]
    Blocked {
        /// Of the source.
        name: String,
        /// Which one.
        function: Function,
        /// How long the partition may wait.
        deadline: Duration,
    },
    /// The source says that it has put more into the slot than fits.
    #[error(
        "source {name}: read has committed {len} bytes of a slot of {size_max}: the memory of its process cannot be trusted"
    )]
    TooLong {
        /// Of the source.
        name: String,
        /// In bytes.
        len: usize,
        /// In bytes.
        size_max: usize,
    },
    /// The system gives no thread or descriptor.
    #[error("a source cannot begin: {0}")]
    System(#[source] io::Error),
}

struct Server<S> {
    source: S,
    settings: Settings,
    link: Sender,
    beat: Beat,
    /// The function that the source is in: what blocks is named.
    inside: Arc<AtomicU8>,
    _watch: Option<Watch>,
    /// Whether the run has been told that nothing more follows.
    is_ended: bool,
    /// Whether the partition waits for the end of the run.
    is_stopping: bool,
    sent: Sent,
    looked: Time,
    asked: Option<Time>,
    said: String,
}

impl<S: Source> Server<S> {
    fn open(
        at: &str,
        settings: Settings,
        source: S,
        end: Option<&SyncSender<Result<Sent, SourceError>>>,
    ) -> Result<Self, SourceError> {
        let Settings { name, id, key, patience, .. } = settings.clone();
        let link = Sender::open(at, &link::Settings { name, id, key, patience })?;
        let orders = || link.as_fd().try_clone_to_owned().map_err(SourceError::System);
        let (beat, inside) = (Beat::default(), Arc::new(AtomicU8::new(Function::Configure as u8)));
        beat.read(link.has_order());
        let watch = |end: &SyncSender<_>| {
            let give_up = give_up(settings.name.clone(), orders()?, Arc::clone(&inside), end.clone());
            Watch::over(orders()?, settings.deadline, beat.clone(), give_up).map_err(SourceError::System)
        };
        let watch = end.map(watch).transpose()?;
        Ok(Self {
            source,
            settings,
            link,
            beat,
            inside,
            _watch: watch,
            is_ended: false,
            is_stopping: false,
            sent: Sent::default(),
            looked: clock::now(),
            asked: None,
            said: String::new(),
        })
    }

    fn serve(&mut self) -> Result<Sent, SourceError> {
        match self.serve_runs() {
            // Where it is noticed first is chance.
            Ok(()) | Err(SourceError::Link(LinkError::Closed)) => Ok(self.sent),
            Err(error) => Err(error),
        }
    }

    fn serve_runs(&mut self) -> Result<(), SourceError> {
        self.call(Function::Configure, S::configure)?;
        loop {
            self.say_how_it_is(clock::now())?;
            match self.wait(STATUS_EVERY)? {
                Order::Start { run } => {
                    self.sent.runs += 1;
                    self.call(Function::Start, |source, _| source.start(run))?;
                    self.is_ended = false;
                    let last = self.take_data()?;
                    self.is_stopping = true;
                    self.beat.look(true);
                    self.call(Function::Stop, |source, _| source.stop())?;
                    if last == Order::Closed {
                        return Ok(());
                    }
                    self.drain()?;
                    self.end()?;
                    self.is_stopping = false;
                    self.beat.look(self.link.has_order());
                }
                Order::Closed => return Ok(()),
                Order::Stop | Order::Nothing => {}
            }
        }
    }

    /// Reads until an order ends that.
    fn take_data(&mut self) -> Result<Order, SourceError> {
        loop {
            let step = self.read()?;
            let (pause, now) = (step.pause(), clock::now());
            if step == Step::Took && now.since(self.looked) < LOOK_EVERY {
                continue;
            }
            self.say_how_it_is(now)?;
            let order = self.wait(pause)?;
            if step == Step::Busy {
                self.sent.busy += self.looked.since(now);
            }
            match order {
                Order::Nothing | Order::Start { .. } => {}
                last => return Ok(last),
            }
        }
    }

    /// Reads what the device still holds.
    fn drain(&mut self) -> Result<(), SourceError> {
        let begun = clock::now();
        loop {
            let step = self.read()?;
            if step == Step::Nothing || clock::now().since(begun) > self.settings.deadline {
                return Ok(());
            }
            // The start of the next run waits for the end of this one.
            if self.wait(step.pause())? == Order::Closed {
                return Ok(());
            }
        }
    }

    /// Reads one fragment, if there is one and room for it.
    fn read(&mut self) -> Result<Step, SourceError> {
        if self.is_ended {
            return Ok(Step::Nothing);
        }
        let size_max = self.link.size_max();
        let Some(slot) = self.link.reserve(size_max)? else {
            self.link.flush()?;
            return Ok(Step::Busy);
        };
        self.inside.store(Function::Read as u8, Ordering::Relaxed);
        let found = self.source.read(slot);
        match found {
            Ok(Reading::Committed(head, len)) if len <= size_max => {
                self.link.commit(&head, len)?;
                self.sent.fragments += 1;
                self.sent.bytes += len as u64;
                return Ok(Step::Took);
            }
            Ok(Reading::Committed(_, len)) => {
                return Err(SourceError::TooLong { name: self.settings.name.clone(), len, size_max });
            }
            Ok(Reading::Nothing) => {}
            Ok(Reading::Idle(number)) => self.link.idle(number, 0)?,
            Ok(Reading::Passed(time)) => self.link.idle(0, time)?,
            Ok(Reading::End) => self.end()?,
            Err(failure) => return Err(self.failed(Function::Read, failure)),
        }
        self.link.flush()?;
        Ok(Step::Nothing)
    }

    /// Nothing more follows in this run.
    fn end(&mut self) -> Result<(), SourceError> {
        if !std::mem::replace(&mut self.is_ended, true) {
            self.link.end()?;
            self.link.flush()?;
        }
        Ok(())
    }

    fn say_how_it_is(&mut self, now: Time) -> Result<(), SourceError> {
        if self.asked.is_some_and(|asked| now.since(asked) < STATUS_EVERY) {
            return Ok(());
        }
        self.asked = Some(now);
        let says = self.call(Function::Status, |source, _| Ok(source.status()))?;
        if says != self.said && !says.is_empty() {
            self.link.report(&says)?;
            self.said = says;
        }
        Ok(())
    }

    fn wait(&mut self, at_most: Duration) -> Result<Order, SourceError> {
        let order = self.link.wait(at_most)?;
        self.beat.look(self.is_stopping || self.link.has_order());
        self.looked = clock::now();
        Ok(order)
    }

    fn call<T>(
        &mut self,
        function: Function,
        call: impl FnOnce(&mut S, &Settings) -> Result<T, Failure>,
    ) -> Result<T, SourceError> {
        self.inside.store(function as u8, Ordering::Relaxed);
        call(&mut self.source, &self.settings).map_err(|failure| self.failed(function, failure))
    }

    /// Run control is told, too; it learns the end of the link anyway.
    fn failed(&mut self, function: Function, failure: Failure) -> SourceError {
        let _ = self.link.report(&format!("{function}: {failure}")).and_then(|()| self.link.flush());
        SourceError::Failed { name: self.settings.name.clone(), function, failure }
    }
}

/// What reading once has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Took,
    Nothing,
    Busy,
}

impl Step {
    /// How long to wait for an order before the next one.
    fn pause(self) -> Duration {
        match self {
            Self::Took => Duration::ZERO,
            Self::Nothing => PAUSE,
            Self::Busy => BUSY_PAUSE,
        }
    }
}

/// Cuts the link and says who blocks where.
fn give_up(
    name: String,
    link: OwnedFd,
    inside: Arc<AtomicU8>,
    end: SyncSender<Result<Sent, SourceError>>,
) -> impl FnOnce(Blocked) + Send {
    move |Blocked { deadline }| {
        let functions = [Function::Configure, Function::Start, Function::Read, Function::Stop, Function::Status];
        let function = functions[usize::from(inside.load(Ordering::Relaxed))];
        // The partition may have gone meanwhile.
        let _ = shutdown(link, Shutdown::Both);
        let _ = end.send(Err(SourceError::Blocked { name, function, deadline }));
    }
}

/// Between two looks for orders while data are taken.
const LOOK_EVERY: Duration = Duration::from_micros(200);
/// Where nothing is to be read.
const PAUSE: Duration = Duration::from_millis(1);
/// Where there is no room for what is read.
const BUSY_PAUSE: Duration = Duration::from_micros(100);
const STATUS_EVERY: Duration = Duration::from_secs(1);
