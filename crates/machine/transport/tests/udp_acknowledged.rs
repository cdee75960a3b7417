//! A window and acknowledgements over datagrams. Each message comes once and in order through a network that drops,
//! repeats and reorders, and tries come to an end.

mod network;

use base::bulk::Bulk;
use base::time::Time;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use transport::frame::FrameLimits;
use transport::link::{Filled, Flushed};
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{Acknowledged, Endpoint, InvalidOptions, PeerId, UdpOptions};

use network::{Random, Treatment, carry, message};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const RETRANSMIT_AFTER: Duration = Duration::from_millis(10);
const WINDOW: usize = 64 << 10;
const HEADER_LEN: usize = 40;
/// The kind of a segment that is proved.
const SEGMENT: u8 = 7;

#[test]
fn each_message_comes_once_and_in_order_through_loss_repetition_and_reordering() {
    for (percent, ask_after_ms) in [(0, 2), (1, 2), (10, 2), (30, 2), (30, 0)] {
        let mut network = Network::new(&UdpOptions { ask_after: Duration::from_millis(ask_after_ms), ..options() });
        let mut random = Random(percent + ask_after_ms);
        let mut treat = |_: &[u8]| match random.below(100) {
            dice if dice < percent => Treatment::Drop,
            dice if dice < 2 * percent => Treatment::Repeat,
            dice if dice < 3 * percent => Treatment::Delay,
            _ => Treatment::Pass,
        };
        let lens = (0..400).map(|number| [100, 9000, 37_500, 1432][number % 4]);
        for (number, len) in lens.enumerate() {
            while !network.send(number as u64, len) {
                network.pass(&mut treat);
            }
        }
        for _ in 0..10_000 {
            if network.arrived == 400 && network.first.queued_bytes() == 0 {
                break;
            }
            network.pass(&mut treat);
        }
        assert_eq!(network.arrived, 400, "{percent} %: {:?} {:?}", network.first, network.second);
        (0..2000).for_each(|_| network.pass(&mut treat));
        let (sent, received) = (network.first.udp_counters(), network.second.udp_counters());
        assert_eq!((sent.unacknowledged, sent.acknowledgements_refused, received.messages_lost), (0, 0, 0));
        assert!(percent > 0 || sent.repeated + sent.retransmitted == 0, "{sent:?}");
        // Everything is acknowledged at the end, and nobody waits.
        assert_eq!((network.first.next_deadline(), network.second.next_deadline()), (None, None), "{percent} %");
        network.check_pages_home();
    }
}

#[test]
fn no_more_than_the_window_is_under_way() {
    let mut network = Network::new(&options());
    let sent = network.fill_queue();
    // The queue holds what the window holds back, and then refuses.
    assert!(sent as usize > WINDOW / 9000 && network.first.counters().sends_refused == 1, "{sent}");
    assert_eq!(network.first.flush(network.now), Flushed::WouldBlock);
    let under_way = network.first.udp_counters().datagrams_sent as usize * 1472;
    assert!(under_way <= WINDOW + 1472 * 7, "{under_way} bytes under way");
    while network.arrived < sent {
        network.pass(&mut |_| Treatment::Pass);
    }
    assert_eq!((network.first.queued_bytes(), network.first.udp_counters().retransmitted), (0, 0));
    network.check_pages_home();
}

#[test]
fn what_waits_has_one_bound_for_all_peers() {
    let mut network = Network::new(&options());
    network.fill_queue();
    network.first.flush(network.now);
    // What fits its own window goes, and nothing waits beside what waits for the other.
    let socket = UdpSocket::bind(LOOPBACK).unwrap();
    let other = network.first.add_peer(socket.local_addr().unwrap()).unwrap();
    let refused = (0..100).find(|number| network.first.send(other, &message(*number, 9000), &Bulk::empty()).is_err());
    assert_eq!(refused, Some(WINDOW as u64 / 9000));
    assert_eq!(network.first.counters().sends_refused, 2);
}

