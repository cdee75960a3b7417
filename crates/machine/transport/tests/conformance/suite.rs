//! What a link that keeps order and loses nothing must do. Each test ends with all pages at home.

use crate::network::Random;
use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use transport::clock;
use transport::frame::Frame;
use transport::idle::IdleStrategy;
use transport::link::{Filled, Flushed, Link, Lost, SendError};
use transport::page_pool::{Pool, PoolOptions};
use transport::poller::Poller;
use transport::scheduler::{Context, Scheduler, Task};
use transport::waker::Waker;

/// Writes bytes as somebody would who is not ours.
pub(crate) type Stranger = Box<dyn FnMut(&[u8])>;

/// Makes linked pairs of one transport.
pub(crate) trait Fixture: Sized {
    type Side: Link + Send;

    /// For frames of up to so many bytes.
    fn new(len_max: usize) -> Self;

    fn pair(&mut self) -> (Self::Side, Self::Side);

    /// Lets the scheduler of this poller and waker sleep until something happens.
    fn watch(side: &mut Self::Side, poller: &mut Poller, waker: &Waker);

    /// The pools that the transport itself uses.
    fn pools(&self) -> Vec<Pool>;

    /// A side whose peer is a stranger, and what writes bytes to it as the stranger would. `None` where no bytes come from outside
    /// of the process.
    fn stranger(&mut self) -> Option<(Self::Side, Stranger)>;

    /// Where the bulk to be sent lies.
    fn source_pool(&mut self, options: &PoolOptions) -> Pool {
        Pool::new(options).unwrap()
    }
}

pub(crate) const PAGE_LEN: usize = 16 << 10;
pub(crate) const QUEUE_BYTES_MAX: usize = 64 << 10;
pub(crate) const QUEUE_FRAMES_MAX: usize = 64;
pub(crate) const LEN_MIN: usize = 8;
const LONG_LENS: [usize; 5] = [LEN_MIN, 2 * LEN_MIN, 1 << 20, 16 << 20, 64 << 20];
const LONG_BLOCK_LEN: usize = 65_537;
pub(crate) const COPY_BELOW: usize = 2048;

pub(crate) fn frames_of_all_lengths_arrive_in_order<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (first, second) = run.fixture.pair();
    let (mut first, mut second) = (first, second);
    let boundaries = [
        LEN_MIN,
        LEN_MIN + 1,
        COPY_BELOW - 1,
        COPY_BELOW,
        COPY_BELOW + 1,
        LEN_MIN + COPY_BELOW - 1,
        LEN_MIN + COPY_BELOW,
        PAGE_LEN / 2,
        PAGE_LEN - 1,
        PAGE_LEN,
    ];
    let lens: Vec<_> = (0..5).flat_map(|_| boundaries).chain((LEN_MIN..PAGE_LEN).step_by(397)).collect();
    run.transfer(&mut first, &mut second, &lens);
    drop((first, second));
    run.check_pages_home();
}

/// One after the other, each sent once: what is lost on the way is the link's business.
pub(crate) fn frames_of_up_to_64_mb_arrive<F: Fixture>() {
    // One test at a time: each takes several times the longest frame of memory.
    let _turn = LONG_FRAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut fixture = F::new(LONG_LENS[LONG_LENS.len() - 1]);
    // A page each: a link may keep what it has sent.
    let pages = LONG_LENS.len();
    let options = PoolOptions { name: "source".into(), page_len: LONG_LENS[pages - 1], pages, prefault: false };
    let source = fixture.source_pool(&options);
    let (mut first, mut second) = fixture.pair();
    for (seed, len) in LONG_LENS.into_iter().enumerate() {
        let watchdog = Watchdog::default();
        let mut page = source.take().unwrap();
        fill_long(&mut page.bytes_mut()[..len - LEN_MIN], seed);
        let bulk = Bulk::Pages(page.freeze(len - LEN_MIN));
        first.send(&head(len), &bulk).unwrap();
        drop(bulk);
        let frame = loop {
            if let Some(frame) = pass(&mut first, &mut second) {
                break frame;
            }
            watchdog.look();
        };
        check_long(frame, len, seed);
    }
    drop((first, second));
    Run { fixture, source: Source { pool: source } }.check_pages_home();
}

