//! What goes to builders that have not asked for it.

use alloc::vec::Vec;

use super::{FIRST_ATTEMPT, PUSH, RequestKind, Ros, RosParameters, ToRead, Waiting};
use crate::building::directing::Directing;
use crate::component::Outbox;
use crate::message::{DataReply, PushOrder, UNASKED};
use crate::readout::pusher::{Destination, Pusher};
use base::ids::{EventId, NodeId};
use base::time::Time;

/// Where events go, and what is on its way there.
pub(super) struct Pushing {
    pub(super) pusher: Option<Pusher>,
    /// Where events go by their number.
    pub(super) destinations: Directing,
    /// Events of this pass that are to be pushed.
    pub(super) offers: Vec<(NodeId, EventId)>,
}

impl Pushing {
    pub(super) fn new(parameters: &RosParameters) -> Self {
        let pusher = parameters.push.as_ref().map(|push| Pusher::new(push, parameters.pages_per_rob));
        let by_table = parameters.push.as_ref().is_some_and(|push| push.destination == Destination::Table);
        Self { pusher, destinations: Directing::new(by_table), offers: Vec::new() }
    }
}

impl Ros {
    pub(super) fn on_push(&mut self, now: Time, orders: &[PushOrder], out: &mut Outbox) {
        if self.parameters.push.as_ref().is_none_or(|push| push.destination != Destination::Assigned) {
            return;
        }
        let deadline = now + self.parameters.request_timeout;
        for &PushOrder { event, sfi } in orders {
            self.showing.note(&event);
            let request = self.request(sfi, event.event, PUSH, &[]);
            self.take_request(deadline, event, request, out);
        }
        if !self.reads.next.is_empty() {
            self.read_next(now, out);
        }
    }

    /// Sends what is to be pushed and may go.
    pub(super) fn push(&mut self, now: Time, out: &mut Outbox) {
        let Some(mut pusher) = self.pushing.pusher.take() else { return };
        let early = self.pushing.destinations.take_early();
        self.pushing.offers.extend(early.map(|(builder, event)| (builder, event.event)));
        for (sfi, event) in self.pushing.offers.drain(..) {
            // The builder asks for what is not taken.
            pusher.offer(now, sfi, event);
        }
        while let Some((lane, count)) = pusher.next(now) {
            for _ in 0..count {
                let Some(event) = pusher.take(lane) else { break };
                let missing = match self.collect(event, None, Err) {
                    Ok(missing) => missing,
                    Err(blocked_on) => {
                        self.answers.parts.clear();
                        let request = self.request(pusher.builder(lane), event, PUSH, &[]);
                        self.wait(Waiting { request, blocked_on, deadline: now + self.parameters.request_timeout });
                        continue;
                    }
                };
                if event < self.clearing.valid.oldest()
                    || (!missing.is_empty() && self.clearing.cleared.contains(event))
                {
                    self.answers.parts.clear();
                    continue;
                }
                self.note_answered(event, None);
                let len_bytes = self.answers.parts.len_bytes();
                let (sfi, pushed) = pusher.sent(now, lane, len_bytes as usize);
                self.counters.pushed += 1;
                self.count_out(&missing);
                let reply = DataReply { event, attempt: FIRST_ATTEMPT, request: UNASKED, missing, len_bytes };
                self.answers.replies.add(sfi, pushed, reply, &mut self.answers.parts, out);
            }
        }
        self.pushing.pusher = Some(pusher);
    }

    /// A builder asks for an event: it is not pushed as well.
    pub(super) fn withdraw(&mut self, from: NodeId, event: EventId) {
        if let Some(pusher) = &mut self.pushing.pusher {
            pusher.withdraw(from, event);
            self.pushing.offers.retain(|entry| *entry != (from, event));
            self.pushing.destinations.withdraw(event);
        }
        if self.parameters.push.as_ref().is_some_and(|push| push.destination == Destination::Table) {
            // Both are in the order of level 1. Events out of order are sent twice at worst.
            let to_read = self.reads.next.binary_search_by_key(&event, |next| next.event.event);
            let reading = self.reads.under_way.binary_search_by_key(&event, |(_, next)| next.event.event);
            let to_read = to_read.ok().map(|place| &mut self.reads.next[place]);
            let reading = reading.ok().map(|place| &mut self.reads.under_way[place].1);
            let is_it = |next: &&mut ToRead| next.builder == Some(from);
            to_read.into_iter().chain(reading).filter(is_it).for_each(|next| next.builder = None);
        }
        // If requests may wait for ever, a repeated one replaces the one before.
        let awaits = self.links.as_ref().is_some_and(|links| links.await_any());
        let mut place = self.waiting.first_from(event);
        while let Some(waiting) = self.waiting.up_to(event, place) {
            let request = &waiting.request;
            let is_event = matches!(request.kind, RequestKind::Event { .. });
            if request.from == from && (request.kind.is_push() || (awaits && is_event)) {
                self.waiting.take(place);
            } else {
                place += 1;
            }
        }
    }
}
