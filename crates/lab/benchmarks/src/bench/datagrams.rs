//! The bare machine for event building over UDP: what `sendmmsg` and `recvmmsg` do with the same bytes.
//!
//! Source processes cut their fragment of every event into pieces that fit in a datagram of a given length. Each
//! piece has a header of 16 bytes that names event, source and place. As the system does, they put as many short
//! fragments into a datagram as it holds (unless told to send a datagram for each). They give the kernel several
//! long ones at a time to cut (GSO), and send up to [`DATAGRAMS_PER_CALL`] of either with one call.
//!
//! The builder receives as many at a time from its one socket, where the kernel joins what belongs together (GRO).
//! It checks every header and copies the data to their place in the event. It counts an event when all of it is
//! there.
//!
//! Nothing holds a sender of datagrams back, so sources have a window. They may be ahead of the oldest incomplete event
//! by as many events as the builder has buffers. They are so by no more than its socket buffer holds. Every quarter of
//! a window the builder tells each source how far it is. What is lost all the same is not asked for again: after some
//! silence the oldest event is given up and not counted.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::resource::UsageWho;
use nix::sys::socket::sockopt::{UdpGroSegment, UdpGsoSegment};
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg, setsockopt};
use rustix::net::sockopt;
use transport::clock;
use transport::udp::DATAGRAM_LEN_LOOPBACK;

use super::reference::{Header, Measurement, ReferenceError, Sources};
use super::{PATIENCE, touch};
use partition::cpu::cpu_seconds;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagrams {
    pub(super) sources: u32,
    /// Data of a fragment, in bytes, without headers.
    pub(super) fragment_bytes: u32,
    /// Length of a full datagram, its header included.
    pub(super) datagram_bytes: u32,
    /// Whether short fragments of several events share a datagram.
    pub(super) grouped: bool,
    /// Whether sources write all data and the builder sums them.
    pub(super) touched: bool,
    /// Event buffers of the builder.
    pub(super) events_held: u32,
    pub(super) seconds: f64,
}

/// What a source needs to know.
#[derive(Clone, Copy, Debug)]
pub(super) struct DatagramArguments {
    pub(super) builder: SocketAddr,
    pub(super) id: u32,
    pub(super) fragment_bytes: u32,
    pub(super) datagram_bytes: u32,
    /// Events that it may be ahead, of each of which it has a fragment.
    pub(super) window: u32,
    pub(super) grouped: bool,
    pub(super) touched: bool,
}

/// Measures. The sources have ended when this returns.
pub(super) fn run(parameters: &Datagrams) -> Result<Measurement, ReferenceError> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(ReferenceError::Listen)?;
    let builder = socket.local_addr().map_err(ReferenceError::Listen)?;
    let window = window(&socket, parameters).map_err(ReferenceError::Listen)?;
    let children_cpu_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let mut sources = Sources(Vec::new());
    for id in 0..parameters.sources {
        let Datagrams { fragment_bytes, datagram_bytes, grouped, touched, .. } = *parameters;
        let arguments = DatagramArguments { builder, id, fragment_bytes, datagram_bytes, window, grouped, touched };
        sources.0.push(spawn(&arguments).map_err(|error| ReferenceError::Spawn { id, error })?);
    }
    let places = greet(&socket, &mut sources, parameters.sources)?;
    let mut building = Building::new(socket, places, window, parameters);
    let mut measurement = building.build(parameters.seconds)?;
    drop(sources);
    measurement.cpu_seconds += cpu_seconds(UsageWho::RUSAGE_CHILDREN) - children_cpu_before;
    Ok(measurement)
}

/// The life of a source: it sends until nobody is there any more.
pub(super) fn source_main(arguments: &DatagramArguments) -> io::Result<()> {
    match send_events(arguments) {
        // The builder has measured enough, and left.
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::WouldBlock) => Ok(()),
        other => other,
    }
}

