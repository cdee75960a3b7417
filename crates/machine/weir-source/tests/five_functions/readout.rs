//! A read-out system that is nothing but an intake, polled by the test.

use std::collections::BTreeMap;
use std::time::Duration;

use link::{Address, Arrival, Flags, Intake, IntakeParameters, LinkOrder};
use testkit::TempDir;
use transport::clock;
use transport::idle::IdleStrategy;
use transport::poller::Poller;
use transport::scheduler::Scheduler;

/// The longest payload that it takes, in bytes.
pub(crate) const SIZE_MAX: usize = 4000;
const HEADROOM: usize = 96;
/// Beyond what a busy host needs, so that a test that hangs says where.
const PATIENCE: Duration = Duration::from_secs(60);

/// An intake and what came through it.
pub(crate) struct Readout {
    pub(crate) came: Came,
    at: String,
    intake: Intake,
    poller: Poller,
    _folder: TempDir,
}

/// What came.
#[derive(Debug, Default)]
pub(crate) struct Came {
    /// Payloads by event number; the last one of each.
    pub(crate) payloads: BTreeMap<u64, Vec<u8>>,
    pub(crate) fragments: u64,
    /// Event numbers of what the source said was damaged.
    pub(crate) damaged: Vec<u64>,
    pub(crate) up: u64,
    pub(crate) down: Vec<String>,
    pub(crate) statuses: Vec<String>,
    pub(crate) ended: Vec<(u64, u64)>,
    /// Number and time of each idle mark.
    pub(crate) idle: Vec<(u64, u64)>,
}

impl Readout {
    /// Waits for a source of this name, with no run yet.
    pub(crate) fn of(name: &str) -> Self {
        let folder = TempDir::new("readout");
        let at = format!("shm:{}", folder.join(format!("{name}.sock")).display());
        let parameters = IntakeParameters {
            at: Address::of_intake(&at, "test").unwrap(),
            name: name.into(),
            id: 0x51_0000,
            key: None,
            size_max: SIZE_MAX,
            headroom: HEADROOM,
            tailroom: 32,
            pages: 64,
            run: 1,
            shared: false,
            frames: None,
            from: None,
        };
        let mut poller = Poller::new().unwrap();
        let waker = Scheduler::<()>::new(IdleStrategy::default()).unwrap().waker();
        let mut intake = Intake::open(parameters, waker).unwrap();
        intake.register(&mut poller).unwrap();
        Self { came: Came::default(), at: intake.address(), intake, poller, _folder: folder }
    }

    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn start(&mut self, run: u32) {
        self.intake.order(LinkOrder::Start { run });
    }

    pub(crate) fn stop(&mut self) {
        self.intake.order(LinkOrder::Stop);
    }

    /// Polls until what came is enough.
    pub(crate) fn until(&mut self, what: &str, is_enough: impl Fn(&Came) -> bool) {
        let deadline = clock::now() + PATIENCE;
        while !is_enough(&self.came) {
            assert!(clock::now() < deadline, "{what}: still waiting; came: {:?}", self.came);
            self.poll();
        }
    }

    /// Polls once, after news from the kernel or a moment without.
    pub(crate) fn poll(&mut self) {
        if !self.intake.is_ready(clock::now(), ROOM) {
            self.poller.wait(Some(Duration::from_millis(1))).unwrap();
        }
        let came = &mut self.came;
        self.intake.poll(clock::now(), &mut self.poller, ROOM, &mut |arrival| match arrival {
            Arrival::Up { .. } => came.up += 1,
            Arrival::Down { reason } => came.down.push(format!("{reason:?}")),
            Arrival::Fragment { head, page, len, faults } => {
                assert!(faults.is_empty());
                came.fragments += 1;
                if head.flags.contains(Flags::TRANSMISSION_ERROR) {
                    came.damaged.extend(head.number);
                }
                came.payloads.insert(head.number.unwrap(), page.bytes()[HEADROOM..HEADROOM + len].to_vec());
            }
            Arrival::Idle { number, time } => came.idle.push((number, time)),
            Arrival::Status(text) => came.statuses.push(text),
            Arrival::Ended { sent, received } => came.ended.push((sent, received)),
            Arrival::Lost(losses) => panic!("lost: {losses}"),
            Arrival::TurnedAway { why } => panic!("turned away: {why}"),
        });
    }
}

const ROOM: usize = 1024;
