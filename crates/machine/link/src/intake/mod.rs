//! The read-out system's end of a link.

mod board;
mod book;
mod channel;
mod device;
mod doorway;
mod files;
mod folder;
mod foresight;
mod line;
mod phase;
mod rival;
mod shared;
mod slink;
mod stranger;
mod stream;

use std::net::IpAddr;
use std::sync::Arc;

use base::losses::Losses;
use base::time::Time;
use transport::page_pool::{Page, Pool, PoolOptions};
use transport::poller::Poller;
use transport::shm::SleepWord;
use transport::waker::Waker;

use crate::address::Address;
use crate::error::LinkError;
use crate::frame::{FrameFormat, Ready};
use crate::greeting::{Greeting, Welcome, refusal};
use crate::kind::Kind;
use crate::proof::{Hash, Secret};
use crate::record::{Flags, Head, RecordHead};
use crate::slink::Faults;
use crate::socket::{Lost, watch_over, write};
use board::Board;
use device::{Carrier, DeviceLine};
use doorway::Doorway;
use files::Files;
use line::Line;
use rival::{Question, Verdict};
use shared::SharedLine;
use slink::Slink;
use stranger::{Step, Stranger};
use stream::StreamLine;

/// What an intake is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntakeParameters {
    /// Where it listens.
    pub at: Address,
    /// The name of the source that it waits for.
    pub name: String,
    /// Its source identifier; one that says another is refused.
    pub id: u32,
    /// What both ends prove; needed over TCP.
    pub key: Option<Secret>,
    /// The longest payload in bytes.
    pub size_max: usize,
    /// Bytes of a page before the payload.
    pub headroom: usize,
    /// Bytes of a page behind the longest payload.
    pub tailroom: usize,
    /// Number of pages.
    pub pages: usize,
    /// The run that a source is told first.
    pub run: u32,
    /// Whether pages of a TCP link lie in memory that other processes can be given to read. Over shared memory they lie where the
    /// source writes them.
    pub shared: bool,
    /// What a device that knows nothing of Weir sends.
    pub frames: Option<FrameFormat>,
    /// The host that such a device sends from; by default the first one whose datagrams come in a run.
    pub from: Option<IpAddr>,
}

/// The read-out system's end of a link. It has no thread: whoever owns it calls [`poll`](Self::poll) when it
/// [is ready](Self::is_ready).
pub struct Intake {
    parameters: IntakeParameters,
    /// Where sources come in; a device that knows nothing of Weir does not come.
    doorway: Option<Doorway>,
    strangers: Vec<Stranger>,
    line: Option<Line>,
    /// Put to the source when a second one comes.
    question: Question,
    pool: Pool,
    /// Whether a source has had the pool.
    is_pool_used: bool,
    waker: Waker,
    /// Says to sources whether our scheduler sleeps.
    sleep: Option<Arc<SleepWord>>,
    told: Told,
    /// Whether the next poll says that the source is there, as it stayed after the run before.
    has_stayed: bool,
    /// Whether the source was between two runs and has no other yet, and what it has said last since.
    is_resting: bool,
    said: Option<String>,
    /// Whether fragments come one by one.
    is_single: bool,
    /// Why nobody follows the source that is there, and whether people know.
    last_because: Option<&'static str>,
    is_last_told: bool,
    counters: IntakeCounters,
}

/// What a source has to know, whenever it comes.
#[derive(Clone, Copy, Debug)]
struct Told {
    run: u32,
    is_running: bool,
    is_off: bool,
}

/// What a source is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOrder {
    /// A run begins.
    Start {
        /// Its number.
        run: u32,
    },
    /// No more triggers; what is there may still come, and the end of the run after it.
    Stop,
    /// No more fragments for now (XOFF).
    Off,
    /// Fragments again (XON).
    On,
}

