//! Fragments of one link, in fixed slots under a hash of the event number.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::ids::EventId;

mod index;
#[cfg(test)]
mod tests;

use index::{Entry, Index, Probe, SlotNumber, hash};

/// The fragments of one read-out link, by event number [DAQ1999 §4.6.1, "event manager"].
///
/// Insert, find and remove cost O(1) in any order of event numbers. The capacity is fixed and all memory is allocated
/// and touched by [`EventManager::new`]; nothing is allocated afterwards.
///
/// # Structure
///
/// An event has a home slot: its number modulo a prime of at least twice the capacity. As long as the resident numbers
/// span less than that, which is normal, no two of them meet. An operation then looks at one slot, and neighbours in
/// number are neighbours in memory. The same holds for numbers of any constant stride that the prime does not divide. A
/// home can be taken only after a jump of the numbers (ECR) or with very old events around. Its second event goes to
/// another free slot, and a hash index says to which.
///
/// Rising numbers pass through all slots, so these are small, four to a cache line. The fragments are kept beside them,
/// and the place that was left last is taken next: few events in hand stay in the cache.
///
/// # Memory
///
/// [`EventManager::BYTES_PER_EVENT`] for each event of the capacity, resident or not. It holds the fragment, two slots of
/// 16 bytes, 16 bytes of the hash index and twice 4 bytes for lists of places. The index has two entries of 8 bytes, so
/// that it is at most half full. With the 32 bytes that a read-out buffer keeps of a fragment (a `Bulk`) this is 88 bytes.
/// Compare that with the page of the fragment's data. [`EventManager::memory_bytes`] is the exact sum, which is higher by
/// less than 1 % at a million events: it rounds up to the next prime.
///
/// # Order
///
/// Nothing is visited in hash order. [`EventManager::remove_older_than`] goes by event number; [`EventManager::iter`] goes by
/// slot, which is a pure function of the operations so far.
pub struct EventManager<F> {
    slots: Box<[Slot]>,
    fragments: Box<[Option<F>]>,
    /// Places among the fragments; the last is taken first.
    free: Vec<u32>,
    displaced: Index,
    /// To put resident events in order.
    scratch: Box<[SlotNumber]>,
    /// No event is newer that was ever inserted.
    newest: EventId,
    /// No resident event is older.
    oldest_bound: EventId,
}

/// Why a fragment was not kept; it is handed back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum InsertError<F> {
    /// As many events as the capacity are resident: some must be cleared first.
    Full(F),
    /// The event is resident already; its fragment stays as it was. Reported also when the event manager is full.
    Duplicate(F),
}

#[derive(Clone, Copy)]
struct Slot {
    id: EventId,
    /// How many resident events have their home here and are elsewhere.
    displaced: u32,
    /// Where the fragment is; [`VACANT`] if no event is here.
    fragment: u32,
}

/// Where an event is.
#[derive(Clone, Copy)]
enum Place {
    Home(usize),
    Displaced(Entry),
}

impl<F> EventManager<F> {
    /// Bytes of memory for one event of the capacity.
    pub const BYTES_PER_EVENT: usize = size_of::<Option<F>>()
        + SLOTS_PER_EVENT * size_of::<Slot>()
        + Index::ENTRIES_PER_EVENT * Index::ENTRY_BYTES
        + size_of::<u32>()
        + size_of::<SlotNumber>();

    /// The highest capacity, in events.
    pub const MAX_CAPACITY: usize = 1 << 28;

    /// An event manager for at most `capacity` resident events.
    ///
    /// # Panics
    /// If `capacity` is above [`EventManager::MAX_CAPACITY`].
    pub fn new(capacity: usize) -> Self {
        assert!(
            capacity <= Self::MAX_CAPACITY,
            "an event manager holds at most {} events, not {capacity}",
            Self::MAX_CAPACITY
        );
        let vacant = Slot { id: EventId::default(), displaced: 0, fragment: VACANT };
        Self {
            slots: vec![vacant; next_prime(capacity * SLOTS_PER_EVENT)].into_boxed_slice(),
            fragments: core::iter::repeat_with(|| None).take(capacity).collect(),
            free: (0..capacity as u32).rev().collect(),
            displaced: Index::new(capacity),
            scratch: vec![SlotNumber::MAX; capacity].into_boxed_slice(),
            newest: EventId(0),
            oldest_bound: EventId(u64::MAX),
        }
    }

