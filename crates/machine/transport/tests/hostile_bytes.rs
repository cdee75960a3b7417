//! What a TCP peer that does not speak our language can do: nothing but be refused with a reason.

use base::bulk::PageSlice;
use base::time::Time;
use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;
use transport::clock;
use transport::frame::FrameLimits;
use transport::link::{Filled, Flushed, Link, Lost};
use transport::page_pool::{Pool, PoolOptions};
use transport::tcp::{Connection, InvalidOptions, ListenError, Listener, TcpOptions};

const PAGE_LEN: usize = 4096;
const LEN_MIN: usize = 8;
/// Far above what anything here takes, so that only what hangs meets it.
const PATIENCE: Duration = Duration::from_secs(600);

#[test]
fn nothing_at_all() {
    assert_eq!(receive_all(|_| ()), (vec![], Lost::Closed));
}

#[test]
fn a_truncated_length_field() {
    let outcome = receive_all(|stream| stream.write_all(&[16, 0]).unwrap());
    assert_eq!(outcome, (vec![], Lost::ClosedWithinFrame { received_len: 2 }));
}

#[test]
fn half_a_frame() {
    let outcome = receive_all(|stream| {
        stream.write_all(&[frame(100), frame(100)[..50].to_vec()].concat()).unwrap();
    });
    assert_eq!(outcome, (vec![frame(100)], Lost::ClosedWithinFrame { received_len: 50 }));
}

#[test]
fn impossible_lengths() {
    for len in [0, 1, LEN_MIN as u32 - 1, PAGE_LEN as u32 + 1, 0x7fff_ffff, 0xffff_ffff] {
        let stream = [frame(30), len.to_le_bytes().to_vec(), vec![0; 5000]].concat();
        let (frames, lost) = receive_all(|peer| peer.write_all(&stream).unwrap());
        assert_eq!(frames, [frame(30)]);
        let Lost::Malformed(malformed) = lost else { panic!("{len}: {lost}") };
        assert_eq!((malformed.offset, malformed.len), (30, len));
        assert!(malformed.to_string().contains("byte 30 of the stream"), "{malformed}");
    }
}

#[test]
fn a_byte_at_a_time() {
    let stream = [frame(LEN_MIN), frame(300), frame(9)].concat();
    let outcome = receive_all(|peer| {
        peer.set_nodelay(true).unwrap();
        stream.iter().for_each(|byte| peer.write_all(&[*byte]).unwrap());
    });
    assert_eq!(outcome, (vec![frame(LEN_MIN), frame(300), frame(9)], Lost::Closed));
}

#[test]
fn a_reset() {
    let fixture = Fixture::new();
    let (mut peer, mut connection) = fixture.connect();
    // A socket that is closed with bytes unread resets its peer.
    let head = [u32::to_le_bytes(2000).as_slice(), &[0; 1996]].concat();
    connection.send(&head, &Default::default()).unwrap();
    assert_eq!(connection.flush(clock::now()), Ok(Flushed::All));
    peer.read_exact(&mut [0; 1]).unwrap();
    drop(peer);
    assert_eq!(receive(&mut connection), (vec![], Lost::Reset));
    fixture.check_pages_home();
}

#[test]
fn nobody_listens() {
    let fixture = Fixture::new();
    // Bound, so that nobody else gets the port, but not listening.
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&bound, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = SocketAddr::try_from(getsockname(&bound).unwrap()).unwrap();
    let deadline = Time::from_ns(u64::MAX);
    let mut connection = Connection::connect(address, &fixture.options, &fixture.pool, deadline).unwrap();
    connection.send(&frame(20), &Default::default()).unwrap();
    assert_eq!(receive(&mut connection), (vec![], Lost::Refused));
    assert_eq!(connection.flush(clock::now()), Err(Lost::Refused));
}

#[test]
fn a_peer_that_never_accepts() {
    let fixture = Fixture::new();
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    listen(&listener, 0).unwrap();
    let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
    let deadline = Time::from_ns(u64::MAX);
    let connect = || Connection::connect(address, &fixture.options, &fixture.pool, deadline).unwrap();
    // More than wait in line: the last is left without an answer.
    let mut connections: Vec<_> = (0..4).map(|_| connect()).collect();
    let last = connections.last_mut().unwrap();
    last.send(&frame(20), &Default::default()).unwrap();
    assert_eq!(last.flush(clock::now()), Ok(Flushed::WouldBlock));
    assert_eq!(last.fill(clock::now()), Ok(Filled::WouldBlock));
    assert_eq!((last.next_deadline(), last.is_receivable(deadline)), (Some(deadline), true));
    assert_eq!(last.fill(deadline), Err(Lost::ConnectTimedOut));
    assert_eq!(last.flush(deadline), Err(Lost::ConnectTimedOut));
}

#[test]
fn an_empty_pool_holds_the_peer_back_and_loses_nothing() {
    let fixture = Fixture::new();
    let (mut peer, mut connection) = fixture.connect();
    let frames: Vec<_> = (0..100).map(|index| frame(2000 + index)).collect();
    let stream = frames.concat();
    let writer = std::thread::spawn(move || peer.write_all(&stream).unwrap());
    let watchdog = clock::now();
    let (mut held, mut received) = (Vec::<PageSlice>::new(), Vec::new());
    while received.len() < frames.len() {
        while let Some(slice) = connection.next_slice() {
            received.push(slice.as_bytes().to_vec());
            held.push(slice);
        }
        if received.len() < frames.len() && connection.fill(clock::now()).unwrap() == Filled::PoolEmpty {
            assert!(!connection.is_receivable(clock::now()));
            held.clear();
            assert!(connection.is_receivable(clock::now()));
        }
        assert!(clock::now().since(watchdog) < PATIENCE, "nothing moves any more");
    }
    writer.join().unwrap();
    assert!(received == frames && connection.counters().pool_empty > 0);
    drop((held, connection));
    fixture.check_pages_home();
}

