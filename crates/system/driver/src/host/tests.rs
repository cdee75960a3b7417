//! A process and its connections, without components.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use assembly::Assembly;
use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, Incarnation, NodeId, RunNumber};
use configuration::Partition;
use dataflow::message::{BuiltEvent, Envelope, EventInfo, Message};
use dataflow::node::RUN_CONTROL;
use membership::challenge::{Member, Prover};
use membership::passage::Medium;
use membership::run_secret::RunSecret;
use transport::clock;
use transport::idle::IdleStrategy;
use transport::scheduler::Scheduler;

use super::{Host, LinkEvent, LinkId, Links, NetworkOptions, PeerAddress, Strand};

/// What a peer sent before it went is delivered, although sending to it has failed meanwhile.
#[test]
fn a_peer_that_takes_no_more_is_heard_to_its_end() {
    for connections in ["tcp", "shm"] {
        let (mut first, mut second) = (process(connections, FIRST), process(connections, SECOND));
        let kind = if connections == "shm" { Medium::Shm } else { Medium::Tcp };
        let address = second.host.links.address().unwrap();
        let (link, from_first) = connected((&mut first, &mut second), &address, kind);
        let envelope = said_by(SECOND);
        for _ in 0..FRAMES {
            second.host.send_over(from_first, &envelope, &Message::NoMore);
        }
        until(|| {
            first.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            second.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            second.host.links.flush(clock::now());
            first.host.links.flush(clock::now());
            let _ = second.host.links.fill(clock::now(), from_first);
            second.host.links.is_flushed().then_some(())
        });
        second.host.links.close(from_first);
        let is_lost = |first: &mut Process| {
            let connection = first.host.links.connection(link).unwrap().link_mut();
            connection.flush(clock::now()).is_err()
        };
        until(|| {
            first.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            first.host.send_over(link, &said_by(FIRST), &Message::NoMore);
            is_lost(&mut first).then_some(())
        });
        first.host.send_over(link, &said_by(FIRST), &Message::NoMore);
        assert!(first.host.link_events.is_empty(), "{connections}: {:?}", first.host.link_events);
        let mut heard = Vec::new();
        until(|| {
            first.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            first.host.receive(clock::now(), link);
            heard.extend(first.host.link_events.drain(..));
            matches!(heard.last(), Some(LinkEvent::Lost { .. })).then_some(())
        });
        let messages = heard.iter().filter(|event| matches!(event, LinkEvent::Message { .. })).count();
        assert_eq!((messages, heard.len()), (FRAMES, FRAMES + 1), "{connections}");
    }
}

/// A proxy between two processes repeats a frame, keeps one, lets one overtake another, or puts one of another
/// connection in its place. Each is noticed with the next frame. What came before is delivered.
#[test]
fn a_proxy_that_repeats_drops_swaps_or_splices_frames_is_found() {
    let mut of_another = Vec::new();
    for meddling in [Meddling::None, Meddling::Repeat, Meddling::Drop, Meddling::Swap, Meddling::Splice] {
        let (mut first, mut second) = (process("tcp", FIRST), process("tcp", SECOND));
        let mut address = second.host.links.address().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let behind = core::mem::replace(&mut address.tcp, listener.local_addr().unwrap());
        let splice = core::mem::take(&mut of_another);
        let proxy = thread::spawn(move || relay(&listener, behind, meddling, &splice));
        let (link, from_first) = connected((&mut first, &mut second), &address, Medium::Tcp);
        let envelope = said_by(FIRST);
        for number in 0..FRAMES {
            first.host.send_over(link, &envelope, &Message::Taken(number as u64));
        }
        let mut heard = Vec::new();
        until(|| {
            let _ = first.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            let _ = second.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            first.host.links.flush(clock::now());
            second.host.receive(clock::now(), from_first);
            heard.extend(second.host.link_events.drain(..));
            (heard.len() == FRAMES || matches!(heard.last(), Some(LinkEvent::Lost { .. }))).then_some(())
        });
        let taken = heard.iter().map_while(|event| match event {
            LinkEvent::Message { message: Message::Taken(number), .. } => Some(*number),
            _ => None,
        });
        let taken: Vec<u64> = taken.collect();
        let expected = match meddling {
            Meddling::None => FRAMES,
            Meddling::Repeat => MEDDLED + 1,
            Meddling::Drop | Meddling::Swap | Meddling::Splice => MEDDLED,
        };
        assert_eq!(taken, (0..expected as u64).collect::<Vec<_>>(), "{meddling:?}");
        if meddling != Meddling::None {
            let Some(LinkEvent::Lost { reason, .. }) = heard.last() else { panic!("{meddling:?}: not noticed") };
            assert!(reason.contains("drops, repeats or mixes frames"), "{meddling:?}: {reason}");
            assert_eq!((heard.len(), second.host.network.malformed), (expected + 1, 1), "{meddling:?}");
            assert!(second.host.links.connection(from_first).is_none(), "it is ended at once");
        }
        drop((first, second));
        of_another = proxy.join().unwrap();
    }
}

