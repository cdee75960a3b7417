//! The bare machine for requests and replies over TCP: what plain system calls do with messages of the same size.
//!
//! A client asks each of its repliers, processes of their own, once for every exchange. An exchange is over when
//! all have replied. The client keeps a number of exchanges on the way and writes all requests that it may send in
//! one system call. A replier reads what there is and writes all its replies in one. Both read their sockets
//! directly and are idle as the system is: by the same rule, and asleep in the same system call. Each message
//! carries its number, which is checked, and nothing else.

use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::histogram::Histogram;
use nix::sys::resource::UsageWho;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::thread::sched_yield;
use transport::clock;
use transport::idle::{Idle, Pause};

use super::reference::{ReferenceError, Sources, accept_all};
use super::{PATIENCE, loopback};
use crate::bench::arguments::BenchIdle;
use partition::cpu::cpu_seconds;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchange {
    /// How many processes are asked.
    pub(super) repliers: u32,
    /// Length of a request in bytes, at least 8.
    pub(super) request_bytes: u32,
    /// Length of a reply in bytes, at least 8.
    pub(super) reply_bytes: u32,
    /// Exchanges on the way at a time. If there is one, its time is taken.
    pub(super) in_flight: u32,
    pub(super) idle: BenchIdle,
    pub(super) seconds: f64,
}

/// What was measured.
pub(super) struct Exchanged {
    pub(super) exchanges: u64,
    pub(super) seconds: f64,
    /// Of all processes, in seconds.
    pub(super) cpu_seconds: f64,
    pub(super) latency_ns: Histogram,
}

/// What a replier needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplierArguments {
    pub(super) client: SocketAddr,
    pub(super) id: u32,
    pub(super) request_bytes: u32,
    pub(super) reply_bytes: u32,
    pub(super) idle: BenchIdle,
}

/// Measures. The repliers have ended when this returns.
pub(super) fn run(exchange: &Exchange) -> Result<Exchanged, ReferenceError> {
    let (listener, client) = loopback::listen().map_err(ReferenceError::Listen)?;
    let children_cpu_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let mut repliers = Sources(Vec::new());
    for id in 0..exchange.repliers {
        let Exchange { request_bytes, reply_bytes, idle, .. } = *exchange;
        let arguments = ReplierArguments { client, id, request_bytes, reply_bytes, idle };
        repliers.0.push(spawn(&arguments).map_err(|error| ReferenceError::Spawn { id, error })?);
    }
    let sockets = accept_all(&listener, &mut repliers, exchange.repliers)?;
    let mut lines = Vec::new();
    for socket in sockets {
        let (incoming, outgoing) = (Lengths::equal(exchange.reply_bytes), Lengths::equal(exchange.request_bytes));
        let line = Line::new(socket, incoming, outgoing, exchange.in_flight);
        lines.push(line.map_err(ReferenceError::Listen)?);
    }
    let mut exchanged = ask(&mut lines, exchange)?;
    drop(lines);
    drop(repliers);
    exchanged.cpu_seconds += cpu_seconds(UsageWho::RUSAGE_CHILDREN) - children_cpu_before;
    Ok(exchanged)
}

/// The life of a replier: it replies until the client goes away.
pub(super) fn replier_main(arguments: &ReplierArguments) -> Result<(), ReferenceError> {
    let ReplierArguments { client, id, request_bytes, reply_bytes, idle } = *arguments;
    let refused = |error| ReferenceError::Connect { builder: client, error };
    let mut socket = loopback::connect(client).map_err(refused)?;
    socket.write_all(&id.to_ne_bytes()).map_err(refused)?;
    let (incoming, outgoing) = (Lengths::equal(request_bytes), Lengths::equal(reply_bytes));
    let mut line = Line::new(socket, incoming, outgoing, REPLIES_MAX).map_err(refused)?;
    let mut rest = Rest::new(idle, std::slice::from_ref(&line)).map_err(refused)?;
    loop {
        match line.receive().and_then(|count| {
            rest.after(count > 0)?;
            line.send(count)
        }) {
            Ok(()) => {}
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(refused(error)),
        }
    }
}

fn ask(lines: &mut [Line], exchange: &Exchange) -> Result<Exchanged, ReferenceError> {
    let lost = |error| ReferenceError::Exchange { error };
    let mut rest = Rest::new(exchange.idle, lines).map_err(lost)?;
    let in_flight = u64::from(exchange.in_flight);
    let mut latency_ns = Histogram::default();
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let began = clock::now();
    let end = began + Duration::from_secs_f64(exchange.seconds);
    let (mut done, mut asked_at) = (0, began);
    while asked_at < end {
        asked_at = clock::now();
        for line in &mut *lines {
            line.send(done + in_flight - line.sent).map_err(lost)?;
        }
        let before = done;
        while done == before {
            let mut received = 0;
            for line in &mut *lines {
                received += line.receive().map_err(lost)?;
            }
            done = lines.iter().map(|line| line.received).min().unwrap_or(0);
            rest.after(received > 0).map_err(lost)?;
        }
        if in_flight == 1 {
            latency_ns.record(clock::now().since(asked_at).as_nanos() as u64);
        }
    }
    let cpu_seconds = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
    Ok(Exchanged { exchanges: done, seconds: clock::now().since(began).as_secs_f64(), cpu_seconds, latency_ns })
}

