//! The books of sources whose data belong to triggers by time or count: computed anew, since how events get their data is under test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::ids::EventId;
use configuration::OnMissing;
use dataflow::readout::fragment::status;
use dataflow::report::{LinkClock, LinkState, RosCounters};
use simulator::world::{Doings, Handed, Outcomes, Source, Telling};
use timing::Interval;
use timing::clock::{BLOCK, FITTED_AFTER};

use super::Failures;
use super::drawn::{ByTime, Drawn, Matched, OwnClock};
use super::matched::MatchedFragment;
use super::outside::Seen;
use super::plan::Plan;

/// Each event has of its sources what belongs to it, or says that it may not be all. What sources sent is in one place of the books.
pub(super) fn check((plan, outcomes, seen): (&Plan, &Outcomes, &Seen), failures: &mut Failures) {
    if plan.matching().is_none() {
        return;
    }
    let drawn = plan.sources();
    let all = || drawn.iter().zip(&outcomes.setup.detectors.each).zip(&outcomes.sources);
    let told = all().find(|((drawn, _), _)| drawn.leads).map(|(_, doings)| &doings.told);
    let triggers = Triggers {
        ordinals: outcomes.issued.iter().map(|(ordinal, event)| (*event, *ordinal)).collect(),
        times: told.expect("a source leads"),
    };
    for ((drawn, source), doings) in all() {
        let Some(matched) = drawn.matched else { continue };
        let link = Link { plan, outcomes, seen, triggers: &triggers, drawn, matched, source, doings };
        failures
            .extend(link.failures().into_iter().map(|what| format!("{:?}, link {}: {what}", source.ros, source.rob)));
    }
}

/// The triggers of the run, as they were.
struct Triggers<'a> {
    ordinals: BTreeMap<EventId, u64>,
    times: &'a BTreeMap<u64, u64>,
}

impl Triggers<'_> {
    fn first(&self) -> u64 {
        self.times.values().next().copied().unwrap_or(0)
    }

    /// By when clocks are known, from the first trigger on.
    fn known_after(&self) -> u64 {
        self.times.values().nth(KNOWN_AFTER).or(self.times.values().next_back()).map_or(0, |time| time - self.first())
    }

    /// How much longer a clock has to be followed without a trigger than it is known for, at most.
    fn stretch(&self) -> f64 {
        let times: Vec<u64> = self.times.values().copied().collect();
        // A pause within the last block that it takes to be known stretches its line, too.
        let pauses = times.windows(2).skip(FITTED_AFTER - BLOCK);
        let stretches = pauses.map(|pair| (pair[1] - pair[0]) as f64 / (pair[0] - times[0]).max(1) as f64);
        stretches.fold(0.0, f64::max)
    }
}

struct Link<'a> {
    plan: &'a Plan,
    outcomes: &'a Outcomes,
    seen: &'a Seen,
    triggers: &'a Triggers<'a>,
    drawn: &'a Drawn,
    matched: Matched,
    source: &'a Source,
    doings: &'a Doings,
}

/// A chunk that the read-out system was handed.
struct Came {
    /// Where it is, as the source says; none if it is nowhere.
    at: Interval,
    place: u64,
    is_damaged: bool,
}

