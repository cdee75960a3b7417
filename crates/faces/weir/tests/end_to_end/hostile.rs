//! Strangers at the doors of a run: whatever they say, the run goes on, and what they said is counted.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::ids::{Incarnation, NodeId, RunNumber};
use dataflow::message::{Command, Envelope, Message};
use dataflow::wire::{HEADER_LEN, encode};
use nix::sys::signal::Signal;

use crate::children::{listening, of, resident_bytes};
use crate::running::{Job, Running, recorded_bytes, send, within_deadline};

#[test]
fn a_run_goes_on_whatever_strangers_say() {
    let mut running = start();
    running.until_recording();
    let doors = doors(&running);
    let mut held = Vec::new();
    for door in &doors {
        for (what, bytes) in bad_frames() {
            say(&running, *door, what, &bytes);
        }
        drop(TcpStream::connect(door).unwrap());
        held.push(half_a_frame(*door));
    }
    within_deadline("who never finishes a message is shown out", || held.iter_mut().all(is_closed));
    let output = running.output();
    let before = recorded_bytes(&output);
    running.until("events are still recorded", |_| recorded_bytes(&output) > before);
    let processes: Vec<i32> = of(running.pid()).into_iter().chain([running.pid()]).collect();
    for pid in processes {
        let bytes = resident_bytes(pid);
        assert!(0 < bytes && bytes < RESIDENT_BYTES_MAX, "{bytes} bytes");
    }
    running.signal(Signal::SIGINT);
    let (_, summary) = running.end().expect_ok();
    let malformed = summary.0["network"]["malformed"].as_u64().unwrap();
    let expected = (doors.len() * (bad_frames().len() + 1)) as u64;
    assert!(malformed >= expected, "{malformed} counted, {expected} said");
}

#[test]
fn strangers_do_not_keep_the_children_out() {
    let mut running = start();
    running.until("the parent listens", |running| !listening(running.pid()).is_empty());
    let (door, _) = listening(running.pid())[0];
    let mut held: Vec<TcpStream> = (0..20).map(|_| half_a_frame(door)).collect();
    for (what, bytes) in bad_frames() {
        say(&running, door, what, &bytes);
    }
    held.push(half_a_frame(door));
    running.until_recording();
    within_deadline("they are shown out", || held.iter_mut().all(is_closed));
    running.signal(Signal::SIGINT);
    running.end().expect_ok();
}

#[test]
fn a_stranger_who_says_nothing_is_shown_out() {
    let mut running = start();
    running.until_recording();
    let (door, _) = listening(running.pid())[0];
    let mut silent = TcpStream::connect(door).unwrap();
    silent.set_nonblocking(true).unwrap();
    within_deadline("the connection is closed", || is_closed(&mut silent));
    running.signal(Signal::SIGINT);
    running.end().expect_ok();
}

/// Each stranger has a place until the oldest has to go; those whose place it takes have no key.
#[test]
fn strangers_keep_no_application_from_returning() {
    for is_dribbling in [false, true] {
        let job = Job::example("quickstart").patient().set("ros.count", "2").set("level1.rate", "2 kHz");
        let mut running = job.set("processes.on_loss", "restart").endless().processes(true).start();
        running.until_recording();
        // Run control, and one to which an application that returns connects.
        let doors = [running.pid(), running.child("sfi-1")].map(|pid| listening(pid)[0].0);
        let crowd: Vec<TcpStream> =
            doors.iter().flat_map(|door| (0..CROWD).map(move |_| TcpStream::connect(door).unwrap())).collect();
        let goes_on = AtomicBool::new(is_dribbling);
        std::thread::scope(|scope| {
            scope.spawn(|| dribble(&crowd, &goes_on));
            for life in 1..=2 {
                send(running.child("efd-1"), Signal::SIGKILL);
                running.until("it is back", |running| running.error_output().matches("efd-1 is back").count() == life);
            }
            goes_on.store(false, Ordering::Relaxed);
        });
        running.until_more_is_recorded();
        let said = running.error_output();
        assert!(said.contains("512 connections have not proved the key of the run: 512 from 127.0.0.1"), "{said}");
        running.signal(Signal::SIGINT);
        let ended = running.end().expect(0);
        drop((ended, crowd));
    }
}

/// One byte of a frame after the other on all connections, until its end is reached.
fn dribble(crowd: &[TcpStream], goes_on: &AtomicBool) {
    let frame = with_length(HEADER_LEN as u32 + 64);
    let bytes = frame.iter().chain(&[0; 60]);
    for byte in bytes.take_while(|_| goes_on.load(Ordering::Relaxed)) {
        // Those that were shown out take nothing more.
        crowd.iter().for_each(|mut stranger| _ = stranger.write(&[*byte]));
    }
}

