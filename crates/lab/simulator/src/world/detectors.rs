//! What is at the far ends of links that push: sources that send when they like, and in what they misbehave.

use std::collections::BTreeMap;
use std::time::Duration;

use base::ids::{EventId, NodeId};
use base::random::unit_of_event;
use timing::Interval;

/// All sources of a partition, and the beam that they see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Detectors {
    /// The events that there are to see.
    pub beam: Beam,
    /// Most fragments that a read-out system takes from a link in a pass.
    pub room: usize,
    /// What clocks of sources that tell times of triggers say at the begin of the world, in ns.
    pub clock_begins_ns: u64,
    /// The sources.
    pub each: Vec<Source>,
}

/// The numbers that belong to triggers. The others are gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beam {
    /// No trigger has a smaller number.
    pub first: u64,
    /// No trigger has this number, or a greater one.
    pub end: u64,
    /// The fraction of the numbers that are gaps.
    pub gaps: f64,
    /// Which ones.
    pub seed: u64,
}

impl Beam {
    /// A beam of this number of triggers.
    pub fn of(triggers: u64, first: u64, gaps: f64, seed: u64) -> Self {
        let all = Self { first, end: u64::MAX, gaps, seed };
        let last = (0..triggers).fold(None, |before, _| all.next(before.map_or(first, |before: u64| before + 1)));
        Self { end: last.map_or(first, |last| last + 1), ..all }
    }

    /// Whether there is a trigger with this number.
    pub fn has(&self, number: u64) -> bool {
        (self.first..self.end).contains(&number) && unit_of_event(EventId(number), self.seed) >= self.gaps
    }

    /// The number of the first trigger that has not a smaller one than this.
    pub fn next(&self, from: u64) -> Option<u64> {
        (from.max(self.first)..self.end).find(|number| self.has(*number))
    }
}

/// A source that sends by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The read-out system that has its link; of a level-1 processor, level 1.
    pub ros: NodeId,
    /// The link.
    pub rob: u16,
    /// Whether its fragments are the triggers. One source leads.
    pub leads: bool,
    /// Whether its link goes one by one, if it leads: each fragment turns that off.
    pub one_by_one: bool,
    /// When it sends.
    pub rhythm: Rhythm,
    /// What it says of a fragment.
    pub says: Says,
    /// Where its times lie beside those of triggers, if it says times or counts alone.
    pub telling: Telling,
    /// How it cuts time, if it sends chunks of that. It sends each when that is over, or so long after as its rhythm says.
    pub chunking: Option<Chunking>,
    /// What its link takes in each direction.
    pub latency: Duration,
    /// In what it misbehaves.
    pub habits: Habits,
}

impl Source {
    /// Whether its data belong to events by their times or counts.
    pub fn is_matched(&self) -> bool {
        self.chunking.is_none() && matches!(self.says, Says::Time | Says::Count(_))
    }

    /// Its count of the trigger with this number. The first trigger of all has the number `first`.
    pub(super) fn count(&self, number: u64, first: u64) -> u64 {
        let Says::Count(begin) = self.says else { return 0 };
        number.saturating_sub(first).saturating_add_signed(begin)
    }

    /// The number of the first trigger that it has data of, if this is the first of all.
    pub(super) fn begins_with(&self, first: u64) -> u64 {
        match self.says {
            Says::Count(count) if count < 0 => first.saturating_add(count.unsigned_abs()),
            _ => first,
        }
    }
}

/// When a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rhythm {
    /// On its own: a fragment after each such interval, which varies up to twice.
    Alone(Duration),
    /// It looks so long behind a trigger of the leading source, and sends what there is by then.
    Behind(Duration),
    /// Each fragment so long after its trigger, or after the end of its chunk.
    After(Duration),
}

/// What a source says of a fragment. A time is that of the trigger, in ns by the clock of the world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Says {
    /// The number of its trigger.
    #[default]
    Number,
    /// Number and time.
    NumberAndTime,
    /// The time. It counts what it has sent.
    Time,
    /// The time, and which trigger it is, counted from this number on; in a beam without gaps. It sends none with a number below 0.
    Count(i64),
}

/// How the times of a source are beside those of triggers. By default its data are instants, at the times of the triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    /// Its data begin at most so far before their trigger, or behind it.
    pub spread: Duration,
    /// How long its data last.
    pub lasts: Duration,
    /// How far its clock is ahead at the first trigger, in ns.
    pub ahead_ns: i64,
    /// How much faster that goes from then on, in 10⁻⁹.
    pub drift: i64,
}

impl Telling {
    /// What its clock says at a time, where that of the first trigger was `first_ns`.
    pub fn says(&self, time_ns: u64, first_ns: u64) -> u64 {
        let gained = i128::from(time_ns.saturating_sub(first_ns)) * i128::from(self.drift) / 1_000_000_000;
        time_ns.saturating_add_signed(self.ahead_ns).saturating_add_signed(gained as i64)
    }
}

/// How a source cuts time into chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunking {
    /// What its clock says at the begin of the world, in ns.
    pub zero_ns: u64,
    /// From the begin of a chunk to that of the next.
    pub every: Duration,
    /// How long a chunk lasts: longer where chunks overlap, shorter where there is time between them.
    pub lasts: Duration,
    /// The source ends so long after it was first told to send.
    pub until: Duration,
    /// From this time of the world on its clock is off by so many ns.
    pub step: Option<(Duration, i64)>,
}

