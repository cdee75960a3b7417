//! The transports under test, with small pages, queues and kernel buffers so that every bound is met.

use crate::network::{Random, Treatment, carry};
use crate::suite::{COPY_BELOW, Fixture, LEN_MIN, PAGE_LEN, QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, Stranger, Watchdog};
use crate::udp_link::UdpLink;
use base::bulk::Bulk;
use base::time::Time;
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use transport::clock;
use transport::frame::{Frame, FrameLimits};
use transport::link::{Filled, Flushed, Link, LinkCounters, Lost, SendError};
use transport::local::{LocalLink, LocalOptions};
use transport::page_pool::{Pool, PoolOptions};
use transport::poller::Poller;
use transport::shm::{Process, ShmLink, ShmListener, ShmOptions};
use transport::tcp::{Connection, Listener, TcpOptions};
use transport::udp::{Acknowledged, Endpoint, UdpOptions};
use transport::waker::Waker;

pub(crate) struct TcpFixture {
    pool: Pool,
    options: TcpOptions,
    listener: Listener,
}

impl TcpFixture {
    fn accept(&self) -> Connection {
        let watchdog = Watchdog::default();
        loop {
            if let Some(connection) = self.listener.accept(&self.options, &self.pool).unwrap() {
                break connection;
            }
            watchdog.look();
        }
    }
}

impl Fixture for TcpFixture {
    type Side = Connection;

    fn new(len_max: usize) -> Self {
        let mut options = TcpOptions::new(limits(len_max));
        options.queue_bytes_max = QUEUE_BYTES_MAX.max(len_max);
        options.queue_frames_max = QUEUE_FRAMES_MAX;
        options.send_buffer_bytes = Some(buffer(8 << 10, len_max));
        options.receive_buffer_bytes = Some(buffer(8 << 10, len_max));
        let listener = Listener::on_loopback(&options).unwrap();
        Self { pool: receive_pool(len_max), options, listener }
    }

    fn pair(&mut self) -> (Connection, Connection) {
        let deadline = clock::now() + Duration::from_secs(3600);
        let first = Connection::connect(self.listener.local_address(), &self.options, &self.pool, deadline).unwrap();
        (first, self.accept())
    }

    fn stranger(&mut self) -> Option<(Connection, Stranger)> {
        let mut stranger = TcpStream::connect(self.listener.local_address()).unwrap();
        stranger.set_nonblocking(true).unwrap();
        Some((self.accept(), Box::new(move |bytes| _ = stranger.write(bytes))))
    }

    fn watch(side: &mut Connection, poller: &mut Poller, _waker: &Waker) {
        side.register(poller).unwrap();
    }

    fn pools(&self) -> Vec<Pool> {
        vec![self.pool.clone()]
    }
}

pub(crate) struct LocalFixture(LocalOptions);

impl Fixture for LocalFixture {
    type Side = LocalLink;

    fn new(len_max: usize) -> Self {
        Self(LocalOptions {
            limits: limits(len_max),
            copy_below: COPY_BELOW,
            queue_bytes_max: QUEUE_BYTES_MAX.max(len_max),
            queue_frames_max: QUEUE_FRAMES_MAX,
        })
    }

    fn pair(&mut self) -> (LocalLink, LocalLink) {
        LocalLink::pair(&self.0)
    }

    fn stranger(&mut self) -> Option<(LocalLink, Stranger)> {
        None
    }

    fn watch(side: &mut LocalLink, _poller: &mut Poller, waker: &Waker) {
        side.set_waker(waker);
    }

    fn pools(&self) -> Vec<Pool> {
        Vec::new()
    }
}

/// Endpoints that cut frames into datagrams of this length, in the kernel or not.
pub(crate) struct UdpFixture<const DATAGRAM_LEN: usize, const OFFLOAD: bool> {
    pool: Pool,
    options: UdpOptions,
}

impl<const DATAGRAM_LEN: usize, const OFFLOAD: bool> UdpFixture<DATAGRAM_LEN, OFFLOAD> {
    fn bind(&self) -> Endpoint {
        Endpoint::bind(LOOPBACK, &self.options, &self.pool).unwrap()
    }
}

impl<const DATAGRAM_LEN: usize, const OFFLOAD: bool> Fixture for UdpFixture<DATAGRAM_LEN, OFFLOAD> {
    type Side = UdpLink;

    fn new(len_max: usize) -> Self {
        let mut options = UdpOptions { relayed: true, ..UdpOptions::new(limits(len_max), [3; 16]) };
        options.datagram_len = DATAGRAM_LEN;
        options.segmentation_offload = OFFLOAD;
        options.receive_offload = OFFLOAD;
        options.queue_bytes_max = QUEUE_BYTES_MAX.max(len_max);
        options.queue_frames_max = QUEUE_FRAMES_MAX;
        options.send_buffer_bytes = buffer(8 << 10, len_max);
        options.receive_buffer_bytes = buffer(64 << 10, len_max);
        if len_max > PAGE_LEN {
            // No buffer holds it: the receiver asks for what it can take.
            options.ask_after = Duration::from_millis(1);
            // A machine with other work loses nothing.
            options.incomplete_timeout = Duration::from_secs(60);
            (options.keep_parts_max, options.keep_bytes_max) = (QUEUE_FRAMES_MAX, len_max);
        }
        Self { pool: receive_pool(len_max), options }
    }

