//! What a process sends and receives in datagrams: the messages that may be lost and are chosen to travel so
//! `[EB2007 §II-B.4]`.
//!
//! Requests and clears have an endpoint of their own, so that a flood of replies cannot drop them. What does not fit, because
//! the queue of an endpoint is full, is dropped and counted: waiting would need a second queue behind it, and the
//! protocols ask again for what does not come. A message longer than an endpoint takes goes over the connection.

mod plan;

use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::time::Duration;

use configuration::{Carrier, ClearCarrier, Transport};
use dataflow::bulk::{Bulk, PageSlice};
use dataflow::ids::NodeId;
use dataflow::message::{DatagramAddresses, Message};
use dataflow::report::DatagramCounts;
use dataflow::time::Time;
use transport::link::Filled;
use transport::page_pool::Pool;
use transport::poller::Poller;
use transport::udp::{Endpoint, InvalidOptions, PeerId, TooManyRemoved, UdpOptions};

pub(crate) use plan::{DatagramOptions, replies_kept};

/// The endpoints of a process, and who is behind them.
pub(crate) struct Datagrams {
    transport: Transport,
    control: Lane,
    bulk: Lane,
    /// Receives what is sent to all read-out systems.
    clears: Option<Endpoint>,
    /// All read-out systems, as a peer of `control`.
    readout: Option<PeerId>,
    peers: Vec<(NodeId, Addresses)>,
}

/// Which endpoint a message goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Control,
    Bulk,
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

#[derive(Clone, Copy, PartialEq, Eq)]
struct Addresses {
    control: SocketAddr,
    bulk: SocketAddr,
    to_control: PeerId,
    to_bulk: PeerId,
    /// As a peer of `clears`.
    multicaster: Option<PeerId>,
}

impl Datagrams {
    /// Opens the endpoints; requests and clears are received into one pool, bulk into the other.
    pub(super) fn open(
        options: &DatagramOptions,
        bulk: &Pool,
        control: &Pool,
        poller: &mut Poller,
    ) -> Result<Self, InvalidOptions> {
        let address = SocketAddr::new(options.transport.host, 0);
        let mut open = |udp: &UdpOptions, pool: &Pool| {
            let mut endpoint = Endpoint::bind(address, udp, pool)?;
            endpoint.register(poller)?;
            Ok::<_, InvalidOptions>(Lane { endpoint, frame_len_max: udp.limits.len_max() })
        };
        let (mut lane, bulk) = (open(&options.control, control)?, open(&options.bulk, bulk)?);
        let group = group(&options.transport);
        let to_group = |(group, _)| lane.endpoint.add_peer(SocketAddr::V4(group)).expect("none was removed");
        let readout = group.map(to_group);
        let clears = match group {
            Some((group, interface)) if options.takes_clears => {
                // The group's clears have numbers of their own, and receivers ask for missing ones.
                let options = UdpOptions { ask_after: Duration::ZERO, acknowledged: None, ..options.control.clone() };
                let mut endpoint = Endpoint::join(group, interface, &options, control)?;
                endpoint.register(poller)?;
                Some(endpoint)
            }
            _ => None,
        };
        Ok(Self { transport: options.transport.clone(), control: lane, bulk, clears, readout, peers: Vec::new() })
    }

    /// Where this process takes datagrams.
    pub(crate) fn addresses(&self) -> DatagramAddresses {
        let text = |lane: &Lane| lane.endpoint.local_address().to_string();
        DatagramAddresses { control: text(&self.control), bulk: text(&self.bulk) }
    }

