//! One TCP link.

use super::{InvalidOptions, TcpOptions};
use crate::assembler::Assembler;
use crate::error::OsError;
use crate::frame::Frame;
use crate::link::{Filled, Flushed, Link, LinkCounters, Lost, SendError};
use crate::page_pool::Pool;
use crate::poller::{Poller, Readiness};
use crate::send_queue::SendQueue;
use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, connect, getpeername, recv, send, sendmsg, sockopt};
use std::io::IoSlice;
use std::net::SocketAddr;

/// A TCP link; see [`Link`] for its use. Dropping it closes it; what is queued then is lost.
///
/// Closing while the peer's bytes are unread makes the kernel reset the connection, and the peer lose what it has not
/// read yet.
pub struct Connection {
    socket: OwnedFd,
    readiness: Readiness,
    /// Until when the connection has to be established; `None` once it is.
    connect_deadline: Option<Time>,
    read_budget_bytes: usize,
    assembler: Assembler,
    queue: SendQueue,
    receive_lost: Option<Lost>,
    send_lost: Option<Lost>,
    counters: LinkCounters,
}

impl Connection {
    /// Begins to connect, without waiting: frames can be queued, and `flush` and `fill` would block until the peer is there.
    ///
    /// # Errors
    /// Settings that do not fit or that the kernel refuses. What the peer or the network refuses is a later [`Lost`].
    pub fn connect(
        address: SocketAddr,
        options: &TcpOptions,
        pool: &Pool,
        deadline: Time,
    ) -> Result<Self, InvalidOptions> {
        options.check(pool)?;
        let mut connection = Self::new(options.socket(address)?, options, pool);
        match connect(&connection.socket, &address) {
            Ok(()) => {}
            Err(Errno::INPROGRESS | Errno::INTR) => connection.connect_deadline = Some(deadline),
            Err(errno) => connection.lose(lost("connect", errno)),
        }
        Ok(connection)
    }

    pub(super) fn accepted(socket: OwnedFd, options: &TcpOptions, pool: &Pool) -> Result<Self, InvalidOptions> {
        options.check(pool)?;
        Ok(Self::new(socket, options, pool))
    }

    fn new(socket: OwnedFd, options: &TcpOptions, pool: &Pool) -> Self {
        let TcpOptions { limits, copy_below, queue_bytes_max, queue_frames_max, .. } = *options;
        Self {
            socket,
            readiness: Readiness::default(),
            connect_deadline: None,
            read_budget_bytes: options.read_budget_bytes,
            assembler: Assembler::new(limits, copy_below, pool.clone()),
            queue: SendQueue::new(limits, copy_below, queue_bytes_max, queue_frames_max),
            receive_lost: None,
            send_lost: None,
            counters: LinkCounters::default(),
        }
    }

    /// From now on frames have these limits and are received into this pool. The peer has to know that: it may send
    /// longer frames than before. If a frame has begun and the pool has no page to continue it in, the peer is
    /// [lost](Lost::NoPage).
    ///
    /// # Errors
    /// Settings that do not fit; the connection keeps its old ones.
    pub fn renew(&mut self, options: &TcpOptions, pool: &Pool) -> Result<(), InvalidOptions> {
        options.check(pool)?;
        let TcpOptions { limits, copy_below, queue_bytes_max, queue_frames_max, read_budget_bytes, .. } = *options;
        if !self.assembler.renew(limits, copy_below, pool.clone()) {
            self.counters.pool_empty += 1;
            self.receive_lost = Some(Lost::NoPage);
        }
        self.queue.renew(limits, copy_below, queue_bytes_max, queue_frames_max);
        self.read_budget_bytes = read_budget_bytes;
        Ok(())
    }

    /// Whether all that came was delivered, and ended with a frame.
    pub fn is_between_frames(&self) -> bool {
        self.assembler.unfinished_len() == 0 && !self.assembler.has_frames() && self.assembler.malformed().is_none()
    }

