//! What a peer that shares memory with us can write: anything, and is refused with a reason.

use super::ShmLink;
use super::greeting::{self, Sizes};
use super::lane::{Geometry, Lane, OwnLane};
use super::options::{Address, Process, ShmOptions};
use super::record::INLINE;
use crate::clock;
use crate::frame::FrameLimits;
use crate::link::{Filled, Flushed, Link, Lost};
use crate::page_pool::{Pool, PoolOptions};
use crate::poller::Poller;
use crate::shared_memory::make;
use crate::violation::Violation;
use crate::waker::{SleepWord, Waker};
use base::bulk::{Bulk, PageSlice};
use core::time::Duration;
use proptest::prelude::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, getsockname, listen,
    socketpair,
};

const GEOMETRY: Geometry = Geometry { ring_bytes: 4096, tickets: 64 };
const LEN_MIN: usize = 8;
const PAGE_LEN: usize = 4096;
const PAGES: usize = 4;

/// A link of ours, and a peer that writes what it likes.
struct Hostile {
    link: ShmLink,
    lane: OwnLane,
    pool: Pool,
    own_pool: Pool,
    socket: OwnedFd,
}

fn pool_options(name: &str) -> PoolOptions {
    PoolOptions { name: name.into(), page_len: PAGE_LEN, pages: PAGES, prefault: false }
}

/// Connects one of our links to a socket of the peer's.
fn connect() -> (ShmLink, OwnedFd, Pool) {
    let socket = super::socket::new_socket().unwrap();
    bind(&socket, &SocketAddrUnix::new_unnamed()).unwrap();
    listen(&socket, 1).unwrap();
    let bound = SocketAddrUnix::try_from(getsockname(&socket).unwrap()).unwrap();
    let address = Address::of_name(bound.abstract_name().unwrap()).unwrap();
    let mut options = ShmOptions::new(FrameLimits::new(LEN_MIN, PAGE_LEN).unwrap());
    options.ring_bytes = GEOMETRY.ring_bytes;
    options.tickets_max = GEOMETRY.tickets;
    let copies = Pool::shared(&pool_options("copies")).unwrap();
    let receive = Pool::new(&pool_options("receive")).unwrap();
    let process = Process::new(&options, copies.clone(), Vec::new()).unwrap();
    let deadline = clock::now() + Duration::from_secs(3600);
    let link = ShmLink::connect(&address, &process, &receive, deadline).unwrap();
    (link, accept_with(&socket, SocketFlags::CLOEXEC).unwrap(), copies)
}

impl Hostile {
    fn new() -> Self {
        Self::with_tickets(GEOMETRY.tickets)
    }

    /// One that holds so many slices of ours at most.
    fn with_tickets(tickets: usize) -> Self {
        let geometry = Geometry { tickets, ..GEOMETRY };
        let (mut link, socket, own_pool) = connect();
        let (region, file) = make("test", geometry.lane_len(), SealFlags::FUTURE_WRITE).unwrap();
        let pool = Pool::shared(&pool_options("hostile")).unwrap();
        let (event, sleep) = (eventfd(0, EventfdFlags::empty()).unwrap(), SleepWord::new().unwrap());
        let sizes = Sizes { geometry, inline_max: PAGE_LEN, pools: vec![pool.pages_len()] };
        let descriptors = [event.as_fd(), sleep.as_fd(), file.as_fd(), pool.file().unwrap()];
        greeting::send(socket.as_fd(), &sizes, &descriptors).unwrap();
        assert_eq!(link.fill(clock::now()), Ok(Filled::WouldBlock));
        assert!(link.is_connected());
        Self { link, lane: OwnLane::new(Lane::of_region(region, geometry)), pool, own_pool, socket }
    }

    /// Writes words to the beginning of the ring and shows them.
    fn write(&self, words: &[u64]) {
        for (position, word) in (0..).step_by(8).zip(words) {
            self.lane.set_ring_word(position, *word);
        }
        self.lane.set_produced(8 * words.len() as u64);
    }

