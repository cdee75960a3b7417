//! What a process sends and receives in datagrams: the messages that may be lost and are chosen to travel so
//! `[EB2007 §II-B.4]`.
//!
//! Requests and clears have an endpoint of their own, so that a flood of replies cannot drop them. An endpoint
//! whose queue is full drops what does not fit, and counts it. Waiting would need a second queue behind it, and the
//! protocols ask again for what does not come. A message longer than an endpoint takes goes over the connection.

mod plan;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::ids::{Incarnation, NodeId};
use base::time::Time;
use configuration::Transport;
use dataflow::message::{DatagramAddresses, Message};
use dataflow::report::{DatagramCounts, PORTS_MAX};
use transport::link::Filled;
use transport::page_pool::Pool;
use transport::poller::Poller;
use transport::udp::{Endpoint, InvalidOptions, PeerId, TooManyRemoved, UdpOptions};

use super::links_error::LinksError;

pub use plan::DatagramOptions;

/// The endpoints of a process, and who is behind them.
pub struct Datagrams {
    transport: Transport,
    /// The first, and one for each network port of a read-out system here.
    control: Vec<Lane>,
    bulk: Vec<Lane>,
    /// Receives what is sent to all read-out systems.
    clears: Option<Endpoint>,
    /// All read-out systems, as a peer of the first lane of `control`.
    readout: Option<PeerId>,
    peers: Vec<(NodeId, Addresses)>,
    /// By which network port of a read-out system elsewhere that peer of the first lane of `bulk` sends.
    ports: BTreeMap<PeerId, usize>,
}

/// What has become of a message that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is queued, or lost and counted.
    Done,
    /// It has to go over the connection.
    NotHere,
}

struct Lane {
    endpoint: Endpoint,
    frame_len_max: usize,
}

/// A pair of addresses of a process, as those of [`Datagrams::control`] and [`Datagrams::bulk`].
#[derive(Clone, Copy, PartialEq, Eq)]
struct Pair {
    control: SocketAddr,
    bulk: SocketAddr,
}

#[derive(Clone, PartialEq, Eq)]
struct Addresses {
    pairs: Vec<Pair>,
    life: Incarnation,
    /// The first, and one for each network port here or there.
    ways: Vec<PeerWay>,
    /// As a peer of `clears`.
    multicaster: Option<PeerId>,
}

/// From a lane here to a pair of addresses there.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PeerWay {
    lane: usize,
    to_control: PeerId,
    to_bulk: PeerId,
}

impl Datagrams {
    /// Opens the endpoints; requests and clears are received into one pool, bulk into the other.
    pub(super) fn open(
        options: &DatagramOptions,
        bulk: &Pool,
        control: &Pool,
        poller: &mut Poller,
    ) -> Result<Self, LinksError> {
        let mut open = |udp: &UdpOptions, pool: &Pool| {
            let hosts = core::iter::once(options.transport.host).chain(options.ports.iter().copied());
            let lane = |host| {
                let mut endpoint = Endpoint::bind(SocketAddr::new(host, 0), udp, pool)?;
                endpoint.register(poller)?;
                Ok::<_, InvalidOptions>(Lane { endpoint, frame_len_max: udp.limits.len_max() })
            };
            hosts.map(lane).collect::<Result<Vec<_>, _>>()
        };
        let (mut lanes, bulk) = (open(&options.control, control)?, open(&options.bulk, bulk)?);
        let group = group(&options.transport);
        let to_group = |(group, _)| lanes[0].endpoint.add_peer(SocketAddr::V4(group)).expect("none was removed");
        let readout = group.map(to_group);
        let clears = match group {
            Some((group, interface)) if options.takes_clears => {
                // The group's clears have numbers of their own, and receivers ask for missing ones.
                let options = UdpOptions { ask_after: Duration::ZERO, acknowledged: None, ..options.control.clone() };
                let mut endpoint = Endpoint::join(group, interface, &options, control).map_err(LinksError::Group)?;
                endpoint.register(poller)?;
                Some(endpoint)
            }
            _ => None,
        };
        let (transport, peers, ports) = (options.transport.clone(), Vec::new(), BTreeMap::new());
        Ok(Self { transport, control: lanes, bulk, clears, readout, peers, ports })
    }

    /// Where this process takes datagrams.
    pub fn addresses(&self) -> DatagramAddresses {
        let text = |lane: &Lane| lane.endpoint.local_address().to_string();
        let mut pairs = self.control.iter().map(text).zip(self.bulk.iter().map(text));
        let (control, bulk) = pairs.next().expect("there is a first lane");
        DatagramAddresses { control, bulk, ports: pairs.collect() }
    }

