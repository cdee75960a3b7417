//! Receivers ask for missing parts, by name. Parts that a lossy network does not bring the first time come without
//! asking the sender for the message anew.

mod network;

use base::bulk::Bulk;
use base::time::Time;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use transport::frame::FrameLimits;
use transport::link::{Filled, Flushed};
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{Endpoint, PeerId, UdpOptions};

use network::{Random, Treatment, carry, message};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const ASK_AFTER: Duration = Duration::from_millis(2);
const TIMEOUT: Duration = Duration::from_millis(200);
/// The kind of a segment that is proved.
const SEGMENT: u8 = 7;

#[test]
fn every_message_comes_through_loss_although_it_is_sent_once() {
    for percent in [1, 10, 30] {
        let mut network = Network::new(&options());
        let mut random = Random(percent);
        let mut arrived = BTreeSet::new();
        for number in 0..400 {
            network.send(number, [100, 9000, 37_500][number as usize % 3]);
            network.pass(|_| random.below(100) >= percent, &mut arrived);
        }
        for _ in 0..TIMEOUT.as_millis() {
            network.pass(|_| random.below(100) >= percent, &mut arrived);
        }
        assert!(arrived.len() == 400, "{percent} %: {} of 400 arrived: {:?}", arrived.len(), network.second);
        let (sent, asked) = (network.first.udp_counters(), network.second.udp_counters());
        assert!(sent.repeated > 0 && asked.asked > 0, "{percent} %: {sent:?} {asked:?}");
        assert_eq!((sent.asks_refused, asked.evicted), (0, 0), "{percent} %: {sent:?} {asked:?}");
        // What was lost, lost again, and little that had come already.
        let most = sent.datagrams_sent * (2 * percent + 2) / 100;
        assert!(sent.repeated <= most, "{percent} %: {} of {} repeated", sent.repeated, sent.datagrams_sent);
        network.check_pages_home();
    }
}

#[test]
fn only_the_missing_segments_are_sent_again() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    network.send(0, 37_500);
    let mut index = 0;
    network.pass(
        |_| {
            index += 1;
            ![3, 4, 9, 27].contains(&index)
        },
        &mut arrived,
    );
    assert!(arrived.is_empty());
    network.now = network.now + ASK_AFTER;
    network.pass(|_| true, &mut arrived);
    network.pass(|_| true, &mut arrived);
    assert_eq!((arrived.len(), network.first.udp_counters().repeated), (1, 4));
    let asked = network.second.udp_counters();
    assert_eq!((asked.asked, asked.duplicates, network.second.udp_counters().datagrams_sent), (1, 0, 1));
    network.check_pages_home();
}

#[test]
fn what_later_messages_have_overtaken_is_asked_for_at_once() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    (0..4).for_each(|number| network.send(number, 9000));
    let (mut index, before) = (0, network.now);
    network.pass(
        |_| {
            index += 1;
            ![2, 3].contains(&index)
        },
        &mut arrived,
    );
    assert_eq!((arrived.len(), network.second.udp_counters().asked), (3, 1));
    network.pass(|_| true, &mut arrived);
    assert_eq!(
        (arrived.len(), network.first.udp_counters().repeated, network.second.udp_counters().duplicates),
        (4, 2, 0)
    );
    // A millisecond for each pass, and none to wait.
    assert_eq!(network.now.since(before), Duration::from_millis(2));
    network.check_pages_home();
}

#[test]
fn segments_that_come_a_little_later_than_later_ones_are_not_asked_for() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    for number in 0..10 {
        network.send(number, 9000);
    }
    network.first.flush(network.now);
    let mut datagrams = Vec::new();
    let mut place = vec![0; 2048];
    while let Ok(len) = network.to_second.recv(&mut place) {
        datagrams.push(place[..len].to_vec());
    }
    assert_eq!(datagrams.len(), 70);
    // Each window of 14 datagrams the wrong way round: two messages.
    for some in datagrams.chunks(14) {
        for datagram in some.iter().rev() {
            network.to_first.send_to(datagram, network.second.local_address()).unwrap();
        }
        while network.second.fill(network.now).unwrap() == Filled::Some {
            while let Some((_, frame)) = network.second.next_frame() {
                arrived.insert(u64::from_le_bytes(*frame.head.as_bytes()[4..].first_chunk().unwrap()));
            }
        }
    }
    assert_eq!((arrived.len(), network.second.udp_counters().asked), (10, 0));
    network.check_pages_home();
}