impl Link<'_> {
    fn failures(&self) -> Failures {
        let mut failures = Failures::new();
        let books = Books::new(self);
        for event in &self.seen.matched {
            let found = event.fragments.iter().find(|fragment| fragment.rob == books.rob);
            let window = self.window(event.event);
            let mut fail =
                |what: &str| failures.push(format!("{} {what}: {found:?}, is to take {window:?}", event.event));
            match found {
                Some(found) => self.fragment(event.event, found, &books, &mut fail),
                None if self.is_sure() => fail("lacks data of a source that does nothing amiss"),
                None => {}
            }
            let is_flagged = event.missing.contains(&books.rob);
            if is_flagged == found.is_some() && !(found.is_none() && self.drawn.is_tolerated()) {
                fail("has a fragment, or it is flagged as missing");
            }
        }
        let report = self.outcomes.ending.reports.get(&self.source.ros);
        if let Some(report) = report.filter(|_| !is_cut_short(self.plan, self.outcomes) && books.is_one_life) {
            let link = report.links[usize::from(self.source.rob)];
            self.counts(&books, &link.counters, link.state, &mut failures);
            failures.extend(link.clock.and_then(|clock| self.clock_is_another(&clock)));
        }
        failures
    }

    /// What an event has of the source.
    fn fragment(&self, event: EventId, found: &MatchedFragment, books: &Books, fail: &mut impl FnMut(&str)) {
        let expected = self.window(event);
        match expected {
            None => return fail("has data, though nobody knows when it was"),
            Some(window) if found.window.begin.abs_diff(window.begin) > self.slack() => fail("has another window"),
            Some(window) if found.window.end.abs_diff(window.end) > self.slack() => fail("has another window"),
            Some(_) => {}
        }
        let window = found.window;
        let its = |came: &&Came| self.belongs(came.at, window);
        let places: BTreeSet<u64> = found.chunks.iter().map(|chunk| chunk.place).collect();
        let are_its = |place: &u64| books.came.iter().filter(its).any(|came| came.place == *place);
        if !places.iter().all(are_its) {
            fail("has data that do not belong to it");
        }
        if self.clock() == OwnClock::Common && self.by_time().is_some() {
            let are_true = found.chunks.iter().all(|chunk| self.belongs(self.said(chunk.truth), window));
            if !are_true {
                fail("has data of another time");
            }
        }
        if found.status & status::TIMEOUT != 0 && self.drawn.is_whole_or_missing() {
            fail("may not be all, and is not missing");
        }
        if found.status & status::TIMEOUT != 0 && books.is_one_life && self.is_there_to_the_end() {
            fail("did not wait for its source");
        }
        let most = self.by_time().map_or(1, |time| time.most as usize);
        let is_cut = found.chunks.len() == most;
        let (is_whole, is_bad) = (found.status & status::TIMEOUT == 0, found.status & status::TRUNCATED != 0);
        let damaged = |is: bool| books.came.iter().any(|came| places.contains(&came.place) && came.is_damaged == is);
        // Of data that say the same count, any may be there.
        if (damaged(true) && !damaged(false) && !is_bad) || (is_bad && !damaged(true) && !is_cut) {
            fail("is damaged, or not");
        }
        if found.chunks.len() > most {
            fail("has more data than are wanted");
        }
        if !books.is_one_life {
            return;
        }
        let at = self.triggers.times.get(&event.0);
        let at = at.filter(|_| self.clock() == OwnClock::Common && self.by_time().is_some());
        if is_whole && at.is_some_and(|at| books.was_gone(*at, ns(self.drawn.telling().spread))) {
            fail("is said to be whole, and its source was not there");
        }
        let passed = books.passed(window);
        if is_whole && passed.is_none() {
            fail("is said to be whole, and its source had not come so far");
        }
        let until = if self.is_sure() { Some(books.came.len()) } else { passed.filter(|_| is_whole) };
        let must_be = self.shrunk(window);
        let lacks = books.came[..until.unwrap_or(0)]
            .iter()
            .filter(|came| !must_be.is_none() && self.belongs(came.at, must_be))
            .any(|came| !places.contains(&came.place));
        if lacks && !(is_cut && is_bad) {
            fail("lacks data that had come, and does not say so");
        }
        if self.is_sure() && found.chunks.is_empty() {
            fail("has nothing of a source that does nothing amiss");
        }
    }

    /// Whether events wait for the source, and it is there until it has ended.
    fn is_there_to_the_end(&self) -> bool {
        let habits = &self.drawn.habits;
        self.drawn.on_missing == OnMissing::Wait
            && habits.deaths.is_empty()
            && !habits.never_ends
            && !is_cut_short(self.plan, self.outcomes)
    }

    /// What an event takes, by the clock of the source, as it is known.
    fn window(&self, event: EventId) -> Option<Interval> {
        let ordinal = *self.triggers.ordinals.get(&event)?;
        match self.matched {
            Matched::Count(_) => Some(Interval { begin: ordinal, end: ordinal + 1 }),
            Matched::Time(time) => {
                let at = *self.triggers.times.get(&event.0)?;
                let at = self.said(Interval { begin: at, end: at + 1 });
                Some(Interval { begin: at.begin.saturating_sub(ns(time.before)), end: at.end + ns(time.after) })
            }
        }
    }

    /// Where the source has a time, with what the configuration adds.
    fn said(&self, time: Interval) -> Interval {
        let Some(ByTime { telling, clock, .. }) = self.by_time() else { return time };
        let first = self.triggers.first();
        let added = if clock == OwnClock::Sought { 0 } else { -telling.ahead_ns };
        let said = |at| telling.says(at, first).saturating_add_signed(added);
        let (begin, end) = (said(time.begin), said(time.end));
        Interval { begin, end: end.max(begin + 1) }
    }

    fn belongs(&self, at: Interval, window: Interval) -> bool {
        match self.by_time() {
            _ if at.is_none() => false,
            Some(ByTime { is_exclusive: true, .. }) => window.begin <= at.begin && at.end <= window.end,
            _ => at.begin < window.end && window.begin < at.end,
        }
    }

    /// What an event takes surely, however its source's clock was known meanwhile.
    fn shrunk(&self, window: Interval) -> Interval {
        Interval { begin: window.begin + self.slack(), end: window.end.saturating_sub(self.slack()) }
    }

    /// Whether its read-out system had one life only.
    fn is_one_life(&self) -> bool {
        let Outcomes { ending, touched, .. } = self.outcomes;
        !touched.contains(&self.source.ros) && !ending.dead.contains(&self.source.ros)
    }

    /// How far a clock may be from what is known of it.
    fn slack(&self) -> u64 {
        match self.by_time() {
            None => 0,
            Some(ByTime { clock: OwnClock::Common, .. }) => 0,
            // It may be found where it is not, by chance, and so may one that was lost.
            Some(ByTime { clock: OwnClock::Sought, .. }) => u64::MAX / 4,
            Some(_) if !self.drawn.habits.are_good() || !self.plan.leader_is_good() || !self.is_one_life() => {
                u64::MAX / 4
            }
            Some(time) => {
                // By its slope a clock is known for a while; until that is known it may not gain much.
                let lost = 8.0 * ns(time.telling.spread) as f64 * self.triggers.stretch();
                let begin = self.triggers.known_after() as f64 * time.telling.drift.unsigned_abs() as f64 / 1e9;
                let is_followed = (lost + begin) * 2.0 < ns(time.before.min(time.after)) as f64;
                let known = 4 * ns(time.telling.spread) + FITTED_WITHIN;
                if is_followed { self.gained().unsigned_abs() + known + lost as u64 } else { u64::MAX / 4 }
            }
        }
    }

    /// What its clock has gained by the last trigger, in ns.
    fn gained(&self) -> i64 {
        let telling = Telling { ahead_ns: 0, ..self.drawn.telling() };
        let last = self.triggers.times.values().next_back().copied().unwrap_or(0);
        telling.says(last, self.triggers.first()).wrapping_sub(last).cast_signed()
    }

    /// What is known of the clock of a source that does nothing amiss is how it goes, and that it has not slipped.
    fn clock_is_another(&self, found: &LinkClock) -> Option<String> {
        // A trigger that is lost with the read-out system of the leader is counted.
        let is_lost = |(ordinal, event): (&u64, &EventId)| event.0.wrapping_sub(*ordinal) != self.plan.triggers.first;
        let counts_wrong = self.by_time().is_none() && self.outcomes.issued.iter().any(is_lost);
        if !self.drawn.habits.are_good() || !self.plan.leader_is_good() || counts_wrong {
            return None;
        }
        let telling = self.drawn.telling();
        let ahead = if self.by_time().is_some() { 0 } else { telling.ahead_ns };
        let (one, other) = (ahead, ahead + self.gained());
        if self.slack() > u64::MAX / 8 {
            return None;
        }
        let within = (4 * ns(telling.spread) + FITTED_WITHIN) as i64;
        let is_so = (one.min(other) - within..=one.max(other) + within).contains(&found.offset_ns);
        (!is_so || found.slips > 0).then(|| format!("its clock is ahead from {one} to {other} ns: {found:?}"))
    }

    fn clock(&self) -> OwnClock {
        self.by_time().map_or(OwnClock::Common, |time| time.clock)
    }

    fn by_time(&self) -> Option<ByTime> {
        self.drawn.by_time()
    }

    /// Whether nothing excuses an event without its data.
    fn is_sure(&self) -> bool {
        self.plan.is_healthy() && self.plan.waits_for_pages() && !is_cut_short(self.plan, self.outcomes)
    }

    fn counts(&self, books: &Books, c: &RosCounters, state: LinkState, failures: &mut Failures) {
        let mut holds = |holds: bool, what: &str| {
            if !holds {
                failures.push(format!("{what}: {} came, {} of them wild: {c:?}", books.came.len(), books.wild));
            }
        };
        holds(c.fragments_in == books.came.len() as u64, "chunks");
        holds(c.flagged == self.doings.handed_damaged, "damaged ones");
        holds(c.announced == self.doings.announced, "announced ones");
        holds(self.doings.has_ended == (state == LinkState::Ended), "its end");
        holds(c.dropped_unplaced == books.wild, "wild ones");
        let freed = c.cleared + c.garbage_collected;
        let dropped = c.dropped_unplaced + c.dropped_old + c.dropped_duplicate + c.dropped_cleared + c.dropped_full;
        let gone = freed + c.never_triggered + dropped;
        holds(c.fragments_in == gone + c.resident && c.resident == 0, "every chunk in one place, and none left");
        let its = || self.seen.matched.iter().flat_map(|event| &event.fragments).filter(|found| found.rob == books.rob);
        let used: BTreeSet<u64> = its().flat_map(|found| &found.chunks).map(|chunk| chunk.place).collect();
        holds(used.len() as u64 <= freed, "chunks in events");
        let late = self.seen.matched.iter().filter(|event| {
            event.fragments.iter().any(|found| found.rob == books.rob && found.status & status::TIMEOUT != 0)
        });
        let late: BTreeSet<EventId> = late.map(|event| event.event).collect();
        // Others may be marked because the source was gone.
        let is_known = c.sources_lost == 0;
        holds(!is_known || late.len() as u64 <= c.unpassed, "events that were made before the source had passed them");
        holds(c.unpassed > 0 || c.dropped_old + c.late_in_part == 0, "data are late, and no event was made before");
        if self.clock() == OwnClock::Common {
            let windows: Vec<Interval> =
                self.triggers.ordinals.keys().filter_map(|event| self.window(*event)).collect();
            let is_of_any = |came: &&Came| windows.iter().any(|window| self.belongs(came.at, *window));
            let most = books.came.iter().filter(is_of_any).count() as u64;
            holds(freed <= most, "chunks that belong to events");
        }
    }
}