    /// Where the kernel grants smaller buffers than credits allow to be on the way: how much, and what to do.
    pub fn complaints(&self) -> Vec<String> {
        // Those of the others are of the same size.
        let lanes = [("requests and clears", &self.control[0]), ("replies", &self.bulk[0])];
        lanes.into_iter().filter_map(|(what, lane)| plan::complaint(what, lane.endpoint.buffers())).collect()
    }

    /// A node takes datagrams at these addresses from now on, in this life, as its connection says; false if they are none.
    pub fn meet(&mut self, node: NodeId, life: Incarnation, at: &DatagramAddresses) -> bool {
        let parse = |(control, bulk): (&String, &String)| {
            Some(Pair { control: control.parse().ok()?, bulk: bulk.parse().ok()? })
        };
        let ports = at.ports.iter().map(|(control, bulk)| (control, bulk));
        let pairs = core::iter::once((&at.control, &at.bulk)).chain(ports).map(parse).collect::<Option<Vec<Pair>>>();
        let Some(pairs) = pairs.filter(|pairs| pairs.len() <= 1 + PORTS_MAX) else { return false };
        self.part(node);
        let known =
            self.peers.iter().map(|(_, known)| known).find(|known| known.pairs == pairs && known.life == life).cloned();
        if known.is_none() && !self.are_new(&pairs) {
            return false;
        }
        let Ok(addresses) = known.map_or_else(|| self.add(pairs, life), Ok) else { return false };
        self.peers.push((node, addresses));
        true
    }

    /// Whether these are different addresses that we can reach, and those of no peer.
    fn are_new(&self, pairs: &[Pair]) -> bool {
        let all: Vec<SocketAddr> = pairs.iter().flat_map(|pair| [pair.control, pair.bulk]).collect();
        let are_different = (1..all.len()).all(|index| !all[..index].contains(&all[index]));
        let mut known = self.peers.iter().flat_map(|(_, known)| &known.pairs);
        let is_mixed = known.any(|pair| all.contains(&pair.control) || all.contains(&pair.bulk));
        are_different && !is_mixed && self.can_reach(&all)
    }

    /// All endpoints have removed each peer as often: if one refuses, so does the first.
    fn add(&mut self, pairs: Vec<Pair>, life: Incarnation) -> Result<Addresses, TooManyRemoved> {
        let has_ports = self.control.len() > 1;
        let ways: Vec<(usize, Pair)> = if has_ports {
            (0..self.control.len()).map(|lane| (lane, pairs[0])).collect()
        } else {
            pairs.iter().map(|pair| (0, *pair)).collect()
        };
        let add = |(lane, Pair { control, bulk }): (usize, Pair)| {
            let to_control = self.control[lane].endpoint.add_peer_in_life(control, life.0)?;
            Ok(PeerWay { lane, to_control, to_bulk: self.bulk[lane].endpoint.add_peer_in_life(bulk, life.0)? })
        };
        let ways = ways.into_iter().map(add).collect::<Result<Vec<_>, _>>()?;
        if !has_ports {
            self.ports.extend(ways[1..].iter().map(|way| way.to_bulk).zip(0..));
        }
        let add_multicaster = |clears: &mut Endpoint| clears.add_peer_in_life(pairs[0].control, life.0);
        let multicaster = self.clears.as_mut().map(add_multicaster).transpose()?;
        Ok(Addresses { pairs, life, ways, multicaster })
    }

    /// Whether these are unicast addresses of our family.
    fn can_reach(&self, addresses: &[SocketAddr]) -> bool {
        let is_v4 = self.transport.host.is_ipv4();
        let fits = |ip: IpAddr| ip.is_ipv4() == is_v4 && !ip.is_multicast() && !ip.is_unspecified();
        addresses.iter().all(|address| fits(address.ip()))
    }

    /// A node is gone.
    pub fn part(&mut self, node: NodeId) {
        let Some(place) = self.peers.iter().position(|(known, _)| *known == node) else { return };
        let (_, addresses) = self.peers.swap_remove(place);
        if self.peers.iter().all(|(_, other)| *other != addresses) {
            for PeerWay { lane, to_control, to_bulk } in addresses.ways {
                self.control[lane].endpoint.remove_peer(to_control);
                self.bulk[lane].endpoint.remove_peer(to_bulk);
                self.ports.remove(&to_bulk);
            }
            if let (Some(clears), Some(multicaster)) = (&mut self.clears, addresses.multicaster) {
                clears.remove_peer(multicaster);
            }
        }
    }

