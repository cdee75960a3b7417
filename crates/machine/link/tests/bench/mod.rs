//! An intake and what a test needs around it.

#![allow(dead_code, reason = "each test file uses what it needs")]

pub(crate) mod raw;

use std::fmt;
use std::time::Duration;

use base::losses::Losses;
use link::{
    Address, Arrival, Faults, FrameFormat, Head, Intake, IntakeParameters, LinkError, LinkOrder, Lost, Order, Secret,
    Sender, Settings,
};
use testkit::TempDir;
use transport::clock;
use transport::idle::IdleStrategy;
use transport::page_pool::Page;
use transport::poller::Poller;
use transport::scheduler::Scheduler;

pub(crate) const CARRIERS: [Carrier; 2] = [Carrier::Tcp, Carrier::Shared];
pub(crate) const SIZE_MAX: usize = 40_000;
pub(crate) const PAGES: usize = 16;
/// Long beyond what a busy host needs, so that a test that hangs says where.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Tcp,
    Shared,
}

/// An intake that the test polls itself.
pub(crate) struct Bench {
    pub(crate) intake: Intake,
    pub(crate) poller: Poller,
    pub(crate) room: usize,
    /// Whether pages of fragments stay away from their pool, as in a read-out system that is full.
    pub(crate) keeps_pages: bool,
    pub(crate) kept: Vec<Page>,
    /// How far the intake's time is ahead.
    pub(crate) ahead: Duration,
    came: Vec<Came>,
    at: String,
    parameters: IntakeParameters,
    folder: TempDir,
}

/// What came, with the payload of a fragment copied and its page given back.
#[derive(Debug, PartialEq)]
pub(crate) enum Came {
    Up(String),
    Down(Lost),
    TurnedAway(String),
    Fragment(Fragment),
    Idle { number: u64, time: u64 },
    Status(String),
    Ended { sent: u64, received: u64 },
    Lost(Losses),
}

#[derive(PartialEq)]
pub(crate) struct Fragment {
    pub(crate) head: Head,
    pub(crate) payload: Vec<u8>,
    pub(crate) faults: Faults,
}

impl fmt::Debug for Fragment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { head, payload, faults } = self;
        write!(f, "{:?} of {} bytes, {faults:?}", head.number, payload.len())
    }
}

/// What came of a device, sorted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) fragments: Vec<Fragment>,
    pub(crate) losses: Losses,
    pub(crate) said: Vec<String>,
    pub(crate) ended: Option<(u64, u64)>,
}

impl Tally {
    fn add(&mut self, came: Came) {
        match came {
            Came::Fragment(fragment) => self.fragments.push(fragment),
            Came::Lost(losses) => self.losses += losses,
            Came::Status(text) | Came::TurnedAway(text) => self.said.push(text),
            Came::Ended { sent, received } => self.ended = Some((sent, received)),
            Came::Up(_) | Came::Idle { .. } => {}
            Came::Down(reason) => panic!("lost: {reason}"),
        }
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.fragments.iter().map(|fragment| fragment.head.number.unwrap()).collect()
    }
}

impl Came {
    pub(crate) fn fragment(&self) -> Option<&Fragment> {
        match self {
            Self::Fragment(fragment) => Some(fragment),
            _ => None,
        }
    }

    fn of(arrival: Arrival, kept: Option<&mut Vec<Page>>) -> Self {
        match arrival {
            Arrival::Up { name } => Self::Up(name),
            Arrival::Down { reason } => Self::Down(reason),
            Arrival::TurnedAway { why } => Self::TurnedAway(why),
            Arrival::Fragment { head, page, len, faults } => {
                let payload = page.bytes()[HEADROOM..HEADROOM + len].to_vec();
                if let Some(kept) = kept {
                    kept.push(page);
                }
                Self::Fragment(Fragment { head, payload, faults })
            }
            Arrival::Idle { number, time } => Self::Idle { number, time },
            Arrival::Status(text) => Self::Status(text),
            Arrival::Ended { sent, received } => Self::Ended { sent, received },
            Arrival::Lost(losses) => Self::Lost(losses),
        }
    }
}

impl Bench {
    pub(crate) fn new(carrier: Carrier) -> Self {
        Self::with(carrier, |_| {})
    }

    pub(crate) fn with(carrier: Carrier, change: impl FnOnce(&mut IntakeParameters)) -> Self {
        let folder = TempDir::new("link");
        let at = match carrier {
            Carrier::Tcp => "tcp://127.0.0.1:0".to_owned(),
            Carrier::Shared => format!("shm:{}", folder.path().join("tlu.sock").display()),
        };
        let key = (carrier == Carrier::Tcp).then(|| Secret::new("key"));
        let mut parameters = parameters(Address::of_intake(&at, "test").unwrap(), key);
        change(&mut parameters);
        let mut poller = Poller::new().unwrap();
        let mut intake = open_intake(parameters.clone()).unwrap();
        intake.register(&mut poller).unwrap();
        let (at, room, keeps_pages, kept, came) = (intake.address(), usize::MAX >> 1, false, Vec::new(), Vec::new());
        Self { intake, poller, room, keeps_pages, kept, ahead: Duration::ZERO, came, at, parameters, folder }
    }

    /// For a device that knows nothing of Weir.
    pub(crate) fn of_device(at: &str, frames: FrameFormat) -> Self {
        Self::with_device(at, |parameters| parameters.frames = Some(frames))
    }