#[test]
fn what_waits_in_the_socket_is_not_asked_for() {
    let mut network = Network::new(&UdpOptions { datagrams_per_fill: 4, ..options() });
    let mut arrived = BTreeSet::new();
    network.send(0, 37_500);
    network.first.flush(network.now);
    while carry(&network.to_second, &network.to_first, network.second.local_address(), &mut |_| Treatment::Pass) {}
    // A process that is busy: each time the rest seems to be overdue.
    while arrived.is_empty() {
        network.now = network.now + ASK_AFTER + Duration::from_millis(1);
        assert_eq!(network.second.fill(network.now), Ok(Filled::Some));
        arrived.extend(network.second.next_frame().map(|_| 0));
    }
    assert_eq!((network.second.udp_counters().asked, network.second.udp_counters().duplicates), (0, 0));
    network.check_pages_home();
}

#[test]
fn a_long_message_comes_through_loss() {
    const LEN: usize = 4 << 20;
    let limits = FrameLimits::new(8, LEN).unwrap();
    let mut network =
        Network::new(&UdpOptions { limits, incomplete_bytes_max: LEN, queue_bytes_max: LEN, ..options() });
    let (mut random, mut arrived) = (Random(3), BTreeSet::new());
    network.send(0, LEN);
    for _ in 0..2000 {
        network.pass(|_| random.below(100) >= 10, &mut arrived);
    }
    assert_eq!((arrived.len(), network.first.udp_counters().asks_refused), (1, 0), "{:?}", network.second);
    network.check_pages_home();
}

#[test]
fn several_messages_that_were_lost_as_a_whole_are_sent_again_at_once() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    (0..5).for_each(|number| network.send(number, 24_000));
    network.pass(|_| false, &mut arrived);
    // The notice comes, and what it shows to be missing is asked for.
    network.now = network.now + ASK_AFTER;
    network.pass(|_| true, &mut arrived);
    assert!(arrived.is_empty());
    network.pass(|_| true, &mut arrived);
    let sent = network.first.udp_counters();
    assert_eq!((arrived.len(), sent.asks_answered, sent.asks_refused, sent.repeated), (5, 5, 0, 5 * 17), "{sent:?}");
    network.check_pages_home();
}

#[test]
fn a_queue_without_room_refuses_no_ask() {
    // Half of it holds less than one message.
    let mut network = Network::new(&UdpOptions { queue_bytes_max: 64 << 10, ..options() });
    let mut arrived = BTreeSet::new();
    for number in 0..5 {
        network.send(number, 37_500);
        network.first.flush(network.now);
    }
    network.pass(|_| false, &mut arrived);
    network.now = network.now + ASK_AFTER;
    network.pass(|_| true, &mut arrived);
    network.pass(|_| true, &mut arrived);
    // Each gets a part in the first round.
    let sent = *network.first.udp_counters();
    assert_eq!(
        (sent.asks_answered, sent.asks_refused, network.second.incomplete(network.from_first).count()),
        (5, 0, 5)
    );
    for _ in 0..10 {
        network.pass(|_| true, &mut arrived);
    }
    let sent = network.first.udp_counters();
    assert_eq!((arrived.len(), sent.asks_refused, sent.repeated), (5, 0, 5 * 27), "{sent:?}");
    network.check_pages_home();
}

#[test]
fn what_waits_to_be_sent_again_is_not_queued_twice() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    network.send(0, 37_500);
    network.pass(|_| false, &mut arrived);
    network.now = network.now + ASK_AFTER;
    network.pass(|_| true, &mut arrived);
    // The sender is busy, and is asked again before it sends.
    for _ in 0..4 {
        network.now = network.now + ASK_AFTER;
        network.second.fill(network.now).unwrap();
        network.second.flush(network.now);
        while carry(&network.to_first, &network.to_second, network.first.local_address(), &mut |_| Treatment::Pass) {}
        while network.first.fill(network.now).unwrap() == Filled::Some {}
    }
    network.pass(|_| true, &mut arrived);
    let sent = network.first.udp_counters();
    assert_eq!((arrived.len(), sent.repeated, network.second.udp_counters().duplicates), (1, 27, 0), "{sent:?}");
    assert!(sent.asks_refused > 0, "{sent:?}");
    network.check_pages_home();
}

