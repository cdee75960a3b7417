//! Data of links belong to events by their time, or their count.

use super::Ros;
use super::links::{Links, PLACED_WITHIN, Word};
use super::parameters::{TimedHead, TimedParameters};
use super::timed::{Timed, Waiting};
use crate::component::{LinkOrder, Note, Outbox};
use crate::message::{EventInfo, Message};
use crate::readout::fragment::status;
use crate::readout::replies::Parts;
use crate::readout::rob::Rob;
use crate::report::LinkState;
use base::bulk::Bulk;
use base::ids::EventId;
use base::time::Time;
use timing::Interval;
use timing::chunks::Chunks;
use timing::rule::Axis;
use timing::slices::{PASSED_AHEAD_MAX, Passed, common_begin};

impl Ros {
    pub(super) fn on_chunk(
        &mut self,
        rob: usize,
        (time, count): (Interval, u64),
        status: u32,
        bulk: Bulk,
        out: &mut Outbox,
    ) {
        let links = self.links.as_deref_mut().expect("links that push");
        let Some(timed) = &links.each[rob].timed else { return };
        let rule = timed.parameters.rule;
        let place = rule.place(time, count);
        let place = place.filter(|place| links.is_near(timed, &self.robs[rob], place.begin));
        let interval = place.unwrap_or_default();
        // A chunk behind the last slice of a run belongs to no slice. It is not late.
        let missed =
            |slices| links.newest_issued.map_or(0, |newest| timed.slices(slices).horizon(newest.0.saturating_add(1)));
        let late_below = links.slice.map_or(timed.missed, missed);
        self.robs[rob].insert_chunk(interval, status, bulk, place.is_none(), late_below);
        if place.is_some() {
            self.robs[rob].pass_time(rule.watermark(interval));
            let time = if rule.axis == Axis::Time { interval } else { time };
            if !time.is_none() {
                links.watch.data(rob, interval.begin, time.begin);
            }
        }
        links.has_moved = true;
        self.turn_off_if_full(rob, out);
    }

    pub(super) fn on_link_passed(&mut self, rob: usize, time: u64) {
        let links = self.links.as_deref_mut().expect("links that push");
        let Some(timed) = &links.each[rob].timed else { return };
        let time = time.saturating_add_signed(timed.parameters.rule.offset);
        if links.is_near(timed, &self.robs[rob], time) {
            self.robs[rob].pass_time(time);
            links.has_moved = true;
        }
    }

    /// Events were issued. A slice is made at once, since level 1 has waited for all sources with something to say. The event of a
    /// trigger is made when its data have come.
    pub(super) fn await_data(&mut self, now: Time, events: &[EventInfo], times: &[Interval]) {
        let links = self.links.as_deref_mut().expect("links that push");
        let (slice, watch) = (links.slice, &links.watch);
        let due = if slice.is_some() { now } else { now + links.wait };
        for (index, link) in links.each.iter_mut().enumerate() {
            let Some(timed) = &mut link.timed else { continue };
            let seen = |time| watch.seen_by(index, time);
            for (place, &event) in events.iter().enumerate() {
                let time = slice.map(|slices| slices.interval(event.event.0));
                let time = time.or(times.get(place).copied()).unwrap_or_default();
                timed.issue(Waiting { event, time, due }, seen);
            }
        }
        self.leave_behind();
    }

    /// Data that are behind all events that wait are in no further one.
    pub(super) fn leave_behind(&mut self) {
        let Some(links) = self.links.as_deref().filter(|links| links.slice.is_none()) else { return };
        for (index, (link, rob)) in links.each.iter().zip(&mut self.robs).enumerate() {
            let Some(timed) = &link.timed else { continue };
            // As long as a source is not found, nobody can say which of its data are in no event: the newest are kept.
            let newest = || rob.chunks().and_then(Chunks::watermark).unwrap_or(0);
            let (is_known, seen) = (links.watch.is_known(index), |time| links.watch.seen_by(index, time));
            let horizon = if is_known { timed.horizon(seen) } else { newest() };
            rob.advance(horizon);
        }
    }