    /// Sends a message to a node that takes datagrams, by a network port if there is one here or there.
    pub(super) fn send(
        &mut self,
        (to, port): (NodeId, Option<usize>),
        message: &Message,
        head: &[u8],
        bulk: &Bulk,
    ) -> Sent {
        let Some((_, addresses)) = self.peers.iter().find(|(known, _)| *known == to) else { return Sent::NotHere };
        let by_port = port.and_then(|port| addresses.ways.get(1 + port));
        let PeerWay { lane, to_control, to_bulk } = *by_port.unwrap_or(&addresses.ways[0]);
        match message {
            Message::EventReply { .. } | Message::RoiReply { .. } | Message::Collected { .. } => {
                self.bulk[lane].send(to_bulk, head, bulk)
            }
            _ => self.control[lane].send(to_control, head, bulk),
        }
    }

    /// Sends a message to all read-out systems of other processes, once.
    pub(super) fn send_to_readout(&mut self, head: &[u8]) -> Sent {
        match self.readout {
            Some(readout) => self.control[0].send(readout, head, &Bulk::empty()),
            None => Sent::NotHere,
        }
    }

    /// Takes in what came, clears and requests first; false if there is nothing now.
    pub(super) fn fill(&mut self, now: Time) -> bool {
        let mut came = false;
        for endpoint in self.endpoints_mut() {
            // An error is the kernel's want of memory or a network that is down: what is lost by it is asked for again.
            came |= matches!(endpoint.fill(now), Ok(Filled::Some | Filled::FramesWaiting));
        }
        came
    }

    /// The next frame that came, and by which network port of a read-out system it did.
    pub(super) fn next_frame(&mut self) -> Option<(PageSlice, Option<usize>)> {
        if let Some((_, frame)) = self.clears.as_mut().and_then(Endpoint::next_frame) {
            return Some((frame.head, None));
        }
        let mut control = self.control.iter_mut().enumerate();
        let request =
            control.find_map(|(lane, at)| at.endpoint.next_frame().map(|(_, frame)| (frame.head, lane.checked_sub(1))));
        request.or_else(|| {
            self.bulk.iter_mut().enumerate().find_map(|(lane, at)| {
                let (peer, frame) = at.endpoint.next_frame()?;
                Some((frame.head, lane.checked_sub(1).or_else(|| self.ports.get(&peer).copied())))
            })
        })
    }

    /// Whether [`fill`](Self::fill) has something to do.
    pub(super) fn is_receivable(&self, now: Time) -> bool {
        self.endpoints().any(|endpoint| endpoint.is_receivable(now))
    }

    /// Hands everything queued to the kernel, as far as it takes it.
    pub(super) fn flush(&mut self, now: Time) {
        for endpoint in self.endpoints_mut() {
            endpoint.flush(now);
        }
    }

    /// Whether something queued can go out now.
    pub(super) fn is_flushable(&self) -> bool {
        self.endpoints().any(Endpoint::is_flushable)
    }

    /// What waits to be sent.
    pub(super) fn queued_bytes(&self) -> usize {
        self.endpoints().map(Endpoint::queued_bytes).sum()
    }

    /// Whether nothing waits to be sent, but for what a peer's acknowledgements hold back.
    pub(super) fn is_flushed(&self) -> bool {
        self.endpoints().all(|endpoint| endpoint.unsent_bytes() == 0)
    }

    /// When [`fill`](Self::fill) has to be called even if nothing comes.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.endpoints().filter_map(Endpoint::next_deadline).min()
    }

    /// What was sent and received, and what was of no use.
    pub(super) fn counts(&self) -> DatagramCounts {
        let mut counts = DatagramCounts::default();
        for endpoint in self.endpoints() {
            let udp = endpoint.udp_counters();
            counts.sent += udp.datagrams_sent;
            counts.received += udp.datagrams_received;
            counts.dropped += udp.dropped_by_kernel;
            counts.not_sent += udp.datagrams_not_sent + endpoint.counters().sends_refused;
            counts.foreign += udp.foreign;
            counts.malformed += udp.oversized
                + udp.not_ours
                + udp.not_proved
                + udp.corrupt
                + udp.contradictory
                + udp.other_segment_len
                + udp.acknowledgements_refused;
            counts.stale += udp.stale;
            counts.duplicates += udp.duplicates + udp.late;
            counts.asked += udp.asked;
            counts.asked_most = counts.asked_most.max(udp.asked_most);
            counts.repeated += udp.repeated + udp.retransmitted;
            counts.given_up += udp.timed_out + udp.evicted + udp.abandoned + udp.without_page + udp.unacknowledged;
        }
        counts
    }

    fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        let lanes = self.control.iter().chain(&self.bulk);
        self.clears.iter().chain(lanes.map(|lane| &lane.endpoint))
    }

    fn endpoints_mut(&mut self) -> impl Iterator<Item = &mut Endpoint> {
        let lanes = self.control.iter_mut().chain(&mut self.bulk);
        self.clears.iter_mut().chain(lanes.map(|lane| &mut lane.endpoint))
    }
}

