//! The bare machine for each kind of link: plain loops over system calls, a ring of slots, a channel.
//!
//! | link | reference |
//! |---|---|
//! | `tcp` | `writev` of as many frames as the window allows, reads as large as a buffer |
//! | `udp` | `sendmmsg` and `recvmmsg`, datagrams of the same length, data copied to their place in the frame; nothing is kept or asked for again |
//! | `shm` | a ring of slots each way, of which headers are written and read, see [`slots`](super::slots) |
//! | `local` | a queue each way under a lock, through which the same handles go, see [`batches`](super::batches) |
//!
//! All are idle as the system is, by the same rule; between processes they sleep in `poll`.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;
use rustix::net::sockopt;
use rustix::thread::sched_yield;
use transport::clock;
use transport::idle::{Idle, IdleStrategy, Pause};
use transport::udp::DATAGRAM_LEN_LOOPBACK;

use super::super::loopback;
use super::batches::Batches;
use super::line::{LOOK_AGAIN, Line};
use super::slots::Slots;
use super::talk::{HEAD_BYTES, Outgoing, Talk, head, read_head};
use super::{LinkArguments, Session, UDP_BUFFER_BYTES, listen_line, say_line};
use crate::bench::arguments::BenchLink;

/// One end of a bare link between processes.
pub(super) struct LineEnd(Box<dyn Line>);

impl LineEnd {
    /// Together with the other end, which finds out over the socket where this one is.
    pub(super) fn open(arguments: &LinkArguments, socket: &UnixStream, is_near: bool) -> io::Result<Self> {
        Ok(Self(match arguments.link {
            BenchLink::Tcp => Box::new(TcpLine::open(arguments, socket, is_near)?),
            BenchLink::Udp => Box::new(UdpLine::open(arguments, socket)?),
            BenchLink::Shm => Box::new(Slots::open(arguments, socket, is_near)?),
            BenchLink::Local => unreachable!("both ends of a local link are in one process"),
        }))
    }
}

impl Session for LineEnd {
    fn hold(&mut self, talk: &mut Talk) -> io::Result<()> {
        match hold(&mut *self.0, talk) {
            Err(error) if is_gone(&error) => Ok(()),
            other => other,
        }
    }
}

fn hold(line: &mut dyn Line, talk: &mut Talk) -> io::Result<()> {
    let mut idle = Idle::new(IdleStrategy::default());
    let mut held: Option<Outgoing> = None;
    loop {
        let now = clock::now();
        if talk.is_over(now) && ((held.is_none() && !line.has_waiting()) || !talk.is_done()) {
            return Ok(());
        }
        let mut busy = line.receive(talk)?;
        while let Some(frame) = held.take().or_else(|| talk.due()) {
            if !line.send(frame)? {
                held = Some(frame);
                break;
            }
            busy = true;
        }
        line.flush()?;
        if busy {
            idle.busy();
            continue;
        }
        match idle.idle(now) {
            Pause::None => core::hint::spin_loop(),
            Pause::Yield => sched_yield(),
            Pause::Sleep => line.sleep()?,
        }
    }
}

/// Both ends in one process, the far one in a thread of its own.
pub(super) fn converse_locally(
    arguments: &LinkArguments,
    mut far: Talk,
    begin: impl FnOnce() -> Talk,
) -> io::Result<Talk> {
    let [near, other] = Batches::pair(arguments);
    std::thread::scope(|scope| {
        scope.spawn(move || LineEnd(Box::new(other)).hold(&mut far));
        let mut talk = begin();
        LineEnd(Box::new(near)).hold(&mut talk)?;
        Ok(talk)
    })
}

struct TcpLine {
    socket: TcpStream,
    data: Vec<u8>,
    /// Frames that are not written: beginning and length.
    waiting: VecDeque<([u8; HEAD_BYTES], usize)>,
    /// How much of the first of them is.
    written: usize,
    bytes: Vec<u8>,
    /// What was read of the frame that is not whole yet.
    kept: usize,
}