/// Whatever a stranger says, nothing comes of it but frames of legal lengths or the loss of that link, and what others send arrives.
pub(crate) fn strangers<F: Fixture>(run: &mut Run<F>, mut transfer: impl FnMut(&Run<F>)) {
    let mut random = Random(5);
    for round in 0..60 {
        let Some((mut victim, mut write)) = run.fixture.stranger() else { break };
        let mut written = 0;
        for _ in 0..4 {
            let mut bytes: Vec<u8> = (0..random.below(3000)).map(|_| random.below(256) as u8).collect();
            // The beginning of a frame of any length, or what begins as a datagram does.
            let beginnings = [u32::MAX, 0, LEN_MIN as u32, PAGE_LEN as u32, PAGE_LEN as u32 + 1];
            if round % 2 == 0 && bytes.len() >= LEN_MIN {
                bytes[..4].copy_from_slice(&beginnings[random.below(5) as usize].to_le_bytes());
            }
            write(&bytes);
            written += bytes.len();
        }
        let mut received = 0;
        for _ in 0..100 {
            let is_lost = victim.fill(clock::now()).is_err();
            while let Some(frame) = victim.next_frame() {
                assert!((LEN_MIN..=PAGE_LEN).contains(&frame.len()));
                received += frame.len();
            }
            let _ = victim.flush(clock::now());
            if is_lost {
                assert!(victim.fill(clock::now()).is_err(), "a loss lasts");
                break;
            }
        }
        assert!(received <= written);
        transfer(run);
    }
}

fn pass(first: &mut impl Link, second: &mut impl Link) -> Option<Frame> {
    first.flush(clock::now()).unwrap();
    second.fill(clock::now()).unwrap();
    let frame = second.next_frame();
    second.flush(clock::now()).unwrap();
    first.fill(clock::now()).unwrap();
    frame
}

pub(crate) fn both_directions_at_once<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..400).map(|index| LEN_MIN + index * 31 % 6000).collect();
    let (mut to_second, mut to_first) = (Transfer::new(&lens), Transfer::new(&lens));
    let watchdog = Watchdog::default();
    while !(to_second.is_done() && to_first.is_done()) {
        to_second.send(&mut first, &run.source);
        to_first.send(&mut second, &run.source);
        to_second.receive(&mut second);
        to_first.receive(&mut first);
        watchdog.look();
    }
    drop((first, second));
    run.check_pages_home();
}

pub(crate) fn many_small_frames<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..20_000).map(|index| LEN_MIN + index % 60).collect();
    run.transfer(&mut first, &mut second, &lens);
    let sent = first.counters();
    assert!(sent.send_calls < sent.frames_sent / 4, "small frames are gathered: {sent:?}");
    assert_eq!(second.counters().small_frames_received, lens.len() as u64);
    drop((first, second));
    run.check_pages_home();
}

pub(crate) fn bulk_in_several_slices<F: Fixture>(fixture: F) {
    send_bulk_in_several_slices(fixture, 1);
}

/// It arrives after at most so many sends, one in each pass.
pub(crate) fn send_bulk_in_several_slices<F: Fixture>(fixture: F, sends_max: usize) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let parts = [0, 1, COPY_BELOW - 1, COPY_BELOW, COPY_BELOW + 1, 0, 3000];
    let slices: Vec<_> = parts.iter().enumerate().map(|(seed, len)| run.source.slice(*len, seed)).collect();
    let bulk = Bulk::PageList(slices.clone());
    let expected: Vec<u8> = slices.iter().flat_map(|slice| slice.as_bytes().to_vec()).collect();
    let (mut sends, watchdog) = (0, Watchdog::default());
    let frame = loop {
        if sends < sends_max {
            let sent = first.send(&head(LEN_MIN + expected.len()), &bulk);
            assert!(sent.is_ok() || sends > 0, "{sent:?}");
            sends += 1;
        }
        first.flush(clock::now()).unwrap();
        second.fill(clock::now()).unwrap();
        if let Some(frame) = second.next_frame() {
            break frame;
        }
        watchdog.look();
    };
    assert_eq!(contents(frame)[LEN_MIN..], expected);
    drop((first, second, bulk, slices));
    run.check_pages_home();
}

