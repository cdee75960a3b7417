//! What carries each message of components to other processes. The partition chooses by type `[EB2007 §II-B.4]`, and by
//! one of the network ports of a read-out system `[EB2007 §II-A]`.
//!
//! Messages that may not be lost have one carrier for each pair of roles. A connection keeps their order, and
//! nothing relies on an order between pairs. The others may overtake one another, whatever carries them.
//!
//! The numbers of an event and of a request say by which port both the request and its reply go. So a reply goes
//! back by the port of its request, and what is asked for again goes by another one. Groups are divided among the
//! ports.

use std::collections::BTreeMap;

use base::bulk::{Bulk, BulkParts, PageSlice};
use base::ids::{EventId, NodeId, Role};
use configuration::{MessageType, Partition, Transport, Way};
use dataflow::message::{DataReply, DataRequest, Envelope, Message};
use dataflow::report::CarrierKind;
use membership::passage::{LinkId, Medium, Strand};

/// The kind of connection of what goes over one.
pub(super) fn medium_of(way: Way) -> Option<Medium> {
    match way {
        Way::Tcp => Some(Medium::Tcp),
        Way::Shm => Some(Medium::Shm),
        Way::Udp | Way::Multicast => None,
    }
}

/// As what it counts.
pub(super) fn counted(kind: Medium) -> CarrierKind {
    match kind {
        Medium::Tcp => CarrierKind::Tcp,
        Medium::Shm => CarrierKind::Shm,
    }
}

/// The choice of a partition.
#[derive(Clone, Debug)]
pub struct Carriers {
    transport: Transport,
    /// Network ports of each read-out system; 0 where there is one only.
    ports: usize,
    pushes: bool,
    /// By node.
    roles: Vec<Role>,
    /// By node from 1 on; empty where all are on one host.
    hosts: Vec<usize>,
    /// Everything goes over the one connection between two processes.
    is_plain: bool,
}

/// How a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Choice {
    pub(super) way: Way,
    pub(super) port: Option<usize>,
}

impl Carriers {
    /// As the partition chooses; `roles` are those of its nodes, run control included.
    pub fn new(partition: &Partition, roles: Vec<Role>) -> Self {
        let transport = partition.transport.clone();
        let ports = partition.ros.ports.len();
        let default = transport.connections.way();
        let is_plain = ports == 0 && MessageType::ALL.into_iter().all(|of| transport.way(of) == default);
        let hosts = partition.placement().unwrap_or_default();
        Self { transport, ports, pushes: partition.push().is_some(), roles, hosts, is_plain }
    }

    /// Those of a process that does not know its partition.
    pub fn unknown() -> Self {
        Self {
            transport: Transport::default(),
            ports: 0,
            pushes: false,
            roles: Vec::new(),
            hosts: Vec::new(),
            is_plain: true,
        }
    }

    /// Whether everything goes over the one connection between two processes.
    pub(super) fn are_plain(&self) -> bool {
        self.is_plain
    }

    /// The connections between processes with one application each, the first of which carries what must keep its order. Both
    /// sides come to the same list.
    ///
    /// # Panics
    /// No medium carries what must keep its order: a broken invariant.
    pub fn connections(&self, one: NodeId, other: NodeId) -> Vec<Strand> {
        let reach = self.reach(one, other);
        let (one, other) = (self.role(one), self.role(other));
        let first = reach.of(self.ordered(one, other));
        let mut strands = vec![Strand { medium: medium_of(first).expect("what is ordered is connected"), port: None }];
        for of in self.types_between(one, other) {
            let Some(medium) = medium_of(reach.of(self.transport.way(of))) else { continue };
            let ports = if is_spread(of) { self.ports_between(one, other) } else { 0 };
            let port = |port| Strand { medium, port };
            let needed =
                if ports == 0 { vec![port(None)] } else { (0..ports).map(|number| port(Some(number))).collect() };
            needed.into_iter().for_each(|strand| {
                if !strands.contains(&strand) {
                    strands.push(strand);
                }
            });
        }
        strands
    }