/// What comes from a link.
#[derive(Debug)]
pub enum Arrival {
    /// The source is there.
    Up {
        /// The name that it says.
        name: String,
    },
    /// The source is gone; all that it has sent was delivered before, as far as it came.
    Down {
        /// Why.
        reason: Lost,
    },
    /// Somebody wanted to be the source, and was turned away.
    TurnedAway {
        /// Why, for people.
        why: String,
    },
    /// A fragment.
    Fragment {
        /// What the source says of it.
        head: Head,
        /// The page; the payload begins behind the headroom.
        page: Page,
        /// Length of the payload in bytes.
        len: usize,
        /// What is wrong with it that the source does not say.
        faults: Faults,
    },
    /// Nothing with a lower number or an earlier time follows.
    Idle {
        /// The number.
        number: u64,
        /// The time in ns of the source's clock.
        time: u64,
    },
    /// What the source says of itself, or what is to be said of it.
    Status(String),
    /// So much did not become fragments, beside what was told before.
    Lost(Losses),
    /// The source has ended the run.
    Ended {
        /// Fragments that it says it sent on this connection in this run.
        sent: u64,
        /// Fragments that came.
        received: u64,
    },
}

/// What an intake has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IntakeCounters {
    /// Sources that came.
    pub connections: u64,
    /// Visitors that were turned away.
    pub turned_away: u64,
    /// Connections that ended because the source did not keep to the protocol.
    pub violations: u64,
    /// Fragments delivered.
    pub fragments: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Fragments delivered as damaged.
    pub damaged: u64,
    /// Fragments of former runs, dropped.
    pub stale: u64,
}

impl Intake {
    /// Listens. The waker is that of the scheduler whose task polls the intake.
    ///
    /// # Errors
    /// An address that is not to be had; a TCP address without a key; impossible sizes; memory that the kernel refuses.
    pub fn open(parameters: IntakeParameters, waker: Waker) -> Result<Self, LinkError> {
        if matches!(parameters.at, Address::Tcp(_)) && parameters.key.is_none() {
            return Err(LinkError::KeyMissing { at: parameters.at.to_string() });
        }
        let pool = new_pool(&parameters)?;
        pool.wake_on_return(waker.clone());
        let sleep = match parameters.at {
            Address::Shared(_) => Some(Arc::new(SleepWord::new()?)),
            _ => None,
        };
        sleep.iter().for_each(|sleep| waker.show_sleep_in(sleep));
        let line = device(&parameters)?;
        let doorway = if line.is_none() { Some(Doorway::open(&parameters.at)?) } else { None };
        let told = Told { run: parameters.run, is_running: false, is_off: false };
        let counters = IntakeCounters::default();
        Ok(Self {
            parameters,
            doorway,
            strangers: Vec::new(),
            line,
            question: Question::default(),
            pool,
            is_pool_used: false,
            waker,
            sleep,
            told,
            has_stayed: false,
            is_resting: false,
            said: None,
            is_single: false,
            last_because: None,
            is_last_told: false,
            counters,
        })
    }

    /// Has a source send one fragment at a time: each turns the link off, and [`LinkOrder::On`] asks for the next one. No poll takes
    /// more, whatever the source does. A device that knows nothing of Weir is not told.
    #[must_use]
    pub fn one_by_one(self) -> Self {
        Self { is_single: true, ..self }
    }

    /// Leaves the run. The source stays, and waits for the next one; it stops if nobody has told it to. `None` of a device that knows
    /// nothing of runs: it would send on.
    #[must_use]
    pub fn rest(mut self) -> Option<Self> {
        if self.told.is_running {
            self.order(LinkOrder::Stop);
        }
        self.doorway.is_some().then_some(self)
    }

    /// Whether it is what these parameters ask for, whatever the run.
    pub fn suits(&self, parameters: &IntakeParameters) -> bool {
        let of_run = IntakeParameters { run: parameters.run, ..self.parameters.clone() };
        of_run == *parameters
    }

    /// Goes on with another run. A source that has stayed is told its number with [`LinkOrder::Start`], as one that comes.
    #[must_use]
    pub fn resume(mut self, run: u32) -> Self {
        // It need not have been told before it rested.
        self.order(LinkOrder::On);
        self.parameters.run = run;
        self.told = Told { run, is_running: false, is_off: false };
        self.line.iter_mut().for_each(|line| line.await_run(run));
        self.has_stayed = self.line.is_some();
        self.is_resting = self.has_stayed;
        (self.question, self.counters) = (Question::default(), IntakeCounters::default());
        (self.last_because, self.is_last_told) = (None, false);
        self
    }

    /// Keeps out, for this reason, whoever comes when the source that is there has gone. They may try again: without a reason, all are
    /// let in.
    pub fn let_nobody_follow(&mut self, because: Option<&'static str>) {
        self.last_because = because;
    }

