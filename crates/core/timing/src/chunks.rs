//! The chunks of one source, from their link until no event needs them.

use alloc::collections::VecDeque;

use base::ids::EventId;

use crate::Interval;

/// Chunks in the order of their times, and the events that were made of them.
///
/// A chunk stays while an event that it is in is not cleared, or while it may still get into one. Events come in the order
/// of their numbers and of their times. So what ends before the *horizon*, below which no further event reaches, and is in none,
/// can go.
///
/// Chunks may come in any order. One that is behind the horizon as a whole is late, and not kept.
#[derive(Clone, Debug)]
pub struct Chunks<T> {
    /// Whether an event has only chunks that lie in it as a whole.
    exclusive: bool,
    /// By begin, then by arrival; what is gone may still have its place here.
    places: VecDeque<Place<T>>,
    /// Chunks that are kept.
    len: usize,
    /// No chunk with an earlier begin follows, as far as the source says.
    watermark: Option<u64>,
    /// The latest begin of a chunk.
    newest: Option<u64>,
    /// The earliest time that the source has told.
    began: Option<u64>,
    /// The source was gone then.
    gone: Interval,
    /// It is gone now, since it had come to this time.
    gone_since: Option<u64>,
    /// No further event reaches below.
    horizon: u64,
    /// Events that were made and not cleared, rising.
    events: VecDeque<Made>,
    arrivals: u64,
}

#[derive(Clone, Debug)]
struct Place<T> {
    interval: Interval,
    /// No chunk up to this one ends behind that.
    reach: u64,
    arrival: u64,
    /// Events with this chunk.
    events: u32,
    was_used: bool,
    chunk: Option<T>,
}

#[derive(Clone, Copy, Debug)]
struct Made {
    event: EventId,
    interval: Interval,
    /// Its chunks are the first so many that belong to it, of those that had come by then.
    chunks: usize,
    arrivals: u64,
}

/// How a chunk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// All its events are still to be made.
    InTime,
    /// An event that it may belong to was made without it; it may get into later ones.
    PartlyLate,
    /// It gets into none: it is not kept.
    Late,
}

/// What leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// Chunks that were in an event.
    pub used: u64,
    /// Chunks that were in none.
    pub unused: u64,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self {
            exclusive: false,
            places: VecDeque::new(),
            len: 0,
            watermark: None,
            newest: None,
            began: None,
            gone: Interval::default(),
            gone_since: None,
            horizon: 0,
            events: VecDeque::new(),
            arrivals: 0,
        }
    }
}

