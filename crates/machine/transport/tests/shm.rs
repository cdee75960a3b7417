//! Links through shared memory: long frames, heads longer than the ring, sleepers, settings, and what becomes of slices.

use base::bulk::{Bulk, PageSlice};
use std::time::Duration;
use transport::clock;
use transport::frame::{Frame, FrameLimits};
use transport::idle::IdleStrategy;
use transport::link::{Filled, Link, Lost};
use transport::page_pool::{Pool, PoolOptions};
use transport::scheduler::{Context, Scheduler, Task};
use transport::shm::{Address, Process, ShmError, ShmLink, ShmListener, ShmOptions};

const LEN_MIN: usize = 8;
const MIB: usize = 1 << 20;

fn pool_options(name: &str, page_len: usize, pages: usize) -> PoolOptions {
    PoolOptions { name: name.into(), page_len, pages, prefault: false }
}

struct Pair {
    copies: Pool,
    lent: Pool,
    first: ShmLink,
    second: ShmLink,
}

impl Pair {
    fn new(frame_len_max: usize, copies: &PoolOptions, lent: &PoolOptions) -> Self {
        let options = ShmOptions::new(FrameLimits::new(LEN_MIN, frame_len_max).unwrap());
        let (copies, lent) = (Pool::shared(copies).unwrap(), Pool::shared(lent).unwrap());
        let receive = Pool::new(&pool_options("receive", 64 << 10, 4)).unwrap();
        let process = || Process::new(&options, copies.clone(), vec![lent.clone()]).unwrap();
        let listener = ShmListener::bind().unwrap();
        let deadline = clock::now() + Duration::from_secs(3600);
        let first = ShmLink::connect(listener.address(), &process(), &receive, deadline).unwrap();
        let second = listener.accept(&process(), &receive).unwrap().unwrap();
        Self { copies, lent, first, second }
    }

    fn pass(&mut self, head: &[u8], bulk: &Bulk) -> Frame {
        self.first.send(head, bulk).unwrap();
        let started = clock::now();
        loop {
            self.first.flush(clock::now()).unwrap();
            self.second.fill(clock::now()).unwrap();
            if let Some(frame) = self.second.next_frame() {
                return frame;
            }
            assert!(clock::now().since(started) < Duration::from_secs(600), "nothing moves");
        }
    }

    fn in_use(&self) -> (usize, usize) {
        (self.copies.counters().in_use, self.lent.counters().in_use)
    }
}

fn head(len: usize, frame_len: usize) -> Vec<u8> {
    let mut head = vec![0xaa; len];
    head[..4].copy_from_slice(&u32::try_from(frame_len).unwrap().to_le_bytes());
    head
}

fn private(len: usize, seed: usize) -> PageSlice {
    PageSlice::from((0..len).map(|index| (index * 31 + seed) as u8).collect::<Vec<_>>())
}

fn written(pool: &Pool, len: usize, byte: u8) -> PageSlice {
    let mut page = pool.take().unwrap();
    page.bytes_mut()[..len].fill(byte);
    page.freeze(len)
}

#[test]
fn frames_of_64_mib_in_one_page_in_many_and_copied() {
    let len = LEN_MIN + 64 * MIB;
    let mut pair = Pair::new(len, &pool_options("copies", 2 * MIB, 70), &pool_options("lent", 64 * MIB, 1));
    let one = Bulk::Pages(written(&pair.lent, 64 * MIB, 3));
    let received = pair.pass(&head(LEN_MIN, len), &one);
    assert_eq!(received.rest.slices().len(), 1);
    assert!(
        received.rest == one && received.rest.slices()[0].as_bytes().as_ptr() != one.slices()[0].as_bytes().as_ptr()
    );
    drop((received, one));

    let many = Bulk::PageList((0..64).map(|seed| private(MIB, seed)).collect());
    let long = Bulk::Pages(private(64 * MIB, 1));
    for bulk in [many, long] {
        let received = pair.pass(&head(LEN_MIN, len), &bulk);
        assert!(received.rest.slices().len() <= 40, "copies lie one behind the other");
        let expected = bulk.slices().iter().flat_map(PageSlice::as_bytes);
        let found = received.rest.slices().iter().flat_map(PageSlice::as_bytes);
        assert!(expected.eq(found));
        drop(received);
        pair.first.fill(clock::now()).unwrap();
    }
    assert!(pair.in_use().0 <= 1, "only the page that is being filled: {:?}", pair.in_use());
    assert_eq!(pair.in_use().1, 0);
}

#[test]
fn a_frame_without_bulk_of_any_length() {
    let mut pair = Pair::new(MIB, &pool_options("copies", 256 << 10, 10), &pool_options("lent", 4096, 1));
    for len in [LEN_MIN, 100, 8 << 10, (8 << 10) + 1, 64 << 10, 256 << 10, (256 << 10) + 1, MIB] {
        let head = head(len, len);
        assert_eq!(pair.pass(&head, &Bulk::empty()).head.as_bytes(), head, "{len}");
        let bulk = private(1000.min(MIB - len), 5);
        let frame_len = len + bulk.len();
        let frame = pair.pass(&crate::head(len, frame_len), &Bulk::Pages(bulk.clone()));
        let (head, rest) = frame.split(len).unwrap();
        assert_eq!(head.len(), len);
        assert_eq!(rest.slices().first().map_or(&[][..], PageSlice::as_bytes), bulk.as_bytes());
    }
}

