//! One application dies, with and without return, and no accepted event may be lost.

use std::time::Duration;

use dataflow::building::dfm::ClearAfter;
use dataflow::ids::Role;
use dataflow::random::Random;

use super::plan::{InputKind, Plan};
use crate::world::Fault;

impl Plan {
    /// Read-out systems keep an event until it is recorded, and one application dies at any time.
    pub(super) fn draw_crash(&mut self, r: &mut Random) {
        let supervisors = &mut Random::new(self.seed ^ 0x7375_7065_7276);
        let clears_alone = self.input == InputKind::Level2Only && supervisors.chance(0.5);
        if self.input == InputKind::Level2Only && !clears_alone {
            self.input = InputKind::Level2;
        }
        self.clear_after = ClearAfter::Recorded;
        self.counts.efd = self.counts.efd.max(1);
        self.events = 10 + r.below(90);
        self.late.clear();
        let roles = [Role::L2pu, Role::Ros, Role::Dfm, Role::Dfm, Role::Sfi, Role::Efd, Role::Sfo, Role::Sfo];
        let role = roles[r.below(roles.len() as u64) as usize];
        let drawn = self.of(if clears_alone || supervisors.chance(0.2) { Role::L2sv } else { role });
        let nodes = if drawn.is_empty() { self.of(Role::Dfm) } else { drawn };
        let node = nodes[r.below(nodes.len() as u64) as usize];
        let returns = r.chance(0.7).then(|| Duration::from_micros(100 + r.below(30_000)));
        let latest_us = if r.chance(0.5) { 3_000 } else { 25_000 };
        let at = Duration::from_micros(r.below(latest_us));
        self.faults.push((at, returns.map_or(Fault::Kill(node), |after| Fault::Restart(node, after))));
        if !self.of(Role::Sfi).is_empty() && r.chance(0.5) {
            self.draw_slow_builder(at, r);
        }
    }

    /// About the time of the crash an event builder is slower than the DFM is patient, or out of reach.
    fn draw_slow_builder(&mut self, crash: Duration, r: &mut Random) {
        let sfis = self.of(Role::Sfi);
        let node = sfis[r.below(sfis.len() as u64) as usize];
        self.build_timeout = Duration::from_micros(500 + r.below(10_000));
        let at = (crash + Duration::from_micros(r.below(10_000))).saturating_sub(Duration::from_millis(5));
        let lasts = Duration::from_millis(1 + r.below(40));
        let fault = if r.chance(0.5) {
            Fault::Split(vec![node], lasts)
        } else {
            Fault::Slow { node, each: Duration::from_micros(r.below(10_000)), lasts }
        };
        self.faults.push((at, fault));
    }

    /// Whether no accepted event may be lost, though one application dies: read-out systems keep an event until it is recorded,
    /// and what died returns, or there is another that does its work.
    pub fn keeps_all(&self) -> bool {
        let mut crashes = self.faults.iter().filter(|(_, fault)| matches!(fault, Fault::Kill(_) | Fault::Restart(..)));
        let (Some((_, crash)), None) = (crashes.next(), crashes.next()) else { return false };
        let is_survived = crash.node().is_some_and(|node| {
            let role = self.applications()[usize::from(node.0) - 1].role;
            match crash {
                Fault::Restart(..) => !matches!(role, Role::Level1 | Role::Pros),
                _ => matches!(role, Role::L2pu | Role::Sfi | Role::Efd | Role::Ros) && self.of(role).len() > 1,
            }
        });
        let is_forced = self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Force));
        let keeps = self.clear_after == ClearAfter::Recorded || self.input == InputKind::Level2Only;
        keeps && is_survived && !is_forced && !self.is_hindered()
    }
}
