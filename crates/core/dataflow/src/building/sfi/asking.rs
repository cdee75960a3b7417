//! Which source is asked for which event.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Sfi;
use crate::building::asked::Asked;
use crate::building::held::Timeout;
use crate::building::sfi::Source;
use crate::component::Outbox;
use crate::message::DataRequest;
use base::ids::EventId;
use base::time::Time;

impl Sfi {
    /// Sends requests while credits last, the oldest assignment first.
    pub(super) fn ask(&mut self, now: Time, out: &mut Outbox) {
        self.ask_together(now, out);
        while self.credits.has_one() {
            let Some(&event) = self.to_ask.front() else { return };
            let Some(building) = self.events.find_mut(event) else {
                // All that it was to ask for was pushed.
                self.to_ask.pop_front();
                continue;
            };
            let Some(source) = building.to_ask.pop() else {
                self.to_ask.pop_front();
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
            *self.asked.at_mut(building.number, index) =
                Asked { awaited: true, unpushed: false, sent: now, serial: 0, valid_from: 1 };
            building.awaited += 1;
            self.credits.spend(1);
            self.send_request(now, event, source, out);
        }
    }

    /// Asks a source, once it is in reach or has a new life, for what it owes. That does not count as another try.
    pub(super) fn ask_anew(&mut self, now: Time, source: usize, out: &mut Outbox) {
        self.requests.forget(self.parameters.sources[source].node);
        for event in self.in_order(|building| self.asked.at(building.number, source).awaited) {
            self.send_try(now, event, source as u16, out);
        }
    }

    pub(super) fn send_request(&mut self, now: Time, event: EventId, source: u16, out: &mut Outbox) {
        let building = self.events.find(event).expect("the event is held");
        self.asked.at_mut(building.number, usize::from(source)).serial += 1;
        self.send_try(now, event, source, out);
    }

    pub(super) fn send_try(&mut self, now: Time, event: EventId, source: u16, out: &mut Outbox) {
        let building = self.events.find(event).expect("the event is held");
        let asked = self.asked.at_mut(building.number, usize::from(source));
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
        self.requests.add(to, request, out);
    }

    /// Events that came together are asked for together, as far as credits last for all their sources: source by source, in
    /// the order of the first event. The same messages go as if it was done event by event; but what is kept of a source, and
    /// its group of requests, are touched once for all events.
    fn ask_together(&mut self, now: Time, out: &mut Outbox) {
        let Some(all) = self.to_ask.front().and_then(|event| self.whole(*event)) else { return };
        let affordable = self.credits.left().checked_div(all).unwrap_or(0);
        let alike = self.to_ask.iter().take_while(|event| self.whole(**event) == Some(all));
        let count = alike.take(affordable).count();
        if count < 2 {
            return;
        }
        let together: Vec<EventId> = self.to_ask.drain(..count).collect();
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
        self.credits.spend(events.len());
        for &event in events {
            *self.asked.at_mut(event, index) =
                Asked { sent: now, serial: 1, valid_from: 1, awaited: true, unpushed: false };
        }
        if let Some(intake) = self.intake.as_mut().filter(|_| !results) {
            intake.on_asked(index);
        }
        self.requests.add_shared(to, requests, out);
    }

    /// Requests for this event are sent now.
    fn expect_answers(&mut self, now: Time, event: EventId, attempt: u16) {
        let timeout = Timeout { deadline: now + self.parameters.request_timeout, event, attempt };
        if self.timeouts.back() != Some(&timeout) {
            self.timeouts.push_back(timeout);
        }
    }
}
