//! Sources whose data belong to the triggers of a leader by time, or by count.

use std::time::Duration;

use base::ids::Role;
use base::random::Random;
use configuration::OnMissing;
use dataflow::readout::ros::LinksParameters;
use timing::rule::Axis;

use super::drawn::{ByCount, ByTime, Drawn, Matched, Matching, OwnClock};
use super::plan::Plan;
use simulator::world::{Planted, Rhythm, Says, Telling};

impl Plan {
    /// What holds of sources by time or count, if there are any.
    pub fn matching(&self) -> Option<Matching> {
        self.readout.sending.as_ref().and_then(|sending| sending.matching).filter(|_| self.triggers.credit.is_none())
    }

    /// Some of those that follow say no numbers. Their habits are drawn already.
    pub(super) fn draw_matches(&mut self, r: &mut Random) {
        let longest_ms = [2, 20, 60][r.below(3) as usize];
        let grace = micros(r, 500, longest_ms * 1_000);
        let zero_ns = [0, 1 << 40, 1_700_000_000_000_000_000][r.below(3) as usize] + r.below(1 << 20);
        let have_clocks = r.chance(0.3);
        let crashed = self.crashed_roles();
        // Without level 1, too, nothing follows what an event waits for.
        let crashes = crashed.iter().any(|role| matches!(role, Role::Ros | Role::Level1));
        let may_withhold = self.is_filtered();
        let Some(sending) = &mut self.readout.sending else { return };
        if let [leader] = &sending.each[..] {
            let (rob, rhythm) = (1, Rhythm::Behind(Duration::ZERO));
            let other = Drawn { rob, rhythm, leads: false, ..leader.clone() };
            sending.each.push(other);
            self.readout.robs_per_ros = 2;
        }
        let interval = sending.each.iter_mut().find(|drawn| drawn.leads).map(|leader| {
            if have_clocks {
                // Further apart than clocks are known.
                leader.rhythm = Rhythm::Alone(micros(r, 50, 300));
            }
            if let Rhythm::Alone(interval) = leader.rhythm { interval } else { Duration::ZERO }
        });
        let interval = interval.unwrap_or_default();
        for drawn in sending.each.iter_mut().filter(|drawn| !drawn.leads) {
            drawn.matched = match r.below(10) {
                0 => None,
                1..=6 => Some(Matched::Time(by_time(r, interval, zero_ns, have_clocks))),
                _ => Some(Matched::Count(by_count(r, have_clocks))),
            };
            drawn.is_unordered &= drawn.matched.is_none();
            drawn.habits.misses = drawn.matched.is_some() && !drawn.habits.deaths.is_empty() && r.chance(0.5);
            // Who says the time of a trigger has seen it.
            if drawn.by_time().is_some() && matches!(drawn.rhythm, Rhythm::Alone(_)) {
                drawn.rhythm = Rhythm::Behind(micros(r, 0, 500));
            }
        }
        let runs_wild = |drawn: &Drawn| drawn.leads && drawn.habits.runs_wild > 0.0;
        let loses_fragments = crashes || sending.each.iter().any(runs_wild);
        let policies: &[OnMissing] =
            if may_withhold { &[OnMissing::Wait, OnMissing::Drop, OnMissing::DebugStream] } else { &[OnMissing::Wait] };
        for drawn in sending.each.iter_mut().filter(|drawn| !drawn.leads && !drawn.is_tolerated()) {
            if r.chance(0.4) {
                drawn.on_missing = policies[r.below(policies.len() as u64) as usize];
            }
            // An event waits for a source that lives and says nothing until the run is forced to end.
            let sends_all = drawn.is_good() && !drawn.is_unordered && drawn.by_time().is_none();
            if drawn.on_missing == OnMissing::Wait && (loses_fragments || !sends_all) {
                drawn.on_missing = OnMissing::Flag;
            }
        }
        if sending.each.iter().any(|drawn| drawn.on_missing == OnMissing::Wait) {
            // A port that holds no answer would be asked for ever.
            self.building.port = None;
        }
        if sending.each.iter().any(|drawn| matches!(drawn.matched, Some(Matched::Count(_)))) {
            sending.gaps = 0.0;
        }
        if sending.each.iter().any(Drawn::has_clock) {
            // A clock is known after 64.
            self.triggers.events = 80 + r.below(120);
        }
        sending.matching = Some(Matching { grace, zero_ns });
    }

    /// What a source says of its fragments.
    pub(super) fn says(&self, drawn: &Drawn) -> Says {
        match drawn.matched {
            _ if self.matching().is_none() => Says::Number,
            None => Says::NumberAndTime,
            Some(Matched::Time(_)) => Says::Time,
            Some(Matched::Count(count)) => Says::Count(count.first.into()),
        }
    }

