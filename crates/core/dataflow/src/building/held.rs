//! An event that a builder holds, from its assignment until its fate is known.

use alloc::vec::Vec;
use core::time::Duration;

use crate::building::ahead::Pushed;
use crate::building::asked::{Asked, AskedTable};
use crate::message::{BuiltEvent, EventInfo, Recording};
use base::bulk::{Bulk, PageSlice};
use base::ids::{EventId, NodeId};
use base::time::Time;

/// An event that a builder holds.
#[derive(Default)]
pub(super) struct Building {
    pub(super) event: EventInfo,
    pub(super) attempt: u16,
    pub(super) has_result: bool,
    pub(super) oldest_unfinished: EventId,
    /// Sources that were not asked yet.
    pub(super) to_ask: Vec<u16>,
    /// Its number in the [`AskedTable`].
    pub(super) number: usize,
    /// The ROBs that some sources were asked for by name; mostly there are none.
    pub(super) named: Vec<(u16, Vec<u32>)>,
    /// Sources that were asked and have not answered.
    pub(super) awaited: usize,
    /// No source is late before this time: most time-outs find none, and there may be one for each source.
    none_late_before: Time,
    /// Sources that will push and have not.
    pub(super) unpushed: usize,
    /// ROBs whose data level 2 had collected.
    pub(super) collected: Vec<u32>,
    pub(super) parts: Vec<Bulk>,
    pub(super) len_bytes: usize,
    pub(super) missing: Vec<u32>,
    pub(super) phase: Phase,
}

/// How far it is.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Collecting,
    /// The DFM decides whether this attempt counts.
    Ended,
    Ready,
    Served(usize),
}

/// What became of data that a source pushed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// They are part of the event; whether the source had been asked.
    Used { asked: bool },
    /// Some may come yet: the source is to be asked.
    ToAsk,
    /// Nobody waits for them.
    Not,
}

/// When requests of an event are given up that were sent at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Timeout {
    pub(super) deadline: Time,
    pub(super) event: EventId,
    pub(super) attempt: u16,
}

/// Who is served.
pub(super) struct Efd {
    pub(super) node: NodeId,
    pub(super) gone: bool,
    pub(super) pulls: u32,
}

impl Building {
    /// Of no event yet, with its number in the [`AskedTable`].
    pub(super) fn numbered(number: usize) -> Self {
        Self { number, ..Self::default() }
    }

    /// Whether data may still come.
    #[inline]
    pub(super) fn waits(&self) -> bool {
        !self.to_ask.is_empty() || self.awaited > 0 || self.unpushed > 0
    }

    /// Takes what a source pushed, in an event of at most so many bytes. The reply to a request shows if that is too much.
    pub(super) fn take_pushed(&mut self, part: Pushed, most: usize, asked: &mut AskedTable) -> Taken {
        let Pushed { source, missing, bulk } = part;
        let len_bytes = bulk.len();
        let fits = self.phase == Phase::Collecting && self.len_bytes + len_bytes <= most;
        if !fits {
            return Taken::Not;
        }
        if missing.iter().any(|missing| !missing.lost) {
            let is_waited_for = core::mem::take(&mut asked.at_mut(self.number, usize::from(source)).unpushed);
            self.unpushed -= usize::from(is_waited_for);
            self.to_ask.extend(is_waited_for.then_some(source));
            return if is_waited_for { Taken::ToAsk } else { Taken::Not };
        }
        let Some(asked) = self.expect_no_more_of(source, asked) else { return Taken::Not };
        if len_bytes > 0 {
            self.len_bytes += len_bytes;
            self.parts.push(bulk);
        }
        self.missing.extend(missing.iter().map(|missing| missing.rob));
        Taken::Used { asked }
    }

    /// A source has sent all its data; whether it had been asked. Nothing, if nothing is expected of it.
    pub(super) fn expect_no_more_of(&mut self, source: u16, asked: &mut AskedTable) -> Option<bool> {
        let of_source = asked.at_mut(self.number, usize::from(source));
        if of_source.unpushed {
            of_source.unpushed = false;
            self.unpushed -= 1;
            return Some(false);
        }
        if of_source.awaited && self.names(source).is_none() {
            self.answered(source, of_source);
            return Some(true);
        }
        let place = self.to_ask.iter().position(|other| *other == source)?;
        self.to_ask.remove(place);
        Some(false)
    }

    /// Sources that have not pushed are asked instead, in this order.
    pub(super) fn ask_unpushed(&mut self, order: &[u16], asked: &mut AskedTable) {
        self.unpushed = 0;
        for &source in order {
            if core::mem::take(&mut asked.at_mut(self.number, usize::from(source)).unpushed) {
                self.to_ask.push(source);
            }
        }
    }

