//! Links whose sources send by themselves: fragments come before or after their trigger, or never.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::Ros;
use super::parameters::{Framing, LinkParameters, LinksParameters, RosParameters};
use super::timed::Timed;
use crate::component::{LinkNews, LinkOrder, Outbox};
use crate::message::{BusyCause, EventInfo, LinkTrigger, Message};
use crate::readout::fragment::FragmentHead;
use crate::readout::requests::Request;
use crate::readout::rob::{Refusal, Rob};
use crate::report::{LinkClock, LinkReport, LinkState};
use base::bulk::Bulk;
use base::ids::EventId;
use base::time::Time;
use timing::Interval;
use timing::rule::Rising;
use timing::slices::{Passed, Slices};
use timing::watch::Watch;

/// What a read-out system knows of the sources of its links.
pub(super) struct Links {
    pub(super) each: Vec<Link>,
    grace: Duration,
    pub(super) slice: Option<Slices>,
    pub(super) wait: Duration,
    pub(super) watch: Watch,
    pub(super) framing: Option<Arc<dyn Framing>>,
    /// Issued events that may not be cleared, rising.
    issued: VecDeque<EventId>,
    pub(super) newest_issued: Option<EventId>,
    /// Of older events it is not known which were issued: that was before this life.
    known_from: EventId,
    /// Whether the run had begun before this life.
    began_late: bool,
    lead: Lead,
    started: bool,
    /// Whether an event was issued in this life.
    has_begun: bool,
    stopping: bool,
    /// As level 1 was told.
    awaits: bool,
    /// It is told that all sources have come from this time on: one that comes and goes must not make a queue of words.
    tells_from: Time,
    /// Whether a timed link may have come further than level 1 was told.
    pub(super) has_moved: bool,
    pub(super) told_passed: Passed,
    pub(super) word: Word,
}

/// How far the word is that tells level 1 how far sources have come. One word is on its way at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It has taken the last one.
    Taken,
    /// It is to get one, whether anything is new or not.
    Owed,
    OnItsWay,
}

pub(super) struct Link {
    pub(super) parameters: LinkParameters,
    pub(super) state: LinkState,
    /// Whether it was told to send nothing for now.
    pub(super) off: bool,
    /// When it is lost, if it is away, or has to have ended, if it was told to stop.
    due: Option<Time>,
    pub(super) timed: Option<Timed>,
}

/// The source whose fragments are the triggers.
#[derive(Default)]
struct Lead {
    /// Whether level 1 wants it to send, once it has said so.
    on: Option<bool>,
    newest: Option<EventId>,
    times: Rising,
    /// Triggers that level 1 has not been told, in order.
    waiting: VecDeque<LinkTrigger>,
    /// Triggers that it was told and has not issued.
    told: VecDeque<EventId>,
    /// Whether no trigger follows, and whether level 1 knows.
    over: bool,
    told_over: bool,
}

impl Links {
    pub(super) fn new(parameters: &LinksParameters, late: bool) -> Box<Self> {
        // Whoever was there before does not hold up a run that goes on.
        let state = if late { LinkState::Down } else { LinkState::Awaited };
        let link = |&parameters: &LinkParameters| {
            let timed = parameters.timed.map(Timed::new);
            Link { parameters, state, off: false, due: None, timed }
        };
        Box::new(Self {
            each: parameters.each.iter().map(link).collect(),
            grace: parameters.grace,
            slice: parameters.slice,
            wait: parameters.wait,
            watch: Watch::new(parameters.each.iter().map(|link| link.watched), parameters.by_triggers),
            framing: parameters.framing.clone(),
            issued: VecDeque::new(),
            newest_issued: None,
            known_from: EventId(0),
            began_late: late,
            lead: Lead::default(),
            started: false,
            has_begun: false,
            stopping: false,
            awaits: false,
            tells_from: Time::ZERO,
            has_moved: false,
            told_passed: Passed::default(),
            word: Word::Taken,
        })
    }

    /// Whether an event was issued, as far as that is known.
    pub(super) fn was_issued(&self, event: EventId) -> bool {
        event < self.known_from || self.issued.binary_search(&event).is_ok()
    }

    /// What is below was cleared, or is by now: it holds up no link.
    pub(super) fn forget_below(&mut self, oldest: EventId) {
        self.has_moved |= self.slice.is_some() && self.is_any_off();
        while self.issued.pop_front_if(|event| *event < oldest).is_some() {}
    }

