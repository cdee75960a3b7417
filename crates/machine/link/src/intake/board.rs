//! A front-end board that sends datagrams, and knows nothing of Weir.

use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use base::losses::Losses;
use base::time::Time;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt;
use transport::error::OsError;
use transport::poller::{Poller, Readiness};
use transport::udp::system::{DATAGRAMS_PER_CALL, DatagramBatch};

use super::device::{Carrier, Desk};
use super::doorway::refusal_of;
use super::{Arrival, IntakeParameters};
use crate::address::Address;
use crate::error::LinkError;
use crate::socket::Lost;

/// A socket that a board sends to.
pub(super) struct Board {
    socket: OwnedFd,
    readiness: Readiness,
    address: String,
    /// Who may send, if the configuration says so.
    from: Option<IpAddr>,
    /// Who sends in this run.
    sender: Option<IpAddr>,
    received: Received,
    /// As the kernel counted before the run.
    dropped: u64,
    has_named_other: bool,
    /// Told with the first look.
    warning: Option<String>,
}

/// Datagrams that were received together.
struct Received {
    batch: DatagramBatch,
    bytes: Box<[u8]>,
    count: usize,
    /// The next one, and what is taken of it.
    index: usize,
    offset: usize,
}

impl Board {
    /// Binds the socket.
    pub(super) fn open(parameters: &IntakeParameters) -> Result<Self, LinkError> {
        let Address::Udp(place) = &parameters.at else { unreachable!("a board has an address of its own") };
        let socket = UdpSocket::bind(place).map_err(|error| refusal_of("bind", &error, &parameters.at))?;
        let refused = |error| refusal_of("fcntl", &error, &parameters.at);
        socket.set_nonblocking(true).map_err(refused)?;
        let address = format!("udp://{}", socket.local_addr().map_err(refused)?);
        let socket = OwnedFd::from(socket);
        let warning = ask_for_room(&socket)?;
        Ok(Self {
            socket,
            readiness: Readiness::default(),
            address,
            from: parameters.from,
            sender: None,
            received: Received::new(),
            dropped: 0,
            has_named_other: false,
            warning,
        })
    }

    /// The host that the configuration names, or else the first one of the run.
    fn may_send(&mut self, source: Option<IpAddr>, desk: &mut Desk) -> bool {
        let Some(source) = source else { return false };
        let expected = *self.sender.get_or_insert(self.from.unwrap_or(source));
        if source != expected && !core::mem::replace(&mut self.has_named_other, true) {
            let why = format!("{source} is not {expected}, whose datagrams are taken");
            desk.notices.push(Arrival::TurnedAway { why });
        }
        source == expected
    }
}

impl Carrier for Board {
    fn waits(&self) -> bool {
        false
    }

    fn address(&self) -> &str {
        &self.address
    }

    fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.readiness = poller.register(&self.socket)?;
        Ok(())
    }

    fn start(&mut self) -> Result<(), Lost> {
        (self.sender, self.has_named_other) = (None, false);
        self.dropped = drops(&self.socket);
        Ok(())
    }

    fn has_some(&self, _: &Desk) -> bool {
        self.received.has_some()
    }

    fn is_readable(&self) -> bool {
        self.readiness.is_readable()
    }

    fn fill(&mut self, desk: &mut Desk, _: &mut Poller) -> Result<bool, Lost> {
        desk.notices.extend(self.warning.take().map(Arrival::Status));
        if !self.readiness.is_readable() {
            return Ok(false);
        }
        self.readiness.clear_readable();
        let count = self.received.receive(&self.socket)?;
        // Less than there was room for was all that there is; the poller says when more comes.
        if count == DATAGRAMS_PER_CALL {
            self.readiness.set_readable();
        }
        Ok(count > 0)
    }

    fn take(&mut self, now: Time, desk: &mut Desk) {
        let source = self.received.source();
        if !self.may_send(source.map(|source| source.ip()), desk) {
            desk.losses.foreign += 1;
            return self.received.skip();
        }
        let rest = self.received.rest();
        let (taken, bad) = match desk.numbering.format().len_of(rest, desk.len_max.min(rest.len())) {
            Ok(Some(len)) => (Some(len), desk.take(now, &rest[..len])),
            other => {
                desk.numbering.note_malformed();
                (None, Some(other.err().map_or("it is too short".to_owned(), |bad| bad.to_string())))
            }
        };
        if let Some(why) = bad {
            desk.complain(|| {
                let source = source.map_or("somebody".to_owned(), |source| source.to_string());
                format!("a datagram of {source} is not as [source.frame] says: {why}")
            });
        }
        match taken {
            Some(len) => self.received.skip_bytes(len),
            None => self.received.skip(),
        }
    }

    fn leave(&mut self) -> u64 {
        self.received.leave()
    }

    fn is_at_end(&self) -> bool {
        false
    }

    fn lost_in_run(&self) -> Losses {
        Losses { unread: drops(&self.socket).saturating_sub(self.dropped), ..Losses::default() }
    }
}

