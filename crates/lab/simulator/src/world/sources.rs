//! Sources at work: they connect, obey read-out systems or do not, and send; what they send waits until it is taken.

mod chunks;
mod matched;
mod triggers;

use std::collections::VecDeque;
use std::time::Duration;

use base::ids::{EventId, Incarnation, NodeId, Role};
use base::random::Random;
use base::time::Time;
use dataflow::component::{Input, LinkNews, LinkOrder};
use dataflow::readout::fragment::{FragmentHead, status};
use timing::Interval;

use super::detectors::{Beam, Detectors, Doings, Handed, Rhythm, Says, Source};
use super::setup::Planted;
use super::{Arriving, What, World};
use triggers::Triggers;

/// All sources of a world.
#[derive(Default)]
pub(super) struct Sources {
    beam: Beam,
    room: usize,
    /// What clocks say at the begin of the world, in ns.
    clock_begins_ns: u64,
    /// Those of the leading source, or of the processor that is ahead.
    triggers: Triggers,
    lines: Vec<Line>,
}

/// Something that happens to the source of this place, or on its link.
pub(super) enum SourceEvent {
    Appears(usize),
    Dies(usize, Option<Duration>),
    /// Its connection to this life of its read-out system stands, if both still live.
    Connects(usize, Incarnation),
    Wakes(usize),
    /// On this connection of it.
    Hears(usize, u64, LinkOrder),
    /// What it sent comes to this life of its read-out system.
    Comes(usize, Incarnation, Vec<LinkNews>),
    /// Its read-out system looks after it.
    Taken(usize),
}

/// What a read-out system takes from a link in a pass.
pub(super) struct Batch {
    line: usize,
    news: Vec<LinkNews>,
}

impl Batch {
    /// Fragments, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let bytes = |news: &LinkNews| match news {
            LinkNews::Fragment { bulk, .. } | LinkNews::Chunk { bulk, .. } => Some(bulk.len()),
            _ => None,
        };
        self.news.iter().filter_map(bytes).fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
    }
}

/// A source, its link, and what waits there.
struct Line {
    source: Source,
    random: Random,
    lives: bool,
    /// The life of its read-out system that it has a connection to.
    link: Option<Incarnation>,
    /// How often it has connected.
    connections: u64,
    started: bool,
    /// When it was told to stop.
    stopped: Option<Time>,
    ended: bool,
    /// As it was told.
    off: bool,
    wake: Option<Time>,
    /// The first number that it has not come to.
    next: u64,
    /// Where it began, if it sends chunks, and has.
    first_chunk: Option<u64>,
    /// Whether it has returned, and begins where it began before.
    sends_again: bool,
    /// When it was first told to send.
    first_start: Option<Time>,
    /// Whether its read-out system knows which slices there are.
    has_slices: bool,
    /// It sends nothing before this time.
    not_before: Time,
    /// When the newest data began that it has sent of a trigger: what follows does not begin before.
    newest_ns: u64,
    /// What has come to its read-out system and was not taken.
    queue: VecDeque<LinkNews>,
    /// Fragments sent and not taken.
    on_way: usize,
    /// As its read-out system has said.
    is_off: bool,
    is_taking: bool,
    /// Fragments sent on this connection.
    sent: u64,
    doings: Doings,
    /// Whether its read-out system has reported.
    is_closed: bool,
}

impl Line {
    fn new(source: Source, seed: u64, first: u64) -> Self {
        let own = u64::from(source.ros.0) << 16 | u64::from(source.rob);
        Self {
            random: Random::new(seed ^ own ^ 0x736f_7572_6365),
            lives: false,
            link: None,
            connections: 0,
            started: false,
            stopped: None,
            ended: false,
            off: false,
            wake: None,
            next: if source.chunking.is_some() { 0 } else { source.begins_with(first) },
            first_chunk: None,
            sends_again: false,
            first_start: None,
            has_slices: false,
            not_before: Time::ZERO,
            newest_ns: 0,
            queue: VecDeque::new(),
            on_way: 0,
            is_off: false,
            is_taking: false,
            sent: 0,
            doings: Doings::default(),
            is_closed: false,
            source,
        }
    }