    pub(crate) fn with_device(at: &str, change: impl FnOnce(&mut IntakeParameters)) -> Self {
        Self::with(Carrier::Shared, |parameters| {
            parameters.at = Address::of_intake(at, "test").unwrap();
            parameters.pages = 256;
            change(parameters);
        })
    }

    /// Polls until what came of a device is enough.
    pub(crate) fn came(&mut self, is_enough: impl Fn(&Tally) -> bool) -> Tally {
        let mut tally = Tally::default();
        while !is_enough(&tally) {
            for came in self.until(|came| !came.is_empty()) {
                tally.add(came);
            }
        }
        tally
    }

    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn settings(&self) -> Settings {
        let key = self.at.starts_with("tcp").then(|| Secret::new("key"));
        Settings { name: "tlu".into(), id: None, key, patience: PATIENCE }
    }

    pub(crate) fn connected(&mut self) -> Sender {
        let settings = self.settings();
        let sender = self.open(&settings).unwrap();
        self.until(|came| matches!(came.last(), Some(Came::Up(name)) if name == "tlu"));
        sender
    }

    /// A sender that knows that the run has begun.
    pub(crate) fn started(&mut self, run: u32) -> Sender {
        let mut sender = self.connected();
        self.intake.order(LinkOrder::Start { run });
        self.expect(&mut sender, Order::Start { run });
        sender
    }

    /// Leaves the run, and goes on with the next one.
    pub(crate) fn into_run(mut self, run: u32) -> Self {
        let next = IntakeParameters { run, ..self.parameters.clone() };
        let resting = self.intake.rest().expect("a source that hears of runs");
        assert!(resting.suits(&next) && !resting.suits(&IntakeParameters { pages: 1, ..next }));
        self.intake = resting.resume(run);
        self.intake.register(&mut self.poller).unwrap();
        self
    }

    /// Ends the intake, and keeps the folder of its socket.
    pub(crate) fn into_folder(self) -> TempDir {
        self.folder
    }

    /// Opens a sender while the intake is polled.
    pub(crate) fn open(&mut self, settings: &Settings) -> Result<Sender, LinkError> {
        let at = self.at.clone();
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| Sender::open(&at, settings));
            while !opening.is_finished() {
                self.poll();
            }
            opening.join().unwrap()
        })
    }

    /// Polls once, after news from the kernel or a moment without.
    pub(crate) fn poll(&mut self) {
        if !self.intake.is_ready(clock::now(), self.room) {
            self.poller.wait(Some(Duration::from_millis(1))).unwrap();
        }
        let (came, kept, keeps) = (&mut self.came, &mut self.kept, self.keeps_pages);
        let deliver = &mut |arrival| came.push(Came::of(arrival, keeps.then_some(&mut *kept)));
        self.intake.poll(clock::now() + self.ahead, &mut self.poller, self.room, deliver);
    }

    /// Polls until what came since the last call is enough.
    pub(crate) fn until(&mut self, is_enough: impl Fn(&[Came]) -> bool) -> Vec<Came> {
        let deadline = clock::now() + PATIENCE;
        while !is_enough(&self.came) {
            assert!(clock::now() < deadline, "still waiting; came: {:?}", self.came);
            self.poll();
        }
        std::mem::take(&mut self.came)
    }

    /// As [`until`](Self::until), with a sender that goes on sending.
    pub(crate) fn until_with(&mut self, sender: &mut Sender, is_enough: impl Fn(&[Came]) -> bool) -> Vec<Came> {
        let deadline = clock::now() + PATIENCE;
        while !is_enough(&self.came) {
            assert!(clock::now() < deadline, "still waiting; came: {:?}", self.came);
            sender.flush().unwrap();
            self.poll();
        }
        std::mem::take(&mut self.came)
    }

    /// Until this is so of a sender that goes on, while the intake is polled.
    pub(crate) fn wait_until(&mut self, sender: &mut Sender, is_so: impl Fn(&mut Sender) -> bool) {
        let deadline = clock::now() + PATIENCE;
        while !is_so(sender) {
            assert!(clock::now() < deadline, "still waiting");
            self.poll();
            sender.flush().unwrap();
        }
    }

    /// Waits for an order while the intake is polled.
    pub(crate) fn expect(&mut self, sender: &mut Sender, expected: Order) {
        let deadline = clock::now() + PATIENCE;
        loop {
            self.poll();
            match sender.wait(Duration::ZERO).unwrap() {
                Order::Nothing => assert!(clock::now() < deadline, "no {expected:?}"),
                found => return assert_eq!(found, expected),
            }
        }
    }

    /// Sends a fragment while the intake is polled.
    pub(crate) fn push(&mut self, sender: &mut Sender, head: &Head, payload: &[u8]) {
        let deadline = clock::now() + PATIENCE;
        loop {
            if let Some(place) = sender.reserve(payload.len()).unwrap() {
                place.copy_from_slice(payload);
                return sender.commit(head, payload.len()).unwrap();
            }
            assert!(clock::now() < deadline, "busy for ever");
            self.poll();
        }
    }
}

pub(crate) fn parameters(at: Address, key: Option<Secret>) -> IntakeParameters {
    IntakeParameters {
        at,
        name: "tlu".into(),
        id: 0x51_0000,
        key,
        size_max: SIZE_MAX,
        headroom: HEADROOM,
        tailroom: 20,
        pages: PAGES,
        run: 7,
        shared: false,
        frames: None,
        from: None,
    }
}

pub(crate) fn open_intake(parameters: IntakeParameters) -> Result<Intake, LinkError> {
    Intake::open(parameters, Scheduler::<()>::new(IdleStrategy::default()).unwrap().waker())
}

const HEADROOM: usize = 92;
