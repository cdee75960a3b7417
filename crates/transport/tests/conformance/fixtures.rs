//! The transports under test, with small pages, queues and kernel buffers so that every bound is met.

use crate::suite::{Fixture, QUEUE_BYTES_MAX, QUEUE_FRAMES_MAX, limits};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use transport::clock;
use transport::local::{LocalLink, LocalOptions};
use transport::page_pool::{Pool, PoolOptions};
use transport::poller::Poller;
use transport::shm::{Process, ShmLink, ShmListener, ShmOptions};
use transport::tcp::{Connection, Listener, TcpOptions};
use transport::udp::{Acknowledged, Endpoint, UdpLink, UdpOptions};
use transport::waker::Waker;

pub(crate) struct TcpFixture {
    pool: Pool,
    options: TcpOptions,
    listener: Listener,
}

impl Default for TcpFixture {
    fn default() -> Self {
        let pool = receive_pool();
        let mut options = TcpOptions::new(limits());
        options.queue_bytes_max = QUEUE_BYTES_MAX;
        options.queue_frames_max = QUEUE_FRAMES_MAX;
        options.send_buffer_bytes = Some(8 << 10);
        options.receive_buffer_bytes = Some(8 << 10);
        let listener = Listener::on_loopback(&options).unwrap();
        Self { pool, options, listener }
    }
}

impl Fixture for TcpFixture {
    type Side = Connection;

    fn pair(&mut self) -> (Connection, Connection) {
        let deadline = clock::now() + Duration::from_secs(3600);
        let first = Connection::connect(self.listener.local_address(), &self.options, &self.pool, deadline).unwrap();
        let second = loop {
            if let Some(connection) = self.listener.accept(&self.options, &self.pool).unwrap() {
                break connection;
            }
            std::thread::yield_now();
        };
        (first, second)
    }

    fn watch(side: &mut Connection, poller: &mut Poller, _waker: &Waker) {
        side.register(poller).unwrap();
    }

    fn pools(&self) -> Vec<Pool> {
        vec![self.pool.clone()]
    }
}

#[derive(Default)]
pub(crate) struct LocalFixture;

impl Fixture for LocalFixture {
    type Side = LocalLink;

    fn pair(&mut self) -> (LocalLink, LocalLink) {
        LocalLink::pair(&LocalOptions {
            limits: limits(),
            copy_below: 2048,
            queue_bytes_max: QUEUE_BYTES_MAX,
            queue_frames_max: QUEUE_FRAMES_MAX,
        })
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

impl<const DATAGRAM_LEN: usize, const OFFLOAD: bool> Default for UdpFixture<DATAGRAM_LEN, OFFLOAD> {
    fn default() -> Self {
        let mut options = UdpOptions::new(limits(), [3; 16]);
        options.datagram_len = DATAGRAM_LEN;
        options.segmentation_offload = OFFLOAD;
        options.receive_offload = OFFLOAD;
        options.queue_bytes_max = QUEUE_BYTES_MAX;
        options.queue_frames_max = QUEUE_FRAMES_MAX;
        options.send_buffer_bytes = 8 << 10;
        options.receive_buffer_bytes = 64 << 10;
        Self { pool: receive_pool(), options }
    }
}

impl<const DATAGRAM_LEN: usize, const OFFLOAD: bool> Fixture for UdpFixture<DATAGRAM_LEN, OFFLOAD> {
    type Side = UdpLink;

    fn pair(&mut self) -> (UdpLink, UdpLink) {
        let bind = || Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &self.options, &self.pool).unwrap();
        let (first, second) = (bind(), bind());
        let (first_address, second_address) = (first.local_address(), second.local_address());
        (UdpLink::new(first, second_address), UdpLink::new(second, first_address))
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

impl<const DATAGRAM_LEN: usize, const OFFLOAD: bool> Default for AcknowledgedFixture<DATAGRAM_LEN, OFFLOAD> {
    fn default() -> Self {
        let mut plain = UdpFixture::default();
        let retransmit_after = Duration::from_millis(2);
        // A machine with other work is no peer that is gone.
        let acknowledged = Acknowledged { window_bytes: 48 << 10, retransmit_after, retransmits_max: 10_000 };
        plain.options.acknowledged = Some(acknowledged);
        plain.options.ask_after = Duration::from_millis(1);
        Self(plain)
    }
}

impl<const DATAGRAM_LEN: usize, const OFFLOAD: bool> Fixture for AcknowledgedFixture<DATAGRAM_LEN, OFFLOAD> {
    type Side = UdpLink;

    fn pair(&mut self) -> (UdpLink, UdpLink) {
        self.0.pair()
    }

    fn watch(side: &mut UdpLink, poller: &mut Poller, waker: &Waker) {
        UdpFixture::<DATAGRAM_LEN, OFFLOAD>::watch(side, poller, waker);
    }

    fn pools(&self) -> Vec<Pool> {
        self.0.pools()
    }
}

/// Links whose bulk lies in shared pages, or in others.
pub(crate) struct ShmFixture<const LENT: bool> {
    receive: Pool,
    copies: Pool,
    lent: Vec<Pool>,
}

impl<const LENT: bool> Default for ShmFixture<LENT> {
    fn default() -> Self {
        let options =
            PoolOptions { name: "copies".into(), page_len: crate::suite::PAGE_LEN, pages: 8, prefault: false };
        Self { receive: receive_pool(), copies: Pool::shared(&options).unwrap(), lent: Vec::new() }
    }
}

impl<const LENT: bool> ShmFixture<LENT> {
    /// Each side is a process of its own: it sleeps for itself.
    fn process(&self) -> Process {
        let mut options = ShmOptions::new(limits());
        options.queue_bytes_max = QUEUE_BYTES_MAX;
        options.queue_frames_max = QUEUE_FRAMES_MAX;
        options.copy_below = crate::suite::COPY_BELOW;
        options.ring_bytes = 16 << 10;
        options.tickets_max = 64;
        Process::new(&options, self.copies.clone(), self.lent.clone()).unwrap()
    }
}

impl<const LENT: bool> Fixture for ShmFixture<LENT> {
    type Side = ShmLink;

    fn pair(&mut self) -> (ShmLink, ShmLink) {
        let deadline = clock::now() + Duration::from_secs(3600);
        let listener = ShmListener::bind().unwrap();
        let first = ShmLink::connect(listener.address(), &self.process(), &self.receive, deadline).unwrap();
        (first, listener.accept(&self.process(), &self.receive).unwrap().unwrap())
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

fn receive_pool() -> Pool {
    let page_len = crate::suite::PAGE_LEN;
    Pool::new(&PoolOptions { name: "receive".into(), page_len, pages: 8, prefault: false }).unwrap()
}