    /// It has returned, and knows nothing of what it had sent: that comes again, if there was anything.
    fn begin_anew(&mut self, first_trigger: u64) {
        let begin = self.source.begins_with(first_trigger);
        let first = self.source.chunking.map_or(Some(begin), |_| self.first_chunk);
        self.sends_again = first.is_some();
        self.next = first.unwrap_or(self.next);
        self.newest_ns = 0;
    }

    fn cut(&mut self) {
        self.link = None;
        self.has_slices = false;
        (self.started, self.stopped, self.ended, self.off) = (false, None, false, false);
        self.sent = 0;
    }

    fn does(&mut self, how_often: f64) -> bool {
        how_often > 0.0 && self.random.chance(how_often)
    }

    /// The number that it sends next, and from when on, if there is one already.
    fn ahead(&self, beam: &Beam, triggers: &Triggers) -> Option<(u64, Time)> {
        let number = beam.next(self.next)?;
        let from = match self.source.rhythm {
            Rhythm::Alone(_) => Time::ZERO,
            Rhythm::Behind(_) => triggers.since(number).map(|_| Time::ZERO)?,
            Rhythm::After(delay) => triggers.since(number)? + delay,
        };
        Some((number, from))
    }

    /// What it sends at once, each with whether that is damaged.
    fn fragments(&mut self, number: u64, second: impl FnOnce(&Self) -> Option<u64>) -> Vec<(u64, bool)> {
        let habits = self.source.habits.clone();
        let mut numbers = Vec::new();
        if self.does(habits.invents) && number > self.next {
            self.doings.invented += 1;
            numbers.push(number - 1);
        }
        if self.does(habits.goes_back) {
            self.doings.back += 1;
            numbers.push(number.saturating_sub(1 + self.random.below(6)));
        }
        // The first count of a life is taken for true.
        if self.may_run_wild() && self.does(habits.runs_wild) {
            self.doings.wild += 1;
            numbers.push(number ^ 1 << (32 + self.random.below(31)));
        }
        self.next = number + 1;
        if let Some(second) = second(self)
            && self.does(habits.swaps)
        {
            self.doings.swapped += 1;
            self.next = second + 1;
            numbers.push(second);
        }
        if self.does(habits.leaves_out) {
            self.doings.left_out += 1;
        } else {
            numbers.push(number);
            if self.does(habits.doubles) {
                self.doings.doubled += 1;
                numbers.push(number);
            }
        }
        let damaged = |number| (number, self.does(habits.damages));
        let all: Vec<(u64, bool)> = numbers.into_iter().map(damaged).collect();
        self.doings.damaged += all.iter().filter(|(_, damaged)| *damaged).count() as u64;
        self.doings.sent += all.len() as u64;
        self.doings.unasked += if self.off { all.len() as u64 } else { 0 };
        all
    }
}

impl Sources {
    pub(super) fn new(detectors: &Detectors, seed: u64) -> Self {
        let Detectors { beam, room, clock_begins_ns, each } = detectors;
        let line = |source: &Source| Line::new(source.clone(), seed, beam.first);
        let lines = each.iter().map(line).collect();
        let triggers = Triggers::new(beam.first);
        Self { beam: *beam, room: *room, clock_begins_ns: *clock_begins_ns, triggers, lines }
    }

    pub(super) fn doings(self) -> Vec<Doings> {
        self.lines.into_iter().map(|line| line.doings).collect()
    }

    /// The time of a trigger, by the clock of the world; none for a number still to come.
    fn time_of(&self, number: u64) -> Interval {
        let at = self.triggers.since(number).map(|since| self.clock_begins_ns.saturating_add(since.as_ns()));
        at.map_or(Interval::default(), |at| Interval::new(at, at))
    }