    /// Level 1 may have heard nothing.
    pub(super) fn tell_again(&mut self) {
        (self.told_passed, self.word) = (Passed::default(), Word::Taken);
        self.has_moved = true;
    }

    /// The event is cleared.
    pub(super) fn forget(&mut self, event: EventId) {
        self.has_moved |= self.slice.is_some() && self.is_any_off();
        self.each.iter_mut().filter_map(|link| link.timed.as_mut()).for_each(|timed| timed.forget(event));
    }

    pub(super) fn is_tolerated(&self, rob: usize) -> bool {
        self.each[rob].parameters.tolerated
    }

    /// Whether events wait for this link, however long that takes.
    pub(super) fn is_awaited(&self, rob: usize) -> bool {
        let link = &self.each[rob];
        link.parameters.awaited && !self.is_over(link)
    }

    /// Whether there are links that events wait for.
    pub(super) fn await_any(&self) -> bool {
        self.each.iter().any(|link| link.parameters.awaited)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let made = |link: &Link| {
            link.timed
                .as_ref()
                .filter(|_| !link.parameters.awaited || self.is_over(link))
                .and_then(Timed::next_deadline)
        };
        let tells = (self.awaits && !self.lacks_source()).then_some(self.tells_from);
        self.each.iter().flat_map(|link| [link.due, made(link)]).flatten().chain(tells).min()
    }

    /// Whether a source has not come yet.
    fn lacks_source(&self) -> bool {
        self.each.iter().any(|link| link.state == LinkState::Awaited)
    }

    /// Whether a source could still send what belongs to this run.
    pub(super) fn are_over(&self) -> bool {
        self.each.iter().all(|link| link.state != LinkState::Up || self.is_over(link))
    }

    /// Whether nothing comes from a link any more, for now at least.
    pub(super) fn is_over(&self, link: &Link) -> bool {
        match link.state {
            LinkState::Ended | LinkState::Lost => true,
            LinkState::Up => self.stopping && link.due.is_none(),
            LinkState::Awaited | LinkState::Down => self.stopping,
        }
    }

    pub(super) fn is_any_off(&self) -> bool {
        self.each.iter().any(|link| link.off)
    }

    pub(super) fn report(&self, robs: &[Rob]) -> Vec<LinkReport> {
        let report = |(index, (rob, link)): (usize, (&Rob, &Link))| LinkReport {
            rob: rob.source_id(),
            state: link.state,
            counters: rob.counters(),
            clock: self.watch.known(index).map(LinkClock::from),
        };
        robs.iter().zip(&self.each).enumerate().map(report).collect()
    }

    /// Whether the leader waits for busy to fall.
    fn is_hand_shaken(&self, rob: usize, robs: &[Rob], is_cleared: impl Fn(EventId) -> bool) -> bool {
        let Lead { newest, waiting, told, .. } = &self.lead;
        let owes = |(link, rob): (&Link, &Rob)| {
            let follows = link.parameters.one_by_one && !link.parameters.leads && link.state == LinkState::Up;
            // A device answers each trigger before the next one, also where its fragments may come in any order. One that sends nothing
            // to a system that has returned may have answered its former life.
            let has_answered = |newest| self.began_late && !rob.has_received() && is_cleared(newest);
            let waits = |newest| rob.newest() < Some(newest) && !rob.has_passed(newest) && !has_answered(newest);
            follows && newest.is_some_and(waits)
        };
        let Link { parameters, .. } = &self.each[rob];
        let waits = || !waiting.is_empty() || !told.is_empty() || self.each.iter().zip(robs).any(owes);
        parameters.one_by_one && parameters.leads && waits()
    }

    /// A number is near those that were issued, or those of its link; before the first of both it may be any.
    fn is_placed(&self, event: EventId, newest: Option<EventId>) -> bool {
        let known = [self.newest_issued, newest];
        known == [None; 2] || known.into_iter().flatten().any(|near| near.0.abs_diff(event.0) <= PLACED_WITHIN)
    }

    /// Level 1 has begun: all sources had come, and who is away now is not awaited any more.
    fn begin(&mut self, now: Time) {
        for link in self.each.iter_mut().filter(|link| link.state == LinkState::Awaited) {
            (link.state, link.due) = (LinkState::Down, Some(now + self.grace));
        }
    }

