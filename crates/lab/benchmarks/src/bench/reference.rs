//! The bare machine for event building over TCP: what plain system calls do with the same bytes.
//!
//! Source processes write their fragment of every event (a header of 16 bytes, the payload) to a loopback connection,
//! as fast as it takes them. One builder reads the fragments of an event, in the order of the sources, straight into
//! one contiguous event buffer. It checks every header. There is no protocol, no request, no accounting: this is an
//! upper bound for a builder that handles fragments one by one.
//!
//! With a `batch` above 1, sources write that many fragments at a time. The builder reads what there is and copies
//! each fragment to its event once: an upper bound for one that batches.
//!
//! The header has the byte order of the machine, since it never leaves it.

use std::io::{self, Read, Write};

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::UsageWho;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use thiserror::Error;

use super::{PATIENCE, loopback, touch};
use partition::cpu::cpu_seconds;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Parameters {
    /// How many source processes, 1 to 256.
    pub(crate) sources: u32,
    /// Payload of a fragment, in bytes, without its header.
    pub(crate) fragment_bytes: u32,
    /// How long to measure, in seconds.
    pub(crate) seconds: f64,
    /// How many fragments a source writes at a time.
    pub(crate) batch: u32,
    /// How many event buffers are in rotation: the working set.
    pub(crate) events_held: u32,
    /// Whether sources write all data.
    pub(crate) written: bool,
    /// Whether the builder sums all data.
    pub(crate) summed: bool,
}

/// What a source process needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceArguments {
    /// Where the builder listens.
    pub(crate) builder: SocketAddr,
    /// Which source this is, from 0.
    pub(crate) id: u32,
    /// Payload of a fragment, in bytes.
    pub(crate) fragment_bytes: u32,
    /// How many fragments to write at a time.
    pub(crate) batch: u32,
    /// Whether to write all data anew.
    pub(crate) touched: bool,
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measurement {
    /// Events built.
    pub(crate) events: u64,
    /// Wall-clock time for them, in seconds.
    pub(crate) seconds: f64,
    /// CPU time, user and system, of this process while it measured and of the sources in their whole life, in seconds.
    pub(crate) cpu_seconds: f64,
    /// Fragments with another header than expected: 0 if all went well.
    pub(crate) bad: u64,
}