    fn place(&self, ros: NodeId, rob: u16) -> Option<usize> {
        self.lines.iter().position(|line| (line.source.ros, line.source.rob) == (ros, rob))
    }
}

impl World {
    /// Sources come, with the applications or later.
    pub(super) fn start_sources(&mut self) {
        for place in 0..self.sources.lines.len() {
            let late = self.sources.lines[place].source.habits.late;
            self.source_event(self.now + late, SourceEvent::Appears(place));
        }
    }

    /// The run begins, by which their deaths are timed.
    pub(super) fn doom_sources(&mut self) {
        for place in 0..self.sources.lines.len() {
            for (at, away) in self.sources.lines[place].source.habits.deaths.clone() {
                self.source_event(self.now + at, SourceEvent::Dies(place, away));
            }
        }
    }

    /// A read-out system has come to life: its sources connect.
    pub(super) fn connect_sources_of(&mut self, ros: NodeId) {
        for place in 0..self.sources.lines.len() {
            let line = &mut self.sources.lines[place];
            if line.source.ros == ros {
                line.doings.begin_anew();
                self.connect_source(place);
            }
        }
    }

    /// A read-out system has died, with all that its links held.
    pub(super) fn cut_sources_of(&mut self, ros: NodeId) {
        for line in self.sources.lines.iter_mut().filter(|line| line.source.ros == ros) {
            line.cut();
            line.queue.clear();
            (line.on_way, line.is_off, line.is_taking) = (0, false, false);
        }
    }

    /// A read-out system has given its report: what comes later is in no book.
    pub(super) fn close_books_of(&mut self, ros: NodeId) {
        self.sources.lines.iter_mut().filter(|line| line.source.ros == ros).for_each(|line| line.is_closed = true);
    }

    fn connect_source(&mut self, place: usize) {
        let Line { source, lives, .. } = &self.sources.lines[place];
        let (ros, latency) = (source.ros, source.latency);
        if *lives && self.slot(ros).node.is_some() {
            let life = self.slot(ros).incarnation;
            self.source_event(self.now + latency, SourceEvent::Connects(place, life));
        }
    }

    fn source_event(&mut self, at: Time, event: SourceEvent) {
        self.schedule(at, What::Source(event));
    }

    pub(super) fn on_source_event(&mut self, event: SourceEvent) {
        match event {
            SourceEvent::Appears(place) => {
                let line = &mut self.sources.lines[place];
                line.lives = true;
                if line.source.habits.begins_anew && line.doings.died > 0 {
                    line.begin_anew(self.sources.beam.first);
                } else if line.source.habits.misses && line.doings.died > 0 {
                    line.next = line.next.max(self.sources.triggers.below());
                }
                line.doings.returned += u64::from(line.doings.died > 0);
                self.connect_source(place);
            }
            SourceEvent::Dies(place, away) => self.source_dies(place, away),
            SourceEvent::Connects(place, life) => self.source_connects(place, life),
            SourceEvent::Wakes(place) => {
                if self.sources.lines[place].wake == Some(self.now) {
                    self.sources.lines[place].wake = None;
                    self.source_sends(place);
                }
            }
            SourceEvent::Hears(place, connection, order) => {
                let line = &self.sources.lines[place];
                if line.connections == connection && line.link.is_some() {
                    self.source_hears(place, order);
                }
            }
            SourceEvent::Comes(place, life, news) => {
                let slot = self.slot(self.sources.lines[place].source.ros);
                if slot.node.is_some() && slot.incarnation == life {
                    self.sources.lines[place].queue.extend(news);
                    self.take_from(place);
                }
            }
            SourceEvent::Taken(place) => {
                // There is room on the link.
                self.wake_source(place, self.now + self.sources.lines[place].source.latency);
                self.take_from(place);
            }
        }
    }

