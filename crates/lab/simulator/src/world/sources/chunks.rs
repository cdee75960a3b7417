//! Sources that run free: they cut time into chunks and send each when it is over.

use std::time::Duration;

use base::time::Time;
use dataflow::component::LinkNews;
use dataflow::message::{Envelope, Message};
use dataflow::readout::fragment::status;
use timing::Interval;

use super::super::World;
use super::super::detectors::{Handed, Rhythm};
use super::{BETWEEN_FRAGMENTS, Line, ON_WAY_MAX};

impl Line {
    /// It is told to send: it begins with what is now. One that begins anew sends again what it has sent.
    pub(super) fn begin_chunks(&mut self, now: Time) {
        let Some(chunking) = &self.source.chunking else { return };
        let present = chunking.at(now.as_ns());
        if !core::mem::take(&mut self.sends_again) {
            self.next = self.next.max(present);
        }
        self.first_chunk.get_or_insert(self.next);
    }

    /// What it sends when a chunk is over, each with whether that is damaged.
    fn chunks(&mut self, number: u64) -> Vec<(Interval, bool)> {
        let (habits, chunking) = (self.source.habits.clone(), self.source.chunking.expect("it sends chunks"));
        let mut times = Vec::new();
        if self.does(habits.invents) {
            self.doings.invented += 1;
            times.push(Interval::default());
        }
        if self.does(habits.goes_back) {
            self.doings.back += 1;
            times.push(chunking.interval(number.saturating_sub(1 + self.random.below(20))));
        }
        // The first time of a run is taken for true.
        if self.does(habits.runs_wild) && self.has_slices {
            self.doings.wild += 1;
            let time = chunking.interval(number);
            let far = time.begin ^ 1 << (54 + self.random.below(9));
            times.push(Interval::new(far, far.saturating_add(time.end - time.begin)));
        }
        self.next = number + 1;
        if self.does(habits.swaps) {
            self.doings.swapped += 1;
            self.next = number + 2;
            times.push(chunking.interval(number + 1));
        }
        if self.does(habits.leaves_out) {
            self.doings.left_out += 1;
        } else {
            times.push(chunking.interval(number));
            if self.does(habits.doubles) {
                self.doings.doubled += 1;
                times.push(chunking.interval(number));
            }
        }
        let damaged = |time| (time, self.does(habits.damages));
        let all: Vec<(Interval, bool)> = times.into_iter().map(damaged).collect();
        self.doings.damaged += all.iter().filter(|(_, damaged)| *damaged).count() as u64;
        self.doings.unasked += if self.off { all.len() as u64 } else { 0 };
        all
    }

    pub(super) fn note_chunk(&mut self, news: &LinkNews, keeps: bool) {
        if !keeps || !(self.source.chunking.is_some() || self.source.is_matched()) {
            return;
        }
        let handed = match *news {
            LinkNews::Chunk { time, count, status, .. } => {
                Handed::Chunk { time, place: count, is_damaged: status != 0 }
            }
            LinkNews::Passed(time) => Handed::Passed(time),
            LinkNews::Up => Handed::Up,
            LinkNews::Down => Handed::Down,
            LinkNews::Ended { .. } => Handed::Ended,
            _ => return,
        };
        self.doings.chunks.push(handed);
    }
}

