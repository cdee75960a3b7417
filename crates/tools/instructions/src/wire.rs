//! Messages of building as frames and back.

use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, Incarnation, NodeId, RunNumber};
use dataflow::message::{DataReply, DataRequest, Envelope, EventInfo, Message};
use dataflow::wire;

/// A request for eight events, and the reply for one, by turns; each message counts as an event.
pub(crate) fn encode_and_decode(messages: u64) {
    let life = Incarnation(0);
    let (from, to, run) = (NodeId(1), NodeId(2), RunNumber(1));
    let envelope = Envelope { from, to, run, from_incarnation: life, to_incarnation: life };
    let bulk = Bulk::Pages(PageSlice::from(vec![7; BULK_BYTES]));
    let both = [request(), reply(bulk)];
    let mut encoded = Vec::new();
    for index in 0..messages {
        let message = &both[index as usize % 2];
        encoded.clear();
        wire::encode(&envelope, message, &mut encoded);
        // Where the kernel would write it.
        for slice in message.bulk().map(Bulk::slices).unwrap_or_default() {
            encoded.extend_from_slice(slice.as_bytes());
        }
        let frame = PageSlice::from(core::mem::take(&mut encoded));
        let (_, decoded) = wire::decode(&frame).expect("what was encoded is decoded");
        assert_eq!(core::mem::discriminant(&decoded), core::mem::discriminant(message));
    }
}

fn request() -> Message {
    let request = |number: u64| DataRequest {
        event: EventInfo { event: EventId(number), ordinal: number, ..EventInfo::default() },
        attempt: 1,
        request: 1,
        robs: Vec::new(),
    };
    Message::EventRequest { requests: (0..8).map(request).collect::<Vec<_>>().into() }
}

fn reply(bulk: Bulk) -> Message {
    let len_bytes = bulk.len() as u32;
    let reply = DataReply { event: EventId(1), attempt: 1, request: 1, missing: Vec::new(), len_bytes };
    Message::EventReply { pushed: 0, replies: vec![reply], bulk }
}

const BULK_BYTES: usize = 1000;