    fn source_dies(&mut self, place: usize, away: Option<Duration>) {
        self.trace.tell(self.now, &format!("source {place} dies"));
        let line = &mut self.sources.lines[place];
        if !core::mem::replace(&mut line.lives, false) {
            return;
        }
        line.doings.died += 1;
        self.source_says(place, vec![LinkNews::Down]);
        self.sources.lines[place].cut();
        if let Some(away) = away {
            self.source_event(self.now + away, SourceEvent::Appears(place));
        }
    }

    fn source_connects(&mut self, place: usize, life: Incarnation) {
        let slot = self.slot(self.sources.lines[place].source.ros);
        let stands = slot.node.is_some() && slot.incarnation == life;
        let has_begun = !self.monitor.ordinals.is_empty();
        let line = &mut self.sources.lines[place];
        if !stands || !line.lives || line.link == Some(life) {
            return;
        }
        line.link = Some(life);
        line.doings.was_not_awaited |= line.connections == 0 && has_begun;
        line.connections += 1;
        self.source_says(place, vec![LinkNews::Up]);
    }

    fn source_hears(&mut self, place: usize, order: LinkOrder) {
        self.trace.tell(self.now, &format!("source {place} hears {order:?}"));
        let line = &mut self.sources.lines[place];
        match order {
            LinkOrder::Start => {
                line.started = true;
                line.first_start.get_or_insert(self.now);
                line.begin_chunks(self.now);
            }
            LinkOrder::Stop => line.stopped = Some(self.now),
            LinkOrder::Off => {
                line.off = true;
                line.doings.turned_off += 1;
            }
            LinkOrder::On => line.off = false,
        }
        self.wake_source(place, self.now);
    }

    /// It looks what it has to send, at this time or when it would anyway.
    fn wake_source(&mut self, place: usize, at: Time) {
        let line = &mut self.sources.lines[place];
        let at = at.max(line.not_before).max(self.now);
        if line.wake.is_none_or(|wake| at < wake) {
            line.wake = Some(at);
            self.source_event(at, SourceEvent::Wakes(place));
        }
    }

    /// It sends what there is for it to send now, or says that it has ended.
    fn source_sends(&mut self, place: usize) {
        let is_processor = self.is_processor(place);
        let Sources { beam, triggers, lines, .. } = &mut self.sources;
        let line = &mut lines[place];
        let habits = &line.source.habits;
        if line.link.is_none()
            || !(line.started || line.stopped.is_some())
            || line.ended
            || (line.off && !habits.is_deaf)
        {
            return;
        }
        if line.source.chunking.is_some() {
            return self.source_sends_chunks(place);
        }
        let runs_ahead = matches!(line.source.rhythm, Rhythm::Alone(_));
        let sends = !(habits.is_silent || line.stopped.is_some() && runs_ahead);
        let ahead = line.ahead(beam, triggers).filter(|_| sends);
        let Some((number, from)) = ahead else {
            let is_over = (line.source.leads || is_processor) && beam.next(line.next).is_none() && sends;
            if line.stopped.is_some() || is_over {
                self.source_ends(place);
            }
            return;
        };
        if from > self.now {
            return self.wake_source(place, from);
        }
        if line.on_way >= ON_WAY_MAX {
            line.doings.blocked += 1;
            return;
        }
        if line.does(line.source.habits.hesitates) && line.not_before < self.now {
            line.doings.hesitated += 1;
            line.not_before = self.now + line.source.habits.hesitation;
            return self.wake_source(place, self.now);
        }
        let second = |line: &Line| line.ahead(beam, triggers).filter(|(_, from)| *from <= self.now);
        let all = line.fragments(number, |line| second(line).map(|(number, _)| number));
        let idle = line.does(line.source.habits.idles).then_some(line.next);
        line.doings.idle += u64::from(idle.is_some());
        let pause = match line.source.rhythm {
            Rhythm::Alone(interval) => interval.mul_f64(2.0 * line.random.unit()),
            Rhythm::Behind(_) | Rhythm::After(_) => Duration::ZERO,
        };
        line.not_before = self.now + pause.max(BETWEEN_FRAGMENTS);
        let (leads, next) = (line.source.leads, line.next);
        line.off |= line.source.leads && line.source.one_by_one && !all.is_empty();
        // A trigger of one processor makes an event. It waits for no other processor.
        if leads || is_processor {
            self.sources.note_triggers(next, self.now);
        }
        self.source_sends_fragments(place, &all, idle);
        if leads || is_processor {
            self.wake_followers();
        }
        self.wake_source(place, self.now);
    }