    /// Where the kernel grants smaller buffers than credits allow to be on the way: how much, and what to do.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let lanes = [("requests and clears", &self.control), ("replies", &self.bulk)];
        lanes.into_iter().filter_map(|(what, lane)| plan::complaint(what, lane.endpoint.buffers())).collect()
    }

    /// A node takes datagrams at these addresses from now on; false if they are none.
    pub(crate) fn meet(&mut self, node: NodeId, at: &DatagramAddresses) -> bool {
        let (Ok(control), Ok(bulk)) = (at.control.parse::<SocketAddr>(), at.bulk.parse::<SocketAddr>()) else {
            return false;
        };
        self.part(node);
        let known =
            self.peers.iter().map(|(_, known)| *known).find(|known| (known.control, known.bulk) == (control, bulk));
        let is_mixed = |(_, known): &(NodeId, Addresses)| {
            [known.control, known.bulk].iter().any(|address| [control, bulk].contains(address))
        };
        if known.is_none() && (control == bulk || self.peers.iter().any(is_mixed) || !self.can_reach(&[control, bulk]))
        {
            return false;
        }
        let Ok(addresses) = known.map_or_else(|| self.add(control, bulk), Ok) else { return false };
        self.peers.push((node, addresses));
        true
    }

    /// All endpoints have removed the same number of peers: if one refuses, so does the first.
    fn add(&mut self, control: SocketAddr, bulk: SocketAddr) -> Result<Addresses, TooManyRemoved> {
        let to_control = self.control.endpoint.add_peer(control)?;
        let to_bulk = self.bulk.endpoint.add_peer(bulk)?;
        let multicaster = self.clears.as_mut().map(|clears| clears.add_peer(control)).transpose()?;
        Ok(Addresses { control, bulk, to_control, to_bulk, multicaster })
    }

    /// Whether these are unicast addresses of our family.
    fn can_reach(&self, addresses: &[SocketAddr]) -> bool {
        let is_v4 = self.transport.host.is_ipv4();
        let fits = |ip: IpAddr| ip.is_ipv4() == is_v4 && !ip.is_multicast() && !ip.is_unspecified();
        addresses.iter().all(|address| fits(address.ip()))
    }

    /// A node is gone.
    pub(crate) fn part(&mut self, node: NodeId) {
        let Some(place) = self.peers.iter().position(|(known, _)| *known == node) else { return };
        let (_, addresses) = self.peers.swap_remove(place);
        if self.peers.iter().all(|(_, other)| *other != addresses) {
            self.control.endpoint.remove_peer(addresses.to_control);
            self.bulk.endpoint.remove_peer(addresses.to_bulk);
            if let (Some(clears), Some(multicaster)) = (&mut self.clears, addresses.multicaster) {
                clears.remove_peer(multicaster);
            }
        }
    }

    /// Whether clears go to all read-out systems at once.
    pub(super) fn multicasts(&self) -> bool {
        self.readout.is_some()
    }

    /// Sends a message to a node, if it is of a type that travels so.
    pub(super) fn send(&mut self, to: NodeId, message: &Message, head: &[u8], bulk: &Bulk) -> Sent {
        let Some(way) = self.way(message) else { return Sent::NotHere };
        let Some((_, addresses)) = self.peers.iter().find(|(known, _)| *known == to) else { return Sent::NotHere };
        match way {
            Way::Control => self.control.send(addresses.to_control, head, bulk),
            Way::Bulk => self.bulk.send(addresses.to_bulk, head, bulk),
        }
    }

    /// Sends a message to all read-out systems of other processes, once.
    pub(super) fn send_to_readout(&mut self, head: &[u8]) -> Sent {
        match self.readout {
            Some(readout) => self.control.send(readout, head, &Bulk::empty()),
            None => Sent::NotHere,
        }
    }

    /// Which way messages of this type travel; `None`: over the connection.
    fn way(&self, message: &Message) -> Option<Way> {
        let chosen = &self.transport;
        let (carrier, way) = match message {
            Message::EventRequest { .. } => (chosen.event_request, Way::Control),
            Message::RoiRequest { .. } => (chosen.roi_request, Way::Control),
            Message::EventReply { .. } => (chosen.event_reply, Way::Bulk),
            Message::RoiReply { .. } => (chosen.roi_reply, Way::Bulk),
            Message::Collected { .. } => (chosen.collected, Way::Bulk),
            // A multicast that is repeated for one that missed it goes where nothing is lost.
            Message::Clear { .. } if chosen.clear == ClearCarrier::Udp => (Carrier::Udp, Way::Control),
            _ => return None,
        };
        (carrier == Carrier::Udp).then_some(way)
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

    /// The next frame that came.
    pub(super) fn next_frame(&mut self) -> Option<PageSlice> {
        self.endpoints_mut().find_map(Endpoint::next_frame).map(|(_, frame)| frame.head)
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
            counts.repeated += udp.repeated + udp.retransmitted;
            counts.given_up += udp.timed_out + udp.evicted + udp.abandoned + udp.without_page + udp.unacknowledged;
        }
        counts
    }

    fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.clears.iter().chain([&self.control.endpoint, &self.bulk.endpoint])
    }

    fn endpoints_mut(&mut self) -> impl Iterator<Item = &mut Endpoint> {
        self.clears.iter_mut().chain([&mut self.control.endpoint, &mut self.bulk.endpoint])
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
    let interface = transport.multicast_interface().filter(|_| transport.clear == ClearCarrier::Multicast)?;
    Some((SocketAddrV4::new(transport.udp.group, transport.udp.port), interface))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assembly::Assembly;
    use configuration::Partition;
    use dataflow::ids::{EventId, Role, RunNumber};
    use dataflow::message::Envelope;
    use dataflow::wire;
    use transport::clock;
    use transport::page_pool::PoolOptions;

    const FRAME_MAX: usize = 512 << 10;
    const NODE: NodeId = NodeId(7);

    #[test]
    fn types_of_messages_travel_as_chosen() {
        let (mut first, mut second) = pair("transport.clear=udp");
        let send = |first: &mut Datagrams, message: &Message| {
            let envelope = Envelope { to: NODE, ..ENVELOPE };
            let mut head = Vec::new();
            wire::encode(&envelope, message, &mut head);
            first.send(NODE, message, &head, &Bulk::empty())
        };
        let clear = |events: u64| Message::Clear {
            sequence: 1,
            oldest_valid: EventId(0),
            last: false,
            events: (0..events).map(EventId).collect(),
        };
        assert_eq!(send(&mut first, &clear(100)), Sent::Done);
        assert_eq!(
            send(&mut first, &Message::RoiRequest { event: EventId(1), request: 1, robs: vec![] }),
            Sent::NotHere
        );
        assert_eq!(send(&mut first, &Message::NoMore), Sent::NotHere);
        // Too long for requests: over the connection.
        assert_eq!(send(&mut first, &clear(50_000)), Sent::NotHere);
        first.flush(clock::now());
        assert!(second.fill(clock::now()));
        assert_eq!(wire::decode(&second.next_frame().unwrap()).unwrap().1, clear(100));
        first.part(NODE);
        assert_eq!(send(&mut first, &clear(100)), Sent::NotHere);
        assert_eq!((first.counts().sent, second.counts().received), (1, 1));
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let (mut first, _second) = pair("transport.clear=udp");
        let message = Message::Clear { sequence: 1, oldest_valid: EventId(0), last: false, events: vec![] };
        let mut head = Vec::new();
        wire::encode(&ENVELOPE, &message, &mut head);
        let sent = (0..100_000).all(|_| first.send(NODE, &message, &head, &Bulk::empty()) == Sent::Done);
        assert!(sent && first.counts().not_sent > 0);
    }

    #[test]
    fn who_ends_does_not_wait_for_acknowledgements() {
        let (mut first, _hangs) = pair("transport={clear=\"udp\", udp={window=\"200 B\"}}");
        let message = Message::Clear { sequence: 1, oldest_valid: EventId(0), last: false, events: vec![] };
        let mut head = Vec::new();
        wire::encode(&ENVELOPE, &message, &mut head);
        (0..10).for_each(|_| assert_eq!(first.send(NODE, &message, &head, &Bulk::empty()), Sent::Done));
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
            let bad = DatagramAddresses { control: control.to_owned(), bulk: bulk.to_owned() };
            assert!(!first.meet(other, &bad), "{bad:?}");
        }
        // Two nodes of one process.
        assert!(first.meet(other, &good) && first.meet(NODE, &good));
        first.part(other);
        first.part(NODE);
        assert!(first.meet(other, &good));
    }

    #[test]
    fn a_node_that_comes_back_more_often_than_datagrams_can_tell_is_refused() {
        let (mut first, second) = pair("transport.clear=udp");
        let returns = (0..100_000).take_while(|_| {
            first.part(NODE);
            first.meet(NODE, &second.addresses())
        });
        assert_eq!(returns.count(), 65_535);
    }

    const ENVELOPE: Envelope = Envelope {
        from: NodeId(3),
        to: NODE,
        run: RunNumber(1),
        from_incarnation: crate::host::FIRST_LIFE,
        to_incarnation: crate::host::FIRST_LIFE,
    };

    /// Two that know each other, the second as node [`NODE`].
    fn pair(choice: &str) -> (Datagrams, Datagrams) {
        let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
        let partition = Partition::parse("p", text, &[choice.to_owned()]).unwrap();
        let assembly = Assembly::new(partition, vec![vec![1]]).unwrap();
        let mut poller = Poller::new().unwrap();
        let pool = PoolOptions { name: "test".into(), page_len: FRAME_MAX, pages: 8, prefault: false };
        let pool = Pool::new(&pool).unwrap();
        let mut open = |role| {
            let options = DatagramOptions::new(&assembly, &assembly.of(role), "secret", FRAME_MAX).unwrap();
            Datagrams::open(&options, &pool, &pool, &mut poller).unwrap()
        };
        let (mut first, mut second) = (open(Role::Dfm), open(Role::Ros));
        assert!(first.meet(NODE, &second.addresses()) && second.meet(NodeId(3), &first.addresses()));
        (first, second)
    }
}
