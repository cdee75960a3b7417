//! Messages between UDP endpoints: all sizes, what a bad network does to them, and the bounds that hold then.

use base::bulk::Bulk;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use transport::clock;
use transport::frame::{Frame, FrameLimits};
use transport::link::{Filled, Flushed};
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{DATAGRAM_LEN_LOOPBACK, Endpoint, InvalidOptions, PeerId, TooManyRemoved, UdpOptions};

const LEN_MIN: usize = 8;
const SEGMENT_LEN: usize = 1472 - 40;
/// Longer than any test.
const TIMEOUT: Duration = Duration::from_secs(3600);
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[test]
fn messages_of_all_sizes_arrive_whole() {
    for (datagram_len, offload) in [(1472, true), (1472, false), (9000, true), (DATAGRAM_LEN_LOOPBACK, false)] {
        let mut options = options(4 << 20);
        options.datagram_len = datagram_len;
        options.segmentation_offload = offload;
        options.receive_offload = offload;
        options.receive_buffer_bytes = 32 << 20;
        let mut pair = Pair::new(&options, 12);
        let payload_len = datagram_len - 40;
        let sizes = [LEN_MIN, 2 * payload_len, 100, payload_len, payload_len + 1, 65_536, 300, 1 << 20, 4 << 20];
        for (seed, len) in sizes.into_iter().cycle().take(30).enumerate() {
            // A system that grants small buffers only loses parts of the longest.
            if len > pair.second.buffers().receive_granted / 4 {
                testkit::skip("messages_of_all_sizes_arrive_whole", "small receive buffers: raise net.core.rmem_max");
                continue;
            }
            pair.send(&message(len, seed));
            let frame = pair.receive().expect("what fits in the receive buffer arrives");
            assert!(bytes(&frame) == message(len, seed), "{len} bytes in datagrams of {datagram_len}");
        }
        let counters = *pair.second.udp_counters();
        assert_eq!(counters.refused() + counters.dropped_by_kernel + counters.without_page, 0, "{counters:?}");
        pair.check_pages_home();
    }
}

#[test]
fn messages_arrive_over_ipv6() {
    let address: SocketAddr = "[::1]:0".parse().unwrap();
    if UdpSocket::bind(address).is_err() {
        return testkit::skip("messages_arrive_over_ipv6", "no IPv6 on this machine");
    }
    let (options, pool) = (options(64 << 10), pool(64 << 10, 8));
    let mut first = Endpoint::bind(address, &options, &pool).unwrap();
    let mut second = Endpoint::bind(address, &options, &pool).unwrap();
    let to_second = first.add_peer(second.local_address()).unwrap();
    second.add_peer(first.local_address()).unwrap();
    for (seed, len) in [100, 9000, 37_500].into_iter().enumerate() {
        first.send(to_second, &message(len, seed), &Bulk::empty()).unwrap();
        assert_eq!(first.flush(clock::now()), Flushed::All);
        second.fill(clock::now()).unwrap();
        let (_, frame) = second.next_frame().expect("nothing is lost between empty buffers of a host");
        assert!(bytes(&frame) == message(len, seed), "{len} bytes");
    }
}

#[test]
fn joined_datagrams_make_a_message_in_place() {
    let mut pair = Pair::new(&options(64 << 10), 8);
    for seed in 0..200 {
        pair.send(&message(37_500, seed));
        assert!(bytes(&pair.receive().unwrap()) == message(37_500, seed));
    }
    let counters = pair.second.udp_counters();
    if counters.delivered_by_copy > 2 {
        testkit::skip("joined_datagrams_make_a_message_in_place", "this kernel does not join datagrams (UDP_GRO)");
    }
    assert_eq!(counters.delivered_in_place + counters.delivered_by_copy, 200);
}

#[test]
fn small_messages_are_gathered_in_few_calls() {
    let mut pair = Pair::new(&options(256 << 10), 8);
    for seed in 0..640 {
        let message = message(100 + seed % 50, seed);
        pair.first.send(pair.to_second, &message, &Bulk::empty()).unwrap();
    }
    assert_eq!(pair.first.flush(clock::now()), Flushed::All);
    for seed in 0..640 {
        assert_eq!(bytes(&pair.receive().unwrap()), message(100 + seed % 50, seed));
    }
    let (sent, received) = (pair.first.counters(), pair.second.counters());
    assert_eq!((sent.frames_sent, received.frames_received, received.small_frames_received), (640, 640, 640));
    assert!(sent.send_calls <= 12 && received.receive_calls <= 24, "{sent:?} {received:?}");
}