    fn pair(&mut self) -> (UdpLink, UdpLink) {
        let (first, second) = (self.bind(), self.bind());
        let (first_address, second_address) = (first.local_address(), second.local_address());
        let acknowledged = self.options.acknowledged.is_some();
        (UdpLink::new(first, second_address, acknowledged), UdpLink::new(second, first_address, acknowledged))
    }

    fn stranger(&mut self) -> Option<(UdpLink, Stranger)> {
        let stranger = UdpSocket::bind(LOOPBACK).unwrap();
        let (victim, stranger_address) = (self.bind(), stranger.local_addr().unwrap());
        let address = victim.local_address();
        let write = Box::new(move |bytes: &[u8]| _ = stranger.send_to(bytes, address));
        Some((UdpLink::new(victim, stranger_address, self.options.acknowledged.is_some()), write))
    }

    fn watch(side: &mut UdpLink, poller: &mut Poller, _waker: &Waker) {
        side.register(poller).unwrap();
    }

    fn pools(&self) -> Vec<Pool> {
        vec![self.pool.clone()]
    }
}

/// The same with acknowledgements, and a window that the receive buffer does not always hold.
pub(crate) struct AcknowledgedFixture<const DATAGRAM_LEN: usize, const OFFLOAD: bool>(
    UdpFixture<DATAGRAM_LEN, OFFLOAD>,
);

impl<const DATAGRAM_LEN: usize, const OFFLOAD: bool> Fixture for AcknowledgedFixture<DATAGRAM_LEN, OFFLOAD> {
    type Side = UdpLink;

    fn new(len_max: usize) -> Self {
        let mut plain = UdpFixture::new(len_max);
        let retransmit_after = Duration::from_millis(2);
        // A machine with other work is no peer that is gone.
        let acknowledged = Acknowledged { window_bytes: 48 << 10, retransmit_after, retransmits_max: 10_000 };
        plain.options.acknowledged = Some(acknowledged);
        plain.options.ask_after = Duration::from_millis(1);
        Self(plain)
    }

    fn pair(&mut self) -> (UdpLink, UdpLink) {
        self.0.pair()
    }

    fn stranger(&mut self) -> Option<(UdpLink, Stranger)> {
        self.0.stranger()
    }

    fn watch(side: &mut UdpLink, poller: &mut Poller, waker: &Waker) {
        UdpFixture::<DATAGRAM_LEN, OFFLOAD>::watch(side, poller, waker);
    }

    fn pools(&self) -> Vec<Pool> {
        self.0.pools()
    }
}

/// Links in datagrams through a network that drops, doubles and delays some of them.
pub(crate) struct BadNetworkFixture<const ACKNOWLEDGED: bool> {
    plain: UdpFixture<1472, false>,
    seed: u64,
}

impl<const ACKNOWLEDGED: bool> Fixture for BadNetworkFixture<ACKNOWLEDGED> {
    type Side = BadLink;

    fn new(len_max: usize) -> Self {
        let mut plain =
            if ACKNOWLEDGED { AcknowledgedFixture::new(len_max).0 } else { UdpFixture::<1472, false>::new(len_max) };
        // The network itself has not more room.
        plain.options.receive_buffer_bytes = 192 << 10;
        plain.options.ask_after = Duration::from_millis(1);
        (plain.options.keep_parts_max, plain.options.keep_bytes_max) = (QUEUE_FRAMES_MAX, QUEUE_BYTES_MAX.max(len_max));
        Self { plain, seed: 0 }
    }

    fn pair(&mut self) -> (BadLink, BadLink) {
        let (first, second) = (self.plain.bind(), self.plain.bind());
        let (to_first, to_second) = (UdpSocket::bind(LOOPBACK).unwrap(), UdpSocket::bind(LOOPBACK).unwrap());
        let addresses = [first.local_address(), second.local_address()];
        let acknowledged = self.plain.options.acknowledged.is_some();
        let first = UdpLink::new(first, to_second.local_addr().unwrap(), acknowledged);
        let second = UdpLink::new(second, to_first.local_addr().unwrap(), acknowledged);
        self.seed += 1;
        let network = Arc::new(Mutex::new(BadNetwork::new([to_first, to_second], addresses, self.seed)));
        (BadLink { link: first, network: Arc::clone(&network) }, BadLink { link: second, network })
    }

    fn stranger(&mut self) -> Option<(BadLink, Stranger)> {
        let (victim, write) = self.plain.stranger()?;
        let (_, BadLink { network, .. }) = self.pair();
        Some((BadLink { link: victim, network }, write))
    }

    fn watch(side: &mut BadLink, poller: &mut Poller, _waker: &Waker) {
        side.link.register(poller).unwrap();
    }

    fn pools(&self) -> Vec<Pool> {
        self.plain.pools()
    }
}