    /// How a message goes, or that its parts go in several ways.
    pub(super) fn choose(&self, envelope: &Envelope, message: &Message) -> Result<Choice, InSeveralWays> {
        let reach = self.reach(envelope.from, envelope.to);
        let (from, to) = (self.role(envelope.from), self.role(envelope.to));
        let by = |of: MessageType, port| Choice { way: reach.of(self.transport.way(of)), port };
        if is_in_crate(from, to) {
            return Ok(by(MessageType::Roc, None));
        }
        let ports = self.ports_between(from, to);
        let port = |event: &EventId, request: u32| port_of(*event, request, ports);
        Ok(match message {
            Message::EventRequest { requests } => match requests.as_slice() {
                _ if ports == 0 => by(MessageType::EventRequest, None),
                [request] => by(MessageType::EventRequest, port(&request.event.event, request.request)),
                _ => return Err(InSeveralWays),
            },
            Message::EventReply { replies, .. } => {
                let of = |reply: &DataReply| type_of_reply(reply);
                match replies.as_slice() {
                    [] => by(MessageType::EventReply, None),
                    [reply] => by(of(reply), port(&reply.event, reply.request)),
                    [first, rest @ ..] if ports == 0 && rest.iter().all(|reply| of(reply) == of(first)) => {
                        by(of(first), None)
                    }
                    _ => return Err(InSeveralWays),
                }
            }
            Message::RoiRequest { event, request, .. } => by(MessageType::RoiRequest, port(event, *request)),
            Message::RoiReply { event, request, .. } => by(MessageType::RoiReply, port(event, *request)),
            Message::Collected { .. } => by(MessageType::Collected, None),
            Message::Credit(_) => by(MessageType::Credit, None),
            Message::Push(_) => by(MessageType::Push, None),
            Message::Clear { .. } => by(MessageType::Clear, None),
            _ => Choice { way: reach.of(self.ordered(from, to)), port: None },
        })
    }

    /// The parts of a message and how they go.
    pub(super) fn divide(&self, envelope: &Envelope, message: Message) -> Vec<(Choice, Message)> {
        let reach = self.reach(envelope.from, envelope.to);
        let ports = self.ports_between(self.role(envelope.from), self.role(envelope.to));
        match message {
            Message::EventRequest { requests } => {
                let way = reach.of(self.transport.way(MessageType::EventRequest));
                let mut groups = BTreeMap::<Choice, Vec<DataRequest>>::new();
                for request in &*requests {
                    let port = port_of(request.event.event, request.request, ports);
                    groups.entry(Choice { way, port }).or_default().push(request.clone());
                }
                let message = |requests: Vec<_>| Message::EventRequest { requests: requests.into() };
                groups.into_iter().map(|(choice, requests)| (choice, message(requests))).collect()
            }
            Message::EventReply { pushed, replies, bulk } => {
                let mut groups = BTreeMap::<Choice, (Vec<DataReply>, Vec<PageSlice>)>::new();
                let mut parts = BulkParts::new(bulk);
                for reply in replies {
                    let way = reach.of(self.transport.way(type_of_reply(&reply)));
                    let port = port_of(reply.event, reply.request, ports);
                    let (group, slices) = groups.entry(Choice { way, port }).or_default();
                    slices.extend_from_slice(parts.take(reply.len_bytes as usize).slices());
                    group.push(reply);
                }
                let message = |(replies, slices)| Message::EventReply { pushed, replies, bulk: Bulk::PageList(slices) };
                groups.into_iter().map(|(choice, group)| (choice, message(group))).collect()
            }
            message => unreachable!("{message:?} goes as a whole"),
        }
    }

    /// What carries messages between two roles that may not be lost.
    fn ordered(&self, one: Role, other: Role) -> Way {
        let of = |(one, other)| match (one, other) {
            _ if is_in_crate(one, other) => Some(MessageType::Roc),
            (Role::Level1, _) => Some(MessageType::Level1),
            (Role::L2sv, Role::L2pu | Role::Dfm) | (Role::L2pu, Role::Pros) => Some(MessageType::Level2),
            (Role::Dfm, Role::Sfi | Role::Ros | Role::Trg) => Some(MessageType::Building),
            (Role::Efd, Role::Sfi | Role::Dfm) => Some(MessageType::Filter),
            (Role::Efd, Role::Sfo) => Some(MessageType::Recording),
            _ => None,
        };
        of((one, other))
            .or_else(|| of((other, one)))
            .map_or(self.transport.connections.way(), |of| self.transport.way(of))
    }

