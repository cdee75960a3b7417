//! Messages of many megabytes, of which receivers ask for all but the beginning: in parts that their receive buffers hold.

mod network;

use base::bulk::Bulk;
use base::time::Time;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use transport::frame::FrameLimits;
use transport::link::{Filled, Flushed};
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{DATAGRAM_LEN_ETHERNET, Endpoint, IncompleteMessage, PeerId, UdpOptions};

use network::message;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const LEN: usize = 4 << 20;
const HEADER_LEN: usize = 40;
const DATAGRAMS: u64 = LEN.div_ceil(DATAGRAM_LEN_ETHERNET - HEADER_LEN) as u64;

/// None is dropped, asked for as missing, or sent twice.
#[test]
fn two_senders_share_the_receive_buffer() {
    let Some(mut farm) = Farm::new(&options(), 2, 1) else { return skip("two_senders_share_the_receive_buffer") };
    (0..2).for_each(|sender| farm.send(sender, 0, 0));
    (0..1000).for_each(|_| farm.pass());
    farm.check_received(0, 2);
    farm.check_sent(0, 1);
    farm.check_sent(1, 1);
    farm.check_pages_home();
}

#[test]
fn two_receivers_ask_one_sender_at_once() {
    let Some(mut farm) = Farm::new(&options(), 1, 2) else { return skip("two_receivers_ask_one_sender_at_once") };
    for number in 0..3 {
        (0..2).for_each(|receiver| farm.send(0, receiver, number));
        // Neither waits until the other has all: what is on the way goes to both in turn.
        let mut is_shared = false;
        for _ in 0..1000 {
            farm.pass();
            is_shared |= farm.receivers.iter().all(|receiver| receiver.received_len(LEN) > LEN / 2);
        }
        assert!(is_shared, "{farm:?}");
    }
    (0..2).for_each(|receiver| farm.check_received(receiver, 3));
    farm.check_sent(0, 6);
    farm.check_pages_home();
}

/// Who keeps less than what is on the way sends the rest of the oldest unasked. Parts that do not fit in the receive buffer then are
/// lost and counted. Nobody has those of the oldest any more; the newest are asked for as ever.
#[test]
fn what_is_pushed_out_beyond_the_receive_buffer_is_lost_and_the_newest_come() {
    const NAME: &str = "what_is_pushed_out_beyond_the_receive_buffer_is_lost_and_the_newest_come";
    for (kept, expected) in [(1, None), (4, Some(4))] {
        let options = UdpOptions { keep_bytes_max: kept * LEN, ..options() };
        let Some(mut farm) = Farm::new(&options, 1, 1) else { return skip(NAME) };
        for numbers in [[0, 1], [2, 3]] {
            numbers.into_iter().for_each(|number| farm.send(0, 0, number));
            (0..100).for_each(|_| farm.pass());
        }
        (0..5000).for_each(|_| farm.pass());
        let Side { endpoint, arrived, .. } = &farm.receivers[0];
        let counters = endpoint.udp_counters();
        assert!(arrived.contains(&3) && expected.is_none_or(|expected| arrived.len() == expected), "{farm:?}");
        let is_lost = [counters.dropped_by_kernel > 0, counters.timed_out > 0];
        assert_eq!((is_lost, endpoint.next_deadline()), ([kept < 4; 2], None), "{farm:?}");
        farm.check_pages_home();
    }
}

/// Senders and receivers, each of which knows all of the others, in a time that is ours.
#[derive(Debug)]
struct Farm {
    senders: Vec<Side>,
    receivers: Vec<Side>,
    pool: Pool,
    now: Time,
}

#[derive(Debug)]
struct Side {
    endpoint: Endpoint,
    peers: Vec<PeerId>,
    /// The numbers of the messages that have come.
    arrived: Vec<u64>,
}