    /// Whether its data are there before their events are made without them.
    pub(super) fn is_prompt(&self, drawn: &Drawn) -> bool {
        let Some(Matching { grace, .. }) = self.matching().filter(|_| drawn.matched.is_some()) else { return true };
        // The last event waits for what follows. Who may not be all is missing.
        if drawn.by_time().is_some() && drawn.is_whole_or_missing() {
            return false;
        }
        let behind =
            if let Rhythm::Behind(delay) | Rhythm::After(delay) = drawn.rhythm { delay } else { Duration::ZERO };
        behind + drawn.latency * 4 + self.network.service * INPUTS_BEFORE + SLACK < grace
    }

    /// Whether there is room for all that sources by time or count send.
    pub(super) fn never_turns_off_matched(&self) -> bool {
        let Some(sending) = self.readout.sending.as_ref().filter(|_| self.matching().is_some()) else { return true };
        let above = self.fine.busy.1 * self.readout.pages as f64;
        self.triggers.events + sending.more < above as u64
    }

    /// Whether requests wait for as long as events do for sources by time or count.
    pub(super) fn waits_for_matched(&self) -> bool {
        let waits = self.fine.readout_timeout.min(self.building.request_timeout) * (self.fine.retries + 1);
        self.matching().is_none_or(|matching| matching.grace * 2 < waits) && self.never_turns_off_matched()
    }

    pub(super) fn plant_in_links(&self, links: &mut LinksParameters) {
        for timed in links.each.iter_mut().filter_map(|link| link.timed.as_mut()) {
            match (self.planted, timed.rule.axis) {
                (Some(Planted::WideWindows), Axis::Time) => timed.rule.after += 1,
                (Some(Planted::ShiftedCounts), Axis::Count) => timed.rule.offset += 1,
                _ => {}
            }
        }
    }
}

fn by_count(r: &mut Random, have_clocks: bool) -> ByCount {
    let first = if r.chance(0.5) { 0 } else { r.below(1_000) as u32 };
    let has_clock = have_clocks && r.chance(0.5);
    let off = if has_clock { r.below(1 << 30) as i64 } else { 0 };
    let drift = if has_clock { draw_drift(r) } else { 0 };
    ByCount { first, telling: Telling { ahead_ns: off, drift, ..Telling::default() }, has_clock }
}

/// Up to 100 ppm.
fn draw_drift(r: &mut Random) -> i64 {
    r.below(200_000) as i64 - 100_000
}

/// Data around a trigger, and a window in which they are, if the source does nothing amiss.
fn by_time(r: &mut Random, interval: Duration, zero_ns: u64, have_clocks: bool) -> ByTime {
    let reach = |r: &mut Random| match r.below(4) {
        0 => Duration::ZERO,
        1 => interval.mul_f64(3.0 * r.unit()),
        _ => micros(r, 0, 20),
    };
    let clock = match r.below(4) {
        0 | 1 if have_clocks => OwnClock::InStep,
        2 if have_clocks => OwnClock::Sought,
        _ => OwnClock::Common,
    };
    // What a clock gains before it is known.
    let least = if clock == OwnClock::Common { Duration::ZERO } else { Duration::from_micros(10) };
    let (before, after) = (reach(r).max(least), reach(r).max(least));
    let is_exclusive = clock == OwnClock::Common && r.chance(0.15);
    let spread = if r.chance(0.5) { before.min(after / 3).mul_f64(r.unit()) } else { Duration::ZERO };
    let spread = if clock == OwnClock::Common { spread } else { spread.min(least / 8) };
    let longest = if is_exclusive || r.chance(0.7) { after / 3 } else { interval * 2 };
    let lasts = longest.mul_f64(r.unit());
    let farthest = if clock == OwnClock::Sought { interval * 10 } else { Duration::from_secs(1) };
    let off = if r.chance(0.5) { farthest.mul_f64(r.unit()).as_nanos() as i64 } else { 0 };
    let ahead_ns = if zero_ns > 1 << 30 && r.chance(0.5) { -off } else { off };
    let drift = if clock == OwnClock::Common { 0 } else { draw_drift(r) };
    ByTime {
        before,
        after,
        most: if r.chance(0.2) { 1 + r.below(3) as u32 } else { 16 + r.below(100) as u32 },
        is_exclusive,
        telling: Telling { spread, lasts, ahead_ns, drift },
        clock,
    }
}

fn micros(r: &mut Random, low: u64, high: u64) -> Duration {
    Duration::from_nanos(1_000 * low + r.below(1_000 * (high - low)))
}

/// Of one application, while data are on their way.
const INPUTS_BEFORE: u32 = 300;
/// More than messages take, and passes.
const SLACK: Duration = Duration::from_millis(1);