    /// Lets a scheduler sleep until something happens here. Without it, each call tries the socket.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.readiness = poller.register(&self.socket)?;
        Ok(())
    }

    /// Address of the peer; `None` if it is not connected.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        getpeername(&self.socket).ok().flatten().and_then(|address| SocketAddr::try_from(address).ok())
    }

    /// Whether the connection is established, or was until it was lost.
    pub fn is_connected(&self) -> bool {
        self.connect_deadline.is_none()
    }

    /// The next frame in one piece; as [`Link::next_frame`], a little cheaper.
    pub fn next_slice(&mut self) -> Option<PageSlice> {
        self.assembler.next_frame()
    }

    /// Bytes in the send queue.
    pub fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Those of them that were copied there, as their slices are short.
    pub fn copied_bytes(&self) -> usize {
        self.queue.copied_bytes()
    }

    /// Whether the connection is established; finds it out if that was pending.
    fn check_connected(&mut self, now: Time) -> Result<bool, Lost> {
        let Some(deadline) = self.connect_deadline else {
            return Ok(true);
        };
        if !self.readiness.is_writable() && now < deadline {
            return Ok(false);
        }
        self.readiness.clear_writable();
        let outcome = match sockopt::socket_error(&self.socket) {
            Ok(Ok(())) if getpeername(&self.socket).is_ok() => {
                self.connect_deadline = None;
                self.readiness.set_writable();
                return Ok(true);
            }
            Ok(Ok(())) if now < deadline => return Ok(false),
            Ok(Ok(())) => Lost::ConnectTimedOut,
            Ok(Err(errno)) | Err(errno) => lost("connect", errno),
        };
        self.lose(outcome);
        Err(outcome)
    }

    /// Nothing can be sent or received.
    fn lose(&mut self, lost: Lost) {
        self.connect_deadline = None;
        self.lose_receiving(lost);
        self.lose_sending(lost);
    }

    /// Nothing more comes; gives the pages back.
    fn lose_receiving(&mut self, lost: Lost) -> Lost {
        self.receive_lost = Some(lost);
        self.assembler.close();
        lost
    }

    fn lose_sending(&mut self, lost: Lost) -> Lost {
        self.send_lost = Some(lost);
        self.queue.clear();
        lost
    }

    /// Sends at most `N` parts in one call; whether the kernel took them all.
    fn send_parts<const N: usize>(&mut self) -> Result<bool, Lost> {
        let mut gathered = [IoSlice::new(&[]); N];
        let (count, bytes) = self.queue.gather(&mut gathered);
        self.readiness.clear_writable();
        self.counters.send_calls += 1;
        let sent = rustix::io::retry_on_intr(|| match &gathered[..count] {
            [part] => send(&self.socket, part, SendFlags::NOSIGNAL),
            parts => sendmsg(&self.socket, parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL),
        });
        match sent {
            Ok(len) => {
                self.counters.bytes_sent += len as u64;
                self.counters.frames_sent += self.queue.advance(len);
                if len == bytes {
                    self.readiness.set_writable();
                }
                Ok(len == bytes)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(self.lose_sending(lost("send", errno))),
        }
    }

    fn receive(&mut self) -> Result<Filled, Lost> {
        let Some(buffer) = self.assembler.buffer(self.read_budget_bytes, &mut self.counters) else {
            return Ok(Filled::PoolEmpty);
        };
        let buffer_len = buffer.len();
        self.readiness.clear_readable();
        self.counters.receive_calls += 1;
        let received = rustix::io::retry_on_intr(|| recv(&self.socket, &mut *buffer, RecvFlags::empty()));
        match received {
            Ok((0, _)) => Err(self.lose_receiving(match self.assembler.unfinished_len() {
                0 => Lost::Closed,
                received_len => Lost::ClosedWithinFrame { received_len },
            })),
            Ok((len, _)) => {
                if len == buffer_len {
                    self.readiness.set_readable();
                }
                self.counters.bytes_received += len as u64;
                self.assembler.commit(len, &mut self.counters);
                Ok(Filled::Some)
            }
            Err(Errno::AGAIN) => {
                self.counters.receive_would_blocks += 1;
                Ok(Filled::WouldBlock)
            }
            Err(errno) => Err(self.lose_receiving(lost("recv", errno))),
        }
    }
}

impl Link for Connection {
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError> {
        if let Some(lost) = self.send_lost {
            return Err(SendError::Lost(lost));
        }
        self.queue.push(head, bulk).map_err(|_| {
            self.counters.sends_refused += 1;
            SendError::Full
        })
    }

    fn flush(&mut self, now: Time) -> Result<Flushed, Lost> {
        if let Some(lost) = self.send_lost {
            return Err(lost);
        }
        if !self.check_connected(now)? {
            return Ok(Flushed::WouldBlock);
        }
        while !self.queue.is_empty() {
            if !self.readiness.is_writable() {
                return Ok(Flushed::WouldBlock);
            }
            // Most flushes have few parts; to prepare places for many takes as long as all else here.
            let all = if self.queue.parts_max() <= FEW_PARTS {
                self.send_parts::<FEW_PARTS>()?
            } else {
                self.send_parts::<PARTS_PER_CALL>()?
            };
            if !all {
                self.counters.send_would_blocks += 1;
                return Ok(Flushed::WouldBlock);
            }
        }
        Ok(Flushed::All)
    }

    fn fill(&mut self, now: Time) -> Result<Filled, Lost> {
        if self.assembler.has_frames() {
            return Ok(Filled::FramesWaiting);
        }
        if let Some(lost) = self.receive_lost {
            return Err(lost);
        }
        if let Some(malformed) = self.assembler.malformed() {
            return Err(self.lose_receiving(Lost::Malformed(malformed)));
        }
        if !self.check_connected(now)? || !self.readiness.is_readable() {
            return Ok(Filled::WouldBlock);
        }
        self.receive()
    }

    fn next_frame(&mut self) -> Option<Frame> {
        self.next_slice().map(Frame::whole)
    }

    fn is_receivable(&self, now: Time) -> bool {
        if let Some(deadline) = self.connect_deadline {
            return self.readiness.is_writable() || now >= deadline;
        }
        self.assembler.has_frames()
            || self.assembler.malformed().is_some()
            || self.receive_lost.is_some()
            || (self.readiness.is_readable() && self.assembler.has_room())
    }

    fn is_flushable(&self) -> bool {
        !self.queue.is_empty() && self.readiness.is_writable()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.connect_deadline
    }

    fn counters(&self) -> &LinkCounters {
        &self.counters
    }
}

impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection")
            .field("peer", &self.peer_address())
            .field("connected", &self.is_connected())
            .field("queued_bytes", &self.queued_bytes())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

fn lost(call: &'static str, errno: Errno) -> Lost {
    match errno {
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => Lost::Reset,
        Errno::CONNREFUSED => Lost::Refused,
        Errno::TIMEDOUT if call == "connect" => Lost::ConnectTimedOut,
        Errno::TIMEDOUT => Lost::TimedOut,
        errno => Lost::Os(OsError::new(call, errno)),
    }
}

/// Parts per system call. With the default `copy_below` a full call carries a quarter of a megabyte or more, beyond which
/// longer calls gain nothing. The kernel takes up to 1024.
const PARTS_PER_CALL: usize = 256;
const FEW_PARTS: usize = 8;