impl Lane {
    fn send(&mut self, to: PeerId, head: &[u8], bulk: &Bulk) -> Sent {
        if head.len() + bulk.len() > self.frame_len_max {
            return Sent::NotHere;
        }
        // A full queue drops and counts.
        let _ = self.endpoint.send(to, head, bulk);
        Sent::Done
    }
}

/// The group of the read-out systems and the interface to it, if clears are multicast.
fn group(transport: &Transport) -> Option<(SocketAddrV4, std::net::Ipv4Addr)> {
    let interface = transport.multicast_interface().filter(|_| transport.has_multicasts())?;
    Some((SocketAddrV4::new(transport.udp.group, transport.udp.port), interface))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::Assembly;
    use base::ids::{EventId, Incarnation, Role, RunNumber};
    use configuration::Partition;
    use dataflow::message::Envelope;
    use dataflow::wire;
    use membership::run_secret::RunSecret;
    use transport::clock;
    use transport::page_pool::PoolOptions;

    const FRAME_MAX: usize = 512 << 10;
    const NODE: NodeId = NodeId(7);

    #[test]
    fn what_is_too_long_and_who_is_not_there_is_told() {
        let (mut first, mut second) = pair("transport.clear=udp");
        let send = |first: &mut Datagrams, message: &Message| {
            let envelope = Envelope { to: NODE, ..ENVELOPE };
            let mut head = Vec::new();
            wire::encode(&envelope, message, &mut head);
            first.send((NODE, None), message, &head, &Bulk::empty())
        };
        let clear = |events: u64| Message::Clear {
            sequence: 1,
            oldest_valid: EventId(0),
            last: false,
            events: (0..events).map(EventId).collect::<Vec<_>>().into(),
        };
        assert_eq!(send(&mut first, &clear(100)), Sent::Done);
        // Too long for requests: over the connection.
        assert_eq!(send(&mut first, &clear(50_000)), Sent::NotHere);
        first.flush(clock::now());
        assert!(second.fill(clock::now()));
        assert_eq!(wire::decode(&second.next_frame().unwrap().0).unwrap().1, clear(100));
        first.part(NODE);
        assert_eq!(send(&mut first, &clear(100)), Sent::NotHere);
        assert_eq!((first.counts().sent, second.counts().received), (1, 1));
    }

    #[test]
    fn messages_go_by_the_port_that_is_named_and_back_by_it() {
        let ports = ["127.0.0.2", "127.0.0.3"].map(|port| port.parse().unwrap());
        let (mut asks, mut answers, mut poller) = pair_with("transport.clear=udp", &ports);
        let request = Message::EventRequest { requests: Vec::new().into() };
        let reply = Message::EventReply { pushed: 0, replies: Vec::new(), bulk: Bulk::empty() };
        for port in [Some(1), Some(0), None, Some(7)] {
            let (mut head, expected) = (Vec::new(), port.filter(|port| *port < 2));
            wire::encode(&ENVELOPE, &request, &mut head);
            assert_eq!(asks.send((NODE, port), &request, &head, &Bulk::empty()), Sent::Done);
            asks.flush(clock::now());
            poller.wait(Some(Duration::ZERO)).unwrap();
            assert!(answers.fill(clock::now()));
            assert_eq!(answers.next_frame().unwrap().1, expected);
            head.clear();
            wire::encode(&ENVELOPE, &reply, &mut head);
            assert_eq!(answers.send((NodeId(3), port), &reply, &head, &Bulk::empty()), Sent::Done);
            answers.flush(clock::now());
            poller.wait(Some(Duration::ZERO)).unwrap();
            assert!(asks.fill(clock::now()));
            assert_eq!(asks.next_frame().unwrap().1, expected);
        }
        assert_eq!((asks.counts().foreign, answers.counts().foreign), (0, 0));
        asks.part(NODE);
        assert!(asks.ports.is_empty() && asks.meet(NODE, Incarnation::FIRST, &answers.addresses()));
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (mut first, _second) = pair("transport.clear=udp");
        let message = Message::Clear { sequence: 1, oldest_valid: EventId(0), last: false, events: Default::default() };
        let mut head = Vec::new();
        wire::encode(&ENVELOPE, &message, &mut head);
        let sent = (0..100_000).all(|_| first.send((NODE, None), &message, &head, &Bulk::empty()) == Sent::Done);
        assert!(sent && first.counts().not_sent > 0);
    }

    #[test]
    fn who_ends_does_not_wait_for_acknowledgements() {
        let (mut first, _hangs) = pair("transport={clear=\"udp\", udp={window=\"200 B\"}}");
        let message = Message::Clear { sequence: 1, oldest_valid: EventId(0), last: false, events: Default::default() };
        let mut head = Vec::new();
        wire::encode(&ENVELOPE, &message, &mut head);
        (0..10).for_each(|_| assert_eq!(first.send((NODE, None), &message, &head, &Bulk::empty()), Sent::Done));
        assert!(!first.is_flushed());
        first.flush(clock::now());
        assert!(first.queued_bytes() > 0 && first.is_flushed());
    }

    #[test]
    fn addresses_that_are_none_are_refused() {
        let (mut first, second) = pair("transport.clear=udp");
        let good = second.addresses();
        let other = NodeId(8);
        for (control, bulk) in [
            ("", ""),
            ("127.0.0.1:1", "nonsense"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]:1", "[::1]:2"),
            ("239.192.0.1:1", "127.0.0.1:2"),
            ("0.0.0.0:1", "127.0.0.1:2"),
            ("127.0.0.1:1", good.bulk.as_str()),
            (good.bulk.as_str(), good.control.as_str()),
        ] {
            let bad = DatagramAddresses { control: control.to_owned(), bulk: bulk.to_owned(), ports: Vec::new() };
            assert!(!first.meet(other, Incarnation::FIRST, &bad), "{bad:?}");
        }
        // Two nodes of one process.
        assert!(first.meet(other, Incarnation::FIRST, &good) && first.meet(NODE, Incarnation::FIRST, &good));
        first.part(other);
        first.part(NODE);
        assert!(first.meet(other, Incarnation::FIRST, &good));
    }

    #[test]
    fn a_node_that_comes_back_more_often_than_datagrams_can_tell_is_refused() {
        let (mut first, second) = pair("transport.clear=udp");
        let returns = (0..100_000).take_while(|_| {
            first.part(NODE);
            first.meet(NODE, Incarnation::FIRST, &second.addresses())
        });
        assert_eq!(returns.count(), 65_535);
    }

    const ENVELOPE: Envelope = Envelope {
        from: NodeId(3),
        to: NODE,
        run: RunNumber(1),
        from_incarnation: Incarnation::FIRST,
        to_incarnation: Incarnation::FIRST,
    };

    /// Two that know each other, the second as node [`NODE`].
    fn pair(choice: &str) -> (Datagrams, Datagrams) {
        let (first, second, _) = pair_with(choice, &[]);
        (first, second)
    }

    /// The same, the second with further network ports.
    fn pair_with(choice: &str, ports: &[IpAddr]) -> (Datagrams, Datagrams, Poller) {
        let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
        let partition = Partition::parse("p", text, &[choice.to_owned()]).unwrap();
        let assembly = Assembly::new(partition, vec![vec![1]]).unwrap();
        let mut poller = Poller::new().unwrap();
        let pool = PoolOptions { name: "test".into(), page_len: FRAME_MAX, pages: 8, prefault: false };
        let pool = Pool::new(&pool).unwrap();
        let run = RunSecret::new("key", &[1; 16]);
        let mut open = |role, ports| {
            let options = DatagramOptions::new(&assembly, &assembly.of(role), &run, FRAME_MAX).unwrap();
            Datagrams::open(&options.at_ports(ports), &pool, &pool, &mut poller).unwrap()
        };
        let (mut first, mut second) = (open(Role::Dfm, &[]), open(Role::Ros, ports));
        assert!(
            first.meet(NODE, Incarnation::FIRST, &second.addresses())
                && second.meet(NodeId(3), Incarnation::FIRST, &first.addresses())
        );
        (first, second, poller)
    }
}