/// What the read-out system was handed.
struct Books {
    rob: u32,
    came: Vec<Came>,
    /// How many had come when the source had passed this, rising.
    watermarks: Vec<(u64, usize)>,
    /// When the source was gone: from what it had told to what it told first when it was back.
    gone: Vec<(u64, Option<u64>)>,
    /// How many had come when it had first ended.
    ended: Option<usize>,
    wild: u64,
    /// Whether the read-out system had one life only.
    is_one_life: bool,
}

impl Books {
    fn new(link: &Link<'_>) -> Self {
        let Link { plan, drawn, doings, .. } = link;
        let rob = plan.robs(drawn.ros)[usize::from(drawn.rob)];
        let is_one_life = link.is_one_life();
        let mut books =
            Self { rob, came: Vec::new(), watermarks: Vec::new(), gone: Vec::new(), ended: None, wild: 0, is_one_life };
        let zero = plan.matching().map_or(0, |matching| matching.zero_ns);
        let added = drawn.by_time().filter(|time| time.clock != OwnClock::Sought);
        let added = added.map_or(0, |time| -time.telling.ahead_ns);
        for handed in &doings.chunks {
            match *handed {
                Handed::Chunk { time, place, is_damaged } => {
                    let at = match link.matched {
                        Matched::Time(_) if time.is_none() => time,
                        Matched::Time(_) => Interval {
                            begin: time.begin.saturating_add_signed(added),
                            end: time.end.saturating_add_signed(added),
                        },
                        Matched::Count(count) => {
                            let begin = place.saturating_sub(count.first.into());
                            Interval { begin, end: begin + 1 }
                        }
                    };
                    let is_wild = match link.matched {
                        Matched::Time(_) => at.begin.abs_diff(zero) > 1 << 42,
                        Matched::Count(_) => at.begin > 1 << 30,
                    };
                    let is_wild = is_wild || at.is_none();
                    let at = if is_wild { Interval::default() } else { at };
                    books.wild += u64::from(is_wild);
                    books.came.push(Came { at, place, is_damaged });
                    if !is_wild {
                        books.pass(if link.by_time().is_some() { at.begin } else { at.end });
                    }
                }
                Handed::Passed(time) => {
                    let first = if let Matched::Count(count) = link.matched { u64::from(count.first) } else { 0 };
                    books.pass(time.saturating_add_signed(added).saturating_sub(first));
                }
                Handed::Down if drawn.habits.misses => {
                    books.gone.extend(books.watermarks.last().map(|(from, _)| (*from, None)));
                }
                Handed::Ended => _ = books.ended.get_or_insert(books.came.len()),
                _ => {}
            }
        }
        books
    }