    /// Tells a source to send, if it is its turn: the leading one when level 1 says so.
    fn start(&self, rob: usize, out: &mut Outbox) {
        let link = &self.each[rob];
        let wanted = if link.parameters.leads { self.lead.on == Some(true) } else { self.started && !self.stopping };
        if wanted && link.state == LinkState::Up {
            out.link(rob, LinkOrder::Start);
        }
    }

    fn stop(&mut self, now: Time, rob: usize, out: &mut Outbox) {
        let link = &mut self.each[rob];
        if link.state == LinkState::Up {
            link.due.get_or_insert(now + self.grace);
            out.link(rob, LinkOrder::Stop);
        }
    }
}

impl Ros {
    /// Level 1 is held back until all sources have come.
    pub(super) fn tell_awaited(&mut self, now: Time, again: bool, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        let awaits = links.lacks_source() || (links.awaits && !links.stopping && now < links.tells_from);
        if links.awaits && !awaits {
            links.tells_from = now + links.grace;
        }
        if (awaits != core::mem::replace(&mut links.awaits, awaits) || again)
            && let Some(level1) = self.parameters.level1
        {
            out.send(level1, Message::Busy { cause: BusyCause::Source, on: awaits });
        }
    }

    pub(super) fn on_accepts_pushed(&mut self, now: Time, events: &[EventInfo], times: &[Interval], out: &mut Outbox) {
        let destinations =
            events.iter().filter_map(|event| Some((self.pushing.destinations.direct(event)?, event.event)));
        self.pushing.offers.extend(destinations);
        let links = self.links.as_deref_mut().expect("links that push");
        if !core::mem::replace(&mut links.has_begun, true) {
            links.begin(now);
        }
        for (info, time) in events.iter().zip(times).filter(|(_, time)| !time.is_none()) {
            links.watch.trigger(info.event.0, info.ordinal, time.begin);
        }
        for &EventInfo { event, .. } in events {
            if links.newest_issued < Some(event) {
                links.newest_issued = Some(event);
                links.issued.push_back(event);
            }
        }
        let newest = links.newest_issued;
        while links.lead.told.pop_front_if(|told| Some(*told) <= newest).is_some() {}
        links.has_moved = true;
        self.tell_triggers(out);
        self.await_data(now, events, times);
        self.make_events(now, out);
        // That it is full comes first, or level 1 would issue a window more than there is room for.
        self.taken.take(now, events.len(), out);
        self.tell_awaited(now, false, out);
        self.shake_hands(out);
    }

    /// What was issued before this life.
    pub(super) fn on_issued_before(&mut self, last: EventId) {
        let Some(links) = &mut self.links else { return };
        links.newest_issued = links.newest_issued.max(Some(last));
        links.known_from = links.known_from.max(last.next());
        links.lead.newest = links.lead.newest.max(Some(last));
        links.has_moved = true;
        // A source that has sent something says by what follows what it has passed. Of chunks nothing is made for former events.
        for (rob, link) in self.robs.iter_mut().zip(&links.each) {
            let is_past = link.timed.as_ref().map_or(!rob.has_received(), |timed| timed.waiting.is_empty());
            rob.pass_below(if is_past { last.next() } else { EventId(0) });
        }
    }

    /// Level 1 says whether the leading source is to send.
    pub(super) fn on_lead(&mut self, now: Time, on: bool, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        if links.slice.is_some() && !on {
            return self.stop_links(now, out);
        }
        let Some(rob) = links.each.iter().position(|link| link.parameters.leads) else { return };
        links.lead.on = Some(on);
        if on {
            links.start(rob, out);
            links.lead.told_over = false;
        } else if links.each[rob].state == LinkState::Up {
            links.stop(now, rob, out);
        } else {
            links.lead.over = true;
        }
        self.tell_triggers(out);
    }

