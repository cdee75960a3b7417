//! The ring of one thread, which alone writes to it; others may copy it at any time.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::{Section, Stamp, StampKind};

/// The newest stamps of a thread.
pub(crate) struct Ring {
    pub(crate) number: u64,
    pub(crate) thread: String,
    /// One more than it holds: the thread may be writing the next stamp, to where none of those held is.
    slots: Box<[Slot]>,
    /// How many were ever written.
    count: AtomicU64,
    /// Those before were taken, or are of former times.
    from: AtomicU64,
}

#[derive(Default)]
struct Slot {
    ticks: AtomicU64,
    what: AtomicU64,
    event: AtomicU64,
}

impl Ring {
    /// A ring that holds so many stamps.
    pub(crate) fn new(number: u64, thread: String, capacity: usize) -> Self {
        assert!(capacity > 0, "a ring holds at least one stamp");
        let slots = (0..=capacity).map(|_| Slot::default()).collect();
        Self { number, thread, slots, count: AtomicU64::new(0), from: AtomicU64::new(0) }
    }

    /// For the thread of the ring.
    #[inline]
    pub(crate) fn write(&self, ticks: u64, what: u64, event: u64) {
        let count = self.count.load(Ordering::Relaxed);
        // Whoever copies and sees anything of this stamp also sees that there were `count`.
        fence(Ordering::Release);
        let slot = &self.slots[self.place(count)];
        slot.ticks.store(ticks, Ordering::Relaxed);
        slot.what.store(what, Ordering::Relaxed);
        slot.event.store(event, Ordering::Relaxed);
        self.count.store(count + 1, Ordering::Release);
    }

    /// Forgets all stamps.
    pub(crate) fn clear(&self) {
        self.from.store(self.count.load(Ordering::Acquire), Ordering::Relaxed);
    }

    /// Takes the stamps, oldest first, and how many older ones were overwritten.
    pub(crate) fn drain(&self, ns_of: impl Fn(u64) -> u64) -> (Vec<Stamp>, u64) {
        let (from, end) = (self.from.load(Ordering::Relaxed), self.count.load(Ordering::Acquire));
        let capacity = self.slots.len() as u64 - 1;
        let first = from.max(end.saturating_sub(capacity));
        let copied: Vec<[u64; 3]> = (first..end).map(|index| self.slots[self.place(index)].copy()).collect();
        fence(Ordering::Acquire);
        // What was written meanwhile, and what is being written, replaced older ones.
        let whole = first.max(self.count.load(Ordering::Relaxed).saturating_sub(capacity));
        let passed_over = usize::try_from(whole - first).map_or(copied.len(), |passed| passed.min(copied.len()));
        let stamps = copied[passed_over..].iter().map(|[ticks, what, event]| stamp(ns_of(*ticks), *what, *event));
        self.from.store(end, Ordering::Relaxed);
        (stamps.collect(), first - from + passed_over as u64)
    }

    fn place(&self, index: u64) -> usize {
        (index % self.slots.len() as u64) as usize
    }
}

impl Slot {
    fn copy(&self) -> [u64; 3] {
        [&self.ticks, &self.what, &self.event].map(|word| word.load(Ordering::Relaxed))
    }
}

/// Everything but time and event, in one word.
#[inline]
pub(crate) fn pack(kind: StampKind, Section(section): Section, place: u16, peer: u16) -> u64 {
    kind as u64 | u64::from(section) << 16 | u64::from(place) << 32 | u64::from(peer) << 48
}

fn stamp(at_ns: u64, what: u64, event: u64) -> Stamp {
    let part = |shift: u32| (what >> shift) as u16;
    let kind = [StampKind::Enter, StampKind::Leave, StampKind::Send, StampKind::Further][usize::from(part(0) % 4)];
    let event = Some(event).filter(|event| *event != NO_EVENT);
    Stamp { at_ns, kind, section: Section(part(16)), place: part(32), peer: part(48), event }
}

/// Events do not get that far.
pub(crate) const NO_EVENT: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::NOWHERE;

    proptest! {
        #[test]
        fn the_newest_are_left_and_the_others_counted(
            capacity in 1_usize..40, before in 0_u64..100, events in 0_u64..100,
        ) {
            let ring = Ring::new(0, "t".into(), capacity);
            let what = pack(StampKind::Send, Section(3), 9, NOWHERE);
            (0..before).for_each(|event| ring.write(event, what, event));
            ring.clear();
            (0..events).for_each(|event| ring.write(event, what, event));
            let (stamps, overwritten) = ring.drain(|ticks| ticks * 2);
            let found: Vec<_> = stamps.iter().map(|stamp| stamp.event.unwrap()).collect();
            prop_assert_eq!(&found, &(events.saturating_sub(capacity as u64)..events).collect::<Vec<_>>());
            prop_assert_eq!(overwritten + found.len() as u64, events);
            for stamp in stamps {
                let expected = (stamp.event.unwrap() * 2, StampKind::Send, Section(3), 9, NOWHERE);
                prop_assert_eq!((stamp.at_ns, stamp.kind, stamp.section, stamp.place, stamp.peer), expected);
            }
        }
    }

    #[test]
    fn a_copy_holds_whole_stamps_only_while_its_thread_writes() {
        let ring = Ring::new(0, "t".into(), 64);
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0_u64..)
                    .take_while(|_| !stop.load(Ordering::Relaxed))
                    .for_each(|n| ring.write(n, n << 16 & 0xffff_0000, n));
            });
            let is_whole = |stamp: &Stamp| stamp.event == Some(stamp.at_ns) && stamp.section.0 == stamp.at_ns as u16;
            let torn = (0..20_000).map(|_| ring.drain(|ticks| ticks).0).find(|stamps| {
                let follow = stamps.windows(2).all(|pair| pair[1].at_ns == pair[0].at_ns + 1);
                !follow || !stamps.iter().all(is_whole)
            });
            // Before anything is asserted: the scope waits for the thread.
            stop.store(true, Ordering::Relaxed);
            assert_eq!(torn, None);
        });
    }
}
