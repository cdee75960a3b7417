//! Level-1 processors outside, and in what they misbehave.

use std::time::Duration;

use base::random::Random;
use configuration as toml;
use dataflow::level1::pace::Spacing;

use super::drawn::{Drawn, Sending};
use super::plan::Plan;
use simulator::world::{Habits, Rhythm};

impl Plan {
    /// Triggers come from processors, where links push and where they are read out.
    pub(super) fn draw_processors(&mut self, level: u32, r: &mut Random) {
        if r.chance(0.5) {
            self.readout.sending = None;
        }
        self.draw_outside(level, r);
    }

    /// Triggers come from processors; what pushes is behind them.
    pub(super) fn draw_outside(&mut self, level: u32, r: &mut Random) {
        for drawn in self.readout.sending.iter_mut().flat_map(|sending| &mut sending.each).filter(|drawn| drawn.leads) {
            (drawn.leads, drawn.rhythm) = (false, Rhythm::Behind(Duration::from_micros(r.below(200))));
        }
        (self.triggers.credit, self.triggers.spacing) = (Some(1 + r.below(5) as usize), Spacing::Unlimited);
        self.triggers.profile.clear();
        self.triggers.limited = r.chance(0.7);
        let misbehave = level > 0 && r.chance(0.6);
        let losses = [toml::ProcessorLoss::Stop, toml::ProcessorLoss::Wait, toml::ProcessorLoss::GoOn];
        let mut each = Vec::new();
        for rob in 0..1 + r.below(3) as u16 {
            let mut drawn = Drawn { on_loss: losses[r.below(3) as usize], ..plain(rob) };
            let slowest_us = if r.chance(0.5) { 20 } else { 400 };
            let farthest_us = if r.chance(0.8) { 50 } else { 1_000 };
            drawn.rhythm = Rhythm::Alone(Duration::from_micros(1 + r.below(slowest_us)));
            drawn.latency = Duration::from_micros(1 + r.below(farthest_us));
            drawn.habits.idles = if r.chance(0.3) { 0.3 * r.unit() } else { 0.0 };
            drawn.habits.late = Duration::from_micros(if r.chance(0.2) { r.below(20_000) } else { 0 });
            if misbehave {
                let rhythm = drawn.rhythm;
                drawn.misbehave(r);
                // Records are not damaged: what is no record is not one in the world, either.
                (drawn.rhythm, drawn.habits.damages) = (rhythm, 0.0);
            }
            each.push(drawn);
        }
        let is_endless = |Drawn { habits, .. }: &Drawn| {
            let dies = habits.deaths.iter().any(|(_, away)| away.is_none());
            dies || habits.is_silent || habits.never_ends
        };
        if each.iter().any(is_endless) {
            self.course.duration.get_or_insert(Duration::from_millis(1 + r.below(80)));
        }
        let more = if self.triggers.limited { r.below(8) } else { 0 };
        self.triggers.outside =
            Some(Sending { gaps: [0.0, 0.0, 0.2, 0.7][r.below(4) as usize], more, each, slices: None, matching: None });
    }

    /// The processors, if triggers come from outside: a single good one, if the plan does not say more.
    pub(super) fn processors(&self) -> Vec<Drawn> {
        match (&self.triggers.outside, self.triggers.credit) {
            (_, None) => Vec::new(),
            (Some(outside), Some(_)) => outside.each.clone(),
            (None, Some(_)) => vec![plain(0)],
        }
    }

    pub(super) fn processors_are_good(&self) -> bool {
        self.processors().iter().all(|drawn| drawn.habits.are_good())
    }

    /// Their tables.
    pub(super) fn processor_tables(&self) -> Vec<toml::Processor> {
        let table = |drawn: &Drawn| toml::Processor {
            name: format!("processor-{}", drawn.rob),
            on_loss: drawn.on_loss,
            ..toml::Processor::default()
        };
        self.processors().iter().map(table).collect()
    }

    /// Whether the numbers of events have gaps, and triggers say nothing but them.
    pub(super) fn has_numbers_of_its_own(&self) -> bool {
        self.readout.sending.is_some() || self.triggers.outside.is_some()
    }
}

/// A good one. The first leads: what is behind triggers comes behind it.
fn plain(rob: u16) -> Drawn {
    Drawn {
        ros: 0,
        rob,
        leads: rob == 0,
        one_by_one: false,
        rhythm: Rhythm::Alone(Duration::from_micros(20)),
        latency: Duration::from_micros(5),
        is_unordered: false,
        on_missing: toml::OnMissing::Flag,
        cut: None,
        matched: None,
        on_loss: toml::ProcessorLoss::Stop,
        habits: Habits::default(),
    }
}
