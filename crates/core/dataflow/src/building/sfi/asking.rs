//! Which source is asked for which event.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Sfi, SfiParameters};
use crate::building::asked::{Asked, AskedTable};
use crate::building::held::Timeout;
use crate::building::request_credits::RequestCredits;
use crate::building::sfi::Source;
use crate::building::sfi::requests::Requests;
use crate::component::Outbox;
use crate::message::DataRequest;
use base::ids::EventId;
use base::random::Random;
use base::time::Time;

/// Who was asked for what, and who is next.
pub(super) struct Asking {
    pub(super) asked: AskedTable,
    /// Events with sources that were not asked yet, in the order of their assignment.
    pub(super) to_ask: VecDeque<EventId>,
    pub(super) credits: RequestCredits,
    /// Requests of this pass.
    pub(super) requests: Requests,
    pub(super) timeouts: VecDeque<Timeout>,
    pub(super) random: Random,
    /// The order of requests.
    pub(super) order: Vec<u16>,
}

impl Asking {
    pub(super) fn new(parameters: &SfiParameters) -> Self {
        let mut random = Random::new(parameters.seed);
        let mut order: Vec<u16> = (0..parameters.sources.len() as u16).collect();
        random.shuffle(&mut order);
        Self {
            asked: AskedTable::new(parameters.sources.len()),
            to_ask: VecDeque::new(),
            credits: RequestCredits::new(parameters.credits, parameters.outstanding_requests),
            requests: Requests::default(),
            timeouts: VecDeque::new(),
            random,
            order,
        }
    }

    /// Sources of this event are to be asked.
    pub(super) fn queue(&mut self, event: EventId) {
        if !self.to_ask.contains(&event) {
            self.to_ask.push_back(event);
        }
    }
}

impl Sfi {
    /// Sends requests while credits last, the oldest assignment first.
    pub(super) fn ask(&mut self, now: Time, out: &mut Outbox) {
        self.ask_together(now, out);
        while self.asking.credits.has_one() {
            let Some(&event) = self.asking.to_ask.front() else { return };
            let Some(building) = self.events.find_mut(event) else {
                // All that it was to ask for was pushed.
                self.asking.to_ask.pop_front();
                continue;
            };
            let Some(source) = building.to_ask.pop() else {
                self.asking.to_ask.pop_front();
                self.end_if_collected(event, out);
                continue;
            };
            let index = usize::from(source);
            let all = &self.parameters.sources[index].robs;
            let has_some = building.has_some_of(all);
            let left = || all.iter().copied().filter(|rob| !building.collected.contains(rob));
            if has_some && left().next().is_none() {
                continue;
            }
            if self.sources.gone[index] {
                let left: Vec<u32> = left().collect();
                building.missing.extend(left);
                continue;
            }
            if has_some {
                let left = left().collect();
                building.name(source, left);
            }
            *self.asking.asked.at_mut(building.number, index) =
                Asked { awaited: true, unpushed: false, sent: now, serial: 0, valid_from: 1 };
            building.awaited += 1;
            self.asking.credits.spend(1);
            self.send_request(now, event, source, out);
        }
    }

    /// Asks a source, once it is in reach or has a new life, for what it owes. That does not count as another try.
    pub(super) fn ask_anew(&mut self, now: Time, source: usize, out: &mut Outbox) {
        self.asking.requests.forget(self.parameters.sources[source].node);
        for event in self.in_order(|building| self.asking.asked.at(building.number, source).awaited) {
            self.send_try(now, event, source as u16, out);
        }
    }

    pub(super) fn send_request(&mut self, now: Time, event: EventId, source: u16, out: &mut Outbox) {
        let building = self.events.find(event).expect("the event is held");
        self.asking.asked.at_mut(building.number, usize::from(source)).serial += 1;
        self.send_try(now, event, source, out);
    }