impl Farm {
    /// `None` where the system grants smaller receive buffers than parts are cut for.
    fn new(options: &UdpOptions, senders: usize, receivers: usize) -> Option<Self> {
        let pool = PoolOptions { name: "receive".into(), page_len: LEN, pages: 32, prefault: false };
        let pool = Pool::new(&pool).unwrap();
        let bind = || Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let side = |_| Side { endpoint: bind(), peers: Vec::new(), arrived: Vec::new() };
        let mut senders: Vec<Side> = (0..senders).map(side).collect();
        let mut receivers: Vec<Side> = (0..receivers).map(side).collect();
        for sender in &mut senders {
            for receiver in &mut receivers {
                sender.peers.push(sender.endpoint.add_peer(receiver.endpoint.local_address()).unwrap());
                receiver.peers.push(receiver.endpoint.add_peer(sender.endpoint.local_address()).unwrap());
            }
        }
        let is_large = receivers[0].endpoint.buffers().receive_granted >= 2 * options.receive_buffer_bytes;
        is_large.then(|| Self { senders, receivers, pool, now: Time::from_ns(1_000_000) })
    }

    fn send(&mut self, sender: usize, receiver: usize, number: u64) {
        let Side { endpoint, peers, .. } = &mut self.senders[sender];
        while endpoint.send(peers[receiver], &message(number, LEN), &Bulk::empty()).is_err() {
            assert_eq!(endpoint.flush(self.now), Flushed::All, "the kernel takes what is in the queue");
        }
    }

    /// A tenth of a millisecond.
    fn pass(&mut self) {
        self.now = self.now + Duration::from_micros(100);
        for Side { endpoint, .. } in &mut self.senders {
            while endpoint.fill(self.now).unwrap() == Filled::Some {}
            assert_eq!(endpoint.flush(self.now), Flushed::All);
        }
        for Side { endpoint, arrived, .. } in &mut self.receivers {
            while endpoint.fill(self.now).unwrap() == Filled::Some {
                while let Some((_, frame)) = endpoint.next_frame() {
                    let bytes = frame.head.as_bytes();
                    let number = u64::from_le_bytes(*bytes[4..].first_chunk().unwrap());
                    assert!(bytes == message(number, LEN), "message {number}");
                    arrived.push(number);
                }
            }
            endpoint.flush(self.now);
        }
    }

    fn check_received(&self, receiver: usize, messages: usize) {
        let Side { endpoint, arrived, .. } = &self.receivers[receiver];
        let counters = endpoint.udp_counters();
        let lost = (counters.dropped_by_kernel, counters.asked, counters.duplicates);
        assert_eq!((arrived.len(), lost), (messages, (0, 0, 0)), "{self:?}");
    }

    fn check_sent(&self, sender: usize, messages: u64) {
        let Side { endpoint, .. } = &self.senders[sender];
        let sent = endpoint.udp_counters();
        // One notice at most for each message.
        let notices = sent.datagrams_sent - messages * DATAGRAMS;
        assert!(notices <= messages, "{self:?}");
        assert_eq!((sent.repeated, sent.asks_refused), (0, 0), "{self:?}");
        assert_eq!((endpoint.counters().frames_sent, endpoint.next_deadline()), (messages, None), "{self:?}");
    }

    fn check_pages_home(self) {
        drop((self.senders, self.receivers));
        assert_eq!(self.pool.counters().in_use, 0);
    }
}

impl Side {
    /// How much of messages of this length has come of those that are incomplete.
    fn received_len(&self, len: usize) -> usize {
        let missing =
            |message: IncompleteMessage<'_>| message.missing.iter().map(ExactSizeIterator::len).sum::<usize>();
        self.peers.iter().flat_map(|peer| self.endpoint.incomplete(*peer)).map(|message| len - missing(message)).sum()
    }
}

fn options() -> UdpOptions {
    UdpOptions {
        ask_after: Duration::from_millis(2),
        incomplete_timeout: Duration::from_millis(200),
        keep_parts_max: 1000,
        keep_bytes_max: 8 * LEN,
        receive_buffer_bytes: 2 << 20,
        queue_bytes_max: 2 * LEN,
        incomplete_bytes_max: 4 * LEN,
        relayed: true,
        ..UdpOptions::new(FrameLimits::new(8, LEN).unwrap(), [5; 16])
    }
}

fn skip(test: &str) {
    testkit::skip(test, "small receive buffers: raise net.core.rmem_max");
}