    /// Types of messages between two roles that may be lost and are sent.
    fn types_between(&self, one: Role, other: Role) -> Vec<MessageType> {
        let pair = |source: &[Role], sink: Role| {
            (source.contains(&one) && other == sink) || (source.contains(&other) && one == sink)
        };
        let (fronts, sources) = ([Role::Ros, Role::Trg], [Role::Ros, Role::Ebif]);
        let (readout, kept) = ([Role::Ros, Role::Trg, Role::Pros], [Role::Ros, Role::Ebif, Role::Pros]);
        let sent = [
            (MessageType::EventRequest, pair(&kept, Role::Sfi)),
            (MessageType::EventReply, pair(&kept, Role::Sfi)),
            (MessageType::Pushed, self.pushes && pair(&sources, Role::Sfi)),
            (MessageType::Credit, self.pushes && pair(&sources, Role::Sfi)),
            (MessageType::RoiRequest, pair(&fronts, Role::L2pu)),
            (MessageType::RoiReply, pair(&fronts, Role::L2pu)),
            (MessageType::Collected, pair(&[Role::L2pu], Role::Sfi)),
            (MessageType::Clear, pair(&readout, Role::Dfm) || pair(&readout, Role::L2sv)),
            (MessageType::Push, self.pushes && pair(&readout, Role::Dfm)),
        ];
        sent.into_iter().filter(|(_, is_sent)| *is_sent).map(|(of, _)| of).collect()
    }

    /// Over how many network ports data requests and replies between two roles are spread; 0 if they are not.
    fn ports_between(&self, one: Role, other: Role) -> usize {
        let asks = |role| matches!(role, Role::Sfi | Role::L2pu);
        let is_spread = (one == Role::Ros && asks(other)) || (other == Role::Ros && asks(one));
        if is_spread { self.ports } else { 0 }
    }

    fn reach(&self, one: NodeId, other: NodeId) -> Reach {
        let host = |node: NodeId| usize::from(node.0).checked_sub(1).and_then(|place| self.hosts.get(place));
        if host(one) == host(other) { Reach::OneHost } else { Reach::Network }
    }

    fn role(&self, node: NodeId) -> Role {
        self.roles.get(usize::from(node.0)).copied().unwrap_or(Role::RunControl)
    }
}

/// What two applications have in common.
#[derive(Clone, Copy)]
enum Reach {
    OneHost,
    /// No memory.
    Network,
}

impl Reach {
    /// How something goes that was chosen to go like this.
    fn of(self, way: Way) -> Way {
        match (self, way) {
            (Self::Network, Way::Shm) => Way::Tcp,
            (_, way) => way,
        }
    }
}

/// The parts of a message go in several ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InSeveralWays;

/// The connections to one node beside the one that is taken where nothing else is chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Routes(Vec<(Strand, LinkId)>);

impl Routes {
    /// A connection, unless there is one already.
    pub(super) fn add(&mut self, strand: Strand, link: LinkId) -> bool {
        let is_new = self.0.iter().all(|(known, _)| *known != strand);
        if is_new {
            self.0.push((strand, link));
        }
        is_new
    }