    pub(super) fn send_try(&mut self, now: Time, event: EventId, source: u16, out: &mut Outbox) {
        let building = self.events.find(event).expect("the event is held");
        let asked = self.asking.asked.at_mut(building.number, usize::from(source));
        asked.sent = now;
        self.counters.requests += 1;
        let (attempt, serial) = (building.attempt, asked.serial);
        self.expect_answers(now, event, attempt);
        let building = self.events.find(event).expect("the event is held");
        let Source { node: to, results, .. } = self.parameters.sources[usize::from(source)];
        if let Some(intake) = self.intake.as_mut().filter(|_| !results) {
            intake.on_asked(usize::from(source));
        }
        let robs = building.names(source).map_or_else(Vec::new, <[u32]>::to_vec);
        let request = DataRequest { event: building.event, attempt, request: u32::from(serial), robs };
        self.asking.requests.add(to, request, out);
    }

    /// Events that came together are asked for together, as far as credits last for all their sources. That goes source by
    /// source, in the order of the first event. The same messages go as event by event. But the books of a source, and its
    /// group of requests, are touched once for all events.
    fn ask_together(&mut self, now: Time, out: &mut Outbox) {
        let Some(all) = self.asking.to_ask.front().and_then(|event| self.whole(*event)) else { return };
        let affordable = self.asking.credits.left().checked_div(all).unwrap_or(0);
        let alike = self.asking.to_ask.iter().take_while(|event| self.whole(**event) == Some(all));
        let count = alike.take(affordable).count();
        if count < 2 {
            return;
        }
        let together: Vec<EventId> = self.asking.to_ask.drain(..count).collect();
        let first = self.events.find_mut(together[0]).expect("an event to ask for is held");
        let mut order = core::mem::take(&mut first.to_ask);
        order.reverse();
        let is_gone = |source: &&u16| self.sources.gone[usize::from(**source)];
        let robs = |source: &u16| &self.parameters.sources[usize::from(*source)].robs;
        let missing: Vec<u32> = order.iter().filter(is_gone).flat_map(robs).copied().collect();
        order.retain(|source| !self.sources.gone[usize::from(*source)]);
        let (mut numbers, mut requests) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for &event in &together {
            let building = self.events.find_mut(event).expect("an event to ask for is held");
            building.to_ask.clear();
            building.awaited = order.len();
            building.missing.extend_from_slice(&missing);
            let (event, attempt) = (building.event, building.attempt);
            numbers.push(building.number);
            requests.push(DataRequest { event, attempt, request: 1, robs: Vec::new() });
            self.expect_answers(now, event.event, attempt);
        }
        let requests = Arc::new(requests);
        for source in order.drain(..) {
            self.ask_source(now, source, &numbers, &requests, out);
        }
        self.events.find_mut(together[0]).expect("the event is held").to_ask = order;
        together.into_iter().for_each(|event| self.end_if_collected(event, out));
    }

    /// How many sources an event is to be asked from, if none has been and all will be in the same way.
    fn whole(&self, event: EventId) -> Option<usize> {
        let building = self.events.find(event)?;
        let all = if building.has_result { self.parameters.sources.len() } else { self.sources.with_data };
        (building.collected.is_empty() && building.to_ask.len() == all).then_some(all)
    }

    /// Asks a source for events by their numbers.
    fn ask_source(
        &mut self,
        now: Time,
        source: u16,
        events: &[usize],
        requests: &Arc<Vec<DataRequest>>,
        out: &mut Outbox,
    ) {
        let index = usize::from(source);
        let Source { node: to, results, .. } = self.parameters.sources[index];
        self.counters.requests += events.len() as u64;
        self.asking.credits.spend(events.len());
        for &event in events {
            *self.asking.asked.at_mut(event, index) =
                Asked { sent: now, serial: 1, valid_from: 1, awaited: true, unpushed: false };
        }
        if let Some(intake) = self.intake.as_mut().filter(|_| !results) {
            intake.on_asked(index);
        }
        self.asking.requests.add_shared(to, requests, out);
    }

    /// Requests for this event are sent now.
    fn expect_answers(&mut self, now: Time, event: EventId, attempt: u16) {
        let timeout = Timeout { deadline: now + self.parameters.request_timeout, event, attempt };
        if self.asking.timeouts.back() != Some(&timeout) {
            self.asking.timeouts.push_back(timeout);
        }
    }
}
