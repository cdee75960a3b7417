//! Two hosts on a simulated switch. Frames keep their contents outside of the network, which knows lengths only.

use crate::suite::{COPY_BELOW, Fixture, PAGE_LEN, QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, Stranger};
use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use simulator::engine::Queue;
use simulator::network::{Cause, Fate, Faults, HostId, Message, Network, Protocol, Step, Topology};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use transport::frame::Frame;
use transport::link::{Filled, Flushed, Link, LinkCounters, Lost, SendError};
use transport::page_pool::Pool;
use transport::poller::Poller;
use transport::waker::Waker;

/// Links over TCP, or in datagrams, on a network that loses, doubles and delays frames.
pub(crate) struct SimulatedFixture<const TCP: bool> {
    len_max: usize,
    pairs: u64,
}

impl<const TCP: bool> Fixture for SimulatedFixture<TCP> {
    type Side = SimulatedLink;

    fn new(len_max: usize) -> Self {
        Self { len_max, pairs: 0 }
    }

    fn pair(&mut self) -> (SimulatedLink, SimulatedLink) {
        self.pairs += 1;
        let mut network = Network::new(&Topology::star(2), self.pairs).unwrap();
        let mut faults = Faults { loss: 0.01, duplication: 0.01, jitter_ns: 20_000, ..Faults::default() };
        if !TCP {
            // Whoever takes messages in tells doubles apart, and nobody asks for parts of long ones.
            faults.duplication = 0.0;
            faults.loss = if self.len_max > PAGE_LEN { 0.0 } else { faults.loss };
        }
        network.set_faults(HostId(0), faults);
        let wire = Arc::new(Mutex::new(Wire {
            network,
            queue: Queue::new(),
            protocol: if TCP { Protocol::Tcp } else { Protocol::Udp },
            len_max: self.len_max,
            next_tag: 0,
            on_the_way: BTreeMap::new(),
            ends: Default::default(),
        }));
        let side = |here| SimulatedLink {
            wire: Arc::clone(&wire),
            here,
            batch: VecDeque::new(),
            lost: None,
            counters: LinkCounters::default(),
        };
        (side(0), side(1))
    }

    fn stranger(&mut self) -> Option<(SimulatedLink, Stranger)> {
        None
    }

    fn watch(side: &mut SimulatedLink, _poller: &mut Poller, waker: &Waker) {
        side.wire().ends[side.here].waker = Some(waker.clone());
    }

    fn pools(&self) -> Vec<Pool> {
        Vec::new()
    }
}

/// One end of a link.
pub(crate) struct SimulatedLink {
    wire: Arc<Mutex<Wire>>,
    here: usize,
    batch: VecDeque<Frame>,
    lost: Option<Lost>,
    counters: LinkCounters,
}

struct Wire {
    network: Network,
    queue: Queue<Step>,
    protocol: Protocol,
    len_max: usize,
    next_tag: u64,
    on_the_way: BTreeMap<u64, Frame>,
    ends: [End; 2],
}

#[derive(Default)]
struct End {
    /// What it sends, not in the network yet.
    waiting: VecDeque<Frame>,
    waiting_bytes: usize,
    /// What it has sent and its peer has not taken.
    under_way_bytes: usize,
    under_way_frames: usize,
    arrived: VecDeque<Frame>,
    is_closed: bool,
    /// Whether the connection was reset with frames on their way.
    is_reset: bool,
    waker: Option<Waker>,
}

impl SimulatedLink {
    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap()
    }

    fn lose(&mut self, lost: Lost) -> Lost {
        *self.lost.get_or_insert(lost)
    }
}

impl Drop for SimulatedLink {
    fn drop(&mut self) {
        let mut wire = self.wire();
        wire.push(self.here);
        wire.ends[self.here].is_closed = true;
        wire.ends[self.here].arrived.clear();
        wire.wake(1 - self.here);
    }
}

impl Link for SimulatedLink {
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError> {
        if let Some(lost) = self.lost {
            return Err(lost.into());
        }
        let len = head.len() + bulk.len();
        let mut wire = self.wire();
        let bytes_max = QUEUE_BYTES_MAX.max(wire.len_max);
        let end = &mut wire.ends[self.here];
        if end.waiting_bytes + len > bytes_max || end.waiting.len() == QUEUE_FRAMES_MAX {
            drop(wire);
            self.counters.sends_refused += 1;
            return Err(SendError::Full);
        }
        end.waiting_bytes += len;
        let head = PageSlice::copy_of(head);
        end.waiting.push_back(Frame { head, rest: bulk.clone() });
        Ok(())
    }

    fn flush(&mut self, _now: Time) -> Result<Flushed, Lost> {
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        let mut wire = self.wire();
        let (frames, bytes) = wire.push(self.here);
        wire.advance();
        let is_tcp = wire.protocol == Protocol::Tcp;
        let is_gone = is_tcp && (wire.ends[1 - self.here].is_closed || wire.ends[self.here].is_reset);
        if is_gone {
            wire.network.reset_between(HostId(0), HostId(1));
            wire.collect();
            wire.ends[self.here].waiting.clear();
        }
        let flushed = if wire.ends[self.here].waiting.is_empty() { Flushed::All } else { Flushed::WouldBlock };
        drop(wire);
        self.counters.frames_sent += frames;
        self.counters.bytes_sent += bytes;
        self.counters.send_calls += u64::from(frames > 0);
        if is_gone { Err(self.lose(Lost::Reset)) } else { Ok(flushed) }
    }