pub(crate) fn a_receiver_that_stops_stops_its_sender<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..300).map(|index| 5000 + index).collect();
    let mut transfer = Transfer::new(&lens);
    let watchdog = Watchdog::default();
    // Until nothing moves: everything on the way is full, the frames that the receiver does not fetch included.
    let mut still_passes = 0;
    while still_passes < 1000 {
        let before = (transfer.sent, *first.counters(), second.counters().bytes_received);
        transfer.send(&mut first, &run.source);
        let filled = second.fill(clock::now()).unwrap();
        let moved = before.0 < transfer.sent
            || before.1.bytes_sent < first.counters().bytes_sent
            || before.2 < second.counters().bytes_received;
        still_passes = if moved { 0 } else { still_passes + 1 };
        assert!(moved || filled == Filled::FramesWaiting || filled == Filled::WouldBlock);
        watchdog.look();
    }
    assert!(transfer.sent < lens.len(), "the sender is held up");
    assert_eq!(first.flush(clock::now()), Ok(Flushed::WouldBlock));
    assert!(run.source.pool.counters().in_use <= 4 * QUEUE_FRAMES_MAX);
    while !transfer.is_done() {
        transfer.send(&mut first, &run.source);
        transfer.receive(&mut second);
        watchdog.look();
    }
    drop((first, second));
    run.check_pages_home();
}

pub(crate) fn frames_sent_before_the_peer_went_are_received<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens = [100, 3000];
    let mut transfer = Transfer::new(&lens);
    let watchdog = Watchdog::default();
    while transfer.sent < lens.len() || first.flush(clock::now()).unwrap() != Flushed::All {
        transfer.send(&mut first, &run.source);
        watchdog.look();
    }
    drop(first);
    let lost = loop {
        while let Some(frame) = second.next_frame() {
            transfer.check(frame);
        }
        match second.fill(clock::now()) {
            Ok(_) => watchdog.look(),
            Err(lost) => break lost,
        }
    };
    assert!(transfer.is_done());
    assert_eq!(lost, Lost::Closed);
    assert_eq!(second.fill(clock::now()), Err(lost));
    assert!(second.is_receivable(clock::now()));
    drop(second);
    run.check_pages_home();
}

pub(crate) fn a_sender_learns_that_its_peer_went<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens = vec![4000; 1000];
    let mut transfer = Transfer::new(&lens);
    let watchdog = Watchdog::default();
    while transfer.received < 20 {
        transfer.send(&mut first, &run.source);
        transfer.receive(&mut second);
        watchdog.look();
    }
    drop(second);
    let bulk = Bulk::Pages(run.source.slice(4000 - LEN_MIN, 0));
    let lost = loop {
        if let Err(lost) = first.flush(clock::now()) {
            break lost;
        }
        let _ = first.send(&head(4000), &bulk);
        watchdog.look();
    };
    assert!(matches!(lost, Lost::Closed | Lost::Reset), "{lost}");
    assert_eq!(first.send(&head(4000), &bulk), Err(SendError::Lost(lost)));
    assert_eq!(first.flush(clock::now()), Err(lost));
    drop((bulk, transfer));
    run.check_pages_home();
    drop(first);
}

pub(crate) fn a_lost_link_is_made_anew<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let lens: Vec<_> = (0..50).map(|index| LEN_MIN + 97 * index).collect();
    for _ in 0..3 {
        let (mut first, mut second) = run.fixture.pair();
        run.transfer(&mut first, &mut second, &lens);
        drop(first);
        let watchdog = Watchdog::default();
        while second.fill(clock::now()) != Err(Lost::Closed) {
            watchdog.look();
        }
    }
    run.check_pages_home();
}

