//! Triggers from level-1 processors that connect over TCP.

mod frame;
mod receiver;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use base::ids::EventId;
use configuration::{Level1Source, Partition};
use dataflow::level1::roib::RoibParameters;
use dataflow::level1::trigger::Trigger;
use transport::error::OsError;
use transport::frame::FrameLimits;
use transport::idle::IdleStrategy;
use transport::page_pool::{Pool, PoolError, PoolOptions};
use transport::scheduler::{Scheduler, Stopper};
use transport::tcp::{ListenError, Listener, TcpOptions};
use transport::waker::Waker;

pub use frame::{BadLevel1Frame, Level1Frame};

use receiver::{Limits, Outlet, Receive};

/// How triggers come over the network.
#[derive(Clone, Debug)]
pub struct NetworkParameters {
    /// Where to wait for level-1 processors.
    pub listen: SocketAddr,
    /// How many there are, 1 to 64; each sends its part of every event.
    pub sources: usize,
    /// How long an event waits for the parts of all sources.
    pub join_timeout: Duration,
    /// Most events that wait for parts, and most that wait to be asked for.
    pub events_waiting: usize,
    /// About where level-1 ids begin.
    pub first: EventId,
    /// A source that says nothing for this time may be replaced by a newer connection that calls itself the same.
    pub silence: Duration,
}

/// A thread that receives what level-1 processors send, and joins it by event. Dropping it ends the thread.
///
/// Processors send [`Level1Frame`]s. Whoever sends something else is disconnected, with a notice; so is one that says
/// nothing for 5 s after it has connected. While the events are not asked for, nothing is read: the processors have to
/// wait. A processor that disconnects without saying that it has ended may connect again; if its former connection still
/// seems to stand, as after a failure of the network, once that has been silent for [`NetworkParameters::silence`].
///
/// What records lack or repeat is counted: the first of each kind is told of at once, and all counts when the reader ends.
///
/// Connections of level 1 carry no key yet: whoever reaches the address can send triggers, or take the place of a silent
/// source. The address belongs on a network of its own.
pub struct NetworkTriggers {
    incoming: Receiver<Incoming>,
    waiting: Arc<AtomicUsize>,
    refused: Arc<AtomicU64>,
    /// Of the thread.
    waker: Waker,
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

/// What came.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// A trigger.
    Trigger(Trigger),
    /// Words for people.
    Notice(String),
    /// All sources have ended; nothing follows but notices.
    Ended,
}

