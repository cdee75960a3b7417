//! `weir bench transport`: frames of several lengths through one link of each kind, with the bare machine doing the same.
//!
//! One way, an end sends as many frames as a window allows, and the other end says every quarter of it how many have come. For
//! the latency, a frame goes there and back. The ends are two processes, of a local link two threads. Over TCP and UDP all bytes
//! move; in shared memory and inside a process only handles on data that were filled once do, on either side, so no rate of
//! bytes is told. [`bare`] says what the references are.

mod bare;
mod ours;
mod slots;
mod talk;

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::resource::UsageWho;
use rustix::net::sockopt;
use serde::Serialize;
use transport::clock;

use super::BenchError;
use super::paired::{Comparison, Figures, RatioOf};
use super::reference::Sources;
use crate::cli::{BenchArgs, BenchLink, BenchSide, BenchTalk};
use crate::cpu::cpu_seconds;
use talk::{HEAD_BYTES, Talk};

/// All kinds of links with all lengths of frames.
#[derive(Serialize)]
pub(crate) struct Found {
    bench: &'static str,
    pairs: usize,
    /// Of each single measurement.
    seconds: f64,
    points: Vec<Point>,
}

/// One kind and length. What [`Figures`] call an event is a frame, or one there and back.
#[derive(Serialize)]
struct Point {
    link: BenchLink,
    frame_bytes: u32,
    one_way: Comparison<LinkArguments>,
    ping_pong: Comparison<LinkArguments>,
}

/// What both ends need to know.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct LinkArguments {
    pub(crate) link: BenchLink,
    pub(crate) talk: BenchTalk,
    /// Length of a frame, its beginning of [`HEAD_BYTES`] included.
    pub(crate) frame_bytes: u32,
    /// Frames that may be on their way.
    pub(crate) window: u64,
}

/// Measures all in alternation with the references.
pub(crate) fn measure(args: &BenchArgs) -> Result<Found, BenchError> {
    let seconds = args.seconds / POINTS_PER_MEASUREMENT;
    let mut points = Vec::new();
    for link in BenchLink::ALL {
        for frame_bytes in FRAME_BYTES {
            let room = if link == BenchLink::Udp { udp_room(frame_bytes)? } else { u64::MAX };
            if room == 0 {
                // Without the right to larger buffers, long frames are lost by both sides.
                continue;
            }
            let compare = |talk| {
                let window = if talk == BenchTalk::OneWay { window(frame_bytes).min(room) } else { 1 };
                let arguments = LinkArguments { link, talk, frame_bytes, window };
                let ratio_of = if talk == BenchTalk::OneWay { RatioOf::EventsPerS } else { RatioOf::RoundTripNs };
                let side = |side| move || run(&arguments, side, seconds);
                let (ours, bare) = (side(BenchSide::Result), side(BenchSide::Reference));
                Comparison::measure("transport", arguments, (PAIRS, ratio_of), ours, bare)
            };
            let (one_way, ping_pong) = (compare(BenchTalk::OneWay)?, compare(BenchTalk::PingPong)?);
            points.push(Point { link, frame_bytes, one_way, ping_pong });
        }
    }
    Ok(Found { bench: "transport", pairs: PAIRS, seconds, points })
}

impl Found {
    /// A table for people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "transport, medians of {} pairs\n{:<6} {:>9}  {:>11} {:>8} {:>14} {:>14}  {:>13} {:>14}\n",
            self.pairs,
            "link",
            "frame",
            "frames/s",
            "GB/s",
            "of the bare",
            "CPU of it",
            "there and back",
            "of the bare"
        );
        for Point { link, frame_bytes, one_way, ping_pong } in &self.points {
            let (figures, back) = (one_way.result(), ping_pong.result());
            let rate = figures.bytes_per_s.map_or("-".to_owned(), |bytes| format!("{:.3}", bytes / 1e9));
            let [ratio, back_ratio] = [one_way, ping_pong].map(Comparison::ratio_text);
            let _ = writeln!(
                text,
                "{:<6} {frame_bytes:>7} B  {:>11.0} {rate:>8} {ratio:>14} {:>14.2}  {:>11.1} µs {back_ratio:>14}",
                link.name(),
                figures.events_per_s,
                one_way.cpu_ratio(),
                back.round_trip_ns.unwrap_or(f64::NAN) / 1e3,
            );
        }
        text.trim_end().to_owned()
    }
}

/// The life of the far end; the socket is its standard input.
pub(super) fn far_main(arguments: &LinkArguments, side: BenchSide) -> io::Result<()> {
    let socket = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let far = || Talk::far(arguments.talk, arguments.frame_bytes as usize, arguments.window);
    match side {
        BenchSide::Result => ours::converse(arguments, &socket, false, far)?,
        BenchSide::Reference => bare::converse(arguments, &socket, false, far)?,
    };
    Ok(())
}

