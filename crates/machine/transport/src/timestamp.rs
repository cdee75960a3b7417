//! Time stamps for profiling.
//!
//! Each scheduler holds one fixed ring of stamps. They can be armed at run time, by kind: a measurement of
//! microseconds should carry only the stamps it needs \[DAQ1999 §4.6.1\]. A stamp that is not armed costs one
//! predictable branch. The sequence diagrams and distributions of DAQ1999 are drawn from such a list of (id, kind,
//! time).

use crate::clock;
use base::time::Time;
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

/// What a stamp is about: a task, by the order in which tasks were added, or a named section of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StampId(u16);

/// Where a stamp was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StampKind {
    /// Before a Poll function.
    PollEnter,
    /// After a Poll function.
    PollExit,
    /// Before an Action function.
    ActionEnter,
    /// After an Action function.
    ActionExit,
    /// At the beginning of a named section.
    SectionEnter,
    /// At the end of a named section.
    SectionExit,
}

/// A stamp as it comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// What it is about; [`Timestamps::name`] says it in words.
    pub id: StampId,
    /// Where it was set.
    pub kind: StampKind,
    /// When; of the monotonic clock, in nanoseconds.
    pub at: Time,
}

/// Which stamps are armed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Armed {
    /// Entry and exit of Poll functions.
    pub polls: bool,
    /// Entry and exit of Action functions.
    pub actions: bool,
    /// Named sections.
    pub sections: bool,
}

/// Arms the stamps of a scheduler from any thread, from its next pass on.
#[derive(Clone, Debug)]
pub struct StampSwitch(Arc<AtomicU8>);

impl StampSwitch {
    /// Arms these stamps and disarms the others. Arming the first ones empties the ring.
    pub fn arm(&self, armed: Armed) {
        let bits = [(armed.polls, POLLS), (armed.actions, ACTIONS), (armed.sections, SECTIONS)];
        let mask = bits.iter().filter(|(is_armed, _)| *is_armed).fold(0, |mask, (_, bit)| mask | bit);
        self.0.store(mask, Ordering::Relaxed);
    }
}

/// The stamps of one scheduler: a ring in which the newest overwrite the oldest.
pub struct Timestamps {
    switch: StampSwitch,
    /// The switch as of the beginning of the pass, so that a stamp reads memory of its own thread only.
    armed: u8,
    ring: Box<[Record]>,
    count: u64,
    armed_at: Anchor,
    names: Vec<String>,
}

impl Timestamps {
    pub(crate) fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a ring holds at least one stamp");
        Self {
            switch: StampSwitch(Arc::new(AtomicU8::new(0))),
            armed: 0,
            ring: vec![Record { ticks: 0, id: StampId(0), kind: StampKind::PollEnter }; capacity].into(),
            count: 0,
            armed_at: Anchor::now(),
            names: Vec::new(),
        }
    }

    /// Marks the beginning of a named section.
    #[inline]
    pub fn enter(&mut self, section: StampId) {
        self.set(SECTIONS, section, StampKind::SectionEnter);
    }

    /// Marks the end of a named section.
    #[inline]
    pub fn exit(&mut self, section: StampId) {
        self.set(SECTIONS, section, StampKind::SectionExit);
    }

    /// The switch that arms these stamps.
    pub fn switch(&self) -> StampSwitch {
        self.switch.clone()
    }

    /// Name of the task or section.
    ///
    /// # Panics
    /// If the id is of another scheduler.
    pub fn name(&self, id: StampId) -> &str {
        &self.names[usize::from(id.0)]
    }

    /// The stamps since arming, oldest first; the ring keeps the newest only.
    pub fn export(&self) -> Vec<Stamp> {
        let scale = Scale::between(self.armed_at, Anchor::now());
        let kept = self.count.min(self.ring.len() as u64);
        let records = (self.count - kept..self.count).map(|index| &self.ring[self.place(index)]);
        records.map(|record| Stamp { id: record.id, kind: record.kind, at: scale.time(record.ticks) }).collect()
    }

    /// How many stamps the ring has lost since arming.
    pub fn overwritten(&self) -> u64 {
        self.count.saturating_sub(self.ring.len() as u64)
    }

    pub(crate) fn add(&mut self, name: &str) -> StampId {
        let id = u16::try_from(self.names.len()).expect("a scheduler has less than 65536 tasks and sections");
        self.names.push(name.to_owned());
        StampId(id)
    }

    /// Takes over the switch.
    pub(crate) fn begin_pass(&mut self) {
        let armed = self.switch.0.load(Ordering::Relaxed);
        if armed != self.armed {
            if self.armed == 0 {
                self.count = 0;
                self.armed_at = Anchor::now();
            }
            self.armed = armed;
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self, task: StampId, kind: StampKind) {
        self.set(POLLS, task, kind);
    }

    #[inline]
    pub(crate) fn action(&mut self, task: StampId, kind: StampKind) {
        self.set(ACTIONS, task, kind);
    }

    #[inline]
    fn set(&mut self, armed_by: u8, id: StampId, kind: StampKind) {
        if self.armed & armed_by != 0 {
            self.record(id, kind);
        }
    }

    fn record(&mut self, id: StampId, kind: StampKind) {
        let place = self.place(self.count);
        self.ring[place] = Record { ticks: ticks(), id, kind };
        self.count += 1;
    }

    fn place(&self, index: u64) -> usize {
        usize::try_from(index % self.ring.len() as u64).expect("a place in memory")
    }
}