    fn fill(&mut self, _now: Time) -> Result<Filled, Lost> {
        if !self.batch.is_empty() {
            return Ok(Filled::FramesWaiting);
        }
        if let Some(lost) = self.lost {
            return Err(lost);
        }
        let mut wire = self.wire();
        wire.advance();
        let batch = core::mem::take(&mut wire.ends[self.here].arrived);
        let peer = &mut wire.ends[1 - self.here];
        peer.under_way_frames -= batch.len();
        peer.under_way_bytes -= batch.iter().map(Frame::len).sum::<usize>();
        let is_over = peer.is_closed && peer.under_way_frames == 0 && wire.protocol == Protocol::Tcp;
        if !batch.is_empty() {
            wire.wake(1 - self.here);
        }
        drop(wire);
        if batch.is_empty() {
            return if is_over { Err(self.lose(Lost::Closed)) } else { Ok(Filled::WouldBlock) };
        }
        self.counters.frames_received += batch.len() as u64;
        self.counters.bytes_received += batch.iter().map(|frame| frame.len() as u64).sum::<u64>();
        self.counters.small_frames_received += batch.iter().filter(|frame| frame.len() < COPY_BELOW).count() as u64;
        self.batch = batch;
        Ok(Filled::Some)
    }

    fn next_frame(&mut self) -> Option<Frame> {
        self.batch.pop_front()
    }

    fn is_receivable(&self, _now: Time) -> bool {
        let wire = self.wire();
        let peer = &wire.ends[1 - self.here];
        !self.batch.is_empty()
            || self.lost.is_some()
            || !wire.ends[self.here].arrived.is_empty()
            || !wire.queue.is_empty()
            || (peer.is_closed && wire.protocol == Protocol::Tcp)
    }

    fn is_flushable(&self) -> bool {
        let wire = self.wire();
        !wire.queue.is_empty() || wire.has_room(self.here)
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

impl Wire {
    /// Gives what waits to the network, over TCP as far as the peer takes what came before; returns how many frames and bytes.
    fn push(&mut self, here: usize) -> (u64, u64) {
        let (mut frames, mut bytes) = (0, 0);
        while self.has_room(here) {
            let frame = self.ends[here].waiting.pop_front().expect("something waits");
            let len = frame.len();
            self.ends[here].waiting_bytes -= len;
            self.ends[here].under_way_bytes += len;
            self.ends[here].under_way_frames += 1;
            let tag = self.next_tag * 2 + here as u64;
            self.next_tag += 1;
            self.on_the_way.insert(tag, frame);
            let (from, to) = (HostId(here as u16), HostId(1 - here as u16));
            let message = Message { from, to, len_bytes: len as u32, protocol: self.protocol, tag };
            self.network.send(&mut self.queue, message);
            self.collect();
            (frames, bytes) = (frames + 1, bytes + len as u64);
        }
        (frames, bytes)
    }

    fn has_room(&self, here: usize) -> bool {
        let end = &self.ends[here];
        end.waiting.front().is_some_and(|frame| {
            let fits = end.under_way_bytes + frame.len() <= QUEUE_BYTES_MAX;
            self.protocol == Protocol::Udp || end.under_way_frames == 0 || fits
        })
    }

    /// Lets some time pass in the network.
    fn advance(&mut self) {
        for _ in 0..STEPS {
            let Some(step) = self.queue.pop() else { break };
            self.network.step(&mut self.queue, step);
            self.collect();
        }
    }

    fn collect(&mut self) {
        while let Some(outcome) = self.network.next_outcome() {
            assert!(!outcome.more, "no message comes twice here");
            let frame = self.on_the_way.remove(&outcome.tag).expect("a message has one outcome");
            let from = (outcome.tag % 2) as usize;
            let (sender, receiver) = match &mut self.ends {
                [first, second] if from == 0 => (first, second),
                [first, second] => (second, first),
            };
            // What finds the buffer of a socket full is dropped; a stream holds its sender up.
            let is_full = self.protocol == Protocol::Udp && receiver.arrived.len() >= QUEUE_FRAMES_MAX;
            if outcome.fate == Fate::Delivered && !receiver.is_closed && !is_full {
                receiver.arrived.push_back(frame);
            } else {
                sender.under_way_frames -= 1;
                sender.under_way_bytes -= frame.len();
                sender.is_reset |= outcome.fate == Fate::Lost(Cause::Reset);
            }
            self.wake(1 - from);
        }
    }

    fn wake(&self, end: usize) {
        self.ends[end].waker.iter().for_each(Waker::wake);
    }
}

/// Of the network at a time: some milliseconds.
const STEPS: usize = 2000;