/// Why there is no measurement.
#[derive(Debug, Error)]
pub(crate) enum ReferenceError {
    /// A parameter is outside its range.
    #[error("{name} is {value}: expected {expected}")]
    OutOfRange {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// The builder cannot listen on the loopback interface, or not accept connections.
    #[error("the builder cannot listen on the loopback interface: {0}")]
    Listen(io::Error),
    /// A connection did not say which source it is.
    #[error("a connection did not say which source it is: {0}")]
    Hello(io::Error),
    /// A source process cannot be started.
    #[error("source {id} cannot be started: {error}")]
    Spawn {
        /// Which one.
        id: u32,
        /// What the system says.
        error: io::Error,
    },
    /// A source process ended before it connected.
    #[error("source {id} ended before it connected ({status}): run it by hand to see why")]
    SourceEnded {
        /// Which one.
        id: u32,
        /// How it ended.
        status: ExitStatus,
    },
    /// Not all source processes connected in time.
    #[error("{connected} of {expected} sources connected within {CONNECT_TIMEOUT:?}")]
    NotConnected {
        /// How many did.
        connected: u32,
        /// How many should have.
        expected: u32,
    },
    /// Somebody connected who is not one of the sources, or is one that had connected.
    #[error("a connection gave source number {id}: expected one of {expected}, each once")]
    UnknownSource {
        /// The number received.
        id: u32,
        /// How many sources there are.
        expected: u32,
    },
    /// A connection was lost, or was silent for longer than the builder waits.
    #[error("connection of source {id} at event {event}: {error}")]
    Receive {
        /// Which source.
        id: u32,
        /// The event in building.
        event: u64,
        /// What the system says.
        error: io::Error,
    },
    /// Something arrived that was not sent.
    #[error("{bad} fragments arrived that no source sent")]
    Bad {
        /// How many.
        bad: u64,
    },
    /// Requests and replies came to an end.
    #[error("requests and replies: {error}")]
    Exchange {
        /// What the system says.
        error: io::Error,
    },
    /// A source cannot connect to its builder.
    #[error("source cannot connect to its builder at {builder}: {error}")]
    Connect {
        /// Where.
        builder: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
}

/// Measures: starts the sources by `spawn`, builds events from them, and ends them.
///
/// `spawn` starts a process that calls [`source_main`] with the arguments it is given. No other child of this process
/// should end while this runs, because its CPU time would be counted.
///
/// # Errors
/// If a parameter is out of range, or a source cannot be started, does not connect, or is lost. The sources have ended
/// when this returns, in any case.
pub(crate) fn run(
    parameters: &Parameters,
    mut spawn: impl FnMut(&SourceArguments) -> io::Result<Child>,
) -> Result<Measurement, ReferenceError> {
    check_builder(parameters)?;
    let (listener, builder) = loopback::listen().map_err(ReferenceError::Listen)?;
    let children_cpu_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let mut sources = Sources(Vec::new());
    for id in 0..parameters.sources {
        let Parameters { fragment_bytes, batch, written: touched, .. } = *parameters;
        let arguments = SourceArguments { builder, id, fragment_bytes, batch, touched };
        sources.0.push(spawn(&arguments).map_err(|error| ReferenceError::Spawn { id, error })?);
    }
    let sockets = accept_all(&listener, &mut sources, parameters.sources)?;
    let read_ahead = read_ahead_bytes(parameters);
    let stream = |socket| Stream { socket, bytes: vec![0; read_ahead], begin: 0, end: 0 };
    let mut streams: Vec<Stream> = sockets.into_iter().map(stream).collect();
    let mut measurement = build(&mut streams, parameters)?;
    drop(streams);
    drop(sources);
    measurement.cpu_seconds += cpu_seconds(UsageWho::RUSAGE_CHILDREN) - children_cpu_before;
    Ok(measurement)
}

/// The life of a source process: connects, says who it is, and writes fragments until the builder goes away, which is
/// its normal end.
///
/// # Errors
/// If a parameter is out of range or the builder cannot be reached.
pub(crate) fn source_main(arguments: &SourceArguments) -> Result<(), ReferenceError> {
    let stride = stride(arguments.fragment_bytes);
    let bytes_len = within("batch × fragment_bytes", stride, arguments.batch)?;
    let refused = |error| ReferenceError::Connect { builder: arguments.builder, error };
    let mut stream = loopback::connect(arguments.builder).map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    stream.write_all(&arguments.id.to_ne_bytes()).map_err(refused)?;
    let mut bytes = vec![0; bytes_len];
    bytes.chunks_exact_mut(stride).for_each(|fragment| touch::write(&mut fragment[Header::LEN_BYTES..]));
    let mut event = 0;
    loop {
        for fragment in bytes.chunks_exact_mut(stride) {
            let header = Header { event, source: arguments.id, fragment_bytes: arguments.fragment_bytes };
            header.write(fragment);
            if arguments.touched {
                touch::write(&mut fragment[Header::LEN_BYTES..]);
            }
            event += 1;
        }
        if stream.write_all(&bytes).is_err() {
            return Ok(());
        }
    }
}

/// Starts a source of this program.
pub(super) fn spawn_source(source: &SourceArguments) -> io::Result<Child> {
    let SourceArguments { builder, id, fragment_bytes, batch, touched } = source;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench-part", "source", &builder.to_string()]);
    command.args([id, fragment_bytes, batch].map(u32::to_string));
    if *touched {
        command.arg("--touched");
    }
    command.stdin(Stdio::null()).spawn()
}

/// The source processes; they end with this.
pub(super) struct Sources(pub(super) Vec<Child>);

impl Sources {
    pub(super) fn check_alive(&mut self) -> Result<(), ReferenceError> {
        for (id, child) in (0..).zip(&mut self.0) {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(ReferenceError::SourceEnded { id, status });
            }
        }
        Ok(())
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Both fail only for a child that has been waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A connection, and what was read ahead from it.
struct Stream {
    socket: TcpStream,
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Stream {
    fn read_whole(&mut self, to: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < to.len() {
            let (read, _) = recv(&self.socket, &mut to[done..], RecvFlags::WAITALL)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            done += read;
        }
        Ok(())
    }

    fn read_batched(&mut self, to: &mut [u8]) -> io::Result<()> {
        if self.end - self.begin < to.len() {
            self.bytes.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
            while self.end < to.len() {
                let read = self.socket.read(&mut self.bytes[self.end..])?;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.end += read;
            }
        }
        to.copy_from_slice(&self.bytes[self.begin..self.begin + to.len()]);
        self.begin += to.len();
        Ok(())
    }
}

/// What stands before the data of a fragment.
#[derive(PartialEq, Eq)]
pub(super) struct Header {
    pub(super) event: u64,
    pub(super) source: u32,
    pub(super) fragment_bytes: u32,
}

impl Header {
    pub(super) const LEN_BYTES: usize = 16;

    pub(super) fn write(&self, to: &mut [u8]) {
        to[..8].copy_from_slice(&self.event.to_ne_bytes());
        to[8..12].copy_from_slice(&self.source.to_ne_bytes());
        to[12..16].copy_from_slice(&self.fragment_bytes.to_ne_bytes());
    }

    pub(super) fn read(from: &[u8]) -> Self {
        let word = |at: usize| u32::from_ne_bytes(from[at..at + 4].try_into().expect("four bytes"));
        Self {
            event: u64::from_ne_bytes(from[..8].try_into().expect("eight bytes")),
            source: word(8),
            fragment_bytes: word(12),
        }
    }
}

/// Takes in one connection from each source, in the order of their numbers, which they send first.
pub(super) fn accept_all(
    listener: &TcpListener,
    sources: &mut Sources,
    expected: u32,
) -> Result<Vec<TcpStream>, ReferenceError> {
    let deadline = now() + CONNECT_TIMEOUT;
    let mut streams: Vec<Option<TcpStream>> = (0..expected).map(|_| None).collect();
    let mut connected = 0;
    while connected < expected {
        if now() >= deadline {
            return Err(ReferenceError::NotConnected { connected, expected });
        }
        let mut polled = [PollFd::new(listener, PollFlags::IN)];
        match poll(&mut polled, Some(&LOOK_AFTER_SOURCES)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {
                sources.check_alive()?;
                continue;
            }
            Ok(_) => {}
            Err(error) => return Err(ReferenceError::Listen(error.into())),
        }
        let (mut stream, _) = listener.accept().map_err(ReferenceError::Listen)?;
        stream.set_read_timeout(Some(SILENCE_MAX)).map_err(ReferenceError::Listen)?;
        let mut hello = [0; 4];
        stream.read_exact(&mut hello).map_err(ReferenceError::Hello)?;
        let id = u32::from_ne_bytes(hello);
        match streams.get_mut(id as usize) {
            Some(place @ None) => *place = Some(stream),
            _ => return Err(ReferenceError::UnknownSource { id, expected }),
        }
        connected += 1;
    }
    Ok(streams.into_iter().flatten().collect())
}

fn build(streams: &mut [Stream], parameters: &Parameters) -> Result<Measurement, ReferenceError> {
    let stride = stride(parameters.fragment_bytes);
    let event_bytes = stride * streams.len();
    let held = parameters.events_held as usize;
    // Not zero, so that the memory is touched here and not within the measurement.
    let mut events = vec![1; event_bytes * held];
    let (mut built, mut bad, mut sum) = (0, 0, 0_u64);
    let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
    let start = now();
    let mut seconds = 0.0;
    while seconds < parameters.seconds {
        let at = built as usize % held * event_bytes;
        let fragments = events[at..at + event_bytes].chunks_exact_mut(stride);
        for ((id, stream), fragment) in (0..).zip(&mut *streams).zip(fragments) {
            let read = if parameters.batch == 1 { stream.read_whole(fragment) } else { stream.read_batched(fragment) };
            read.map_err(|error| ReferenceError::Receive { id, event: built, error })?;
            let expected = Header { event: built, source: id, fragment_bytes: parameters.fragment_bytes };
            bad += u64::from(Header::read(fragment) != expected);
            if parameters.summed {
                sum += touch::sum(&fragment[Header::LEN_BYTES..]);
            }
        }
        built += 1;
        if built % EVENTS_PER_CLOCK_READING == 0 {
            seconds = start.elapsed().as_secs_f64();
        }
    }
    let cpu_seconds = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
    let fragments = built * streams.len() as u64;
    bad += u64::from(parameters.summed && sum != touch::expected(parameters.fragment_bytes) * fragments);
    Ok(Measurement { events: built, seconds, cpu_seconds, bad })
}

fn check_builder(parameters: &Parameters) -> Result<(), ReferenceError> {
    let positive = |name, value: u32| {
        let error = ReferenceError::OutOfRange { name, value: f64::from(value), expected: "at least 1" };
        if value == 0 { Err(error) } else { Ok(()) }
    };
    positive("sources", parameters.sources)?;
    positive("batch", parameters.batch)?;
    positive("events_held", parameters.events_held)?;
    if parameters.sources > SOURCES_MAX {
        let value = f64::from(parameters.sources);
        return Err(ReferenceError::OutOfRange { name: "sources", value, expected: "at most 256" });
    }
    if !(parameters.seconds > 0.0 && parameters.seconds.is_finite()) {
        let value = parameters.seconds;
        return Err(ReferenceError::OutOfRange { name: "seconds", value, expected: "a positive number" });
    }
    let stride = stride(parameters.fragment_bytes);
    within("batch × fragment_bytes", stride, parameters.batch)?;
    let event_bytes = within("sources × fragment_bytes", stride, parameters.sources)?;
    within("events_held × sources × fragment_bytes", event_bytes, parameters.events_held)?;
    Ok(())
}

fn within(name: &'static str, bytes: usize, count: u32) -> Result<usize, ReferenceError> {
    let product = bytes.saturating_mul(count as usize);
    let (value, expected) = (product as f64, "at most 1 GiB, headers included, and not 0");
    if (1..=MEMORY_MAX_BYTES).contains(&product) {
        Ok(product)
    } else {
        Err(ReferenceError::OutOfRange { name, value, expected })
    }
}

fn stride(fragment_bytes: u32) -> usize {
    Header::LEN_BYTES + fragment_bytes as usize
}

fn read_ahead_bytes(parameters: &Parameters) -> usize {
    let stride = stride(parameters.fragment_bytes);
    let batch = stride * parameters.batch as usize;
    batch.clamp(READ_AHEAD_MIN_BYTES, READ_AHEAD_MAX_BYTES).max(stride)
}

#[expect(clippy::disallowed_methods, reason = "the bare machine depends on nothing of what it is compared with")]
fn now() -> Instant {
    Instant::now()
}

const SOURCES_MAX: u32 = 256;
const MEMORY_MAX_BYTES: usize = 1 << 30;
const READ_AHEAD_MIN_BYTES: usize = 64 << 10;
const READ_AHEAD_MAX_BYTES: usize = 1 << 20;
const EVENTS_PER_CLOCK_READING: u64 = 16;
const CONNECT_TIMEOUT: Duration = PATIENCE;
const SILENCE_MAX: Duration = PATIENCE;
const LOOK_AFTER_SOURCES: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Parameters = Parameters {
        sources: 2,
        fragment_bytes: 100,
        seconds: 0.01,
        batch: 1,
        events_held: 4,
        written: false,
        summed: false,
    };

    #[test]
    fn parameters_out_of_range_are_named() {
        for (parameters, expected) in [
            (Parameters { sources: 0, ..SMALL }, "sources"),
            (Parameters { sources: 257, ..SMALL }, "sources"),
            (Parameters { batch: 0, ..SMALL }, "batch"),
            (Parameters { events_held: 0, ..SMALL }, "events_held"),
            (Parameters { seconds: f64::NAN, ..SMALL }, "seconds"),
            (Parameters { fragment_bytes: u32::MAX, ..SMALL }, "batch × fragment_bytes"),
            (Parameters { events_held: u32::MAX, ..SMALL }, "events_held × sources × fragment_bytes"),
        ] {
            let result = run(&parameters, |_| panic!("no source may start"));
            assert!(matches!(result, Err(ReferenceError::OutOfRange { name, .. }) if name == expected), "{result:?}");
        }
    }

    #[test]
    fn a_source_that_cannot_start_or_ends_at_once_is_named() {
        let result = run(&SMALL, |_| Err(io::ErrorKind::NotFound.into()));
        assert!(matches!(result, Err(ReferenceError::Spawn { id: 0, .. })), "{result:?}");
        let result = run(&SMALL, |_| Command::new("false").spawn());
        assert!(matches!(result, Err(ReferenceError::SourceEnded { id: 0, .. })), "{result:?}");
    }

    #[test]
    fn events_are_built_from_all_sources_and_the_sources_end_with_the_builder() {
        for (batch, touched) in [(1, false), (3, false), (1, true)] {
            let parameters = Parameters { batch, written: touched, summed: touched, ..SMALL };
            let mut threads = Vec::new();
            // The sources are threads here, and a child process stands for each.
            let measurement = run(&parameters, |&arguments| {
                threads.push(std::thread::spawn(move || source_main(&arguments)));
                Command::new("sleep").arg("60").spawn()
            });
            let measurement = measurement.expect("a measurement");
            assert!(measurement.events >= 16 && measurement.seconds >= parameters.seconds);
            assert_eq!(measurement.bad, 0);
            for thread in threads {
                assert!(thread.join().expect("no panic").is_ok());
            }
        }
    }

    #[test]
    fn a_stranger_on_the_port_is_refused() {
        let result = run(&SMALL, |arguments| {
            let builder = arguments.builder;
            std::thread::spawn(move || {
                let mut stream = TcpStream::connect(builder).expect("a connection");
                stream.write_all(&77u32.to_ne_bytes()).expect("a write");
            });
            Command::new("sleep").arg("60").spawn()
        });
        assert!(matches!(result, Err(ReferenceError::UnknownSource { id: 77, expected: 2 })), "{result:?}");
    }
}
