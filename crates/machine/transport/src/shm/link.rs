//! One link through shared memory.

use super::greeting::{self, Received, Sizes};
use super::intake::{Intake, Taken};
use super::lane::{Lane, OwnLane};
use super::options::{Address, Process, ShmError};
use super::outbox::Outbox;
use super::peer::Peer;
use super::socket::{check_user, new_socket};
use crate::error::OsError;
use crate::frame::Frame;
use crate::link::{Filled, Flushed, Link, LinkCounters, Lost, SendError};
use crate::page_pool::Pool;
use crate::poller::{Poller, Readiness};
use crate::shared_memory::make;
use crate::violation::Violation;
use crate::waker::Waker;
use base::bulk::Bulk;
use base::time::Time;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketAddrUnix, connect, recv};
use std::sync::Arc;

/// One side of a link through shared memory; see [`Link`] for its use, and the module.
///
/// Dropping it tells the peer, which sees [`Lost::Closed`] behind the last frame that was flushed. Slices that were received stay
/// valid; pages that the peer still reads come home when it has dropped them or ended.
pub struct ShmLink {
    socket: Arc<OwnedFd>,
    readiness: Readiness,
    /// What the peer wakes us with. It is never read: each write is news.
    event: OwnedFd,
    /// Keeps the event's place in the poller.
    event_readiness: Readiness,
    process: Process,
    own: Arc<OwnLane>,
    /// `None` before its greeting has come.
    peer: Option<Arc<Peer>>,
    /// Until when the greeting has to come.
    deadline: Option<Time>,
    outbox: Outbox,
    intake: Intake,
    receive_lost: Option<Lost>,
    send_lost: Option<Lost>,
    /// Whether the peer reads no more of our pages, for certain.
    hung_up: bool,
    /// Whether a scheduler drives it: then it is flushed before that sleeps.
    is_driven: bool,
    counters: LinkCounters,
}

impl ShmLink {
    /// Connects to a process that listens, without waiting: frames can be queued, and `flush` and `fill` would block until the
    /// peer has accepted. What comes in the ring itself is received into `pool`.
    ///
    /// # Errors
    /// Memory or descriptors that the kernel refuses. That nobody listens is a later [`Lost`].
    pub fn connect(address: &Address, process: &Process, pool: &Pool, deadline: Time) -> Result<Self, ShmError> {
        let socket = new_socket()?;
        let name =
            SocketAddrUnix::new_abstract_name(address.name()).map_err(|errno| OsError::new("socket address", errno))?;
        let connected = match rustix::io::retry_on_intr(|| connect(&socket, &name)) {
            Ok(()) => check_user(&socket),
            // Nobody, or one whose line of waiting peers is full.
            Err(Errno::CONNREFUSED | Errno::AGAIN) => Err(Lost::Refused),
            Err(errno) => Err(Lost::Os(OsError::new("connect", errno))),
        };
        Self::new(socket, connected, process, pool, Some(deadline))
    }

