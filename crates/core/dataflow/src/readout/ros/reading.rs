//! Events are read as soon as a page is free for them in every ROB.

use alloc::collections::VecDeque;

use super::{Ros, Waiting};
use crate::component::{Outbox, Ticket, Work};
use crate::message::EventInfo;
use crate::readout::few_events::FewEvents;
use crate::readout::requests::Request;
use base::ids::NodeId;
use base::time::Time;

/// Events to read, and those that are being read.
#[derive(Default)]
pub(super) struct Reads {
    /// Events that wait for a page: bounded by the window of level 1, or by what builders may have asked for.
    pub(super) next: VecDeque<ToRead>,
    /// Events that are being read.
    pub(super) events: FewEvents,
    /// The same by the work in which they are, in the order in which they are read.
    pub(super) under_way: VecDeque<(Ticket, ToRead)>,
    next_ticket: Ticket,
}

/// An event to read, and the request that it is read for, if there is one.
pub(super) struct ToRead {
    pub(super) event: EventInfo,
    /// With its deadline.
    pub(super) request: Option<(Request, Time)>,
    /// The builder that its data are pushed to by its number.
    pub(super) builder: Option<NodeId>,
}

impl Ros {
    /// Starts reading what a page is free for in every ROB.
    pub(super) fn read_next(&mut self, now: Time, out: &mut Outbox) {
        let mut room = self.free().saturating_sub(self.reads.events.len());
        let mut together = 0;
        while let Some(next) = self.reads.next.front() {
            if !self.is_to_be_read(next) {
                self.need_not_read(out);
                continue;
            }
            if room == 0 {
                break;
            }
            room -= 1;
            if together == 0 {
                let more = READ_TOGETHER_MAX.min(self.reads.next.len());
                self.reads.under_way.reserve(more);
                self.reads.events.reserve(more);
            }
            let next = self.reads.next.pop_front().expect("it was there");
            self.reads.events.insert(next.event.event);
            self.reads.under_way.push_back((self.reads.next_ticket, next));
            together += 1;
            if together == READ_TOGETHER_MAX {
                self.start_reading(now, together, out);
                together = 0;
            }
        }
        self.start_reading(now, together, out);
        self.pass_late(out);
        if self.reads.next.is_empty() && self.reads.next.capacity() > TO_READ_KEPT {
            // Its memory is for whoever is next, while it is in the cache: there may be thousands like this one.
            self.reads.next = VecDeque::new();
        }
        if !self.reads.next.is_empty() {
            self.make_room(now, out);
        }
    }

    /// Starts reading the events that were added last.
    fn start_reading(&mut self, now: Time, count: usize, out: &mut Outbox) {
        if count == 0 {
            return;
        }
        self.take_triggers(now, count, out);
        let events = self.reads.under_way.range(self.reads.under_way.len() - count..).map(|(_, next)| next.event);
        out.start(self.reads.next_ticket, Work::ReadOut(events.collect()));
        self.reads.next_ticket.0 += 1;
    }

    /// A request for an event that was read or is being read for another need not wait for a page.
    fn is_to_be_read(&self, next: &ToRead) -> bool {
        let Some((request, _)) = &next.request else { return true };
        !self.reads.events.contains(request.event) && self.first_blocked(request, 0).is_some()
    }

    /// The next request is answered, or waits for what is being read for another.
    #[cold]
    fn need_not_read(&mut self, out: &mut Outbox) {
        let next = self.reads.next.pop_front().and_then(|next| next.request);
        let (request, deadline) = next.expect("a request that need not be read for");
        match self.first_blocked(&request, 0) {
            Some(blocked_on) => self.wait(Waiting { request, blocked_on, deadline }),
            None => self.answer(&request, out),
        }
    }

    /// The next `count` events of a piece of work were read: what they were read for is answered.
    pub(super) fn on_read_out(&mut self, now: Time, ticket: Ticket, count: usize, out: &mut Outbox) {
        let place = self.reads.under_way.iter().position(|(of, _)| *of == ticket);
        let place = place.expect("what was read had been started");
        for _ in 0..count {
            let read = self.reads.under_way.get_mut(place).filter(|(of, _)| *of == ticket);
            let (_, next) = read.expect("no more is read than was started together");
            self.reads.events.remove(next.event.event);
            if let Some(builder) = next.builder {
                self.showing.note(&next.event);
                self.pushing.offers.push((builder, next.event.event));
            }
            let request = next.request.take();
            if place == 0 {
                self.reads.under_way.pop_front();
            } else {
                self.reads.under_way.remove(place);
            }
            if let Some((request, deadline)) = request {
                self.on_request(deadline, request, out);
            }
        }
        if self.reads.under_way.is_empty() && self.reads.under_way.capacity() > TO_READ_KEPT {
            self.reads.under_way = VecDeque::new();
        }
        self.read_next(now, out);
    }
}

/// Most events in one piece of work: their fragments are answered while they are still in the cache.
const READ_TOGETHER_MAX: usize = 16;
/// Room for so many events to read is kept.
const TO_READ_KEPT: usize = 4;