    /// Makes events of what timed links have.
    pub(super) fn make_events(&mut self, now: Time, out: &mut Outbox) {
        for rob in 0..self.links.as_ref().map_or(0, |links| links.each.len()) {
            while let Some(event) = self.make_next(now, rob) {
                self.reconsider(EventId(0), event, |waiting| waiting.blocked_on == rob, out);
            }
            // Slices without chunks take pages, too.
            if self.links.as_ref().is_some_and(|links| links.slice.is_some()) {
                self.turn_off_if_full(rob, out);
            }
        }
    }

    /// Makes the next event of a link, if all has come that it can have, or it is time.
    fn make_next(&mut self, now: Time, rob: usize) -> Option<EventId> {
        let links = self.links.as_deref_mut()?;
        let (slice, framing, is_awaited) = (links.slice, links.framing.clone(), links.is_awaited(rob));
        let link = &mut links.each[rob];
        let (state, timed) = (link.state, link.timed.as_mut()?);
        let chunks = self.robs[rob].chunks()?;
        let waiting = *timed.waiting.front()?;
        let (watch, Waiting { event: info, due, .. }) = (&links.watch, waiting);
        let seen = |time| watch.seen_by(rob, time);
        let interval = timed.taken(&waiting, seen);
        let is_passed = interval.is_none() || state == LinkState::Ended || chunks.watermark() >= Some(interval.end);
        if !is_passed && (is_awaited || (due > now && state != LinkState::Lost)) {
            return None;
        }
        timed.waiting.pop_front();
        // An event of the time that a source was gone is not empty, nor is a slice of the time before it has begun.
        let is_whole = is_passed && !chunks.was_gone(interval) && !(slice.is_some() && chunks.may_lack(interval));
        if !is_passed {
            timed.missed = timed.missed.max(interval.end);
        }
        let may_be_part = is_whole || !link.parameters.whole;
        let horizon = slice.map_or(timed.horizon(seen), |slices| timed.slices(slices).horizon(info.event.0 + 1));
        let TimedParameters { rule, chunks_max: most } = timed.parameters;
        // A living source without data at a time sends a fragment without chunks; the fragment of any other is missing.
        let may_be_empty = !interval.is_none() && !rule.demands() && (is_passed || state == LinkState::Up);
        let has_any = may_be_part && (may_be_empty || chunks.meeting(interval).next().is_some());
        let event = info.event;
        self.robs[rob].counters_mut().unpassed += u64::from(!is_passed);
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
        let Some(slices) = links.slice else { return };
        for (rob, link) in self.robs.iter_mut().zip(&links.each) {
            if let Some(timed) = link.timed.as_ref().filter(|timed| timed.waiting.is_empty()) {
                rob.advance(timed.slices(slices).horizon(last.0.saturating_add(1)));
            }
        }
    }

    /// The run is over: no further event is made.
    pub(super) fn end_events(&mut self) {
        self.robs.iter_mut().for_each(|rob| rob.advance(u64::MAX));
    }

    /// Sources may have come further: makes events that have waited for them, and tells level 1, if that makes slices.
    pub(super) fn take_stock(&mut self, now: Time, out: &mut Outbox) {
        if !self.links.as_mut().is_some_and(|links| core::mem::take(&mut links.has_moved)) {
            return;
        }
        self.make_events(now, out);
        self.turn_links_on(out);
        let (Some(links), Some(level1)) = (&mut self.links, self.parameters.level1) else { return };
        let Some(passed) = links.passed(&self.robs) else { return };
        if links.word == Word::Owed || (links.word == Word::Taken && links.told_passed != passed) {
            (links.told_passed, links.word) = (passed, Word::OnItsWay);
            out.send(level1, Message::Passed(passed));
        }
    }

