//! `weir bench transport`: frames of several lengths through one link of each kind, with the bare machine doing the same.
//!
//! One way, an end sends as many frames as a window allows, and the other end says every quarter of it how many
//! have come. For the latency, a frame goes there and back. The ends are two processes, of a local link two
//! threads. Over TCP and UDP all bytes move. In shared memory and inside a process only handles move, on data that
//! were filled once, on either side. So no rate of bytes is told there. [`bare`] says what the references are.

mod bare;
mod batches;
mod line;
mod ours;
mod slots;
mod talk;
mod udp_link;

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
use super::PATIENCE;
use super::paired::{Compared, Comparison, Figures, RatioOf, Unit};
use super::reference::Sources;
use crate::bench::arguments::{BenchArgs, BenchLink, BenchSide, BenchTalk};
use partition::cpu::cpu_seconds;
use talk::{HEAD_BYTES, Talk};

/// All kinds of links with all lengths of frames.
#[derive(Serialize)]
pub(crate) struct Found {
    /// One way over TCP with frames of [`MAIN_FRAME_BYTES`].
    #[serde(flatten)]
    main: Comparison<LinkArguments>,
    pairs: usize,
    /// Of each single measurement one way, and there and back.
    seconds: [f64; 2],
    points: Vec<Point>,
}

/// One kind and length.
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
    let [one_way_s, ping_pong_s] = [args.seconds / ONE_WAYS, args.seconds / PING_PONGS];
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
                let (ratio_of, seconds) = match talk {
                    BenchTalk::OneWay => (RatioOf::EventsPerS, one_way_s),
                    BenchTalk::PingPong => (RatioOf::RoundTripNs, ping_pong_s),
                };
                let open = |side| Ends::open(arguments, side);
                let (mut ours, mut bare) = (open(BenchSide::Result)?, open(BenchSide::Reference)?);
                for ends in [&mut ours, &mut bare] {
                    ends.measure(seconds / WARM_UPS)?;
                }
                let pairs = (PAIRS, ratio_of);
                Comparison::measure("transport", arguments, pairs, || ours.measure(seconds), || bare.measure(seconds))
            };
            let (one_way, ping_pong) = (compare(BenchTalk::OneWay)?, compare(BenchTalk::PingPong)?);
            points.push(Point { link, frame_bytes, one_way, ping_pong });
        }
    }
    let is_main = |point: &&Point| point.link == BenchLink::Tcp && point.frame_bytes == MAIN_FRAME_BYTES;
    let main = points.iter().find(is_main).expect("it is one of them").one_way.clone();
    Ok(Found { main, pairs: PAIRS, seconds: [one_way_s, ping_pong_s], points })
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
            let (one_way, ping_pong) = (one_way.compared(), ping_pong.compared());
            let (figures, back) = (one_way.result(), ping_pong.result());
            let rate = figures.bytes_per_s.map_or("-".to_owned(), |bytes| format!("{:.3}", bytes / 1e9));
            let [ratio, back_ratio] = [one_way, ping_pong].map(Compared::ratio_text);
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

/// The life of the far end; the socket is its standard input. It holds a conversation each time that it is told to, and says
/// what processor time that took.
pub(super) fn far_main(arguments: &LinkArguments, side: BenchSide) -> io::Result<()> {
    let socket = UnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let mut session = open_session(arguments, side, &socket, false)?;
    while listen_line(&socket).is_ok() {
        let mut talk = Talk::far(arguments.talk, arguments.frame_bytes as usize, arguments.window);
        let cpu_before = cpu_seconds(UsageWho::RUSAGE_SELF);
        say_line(&socket, "ready")?;
        session.hold(&mut talk)?;
        let cpu = cpu_seconds(UsageWho::RUSAGE_SELF) - cpu_before;
        if !talk.is_done() {
            // The peer is gone.
            return Ok(());
        }
        say_line(&socket, &cpu.to_string())?;
    }
    Ok(())
}

/// One end of a link between processes.
trait Session {
    /// Holds a conversation from this end, until it is over or the peer is gone.
    fn hold(&mut self, talk: &mut Talk) -> io::Result<()>;
}

fn open_session(
    arguments: &LinkArguments,
    side: BenchSide,
    socket: &UnixStream,
    is_near: bool,
) -> io::Result<Box<dyn Session>> {
    Ok(match side {
        BenchSide::Result => Box::new(ours::LinkEnd::open(arguments, socket, is_near)?),
        BenchSide::Reference => Box::new(bare::LineEnd::open(arguments, socket, is_near)?),
    })
}