    pub(super) fn remove(&mut self, link: LinkId) {
        self.0.retain(|(_, known)| *known != link);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The connection of a kind, by a port if there is one by that.
    pub(super) fn find(&self, medium: Medium, port: Option<usize>) -> Option<LinkId> {
        let by = |port| self.0.iter().find(|(strand, _)| *strand == Strand { medium, port }).map(|(_, link)| *link);
        by(port).or_else(|| by(None))
    }
}

/// Whether both are parts of a read-out crate, which know each other.
fn is_in_crate(one: Role, other: Role) -> bool {
    let is_front = |role| matches!(role, Role::Trg | Role::Ebif);
    let is_part = |role| is_front(role) || role == Role::Ros;
    is_part(one) && is_part(other) && (is_front(one) || is_front(other))
}

fn type_of_reply(reply: &DataReply) -> MessageType {
    if reply.request == 0 { MessageType::Pushed } else { MessageType::EventReply }
}

fn is_spread(of: MessageType) -> bool {
    matches!(
        of,
        MessageType::EventRequest
            | MessageType::EventReply
            | MessageType::Pushed
            | MessageType::RoiRequest
            | MessageType::RoiReply
    )
}

/// Both sides come to the same answer. Mixed, since each builder gets every so many-th event. The next request for an
/// event goes by the next port, since that of the last may be dead.
fn port_of(event: EventId, request: u32, ports: usize) -> Option<usize> {
    let mixed = (event.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    mixed.wrapping_add(request as usize).checked_rem(ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::ids::{Incarnation, RunNumber};
    use dataflow::message::{DataRequest, EventInfo};

    const ROLES: [Role; 6] = [Role::RunControl, Role::Ros, Role::Pros, Role::Dfm, Role::Sfi, Role::Efd];
    const ROS: NodeId = NodeId(1);
    const PROS: NodeId = NodeId(2);
    const DFM: NodeId = NodeId(3);
    const SFI: NodeId = NodeId(4);
    const EFD: NodeId = NodeId(5);

    fn carriers(choice: &[&str]) -> Carriers {
        let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
        let choice: Vec<String> = choice.iter().map(|text| (*text).to_owned()).collect();
        Carriers::new(&Partition::parse("p", text, &choice).unwrap(), ROLES.to_vec())
    }

    fn between(from: NodeId, to: NodeId) -> Envelope {
        let life = Incarnation(0);
        Envelope { from, to, run: RunNumber(1), from_incarnation: life, to_incarnation: life }
    }

    fn request(event: u64) -> DataRequest {
        let event = EventInfo { event: EventId(event), ..EventInfo::default() };
        DataRequest { event, attempt: 1, request: 1, robs: Vec::new() }
    }

    fn reply(event: u64, request: u32) -> DataReply {
        DataReply { event: EventId(event), attempt: 1, request, missing: Vec::new(), len_bytes: 1 + (event % 7) as u32 }
    }

    fn reply_message(replies: Vec<DataReply>) -> Message {
        let bytes = |reply: &DataReply| vec![reply.event.0 as u8; reply.len_bytes as usize];
        let bytes: Vec<u8> = replies.iter().flat_map(bytes).collect();
        Message::EventReply { pushed: 9, replies, bulk: Bulk::Pages(PageSlice::from(bytes)) }
    }

    #[test]
    fn one_connection_is_enough_where_nothing_is_chosen() {
        for connections in ["tcp", "shm"] {
            let carriers = carriers(&[&format!("transport.connections={connections}")]);
            assert!(carriers.are_plain());
            assert_eq!(carriers.connections(SFI, ROS).len(), 1);
        }
    }

    #[test]
    fn between_hosts_nothing_goes_through_shared_memory() {
        let on_hosts = |choice: &str| Carriers { hosts: vec![0, 0, 0, 1, 1], ..carriers(&[choice]) };
        for choice in ["transport.connections=shm", "transport.event_reply=shm"] {
            let carriers = on_hosts(choice);
            let kinds = |one, other| carriers.connections(one, other).into_iter().map(|strand| strand.medium);
            assert!(kinds(SFI, ROS).eq([Medium::Tcp]));
            assert!(kinds(SFI, DFM).eq([Medium::Tcp]) && kinds(NodeId(0), SFI).all(|kind| kind == Medium::Tcp));
            let reply = reply_message(vec![reply(1, 1)]);
            assert_eq!(carriers.choose(&between(ROS, SFI), &reply).unwrap().way, Way::Tcp);
        }
        let carriers = on_hosts("transport.connections=shm");
        assert!(carriers.connections(DFM, ROS).iter().all(|strand| strand.medium == Medium::Shm));
    }

    #[test]
    fn types_travel_as_chosen() {
        let carriers = carriers(&[
            "transport.event_request=udp",
            "transport.event_reply=shm",
            "transport.filter=shm",
            "transport.clear=multicast",
        ]);
        assert!(!carriers.are_plain());
        let way = |from, to, message: &Message| carriers.choose(&between(from, to), message).unwrap().way;
        assert_eq!(way(SFI, ROS, &Message::EventRequest { requests: vec![request(1), request(2)].into() }), Way::Udp);
        assert_eq!(way(ROS, SFI, &reply_message(vec![reply(1, 1), reply(2, 1)])), Way::Shm);
        let clear = Message::Clear { sequence: 1, oldest_valid: EventId(0), last: false, events: Default::default() };
        assert_eq!(way(DFM, ROS, &clear), Way::Multicast);
        assert_eq!(way(EFD, SFI, &Message::Pull(1)), Way::Shm);
        assert_eq!(way(SFI, DFM, &Message::NoMore), Way::Tcp);
        let strand = |medium| Strand { medium, port: None };
        assert_eq!(carriers.connections(SFI, ROS), [strand(Medium::Tcp), strand(Medium::Shm)]);
        assert_eq!(carriers.connections(ROS, SFI), carriers.connections(SFI, ROS));
        assert_eq!(carriers.connections(PROS, SFI), [strand(Medium::Tcp), strand(Medium::Shm)]);
        assert_eq!(carriers.connections(EFD, SFI), [strand(Medium::Shm)]);
        assert_eq!(carriers.connections(DFM, ROS), [strand(Medium::Tcp)]);
    }

    #[test]
    fn pushed_data_part_from_those_that_were_asked_for() {
        let push = ["dfm.building=push", "transport.pushed=udp", "transport.credit=shm"];
        let carriers = carriers(&push);
        let replies = vec![reply(3, 0), reply(4, 1), reply(5, 0)];
        let envelope = between(ROS, SFI);
        assert_eq!(carriers.choose(&envelope, &reply_message(replies.clone())), Err(InSeveralWays));
        let parts = carriers.divide(&envelope, reply_message(replies));
        let expected = [(Way::Tcp, vec![reply(4, 1)]), (Way::Udp, vec![reply(3, 0), reply(5, 0)])];
        for ((choice, part), (way, replies)) in parts.into_iter().zip(expected) {
            let Message::EventReply { replies: found, bulk, pushed: 9 } = part else { panic!("another message") };
            assert_eq!((choice, &found), (Choice { way, port: None }, &replies));
            let bytes: Vec<u8> = bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec()).collect();
            let expected = replies.iter().flat_map(|reply| vec![reply.event.0 as u8; reply.len_bytes as usize]);
            assert!(bytes.into_iter().eq(expected));
        }
        let credit = carriers.choose(&between(SFI, ROS), &Message::Credit(1)).unwrap();
        assert_eq!(credit.way, Way::Shm);
        assert_eq!(carriers.connections(SFI, ROS).len(), 2);
        assert_eq!(carriers.connections(SFI, PROS).len(), 1);
    }

    #[test]
    fn replies_go_by_the_ports_of_their_requests() {
        let carriers =
            carriers(&["ros.ports=[\"127.0.0.2\", \"127.0.0.3\", \"127.0.0.4\"]", "transport.event_reply=shm"]);
        let kinds: Vec<(Medium, Option<usize>)> =
            carriers.connections(SFI, ROS).into_iter().map(|strand| (strand.medium, strand.port)).collect();
        let of = |kind| [0, 1, 2].map(|port| (kind, Some(port)));
        assert_eq!(kinds, [&[(Medium::Tcp, None)], &of(Medium::Tcp)[..], &of(Medium::Shm)[..]].concat());
        // As a builder of eight is given them.
        let events: Vec<u64> = (0..300).map(|number| 8 * number).collect();
        let requests =
            Message::EventRequest { requests: events.iter().map(|event| request(*event)).collect::<Vec<_>>().into() };
        let replies = reply_message(events.iter().map(|event| reply(*event, 1)).collect());
        let requests = carriers.divide(&between(SFI, ROS), requests);
        let replies = carriers.divide(&between(ROS, SFI), replies);
        assert_eq!((requests.len(), replies.len()), (3, 3));
        for ((there, request), (back, reply)) in requests.into_iter().zip(replies) {
            assert_eq!((there.way, back.way, there.port), (Way::Tcp, Way::Shm, back.port));
            let (Message::EventRequest { requests }, Message::EventReply { replies, .. }) = (request, reply) else {
                panic!("other messages than were spread")
            };
            assert!(requests.len() > 60, "a port is hardly used");
            assert!(requests.iter().map(|request| request.event.event).eq(replies.iter().map(|reply| reply.event)));
        }
    }

    #[test]
    fn what_is_asked_for_again_goes_by_the_next_port() {
        let carriers = carriers(&["ros.ports=[\"127.0.0.2\", \"127.0.0.3\", \"127.0.0.4\"]"]);
        let port = |from, to, message: &Message| carriers.choose(&between(from, to), message).unwrap().port.unwrap();
        for event in 0..100 {
            let tries = [1, 2, 3].map(|number| {
                let request = DataRequest { request: number, ..request(event) };
                let there = port(SFI, ROS, &Message::EventRequest { requests: vec![request].into() });
                assert_eq!(port(ROS, SFI, &reply_message(vec![reply(event, number)])), there);
                there
            });
            assert_eq!(tries.map(|port| (port + 3 - tries[0]) % 3), [0, 1, 2]);
        }
    }

    #[test]
    fn what_has_no_connection_of_its_own_takes_the_first() {
        let mut routes = Routes::default();
        let (tcp, by_port) =
            (Strand { medium: Medium::Tcp, port: None }, Strand { medium: Medium::Tcp, port: Some(1) });
        let links = [5, 6].map(LinkId);
        assert!(routes.add(tcp, links[0]) && routes.add(by_port, links[1]) && !routes.add(tcp, links[1]));
        assert_eq!(routes.find(Medium::Tcp, Some(1)), Some(links[1]));
        assert_eq!(routes.find(Medium::Tcp, Some(0)), Some(links[0]));
        assert_eq!(routes.find(Medium::Shm, None), None);
        routes.remove(links[1]);
        assert_eq!(routes.find(Medium::Tcp, Some(1)), Some(links[0]));
        routes.clear();
        assert_eq!(routes.find(Medium::Tcp, Some(1)), None);
    }
}