impl World {
    /// It sends the chunk that is over, or looks again when one is; at last it says that it has ended.
    pub(super) fn source_sends_chunks(&mut self, place: usize) {
        let now = self.now;
        let line = &mut self.sources.lines[place];
        let (chunking, habits) = (line.source.chunking.expect("it sends chunks"), &line.source.habits);
        let is_over = line.first_start.is_some_and(|start| chunking.until <= now.since(start));
        let number = line.next;
        let delay = if let Rhythm::After(delay) = line.source.rhythm { delay } else { Duration::ZERO };
        let over = Time::from_ns(chunking.over_ns(number));
        // What it still delays when it is told to stop it sends at once.
        let is_owed = |stopped: Time| !habits.is_silent && !delay.is_zero() && over <= stopped;
        if line.stopped.is_some_and(|stopped| !is_owed(stopped)) || (is_over && !habits.is_silent) {
            return self.source_ends(place);
        }
        if habits.is_silent {
            return;
        }
        let due = if line.stopped.is_some() { over } else { over + delay };
        if due > now {
            return self.wake_source(place, due);
        }
        if line.on_way >= ON_WAY_MAX {
            line.doings.blocked += 1;
            return;
        }
        if line.does(line.source.habits.hesitates) && line.not_before < now {
            line.doings.hesitated += 1;
            line.not_before = now + line.source.habits.hesitation;
            return self.wake_source(place, now);
        }
        let all = line.chunks(number);
        let says_passed = line.does(line.source.habits.idles);
        let passed = says_passed.then(|| chunking.interval(line.next).begin);
        line.doings.idle += u64::from(says_passed);
        line.not_before = now + BETWEEN_FRAGMENTS;
        self.source_sends_all(place, &all, passed);
        self.wake_source(place, now);
    }

    fn source_sends_all(&mut self, place: usize, all: &[(Interval, bool)], passed: Option<u64>) {
        let line = &mut self.sources.lines[place];
        let (ros, rob) = (line.source.ros, line.source.rob);
        let mut news = Vec::with_capacity(all.len() + 1);
        for &(time, damaged) in all {
            let count = line.doings.sent;
            line.doings.sent += 1;
            let bulk = self.setup.outside.chunk(ros, rob, time, count);
            news.push(LinkNews::Chunk { time, count, status: if damaged { status::TRUNCATED } else { 0 }, bulk });
        }
        news.extend(passed.map(LinkNews::Passed));
        line.on_way += all.len();
        line.sent += all.len() as u64;
        self.source_says(place, news);
    }

    /// A read-out system hears which slices there are, or which triggers.
    pub(in super::super) fn note_slices(&mut self, envelope: &Envelope, message: &Message) {
        let handed: Vec<Handed> = match message {
            Message::L1Accept { events, .. } => events.iter().map(|info| Handed::Made(info.event)).collect(),
            Message::IssuedUpTo(last) => vec![Handed::LeftOut(*last)],
            _ => return,
        };
        // What a dead level 1 has sent is heard until its death is known.
        if !self.slot(envelope.to).node.as_ref().is_some_and(|node| node.is_current(envelope)) {
            return;
        }
        let its = |line: &&mut Line| {
            line.source.ros == envelope.to && (line.source.chunking.is_some() || line.source.is_matched())
        };
        for line in self.sources.lines.iter_mut().filter(its) {
            line.has_slices = true;
            line.doings.chunks.extend(handed.iter().filter(|_| self.setup.checks));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::one_that_follows;
    use super::*;
    use crate::world::detectors::{Chunking, Says, Source};

    fn free_running() -> Line {
        let ms = Duration::from_millis;
        let chunking = Chunking { zero_ns: 0, every: ms(1), lasts: ms(1), until: ms(60_000), step: None };
        let source = Source { says: Says::Time, chunking: Some(chunking), ..one_that_follows() };
        Line::new(source, 1, 0)
    }

    fn begins_at(line: &mut Line, ms: u64) -> u64 {
        line.begin_chunks(Time::from_ns(ms * 1_000_000));
        line.next
    }

    #[test]
    fn a_source_begins_with_the_present() {
        assert_eq!(begins_at(&mut free_running(), 50), 49);
    }

    #[test]
    fn one_that_returns_before_it_has_sent_anything_begins_with_the_present_too() {
        let mut line = free_running();
        line.begin_anew(0);
        assert_eq!(begins_at(&mut line, 50), 49);
    }

    #[test]
    fn one_that_returns_sends_again_what_it_had_sent() {
        let mut line = free_running();
        let first = begins_at(&mut line, 50);
        line.next = 70;
        line.begin_anew(0);
        assert_eq!(begins_at(&mut line, 90), first);
    }
}