    pub(super) fn on_link(&mut self, now: Time, rob: usize, news: LinkNews, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        let link = &mut links.each[rob];
        match news {
            LinkNews::Fragment { head, trigger_type, time, bulk } => {
                return self.on_pushed(rob, LinkTrigger { event: head.event, trigger_type, time }, head, bulk, out);
            }
            LinkNews::Idle(event) => {
                self.robs[rob].pass_below(event);
                self.reconsider(EventId(0), event, |waiting| waiting.blocked_on == rob, out);
                return self.shake_hands(out);
            }
            LinkNews::Chunk { time, count, status, bulk } => {
                return self.on_chunk(rob, (time, count), status, bulk, out);
            }
            LinkNews::Passed(time) => return self.on_link_passed(rob, time),
            LinkNews::Up => {
                (link.state, link.due) = (LinkState::Up, None);
                self.robs[rob].close(false);
                let (off, leads) = (link.off, link.parameters.leads);
                links.start(rob, out);
                if links.stopping || (leads && links.lead.on == Some(false)) {
                    links.stop(now, rob, out);
                }
                if off {
                    out.link(rob, LinkOrder::Off);
                }
            }
            LinkNews::Down if matches!(link.state, LinkState::Up) => {
                self.robs[rob].counters_mut().sources_lost += 1;
                self.robs[rob].lose_source();
                let has_begun = links.started || links.newest_issued.is_some();
                link.state = if has_begun { LinkState::Down } else { LinkState::Awaited };
                link.due = has_begun.then(|| now + links.grace);
            }
            // No intake of a read-out system takes triggers.
            LinkNews::Down | LinkNews::Trigger(_) => {}
            LinkNews::Lost(losses) => {
                let counters = self.robs[rob].counters_mut();
                counters.frames_missing += losses.missing;
                counters.frames_repeated += losses.repeated;
                counters.frames_malformed += losses.malformed;
                counters.frames_foreign += losses.foreign;
                counters.frames_outside += losses.outside;
                counters.frames_unread += losses.unread;
                return;
            }
            LinkNews::Ended { sent } => {
                (link.state, link.due) = (LinkState::Ended, None);
                self.robs[rob].counters_mut().announced += sent;
                self.end_link(rob, out);
            }
        }
        self.make_events(now, out);
        self.tell_awaited(now, false, out);
        self.shake_hands(out);
    }

    /// Nothing comes from a link any more, for now at least: events do without it.
    fn end_link(&mut self, rob: usize, out: &mut Outbox) {
        let links = self.links.as_deref_mut().expect("links that push");
        links.has_moved = true;
        if links.each[rob].timed.is_none() {
            self.robs[rob].close(true);
        }
        self.reconsider(EventId(0), EventId(u64::MAX), |waiting| waiting.blocked_on == rob, out);
        let links = self.links.as_deref_mut().expect("links that push");
        if links.each[rob].parameters.leads {
            links.lead.over = true;
            self.tell_triggers(out);
        }
    }

    fn on_pushed(&mut self, rob: usize, mut trigger: LinkTrigger, head: FragmentHead, bulk: Bulk, out: &mut Outbox) {
        let event = head.event;
        let refusal = self.pushed_refusal(rob, event);
        let links = self.links.as_deref_mut().expect("links that push");
        if !trigger.time.is_none() {
            links.watch.data(rob, event.0, trigger.time.begin);
        }
        let leads = links.each[rob].parameters.leads && refusal.is_none() && links.lead.newest < Some(event);
        if leads {
            links.lead.newest = Some(event);
            if !trigger.time.is_none() && !links.lead.times.take(trigger.time.begin) {
                trigger.time = Interval::default();
            }
            links.lead.waiting.push_back(trigger);
        }
        self.take_fragment(rob, head, bulk, refusal, out);
        self.turn_off_if_full(rob, out);
        let links = self.links.as_deref_mut().expect("links that push");
        let link = &mut links.each[rob];
        link.off |= link.parameters.one_by_one && link.parameters.leads;
        self.shake_hands(out);
    }

    /// Busy may have fallen, or a source that is off may be missed.
    fn shake_hands(&mut self, out: &mut Outbox) {
        if self.links.as_ref().is_some_and(|links| links.is_any_off()) {
            self.turn_links_on(out);
        }
    }

    fn pushed_refusal(&self, rob: usize, event: EventId) -> Option<Refusal> {
        let links = self.links.as_deref()?;
        if !links.is_placed(event, self.robs[rob].newest()) {
            return Some(Refusal::Unplaced);
        }
        if event < self.clearing.valid.oldest() {
            let is_behind = links.newest_issued < Some(event);
            return Some(if is_behind { Refusal::NeverTriggered } else { Refusal::Old });
        }
        // A trigger that goes back is none.
        let leads = links.each[rob].parameters.leads;
        let goes_back = leads && links.lead.newest >= Some(event) && !self.robs[rob].contains(event);
        self.refusal(event).or(goes_back.then_some(Refusal::Old))
    }