    fn pass(&mut self, to: u64) {
        self.gone.iter_mut().for_each(|(_, back)| _ = back.get_or_insert(to));
        if self.watermarks.last().is_none_or(|(before, _)| *before < to) {
            self.watermarks.push((to, self.came.len()));
        }
    }

    /// Whether the source has nothing of a trigger at this time, since it was gone.
    fn was_gone(&self, at: u64, spread: u64) -> bool {
        self.gone.iter().any(|(from, back)| from + spread < at && back.is_none_or(|back| at + spread < back))
    }

    /// How many had come when the source had passed a window, or ended.
    fn passed(&self, window: Interval) -> Option<usize> {
        let at = self.watermarks.partition_point(|(to, _)| *to < window.end);
        let passed = self.watermarks.get(at).map(|(_, came)| *came);
        passed.into_iter().chain(self.ended).min()
    }
}

/// Not everything has come to its end.
fn is_cut_short(plan: &Plan, outcomes: &Outcomes) -> bool {
    let Outcomes { ending, forced, .. } = outcomes;
    *forced || ending.forced || !ending.dead.is_empty() || plan.is_hindered()
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// After so many triggers it is known, though some lack data by chance.
const KNOWN_AFTER: usize = 80;
/// So well it is known, besides what it has gained and how its data are spread.
const FITTED_WITHIN: u64 = 1_000;