#[test]
fn a_bad_network_neither_damages_nor_repeats_messages() {
    let mut network = Network::new(&plain_options(64 << 10));
    let mut random = Random(7);
    let mut arrived = vec![0; 400];
    let mut on_the_way: Vec<Vec<u8>> = Vec::new();
    for seed in 0..arrived.len() {
        let len = LEN_MIN + random.below(20_000);
        network.first.send(network.to_proxy, &message(len, seed), &Bulk::empty()).unwrap();
        network.first.flush(clock::now());
        for datagram in network.intercept() {
            match random.below(20) {
                0 => {}
                1 => on_the_way.extend([datagram.clone(), datagram]),
                2 => {
                    let (mut damaged, at) = (datagram, random.below(40));
                    damaged[at] ^= 1 << random.below(8);
                    on_the_way.push(damaged);
                }
                3 => {
                    let (mut damaged, at) = (datagram, random.below(1 << 20));
                    let at = at % damaged.len();
                    damaged[at] ^= 1;
                    on_the_way.push(damaged);
                }
                _ => on_the_way.push(datagram),
            }
        }
        while on_the_way.len() > 30 {
            let next = random.below(on_the_way.len().min(20));
            network.forward(&on_the_way.remove(next));
        }
        for frame in network.frames() {
            let bytes = bytes(&frame);
            let seed = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap()) as usize;
            assert!(bytes == message(bytes.len(), seed), "message {seed}");
            arrived[seed] += 1;
        }
    }
    assert!(arrived.iter().all(|times| *times <= 1), "no message arrives twice");
    let delivered = arrived.iter().filter(|times| **times == 1).count();
    assert!((50..arrived.len()).contains(&delivered), "{delivered} delivered");
    let counters = *network.second.udp_counters();
    assert_eq!(counters.datagrams_received, network.forwarded);
    assert!(counters.duplicates > 0 && counters.not_proved > 0, "{counters:?}");
    assert_eq!(counters.delivered_in_place + counters.delivered_by_copy, delivered as u64);
    assert!(network.second.next_deadline().is_some());
    network.second.fill(clock::now() + 2 * TIMEOUT).unwrap();
    assert!(network.second.udp_counters().timed_out + counters.evicted > 0);
    assert_eq!((network.second.incomplete(network.from_proxy).count(), network.second.next_deadline()), (0, None));
    network.check_pages_home();
}

#[test]
fn what_is_missing_is_named_and_completes_the_message_later() {
    let mut network = Network::new(&plain_options(64 << 10));
    let message = message(6 * SEGMENT_LEN + 100, 3);
    network.first.send(network.to_proxy, &message, &Bulk::empty()).unwrap();
    network.first.flush(clock::now());
    let datagrams = network.intercept();
    assert_eq!(datagrams.len(), 7);
    for index in [0, 1, 4, 5] {
        network.forward(&datagrams[index]);
    }
    assert_eq!(network.frames(), []);
    let incomplete: Vec<_> = network.second.incomplete(network.from_proxy).collect();
    assert_eq!((incomplete[0].number, incomplete[0].len), (0, message.len()));
    assert_eq!(incomplete[0].beginning[..SEGMENT_LEN], message[..SEGMENT_LEN]);
    let missing = [2 * SEGMENT_LEN..4 * SEGMENT_LEN, 6 * SEGMENT_LEN..message.len()];
    assert_eq!(incomplete[0].missing, missing);
    for index in [6, 3, 2] {
        network.forward(&datagrams[index]);
    }
    assert_eq!(network.frames().iter().map(bytes).collect::<Vec<_>>(), [message]);
    network.forward(&datagrams[3]);
    assert_eq!(network.frames(), []);
    assert_eq!((network.second.udp_counters().duplicates, network.second.udp_counters().delivered_by_copy), (1, 1));
    network.check_pages_home();
}