    /// Tells level 1 of triggers, as many as its window holds: those that came together in one message.
    pub(super) fn tell_triggers(&mut self, out: &mut Outbox) {
        let (Some(links), Some(level1)) = (&mut self.links, self.parameters.level1) else { return };
        let newest = links.newest_issued;
        let Lead { waiting, told, over, told_over, .. } = &mut links.lead;
        // What a leader that returned sends again has been issued: no answer would take it out of the window.
        while waiting.pop_front_if(|trigger| Some(trigger.event) <= newest).is_some() {}
        let window = usize::try_from(self.parameters.in_flight).unwrap_or(usize::MAX);
        let count = waiting.len().min(window.saturating_sub(told.len()));
        let last = *over && count == waiting.len();
        if count == 0 && (!last || *told_over) {
            return;
        }
        let triggers: Vec<LinkTrigger> = waiting.drain(..count).collect();
        told.extend(triggers.iter().map(|trigger| trigger.event));
        *told_over |= last;
        out.send(level1, Message::LinkTriggers { triggers, last });
    }

    pub(super) fn start_links(&mut self, now: Time, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        links.started = true;
        for rob in 0..links.each.len() {
            let link = &mut links.each[rob];
            if link.state == LinkState::Down {
                link.due.get_or_insert(now + links.grace);
            }
            if !link.parameters.leads {
                links.start(rob, out);
            }
        }
    }

    pub(super) fn stop_links(&mut self, now: Time, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        links.stopping = true;
        links.has_moved = true;
        (0..links.each.len()).for_each(|rob| links.stop(now, rob, out));
        self.tell_awaited(now, false, out);
    }

    pub(super) fn on_link_deadline(&mut self, now: Time, out: &mut Outbox) {
        let Some(links) = &self.links else { return };
        for rob in 0..links.each.len() {
            let links = self.links.as_deref_mut().expect("links that push");
            let link = &mut links.each[rob];
            if link.due.take_if(|due| *due <= now).is_none() {
                continue;
            }
            if link.state == LinkState::Down {
                link.state = LinkState::Lost;
            }
            self.end_link(rob, out);
        }
        self.make_events(now, out);
        self.tell_awaited(now, false, out);
        self.shake_hands(out);
    }

    /// Whether a request is for a fragment that its event waits for.
    pub(super) fn has_to_wait(&self, request: &Request) -> bool {
        let Some(links) = self.links.as_deref().filter(|links| links.await_any()) else { return false };
        let mut from = 0;
        while let Some(rob) = self.first_blocked(request, from) {
            if links.is_awaited(rob) {
                return true;
            }
            from = rob + 1;
        }
        false
    }

    /// What was cleared may have made room.
    pub(super) fn turn_links_on(&mut self, out: &mut Outbox) {
        let Some(links) = &mut self.links else { return };
        let (oldest, cleared) = (self.clearing.valid.oldest(), &self.clearing.cleared);
        for rob in 0..links.each.len() {
            // A leader with a hand-shake is off after each trigger, however much room there is. Who lacks a trigger holds up its event.
            let LinkParameters { one_by_one, leads, .. } = links.each[rob].parameters;
            let RosParameters { busy_above, busy_below, .. } = self.parameters;
            let (used, newest) = (self.robs[rob].used(), self.robs[rob].newest());
            let awaits = |timed: &Timed| links.slice.is_none() && !timed.waiting.is_empty();
            let is_behind = links.each[rob].timed.as_ref().map_or(newest < links.newest_issued, awaits);
            let has_room = used < busy_below || (((one_by_one && leads) || is_behind) && used <= busy_above);
            if links.each[rob].off
                && has_room
                && !links.is_hand_shaken(rob, &self.robs, |event| event < oldest || cleared.contains(event))
            {
                links.each[rob].off = false;
                out.link(rob, LinkOrder::On);
            }
        }
        self.tell_full(out);
    }
}

/// A number that is further from all others than this is none.
pub(super) const PLACED_WITHIN: u64 = 1 << 30;
