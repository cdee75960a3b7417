//! The door of a process: who has connected and not proved yet who he is, and how long he may stay.
//!
//! Places are few. When all are taken, one of the origin that has the most makes room for the next that comes, the oldest first.
//! Before that each has had a while to prove itself, as long as members need. Strangers that come again and again make room soon
//! then, and a member that waits behind them is heard soon. The longer a member is missed, the longer all stay: however slow it is,
//! it is heard in the end.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use base::ids::NodeId;
use base::time::Time;

use crate::passage::LinkId;

/// Who has not proved yet who he is, and from where he came.
pub struct Door<Origin> {
    places: usize,
    /// The longest that anybody stays.
    timeout: Duration,
    /// In the order in which they came.
    strangers: VecDeque<Stranger<Origin>>,
    /// How many of them came from where.
    counts: BTreeMap<Origin, usize>,
    /// When one more can be taken in, if all places are taken.
    room_at: Time,
    stay: Stay,
}

struct Stranger<Origin> {
    link: LinkId,
    origin: Origin,
    since: Time,
}

/// How long a stranger keeps its place at least.
struct Stay {
    /// Of the proofs of members the slowest, former ones counting less and less.
    proof: Duration,
    /// Members whose connection is gone, and since when.
    missed: BTreeMap<NodeId, Time>,
}

impl<Origin: Copy + Ord> Door<Origin> {
    /// With so many places, for at most so long.
    pub fn new(places: usize, timeout: Duration) -> Self {
        let stay = Stay { proof: STAY_MAX / PROOFS_PER_STAY, missed: BTreeMap::new() };
        Self { places, timeout, strangers: VecDeque::new(), counts: BTreeMap::new(), room_at: Time::ZERO, stay }
    }

    /// Who is there stays there, but for the next there are other bounds.
    pub fn renew(&mut self, places: usize, timeout: Duration) {
        (self.places, self.timeout, self.room_at) = (places, timeout, Time::ZERO);
    }

    /// Has no place until it is renewed.
    pub fn close(&mut self) {
        self.places = 0;
    }

    /// Nobody is there, and nobody is missed.
    pub fn clear(&mut self) {
        self.strangers.clear();
        self.counts.clear();
        self.stay.missed.clear();
    }

    /// Takes somebody in; returns who has to go for that.
    pub fn admit(&mut self, link: LinkId, origin: Origin, now: Time) -> Option<LinkId> {
        let leaver = self.leaver().map(|place| self.remove(place).link);
        self.strangers.push_back(Stranger { link, origin, since: now });
        *self.counts.entry(origin).or_default() += 1;
        if let Some(place) = self.leaver() {
            self.room_at = self.strangers[place].since + self.stay.at_least(now).min(self.timeout);
        }
        leaver
    }

    /// Somebody is gone, or is no stranger any more.
    pub fn leave(&mut self, link: LinkId) {
        if let Some(place) = self.place(link) {
            self.remove(place);
        }
    }

    /// Somebody has proved to be this member.
    pub fn prove(&mut self, link: LinkId, member: NodeId, now: Time) {
        if let Some(place) = self.place(link) {
            let took = now.since(self.remove(place).since);
            self.stay.note_proof(member, took);
        }
    }

    /// A member that has come by this door is gone.
    pub fn miss(&mut self, member: NodeId, now: Time) {
        self.stay.missed.entry(member).or_insert(now);
    }

    /// Whether one more can be taken in. However many come, each has a while to prove itself.
    pub fn has_room(&self, now: Time) -> bool {
        !self.is_full() || (self.places > 0 && self.room_at <= now)
    }

    /// When there is room, if all places are taken.
    pub fn room_at(&self) -> Option<Time> {
        (self.is_full() && self.places > 0).then_some(self.room_at)
    }

    /// One whose time is over, if there is any; it is gone.
    pub fn next_late(&mut self, now: Time) -> Option<LinkId> {
        let is_late = self.strangers.front().is_some_and(|first| now.since(first.since) > self.timeout);
        is_late.then(|| self.remove(0).link)
    }

    /// When [`Door::next_late`] may find one.
    pub fn next_deadline(&self) -> Option<Time> {
        self.strangers.front().map(|first| first.since + self.timeout + TICK)
    }

    /// How many are there from where, most first.
    pub fn crowd(&self) -> Vec<(Origin, usize)> {
        let mut counts: Vec<_> = self.counts.iter().map(|(origin, count)| (*origin, *count)).collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        counts
    }

    fn is_full(&self) -> bool {
        self.strangers.len() >= self.places
    }

    /// Who goes for the next one: of the origin that has most of the places the oldest.
    fn leaver(&self) -> Option<usize> {
        let most = self.counts.values().max().filter(|_| self.is_full())?;
        self.strangers.iter().position(|stranger| self.counts[&stranger.origin] == *most)
    }

    /// Connections are numbered as they come.
    fn place(&self, link: LinkId) -> Option<usize> {
        self.strangers.binary_search_by_key(&link, |stranger| stranger.link).ok()
    }

    fn remove(&mut self, place: usize) -> Stranger<Origin> {
        let stranger = self.strangers.remove(place).expect("it is there");
        let count = self.counts.get_mut(&stranger.origin).expect("its origin is counted");
        *count -= 1;
        if *count == 0 {
            self.counts.remove(&stranger.origin);
        }
        stranger
    }
}

impl Stay {
    fn note_proof(&mut self, member: NodeId, took: Duration) {
        self.proof = took.max(self.proof / 2);
        self.missed.remove(&member);
    }

    fn at_least(&self, now: Time) -> Duration {
        let absence = self.missed.values().min().map_or(Duration::ZERO, |since| now.since(*since));
        (self.proof * PROOFS_PER_STAY).clamp(STAY_MIN, STAY_MAX).max(absence / STAYS_PER_ABSENCE)
    }
}

/// Before it is over no stranger has to go for another: a member that has just connected answers within it, on a busy machine too.
const STAY_MIN: Duration = Duration::from_millis(100);
/// Where members are slow, or none has come yet.
const STAY_MAX: Duration = Duration::from_secs(1);
const PROOFS_PER_STAY: u32 = 8;
/// A member that comes again and again is heard when it has been away for so many times what it needs.
const STAYS_PER_ABSENCE: u32 = 8;
const TICK: Duration = Duration::from_millis(1);