#[test]
fn incomplete_messages_are_bounded_per_peer() {
    let mut options = plain_options(64 << 10);
    options.incomplete_messages_max = 4;
    let mut network = Network::new(&options);
    for seed in 0..10 {
        network.first.send(network.to_proxy, &message(5000, seed), &Bulk::empty()).unwrap();
        network.first.flush(clock::now());
        let datagrams = network.intercept();
        datagrams[..3].iter().for_each(|datagram| network.forward(datagram));
        network.frames();
    }
    let numbers: Vec<_> = network.second.incomplete(network.from_proxy).map(|message| message.number).collect();
    assert_eq!((numbers.len(), network.second.udp_counters().evicted), (4, 6));
    assert!(numbers.iter().all(|number| *number >= 6), "the newest stay: {numbers:?}");
    network.second.remove_peer(network.from_proxy);
    assert_eq!(network.second.udp_counters().abandoned, 4);
    network.second.fill(clock::now()).unwrap();
    network.check_pages_home();
}

/// Who waits for more before letting go must not starve what it waits for.
#[test]
fn short_messages_among_long_ones_do_not_pin_the_pool() {
    let mut options = options(64 << 10);
    options.datagram_len = DATAGRAM_LEN_LOOPBACK;
    let mut pair = Pair::new(&options, 1);
    pair.pool = pool(1 << 20, 64);
    pair.second = Endpoint::bind(LOOPBACK, &options, &pair.pool).unwrap();
    pair.second.add_peer(pair.first.local_address()).unwrap();
    pair.to_second = pair.first.add_peer(pair.second.local_address()).unwrap();
    let mut held = Vec::new();
    for round in 0..100 {
        for (index, len) in [60_000, 1000, 1000, 1000, 1000, 1000, 1000, 1000].into_iter().enumerate() {
            pair.send(&message(len, 8 * round + index));
        }
        // All but the long ones are held.
        while let Some(frame) = pair.receive() {
            if frame.len() < 60_000 {
                held.push(frame);
            }
        }
    }
    assert_eq!(held.len(), 700);
    // Dense, with the long ones between them, these are seven pages of a megabyte.
    let in_use = pair.pool.counters().in_use;
    assert!(in_use <= 2 * 7 + 2, "{in_use} pages");
    drop(held);
    pair.check_pages_home();
}

#[test]
fn a_full_receive_buffer_loses_and_counts() {
    let mut options = options(64 << 10);
    options.receive_buffer_bytes = 64 << 10;
    let mut pair = Pair::new(&options, 8);
    let buffers = pair.second.buffers();
    assert!(buffers.receive_granted >= buffers.receive_asked, "{buffers:?}");
    for seed in 0..100 {
        pair.send(&message(9000, seed));
    }
    let mut delivered = 0;
    while pair.receive().is_some() {
        delivered += 1;
    }
    assert!(0 < delivered && delivered < 100, "{delivered}");
    pair.send(&message(100, 100));
    assert_eq!(bytes(&pair.receive().unwrap()), message(100, 100));
    let counters = pair.second.udp_counters();
    // The kernel counts what it would have joined once.
    assert!(counters.dropped_by_kernel > 0, "{counters:?}");
    assert!(pair.pool.counters().in_use_max <= 8);
    pair.check_pages_home();
}

#[test]
fn an_empty_pool_stops_the_intake_until_a_page_returns() {
    let mut pair = Pair::new(&plain_options(16 << 10), 1);
    let mut kept = Vec::new();
    for seed in 0..40 {
        pair.send(&message(1000, seed));
        match pair.receive() {
            Some(frame) => kept.push(frame),
            None => break,
        }
    }
    assert!((1..40).contains(&kept.len()), "{}", kept.len());
    assert_eq!(pair.second.fill(clock::now()), Ok(Filled::PoolEmpty));
    assert!(!pair.second.is_receivable(clock::now()));
    kept.clear();
    assert!(pair.second.is_receivable(clock::now()));
    assert!(pair.receive().is_some());
    pair.check_pages_home();
}