    fn source_sends_fragments(&mut self, place: usize, all: &[(u64, bool)], idle: Option<u64>) {
        let Source { ros, rob, says, leads, .. } = self.sources.lines[place].source;
        if self.sources.lines[place].source.is_matched() {
            return self.source_sends_matched(place, all, idle);
        }
        let is_processor = self.is_processor(place);
        let mut news: Vec<LinkNews> = Vec::with_capacity(all.len() + 1);
        for &(number, damaged) in all {
            let event = EventId(number);
            if is_processor {
                news.push(LinkNews::Trigger(Box::new(self.setup.outside.trigger(rob, event))));
                continue;
            }
            let bulk = self.setup.outside.pushed(ros, rob, event);
            let status = if damaged { status::TRUNCATED } else { 0 };
            let time = if says == Says::Number { Interval::default() } else { self.sources.time_of(number) };
            if leads && self.setup.checks && !time.is_none() {
                self.sources.lines[place].doings.told.insert(number, time.begin);
            }
            let head = FragmentHead { event, status, len_bytes: bulk.len() as u32 };
            news.push(LinkNews::Fragment { head, trigger_type: 0x84, time, bulk });
        }
        news.extend(idle.map(|next| LinkNews::Idle(EventId(next))));
        let line = &mut self.sources.lines[place];
        line.on_way += all.len();
        line.sent += all.len() as u64;
        self.source_says(place, news);
    }

    /// There are new triggers.
    fn wake_followers(&mut self) {
        for place in 0..self.sources.lines.len() {
            if let Rhythm::Behind(delay) | Rhythm::After(delay) = self.sources.lines[place].source.rhythm {
                self.wake_source(place, self.now + delay);
            }
        }
    }

    /// Whether it is a level-1 processor.
    fn is_processor(&self, place: usize) -> bool {
        self.slot(self.sources.lines[place].source.ros).app.role == Role::Level1
    }

    fn source_ends(&mut self, place: usize) {
        let line = &mut self.sources.lines[place];
        line.ended = true;
        if line.source.habits.never_ends {
            line.doings.unended += 1;
            return;
        }
        let sent = line.sent;
        self.source_says(place, vec![LinkNews::Ended { sent }]);
    }

    fn source_says(&mut self, place: usize, news: Vec<LinkNews>) {
        let line = &self.sources.lines[place];
        let Some(life) = line.link else { return };
        self.source_event(self.now + line.source.latency, SourceEvent::Comes(place, life, news));
    }

    /// What a read-out system has to say to a source.
    pub(super) fn order_source(&mut self, ros: NodeId, rob: u16, order: LinkOrder) {
        let place = self.sources.place(ros, rob).expect("a link with a source");
        let line = &mut self.sources.lines[place];
        match order {
            LinkOrder::Off => line.is_off = true,
            LinkOrder::On => line.is_off = false,
            LinkOrder::Start | LinkOrder::Stop => {}
        }
        let (at, connection) = (self.now + line.source.latency, line.connections);
        self.source_event(at, SourceEvent::Hears(place, connection, order));
        self.take_from(place);
    }