#[test]
fn a_part_that_is_asked_for_is_not_overtaken_by_what_was_sent_before() {
    let mut network = Network::new(&UdpOptions { unasked_len: 30_000, ..options() });
    let mut arrived = BTreeSet::new();
    (0..2).for_each(|number| network.send(number, 60_000));
    (0..3).for_each(|_| network.pass(|_| true, &mut arrived));
    let (sent, received) = (network.first.udp_counters(), network.second.udp_counters());
    assert_eq!((arrived.len(), received.asked, received.duplicates), (2, 0, 0), "{received:?}");
    assert_eq!((sent.asks_answered, sent.asks_refused, sent.repeated), (2, 0, 0), "{sent:?}");
    network.check_pages_home();
}

#[test]
fn a_long_message_that_makes_room_for_the_next_is_sent_to_its_end() {
    const LEN: usize = 60_000;
    let bounds = UdpOptions { queue_bytes_max: 96 << 10, keep_bytes_max: 64 << 10, ..options() };
    let mut network = Network::new(&UdpOptions { unasked_len: 20_000, ..bounds });
    let (mut arrived, mut refused) = (BTreeSet::new(), 0);
    for number in 0..8 {
        while network.first.send(network.peer, &message(number, LEN), &Bulk::empty()).is_err() {
            refused += 1;
            assert_eq!(network.first.flush(network.now), Flushed::All);
            // The receiver asks for nothing, and is sent all the same.
            let (to_second, to_first) = (&network.to_second, &network.to_first);
            while carry(to_second, to_first, network.second.local_address(), &mut |_| Treatment::Pass) {}
        }
    }
    (0..3).for_each(|_| network.pass(|_| true, &mut arrived));
    let (sent, received) = (network.first.udp_counters(), network.second.udp_counters());
    assert_eq!((arrived.len(), received.duplicates, received.asked), (8, 0, 0), "{sent:?} {received:?}");
    assert_eq!((sent.repeated, network.first.counters().frames_sent), (0, 8), "{sent:?}");
    assert!((1..=8).contains(&refused), "{refused} refused");
    network.check_pages_home();
}

#[test]
fn what_waits_for_a_page_is_not_asked_for_until_the_patience_ends() {
    let mut network = Network::new(&UdpOptions { datagrams_per_fill: 4, ..options() });
    let mut frames = Vec::new();
    (0..20).for_each(|number| network.send_to_socket(number, 37_500));
    // A consumer that is busy with what it has, and as many pages are elsewhere.
    assert_eq!(network.second.fill(network.now), Ok(Filled::Some));
    let elsewhere: Vec<_> = core::iter::from_fn(|| network.pool.take()).collect();
    let take = |network: &mut Network, frames: &mut Vec<_>| {
        let filled = network.second.fill(network.now).unwrap();
        frames.extend(core::iter::from_fn(|| network.second.next_frame()));
        filled
    };
    while take(&mut network, &mut frames) != Filled::PoolEmpty {}
    assert_eq!(network.second.incomplete(network.from_first).count(), 1);
    let overdue = network.second.next_deadline().unwrap();
    for _ in 0..16 {
        network.now = network.now + ASK_AFTER;
        assert_eq!(network.second.is_receivable(network.now), overdue <= network.now);
        assert_eq!(take(&mut network, &mut frames), Filled::PoolEmpty);
    }
    assert_eq!(network.second.udp_counters().asked, u64::from(overdue <= network.now));
    drop(elsewhere);
    while take(&mut network, &mut frames) == Filled::Some {}
    assert_eq!((frames.len(), network.second.udp_counters().duplicates), (20, 0));
    drop(frames);
    network.check_pages_home();
}

