//! Sources whose data belong to the triggers of a leader by time, or by count.

use dataflow::component::LinkNews;
use dataflow::readout::fragment::status;
use timing::Interval;

use super::super::World;
use super::super::detectors::Says;
use super::{Line, Sources};
use base::ids::EventId;
use base::time::Time;

impl Line {
    /// Whether its read-out system knows about where its data are, so that a wild count or time is one.
    pub(super) fn may_run_wild(&self) -> bool {
        !self.source.is_matched() || self.sent > 0
    }

    /// When its data of a trigger are that was then, truly.
    fn data_of(&mut self, trigger: Interval) -> Interval {
        let telling = self.source.telling;
        let (spread, lasts) = (telling.spread.as_nanos() as u64, telling.lasts.as_nanos() as u64);
        let off = if spread > 0 { self.random.below(2 * spread + 1) } else { 0 };
        let begin = trigger.begin.saturating_add(off).saturating_sub(spread);
        // Data come in the order of their begin, but for what goes back, comes again, or is exchanged.
        let begin = if begin + 2 * spread >= self.newest_ns { begin.max(self.newest_ns) } else { begin };
        self.newest_ns = self.newest_ns.max(begin);
        Interval::new(begin, begin.saturating_add(lasts))
    }
}

impl Sources {
    /// What a source says of the trigger of a number: its time, and how many there were before.
    fn said(&self, line: &Line, number: u64, data: Interval) -> (Interval, u64) {
        let telling = &line.source.telling;
        let first = self.clock_begins_ns.saturating_add(self.triggers.began().map_or(0, Time::as_ns));
        let time = Interval { begin: telling.says(data.begin, first), end: telling.says(data.end, first) };
        let time = if data.is_none() { data } else { Interval::new(time.begin, time.end) };
        (time, line.source.count(number, self.beam.first))
    }
}

impl World {
    pub(super) fn source_sends_matched(&mut self, place: usize, all: &[(u64, bool)], idle: Option<u64>) {
        let sources = &mut self.sources;
        let (ros, rob, says) = {
            let source = &sources.lines[place].source;
            (source.ros, source.rob, source.says)
        };
        let mut news = Vec::with_capacity(all.len() + 1);
        let first = sources.lines[place].doings.sent - all.len() as u64;
        for (in_order, &(number, damaged)) in (first..).zip(all) {
            let trigger = sources.time_of(number);
            let data = if trigger.is_none() { trigger } else { sources.lines[place].data_of(trigger) };
            let (mut time, counted) = sources.said(&sources.lines[place], number, data);
            let count = if says == Says::Time { in_order } else { counted };
            if trigger.is_none() && says == Says::Time {
                // Far from all that there is.
                let far = sources.clock_begins_ns ^ 1 << (54 + number.trailing_zeros() % 6);
                time = Interval::new(far, far);
            }
            let bulk = self.setup.outside.matched(ros, rob, EventId(number), data, count);
            news.push(LinkNews::Chunk { time, count, status: if damaged { status::TRUNCATED } else { 0 }, bulk });
        }
        if let Some(next) = idle {
            // What follows is of a trigger that is there, or of one still to come.
            let now = sources.clock_begins_ns.saturating_add(self.now.as_ns());
            let line = &sources.lines[place];
            let until = sources.time_of(next);
            let until = if until.is_none() { now } else { until.begin };
            let until = until.saturating_sub(line.source.telling.spread.as_nanos() as u64);
            let (time, count) = sources.said(line, next, Interval::new(until, until));
            news.push(LinkNews::Passed(if says == Says::Time { time.begin } else { count }));
        }
        let line = &mut sources.lines[place];
        line.on_way += all.len();
        line.sent += all.len() as u64;
        self.source_says(place, news);
    }
}
