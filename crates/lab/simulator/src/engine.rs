//! The event queue: what happens next, and the virtual time at which it does.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Add, Sub};

use base::time::Time;

/// A point in virtual time, in picoseconds since the start: a byte at 10 Gb/s is 800 ps, a whole number. 2⁶⁴ ps are 213
/// days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The start.
    pub const ZERO: Self = Self(0);

    /// A point `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// A point `ns` nanoseconds after the start.
    ///
    /// # Panics
    /// Beyond 213 days.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns * PS_PER_NS)
    }

    /// Picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// The time that a component sees: whole nanoseconds, rounded down.
    pub const fn to_time(self) -> Time {
        Time::from_ns(self.0 / PS_PER_NS)
    }
}

impl From<Time> for Instant {
    fn from(time: Time) -> Self {
        Self::from_ns(time.as_ns())
    }
}

/// Later by a number of picoseconds.
impl Add<u64> for Instant {
    type Output = Self;

    fn add(self, ps: u64) -> Self {
        Self(self.0 + ps)
    }
}

/// Picoseconds from one point to a later one.
impl Sub for Instant {
    type Output = u64;

    fn sub(self, earlier: Self) -> u64 {
        self.0 - earlier.0
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:012} s", self.0 / PS_PER_S, self.0 % PS_PER_S)
    }
}

/// Events in the order of their times; those of equal times in the order in which they were put in.
///
/// A radix heap of base 64, which is a hierarchical timing wheel that needs no tick. An event lies on the level of the
/// highest base-64 digit in which its time differs from now, in the slot of that digit. An event moves down at most
/// once per level, together with its neighbours in memory. Slots keep their order, so ties need no key.
#[derive(Debug)]
pub struct Queue<E> {
    now: u64,
    len: usize,
    /// What happens at `now`.
    present: VecDeque<E>,
    /// Slot `digit` of level `level` is `slots[level * BASE + digit]`.
    slots: Vec<Vec<Entry<E>>>,
    /// A bit for each slot of a level that holds an event.
    occupied: [u64; LEVELS],
    /// Keeps the memory of a slot while its events move down.
    moving: Vec<Entry<E>>,
}

#[derive(Debug)]
struct Entry<E> {
    at: u64,
    event: E,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Queue<E> {
    /// A queue without events, at the start of time.
    pub fn new() -> Self {
        Self {
            now: 0,
            len: 0,
            present: VecDeque::new(),
            slots: (0..LEVELS * BASE).map(|_| Vec::new()).collect(),
            occupied: [0; LEVELS],
            moving: Vec::new(),
        }
    }

    /// The time of the event taken last.
    pub const fn now(&self) -> Instant {
        Instant(self.now)
    }

    /// Events that have yet to happen.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing will happen any more.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts in an event.
    ///
    /// # Panics
    /// If its time has passed.
    pub fn at(&mut self, at: Instant, event: E) {
        assert!(at.0 >= self.now, "an event at {at}, when it is {} already", self.now());
        self.len += 1;
        self.insert(Entry { at: at.0, event });
    }

    /// Puts in an event `ps` picoseconds from now.
    pub fn after(&mut self, ps: u64, event: E) {
        self.len += 1;
        self.insert(Entry { at: self.now + ps, event });
    }

    /// Takes the next event; its time is now.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        if let Some(event) = self.present.pop_front() {
            self.len -= 1;
            return Some(event);
        }
        let slot = self.first_slot()?;
        self.occupied[slot / BASE] &= !(1 << (slot % BASE));
        self.len -= 1;
        let entries = &mut self.slots[slot];
        if entries.len() == 1 {
            let entry = entries.pop()?;
            self.now = entry.at;
            return Some(entry.event);
        }
        self.pop_of_several(slot)
    }

    /// Takes the next event, of a slot with several: the others move down.
    #[inline(never)]
    fn pop_of_several(&mut self, slot: usize) -> Option<E> {
        let entries = &mut self.slots[slot];
        self.now = entries.iter().map(|entry| entry.at).min()?;
        std::mem::swap(&mut self.moving, entries);
        let mut moving = std::mem::take(&mut self.moving);
        for entry in moving.drain(..) {
            self.insert(entry);
        }
        self.moving = moving;
        self.present.pop_front()
    }

    fn insert(&mut self, entry: Entry<E>) {
        let differs = entry.at ^ self.now;
        if differs == 0 {
            self.present.push_back(entry.event);
            return;
        }
        let level = (u64::BITS - 1 - differs.leading_zeros()) / BITS;
        let digit = (entry.at >> (level * BITS)) as usize % BASE;
        self.occupied[level as usize] |= 1 << digit;
        self.slots[level as usize * BASE + digit].push(entry);
    }

    /// The slot of the earliest events that are not present.
    fn first_slot(&self) -> Option<usize> {
        let level = self.occupied.iter().position(|occupied| *occupied != 0)?;
        Some(level * BASE + self.occupied[level].trailing_zeros() as usize)
    }
}

const PS_PER_NS: u64 = 1_000;
const PS_PER_S: u64 = 1_000_000_000_000;
const BITS: u32 = 6;
const BASE: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_come_in_the_order_of_time_then_of_insertion(steps in vec((0_u32..48, any::<u64>(), 0_usize..4), 1..300)) {
            let mut queue = Queue::new();
            let mut model = BTreeMap::new();
            for (number, (bits, random, takes)) in steps.into_iter().enumerate() {
                let at = queue.now() + (random & ((1 << bits) - 1));
                queue.at(at, number);
                model.insert((at, number), number);
                for _ in 0..takes {
                    let expected = model.pop_first();
                    prop_assert_eq!(queue.pop(), expected.map(|(_, number)| number));
                    prop_assert_eq!(queue.len(), model.len());
                    if let Some(((at, _), _)) = expected {
                        prop_assert_eq!(queue.now(), at);
                    }
                }
            }
            while let Some((_, number)) = model.pop_first() {
                prop_assert_eq!(queue.pop(), Some(number));
            }
            prop_assert!(queue.is_empty() && queue.pop().is_none());
        }
    }

    #[test]
    #[should_panic(expected = "already")]
    fn the_past_is_past() {
        let mut queue = Queue::new();
        queue.at(Instant::from_ns(5), ());
        queue.pop();
        queue.at(Instant::from_ps(4_999), ());
    }
}
