//! Messages over UDP between two endpoints of this process, against plain system calls that move the same datagrams.
//!
//! The plain calls name the destination of each datagram, as a socket with many peers must. One thread sends a window of messages, then receives it, so that nothing is lost and processor time is the time. Both
//! programs run in turns; the ratio is that of their medians. `cargo run --release -p transport --example udp_throughput`.

use base::bulk::Bulk;
use rustix::net::SocketAddrAny;
use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;
use transport::clock;
use transport::frame::FrameLimits;
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{Authenticate, DATAGRAM_LEN_ETHERNET, DATAGRAM_LEN_LOOPBACK, Endpoint, PeerId, UdpOptions};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

#[derive(Clone, Copy)]
struct Case {
    message_len: usize,
    datagram_len: usize,
    offload: bool,
    /// What tags cover.
    header_only: bool,
}

fn main() -> Outcome<()> {
    println!("message  datagram  offload    header  bare µs  udp µs  ratio bare/udp (min-max)  in place");
    for (datagram_len, offload) in
        [(DATAGRAM_LEN_LOOPBACK, false), (DATAGRAM_LEN_ETHERNET, true), (DATAGRAM_LEN_ETHERNET, false)]
    {
        for message_len in [9_000, 37_500] {
            for header_only in [true, false] {
                compare(Case { message_len, datagram_len, offload, header_only })?;
            }
        }
    }
    Ok(())
}

fn compare(case: Case) -> Outcome<()> {
    let (mut bare, mut udp) = (Bare::new(case)?, Udp::new(case)?);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((measure(|| bare.window())?, measure(|| udp.window())?));
    }
    let mut ratios: Vec<f64> = rounds.iter().map(|(bare, udp)| bare / udp).collect();
    ratios.sort_by(f64::total_cmp);
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let bare_us = median(rounds.iter().map(|round| round.0).collect());
    let udp_us = median(rounds.iter().map(|round| round.1).collect());
    let counters = udp.second.udp_counters();
    let in_place =
        counters.delivered_in_place as f64 / (counters.delivered_in_place + counters.delivered_by_copy) as f64;
    let Case { message_len, datagram_len, offload, header_only } = case;
    println!(
        "{message_len:7}  {datagram_len:8}  {offload:7}  {header_only:8}  {bare_us:7.2}  {udp_us:6.2}  {:14.2} ({:.2}-{:.2})  {:7.1} %",
        bare_us / udp_us,
        ratios[0],
        ratios[ROUNDS - 1],
        100.0 * in_place
    );
    Ok(())
}

/// Microseconds per message.
fn measure(mut window: impl FnMut() -> Outcome<()>) -> Outcome<f64> {
    let (start, mut windows) = (clock::now(), 0);
    loop {
        window()?;
        windows += 1;
        let elapsed = clock::now().since(start);
        if elapsed > ROUND {
            return Ok(elapsed.as_secs_f64() * 1e6 / f64::from(windows * WINDOW));
        }
    }
}

struct Udp {
    first: Endpoint,
    second: Endpoint,
    to_second: PeerId,
    head: [u8; 32],
    bulk: Bulk,
}

impl Udp {
    fn new(case: Case) -> Outcome<Self> {
        let pool =
            |name: &str| Pool::new(&PoolOptions { name: name.into(), page_len: 1 << 20, pages: 64, prefault: true });
        let (source, receive) = (pool("source")?, pool("receive")?);
        let mut options = UdpOptions::new(FrameLimits::new(8, 1 << 20)?, [1; 16]);
        options.datagram_len = case.datagram_len;
        options.segmentation_offload = case.offload;
        options.receive_offload = case.offload;
        options.authenticate = if case.header_only { Authenticate::Header } else { Authenticate::Everything };
        options.checksum_payload = false;
        let mut first = Endpoint::bind(LOOPBACK, &options, &source)?;
        let mut second = Endpoint::bind(LOOPBACK, &options, &receive)?;
        let to_second = first.add_peer(second.local_address())?;
        second.add_peer(first.local_address())?;
        let mut head = [0; 32];
        head[..4].copy_from_slice(&u32::try_from(case.message_len)?.to_le_bytes());
        let mut page = source.take().ok_or("a new pool has pages")?;
        page.bytes_mut().fill(5);
        Ok(Self { first, second, to_second, head, bulk: Bulk::Pages(page.freeze(case.message_len - 32)) })
    }

    fn window(&mut self) -> Outcome<()> {
        for _ in 0..WINDOW {
            self.first.send(self.to_second, &self.head, &self.bulk)?;
        }
        self.first.flush(clock::now());
        let mut received = 0;
        while received < WINDOW {
            self.second.fill(clock::now())?;
            while self.second.next_frame().is_some() {
                received += 1;
            }
        }
        Ok(())
    }
}

struct Bare {
    first: UdpSocket,
    second: UdpSocket,
    source: Vec<u8>,
    place: Vec<u8>,
    case: Case,
}