#[test]
fn what_never_gets_a_page_is_given_up_soon_after_its_time() {
    let mut network = Network::new(&UdpOptions { datagrams_per_fill: 4, ..options() });
    (0..20).for_each(|number| network.send_to_socket(number, 37_500));
    assert_eq!(network.second.fill(network.now), Ok(Filled::Some));
    let elsewhere: Vec<_> = core::iter::from_fn(|| network.pool.take()).collect();
    let mut frames = Vec::new();
    while network.second.fill(network.now).unwrap() != Filled::PoolEmpty {
        frames.extend(core::iter::from_fn(|| network.second.next_frame()));
    }
    network.now = network.now + TIMEOUT + 16 * ASK_AFTER;
    network.second.fill(network.now).unwrap();
    assert_eq!(network.second.udp_counters().timed_out, 1);
    drop((elsewhere, frames));
    network.check_pages_home();
}

#[test]
fn notices_do_not_put_off_what_is_due() {
    let mut network = Network::new(&UdpOptions { datagrams_per_fill: 1, ..options() });
    let mut arrived = BTreeSet::new();
    network.send(0, 9000);
    let mut index = 0;
    network.pass(
        |_| {
            index += 1;
            index != 3
        },
        &mut arrived,
    );
    // The socket is never empty, and every two milliseconds a notice comes.
    let foreign = UdpSocket::bind(LOOPBACK).unwrap();
    (0..10).for_each(|_| _ = foreign.send_to(&[0; 100], network.second.local_address()).unwrap());
    let begin = network.now;
    let mut number = 1;
    while network.second.udp_counters().asked == 0 {
        network.send(number, 100);
        number += 1;
        network.first.flush(network.now);
        while carry(&network.to_second, &network.to_first, network.second.local_address(), &mut |_| Treatment::Drop) {}
        network.now = network.now + ASK_AFTER;
        network.first.fill(network.now).unwrap();
        network.first.flush(network.now);
        while carry(&network.to_second, &network.to_first, network.second.local_address(), &mut |_| Treatment::Pass) {}
        assert_eq!(network.second.fill(network.now), Ok(Filled::Some));
        assert!(network.now.since(begin) <= 18 * ASK_AFTER, "{:?}", network.second);
    }
    assert!(number > 12, "notices have come");
    network.check_pages_home();
}

#[test]
fn what_the_sender_has_forgotten_is_given_up_after_the_time_out() {
    let mut network = Network::new(&UdpOptions { keep_parts_max: 4, ..options() });
    let mut arrived = BTreeSet::new();
    network.send(0, 9000);
    network.pass(|datagram| datagram.len() < 1472, &mut arrived);
    (1..10).for_each(|number| network.send(number, 9000));
    network.pass(|_| true, &mut arrived);
    assert!(!arrived.contains(&0) && arrived.len() == 9);
    for _ in 0..TIMEOUT.as_millis() {
        network.pass(|_| true, &mut arrived);
    }
    let asked = *network.second.udp_counters();
    assert_eq!((arrived.len(), asked.timed_out, network.second.incomplete(network.from_first).count()), (9, 1, 0));
    // Ever more slowly: four times 2 ms after each other, four times 4 ms, 6 …
    assert!((20..35).contains(&asked.asked), "{asked:?}");
    assert_eq!(network.first.udp_counters().asks_refused, asked.asked);
    assert_eq!(network.second.next_deadline(), None);
    network.check_pages_home();
}

#[test]
fn a_gap_in_the_numbers_is_bounded() {
    let mut network = Network::new(&UdpOptions { incomplete_messages_max: 8, ..options() });
    let mut arrived = BTreeSet::new();
    for number in 0..100 {
        network.send(number, 100);
    }
    network.pass(|_| false, &mut arrived);
    network.send(100, 100);
    network.pass(|_| true, &mut arrived);
    network.now = network.now + ASK_AFTER;
    network.pass(|_| true, &mut arrived);
    network.pass(|_| true, &mut arrived);
    assert_eq!(arrived, (92..101).collect());
    assert_eq!(network.second.udp_counters().asked, 8);
    network.check_pages_home();
}