    /// Lets a scheduler sleep until somebody comes.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn register(&mut self, poller: &mut Poller) -> Result<(), LinkError> {
        match (&mut self.doorway, &mut self.line) {
            (Some(doorway), _) => Ok(doorway.register(poller)?),
            (None, Some(Line::Device(line))) => line.register(poller),
            (None, _) => Ok(()),
        }
    }

    /// Takes at most `room` fragments, sees to visitors, says what is to be said. The poller is that of the scheduler: a source
    /// that comes is registered with it. Returns whether anything came.
    pub fn poll(&mut self, now: Time, poller: &mut Poller, room: usize, deliver: &mut dyn FnMut(Arrival)) -> bool {
        let room = if self.is_single { room.min(1) } else { room };
        if core::mem::take(&mut self.has_stayed) {
            deliver(Arrival::Up { name: self.parameters.name.clone() });
        }
        if let Some(text) = self.said.take_if(|_| !self.is_resting) {
            deliver(Arrival::Status(text));
        }
        let (was_up, stale) = (self.line.is_some(), self.counters.stale);
        let is_busy = self.poll_line(now, poller, room, deliver);
        // A single fragment of a former run has turned the link off, and nobody else asks for the next one.
        if self.is_single && self.counters.stale > stale && !self.told.is_off {
            self.order(LinkOrder::On);
        }
        // Whoever is told that the source has gone may have a word on who follows.
        if was_up && self.line.is_none() {
            return true;
        }
        is_busy | self.meet(now, poller, deliver)
    }

    /// Whether a poll with so much room may find something. No system call.
    pub fn is_ready(&self, now: Time, room: usize) -> bool {
        self.has_stayed
            || (self.said.is_some() && !self.is_resting)
            || self.line.as_ref().is_some_and(|line| line.is_ready(now, room, &self.pool))
            || self.doorway.as_ref().is_some_and(Doorway::is_acceptable)
            || (!self.is_ending() && self.strangers.iter().any(Stranger::is_ready))
    }

    /// When a poll with so much room may find something, though nothing comes.
    pub fn next_deadline(&self, room: usize) -> Option<Time> {
        self.line.as_ref().and_then(|line| line.next_deadline(room))
    }

    /// Tells the source, and every one that comes later.
    pub fn order(&mut self, order: LinkOrder) {
        let told = &mut self.told;
        self.is_resting &= !matches!(order, LinkOrder::Start { .. });
        match order {
            LinkOrder::Start { run } => *told = Told { run, is_running: true, is_off: told.is_off },
            LinkOrder::Stop => told.is_running = false,
            LinkOrder::Off => told.is_off = true,
            LinkOrder::On => told.is_off = false,
        }
        if let Some(line) = &mut self.line {
            line.order(order);
        }
    }

    /// Where the pages come from now. Over shared memory each source has a pool of its own.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The address, with the real port.
    pub fn address(&self) -> String {
        match (&self.doorway, &self.line) {
            (Some(doorway), _) => doorway.address().to_owned(),
            (None, Some(Line::Device(line))) => line.address().to_owned(),
            (None, _) => self.parameters.at.to_string(),
        }
    }

    /// Whether a source is connected.
    pub fn is_up(&self) -> bool {
        self.line.is_some()
    }

    /// Whether a source is connected that waits for a run, or takes part in one.
    pub fn is_configured(&self) -> bool {
        self.line.as_ref().is_some_and(Line::is_configured)
    }

    /// What it has seen.
    pub fn counters(&self) -> IntakeCounters {
        self.counters
    }

    fn poll_line(&mut self, now: Time, poller: &mut Poller, room: usize, deliver: &mut dyn FnMut(Arrival)) -> bool {
        let Some(line) = &mut self.line else { return false };
        let (is_resting, said) = (self.is_resting, &mut self.said);
        let mut sift = |arrival| match arrival {
            // It may have said much meanwhile.
            Arrival::Status(text) if is_resting => *said = Some(text),
            arrival => deliver(arrival),
        };
        match line.poll(now, poller, room, &self.pool, &mut self.counters, &mut sift) {
            Ok(is_busy) => {
                if is_busy || line.is_held() {
                    self.question.answer();
                }
                is_busy
            }
            Err(reason) => {
                self.lose(reason, deliver);
                true
            }
        }
    }

    fn lose(&mut self, reason: Lost, deliver: &mut dyn FnMut(Arrival)) {
        self.counters.violations += u64::from(matches!(reason, Lost::Violated(_)));
        if let Some(mut line) = self.line.take() {
            line.dismiss(reason);
        }
        deliver(Arrival::Down { reason });
    }

    /// Whether a source is gone whose fragments are not all delivered: visitors wait so long.
    fn is_ending(&self) -> bool {
        self.line.as_ref().is_some_and(Line::is_ending)
    }

    fn meet(&mut self, now: Time, poller: &mut Poller, deliver: &mut dyn FnMut(Arrival)) -> bool {
        let mut is_busy = self.let_in(now, poller);
        self.strangers.retain(|stranger| !stranger.is_overdue(now));
        if self.is_ending() {
            return is_busy;
        }
        for at in (0..self.strangers.len()).rev() {
            let stranger = &mut self.strangers[at];
            if !stranger.is_ready() {
                continue;
            }
            match stranger.step(&self.parameters) {
                Step::Wait => continue,
                Step::Proven { greeting, proof } => {
                    let stranger = self.strangers.swap_remove(at);
                    self.admit(now, stranger, greeting, proof, poller, deliver);
                }
                Step::TurnAway { why } => {
                    let stranger = self.strangers.swap_remove(at);
                    self.turn_away(&stranger, why, false, deliver);
                }
            }
            is_busy = true;
        }
        is_busy
    }

    fn let_in(&mut self, now: Time, poller: &mut Poller) -> bool {
        let mut is_busy = false;
        for _ in 0..STRANGERS_MAX {
            let Some(socket) = self.doorway.as_ref().and_then(Doorway::accept) else { break };
            is_busy = true;
            let is_watched = match self.parameters.at {
                Address::Shared(_) => crate::socket::is_own_user(&socket).unwrap_or(false),
                _ => watch_over(&socket).is_ok(),
            };
            let Some(readiness) = is_watched.then(|| poller.register(&socket).ok()).flatten() else {
                self.counters.turned_away += 1;
                continue;
            };
            if self.strangers.len() == STRANGERS_MAX {
                self.strangers.remove(0);
                self.counters.turned_away += 1;
            }
            self.strangers.push(Stranger::new(socket, readiness, now));
        }
        is_busy
    }

    fn admit(
        &mut self,
        now: Time,
        stranger: Stranger,
        greeting: Greeting,
        proof: Option<Hash>,
        poller: &mut Poller,
        deliver: &mut dyn FnMut(Arrival),
    ) {
        if let Some(line) = &mut self.line {
            let why = format!("a source named {} is connected already; end it first", greeting.name);
            match self.question.judge(now) {
                Verdict::Ask => {
                    line.ask();
                    return self.turn_away(&stranger, why, true, deliver);
                }
                // It tries many times a second; people are told of the first time.
                Verdict::Wait => return self.turn_away(&stranger, why, true, &mut |_| {}),
                Verdict::Replace => self.lose(Lost::Silent, deliver),
            }
        }
        if let Some(why) = self.last_because {
            // It tries many times a second; people are told of the first time.
            let is_told = core::mem::replace(&mut self.is_last_told, true);
            let nobody: &mut dyn FnMut(Arrival) = &mut |_| {};
            return self.turn_away(&stranger, why.to_owned(), true, if is_told { nobody } else { deliver });
        }
        let welcome = Welcome { proof, size_max: self.parameters.size_max as u32, memory: None, run: self.told.run };
        let mut line = match self.line_with(stranger, welcome, poller) {
            Ok(line) => line,
            Err(error) => {
                self.counters.turned_away += 1;
                return deliver(Arrival::TurnedAway { why: error.to_string() });
            }
        };
        if self.is_single {
            line.say(&RecordHead::plain(Kind::Single, 0).encode());
        }
        if self.told.is_running {
            line.order(LinkOrder::Start { run: self.told.run });
        }
        if self.told.is_off {
            line.order(LinkOrder::Off);
        }
        (self.line, self.question) = (Some(line), Question::default());
        self.counters.connections += 1;
        deliver(Arrival::Up { name: greeting.name });
    }

    /// Over shared memory each source gets pages that no other one has had.
    fn line_with(&mut self, stranger: Stranger, welcome: Welcome, poller: &mut Poller) -> Result<Line, LinkError> {
        let Some(sleep) = &self.sleep else {
            let mut line = Line::Stream(Box::new(StreamLine::new(stranger, &self.parameters, welcome.run)));
            line.say(&welcome.encode());
            return Ok(line);
        };
        if self.is_pool_used {
            self.pool = new_pool(&self.parameters)?;
            self.pool.wake_on_return(self.waker.clone());
        }
        self.is_pool_used = true;
        let line = SharedLine::new(stranger, &self.parameters, &self.pool, sleep, welcome, poller)?;
        Ok(Line::Shared(Box::new(line)))
    }

    fn turn_away(&mut self, stranger: &Stranger, why: String, again: bool, deliver: &mut dyn FnMut(Arrival)) {
        // One that is gone need not be told.
        let _ = write(stranger.socket(), &refusal(&why, again));
        self.counters.turned_away += 1;
        deliver(Arrival::TurnedAway { why });
    }
}

