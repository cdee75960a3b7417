//! Which events a message is about.

use base::ids::EventId;
use dataflow::message::Message;

/// Tells the events of a message of the dataflow, as far as costs are told by its kind.
pub(crate) fn each_event(message: &Message, mut tell: impl FnMut(EventId)) {
    match message {
        Message::L1Accept { events, .. } => events.iter().for_each(|info| tell(info.event)),
        Message::L1Result { event, .. } | Message::Assign { event, .. } => tell(event.event),
        Message::RoiRequest { event, .. }
        | Message::RoiReply { event, .. }
        | Message::L2Result { event, .. }
        | Message::L2ResultTaken(event)
        | Message::L2Decision { event, .. }
        | Message::Collected { event, .. }
        | Message::Refused(event)
        | Message::Recorded { event, .. } => tell(*event),
        Message::Decisions { decisions, .. } => decisions.iter().for_each(|decision| tell(decision.event.event)),
        Message::Build { events, .. } => events.iter().for_each(|assignment| tell(assignment.event.event)),
        Message::Push(orders) => orders.iter().for_each(|order| tell(order.event.event)),
        Message::EventRequest { requests } => requests.iter().for_each(|request| tell(request.event.event)),
        Message::EventReply { replies, .. } => replies.iter().for_each(|reply| tell(reply.event)),
        Message::EndOfEvent(ended) => ended.iter().for_each(|ended| tell(ended.event)),
        Message::Granted(attempts) => attempts.iter().for_each(|attempt| tell(attempt.event)),
        Message::Clear { events, .. } => events.iter().copied().for_each(tell),
        Message::BuiltEvent(built) => tell(built.event.event),
        Message::Record(recording) => tell(recording.built.event.event),
        Message::Finished(finished) => finished.iter().for_each(|finish| tell(finish.event)),
        _ => {}
    }
}
