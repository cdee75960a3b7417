//! Partitions whose links push: sources, one of which leads, and in what they misbehave.

use std::time::Duration;

use base::ids::Role;
use base::random::Random;
use dataflow::level1::pace::Spacing;
use dataflow::readout::ros::LinksParameters;

use super::plan::Plan;
use crate::world::{Beam, Detectors, Habits, Links, Rhythm, Source};

/// Sources that send by themselves.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The fraction of numbers that no trigger has.
    pub gaps: f64,
    /// Triggers that the leading source has beyond those of the run: only with a limit.
    pub more: u64,
    /// The sources. Those of links that a smaller plan has not are left out, and then the first may have to lead.
    pub each: Vec<Drawn>,
}

/// A drawn source.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The place of its read-out system among all.
    pub ros: usize,
    /// Its link.
    pub rob: u16,
    /// Whether its fragments are the triggers.
    pub leads: bool,
    /// When it sends.
    pub rhythm: Rhythm,
    /// What its link takes.
    pub latency: Duration,
    /// Its fragments may come in any order, which no configuration says.
    pub is_unordered: bool,
    /// An event is complete without its fragment.
    pub is_tolerated: bool,
    /// In what it misbehaves.
    pub habits: Habits,
}

impl Plan {
    /// Read-out links push, and their sources misbehave, if anything goes wrong at all.
    pub(super) fn draw_sources(&mut self, level: u32, r: &mut Random) {
        (self.credit, self.spacing) = (None, Spacing::Unlimited);
        self.profile.clear();
        self.fragment_faults = Links::perfect();
        self.limited = r.chance(0.7);
        if r.chance(0.5) {
            // Else they join, as in all newer editions.
            self.joins = None;
        }
        let misbehave = level > 0 && r.chance(if level >= 4 { 0.5 } else { 0.8 });
        let leader = r.below(u64::from(self.counts.ros * self.robs_per_ros)) as usize;
        let mut each = Vec::new();
        for ros in 0..usize::from(self.counts.ros) {
            for rob in 0..self.robs_per_ros {
                let leads = each.len() == leader;
                let latest_us = if r.chance(0.8) { 50 } else { 1_000 };
                let latency_us = 1 + r.below(latest_us);
                let drawn = Drawn {
                    ros,
                    rob,
                    leads,
                    rhythm: self.draw_rhythm(r, leads),
                    latency: Duration::from_micros(latency_us),
                    is_unordered: !self.is_lawful && r.chance(0.3),
                    is_tolerated: r.chance(0.15),
                    habits: Habits {
                        idles: if r.chance(0.3) { 0.3 * r.unit() } else { 0.0 },
                        late: Duration::from_micros(if r.chance(0.2) { r.below(20_000) } else { 0 }),
                        ..Habits::default()
                    },
                };
                each.push(drawn);
            }
        }
        if misbehave {
            each.iter_mut().for_each(|drawn| drawn.misbehave(r));
        }
        let is_endless = |Drawn { leads, habits, .. }: &Drawn| {
            let dies = habits.deaths.iter().any(|(_, away)| away.is_none());
            dies || *leads && (habits.is_silent || habits.never_ends)
        };
        if each.iter().any(is_endless) {
            // A run may wait for ever for a source to come, or for its triggers.
            self.duration.get_or_insert(Duration::from_millis(1 + r.below(80)));
        }
        let more = if self.limited { r.below(8) } else { 0 };
        self.sending = Some(Sending { gaps: [0.0, 0.0, 0.2, 0.7][r.below(4) as usize], more, each });
    }

    /// Who does not lead comes behind the leader, or runs ahead as far as its link lets it.
    fn draw_rhythm(&self, r: &mut Random, leads: bool) -> Rhythm {
        let fast_us = 1 + r.below(20);
        if leads {
            return Rhythm::Alone(Duration::from_micros(if r.chance(0.3) { fast_us } else { 1 + r.below(400) }));
        }
        if r.chance(0.3) {
            return Rhythm::Alone(Duration::from_micros(fast_us));
        }
        let longest = self.fine.readout_timeout.min(Duration::from_millis(4)) / 4;
        Rhythm::Behind(longest.mul_f64(r.unit()))
    }

    /// The sources of the links that there are. One of them leads.
    pub(super) fn sources(&self) -> Vec<Drawn> {
        let Some(sending) = &self.sending else { return Vec::new() };
        let is_here = |drawn: &&Drawn| drawn.ros < usize::from(self.counts.ros) && drawn.rob < self.robs_per_ros;
        let mut each: Vec<Drawn> = sending.each.iter().filter(is_here).cloned().collect();
        if let Some(first) = each.first_mut().filter(|_| !sending.each.iter().filter(is_here).any(|drawn| drawn.leads))
        {
            first.leads = true;
            first.rhythm = Rhythm::Alone(Duration::from_micros(100));
        }
        each
    }