/// Both ends of a link, for any number of conversations.
struct Ends {
    arguments: LinkArguments,
    side: BenchSide,
    /// The near end, the socket to the far one, and its process; `None` for a local link, which is made for each conversation.
    processes: Option<(Box<dyn Session>, UnixStream, Sources)>,
}

/// What a conversation took, from the first frame to the last acknowledgement.
struct Held {
    talk: Talk,
    seconds: f64,
    cpu_seconds: f64,
}

impl Ends {
    fn open(arguments: LinkArguments, side: BenchSide) -> Result<Self, BenchError> {
        let processes = (arguments.link != BenchLink::Local)
            .then(|| {
                let (ours, theirs) = UnixStream::pair()?;
                let far = Sources(vec![spawn(&arguments, side, theirs.into())?]);
                ours.set_read_timeout(Some(SILENCE_MAX))?;
                Ok((open_session(&arguments, side, &ours, true)?, ours, far))
            })
            .transpose()
            .map_err(failed)?;
        Ok(Self { arguments, side, processes })
    }

    fn measure(&mut self, seconds: f64) -> Result<Figures, BenchError> {
        let LinkArguments { link, talk: kind, frame_bytes, .. } = self.arguments;
        let Held { talk, seconds, cpu_seconds } = self.talk(seconds).map_err(failed)?;
        if !talk.is_done() {
            let (link, frames) = (link.name(), talk.measured().0);
            let text = format!("nothing comes any more over {link} behind {frames} frames of {frame_bytes} B");
            return Err(failed(io::Error::new(io::ErrorKind::TimedOut, text)));
        }
        let (frames, round_trip_ns) = talk.measured();
        let frames = frames as f64;
        let moves = matches!(link, BenchLink::Tcp | BenchLink::Udp) && kind == BenchTalk::OneWay;
        Ok(Figures {
            unit: Unit::Frame,
            round_trip_ns,
            ..Figures::of(frames, moves.then_some(f64::from(frame_bytes)), seconds, cpu_seconds)
        })
    }

    fn talk(&mut self, seconds: f64) -> io::Result<Held> {
        let LinkArguments { link: _, talk, frame_bytes, window } = self.arguments;
        let own_cpu = || cpu_seconds(UsageWho::RUSAGE_SELF);
        let (mut cpu_before, mut began) = (0.0, clock::now());
        let mut begin = || {
            (cpu_before, began) = (own_cpu(), clock::now());
            Talk::near(talk, frame_bytes as usize, window, began + Duration::from_secs_f64(seconds))
        };
        let Some((session, socket, _)) = &mut self.processes else {
            let far = Talk::far(talk, frame_bytes as usize, window);
            let talk = match self.side {
                BenchSide::Result => ours::converse_locally(&self.arguments, far, begin)?,
                BenchSide::Reference => bare::converse_locally(&self.arguments, far, begin)?,
            };
            let seconds = clock::now().since(began).as_secs_f64();
            return Ok(Held { talk, seconds, cpu_seconds: own_cpu() - cpu_before });
        };
        say_line(socket, "begin")?;
        listen_line(socket)?;
        let mut talk = begin();
        session.hold(&mut talk)?;
        let (seconds, near_cpu) = (clock::now().since(began).as_secs_f64(), own_cpu() - cpu_before);
        let far_cpu = if talk.is_done() { listen_line(socket)?.parse().map_err(io::Error::other)? } else { 0.0 };
        Ok(Held { talk, seconds, cpu_seconds: near_cpu + far_cpu })
    }
}

fn failed(error: io::Error) -> BenchError {
    BenchError::System { what: "frames through a link", error }
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

const FRAME_BYTES: [u32; 5] = [64, 1 << 10, MAIN_FRAME_BYTES, 64 << 10, 1 << 20];
const MAIN_FRAME_BYTES: u32 = 9000;
const _: () = assert!(FRAME_BYTES[0] as usize >= HEAD_BYTES, "a frame has a beginning");
const PAIRS: usize = 5;
/// All measurements together take less than 45 s then.
const ONE_WAYS: f64 = 25.0;
const PING_PONGS: f64 = 50.0;
/// What is not counted before, so that memory is touched, by the length of a measurement.
const WARM_UPS: f64 = 10.0;
const WINDOW_BYTES: u32 = 1 << 20;
const WINDOW_MIN: u32 = 4;
const WINDOW_MAX: u32 = 1024;
const UDP_BUFFER_BYTES: usize = 16 << 20;
const KERNEL_OVERHEAD_BYTES: u64 = 2048;
const SILENCE_MAX: Duration = PATIENCE;