#[test]
fn a_message_that_nothing_follows_is_asked_for_after_a_notice() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    network.send(0, 9000);
    network.pass(|_| false, &mut arrived);
    // The notices are lost as well, and come again, each after twice as long.
    for _ in 0..40 {
        network.pass(|_| false, &mut arrived);
    }
    assert_eq!((arrived.len(), network.first.udp_counters().datagrams_sent), (0, 7 + 4));
    for _ in 0..300 {
        network.pass(|_| true, &mut arrived);
    }
    assert_eq!((arrived.len(), network.second.udp_counters().asked), (1, 1));
    let sent = network.first.udp_counters();
    assert_eq!((sent.repeated, sent.datagrams_sent), (7, 7 + 4 + 7 + 2), "{sent:?}");
    assert_eq!((network.first.next_deadline(), network.second.next_deadline()), (None, None));
    network.check_pages_home();
}

#[test]
fn what_is_sent_to_others_does_not_put_off_a_notice() {
    let mut network = Network::new(&options());
    let others = UdpSocket::bind(LOOPBACK).unwrap();
    let other = network.first.add_peer(others.local_addr().unwrap()).unwrap();
    let mut arrived = BTreeSet::new();
    network.send(0, 9000);
    network.pass(|_| false, &mut arrived);
    let begin = network.now;
    for number in 0.. {
        if !arrived.is_empty() {
            break;
        }
        network.first.send(other, &message(number, 100), &Bulk::empty()).unwrap();
        network.pass(|_| true, &mut arrived);
        assert!(network.now.since(begin) < 8 * ASK_AFTER, "{:?}", network.first);
    }
    network.check_pages_home();
}

#[test]
fn who_sends_again_needs_no_notice() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    for number in 0..50 {
        network.send(number, 1000);
        network.pass(|_| true, &mut arrived);
        // The process sleeps for longer than a notice would take, and then has something to send.
        network.now = network.now + 2 * ASK_AFTER;
        network.first.fill(network.now).unwrap();
    }
    assert_eq!((arrived.len(), network.first.udp_counters().datagrams_sent), (50, 50));
    assert_eq!(network.second.udp_counters().datagrams_sent, 0);
    for _ in 0..100 {
        network.pass(|_| true, &mut arrived);
    }
    assert_eq!((network.first.udp_counters().datagrams_sent, network.first.next_deadline()), (51, None));
    network.check_pages_home();
}

#[test]
fn what_has_come_is_no_longer_kept() {
    let mut network = Network::new(&options());
    let mut arrived = BTreeSet::new();
    let source =
        Pool::new(&PoolOptions { name: "source".into(), page_len: 4096, pages: 1024, prefault: false }).unwrap();
    let head = |number: u64| message(number, 4096)[..12].to_vec();
    let send = |network: &mut Network, number| {
        let mut page = source.take().expect("pages come home");
        page.bytes_mut()[..4084].copy_from_slice(&message(number, 4096)[12..]);
        let bulk = Bulk::Pages(page.freeze(4084));
        network.first.send(network.peer, &head(number), &bulk).unwrap();
    };
    for number in 0..500 {
        send(&mut network, number);
        network.pass(|_| true, &mut arrived);
    }
    assert!(arrived.len() == 500 && source.counters().in_use_max <= 129);
    for _ in 0..10 {
        network.pass(|_| true, &mut arrived);
    }
    assert_eq!((source.counters().in_use, network.first.next_deadline()), (0, None));
    network.check_pages_home();
}

#[test]
fn thousands_of_later_messages_do_not_make_one_too_old() {
    let mut network = Network::new(&UdpOptions { keep_parts_max: 8000, ..options() });
    let mut arrived = BTreeSet::new();
    send_many(&mut network, 3000, &mut arrived);
    assert_eq!(arrived.len(), 2999);
    (0..20).for_each(|_| network.pass(|_| true, &mut arrived));
    let counters = network.second.udp_counters();
    assert_eq!((arrived.len(), counters.late, counters.messages_lost), (3000, 0, 0), "{counters:?}");
    network.check_pages_home();
}

#[test]
fn what_is_too_old_is_lost_and_counted_and_asked_for_no_more() {
    let mut network = Network::new(&UdpOptions { keep_parts_max: 8000, ..options() });
    let mut arrived = BTreeSet::new();
    send_many(&mut network, 5000, &mut arrived);
    let asked = network.second.udp_counters().asked;
    (0..100).for_each(|_| network.pass(|_| true, &mut arrived));
    let counters = network.second.udp_counters();
    assert_eq!((arrived.len(), counters.late, counters.messages_lost), (4999, 1, 1), "{counters:?}");
    assert!(counters.asked <= asked + 1, "{counters:?}");
    network.check_pages_home();
}