impl IntakeCounters {
    /// Counts a fragment and says it, with a look at its checksum if it has one.
    fn fragment(&mut self, head: &RecordHead, page: Page, headroom: usize) -> Arrival {
        let len = head.len as usize;
        let has_sum = head.flags.contains(Flags::CRC);
        let damaged = has_sum && crc32c::crc32c(&page.bytes()[headroom..headroom + len]) != head.crc;
        self.fragments += 1;
        self.bytes += len as u64;
        self.damaged += u64::from(damaged);
        let faults = if damaged { Faults::CHECKSUM } else { Faults::empty() };
        Arrival::Fragment { head: head.fragment(), page, len, faults }
    }

    /// Counts a fragment of a device that knows nothing of Weir, and says it.
    fn numbered(&mut self, ready: Ready) -> Arrival {
        let Ready { head, page, len, faults } = ready;
        self.fragments += 1;
        self.bytes += len as u64;
        Arrival::Fragment { head, page, len, faults }
    }
}

impl LinkOrder {
    fn to_record(self) -> [u8; crate::record::HEAD_BYTES] {
        let (kind, run) = match self {
            Self::Start { run } => (Kind::Start, run),
            Self::Stop => (Kind::Stop, 0),
            Self::Off => (Kind::Xoff, 0),
            Self::On => (Kind::Xon, 0),
        };
        RecordHead { run, ..RecordHead::plain(kind, 0) }.encode()
    }
}