    /// What the world has of them.
    pub(super) fn detectors(&self) -> Detectors {
        let Some(sending) = &self.sending else { return Detectors::default() };
        let systems = self.of(Role::Ros);
        let source = |drawn: Drawn| Source {
            ros: systems[drawn.ros],
            rob: drawn.rob,
            leads: drawn.leads,
            rhythm: drawn.rhythm,
            latency: drawn.latency,
            habits: drawn.habits,
        };
        let above = (self.fine.busy.1 * self.pages as f64) as usize;
        Detectors {
            beam: Beam::of(self.events + sending.more, self.first, sending.gaps, self.seed),
            room: self.pages.saturating_sub(above).max(1),
            each: self.sources().into_iter().map(source).collect(),
        }
    }

    /// What no configuration can say of links.
    pub(super) fn depart_links(&self, ros: usize, links: &mut LinksParameters) {
        let own = self.sources().into_iter().filter(|drawn| drawn.ros == ros);
        own.zip(&mut links.each).for_each(|(drawn, link)| link.unordered = drawn.is_unordered);
    }

    /// Whether all sources send every fragment once, in order, in time, and to the end.
    pub(super) fn sources_are_good(&self) -> bool {
        self.sources().iter().all(Drawn::is_good)
    }

    pub(super) fn leader_is_good(&self) -> bool {
        self.sources().iter().all(|drawn| !drawn.leads || drawn.is_good())
    }

    /// After this time of the run no source does anything new.
    pub(super) fn sources_are_over_after(&self) -> Duration {
        let Some(sending) = &self.sending else { return Duration::ZERO };
        let triggers = u32::try_from(self.events + sending.more).expect("a short run");
        let over = |drawn: &Drawn| {
            let Habits { late, deaths, hesitation, .. } = &drawn.habits;
            let each = if let Rhythm::Alone(interval) = drawn.rhythm { interval * 4 } else { Duration::ZERO };
            let away = |(at, away): &(Duration, Option<Duration>)| *at + away.unwrap_or(GRACE).max(GRACE);
            let dead: Duration = deaths.iter().map(away).sum();
            *late + dead + (each + *hesitation * 2) * triggers
        };
        GRACE * 3 + self.sources().iter().map(over).sum::<Duration>()
    }

    /// What events take whose fragments do not come: each asks for them as often as it may.
    pub(super) fn waits_for_sources(&self) -> Duration {
        if self.sending.is_none() || self.sources_are_good() {
            return Duration::ZERO;
        }
        let asks = self.request_timeout.max(self.fine.readout_timeout) * (self.fine.retries + 2);
        let in_level2 = if self.has_level2() { self.l2_timeout + asks } else { Duration::ZERO };
        (asks + in_level2) * u32::try_from(self.events).expect("a short run")
    }
}

impl Drawn {
    /// Whether it does nothing amiss.
    fn is_good(&self) -> bool {
        let is_fast = |interval| interval <= Duration::from_micros(20);
        self.habits.are_good() && !matches!(self.rhythm, Rhythm::Alone(interval) if !self.leads && !is_fast(interval))
    }

    fn misbehave(&mut self, r: &mut Random) {
        let habits = &mut self.habits;
        let rarely = |r: &mut Random, often: f64| if r.chance(0.15) { often * r.unit() } else { 0.0 };
        habits.swaps = rarely(r, 0.5);
        habits.doubles = rarely(r, 0.5);
        habits.damages = rarely(r, 0.5);
        habits.runs_wild = rarely(r, 0.3);
        habits.goes_back = rarely(r, 0.3);
        habits.leaves_out = rarely(r, 1.0);
        habits.invents = rarely(r, 1.0);
        habits.hesitates = rarely(r, 0.2);
        let longest_us = if r.chance(0.7) { 5_000 } else { 100_000 };
        habits.hesitation = Duration::from_micros(1 + r.below(longest_us));
        habits.is_silent = r.chance(0.04);
        habits.is_deaf = r.chance(0.15);
        habits.never_ends = r.chance(0.08);
        habits.begins_anew = r.chance(0.3);
        let mut at = Duration::ZERO;
        for _ in 0..if r.chance(0.15) { 1 + r.below(3) } else { 0 } {
            at += Duration::from_micros(r.below(8_000));
            let away = Duration::from_micros(match r.below(3) {
                0 => 10 + r.below(500),
                1 => 10 + r.below(30_000),
                _ => 900_000 + r.below(700_000),
            });
            let returns = r.chance(0.75);
            habits.deaths.push((at, returns.then_some(away)));
            at += away;
        }
        if !self.leads && r.chance(0.1) {
            // Slower than the others.
            self.rhythm = Rhythm::Alone(Duration::from_micros(100 + r.below(3_000)));
        } else if !self.leads && r.chance(0.1) {
            self.rhythm = Rhythm::Behind(Duration::from_micros(r.below(200_000)));
        }
    }
}

/// Events do without a source that is away for longer.
const GRACE: Duration = Duration::from_secs(1);