impl TcpLine {
    fn open(arguments: &LinkArguments, socket: &UnixStream, is_near: bool) -> io::Result<Self> {
        let stream = if is_near {
            let (listener, address) = loopback::listen()?;
            say_line(socket, &address.to_string())?;
            listener.accept()?.0
        } else {
            let address: SocketAddr = listen_line(socket)?.parse().map_err(io::Error::other)?;
            loopback::connect(address)?
        };
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let frame = arguments.frame_bytes as usize;
        let bytes = vec![1; frame.max(READ_BYTES_MIN)];
        Ok(Self { socket: stream, data: vec![7; frame], waiting: VecDeque::new(), written: 0, bytes, kept: 0 })
    }

    /// Writes what waits, many frames at a time; false if the kernel does not take it all.
    fn write(&mut self) -> io::Result<bool> {
        while !self.waiting.is_empty() {
            let mut parts = Vec::with_capacity(2 * self.waiting.len().min(FRAMES_PER_CALL));
            for (head, len) in self.waiting.iter().take(FRAMES_PER_CALL) {
                parts.extend([IoSlice::new(head), IoSlice::new(&self.data[HEAD_BYTES..*len])]);
            }
            let mut left = &mut parts[..];
            IoSlice::advance_slices(&mut left, self.written);
            match self.socket.write_vectored(left) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
            while let Some((_, len)) = self.waiting.front().filter(|(_, len)| *len <= self.written) {
                self.written -= len;
                self.waiting.pop_front();
            }
        }
        Ok(true)
    }
}

impl Line for TcpLine {
    fn send(&mut self, frame: Outgoing) -> io::Result<bool> {
        if self.waiting.len() >= FRAMES_PER_CALL && !self.write()? {
            return Ok(false);
        }
        self.waiting.push_back((head(frame), frame.len));
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write().map(|_| ())
    }

    fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn receive(&mut self, talk: &mut Talk) -> io::Result<bool> {
        let read = match self.socket.read(&mut self.bytes[self.kept..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        let end = self.kept + read;
        let mut whole = 0;
        while let Some(frame) = read_head(&self.bytes[whole..end]).filter(|frame| whole + frame.len <= end) {
            talk.take(frame.number);
            whole += frame.len;
        }
        self.kept = end - whole;
        if whole > 0 {
            self.bytes.copy_within(whole..end, 0);
        }
        Ok(true)
    }

    fn sleep(&mut self) -> io::Result<()> {
        let writes = if self.has_waiting() { PollFlags::OUT } else { PollFlags::empty() };
        wait(&self.socket, PollFlags::IN | writes)
    }
}

struct UdpLine {
    socket: UdpSocket,
    data: Vec<u8>,
    /// Frames of this flush.
    waiting: Vec<Outgoing>,
    sends: MultiHeaders<SockaddrIn>,
    receives: MultiHeaders<SockaddrIn>,
    places: Vec<Vec<u8>>,
    frame: Vec<u8>,
    /// Bytes of the frame that have come, without headers.
    came: usize,
}

impl UdpLine {
    fn open(arguments: &LinkArguments, socket: &UnixStream) -> io::Result<Self> {
        let own = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        sockopt::set_socket_recv_buffer_size_force(&own, UDP_BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&own, UDP_BUFFER_BYTES))?;
        say_line(socket, &own.local_addr()?.to_string())?;
        let peer: SocketAddr = listen_line(socket)?.parse().map_err(io::Error::other)?;
        own.connect(peer)?;
        own.set_nonblocking(true)?;
        let frame = arguments.frame_bytes as usize;
        let place = (frame + DATAGRAM_HEAD_BYTES).min(DATAGRAM_LEN_LOOPBACK);
        Ok(Self {
            socket: own,
            data: vec![7; frame],
            waiting: Vec::new(),
            sends: MultiHeaders::preallocate(DATAGRAMS_PER_CALL, None),
            receives: MultiHeaders::preallocate(DATAGRAMS_PER_CALL, None),
            places: vec![vec![1; place]; DATAGRAMS_PER_CALL],
            frame: vec![1; frame],
            came: 0,
        })
    }
}

impl Line for UdpLine {
    fn send(&mut self, frame: Outgoing) -> io::Result<bool> {
        self.waiting.push(frame);
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        let datagrams = self
            .waiting
            .iter()
            .flat_map(|frame| (0..frame.len).step_by(DATAGRAM_DATA_BYTES).map(move |at| (*frame, at)));
        let heads: Vec<([u8; DATAGRAM_HEAD_BYTES], usize, usize)> = datagrams
            .map(|(frame, at)| {
                let mut bytes = [0; DATAGRAM_HEAD_BYTES];
                bytes[..HEAD_BYTES].copy_from_slice(&head(frame));
                bytes[HEAD_BYTES..].copy_from_slice(&(at as u64).to_le_bytes());
                (bytes, at, frame.len.min(at + DATAGRAM_DATA_BYTES))
            })
            .collect();
        self.waiting.clear();
        let parts: Vec<[IoSlice<'_>; 2]> =
            heads.iter().map(|(head, at, end)| [IoSlice::new(head), IoSlice::new(&self.data[*at..*end])]).collect();
        let mut left = &parts[..];
        while !left.is_empty() {
            let count = left.len().min(DATAGRAMS_PER_CALL);
            let to = [None::<SockaddrIn>; DATAGRAMS_PER_CALL];
            match sendmmsg(
                self.socket.as_raw_fd(),
                &mut self.sends,
                &left[..count],
                &to[..count],
                [],
                MsgFlags::empty(),
            ) {
                Ok(sent) => left = &left[sent.count()..],
                Err(nix::errno::Errno::EAGAIN) => wait(&self.socket, PollFlags::OUT)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self, talk: &mut Talk) -> io::Result<bool> {
        let mut parts: Vec<[IoSliceMut<'_>; 1]> =
            self.places.iter_mut().map(|place| [IoSliceMut::new(place)]).collect();
        let flags = MsgFlags::MSG_DONTWAIT;
        let lengths: Vec<usize> = match recvmmsg(self.socket.as_raw_fd(), &mut self.receives, &mut parts, flags, None) {
            Ok(found) => found.map(|message| message.bytes).collect(),
            Err(nix::errno::Errno::EAGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        for (place, len) in self.places.iter().zip(&lengths) {
            let (bytes, data) = place[..*len].split_at(DATAGRAM_HEAD_BYTES);
            let frame = read_head(bytes).expect("a whole head");
            let at = u64::from_le_bytes(*bytes[HEAD_BYTES..].first_chunk().expect("eight bytes")) as usize;
            self.frame[at..at + data.len()].copy_from_slice(data);
            self.came = if at == 0 { data.len() } else { self.came + data.len() };
            if self.came == frame.len {
                talk.take(frame.number);
            }
        }
        Ok(true)
    }

    fn sleep(&mut self) -> io::Result<()> {
        wait(&self.socket, PollFlags::IN)
    }
}

fn wait(socket: impl AsFd, flags: PollFlags) -> io::Result<()> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK_AGAIN.subsec_nanos()) };
    poll(&mut [PollFd::new(&socket, flags)], Some(&timeout))?;
    Ok(())
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof | ConnectionRefused)
}

/// The beginning of the frame, and where the data belong in it.
const DATAGRAM_HEAD_BYTES: usize = HEAD_BYTES + 8;
const DATAGRAM_DATA_BYTES: usize = DATAGRAM_LEN_LOOPBACK - DATAGRAM_HEAD_BYTES;
const DATAGRAMS_PER_CALL: usize = 64;
/// Two parts of each are fewer than the kernel takes at once.
const FRAMES_PER_CALL: usize = 256;
const READ_BYTES_MIN: usize = 256 << 10;