    /// What arrives, until the link is lost or has nothing more.
    fn receive(&mut self) -> (Vec<Vec<u8>>, Option<Lost>) {
        let mut frames = Vec::new();
        loop {
            while let Some(frame) = self.link.next_frame() {
                let parts = frame.rest.slices().iter().map(PageSlice::as_bytes);
                frames.push([frame.head.as_bytes()].into_iter().chain(parts).collect::<Vec<_>>().concat());
            }
            match self.link.fill(clock::now()) {
                Ok(Filled::Some) => {}
                Ok(_) => return (frames, None),
                Err(lost) => {
                    assert_eq!(self.link.fill(clock::now()), Err(lost), "a loss lasts");
                    return (frames, Some(lost));
                }
            }
        }
    }

    fn violation(words: &[u64]) -> Violation {
        let mut hostile = Self::new();
        hostile.write(words);
        let (frames, lost) = hostile.receive();
        assert_eq!(frames, Vec::<Vec<u8>>::new());
        let Some(Lost::Violated(violation)) = lost else { panic!("{lost:?}") };
        assert!(hostile.lane_of_link_is_closed());
        violation
    }

    fn lane_of_link_is_closed(&mut self) -> bool {
        self.link.send(&frame_head(LEN_MIN), &Bulk::empty()).is_err()
    }
}

