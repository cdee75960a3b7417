//! Requests for data that a read-out system was sent.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::message::UNASKED;
use base::ids::{EventId, NodeId};
use base::time::Time;

#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) from: NodeId,
    pub(crate) event: EventId,
    pub(crate) kind: RequestKind,
    /// `None` for every ROB of this ROS.
    pub(crate) robs: Option<Box<Named>>,
}

/// The ROBs that a request names.
#[derive(Clone, Default)]
pub(crate) struct Named {
    /// Their indices, rising.
    pub(crate) here: Vec<usize>,
    /// Asked for, but not in this ROS.
    pub(crate) foreign: Vec<u32>,
}

#[derive(Clone, Copy)]
pub(crate) enum RequestKind {
    Roi { request: u32 },
    Event { attempt: u16, request: u32 },
}

impl RequestKind {
    /// Whether nobody asked.
    pub(crate) fn is_push(self) -> bool {
        matches!(self, Self::Event { request: UNASKED, .. })
    }
}

/// A request whose data may still come.
pub(crate) struct Waiting {
    pub(crate) request: Request,
    /// The first of its ROBs, in order, whose fragment can still come.
    pub(crate) blocked_on: usize,
    pub(crate) deadline: Time,
}

/// Requests that wait, by rising event: new ones mostly come behind the others, and those in front are answered first.
#[derive(Default)]
pub(crate) struct WaitingRequests {
    rising: VecDeque<Waiting>,
}

impl WaitingRequests {
    pub(crate) fn push(&mut self, waiting: Waiting) {
        let place = self.behind(waiting.request.event);
        self.rising.insert(place, waiting);
    }

    /// The place of the first that waits for this event or a later one.
    pub(crate) fn first_from(&self, event: EventId) -> usize {
        self.rising.partition_point(|waiting| waiting.request.event < event)
    }

    /// What is at a place, if that waits for this event or an earlier one.
    pub(crate) fn up_to(&self, event: EventId, place: usize) -> Option<&Waiting> {
        self.rising.get(place).filter(|waiting| waiting.request.event <= event)
    }

    /// The request at a place waits for this ROB now.
    pub(crate) fn block(&mut self, place: usize, rob: usize) {
        self.rising[place].blocked_on = rob;
    }

    /// Takes out what is at a place.
    ///
    /// # Panics
    /// If nothing is there.
    pub(crate) fn take(&mut self, place: usize) -> Waiting {
        self.rising.remove(place).expect("something waits at this place")
    }

    pub(crate) fn retain(&mut self, keeps: impl Fn(&Waiting) -> bool) {
        self.rising.retain(keeps);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rising.is_empty()
    }

    /// Asserts that they are in order.
    pub(crate) fn check(&self) {
        assert!(self.rising.iter().is_sorted_by_key(|waiting| waiting.request.event), "waiting requests in order");
    }

    fn behind(&self, event: EventId) -> usize {
        if self.rising.back().is_none_or(|last| last.request.event <= event) {
            return self.rising.len();
        }
        self.rising.partition_point(|waiting| waiting.request.event <= event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_wait_by_rising_event_in_the_order_in_which_they_came() {
        let mut waiting = WaitingRequests::default();
        for (number, event) in (0..).zip([5, 3, 5, 9, 3]) {
            let kind = RequestKind::Roi { request: number };
            let request = Request { from: NodeId(1), event: EventId(event), kind, robs: None };
            waiting.push(Waiting { request, blocked_on: 0, deadline: Time::ZERO });
            waiting.check();
        }
        let place = waiting.first_from(EventId(4));
        waiting.block(place, 7);
        assert_eq!(waiting.up_to(EventId(5), place).map(|waiting| waiting.blocked_on), Some(7));
        assert!(waiting.up_to(EventId(4), place).is_none() && waiting.up_to(EventId(9), 5).is_none());
        let taken: Vec<(u64, u32)> = core::iter::from_fn(|| (!waiting.is_empty()).then(|| waiting.take(0)))
            .map(|Waiting { request, .. }| match request.kind {
                RequestKind::Roi { request: number } => (request.event.0, number),
                RequestKind::Event { .. } => panic!("none was for building"),
            })
            .collect();
        assert_eq!(taken, [(3, 1), (3, 4), (5, 0), (5, 2), (9, 3)]);
    }
}
