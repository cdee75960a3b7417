//! What later editions of the draws add, each from random numbers of its own.

use std::time::Duration;

use dataflow::random::Random;

use super::plan::Plan;

impl Plan {
    pub(super) fn draw_more(&mut self, edition: u32, level: u32) {
        if edition >= 2 && level >= 1 {
            self.draw_healing(&mut Random::new(self.seed ^ 0x6865_616c_6564));
        }
    }

    /// Nearly always everything heals, so that what is in hand must drain; else that it does not would never be seen.
    fn draw_healing(&mut self, r: &mut Random) {
        if self.healed_after.is_none() && r.chance(0.95) {
            let most_ms = if r.chance(0.5) { 20 } else { 150 };
            self.healed_after = Some(Duration::from_millis(1 + r.below(most_ms)));
        }
    }
}