    /// Nothing more is awaited of a source.
    #[inline]
    pub(super) fn answered(&mut self, source: u16, asked: &mut Asked) {
        asked.awaited = false;
        self.awaited -= 1;
        if !self.named.is_empty() {
            self.named.retain(|(of, _)| *of != source);
        }
    }

    /// A source is asked for these ROBs only.
    pub(super) fn name(&mut self, source: u16, robs: Vec<u32>) {
        self.named.retain(|(of, _)| *of != source);
        self.named.push((source, robs));
    }

    /// The ROBs that a source was asked for, if not for all.
    pub(super) fn names(&self, source: u16) -> Option<&[u32]> {
        self.named.iter().find(|(of, _)| *of == source).map(|(_, robs)| robs.as_slice())
    }

    /// The sources, in this order, that have not answered by this time, though they should have within `request_timeout`. They are
    /// asked again now, or given up.
    pub(super) fn take_late(
        &mut self,
        order: &[u16],
        request_timeout: Duration,
        by: Time,
        asked: &AskedTable,
    ) -> Vec<u16> {
        if by < self.none_late_before {
            return Vec::new();
        }
        // Who is asked from now on may take as long again.
        self.none_late_before = by + request_timeout;
        let mut late = Vec::new();
        for &source in order {
            let asked = asked.at(self.number, usize::from(source));
            let due = asked.sent + request_timeout;
            if asked.awaited && due <= by {
                late.push(source);
            } else if asked.awaited {
                self.none_late_before = self.none_late_before.min(due);
            }
        }
        late
    }

    /// Nobody was asked yet.
    pub(super) fn forget_times(&mut self) {
        self.none_late_before = Time::ZERO;
    }

    pub(super) fn has_some_of(&self, robs: &[u32]) -> bool {
        self.collected.iter().any(|rob| robs.contains(rob))
    }

    pub(super) fn is_granted(&self) -> bool {
        matches!(self.phase, Phase::Ready | Phase::Served(_))
    }

    /// What is shown of it to those who watch.
    pub(super) fn sample(&self) -> Recording {
        Recording { built: self.built_event(), streams: 0, debug: None }
    }

    /// All that the event filter gets; the handles are shared, no byte is copied.
    pub(super) fn built_event(&self) -> BuiltEvent {
        let modelled = self.parts.iter().any(|part| matches!(part, Bulk::Modelled { .. }));
        let bulk = if modelled {
            let len_bytes = self.parts.iter().map(Bulk::len).sum::<usize>() as u32;
            Bulk::Modelled { len_bytes, seed: self.event.ordinal as u32 }
        } else {
            let slices: Vec<PageSlice> = self.parts.iter().flat_map(|part| part.slices().iter().cloned()).collect();
            Bulk::PageList(slices)
        };
        let Self { event, oldest_unfinished, ref missing, .. } = *self;
        BuiltEvent { event, oldest_unfinished, missing: missing.clone(), bulk }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::random::Random;

    #[test]
    fn a_source_was_asked_for_the_robs_that_were_named_last_until_it_answers() {
        let mut building = Building { awaited: 2, ..Building::numbered(0) };
        building.name(1, alloc::vec![11]);
        building.name(2, alloc::vec![21, 22]);
        building.name(1, alloc::vec![12, 13]);
        assert_eq!([0, 1, 2].map(|source| building.names(source)), [None, Some(&[12, 13][..]), Some(&[21, 22][..])]);
        let mut asked = Asked { awaited: true, ..Asked::default() };
        building.answered(1, &mut asked);
        assert_eq!([1, 2].map(|source| building.names(source)), [None, Some(&[21, 22][..])]);
        assert_eq!((asked.awaited, building.awaited), (false, 1));
    }

    #[test]
    fn no_late_source_is_overlooked() {
        let mut random = Random::new(7);
        let time = |ns| Time::from_ns(ns);
        let timeout = Duration::from_nanos(50);
        let order: Vec<u16> = (0..20).rev().collect();
        let (number, mut asked) = (17, AskedTable::new(20));
        asked.begin(number);
        let mut building = Building::numbered(number);
        for now in 1..5000 {
            let by = time(now);
            let is_late = |asked: &Asked| asked.awaited && asked.sent + timeout <= by;
            let expected: Vec<u16> =
                order.iter().copied().filter(|source| is_late(asked.at(number, usize::from(*source)))).collect();
            let late = building.take_late(&order, timeout, by, &asked);
            assert_eq!(late, expected, "at {now}");
            for source in late {
                *asked.at_mut(number, usize::from(source)) =
                    Asked { sent: by, awaited: now % 3 > 0, ..Asked::default() };
            }
            let source = (random.next_u64() % 20) as usize;
            let awaited = !asked.at(number, source).awaited && random.next_u64().is_multiple_of(4);
            *asked.at_mut(number, source) = Asked { sent: by, awaited, ..Asked::default() };
        }
    }
}