/// It could clear events in the name of the dataflow manager, or stop triggers in that of a read-out system.
#[test]
fn a_member_that_speaks_in_the_name_of_another_is_ended() {
    let other = (NodeId(7), FIRST.1);
    let later = (FIRST.0, Incarnation(FIRST.1.0 + 1));
    for said in [other, later] {
        let (mut first, mut second) = (process("tcp", FIRST), process("tcp", SECOND));
        let address = second.host.links.address().unwrap();
        let (link, from_first) = connected((&mut first, &mut second), &address, Medium::Tcp);
        second.host.links.open(from_first);
        first.host.send_over(link, &said_by(said), &Message::NoMore);
        let event = until(|| {
            let _ = second.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            first.host.links.flush(clock::now());
            second.host.receive(clock::now(), from_first);
            second.host.link_events.pop_front()
        });
        let LinkEvent::Lost { reason, .. } = event else { panic!("{event:?}") };
        assert!(reason.contains("another than it has proved to be"), "{reason}");
        assert_eq!(second.host.network.malformed, 1);
    }
}

/// Slower than members are, it was shown out each time it came, as others came again at once.
#[test]
fn a_slow_member_that_returns_was_shown_out_for_strangers_again_and_again() {
    let (mut first, mut second) = (process("tcp", FIRST), process("tcp", SECOND));
    let address = second.host.links.address().unwrap();
    let (_, from_first) = connected((&mut first, &mut second), &address, Medium::Tcp);
    let door = address.tcp;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| crowd(door, &is_over));
        second.host.links.close(from_first);
        until(|| {
            let (waker, strand, now) =
                (first.scheduler.waker(), Strand { medium: Medium::Tcp, port: None }, clock::now());
            let poller = first.scheduler.poller();
            first.host.links.connect((SECOND, &address), strand, now, poller, &waker).unwrap();
            first.host.link_events.clear();
            // It says nothing for so long after it has connected, and then all that it has to say.
            while clock::now().since(now) < SLOWNESS {
                turn(&mut second);
            }
            until(|| {
                turn(&mut first);
                turn(&mut second);
                first.host.link_events.pop_front()
            });
            let is_back = |event: &LinkEvent| matches!(event, LinkEvent::Proven { .. });
            second.host.link_events.iter().any(is_back).then_some(())
        });
        is_over.store(true, Ordering::Relaxed);
    });
}

/// Strangers that come again as soon as they are shown out, more than there are places.
fn crowd(door: SocketAddr, is_over: &AtomicBool) {
    let come = || {
        let stranger = TcpStream::connect(door).unwrap();
        stranger.set_nonblocking(true).unwrap();
        stranger
    };
    let mut strangers: Vec<TcpStream> = (0..600).map(|_| come()).collect();
    while !is_over.load(Ordering::Relaxed) {
        for stranger in &mut strangers {
            let is_out = match stranger.read(&mut [0; 128]) {
                Ok(bytes) => bytes == 0,
                Err(error) => error.kind() != ErrorKind::WouldBlock,
            };
            if is_out {
                *stranger = come();
            }
        }
    }
}

/// Accepts who waits, and hears what is said.
fn turn(process: &mut Process) {
    process.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
    let waker = process.scheduler.waker();
    while process.host.links.accept(clock::now(), process.scheduler.poller(), &waker).unwrap().is_some() {}
    process.host.hear_unproven(clock::now());
    process.host.links.flush(clock::now());
}

/// A message to run control.
fn said_by((from, from_incarnation): Member) -> Envelope {
    Envelope { from, to: RUN_CONTROL, run: RunNumber(0), from_incarnation, to_incarnation: Incarnation::FIRST }
}

/// What a proxy does to one of the frames behind the proof.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meddling {
    None,
    Repeat,
    Drop,
    Swap,
    Splice,
}

/// A peer that was stopped took no more, and what was sent to it without a credit filled the memory.
#[test]
fn a_peer_that_takes_nothing_loses_what_is_repeated_and_then_its_connection() {
    let (mut first, mut second) = (process("tcp", FIRST), process("tcp", SECOND));
    let address = second.host.links.address().unwrap();
    let (link, _) = connected((&mut first, &mut second), &address, Medium::Tcp);
    let reply =
        Message::EventReply { pushed: 0, replies: Vec::new(), bulk: Bulk::Pages(PageSlice::from(vec![0; 300_000])) };
    until(|| {
        first.host.send_over(link, &said_by(FIRST), &reply);
        (first.host.network().datagrams.not_sent == 100).then_some(())
    });
    assert!(first.host.link_events.is_empty(), "{:?}", first.host.link_events);
    let notice = Message::Notice("x".repeat(60_000));
    let lost = until(|| {
        first.host.send_over(link, &said_by(FIRST), &notice);
        first.host.link_events.pop_front()
    });
    assert!(matches!(&lost, LinkEvent::Lost { reason, .. } if reason.contains("it has not taken")), "{lost:?}");
}

