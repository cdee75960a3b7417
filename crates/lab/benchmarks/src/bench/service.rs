//! The bare machine for one read-out system: a loop that answers several clients from memory with plain system calls.
//!
//! Each client is a process that keeps a number of requests on the way and writes all that it may send in one call. The
//! server, this process, looks at one connection after the other. It reads all that is there and writes all replies in
//! as few calls as the kernel allows. The fragments of each come from pages of their own. There are as many pages as
//! fragments of the events in hand, each taken in its turn. All are idle by the rule of the system. As in
//! [`exchange`](super::exchange), a part of the replies is larger, and only the numbers of the messages are checked.

use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use base::time::Time;
use nix::sys::resource::UsageWho;
use transport::clock;

use super::exchange::{LargeReplies, Lengths, Line, NUMBER_BYTES, REPLIES_MAX, Rest, is_gone};
use super::loopback;
use super::reference::{ReferenceError, Sources, accept_all};
use crate::bench::arguments::BenchIdle;
use partition::cpu::{cpu_seconds, cpu_seconds_of};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Service {
    /// How many processes ask.
    pub(super) clients: u32,
    /// What all of them ask, and get.
    pub(super) talk: ServiceTalk,
    /// Length of a fragment, of which replies have as many as there is room for.
    pub(super) fragment_bytes: u32,
    /// How many there are in memory.
    pub(super) fragments: u32,
    pub(super) seconds: f64,
}

/// What clients ask, and get.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServiceTalk {
    /// Length of a request in bytes, at least 8.
    pub(super) request_bytes: u32,
    /// Length of a reply in bytes, at least 8.
    pub(super) reply_bytes: u32,
    /// Replies of another length.
    pub(super) large: LargeReplies,
    /// Requests on the way at a time, of each client.
    pub(super) in_flight: u32,
    pub(super) idle: BenchIdle,
}

/// What was measured.
pub(super) struct Served {
    pub(super) requests: u64,
    /// When all clients had connected.
    pub(super) began: Time,
    pub(super) seconds: f64,
    /// Of the server, in seconds.
    pub(super) server_cpu_seconds: f64,
    /// Of the clients until they are ended, in seconds; none where the kernel does not say.
    pub(super) clients_cpu_seconds: Option<f64>,
    /// Of all processes, in seconds.
    pub(super) cpu_seconds: f64,
}

/// What a client needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientArguments {
    pub(super) server: SocketAddr,
    pub(super) id: u32,
    pub(super) talk: ServiceTalk,
}

/// Measures. The clients have ended when this returns.
pub(super) fn run(service: &Service) -> Result<Served, ReferenceError> {
    let &Service { clients: count, talk, seconds, .. } = service;
    let (listener, server) = loopback::listen().map_err(ReferenceError::Listen)?;
    let children_cpu_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let mut clients = Sources(Vec::new());
    for id in 0..count {
        let arguments = ClientArguments { server, id, talk };
        clients.0.push(spawn(&arguments).map_err(|error| ReferenceError::Spawn { id, error })?);
    }
    let sockets = accept_all(&listener, &mut clients, count)?;
    let line = |socket| Line::new(socket, Lengths::equal(talk.request_bytes), talk.replies(), REPLIES_MAX);
    let lines = sockets.into_iter().map(line).collect::<io::Result<Vec<_>>>().map_err(ReferenceError::Listen)?;
    let mut served =
        serve(lines, Memory::new(service), talk.idle, seconds).map_err(|error| ReferenceError::Exchange { error })?;
    served.clients_cpu_seconds = clients.0.iter().map(|client| cpu_seconds_of(client.id())).sum();
    drop(clients);
    served.cpu_seconds += cpu_seconds(UsageWho::RUSAGE_CHILDREN) - children_cpu_before;
    Ok(served)
}

/// The life of a client: it asks until the server goes away.
pub(super) fn client_main(arguments: &ClientArguments) -> Result<(), ReferenceError> {
    let &ClientArguments { server, id, talk } = arguments;
    match ask(server, id, &talk) {
        Err(error) if is_gone(&error) => Ok(()),
        other => other.map_err(|error| ReferenceError::Connect { builder: server, error }),
    }
}

