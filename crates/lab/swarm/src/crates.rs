//! Read-out crates, and what befalls their fronts.

use std::time::Duration;

use base::ids::{NodeId, Role};
use base::random::Random;

use super::plan::{Crates, Plan};
use simulator::world::Fault;

impl Plan {
    /// Whether links push within crates, which tell level 1 through their fronts when sources have come.
    pub(super) fn has_links_in_crates(&self) -> bool {
        self.readout.crates.is_some() && self.readout.sending.is_some()
    }

    /// Some or all read-out systems are in crates, whose fronts are struck as others are.
    pub(super) fn draw_crates(&mut self, level: u32, r: &mut Random) {
        (self.readout.sending, self.triggers.limited) = (None, true);
        self.counts.ros += r.below(3) as u16;
        let ros = 1 + r.below(u64::from(self.counts.ros)) as u16;
        let count = 1 + r.below(u64::from(self.counts.ros / ros)) as u16;
        let age = Duration::from_micros(r.below(3_000));
        self.readout.crates = Some(Crates { count, ros, group: 1 + r.below(12) as usize, age });
        // A port that never holds an answer of a whole crate would be no fault but a wrong network.
        self.building.port.iter_mut().for_each(|port| port.buffer_bytes *= u64::from(ros));
        let fronts: Vec<NodeId> = [Role::Trg, Role::Ebif].into_iter().flat_map(|role| self.of(role)).collect();
        let any = |r: &mut Random| fronts[r.below(fronts.len() as u64) as usize];
        let at = |r: &mut Random| Duration::from_micros(r.below(15_000));
        if (1..=3).contains(&level) && r.chance(0.3) {
            let (node, lasts) = (any(r), Duration::from_micros(r.below(40_000)));
            let each = Duration::from_micros(r.below(2_000));
            let fault = if r.chance(0.5) { Fault::Split(vec![node], lasts) } else { Fault::Slow { node, each, lasts } };
            self.course.faults.push((at(r), fault));
        }
        let returns = |r: &mut Random, node| Fault::Restart(node, Duration::from_micros(100 + r.below(30_000)));
        if matches!(level, 2 | 3 | 5) && r.chance(0.6) {
            let node = any(r);
            self.course.faults.push((at(r), if level == 3 { Fault::Kill(node) } else { returns(r, node) }));
        }
        if level == 4 && r.chance(0.5) {
            for (_, fault) in &mut self.course.faults {
                let node = any(r);
                match fault {
                    Fault::Kill(of) => *of = node,
                    Fault::Restart(of, _) => *of = node,
                    _ => {}
                }
            }
        }
    }
}