#[test]
fn a_peer_within_a_frame_is_lost_where_its_next_pool_has_no_page() {
    let (fixture, next) = (Fixture::new(), Fixture::new());
    let (mut peer, mut connection) = fixture.connect();
    peer.write_all(&[frame(100), frame(100)[..50].to_vec()].concat()).unwrap();
    let watchdog = clock::now();
    while connection.counters().bytes_received < 150 {
        connection.fill(clock::now()).unwrap();
        let whole = connection.next_slice();
        assert!(whole.is_none_or(|whole| whole.as_bytes() == frame(100)));
        assert!(clock::now().since(watchdog) < PATIENCE, "nothing moves any more");
    }
    let taken: Vec<_> = std::iter::from_fn(|| next.pool.take()).collect();
    connection.renew(&next.options, &next.pool).unwrap();
    peer.write_all(&frame(100)[50..]).unwrap();
    assert_eq!(receive(&mut connection), (vec![], Lost::NoPage));
    assert_eq!(connection.counters().pool_empty, 1);
    drop((connection, taken));
    fixture.check_pages_home();
    next.check_pages_home();
}

#[test]
fn impossible_settings_are_errors() {
    let fixture = Fixture::new();
    let refused = |change: fn(&mut TcpOptions)| {
        let mut options = fixture.options.clone();
        change(&mut options);
        Connection::connect(fixture.listener.local_address(), &options, &fixture.pool, clock::now()).unwrap_err()
    };
    let long_frames = refused(|options| options.limits = FrameLimits::new(LEN_MIN, PAGE_LEN + 1).unwrap());
    assert!(matches!(long_frames, InvalidOptions::PageTooSmall { .. }));
    let short_queue = refused(|options| options.queue_bytes_max = PAGE_LEN - 1);
    assert!(matches!(short_queue, InvalidOptions::QueueTooSmall { .. }));
    assert_eq!(refused(|options| options.read_budget_bytes = 0), InvalidOptions::NoReadBudget);
    let unknown = refused(|options| options.congestion_control = Some("no-such".into()));
    let text = unknown.to_string();
    assert!(text.starts_with("TCP congestion control \"no-such\": ") && text.contains("one of reno"), "{text}");
    let taken = Listener::bind(fixture.listener.local_address(), &fixture.options).unwrap_err();
    assert!(matches!(taken, ListenError::Address { .. }));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_bytes(stream in prop::collection::vec(prop_oneof![3 => Just(0_u8), 1 => any::<u8>()], 0..20_000)) {
        let (frames, lost) = receive_all(|peer| {
            // The receiver may have refused before everything is written.
            let _ = peer.write_all(&stream);
        });
        let received: Vec<u8> = frames.concat();
        prop_assert_eq!(&received[..], &stream[..received.len()]);
        match lost {
            Lost::Closed => prop_assert_eq!(received.len(), stream.len()),
            Lost::ClosedWithinFrame { received_len } => prop_assert_eq!(received.len() + received_len, stream.len()),
            Lost::Malformed(malformed) => prop_assert_eq!(malformed.offset, received.len() as u64),
            other => prop_assert!(false, "{}", other),
        }
    }
}

struct Fixture {
    pool: Pool,
    options: TcpOptions,
    listener: Listener,
}

impl Fixture {
    fn new() -> Self {
        let options = PoolOptions { name: "receive".into(), page_len: PAGE_LEN, pages: 2, prefault: false };
        let pool = Pool::new(&options).unwrap();
        let options = TcpOptions::new(FrameLimits::new(LEN_MIN, PAGE_LEN).unwrap());
        let listener = Listener::on_loopback(&options).unwrap();
        Self { pool, options, listener }
    }

    fn connect(&self) -> (TcpStream, Connection) {
        let peer = TcpStream::connect(self.listener.local_address()).unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        peer.set_write_timeout(Some(PATIENCE)).unwrap();
        let watchdog = clock::now();
        loop {
            if let Some(connection) = self.listener.accept(&self.options, &self.pool).unwrap() {
                return (peer, connection);
            }
            assert!(clock::now().since(watchdog) < PATIENCE, "nobody is accepted");
            std::thread::yield_now();
        }
    }

    fn check_pages_home(&self) {
        assert_eq!(self.pool.counters().in_use, 0);
    }
}

/// What arrives from a peer that writes what `write` does and closes.
fn receive_all(write: impl FnOnce(&mut TcpStream) + Send) -> (Vec<Vec<u8>>, Lost) {
    let fixture = Fixture::new();
    let (mut peer, mut connection) = fixture.connect();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            write(&mut peer);
            let _ = peer.shutdown(Shutdown::Write);
        });
        let outcome = receive(&mut connection);
        drop(connection);
        outcome
    });
    fixture.check_pages_home();
    outcome
}

fn receive(connection: &mut Connection) -> (Vec<Vec<u8>>, Lost) {
    let watchdog = clock::now();
    let mut frames = Vec::new();
    loop {
        while let Some(slice) = connection.next_slice() {
            frames.push(slice.as_bytes().to_vec());
        }
        if let Err(lost) = connection.fill(clock::now()) {
            assert_eq!(connection.fill(clock::now()), Err(lost), "a loss lasts");
            return (frames, lost);
        }
        assert!(clock::now().since(watchdog) < PATIENCE, "nothing moves any more");
        std::thread::yield_now();
    }
}

fn frame(len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|index| index as u8).collect();
    bytes[..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
    bytes
}