fn serve(mut lines: Vec<Line>, mut memory: Memory, idle: BenchIdle, seconds: f64) -> io::Result<Served> {
    let mut rest = Rest::new(idle, &lines)?;
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let (began, mut requests) = (clock::now(), 0);
    let end = began + Duration::from_secs_f64(seconds);
    while requests == 0 || clock::now() < end {
        let before = requests;
        for line in &mut lines {
            let count = line.receive()?;
            memory.send(line, count)?;
            requests += count;
        }
        rest.after(requests > before)?;
    }
    let cpu = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
    let seconds = clock::now().since(began).as_secs_f64();
    let clients_cpu_seconds = None;
    Ok(Served { requests, began, seconds, server_cpu_seconds: cpu, clients_cpu_seconds, cpu_seconds: cpu })
}

/// Fragments, one page behind the other.
struct Memory {
    pages: Vec<u8>,
    fragment_bytes: usize,
    page_bytes: usize,
    /// Of the fragment that is next.
    next: usize,
    /// What stands before the fragments of each reply that is being written.
    heads: Vec<u8>,
}

impl Memory {
    fn new(service: &Service) -> Self {
        let fragment_bytes = service.fragment_bytes as usize;
        let page_bytes = fragment_bytes.next_multiple_of(64);
        let pages = vec![1; page_bytes * service.fragments as usize];
        Self { pages, fragment_bytes, page_bytes, next: 0, heads: Vec::new() }
    }

    /// Writes so many replies.
    fn send(&mut self, line: &mut Line, count: u64) -> io::Result<()> {
        let head_of = |len: usize| (len - NUMBER_BYTES) % self.fragment_bytes + NUMBER_BYTES;
        let lengths: Vec<usize> = (0..count).map(|reply| line.length_of(line.sent + reply)).collect();
        self.heads.clear();
        for (&len, number) in lengths.iter().zip(line.sent..) {
            self.heads.extend_from_slice(&number.to_ne_bytes());
            self.heads.resize(self.heads.len() + head_of(len) - NUMBER_BYTES, 0);
        }
        let (mut slices, mut heads) = (Vec::new(), &self.heads[..]);
        for len in lengths {
            let (head, rest) = heads.split_at(head_of(len));
            heads = rest;
            slices.push(IoSlice::new(head));
            for _ in 0..(len - head.len()) / self.fragment_bytes {
                slices.push(IoSlice::new(&self.pages[self.next..self.next + self.fragment_bytes]));
                self.next = (self.next + self.page_bytes) % self.pages.len();
            }
        }
        line.sent += count;
        line.write_all(&mut slices)
    }
}

fn ask(server: SocketAddr, id: u32, talk: &ServiceTalk) -> io::Result<()> {
    let mut socket = loopback::connect(server)?;
    socket.write_all(&id.to_ne_bytes())?;
    let (requests, in_flight) = (Lengths::equal(talk.request_bytes), talk.in_flight);
    let mut line = Line::new(socket, talk.replies(), requests, in_flight)?;
    let mut rest = Rest::new(talk.idle, std::slice::from_ref(&line))?;
    loop {
        line.send(line.received + u64::from(in_flight) - line.sent)?;
        let count = line.receive()?;
        rest.after(count > 0)?;
    }
}

impl ServiceTalk {
    fn replies(&self) -> Lengths {
        Lengths { usual: self.reply_bytes, large: self.large }
    }
}

fn spawn(arguments: &ClientArguments) -> io::Result<Child> {
    let ClientArguments { server, id, talk } = arguments;
    let ServiceTalk { request_bytes, reply_bytes, large, in_flight, idle } = talk;
    Command::new(std::env::current_exe()?)
        .args(["bench-part", "client", &server.to_string(), &id.to_string()])
        .args([request_bytes, reply_bytes, in_flight].map(u32::to_string))
        .args([idle.name().to_owned(), large.bytes.to_string(), large.part.to_string()])
        .stdin(Stdio::null())
        .spawn()
}