fn start() -> Running {
    Job::example("quickstart")
        .patient()
        .set("ros.count", "2")
        .set("level1.rate", "2 kHz")
        // How long a stranger may say nothing, too.
        .set("processes.start_timeout", "30 s")
        .endless()
        .processes(true)
        .start()
}

/// Where each process of a run listens.
fn doors(running: &Running) -> Vec<SocketAddr> {
    let children = of(running.pid());
    let doors: Vec<SocketAddr> =
        children.iter().copied().chain([running.pid()]).flat_map(listening).map(|(address, _)| address).collect();
    assert_eq!(doors.len(), children.len() + 1, "every process listens once");
    doors
}

/// Says something and waits for the door to be shut.
pub(crate) fn say(running: &Running, door: SocketAddr, what: &str, bytes: &[u8]) {
    let connected = TcpStream::connect(door);
    let mut stranger = connected.unwrap_or_else(|error| panic!("{what}: {error}\n{}", running.error_output()));
    // The peer may shut the door before all is said.
    let _ = stranger.write_all(bytes);
    let _ = stranger.shutdown(Shutdown::Write);
    stranger.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    within_deadline(&format!("{what}: the connection is closed"), || is_closed(&mut stranger));
}

pub(crate) fn half_a_frame(door: SocketAddr) -> TcpStream {
    let mut stranger = TcpStream::connect(door).unwrap();
    stranger.write_all(&with_length(HEADER_LEN as u32 + 64)).unwrap();
    stranger.write_all(&[0; 10]).unwrap();
    stranger.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    stranger
}

pub(crate) fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 256]) {
        Ok(read) => read == 0,
        Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted),
    }
}

/// What no peer sends before it has proved who it is.
pub(crate) fn bad_frames() -> Vec<(&'static str, Vec<u8>)> {
    let join = |name: &str| Message::Join { name: name.into(), address: "127.0.0.1:1".into() };
    let frame = |message: &Message| {
        let mut bytes = Vec::new();
        let (from, to) = (NodeId(1), NodeId(2));
        let life = Incarnation(0);
        let envelope = Envelope { from, to, run: RunNumber(1), from_incarnation: life, to_incarnation: life };
        encode(&envelope, message, &mut bytes);
        bytes
    };
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = frame(&Message::Ready { datagrams: Box::default() });
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let mut noise = 1_u32;
    let noise = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    });
    vec![
        ("random bytes", noise.take(4096).collect()),
        ("a truncated header", with_length(64)[..HEADER_LEN / 2].to_vec()),
        ("a truncated frame", with_length(5000)),
        ("length 0", with_length(0)),
        ("length 31", with_length(31)),
        ("the greatest length", with_length(u32::MAX)),
        ("another version", changed(26, &[0xff, 0xff])),
        ("a kind that does not exist", changed(24, &[0xe7, 3])),
        ("a body longer than its frame", changed(4, &[0xff; 4])),
        ("a text longer than its body", changed_text(frame(&join("sfi-1")))),
        ("a wrong proof", frame(&Message::Response { nonce: [1; 32], proof: [2; 32] })),
        ("a challenge in turn", frame(&Message::Challenge { nonce: [1; 32] })),
        ("a proof that nobody asked for", frame(&Message::Confirm { proof: [2; 32] })),
        ("a child without a proof", frame(&join("sfi-1"))),
        ("a name that does not exist", frame(&join("nobody-1"))),
        ("a peer without a proof", frame(&Message::Greet { part: 0, datagrams: Box::default() })),
        ("a command", frame(&Message::Command(Command::Abandon))),
        ("an order to end", frame(&Message::Command(Command::Exit))),
        ("a message of the data flow", frame(&Message::NoMore)),
        ("a message of a child", frame(&Message::Failed("made up".into()))),
        (
            "a loss that a child tells",
            frame(&Message::Lost { node: NodeId(1), life: Incarnation(0), reason: "made up".into() }),
        ),
        ("word that a peer is gone", frame(&Message::Gone(NodeId(1)))),
    ]
}

/// The length of a text in the body is what it should not be.
fn changed_text(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes[HEADER_LEN..HEADER_LEN + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    bytes
}

/// A header that promises a frame of this length.
fn with_length(bytes: u32) -> Vec<u8> {
    let mut header = vec![0; HEADER_LEN];
    header[..4].copy_from_slice(&bytes.to_le_bytes());
    header[26] = 1;
    header
}

/// How long one look at a connection lasts.
const READ_TIMEOUT: Duration = Duration::from_millis(20);

/// More than a process has places for.
const CROWD: usize = 600;

/// Several times what such a run needs, far below what a stranger can ask for.
pub(crate) const RESIDENT_BYTES_MAX: u64 = 600 << 20;
