//! Stand-ins around a ROB that is measured alone. The TRG makes up its messages, as in the paper. The EBIF asks for accepted events.

use std::time::Duration;

use base::bulk::Bulk;
use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use dataflow::component::{Component, Input, Outbox};
use dataflow::message::{Command, DataRequest, EventInfo, Message, PushOrder};
use dataflow::readout::clears::Clears;
use dataflow::report::{Counters, Report, SfiCounters};

use super::{BLOCK_EVENTS, BLOCK_ROIS, CLEAR_GROUP, FRAGMENT_BYTES};

/// Another application of the partition than the ROB.
pub(super) enum StandIn {
    Trg(Front),
    /// Asks the ROB for what it is told to; it has asked so often.
    Ebif {
        ros: NodeId,
        asked: u32,
    },
    Nobody,
}

/// Issues events, asks for regions of interest, has accepted events collected, and clears all a while later.
pub(super) struct Front {
    ros: NodeId,
    ebif: NodeId,
    /// Source identifier of the ROB.
    rob: u32,
    issued: u64,
    taken: u64,
    cleared: u64,
    clears: Clears,
}

impl Front {
    pub(super) fn new(ros: NodeId, ebif: NodeId, rob: u32) -> Self {
        let clears = Clears::new(CLEAR_GROUP, Duration::from_millis(2));
        Self { ros, ebif, rob, issued: 0, taken: 0, cleared: 0, clears }
    }

    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Command(Command::Start) => self.issue(out),
            Input::Message { message: Message::Taken(until), .. } => {
                self.decide(until, out);
                self.clear(now, out);
                self.issue(out);
            }
            Input::Message { message: Message::RoiReply { missing, bulk, .. }, .. } => assert_whole(&missing, &bulk),
            _ => {}
        }
    }

    /// Level 1 keeps its window full.
    fn issue(&mut self, out: &mut Outbox) {
        let events: Vec<EventInfo> = (self.issued..self.taken + IN_FLIGHT).map(info).collect();
        self.issued += events.len() as u64;
        out.send(self.ros, Message::L1Accept { events, times: Vec::new() });
    }

    /// Level 2 looks at some of the events that were read out, and accepts some.
    fn decide(&mut self, until: u64, out: &mut Outbox) {
        for number in core::mem::replace(&mut self.taken, until)..until {
            let place = number % BLOCK_EVENTS;
            if place == 0 {
                out.send(self.ebif, Message::Push(vec![PushOrder { event: info(number), sfi: self.ebif }]));
            } else if place.is_multiple_of(BLOCK_ROIS) {
                let (event, robs) = (EventId(number), vec![self.rob]);
                out.send(self.ros, Message::RoiRequest { event, request: place as u32, robs });
            }
        }
    }

    fn clear(&mut self, now: Time, out: &mut Outbox) {
        while self.cleared + HELD < self.taken {
            let event = EventId(self.cleared);
            self.cleared += 1;
            if self.clears.add(now, event) {
                out.send(self.ros, self.clears.flush(now, EventId(self.cleared), false));
            }
        }
    }
}

impl Component for StandIn {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        match (self, input) {
            (Self::Trg(front), input) => front.handle(now, input, out),
            (Self::Ebif { ros, asked }, Input::Message { message: Message::Push(orders), .. }) => {
                let request = |order: PushOrder| {
                    *asked = asked.wrapping_add(1);
                    DataRequest { event: order.event, attempt: 1, request: *asked, robs: Vec::new() }
                };
                let requests: Vec<DataRequest> = orders.into_iter().map(request).collect();
                out.send(*ros, Message::EventRequest { requests: requests.into() });
            }
            (Self::Ebif { .. }, Input::Message { message: Message::EventReply { replies, bulk, .. }, .. }) => {
                replies.iter().for_each(|reply| assert_whole(&reply.missing, &bulk));
            }
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn report(&self, _now: Time) -> Report {
        Report::of(Role::Sfi, SfiCounters::default().to_values())
    }

    fn check(&self) {}
}

fn info(number: u64) -> EventInfo {
    EventInfo { event: EventId(number), ordinal: number, ..EventInfo::default() }
}

/// A reply without data would be the faster one.
fn assert_whole<M>(missing: &[M], bulk: &Bulk) {
    assert!(missing.is_empty() && bulk.len() > FRAGMENT_BYTES as usize, "all that is asked for is there");
}

/// Triggers that the ROB has not taken.
pub(super) const IN_FLIGHT: u64 = 128;
/// Events between a trigger and its clear. The ROB may be told of all in flight before the EBIF has its turn, and once more before the ROB
/// hears the EBIF.
pub(super) const HELD: u64 = 3 * IN_FLIGHT;