#[test]
fn pages_that_incomplete_messages_hold_return_with_the_time_out() {
    let mut network = Network::with_pool(&plain_options(4 << 10), pool(4 << 10, 1));
    let datagrams: Vec<_> = (0..8)
        .map(|seed| {
            network.first.send(network.to_proxy, &message(4000, seed), &Bulk::empty()).unwrap();
            network.first.flush(clock::now());
            network.intercept().swap_remove(0)
        })
        .collect();
    datagrams.iter().for_each(|datagram| network.forward(datagram));
    while network.second.fill(clock::now()).unwrap() == Filled::Some {}
    assert_eq!(network.second.fill(clock::now()), Ok(Filled::PoolEmpty));
    assert!(!network.second.is_receivable(clock::now()));
    let later = clock::now() + 2 * TIMEOUT;
    assert!(network.second.is_receivable(later) && network.second.next_deadline().unwrap() < later);
    assert_eq!(network.second.fill(later), Ok(Filled::Some));
    network.check_pages_home();
}

#[test]
fn the_send_queue_is_bounded() {
    let mut options = options(64 << 10);
    options.queue_bytes_max = 64 << 10;
    let mut pair = Pair::new(&options, 8);
    let message = message(30_000, 1);
    for number in 0..2 {
        assert_eq!(pair.first.send(pair.to_second, &message, &Bulk::empty()), Ok(number));
    }
    assert!(pair.first.send(pair.to_second, &message, &Bulk::empty()).is_err());
    assert_eq!((pair.first.queued_bytes(), pair.first.counters().sends_refused), (60_000, 1));
    assert_eq!(pair.first.flush(clock::now()), Flushed::All);
    assert_eq!(pair.first.send(pair.to_second, &message, &Bulk::empty()), Ok(2));
}

#[test]
fn a_peer_that_starts_anew_is_followed_and_its_former_life_is_not() {
    let pool = pool(64 << 10, 8);
    let (mut old_options, mut new_options) = (plain_options(64 << 10), plain_options(64 << 10));
    (old_options.incarnation, new_options.incarnation) = (1, 2);
    let proxy = UdpSocket::bind(LOOPBACK).unwrap();
    let mut receiver = Endpoint::bind(LOOPBACK, &old_options, &pool).unwrap();
    let peer = receiver.add_peer_in_life(proxy.local_addr().unwrap(), 1).unwrap();
    let datagrams = |options: &UdpOptions, seed| {
        let mut sender = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let to_proxy = sender.add_peer_in_life(proxy.local_addr().unwrap(), 1).unwrap();
        sender.send(to_proxy, &message(3000, seed), &Bulk::empty()).unwrap();
        sender.flush(clock::now());
        intercept(&proxy, 3)
    };
    let (old, new) = (datagrams(&old_options, 1), datagrams(&new_options, 2));
    let receive = |receiver: &mut Endpoint, datagrams: &[&Vec<u8>]| {
        datagrams.iter().for_each(|datagram| {
            proxy.send_to(datagram, receiver.local_address()).unwrap();
        });
        receiver.fill(clock::now()).unwrap();
        let frames: Vec<_> = core::iter::from_fn(|| receiver.next_frame()).map(|(_, frame)| bytes(&frame)).collect();
        (frames, *receiver.udp_counters())
    };
    // Until its connection says that it is another.
    let (frames, counters) = receive(&mut receiver, &[&old[0], &new[0], &new[1], &new[2]]);
    assert_eq!((frames, counters.stale, receiver.incomplete(peer).count()), (vec![], 3, 1));
    receiver.remove_peer(peer);
    let peer = receiver.add_peer_in_life(proxy.local_addr().unwrap(), 2).unwrap();
    let (frames, counters) = receive(&mut receiver, &[&new[0], &new[1], &new[2]]);
    assert_eq!((frames, counters.abandoned), (vec![message(3000, 2)], 1));
    let (frames, counters) = receive(&mut receiver, &[&old[1], &old[2]]);
    assert_eq!((frames, counters.stale), (vec![], 5));
    assert_eq!(receiver.incomplete(peer).count(), 0);
}