    /// Takes fragments that wait on a link in order: none from a link that is off, and of others no more than find room.
    fn take_from(&mut self, place: usize) {
        let room = self.sources.room;
        let line = &mut self.sources.lines[place];
        if line.is_taking {
            return;
        }
        let is_single = line.source.leads && line.source.one_by_one;
        let room = if line.is_off { 0 } else { room.min(if is_single { 1 } else { room }) };
        let mut news = Vec::new();
        let mut fragments = 0;
        while let Some(next) = line.queue.pop_front_if(|next| fragments < room || !is_fragment(next)) {
            fragments += usize::from(is_fragment(&next));
            news.push(next);
        }
        if news.is_empty() {
            return;
        }
        line.is_taking = true;
        line.is_off |= is_single && fragments > 0;
        line.on_way -= fragments;
        let (ros, life) = (line.source.ros, self.slot(self.sources.lines[place].source.ros).incarnation);
        self.arrives(ros, Arriving::Pushed(life, Batch { line: place, news }));
    }

    /// A read-out system is handed what it took.
    pub(super) fn input_pushed(&mut self, to: NodeId, incarnation: Incarnation, batch: Batch) {
        let now = self.now;
        let slot = &mut self.slots[usize::from(to.0) - 1];
        if slot.hangs || slot.incarnation != incarnation {
            return;
        }
        let now = slot.reads_clock(now);
        let Some(node) = &mut slot.node else { return };
        let mut out = core::mem::take(&mut self.out);
        self.tally.inputs += batch.news.len() as u64;
        let line = &mut self.sources.lines[batch.line];
        for news in batch.news {
            let is_lost = self.setup.planted == Some(Planted::LostChunk) && matches!(news, LinkNews::Chunk { .. });
            self.planted += u64::from(is_lost);
            if !line.is_closed {
                line.doings.note(&news, self.setup.checks);
                line.note_chunk(&news, self.setup.checks);
            }
            let rob = line.source.rob;
            if is_lost && self.planted == 5 {
                continue;
            }
            node.handle(now, Input::Link { rob, news }, &mut out);
        }
        line.is_taking = false;
        self.source_event(self.now, SourceEvent::Taken(batch.line));
        self.after(to, &mut out);
        self.out = out;
    }
}

impl Doings {
    /// What the present life of the read-out system was handed is nothing yet.
    fn begin_anew(&mut self) {
        self.handed.clear();
        if !self.chunks.is_empty() {
            self.chunks.push(Handed::Life);
        }
        (self.handed_damaged, self.announced, self.connected) = (0, 0, 0);
        (self.is_there, self.has_ended) = (false, false);
    }

    fn note(&mut self, news: &LinkNews, keeps: bool) {
        match news {
            LinkNews::Fragment { head, .. } => {
                self.handed.extend(keeps.then_some(head.event.0));
                self.handed_damaged += u64::from(head.status != 0);
            }
            LinkNews::Ended { sent } => {
                self.announced += sent;
                self.has_ended = true;
            }
            LinkNews::Up => {
                self.connected += 1;
                (self.is_there, self.has_ended) = (true, false);
            }
            LinkNews::Down => self.is_there = false,
            LinkNews::Trigger(record) => self.handed.extend(keeps.then_some(record.event.0)),
            LinkNews::Chunk { status, .. } => self.handed_damaged += u64::from(*status != 0),
            LinkNews::Idle(_) | LinkNews::Passed(_) | LinkNews::Lost(_) => {}
        }
    }
}

fn is_fragment(news: &LinkNews) -> bool {
    matches!(news, LinkNews::Fragment { .. } | LinkNews::Trigger(_) | LinkNews::Chunk { .. })
}

/// A link holds so many fragments; a source that has sent more waits.
const ON_WAY_MAX: usize = 64;
/// No source is faster.
const BETWEEN_FRAGMENTS: Duration = Duration::from_micros(1);

/// A source of tests, which sends at once behind each trigger and does nothing amiss.
#[cfg(test)]
fn one_that_follows() -> Source {
    Source {
        ros: NodeId(1),
        rob: 0,
        leads: false,
        one_by_one: false,
        rhythm: Rhythm::After(Duration::ZERO),
        says: Says::Number,
        telling: super::detectors::Telling::default(),
        chunking: None,
        latency: Duration::ZERO,
        habits: super::detectors::Habits::default(),
    }
}
