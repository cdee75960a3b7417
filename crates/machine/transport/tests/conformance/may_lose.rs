//! What every link must do, those that lose, repeat or reorder frames included: what arrives is whole, and what is asked
//! for often enough arrives. Each test ends with all pages at home.

use crate::suite::{
    self, COPY_BELOW, Fixture, LEN_MIN, PAGE_LEN, QUEUE_FRAMES_MAX, Run, Source, Watchdog, bulk_bytes, contents,
};
use base::bulk::Bulk;
use base::time::Time;
use std::time::Duration;
use transport::clock;
use transport::frame::Frame;
use transport::idle::IdleStrategy;
use transport::link::{Link, Lost, SendError};
use transport::scheduler::{Context, Scheduler, Stopper, Task};

pub(crate) fn frames_of_all_lengths_arrive_whole<F: Fixture>(fixture: F) {
    let boundaries =
        [LEN_MIN, LEN_MIN + 1, COPY_BELOW - 1, COPY_BELOW, LEN_MIN + COPY_BELOW, 1432, 1433, 2864, 2865, PAGE_LEN];
    let lens: Vec<_> = (0..3).flat_map(|_| boundaries).chain((LEN_MIN..PAGE_LEN).step_by(397)).collect();
    transfer(fixture, &lens);
}

pub(crate) fn many_small_frames<F: Fixture>(fixture: F) {
    let lens: Vec<_> = (0..10_000).map(|index| LEN_MIN + index % 60).collect();
    transfer(fixture, &lens);
}

pub(crate) fn both_directions_at_once<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..300).map(|index| LEN_MIN + index * 31 % 6000).collect();
    let (mut to_second, mut to_first) = (Transfer::new(&lens), Transfer::new(&lens));
    let watchdog = Watchdog::default();
    while !(to_second.is_done() && to_first.is_done()) {
        to_second.send(&mut first, &run.source).unwrap();
        to_first.send(&mut second, &run.source).unwrap();
        to_second.receive(&mut second);
        to_first.receive(&mut first);
        watchdog.look();
    }
    drop((first, second));
    run.check_pages_home();
}

pub(crate) fn bulk_in_several_slices<F: Fixture>(fixture: F) {
    suite::send_bulk_in_several_slices(fixture, usize::MAX);
}

pub(crate) fn a_receiver_that_stops_costs_bounded_memory<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..300).map(|index| 5000 + index).collect();
    let mut transfer = Transfer::new(&lens);
    for _ in 0..100 {
        transfer.send(&mut first, &run.source).unwrap();
        second.fill(clock::now()).unwrap();
        assert!(run.source.pool.counters().in_use <= 4 * QUEUE_FRAMES_MAX);
    }
    let watchdog = Watchdog::default();
    while !transfer.is_done() {
        transfer.send(&mut first, &run.source).unwrap();
        transfer.receive(&mut second);
        watchdog.look();
    }
    drop((first, second));
    run.check_pages_home();
}

pub(crate) fn a_sender_survives_that_its_peer_went<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, second) = run.fixture.pair();
    drop(second);
    let lens = vec![4000; 200];
    let mut transfer = Transfer::new(&lens);
    for _ in 0..100 {
        if let Err(lost) = transfer.send(&mut first, &run.source) {
            assert!(matches!(lost, Lost::Closed | Lost::Reset), "{lost}");
            break;
        }
    }
    drop(first);
    run.check_pages_home();
}

/// What is sent once comes once or, where frames may be lost, never.
pub(crate) fn nothing_comes_twice<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..400).map(|index| LEN_MIN + index * 37 % 9000).collect();
    // The last says, again and again, that all were sent.
    let last = lens.len();
    let (mut sent, mut times) = (0, vec![0; last + 1]);
    let watchdog = Watchdog::default();
    while times[last] == 0 {
        if sent < last {
            let bulk = Bulk::Pages(run.source.slice(lens[sent] - LEN_MIN, sent));
            sent += usize::from(first.send(&head(lens[sent], sent), &bulk).is_ok());
        } else {
            let _ = first.send(&head(LEN_MIN, last), &Bulk::empty());
        }
        first.flush(clock::now()).unwrap();
        second.fill(clock::now()).unwrap();
        while let Some(frame) = second.next_frame() {
            times[index_of(&frame)] += 1;
        }
        second.flush(clock::now()).unwrap();
        first.fill(clock::now()).unwrap();
        watchdog.look();
    }
    assert!(times[..last].iter().all(|times| *times <= 1), "{times:?}");
    assert!(times[..last].contains(&1), "{times:?}");
    drop((first, second));
    run.check_pages_home();
}

pub(crate) fn a_stranger_harms_nobody<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..10).map(|index| LEN_MIN + index * 1601).collect();
    suite::strangers(&mut run, |run| transfer_between(run, &mut first, &mut second, &lens));
    drop((first, second));
    run.check_pages_home();
}

pub(crate) fn a_link_is_made_anew<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let lens: Vec<_> = (0..50).map(|index| LEN_MIN + 97 * index).collect();
    for _ in 0..3 {
        let (mut first, mut second) = run.fixture.pair();
        transfer_between(&run, &mut first, &mut second, &lens);
    }
    run.check_pages_home();
}

