//! Data of links belong to events by their time.

use super::Ros;
use super::links::{Links, PLACED_WITHIN};
use super::parameters::TimedHead;
use super::timed::Waiting;
use crate::component::{LinkOrder, Outbox};
use crate::message::{EventInfo, Message};
use crate::readout::fragment::status;
use crate::readout::replies::Parts;
use crate::readout::rob::Rob;
use crate::report::LinkState;
use base::bulk::Bulk;
use base::ids::EventId;
use base::time::Time;
use timing::Interval;
use timing::slices::Passed;

impl Ros {
    pub(super) fn on_chunk(&mut self, rob: usize, said: Interval, status: u32, bulk: Bulk, out: &mut Outbox) {
        let links = self.links.as_deref_mut().expect("links that push");
        let Some(timed) = &links.each[rob].timed else { return };
        let interval = said.shifted(timed.parameters.offset);
        let is_unplaced = said.begin == u64::MAX || !links.is_near(interval.begin);
        self.robs[rob].insert_chunk(interval, status, bulk, is_unplaced);
        links.has_moved = true;
        self.turn_off_if_full(rob, out);
    }

    pub(super) fn on_link_passed(&mut self, rob: usize, time: u64) {
        let links = self.links.as_deref_mut().expect("links that push");
        let Some(timed) = &links.each[rob].timed else { return };
        let time = time.saturating_add_signed(timed.parameters.offset);
        if links.is_near(time) {
            self.robs[rob].pass_time(time);
            links.has_moved = true;
        }
    }

    /// Slices were issued: each is made at once, since level 1 has waited for all who had something to say.
    pub(super) fn await_slices(&mut self, now: Time, events: &[EventInfo]) {
        let links = self.links.as_deref_mut().expect("links that push");
        let Some(length) = links.slice else { return };
        for timed in links.each.iter_mut().filter_map(|link| link.timed.as_mut()) {
            let slices = timed.slices(length);
            let waiting = |&event: &EventInfo| Waiting { event, interval: slices.interval(event.event.0), due: now };
            timed.waiting.extend(events.iter().map(waiting));
        }
    }

    /// Makes events of what timed links have.
    pub(super) fn make_events(&mut self, now: Time, out: &mut Outbox) {
        for rob in 0..self.links.as_ref().map_or(0, |links| links.each.len()) {
            while let Some(event) = self.make_next(now, rob) {
                self.reconsider(EventId(0), event, |waiting| waiting.blocked_on == rob, out);
            }
        }
    }

    /// Makes the next event of a link, if all has come that it can have, or it is time.
    fn make_next(&mut self, now: Time, rob: usize) -> Option<EventId> {
        let links = self.links.as_deref_mut()?;
        let (length, framing) = (links.slice, links.framing.clone());
        let link = &mut links.each[rob];
        let (state, timed) = (link.state, link.timed.as_mut()?);
        let chunks = self.robs[rob].chunks()?;
        let Waiting { event: info, interval, due } = *timed.waiting.front()?;
        let is_whole = state == LinkState::Ended || chunks.watermark() >= Some(interval.end);
        if !is_whole && due > now && state != LinkState::Lost {
            return None;
        }
        timed.waiting.pop_front();
        let horizon = length.map_or(interval.begin, |length| timed.slices(length).horizon(info.event.0 + 1));
        let most = timed.parameters.chunks_max;
        // A living source without data sends a fragment without chunks; the fragment of any other is missing.
        let has_any = is_whole || state == LinkState::Up || chunks.meeting(interval).next().is_some();
        let event = info.event;
        if has_any && self.refusal(event).is_none() {
            let mut parts = Parts::default();
            let rob = &mut self.robs[rob];
            let (chunks, problems) = rob.gather(event, interval, most, &mut parts);
            let status = problems | if is_whole { 0 } else { status::TIMEOUT };
            let head = TimedHead { rob: rob.source_id(), event: info, interval, chunks, status };
            let framing = framing.expect("what is timed is framed");
            rob.keep(event, framing.frame(&head, parts.take_bulk()));
        }
        self.robs[rob].pass_below(event.next());
        self.robs[rob].advance(horizon);
        Some(event)
    }