#[test]
fn a_head_that_was_too_long_for_the_ring_is_not_read_in_the_pages_of_its_sender() {
    let mut pair = Pair::new(MIB, &pool_options("copies", MIB, 4), &pool_options("lent", 4096, 1));
    let head = head(64 << 10, 64 << 10);
    let frame = pair.pass(&head, &Bulk::empty());
    // The ticket is back while the frame is here.
    pair.first.fill(clock::now()).unwrap();
    drop(pair.first);
    assert_eq!((pair.copies.counters().in_use, frame.head.as_bytes()), (0, &head[..]));
}

#[test]
fn slices_of_shared_pages_travel_without_a_copy_and_keep_their_order() {
    let mut pair = Pair::new(MIB, &pool_options("copies", MIB, 4), &pool_options("lent", 4096, 8));
    let slices = [
        written(&pair.lent, 4096, 1),
        private(10, 2),
        written(&pair.lent, 600, 3),
        private(2000, 4),
        private(3000, 5),
        PageSlice::default(),
        private(20, 6),
    ];
    let bulk = Bulk::PageList(slices.to_vec());
    let frame = pair.pass(&head(30, 30 + bulk.len()), &bulk);
    assert_eq!(frame.head.as_bytes(), head(30, 30 + bulk.len()));
    assert!(
        frame.rest.slices().iter().flat_map(PageSlice::as_bytes).eq(bulk.slices().iter().flat_map(PageSlice::as_bytes))
    );
    // The two that were copied one behind the other are one.
    let lens: Vec<_> = frame.rest.slices().iter().map(PageSlice::len).collect();
    assert_eq!(lens, [4096, 10, 600, 5000, 20]);
    assert_eq!(pair.in_use(), (1, 2));
    drop((bulk, slices));
    // A part of a slice keeps its page.
    let part = frame.rest.slices()[0].slice(4000..4096);
    drop(frame);
    pair.first.fill(clock::now()).unwrap();
    assert_eq!(pair.in_use(), (1, 1));
    assert_eq!(part.as_bytes(), [1; 96]);
    std::thread::spawn(move || drop(part)).join().unwrap();
    pair.first.fill(clock::now()).unwrap();
    assert_eq!(pair.in_use().1, 0);
}

#[test]
fn pages_stay_away_as_long_as_a_slice_is_read_whatever_becomes_of_the_links() {
    let pair = Pair::new(MIB, &pool_options("copies", MIB, 4), &pool_options("lent", 4096, 8));
    let lent = pair.lent.clone();
    let mut pair = pair;
    let bulk = Bulk::Pages(written(&lent, 4096, 1));
    let frame = pair.pass(&head(8, 8 + 4096), &bulk);
    drop(bulk);
    drop(pair.second);
    assert_eq!(pair.first.fill(clock::now()), Err(Lost::Closed));
    assert_eq!(lent.counters().in_use, 1, "a slice is alive, though its link is not");
    drop(pair.first);
    assert_eq!(lent.counters().in_use, 1);
    assert_eq!(frame.rest.slices()[0].as_bytes(), [1; 4096]);
    drop(frame);
    let started = clock::now();
    while lent.counters().in_use > 0 {
        assert!(clock::now().since(started) < Duration::from_secs(600), "the page does not come home");
        std::thread::yield_now();
    }
}

#[test]
fn what_a_driven_link_lets_go_comes_home_at_its_flush_and_from_other_threads_at_once() {
    let mut pair = Pair::new(MIB, &pool_options("copies", MIB, 4), &pool_options("lent", 4096, 4));
    let mut scheduler = Scheduler::<()>::new(IdleStrategy::Yield).unwrap();
    let pass = |pair: &mut Pair| {
        let bulk = Bulk::Pages(written(&pair.lent, 4096, 1));
        pair.pass(&head(LEN_MIN, LEN_MIN + 4096), &bulk)
    };
    let out = |pair: &mut Pair| {
        let _ = pair.first.fill(clock::now());
        pair.in_use().1
    };
    drop(pass(&mut pair));
    let waker = scheduler.waker();
    pair.second.register(scheduler.poller(), &waker).unwrap();
    let frames: Vec<Frame> = (0..3).map(|_| pass(&mut pair)).collect();
    let [first, second, third] = frames.try_into().unwrap();
    assert_eq!((out(&mut pair), pair.second.is_flushable()), (3, false));
    std::thread::spawn(move || drop(first)).join().unwrap();
    assert_eq!((out(&mut pair), pair.second.is_flushable()), (2, false));
    drop(second);
    assert_eq!((out(&mut pair), pair.second.is_flushable()), (2, true));
    pair.second.flush(clock::now()).unwrap();
    assert_eq!((out(&mut pair), pair.second.is_flushable()), (1, false));
    drop(third);
    let Pair { mut first, second, lent, .. } = pair;
    drop(second);
    assert!(first.fill(clock::now()).is_err());
    assert_eq!(lent.counters().in_use, 0);
}

