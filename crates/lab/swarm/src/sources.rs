//! Partitions whose links push: sources, one of which leads, and in what they misbehave.

use std::collections::BTreeSet;
use std::time::Duration;

use base::ids::Role;
use base::random::Random;
use configuration::{OnMissing, ProcessorLoss};
use dataflow::level1::pace::Spacing;
use dataflow::readout::ros::LinksParameters;

use super::drawn::{Drawn, Sending};
use super::plan::Plan;
use simulator::world::{Beam, Detectors, Habits, Links, Rhythm, Source};

impl Plan {
    /// Read-out links push, and their sources misbehave, if anything goes wrong at all.
    pub(super) fn draw_sources(&mut self, level: u32, r: &mut Random) {
        (self.triggers.credit, self.triggers.spacing) = (None, Spacing::Unlimited);
        self.triggers.profile.clear();
        self.readout.fragment_faults = Links::perfect();
        self.triggers.limited = r.chance(0.7);
        if r.chance(0.5) {
            // Else they join, as in all newer editions.
            self.course.joins = None;
        }
        let misbehave = level > 0 && r.chance(if level >= 4 { 0.5 } else { 0.8 });
        let leader = r.below(u64::from(self.counts.ros * self.readout.robs_per_ros)) as usize;
        let mut each = Vec::new();
        for ros in 0..usize::from(self.counts.ros) {
            for rob in 0..self.readout.robs_per_ros {
                let leads = each.len() == leader;
                let latest_us = if r.chance(0.8) { 50 } else { 1_000 };
                let latency_us = 1 + r.below(latest_us);
                let drawn = Drawn {
                    ros,
                    rob,
                    leads,
                    one_by_one: false,
                    rhythm: self.draw_rhythm(r, leads),
                    latency: Duration::from_micros(latency_us),
                    is_unordered: !self.is_lawful && r.chance(0.3),
                    on_missing: if r.chance(0.15) { OnMissing::Tolerate } else { OnMissing::Flag },
                    cut: None,
                    matched: None,
                    on_loss: ProcessorLoss::Stop,
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
            self.course.duration.get_or_insert(Duration::from_millis(1 + r.below(80)));
        }
        let more = if self.triggers.limited { r.below(8) } else { 0 };
        self.readout.sending =
            Some(Sending { gaps: [0.0, 0.0, 0.2, 0.7][r.below(4) as usize], more, each, slices: None, matching: None });
    }

    /// Triggers come one by one, and wait for some of the others.
    pub(super) fn draw_hand_shake(&mut self, r: &mut Random) {
        // Busy is that of one read-out system.
        self.is_lawful &= self.counts.ros == 1;
        for drawn in self.readout.sending.iter_mut().flat_map(|sending| &mut sending.each) {
            // A device that never answers holds up all.
            drawn.one_by_one = drawn.leads || (drawn.is_good() && r.chance(0.4));
        }
    }

    /// Events that lack some of the sources are dropped, or go to the debug stream.
    pub(super) fn draw_withheld(&mut self, r: &mut Random) {
        let is_filtered = self.is_filtered();
        let all = self.readout.sending.iter_mut().flat_map(|sending| &mut sending.each);
        for drawn in all.filter(|drawn| is_filtered && !drawn.leads && !drawn.is_tolerated()) {
            drawn.on_missing = [OnMissing::Flag, OnMissing::Drop, OnMissing::DebugStream][r.below(3) as usize];
        }
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
        let Some(sending) = &self.readout.sending else { return Vec::new() };
        let is_here =
            |drawn: &&Drawn| drawn.ros < usize::from(self.counts.ros) && drawn.rob < self.readout.robs_per_ros;
        let mut each: Vec<Drawn> = sending.each.iter().filter(is_here).cloned().collect();
        if self.triggers.credit.is_some() || sending.slices.is_some() {
            return each;
        }
        if let Some(first) = each.first_mut().filter(|_| !sending.each.iter().filter(is_here).any(|drawn| drawn.leads))
        {
            (first.leads, first.matched) = (true, None);
            first.rhythm = Rhythm::Alone(Duration::from_micros(100));
        }
        each
    }

    /// What the world has of them, and of level-1 processors.
    pub(super) fn detectors(&self) -> Detectors {
        let (gaps, more) = self
            .triggers
            .outside
            .as_ref()
            .or(self.readout.sending.as_ref())
            .map_or((0.0, 0), |all| (all.gaps, all.more));
        let (systems, level1) = (self.of(Role::Ros), self.of(Role::Level1));
        let source = |ros, drawn: Drawn| Source {
            ros,
            rob: drawn.rob,
            leads: drawn.leads,
            one_by_one: drawn.one_by_one,
            rhythm: drawn.rhythm,
            says: self.says(&drawn),
            telling: drawn.telling(),
            chunking: drawn.cut.map(|cut| cut.chunking),
            latency: drawn.latency,
            habits: drawn.habits,
        };
        let above = (self.fine.busy.1 * self.readout.pages as f64) as usize;
        let sources = self.sources().into_iter().map(|drawn| source(systems[drawn.ros], drawn));
        let processors = self.processors().into_iter().map(|drawn| source(level1[0], drawn));
        let each: Vec<Source> = sources.chain(processors).collect();
        // Where nobody looks at the beam it may have no end.
        if each.is_empty() {
            return Detectors::default();
        }
        Detectors {
            beam: Beam::of(self.triggers.events + more, self.triggers.first, gaps, self.seed),
            room: self.readout.pages.saturating_sub(above).max(1),
            clock_begins_ns: self.matching().map_or(0, |matching| matching.zero_ns),
            each,
        }
    }

    /// What no configuration can say of links.
    pub(super) fn depart_links(&self, ros: usize, links: &mut LinksParameters) {
        let own = self.sources().into_iter().filter(|drawn| drawn.ros == ros);
        own.zip(&mut links.each).for_each(|(drawn, link)| link.unordered = drawn.is_unordered);
    }

    /// Whether events that lack a source are withheld.
    pub(super) fn withholds(&self) -> bool {
        self.sources().iter().any(Drawn::is_whole_or_missing)
    }

    /// The buffers of such sources.
    pub(super) fn demanded_robs(&self) -> BTreeSet<u32> {
        let each = self.sources().into_iter().filter(Drawn::is_whole_or_missing);
        each.map(|drawn| self.robs(drawn.ros)[usize::from(drawn.rob)]).collect()
    }

    /// Whether all sources send every fragment once, in order, in time, and to the end.
    pub(super) fn sources_are_good(&self) -> bool {
        self.sources().iter().all(|drawn| drawn.is_good() && self.is_prompt(drawn)) && self.processors_are_good()
    }

    /// Whether all that make triggers do so.
    pub(super) fn leader_is_good(&self) -> bool {
        self.sources().iter().all(|drawn| !drawn.leads || drawn.is_good()) && self.processors_are_good()
    }

    /// After this time of the run no source does anything new.
    pub(super) fn sources_are_over_after(&self) -> Duration {
        let Some(all) = self.triggers.outside.as_ref().or(self.readout.sending.as_ref()) else { return Duration::ZERO };
        if let Some(slicing) = self.slicing() {
            return self.slices_are_over_after(&slicing);
        }
        let triggers = u32::try_from(self.triggers.events + all.more).expect("a short run");
        let over = |drawn: &Drawn| {
            let Habits { late, deaths, hesitation, .. } = &drawn.habits;
            let each = if let Rhythm::Alone(interval) = drawn.rhythm { interval * 4 } else { Duration::ZERO };
            let away = |(at, away): &(Duration, Option<Duration>)| *at + away.unwrap_or(GRACE).max(GRACE);
            let dead: Duration = deaths.iter().map(away).sum();
            *late + dead + (each + *hesitation * 2) * triggers
        };
        let of_hand_shakes =
            if self.sources().iter().any(|drawn| drawn.one_by_one) { HAND_SHAKE * triggers } else { Duration::ZERO };
        let in_grace = self.matching().map_or(Duration::ZERO, |matching| matching.grace * 4);
        in_grace
            + of_hand_shakes
            + GRACE * 3
            + self.sources().iter().chain(&self.processors()).map(over).sum::<Duration>()
    }

    /// What events take whose fragments do not come: each asks for them as often as it may.
    pub(super) fn waits_for_sources(&self) -> Duration {
        if self.readout.sending.is_none() || self.sources_are_good() {
            return Duration::ZERO;
        }
        let asks = self.building.request_timeout.max(self.fine.readout_timeout) * (self.fine.retries + 2);
        let in_level2 = if self.has_level2() { self.level2.timeout + asks } else { Duration::ZERO };
        (asks + in_level2) * u32::try_from(self.triggers.events).expect("a short run")
    }
}

/// What a trigger takes to level 1 and back, and the devices behind it, at most.
const HAND_SHAKE: Duration = Duration::from_millis(20);
/// Events do without a source that is away for longer.
pub(super) const GRACE: Duration = Duration::from_secs(1);