    /// Keeps the fragment of an event.
    ///
    /// # Errors
    /// If the event is resident already or the event manager is full; the fragment comes back.
    // Beside the one caller that each fragment passes stands one for what is made of chunks: neither decides for the other.
    #[inline(always)]
    pub fn insert(&mut self, id: EventId, fragment: F) -> Result<(), InsertError<F>> {
        let home = self.home(id);
        if self.place_from(home, id).is_some() {
            return Err(InsertError::Duplicate(fragment));
        }
        let Some(place) = self.free.pop() else {
            return Err(InsertError::Full(fragment));
        };
        let slot = if self.slots[home].is_vacant() { home } else { self.displace(id, home) };
        let slot = &mut self.slots[slot];
        slot.id = id;
        slot.fragment = place;
        self.fragments[place as usize] = Some(fragment);
        self.newest = self.newest.max(id);
        self.oldest_bound = self.oldest_bound.min(id);
        Ok(())
    }

    /// The fragment of an event, if it is resident.
    #[inline]
    pub fn find(&self, id: EventId) -> Option<&F> {
        self.place(id).and_then(|place| self.fragments[self.fragment_at(place)].as_ref())
    }

    /// The fragment of an event, to be changed in place, if it is resident.
    #[inline]
    pub fn find_mut(&mut self, id: EventId) -> Option<&mut F> {
        self.place(id).and_then(|place| self.fragments[self.fragment_at(place)].as_mut())
    }

    /// Whether the event is resident.
    #[inline]
    pub fn contains(&self, id: EventId) -> bool {
        self.place(id).is_some()
    }

    /// Takes the fragment of an event out and frees its slot.
    #[inline]
    pub fn remove(&mut self, id: EventId) -> Option<F> {
        let place = self.place(id)?;
        Some(self.release(id, place))
    }

    /// Takes out all events below `oldest_valid`, in event-number order, and returns how many there were.
    ///
    /// It looks up each event number between the `oldest_valid` of the previous call and this one. If a pass over all
    /// slots costs less, it makes that, and sorts the events that it finds.
    pub fn remove_older_than(&mut self, oldest_valid: EventId, mut each: impl FnMut(EventId, F)) -> usize {
        let len_before = self.len();
        if oldest_valid <= self.oldest_bound || len_before == 0 {
            return 0;
        }
        let first = self.oldest_bound.0;
        let end = oldest_valid.0.min(self.newest.0.saturating_add(1));
        if end.saturating_sub(first) <= self.slots.len() as u64 {
            for id in (first..end).map(EventId) {
                if let Some(fragment) = self.remove(id) {
                    each(id, fragment);
                }
            }
        } else {
            self.remove_by_slot(oldest_valid, each);
        }
        self.oldest_bound = oldest_valid;
        len_before - self.len()
    }

    /// The resident events with their fragments, by slot: an order that depends on the operations so far only.
    pub fn iter(&self) -> impl Iterator<Item = (EventId, &F)> {
        self.slots.iter().filter_map(|slot| Some((slot.id, self.fragments.get(slot.fragment as usize)?.as_ref()?)))
    }

    /// How many events are resident.
    pub fn len(&self) -> usize {
        self.capacity() - self.free.len()
    }

    /// Whether no event is resident.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many events can be resident.
    pub fn capacity(&self) -> usize {
        self.fragments.len()
    }

    /// How many more events can be inserted.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// How many resident events are not in their home slot: their look-ups take three accesses to memory instead of
    /// one.
    pub fn displaced(&self) -> usize {
        self.displaced.len()
    }

    /// Bytes of memory in use, whatever the number of resident events; without what fragments themselves own.
    pub fn memory_bytes(&self) -> usize {
        let lists = self.capacity() * size_of::<u32>() + size_of_val(&*self.scratch);
        size_of_val(&*self.slots) + size_of_val(&*self.fragments) + self.displaced.memory_bytes() + lists
    }