#[test]
fn a_peer_that_acknowledges_nothing_is_given_up_and_found_again() {
    let mut network = Network::new(&options());
    (0..20).for_each(|number| assert!(network.send(number, 9000)));
    assert!(!network.first.is_silent(network.peer));
    // The window's seven, after 10, 20, 40 … ms; then the next seven.
    while !network.first.is_silent(network.peer) {
        network.pass(&mut |_| Treatment::Drop);
    }
    let sent = *network.first.udp_counters();
    assert_eq!((sent.unacknowledged, sent.retransmitted > 0), (7, true), "{sent:?}");
    for _ in 0..400 {
        network.next = network.next.max(7);
        network.pass(&mut |_| Treatment::Pass);
    }
    assert!(!network.first.is_silent(network.peer) && network.next == 20, "{:?}", network.second);
    assert_eq!((network.first.next_deadline(), network.second.next_deadline()), (None, None));
    network.check_pages_home();
}

#[test]
fn a_later_life_of_the_receiver_goes_on_where_the_sender_is() {
    let mut network = Network::new(&options());
    (0..600).for_each(|number| {
        assert!(network.send(number, 100));
        network.pass(&mut |_| Treatment::Pass);
    });
    assert_eq!(network.arrived, 600);
    network.restart_second();
    (600..610).for_each(|number| assert!(network.send(number, 100)));
    (0..200).for_each(|_| network.pass(&mut |_| Treatment::Pass));
    assert_eq!((network.next, network.first.udp_counters().unacknowledged), (610, 0), "{:?}", network.first);
    assert_eq!((network.second.udp_counters().asked, network.first.udp_counters().asks_refused), (0, 0));
    network.check_pages_home();
}

#[test]
fn a_peer_that_is_removed_and_returns_gets_what_is_sent_to_it_then_and_nothing_else() {
    // It died and is another; or it lives on, and only we had lost it.
    for dies in [true, false] {
        let mut network = Network::new(&options());
        (0..20).for_each(|number| assert!(network.send(number, 1000)));
        let mut former = Vec::new();
        let mut record = |datagram: &[u8]| {
            former.push(datagram.to_vec());
            Treatment::Pass
        };
        (0..5).for_each(|_| network.pass(&mut record));
        // These wait, or are on the way.
        (20..200).for_each(|number| assert!(network.send(number, 1000)));
        network.pass(&mut |_| Treatment::Drop);
        let (address, arrived) = (network.to_second.local_addr().unwrap(), network.arrived);
        assert_eq!(arrived, 20);
        if dies {
            network.restart_second();
        }
        if !dies {
            network.first.remove_peer(network.peer);
            network.peer = network.first.add_peer(address).unwrap();
        }
        let given_up = network.first.udp_counters().unacknowledged;
        assert_eq!((network.first.queued_bytes(), given_up), (0, 180));
        let (segments, acknowledgements): (Vec<_>, Vec<_>) = former.iter().partition(|datagram| datagram[3] == SEGMENT);
        // What was on the way to the former life finds the next one first.
        segments.iter().skip(3).for_each(|datagram| network.inject_to_second(datagram));
        network.next = 1000;
        (1000..1030).for_each(|number| assert!(network.send(number, 1000)));
        network.first.flush(network.now);
        acknowledgements.iter().for_each(|datagram| network.inject_to_first(datagram));
        let counters = network.first.udp_counters();
        let refused = if dies { counters.stale } else { counters.acknowledgements_refused };
        assert!(refused > 0 && refused == acknowledgements.len() as u64, "{:?}", network.first);
        (0..100).for_each(|_| network.pass(&mut |_| Treatment::Pass));
        segments.iter().for_each(|datagram| network.inject_to_second(datagram));
        (0..100).for_each(|_| network.pass(&mut |_| Treatment::Pass));
        let sent = network.first.udp_counters();
        assert_eq!((network.arrived, network.next, sent.unacknowledged), (arrived + 30, 1030, given_up), "{sent:?}");
        let counters = network.second.udp_counters();
        let refused = if dies { counters.not_proved } else { counters.stale };
        assert!(refused >= segments.len() as u64, "{:?}", network.second);
        assert_eq!((network.first.queued_bytes(), network.first.next_deadline()), (0, None));
        network.check_pages_home();
    }
}

