//! Plans whose configuration a user may write: what configurations offer is drawn, what they refuse is not.

use std::time::Duration;

use base::ids::Role;
use base::random::Random;
use dataflow::building::assignment::SfiAssignment;
use dataflow::level1::pace::Spacing;
use dataflow::level2::steering::Strategy;
use dataflow::readout::pusher::Destination;

use super::plan::{Fine, InputKind, Plan};

impl Plan {
    /// Most plans are lawful; the others say what no configuration can.
    pub(super) fn draw_lawful(&mut self, r: &mut Random) {
        if r.chance(0.2) {
            return;
        }
        self.is_lawful = true;
        self.draw_keys(r);
        self.abide();
    }

    /// The text of its configuration, if a user may write it.
    pub fn to_toml(&self) -> Option<String> {
        self.is_lawful.then(|| self.configuration().to_toml())
    }

    fn draw_keys(&mut self, r: &mut Random) {
        let millis = |r: &mut Random, most: u64| Duration::from_millis(1 + r.below(most));
        let above = [0.5, 2.0 / 3.0, 0.8, 0.95][r.below(4) as usize];
        let roles = [Role::L2sv, Role::L2pu, Role::Pros, Role::Ros, Role::Dfm, Role::Sfi, Role::Efd, Role::Sfo];
        self.fine = Fine {
            decision_group: r.chance(0.5).then(|| 1 + r.below(12) as usize),
            decision_age: millis(r, 10),
            clear_age: millis(r, 20),
            push_age: Duration::from_millis([0, 1, 5][r.below(3) as usize]),
            readout_timeout: millis(r, 30),
            l2_request_timeout: r.chance(0.5).then(|| millis(r, 30)),
            retries: r.below(5) as u32,
            busy: (above * (0.1 + 0.8 * r.unit()), above),
            stops: roles.into_iter().filter(|_| r.chance(0.3)).collect(),
        };
        // Where data are to be kept, pages are, too.
        if self.input != InputKind::SelfTrigger && !self.keeps_data() && r.chance(0.2) {
            self.readout.pages = 2 + r.below(6) as usize;
        }
        if r.chance(0.5) {
            let interval = Duration::from_micros(1 + r.below(1_000));
            self.triggers.spacing = match self.triggers.spacing {
                Spacing::Unlimited => Spacing::Unlimited,
                Spacing::Fixed(_) => Spacing::Fixed(interval),
                Spacing::Poisson(_) => Spacing::Poisson(interval),
            };
        }
        if let Strategy::Generate { robs_per_step, .. } | Strategy::TwoStep { robs_per_step, .. } =
            &mut self.level2.strategy
        {
            *robs_per_step = 1 + r.below(5) as usize;
        }
    }

    /// As `weir check` demands it.
    fn abide(&mut self) {
        let above = (self.fine.busy.1 * self.readout.pages as f64) as usize;
        self.triggers.in_flight = self.triggers.in_flight.min((self.readout.pages - above).max(1) as u64);
        if self.counts.l2pu != self.counts.sfi {
            self.level2.phased = None;
        }
        if let Some(push) = &mut self.building.push {
            push.window_bytes = push.window_bytes.max(WINDOW_BYTES_MIN);
            if push.bytes_per_s.is_none() {
                push.burst_bytes = 0;
            }
            if push.destination == Destination::Table {
                self.building.assignment = SfiAssignment::RoundRobin;
            }
        }
        if let (InputKind::SelfTrigger, Spacing::Poisson(mean)) = (self.input, self.triggers.spacing) {
            self.triggers.spacing = Spacing::Fixed(mean);
        }
        // All steps are spaced alike.
        if let Spacing::Fixed(_) = self.triggers.spacing {
            for (_, spacing) in &mut self.triggers.profile {
                if let Spacing::Poisson(mean) = *spacing {
                    *spacing = Spacing::Fixed(mean);
                }
            }
        }
        if !self.filter.has_tasks {
            self.recording.streams.iter_mut().for_each(|rule| rule.chains = 0);
        }
    }
}

/// `weir check` takes no shorter window.
const WINDOW_BYTES_MIN: u64 = 64;

#[cfg(test)]
mod tests {
    use base::ids::NodeId;
    use configuration::Partition;

    use super::*;
    use crate::{EDITION, EDITION_OF_CRATE_LINKS, EDITION_OF_MATCHES, LEVELS};

    /// The text of a drawn configuration passes all checks, and gives the components that the plan runs.
    #[test]
    fn a_user_may_write_what_is_drawn() {
        let mut lawful = 0;
        for seed in 0..900 {
            let edition = [EDITION, EDITION_OF_MATCHES, EDITION_OF_CRATE_LINKS][seed as usize / 300];
            let plan = Plan::draw_in(edition, seed, seed as u32 % LEVELS);
            let Some(text) = plan.to_toml() else { continue };
            lawful += 1;
            let read = Partition::parse("drawn.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let drawn = plan.assembly();
            let written = plan.assembly_of(read);
            assert_eq!(drawn.applications, plan.applications());
            assert_eq!(drawn.applications, written.applications, "{text}");
            for node in (1..=drawn.applications.len() as u16).map(NodeId) {
                let of = |assembly| format!("{:?}", plan.parameters(assembly, node, false));
                assert_eq!(of(&drawn), of(&written), "{text}");
            }
        }
        assert!(lawful > 600, "{lawful}");
    }
}