fn send_events(arguments: &DatagramArguments) -> io::Result<()> {
    let DatagramArguments { builder, id: source, fragment_bytes, datagram_bytes, window, grouped, touched } =
        *arguments;
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(builder)?;
    socket.set_read_timeout(Some(SILENCE_MAX))?;
    socket.send(&source.to_ne_bytes())?;
    // As many as there may be on the way: the working set of a system that keeps them.
    let mut fragments = vec![vec![0; fragment_bytes as usize]; window as usize];
    fragments.iter_mut().for_each(|fragment| touch::write(fragment));
    let held = |event: u64| (event % u64::from(window)) as usize;
    let places: Vec<usize> = places(fragment_bytes, datagram_bytes).collect();
    let data_bytes = data_bytes(datagram_bytes);
    let most = pieces_per_message(&socket, places.len(), fragment_bytes, datagram_bytes);
    let pieces_per_message = if places.len() > 1 || grouped { most } else { 1 };
    let mut calls = MultiHeaders::preallocate(DATAGRAMS_PER_CALL, None);
    let (mut next, mut end) = (0, 0);
    loop {
        while next == end {
            let mut told = [0; size_of::<u64>()];
            socket.recv(&mut told)?;
            end = end.max(u64::from_ne_bytes(told) + u64::from(window));
        }
        if touched {
            (next..end).for_each(|event| touch::write(&mut fragments[held(event)]));
        }
        let events = (next..end).flat_map(|event| places.iter().map(move |place| (event, *place)));
        let pieces: Vec<([u8; Header::LEN_BYTES], &[u8])> = events
            .map(|(event, place)| {
                let mut header = [0; Header::LEN_BYTES];
                Header { event, source, fragment_bytes: place as u32 }.write(&mut header);
                let fragment = &fragments[held(event)];
                (header, &fragment[place..fragment.len().min(place + data_bytes)])
            })
            .collect();
        // What the kernel cuts ends with the end of a fragment.
        let whole = if places.len() > 1 { places.len() } else { pieces.len() };
        let messages: Vec<Vec<IoSlice<'_>>> = pieces
            .chunks(whole)
            .flat_map(|pieces| pieces.chunks(pieces_per_message))
            .map(|pieces| {
                let parts = pieces.iter().flat_map(|(header, data)| [IoSlice::new(header), IoSlice::new(data)]);
                parts.collect()
            })
            .collect();
        let mut left = &messages[..];
        while !left.is_empty() {
            let count = left.len().min(DATAGRAMS_PER_CALL);
            let to = [None::<SockaddrIn>; DATAGRAMS_PER_CALL];
            let flags = MsgFlags::empty();
            let sent = sendmmsg(socket.as_raw_fd(), &mut calls, &left[..count], &to[..count], [], flags)?.count();
            left = &left[sent..];
        }
        next = end;
    }
}

/// How many pieces the kernel is given at a time: short fragments that share a datagram, or datagrams that it cuts if it can.
fn pieces_per_message(socket: &UdpSocket, pieces: usize, fragment_bytes: u32, datagram_bytes: u32) -> usize {
    let datagram = datagram_bytes as usize;
    if pieces == 1 {
        return (datagram / (Header::LEN_BYTES + fragment_bytes as usize)).max(1);
    }
    let cut = (DATAGRAM_LEN_LOOPBACK / datagram).min(SEGMENTS_PER_MESSAGE);
    let is_cut = cut > 1 && setsockopt(socket, UdpGsoSegment, &datagram_bytes.cast_signed()).is_ok();
    if is_cut { cut } else { 1 }
}

/// The builder.
struct Building {
    socket: UdpSocket,
    sources: Vec<SocketAddr>,
    window: u64,
    fragment_bytes: u32,
    datagram_bytes: u32,
    touched: bool,
    /// Event buffers, one behind the other.
    events: Vec<u8>,
    /// Datagrams that are missing, by buffer.
    missing: Vec<u32>,
    /// The oldest event that is incomplete.
    oldest: u64,
    /// What `oldest` was when the sources were told.
    told: u64,
    built: u64,
    bad: u64,
    sum: u64,
}

impl Building {
    fn new(socket: UdpSocket, sources: Vec<SocketAddr>, window: u32, parameters: &Datagrams) -> Self {
        let Datagrams { fragment_bytes, datagram_bytes, touched, events_held, .. } = *parameters;
        let event_bytes = fragment_bytes as usize * sources.len();
        let per_event = (sources.len() * places(fragment_bytes, datagram_bytes).count()) as u32;
        Self {
            socket,
            sources,
            window: u64::from(window),
            fragment_bytes,
            datagram_bytes,
            touched,
            events: vec![1; event_bytes * events_held as usize],
            missing: vec![per_event; events_held as usize],
            oldest: 0,
            told: 0,
            built: 0,
            bad: 0,
            sum: 0,
        }
    }

