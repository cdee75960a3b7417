//! Level 1 and DFM of a read-out system that is measured alone: each trigger of the source is issued, and cleared a while later.

use std::collections::VecDeque;
use std::time::Duration;

use base::ids::{EventId, NodeId, Role};
use base::time::Time;
use dataflow::component::{Component, Input, Outbox};
use dataflow::message::{BusyCause, EventInfo, LinkTrigger, Message};
use dataflow::readout::clears::Clears;
use dataflow::report::{Counters, DfmCounters, Level1Counters, Report, SfiCounters};

/// Issues what the leading source triggers, at once.
pub(super) struct Issuer {
    pub(super) ros: NodeId,
    pub(super) dfm: NodeId,
    pub(super) issued: u64,
}

/// Clears in groups what was issued, as soon as so many more were.
pub(super) struct Clearer {
    held: VecDeque<EventId>,
    clears: Clears,
}

/// Nobody is asked to build.
pub(super) struct Nobody;

impl Clearer {
    pub(super) fn new() -> Self {
        Self { held: VecDeque::new(), clears: Clears::new(CLEAR_GROUP, Duration::from_millis(10)) }
    }
}

impl Component for Issuer {
    fn handle(&mut self, _now: Time, input: Input, out: &mut Outbox) {
        match input {
            Input::Message { message: Message::Busy { cause: BusyCause::Source, on: false }, .. } => {
                out.send(self.ros, Message::Lead(true));
            }
            Input::Message { message: Message::LinkTriggers { triggers, .. }, .. } => {
                let event = |(ordinal, trigger): (u64, LinkTrigger)| EventInfo {
                    event: trigger.event,
                    ordinal,
                    trigger_type: trigger.trigger_type,
                    ..EventInfo::default()
                };
                let events: Vec<EventInfo> = (self.issued..).zip(triggers).map(event).collect();
                self.issued += events.len() as u64;
                out.send(self.ros, Message::L1Accept { events: events.clone(), times: Vec::new() });
                out.send(self.dfm, Message::L1Accept { events, times: Vec::new() });
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
        Report::of(Role::Level1, Level1Counters::default().to_values())
    }

    fn check(&self) {}
}

impl Component for Clearer {
    fn handle(&mut self, now: Time, input: Input, out: &mut Outbox) {
        let Input::Message { message: Message::L1Accept { events, .. }, .. } = input else { return };
        self.held.extend(events.iter().map(|event| event.event));
        while self.held.len() > IN_HAND {
            let Some(event) = self.held.pop_front() else { return };
            if self.clears.add(now, event) {
                let oldest_valid = self.held.front().copied().unwrap_or(event.next());
                out.multicast_to_readout(self.clears.flush(now, oldest_valid, false));
            }
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn is_drained(&self) -> bool {
        true
    }

    fn report(&self, _now: Time) -> Report {
        Report::of(Role::Dfm, DfmCounters::default().to_values())
    }

    fn check(&self) {}
}

impl Component for Nobody {
    fn handle(&mut self, _now: Time, _input: Input, _out: &mut Outbox) {}

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

/// Events between a trigger and its clear, as with level 2 at work.
const IN_HAND: usize = 256;
/// As in [EB2007 §II-B.1].
const CLEAR_GROUP: usize = 100;