    /// Greets the peer unless it is lost: one that we do not trust is given no memory.
    pub(super) fn new(
        socket: OwnedFd,
        connected: Result<(), Lost>,
        process: &Process,
        pool: &Pool,
        deadline: Option<Time>,
    ) -> Result<Self, ShmError> {
        let options = process.options();
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| OsError::new("eventfd", errno))?;
        let geometry = options.geometry();
        let (region, file) = make("weir-link", geometry.lane_len(), SealFlags::FUTURE_WRITE)?;
        let pools = process.pools();
        let sizes = Sizes { geometry, inline_max: pool.page_len(), pools: pools.iter().map(Pool::pages_len).collect() };
        let files = pools.iter().map(|pool| pool.file().expect("checked to be shared"));
        let descriptors: Vec<_> =
            [event.as_fd(), process.sleep().as_fd(), file.as_fd()].into_iter().chain(files).collect();
        let greeted = connected.and_then(|()| {
            greeting::send(socket.as_fd(), &sizes, &descriptors).map_err(|errno| match errno {
                Errno::PIPE | Errno::CONNRESET => Lost::Reset,
                errno => Lost::Os(OsError::new("sendmsg", errno)),
            })
        });
        let mut link = Self {
            socket: Arc::new(socket),
            readiness: Readiness::default(),
            event,
            event_readiness: Readiness::default(),
            process: process.clone(),
            own: Arc::new(OwnLane::new(Lane::of_region(region, geometry))),
            peer: None,
            deadline,
            outbox: Outbox::new(process),
            intake: Intake::new(options.limits, options.copy_below, pool.clone()),
            receive_lost: None,
            send_lost: None,
            hung_up: false,
            is_driven: false,
            counters: LinkCounters::default(),
        };
        if let Err(lost) = greeted {
            link.lose(lost);
        }
        Ok(link)
    }

    /// Lets a scheduler sleep until something happens here. Without it, each call looks.
    ///
    /// # Errors
    /// If the kernel refuses.
    ///
    /// # Panics
    /// If links of the same [`Process`] are registered with another scheduler.
    pub fn register(&mut self, poller: &mut Poller, waker: &Waker) -> Result<(), OsError> {
        self.readiness = poller.register(&self.socket)?;
        self.event_readiness = poller.register(&self.event)?;
        waker.show_sleep_in(self.process.sleep());
        self.is_driven = true;
        Ok(())
    }

    /// Whether the peer has accepted, or had until it was lost.
    pub fn is_connected(&self) -> bool {
        self.peer.is_some()
    }

    /// Bytes that were sent and that the peer cannot see yet.
    pub fn queued_bytes(&self) -> usize {
        self.outbox.queued_bytes()
    }

    /// Whether the peer's greeting has come; looks for it if not.
    fn check_greeted(&mut self, now: Time) -> Result<bool, Lost> {
        if self.peer.is_some() {
            return Ok(true);
        }
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        if !self.readiness.is_readable() && !is_late {
            return Ok(false);
        }
        self.readiness.clear_readable();
        let outcome = match greeting::receive(self.socket.as_fd()) {
            Ok(Some(received)) => match self.meet(received) {
                Ok(()) => return Ok(true),
                Err(violation) => violation.into(),
            },
            Ok(None) if !is_late => return Ok(false),
            Ok(None) => Lost::ConnectTimedOut,
            Err(lost) => lost,
        };
        self.lose(outcome);
        Err(outcome)
    }

    fn meet(&mut self, received: Received) -> Result<(), Violation> {
        // Its end may have come together with it.
        self.readiness.set_readable();
        self.deadline = None;
        let tickets = received.lane.geometry().tickets;
        if !self.outbox.agree(tickets, received.inline_max) {
            return Err(Violation::Memory);
        }
        self.peer = Some(Arc::new(Peer::new(received, Arc::clone(&self.own), Arc::clone(&self.socket))));
        Ok(())
    }

    /// Whether the peer reads no more of our pages; if so, they are home.
    fn check_hung_up(&mut self) -> bool {
        if self.hung_up || !self.readiness.is_readable() {
            return self.hung_up;
        }
        self.readiness.clear_readable();
        match rustix::io::retry_on_intr(|| recv(&self.socket, &mut [0; 1], RecvFlags::DONTWAIT)) {
            // More than a greeting says nothing to us.
            Ok((1.., _)) => self.readiness.set_readable(),
            Err(Errno::AGAIN) => {}
            Ok((0, _)) | Err(_) => {
                self.hung_up = true;
                self.outbox.ledger_mut().clear();
            }
        }
        self.hung_up
    }

    /// After a loss only the end of the peer brings pages home.
    fn check_hung_up_if_lost(&mut self) -> bool {
        let is_lost = self.receive_lost.is_some();
        if is_lost {
            self.check_hung_up();
        }
        is_lost
    }

    fn lose(&mut self, lost: Lost) {
        self.lose_sending(lost);
        self.lose_receiving(lost);
    }

    /// Nothing more comes; gives the pages back.
    fn lose_receiving(&mut self, lost: Lost) -> Lost {
        let lost = *self.receive_lost.get_or_insert(lost);
        self.intake.clear();
        lost
    }

    fn lose_sending(&mut self, lost: Lost) -> Lost {
        let lost = *self.send_lost.get_or_insert(lost);
        self.deadline = None;
        self.outbox.clear();
        if let Some(peer) = &self.peer {
            // Nobody flushes a link that is lost.
            peer.end_keeping();
        }
        // A peer that broke the rules is told that we do not go on.
        self.own.close();
        if let Some(peer) = &self.peer {
            peer.bell().ring_if(|| true);
        }
        lost
    }

    /// Why a peer is gone that is.
    fn reason(peer: &Peer) -> Lost {
        if peer.lane().is_closed() { Lost::Closed } else { Lost::Reset }
    }

    fn settle(&mut self, peer: &Peer) -> Result<(), Lost> {
        if self.hung_up || !self.outbox.ledger().has_news(peer.lane()) {
            return Ok(());
        }
        self.outbox.ledger_mut().settle(peer.lane()).map_err(|violation| {
            self.lose(violation.into());
            violation.into()
        })
    }

    fn take_batch(&mut self, peer: &Arc<Peer>) -> Result<Filled, Lost> {
        // In this order: what was written before the end is seen after it.
        let (is_closed, is_gone) = (peer.lane().is_closed(), self.check_hung_up());
        match self.intake.take_batch(peer, &self.own, &mut self.counters) {
            Ok(Taken::Some) => {
                self.counters.receive_calls += 1;
                Ok(Filled::Some)
            }
            Ok(Taken::NoPage) => {
                self.counters.pool_empty += 1;
                Ok(Filled::PoolEmpty)
            }
            Ok(Taken::Nothing) if is_closed || is_gone => Err(self.lose_receiving(Self::reason(peer))),
            Ok(Taken::Nothing) => {
                self.counters.receive_would_blocks += 1;
                Ok(Filled::WouldBlock)
            }
            Err(lost) => {
                self.lose_sending(lost);
                Err(self.lose_receiving(lost))
            }
        }
    }
}