impl Received {
    fn new() -> Self {
        let bytes = vec![0; DATAGRAMS_PER_CALL * DATAGRAM_BYTES].into();
        Self { batch: DatagramBatch::empty(), bytes, count: 0, index: 0, offset: 0 }
    }

    fn has_some(&self) -> bool {
        self.index < self.count
    }

    /// How many came.
    fn receive(&mut self, socket: &OwnedFd) -> Result<usize, Lost> {
        let mut places = self.bytes.chunks_exact_mut(DATAGRAM_BYTES).map(IoSliceMut::new);
        let mut parts: [_; DATAGRAMS_PER_CALL] =
            core::array::from_fn(|_| places.next().expect("a place for each datagram"));
        self.count = match self.batch.receive(socket.as_fd(), &mut parts, 1) {
            Ok(count) => count,
            Err(Errno::AGAIN) => 0,
            Err(errno) => return Err(Lost::System(OsError::new("recvmmsg", errno))),
        };
        (self.index, self.offset) = (0, 0);
        Ok(self.count)
    }

    /// Who sent the next one.
    fn source(&self) -> Option<SocketAddr> {
        self.batch.datagram(self.index).source
    }

    /// What was not taken of the next one.
    fn rest(&self) -> &[u8] {
        let start = self.index * DATAGRAM_BYTES;
        &self.bytes[start + self.offset..start + self.batch.datagram(self.index).len]
    }

    fn skip(&mut self) {
        (self.index, self.offset) = (self.index + 1, 0);
    }

    fn skip_bytes(&mut self, len: usize) {
        self.offset += len;
        if self.rest().is_empty() {
            self.skip();
        }
    }

    /// How many are left behind.
    fn leave(&mut self) -> u64 {
        let left = self.count - self.index;
        (self.count, self.index, self.offset) = (0, 0, 0);
        left as u64
    }
}

/// How many datagrams the kernel has dropped since it had no room for them. Those behind the last one that came are told here alone.
fn drops(socket: &OwnedFd) -> u64 {
    let Ok(socket) = rustix::fs::fstat(socket) else { return 0 };
    let inode = socket.st_ino.to_string();
    let tables = ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"];
    let tables: Vec<String> = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok()).collect();
    let mut sockets = tables.iter().flat_map(|table| table.lines());
    let found = sockets.find(|line| line.split_whitespace().nth(INODE_COLUMN) == Some(&inode));
    found.and_then(|line| line.split_whitespace().last()?.parse().ok()).unwrap_or(0)
}

/// Asks for a large buffer, beyond the system's limit where that is allowed. Says so if there is none.
fn ask_for_room(socket: &OwnedFd) -> Result<Option<String>, OsError> {
    sockopt::set_socket_recv_buffer_size_force(socket, RECEIVE_BYTES)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BYTES))
        .map_err(|errno| OsError::new("setsockopt(SO_RCVBUF)", errno))?;
    let granted =
        sockopt::socket_recv_buffer_size(socket).map_err(|errno| OsError::new("getsockopt(SO_RCVBUF)", errno))?;
    Ok((granted < RECEIVE_BYTES).then(|| {
        format!(
            "the kernel gives a receive buffer of {granted} bytes, not {RECEIVE_BYTES}; raise net.core.rmem_max, or the \
             kernel drops what comes in a burst"
        )
    }))
}

/// Of the tables in which the kernel lists its sockets.
const INODE_COLUMN: usize = 9;
/// The longest that there is.
const DATAGRAM_BYTES: usize = 1 << 16;
/// A third of a second of a link of 1 Gbit/s.
const RECEIVE_BYTES: usize = 32 << 20;