#[derive(Clone, Copy)]
struct Record {
    ticks: u64,
    id: StampId,
    kind: StampKind,
}

/// The counter and the clock at one moment.
#[derive(Clone, Copy)]
struct Anchor {
    ticks: u64,
    time: Time,
}

impl Anchor {
    fn now() -> Self {
        Self { ticks: ticks(), time: clock::now() }
    }
}

/// The counter calibrated by the clock at two moments: exact at both, linear between.
struct Scale {
    from: Anchor,
    ns_per_tick: f64,
}

impl Scale {
    fn between(from: Anchor, to: Anchor) -> Self {
        let (ticks, ns) = (to.ticks.saturating_sub(from.ticks), to.time.since(from.time).as_nanos());
        let ns_per_tick = if ticks == 0 { 0.0 } else { ns as f64 / ticks as f64 };
        Self { from, ns_per_tick }
    }

    fn time(&self, ticks: u64) -> Time {
        let ns = ticks.saturating_sub(self.from.ticks) as f64 * self.ns_per_tick;
        Time::from_ns(self.from.time.as_ns() + ns as u64)
    }
}

/// The time-stamp counter: constant rate, the same on all processors of any machine of the last decade.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and Linux permits it to user space.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn ticks() -> u64 {
    clock::now().as_ns()
}

const POLLS: u8 = 1;
const ACTIONS: u8 = 2;
const SECTIONS: u8 = 4;

#[cfg(test)]
mod tests {
    use super::{Armed, StampKind, Timestamps};
    use crate::clock;

    #[test]
    fn nothing_is_recorded_until_armed() {
        let mut stamps = Timestamps::new(4);
        let section = stamps.add("collect");
        stamps.enter(section);
        stamps.switch().arm(Armed { actions: true, ..Armed::default() });
        stamps.begin_pass();
        stamps.enter(section);
        assert!(stamps.export().is_empty());
        stamps.switch().arm(Armed { sections: true, ..Armed::default() });
        stamps.begin_pass();
        stamps.enter(section);
        stamps.exit(section);
        let exported = stamps.export();
        assert_eq!(
            exported.iter().map(|stamp| stamp.kind).collect::<Vec<_>>(),
            [StampKind::SectionEnter, StampKind::SectionExit]
        );
        assert_eq!(stamps.name(exported[0].id), "collect");
    }

    #[test]
    fn stamps_are_in_order_and_on_the_clock() {
        let before = clock::now();
        let mut stamps = Timestamps::new(64);
        let section = stamps.add("collect");
        stamps.switch().arm(Armed { sections: true, ..Armed::default() });
        stamps.begin_pass();
        (0..32).for_each(|_| stamps.enter(section));
        let exported = stamps.export();
        assert!(exported.is_sorted_by_key(|stamp| stamp.at));
        assert!(before <= exported[0].at && exported[31].at <= clock::now());
    }

    #[test]
    fn the_ring_keeps_the_newest() {
        let mut stamps = Timestamps::new(4);
        let sections = [stamps.add("first"), stamps.add("second")];
        stamps.switch().arm(Armed { sections: true, ..Armed::default() });
        stamps.begin_pass();
        (0..5).for_each(|_| stamps.enter(sections[0]));
        (0..3).for_each(|_| stamps.enter(sections[1]));
        let ids: Vec<_> = stamps.export().iter().map(|stamp| stamp.id).collect();
        assert_eq!(ids, [sections[0], sections[1], sections[1], sections[1]]);
        assert_eq!(stamps.overwritten(), 4);
    }
}