impl Link for ShmLink {
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError> {
        self.process.options().limits.checked_len(head, bulk);
        if let Some(lost) = self.send_lost {
            return Err(SendError::Lost(lost));
        }
        if let Some(peer) = &self.peer {
            match self.outbox.put(head, bulk, &self.own, peer.lane()) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(violation) => {
                    self.lose(violation.into());
                    return Err(SendError::Lost(violation.into()));
                }
            }
        }
        self.outbox.enqueue(head, bulk).map_err(|_| {
            self.counters.sends_refused += 1;
            SendError::Full
        })
    }

    fn flush(&mut self, now: Time) -> Result<Flushed, Lost> {
        if let Some(lost) = self.send_lost {
            return Err(lost);
        }
        if !self.check_greeted(now)? {
            return Ok(Flushed::WouldBlock);
        }
        let peer = Arc::clone(self.peer.as_ref().expect("the peer has greeted"));
        peer.show_returned();
        self.settle(&peer)?;
        if peer.lane().is_closed() || (self.outbox.has_waiting() && self.check_hung_up()) {
            self.check_hung_up();
            return Err(self.lose_sending(Self::reason(&peer)));
        }
        let (frames, bytes) = match self.outbox.flush(&self.own, peer.lane()) {
            Ok(flushed) => flushed,
            Err(violation) => {
                self.lose(violation.into());
                return Err(violation.into());
            }
        };
        if frames > 0 {
            peer.bell().ring_if(|| true);
            self.counters.send_calls += 1;
            self.counters.frames_sent += frames;
            self.counters.bytes_sent += bytes;
        }
        if self.outbox.has_waiting() {
            self.counters.send_would_blocks += 1;
            return Ok(Flushed::WouldBlock);
        }
        Ok(Flushed::All)
    }

    fn fill(&mut self, now: Time) -> Result<Filled, Lost> {
        if let Some(peer) = self.peer.clone()
            && !self.check_hung_up_if_lost()
        {
            self.settle(&peer)?;
        }
        if self.intake.has_frames() {
            return Ok(Filled::FramesWaiting);
        }
        if let Some(lost) = self.receive_lost {
            return Err(lost);
        }
        if !self.check_greeted(now)? {
            return Ok(Filled::WouldBlock);
        }
        let peer = Arc::clone(self.peer.as_ref().expect("the peer has greeted"));
        if self.is_driven && self.send_lost.is_none() {
            peer.show_returned();
            peer.keep();
        }
        self.take_batch(&peer)
    }

    fn next_frame(&mut self) -> Option<Frame> {
        self.intake.next_frame()
    }

    fn is_receivable(&self, now: Time) -> bool {
        if self.intake.has_frames() || self.receive_lost.is_some() {
            return true;
        }
        let Some(peer) = &self.peer else {
            return self.readiness.is_readable() || self.deadline.is_some_and(|deadline| deadline <= now);
        };
        let is_ended = || peer.lane().is_closed() || self.readiness.is_readable();
        let has_tickets = || !self.hung_up && self.outbox.ledger().has_news(peer.lane());
        // Who only receives does not flush.
        let to_show = peer.has_unshown() && self.send_lost.is_none();
        to_show || has_tickets() || if self.intake.has_news(peer) { self.intake.has_room() } else { is_ended() }
    }

    fn is_flushable(&self) -> bool {
        match &self.peer {
            _ if self.send_lost.is_some() => false,
            Some(peer) => {
                peer.has_unshown()
                    || self.outbox.is_flushable(peer.lane())
                    || (self.outbox.has_waiting() && (peer.lane().is_closed() || self.readiness.is_readable()))
            }
            None => self.outbox.has_waiting() && self.readiness.is_readable(),
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

impl Drop for ShmLink {
    fn drop(&mut self) {
        self.own.close();
        self.intake.clear();
        self.outbox.clear();
        let Some(peer) = self.peer.take() else { return };
        peer.end_keeping();
        peer.bell().ring_if(|| true);
        // Pages of a peer that breaks the rules stay away until it is gone.
        let _ = self.outbox.ledger_mut().settle(peer.lane());
        drop(peer);
        if self.outbox.ledger().is_empty() || self.check_hung_up() {
            return;
        }
        let (ledger, socket) = (core::mem::take(self.outbox.ledger_mut()), Arc::clone(&self.socket));
        let waiting = core::mem::ManuallyDrop::new(ledger);
        let wait = move || {
            await_end(&socket);
            drop(core::mem::ManuallyDrop::into_inner(waiting));
        };
        // Without a thread to wait in, the pages are lost to this process, and nobody reads what he should not.
        let _ = std::thread::Builder::new().name("weir-pages-out".into()).stack_size(STACK_BYTES).spawn(wait);
    }
}

impl core::fmt::Debug for ShmLink {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ShmLink")
            .field("connected", &self.is_connected())
            .field("queued_bytes", &self.queued_bytes())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

/// Waits until the peer has given up all that it had of us.
fn await_end(socket: &OwnedFd) {
    loop {
        match recv(socket, &mut [0; 1], RecvFlags::DONTWAIT) {
            Ok((1.., _)) | Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], None);
            }
            Ok((0, _)) | Err(_) => return,
        }
    }
}

const STACK_BYTES: usize = 64 << 10;