#[test]
fn a_peer_that_is_removed_and_lives_on_sends_again_what_nobody_acknowledged() {
    let mut network = Network::new(&options());
    (0..5).for_each(|number| assert!(network.send(number, 1000)));
    network.pass(&mut |datagram| if datagram[3] == 5 { Treatment::Drop } else { Treatment::Pass });
    assert_eq!(network.arrived, 5);
    network.second.remove_peer(network.from_first);
    network.from_first = network.second.add_peer(network.to_first.local_addr().unwrap()).unwrap();
    // It has delivered them and does not know: another could live there by now.
    network.next = 0;
    (5..10).for_each(|number| assert!(network.send(number, 1000)));
    (0..100).for_each(|_| network.pass(&mut |_| Treatment::Pass));
    assert_eq!((network.arrived, network.next), (15, 10), "{:?}", network.second);
    assert_eq!((network.first.udp_counters().unacknowledged, network.second.udp_counters().messages_lost), (0, 0));
    network.check_pages_home();
}

#[test]
fn a_later_life_of_the_sender_is_heard_from_its_beginning() {
    let mut network = Network::new(&options());
    (0..100).for_each(|number| assert!(network.send(number, 1000)));
    // Every other of its datagrams is lost: the receiver holds what is out of order.
    let (mut former, mut index) = (Vec::new(), 0);
    network.pass(&mut |datagram| {
        former.push(datagram.to_vec());
        index += 1;
        if index % 2 == 0 { Treatment::Drop } else { Treatment::Pass }
    });
    let arrived = network.arrived;
    assert!((1..100).contains(&arrived), "{arrived}");
    network.restart_first();
    network.next = 1000;
    (1000..1100).for_each(|number| assert!(network.send(number, 1000)));
    (0..50).for_each(|_| network.pass(&mut |_| Treatment::Pass));
    former.iter().filter(|datagram| datagram[3] == SEGMENT).for_each(|datagram| network.inject_to_second(datagram));
    (0..50).for_each(|_| network.pass(&mut |_| Treatment::Pass));
    assert_eq!((network.arrived, network.next), (arrived + 100, 1100), "{:?}", network.second);
    assert_eq!(network.first.udp_counters().unacknowledged, 0);
    assert_eq!((network.first.next_deadline(), network.second.next_deadline()), (None, None));
    network.check_pages_home();
}

#[test]
fn thousands_of_messages_behind_one_that_is_lost_stay_in_order() {
    let acknowledged =
        options().acknowledged.map(|acknowledged| Acknowledged { window_bytes: usize::MAX, ..acknowledged });
    let mut network = Network::new(&UdpOptions { acknowledged, ..options() });
    let (mut sent, mut lost) = (0, 0);
    while network.arrived < 3000 {
        while sent < 3000 && network.send(sent, 100) {
            sent += 1;
        }
        network.pass(&mut |datagram| {
            let is_first = datagram[3] == SEGMENT && datagram[8..16] == [0; 8];
            lost += usize::from(is_first);
            if is_first && lost <= 5 { Treatment::Drop } else { Treatment::Pass }
        });
        // No more than a receiver can tell apart, however many fit in the window.
        assert!(network.arrived > 0 || network.first.udp_counters().datagrams_sent < 1024, "{:?}", network.first);
    }
    assert_eq!((network.second.udp_counters().messages_lost, network.first.udp_counters().unacknowledged), (0, 0));
    network.check_pages_home();
}