    fn build(&mut self, seconds_min: f64) -> Result<Measurement, ReferenceError> {
        let per_event = self.missing[0];
        let lost = |event, error| ReferenceError::Receive { id: 0, event, error };
        let mut calls = MultiHeaders::<SockaddrIn>::preallocate(DATAGRAMS_PER_CALL, None);
        let mut received = vec![vec![0; DATAGRAM_LEN_LOOPBACK]; DATAGRAMS_PER_CALL];
        // A kernel that joins nothing delivers them one by one.
        let _ = setsockopt(&self.socket, UdpGroSegment, &true);
        self.socket.set_read_timeout(Some(GIVE_UP_AFTER)).map_err(|error| lost(0, error))?;
        let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
        let began = clock::now();
        let (mut seconds, mut silences) = (0.0, 0);
        self.tell().map_err(|error| lost(0, error))?;
        while seconds < seconds_min || self.built == 0 {
            let mut parts: Vec<[IoSliceMut<'_>; 1]> =
                received.iter_mut().map(|bytes| [IoSliceMut::new(bytes)]).collect();
            let flags = MsgFlags::MSG_WAITFORONE;
            let lengths: Vec<usize> = match recvmmsg(self.socket.as_raw_fd(), &mut calls, &mut parts, flags, None) {
                Ok(found) => found.map(|message| message.bytes).collect(),
                Err(nix::errno::Errno::EAGAIN) => Vec::new(),
                Err(error) => return Err(lost(self.oldest, error.into())),
            };
            silences = if lengths.is_empty() { silences + 1 } else { 0 };
            if silences > SILENCES_MAX {
                return Err(lost(self.oldest, ErrorKind::TimedOut.into()));
            }
            for (bytes, length) in received.iter().zip(&lengths) {
                self.take(&bytes[..*length]);
            }
            if lengths.is_empty() {
                *self.missing_of_oldest() = 0;
            }
            while *self.missing_of_oldest() == 0 {
                *self.missing_of_oldest() = per_event;
                self.oldest += 1;
            }
            if lengths.is_empty() || self.oldest - self.told >= self.window.div_ceil(4) {
                self.tell().map_err(|error| lost(self.oldest, error))?;
            }
            seconds = clock::now().since(began).as_secs_f64();
        }
        let cpu_seconds = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
        self.bad += u64::from(self.touched && self.sum != self.expected_sum());
        Ok(Measurement { events: self.built, seconds, cpu_seconds, bad: self.bad })
    }

    /// Takes one piece behind the other.
    fn take(&mut self, mut pieces: &[u8]) {
        while !pieces.is_empty() {
            let Some(rest) = self.take_piece(pieces) else {
                self.bad += 1;
                return;
            };
            pieces = rest;
        }
    }

    /// What follows the first piece; `None` if it is not what a source sends.
    fn take_piece<'a>(&mut self, pieces: &'a [u8]) -> Option<&'a [u8]> {
        let (header, rest) = pieces.split_at_checked(Header::LEN_BYTES)?;
        let Header { event, source, fragment_bytes: place } = Header::read(header);
        let data_bytes = data_bytes(self.datagram_bytes);
        let (data, rest) =
            rest.split_at_checked((self.fragment_bytes as usize).checked_sub(place as usize)?.min(data_bytes))?;
        let held = self.missing.len();
        if event < self.oldest {
            // Given up.
            return Some(rest);
        }
        let is_ours = (place as usize).is_multiple_of(data_bytes) && (source as usize) < self.sources.len();
        if event >= self.oldest + held as u64 || !is_ours {
            return None;
        }
        let (buffer, event_bytes) = (event as usize % held, self.fragment_bytes as usize * self.sources.len());
        let at = buffer * event_bytes + source as usize * self.fragment_bytes as usize + place as usize;
        self.events[at..at + data.len()].copy_from_slice(data);
        self.missing[buffer] = self.missing[buffer].saturating_sub(1);
        if self.missing[buffer] == 0 {
            self.built += 1;
            if self.touched {
                self.sum += touch::sum(&self.events[buffer * event_bytes..][..event_bytes]);
            }
        }
        Some(rest)
    }

    fn missing_of_oldest(&mut self) -> &mut u32 {
        let place = self.oldest as usize % self.missing.len();
        &mut self.missing[place]
    }

    fn tell(&mut self) -> io::Result<()> {
        self.told = self.oldest;
        for source in &self.sources {
            self.socket.send_to(&self.oldest.to_ne_bytes(), source)?;
        }
        Ok(())
    }

    fn expected_sum(&self) -> u64 {
        touch::expected(self.fragment_bytes) * self.sources.len() as u64 * self.built
    }
}