/// A peer that had given more credits than it has ended the whole process, or would have missed a message.
#[test]
fn beyond_its_credits_a_peer_that_takes_nothing_loses_its_connection() {
    let (mut first, mut second) = (process("tcp", FIRST), process("tcp", SECOND));
    let address = second.host.links.address().unwrap();
    let (link, _) = connected((&mut first, &mut second), &address, Medium::Tcp);
    let bulk = Bulk::Pages(PageSlice::from(vec![0; 300_000]));
    let built = BuiltEvent { event: EventInfo::default(), oldest_unfinished: EventId(0), missing: Vec::new(), bulk };
    let built = Message::BuiltEvent(built);
    let lost = until(|| {
        first.host.send_over(link, &said_by(FIRST), &built);
        first.host.link_events.pop_front()
    });
    assert!(matches!(&lost, LinkEvent::Lost { reason, .. } if reason.contains("wait to be sent")), "{lost:?}");
    assert!(first.host.links.connection(link).is_none(), "nothing follows what was left out");
}

/// Relays a connection, and returns the frames that came from the one who has made it.
fn relay(listener: &TcpListener, to: SocketAddr, meddling: Meddling, of_another: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut from = listener.accept().unwrap().0;
    let mut to = TcpStream::connect(to).unwrap();
    let (mut back_from, mut back_to) = (to.try_clone().unwrap(), from.try_clone().unwrap());
    let back = thread::spawn(move || _ = std::io::copy(&mut back_from, &mut back_to));
    let (mut frames, mut kept) = (Vec::new(), None);
    while let Some(frame) = read_frame(&mut from) {
        let mut said = vec![frame.clone()];
        // The first of all proves who speaks.
        if frames.len() == 1 + MEDDLED {
            match meddling {
                Meddling::None => {}
                Meddling::Repeat => said.push(frame.clone()),
                Meddling::Drop => said.clear(),
                Meddling::Swap => kept = said.pop(),
                Meddling::Splice => said[0].clone_from(&of_another[frames.len()]),
            }
        } else {
            said.extend(kept.take());
        }
        frames.push(frame);
        // The peer ends the connection once it has noticed.
        let _ = to.write_all(&said.concat());
    }
    let _ = to.shutdown(Shutdown::Both);
    back.join().unwrap();
    frames
}

fn read_frame(from: &mut TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; 4];
    from.read_exact(&mut frame).ok()?;
    frame.resize(u32::from_le_bytes(*frame.first_chunk().unwrap()) as usize, 0);
    from.read_exact(&mut frame[4..]).ok()?;
    Some(frame)
}

/// The first connects to the second there, and they have proved to each other who they are: the links of both.
fn connected((first, second): (&mut Process, &mut Process), at: &PeerAddress, medium: Medium) -> (LinkId, LinkId) {
    let (waker, now) = (first.scheduler.waker(), clock::now());
    let (strand, poller) = (Strand { medium, port: None }, first.scheduler.poller());
    let link = first.host.links.connect((SECOND, at), strand, now, poller, &waker).unwrap();
    let proven = |process: &mut Process| {
        process.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
        let waker = process.scheduler.waker();
        let _ = process.host.links.accept(clock::now(), process.scheduler.poller(), &waker).unwrap();
        process.host.hear_unproven(clock::now());
        process.host.links.flush(clock::now());
        match process.host.link_events.pop_front() {
            Some(LinkEvent::Proven { link }) => Some(link),
            None => None,
            event => panic!("{event:?}"),
        }
    };
    let (mut at_first, mut at_second) = (None, None);
    until(|| {
        at_first = at_first.or_else(|| proven(first));
        at_second = at_second.or_else(|| proven(second));
        at_first.zip(at_second).filter(|(first, _)| *first == link)
    })
}

struct Process {
    host: Host,
    scheduler: Scheduler<'static, Host>,
}

fn process(connections: &str, here: Member) -> Process {
    let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
    let partition = Partition::parse("p", text, &[format!("transport.connections={connections}")]).unwrap();
    let mut scheduler = Scheduler::<Host>::new(IdleStrategy::Yield).unwrap();
    let waker = scheduler.waker();
    let options = NetworkOptions::new(&Assembly::new(partition, Vec::new()), &[1]);
    let shares = options.shares();
    let prover = Prover::new(&RunSecret::new("key", &[1; 16]), RunNumber(1), here);
    let mut links = Links::listen(options, prover, shares, scheduler.poller(), &waker).unwrap();
    links.share(Vec::new(), &waker).unwrap();
    Process { host: Host::empty(links), scheduler }
}

/// What is about to happen between the two has happened.
fn until<T>(mut happens: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::now() + PATIENCE;
    loop {
        if let Some(done) = happens() {
            return done;
        }
        assert!(clock::now() < deadline, "nothing happens between the two");
    }
}

const FIRST: Member = (NodeId(1), Incarnation::FIRST);
const SECOND: Member = (NodeId(2), Incarnation::FIRST);
const FRAMES: usize = 100;
/// The message that a proxy meddles with.
const MEDDLED: usize = 40;

/// More than a stranger stays while members are quick.
const SLOWNESS: Duration = Duration::from_millis(300);

/// What needs milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(600);