/// So many messages within a millisecond or few, of which the sixth is lost as often as it is sent.
fn send_many(network: &mut Network, count: u64, arrived: &mut BTreeSet<u64>) {
    let lets_pass = |datagram: &[u8]| !(datagram[3] == SEGMENT && datagram[8..16] == 5_u64.to_le_bytes());
    for number in 0..count {
        network.send(number, 100);
        if number % 100 == 99 {
            network.pass(lets_pass, arrived);
        }
    }
}

#[test]
fn nobody_asks_for_what_goes_to_a_group() {
    let mut options = options();
    options.multicast.interface = Some(Ipv4Addr::LOCALHOST);
    let mut network = Network::new(&options);
    let group = network.first.add_peer("239.192.0.9:9".parse().unwrap()).unwrap();
    network.first.send(group, &message(0, 100), &Bulk::empty()).unwrap();
    network.first.flush(network.now);
    assert_eq!(network.pool.counters().in_use, 0);
}

/// Two endpoints and a network between them that is ours, in a time that is ours.
struct Network {
    pool: Pool,
    /// What each of them takes for the other.
    to_second: UdpSocket,
    to_first: UdpSocket,
    first: Endpoint,
    second: Endpoint,
    peer: PeerId,
    from_first: PeerId,
    now: Time,
}

impl Network {
    fn new(options: &UdpOptions) -> Self {
        let page_len = options.limits.len_max().max(256 << 10);
        let pool = Pool::new(&PoolOptions { name: "receive".into(), page_len, pages: 64, prefault: false });
        let pool = pool.unwrap();
        let bind = || {
            let socket = UdpSocket::bind(LOOPBACK).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let (to_second, to_first) = (bind(), bind());
        let mut first = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let mut second = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let peer = first.add_peer(to_second.local_addr().unwrap()).unwrap();
        let from_first = second.add_peer(to_first.local_addr().unwrap()).unwrap();
        Self { pool, to_second, to_first, first, second, peer, from_first, now: Time::from_ns(1_000_000) }
    }

    fn send(&mut self, number: u64, len: usize) {
        self.first.send(self.peer, &message(number, len), &Bulk::empty()).unwrap();
    }

    /// A message that waits in the receiver's socket.
    fn send_to_socket(&mut self, number: u64, len: usize) {
        self.send(number, len);
        self.first.flush(self.now);
        while carry(&self.to_second, &self.to_first, self.second.local_address(), &mut |_| Treatment::Pass) {}
    }

    /// A millisecond: what was sent arrives, if the network lets it pass, both ways.
    fn pass(&mut self, mut lets_pass: impl FnMut(&[u8]) -> bool, arrived: &mut BTreeSet<u64>) {
        let mut treat = |datagram: &[u8]| if lets_pass(datagram) { Treatment::Pass } else { Treatment::Drop };
        self.now = self.now + Duration::from_millis(1);
        self.first.fill(self.now).unwrap();
        self.first.flush(self.now);
        // Few at a time: the test is not about small receive buffers.
        while carry(&self.to_second, &self.to_first, self.second.local_address(), &mut treat) {
            while self.second.fill(self.now).unwrap() == Filled::Some {
                while let Some((_, frame)) = self.second.next_frame() {
                    let bytes = frame.head.as_bytes();
                    let number = u64::from_le_bytes(*bytes[4..].first_chunk().unwrap());
                    assert!(bytes == message(number, bytes.len()), "message {number}");
                    assert!(arrived.insert(number), "message {number} comes again");
                }
            }
        }
        self.second.fill(self.now).unwrap();
        self.second.flush(self.now);
        while carry(&self.to_first, &self.to_second, self.first.local_address(), &mut treat) {
            while self.first.fill(self.now).unwrap() == Filled::Some {}
        }
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
        incomplete_timeout: TIMEOUT,
        ask_after: ASK_AFTER,
        keep_parts_max: 1000,
        keep_bytes_max: 64 << 20,
        relayed: true,
        ..UdpOptions::new(FrameLimits::new(8, 64 << 10).unwrap(), [5; 16])
    }
}