#[test]
fn acknowledgements_of_what_was_not_sent_or_in_another_life_are_refused() {
    let mut network = Network::new(&options());
    assert!(network.send(0, 100));
    let mut acknowledgements = Vec::new();
    network.pass(&mut |datagram| {
        acknowledgements.extend((datagram[3] == 5).then(|| datagram.to_vec()));
        Treatment::Pass
    });
    assert_eq!((acknowledgements.len(), acknowledgements[0].len()), (1, HEADER_LEN));
    // Who has no key can change none; who repeats an old one changes nothing.
    let mut forged = acknowledgements[0].clone();
    forged[8] = 9;
    network.inject_to_first(&forged);
    network.inject_to_first(&acknowledgements[0]);
    assert_eq!(network.first.udp_counters().not_proved, 1);
    assert_eq!(network.first.udp_counters().acknowledgements_refused, 0);
    // The same endpoint in its next life has sent nothing yet.
    let mut next = Network::with(&UdpOptions { incarnation: 2, ..options() }, network.pool.clone());
    assert!(next.send(0, 100));
    next.first.flush(next.now);
    next.inject_to_first(&acknowledgements[0]);
    assert_eq!(next.first.udp_counters().not_proved, 1);
    (0..30).for_each(|_| next.pass(&mut |_| Treatment::Pass));
    assert_eq!((next.arrived, next.first.udp_counters().unacknowledged), (1, 0));
    drop((network.first, network.second));
    next.check_pages_home();
}

#[test]
fn what_goes_to_a_group_is_not_acknowledged() {
    let mut options = options();
    options.multicast.interface = Some(Ipv4Addr::LOCALHOST);
    let mut network = Network::new(&options);
    let group = network.first.add_peer("239.192.0.9:9".parse().unwrap()).unwrap();
    network.first.send(group, &message(0, 100), &Bulk::empty()).unwrap();
    network.first.flush(network.now);
    assert_eq!((network.first.queued_bytes(), network.first.next_deadline()), (0, None));
}

#[test]
fn peers_that_are_removed_take_what_waited_with_them() {
    let mut network = Network::new(&options());
    (0..20).for_each(|number| assert!(network.send(number, 9000)));
    network.first.flush(network.now);
    assert!(network.first.queued_bytes() > 0);
    network.first.remove_peer(network.peer);
    assert_eq!((network.first.queued_bytes(), network.first.udp_counters().unacknowledged), (0, 20));
    assert_eq!(network.first.flush(network.now), Flushed::All);
}

#[test]
fn time_outs_of_no_length_are_refused() {
    let pool = Pool::new(&PoolOptions { name: "p".into(), page_len: 64 << 10, pages: 1, prefault: false }).unwrap();
    let acknowledged =
        options().acknowledged.map(|acknowledged| Acknowledged { retransmit_after: Duration::ZERO, ..acknowledged });
    let refused = Endpoint::bind(LOOPBACK, &UdpOptions { acknowledged, ..options() }, &pool);
    assert_eq!(refused.unwrap_err(), InvalidOptions::RetransmitAtOnce);
}

/// Two endpoints and a network between them that is ours, in a time that is ours.
struct Network {
    pool: Pool,
    to_second: UdpSocket,
    to_first: UdpSocket,
    first: Endpoint,
    second: Endpoint,
    second_options: UdpOptions,
    peer: PeerId,
    from_first: PeerId,
    now: Time,
    /// Number of the message that comes next.
    next: u64,
    arrived: u64,
}

impl Network {
    fn new(options: &UdpOptions) -> Self {
        let pool = PoolOptions { name: "receive".into(), page_len: 256 << 10, pages: 64, prefault: false };
        Self::with(options, Pool::new(&pool).unwrap())
    }