impl Bare {
    fn new(case: Case) -> Outcome<Self> {
        let (first, second) = (UdpSocket::bind(LOOPBACK)?, UdpSocket::bind(LOOPBACK)?);
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&second, 8 << 20)
            .or_else(|_| rustix::net::sockopt::set_socket_recv_buffer_size(&second, 8 << 20))?;
        if case.offload {
            set(&first, libc::UDP_SEGMENT, i32::try_from(case.datagram_len)?)?;
            set(&second, libc::UDP_GRO, 1)?;
        }
        Ok(Self { first, second, source: vec![5; 64 << 10], place: vec![0; BATCH * 65536], case })
    }

    /// Lengths of the datagrams, or of what is cut into them, that carry a message with as many headers as ours.
    fn sends(&self) -> Vec<usize> {
        let payload_len = self.case.datagram_len - 40;
        let headers = self.case.message_len.div_ceil(payload_len);
        let len = self.case.message_len + 40 * headers;
        let send_len = if self.case.offload {
            65_507 / self.case.datagram_len * self.case.datagram_len
        } else {
            self.case.datagram_len
        };
        (0..len).step_by(send_len).map(|start| send_len.min(len - start)).collect()
    }

    fn window(&mut self) -> Outcome<()> {
        let sends = self.sends();
        let all: Vec<usize> = (0..WINDOW).flat_map(|_| sends.iter().copied()).collect();
        for sends in all.chunks(BATCH) {
            let parts: Vec<_> = sends.iter().map(|len| IoSlice::new(&self.source[..*len])).collect();
            let mut messages: Vec<_> = parts.iter().map(|part| message(part.as_ptr().cast_mut(), part.len())).collect();
            let mut places: Vec<_> = iovecs(&mut messages);
            link_up(&mut messages, &mut places);
            let destination = SocketAddrAny::from(self.second.local_addr()?);
            for message in &mut messages {
                message.msg_hdr.msg_name = destination.as_ptr().cast_mut().cast();
                message.msg_hdr.msg_namelen = destination.addr_len();
            }
            // SAFETY: each message points to one part of its own and to the address, alive until after the call.
            let sent = unsafe { libc::sendmmsg(self.first.as_raw_fd(), messages.as_mut_ptr(), messages.len() as _, 0) };
            assert_eq!(usize::try_from(sent)?, sends.len(), "the loopback interface takes all");
        }
        let (mut left, expected) = (all.len(), all.iter().sum::<usize>());
        let mut bytes = 0;
        while left > 0 {
            let parts: Vec<_> = self.place.chunks_exact_mut(65536).map(IoSliceMut::new).collect();
            let mut messages: Vec<_> = parts.iter().map(|part| message(part.as_ptr().cast_mut(), part.len())).collect();
            let mut places: Vec<_> = iovecs(&mut messages);
            link_up(&mut messages, &mut places);
            let (fd, count) = (self.second.as_raw_fd(), messages.len() as _);
            // SAFETY: each message points to one part of its own, alive until after the call.
            let received =
                unsafe { libc::recvmmsg(fd, messages.as_mut_ptr(), count, libc::MSG_DONTWAIT, core::ptr::null_mut()) };
            let received = usize::try_from(received)?;
            bytes += messages[..received].iter().map(|message| message.msg_len as usize).sum::<usize>();
            left -= received;
        }
        assert_eq!(bytes, expected);
        Ok(())
    }
}

/// A message whose length and address are kept where they will be moved to a part.
fn message(start: *mut u8, len: usize) -> libc::mmsghdr {
    // SAFETY: integers and pointers, for all of which zero is a value.
    let mut message: libc::mmsghdr = unsafe { core::mem::zeroed() };
    message.msg_hdr.msg_iov = start.cast();
    message.msg_hdr.msg_iovlen = len as _;
    message
}

fn iovecs(messages: &mut [libc::mmsghdr]) -> Vec<libc::iovec> {
    let part = |message: &libc::mmsghdr| libc::iovec {
        iov_base: message.msg_hdr.msg_iov.cast(),
        iov_len: message.msg_hdr.msg_iovlen,
    };
    messages.iter().map(part).collect()
}

fn link_up(messages: &mut [libc::mmsghdr], parts: &mut [libc::iovec]) {
    for (message, part) in messages.iter_mut().zip(parts) {
        message.msg_hdr.msg_iov = part;
        message.msg_hdr.msg_iovlen = 1;
    }
}

fn set(socket: &UdpSocket, option: i32, value: i32) -> Outcome<()> {
    let len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the value is an integer of the length stated, and lives across the call.
    let outcome =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_UDP, option, (&raw const value).cast(), len) };
    if outcome == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().into()) }
}

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Messages on the way; fewer than the receive buffer holds.
const WINDOW: u32 = 32;

/// Datagrams per system call.
const BATCH: usize = 64;

const ROUNDS: usize = 11;
const ROUND: Duration = Duration::from_millis(60);