#[test]
fn a_peer_that_is_removed_and_added_again_is_heard() {
    let mut pair = Pair::new(&plain_options(64 << 10), 8);
    let address = pair.second.local_address();
    for seed in 0..3 {
        assert_eq!(pair.first.send(pair.to_second, &message(3000, seed), &Bulk::empty()), Ok(0));
        pair.first.flush(clock::now());
        pair.second.fill(clock::now()).unwrap();
        let frames: Vec<_> = core::iter::from_fn(|| pair.second.next_frame()).map(|(_, frame)| bytes(&frame)).collect();
        assert_eq!(frames, [message(3000, seed)], "{:?}", pair.second);
        pair.first.remove_peer(pair.to_second);
        pair.to_second = pair.first.add_peer(address).unwrap();
    }
}

#[test]
fn lives_beyond_what_datagrams_can_tell_are_refused() {
    let endpoint = |incarnation| {
        Endpoint::bind(LOOPBACK, &UdpOptions { incarnation, ..plain_options(64 << 10) }, &pool(64 << 10, 2)).map(|_| ())
    };
    assert_eq!(endpoint(65_535), Ok(()));
    assert_eq!(endpoint(65_536), Err(InvalidOptions::Incarnation(65_536)));
}

#[test]
fn more_removals_than_datagrams_can_tell_are_refused() {
    let mut pair = Pair::new(&plain_options(64 << 10), 8);
    let address = pair.second.local_address();
    for _ in 0..65_535 {
        pair.first.remove_peer(pair.to_second);
        pair.to_second = pair.first.add_peer(address).unwrap();
    }
    assert_eq!(pair.first.send(pair.to_second, &message(3000, 1), &Bulk::empty()), Ok(0));
    pair.first.flush(clock::now());
    pair.second.fill(clock::now()).unwrap();
    assert!(pair.second.next_frame().is_some(), "{:?}", pair.second);
    pair.first.remove_peer(pair.to_second);
    assert_eq!(pair.first.add_peer(address), Err(TooManyRemoved { address }));
    // Nobody else's number is left either.
    let other = "127.0.0.1:9".parse().unwrap();
    assert_eq!(pair.first.add_peer(other), Err(TooManyRemoved { address: other }));
}

#[test]
fn what_the_kernel_refuses_to_send_is_counted_and_named() {
    let mut options = plain_options(64 << 10);
    options.multicast.time_to_live = 0;
    let mut endpoint = Endpoint::bind(LOOPBACK, &options, &pool(64 << 10, 2)).unwrap();
    // From a loopback address there is no way to port 0, and none to this network.
    let nowhere = endpoint.add_peer(SocketAddr::from((Ipv4Addr::new(127, 0, 0, 1), 0))).unwrap();
    endpoint.send(nowhere, &message(5000, 1), &Bulk::empty()).unwrap();
    assert_eq!(endpoint.flush(clock::now()), Flushed::All);
    assert_eq!(endpoint.udp_counters().datagrams_not_sent, 4);
    assert_eq!(endpoint.send_refused().unwrap().call, "sendmmsg");
    assert_eq!(endpoint.queued_bytes(), 0);
}

#[test]
fn settings_that_make_no_endpoint_are_errors() {
    let small_pool = pool(4096, 2);
    let refused = |change: fn(&mut UdpOptions), pool: &Pool| {
        let mut options = options(64 << 10);
        change(&mut options);
        Endpoint::bind(LOOPBACK, &options, pool).map(|_| ()).unwrap_err()
    };
    let pool = pool(64 << 10, 2);
    assert!(matches!(refused(|_| (), &small_pool), InvalidOptions::PageTooSmall { .. }));
    assert!(matches!(refused(|options| options.queue_bytes_max = 9, &pool), InvalidOptions::QueueTooSmall { .. }));
    assert!(matches!(refused(|options| options.datagram_len = 65_508, &pool), InvalidOptions::DatagramLen(65_508)));
    assert!(matches!(refused(|options| options.datagram_len = 40, &pool), InvalidOptions::DatagramLen(40)));
    let incomplete = refused(|options| options.incomplete_messages_max = 0, &pool);
    assert!(matches!(incomplete, InvalidOptions::IncompleteTooSmall { .. }));
    assert!(matches!(refused(|options| options.datagrams_per_fill = 65, &pool), InvalidOptions::DatagramsPerFill(65)));
}

/// Two endpoints, from the first to the second.
struct Pair {
    pool: Pool,
    first: Endpoint,
    second: Endpoint,
    to_second: PeerId,
}