impl Chunking {
    /// From when to when the chunk of this number is, by the clock of the source.
    pub fn interval(&self, number: u64) -> Interval {
        let begin = ns(self.every).saturating_mul(number);
        let off = self.step.filter(|(from, _)| ns(*from) <= begin).map_or(0, |(_, off)| off);
        let begin = begin.saturating_add(self.zero_ns).saturating_add_signed(off);
        Interval::new(begin, begin.saturating_add(ns(self.lasts)))
    }

    /// When it is over and can be sent, in ns from the begin of the world.
    pub(super) fn over_ns(&self, number: u64) -> u64 {
        ns(self.every).saturating_mul(number).saturating_add(ns(self.every.max(self.lasts)))
    }

    /// The first chunk that is over later than this.
    pub(super) fn at(&self, since_begin_ns: u64) -> u64 {
        since_begin_ns.saturating_sub(ns(self.lasts)) / ns(self.every).max(1)
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// In what a source misbehaves: how often it does so for a fragment, from 0 to 1, or when. The default is a good one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Habits {
    /// It sends the next fragment first.
    pub swaps: f64,
    /// It sends the fragment twice.
    pub doubles: f64,
    /// The fragment is damaged.
    pub damages: f64,
    /// It sends a fragment with a number far from all others.
    pub runs_wild: f64,
    /// It sends a fragment with a number a little below the others.
    pub goes_back: f64,
    /// It does not send the fragment.
    pub leaves_out: f64,
    /// It sends a fragment that belongs to no trigger.
    pub invents: f64,
    /// It says that nothing older follows.
    pub idles: f64,
    /// It waits before it sends.
    pub hesitates: f64,
    /// So long.
    pub hesitation: Duration,
    /// It sends nothing but its end.
    pub is_silent: bool,
    /// It sends although it was told not to.
    pub is_deaf: bool,
    /// It does not say that it has ended.
    pub never_ends: bool,
    /// It comes so long after the applications.
    pub late: Duration,
    /// It dies at these times of the run, and is away so long, or for good.
    pub deaths: Vec<(Duration, Option<Duration>)>,
    /// When it returns it begins with the first number again.
    pub begins_anew: bool,
    /// When it returns it has nothing of what came while it was away.
    pub misses: bool,
}

impl Habits {
    /// Whether it does nothing amiss.
    pub fn are_good(&self) -> bool {
        *self == Self { idles: self.idles, late: self.late, ..Self::default() }
    }
}

/// What a read-out system was handed of a source that sends chunks, or heard of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// A chunk.
    Chunk {
        /// Its time, as the source says; none if it says none.
        time: Interval,
        /// Its place among all that the source has sent, or its count, if the source counts triggers.
        place: u64,
        /// Whether it is damaged.
        is_damaged: bool,
    },
    /// That nothing that begins before follows.
    Passed(u64),
    /// That the source is there.
    Up,
    /// That it is not.
    Down,
    /// That it has ended.
    Ended,
    /// That this event is issued. A slice is made then.
    Made(EventId),
    /// That none up to this one will be made any more.
    LeftOut(EventId),
    /// Nothing: a new life begins, which has nothing of what was handed before.
    Life,
}

/// What a source has done, and what its read-out system was handed of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doings {
    /// Fragments that it sent.
    pub sent: u64,
    /// Of those in the order of triggers, the doubled ones, and so on: how often it did what it has the habit of.
    pub swapped: u64,
    /// Fragments sent twice.
    pub doubled: u64,
    /// Damaged ones.
    pub damaged: u64,
    /// Wild numbers.
    pub wild: u64,
    /// Numbers that went back.
    pub back: u64,
    /// Triggers left out.
    pub left_out: u64,
    /// Fragments of no trigger.
    pub invented: u64,
    /// Idle marks.
    pub idle: u64,
    /// Waits.
    pub hesitated: u64,
    /// Fragments sent although it was told not to.
    pub unasked: u64,
    /// How often it was told not to send.
    pub turned_off: u64,
    /// How often it had to wait because its link was full.
    pub blocked: u64,
    /// Its deaths.
    pub died: u64,
    /// Its returns.
    pub returned: u64,
    /// How often it was told to stop and did not say that it has ended.
    pub unended: u64,
    /// What read-out systems were handed of a source that sends chunks, in order, and what these heard of events; kept with checks
    /// only.
    pub chunks: Vec<Handed>,
    /// Of the leading source, the times of its triggers by their numbers, as it says them; kept with checks only.
    pub told: BTreeMap<u64, u64>,
    /// Numbers of the fragments that the present life of its read-out system was handed, in order; kept with checks only.
    pub handed: Vec<u64>,
    /// Fragments among them that were damaged.
    pub handed_damaged: u64,
    /// What it said at its ends to this life to have sent.
    pub announced: u64,
    /// Connections to this life.
    pub connected: u64,
    /// Whether events had been issued when it first came; known with checks only.
    pub was_not_awaited: bool,
    /// Whether it has a connection.
    pub is_there: bool,
    /// Whether it has said that it has ended, on this connection, and its read-out system has heard that.
    pub has_ended: bool,
}