    /// Checks that slots, index and counts agree, in time and memory proportional to the capacity.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(&self) {
        let mut indexed = vec![false; self.slots.len()];
        let mut displaced = vec![0; self.slots.len()];
        self.displaced.check(|tag, slot| {
            let slot = slot as usize;
            let Slot { id, .. } = self.slots[slot];
            assert!(!indexed[slot], "slot {slot} is twice in the index");
            assert!(!self.slots[slot].is_vacant(), "slot {slot} is in the index and vacant");
            assert_eq!(Index::tag(id), tag, "event {id} is in the index under another tag");
            assert_ne!(self.home(id), slot, "event {id} is in the index and at home");
            indexed[slot] = true;
            displaced[self.home(id)] += 1;
        });
        let mut used = vec![false; self.capacity()];
        for (number, slot) in self.slots.iter().enumerate() {
            assert_eq!(slot.displaced, displaced[number], "events displaced from slot {number}");
            if !slot.is_vacant() {
                let (id, place) = (slot.id, slot.fragment as usize);
                assert!(self.fragments[place].is_some(), "event {id} has no fragment");
                assert!(!core::mem::replace(&mut used[place], true), "the fragment of event {id} is another's, too");
                assert!(indexed[number] || self.home(id) == number, "event {id} cannot be found");
                assert!(id >= self.oldest_bound && id <= self.newest, "event {id} is out of bounds");
            }
        }
        assert_eq!(self.iter().count(), self.len(), "resident events");
        assert_eq!(self.fragments.iter().flatten().count(), self.len(), "fragments of resident events");
    }

    #[inline]
    fn home(&self, id: EventId) -> usize {
        (id.0 % self.slots.len() as u64) as usize
    }

    #[inline]
    fn place(&self, id: EventId) -> Option<Place> {
        self.place_from(self.home(id), id)
    }

    #[inline]
    fn place_from(&self, home: usize, id: EventId) -> Option<Place> {
        let slot = &self.slots[home];
        if slot.id == id && !slot.is_vacant() {
            return Some(Place::Home(home));
        }
        if slot.displaced == 0 {
            return None;
        }
        match self.probe_displaced(id) {
            Probe::Found(entry) => Some(Place::Displaced(entry)),
            Probe::Vacant(_) => None,
        }
    }

    #[inline]
    fn release(&mut self, id: EventId, place: Place) -> F {
        if let Place::Displaced(entry) = place {
            self.displaced.remove(entry);
            let home = self.home(id);
            self.slots[home].displaced -= 1;
        }
        let fragment = self.fragment_at(place);
        self.slots[place.slot()].fragment = VACANT;
        self.free.push(fragment as u32);
        self.fragments[fragment].take().expect("a resident event has a fragment")
    }

    #[inline]
    fn fragment_at(&self, place: Place) -> usize {
        self.slots[place.slot()].fragment as usize
    }

    #[cold]
    fn probe_displaced(&self, id: EventId) -> Probe {
        self.displaced.probe(Index::tag(id), |slot| self.slots[slot as usize].id == id)
    }

    /// Finds another free slot for an event that is not resident, and notes it in the index.
    ///
    /// Half of the slots are free, and the hash of the event number decides in which order the search visits them. So
    /// two attempts are enough on average, however the taken slots lie. The number of slots being prime, every slot is
    /// visited.
    #[cold]
    fn displace(&mut self, id: EventId, home: usize) -> usize {
        let slots = self.slots.len();
        let hash = hash(id);
        let step = 1 + (hash % (slots as u64 - 1)) as usize;
        let mut slot = home;
        while !self.slots[slot].is_vacant() {
            slot = (slot + step) % slots;
        }
        let Probe::Vacant(bucket) = self.probe_displaced(id) else {
            panic!("event {id} is in the index and not resident");
        };
        self.displaced.put(bucket, Index::tag(id), slot as SlotNumber);
        self.slots[home].displaced += 1;
        slot
    }

    /// One pass over all slots finds what is too old.
    fn remove_by_slot(&mut self, oldest_valid: EventId, mut each: impl FnMut(EventId, F)) {
        let mut found = 0;
        for (number, slot) in (0..).zip(&self.slots) {
            if !slot.is_vacant() && slot.id < oldest_valid {
                self.scratch[found] = number;
                found += 1;
            }
        }
        self.scratch[..found].sort_unstable_by_key(|&slot| self.slots[slot as usize].id);
        for next in 0..found {
            let id = self.slots[self.scratch[next] as usize].id;
            let fragment = self.remove(id).expect("a resident event");
            each(id, fragment);
        }
    }
}

impl Slot {
    #[inline]
    fn is_vacant(self) -> bool {
        self.fragment == VACANT
    }
}

impl Place {
    fn slot(self) -> usize {
        match self {
            Self::Home(slot) => slot,
            Self::Displaced(entry) => entry.slot as usize,
        }
    }
}

impl<F> fmt::Debug for EventManager<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventManager")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .field("newest", &self.newest)
            .finish_non_exhaustive()
    }
}

impl<F> fmt::Debug for InsertError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full",
            Self::Duplicate(_) => "Duplicate",
        })
    }
}

impl<F> fmt::Display for InsertError<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "the event manager is full: events must be cleared first",
            Self::Duplicate(_) => "a fragment of the same event is resident already",
        })
    }
}

impl<F> core::error::Error for InsertError<F> {}

fn next_prime(at_least: usize) -> usize {
    let is_prime =
        |n: &usize| (2..).take_while(|divisor| divisor * divisor <= *n).all(|divisor| !n.is_multiple_of(divisor));
    (at_least.max(2)..).find(is_prime).expect("there is a prime between any number and its double")
}

const SLOTS_PER_EVENT: usize = 2;
/// The fragment of a slot without an event.
const VACANT: u32 = u32::MAX;