impl Pair {
    fn new(options: &UdpOptions, pages: usize) -> Self {
        let pool = pool(options.limits.len_max(), pages);
        let mut first = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let mut second = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let to_second = first.add_peer(second.local_address()).unwrap();
        second.add_peer(first.local_address()).unwrap();
        Self { pool, first, second, to_second }
    }

    fn send(&mut self, message: &[u8]) {
        self.first.send(self.to_second, message, &Bulk::empty()).unwrap();
        assert_eq!(self.first.flush(clock::now()), Flushed::All);
    }

    /// The next frame; loopback delivers before sending returns, so that nothing waiting means that nothing comes.
    fn receive(&mut self) -> Option<Frame> {
        loop {
            if let Some((_, frame)) = self.second.next_frame() {
                return Some(frame);
            }
            if self.second.fill(clock::now()).unwrap() != Filled::Some {
                return None;
            }
        }
    }

    fn check_pages_home(self) {
        drop((self.first, self.second));
        assert_eq!(self.pool.counters().in_use, 0);
    }
}

/// Two endpoints with a socket between them that does as the test says.
struct Network {
    pool: Pool,
    proxy: UdpSocket,
    first: Endpoint,
    second: Endpoint,
    to_proxy: PeerId,
    from_proxy: PeerId,
    forwarded: u64,
}

impl Network {
    fn new(options: &UdpOptions) -> Self {
        Self::with_pool(options, pool(256 << 10, 16))
    }

    fn with_pool(options: &UdpOptions, pool: Pool) -> Self {
        let proxy = UdpSocket::bind(LOOPBACK).unwrap();
        let mut first = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let mut second = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let to_proxy = first.add_peer(proxy.local_addr().unwrap()).unwrap();
        let from_proxy = second.add_peer(proxy.local_addr().unwrap()).unwrap();
        Self { pool, proxy, first, second, to_proxy, from_proxy, forwarded: 0 }
    }

    fn intercept(&self) -> Vec<Vec<u8>> {
        intercept(&self.proxy, usize::MAX)
    }

    fn forward(&mut self, datagram: &[u8]) {
        self.proxy.send_to(datagram, self.second.local_address()).unwrap();
        self.forwarded += 1;
    }

    /// All frames that are complete now.
    fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while self.second.fill(clock::now()).unwrap() == Filled::Some {
            frames.extend(core::iter::from_fn(|| self.second.next_frame()).map(|(_, frame)| frame));
        }
        frames
    }

    fn check_pages_home(self) {
        drop((self.first, self.second));
        assert_eq!(self.pool.counters().in_use, 0);
    }
}

/// What waits at a socket, up to a number of datagrams.
fn intercept(proxy: &UdpSocket, count: usize) -> Vec<Vec<u8>> {
    proxy.set_nonblocking(true).unwrap();
    let mut place = vec![0; 1 << 16];
    let mut datagrams = Vec::new();
    while datagrams.len() < count
        && let Ok(len) = proxy.recv(&mut place)
    {
        datagrams.push(place[..len].to_vec());
    }
    proxy.set_nonblocking(false).unwrap();
    datagrams
}

fn pool(page_len: usize, pages: usize) -> Pool {
    Pool::new(&PoolOptions { name: "receive".into(), page_len, pages, prefault: false }).unwrap()
}

fn options(len_max: usize) -> UdpOptions {
    UdpOptions { relayed: true, ..UdpOptions::new(FrameLimits::new(LEN_MIN, len_max).unwrap(), [5; 16]) }
}

/// Each datagram by itself, as a test looks at them.
fn plain_options(len_max: usize) -> UdpOptions {
    let options = options(len_max);
    UdpOptions { segmentation_offload: false, receive_offload: false, incomplete_timeout: TIMEOUT, ..options }
}

fn message(len: usize, seed: usize) -> Vec<u8> {
    let mut message: Vec<u8> = (0..len).map(|index| (index * 7 + index / 251 + seed) as u8).collect();
    message[..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
    message[4..8].copy_from_slice(&u32::try_from(seed).unwrap().to_le_bytes());
    message
}

fn bytes(frame: &Frame) -> Vec<u8> {
    assert!(frame.rest.is_empty(), "a frame is one slice");
    frame.head.as_bytes().to_vec()
}

/// A linear congruential generator: the same network in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}