impl<T> Chunks<T> {
    /// None yet. An event has the chunks that meet it, or only those that lie in it as a whole.
    pub fn new(exclusive: bool) -> Self {
        Self { exclusive, ..Self::default() }
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many events were made and not cleared.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// No chunk begins earlier that is still to come, as far as the source says; `None` before it has said anything.
    pub fn watermark(&self) -> Option<u64> {
        self.watermark
    }

    /// The latest begin of a chunk that has come.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// The source has come to this time: it says so, or begins a chunk there.
    pub fn pass(&mut self, time: u64) {
        self.watermark = self.watermark.max(Some(time));
        self.began = Some(self.began.map_or(time, |began| began.min(time)));
        // One that begins earlier sends again what it had sent.
        if let Some(since) = self.gone_since.take().filter(|since| *since < time) {
            // Two such times, of which no event is made yet, are taken for one.
            let is_first = self.gone.is_none() || self.gone.end <= self.horizon;
            self.gone = Interval { begin: if is_first { since } else { self.gone.begin }, end: time };
        }
    }

    /// The source is gone. What it has from here on is not known, up to what it says first when it is back.
    pub fn lose(&mut self) {
        self.gone_since = self.gone_since.or(self.watermark);
    }

    /// The earliest time that the source has told: it has begun by then.
    pub fn began(&self) -> Option<u64> {
        self.began
    }

    /// Whether the source may have had something of an interval that nobody knows: before it has begun, or while it was gone.
    /// What it begins in counts as known.
    pub fn may_lack(&self, interval: Interval) -> bool {
        self.began.is_some_and(|began| interval.end <= began) || self.was_gone(interval)
    }

    /// Whether the source was gone within an interval, or is gone now and had not come to its end.
    pub fn was_gone(&self, interval: Interval) -> bool {
        self.gone.meets(interval) || self.gone_since.is_some_and(|since| since < interval.end)
    }

    /// No further event reaches below.
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Keeps a chunk, unless it is late.
    pub fn insert(&mut self, interval: Interval, chunk: T) -> Arrival {
        self.pass(interval.begin);
        self.newest = self.newest.max(Some(interval.begin));
        if interval.end <= self.horizon {
            return Arrival::Late;
        }
        let at = self.places.partition_point(|place| place.interval.begin <= interval.begin);
        let before = at.checked_sub(1).map_or(0, |before| self.places[before].reach);
        let reach = before.max(interval.end);
        let arrival = self.arrivals;
        self.arrivals += 1;
        let place = Place { interval, reach, arrival, events: 0, was_used: false, chunk: Some(chunk) };
        self.places.insert(at, place);
        let behind = self.places.range_mut(at + 1..);
        behind.take_while(|place| place.reach < reach).for_each(|place| place.reach = reach);
        self.len += 1;
        if interval.begin < self.horizon { Arrival::PartlyLate } else { Arrival::InTime }
    }

    /// The chunks of an interval, by begin.
    pub fn meeting(&self, interval: Interval) -> impl Iterator<Item = (Interval, &T)> {
        self.places_of(interval).filter_map(|place| Some((place.interval, place.chunk.as_ref()?)))
    }

    /// Makes an event of the chunks of its interval, by begin, and of at most `chunks_max` of them: `each` is called for every
    /// one. Whether there were more.
    ///
    /// # Panics
    /// If the event is not newer than the one before.
    pub fn make(
        &mut self,
        event: EventId,
        interval: Interval,
        chunks_max: usize,
        mut each: impl FnMut(Interval, &T),
    ) -> bool {
        assert!(self.events.back().is_none_or(|last| last.event < event), "events are made in order");
        let first = self.first_place(interval);
        let (mut chunks, mut is_cut) = (0, false);
        let exclusive = self.exclusive;
        let places = self.places.range_mut(first..).take_while(|place| place.interval.begin < interval.end);
        for place in places.filter(|place| place.belongs_to(interval, exclusive)) {
            let Some(chunk) = &place.chunk else { continue };
            is_cut = chunks == chunks_max;
            if is_cut {
                break;
            }
            each(place.interval, chunk);
            place.events += 1;
            place.was_used = true;
            chunks += 1;
        }
        self.events.push_back(Made { event, interval, chunks, arrivals: self.arrivals });
        is_cut
    }

    /// The event is cleared: what is in no other, and gets into none, leaves.
    pub fn clear(&mut self, event: EventId) -> Freed {
        let at = self.events.binary_search_by_key(&event, |made| made.event).ok();
        let Some(made) = at.and_then(|at| self.events.remove(at)) else { return Freed::default() };
        let (first, horizon, exclusive) = (self.first_place(made.interval), self.horizon, self.exclusive);
        let places = self.places.range_mut(first..);
        let its = places.filter(|place| {
            place.chunk.is_some() && place.arrival < made.arrivals && place.belongs_to(made.interval, exclusive)
        });
        let mut freed = Freed::default();
        for place in its.take(made.chunks) {
            place.events -= 1;
            if place.events == 0 && place.interval.end <= horizon {
                place.chunk = None;
                freed.used += 1;
            }
        }
        self.forget(freed);
        freed
    }

    /// Clears all events below this one.
    pub fn clear_below(&mut self, oldest: EventId) -> Freed {
        let mut freed = Freed::default();
        while let Some(made) = self.events.front().filter(|made| made.event < oldest) {
            freed += self.clear(made.event);
        }
        freed
    }

    /// No further event reaches below `horizon`: what ends there and is in no event leaves. The horizon does not go back.
    pub fn advance(&mut self, horizon: u64) -> Freed {
        let mut freed = Freed::default();
        if horizon <= self.horizon {
            return freed;
        }
        // A chunk that ended by the last horizon has left already, unless it is in an event. Then that event frees it.
        let first = self.places.partition_point(|place| place.reach <= self.horizon);
        self.horizon = horizon;
        for place in self.places.range_mut(first..).take_while(|place| place.interval.begin <= horizon) {
            if place.interval.end <= horizon && place.events == 0 && place.chunk.take().is_some() {
                *if place.was_used { &mut freed.used } else { &mut freed.unused } += 1;
            }
        }
        self.forget(freed);
        freed
    }

    fn places_of(&self, interval: Interval) -> impl Iterator<Item = &Place<T>> {
        let places = self.places.range(self.first_place(interval)..);
        places
            .take_while(move |place| place.interval.begin < interval.end)
            .filter(move |place| place.belongs_to(interval, self.exclusive))
    }

    /// All chunks before this place end before the interval.
    fn first_place(&self, interval: Interval) -> usize {
        self.places.partition_point(|place| place.reach <= interval.begin)
    }

    /// Places without a chunk are forgotten, as soon as they are more than the others: each is moved once on average.
    fn forget(&mut self, freed: Freed) {
        self.len -= (freed.used + freed.unused) as usize;
        while self.places.pop_front_if(|place| place.chunk.is_none()).is_some() {}
        if self.places.len() > 2 * self.len + 16 {
            self.places.retain(|place| place.chunk.is_some());
        }
    }

    /// Asserts that places, events and counts agree.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(&self) {
        assert_eq!(self.places.iter().filter(|place| place.chunk.is_some()).count(), self.len, "chunks that are kept");
        assert!(
            self.places.iter().is_sorted_by_key(|place| place.interval.begin),
            "chunks in the order of their begin"
        );
        assert!(self.places.iter().is_sorted_by_key(|place| place.reach), "a reach covers those before");
        assert!(self.places.iter().all(|place| place.reach >= place.interval.end), "a reach covers its own chunk");
        let in_events: usize = self.events.iter().map(|made| made.chunks).sum();
        let uses: usize = self.places.iter().map(|place| place.events as usize).sum();
        assert_eq!(in_events, uses, "each use of a chunk is one of an event");
        assert!(self.events.iter().is_sorted_by_key(|made| made.event), "events in order");
        let lingers =
            |place: &Place<T>| place.chunk.is_some() && place.events == 0 && place.interval.end <= self.horizon;
        assert!(!self.places.iter().any(lingers), "what no event needs has left");
    }
}

impl<T> Place<T> {
    fn belongs_to(&self, event: Interval, exclusive: bool) -> bool {
        if exclusive { self.interval.lies_in(event) } else { self.interval.meets(event) }
    }
}

impl core::ops::AddAssign for Freed {
    fn add_assign(&mut self, other: Self) {
        self.used += other.used;
        self.unused += other.unused;
    }
}