fn run(arguments: &LinkArguments, side: BenchSide, seconds: f64) -> Result<Figures, BenchError> {
    let failed = |error| BenchError::System { what: "frames through a link", error };
    let children_before = cpu_seconds(UsageWho::RUSAGE_CHILDREN);
    let (mut cpu_before, mut began) = (0.0, clock::now());
    let begin = || {
        (cpu_before, began) = (cpu_seconds(UsageWho::RUSAGE_SELF), clock::now());
        let end = began + Duration::from_secs_f64(seconds);
        Talk::near(arguments.talk, arguments.frame_bytes as usize, arguments.window, end)
    };
    let far = Talk::far(arguments.talk, arguments.frame_bytes as usize, arguments.window);
    let talk = match (arguments.link, side) {
        (BenchLink::Local, BenchSide::Result) => ours::converse_locally(arguments, far, begin),
        (BenchLink::Local, BenchSide::Reference) => bare::converse_locally(arguments, far, begin),
        _ => between_processes(arguments, side, begin),
    };
    let talk = talk.map_err(failed)?;
    let measured = clock::now().since(began).as_secs_f64();
    let cpu =
        cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before + cpu_seconds(UsageWho::RUSAGE_CHILDREN) - children_before;
    let (frames, round_trip_ns) = talk.measured();
    if frames == 0 {
        return Err(failed(io::ErrorKind::TimedOut.into()));
    }
    let frames = frames as f64;
    let moves = matches!(arguments.link, BenchLink::Tcp | BenchLink::Udp) && arguments.talk == BenchTalk::OneWay;
    Ok(Figures {
        events_per_s: frames / measured,
        bytes_per_s: moves.then(|| frames * f64::from(arguments.frame_bytes) / measured),
        cpu_us_per_event: cpu / frames * 1e6,
        round_trip_ns,
    })
}

fn between_processes(arguments: &LinkArguments, side: BenchSide, begin: impl FnOnce() -> Talk) -> io::Result<Talk> {
    let (ours, theirs) = UnixStream::pair()?;
    let _far = Sources(vec![spawn(arguments, side, theirs.into())?]);
    ours.set_read_timeout(Some(SILENCE_MAX))?;
    match side {
        BenchSide::Result => ours::converse(arguments, &ours, true, begin),
        BenchSide::Reference => bare::converse(arguments, &ours, true, begin),
    }
}

fn spawn(arguments: &LinkArguments, side: BenchSide, socket: OwnedFd) -> io::Result<Child> {
    let LinkArguments { link, talk, frame_bytes, window } = arguments;
    let side = if side == BenchSide::Result { "result" } else { "reference" };
    Command::new(std::env::current_exe()?)
        .args(["bench-part", "link", link.name(), talk.name(), side, &frame_bytes.to_string(), &window.to_string()])
        .stdin(Stdio::from(socket))
        .spawn()
}

/// Tells the other end a line.
fn say_line(mut socket: &UnixStream, line: &str) -> io::Result<()> {
    socket.write_all(format!("{line}\n").as_bytes())
}

/// What the other end says next; not a byte more is read.
fn listen_line(mut socket: &UnixStream) -> io::Result<String> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => return String::from_utf8(line).map_err(io::Error::other),
            [byte] => line.push(byte),
        }
    }
}

/// As many frames as keep both ends busy, and as a socket buffer holds.
fn window(frame_bytes: u32) -> u64 {
    u64::from((WINDOW_BYTES / frame_bytes).clamp(WINDOW_MIN, WINDOW_MAX))
}

/// Frames that the kernel holds for a receiver of datagrams: it reckons each with the memory that it allots for it.
fn udp_room(frame_bytes: u32) -> Result<u64, BenchError> {
    let granted = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| {
        sockopt::set_socket_recv_buffer_size_force(&socket, UDP_BUFFER_BYTES)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, UDP_BUFFER_BYTES))?;
        Ok(sockopt::socket_recv_buffer_size(&socket)?)
    });
    let granted = granted.map_err(|error| BenchError::System { what: "a socket for datagrams", error })?;
    Ok(granted as u64 / (2 * u64::from(frame_bytes) + KERNEL_OVERHEAD_BYTES))
}

const FRAME_BYTES: [u32; 5] = [64, 1 << 10, 9000, 64 << 10, 1 << 20];
const _: () = assert!(FRAME_BYTES[0] as usize >= HEAD_BYTES, "a frame has a beginning");
const PAIRS: usize = 5;
/// All of them take less than a minute then.
const POINTS_PER_MEASUREMENT: f64 = 45.0;
const WINDOW_BYTES: u32 = 1 << 20;
const WINDOW_MIN: u32 = 4;
const WINDOW_MAX: u32 = 1024;
const UDP_BUFFER_BYTES: usize = 16 << 20;
const KERNEL_OVERHEAD_BYTES: u64 = 2048;
const SILENCE_MAX: Duration = Duration::from_secs(10);