/// Where each source sends from, by its number, which is the first that it sends.
fn greet(socket: &UdpSocket, sources: &mut Sources, expected: u32) -> Result<Vec<SocketAddr>, ReferenceError> {
    socket.set_read_timeout(Some(LOOK_AFTER_SOURCES)).map_err(ReferenceError::Listen)?;
    let deadline = clock::now() + CONNECT_TIMEOUT;
    let mut places: Vec<Option<SocketAddr>> = vec![None; expected as usize];
    while places.contains(&None) {
        let mut number = [0; size_of::<u32>()];
        let from = match socket.recv_from(&mut number) {
            Ok((_, from)) => from,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                sources.check_alive()?;
                if clock::now() > deadline {
                    let connected = places.iter().flatten().count() as u32;
                    return Err(ReferenceError::NotConnected { connected, expected });
                }
                continue;
            }
            Err(error) => return Err(ReferenceError::Hello(error)),
        };
        let id = u32::from_ne_bytes(number);
        match places.get_mut(id as usize) {
            Some(place @ None) => *place = Some(from),
            _ => return Err(ReferenceError::UnknownSource { id, expected }),
        }
    }
    Ok(places.into_iter().flatten().collect())
}

/// Events that may be on the way: as many as there are buffers for, here and in the kernel. That reckons a datagram
/// with the memory that it allots for it, at most twice its length and some more.
fn window(socket: &UdpSocket, parameters: &Datagrams) -> io::Result<u32> {
    let asked = RECEIVE_BUFFER_BYTES;
    sockopt::set_socket_recv_buffer_size_force(socket, asked)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, asked))?;
    let granted = sockopt::socket_recv_buffer_size(socket)?;
    let Datagrams { sources, fragment_bytes, datagram_bytes, events_held, .. } = *parameters;
    let datagram = |place: usize| {
        let data = data_bytes(datagram_bytes).min(fragment_bytes as usize - place);
        (data + KERNEL_OVERHEAD_BYTES).next_power_of_two() + KERNEL_OVERHEAD_BYTES
    };
    let event = sources as usize * places(fragment_bytes, datagram_bytes).map(datagram).sum::<usize>();
    Ok((granted / event).clamp(1, events_held as usize) as u32)
}

/// Where the data of each datagram begin in a fragment; an empty one takes one datagram.
fn places(fragment_bytes: u32, datagram_bytes: u32) -> impl Iterator<Item = usize> {
    (0..fragment_bytes.max(1) as usize).step_by(data_bytes(datagram_bytes))
}

fn data_bytes(datagram_bytes: u32) -> usize {
    datagram_bytes as usize - Header::LEN_BYTES
}

fn spawn(arguments: &DatagramArguments) -> io::Result<Child> {
    let DatagramArguments { builder, id, fragment_bytes, datagram_bytes, window, grouped, touched } = arguments;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench-part", "datagrams", &builder.to_string()]);
    command.args([id, fragment_bytes, datagram_bytes, window].map(u32::to_string));
    if *grouped {
        command.arg("--grouped");
    }
    if *touched {
        command.arg("--touched");
    }
    command.stdin(Stdio::null()).spawn()
}

/// Also what the system hands to the kernel at a time.
const DATAGRAMS_PER_CALL: usize = 64;
/// The kernel's limit since it can cut datagrams.
const SEGMENTS_PER_MESSAGE: usize = 64;
/// As the system asks for.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;
const KERNEL_OVERHEAD_BYTES: usize = 512;
const GIVE_UP_AFTER: Duration = Duration::from_millis(20);
const SILENCES_MAX: u32 = (PATIENCE.as_millis() / GIVE_UP_AFTER.as_millis()) as u32;
const CONNECT_TIMEOUT: Duration = PATIENCE;
const SILENCE_MAX: Duration = PATIENCE;
const LOOK_AFTER_SOURCES: Duration = Duration::from_millis(50);