/// Why nothing can be received.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The address cannot be listened at.
    #[error("level1.listen: {0}")]
    Listen(#[from] ListenError),
    /// No memory.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The host refuses.
    #[error(transparent)]
    Os(#[from] OsError),
    /// The host refuses a thread.
    #[error("the thread that receives triggers cannot be started: {0}")]
    Thread(std::io::Error),
}

impl NetworkParameters {
    /// What a partition asks for; `None` if its triggers do not come over the network.
    pub fn of(partition: &Partition) -> Option<Self> {
        let level1 = partition.level1.as_ref().filter(|level1| level1.source == Level1Source::Network)?;
        Some(Self {
            listen: level1.listen?,
            sources: level1.sources as usize,
            join_timeout: level1.join_timeout.duration(),
            events_waiting: (level1.in_flight as usize).clamp(1, EVENTS_WAITING_MAX),
            first: EventId(u64::from(partition.run.first_lvl1_id)),
            silence: SILENCE,
        })
    }
}

impl NetworkTriggers {
    /// Listens, and starts the thread. It wakes `waker` when something came.
    ///
    /// # Errors
    /// An address that is not to be had; a host without memory, descriptors or threads.
    ///
    /// # Panics
    /// If there is no source or more than 64, or no event may wait.
    pub fn start(parameters: &NetworkParameters, waker: Waker) -> Result<Self, NetworkError> {
        assert!(
            (1..=64).contains(&parameters.sources) && parameters.events_waiting > 0,
            "sources, and room for events"
        );
        let limits =
            FrameLimits::new(frame::HEADER_BYTES, frame::FRAME_BYTES_MAX).expect("a header is the shortest frame");
        let options = TcpOptions { read_budget_bytes: PAGE_BYTES, ..TcpOptions::new(limits) };
        let mut listener = Listener::bind(parameters.listen, &options)?;
        let address = listener.local_address();
        let connections = parameters.sources + STRANGERS_MAX;
        let pool = Pool::new(&PoolOptions {
            name: "level-1 processors".to_owned(),
            page_len: PAGE_BYTES,
            pages: 4 * connections,
            prefault: false,
        })?;
        let (sender, incoming) = sync_channel(parameters.events_waiting + NOTICES_MAX + LAST_WORDS);
        let (waiting, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let outlet = Outlet::new(sender, Arc::clone(&waiting), parameters.events_waiting, waker);
        let roib = RoibParameters {
            sources: parameters.sources,
            incomplete: parameters.events_waiting,
            timeout: parameters.join_timeout,
            first: parameters.first,
        };
        let (started, starting) = sync_channel(1);
        let refusals = Arc::clone(&refused);
        let limits = Limits { connections_max: connections, silence: parameters.silence };
        let work = move || {
            // A scheduler stays in its thread.
            let ready = |listener: &mut Listener| -> Result<Scheduler<'_>, OsError> {
                let mut scheduler = Scheduler::new(idle())?;
                listener.register(scheduler.poller())?;
                Ok(scheduler)
            };
            let mut scheduler = match ready(&mut listener) {
                Ok(scheduler) => scheduler,
                Err(error) => return drop(started.send(Err(error))),
            };
            let receive = Receive::new(listener, options, pool, limits, roib, outlet, refusals);
            scheduler.add("level-1 processors", receive);
            if started.send(Ok((scheduler.waker(), scheduler.stopper()))).is_ok() {
                scheduler.run(&mut ()).expect("the kernel waits for what it has taken to wait for");
            }
        };
        let builder = std::thread::Builder::new().name("level-1 links".to_owned());
        let thread = Some(builder.spawn(work).map_err(NetworkError::Thread)?);
        let (waker, stopper) = starting.recv().expect("the thread says how it starts")?;
        Ok(Self { incoming, waiting, refused, waker, stopper, thread, address })
    }

    /// Where processors can connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next that came, if something has.
    pub fn take(&self) -> Option<Incoming> {
        let next = self.incoming.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.waker.wake();
        Some(next)
    }

    /// Whether something came.
    pub fn has_some(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }

    /// Ends the thread, and returns the notices that were not taken: the last says what was counted. Triggers that were not
    /// taken are dropped.
    pub fn finish(&mut self) -> Vec<String> {
        self.join();
        let left = std::iter::from_fn(|| self.take());
        left.filter_map(|incoming| if let Incoming::Notice(text) = incoming { Some(text) } else { None }).collect()
    }

    fn join(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing more to say.
            let _ = thread.join();
        }
    }

    /// Connections that were ended for what came over them, or did not.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Drop for NetworkTriggers {
    fn drop(&mut self) {
        self.join();
    }
}

/// Spinning is for the threads of the data path, whose processors this one shares.
fn idle() -> IdleStrategy {
    IdleStrategy::Park { yield_for: Duration::ZERO }
}

/// More than two frames, so that one read brings many.
const PAGE_BYTES: usize = 64 << 10;
/// Thousands hide any latency; more only cost memory.
const EVENTS_WAITING_MAX: usize = 1 << 14;
/// Connections beside those of the sources.
const STRANGERS_MAX: usize = 16;
/// Notices that wait to be taken; more are dropped.
const NOTICES_MAX: usize = 64;
/// For which there is always room: the counts, and that the sources have ended.
const LAST_WORDS: usize = 2;
/// A processor in a run is rarely silent for so long, and one that lost its connection needs about as long to notice.
const SILENCE: Duration = Duration::from_secs(1);