pub(crate) fn parking_schedulers_move_all_frames<F: Fixture>(fixture: F) {
    let mut run = Run::new(fixture);
    let (first, mut second) = run.fixture.pair();
    let lens: Vec<_> = (0..1000).map(|index| LEN_MIN + index * 13 % 9000).collect();
    let mut scheduler = Scheduler::new(IdleStrategy::default()).unwrap();
    let (waker, stopper) = (scheduler.waker(), scheduler.stopper());
    run.fixture.pools().iter().for_each(|pool| pool.wake_on_return(waker.clone()));
    F::watch(&mut second, scheduler.poller(), &waker);
    std::thread::scope(|scope| {
        let (lens, source) = (&lens, &run.source);
        scope.spawn(move || {
            let mut first = first;
            let mut scheduler = Scheduler::new(IdleStrategy::default()).unwrap();
            let waker = scheduler.waker();
            source.pool.wake_on_return(waker.clone());
            F::watch(&mut first, scheduler.poller(), &waker);
            let sender =
                SendTask { link: first, transfer: Transfer::new(lens), source, ask_again: None, peer: stopper };
            scheduler.add("send", sender);
            scheduler.run(&mut ()).unwrap();
        });
        scheduler.add("receive", ReceiveTask { link: second, transfer: Transfer::new(lens) });
        scheduler.run(&mut ()).unwrap();
    });
    drop(scheduler);
    run.check_pages_home();
}

/// Sends, and sends again what is not acknowledged in time.
struct SendTask<'a, L> {
    link: L,
    transfer: Transfer<'a>,
    source: &'a Source,
    ask_again: Option<Time>,
    peer: Stopper,
}

impl<L: Link> Task for SendTask<'_, L> {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.ask_again.is_none_or(|time| time <= context.now)
            || self.link.is_flushable()
            || self.link.is_receivable(context.now)
    }

    fn action(&mut self, context: &mut Context<'_>) {
        if self.ask_again.is_none_or(|time| time <= context.now) {
            self.ask_again = Some(context.now + Duration::from_millis(2));
            // The peer may have gone only after it was stopped.
            let _ = self.transfer.send(&mut self.link, self.source);
        }
        let _ = self.link.flush(context.now);
        self.link.fill(context.now).expect("the peer is there");
        while let Some(frame) = self.link.next_frame() {
            self.transfer.arrived[index_of(&frame)] = true;
        }
        if self.transfer.is_done() {
            self.peer.stop();
            context.stop();
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.ask_again.into_iter().chain(self.link.next_deadline()).min()
    }
}

/// Acknowledges each frame.
struct ReceiveTask<'a, L> {
    link: L,
    transfer: Transfer<'a>,
}

impl<L: Link> Task for ReceiveTask<'_, L> {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.link.is_receivable(context.now) || self.link.is_flushable()
    }

    fn action(&mut self, context: &mut Context<'_>) {
        // A sender that has all acknowledgements goes first.
        let _ = self.link.fill(context.now);
        while let Some(frame) = self.link.next_frame() {
            let index = self.transfer.check(frame);
            // A lost acknowledgement is asked for again.
            let _ = self.link.send(&head(LEN_MIN, index), &Bulk::empty());
        }
        let _ = self.link.flush(context.now);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.link.next_deadline()
    }
}

fn transfer<F: Fixture>(fixture: F, lens: &[usize]) {
    let mut run = Run::new(fixture);
    let (mut first, mut second) = run.fixture.pair();
    transfer_between(&run, &mut first, &mut second, lens);
    drop((first, second));
    run.check_pages_home();
}

fn transfer_between<F: Fixture>(run: &Run<F>, from: &mut F::Side, to: &mut F::Side, lens: &[usize]) {
    let mut transfer = Transfer::new(lens);
    let watchdog = Watchdog::default();
    while !transfer.is_done() {
        transfer.send(from, &run.source).unwrap();
        transfer.receive(to);
        watchdog.look();
    }
}

/// Frames of these lengths, each sent until it arrives.
struct Transfer<'a> {
    lens: &'a [usize],
    arrived: Vec<bool>,
    next: usize,
}

impl<'a> Transfer<'a> {
    fn new(lens: &'a [usize]) -> Self {
        Self { lens, arrived: vec![false; lens.len()], next: 0 }
    }

    fn is_done(&self) -> bool {
        self.arrived.iter().all(|arrived| *arrived)
    }

    /// Sends some of what has not arrived, going round.
    fn send(&mut self, link: &mut impl Link, source: &Source) -> Result<(), Lost> {
        let count = self.lens.len();
        let missing = (0..count).map(|step| (self.next + step) % count).filter(|index| !self.arrived[*index]);
        for index in missing.take(FRAMES_PER_ROUND).collect::<Vec<_>>() {
            let len = self.lens[index];
            let bulk = Bulk::Pages(source.slice(len - LEN_MIN, index));
            match link.send(&head(len, index), &bulk) {
                Ok(()) => self.next = index + 1,
                Err(SendError::Full) => break,
                Err(SendError::Lost(lost)) => return Err(lost),
            }
        }
        link.flush(clock::now()).map(|_| ())
    }

    fn receive(&mut self, link: &mut impl Link) {
        link.fill(clock::now()).expect("the peer is there");
        while let Some(frame) = link.next_frame() {
            self.check(frame);
        }
    }

    fn check(&mut self, frame: Frame) -> usize {
        let index = index_of(&frame);
        let len = self.lens[index];
        let bytes = contents(frame);
        assert_eq!(bytes[..LEN_MIN], head(len, index));
        assert!(bytes[LEN_MIN..] == bulk_bytes(len - LEN_MIN, index), "contents of frame {index}");
        self.arrived[index] = true;
        index
    }
}

fn head(len: usize, index: usize) -> [u8; LEN_MIN] {
    let mut head = [0; LEN_MIN];
    head[..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
    head[4..].copy_from_slice(&u32::try_from(index).unwrap().to_le_bytes());
    head
}

fn index_of(frame: &Frame) -> usize {
    u32::from_le_bytes(*frame.head.as_bytes()[4..].first_chunk().unwrap()) as usize
}

/// As few as small socket buffers hold for the greater part.
const FRAMES_PER_ROUND: usize = 8;