pub(crate) fn parking_schedulers_move_all_frames<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..3000).map(|index| LEN_MIN + index * 13 % 9000).collect();
    let source = &run.source;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut first = first;
            let mut scheduler = Scheduler::new(IdleStrategy::default()).unwrap();
            let waker = scheduler.waker();
            source.pool.wake_on_return(waker.clone());
            F::watch(&mut first, scheduler.poller(), &waker);
            scheduler.add("send", SendTask { link: first, transfer: Transfer::new(&lens), source });
            scheduler.run(&mut ()).unwrap();
        });
        let mut scheduler = Scheduler::new(IdleStrategy::default()).unwrap();
        let waker = scheduler.waker();
        run.fixture.pools().iter().for_each(|pool| pool.wake_on_return(waker.clone()));
        F::watch(&mut second, scheduler.poller(), &waker);
        scheduler.add("receive", ReceiveTask { link: second, transfer: Transfer::new(&lens) });
        scheduler.run(&mut ()).unwrap();
    });
    run.check_pages_home();
}

struct SendTask<'a, L> {
    link: L,
    transfer: Transfer<'a>,
    source: &'a Source,
}

impl<L: Link> Task for SendTask<'_, L> {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let has_more = self.transfer.sent < self.transfer.lens.len();
        has_more && !self.transfer.held_up
            || self.link.is_flushable()
            || self.link.next_deadline().is_some_and(|deadline| context.now >= deadline)
            || self.link.is_receivable(context.now)
    }

    fn action(&mut self, context: &mut Context<'_>) {
        self.transfer.send(&mut self.link, self.source);
        self.transfer.held_up = matches!(self.link.flush(context.now), Ok(Flushed::WouldBlock));
        // The receiver closes when it has everything.
        if self.link.fill(context.now).is_err() {
            context.stop();
        }
    }
}

struct ReceiveTask<'a, L> {
    link: L,
    transfer: Transfer<'a>,
}

impl<L: Link> Task for ReceiveTask<'_, L> {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.link.is_receivable(context.now)
    }

    fn action(&mut self, context: &mut Context<'_>) {
        self.transfer.receive(&mut self.link);
        if self.transfer.received == self.transfer.lens.len() {
            context.stop();
        }
    }
}

/// A fixture and where its bulk comes from.
pub(crate) struct Run<F> {
    pub(crate) fixture: F,
    pub(crate) source: Source,
}

impl<F: Fixture> Run<F> {
    pub(crate) fn new(mut fixture: F) -> Self {
        let source = Source::new(&mut fixture);
        Self { fixture, source }
    }

    fn transfer(&self, from: &mut F::Side, to: &mut F::Side, lens: &[usize]) {
        let mut transfer = Transfer::new(lens);
        let watchdog = Watchdog::default();
        while !transfer.is_done() {
            transfer.send(from, &self.source);
            transfer.receive(to);
            watchdog.look();
        }
    }

    /// Pages that another process may have read come home a little later than its end.
    pub(crate) fn check_pages_home(&self) {
        let watchdog = Watchdog::default();
        for pool in self.fixture.pools().iter().chain([&self.source.pool]) {
            while pool.counters().in_use > 0 {
                watchdog.look();
            }
        }
    }
}

/// Fresh pages with known contents.
pub(crate) struct Source {
    pub(crate) pool: Pool,
}

impl Source {
    fn new(fixture: &mut impl Fixture) -> Self {
        let pages = 5 * QUEUE_FRAMES_MAX;
        let options = PoolOptions { name: "source".into(), page_len: PAGE_LEN, pages, prefault: false };
        Self { pool: fixture.source_pool(&options) }
    }

    pub(crate) fn slice(&self, len: usize, seed: usize) -> PageSlice {
        let mut page = self.pool.take().expect("as many pages as the bounds of a link allow");
        page.bytes_mut()[..len].copy_from_slice(&bulk_bytes(len, seed));
        page.freeze(len)
    }
}