    /// Level 1 knows how far sources had come; they may have come further.
    pub(super) fn on_passed_taken(&mut self) {
        let Some(links) = &mut self.links else { return };
        (links.word, links.has_moved) = (Word::Taken, true);
    }

    /// Tells of clocks that have stepped, and of sources that have slipped.
    pub(super) fn judge_clocks(&mut self, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        let rob = |link: usize| self.robs[link].source_id();
        links.watch.judge(|link, finding| out.note(Note::Source { rob: rob(link), finding }));
    }

    pub(super) fn turn_off_if_full(&mut self, rob: usize, out: &mut Outbox) {
        let links = self.links.as_deref_mut().expect("links that push");
        if !links.each[rob].off && self.robs[rob].used() > self.parameters.busy_above {
            links.each[rob].off = true;
            out.link(rob, LinkOrder::Off);
            self.tell_full(out);
        }
    }

    /// Where slices are issued as time goes on, level 1 leaves some out until there is room again. The ROS says that with a word,
    /// which level 1 answers. Else nothing would bound what is on its way over a slow connection.
    pub(super) fn tell_full(&mut self, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        let full = links.slice.is_some() && links.is_any_off();
        if full == self.busy || (!full && links.word != Word::Taken && !self.ending.is_draining()) {
            return;
        }
        if !full && links.word == Word::Taken {
            (links.word, links.has_moved) = (Word::Owed, true);
        }
        self.busy = full;
        self.tell_busy(out);
    }
}

impl Links {
    /// How far the sources have come. It bounds how far that is beyond what was issued, since level 1 goes through each slice.
    fn passed(&self, robs: &[Rob]) -> Option<Passed> {
        let all_slices = self.slice?;
        let next = self.newest_issued.map(|newest| newest.0.saturating_add(1));
        let begins = self.each.iter().zip(robs).filter_map(|(link, rob)| {
            let began = rob.chunks()?.began()?;
            Some(link.timed.as_ref()?.slices(all_slices).of(began))
        });
        let next_or_first = next.or_else(|| common_begin(begins, all_slices.length, all_slices.apart));
        let (mut all, mut any) = (None, self.told_passed.any);
        for (index, link) in self.each.iter().enumerate() {
            let (Some(timed), Some(chunks)) = (&link.timed, robs[index].chunks()) else { continue };
            let (slices, is_over) = (timed.slices(all_slices), self.is_over(link));
            let passed = if is_over {
                chunks.newest().map_or(0, |newest| slices.of(newest).saturating_add(1))
            } else {
                let passed = chunks.watermark().map_or(0, |watermark| slices.passed(watermark));
                all = Some(all.map_or(passed, |all: u64| all.min(passed)));
                passed
            };
            // No clear makes room on a link that is off with nothing in a slice. That begins the grace of the slice it has come to. If all
            // that it holds is older than the next slice, it begins the grace of that.
            let is_stuck = link.off && chunks.events() == 0 && !is_over;
            let reached =
                chunks.newest().filter(|_| is_stuck).map(|newest| slices.of(newest).max(next_or_first.unwrap_or(0)));
            any = passed.max(reached.map_or(0, |reached| reached.saturating_add(1))).max(any);
        }
        let begin = next_or_first.unwrap_or(any);
        let most = begin.saturating_add(PASSED_AHEAD_MAX);
        let last = all.is_none() && any <= most;
        let first = if next.is_some() { self.told_passed.first } else { begin };
        Some(Passed { first, all: all.unwrap_or(any).min(most), any: any.min(most), last })
    }

    /// A time that is too far from the slices that were issued is none. Where events are triggers, it is one far from those and
    /// from what else the source has sent.
    fn is_near(&self, timed: &Timed, rob: &Rob, time: u64) -> bool {
        let Some(slices) = self.slice else { return timed.is_near(time, rob.chunks().and_then(Chunks::watermark)) };
        self.newest_issued.is_none_or(|newest| slices.of(time).abs_diff(newest.0) <= PLACED_WITHIN)
    }
}