/// The line of a device that does not come by itself.
fn device(parameters: &IntakeParameters) -> Result<Option<Line>, LinkError> {
    let at = &parameters.at;
    let carrier: Box<dyn Carrier + Send> = match at {
        Address::Tcp(_) | Address::Shared(_) => return Ok(None),
        Address::Udp(_) => Box::new(Board::open(parameters)?),
        Address::Slink(_) => Box::new(Slink::open(parameters)?),
        Address::File(_) => Box::new(Files::open(at)?),
    };
    Ok(Some(Line::Device(Box::new(DeviceLine::new(parameters, carrier)?))))
}

fn new_pool(parameters: &IntakeParameters) -> Result<Pool, LinkError> {
    let IntakeParameters { size_max, headroom, tailroom, pages, .. } = *parameters;
    let fit = (1..=SIZE_MAX).contains(&size_max)
        && (1..=PAGES_MAX).contains(&pages)
        && headroom <= ROOM_MAX
        && tailroom <= ROOM_MAX;
    if !fit {
        return Err(LinkError::Sizes { pages, size_max });
    }
    let page_len = (headroom + size_max + tailroom).next_multiple_of(64);
    let name = format!("link {}", parameters.name);
    let options = PoolOptions { name, page_len, pages, prefault: false };
    Ok(match parameters.at {
        Address::Shared(_) => Pool::lendable(&options)?,
        _ if parameters.shared => Pool::shared(&options)?,
        _ => Pool::new(&options)?,
    })
}

/// Visitors that have not proved who they are.
const STRANGERS_MAX: usize = 8;
const SIZE_MAX: usize = 1 << 30;
const ROOM_MAX: usize = 1 << 20;
const PAGES_MAX: usize = 1 << 20;