/// Frames of these lengths, sent and received in order.
struct Transfer<'a> {
    lens: &'a [usize],
    sent: usize,
    received: usize,
    pending: VecDeque<Bulk>,
    held_up: bool,
}

impl<'a> Transfer<'a> {
    fn new(lens: &'a [usize]) -> Self {
        Self { lens, sent: 0, received: 0, pending: VecDeque::new(), held_up: false }
    }

    fn is_done(&self) -> bool {
        self.received == self.lens.len()
    }

    /// Sends until the queue is full, and flushes.
    fn send(&mut self, link: &mut impl Link, source: &Source) {
        while let Some(len) = self.lens.get(self.sent) {
            let bulk = self.pending.pop_front().unwrap_or_else(|| Bulk::Pages(source.slice(len - LEN_MIN, self.sent)));
            match link.send(&head(*len), &bulk) {
                Ok(()) => self.sent += 1,
                Err(SendError::Full) => {
                    self.pending.push_back(bulk);
                    break;
                }
                Err(SendError::Lost(_)) => return,
            }
        }
        let _ = link.flush(clock::now());
    }

    fn receive(&mut self, link: &mut impl Link) {
        link.fill(clock::now()).expect("the peer is there");
        while let Some(frame) = link.next_frame() {
            self.check(frame);
        }
    }

    fn check(&mut self, frame: Frame) {
        let len = self.lens[self.received];
        assert_eq!(frame.len(), len, "frame {}", self.received);
        let bytes = contents(frame);
        assert_eq!(bytes[..LEN_MIN], head(len));
        assert!(bytes[LEN_MIN..] == bulk_bytes(len - LEN_MIN, self.received), "contents of frame {}", self.received);
        self.received += 1;
    }
}

/// Contents of long bulk: a block of a length that no segment has, as often as it fits.
fn long_block(seed: usize) -> Vec<u8> {
    bulk_bytes(LONG_BLOCK_LEN, seed)
}

fn fill_long(bytes: &mut [u8], seed: usize) {
    let block = long_block(seed);
    bytes.chunks_mut(block.len()).for_each(|chunk| chunk.copy_from_slice(&block[..chunk.len()]));
}

fn check_long(frame: Frame, len: usize, seed: usize) {
    assert_eq!(frame.len(), len);
    let (first, bulk) = frame.split(LEN_MIN).expect("the head is in one piece");
    assert_eq!(first.as_bytes(), head(len));
    let (block, mut at) = (long_block(seed), 0);
    for slice in bulk.slices() {
        let mut bytes = slice.as_bytes();
        while !bytes.is_empty() {
            let expected = &block[at % block.len()..];
            let (some, rest) = bytes.split_at(bytes.len().min(expected.len()));
            assert!(*some == expected[..some.len()], "contents of a frame of {len} bytes at {at}");
            (bytes, at) = (rest, at + some.len());
        }
    }
    assert_eq!(at, len - LEN_MIN);
}

fn head(len: usize) -> [u8; LEN_MIN] {
    let mut head = [0xaa; LEN_MIN];
    head[..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
    head
}

pub(crate) fn bulk_bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 31 + seed * 7) as u8).collect()
}

pub(crate) fn contents(frame: Frame) -> Vec<u8> {
    let (head, bulk) = frame.split(LEN_MIN).expect("the head is in one piece");
    let parts = bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec());
    head.as_bytes().iter().copied().chain(parts).collect()
}

static LONG_FRAMES: Mutex<()> = Mutex::new(());

/// Ends a test that would hang.
pub(crate) struct Watchdog(Time);

impl Default for Watchdog {
    fn default() -> Self {
        Self(clock::now())
    }
}

impl Watchdog {
    pub(crate) fn look(&self) {
        assert!(clock::now().since(self.0) < Duration::from_secs(600), "nothing moves any more");
        std::thread::yield_now();
    }
}