fn frame_head(len: usize) -> [u8; LEN_MIN] {
    let mut head = [1; LEN_MIN];
    head[..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
    head
}

fn halves(low: u64, high: u64) -> u64 {
    low | high << 32
}

/// A frame of a head and one piece.
fn record(bulk_len: u64, region: u64, offset: u64, ticket: u64) -> [u64; 6] {
    let head = u64::from_le_bytes(frame_head(LEN_MIN + bulk_len as usize));
    [halves(48, 1), halves(8, 8), halves(bulk_len, region), offset, ticket, head]
}

#[test]
fn what_is_legal_arrives() {
    let mut hostile = Hostile::new();
    let mut page = hostile.pool.take().unwrap();
    page.bytes_mut().fill(7);
    let offset = hostile.pool.offset_of(page.bytes()).unwrap() as u64;
    hostile.write(&record(100, 0, offset + 20, 5));
    let (frames, lost) = hostile.receive();
    assert_eq!((frames, lost), (vec![[&frame_head(108)[..], &[7; 100]].concat()], None));
}

#[test]
fn handles_that_lie_outside_are_refused() {
    let pages_len = (PAGE_LEN * PAGES) as u64;
    for (len, region, offset) in
        [(100, 1, 0), (100, 0, pages_len - 99), (100, 0, u64::MAX), (0, 0, 0), (4000, 0, pages_len), (1, 0, pages_len)]
    {
        let violation = Hostile::violation(&record(len, region, offset, 0));
        assert_eq!(violation, Violation::Handle { region: region as u32, offset, len: len as u32 });
    }
}

#[test]
fn tickets_beyond_those_agreed_are_refused() {
    assert_eq!(Hostile::violation(&record(100, 0, 0, 64)), Violation::Ticket { ticket: 64 });
}

#[test]
fn records_whose_parts_do_not_fit_are_refused() {
    let good = record(100, 0, 0, 0);
    let with = |index: usize, word: u64| {
        let mut words = good;
        words[index] = word;
        words
    };
    let inline = halves(100, INLINE.into());
    for words in [
        with(0, halves(40, 1)),
        with(0, halves(48, 2)),
        with(0, halves(48, u64::from(u32::MAX))),
        with(1, halves(9, 8)),
        with(1, halves(8, 9)),
        with(1, halves(0, 8)),
        with(2, inline),
        with(2, halves(99, 0)),
        with(2, halves(u64::from(u32::MAX), 0)),
    ] {
        assert!(matches!(Hostile::violation(&words), Violation::Record { .. }), "{words:x?}");
    }
}

#[test]
fn impossible_lengths_of_frames_are_refused() {
    for len in [0, LEN_MIN - 1, PAGE_LEN + 1] {
        let mut hostile = Hostile::new();
        let head = u64::from_le_bytes(frame_head(len));
        hostile.write(&[halves(24, 0), halves(8, 8), head]);
        let (_, lost) = hostile.receive();
        assert!(matches!(lost, Some(Lost::Malformed(malformed)) if malformed.len as usize == len), "{lost:?}");
    }
}

#[test]
fn frames_before_a_violation_are_delivered() {
    let mut hostile = Hostile::new();
    let words = [record(100, 0, 0, 0), record(100, 9, 0, 1)].concat();
    hostile.write(&words);
    let (frames, lost) = hostile.receive();
    assert_eq!(frames.len(), 1);
    assert!(matches!(lost, Some(Lost::Violated(Violation::Handle { region: 9, .. }))), "{lost:?}");
}

#[test]
fn a_ticket_that_is_still_in_use_is_refused() {
    let mut hostile = Hostile::new();
    hostile.write(&[record(100, 0, 0, 7), record(50, 0, 200, 7)].concat());
    assert_eq!(hostile.link.fill(clock::now()), Ok(Filled::Some));
    let first = hostile.link.next_frame().unwrap();
    let (frames, lost) = hostile.receive();
    assert_eq!((frames.len(), first.rest.len()), (0, 100));
    assert_eq!(lost, Some(Lost::Violated(Violation::Ticket { ticket: 7 })));
}

#[test]
fn tickets_that_were_not_lent_are_refused_and_pages_come_home_at_the_end() {
    let mut hostile = Hostile::new();
    let mut bulk = vec![0; 1000];
    bulk.fill(9);
    hostile.link.send(&frame_head(LEN_MIN + 1000), &Bulk::Pages(PageSlice::from(bulk))).unwrap();
    hostile.link.flush(clock::now()).unwrap();
    hostile.lane.set_ticket(0, 1);
    hostile.lane.set_returned(1);
    assert!(hostile.link.is_receivable(clock::now()));
    assert_eq!(hostile.link.fill(clock::now()), Err(Lost::Violated(Violation::Ticket { ticket: 1 })));
    // The peer may still be reading.
    assert_eq!(hostile.own_pool.counters().in_use, 1);
    drop(hostile.socket);
    assert!(hostile.link.fill(clock::now()).is_err());
    assert_eq!(hostile.own_pool.counters().in_use, 0);
}

#[test]
fn a_frame_that_waits_for_tickets_can_go_on_whoever_takes_them_back() {
    const TICKETS: usize = 4;
    for is_filled_between in [false, true] {
        let mut hostile = Hostile::with_tickets(TICKETS);
        let (mut poller, waker) = (Poller::new().unwrap(), Waker::new().unwrap());
        hostile.link.register(&mut poller, &waker).unwrap();
        assert_eq!(hostile.link.fill(clock::now()), Ok(Filled::WouldBlock));
        let bulk = Bulk::Pages(PageSlice::from(vec![9; 1000]));
        for _ in 0..=TICKETS {
            hostile.link.send(&frame_head(LEN_MIN + 1000), &bulk).unwrap();
        }
        assert_eq!(hostile.link.flush(clock::now()), Ok(Flushed::WouldBlock));
        assert!(!hostile.link.is_flushable());
        hostile.lane.set_ticket(0, 2);
        hostile.lane.set_returned(1);
        if is_filled_between {
            assert_eq!(hostile.link.fill(clock::now()), Ok(Filled::WouldBlock));
        }
        assert!(hostile.link.is_flushable());
        assert_eq!(hostile.link.flush(clock::now()), Ok(Flushed::All));
    }
}

#[test]
fn a_greeting_with_other_memory_is_refused() {
    let lane = || make("test", GEOMETRY.lane_len(), SealFlags::FUTURE_WRITE).unwrap().1;
    let short = || make("test", GEOMETRY.lane_len() - 8, SealFlags::FUTURE_WRITE).unwrap().1;
    let writable = || make("test", GEOMETRY.lane_len(), SealFlags::empty()).unwrap().1;
    let event = || eventfd(0, EventfdFlags::empty()).unwrap();
    let sleep = || make("test", 8, SealFlags::FUTURE_WRITE).unwrap().1;
    for files in [
        [event(), sleep(), short()],
        [event(), sleep(), writable()],
        [event(), event(), lane()],
        [lane(), sleep(), event()],
    ] {
        let (mut link, socket, _pool) = connect();
        let sizes = Sizes { geometry: GEOMETRY, inline_max: PAGE_LEN, pools: Vec::new() };
        greeting::send(socket.as_fd(), &sizes, &files.each_ref().map(AsFd::as_fd)).unwrap();
        assert_eq!(link.fill(clock::now()), Err(Lost::Violated(Violation::Memory)));
    }
    let (mut link, socket, _pool) = connect();
    rustix::net::send(&socket, b"hello", rustix::net::SendFlags::empty()).unwrap();
    assert_eq!(link.fill(clock::now()), Err(Lost::Violated(Violation::Greeting)));
}

#[test]
fn a_peer_of_another_user_is_given_no_memory() {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let options = ShmOptions::new(FrameLimits::new(LEN_MIN, PAGE_LEN).unwrap());
    let process = Process::new(&options, Pool::shared(&pool_options("copies")).unwrap(), Vec::new()).unwrap();
    let other = Lost::Violated(Violation::OtherUser { uid: 1 });
    let receive = Pool::new(&pool_options("receive")).unwrap();
    let mut link = ShmLink::new(ours, Err(other), &process, &receive, None).unwrap();
    assert_eq!(rustix::net::recv(&theirs, &mut [0; 1], RecvFlags::empty()), Err(Errno::AGAIN));
    assert_eq!(link.fill(clock::now()), Err(other));
}

/// Words that come close to records.
fn words() -> impl Strategy<Value = u64> {
    let half =
        prop_oneof![0_u64..64, Just(8), Just(24), Just(48), Just(u64::from(INLINE)), any::<u32>().prop_map(u64::from)];
    prop_oneof![
        3 => (half.clone(), half).prop_map(|(low, high)| halves(low, high)),
        1 => any::<u64>(),
        1 => (0_usize..5000).prop_map(|len| u64::from_le_bytes(frame_head(len))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn whatever_is_in_the_ring_is_taken_or_refused(
        good in 0_usize..4,
        words in prop::collection::vec(words(), 0..80),
        changes in prop::collection::vec((0_usize..100, words()), 0..4),
        counters in (any::<u64>(), any::<u64>()),
        has_counters in any::<bool>(),
    ) {
        let mut hostile = Hostile::new();
        let mut ring: Vec<u64> = (0..good).flat_map(|ticket| record(64, 0, 0, ticket as u64)).chain(words).collect();
        for (place, word) in changes {
            if let Some(old) = ring.get_mut(place) {
                *old = word;
            }
        }
        hostile.write(&ring);
        if has_counters {
            hostile.lane.set_consumed(counters.0);
            hostile.lane.set_returned(counters.1);
        }
        let (frames, lost) = hostile.receive();
        prop_assert!(frames.iter().all(|frame| (LEN_MIN..=PAGE_LEN).contains(&frame.len())));
        let all = Bulk::Pages(PageSlice::from(vec![3; 2000]));
        for _ in 0..10 {
            let _ = hostile.link.send(&frame_head(LEN_MIN + 2000), &all);
            let _ = hostile.link.flush(clock::now());
        }
        prop_assert!(lost.is_some() || hostile.link.is_connected());
    }
}