#[test]
fn nobody_listens_or_nobody_accepts() {
    let options = ShmOptions::new(FrameLimits::new(LEN_MIN, 4096).unwrap());
    let copies = Pool::shared(&pool_options("copies", 4096, 4)).unwrap();
    let receive = Pool::new(&pool_options("receive", 4096, 4)).unwrap();
    let process = Process::new(&options, copies, Vec::new()).unwrap();
    let listener = ShmListener::bind().unwrap();
    let address: Address = listener.address().to_string().parse().unwrap();
    let deadline = clock::now() + Duration::from_secs(3600);
    let mut waiting = ShmLink::connect(&address, &process, &receive, deadline).unwrap();
    waiting.send(&head(8, 8), &Bulk::empty()).unwrap();
    assert_eq!(waiting.fill(clock::now()), Ok(Filled::WouldBlock));
    assert_eq!(waiting.next_deadline(), Some(deadline));
    assert_eq!(waiting.fill(deadline), Err(Lost::ConnectTimedOut));
    drop(listener);
    let mut refused = ShmLink::connect(&address, &process, &receive, deadline).unwrap();
    assert_eq!(refused.flush(clock::now()), Err(Lost::Refused));
    assert_eq!(refused.fill(clock::now()), Err(Lost::Refused));
}

#[test]
fn settings_that_do_not_fit_together_are_errors() {
    let with = |change: fn(&mut ShmOptions), copies: &Pool| {
        let mut options = ShmOptions::new(FrameLimits::new(LEN_MIN, MIB).unwrap());
        change(&mut options);
        Process::new(&options, copies.clone(), Vec::new()).unwrap_err()
    };
    let shared = Pool::shared(&pool_options("copies", MIB, 4)).unwrap();
    let geometry = |change: fn(&mut ShmOptions)| matches!(with(change, &shared), ShmError::Geometry { .. });
    assert!(geometry(|options| options.ring_bytes = 5000) && geometry(|options| options.tickets_max = 0));
    assert!(matches!(with(|options| options.queue_bytes_max = MIB - 1, &shared), ShmError::QueueTooSmall { .. }));
    let private = Pool::new(&pool_options("copies", MIB, 4)).unwrap();
    assert!(matches!(with(|_| (), &private), ShmError::PrivatePool { .. }));
    let few = Pool::shared(&pool_options("copies", MIB, 1)).unwrap();
    assert!(matches!(with(|_| (), &few), ShmError::CopiesTooSmall { needed: 2, .. }));
    let short = Pool::shared(&pool_options("copies", 4096, 1024)).unwrap();
    assert!(matches!(with(|_| (), &short), ShmError::CopiesTooSmall { needed: 512, .. }));
}

/// Answers each frame with one that counts one up, until `last`; its bulk is from a pool of a single page.
struct Echo {
    link: ShmLink,
    pool: Pool,
    last: u32,
    to_send: Option<u32>,
}

impl Task for Echo {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        (self.to_send.is_some() && self.pool.has_free())
            || self.link.is_receivable(context.now)
            || self.link.is_flushable()
    }

    fn action(&mut self, context: &mut Context<'_>) {
        if self.link.fill(context.now).is_err() {
            // The peer is done.
            return context.stop();
        }
        while let Some(frame) = self.link.next_frame() {
            let count = u32::from_le_bytes(*frame.head.as_bytes()[4..].first_chunk().unwrap());
            assert_eq!(frame.rest.slices()[0].as_bytes(), [count as u8; 1000]);
            self.to_send = Some(count + 1);
        }
        if let Some(count) = self.to_send
            && let Some(mut page) = self.pool.take()
        {
            page.bytes_mut().fill(count as u8);
            let mut head = head(8, 8 + 1000);
            head[4..].copy_from_slice(&count.to_le_bytes());
            self.link.send(&head, &Bulk::Pages(page.freeze(1000))).unwrap();
            self.to_send = None;
            if count >= self.last {
                context.stop();
            }
        }
        let _ = self.link.flush(context.now);
    }
}

#[test]
fn sleepers_are_woken_for_frames_and_for_pages() {
    let Pair { first, second, lent, .. } =
        Pair::new(MIB, &pool_options("copies", MIB, 4), &pool_options("lent", 1000, 1));
    let at_once = IdleStrategy::Park { yield_for: Duration::ZERO };
    let run = |mut link: ShmLink, to_send| {
        let mut scheduler = Scheduler::new(at_once).unwrap();
        let waker = scheduler.waker();
        lent.wake_on_return(waker.clone());
        link.register(scheduler.poller(), &waker).unwrap();
        scheduler.add("echo", Echo { link, pool: lent.clone(), last: 4000, to_send });
        scheduler.run(&mut ()).unwrap();
        scheduler.counters().sleeps
    };
    let sleeps = std::thread::scope(|scope| {
        let other = scope.spawn(|| run(second, None));
        run(first, Some(0)) + other.join().unwrap()
    });
    assert!(sleeps > 100, "{sleeps}");
}