/// A side that takes care of what goes through the network.
pub(crate) struct BadLink {
    link: UdpLink,
    network: Arc<Mutex<BadNetwork>>,
}

struct BadNetwork {
    /// What each side takes for the other.
    sockets: [UdpSocket; 2],
    addresses: [SocketAddr; 2],
    random: Random,
}

impl BadNetwork {
    fn new(sockets: [UdpSocket; 2], addresses: [SocketAddr; 2], seed: u64) -> Self {
        sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        Self { sockets, addresses, random: Random(seed) }
    }

    fn carry_all(&mut self) {
        let Self { sockets: [to_first, to_second], addresses: [first, second], random } = self;
        let mut treat = |_: &[u8]| match random.below(100) {
            0..5 => Treatment::Drop,
            5..10 => Treatment::Repeat,
            10..15 => Treatment::Delay,
            _ => Treatment::Pass,
        };
        while carry(to_second, to_first, *second, &mut treat) || carry(to_first, to_second, *first, &mut treat) {}
    }
}

impl Link for BadLink {
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError> {
        self.link.send(head, bulk)
    }

    fn flush(&mut self, now: Time) -> Result<Flushed, Lost> {
        let flushed = self.link.flush(now);
        self.network.lock().unwrap().carry_all();
        flushed
    }

    fn fill(&mut self, now: Time) -> Result<Filled, Lost> {
        let filled = self.link.fill(now);
        self.network.lock().unwrap().carry_all();
        filled
    }

    fn next_frame(&mut self) -> Option<Frame> {
        self.link.next_frame()
    }

    fn is_receivable(&self, now: Time) -> bool {
        self.link.is_receivable(now)
    }

    fn is_flushable(&self) -> bool {
        self.link.is_flushable()
    }

    fn next_deadline(&self) -> Option<Time> {
        self.link.next_deadline()
    }

    fn counters(&self) -> &LinkCounters {
        self.link.counters()
    }
}

/// Links whose bulk lies in shared pages, or in others.
pub(crate) struct ShmFixture<const LENT: bool> {
    len_max: usize,
    receive: Pool,
    copies: Pool,
    lent: Vec<Pool>,
}

impl<const LENT: bool> ShmFixture<LENT> {
    /// Each side is a process of its own: it sleeps for itself.
    fn process(&self) -> Process {
        let mut options = ShmOptions::new(limits(self.len_max));
        options.queue_bytes_max = QUEUE_BYTES_MAX.max(self.len_max);
        options.queue_frames_max = QUEUE_FRAMES_MAX;
        options.copy_below = COPY_BELOW;
        options.ring_bytes = 16 << 10;
        options.tickets_max = 64;
        Process::new(&options, self.copies.clone(), self.lent.clone()).unwrap()
    }
}

impl<const LENT: bool> Fixture for ShmFixture<LENT> {
    type Side = ShmLink;

    fn new(len_max: usize) -> Self {
        let copies = Pool::shared(&PoolOptions { name: "copies".into(), ..pages(len_max) }).unwrap();
        Self { len_max, receive: receive_pool(len_max), copies, lent: Vec::new() }
    }

    fn pair(&mut self) -> (ShmLink, ShmLink) {
        let deadline = clock::now() + Duration::from_secs(3600);
        let listener = ShmListener::bind().unwrap();
        let first = ShmLink::connect(listener.address(), &self.process(), &self.receive, deadline).unwrap();
        (first, listener.accept(&self.process(), &self.receive).unwrap().unwrap())
    }

    fn stranger(&mut self) -> Option<(ShmLink, Stranger)> {
        let listener = ShmListener::bind().unwrap();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let stranger = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        let address = listener.address().to_string();
        let name = address.strip_prefix("shm:").unwrap();
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
        connect(&stranger, &address).unwrap();
        let victim = listener.accept(&self.process(), &self.receive).unwrap().unwrap();
        Some((victim, Box::new(move |bytes| _ = send(&stranger, bytes, SendFlags::NOSIGNAL))))
    }

    fn watch(side: &mut ShmLink, poller: &mut Poller, waker: &Waker) {
        side.register(poller, waker).unwrap();
    }

    fn pools(&self) -> Vec<Pool> {
        vec![self.receive.clone(), self.copies.clone()]
    }

    fn source_pool(&mut self, options: &PoolOptions) -> Pool {
        if !LENT {
            return Pool::new(options).unwrap();
        }
        let pool = Pool::shared(options).unwrap();
        self.lent.push(pool.clone());
        pool
    }
}

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn receive_pool(len_max: usize) -> Pool {
    Pool::new(&pages(len_max)).unwrap()
}

fn pages(page_len: usize) -> PoolOptions {
    PoolOptions { name: "receive".into(), page_len, pages: 8, prefault: false }
}

fn limits(len_max: usize) -> FrameLimits {
    FrameLimits::new(LEN_MIN, len_max).unwrap()
}

/// Of the kernel: small, so that it is met, or so large that a long frame does not take for ever.
fn buffer(small: usize, len_max: usize) -> usize {
    if len_max > PAGE_LEN { 1 << 20 } else { small }
}