    fn with(options: &UdpOptions, pool: Pool) -> Self {
        let bind = || {
            let socket = UdpSocket::bind(LOOPBACK).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let (to_second, to_first) = (bind(), bind());
        let mut first = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let mut second = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let life = options.incarnation;
        let peer = first.add_peer_in_life(to_second.local_addr().unwrap(), life).unwrap();
        let from_first = second.add_peer_in_life(to_first.local_addr().unwrap(), life).unwrap();
        let (now, second_options) = (Time::from_ns(1_000_000), options.clone());
        Self { pool, to_second, to_first, first, second, second_options, peer, from_first, now, next: 0, arrived: 0 }
    }

    /// The second begins anew, in its next life, and the first is told.
    fn restart_second(&mut self) {
        self.second_options.incarnation += 1;
        self.second = Endpoint::bind(LOOPBACK, &self.second_options, &self.pool).unwrap();
        self.from_first = self.second.add_peer(self.to_first.local_addr().unwrap()).unwrap();
        let (address, life) = (self.to_second.local_addr().unwrap(), self.second_options.incarnation);
        self.first.remove_peer(self.peer);
        self.peer = self.first.add_peer_in_life(address, life).unwrap();
    }

    /// The first begins anew, in its next life, and the second is told.
    fn restart_first(&mut self) {
        let options = UdpOptions { incarnation: self.second_options.incarnation + 1, ..self.second_options.clone() };
        self.first = Endpoint::bind(LOOPBACK, &options, &self.pool).unwrap();
        self.peer = self.first.add_peer(self.to_second.local_addr().unwrap()).unwrap();
        self.second.remove_peer(self.from_first);
        let address = self.to_first.local_addr().unwrap();
        self.from_first = self.second.add_peer_in_life(address, options.incarnation).unwrap();
    }

    fn send(&mut self, number: u64, len: usize) -> bool {
        self.first.send(self.peer, &message(number, len), &Bulk::empty()).is_ok()
    }

    /// Sends until one is refused; returns how many were not.
    fn fill_queue(&mut self) -> u64 {
        (0..).find(|number| !self.send(*number, 9000)).expect("the queue has a bound")
    }

    /// A millisecond.
    fn pass(&mut self, treat: &mut impl FnMut(&[u8]) -> Treatment) {
        self.now = self.now + Duration::from_millis(1);
        self.first.fill(self.now).unwrap();
        self.first.flush(self.now);
        while carry(&self.to_second, &self.to_first, self.second.local_address(), treat) {
            while self.second.fill(self.now).unwrap() == Filled::Some {
                while let Some((_, frame)) = self.second.next_frame() {
                    let bytes = frame.head.as_bytes();
                    let number = u64::from_le_bytes(*bytes[4..].first_chunk().unwrap());
                    assert!(bytes == message(number, bytes.len()), "message {number}");
                    assert_eq!(number, self.next, "in order");
                    self.next += 1;
                    self.arrived += 1;
                }
            }
        }
        self.second.fill(self.now).unwrap();
        self.second.flush(self.now);
        while carry(&self.to_first, &self.to_second, self.first.local_address(), treat) {
            while self.first.fill(self.now).unwrap() == Filled::Some {}
        }
    }

    fn inject_to_first(&mut self, datagram: &[u8]) {
        self.to_second.send_to(datagram, self.first.local_address()).unwrap();
        while self.first.fill(self.now).unwrap() == Filled::Some {}
    }

    fn inject_to_second(&mut self, datagram: &[u8]) {
        self.to_first.send_to(datagram, self.second.local_address()).unwrap();
    }

    fn check_pages_home(self) {
        drop((self.first, self.second));
        assert_eq!(self.pool.counters().in_use, 0);
    }
}

fn options() -> UdpOptions {
    UdpOptions {
        segmentation_offload: false,
        receive_offload: false,
        incomplete_timeout: Duration::from_millis(200),
        ask_after: Duration::from_millis(2),
        queue_bytes_max: 256 << 10,
        acknowledged: Some(Acknowledged {
            window_bytes: WINDOW,
            retransmit_after: RETRANSMIT_AFTER,
            retransmits_max: 8,
        }),
        relayed: true,
        ..UdpOptions::new(FrameLimits::new(8, 64 << 10).unwrap(), [5; 16])
    }
}
