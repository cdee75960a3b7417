//! Messages between a read-out system with several network ports and those who ask it `[EB2007 §II-A]`.
//!
//! Each port has a connection of its own. The number of an event says which port its requests and replies use, so that a
//! reply goes back by the port by which the request came; groups are divided among the ports. All these messages may be
//! lost, so none relies on the order of what goes by different ports.

use dataflow::bulk::{Bulk, BulkParts, PageSlice};
use dataflow::ids::EventId;
use dataflow::message::{DataReply, Message};

use super::LinkId;

/// The connections to one node, by port.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports(Vec<Option<LinkId>>);

impl Ports {
    /// The connection by this port of so many.
    pub(super) fn set(&mut self, port: usize, of: usize, link: LinkId) {
        self.0.resize(of, None);
        self.0[port] = Some(link);
    }

    /// Whether there is a connection by this port.
    pub(super) fn has(&self, port: usize) -> bool {
        self.0.get(port).is_some_and(Option::is_some)
    }

    /// All go over the first connection again.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether messages are spread: all connections are there.
    pub(super) fn are_in_use(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(Option::is_some)
    }

    /// The parts of a message and the connections that they go over; the message itself if it is not spread.
    pub(super) fn spread(&self, message: Message) -> Result<Vec<(LinkId, Message)>, Message> {
        let count = self.0.len();
        Ok(match message {
            Message::EventRequest { requests } => {
                let mut groups = vec![Vec::new(); count];
                for request in requests {
                    groups[port_of(request.event.event, count)].push(request);
                }
                let groups = (0..).zip(groups).filter(|(_, group)| !group.is_empty());
                groups.map(|(port, requests)| (self.link(port), Message::EventRequest { requests })).collect()
            }
            Message::EventReply { pushed, replies, bulk } if !replies.is_empty() => {
                self.spread_replies(pushed, replies, bulk)
            }
            Message::RoiRequest { event, .. } | Message::RoiReply { event, .. } => {
                vec![(self.link(port_of(event, count)), message)]
            }
            message => return Err(message),
        })
    }

    fn spread_replies(&self, pushed: u64, replies: Vec<DataReply>, bulk: Bulk) -> Vec<(LinkId, Message)> {
        let mut groups: Vec<(Vec<DataReply>, Vec<PageSlice>)> = vec![Default::default(); self.0.len()];
        let mut parts = BulkParts::new(bulk);
        for reply in replies {
            let (group, slices) = &mut groups[port_of(reply.event, self.0.len())];
            slices.extend_from_slice(parts.take(reply.len_bytes as usize).slices());
            group.push(reply);
        }
        let groups = (0..).zip(groups).filter(|(_, (replies, _))| !replies.is_empty());
        let message = |replies, slices| Message::EventReply { pushed, replies, bulk: Bulk::PageList(slices) };
        groups.map(|(port, (replies, slices))| (self.link(port), message(replies, slices))).collect()
    }

    fn link(&self, port: usize) -> LinkId {
        self.0[port].expect("messages are spread when all connections are there")
    }
}

/// Both sides come to the same answer. Mixed, since each builder gets every so many-th event.
fn port_of(event: EventId, ports: usize) -> usize {
    (event.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % ports
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use dataflow::message::{DataRequest, EventInfo};

    fn ports() -> (Ports, [LinkId; 3]) {
        let links = [5, 6, 7].map(LinkId::of_number);
        let mut ports = Ports::default();
        for (port, link) in links.iter().enumerate() {
            assert!(!ports.are_in_use() && !ports.has(port));
            ports.set(port, 3, *link);
        }
        assert!(ports.are_in_use());
        (ports, links)
    }

    #[test]
    fn replies_go_by_the_ports_of_their_requests() {
        let (ports, links) = ports();
        // As a builder of eight is given them.
        let events: Vec<EventId> = (0..300).map(|number| EventId(8 * number)).collect();
        let request = |event: &EventId| DataRequest {
            event: EventInfo { event: *event, ..EventInfo::default() },
            attempt: 1,
            request: 1,
            robs: Vec::new(),
        };
        let requests = ports.spread(Message::EventRequest { requests: events.iter().map(request).collect() }).unwrap();
        let reply = |event: &EventId| DataReply {
            event: *event,
            attempt: 1,
            request: 1,
            missing: Vec::new(),
            len_bytes: 1 + (event.0 % 7) as u32,
        };
        let replies: Vec<DataReply> = events.iter().map(reply).collect();
        let bytes: Vec<u8> =
            replies.iter().flat_map(|reply| vec![reply.event.0 as u8; reply.len_bytes as usize]).collect();
        let bulk = Bulk::Pages(PageSlice::new(Bytes::from(bytes)));
        let replies = ports.spread(Message::EventReply { pushed: 9, replies, bulk }).unwrap();
        assert_eq!((requests.len(), replies.len()), (3, 3));
        for ((link, request), (back, reply)) in requests.into_iter().zip(replies) {
            assert!(link == back && links.contains(&link));
            let (Message::EventRequest { requests }, Message::EventReply { replies, bulk, pushed: 9 }) =
                (request, reply)
            else {
                panic!("other messages than were spread")
            };
            assert!(requests.len() > 60, "a port is hardly used");
            assert!(requests.iter().map(|request| request.event.event).eq(replies.iter().map(|reply| reply.event)));
            let bytes: Vec<u8> = bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec()).collect();
            let expected = replies.iter().flat_map(|reply| vec![reply.event.0 as u8; reply.len_bytes as usize]);
            assert!(bytes.into_iter().eq(expected));
        }
    }

    #[test]
    fn what_no_request_brings_goes_over_the_first_connection() {
        let (ports, _) = ports();
        for message in [Message::NoMore, Message::EventReply { pushed: 1, replies: vec![], bulk: Bulk::empty() }] {
            assert_eq!(ports.spread(message.clone()).unwrap_err(), message);
        }
    }
}