/// Lengths of messages, by their numbers.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    pub(super) usual: u32,
    pub(super) large: LargeReplies,
}

/// Replies that are larger than the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LargeReplies {
    /// Their length in bytes, at least 8.
    pub(super) bytes: u32,
    /// Which part of all replies they are, 0 to 1; spread evenly.
    pub(super) part: f64,
}

impl Lengths {
    pub(super) fn equal(usual: u32) -> Self {
        Self { usual, large: LargeReplies::default() }
    }

    fn of(&self, number: u64) -> usize {
        let before = |number: u64| (number as f64 * self.large.part) as u64;
        let is_large = self.large.part > 0.0 && before(number + 1) > before(number);
        if is_large { self.large.bytes as usize } else { self.usual as usize }
    }

    fn longest(&self) -> usize {
        if self.large.part > 0.0 { self.large.bytes.max(self.usual) as usize } else { self.usual as usize }
    }
}

/// One end of a connection: numbered messages in and out.
pub(super) struct Line {
    socket: TcpStream,
    incoming: Lengths,
    outgoing: Lengths,
    /// What was read of the message that is not whole yet.
    kept: usize,
    bytes: Vec<u8>,
    out: Vec<u8>,
    pub(super) sent: u64,
    pub(super) received: u64,
}

impl Line {
    pub(super) fn new(socket: TcpStream, incoming: Lengths, outgoing: Lengths, messages_max: u32) -> io::Result<Self> {
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        let bytes = vec![0; incoming.longest() * messages_max as usize];
        Ok(Self { socket, incoming, outgoing, kept: 0, bytes, out: Vec::new(), sent: 0, received: 0 })
    }

    /// Reads what there is, once; how many messages that makes whole.
    pub(super) fn receive(&mut self) -> io::Result<u64> {
        let read = match self.socket.read(&mut self.bytes[self.kept..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) => return Err(error),
        };
        let end = self.kept + read;
        let before = self.received;
        let mut whole = 0;
        loop {
            let next = whole + self.incoming.of(self.received);
            if next > end {
                break;
            }
            if self.bytes[whole..whole + NUMBER_BYTES] != self.received.to_ne_bytes() {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "a message out of order"));
            }
            self.received += 1;
            whole = next;
        }
        self.kept = end - whole;
        self.bytes.copy_within(whole..end, 0);
        Ok(self.received - before)
    }

    /// Writes this many messages in one call, as far as the kernel takes them.
    pub(super) fn send(&mut self, count: u64) -> io::Result<()> {
        let mut end = 0;
        for _ in 0..count {
            let start = end;
            end += self.outgoing.of(self.sent);
            if self.out.len() < end {
                self.out.resize(end, 0);
            }
            self.out[start..start + NUMBER_BYTES].copy_from_slice(&self.sent.to_ne_bytes());
            self.sent += 1;
        }
        write_all(&self.socket, &mut [IoSlice::new(&self.out[..end])])
    }

    /// The same of messages that the caller has made and counted.
    pub(super) fn write_all(&mut self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        write_all(&self.socket, slices)
    }

    /// Length of the outgoing message of this number.
    pub(super) fn length_of(&self, number: u64) -> usize {
        self.outgoing.of(number)
    }
}

fn write_all(mut socket: &TcpStream, mut left: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let count = left.len().min(SLICES_MAX);
        match socket.write_vectored(&left[..count]) {
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                poll(&mut [PollFd::new(&socket, PollFlags::OUT)], Some(&SILENCE_MAX))?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// What an end does while nothing comes.
pub(super) struct Rest {
    idle: Idle,
    epoll: OwnedFd,
}

impl Rest {
    pub(super) fn new(idle: BenchIdle, lines: &[Line]) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for line in lines {
            epoll::add(&epoll, &line.socket, EventData::new_u64(0), EventFlags::IN)?;
        }
        Ok(Self { idle: Idle::new(idle.strategy()), epoll })
    }

    /// After a look at all sockets.
    pub(super) fn after(&mut self, something_came: bool) -> io::Result<()> {
        if something_came {
            self.idle.busy();
            return Ok(());
        }
        match self.idle.idle(clock::now()) {
            Pause::None => core::hint::spin_loop(),
            Pause::Yield => sched_yield(),
            Pause::Sleep => {
                let event = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
                if epoll::wait(&self.epoll, &mut [event], Some(&SILENCE_MAX))? == 0 {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
        }
        Ok(())
    }
}

fn spawn(arguments: &ReplierArguments) -> io::Result<Child> {
    let ReplierArguments { client, id, request_bytes, reply_bytes, idle } = arguments;
    Command::new(std::env::current_exe()?)
        .args(["bench-part", "replier", &client.to_string(), &id.to_string()])
        .args([request_bytes.to_string(), reply_bytes.to_string(), idle.name().to_owned()])
        .stdin(Stdio::null())
        .spawn()
}

pub(super) fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

pub(super) const NUMBER_BYTES: usize = 8;
/// Most requests that a replier reads at a time.
pub(super) const REPLIES_MAX: u32 = 4096;
/// The kernel takes no more in one call.
const SLICES_MAX: usize = 1024;
const SILENCE_MAX: Timespec = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