    /// Slices up to this one are made, or left out: their chunks are not waited for.
    pub(super) fn on_slices_issued(&mut self, last: EventId) {
        let Some(links) = &self.links else { return };
        let Some(length) = links.slice else { return };
        for (rob, link) in self.robs.iter_mut().zip(&links.each) {
            if let Some(timed) = link.timed.as_ref().filter(|timed| timed.waiting.is_empty()) {
                rob.advance(timed.slices(length).horizon(last.0.saturating_add(1)));
            }
        }
    }

    /// The run is over: no further slice is made.
    pub(super) fn end_slices(&mut self) {
        if self.links.as_ref().is_some_and(|links| links.slice.is_some()) {
            self.robs.iter_mut().for_each(|rob| rob.advance(u64::MAX));
        }
    }

    /// Tells level 1 how far the sources have come, if that has changed by a slice.
    pub(super) fn tell_passed(&mut self, out: &mut Outbox) {
        let (Some(links), Some(level1)) = (&mut self.links, self.parameters.level1) else { return };
        if !core::mem::take(&mut links.has_moved) {
            return;
        }
        let Some(passed) = links.passed(&self.robs, self.parameters.in_flight) else { return };
        if links.told_passed != passed {
            links.told_passed = passed;
            out.send(level1, Message::Passed(passed));
        }
    }

    pub(super) fn turn_off_if_full(&mut self, rob: usize, out: &mut Outbox) {
        let links = self.links.as_deref_mut().expect("links that push");
        if !links.each[rob].off && self.robs[rob].used() > self.parameters.busy_above {
            links.each[rob].off = true;
            out.link(rob, LinkOrder::Off);
            self.tell_full(out);
        }
    }

    /// Where slices are issued as time goes on, level 1 leaves some out until there is room again.
    pub(super) fn tell_full(&mut self, out: &mut Outbox) {
        let full = self.links.as_ref().is_some_and(|links| links.slice.is_some() && links.is_any_off());
        if full != core::mem::replace(&mut self.busy, full) {
            self.tell_busy(out);
        }
    }
}

impl Links {
    /// How far the sources have come: at most so many slices beyond those that were issued.
    fn passed(&self, robs: &[Rob], window: u64) -> Option<Passed> {
        let length = self.slice?;
        let (mut first, mut all, mut any) = (None, None, 0);
        for (index, link) in self.each.iter().enumerate() {
            let (Some(timed), Some(chunks)) = (&link.timed, robs[index].chunks()) else { continue };
            let slices = timed.slices(length);
            first = first.into_iter().chain(chunks.first_begin().map(|begin| slices.of(begin))).min();
            let passed = if self.is_over(link) {
                chunks.newest().map_or(0, |newest| slices.of(newest).saturating_add(1))
            } else {
                let passed = chunks.watermark().map_or(0, |watermark| slices.passed(watermark));
                all = Some(all.map_or(passed, |all: u64| all.min(passed)));
                passed
            };
            any = passed.max(any);
        }
        let next = self.newest_issued.map(|newest| newest.0.saturating_add(1));
        let begin = next.or(first).unwrap_or(any);
        let most = begin.saturating_add(window);
        let last = all.is_none() && any <= most;
        let first = if next.is_some() { self.told_passed.first } else { begin };
        Some(Passed { first, all: all.unwrap_or(any).min(most), any: any.min(most), last })
    }

    /// A time that is too far from the slices that were issued is none.
    fn is_near(&self, time: u64) -> bool {
        let slice = |length: u64| time / length;
        let newest = self.slice.map(slice).zip(self.newest_issued);
        newest.is_none_or(|(slice, newest)| slice.abs_diff(newest.0) <= PLACED_WITHIN)
    }
}
